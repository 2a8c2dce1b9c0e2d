"""The distance of a learned matrix from the teacher's, split by its causes, from the two matrices alone.

With learned eigenvalues y_j along u_j and ξ_j = u_jᵀS₀u_j, the distance is Σ y_j² − 2Σ y_jξ_j + Σ σ_i². A direction is
*recovered* if it is kept at a scale that lowers the distance, 0 < y_j < 2ξ_j; the four causes then add up exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from verify.samplers.attention_task import Array


@dataclass(frozen=True, eq=False)
class Decomposition:
    """A learned S = Σ_j y_j u_ju_jᵀ (exact zeros allowed) against a target, both in the units of the caller.

    `values` y_j and `diagonal` ξ_j = u_jᵀS₀u_j ascend with y_j, `vectors` holds the u_j as columns, `target_values` are
    the eigenvalues of S₀, ascending. All distances are squared Frobenius norms.
    """

    values: Array
    vectors: Array
    diagonal: Array
    target_values: Array

    @classmethod
    def of(cls, values: Array, vectors: Array, target: Array) -> Decomposition:
        """From the eigenvalues (ascending) and eigenvectors (columns) of the learned matrix, and the target (d × d)."""
        diagonal = np.einsum("ij,ij->j", vectors, target @ vectors)
        return cls(values, vectors, diagonal, np.linalg.eigvalsh(target).astype(float))

    @property
    def recovered(self) -> NDArray[np.bool_]:
        """Which directions are: positive eigenvalues that lower the distance, 0 < y_j < 2ξ_j."""
        return np.asarray((self.values > 0) & (self.values < 2 * self.diagonal))

    def causes(self) -> dict[str, float]:
        """`overfitting`, `underfitting`, `approximation`, `mismatch` (≥ 0 for S₀ ⪰ 0), and their sum, the `excess`.

        With k directions recovered: overfitting is what the others add; underfitting the square of the target beyond
        its k largest eigenvalues; approximation what k other directions than theirs miss of them (≥ 0: Ky Fan);
        mismatch the distance from the best scale along the recovered ones. The sum is ‖S − S₀‖² for any symmetric S.
        """
        kept = self.recovered
        found, values = self.diagonal[kept], self.values
        squares = np.sort(self.target_values**2)[::-1]
        count = int(np.count_nonzero(kept))
        return {
            "overfitting": float(np.sum(values[~kept] * (values[~kept] - 2 * self.diagonal[~kept]))),
            "underfitting": float(np.sum(squares[count:])),
            "approximation": float(np.sum(squares[:count]) - np.sum(found**2)),
            "mismatch": float(np.sum((values[kept] - found) ** 2)),
            "excess": float(np.sum(values**2) - 2 * np.sum(values * self.diagonal) + np.sum(squares)),
        }
