"""Benchmarks of the free-probability solvers, each with its baseline in the same run and the ratio in `extra_info`."""

import time

import numpy as np
import pytest

from derivations.free_probability import Atoms, MarchenkoPastur, Semicircle
from numerics.algebraic_curve import AlgebraicCurve
from numerics.free_convolution import SemicircleSum
from numerics.free_law import FreeLaw

LAWS = {
    "degree 3": MarchenkoPastur(0.5) * MarchenkoPastur(0.25),
    "degree 4": MarchenkoPastur(0.5) * MarchenkoPastur(0.25) * MarchenkoPastur(2),
    "three bands": Atoms((0, 1, 4)) + Semicircle(0.1),
}


def companion_seconds(law, x):
    """Best of three: eigenvalues of batched companion matrices at the same points, the tool of last resort."""
    best, curve = np.inf, AlgebraicCurve(law.law, law.mean(), law.moment(2))
    for _ in range(3):
        start = time.perf_counter()
        curve.roots(x, curve.origin)
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


def test_setting_up_a_law_without_a_polynomial(benchmark):
    """Bands, masses and series of a sum whose polynomial has degree 16, beside the usual iteration at 1,000 points."""
    points = ((0, 1, 2, 5, 9), (-3, 0, 1, 2, 7))
    law = Atoms(points[0]) + Atoms(points[1])
    found = benchmark.pedantic(lambda: FreeLaw(law), rounds=3, warmup_rounds=1)

    def rest(values, w):  # 1/G(w) − w
        return 1 / np.mean(1 / (w[:, None] - np.array(values)), axis=1) - w

    z = np.linspace(*found.support()[1], 1002)[1:-1] + 1e-9j
    w, start = z.copy(), time.perf_counter()
    for _ in range(2000):
        w = z + rest(points[1], z + rest(points[0], w))
    baseline = time.perf_counter() - start
    density = -(1 / (rest(points[0], w) + w)).imag / np.pi
    error = np.abs(density - found.pdf(z.real))
    ratio = benchmark.stats.stats.min / baseline if benchmark.stats else 0.0
    benchmark.extra_info.update(
        baseline="2,000 sweeps of the subordination fixed point", ratio=ratio, largest_error_of_baseline=error.max()
    )
    assert np.median(error) < 1e-6  # both are right where the baseline converges
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
