"""The error against the number of sequences: factors at a small and at the best penalty, entries, Bayes-optimal."""

from __future__ import annotations

from typing import Any

import numpy as np

from derivations import state_evolution as chapter
from numerics.bayes_optimal import recovery_threshold, solve
from numerics.state_evolution import sweep
from verify.figures import COLOURS, notation, points
from verify.randomness import generator
from verify.samplers import load_sampler

Array = np.ndarray[Any, Any]

KAPPA0 = NOISE = 0.5
GRID, FINE = (0.06, 4.0, 10), (0.06, 4.0, 80)
SMALL, TRIED = 0.003, (0.003, 0.01, 0.025, 0.06)  # penalties
RATIOS = (0.125, 0.25, 0.5, 1.0, 2.0)
WIDTHS = ((0.1, "blue", "-", "o"), (0.25, "orange", "--", "s"), (0.5, "green", "-.", "^"))
SHARES = (0.6, 0.8, 1.3, 1.8)  # sample ratios over that of recovery
LEAST = 0.1  # sample ratio below which message passing without label noise is not stable at this size
SIZE, DRAWS = 48, 8


def draw(figure: Any, seed: int) -> str:
    """Learning curves with label noise by four methods, and recovery without noise."""
    left, right = figure.subplots(1, 2)
    _methods(left, seed)
    _recovery(right, seed)
    tried = ", ".join(f"{lam:g}" for lam in TRIED)
    return (
        f"Squared distance from the target against the number of sequences, two tokens. Left: kappa0 = {KAPPA0}, noise "
        f"{NOISE}: weight decay on factors at lam = {SMALL} and at the lam of least distance (of {tried}), entries "
        f"with a Frobenius penalty in the same way, and the Bayes-optimal estimate; points: message passing with the "
        f"best denoiser, {DRAWS} draws at d = {SIZE} with standard errors. Right: the Bayes-optimal estimate without "
        f"label noise for three widths of the target; dotted lines: where it is perfect; points where alpha > {LEAST}."
    )


def _methods(axes: Any, seed: int) -> None:
    ratios = np.geomspace(*GRID)
    weak = _errors("nuclear", ratios, (SMALL,))
    axes.plot(
        ratios, weak, color=COLOURS["vermilion"], lw=2, ls=":", label=f"factors, {notation(chapter.lam)} = {SMALL:g}"
    )
    best = f"best {notation(chapter.lam)}"
    axes.plot(
        ratios, _errors("frobenius", ratios, TRIED), color=COLOURS["orange"], lw=2, ls="--", label=f"entries, {best}"
    )
    axes.plot(ratios, _errors("nuclear", ratios, TRIED), color=COLOURS["blue"], lw=2, ls="-.", label=f"factors, {best}")
    fine = np.geomspace(*FINE)
    axes.plot(fine, solve(fine, KAPPA0, noise=NOISE).error, color=COLOURS["green"], lw=2, label="Bayes-optimal")
    found = [_message_passing(ratio, KAPPA0, NOISE, seed) for ratio in RATIOS]
    points(axes, RATIOS, found, "green", "o", f"message passing, d = {SIZE}")
    axes.set(xscale="log", yscale="log", xlabel=notation(chapter.alpha), ylabel="squared distance from the target")
    axes.legend(frameon=False, fontsize=9)


def _errors(penalty: str, ratios: Array, penalties: tuple[float, ...]) -> Array:
    """Least squared distance over the penalties; NaN where nothing was solved."""
    found = [sweep("alpha", ratios, lam=lam, kappa0=KAPPA0, noise=NOISE, penalty=penalty) for lam in penalties]
    errors = np.array([[one.excess if one.converged else np.inf for one in row] for row in found]).min(axis=0)
    return np.where(np.isfinite(errors), errors, np.nan)


def _recovery(axes: Any, seed: int) -> None:
    for width, colour, line, marker in WIDTHS:
        edge = recovery_threshold(width)
        ratios = np.concatenate([np.linspace(0.02, 1, 120) * edge, [1.5 * edge]])
        label = f"{notation(chapter.kappa0)} = {width:g}"
        axes.plot(ratios, solve(ratios, width).error, color=COLOURS[colour], lw=2, ls=line, label=label)
        axes.axvline(edge, color=COLOURS[colour], lw=1, ls=":")
        places = [share * edge for share in SHARES if share * edge > LEAST]
        if places:
            points(axes, places, [_message_passing(ratio, width, 0.0, seed) for ratio in places], colour, marker)
    axes.set(
        xlabel=notation(chapter.alpha), ylabel="squared distance, no label noise", xlim=(0, 0.35), ylim=(-0.05, 1.1)
    )
    axes.legend(frameon=False, fontsize=9)


def _message_passing(ratio: float, width: float, noise: float, seed: int) -> list[float]:
    options = {"tokens": 2, "iterations": 40, "undamped": 1, "path": 1}
    parameters = {"alpha": ratio, "kappa0": width, "noise": noise}
    name, method = f"figure bayes_optimal {ratio} {width} {noise}", load_sampler("attention_bayes_amp")
    return [float(method(SIZE, generator(seed, name, SIZE, k), parameters, options)["error"]) for k in range(DRAWS)]


FIGURES = {"bayes_optimal": draw}
