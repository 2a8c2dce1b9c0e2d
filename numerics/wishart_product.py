"""The product of two Wishart laws as a distribution: density, CDF, quantiles, moments, Stieltjes transform.

Every formula is compiled from `derivations.wishart_product`; this module adds the edges at 50 digits, the arrangement
that loses no digit at edges and hard edges, the branch of the cubic off the axis, and the inversion of the CDF.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

import mpmath
import numpy as np
import sympy as sp
from numpy.typing import NDArray

from derivations import wishart_product as chapter
from numerics.compile import FAST_FROM, fast_available, function
from numerics.validate import broadcast, check, plain, real_array

Array = NDArray[np.float64]

PDF_BACKENDS = ("auto", "numpy", "fast")
MOST_MOMENTS = 1000  # the sum has order²/2 terms
_EDGE_DIGITS = 50
_TIE_DIGITS = 120  # near a tie of (1, delta, gamma) two roots of the edge equation merge, and half the digits go
_BLOCK = 8192  # points evaluated at a time: the temporaries stay in the cache
_RATIOS = (1e-20, 1e20)  # of delta and of gamma, unless 0: their powers in Cardano's formula stay representable
_NARROWEST = 1e-10  # of the larger ratio: below, the bulk is so narrow that the rounding of x is seen in the CDF
_TINY = 1e-100  # positions below are within reach of a hard edge only
_ORIGIN = 1e-200  # arguments of the Stieltjes transform below count as 0: the cubic's coefficients spread too far
_TABLE = 257  # angles at which the CDF is tabulated before it is inverted
_ABERTH_STEPS = 4
_STEPS = 200  # of the quantile's search; bisection alone needs 60

_above, _below, _beyond = (  # positive, so that the root of their product is one of roots: it does not underflow
    chapter.variable(name, "distance", sp.Interval.open(0, sp.oo)) for name in ("above", "below", "beyond")
)
_ARGUMENTS = (chapter.x, _above, _below, _beyond, chapter.delta, chapter.gamma)
_p = sp.Symbol("p", real=True)


class WishartProduct:
    """The law of S/κ: the free product of Marchenko–Pastur laws of ratios `delta` and `gamma`, times `scale`.

    Parameters
    ----------
    delta, gamma : float or array, 0 or from 1e-20 to 1e20, the larger one at least 1e-10
        d/V and d/N (dimensionless). 0 stands for the limit: the Marchenko–Pastur law of the other ratio.
    scale : float or array, > 0
        κ = ‖w‖², the noise level; eigenvalues are in its unit.

    All methods broadcast over their argument and the parameters; scalars give scalars. Source: P1, Theorem 1, laws
    `wishart-product-*`. Raises ValueError for parameters outside the domain.
    """

    def __init__(self, delta: Any, gamma: Any, scale: Any = 1.0) -> None:
        first = check(chapter.delta, delta, closed=True)
        second = check(chapter.gamma, gamma, closed=True)
        size = real_array("scale", scale, "scale = κ = ‖w‖², the noise level of the pooled covariance")
        if not size.size or (size <= 0).any():
            raise ValueError(f"scale must be > 0, got {scale!r} (scale = κ = ‖w‖², the noise level)")
        self._delta, self._gamma, self._scale = broadcast(delta=first, gamma=second, scale=size)
        if ((self._delta == 0) & (self._gamma == 0)).any():
            raise ValueError("delta and gamma must not both be 0: the law is then a point mass at scale; give one")
        if (np.maximum(self._delta, self._gamma) < _NARROWEST).any():
            raise ValueError(
                f"delta and gamma must not both be below {_NARROWEST:g}, got {delta!r} and {gamma!r}: so narrow a bulk "
                "around `scale` cannot be resolved in doubles"
            )
        for name, ratio, quantity in (("delta", first, chapter.delta), ("gamma", second, chapter.gamma)):
            bad = (ratio != 0) & ((ratio < _RATIOS[0]) | (ratio > _RATIOS[1]))
            if bad.any():
                raise ValueError(
                    f"{name} must be 0 (the limit) or from {_RATIOS[0]:g} to {_RATIOS[1]:g}, "
                    f"got {float(ratio[bad].flat[0]):.12g} ({quantity.meaning})"
                )
        bulks = [_bulk(float(a), float(b)) for a, b in zip(self._delta.flat, self._gamma.flat, strict=True)]
        shape = self._delta.shape
        self._bulk = _Bulk(*(np.array(column).reshape(shape) for column in zip(*bulks, strict=True)))
        with np.errstate(over="ignore"):
            representable = np.isfinite(self._bulk.high * self._scale) & np.isfinite(1 / self._scale)
        if not representable.all():
            raise ValueError(
                f"delta, gamma and scale must leave edges and density within the range of a double, got {self!r}"
            )

    def __repr__(self) -> str:
        values = (plain(np.asarray(v)) for v in (self._delta, self._gamma, self._scale))
        return "WishartProduct(delta={!r}, gamma={!r}, scale={!r})".format(*values)

    # Shape of the law ------------------------------------------------------------------------------------------

    def support(self) -> tuple[Any, Any]:
        """The interval of the continuous part, in units of the eigenvalues."""
        return plain(self._bulk.low * self._scale), plain(self._bulk.high * self._scale)

    @property
    def atom(self) -> Any:
        """The mass at 0 (law `wishart-product-atom`)."""
        return plain(np.asarray(function(chapter.atom.right, (chapter.delta, chapter.gamma))(self._delta, self._gamma)))

    def moment(self, order: int) -> Any:
        """The moment ∫ xⁿ dμ of integer order >= 0, in units of scaleⁿ (law `wishart-product-moments`).

        Raises ValueError for an order that is no such integer, or whose moment exceeds the range of a double.
        """
        number = real_array("order", order, "the order of a moment")
        if number.ndim or number != np.round(number) or not 0 <= number <= MOST_MOMENTS:
            raise ValueError(f"order must be an integer >= 0 and <= {MOST_MOMENTS}, got {order!r}")
        if number == 0:
            return plain(np.ones(self._delta.shape))
        with np.errstate(over="ignore", invalid="ignore"):
            value = np.asarray(_moment(int(number), self._delta, self._gamma) * self._scale ** int(number))
        if not np.isfinite(value).all():
            raise ValueError(f"order must be smaller: the moment of order {int(number)} exceeds the range of a double")
        return plain(value)

    def mean(self) -> Any:
        """The mean: `scale`."""
        return self.moment(1)

    def var(self) -> Any:
        """The variance, in units of scale² (the second moment less the square of the first, law by law)."""
        return plain(np.asarray(_variance()(self._delta, self._gamma) * self._scale**2))

    # Density and distribution function -------------------------------------------------------------------------

    def pdf(self, x: Any, backend: str = "auto") -> Any:
        """Density of the continuous part at x; infinite at a hard edge, 0 outside the support.

        `backend`: "numpy", "fast", or "auto" (the fast one from 20,000 points, where installed).
        """
        place = real_array("x", x, "the point, an eigenvalue")
        if backend not in PDF_BACKENDS:
            raise ValueError(f"backend must be one of {', '.join(PDF_BACKENDS)}, got {backend!r}")
        if backend == "auto":
            backend = "fast" if place.size >= FAST_FROM and fast_available() else "numpy"
        return self._at(
            x=place,
            evaluate=lambda bulk, y, out: _pdf(bulk, bulk.from_outside(y), backend, out),
            unit=self._scale,
        )

    def pdf_near_edge(self, distance: Any, edge: str = "upper") -> Any:
        """Density at `distance` (> 0, in units of the eigenvalues) inside the support from its upper or lower edge.

        The distance enters the formula itself, so it may be far below the rounding of the edge.
        """
        if edge not in ("upper", "lower"):
            raise ValueError(f"edge must be 'upper' or 'lower', got {edge!r}")
        depth = real_array("distance", distance, "distance to the edge, inwards")
        width = np.asarray((self._bulk.high - self._bulk.low) * self._scale)
        broadcast(distance=depth, delta=width)
        if ((depth <= 0) | (depth >= width)).any():
            raise ValueError(f"distance must be > 0 and below the width of the support, got {distance!r}")
        return self._at(
            distance=depth,
            evaluate=lambda bulk, y, out: _pdf(bulk, bulk.from_edge(y, edge), "numpy", out),
            unit=self._scale,
        )

    def cdf(self, x: Any) -> Any:
        """Distribution function F(x), the atom included (law `wishart-product-distribution`)."""
        place = real_array("x", x, "the point, an eigenvalue")
        return self._at(x=place, evaluate=lambda bulk, y, out: _cdf(bulk, bulk.from_outside(y), out))

    def ppf(self, q: Any) -> Any:
        """Quantile: the smallest x of the support or the atom with F(x) >= q, for q in [0, 1]."""
        level = real_array("q", q, "a probability")
        if ((level < 0) | (level > 1)).any():
            raise ValueError(f"q must be >= 0 and <= 1, got {q!r} (a probability)")
        shape = broadcast(q=level, delta=self._delta)[0].shape
        values = np.empty(level.size if not self._delta.ndim else int(np.prod(shape)))
        for bulk, where in self._groups(shape):
            values[where] = _quantile(bulk, np.broadcast_to(level, shape).ravel()[where])
        return plain(values.reshape(shape) * self._scale)

    def rvs(self, size: Any = None, random_state: Any = None) -> Any:
        """Independent draws by inversion, of shape `size` (default: that of the parameters; an integer or a tuple).

        `random_state`: a seed, a `numpy.random.Generator` or None (fresh entropy). Equal seeds give equal draws.
        """
        shape = self._delta.shape if size is None else _shape(size)
        try:
            fits = np.broadcast_shapes(shape, self._delta.shape) == shape
        except ValueError:
            fits = False
        if not fits:
            raise ValueError(f"size must be a shape to which the parameters' {self._delta.shape} extends, got {size!r}")
        return self.ppf(_generator(random_state).random(shape))

    # Stieltjes transform ---------------------------------------------------------------------------------------

    def stieltjes(self, z: Any) -> Any:
        """G(z) = ∫ dμ/(z − x), complex, in units of 1/scale. On the support: its limit from above.

        Infinite at z = 0 where there is an atom or a hard edge; off the support, |z| < 1e-200 counts as 0.
        """
        point = _complex_array("z", z)
        shape = broadcast(z=point, delta=self._delta)[0].shape
        scale = np.broadcast_to(self._scale, shape).ravel()
        with np.errstate(over="ignore", invalid="ignore"):
            flat = np.broadcast_to(point, shape).ravel() / scale
        values = np.empty(flat.size, dtype=complex)
        for bulk, where in self._groups(shape):
            values[where] = _stieltjes(bulk, flat[where])
        values.real, values.imag = values.real / scale, values.imag / scale  # complex division makes ∞ a NaN
        return plain(values.reshape(shape))

    # Points and parameters side by side --------------------------------------------------------------------------

    def _at(self, *, evaluate: Any, unit: Any = None, **given: Any) -> Any:
        """`evaluate(parameters, y, out)` at the named points, block by block; divided by `unit` if there is one."""
        ((name, place),) = given.items()
        shape = broadcast(**{name: place, "delta": self._delta})[0].shape
        scale = self._scale if not self._scale.ndim else np.broadcast_to(self._scale, shape).ravel()
        flat = np.broadcast_to(place, shape).reshape(-1)
        scaled = bool(np.any(scale != 1))  # large arrays are passed over as seldom as possible
        if scaled:
            with np.errstate(over="ignore", under="ignore"):
                flat = flat / scale
        values = np.empty(flat.size)
        for bulk, where in self._groups(shape):
            points = flat[where]
            found = values if isinstance(where, slice) else np.empty(points.size)
            for start in range(0, points.size, _BLOCK):
                block = slice(start, start + _BLOCK)
                evaluate(bulk.part(block), points[block], found[block])
            if found is not values:
                values[where] = found
        if scaled and unit is not None:
            values /= scale
        return plain(values.reshape(shape))

    def _groups(self, shape: tuple[int, ...]) -> Iterator[tuple[_Bulk, Any]]:
        """The parameters (numbers, or one entry a point) and the points that one set of formulas serves."""
        if not self._delta.ndim:
            yield self._bulk, slice(None)
            return
        spread = self._bulk.spread(shape)
        for single in (False, True):
            where = spread.single == single
            if where.any():
                yield spread.part(where), where


@dataclass(frozen=True)
class _Bulk:
    """Parameters of the law: numbers, or arrays with one entry a point.

    Each zero of the discriminant is a rounded double and its rounding error; `p_low` and `p_high` are 1 + w m at the
    edges, with w the largest of (1, delta, gamma); `mass` is the atom. `single`: the Marchenko–Pastur limit, whose one
    ratio is both `delta` and `gamma` here. `hard`: the largest of (1, delta, gamma) is not unique, so the density
    diverges at 0.
    """

    delta: Any
    gamma: Any
    low: Any
    low_error: Any
    high: Any
    high_error: Any
    middle: Any
    middle_error: Any
    p_low: Any
    p_high: Any
    mass: Any
    single: Any
    hard: Any

    def _map(self, change: Any) -> _Bulk:
        return _Bulk(*(change(getattr(self, field.name)) for field in fields(self)))

    def part(self, where: Any) -> _Bulk:
        """The parameters of some of the points."""
        return self._map(lambda column: column[where]) if np.ndim(self.delta) else self

    def spread(self, shape: tuple[int, ...]) -> _Bulk:
        """One entry a point."""
        return self._map(lambda column: np.broadcast_to(column, shape).ravel())

    @property
    def is_single(self) -> bool:
        return bool(np.all(self.single))

    def from_outside(self, y: Array) -> tuple[Array, ...]:
        """y and its distances to the lower edge, to the upper edge and to the third zero, where y is the position."""
        below = (self.high - y) + self.high_error
        return y, (y - self.low) - self.low_error, below, (y - self.middle) - self.middle_error

    def from_edge(self, distance: Array, edge: str) -> tuple[Array, ...]:
        """The same where the distance to one edge is given."""
        width = (self.high - self.low) + (self.high_error - self.low_error)
        above, below = (width - distance, distance) if edge == "upper" else (distance, width - distance)
        return self._from_distances(above, below)

    def from_angle(self, angle: Array) -> tuple[Array, ...]:
        """The same at x = low + width sin²(angle/2), in which the distribution function is smooth at both edges."""
        width = (self.high - self.low) + (self.high_error - self.low_error)
        return self._from_distances(width * np.sin(angle / 2) ** 2, width * np.cos(angle / 2) ** 2)

    def _from_distances(self, above: Array, below: Array) -> tuple[Array, ...]:
        near_upper = below < above
        y = np.where(near_upper, (self.high - below) + self.high_error, (self.low + above) + self.low_error)
        gap = (self.low - self.middle) + (self.low_error - self.middle_error)
        return y, above, below, above + gap


@lru_cache(maxsize=1 << 16)
def _bulk(delta: float, gamma: float) -> tuple[Any, ...]:
    """The fields of `_Bulk` for one pair of ratios."""
    single = delta == 0 or gamma == 0
    ratio = max(delta, gamma)
    ties = [delta == 1, gamma == 1, delta == gamma]
    largest = sorted((1.0, ratio) if single else (1.0, delta, gamma))[::-1]
    hard = largest[0] == largest[1]
    with mpmath.workdps(_EDGE_DIGITS):
        first, second = mpmath.mpf(delta), mpmath.mpf(gamma)
        if single:
            root = mpmath.sqrt(ratio)
            t_low, t_high = -root, root
            place = _in_digits("mp_lower_edge"), _in_digits("mp_upper_edge")
            zeros = {name: edge(mpmath.mpf(ratio)) for name, edge in zip(("low", "high"), place, strict=True)}
            zeros["middle"] = zeros["low"]  # there is none; the formulas of the limit do not use it
        else:
            starts = zip(("low", "high", "middle"), (2, 0, 1), _edge_starts(delta, gamma), strict=True)
            roots = {name: _edge_root(index, start, first, second) for name, index, start in starts}
            zeros = {name: _edge_at(name)(root, first, second) for name, root in roots.items()}
            t_low, t_high = roots["low"], roots["high"]
            if any(ties) and (not hard or len(set(largest)) == 1):  # the tie is below the largest: the middle zero is 0
                zeros["middle"] = mpmath.mpf(0)
        if hard:
            zeros["low"] = mpmath.mpf(0)
        edges = [part for name in ("low", "high", "middle") for part in _split(zeros[name])]
        window = [float(1 + mpmath.mpf(largest[0]) / root) for root in (t_low, t_high)]
        mass = float(_in_digits("atom")(first, second))
    ratios = (ratio, ratio) if single else (delta, gamma)
    return (*ratios, *edges, *window, mass, single, hard)


def _split(value: Any) -> tuple[float, float]:
    """A number of many digits as a double and its rounding error."""
    rounded = float(value)
    return rounded, float(value - rounded) if np.isfinite(rounded) else 0.0


def _edge_starts(delta: float, gamma: float) -> Any:
    """The roots number 2, 0 and 1 of the edge equation by its closed form in doubles."""
    closed_form = function(chapter.edge_roots.right, (chapter.k, chapter.delta, chapter.gamma))
    return closed_form(np.array([2.0, 0.0, 1.0]), delta, gamma)


def _edge_root(index: int, start: float, delta: Any, gamma: Any) -> Any:
    """Root number `index` of the edge equation: Newton's method at 50 digits, from a start in doubles.

    Where two roots nearly meet, the closed form itself with more digits.
    """
    value, slope = _edge_polynomial()
    root = mpmath.mpf(float(start))
    accurate = mpmath.mpf(10) ** (5 - _EDGE_DIGITS)
    if abs(slope(root, delta, gamma)) > root**2 / 100:
        for _ in range(8):
            step = value(root, delta, gamma) / slope(root, delta, gamma)
            root -= step
            if abs(step) <= accurate * abs(root):
                return root
    with mpmath.workdps(_TIE_DIGITS):
        return mpmath.re(_in_digits("edge_roots")(index, delta, gamma))


@lru_cache
def _edge_polynomial() -> tuple[Any, Any]:
    """The edge equation as a polynomial that vanishes, and its derivative, for mpmath."""
    value = chapter.edge_equation.left - chapter.edge_equation.right
    arguments = (chapter.t, chapter.delta, chapter.gamma)
    return function(value, arguments, "mpmath"), function(sp.diff(value, chapter.t), arguments, "mpmath")


@lru_cache
def _edge_at(name: str) -> Any:
    """The law of a zero of the discriminant for mpmath, with the closed form of the root of the edge equation as t."""
    laws = {"low": (chapter.lower_edge, 2), "high": (chapter.upper_edge, 0), "middle": (chapter.middle_root, 1)}
    law, index = laws[name]
    root = chapter.edge_roots.right.subs(chapter.k, index)
    expression = law.right.subs(root**2, chapter.t**2).subs(root, chapter.t)
    return function(expression, (chapter.t, chapter.delta, chapter.gamma), "mpmath")


@lru_cache
def _in_digits(name: str) -> Any:
    """The right side of a law for mpmath, as a function of k or t where it has one, then of the ratios."""
    expression = getattr(chapter, name).right
    symbols = (chapter.k, chapter.t, chapter.delta, chapter.gamma)
    return function(expression, tuple(symbol for symbol in symbols if symbol in expression.free_symbols), "mpmath")


# The compiled formulas --------------------------------------------------------------------------------------------


def _by_distance(expression: Any) -> Any:
    """The zeros of the discriminant expressed through x and the distances to them, so that no digit is lost."""
    return expression.subs(
        {chapter.upper: chapter.x + _below, chapter.lower: chapter.x - _above, chapter.middle: chapter.x - _beyond},
        simultaneous=True,
    )


@lru_cache
def _imaginary(single: bool) -> Any:
    """v = −Im m(x + i0) as a function of x, the distances and the ratios."""
    law = chapter.mp_imaginary_part if single else chapter.imaginary_part
    return function(_by_distance(law.right), _ARGUMENTS)


@lru_cache
def _density(single: bool, backend: str) -> Any:
    """The density of `density-law`, of the Marchenko–Pastur limit if `single`, in the same arguments."""
    law = chapter.density_law
    expression = law.right
    if single:
        expression = law.steps[0].equation.rhs.subs(chapter.v, chapter.mp_imaginary_part.right)
    return function(_by_distance(expression), _ARGUMENTS, backend)


@lru_cache
def _by_parts() -> Any:
    """The density as a function of v and x: in one formula, the denominator underflows close to a hard edge."""
    return function(chapter.density_law.steps[0].equation.rhs, (chapter.v, chapter.x))


def _weights(single: bool) -> tuple[Any, ...]:
    """The weights w of the factors 1 + w m of the law's equation."""
    return (sp.Integer(1), chapter.delta) if single else (sp.Integer(1), chapter.delta, chapter.gamma)


@lru_cache
def _distribution(single: bool) -> Any:
    """F as a function of v, the ratios and Re(1 + w m) for each weight w."""
    law = chapter.mp_distribution if single else chapter.distribution_law
    weights = _weights(single)
    factors = sp.symbols(f"factor:{len(weights)}", real=True)
    whole = law.right.xreplace({1 + w * chapter.u: factor for w, factor in zip(weights, factors, strict=True)})
    return function(whole, (chapter.v, chapter.delta, chapter.gamma, *factors))


@lru_cache
def _factor_parts(single: bool, which: int) -> tuple[Any, ...]:
    """A, B, C at x = v = 0, the rest of C, and the root of the discriminant of A p² + B p + C = 0, for p = Re(1 + w m).

    From the equation for u = Re m of `wishart-product-real-part` by u = (p − 1)/w: close to a hard edge p is far
    smaller than the rounding of u, and the part of C that vanishes at a tie must be computed by itself.
    """
    weight = _weights(single)[which]
    arguments = (chapter.x, chapter.v, chapter.delta, chapter.gamma)
    if single:
        equation = chapter.u - chapter.mp_real_part.right
        root = sp.Integer(1)
    else:
        equation = chapter.real_part.steps[0].equation.lhs
        (root,) = (part for part in chapter.real_part.right.atoms(sp.Pow) if part.exp == sp.Rational(1, 2))
    shifted = sp.Poly(sp.expand(equation.subs(chapter.u, (_p - 1) / weight) * weight), _p)
    leading, linear, constant = (shifted.coeff_monomial(_p**order) for order in (2, 1, 0))
    return tuple(function(part, arguments) for part in (leading, linear, *_split_at_zero(constant), 2 * root))


def _split_at_zero(expression: Any) -> tuple[Any, Any]:
    """The part that is free of x and v, as a product, and the rest."""
    at_zero = expression.subs({chapter.x: 0, chapter.v: 0})
    return sp.factor(at_zero), sp.expand(expression - at_zero)


def _factors(single: bool, x: Any, v: Any, delta: Any, gamma: Any) -> list[Any]:
    """Re(1 + w m) for each weight w: the right root, in the form that does not cancel."""
    found = []
    for which in range(len(_weights(single))):
        leading, linear, first, rest, root = (part(x, v, delta, gamma) for part in _factor_parts(single, which))
        constant = first + rest
        if single:
            found.append(-constant / linear)
        else:
            found.append(np.where(linear >= 0, -2 * constant / (linear + root), (root - linear) / (2 * leading)))
    return found


def _moment(order: int, delta: Any, gamma: Any) -> Any:
    """The double sum of the law, term by term."""
    whole, total = chapter.moments.right, 0.0
    (double_sum,) = whole.atoms(sp.Sum)
    (inner, *inner_limits), (outer, *outer_limits) = double_sum.limits
    term = function(whole / double_sum * double_sum.function, (chapter.n, outer, inner, chapter.delta, chapter.gamma))
    first, last = (function(limit, (chapter.n,))(order) for limit in outer_limits)
    ends = [function(limit, (chapter.n, outer)) for limit in inner_limits]
    for i in range(first, last + 1):
        for j in range(ends[0](order, i), ends[1](order, i) + 1):
            total = total + term(float(order), float(i), float(j), delta, gamma)
    return total


@lru_cache
def _variance() -> Any:
    """The variance as one expression: the difference of two nearly equal moments would lose a small one."""
    first, second = (chapter.moments.right.subs(chapter.n, order).doit() for order in (1, 2))
    return function(sp.expand(second - first**2), (chapter.delta, chapter.gamma))


# Density and distribution function at points inside the support --------------------------------------------------


def _pdf(bulk: _Bulk, place: tuple[Array, ...], backend: str, out: Array | None = None) -> Array:
    values = np.empty(place[0].shape) if out is None else out
    inside, single, y = _inside(place), bulk.is_single, place[0]
    if backend == "fast":
        _density(single, backend)(*place, bulk.delta, bulk.gamma, out=values)
    else:
        with np.errstate(all="ignore"):
            values[...] = _density(single, backend)(*place, bulk.delta, bulk.gamma)
    if inside is not True:
        values[~inside] = 0.0
    if y.size and y.min() < _TINY:
        near = np.flatnonzero((y < _TINY) & inside)
        part, point = bulk.part(near), tuple(column[near] for column in place)
        values[near] = _by_parts()(_imaginary(single)(*point, part.delta, part.gamma), point[0])
    _finite("pdf", values)
    if inside is not True and np.any(bulk.hard):
        values[bulk.hard & (y == 0) & ~inside] = np.inf
    return values


def _cdf(bulk: _Bulk, place: tuple[Array, ...], out: Array | None = None) -> Array:
    values = np.empty(place[0].shape) if out is None else out
    inside, single = _inside(place), bulk.is_single
    with np.errstate(all="ignore"):
        v = _imaginary(single)(*place, bulk.delta, bulk.gamma)
        factors = _factors(single, place[0], v, bulk.delta, bulk.gamma)
        values[...] = _distribution(single)(v, bulk.delta, bulk.gamma, *factors)
        np.clip(values, bulk.mass, 1.0, out=values)
    if inside is not True:
        outside = np.where(place[0] < 0, 0.0, np.where(place[2] <= 0, 1.0, bulk.mass))
        values[~inside] = outside[~inside]
    _finite("cdf", values)
    return values


def _inside(place: tuple[Array, ...]) -> Any:
    """True if every point lies inside the support, else which ones do."""
    _, above, below, _ = place
    if above.size and above.min() > 0 and below.min() > 0:
        return True
    return (above > 0) & (below > 0)


def _finite(name: str, values: Any) -> None:
    if not (np.isfinite(values.sum()) or np.isfinite(values).all()):
        raise ArithmeticError(f"{name} left the range of a double; the ratios or the distances are too extreme")


# Quantiles --------------------------------------------------------------------------------------------------------


def _quantile(bulk: _Bulk, level: Array) -> Array:
    """The positions, in units of scale, at which F reaches the levels."""
    values = np.asarray(np.where(level <= bulk.mass, np.where(bulk.mass > 0, 0.0, bulk.low), bulk.high))
    inner = np.flatnonzero((level > bulk.mass) & (level < 1))
    table = None if np.ndim(bulk.delta) else _table(bulk)
    for start in range(0, inner.size, _BLOCK):
        block = inner[start : start + _BLOCK]
        part = bulk.part(block)
        values[block] = part.from_angle(_angles(part, level[block], table))[0]
    return values


def _table(bulk: _Bulk) -> tuple[Array, Array]:
    angles = np.linspace(0, np.pi, _TABLE)
    values = np.maximum.accumulate(_cdf(bulk, bulk.from_angle(angles)))
    values[0], values[-1] = bulk.mass, 1.0
    return angles, values


def _angles(bulk: _Bulk, level: Array, table: tuple[Array, Array] | None) -> Array:
    """The angles at which F = level, by Newton's method inside a bracket that shrinks; bisection where it stalls."""
    low, high, angle = _start(level, bulk.mass, table)
    previous = np.full(level.size, np.inf)
    active = np.arange(level.size)
    for _ in range(_STEPS):
        part, here = bulk.part(active), angle[active]
        place = part.from_angle(here)
        slope = _pdf(part, place, "numpy") * (part.high - part.low) * np.sin(here) / 2
        excess = _cdf(part, place) - level[active]
        low[active] = np.where(excess <= 0, here, low[active])
        high[active] = np.where(excess >= 0, here, high[active])
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            there = here - excess / slope
        halved = np.abs(excess) <= previous[active] / 2
        stalled = ~halved & (np.abs(excess) <= _noise(part, place))
        newton = halved & (there > low[active]) & (there < high[active])
        there = np.where(newton, there, (low[active] + high[active]) / 2)
        done = stalled | (np.abs(excess) <= 2.5e-16) | (np.abs(there - here) <= 1e-15 * here)
        angle[active] = np.where(done, here, there)
        previous[active] = np.abs(excess)
        active = active[~done]
        if not active.size:
            return angle
    raise ArithmeticError(f"the quantile did not converge at q = {float(level[active[0]])!r} within {_STEPS} steps")


def _noise(bulk: _Bulk, place: tuple[Array, ...]) -> Array:
    """What rounding leaves of F: its terms are of the size of v = π x f."""
    y = place[0]
    density = np.where(y > 0, _pdf(bulk, place, "numpy"), 0.0)  # infinite where a hard edge is reached
    return np.asarray(1e-15 * (4 + np.pi * y * density))


def _start(level: Array, mass: Any, table: tuple[Array, Array] | None) -> tuple[Array, Array, Array]:
    """A bracket and a first guess: from the table, by a power law in its outermost cells."""
    if table is None:
        return np.zeros(level.size), np.full(level.size, np.pi), np.full(level.size, np.pi / 2)
    angles, values = table
    cell = np.clip(np.searchsorted(values, level), 1, values.size - 1)
    low, high = angles[cell - 1], angles[cell]
    guess = np.interp(level, values, angles)
    first, last = cell == 1, cell == values.size - 1
    guess = np.where(first, _by_power_law(angles[1], values[1:3] - mass, level - mass), guess)
    guess = np.where(last, np.pi - _by_power_law(angles[1], 1 - values[-2:-4:-1], 1 - level), guess)
    return low, high, np.where((guess > low) & (guess < high), guess, (low + high) / 2)


def _by_power_law(step: float, heights: Array, level: Array) -> Array:
    """Where a power law through the heights at one and at two steps takes the value `level`; 0 if there is none."""
    if not 0 < heights[0] < heights[1]:
        return np.zeros(level.shape)
    power = np.log(2) / np.log(heights[1] / heights[0])
    return np.asarray(step * np.maximum(level / heights[0], 0) ** power)


# Stieltjes transform ----------------------------------------------------------------------------------------------


def _stieltjes(bulk: _Bulk, z: Any) -> Any:
    """G(z), in units of 1/scale. G(z̄) is the conjugate of G(z)."""
    below = z.imag < 0
    point = np.where(below, z.conj(), z)
    delta, gamma = (np.broadcast_to(part, point.shape) for part in (bulk.delta, bulk.gamma))
    if bulk.is_single:
        gamma = np.zeros(point.shape)
    far = np.abs(point) > 1e20 * np.maximum(1, bulk.high)  # all mass is at 0, to all digits
    origin = np.abs(point) < _ORIGIN
    with np.errstate(all="ignore"):
        value = np.where(far, 1 / point, _off_support(bulk, np.where(far | origin, 1j, point), delta, gamma))
        at_origin = np.where(bulk.hard | (bulk.mass > 0), np.inf, _resolvent()(-1.0, 1 - delta, 1 - gamma))
        value = np.where(origin, at_origin, value)
        place = bulk.from_outside(point.real)
    value = np.where(point.imag == 0, value.real, value)
    on_support = (point.imag == 0) & (place[1] > 0) & (place[2] > 0)
    if on_support.any():
        value[on_support] = _on_support(bulk.part(on_support), tuple(part[on_support] for part in place))
    if np.isnan(value).any():
        raise ArithmeticError(f"stieltjes left the range of a double at z = {complex(z[np.isnan(value)][0])!r}")
    return np.where(below, value.conj(), value)


def _on_support(bulk: _Bulk, place: tuple[Array, ...]) -> Any:
    """The limit from above: m = u − iv, with G = (1 + m)/x."""
    imaginary = np.pi * _pdf(bulk, place, "numpy")
    single, x = bulk.is_single, place[0]
    with np.errstate(all="ignore"):
        first, *_ = _factors(single, x, imaginary * x, bulk.delta, bulk.gamma)
    return first / x - 1j * imaginary


def _off_support(bulk: _Bulk, z: Any, delta: Any, gamma: Any) -> Any:
    """G for Im z >= 0, off the support: the root with Im m <= 0 and Re m inside the window of the edges.

    The cubic is solved for p = 1 + w m, with w the largest of 1, δ, γ: near z = 0, p is far smaller than the rounding
    of m. Then G = (1 + m)/z, or by the law m/((1 + δm)(1 + γm)) where 1 + m is small.
    """
    ratios = np.array([np.ones(z.shape), delta, gamma])
    largest = np.argmax(ratios, axis=0)
    coefficients = np.empty((4, z.size), dtype=complex)
    for which in range(len(ratios)):
        here = largest == which
        for order, part in enumerate(_shifted_polynomial(which)):
            coefficients[order, here] = sum(piece(z[here], delta[here], gamma[here]) for piece in part)
    roots = _roots(coefficients)
    low, high = (np.broadcast_to(edge, z.shape)[:, None] for edge in (bulk.p_low, bulk.p_high))
    outside = np.maximum(low - roots.real, 0) + np.maximum(roots.real - high, 0) + np.maximum(roots.imag, 0)
    outside = np.where(np.isfinite(roots), outside, np.inf)
    p = np.take_along_axis(roots, np.argmin(outside, axis=1)[:, None], axis=1)[:, 0]
    p = np.where(p.imag > 0, p.real, p)
    w = ratios.max(axis=0)
    m = (p - 1) / w
    by_law = _resolvent()(m, (1 - delta) + delta * p, (1 - gamma) + gamma * p)  # 1 + δm, 1 + γm for w = 1
    return np.where((w == 1) & (np.abs(p) < 0.5) & (np.maximum(delta, gamma) < 1), by_law, (w - 1 + p) / w / z)


def _roots(coefficients: Any) -> Any:
    """All roots of cubics (shape (n, 3)), given their coefficients, highest order first (shape (4, n)).

    Eigenvalues of the companion matrices for 1/p, so that small roots are accurate, then Ehrlich and Aberth's
    simultaneous Newton steps, in which no two roots fall together.
    """
    companion = np.zeros((coefficients.shape[1], 3, 3), dtype=complex)
    companion[:, 1, 0] = companion[:, 2, 1] = 1
    last = np.where(coefficients[3] == 0, 1, coefficients[3])
    for order in range(3):
        companion[:, order, 2] = -coefficients[order] / last
    roots = 1 / np.linalg.eigvals(companion)
    for _ in range(_ABERTH_STEPS):
        value, slope = np.zeros_like(roots), np.zeros_like(roots)
        for coefficient in coefficients[:, :, None]:
            value, slope = value * roots + coefficient, slope * roots + value
        newton = np.where(value == 0, 0, value / slope)
        gaps = roots[:, :, None] - roots[:, None, :]
        repelled = np.where(gaps == 0, 0, 1 / np.where(gaps == 0, 1, gaps)).sum(axis=2)
        step = newton / (1 - newton * repelled)
        roots = np.where(np.isfinite(step), roots - step, roots)
    return roots


@lru_cache
def _resolvent() -> Any:
    """G = (1 + m)/x as a function of m, 1 + δm and 1 + γm, with x by the law."""
    x = chapter.product.right / chapter.m
    weights = _weights(False)[1:]
    factors = sp.symbols(f"factor:{len(weights)}")
    named = {1 + weight * chapter.m: factor for weight, factor in zip(weights, factors, strict=True)}
    return function(sp.factor((1 + chapter.m) / x).xreplace(named), (chapter.m, *factors))


@lru_cache
def _shifted_polynomial(which: int) -> tuple[Any, ...]:
    """Coefficients, highest order first, of the law's cubic in p = 1 + w m, each as its value at x = 0 and the rest."""
    weight = _weights(False)[which]
    cubic = (chapter.product.right - chapter.x * chapter.m).subs(chapter.m, (_p - 1) / weight)
    shifted = sp.Poly(sp.expand(cubic * weight**2), _p)
    arguments = (chapter.x, chapter.delta, chapter.gamma)
    parts = (_split_at_zero(shifted.coeff_monomial(_p**order)) for order in (3, 2, 1, 0))
    return tuple(tuple(function(piece, arguments) for piece in part) for part in parts)


# Input --------------------------------------------------------------------------------------------------------------


def _complex_array(name: str, value: Any) -> Any:
    if np.asarray(value).dtype.kind != "c":
        return real_array(name, value, "a complex number off or on the real axis").astype(complex)
    array = np.asarray(value).astype(complex)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got {value!r}")
    return array


def _shape(size: Any) -> tuple[int, ...]:
    array = real_array("size", size, "a number of draws or a shape")
    if array.ndim > 1 or (array < 0).any() or (array != np.round(array)).any():
        raise ValueError(f"size must be an integer >= 0 or a tuple of them, got {size!r}")
    return tuple(int(length) for length in np.atleast_1d(array))


def _generator(random_state: Any) -> np.random.Generator:
    if isinstance(random_state, bool | np.bool_):
        raise ValueError(f"random_state must be a seed, a numpy Generator or None, got {random_state!r}")
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise ValueError(f"random_state must be a seed, a numpy Generator or None, got {random_state!r}") from error
