"""A law from the polynomial P(z, G) = 0 of its Cauchy transform, on the branch that continues from infinity.

A table along each band, made once, gives first guesses, and Newton's method on the polynomial itself gives every value.
"""

from __future__ import annotations

import itertools
from functools import cached_property
from typing import Any

import mpmath as mp
import numpy as np
import sympy as sp
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

from derivations import free_probability as chapter
from derivations._free_calculus import FreeLaw as Law
from derivations._free_calculus import g, z
from numerics.compile import function

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]

ALIKE = 0.02  # of a density's power: closer to 0 or to −1/2 the real part of G is regular at an end
DIGITS = 60  # of edges and of polynomials moved to an edge
REACH_HARD = 4.0  # of the double-exponential variable: distances to a hard edge down to 1e-37 of a band's width
REACH_SOFT = 2.94  # and 1e-13 to a soft one: nearer, two roots are one in double precision, and the mass there is 1e-17
CELL = 0.125  # of the table, in the same variable
CELL_NODES = 10
BLOCK = 8192  # points of the closed form evaluated at a time: the temporaries stay in the cache
NEAR = 0.02  # of the distance to the nearest singular point: from this height the tangent leads to the axis
CLOSE = 0.1  # of a band's width: complex branch points nearer to the axis cut the band


class AlgebraicCurve:
    """The polynomial P(z, G) as floats around any origin, and its physical branch by continuation from infinity.

    Around an atom of weight w the unknown is h = G − w/ζ: a finite h beside a pole would be lost in a double.
    """

    def __init__(self, law: Law, mean: float, second: float) -> None:
        self._mean, self._second = mean, second
        self.polynomial, self._exact = law.polynomial, sp.Poly(law.polynomial, g, z)
        with mp.workdps(DIGITS):
            self._atoms = [(digits(p), digits(w)) for p, w in law.atoms() if w > 0]
        self.degree = self._exact.degree(g)
        with mp.workdps(DIGITS):
            self.terms = [(i, k, digits(c)) for (i, k), c in self._exact.terms()]
        self._about: dict[Any, Array] = {}
        self.origin = self._table(mp.mpf(0), mp.mpf(0))
        self.edges = self._candidates()
        reach = [abs(float(e)) for e in self.edges] or [1.0]
        self.scale = max(*reach, 1e-300)

    @cached_property
    def _radical(self) -> tuple[float, Array, tuple[float, float], float] | None:
        """For degree 2 with one band: sign·√lead, the discriminant's rational root, the band, the sign at infinity.

        √((z − a)(z − b)) as the product of two principal roots has its cut on the band alone, so the branch is global.
        """
        if self.degree != 2:
            return None
        exact = sp.discriminant(sp.Poly(self._exact.as_expr(), g))
        lead, factors = sp.factor_list(exact, z)
        odd = sp.Mul(*[f for f, k in factors if k % 2])
        even = sp.Mul(*[f ** (k // 2) for f, k in factors])
        if sp.degree(odd, z) != 2:
            return None
        top = sp.Poly(odd, z).LC() * lead
        roots = sorted(sp.Poly(odd, z).all_roots(), key=lambda r: float(sp.re(r)))
        if top <= 0 or not all(r.is_real for r in roots):
            return None
        rational = np.array([float(q) for q in sp.Poly(even, z).all_coeffs()])
        ends = (float(roots[0].evalf(30)), float(roots[1].evalf(30)))
        return float(sp.sqrt(top)), rational, ends, self._sign(float(sp.sqrt(top)), rational, ends)

    def _sign(self, top: float, rational: Array, ends: tuple[float, float]) -> float:
        far = np.array([1e3j * (self.scale + abs(ends[0]) + abs(ends[1]))])
        errors = [abs(self._closed(far, top, rational, ends, sign)[0] * far[0] - 1) for sign in (1.0, -1.0)]
        return 1.0 if errors[0] < errors[1] else -1.0

    def _closed(self, at: Complex, top: float, rational: Array, ends: tuple[float, float], sign: float) -> Complex:
        """The quadratic's root of a given sign, by whichever of its two forms does not cancel."""
        a, b, c = (np.polyval(coefficients, at) for coefficients in self._quadratic)
        root = sign * top * np.polyval(rational, at) * np.sqrt(at - ends[0]) * np.sqrt(at - ends[1])
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.where(np.abs(root - b) >= np.abs(root + b), (root - b) / (2 * a), -2 * c / (b + root)))

    @cached_property
    def _quadratic(self) -> list[Array]:
        parts = sp.Poly(self._exact.as_expr(), g).all_coeffs()
        return [np.array([float(q) for q in sp.Poly(part, z).all_coeffs()]) for part in parts]

    def pole(self, origin: Any) -> Any:
        """The weight of the atom at an origin, 0 if there is none."""
        with mp.workdps(DIGITS):
            near = [w for p, w in self._atoms if abs(p - origin) <= mp.mpf(10) ** (10 - DIGITS) * (1 + abs(p))]
        return near[0] if near else mp.mpf(0)

    def about(self, origin: Any) -> Array:
        """Coefficients c[i, k] of h^i ζ^k for z = origin + ζ and G = h + w/ζ, scaled to a largest one of 1."""
        if origin not in self._about:
            self._about[origin] = self._table(origin, self.pole(origin))
        return self._about[origin]

    def _table(self, origin: Any, weight: Any) -> Array:
        with mp.workdps(DIGITS):
            top = max(k for _, k, _ in self.terms)
            shift = self.degree if weight else 0  # multiplied by ζ^shift, which clears the pole
            table = [[mp.mpf(0)] * (top + 1 + shift) for _ in range(self.degree + 1)]
            for i, k, c in self.terms:
                for j in range(k + 1):
                    moved = c * mp.binomial(k, j) * origin ** (k - j)
                    for taken in range(i + 1 if weight else 1):
                        table[i - taken][j + shift - taken] += moved * mp.binomial(i, taken) * weight**taken
            largest = max(abs(c) for row in table for c in row)
            # What cancels to below the working precision is an exact zero: a pole or a hard edge at this origin.
            tiny = largest * mp.mpf(10) ** (15 - DIGITS)
            clean = np.array([[0.0 if abs(c) < tiny else float(c / largest) for c in row] for row in table])
        used = np.flatnonzero(np.any(clean != 0, axis=0))
        return np.asarray(clean[:, used[0] : used[-1] + 1])

    @staticmethod
    def moved(terms: list[tuple[int, Any]], origin: Any) -> Array:
        """A polynomial Σ c z^k, given by its terms (k, c), as coefficients in z − origin, the highest first."""
        top = max(k for k, _ in terms)
        row = [mp.mpf(0)] * (top + 1)
        for k, c in terms:
            number = digits(c)
            for j in range(k + 1):
                row[top - j] += number * mp.binomial(k, j) * origin ** (k - j)
        largest = max(abs(c) for c in row)
        return np.array([mp.mpf(0) if abs(c) < largest * mp.mpf(10) ** (15 - DIGITS) else c for c in row])

    def _candidates(self) -> list[Any]:
        """Real roots of the square-free discriminant and of the leading coefficient, with many digits."""
        polynomial = sp.Poly(self._exact.as_expr(), g)
        parts = [polynomial.LC()]
        if polynomial.degree() > 1:
            parts.append(sp.discriminant(polynomial))
        roots: list[Any] = []
        self.singular: list[Any] = []  # every root, complex ones too: elsewhere each branch is analytic
        self.branching: list[tuple[Any, int]] = []  # the discriminant's roots with their multiplicities
        with mp.workdps(DIGITS):
            for part in parts:
                for factor, multiplicity in sp.factor_list(part, z)[1] if part.has(z) else []:
                    coefficients = [digits(c) for c in sp.Poly(factor, z).all_coeffs()]
                    found = mp.polyroots(coefficients, maxsteps=500, extraprec=4 * DIGITS + 200)
                    size = max([abs(r) for r in found] + [mp.mpf(1)])
                    found = [mp.re(r) if abs(mp.im(r)) < size * mp.mpf(10) ** (-DIGITS // 2) else r for r in found]
                    self.singular += found
                    self.branching += [(r, int(multiplicity)) for r in found if part is not parts[0]]
                    roots += [r for r in found if mp.im(r) == 0]
            roots.sort()
            distinct: list[Any] = []
            for r in roots:
                if not distinct or r - distinct[-1] > mp.mpf(10) ** (-DIGITS // 2) * (1 + abs(r)):
                    distinct.append(mp.mpf(0) if abs(r) < mp.mpf(10) ** (10 - DIGITS) else r)
        return distinct

    def intervals(self) -> list[_Interval]:
        """The intervals between neighbouring candidates for an edge that carry a density, cut where it turns fast."""
        bands = [(a, b) for a, b in itertools.pairwise(self.edges) if self.carries(a, b)]
        ends = [[a, *self.narrows(a, b), b] for a, b in bands]
        return [_Interval(self, a, b) for points in ends for a, b in itertools.pairwise(points)]

    def carries(self, a: Any, b: Any) -> bool:
        """Whether the density is positive between two neighbouring candidates, where the branch is analytic."""
        with mp.workdps(DIGITS):
            middle = (a + b) / 2
        value = self.continued(np.array([0j]), middle)[0]
        return bool(value.imag < -1e-9 * abs(value))

    def narrows(self, a: Any, b: Any) -> list[Any]:
        """Points of (a, b) below a pair of complex branch points: as ends of a table they draw its knots together."""
        close = CLOSE * (b - a)
        return sorted({mp.mpf(float(mp.re(p))) for p in self.singular if a < mp.re(p) < b and 0 < mp.im(p) < close})

    # -- evaluation

    def powers(self, zeta: Any, table: Array) -> list[Any]:
        """The coefficients of G^i at ζ."""
        out = []
        for row in table:
            value = np.zeros_like(zeta) + row[-1]
            for c in row[-2::-1]:
                value = value * zeta + c
            out.append(value)
        return out

    @staticmethod
    def _horner(p: list[Any], value: Any) -> tuple[Any, Any]:
        total, slope = p[-1] + 0 * value, 0 * value
        for c in p[-2::-1]:
            slope = slope * value + total
            total = total * value + c
        return total, slope

    def newton(self, zeta: Any, value: Complex, table: Array, steps: int = 4) -> Complex:
        """Newton's method in G at fixed z."""
        p = self.powers(zeta, table)
        for _ in range(steps):
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                total, slope = self._horner(p, value)
                move = total / slope
            value = value - np.where(np.isfinite(move), move, 0)
        return value

    def slope(self, at: Complex, value: Complex) -> Complex:
        """dG/dz = −P_z/P_G."""
        table = self.origin
        raised = table[:, 1:] * np.arange(1, table.shape[1]) if table.shape[1] > 1 else np.zeros((table.shape[0], 1))
        above = self._horner(self.powers(at, raised), value)[0]
        return np.asarray(-above / self._horner(self.powers(at, table), value)[1])

    def roots(self, zeta: Complex, table: Array) -> Complex:
        """All values of h, by batched companion matrices, shape (points, degree)."""
        return self._companion(np.stack(np.broadcast_arrays(*self.powers(zeta, table)), axis=-1))

    def roots_near(self, zeta: Complex, table: Array, size: Array) -> Complex:
        """The values of h of about a given size, to full precision; roots far smaller or larger become 0 or 1e300.

        Near a hard edge roots differ by many orders of magnitude, and a companion matrix keeps the largest ones only.
        """
        p = np.stack(np.broadcast_arrays(*self.powers(zeta, table)), axis=-1)
        p = p * size[:, None] ** np.arange(self.degree + 1)
        large = np.abs(p) > 1e-12 * np.abs(p).max(axis=1)[:, None]
        first, last = np.argmax(large, axis=1), self.degree - np.argmax(large[:, ::-1], axis=1)
        out = np.full((zeta.size, self.degree), 1e300, dtype=complex)
        for low, high in {(int(i), int(j)) for i, j in zip(first, last, strict=True)}:
            rows = (first == low) & (last == high)
            out[rows, :low] = 0
            if high > low:
                out[rows, low:high] = self._companion(p[rows, low : high + 1]) * size[rows, None]
        return out

    @staticmethod
    def _companion(p: Complex) -> Complex:
        degree = p.shape[-1] - 1
        companion = np.zeros((*p.shape[:-1], degree, degree), dtype=complex)
        index = np.arange(degree - 1)
        companion[..., index + 1, index] = 1
        with np.errstate(divide="ignore", invalid="ignore"):
            last = -p[..., :-1] / p[..., -1:]
        companion[..., :, -1] = np.where(np.isfinite(last), last, 1e300)
        return np.asarray(np.linalg.eigvals(companion))

    def continued(self, zeta: Complex, origin: Any = None) -> Complex:
        """The branch G ~ 1/z, followed down vertical lines from far above to origin + ζ (Im ζ ≥ 0).

        With an origin this is h, without one G. Then each point is measured from the singular point nearest to it,
        where that is close: the polynomial's coefficients keep the digits that a difference of nearby numbers loses.
        """
        target = np.asarray(zeta, dtype=complex)
        if origin is not None:
            return self._in_chunks(target, origin)
        if self.degree == 1:
            with np.errstate(divide="ignore"):
                constant, lead = self.powers(target, self.origin)
                return np.asarray(-constant / lead)
        if self._radical is not None:
            return self._closed(target, *self._radical)
        out = np.empty(target.size, dtype=complex)
        nearest = np.full(target.size, -1)
        if self.edges:
            ends = np.array([float(e) for e in self.edges])
            index = np.argmin(np.abs(target[:, None] - ends), axis=1)
            nearest = np.where(np.abs(target - ends[index]) < 0.1 * self.scale, index, -1)
        for k in np.unique(nearest):
            rows = nearest == k
            origin = self.edges[k] if k >= 0 else mp.mpf(0)
            with mp.workdps(DIGITS):
                high = float(origin)
                low = float(origin - mp.mpf(high))
            zeta = (target[rows] - high) - low
            out[rows] = self._in_chunks(zeta, origin)
            if weight := float(self.pole(origin)):
                with np.errstate(divide="ignore", invalid="ignore"):
                    out[rows] += weight / zeta
        return out

    def _in_chunks(self, target: Complex, origin: Any) -> Complex:
        table, chunk = self.about(origin), 4096
        with mp.workdps(DIGITS):
            singular = np.array([complex(p - origin) for p in self.singular])
        parts = [
            self._descend(target[start : start + chunk], table, origin, singular)
            for start in range(0, target.size, chunk)
        ]
        return np.concatenate(parts) if parts else np.empty(0, dtype=complex)

    def _descend(self, target: Complex, table: Array, origin: Any, singular: Complex) -> Complex:
        """Down from height y₁ to y₂ the branch stays in the disc of pseudo-hyperbolic radius (y₁ − y₂)/(y₁ + y₂).

        That is the Schwarz–Pick lemma for h, which maps the upper half-plane into the lower one. A step counts if one
        root alone lies in the disc, so no step can change the branch. Only the last one, onto the axis from a height
        far below the distance to the nearest singular point, follows the tangent.
        """
        distance = np.full(target.size, np.inf)
        for point in singular:
            distance = np.minimum(distance, np.abs(target - point))
        distance = np.maximum(distance, 1e-42 * self.scale)
        height = 100.0 * (self.scale + np.abs(target + float(origin))) + target.imag
        value = self._at_infinity(target.real + 1j * height, origin, table)
        ratio, active = np.full(target.size, 0.5), np.arange(target.size)
        for _ in range(4000):
            if active.size == 0:
                return self.newton(target, value, table, 2)
            here, before, goal = height[active], value[active], target.imag[active]
            last = (here <= NEAR * distance[active]) | (here * ratio[active] <= goal)
            below = np.where(last, goal, here * ratio[active])
            x = target.real[active]
            guess = before + self._velocity(x + 1j * here, before, table) * 1j * (below - here)
            roots = self.roots_near(x + 1j * below, table, np.abs(guess))
            found, first, second = self._nearest_two(roots, guess)
            radius = ((here - below) / (here + below))[:, None]
            apart = np.abs(roots - before[:, None]) - radius * np.abs(roots - np.conj(before)[:, None])
            inside = apart <= 1e-10 * np.abs(before)[:, None]
            alone = inside.sum(axis=1) == 1
            tangent = here <= NEAR * distance[active]
            only = roots[np.arange(active.size), np.argmax(inside, axis=1)]
            found = np.where(alone & ~tangent, only, found)
            # Two roots that meet on the line (a node) share every disc: there the tangent tells them apart.
            good = np.where(tangent, first <= 0.2 * second, alone) | (ratio[active] > 0.99)
            rows = active[good]
            value[rows] = self.newton((x + 1j * below)[good], found[good], table, 1)
            height[rows] = below[good]
            ratio[active] = np.where(good, np.maximum(ratio[active] ** 2, 1e-4), np.sqrt(ratio[active]))
            active = active[~(last & good)]
        raise ArithmeticError("the branch could not be followed to the real axis in 4000 steps")

    def _at_infinity(self, at: Complex, origin: Any, table: Array) -> Complex:
        """The root that three terms of the series at infinity single out: the first may be shared by two branches."""
        inverse = 1 / (at + float(origin))
        series = inverse * (1 + inverse * (self._mean + inverse * self._second)) - float(self.pole(origin)) / at
        return self._nearest(self.roots_near(at, table, np.abs(series)), series)[0]

    def _velocity(self, zeta: Complex, value: Complex, table: Array) -> Complex:
        raised = table[:, 1:] * np.arange(1, table.shape[1]) if table.shape[1] > 1 else np.zeros((table.shape[0], 1))
        with np.errstate(divide="ignore", invalid="ignore"):
            move = -self._horner(self.powers(zeta, raised), value)[0] / self._horner(self.powers(zeta, table), value)[1]
        return np.where(np.isfinite(move), move, 0)

    @staticmethod
    def _nearest(roots: Complex, guess: Any) -> tuple[Complex, Array]:
        distance = np.abs(roots - guess[:, None])
        index = np.argmin(distance, axis=1)
        rows = np.arange(guess.size)
        return roots[rows, index], distance[rows, index]

    @staticmethod
    def _nearest_two(roots: Complex, guess: Complex) -> tuple[Complex, Array, Array]:
        distance = np.abs(roots - guess[:, None])
        index = np.argmin(distance, axis=1)
        rows = np.arange(guess.size)
        first = distance[rows, index]
        if roots.shape[1] == 1:
            return roots[:, 0], first, np.full(guess.size, np.inf)
        found = roots[rows, index]
        apart = np.abs(roots - found[:, None])
        apart[rows, index] = np.inf
        return found, first, apart.min(axis=1)


class _Interval:
    """One interval of positive density: a table in the double-exponential variable τ, and cells for its integrals.

    x = left + width·s(τ) with s = 1/(1 + exp(−π sinh τ)): any algebraic behaviour at the ends is smooth in τ.
    """

    def __init__(self, curve: AlgebraicCurve, left: Any, right: Any) -> None:
        self.curve, self.left, self.right = curve, left, right
        with mp.workdps(DIGITS):
            self.width = float(right - left)
            self._low = (float(left), float(left - mp.mpf(float(left))))
            self._high = (float(right), float(right - mp.mpf(float(right))))
        self.tables = (curve.about(left), curve.about(right))
        self.poles = (float(curve.pole(left)), float(curve.pole(right)))
        self.hard = (self._is_hard(0), self._is_hard(1))
        self.reach = tuple(REACH_HARD if hard else REACH_SOFT for hard in self.hard)
        count = round(sum(self.reach) / CELL)
        self.knots = np.linspace(-self.reach[0], self.reach[1], count + 1)
        self.cell = float(self.knots[1] - self.knots[0])
        self._tabulate()
        self._integrate()

    def _is_hard(self, side: int) -> bool:
        """Whether the density diverges at an end: then G grows by a power of the distance."""
        distance = np.array([1e-8, 1e-10]) * self.width * (1 if side == 0 else -1)
        value = self.curve.continued(distance.astype(complex), (self.left, self.right)[side])
        return bool(abs(value[1]) > 1.4 * abs(value[0]))

    def level(self, side: int) -> float:
        """The density's limit at an end: 0 where it vanishes by a power of the distance."""
        if self.hard[side] or self._power[side] > 0.1:
            return np.inf if self.hard[side] else 0.0
        return float(-self.curve.continued(np.zeros(1, dtype=complex), (self.left, self.right)[side])[0].imag / np.pi)

    # -- the map

    def _distance(self, tau: Array) -> tuple[Array, Array]:
        """Signed distance to the nearer end (positive from the left one, negative from the right one) and dx/dτ."""
        e = np.exp(-np.pi * np.abs(np.sinh(tau)))
        share = e / (1 + e)
        slope = self.width * np.pi * np.cosh(tau) * e / (1 + e) ** 2
        return np.where(tau < 0, 1.0, -1.0) * self.width * share, slope

    def _tau(self, distance: Array, from_left: NDArray[np.bool_]) -> Array:
        share = np.clip(np.abs(distance) / self.width, 1e-300, 0.5)
        tau = np.arcsinh(np.log(share / (1 - share)) / np.pi)
        return np.where(from_left, tau, -tau)

    def _from(self, x: Array) -> tuple[Array, NDArray[np.bool_]]:
        """Distance of x to the nearer end, with the end's bits below double precision."""
        left = (x - self._low[0]) - self._low[1]
        right = (x - self._high[0]) - self._high[1]
        from_left = left <= -right
        tiny = 1e-300  # never on the end itself
        return np.where(from_left, np.maximum(left, tiny), np.minimum(right, -tiny)), from_left

    # -- the table

    def _tabulate(self) -> None:
        distance, _ = self._distance(self.knots)
        value = np.empty(self.knots.size, dtype=complex)
        for side, _table, origin in (
            (self.knots < 0, self.tables[0], self.left),
            (self.knots >= 0, self.tables[1], self.right),
        ):
            value[side] = self.curve.continued(distance[side].astype(complex), origin)
        height = np.maximum(-value.imag, 1e-300)
        # Of the branch's two parts the log of one and the other's ratio are tame at soft and at hard edges alike.
        self._height = CubicSpline(self.knots, np.log(height))
        real = value.real - self._poles(distance, other=True)
        self._ratio = CubicSpline(self.knots, real / (1 + height))
        # Power of the distance with which the density vanishes at a soft end (1/2 at an ordinary edge, 1/3 at a cusp).
        share = np.log(np.abs(distance))
        rate = np.diff(np.log(height)) / np.diff(share)
        self._power = (float(rate[0]), float(rate[-1]))

    def _poles(self, distance: Array, other: bool) -> Array:
        """What the atom at the nearer end (or at the other one) adds to G."""
        from_left = distance > 0
        away = np.where(from_left, distance - self.width, distance + self.width) if other else distance
        return np.where(from_left, self.poles[int(other)], self.poles[1 - int(other)]) / away

    def at(self, tau: Array, distance: Array) -> Complex:
        """G at the given distances from the nearer end."""
        within = np.clip(tau, self.knots[0], self.knots[-1])
        height = np.exp(self._height(within))
        guess = self._ratio(within) * (1 + height) + self._poles(distance, other=True) - 1j * height
        out = np.empty(tau.size, dtype=complex)
        for side, origin, table in (
            (distance > 0, self.left, self.tables[0]),
            (distance < 0, self.right, self.tables[1]),
        ):
            if side.any():
                value = self.curve.newton(distance[side], guess[side], table)
                # Newton's method that crossed the axis or ran away found another root: these points are continued.
                lost = ~(value.imag < 0) | (
                    np.abs(value - guess[side]) > 0.3 * np.abs(guess[side].imag) + 1e-6 * np.abs(value)
                )
                if lost.any():
                    value[lost] = self.curve.continued(distance[side][lost].astype(complex), origin)
                out[side] = value
        beyond = within != tau
        if beyond.any():
            rows = np.flatnonzero(beyond)
            ratio = np.abs(distance[rows] / self._distance(within[rows])[0])
            power = np.where(tau[rows] < 0, *self._power)
            # The real part diverges alike, but not next to an inverse root: there it has a limit, as at soft ends.
            alike = (power < -ALIKE) & (np.abs(power + 0.5) > ALIKE)
            real = guess[rows].real * np.where(alike, ratio**power, 1.0)
            out[rows] = real + 1j * guess[rows].imag * ratio**power
        return np.asarray(out + self._poles(distance, other=False) if any(self.poles) else out, dtype=complex)

    def resolve(self, x: Array) -> Complex:
        """G(x + i0) for x inside the interval."""
        distance, from_left = self._from(x)
        return self.at(self._tau(distance, from_left), distance)

    def density(self, x: Array) -> Array:
        """Density inside the interval: the closed form of law `cubic-density` for degree 3, else from `resolve`."""
        if self.curve.degree != 3:
            return np.asarray(-self.resolve(x).imag / np.pi)
        out = np.empty(x.size)
        for start in range(0, x.size, BLOCK):
            distance, from_left = self._from(x[start : start + BLOCK])
            value = np.empty(distance.size)
            for side, cubic in ((from_left, self._cubics[0]), (~from_left, self._cubics[1])):
                if side.any():
                    with np.errstate(all="ignore"):
                        value[side] = cubic(distance[side])
            lost = ~np.isfinite(value)  # powers of a distance to a hard edge beyond the range of doubles
            if lost.any():
                value[lost] = -self.resolve(x[start : start + BLOCK][lost]).imag / np.pi
            out[start : start + BLOCK] = value
        return out

    @cached_property
    def _cubics(self) -> tuple[_Cubic, _Cubic]:
        return _Cubic(self.curve, self.left), _Cubic(self.curve, self.right)

    # -- integrals

    def _integrate(self) -> None:
        points, weights = np.polynomial.legendre.leggauss(CELL_NODES)
        half = 0.5 * self.cell
        tau = (self.knots[:-1, None] + half) + half * points
        distance, slope = self._distance(tau.ravel())
        density = (-self.at(tau.ravel(), distance).imag / np.pi * slope).reshape(tau.shape) * half * weights
        end = np.where(distance > 0, self._low[0], self._high[0]).reshape(tau.shape)
        # What lies between the table and the ends follows the power law there.
        reach = self._distance(self.knots[[0, -1]])[0]
        outer = -self.at(self.knots[[0, -1]], reach).imag / np.pi
        tails = outer * np.abs(reach) / (1 + np.array(self._power))
        self.cells = tails[0] + np.concatenate([[0.0], np.cumsum(density.sum(axis=1))])
        self.mass = float(self.cells[-1] + tails[1])
        x = np.concatenate([(end + distance.reshape(tau.shape)).ravel(), [self._low[0], self._high[0]]])
        self._quadrature = (x, np.concatenate([density.ravel(), tails]))
        self.first = self.moment(1)

    def moment(self, order: int) -> float:
        """∫ x^order over the interval."""
        x, mass = self._quadrature
        return float(mass @ x**order)

    def mass_up_to(self, x: Array) -> Array:
        """The mass between the left end and x."""
        distance, from_left = self._from(x)
        tau = np.clip(self._tau(distance, from_left), self.knots[0], self.knots[-1])
        cell = np.clip(((tau - self.knots[0]) / self.cell).astype(int), 0, self.knots.size - 2)
        points, weights = np.polynomial.legendre.leggauss(CELL_NODES)
        half = 0.5 * (tau - self.knots[cell])
        nodes = (self.knots[cell] + half)[:, None] + half[:, None] * points
        inner, slope = self._distance(nodes.ravel())
        density = (-self.at(nodes.ravel(), inner).imag / np.pi * slope).reshape(nodes.shape)
        return np.asarray(self.cells[cell] + half * (density @ weights))

    def quantile(self, mass: Array) -> Array:
        """x with the given mass to its left."""
        low, high = np.full(mass.size, float(self.left)), np.full(mass.size, float(self.right))
        tau = np.interp(mass, self.cells, self.knots)
        distance, _ = self._distance(tau)
        x = np.clip(np.where(distance > 0, self._low[0], self._high[0]) + distance, low, high)
        for _ in range(80):
            gap = np.where(x <= low, -mass, np.where(x >= high, self.mass - mass, 0.0))
            inside = (x > float(self.left)) & (x < float(self.right))
            gap[inside] = self.mass_up_to(x[inside]) - mass[inside]
            met = np.abs(gap) <= 4e-16
            high, low = np.where(gap > 0, x, high), np.where(gap > 0, low, x)
            slope = np.zeros_like(x)
            slope[inside] = -self.resolve(x[inside]).imag / np.pi
            with np.errstate(divide="ignore", invalid="ignore"):
                step = x - gap / slope
            step = np.where((step > low) & (step < high), step, 0.5 * (low + high))
            moved = np.where(met, 0.0, np.abs(step - x))
            x = np.where(met, x, step)
            if np.all(moved <= 4e-16 * np.abs(x)):
                break
        x = np.where(mass <= 0, float(self.left), x)
        return np.where(mass >= self.mass, float(self.right), x)


class _Cubic:
    """Law `cubic-density` at ζ from an end of an interval: polynomials in ζ, and the discriminant by its roots.

    So no coefficient cancels in floats, and at an end the discriminant keeps every digit of the distance to it.
    """

    def __init__(self, curve: AlgebraicCurve, origin: Any) -> None:
        exact = chapter.cubic_coefficients(curve.polynomial)
        with mp.workdps(DIGITS):
            unit = max(abs(c) for _, _, c in curve.terms)
            self._lead, self._linear, self._constant = (
                (curve.moved([(k, c) for (k,), c in sp.Poly(exact[name], z).terms()], origin) / unit**degree).astype(
                    float
                )
                for name, degree in ((chapter.lead, 1), (chapter.linear, 2), (chapter.constant, 3))
            )
            self._front = float(abs(digits(sp.Poly(exact[chapter.discriminant], z).LC())) / unit**4)
            self._real, self._pairs = [], []
            for root, multiplicity in curve.branching:
                away = root - origin
                if mp.im(away) == 0:
                    self._real.append((float(away), multiplicity))
                elif mp.im(away) > 0:
                    self._pairs.append((float(mp.re(away)), float(mp.im(away)) ** 2, multiplicity))
        arguments = (chapter.lead, chapter.linear, chapter.constant, chapter.discriminant)
        self._law = function(chapter.cubic_density.right, arguments)

    def __call__(self, zeta: Array) -> Array:
        discriminant = np.full(zeta.size, -self._front)
        for away, multiplicity in self._real:
            discriminant *= np.abs(zeta - away) ** multiplicity
        for real, imaginary, multiplicity in self._pairs:
            discriminant *= ((zeta - real) ** 2 + imaginary) ** multiplicity
        lead, linear, constant = (np.polyval(c, zeta) for c in (self._lead, self._linear, self._constant))
        return np.asarray(self._law(np.abs(lead), linear, np.abs(constant), discriminant))


def digits(coefficient: Any) -> Any:
    """An exact real number with DIGITS digits."""
    if coefficient.is_Rational:
        return mp.mpf(int(coefficient.p)) / int(coefficient.q)
    return mp.mpmathify(coefficient.evalf(DIGITS + 20))
