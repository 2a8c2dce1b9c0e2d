"""Samplers of the operations of free probability on random matrices, with real Gaussian entries.

Each returns the eigenvalues of one matrix, and outliers with their overlaps where a spike is planted.
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


def _sizes(size: int, ratio: float, name: str) -> int:
    """The number of samples that realises size/ratio. Raises ValueError unless ratio is positive and finite."""
    if not (math.isfinite(ratio) and ratio > 0):
        raise ValueError(f"{name} must be > 0 and finite, got {ratio!r} (dimension over number of samples)")
    return max(1, round(size / ratio))


def _signs(size: int) -> Array:
    """±1 in equal numbers. Raises ValueError for an odd size."""
    if size < 2 or size % 2:
        raise ValueError(f"size must be even and >= 2, got {size!r} (the signs are balanced)")
    return np.repeat([-1.0, 1.0], size // 2)


def _wishart(size: int, samples: int, generator: np.random.Generator) -> Array:
    data = generator.standard_normal((size, samples))
    return data @ data.T / samples


def _eigenvalues(matrix: Array) -> Array:
    return np.asarray(scipy.linalg.eigvalsh(matrix, check_finite=False, overwrite_a=True))


@sampler("free sum")
def free_sum(size: int, generator: np.random.Generator, parameters: dict[str, float], options: dict[str, Any]) -> Draw:
    """diag(±1) + X Xᵀ/N, X standard Gaussian: rotation invariance makes the two free. Returns `eigenvalues`, `c`."""
    samples = _sizes(size, parameters["c"], "c")
    matrix = _wishart(size, samples, generator)
    matrix[np.diag_indices(size)] += _signs(size)
    return {"eigenvalues": _eigenvalues(matrix), "c": size / samples}


@sampler("free product")
def free_product(
    size: int, generator: np.random.Generator, parameters: dict[str, float], options: dict[str, Any]
) -> Draw:
    """Σ^½ X Xᵀ Σ^½/N with Σ of eigenvalues 1 and 3 in equal numbers. Returns `eigenvalues`, `c`."""
    samples = _sizes(size, parameters["c"], "c")
    root = np.sqrt(2.0 + _signs(size))
    matrix = _wishart(size, samples, generator) * root * root[:, None]
    return {"eigenvalues": _eigenvalues(matrix), "c": size / samples}


@sampler("free compression")
def free_compression(
    size: int, generator: np.random.Generator, parameters: dict[str, float], options: dict[str, Any]
) -> Draw:
    """Q diag(±1) Qᵀ for a uniform frame Q of alpha·size rows. Returns `eigenvalues` (alpha·size of them), `alpha`."""
    alpha = float(parameters["alpha"])
    if not 0 < alpha <= 1:
        raise ValueError(f"alpha must be > 0 and <= 1, got {alpha!r} (the share of the dimension that is kept)")
    kept = max(1, round(alpha * size))
    frame, _ = np.linalg.qr(generator.standard_normal((size, kept)))
    matrix = (frame.T * _signs(size)) @ frame
    return {"eigenvalues": _eigenvalues(matrix), "alpha": kept / size}


def _haar(size: int, generator: np.random.Generator) -> Array:
    """A uniform orthogonal matrix: QR of a Gaussian one, with the signs that make R's diagonal positive."""
    frame, triangle = np.linalg.qr(generator.standard_normal((size, size)))
    return np.asarray(frame * np.sign(np.diag(triangle)))


@sampler("free sum power")
def free_sum_power(
    size: int, generator: np.random.Generator, parameters: dict[str, float], options: dict[str, Any]
) -> Draw:
    """The sum of 1/alpha matrices Q diag(±1) Qᵀ with independent uniform Q. Returns `eigenvalues`, `alpha`."""
    alpha = float(parameters["alpha"])
    if not 0 < alpha <= 1 or abs(1 / alpha - round(1 / alpha)) > 1e-9:
        raise ValueError(f"alpha must be 1 over an integer, got {alpha!r} (whole copies can be sampled)")
    matrix = np.diag(_signs(size))
    for _ in range(round(1 / alpha) - 1):
        rotation = _haar(size, generator)
        matrix += (rotation * _signs(size)) @ rotation.T
    return {"eigenvalues": _eigenvalues(matrix), "alpha": 1 / round(1 / alpha)}


@sampler("free product power")
def free_product_power(
    size: int, generator: np.random.Generator, parameters: dict[str, float], options: dict[str, Any]
) -> Draw:
    """X Xᵀ for X = D^½ Q D^½ Q' …, D of eigenvalues 1 and 3 in equal numbers, `copies` times. Returns `eigenvalues`."""
    copies = float(parameters["copies"])
    if copies < 1 or copies != round(copies):
        raise ValueError(f"copies must be an integer >= 1, got {copies!r}")
    root = np.sqrt(2.0 + _signs(size))
    factor = np.diag(root)
    for _ in range(round(copies) - 1):
        factor = (factor @ _haar(size, generator)) * root
    return {"eigenvalues": _eigenvalues(factor @ factor.T)}


@sampler("free sum of atoms")
def free_sum_of_atoms(
    size: int, generator: np.random.Generator, parameters: dict[str, float], options: dict[str, Any]
) -> Draw:
    """A + Q B Qᵀ, Q uniform; A and B have the eigenvalue 0 in the given shares and others by the option `rest`.

    "points": ±2 in turn, which leaves a gap around 0; "interval": spread evenly over (−2, 2), which covers it.
    Returns `eigenvalues` and the realised shares.
    """
    shares, spectra = [], []
    for name in ("first_share", "second_share"):
        zeros = round(float(parameters[name]) * size)
        if not 0 < zeros < size:
            raise ValueError(f"{name} must leave zeros and others at size {size}, got {parameters[name]!r}")
        index = np.arange(size - zeros)
        if options["rest"] == "points":
            others = 2.0 * (-1.0) ** index
        elif options["rest"] == "interval":
            others = 4 * (index + 0.5) / index.size - 2 + 0.1 / index.size
        else:
            raise ValueError(f"rest must be points or interval, got {options['rest']!r}")
        shares.append(zeros / size)
        spectra.append(np.concatenate([np.zeros(zeros), others]))
    rotation = _haar(size, generator)
    matrix = np.diag(spectra[0]) + (rotation * spectra[1]) @ rotation.T
    return {"eigenvalues": _eigenvalues(matrix), "first_share": shares[0], "second_share": shares[1]}


@sampler("free inverse")
def free_inverse(
    size: int, generator: np.random.Generator, parameters: dict[str, float], options: dict[str, Any]
) -> Draw:
    """The inverse of X Xᵀ/N, c < 1. Returns `eigenvalues` (ascending), `c`."""
    samples = _sizes(size, parameters["c"], "c")
    if samples <= size:
        raise ValueError(f"c must be < 1 for an inverse, got {parameters['c']!r} (more samples than dimensions)")
    return {"eigenvalues": 1.0 / _eigenvalues(_wishart(size, samples, generator))[::-1], "c": size / samples}


@sampler("free poisson")
def free_poisson(
    size: int, generator: np.random.Generator, parameters: dict[str, float], options: dict[str, Any]
) -> Draw:
    """Σ_i a_i x_i x_iᵀ/d over rate·d standard Gaussian x_i, jumps a_i of 1 and −2 in equal numbers.

    Returns `eigenvalues`, `rate`.
    """
    rate = float(parameters["rate"])
    count = 2 * round(rate * size / 2)
    if count < 2:
        raise ValueError(f"rate must give at least 2 jumps, got {rate!r} at size {size}")
    data = generator.standard_normal((size, count))
    jumps = np.repeat([1.0, -2.0], count // 2)
    return {"eigenvalues": _eigenvalues((data * jumps) @ data.T / size), "rate": count / size}


@sampler("spiked wishart bulk")
def spiked_wishart(
    size: int, generator: np.random.Generator, parameters: dict[str, float], options: dict[str, Any]
) -> Draw:
    """X Xᵀ/N with a spike theta along e₁: added (option kind "additive") or in the covariance ("multiplicative").

    Returns `location` (largest eigenvalue), `overlap` (squared first coordinate of its eigenvector), `c`.
    """
    samples = _sizes(size, parameters["c"], "c")
    theta = float(parameters["theta"])
    data = generator.standard_normal((size, samples))
    if options["kind"] == "multiplicative":
        data[0] *= math.sqrt(1 + theta)
    elif options["kind"] != "additive":
        raise ValueError(f"kind must be additive or multiplicative, got {options['kind']!r}")
    matrix = data @ data.T / samples
    if options["kind"] == "additive":
        matrix[0, 0] += theta
    value, vector = scipy.linalg.eigh(matrix, subset_by_index=(size - 1, size - 1), check_finite=False)
    return {"location": float(value[0]), "overlap": float(vector[0, 0] ** 2), "c": size / samples}


@sampler("semicircle sum")
def semicircle_sum(
    size: int, generator: np.random.Generator, parameters: dict[str, float], options: dict[str, Any]
) -> Draw:
    """diag(±1) with one entry set to ell, plus a real symmetric Gaussian matrix of spectral variance s.

    Returns `location` (largest eigenvalue), `overlap` (squared coordinate of its eigenvector on the set entry).
    """
    s, ell = float(parameters["s"]), float(parameters["ell"])
    if not s > 0:
        raise ValueError(f"s must be > 0, got {s!r} (the variance of the semicircle)")
    noise = generator.standard_normal((size, size))
    matrix = (noise + noise.T) * math.sqrt(s / (2 * size))
    signal = _signs(size)
    signal[0] = ell
    matrix[np.diag_indices(size)] += signal
    value, vector = scipy.linalg.eigh(matrix, subset_by_index=(size - 1, size - 1), check_finite=False)
    return {"location": float(value[0]), "overlap": float(vector[0, 0] ** 2)}
