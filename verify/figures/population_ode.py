"""The learned query: runs of the ascent beside the flow of many tokens, the exact flow and the corrected mean.

Left: alignment in time at L = 550, d = 50. Right: the drift where there are two basins, and where runs end.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from derivations.population_ode import rho, t
from numerics.population_ode import Objective
from verify.figures import COLOURS, notation
from verify.query_ascent import StepRule, TokenModel, aligned_queries, simulate

RUNS, STEP, COUNT = 30, 0.02, 250
STARTS = np.array([-0.9, -0.65, -0.5, -0.3, 0.0, 0.4])


def draw(figure: Any, seed: int) -> str:
    """Fill the figure; returns the caption."""
    left, right = figure.subplots(1, 2)
    ends = _paths(left, np.random.default_rng((seed, 1)))
    boundary = _basins(right, np.random.default_rng((seed, 2)))
    return (
        f"Left: {RUNS} runs of the ascent (constant step {STEP}, d = 50, 50 informative and 500 nuisance tokens, "
        f"theta = 1) from alignment 0, their mean, and three flows; at t = {COUNT * STEP / 2:g} the mean is "
        f"{ends['runs']:.3f}, the flow of many tokens {ends['limit']:.3f}, the exact flow {ends['exact']:.3f}, the "
        f"exact mean with steps {ends['stepped']:.3f}. Right: drift at theta = 3 with 5 % informative tokens (cut "
        f"off above); below {boundary:.4f} the flow leads to -1, above it to 1; arrows join start and end of runs."
    )


def _paths(axes: Any, generator: np.random.Generator) -> dict[str, float]:
    steps = np.full(COUNT, STEP)
    model = TokenModel(1.0, 50, 500, 50)
    run = simulate(model, aligned_queries(0.0, RUNS, 50, generator), steps, generator)
    exact, limit = Objective(1.0, 50, 500, 50), Objective(1.0, 50, 500)
    axes.plot(run.times, run.alignment.T, color="0.8", linewidth=0.6)
    curves = {
        "limit": (limit.trajectory(0.0, run.times), "orange", "--", "flow, many tokens"),
        "exact": (exact.trajectory(0.0, run.times), "sky", "-.", "flow, exact at this size"),
        "stepped": (exact.mean_path(0.0, steps)[0], "vermilion", "-", "exact, with step correction"),
        "runs": (run.alignment.mean(axis=0), "black", ":", f"mean of {RUNS} runs"),
    }
    for values, colour, line, label in curves.values():
        axes.plot(run.times, values, line, color=COLOURS[colour], label=label, linewidth=2)
    axes.set(xlabel=notation(t), ylabel=notation(rho), ylim=(-0.35, 1.02))
    axes.legend(loc="lower right", frameon=False)
    return {name: float(values[COUNT // 2]) for name, (values, *_) in curves.items()}


def _basins(axes: Any, generator: np.random.Generator) -> float:
    limit, model = Objective(3.0, 5, 95), TokenModel(3.0, 200, 3800, 3)
    grid = np.linspace(-1, 1, 401)
    axes.axhline(0, color="0.7", linewidth=0.8)
    axes.plot(grid, (1 - grid**2) * limit.slope(grid), color=COLOURS["blue"], linewidth=2, label="drift, many tokens")
    boundary = limit.basin_boundary()
    assert boundary is not None  # 5 % is far below the critical fraction at this strength
    axes.axvline(boundary, color=COLOURS["vermilion"], linestyle="--", label="basin boundary")
    steps = StepRule(0.4, 30.0, 0.5)(1500)
    run = simulate(
        model, np.concatenate([aligned_queries(value, 1, 3, generator) for value in STARTS]), steps, generator
    )
    for index, (start, end) in enumerate(zip(STARTS, run.alignment[:, -1], strict=True)):
        height = -0.11 - 0.05 * index
        axes.annotate("", (end, height), (start, height), arrowprops={"arrowstyle": "->", "color": COLOURS["green"]})
        axes.plot(start, height, "o", color=COLOURS["green"], markersize=4)
    axes.set(xlabel=notation(rho), ylabel=rf"$\mathrm{{d}}{notation(rho)[1:-1]}/\mathrm{{d}}t$", ylim=(-0.45, 0.45))
    axes.set_xticks([-1, -0.5, 0, 0.5, 1])
    axes.legend(loc="upper left", bbox_to_anchor=(0.53, 1.0), fontsize=9, frameon=False)
    return boundary


FIGURES = {"population_ode": draw}
