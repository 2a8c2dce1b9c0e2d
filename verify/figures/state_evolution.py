"""Test error against the number of sequences, and the spectrum of the learned matrix: theory and trained layers."""

from __future__ import annotations

from typing import Any

import numpy as np

from derivations import state_evolution as chapter
from numerics.state_evolution import recovery_threshold, solve, sweep
from verify.figures import COLOURS, notation, points
from verify.randomness import generator
from verify.samplers import load_sampler

KAPPA0, NOISE, LAM = 0.5, 0.5, 0.01
GRID = (0.08, 2.5, 16)
RATIOS = (0.1, 0.2, 0.5, 1.0, 2.0)
SIZE, DRAWS = 48, 6
SPECTRUM_SIZE, SPECTRUM_DRAWS, SPECTRUM_RATIO = 72, 4, 1.0


def draw(figure: Any, seed: int) -> str:
    """Learning curves with and without label noise, and the learned eigenvalues at one sample ratio."""
    left, right = figure.subplots(1, 2)
    grid = np.geomspace(*GRID)
    for noise, colour, line, marker, label in (
        (NOISE, "blue", "-", "o", "noisy labels"),
        (0.0, "green", "--", "s", "labels without noise"),
    ):
        found = [one for one in sweep("alpha", grid, lam=LAM, kappa0=KAPPA0, noise=noise) if one.converged]
        ratios = [one.alpha for one in found]
        left.plot(ratios, [one.test_error for one in found], color=COLOURS[colour], lw=2, ls=line, label=label)
        errors = np.array(
            [[_train(ratio, noise, SIZE, seed, k)["test_error"] for k in range(DRAWS)] for ratio in RATIOS]
        )
        points(left, RATIOS, errors, colour, marker, f"trained, d = {SIZE}")
    left.axvline(recovery_threshold(KAPPA0), color=COLOURS["black"], lw=1, ls=":", label="recovery as λ → 0, no noise")
    left.set(xscale="log", yscale="log", xlabel=notation(chapter.alpha), ylabel="test error")
    left.legend(framealpha=1.0, edgecolor="none", fontsize=9)
    _spectrum(right, seed)
    return (
        f"Left: test error of a trained tied attention head (kappa0 = {KAPPA0}, lam = {LAM}, kappa = 1, two tokens); "
        f"lines are theory, points {DRAWS} trained layers each at d = {SIZE} with standard errors. Right: eigenvalues "
        f"of the learned matrix at alpha = {SPECTRUM_RATIO}, noise {NOISE}; histogram of {SPECTRUM_DRAWS} layers at "
        f"d = {SPECTRUM_SIZE}."
    )


def _spectrum(axes: Any, seed: int) -> None:
    solution = solve(SPECTRUM_RATIO, LAM, KAPPA0, noise=NOISE)
    law = solution.spectrum()
    top = law.support()[-1][1]
    values = [_train(SPECTRUM_RATIO, NOISE, SPECTRUM_SIZE, seed, k)["eigenvalues"] for k in range(SPECTRUM_DRAWS)]
    eigenvalues = np.concatenate(values)
    positive, width = eigenvalues[eigenvalues > 1e-6], top / 24
    weights = np.full(positive.size, 1 / (eigenvalues.size * width))
    axes.hist(
        positive, bins=np.arange(0, top + 4 * width, width), weights=weights, color=COLOURS["sky"], label="trained"
    )
    grid = np.linspace(1e-3, top, 600)
    axes.plot(grid, law.pdf(grid), color=COLOURS["blue"], lw=2, label="theory")
    zeros = 1 - positive.size / eigenvalues.size
    axes.set(xlabel="eigenvalue of the learned matrix", ylabel="density")
    axes.set_title(f"mass at 0: {law.atom:.3f} (trained: {zeros:.3f})", fontsize=10)
    axes.legend(frameon=False)


def _train(ratio: float, noise: float, size: int, seed: int, draw: int) -> Any:
    parameters = {
        "alpha": ratio,
        "lam": LAM,
        "kappa0": KAPPA0,
        "noise": noise,
        "kappa": 1.0,
        "beta": 1.0,
        "beta_target": 1.0,
    }
    source = generator(seed, f"figure state_evolution {ratio} {noise}", size, draw)
    options = {"tokens": 2, "task": "label", "penalty": "nuclear"}
    return load_sampler("attention_training")(size, source, parameters, options)


FIGURES = {"state_evolution": draw}
