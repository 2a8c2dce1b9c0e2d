"""The operations of free probability on laws, beside eigenvalues of sampled matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from derivations import free_probability as chapter
from derivations.free_probability import Atoms, FreePoisson, MarchenkoPastur, Wishart
from numerics.free_law import FreeLaw
from verify.figures import COLOURS, histogram, notation
from verify.randomness import generator
from verify.samplers import load_sampler

SIZE, DRAWS = 360, 4  # a size that 1/alpha copies and halves divide


def _panels() -> tuple[tuple[str, str, dict[str, float], Any], ...]:
    """Title, sampler, parameters and law of each panel."""
    signs, levels = Atoms((-1, 1)), Atoms((1, 3))
    return (
        ("sum: ±1 and Wishart, c = 0.5", "free sum", {"c": 0.5}, signs + MarchenkoPastur(0.5)),
        ("product: {1, 3} and Wishart, c = 0.5", "free product", {"c": 0.5}, Wishart(0.5, levels)),
        ("sum of three copies of ±1", "free sum power", {"alpha": 1 / 3}, signs.sum_power(3)),
        ("product of two copies of {1, 3}", "free product power", {"copies": 2.0}, levels.product_power(2)),
        ("inverse of Wishart, c = 0.25", "free inverse", {"c": 0.25}, MarchenkoPastur(0.25).inverse()),
        ("compound Poisson, jumps 1 and −2", "free poisson", {"rate": 1.0}, FreePoisson(1, Atoms((1, -2)))),
    )


def draw(figure: Any, seed: int) -> str:
    """Six operations."""
    figure.set_size_inches(10, 6.2)
    panels = figure.subplots(2, 3)
    for axes, (title, name, parameters, operation) in zip(panels.flat, _panels(), strict=True):
        law = FreeLaw(operation)
        values = _sampled(name, parameters, seed)
        bands = law.support()
        low, high = bands[0][0], bands[-1][1]
        step = (high - low) / 46
        edges = np.arange(low - 2 * step, high + 2.5 * step, step)  # an edge of a bin at each edge of the law
        histogram(axes, values, edges, values.size, f"sampled, d = {SIZE}")
        for index, (start, stop) in enumerate(bands):
            grid = start + (stop - start) * np.sin(np.pi * np.linspace(0, 1, 500)[1:-1] / 2) ** 2
            label = "law" if index == 0 else None
            axes.plot(grid, law.pdf(grid), color=COLOURS["blue"], lw=2, label=label)
        axes.set_title(title, fontsize=10)
        top = float(np.max(np.concatenate([patch.get_data().values for patch in axes.patches])))
        axes.set(xlabel=f"eigenvalue {notation(chapter.eigenvalue)}", ylim=(0, 1.45 * top))
    for axes in panels[:, 0]:
        axes.set_ylabel("density")
    panels[0, 0].legend(frameon=False, fontsize=9, loc="upper right")
    return (
        f"Laws of the calculus, each the root of a polynomial made from its operands' transforms, and "
        f"the eigenvalues of {DRAWS} sampled matrices (d = {SIZE}). A density that diverges at a hard edge is cut off."
    )


def _sampled(name: str, parameters: dict[str, float], seed: int) -> Any:
    sampler = load_sampler(name)
    drawn = [
        sampler(SIZE, generator(seed, f"figure {name}", SIZE, k), parameters, {})["eigenvalues"] for k in range(DRAWS)
    ]
    return np.concatenate([np.atleast_1d(values) for values in drawn])


FIGURES = {"free_probability": draw}
