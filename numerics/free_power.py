"""Real free powers of a product: the S-transform of a law on [0, ∞) to any power t ≥ 1.

The power's argument is z = w K(w)^(t − 1) (law `product-power-subordination`); in polar coordinates w = e^(ρ + iθ) the
real axis comes from one curve θ(ρ) ≥ 0, and density, edges and masses are read on that curve.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize_scalar

from derivations import free_probability as chapter
from numerics.compile import function

Array = NDArray[Any]  # real
Complex = NDArray[np.complex128]

NODES = 16  # Gauss-Legendre nodes a panel
RESOLVED = 1e-14  # tail of a panel's Legendre coefficients, relative to the band's largest value
ROUNDING = 4e-16
NUDGE = 1e-13  # relative, off an atom of the base
MAXIMUM_DEPTH = 40  # halvings of a band
MOST_PANELS = 2000  # that may need another halving at once
NEGLIGIBLE = 1e-15  # mass an e-fold of the argument, below which a band that reaches 0 follows its power law
DEEPEST = 600  # e-folds below its upper end that such a band is followed to
SAMPLES = 64  # points a panel between which an inverse is first guessed

_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(NODES)
_ANALYSIS = (np.polynomial.legendre.legvander(_POINTS, NODES - 1) * _WEIGHTS[:, None]).T * (
    np.arange(NODES)[:, None] + 0.5
)


class PowerCurve:
    """The Cauchy transform of scale·y + shift, y of the free product of `exponent` copies of a law on [0, ∞).

    `base`: a distribution with `resolvent`, `support`, `atoms`; `exponent` > 1; `scale` ≠ 0.
    """

    def __init__(self, base: Any, exponent: float, scale: float = 1.0, shift: float = 0.0) -> None:
        self._base, self.exponent, self.scale, self.shift = base, exponent, scale, shift

    # ------------------------------------------------------------------ the map from w to z

    def image(self, rho: Any, theta: Any) -> tuple[Complex, Complex, Complex, Complex]:
        """At w = exp(ρ + iθ), 0 ≤ θ ≤ π: log z, its derivative in log w, the moment transform m, and its derivative."""
        law, logarithm, derivative = _laws()
        w = np.exp(rho) * (np.cos(theta) + 1j * np.sin(theta))
        w = np.where(np.asarray(theta) == np.pi, w.real + 0j, w)
        for position, _ in self._base.atoms:  # there G has a pole, but K and m at the power's own points are smooth
            w = np.where(w == position, w * (1 + NUDGE), w)
        # Far below the band the base's derivative may overflow; there the bracket alone leads to the root.
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            resolvent, slope = self._base.resolvent(w)
            factor = law(w, resolvent)
            # By rounding a real factor may come to lie above the axis, where its logarithm has another branch.
            factor = factor.real + 1j * np.minimum(factor.imag, -0.0)
            change = derivative(w, resolvent, slope, self.exponent)
            moving = w * (resolvent + w * slope)
            return logarithm(w, factor, self.exponent), change, factor * resolvent, moving

    def height(self, rho: Array) -> Array:
        """θ(ρ) in (0, π): the one root of Im log z, negative below it and positive above (bracketed Newton)."""
        low, high = np.zeros(rho.size), np.full(rho.size, np.pi)
        theta = np.full(rho.size, 0.5 * np.pi)
        active = np.arange(rho.size)
        for _ in range(200):
            at = theta[active]
            value, slope = self.image(rho[active], at)[:2]
            above = value.imag > 0
            high[active], low[active] = np.where(above, at, high[active]), np.where(above, low[active], at)
            with np.errstate(divide="ignore", invalid="ignore"):
                step = at - value.imag / slope.real
            inside = (step > low[active]) & (step < high[active])
            step = np.where(inside, step, 0.5 * (low[active] + high[active]))
            theta[active] = step
            active = active[(np.abs(step - at) > 2e-16 * at) & (high[active] - low[active] > 4e-16 * at)]
            if active.size == 0:
                return theta
        return theta  # the last steps are rounding: the bracket holds the root

    # ------------------------------------------------------------------ bands

    def intervals(self) -> list[PowerInterval]:
        """The bands: where θ(ρ) > 0, between the intervals on which the map is real and increasing."""
        ends = [end for quiet in self.quiet for end in quiet]
        # The map is real and increasing near w = ∞; near 0 it may be, else the support reaches 0.
        edges = ends[1:-1] if ends[0] == -np.inf else [-np.inf, *ends[:-1]]
        parts = [PowerInterval(self, *pair) for pair in zip(edges[::2], edges[1::2], strict=True)]
        return parts if self.scale > 0 else parts[::-1]

    @cached_property
    def quiet(self) -> list[tuple[float, float]]:
        """Intervals of ρ on which θ = 0: the images of the gaps of the support, from left to right."""
        found = [self._quiet_part(low, high) for low, high in self._pieces()]
        return [interval for interval in found if interval is not None]

    def _pieces(self) -> list[tuple[float, float]]:
        """Intervals of w > 0 off the base's bands on which the factor is finite and positive."""
        bands = [0.0, *(end for band in self._base.support() for end in band), np.inf]
        pieces = []
        for left, right in zip(bands[::2], bands[1::2], strict=True):
            if left == right:
                continue
            atoms = [p for p, _ in self._base.atoms if left < p < right]
            poles = []
            for a, b in itertools.pairwise([left, *atoms, right]):
                start, stop = _just_inside(a, b)
                if self._resolvent(start) > 0 > self._resolvent(stop):
                    poles.append(brentq(self._resolvent, start, stop, xtol=1e-300, rtol=1e-15))
            for a, b in itertools.pairwise([left, *poles, right]):
                start, stop = _just_inside(a, b)
                if self._factor(start) <= 0:
                    continue
                if self._factor(stop) < 0:
                    b = brentq(self._factor, start, stop, xtol=1e-300, rtol=1e-15)
                pieces.append((a, b))
        return pieces

    def _quiet_part(self, low: float, high: float) -> tuple[float, float] | None:
        """Where d log z/d log w > 0 in a piece: there −d log K/d log w is convex in ρ, so it is one interval."""

        def excess(rho: float) -> float:
            return float(self.image(np.array([rho]), np.array([0.0]))[1][0].real)

        start, stop = (float(np.log(end)) for end in _just_inside(low, high))
        if low == 0 and high == np.inf:
            return (-np.inf, np.inf)
        left, right = excess(start) > 0, excess(stop) > 0
        if low == 0 and left:
            return (-np.inf, stop if right else float(brentq(excess, start, stop, xtol=1e-15, rtol=1e-15)))
        if high == np.inf and right:
            return (start if left else float(brentq(excess, start, stop, xtol=1e-15, rtol=1e-15)), np.inf)
        best = minimize_scalar(
            lambda rho: -excess(rho), bounds=(start, stop), method="bounded", options={"xatol": 1e-10}
        )
        if not excess(best.x) > 0:
            return None
        return (
            start if left else float(brentq(excess, start, best.x, xtol=1e-15, rtol=1e-15)),
            stop if right else float(brentq(excess, best.x, stop, xtol=1e-15, rtol=1e-15)),
        )

    def _resolvent(self, w: float) -> float:
        return float(self._base.resolvent(np.array([complex(w)]))[0][0].real)

    def _factor(self, w: float) -> float:
        return float(_laws()[0](complex(w), self._base.resolvent(np.array([complex(w)]))[0][0]).real)

    # ------------------------------------------------------------------ the transform anywhere

    def continued(self, at: Complex) -> Complex:
        """G at points with Im ≥ 0; on the real axis the limit from above."""
        points, turned = self._inner_points(at)
        rho, theta = self._subordinate(points)
        with np.errstate(divide="ignore", invalid="ignore"):
            value = (1 + self.image(rho, theta)[2]) / points / self.scale
        return np.asarray(np.where(turned, np.conj(value), value))

    def slope(self, at: Complex, value: Complex) -> Complex:
        """dG/dz at the same points: m' = (d log m/d log w)/(d log z/d log w)·m/z, and G' = m'/z − G/z."""
        points, turned = self._inner_points(at)
        rho, theta = self._subordinate(points)
        _, change, _, moving = self.image(rho, theta)
        inner = moving / change  # dm/d log z
        there = np.where(turned, np.conj(value), value) * self.scale
        result = (inner / points - there) / points / self.scale**2
        return np.asarray(np.where(turned, np.conj(result), result))

    def _inner_points(self, at: Complex) -> tuple[Complex, NDArray[np.bool_]]:
        points = (np.asarray(at, dtype=complex) - self.shift) / self.scale
        turned = points.imag < 0
        return np.where(turned, np.conj(points), points.real + 1j * np.abs(points.imag)), turned

    def _subordinate(self, z: Complex) -> tuple[Array, Array]:
        """ρ and θ of w(z) for Im z ≥ 0."""
        rho, theta = np.zeros(z.size), np.zeros(z.size)
        negative, positive = (z.imag == 0) & (z.real < 0), (z.imag == 0) & (z.real > 0)
        target = np.log(np.abs(z))
        if negative.any():
            rho[negative], theta[negative] = self._on_negative_axis(target[negative]), np.pi
        if positive.any():
            rho[positive], theta[positive] = self._on_positive_axis(target[positive])
        other = ~negative & ~positive & (z != 0)
        if other.any():
            rho[other], theta[other] = self._turned(target[other], np.angle(z[other]))
        return rho, theta

    def _on_negative_axis(self, target: Array) -> Array:
        """ρ with log |z| = target at w = −e^ρ, where the map is increasing."""
        return self._increasing(target, np.full(target.size, -np.inf), np.full(target.size, np.inf), np.pi)

    def _on_positive_axis(self, target: Array) -> tuple[Array, Array]:
        rho, theta = np.zeros(target.size), np.zeros(target.size)
        left = np.ones(target.size, dtype=bool)
        for part in self._parts:
            rows = np.flatnonzero((target > part.begin) & (target < part.end))
            rho[rows], theta[rows] = part.point(target[rows])
            left[rows] = False
        for low, high in self.quiet:
            bounds = [
                self.image(np.array([end]), np.zeros(1))[0][0].real if np.isfinite(end) else end for end in (low, high)
            ]
            rows = np.flatnonzero(left & (target >= bounds[0]) & (target <= bounds[1]))
            if rows.size:
                rho[rows] = self._increasing(target[rows], np.full(rows.size, low), np.full(rows.size, high), 0.0)
                left[rows] = False
        for row in np.flatnonzero(left):  # between a band's end and the gap's, by rounding: the nearer end
            ends = [(abs(target[row] - level), end) for part in self._parts for level, end in part.levels]
            rho[row] = min(ends)[1]
        return rho, theta

    @cached_property
    def _parts(self) -> list[PowerInterval]:
        return self.intervals()

    def _increasing(self, target: Array, low: Array, high: Array, theta: float) -> Array:
        """ρ in (low, high) with log |z| = target on a ray on which the map is real and increasing."""

        def gap(rho: Array, rows: Any) -> tuple[Array, Array]:
            value, slope = self.image(rho, np.full(rho.size, theta))[:2]
            return value.real - target[rows], slope.real

        low, high, every = low.copy(), high.copy(), np.arange(target.size)
        for ends, other, sign in ((low, high, -1.0), (high, low, 1.0)):
            reach, rows = 1.0, every[~np.isfinite(ends)]
            while rows.size:  # d log z/d log w ≥ 1 far out, so the bracket grows to hold the root
                start = np.where(np.isfinite(other[rows]), other[rows], target[rows])
                ends[rows] = start + sign * reach
                rows = rows[sign * gap(ends[rows], rows)[0] < 0]
                reach *= 2
        rho, active = 0.5 * (low + high), every
        for _ in range(200):
            at = rho[active]
            difference, slope = gap(at, active)
            above = difference > 0
            high[active], low[active] = np.where(above, at, high[active]), np.where(above, low[active], at)
            with np.errstate(divide="ignore", invalid="ignore"):
                step = at - difference / slope
            step = np.where((step > low[active]) & (step < high[active]), step, 0.5 * (low[active] + high[active]))
            rho[active] = step
            active = active[(np.abs(step - at) > 4e-16 * (1 + np.abs(at))) & (high[active] > low[active])]
            if active.size == 0:
                break
        return rho

    def _turned(self, target: Array, angle: Array) -> tuple[Array, Array]:
        """log w for log z = target + i·angle, continued from the negative axis by turning the angle down."""
        value = self._on_negative_axis(target) + 1j * np.pi
        now, step = np.full(target.size, np.pi), np.full(target.size, 0.5)
        active = np.flatnonzero(now > angle)
        for _ in range(4000):
            if active.size == 0:
                return value.real, value.imag
            following = np.maximum(now[active] - step[active], angle[active])
            at = value[active]
            slope = self.image(at.real, at.imag)[1]
            trial = at + 1j * (following - now[active]) / slope
            goal, moves = target[active] + 1j * following, []
            good = (trial.imag > 0) & (trial.imag < np.pi)
            for _ in range(5):
                safe = np.where(good, trial, at)
                found, slope = self.image(safe.real, safe.imag)[:2]
                move = (found - goal) / slope
                moves.append(np.abs(move))
                trial = safe - move
                good &= np.isfinite(trial) & (trial.imag > 0) & (trial.imag < np.pi)
            # The first correction is small beside the distance to the axis and the last one is rounding.
            good &= (moves[0] < 0.2 * at.imag) & (moves[-1] < 1e-13 * (1 + np.abs(at)))
            rows = active[good]
            value[rows], now[rows] = trial[good], following[good]
            step[active] = np.where(good, 1.5 * step[active], 0.5 * step[active])
            active = active[now[active] > angle[active]]
        raise ArithmeticError("the subordinate argument could not be followed in 4000 steps")


class PowerInterval:
    """One band of a free power: Legendre panels along its curve, in φ with ρ = left + width·sin²(φ/2).

    At both ends density and location are smooth in φ. `left`, `right`: ends of the band; `hard`: whether the density
    diverges there.
    """

    def __init__(self, curve: PowerCurve, left: float, right: float) -> None:
        self._curve = curve
        reaches_zero = left == -np.inf
        self._low = self._cut(right) if reaches_zero else left
        self._high = right
        self._resolve()
        self._integrate(reaches_zero)
        ends = [0.0 if reaches_zero else float(np.exp(self.begin)), float(np.exp(self.end))]
        placed = [curve.scale * end + curve.shift for end in ends]
        hard = (reaches_zero and self._power < 1, False)
        forward = curve.scale > 0
        self.left, self.right = placed if forward else placed[::-1]
        self.hard = hard if forward else hard[::-1]

    @property
    def levels(self) -> list[tuple[float, float]]:
        """log x and ρ at both ends."""
        return [(self.begin, self._low), (self.end, self._high)]

    def vanishes(self, side: int) -> bool:
        """Whether the density tends to 0 at an end: at every end that is not hard."""
        return not self.hard[side]

    def _cut(self, right: float) -> float:
        """ρ below which a band that reaches 0 holds no mass in double precision."""
        rho = right - np.arange(1.0, DEEPEST)
        mass = -self._curve.image(rho, self._curve.height(rho))[2].imag / np.pi
        small = np.flatnonzero(mass < NEGLIGIBLE)
        return float(rho[small[0]] if small.size else rho[-1])

    # ------------------------------------------------------------------ panels

    def _nodes(self, start: Array, stop: Array) -> dict[str, Array]:
        half = 0.5 * (stop - start)
        phi = (start + half)[:, None] + half[:, None] * _POINTS
        width = self._high - self._low
        # From the nearer end, so that ρ keeps its digits there.
        rho = np.where(
            phi < 0.5 * np.pi, self._low + width * np.sin(0.5 * phi) ** 2, self._high - width * np.cos(0.5 * phi) ** 2
        ).ravel()
        theta = self._curve.height(rho)
        value, slope, transform, moving = self._curve.image(rho, theta)
        # Rounding of Im log z moves θ by itself over Re d log z/d log w, which vanishes at the ends; ρ is rounded too.
        shift = ROUNDING * (1 + np.pi) * self._curve.exponent / np.maximum(slope.real, 1e-300)
        noise = np.abs(moving) * (np.minimum(shift, theta) + ROUNDING * (1 + np.abs(rho))) + ROUNDING * np.abs(
            transform
        )
        shape = phi.shape
        return {
            "location": value.real.reshape(shape),
            "real": transform.real.reshape(shape),
            "imaginary": transform.imag.reshape(shape),
            "theta": theta.reshape(shape),
            "rho": rho.reshape(shape),
            "noise": noise.reshape(shape),
        }

    def _resolve(self) -> None:
        knots = np.linspace(0, np.pi, 5)
        start, stop = knots[:-1], knots[1:]
        done: list[tuple[Array, Array, dict[str, Array]]] = []
        largest, spread = 0.0, 0.0
        for _ in range(MAXIMUM_DEPTH):
            nodes = self._nodes(start, stop)
            largest = max(largest, float(np.abs(nodes["imaginary"]).max()))
            spread = max(spread, float(np.ptp(nodes["location"])))
            good = np.ones(start.size, dtype=bool)
            for name in ("real", "imaginary"):
                tail = np.abs(nodes[name] @ _ANALYSIS[-2:].T).max(axis=1)
                good &= tail <= RESOLVED * largest + nodes["noise"].max(axis=1)
            tail = np.abs(nodes["location"] @ _ANALYSIS[-2:].T).max(axis=1)
            good &= tail <= RESOLVED * spread + 4 * ROUNDING * (1 + np.abs(nodes["location"]).max(axis=1))
            done.append((start[good], stop[good], {key: value[good] for key, value in nodes.items()}))
            left, right = start[~good], stop[~good]
            if left.size == 0:
                break
            if left.size > MOST_PANELS:
                raise ArithmeticError(self._unresolved())
            middle = 0.5 * (left + right)
            start, stop = np.column_stack([left, middle]).ravel(), np.column_stack([middle, right]).ravel()
        else:
            raise ArithmeticError(self._unresolved())
        order = np.argsort(np.concatenate([d[0] for d in done]))
        self._start, self._stop = (np.concatenate([d[k] for d in done])[order] for k in (0, 1))
        nodes = {key: np.concatenate([d[2][key] for d in done])[order] for key in done[0][2]}
        self._series = {key: nodes[key] @ _ANALYSIS.T for key in ("location", "real", "imaginary", "theta", "rho")}

    def _unresolved(self) -> str:
        return (
            f"the density of a free power of exponent {self._curve.exponent} could not be resolved: the law's own "
            "density is not smooth, or two branch points are closer than double precision resolves; move the exponent "
            "slightly"
        )

    def _integrate(self, reaches_zero: bool) -> None:
        """Series of the mass up to each point, and the first moment."""
        location, legendre = self._series["location"], np.polynomial.legendre
        ends = location.sum(axis=1)
        begins = (location * (-1.0) ** np.arange(NODES)).sum(axis=1)
        self.begin, self.end, self._ends = float(begins[0]), float(ends[-1]), ends
        points, weights = legendre.leggauss(2 * NODES)
        basis = legendre.legvander(points, NODES - 1)
        speed = legendre.legder(location, axis=1) @ legendre.legvander(points, NODES - 2).T
        mass = -(self._series["imaginary"] @ basis.T) / np.pi * speed
        analysis = (legendre.legvander(points, 2 * NODES - 1) * weights[:, None]).T
        self._mass = legendre.legint((mass @ analysis.T) * (np.arange(2 * NODES) + 0.5), axis=1, lbnd=-1)
        totals = self._mass.sum(axis=1)
        tail, self._power = self._tail() if reaches_zero else (0.0, np.inf)
        self._before = tail + np.concatenate([[0.0], np.cumsum(totals)])
        self.mass = float(self._before[-1])
        x = self._curve.scale * np.exp(location @ basis.T) + self._curve.shift
        self.first = float((mass * x * weights).sum() + tail * self._curve.shift)

    def _tail(self) -> tuple[float, float]:
        """Mass below the cut and the power of x with which the distribution function rises there."""
        rho = self._low + np.array([0.0, 3.0])
        value, _, transform, _ = self._curve.image(rho, self._curve.height(rho))
        density = -transform.imag / np.pi
        power = float(np.log(density[1] / density[0]) / (value.real[1] - value.real[0]))
        return float(density[0] / power), power

    # ------------------------------------------------------------------ lookup

    def _locate(self, target: Array) -> tuple[NDArray[np.int64], Array]:
        """Panel, and point of [−1, 1] in it, with log x = target; the location is increasing along the curve."""
        panel = np.clip(np.searchsorted(self._ends, target), 0, self._ends.size - 1)
        return panel, self._inverse(self._series["location"], panel, target)

    @staticmethod
    def _inverse(table: Array, panel: NDArray[np.int64], target: Array) -> Array:
        """Points of [−1, 1] at which the panels' increasing series take the wanted values (bracketed Newton)."""
        out, legendre, grid = np.empty(target.size), np.polynomial.legendre, np.linspace(-1, 1, SAMPLES)
        for k, rows in _groups(panel):
            series, derivative, wanted = table[k], legendre.legder(table[k]), target[rows]
            point = np.interp(wanted, np.maximum.accumulate(legendre.legval(grid, series)), grid)
            low, high, active = np.full(rows.size, -1.0), np.ones(rows.size), np.arange(rows.size)
            for _ in range(80):
                at = point[active]
                gap = legendre.legval(at, series) - wanted[active]
                high[active], low[active] = np.where(gap > 0, at, high[active]), np.where(gap > 0, low[active], at)
                with np.errstate(divide="ignore", invalid="ignore"):
                    step = at - gap / legendre.legval(at, derivative)
                step = np.where((step > low[active]) & (step < high[active]), step, 0.5 * (low[active] + high[active]))
                point[active] = np.where(gap == 0, at, step)
                active = active[(np.abs(step - at) > 1e-9) & (gap != 0)]
                if active.size == 0:
                    break
            out[rows] = point
        return out

    def _inner(self, x: Array) -> Array:
        """log y of x = scale·y + shift; x on the wrong side by rounding is taken at the end of the band."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.maximum((x - self._curve.shift) / self._curve.scale, 0.0)))

    def point(self, target: Array) -> tuple[Array, Array]:
        """ρ and θ of the curve's point at log y = target."""
        panel, at = self._locate(target)
        return tuple(_evaluated(self._series[key], panel, at) for key in ("rho", "theta"))  # type: ignore[return-value]

    def resolve(self, x: Array) -> Complex:
        """G(x + i0) for x inside the band."""
        target = self._inner(x)
        below = target < self.begin
        panel, at = self._locate(np.maximum(target, self.begin))
        real, imaginary = (_evaluated(self._series[key], panel, at) for key in ("real", "imaginary"))
        transform = real + 1j * np.minimum(imaginary, 0)
        if below.any():  # nearer to 0 than the cut: the power law
            transform[below] = transform.real[below] + 1j * transform.imag[below] * np.exp(
                self._power * (target[below] - self.begin)
            )
        value = (1 + transform) / ((x - self._curve.shift) / self._curve.scale) / self._curve.scale
        return np.asarray(value if self._curve.scale > 0 else np.conj(value))

    def density(self, x: Array) -> Array:
        """Density inside the band."""
        return np.asarray(-self.resolve(x).imag / np.pi)

    def _mass_below(self, target: Array) -> Array:
        panel, at = self._locate(np.maximum(target, self.begin))
        value = self._before[panel] + _evaluated(self._mass, panel, at)
        low = target < self.begin
        if low.any():
            value[low] = self._before[0] * np.exp(self._power * (target[low] - self.begin))
        return value

    def mass_up_to(self, x: Array) -> Array:
        """The mass between the left end and x."""
        value = self._mass_below(self._inner(x))
        return value if self._curve.scale > 0 else self.mass - value

    def quantile(self, mass: Array) -> Array:
        """x with the given mass to its left."""
        inner = mass if self._curve.scale > 0 else self.mass - mass
        panel = np.clip(np.searchsorted(self._before, inner, side="right") - 1, 0, self._ends.size - 1)
        at = self._inverse(self._mass, panel, inner - self._before[panel])
        x = self._curve.scale * np.exp(_evaluated(self._series["location"], panel, at)) + self._curve.shift
        ends = np.array([self.left, self.right])
        inside = np.clip(x, ends[0], ends[1])
        return np.asarray(np.where(mass <= 0, ends[0], np.where(mass >= self.mass, ends[1], inside)))


def _just_inside(low: float, high: float) -> tuple[float, float]:
    """Points just inside an interval of (0, ∞), and far out where it is unbounded."""
    scale = low if low > 0 else high if np.isfinite(high) else 1.0
    width = high - low if np.isfinite(high) else scale
    start = low + 1e-13 * width if low > 0 else 1e-13 * scale
    return start, (high - 1e-13 * width if np.isfinite(high) else 1e6 * scale)


def _groups(panel: NDArray[np.int64]) -> list[tuple[int, NDArray[np.int64]]]:
    """The rows of each panel that occurs."""
    order = np.argsort(panel, kind="stable")
    numbers, first = np.unique(panel[order], return_index=True)
    return list(zip(numbers.tolist(), np.split(order, first[1:]), strict=True)) if panel.size else []


def _evaluated(table: Array, panel: NDArray[np.int64], point: Array) -> Array:
    """Legendre series, one row of `table` a panel, at points of the given panels."""
    out = np.empty(point.size)
    for k, rows in _groups(panel):
        out[rows] = np.polynomial.legendre.legval(point[rows], table[k])
    return out


@lru_cache(maxsize=1)
def _laws() -> tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]:
    """K(w, G(w)), log z(w, K, t) and d log z/d log w(w, G, G', t), from the chapter's laws."""
    w, resolvent, exponent = chapter.w, chapter.resolvent, chapter.exponent
    factor, argument = chapter.power_factor.right, chapter.power_subordination.right
    derivative = w * (argument.diff(w) + chapter.slope * argument.diff(resolvent))
    return (
        function(factor, (w, resolvent)),
        function(argument.subs(factor, chapter.factor), (w, chapter.factor, exponent)),
        function(derivative, (w, resolvent, chapter.slope, exponent)),
    )
