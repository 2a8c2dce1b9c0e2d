"""Regimes of a power-law target: exponents and prefactors of the error by the laws of the chapter, and who is where.

Constants that depend on the output are those of linear or quadratic outputs with K scores, late in learning (V → 0).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import sympy as sp

from derivations import scaling_laws as chapter
from numerics.compile import function
from numerics.scaling_laws.interpolation import checked_scores, mode_error, noise_level
from numerics.scaling_laws.mode_sums import evaluate, formula, solved
from numerics.scaling_laws.modes import Array, modes_of
from numerics.scaling_laws.spiked import bulk_edge
from numerics.validate import broadcast, check, plain, real_array

# The law of each regime, and the variable in which it is a power. On the plateau nothing is learned: E = Q₀.
LAWS = {
    "noise-limited": ("noise_limited", chapter.n_eff),
    "noiseless": ("noiseless", chapter.n_eff),
    "regularisation-limited": ("regularisation_limited", chapter.n_eff),
    "bias": ("bias_limited", chapter.n_eff),
    "overfitting": ("overfitting_rate", chapter.n_eff),
    "overfitting-resolved": ("overfitting_rate_resolved", chapter.n_eff),
    "peak": ("peak", chapter.level),
}
REGIMES = ("plateau", *LAWS)


def _error_law(regime: str) -> tuple[Any, Any]:
    """The error of a regime at a fixed level of the penalty, and the variable of its power."""
    name, variable = LAWS[regime]
    right = getattr(chapter, name).right
    (unit,) = sp.solve(chapter.penalty_in_the_spiked_limit.statement, chapter.ell)
    return right.subs(chapter.ell, unit), variable


@lru_cache
def _exponent(regime: str) -> Any:
    if regime == "plateau":
        return sp.Integer(0)
    error, variable = _error_law(regime)
    return sp.simplify(variable * sp.diff(sp.expand_log(sp.log(error), force=True), variable))


def _checked(gamma: Any, regime: Any) -> Array:
    if regime not in REGIMES:
        raise ValueError(f"regime must be one of {', '.join(REGIMES)}, got {regime!r}")
    array = real_array("gamma", gamma, chapter.gamma.meaning)
    if not (array > 0.5).all():
        raise ValueError(
            f"gamma must be > 1/2, got {array.min():.12g}: the target's energy Σ i^(−2γ) would be infinite"
        )
    return np.asarray(array)


def exponent(gamma: Any, regime: str) -> Any:
    """The exponent of the error in a regime: of n_eff at fixed λ, at the peak of λ.

    `gamma` > 1/2 may be an array; `regime` is one of REGIMES ("overfitting": λ → 0⁺ with modes buried in the noise,
    "overfitting-resolved": with every mode above it). Raises ValueError for bad input.
    """
    array = _checked(gamma, regime)
    return plain(np.broadcast_to(function(_exponent(regime), (chapter.gamma,))(array), array.shape) + 0.0)


def prefactor(
    gamma: Any,
    regime: str,
    noise: Any = 0.5,
    scores: Any = 2,
    *,
    lam: Any = 1.0,
    d: Any = 1.0,
    gain: Any = None,
) -> Any:
    """The factor before the power of n_eff (at the peak: of λ) whose exponent `exponent` gives.

    Parameters
    ----------
    gamma, regime : as in `exponent`; the target's square is 1.
    noise, scores : label noise Δ ≥ 0 and number K of scores of a sequence.
    lam, d : level λ̃ > 0 of the penalty and dimension, where the regime depends on them.
    gain : signal gain M of a sequence, by default that of linear and quadratic outputs late in learning, 4K.

    Arrays broadcast. Raises ValueError for bad input.
    """
    exponents, values = _checked(gamma, regime), _values(noise, scores)
    values |= {chapter.level: _positive("lam", lam), chapter.dimension: _positive("d", d)}
    values[chapter.mean_gain] = _late_gain(values) if gain is None else _positive("gain", gain)
    shape = np.broadcast_shapes(exponents.shape, *(np.shape(value) for value in values.values()))
    if regime == "plateau":
        return plain(np.ones(shape))
    error, variable = _error_law(regime)
    values |= {chapter.gamma: exponents, chapter.target_square: 1.0, variable: 1.0}
    values[chapter.constant] = evaluate("nuclear_constant", values)
    values[chapter.leading] = evaluate("leading_strength", values)
    return plain(np.broadcast_to(formula(error)(values), shape) + 0.0)


def _values(noise: Any, scores: Any) -> dict[Any, Any]:
    return {
        chapter.noise: check(chapter.noise, noise),
        chapter.outputs: checked_scores(scores),
        chapter.stiffness: float(chapter.stiffness_of_entries.right),
    }


def _late_gain(values: dict[Any, Any]) -> Any:
    return evaluate("linear_gain", {**values, chapter.response: 0.0})


def _positive(name: str, value: Any) -> Array:
    array = real_array(name, value)
    if not (array > 0).all():
        raise ValueError(f"{name} must be > 0, got {array.min():.12g}")
    return np.asarray(array)


def phase(n: Any, d: Any, lam: Any, gamma: float, noise: Any = 0.5, scores: Any = 2) -> Any:
    """The regime of a network with linear or quadratic outputs that is trained on n sequences.

    Parameters
    ----------
    n, d : numbers of sequences and of dimensions, > 0.
    lam : level λ̃ ≥ 0 of the penalty on eigenvalues (λ√κ).
    gamma : exponent > 1/2 of the target's power law; noise, scores : Δ ≥ 0 and K.

    Returns a name of REGIMES for each point of the broadcast shape (an array of text, or text). "plateau": no mode is
    learned. Where the penalty's cut is beyond the bulk's edge: "regularisation-limited", or "bias" and then
    "overfitting-resolved" where it is below the last mode. Else "noise-limited" or "noiseless" by whether label noise
    or the error is larger, and "peak" and "overfitting" around and beyond Kα = ¼. Raises ValueError for bad input.
    """
    power_law = float(_checked(gamma, "plateau"))
    level = check(chapter.lam, lam, name="lam")
    arrays = broadcast(n=_positive("n", n), d=_positive("d", d), lam=level, **_named(noise, scores))
    sequences, dimension, level, spread, outputs = (np.asarray(array) for array in arrays)
    values = {
        **_values(spread, outputs),
        chapter.n_eff: sequences / dimension,
        chapter.dimension: dimension,
        chapter.level: level,
        chapter.gamma: power_law,
        chapter.target_square: 1.0,
    }
    values[chapter.mean_gain] = _late_gain(values)
    names = _regime(values, power_law)
    return names if names.shape else str(names)


def _named(noise: Any, scores: Any) -> dict[str, Array]:
    return {"noise": check(chapter.noise, noise), "scores": checked_scores(scores)}


def _regime(values: dict[Any, Any], gamma: float) -> Array:
    modes = modes_of(gamma)
    delta, error = noise_level(
        mode_error("erm"), modes, values[chapter.n_eff], values[chapter.noise], values[chapter.outputs]
    )
    values = {**values, chapter.noise_level: delta, chapter.leading: modes.largest}
    values[chapter.ell] = solved("penalty_in_the_spiked_limit", chapter.ell)(values)
    edge, cut = bulk_edge()(values), evaluate("spiked_cut", values)
    unit = np.where(delta > 0, delta, 1.0)  # of strengths: squares at the bulk's edge cancel exactly
    relative = {chapter.noise_level: delta / unit, chapter.cut: np.maximum(cut, edge) / unit}
    least = unit * evaluate("recovered_strength", relative)
    beyond = cut > edge
    last = values[chapter.leading] * values[chapter.dimension] ** -gamma
    late = values[chapter.n_eff] > evaluate("peak_boundary", values)
    resolved = evaluate("overfitting_rate_resolved", values) > evaluate("bias_limited", values)
    conditions = {
        "plateau": least >= modes.largest,
        "overfitting-resolved": (least < last) & resolved & late,
        "bias": (beyond | late) & (least < last),  # beyond interpolation the cut does not stick
        "regularisation-limited": beyond,
        "peak": _at_peak(values, error),
        "overfitting": late & (values[chapter.noise] > 0),
        "noise-limited": values[chapter.noise] / 2 > error,
    }
    return np.asarray(np.select(list(conditions.values()), list(conditions), default="noiseless"))


def _at_peak(values: dict[Any, Any], error: Array) -> Array:
    """Around Kα = ¼: the peak's error is below that without a penalty, and above that of the modes alone."""
    load = values[chapter.n_eff] / values[chapter.dimension]
    with np.errstate(divide="ignore", invalid="ignore"):
        free = np.abs(evaluate("overfitting", {**values, chapter.alpha: load}))
        bound = evaluate("peak", values)
    return np.asarray((values[chapter.noise] > 0) & (values[chapter.level] > 0) & (free > bound) & (bound > error))
