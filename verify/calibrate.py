"""Does the judge keep its promises? Cheap claims whose truth is known, judged again and again with fresh seeds.

Counts family-wise false alarms and missed rivals, each with its Clopper–Pearson interval, and compares the tails of
z and of the fit's probability with their nominal levels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from derivations.core import Verdict
from verify.judge import REFUTED, Levels
from verify.run import Entry, Progress, Registry, Report, Run, UsageError
from verify.store import DrawStore

if TYPE_CHECKING:
    from verify.cluster import Cluster

PREFIX = "classical-"
_TAILS = (0.05, 0.01, 0.001)


@dataclass
class Calibration:
    """Counts over seeds; `scores` and `fits` hold z and the fit's probability of every test of every seed."""

    levels: Levels
    claims: tuple[str, ...]
    runs: int = 0
    alarmed_runs: int = 0
    missed_runs: int = 0
    alarms: int = 0
    misses: int = 0
    rivals: int = 0
    tests: int = 0
    unresolved: int = 0
    named: Counter[str] = field(default_factory=Counter)
    reasons: dict[str, str] = field(default_factory=dict)
    scores: list[float] = field(default_factory=list)
    fits: list[float] = field(default_factory=list)

    def count(self, report: Report) -> None:
        """Take in one seed. Raises UsageError if a claim could not be judged: a rate without it would be wrong."""
        broken = next((result for result in report.results if result.failed or not result.judged), None)
        if broken is not None:
            raise UsageError(f"{broken.entry.claim.id} cannot be calibrated: {broken.judgement.reason}")
        alarms, misses = 0, 0
        for result in report.results:
            parts = [part.judgement for part in result.points]
            false = [part.verdict == REFUTED or _misfits(part.fit, self.levels) for part in parts]
            alarms += sum(false)
            missed = [rival.name for rival in result.judgement.rivals if not rival.refuted]
            misses += len(missed)
            self.named.update(f"{result.entry.claim.id}: missed {name}" for name in missed)
            if not result.as_expected:
                self.named[f"{result.entry.claim.id}: {result.judgement.verdict}"] += 1
                self.reasons[f"{result.entry.claim.id}: {result.judgement.verdict}"] = result.judgement.reason
            self.tests += len(parts)
            self.rivals += len(result.judgement.rivals)
            self.unresolved += not result.as_expected
            self.scores += [part.z for part in parts if part.z is not None]
            self.fits += [part.fit.fit_probability for part in parts if part.fit is not None]
        self.runs += 1
        self.alarms, self.misses = self.alarms + alarms, self.misses + misses
        self.alarmed_runs += alarms > 0
        self.missed_runs += misses > 0


def _misfits(fit: object, levels: Levels) -> bool:
    return fit is not None and getattr(fit, "fit_probability", 1.0) < levels.fit


def claims_to_calibrate(registry: Registry, names: Sequence[str] = ()) -> tuple[Entry, ...]:
    """True claims about limits on the classical experiments (or on the named claims and chapters).

    Raises UsageError if there is none.
    """
    entries = [
        entry
        for entry in registry.select(names)
        if entry.claim.hypothesis.kind == "limit"
        and entry.claim.expected is Verdict.SUPPORTED
        and entry.claim.experiment.quick
        and (names or entry.claim.experiment.name.startswith(PREFIX))
    ]
    if not entries:
        raise UsageError(
            f"no claim to calibrate: name limits that are expected SUPPORTED at the quick tier "
            f"(by default those on experiments called {PREFIX}...)"
        )
    return tuple(entries)


def calibrate(
    registry: Registry,
    store: DrawStore,
    seeds: Sequence[int],
    names: Sequence[str],
    workers: int,
    progress: Progress,
    cluster: Cluster | None = None,
) -> Iterator[Calibration]:
    """Judge the claims at the quick tier for each seed; yields the running counts after each.

    Ends early when a run is stopped; its seed is not counted.
    """
    ids = [entry.claim.id for entry in claims_to_calibrate(registry, names)]
    result = Calibration(Levels.of_run(registry.tests, "quick"), tuple(ids))
    drawing: dict[str, Any] = {"workers": workers, "progress": progress, "cluster": cluster}
    for seed in seeds:
        run = Run(registry, store, names=ids, tier="quick", seed=seed, **drawing)
        report = next(run.looks())
        if report.stopped:
            return
        result.count(report)
        yield result


def interval(events: int, trials: int, confidence: float = 0.95) -> tuple[float, float]:
    """Clopper–Pearson interval of a rate. Raises ValueError unless 0 <= events <= trials and trials >= 1."""
    if not 0 <= events <= trials or trials < 1:
        raise ValueError(f"events must be between 0 and trials >= 1, got {events} of {trials}")
    side = (1 - confidence) / 2
    low = 0.0 if events == 0 else float(special.betaincinv(events, trials - events + 1, side))
    high = 1.0 if events == trials else float(special.betaincinv(events + 1, trials - events, 1 - side))
    return low, high


def lines(result: Calibration) -> Iterator[str]:
    """The calibration as text."""
    yield f"{result.runs} runs of {len(result.claims)} claims ({result.tests // max(1, result.runs)} tests a run)"
    yield f"|z| bound {result.levels.bound:.2f}, fit unacceptable below {result.levels.fit:.2g}"
    yield _rate("runs with a false alarm", result.alarmed_runs, result.runs)
    yield _rate("runs with a missed rival", result.missed_runs, result.runs)
    yield _rate("false alarms", result.alarms, result.tests)
    yield _rate("missed rivals", result.misses, result.rivals) if result.rivals else "no rivals"
    yield _rate("claims without their expected verdict", result.unresolved, result.runs * len(result.claims))
    yield from _named(result)
    scores, fits = np.array(result.scores), np.array(result.fits)
    spread = ", ".join(f"{value:+.2f}" for value in np.quantile(scores, (0.01, 0.25, 0.5, 0.75, 0.99)))
    yield f"z: mean {scores.mean():+.3f}, standard deviation {scores.std():.3f}; 1, 25, 50, 75, 99 %: {spread}"
    tails = 2 * special.ndtr(-np.abs(scores))
    for level in _TAILS:
        yield _rate(f"|z| beyond its {level:g} level", int(np.sum(tails < level)), len(scores))
    for level in _TAILS:
        yield _rate(f"fit probability below {level:g}", int(np.sum(fits < level)), len(fits))


def _named(result: Calibration) -> Iterator[str]:
    """What went wrong, by name."""
    for name, times in result.named.most_common():
        last = f" (the last: {result.reasons[name]})" if name in result.reasons else ""
        yield f"  {times} of {result.runs}: {name}{last}"


def _rate(name: str, events: int, trials: int) -> str:
    low, high = interval(events, trials)
    return f"{name}: {events} of {trials} = {events / trials:.2g} (95 % interval {low:.2g} to {high:.2g})"
