"""`python -m verify data FILE`: a user's own matrix, or its eigenvalues, against the law of pooled covariances.

Estimates the noise level κ from the bulk, says how well the law fits, and reads each outlier's strength and overlap off
the inverse of the spike map; errors come from simulated spikes of the strength found.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy import optimize

from derivations import bbp as chapter
from derivations import wishart_product
from numerics.attention_weights import correlation_matrix, pooling_weights
from numerics.bbp import sample_threshold
from numerics.compile import function
from numerics.largest_eigenvalue import tracy_widom_quantile
from numerics.wishart_product import WishartProduct
from verify.randomness import generator
from verify.samplers import load_sampler
from verify.tables import TableError, check_finite, read_array

Array = NDArray[np.float64]

LEVELS = 80  # quantiles that the bulk is fitted by
TRIMMED = (0.04, 0.93)  # part of the bulk that the fit looks at: outliers and edges stay outside
LEAST_EIGENVALUES = 16
LARGEST = 12_000  # of min(rows, columns): the decomposition keeps a few square matrices of that size
CHECKED = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)  # where the distribution functions are compared
FLOOR = 0.01  # difference of distribution functions that is called a fit at any size
EDGE_LEVEL = 0.999  # quantile of the Tracy–Widom law beyond which an eigenvalue is an outlier
RANK = 1e-10  # eigenvalues below this fraction of the largest are zero by rank
ALONG_MEAN = 0.5  # squared cosine with the mean from which an outlier is the vocabulary mean's
SHOWN, PRINTED = 12, 6  # outliers that are worked out, and that the text lists; the others are counted
SIMULATED, SIMULATED_SIZE = 48, 192  # draws that give an outlier's error, and their dimension
RATIOS = (1e-3, 50.0)  # of a ratio that is fitted; 0 is tried as well
CLOSE = 4.0  # errors within which a spike has the strength of the vocabulary mean
DIRECTIONS = ("vocabulary-mean", "other", "unknown")


@dataclass(frozen=True)
class Spectrum:
    """The eigenvalues that are judged (ascending), and for each of the leading ones its squared cosine with the mean.

    `samples` is N, None if unknown. `along_mean[k]` belongs to the k-th largest eigenvalue; empty if only eigenvalues
    are known. `centred` are the eigenvalues of the covariance, from which the bulk is fitted.
    """

    values: Array
    centred: Array
    samples: int | None
    along_mean: Array = field(default_factory=lambda: np.empty(0))

    @property
    def dimension(self) -> int:
        return len(self.values)


@dataclass(frozen=True)
class Bulk:
    """The fitted law: ratios, noise level with its relative error, misfit of the log quantiles, and what was fitted."""

    delta: float
    gamma: float
    kappa: float
    kappa_error: float
    misfit: float
    fitted: tuple[str, ...]

    @property
    def law(self) -> WishartProduct:
        return WishartProduct(self.delta, self.gamma, self.kappa)


@dataclass(frozen=True)
class Comparison:
    """Distribution functions at one point: measured minus law, and what the law's own fluctuations allow."""

    level: float
    eigenvalue: float
    difference: float
    allowed: float


@dataclass(frozen=True)
class Found:
    """An outlier: its eigenvalue, the strength of its spike (in units of κ) and squared overlap, with standard errors.

    `kind` says what it is and `why` by which evidence. `signal` is ‖μ‖² in units of the noise variance, where weights
    and correlation are known; negative values are within the error of none.
    """

    eigenvalue: float
    side: str
    strength: float
    strength_error: float
    overlap: float
    overlap_error: float
    kind: str
    why: str
    along_mean: float | None = None
    signal: float | None = None
    signal_error: float | None = None


@dataclass(frozen=True)
class Report:
    """Everything that is said about a file."""

    file: str
    dimension: int
    samples: int | None
    vocabulary: int | None
    bulk: Bulk
    edges: tuple[float, float]
    thresholds: tuple[float, float]
    zeros: tuple[int, float]
    comparisons: tuple[Comparison, ...]
    fits: bool
    verdict: str
    outliers: tuple[Found, ...]
    more_outliers: int
    notes: tuple[str, ...]


# -- from a file to a spectrum ----------------------------------------------------------------------------------------


def spectrum_of(path: Path, array: NDArray[Any], samples: int | None) -> Spectrum:
    """Eigenvalues from a matrix of samples (one a row), or the array itself where it has one axis or one column.

    Raises TableError for a constant array, a single row, too few eigenvalues, or negative ones.
    """
    check_finite(path, array)
    if array.ndim == 2 and array.shape[1] > 1:
        return _from_matrix(path, array, samples)
    values = np.sort(np.asarray(array, dtype=float).ravel())
    if len(values) < LEAST_EIGENVALUES:
        raise TableError(f"{path}: at least {LEAST_EIGENVALUES} eigenvalues are needed, got {len(values)}")
    if values[0] == values[-1]:
        raise TableError(f"{path}: constant: all {len(values)} eigenvalues are {values[0]:.6g}")
    if values[0] < -1e-6 * values[-1]:
        raise TableError(f"{path}: eigenvalues of a covariance must be >= 0, got {values[0]:.6g}")
    values = np.maximum(values, 0.0)
    return Spectrum(values, values, samples)


def _from_matrix(path: Path, matrix: NDArray[Any], samples: int | None) -> Spectrum:
    rows, columns = matrix.shape
    if rows == 1:
        raise TableError(f"{path}: one row: a covariance needs several samples, one a row (transpose the matrix?)")
    if samples is not None and samples != rows:
        raise TableError(f"{path}: --samples {samples} contradicts the file, which has {rows} rows (one a sample)")
    if min(rows, columns) > LARGEST:
        raise TableError(f"{path}: the smaller side must be at most {LARGEST}, got {rows} × {columns}; take fewer rows")
    if min(rows, columns) < LEAST_EIGENVALUES:
        raise TableError(f"{path}: at least {LEAST_EIGENVALUES} rows and columns are needed, got {rows} × {columns}")
    gram, mean, scale = _gram(matrix)
    wide = rows < columns
    if wide:
        ones = np.full(rows, 1.0 / rows)
        towards = gram @ ones  # (1/N) X c̄, since gram = X Xᵀ/N
        centred = gram - towards[:, None] - towards[None, :] + ones @ towards
    else:
        centred = gram - np.outer(mean, mean)
    covariance = _padded(scipy.linalg.eigvalsh(centred, check_finite=False), columns) * (rows / (rows - 1))
    if not covariance[-1] > 1e-14 * max(float(np.trace(gram)), np.finfo(float).tiny):
        raise TableError(f"{path}: constant: every row is the same, so there is nothing but a mean")
    values, vectors = scipy.linalg.eigh(gram, check_finite=False)
    leading = vectors[:, ::-1][:, : 4 * SHOWN]
    square = float(mean @ mean)
    if wide:
        norms = np.sqrt(np.maximum(rows * values[::-1][: leading.shape[1]], np.finfo(float).tiny))
        projected = rows * (leading.T @ towards) / norms  # ⟨v, c̄⟩ with v = Xᵀu/√(Nλ)
    else:
        projected = leading.T @ mean
    along = projected**2 / square if square > 0 else np.zeros(leading.shape[1])
    return Spectrum(_padded(values, columns) * scale**2, covariance * scale**2, rows, along)


def _gram(matrix: NDArray[Any]) -> tuple[Array, Array, float]:
    """(1/N) XᵀX (or X Xᵀ where that is smaller), the mean row, and the scale that both are divided by."""
    rows, columns = matrix.shape
    block = max(1, min(rows, 2**25 // columns))
    blocks = [slice(start, min(start + block, rows)) for start in range(0, rows, block)]
    scale = max(float(np.abs(np.asarray(matrix[part], dtype=float)).max()) for part in blocks) or 1.0
    mean = sum((np.asarray(matrix[part], dtype=float) / scale).sum(axis=0) for part in blocks) / rows
    if rows < columns:
        whole = np.asarray(matrix, dtype=float) / scale
        return whole @ whole.T / rows, np.asarray(mean), scale
    gram = np.zeros((columns, columns))
    for part in blocks:
        piece = np.asarray(matrix[part], dtype=float) / scale
        gram += piece.T @ piece
    return gram / rows, np.asarray(mean), scale


def _padded(values: Array, size: int) -> Array:
    """Eigenvalues, ascending, with the zeros that the smaller Gram matrix does not show."""
    result = np.zeros(size)
    result[size - len(values) :] = np.maximum(values, 0.0)
    return result


# -- the bulk ---------------------------------------------------------------------------------------------------------


def fit_bulk(values: Array, delta: float | None, gamma: float | None) -> Bulk:
    """The law whose quantiles are nearest to the sorted eigenvalues; a ratio that is None is fitted as well.

    κ is the exponential of the median difference of log quantiles; unknown ratios minimise the mean square of the rest.
    Eigenvalues near the edges and among the largest are left out, so that outliers do not matter.
    """
    fitted = tuple(name for name, ratio in (("delta", delta), ("gamma", gamma)) if ratio is None)
    if not fitted:
        assert delta is not None and gamma is not None
        return _at_ratios(values, delta, gamma, ())
    if len(fitted) == 1:
        known = gamma if delta is None else delta
        assert known is not None
        order = (lambda ratio: (ratio, known)) if delta is None else (lambda ratio: (known, ratio))
        best = _best_ratio(lambda ratio: _misfit(values, *order(ratio))[1], zero=known > 0)
        first, second = order(best)
        return _at_ratios(values, first, second, fitted)

    first, second = _best_pair(lambda one, other: _misfit(values, one, other)[1])
    return _at_ratios(values, first, second, fitted)


def _best_pair(distance: Any) -> tuple[float, float]:
    """The minimiser of a distance that is symmetric in both ratios: their sum is known better than their split."""

    def ratios(place: Any) -> tuple[float, float]:
        total, share = math.exp(min(max(place[0], -7.0), 4.0)), 0.5 / (1 + math.exp(-place[1]))
        return share * total, (1 - share) * total

    starts = [(math.log(total), split) for total in (0.1, 0.5, 1.5, 5.0) for split in (-2.0, 2.0)]
    start = min(starts, key=lambda place: distance(*ratios(place)))
    found = optimize.minimize(
        lambda place: distance(*ratios(place)),
        start,
        method="Nelder-Mead",
        options={"xatol": 5e-3, "fatol": 1e-6, "maxiter": 150},
    )
    return ratios(found.x)


def _best_ratio(distance: Any, zero: bool, points: int = 25) -> float:
    """The minimiser of a distance over a ratio: a grid of logarithms, then a search around its best point."""
    grid = np.linspace(math.log(RATIOS[0]), math.log(RATIOS[1]), points)
    heights = [distance(math.exp(place)) for place in grid]
    best = int(np.argmin(heights))
    around = (grid[max(best - 1, 0)], grid[min(best + 1, points - 1)])
    found = optimize.minimize_scalar(
        lambda place: distance(math.exp(place)), bounds=around, method="bounded", options={"xatol": 2e-3}
    )
    ratio, height = (
        (math.exp(found.x), found.fun) if found.fun < heights[best] else (math.exp(grid[best]), heights[best])
    )
    # Zero is the simpler law: it is kept unless a positive ratio is nearer by more than rounding.
    return 0.0 if zero and distance(0.0) <= height * (1 + 1e-3) else float(ratio)


def _misfit(values: Array, delta: float, gamma: float) -> tuple[float, float, float]:
    """log κ, the root mean square difference of log quantiles from it, and the standard error of log κ."""
    law, size = WishartProduct(delta, gamma), len(values)
    atom, zeros = float(law.atom), int(np.count_nonzero(values <= RANK * values[-1]))
    rank = max(atom, zeros / size)  # what is zero on one side only is judged by its number
    low, high = (rank + part * (1 - rank) for part in TRIMMED)
    places = np.unique(np.round(np.linspace(low * size, high * size, LEVELS)).astype(int))
    places = places[(places >= zeros) & (places < size)]
    expected, measured = np.asarray(law.ppf((places + 0.5) / size)), values[places]
    usable = expected > 0
    if usable.sum() < 4:
        return math.nan, math.inf, math.inf
    ratio = np.log(measured[usable]) - np.log(expected[usable])
    level = float(np.median(ratio))
    distance = float(np.sqrt(np.mean((ratio - level) ** 2)))
    error = 1.2533 * float(np.std(ratio)) / math.sqrt(usable.sum())
    return level, distance + abs(zeros / size - atom), error


def _at_ratios(values: Array, delta: float, gamma: float, fitted: tuple[str, ...]) -> Bulk:
    level, distance, error = _misfit(values, delta, gamma)
    if not math.isfinite(level):
        raise TableError(
            f"the eigenvalues leave no bulk to fit at delta = {delta:.4g} and gamma = {gamma:.4g}: nearly all are 0 "
            "there or by the law; check --vocabulary and --samples"
        )
    return Bulk(delta, gamma, math.exp(level), error, distance, fitted)


def compare(values: Array, bulk: Bulk) -> tuple[Comparison, ...]:
    """Measured minus predicted distribution function at fixed levels of the law's continuous part, and at 0.

    At 0 (shown as the smallest eigenvalue that counts as one) the zeros by rank are compared with the law's atom.
    """
    law, size = bulk.law, len(values)
    atom = float(law.atom)
    levels = atom + np.array(CHECKED) * (1 - atom)
    places = np.asarray(law.ppf(levels))
    # Number variance of a half line, Gaussian orthogonal class: (1/π²)(log 2πd + γ + 1 − π²/8), in eigenvalues.
    variance = (math.log(2 * math.pi * size) + np.euler_gamma + 1 - math.pi**2 / 8) / math.pi**2
    allowed = FLOOR + 4 * math.sqrt(variance) / size
    if atom > 0 or values[0] <= RANK * values[-1]:
        levels, places = np.append(atom, levels), np.append(RANK * values[-1], places)
    measured = np.searchsorted(values, places, side="right") / size
    return tuple(
        Comparison(float(level), float(place), float(found - level), allowed)
        for level, place, found in zip(levels, places, measured, strict=True)
    )


def verdict_on(comparisons: Sequence[Comparison]) -> tuple[bool, str]:
    """Whether the law fits, and in words how it does not."""
    worst = max(comparisons, key=lambda one: abs(one.difference))
    if abs(worst.difference) <= worst.allowed:
        return True, f"the bulk fits: distribution functions differ by at most {abs(worst.difference):.4f}"
    if abs(comparisons[0].difference) > comparisons[0].allowed and len(comparisons) > len(CHECKED):
        excess = "more" if comparisons[0].difference > 0 else "fewer"
        return False, (
            f"the bulk does not fit: {excess} eigenvalues are zero than the law has (fraction "
            f"{comparisons[0].level + comparisons[0].difference:.3f} against {comparisons[0].level:.3f}): "
            "the rank is not min(V, N)"
        )
    low = sum(one.difference for one in comparisons[-len(CHECKED) :][:3])
    high = sum(one.difference for one in comparisons[-3:])
    if low > 0 > high:
        shape = (
            "small and large eigenvalues are both more frequent than in the law: the noise is not alike in all "
            "directions (anisotropic or heavy-tailed), or fewer tokens or samples are independent than stated"
        )
    elif low < 0 < high:
        shape = (
            "the spectrum is narrower than the law: more independent tokens or samples than stated, or rows that were "
            "normalised or whitened"
        )
    else:
        side = "below" if worst.difference > 0 else "above"
        shape = f"mass is missing on one side: too many eigenvalues lie {side} the quantile {worst.level:.2f}"
    return False, (
        f"the bulk does not fit: at the law's quantile {worst.level:.2f} the measured distribution function differs by "
        f"{worst.difference:+.3f} (allowed {worst.allowed:.3f}); {shape}"
    )


# -- outliers ---------------------------------------------------------------------------------------------------------


def edge_scale(bulk: Bulk, dimension: int, edge: str) -> float:
    """The scale of the extreme eigenvalue's fluctuation at a soft edge: (dA)^(−2/3), density (A/π)√distance there."""
    low, high = bulk.law.support()
    distance = 1e-8 * (high - low)
    slope = math.pi * float(bulk.law.pdf_near_edge(distance, edge)) / math.sqrt(distance)
    return float((dimension * slope) ** (-2 / 3))


def limits(bulk: Bulk, dimension: int) -> tuple[float, float]:
    """The eigenvalues beyond which one is an outlier, below and above; the lower is 0 where the bulk reaches to 0."""
    low, high = (float(edge) for edge in bulk.law.support())
    quantile = float(tracy_widom_quantile(EDGE_LEVEL, beta=1))
    slack = 3 * bulk.kappa_error
    above = high * (1 + slack) + quantile * edge_scale(bulk, dimension, "upper")
    hard = low <= 1e-9 * high or bulk.delta <= max(1.0, bulk.gamma)
    below = 0.0 if hard else low * (1 - slack) - quantile * edge_scale(bulk, dimension, "lower")
    return max(below, 0.0), above


@lru_cache
def _compiled(name: str) -> Any:
    laws = {
        "location": (chapter.sample_location_law, (chapter.shift, wishart_product.delta, wishart_product.gamma)),
        "overlap": (chapter.sample_overlap_law, (chapter.shift, wishart_product.delta, wishart_product.gamma)),
        "below": (chapter.sample_threshold_below, (wishart_product.delta, wishart_product.gamma)),
    }
    law, arguments = laws[name]
    return function(law.right, arguments)


def invert(eigenvalue: float, bulk: Bulk, side: str = "above") -> tuple[float, float]:
    """Strength (in units of κ) and squared overlap of the spike behind an eigenvalue above (or below) the bulk.

    Inside the bulk's edges: the threshold itself and 0.
    """
    delta, gamma = bulk.delta, bulk.gamma
    location, overlap = _compiled("location"), _compiled("overlap")
    target, start = eigenvalue / bulk.kappa, _threshold(bulk, side) - delta
    edge = float(location(start, delta, gamma))
    if target <= edge if side == "above" else target >= edge:
        return delta + start, 0.0
    ends = (start, 2 * max(target, start)) if side == "above" else (-delta, start)
    shift = float(optimize.brentq(lambda t: float(location(t, delta, gamma)) - target, *ends, xtol=1e-13))
    return delta + shift, float(overlap(shift, delta, gamma))


def _threshold(bulk: Bulk, side: str) -> float:
    """The strength at which an outlier leaves the bulk; where one ratio is 0, that of Marchenko–Pastur."""
    if side == "below":
        return float(_compiled("below")(bulk.delta, bulk.gamma))
    if bulk.delta and bulk.gamma:
        return float(sample_threshold(bulk.delta, bulk.gamma))
    return bulk.delta + math.sqrt(max(bulk.delta, bulk.gamma))


def errors_of(strength: float, bulk: Bulk, dimension: int, seed: int, side: str = "above") -> tuple[float, float]:
    """Standard errors of a strength and of its overlap, from simulated spikes that are inverted in the same way.

    The simulation is smaller than the data where that saves time; fluctuations shrink as 1/√d. The error of κ is added.
    """
    size = min(dimension, SIMULATED_SIZE)
    parameters = {
        "delta": max(bulk.delta, 1e-4),
        "gamma": max(bulk.gamma, 1e-4),
        "alpha": 1.0,
        "kappa": 1.0,
        "signal": strength,
    }
    sample, unit = load_sampler("decoupled"), Bulk(bulk.delta, bulk.gamma, 1.0, 0.0, 0.0, ())
    pairs = []
    for replicate in range(SIMULATED):
        drawn = sample(size, generator(seed, "data", size, replicate), parameters, {"side": side})
        found, overlap = invert(float(drawn["sample_location"]), unit, side)
        pairs.append((found, overlap - float(drawn["sample_overlap"])))
    spread = np.std(pairs, axis=0, ddof=1) * math.sqrt(size / dimension)
    location = float(_compiled("location")(strength - bulk.delta, bulk.delta, bulk.gamma))
    moved = [invert(location * math.exp(sign * bulk.kappa_error), unit, side) for sign in (-1, 1)]
    level = [abs(second - first) / 2 for first, second in zip(*moved, strict=True)]
    return math.hypot(float(spread[0]), level[0]), math.hypot(float(spread[1]), level[1])


@dataclass(frozen=True)
class Pooling:
    """What weights and correlation say: κ = ‖w‖², α = wᵀRw and w̄ = Σ w (α is None without a correlation)."""

    noise: float
    strength: float | None
    total: float

    @classmethod
    def of(cls, weights: Array | None, correlation: Array | None) -> Pooling | None:
        if weights is None:
            return None
        strength = None if correlation is None else float(weights @ correlation @ weights)
        return cls(float(weights @ weights), strength, float(weights.sum()))

    def values(self, delta: float) -> dict[Any, float]:
        known = {chapter.kappa: self.noise, chapter.weight_sum: self.total, wishart_product.delta: delta}
        return known if self.strength is None else {**known, chapter.alpha: self.strength}

    def vocabulary_strength(self, delta: float) -> float:
        """Strength of the vocabulary-mean spike, in units of κ (law `token-vocabulary-spike`)."""
        return float(chapter.token_vocabulary_spike.right.subs(self.values(delta)))

    def signal(self, strength: float, delta: float) -> float:
        """‖μ‖² in units of the noise variance behind a strength (law `token-signal-spike`, solved for it)."""
        spike = chapter.token_signal_spike.right.subs(self.values(delta))
        slope = float(spike.diff(chapter.signal))
        return (strength - float(spike.subs(chapter.signal, 0))) / slope


def outliers_of(spectrum: Spectrum, bulk: Bulk, pooling: Pooling | None, seed: int) -> tuple[list[Found], int]:
    """The outliers above the bulk (largest first), then those below it, and how many were not worked out."""
    below, above = limits(bulk, spectrum.dimension)
    values = spectrum.values[::-1]
    high = int(np.count_nonzero(values > above))
    positive = spectrum.values[spectrum.values > RANK * spectrum.values[-1]]
    low = positive[positive < below]
    found = [_one(spectrum, bulk, pooling, seed, rank) for rank in range(min(high, SHOWN))]
    found += [_weak(float(value), spectrum, bulk, seed) for value in low[: SHOWN - len(found)]]
    return found, high + len(low) - len(found)


def _weak(value: float, spectrum: Spectrum, bulk: Bulk, seed: int) -> Found:
    """An eigenvalue between 0 and the bulk, where δ > max(1, γ): a spike weaker than the bulk's own level."""
    strength, overlap = invert(value, bulk, "below")
    error, overlap_error = errors_of(strength, bulk, spectrum.dimension, seed, "below")
    why = "between 0 and the bulk: a spike weaker than the noise along the vocabulary's own directions"
    return Found(value, "below", strength, error, overlap, overlap_error, "unknown", why)


def _one(spectrum: Spectrum, bulk: Bulk, pooling: Pooling | None, seed: int, rank: int) -> Found:
    value = float(spectrum.values[::-1][rank])
    strength, overlap = invert(value, bulk)
    error, overlap_error = errors_of(strength, bulk, spectrum.dimension, seed)
    along = float(spectrum.along_mean[rank]) if rank < len(spectrum.along_mean) else None
    kind, why = _kind(along, strength, error, bulk, spectrum.dimension, pooling)
    signal = signal_error = None
    if pooling and pooling.strength and kind != "vocabulary-mean":
        signal = pooling.signal(strength, bulk.delta)
        signal_error = error * pooling.noise / pooling.strength
    return Found(value, "above", strength, error, overlap, overlap_error, kind, why, along, signal, signal_error)


def _kind(
    along: float | None, strength: float, error: float, bulk: Bulk, dimension: int, pooling: Pooling | None
) -> tuple[str, str]:
    """What an outlier is: by its angle with the mean of the rows, or by the strength that the weights predict."""
    if along is not None:
        if along > ALONG_MEAN:
            return "vocabulary-mean", f"squared cosine {along:.2f} with the mean of the rows: centring removes it"
        return "other", f"squared cosine {along:.2f} with the mean of the rows: centring leaves it"
    if pooling is None:
        return "unknown", "give the matrix itself, or --weights, to tell the vocabulary mean from a signal"
    expected = pooling.vocabulary_strength(bulk.delta)
    spread = float(chapter.norm_spread_law.right.subs(chapter.dimension, dimension)) * expected
    distance = abs(strength - expected) / max(math.hypot(error, spread), 1e-300)
    text = f"the weights put the vocabulary mean at strength {expected:.3g}, {distance:.1f} errors away"
    return ("vocabulary-mean" if distance < CLOSE else "other"), text


# -- everything together ----------------------------------------------------------------------------------------------


def analyse(
    path: Path,
    spectrum: Spectrum,
    vocabulary: int | None = None,
    weights: Array | None = None,
    correlation: Array | None = None,
    seed: int = 0,
) -> Report:
    """The whole report on a spectrum. Raises TableError where no bulk can be fitted."""
    size, samples = spectrum.dimension, spectrum.samples
    delta = None if vocabulary is None else size / vocabulary
    gamma = None if samples is None else size / samples
    bulk = fit_bulk(spectrum.centred, delta, gamma)
    # Once more without the outliers, which push the ranks of all others down.
    count = int(np.count_nonzero(spectrum.centred > limits(bulk, size)[1]))
    if 0 < count < size // 4:
        kept = spectrum.centred[: size - count]
        bulk = fit_bulk(kept, delta, gamma)
    kept = spectrum.centred[: size - count] if count < size // 4 else spectrum.centred
    comparisons = compare(kept, bulk)
    fits, verdict = verdict_on(comparisons)
    found, more = outliers_of(spectrum, bulk, Pooling.of(weights, correlation), seed)
    zeros = int(np.count_nonzero(spectrum.centred <= RANK * spectrum.centred[-1]))
    low, high = (float(edge) for edge in bulk.law.support())
    notes = tuple(_notes(spectrum, bulk, fits, found, weights, zeros))
    return Report(
        str(path),
        size,
        samples,
        vocabulary,
        bulk,
        (low, high),
        limits(bulk, size),
        (zeros, float(bulk.law.atom) * size),
        comparisons,
        fits,
        verdict,
        tuple(found),
        more,
        notes,
    )


def _notes(
    spectrum: Spectrum, bulk: Bulk, fits: bool, found: Sequence[Found], weights: Array | None, zeros: int
) -> list[str]:
    notes = []
    if set(bulk.fitted) == {"delta", "gamma"}:
        notes.append(
            "both ratios are fitted, and the law is symmetric in them: which is d/V cannot be told; give --samples"
        )
    elif "delta" in bulk.fitted:
        size = "infinite" if bulk.delta == 0 else f"about {spectrum.dimension / bulk.delta:.0f}"
        notes.append(f"the vocabulary size is not given; the spectrum asks for one that is {size}")
    if not fits and found:
        notes.append(
            "strengths and overlaps are relative to a law that does not fit: read them as an order of magnitude"
        )
    if any(one.kind == "other" for one in found):
        notes.append(
            "an outlier that is not along the mean is a direction of large variance, not yet a signal: "
            "at μ = 0 there may be one"
        )
    expected = float(bulk.law.atom) * spectrum.dimension
    if abs(zeros - expected) > max(2.0, 0.01 * spectrum.dimension):
        notes.append(f"{zeros} eigenvalues are zero by rank, the law has {expected:.0f}")
    if weights is not None and bulk.gamma > 0 and bulk.delta > 0:
        seen = bulk.delta / bulk.gamma * float(weights @ weights) ** -1 * float(weights.sum()) ** 2
        if seen < 3 * math.log(spectrum.dimension):
            notes.append(
                f"a token is seen about {seen:.0f} times only: rare and frequent tokens push eigenvalues beyond the "
                "edge, so outliers near it prove nothing"
            )
    return notes


def text_of(report: Report) -> str:
    """The report as lines of text."""
    bulk = report.bulk
    names = {"delta": "delta = d/V", "gamma": "gamma = d/N"}
    ratios = ", ".join(
        f"{names[name]} = {getattr(bulk, name):.4g}" + (" (fitted)" if name in bulk.fitted else "") for name in names
    )
    lines = [
        f"{report.file}: {report.dimension} dimensions, {report.samples or 'unknown'} samples",
        f"bulk      {ratios}",
        f"          kappa = {bulk.kappa:.5g} ± {100 * bulk.kappa_error:.2g} %, "
        f"edges {report.edges[0]:.4g} and {report.edges[1]:.4g}",
        f"          {report.verdict}",
        "          quantile   eigenvalue   measured - law   allowed",
    ]
    lines += [
        f"          {one.level:8.3f} {one.eigenvalue:12.4g} {one.difference:+16.4f} {one.allowed:9.4f}"
        for one in report.comparisons
    ]
    lines.append(
        f"outliers  {len(report.outliers) + report.more_outliers} (beyond {report.thresholds[1]:.4g}"
        + (f" or in (0, {report.thresholds[0]:.4g}))" if report.thresholds[0] else ")")
    )
    lines += ["          " + _outlier_text(one) for one in report.outliers[:PRINTED]]
    more = report.more_outliers + len(report.outliers[PRINTED:])
    if more:
        lines.append(f"          and {more} more")
    return "\n".join([*lines, *(f"note      {note}" for note in report.notes)])


def _outlier_text(one: Found) -> str:
    parts = [
        f"{one.eigenvalue:.5g}  strength {one.strength:.4g} ± {one.strength_error:.2g} kappa",
        f"overlap {one.overlap:.3f} ± {one.overlap_error:.2g}",
        f"{one.kind} ({one.why})",
    ]
    if one.signal is not None:
        parts.insert(2, f"signal {one.signal:.3g} ± {one.signal_error:.2g}")
    return ", ".join(parts)


def draw(report: Report, spectrum: Spectrum, target: Path) -> None:
    """The picture: histogram, law, edges and outliers; below it the difference of the distribution functions."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from verify.figures import COLOURS, notation

    bulk = report.bulk
    with matplotlib.rc_context({"font.size": 11, "axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(figsize=(8, 6), layout="constrained")
        FigureCanvasAgg(figure)
        above, below = figure.subplots(2, 1, height_ratios=(3, 1))
        low, high = (edge / bulk.kappa for edge in report.edges)
        positive = spectrum.values[spectrum.values > RANK * spectrum.values[-1]] / bulk.kappa
        inside = positive[positive <= report.thresholds[1] / bulk.kappa]
        share = len(inside) / spectrum.dimension
        bins = min(80, max(15, len(inside) // 12))
        heights, edges = np.histogram(inside, bins=bins, density=True)
        above.stairs(heights * share, edges, fill=True, color=COLOURS["sky"], label="measured")
        grid = low + (high - low) * (1 - np.cos(np.linspace(0, np.pi, 600)[1:-1])) / 2
        law = WishartProduct(bulk.delta, bulk.gamma)
        above.plot(grid, law.pdf(grid), color=COLOURS["black"], lw=2, label="law")
        above.set_ylim(0, 1.25 * max(float(heights.max()) * share, float(np.quantile(law.pdf(grid), 0.9))))
        beyond = positive[positive > report.thresholds[1] / bulk.kappa]
        above.plot(beyond, [0.0] * len(beyond), "|", color=COLOURS["black"], ms=8, clip_on=False)
        styles = {"vocabulary-mean": ("v", "orange"), "other": ("o", "vermilion"), "unknown": ("s", "purple")}
        for kind in DIRECTIONS:
            places = [one.eigenvalue / bulk.kappa for one in report.outliers if one.kind == kind]
            if places:
                mark, colour = styles[kind]
                above.plot(
                    places,
                    [0.0] * len(places),
                    mark,
                    color=COLOURS[colour],
                    ms=9,
                    clip_on=False,
                    label=f"outlier, {kind}",
                )
        if report.outliers and max(one.eigenvalue for one in report.outliers) > 20 * report.edges[1]:
            above.set_xscale("log")
        above.set_xlabel(f"eigenvalue over {notation(chapter.kappa)}")
        above.set_ylabel("density")
        above.legend(frameon=False)
        fit = "fits" if report.fits else "does not fit"
        above.set_title(
            f"{Path(report.file).name}: the bulk {fit}, δ = {bulk.delta:.3g}, γ = {bulk.gamma:.3g}", loc="left"
        )
        levels = [one.level for one in report.comparisons]
        allowed = report.comparisons[0].allowed
        below.axhspan(-allowed, allowed, color="0.9", label="allowed")
        below.axhline(0.0, color="0.6", lw=0.8)
        below.plot(levels, [one.difference for one in report.comparisons], "o-", color=COLOURS["blue"])
        below.set_xlabel("quantile of the law")
        below.set_ylabel("measured − law")
        figure.savefig(target, dpi=110)


# -- command line -----------------------------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `data` with its own arguments. Exit code 0 if there is a report (whatever it says), 2 if there is none."""
    try:
        options = _parser().parse_args(sys.argv[1:] if arguments is None else list(arguments))
    except SystemExit as ended:  # argparse: 0 after --help, 2 after an error that it has printed
        return int(ended.code or 0)
    try:
        array = read_array(options.file, options.key)
        spectrum = spectrum_of(options.file, array, options.samples)
        weights, correlation = _pooling(options)
        report = analyse(options.file, spectrum, options.vocabulary, weights, correlation, options.seed)
        if options.plot is not None:
            draw(report, spectrum, options.plot)
        if options.json is not None:
            options.json.write_text(json.dumps(asdict(report), indent=1) + "\n", encoding="utf-8")
    except (TableError, ValueError) as error:
        print(f"verify data: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(
            f"verify data: {error.filename} cannot be written: {error.strerror}; choose another file", file=sys.stderr
        )
        return 2
    print(text_of(report))
    return 0


def _pooling(options: argparse.Namespace) -> tuple[Array | None, Array | None]:
    """The weights and the correlation matrix, checked. Raises TableError or ValueError that names the option."""
    if options.weights is None:
        if options.correlation is not None:
            raise TableError("--correlation needs --weights: α = wᵀRw")
        return None, None
    weights = pooling_weights(read_array(options.weights).ravel())
    if options.correlation is None:
        return weights, None
    matrix = correlation_matrix(read_array(options.correlation), "correlation")
    if len(matrix) != len(weights):
        raise TableError(f"--correlation must have a row a weight, got {len(matrix)} rows and {len(weights)} weights")
    return weights, matrix


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m verify data",
        description="Compare pooled representations (one a row), or eigenvalues (one column), with the law.",
        epilog="Formats: npy, npz, csv, parquet (with pyarrow), safetensors. Nothing is unpickled.",
    )
    parser.add_argument("file", type=Path, metavar="FILE")
    parser.add_argument("--key", help="which array of an npz, parquet or safetensors file")
    parser.add_argument("--vocabulary", type=_count, metavar="V", help="number of distinct tokens (default: fitted)")
    parser.add_argument(
        "--samples", type=_count, metavar="N", help="number of samples behind eigenvalues (default: fitted)"
    )
    parser.add_argument("--weights", type=Path, metavar="W.npy", help="pooling weights, one a position")
    parser.add_argument(
        "--correlation", type=Path, metavar="R.npy", help="correlation matrix of the signs of the positions"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the simulated errors (default: 0)")
    parser.add_argument("--json", type=Path, metavar="OUT.json", help="write the report as JSON")
    parser.add_argument("--plot", type=Path, metavar="OUT.svg", help="draw the picture (svg, png or pdf)")
    return parser


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 2:
        raise argparse.ArgumentTypeError(f"must be a whole number >= 2, got {text!r}")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
