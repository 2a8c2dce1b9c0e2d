"""Both transitions in floating point: against quadratures of the Marchenko–Pastur density, at ties, and with bad input.

The reference solves G(z) = 1/θ and maps the root through ψ numerically; it uses no formula of the chapter.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from functools import lru_cache
from itertools import product
from typing import Any

import mpmath
import numpy as np
import pytest
from bad_values import negative, no_real_number
from hypothesis import given, settings
from hypothesis import strategies as st

from numerics.attention_weights import mean, prefix_correlation
from numerics.bbp import Outlier, Recovery, population_threshold, recovery, sample_threshold
from numerics.wishart_product import WishartProduct

ONE: dict[str, Any] = {"weights": [1.0], "correlation": [[1.0]]}  # κ = α = w̄ = 1: then θ is the signal
RATIOS = (1e-3, 0.25, 0.5, 1.0, 4.0, 1e3)


def decoupled(delta: Any, gamma: Any, theta: Any) -> Any:
    return recovery(delta, gamma, theta, **ONE, model="decoupled")


# The numerical reference ------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def _rule(delta: float) -> tuple[Any, Any]:
    """Nodes and weights for ∫ · dMP_δ over the continuous part: Gauss–Chebyshev of the second kind."""
    low, high = (1 - math.sqrt(delta)) ** 2, (1 + math.sqrt(delta)) ** 2
    count = 4000
    angle = np.arange(1, count + 1) * np.pi / (count + 1)
    nodes = (low + high) / 2 + (high - low) / 2 * np.cos(angle)
    chebyshev = np.pi / (count + 1) * np.sin(angle) ** 2 * ((high - low) / 2) ** 2
    return nodes, chebyshev / (2 * np.pi * delta * nodes)


def transforms(z: float, delta: float) -> tuple[float, float, float, float]:
    """m(z) = ∫ λ/(z − λ), its derivative, G(z) = (1 + m)/z and its derivative."""
    nodes, weights = _rule(delta)
    m, slope = float(weights @ (nodes / (z - nodes))), -float(weights @ (nodes / (z - nodes) ** 2))
    return m, slope, (1 + m) / z, slope / z - (1 + m) / z**2


def reference(delta: float, gamma: float, theta: float, side: str) -> dict[str, Any] | None:
    """Locations and overlaps by root finding; None where the population has no outlier on that side."""
    low, high = (1 - math.sqrt(delta)) ** 2, (1 + math.sqrt(delta)) ** 2
    bracket = (high * (1 + 1e-3), high + 10 * theta) if side == "above" else (1e-9, low * (1 - 1e-3))

    def excess(z: Any) -> float:
        return transforms(float(z), delta)[2] * theta - 1

    if excess(bracket[0]) * excess(bracket[1]) > 0:
        return None
    ell = float(mpmath.findroot(excess, bracket, solver="anderson", tol=1e-26, maxsteps=200, verify=False))
    m, slope, _, change = transforms(ell, delta)
    overlap = -1 / (theta**2 * change)
    location, stretch = ell * (1 + gamma * m), 1 + gamma * m + ell * gamma * slope
    return {
        "population_location": ell,
        "population_overlap": overlap,
        "sample_location": location,
        "sample_overlap": overlap * ell * stretch / location,
        "detectable": stretch > 0 and location > 0,
    }


@pytest.mark.parametrize(("delta", "gamma"), list(product((0.25, 0.5, 1.0, 4.0), (0.05, 0.5, 3.0))))
def test_recovery_against_root_finding(delta: float, gamma: float) -> None:
    """Strengths on all sides of both transitions."""
    seen = set()
    for theta in delta + np.array([-0.9, -0.6, 0.3, 0.9, 1.2, 2.0, 3.0, 8.0]) * max(math.sqrt(delta), delta / 2):
        if theta <= 0 or abs(theta - population_threshold(delta)) < 0.05 * theta:
            continue
        side = "above" if theta > delta else "below"
        exact = reference(delta, gamma, theta, side) if side == "above" or delta > 1 else None
        found = decoupled(delta, gamma, theta).signal
        assert (found is None) is (exact is None), theta
        if exact is None or abs(exact["sample_overlap"]) < 1e-6:  # at the sample transition itself
            continue
        assert found.side == side
        assert found.theta == theta
        assert found.population_location == pytest.approx(exact["population_location"], rel=1e-9)
        assert found.population_overlap == pytest.approx(exact["population_overlap"], rel=1e-9)
        detectable = exact["detectable"] and (side == "above" or delta > gamma)
        assert found.detectable_sample is detectable
        seen.add(detectable)
        if detectable:
            assert found.sample_location == pytest.approx(exact["sample_location"], rel=1e-9)
            assert found.sample_overlap == pytest.approx(exact["sample_overlap"], rel=1e-8)
    assert True in seen


@pytest.mark.parametrize(("delta", "gamma"), list(product(RATIOS, RATIOS)))
def test_thresholds(delta: float, gamma: float) -> None:
    """At the sample threshold the outlier leaves the edge of the bulk; ψ′ = 0 there, by 50-digit roots."""
    with mpmath.workdps(50):
        roots = mpmath.polyroots(
            [1, 0, -(mpmath.mpf(delta) + gamma + mpmath.mpf(delta) * gamma), -2 * mpmath.mpf(delta) * gamma],
            maxsteps=1000,
            extraprec=400,
        )
        exact = mpmath.mpf(delta) + max(mpmath.re(root) for root in roots)
    threshold = sample_threshold(delta, gamma)
    assert threshold == pytest.approx(float(exact), rel=4e-15)
    assert population_threshold(delta) == pytest.approx(delta + math.sqrt(delta), rel=1e-15)
    assert threshold > population_threshold(delta)
    above = decoupled(delta, gamma, threshold * (1 + 1e-9)).signal
    assert above.detectable_sample
    assert above.sample_location == pytest.approx(WishartProduct(delta, gamma).support()[1], rel=1e-12)
    assert 0 <= above.sample_overlap < 1e-6
    below = decoupled(delta, gamma, threshold * (1 - 1e-9)).signal
    assert (below.sample_location, below.sample_overlap, below.detectable_sample) == (None, 0.0, False)
    assert below.detectable_population


def test_thresholds_at_ties_and_extremes() -> None:
    assert sample_threshold(1, 1) == 3.0
    assert sample_threshold([1.0, 1 + 1e-9, 1 - 1e-16], 1) == pytest.approx([3.0, 3.0, 3.0], abs=3e-9)
    assert sample_threshold(1e-300, 1e-300) == pytest.approx(math.sqrt(2) * 1e-150, rel=1e-14)
    assert sample_threshold(1e150, 1e150) == pytest.approx(2e150, rel=1e-14)
    for delta in np.geomspace(1e-12, 1e12, 25):
        assert np.isfinite(sample_threshold(delta, [delta, 1 / delta, 1.0])).all()
    with pytest.raises(ValueError, match="sample_threshold must be within the range of a double"):
        sample_threshold(1e308, 1e308)


def test_thresholds_broadcast() -> None:
    delta, gamma = np.array([0.5, 1.0, 2.0]), np.array([[0.1], [3.0]])
    values = sample_threshold(delta, gamma)
    assert values.shape == (2, 3)
    assert values[1, 2] == sample_threshold(2.0, 3.0)
    assert population_threshold(delta).tolist() == [population_threshold(d) for d in delta]
    assert type(population_threshold(1)) is type(sample_threshold(1, 2)) is float


# Known values ------------------------------------------------------------------------------------------------------


def test_token_example() -> None:
    """δ = ½, γ = ¼, T = 16, the first 8 signs equal, ‖μ‖² = 0.6, mean pooling."""
    setting: dict[str, Any] = {"weights": mean(16), "correlation": prefix_correlation(16, 8, 1.0)}
    both = recovery(0.5, 0.25, 0.6, **setting, centred=False)
    found = {outlier.kind: outlier for outlier in both.outliers}
    assert set(found) == {"signal", "vocabulary-mean"}
    assert both.kappa == 1 / 16
    assert both.alpha * 16 == pytest.approx(4.5)
    assert round(found["vocabulary-mean"].sample_location / both.kappa, 3) == 9.369
    assert round(found["signal"].sample_location / both.kappa, 3) == 6.403
    assert round(found["signal"].sample_overlap, 3) == 0.492
    assert found["vocabulary-mean"].theta == pytest.approx(16 * 0.5)
    assert found["signal"].theta == pytest.approx(4.5 * 1.1)
    centred = recovery(0.5, 0.25, 0.6, **setting)
    assert centred.outliers == (found["signal"],) == (centred.signal,)
    other = recovery(0.5, 0.25, 0.6, **setting, model="decoupled")
    assert round(other.signal.sample_location / other.kappa, 3) == 4.374
    assert round(other.signal.sample_overlap, 3) == 0.715
    assert other.bulk_edge == both.bulk_edge == pytest.approx(WishartProduct(0.5, 0.25, 1 / 16).support()[1])
    assert other.lower_edge == both.lower_edge == WishartProduct(0.5, 0.25, 1 / 16).support()[0]


def test_token_overlap_is_with_the_signal() -> None:
    """The spike's own direction is a; ⟨a, u⟩²/‖a‖² = ‖μ‖²/(‖μ‖² + δ)."""
    token = recovery(0.5, 0.25, 2.0, **ONE).signal
    own = decoupled(0.5, 0.25, 2.5).signal
    assert token.theta == own.theta
    assert token.sample_location == own.sample_location
    assert token.sample_overlap == pytest.approx(own.sample_overlap * 2 / 2.5, rel=1e-14)
    assert token.population_overlap == pytest.approx(own.population_overlap * 2 / 2.5, rel=1e-14)


def test_additive_spike() -> None:
    """Case 6, additive half: c = 0.25."""
    assert population_threshold(0.25) == 0.75
    found = decoupled(0.25, 1e-6, 1.0).signal
    assert found.population_location == pytest.approx(7 / 3, rel=1e-15)
    assert found.population_overlap == pytest.approx(1 - 0.25 / 0.75**2, rel=1e-15)
    assert decoupled(0.25, 1e-6, 0.6).outliers == ()


def test_formula_above_the_edge_is_no_outlier() -> None:
    """Case 7 for an additive spike: below its threshold the formula still lies above the edge."""
    result = decoupled(0.5, 0.25, 1.3)
    t = 1.3 - 0.5
    assert (t + 1) * (t + 0.5) * (t + 0.25) / t**2 > result.bulk_edge == pytest.approx(3.74669, abs=1e-5)
    assert sample_threshold(0.5, 0.25) == pytest.approx(0.5 + 1.0545466755988, rel=1e-13)
    assert result.signal.sample_location is None
    assert result.signal.detectable_population
    strong = decoupled(0.5, 0.25, 0.5 + 2.0).signal
    assert strong.sample_location == pytest.approx(4.21875, rel=1e-15)


@pytest.mark.parametrize("delta", [0.1, 0.5, 1.0, 3.0])
def test_white_signs_are_the_classical_spiked_covariance(delta: float) -> None:
    """R = I: threshold ‖μ‖² = √δ, location (1 + ‖μ‖²)(1 + δ/‖μ‖²), overlap (1 − δ/s²)/(1 + δ/s)."""
    setting: dict[str, Any] = {"weights": [0.3, -1.2, 0.4], "correlation": np.eye(3)}
    kappa = 0.3**2 + 1.2**2 + 0.4**2
    for factor in (0.999, 1.001, 2.0):
        signal = math.sqrt(delta) * factor
        found = recovery(delta, 0.5, signal, **setting).signal
        assert (found is not None and found.side == "above") is (factor > 1)
        if factor > 1:
            assert found.population_location == pytest.approx(kappa * (1 + signal) * (1 + delta / signal), rel=1e-12)
            expected = (1 - delta / signal**2) / (1 + delta / signal)
            assert found.population_overlap == pytest.approx(expected, rel=1e-10)


# Below the bulk ------------------------------------------------------------------------------------------------------


def test_below_the_bulk() -> None:
    result = decoupled(4.0, 0.5, 0.5)
    (found,) = result.outliers
    assert found.side == "below"
    assert 0 < found.sample_location < result.lower_edge
    assert found.sample_location == pytest.approx(15 / 49, rel=1e-15)
    assert 0 < found.sample_overlap < found.population_overlap < 1
    for theta in (1.999, 2.001):  # δ − √δ = 2
        assert bool(decoupled(4.0, 0.5, theta).outliers) is (theta < 2)


def test_no_outlier_below_a_bulk_that_reaches_its_own_edge_first() -> None:
    """δ = 4, γ = 5, θ = ½: the formula would give a squared overlap of 1.01."""
    (found,) = decoupled(4.0, 5.0, 0.5).outliers
    assert (found.side, found.sample_location, found.sample_overlap, found.detectable_sample) == (
        "below",
        None,
        0.0,
        False,
    )
    assert found.detectable_population
    assert decoupled(1.0, 0.5, 1e-9).outliers == decoupled(0.9, 0.5, 0.01).outliers == ()
    assert not decoupled(4.0, 4.0, 0.5).outliers[0].detectable_sample


def test_below_the_bulk_close_to_a_tie() -> None:
    """δ = 1 + 1e-9, γ = 1: the transition lies at 1e-9 times a number of order 1 and keeps its digits."""
    delta = 1 + 1e-9
    with mpmath.workdps(60):
        d = mpmath.mpf(delta)
        lowest = min(mpmath.re(t) for t in mpmath.polyroots([1, 0, -(2 * d + 1), -2 * d], maxsteps=2000, extraprec=900))
        threshold = float(d + lowest)
    assert threshold > 0
    for factor in (0.9999, 1.0001):
        found = decoupled(delta, 1.0, threshold * factor).signal
        assert found.detectable_sample is (factor < 1)


@given(st.floats(1e-3, 1e3), st.floats(1e-3, 1e3), st.floats(0, 1e4))
@settings(max_examples=50, deadline=None)
def test_every_outlier_makes_sense(delta: float, gamma: float, theta: float) -> None:
    result = decoupled(delta, gamma, theta)
    low, high = (1 - math.sqrt(delta)) ** 2, (1 + math.sqrt(delta)) ** 2
    for found in result.outliers:
        assert found.detectable_population
        assert 0 <= found.sample_overlap <= found.population_overlap * (1 + 1e-12) <= 1 + 2e-12
        above = found.side == "above"
        assert (
            found.population_location >= high * (1 - 1e-12)
            if above
            else 0 < found.population_location <= low * (1 + 1e-9)
        )
        assert found.detectable_sample is (found.sample_location is not None)
        if found.sample_location is not None:
            edge = result.bulk_edge if above else result.lower_edge
            assert (
                found.sample_location >= edge * (1 - 1e-12) if above else 0 < found.sample_location <= edge * (1 + 1e-6)
            )


# Shape of the answer -------------------------------------------------------------------------------------------------


def test_without_signal() -> None:
    assert decoupled(0.5, 0.25, 0.0).outliers == ()
    strong = recovery(0.5, 0.25, 0.0, mean(16), np.ones((16, 16))).signal
    assert strong.detectable_sample  # an outlier along a, which says nothing of u
    assert strong.sample_overlap == 0.0


def test_weights_that_cancel_the_signal() -> None:
    result = recovery(0.5, 0.25, 3.0, [1.0, -1.0], [[1.0, 1.0], [1.0, 1.0]], centred=False)
    assert result.alpha == 0.0
    assert result.outliers == ()


@pytest.mark.parametrize("factor", [2.0, -3.0, 1e100, 1e-100])
def test_the_scale_of_the_weights_drops_out(factor: float) -> None:
    weights, correlation = mean(16) + 0.01 * np.arange(16), prefix_correlation(16, 8, 0.7)
    plain = recovery(0.5, 0.25, 0.6, weights, correlation, centred=False)
    scaled = recovery(0.5, 0.25, 0.6, factor * weights, correlation, centred=False)
    assert scaled.kappa == pytest.approx(factor**2 * plain.kappa, rel=1e-12)
    assert scaled.bulk_edge == pytest.approx(factor**2 * plain.bulk_edge, rel=1e-12)
    for one, other in zip(plain.outliers, scaled.outliers, strict=True):
        back = {name: getattr(other, name) / factor**2 for name in ("population_location", "sample_location")}
        _same(one, replace(other, **back))


def _same(one: Outlier, other: Outlier) -> None:
    for name, value in vars(one).items():
        assert getattr(other, name) == (pytest.approx(value, rel=1e-11) if isinstance(value, float) else value), name


def test_arrays_give_an_array_of_results() -> None:
    delta, signal = np.array([0.5, 2.0]), np.array([[0.1], [0.6], [2.0]])
    many = recovery(delta, 0.25, signal, mean(4), prefix_correlation(4, 2, 0.5))
    assert many.shape == (3, 2)
    assert many.dtype == object
    one = recovery(2.0, 0.25, 0.6, mean(4), prefix_correlation(4, 2, 0.5))
    assert many[1, 1] == one
    assert type(one) is Recovery
    assert type(recovery(np.float64(2), np.array(0.25), 0.6, mean(4), np.eye(4))) is Recovery


def test_warning_where_eigenvectors_mix() -> None:
    """Two spikes of equal strength: α(‖μ‖² + δ) = w̄²δ."""
    setting: dict[str, Any] = {"weights": mean(2), "correlation": np.eye(2), "centred": False}
    equal = 0.5  # α = κ = ½, w̄ = 1: (‖μ‖² + ½)/2 = ½ gives ‖μ‖² = ½
    with pytest.warns(RuntimeWarning, match="eigenvectors mix; centre the samples"):
        recovery(0.5, 0.25, equal, **setting)
    with pytest.warns(RuntimeWarning, match="d = 100"):
        recovery(0.5, 0.25, equal + 0.15, **setting, dimension=100)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        recovery(0.5, 0.25, equal + 0.15, **setting, dimension=100_000)
        recovery(0.5, 0.25, equal, weights=mean(2), correlation=np.eye(2))
        recovery(0.5, 0.25, equal, weights=mean(2), correlation=np.eye(2), model="decoupled", centred=False)


def test_correlation_without_signs_is_accepted() -> None:
    """No ±1 signs have all correlations −½ at T = 3, but the matrix is positive semidefinite."""
    result = recovery(0.5, 0.25, 2.0, [1, 1, 0], 1.5 * np.eye(3) - 0.5 * np.ones((3, 3)))
    assert result.alpha == pytest.approx(1.0)


# Bad input -----------------------------------------------------------------------------------------------------------

GOOD: dict[str, Any] = {"delta": 0.5, "gamma": 0.25, "signal": 1.0, "weights": [1.0, 1.0], "correlation": np.eye(2)}


@given(no_real_number | negative | st.just([]))
@settings(max_examples=60, deadline=None)
def test_bad_numbers(bad: Any) -> None:
    for name in ("delta", "gamma", "signal", "dimension"):
        with pytest.raises(ValueError, match=rf"^{name} must"):
            recovery(**{**GOOD, name: bad})
    with pytest.raises(ValueError, match=r"^delta must"):
        population_threshold(bad)
    for arguments, name in (((bad, 1), "delta"), ((1, bad), "gamma")):
        with pytest.raises(ValueError, match=rf"^{name} must"):
            sample_threshold(*arguments)


@given(no_real_number)
@settings(max_examples=40, deadline=None)
def test_bad_arrays(bad: Any) -> None:
    for name in ("weights", "correlation"):
        with pytest.raises(ValueError, match=rf"^{name} must"):
            recovery(**{**GOOD, name: bad})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"delta": 0},
            r"^delta must be > 0, got 0 \(delta = d/V, the ratio of embedding dimension to vocabulary size\)$",
        ),
        ({"gamma": [0.5, 0.0]}, "^gamma must be > 0, got 0 at index 1"),
        ({"signal": -1}, "^signal must be >= 0, got -1"),
        ({"weights": [1.0]}, r"^weights must have the shape \(2,\)"),
        ({"weights": [[1.0, 1.0]]}, r"^weights must have the shape \(2,\)"),
        ({"weights": [0.0, 0.0]}, "^weights must not all be 0"),
        ({"weights": []}, "^weights must"),
        ({"weights": [1e200, 1.0]}, "^weights must have a norm whose square is a double"),
        ({"weights": [1e-200, 0.0]}, "^weights must have a norm whose square is a double"),
        ({"correlation": []}, "^correlation must be a square matrix"),
        ({"correlation": np.ones((2, 3))}, "^correlation must be a square matrix"),
        ({"correlation": [[1, 0.5], [0.4, 1]]}, "^correlation must be symmetric"),
        ({"correlation": 2 * np.eye(2)}, "^correlation must have a unit diagonal"),
        ({"correlation": [[1, 2], [2, 1]]}, "^correlation must be positive semidefinite"),
        ({"model": "tokens"}, "^model must be one of token, decoupled, got 'tokens'"),
        ({"model": ["token"]}, "^model must be one of token, decoupled"),
        ({"model": None}, "^model must be one of token, decoupled, got None"),
        ({"centred": "no"}, "^centred must be True .* or False, got 'no'"),
        ({"centred": None}, "^centred must be True"),
        ({"dimension": 0}, "^dimension must be an integer >= 1, got 0"),
        ({"dimension": 10.5}, "^dimension must be an integer >= 1, got 10.5"),
        ({"dimension": [10, 20]}, "^dimension must be one number"),
        ({"delta": [1, 2], "gamma": [1, 2, 3]}, "^shapes must broadcast, got delta"),
        ({"delta": 1e-30}, "^delta must be 0 .* or from 1e-20"),
        (
            {"signal": 1e308, "weights": [1e100, 1e100]},
            "^signal and weights must leave the outlier within the range of a double",
        ),
    ],
)
def test_bad_settings(change: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        recovery(**{**GOOD, **change})
