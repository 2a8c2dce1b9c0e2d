"""Samplers of power-law teachers and of sparse regression against their definitions, exact identities and solvers.

Nothing here reads a law: scores, gradients and errors are held to brute force, minima to first-order conditions and to
other starts, the ℓ₁ interpolator to a linear program.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.optimize

from verify.samplers import load_sampler
from verify.samplers.attention_error import Decomposition
from verify.samplers.attention_learning import TOLERANCE
from verify.samplers.attention_minimise import Objective, minimise, spectrum_and_rank
from verify.samplers.attention_outputs import (
    OUTPUTS,
    draw_output_task,
    fresh_errors,
    part,
    score_mixing,
    symmetric_coordinates,
    symmetric_matrix,
)
from verify.samplers.attention_power_law import CAUSES, power_law
from verify.samplers.attention_task import Setting, Task, draw_target, softmax_rows
from verify.samplers.lasso import basis_pursuit_solution

POINT = {"n_eff": 20.0, "ell": 0.8, "gamma": 1.0, "noise": 0.5}
EXTENSIVE = {"alpha": 0.5, "lam": 0.01, "kappa0": 0.5, "noise": 0.5, "kappa": 0.75, "beta": 1.0, "beta_target": 1.0}


def generator(*seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def symmetric(size: int, seed: int = 0) -> Any:
    raw = generator(seed).standard_normal((size, size))
    return (raw + raw.T) / 2


def small_task(output: str, design: str, tokens: int = 3, samples: int = 12, noise: float = 0.5) -> Task:
    setting = Setting(noise=noise, tokens=tokens)
    return draw_output_task(draw_target(6, 0.5, generator(1)), samples, setting, output, design, generator(2))


def draw(name: str, size: int, parameters: Any, options: Any = None, seed: int = 0) -> Any:
    return load_sampler(name)(size, generator(seed), dict(parameters), options or {})


# -- outputs and designs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("output", ["linear", "quadratic"])
def test_labels_of_tokens_are_their_scores_by_definition(output: str) -> None:
    task = small_task(output, "tokens", noise=0.0)
    trace = np.trace(task.target) * np.eye(3)
    scores = (task.inputs @ task.target @ task.inputs.transpose(0, 2, 1) - trace) / math.sqrt(task.size)
    shown = scores if output == "linear" else scores * np.eye(3)
    np.testing.assert_allclose(task.labels.transpose(2, 0, 1), shown, atol=1e-12)


def test_labels_of_a_gaussian_design_are_its_products() -> None:
    task = small_task("softmax", "gaussian", noise=0.0)
    matrices = [[symmetric_matrix(row, 6) for row in sample] for sample in task.inputs]
    products = np.array([[np.vdot(each, task.target) for each in sample] for sample in matrices]) / math.sqrt(6)
    scores = (products @ score_mixing("softmax", 3).T).reshape(-1, 3, 3).transpose(1, 2, 0)
    np.testing.assert_allclose(task.labels, softmax_rows(scores), atol=1e-12)


@pytest.mark.parametrize("design", ["tokens", "gaussian"])
@pytest.mark.parametrize("output", OUTPUTS)
def test_gradient_is_the_derivative_of_the_loss(output: str, design: str) -> None:
    task, matrix, direction = small_task(output, design), symmetric(6, 3), symmetric(6, 4)
    value, gradient = task.loss_and_gradient(matrix)
    step = 1e-5
    numerical = (task.loss(matrix + step * direction) - task.loss(matrix - step * direction)) / (2 * step)
    assert value == pytest.approx(task.loss(matrix), rel=1e-12)
    assert np.vdot(gradient, direction) == pytest.approx(numerical, rel=1e-6)


@pytest.mark.parametrize("output", OUTPUTS)
def test_pull_back_is_adjoint_to_the_scores(output: str) -> None:
    """⟨pull_back(slope), S⟩ = ⟨slope, h(S)⟩ for slopes that the output can have, as h is linear in S."""
    for design in ("tokens", "gaussian"):
        task, matrix = small_task(output, design), symmetric(6, 5)
        slope = generator(6).standard_normal(task.labels.shape)
        if output == "softmax":
            slope -= slope.mean(axis=1, keepdims=True)
        elif output == "quadratic":
            slope *= np.eye(3)[..., None]
        left = np.vdot(task.pull_back(slope), matrix)
        assert left == pytest.approx(np.vdot(slope, task.scores(matrix)), rel=1e-10), design


@pytest.mark.parametrize("output", OUTPUTS)
def test_gaussian_scores_have_the_covariance_of_the_scores_of_tokens(output: str) -> None:
    """Over many sequences; the rank K counts the combinations that the output sees."""
    samples, matrix = 20_000, symmetric(6, 7)
    expected = {"softmax": 5, "linear": 6, "quadratic": 3}[output]
    assert score_mixing(output, 3).shape == (9, expected)
    found = []
    for design in ("tokens", "gaussian"):
        scores = small_task(output, design, samples=samples).scores(matrix).reshape(9, samples)
        if output == "quadratic":
            scores = scores[[0, 4, 8]]
        found.append(scores @ scores.T / samples)
    scale = np.abs(found[0]).max()
    np.testing.assert_allclose(found[0], found[1], atol=0.06 * scale)  # five standard errors: kurtosis of products


def test_symmetric_coordinates_keep_scalar_products() -> None:
    first, second = symmetric(5, 1), symmetric(5, 2)
    assert np.vdot(symmetric_coordinates(first), symmetric_coordinates(second)) == pytest.approx(np.vdot(first, second))
    np.testing.assert_allclose(symmetric_matrix(symmetric_coordinates(first), 5), first, atol=1e-15)


@pytest.mark.parametrize("design", ["tokens", "gaussian"])
@pytest.mark.parametrize(("output", "signal", "noise"), [("linear", 12.0, 6.0), ("quadratic", 6.0, 3.0)])
def test_errors_of_scores_are_the_distance(output: str, signal: float, noise: float, design: str) -> None:
    """E Σ(h − h⁰)² = ‖S − S₀‖²/d times Σ(1 + δ_ab) over the scores of T = 3 tokens; the noise adds Δ/2 times that."""
    task, learned = small_task(output, design), symmetric(6, 8)
    values, vectors = np.linalg.eigh(learned)
    noisy, clean = fresh_errors(task, values, vectors, 60_000, generator(9))
    distance = np.sum((learned - task.target) ** 2) / 6
    assert clean == pytest.approx(signal * distance, rel=0.02)
    assert noisy == pytest.approx(signal * distance + noise * 0.5, rel=0.02)


def test_part_is_the_task_on_the_first_sequences() -> None:
    for design in ("tokens", "gaussian"):
        task, matrix = small_task("softmax", design), symmetric(6, 3)
        few = part(task, 5)
        np.testing.assert_allclose(few.scores(matrix), task.scores(matrix)[..., :5], atol=1e-13)
        assert few.loss(matrix) < task.loss(matrix) and few.samples == 5


# -- the error by its causes -------------------------------------------------------------------------------------


def decomposed(learned: Any, target: Any) -> Decomposition:
    values, vectors = np.linalg.eigh(learned)
    return Decomposition.of(np.where(np.abs(values) > 1e-12, values, 0.0), vectors, target)


@pytest.mark.parametrize("seed", range(5))
def test_causes_are_positive_and_add_up(seed: int) -> None:
    target, learned = draw_target(12, 0.4, generator(seed)), draw_target(12, 0.8, generator(seed, 1)) / 2
    learned = 0.6 * target + learned
    causes = decomposed(learned, target).causes()
    assert min(causes[name] for name in CAUSES) > -1e-12
    assert sum(causes[name] for name in CAUSES) == pytest.approx(np.sum((learned - target) ** 2), rel=1e-12)
    assert causes["excess"] == pytest.approx(np.sum((learned - target) ** 2), rel=1e-12)


def test_each_cause_by_itself() -> None:
    """One at a time: a wrong scale, a missing mode, a turned eigenvector, a mode that is not there."""
    target = np.diag([2.0, 1.0, 0.0, 0.0])
    angle = 0.3
    turned = np.array([math.cos(angle), 0.0, math.sin(angle), 0.0])
    found = 2 * math.cos(angle) ** 2
    cases = {
        "mismatch": (np.diag([1.5, 1.0, 0.0, 0.0]), 0.25),
        "underfitting": (np.diag([2.0, 0.0, 0.0, 0.0]), 1.0),
        "approximation": (np.diag([0.0, 1.0, 0.0, 0.0]) + found * np.outer(turned, turned), 4 - found**2),
        "overfitting": (np.diag([2.0, 1.0, 0.5, 0.0]), 0.25),
    }
    for name, (learned, value) in cases.items():
        causes = decomposed(learned, target).causes()
        assert causes[name] == pytest.approx(value, abs=1e-12), name
        assert causes["excess"] == pytest.approx(value, abs=1e-12), name


def test_a_direction_is_recovered_if_it_lowers_the_distance() -> None:
    target, learned = draw_target(10, 0.4, generator(3)), draw_target(10, 0.6, generator(4))
    parts = decomposed(0.1 * target + 2.5 * learned, target)
    for kept, value, vector in zip(parts.recovered, parts.values, parts.vectors.T, strict=True):
        matrix = (parts.vectors * parts.values) @ parts.vectors.T
        without = np.sum((matrix - value * np.outer(vector, vector) - target) ** 2)
        assert kept == (value > 0 and np.sum((matrix - target) ** 2) < without)
    assert 0 < np.count_nonzero(parts.recovered) < 10


# -- samplers of trained layers ----------------------------------------------------------------------------------


def test_power_law_has_its_exponent_and_square() -> None:
    values = power_law(50, 0.75)
    assert np.sum(values**2) == pytest.approx(50)
    np.testing.assert_allclose(values[1:] / values[0], np.arange(2, 51) ** -0.75, rtol=1e-13)


@pytest.mark.parametrize(
    "options",
    [{}, {"tokens": 3}, {"output": "linear"}, {"output": "quadratic"}, {"design": "gaussian"}],
    ids=lambda options: "-".join(map(str, options.values())) or "default",
)
def test_power_law_draw_is_consistent(options: dict[str, Any]) -> None:
    drawn = draw("attention_power_law", 24, POINT, options)
    assert drawn["converged"] == 1.0
    assert drawn["target_square"] == pytest.approx(1.0)
    assert drawn["excess"] == pytest.approx(1 + drawn["q"] - 2 * drawn["m"], rel=1e-10)
    assert sum(drawn[name] for name in CAUSES) == pytest.approx(drawn["excess"], rel=1e-10)
    assert min(drawn[name] for name in CAUSES) > -1e-12
    assert drawn["q"] == pytest.approx(np.sum(drawn["eigenvalues"] ** 2), rel=1e-10)
    assert drawn["m"] == pytest.approx(np.sum(drawn["eigenvalues"] * drawn["diagonal"]), rel=1e-10)
    assert np.sum(drawn["diagonal"]) == pytest.approx(np.sum(drawn["target_eigenvalues"]), rel=1e-10)
    assert drawn["rank"] == np.count_nonzero(drawn["eigenvalues"]) >= drawn["recovered"] >= 1
    assert (np.diff(drawn["eigenvalues"]) >= 0).all() and len(drawn["eigenvalues"]) == 24
    assert len(drawn["own_overlaps"]) == 20 and 0.5 < drawn["own_overlaps"][0] < 1
    assert 0 < drawn["test_error_clean"] < drawn["test_error"]


def test_linear_output_without_noise_or_penalty_learns_the_teacher() -> None:
    parameters = {"n_eff": 10.0, "ell": 1e-3, "gamma": 1.0, "noise": 0.0}
    drawn = draw("attention_power_law", 12, parameters, {"output": "linear"})
    assert drawn["excess"] < 1e-3
    np.testing.assert_allclose(drawn["own_overlaps"][:3], 1.0, atol=1e-3)


@pytest.mark.parametrize(("n_eff", "ell"), [(10.0, 1.370194), (100.0, 0.925951), (100.0, 0.180064)])
def test_starts_end_at_one_minimum(n_eff: float, ell: float) -> None:
    """From two random starts, and with a hundred times smaller gradient; no direction is left that lowers the loss."""
    size = 32
    task = draw_output_task(
        np.diag(power_law(size, 1.0)), round(n_eff * size), Setting(0.5), "softmax", "tokens", generator(1)
    )
    objective = Objective(task, ell * math.sqrt(n_eff / size), 1.0, "nuclear", "factorised")
    found = [
        minimise(objective, objective.start(generator(seed)), tolerance=tolerance)
        for seed, tolerance in ((2, TOLERANCE), (3, TOLERANCE), (3, TOLERANCE / 100))
    ]
    matrices = [objective.matrix(each.parameters) for each in found]
    distances = [np.sum((matrix - task.target) ** 2) / size for matrix in matrices]
    np.testing.assert_allclose(distances, distances[-1], atol=3e-4)
    ranks = [spectrum_and_rank(objective, matrix)[1] for matrix in matrices]
    assert len(set(ranks)) == 1 and ranks[0] < size
    assert spectrum_and_rank(objective, matrices[-1])[2] > -1e-4


def test_error_causes_come_from_the_draws_of_attention_training() -> None:
    options = {"tokens": 2, "task": "label", "penalty": "nuclear"}
    for more in ({}, {"penalty": "frobenius"}):
        causes = draw("attention_error_causes", 20, EXTENSIVE, {"tokens": 2, **more}, seed=1)
        plain = draw("attention_training", 20, EXTENSIVE, options | more, seed=1)
        for name in ("m", "q", "train_loss", "rank", "target_square", "alpha", "kappa0", "evaluations"):
            assert causes[name] == pytest.approx(plain[name], rel=1e-5), name
        np.testing.assert_allclose(causes["eigenvalues"], plain["eigenvalues"], atol=1e-10)
        assert causes["test_error"] == pytest.approx(plain["test_error"], rel=0.05)
        distance = plain["target_square"] + plain["q"] - 2 * plain["m"]
        assert causes["excess"] == pytest.approx(distance, rel=1e-4)
        assert sum(causes[name] for name in CAUSES) == pytest.approx(causes["excess"], rel=1e-10)
        assert min(causes[name] for name in CAUSES) > -1e-12
        assert 0 < causes["recovered"] <= causes["rank"] <= 1


def test_two_sizes_share_their_data_and_differ_in_number() -> None:
    parameters = {**POINT, "ratio": 4.0}
    grown = draw("attention_two_sizes", 24, parameters)
    assert grown["outliers_many"] > grown["outliers_few"] >= 1
    assert grown["excess_many"] < grown["excess_few"]
    penalised = draw("attention_two_sizes", 24, parameters, {"along": "ell"})
    assert penalised["outliers_many"] > penalised["outliers_few"]
    alike = draw("attention_two_sizes", 24, {**POINT, "ratio": 1 + 1e-9})
    for name in ("excess", "outliers", "test_error", "rank"):
        assert alike[f"{name}_few"] == pytest.approx(alike[f"{name}_many"], rel=1e-3), name


def test_bad_input_of_the_trained_layers_is_named() -> None:
    for name, value in (("n_eff", 0.0), ("n_eff", 1e-3), ("ell", -1.0), ("gamma", -0.5), ("noise", math.nan)):
        with pytest.raises(ValueError, match=name):
            draw("attention_power_law", 24, {**POINT, name: value})
    for name in ("output", "design"):
        with pytest.raises(ValueError, match=f"{name} must be one of"):
            draw("attention_power_law", 24, POINT, {name: "cubic"})
    with pytest.raises(ValueError, match=r"ratio must be finite and > 1, got 1\.0"):
        draw("attention_two_sizes", 24, {**POINT, "ratio": 1.0})
    with pytest.raises(ValueError, match="along must be one of"):
        draw("attention_two_sizes", 24, {**POINT, "ratio": 2.0}, {"along": "n"})


# -- sparse regression -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("count", "size"), [(1, 7), (5, 12), (10, 10), (20, 200), (40, 300)])
def test_basis_pursuit_solves_the_linear_program(count: int, size: int) -> None:
    for seed in range(3):
        source = generator(seed)
        matrix, values = source.standard_normal((count, size)), source.standard_normal(count)
        solution, gap = basis_pursuit_solution(matrix, values)
        program = scipy.optimize.linprog(np.ones(2 * size), A_eq=np.hstack([matrix, -matrix]), b_eq=values)
        np.testing.assert_allclose(solution, program.x[:size] - program.x[size:], atol=1e-7)
        np.testing.assert_allclose(matrix @ solution, values, atol=1e-9)
        assert gap < 1e-12


def test_basis_pursuit_draw_interpolates_with_as_many_coordinates() -> None:
    drawn = draw("basis_pursuit", 300, {"n": 30, "gamma": 1.0, "noise": 0.5})
    assert drawn["active"] == 30 and drawn["gap"] < 1e-12
    assert drawn["signal"][0] == pytest.approx(1 / math.sqrt(np.sum(np.arange(1, 301.0) ** -2)))
    sharp = draw("basis_pursuit", 60, {"n": 40, "gamma": 8.0, "noise": 0.0})
    assert sharp["excess"] < 1e-8 and sharp["solution"][0] == pytest.approx(sharp["signal"][0], abs=1e-5)


def test_bad_input_of_sparse_regression_is_named() -> None:
    good = {"n": 10, "gamma": 1.0, "noise": 0.5}
    for name, value in (("n", 0), ("n", 61), ("n", 2.5), ("n", math.nan), ("gamma", -1.0), ("noise", math.inf)):
        with pytest.raises(ValueError, match=f"{name} must be"):
            draw("basis_pursuit", 60, {**good, name: value})
