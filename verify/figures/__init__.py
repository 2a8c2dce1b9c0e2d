"""The figures of each chapter: theory from the laws, points from the samplers, drawn by one command.

A module of this package has a chapter's name and FIGURES, a table from a figure's name (the chapter's, or one that
begins with it and a hyphen) to a function `draw(figure, seed)` that fills a matplotlib figure and returns the caption.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Draw = Callable[[Any, int], str]

LONGEST = ("state_evolution", "scaling_laws-entries")  # begun first, so that none of them runs alone at the end

# The colour-blind safe set of Okabe and Ito; curves differ in line style or marker as well.
COLOURS = {
    "black": "#000000",
    "orange": "#E69F00",
    "sky": "#56B4E9",
    "green": "#009E73",
    "blue": "#0072B2",
    "vermilion": "#D55E00",
    "purple": "#CC79A7",
}


def figure_names(chapter: str | None = None) -> tuple[str, ...]:
    """The names of all figures, or of one chapter's; a name without hyphen is the chapter's main figure."""
    return tuple(name for one in chapters_with_figures() if chapter in (None, one) for name in _table(one))


def chapters_with_figures() -> tuple[str, ...]:
    """The chapters that have figures, without importing their modules."""
    return tuple(sorted(found.name for found in pkgutil.iter_modules(__path__)))


def _table(chapter: str) -> Mapping[str, Draw]:
    found: Mapping[str, Draw] = importlib.import_module(f"verify.figures.{chapter}").FIGURES
    return found


def draw_figure(name: str, folder: Path, seed: int = 0) -> list[Path]:
    """Draw a figure as SVG and PNG, and its caption as text, into `folder` (created if missing).

    Returns the three paths. Raises ValueError for a name that is no figure's.
    """
    chapter = name.partition("-")[0]
    draw = _table(chapter).get(name) if chapter in chapters_with_figures() else None
    if draw is None:
        raise ValueError(f"no figure {name!r}; the figures are {', '.join(figure_names())}")
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    folder.mkdir(parents=True, exist_ok=True)
    settings: Any = {"font.size": 11, "axes.spines.top": False, "axes.spines.right": False, "svg.hashsalt": name}
    with matplotlib.rc_context(settings):
        figure = Figure(figsize=(10, 4.2), layout="constrained")
        FigureCanvasAgg(figure)
        caption = draw(figure, seed)
        paths = [folder / f"{name}.{kind}" for kind in ("svg", "png")]
        figure.savefig(paths[0], metadata={"Date": None})
        figure.savefig(paths[1], dpi=110)
    paths[0].write_text(_numbered_clips(paths[0].read_text(encoding="utf-8")), encoding="utf-8")
    command = f"python -m verify figures {name}" + (f" --seed {seed}" if seed else "")
    text = folder / f"{name}.txt"
    text.write_text(f"{caption}\nMade by: {command}\n", encoding="utf-8")
    return [*paths, text]


def _numbered_clips(picture: str) -> str:
    """The clip paths' names as numbers: they are hashes of positions, whose last digit the layout leaves to chance."""
    names = dict.fromkeys(re.findall(r'<clipPath id="(p[0-9a-f]+)"', picture))
    for number, name in enumerate(names):
        picture = picture.replace(name, f"clip{number}")
    return picture


def draw_figures(names: Iterable[str], folder: Path, seed: int, workers: int) -> list[Path]:
    """Draw several figures in `workers` processes; returns the paths in the order of the names."""
    from joblib import Parallel, delayed, parallel_config

    wanted = list(names)
    queue = sorted(wanted, key=lambda name: name not in LONGEST)
    with parallel_config(backend="loky", inner_max_num_threads=1):
        made = Parallel(n_jobs=min(workers, len(wanted)))(delayed(draw_figure)(name, folder, seed) for name in queue)
    paths = dict(zip(queue, made, strict=True))
    return [path for name in wanted for path in paths[name]]


# -- what figures share -----------------------------------------------------------------------------------------------


def notation(quantity: Any) -> str:
    """A quantity's symbol as matplotlib mathtext, from its declaration."""
    import sympy as sp

    return f"${sp.latex(quantity)}$".replace(r"\|", r"\Vert ")


def histogram(axes: Any, values: Any, edges: Any, total: int, label: str = "") -> None:
    """Eigenvalues as a density of which all `total` of them, those outside the edges too, make mass 1."""
    values, edges = np.asarray(values, dtype=float), np.asarray(edges, dtype=float)
    counts, _ = np.histogram(values, bins=edges)
    heights = counts / (total * np.diff(edges))
    axes.stairs(heights, edges, fill=True, color=COLOURS["sky"], alpha=0.7, label=label or None)


def points(axes: Any, places: Any, samples: Any, colour: str, marker: str, label: str = "") -> None:
    """Means of the rows of `samples` with their standard errors."""
    samples = np.asarray(samples, dtype=float)
    bars = samples.std(axis=1, ddof=1) / np.sqrt(samples.shape[1])
    style = {"color": COLOURS[colour], "fmt": marker, "ms": 5, "capsize": 3, "ls": "none", "label": label or None}
    axes.errorbar(places, samples.mean(axis=1), bars, **style)
