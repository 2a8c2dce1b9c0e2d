"""One distribution class over any law of the free-probability calculus: density, quantiles, transforms, draws.

The law's polynomial is solved on the branch that continues from infinity: a table along each band, made once, gives
first guesses, and Newton's method on the polynomial itself gives every value.
"""

from __future__ import annotations

import itertools
from functools import cached_property
from typing import Any

import mpmath as mp
import numpy as np
import sympy as sp
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import CubicSpline

from derivations._free_calculus import FreeLaw as Law
from derivations._free_calculus import g, z

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]

DIGITS = 60  # of edges and of polynomials moved to an edge
REACH_HARD = 4.0  # of the double-exponential variable: distances to a hard edge down to 1e-37 of a band's width
REACH_SOFT = 2.94  # and 1e-13 to a soft one: nearer, two roots are one in double precision, and the mass there is 1e-17
CELL = 0.125  # of the table, in the same variable
CELL_NODES = 10
CHECK = 1e-10  # mass and mean must be right to this when a law is set up


class FreeLaw:
    """Distribution of a law of `derivations.free_probability` with numeric parameters.

    `law`: an object of the calculus; `parameters`: numbers for its symbols, if any. Raises ValueError for symbols
    without numbers, ArithmeticError if the density could not be resolved (mass and mean are checked at set-up).
    """

    def __init__(self, law: Law, parameters: dict[Any, Any] | None = None) -> None:
        if not isinstance(law, Law):
            raise ValueError(f"law must be a law of derivations.free_probability, got {law!r}")
        self.law = law.subs({s: _exact(v) for s, v in parameters.items()}) if parameters else law
        free = sorted(s.name for s in self.law.polynomial.free_symbols - {z, g})
        if free:
            raise ValueError(f"law needs numbers for {', '.join(free)}; pass parameters={{symbol: number}}")
        self._mean, second = self.law.moments(2)
        self._variance = sp.simplify(second - self._mean**2)
        self.atoms: tuple[tuple[float, float], ...] = tuple(
            sorted((float(p), float(w)) for p, w in self.law.atoms() if float(w) > 0)
        )
        self._curve = _Curve(self.law.polynomial, float(self._mean), float(second))
        self._check_total()

    def __repr__(self) -> str:
        return f"FreeLaw({self.law})"

    # ------------------------------------------------------------------ shape

    @cached_property
    def _intervals(self) -> list[_Interval]:
        """The intervals between neighbouring candidates for an edge that carry a density."""
        edges = self._curve.edges
        return [_Interval(self._curve, a, b) for a, b in itertools.pairwise(edges) if self._curve.carries(a, b)]

    def support(self) -> list[tuple[float, float]]:
        """The bands of the continuous part as (left, right), from left to right; atoms are in `atoms`."""
        bands: list[tuple[float, float]] = []
        for part in self._intervals:
            left, right = float(part.left), float(part.right)
            if bands and bands[-1][1] == left:
                bands[-1] = (bands[-1][0], right)
            else:
                bands.append((left, right))
        return bands

    def band_masses(self) -> Array:
        """The mass of the continuous part on each band of `support()`."""
        masses = np.zeros(len(self.support()))
        for part in self._intervals:
            masses[[a <= float(part.left) < b for a, b in self.support()].index(True)] += part.mass
        return masses

    def _check_total(self) -> None:
        mass = sum(w for _, w in self.atoms) + sum(part.mass for part in self._intervals)
        mean = sum(p * w for p, w in self.atoms) + sum(part.first for part in self._intervals)
        scale = float(sp.sqrt(self._variance + self._mean**2))
        if abs(mass - 1) > CHECK or abs(mean - float(self._mean)) > CHECK * scale:
            raise ArithmeticError(
                f"the density of {self.law} has mass {mass} and mean {mean} where 1 and {float(self._mean)} are exact: "
                "two branch points are closer than double precision resolves; move a parameter slightly"
            )

    # ------------------------------------------------------------------ functions of x

    def pdf(self, x: ArrayLike) -> Any:
        """Density of the continuous part at x (shape kept): 0 off the bands, +∞ at a hard edge. ValueError for NaN."""
        points = _points(x)
        flat, value = points.ravel(), np.zeros(points.size)
        for part in self._intervals:
            rows = np.flatnonzero((flat > float(part.left)) & (flat < float(part.right)))
            if rows.size:
                value[rows] = -part.resolve(flat[rows]).imag / np.pi
            for end, hard in ((part.left, part.hard[0]), (part.right, part.hard[1])):
                if hard:
                    value[flat == float(end)] = np.inf
        for part, follower in zip(self._intervals[:-1], self._intervals[1:], strict=True):
            rows = (flat == float(part.right)) & np.isfinite(value)
            if part.right == follower.left and rows.any():
                value[rows] = -self._curve.continued(flat[rows][:1])[0].imag / np.pi
        return _shaped(value, points)

    def cdf(self, x: ArrayLike) -> Any:
        """Distribution function, atoms included."""
        points = _points(x)
        flat, value = points.ravel(), np.zeros(points.size)
        for position, weight in self.atoms:
            value += weight * (flat >= position)
        for part in self._intervals:
            inside = (flat > float(part.left)) & (flat < float(part.right))
            value[flat >= float(part.right)] += part.mass
            if inside.any():
                value[inside] += part.mass_up_to(flat[inside])
        return _shaped(np.clip(value, 0.0, 1.0), points)

    def ppf(self, probability: ArrayLike) -> Any:
        """Quantile function on [0, 1]: the smallest x with cdf(x) ≥ probability. Raises ValueError outside [0, 1]."""
        p = np.asarray(probability, dtype=float)
        if not np.all((p >= 0) & (p <= 1)):
            raise ValueError(f"probability must lie in [0, 1], got {p[~((p >= 0) & (p <= 1))].ravel()[0]}")
        flat, value = p.ravel(), np.empty(p.size)
        # Atoms inside a band split it: the distribution function at the atom, from both sides, bounds its share.
        value[:] = np.nan
        for position, weight in self.atoms:
            top = float(self.cdf(position))
            value[(flat <= top + 1e-15) & (flat > top - weight - 1e-15)] = position
        for part in self._intervals:
            low, high = self._level(float(part.left), True), self._level(float(part.right), False)
            rows = np.flatnonzero(np.isnan(value) & (flat >= low) & (flat <= high))
            if rows.size:
                shift = low + sum(
                    (
                        w * (flat[rows] > float(self.cdf(a)) - 0.5 * w)
                        for a, w in self.atoms
                        if float(part.left) < a < float(part.right)
                    ),
                    np.zeros(rows.size),
                )
                value[rows] = part.quantile(np.clip(flat[rows] - shift, 0, part.mass))
        rest = np.isnan(value)  # rounding of cumulated masses: the nearest end of the support
        if rest.any():
            ends = np.array(sorted([q for band in self.support() for q in band] + [a for a, _ in self.atoms]))
            level = self.cdf(ends)
            value[rest] = [ends[int(np.argmin(np.abs(level - q)))] for q in flat[rest]]
        return _shaped(value, p)

    def _level(self, x: float, with_atom: bool) -> float:
        """Distribution function at an end of a band, with or without an atom there."""
        return float(self.cdf(x)) - (0.0 if with_atom else sum(w for a, w in self.atoms if a == x))

    def rvs(self, size: int | tuple[int, ...] = 1, random_state: Any = None) -> Array:
        """Independent draws by inversion; `random_state` is a seed or a numpy Generator."""
        return np.asarray(self.ppf(np.random.default_rng(random_state).random(size)))

    def stieltjes(self, at: ArrayLike) -> Any:
        """G(z) = ∫ dμ/(z − x) at finite complex z; on the real axis the limit from above."""
        return self.resolvent(at)[0]

    def resolvent(self, at: ArrayLike) -> tuple[Any, Any]:
        """G(z) and G'(z), shape of z kept; on the real axis limits from above. Raises ValueError if z is not finite."""
        points = np.asarray(at, dtype=complex)
        if not np.all(np.isfinite(points)):
            raise ValueError(f"z must be finite, got {points[~np.isfinite(points)].ravel()[0]}")
        flat = points.ravel()
        upper = np.where(flat.imag < 0, np.conj(flat), flat)
        value = self._curve.continued(upper)
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = self._curve.slope(upper, value)
        value, slope = (np.where(flat.imag < 0, np.conj(a), a) for a in (value, slope))
        if not points.shape:
            return complex(value[0]), complex(slope[0])
        return value.reshape(points.shape), slope.reshape(points.shape)

    def hilbert(self, x: ArrayLike) -> Any:
        """Hilbert transform: the real part of G(x + i0)."""
        points = _points(x)
        flat, value = points.ravel(), np.empty(points.size)
        left = np.ones(points.size, dtype=bool)
        for part in self._intervals:
            rows = np.flatnonzero((flat > float(part.left)) & (flat < float(part.right)))
            if rows.size:
                value[rows], left[rows] = part.resolve(flat[rows]).real, False
        if left.any():
            value[left] = self._curve.continued(flat[left].astype(complex)).real
        return _shaped(value, points)

    # ------------------------------------------------------------------ moments

    def mean(self) -> float:
        """The mean, from the exact moments of the calculus."""
        return float(self._mean)

    def var(self) -> float:
        """The variance, from the exact moments of the calculus."""
        return float(self._variance)

    def moment(self, order: int) -> float:
        """The raw moment of an integer order ≥ 0, from the exact moments of the calculus."""
        if order != int(order) or order < 0:
            raise ValueError(f"order must be an integer >= 0, got {order}")
        return 1.0 if order == 0 else float(self.law.moments(int(order))[-1])


class _Curve:
    """The polynomial P(z, G) as floats around any origin, and its physical branch by continuation from infinity."""

    def __init__(self, polynomial: Any, mean: float, second: float) -> None:
        self._mean, self._second = mean, second
        self._exact = sp.Poly(polynomial, g, z)
        self.degree = self._exact.degree(g)
        with mp.workdps(DIGITS):
            self._terms = [
                (i, k, mp.mpf(c.p) / c.q if c.is_Rational else mp.mpmathify(c.evalf(DIGITS)))
                for (i, k), c in self._exact.terms()
            ]
        self._about: dict[Any, Array] = {}
        self.origin = self.about(mp.mpf(0))
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

    def about(self, origin: Any) -> Array:
        """Coefficients c[i, k] of G^i ζ^k for z = origin + ζ, scaled to a largest one of 1."""
        if origin not in self._about:
            with mp.workdps(DIGITS):
                top = max(k for _, k, _ in self._terms)
                table = [[mp.mpf(0)] * (top + 1) for _ in range(self.degree + 1)]
                for i, k, c in self._terms:
                    for j in range(k + 1):
                        table[i][j] += c * mp.binomial(k, j) * origin ** (k - j)
                largest = max(abs(c) for row in table for c in row)
                # What cancels to below the working precision is an exact zero: a pole or a hard edge at this origin.
                clean = [
                    [0.0 if abs(c) < largest * mp.mpf(10) ** (15 - DIGITS) else float(c / largest) for c in row]
                    for row in table
                ]
            self._about[origin] = np.array(clean)
        return self._about[origin]

    def _candidates(self) -> list[Any]:
        """Real roots of the square-free discriminant and of the leading coefficient, with many digits."""
        polynomial = sp.Poly(self._exact.as_expr(), g)
        parts = [polynomial.LC()]
        if polynomial.degree() > 1:
            parts.append(sp.discriminant(polynomial))
        roots: list[Any] = []
        with mp.workdps(DIGITS):
            for part in parts:
                for factor, _ in sp.factor_list(part, z)[1] if part.has(z) else []:
                    coefficients = [mp.mpmathify(c.evalf(DIGITS + 20)) for c in sp.Poly(factor, z).all_coeffs()]
                    found = mp.polyroots(coefficients, maxsteps=500, extraprec=4 * DIGITS + 200)
                    size = max([abs(r) for r in found] + [mp.mpf(1)])
                    roots += [mp.re(r) for r in found if abs(mp.im(r)) < size * mp.mpf(10) ** (-DIGITS // 2)]
            roots.sort()
            distinct: list[Any] = []
            for r in roots:
                if not distinct or r - distinct[-1] > mp.mpf(10) ** (-DIGITS // 2) * (1 + abs(r)):
                    distinct.append(mp.mpf(0) if abs(r) < mp.mpf(10) ** (10 - DIGITS) else r)
        return distinct

    def carries(self, a: Any, b: Any) -> bool:
        """Whether the density is positive between two neighbouring candidates, where the branch is analytic."""
        with mp.workdps(DIGITS):
            middle = (a + b) / 2
        value = self.continued(np.array([0j]), middle)[0]
        return bool(value.imag < -1e-9 * abs(value))

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
        """All values of G, by batched companion matrices, shape (points, degree)."""
        p = np.stack(np.broadcast_arrays(*self.powers(zeta, table)), axis=-1)
        companion = np.zeros((*p.shape[:-1], self.degree, self.degree), dtype=complex)
        index = np.arange(self.degree - 1)
        companion[..., index + 1, index] = 1
        with np.errstate(divide="ignore", invalid="ignore"):
            last = -p[..., :-1] / p[..., -1:]
        companion[..., :, -1] = np.where(np.isfinite(last), last, 1e300)
        return np.asarray(np.linalg.eigvals(companion))

    def continued(self, zeta: Complex, origin: Any = None) -> Complex:
        """The branch G ~ 1/z, followed down vertical lines from far above to origin + ζ (Im ζ ≥ 0)."""
        if origin is None and self._radical is not None:
            return self._closed(np.asarray(zeta, dtype=complex), *self._radical)
        table = self.origin if origin is None else self.about(origin)
        place = 0.0 if origin is None else float(origin)
        target = np.asarray(zeta, dtype=complex)
        out, chunk = np.empty(target.size, dtype=complex), 4096
        for start in range(0, target.size, chunk):
            out[start : start + chunk] = self._descend(target[start : start + chunk], table, place)
        return out

    def _descend(self, target: Complex, table: Array, place: float) -> Complex:
        height = 100.0 * (self.scale + np.abs(target + place)) + target.imag
        floor = np.maximum(target.imag, 0.0)
        now = target.real + 1j * height
        inverse = 1 / (now + place)
        # Three terms of the series at infinity: the first alone may be shared with another branch.
        value = self._nearest(self.roots(now, table), inverse * (1 + inverse * (self._mean + inverse * self._second)))[
            0
        ]
        ratio = np.full(target.size, 0.5)
        active = np.flatnonzero(height > floor)
        for _ in range(4000):
            if active.size == 0:
                return self.newton(target, value, table, 2)
            below = floor[active] + (height[active] - floor[active]) * ratio[active]
            # Close to the end the branch is analytic and the last step goes all the way.
            tiny = (height[active] - floor[active]) < 1e-40 * self.scale
            below = np.where(tiny, floor[active], below)
            guess = value[active] + self._velocity(
                target.real[active] + 1j * height[active], value[active], table
            ) * 1j * (below - height[active])
            roots = self.roots(target.real[active] + 1j * below, table)
            found, first, second = self._nearest_two(roots, guess)
            ended = below <= floor[active]
            good = ended | (first <= 0.2 * second)
            # A step that lands near no single root is halved; at the last bits the nearest root is taken.
            good |= ratio[active] > 0.999
            rows = active[good]
            value[rows], height[rows] = found[good], below[good]
            easy = good & (first <= 0.01 * second)
            ratio[active] = np.where(
                good, np.where(easy, np.maximum(ratio[active] ** 2, 1e-4), ratio[active]), np.sqrt(ratio[active])
            )
            done = self._arrived(target[active], value[active], height[active] - floor[active], table) & good
            active = active[~(ended | done)]
        raise ArithmeticError("the branch could not be followed to the real axis in 4000 steps")

    def _velocity(self, zeta: Complex, value: Complex, table: Array) -> Complex:
        raised = table[:, 1:] * np.arange(1, table.shape[1]) if table.shape[1] > 1 else np.zeros((table.shape[0], 1))
        with np.errstate(divide="ignore", invalid="ignore"):
            move = -self._horner(self.powers(zeta, raised), value)[0] / self._horner(self.powers(zeta, table), value)[1]
        return np.where(np.isfinite(move), move, 0)

    def _arrived(self, target: Complex, value: Complex, left: Array, table: Array) -> NDArray[np.bool_]:
        """Whether Newton's method at the target itself stays far closer to this root than to any other."""
        roots = self.roots(target, table)
        _, first, second = self._nearest_two(roots, value)
        return np.asarray(first <= 1e-3 * second)

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

    def __init__(self, curve: _Curve, left: Any, right: Any) -> None:
        self.curve, self.left, self.right = curve, left, right
        with mp.workdps(DIGITS):
            self.width = float(right - left)
            self._low = (float(left), float(left - mp.mpf(float(left))))
            self._high = (float(right), float(right - mp.mpf(float(right))))
        self.tables = (curve.about(left), curve.about(right))
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
        tiny = 1e-18 * self.width
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
        self._ratio = CubicSpline(self.knots, value.real / (1 + height))
        # Power of the distance with which the density vanishes at a soft end (1/2 at an ordinary edge, 1/3 at a cusp).
        share = np.log(np.abs(distance))
        rate = np.diff(np.log(height)) / np.diff(share)
        self._power = (float(rate[0]), float(rate[-1]))

    def at(self, tau: Array, distance: Array) -> Complex:
        """G at the given distances from the nearer end."""
        within = np.clip(tau, self.knots[0], self.knots[-1])
        height = np.exp(self._height(within))
        guess = self._ratio(within) * (1 + height) - 1j * height
        out = np.empty(tau.size, dtype=complex)
        for side, table in ((distance > 0, self.tables[0]), (distance < 0, self.tables[1])):
            if side.any():
                value = self.curve.newton(distance[side], guess[side], table)
                # Newton's method that crossed the axis or ran away found another root: these points are continued.
                lost = ~(value.imag < 0) | (
                    np.abs(value - guess[side]) > 0.3 * np.abs(guess[side].imag) + 1e-6 * np.abs(value)
                )
                out[side] = np.where(lost, guess[side], value)
        beyond = within != tau
        if beyond.any():
            rows = np.flatnonzero(beyond)
            ratio = np.abs(distance[rows] / self._distance(within[rows])[0])
            out[rows] = guess[rows].real + 1j * guess[rows].imag * ratio ** np.where(tau[rows] < 0, *self._power)
        return out

    def resolve(self, x: Array) -> Complex:
        """G(x + i0) for x inside the interval."""
        distance, from_left = self._from(x)
        return self.at(self._tau(distance, from_left), distance)

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
        self.first = float(
            (density * (end + distance.reshape(tau.shape))).sum() + tails @ [self._low[0], self._high[0]]
        )

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


def _exact(value: Any) -> Any:
    from derivations._free_calculus import exact

    return exact("parameters", value)


def _points(x: ArrayLike) -> Array:
    points = np.asarray(x, dtype=float)
    if np.any(np.isnan(points)):
        raise ValueError("x must not be NaN")
    return points


def _shaped(value: Array, points: Array) -> Any:
    return value.reshape(points.shape) if points.shape else float(value[0])
