"""Pooling weights as arrays: optimal, causal, mean, and their signal-to-noise ratio.

Every formula is compiled from `derivations.attention_weights`; this module adds the eigenproblem, the choice within a
degenerate eigenspace, the accurate summation over rows, and the checks of user input.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from derivations import attention_weights as chapter
from numerics.compile import function
from numerics.validate import real_array, scalar

Array = NDArray[np.float64]

ROUNDING = 1e-10  # entries and eigenvalues of a correlation matrix are trusted to this fraction of its size
SAME_EIGENVALUE = 8  # in units of T eps λ_max: what the eigenvalue solver cannot tell apart
NO_OVERLAP = 1e-8  # projection of a unit vector below which it counts as orthogonal to an eigenspace


def prefix_correlation(T: int, L: int, r: float) -> Array:
    """The T × T correlation matrix of signs that are correlated, by r, between any two of the first L positions.

    T >= 1 and 1 <= L <= T are integers, 0 <= r <= 1. Law: `block-correlation` with no position before the block.
    Raises ValueError for values outside.
    """
    length, block = _integer(chapter.T, T), _integer(chapter.L, L)
    if block > length:
        raise ValueError(f"L must be at most T = {length}, got {block} ({chapter.L.meaning})")
    strength = scalar(chapter.r, r)
    entries = function(chapter.block_correlation.right.subs(chapter.M, 0), (chapter.s, chapter.t, chapter.L, chapter.r))
    positions = np.arange(1, length + 1)
    grid = np.broadcast_arrays(positions[:, None], positions[None, :], block, strength)  # conditions need one shape
    return np.asarray(entries(*grid), dtype=float)


def correlation_matrix(R: Any, name: str = "R") -> Array:
    """`R` as a float array, after checking that it is a correlation matrix (T × T, T >= 1, dimensionless).

    Raises ValueError, naming the argument by `name`, unless it is square, finite, symmetric, of unit diagonal and
    positive semidefinite up to rounding. Whether ±1 signs can have it is not asked here.
    """
    matrix: Array = real_array(name, R)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        raise ValueError(f"{name} must be a square matrix (T × T correlations of the signs), got shape {matrix.shape}")
    _close(matrix, matrix.T, f"{name} must be symmetric")
    _close(np.diag(matrix), np.ones(len(matrix)), f"{name} must have a unit diagonal")
    smallest = float(np.linalg.eigvalsh(matrix)[0])
    if smallest < -ROUNDING * len(matrix):
        raise ValueError(
            f"{name} must be positive semidefinite, got the eigenvalue {smallest:.6g}; no signs have these correlations"
        )
    return (matrix + matrix.T) / 2


def optimal(R: Any) -> Array:
    """The unit vector w (shape (T,)) of the largest wᵀRw/wᵀw: the top eigenvector of the correlation matrix R.

    Of a degenerate top eigenspace all of which is optimal, the projection of the mean vector is taken, so R = I gives
    equal weights; if the mean vector is orthogonal to the eigenspace, the projection of the position with the largest
    one (the first of them). The sum of w is >= 0; where it is 0, the first nonzero weight is positive.
    Law: `optimal-weights`. Raises ValueError if R is no correlation matrix.
    """
    matrix = correlation_matrix(R)
    length = len(matrix)
    values, vectors = np.linalg.eigh(matrix)
    top = vectors[:, values >= values[-1] * (1 - SAME_EIGENVALUE * length * np.finfo(float).eps)]
    chosen: Array = top @ top.mean(axis=0) * math.sqrt(length)
    if np.linalg.norm(chosen) > NO_OVERLAP:
        return _unit(chosen)
    shares = np.einsum("tk,tk->t", top, top)
    first = int(np.argmax(shares >= shares.max() * (1 - ROUNDING)))
    chosen = top @ top[first]
    return _unit(chosen * np.sign(chosen[np.argmax(np.abs(chosen) > NO_OVERLAP)]))


def causal(T: int, tau: float = 0.0, strict: bool = True) -> Array:
    """The weights (shape (T,), sum 1) of causal softmax attention followed by the mean over positions, as d → ∞.

    Scores are tau ⟨x_i, x_j⟩/d; `strict` masks the diagonal, and then the limit does not depend on tau. T is an
    integer >= 1 (>= 2 for the strict mask), tau any finite number. The rows of the laws `causal-row-strict` and
    `causal-row-inclusive` are summed from the last position backwards, so that small weights keep all their digits;
    the closed forms are the laws `causal-weights-strict` and `causal-weights-inclusive`.
    Raises ValueError for values outside.
    """
    length, scale = _integer(chapter.T, T), scalar(chapter.tau, tau)
    if not isinstance(strict, bool | np.bool_):
        raise ValueError(f"strict must be True (diagonal masked) or False, got {strict!r}")
    if strict and length < 2:
        raise ValueError(f"T must be at least 2 for a strict mask, got {length}: the first position sees no other one")
    rows = np.arange(2, length + 1, dtype=float)
    own, others = (np.zeros(length - 1), _strict_row(rows)) if strict else _inclusive_row(rows, scale)
    first = 0.0 if strict else 1.0  # the first row sees position 1 alone
    weights = np.concatenate([[first], own])
    weights[:-1] += np.cumsum(others[::-1])[::-1]
    return weights / (length - 1 if strict else length)


def mean(T: int) -> Array:
    """The weights (shape (T,), sum 1) of mean pooling; T is an integer >= 1. Raises ValueError otherwise."""
    length = _integer(chapter.T, T)
    return np.full(length, float(function(chapter.mean_weights.right, (chapter.T,))(length)))


def snr(w: Any, R: Any) -> float:
    """The signal-to-noise ratio α/κ = wᵀRw/wᵀw of the weights w (shape (T,), not 0) under the correlation matrix R.

    Law: `signal-to-noise-ratio`. Raises ValueError for w = 0, lengths that differ, or an R that is none.
    """
    weights, matrix = pooling_weights(w), correlation_matrix(R)
    if len(weights) != len(matrix):
        raise ValueError(f"w must have as many entries as R has rows, got {len(weights)} and {len(matrix)}")
    column = weights[:, None] / np.abs(weights).max()  # the scale drops out; this one cannot overflow
    return _with_traces(
        chapter.signal_to_noise.right, {chapter.weight_vector: column, chapter.correlation_matrix: matrix}
    )


def pooling_weights(w: Any, name: str = "w") -> Array:
    """`w` as an array of shape (T,), T >= 1, after checking that it is finite and not 0; ValueError otherwise."""
    weights: Array = real_array(name, w)
    if weights.ndim != 1 or not weights.size:
        raise ValueError(f"{name} must be a vector of T >= 1 pooling weights, got shape {weights.shape}")
    if not weights.any():
        raise ValueError(f"{name} must not be 0: at least one of the {len(weights)} pooling weights must differ from 0")
    return weights


def _strict_row(rows: Array) -> Array:
    """Attention of row i to each earlier position."""
    return np.asarray(function(chapter.strict_row.right, (chapter.i,))(rows), dtype=float)


def _inclusive_row(rows: Array, tau: float) -> tuple[Array, Array]:
    """Attention of row i >= 2 to itself and to each earlier position, written in e^(−|τ|) so that nothing overflows."""
    row = chapter.inclusive_row.right
    own, others = (
        np.asarray(function(value, (chapter.i, _small))(rows, math.exp(-abs(tau))), dtype=float)
        for value in _row_in_small(row, tau <= 0)
    )
    return own, others


_small = sp.Symbol("small", positive=True)


@lru_cache(maxsize=8)
def _row_in_small(row: Any, falling: bool) -> tuple[Any, Any]:
    """The row's diagonal and off-diagonal weight as rational functions of e^τ (falling) or of e^(−τ)."""
    diagonal = sp.KroneckerDelta(chapter.i, chapter.j)
    power = _small if falling else 1 / _small
    own, others = (sp.cancel(row.subs(diagonal, place).subs(sp.exp(chapter.tau), power)) for place in (1, 0))
    return own, others


def _with_traces(expression: Any, values: dict[Any, Array]) -> float:
    """A scalar expression in traces of matrix products, at given matrices: the products are compiled, then the rest."""
    traces = {node: sp.Dummy(f"trace_{index}") for index, node in enumerate(expression.atoms(sp.Trace))}
    numbers = [float(np.trace(function(node.arg, tuple(values))(*values.values()))) for node in traces]
    return float(function(expression.xreplace(traces), tuple(traces.values()))(*numbers))


def _integer(quantity: Any, value: Any) -> int:
    return int(scalar(quantity, value))


def _unit(vector: Array) -> Array:
    return np.asarray(vector / np.linalg.norm(vector), dtype=float)


def _close(given: Array, wanted: Array, rule: str) -> None:
    """Raise ValueError with the worst entry where two arrays differ by more than rounding."""
    error = np.abs(given - wanted)
    if error.max() > ROUNDING:
        place = tuple(int(index) for index in np.unravel_index(np.argmax(error), error.shape))
        shown = place if len(place) > 1 else place * 2
        raise ValueError(f"{rule}, got {given[place]:.12g} at {shown} where {wanted[place]:.12g} is needed")
