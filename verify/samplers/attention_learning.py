"""Samplers of what tied attention learns: the trained layer, and message passing on the same kind of data.

One replicate is a fresh teacher, fresh sequences and one run. Sizes are the embedding dimension d; the cost grows like
d⁴, the evaluations of the loss stay at about a hundred.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from verify.samplers import sampler
from verify.samplers.attention_message_passing import Denoiser, message_passing
from verify.samplers.attention_minimise import Objective, minimise, spectrum_and_rank
from verify.samplers.attention_task import (
    Array,
    Setting,
    Task,
    draw_target,
    draw_task,
    generalisation,
    integer,
    overlaps,
    sample_count,
    target_of,
)

FRESH = 10_000  # sequences for the test error: its sampling error, about 1e-3, is below the spread between replicates
TOLERANCE = 3e-4  # relative gradient: m and q are then right to about 1e-5, losses to 1e-4
UNUSABLE = 1e-2  # relative gradient of a run that is an error rather than a draw


@dataclass(frozen=True, eq=False)
class Streams:
    """Independent generators of a run: the data do not depend on the method or on the number of starts."""

    data: np.random.Generator
    start: np.random.Generator
    fresh: np.random.Generator

    @classmethod
    def of(cls, generator: np.random.Generator) -> Streams:
        return cls(*generator.spawn(3))


def draw(
    size: int, alpha: float, kappa0: float | None, target: Any, setting: Setting, generator: np.random.Generator
) -> Task:
    """A task of round(alpha d²) sequences. The teacher is Gaussian of width kappa0 · d, or the given `target`.

    Raises ValueError unless exactly one of `kappa0` and `target` is given, and if their size is not d.
    """
    integer("size", size, 2, "d, the embedding dimension")
    if (kappa0 is None) == (target is None):
        raise ValueError("give exactly one of kappa0 (a Gaussian teacher of that width) and target (its spectrum)")
    matrix = draw_target(size, kappa0, generator) if kappa0 is not None else target_of(target)
    if len(matrix) != size:
        raise ValueError(f"target must have size = {size} eigenvalues, got {len(matrix)}")
    return draw_task(matrix, sample_count(size, alpha), setting, generator)


def _sampled_task(size: int, parameters: Mapping[str, float], setting: Setting, generator: np.random.Generator) -> Task:
    """A task of a Gaussian teacher that is scaled to Tr S₀²/d = 1 + κ₀, its value at d → ∞.

    The teacher's own square fluctuates by 1/d, which would blur all that is learned from it by as much.
    """
    matrix = draw_target(size, parameters["kappa0"], generator)
    goal = 1 + _realised_width(size, parameters["kappa0"])
    matrix *= math.sqrt(goal / overlaps(matrix, matrix)[1])
    return draw(size, parameters["alpha"], None, matrix, setting, generator)


def default_parametrisation(penalty: str) -> str:
    """Weight decay acts on the factors; the Frobenius norm, unless asked otherwise, on S itself."""
    return "elementwise" if penalty == "frobenius" else "factorised"


def measurements(objective: Objective, matrix: Array, fresh: int, generator: np.random.Generator) -> dict[str, Any]:
    """What both samplers report of a learned S: losses, overlaps, spectrum, and the task as realised."""
    task = objective.task
    m, q = overlaps(matrix, task.target)
    noisy, clean = generalisation(matrix, task.target, task.setting, fresh, generator)
    eigenvalues, rank, _ = spectrum_and_rank(objective, matrix)
    train_loss = task.loss(matrix) / task.samples
    return {
        "train_loss": train_loss,
        "objective": train_loss + objective.penalty(matrix) / task.samples,
        "test_error": noisy,
        "test_error_clean": clean,
        "m": m,
        "q": q,
        "rank": rank / task.size,
        "eigenvalues": eigenvalues,
        "target_eigenvalues": np.linalg.eigvalsh(task.target),
        "target_square": overlaps(task.target, task.target)[1],
        "alpha": task.samples / task.size**2,
    }


def _setting(parameters: Mapping[str, float], options: Mapping[str, Any]) -> Setting:
    return Setting(
        noise=parameters["noise"],
        beta=parameters["beta"],
        beta_target=parameters["beta_target"],
        tokens=options["tokens"],
        task=options.get("task", "label"),
    )


def _realised_width(size: int, ratio: float) -> float:
    return round(size * ratio) / size


@sampler("attention_training")
def attention_training(
    size: int, generator: np.random.Generator, parameters: dict[str, float], options: dict[str, Any]
) -> dict[str, Any]:
    """Train one layer by the quasi-Newton method from a random start; the teacher has Tr S₀²/d = 1 + κ₀.

    Parameters: alpha, lam, kappa0, noise, kappa, beta, beta_target. Options: `tokens` T, `task` ("label" or
    "sequence"), `penalty` ("nuclear" or "frobenius"), and where given `parametrisation` ("factorised" or
    "elementwise"; default: factorised for the nuclear penalty, elementwise for the other).
    Returns `train_loss` (data term a sample), `objective` (with penalty), `test_error`, `test_error_clean`, `m`, `q`,
    `rank` (positive eigenvalues of Ŝ over d), `eigenvalues` (d, ascending), `gradient_norm`, `converged` (1 or 0),
    `evaluations`, `target_eigenvalues` (d), `target_square` (Tr S₀²/d), `alpha`, `kappa0` and (factorised) `kappa` as
    realised, `weight_singular_values` (those of W/√d, min(p, d) of them, ascending).
    Raises ArithmeticError if the run is far from a minimum.
    """
    streams = Streams.of(generator)
    penalty = options["penalty"]
    parametrisation = options.get("parametrisation", default_parametrisation(penalty))
    task = _sampled_task(size, parameters, _setting(parameters, options), streams.data)
    objective = Objective(task, parameters["lam"], parameters["kappa"], penalty, parametrisation)
    found = minimise(objective, objective.start(streams.start), tolerance=TOLERANCE)
    if not found.gradient_norm <= UNUSABLE:
        raise ArithmeticError(
            f"training stopped at a relative gradient of {found.gradient_norm:.2g} after {found.evaluations} "
            f"evaluations at d = {size} and {dict(parameters)}; a larger lam makes the problem easier"
        )
    drawn = measurements(objective, objective.matrix(found.parameters), FRESH, streams.fresh)
    drawn |= {
        "gradient_norm": found.gradient_norm,
        "converged": float(found.converged),
        "evaluations": float(found.evaluations),
        "kappa0": _realised_width(size, parameters["kappa0"]),
    }
    if objective.factorised:
        drawn["kappa"] = objective.columns / size
        drawn["weight_singular_values"] = weight_singular_values(drawn["eigenvalues"], objective.columns)
    return drawn


def weight_singular_values(eigenvalues: Array, columns: int) -> Array:
    """Singular values of W/√d from the eigenvalues of S = WWᵀ/√(pd): min(p, d) of them, ascending."""
    size = len(eigenvalues)
    kept = eigenvalues[size - min(columns, size) :]
    return np.sqrt(math.sqrt(columns / size) * kept)


@sampler("attention_amp")
def attention_amp(
    size: int, generator: np.random.Generator, parameters: dict[str, float], options: dict[str, Any]
) -> dict[str, Any]:
    """Message passing from S = 0, undamped, for a fixed number of iterations; the teacher has Tr S₀²/d = 1 + κ₀.

    Parameters: alpha, lam, kappa0, noise, beta, beta_target, and kappa where the model has it (default 1: it scales
    weight decay only). Options: `tokens` T, `iterations` K, and where given `penalty` (default "nuclear"),
    `parametrisation` (as in training) and `initial_variance` (default 1).
    Returns arrays over the iterations t = 1 … K: `m_path`, `q_path`, `variance_path`, `residual_path`
    (‖S_t − S_{t−1}‖/√d), and of the channel that made iterate t, `q_channel_path` and `v_channel_path`; `m_path_bare`,
    `q_path_bare`, `variance_path_bare` of a run on the same data without the Onsager term; of the last iterate what
    training reports, and `alpha`, `kappa0` and `target_square` as realised.
    """
    streams = Streams.of(generator)
    penalty = options.get("penalty", "nuclear")
    parametrisation = options.get("parametrisation", default_parametrisation(penalty))
    kappa = parameters.get("kappa", 1.0)
    task = _sampled_task(size, parameters, _setting(parameters, options), streams.data)
    denoiser = Denoiser.of(parameters["lam"], kappa, penalty, parametrisation)
    begin = options["iterations"], options.get("initial_variance", 1.0)
    run, bare = message_passing(task, denoiser, *begin), message_passing(task, denoiser, *begin, onsager=False)
    objective = Objective(task, parameters["lam"], kappa, penalty, parametrisation)
    return {
        **measurements(objective, run.matrix, FRESH, streams.fresh),
        "m_path": run.m,
        "q_path": run.q,
        "variance_path": run.variance,
        "residual_path": run.residual,
        "q_channel_path": run.q_channel,
        "v_channel_path": run.v_channel,
        "m_path_bare": bare.m,
        "q_path_bare": bare.q,
        "variance_path_bare": bare.variance,
        "kappa0": _realised_width(size, parameters["kappa0"]),
    }
