"""The main figure of each chapter: theory from the laws, points from the samplers, drawn by one command.

A module of this package has the chapter's name and a function `draw(figure, seed)` that fills a matplotlib figure and
returns the caption. Colours are the colour-blind safe set of Okabe and Ito; labels come from the declared notation.
"""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path
from typing import Any

COLOURS = {
    "black": "#000000",
    "orange": "#E69F00",
    "sky": "#56B4E9",
    "green": "#009E73",
    "blue": "#0072B2",
    "vermilion": "#D55E00",
    "purple": "#CC79A7",
}


def figure_names() -> tuple[str, ...]:
    """The chapters that have a figure."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(__path__)))


def draw_figure(chapter: str, folder: Path, seed: int = 0) -> list[Path]:
    """Draw a chapter's figure as SVG and PNG, and its caption as text, into `folder` (created if missing).

    Returns the three paths. Raises ValueError for a chapter without a figure.
    """
    if chapter not in figure_names():
        raise ValueError(f"no figure for {chapter!r}; there is one for: {', '.join(figure_names())}")
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    folder.mkdir(parents=True, exist_ok=True)
    settings: Any = {"font.size": 11, "axes.spines.top": False, "axes.spines.right": False, "svg.hashsalt": chapter}
    with matplotlib.rc_context(settings):
        figure = Figure(figsize=(10, 4.2), layout="constrained")
        FigureCanvasAgg(figure)
        caption = importlib.import_module(f"verify.figures.{chapter}").draw(figure, seed)
        paths = [folder / f"{chapter}.{kind}" for kind in ("svg", "png")]
        figure.savefig(paths[0], metadata={"Date": None})
        figure.savefig(paths[1], dpi=110)
    command = f"python -m verify figures {chapter}" + (f" --seed {seed}" if seed else "")
    text = folder / f"{chapter}.txt"
    text.write_text(f"{caption}\nMade by: {command}\n", encoding="utf-8")
    return [*paths, text]


def notation(quantity: Any) -> str:
    """A quantity's symbol as matplotlib mathtext, from its declaration."""
    import sympy as sp

    return f"${sp.latex(quantity)}$".replace(r"\|", r"\Vert ")
