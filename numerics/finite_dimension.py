"""The mean-field solution for a power-law target of finite dimension, as claims read it.

The spiked limit is reached slowly where the cut sticks to the bulk's edge; at the same dimension theory and training
can be compared without it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.optimize import brentq

from derivations import scaling_laws as chapter
from derivations import state_evolution as equations
from derivations._expectations import SpectralTail
from numerics.compile import function
from numerics.error_causes import error_causes
from numerics.spectral_learning import SpectrumTarget
from numerics.state_evolution import LearnedAttention, NotSolvedError, solve

Array = np.ndarray[Any, Any]


def power_law_target(dimension: int, gamma: float) -> Array:
    """Eigenvalues s_i ∝ i^(−γ), i = 1 … d, with Σ s_i² = d, array (d,)."""
    modes = np.arange(1, dimension + 1, dtype=float) ** -gamma
    return np.asarray(modes * np.sqrt(dimension / np.sum(modes**2)))


def finite_solution(n_eff: float, gamma: float, ell: float, noise: float, dimension: int) -> LearnedAttention:
    """The trained softmax layer of two tokens on n = n_eff d sequences, at the penalty ℓ, for a target of d modes.

    Raises ValueError for bad input (that of `state_evolution.solve`).
    """
    symbols = (chapter.ell, chapter.n_eff, equations.dimension)
    level = function(chapter.penalty_in_the_spiked_limit.right, symbols)(ell, n_eff, float(dimension))
    return solve(n_eff / dimension, float(level), target=power_law_target(dimension, gamma), noise=noise)


def finite_component(name: str, *values: Any) -> Any:
    """Numbers for the node `FiniteSolution`, whose parameters broadcast. Raises NotSolvedError without a solution."""
    return np.vectorize(lambda *one: float(getattr(_solution(one), name)), otypes=[float])(*values)


@lru_cache(maxsize=256)
def _solution(values: tuple[float, ...]) -> LearnedAttention:
    n_eff, gamma, ell, noise, dimension = (float(value) for value in values)
    found = finite_solution(n_eff, gamma, ell, noise, round(dimension))
    if not found.converged:
        raise NotSolvedError(f"no solution at n_eff = {n_eff}, ell = {ell}, d = {dimension}: {found.note}")
    return found


@dataclass(frozen=True)
class Interpolation:
    """The solution as λ → 0⁺ below interpolation: squared distance E, variance v of the noise, threshold ε."""

    error: float
    variance: float
    threshold: float


def interpolating_solution(n_eff: float, gamma: float, noise: float, outputs: float, dimension: int) -> Interpolation:
    """The interpolating layer on n = n_eff d sequences of K = `outputs` scores, for a power-law target of d modes.

    Laws `interpolating-cut`, `linear-noise` and `distance-from-target`, at scale 1. Raises NotSolvedError above
    interpolation, where no threshold ε ≥ 0 meets all constraints.
    """
    target = SpectrumTarget(power_law_target(dimension, gamma))
    alpha = n_eff / dimension
    spread = _compiled("linear_noise", (equations.excess, equations.noise, equations.outputs, equations.alpha))

    def at(log_variance: float) -> tuple[float, float, float]:
        """The variance, the threshold that meets the constraints, and the error with both."""
        variance = float(np.exp(log_variance))
        threshold = _threshold(target, variance, outputs * alpha)
        return variance, threshold, error_causes(target, variance, threshold, 1.0).error

    def gap(log_variance: float) -> float:
        variance, _, error = at(log_variance)
        return float(np.log(spread(error, noise, outputs, alpha) / variance))

    high = float(np.log(spread(target.square, noise, outputs, alpha)))
    low = high - 1.0
    while gap(low) < 0:
        low -= 1.0
    variance, threshold, error = at(float(brentq(gap, low, high + 1e-9, xtol=1e-10)))
    return Interpolation(error, variance, threshold)


def _threshold(target: SpectrumTarget, variance: float, load: float) -> float:
    """The ε at which ∫(x − ε) h ρ over x > ε is Kα; it falls from ½ or less at ε = 0."""
    (node,) = chapter.interpolating_cut.right.atoms(SpectralTail)
    integrand = function(node.args[0], (equations.point, equations.hilbert, equations.threshold))

    def gap(threshold: float) -> float:
        nodes = target.nodes(variance, threshold)
        kept = nodes.above
        return float(nodes.weight[kept] @ integrand(nodes.x[kept], nodes.hilbert[kept], threshold)) - load

    top = target.top(variance)
    if gap(0.0) <= 0:
        raise NotSolvedError(f"no threshold meets K n/d² = {load:.6g} constraints at noise variance {variance:.3g}")
    return float(brentq(gap, 0.0, top * (1 - 1e-12), xtol=1e-12 * top))


@lru_cache
def _compiled(name: str, symbols: tuple[Any, ...]) -> Any:
    return function(getattr(chapter, name).right, symbols)


def interpolating_component(name: str, *values: Any) -> Any:
    """Numbers for the node `FiniteInterpolation`, whose parameters broadcast. Raises NotSolvedError as above."""
    return np.vectorize(lambda *one: float(getattr(_interpolation(one), name)), otypes=[float])(*values)


@lru_cache(maxsize=256)
def _interpolation(values: tuple[float, ...]) -> Interpolation:
    n_eff, gamma, noise, outputs, dimension = (float(value) for value in values)
    return interpolating_solution(n_eff, gamma, noise, outputs, round(dimension))
