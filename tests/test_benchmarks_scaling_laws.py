"""Benchmarks of learning curves in the spiked limit, each beside a baseline that is measured in the same run."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import scipy.optimize

from numerics import state_evolution
from numerics.scaling_laws import interpolating_error, learned
from numerics.scaling_laws.modes import PowerLaw
from tests.timing import compare, seconds


def test_hundred_sizes_of_a_million_modes(benchmark: Any) -> None:
    """A curve of 100 points over 10⁶ modes in any order within a second; the baseline sums them at every step."""
    modes = PowerLaw(1.0).strength(np.arange(1, 1_000_001))
    np.random.default_rng(0).shuffle(modes)
    sizes, square = np.geomspace(0.1, 1e7, 100), float(np.sum(modes**2))

    def error(delta: float) -> float:
        x = np.minimum(delta / modes, 1.0)
        return float(np.sum(modes**2 * (1 + (1 - x) ** 4 - 2 * (1 - x) ** 3 * (1 + x))))

    def plain() -> float:
        """One of the hundred points."""
        high = ((square + 0.25) / (4 * sizes[50])) ** 0.5
        root = scipy.optimize.brentq(
            lambda delta: error(delta) + 0.25 - 4 * sizes[50] * delta**2, 1e-9, high, xtol=1e-15
        )
        return error(float(root))

    curve = interpolating_error(sizes, modes)
    np.testing.assert_allclose(curve[50], plain(), rtol=1e-9)
    beyond = 1 - square  # modes that no list has and no size recovers act like label noise
    together = interpolating_error(sizes, modes, 0.5 + 2 * beyond) + beyond
    np.testing.assert_allclose(together, interpolating_error(sizes, 1.0), rtol=1e-9)
    ratio = compare(
        benchmark,
        lambda: interpolating_error(sizes, modes),
        plain,
        rounds=2,
        share=0.01,
        repeats=3,
        clock=time.process_time,
    )
    assert benchmark.extra_info["solver_seconds"] <= 1.0
    assert ratio > 10


def test_thirty_points_of_a_learning_curve(benchmark: Any) -> None:
    """A curve in the spiked limit within ten seconds, against the solver of the whole spectrum with 1,000 modes."""
    sizes, ell, dimension = np.geomspace(10, 1e4, 30), 0.3, 1000
    modes = np.arange(1, dimension + 1.0) ** -1
    target = modes * (dimension / np.sum(modes**2)) ** 0.5
    found: list[Any] = []

    def curve() -> None:
        found[:] = [learned(sizes, 1.0, ell)]

    def one_point() -> None:
        alpha = 30 / dimension
        assert state_evolution.solve(alpha, ell * alpha**0.5, target=target, noise=0.5).excess > 0

    one_point()
    spent: list[float] = []
    benchmark.pedantic(lambda: spent.append(seconds(curve, time.process_time)), rounds=2, warmup_rounds=0)
    alone = 30 * min(seconds(one_point, time.process_time) for _ in range(2))
    benchmark.extra_info.update({"solver_seconds": min(spent), "baseline_seconds": alone})
    assert found[0].converged.all() and (found[0].quadrature_error < 1e-5).all()
    assert (np.diff(found[0].error) < 0).all()
    assert min(spent) <= 10.0 and min(spent) < alone
