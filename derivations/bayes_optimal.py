"""Bayes-optimal estimation of an attention head from its labels, and the price of the nuclear norm.

The estimator knows the target's eigenvalues and how labels are made; only the eigenvectors are unknown. Noisy labels
can be inverted, so that they act like one Gaussian channel, whose best denoiser is a function of the noisy target. That
the mean-field equations hold is proved for related models; the claims test it by message passing on data.
"""

from __future__ import annotations

import sympy as sp
from sympy import Rational, oo

from derivations._expectations import SpectralTail
from derivations._modes import FIXED_POINT, BayesSolution, ModeSum
from derivations.core import Claim, Eq, Experiment, Limit, Model, law, measured, observable, variable
from derivations.scaling_laws import (
    constant,
    constant_of,
    error_of_modes,
    gamma,
    interpolating_noise,
    isolated,
    leading,
    linear_curvature,
    linear_gain,
    linear_noise,
    linear_power,
    mean_gain,
    mean_power,
    mode_error,
    modes_below,
    n_eff,
    noise_level,
    noise_limited,
    noiseless,
    nuclear_constant,
    nuclear_mode_error,
    over_many_modes,
    own,
    ratio,
    strength,
    summands,
)
from derivations.spectral_learning import (
    load,
    mode,
    mode_location,
    mode_overlap_law,
    rank_share,
    recovery_bayes,
    recovery_low_rank,
)
from derivations.state_evolution import (
    alpha,
    ambiguity_law,
    beta_target,
    centre,
    density,
    dimension,
    distance_law,
    estimate,
    excess,
    hilbert,
    kappa0,
    labels,
    learned_differences,
    logistic,
    m,
    noise,
    noise_power,
    on_gaussian_target,
    on_multiple_of_identity,
    outputs,
    outputs_law,
    point,
    posterior,
    posterior_law,
    q,
    response,
    signal_gain,
    stiffness,
    target_square,
    tokens,
    variance,
    variance_law,
)
from derivations.theorems.modes import outliers_of_few_modes
from derivations.theorems.spectra import atom_in_weak_noise, tricomi

# Symbols -------------------------------------------------------------------------------------------------------

passing = measured(
    "passing", "share E/v of the noise that passes the best denoiser as v → 0", notation=r"\left.E/v\right|_{v\to 0}"
)
price = measured(
    "price", "price: what the nuclear norm gives over what the Bayes-optimal estimate gives", notation=r"\Pi"
)
mode_value = measured("mode_value", "eigenvalue of the estimate at a mode, over √d", notation=r"\hat s_\sigma/\sqrt d")


def everything(integrand):
    """The integral over the whole law of the noisy target."""
    return SpectralTail(integrand, point, hilbert, -oo)


# What one sequence does ------------------------------------------------------------------------------------------


@law(
    "inverted-label",
    "The noisy score that a label encodes",
    source="derived here",
)
def inverted_label(line):
    label, score = labels[0], learned_differences[0]
    seen = line.define(label, logistic(beta_target * score), "two tokens: softmax of the target's noisy scores")
    line.follows(
        Eq(score, sp.log(label / (1 - label)) / beta_target),
        [seen],
        "softmax is one to one, so that a label is as good as the K noisy scores in it",
    )


@law(
    "bayes-gain",
    "Signal gain of one sequence, Bayes-optimal",
    source="Barbier, Krzakala, Macris, Miolane & Zdeborová 2019; derived here",
    where=lambda: sp.Gt(noise, 0),
    branch="K noisy scores of a sequence, weighted by the likelihood and by what is still unknown",
)
def bayes_gain(line):
    general = line.use(linear_gain)
    likelihood = line.define(
        stiffness, 1 / noise, "minus the log-likelihood of a score, (t − h)²/Δ: its noise has variance Δ/2"
    )
    unknown = line.define(response, excess, "a score still varies by what the estimate misses of the target")
    line.follows(
        Eq(mean_gain, outputs / (excess + noise / 2)), [general, likelihood, unknown], "a score's precision, K times"
    )


@law(
    "bayes-power",
    "Noise power of one sequence, Bayes-optimal",
    source="Barbier, Krzakala, Macris, Miolane & Zdeborová 2019; derived here",
    where=lambda: sp.Gt(noise, 0),
)
def bayes_power(line):
    general = line.use(linear_power)
    likelihood = line.define(
        stiffness, 1 / noise, "minus the log-likelihood of a score, (t − h)²/Δ: its noise has variance Δ/2"
    )
    unknown = line.define(response, excess, "a score still varies by what the estimate misses of the target")
    line.follows(
        Eq(mean_power, outputs / (excess + noise / 2)), [general, likelihood, unknown], "the same as the signal gain"
    )


@bayes_power.check("Nishimori: signal gain, noise power and curvature are one number")
def _():
    curvature = linear_curvature.right.subs({stiffness: 1 / noise, response: excess})
    return 2 * bayes_power.right, bayes_gain.right + curvature


@law(
    "bayes-noise",
    "Noise on the target, Bayes-optimal",
    source="Barbier, Krzakala, Macris, Miolane & Zdeborová 2019; derived here",
    branch="solved together with the law bayes-error: E/v falls as v grows, so that there is one solution",
)
def bayes_noise(line):
    general = line.use(variance_law)
    gain, spread = line.use(bayes_gain), line.use(bayes_power)
    whole = [
        line.define(signal_gain, alpha * mean_gain, "m̃ = αM"),
        line.define(noise_power, alpha * mean_power, "q̃ = αP"),
    ]
    line.follows(
        Eq(variance, (excess + noise / 2) / (2 * outputs * alpha)),
        [general, *whole, gain, spread],
        "n = αd² sequences act like one Gaussian channel",
    )


@bayes_noise.check("fitting the labels by any quadratic loss leaves the same noise at the same error")
def _():
    return bayes_noise.right, linear_noise.right


# The error at extensive rank ---------------------------------------------------------------------------------------


def _best(line):
    """The best denoiser of a noisy target of known spectrum: a line for the estimate."""
    along = line.use(posterior_law, "Ledoit & Péché: the target along an eigenvector of the noisy one")
    best = line.define(estimate, posterior, "the posterior mean has the eigenvectors of the noisy target")
    return best, along


@law(
    "bayes-square",
    "Square of the Bayes-optimal estimate",
    source="Bun, Allez, Bouchaud & Potters 2016; derived here",
)
def bayes_square(line):
    best, along = _best(line)
    square = line.define(q, everything(estimate**2), "Tr Ŝ²/d")
    line.substitute(square, best, along)


@bayes_square.check("a Gaussian target: Wiener's filter")
def _():
    known = bayes_square.right.replace(lambda node: isinstance(node, SpectralTail), on_gaussian_target)
    return known, target_square**2 / (target_square + variance)


@law(
    "bayes-overlap",
    "Overlap of the Bayes-optimal estimate with the target",
    source="Nishimori 1980; derived here",
)
def bayes_overlap(line):
    best, along = _best(line)
    product = line.define(m, everything(estimate * posterior), "Tr Ŝ S₀/d, along each eigenvector")
    square = line.use(bayes_square)
    line.follows(
        Eq(m, q), [product, best, along, square], "it is its own square", example={SpectralTail: on_gaussian_target}
    )


@law(
    "bayes-error",
    "Error of the Bayes-optimal estimate",
    source="Bun, Allez, Bouchaud & Potters 2016; derived here",
    branch="noise of variance v on the target",
)
def bayes_error(line):
    general = line.use(distance_law)
    best, along = _best(line)
    rest = line.use(ambiguity_law)
    line.follows(
        Eq(excess, variance - 4 * variance**2 * everything(hilbert**2)),
        [general, best, along, rest],
        "only what no function of the noisy target knows is left",
        example={SpectralTail: on_gaussian_target},
    )


@bayes_error.check("a Gaussian target: Wiener's filter")
def _():
    known = bayes_error.right.replace(lambda node: isinstance(node, SpectralTail), on_gaussian_target)
    return known, target_square * variance / (target_square + variance)


@bayes_error.check("what the square lacks of the target's, for a target s₀·1")
def _():
    return on_multiple_of_identity(bayes_error.right), centre**2 - on_multiple_of_identity(bayes_square.right)


@law(
    "bayes-error-by-density",
    "Error of the Bayes-optimal estimate by the density alone",
    source="Maillard, Krzakala, Mézard & Zdeborová 2022; derived here",
)
def bayes_error_by_density(line):
    error = line.use(bayes_error)
    cubes = line.quote(tricomi, from_=(error,), density=density)
    line.follows(
        Eq(excess, variance - 4 * sp.pi**2 / 3 * variance**2 * everything(density**2)),
        [error, cubes],
        "no Hilbert transform is needed",
        example={SpectralTail: on_gaussian_target},
    )


# Recovery without noise --------------------------------------------------------------------------------------------


@law(
    "noise-that-passes",
    "Share of a weak noise that passes the best denoiser",
    source="Maillard, Troiani, Martin, Krzakala & Zdeborová 2024; derived here",
    branch="a share r of the target's modes is not 0, and their law has no atom",
)
def noise_that_passes(line):
    error = line.use(bayes_error)
    weak = line.quote(
        atom_in_weak_noise, "the null space of the target", (error,), share=1 - rank_share, variance=variance
    )
    share = line.limit(weak, variance, 0, passing, "over v", factor=1 / variance)
    line.follows(Eq(passing, 2 * rank_share - rank_share**2), [share], "all but what lies within the null space")


@law(
    "recovery-by-the-noise-that-passes",
    "Constraints for perfect recovery by the noise that passes",
    source="Maillard, Troiani, Martin, Krzakala & Zdeborová 2024; derived here",
    branch="no label noise; above this load the error shrinks at each pass, and E = 0",
)
def recovery_by_passing(line):
    spread = line.use(bayes_noise)
    share = line.use(noise_that_passes)
    settings = [
        line.define(noise, sp.Integer(0), "labels without noise"),
        line.define(excess, passing * variance, "near recovery"),
        line.define(alpha, load / outputs, "ᾱ = Kα constraints"),
    ]
    again = line.substitute(spread, *settings, share)
    line.solve(again, load, 0, "where a weak noise comes back as strong as it was")


@recovery_by_passing.check("the number of free entries of a matrix of that rank")
def _():
    return recovery_by_passing.right, recovery_bayes.right


# The spiked limit ---------------------------------------------------------------------------------------------------


def _unit(line):
    """The variance in terms of the noise on a mode."""
    unit = line.define(noise_level, sp.sqrt(variance / dimension), "in units of √d")
    return line.solve(unit, variance, 0, "the variance")


@law("bayes-noise-in-the-spiked-limit", "Noise on a mode, Bayes-optimal", source="derived here")
def spiked_bayes_noise(line):
    general = line.use(bayes_noise)
    unit = line.define(noise_level, sp.sqrt(variance / dimension), "in units of √d")
    count = line.define(alpha, n_eff / dimension, "n = αd² = n_eff d sequences")
    line.follows(
        Eq(noise_level, sp.sqrt((excess + noise / 2) / (2 * outputs * n_eff))),
        [unit, general, count],
        "the dimension drops out",
    )


@spiked_bayes_noise.check("the noise that fitted labels leave at this error")
def _():
    return spiked_bayes_noise.right, interpolating_noise.right


@law(
    "bayes-mode",
    "The best estimate at a mode",
    source="derived here",
    where=lambda: sp.Gt(strength, noise_level),
    branch="a mode in the bulk is lost: there the best estimate is 0",
)
def bayes_mode(line):
    along = line.use(posterior_law)
    scaled = line.define(mode_value, posterior / sp.sqrt(dimension), "in units of √d")
    place = line.use(mode_location)
    stands = line.compute(lambda known: Eq(point, known.rhs), "where the mode stands", (place,))
    transform = line.define(hilbert, 1 / mode, "the Hilbert transform of a bulk of zeros there")
    spike = line.define(mode, sp.sqrt(dimension) * strength, "a mode of strength σ")
    noise_of_mode = _unit(line)
    line.follows(
        Eq(mode_value, strength * (1 - noise_level**2 / strength**2)),
        [scaled, along, stands, transform, spike, noise_of_mode],
        "its strength times its squared overlap",
    )


@bayes_mode.check("σ times the squared overlap")
def _():
    at = {mode: sp.sqrt(dimension) * strength, variance: dimension * noise_level**2}
    return bayes_mode.right, strength * mode_overlap_law.right.subs(at)


@law("bayes-square-in-the-spiked-limit", "Square of the best estimate in the spiked limit", source="derived here")
def spiked_bayes_square(line):
    square = line.use(bayes_square)
    noise_of_mode = _unit(line)
    place = line.substitute(line.use(mode_location), noise_of_mode)
    scaled = line.substitute(square, noise_of_mode)
    modes = line.quote(
        outliers_of_few_modes,
        "in the bulk h = x/(2v), and the best estimate is 0",
        (scaled, place),
        strength=(mode, sp.sqrt(dimension) * strength, strength),
        weight=1 / dimension,
        lowest=noise_level,
    )
    line.follows(
        Eq(q, ModeSum((strength * (1 - noise_level**2 / strength**2)) ** 2, strength, noise_level, oo)),
        [modes],
        "modes that stand out",
    )


@law(
    "bayes-mode-error",
    "Squared error of a mode, Bayes-optimal",
    source="derived here",
    branch="x < 1; a mode with x ≥ 1 is lost and has F = 1",
)
def mode_error_bayes(line):
    square, product = line.use(spiked_bayes_square), line.use(bayes_overlap)
    total = line.define(excess, q + target_square - 2 * m, "‖Ŝ − S₀‖²/d")
    whole = line.substitute(total, product, square)
    one = line.compute(
        lambda known: Eq(mode_error, 1 + summands(known.rhs - target_square) / strength**2),
        "one mode's share, over its square",
        (whole,),
    )
    relative = line.define(strength, noise_level / ratio, "x = δ/σ")
    line.follows(Eq(mode_error, 1 - (1 - ratio**2) ** 2), [one, relative], "in x")


@mode_error_bayes.check("a mode far above the noise costs 2δ²: its own noise, and that of its direction")
def _():
    return sp.series(mode_error_bayes.right, ratio, 0, 3).removeO(), 2 * ratio**2


@mode_error_bayes.check("a mode is lost where it emerges, as it is under the nuclear norm")
def _():
    return mode_error_bayes.right.subs(ratio, 1), nuclear_mode_error.right.subs(ratio, 1)


@law(
    "bayes-error-of-modes",
    "Error of the Bayes-optimal estimate in the spiked limit",
    source="derived here",
    branch="the noise level solves the equation with the law bayes-noise-in-the-spiked-limit",
)
def bayes_modes_error(line):
    square, product = line.use(spiked_bayes_square), line.use(bayes_overlap)
    total = line.define(excess, q + target_square - 2 * m, "‖Ŝ − S₀‖²/d")
    energy = line.define(target_square, modes_below(strength**2, oo), "the target's modes")
    share = line.use(mode_error_bayes)
    line.follows(
        Eq(excess, error_of_modes(line[share].rhs)),
        [total, product, square, energy],
        "mode by mode",
    )


@law(
    "bayes-emergence",
    "Sample size at which a mode emerges, Bayes-optimal",
    source="derived here",
)
def emergence_bayes(line):
    noise_of_mode = line.use(spiked_bayes_noise)
    error = line.use(bayes_modes_error)
    here = line.define(noise_level, own, "the mode emerges where the noise level falls to its strength")
    at = line.substitute(noise_of_mode, error, here)
    line.compute(
        lambda known: Eq(n_eff, n_eff * known.rhs**2 / known.lhs**2),
        "solve for the number of sequences",
        (at,),
    )


@emergence_bayes.check("the first mode: nothing is learned before")
def _():
    lone = emergence_bayes.right.replace(
        lambda node: isinstance(node, ModeSum), lambda node: own**2 if node.args[2] == 0 else sp.Integer(0)
    )
    return lone, (own**2 + noise / 2) / (2 * outputs * own**2)


# Scaling laws --------------------------------------------------------------------------------------------------------


@law(
    "bayes-constant",
    "Constant of the Bayes-optimal scaling law",
    source="derived here",
    branch="many modes above the noise",
)
def bayes_constant(line):
    error = line.use(bayes_modes_error)
    many = over_many_modes(line, error)
    constant_of(
        line,
        many,
        noise_level,
        2 - 1 / (1 + 2 * gamma) + 1 / (2 * gamma - 1),
        "learned modes by powers of x, and the lost ones",
    )


@law("bayes-error-of-many-modes", "Error of many modes, Bayes-optimal", source="derived here")
def bayes_many_modes(line):
    error = line.use(bayes_modes_error)
    many = over_many_modes(line, error)
    shape = line.use(bayes_constant)
    line.compute(
        lambda known, value: Eq(excess, constant * sp.simplify(known.rhs / value.rhs)),
        "the constant, named",
        (many, shape),
    )


@bayes_many_modes.check("a power of the noise level")
def _():
    return bayes_many_modes.right, constant * leading ** (1 / gamma) * noise_level ** (2 - 1 / gamma)


@law(
    "bayes-noise-limited-error",
    "Bayes-optimal error where label noise limits learning",
    source="derived here",
    branch="1 ≪ n_eff ≪ d, E ≪ Δ; the constant is that of bayes-constant",
)
def bayes_noise_limited(line):
    error = line.use(bayes_many_modes)
    general = line.use(spiked_bayes_noise)
    small = line.compute(lambda known: Eq(noise_level, known.rhs.subs(excess, 0)), "E ≪ Δ/2", (general,))
    line.follows(
        Eq(excess, constant * leading ** (1 / gamma) * (noise / (4 * outputs * n_eff)) ** (1 - 1 / (2 * gamma))),
        [error, small],
        "the nuclear norm's exponent",
    )


@law(
    "bayes-noiseless-error",
    "Bayes-optimal error without label noise",
    source="derived here",
    branch="1 ≪ n_eff ≪ d, Δ = 0; the constant is that of bayes-constant",
)
def bayes_noiseless(line):
    error = line.use(bayes_many_modes)
    general = line.use(spiked_bayes_noise)
    quiet = line.compute(lambda known: Eq(noise_level, known.rhs.subs(noise, 0)), "no noise", (general,))
    both = line.compute(isolated, "insert, and collect the powers of E", (error, quiet))
    line.follows(
        Eq(excess, leading**2 * constant ** (2 * gamma) * (2 * outputs * n_eff) ** (1 - 2 * gamma)),
        [both],
        "the error is its own noise: the nuclear norm's exponent",
    )


# The price of the nuclear norm ----------------------------------------------------------------------------------------


def _quotient(line, above, below, words):
    """The price as the quotient of two lines."""
    return line.compute(lambda one, other: Eq(price, one.rhs / other.rhs), words, (above, below))


def _with_value(line, error, value):
    """A scaling law with its constant's value."""
    return line.compute(
        lambda known, number: Eq(excess, known.rhs.subs(constant, number.rhs)),
        "the constant's value",
        (error, value),
    )


@law(
    "price-with-label-noise",
    "Price of the nuclear norm where label noise limits learning",
    source="derived here",
    branch="3/2 for γ = 1; from 1 as γ → ½ (all of the error is lost modes) to 3 as γ → ∞",
)
def price_with_noise(line):
    nuclear = _with_value(line, line.use(noise_limited), line.use(nuclear_constant))
    bayes = _with_value(line, line.use(bayes_noise_limited), line.use(bayes_constant))
    both = _quotient(line, nuclear, bayes, "at the same number of sequences")
    line.follows(Eq(price, 3 * gamma / (1 + gamma)), [both], "the quotient of the constants")


@price_with_noise.check("γ = 1")
def _():
    return price_with_noise.right.subs(gamma, 1), Rational(3, 2)


@price_with_noise.check("steep spectra: few modes, each far above the noise")
def _():
    return sp.limit(price_with_noise.right, gamma, oo), price_of_a_mode.right


@law(
    "price-without-label-noise",
    "Price of the nuclear norm without label noise",
    source="derived here",
    branch="9/4 for γ = 1",
)
def price_without_noise(line):
    nuclear, bayes = line.use(noiseless), line.use(bayes_noiseless)
    constants = line.use(price_with_noise, "the quotient of the constants")
    whole = line.compute(
        lambda one, other, known: Eq(price, one.rhs.subs(constant, known.rhs) / other.rhs.subs(constant, 1)),
        "in units of the Bayes-optimal constant: the error is its own noise, which adds to the price",
        (nuclear, bayes, constants),
    )
    line.follows(Eq(price, (3 * gamma / (1 + gamma)) ** (2 * gamma)), [whole], "the number of sequences drops out")


@price_without_noise.check("what remains of both laws with their constants, γ = 3/2")
def _():
    nuclear = noiseless.right.subs(constant, nuclear_constant.right)
    bayes = bayes_noiseless.right.subs(constant, bayes_constant.right)
    at = {gamma: Rational(3, 2)}
    return price_without_noise.right.subs(at) * bayes.subs(at), nuclear.subs(at)


@price_without_noise.check("γ = 1")
def _():
    return price_without_noise.right.subs(gamma, 1), Rational(9, 4)


@law(
    "price-of-a-mode",
    "Price of the nuclear norm for a mode far above the noise",
    source="derived here",
    branch="6δ² against 2δ²: the nuclear norm cuts 2δ off each mode",
)
def price_of_a_mode(line):
    nuclear, bayes = line.use(nuclear_mode_error), line.use(mode_error_bayes)
    both = _quotient(line, nuclear, bayes, "at the same noise level")
    line.limit(both, ratio, 0, price, "the noise is far below the mode")


@law(
    "price-of-recovery",
    "Price of the nuclear norm in samples for perfect recovery at low rank",
    source="derived here",
    branch="3r against r in Kα",
)
def price_of_recovery(line):
    nuclear, bayes = line.use(recovery_low_rank), line.use(recovery_by_passing)
    share = line.limit(bayes, rank_share, 0, load / rank_share, "low rank", factor=1 / rank_share)
    _quotient(line, nuclear, share, "constraints for each, over the rank")


# Models and claims ----------------------------------------------------------------------------------------------------

_observed = {
    name: observable(name, meaning)
    for name, meaning in (
        ("error", "‖Ŝ − S₀‖²/d after the last iteration"),
        ("m", "Tr Ŝ S₀/d after the last iteration"),
        ("q", "Tr Ŝ²/d after the last iteration"),
        ("error_path", "‖Ŝ − S₀‖²/d after each iteration"),
        ("error_path_bare", "‖Ŝ − S₀‖²/d after each iteration without the Onsager term"),
    )
}
message_passing_model = Model(
    "attention_bayes_amp",
    "approximate message passing, with the best denoiser of a target of known eigenvalues, on softmax labels that are "
    "turned back into noisy scores; from S = 0",
    (alpha, kappa0, noise),
    tuple(_observed.values()),
    (alpha, kappa0),
    ("tokens", "iterations", "undamped", "path"),
)
_half, _quarter = Rational(1, 2), Rational(1, 4)
_settled, _begun = {"iterations": 20, "undamped": 3, "path": 3}, {"iterations": 6, "undamped": 6, "path": 1}
_step = variable("step", "iteration of message passing", sp.S.Naturals, (1, 2, 3, 4), notation="k")
two_tokens = Experiment(
    "bayes-message-passing",
    message_passing_model,
    {alpha: _half, kappa0: _half, noise: _half},
    {24: 150, 32: 120, 48: 100, 64: 80, 96: 40},
    {},
    {"tokens": 2, **_settled},
)
six_iterations = Experiment(
    "bayes-message-passing-begun",
    message_passing_model,
    {alpha: _half, kappa0: _half, noise: _half},
    {24: 60, 32: 40, 48: 30, 80: 30},
    {24: 60, 32: 40, 48: 30, 80: 30},
    {"tokens": 2, **_begun},
)
three_tokens = Experiment(
    "bayes-message-passing-of-low-rank",
    message_passing_model,
    {alpha: _quarter, kappa0: _quarter, noise: _half},
    {24: 150, 32: 120, 48: 100, 64: 100, 96: 50},
    {},
    {"tokens": 3, **_settled},
)

_noise_mistake = "Δ for Δ/2: the whole variance of a diagonal score"
_scores_mistake = "T(T + 1)/2 scores: the constant that softmax ignores counted"
_length_mistake = "K of another number of tokens"
_entries_mistake = "Wiener's filter, entry by entry: Q₀v/(Q₀ + v)"
_uncut_mistake = "4v²∫h²ρ forgotten: E = v"
_positive_mistake = "the positive part of the noisy target for its best function"
_bare_mistake = "message passing without its Onsager term"


def _solved(component, length, iteration=FIXED_POINT, denoiser="bayes", **changed):
    """A component of the solution for T = `length` tokens, with parameters replaced by name."""
    values = {"alpha": alpha, "kappa0": kappa0, "noise": noise, "outputs": outputs_law.right.subs(tokens, length)}
    return BayesSolution.of(component, denoiser, *(values | changed).values(), iteration=iteration)


def _wrong_solutions(length, **common):
    """What the same equations give with one mistake each."""
    length_of = sp.Integer(length)
    mistakes = {
        _noise_mistake: {"noise": 2 * noise},
        _scores_mistake: {"outputs": length_of * (length_of + 1) / 2},
        _length_mistake: {"outputs": outputs_law.right.subs(tokens, length + 1)},
        _entries_mistake: {"denoiser": "entries"},
        _uncut_mistake: {"denoiser": "uncut"},
        _positive_mistake: {"denoiser": "positive"},
    }
    return {name: _solved(length=length, **common, **change) for name, change in mistakes.items()}


def _claim(name, law_of, symbol, component, experiment, resolution, wrong, iteration=FIXED_POINT, column=None):
    common = {"component": component, "iteration": iteration}
    length = experiment.options["tokens"]

    def given(node):
        return (Eq(law_of.right, node),)

    def rivals():
        known = _wrong_solutions(length, **common)
        bare = {symbol: _observed["error_path_bare"]}
        return {mistake: bare if mistake == _bare_mistake else given(known[mistake]) for mistake in wrong}

    return Claim(
        f"{experiment.name}-{name}",
        law_of,
        experiment,
        Limit(1, 2, resolution, True),
        rivals,
        reads={symbol: _observed[column or component]},
        given=given(_solved(length=length, **common)),
        points=None if iteration != _step else (_step, tuple(range(1, experiment.options["path"] + 1))),
    )


_far = (_noise_mistake, _length_mistake, _entries_mistake)
_all_mistakes = (*_far, _scores_mistake, _uncut_mistake, _positive_mistake)

claims = (
    _claim("error", bayes_error, excess, "error", six_iterations, 0.3, _far, sp.Integer(6)),
    _claim("error", bayes_error, excess, "error", two_tokens, 0.15, _all_mistakes),
    _claim("square", bayes_square, q, "square", two_tokens, 0.04, (_noise_mistake, _entries_mistake), column="q"),
    _claim("path", bayes_error, excess, "error", two_tokens, 0.25, (*_far, _bare_mistake), _step, "error_path"),
    _claim("error", bayes_error, excess, "error", three_tokens, 0.15, (*_far, _uncut_mistake, _positive_mistake)),
)
