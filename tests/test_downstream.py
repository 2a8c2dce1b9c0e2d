"""Downstream accuracy: numerics against enumeration, limits and simulation, and the sampler against itself."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import sympy as sp
from scipy.special import ndtr

from derivations import downstream as chapter
from numerics import attention_weights
from numerics.compile import function
from numerics.downstream import (
    accuracy,
    best_ridge,
    loadings,
    pattern_accuracy,
    separation,
    shrinkage,
)
from verify.rewrite import sums_done
from verify.samplers import downstream as sampler
from verify.samplers.attention_downstream import attention_downstream

RATIOS = (0.5, 0.5, 2.0)
T, L, R = 16, 6, 0.5
PREFIX = attention_weights.prefix_correlation(T, L, R)
WEIGHTS = {
    "optimal": attention_weights.optimal(PREFIX),
    "causal": attention_weights.causal(T),
    "mean": attention_weights.mean(T),
}


def enumerated(q, weights, mean):
    """E Φ(q Σ w ξ) over all patterns."""
    total = 0.0
    for signs in itertools.product((1, -1), repeat=len(weights)):
        chance = np.prod([(1 + sign * one) / 2 for sign, one in zip(signs, mean, strict=True)])
        total += chance * ndtr(q * np.dot(signs, weights))
    return total


# ------------------------------------------------------------------------------------------------- sign patterns


@pytest.mark.parametrize("q", [0.0, 0.3, 2.0, 9.0, 80.0, 3000.0])
def test_average_over_patterns(q):
    generator = np.random.default_rng(1)
    weights, mean = generator.standard_normal(9), np.append(generator.uniform(-1, 1, 7), [0.0, 1.0])
    assert pattern_accuracy(q, weights, mean) == pytest.approx(enumerated(q, weights, mean), abs=1e-14)


def test_infinite_separation_counts_ties_by_half():
    assert pattern_accuracy(math.inf, [1.0, 1.0], [0.6, 0.6]) == pytest.approx(0.8**2 + 0.8 * 0.2)
    assert pattern_accuracy(math.inf, [1.0], [1.0]) == 1.0
    with pytest.raises(ValueError, match="at most 20"):
        pattern_accuracy(math.inf, np.ones(25), np.full(25, 0.3))
    with pytest.raises(ValueError, match="too large"):
        pattern_accuracy(1e9, np.ones(25), np.full(25, 0.3))


def test_long_sequences_are_gaussian():
    """With r = 4/T the two patterns agree the better the longer the sequence: their gap decays as 1/T."""
    gaps = []
    for length in (16, 64, 256):
        correlation = attention_weights.prefix_correlation(length, length // 2, 4.0 / length)
        arguments = (0.5, 0.25, 0.6, attention_weights.mean(length), correlation, 0.5)
        gaps.append(abs(accuracy(*arguments) - accuracy(*arguments, "gaussian")))
    assert gaps[0] > 3 * gaps[1] > 9 * gaps[2] > 0


# --------------------------------------------------------------------------------------------------------- ridge


def test_shrinkage_solves_its_cubic():
    delta, gamma = np.array([0.2, 0.5, 1.0, 3.0, 3.0]), np.array([0.3, 2.0, 1.0, 0.5, 5.0])
    ridge = np.array([[1e-9], [0.1], [2.0], [1e6]])
    tau = shrinkage(delta, gamma, ridge)
    assert tau.shape == (4, 5)
    assert ((tau > 0) & (tau < 1 / np.maximum(1, np.maximum(delta, gamma)))).all()
    np.testing.assert_allclose((1 - tau) * (1 - delta * tau) * (1 - gamma * tau), ridge * tau, rtol=1e-7, atol=1e-15)
    np.testing.assert_array_equal(shrinkage(delta, gamma, 0.0), 1 / np.maximum(1, np.maximum(delta, gamma)))
    assert shrinkage(0.5, 0.5, math.inf) == 0.0
    assert isinstance(shrinkage(0.5, 0.5, 1.0), float)


def test_classical_limits():
    """δ → 0, signs that all equal the label: Φ(Δ²√(1 − γ)/√(Δ² + γ)) without penalty, Φ(Δ²/√(Δ² + γ)) at infinite."""
    weights, correlation, gamma, signal = np.full(4, 0.25), np.ones((4, 4)), 0.4, 0.8
    distance = signal / float(weights @ weights)
    lda = distance * math.sqrt(1 - gamma) / math.sqrt(distance + gamma)
    mean = distance / math.sqrt(distance + gamma)
    assert accuracy(0.0, gamma, signal, weights, correlation, 0.0) == pytest.approx(ndtr(lda), abs=1e-13)
    assert accuracy(0.0, gamma, signal, weights, correlation, math.inf) == pytest.approx(ndtr(mean), abs=1e-13)
    assert accuracy(0.0, 0.0, signal, weights, correlation, 0.3) == pytest.approx(ndtr(math.sqrt(distance)), abs=1e-13)


def test_interpolation_peak():
    """Without penalty at N = d the classifier is pure noise; a vocabulary below d leaves directions free of it."""
    assert accuracy(0.5, 1.0, 2.0, WEIGHTS["mean"], PREFIX, 0.0) == pytest.approx(0.5, abs=1e-12)
    assert accuracy(2.0, 0.5, 1.0, np.full(4, 0.25), np.ones((4, 4)), 0.0) == 1.0
    assert separation(2.0, 0.5, 1.0, np.full(4, 0.25), np.ones((4, 4)), 0.0) == math.inf


def test_scale_of_the_weights_drops_out():
    first = accuracy(*RATIOS, WEIGHTS["causal"], PREFIX, 0.5)
    assert accuracy(*RATIOS, 37.0 * WEIGHTS["causal"], PREFIX, 0.5) == pytest.approx(first, abs=1e-14)
    assert accuracy(*RATIOS, -WEIGHTS["causal"], PREFIX, 0.5) == pytest.approx(first, abs=1e-14)


@pytest.mark.parametrize("ratios", [(0.5, 0.5, 2.0), (1.5, 0.7, 1.0), (3.0, 0.2, 0.3), (0.5, 2.0, 1.0)])
@pytest.mark.parametrize("name", WEIGHTS)
def test_best_ridge_is_the_best(ratios, name):
    best = best_ridge(*ratios, WEIGHTS[name], PREFIX)
    grid = np.concatenate([[0.0], np.geomspace(1e-5, 1e4, 60), [math.inf]])
    reached = accuracy(*ratios, WEIGHTS[name], PREFIX, best)
    assert reached >= accuracy(*ratios, WEIGHTS[name], PREFIX, grid).max() - 1e-14
    if 0 < best < math.inf:
        around = separation(*ratios, WEIGHTS[name], PREFIX, best * np.array([0.99, 1.0, 1.01]))
        assert around[1] > around[0] and around[1] > around[2]


def test_best_ridge_of_white_noise_is_infinite():
    assert best_ridge(0.0, 0.5, 1.0, WEIGHTS["mean"], PREFIX) == math.inf
    assert best_ridge(np.array([0.5, 1.0]), 0.5, 1.0, WEIGHTS["mean"], PREFIX).shape == (2,)


def test_orders():
    early = {name: accuracy(*RATIOS, weights, PREFIX, 0.5) for name, weights in WEIGHTS.items()}
    assert early["optimal"] > early["causal"] > early["mean"]
    late = PREFIX[::-1, ::-1]
    assert accuracy(*RATIOS, WEIGHTS["mean"], late, 0.5) > accuracy(*RATIOS, WEIGHTS["causal"], late, 0.5)


# -------------------------------------------------------------------------------------------------------- input


def test_loadings():
    np.testing.assert_allclose(loadings(PREFIX), np.where(np.arange(T) < L, math.sqrt(R), 0.0), atol=1e-12)
    mean = np.array([0.9, -0.4, 0.0, 0.7, 0.2])
    matrix = np.outer(mean, mean)
    np.fill_diagonal(matrix, 1.0)
    np.testing.assert_allclose(loadings(matrix), mean, atol=1e-12)
    np.testing.assert_allclose(loadings([[1.0, -0.25], [-0.25, 1.0]]) * [1, -1], [0.5, 0.5])


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.eye(3), "no label"),
        ([[1, 0.5, 0, 0], [0.5, 1, 0, 0], [0, 0, 1, 0.5], [0, 0, 0.5, 1]], "one common sign"),
        ([[1, -0.4, -0.4], [-0.4, 1, -0.4], [-0.4, -0.4, 1]], "one common sign"),
    ],
)
def test_correlations_without_a_label(matrix, message):
    with pytest.raises(ValueError, match=message):
        loadings(matrix)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"delta": -0.1}, "delta must be >= 0"),
        ({"gamma": math.nan}, "gamma must be finite"),
        ({"signal": -1.0}, "signal must be >= 0"),
        ({"ridge": -0.5}, "ridge must be >= 0"),
        ({"ridge": math.nan}, "ridge must be finite"),
        ({"weights": np.ones(3)}, "weights must have the shape"),
        ({"weights": np.zeros(T)}, "weights must not all be 0"),
        ({"pattern": "normal"}, "pattern must be one of"),
        ({"delta": np.ones(2), "ridge": np.ones(3)}, "broadcast"),
    ],
)
def test_bad_input(change, message):
    given = {"delta": 0.5, "gamma": 0.5, "signal": 1.0, "weights": WEIGHTS["mean"], "correlation": PREFIX, "ridge": 1.0}
    with pytest.raises(ValueError, match=message):
        accuracy(**{**given, **change})


# ------------------------------------------------------------------------------------------------------ simulation

OPTIONS = {"length": T, "signs": ("prefix", L, R), "weights": WEIGHTS, "centred": True, "tests": 2000}
PARAMETERS = dict(zip(("delta", "gamma", "signal"), RATIOS, strict=True)) | {"ridge": 0.5}
RATIO_NAMES = ("delta", "gamma", "norm_a")
KEYS = {f"{kind}_{name}" for kind in ("accuracy", "separation", "shrinkage") for name in WEIGHTS}


def test_contract():
    first = sampler.downstream(24, np.random.default_rng(1), PARAMETERS, OPTIONS)
    assert set(first) == KEYS | {*RATIO_NAMES}
    assert all(isinstance(value, float) and math.isfinite(value) for value in first.values())
    assert first == sampler.downstream(24, np.random.default_rng(1), PARAMETERS, OPTIONS)
    assert first != sampler.downstream(24, np.random.default_rng(2), PARAMETERS, OPTIONS)
    with pytest.raises(ValueError, match="more than one token a class"):
        sampler.downstream(2, np.random.default_rng(1), {**PARAMETERS, "delta": 1.0}, OPTIONS)


@pytest.mark.parametrize("kind", ["prefix", "suffix"])
def test_labelled_signs(kind):
    labels, signs = sampler.labelled_signs(40_000, np.random.default_rng(3), (kind, 3, 0.49), 5)
    block = signs[:, :3] if kind == "prefix" else signs[:, 2:]
    np.testing.assert_allclose((block * labels[:, None]).mean(axis=0), 0.7, atol=0.02)
    assert abs(np.mean(block[:, 0] * block[:, 1]) - 0.49) < 0.02
    assert abs(labels.mean()) < 0.02
    with pytest.raises(ValueError, match="signs must be"):
        sampler.labelled_signs(4, np.random.default_rng(3), (kind, 6, 0.5), 5)


@pytest.mark.parametrize("shape", [(40, 12), (12, 40)])
def test_ridge_regression(shape):
    generator = np.random.default_rng(5)
    pooled, labels = generator.standard_normal(shape), generator.standard_normal(shape[0])
    covariance = pooled.T @ pooled / shape[0]
    inverse = np.linalg.inv(covariance + 0.3 * np.eye(shape[1]))
    found, kept = sampler.ridge_regression(pooled, labels, 0.3)
    np.testing.assert_allclose(found, inverse @ pooled.T @ labels / shape[0], rtol=1e-10)
    assert kept == pytest.approx(np.trace(covariance @ inverse) / shape[1], rel=1e-10)


def test_attention_without_scores_is_causal_pooling():
    """At scale 0 softmax is uniform over what the mask allows: the same draws as with the fixed causal weights."""
    fixed = sampler.downstream(24, np.random.default_rng(1), PARAMETERS, OPTIONS)
    options = {"length": T, "mask": "strict", "signs": ("prefix", L, R), "centred": True, "tests": 2000}
    found = attention_downstream(24, np.random.default_rng(1), {**PARAMETERS, "tau": 0.0}, options)
    assert set(found) == {f"{kind}_causal" for kind in ("accuracy", "separation", "shrinkage")} | {*RATIO_NAMES}
    for name, value in found.items():
        assert value == pytest.approx(fixed[name], rel=1e-9), name
    attending = attention_downstream(24, np.random.default_rng(1), {**PARAMETERS, "tau": 1.0}, options)
    assert attending["separation_causal"] != pytest.approx(found["separation_causal"], rel=1e-4)
    with pytest.raises(ValueError, match="mask must be"):
        attention_downstream(24, np.random.default_rng(1), {**PARAMETERS, "tau": 1.0}, {**options, "mask": "late"})


def test_formulas_at_length_32():
    """The claim's compiled law (exact causal weights of 32 positions) against the solver's own average."""
    length, size, strength = 32, 12, 0.3
    correlation = attention_weights.prefix_correlation(length, size, strength)
    weights = attention_weights.causal(length)
    separated = separation(0.5, 0.25, 1.5, weights, correlation, 0.5)
    kept = shrinkage(0.5, 0.25, 0.5)
    law = chapter.separation_law.right
    for moment in (chapter.causal_drive, chapter.causal_strength, chapter.pooling.strict_noise):
        law = law.subs(moment.left, moment.right)
    sizes = {chapter.T: length, chapter.L: size, chapter.r: sp.Rational(3, 10)}
    ratios = {chapter.delta: sp.Rational(1, 2), chapter.gamma: sp.Rational(1, 4), chapter.norm_a: 2}
    exact = sums_done(law.subs({**sizes, **ratios}))
    assert max(number.q for number in exact.atoms(sp.Rational)).bit_length() > 64
    assert function(exact, (chapter.shrinkage,))(kept) == pytest.approx(separated, rel=1e-12)


@pytest.mark.parametrize("centred", [True, False])
def test_accuracy_against_simulation(centred):
    """End to end at d = 192, every set of weights; the Gaussian formula is off by 0.008 for two of them."""
    draws = [
        sampler.downstream(192, np.random.default_rng(seed), PARAMETERS, {**OPTIONS, "centred": centred})
        for seed in range(60)
    ]
    for name, weights in WEIGHTS.items():
        found = np.array([draw[f"accuracy_{name}"] for draw in draws])
        error = found.std(ddof=1) / math.sqrt(len(found))
        expected = accuracy(*RATIOS, weights, PREFIX, 0.5)
        assert abs(found.mean() - expected) < 4 * error + 0.002, (name, found.mean(), expected, error)
        if name != "mean":
            assert abs(found.mean() - accuracy(*RATIOS, weights, PREFIX, 0.5, "gaussian")) > 0.005
