"""Learning curves that are one scalar equation: the interpolating (λ → 0⁺) and the Bayes-optimal estimate, emergence.

The noise on a mode is made by the error and by label noise, the error by the noise: δ² = (E(δ) + Δ/2)/(2Kn). The ratio
of E + Δ/2 to δ² falls with δ, so that there is one solution; Newton's method finds it for all sample sizes at once.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from derivations import scaling_laws as chapter
from numerics.scaling_laws.mode_sums import Terms, formula, solved
from numerics.scaling_laws.modes import Array, Modes, modes_of
from numerics.validate import broadcast, check, plain, real_array

ESTIMATORS = ("erm", "bayes")
STEPS = 200
STOP = 1e-14  # step in log δ
SMALLEST = -350.0  # log δ: beyond it the error is below 1e-300, and 0


class ModeError:
    """The error as a function of the noise level: Σ over the modes above it of a share, and the others' squares."""

    def __init__(self, share: Any) -> None:
        """`share`: the error of a mode above the noise, of second degree in strength and noise level."""
        terms = Terms(share.subs(chapter.noise_level, 1), chapter.strength)
        self.coefficients = {power: float(value) for power, value in terms.by_power.items()}

    @property
    def full(self) -> float:
        """Error of a mode far above the noise, over the square of the noise level."""
        return self.coefficients.get(0, 0.0)

    def __call__(self, delta: Array, modes: Modes) -> tuple[Array, Array]:
        """The error E and dE/d log δ."""
        count = modes.count(delta)
        above = {power: value * modes.power_sum(count, delta, power) for power, value in self.coefficients.items()}
        error = modes.tail(count) + delta**2 * sum(above.values())
        return error, delta**2 * sum((2 - power) * value for power, value in above.items())


@lru_cache
def mode_error(estimator: str) -> ModeError:
    """The errors of the two estimators, from the laws of the chapter.

    The Bayes-optimal estimate knows the spectrum: it errs by the modes that it loses and by its eigenvectors, and not
    by learned eigenvalues.
    """
    law = chapter.interpolating_error if estimator == "erm" else chapter.spiked_approximation
    return ModeError(_summand_above(law.right))


def _summand_above(expression: Any) -> Any:
    (node,) = (node for node in expression.atoms(chapter.ModeSum) if node.args[2] != 0)
    return node.args[0]


def noise_level(error: ModeError, modes: Modes, n_eff: Array, noise: Array, outputs: Array) -> tuple[Array, Array]:
    """Noise level δ and error E at these sample sizes. Modes that are all recovered without noise have δ = E = 0."""
    n_eff, noise, outputs = np.broadcast_arrays(n_eff, noise, outputs)
    reach = _level_of_noise(modes.square, noise, n_eff, outputs)  # nothing is learned
    demand = np.log(modes.square + noise / 2) - 2 * np.log(reach)  # log of (E + Δ/2)/δ²
    exact = (noise == 0) & (np.exp(demand) >= (1 - 1e-12) * error.full * modes.number)
    high = np.log(reach) + 1e-9
    with np.errstate(divide="ignore"):
        low = np.maximum(np.log(_level_of_noise(0.0, noise, n_eff, outputs)) - 1e-9, SMALLEST)
    logs = _root(error, modes, noise, demand, low, high, ~exact)
    exact |= logs <= SMALLEST + 1
    return np.where(exact, 0.0, np.exp(logs)), np.where(exact, 0.0, error(np.exp(logs), modes)[0])


def _root(error: ModeError, modes: Modes, noise: Array, demand: Array, low: Array, high: Array, wanted: Array) -> Array:
    """log δ by Newton's method within brackets, which it bisects where a step would leave them."""
    logs = high
    for _ in range(STEPS):
        value, slope = error(np.exp(logs), modes)
        total = value + noise / 2
        with np.errstate(divide="ignore", invalid="ignore"):
            excess = np.where(total > 0, np.log(total), -np.inf) - 2 * logs - demand
            step = -excess / (slope / total - 2)
        low, high = np.where(excess > 0, logs, low), np.where(excess > 0, high, logs)
        inside = (logs + step > low) & (logs + step < high) & np.isfinite(step)
        new = np.where(inside, logs + step, (low + high) / 2)
        moved, logs = np.abs(new - logs), new
        if (moved <= STOP * np.maximum(1.0, np.abs(logs)))[wanted].all():
            break
    return logs


def _level_of_noise(error: Any, noise: Array, n_eff: Array, outputs: Array) -> Array:
    values = {chapter.excess: error, chapter.noise: noise, chapter.n_eff: n_eff, chapter.outputs: outputs}
    return formula(chapter.interpolating_noise.right)(values)


def sample_size(delta: Array, error: Array, noise: Array, outputs: Array) -> Array:
    """The number of sequences over d at which the noise on a mode is δ."""
    values = {chapter.noise_level: delta, chapter.excess: error, chapter.noise: noise, chapter.outputs: outputs}
    return solved("interpolating_noise", chapter.n_eff)(values)


# -- public -----------------------------------------------------------------------------------------------------------


def _checked(n_eff: Any, noise: Any, scores: Any) -> tuple[Array, Array, Array]:
    arrays = broadcast(
        n_eff=check(chapter.n_eff, n_eff), noise=check(chapter.noise, noise), scores=checked_scores(scores)
    )
    return tuple(arrays)


def checked_scores(scores: Any) -> Array:
    meaning = "number K of independent scores of a sequence: (T² + T − 2)/2 for a softmax of T tokens"
    array = real_array("scores", scores, meaning)
    if not (array >= 1).all():
        raise ValueError(f"scores must be >= 1, got {array.min():.12g} ({meaning})")
    return np.asarray(array)


def interpolating_error(n_eff: Any, gamma: Any, noise: Any = 0.5, scores: Any = 2) -> Any:
    """E = ‖Ŝ − S₀‖²/d of the interpolating estimate (λ → 0⁺ below interpolation, 1 ≪ d), law `interpolating-error`.

    Parameters
    ----------
    n_eff : n/d > 0, sequences over the embedding dimension.
    gamma : exponent > 1/2 of a power law of modes σ_i = σ_1 i^(−γ) with Σσ² = 1, or the list of all modes σ.
    noise : variance Δ ≥ 0 of the noise on the diagonal of the target's scores.
    scores : number K of independent scores of a sequence, (T² + T − 2)/2 for a softmax of T tokens.

    Arrays broadcast (but for `gamma`). A power law has infinitely many modes: nothing is truncated. Without noise and
    above perfect recovery of a finite list, E = 0. Raises ValueError for bad input.
    """
    return plain(noise_level(mode_error("erm"), modes_of(gamma), *_checked(n_eff, noise, scores))[1])


def bayes_error(n_eff: Any, gamma: Any, noise: Any = 0.5, scores: Any = 2) -> Any:
    """E of the Bayes-optimal estimate that knows the target's spectrum; arguments of `interpolating_error`.

    Noisy labels of a softmax can be inverted, so that the noise on a mode is the same function of the error; a learned
    mode has the best eigenvalue along its eigenvector.
    """
    return plain(noise_level(mode_error("bayes"), modes_of(gamma), *_checked(n_eff, noise, scores))[1])


def emergence_of(mode: Array, modes: Modes, noise: Array, scores: Array, estimator: str) -> Array:
    """The n_eff at which a mode emerges as λ → 0⁺ or under Bayes's estimate: a closed sum."""
    delta = modes.strength(mode)
    return sample_size(delta, mode_error(estimator)(delta, modes)[0], noise, scores)


def interpolating_component(share: Any, n_eff: Any, gamma: Any, noise: Any, outputs: Any) -> Any:
    """Numbers for the node `InterpolatingError`: the error with the relative error of a mode that it names.

    `share`: a Lambda of x = δ/σ < 1, a polynomial; the other arguments, which broadcast, are numbers.
    """
    arrays = np.broadcast_arrays(*(np.asarray(value, dtype=float) for value in (n_eff, gamma, noise, outputs)))
    error, found = _relative(share), np.empty(arrays[0].shape)
    for exponent in np.unique(arrays[1]):
        chosen = arrays[1] == exponent
        rest = (array[chosen] for array in (arrays[0], arrays[2], arrays[3]))
        found[chosen] = noise_level(error, modes_of(float(exponent)), *rest)[1]
    return plain(found)


@lru_cache(maxsize=32)
def _relative(share: Any) -> ModeError:
    relative = share(chapter.noise_level / chapter.strength)
    return ModeError(chapter.strength**2 * relative)
