"""Training of tied attention against its definition: scores, losses, gradients, first-order conditions, warnings.

Nothing here reads a law. What the layer is held to is a brute-force computation, a finite difference, or the other
minimiser.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest

from verify.attention_training import TrainingWarning, train
from verify.samplers import load_sampler
from verify.samplers.attention_learning import weight_singular_values
from verify.samplers.attention_minimise import Objective, minimise, spectrum_and_rank
from verify.samplers.attention_task import (
    Setting,
    Task,
    draw_noise,
    draw_target,
    draw_task,
    generalisation,
    softmax_rows,
    target_of,
)

BASE: dict[str, Any] = {"size": 24, "alpha": 0.5, "lam": 0.01, "kappa0": 0.5, "noise": 0.5, "random_state": 1}
PARAMETERS = {"alpha": 0.5, "lam": 0.01, "kappa0": 0.5, "noise": 0.5, "kappa": 0.75, "beta": 1.0, "beta_target": 1.0}
OPTIONS = {"tokens": 2, "task": "label", "penalty": "nuclear"}


def small_task(tokens: int = 2, task: str = "label", size: int = 9, samples: int = 30, noise: float = 0.5) -> Task:
    generator = np.random.default_rng(5)
    setting = Setting(noise, beta=1.3, beta_target=0.8, tokens=tokens, task=task)
    return draw_task(draw_target(size, 0.5, generator), samples, setting, generator)


def symmetric(size: int, seed: int = 0) -> Any:
    raw = np.random.default_rng(seed).standard_normal((size, size))
    return raw + raw.T


def full_scores(task: Task, matrix: Any) -> Any:
    """h_ab = (x_aᵀ S x_b − δ_ab Tr S)/√d, written as it is defined: n × T × T."""
    trace = np.trace(matrix) * np.eye(task.setting.tokens)
    return (task.inputs @ matrix @ task.inputs.transpose(0, 2, 1) - trace) / math.sqrt(task.size)


def row_softmax(scores: Any) -> Any:
    weights = np.exp(scores)
    return weights / weights.sum(axis=-1, keepdims=True)


# -- the task ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tokens", [2, 3, 5])
def test_scores_are_those_of_the_definition_up_to_a_constant_within_a_row(tokens: int) -> None:
    task, matrix = small_task(tokens), symmetric(9)
    full = full_scores(task, matrix)
    relative = full - full[:, :, -1:]
    assert np.allclose(task.scores(matrix).transpose(2, 0, 1), relative, atol=1e-12)


@pytest.mark.parametrize("tokens", [2, 3])
@pytest.mark.parametrize("kind", ["label", "sequence"])
def test_the_loss_is_that_of_the_definition(tokens: int, kind: str) -> None:
    task, matrix = small_task(tokens, kind), symmetric(9, 1)
    attention = row_softmax(task.setting.beta * full_scores(task, matrix))
    error = attention - task.labels.transpose(2, 0, 1)
    expected = (error**2).sum() if kind == "label" else ((error @ task.inputs) ** 2).sum() / task.size
    assert task.loss(matrix) == pytest.approx(expected, rel=1e-12)
    assert task.loss_and_gradient(matrix)[0] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("tokens", [2, 4])
@pytest.mark.parametrize("kind", ["label", "sequence"])
@pytest.mark.parametrize(
    ("penalty", "parametrisation"),
    [("nuclear", "factorised"), ("frobenius", "factorised"), ("frobenius", "elementwise")],
)
def test_gradients_by_hand_are_finite_differences(tokens: int, kind: str, penalty: str, parametrisation: str) -> None:
    task = small_task(tokens, kind)
    objective = Objective(task, 0.3, 0.6, penalty, parametrisation)
    generator = np.random.default_rng(2)
    point = objective.start(generator)
    directions = [objective.start(generator) for _ in range(3)]
    point = point + directions[0] * (300 if parametrisation == "elementwise" else 1)
    _, gradient = objective(point)
    for direction in directions:
        step = 1e-5 / np.abs(direction).max()
        slope = (objective(point + step * direction)[0] - objective(point - step * direction)[0]) / (2 * step)
        assert gradient @ direction == pytest.approx(slope, rel=1e-6)


def test_the_loss_does_not_depend_on_the_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    task, matrix = small_task(3), symmetric(9)
    value, gradient = task.loss_and_gradient(matrix)
    monkeypatch.setattr("verify.samplers.attention_task.BLOCK", 60)
    assert len(list(task.blocks())) > 3
    again, other = task.loss_and_gradient(matrix)
    assert again == pytest.approx(value, rel=1e-13)
    assert np.allclose(gradient, other, rtol=1e-12)


def test_huge_scores_give_no_nan() -> None:
    task = small_task()
    value, gradient = task.loss_and_gradient(1e5 * symmetric(9))
    assert math.isfinite(value)
    assert np.isfinite(gradient).all()
    logits = np.array([-249.87, -424.13, -460.29, 378.10, -292.61])
    weights = softmax_rows(np.broadcast_to(logits, (5, 5))[..., None])[0, :, 0]
    assert np.allclose(weights, [0, 0, 0, 1, 0], atol=1e-15)


def test_noise_has_its_variance_and_is_symmetric() -> None:
    noise = draw_noise(200_000, Setting(0.7, tokens=3), np.random.default_rng(0))
    assert np.array_equal(noise, noise.swapaxes(0, 1))
    variance = noise.var(axis=2)
    expected = 0.7 * (np.eye(3) + 1) / 2
    assert np.abs(variance - expected).max() < 5 * 0.7 * math.sqrt(2 / 200_000)


def test_the_target_has_its_exact_mean_square() -> None:
    generator = np.random.default_rng(0)
    squares = [np.sum(draw_target(20, 0.5, generator) ** 2) / 20 for _ in range(2000)]
    error = np.std(squares) / math.sqrt(2000)
    assert abs(np.mean(squares) - (10 + 20 + 1) / 20) < 4.5 * error  # E Tr S₀²/d = (p₀ + d + 1)/d


@pytest.mark.parametrize("kind", ["label", "sequence"])
def test_the_teacher_itself_has_no_clean_error(kind: str) -> None:
    generator = np.random.default_rng(0)
    target = draw_target(16, 0.5, generator)
    noisy, clean = generalisation(target, target, Setting(0.5, task=kind), 2000, generator)
    assert clean == 0.0
    assert noisy > 0.01
    exact = draw_task(target, 50, Setting(0.0, task=kind), generator)
    assert exact.loss(target) == 0.0


def test_a_target_may_be_a_spectrum_or_a_matrix() -> None:
    assert np.array_equal(target_of([3.0, 1.0]), np.diag([3.0, 1.0]))
    result = train(12, 0.5, 0.01, target=symmetric(12), noise=0.1, random_state=0)
    assert result.target_square == pytest.approx(np.sum(symmetric(12) ** 2) / 12)
    assert np.allclose(result.target_eigenvalues, np.linalg.eigvalsh(symmetric(12)))


# -- the minimum ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("penalty", "lam"), [("nuclear", 0.02), ("frobenius", 0.1)])
def test_a_factorised_minimum_meets_the_first_order_conditions(penalty: str, lam: float) -> None:
    generator = np.random.default_rng(3)
    task = draw_task(draw_target(20, 0.5, generator), 200, Setting(0.5), generator)
    objective = Objective(task, lam, 1.0, penalty, "factorised")
    found = minimise(objective, objective.start(generator), tolerance=1e-6)
    matrix = objective.matrix(found.parameters)
    multiplier = objective.multiplier(matrix)
    scale = np.linalg.norm(multiplier)
    assert found.converged
    assert np.linalg.norm(multiplier @ matrix) < 1e-5 * scale * np.linalg.norm(matrix)
    assert np.linalg.eigvalsh(multiplier)[0] > -1e-5 * scale
    assert found.objective == pytest.approx(task.loss(matrix) + objective.penalty(matrix), rel=1e-12)
    values, rank, _ = spectrum_and_rank(objective, matrix)
    assert np.count_nonzero(values) == rank
    assert np.allclose(values, np.linalg.eigvalsh(matrix), atol=1e-5)
    for step in (1e-4, 1e-3, 1e-2):  # Ŝ = (Ŝ − tM)₊ for every t
        assert np.count_nonzero(np.linalg.eigvalsh(matrix - step * multiplier) > 0) == rank


def test_without_factors_the_gradient_vanishes_and_signs_are_free() -> None:
    result = train(**{**BASE, "lam": 0.05}, penalty="frobenius")
    assert result.converged
    assert result.weight_singular_values is None
    assert result.eigenvalues[0] < 0
    assert result.rank == np.count_nonzero(result.eigenvalues > 0) / 24


def test_the_penalty_is_the_weight_decay_of_the_weights() -> None:
    task = small_task()
    objective = Objective(task, 0.3, 0.6, "nuclear", "factorised")
    weights = objective.start(np.random.default_rng(0))
    value, _ = objective(weights)
    assert value - task.loss(objective.matrix(weights)) == pytest.approx(0.3 * weights @ weights)
    assert objective.penalty(objective.matrix(weights)) == pytest.approx(0.3 * weights @ weights)


@pytest.mark.parametrize("kappa", [0.6, 1.0, 2.0])
def test_parameters_of_a_matrix_and_singular_values_of_the_weights(kappa: float) -> None:
    objective = Objective(small_task(size=10), 0.3, kappa, "nuclear", "factorised")
    matrix = objective.matrix(objective.start(np.random.default_rng(0)))
    parameters = objective.parameters_of(matrix)
    assert np.allclose(objective.matrix(parameters), matrix)
    weights = parameters.reshape(10, -1)
    expected = np.sort(np.linalg.svd(weights, compute_uv=False)) / math.sqrt(10)
    eigenvalues = np.maximum(np.linalg.eigvalsh(matrix), 0)
    assert np.allclose(weight_singular_values(eigenvalues, objective.columns), expected, atol=1e-7)


def test_both_methods_reach_the_same_minimum_and_the_quasi_newton_one_sooner() -> None:
    quasi = train(**BASE)
    adam = train(**BASE, method="adam", budget=5000, tolerance=1e-4)
    assert adam.converged
    assert quasi.converged
    assert adam.objective == pytest.approx(quasi.objective, rel=1e-4)
    assert adam.train_loss == pytest.approx(quasi.train_loss, rel=1e-3)
    near = 1 + 1e-4
    first = [int(np.argmax(run.history <= near * quasi.objective)) for run in (quasi, adam)]
    assert 10 * first[0] < first[1]


@pytest.mark.parametrize(
    "change", [{}, {"task": "sequence"}, {"tokens": 3}, {"kappa": 2.0}, {"kappa": 0.75}, {"beta": 2.0}, {"lam": 0.0}]
)
def test_every_setting_converges_and_two_starts_agree(change: dict[str, Any]) -> None:
    result = train(**{**BASE, **change}, starts=2)
    assert result.converged
    assert result.gradient_norm <= 1e-5
    assert result.objectives[0] == pytest.approx(result.objectives[1], rel=1e-6)
    assert result.q > 0
    assert 0 < result.rank <= 1
    assert result.eigenvalues.shape == (24,)
    assert result.test_error > result.train_loss > 0
    assert len(result.history) == result.evaluations


def test_the_solution_does_not_depend_on_a_width_that_does_not_bind() -> None:
    """Weight decay λ√κ: the same λ√κ at another width is the same problem."""
    one, two = train(**BASE), train(**{**BASE, "lam": 0.01 / math.sqrt(2)}, kappa=2.0)
    assert two.objective == pytest.approx(one.objective, rel=1e-6)
    assert two.m == pytest.approx(one.m, rel=1e-4)


def test_random_states() -> None:
    first, same, other = train(**BASE), train(**BASE), train(**{**BASE, "random_state": 2})
    assert np.array_equal(first.matrix, same.matrix)
    assert first.test_error == same.test_error
    assert first.m != other.m
    adam = quietly(**BASE, method="adam", budget=3)
    assert np.array_equal(adam.target, first.target)


def quietly(**settings: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrainingWarning)
        return train(**settings)


# -- warnings and errors ----------------------------------------------------------------------------------------


def test_a_width_that_binds_is_reported() -> None:
    with pytest.warns(TrainingWarning, match="the width binds") as caught:
        result = train(**BASE, kappa=0.25)
    assert len(caught) == 1
    assert result.rank == 0.25


def test_no_convergence_is_reported() -> None:
    with pytest.warns(TrainingWarning, match="not converged: the relative gradient") as caught:
        result = train(**BASE, budget=10)
    assert not result.converged
    assert result.gradient_norm > 1e-5
    assert 10 <= result.evaluations <= 32  # L-BFGS finishes the line search that it is in
    assert "budget" in str(caught[0].message)


def test_starts_that_differ_are_reported() -> None:
    settings = {**BASE, "size": 16, "lam": 0.03, "noise": 20.0, "beta": 5.0, "beta_target": 5.0}
    with pytest.warns(TrainingWarning, match="starts ended at different objectives"):
        result = train(**settings, starts=3)
    assert min(result.objectives) == pytest.approx(result.objective, rel=1e-9)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"alpha": 0.0}, r"alpha must be finite and > 0, got 0\.0 \(alpha = n/d², the ratio of samples"),
        ({"alpha": 1e-4}, "rounds n = alpha·d² to 0"),
        ({"alpha": math.nan}, "alpha must be finite"),
        ({"lam": -0.1}, "lam must be finite and >= 0, got -0.1"),
        ({"lam": "eval"}, "lam must be finite"),
        ({"kappa0": 0.0}, "kappa0 must be finite and > 0"),
        ({"kappa0": 1e-3}, "rounds the width kappa0·d to 0"),
        ({"kappa0": None}, "exactly one of kappa0"),
        ({"target": [1.0] * 24}, "exactly one of kappa0"),
        ({"kappa": 0.0}, "kappa must be finite and > 0"),
        ({"kappa": math.inf}, "kappa must be finite"),
        ({"noise": -1.0}, "noise must be finite and >= 0"),
        ({"tokens": 1}, "tokens must be an integer >= 2, got 1"),
        ({"tokens": 2.5}, "tokens must be an integer"),
        ({"beta": 0.0}, "beta must be finite and > 0"),
        ({"beta_target": -1.0}, "beta_target must be finite and > 0"),
        ({"size": 1}, "size must be an integer >= 2"),
        ({"task": "vision"}, "task must be one of 'label', 'sequence', got 'vision'"),
        ({"penalty": "l1"}, "penalty must be one of"),
        ({"method": "sgd"}, "method must be one of"),
        ({"parametrisation": "elementwise"}, 'penalty must be "frobenius"'),
        ({"parametrisation": "low-rank"}, "parametrisation must be one of"),
        ({"starts": 0}, "starts must be an integer >= 1"),
        ({"budget": 0}, "budget must be an integer >= 1"),
        ({"tolerance": 0.0}, "tolerance must be finite and > 0"),
        ({"learning_rate": 0.0}, "learning_rate must be finite and > 0"),
        ({"fresh": 0}, "fresh must be an integer >= 1"),
    ],
)
def test_bad_input(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        train(**{**BASE, **change})


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ([1.0, math.nan], "target must be finite"),
        ([[1.0, 2.0], [0.0, 1.0]], "target must be a symmetric matrix"),
        ([1.0], "d >= 2"),
        (np.ones((2, 3)), "d × d matrix"),
        ([1.0, 2.0, 3.0], "target must have size = 2"),
    ],
)
def test_bad_targets(target: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        train(2, 1.0, 0.1, target=target)


def test_a_progress_bar_is_shown_when_asked(capsys: pytest.CaptureFixture[str]) -> None:
    train(**BASE, fresh=10)
    assert capsys.readouterr().out == ""
    train(**BASE, fresh=10, progress=True)
    assert "training 1/1" in capsys.readouterr().out


# -- the sampler ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("penalty", ["nuclear", "frobenius"])
def test_the_sampler_reports_what_it_says(penalty: str) -> None:
    sampler = load_sampler("attention_training")
    drawn = sampler(13, np.random.default_rng(0), PARAMETERS, {**OPTIONS, "penalty": penalty})
    again = sampler(13, np.random.default_rng(0), PARAMETERS, {**OPTIONS, "penalty": penalty})
    vectors = {"eigenvalues": 13, "target_eigenvalues": 13}
    if penalty == "nuclear":
        vectors["weight_singular_values"] = 10
    scalars = set(drawn) - set(vectors)
    expected = {"train_loss", "test_error", "test_error_clean", "m", "q", "rank", "gradient_norm", "converged"}
    assert expected <= scalars
    assert all(np.shape(drawn[name]) == (length,) for name, length in vectors.items())
    assert all(isinstance(drawn[name], float) and math.isfinite(drawn[name]) for name in scalars)
    assert all(np.array_equal(drawn[name], again[name]) for name in drawn)
    assert drawn["converged"] == 1.0
    assert drawn["alpha"] == round(0.5 * 13**2) / 13**2
    assert drawn["kappa0"] == round(0.5 * 13) / 13
    assert drawn["target_square"] == pytest.approx(1 + drawn["kappa0"], rel=1e-12)  # scaled, so that it does not blur
    assert np.count_nonzero(drawn["target_eigenvalues"] > 1e-9) == round(0.5 * 13)
    assert ("kappa" in drawn) == (penalty == "nuclear")
    if penalty == "nuclear":
        assert drawn["kappa"] == 10 / 13
        assert drawn["rank"] == np.count_nonzero(drawn["eigenvalues"]) / 13


def test_a_draw_that_did_not_converge_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("verify.samplers.attention_learning.UNUSABLE", 1e-12)
    with pytest.raises(ArithmeticError, match="relative gradient of"):
        load_sampler("attention_training")(10, np.random.default_rng(0), PARAMETERS, OPTIONS)
