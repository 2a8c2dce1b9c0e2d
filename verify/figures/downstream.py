"""What a classifier makes of pooled sequences: accuracy against the penalty and against the length."""

from __future__ import annotations

from typing import Any

import numpy as np

from derivations import attention_weights as pooling
from derivations import downstream as chapter
from numerics import attention_weights, downstream
from verify.figures import COLOURS, notation, points
from verify.randomness import generator
from verify.samplers import load_sampler

DELTA, GAMMA, SIGNAL = 0.5, 0.5, 2.0
LENGTH, BLOCK, STRENGTH = 16, 6, 0.5
SIZE, DRAWS, TESTS = 256, 8, 4000
RIDGES = (0.02, 0.1, 0.5, 2.5, 12.5)
LENGTHS = (8, 12, 16, 24, 32, 48, 64)
STYLES = {"optimal": ("green", "-", "^"), "causal": ("blue", "--", "s"), "mean": ("vermilion", "-.", "o")}


def draw(figure: Any, seed: int) -> str:
    """Three sets of weights on the same tokens."""
    left, right = figure.subplots(1, 2)
    correlation = attention_weights.prefix_correlation(LENGTH, BLOCK, STRENGTH)
    sampled = _accuracies(LENGTH, BLOCK, RIDGES, seed)
    grid = np.geomspace(RIDGES[0] / 2, RIDGES[-1] * 2, 120)
    for name, (colour, line, marker) in STYLES.items():
        weights = _weights(name, LENGTH, correlation)
        law = downstream.accuracy(DELTA, GAMMA, SIGNAL, weights, correlation, grid)
        left.plot(grid, law, line, color=COLOURS[colour], lw=2, label=name)
        points(left, RIDGES, sampled[name], colour, marker)
        best = downstream.best_ridge(DELTA, GAMMA, SIGNAL, weights, correlation)
        if grid[0] < best < grid[-1]:
            height = downstream.accuracy(DELTA, GAMMA, SIGNAL, weights, correlation, best)
            left.plot([best], [height], "*", color=COLOURS["black"], ms=9, zorder=5)
    left.plot([], [], "*", color=COLOURS["black"], ms=9, ls="none", label="best penalty")
    left.set(xscale="log", xlabel=f"penalty {notation(chapter.ridge)}, in units of κ")
    _lengths(right, seed)
    for axes in (left, right):
        axes.set_ylabel(f"accuracy on fresh sequences, {notation(chapter.accuracy)}")
        axes.legend(frameon=False, fontsize=9)
    return (
        f"Accuracy on fresh sequences, delta = {DELTA}, gamma = {GAMMA}, squared norm of the class mean {SIGNAL:g}; "
        f"points: {DRAWS} draws at d = {SIZE} with standard errors. Left: against the penalty, T = {LENGTH}, "
        f"{BLOCK} correlated signs (correlation {STRENGTH}). Right: optimal weights at penalty {RIDGES[2]:g} against "
        "the length, a quarter of the signs correlated: the law, which averages over the sign patterns, the formula "
        "for long sequences, whose pooled signs are Gaussian, and the rule of thumb from the signal-to-noise ratio."
    )


def _weights(name: str, length: int, correlation: Any) -> Any:
    if name == "optimal":
        return attention_weights.optimal(correlation)
    return attention_weights.causal(length) if name == "causal" else attention_weights.mean(length)


def _lengths(axes: Any, seed: int) -> None:
    ridge = RIDGES[2]
    rows: dict[str, list[float]] = {"exact": [], "gaussian": [], "naive": []}
    sampled = []
    for length in LENGTHS:
        correlation = attention_weights.prefix_correlation(length, length // 4, STRENGTH)
        weights = attention_weights.optimal(correlation)
        for pattern in ("exact", "gaussian"):
            value = downstream.accuracy(DELTA, GAMMA, SIGNAL, weights, correlation, ridge, pattern=pattern)
            rows[pattern].append(value)
        rows["naive"].append(_naive(weights, correlation))
        sampled.append(_accuracies(length, length // 4, (ridge,), seed)["optimal"][0])
    axes.plot(LENGTHS, rows["exact"], "-", color=COLOURS["blue"], lw=2, label="law")
    axes.plot(LENGTHS, rows["gaussian"], "--", color=COLOURS["orange"], lw=2, label="long sequences")
    axes.plot(LENGTHS, rows["naive"], ":", color=COLOURS["vermilion"], lw=2, label="rule of thumb")
    points(axes, LENGTHS, sampled, "black", "o", f"sampled, d = {SIZE}")
    axes.set(xscale="log", xlabel=notation(pooling.T))
    axes.set_xticks(LENGTHS, [str(length) for length in LENGTHS])
    axes.minorticks_off()


def _naive(weights: Any, correlation: Any) -> float:
    """The rule of thumb, from the chapter's own superseded law."""
    from derivations.bbp import alpha, kappa
    from numerics.compile import function

    law = chapter.accuracy_naive.right
    values = {
        chapter.signal: SIGNAL,
        alpha: float(weights @ correlation @ weights),
        kappa: float(weights @ weights),
    }
    symbols = tuple(sorted(law.free_symbols, key=lambda symbol: str(symbol.name)))
    return float(function(law, symbols)(*(values[symbol] for symbol in symbols)))


def _accuracies(length: int, block: int, ridges: tuple[float, ...], seed: int) -> dict[str, Any]:
    sampler = load_sampler("downstream")
    correlation = attention_weights.prefix_correlation(length, block, STRENGTH)
    weights = {name: tuple(_weights(name, length, correlation)) for name in STYLES}
    signs = ("prefix", block, STRENGTH)
    options = {"length": length, "signs": signs, "weights": weights, "centred": True, "tests": TESTS}
    found = {name: np.empty((len(ridges), DRAWS)) for name in STYLES}
    for row, ridge in enumerate(ridges):
        parameters = {"delta": DELTA, "gamma": GAMMA, "signal": SIGNAL, "ridge": ridge}
        for k in range(DRAWS):
            source = generator(seed, f"figure downstream {length} {ridge}", SIZE, k)
            drawn = sampler(SIZE, source, parameters, options)
            for name, values in found.items():
                values[row, k] = drawn[f"accuracy_{name}"]
    return found


FIGURES = {"downstream": draw}
