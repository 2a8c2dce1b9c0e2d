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


def _top(matrix: Array) -> tuple[float, float]:
    """The largest eigenvalue and the squared first coordinate of its eigenvector."""
    last = matrix.shape[0] - 1
    value, vector = scipy.linalg.eigh(matrix, subset_by_index=(last, last), check_finite=False)
    return float(value[0]), float(vector[0, 0] ** 2)


@sampler("additive spike")
def additive_spike(
    size: int, generator: np.random.Generator, parameters: dict[str, float], options: dict[str, Any]
) -> Draw:
    """X Xᵀ/N + theta e₁e₁ᵀ, X Gaussian with a first row of norm √N, the limit of a Gaussian row's norm.

    The norm's fluctuation would be most of that of the outlier. Returns `location` (largest eigenvalue), `overlap`
    (of its eigenvector with e₁), `c`.
    """
    samples = _sizes(size, parameters["c"], "c")
    data = generator.standard_normal((size, samples))
    data[0] *= math.sqrt(samples / (data[0] @ data[0]))
    matrix = data @ data.T / samples
    matrix[0, 0] += float(parameters["theta"])
    location, overlap = _top(matrix)
    return {"location": location, "overlap": overlap, "c": size / samples}


@sampler("covariance spike")
def covariance_spike(
    size: int, generator: np.random.Generator, parameters: dict[str, float], options: dict[str, Any]
) -> Draw:
    """X Xᵀ/N with the first row of X times √(1 + theta). Returns `location`, `overlap`, `c` and the realised `theta`.

    The norm of a Gaussian row is independent of its direction, so it scales the spike: 1 + theta = ‖first row‖²/N.
    """
    samples, theta = _sizes(size, parameters["c"], "c"), float(parameters["theta"])
    if not theta > -1:
        raise ValueError(f"theta must be > -1, got {theta!r} (1 + theta is the variance along the spike)")
    data = generator.standard_normal((size, samples))
    data[0] *= math.sqrt(1 + theta)
    strength = float(data[0] @ data[0]) / samples
    location, overlap = _top(data @ data.T / samples)
    return {"location": location, "overlap": overlap, "c": size / samples, "theta": strength - 1}


@sampler("semicircle sum")
def semicircle_sum(
    size: int, generator: np.random.Generator, parameters: dict[str, float], options: dict[str, Any]
) -> Draw:
    """diag(±1) with one entry set to ell, plus a real symmetric Gaussian matrix of spectral variance s.

    Returns `location` (largest eigenvalue), `overlap` (squared coordinate of its eigenvector on the set entry) and
    the realised `ell`, which includes the noise's own entry there: one entry more or less is nothing to the noise.
    """
    s, ell = float(parameters["s"]), float(parameters["ell"])
    if not s > 0:
        raise ValueError(f"s must be > 0, got {s!r} (the variance of the semicircle)")
    noise = generator.standard_normal((size, size))
    matrix = (noise + noise.T) * math.sqrt(s / (2 * size))
    signal = _signs(size)
    signal[0] = ell
    matrix[np.diag_indices(size)] += signal
    realised = float(matrix[0, 0])
    location, overlap = _top(matrix)
    return {"location": location, "overlap": overlap, "ell": realised}
