"""The spectrum that a layer learns: a bulk cut at the threshold, modes that stand apart, and the sample thresholds."""

from __future__ import annotations

from typing import Any

import numpy as np

from derivations import state_evolution as equations
from derivations.spectral_learning import mode
from numerics.spectral_learning import LearnedSpectrum, SpectrumTarget
from numerics.state_evolution import interpolation_threshold, recovery_threshold
from verify.figures import COLOURS, histogram, notation
from verify.randomness import generator

SIZE, DRAWS = 800, 6
MODES = (4.0, 3.0, 2.2, 0.7)  # eigenvalues of the target; the others are 0
VARIANCE, THRESHOLD, SCALE = 1.0, 0.8, 0.7
NOISES = (0.0, 0.5)


def draw(figure: Any, seed: int) -> str:
    """A target of four modes, of which three are seen, and the thresholds against the target's rank."""
    left, right = figure.subplots(1, 2)
    law, eigenvalues = _spectrum(left, seed)
    _thresholds(right)
    kept = float(np.mean(eigenvalues > 0))
    found = ", ".join(f"{one.location:.3f} (overlap {one.overlap:.3f})" for one in law.outliers)
    shown = ", ".join(f"{value:g}" for value in MODES)
    return (
        f"Left: learned eigenvalues, scale times (target + noise - threshold) cut at 0, for a target with the modes "
        f"{shown}, noise variance {VARIANCE:g}, threshold {THRESHOLD:g}, scale {SCALE:g}; {DRAWS} sampled matrices at "
        f"d = {SIZE}. The rank is {1 - law.atom:.3f} d (sampled: {kept:.3f}); outliers at {found}; the mode below the "
        "noise leaves none. Right: sample ratios at which learning changes its nature as the penalty vanishes, two "
        "tokens, against the width of a Gaussian target."
    )


def _spectrum(axes: Any, seed: int) -> tuple[LearnedSpectrum, Any]:
    spectrum = np.concatenate([MODES, np.zeros(SIZE - len(MODES))])
    law = LearnedSpectrum(SpectrumTarget(spectrum), VARIANCE, THRESHOLD, SCALE)
    values = _sampled(spectrum, seed)
    edge = max(right for _, right in law.support() if right < min(one.location for one in law.outliers))
    top = law.outliers[0].location * 1.15
    histogram(axes, values[values > 0], np.arange(0, top, edge / 18), values.size, "sampled")
    grid = edge * np.sin(np.pi * np.linspace(0, 1, 600)[1:-1] / 2)
    axes.plot(grid, law.pdf(grid), color=COLOURS["blue"], lw=2, label="density of the bulk")
    level = 3.0 / (values.size * edge / 18)
    locations = [one.location for one in law.outliers]
    axes.plot(locations, [level] * len(locations), "v", color=COLOURS["vermilion"], ms=8, label="outliers, by the law")
    for one in law.outliers:
        words = f"{notation(mode)} = {one.mode:g}"
        axes.annotate(words, (one.location, level), (0, 10), textcoords="offset points", ha="center", fontsize=9)
    axes.set(yscale="log", xlabel=f"learned eigenvalue {notation(equations.eigenvalue_hat)}", ylabel="density")
    axes.set_ylim(level / 6, 3)
    axes.legend(frameon=False, fontsize=9)
    return law, values


def _sampled(spectrum: Any, seed: int) -> Any:
    """Eigenvalues of the cut matrix: a diagonal target plus a symmetric Gaussian one of that spectral variance."""
    found = []
    for k in range(DRAWS):
        noise = generator(seed, "figure spectral_learning", SIZE, k).standard_normal((SIZE, SIZE))
        matrix = (noise + noise.T) * np.sqrt(VARIANCE / (2 * SIZE)) + np.diag(spectrum)
        found.append(SCALE * np.maximum(np.linalg.eigvalsh(matrix) - THRESHOLD, 0.0))
    return np.concatenate(found)


def _thresholds(axes: Any) -> None:
    widths = np.linspace(0.02, 0.98, 49)
    curves: dict[str, tuple[list[float], str, Any]] = {
        "recovery, factorised": ([recovery_threshold(w) for w in widths], "blue", "-"),
        "recovery, Frobenius penalty": ([recovery_threshold(w, penalty="frobenius") for w in widths], "orange", "--"),
        "recovery, Bayes-optimal": ([recovery_threshold(w, penalty="bayes") for w in widths], "green", "-."),
    }
    for noise, colour, line in zip(NOISES, ("vermilion", "purple"), (":", (0, (5, 1, 1, 1, 1, 1))), strict=True):
        label = f"interpolation, {notation(equations.noise)} = {noise:g}"
        curves[label] = ([interpolation_threshold(w, noise) for w in widths], colour, line)
    for label, (values, colour, line) in curves.items():
        axes.plot(widths, values, ls=line, color=COLOURS[colour], lw=2, label=label)
    axes.set(xlabel=notation(equations.kappa0), ylabel=f"threshold in {notation(equations.alpha)}", ylim=(0, 0.48))
    axes.legend(frameon=False, fontsize=9, ncols=2, loc="upper left")


FIGURES = {"spectral_learning": draw}
