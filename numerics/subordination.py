"""Laws of the calculus by joint subordination: one argument for each Marchenko–Pastur, semicircle or atomic part.

Every operation gives its z and G from those of the laws it acts on, so z is an explicit function of the parts'
arguments; free sums and products ask for equal G or m. In the right half-planes those conditions have one solution.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from derivations import _free_calculus as calculus
from numerics.algebraic_curve import AlgebraicCurve
from numerics.compile import function

Array = NDArray[Any]  # real
Complex = NDArray[np.complex128]

ALGEBRAIC = 4  # `parts_of` a law up to which its polynomial is found at once and has a low degree
FAR = 1e3  # height, in sizes of the law, from which the series at infinity start the descent
NEWTON = 40  # steps at most: from a good start it takes four, and where two solutions nearly meet each halves the error
MET = 2e-15  # relative step at which Newton's method has converged
SQUARED = 1e-7  # relative step after which the next one is rounding
ROUNDED = 1e-6  # relative step that rounding may leave where two solutions nearly meet
MELTED = 1e-4  # and where three do, and more iterations would not help
MARCHES = 4000  # steps at most along a gap
SMALLEST = 1e-15  # share of the usual step below which none is possible
DESCENT = 2000  # steps at most on the way down
STEP = 0.3  # of the distance to a part's singularities: the furthest that its argument moves in the last step
DIP = 0.3  # of dz's values at the ends of a step: below this in between there might be a band that was stepped over
MARCH = 0.25  # of that distance: a step along the real axis
NEGLIGIBLE = 1e-24  # of the size: a gap that comes nearer to 0 than this has no edge before it
ATOM = 1e-8  # of a part's size: an argument so near to an atom steps over it,
STEPPED = 1e-7  # if that moves z by less than this share of the smallest operand of a sum
TOUCHING = 1e-25  # of a part's size: an argument so near to a band's end has reached it
ZERO = 1e-12  # of the size: a hard edge so near to 0 is 0, where the argument met an atom at 0
HUGE = 1e6  # of a part's size: its argument is on its way through infinity
OUTSIDE = 1e-12  # relative: so far rounding may put a value into the other half-plane
REAL = 1e-10  # relative imaginary part below which a value counts as real
POLE = 1e-11  # of 1/G where dz vanishes, in sizes: there is a pole of G
HARD = 1e-6  # of 1/G at an edge, in sizes: the density diverges there


# ---------------------------------------------------------------------- the parts and operations of a law


class _State:
    """z, G and factor = z − 1/G of a law at many points, and their derivatives in all parts' arguments."""

    def __init__(self, values: tuple[Complex, ...], slopes: tuple[Complex, ...]) -> None:
        self.values, self.slopes = values, slopes

    @property
    def moment(self) -> tuple[Complex, Complex]:
        """m = z G − 1 without cancellation for large z, and its derivatives."""
        (_, g, k), (_, dg, dk) = self.values, self.slopes
        return g * k, dg * k + g * dk

    @property
    def whole(self) -> tuple[Complex, Complex]:
        """1 + m without cancellation for small z."""
        (z, g, _), (dz, dg, _) = self.values, self.slopes
        return z * g, dz * g + z * dg


class _Seen:
    """What an evaluation collects: the conditions with their derivatives, and where all values are possible."""

    def __init__(self) -> None:
        self.proper: Any = True  # points at which every argument and transform is in its half-plane, up to rounding
        self.conditions: list[tuple[Complex, Complex]] = []
        self.inverted: list[tuple[Complex, Complex]] = []  # values of G whose zeros are poles of z, with derivatives

    def add(self, node: _Node, state: _State, w: Complex) -> _State:
        if node.side:
            (z, g, _), dz = state.values, state.slopes[0]
            rounding = OUTSIDE * (np.abs(z) + np.abs(dz * w).sum(axis=0))
            if not node.given:
                self.proper &= node.side * z.imag >= -rounding
            self.proper &= node.side * g.imag <= OUTSIDE * np.abs(g) + rounding * np.abs(g) ** 2
        return state


class Edge(NamedTuple):
    """An end of a band, whether the density diverges there, and whether like any power, not an inverse root."""

    at: float
    hard: bool = False
    power: bool = False


class _Node:
    """A law in the tree: mean, second moment, hull of the support, and the half-plane that its argument lives in."""

    given = False  # whether z is what the equations are solved for
    side = 1  # of Im z where the root has Im z > 0; 0 where it may change
    low = high = 0.0  # bounds of the support
    children: tuple[_Node, ...] = ()

    def __init__(self, law: Any) -> None:
        self.law = law
        self.mean, self.second = (float(moment) for moment in first_moments(law))
        self.size = self.second**0.5

    def evaluate(self, w: Complex, seen: _Seen) -> _State:
        """The law at the parts' arguments w, of shape (parts, points)."""
        raise NotImplementedError

    def start(self, at: Complex, moments: Complex, w: Complex) -> None:
        """Write the parts' arguments far out into w, from z and m there to second order."""
        raise NotImplementedError


class _Part(_Node):
    """A law whose Cauchy transform has one closed form on the whole plane."""

    def __init__(self, law: Any, index: int) -> None:
        super().__init__(law)
        self.index = index
        atoms = [(float(p), float(w)) for p, w in law.atoms() if float(w) > 0]
        self.atoms = np.array([p for p, _ in atoms])
        if isinstance(law, calculus.Atoms):
            self._weights = np.array([w for _, w in atoms])
            self.band: tuple[float, float] | None = None
        else:
            self._curve = AlgebraicCurve(law, self.mean, self.second)
            self._factor = _factor_functions(law)
            band = self._curve.intervals()
            self.band = (float(band[0].left), float(band[-1].right))
        ends = [*self.atoms, *(self.band or ())]
        self.low, self.high = min(ends), max(ends)

    def values(self, w: Complex) -> tuple[Complex, Complex, Complex, Complex]:
        """G, the factor, and their derivatives."""
        if self.band is None:
            inverse = 1 / (w - self.atoms[:, None])
            value = self._weights @ inverse
            factor = ((self._weights * self.atoms) @ inverse) / value  # m/G
            # Its derivative, 1 + G'/G², is a variance over the atoms: about the mean far away, about an atom near it.
            nearest = np.argmin(np.abs(w - self.atoms[:, None]), axis=0)
            close = np.abs(w - self.atoms[nearest]) < self.size
            centred = self.atoms[:, None] - np.where(close, self.atoms[nearest], self.mean)
            plain, first, square = (self._weights @ (centred**k * inverse**2) for k in range(3))
            return value, factor, -plain, (first**2 - plain * square) / value**2
        value = self._curve.continued(w)  # closed, with its cut on the band alone
        slope = self._curve.slope(w, value)
        return value, self._factor[0](value), slope, self._factor[1](value) * slope

    def distance(self, w: Complex) -> Array:
        """Distance of w to the spectrum."""
        apart = np.full(w.shape, np.inf)
        for p in self.atoms:
            apart = np.minimum(apart, np.abs(w - p))
        if self.band is not None:
            outside = np.maximum(np.maximum(self.band[0] - w.real, w.real - self.band[1]), 0)
            apart = np.minimum(apart, np.hypot(outside, w.imag))
        return apart

    def ahead(self, w: Array, rate: Array) -> tuple[Array, Array]:
        """Distances of real w to the next atom, and to the band, in the direction of a rate; else a length to go."""
        sign, free = np.where(rate >= 0, 1.0, -1.0), np.maximum(np.abs(w), self.size)
        apart = []
        for ends in (self.atoms, self.band or ()):
            away = sign * (np.array(ends).reshape(-1, 1) - w)
            nearest = np.where(away > 0, away, np.inf).min(axis=0, initial=np.inf)
            apart.append(np.where(np.isfinite(nearest), nearest, free))
        return apart[0], apart[1]

    def evaluate(self, w: Complex, seen: _Seen) -> _State:
        at = w[self.index]
        value, factor, *rates = self.values(at)
        slopes = np.zeros((3, *w.shape), dtype=complex)
        slopes[0, self.index] = 1
        slopes[1:, self.index] = rates
        return seen.add(self, _State((at, value, factor), tuple(slopes)), w)

    def start(self, at: Complex, moments: Complex, w: Complex) -> None:
        w[self.index] = at


class _Operation(_Node):
    """A law made of one other law, or of two; z, G and the factor follow from theirs."""

    def __init__(self, law: Any, children: tuple[_Node, ...]) -> None:
        super().__init__(law)
        self.children = children
        self._parameter, self._outside = _outside_of(law)
        self.product = isinstance(law, calculus.FreeProduct)
        self.low, self.high = self._hull()

    def _hull(self) -> tuple[float, float]:
        law, t, (child, *others) = self.law, self._parameter, self.children
        ends = [child.low, child.high]
        if others:
            combine = np.multiply.outer if self.product else np.add.outer
            ends = combine(ends, [others[0].low, others[0].high]).ravel().tolist()
        elif isinstance(law, calculus.Inverse):
            ends = [1 / q for q in Tree(law.law).hull()]
        elif isinstance(law, calculus.Scaled | calculus.SumPower):
            ends = [t * q for q in ends]
        elif isinstance(law, calculus.Shifted):
            ends = [t + q for q in ends]
        elif isinstance(law, calculus.ProductPower):
            ends = [q**t for q in ends]
        elif isinstance(law, calculus.FreePoisson):  # Marchenko–Pastur's edges bound each sign's jumps
            reach = (1 + t**0.5) ** 2
            ends = [min(child.low, 0.0) * reach, max(child.high, 0.0) * reach]
        return min(ends), max(ends)

    def sides(self) -> list[int]:
        """The half-planes of the children's arguments."""
        law = self.law
        if isinstance(law, calculus.Inverse) or (isinstance(law, calculus.Scaled) and self._parameter < 0):
            return [-self.side]
        sides = [self.side] * len(self.children)
        if self.product:
            positive = [child.law.nonnegative is True for child in self.children]
            if not all(positive):  # the argument of the positive factor may cross the negative axis
                sides[0 if positive[0] else 1] = 0
        return sides

    def evaluate(self, w: Complex, seen: _Seen) -> _State:
        inner = [child.evaluate(w, seen) for child in self.children]
        if len(inner) == 2:
            inner = self._joined(inner, seen)
        elif isinstance(self.law, calculus.SumPower | calculus.ProductPower | calculus.Compression):
            seen.inverted.append((inner[0].values[1], inner[0].slopes[1]))
        arguments = [value for state in inner for value in state.values]
        slopes = [slope for state in inner for slope in state.slopes]
        values, rates = [], []
        for f, partials in self._outside:
            values.append(f(*arguments, self._parameter))
            parts = [partial(*arguments, self._parameter) * slopes[k] for k, partial in partials]
            rates.append(sum(parts[1:], parts[0]))
        if isinstance(self.law, calculus.ProductPower):  # Im log z, which no multiple of 2π may be taken from
            side = self.side or np.where(arguments[0].imag < 0, -1, 1)
            turned = _angle(arguments[0], side) + (self._parameter - 1) * _angle(arguments[2], -side)
            seen.proper &= (np.abs(turned) <= np.pi + ROUNDED) & (self.side * turned >= -ROUNDED)
        return seen.add(self, _State(tuple(values), tuple(rates)), w)

    def _joined(self, inner: list[_State], seen: _Seen) -> list[_State]:
        """Both laws' states in the better order, and the condition that joins them.

        The operation takes z of the first and the factor of the second: in one of both orders neither is large.
        """
        sizes = [child.size for child in self.children]
        (z, _, k), (y, _, h) = inner[0].values, inner[1].values
        straight = np.maximum(np.abs(z) / sizes[0], np.abs(h) / sizes[1])
        swap = straight > np.maximum(np.abs(y) / sizes[1], np.abs(k) / sizes[0])
        first, second = (
            _State(
                *(tuple(np.where(swap, y, x) for x, y in zip(a, b, strict=True)) for a, b in zip(*pair, strict=True))
            )
            for pair in ((_pair(inner[0]), _pair(inner[1])), (_pair(inner[1]), _pair(inner[0])))
        )
        if self.product:
            (a, da), (b, db) = first.whole, second.whole
            gap = np.where(np.abs(a) < 0.5, a - b, first.moment[0] - second.moment[0])
            scale = 1.0
        else:
            (a, da), (b, db), scale = (
                (first.values[1], first.slopes[1]),
                (second.values[1], second.slopes[1]),
                self.size,
            )
            gap = a - b
        # The difference as points of a sphere: poles, at atoms, are points like any other.
        turn = 1j * scale * (self.side or 1)
        left, right = 1 / (1 + turn * a), 1 / (1 + turn * b)
        seen.conditions.append((gap * left * right, left**2 * da - right**2 * db))
        return [first, second]

    def start(self, at: Complex, moments: Complex, w: Complex) -> None:
        law, t = self.law, self._parameter
        if isinstance(law, calculus.Inverse):  # the inner argument is near 0, not far out
            arguments, first = Tree(law.law).solve(1 / at), _first_part(self.children[0])
            w[first : first + arguments.shape[0]] = arguments
        elif self.product or isinstance(law, calculus.ProductPower):  # equal m
            for child in self.children:
                child.start(_argument_of(child, moments), moments, w)
        elif isinstance(law, calculus.FreePoisson):
            self.children[0].start(at / (1 + moments), moments / t, w)
        else:  # equal G, up to a scale
            value = (1 + moments) / at
            scale = t if isinstance(law, calculus.Scaled | calculus.Compression) else 1.0
            for child in self.children:
                inner, variance = value * scale, child.second - child.mean**2
                child.start(1 / inner + child.mean + variance * inner, child.mean * inner + child.second * inner**2, w)


def _angle(value: Complex, side: Any) -> Array:
    """The argument, with rounding of negative numbers taken to a side of the axis."""
    real = np.abs(value.imag) <= ROUNDED * np.abs(value)
    return np.where(real, np.where(value.real < 0, side * np.pi, 0.0), np.angle(value))


def _pair(state: _State) -> tuple[Any, Any]:
    return state.values, state.slopes


def _argument_of(node: _Node, moments: Complex) -> Complex:
    """z far out with m = mean/z + second/z²; for mean 0 the root in the node's half-plane."""
    root = np.sqrt(node.mean**2 + 4 * moments * node.second + 0j)
    pair = [(node.mean + sign * root) / (2 * moments) for sign in (1.0, -1.0)]
    sizes = [np.abs(q) for q in pair]
    second = np.where(np.maximum(*sizes) > 2 * np.minimum(*sizes), sizes[1] > sizes[0], pair[1].imag * node.side > 0)
    return np.where(second, pair[1], pair[0])


def _factor_functions(law: Any) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The R-transform of a part and its derivative, as functions of G."""
    transform = law.r_transform()
    return function(transform, (calculus.g,)), function(transform.diff(calculus.g), (calculus.g,))


def _outside_of(law: Any) -> tuple[float, Any]:
    """The parameter of an operation, and its maps of z, G and the factor outwards."""
    names = [f.name for f in fields(law) if not isinstance(getattr(law, f.name), calculus.FreeLaw)]
    parameter = float(getattr(law, names[0])) if names else 1.0
    kind: Any = type(law)
    return parameter, _outside_functions(kind, tuple(f.name for f in fields(law)), tuple(names))


@lru_cache(maxsize=16)
def _outside_functions(kind: Any, names: tuple[str, ...], parameters: tuple[str, ...]) -> Any:
    """z, G and the factor of an operation as functions of its operands' and its parameter, with their derivatives."""
    number = sp.Dummy("number", positive=True)
    given = {name: number if name in parameters else calculus.MarchenkoPastur(1) for name in names}
    points = [calculus.Point(*sp.symbols("z g k", cls=sp.Dummy)) for name in names if name not in parameters]
    arguments = [symbol for point in points for symbol in (point.z, point.value, point.factor)]
    out = kind(**given).outside(*points)
    return tuple(
        (
            function(quantity, (*arguments, number)),
            tuple(
                (k, function(rate, (*arguments, number)))
                for k, symbol in enumerate(arguments)
                if (rate := quantity.diff(symbol)) != 0
            ),
        )
        for quantity in (out.z, out.value, out.factor)
    )


def _first_part(node: _Node) -> int:
    return node.index if isinstance(node, _Part) else _first_part(node.children[0])


# ---------------------------------------------------------------------- solving


class Solved:
    """Arguments of the parts, shape (parts, points), with z, G, their derivatives, and the conditions."""

    def __init__(self, tree: Tree, w: Complex) -> None:
        seen = _Seen()
        self.w = w
        with np.errstate(all="ignore"):
            root = tree.root.evaluate(w, seen)
            self.m, self.dm = root.moment
        (self.z, self.g, _), (self.dz, self.dg, _) = root.values, root.slopes
        self.inverted = seen.inverted
        self.proper = seen.proper & np.isfinite(self.z) & np.isfinite(self.g)
        self.gaps = np.array([gap for gap, _ in seen.conditions]).reshape(len(seen.conditions), w.shape[1])
        self.slopes = np.array([slope for _, slope in seen.conditions]).reshape(len(seen.conditions), *w.shape)

    def column(self, k: int) -> Complex:
        """The arguments at one point."""
        return self.w[:, [k]]


def _finest(node: _Node) -> float:
    """The size of the smallest operand of a sum."""
    operands = node.children if isinstance(node.law, calculus.FreeSum) else ()
    return float(min([node.size, *map(_finest, operands)]))


def _least(first: Array, mean: Array, last: Array) -> Array:
    """The least value on a step of the parabola with these end values and this mean."""
    bend = 3 * (first + last) - 6 * mean
    slope = last - first - bend
    with np.errstate(all="ignore"):
        at = -slope / (2 * bend)
        dips = (bend > 0) & (at > 0) & (at < 1)
        return np.where(dips, first - slope**2 / (4 * bend), np.minimum(first, last))


def _linear(matrix: Complex, right: Complex) -> Complex:
    """Solutions of many small systems, matrix (rows, columns, points), by elimination; NaN where singular."""
    a, b = np.moveaxis(matrix, -1, 0), np.moveaxis(right, -1, 0)[..., None]
    if a.shape[-1] == 1:
        with np.errstate(all="ignore"):
            return np.moveaxis((b / a)[..., 0], 0, -1)
    out = np.full(b.shape[:-1], np.nan, dtype=complex)
    fine = np.isfinite(a).all(axis=(1, 2)) & np.isfinite(b).all(axis=(1, 2))
    size = np.abs(a).max(axis=2, keepdims=True)
    fine &= (size > 0).all(axis=(1, 2))
    with np.errstate(all="ignore"):
        try:
            out[fine] = np.linalg.solve(a[fine] / size[fine], b[fine] / size[fine])[..., 0]
        except np.linalg.LinAlgError:
            for row in np.flatnonzero(fine):
                try:
                    out[row] = np.linalg.solve(a[row] / size[row], b[row] / size[row])[:, 0]
                except np.linalg.LinAlgError:
                    continue
    return np.moveaxis(out, 0, -1)


def _moved(state: Solved, tangent: Complex, x: Array, here: Array, below: Array) -> Complex:
    """A guess for the arguments after a step down: by the power of z that they follow there, or along the tangent."""
    with np.errstate(all="ignore"):
        z, target = x + 1j * here, x + 1j * below
        power = tangent * z / state.w
        powered = state.w * (target / z) ** power
        straight = state.w + tangent * (target - z)
        return np.asarray(np.where((np.abs(power) < 3) & np.isfinite(powered), powered, straight))


class Tree:
    """The parts and operations of a law, and the solution of its conditions at given z."""

    def __init__(self, law: Any) -> None:
        self.parts: list[_Part] = []
        self.root = self._build(law)
        self.root.given = True
        self._orient(self.root, 1)
        self.size = self.root.size
        self._finest = _finest(self.root)
        self._sizes = np.array([p.size for p in self.parts])[:, None]
        self.lead = next(p.index for p in self.parts if p.side)  # a part whose argument moves one way with z

    def _build(self, law: Any) -> _Node:
        if isinstance(law, calculus.FussCatalan):
            if law.order != 1:
                return self._power(calculus.MarchenkoPastur(1), law.order)
            law = calculus.MarchenkoPastur(1)
        if isinstance(law, calculus.Semicircle | calculus.MarchenkoPastur | calculus.Atoms):
            self.parts.append(_Part(law, len(self.parts)))
            return self.parts[-1]
        if isinstance(law, calculus.FreeSum | calculus.FreeProduct):
            for law_a, law_b in ((law.left, law.right), (law.right, law.left)):
                if (point := point_of(law_b)) is not None:
                    kind = calculus.Shifted if isinstance(law, calculus.FreeSum) else calculus.Scaled
                    return self._build(kind(law_a, point))
            return _Operation(law, (self._build(law.left), self._build(law.right)))
        if isinstance(law, calculus.Scaled | calculus.Shifted | calculus.Inverse) and _is_atomic(law):
            return self._build(calculus.Atoms(*map(tuple, zip(*law.atoms(), strict=True))))
        if isinstance(law, calculus.ProductPower):
            return self._power(law.law, law.exponent)
        if getattr(law, "exponent", None) == 1:
            return self._build(law.law)
        return _Operation(law, (self._build(law.operands[0]),))

    def _power(self, inner: Any, exponent: Any) -> _Node:
        while isinstance(inner, calculus.ProductPower):
            inner, exponent = inner.law, exponent * inner.exponent
        power = calculus.ProductPower(inner, exponent)
        return self._build(inner) if exponent == 1 else _Operation(power, (self._build(inner),))

    def _orient(self, node: _Node, side: int) -> None:
        node.side = side
        sides = node.sides() if isinstance(node, _Operation) else []
        for child, turned in zip(node.children, sides, strict=True):
            self._orient(child, turned)

    # -- Newton's method

    def newton(
        self, w: Complex, target: Complex, hold: int | None = None, met: float = MET
    ) -> tuple[Solved, NDArray[np.bool_]]:
        """Solve the conditions with z = target, or with one part's argument held; and where that has converged.

        `met`: relative step below which no further one is taken; the error left is of the order of its square.
        """
        w = w.copy()
        done, last = np.zeros(w.shape[1], dtype=bool), np.full(w.shape[1], np.inf)
        for _ in range(NEWTON):
            rows = np.flatnonzero(~done)
            if rows.size == 0:
                break
            state = Solved(self, w[:, rows])
            step = self.step(state, None if hold is not None else target[rows], hold)
            large = np.maximum(np.abs(w[:, rows]), [p.distance(w[p.index, rows]) for p in self.parts])
            # Far out 1/w counts: it is what has the digits of G there.
            with np.errstate(all="ignore"):
                large = large * np.maximum(1, np.abs(w[:, rows]) / self._sizes)
                size = np.max(np.abs(step) / (large + np.abs(step)), axis=0)
            w[:, rows] = w[:, rows] - np.where(np.isfinite(step), step, 0)
            # Rounding leaves steps that no longer shrink: two of these end the iteration too.
            ended = (size <= met) | ((size <= ROUNDED) & (size >= 0.7 * last[rows])) | ~np.isfinite(size)
            last[rows] = np.where(np.isfinite(size), size, np.inf)
            done[rows] = ended
        return Solved(self, w), last <= MELTED

    @staticmethod
    def step(state: Solved, target: Complex | None, hold: int | None = None) -> Complex:
        """The step of Newton's method to z = target, or with one part's argument held."""
        if target is not None:
            matrix = np.concatenate([state.slopes, state.dz[None]])
            return _linear(matrix, np.concatenate([state.gaps, (state.z - target)[None]]))
        step = np.zeros_like(state.w)
        others = [k for k in range(state.w.shape[0]) if k != hold]
        if others:
            step[others] = _linear(state.slopes[:, others], state.gaps)
        return step

    def tangent(self, state: Solved, hold: int | None = None) -> Complex:
        """dW/dz, or dW by the argument of one part."""
        one = np.ones((1, state.w.shape[1]), dtype=complex)
        if hold is None:
            matrix = np.concatenate([state.slopes, state.dz[None]])
            return _linear(matrix, np.concatenate([np.zeros_like(state.gaps), one]))
        out = np.ones_like(state.w)
        others = [k for k in range(state.w.shape[0]) if k != hold]
        if others:
            out[others] = _linear(state.slopes[:, others], -state.slopes[:, hold])
        return out

    # -- any z of the upper half-plane

    def solve(self, target: Complex) -> Complex:
        """The parts' arguments at points off the spectrum, or their limits from above on the real axis."""
        target = np.asarray(target, dtype=complex)
        lower = target.imag < 0
        w = self._descend(np.where(lower, np.conj(target), target))
        return np.where(lower, np.conj(w), w)

    def _start(self, x: Array, goal: Array) -> tuple[Complex, Array]:
        """Arguments far above x, at the goal's height or above it, and how far."""
        height = np.maximum(FAR * (self.size + np.abs(x)), goal)
        w = np.zeros((len(self.parts), x.size), dtype=complex)
        missing = np.arange(x.size)
        for _ in range(8):
            z = x[missing] + 1j * height[missing]
            guess = np.zeros((len(self.parts), missing.size), dtype=complex)
            self.root.start(z, self.root.mean / z + self.root.second / z**2, guess)
            state, met = self.newton(guess, z)
            good = met & state.proper
            w[:, missing[good]] = state.w[:, good]
            missing = missing[~good]
            if missing.size == 0:
                return w, height
            height[missing] *= 10
        raise ArithmeticError(f"the subordinate arguments of {self.root.law} could not be found far from its support")

    def _descend(self, target: Complex) -> Complex:
        """From far above down vertical lines. Above the axis the solution is unique, so any step may be tried."""
        x, goal = target.real, target.imag
        w, height = self._start(x, goal)
        ratio, active = np.full(x.size, 0.5), np.arange(x.size)
        fresh = np.ones(x.size, dtype=bool)  # whether the last step was good
        for _ in range(DESCENT):
            if active.size == 0:
                return self.newton(w, target)[0].w
            state = Solved(self, w[:, active])
            here, wanted = height[active], goal[active]
            below = np.maximum(here * ratio[active], wanted)
            apart = np.array([p.distance(state.w[p.index]) for p in self.parts])
            tangent = self.tangent(state)
            move = tangent * 1j * (wanted - here)
            onto = np.max(np.abs(move) / apart, axis=0) < STEP  # near enough for the last step
            below = np.where(onto & fresh[active], wanted, below)
            last = below == wanted
            guess = _moved(state, tangent, x[active], here, below)
            found, met = self.newton(guess, x[active] + 1j * below, met=SQUARED)
            with np.errstate(all="ignore"):
                near = (np.abs(found.w - state.w) < 2 * STEP * apart + SQUARED * np.abs(found.w)).all(axis=0)
                apart = np.array([p.distance(found.w[p.index]) for p in self.parts])
                close = np.abs(found.w - guess) < 0.5 * np.maximum(np.abs(found.w), apart)
            good = met & found.proper & close.all(axis=0) & (~last | near | (wanted > 0))
            rows = active[good]
            w[:, rows], height[rows] = found.w[:, good], below[good]
            usual = np.where(good, np.maximum(ratio[active] ** 1.5, 1e-3), np.sqrt(ratio[active]))
            ratio[active] = np.where(last & ~good & (here * ratio[active] > wanted), ratio[active], usual)
            fresh[active] = good
            active = active[~(good & last)]
        raise ArithmeticError(
            f"the subordinate arguments of {self.root.law} could not be followed to {x[active[0]]} in {DESCENT} steps"
        )

    # -- the real axis

    def hull(self) -> tuple[float, float]:
        """Both ends of the support."""
        low, high = self.outer_edges()
        return min([low.at, *self.atoms]), max([high.at, *self.atoms])

    @cached_property
    def masses(self) -> list[tuple[float, float]]:
        """The law's own atoms."""
        return [(float(p), float(w)) for p, w in self.root.law.atoms() if float(w) > 0]

    @property
    def atoms(self) -> list[float]:
        """Their positions."""
        return [p for p, _ in self.masses]

    def outer_edges(self) -> tuple[Edge, Edge]:
        """The outermost ends of the continuous part."""
        reach = self.size + max(abs(self.root.low), abs(self.root.high))
        x = np.array([self.root.low - reach, self.root.high + reach])
        left, right = self.edges(self.solve(x + 0j), np.array([1, -1]))
        return left, right

    def edges(self, w: Complex, direction: Any) -> list[Edge]:
        """The ends of gaps, each from arguments w of a point in it and a direction of z.

        Along a gap z moves one way with the leading part's argument; where dz vanishes the gap ends. That argument is
        moved in steps, through atoms and through infinity where they are in the way.
        """
        lead, found = self.lead, [Edge(0.0, True, True)] * w.shape[1]
        forward = np.asarray(direction) * self.parts[lead].side
        state, share = Solved(self, np.asarray(w.real, dtype=np.complex128)), np.ones(w.shape[1])
        active, folds = np.arange(w.shape[1]), []
        for _ in range(MARCHES):
            if active.size == 0:
                break
            guess, through, touching, usual = self._ahead(state, forward[active], share[active])
            ahead, good = self._real(guess)
            here, rate = self._rate(state) * self.parts[lead].side, self._rate(ahead) * self.parts[lead].side
            with np.errstate(all="ignore"):
                mean = (ahead.z - state.z).real / (ahead.w - state.w)[lead].real * self.parts[lead].side
            usual &= np.abs(ahead.z - state.z) > 1e-9 * np.abs(state.z)  # else the mean has no digits
            good &= ~usual | (rate <= 0) | (_least(here, mean, rate) > DIP * np.minimum(here, rate))
            turned = good & (rate <= 0)
            ended = touching | (turned & through) | (share[active] < SMALLEST) | (~good & through)
            for k in np.flatnonzero(ended).tolist():
                w_end = self._snapped(state.column(k)) if touching[k] else state.column(k)
                hard = bool(through[k] or 1 / abs(complex(state.g[k])) < HARD * self.size)
                found[active[k]] = self._end(Solved(self, w_end), 0, hard, hard and not (turned[k] and through[k]))
            turning = np.flatnonzero(turned & ~ended).tolist()
            folds += [(int(active[k]), state.column(k), ahead.column(k)) for k in turning]
            before, after = state.z.real, ahead.z.real
            vanished = (
                good & (np.abs(after) < NEGLIGIBLE * self.size) & (np.sign(before) == np.sign(after))
            )  # found holds 0 already
            share[active] = np.where(good, np.minimum(1.0, 2 * share[active]), 0.5 * share[active])
            keep = ~(ended | turned | vanished)
            state = Solved(self, np.where(good, ahead.w, state.w)[:, keep])
            active = active[keep]
        else:
            raise ArithmeticError(f"a gap of {self.root.law} could not be followed to its end in {MARCHES} steps")
        for (place, _, _), edge in zip(folds, self._folds(folds), strict=True):
            found[place] = edge
        return found

    def _snapped(self, w: Complex) -> Complex:
        """Arguments that have come to the ends of their bands, put there."""
        out = w.copy()
        for part in self.parts:
            for end in part.band or ():
                if abs(w[part.index, 0].real - end) <= 2e-14 * abs(end):
                    out[part.index, 0] = end
        return out

    def _end(self, state: Solved, k: int, hard: bool, power: bool = False) -> Edge:
        z = float(state.z[k].real)
        beyond = bool(self.root.law.nonnegative) and z < 0  # the way to an atom at 0 is not gone to its end
        return Edge(0.0 if beyond or (hard and abs(z) < ZERO * self.size) else z, hard, power)

    def _rate(self, state: Solved) -> Array:
        """dz by the leading argument along the real axis."""
        return np.asarray((state.dz * self.tangent(state, self.lead)).sum(axis=0).real)

    def _ahead(self, state: Solved, forward: Array, share: Array) -> tuple[Array, Any, Any, Any]:
        """Guesses one step ahead; whether that goes through an atom of a part; whether a part's band is touched; else,
        and where no argument passes through infinity, whether it is a usual step.
        """
        tangent = self.tangent(state, self.lead)
        w, rate = state.w.real, tangent.real * forward
        sizes = self._sizes
        to_atom, to_band = np.array([p.ahead(w[p.index], rate[p.index]) for p in self.parts]).transpose(1, 0, 2)
        with np.errstate(divide="ignore", invalid="ignore"):
            speed = np.maximum(np.abs(rate), 1e-300)
            atom, band, infinity = (
                np.where(apart >= 0, apart / speed, np.inf) for apart in (to_atom, to_band, np.abs(w))
            )
            zero = [np.abs(g) / np.abs((dg * tangent).sum(axis=0)) for g, dg in state.inverted]
        # Arguments pass through infinity where G or m is 0 in an inner gap, and change sign if their order is odd.
        out = (np.abs(w) > HUGE * sizes) & (np.abs(w) > HUGE * np.abs(state.z.real)) & (w * rate > 0)
        far = out.any(axis=0) & (np.abs(w) > 0.1 * HUGE**0.5 * sizes) & (w * rate > 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            pole = np.where(far, infinity, 0.0).max(axis=0)  # where the leading argument is not one of them
            order = np.where(far[self.lead], rate * w[self.lead] / (w * rate[self.lead]), pole / infinity)
        turned = far & (np.round(np.abs(np.where(far, order, 0))) % 2 == 1)
        amount = MARCH * share * np.minimum.reduce([atom.min(axis=0), band.min(axis=0), *zero])
        amount = np.where(far.any(axis=0), 2 * pole, amount)
        amount = np.where(far[self.lead], 0.0, amount)
        through = (to_atom < ATOM * sizes).any(axis=0) & (atom.min(axis=0) < band.min(axis=0)) & ~far.any(axis=0)
        through &= 2 * atom.min(axis=0) * np.abs(self._rate(state)) < STEPPED * self._finest
        amount = np.where(through, 2 * atom.min(axis=0), amount)
        touching = (to_band < TOUCHING * sizes + 1e-14 * np.abs(w)).any(axis=0) & ~through & ~far.any(axis=0)
        beyond = np.where(turned, -w, np.where(far, w, w + amount * rate))
        return beyond, through, touching, ~(through | touching | far.any(axis=0))

    def _real(self, guess: Array) -> tuple[Solved, NDArray[np.bool_]]:
        """Solutions on the real axis with the leading argument held, and where there is one."""
        found, met = self.newton(guess + 0j, np.zeros(guess.shape[1], dtype=complex), self.lead)
        real = (np.abs(found.w.imag) <= REAL * np.abs(found.w)).all(axis=0)
        real &= np.abs(found.z.imag) <= REAL * np.abs(found.z) + 1e-16 * self.size
        return found, met & real & found.proper

    def _folds(self, pairs: list[Any]) -> list[Edge]:
        """Where dz vanishes between two points of the real curve (Illinois' method, all pairs at once)."""
        if not pairs:
            return []
        lead = self.lead
        ends = [np.concatenate([pair[side] for pair in pairs], axis=1) for side in (1, 2)]
        states = [Solved(self, w) for w in ends]
        rates = [self._rate(state) for state in states]
        place = [state.w[lead].real.copy() for state in states]
        spots = [state.w.copy() for state in states]
        level = [state.z.real.copy() for state in states]
        last = np.zeros(len(pairs))
        for _ in range(200):
            width = place[1] - place[0]
            with np.errstate(invalid="ignore", divide="ignore"):
                cut = np.clip(rates[0] / (rates[0] - rates[1]), 1e-3, 1 - 1e-3)
            at = place[0] + np.where(np.isfinite(cut), cut, 0.5) * width
            close = np.abs(at - place[0]) < np.abs(at - place[1])
            near = Solved(self, np.where(close, spots[0], spots[1]))
            guess = near.w.real + self.tangent(near, lead).real * (at - near.w[lead].real)
            guess[lead] = at
            found, good = self._real(guess)
            if not good.all():
                raise ArithmeticError(f"an edge of {self.root.law} could not be found between two real points")
            rate = self._rate(found)
            same = np.sign(rate) == np.sign(rates[0])
            for side, here in ((0, same), (1, ~same)):
                other = 1 - side
                rates[other] = np.where(here & (last == side + 1), 0.5 * rates[other], rates[other])
                place[side], level[side] = np.where(here, at, place[side]), np.where(here, found.z.real, level[side])
                spots[side] = np.where(here, found.w, spots[side])
                rates[side] = np.where(here, rate, rates[side])
            last = np.where(same, 1, 2)
            # z is stationary there: it has its last digit long before the argument has.
            fine = np.abs(level[0] - level[1]) <= 1e-16 * np.abs(level[0])
            if np.all(fine | (np.abs(place[1] - place[0]) <= 4e-16 * np.abs(place[0])) | (rate == 0)):
                break
        return [self._end(found, k, 1 / abs(complex(found.g[k])) < POLE * self.size) for k in range(len(pairs))]


def parts_of(law: Any) -> float:
    """A bound on the degree of a law's polynomial, roughly; ∞ where it has none with rational coefficients."""
    if isinstance(law, calculus.Atoms):
        return len(law.points) if all(number.is_Rational for pair in law.atoms() for number in pair) else np.inf
    if isinstance(law, calculus.FussCatalan):
        return 2 * float(law.order)
    numbers = [v for f in fields(law) if not isinstance(v := getattr(law, f.name), calculus.FreeLaw)]
    if not all(number.is_Rational for number in numbers):
        return np.inf
    total = sum(parts_of(inner) for inner in law.operands) if law.operands else 2
    if total > 2 and any(isinstance(v, calculus.Inverse) and not _has_rational_mean(v) for v in law.operands):
        return np.inf  # algebraic numbers make exact moments dear
    if isinstance(law, calculus.ProductPower):
        return total * float(law.exponent) if law.exponent.is_Integer else np.inf
    return total


def _has_rational_mean(law: Any) -> bool:
    try:
        return bool(law.moments(1)[0].is_Rational)
    except ValueError:
        return False


def first_moments(law: Any) -> tuple[Any, Any]:
    """Mean and second moment: exact, but for inverses whose curve is not known or not enough, where G(0) has them."""
    mean, second = _stand_in(law).moments(2)
    return mean, second


def _stand_in(law: Any) -> Any:
    """The law with such inverses replaced by a law of the same mean and second moment."""
    operands = {f.name: _stand_in(v) for f in fields(law) if isinstance(v := getattr(law, f.name), calculus.FreeLaw)}
    if isinstance(law, calculus.Inverse):
        return _inverse_of_same_moments(law)
    return replace(law, **operands) if operands else law


def _inverse_of_same_moments(law: Any) -> Any:
    if parts_of(law.law) <= ALGEBRAIC:
        try:
            law.moments(2)
            return law
        except ValueError:  # the branch of the curve is not simple there
            pass
    if (point := point_of(law.law)) is not None:
        return calculus.Atoms((1 / point,))
    tree = Tree(law.law)
    state = Solved(tree, tree.solve(np.zeros(1, dtype=complex)))
    mean = -float(state.g[0].real)
    second = -float((state.dg * tree.tangent(state)).sum(axis=0)[0].real)
    return mean * calculus.MarchenkoPastur(second / mean**2 - 1)


def _is_atomic(law: Any) -> bool:
    while isinstance(law, calculus.Scaled | calculus.Shifted | calculus.Inverse):
        law = law.law
    return isinstance(law, calculus.Atoms)


def point_of(law: Any) -> Any | None:
    """The point that all mass of a law sits on, or None."""
    atoms = law.atoms()
    return atoms[0][0] if len(atoms) == 1 and atoms[0][1] == 1 else None
