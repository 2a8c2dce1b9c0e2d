"""A band of a law by Legendre panels: its Cauchy transform as a smooth function of an angle, made once by any solver.

At soft edges and at edges where the density diverges like an inverse root, everything is smooth in φ with
y = low + width·sin²(φ/2); y is the location, or its logarithm where a band reaches 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]  # real
Complex = NDArray[np.complex128]

NODES = 16  # Gauss-Legendre nodes a panel
RESOLVED = 1e-14  # tail of a panel's Legendre coefficients, relative to the panel's largest value
FLOOR = 1e-11  # relative tail that may be rounding
NOISY = 8  # of a panel's largest rounding error: what it may leave in a Legendre coefficient
ROUNDING = 4e-16
MAXIMUM_DEPTH = 44  # halvings of a band
MOST_PANELS = 2000  # that may need another halving at once
NEGLIGIBLE = 1e-15  # mass an e-fold of the location, below which a band that reaches 0 follows its power law
DEEPEST = 600  # e-folds below its upper end that such a band is followed to
SAMPLES = 64  # points a panel between which an inverse is first guessed
DIVERGING = 0.99  # power of the distribution function at 0 below which the density diverges there
THIN = 1e-9  # imaginary part, relative to the band's largest, that tells of a gap inside

_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(NODES)
_ANALYSIS = (np.polynomial.legendre.legvander(_POINTS, NODES - 1) * _WEIGHTS[:, None]).T * (
    np.arange(NODES)[:, None] + 0.5
)


class GapInsideError(Exception):
    """Raised while a band is resolved: there is a gap around the point `at`."""

    def __init__(self, at: float) -> None:
        super().__init__(f"there is a gap around {at}")
        self.at = at


class Solution(NamedTuple):
    """G, dG/dx, the rounding error that the equations leave in G, and a state of shape (parts, points)."""

    value: Complex
    slope: Complex
    noise: Array
    state: Complex


class Mobius(NamedTuple):
    """The map y ↦ (a y + b)/(c y + d) of real numbers, and what it does to a Cauchy transform."""

    a: float = 1.0
    b: float = 0.0
    c: float = 0.0
    d: float = 1.0

    @property
    def determinant(self) -> float:
        """Positive if the map is increasing."""
        return self.a * self.d - self.b * self.c

    def after(self, inner: Mobius) -> Mobius:
        """The composition that maps by `inner` first."""
        (a, b, c, d), (e, f, g, h) = self, inner
        return Mobius(a * e + b * g, a * f + b * h, c * e + d * g, c * f + d * h)

    def __call__(self, y: Any) -> Any:
        """The image of y."""
        return (self.a * y + self.b) / (self.c * y + self.d)

    def back(self, x: Any) -> Any:
        """The point that is mapped to x."""
        return (self.d * x - self.b) / (self.a - self.c * x)

    def rate(self, y: Any) -> Any:
        """The change of y by that of its image."""
        return (self.c * y + self.d) ** 2 / self.determinant

    def resolvent(self, y: Any, value: Any, moment: Any) -> Any:
        """G of the image's law at the image of y, from G and m = y G − 1 of the law at y."""
        return (self.c * y + self.d) * (self.c * moment + self.d * value) / self.determinant

    def slope(self, y: Any, value: Any, moment: Any, slopes: tuple[Any, Any]) -> Any:
        """Its derivative, from those of G and m too."""
        inner = self.c * (self.c * moment + self.d * value)
        return (
            (inner + (self.c * y + self.d) * (self.c * slopes[1] + self.d * slopes[0]))
            / self.determinant
            * self.rate(y)
        )

    def at_infinity(self, mean: float, second: float) -> tuple[float, float]:
        """G and G' at the image of ∞, from the first two moments."""
        scale = self.c / self.determinant
        square = self.c**2 * second + 2 * self.c * self.d * mean + self.d**2
        return scale * (self.c * mean + self.d), -(scale**2) * square


IDENTITY = Mobius()


class Band:
    """One band of a law, and its image under a Möbius map.

    `solver(x, guess)` gives a `Solution` at x + i0, given a guess of its state, if there is one. `ends` before the map;
    `hard`: whether the density diverges there; `poles`: atoms (position, mass) inside; `logarithmic`: whether one end
    is 0 and the band is taken in log |x|, `at_zero` the mass of an atom there; all these from an `origin`, which
    `image` adds.

    Raises GapInsideError if there seems to be a gap inside, unless the band is known to be `whole`; ArithmeticError if
    the density could not be resolved.
    """

    def __init__(
        self,
        solver: Callable[[Array, Complex | None], Solution],
        ends: tuple[float, float],
        hard: tuple[bool, bool],
        *,
        logarithmic: bool = False,
        poles: Sequence[tuple[float, float]] = (),
        at_zero: float = 0.0,
        whole: bool = False,
        image: Mobius = IDENTITY,
        origin: float = 0.0,
    ) -> None:
        self._solver, self._map, self._poles = solver, image, poles
        self._ends, self.origin, self._at_zero = ends, origin, at_zero
        low, high = ends
        self.logarithmic, self._whole = logarithmic, whole
        self._sign = -1.0 if logarithmic and high == 0 else 1.0
        reach = max(abs(low), abs(high))
        if logarithmic:
            self._high = float(np.log(reach))
            self._low = self._cut()
        else:
            self._low, self._high = low, high
        self._width = self._high - self._low
        # Where the transform diverges its image under 1/(1 + i·unit·T) is smooth.
        self._sphere = (hard[0] if self._sign < 0 else hard[1]) if logarithmic else any(hard)
        self._unit = 1.0 if logarithmic else reach
        self._resolve()
        self._integrate()
        if logarithmic:
            at_zero = self._power < DIVERGING
            hard = (at_zero, hard[1]) if low == 0 else (hard[0], at_zero)
        self._forward = image.determinant > 0
        placed = (float(image(low)), float(image(high)))
        self.left, self.right = placed if self._forward else placed[::-1]
        self.hard = hard if self._forward else hard[::-1]

    def level(self, side: int) -> float:
        """The density's limit at an end."""
        if self.hard[side]:
            return np.inf
        at_zero = self.logarithmic and (side == 0) == ((self._sign > 0) == self._forward)
        if not at_zero or self._power >= 1 / DIVERGING:
            return 0.0
        inner = self._tail * self._power * np.exp(-self._low)
        return float(inner * abs(self._map.rate(0.0)))

    # ------------------------------------------------------------------ values at a location y

    def _place(self, y: Array) -> Array:
        return self._sign * np.exp(y) if self.logarithmic else y

    def _values(self, y: Array, guess: Complex | None) -> Solution:
        """What is smooth, and its derivative in y: G without its poles, or x G in the logarithm."""
        x = self._place(y)
        found = self._solver(x, guess)
        if self.logarithmic:
            slope = x * (found.value + x * found.slope)
            return Solution(x * found.value, slope, np.abs(x) * found.noise, found.state)
        value = found.value
        for position, mass in self._poles:
            value = value - mass / (x - position)
        return found._replace(value=value)

    def _mass_rate(self, transform: Complex) -> Array:
        """Mass a unit of y."""
        return np.asarray(-self._sign * transform.imag / np.pi)

    def _cut(self) -> float:
        """y below which a band that reaches 0 holds no mass in double precision; and its tail, which is a power law."""
        y = self._high - np.arange(1.0, DEEPEST)
        rate = np.empty(0)
        for start in range(0, y.size, 48):
            with np.errstate(over="ignore", invalid="ignore"):  # slopes, which are not used here
                found = self._values(y[start : start + 48], None)
            rate = np.append(rate, self._mass_rate(found.value))
            small = np.flatnonzero(rate < NEGLIGIBLE)
            if small.size:
                break
        last = int(small[0]) if small.size else rate.size - 1
        before = max(last - 3, 0)
        falls = last > before and rate[last] > 0
        self._power = float(np.log(rate[before] / rate[last]) / (y[before] - y[last])) if falls else 1.0
        self._tail = float(rate[last] / self._power)
        return float(y[last])

    # ------------------------------------------------------------------ panels

    def _nodes(self, start: Array, stop: Array, guess: Complex | None) -> dict[str, Any]:
        half = 0.5 * (stop - start)
        phi = (start + half)[:, None] + half[:, None] * _POINTS
        # From the nearer end, so that y keeps its digits there.
        near_low, near_high = np.sin(0.5 * phi) ** 2, np.cos(0.5 * phi) ** 2
        y = np.where(phi < 0.5 * np.pi, self._low + self._width * near_low, self._high - self._width * near_high)
        transform, slope, noise, state = self._values(y.ravel(), guess)
        image, stretch = transform, np.ones_like(transform)
        if self._sphere:
            image = 1 / (1 + 1j * self._unit * transform)
            stretch = image**2 * self._unit
        noise = np.abs(stretch) * (noise + ROUNDING * np.abs(slope * y.ravel())) + ROUNDING * np.abs(image)
        return {
            "image": image.reshape(phi.shape),
            "noise": noise.reshape(phi.shape),
            "state": state.reshape(state.shape[0], *phi.shape),
            "rate": self._mass_rate(transform).reshape(phi.shape) * 0.5 * self._width * np.sin(phi),
            "thin": (np.abs(transform.imag) / np.abs(transform)).reshape(phi.shape),
            "phi": phi,
            "y": y,
        }

    def _knots(self) -> Array:
        """First ends of panels: each pole in the middle of one, where no node comes near."""
        knots = np.linspace(0, np.pi, 5)
        for position, _ in self._poles:
            phi = float(self._phi(np.array([position]))[0])
            reach = 0.25 * min(phi, np.pi - phi)
            knots = np.append(knots[np.abs(knots - phi) > reach], [phi - reach, phi + reach])
        return np.sort(knots)

    def _halves(self, start: Array, stop: Array) -> tuple[Array, Array, NDArray[np.int64]]:
        """Panels cut in two, those with a pole in three so that it stays in the middle; and which they came from."""
        middle, quarter = 0.5 * (start + stop), 0.25 * (stop - start)
        poles = self._phi(np.array([position for position, _ in self._poles]))
        holds = ((poles[:, None] > start) & (poles[:, None] < stop)).any(axis=0)
        pieces = [(start, middle - quarter * holds), (middle + quarter * holds, stop)]
        rows = np.arange(start.size)
        starts = np.concatenate([pieces[0][0], pieces[1][0], (middle - quarter)[holds]])
        stops = np.concatenate([pieces[0][1], pieces[1][1], (middle + quarter)[holds]])
        return starts, stops, np.concatenate([rows, rows, rows[holds]])

    def _resolve(self) -> None:
        knots = self._knots()
        start, stop, guess = knots[:-1], knots[1:], None
        done: list[tuple[Array, Array, dict[str, Any]]] = []
        before = np.full(start.size, np.inf)
        for _ in range(MAXIMUM_DEPTH):
            nodes = self._nodes(start, stop, guess)
            if not self._whole:
                self._look_for_gap(nodes)
            series = np.abs(nodes["image"] @ _ANALYSIS.T)
            tail, earlier = series[:, -2:].max(axis=1), series[:, -6:-2].max(axis=1)
            good = tail <= RESOLVED * np.abs(nodes["image"].imag).max(axis=1) + NOISY * nodes["noise"].max(axis=1)
            # Half a panel leaves 2^-16 of a tail, and a series falls, unless that is rounding.
            level = (tail > 0.1 * before) & (tail > 0.1 * earlier)
            good |= level & (tail <= FLOOR * np.abs(nodes["image"]).max(axis=1))
            # Next to a branch point closer than double precision resolves there is no mass.
            good |= np.abs(nodes["rate"]).max(axis=1) * (stop - start) <= 1e-17
            done.append((start[good], stop[good], _rows(nodes, good)))
            if good.all():
                break
            if np.count_nonzero(~good) > MOST_PANELS:
                raise ArithmeticError(_UNRESOLVED)
            left, right = start[~good], stop[~good]
            start, stop, parent = self._halves(left, right)
            before = tail[~good][parent]
            # First guesses from the values of the panel that was cut.
            half = 0.5 * (right - left)[parent]
            at = (0.5 * (start + stop) - 0.5 * (left + right)[parent]) / half
            points = at[:, None] + 0.5 * ((stop - start) / half)[:, None] * _POINTS
            states = nodes["state"][:, ~good][:, parent] @ _ANALYSIS.T
            basis = np.polynomial.legendre.legvander(points, NODES - 1)
            guess = np.einsum("pkn,kmn->pkm", states, basis).reshape(states.shape[0], -1)
        else:
            raise ArithmeticError(_UNRESOLVED)
        order = np.argsort(np.concatenate([d[0] for d in done]))
        self._start, self._stop = (np.concatenate([d[k] for d in done])[order] for k in (0, 1))
        image = np.concatenate([d[2]["image"] for d in done])[order]
        self._real, self._imaginary = image.real @ _ANALYSIS.T, image.imag @ _ANALYSIS.T
        self._state = np.concatenate([d[2]["state"] for d in done], axis=1)[:, order] @ _ANALYSIS.T

    def _look_for_gap(self, nodes: dict[str, Any]) -> None:
        inside = (nodes["phi"] > 1e-3) & (nodes["phi"] < np.pi - 1e-3)
        if self.logarithmic:  # towards 0 the imaginary part dies out, and that is no gap
            inside &= nodes["y"] > self._low + 0.9 * self._width
        thin = inside & (nodes["thin"] < THIN)
        if thin.any():
            raise GapInsideError(float(self._place(nodes["y"][thin][0])))

    def _integrate(self) -> None:
        """Series of the mass up to each point, and the first moment."""
        legendre = np.polynomial.legendre
        points, weights = legendre.leggauss(2 * NODES)
        basis = legendre.legvander(points, NODES - 1)
        half = 0.5 * (self._stop - self._start)
        phi = (self._start + half)[:, None] + half[:, None] * points
        transform = self._transform(self._real @ basis.T + 1j * (self._imaginary @ basis.T))
        mass = self._mass_rate(transform) * 0.5 * self._width * np.sin(phi) * half[:, None]
        analysis = (legendre.legvander(points, 2 * NODES - 1) * weights[:, None]).T
        self._mass = legendre.legint((mass @ analysis.T) * (np.arange(2 * NODES) + 0.5), axis=1, lbnd=-1)
        tail = self._tail if self.logarithmic else 0.0
        self._before = tail + np.concatenate([[0.0], np.cumsum(self._mass.sum(axis=1))])
        self.mass = float(self._before[-1])
        near_low, near_high = np.sin(0.5 * phi) ** 2, np.cos(0.5 * phi) ** 2
        y = np.where(phi < 0.5 * np.pi, self._low + self._width * near_low, self._high - self._width * near_high)
        self._quadrature = (self._map(self._place(y)).ravel(), (mass * weights).ravel())
        self.first = self.moment(1)

    def moment(self, order: int) -> float:
        """∫ x^order over the band."""
        x, mass = self._quadrature
        return float(mass @ x**order + (self._tail * self._map(0.0) ** order if self.logarithmic else 0.0))

    def _transform(self, image: Complex) -> Complex:
        return (1 / image - 1) / (1j * self._unit) if self._sphere else image

    # ------------------------------------------------------------------ lookup

    def _phi(self, y: Array) -> Array:
        share = np.clip((y - self._low) / self._width, 0, 1)
        rest = np.clip((self._high - y) / self._width, 0, 1)
        return np.where(share < 0.5, 2 * np.arcsin(np.sqrt(share)), np.pi - 2 * np.arcsin(np.sqrt(rest)))

    def _angle(self, y: Array) -> tuple[NDArray[np.int64], Array]:
        """Panel, and point of [−1, 1] in it, of locations y."""
        phi = self._phi(y)
        panel = np.clip(np.searchsorted(self._stop, phi), 0, self._stop.size - 1)
        middle, half = 0.5 * (self._start + self._stop), 0.5 * (self._stop - self._start)
        return panel, np.clip((phi - middle[panel]) / half[panel], -1, 1)

    def _location(self, inner: Array) -> Array:
        """y of a point before the map; one on the wrong side of 0 by rounding is taken at the end of the band."""
        if not self.logarithmic:
            return np.asarray(inner)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.maximum(self._sign * inner, 0.0)))

    def holds(self, x: Array) -> NDArray[np.bool_]:
        """Points inside the band, before the map (but from 0, not from the origin)."""
        return np.asarray((x - self.origin > self._ends[0]) & (x - self.origin < self._ends[1]))

    def solve(self, x: Array) -> Solution:
        """The solver's values at points inside the band, as for `holds`."""
        inner = x - self.origin
        panel, at = self._angle(np.maximum(self._location(inner), self._low))
        guess = [evaluated(table.real, panel, at) + 1j * evaluated(table.imag, panel, at) for table in self._state]
        return self._solver(inner, np.array(guess))

    def _regular(self, inner: Array) -> Complex:
        """G(x + i0) before the map, without its poles, for points inside the band."""
        y = self._location(inner)
        panel, at = self._angle(np.maximum(y, self._low))
        value = self._transform(evaluated(self._real, panel, at) + 1j * evaluated(self._imaginary, panel, at))
        value = value.real + 1j * self._sign * np.minimum(self._sign * value.imag, 0)
        if self.logarithmic:
            below = y < self._low
            if below.any():  # nearer to 0 than the cut: the power law
                depth = y[below] - self._low
                real = (value.real[below] - self._at_zero) * np.exp(min(self._power, 1.0) * depth)
                value[below] = self._at_zero + real + 1j * value.imag[below] * np.exp(self._power * depth)
            value = value / inner
        return np.asarray(value)

    def resolve(self, x: Array) -> Complex:
        """G(x + i0) for x inside the band, no atom."""
        inner = self._map.back(x)
        value = self._regular(inner)
        for position, mass in self._poles:
            value = value + mass / (inner - position)
        value = value if self._forward else np.conj(value)
        return np.asarray(self._map.resolvent(inner, value, inner * value - 1))

    def density(self, x: Array) -> Array:
        """Density of the continuous part inside the band."""
        inner = self._map.back(x)
        return np.asarray(-self._regular(inner).imag / np.pi * np.abs(self._map.rate(inner)))

    def _mass_below(self, y: Array) -> Array:
        panel, at = self._angle(np.maximum(y, self._low))
        value = self._before[panel] + evaluated(self._mass, panel, at)
        low = y < self._low
        if low.any():
            value[low] = self._before[0] * np.exp(self._power * (y[low] - self._low))
        return value

    def mass_up_to(self, x: Array) -> Array:
        """The mass between the left end and x."""
        value = self._mass_below(self._location(self._map.back(x)))
        return value if self._forward == (self._sign > 0) else self.mass - value

    def quantile(self, mass: Array) -> Array:
        """x with the given mass to its left."""
        inner = mass if self._forward == (self._sign > 0) else self.mass - mass
        panel = np.clip(np.searchsorted(self._before, inner, side="right") - 1, 0, self._stop.size - 1)
        at = _inverse(self._mass, panel, inner - self._before[panel])
        phi = 0.5 * (self._start + self._stop)[panel] + 0.5 * (self._stop - self._start)[panel] * at
        near_low, near_high = np.sin(0.5 * phi) ** 2, np.cos(0.5 * phi) ** 2
        y = np.where(phi < 0.5 * np.pi, self._low + self._width * near_low, self._high - self._width * near_high)
        if self.logarithmic:
            low = inner < self._before[0]
            with np.errstate(divide="ignore"):
                y[low] = self._low + np.log(np.maximum(inner[low], 0) / self._before[0]) / self._power
        inside = np.clip(self._map(self._place(y)), self.left, self.right)
        return np.asarray(np.where(mass <= 0, self.left, np.where(mass >= self.mass, self.right, inside)))


_UNRESOLVED = (
    "the density could not be resolved: two branch points are closer than double precision resolves; move a parameter "
    "slightly"
)


def _rows(nodes: dict[str, Any], good: NDArray[np.bool_]) -> dict[str, Any]:
    return {key: value[:, good] if key == "state" else value[good] for key, value in nodes.items()}


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
                move = gap / legendre.legval(at, derivative)
            inside = (at - move > low[active]) & (at - move < high[active])
            met = (np.abs(move) <= 1e-9) | (gap == 0)  # the next move would be of the order of its square
            following = np.where(inside, at - move, 0.5 * (low[active] + high[active]))
            point[active] = np.where(met & ~inside, at, following)
            active = active[~met]
            if active.size == 0:
                break
        out[rows] = point
    return out


def _groups(panel: NDArray[np.int64]) -> list[tuple[int, NDArray[np.int64]]]:
    """The rows of each panel that occurs."""
    order = np.argsort(panel, kind="stable")
    numbers, first = np.unique(panel[order], return_index=True)
    return list(zip(numbers.tolist(), np.split(order, first[1:]), strict=True)) if panel.size else []


def evaluated(table: Array, panel: NDArray[np.int64], point: Array) -> Array:
    """Legendre series, one row of `table` a panel, at points of the given panels."""
    out = np.empty(point.size)
    for k, rows in _groups(panel):
        out[rows] = np.polynomial.legendre.legval(point[rows], table[k])
    return out
