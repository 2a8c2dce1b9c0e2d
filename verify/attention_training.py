"""Training of the real tied-attention layer: teacher, data, W or S, by L-BFGS or by Adam from the same loss.

`train` is what a person calls; the loss, its gradient and the minimisers live beside the sampler of the same name in
`verify.samplers`. Nothing here knows what the theory predicts.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from verify.samplers.attention_learning import (
    FRESH,
    Streams,
    default_parametrisation,
    draw,
    measurements,
    weight_singular_values,
)
from verify.samplers.attention_minimise import (
    BUDGET,
    LEARNING_RATE,
    TOLERANCE,
    Minimum,
    Objective,
    Progress,
    minimise,
    spectrum_and_rank,
)
from verify.samplers.attention_task import Array, Setting, integer, number

AGREEMENT = 1e-4  # relative difference of the objective above which two starts are different minima
INFEASIBLE = 1e-3  # a multiplier this far below 0, relative to the largest, is no rounding


class TrainingWarning(UserWarning):
    """The result stands, but not for what one would take it: not converged, several minima, or a width that binds."""


@dataclass(frozen=True, eq=False)
class Training:
    """A trained layer. Losses and errors are per sample, summed over the T² entries (per sample and 1/d for sequences).

    `objective` is `train_loss` plus the penalty over n; `test_error` is against the noisy label of fresh sequences,
    `test_error_clean` against the noiseless one. `m` = Tr S S₀/d, `q` = Tr S²/d, `target_square` = Tr S₀²/d. `rank` is
    the number of positive eigenvalues over d, read from the first-order conditions if factorised; `eigenvalues` are
    ascending. `gradient_norm` is ‖∇‖‖θ‖/objective; `history` holds the objective per sample at every evaluation;
    `seconds` is the time of the kept start. `objectives` lists the starts.
    """

    matrix: Array
    target: Array
    train_loss: float
    objective: float
    test_error: float
    test_error_clean: float
    m: float
    q: float
    target_square: float
    rank: float
    eigenvalues: Array
    target_eigenvalues: Array
    weight_singular_values: Array | None
    alpha: float
    gradient_norm: float
    evaluations: int
    converged: bool
    seconds: float
    history: Array
    objectives: tuple[float, ...]


def train(
    size: int,
    alpha: float,
    lam: float,
    kappa0: float | None = None,
    target: Any = None,
    noise: float = 0.0,
    tokens: int = 2,
    kappa: float = 1.0,
    beta: float = 1.0,
    beta_target: float = 1.0,
    penalty: str = "nuclear",
    task: str = "label",
    parametrisation: str | None = None,
    method: str = "quasi-newton",
    starts: int = 1,
    tolerance: float = TOLERANCE,
    budget: int = BUDGET,
    learning_rate: float = LEARNING_RATE,
    fresh: int = FRESH,
    random_state: Any = None,
    progress: bool = False,
) -> Training:
    """Train one layer on data that it draws; the same `random_state` draws the same data whatever the method.

    `size` d ≥ 2, `alpha` = n/d² > 0, `lam` ≥ 0, `kappa` = p/d > 0; the teacher has `kappa0` = p₀/d > 0 (Gaussian) or a
    `target` (d eigenvalues, or a symmetric matrix); `noise` Δ ≥ 0, `tokens` T ≥ 2, `task` "label" or "sequence".
    `penalty` "nuclear" is weight decay lam ‖W‖², "frobenius" is (lam d/2) ‖S‖²; `parametrisation` is "factorised" or
    "elementwise" (default: the former for weight decay, the latter otherwise). `method` is "quasi-newton" (L-BFGS) or
    "adam" (constant `learning_rate`); either stops at a relative gradient of `tolerance` or after `budget` evaluations.
    The best of `starts` random starts is returned. The loss is not convex: starts that end in different minima, a run
    that did not converge and a width that binds give a TrainingWarning. Raises ValueError for bad input.
    """
    setting = Setting(noise, beta, beta_target, tokens, task)
    integer("starts", starts, 1, "how many random starts are tried")
    integer("budget", budget, 1, "evaluations of the loss and its gradient")
    integer("fresh", fresh, 1, "fresh sequences for the test error")
    number("tolerance", tolerance, above=0.0)
    number("learning_rate", learning_rate, above=0.0)
    streams = Streams.of(np.random.default_rng(random_state))
    data = draw(size, alpha, kappa0, target, setting, streams.data)
    shape = default_parametrisation(penalty) if parametrisation is None else parametrisation
    objective = Objective(data, lam, kappa, penalty, shape)
    runs: list[tuple[Minimum, float]] = []
    for attempt in range(starts):
        start, began = objective.start(streams.start), time.perf_counter()
        label = f"training {attempt + 1}/{starts}"
        with _gradient_bar(label, tolerance) if progress else _silent() as report:
            found = minimise(objective, start, method, tolerance, budget, learning_rate, report)
        runs.append((found, time.perf_counter() - began))
    best, seconds = min(runs, key=lambda run: run[0].objective)
    _warn_if_starts_differ([run.objective / data.samples for run, _ in runs])
    matrix = objective.matrix(best.parameters)
    if best.converged:
        _warn_if_not_a_minimum(objective, matrix)
    else:
        _warn_if_not_converged(best, tolerance, method)
    measured = measurements(objective, matrix, fresh, streams.fresh)
    singular = weight_singular_values(measured["eigenvalues"], objective.columns) if objective.factorised else None
    return Training(
        matrix=matrix,
        target=data.target,
        weight_singular_values=singular,
        gradient_norm=best.gradient_norm,
        evaluations=best.evaluations,
        converged=best.converged,
        seconds=seconds,
        history=best.history / data.samples,
        objectives=tuple(run.objective / data.samples for run, _ in runs),
        **measured,
    )


# -- warnings -------------------------------------------------------------------------------------------------


def _warn_if_starts_differ(objectives: list[float]) -> None:
    spread = max(objectives) / max(min(objectives), 1e-300) - 1
    if spread > AGREEMENT:
        listed = ", ".join(f"{value:.6g}" for value in objectives)
        warnings.warn(
            f"the {len(objectives)} starts ended at different objectives ({listed}): the loss is not convex; the "
            "lowest is returned, and it need not be the global minimum: try more starts",
            TrainingWarning,
            stacklevel=3,
        )


def _warn_if_not_converged(found: Minimum, tolerance: float, method: str) -> None:
    advice = "raise budget, or use method 'quasi-newton'" if method == "adam" else "raise budget, tolerance or lam"
    warnings.warn(
        f"not converged: the relative gradient is {found.gradient_norm:.2g} after {found.evaluations} evaluations "
        f"(tolerance {tolerance:.2g}); {advice}",
        TrainingWarning,
        stacklevel=3,
    )


def _warn_if_not_a_minimum(objective: Objective, matrix: Array) -> None:
    _, rank, least = spectrum_and_rank(objective, matrix)
    if least < -INFEASIBLE:
        size, binds = objective.task.size, rank == objective.columns
        reason = (
            f"all {rank} columns of W are used (kappa = {objective.columns / size:g}), so the width binds: the "
            "solution without it has a larger rank; use a larger kappa"
            if binds
            else f"Ŝ has rank {rank} of {size}: it is not yet a minimum over positive semidefinite S; lower tolerance"
        )
        warnings.warn(
            f"the gradient in S has a negative eigenvalue ({least:.2g} of the largest); {reason}",
            TrainingWarning,
            stacklevel=3,
        )


# -- progress -------------------------------------------------------------------------------------------------


@contextmanager
def _silent() -> Iterator[None]:
    yield None


@contextmanager
def progress_bar(label: str) -> Iterator[Callable[[float, str], None]]:
    """A bar on the terminal: the yielded function takes the share that is done, in [0, 1], and a note."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, TextColumn("{task.fields[note]}")) as bar:
        handle = bar.add_task(label, total=1.0, note="")
        yield lambda share, note: bar.update(handle, completed=share, note=note)


@contextmanager
def _gradient_bar(label: str, tolerance: float) -> Iterator[Progress]:
    """Progress in the logarithm of the relative gradient, between its first value and the tolerance."""
    with progress_bar(label) as show:
        first, share = 0.0, 0.0

        def report(evaluations: int, value: float, relative: float) -> None:
            nonlocal first, share
            first = first or relative
            whole = math.log(max(first / tolerance, 2.0))
            share = min(1.0, max(share, math.log(first / max(relative, 1e-300)) / whole))
            show(share, f"{evaluations} evaluations, objective {value:.5g}")

        yield report
