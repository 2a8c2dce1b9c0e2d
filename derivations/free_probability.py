"""Free probability: sums, products, powers, compressions and inverses of laws, spikes, and the optimal shrinkage.

The objects (`MarchenkoPastur`, `Semicircle`, `Atoms`, … and their operations) compute any law; the chapter's laws are
the theorems behind them, on examples that can be sampled, and what the semicircle sum and the spikes rest on.
"""

from __future__ import annotations

from typing import Any

import sympy as sp
from sympy import Eq, Integer, Interval, Rational, oo

from derivations._free_calculus import (
    Atoms,
    Compression,
    FreeLaw,
    FreePoisson,
    FreeProduct,
    FreeSum,
    FussCatalan,
    Inverse,
    MarchenkoPastur,
    Point,
    ProductPower,
    Scaled,
    Semicircle,
    Shifted,
    SumPower,
    Wishart,
    cumulants_of,
    moments_of,
)
from derivations._free_calculus import g as _g
from derivations._free_calculus import m as _m
from derivations._free_calculus import z as _z
from derivations.core import (
    Average,
    Claim,
    Exact,
    Experiment,
    Law,
    Limit,
    Model,
    measured,
    observable,
    parameter,
    variable,
)

__all__ = [
    "Atoms",
    "Compression",
    "FreeLaw",
    "FreePoisson",
    "FreeProduct",
    "FreeSum",
    "FussCatalan",
    "Inverse",
    "MarchenkoPastur",
    "ProductPower",
    "Scaled",
    "Semicircle",
    "Shifted",
    "SumPower",
    "Wishart",
    "cumulants_of",
    "moments_of",
]

# Symbols -------------------------------------------------------------------------------------------------------

_positive = Interval.open(0, oo)

z = variable("z", "spectral argument, off the support", typical=(Rational(8), Rational(15)))
c = parameter(
    "c", "ratio of dimension to number of samples of a Wishart matrix", _positive, (Rational(1, 5), Rational(4, 5))
)
alpha = parameter(
    "alpha", "share of the dimension that a compression keeps", Interval.open(0, 1), (Rational(1, 4), Rational(3, 4))
)
rate = parameter("rate", "expected number of jumps of a free Poisson law", _positive, (Rational(1, 2), 2))
copies = parameter("copies", "number of free copies that are multiplied", sp.S.Naturals, (2, 3))
first_share = parameter(
    "first_share",
    "mass of an atom of the first summand",
    Interval.open(0, 1),
    (Rational(3, 5), Rational(4, 5)),
    notation=r"\pi_1",
)
second_share = parameter(
    "second_share",
    "mass of an atom of the second summand",
    Interval.open(0, 1),
    (Rational(3, 5), Rational(4, 5)),
    notation=r"\pi_2",
)
theta = parameter("theta", "strength of a rank-one spike", _positive, (2, 5))
s = parameter("s", "variance of a semicircle", _positive, (2, 3))
ell = parameter("ell", "eigenvalue of the signal outside the rest of its spectrum", _positive, (5, 9), notation=r"\ell")

eigenvalue = observable("eigenvalues", "eigenvalues of the sampled matrix", notation=r"\lambda")
g = measured(
    "g",
    "Cauchy transform G(z) = ∫ dμ/(z − λ)",
    Average(1 / (z - eigenvalue)),
    typical=(Rational(1, 11), Rational(1, 7)),
)
m = measured(
    "m", "moment transform z G(z) − 1", Average(eigenvalue / (z - eigenvalue)), typical=(Rational(1, 9), Rational(1, 4))
)
signal_part = observable(
    "signal_parts",
    "quadratic forms of the signal (or population) in the sample's eigenvectors, one an eigenvalue",
    notation="o",
)
signal_transform = measured(
    "e",
    "transform of the signal's part, ∫ ξ/(z − λ) dμ",
    Average(signal_part / (z - eigenvalue)),
    typical=(Rational(1, 8), Rational(1, 3)),
)
atom = measured(
    "atom",
    "mass of the atom of the sum at the sum of the two positions, here 0",
    Average(sp.Piecewise((1, sp.Abs(eigenvalue) < Rational(1, 10**9)), (0, True))),
    notation=r"\mu(\{p + q\})",
)
location = measured("location", "outlier of the sampled matrix", notation=r"\lambda_{\mathrm{out}}")
overlap = measured("overlap", "squared scalar product of the outlier's eigenvector with the spike", notation="q")

w = variable("w", "subordinate argument", typical=(3, 7))
other = variable("other", "subordinate argument of the second law", typical=(4, 9), notation="w_2")
u = variable("u", "real part of the subordinate argument", Interval.open(0, oo), (Rational(1, 10), Rational(1, 2)))
v = variable("v", "imaginary part of the subordinate argument, on the boundary curve", _positive, (Rational(1, 3), 2))
resolvent = variable(
    "r", "Cauchy transform of the spectrum at the subordinate argument", typical=(Rational(1, 5), Rational(3, 5))
)
real_part = variable("a", "real part of that Cauchy transform, ∫ (u − λ)/|w − λ|² dν", typical=(Rational(1, 5), 2))
square = variable("b", "∫ 1/|w − λ|² dν", _positive, (Rational(1, 5), 2))
slope = variable(
    "r_prime", "derivative of the spectrum's Cauchy transform", typical=(-1, Rational(-1, 5)), notation="r'"
)
angle = variable("phi", "imaginary part of ∫ log(w − λ) dν", Interval.open(0, sp.pi), (Rational(1, 2), 3))
hilbert = variable(
    "h", "Hilbert transform of the sum, the real part of G(x + i0)", typical=(Rational(-1, 2), Rational(1, 2))
)
density = variable("density", "density of the sum", notation=r"\rho")
exponent = parameter("t", "exponent of a free power of a product", Interval(1, oo), (Rational(5, 4), 3))
factor = variable("K", "w m/(1 + m) at the subordinate argument: the inverse of its S-transform", typical=(2, 3))
distribution = variable("distribution", "distribution function of the sum", notation="F")
x = variable("x", "eigenvalue of the sampled matrix", _positive, (1, 2))
lead = variable("lead", "leading coefficient of a cubic in G, made positive", _positive, (1, 2), notation="a_3")
linear = variable("linear", "a third of the linear coefficient of the depressed cubic", typical=(1, 2), notation="P")
constant = variable(
    "constant", "constant coefficient of the depressed cubic, made ≥ 0", Interval(0, oo), (1, 2), notation="Q"
)
discriminant = variable(
    "discriminant", "discriminant of the cubic", Interval.open(-oo, 0), (-2, -1), notation=r"\Delta"
)
shrunk = variable("shrunk", "best rotation-invariant estimate of the signal's part at an eigenvalue", notation=r"\xi")
cumulant = [
    variable(f"kappa_{order}", f"free cumulant of order {order}", typical=(Rational(order, 3), Rational(order + 4, 3)))
    for order in range(1, 5)
]
kappa_1, kappa_2, kappa_3, kappa_4 = cumulant
moment = variable("moment", "fourth moment", notation="m_4")
dimension = parameter("p", "dimension of a Wishart matrix", sp.S.Naturals, (4, 90))
samples = parameter("n", "number of its samples", sp.S.Naturals, (5, 90))
centre = variable("centre", "centre of its largest eigenvalue, in units of the sum XXᵀ", notation=r"\mu_{np}")
scale = variable("scale", "scale of its largest eigenvalue, in units of the sum XXᵀ", notation=r"\sigma_{np}")

_R, _S, _K = sp.Function("R"), sp.Function("S"), sp.Function("K")
_signs, _levels, _jumps = Atoms((-1, 1)), Atoms((1, 3)), Atoms((1, -2))


def _transform(law):
    """The R-transform of a law in this chapter's symbol."""
    return law.r_transform().subs(_g, g)


def _curve(law, unknown):
    """The law's polynomial equation in this chapter's symbols, in G or in the moment transform."""
    polynomial = law.polynomial if unknown is g else law.moment_polynomial
    return Eq(polynomial.subs({_z: z, _g: g, _m: m}), 0)


# Cumulants -----------------------------------------------------------------------------------------------------


def _fourth_moment():
    y, series, generating = sp.Symbol("y"), sp.Function("M"), sp.Function("C")
    yield (
        "moments and free cumulants (Speicher): sums over non-crossing partitions",
        Eq(series(y), generating(y * series(y))),
    )
    yield "compare coefficients of y⁴", Eq(moment, moments_of(cumulant)[3])


def _fourth_moment_checks():
    wishart = dict(zip(cumulant, MarchenkoPastur(c).cumulants(4), strict=True))
    narayana = sum(sp.binomial(4, k) * sp.binomial(4, k - 1) / 4 * c ** (k - 1) for k in range(1, 5))
    yield "Marchenko–Pastur: Narayana numbers", fourth_moment.right.subs(wishart), narayana


fourth_moment = Law(
    "free-fourth-moment",
    "Fourth moment in free cumulants",
    _fourth_moment,
    source="Speicher 1994",
    checks=_fourth_moment_checks,
)

# Operations, each on an example that can be sampled -------------------------------------------------------------


def _sum():
    first, second = _transform(_signs), _transform(MarchenkoPastur(c))
    yield "R-transform of ±1 with equal weights: z = R(g) + 1/g solves g(z² − 1) = z", Eq(_R(g), first)
    yield "R-transform of a Wishart matrix", Eq(_R(g), second)
    yield "freeness: R-transforms add, and z = R(g) + 1/g", Eq(z, first + second + 1 / g)


free_sum = Law(
    "free-sum",
    "A diagonal of signs plus a Wishart matrix",
    _sum,
    source="Voiculescu 1986; derived here",
    solves=lambda: [_curve(_signs + MarchenkoPastur(c), g)],
    branch="the root of the square that vanishes with g",
)


def _product():
    first, second = _levels.s_transform().subs(_m, m), MarchenkoPastur(c).s_transform().subs(_m, m)
    yield "S-transform of 1 and 3 with equal weights", Eq(_S(m), first)
    yield "S-transform of a Wishart matrix", Eq(_S(m), second)
    yield "freeness: S-transforms multiply, and 1/z = S(m) m/(1 + m)", Eq(z, (1 + m) / (m * first * second))


free_product = Law(
    "free-product",
    "A sample covariance of a population with two eigenvalues",
    _product,
    source="Voiculescu 1987; derived here",
    solves=lambda: [_curve(Wishart(c, _levels), m)],
    branch="the root that tends to the inverse mean, ½, as m → 0",
)


def _compression():
    yield "R-transform of ±1 with equal weights", Eq(_R(g), _transform(_signs))
    compressed = _transform(_signs.compress(alpha))
    yield (
        "a compression to a share α of the dimension: κ_n becomes α^(n−1) κ_n, R(g) becomes R(αg)",
        Eq(_R(g), compressed),
    )
    yield "z = R(g) + 1/g", Eq(z, compressed + 1 / g)


free_compression = Law(
    "free-compression",
    "A random projection of a diagonal of signs",
    _compression,
    source="Nica & Speicher 1996; derived here",
    solves=lambda: [_curve(_signs.compress(alpha), g)],
)


def _power():
    yield "R-transform of ±1 with equal weights", Eq(_R(g), _transform(_signs))
    exponent = 1 / alpha
    power = _transform(_signs.sum_power(exponent))
    yield "1/α free copies: the R-transform times 1/α", Eq(_R(g), power)
    yield "z = R(g) + 1/g", Eq(z, power + 1 / g)


def _power_checks():
    compressed = free_compression.right.subs(g, g / alpha) / alpha
    yield "a compression is a free power, scaled by α", free_power.right, compressed


free_power = Law(
    "free-power",
    "A real free power of a sum",
    _power,
    source="Nica & Speicher 1996; derived here",
    solves=lambda: [_curve(_signs.sum_power(1 / alpha), g)],
    checks=_power_checks,
)


def _product_power():
    single = _levels.s_transform().subs(_m, m)
    yield "S-transform of 1 and 3 with equal weights", Eq(_S(m), single)
    power = _levels.product_power(copies).s_transform().subs(_m, m)
    yield "free copies: the S-transform to the power of their number", Eq(_S(m), power)
    yield "1/z = S(m) m/(1 + m)", Eq(z, (1 + m) / (m * power))


def _product_power_checks():
    yield (
        "one copy is the law itself",
        product_power.right.subs(copies, 1),
        (1 + m) / (m * _levels.s_transform()).subs(_m, m),
    )
    square = _curve(_levels.product_power(2), m).lhs
    yield "two copies: on the curve", square.subs(z, product_power.right.subs(copies, 2)), Integer(0)


product_power = Law(
    "free-product-power",
    "A free power of a product",
    _product_power,
    source="Voiculescu 1987; Belinschi & Bercovici 2005; derived here",
    checks=_product_power_checks,
)


def _power_factor():
    inside = resolvent * w - 1
    yield "moment transform of the law at the subordinate argument", Eq(m, inside)
    yield "1/S = w m/(1 + m) there", Eq(factor, w * m / (1 + m))
    yield "insert m", Eq(factor, sp.expand(sp.cancel(w * inside / (1 + inside))))


power_factor = Law(
    "product-power-factor",
    "Inverse of the S-transform at the subordinate argument",
    _power_factor,
    source="Belinschi & Bercovici 2005; derived here",
    checks=lambda: [
        (
            "Marchenko–Pastur: 1/S = 1 + c m",
            power_factor.right.subs({w: _wishart_inverse(), resolvent: (1 + m) / _wishart_inverse()}),
            1 + c * m,
        )
    ],
)


def _wishart_inverse():
    """The argument at which the moment transform of Marchenko–Pastur is m."""
    return (1 + m) / (m * MarchenkoPastur(c).s_transform().subs(_m, m))


def _power_subordination():
    yield "S-transform of the power, at the m of the law at w", Eq((1 + m) / (m * z), ((1 + m) / (m * w)) ** exponent)
    inverse = w * (w * m / (1 + m)) ** (exponent - 1)
    yield "solve for z", Eq(z, inverse)
    yield "insert the factor", Eq(z, w * factor ** (exponent - 1))
    yield (
        "logarithms; Im log K lies in (−π, 0] as Im log w lies in [0, π)",
        Eq(sp.log(z), sp.log(w) + (exponent - 1) * sp.log(power_factor.right)),
    )


def _power_subordination_checks():
    inverse = _wishart_inverse()
    at = {w: inverse, resolvent: (1 + m) / inverse, exponent: 2}
    computed = ProductPower(_levels, exponent).outside(Point(w, resolvent, power_factor.right)).z
    yield "what is computed", computed, sp.exp(power_subordination.right)
    yield (
        "two copies of Marchenko–Pastur",
        sp.exp(power_subordination.right.subs(at)),
        (1 + m) * (1 + c * m) ** 2 / m,
    )


power_subordination = Law(
    "product-power-subordination",
    "A real free power of a product",
    _power_subordination,
    source="Belinschi & Bercovici 2005; derived here",
    checks=_power_subordination_checks,
    branch="the imaginary part of the right-hand side is positive above the curve that the real axis comes from",
)


def _sum_subordination():
    yield "R-transforms at the common value of G, z = R + 1/G", Eq(_R(g), (w - 1 / g) + (other - 1 / g))
    yield "z = R + 1/G for the sum", Eq(z, w + other - 1 / g)


def _joined(kind, value):
    """z of a sum or product as it is computed: from the first argument and the second law's z − 1/G."""
    first, second = (Point(at, value(at), at - 1 / value(at)) for at in (w, other))
    return kind(_signs, MarchenkoPastur(c)).outside(first, second).z


sum_subordination = Law(
    "sum-subordination",
    "A free sum, from the arguments of its two laws",
    _sum_subordination,
    source="Biane 1998; Belinschi & Bercovici 2007; derived here",
    checks=lambda: [
        ("what is computed", _joined(FreeSum, lambda at: g), sum_subordination.right),
        (
            "signs and a Wishart matrix: their own inverse functions",
            sum_subordination.right.subs(
                {w: _transform(_signs) + 1 / g, other: _transform(MarchenkoPastur(c)) + 1 / g}, simultaneous=True
            ),
            free_sum.right,
        ),
    ],
    branch="for z in the upper half-plane one pair of arguments there, both above z, has equal G",
)


def _product_subordination():
    yield "S-transforms at the common value of m", Eq(_S(m), (1 + m) / (m * w) * ((1 + m) / (m * other)))
    yield "1/z = S(m) m/(1 + m) for the product", Eq(z, w * other * m / (1 + m))


product_subordination = Law(
    "product-subordination",
    "A free product, from the arguments of its two laws",
    _product_subordination,
    source="Biane 1998; Belinschi & Bercovici 2007; derived here",
    checks=lambda: [
        ("what is computed", _joined(FreeProduct, lambda at: (1 + m) / at), product_subordination.right),
        (
            "a population and a Wishart matrix: their own inverse functions",
            product_subordination.right.subs(
                {w: (1 + m) / (m * _levels.s_transform().subs(_m, m)), other: _wishart_inverse()}, simultaneous=True
            ),
            free_product.right,
        ),
    ],
    branch="for two laws on [0, ∞) and z in the upper half-plane one pair of arguments there has equal m",
)


def _sum_atom():
    first, second = sp.Symbol("E_p"), sp.Symbol("F_q")
    trace = sp.Function("tau")
    yield (
        "on the intersection of the eigenspaces of p and q the sum is p + q, and free projections meet in general "
        "position",
        Eq(trace(sp.Function("meet")(first, second)), sp.Max(0, trace(first) + trace(second) - 1)),
    )
    yield "their traces are the masses of the atoms", Eq(atom, sp.Max(0, first_share + second_share - 1))


def _sum_atom_checks():
    both = Atoms((0, 1), (first_share, 1 - first_share)) + Atoms((0, 1), (second_share, 1 - second_share))
    residue = sp.cancel(both.polynomial.subs(_g, sum_atom.right / _z))
    yield "residue of G at 0 for two projections", sp.limit(sp.numer(sp.together(residue)), _z, 0), Integer(0)


sum_atom = Law(
    "free-sum-atom",
    "Atom of a free sum",
    _sum_atom,
    source="Bercovici & Voiculescu 1998; derived here",
    checks=_sum_atom_checks,
    where=lambda: first_share + second_share > 1,
)


def _inverse():
    direct = MarchenkoPastur(c).s_transform().subs(_m, m)
    inverse = MarchenkoPastur(c).inverse().s_transform().subs(_m, m)
    yield "S-transform of a Wishart matrix", Eq(_S(m), direct)
    yield "the inverse's moment transform at 1/z is −1 − m, so S becomes 1/S(−1 − m)", Eq(_S(m), inverse)
    yield "1/z = S(m) m/(1 + m)", Eq(z, (1 + m) / (m * inverse))


free_inverse = Law(
    "free-inverse",
    "The inverse of a Wishart matrix",
    _inverse,
    source="Haagerup & Schultz 2007; derived here",
    solves=lambda: [_curve(MarchenkoPastur(c).inverse(), m)],
)


def _poisson():
    jump = sp.Symbol("a")
    yield "a jump a along a random direction has κ_n = aⁿ/d, so R(g) = a/(1 − a g)/d", Eq(_R(g), jump / (1 - jump * g))
    total = _transform(FreePoisson(rate, _jumps))
    yield "rate·d free jumps of 1 and −2 in equal numbers: R-transforms add", Eq(_R(g), total)
    yield "z = R(g) + 1/g", Eq(z, total + 1 / g)


free_poisson = Law(
    "free-poisson",
    "A free Poisson law with jumps of both signs",
    _poisson,
    source="Speicher 1990; derived here",
    solves=lambda: [_curve(FreePoisson(rate, _jumps), g)],
)

# Curves of degree 3 ---------------------------------------------------------------------------------------------


def _depressed(cubic, unknown):
    """Leading coefficient, P and Q of a cubic: t³ + 3 P t + Q = 0 for t = 3 a₃ g + a₂."""
    top, *rest = sp.Poly(cubic, unknown).all_coeffs()
    moved = sp.Poly(27 * top**2 * cubic.subs(unknown, (unknown - rest[0]) / (3 * top)), unknown)
    return top, sp.cancel(moved.coeff_monomial(unknown) / 3), sp.cancel(moved.coeff_monomial(1))


def cubic_coefficients(curve: Any) -> Any:
    """a₃, P, Q and Δ of a law's polynomial, as polynomials in z: what `cubic-density` needs at each point.

    Raises ValueError unless the polynomial has degree 3 in G.
    """
    if sp.degree(curve, _g) != 3:
        raise ValueError(f"curve must have degree 3 in G, got degree {sp.degree(curve, _g)}")
    top, third, last = _depressed(curve, _g)
    return {lead: top, linear: third, constant: last, discriminant: sp.discriminant(sp.Poly(curve, _g))}


def _cubic_density():
    t, first, second = sp.Symbol("t"), sp.Symbol("A"), sp.Symbol("B")
    coefficients = sp.symbols("a_0:4")
    cubic = sum(coefficient * g**power for power, coefficient in enumerate(coefficients))
    top, third, last = _depressed(cubic, g)
    yield "the curve at a real point: a cubic with real coefficients", Eq(cubic, 0)
    yield "t = 3 a₃ g + a₂", Eq(t**3 + 3 * linear * t + constant, 0)
    yield "with", sp.And(Eq(linear, third), Eq(constant, last), evaluate=False)
    depressed_discriminant = sp.factor(sp.discriminant(t**3 + 3 * linear * t + constant, t))
    yield (
        "differences of the roots: the discriminant of t is 3⁶ a₃² times that of g",
        Eq(depressed_discriminant, 729 * top**2 * discriminant),
    )
    yield "inside a band two roots are complex; Cardano: t = −ωA − ω̄B with AB = −P", Eq(first**3 + second**3, constant)
    larger = ((constant + lead * sp.sqrt(-27 * discriminant)) / 2) ** Rational(1, 3)
    yield "the larger of the two, which does not cancel", Eq(first, larger)
    difference = lead * sp.sqrt(-27 * discriminant) / (first**2 + first * second + second**2)
    yield "A − B = (A³ − B³)/(A² + AB + B²) does not cancel either, near an edge", Eq(first - second, difference)
    imaginary = sp.sqrt(3) / 2 * difference / (3 * lead * sp.pi)
    closed = sp.factor(imaginary.subs(first * second, -linear)).subs(second, -linear / first)
    yield "density |Im g|/π, and Im t = √3/2 (A − B)", Eq(density, closed)
    yield "insert A", Eq(density, closed.subs(first, larger))


def _cubic_density_checks():
    cubic = s * (g - u - 2) * ((g - u) ** 2 + v**2)
    top, third, last = _depressed(cubic, g)
    inserted = {lead: top, linear: third, constant: sp.Abs(last), discriminant: sp.discriminant(cubic, g)}
    yield "a cubic with the roots u ± iv and u + 2", cubic_density.right.subs(inserted, simultaneous=True), v / sp.pi


cubic_density = Law(
    "cubic-density",
    "Density of a law whose curve has degree 3",
    _cubic_density,
    source="Cardano 1545; derived here",
    checks=_cubic_density_checks,
    branch="inside a band; off the support the density is 0 whatever the discriminant says",
)

# The semicircle sum ---------------------------------------------------------------------------------------------


def _subordination():
    yield "R-transforms add; that of the semicircle is s g", Eq(z, _R(g) + 1 / g + s * g)
    yield "w = R(g) + 1/g is where the spectrum's own Cauchy transform is g = r", Eq(w, z - s * resolvent)
    yield "solve for z", Eq(z, w + s * resolvent)


def _subordination_checks():
    equation = Semicircle(s).polynomial.subs({_g: 1 / w, _z: semicircle_subordination.right.subs(resolvent, 1 / w)})
    yield "one eigenvalue 0: r = 1/w solves the semicircle's quadratic", equation, Integer(0)


semicircle_subordination = Law(
    "semicircle-subordination",
    "A spectrum plus a semicircle",
    _subordination,
    source="Biane 1997; derived here",
    checks=_subordination_checks,
)


def _curve_location():
    yield "subordination", semicircle_subordination.statement
    yield "real part at w = u + iv", Eq(x, u + s * real_part)


def _curve_location_checks():
    yield "one eigenvalue 0 (a = u/s on the curve): x = 2u", curve_location.right.subs(real_part, u / s), 2 * u


curve_location = Law(
    "semicircle-curve-location",
    "Location over a point of the boundary curve",
    _curve_location,
    source="Biane 1997; derived here",
    checks=_curve_location_checks,
)


def _curve_height():
    yield "subordination", semicircle_subordination.statement
    yield "imaginary part at w = u + iv: 0 = v − s v b", Eq(0, v - s * v * square)
    yield "divide by v > 0", Eq(square, 1 / s)


def _curve_height_checks():
    yield "one eigenvalue 0: u² + v² = s", curve_height.right, 1 / (u**2 + sp.sqrt(s - u**2) ** 2)


curve_height = Law(
    "semicircle-curve-height",
    "Height of the boundary curve",
    _curve_height,
    source="Biane 1997; derived here",
    checks=_curve_height_checks,
    branch="v = 0 where b < 1/s already on the axis; the band edges are the real points with b = 1/s",
)


def _curve_density():
    yield "w = x − s G(x + i0), and G = h − iπρ", Eq(v, s * sp.pi * density)
    yield "solve for the density", Eq(density, v / (sp.pi * s))


def _curve_density_checks():
    known = sp.sqrt(4 * s - (2 * u) ** 2) / (2 * sp.pi * s)
    yield "one eigenvalue 0, at x = 2u", curve_density.right.subs(v, sp.sqrt(s - u**2)), known


curve_density = Law(
    "semicircle-curve-density",
    "Density over the boundary curve",
    _curve_density,
    source="Biane 1997; derived here",
    checks=_curve_density_checks,
)


def _curve_distribution():
    antiderivative = sp.Function("L")(w) + s * resolvent**2 / 2
    yield "∫G dz = ∫ r (1 + s r') dw, with L' = r", Eq(sp.Function("U")(z), antiderivative)
    yield "F = 1 − Im U/π, and Im r = −v/s, Re r = h", Eq(distribution, 1 - (angle - hilbert * v) / sp.pi)


def _curve_distribution_checks():
    right = curve_distribution.right
    position = {angle: sp.acos(u / sp.sqrt(s)), hilbert: u / s, v: sp.sqrt(s - u**2)}
    known = Rational(1, 2) + sp.asin(u / sp.sqrt(s)) / sp.pi + u * sp.sqrt(s - u**2) / (sp.pi * s)
    yield "one eigenvalue 0: the semicircle's distribution function", right.subs(position), known


curve_distribution = Law(
    "semicircle-curve-distribution",
    "Distribution function over the boundary curve",
    _curve_distribution,
    source="derived here",
    checks=_curve_distribution_checks,
)

# Spikes ---------------------------------------------------------------------------------------------------------

_wishart_curve = MarchenkoPastur(c).polynomial


def _additive_location():
    yield "det(1 − θ (x − A)⁻¹ u uᵀ) = 0, and uᵀ(x − A)⁻¹u → G(x)", Eq(1 / theta, g)
    yield "x = R(G) + 1/G", Eq(location, _R(1 / theta) + theta)
    yield "on a Wishart bulk", Eq(location, _transform(MarchenkoPastur(c)).subs(g, 1 / theta) + theta)


def _additive_equation():
    yield Eq(_wishart_curve.subs({_z: location, _g: 1 / theta}), 0)


additive_location = Law(
    "additive-spike",
    "Outlier of a spike added to a Wishart matrix",
    _additive_location,
    source="Benaych-Georges & Nadakuditi 2011; derived here",
    solves=_additive_equation,
    where=lambda: theta > c + sp.sqrt(c),
)


def _additive_overlap():
    yield (
        "eigenvector (x − A)⁻¹u, normalised: squared overlap G²/(−G')",
        Eq(overlap, g**2 / -sp.Function("G")(z).diff(z)),
    )
    reason = "G = 1/θ, and dx/dG = R'(G) − 1/G²"
    yield reason, Eq(overlap, 1 - sp.Function("R")(g).diff(g) / theta**2)
    rate_of_change = sp.diff(_transform(MarchenkoPastur(c)), g).subs(g, 1 / theta)
    yield "on a Wishart bulk", Eq(overlap, 1 - sp.factor(rate_of_change / theta**2))


def _additive_overlap_checks():
    point = {_z: additive_location.right, _g: 1 / theta}
    implicit = (-_wishart_curve.diff(_z) / _wishart_curve.diff(_g)).subs(point)
    yield "−1/(θ² G'(x)), with G' from the bulk's curve", additive_overlap.right, -1 / (theta**2 * implicit)


additive_overlap = Law(
    "additive-spike-overlap",
    "Overlap of the outlier of a spike added to a Wishart matrix",
    _additive_overlap,
    source="Benaych-Georges & Nadakuditi 2011; derived here",
    checks=_additive_overlap_checks,
    where=lambda: theta > c + sp.sqrt(c),
)


def _multiplicative_location():
    yield "det(1 − θ/(1 + θ) x (x − M)⁻¹ u uᵀ) = 0, and uᵀ x(x − M)⁻¹u → 1 + T(x)", Eq(1 + m, (1 + theta) / theta)
    image = (1 + m) / (m * MarchenkoPastur(c).s_transform().subs(_m, m))
    yield "so T(x) = 1/θ; on a Wishart bulk, x(T) from the S-transform", Eq(location, image.subs(m, 1 / theta))
    yield "factors", Eq(location, sp.factor(image.subs(m, 1 / theta)))


def _multiplicative_location_checks():
    yield (
        "classical spiked covariance (Baik & Silverstein 2006)",
        multiplicative_location.right,
        (1 + theta) * (1 + c / theta),
    )


multiplicative_location = Law(
    "multiplicative-spike",
    "Outlier of a covariance spike",
    _multiplicative_location,
    source="Benaych-Georges & Nadakuditi 2011; Baik & Silverstein 2006; derived here",
    checks=_multiplicative_location_checks,
    where=lambda: theta > sp.sqrt(c),
)


def _multiplicative_overlap():
    change = sp.Symbol("T_prime")
    yield "A^½ M A^½ v = x v and y = A^½ v: (x − M) y = x θ/(1 + θ) u (uᵀy)", Eq(1 / theta, m)
    yield (
        "norm of v = A^(−½) y, in terms of T(x) = x G(x) − 1",
        Eq(overlap, -(1 + theta) / (theta**2 * location * change)),
    )
    image = (1 + m) / (m * MarchenkoPastur(c).s_transform().subs(_m, m))
    yield "on a Wishart bulk, x(T) from the S-transform", Eq(location, image.subs(m, 1 / theta))
    derivative = 1 / sp.diff(image, m)
    value = -(1 + theta) / (theta**2 * image * derivative)
    yield "overlap there", Eq(overlap, sp.factor(value.subs(m, 1 / theta)))


def _multiplicative_overlap_checks():
    yield "classical spiked covariance (Paul 2007)", multiplicative_overlap.right, (1 - c / theta**2) / (1 + c / theta)


multiplicative_overlap = Law(
    "multiplicative-spike-overlap",
    "Overlap of the outlier of a covariance spike",
    _multiplicative_overlap,
    source="Benaych-Georges & Nadakuditi 2011; Paul 2007; derived here",
    checks=_multiplicative_overlap_checks,
    where=lambda: theta > sp.sqrt(c),
)

_signal = ell / (ell**2 - 1)


def _embedded_location():
    yield "an eigenvalue ℓ of the signal is its own subordinate argument", Eq(w, ell)
    yield "subordination", semicircle_subordination.statement
    yield "a signal of ±1", Eq(location, semicircle_subordination.right.subs({w: ell, resolvent: _signal}))


def _embedded_location_checks():
    image, point = embedded_location.right, sp.Function("G")(z)
    law = _signs + Semicircle(s)
    yield "G(x) of the sum is the signal's at ℓ", law.polynomial.subs({_z: image, _g: _signal}), 0 * point.args[0]


embedded_location = Law(
    "semicircle-spike",
    "Outlier of a signal's eigenvalue under semicircle noise",
    _embedded_location,
    source="Capitaine, Donati-Martin, Féral & Février 2011; derived here",
    checks=_embedded_location_checks,
    where=lambda: s * (ell**2 + 1) < (ell**2 - 1) ** 2,
)


def _embedded_overlap():
    yield "the resolvent of the sum, averaged over the noise, is the signal's at w(z)", Eq(w, z - s * g)
    yield "its residue at the outlier is w'(x) = 1/z'(ℓ) = 1/(1 + s r')⁻¹", Eq(overlap, 1 + s * slope)
    yield "a signal of ±1", Eq(overlap, 1 + s * sp.factor(sp.diff(_signal, ell)))


def _embedded_overlap_checks():
    yield (
        "it is the derivative of the outlier's location",
        embedded_overlap.right,
        sp.diff(embedded_location.right, ell),
    )


embedded_overlap = Law(
    "semicircle-spike-overlap",
    "Overlap of that outlier with the signal's eigenvector",
    _embedded_overlap,
    source="Capitaine, Donati-Martin, Féral & Février 2011; derived here",
    checks=_embedded_overlap_checks,
    where=lambda: s * (ell**2 + 1) < (ell**2 - 1) ** 2,
)

# Shrinkage ------------------------------------------------------------------------------------------------------


def _semicircle_signal():
    yield "the resolvent of the sum, averaged over the noise, is the signal's at w", Eq(w, z - s * g)
    yield "∫ λ/(w − λ) dν = w G_ν(w) − 1, and G_ν(w) = g", Eq(signal_transform, w * g - 1)
    yield "insert w", Eq(signal_transform, (z - s * g) * g - 1)


def _semicircle_signal_checks():
    yield "one eigenvalue 0 has no part", semicircle_signal.right, -Semicircle(s).polynomial.subs({_g: g, _z: z})


semicircle_signal = Law(
    "semicircle-signal-transform",
    "Transform of the signal's part under semicircle noise",
    _semicircle_signal,
    source="Bun, Allez, Bouchaud & Potters 2016; derived here",
    checks=_semicircle_signal_checks,
)


def _semicircle_shrinkage():
    part = sp.Symbol("Im e") / sp.Symbol("Im g")
    yield "the part at an eigenvalue is the ratio of densities, at z = x + i0", Eq(shrunk, part)
    boundary = hilbert - sp.I * sp.pi * density
    inserted = semicircle_signal.right.subs({z: x, g: boundary})
    yield "G = h − iπρ there", Eq(sp.Symbol("e"), inserted)
    ratio = sp.cancel(
        sp.im(sp.expand(inserted.subs({q: sp.Symbol(q.name, real=True) for q in (x, s, hilbert, density)})))
    )
    names = {sp.Symbol(q.name, real=True): q for q in (x, s, hilbert, density)}
    yield "divide the imaginary parts", Eq(shrunk, sp.expand(sp.cancel(ratio.subs(names) / (-sp.pi * density))))


def _semicircle_shrinkage_checks():
    one_point = semicircle_shrinkage.right.subs(hilbert, (x - c) / (2 * s))
    yield "a signal of one eigenvalue c, h = (x − c)/(2s), is recovered", one_point, c


semicircle_shrinkage = Law(
    "semicircle-shrinkage",
    "Optimal shrinkage under semicircle noise",
    _semicircle_shrinkage,
    source="Bun, Allez, Bouchaud & Potters 2016; derived here",
    checks=_semicircle_shrinkage_checks,
)


def _wishart_signal():
    companion = 1 - c + c * (1 + m)
    yield (
        "subordination of a sample covariance: z G = ∫ z/(z − k t) dH(t), k = 1 − c + c z G",
        Eq(sp.Symbol("k"), companion),
    )
    yield "∫ t/(z − k t) dH = (z G − 1)/k", Eq(signal_transform, m / sp.Symbol("k"))
    yield "insert k", Eq(signal_transform, m / sp.expand(companion))


def _wishart_signal_checks():
    inverse = _wishart_inverse()
    yield "white noise: every part is 1, so the transform is G", wishart_signal.right, (1 + m) / inverse


wishart_signal = Law(
    "wishart-signal-transform",
    "Transform of the population's part of a sample covariance",
    _wishart_signal,
    source="Ledoit & Péché 2011; derived here",
    checks=_wishart_signal_checks,
)


def _wishart_shrinkage():
    yield "transform of the population's part", wishart_signal.statement
    divisor = sp.Symbol("k")
    modulus = sp.Abs(divisor) ** 2
    yield "its divisor, a complex number at z = x + i0", Eq(divisor, 1 + c * m)
    yield "its imaginary part at z = x + i0, where Im m = x Im G", Eq(sp.Symbol("Im e"), sp.Symbol("Im m") / modulus)
    yield "over Im G", Eq(shrunk, x / modulus)
    yield (
        "m = x G − 1 with G = h − iπρ",
        Eq(shrunk, x / ((1 - c + c * x * hilbert) ** 2 + (sp.pi * c * x * density) ** 2)),
    )


def _wishart_shrinkage_checks():
    real = (x + c - 1) / (2 * c * x)
    imaginary = sp.sqrt(4 * c * x - (x + c - 1) ** 2) / (2 * c * x * sp.pi)
    yield (
        "white noise is shrunk to its single eigenvalue 1",
        wishart_shrinkage.right.subs({hilbert: real, density: imaginary}),
        Integer(1),
    )


wishart_shrinkage = Law(
    "wishart-shrinkage",
    "Optimal shrinkage of a sample covariance",
    _wishart_shrinkage,
    source="Ledoit & Péché 2011; derived here",
    checks=_wishart_shrinkage_checks,
    where=lambda: 4 * c * x > (x + c - 1) ** 2,
)

# Finite size ----------------------------------------------------------------------------------------------------


def _edge_map():
    """The image z(m) of the moment transform of a Wishart matrix, and its critical point."""
    image = (1 + m) / (m * MarchenkoPastur(c).s_transform().subs(_m, m))
    return image, 1 / sp.sqrt(c)


def _edge_centre():
    image, critical = _edge_map()
    yield "the upper edge is the critical value of z(m), at m = 1/√c", Eq(z, sp.factor(image.subs(m, critical)))
    yield "in units of the sum XXᵀ, with c = p/n", Eq(centre, (sp.sqrt(samples) + sp.sqrt(dimension)) ** 2)


def _edge_centre_checks():
    image, critical = _edge_map()
    yield "n times the edge", wishart_edge_centre.right, samples * image.subs(m, critical).subs(c, dimension / samples)


wishart_edge_centre = Law(
    "wishart-edge-centre",
    "Centre of the largest eigenvalue of a Wishart matrix",
    _edge_centre,
    source="Johnstone 2001; derived here",
    checks=_edge_centre_checks,
)


def _edge_scale():
    image, critical = _edge_map()
    bend = sp.factor(sp.diff(image, m, 2).subs(m, critical))
    depth = sp.Symbol("y", positive=True)
    yield (
        "z − z_+ ≈ z''(m)/2 (m − 1/√c)², so Im m = √(2y/z'') at a distance y below the edge",
        Eq(sp.Symbol("z_2"), bend),
    )
    yield "density Im m/(π z): with p eigenvalues, (p A/π) √y", Eq(density, sp.sqrt(2 * depth / bend) / (sp.pi * z))
    yield (
        "the Airy kernel's density is √y/π, so the unit of length is (p A)^(−2/3)",
        Eq(scale, samples * (dimension * sp.sqrt(2 / bend) / z) ** Rational(-2, 3)),
    )
    root = sp.sqrt(samples) + sp.sqrt(dimension)
    yield (
        "insert the edge and c = p/n",
        Eq(scale, root * (1 / sp.sqrt(samples) + 1 / sp.sqrt(dimension)) ** Rational(1, 3)),
    )


def _edge_scale_checks():
    image, critical = _edge_map()
    bend = sp.diff(image, m, 2).subs(m, critical)
    amplitude = dimension * sp.sqrt(2 / bend) / image.subs(m, critical)
    derived = samples * amplitude ** Rational(-2, 3)
    yield "from the curvature of z(m)", wishart_edge_scale.right**3, derived.subs(c, dimension / samples) ** 3


wishart_edge_scale = Law(
    "wishart-edge-scale",
    "Scale of the largest eigenvalue of a Wishart matrix",
    _edge_scale,
    source="Johnstone 2001; derived here",
    checks=_edge_scale_checks,
)

# Claims ---------------------------------------------------------------------------------------------------------

_sum_model = Model("free sum", "diag(±1) + X Xᵀ/N", (c,), (eigenvalue,), (c,))
_product_model = Model("free product", "Σ^½ X Xᵀ Σ^½/N, Σ of eigenvalues 1 and 3", (c,), (eigenvalue,), (c,))
_population_model = Model(
    "population parts", "Σ^½ X Xᵀ Σ^½/N, Σ of eigenvalues 1 and 3", (c,), (eigenvalue, signal_part), (c,)
)
_noise_model = Model("signal parts", "diag(±1) plus Gaussian noise", (s,), (eigenvalue, signal_part))
_compression_model = Model("free compression", "Q diag(±1) Qᵀ, Q a uniform frame", (alpha,), (eigenvalue,), (alpha,))
_inverse_model = Model("free inverse", "(X Xᵀ/N)⁻¹", (c,), (eigenvalue,), (c,))
_poisson_model = Model("free poisson", "Σ a_i x_i x_iᵀ/d with jumps 1 and −2", (rate,), (eigenvalue,), (rate,))
_power_model = Model("free sum power", "Q₁DQ₁ᵀ + … with 1/alpha terms, D = diag(±1)", (alpha,), (eigenvalue,), (alpha,))
_product_power_model = Model(
    "free product power", "X Xᵀ, X = Q₁D^½Q₂D^½ …, D of eigenvalues 1 and 3", (copies,), (eigenvalue,)
)
_atom_model = Model(
    "free sum of atoms",
    "A + Q B Qᵀ, both with the eigenvalue 0 and others",
    (first_share, second_share),
    (eigenvalue,),
    (first_share, second_share),
    ("rest",),
)
_additive_model = Model(
    "additive spike", "X Xᵀ/N + θ e₁e₁ᵀ, first row of X of norm √N", (c, theta), (location, overlap), (c,)
)
_covariance_model = Model(
    "covariance spike", "X Xᵀ/N, its first row times √(1 + θ)", (c, theta), (location, overlap), (c, theta)
)
_signal_model = Model(
    "semicircle sum", "diag(±1, one entry ℓ) plus Gaussian noise", (s, ell), (location, overlap), (ell,)
)


_quick = {24: 600, 48: 350, 96: 170, 192: 55}
_lean_quick = {24: 200, 48: 120, 96: 60, 192: 30}
_standard = {24: 2000, 48: 1200, 96: 600, 192: 250}
_sharp_quick = {24: 2200, 48: 1300, 96: 700, 192: 250}  # realised strengths take most of the fluctuation out
_sharp_standard = {24: 6000, 48: 3600, 96: 1800, 192: 700}
_half = Rational(1, 2)

sum_experiment = Experiment("free-sum", _sum_model, {c: _half}, _standard, _quick)
product_experiment = Experiment("free-product", _product_model, {c: _half}, _standard, _quick)
compression_experiment = Experiment("free-compression", _compression_model, {alpha: _half}, _standard, _lean_quick)
inverse_experiment = Experiment("free-inverse", _inverse_model, {c: Rational(1, 4)}, _standard, _lean_quick)
poisson_experiment = Experiment("free-poisson", _poisson_model, {rate: Integer(1)}, _standard, _quick)
power_experiment = Experiment("free-power", _power_model, {alpha: Rational(1, 3)}, _standard, _lean_quick)
product_power_experiment = Experiment(
    "free-product-power", _product_power_model, {copies: Integer(2)}, _standard, _lean_quick
)
population_experiment = Experiment("population-parts", _population_model, {c: _half}, _standard, _quick)
noise_experiment = Experiment("signal-parts", _noise_model, {s: Integer(1)}, _sharp_standard)
outside_experiment, inside_experiment = (
    Experiment(
        f"free-atom-{place}",
        _atom_model,
        {first_share: Rational(3, 4), second_share: Rational(5, 8)},
        {32: 40, 128: 10},
        {32: 10, 128: 3},
        {"rest": rest},
    )
    for place, rest in (("outside", "points"), ("inside", "interval"))
)
additive_experiment = Experiment(
    "additive-spike", _additive_model, {c: _half, theta: Integer(3)}, _sharp_standard, _sharp_quick
)
covariance_experiment = Experiment(
    "covariance-spike",
    _covariance_model,
    {c: _half, theta: Integer(3)},
    _sharp_standard,
    {24: 1000, 48: 600, 96: 300, 192: 100},
)
signal_experiment = Experiment(
    "signal-spike",
    _signal_model,
    {s: Integer(1), ell: Integer(3)},
    _sharp_standard,
    _sharp_quick,
)


def _linear(resolution):
    return Limit(rate=1, next=2, resolution=resolution, relative=True)


def _off(law):
    return {"off by 5 %": law.off_by(Rational(1, 20)), "another term off by 5 %": law.off_by(Rational(1, 20), 1)}


def _wishart_transform(at):
    """G of a Wishart matrix in closed form, outside and to the right of the support."""
    root = sp.sqrt((at - (1 - sp.sqrt(c)) ** 2) * (at - (1 + sp.sqrt(c)) ** 2))
    return (at + c - 1 - root) / (2 * c * at)


def _sum_rivals():
    classical = (_wishart_transform(z - 1) + _wishart_transform(z + 1)) / 2
    return {
        "independent, not free: the classical sum": Eq(1 / g, 1 / classical),
        "1/c for c": free_sum.rival(c=1 / c),
        **_off(free_sum),
    }


def _product_rivals():
    classical = (_wishart_transform(z) + _wishart_transform(z / 3) / 3) / 2
    return {
        "independent, not free: the classical product": Eq(1 / (1 + m), 1 / (z * classical)),
        "1/c for c": free_product.rival(c=1 / c),
        "off by 5 %": free_product.off_by(Rational(1, 20)),
    }


def _power_rivals():
    classical = sp.Add(*(sp.binomial(3, k) / (z - 3 + 2 * k) for k in range(4))) / 8
    return {
        "independent, not free: three coins": Eq(1 / g, 1 / classical),
        "one matrix times 3": Eq(1 / g, (z**2 - 9) / z),
        "compressed, not summed": free_compression.statement,
    }


def _product_power_rivals():
    classical = (1 / (z - 1) + 2 / (z - 3) + 1 / (z - 9)) / 4
    return {
        "independent, not free: products of 1 and 3": Eq(1 / (1 + m), 1 / (z * classical)),
        "the square of one matrix": Eq(1 / (1 + m), 2 / (z * (1 / (z - 1) + 1 / (z - 9)))),
        "three copies for two": product_power.rival(copies=3),
    }


def _atom_rivals():
    return {
        "independent, not free: the product of the masses": sum_atom.rival(right=first_share * second_share),
        "the smaller of the masses": sum_atom.rival(right=sp.Min(first_share, second_share)),
    }


claims = (
    Claim("free-sum", free_sum, sum_experiment, _linear(0.01), _sum_rivals, points=(z, (Integer(5), Integer(8)))),
    Claim(
        "free-product",
        free_product,
        product_experiment,
        _linear(0.02),
        _product_rivals,
        points=(z, (Integer(14), Integer(20))),
    ),
    Claim(
        "free-compression",
        free_compression,
        compression_experiment,
        _linear(0.01),
        lambda: {
            "not compressed": free_compression.rival(alpha=1),
            "1/α for α": free_compression.rival(alpha=1 / alpha),
        },
        points=(z, (Rational(5, 4), Integer(2))),
    ),
    Claim(
        "free-power",
        free_power,
        power_experiment,
        _linear(0.01),
        _power_rivals,
        points=(z, (Integer(4), Integer(6))),
    ),
    Claim(
        "free-product-power",
        product_power,
        product_power_experiment,
        _linear(0.01),
        _product_power_rivals,
        points=(z, (Integer(12), Integer(18))),
    ),
    Claim(
        "population-part",
        wishart_signal,
        population_experiment,
        _linear(0.01),
        lambda: {
            "the sample's eigenvalues taken for the population's": wishart_signal.rival(right=m),
            "1/c for c": wishart_signal.rival(c=1 / c),
            "off by 5 %": wishart_signal.off_by(Rational(1, 20)),
        },
        points=(z, (Integer(14), Integer(20))),
    ),
    Claim(
        "signal-part",
        semicircle_signal,
        noise_experiment,
        _linear(0.03),
        lambda: {
            "the sample's eigenvalues taken for the signal's": semicircle_signal.rival(right=z * g - 1),
            "half the noise": semicircle_signal.rival(s=s / 2),
            "twice the noise": semicircle_signal.rival(s=2 * s),
            "off by 5 %": semicircle_signal.rival(right=semicircle_signal.right * Rational(21, 20)),
        },
        points=(z, (Rational(7, 2), Integer(5))),
    ),
    Claim("free-atom-outside-the-bulk", sum_atom, outside_experiment, Exact(), _atom_rivals),
    Claim("free-atom-inside-the-bulk", sum_atom, inside_experiment, Exact(), _atom_rivals),
    Claim(
        "free-inverse",
        free_inverse,
        inverse_experiment,
        _linear(0.03),
        lambda: {"not inverted": Eq(z, (1 + m) * (1 + c * m) / m), "1/c for c": free_inverse.rival(c=1 / c)},
        points=(z, (Integer(8), Integer(12))),
    ),
    Claim(
        "free-poisson",
        free_poisson,
        poisson_experiment,
        _linear(0.02),
        lambda: {"1/rate for rate": free_poisson.rival(rate=2 / rate), **_off(free_poisson)},
        points=(z, (Integer(6), Integer(9))),
    ),
    Claim(
        "additive-spike-location",
        additive_location,
        additive_experiment,
        _linear(0.01),
        lambda: {
            "a covariance spike for an additive one": additive_location.rival(right=(1 + theta) * (1 + c / theta)),
            "1/c for c": additive_location.rival(c=1 / c),
            "off by 5 %": additive_location.off_by(Rational(1, 20)),
        },
    ),
    Claim(
        "additive-spike-overlap",
        additive_overlap,
        additive_experiment,
        _linear(0.02),
        lambda: {"a covariance spike for an additive one": additive_overlap.rival(right=multiplicative_overlap.right)},
    ),
    Claim(
        "multiplicative-spike-location",
        multiplicative_location,
        covariance_experiment,
        _linear(0.015),
        lambda: {
            "an additive spike for a covariance one": multiplicative_location.rival(right=additive_location.right),
            "1/c for c": multiplicative_location.rival(c=1 / c),
        },
    ),
    Claim(
        "multiplicative-spike-overlap",
        multiplicative_overlap,
        covariance_experiment,
        _linear(0.02),
        lambda: {"an additive spike for a covariance one": multiplicative_overlap.rival(right=additive_overlap.right)},
    ),
    Claim(
        "semicircle-spike-location",
        embedded_location,
        signal_experiment,
        _linear(0.01),
        lambda: {
            "a zero signal besides": embedded_location.rival(right=ell + s / ell),
            "5 % too far": embedded_location.rival(right=embedded_location.right * Rational(21, 20)),
        },
    ),
    Claim(
        "semicircle-spike-overlap",
        embedded_overlap,
        signal_experiment,
        _linear(0.01),
        lambda: {
            "twice the noise": embedded_overlap.rival(s=2 * s),
            "off by 5 %": embedded_overlap.off_by(Rational(1, 20)),
        },
    ),
)
