"""The spectrum of the learned attention matrix, and the sample sizes at which learning changes its nature.

The learned matrix is a thresholded noisy target: its bulk is a free convolution, its outliers are target modes that
the noise has not buried, and at λ → 0 the threshold and the noise fix where fitting and recovery begin.
"""

from __future__ import annotations

import sympy as sp
from sympy import Eq, Interval, Rational, oo

from derivations._expectations import SpectralTail, semicircle_tail
from derivations.core import Law, measured, variable
from derivations.state_evolution import (
    curvature,
    eigenvalue_hat,
    excess,
    hilbert,
    kappa,
    kappa0,
    label_square,
    label_square_law,
    learned_matrix,
    noise,
    outputs_law,
    overlap_law,
    point,
    response_law,
    scale,
    square_law,
    threshold,
    tokens,
    variance,
)
from derivations.wishart_product import delta, marchenko_pastur_r
from derivations.wishart_product import g as transform

g = variable(
    "cauchy", "Cauchy transform G of the noisy target", sp.S.Complexes, (Rational(1, 5), Rational(1, 3)), notation="G"
)
z = measured("z", "spectral argument: the point where G takes the value g", typical=(4, 9))
mode = variable("mode", "eigenvalue s of the target", Interval.open(0, oo), (1, 3), notation="s")

_half = Rational(1, 2)


def _wishart_target():
    ratio, root = 1 / kappa0, sp.sqrt(kappa0)
    yield (
        "Marchenko–Pastur of ratio 1/κ₀ and mean 1",
        marchenko_pastur_r.statement.subs(delta, ratio),
    )
    scaled = root * marchenko_pastur_r.right.subs({delta: ratio, transform: root * g}, simultaneous=True)
    yield "S₀ = W₀W₀ᵀ/√(p₀d) is √κ₀ times it: R_{cX}(g) = c R_X(c g)", Eq(sp.Function("R_0")(g), scaled)
    yield "adding a free semicircle adds v G to R; its inverse is R + 1/G", Eq(z, 1 / g + scaled + variance * g)


def _wishart_target_checks():
    statement = noisy_wishart.right
    yield "mean: the coefficient of g⁰ at g → 0 is the mean √κ₀", sp.limit(statement - 1 / g, g, 0), sp.sqrt(kappa0)
    yield "variance: the coefficient of g is 1 + v", sp.limit(sp.diff(statement - 1 / g, g), g, 0), 1 + variance
    yield (
        "third free cumulant: that of the Wishart matrix, 1/√κ₀",
        sp.diff(statement - 1 / g, g, 2).subs(g, 0) / 2,
        1 / sp.sqrt(kappa0),
    )
    edge = 1 / (1 + 1 / sp.sqrt(kappa0))
    yield (
        "v = 0: the upper edge of Marchenko–Pastur",
        statement.subs({variance: 0}).subs(g, edge),
        sp.sqrt(kappa0) * (1 + 1 / sp.sqrt(kappa0)) ** 2,
    )


noisy_wishart: Law = Law(
    "noisy-wishart-target",
    "A Gaussian target with semicircular noise",
    _wishart_target,
    source="Voiculescu 1986; derived here",
    checks=_wishart_target_checks,
    branch="G ~ 1/z as z → ∞; inside a band the root with Im G < 0",
)


above = measured("above", "share of the noisy target's eigenvalues above z", notation=r"F_>")


def _wishart_potential():
    yield "a Gaussian target with semicircular noise", noisy_wishart.statement
    antiderivative = z * g - sp.integrate(1 / g + variance * g, g) + kappa0 * sp.log(1 - g / sp.sqrt(kappa0))
    yield (
        "∫G dz = z G − ∫z dG, and ∫R₀ dG = −κ₀ log(1 − G/√κ₀)",
        Eq(sp.Integral(sp.Function("G")(z), z), antiderivative),
    )
    yield "its imaginary part just above the axis is π times the mass above z", Eq(above, sp.im(antiderivative) / sp.pi)


def _wishart_potential_checks():
    whole = z * g - sp.log(g) + kappa0 * sp.log(1 - g / sp.sqrt(kappa0)) - variance * g**2 / 2
    along = whole.subs(z, noisy_wishart.right)
    yield "dΦ/dg = g dz/dg along the curve", sp.diff(along, g), g * sp.diff(noisy_wishart.right, g)
    # v = 0, κ₀ = 1, z = 2: Marchenko–Pastur of ratio 1, where z = 4 sin²φ gives F = (2φ + sin 2φ)/π at φ = π/4
    at = {kappa0: sp.Integer(1), variance: sp.Integer(0), z: sp.Integer(2), g: (1 - sp.I) / 2}
    yield "Marchenko–Pastur of ratio 1 at its mean", wishart_potential.right.subs(at), _half - 1 / sp.pi


wishart_potential: Law = Law(
    "noisy-wishart-distribution",
    "Distribution function of a Gaussian target with semicircular noise",
    _wishart_potential,
    source="derived here",
    checks=_wishart_potential_checks,
    branch="principal logarithms, with Im G < 0",
)


# Outliers --------------------------------------------------------------------------------------------------------

location = measured("location", "where a target's mode appears in the noisy target", notation="x_s")
mode_overlap = measured("mode_overlap", "squared overlap of the learned eigenvector with the mode", notation="o_s")
learned_mode = measured(
    "learned_mode", "eigenvalue of the learned matrix that a mode makes", notation=r"\hat s_{\mathrm{mode}}"
)
weight_value = measured("weight_value", "singular value of W/√d", notation=r"\sigma")
splitting = measured("splitting", "variance of the noise below which the bulk splits in two", notation="v_*")


def _mode_location():
    yield "a semicircle of variance v has R = v G, so that z = v G + 1/G", Eq(z, variance * g + 1 / g)
    yield (
        "an additive mode s of finite rank stands where G = 1/s",
        Eq(location, (variance * g + 1 / g).subs(g, 1 / mode)),
    )


def _mode_location_checks():
    x = mode_location.right
    yield "G of the semicircle there is 1/s", (x - sp.sqrt(x**2 - 4 * variance)) / (2 * variance), 1 / mode
    yield "it leaves the bulk at s = √v", mode_location.right.subs(mode, sp.sqrt(variance)), 2 * sp.sqrt(variance)


mode_location: Law = Law(
    "mode-location",
    "Where a mode appears in the noisy target",
    _mode_location,
    source="Péché 2006; Benaych-Georges & Nadakuditi 2011; derived here",
    checks=_mode_location_checks,
    where=lambda: sp.Gt(mode**2, variance),
    branch="finitely many modes over a bulk of zeros; s > √v",
)


def _mode_overlap():
    yield "location of the mode", mode_location.statement
    yield "Hellmann–Feynman: the squared overlap is dx/ds", Eq(mode_overlap, sp.diff(mode_location.right, mode))


def _mode_overlap_checks():
    x = sp.Symbol("x")
    cauchy = (x - sp.sqrt(x**2 - 4 * variance)) / (2 * variance)
    yield (
        "residue −1/(s²G′)",
        mode_overlap_law.right,
        (-1 / (mode**2 * sp.diff(cauchy, x))).subs(x, mode_location.right),
    )


mode_overlap_law: Law = Law(
    "mode-overlap",
    "Overlap of a learned eigenvector with its mode",
    _mode_overlap,
    source="Benaych-Georges & Nadakuditi 2011; derived here",
    checks=_mode_overlap_checks,
    where=lambda: sp.Gt(mode**2, variance),
)


def _learned_mode():
    yield "location of the mode", mode_location.statement
    yield "the learned matrix is the thresholded noisy target", learned_matrix.statement
    yield (
        "a mode above the noise and above the threshold is learned",
        Eq(learned_mode, scale * (mode_location.right - threshold)),
    )


def _learned_mode_checks():
    at = learned_matrix.right.subs(point, mode_location.right)
    yield "where the threshold is passed", learned_mode_law.right, at


learned_mode_law: Law = Law(
    "learned-mode",
    "Learned eigenvalue of a mode",
    _learned_mode,
    source="P2, Section 4; derived here",
    checks=_learned_mode_checks,
    where=lambda: sp.And(sp.Gt(mode**2, variance), sp.Gt(mode + variance / mode, threshold)),
)


def _tail_of_modes():
    yield "location of the mode", mode_location.statement
    yield (
        "x = s + v/s on its increasing branch: as many learned eigenvalues above η(x − ε) as target modes above s",
        Eq(mode, (location + sp.sqrt(location**2 - 4 * variance)) / 2),
    )


tail_of_modes: Law = Law(
    "tail-of-learned-spectrum",
    "Tail of the learned spectrum for a heavy-tailed target",
    _tail_of_modes,
    source="P2, Section 5; derived here",
    checks=lambda: (("inverse of the location", tail_of_modes.right.subs(location, mode_location.right), mode),),
    where=lambda: sp.Gt(mode**2, variance),
    branch="s ≈ x for s ≫ √v: a power law keeps its exponent",
)


def _splitting():
    slope = sp.diff(noisy_wishart.right, g)
    yield "edges are the real zeros of dz/dg; two bands touch where two of them meet", Eq(sp.Derivative(z, g), slope)
    root = sp.cbrt(1 / sp.sqrt(kappa0))
    meeting = 1 / (root**3 - root)
    yield "d²z/dg² = 0 there", Eq(g, meeting)
    yield "dz/dg = 0 fixes the variance", Eq(splitting, (kappa0 ** Rational(-1, 3) - 1) ** 3)


def _splitting_checks():
    # κ₀ = u⁻⁶ with u = 1 + s, so that every root is rational
    root = 1 + mode
    at = {g: 1 / (root**3 - root), variance: splitting_law.right}
    for order, name in ((1, "dz/dg vanishes"), (2, "d²z/dg² vanishes")):
        yield name, sp.diff(noisy_wishart.right, g, order).subs(at).subs(kappa0, (1 + mode) ** -6), sp.Integer(0)


splitting_law: Law = Law(
    "bulk-splitting",
    "The bulk of a low-rank Gaussian target splits",
    _splitting,
    source="derived here",
    checks=_splitting_checks,
    where=lambda: sp.Lt(kappa0, 1),
    branch="κ₀ < 1: two bands for v < v_*, one above",
)


def _weights():
    yield (
        "S = WWᵀ/√(pd): σ(W)² = √(pd) ŝ",
        Eq(weight_value**2 * sp.Symbol("d"), sp.sqrt(kappa) * sp.Symbol("d") * eigenvalue_hat, evaluate=False),
    )
    yield "in units of √d", Eq(weight_value, sp.sqrt(sp.sqrt(kappa) * mode))


weights_law: Law = Law(
    "singular-values-of-weights",
    "Singular values of the learned weights",
    _weights,
    source="P2, Section 4; derived here",
    checks=lambda: (
        ("one column of length w, d = p = 1: S = w²", weights_law.right.subs({kappa: 1, mode: mode**2}), mode),
        ("four times the columns: S = WWᵀ/(2d)", weights_law.right.subs(kappa, 4) ** 2 / 2, mode),
    ),
)

# Thresholds at λ → 0 ---------------------------------------------------------------------------------------------

load = measured(
    "load",
    "ᾱ = K α: number of constraints over d², with K scores a sequence",
    typical=(Rational(1, 4), _half),
    notation=r"\bar\alpha",
)
rank_share = variable(
    "rank_share",
    "share r of the target's modes that are not 0 (κ₀ for a Gaussian target below 1)",
    Interval.open(0, 1),
    (Rational(1, 4), Rational(3, 4)),
    notation="r",
)
cut = variable(
    "cut",
    "threshold c in units of the noise on the target's null space",
    Interval.open(0, 2),
    (_half, Rational(3, 2)),
    notation="c",
)
depth = variable(
    "depth",
    "distance ζ = 2 − c of the threshold from the edge of the noise on the null space",
    Interval.open(0, 2),
    (Rational(1, 8), Rational(3, 2)),
    notation=r"\zeta",
)
inverse_modulus = variable(
    "inverse_modulus",
    "√κ₀ over the modulus of the noisy Gaussian target's G just above 0",
    Interval.open(0, oo),
    (_half, 4),
    notation="u",
)
inverse_root = variable(
    "inverse_root",
    "√κ₀ over the real root G of z = 0, for a Gaussian target",
    Interval.open(0, 1),
    (Rational(3, 5), Rational(9, 10)),
    notation="p",
)
edge_modulus = measured(
    "edge_modulus",
    "u where the noisy Gaussian target's lowest edge stands at 0",
    typical=(Rational(-1, 2), _half),
    notation="u_*",
)
beyond_edge = variable(
    "beyond_edge", "excess u − u_* over the edge", Interval.open(0, oo), (Rational(1, 4), 3), notation="t"
)
angle = variable(
    "angle",
    "angle of −G with the positive axis, just above 0",
    Interval.open(0, sp.pi / 2),
    (Rational(1, 4), Rational(3, 2)),
    notation=r"\vartheta",
)
along = variable(
    "along",
    "angle of −G on the arc |G| = √κ₀/u that ends just above 0",
    Interval.open(0, sp.pi / 2),
    (Rational(1, 8), Rational(3, 2)),
    notation=r"\varphi",
)
depth_equation_side = measured(
    "depth_equation_side", "bias over noise that passes: 1 at perfect recovery", notation=r"\mathcal{B}"
)
cut_equation_side = measured("cut_equation_side", "right side of the equation for c")


def _above_zero(integrand):
    return SpectralTail(integrand, point, hilbert, sp.Integer(0))


def _interpolation_load():
    yield "response of the learned matrix", response_law.statement
    yield (
        "at λ → 0 the response diverges, the proximal point is the label and g = (t − ω)/V: m̃ = ṽ = ᾱ/V",
        Eq(curvature, load / sp.Symbol("V")),
    )
    yield "the threshold ε falls to 0 where interpolation ends", Eq(load, _above_zero(point * hilbert))


def _interpolation_noise():
    yield (
        "there q̃ = ᾱ (q + Q̄ − 2m)/V² and the scale is 1, so 2ᾱv = q + Q̄ − 2m",
        Eq(
            2 * load * variance,
            square_law.right.subs({threshold: 0, scale: 1})
            + label_square
            - 2 * overlap_law.right.subs({threshold: 0, scale: 1}),
        ),
    )
    yield "with q − m = 2v ∫x h ρ = 2vᾱ", Eq(label_square, _above_zero(point * (point - 2 * variance * hilbert)))


def _semicircle_around(expression, mean):
    """The expression for the target mean·1, in closed form."""
    from derivations.state_evolution import centre, on_multiple_of_identity

    return on_multiple_of_identity(expression).subs(centre, mean)


def _interpolation_load_checks():
    value = _semicircle_around(interpolation_load.right, 0)
    yield "no target: half of ∫x h ρ = ½", value, Rational(1, 4)


def _interpolation_noise_checks():
    value = _semicircle_around(interpolation_noise.right, mode)
    positive = _semicircle_around(_above_zero(point), mode)
    yield "a target s·1: s times the mean positive part", value, mode * positive


interpolation_load: Law = Law(
    "interpolation-load",
    "Number of constraints at the interpolation threshold",
    _interpolation_load,
    source="P2, Section 3; derived here",
    checks=_interpolation_load_checks,
)
interpolation_noise: Law = Law(
    "interpolation-noise",
    "Noise on the target at the interpolation threshold",
    _interpolation_noise,
    source="P2, Section 3; derived here",
    checks=_interpolation_noise_checks,
    where=lambda: sp.Gt(4 * variance, mode**2),
    branch="solved for v; at larger ᾱ the noisy labels cannot be fitted",
)


def _interpolation_quiet():
    yield "constraints at the threshold", interpolation_load.statement
    block = (1 - rank_share) * semicircle_tail(2, sp.Integer(0)) * (1 - rank_share)
    yield (
        "v → 0: the null space carries a semicircle of variance (1 − r)v, with h = x/(2v), half of it below 0",
        Eq(SpectralTail(point * hilbert, point, hilbert, -sp.oo) - _above_zero(point * hilbert), block / 2),
    )
    yield "∫x h ρ = ½ in all", Eq(load, _half - block / 2)


interpolation_quiet: Law = Law(
    "interpolation-without-noise",
    "Interpolation threshold as the noise vanishes",
    _interpolation_quiet,
    source="P2, Section 3; derived here",
    checks=lambda: (("in powers of the rank", interpolation_quiet.right, (1 + 2 * rank_share - rank_share**2) / 4),),
)


# The interpolation threshold of a Gaussian target: integrals over what lies below 0, along an arc of G ----------------


def _at_zero(root, modulus):
    """κ₀, v and ϑ that the roots 1/p and −e^{±iϑ}/u of z = 0, in units of √κ₀, belong to (Vieta)."""
    width = (1 - root) * (1 + modulus**2 / root)
    return {
        kappa0: width,
        variance: root * modulus**2 / width,
        angle: sp.acos(modulus * (1 - root) / (2 * root)),
    }


def _real_root():
    y, w = sp.Symbol("y"), variance * kappa0
    numerator = sp.numer(sp.together(noisy_wishart.right.subs(g, sp.sqrt(kappa0) * y)))
    yield "the noisy target at z = 0, with G = √κ₀y", Eq(sp.collect(sp.expand(numerator / sp.sqrt(kappa0)), y), 0)
    yield (
        "one real root 1/p, and −e^{±iϑ}/u: their product is 1/w with w = κ₀v, and they sum to 1",
        sp.And(
            Eq(w, inverse_root * inverse_modulus**2),
            Eq(sp.cos(angle), inverse_modulus * (1 - inverse_root) / (2 * inverse_root)),
        ),
    )
    yield (
        "their products in pairs sum to (1 − κ₀)/w: a quadratic equation",
        Eq(inverse_root**2 + (kappa0 - 1 + inverse_modulus**2) * inverse_root, inverse_modulus**2),
    )
    half = (inverse_modulus + (kappa0 - 1) / inverse_modulus) / 2
    yield "its positive root, where nothing cancels", Eq(inverse_root, inverse_modulus * sp.exp(-sp.asinh(half)))


def _real_root_checks():
    at = _at_zero(inverse_root, inverse_modulus)
    yield "it is p itself", real_root_law.right.subs(kappa0, at[kappa0]), inverse_root
    curve = noisy_wishart.right.subs(g, sp.sqrt(kappa0) / inverse_root).subs(variance, at[variance])
    yield "z vanishes at the real root", curve.subs(kappa0, at[kappa0]), sp.Integer(0)
    complex_root = -sp.exp(-sp.I * at[angle]) / inverse_modulus
    curve = noisy_wishart.right.subs(g, sp.sqrt(kappa0) * complex_root).subs(variance, at[variance])
    yield "and at the complex ones", curve.subs(kappa0, at[kappa0]), sp.Integer(0)


real_root_law: Law = Law(
    "noisy-target-at-zero",
    "Real root of a noisy Gaussian target's equation at 0",
    _real_root,
    source="derived here",
    checks=_real_root_checks,
    where=lambda: sp.Lt(inverse_modulus * (1 - inverse_root), 2 * inverse_root),
    branch="0 inside a band",
)


def _edge_modulus():
    yield "real root at 0", real_root_law.statement
    yield (
        "0 is an edge where the two other roots meet: ϑ = 0",
        Eq(inverse_root, edge_modulus / (2 + edge_modulus)),
    )
    equation = 2 * edge_modulus**2 - (kappa0 - 4) * edge_modulus
    yield "the quadratic equation for p becomes", Eq(equation, 2 * (kappa0 - 1))
    large = (sp.Abs(kappa0 - 4) + sp.sqrt(kappa0) * sp.sqrt(kappa0 + 8)) / 4
    yield (
        "its larger root; the roots' product is 1 − κ₀",
        Eq(edge_modulus, sp.Piecewise((large, kappa0 > 4), ((kappa0 - 1) / large, True))),
    )


def _edge_modulus_checks():
    found = edge_modulus_law.right
    yield "u_* itself solves the equation", 2 * found**2 - (kappa0 - 4) * found, 2 * (kappa0 - 1)
    at = {inverse_modulus: found, kappa0: 1 + kappa0}  # above 1
    meeting = real_root_law.right.subs(inverse_modulus, found)
    yield "there p = u/(2 + u)", meeting.subs(kappa0, at[kappa0]), (found / (2 + found)).subs(kappa0, at[kappa0])


edge_modulus_law: Law = Law(
    "noisy-target-edge-at-zero",
    "Where the edge of a noisy Gaussian target passes 0",
    _edge_modulus,
    source="derived here",
    checks=_edge_modulus_checks,
    branch="at most 0 for κ₀ ≤ 1, where 0 lies in a band at any noise",
)


def _angle():
    yield "real root at 0", real_root_law.statement
    yield "edge at 0", edge_modulus_law.statement
    second = edge_modulus + 2 - kappa0 / 2
    whole = inverse_root / inverse_modulus + inverse_modulus + 2
    versine = beyond_edge * (1 + second / inverse_modulus) / whole
    yield (
        "1 − cos ϑ vanishes at both roots u_* and −(u_* + 2 − κ₀/2) of the edge's equation; u = u_* + t",
        Eq(1 - sp.cos(angle), versine),
    )
    yield "in the form that keeps its digits at small angles", Eq(angle, 2 * sp.asin(sp.sqrt(versine / 2)))


def _angle_checks():
    found = angle_law.right.subs(inverse_root, real_root_law.right)
    found = found.subs(beyond_edge, inverse_modulus - edge_modulus).subs(edge_modulus, edge_modulus_law.right)
    at = _at_zero(inverse_root, inverse_modulus)
    yield "the angle itself", found.subs(kappa0, at[kappa0]), at[angle]


angle_law: Law = Law(
    "noisy-target-angle-at-zero",
    "Angle of a noisy Gaussian target's Cauchy transform at 0",
    _angle,
    source="derived here",
    checks=_angle_checks,
    where=lambda: sp.Lt(inverse_modulus * (1 - inverse_root), 2 * inverse_root),
)


def _over_arc(factor):
    """∫₀^ϑ (cos φ − cos ϑ)² Re[factor] dφ."""
    difference = 2 * sp.sin((angle + along) / 2) * sp.sin((angle - along) / 2)
    return sp.Integral(difference**2 * sp.re(factor, evaluate=False), (along, 0, angle))


_turn = sp.exp(sp.I * along)
_quotient = (inverse_modulus + inverse_root * _turn) / (inverse_modulus + _turn)


def _arc():
    """What holds on the arc: y, and z in units of 1/√κ₀."""
    yield (
        "what lies below 0: G runs from 0⁻ to its value at 0 in the lower half plane, or along |G| = √κ₀/u",
        Eq(g, -sp.sqrt(kappa0) * _turn / inverse_modulus),
    )
    yield (
        "there z, which vanishes at the roots",
        Eq(z, -2 * inverse_modulus * (sp.cos(along) - sp.cos(angle)) * _quotient / sp.sqrt(kappa0)),
    )


def _below_zero(integrand):
    return SpectralTail(integrand, point, hilbert, -oo) - _above_zero(integrand)


def _interpolation_load_arc():
    yield "constraints at the threshold", interpolation_load.statement
    yield "∫x h ρ = ½ in all", Eq(load, _half - _below_zero(point * hilbert))
    yield (
        "−2π x h ρ is Im z G²; integrated by parts, and z = 0 at the end",
        Eq(load, _half - sp.im(sp.Integral(z**2 * g, g)) / (2 * sp.pi)),
    )
    yield from _arc()
    yield "dG = iG dφ", Eq(load, _half - 2 / sp.pi * _over_arc((_turn * _quotient) ** 2))


def _interpolation_noise_arc():
    yield "noise at the threshold", interpolation_noise.statement
    yield "square of the labels", label_square_law.statement
    yield "∫x(x − 2v h)ρ = Q₀ in all", Eq(noise / 2, -_below_zero(point * (point - 2 * variance * hilbert)))
    inner = 1 - g / sp.sqrt(kappa0)
    yield (
        "−π x(x − 2v h)ρ is Im z(z − v G)G, and (z − v G)G = 1 + √κ₀G/(1 − G/√κ₀); by parts",
        Eq(noise / 2, -sp.im(sp.Integral(z**2 * sp.sqrt(kappa0) / inner**2, g)) / (2 * sp.pi)),
    )
    yield from _arc()
    factor = _turn * _quotient**2 / (1 + _turn / inverse_modulus) ** 2
    yield "dG = iG dφ", Eq(noise, 4 * inverse_modulus / sp.pi * _over_arc(factor))


def _before_parts(integrand, boundary):
    """dφ-density of Im ∫integrand dz minus the boundary term, on the arc, from the noisy target's own z(G)."""
    value = -sp.sqrt(kappa0) * _turn / inverse_modulus
    inside = integrand * sp.diff(noisy_wishart.right, g) - sp.diff(boundary, g)
    at = _at_zero(inverse_root, inverse_modulus)
    found = inside.subs(g, value) * sp.diff(value, along)
    return sp.im(found.subs(variance, at[variance]).subs(kappa0, at[kappa0]), evaluate=False)


def _density_on_arc(law):
    """The statement with the integral's integrand in its place."""
    inside = law.right.replace(lambda node: isinstance(node, sp.Integral), lambda node: node.function)
    return inside.subs(angle, _at_zero(inverse_root, inverse_modulus)[angle])


def _interpolation_load_arc_checks():
    curve = noisy_wishart.right
    density = _before_parts(curve * g**2, curve**2 * g**2 / 2)
    yield "the integrand, before parts", _density_on_arc(interpolation_load_arc), _half + density / (2 * sp.pi)
    blank = {inverse_root: 1, angle: sp.pi / 2}
    flat = sp.cos(along) ** 2 * sp.cos(2 * along)
    inside = interpolation_load_arc.right.replace(
        lambda node: isinstance(node, sp.Integral), lambda node: node.function
    )
    yield "no target: the arc's integrand", inside.subs(blank), _half - 2 / sp.pi * flat
    whole = _half - 2 / sp.pi * sp.integrate(flat.rewrite(sp.exp), (along, 0, sp.pi / 2))
    yield "no target: half of ½", whole, Rational(1, 4)


def _interpolation_noise_arc_checks():
    curve = noisy_wishart.right
    inner = curve * g - variance * g**2
    density = _before_parts(curve * inner, curve**2 * inner / 2)
    yield "the integrand, before parts", _density_on_arc(interpolation_noise_arc), 2 * density / sp.pi


interpolation_load_arc: Law = Law(
    "interpolation-load-of-gaussian-target",
    "Constraints at the interpolation threshold of a Gaussian target",
    _interpolation_load_arc,
    source="derived here",
    checks=_interpolation_load_arc_checks,
    where=lambda: sp.Lt(inverse_modulus * (1 - inverse_root), 2 * inverse_root),
    branch="the form that keeps its digits for any width and noise",
)
interpolation_noise_arc: Law = Law(
    "interpolation-noise-of-gaussian-target",
    "Noise at the interpolation threshold of a Gaussian target",
    _interpolation_noise_arc,
    source="derived here",
    checks=_interpolation_noise_arc_checks,
    where=lambda: sp.Lt(inverse_modulus * (1 - inverse_root), 2 * inverse_root),
    branch="solved for u; it grows with u, and is 0 at the larger of u_* and 0",
)


def _dimension_of_cone():
    """Twice the load: squared noise that survives the threshold, in units of v, plus the bias on the target's modes."""
    share = 1 - rank_share
    passing = semicircle_tail(2, cut) - 2 * cut * semicircle_tail(1, cut) + cut**2 * semicircle_tail(0, cut)
    return 1 - share**2 + rank_share * share * cut**2 + share**2 * passing


def _recovery_load():
    yield "noise power without label noise: q̃ = ᾱ E/V², so 2ᾱv = E", Eq(2 * load * variance, excess)
    yield (
        "E: noise on the target's modes passes and their bias is ε; on the null space it passes above ε = c√((1 − r)v)",
        Eq(excess, variance * _dimension_of_cone()),
    )
    yield "statistical dimension of the descent cone", Eq(load, _dimension_of_cone() / 2)


def _recovery_cut():
    yield "noise that passes, and bias", recovery_load.statement
    passing = semicircle_tail(1, cut) - cut * semicircle_tail(0, cut)
    yield (
        "the response equation ᾱ = ∫(x − ε)hρ says that the dimension is least in c",
        Eq(sp.Derivative(sp.Function("load")(cut), cut), 0, evaluate=False),
    )
    yield (
        "slope in c: bias on r against passing noise on 1 − r",
        Eq(cut_equation_side, (1 - rank_share) * passing - rank_share * cut),
    )


def _recovery_load_checks():
    share = 1 - rank_share
    # with the cut's equation put in, the form of integrals below c
    below = {k: (1 if k != 1 else 0) - semicircle_tail(k, cut) for k in (1, 2)}
    printed = _half - share**2 / 2 * (below[2] - cut * below[1])
    rest = share * cut * recovery_cut.right / 2
    yield "by integrals below the cut, up to a multiple of the cut's equation", recovery_load.right, printed - rest
    yield "nothing of the target is 0: all unknowns", recovery_load.right.subs(rank_share, 1), _half


recovery_load: Law = Law(
    "recovery-load",
    "Number of constraints for perfect recovery",
    _recovery_load,
    source="Chandrasekaran et al. 2012; Amelunxen, Lotz, McCoy & Tropp 2014; P2, Section 3; derived here",
    checks=_recovery_load_checks,
)
recovery_cut: Law = Law(
    "recovery-cut",
    "Threshold at perfect recovery",
    _recovery_cut,
    source="derived here",
    checks=lambda: (
        ("slope of the load in c", sp.diff(recovery_load.right, cut), -(1 - rank_share) * recovery_cut.right),
    ),
    branch="c where the right side is 0",
)


def _past_the_cut(power):
    """∫_c^2 (t − c)^power √(4 − t²)/(2π) dt at c = 2 − ζ: every factor is positive, and nothing cancels at the edge."""
    front = depth ** (power + Rational(3, 2)) * sp.beta(power + 1, Rational(3, 2)) / sp.pi
    return front.rewrite(sp.gamma) * sp.hyper((-_half, Rational(3, 2)), (power + Rational(5, 2),), depth / 4)


def _recovery_load_by_depth():
    share = 1 - rank_share
    yield "noise that passes, and bias", recovery_load.statement
    yield "the cut's distance from the edge", Eq(cut, 2 - depth)
    yield (
        "t = 2 − ζ(1 − u) makes the noise that passes an Euler integral; 1 − (1 − r)² = r(2 − r)",
        Eq(load, (rank_share * (1 + share + share * (2 - depth) ** 2) + share**2 * _past_the_cut(2)) / 2),
    )


def _recovery_cut_by_depth():
    yield "threshold at perfect recovery, at 0", recovery_cut.statement
    yield (
        "both sides by the depth: the bias on r over the noise that passes on 1 − r is 1",
        Eq(depth_equation_side, rank_share * (2 - depth) / ((1 - rank_share) * _past_the_cut(1))),
    )


def _recovery_cut_by_depth_checks():
    at = {cut: 2 - depth}
    passing = (semicircle_tail(1, cut) - cut * semicircle_tail(0, cut)).subs(at)
    yield (
        "against the closed form of the tail",
        recovery_cut_by_depth.right,
        rank_share * (2 - depth) / ((1 - rank_share) * passing),
    )
    whole = (1 - rank_share) * _past_the_cut(1) * (1 - recovery_cut_by_depth.right)
    yield "against the cut's equation", recovery_cut.right.subs(at), whole


recovery_load_by_depth: Law = Law(
    "recovery-load-by-depth",
    "Constraints for perfect recovery, by the depth of the cut",
    _recovery_load_by_depth,
    source="derived here",
    checks=lambda: (
        ("against the closed form", recovery_load_by_depth.right, recovery_load.right.subs(cut, 2 - depth)),
    ),
    branch="the form that keeps its digits as r → 0, where ζ falls like r^(2/5)",
)
recovery_cut_by_depth: Law = Law(
    "recovery-cut-by-depth",
    "Depth of the cut at perfect recovery",
    _recovery_cut_by_depth,
    source="derived here",
    checks=_recovery_cut_by_depth_checks,
    branch="ζ where the right side is 1; it falls with ζ",
)


def _recovery_low_rank():
    yield "r → 0: the cut's equation pushes c to the edge 2", Eq(sp.Limit(cut, rank_share, 0), 2, evaluate=False)
    slope = sp.diff(recovery_load.right, rank_share).subs(rank_share, 0)
    yield "slope of the load in r there", Eq(load / rank_share, sp.limit(slope, cut, 2, "-"))


def _recovery_low_rank_checks():
    dimension = recovery_load.right.subs({cut: 2})
    yield (
        "at the edge no noise on the null space passes: r(1 − r/2) for the modes, twice r(1 − r) for their bias",
        dimension,
        (recovery_low_rank.right * rank_share - Rational(5, 2) * rank_share**2),
    )


recovery_low_rank: Law = Law(
    "recovery-at-low-rank",
    "Constraints for perfect recovery at low rank",
    _recovery_low_rank,
    source="derived here",
    checks=_recovery_low_rank_checks,
)


def _recovery_bayes():
    d, r = sp.Symbol("d", positive=True), rank_share
    yield (
        "a matrix of rank rd has rd·d − (rd)²/2 free entries at leading order",
        Eq(sp.Symbol("free"), r * d * d - (r * d) ** 2 / 2),
    )
    yield "the Bayes-optimal estimate needs as many constraints, over d²", Eq(load, r - r**2 / 2)


def _recovery_frobenius():
    yield (
        "without factors the penalty favours no rank: all d²/2 entries are unknown",
        Eq(sp.Symbol("free"), sp.Symbol("d") ** 2 / 2),
    )
    yield "over d²", Eq(load, _half)


recovery_bayes: Law = Law(
    "recovery-bayes-optimal",
    "Constraints for perfect recovery, Bayes-optimal",
    _recovery_bayes,
    source="Maillard, Troiani, Martin, Krzakala & Zdeborová 2024; derived here",
    checks=lambda: (
        (
            "noise that passes when the null space is known: the cone without its last two terms",
            recovery_bayes.right,
            (recovery_load.right.subs(cut, 2) * 2 - 4 * rank_share * (1 - rank_share)) / 2,
        ),
    ),
)
recovery_frobenius: Law = Law(
    "recovery-frobenius",
    "Constraints for perfect recovery without factors",
    _recovery_frobenius,
    source="P2, Section 3; derived here",
    checks=lambda: (
        ("the cone of a target of full rank", recovery_frobenius.right, recovery_load.right.subs(rank_share, 1)),
    ),
)


def _samples():
    yield "number of scores that a sequence constrains", outputs_law.statement
    yield "α = ᾱ/K", Eq(sp.Symbol("alpha"), load / outputs_law.right)


samples_law: Law = Law(
    "samples-at-a-load",
    "Sequences that make a number of constraints",
    _samples,
    source="derived here",
    checks=lambda: (
        ("two tokens have two scores", samples_law.right.subs(tokens, 2), load / 2),
        ("three tokens have five", samples_law.right.subs(tokens, 3), load / 5),
    ),
)
