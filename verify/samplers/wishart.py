"""Samplers of the classical Wishart matrix (with a covariance spike) and of the product of two Wishart matrices.

Gaussian factors are drawn in a rotated basis in which most entries vanish (Householder: a rotation of independent
standard Gaussians are independent standard Gaussians): the spectrum has exactly the law of the dense matrices.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from verify.samplers import sampler

Array = NDArray[np.float64]
Draw = dict[str, float | Array]

GRAM_RESOLUTION = 1e-10  # eigenvalues of a Gram matrix below this fraction of the largest need a second look
RANK_RESOLUTION = 1e-12  # singular values below this fraction of the largest are rounding (about 1e-15), not rank


MEANINGS = {
    "delta": "d/V, the ratio of embedding dimension to vocabulary size",
    "gamma": "d/N, the ratio of embedding dimension to the number of samples",
    "theta": "the strength of the covariance spike, 0 for none",
    "signal": "the squared norm of the class mean",
    "alpha": "the weight of the signal in the population matrix",
    "kappa": "the weight of the noise in the population matrix",
    "tau": "the scale of the attention scores",
}


def number(name: str, value: Any, *, above: float = -math.inf, least: float = -math.inf) -> float:
    """`value` as a finite float that is > `above` and >= `least`. Raises ValueError that names the parameter."""
    result = float(value)
    if not (math.isfinite(result) and result > above and result >= least):
        bound = f" and > {above:g}" if above > -math.inf else f" and >= {least:g}" if least > -math.inf else ""
        raise ValueError(f"{name} must be finite{bound}, got {value!r} ({name} = {MEANINGS[name]})")
    return result


def count(size: int, ratio: float, name: str, multiple: int = 1) -> int:
    """The number nearest to size/ratio that is a positive multiple of `multiple`: the n that realises size/n.

    Raises ValueError if the size is no positive integer, the ratio is not positive, or no such number exists.
    """
    if size != int(size) or size < 1:
        raise ValueError(f"size must be a positive integer (the dimension d), got {size!r}")
    result = multiple * round(size / number(name, ratio, above=0.0) / multiple)
    if result < multiple:
        raise ValueError(
            f"{name} = {ratio:g} rounds d/{name} to 0 at size d = {size} (it must be a multiple of {multiple}); "
            f"use a larger size or a smaller {name}"
        )
    return result


def bidiagonal_factor(rows: int, columns: int, generator: np.random.Generator) -> tuple[Array, Array]:
    """Diagonal and subdiagonal of B, where Z = U B Wᵀ for a standard Gaussian rows × columns matrix Z.

    U and W are orthogonal and U keeps the first coordinate fixed, so `B Bᵀ` may be used for `Z Zᵀ` beside any vector
    along that coordinate. The diagonal has min(rows, columns) entries, the subdiagonal min(rows − 1, columns);
    independent chi variables (Golub–Kahan reduction of a Gaussian matrix, row and column in turn).
    """
    diagonal = np.sqrt(generator.chisquare(columns - np.arange(min(rows, columns))))
    below = np.sqrt(generator.chisquare(rows - 1 - np.arange(min(rows - 1, columns))))
    return diagonal, below


def triangular_factor(rows: int, columns: int, generator: np.random.Generator) -> Array:
    """L with G = L Wᵀ for a standard Gaussian rows × columns matrix G, W with orthonormal columns (Bartlett 1933).

    Lower triangular, rows × min(rows, columns): standard Gaussian below the diagonal, independent chi on it.
    """
    rank = min(rows, columns)
    factor = np.tril(generator.standard_normal((rows, rank)), -1)
    factor[np.arange(rank), np.arange(rank)] = np.sqrt(generator.chisquare(columns - np.arange(rank)))
    return factor


def bidiagonal_times(diagonal: Array, below: Array, factor: Array) -> Array:
    """B @ factor for the bidiagonal B of `bidiagonal_factor`; rows of B that are zero throughout are left out."""
    rank = len(diagonal)
    product = np.zeros((max(rank, len(below) + 1), factor.shape[1]))
    product[:rank] = diagonal[:, None] * factor[:rank]
    product[1 : len(below) + 1] += below[:, None] * factor[: len(below)]
    return product


@sampler("wishart")
def wishart(size: int, generator: np.random.Generator, parameters: dict[str, float], options: dict[str, Any]) -> Draw:
    """S = Σ^½ X Xᵀ Σ^½/N, X standard Gaussian d × N, Σ = I + theta e₁e₁ᵀ.

    Parameters: gamma = d/N > 0, theta > −1 (0: no spike). Returns `eigenvalues` (d, ascending, exact zeros for rank),
    `largest_eigenvalue`, `top_overlap` (squared first coordinate of the leading eigenvector), `gamma` as realised.
    """
    samples = count(size, parameters["gamma"], "gamma")
    theta = number("theta", parameters["theta"], above=-1.0)
    diagonal, below = bidiagonal_factor(size, samples, generator)
    diagonal[0] *= math.sqrt(1.0 + theta)  # the first row of B is the first coordinate of the data alone
    rank = len(diagonal)
    squares = diagonal**2
    squares[: len(below)] += below**2
    beside = diagonal[1:] * below[: rank - 1]
    values = scipy.linalg.eigvalsh_tridiagonal(squares, beside, lapack_driver="sterf")
    _, right = scipy.linalg.eigh_tridiagonal(squares, beside, select="i", select_range=(rank - 1, rank - 1))
    eigenvalues = np.zeros(size)
    eigenvalues[size - rank :] = np.maximum(values, 0.0) / samples
    overlap = (diagonal[0] * right[0, 0]) ** 2 / values[-1]
    return {
        "eigenvalues": eigenvalues,
        "largest_eigenvalue": float(eigenvalues[-1]),
        "top_overlap": float(overlap),
        "gamma": size / samples,
    }


def spectrum(factor: Array, size: int) -> tuple[Array, int]:
    """The `size` eigenvalues of factor factorᵀ (padded with zeros to that dimension), ascending, and how many are zero.

    Eigenvalues that are zero by rank are exactly 0.0. A Gram eigenvalue below 1e-10 of the largest is either rounding
    or a genuine value near a hard edge: the singular values of the factor, which resolve it, then decide.
    """
    rows, columns = factor.shape
    gram = factor @ factor.T if rows <= columns else factor.T @ factor
    values = scipy.linalg.eigvalsh(gram, driver="evr", check_finite=False)
    if values[0] <= GRAM_RESOLUTION * values[-1]:
        singular = scipy.linalg.svdvals(factor, check_finite=False)[::-1]
        values = np.where(singular > RANK_RESOLUTION * singular[-1], singular**2, 0.0)
    eigenvalues = np.zeros(size)
    eigenvalues[size - len(values) :] = values
    return eigenvalues, int(np.count_nonzero(eigenvalues == 0.0))


@sampler("product")
def product(size: int, generator: np.random.Generator, parameters: dict[str, float], options: dict[str, Any]) -> Draw:
    """S = Z G Gᵀ Zᵀ/(V N), Z standard Gaussian d × V, G standard Gaussian V × N.

    Parameters: delta = d/V > 0, gamma = d/N > 0. Returns `eigenvalues` (d, ascending, exact zeros for rank),
    `largest_eigenvalue`, `smallest_eigenvalue` (the smallest that is not zero by rank), `zero_count`, and `delta`,
    `gamma` as realised.
    """
    vocabulary = count(size, parameters["delta"], "delta")
    samples = count(size, parameters["gamma"], "gamma")
    diagonal, below = bidiagonal_factor(size, vocabulary, generator)
    factor = bidiagonal_times(diagonal, below, triangular_factor(len(diagonal), samples, generator))
    eigenvalues, zeros = spectrum(factor / math.sqrt(vocabulary * samples), size)
    return {
        "eigenvalues": eigenvalues,
        "largest_eigenvalue": float(eigenvalues[-1]),
        "smallest_eigenvalue": float(eigenvalues[zeros]),
        "zero_count": float(zeros),
        "delta": size / vocabulary,
        "gamma": size / samples,
    }
