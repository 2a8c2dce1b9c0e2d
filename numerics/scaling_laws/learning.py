"""Learning curves at finite penalty: the learned matrix, its error by causes, the critical and the best penalty.

Everything here is the spiked limit, d → ∞ at fixed n/d. A curve is one call; each of its points is solved on its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from derivations import scaling_laws as chapter
from numerics.error_causes import ErrorCauses
from numerics.scaling_laws.interpolation import (
    ESTIMATORS,
    checked_scores,
    emergence_of,
    mode_error,
    noise_level,
)
from numerics.scaling_laws.mode_sums import solved
from numerics.scaling_laws.modes import Array, Modes, modes_of
from numerics.scaling_laws.outputs import Output, output_of
from numerics.scaling_laws.spiked import RESIDUAL, STICKING, Setting, Solver, State, bulk_edge, bulk_response
from numerics.state_evolution import NotSolvedError
from numerics.validate import broadcast, check, plain, real_array


@dataclass(frozen=True)
class LearnedModes:
    """The learned matrix in the spiked limit; arrays of the broadcast shape of `n_eff`, `ell` and `noise`.

    `error` = ‖Ŝ − S₀‖²/d; `test_error` (noisy labels) and `test_error_clean` are per sequence. Modes of the noisy
    target have noise of level `delta`, those beyond `epsilon` are kept with scale `eta`; `modes` is their number.
    `m`, `q`, `V`: overlap, square and response. `bulk_response`: what the bulk beyond the cut adds to V n W;
    `sticking`: whether the cut sticks to the bulk's edge. `residual`: largest relative change in one undamped
    iteration; `quadrature_error`: relative error of E; `converged`: whether both are small, else `note` says more.
    """

    error: Any
    test_error: Any
    test_error_clean: Any
    delta: Any
    epsilon: Any
    eta: Any
    m: Any
    q: Any
    V: Any
    modes: Any
    bulk_response: Any
    sticking: Any
    residual: Any
    quadrature_error: Any
    converged: Any
    note: Any
    underfitting: Any
    approximation: Any
    mismatch: Any

    def decomposition(self) -> ErrorCauses:
        """The error by its causes: lost modes, eigenvectors that are not the target's, learned eigenvalues."""
        nothing = plain(np.zeros(np.shape(self.error)))
        return ErrorCauses(nothing, self.underfitting, self.approximation, self.mismatch, self.modes)


class _Point(NamedTuple):
    """One row of `LearnedModes`."""

    error: float
    test_error: float
    test_error_clean: float
    delta: float
    epsilon: float
    eta: float
    m: float
    q: float
    V: float
    modes: float
    bulk_response: float
    sticking: bool
    residual: float
    quadrature_error: float
    converged: bool
    note: str
    underfitting: float
    approximation: float
    mismatch: float


def _point(
    output: Output, state: State, beyond: float, sticking: bool, residual: float = 0.0, inexact: float = 0.0
) -> _Point:
    distance = state.distance
    converged = bool(residual <= RESIDUAL and inexact <= output.tolerance)
    return _Point(
        state.error,
        *output.test_errors(distance),
        state.delta,
        state.cut,
        state.scale,
        distance.overlap,
        state.error - distance.square + 2 * distance.overlap,
        state.response,
        state.modes,
        beyond,
        sticking,
        residual,
        inexact,
        converged,
        "" if converged else _advice(output, residual, inexact),
        *state.causes,
    )


def _advice(output: Output, residual: float, inexact: float) -> str:
    if not residual <= RESIDUAL:
        return f"the residual is {residual:.2g} instead of {RESIDUAL:.0e}: use a larger n_eff or a smaller ell"
    return f"the quadratures differ by {inexact:.2g} in E instead of {output.tolerance:.0e}: use a smaller ell"


NOTHING = 1e-150  # its square is the least number that does not underflow


class _Curve:
    """Solutions for one target, label noise and output."""

    def __init__(self, modes: Modes, noise: float, output: Output) -> None:
        self.setting = Setting(modes, noise, output)
        self._solver: Solver | None = None

    @property
    def solver(self) -> Solver:
        """Made when it is needed: at ℓ = 0 it is not."""
        if self._solver is None:
            self._solver = Solver(self.setting)
        return self._solver

    def point(self, n_eff: float, ell: float) -> _Point:
        """The solution at one sample size and penalty."""
        if ell == 0:
            return self._interpolating(n_eff)
        empty = self.solver.plateau(n_eff, ell)
        if empty is not None:
            return _point(self.setting.output, empty, 0.0, False)
        found = self.solver.solve(n_eff, ell)
        state, sticking = found.problem.state(found.logs), found.problem.phase == STICKING
        beyond = max(bulk_response(found), 0.0)
        return _point(self.setting.output, state, beyond, sticking, found.size, found.quadrature_error)

    def _interpolating(self, n_eff: float) -> _Point:
        """λ → 0⁺: the labels are fitted, V → ∞ and the scale is 1."""
        modes, output = self.setting.modes, self.setting.output
        arrays = (np.asarray(value) for value in (n_eff, self.setting.noise, output.outputs))
        delta = float(noise_level(mode_error("erm"), modes, *arrays)[0])
        exact = delta == 0
        if exact:  # every mode is recovered: all but nothing in its place
            delta = NOTHING * modes.largest
        edge = float(bulk_edge()({chapter.noise_level: delta}))
        state = self.setting.state(delta, edge, 1.0, np.inf, 0.0, n_eff)
        fitted = float(solved("interpolating_gain", chapter.mean_gain)({chapter.response: 1.0, **self._outputs()}))
        beyond = n_eff * fitted - state.of_modes  # V W → K, as the scale is 1
        point = _point(output, state, beyond, True)
        if exact:
            point = point._replace(error=0.0, delta=0.0, epsilon=0.0, approximation=0.0, mismatch=0.0)
        return point

    def _outputs(self) -> dict[Any, float]:
        return {chapter.outputs: self.setting.output.outputs}


def _rows(points: list[_Point], shape: tuple[int, ...]) -> LearnedModes:
    columns = (plain(np.array(column).reshape(shape)) for column in zip(*points, strict=True))
    return LearnedModes(*columns)


def learned(
    n_eff: Any, gamma: Any, ell: Any, noise: Any = 0.5, tokens: int = 2, output: str = "softmax"
) -> LearnedModes:
    """The learned matrix in the spiked limit, d → ∞ at n = n_eff d sequences.

    Parameters
    ----------
    n_eff : n/d > 0.
    gamma : exponent > 1/2 of a power law of modes σ_i = σ_1 i^(−γ) with Σσ² = 1, or the list of all modes σ.
    ell : ℓ = λ̃ √(d/n_eff) ≥ 0, the level of the penalty (λ̃ = √κ λ); 0 is λ → 0⁺ below interpolation.
    noise : variance Δ ≥ 0 of the noise on the diagonal of the target's scores.
    tokens : T ≥ 2. Two tokens cost 0.1 s a point (E to 1e-6); more take random sequences (1 s or more, E to 1e-3).
    output : "softmax" (β = β₀ = 1), or the scores themselves: "linear" (all T(T + 1)/2 of a sequence), "quadratic"
        (each token's with itself).

    `n_eff`, `ell` and `noise` broadcast. Raises ValueError for bad input; what is not solved has `converged` False.
    """
    modes, function = modes_of(gamma), output_of(output, tokens)
    arrays = broadcast(
        n_eff=check(chapter.n_eff, n_eff), ell=check(chapter.ell, ell), noise=check(chapter.noise, noise)
    )
    shape, points = arrays[0].shape, []
    curves: dict[float, _Curve] = {}
    for count, level, spread in zip(*(array.ravel().tolist() for array in arrays), strict=True):
        curve = curves.setdefault(spread, _Curve(modes, spread, function))
        points.append(curve.point(count, level))
    function.forget()
    return _rows(points, shape)


def critical_penalty(n_eff: Any, gamma: Any, noise: Any = 0.5, tokens: int = 2, output: str = "softmax") -> Any:
    """The ℓ below which the cut sticks to the bulk's edge (law `critical-penalty`); arguments of `learned`.

    Raises ValueError for bad input, NotSolvedError where no penalty was found.
    """
    modes, function = modes_of(gamma), output_of(output, tokens)
    arrays = broadcast(n_eff=check(chapter.n_eff, n_eff), noise=check(chapter.noise, noise))
    values = [
        _critical(_Curve(modes, spread, function), count)
        for count, spread in zip(*(array.ravel().tolist() for array in arrays), strict=True)
    ]
    return plain(np.array(values).reshape(arrays[0].shape))


def _critical(curve: _Curve, n_eff: float) -> float:
    return curve.solver.critical_penalty(n_eff)


def best_penalty(n_eff: Any, gamma: Any, noise: Any = 0.5, tokens: int = 2, output: str = "softmax") -> Any:
    """The ℓ of least test error in the spiked limit; arguments of `learned`, arrays of the broadcast shape.

    With linear and quadratic outputs all ℓ up to the critical one are equally good: the critical one is returned. With
    a softmax the minimum is flat in log ℓ (found to 2e-2 or so), and few sequences are best interpolated: 0 is returned
    where no ℓ > 0 is better.
    """
    modes, function = modes_of(gamma), output_of(output, tokens)
    arrays = broadcast(n_eff=check(chapter.n_eff, n_eff), noise=check(chapter.noise, noise))
    values = [
        _best(_Curve(modes, spread, function), count, output)
        for count, spread in zip(*(array.ravel().tolist() for array in arrays), strict=True)
    ]
    return plain(np.array(values).reshape(arrays[0].shape))


SCAN = np.linspace(np.log(1e-8), np.log(10.0), 10)  # of ℓ over the critical one, where the least test error is sought
CLOSE = 1e-2  # in log ℓ


def _best(curve: _Curve, n_eff: float, output: str) -> float:
    critical = _critical(curve, n_eff)
    if output != "softmax":
        return critical

    def test_error(log_ell: float) -> float:
        return curve.point(n_eff, float(np.exp(log_ell))).test_error

    grid = np.log(critical) + SCAN
    values = [test_error(log_ell) for log_ell in grid]
    least = int(np.argmin(values))
    if curve.point(n_eff, 0.0).test_error <= values[least] or least == 0:
        return 0.0
    ends = (grid[least - 1], grid[min(least + 1, len(grid) - 1)])
    return float(np.exp(minimize_scalar(test_error, bounds=ends, method="bounded", options={"xatol": CLOSE}).x))


def emergence(
    mode: Any,
    gamma: Any,
    noise: Any = 0.5,
    scores: Any = 2,
    estimator: str = "erm",
    ell: Any = None,
    *,
    tokens: int = 2,
    output: str = "softmax",
) -> Any:
    """The n_eff at which a mode of the target is first learned (law `emergence`).

    Parameters
    ----------
    mode : number of the mode in order of strength, 1, 2, …
    gamma, noise, scores : as in `interpolating_error`.
    estimator : "erm" (the trained network) or "bayes" (the Bayes-optimal estimate).
    ell : None for λ → 0⁺, where the result is a closed sum; else ℓ > 0 of the trained network, with `tokens` and
        `output` of `learned` in place of `scores`.

    Arrays broadcast. Raises ValueError for bad input.
    """
    if estimator not in ESTIMATORS:
        raise ValueError(f"estimator must be one of {', '.join(ESTIMATORS)}, got {estimator!r}")
    modes, number = modes_of(gamma), _mode(mode)
    if ell is None:
        rank, spread, count = broadcast(mode=number, noise=check(chapter.noise, noise), scores=checked_scores(scores))
        return plain(emergence_of(rank, modes, spread, count, estimator))
    if estimator == "bayes":
        raise ValueError("ell must be None for estimator 'bayes', which has no penalty")
    function = output_of(output, tokens)
    arrays = broadcast(mode=number, noise=check(chapter.noise, noise), ell=_positive_ell(ell))
    values = [
        _emergence_at(_Curve(modes, spread, function), rank, level)
        for rank, spread, level in zip(*(array.ravel().tolist() for array in arrays), strict=True)
    ]
    return plain(np.array(values).reshape(arrays[0].shape))


def _positive_ell(ell: Any) -> Array:
    array = check(chapter.ell, ell)
    if (array == 0).any():
        raise ValueError("ell must be > 0, got 0; leave it out for λ → 0⁺")
    return np.asarray(array)


def _mode(mode: Any) -> Array:
    meaning = "number of a mode in order of strength"
    array = real_array("mode", mode, meaning)
    if not ((array >= 1) & (array == np.round(array))).all():
        raise ValueError(f"mode must be an integer >= 1, got {array.min():.12g} ({meaning})")
    return np.asarray(array)


SECANTS, ROOT = 12, 1e-9


def _emergence_at(curve: _Curve, mode: float, ell: float) -> float:
    """The n_eff at which the least strength that is learned falls to the mode's."""
    modes, solver = curve.setting.modes, curve.solver
    strength = float(modes.strength(np.asarray(mode)))

    def excess(log_n: float) -> float:
        n_eff = float(np.exp(log_n))
        empty = solver.plateau(n_eff, ell)
        if empty is not None:
            return float(np.log(empty.recovered / strength))
        found = solver.solve(n_eff, ell)
        if not found.size <= RESIDUAL:
            raise NotSolvedError(f"no solution at n_eff = {n_eff:.6g}, ell = {ell:.6g}: residual {found.size:.2g}")
        return float(np.log(found.problem.state(found.logs).recovered / strength))

    outputs = np.asarray(curve.setting.output.outputs)
    start = float(np.log(emergence_of(np.asarray(mode), modes, np.asarray(curve.setting.noise), outputs, "erm")))
    return float(np.exp(_falling_root(excess, start)))


def _falling_root(excess: Callable[[float], float], start: float) -> float:
    """Where a falling function of slope near −½ passes 0: by secants, else between two points."""
    points = [(start, excess(start))]
    points.append((start + 2 * points[0][1], excess(start + 2 * points[0][1])))
    for _ in range(SECANTS):
        (before, high), (at, low) = points[-2:]
        if abs(low) <= ROOT:
            return at
        slope = (low - high) / (at - before) if at != before else 0.0
        if not -5.0 < slope < -0.05:
            break
        points.append((at - low / slope, excess(at - low / slope)))
    low_end = high_end = start
    step = 0.5
    while excess(low_end) < 0:
        low_end, step = low_end - step, 2 * step
    step = 0.5
    while excess(high_end) > 0:
        high_end, step = high_end + step, 2 * step
    return float(brentq(excess, low_end, high_end, xtol=ROOT)) if high_end > low_end else start


# -- what laws and claims read ----------------------------------------------------------------------------------------


def spiked_component(names: tuple[str, str], *values: Any) -> Any:
    """Numbers for the node `SpikedSolution`: a field of `LearnedModes` at the node's parameters, which broadcast.

    `names`: the field and the output. Raises NotSolvedError where there is no solution.
    """
    component, output = names
    found = np.vectorize(lambda *one: getattr(_solution(output, one), component), otypes=[float])(*values)
    return plain(np.asarray(found))


@lru_cache(maxsize=4096)
def _solution(output: str, values: tuple[float, ...]) -> LearnedModes:
    n_eff, gamma, ell, noise, tokens = (float(value) for value in values)
    solution = learned(n_eff, gamma, ell, noise, int(tokens), output)
    if not solution.converged:
        raise NotSolvedError(f"no solution at n_eff = {n_eff}, ell = {ell}: {solution.note}")
    return solution
