"""Benchmarks, each beside a baseline that is measured in the same run; the ratio is stored with the result.

How both are timed is told in `tests/timing.py`; each test asserts what the solver has to gain.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.optimize
import sympy as sp

from derivations import wishart_product as chapter
from numerics import compile as compiler
from numerics.bbp import recovery
from numerics.compile import fast_available
from numerics.wishart_product import WishartProduct
from tests.timing import compare
from verify.samplers import pooled

DELTA, GAMMA = 0.5, 0.25
POINTS = 100_000


def places(count: int) -> Any:
    low, high = WishartProduct(DELTA, GAMMA).support()
    return np.linspace(low, high, count + 2)[1:-1]


def companion_density(x: Any) -> Any:
    """The density from the eigenvalues of the cubic's companion matrices, all at once."""
    polynomial = sp.Poly(sp.expand(chapter.product.right - chapter.x * chapter.m), chapter.m)
    parts = sp.lambdify((chapter.x, chapter.delta, chapter.gamma), polynomial.all_coeffs())(x, DELTA, GAMMA)
    companion = np.zeros((x.size, 3, 3))
    companion[:, 1, 0] = companion[:, 2, 1] = 1
    for order, part in enumerate(reversed(parts[1:])):
        companion[:, order, 2] = -part / parts[0]
    return -np.linalg.eigvals(companion).imag.min(axis=1) / (np.pi * x)


@pytest.mark.parametrize(
    ("backend", "least"),
    [
        ("numpy", 20),
        pytest.param("fast", 60, marks=pytest.mark.skipif(not fast_available(), reason="heyoka is not installed")),
    ],
)
def test_density(benchmark: Any, backend: str, least: float) -> None:
    """100,000 points against batched companion eigenvalues, in wall time: heyoka uses every core, they use one."""
    law, x = WishartProduct(DELTA, GAMMA), places(POINTS)
    assert np.allclose(law.pdf(x, backend), companion_density(x), atol=1e-7)
    ratio = compare(benchmark, lambda: law.pdf(x, backend), lambda: companion_density(x), rounds=5, repeats=40)
    assert ratio >= least, f"only {ratio:.1f} times faster than companion matrices, {least} are asked for"


def test_distribution(benchmark: Any) -> None:
    """100,000 values of the CDF against the running integral of the companion matrices' density on the same points."""
    law, x = WishartProduct(DELTA, GAMMA), places(POINTS)

    def running_integral() -> Any:
        return scipy.integrate.cumulative_trapezoid(companion_density(x), x, initial=0)

    values = law.cdf(x)
    assert np.allclose(values - values[0], running_integral(), atol=1e-5)
    assert compare(benchmark, lambda: law.cdf(x), running_integral, rounds=3) > 1


def test_quantiles(benchmark: Any) -> None:
    """100,000 quantiles against bisection of the CDF, all at once, down to 1e-12."""
    law = WishartProduct(DELTA, GAMMA)
    level = np.random.default_rng(1).random(POINTS)

    def bisection() -> Any:
        low, high = (np.full(POINTS, edge) for edge in law.support())
        for _ in range(42):
            middle = (low + high) / 2
            reached = law.cdf(middle) >= level
            low, high = np.where(reached, low, middle), np.where(reached, middle, high)
        return high

    assert np.allclose(law.ppf(level), bisection(), atol=1e-11)
    assert compare(benchmark, lambda: law.ppf(level), bisection, rounds=2) > 1


def test_recovery(benchmark: Any) -> None:
    """Outliers of 200 settings against root finding on the quadrature of the population's resolvent."""
    strengths = np.linspace(0.1, 4, 200)
    angle = np.arange(1, 401) * np.pi / 401
    nodes = 1 + DELTA + 2 * np.sqrt(DELTA) * np.cos(angle)
    weights = np.sin(angle) ** 2 * 2 / (401 * nodes)  # of the Marchenko–Pastur law, Gauss–Chebyshev
    top = (1 + np.sqrt(DELTA)) ** 2
    found = recovery(DELTA, GAMMA, strengths, [1.0], [[1.0]])

    def root_finding() -> list[float]:
        locations = []
        for theta in strengths[::10] + DELTA:
            if theta * weights @ (1 / (top + 1e-6 - nodes)) > 1:
                ell = scipy.optimize.brentq(lambda z, t=theta: t * weights @ (1 / (z - nodes)) - 1, top + 1e-6, 99)
                locations.append(ell * (1 + GAMMA * weights @ (nodes / (ell - nodes))))
        return locations

    last = found[-10].signal.sample_location
    assert root_finding()[-1] == pytest.approx(last, rel=1e-6)
    ratio = compare(
        benchmark,
        lambda: recovery(DELTA, GAMMA, strengths, [1.0], [[1.0]]),
        root_finding,
        rounds=3,
        share=1 / 10,
    )
    assert ratio > 0.2


@pytest.mark.parametrize("size", [128, 256])
def test_sampling_and_leading_eigenpairs(benchmark: Any, size: int) -> None:
    """One draw of the token model with its leading eigenpairs against all eigenpairs of the same dense covariance."""
    length = 16
    weights = np.full(length, 1 / length)
    parameters = {"delta": DELTA, "gamma": GAMMA, "signal": 0.6}
    options = {
        **{"length": length, "signs": ("prefix", 8, 1.0), "weights": tuple(weights)},
        **{"centred": False, "population": False},
    }

    def dense() -> float:
        generator = np.random.default_rng(1)
        vocabulary, samples = round(size / DELTA), round(size / GAMMA)
        embeddings = pooled.draw_vocabulary(size, vocabulary, parameters["signal"], generator)
        draw_signs, _ = pooled.signs_of(options["signs"], length)
        tokens = pooled.draw_tokens(draw_signs(samples, generator), vocabulary, generator)
        vectors = np.einsum("t,ntd->nd", weights, embeddings[tokens])
        values, _ = np.linalg.eigh(vectors.T @ vectors / samples)
        return float(values[-1] / (weights @ weights))

    def sparse() -> float:
        return float(pooled.token(size, np.random.default_rng(1), parameters, options)["leading_location"])

    assert sparse() == pytest.approx(dense(), rel=1e-9)
    ratio = compare(benchmark, sparse, dense, rounds=3)
    assert ratio > 1


def test_compile_time(benchmark: Any) -> None:
    """The density compiled by the fast backend against lambdify, from the law's expression to the first value."""
    expression = chapter.density_law.right
    symbols = (chapter.x, chapter.lower, chapter.upper, chapter.middle, chapter.delta, chapter.gamma)
    point = (1.0, 0.05, 3.7, -0.08, DELTA, GAMMA)
    compile_anew = compiler._compiled.__wrapped__
    backend = "fast" if fast_available() else "numpy"
    benchmark.extra_info["backend"] = backend
    ratio = compare(
        benchmark,
        lambda: compile_anew(expression, symbols, backend)(*point),
        lambda: compile_anew(expression, symbols, "numpy")(*point),
        rounds=3,
    )
    assert ratio > 0.02
