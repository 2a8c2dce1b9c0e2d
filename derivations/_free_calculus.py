"""The objects of the free-probability calculus: laws and the operations that combine them, as exact algebra.

Each law knows its free cumulants and moments, its R- and S-transform where they have a closed form, the polynomial
P(z, G) = 0 of its Cauchy transform, its atoms. Nothing here is a float; parameters may stay symbols.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import sympy as sp
from sympy import Integer

from derivations.core import variable

z = variable(
    "z", "spectral argument, off the support", sp.S.Complexes, typical=(sp.Rational(9), sp.Rational(-5), 3 + 2 * sp.I)
)
g = variable("g", "value of the Cauchy transform", sp.S.Complexes, typical=(sp.Rational(1, 9), sp.Rational(-1, 7)))
m = variable(
    "m", "value of the moment transform z G(z) − 1", sp.S.Complexes, typical=(sp.Rational(1, 5), sp.Rational(-1, 4))
)

MAXIMUM_DENOMINATOR = 12  # of the exponent of a power of the free product: its polynomial's degree grows with it
LONG = 1000  # denominator of an exponent from which on powers of numbers are taken with DIGITS digits
DIGITS = 60


def exact(name: str, value: Any) -> Any:
    """A parameter as an exact SymPy object; a float is read as its shortest decimal. Raises ValueError otherwise."""
    if isinstance(value, (bool, str)) or value is None:
        raise ValueError(f"{name} must be a number or a SymPy expression, got {value!r}")
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            raise ValueError(f"{name} must be finite, got {value}")
        fraction = Fraction(repr(value))
        return sp.Rational(fraction.numerator, fraction.denominator)
    expression = Integer(0) + value
    if isinstance(expression, sp.Float):
        return exact(name, float(expression))
    if expression.is_finite is False or expression is sp.nan:
        raise ValueError(f"{name} must be finite, got {value}")
    if expression.is_real is False:
        raise ValueError(f"{name} must be real, got {value}")
    return expression


def _require(name: str, value: Any, condition: Any, allowed: str, meaning: str) -> None:
    """Refuse a parameter whose condition is decided and false; an undecided one (a symbol) passes."""
    if condition in (sp.false, False):
        raise ValueError(f"{name} must be {allowed}, got {value} ({meaning})")


@dataclass(frozen=True)
class Point:
    """A point of a law's curve: z, the Cauchy transform there, and factor = z − 1/G.

    The factor is R(G), and 1/S(m) at m = z G − 1: free sums add it, free products multiply it.
    """

    z: Any
    value: Any
    factor: Any


def _point(at: Any, value: Any) -> Point:
    return Point(at, value, at - 1 / value)


# ---------------------------------------------------------------------- truncated power series, lists of coefficients


def _tidy(expression: Any, simplify: Any = sp.expand) -> Any:
    """Exact numbers need no simplification, and it would cost most of the time."""
    return expression if expression.is_Rational else simplify(expression)


def _total(terms: Any) -> Any:
    return sum(terms, Integer(0))


def _times(a: Sequence[Any], b: Sequence[Any]) -> list[Any]:
    return [_tidy(_total(a[j] * b[k - j] for j in range(k + 1))) for k in range(min(len(a), len(b)))]


def _raised(base: Any, exponent: Any) -> Any:
    """base^exponent; of a positive number by a long fraction as a decimal.

    SymPy writes 12^(p/q) as a root of whole powers of 2 and 3, of order q: their digits would fill the memory.
    """
    if base.is_number and exponent.is_Rational and exponent.q > LONG:
        return sp.Rational(sp.Float(base.evalf(DIGITS), DIGITS) ** exponent)
    return base**exponent


def _power(a: Sequence[Any], exponent: Any) -> list[Any]:
    """a^exponent for a series with a[0] ≠ 0 (the recurrence of Miller)."""
    out = [_raised(a[0], exponent)]
    for k in range(1, len(a)):
        terms = (((exponent + 1) * j - k) * a[j] * out[k - j] for j in range(1, k + 1))
        out.append(_tidy(_total(terms) / (k * a[0]), sp.cancel))
    return out


def _reversion(a: Sequence[Any]) -> list[Any]:
    """The inverse function of a[0]·y + a[1]·y² + …, as coefficients of the same form (Lagrange)."""
    return [_tidy(_power(a[:k], Integer(-k))[k - 1] / k, sp.cancel) for k in range(1, len(a) + 1)]


def moments_of(cumulants: Sequence[Any]) -> list[Any]:
    """Moments m_1, m_2, … of free cumulants κ_1, κ_2, …: M(y) = C(y M(y)) (Speicher)."""
    count = len(cumulants)
    series = [Integer(1)] + [Integer(0)] * count
    for order in range(1, count + 1):
        total, power = Integer(0), [Integer(1)] + [Integer(0)] * count
        for size in range(1, order + 1):
            power = _times(power, series)
            total += cumulants[size - 1] * power[order - size]
        series[order] = _tidy(total)
    return series[1:]


def cumulants_of(moments: Sequence[Any]) -> list[Any]:
    """Free cumulants of moments, the inverse of `moments_of`."""
    cumulants: list[Any] = []
    for order in range(1, len(moments) + 1):
        without = moments_of([*cumulants, Integer(0)])[-1]
        cumulants.append(_tidy(moments[order - 1] - without))
    return cumulants


def s_coefficients(moments: Sequence[Any]) -> list[Any]:
    """Taylor coefficients of the S-transform of moments with m_1 ≠ 0: S(m) = χ(m)(1 + m)/m."""
    chi = _reversion(moments)
    return [_tidy(c + (chi[k - 1] if k else 0), sp.cancel) for k, c in enumerate(chi)]


def moments_of_s(coefficients: Sequence[Any]) -> list[Any]:
    """Moments of Taylor coefficients of an S-transform."""
    chi: list[Any] = []
    for c in coefficients:
        chi.append(_tidy(c - (chi[-1] if chi else 0), sp.cancel))
    return _reversion(chi)


# ---------------------------------------------------------------------- laws


class FreeLaw:
    """A probability law on the real line with all moments: base of the calculus.

    `a + b` free sum, `a * b` free product (one of the two on [0, ∞)), `c * a` and `a * c` scaling, `a + c` shift by a
    number, `-a` and `a - b`; methods `sum_power(t)`, `product_power(t)`, `compress(fraction)`, `inverse()`.
    """

    # Whether the law lives on [0, ∞); None where its parameters do not decide it.
    nonnegative: bool | None = None

    # -- given by each law: cumulants or moments, the curve, and atoms where there are any

    def cumulants(self, count: int) -> list[Any]:
        """The free cumulants κ_1 … κ_count, exact."""
        return cumulants_of(self.moments(count))

    def moments(self, count: int) -> list[Any]:
        """The moments m_1 … m_count, exact."""
        return moments_of(self.cumulants(count))

    def _polynomial(self) -> Any:
        (inner,) = self.operands
        return inner.polynomial.subs(_inside(self), simultaneous=True)

    @property
    def operands(self) -> tuple[FreeLaw, ...]:
        """The laws that an operation acts on; none for a law that is given."""
        return tuple(v for f in fields(self) if isinstance(v := getattr(self, f.name), FreeLaw))  # type: ignore[arg-type]

    def outside(self, *inner: Point) -> Point:
        """The point of this law's curve from points of its operands' curves (with equal G for a sum, m for a product).

        Raises NotImplementedError for a law without operands.
        """
        raise NotImplementedError(f"{type(self).__name__} has no operands")

    def atoms(self) -> tuple[tuple[Any, Any], ...]:
        """Atoms as (position, weight); a weight that depends on a symbol may be a Max with 0."""
        return ()

    # -- common

    @property
    def mean(self) -> Any:
        """The first moment."""
        return self.moments(1)[0]

    @property
    def variance(self) -> Any:
        """The second free cumulant."""
        return self.cumulants(2)[1]

    @cached_property
    def polynomial(self) -> Any:
        """The irreducible polynomial P with P(z, G(z)) = 0, in the symbols `z` and `g`."""
        return _branch_factor(self, self._polynomial())

    @cached_property
    def moment_polynomial(self) -> Any:
        """The same curve in the moment transform: Q with Q(z, z G − 1) = 0, in the symbols `z` and `m`."""
        return _primitive(self.polynomial.subs(g, (1 + m) / z), z, m)

    def r_transform(self) -> Any:
        """R(g), with G(R(g) + 1/g) = g. Raises ValueError where it has no closed form (degree above 2)."""
        shifted = _primitive(self.polynomial.subs(z, z + 1 / g), z, g)
        return _regular_root(shifted, z, g, self.mean, f"the R-transform of {self}")

    def s_transform(self) -> Any:
        """S(m) = χ(m)(1 + m)/m. Raises ValueError for mean 0, and where it has no closed form (degree above 2)."""
        if self.mean == 0:
            raise ValueError(f"{self} has mean 0 and therefore no S-transform; use the R-transform or the polynomial")
        inverse = _primitive(self.moment_polynomial.subs(z, (1 + m) / (m * z)), z, m)
        return _regular_root(inverse, z, m, 1 / self.mean, f"the S-transform of {self}")

    @cached_property
    def discriminant(self) -> Any:
        """Square-free polynomial in z: the discriminant of P in G and P's leading coefficient.

        Every edge of the support, every pole and every atom is among its real roots.
        """
        polynomial = sp.Poly(self.polynomial, g)
        candidates = sp.discriminant(polynomial) * polynomial.LC() if polynomial.degree() > 1 else polynomial.LC()
        return sp.Mul(*[f for f, _ in sp.factor_list(sp.numer(sp.together(candidates)))[1] if f.has(z)])

    def edges(self) -> list[Any]:
        """The real roots of `discriminant`, from left to right: every edge is among them. Needs numeric parameters."""
        free = self.discriminant.free_symbols - {z}
        if free:
            raise ValueError(f"edges need numbers for {', '.join(sorted(s.name for s in free))}; substitute them first")
        return sp.Poly(self.discriminant, z).real_roots() if self.discriminant.has(z) else []

    @property
    def free_symbols(self) -> set[Any]:
        """The symbols among the parameters."""
        values = [getattr(self, field.name) for field in fields(self)]  # type: ignore[arg-type]
        parts = [part for value in values for part in (value if isinstance(value, tuple) else (value,))]
        return set().union(*(part.free_symbols for part in parts))

    # -- operations

    def subs(self, values: Any) -> FreeLaw:
        """The law with parameters replaced: a mapping from symbols to numbers or expressions."""
        exchanged = {}
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            parts = tuple(v.subs(values) for v in value) if isinstance(value, tuple) else value.subs(values)
            exchanged[field.name] = parts
        return replace(self, **exchanged)  # type: ignore[type-var]

    def __add__(self, other: Any) -> FreeLaw:
        return FreeSum(self, other) if isinstance(other, FreeLaw) else Shifted(self, other)

    __radd__ = __add__

    def __mul__(self, other: Any) -> FreeLaw:
        return FreeProduct(self, other) if isinstance(other, FreeLaw) else Scaled(self, other)

    __rmul__ = __mul__

    def __neg__(self) -> FreeLaw:
        return Scaled(self, -1)

    def __sub__(self, other: Any) -> FreeLaw:
        return self + (-other)

    def sum_power(self, exponent: Any) -> FreeLaw:
        """The free sum of `exponent` copies, any real exponent ≥ 1."""
        return SumPower(self, exponent)

    def product_power(self, exponent: Any) -> FreeLaw:
        """The free product of `exponent` copies, any real exponent ≥ 1 (a polynomial needs a rational one)."""
        return ProductPower(self, exponent)

    def compress(self, fraction: Any) -> FreeLaw:
        """The law of a free compression to a fraction of the dimension, 0 < fraction ≤ 1."""
        return Compression(self, fraction)

    def inverse(self) -> FreeLaw:
        """The law of the inverse of a positive variable with no mass at 0."""
        return Inverse(self)


@dataclass(frozen=True)
class Semicircle(FreeLaw):
    """Semicircle of variance `spread` > 0 around `centre`."""

    spread: Any = 1
    centre: Any = 0

    def __post_init__(self) -> None:
        _exact_fields(self)
        _require("spread", self.spread, self.spread > 0, "> 0", "the variance of a semicircle")

    @property
    def nonnegative(self) -> bool | None:  # type: ignore[override]
        """Whether the left edge, mean − 2σ, is at least 0."""
        return _decided(self.centre - 2 * sp.sqrt(self.spread) >= 0)

    def cumulants(self, count: int) -> list[Any]:
        return [self.centre, self.spread, *[Integer(0)] * count][:count]

    def r_transform(self) -> Any:
        return self.centre + self.spread * g

    def _polynomial(self) -> Any:
        return self.spread * g**2 + (self.centre - z) * g + 1


@dataclass(frozen=True)
class MarchenkoPastur(FreeLaw):
    """Marchenko–Pastur of ratio c = dimension/samples > 0, mean 1."""

    ratio: Any
    nonnegative = True

    def __post_init__(self) -> None:
        _exact_fields(self)
        _require("ratio", self.ratio, self.ratio > 0, "> 0", "dimension over number of samples")

    def cumulants(self, count: int) -> list[Any]:
        return [self.ratio**k for k in range(count)]

    def r_transform(self) -> Any:
        return 1 / (1 - self.ratio * g)

    def s_transform(self) -> Any:
        return 1 / (1 + self.ratio * m)

    def _polynomial(self) -> Any:
        return self.ratio * z * g**2 - (z + self.ratio - 1) * g + 1

    def atoms(self) -> tuple[tuple[Any, Any], ...]:
        return _atoms([(Integer(0), 1 - 1 / self.ratio)])


@dataclass(frozen=True)
class Atoms(FreeLaw):
    """A finite mixture of distinct points with weights > 0 that sum to 1 (equal ones if None)."""

    points: tuple[Any, ...]
    weights: tuple[Any, ...] | None = None

    def __post_init__(self) -> None:
        points = tuple(exact("points", p) for p in self.points)
        if not points:
            raise ValueError("points must not be empty (one point is enough)")
        equal = (sp.Rational(1, len(points)),) * len(points)
        weights = equal if self.weights is None else tuple(exact("weights", w) for w in self.weights)
        if len(weights) != len(points):
            raise ValueError(f"weights must have one entry a point ({len(points)}), got {len(weights)}")
        if len(set(points)) != len(points):
            raise ValueError(f"points must be distinct, got {points}; add the weights of equal ones")
        for w in weights:
            _require("weights", w, w > 0, "> 0", "the mass of a point")
        if sp.simplify(sum(weights) - 1) != 0:
            raise ValueError(f"weights must sum to 1, got {sum(weights)}")
        object.__setattr__(self, "points", points)
        object.__setattr__(self, "weights", weights)

    @property
    def nonnegative(self) -> bool | None:  # type: ignore[override]
        """Whether every point is at least 0."""
        return _decided(sp.And(*[p >= 0 for p in self.points]))

    def moments(self, count: int) -> list[Any]:
        return [_total(w * p**k for p, w in self.atoms()) for k in range(1, count + 1)]

    def _polynomial(self) -> Any:
        return g - _total(w / (z - p) for p, w in self.atoms())

    def atoms(self) -> tuple[tuple[Any, Any], ...]:
        return tuple(zip(self.points, self.weights or (), strict=True))


@dataclass(frozen=True)
class FreePoisson(FreeLaw):
    """Free compound Poisson law: rate > 0 and a law of jumps; κ_n = rate · m_n(jump)."""

    rate: Any
    jump: FreeLaw

    def __post_init__(self) -> None:
        _exact_fields(self)
        _require("rate", self.rate, self.rate > 0, "> 0", "expected number of jumps")

    @property
    def nonnegative(self) -> bool | None:  # type: ignore[override]
        """True if the jumps are."""
        return self.jump.nonnegative or None

    def cumulants(self, count: int) -> list[Any]:
        return [self.rate * moment for moment in self.jump.moments(count)]

    def r_transform(self) -> Any:
        if isinstance(self.jump, Atoms):
            return self.rate * _total(w * p / (1 - p * g) for p, w in self.jump.atoms())
        return super().r_transform()

    def outside(self, *inner: Point) -> Point:
        # R(G) = rate·∫ a/(1 − a G) over jumps a: rate·w·m_J(w) at w = 1/G, with the jumps' m_J = G_J·(w − 1/G_J)
        (w,) = inner
        factor = self.rate * w.z * w.value * w.factor
        return Point(w.z * (1 - self.rate + self.rate * w.z * w.value), 1 / w.z, factor)

    def atoms(self) -> tuple[tuple[Any, Any], ...]:
        null = _total(w for p, w in self.jump.atoms() if p == 0)
        return _atoms([(Integer(0), 1 - self.rate * (1 - null))])


@dataclass(frozen=True)
class FussCatalan(FreeLaw):
    """Fuss–Catalan law of an integer order s ≥ 1: the free product of s Marchenko–Pastur laws of ratio 1."""

    order: Any
    nonnegative = True

    def __post_init__(self) -> None:
        _exact_fields(self)
        positive = bool(self.order.is_Integer and self.order >= 1)
        _require("order", self.order, positive, "an integer >= 1", "number of factors")

    def moments(self, count: int) -> list[Any]:
        return [sp.binomial(k * (self.order + 1), k) / (k * self.order + 1) for k in range(1, count + 1)]

    def s_transform(self) -> Any:
        return (1 + m) ** -self.order

    def _polynomial(self) -> Any:
        return ((1 + m) ** (self.order + 1) - z * m).subs(m, z * g - 1)


@dataclass(frozen=True)
class Scaled(FreeLaw):
    """A law times a number that is not 0."""

    law: FreeLaw
    factor: Any

    def __post_init__(self) -> None:
        _exact_fields(self)
        _require("factor", self.factor, sp.Ne(self.factor, 0), "not 0", "the scale; 0 leaves one point, Atoms((0,))")

    @property
    def nonnegative(self) -> bool | None:  # type: ignore[override]
        """That of the law for a positive factor; otherwise not decided."""
        return self.law.nonnegative if _decided(self.factor > 0) else None

    def cumulants(self, count: int) -> list[Any]:
        return [c * self.factor**k for k, c in enumerate(self.law.cumulants(count), 1)]

    def r_transform(self) -> Any:
        return self.factor * self.law.r_transform().subs(g, self.factor * g)

    def s_transform(self) -> Any:
        return self.law.s_transform() / self.factor

    def outside(self, *inner: Point) -> Point:
        (w,) = inner
        return Point(self.factor * w.z, w.value / self.factor, self.factor * w.factor)

    def atoms(self) -> tuple[tuple[Any, Any], ...]:
        return tuple((p * self.factor, w) for p, w in self.law.atoms())


@dataclass(frozen=True)
class Shifted(FreeLaw):
    """A law moved by a number."""

    law: FreeLaw
    shift: Any

    def __post_init__(self) -> None:
        _exact_fields(self)

    @property
    def nonnegative(self) -> bool | None:  # type: ignore[override]
        """True for a nonnegative law moved to the right; otherwise not decided."""
        return True if self.law.nonnegative and _decided(self.shift >= 0) else None

    def cumulants(self, count: int) -> list[Any]:
        first, *rest = self.law.cumulants(count)
        return [first + self.shift, *rest]

    def r_transform(self) -> Any:
        return self.law.r_transform() + self.shift

    def outside(self, *inner: Point) -> Point:
        (w,) = inner
        return Point(w.z + self.shift, w.value, w.factor + self.shift)

    def atoms(self) -> tuple[tuple[Any, Any], ...]:
        return tuple((p + self.shift, w) for p, w in self.law.atoms())


@dataclass(frozen=True)
class FreeSum(FreeLaw):
    """The free sum of two laws: R-transforms add."""

    left: FreeLaw
    right: FreeLaw

    @property
    def nonnegative(self) -> bool | None:  # type: ignore[override]
        """True if both are."""
        return True if self.left.nonnegative and self.right.nonnegative else None

    def cumulants(self, count: int) -> list[Any]:
        return [_tidy(a + b) for a, b in zip(self.left.cumulants(count), self.right.cumulants(count), strict=True)]

    def r_transform(self) -> Any:
        return self.left.r_transform() + self.right.r_transform()

    def _polynomial(self) -> Any:
        for first, second in ((self.left, self.right), (self.right, self.left)):
            if (other := _rational(second.r_transform, g)) is not None:
                return first.polynomial.subs(z, z - other)
        inner, other = sp.Dummy("inner"), sp.Dummy("other")
        first = _primitive(self.left.polynomial.subs(z, inner), inner, g)
        at = sp.solve(z - self.outside(_point(inner, g), _point(other, g)).z, other)[0]
        second = _primitive(self.right.polynomial.subs(z, at), inner, g)
        return sp.resultant(first, second, inner)

    def outside(self, *inner: Point) -> Point:
        first, second = inner
        return Point(first.z + second.factor, first.value, first.factor + second.factor)

    def atoms(self) -> tuple[tuple[Any, Any], ...]:
        return _atoms([(p + q, v + w - 1) for p, v in self.left.atoms() for q, w in self.right.atoms()])


@dataclass(frozen=True)
class FreeProduct(FreeLaw):
    """The free product of two laws, at least one of them on [0, ∞): S-transforms multiply."""

    left: FreeLaw
    right: FreeLaw

    def __post_init__(self) -> None:
        if self.left.nonnegative is False and self.right.nonnegative is False:
            raise ValueError(
                f"one factor of a free product must live on [0, ∞), got {self.left} and {self.right}, "
                "which both have negative points; shift or square one of them"
            )
        if Atoms((0,)) in (self.left, self.right):
            raise ValueError("a factor of a free product must not be the point 0 (the product is that point)")

    @property
    def nonnegative(self) -> bool | None:  # type: ignore[override]
        """True if both are."""
        return True if self.left.nonnegative and self.right.nonnegative else None

    def moments(self, count: int) -> list[Any]:
        series, zeros = [], []
        for law in (self.left, self.right):
            if law.mean == 0:
                # Moments of a product are polynomials in the mean of a factor: move it off 0 and let it go back.
                zeros.append(sp.Dummy("epsilon"))
                law = Shifted(law, zeros[-1])
            series.append(s_coefficients(law.moments(count)))
        moments = moments_of_s(_times(*series))
        return [_tidy(sp.cancel(moment).subs(dict.fromkeys(zeros, 0))) for moment in moments]

    def s_transform(self) -> Any:
        return self.left.s_transform() * self.right.s_transform()

    def _polynomial(self) -> Any:
        for first, second in ((self.left, self.right), (self.right, self.left)):
            if (other := _rational(second.s_transform, m)) is not None:
                # S_b = (1 + m)/(m z_b): z_a = z S_b
                return first.moment_polynomial.subs(z, z * other).subs(m, z * g - 1)
        inner, other = sp.Dummy("inner"), sp.Dummy("other")
        first = _primitive(self.left.moment_polynomial.subs(z, inner), inner, m)
        at = sp.solve(z - self.outside(*(_point(w, (1 + m) / w) for w in (inner, other))).z, other)[0]
        second = _primitive(self.right.moment_polynomial.subs(z, at), inner, m)
        return sp.resultant(first, second, inner).subs(m, z * g - 1)

    def outside(self, *inner: Point) -> Point:
        first, second = inner
        return Point(first.z * second.factor, first.value / second.factor, first.factor * second.factor)

    def atoms(self) -> tuple[tuple[Any, Any], ...]:
        null = [_total(w for p, w in law.atoms() if p == 0) for law in (self.left, self.right)]
        rest = [[(p, w) for p, w in law.atoms() if p != 0] for law in (self.left, self.right)]
        pairs = [(p * q, v + w - 1) for p, v in rest[0] for q, w in rest[1]]
        return _atoms([(Integer(0), sp.Max(*null)), *pairs])


@dataclass(frozen=True)
class SumPower(FreeLaw):
    """The free sum of t copies of a law, t ≥ 1 real: the R-transform times t."""

    law: FreeLaw
    exponent: Any

    def __post_init__(self) -> None:
        _exact_fields(self)
        _require(
            "exponent", self.exponent, self.exponent >= 1, ">= 1", "number of copies; below 1 it need not be a law"
        )

    @property
    def nonnegative(self) -> bool | None:  # type: ignore[override]
        """True if the law is."""
        return self.law.nonnegative or None

    def cumulants(self, count: int) -> list[Any]:
        return [self.exponent * c for c in self.law.cumulants(count)]

    def r_transform(self) -> Any:
        return self.exponent * self.law.r_transform()

    def outside(self, *inner: Point) -> Point:
        # R_t = t R at the same G
        (w,) = inner
        return Point(w.z + (self.exponent - 1) * w.factor, w.value, self.exponent * w.factor)

    def atoms(self) -> tuple[tuple[Any, Any], ...]:
        return _atoms([(p * self.exponent, 1 - self.exponent * (1 - w)) for p, w in self.law.atoms()])


@dataclass(frozen=True)
class ProductPower(FreeLaw):
    """The free product of t copies of a law on [0, ∞), t ≥ 1: the S-transform to the power t."""

    law: FreeLaw
    exponent: Any
    nonnegative = True

    def __post_init__(self) -> None:
        _exact_fields(self)
        _require("exponent", self.exponent, self.exponent >= 1, ">= 1", "number of factors")
        _require("law", self.law, self.law.nonnegative is not False, "a law on [0, ∞)", "it has negative points")

    def moments(self, count: int) -> list[Any]:
        return moments_of_s(_power(s_coefficients(self.law.moments(count)), self.exponent))

    def s_transform(self) -> Any:
        return self.law.s_transform() ** self.exponent

    def _polynomial(self) -> Any:
        if not (self.exponent.is_Rational and self.exponent.q <= MAXIMUM_DENOMINATOR):
            raise ValueError(
                f"exponent must be rational with a denominator up to {MAXIMUM_DENOMINATOR} for a polynomial, "
                f"got {self.exponent}; moments, the S-transform and the distribution need no polynomial"
            )
        power, root = int(self.exponent.p), int(self.exponent.q)
        inner = sp.Dummy("inner")
        # z_t = z^t (m/(1 + m))^(t − 1) of `outside`, to the power of the denominator
        first = _primitive(self.law.moment_polynomial.subs(z, inner), inner, m)
        second = z**root * (1 + m) ** (power - root) - inner**power * m ** (power - root)
        return sp.resultant(first, second, inner).subs(m, z * g - 1)

    def outside(self, *inner: Point) -> Point:
        (w,) = inner
        others = w.factor ** (self.exponent - 1)  # of the other copies, at the same m
        return Point(w.z * others, w.value / others, w.factor * others)

    def atoms(self) -> tuple[tuple[Any, Any], ...]:
        null = [(p, w) for p, w in self.law.atoms() if p == 0]
        rest = [(_raised(p, self.exponent), 1 - self.exponent * (1 - w)) for p, w in self.law.atoms() if p != 0]
        return _atoms([*null, *rest])


@dataclass(frozen=True)
class Compression(FreeLaw):
    """A free compression to a fraction α of the dimension: κ_n becomes α^(n−1) κ_n."""

    law: FreeLaw
    fraction: Any

    def __post_init__(self) -> None:
        _exact_fields(self)
        inside = sp.And(self.fraction > 0, self.fraction <= 1)
        _require("fraction", self.fraction, inside, "> 0 and <= 1", "share of the dimension that is kept")

    @property
    def nonnegative(self) -> bool | None:  # type: ignore[override]
        """True if the law is."""
        return self.law.nonnegative or None

    def cumulants(self, count: int) -> list[Any]:
        return [self.fraction ** (k - 1) * c for k, c in enumerate(self.law.cumulants(count), 1)]

    def r_transform(self) -> Any:
        return self.law.r_transform().subs(g, self.fraction * g)

    def outside(self, *inner: Point) -> Point:
        # R_α(G) = R(α G)
        (w,) = inner
        return Point(self.fraction * w.z + (1 - self.fraction) * w.factor, w.value / self.fraction, w.factor)

    def atoms(self) -> tuple[tuple[Any, Any], ...]:
        return _atoms([(p, (w - 1 + self.fraction) / self.fraction) for p, w in self.law.atoms()])


@dataclass(frozen=True)
class Inverse(FreeLaw):
    """The law of 1/x for a law on (0, ∞) with no mass at 0."""

    law: FreeLaw
    nonnegative = True

    def __post_init__(self) -> None:
        _require("law", self.law, self.law.nonnegative is not False, "a law on (0, ∞)", "it has negative points")
        for p, w in self.law.atoms():
            if p == 0 and _decided(w > 0):
                raise ValueError(f"law must have no mass at 0 to be inverted, got {self.law} with mass {w} there")

    def moments(self, count: int) -> list[Any]:
        # G(z) = −Σ E[x^−(k+1)] z^k near 0, which the support does not reach
        return [-c for c in _taylor_at_zero(self.law, count)]

    def s_transform(self) -> Any:
        return 1 / self.law.s_transform().subs(m, -1 - m)

    @cached_property
    def polynomial(self) -> Any:
        """The law's curve under a rational map with a rational inverse: it stays irreducible."""
        return sp.expand(_primitive(self._polynomial(), g))

    def outside(self, *inner: Point) -> Point:
        # G_inverse(z) = 1/z − G(1/z)/z² = −m(1/z)/z
        (w,) = inner
        return Point(1 / w.z, -w.z * w.value * w.factor, 1 / w.factor)

    def atoms(self) -> tuple[tuple[Any, Any], ...]:
        return tuple((1 / p, w) for p, w in self.law.atoms() if p != 0)


def Wishart(ratio: Any, population: FreeLaw) -> FreeLaw:
    """The sample covariance of a given population law (on [0, ∞)) at ratio = dimension/samples."""
    if population.nonnegative is False:
        raise ValueError(f"population must live on [0, ∞), got {population}")
    return FreeProduct(MarchenkoPastur(ratio), population)


# ---------------------------------------------------------------------- helpers


def _exact_fields(law: Any) -> None:
    for field in fields(law):
        value = getattr(law, field.name)
        if field.name in ("law", "jump"):
            if not isinstance(value, FreeLaw):
                raise ValueError(f"{field.name} must be a law of the calculus, got {value!r}")
        else:
            object.__setattr__(law, field.name, exact(field.name, value))


def _decided(condition: Any) -> bool | None:
    return True if condition in (sp.true, True) else False if condition in (sp.false, False) else None


def _atoms(candidates: Sequence[tuple[Any, Any]]) -> tuple[tuple[Any, Any], ...]:
    """Candidates with a weight that is, or may be, positive."""
    kept = []
    for position, weight in candidates:
        if (positive := _decided(weight > 0)) is not False:
            kept.append((position, weight if positive else sp.Max(0, weight)))
    return tuple(kept)


def _inside(law: FreeLaw) -> dict[Any, Any]:
    """The inner law's z and G at a point of the law's curve, as what replaces them: the inverse of `outside`."""
    parameters = [f.name for f in fields(law) if not isinstance(getattr(law, f.name), FreeLaw)]  # type: ignore[arg-type]
    numbers = [getattr(law, name) for name in parameters]
    return {
        symbol: value.subs(dict(zip(_NUMBERS, numbers, strict=False)))
        for symbol, value in _inverse(type(law), tuple(parameters)).items()
    }


_NUMBERS = (sp.Dummy("number", positive=True),)


@lru_cache(maxsize=16)
def _inverse(kind: type, parameters: tuple[str, ...]) -> dict[Any, Any]:
    names = {
        "jump" if kind is FreePoisson else "law": MarchenkoPastur(1),
        **dict(zip(parameters, _NUMBERS, strict=False)),
    }
    at, value = sp.Dummy("at"), sp.Dummy("value")
    point = kind(**names).outside(_point(at, value))
    (found,) = sp.solve(
        [sp.numer(sp.together(point.z - z)), sp.numer(sp.together(point.value - g))], [at, value], dict=True
    )
    return {z: sp.cancel(found[at]), g: sp.cancel(found[value])}


def _primitive(expression: Any, *variables: Any) -> Any:
    """Numerator of a rational expression, without factors that hold none of the variables."""
    numerator = sp.numer(sp.together(expression))
    return sp.Mul(*[f**k for f, k in sp.factor_list(numerator)[1] if f.has(*variables)])


def _rational(transform: Any, symbol: Any) -> Any | None:
    """A transform if it exists in closed form and is rational, else None: the resultant then does the work."""
    try:
        expression = transform()
    except ValueError:
        return None
    return expression if expression.is_rational_function(symbol) else None


def _regular_root(curve: Any, unknown: Any, at: Any, value: Any, what: str) -> Any:
    """The root of a curve of degree 1 or 2 in `unknown` that tends to `value` as `at` → 0."""
    polynomial = sp.Poly(curve, unknown)
    if polynomial.degree() > 2:
        raise ValueError(f"{what} has no closed form of degree <= 2; use its series or the polynomial")
    for root in sp.roots(polynomial):
        if sp.simplify(sp.limit(root, at, 0) - value) == 0:
            return sp.simplify(root)
    raise ValueError(f"{what} is not among the roots of {curve}: none tends to {value}")


def _branch_factor(law: FreeLaw, expression: Any) -> Any:
    """The irreducible factor that the series of G at infinity satisfies."""
    numerator = sp.numer(sp.together(expression))
    generators = sorted(numerator.free_symbols, key=lambda s: (s != g, s != z, s.name))
    factors = [f for f, _ in sp.factor_list(numerator, *generators)[1] if f.has(g)]
    if len(factors) == 1:
        return sp.expand(factors[0])
    # A point of the parameters decides: factors that differ there differ everywhere.
    symbols = sorted(numerator.free_symbols - {z, g}, key=lambda s: s.name)
    values = {s: sp.Rational(7 + k, 11) for k, s in enumerate(symbols)}
    order = max(sp.degree(f, g) + sp.degree(f, z) for f in factors) + 4
    small = sp.Dummy("small")
    series = small + _total(v * small ** (k + 1) for k, v in enumerate(law.subs(values).moments(order), 1))
    found = [f for f in factors if _vanishes(f.subs(values), series, small, order)]
    if len(found) != 1:
        raise ArithmeticError(
            f"{len(found)} of {len(factors)} factors of the curve of {law} fit its series at infinity"
        )
    return sp.expand(found[0])


def _vanishes(factor: Any, series: Any, small: Any, order: int) -> bool:
    """Whether a polynomial in z, g is 0 on g = series(1/z) up to the series' order."""
    polynomial = sp.Poly(factor, g, z)
    degree = polynomial.degree(z)
    series = sp.Poly(series, small)
    total = _total(c * small ** (degree - k) * (series**i).as_expr() for (i, k), c in polynomial.terms())
    expanded = sp.Poly(total, small)
    return all(expanded.coeff_monomial(small**k) == 0 for k in range(order + 1))


def _taylor_at_zero(law: FreeLaw, count: int) -> list[Any]:
    """G at 0 and its Taylor coefficients there, for a law on (0, ∞) whose support does not reach 0.

    Raises ValueError where it does: the moments of the inverse are infinite then.
    """
    polynomial = sp.Poly(law.polynomial, g, z).as_expr()
    symbols = sorted(law.free_symbols, key=lambda s: s.name)
    values = {s: sp.Rational(7 + k, 11) for k, s in enumerate(symbols)}  # roots that differ there differ everywhere
    near = _value_at_zero(law.subs(values))
    apart = {root: abs(complex(root.subs(values).evalf(30)) - near) for root in _roots_at_zero(polynomial)}
    root = min(apart, key=lambda root: apart[root], default=None)
    if root is None or not apart[root] <= 1e-6 * abs(near):
        raise ValueError(f"the moments of the inverse of {law} are infinite: its support reaches 0")
    value, order = sp.Dummy("value"), sp.Dummy("order")
    slope = polynomial.diff(g).subs({z: 0, g: value})
    series, coefficients = value, [value]
    for k in range(1, count):
        moved = sp.Poly(sp.expand(polynomial.subs({g: series, z: order})), order)
        coefficients.append(-moved.coeff_monomial(order**k) / slope)
        series += coefficients[-1] * order**k
    return [_at_root(c, value, root) for c in coefficients]


def _at_root(expression: Any, symbol: Any, root: Any) -> Any:
    """A rational expression at a root of the curve: a polynomial in an algebraic number, or with square roots."""
    numerator, denominator = sp.fraction(sp.cancel(sp.together(expression)))
    if isinstance(root, sp.CRootOf):
        minimal = root.poly.as_expr().subs(root.poly.gen, symbol)
        inverse = sp.invert(sp.Poly(denominator, symbol), sp.Poly(minimal, symbol))
        return sp.rem(sp.Poly(numerator, symbol) * inverse, sp.Poly(minimal, symbol)).as_expr().subs(symbol, root)
    return sp.radsimp(sp.cancel((numerator / denominator).subs(symbol, root)))


def _roots_at_zero(polynomial: Any) -> list[Any]:
    """The candidates for G(0); all real ones, or up to degree 4 with symbols."""
    constant = sp.Poly(polynomial.subs(z, 0), g)
    if constant.free_symbols_in_domain or not all(c.is_Rational for c in constant.all_coeffs()):
        return list(sp.roots(constant))
    return [root for root in constant.real_roots() if root != 0]


def _value_at_zero(law: FreeLaw) -> complex:
    """G(0) in doubles: the branch of a law on (0, ∞) followed up the negative axis."""
    polynomial = law.polynomial
    value_of, slope_of = (sp.lambdify((z, g), f, "math") for f in (polynomial, polynomial.diff(g)))
    first, second = (float(moment) for moment in law.moments(2))
    at = -1e4 * second**0.5
    value = 1 / at + first / at**2 + second / at**3
    while at:
        at = 0.0 if at > -1e-9 * second**0.5 else 0.8 * at
        for _ in range(8):
            slope = slope_of(at, value)
            value -= value_of(at, value) / slope if slope else 0.0
    return complex(value)
