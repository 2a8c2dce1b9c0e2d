"""Pooling weights as arrays: against 50-digit references, the closed forms, brute force, and bad input.

The laws' own evidence is in `test_laws.py`; here the compiled numbers are held to the laws by other routes.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import mpmath
import numpy as np
import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import digamma

from derivations import attention_weights as chapter
from derivations.core import Law, Step
from numerics.attention_weights import (
    causal,
    correlation_matrix,
    mean,
    optimal,
    pooling_weights,
    prefix_correlation,
    snr,
)
from numerics.compile import function


def closed_form(T: int, position: int, tau: float | None) -> Any:
    """The law's closed form at 50 digits; tau None: strict mask."""
    law = chapter.strict_weights if tau is None else chapter.inclusive_weights
    arguments = (chapter.T, chapter.t, chapter.tau)
    with mpmath.workdps(50):
        return function(law.right, arguments, "mpmath")(mpmath.mpf(T), mpmath.mpf(position), mpmath.mpf(tau or 0))


def value(law: Law, **arguments: float) -> Any:
    """A law's right side in floats, with harmonic numbers written as ψ(n + 1) + γ."""
    right = law.right.replace(sp.harmonic, lambda order: sp.digamma(order + 1) + sp.EulerGamma)
    symbols = sorted(right.free_symbols, key=lambda symbol: symbol.name)
    return function(right, symbols)(*(float(arguments[symbol.name]) for symbol in symbols))


def random_correlation(T: int, rank: int, seed: int) -> np.ndarray:
    vectors = np.random.default_rng(seed).standard_normal((T, rank))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    matrix = vectors @ vectors.T
    np.fill_diagonal(matrix, 1.0)
    return matrix


# ---------------------------------------------------------------------------------------------------- causal weights


@pytest.mark.parametrize("tau", [None, -3.0, 0.0, 0.7, 2.5])
@pytest.mark.parametrize("T", [2, 3, 16, 1000])
def test_causal_weights_agree_with_the_closed_form(T: int, tau: float | None) -> None:
    weights = causal(T, strict=True) if tau is None else causal(T, tau, strict=False)
    assert weights.shape == (T,)
    for position in sorted({1, 2, T // 2 + 1, T - 1, T}):
        reference = closed_form(T, position, tau)
        assert abs(weights[position - 1] - reference) <= 1e-13 * abs(reference)


@pytest.mark.parametrize("strict", [True, False])
def test_a_million_positions(strict: bool) -> None:
    """Small weights keep their digits, where the difference of two digammas loses nine of them."""
    T = 10**6
    weights = causal(T, 1.3, strict=strict)
    assert abs(weights.sum() - 1) < 1e-12
    for position in (1, 2, 1000, T // 2, T - 1):
        reference = closed_form(T, position, None if strict else 1.3)
        assert abs(weights[position - 1] - reference) <= 1e-12 * abs(reference)
    if strict:
        positions = np.arange(1, T + 1)
        by_digamma = (digamma(float(T)) - digamma(positions.astype(float))) / (T - 1)
        assert np.abs(weights - by_digamma).max() < 1e-18 * T


def test_exact_fractions() -> None:
    """Sum over the rows in rational arithmetic, T = 6."""
    rows = [[Fraction(1, i - 1) if j < i else Fraction(0) for j in range(1, 7)] for i in range(2, 7)]
    exact = [sum(column, Fraction(0)) / 5 for column in zip(*rows, strict=True)]
    np.testing.assert_allclose(causal(6), [float(value) for value in exact], rtol=0, atol=2e-16)


@given(st.integers(2, 300), st.floats(-2000, 2000))
def test_causal_weights_are_a_distribution(T: int, tau: float) -> None:
    strict, inclusive = causal(T), causal(T, tau, strict=False)
    for weights in (strict, inclusive):
        assert abs(weights.sum() - 1) < 1e-12
        assert (weights >= 0).all()
    assert (np.diff(strict) < 0).all()
    assert strict[-1] == 0
    assert inclusive[0] >= inclusive[1:].max() * (1 - 1e-12)


def test_the_strict_limit_does_not_depend_on_the_score_scale() -> None:
    for tau in (-1e300, -3, 0, 5, 1e300):
        np.testing.assert_array_equal(causal(9, tau), causal(9))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("tau", [700.0, 745.0, 800.0, 1e6, 1e300])
def test_huge_scores(tau: float) -> None:
    """Only the own score counts at +∞ (mean pooling); at −∞ only the first position still sees itself."""
    np.testing.assert_allclose(causal(6, tau, strict=False), mean(6), rtol=1e-15)
    expected = 5 * causal(6) / 6
    expected[0] += 1 / 6
    np.testing.assert_allclose(causal(6, -tau, strict=False), expected, rtol=1e-15, atol=1e-300)


def test_score_scale_zero_is_harmonic() -> None:
    harmonic = np.cumsum(1 / np.arange(1, 21))
    np.testing.assert_allclose(
        causal(20, strict=False), (harmonic[-1] - np.concatenate([[0], harmonic[:-1]])) / 20, rtol=1e-14
    )


def test_one_position() -> None:
    np.testing.assert_array_equal(causal(1, 3.0, strict=False), [1.0])
    np.testing.assert_array_equal(mean(1), [1.0])
    np.testing.assert_array_equal(optimal([[1.0]]), [1.0])


def test_the_number_follows_the_law(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is typed twice: change the law of a row and the weights change with it."""
    before = causal(5)
    law = chapter.strict_row
    wrong = law.rival(right=law.right**2)
    monkeypatch.setitem(law.__dict__, "steps", (*law.steps[:-1], Step("squared", wrong)))
    assert abs(causal(5) - before).max() > 0.01


# --------------------------------------------------------------------------------------------------- optimal weights


@pytest.mark.parametrize(("T", "L", "r"), [(4, 2, 0.5), (16, 8, 1.0), (16, 16, 0.3), (7, 3, 1e-6)])
def test_prefix_model(T: int, L: int, r: float) -> None:
    R = prefix_correlation(T, L, r)
    w = optimal(R)
    indicator = (np.arange(T) < L) / math.sqrt(L)
    np.testing.assert_allclose(w, indicator, atol=1e-9)
    assert snr(w, R) == pytest.approx(value(chapter.block_best, L=L, r=r), rel=1e-13)
    assert snr(mean(T), R) == pytest.approx(value(chapter.mean_snr, T=T, L=L, r=r), rel=1e-13)
    assert snr(causal(T), R) == pytest.approx(value(chapter.causal_prefix, T=T, L=L, r=r), rel=1e-12)


def test_suffix_model() -> None:
    T, L, r = 12, 5, 0.6
    R = prefix_correlation(T, L, r)[::-1, ::-1]
    assert snr(causal(T), R) == pytest.approx(value(chapter.causal_suffix, T=T, L=L, r=r), rel=1e-12)
    assert snr(mean(T), R) > snr(causal(T), R)


@pytest.mark.parametrize(("T", "first"), [(4, 3), (8, 6), (16, 11), (32, 22), (64, 43)])
def test_mean_pooling_wins_from(T: int, first: int) -> None:
    """By the quadratic forms themselves, for a weak and for the strongest correlation."""
    for r in (1e-3, 1.0):
        wins = [snr(mean(T), R) > snr(causal(T), R) for R in (prefix_correlation(T, L, r) for L in range(2, T + 1))]
        assert wins == [L >= first for L in range(2, T + 1)]


def test_threshold_of_long_sequences() -> None:
    """The exact condition at T = 10⁶ changes sign at the law's fraction."""
    T = 10**6
    fraction = float(chapter.continuum_threshold.right)
    below, above = (value(chapter.causal_lead, T=T, L=round((fraction + step) * T)) for step in (-1e-4, 1e-4))
    assert below > 0 > above


@given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 10**6))
def test_optimal_weights_are_optimal(T: int, rank: int, seed: int) -> None:
    R = random_correlation(T, rank, seed)
    w = optimal(R)
    assert np.linalg.norm(w) == pytest.approx(1, rel=1e-12)
    assert w.sum() >= -1e-7
    top = np.linalg.eigvalsh(R)[-1]
    assert snr(w, R) == pytest.approx(top, rel=1e-11)
    np.testing.assert_allclose(R @ w, top * w, atol=1e-9)
    for rival in (mean(T), np.random.default_rng(seed).standard_normal(T)):
        assert snr(rival, R) <= top * (1 + 1e-12)


def test_degenerate_top_eigenspace() -> None:
    """The projection of the mean vector where it is not 0, else of the first position: the same on every call."""
    np.testing.assert_allclose(optimal(np.eye(5)), np.full(5, 1 / math.sqrt(5)), rtol=1e-14)
    two_blocks = np.kron(np.eye(2), np.array([[1, 0.5], [0.5, 1]]))
    np.testing.assert_allclose(optimal(two_blocks), np.full(4, 0.5), rtol=1e-14)
    repelling = 1.5 * np.eye(3) - 0.5
    np.testing.assert_allclose(optimal(repelling), np.array([2, -1, -1]) / math.sqrt(6), atol=1e-14)
    np.testing.assert_allclose(optimal([[1, -0.5], [-0.5, 1]]), np.array([1, -1]) / math.sqrt(2), atol=1e-14)


def test_snr_by_enumeration() -> None:
    """Signs of a common factor, all 2^5 outcomes: E(Σ w ξ)² over Σ w²."""
    w, stay = np.array([0.3, -1.0, 2.0, 0.7]), np.array([0.9, 0.6, 0.75, 0.5])
    loading = 2 * stay - 1
    R = np.outer(loading, loading)
    np.fill_diagonal(R, 1.0)
    total = 0.0
    for signs in product((1, -1), repeat=4):
        chance = np.prod([p if sign == 1 else 1 - p for sign, p in zip(signs, stay, strict=True)])
        total += chance * (w @ np.array(signs)) ** 2
    assert snr(w, R) == pytest.approx(total / (w @ w), rel=1e-14)
    assert snr(1e200 * w, R) == pytest.approx(snr(w, R), rel=1e-14)
    assert snr(1e-200 * w, R) == pytest.approx(snr(w, R), rel=1e-14)


# -------------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: causal(1), "T must be at least 2 for a strict mask, got 1"),
        (lambda: causal(0, strict=False), "T must be an integer >= 1, got 0"),
        (lambda: causal(2.5), "T must be an integer >= 1, got 2.5"),
        (lambda: causal(True), "T must be real, got True"),
        (lambda: causal([3, 4]), "T must be one number"),
        (lambda: causal(3, math.inf), "tau must be finite, got inf"),
        (lambda: causal(3, math.nan, strict=False), "tau must be finite, got nan"),
        (lambda: causal(3, "1"), "tau must be real, got '1'"),
        (lambda: causal(3, 0.0, "yes"), "strict must be True .* or False, got 'yes'"),
        (lambda: mean(0), "T must be an integer >= 1, got 0"),
        (lambda: prefix_correlation(4, 5, 0.1), "L must be at most T = 4, got 5"),
        (lambda: prefix_correlation(4, 0, 0.1), "L must be an integer >= 1, got 0"),
        (lambda: prefix_correlation(4, 2, 1.1), "r must be >= 0 and <= 1, got 1.1"),
        (lambda: prefix_correlation(4, 2, -0.1), "r must be >= 0 and <= 1, got -0.1"),
        (lambda: optimal([[1, 0.5], [0.4, 1]]), r"R must be symmetric, got 0.5 at \(0, 1\)"),
        (lambda: optimal([[1, 0.1], [0.1, 0.9]]), r"R must have a unit diagonal, got 0.9 at \(1, 1\)"),
        (lambda: optimal([[1, 2], [2, 1]]), "R must be positive semidefinite, got the eigenvalue -1"),
        (lambda: optimal([[1, math.nan], [math.nan, 1]]), "R must be finite, got nan"),
        (lambda: optimal(np.ones((2, 3))), r"R must be a square matrix .* got shape \(2, 3\)"),
        (lambda: optimal(np.ones((0, 0))), "R must be a square matrix"),
        (lambda: optimal([[1j]]), "R must be real"),
        (lambda: optimal([[1, 0], [0]]), "R must be"),
        (lambda: correlation_matrix(1.0, "correlation"), "correlation must be a square matrix"),
        (lambda: snr([0, 0], np.eye(2)), "w must not be 0"),
        (lambda: snr([1, 0, 1], np.eye(2)), "w must have as many entries as R has rows, got 3 and 2"),
        (lambda: snr([1, math.nan], np.eye(2)), "w must be finite, got nan at index 1"),
        (lambda: snr([], np.eye(2)), "w must be a vector of T >= 1"),
        (lambda: pooling_weights(1.0, "weights"), "weights must be a vector"),
    ],
)
def test_bad_input_is_named(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_a_correlation_without_signs_is_accepted() -> None:
    """T = 3 with −½ everywhere: no ±1 signs have it, but the formulas do not ask for signs."""
    R = 1.5 * np.eye(3) - 0.5
    assert snr(optimal(R), R) == pytest.approx(1.5)
    np.testing.assert_array_equal(correlation_matrix(R), R)


# ------------------------------------------------------------------------------------------------- the chapter's laws


def test_decreasing_weights_lose_on_a_late_block() -> None:
    """Each bracket of the law is ≥ 0 for random decreasing weights of sum 1 and every block at the end."""
    generator = np.random.default_rng(5)
    names = (chapter.block_sum, chapter.block_squares, chapter.kappa, chapter.T, chapter.L)
    deficit = function(chapter.late_signal.right, names)
    for _ in range(200):
        T = int(generator.integers(2, 12))
        w = np.sort(generator.exponential(size=T))[::-1]
        w /= w.sum()
        for L in range(2, T + 1):
            late = w[T - L :]
            assert deficit(late.sum(), (late**2).sum(), (w**2).sum(), T, L) >= -1e-14


def test_block_anywhere_in_the_continuum() -> None:
    """A short block of a long sequence: causal attention wins iff −log of its place exceeds √2."""
    T, L = 10**5, 100
    for place, wins in ((math.exp(-math.sqrt(2)) - 0.01, True), (math.exp(-math.sqrt(2)) + 0.01, False)):
        ratio = value(chapter.causal_snr, T=T, M=math.floor(place * T), L=L, r=0.5)
        assert bool(ratio > value(chapter.mean_snr, T=T, L=L, r=0.5)) is wins


def test_no_derivation_runs_at_import() -> None:
    import subprocess
    import sys

    code = (
        "import derivations.attention_weights as a, derivations.finite_length as f\n"
        "from derivations.core import Law\n"
        "run = [v.id for m in (a, f) for v in vars(m).values() if isinstance(v, Law) and 'steps' in vars(v)]\n"
        "assert not run, run\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_lead_is_free_of_the_correlation() -> None:
    assert chapter.r not in chapter.causal_lead.right.free_symbols
    assert chapter.causal_lead.right.free_symbols == {chapter.T, chapter.L}
    assert sp.simplify(chapter.causal_snr.right.subs(chapter.L, 1).subs({chapter.T: 9, chapter.M: 4})) == 1
