"""Benchmarks of the free-probability solvers, each with its baseline in the same run and the ratio in `extra_info`."""

import time

import numpy as np
import pytest

from derivations.free_probability import Atoms, MarchenkoPastur, Semicircle
from numerics.free_convolution import SemicircleSum
from numerics.free_law import FreeLaw

LAWS = {
    "degree 3": MarchenkoPastur(0.5) * MarchenkoPastur(0.25),
    "degree 4": MarchenkoPastur(0.5) * MarchenkoPastur(0.25) * MarchenkoPastur(2),
    "three bands": Atoms((0, 1, 4)) + Semicircle(0.1),
}


def companion_seconds(law, x):
    """Best of three: eigenvalues of batched companion matrices at the same points, the tool of last resort."""
    best = np.inf
    for _ in range(3):
        start = time.perf_counter()
        law._curve.roots(x, law._curve.origin)
        best = min(best, time.perf_counter() - start)
    return best


@pytest.mark.parametrize("name", LAWS)
def test_density_of_an_algebraic_law(benchmark, name):
    law = FreeLaw(LAWS[name])
    x = np.linspace(law.support()[0][0], law.support()[-1][1], 100_000)
    benchmark.pedantic(law.pdf, (x,), rounds=3, warmup_rounds=1)
    baseline = companion_seconds(law, x)
    ratio = benchmark.stats.stats.min / baseline if benchmark.stats else 0.0
    benchmark.extra_info.update(baseline="batched companion eigenvalues", baseline_seconds=baseline, ratio=ratio)
    assert ratio <= 2


@pytest.mark.parametrize(("count", "budget"), [(200, 0.05), (10_000, 3.0)])
def test_density_of_a_semicircle_sum(benchmark, count, budget):
    values = np.random.default_rng(0).standard_normal(count)

    def cold():
        law = SemicircleSum(values, variance=1.0)
        (low, _), *_, (_, high) = [*law.support(), law.support()[-1]]
        return law.pdf(np.linspace(low, high, 1000))

    benchmark.pedantic(cold, rounds=3, warmup_rounds=1)
    x = np.linspace(-3, 3, 1000)
    start = time.perf_counter()
    for _ in range(20):
        np.mean(1 / (x[:, None] + 0.1j - values), axis=1)
    baseline = 5 * (time.perf_counter() - start)
    ratio = benchmark.stats.stats.min / baseline if benchmark.stats else 0.0
    benchmark.extra_info.update(
        baseline="100 plain fixed-point sweeps, which do not converge near an edge", ratio=ratio, budget_seconds=budget
    )


def test_tail_integrals_of_a_semicircle_sum(benchmark):
    values = np.random.default_rng(0).standard_normal(200)

    def cold():
        law = SemicircleSum(values, variance=0.5)
        return law.tail_moment(0.3, 2), law.tail_hilbert(0.3, 1)

    benchmark.pedantic(cold, rounds=3, warmup_rounds=1)
    law = SemicircleSum(values, variance=0.5)
    grid = np.linspace(*law.support()[0], 20_001)
    start = time.perf_counter()
    np.trapezoid(np.maximum(grid - 0.3, 0) ** 2 * law.pdf(grid), grid)
    baseline = time.perf_counter() - start
    ratio = benchmark.stats.stats.min / baseline if benchmark.stats else 0.0
    benchmark.extra_info.update(baseline="trapezoidal rule on 20,001 points of the same density", ratio=ratio)
