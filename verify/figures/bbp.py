"""Signal recovery against signal strength: the token model's law, the decoupled statement, and simulation."""

from __future__ import annotations

from typing import Any

import numpy as np

from derivations import bbp as chapter
from numerics import attention_weights
from numerics.bbp import recovery
from verify.figures import COLOURS, notation
from verify.randomness import generator
from verify.samplers import load_sampler

DELTA, GAMMA, LENGTH, PREFIX = 0.5, 0.25, 16, 8
SIZE, DRAWS = 512, 12
SIGNALS = (0.1, 0.2, 0.4, 0.6, 0.9, 1.2, 1.6, 2.0)


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
    points = {"fmt": "o", "color": COLOURS["black"], "ms": 5, "capsize": 3, "label": f"sampled sequences, d = {SIZE}"}
    left.errorbar(SIGNALS, locations.mean(1), locations.std(1) / np.sqrt(DRAWS), **points)
    right.errorbar(SIGNALS, overlaps.mean(1), overlaps.std(1) / np.sqrt(DRAWS), **points)
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
    sampler = load_sampler("token")
    options = {
        "length": LENGTH,
        "signs": ("prefix", PREFIX, 1),
        "weights": tuple(weights),
        "centred": True,
        "population": False,
    }
    locations, overlaps = np.empty((2, len(SIGNALS), DRAWS))
    for row, strength in enumerate(SIGNALS):
        for column in range(DRAWS):
            source = generator(seed, f"figure bbp {row}", SIZE, column)
            drawn = sampler(SIZE, source, {"delta": DELTA, "gamma": GAMMA, "signal": strength}, options)
            locations[row, column], overlaps[row, column] = drawn["leading_location"], drawn["leading_overlap"]
    return locations, overlaps
