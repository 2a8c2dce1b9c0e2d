"""Fluctuation of the largest eigenvalue at finite size: Tracy–Widom laws and where to centre and scale them.

Convention: β = 1 for real and β = 2 for complex entries, both for the soft upper edge, as (λ − centre)/scale with the
scale that makes the Airy kernel appear; means −1.2065 and −1.7711. Fredholm determinants (Bornemann 2010).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import airy

from derivations import free_probability as chapter
from numerics.compile import function

Array = NDArray[np.float64]

NODES = 96  # Gauss-Legendre points of the determinant: twice as many change it by less than `ACCURACY`
ACCURACY = 1e-13  # absolute, of the distribution functions
SUPPORT = (-40.0, 30.0)  # outside, both distribution functions are 0 or 1 in double precision


def tracy_widom_cdf(s: ArrayLike, beta: int = 1) -> Any:
    """Distribution function of the Tracy–Widom law at s (shape kept), absolute error below `ACCURACY`.

    `beta`: 1 (real) or 2 (complex). Raises ValueError for NaN or another beta.
    """
    points = np.asarray(s, dtype=float)
    if np.any(np.isnan(points)):
        raise ValueError("s must not be NaN")
    kernel = _kernel(beta)
    flat = np.clip(points.ravel(), *SUPPORT)
    value = np.array([min(max(_determinant(float(p), kernel), 0.0), 1.0) for p in flat])
    return value.reshape(points.shape) if points.shape else float(value[0])


def tracy_widom_quantile(probability: ArrayLike, beta: int = 1) -> Any:
    """Quantile of the Tracy–Widom law for probabilities in (0, 1), to about 1e-12/density. ValueError outside."""
    p = np.asarray(probability, dtype=float)
    if not np.all((p > 0) & (p < 1)):
        raise ValueError(f"probability must lie strictly between 0 and 1, got {p[~((p > 0) & (p < 1))].ravel()[0]}")
    kernel = _kernel(beta)
    roots = [brentq(lambda s, q=q: _determinant(s, kernel) - q, -12.0, 16.0, xtol=1e-13) for q in p.ravel()]
    return np.array(roots).reshape(p.shape) if p.shape else float(roots[0])


def wishart_edge(dimension: int, samples: int, beta: int = 1) -> tuple[float, float]:
    """Centre and scale of the largest eigenvalue of XXᵀ/samples, X dimension × samples standard Gaussian.

    (λ − centre)/scale tends to the Tracy–Widom law of β with an error of order dimension^(−2/3): half a degree of
    freedom less on each side for β = 1 (Johnstone 2001; Ma 2012), none for β = 2 (law `wishart-edge-scale`).
    Raises ValueError unless both sizes are integers ≥ 2.
    """
    for name, value in (("dimension", dimension), ("samples", samples)):
        if value != int(value) or value < 2:
            raise ValueError(f"{name} must be an integer >= 2, got {value}")
    _kernel(beta)
    loss = 0.5 if beta == 1 else 0.0
    arguments = (chapter.dimension, chapter.samples)
    centre = function(chapter.wishart_edge_centre.right, arguments)(dimension - loss, samples - loss)
    scale = function(chapter.wishart_edge_scale.right, arguments)(dimension - loss, samples - loss)
    return float(centre) / samples, float(scale) / samples


def edge_p_value(eigenvalue: float, dimension: int, samples: int, beta: int = 1) -> float:
    """Probability that pure noise alone has a largest eigenvalue of XXᵀ/samples this large: outlier or edge?"""
    centre, scale = wishart_edge(dimension, samples, beta)
    return 1.0 - float(tracy_widom_cdf((eigenvalue - centre) / scale, beta))


def _kernel(beta: int) -> Any:
    if beta == 1:
        return _real_kernel
    if beta == 2:
        return _complex_kernel
    raise ValueError(f"beta must be 1 (real) or 2 (complex), got {beta}")


def _real_kernel(x: Array) -> Array:
    """½ Ai((x + y)/2) (Ferrari and Spohn 2005): the determinant is the β = 1 law itself."""
    upper = np.triu_indices(x.size)
    kernel = np.zeros((x.size, x.size))
    kernel[upper] = 0.5 * airy(0.5 * (x[upper[0]] + x[upper[1]]))[0]
    return kernel + np.triu(kernel, 1).T


def _complex_kernel(x: Array) -> Array:
    """The Airy kernel; on the diagonal Ai'² − x Ai²."""
    value, slope = airy(x)[:2]
    gap = x[:, None] - x[None, :]
    np.fill_diagonal(gap, 1.0)
    kernel = (value[:, None] * slope[None, :] - slope[:, None] * value[None, :]) / gap
    np.fill_diagonal(kernel, slope**2 - x * value**2)
    return np.asarray(kernel)


@lru_cache(maxsize=4)
def _rule(nodes: int) -> tuple[Array, Array]:
    points, weights = np.polynomial.legendre.leggauss(nodes)
    return np.asarray(points), np.asarray(weights)


def _determinant(s: float, kernel: Any, nodes: int = NODES) -> float:
    """det(1 − K) on (s, ∞), cut where the Airy function of the kernel's argument is below 1e-17."""
    stop = 16.0 if kernel is _complex_kernel else 32.0 - min(s, 0.0)
    if s >= stop:
        return 1.0
    points, weights = _rule(nodes)
    half = 0.5 * (stop - s)
    root = np.sqrt(half * weights)
    matrix = root[:, None] * kernel(s + half * (points + 1)) * root
    return float(np.linalg.det(np.eye(nodes) - matrix))
