"""Training of tied attention: the penalised loss of the factorised layer or of S itself, by L-BFGS or by Adam.

Both methods see one and the same objective with its gradient by hand. The minimum reports how far the first-order
conditions are met; the rank of Ŝ is read from them and not from a cut-off on small eigenvalues.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.optimize

from verify.samplers.attention_task import Array, Task, choice, number, width

PENALTIES = ("nuclear", "frobenius")
PARAMETRISATIONS = ("factorised", "elementwise")
METHODS = ("quasi-newton", "adam")

TOLERANCE = 1e-5  # on the relative gradient; the loss is then right to about its square
BUDGET = 20_000  # evaluations of the loss and its gradient
MEMORY = 10  # pairs that L-BFGS keeps: 30 or 100 save no evaluation and cost time
LEARNING_RATE = 0.01
MOMENTS, SMALL = (0.9, 0.999), 1e-8  # Kingma and Ba 2015

Progress = Callable[[int, float, float], None]  # evaluations, objective, relative gradient


class Objective:
    """The data term of a task plus the penalty, as a function of a flat vector of parameters.

    "factorised": S = WWᵀ/√(pd), W d × p with p = round(kappa · d); the penalty is lam ‖W‖² ("nuclear", weight decay)
    or (lam d/2) ‖S‖² ("frobenius"). "elementwise": a symmetric S, with the latter penalty (the nuclear norm of S is not
    smooth without its factors). Raises ValueError for lam < 0, kappa <= 0 or that combination.
    """

    def __init__(self, task: Task, lam: float, kappa: float, penalty: str, parametrisation: str) -> None:
        self.task = task
        self.lam = number("lam", lam, least=0.0)
        self.factorised = choice("parametrisation", parametrisation, PARAMETRISATIONS) == "factorised"
        self.nuclear = choice("penalty", penalty, PENALTIES) == "nuclear"
        self.columns = width("kappa", task.size, number("kappa", kappa, above=0.0)) if self.factorised else task.size
        if self.nuclear and not self.factorised:
            raise ValueError(
                'penalty must be "frobenius" if parametrisation is "elementwise", got "nuclear" '
                '(weight decay needs the factors: use parametrisation "factorised")'
            )

    @property
    def _scale(self) -> float:
        return 1 / math.sqrt(self.columns * self.task.size)

    def start(self, generator: np.random.Generator) -> Array:
        """A random start: standard Gaussian W, or S = 0 beside a small symmetric perturbation."""
        raw = generator.standard_normal((self.task.size, self.columns))
        return raw.ravel() if self.factorised else (1e-3 * self._scale * (raw + raw.T)).ravel()

    def parameters_of(self, matrix: Array) -> Array:
        """The parameters whose S is nearest to a symmetric matrix (of rank at most p, and S ⪰ 0, if factorised)."""
        if not self.factorised:
            return np.asarray(matrix, dtype=float).ravel().copy()
        values, vectors = np.linalg.eigh(matrix)
        kept = slice(max(0, len(values) - self.columns), None)
        weights = np.zeros((self.task.size, self.columns))
        factor = vectors[:, kept] * np.sqrt(np.maximum(values[kept], 0.0) / self._scale)
        weights[:, : factor.shape[1]] = factor
        return weights.ravel()

    def matrix(self, parameters: Array) -> Array:
        """S: d × d, symmetric."""
        shaped = parameters.reshape(self.task.size, self.columns)
        return np.asarray(self._scale * (shaped @ shaped.T) if self.factorised else (shaped + shaped.T) / 2)

    def __call__(self, parameters: Array) -> tuple[float, Array]:
        """The objective (summed over the samples) and its gradient in the parameters."""
        shaped = parameters.reshape(self.task.size, self.columns)
        matrix = self.matrix(parameters)
        value, gradient = self.task.loss_and_gradient(matrix)
        if not self.nuclear:
            value += self.penalty(matrix)
            gradient += self.lam * self.task.size * matrix
        if self.factorised:
            gradient = 2 * self._scale * (gradient @ shaped)
        if self.nuclear:
            value += self.lam * float(np.vdot(shaped, shaped))
            gradient += 2 * self.lam * shaped
        return value, gradient.ravel()

    def penalty(self, matrix: Array) -> float:
        """The penalty at S; the weight decay is that of the shortest W, ‖W‖² = Tr S √(pd)."""
        if self.nuclear:
            return self.lam * float(np.trace(matrix)) / self._scale
        return self.lam * self.task.size / 2 * float(np.vdot(matrix, matrix))

    def multiplier(self, matrix: Array) -> Array:
        """The gradient in S of loss plus penalty: at a factorised minimum it is ⪰ 0 and annihilates Ŝ."""
        _, gradient = self.task.loss_and_gradient(matrix)
        if self.nuclear:
            return gradient + self.lam / self._scale * np.eye(self.task.size)
        return gradient + self.lam * self.task.size * matrix


@dataclass(frozen=True, eq=False)
class Minimum:
    """Where a minimiser stopped: the parameters, the objective (summed over samples), and how well it converged.

    `gradient_norm` is ‖∇‖‖θ‖/objective, free of units; `history` holds the objective at every evaluation.
    """

    parameters: Array
    objective: float
    gradient_norm: float
    evaluations: int
    converged: bool
    history: Array


class _Recorder:
    """The objective with its evaluations counted, and the relative gradient that decides convergence."""

    def __init__(self, objective: Objective, tolerance: float, progress: Progress | None) -> None:
        self.objective, self.tolerance, self.progress = objective, tolerance, progress
        self.values: list[float] = []
        self.relative = math.inf

    def __call__(self, parameters: Array) -> tuple[float, Array]:
        value, gradient = self.objective(parameters)
        self.values.append(value)
        scale = float(np.linalg.norm(parameters)) / max(value, 1e-300)
        self.relative = float(np.linalg.norm(gradient)) * scale
        if self.progress is not None:
            self.progress(len(self.values), value, self.relative)
        return value, gradient

    @property
    def done(self) -> bool:
        return self.relative <= self.tolerance

    def minimum(self, parameters: Array) -> Minimum:
        return Minimum(parameters, self.values[-1], self.relative, len(self.values), self.done, np.array(self.values))


def minimise(
    objective: Objective,
    start: Array,
    method: str = "quasi-newton",
    tolerance: float = TOLERANCE,
    budget: int = BUDGET,
    learning_rate: float = LEARNING_RATE,
    progress: Progress | None = None,
) -> Minimum:
    """A local minimum from `start`: `method` is "quasi-newton" (L-BFGS) or "adam" (constant learning rate).

    Stops when the relative gradient is at most `tolerance`, or after about `budget` evaluations (`converged` False).
    """
    recorder = _Recorder(objective, tolerance, progress)
    if choice("method", method, METHODS) == "adam":
        return _adam(recorder, start, budget, learning_rate)
    return _quasi_newton(recorder, start, budget)


def _quasi_newton(recorder: _Recorder, start: Array, budget: int) -> Minimum:
    """L-BFGS, started afresh where its line search gives up, as long as that still helps.

    The objective's rounding ends the line search at a relative gradient of about 1e-7.
    """

    def stop_when_done(_: Array) -> None:
        if recorder.done:
            raise StopIteration

    parameters, before = start, math.inf
    while len(recorder.values) < budget and not recorder.relative > before / 2:
        before = recorder.relative
        left = budget - len(recorder.values)
        options = {"maxcor": MEMORY, "maxfun": left, "maxiter": left, "ftol": 0.0, "gtol": 0.0}
        parameters = scipy.optimize.minimize(
            recorder, parameters, jac=True, method="L-BFGS-B", callback=stop_when_done, options=options
        ).x
        recorder(parameters)  # the line search may have looked elsewhere last
        if recorder.done:
            break
    return recorder.minimum(parameters)


def _adam(recorder: _Recorder, start: Array, budget: int, learning_rate: float) -> Minimum:
    """Adam with bias correction and a constant learning rate (Kingma and Ba 2015)."""
    parameters, first, second = start.copy(), np.zeros_like(start), np.zeros_like(start)
    for step in range(1, budget + 1):
        _, gradient = recorder(parameters)
        if recorder.done or step == budget:
            break
        first = MOMENTS[0] * first + (1 - MOMENTS[0]) * gradient
        second = MOMENTS[1] * second + (1 - MOMENTS[1]) * gradient**2
        unbiased = np.sqrt(second / (1 - MOMENTS[1] ** step)) + SMALL
        parameters = parameters - learning_rate * first / (1 - MOMENTS[0] ** step) / unbiased
    return recorder.minimum(parameters)


def spectrum_and_rank(objective: Objective, matrix: Array) -> tuple[Array, int, float]:
    """Eigenvalues of Ŝ (d, ascending), how many are positive, and the least eigenvalue of the multiplier M.

    Without factors: the eigenvalues as they are. With factors: Ŝ is the positive part of Ŝ − tM for every t > 0, which
    decides which of the small eigenvalues are zero; these are returned as exact zeros. The last number is relative to
    the largest eigenvalue of M: one that is well below 0 says that the width p binds (or that Ŝ is a saddle).
    """
    values: Array = np.linalg.eigvalsh(matrix).astype(float)
    if not objective.factorised:
        return values, int(np.count_nonzero(values > 0)), 0.0
    multiplier = objective.multiplier(matrix)
    step = objective.task.size / (objective.task.samples * objective.task.setting.beta**2)
    stepped = np.linalg.eigvalsh(matrix - step * multiplier)
    rank = min(objective.columns, int(np.count_nonzero(stepped > 0)))
    values[: len(values) - rank] = 0.0
    multipliers = np.linalg.eigvalsh(multiplier)
    largest = float(np.abs(multipliers).max())
    return np.maximum(values, 0.0), rank, float(multipliers[0]) / largest if largest > 0 else 0.0
