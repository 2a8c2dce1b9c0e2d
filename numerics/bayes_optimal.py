"""Bayes-optimal estimation of an attention head at n = αd²: the noise on the target and the error, solved together.

The error over the noise falls as the noise grows, so that the solution is unique: a bracketed root in log v. Where the
noise exceeds the target the error is the target's square less the estimate's, else noise less what it hides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import sympy as sp
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from derivations import bayes_optimal as chapter
from derivations import scaling_laws as scaling
from derivations import state_evolution as equations
from derivations._expectations import SpectralTail
from derivations.spectral_learning import load, rank_share, samples_law
from numerics.compile import function
from numerics.spectral_learning import GaussianTarget, Target, target_of
from numerics.state_evolution import evaluate
from numerics.validate import check, plain, scalar

Array = np.ndarray[Any, Any]

Estimator = Callable[[Target, float], tuple[float, float]]

STOP = 1e-14  # on log v
SMALL = 1e-10  # noise over the target's square at which a target without label noise counts as recovered
ENOUGH = 1e-9  # relative residual of a solution


@dataclass(frozen=True)
class BayesOptimal:
    """The posterior mean of the target in the limit of large d; arrays of α's shape, scalars for a scalar.

    `error`: E‖Ŝ − S₀‖²/d. `overlap`: Tr Ŝ S₀/d = Tr Ŝ²/d. `delta` = √v: standard deviation of the semicircle on the
    target, in the unit of its eigenvalues (the spiked limit's δ is √(v/d)); `variance`: v itself. `recovered`: there is
    no error at all. `converged`: the two equations hold at the solution; else `note` says at how many α they do not.
    """

    alpha: Any
    error: Any
    overlap: Any
    delta: Any
    variance: Any
    recovered: Any
    converged: Any
    note: str = ""


def solve(
    alpha: ArrayLike, kappa0: float | None = None, target: Any = None, noise: float = 0.0, tokens: int = 2
) -> BayesOptimal:
    """The Bayes-optimal estimate from n = αd² sequences (laws `bayes-noise` and `bayes-error`).

    Parameters
    ----------
    alpha : α = n/d² > 0, a number or an array.
    kappa0, target : a Gaussian target of width κ₀ > 0, or the target's law or eigenvalues; exactly one of the two.
    noise : variance Δ ≥ 0 of the noise on the diagonal of the target's scores (half of it off the diagonal).
    tokens : T ≥ 2.

    Raises ValueError for bad input. The error is good to about 1e-12 of the smaller of noise and target.
    """
    ratios = check(equations.alpha, alpha)
    known = target_of(kappa0, target)
    spread, count = scalar(equations.noise, noise), scalar(equations.tokens, tokens)
    scores = float(_outputs()(count))
    found = np.array([_one(known, float(ratio), spread, scores) for ratio in ratios.ravel()])
    variance, error, square, residual = (column.reshape(ratios.shape) for column in found.T)
    converged = residual <= ENOUGH
    missed = int(np.count_nonzero(~converged))
    note = f"the equations do not hold at {missed} of {ratios.size} alpha; use another alpha nearby" if missed else ""
    return BayesOptimal(
        alpha=plain(ratios),
        error=plain(error),
        overlap=plain(square),
        delta=plain(np.sqrt(variance)),
        variance=plain(variance),
        recovered=plain(error == 0),
        converged=plain(converged),
        note=note,
    )


def recovery_threshold(kappa0: float, tokens: int = 2) -> float:
    """The α above which a target without label noise is recovered (law `recovery-by-the-noise-that-passes`).

    `kappa0` > 0: rank of the target over d (from 1 on it is full). Raises ValueError for bad input.
    """
    share = min(scalar(equations.kappa0, kappa0), 1.0)
    return float(_samples()(_threshold()(share), scalar(equations.tokens, tokens)))


def iterates(target: Target, alpha: float, noise: float, scores: float, count: int) -> tuple[tuple[float, float], ...]:
    """Errors and squares after 1, …, `count` steps of message passing from S = 0 (laws as in `solve`)."""
    return tuple(_steps(target, alpha, noise, scores, count, minimal_error))


def minimal_error(target: Target, variance: float) -> tuple[float, float]:
    """Error and square of the posterior mean of a target under semicircular noise of this variance."""
    nodes = target.nodes(variance, 0.0)
    by_noise, by_square = (
        float(compiled(variance, np.sum(nodes.weight * integrand(nodes.x, nodes.hilbert, variance))))
        for compiled, integrand in (_law("bayes_error"), _law("bayes_square"))
    )
    if variance > target.square:
        return max(target.square - by_square, 0.0), by_square
    return max(by_noise, 0.0), target.square - max(by_noise, 0.0)


def _one(
    target: Target, alpha: float, noise: float, scores: float, estimator: Estimator | None = None
) -> tuple[float, float, float, float]:
    """Variance, error, square and relative residual at one α; `estimator` gives error and square at a variance."""
    error_of = minimal_error if estimator is None else estimator

    def gap(log_variance: float) -> float:
        value = float(np.exp(log_variance))
        return float(np.log(_noise()(error_of(target, value)[0], alpha, noise, scores) / value))

    lowest = float(_noise()(0.0, alpha, noise, scores))
    if lowest == 0.0 and _recovered(target, alpha, scores):
        return 0.0, 0.0, target.square, 0.0
    low = np.log(max(lowest, SMALL * target.square if lowest == 0.0 else 0.0))
    high = np.log(float(_noise()(target.square, alpha, noise, scores)))
    while gap(high) > 1e-9:  # an error that grows with the noise
        high += 1.0
    # At the lower end nothing is left to learn: a target that is a multiple of the identity.
    root = low if gap(low) <= 0 else brentq(gap, low, high + 1e-9, xtol=STOP, rtol=1e-15)
    variance = float(np.exp(root))
    error, square = error_of(target, variance)
    residual = abs(float(_noise()(error, alpha, noise, scores)) / variance - 1)
    return variance, error, square, residual


def _recovered(target: Target, alpha: float, scores: float) -> bool:
    """Whether a weak noise comes back weaker."""
    if isinstance(target, GaussianTarget):
        return alpha * scores >= float(_threshold()(min(target.kappa0, 1.0)))
    small = SMALL * target.square
    return float(_noise()(minimal_error(target, small)[0], alpha, 0.0, scores)) <= small


def _steps(
    target: Target, alpha: float, noise: float, scores: float, count: int, error_of: Estimator
) -> Iterator[tuple[float, float]]:
    error = target.square
    for _ in range(count):
        error, square = error_of(target, float(_noise()(error, alpha, noise, scores)))
        yield error, square


# -- what claims read -------------------------------------------------------------------------------------------------


def solution_component(names: tuple[str, str], *values: Any) -> Any:
    """Numbers for the node `BayesSolution`: error or square, of a denoiser, at a fixed point or after some steps.

    `values` (which broadcast): α, κ₀, Δ, the number of scores, and the iteration (−1: the fixed point).
    """
    return np.vectorize(lambda *one: _component(names, tuple(map(float, one))), otypes=[float])(*values)


@lru_cache(maxsize=1024)
def _component(names: tuple[str, str], values: tuple[float, ...]) -> float:
    component, denoiser = names
    alpha, kappa0, noise, scores, last = values
    place = {"error": 0, "square": 1}[component]
    target, error_of = GaussianTarget(kappa0), ESTIMATORS[denoiser]
    if last < 0:
        return _one(target, alpha, noise, scores, error_of)[1:][place]
    return list(_steps(target, alpha, noise, scores, int(last), error_of))[-1][place]


def _without_spectrum(name: str) -> Estimator:
    """Error of an estimate by a law of v and the target's square; what its square lacks is the error (Nishimori)."""

    def error_of(target: Target, variance: float) -> tuple[float, float]:
        law = function(getattr(scaling, name).right, (equations.target_square, equations.variance))
        error = float(law(target.square, variance))
        return error, target.square - error

    return error_of


def _positive_part(target: Target, variance: float) -> tuple[float, float]:
    """The positive part of the noisy target."""
    nodes = target.nodes(variance, 0.0)
    values = {
        equations.target_square: target.square,
        equations.variance: variance,
        equations.threshold: 0.0,
        equations.scale: 1.0,
    }
    values[equations.ambiguity] = evaluate("ambiguity_law", values, nodes)
    return evaluate("distance_law", values, nodes, np.maximum(nodes.x, 0.0)), evaluate("square_law", values, nodes)


# The Bayes-optimal denoiser, and others that it is compared with.
ESTIMATORS: dict[str, Estimator] = {
    "bayes": minimal_error,
    "entries": _without_spectrum("entries_error"),
    "uncut": _without_spectrum("error_without_cut"),
    "positive": _positive_part,
}


# -- laws, compiled -------------------------------------------------------------------------------------------------


@lru_cache
def _law(name: str) -> tuple[Any, Any]:
    """A law of v and one spectral integral, and the integrand of that."""
    right, integral = getattr(chapter, name).right, sp.Symbol("integral")
    (node,) = right.atoms(SpectralTail)
    integrand = function(node.args[0], (equations.point, equations.hilbert, equations.variance))
    return function(right.xreplace({node: integral}), (equations.variance, integral)), integrand


@lru_cache
def _noise() -> Any:
    symbols = (equations.excess, equations.alpha, equations.noise, equations.outputs)
    return function(chapter.bayes_noise.right, symbols)


@lru_cache
def _outputs() -> Any:
    return function(equations.outputs_law.right, (equations.tokens,))


@lru_cache
def _threshold() -> Any:
    return function(chapter.recovery_by_passing.right, (rank_share,))


@lru_cache
def _samples() -> Any:
    return function(samples_law.right, (load, equations.tokens))
