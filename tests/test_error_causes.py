"""The error of a learned matrix by its causes: exact in its sum, positive, and what a sampled noisy target shows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from derivations.free_probability import MarchenkoPastur
from numerics.error_causes import ErrorCauses, error_causes, strong_square
from numerics.free_law import FreeLaw
from numerics.spectral_learning import GaussianTarget, SpectrumTarget
from numerics.state_evolution import solve

CAUSES = ("overfitting", "underfitting", "approximation", "mismatch")


def power_law(size: int) -> np.ndarray[Any, Any]:
    modes = np.arange(1, size + 1) ** -1.0
    return np.asarray(modes * np.sqrt(size / np.sum(modes**2)))


def distance(target: Any, variance: float, threshold: float, scale: float, cut: bool) -> float:
    """‖Ŝ − S₀‖²/d from the moments of the noisy target, without eigenvectors' worth."""
    nodes = target.nodes(variance, threshold if cut else target.noisy(variance).support()[0][0])
    x, weight, h = nodes.x[nodes.above], nodes.weight[nodes.above], nodes.hilbert[nodes.above]
    learned = scale * (x - (threshold if cut else 0.0))
    return float(target.square + weight @ (learned**2 - 2 * learned * (x - 2 * variance * h)))


@pytest.mark.parametrize(
    ("target", "variance", "threshold", "scale", "cut"),
    [
        (GaussianTarget(0.5), 0.3, 0.4, 0.9, True),
        (GaussianTarget(2.0), 1.5, 0.1, 1.3, True),
        (GaussianTarget(0.5), 0.02, 0.01, 1.0, True),  # two bands
        (GaussianTarget(0.5), 0.5, 0.0, 0.7, False),
        (SpectrumTarget(power_law(100)), 4.0, 3.0, 0.6, True),  # bands of single modes
        (SpectrumTarget(FreeLaw(MarchenkoPastur(0.5))), 0.4, 0.5, 1.1, True),
    ],
)
def test_causes_add_up(target: Any, variance: float, threshold: float, scale: float, cut: bool) -> None:
    found = error_causes(target, variance, threshold, scale, cut)
    assert found.error == pytest.approx(distance(target, variance, threshold, scale, cut), abs=1e-9)
    assert all(getattr(found, name) >= 0 for name in CAUSES)
    assert 0 < found.recovered <= 1


def sampled(spectrum: Any, variance: float, threshold: float, scale: float, seed: int) -> tuple[ErrorCauses, float]:
    """The definition on one sampled matrix: eigenvectors of S₀ + √v Z, and whether each is worth keeping."""
    d = len(spectrum)
    noise = np.random.default_rng(seed).standard_normal((d, d))
    values, vectors = np.linalg.eigh(np.diag(spectrum) + np.sqrt(variance / (2 * d)) * (noise + noise.T))
    learned = scale * np.maximum(values - threshold, 0.0)
    form = np.einsum("ij,i,ij->j", vectors, spectrum, vectors)
    kept, wrong = (learned > 0) & (learned < 2 * form), learned >= 2 * form
    count = int(kept.sum())
    strong = float(np.sum(np.sort(spectrum)[::-1][:count] ** 2)) / d
    causes = ErrorCauses(
        float(np.sum((learned * (learned - 2 * form))[wrong & (learned > 0)])) / d,
        float(np.sum(spectrum**2)) / d - strong,
        strong - float(np.sum(form[kept] ** 2)) / d,
        float(np.sum((learned - form)[kept] ** 2)) / d,
        count / d,
    )
    matrix = (vectors * learned) @ vectors.T - np.diag(spectrum)
    return causes, float(np.sum(matrix**2)) / d


@pytest.mark.parametrize(("variance", "threshold", "scale"), [(0.3, 0.4, 0.9), (0.15, 0.02, 1.4)])
def test_a_sampled_matrix_has_them(variance: float, threshold: float, scale: float) -> None:
    """Two draws at d = 500; the second setting keeps eigenvectors that had better be dropped."""
    spectrum = np.sort(np.linalg.eigvalsh(wishart(500, 250, 3)))[::-1]
    law = error_causes(SpectrumTarget(spectrum), variance, threshold, scale)
    draws = [sampled(spectrum, variance, threshold, scale, seed) for seed in (0, 1)]
    for causes, total in draws:
        assert causes.error == pytest.approx(total, rel=1e-10)
    for name in (*CAUSES, "recovered"):
        mean = np.mean([getattr(causes, name) for causes, _ in draws])
        assert mean == pytest.approx(getattr(law, name), abs=0.006), name
    assert (law.overfitting > 0) == (scale > 1)


def wishart(size: int, width: int, seed: int) -> np.ndarray[Any, Any]:
    factor = np.random.default_rng(seed).standard_normal((size, width))
    return np.asarray(factor @ factor.T / np.sqrt(size * width))


def test_the_strongest_modes_of_a_law_are_those_of_its_eigenvalues() -> None:
    d, width = 1200, 600
    eigenvalues = np.linalg.eigvalsh(wishart(d, width, 5))
    for share in (0.05, 0.3, 0.5, 0.9):
        by_law, by_values = (
            strong_square(t, share) for t in (GaussianTarget(0.5), SpectrumTarget(eigenvalues.clip(0)))
        )
        assert by_values == pytest.approx(by_law, rel=0.01)
    assert strong_square(GaussianTarget(0.5), 1.0) == pytest.approx(1.5)


def test_ends() -> None:
    target = GaussianTarget(0.5)
    assert error_causes(target, 0.3, 50.0, 1.0) == ErrorCauses(0.0, 1.5, 0.0, 0.0, 0.0)
    assert error_causes(target, 0.0, 0.0, 0.0).underfitting == 1.5
    assert error_causes(target, 0.0, 0.0, 0.8).mismatch == pytest.approx(0.04 * 1.5)


def test_a_solution_has_the_same_error() -> None:
    found = solve(alpha=0.5, lam=0.01, kappa0=0.5, noise=0.5)
    causes = error_causes(found.setting.target, found.variance, found.threshold, found.scale)
    assert causes.error == pytest.approx(found.excess, rel=1e-8)
