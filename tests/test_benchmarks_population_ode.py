"""Speed of the learned query: objective, trajectory, a step of the ascent, each beside a plain baseline.

`extra_info["ratio"]` is the baseline's time over the library's.
"""

from __future__ import annotations

import itertools
import time
import warnings

import numpy as np
import pytest
from scipy import integrate

from numerics.population_ode import Objective
from verify.query_ascent import TokenModel, plain_gradients, random_queries, reduced_gradients

RHO = np.linspace(-1, 1, 33)


def timed(call, repeats: int = 3) -> float:
    """The best of a few runs, in seconds."""
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return min(times)


def report(benchmark, baseline: float) -> None:
    benchmark.extra_info["baseline_seconds"] = baseline
    if benchmark.stats is not None:
        benchmark.extra_info["ratio"] = baseline / benchmark.stats.stats.median


def nested_participation(shift: float, informative: int, nuisance: int) -> float:
    """E Σa² by adaptive quadrature inside adaptive quadrature, as one would write it down."""

    def gaussian(value) -> float:
        return integrate.quad(lambda u: value(u) * np.exp(-u * u / 2) / np.sqrt(2 * np.pi), -9, 13, limit=200)[0]

    def integrand(log_s: float) -> float:
        s = np.exp(log_s)
        phi = [gaussian(lambda u, m=m: np.exp(-s * np.exp(m + u))) for m in (shift, 0.0)]
        square = [gaussian(lambda u, m=m: np.exp(2 * (m + u) - s * np.exp(m + u))) for m in (shift, 0.0)]
        joint = phi[0] ** informative * phi[1] ** nuisance
        return s * s * joint * (informative * square[0] / phi[0] + nuisance * square[1] / phi[1])

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", integrate.IntegrationWarning)
        return integrate.quad(integrand, -25, 1, limit=60)[0]


@pytest.mark.benchmark(group="population_ode")
def test_value(benchmark):
    objective = Objective(1, 50, 500, 50)
    objective.value(RHO)
    baseline = timed(lambda: nested_participation(0.5, 50, 500), repeats=1) * len(RHO)
    scales = itertools.cycle(np.linspace(0.5, 1, 97))  # new points at every call, so that no table is found ready
    benchmark(lambda: objective.value(next(scales) * RHO))
    report(benchmark, baseline)


@pytest.mark.benchmark(group="population_ode")
def test_trajectory(benchmark):
    """Against the same flow with the exact slope evaluated point by point inside the integrator."""
    times = np.linspace(0, 5, 50)

    def direct():
        objective = Objective(1, 50, 500, 50)
        return integrate.solve_ivp(
            lambda _, rho: (1 - rho**2) * objective.slope(np.clip(rho, -1, 1)),
            (0, 5),
            [0.1],
            t_eval=times,
            rtol=1e-10,
            atol=1e-12,
        ).y[0]

    expected = direct()
    baseline = timed(direct, repeats=1)
    path = benchmark(lambda: Objective(1, 50, 500, 50).trajectory(0.1, times))
    assert path == pytest.approx(expected, abs=1e-8)
    report(benchmark, baseline)


@pytest.mark.benchmark(group="population_ode")
@pytest.mark.parametrize(("dimension", "informative", "nuisance"), [(50, 50, 500), (50, 500, 10_000)])
def test_step_of_the_ascent(benchmark, dimension, informative, nuisance):
    """One gradient for each of 30 runs: the reduction against drawing every token."""
    model = TokenModel(1.0, informative, nuisance, dimension)
    queries = random_queries(30, dimension, np.random.default_rng(0))
    generator = np.random.default_rng(1)
    groups = max(1, model.tokens // 2000)  # what fits in memory at a time
    few = queries[: len(queries) // groups]
    baseline = timed(lambda: plain_gradients(model, few, generator), repeats=2) * len(queries) / len(few)
    benchmark(reduced_gradients, model, queries, generator)
    report(benchmark, baseline)
