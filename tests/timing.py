"""Timing of a solver beside its baseline, for the benchmarks.

Both take turns and the best of several rounds counts for both, so that other load does not decide.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

Clock = Callable[[], float]


def seconds(task: Callable[[], Any], clock: Clock = time.perf_counter) -> float:
    """The time of one call. `time.process_time` is steadier, and fair to tasks that run on one core only."""
    start = clock()
    task()
    return clock() - start


def compare(
    benchmark: Any,
    solver: Callable[[], Any],
    baseline: Callable[[], Any],
    rounds: int,
    share: float = 1.0,
    repeats: int = 10,
    clock: Clock = time.perf_counter,
) -> float:
    """How many times faster the solver is; it runs `repeats` times a round. The baseline does `share` of its work."""
    solver()
    quick, slow = [], []
    for _ in range(rounds):
        quick += [seconds(solver, clock) for _ in range(repeats)]
        slow.append(seconds(baseline, clock) / share)
    ratio = min(slow) / min(quick)
    benchmark.extra_info.update(
        {"solver_seconds": min(quick), "baseline_seconds": min(slow), "baseline_over_solver": round(ratio, 2)}
    )
    benchmark.pedantic(solver, rounds=min(5, repeats), warmup_rounds=1 if repeats > 1 else 0)
    return ratio
