"""Learning few modes from few sequences: learning curves and their slopes, regimes, emergence, causes of the error.

Theory is the limit d → ∞ at n = n_eff d sequences, solved by `numerics.scaling_laws`; points are layers trained on
tokens, or on exactly Gaussian scores. Figures that are drawn in one process share their trained layers.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import sympy as sp

from derivations import bayes_optimal
from derivations import scaling_laws as chapter
from derivations import state_evolution as equations
from numerics import scaling_laws as theory
from numerics.compile import function
from numerics.scaling_laws.mode_sums import evaluate, solved
from numerics.state_evolution import NotSolvedError, sweep
from verify.figures import COLOURS, notation, points
from verify.randomness import generator
from verify.samplers import load_sampler

NOISE, GAMMA = 0.5, 1.0
SOFTMAX = 2  # scores that a softmax of two tokens tells apart
LINEAR = int(chapter.linear_outputs.right.subs(equations.tokens, 2))  # scores of a linear output of two tokens
SEQUENCES = f"sequences over dimension, {notation(chapter.n_eff)}"
ERROR = f"error {notation(chapter.excess)}"

# Trained layers: a penalty above the critical one at any n_eff, where the limit is reached fast.
ELL = 1.2
SMALL_SIZE, SMALL_DRAWS, SMALL_COUNTS = 32, 6, (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
SIZE, DRAWS, COUNTS = 64, 4, (1.0, 2.0, 4.0, 8.0, 16.0)


@lru_cache(maxsize=512)
def _trained(count: float, design: str, size: int, seed: int, draw: int) -> Any:
    """A layer that is trained on n = count d sequences at the penalty ELL."""
    parameters = {"n_eff": count, "ell": ELL, "gamma": GAMMA, "noise": NOISE}
    source = generator(seed, f"figure scaling_laws {count} {design}", size, draw)
    return load_sampler("attention_power_law")(size, source, parameters, {"tokens": 2, "design": design})


def _sampled(name: str, design: str, counts: Any, size: int, draws: int, seed: int) -> Any:
    """Measured values, a row for each number of sequences."""
    return np.array([[_trained(count, design, size, seed, k)[name] for k in range(draws)] for count in counts])


def _learned(count: Any, ell: Any, **options: Any) -> Any:
    """The learned matrix in the spiked limit. Raises NotSolvedError if a point is not solved: curves have no holes."""
    found = theory.learned(count, options.pop("gamma", GAMMA), ell, NOISE, **options)
    if not np.all(found.converged):
        raise NotSolvedError(f"learning curve: {next(note for note in np.ravel(found.note) if note)}")
    return found


# -- learning curves --------------------------------------------------------------------------------------------------

CURVE, CURVE_POINTS, PENALISED_POINTS = (0.1, 1e6), 400, 25
STRENGTH = 1000.0  # λ̃√d of the curve at a fixed penalty
CURVE_GAMMAS = ((1.0, "-"), (1.5, "--"))
SLOPES, SLOPE_POINTS = (1.0, 1e10), 400
SLOPE_GAMMAS = ((0.6, "purple", ":"), (0.75, "orange", "-."), (1.0, "blue", "-"), (1.5, "green", "--"))


def draw(figure: Any, seed: int) -> str:
    """Learning curves in four regimes with their power laws, and how slowly the noise-limited exponent is reached."""
    left, right = figure.subplots(1, 2)
    _curves(left)
    _slopes(right)
    return (
        f"Error of the learned matrix for a target with modes i^(-gamma), linear outputs of two tokens (K = {LINEAR}), "
        "d -> infinity. Left: interpolating estimate (lam -> 0) with and without label noise, and a fixed penalty lam "
        f"with lam sqrt(d) = {STRENGTH:g}; gamma = {CURVE_GAMMAS[0][0]:g} solid, {CURVE_GAMMAS[1][0]:g} dashed; thin "
        "lines: asymptotic power laws with their prefactors. Below the critical penalty the error does not depend on "
        f"it. Right: local slope of the interpolating curves, label noise {NOISE}, and (thin) its limit "
        "-1 + 1/(2 gamma), which is reached the later, the nearer gamma is to 1/2."
    )


def _curves(axes: Any) -> None:
    grid = np.geomspace(*CURVE, CURVE_POINTS)
    few = np.geomspace(STRENGTH / 100, CURVE[1], PENALISED_POINTS)
    axes.axhline(1.0, color=COLOURS["black"], lw=0.8, ls=(0, (1, 2)))
    for gamma, line in CURVE_GAMMAS:
        for regime, colour, noise in (("noise-limited", "blue", NOISE), ("noiseless", "green", 0.0)):
            error = theory.interpolating_error(grid, gamma, noise, LINEAR)
            axes.plot(grid, error, color=COLOURS[colour], lw=2, ls=line)
            _power_law(axes, gamma, regime, (2.0, CURVE[1]), noise=noise)
        found = _learned(few, STRENGTH / np.sqrt(few), gamma=gamma, output="linear")
        axes.plot(few, found.error, color=COLOURS["vermilion"], lw=2, ls=line)
        _power_law(axes, gamma, "regularisation-limited", (STRENGTH / 5, CURVE[1] / 30), noise=NOISE, lam=STRENGTH)
    axes.set(xscale="log", yscale="log", ylim=(1e-8, 3), xlabel=SEQUENCES, ylabel=ERROR)
    symbol = notation(chapter.noise)
    for label, colour, width, line in (
        (f"{symbol} = {NOISE}, λ → 0", "blue", 2.0, "-"),
        (f"{symbol} = 0, λ → 0", "green", 2.0, "-"),
        (f"{symbol} = {NOISE}, λ fixed", "vermilion", 2.0, "-"),
        *((f"{notation(chapter.gamma)} = {gamma:g}", "black", 1.5, line) for gamma, line in CURVE_GAMMAS),
        ("power laws", "black", 0.8, "-"),
    ):
        axes.plot([], [], color=COLOURS[colour], lw=width, ls=line, label=label)
    axes.legend(framealpha=1.0, edgecolor="none", fontsize=9, loc="lower left")


def _power_law(axes: Any, gamma: float, regime: str, ends: tuple[float, float], **values: float) -> None:
    """The asymptotic law of a regime, where it is below the plateau."""
    x = np.geomspace(*ends, 50)
    y = theory.prefactor(gamma, regime, scores=LINEAR, **values) * x ** theory.exponent(gamma, regime)
    axes.plot(x[y < 1], y[y < 1], color=COLOURS["black"], lw=0.8, zorder=5)


def _slopes(axes: Any) -> None:
    grid = np.geomspace(*SLOPES, SLOPE_POINTS)
    for gamma, colour, line in SLOPE_GAMMAS:
        error = theory.interpolating_error(grid, gamma, NOISE, LINEAR)
        local = np.gradient(np.log(error), np.log(grid))
        label = f"{notation(chapter.gamma)} = {gamma:g}"
        axes.plot(grid, local, color=COLOURS[colour], lw=2, ls=line, label=label)
        axes.axhline(theory.exponent(gamma, "noise-limited"), color=COLOURS[colour], lw=0.8)
    axes.set(xscale="log", ylim=(-0.95, 0), xlabel=SEQUENCES, ylabel=f"local slope {notation(chapter.slope)}")
    axes.legend(framealpha=1.0, edgecolor="none", fontsize=9, ncols=2, loc="lower right")


# -- regimes ----------------------------------------------------------------------------------------------------------

DIMENSION, CELLS = 1e4, (360, 260)
RANGES = (0.05, 1e10), (1e-4, 1e5)  # of n_eff and λ
SHADES = {  # by regime: shade, name, and where it is written
    "plateau": ("#d9d9d9", "plateau", (2, 2e3)),
    "regularisation-limited": ("#f6c38b", "regularisation-limited", (3e6, 3e3)),
    "noise-limited": ("#a6cee8", "noise-\nlimited", (90, 2e-3)),
    "noiseless": ("#cfe8f7", "error >\nlabel\nnoise", (2, 2e-3)),
    "peak": ("#e9b4d0", "peak", (250, 0.36)),
    "overfitting": ("#f4e9a0", "overfitting,\nmodes buried", (6e4, 2e-3)),
    "overfitting-resolved": ("#b5dfc9", "overfitting,\nmodes resolved", (3e8, 2e-1)),
    "bias": ("#dcc7ec", "bias", (1.8e9, 5e3)),
}


def draw_phases(figure: Any, seed: int) -> str:
    """Regimes by number of sequences and penalty at a fixed dimension, and the laws of their boundaries."""
    from matplotlib.colors import ListedColormap

    figure.set_size_inches(8.5, 5.2)
    axes = figure.subplots()
    (low, high), (weak, strong) = RANGES
    count, level = np.geomspace(low, high, CELLS[0]), np.geomspace(weak, strong, CELLS[1])
    found = theory.phase(count * DIMENSION, DIMENSION, level[:, None], GAMMA, NOISE, LINEAR)
    number = np.select([found == name for name in SHADES], range(len(SHADES)), default=-1)
    colours = ListedColormap([shade for shade, _, _ in SHADES.values()])
    axes.pcolormesh(count, level, number, cmap=colours, vmin=-0.5, vmax=len(SHADES) - 0.5, rasterized=True)
    _boundaries(axes, count, level)
    for _, words, place in SHADES.values():
        axes.text(*place, words, ha="center", va="center", fontsize=9)
    axes.set(xscale="log", yscale="log", xlim=RANGES[0], ylim=RANGES[1], xlabel=SEQUENCES)
    axes.set_ylabel(f"penalty {notation(chapter.level)}")
    axes.legend(fontsize=9, framealpha=1.0, loc="center left", bbox_to_anchor=(1.0, 0.5), edgecolor="none")
    return (
        f"Regimes of a layer with linear outputs of two tokens (K = {LINEAR}) at d = {DIMENSION:g}, gamma = {GAMMA:g}, "
        f"label noise {NOISE}: shades by the solution's noise, cut and error, lines by the laws of the boundaries. "
        "Around the end of interpolation a weak penalty leaves a peak; many sequences end in overfitting (weak "
        "penalty) or in a bias (strong penalty)."
    )


def _boundaries(axes: Any, count: Any, level: Any) -> None:
    """The laws of the boundaries, as functions of n_eff or of λ, each where it separates two regimes."""
    values = _values(count, level)
    critical = _penalty({**values, chapter.ell: evaluate("critical_penalty_of_many", values)})
    first, strongest = float(evaluate("plateau_boundary", values)), _first_mode(values)
    last, noisy = evaluate("bias_boundary", values), evaluate("overfitting_boundary", values)
    peak, biased, late = float(evaluate("peak_boundary", values)), last < noisy, count > first
    weak = level < np.interp(first, count, strongest)
    cutting = late & (evaluate("bias_boundary", {**values, chapter.level: critical}) > count)
    lines = (
        ("noise hides the first mode", "black", "-", np.full(level.shape, first)[weak], level[weak]),
        ("the penalty cuts the first mode", "black", ":", count[late], strongest[late]),
        ("critical penalty of many modes", "vermilion", "--", count[cutting], critical[cutting]),
        ("interpolation ends", "purple", "-.", np.full(level.shape, peak)[level < 1], level[level < 1]),
        ("the penalty cuts the last mode", "blue", "-.", last[biased], level[biased]),
        ("noise outgrows the bias", "green", "--", noisy[biased], level[biased]),
    )
    for label, colour, line, x, y in lines:
        axes.plot(x, y, color=COLOURS[colour], ls=line, lw=1.6, label=label)


def _values(count: Any, level: Any) -> dict[Any, Any]:
    """What the laws of the boundaries are about."""
    values: dict[Any, Any] = {
        chapter.noise: NOISE,
        chapter.outputs: float(LINEAR),
        chapter.stiffness: float(chapter.stiffness_of_entries.right),
        chapter.gamma: GAMMA,
        chapter.target_square: 1.0,
        chapter.dimension: DIMENSION,
        chapter.level: level,
        chapter.n_eff: count,
        chapter.response: 0.0,
    }
    return {**values, chapter.leading: evaluate("leading_strength", values)}


def _penalty(values: dict[Any, Any]) -> Any:
    return solved("penalty_in_the_spiked_limit", chapter.level)(values)


def _first_mode(values: dict[Any, Any]) -> Any:
    """The level of the penalty whose cut is where the first mode stands, as long as nothing is learned."""
    noise = evaluate("interpolating_noise", {**values, chapter.excess: values[chapter.target_square]})
    place = evaluate("spiked_place", {**values, chapter.strength: values[chapter.leading], chapter.noise_level: noise})
    cut = {**values, chapter.cut: place, chapter.mean_gain: evaluate("linear_gain", values)}
    return _penalty({**values, chapter.ell: solved("spiked_cut", chapter.ell)(cut)})


# -- emergence --------------------------------------------------------------------------------------------------------

MODES, PENALISED_MODES, STAIR_END = 14, 3, 25.0


def draw_staircase(figure: Any, seed: int) -> str:
    """How many modes are learned: by the interpolating and the Bayes-optimal estimate, and at a finite penalty."""
    figure.set_size_inches(7.5, 4.8)
    axes = figure.subplots()
    ranks = np.arange(1, MODES + 1)
    steps = (
        ("Bayes-optimal", "green", "--", theory.emergence(ranks, GAMMA, NOISE, SOFTMAX, "bayes")),
        ("nuclear norm, λ → 0", "blue", "-", theory.emergence(ranks, GAMMA, NOISE, SOFTMAX)),
        (f"nuclear norm, {notation(chapter.ell)} = {ELL}", "vermilion", "-.", _penalised_emergence()),
    )
    for label, colour, line, starts in steps:
        shown = np.asarray(starts)[np.asarray(starts) < STAIR_END]
        x, y = np.concatenate([[0.2], shown, [STAIR_END]]), [*range(len(shown) + 1), len(shown)]
        axes.step(x, y, where="post", color=COLOURS[colour], ls=line, lw=2, label=label)
    drawn = _sampled("recovered", "gaussian", COUNTS, SIZE, DRAWS, seed)
    points(axes, COUNTS, drawn, "black", "o", f"trained at {notation(chapter.ell)} = {ELL}, d = {SIZE}")
    axes.set(xscale="log", xlim=(0.2, STAIR_END), ylim=(-0.3, 13.3), xlabel=SEQUENCES)
    axes.set_xticks([0.2, 0.5, 1, 2, 5, 10, 20], ["0.2", "0.5", "1", "2", "5", "10", "20"])
    axes.minorticks_off()
    axes.set_ylabel(f"learned modes {notation(chapter.learned_modes)}")
    axes.legend(frameon=False, fontsize=10, loc="upper left")
    return (
        f"Number of modes that are learned, softmax labels of two tokens, gamma = {GAMMA:g}, label noise {NOISE}: each "
        "mode has a number of sequences of its own at which it emerges. Lines: theory for d -> infinity; points: "
        f"eigenvalues that lower the error, {DRAWS} layers each trained with Gaussian scores, with standard errors."
    )


@lru_cache
def _penalised_emergence() -> Any:
    """Where the first modes emerge at the penalty ELL."""
    return theory.emergence(np.arange(1, PENALISED_MODES + 1), GAMMA, NOISE, ell=ELL)


# -- causes of the error ----------------------------------------------------------------------------------------------

CAUSES = (
    ("underfitting", chapter.underfitting_part, "0.8", ""),
    ("approximation", chapter.approximation_part, COLOURS["sky"], "///"),
    ("mismatch", chapter.mismatch_part, COLOURS["orange"], ""),
    ("overfitting", chapter.overfitting_part, COLOURS["purple"], "..."),
)
CAUSES_GRID = (0.5, 30.0, 20)
STEP = 1e-6  # beside an emergence, where causes jump
EXTENSIVE: dict[str, Any] = {"lam": 0.01, "kappa0": 0.5, "noise": 0.5}
RATIOS, EXTENSIVE_GRID = (0.2, 0.5, 1.0, 2.0), (0.08, 4.0, 14)
EXTENSIVE_SIZE, EXTENSIVE_DRAWS = 48, 3


def draw_causes(figure: Any, seed: int) -> str:
    """The error by its four causes, along n/d for a power law and along n/d² at extensive rank."""
    left, right = figure.subplots(1, 2)
    jumps = np.multiply.outer((1 - STEP, 1 + STEP), _penalised_emergence()).ravel()
    grid = np.sort(np.concatenate([np.geomspace(*CAUSES_GRID), jumps[jumps < CAUSES_GRID[1]]]))
    found = _learned(grid, ELL).decomposition()
    parts = {name: np.asarray(getattr(found, name)) for name, *_ in CAUSES}
    shares = {name: _sampled(name, "gaussian", COUNTS, SIZE, DRAWS, seed) for name, *_ in CAUSES}
    _stack(left, grid, parts, COUNTS, shares)
    left.set(xlabel=SEQUENCES, ylabel=ERROR, title=f"few modes, {notation(chapter.ell)} = {ELL}")
    solutions = [one for one in sweep("alpha", np.geomspace(*EXTENSIVE_GRID), **EXTENSIVE) if one.converged]
    causes = [one.decomposition() for one in solutions]
    stacked = {name: np.array([getattr(one, name) for one in causes]) for name, *_ in CAUSES}
    runs = [[_extensive(ratio, seed, k) for k in range(EXTENSIVE_DRAWS)] for ratio in RATIOS]
    shares = {name: np.array([[run[name] for run in row] for row in runs]) for name, *_ in CAUSES}
    _stack(right, [one.alpha for one in solutions], stacked, RATIOS, shares)
    right.set(xlabel=f"sequences {notation(equations.alpha)} = n/d²", title="extensive rank, λ = 0.01")
    right.legend(framealpha=1.0, edgecolor="none", fontsize=9, loc="upper right")
    return (
        f"Squared distance from the target by its causes, stacked. Left: power law, gamma = {GAMMA:g}, label noise "
        f"{NOISE}, softmax labels, ell = {ELL}, d -> infinity; points: sums of the causes up to each, of {DRAWS} "
        f"layers each trained with Gaussian scores at d = {SIZE}. Right: Gaussian target of rank "
        f"{EXTENSIVE['kappa0']} d, label noise {EXTENSIVE['noise']}, lam = {EXTENSIVE['lam']}; points: "
        f"{EXTENSIVE_DRAWS} layers each trained on tokens at d = {EXTENSIVE_SIZE}. Bars: standard errors."
    )


def _stack(axes: Any, grid: Any, parts: dict[str, Any], places: Any, shares: dict[str, Any]) -> None:
    """Areas by theory; at the top of each a line, and what was sampled."""
    below, sampled = np.zeros(len(grid)), 0.0
    for name, symbol, colour, hatch in CAUSES:
        above = below + parts[name]
        label = f"{name}, {notation(symbol)}"
        axes.fill_between(grid, below, above, facecolor=colour, edgecolor="0.4", hatch=hatch, lw=0, label=label)
        axes.plot(grid, above, color=COLOURS["black"], lw=0.8)
        below, sampled = above, sampled + shares[name]
        points(axes, places, sampled, "black", "o", "trained layers" if name == CAUSES[-1][0] else "")
    axes.set(xscale="log", xlim=(grid[0], grid[-1]))
    axes.set_ylim(bottom=0)


def _extensive(ratio: float, seed: int, draw: int) -> Any:
    parameters = {"alpha": ratio, "kappa": 1.0, "beta": 1.0, "beta_target": 1.0, **EXTENSIVE}
    source = generator(seed, f"figure scaling_laws causes {ratio}", EXTENSIVE_SIZE, draw)
    return load_sampler("attention_error_causes")(EXTENSIVE_SIZE, source, parameters, {"tokens": 2})


# -- tokens -----------------------------------------------------------------------------------------------------------

DESIGNS = (("gaussian", "Gaussian scores", "blue"), ("tokens", "tokens", "vermilion"))
TOKENS_GRID = (0.6, 50.0, 24)


def draw_tokens(figure: Any, seed: int) -> str:
    """What the Gaussian theory misses at few sequences: the error of layers trained on tokens, at two dimensions."""
    left, right = figure.subplots(1, 2)
    grid = np.geomspace(*TOKENS_GRID)
    left.plot(grid, _learned(grid, ELL).error, color=COLOURS["black"], lw=2, label="theory")
    right.axhline(1.0, color=COLOURS["black"], lw=2)
    for size, draws, counts, marker in ((SMALL_SIZE, SMALL_DRAWS, SMALL_COUNTS, "s"), (SIZE, DRAWS, COUNTS, "o")):
        expected = np.asarray(_learned(np.array(counts), ELL).error)
        for design, words, colour in DESIGNS:
            errors = _sampled("excess", design, counts, size, draws, seed)
            places = np.array(counts) * (0.97 if size == SMALL_SIZE else 1.03)  # side by side
            points(left, places, errors, colour, marker, f"{words}, d = {size}")
            points(right, places, errors / expected[:, None], colour, marker)
    left.set(xscale="log", yscale="log", xlabel=SEQUENCES, ylabel=ERROR)
    right.set(xscale="log", xlabel=SEQUENCES, ylabel=f"{ERROR} over that of the theory")
    left.set_yticks([0.4, 0.6, 0.8, 1.0], ["0.4", "0.6", "0.8", "1"])
    left.minorticks_off()
    left.legend(frameon=False, fontsize=9, loc="lower left")
    return (
        f"Error of trained layers (softmax labels of two tokens, gamma = {GAMMA:g}, label noise {NOISE}, ell = {ELL}) "
        f"against the theory for d -> infinity; {SMALL_DRAWS} layers each at d = {SMALL_SIZE}, {DRAWS} at d = {SIZE}, "
        "with standard errors. Layers trained on exactly Gaussian scores of the same covariance follow it up to "
        "a bias of order n_eff/d; those trained on tokens lie above it at few "
        "sequences, and no nearer at the larger dimension: scores that few strong modes make are not Gaussian at any d."
    )


# -- price of the nuclear norm ----------------------------------------------------------------------------------------

PRICE, PRICE_POINTS = (0.1, 1e8), 300
PRICES = (  # label noise, and the law of the price
    (0.5, bayes_optimal.price_with_noise, "blue", "-"),
    (0.0, bayes_optimal.price_without_noise, "green", "--"),
)


def draw_price(figure: Any, seed: int) -> str:
    """The interpolating against the Bayes-optimal estimate, with and without label noise."""
    left, right = figure.subplots(1, 2)
    grid = np.geomspace(*PRICE, PRICE_POINTS)
    for noise, law, colour, line in PRICES:
        label = f"{notation(chapter.noise)} = {noise:g}"
        pair = [estimate(grid, GAMMA, noise, SOFTMAX) for estimate in (theory.interpolating_error, theory.bayes_error)]
        for error, width, words in zip(pair, (2.0, 1.0), ("nuclear norm", "Bayes-optimal"), strict=True):
            left.plot(grid, error, color=COLOURS[colour], ls=line, lw=width, label=f"{words}, {label}")
        limit = _price(law)
        right.plot(grid, pair[0] / pair[1], color=COLOURS[colour], ls=line, lw=2, label=label)
        right.axhline(limit, color=COLOURS[colour], lw=0.8)
        right.annotate(f"{limit:.4g}", (PRICE[0], limit), xytext=(2, 3), textcoords="offset points", fontsize=9)
    left.set(xscale="log", yscale="log", ylim=(1e-6, 2), xlabel=SEQUENCES, ylabel=ERROR)
    right.set(xscale="log", ylim=(0.95, 2.4), xlabel=SEQUENCES, ylabel="error over the Bayes-optimal one")
    left.legend(frameon=False, fontsize=9, loc="lower left")
    right.legend(frameon=False, fontsize=9, loc="lower right")
    ratio = _price(bayes_optimal.price_with_noise)
    return (
        f"The interpolating estimate (nuclear norm, lam -> 0) against the Bayes-optimal one, gamma = {GAMMA:g}, "
        f"softmax labels of two tokens (K = {SOFTMAX}), d -> infinity. Both have the same exponents; what the nuclear "
        f"norm costs is a factor, which with label noise tends to the ratio {ratio:.4g} of the constants, and without "
        "it to the power 2 gamma of that ratio, because the error is its own noise (thin lines)."
    )


def _price(law: Any) -> float:
    """What the ratio of the errors tends to with many sequences."""
    return float(function(sp.powsimp(law.right), (chapter.gamma,))(GAMMA))  # powers of n_eff cancel


# -- factors against entries ------------------------------------------------------------------------------------------

ENTRIES_SETTING: dict[str, Any] = {"kappa0": 0.05, "noise": 0.05}
FACTORS_RATIOS, ENTRIES_RATIOS = (0.108, 0.21, 0.5), (0.10, 0.15, 0.21, 0.32, 0.5)
TRAINED_EVERY, ENTRIES_SIZE, ENTRIES_DRAWS = 2, 64, 3
PUBLISHED = {  # public data of arXiv 2509.24914: α, least test error of networks with factors and with entries
    True: ((0.108, 0.0204), (0.21, 0.0146), (0.5, 0.0113)),
    False: ((0.10, 0.2109), (0.21, 0.1152), (0.5, 0.0237)),
}


def draw_entries(figure: Any, seed: int) -> str:
    """Least test error with factors and entry by entry, against published networks and trained layers."""
    figure.set_size_inches(7.5, 4.8)
    axes = figure.subplots()
    for factorised, ratios, words, colour, line, marker in (
        (True, FACTORS_RATIOS, "factors", "blue", "-", "o"),
        (False, ENTRIES_RATIOS, "entries", "vermilion", "--", "s"),
    ):
        best = [theory.best(ratio, factorised=factorised, **ENTRIES_SETTING) for ratio in ratios]
        errors = [solution.test_error for _, solution in best]
        axes.plot(ratios, errors, color=COLOURS[colour], ls=line, lw=2, marker=".", label=f"{words}, theory")
        places, values = zip(*PUBLISHED[factorised], strict=True)
        style = {"color": COLOURS[colour], "ms": 8, "mfc": "none", "label": f"{words}, published networks"}
        axes.plot(places, values, marker, **style)
        if not factorised:
            chosen = list(zip(ratios, [lam for lam, _ in best], strict=True))[::TRAINED_EVERY]
            runs = [[_entry_error(*one, seed, k) for k in range(ENTRIES_DRAWS)] for one in chosen]
            points(axes, [ratio for ratio, _ in chosen], runs, "black", "D", f"{words}, trained, d = {ENTRIES_SIZE}")
    axes.set(xscale="log", yscale="log", xlabel=f"sequences {notation(equations.alpha)} = n/d²")
    axes.set_xticks([0.1, 0.2, 0.3, 0.4, 0.5], ["0.1", "0.2", "0.3", "0.4", "0.5"])
    axes.set_yticks([0.01, 0.02, 0.05, 0.1, 0.2], ["0.01", "0.02", "0.05", "0.1", "0.2"])
    axes.minorticks_off()
    axes.set_ylabel(f"least test error {notation(equations.test_loss)}")
    axes.legend(frameon=False, fontsize=10)
    kappa0, noise = ENTRIES_SETTING.values()
    return (
        f"Test error (noisy labels, softmax of two tokens) at the penalty of least test error, target of rank {kappa0} "
        f"d, label noise {noise}: weight decay on factors against a squared penalty on the entries. Open markers: "
        f"networks of the public data of arXiv 2509.24914; diamonds: {ENTRIES_DRAWS} layers each, trained at the "
        "theory's penalty, with standard errors. Dots on the lines: where theory was computed."
    )


def _entry_error(ratio: float, lam: float, seed: int, draw: int) -> float:
    """Test error of a layer that learns entries."""
    parameters = {"alpha": ratio, "lam": lam, "kappa": 1.0, "beta": 1.0, "beta_target": 1.0, **ENTRIES_SETTING}
    source = generator(seed, f"figure scaling_laws entries {ratio:.6g}", ENTRIES_SIZE, draw)
    options = {"tokens": 2, "task": "label", "penalty": "frobenius"}
    return float(load_sampler("attention_training")(ENTRIES_SIZE, source, parameters, options)["test_error"])


FIGURES = {
    "scaling_laws": draw,
    "scaling_laws-phase-diagram": draw_phases,
    "scaling_laws-staircase": draw_staircase,
    "scaling_laws-causes": draw_causes,
    "scaling_laws-tokens": draw_tokens,
    "scaling_laws-price": draw_price,
    "scaling_laws-entries": draw_entries,
}
