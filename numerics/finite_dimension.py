"""The mean-field solution for a power-law target of finite dimension, as claims read it.

The spiked limit is reached slowly where the cut sticks to the bulk's edge; at the same dimension theory and training
can be compared without it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from derivations import scaling_laws as chapter
from derivations import state_evolution as equations
from numerics.compile import function
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
