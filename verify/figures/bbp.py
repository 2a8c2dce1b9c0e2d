"""Signal recovery from pooled sequences: both models' spectra, both transitions, and where in (signal, N/d) each is."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
import sympy as sp

from derivations import bbp as chapter
from derivations import wishart_product as bulk
from numerics import attention_weights
from numerics.bbp import recovery
from numerics.compile import function
from numerics.wishart_product import WishartProduct
from verify.figures import COLOURS, histogram, notation, points
from verify.randomness import generator
from verify.samplers import load_sampler
from verify.samplers.pooled import draw_sequences, pool

DELTA, GAMMA, LENGTH, PREFIX = 0.5, 0.25, 16, 8
SIZE, DRAWS = 512, 12
SIGNALS = (0.1, 0.2, 0.4, 0.6, 0.9, 1.2, 1.6, 2.0)
SPECTRUM_SIZE, SPECTRUM_DRAWS, SPECTRUM_SIGNAL = 512, 4, 0.6
RATIO_RANGE = (0.25, 32.0)  # of N/d
SHORT_PREFIX = 4  # of the transitions: with fewer equal signs they lie further apart


def draw(figure: Any, seed: int) -> str:
    """Location and overlap of the signal's outlier, centred samples and mean pooling."""
    weights = attention_weights.mean(LENGTH)
    correlation = attention_weights.prefix_correlation(LENGTH, PREFIX, 1)
    grid = np.linspace(0.005, 2.1, 400)
    left, right = figure.subplots(1, 2)
    for model, colour, label in (("token", "blue", "token model"), ("decoupled", "vermilion", "decoupled statement")):
        results = recovery(DELTA, GAMMA, grid, weights, correlation, model=model)
        style = {"color": COLOURS[colour], "label": label, "lw": 2, "ls": "-" if model == "token" else "--"}
        left.plot(grid, [_location(result) for result in results], **style)
        right.plot(grid, [result.signal.sample_overlap if result.signal else 0.0 for result in results], **style)
    locations, overlaps = _simulate(weights, seed)
    points(left, SIGNALS, locations, "black", "o", f"sampled sequences, d = {SIZE}")
    points(right, SIGNALS, overlaps, "black", "o")
    left.set_ylabel(f"leading eigenvalue over {notation(chapter.kappa)}")
    right.set_ylabel(f"squared overlap with the signal, {notation(chapter.signal_overlap)}")
    for axes in (left, right):
        axes.set_xlabel(f"signal {notation(chapter.signal)}")
    left.legend(frameon=False)
    return (
        f"Leading eigenvalue and its overlap with the signal, delta = {DELTA}, gamma = {GAMMA}, T = {LENGTH}, the "
        f"first {PREFIX} signs equal, mean pooling, centred; {DRAWS} draws a point, d = {SIZE}; bars: standard errors."
    )


def _location(result: Any) -> float:
    """The leading eigenvalue: the outlier, or the bulk's edge where there is none."""
    outlier = result.signal
    location = outlier.sample_location if outlier and outlier.detectable_sample else result.bulk_edge
    return float(location / result.kappa)


def _simulate(weights: Any, seed: int) -> tuple[Any, Any]:
    drawn = _draws(weights, PREFIX, SIGNALS, seed, "figure bbp", population=False)
    return _column(drawn, "leading_location"), _column(drawn, "leading_overlap")


def _draws(weights: Any, prefix: int, signals: Any, seed: int, key: str, population: bool) -> list[list[Any]]:
    """Draws of the centred token model, a row for each signal strength."""
    sampler = load_sampler("token")
    options = {
        "length": LENGTH,
        "signs": ("prefix", prefix, 1),
        "weights": tuple(weights),
        "centred": True,
        "population": population,
    }
    rows = []
    for row, strength in enumerate(signals):
        parameters = {"delta": DELTA, "gamma": GAMMA, "signal": strength}
        sources = [generator(seed, f"{key} {row}", SIZE, column) for column in range(DRAWS)]
        rows.append([sampler(SIZE, source, parameters, options) for source in sources])
    return rows


def _column(drawn: list[list[Any]], name: str) -> Any:
    return np.array([[draw[name] for draw in row] for row in drawn])


# -- spectra ----------------------------------------------------------------------------------------------------------


def draw_spectra(figure: Any, seed: int) -> str:
    """Eigenvalues of S over κ with the exact bulk and the outliers, for both models, samples not centred."""
    weights = attention_weights.mean(LENGTH)
    correlation = attention_weights.prefix_correlation(LENGTH, PREFIX, 1)
    law = WishartProduct(DELTA, GAMMA)
    low, high = law.support()
    grid = low + (high - low) * np.sin(np.pi * np.linspace(0, 1, 500)[1:-1] / 2) ** 2
    panels = figure.subplots(1, 2, sharey=True)
    for axes, model, sample in zip(panels, ("decoupled", "token"), (_decoupled, _token), strict=True):
        values = np.concatenate([sample(weights, seed, k) for k in range(SPECTRUM_DRAWS)])
        width = (high - low) / 40
        histogram(axes, values, np.arange(0, 12, width), values.size, f"sampled, d = {SPECTRUM_SIZE}")
        axes.plot(grid, law.pdf(grid), color=COLOURS["blue"], lw=2, label="exact bulk")
        found = recovery(DELTA, GAMMA, SPECTRUM_SIGNAL, weights, correlation, model=model, centred=False)
        marks = {"signal": ("vermilion", "v"), "vocabulary-mean": ("purple", "s")}
        for outlier in found.outliers:
            colour, marker = marks[outlier.kind]
            label = f"{outlier.kind.replace('-', ' ')}, overlap {outlier.sample_overlap:.2f}"
            place = outlier.sample_location / found.kappa
            axes.plot([place], [0.02], marker, color=COLOURS[colour], ms=9, label=label, zorder=5)
        axes.set(
            yscale="log",
            ylim=(5e-4, 3),
            xlim=(0, 12),
            xlabel=f"eigenvalue of S/{notation(chapter.kappa)}",
            title=f"{model} model",
        )
        axes.legend(frameon=False, fontsize=9)
    panels[0].set_ylabel(f"density {notation(bulk.density)}")
    return (
        f"Eigenvalues of the pooled covariance in units of {chapter.kappa}, delta = {DELTA}, gamma = {GAMMA}, "
        f"T = {LENGTH}, the first {PREFIX} signs equal, mean pooling, squared norm of the class mean "
        f"{SPECTRUM_SIGNAL}, not centred; {SPECTRUM_DRAWS} draws at d = {SPECTRUM_SIZE}. Markers: the outliers by the "
        "law, with their squared overlap (signal: with the class mean). The token model has a weaker overlap at a "
        "larger eigenvalue, and an outlier that carries no signal."
    )


def _token(weights: Any, seed: int, draw: int) -> Any:
    source = generator(seed, "figure bbp spectra token", SPECTRUM_SIZE, draw)
    parameters = {"delta": DELTA, "gamma": GAMMA, "signal": SPECTRUM_SIGNAL}
    options = {"length": LENGTH, "signs": ("prefix", PREFIX, 1)}
    embeddings, tokens, _, _ = draw_sequences(SPECTRUM_SIZE, source, parameters, options)
    pooled = pool(embeddings, tokens, weights, centred=False)
    return scipy.linalg.eigvalsh(pooled.T @ pooled / len(pooled)) / float(weights @ weights)


def _decoupled(weights: Any, seed: int, draw: int) -> Any:
    """Samples √κ Z g/√V + √α μ η, in units of √κ."""
    source = generator(seed, "figure bbp spectra decoupled", SPECTRUM_SIZE, draw)
    vocabulary, samples = round(SPECTRUM_SIZE / DELTA), round(SPECTRUM_SIZE / GAMMA)
    ratio = attention_weights.snr(weights, attention_weights.prefix_correlation(LENGTH, PREFIX, 1))
    factor = source.standard_normal((SPECTRUM_SIZE, vocabulary)) / np.sqrt(vocabulary)
    pooled = source.standard_normal((samples, vocabulary)) @ factor.T
    pooled[:, 0] += np.sqrt(ratio * SPECTRUM_SIGNAL) * source.standard_normal(samples)
    return scipy.linalg.eigvalsh(pooled.T @ pooled / samples)


# -- transitions and phases -------------------------------------------------------------------------------------------


def draw_transitions(figure: Any, seed: int) -> str:
    """Location and overlap of the population's and the sample's outlier through their two transitions."""
    weights = attention_weights.mean(LENGTH)
    correlation = attention_weights.prefix_correlation(LENGTH, SHORT_PREFIX, 1)
    grid = np.linspace(0.0, 2.1, 500)
    results = recovery(DELTA, GAMMA, grid, weights, correlation)
    drawn = _draws(weights, SHORT_PREFIX, SIGNALS, seed, "figure bbp transitions", population=True)
    left, right = figure.subplots(1, 2)
    marks = {"population": ("orange", "--", "s"), "sample": ("blue", "-", "o")}
    for level, (colour, line, marker) in marks.items():
        style = {"color": COLOURS[colour], "lw": 2, "ls": line, "label": level}
        found = [
            result.signal if result.signal and getattr(result.signal, f"detectable_{level}") else None
            for result in results
        ]
        places = [
            getattr(one, f"{level}_location") / result.kappa if one else np.nan
            for one, result in zip(found, results, strict=True)
        ]
        left.plot(grid, places, **style)
        right.plot(grid, [getattr(one, f"{level}_overlap") if one else 0.0 for one in found], **style)
        prefix = "population_signal" if level == "population" else "signal"
        threshold = float(_signal_at(level, weights, correlation, GAMMA))
        beyond = [row for row, signal in enumerate(SIGNALS) if signal > threshold]
        label = f"{level}, sampled"
        locations, overlaps = _column(drawn, f"{prefix}_location"), _column(drawn, f"{prefix}_overlap")
        points(left, np.array(SIGNALS)[beyond], locations[beyond], colour, marker, label)
        points(right, SIGNALS, overlaps, colour, marker)
        for axes in (left, right):
            axes.axvline(threshold, color=COLOURS[colour], ls=":", lw=1.5)
    edge = WishartProduct(DELTA, GAMMA).support()[1]
    left.axhline(edge, color=COLOURS["black"], lw=0.8, label="edge of the sample bulk")
    left.set_ylabel(f"outlier over {notation(chapter.kappa)}")
    right.set_ylabel(f"squared overlap with the signal, {notation(chapter.signal_overlap)}")
    for axes in (left, right):
        axes.set_xlabel(f"signal {notation(chapter.signal)}")
    left.legend(frameon=False, fontsize=9)
    return (
        f"Token model, centred, delta = {DELTA}, gamma = {GAMMA}, T = {LENGTH}, the first {SHORT_PREFIX} signs equal, "
        "mean pooling. The population matrix has an outlier from the first dotted line on, the sample matrix from the "
        f"second one on; points: {DRAWS} draws at d = {SIZE} with standard errors. Below its transition the overlap of "
        "the nearest eigenvector is of order 1/d."
    )


def draw_phases(figure: Any, seed: int) -> str:
    """Where the signal leaves a trace: nowhere, in the population only, or in the sample."""
    figure.set_size_inches(7.5, 4.8)
    axes = figure.subplots()
    weights = attention_weights.mean(LENGTH)
    correlation = attention_weights.prefix_correlation(LENGTH, SHORT_PREFIX, 1)
    ratios = np.geomspace(*RATIO_RANGE, 300)
    right = 2.2
    sample = _signal_at("sample", weights, correlation, 1 / ratios)
    population = np.full(ratios.shape, float(_signal_at("population", weights, correlation, GAMMA)))
    regions = (
        (np.zeros_like(ratios), population, "0.85", ""),
        (population, sample, COLOURS["orange"], "///"),
        (sample, np.full_like(ratios, right), COLOURS["sky"], ""),
    )
    for start, stop, colour, hatch in regions:
        axes.fill_betweenx(ratios, start, stop, facecolor=colour, edgecolor="0.6", alpha=0.45, hatch=hatch, lw=0)
    axes.plot(population, ratios, "--", color=COLOURS["black"], lw=2, label="population transition")
    axes.plot(sample, ratios, "-", color=COLOURS["blue"], lw=2, label="sample transition")
    published = _signal_at("sample", weights, correlation, 1 / ratios, "decoupled_spike")
    axes.plot(published, ratios, ":", color=COLOURS["vermilion"], lw=2, label="sample transition, decoupled statement")
    axes.set(yscale="log", xlim=(0, right), ylim=RATIO_RANGE)
    axes.set(
        xlabel=f"signal {notation(chapter.signal)}", ylabel=f"samples over dimension, N/d = 1/{notation(bulk.gamma)}"
    )
    ticks = 2.0 ** np.arange(-2, 6)
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    names = ((0.07, 3.0, "no outlier", 90), (0.34, 0.45, "population only", 0), (1.35, 3.0, "sample outlier", 0))
    for x, y, words, turned in names:
        axes.text(x, y, words, rotation=turned)
    axes.legend(loc="upper right", fontsize=9, framealpha=0.9)
    return (
        f"Regions of the token model, delta = {DELTA}, T = {LENGTH}, the first {SHORT_PREFIX} signs equal, mean "
        "pooling. More samples turn an outlier of the population into one of the sample; below the first transition no "
        "number of samples helps. Dotted: the sample transition of the decoupled statement."
    )


def _signal_at(level: str, weights: Any, correlation: Any, gamma: Any, spike: str = "token_signal_spike") -> Any:
    """The signal at which the spike's strength is that of a transition: the spike's law solved for the signal."""
    strength = getattr(chapter, spike).right
    threshold = getattr(chapter, f"{level}_threshold_law").right
    solved = sp.solve(sp.Eq(strength, threshold), chapter.signal)[0]
    values: dict[Any, Any] = {
        bulk.delta: DELTA,
        bulk.gamma: np.asarray(gamma, dtype=float),
        chapter.alpha: attention_weights.snr(weights, correlation) * float(weights @ weights),
        chapter.kappa: float(weights @ weights),
    }
    symbols = tuple(sorted(solved.free_symbols, key=lambda symbol: str(symbol.name)))
    arrays = np.broadcast_arrays(*(values[symbol] for symbol in symbols))
    return np.asarray(function(solved, symbols)(*arrays))


FIGURES = {
    "bbp": draw,
    "bbp-spectra": draw_spectra,
    "bbp-transitions": draw_transitions,
    "bbp-phase-diagram": draw_phases,
}
