"""Benchmarks of the mean-field solver, each beside a baseline that is measured in the same run.

The baseline of a solution is one iteration of the plain procedure: 1,000 sequences, one general minimiser for each
proximal point. How both are timed is told in `tests/timing.py`.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.optimize

from numerics.state_evolution import recovery_threshold, solve, sweep
from tests.timing import compare, seconds

REFERENCE = {"alpha": 0.5, "lam": 0.01, "kappa0": 0.5, "noise": 0.5}
SWEEP_SHARE = 0.4  # of 50 separate solutions: what a sweep of 50 points may take
SHARE = 0.3  # of one plain iteration: what a whole solution may take


def plain_iteration(samples: int = 1000) -> tuple[float, float]:
    """Squared output gradient and loss by random sequences: the two score differences, a general minimiser for each."""
    generator = np.random.default_rng(0)
    m, q, response, square = 1.38094, 1.46236, 2.30340, 1.75
    covariance = np.array([[3.0, 1.0], [1.0, 3.0]])
    root, inverse = np.linalg.cholesky(covariance), np.linalg.inv(covariance)
    power = loss = 0.0
    for _ in range(samples):
        target, residual = (root @ generator.standard_normal(2) for _ in range(2))
        field = m / np.sqrt(square) * target + np.sqrt(q - m**2 / square) * residual
        label = 1 / (1 + np.exp(-np.sqrt(square) * target))

        def objective(u: Any, field: Any = field, label: Any = label) -> float:
            move = u - field
            miss = label - 1 / (1 + np.exp(-u))
            return float(2 * (miss @ miss) + move @ inverse @ move / (2 * response))

        u = scipy.optimize.minimize(objective, field).x
        power += float((u - field) @ inverse @ (u - field)) / response**2 / samples
        loss += float(2 * np.sum((label - 1 / (1 + np.exp(-u))) ** 2)) / samples
    return power, loss


def test_one_solution(benchmark: Any) -> None:
    """The reference row to 1e-5 in m and q, against one iteration that knows the answer and has 5 % of noise."""
    found = solve(**REFERENCE)
    assert found.converged
    assert plain_iteration()[1] == pytest.approx(found.train_loss, rel=0.15)  # it solves the same problem
    ratio = 1 / compare(
        benchmark, lambda: solve(**REFERENCE), plain_iteration, rounds=2, repeats=1, clock=time.process_time
    )
    assert ratio <= SHARE, f"a solution takes {ratio:.2f} of one plain iteration, at most {SHARE} are asked for"


def test_fifty_point_sweep(benchmark: Any) -> None:
    """A learning curve of 50 points against 50 solutions from scratch, of which every tenth is timed."""
    grid = np.geomspace(0.4, 8, 50)
    found, spent = [], []

    def curve() -> None:
        found[:] = sweep("alpha", grid, lam=0.05, kappa0=0.5, noise=0.5)

    def separate() -> None:
        for alpha in grid[::10]:
            solve(float(alpha), 0.05, 0.5, noise=0.5)

    separate()
    benchmark.pedantic(lambda: spent.append(seconds(curve, time.process_time)), rounds=1, warmup_rounds=0)
    alone = 10 * min(seconds(separate, time.process_time) for _ in range(2))
    info = {"solver_seconds": spent[0], "baseline_seconds": alone, "baseline_over_solver": round(alone / spent[0], 2)}
    benchmark.extra_info.update(info)
    assert all(one.converged for one in found)
    errors = [one.test_error for one in found]
    assert errors == sorted(errors, reverse=True)
    assert spent[0] < SWEEP_SHARE * alone, f"a sweep takes {spent[0] / alone:.2f} of separate solutions"


def test_threshold(benchmark: Any) -> None:
    """Perfect recovery against a minimisation of the statistical dimension with its integrals by quadrature."""
    share = 0.5

    def density(t: float) -> float:
        return float(np.sqrt(4 - t**2) / (2 * np.pi))

    def dimension(cut: float) -> float:
        """Of the descent cone of the trace norm: the distance from its normal cone at a scale of the penalty."""
        corner = share * (1 - share) + share**2 / 2
        on_support = share * (1 - share) / 2 * cut**2
        outside = scipy.integrate.quad(lambda t: (t - cut) ** 2 * density(t), cut, 2)[0]
        return float(corner + on_support + (1 - share) ** 2 / 2 * outside)

    def minimised() -> float:
        return float(scipy.optimize.minimize_scalar(dimension, bounds=(0, 2), method="bounded").fun)

    assert 2 * recovery_threshold(share) == pytest.approx(minimised(), rel=1e-8)
    assert compare(benchmark, lambda: recovery_threshold(share), minimised, rounds=5, clock=time.process_time) > 1
