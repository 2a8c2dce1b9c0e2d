"""Pooling weights and what they gain: optimal, causal and mean weights, and their signal-to-noise ratio against T."""

from __future__ import annotations

from typing import Any

import numpy as np

from derivations import attention_weights as chapter
from numerics import attention_weights
from verify.figures import COLOURS, notation, points
from verify.randomness import generator
from verify.samplers import load_sampler

LENGTH, BLOCK, STRENGTH = 32, 12, 0.5
SIZE, DRAWS, SEQUENCES = 256, 6, 400
SCORE_SCALE = 1.0
LENGTHS = (4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
STYLES = {"optimal": ("green", "-", "^"), "causal": ("blue", "--", "s"), "mean": ("vermilion", "-.", "o")}


def draw(figure: Any, seed: int) -> str:
    """The weights at one length, and the ratio for a correlated first half and for a correlated last half."""
    left, middle, right = figure.subplots(1, 3, width_ratios=(1.2, 1, 1))
    _weights(left, seed)
    for axes, early in ((middle, True), (right, False)):
        for name, (colour, line, marker) in STYLES.items():
            ratios = [_ratio(name, length, early) for length in LENGTHS]
            axes.plot(LENGTHS, ratios, line, color=COLOURS[colour], marker=marker, ms=4, lw=1.5, label=name)
        axes.set(xscale="log", yscale="log", xlabel=notation(chapter.T), ylabel=notation(chapter.snr))
        _plain_ticks(axes)
        half = "first" if early else "last"
        axes.set_title(f"correlated: the {half} half", fontsize=11)
        axes.legend(frameon=False, fontsize=9)
    return (
        f"Left: weights at length T = {LENGTH} with signs correlated by {STRENGTH} among the first {BLOCK} positions; "
        f"circles: real causal softmax attention at score scale {SCORE_SCALE:g}, averaged over {DRAWS} vocabularies of "
        f"dimension {SIZE} (bars: standard errors). Middle and right: signal-to-noise ratio against length, where the "
        f"first or the last half of the signs is correlated by {STRENGTH}."
    )


def _weights(axes: Any, seed: int) -> None:
    positions = np.arange(1, LENGTH + 1)
    correlation = attention_weights.prefix_correlation(LENGTH, BLOCK, STRENGTH)
    best = attention_weights.optimal(correlation)
    curves = {"optimal": best / best.sum(), "causal": attention_weights.causal(LENGTH)}
    curves["mean"] = attention_weights.mean(LENGTH)
    for name, values in curves.items():
        colour, line, _ = STYLES[name]
        axes.step(positions, values, line, where="mid", color=COLOURS[colour], lw=1.8, label=name)
    parameters = {"delta": 0.5, "signal": 1.0, "tau": SCORE_SCALE}
    options = {"length": LENGTH, "mask": "strict", "signs": ("prefix", BLOCK, STRENGTH), "sequences": SEQUENCES}
    sampler = load_sampler("attention_scores")
    drawn = [
        sampler(SIZE, generator(seed, "figure attention_weights", SIZE, k), parameters, options)["weights"]
        for k in range(DRAWS)
    ]
    points(axes, positions, np.array(drawn).T, "black", "o", "softmax attention")
    axes.set(xlabel=f"position {notation(chapter.t)}", ylabel=f"weight {notation(chapter.weight)}, sum 1")
    axes.legend(frameon=False, fontsize=9)


def _plain_ticks(axes: Any) -> None:
    """Numbers instead of powers of ten."""
    lengths, heights = LENGTHS[1::2], (1, 2, 5, 10, 20, 50)
    axes.set_xticks(lengths, [str(length) for length in lengths], fontsize=9)
    axes.set_yticks(heights, [str(height) for height in heights])
    axes.minorticks_off()


def _ratio(name: str, length: int, early: bool) -> float:
    correlation = attention_weights.prefix_correlation(length, length // 2, STRENGTH)
    correlation = correlation if early else correlation[::-1, ::-1]
    weights = {
        "optimal": lambda: attention_weights.optimal(correlation),
        "causal": lambda: attention_weights.causal(length),
        "mean": lambda: attention_weights.mean(length),
    }[name]()
    return attention_weights.snr(weights, correlation)


FIGURES = {"attention_weights": draw}
