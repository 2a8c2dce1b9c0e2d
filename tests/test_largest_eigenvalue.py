"""Tracy–Widom laws against published values, their own convergence, and sampled largest eigenvalues."""

import numpy as np
import pytest

from numerics.largest_eigenvalue import (
    ACCURACY,
    NODES,
    _determinant,
    _kernel,
    edge_p_value,
    tracy_widom_cdf,
    tracy_widom_quantile,
    wishart_edge,
)


@pytest.mark.parametrize(
    ("beta", "mean", "variance"), [(1, -1.2065335745820, 1.607781034581), (2, -1.7710868074, 0.8131947928)]
)
def test_moments(beta, mean, variance):
    """Published by Bornemann (2010): mean and variance from the integrated distribution function."""
    points, weights = np.polynomial.legendre.leggauss(60)
    low, high = -14.0, 14.0
    s, weights = 0.5 * (low + high) + 0.5 * (high - low) * points, 0.5 * (high - low) * weights
    cdf = tracy_widom_cdf(s, beta)
    first = high - weights @ cdf
    second = high**2 - weights @ (2 * s * cdf)
    assert first == pytest.approx(mean, abs=1e-9)
    assert second - first**2 == pytest.approx(variance, abs=1e-8)


def test_published_value():
    assert tracy_widom_cdf(-2.0, 2) == pytest.approx(0.41322414250512257485, abs=ACCURACY)


@pytest.mark.parametrize("beta", [1, 2])
def test_twice_the_nodes_change_nothing(beta):
    kernel = _kernel(beta)
    change = [abs(_determinant(s, kernel) - _determinant(s, kernel, 2 * NODES)) for s in np.linspace(-12, 10, 12)]
    assert max(change) < ACCURACY


@pytest.mark.parametrize("beta", [1, 2])
def test_quantiles(beta):
    probability = np.array([0.001, 0.5, 0.99])
    assert tracy_widom_cdf(tracy_widom_quantile(probability, beta), beta) == pytest.approx(probability, abs=1e-12)


def test_finite_size_shift_is_no_outlier():
    """Case 15: p = 100, n = 400 real: mean 2.1961 ± 0.0006, above the edge 2.25 in 13–14 % of draws."""
    centre, scale = wishart_edge(100, 400)
    assert centre - 1.2065335745820 * scale == pytest.approx(2.1961, abs=0.0006)
    assert edge_p_value(2.25, 100, 400) == pytest.approx(0.135, abs=0.01)
    assert edge_p_value(2.6, 100, 400) < 1e-6


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: tracy_widom_cdf(np.nan), "s must not be NaN"),
        (lambda: tracy_widom_cdf(0.0, 4), "beta must be 1"),
        (lambda: tracy_widom_quantile(1.0), "strictly between 0 and 1"),
        (lambda: wishart_edge(1, 10), "dimension must be an integer"),
        (lambda: wishart_edge(10, 10.5), "samples must be an integer"),
    ],
)
def test_bad_input(call, says):
    with pytest.raises(ValueError, match=says):
        call()
