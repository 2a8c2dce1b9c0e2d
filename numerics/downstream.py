"""Accuracy of ridge regression on pooled sequences, and the penalty that makes it best.

Every formula is compiled from `derivations.downstream`; this module adds the root of the cubic, the common factor
behind a correlation matrix, the average over sign patterns, and the checks of user input.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from derivations import downstream as chapter
from derivations.bbp import alpha, kappa, norm_a, signal, signal_norm
from derivations.wishart_product import delta as _delta
from derivations.wishart_product import gamma as _gamma
from numerics.attention_weights import correlation_matrix
from numerics.compile import function
from numerics.validate import check, plain, real_array

Array = NDArray[np.float64]

PATTERNS = ("exact", "gaussian")
TAIL = 9.0  # standard deviations beyond which a Gaussian tail (1e-19) is dropped
ENUMERATED = 20  # random signs up to which every pattern is visited
LARGEST_RULE = 200_000  # nodes of the midpoint rule
ROUNDING = 1e-9  # entries of a correlation matrix are trusted to this


def loadings(correlation: Any) -> Array:
    """The mean of each sign (shape (T,)) when the label is +1: the common factor behind a correlation matrix.

    The label is the common sign of the correlated positions: R_st = m_s m_t for s ≠ t, and m is 0 at positions that are
    correlated with no other. With two correlated positions both have m = ±√|R|. The result has a sum ≥ 0. Raises
    ValueError if no two positions are correlated, or if the matrix is not that of one common sign.
    """
    matrix = correlation_matrix(correlation, "correlation")
    beside = matrix - np.diag(np.diag(matrix))
    tied = np.flatnonzero(np.abs(beside).max(axis=1) > ROUNDING)
    if not tied.size:
        raise ValueError(
            "correlation must tie at least two positions, got none: without a common sign the sequences have no label"
        )
    result = np.zeros(len(matrix))
    result[tied] = _common_factor(beside[np.ix_(tied, tied)])
    mismatch = np.outer(result, result) - matrix
    np.fill_diagonal(mismatch, 0.0)
    if np.abs(mismatch).max() > ROUNDING or np.abs(result).max() > 1 + ROUNDING:
        raise ValueError(
            "correlation must be that of one common sign seen through independent flips (R_st = m_s m_t with |m| <= 1 "
            f"for s != t), got a matrix that differs from the nearest such one by {np.abs(mismatch).max():.3g}"
        )
    return np.clip(result if result.sum() >= 0 else -result, -1.0, 1.0)


def _common_factor(block: Array) -> Array:
    """m with block_st = m_s m_t off the diagonal, if there is one: from one triple, or √|R| for a pair."""
    if len(block) == 2:
        root = math.sqrt(abs(block[0, 1]))
        return np.array([root, math.copysign(root, block[0, 1])])
    first, second = np.unravel_index(np.argmax(np.abs(block)), block.shape)
    third = max((k for k in range(len(block)) if k not in (first, second)), key=lambda k: abs(block[first, k]))
    if block[second, third] == 0:
        return np.zeros(len(block))
    square = block[first, second] * block[first, third] / block[second, third]
    if square <= 0:
        return np.zeros(len(block))
    factor: Array = block[first] / math.sqrt(square)
    factor[first] = math.sqrt(square)
    return factor


def shrinkage(delta: Any, gamma: Any, ridge: Any) -> Any:
    """(1/d) tr S(S + ridge κ)⁻¹ for d/V = delta >= 0, d/N = gamma >= 0 and ridge >= 0 (inf gives 0); all broadcast.

    The root of the law `ridge-shrinkage` in (0, min(1, 1/delta, 1/gamma)); the end of that interval at ridge = 0.
    Raises ValueError for values outside.
    """
    first, second, penalty = np.broadcast_arrays(_ratio(_delta, delta), _ratio(_gamma, gamma), _penalty(ridge))
    return plain(_shrinkage(first, second, penalty))


def _shrinkage(delta: Array, gamma: Array, ridge: Array) -> Array:
    """Bisection in doubles, then Newton steps on the law's own equation, where τ is neither of the ends."""
    end = 1 / np.maximum(np.maximum(delta, gamma), 1.0)
    inner = (ridge > 0) & np.isfinite(ridge)
    target = np.where(inner, ridge, 1.0)
    law, slope = _compiled("shrinkage")
    low, high = np.zeros(end.shape), end.copy()
    with np.errstate(divide="ignore", over="ignore"):
        for _ in range(60):
            middle = (low + high) / 2
            above = law(delta, gamma, middle) > target
            low, high = np.where(above, middle, low), np.where(above, high, middle)
        root = (low + high) / 2
        for _ in range(2):
            moved = root - (law(delta, gamma, root) - target) / slope(delta, gamma, root)
            root = np.where((moved > 0) & (moved < end), moved, root)
    return np.where(inner, root, np.where(ridge > 0, 0.0, end))


def separation(delta: Any, gamma: Any, signal: Any, weights: Any, correlation: Any, ridge: Any) -> Any:
    """Q = ⟨β, a⟩/√(κ βᵀW′β), in units of 1/weights; arguments as for `accuracy`. Law `ridge-separation`.

    Given the signs ξ and the label y, the score of a fresh sequence times y, in units of its noise, is Q y Σ w_t ξ_t
    plus a standard Gaussian. Infinite where the vocabulary spans fewer than d dimensions and neither penalty nor signs
    add noise.
    """
    vector, mean = _pooling(weights, correlation)
    return plain(_separation(_inputs(delta, gamma, signal, ridge), vector, mean))


def _separation(inputs: tuple[Array, Array, Array, Array], weights: Array, mean: Array) -> Array:
    delta, gamma, size, ridge = inputs
    return _separation_at(delta, gamma, size, weights, mean, _shrinkage(delta, gamma, ridge))


def _separation_at(delta: Array, gamma: Array, size: Array, weights: Array, mean: Array, kept: Array) -> Array:
    norm = _compiled("norm")(delta, size)
    drive, noise, strength = _moments(weights, mean)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.asarray(_compiled("separation")(delta, gamma, norm, drive, noise, strength, kept), dtype=float)
    return np.where(np.broadcast_to(norm == 0, value.shape) | (drive == 0), 0.0, value)


def _moments(weights: Array, mean: Array) -> tuple[float, float, float]:
    """ω, κ and α of the pooled sign."""
    drive = float(weights @ mean)
    return drive, float(weights @ weights), drive**2 + float(weights**2 @ (1 - mean**2))


def accuracy(
    delta: Any,
    gamma: Any,
    signal: Any,
    weights: Any,
    correlation: Any,
    ridge: Any,
    pattern: str = "exact",
) -> Any:
    """Probability that ridge regression on pooled sequences gives a fresh sequence its right label.

    The label is the common sign of the correlated positions. `delta` = d/V and `gamma` = d/N, >= 0 (0: the limit);
    `signal` = ‖μ‖² >= 0; `weights` (T,) and `correlation` (T, T), as one common sign makes it (see `loadings`); `ridge`
    >= 0 in units of κ = ‖w‖², so that β = (S + ridge κ)⁻¹ (1/N) Σ y c (inf: the mean classifier). All but weights and
    correlation broadcast. Centring, an intercept or neither give the same limit (law `ridge-offset`).

    pattern="exact" averages over the sign patterns of a sequence of T tokens (law `downstream-accuracy`); "gaussian" is
    the limit of long sequences (law `downstream-accuracy-gaussian`). Signs known, the score is Gaussian if no weight
    dominates or tokens are seen often (law `score-kurtosis`). Raises ValueError for values outside.
    """
    if pattern not in PATTERNS:
        raise ValueError(f"pattern must be one of {', '.join(PATTERNS)}, got {pattern!r}")
    vector, mean = _pooling(weights, correlation)
    separated = _separation(_inputs(delta, gamma, signal, ridge), vector, mean)
    if pattern == "gaussian":
        drive, _, strength = _moments(vector, mean)
        with np.errstate(invalid="ignore"):
            return plain(np.asarray(_gaussian(separated, drive, strength - drive**2)))
    known: dict[float, float] = {}
    for value in separated.flat:
        if float(value) not in known:
            known[float(value)] = pattern_accuracy(float(value), vector, mean)
    return plain(np.array([known[float(value)] for value in separated.flat]).reshape(separated.shape))


def _gaussian(separated: Array, drive: float, scatter: float) -> Array:
    """The law for long sequences; at infinite separation, its limit."""
    finite = np.where(np.isfinite(separated), separated, 1e150)
    result: Array = _compiled("gaussian")(finite, drive, scatter)
    return result


def pattern_accuracy(separation: float, weights: Any, mean: Any) -> float:
    """E Φ(Q Σ w_t ξ_t) over independent signs ξ_t of mean m_t (both of shape (T,)), for Q = `separation` >= 0 or inf.

    Up to 20 random signs every pattern is visited; beyond, the midpoint rule of the law `downstream-accuracy`, whose
    error is below 1e-15. Raises ValueError for a separation so large that the rule would need too many nodes.
    """
    vector, loading = np.asarray(weights, dtype=float), np.asarray(mean, dtype=float)
    random = (np.abs(loading) < 1) & (vector != 0)
    if math.isinf(separation) or (random.sum() <= ENUMERATED and separation * np.abs(vector).sum() > 1e3):
        return _enumerated(separation, vector, loading, random)
    height = separation * float(np.abs(vector).sum())
    distance = 2 * math.pi / (height + TAIL)
    count = math.ceil(TAIL / distance) + 1
    if count > LARGEST_RULE:
        raise ValueError(
            f"the separation {separation:.3g} is too large for {int(random.sum())} random signs (at most {ENUMERATED} "
            "can be enumerated); use a larger ridge"
        )
    total = 0.0
    for start in range(0, count, 2048):
        place = np.arange(start, min(start + 2048, count), dtype=float)
        argument = separation * _compiled("midpoint")(place, distance)
        size, angle = np.ones(place.size), np.zeros(place.size)
        for weight, one in zip(vector, loading, strict=True):
            size *= _compiled("modulus")(weight * argument, one)
            angle += _compiled("phase")(weight * argument, one)
        total += float(np.sum(_compiled("node")(place, distance, size * np.sin(angle))))
    return float(_compiled("rule")(total))


def _enumerated(separation: float, weights: Array, mean: Array, random: NDArray[np.bool_]) -> float:
    """The same by visiting every pattern of the random signs; the others are fixed by the label."""
    if random.sum() > ENUMERATED:
        raise ValueError(
            f"the separation is infinite and {int(random.sum())} signs are random (at most {ENUMERATED} can be "
            "enumerated); use a ridge > 0"
        )
    pooled, chance = np.array([float(weights[~random] @ mean[~random])]), np.ones(1)
    for weight, one in zip(weights[random], mean[random], strict=True):
        pooled = np.concatenate([pooled + weight, pooled - weight])
        chance = np.concatenate([chance * (1 + one) / 2, chance * (1 - one) / 2])
    pooled[np.abs(pooled) < 1e-12 * np.abs(weights).sum()] = 0.0  # a tie, up to rounding
    with np.errstate(invalid="ignore"):
        height = np.where(pooled == 0, 0.0, separation * pooled)
    return float(chance @ _compiled("normal")(height))


def best_ridge(delta: Any, gamma: Any, signal: Any, weights: Any, correlation: Any) -> Any:
    """The penalty (in units of κ) of the highest accuracy: 0, a positive number, or inf (the mean classifier).

    Arguments as for `accuracy`. The accuracy grows with the separation, so this is its maximum over τ: a root of the
    polynomial of the law `ridge-best`, or an end of the interval. The shape is the broadcast one.
    """
    vector, mean = _pooling(weights, correlation)
    first, second, size, _ = _inputs(delta, gamma, signal, 0.0)
    rows = zip(first.flat, second.flat, size.flat, strict=True)
    values = [_best(float(one), float(two), float(three), vector, mean) for one, two, three in rows]
    return plain(np.array(values).reshape(first.shape))


def _best(delta: float, gamma: float, size: float, weights: Array, mean: Array) -> float:
    end = 1 / max(1.0, delta, gamma)
    drive, noise, strength = _moments(weights, mean)
    norm = float(_compiled("norm")(delta, size))
    coefficients = np.array([float(part(delta, gamma, norm, drive, noise, strength)) for part in _stationarity()])
    roots = np.roots(coefficients)
    inside = roots.real[(np.abs(roots.imag) < 1e-7) & (roots.real > 0) & (roots.real < end)]
    candidates = np.array([0.0, *np.sort(inside), end])
    first, second, third = (np.full(candidates.shape, part) for part in (delta, gamma, size))
    found = _separation_at(first, second, third, weights, mean, candidates)
    best = candidates[int(np.argmax(np.nan_to_num(found, nan=-1.0, posinf=np.inf)))]
    if best in (0.0, end):
        return math.inf if best == 0.0 else 0.0
    return float(_compiled("shrinkage")[0](delta, gamma, best))


# Input and compiled laws ---------------------------------------------------------------------------------------------


def _ratio(quantity: Any, value: Any) -> Array:
    return np.asarray(check(quantity, value, closed=True), dtype=float)


def _penalty(value: Any) -> Array:
    """The penalty; infinite values stand for the mean classifier."""
    array = np.asarray(value)
    infinite = np.isposinf(array) if array.dtype.kind == "f" else np.zeros(array.shape, dtype=bool)
    finite = real_array("ridge", np.where(infinite, 0.0, array) if infinite.any() else value, chapter.ridge.meaning)
    check(chapter.ridge, finite)
    return np.where(infinite, np.inf, finite)


def _inputs(delta: Any, gamma: Any, size: Any, ridge: Any) -> tuple[Array, Array, Array, Array]:
    arrays = (
        _ratio(_delta, delta),
        _ratio(_gamma, gamma),
        np.asarray(check(signal, size), dtype=float),
        _penalty(ridge),
    )
    try:
        first, second, third, fourth = np.broadcast_arrays(*arrays)
    except ValueError as error:
        shapes = ", ".join(str(array.shape) for array in arrays)
        raise ValueError(f"delta, gamma, signal and ridge must broadcast together, got shapes {shapes}") from error
    return first, second, third, fourth


def _pooling(weights: Any, correlation: Any) -> tuple[Array, Array]:
    """The weights and the loadings of their positions; the label's sign is chosen so that ω >= 0."""
    mean = loadings(correlation)
    vector: Array = real_array("weights", weights, "one pooling weight a position")
    if vector.shape != mean.shape:
        raise ValueError(f"weights must have the shape {mean.shape} of the correlation's rows, got {vector.shape}")
    if not vector.any():
        raise ValueError("weights must not all be 0: the pooled vector would be 0 (give at least one nonzero weight)")
    return vector, mean if vector @ mean >= 0 else -mean


@lru_cache
def _compiled(name: str) -> Any:
    """Functions of the chapter's laws; their arguments in the order used above."""
    moments = (_delta, _gamma, norm_a, chapter.drive, kappa, alpha)
    place = (chapter.node, chapter.step, chapter.transform)
    rule_sum = next(found for found in chapter.accuracy_law.right.atoms(sp.Sum) if chapter.node in found.variables)
    summand = rule_sum.function
    product = sp.Mul(*(part for part in summand.args if not part.has(sp.Product) and not part.has(sp.Sum)))
    total = sp.Dummy("total")
    rule = chapter.accuracy_law.right.xreplace({rule_sum: total})
    law = chapter.ridge_shrinkage.right
    table: dict[str, Any] = {
        "shrinkage": (law, (_delta, _gamma, chapter.shrinkage)),
        "norm": (signal_norm.right, (_delta, signal)),
        "separation": (chapter.separation_law.right, (*moments, chapter.shrinkage)),
        "gaussian": (chapter.accuracy_gaussian.right, (chapter.separation, chapter.drive, chapter.spread)),
        "modulus": (chapter.sign_modulus.right, (chapter.frequency, chapter.loading)),
        "phase": (chapter.sign_phase.right, (chapter.frequency, chapter.loading)),
        "midpoint": (chapter.midpoint, place[:2]),
        "node": (product * chapter.transform, place),
        "rule": (rule, (total,)),
        "normal": (chapter.normal_distribution(chapter.frequency), (chapter.frequency,)),
    }
    compiled = function(*table[name])
    if name != "shrinkage":
        return compiled
    return compiled, function(sp.diff(law, chapter.shrinkage), table[name][1])


@lru_cache
def _stationarity() -> tuple[Any, ...]:
    """Coefficients, highest order first, of the law `ridge-best` as a polynomial in τ."""
    polynomial = sp.Poly(sp.expand(chapter.best_ridge_law.left), chapter.shrinkage)
    arguments = (_delta, _gamma, norm_a, chapter.drive, kappa, alpha)
    return tuple(function(part, arguments) for part in polynomial.all_coeffs())
