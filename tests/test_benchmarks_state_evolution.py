"""Benchmarks of the mean-field solver, each beside a baseline that is measured in the same run.

The baseline of a solution is one iteration of the plain procedure: 1,000 sequences, one general minimiser for each
proximal point. Solver and baseline take turns; the best of several rounds counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.optimize

from derivations import state_evolution as chapter
from numerics.compile import function
from numerics.state_evolution import recovery_threshold, solve, sweep


def seconds(task: Callable[[], Any]) -> float:
    start = time.process_time()
    task()
    return time.process_time() - start


def compare(benchmark: Any, solver: Callable[[], Any], baseline: Callable[[], Any], rounds: int) -> float:
    """Baseline over solver, both at their best, in processor time (other load on the machine does not count)."""
    solver()
    quick, slow = [], []
    for _ in range(rounds):
        quick.append(seconds(solver))
        slow.append(seconds(baseline))
    ratio = min(slow) / min(quick)
    info = {"solver_seconds": min(quick), "baseline_seconds": min(slow), "baseline_over_solver": round(ratio, 2)}
    benchmark.extra_info.update(info)
    benchmark.pedantic(solver, rounds=1, warmup_rounds=0)
    return ratio


def plain_iteration(samples: int = 1000) -> float:
    """Means over random sequences, with one call of a general minimiser for each proximal point."""
    generator = np.random.default_rng(0)
    loss = function(chapter.two_token_loss.right, (*chapter.learned_differences, *chapter.labels, chapter.beta))
    m, q, response, square = 1.38, 1.46, 2.3, 1.75
    covariance = np.array([[3.0, 1.0], [1.0, 3.0]])
    root, inverse = np.linalg.cholesky(covariance), np.linalg.inv(covariance)
    power = 0.0
    for _ in range(samples):
        target, residual = root @ generator.standard_normal((2, 2))
        field = m / np.sqrt(square) * target + np.sqrt(q - m**2 / square) * residual
        label = 1 / (1 + np.exp(-np.sqrt(square) * target))

        def objective(u: Any, field: Any = field, label: Any = label) -> float:
            return float(loss(*u, *label, 1.0) + (u - field) @ inverse @ (u - field) / (2 * response))

        move = scipy.optimize.minimize(objective, field).x - field
        power += move @ inverse @ move / response**2 / samples
    return float(power)


def test_one_solution(benchmark: Any) -> None:
    """A solution of the reference row takes at most 0.3 of one plain iteration, and 1.5 seconds on a quiet machine."""
    ratio = compare(benchmark, lambda: solve(0.5, 0.01, 0.5, noise=0.5), plain_iteration, rounds=2)
    assert ratio > 1 / 0.3


def test_fifty_point_sweep(benchmark: Any) -> None:
    """Against fifty separate solutions (five are timed)."""
    grid = np.geomspace(0.4, 8, 50)

    def separate() -> None:
        for alpha in grid[::10]:
            solve(float(alpha), 0.05, 0.5, noise=0.5)

    start = time.process_time()
    found = sweep("alpha", grid, lam=0.05, kappa0=0.5, noise=0.5)
    spent = time.process_time() - start
    alone = 10 * seconds(separate)
    benchmark.extra_info.update(
        {"solver_seconds": spent, "baseline_seconds": alone, "baseline_over_solver": round(alone / spent, 2)}
    )
    benchmark.pedantic(lambda: sweep("alpha", grid[::10], lam=0.05, kappa0=0.5, noise=0.5), rounds=1)
    assert all(one.converged for one in found)


def test_threshold(benchmark: Any) -> None:
    """Against locating it on a grid of one hundred cuts of the statistical dimension."""

    def scan() -> float:
        from derivations import spectral_learning

        load = function(spectral_learning.recovery_load.right, (spectral_learning.cut, spectral_learning.rank_share))
        return float(min(load(cut, 0.5) for cut in np.linspace(0.01, 1.99, 100)))

    compare(benchmark, lambda: recovery_threshold(0.5), scan, rounds=3)
    assert abs(2 * recovery_threshold(0.5) - scan()) < 1e-4
