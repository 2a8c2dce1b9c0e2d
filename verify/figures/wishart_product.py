"""The bulk of a pooled covariance: its exact density beside sampled eigenvalues, soft and hard edges, and an atom."""

from __future__ import annotations

from typing import Any

import numpy as np

from derivations import wishart_product as chapter
from numerics.wishart_product import WishartProduct
from verify.figures import COLOURS, histogram, notation
from verify.randomness import generator
from verify.samplers import load_sampler

SIZE, DRAWS = 512, 4
RATIOS = ((0.5, 0.25), (1.0, 1.0), (2.0, 0.5))
SHOWN = (4.4, 3.0, 9.0)  # right ends of the panels
CEILING = (None, 1.6, None)  # a density that diverges is cut there


def draw(figure: Any, seed: int) -> str:
    """One panel a pair of ratios."""
    panels = figure.subplots(1, len(RATIOS))
    for axes, (delta, gamma), right, ceiling in zip(panels, RATIOS, SHOWN, CEILING, strict=True):
        law = WishartProduct(delta, gamma)
        low, high = law.support()
        values = _sampled(delta, gamma, seed)
        edges = np.linspace(low, right, 45) if law.atom == 0 else np.linspace(low * 0.5, right, 45)
        histogram(axes, values[values > 0], edges, values.size, f"sampled, d = {SIZE}")
        spread = np.linspace(0, 1, 800)[1:-1]
        grid = low + (high - low) * np.sin(np.pi * spread / 2) ** 2 if low > 0 else high * spread**3
        axes.plot(grid[grid < right], law.pdf(grid[grid < right]), color=COLOURS["blue"], lw=2, label="exact density")
        if law.atom:
            _atom(axes, law.atom, float(np.mean(values == 0)))
        for edge in (low, high):
            if 0 < edge < right:
                axes.axvline(edge, color=COLOURS["black"], ls=":", lw=1)
        axes.set(xlabel=f"eigenvalue {notation(chapter.eigenvalue)}", xlim=(-0.03 * right, right), ylim=(0, ceiling))
        axes.set_title(f"{notation(chapter.delta)} = {delta:g}, {notation(chapter.gamma)} = {gamma:g}", fontsize=11)
    panels[1].legend(frameon=False, fontsize=9, loc="upper right")
    panels[0].set_ylabel(f"density {notation(chapter.density)}")
    beyond = WishartProduct(*RATIOS[1]).support()[1]
    return (
        f"Density of the bulk for three pairs of ratios and the eigenvalues of {DRAWS} sampled matrices each "
        f"(d = {SIZE}); dotted: the edges. Left: soft edges. Middle: a hard edge, where the density diverges at 0 (cut "
        f"off above and to the right; the upper edge is {beyond:.3f}). Right: more dimensions than tokens, so that a "
        "part of the mass is an atom at 0 (arrow; its height is no density)."
    )


def _atom(axes: Any, mass: float, measured: float) -> None:
    """The atom at 0 as an arrow."""
    height = axes.get_ylim()[1] * 0.9
    arrow = {"arrowstyle": "-|>", "color": COLOURS["vermilion"], "lw": 2}
    axes.annotate("", (0, height), (0, 0), arrowprops=arrow)
    words = f"{notation(chapter.zero_mass)} = {mass:g}\n(sampled: {measured:g})"
    axes.annotate(words, (0, height), (14, -10), textcoords="offset points", color=COLOURS["vermilion"], fontsize=9)


def _sampled(delta: float, gamma: float, seed: int) -> Any:
    sampler, parameters = load_sampler("product"), {"delta": delta, "gamma": gamma}
    key = f"figure wishart_product {delta} {gamma}"
    drawn = [sampler(SIZE, generator(seed, key, SIZE, k), parameters, {})["eigenvalues"] for k in range(DRAWS)]
    return np.concatenate([np.atleast_1d(values) for values in drawn])


FIGURES = {"wishart_product": draw}
