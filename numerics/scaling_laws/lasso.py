"""The scalar analogue: the least-l1-norm vector on few noisy Gaussian measurements, by state evolution.

Two unknowns, the noise τ on a coordinate and the cut c in its units: as many coordinates are kept as there are
measurements, and the noise is made by the error and by that of the measurements.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.optimize import brentq

from derivations import scaling_laws as chapter
from numerics.compile import function
from numerics.scaling_laws.modes import Array, modes_of
from numerics.validate import broadcast, check, plain

ONE_BY_ONE = 4096  # coordinates that are summed; the others make an integral over the logarithm of the rank
PANELS, NODES = 24, 12
LARGEST_CUT = 37.0  # beyond it the normal tail is 0 in double precision


@lru_cache
def _share() -> Callable[..., Any]:
    symbols = (chapter.coordinate, chapter.scalar_noise, chapter.scalar_cut)
    return function(chapter.lasso_active_share.right, symbols)


@lru_cache
def _risk() -> Callable[..., Any]:
    symbols = (chapter.coordinate, chapter.scalar_noise, chapter.scalar_cut)
    return function(chapter.lasso_coordinate_error.right, symbols)


@lru_cache
def _variance() -> Callable[..., Any]:
    return function(chapter.lasso_noise.right, (chapter.lasso_distance, chapter.noise, chapter.samples))


def lasso_error(n: Any, p: Any, gamma: Any, noise: Any = 0.5) -> Any:
    """‖x̂ − x₀‖² of the vector of least l1 norm that fits n noisy Gaussian measurements (basis pursuit, λ → 0⁺).

    Parameters
    ----------
    n : number of measurements with entries of unit variance, 0 < n < p.
    p : number of coordinates. Those of the target are σ_i = σ_1 i^(−γ), the first p of infinitely many with Σσ² = 1.
    gamma : exponent > 1/2, or the list of the target's coordinates (their signs do not matter; the rest are 0).
    noise : variance Δ ≥ 0 of the noise of a measurement.

    Arrays broadcast (but for `gamma`); laws `lasso-active-share`, `lasso-coordinate-error`, `lasso-noise`. Without
    noise and above the threshold of perfect recovery the error is 0. Raises ValueError for bad input.
    """
    modes = modes_of(gamma)
    arrays = broadcast(
        n=check(chapter.n_eff, n, name="n"),
        p=check(chapter.coordinates, p, name="p"),
        noise=check(chapter.noise, noise),
    )
    samples, coordinates, spread = (np.asarray(array) for array in arrays)
    if not (samples < coordinates).all():
        raise ValueError(f"n must be < p (fewer measurements than coordinates), got n = {n} and p = {p}")
    if np.isfinite(modes.number) and not (coordinates >= modes.number).all():
        raise ValueError(f"p must be at least {modes.number:.0f}, the number of coordinates given, got {p}")
    values = [
        _solve(*_coordinates(modes, float(count)), float(size), float(level))
        for size, count, level in zip(samples.ravel(), coordinates.ravel(), spread.ravel(), strict=True)
    ]
    return plain(np.array(values).reshape(samples.shape))


def _coordinates(modes: Any, count: float) -> tuple[Array, Array]:
    """Coordinates and how many of each there are."""
    if np.isfinite(modes.number):
        known = modes.strength(np.arange(1, modes.number + 1))
        return np.append(known, 0.0), np.append(np.ones(known.size), count - modes.number)
    few = min(count, ONE_BY_ONE)
    ranks, weights = np.arange(1.0, few + 1), np.ones(int(few))
    if count > few:  # midpoint Euler–Maclaurin: from half a rank after the last to half a rank after p
        nodes, shares = np.polynomial.legendre.leggauss(NODES)
        ends = np.linspace(np.log(few + 0.5), np.log(count + 0.5), PANELS + 1)
        half = np.diff(ends)[:, None] / 2
        logs = (ends[:-1, None] + half * (1 + nodes)).ravel()
        ranks = np.concatenate([ranks, np.exp(logs)])
        weights = np.concatenate([weights, (half * shares).ravel() * np.exp(logs)])
    return modes.strength(ranks), weights


def _solve(strengths: Array, weights: Array, samples: float, noise: float) -> float:
    def cut(spread: float) -> float:
        def surplus(edge: float) -> float:
            return float(weights @ _share()(strengths, spread, edge)) - samples

        return float(brentq(surplus, 0.0, LARGEST_CUT + strengths[0] / spread, xtol=1e-14))

    def error(spread: float) -> float:
        return float(weights @ _risk()(strengths, spread, cut(spread)))

    def surplus(log_spread: float) -> float:
        spread = float(np.exp(log_spread))
        return float(np.log(_variance()(error(spread), noise, samples))) - 2 * log_spread

    high = float(np.log(_variance()(float(weights @ strengths**2), noise, samples))) / 2 + 1.0
    while surplus(high) > 0:
        high += 1.0
    low, step = high - 1.0, 1.0
    while surplus(low) < 0:
        low, step = low - step, 2 * step
        if low < high - 40:  # without noise: every coordinate is recovered
            return 0.0
    return error(float(np.exp(brentq(surplus, low, high, xtol=1e-13))))
