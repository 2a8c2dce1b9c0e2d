"""One picture a claim: the mean residual at each size against N^(−rate), its fitted curve, and the rivals.

Exponents are drawn on logarithmic axes, exact claims as the largest difference at each size. PNG by Agg, without
pyplot: sixty pictures take seconds.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from derivations.core import Exact, Exponent
from verify.judge import Fit, Judgement, Rival, log_statistic, usable
from verify.run import PointResult, Result, expected_text

Array = NDArray[np.float64]

_RIVALS_SHOWN = 4
_RIVAL_COLOURS = ("tab:red", "tab:orange", "tab:purple", "tab:brown")


def write_plots(results: tuple[Result, ...], directory: Path) -> int:
    """A PNG for each claim that has points; returns how many. The file is called after the claim."""
    drawable = [result for result in results if result.points]
    if not drawable:
        return 0
    directory.mkdir(parents=True, exist_ok=True)
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.0), dpi=90)
    canvas: Any = FigureCanvasAgg(figure)
    for result in drawable:
        figure.clear()
        axes = figure.add_axes((0.14, 0.14, 0.82, 0.74))
        _draw(axes, result)
        canvas.print_png(directory / f"{result.entry.claim.id}.png")
    return len(drawable)


def plot_as_svg(result: Result) -> str:
    """The picture of a claim as an `svg` element for a page: text stays text, and ids begin with the claim's id.

    Black becomes the colour of the text around it, the background is transparent. Raises ValueError for a claim without
    points.
    """
    if not result.points:
        raise ValueError(f"claim {result.entry.claim.id} has no points to draw")
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    name = result.entry.claim.id
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        figure = Figure(figsize=(6.4, 3.6))
        canvas: Any = FigureCanvasSVG(figure)
        axes = figure.add_axes((0.14, 0.14, 0.84, 0.82))
        figure.patch.set_alpha(0.0)
        axes.patch.set_alpha(0.0)
        _draw_kind(axes, result)
        target = io.StringIO()
        canvas.print_svg(target, metadata={"Date": None})
    picture = target.getvalue()
    picture = picture[picture.index("<svg") :]
    picture = re.sub(r"<metadata>.*?</metadata>", "", picture, flags=re.S)
    picture = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", picture)
    label = f'role="img" aria-label="mean residuals of {name} at each size"'
    return picture.replace("#000000", "currentColor").replace("<svg", f"<svg {label}", 1)


def _draw(axes: Any, result: Result) -> None:
    claim = result.entry.claim
    part = result.shown or result.points[0]
    where = f" at {part.point.label}" if part.point.label else ""
    axes.set_title(
        f"{claim.id}{where}\n{result.judgement.verdict}, expected {expected_text(claim)}", fontsize=9, loc="left"
    )
    _draw_kind(axes, result)


def _draw_kind(axes: Any, result: Result) -> None:
    part, hypothesis = result.shown or result.points[0], result.entry.claim.hypothesis
    if isinstance(hypothesis, Exact):
        _draw_exact(axes, part)
    elif isinstance(hypothesis, Exponent):
        _draw_exponent(axes, part, hypothesis.statistic)
    else:
        _draw_limit(axes, part)
    axes.tick_params(labelsize=8)
    axes.legend(fontsize=7, frameon=False)


def _strongest(judgement: Judgement) -> list[Rival]:
    """The rivals that come nearest to surviving: the interesting ones, and those that fit on the picture."""
    return sorted(judgement.rivals, key=lambda rival: abs(rival.z or 0.0))[:_RIVALS_SHOWN]


def _draw_limit(axes: Any, part: PointResult) -> None:
    fit = part.judgement.fit
    rate = fit.rates[0] if fit else 1.0
    axes.axhline(0.0, color="0.6", linewidth=0.8)
    _draw_means(axes, part.samples, rate, fit, "tab:blue", "statement")
    for rival, colour in zip(_strongest(part.judgement), _RIVAL_COLOURS, strict=False):
        _draw_means(axes, part.rivals[rival.name], rate, rival.fit, colour, rival.name)
    if fit:
        axes.errorbar(
            [0.0],
            [fit.limit],
            yerr=[part.judgement.half_width],
            color="tab:blue",
            fmt="s",
            markersize=4,
            capsize=4,
            label="limit, family-wise error",
        )
    axes.set_xlabel(f"N^(−{rate:.3g})", fontsize=9)  # plain text: typesetting mathematics costs half of the time
    axes.set_ylabel("mean residual (left − right)", fontsize=9)


def _draw_means(axes: Any, samples: Mapping[int, Array], rate: float, fit: Fit | None, colour: str, name: str) -> None:
    sizes = np.array(sorted(samples), dtype=float)
    means = [float(np.mean(samples[int(size)])) for size in sizes]
    errors = [float(np.std(samples[int(size)]) / np.sqrt(len(samples[int(size)]))) for size in sizes]
    axes.errorbar(sizes**-rate, means, yerr=errors, fmt="o", markersize=3, color=colour, label=name, capsize=2)
    if fit is None:
        return
    scale = np.linspace(0.0, float(sizes.min() ** -rate), 80)
    following = scale ** (fit.rates[1] / fit.rates[0])
    # The fit of a rival of a profiled claim may use another exponent; its curve is drawn over N^(-rate) of the axis.
    leading = scale ** (fit.rates[0] / rate)
    if fit.rates[0] != rate:
        following = scale ** (fit.rates[1] / rate)
    base, first, second = fit.coefficients
    axes.plot(scale, base + first * leading + second * following, color=colour, linewidth=1.0)


def _draw_exponent(axes: Any, part: PointResult, statistic: str) -> None:
    kept = usable(part.samples)[0] or part.samples
    sizes = np.array(sorted(kept), dtype=float)
    logs = [log_statistic(np.asarray(kept[int(size)]), statistic) for size in sizes]
    values = np.exp([value for value, _ in logs])
    errors = values * np.sqrt([variance for _, variance in logs])
    axes.errorbar(sizes, values, yerr=errors, fmt="o", markersize=3, color="tab:blue", capsize=2, label=statistic)
    fit = part.judgement.fit
    if fit:
        grid = np.geomspace(sizes.min(), sizes.max(), 60)
        exponent, constant, correction = fit.coefficients
        curve = np.exp(constant - exponent * np.log(grid) + correction * grid ** -fit.rates[1])
        axes.plot(grid, curve, color="tab:blue", linewidth=1.0, label=f"fitted exponent {exponent:.3g}")
        predicted = curve[-1] * (grid / grid[-1]) ** -fit.rates[0]
        axes.plot(grid, predicted, "--", color="0.5", linewidth=1.0, label=f"predicted exponent {fit.rates[0]:.3g}")
    from matplotlib.ticker import FuncFormatter, NullFormatter, NullLocator

    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(sizes, [f"{size:g}" for size in sizes])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, place: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("N", fontsize=9)
    axes.set_ylabel(statistic, fontsize=9)


def _draw_exact(axes: Any, part: PointResult) -> None:
    sizes = sorted(part.samples)
    axes.plot(sizes, [np.max(np.abs(part.samples[size])) for size in sizes], "o", color="tab:blue", label="statement")
    for rival, colour in zip(_strongest(part.judgement), _RIVAL_COLOURS, strict=False):
        values = part.rivals[rival.name]
        axes.plot(sizes, [np.max(np.abs(values[size])) for size in sizes], "x", color=colour, label=rival.name)
    axes.set_xlabel("N", fontsize=9)
    axes.set_ylabel("largest |left − right|", fontsize=9)
