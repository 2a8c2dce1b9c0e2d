"""Samplers of trained tied attention on few sequences, n ~ d: power-law teachers, and the error by its causes.

Everything here is in units in which the teacher has Tr S₀²/d = 1, and eigenvalues are divided by √d: those that stand
out are then of order 1 at any d. One replicate is fresh data and one run from a random start of full width.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from verify.samplers import sampler
from verify.samplers.attention_error import Decomposition
from verify.samplers.attention_learning import TOLERANCE, UNUSABLE, Streams, default_parametrisation, draw
from verify.samplers.attention_minimise import Objective, minimise, spectrum_and_rank
from verify.samplers.attention_outputs import draw_output_task, fresh_errors, part
from verify.samplers.attention_task import (
    MEANINGS,
    Array,
    Setting,
    Task,
    choice,
    draw_target,
    integer,
    number,
    overlaps,
)

FRESH = 32_768  # fresh sequences for the test error: its sampling error, about 1e-3, is that between replicates
CAUSES = ("overfitting", "underfitting", "approximation", "mismatch")
SHOWN = 20  # eigenvectors whose overlap with their own mode is reported

MEANINGS.update(
    {
        "n_eff": "n/d, sequences per dimension",
        "ell": "the penalty's lam · √(d/n_eff)",
        "gamma": "the exponent of the teacher's eigenvalues i^(−gamma)",
        "ratio": "how many times more sequences, or penalty, the second run has",
    }
)


def power_law(size: int, gamma: float) -> Array:
    """Eigenvalues s_i ∝ i^(−gamma) of the teacher, i = 1 … d, with Σ s_i² = d. Raises ValueError for gamma < 0."""
    values = np.arange(1, size + 1, dtype=float) ** -number("gamma", gamma, least=0.0)
    return np.asarray(values * math.sqrt(size / np.sum(values**2)))


def sequences(size: int, n_eff: float) -> int:
    """n = round(n_eff · d); a ValueError if that is 0."""
    count = round(number("n_eff", n_eff, above=0.0) * size)
    if count < 1:
        raise ValueError(f"n_eff = {n_eff:g} rounds n = n_eff·d to 0 at d = {size}; use a larger size or n_eff")
    return count


def _draw(
    size: int, n_eff: float, parameters: Mapping[str, float], options: Mapping[str, Any], generator: np.random.Generator
) -> Task:
    integer("size", size, 2, "d, the embedding dimension")
    setting = Setting(noise=parameters["noise"], tokens=options.get("tokens", 2))
    target = np.diag(power_law(size, parameters["gamma"]))
    form = options.get("output", "softmax"), options.get("design", "tokens")
    return draw_output_task(target, sequences(size, n_eff), setting, *form, generator)


def learn(
    objective: Objective, start: np.random.Generator, fresh: np.random.Generator
) -> tuple[dict[str, Any], Decomposition]:
    """One run from a random start: what all samplers here report of it, and Ŝ/√d against S₀/√d.

    The eigenvalues that the first-order conditions say are zero are set to zero before anything is measured.
    Raises ArithmeticError if the run is far from a minimum.
    """
    task = objective.task
    found = minimise(objective, objective.start(start), tolerance=TOLERANCE)
    if not found.gradient_norm <= UNUSABLE:
        raise ArithmeticError(
            f"training stopped at a relative gradient of {found.gradient_norm:.2g} after {found.evaluations} "
            f"evaluations at d = {task.size}, n = {task.samples}, lam = {objective.lam:g}; a larger lam makes it easier"
        )
    raw = objective.matrix(found.parameters)
    values, vectors = spectrum_and_rank(objective, raw)[0], np.linalg.eigh(raw)[1]
    matrix = (vectors * values) @ vectors.T
    parts = Decomposition.of(values / math.sqrt(task.size), vectors, task.target / math.sqrt(task.size))
    m, q = overlaps(matrix, task.target)
    noisy, clean = fresh_errors(task, values, vectors, FRESH, fresh)
    reported = {
        "train_loss": task.loss(matrix) / task.samples,
        "test_error": noisy,
        "test_error_clean": clean,
        "m": m,
        "q": q,
        "target_square": overlaps(task.target, task.target)[1],
        **parts.causes(),
        "recovered": float(np.count_nonzero(parts.recovered)),
        "rank": float(np.count_nonzero(values > 0)),
        "gradient_norm": found.gradient_norm,
        "converged": float(found.converged),
        "evaluations": float(found.evaluations),
    }
    return reported, parts


def _decayed(task: Task, ell: float, n_eff: float) -> Objective:
    """Weight decay on W of full width, lam = ell √(n_eff/d)."""
    lam = number("ell", ell, least=0.0) * math.sqrt(n_eff / task.size)
    return Objective(task, lam, 1.0, "nuclear", "factorised")


@sampler("attention_power_law")
def attention_power_law(
    size: int, generator: np.random.Generator, parameters: dict[str, float], options: dict[str, Any]
) -> dict[str, Any]:
    """Train one layer (κ = 1, β = β₀ = 1) on n = round(n_eff d) sequences of a teacher with eigenvalues s_i ∝ i^(−γ).

    The teacher is diagonal (the inputs are isotropic) with Σ s_i² = d; the penalty is lam ‖W‖², lam = ell √(n_eff/d).
    Parameters: n_eff, ell, gamma, noise. Options, where given: `tokens` T (2), `output` ("softmax", "linear" or
    "quadratic"), `design` ("tokens" or "gaussian": exactly Gaussian scores of the same covariance).
    Returns `train_loss` (data term a sample), `test_error`, `test_error_clean`, `m`, `q`, `target_square`; the causes
    `overfitting`, `underfitting`, `approximation`, `mismatch` and their sum `excess` = ‖Ŝ − S₀‖²/d; `recovered` and
    `rank` (numbers of eigenvalues: those that lower the excess, and those > 0); in units of √d `eigenvalues` of Ŝ
    (d, ascending), `diagonal` (u_jᵀS₀u_j of its eigenvectors in the same order; where the eigenvalue is 0 only their
    sum has a meaning), `target_eigenvalues` (d, ascending); `own_overlaps`, the squared overlap of the j-th largest
    learned mode with the teacher's j-th (min(d, 20) of them; 0 where nothing is learned); `gradient_norm`, `converged`,
    `evaluations`, and `n_eff` and `dimension` as realised. Raises ArithmeticError if the run is far from a minimum.
    """
    streams, n_eff = Streams.of(generator), parameters["n_eff"]
    task = _draw(size, n_eff, parameters, options, streams.data)
    reported, parts = learn(_decayed(task, parameters["ell"], n_eff), streams.start, streams.fresh)
    shown = min(size, SHOWN)
    own = np.diagonal(parts.vectors[:, ::-1])[:shown] ** 2  # the teacher's basis is the coordinates', largest first
    return reported | {
        "eigenvalues": parts.values,
        "diagonal": parts.diagonal,
        "target_eigenvalues": parts.target_values,
        "own_overlaps": np.where(parts.values[::-1][:shown] > 0, own, 0.0),
        "n_eff": task.samples / size,
        "dimension": float(size),
    }


@sampler("attention_two_sizes")
def attention_two_sizes(
    size: int, generator: np.random.Generator, parameters: dict[str, float], options: dict[str, Any]
) -> dict[str, Any]:
    """The training of "attention_power_law" twice: on few and on many of the same sequences, or at two penalties.

    Parameters: n_eff, ell, gamma, noise, ratio > 1. Options, where given: those of "attention_power_law", and `along`:
    "n_eff" (the default: the few are the first n_eff d of ratio n_eff d sequences; lam follows from ell and from either
    n_eff) or "ell" (n_eff d sequences at the penalties ratio ell, for few outliers, and ell, for many).
    Returns of either run, with the suffix `_few` or `_many`: `excess`, `outliers` (the number of eigenvalues that lower
    the excess), `test_error`, `test_error_clean`, the four causes, `rank` and `converged`. Both start from the same W
    and are tested on the same fresh sequences.
    """
    ratio = number("ratio", parameters["ratio"], above=1.0)
    streams, n_eff, ell = Streams.of(generator), parameters["n_eff"], parameters["ell"]
    if choice("along", options.get("along", "n_eff"), ("n_eff", "ell")) == "n_eff":
        task = _draw(size, ratio * n_eff, parameters, options, streams.data)
        few = _decayed(part(task, sequences(size, n_eff)), ell, n_eff)
        many = _decayed(task, ell, ratio * n_eff)
    else:
        task = _draw(size, n_eff, parameters, options, streams.data)
        few, many = _decayed(task, ratio * ell, n_eff), _decayed(task, ell, n_eff)
    seeds = [int(stream.integers(2**63)) for stream in (streams.start, streams.fresh)]
    reported: dict[str, Any] = {}
    for name, objective in (("few", few), ("many", many)):
        run, _ = learn(objective, *(np.random.default_rng(seed) for seed in seeds))
        run["outliers"] = run["recovered"]
        kept = ("excess", "outliers", "test_error", "test_error_clean", *CAUSES, "rank", "converged")
        reported |= {f"{key}_{name}": run[key] for key in kept}
    return reported


@sampler("attention_error_causes")
def attention_error_causes(
    size: int, generator: np.random.Generator, parameters: dict[str, float], options: dict[str, Any]
) -> dict[str, Any]:
    """The training of "attention_training" (labels, not sequences), on the same draws: the error by its causes.

    Parameters: alpha, lam, kappa0, noise, kappa, beta, beta_target. Options, where given: `tokens` T (2), `penalty`
    ("nuclear", weight decay, or "frobenius"), `parametrisation` (as there).
    Returns `train_loss`, `test_error`, `test_error_clean`, `m`, `q`, `target_square`; `overfitting`, `underfitting`,
    `approximation`, `mismatch` and their sum `excess` = ‖Ŝ − S₀‖²/d; `recovered` and `rank`, numbers over d;
    `eigenvalues` (d, ascending) and `diagonal` (u_jᵀS₀u_j in the same order), neither over √d; `gradient_norm`,
    `converged`, `evaluations`; `alpha` and `kappa0` as realised. Raises ArithmeticError as above.
    """
    streams, penalty = Streams.of(generator), options.get("penalty", "nuclear")
    setting = Setting(
        parameters["noise"], parameters["beta"], parameters["beta_target"], options.get("tokens", 2), "label"
    )
    width = round(size * parameters["kappa0"]) / size
    teacher = draw_target(size, parameters["kappa0"], streams.data)
    teacher *= math.sqrt((1 + width) / overlaps(teacher, teacher)[1])
    task = draw(size, parameters["alpha"], None, teacher, setting, streams.data)
    parametrisation = options.get("parametrisation", default_parametrisation(penalty))
    objective = Objective(task, parameters["lam"], parameters["kappa"], penalty, parametrisation)
    reported, parts = learn(objective, streams.start, streams.fresh)
    return reported | {
        "recovered": reported["recovered"] / size,
        "rank": reported["rank"] / size,
        "eigenvalues": math.sqrt(size) * parts.values,
        "diagonal": math.sqrt(size) * parts.diagonal,
        "alpha": task.samples / size**2,
        "kappa0": width,
    }
