"""The free product of two Marchenko–Pastur laws: the bulk of a pooled covariance with a finite vocabulary.

From the R-transform of one Wishart matrix to the cubic of the product, its moments, edges, atom, density and
distribution function. Matrices are in units of the pooled noise level κ = ‖w‖², so both factors have mean 1.
"""

from __future__ import annotations

import sympy as sp
from sympy import Eq, Integer, Interval, Rational, oo

from derivations._free_calculus import MarchenkoPastur
from derivations._free_calculus import m as _calculus_m
from derivations._free_calculus import z as _calculus_z
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

# Symbols -------------------------------------------------------------------------------------------------------

delta = parameter(
    "delta",
    "delta = d/V, the ratio of embedding dimension to vocabulary size",
    Interval.open(0, oo),
    (Rational(1, 5), 3),
)
gamma = parameter(
    "gamma",
    "gamma = d/N, the ratio of embedding dimension to number of samples",
    Interval.open(0, oo),
    (Rational(1, 5), 3),
)
x = variable("x", "spectral argument, in units of κ", typical=(Rational(-1, 3), Rational(-7, 5), 11))
g = variable("g", "value of the resolvent trace G(x) = ∫ dμ/(x − λ)", typical=(Rational(1, 20), Rational(1, 8)))
s = variable(
    "s",
    "position inside the support, from the lower edge (0) to the upper one (1)",
    typical=(Rational(1, 10), Rational(9, 10)),
)
t = variable("t", "reciprocal of the moment transform, t = 1/m", typical=(Rational(1, 3), 3))
n = variable("n", "order of a moment", sp.S.Naturals, typical=(1, 5))
k = variable("k", "index of a root of the edge equation", sp.Range(0, 3), typical=(0, 1, 2))
i, j = sp.symbols("i j", integer=True, nonnegative=True)

eigenvalue = observable("eigenvalues", "eigenvalues of S/κ", notation=r"\lambda")
largest_eigenvalue = observable("largest_eigenvalue", "largest eigenvalue of S/κ", notation=r"\lambda_{\max}")
smallest_eigenvalue = observable(
    "smallest_eigenvalue", "smallest nonzero eigenvalue of S/κ", notation=r"\lambda_{\min}"
)

m = measured(
    "m",
    "moment transform x G(x) − 1 = ∫ λ/(x − λ) dμ",
    Average(eigenvalue / (x - eigenvalue)),
    typical=(Rational(-1, 3), Rational(1, 7), 2),
)
moment = measured("moment", "n-th spectral moment, in units of κⁿ", Average(eigenvalue**n), notation="m_n")
zero_mass = measured(
    "zero_mass",
    "mass of the atom at 0",
    Average(sp.Piecewise((1, Eq(eigenvalue, 0)), (0, True))),
    notation=r"\mu(\{0\})",
)
upper = measured("upper_edge", "upper edge of the bulk, in units of κ", largest_eigenvalue, notation="x_+")
lower = measured("lower_edge", "lower edge of the bulk, in units of κ", smallest_eigenvalue, notation="x_-")
middle = variable("middle_root", "third zero of the discriminant (never an edge: it is ≤ 0)", notation="x_0")
density = variable("density", "density of the continuous part, per unit of κ", notation="f")
distribution = measured(
    "distribution",
    "distribution function: the fraction of eigenvalues up to x",
    Average(sp.Piecewise((1, eigenvalue <= x), (0, True))),
    notation="F",
)
t_edge = variable("t_edge", "root of the edge equation, t = 1/m at an edge", notation="t_k")
u = variable("u", "real part of m(x + i0)", typical=(Rational(-1, 2), Rational(1, 2)))
v = variable(
    "v", "minus the imaginary part of m(x + i0), positive inside the support", Interval(0, oo), (Rational(1, 7), 2)
)

_S, _R, _G = sp.Function("S"), sp.Function("R"), sp.Function("G")
chi = sp.Function("chi")

# Marchenko–Pastur ----------------------------------------------------------------------------------------------


def _marchenko_pastur_r():
    rank_one, share, shift = sp.Function("G_1"), sp.Symbol("varepsilon", positive=True), sp.Symbol("R_1")
    resolvent = (1 - share) / x + share / (x - delta)
    yield (
        "one column z of Z gives the rank-one term z zᵀ/V, whose only nonzero eigenvalue is ‖z‖²/V → δ; with ε = 1/d",
        Eq(rank_one(x), resolvent),
    )
    inverse = sp.diff(resolvent.subs(x, 1 / g + share * shift), share).subs(share, 0)
    single = sp.factor(sp.solve(inverse, shift)[0])
    yield "definition of the R-transform, G(R(g) + 1/g) = g, to first order in ε", Eq(shift, share * single)
    columns = 1 / (delta * share)
    yield (
        "freeness of the V = d/δ independent columns: R-transforms add",
        Eq(_R(g), 1 / sp.cancel(1 / (columns * share * single))),
    )


def _marchenko_pastur_checks():
    cumulants = sp.Poly(sp.series(marchenko_pastur_r.right, g, 0, 3).removeO(), g).all_coeffs()[::-1]
    first, second, third = cumulants
    yield "mean 1 (Wick: E tr ZZᵀ/(dV))", first, Integer(1)
    yield "second moment 1 + δ (Wick)", second + first**2, 1 + delta
    yield "third moment 1 + 3δ + δ² (Wick)", third + 3 * second * first + first**3, 1 + 3 * delta + delta**2


marchenko_pastur_r = Law(
    "marchenko-pastur-r-transform",
    "R-transform of the Marchenko–Pastur law",
    _marchenko_pastur_r,
    source="Marchenko & Pastur 1967; free compound Poisson limit, Voiculescu 1986; derived here",
    checks=_marchenko_pastur_checks,
)


def _marchenko_pastur_s():
    r_transform = marchenko_pastur_r.right
    yield "R-transform of the Marchenko–Pastur law", marchenko_pastur_r.statement
    yield "x = R(g) + 1/g and m = x g − 1 give m as a function of g", Eq(m, g * r_transform)
    of_m = sp.solve(Eq(m, g * r_transform), g)[0]
    yield "solve for g", Eq(g, of_m)
    yield "definition χ(m) = 1/x, with x g = 1 + m", Eq(chi(m), of_m / (1 + m))
    yield "definition S(m) = χ(m)(1 + m)/m", Eq(_S(m), sp.cancel(of_m / m))


def _marchenko_pastur_s_checks():
    inverse = 1 / (marchenko_pastur_s.right * m / (1 + m))
    quadratic = (1 + m) * (1 + delta * m) / m
    yield "known quadratic x m = (1 + m)(1 + δ m)", inverse, quadratic


marchenko_pastur_s = Law(
    "marchenko-pastur-s-transform",
    "S-transform of the Marchenko–Pastur law",
    _marchenko_pastur_s,
    source="Voiculescu 1987; derived here",
    checks=_marchenko_pastur_s_checks,
)

# The product ---------------------------------------------------------------------------------------------------

law = MarchenkoPastur(delta) * MarchenkoPastur(gamma)  # the same law as an object of the free-probability calculus


def _product():
    first = marchenko_pastur_s.right
    second = first.subs(delta, gamma)
    yield "S/κ = (Z G)(Z G)ᵀ/(V N): Wishart factors of ratio δ and γ, free of each other", marchenko_pastur_s.statement
    yield "freeness: S-transforms multiply", Eq(_S(m), first * second)
    yield "χ(m) = S(m) m/(1 + m) inverts m as a function of 1/x", Eq(1 / x, first * second * m / (1 + m))
    yield "clear denominators", Eq(x * m, (1 + m) / (first * second))


def _product_checks():
    image = product.right / m
    of_g = m / (1 + delta * m)
    yield (
        "γ → 0 is Marchenko–Pastur, by its R-transform",
        image.subs(gamma, 0),
        (1 / g + marchenko_pastur_r.right).subs(g, of_g),
    )
    swapped = image.subs({delta: gamma, gamma: delta}, simultaneous=True)
    yield "symmetric in δ and γ", swapped, image
    curve = sp.Poly(law.moment_polynomial.subs({_calculus_z: x, _calculus_m: m}), m)
    cubic = sp.Poly(product.right - product.left, m)
    yield (
        "MP(δ) ⊠ MP(γ) in the calculus of free probability: its curve",
        curve.monic().as_expr(),
        cubic.monic().as_expr(),
    )
    transform = law.s_transform().subs(_calculus_m, m)
    yield "and its S-transform", (1 + m) / (transform * m), image


product = Law(
    "wishart-product",
    "Moment transform of the product of two Wishart matrices",
    _product,
    source="Voiculescu 1987 (free multiplicative convolution); P1, Theorem 1",
    checks=_product_checks,
    branch="m ~ 1/x as x → ∞; for Im x > 0 the root with Im m < 0 and 1/t_2 < Re m < 1/t_0",
)


def _moments():
    kernel = product.right
    yield "the cubic, with y = 1/x", Eq(m, kernel / x)
    phi, y = sp.Function("phi"), sp.Symbol("y")
    coefficient = sp.Function("coeff")
    yield (
        "Lagrange inversion of m = y φ(m): the coefficient of yⁿ in m is 1/n times that of mⁿ⁻¹ in φⁿ",
        Eq(coefficient(m, y**n), coefficient(phi(m) ** n, m ** (n - 1)) / n),
    )
    order = n - 1 - i - j
    term = sp.binomial(n, i) * sp.binomial(n, j) * sp.binomial(n, order) * delta**j * gamma**order
    yield (
        "binomial theorem for each of the three factors of φⁿ",
        Eq(moment, sp.Sum(term, (j, 0, n - 1 - i), (i, 0, n - 1)) / n),
    )


def _moment_checks():
    y = sp.Symbol("y")
    series, kernel = Integer(0), product.right
    for _ in range(5):
        factors = [factor.subs(m, series) for factor in sp.Mul.make_args(kernel)]
        series = y
        for factor in factors:
            product_of_both = sp.Poly(series * factor, y)
            series = sum((product_of_both.coeff_monomial(y**order) * y**order for order in range(1, 6)), Integer(0))
    for order in range(1, 6):
        yield f"moment {order} by iterating the cubic", moments.right.subs(n, order).doit(), series.coeff(y, order)
    for order, moment_of_law in enumerate(law.moments(3), 1):
        yield f"moment {order} from the calculus", moments.right.subs(n, order).doit(), moment_of_law
    for order in range(1, 7):
        fuss_catalan = sp.binomial(3 * order, order) / (2 * order + 1)
        yield (
            f"δ = γ = 1: Fuss–Catalan number {order}",
            moments.right.subs({delta: 1, gamma: 1, n: order}).doit(),
            fuss_catalan,
        )


moments = Law(
    "wishart-product-moments",
    "Moments of the product",
    _moments,
    source="derived here by Lagrange inversion",
    checks=_moment_checks,
)


def _spectral_map():
    yield "the cubic", product.statement
    yield "x as a function of m", Eq(x, product.right / m)
    of_t = sp.factor((product.right / m).subs(m, 1 / t))
    yield "with t = 1/m", Eq(x, of_t)


def _spectral_map_equation():
    yield product.statement.subs(m, 1 / t)


spectral_map = Law(
    "wishart-product-map",
    "Spectral argument as a function of t = 1/m",
    _spectral_map,
    source="derived here",
    solves=_spectral_map_equation,
)


def _edge_equation():
    image = spectral_map.right
    yield "the inverse of m, whose critical points are the edges of the support", spectral_map.statement
    slope = sp.numer(sp.together(sp.diff(image, t)))
    cubic = sp.Poly(slope, t)
    reduced = sp.quo(cubic, sp.gcd(cubic, sp.Poly(t**3, t))).monic()
    yield "dx/dt = 0", Eq(reduced.as_expr(), 0)
    yield "collect", Eq(t**3, sp.collect(sp.expand(t**3 - reduced.as_expr()), t))


def _edge_equation_checks():
    at_zero = edge_equation.right.subs(gamma, 0)
    yield "γ → 0: t² = δ, the edges of Marchenko–Pastur", at_zero / t, delta
    stationary = sp.diff(spectral_map.right, t) * t**3
    yield "it is t³ dx/dt", sp.expand(stationary), t**3 - edge_equation.right


edge_equation = Law(
    "wishart-product-edge-equation",
    "Equation of the edges",
    _edge_equation,
    source="derived here",
    checks=_edge_equation_checks,
)


def _edge_roots():
    right = sp.Poly(edge_equation.right, t)
    linear, constant = right.coeff_monomial(t), right.coeff_monomial(1)
    p = variable("p", "coefficient δ + γ + δγ of the edge equation", Interval.open(0, oo))
    yield "depressed cubic", Eq(t**3, p * t + constant)
    yield "its coefficient", Eq(p, linear)
    yield (
        "AM–GM on δ, γ, δγ: the arccosine's argument is at most 1, so all three roots are real (Viète)",
        sp.Le(constant / 2 * (3 / p) ** Rational(3, 2), 1, evaluate=False),
    )
    angle = sp.acos(constant / 2 * (3 / linear) ** Rational(3, 2)) / 3
    yield (
        "Viète's trigonometric roots; k = 0 is positive, k = 2 the most negative one",
        Eq(t_edge, 2 * sp.sqrt(linear / 3) * sp.cos(angle - 2 * sp.pi * k / 3)),
    )


def _edge_roots_equation():
    for index in range(3):
        yield edge_equation.statement.subs(t, edge_roots.right.subs(k, index))


edge_roots = Law(
    "wishart-product-edge-roots",
    "Roots of the edge equation in closed form",
    _edge_roots,
    source="derived here",
    solves=_edge_roots_equation,
    branch="k = 0: upper edge; k = 2: lower edge; k = 1: x ≤ 0, no edge",
)


def _edge(symbol, index, reason):
    def derivation():
        yield "edges are the critical values of the map", spectral_map.statement
        yield reason, edge_roots.statement.subs(k, index).subs(t_edge, t)
        yield "value of the map there", Eq(symbol, spectral_map.right.subs(t, edge_roots.right.subs(k, index)))

    return derivation


def _upper_edge_checks():
    yield "δ = γ = 1 (Fuss–Catalan)", upper_edge.right.subs({delta: 1, gamma: 1}), Rational(27, 4)
    equal = upper_edge.right.subs(gamma, delta)
    yield (
        "δ = γ: t² − δt − 2δ = 0",
        equal,
        spectral_map.right.subs(gamma, delta).subs(t, (delta + sp.sqrt(delta**2 + 8 * delta)) / 2),
    )


def _lower_edge_checks():
    yield (
        "δ = 1: hard edge (1 and δ tie for the largest)",
        lower_edge.right.subs({delta: 1, gamma: Rational(1, 4)}),
        Integer(0),
    )
    yield "δ = γ > 1: hard edge", lower_edge.right.subs({delta: 2, gamma: 2}), Integer(0)
    product_of_zeros = upper_edge.right * lower_edge.right * middle_root.right
    differences = ((1 - delta) * (1 - gamma) * (delta - gamma)) ** 2
    yield "product of the zeros of the discriminant", product_of_zeros, -differences / (4 * delta * gamma)


upper_edge = Law(
    "wishart-product-upper-edge",
    "Upper edge of the bulk",
    _edge(upper, 0, "beyond the support m > 0 decreases from 1/t_0 to 0: the positive root"),
    source="derived here",
    checks=_upper_edge_checks,
)
lower_edge = Law(
    "wishart-product-lower-edge",
    "Lower edge of the bulk",
    _edge(
        lower,
        2,
        "left of the support m < 0 descends from 0 (x → −∞) to the nearest critical point: the most negative t",
    ),
    source="derived here",
    checks=_lower_edge_checks,
    branch="the most negative root of the edge equation; 0 (a hard edge) when the largest of 1, δ, γ is not unique",
)


def _middle_checks():
    yield (
        "case δ = ½, γ = ¼: the roots leave the real axis at −0.0838758",
        middle_root.right.subs({delta: Rational(1, 2), gamma: Rational(1, 4)}),
        spectral_map.right.subs(
            {
                delta: Rational(1, 2),
                gamma: Rational(1, 4),
                t: edge_roots.right.subs({k: 1, delta: Rational(1, 2), gamma: Rational(1, 4)}),
            }
        ),
    )
    total = upper_edge.right + lower_edge.right + middle_root.right
    cubic = sp.Poly(sp.discriminant(sp.expand(product.right - x * m), m), x)
    yield "sum of the zeros of the discriminant (Vieta)", total, -cubic.coeff_monomial(x**2) / cubic.LC()


middle_root = Law(
    "wishart-product-middle-root",
    "Third zero of the discriminant",
    _edge(middle, 1, "the remaining root; there the two unphysical roots of the cubic meet, at x ≤ 0"),
    source="derived here",
    checks=_middle_checks,
)


def _atom():
    yield "the cubic at x → 0−, where m tends to the atom's mass minus 1", Eq(0, product.right)
    largest = sp.Max(1, delta, gamma)
    yield (
        "m falls from 0 (at x → −∞) monotonically, so it meets the largest of −1, −1/δ, −1/γ first",
        Eq(m, -1 / largest),
    )
    yield "mass = 1 + m(0−)", Eq(zero_mass, 1 - 1 / largest)


def _atom_checks():
    yield (
        "rank of a d × d product through V and N: 1 − min(1, V/d, N/d)",
        atom.right,
        1 - sp.Min(1, 1 / delta, 1 / gamma),
    )


atom = Law("wishart-product-atom", "Atom at zero", _atom, source="derived here; P1, Theorem 1", checks=_atom_checks)

# Density and distribution function -----------------------------------------------------------------------------


def _cubic_coefficients():
    """Coefficients (a, b, c) of a m³ + b m² + c m + 1 = 0."""
    polynomial = sp.Poly(sp.expand(product.right - x * m), m)
    return polynomial.coeff_monomial(m**3), polynomial.coeff_monomial(m**2), polynomial.coeff_monomial(m)


def _first_invariant(a, b, c):
    """b² − 3ac with its constant part as half the sum of the squared differences of the terms of b."""
    terms = sp.Add.make_args(b)
    squares = sum((terms[q] - terms[r]) ** 2 for q in range(3) for r in range(q)) / 2
    return squares + sp.expand(sp.expand(b**2 - 3 * a * c) - sp.expand(squares))


def _imaginary_part():
    a, b, c = _cubic_coefficients()
    yield "the cubic", Eq(a * m**3 + b * m**2 + c * m + 1, 0)
    first, second, root = sp.symbols("Delta_0 Delta_1 W")
    delta_zero = _first_invariant(a, b, c)
    yield "Cardano's first invariant b² − 3ac, its constant part as a sum of squares", Eq(first, delta_zero)
    linear = sp.Poly(sp.expand(2 * b**3 - 9 * a * b * c + 27 * a**2), x)
    delta_one = sp.factor(linear.coeff_monomial(1)) + linear.coeff_monomial(x) * x
    yield "second invariant 2b³ − 9abc + 27a², its constant part factored", Eq(second, delta_one)
    discriminant = 108 * a**3 * (upper - x) * (x - lower) * (x - middle)
    yield (
        "Δ₁² − 4Δ₀³ = W² vanishes where two roots meet: at the three critical values of the map",
        Eq(root**2, discriminant),
    )
    largest = ((sp.Abs(second) + root) / 2) ** Rational(1, 3)
    yield (
        "Cardano: the complex pair has imaginary part √3 (C − Δ₀/C)/(6a) with C³ = (|Δ₁| + W)/2; so nothing cancels",
        Eq(v, sp.sqrt(3) * root / (6 * a * (largest**2 + first + (first / largest) ** 2))),
    )
    inserted = sp.sqrt(3) * root / (6 * a * (largest**2 + first + (first / largest) ** 2))
    values = {first: delta_zero, second: delta_one, root: sp.sqrt(discriminant)}
    yield "with Δ₀, Δ₁, W inserted", Eq(v, inserted.subs(values))


def _edges_inserted(expression):
    """An expression in x and the three zeros of the discriminant, at position s inside the support."""
    low, high = lower_edge.right, upper_edge.right
    return expression.subs(
        {upper: high, lower: low, middle: middle_root.right, x: low + s * (high - low)}, simultaneous=True
    )


def _inside():
    """x and m(x + i0) at position s of the support."""
    imaginary = _edges_inserted(imaginary_part.right)
    real = _edges_inserted(real_part.right).subs(v, imaginary)
    return _edges_inserted(x), real, imaginary


def _imaginary_checks():
    place, real, imaginary = _inside()
    root = real - sp.I * imaginary
    yield "u − iv solves the cubic", product.right.subs(m, root), place * root
    yield (
        "the unphysical root is real: Vieta's product of the roots",
        1 / (delta * gamma * (real**2 + imaginary**2)),
        ((delta + gamma + delta * gamma) / (delta * gamma) + 2 * real),
    )


imaginary_part = Law(
    "wishart-product-imaginary-part",
    "Imaginary part of the moment transform on the support",
    _imaginary_part,
    source="derived here (Cardano, arranged so that nothing cancels at edges and hard edges)",
    checks=_imaginary_checks,
    branch="the complex pair; inside the support the third root is real and left of it",
)


def _real_part():
    a, b, c = _cubic_coefficients()
    yield "imaginary part of the cubic at m = u − iv, divided by −v", Eq(3 * a * u**2 - a * v**2 + 2 * b * u + c, 0)
    yield (
        "its right root (the pair lies right of the real root), in the form that does not cancel",
        Eq(u, -(c - a * v**2) / (b + sp.sqrt(_first_invariant(a, b, c) + 3 * a**2 * v**2))),
    )


def _real_checks():
    place, real, imaginary = _inside()
    yield (
        "real part of the map at u − iv",
        place,
        _on_the_support(sp.re).subs({u: real, v: imaginary}, simultaneous=True),
    )
    yield "(u, v) lies on the curve of the support", imaginary**2, support_curve.right.subs(u, real)


real_part = Law(
    "wishart-product-real-part",
    "Real part of the moment transform on the support",
    _real_part,
    source="derived here",
    checks=_real_checks,
    branch="the complex pair lies to the right of the real root",
)


def _on_the_support(part):
    """Real or imaginary part of x as a function of m = u − iv."""
    return part(sp.expand_complex((product.right / m).subs(m, u - sp.I * v)))


def _support_curve():
    root = u - sp.I * v
    image = sp.expand(product.right / m, m)
    yield "x as a function of m, expanded", Eq(x, image)
    reduced = sp.cancel(sp.together(_on_the_support(sp.im) / v))
    yield "its imaginary part at m = u − iv, over v", Eq(sp.im(sp.Function("x")(root)) / v, sp.expand(reduced, v))
    squared = sp.solve(sp.numer(reduced).subs(v**2, t), t)
    yield (
        "it vanishes on the boundary of the physical sheet; the right side is positive for u < 1/t_1 and for "
        "1/t_2 < u < 1/t_0 only, two components, of which the second contains m ~ 1/x",
        Eq(v**2, 1 / sp.factor(1 / (squared[0] + u**2)) - u**2),
    )


def _support_curve_checks():
    zero = support_curve.right.subs(u, 1 / t) * t**3
    boundary = (
        (t**3 - edge_equation.right)
        * t
        / (sp.Poly(edge_equation.right, t).coeff_monomial(t) * t + edge_equation.right.subs(t, 0))
    )
    yield "v = 0 is the edge equation, with t = 1/u", zero, boundary


support_curve = Law(
    "wishart-product-support-curve",
    "Image of the support under the moment transform, and the physical sheet",
    _support_curve,
    source="derived here",
    checks=_support_curve_checks,
    branch="the sheet of the physical m is 1/t_2 < Re m < 1/t_0, below the real axis for Im x > 0",
)


def _density():
    yield "Stieltjes inversion: f = −Im G/π, and m = x G − 1", Eq(density, v / (sp.pi * x))
    yield "the imaginary part", imaginary_part.statement
    yield "density", Eq(density, imaginary_part.right / (sp.pi * x))


def _density_checks():
    point = {delta: Integer(1), gamma: Integer(1), upper: Rational(27, 4), lower: Integer(0), middle: Integer(0)}
    ours = density_law.right.subs(point).subs(x, Rational(27, 4) * s)
    yield "δ = γ = 1: the known Fuss–Catalan density", ours, fuss_catalan_density.right.subs(x, Rational(27, 4) * s)


density_law = Law(
    "wishart-product-density",
    "Density of the continuous part",
    _density,
    source="P1, Theorem 1; derived here",
    checks=_density_checks,
    where=lambda: sp.And(lower < x, x < upper),
)


def _fuss_catalan():
    y = sp.Symbol("y", positive=True)
    yield "the cubic at δ = γ = 1", product.statement.subs({delta: 1, gamma: 1})
    phase = sp.Symbol("varphi", positive=True)
    yield (
        "with 1 + m = ρ e^{−iφ}: the imaginary part of (1 + m)³ = x m gives x on the support",
        Eq(x, sp.sin(3 * phase) ** 3 / (sp.sin(phase) * sp.sin(2 * phase) ** 2)),
    )
    outer = (27 + 3 * sp.sqrt(81 - 12 * y)) ** Rational(1, 3)
    body = sp.cbrt(2) * sp.sqrt(3) / (12 * sp.pi) * (sp.cbrt(2) * outer**2 - 6 * sp.cbrt(y)) / (sp.cbrt(y) ** 2 * outer)
    yield "Cardano's formula for it (Penson & Życzkowski 2011)", Eq(density, body.subs(y, x))


def _fuss_catalan_checks():
    phase = sp.pi * s / 3
    place = sp.sin(3 * phase) ** 3 / (sp.sin(phase) * sp.sin(2 * phase) ** 2)
    parametric = sp.sin(phase) ** 2 * sp.sin(2 * phase) / (sp.pi * sp.sin(3 * phase) ** 2)
    yield "trigonometric form of the density", fuss_catalan_density.right.subs(x, place), parametric


fuss_catalan_density = Law(
    "fuss-catalan-density",
    "Density for δ = γ = 1",
    _fuss_catalan,
    source="Penson & Życzkowski 2011; derived here",
    checks=_fuss_catalan_checks,
)


def _distribution():
    primitive = 2 * m - sp.log(1 + m) - sp.log(1 + delta * m) / delta - sp.log(1 + gamma * m) / gamma
    integral = sp.Integral(m / x, x)
    yield "the cubic", product.statement
    yield "F(x) = 1 − ∫ f over (x, x₊), with f = −Im m/(π x)", Eq(distribution, 1 + sp.im(integral) / sp.pi)
    yield "∫ m d(log x), with log x from the cubic as a function of m", Eq(integral, primitive)
    yield "at the upper edge m > 0 and every logarithm is real; on the support m = u − iv", Eq(sp.im(m), -v)
    arguments = sum(sp.atan2(weight * v, 1 + weight * u) / weight for weight in (Integer(1), delta, gamma))
    yield "imaginary part of the primitive", Eq(distribution, 1 + (2 * v - arguments) / sp.pi)


def _distribution_checks():
    primitive = 2 * m - sp.log(1 + m) - sp.log(1 + delta * m) / delta - sp.log(1 + gamma * m) / gamma
    yield "the primitive is ∫ m d(log x)", sp.diff(primitive, m), m * sp.diff(sp.log(product.right) - sp.log(m), m)
    real, imaginary = sp.symbols("real imaginary", positive=True)
    value = distribution_law.right.subs({u: real, v: imaginary})
    root = real - sp.I * imaginary
    ours = sp.diff(value, imaginary)
    yield (
        "its derivative along v is that of the primitive",
        ours.subs({real: s, imaginary: t}),
        (sp.re(sp.diff(primitive, m).subs(m, root)) / sp.pi).subs({real: s, imaginary: t}),
    )
    yield "upper edge: F = 1", distribution_law.right.subs({v: 0, u: Rational(1, 3)}), Integer(1)


distribution_law = Law(
    "wishart-product-distribution",
    "Distribution function in closed form",
    _distribution,
    source="derived here",
    checks=_distribution_checks,
    where=lambda: sp.And(lower < x, x < upper),
    branch="principal arguments: m stays in the lower half-plane on the support",
)


# Limits --------------------------------------------------------------------------------------------------------


def _mp_imaginary():
    quadratic = sp.Poly(sp.expand((product.right - x * m).subs(gamma, 0)), m)
    yield "γ → 0 in the cubic", Eq(quadratic.as_expr(), 0)
    edges = _mp_edges()
    yield "edges: t = ±√δ in the map at γ = 0", Eq(upper, edges[0])
    yield "lower edge", Eq(lower, edges[1])
    yield "imaginary part of the complex pair", Eq(v, sp.sqrt((upper - x) * (x - lower)) / (2 * delta))


def _mp_edges():
    image = spectral_map.right.subs(gamma, 0)
    return tuple(sp.factor(sp.expand(image.subs(t, sign * sp.sqrt(delta)))) for sign in (1, -1))


def _mp_inserted(expression):
    high, low = mp_upper_edge.right, mp_lower_edge.right
    return expression.subs({upper: high, lower: low, x: low + s * (high - low)}, simultaneous=True)


def _mp_imaginary_checks():
    root = _mp_inserted(mp_real_part.right) - sp.I * _mp_inserted(mp_imaginary_part.right)
    yield "solves the quadratic", product.right.subs(gamma, 0).subs(m, root), _mp_inserted(x) * root


mp_imaginary_part = Law(
    "marchenko-pastur-imaginary-part",
    "Imaginary part of the moment transform, γ → 0",
    _mp_imaginary,
    source="Marchenko & Pastur 1967; derived here as the limit γ → 0",
    checks=_mp_imaginary_checks,
)


def _mp_real():
    quadratic = sp.Poly(sp.expand((product.right - x * m).subs(gamma, 0)), m)
    yield "γ → 0 in the cubic", Eq(quadratic.as_expr(), 0)
    yield "half the sum of its roots", Eq(u, -quadratic.coeff_monomial(m) / (2 * quadratic.LC()))


mp_real_part = Law(
    "marchenko-pastur-real-part",
    "Real part of the moment transform, γ → 0",
    _mp_real,
    source="derived here as the limit γ → 0",
    checks=_mp_imaginary_checks,
)


def _mp_edge(symbol, index):
    def derivation():
        yield "the map at γ = 0", Eq(x, spectral_map.right.subs(gamma, 0))
        yield "its critical points", Eq(t**2, sp.cancel(edge_equation.right.subs(gamma, 0) / t))
        yield "value there", Eq(symbol, _mp_edges()[index])

    return derivation


def _mp_edge_checks(law, sign):
    def checks():
        yield "(1 ± √δ)²", law().right, (1 + sign * sp.sqrt(delta)) ** 2

    return checks


mp_upper_edge = Law(
    "marchenko-pastur-upper-edge",
    "Upper edge, γ → 0",
    _mp_edge(upper, 0),
    source="Marchenko & Pastur 1967; derived here as the limit γ → 0",
    checks=_mp_edge_checks(lambda: mp_upper_edge, 1),
)
mp_lower_edge = Law(
    "marchenko-pastur-lower-edge",
    "Lower edge, γ → 0",
    _mp_edge(lower, 1),
    source="Marchenko & Pastur 1967; derived here as the limit γ → 0",
    checks=_mp_edge_checks(lambda: mp_lower_edge, -1),
)


def _mp_moments():
    kernel = product.right.subs(gamma, 0)
    yield "γ → 0 in the cubic, with y = 1/x", Eq(m, kernel / x)
    term = sp.binomial(n, j) * sp.binomial(n, n - 1 - j) * delta**j
    yield "Lagrange inversion and the binomial theorem for both factors", Eq(moment, sp.Sum(term, (j, 0, n - 1)) / n)


def _mp_moments_checks():
    for order in range(1, 6):
        yield (
            f"moment {order} of the product at γ = 0",
            mp_moments.right.subs(n, order).doit(),
            (sp.expand(moments.right.subs(n, order).doit()).subs(gamma, 0)),
        )


mp_moments = Law(
    "marchenko-pastur-moments",
    "Moments, γ → 0 (Narayana polynomials)",
    _mp_moments,
    source="derived here by Lagrange inversion",
    checks=_mp_moments_checks,
)


def _mp_distribution():
    yield "distribution function of the product", distribution_law.statement
    argument = sp.atan2(gamma * v, 1 + gamma * u)
    small = sp.diff(argument, gamma).subs(gamma, 0)
    yield (
        "γ → 0: arg(1 + γm)/γ tends to its derivative (L'Hôpital)",
        Eq(distribution, distribution_law.right.subs(argument / gamma, small)),
    )


def _mp_distribution_checks():
    primitive = m - sp.log(1 + m) - sp.log(1 + delta * m) / delta
    image = product.right.subs(gamma, 0) / m
    yield "primitive of m d(log x) at γ = 0", sp.diff(primitive, m), m * sp.diff(sp.log(image), m)
    value = -mp_distribution.right * sp.pi + sp.pi
    yield "it is the imaginary part of the primitive", value.subs({u: s, v: t}), sp.im(primitive.subs(m, s - sp.I * t))


mp_distribution = Law(
    "marchenko-pastur-distribution",
    "Distribution function, γ → 0",
    _mp_distribution,
    source="derived here as the limit γ → 0",
    checks=_mp_distribution_checks,
)

# What is sampled -----------------------------------------------------------------------------------------------

covariance_spike = parameter(
    "theta", "theta: the population covariance is 1 + theta along one direction, 1 elsewhere", Interval(0, oo), (0, 2)
)
zero_count = observable("zero_count", "number of eigenvalues that are zero by rank")
classical_model = Model(
    "wishart",
    "the sample covariance of N Gaussian vectors of dimension d whose covariance is the identity plus one spike",
    (gamma, covariance_spike),
    (
        eigenvalue,
        largest_eigenvalue,
        observable("top_overlap", "squared overlap of the leading eigenvector with the spike"),
    ),
    (gamma,),
)
product_model = Model(
    "product",
    "S/κ = (Z G)(Z G)ᵀ/(V N) with Gaussian Z (d × V) and G (V × N): the bulk without any spike",
    (delta, gamma),
    (eigenvalue, largest_eigenvalue, smallest_eigenvalue, zero_count),
    (delta, gamma),
)

# An extrapolation in two exponents rests on the smallest two sizes and the largest; the middle one tests the fit.
_quick = {64: 1200, 128: 1200, 256: 60, 512: 200}
_standard = {64: 4000, 128: 4000, 256: 120, 512: 500, 1024: 32}
classical = Experiment(
    "classical-bulk",
    classical_model,
    {gamma: Rational(1, 4), covariance_spike: 0},
    {64: 6000, 128: 8000, 256: 400, 512: 2000, 1024: 100},
    {64: 1000, 128: 2000, 256: 200, 512: 600},
)
bulk = Experiment("product-bulk", product_model, {delta: Rational(1, 2), gamma: Rational(1, 4)}, _standard, _quick)
wide = Experiment("product-wide", product_model, {delta: Integer(2), gamma: Rational(1, 2)}, _standard)
# The same draws, judged from the standard tier on: extrapolating an edge takes more of them than a moment does.
_edge_standard = {64: 8000, 128: 8000, 256: 120, 512: 800, 1024: 32}
bulk_edges = Experiment("product-bulk-edges", product_model, bulk.parameters, _edge_standard)
# Above δ = 1 the lower edge fluctuates more; the largest size tells its bias, of exponent 2/3, from a limit.
wide_edges = Experiment("product-wide-edges", product_model, wide.parameters, {**_edge_standard, 1024: 160})
few = Experiment("product-few-samples", product_model, {delta: Rational(1, 2), gamma: Integer(3)}, _standard)

# Claims --------------------------------------------------------------------------------------------------------

_linear = {"rate": 1, "next": 2}
_soft_edge = {"rate": Rational(2, 3), "next": 1}
_five_percent = Rational(1, 20)


def _product_rivals():
    return {
        "gamma for 1/gamma": product.rival(gamma=1 / gamma),
        "one Wishart factor only": product.rival(gamma=0),
        "delta off by 5 %": product.rival(delta=delta * (1 + _five_percent)),
    }


def _moment_rivals():
    classical_product = mp_moments.right * mp_moments.right.subs(delta, gamma)
    return {
        "classical product of independent variables": moments.rival(right=classical_product),
        "gamma for 1/gamma": moments.rival(gamma=1 / gamma),
        "off by 5 %": moments.off_by(_five_percent),
    }


def _distribution_rivals():
    uniform = (x - lower) / (upper - lower)
    return {
        "without the factor 1/x in the density": distribution_law.rival(right=uniform),
        "gamma forgotten": distribution_law.rival(gamma=delta),
        "delta and gamma doubled": distribution_law.rival(delta=2 * delta, gamma=2 * gamma),
    }


_edges = (upper_edge, lower_edge, middle_root)


def _edge_rivals(law):
    return lambda: {
        "Marchenko–Pastur edge of delta": law.rival(
            right=(mp_upper_edge if law is upper_edge else mp_lower_edge).right
        ),
        "gamma for 1/gamma": law.rival(gamma=1 / gamma),
        "off by 5 %": law.off_by(_five_percent),
    }


def _atom_rivals(forgotten):
    return lambda: {
        f"{forgotten} forgotten": atom.rival(right=sp.Max(0, 1 - 1 / (gamma if forgotten == "vocabulary" else delta))),
        "ratios multiplied": atom.rival(right=sp.Max(0, 1 - 1 / (delta * gamma))),
    }


claims = (
    Claim(
        "classical-mean",
        mp_moments,
        classical,
        Limit(**_linear, resolution=0.02),
        lambda: {
            "off by 5 %": mp_moments.off_by(_five_percent),
            "gamma for 1/gamma": mp_moments.rival(delta=1 / delta),
        },
        reads={delta: gamma},
        points=(n, (1, 2)),
    ),
    Claim(
        "classical-edge",
        mp_upper_edge,
        classical,
        Limit(**_soft_edge, resolution=0.04),
        lambda: {
            "off by 5 %": mp_upper_edge.off_by(_five_percent),
            "gamma for 1/gamma": mp_upper_edge.rival(delta=1 / delta),
        },
        reads={delta: gamma, upper: largest_eigenvalue},
    ),
    Claim(
        "bulk-moment-transform",
        product,
        bulk,
        Limit(**_linear, resolution=0.01),
        _product_rivals,
        points=(x, (Rational(-1, 3), Integer(-2), 1 + sp.I)),
    ),
    Claim(
        "bulk-moments",
        moments,
        bulk,
        Limit(**_linear, resolution=0.03, relative=True),
        _moment_rivals,
        points=(n, (1, 2, 3, 4)),
    ),
    Claim(
        "bulk-distribution",
        distribution_law,
        bulk,
        Limit(**_linear, resolution=0.005),
        _distribution_rivals,
        given=(real_part, imaginary_part, *_edges),
        points=(x, (Rational(1, 5), Rational(1, 2), Integer(1), Integer(2), Integer(3))),
    ),
    Claim(
        "bulk-upper-edge",
        upper_edge,
        bulk,
        Limit(**_soft_edge, resolution=0.03, relative=True),
        _edge_rivals(upper_edge),
    ),
    Claim(
        "bulk-lower-edge",
        lower_edge,
        bulk_edges,
        Limit(**_soft_edge, resolution=0.04, relative=True),
        _edge_rivals(lower_edge),
    ),
    Claim("wide-atom", atom, wide, Exact(), _atom_rivals("vocabulary")),
    Claim("few-samples-atom", atom, few, Exact(), _atom_rivals("samples")),
    Claim(
        "wide-moment-transform",
        product,
        wide,
        Limit(**_linear, resolution=0.01),
        _product_rivals,
        points=(x, (Rational(-1, 3), Integer(-2), 1 + sp.I)),
    ),
    Claim(
        "wide-distribution",
        distribution_law,
        wide,
        Limit(**_linear, resolution=0.005),
        _distribution_rivals,
        given=(real_part, imaginary_part, *_edges),
        points=(x, (Rational(1, 5), Integer(1), Integer(3), Integer(6))),
    ),
    Claim(
        "wide-upper-edge",
        upper_edge,
        wide_edges,
        Limit(**_soft_edge, resolution=0.03, relative=True),
        _edge_rivals(upper_edge),
    ),
    Claim(
        "wide-lower-edge",
        lower_edge,
        wide_edges,
        Limit(**_soft_edge, resolution=0.05, relative=True),
        _edge_rivals(lower_edge),
    ),
    Claim(
        "few-samples-moments",
        moments,
        few,
        Limit(**_linear, resolution=0.05, relative=True),
        _moment_rivals,
        points=(n, (2, 3, 4)),
    ),
)
