"""Spectra of the learned matrix: the fast Gaussian route against the general one, closed forms, sampled matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from derivations import spectral_learning as chapter
from derivations import state_evolution as equations
from numerics.compile import function
from numerics.free_convolution import SemicircleSum
from numerics.spectral_learning import (
    GaussianTarget,
    LearnedSpectrum,
    SpectrumTarget,
    WeightSpectrum,
    pair_slopes,
    target_of,
)

RANGE = [
    (kappa0, variance) for kappa0 in (1e-3, 0.1, 0.5, 1.0, 1.03, 10.0) for variance in 10.0 ** np.arange(-16, 9, 4)
]


@pytest.mark.parametrize(("kappa0", "variance"), RANGE)
def test_quadrature_over_the_whole_range(kappa0: float, variance: float) -> None:
    """Mass, mean, second moment, and ∫x h ρ = ½, which holds for every law."""
    nodes = GaussianTarget(kappa0).nodes(variance, 0.1)
    x, weight = nodes.x, nodes.weight
    second = 1 + kappa0 + variance
    assert weight.sum() == pytest.approx(1, abs=1e-12)
    assert (weight * x).sum() == pytest.approx(np.sqrt(kappa0), abs=1e-12 * np.sqrt(second))
    assert (weight * x**2).sum() == pytest.approx(second, rel=1e-12)
    assert (weight * x * nodes.hilbert).sum() == pytest.approx(0.5, abs=1e-10)


@pytest.mark.parametrize(("kappa0", "variance", "threshold"), [(0.5, 0.1, 0.05), (0.5, 1e-3, 0.7), (2.0, 0.3, 0.4)])
def test_gaussian_target_against_eigenvalues(kappa0: float, variance: float, threshold: float) -> None:
    """The same integrals from many eigenvalues of the target: a grid of its quantiles."""
    exact = GaussianTarget(kappa0)
    count = 800
    quantiles = np.maximum(exact.noisy(1e-9).ppf((np.arange(count) + 0.5) / count), 0)
    general = SpectrumTarget(quantiles)
    for power in (0, 1, 2):
        values = [
            (nodes.weight * np.where(nodes.above, (nodes.x - threshold) ** power, 0)).sum()
            for nodes in (exact.nodes(variance, threshold), general.nodes(variance, threshold))
        ]
        assert values[0] == pytest.approx(values[1], rel=5e-3)
    x = np.linspace(-1, 5, 30)
    np.testing.assert_allclose(exact.noisy(variance).cdf(x), general.noisy(variance).cdf(x), atol=2e-3)


@pytest.mark.parametrize(("kappa0", "variance"), [(0.5, 0.1), (0.5, 1e-3), (1.0, 0.3), (2.0, 1e-2)])
def test_distribution_function_is_the_integral_of_the_density(kappa0: float, variance: float) -> None:
    target = GaussianTarget(kappa0)
    law = target.noisy(variance)
    for point in np.linspace(law.support()[0][0], law.support()[-1][1], 9)[1:-1]:
        nodes = target.nodes(variance, float(point))
        assert law.cdf(point) == pytest.approx(1 - nodes.weight[nodes.above].sum(), abs=1e-12)
    probability = np.array([0.0, 0.1, 0.4, 0.9, 1.0])
    np.testing.assert_allclose(law.cdf(law.ppf(probability)), probability, atol=1e-10)
    assert law.cdf(np.array([-np.inf, np.inf])).tolist() == [0.0, 1.0]


def test_noise_alone_is_a_semicircle() -> None:
    x = np.linspace(-1.9, 1.9, 7)
    np.testing.assert_allclose(SpectrumTarget([1.0]).noisy(1.0).pdf(x + 1), np.sqrt(4 - x**2) / (2 * np.pi), rtol=1e-12)


def test_the_bulk_splits_at_the_law() -> None:
    split = float(function(chapter.splitting_law.right, (equations.kappa0,))(0.5))
    target = GaussianTarget(0.5)
    assert len(target.noisy(0.98 * split).support()) == 2
    assert len(target.noisy(1.02 * split).support()) == 1


# -- the learned matrix ------------------------------------------------------------------------------------------


def learned(size: int, seed: int) -> tuple[Any, LearnedSpectrum]:
    """Eigenvalues of η(S₀ + √v Z − ε)₊ for one Gaussian draw, and the law."""
    generator = np.random.default_rng(seed)
    variance, threshold, scale = 0.2, 0.3, 0.9
    factor = generator.standard_normal((size, size // 2))
    noise = generator.standard_normal((size, size))
    noisy = factor @ factor.T / np.sqrt(size * size / 2) + np.sqrt(variance / (2 * size)) * (noise + noise.T)
    eigenvalues = scale * np.maximum(np.linalg.eigvalsh(noisy) - threshold, 0)
    return eigenvalues, LearnedSpectrum(GaussianTarget(0.5), variance, threshold, scale)


def test_learned_spectrum_against_a_sampled_matrix() -> None:
    eigenvalues, law = learned(600, 1)
    assert (eigenvalues == 0).mean() == pytest.approx(law.atom, abs=5e-3)
    for point in (0.1, 0.5, 1.0, 2.0):
        assert (eigenvalues <= point).mean() == pytest.approx(law.cdf(point), abs=6e-3)
    assert eigenvalues.mean() == pytest.approx(law.mean(), rel=0.01)
    assert (eigenvalues**2).mean() == pytest.approx(law.moment(2), rel=0.02)


def test_learned_spectrum_is_a_distribution() -> None:
    _, law = learned(10, 1)
    (low, high) = law.support()[0]
    grid = np.linspace(low, high, 20001)
    assert np.trapezoid(law.pdf(grid), grid) + law.atom == pytest.approx(1, abs=1e-4)
    assert law.atoms == ((0.0, law.atom),)
    assert law.cdf(0.0) == pytest.approx(law.atom, abs=1e-12)
    assert law.cdf(-1e-9) == 0
    assert law.ppf(law.atom / 2) == 0
    assert law.moment(0) == pytest.approx(1, abs=1e-12)
    assert law.var() == pytest.approx(law.moment(2) - law.mean() ** 2)
    same = [law.rvs(4, random_state=seed).tolist() for seed in (1, 1, 2)]
    assert same[0] == same[1] != same[2]


def test_weights_of_the_learned_matrix() -> None:
    """σ(W)²/d is √κ times an eigenvalue of S, on a factor that is made from S."""
    eigenvalues, law = learned(200, 2)
    kappa = 0.75
    weights = WeightSpectrum(law, kappa)
    sigma = np.sqrt(np.sqrt(kappa) * np.sort(eigenvalues)[50:])  # W has p = 150 columns
    assert weights.atom == pytest.approx((sigma == 0).mean(), abs=0.02)
    for point in (0.5, 1.0, 1.4):
        assert weights.cdf(point) == pytest.approx((sigma <= point).mean(), abs=0.02)
    low, high = weights.support()[0]
    grid = np.linspace(low, high, 20001)
    assert np.trapezoid(weights.pdf(grid), grid) + weights.atom == pytest.approx(1, abs=1e-3)


def test_outliers_of_a_low_rank_target() -> None:
    modes = np.concatenate([np.zeros(997), [3.0, 2.0, 0.3]])
    variance, threshold, scale = 0.25, 0.4, 0.8
    law = LearnedSpectrum(SpectrumTarget(modes), variance, threshold, scale)
    location = function(chapter.learned_mode_law.right, (chapter.mode, *_parameters()))
    overlap = function(chapter.mode_overlap_law.right, (chapter.mode, *_parameters()[:1]))
    assert [outlier.mode for outlier in law.outliers] == [3.0, 2.0]  # 0.3 < √v is buried
    for outlier in law.outliers:
        assert outlier.location == pytest.approx(location(outlier.mode, variance, threshold, scale), abs=2e-3)
        assert outlier.overlap == pytest.approx(overlap(outlier.mode, variance), abs=2e-3)
    assert LearnedSpectrum(GaussianTarget(0.5), variance, threshold, scale).outliers == ()


def _parameters() -> tuple[Any, ...]:
    return equations.variance, equations.threshold, equations.scale


def test_both_signs_without_factors() -> None:
    law = LearnedSpectrum(GaussianTarget(0.5), 0.2, 0.0, 0.9, cut=False)
    assert law.atom == 0
    assert law.support()[0][0] < 0
    assert law.moment(2) == pytest.approx(0.81 * 1.7, rel=1e-10)
    assert law.cdf(0.0) == pytest.approx(GaussianTarget(0.5).noisy(0.2).cdf(0.0))


def test_difference_quotients_by_sampling() -> None:
    target, variance, threshold = GaussianTarget(0.5), 0.2, 0.3
    law = LearnedSpectrum(target, variance, threshold, 1.0)
    found = pair_slopes(target, variance, threshold, 1 - law.atom)
    x = target.noisy(variance).ppf((np.arange(1500) + 0.5) / 1500)
    kept = np.maximum(x - threshold, 0)
    with np.errstate(invalid="ignore"):
        quotients = ((kept[:, None] - kept) / (x[:, None] - x)) ** 2
    np.fill_diagonal(quotients, x > threshold)
    assert found == pytest.approx(quotients.mean(), rel=2e-3)


def test_general_laws_as_targets() -> None:
    """A law (with `resolvent`) and its quantiles are the same target."""
    law = SemicircleSum([2.0], variance=0.05)
    target = target_of(None, law)
    assert target.square == pytest.approx(4.05)
    nodes = target.nodes(0.3, 1.5)
    assert nodes.weight.sum() == pytest.approx(1, abs=1e-9)
    assert (nodes.weight * nodes.x**2).sum() == pytest.approx(4.35, rel=1e-9)
