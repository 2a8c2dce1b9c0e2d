"""Timing of a solver beside its baseline, for the benchmarks.

Both take turns and the best of several rounds counts for both, in processor time, so that other load does not decide.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def seconds(task: Callable[[], Any]) -> float:
    """Processor time of one call."""
    start = time.process_time()
    task()
    return time.process_time() - start


def compare(
    benchmark: Any,
    solver: Callable[[], Any],
    baseline: Callable[[], Any],
    rounds: int,
    share: float = 1.0,
    repeats: int = 10,
) -> float:
    """How many times faster the solver is; it runs `repeats` times a round. The baseline does `share` of its work."""
    solver()
    quick, slow = [], []
    for _ in range(rounds):
        quick += [seconds(solver) for _ in range(repeats)]
        slow.append(seconds(baseline) / share)
    ratio = min(slow) / min(quick)
    benchmark.extra_info.update(
        {"solver_seconds": min(quick), "baseline_seconds": min(slow), "baseline_over_solver": round(ratio, 2)}
    )
    benchmark.pedantic(solver, rounds=min(5, repeats), warmup_rounds=1 if repeats > 1 else 0)
    return ratio
