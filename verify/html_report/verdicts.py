"""What is known of each claim: judged again from the stored draws, at the highest tier that is complete for it.

Nothing is drawn here; a claim without its draws stays unjudged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from verify.judge import Levels
from verify.run import Registry, Result, Run, expected_text
from verify.store import DrawStore


@dataclass(frozen=True)
class Judged:
    """A claim's result, the tier and look that it was judged at, and the error levels that held there."""

    result: Result
    tier: str
    look: int
    levels: Levels


@dataclass(frozen=True)
class Standing:
    """A verdict in one word for a page: `words`, the style `kind`, and what the first page counts."""

    words: str
    kind: str
    verdict: str
    as_expected: bool
    tier: str

    @classmethod
    def of(cls, judged: Judged) -> Standing:
        """What to show of a judged claim; the expected verdict is named where it was not reached."""
        result = judged.result
        words, kind = result.judgement.verdict, result.judgement.verdict.lower()
        if result.failed:
            words, kind = "FAILED", "unexpected"
        elif not result.as_expected:
            words, kind = f"{words}, expected {expected_text(result.entry.claim)}", "unexpected"
        return cls(words, kind, result.judgement.verdict, result.as_expected, judged.tier)


def stored_verdicts(
    registry: Registry, store: DrawStore, names: Sequence[str], seed: int, tier: str | None = None
) -> dict[str, Judged]:
    """The judged claims of the named chapters (all for no name) by id, from stored draws alone.

    `tier`: "quick", "standard" or "full" (at its last complete look); None takes standard where its draws are
    complete and quick elsewhere. Raises UsageError for an unknown name.
    """
    waiting = {entry.claim.id for entry in registry.select(names)}
    found: dict[str, Judged] = {}
    for level in (tier,) if tier else ("standard", "quick"):
        if not waiting:
            break
        run = Run(registry, store, names=sorted(waiting), tier=level, seed=seed)
        look = run.last_look() if level == "full" else 0
        if look < 0:
            continue
        drawn = {name for name, experiment in run.experiments.items() if run.is_drawn(experiment, look)}
        ready = [entry.claim.id for entry in run.reached if entry.claim.experiment.name in drawn]
        if not ready:
            continue
        levels = Levels.of_run(registry.tests, level, look)
        for result in Run(registry, store, names=ready, tier=level, seed=seed).report(look).results:
            found[result.entry.claim.id] = Judged(result, level, look, levels)
        waiting -= found.keys()
    return found
