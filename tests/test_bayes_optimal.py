"""Bayes-optimal estimation: against sampled matrices, the spiked limit, thresholds, and a denoiser found otherwise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq

from derivations import bayes_optimal as chapter
from derivations.scaling_laws import ratio
from derivations.state_evolution import excess, noise, outputs
from numerics.bayes_optimal import iterates, minimal_error, recovery_threshold, solution_component, solve
from numerics.compile import function
from numerics.spectral_learning import GaussianTarget, SpectrumTarget
from numerics.state_evolution import recovery_threshold as threshold_of_training
from numerics.state_evolution import solve as solve_training
from verify.samplers import load_sampler
from verify.samplers.attention_bayes import denoised

VARIANCES = (0.01, 0.2, 2.0)


@pytest.mark.parametrize("variance", VARIANCES)
def test_error_of_sampled_matrices(variance: float) -> None:
    """The best function of a sampled noisy matrix keeps its eigenvectors, with eigenvalues vᵀS₀v: d = 400."""
    size, width, draws = 400, 200, 3
    source, found = np.random.default_rng(7), []
    for _ in range(draws):
        factor = source.standard_normal((size, width))
        target = factor @ factor.T / np.sqrt(width * size)
        raw = source.standard_normal((size, size))
        vectors = np.linalg.eigh(target + np.sqrt(variance / (2 * size)) * (raw + raw.T))[1]
        kept = np.einsum("ij,ik,kj->j", vectors, target, vectors, optimize=True)
        found.append((np.sum(target**2) - np.sum(kept**2)) / size)
    error, square = minimal_error(GaussianTarget(width / size), variance)
    assert np.mean(found) == pytest.approx(error, rel=0.02)  # the oracle's own bias is of order 1/d
    assert error + square == pytest.approx(1.5, rel=1e-12)


def test_error_by_the_density() -> None:
    """v − (4π²/3) v² ∫ρ³ with the density itself (law `bayes-error-by-density`)."""
    target, variance = GaussianTarget(0.5), 0.3
    nodes = target.nodes(variance, 0.0)
    cubes = float(np.sum(nodes.weight * target.noisy(variance).pdf(nodes.x) ** 2))
    assert minimal_error(target, variance)[0] == pytest.approx(
        variance - 4 * np.pi**2 / 3 * variance**2 * cubes, rel=1e-10
    )


def test_solution_solves_both_equations() -> None:
    ratios = np.geomspace(1e-6, 1e4, 41)
    found = solve(ratios, kappa0=0.5, noise=0.5)
    assert found.converged.all() and not found.note
    assert found.variance == pytest.approx((found.error + 0.25) / (4 * ratios), rel=1e-9)  # two scores of two tokens
    assert (np.diff(found.error) < 0).all()
    assert found.overlap + found.error == pytest.approx(np.full(41, 1.5), rel=1e-12)
    assert found.delta**2 == pytest.approx(found.variance)
    assert found.error[0] == pytest.approx(1.0, abs=1e-5)  # of the target its trace alone is known
    assert solve(0.5, 0.5, noise=0.5).error == pytest.approx(solve([0.5], 0.5, noise=0.5).error[0])
    assert isinstance(solve(0.5, 0.5, noise=0.5).error, float)


@pytest.mark.parametrize("spectrum", [0.05, 1.0, 3.0, [0.0] * 60 + [1.0] * 20 + [3.0] * 20, [1.0] * 5 + [2.0] * 5])
def test_error_over_noise_falls(spectrum: Any) -> None:
    """Then the solution is unique."""
    target = GaussianTarget(spectrum) if isinstance(spectrum, float) else SpectrumTarget(np.array(spectrum))
    variances = np.geomspace(1e-6, 1e3, 40)
    shares = np.array([minimal_error(target, one)[0] for one in variances]) / variances
    assert (np.diff(shares) < 0).all()


def _spiked(n_eff: float, strengths: Any, level: float = 0.5) -> float:
    """The error of the spiked limit: the two laws of the chapter and a sum over the modes."""
    relative = function(chapter.mode_error_bayes.right, (ratio,))
    noise_of = function(chapter.spiked_bayes_noise.right, (excess, noise, outputs, chapter.n_eff))

    def error(delta: float) -> float:
        kept = strengths > delta
        return float(np.sum(strengths[kept] ** 2 * relative(delta / strengths[kept])) + np.sum(strengths[~kept] ** 2))

    root = brentq(lambda delta: noise_of(error(delta), level, 2.0, n_eff) - delta, 1e-9, 10.0, xtol=1e-14)
    return error(root)


def test_spiked_limit() -> None:
    """Modes i^(−3/2) of square d at n = n_eff d: the limit is approached like 1/d."""
    gaps = {}
    for size in (250, 500, 1000):
        strengths = np.arange(1, size + 1) ** -1.5
        strengths /= np.sqrt(np.sum(strengths**2))
        found = solve(100 / size, target=strengths * np.sqrt(size), noise=0.5).error
        gaps[size] = 1 - found / _spiked(100, strengths)
    assert 0 < gaps[1000] < 0.05
    assert gaps[250] > 1.5 * gaps[500] > 2.25 * gaps[1000]


def test_spiked_reference() -> None:
    """γ = 3/2, Δ = ½, K = 2: independently computed."""
    strengths = np.arange(1, 400_001) ** -1.5
    strengths /= np.sqrt(np.sum(strengths**2))
    assert _spiked(100, strengths) == pytest.approx(0.015434852, rel=1e-6)
    assert _spiked(10, strengths) == pytest.approx(0.077778207, rel=1e-6)


@pytest.mark.parametrize(("kappa0", "load"), [(0.5, 0.375), (0.25, 0.21875), (2.0, 0.5), (1e-15, 1e-15)])
@pytest.mark.parametrize(("tokens", "scores"), [(2, 2), (3, 5), (4, 9)])
def test_recovery_threshold(kappa0: float, load: float, tokens: int, scores: int) -> None:
    edge = recovery_threshold(kappa0, tokens)
    assert edge == pytest.approx(load / scores, rel=1e-14)
    assert edge == pytest.approx(threshold_of_training(kappa0, tokens, penalty="bayes"), rel=1e-14)
    if 1e-6 < kappa0 < 1:
        assert edge < threshold_of_training(kappa0, tokens)


@pytest.mark.parametrize("kappa0", [0.1, 0.5, 0.9])
def test_recovery(kappa0: float) -> None:
    """Without label noise the error vanishes continuously at the threshold and stays 0; weak noise changes little."""
    edge = recovery_threshold(kappa0)
    below, near, above = (solve(share * edge, kappa0) for share in (0.9, 1 - 1e-6, 1 + 1e-6))
    assert below.error > 1e3 * near.error > 0 and not near.recovered
    assert above.error == above.delta == 0.0 and above.recovered and above.converged
    assert above.overlap == pytest.approx(1 + kappa0)
    assert solve(1.5 * edge, kappa0, noise=1e-9).error < 1e-8
    slope = minimal_error(GaussianTarget(kappa0), 1e-8)[0] / 1e-8
    assert slope == pytest.approx(4 * edge, rel=1e-6)  # 2Kα


def test_recovery_of_given_eigenvalues() -> None:
    """Half of the eigenvalues 0 and half 1: two atoms, of which the noise between is ½."""
    target = np.repeat([0.0, 1.0], 50)
    assert solve(0.126, target=target).recovered
    assert not solve(0.124, target=target).recovered
    assert solve(0.01, target=np.ones(4)).recovered  # nothing is unknown
    assert solve(0.01, target=np.ones(4), noise=1.0).error == 0.0


def test_training_is_worse() -> None:
    """At any penalty the trained layer is farther from the target."""
    best = solve(0.5, 0.5, noise=0.5).error
    for lam in (0.01, 0.02, 0.05):
        assert solve_training(0.5, lam, 0.5, noise=0.5).excess > 1.5 * best


def test_iterates_reach_the_solution() -> None:
    path = iterates(GaussianTarget(0.5), 0.5, 0.5, 2.0, 20)
    found = solve(0.5, 0.5, noise=0.5)
    assert path[-1] == pytest.approx((found.error, found.overlap), rel=1e-6)
    assert (np.diff([error for error, _ in path]) < 0).all()


def test_component() -> None:
    found = solution_component(("error", "bayes"), np.array([0.5, 1.0]), 0.5, 0.5, 2, -1)
    assert found == pytest.approx(solve([0.5, 1.0], 0.5, noise=0.5).error, rel=1e-9)
    square, variance = 1.5, 0.25
    entries = float(solution_component(("error", "entries"), 0.5, 0.5, 0.5, 2, 1))
    variance = (square + 0.25) / 2
    assert entries == pytest.approx(square * variance / (square + variance))


@pytest.mark.parametrize("variance", VARIANCES)
def test_sampled_denoiser(variance: float) -> None:
    """The sampler's denoiser and its slope against the Hilbert transform of the free convolution."""
    factor = np.random.default_rng(3).standard_normal((40, 15))
    known = np.linalg.eigvalsh(factor @ factor.T / np.sqrt(600))
    places = np.linspace(-3 * np.sqrt(variance), 6, 40)
    images, slopes = denoised(places, known, variance)
    hilbert = SpectrumTarget(known).noisy(variance).hilbert(places)
    assert images == pytest.approx(places - 2 * variance * hilbert, abs=1e-6)
    step = 1e-5
    above, below = (denoised(places + sign * step, known, variance)[0] for sign in (1, -1))
    assert slopes == pytest.approx((above - below) / (2 * step), rel=1e-3, abs=1e-4)
    assert (slopes >= 0).all()


def test_message_passing_recovers() -> None:
    """Without label noise and above the threshold the target itself is found."""
    options = {"tokens": 2, "iterations": 40, "undamped": 1, "path": 1}
    parameters = {"alpha": 0.5, "kappa0": 0.25, "noise": 0.0}
    drawn = load_sampler("attention_bayes_amp")(32, np.random.default_rng(1), parameters, options)
    assert drawn["error"] < 1e-4 and drawn["m"] == pytest.approx(drawn["target_square"], rel=1e-3)


@pytest.mark.parametrize(
    "options", [{"undamped": 1, "path": 2}, {"undamped": 9, "path": 1}, {"undamped": 2, "path": 0}]
)
def test_bad_options(options: Any) -> None:
    parameters = {"alpha": 0.5, "kappa0": 0.5, "noise": 0.5}
    method = load_sampler("attention_bayes_amp")
    with pytest.raises(ValueError, match="path <= undamped"):
        method(16, np.random.default_rng(0), parameters, {"tokens": 2, "iterations": 8, **options})


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"alpha": 0.0, "kappa0": 0.5}, "alpha must be > 0"),
        ({"alpha": [0.5, -1.0], "kappa0": 0.5}, "alpha must be > 0"),
        ({"alpha": 0.5, "kappa0": -0.5}, "kappa0 must be > 0"),
        ({"alpha": 0.5}, "give either kappa0"),
        ({"alpha": 0.5, "kappa0": 0.5, "target": [1.0]}, "give either kappa0"),
        ({"alpha": 0.5, "target": [-1.0, 2.0]}, "positive semidefinite"),
        ({"alpha": 0.5, "kappa0": 0.5, "noise": -1.0}, "noise must be >= 0"),
        ({"alpha": 0.5, "kappa0": 0.5, "tokens": 1}, "tokens must be"),
    ],
)
def test_bad_input(arguments: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        solve(**arguments)


def test_bad_threshold() -> None:
    with pytest.raises(ValueError, match="kappa0 must be > 0"):
        recovery_threshold(0.0)
