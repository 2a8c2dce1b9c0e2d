"""Outliers of a pooled covariance: both transitions, locations, overlaps, and what a set of weights recovers.

Every formula is compiled from `derivations.bbp`; this module adds the conditions under which each may be used.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from derivations import bbp as chapter
from numerics.attention_weights import correlation_matrix
from numerics.compile import function
from numerics.validate import check, plain, real_array, scalar
from numerics.wishart_product import WishartProduct

MODELS = ("token", "decoupled")
MIXING = 2.0  # spikes nearer than so many standard deviations of their strength exchange their eigenvectors


@dataclass(frozen=True)
class Outlier:
    """One spike of the pooled covariance and the eigenvalue that it sends out of the bulk.

    `kind`: "signal" or "vocabulary-mean". `side`: "above" or "below" the bulk. `theta`: strength, in units of κ.
    Locations are eigenvalues, the factor κ included; overlaps are squared, with u = μ/‖μ‖ for the signal and with
    b/‖b‖ for the vocabulary mean. Without a sample outlier `sample_location` is None and `sample_overlap` is 0.
    """

    kind: str
    side: str
    theta: float
    population_location: float
    population_overlap: float
    sample_location: float | None
    sample_overlap: float
    detectable_population: bool
    detectable_sample: bool


@dataclass(frozen=True)
class Recovery:
    """What a set of pooling weights recovers: the bulk's edges (the factor κ included), its outliers, κ and α."""

    bulk_edge: float
    lower_edge: float
    outliers: tuple[Outlier, ...]
    kappa: float
    alpha: float

    @property
    def signal(self) -> Outlier | None:
        """The signal's outlier, if it has one at some level."""
        return next((outlier for outlier in self.outliers if outlier.kind == "signal"), None)


def population_threshold(delta: Any) -> Any:
    """Spike strength θ (in units of κ) above which the population matrix has an outlier (law `population-threshold`).

    `delta` = d/V > 0, scalar or array. Raises ValueError outside the domain.
    """
    ratio = check(chapter.delta, delta)
    return plain(np.asarray(_compiled("population_threshold_law")(ratio)))


def sample_threshold(delta: Any, gamma: Any) -> Any:
    """Spike strength θ (in units of κ) above which the sample matrix has an outlier (law `sample-threshold`).

    `delta` = d/V > 0 and `gamma` = d/N > 0 broadcast. Raises ValueError outside the domain.
    """
    first, second = np.broadcast_arrays(check(chapter.delta, delta), check(chapter.gamma, gamma))
    return plain(np.asarray(_compiled("sample_threshold_law")(first, second)))


def recovery(
    delta: Any,
    gamma: Any,
    signal: Any,
    weights: Any,
    correlation: Any,
    model: str = "token",
    centred: bool = True,
    dimension: int = 1000,
) -> Any:
    """The outliers of the pooled covariance S = (1/N) Σ c cᵀ, c = Σ_t w_t x_t.

    Parameters
    ----------
    delta, gamma : d/V > 0 and d/N > 0.
    signal : ‖μ‖² >= 0.
    weights : T pooling weights, not all 0.
    correlation : T × T matrix R = E ξ ξᵀ of the signs (symmetric, unit diagonal, positive semidefinite).
    model : "token" (a finite vocabulary, sampled) or "decoupled" (the statement κ ZZᵀ/V + α μμᵀ).
    centred : whether the mean of the c_n is removed, which removes the vocabulary-mean spike of the token model.
    dimension : d at which the warning below compares fluctuations; it changes no number.

    Returns a `Recovery`; for arrays of `delta`, `gamma` or `signal` an object array of them, broadcast. A spike that
    is subcritical at both levels is absent. Warns (RuntimeWarning) when two spikes are nearer than their fluctuation,
    so that the eigenvectors mix. Raises ValueError for bad input. Source: P1, Theorems 2–4; laws of chapter `bbp`.
    """
    ratios = check(chapter.delta, delta), check(chapter.gamma, gamma), check(chapter.signal, signal)
    if model not in MODELS:
        raise ValueError(f"model must be one of {', '.join(MODELS)}, got {model!r}")
    matrix = correlation_matrix(correlation)
    vector = _weights(weights, matrix.shape[0])
    size = scalar(chapter.dimension, dimension)
    pooling = {
        chapter.kappa: float(vector @ vector),
        chapter.alpha: max(float(vector @ matrix @ vector), 0.0),
        chapter.weight_sum: float(vector.sum()),
    }
    one = np.vectorize(lambda *values: _recovery(values, pooling, model, centred, size), otypes=[object])
    return plain(one(*ratios)) if any(part.ndim for part in ratios) else _recovery(ratios, pooling, model, centred, size)


def _weights(weights: Any, length: int) -> Any:
    vector = real_array("weights", weights, "one pooling weight a position")
    if vector.shape != (length,):
        raise ValueError(f"weights must have the shape ({length},) of the correlation's rows, got {vector.shape}")
    if not vector.any():
        raise ValueError("weights must not all be 0: the pooled vector would be 0 (give at least one nonzero weight)")
    return vector


def _recovery(ratios: Any, pooling: dict[Any, float], model: str, centred: bool, dimension: float) -> Recovery:
    delta, gamma, signal = map(float, ratios)
    values = {chapter.delta: delta, chapter.gamma: gamma, chapter.signal: signal, **pooling}
    kappa = pooling[chapter.kappa]
    low, high = WishartProduct(delta, gamma, kappa).support()
    spikes = _spikes(values, model, centred)
    _warn_if_mixed(spikes, dimension)
    outliers = (_outlier(kind, theta, cosine, values) for kind, theta, cosine in spikes)
    return Recovery(high, low, tuple(outlier for outlier in outliers if outlier), kappa, pooling[chapter.alpha])


def _spikes(values: dict[Any, float], model: str, centred: bool) -> list[tuple[str, float, float]]:
    """Kind, strength, and squared cosine between the spike and the direction that its overlap is taken with."""
    if model == "decoupled":
        return [("signal", _value("decoupled_spike", values), 1.0)]
    # Without signal there is no direction u; the outlier along a remains, and its overlap with any fixed u is 0.
    spikes = [("signal", _value("token_signal_spike", values), _value("signal_cosine", values))]
    if not centred:
        spikes.append(("vocabulary-mean", _value("token_vocabulary_spike", values), 1.0))
    return spikes


def _warn_if_mixed(spikes: list[tuple[str, float, float]], dimension: float) -> None:
    if len(spikes) < 2:
        return
    first, second = (theta for _, theta, _ in spikes)
    spread = float(_compiled("norm_spread_law")(dimension))
    if abs(first - second) < MIXING * spread * max(first, second):
        warnings.warn(
            f"the signal spike ({first:.4g}) and the vocabulary-mean spike ({second:.4g}) are nearer than their "
            f"fluctuation at d = {dimension:.0f}: their eigenvectors mix; centre the samples to remove the second",
            RuntimeWarning,
            stacklevel=4,
        )


def _outlier(kind: str, theta: float, cosine: float, values: dict[Any, float]) -> Outlier | None:
    shift = theta - values[chapter.delta]
    values = {**values, chapter.shift: shift}
    if theta <= 0:
        return None
    side = "above" if shift > 0 else "below"
    population = _exists("population", side, theta, values)
    if not population:  # the sample transition is the stronger condition on either side
        return None
    sample = _exists("sample", side, theta, values)
    kappa = values[chapter.kappa]
    return Outlier(
        kind=kind,
        side=side,
        theta=theta,
        population_location=kappa * _value("population_location_law", values),
        population_overlap=cosine * _value("population_overlap_law", values),
        sample_location=kappa * _value("sample_location_law", values) if sample else None,
        sample_overlap=cosine * _value("sample_overlap_law", values) if sample else 0.0,
        detectable_population=population,
        detectable_sample=sample,
    )


def _exists(level: str, side: str, theta: float, values: dict[Any, float]) -> bool:
    """Whether θ is beyond the transition; below the bulk only where the bulk leaves a gap to 0."""
    if side == "above":
        return theta > _value(f"{level}_threshold_law", values)
    others = (1.0,) if level == "population" else (1.0, values[chapter.gamma])
    return values[chapter.delta] > max(others) and theta < _value(f"{level}_threshold_below", values)


def _value(name: str, values: dict[Any, float]) -> float:
    compiled = _compiled(name)
    return float(compiled(*(values[symbol] for symbol in _arguments(name))))


@lru_cache
def _arguments(name: str) -> tuple[Any, ...]:
    """The symbols of a law's right side; the ratio delta first, so that thresholds read naturally."""
    symbols = getattr(chapter, name).right.free_symbols
    return tuple(sorted(symbols, key=lambda symbol: (symbol != chapter.delta, symbol.name)))


@lru_cache
def _compiled(name: str) -> Any:
    return function(getattr(chapter, name).right, _arguments(name))
