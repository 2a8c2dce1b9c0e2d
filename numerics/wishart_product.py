"""The product of two Wishart laws as a distribution: density, CDF, quantiles, moments, Stieltjes transform.

Every formula is compiled from `derivations.wishart_product`; this module adds the edges at 50 digits, the branch
of the cubic off the axis, and the inversion of the CDF.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import mpmath
import numpy as np
from scipy.optimize import elementwise

from derivations import wishart_product as chapter
from numerics.compile import FAST_FROM, fast_available, function
from numerics.validate import check, plain, real_array

_EDGE_DIGITS = 50
_BLOCK = 8192
_above, _below, _beyond = (chapter.variable(name, "distance") for name in ("above_lower", "below_upper", "above_middle"))


@lru_cache(maxsize=4096)
def _zeros(delta: float, gamma: float) -> tuple[float, ...]:
    """Lower edge, upper edge and third zero of the discriminant, each as a rounded double and its rounding error."""
    laws = (chapter.lower_edge, chapter.upper_edge, chapter.middle_root)
    if delta == 0 or gamma == 0:
        laws, ratio = (chapter.mp_lower_edge, chapter.mp_upper_edge), max(delta, gamma)
        delta = gamma = ratio
    zeros: list[float] = []
    with mpmath.workdps(_EDGE_DIGITS):
        for law in laws:
            value = function(law.right, (chapter.delta, chapter.gamma), "mpmath")(mpmath.mpf(delta), mpmath.mpf(gamma))
            value = mpmath.mpf(0) if abs(value) < mpmath.mpf(10) ** (20 - _EDGE_DIGITS) else mpmath.re(value)
            zeros += [float(value), float(value - float(value))]
    return tuple(zeros) + (0.0,) * (6 - len(zeros))


def _by_distance(expression: Any) -> Any:
    """The zeros of the discriminant expressed through x and the distances to them, so that no digit is lost."""
    return expression.subs(
        {chapter.upper: chapter.x + _below, chapter.lower: chapter.x - _above, chapter.middle: chapter.x - _beyond},
        simultaneous=True,
    )


class WishartProduct:
    """The law of S/κ: the free product of Marchenko–Pastur laws of ratios `delta` and `gamma`, times `scale`.

    Parameters
    ----------
    delta, gamma : float or array, >= 0, not both 0
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
        if (size <= 0).any():
            raise ValueError(f"scale must be > 0, got {scale!r} (scale = κ = ‖w‖², the noise level)")
        if ((first == 0) & (second == 0)).any():
            raise ValueError("delta and gamma must not both be 0: the law is then the single point `scale`; give one ratio")
        self._delta, self._gamma, self._scale = np.broadcast_arrays(first, second, size)
        zeros = [_zeros(float(a), float(b)) for a, b in zip(self._delta.flat, self._gamma.flat, strict=True)]
        shape = self._delta.shape
        self._zeros = tuple(np.array(column).reshape(shape) for column in zip(*zeros, strict=True))

    def __repr__(self) -> str:
        values = (plain(np.asarray(v)) for v in (self._delta, self._gamma, self._scale))
        return "WishartProduct(delta={!r}, gamma={!r}, scale={!r})".format(*values)

    # Shape of the law ------------------------------------------------------------------------------------------

    def support(self) -> tuple[Any, Any]:
        """The interval of the continuous part, in units of the eigenvalues."""
        return plain(self._zeros[0] * self._scale), plain(self._zeros[2] * self._scale)

    @property
    def atom(self) -> Any:
        """The mass at 0."""
        return plain(np.asarray(function(chapter.atom.right, (chapter.delta, chapter.gamma))(self._delta, self._gamma)))

    def moment(self, order: int) -> Any:
        """The moment ∫ xⁿ dμ of integer order >= 0, in units of scaleⁿ (law `wishart-product-moments`)."""
        if isinstance(order, bool) or order != int(order) or order < 0:
            raise ValueError(f"order must be an integer >= 0, got {order!r}")
        if order == 0:
            return plain(np.ones(self._delta.shape))
        return plain(_moment(int(order))(self._delta, self._gamma) * self._scale ** int(order))

    def mean(self) -> Any:
        """The mean: `scale`."""
        return self.moment(1)

    def var(self) -> Any:
        """The variance, in units of scale²."""
        return plain(np.asarray(self.moment(2) - self.moment(1) ** 2))

    # Density and distribution function -------------------------------------------------------------------------

    def pdf(self, x: Any, backend: str = "auto") -> Any:
        """Density of the continuous part at x; infinite at a hard edge, 0 outside the support.

        `backend`: "numpy", "fast", or "auto" (the fast one from 20,000 points, where installed).
        """
        place = real_array("x", x, "the point, an eigenvalue")
        chosen = _backend(backend, place.size)
        return plain(self._in_blocks(lambda part: _Grid(self, part).density(chosen), place))

    def _in_blocks(self, evaluate: Any, place: Any) -> Any:
        """Evaluate block by block, so that the temporaries stay in the cache (several times faster for long arrays)."""
        if self._delta.ndim or place.size <= _BLOCK:
            return evaluate(place)
        flat, values = place.ravel(), np.empty(place.size)
        for start in range(0, flat.size, _BLOCK):
            values[start : start + _BLOCK] = evaluate(flat[start : start + _BLOCK])
        return values.reshape(place.shape)

    def pdf_near_edge(self, distance: Any, edge: str = "upper") -> Any:
        """Density at `distance` (> 0, in units of the eigenvalues) inside the support from its upper or lower edge.

        The distance enters the formula itself, so it may be far below the rounding of the edge.
        """
        if edge not in ("upper", "lower"):
            raise ValueError(f"edge must be 'upper' or 'lower', got {edge!r}")
        depth = real_array("distance", distance, "distance to the edge, inwards")
        width = np.asarray(self.support()[1] - np.asarray(self.support()[0]))
        if ((depth <= 0) | (depth >= width)).any():
            raise ValueError(f"distance must be > 0 and below the width of the support, got {distance!r}")
        return plain(_Grid(self, depth / self._scale, edge).density())

    def cdf(self, x: Any) -> Any:
        """Distribution function F(x), the atom included (law `wishart-product-distribution`)."""
        place = real_array("x", x, "the point, an eigenvalue")
        return plain(self._in_blocks(lambda part: _Grid(self, part).distribution(self.atom), place))

    def ppf(self, q: Any) -> Any:
        """Quantile: the smallest x with F(x) >= q, for q in [0, 1]."""
        level = real_array("q", q, "a probability")
        if ((level < 0) | (level > 1)).any():
            raise ValueError(f"q must be >= 0 and <= 1, got {q!r} (a probability)")
        level, *parts = np.broadcast_arrays(level, self._delta, self._gamma, *self._zeros[:3:2], np.asarray(self.atom))
        delta, gamma, low, high, atom = parts
        values = np.where(level <= atom, np.where(atom > 0, 0.0, low), high)
        inner = (level > atom) & (level < 1)
        if inner.any():
            values[inner] = _quantile(*(part[inner] for part in (level, delta, gamma, low, high)))
        return plain(values * self._scale)

    def rvs(self, size: Any = None, random_state: Any = None) -> Any:
        """Independent draws by inversion. `random_state`: a seed, a `numpy.random.Generator` or None."""
        generator = np.random.default_rng(random_state)
        return self.ppf(generator.random(self._delta.shape if size is None else size))

    # Stieltjes transform ---------------------------------------------------------------------------------------

    def stieltjes(self, z: Any) -> Any:
        """G(z) = ∫ dμ/(z − x), complex, in units of 1/scale. On the support: its limit from above.

        Infinite at z = 0 where there is an atom or a hard edge.
        """
        point = np.asarray(z)
        if point.dtype.kind not in "iufc" or not np.isfinite(point).all():
            raise ValueError(f"z must be a finite complex number or an array of them, got {z!r}")
        point, delta, gamma, scale = np.broadcast_arrays(point.astype(complex), self._delta, self._gamma, self._scale)
        window = [np.broadcast_to(edge, point.shape) for edge in self._window()]
        upper = np.where(point.imag < 0, point.conj(), point) / scale  # G(z̄) is the conjugate of G(z)
        m = _physical_root(upper, delta, gamma, *window)
        with np.errstate(divide="ignore", invalid="ignore"):
            value = m / ((1 + delta * m) * (1 + gamma * m))  # (1 + m)/z by the cubic: no cancellation at small z
        value = np.where(np.isfinite(value), value, np.inf)
        return plain(np.where(point.imag < 0, value.conj(), value) / scale)

    def _window(self) -> tuple[Any, Any]:
        """1/t at the lower and at the upper edge: the real parts between which the physical root lies."""
        edges = [_edge_roots(float(a), float(b)) for a, b in zip(self._delta.flat, self._gamma.flat, strict=True)]
        low, high = (np.array(column).reshape(self._delta.shape) for column in zip(*edges, strict=True))
        return 1 / low, 1 / high


class _Grid:
    """Points and parameters broadcast together, and the arguments of the compiled formulas inside the support."""

    def __init__(self, law: WishartProduct, place: Any, edge: str | None = None) -> None:
        low, low_error, high, high_error, middle, middle_error = law._zeros
        scaled = place / law._scale if edge is None else place
        if edge is None:
            self.y = scaled
            above, below = (scaled - low) - low_error, (high - scaled) + high_error
        elif edge == "upper":
            below = scaled
            self.y, above = (high - scaled) + high_error, (high - low) - scaled
        else:
            above = scaled
            self.y, below = (low + scaled) + low_error, (high - low) - scaled
        beyond = (self.y - middle) - middle_error
        self._high = high
        self._shape = np.broadcast_shapes(self.y.shape, low.shape)
        self.y = self.spread(self.y)
        self.inside = (self.spread(above) > 0) & (self.spread(below) > 0)
        self.hard_edge = (self.y == 0) & (self.spread(low) == 0) & (self.spread(np.asarray(law.atom)) >= 0)
        self.hard_edge &= ~self.inside
        single = (law._delta == 0) | (law._gamma == 0)
        if single.any() and not single.all():
            raise ValueError("delta or gamma is 0 at some entries only; treat the Marchenko–Pastur limit separately")
        self.single = bool(single.all())
        ratio = np.maximum(law._delta, law._gamma)
        self._delta, self._gamma = (ratio, ratio) if self.single else (law._delta, law._gamma)
        self._distances = (above, below, beyond)
        self._scale = law._scale

    def spread(self, array: Any) -> Any:
        return np.broadcast_to(array, self._shape)

    def _pick(self, array: Any) -> Any:
        return array if np.ndim(array) == 0 else self.spread(array)[self.inside]

    def arguments(self) -> tuple[Any, ...]:
        """x, the three distances, delta and gamma at the points inside the support."""
        return tuple(self._pick(part) for part in (self.y, *self._distances, self._delta, self._gamma))

    def density(self, backend: str = "numpy") -> Any:
        values = np.where(self.hard_edge, np.inf, 0.0)
        if self.inside.any():
            values[self.inside] = _density(self.single, backend)(*self.arguments()) / self._pick(self._scale)
        return values

    def distribution(self, atom: Any) -> Any:
        values = np.where(self.y < 0, 0.0, np.where(self.y >= self._high, 1.0, self.spread(np.asarray(atom))))
        if self.inside.any():
            arguments = self.arguments()
            imaginary = _part("imaginary", self.single)(*arguments)
            real = _part("real", self.single)(*arguments, imaginary)
            values[self.inside] = _distribution(self.single)(real, imaginary, *arguments[-2:])
        return values


_ARGUMENTS = (chapter.x, _above, _below, _beyond, chapter.delta, chapter.gamma)


def _backend(name: str, points: int) -> str:
    if name != "auto":
        return name
    return "fast" if points >= FAST_FROM and fast_available() else "numpy"


@lru_cache
def _density(single: bool, backend: str) -> Any:
    """The density of `density-law`, of the Marchenko–Pastur limit if `single`, as a function of x and distances."""
    law = chapter.density_law
    expression = law.right
    if single:
        expression = law.steps[0].equation.rhs.subs(chapter.v, chapter.mp_imaginary_part.right)
    return function(_by_distance(expression), _ARGUMENTS, backend)


@lru_cache
def _part(which: str, single: bool) -> Any:
    imaginary = chapter.mp_imaginary_part if single else chapter.imaginary_part
    real = chapter.mp_real_part if single else chapter.real_part
    if which == "imaginary":
        return function(_by_distance(imaginary.right), _ARGUMENTS)
    return function(_by_distance(real.right), (*_ARGUMENTS, chapter.v))


@lru_cache
def _distribution(single: bool) -> Any:
    law = chapter.mp_distribution if single else chapter.distribution_law
    return function(law.right, (chapter.u, chapter.v, chapter.delta, chapter.gamma))


@lru_cache
def _moment(order: int) -> Any:
    expression = chapter.moments.right.subs(chapter.n, order).doit()
    compiled = function(expression, (chapter.delta, chapter.gamma))
    return lambda delta, gamma: np.broadcast_to(compiled(delta, gamma), np.shape(delta))


@lru_cache(maxsize=4096)
def _edge_roots(delta: float, gamma: float) -> tuple[float, float]:
    """t at the lower and at the upper edge."""
    compiled = function(chapter.edge_roots.right, (chapter.k, chapter.delta, chapter.gamma), "mpmath")
    with mpmath.workdps(_EDGE_DIGITS):
        low, high = (mpmath.re(compiled(index, mpmath.mpf(delta), mpmath.mpf(gamma))) for index in (2, 0))
    return float(low), float(high)


def _quantile(level: Any, delta: Any, gamma: Any, low: Any, high: Any) -> Any:
    """Solve F = level in the angle φ of x = low + (high − low) sin²(φ/2), in which F is smooth at both edges."""

    def place(angle: Any, low: Any, high: Any) -> Any:
        return low + (high - low) * np.sin(angle / 2) ** 2

    def excess(angle: Any, level: Any, delta: Any, gamma: Any, low: Any, high: Any) -> Any:
        return WishartProduct(delta, gamma).cdf(place(angle, low, high)) - level

    tolerances = {"xatol": 1e-15, "xrtol": 4e-16, "fatol": 0.0, "frtol": 0.0}
    bracket = (np.zeros_like(level), np.full_like(level, np.pi))
    solution = elementwise.find_root(excess, bracket, args=(level, delta, gamma, low, high), tolerances=tolerances)
    if not solution.success.all():
        raise ArithmeticError(f"the quantile did not converge at q = {level[~solution.success][0]!r}")
    return place(solution.x, low, high)


def _physical_root(z: Any, delta: Any, gamma: Any, window_low: Any, window_high: Any) -> Any:
    """The root m of the cubic with Im m <= 0 and Re m inside the window of the edges, for Im z >= 0.

    The cubic in t = 1/m is monic, so it stays well scaled when delta·gamma is small.
    """
    flat = [np.ravel(part) for part in (z, delta, gamma)]
    point, first, second = flat
    companion = np.zeros((point.size, 3, 3), dtype=complex)
    companion[:, 1, 0] = companion[:, 2, 1] = 1
    # (t + 1)(t + δ)(t + γ) − z t², lowest order last column first
    coefficients = _map_polynomial()(first, second)
    companion[:, 0, 2], companion[:, 1, 2] = -coefficients[0], -coefficients[1]
    companion[:, 2, 2] = -(coefficients[2] - point)
    roots = np.linalg.eigvals(companion)
    with np.errstate(divide="ignore", invalid="ignore"):
        m = 1 / roots
    middle = (np.ravel(window_low) + np.ravel(window_high))[:, None] / 2
    outside = np.abs(m.real - middle) - (np.ravel(window_high) - np.ravel(window_low))[:, None] / 2
    score = np.where(np.isfinite(m), np.maximum(outside, 0) + np.maximum(m.imag, 0), np.inf)
    chosen = np.take_along_axis(roots, np.argmin(score, axis=1)[:, None], axis=1)[:, 0]
    for _ in range(2):  # Newton on the cubic: the eigenvalues are backward stable, not accurate root by root
        value = ((chosen + coefficients[2] - point) * chosen + coefficients[1]) * chosen + coefficients[0]
        slope = (3 * chosen + 2 * (coefficients[2] - point)) * chosen + coefficients[1]
        step = np.where(slope != 0, value / np.where(slope != 0, slope, 1), 0)
        chosen = chosen - step
    m = 1 / chosen
    return np.where(m.imag > 0, m.real, m).reshape(np.shape(z))


@lru_cache
def _map_polynomial() -> Any:
    """Coefficients of t⁰, t¹, t² of the map's numerator, compiled."""
    numerator = chapter.sp.Poly(chapter.sp.expand(chapter.spectral_map.right * chapter.t**2), chapter.t)
    parts = [numerator.coeff_monomial(chapter.t**order) for order in range(3)]
    compiled = [function(part, (chapter.delta, chapter.gamma)) for part in parts]
    return lambda delta, gamma: [one(delta, gamma) for one in compiled]
