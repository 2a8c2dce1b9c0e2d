"""What a run tells: the progress while it draws, the table at its end, verdicts.json, and the story of one claim.

On a terminal `rich` draws a bar and a coloured table; elsewhere the same words come as plain lines.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from derivations.core import Claim, Exact, Exponent, Order
from derivations.core.render import text
from verify.judge import REFUTED, SUPPORTED, Judgement, Levels
from verify.run import Registry, Report, Result, expected_text

SECONDS_BETWEEN_LINES = 5.0
SAFE_POWER = 0.999
OPTION_ENTRIES = 8  # of a long option that are shown
_COLOURS = {SUPPORTED: "green", REFUTED: "yellow"}


# -- numbers --------------------------------------------------------------------------------------------------


def number(value: float | None, form: str = ".3g") -> str:
    """A number as text, in a format of Python's; empty for None and what is not finite."""
    return "" if value is None or not math.isfinite(value) else format(value, form)


def duration(seconds: float) -> str:
    """A time in seconds, minutes or hours."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest:02d} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def _jsonable(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)


# -- progress -------------------------------------------------------------------------------------------------


class LineProgress:
    """Plain lines, one every few seconds."""

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._total, self._made, self._last = stream, 0, 0, 0.0

    def start(self, draws: int) -> None:
        """Tell how many draws are missing."""
        self._total, self._made, self._last = draws, 0, time.monotonic()
        self._say(f"drawing {draws} replicates")

    def advance(self, draws: int, seconds_left: float) -> None:
        """Count draws; say so when the last line is old enough."""
        self._made += draws
        if time.monotonic() - self._last >= SECONDS_BETWEEN_LINES:
            self._last = time.monotonic()
            self._say(f"drawn {self._made} of {self._total}, about {duration(seconds_left)} left")

    def finish(self) -> None:
        """Tell how many draws were made."""
        self._say(f"drawn {self._made} of {self._total}")

    def _say(self, words: str) -> None:
        print(words, file=self._stream, flush=True)


class BarProgress:
    """A bar with the remaining time, by the cost of the draws that are left rather than by their number."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        self._bar = Progress(
            TextColumn("{task.fields[made]} of {task.fields[draws]} draws"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f} %"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            console=Console(file=stream),
            transient=True,
        )
        self._started = 0.0

    def start(self, draws: int) -> None:
        """Show the bar."""
        self._started, self._made = time.monotonic(), 0
        self._task = self._bar.add_task("", total=None, made=0, draws=draws, left="")
        self._bar.start()

    def advance(self, draws: int, seconds_left: float) -> None:
        """Move the bar; its length is the elapsed time plus the time that is left."""
        self._made += draws
        elapsed = time.monotonic() - self._started
        self._bar.update(
            self._task,
            completed=elapsed,
            total=elapsed + seconds_left,
            made=self._made,
            left=f"{duration(seconds_left)} left",
        )

    def finish(self) -> None:
        """Take the bar away."""
        self._bar.stop()
        self._bar.remove_task(self._task)


def progress_for(stream: TextIO) -> LineProgress | BarProgress:
    """A bar on a terminal, lines elsewhere."""
    return BarProgress(stream) if stream.isatty() else LineProgress(stream)


# -- verdicts.json --------------------------------------------------------------------------------------------


def verdicts(report: Report) -> dict[str, Any]:
    """The report as plain data: `{"claims": [...]}`, every number finite or None."""
    return {"claims": [_as_data(result) for result in report.results]}


def _as_data(result: Result) -> dict[str, Any]:
    claim, judgement = result.entry.claim, result.judgement
    return {
        "id": claim.id,
        "chapter": result.entry.chapter,
        "law": claim.law.id,
        "status": str(claim.law.status),
        "kind": claim.hypothesis.kind,
        "expected": expected_text(claim),
        "verdict": judgement.verdict,
        **_numbers(judgement),
        "sizes": list(judgement.sizes),
        "replicates": list(judgement.replicates),
        "rates": list(rates_of(claim)),
        "fitted_rate": _fitted_rate(claim, judgement),
        "seed": result.seed,
        "seconds": round(result.seconds, 3),
        "judged": result.judged,
        "reason": judgement.reason,
        "remedy": judgement.remedy,
        "points": [
            {"point": part.point.label, "outcome": part.judgement.outcome, **_numbers(part.judgement)}
            for part in result.points
            if part.point.label
        ],
    }


def _numbers(judgement: Judgement) -> dict[str, Any]:
    rivals = [
        {"name": rival.name, "z": _jsonable(rival.z), "refuted": rival.refuted, "power": _jsonable(rival.power)}
        for rival in judgement.rivals
    ]
    return {
        "limit": _jsonable(judgement.limit),
        "se": _jsonable(judgement.se),
        "z": _jsonable(judgement.z),
        "half_width": _jsonable(judgement.half_width),
        "resolution": _jsonable(judgement.resolution),
        "fit_probability": _jsonable(judgement.fit.fit_probability) if judgement.fit else None,
        "rivals": rivals,
    }


def rates_of(claim: Claim) -> tuple[float, ...]:
    """The exponents of N that the claim declares: (rate, next), (next,) for an exponent, none for an exact claim."""
    hypothesis = claim.hypothesis
    if isinstance(hypothesis, Exact):
        return ()
    if isinstance(hypothesis, Exponent):
        return (float(hypothesis.next),)
    return (float(hypothesis.rate), float(hypothesis.next))


def _fitted_rate(claim: Claim, judgement: Judgement) -> float | None:
    """Where the claim declares an interval of exponents: the one of it that fits the residuals best."""
    if getattr(claim.hypothesis, "rates", None) is None or judgement.fit is None:
        return None
    return judgement.fit.rates[0]


def write_json(report: Report, path: Path) -> None:
    """Write verdicts.json, whole or not at all."""
    draft = path.with_name(path.name + ".part")
    content = json.dumps(verdicts(report), indent=1, allow_nan=False, ensure_ascii=False)
    draft.write_text(content + "\n", encoding="utf-8")
    draft.replace(path)


# -- the table at the end -------------------------------------------------------------------------------------

HEADINGS = ("claim", "verdict", "limit", "error", "resolution", "z", "rivals refuted")


def row_of(result: Result) -> tuple[str, ...]:
    """The cells of a claim under `HEADINGS`."""
    judgement = result.judgement
    if not result.judged:
        return (result.entry.claim.id, judgement.reason, "", "", "", "", "")
    verdict = judgement.verdict
    if not result.as_expected:
        verdict = "FAILED" if result.failed else f"{verdict}, expected {expected_text(result.entry.claim)}"
    refuted = sum(rival.refuted for rival in judgement.rivals)
    return (
        result.entry.claim.id,
        verdict,
        number(judgement.limit, "+.3g"),
        number(judgement.half_width, ".2g"),
        number(judgement.resolution, ".2g"),
        number(judgement.z, "+.1f"),
        f"{refuted} of {len(judgement.rivals)}" if judgement.rivals else "",
    )


def print_table(report: Report, stream: TextIO) -> None:
    """The verdicts by chapter, then the reason of each that is not as expected, then the totals."""
    if stream.isatty():
        _rich_table(report, stream)
    else:
        for line in _plain_table(report):
            print(line, file=stream)
    for line in _afterwards(report):
        print(line, file=stream)


def _plain_table(report: Report) -> Iterator[str]:
    rows = [row_of(result) for result in report.results]
    widths = [max(len(row[k]) for row in (HEADINGS, *rows)) for k in range(len(HEADINGS))]
    chapter = None
    yield _aligned(HEADINGS, widths)
    for result, row in zip(report.results, rows, strict=True):
        if result.entry.chapter != chapter:
            chapter = result.entry.chapter
            yield f"-- {chapter} " + "-" * max(0, sum(widths) + 2 * (len(widths) - 1) - len(chapter) - 4)
        yield _aligned(row, widths)


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    left = [cell.ljust(width) for cell, width in zip(row[:2], widths, strict=False)]
    right = [cell.rjust(width) for cell, width in zip(row[2:], widths[2:], strict=True)]
    return "  ".join([*left, *right]).rstrip()


def _rich_table(report: Report, stream: TextIO) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, header_style="bold", padding=(0, 1))
    for index, heading in enumerate(HEADINGS):
        table.add_column(heading, justify="left" if index < 2 else "right", overflow="fold")
    chapter = None
    for result in report.results:
        if result.entry.chapter != chapter:
            chapter = result.entry.chapter
            table.add_row(f"[bold]{escape(chapter)}[/bold]")
        cells = [escape(cell) for cell in row_of(result)]
        colour = "red" if not result.as_expected else _COLOURS.get(result.judgement.verdict, "dim")
        cells[1] = f"[{colour}]{cells[1]}[/{colour}]"
        table.add_row(*cells)
    Console(file=stream).print(table)


def _afterwards(report: Report) -> Iterator[str]:
    for result in report.results:
        if not result.as_expected:
            remedy = f" ({result.judgement.remedy})" if result.judgement.remedy else ""
            yield f"{result.entry.claim.id}: {result.judgement.reason}{remedy}"
    yield from _weak_rivals(report)
    yield _totals(report)


def _weak_rivals(report: Report) -> Iterator[str]:
    """Rivals that were refuted by a margin that another seed may not give."""
    weak = [
        f"{result.entry.claim.id}: {rival.name} ({100 * rival.power:.1f} %)"
        for result in report.results
        if result.judgement.verdict == SUPPORTED
        for rival in result.judgement.rivals
        if rival.refuted and rival.power < SAFE_POWER
    ]
    if weak:
        yield f"refuted with a chance below {100 * SAFE_POWER:g} % in a repetition: {'; '.join(weak)}"


def _totals(report: Report) -> str:
    judged = [result for result in report.results if result.judged]
    expected = sum(result.as_expected for result in judged)
    look = f", look {report.look}" if report.tier == "full" else ""
    where = f"tier {report.tier}{look}, seed {report.seed}"
    words = f"{expected} of {len(judged)} claims have their expected verdict ({where})"
    later = len(report.results) - len(judged)
    if later:
        words += f"; {later} need a higher tier"
    if report.stopped:
        words += "; stopped, run again to continue"
    return words


# -- lists and explanations -----------------------------------------------------------------------------------


def listing(registry: Registry, names: Sequence[str] = ()) -> Iterator[str]:
    """The chapters with their claims: id, kind, lowest tier, expected verdict, and the law's title."""
    entries = registry.select(names)
    width = max((len(entry.claim.id) for entry in entries), default=0)
    for chapter in registry.chapters:
        own = [entry.claim for entry in entries if entry.chapter == chapter]
        if own or not names:
            yield f"{chapter} ({len(own)} claim{'' if len(own) == 1 else 's'})"
        for claim in own:
            yield (
                f"  {claim.id.ljust(width)}  {claim.hypothesis.kind.ljust(8)}  {claim.tier.ljust(8)}  "
                f"{expected_text(claim).ljust(10)}  {claim.law.title}"
            )


def explanation(result: Result, tier: str, levels: Levels) -> Iterator[str]:
    """The story of one claim: its sentence printed from the law, the experiment, the numbers, the verdict and why."""
    claim, judgement = result.entry.claim, result.judgement
    yield f"{claim.id} (chapter {result.entry.chapter})"
    yield f"law {claim.law.id}: {claim.law.title} [{claim.law.status}]"
    yield f"  {text(claim.law.statement)}"
    for given in claim.given:
        yield f"  given {text(getattr(given, 'statement', given))}"
    for symbol, source in claim.reads.items():
        yield f"  {symbol.name} ({symbol.meaning}) is measured by {text(source)}"
    if claim.note:
        yield f"  {claim.note}"
    yield ""
    yield from _experiment_lines(claim)
    yield hypothesis_text(claim)
    yield ""
    yield from _number_lines(result, levels)
    yield ""
    yield f"verdict: {judgement.verdict} (expected {expected_text(claim)}) at tier {tier}, seed {result.seed}"
    yield f"why: {judgement.reason}"
    if judgement.remedy:
        yield f"to resolve it: {judgement.remedy}"


def _experiment_lines(claim: Claim) -> Iterator[str]:
    experiment = claim.experiment
    values = ", ".join(f"{quantity.name} = {value}" for quantity, value in experiment.parameters.items())
    yield f"experiment {experiment.name}: {experiment.model.description}"
    yield f"  {values}" if values else "  no parameters"
    for name, value in experiment.options.items():
        yield f"  {name} = {option_text(value)}"


def option_text(value: Any) -> str:
    """An option of a sampler in words: mappings and sequences by their entries, long ones cut short."""
    if isinstance(value, Mapping):
        entries = [f"{key}: {option_text(entry)}" for key, entry in value.items()]
    elif isinstance(value, list | tuple):
        entries = [option_text(entry) for entry in value]
    else:
        return str(value)
    shown = entries if len(entries) <= OPTION_ENTRIES else [*entries[: OPTION_ENTRIES - 1], "…", entries[-1]]
    return f"({', '.join(shown)})"


def hypothesis_text(claim: Claim) -> str:
    """What the draws must show, in words."""
    hypothesis = claim.hypothesis
    if isinstance(hypothesis, Exact):
        return f"hypothesis: both sides agree in every draw, up to {hypothesis.tolerance:g}"
    if isinstance(hypothesis, Exponent):
        return (
            f"hypothesis: the {hypothesis.statistic} of the left side falls as N^(-right side), with a correction "
            f"1 + c N^(-{hypothesis.next}); the exponent must be known to {hypothesis.resolution:g}"
        )
    unit = " of the right side" if hypothesis.relative else ""
    goal = "has a positive limit" if isinstance(hypothesis, Order) else "tends to 0"
    rates = hypothesis.rates
    rate = f"rate in [{rates[0]}, {rates[1]}]" if rates else f"rate = {hypothesis.rate}"
    return (
        f"hypothesis: left - right {goal}: L + b N^(-rate) + c N^(-{hypothesis.next}), {rate}; "
        f"L must be known to {hypothesis.resolution:g}{unit}"
    )


def _number_lines(result: Result, levels: Levels) -> Iterator[str]:
    judgement = result.judgement
    if judgement.sizes:
        plan = ", ".join(f"{n} at {size}" for size, n in zip(judgement.sizes, judgement.replicates, strict=True))
        yield f"replicates: {plan} ({duration(result.seconds)} of one core)"
    bound = f"refuted beyond |z| = {levels.bound:.2f}"
    for part in result.points:
        where = f"{part.point.label}: " if part.point.label else ""
        yield f"  {where}{_numbers_text(part.judgement)}"
    fitted = _fitted_rate(result.entry.claim, judgement)
    if fitted is not None:
        yield f"  exponent that fits best: {fitted:.2g} (the error covers all of the interval that fit acceptably)"
    if result.points and judgement.fit is not None:
        yield f"  {bound}; a fit is unacceptable below probability {levels.fit:.1g}"
    for rival in judgement.rivals:
        again = f"refuted again in {100 * rival.power:.1f} % of repetitions"
        score = "" if rival.z is None else f" (z = {rival.z:+.1f}, {again})"
        yield f"  rival {rival.name!r}: {'refuted' if rival.refuted else 'NOT refuted'}{score}"


def _numbers_text(judgement: Judgement) -> str:
    if judgement.fit is None:
        worst = "" if judgement.limit is None else f"largest difference {judgement.limit:.3g}; "
        return f"{worst}{judgement.outcome}"
    return (
        f"L = {judgement.limit:+.4g} ± {judgement.half_width:.2g} (standard error {judgement.se:.2g}), "
        f"z = {judgement.z:+.2f}, probability of the fit {judgement.fit.fit_probability:.2g}: {judgement.outcome}"
    )
