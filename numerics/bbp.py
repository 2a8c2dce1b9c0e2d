"""Outliers of a pooled covariance: both transitions, locations, overlaps, and what a set of weights recovers.

Every formula is compiled from `derivations.bbp`; this module adds the conditions under which each may be used.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import mpmath
import numpy as np

from derivations import bbp as chapter
from numerics.attention_weights import correlation_matrix
from numerics.compile import function
from numerics.validate import broadcast, check, plain, real_array, scalar
from numerics.wishart_product import WishartProduct

MODELS = ("token", "decoupled")
_RATIOS = (chapter.delta, chapter.gamma, chapter.signal)
_DIGITS = 50
_UNITS = (1e-150, 1e150)  # of the largest weight: its square is a double
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
    return plain(_evaluate("population_threshold_law", check(chapter.delta, delta)))


def sample_threshold(delta: Any, gamma: Any) -> Any:
    """Spike strength θ (in units of κ) above which the sample matrix has an outlier (law `sample-threshold`).

    `delta` = d/V > 0 and `gamma` = d/N > 0 broadcast. Raises ValueError outside the domain.
    """
    first, second = broadcast(delta=check(chapter.delta, delta), gamma=check(chapter.gamma, gamma))
    return plain(_evaluate("sample_threshold_law", first, second))


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
    ratios = broadcast(
        delta=check(chapter.delta, delta), gamma=check(chapter.gamma, gamma), signal=check(chapter.signal, signal)
    )
    if not isinstance(model, str) or model not in MODELS:
        raise ValueError(f"model must be one of {', '.join(MODELS)}, got {model!r}")
    if not isinstance(centred, bool | np.bool_):
        raise ValueError(f"centred must be True (the mean of the c_n is removed) or False, got {centred!r}")
    matrix = correlation_matrix(correlation, "correlation")
    pooling = _pooling(_weights(weights, matrix.shape[0]), matrix)
    size = scalar(chapter.dimension, dimension)
    low, high = WishartProduct(ratios[0], ratios[1], pooling[0][chapter.kappa] * pooling[1]).support()
    found = np.empty(ratios[0].shape, dtype=object)
    with np.errstate(all="ignore"):  # what leaves the range of a double is computed again with many digits
        for index in np.ndindex(found.shape):
            values = {**dict(zip(_RATIOS, (part[index] for part in ratios), strict=True)), **pooling[0]}
            edges = (low, high) if not found.shape else (float(low[index]), float(high[index]))
            found[index] = _recovery(values, pooling[1], edges, model, bool(centred), size)
    return found[()]


def _pooling(vector: Any, matrix: Any) -> tuple[dict[Any, float], float]:
    """κ, α and w̄ of the weights in units of their largest entry, which cannot overflow, and the square of that unit."""
    unit = float(np.abs(vector).max())
    scaled = vector / unit
    kappa = float(scaled @ scaled)
    if not _UNITS[0] < unit < _UNITS[1]:
        raise ValueError(f"weights must have a norm whose square is a double, got entries up to {unit:g}")
    values = {
        chapter.kappa: kappa,
        chapter.alpha: max(float(scaled @ matrix @ scaled), 0.0),
        chapter.weight_sum: float(scaled.sum()),
    }
    return values, unit**2


def _weights(weights: Any, length: int) -> Any:
    vector = real_array("weights", weights, "one pooling weight a position")
    if vector.shape != (length,):
        raise ValueError(f"weights must have the shape ({length},) of the correlation's rows, got {vector.shape}")
    if not vector.any():
        raise ValueError("weights must not all be 0: the pooled vector would be 0 (give at least one nonzero weight)")
    return vector


def _recovery(
    values: dict[Any, Any], unit: float, edges: tuple[float, float], model: str, centred: bool, dimension: float
) -> Recovery:
    kappa = values[chapter.kappa] * unit
    spikes = _spikes(values, model, centred)
    _warn_if_mixed(spikes, dimension)
    outliers = (_outlier(kind, theta, cosine, values, kappa) for kind, theta, cosine in spikes)
    low, high = edges
    return Recovery(high, low, tuple(outlier for outlier in outliers if outlier), kappa, values[chapter.alpha] * unit)


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
    spread = float(_evaluate("norm_spread_law", dimension))
    if abs(first - second) < MIXING * spread * max(first, second):
        warnings.warn(
            f"the signal spike ({first:.4g}) and the vocabulary-mean spike ({second:.4g}) are nearer than their "
            f"fluctuation at d = {dimension:.0f}: their eigenvectors mix; centre the samples to remove the second",
            RuntimeWarning,
            stacklevel=3,
        )


def _outlier(kind: str, theta: float, cosine: float, values: dict[Any, float], kappa: float) -> Outlier | None:
    values = {**values, chapter.theta: np.float64(theta)}  # division by 0 is infinite, and then mended
    if theta <= 0:
        return None
    side = "above" if theta > values[chapter.delta] else "below"
    population = _exists("population", side, theta, values)
    if not population:  # the sample transition is the stronger condition on either side
        return None
    sample = _exists("sample", side, theta, values)
    return Outlier(
        kind=kind,
        side=side,
        theta=theta,
        population_location=_location("population_location_law", values, kappa),
        population_overlap=cosine * _overlap("population_overlap_law", values),
        sample_location=_location("sample_location_law", values, kappa) if sample else None,
        sample_overlap=cosine * _overlap("sample_overlap_law", values) if sample else 0.0,
        detectable_population=population,
        detectable_sample=sample,
    )


def _exists(level: str, side: str, theta: float, values: dict[Any, float]) -> bool:
    """Whether θ is beyond the transition; below the bulk only where the bulk leaves a gap to 0."""
    if side == "above":
        return theta > _value(f"{level}_threshold_law", values)
    others = (1.0,) if level == "population" else (1.0, values[chapter.gamma])
    if values[chapter.delta] <= max(others):
        return False
    with mpmath.workdps(_DIGITS):  # the threshold is a small difference where δ hardly exceeds the others
        return bool(theta < _in_digits(f"{level}_threshold_below", values))


def _value(name: str, values: dict[Any, Any]) -> float:
    arguments = [values[symbol] for symbol in _arguments(name)]
    value = float(_compiled(name, "numpy")(*arguments))
    return value if math.isfinite(value) else float(_evaluate(name, *arguments))


def _location(name: str, values: dict[Any, float], kappa: float) -> float:
    """An eigenvalue, the factor κ included."""
    location = kappa * _value(name, values)
    if not np.isfinite(location):
        raise ValueError(f"signal and weights must leave the outlier within the range of a double, got κ = {kappa:g}")
    return location


def _overlap(name: str, values: dict[Any, float]) -> float:
    """A squared cosine: at a transition, where it vanishes, rounding may leave it slightly negative."""
    return min(max(_value(name, values), 0.0), 1.0)


def _evaluate(name: str, *arguments: Any) -> Any:
    """The right side of a law at arrays of its arguments; with many digits where a double over- or underflows."""
    arrays = np.broadcast_arrays(*arguments)
    with np.errstate(all="ignore"):
        values = np.array(_compiled(name, "numpy")(*arrays), dtype=float)
    for index in zip(*np.nonzero(~np.isfinite(np.atleast_1d(values))), strict=True):
        place = index if values.ndim else ()
        given = dict(zip(_arguments(name), (float(array[place]) for array in arrays), strict=True))
        with mpmath.workdps(_DIGITS):
            values[place] = float(_in_digits(name, given))
        if not np.isfinite(values[place]):
            shown = ", ".join(f"{symbol.name} = {value:g}" for symbol, value in given.items())
            raise ValueError(
                f"{getattr(chapter, name).left} must be within the range of a double, which it leaves at {shown}"
            )
    return values


def _in_digits(name: str, values: dict[Any, float]) -> Any:
    return mpmath.re(_compiled(name, "mpmath")(*(mpmath.mpf(float(values[symbol])) for symbol in _arguments(name))))


@lru_cache
def _expression(name: str) -> Any:
    """The right side of a law. The shift t = θ − δ is inserted, so that t + δ is θ itself and keeps its digits."""
    return getattr(chapter, name).right.subs(chapter.shift, chapter.theta - chapter.delta)


@lru_cache
def _arguments(name: str) -> tuple[Any, ...]:
    """The symbols of a law's right side; the ratio delta first, so that thresholds read naturally."""
    return tuple(sorted(_expression(name).free_symbols, key=lambda symbol: (symbol != chapter.delta, symbol.name)))


@lru_cache
def _compiled(name: str, backend: str) -> Any:
    return function(_expression(name), _arguments(name), backend)
