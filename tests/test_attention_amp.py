"""Message passing against its definition: effective outputs, proximal map, divergences, fixed points, and its paths.

The paths are held to a state evolution by plain Monte Carlo that this file writes down for itself; the fixed points to
the minimum that training finds on the same data.
"""

from __future__ import annotations

import itertools
import math
import warnings
from typing import Any

import numpy as np
import pytest

from verify.attention_amp import MessagePassingError, run
from verify.attention_training import TrainingWarning, train
from verify.samplers import load_sampler
from verify.samplers.attention_message_passing import (
    Channel,
    Denoiser,
    _solve_modified,
    effective_outputs,
    message_passing,
    sensing_gram,
    spectral_divergence,
)
from verify.samplers.attention_task import Setting, Task, draw_noise, draw_target, draw_task, softmax_rows

BASE: dict[str, Any] = {"size": 32, "alpha": 1.0, "lam": 0.02, "kappa0": 0.5, "noise": 0.5, "random_state": 1}
PARAMETERS = {"alpha": 0.5, "lam": 0.01, "kappa0": 0.5, "noise": 0.5, "beta": 1.0, "beta_target": 1.0}


def small_task(tokens: int = 2, size: int = 12, samples: int = 40) -> Task:
    generator = np.random.default_rng(5)
    return draw_task(draw_target(size, 0.5, generator), samples, Setting(0.5, 1.2, 0.9, tokens), generator)


def channel_of(task: Task) -> Channel:
    return Channel(task.labels, task.setting.beta, sensing_gram(task))


def identity_gram(outputs: int, samples: int) -> Any:
    return np.repeat(np.eye(outputs)[:, :, None], samples, axis=2)


# -- effective outputs ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tokens", [2, 3, 4])
def test_effective_outputs_are_white_complete_and_as_many_as_softmax_sees(tokens: int) -> None:
    maps = effective_outputs(tokens)
    count = (tokens**2 + tokens - 2) // 2
    assert maps.to_scores.shape == (tokens**2, count)
    generator = np.random.default_rng(0)
    scores = generator.standard_normal((tokens, tokens))
    scores = scores + scores.T
    relative = scores - scores[:, -1:]
    again = (maps.to_scores @ (maps.from_relative @ relative.ravel())).reshape(tokens, tokens)
    assert np.allclose(again - again[:, -1:], relative)
    # Var h_ab = 1 + δ_ab for independent h_ab, a ≤ b, becomes the identity.
    columns = []
    for a, b in itertools.combinations_with_replacement(range(tokens), 2):
        unit = np.zeros((tokens, tokens))
        unit[a, b] = unit[b, a] = math.sqrt(2.0) if a == b else 1.0
        columns.append(maps.from_relative @ (unit - unit[:, -1:]).ravel())
    whitened = np.column_stack(columns)
    assert np.allclose(whitened @ whitened.T, np.eye(count), atol=1e-12)


@pytest.mark.parametrize("tokens", [2, 3])
def test_the_gram_matrix_is_that_of_the_sensing_matrices(tokens: int) -> None:
    task = small_task(tokens, size=7, samples=4)
    maps, gram = effective_outputs(tokens), sensing_gram(task)
    basis = [np.eye(7)[i][:, None] * np.eye(7)[j] for i in range(7) for j in range(7)]
    for sample in range(4):
        single = Task(
            task.inputs[[sample]], task.labels[..., [sample]], task.target, task.setting, task.differences[[sample]]
        )
        # Coordinates of the outputs' sensing matrices: their values on symmetric matrices of unit norm.
        rows = [maps.from_relative @ single.scores((unit + unit.T) / 2).reshape(-1) for unit in basis]
        sensing = np.array(rows)
        assert np.allclose(gram[..., sample], sensing.T @ sensing * 2 / 8, atol=1e-10)


def test_the_gram_matrix_has_the_identity_for_its_mean() -> None:
    task = small_task(size=20, samples=40_000)
    gram = sensing_gram(task)
    error = gram.std(axis=2) / math.sqrt(40_000)
    assert (np.abs(gram.mean(axis=2) - np.eye(2)) < 5 * error).all()


# -- the channel ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tokens", [2, 3, 4])
def test_derivatives_of_the_loss(tokens: int) -> None:
    channel = channel_of(small_task(tokens))
    generator = np.random.default_rng(1)
    shape = (channel.maps.to_scores.shape[1], 40)
    point, direction = generator.standard_normal((2, *shape))
    slope, curvature = channel.derivatives(point)
    step = 1e-6
    ahead, behind = point + step * direction, point - step * direction
    losses = [(channel.attention(outputs)[1] ** 2).sum(axis=(0, 1)) for outputs in (ahead, behind)]
    assert np.allclose((slope * direction).sum(axis=0), (losses[0] - losses[1]) / (2 * step), atol=1e-7)
    slopes = (channel.derivatives(ahead)[0] - channel.derivatives(behind)[0]) / (2 * step)
    assert np.allclose(np.einsum("kln,ln->kn", curvature, direction), slopes, atol=1e-7)


@pytest.mark.parametrize(("tokens", "variance"), [(2, 0.2), (2, 2.5), (2, 20.0), (3, 2.5)])
def test_the_proximal_map_is_the_global_minimum(tokens: int, variance: float) -> None:
    """Nothing that a random search and its polish find is lower, and the gradient vanishes."""
    channel = channel_of(small_task(tokens))
    generator = np.random.default_rng(2)
    centre = 2 * generator.standard_normal((channel.maps.to_scores.shape[1], 40))
    found = channel.proximal(centre, variance)
    slope, _ = channel.derivatives(found)
    assert np.abs(slope + (found - centre) / variance).max() < 1e-8
    rows: Any = np.arange(40)
    lowest = channel._value(found, centre, variance, rows)
    for _ in range(60):
        start = centre + 3 * math.sqrt(variance) * generator.standard_normal(centre.shape)
        _, value = channel._descend(start, centre, variance, rows)
        assert (value > lowest - 1e-9).all()


def test_one_start_where_the_objective_is_convex_finds_what_several_find() -> None:
    channel = channel_of(small_task(samples=500))
    centre = 3 * np.random.default_rng(3).standard_normal((2, 500))
    variance = 0.9 / channel._concavity.max()
    one = channel.proximal(centre, variance)
    channel._concavity = np.full(500, math.inf)
    assert np.abs(channel.proximal(centre, variance) - one).max() < 1e-9


def test_the_curvature_is_bounded_as_the_choice_of_starts_assumes() -> None:
    """Least eigenvalue of the Hessian over labels and outputs, and that the bound is nearly attained."""
    generator = np.random.default_rng(4)
    labels = np.zeros((2, 2, 200_000))
    labels[:, 0] = generator.integers(0, 2, (2, 200_000))
    labels[:, 1] = 1 - labels[:, 0]
    channel = Channel(labels, 1.5, identity_gram(2, 200_000))
    _, curvature = channel.derivatives(2 * generator.standard_normal((2, 200_000)))
    least = float(np.linalg.eigvalsh(np.moveaxis(curvature, -1, 0)).min())
    bound = channel._concavity[0] / 2  # the trace of G = I is 2
    assert -bound <= least < -0.9 * bound


@pytest.mark.parametrize("tokens", [2, 3])
def test_the_divergence_of_the_channel(tokens: int) -> None:
    channel = channel_of(small_task(tokens))
    centre, variance, step = np.random.default_rng(2).standard_normal((channel.maps.to_scores.shape[1], 40)), 0.4, 1e-5
    expected = np.zeros(40)
    for k in range(len(centre)):
        shift = np.zeros_like(centre)
        shift[k] = step
        residuals = [channel.proximal(centre + sign * shift, variance) - centre - sign * shift for sign in (1, -1)]
        expected += (residuals[0] - residuals[1])[k] / (2 * step * variance)
    assert np.allclose(channel.divergence(channel.proximal(centre, variance), variance), expected, atol=1e-6)


def test_the_modified_factorisation_solves_and_descends() -> None:
    generator = np.random.default_rng(0)
    raw = generator.standard_normal((5, 5, 300))
    symmetric = raw + raw.swapaxes(0, 1)
    positive = np.einsum("ikn,jkn->ijn", raw, raw) + np.eye(5)[:, :, None]
    right = generator.standard_normal((5, 300))
    solved = _solve_modified(positive.copy(), right, 1e-12)
    assert np.allclose(np.einsum("kln,ln->kn", positive, solved), right, atol=1e-8)
    assert ((_solve_modified(symmetric.copy(), right, 0.1) * right).sum(axis=0) > 0).all()


def test_a_proximal_map_that_does_not_converge_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("verify.samplers.attention_message_passing.NEWTON_STEPS", 1)
    with pytest.raises(MessagePassingError, match="did not converge on"):
        run(**BASE)


# -- the denoiser -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("penalty", "parametrisation"),
    [("nuclear", "factorised"), ("frobenius", "factorised"), ("frobenius", "elementwise")],
)
def test_the_denoiser_minimises_and_its_divergence_is_the_trace_of_its_derivative(
    penalty: str, parametrisation: str
) -> None:
    generator = np.random.default_rng(0)
    raw = generator.standard_normal((6, 6))
    field, precision, lam, kappa = raw + raw.T, 0.7, 0.4, 0.5
    denoiser = Denoiser.of(lam, kappa, penalty, parametrisation)
    matrix, divergence = denoiser(field, precision)

    def objective(candidate: Any) -> float:
        penalised = math.sqrt(kappa) * lam * np.trace(candidate) if penalty == "nuclear" else 0.0
        ridge = lam if penalty == "frobenius" else 0.0
        return float((precision + ridge) / 2 * np.sum(candidate**2) - np.sum(candidate * field) + penalised)

    lowest = objective(matrix)
    for _ in range(200):
        other = generator.standard_normal((6, 6))
        towards = other @ other.T if parametrisation == "factorised" else other + other.T
        for share in (1e-1, 1e-3):
            assert objective((1 - share) * matrix + share * towards) > lowest
    total, step = 0.0, 1e-6
    for i, j in itertools.combinations_with_replacement(range(6), 2):
        unit = np.zeros((6, 6))
        unit[i, j] = unit[j, i] = 1.0 if i == j else math.sqrt(0.5)
        change = denoiser(field + step * unit, precision)[0] - denoiser(field - step * unit, precision)[0]
        total += float(np.sum(change * unit)) / (2 * step)
    assert divergence == pytest.approx(total, rel=1e-6)


def test_coinciding_eigenvalues_have_the_derivative_for_their_quotient() -> None:
    values = np.array([1.0, 1.0, 3.0])
    assert spectral_divergence(values, values**2, 2 * values) == pytest.approx(2 + 2 + 6 + 2 + 4 + 4)


# -- the iteration ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"tokens": 3},
        {"kappa": 2.0},
        {"beta": 1.5, "beta_target": 0.8},
        {"penalty": "frobenius", "lam": 0.2},
        {"penalty": "frobenius", "lam": 0.2, "parametrisation": "factorised"},
    ],
)
def test_a_fixed_point_is_the_trained_minimum_on_the_same_data(change: dict[str, Any]) -> None:
    settings = {**BASE, **change}
    passed = run(**settings, iterations=500, tolerance=1e-7)
    trained = train(**settings, tolerance=1e-6)
    assert passed.converged
    assert np.array_equal(passed.target, trained.target)
    assert np.linalg.norm(passed.matrix - trained.matrix) < 1e-4 * np.linalg.norm(trained.matrix)
    assert passed.objective == pytest.approx(trained.objective, rel=1e-8)
    assert passed.rank == trained.rank
    assert passed.m_path[-1] == passed.m == pytest.approx(trained.m, rel=1e-4)


def test_damping_keeps_the_fixed_point() -> None:
    plain = run(**BASE, iterations=500)
    damped = run(**BASE, iterations=500, damping=0.3)
    assert np.allclose(damped.matrix, plain.matrix, atol=1e-4)
    assert not np.allclose(damped.m_path[:3], plain.m_path[:3], rtol=1e-2)


def state_evolution(iterations: int, alpha: float, lam: float) -> Any:
    """(m, q, V) of the first iterations by Monte Carlo, T = 2, κ0 = Δ = ½: scalar channel and one large random matrix.

    The three channel averages need no derivative in the target: E g·h0 = Q0 m̃/α − m ṽ/α (integration by parts).
    """
    generator = np.random.default_rng(11)
    count, size, noise = 30_000, 400, 0.5
    target = draw_target(size, 0.5, generator)
    square = float(np.sum(target**2)) / size
    raw = generator.standard_normal((size, size))
    wigner = (raw + raw.T) / math.sqrt(2 * size)
    one, two = generator.standard_normal((2, 2, count))
    disturbance = draw_noise(count, Setting(noise), generator)
    scores_of = effective_outputs(2).to_scores
    denoiser = Denoiser.of(lam, 1.0, "nuclear", "factorised")
    variance: float = 1.0
    m, q, path = 0.0, 0.0, []
    for _ in range(iterations):
        truth = math.sqrt(square) * one
        centre = m / math.sqrt(square) * one + math.sqrt(q - m * m / square) * two
        labels = softmax_rows((scores_of @ truth).reshape(2, 2, count) + disturbance)
        channel = Channel(labels, 1.0, identity_gram(2, count))
        outputs = channel.proximal(centre, variance)
        residual: Any = (outputs - centre) / variance
        precision = -alpha * channel.divergence(outputs, variance).mean()
        strength = alpha * (residual**2).sum(axis=0).mean()
        signal = (alpha * (residual * truth).sum(axis=0).mean() + m * precision) / square
        learned, divergence = denoiser(signal * target + math.sqrt(strength / 2) * wigner, precision)
        m, q = float(np.sum(learned * target)) / size, float(np.sum(learned**2)) / size
        variance = divergence / size**2
        path.append((m, q, variance))
    return np.array(path)


def test_the_iterates_follow_the_state_evolution_step_by_step() -> None:
    """Mean paths at d and 2d: what is left at d → ∞ by halving the bias, which is of order 1/d."""
    iterations, replicates = 5, {16: 50, 32: 16}
    expected = state_evolution(iterations, 0.5, 0.01)
    denoiser = Denoiser.of(0.01, 1.0, "nuclear", "factorised")
    means, errors = {}, {}
    for size, count in replicates.items():
        # m and q go with the teacher's square, whose own fluctuation is put right to first order.
        rows = []
        for replicate in range(count):
            generator = np.random.default_rng([size, replicate])
            target = draw_target(size, 0.5, generator)
            found = message_passing(draw_task(target, size**2 // 2, Setting(0.5), generator), denoiser, iterations)
            share = 1.5 * size / float(np.sum(target**2))
            rows.append(np.column_stack([found.m * share, found.q * share, found.variance]))
        means[size], errors[size] = np.mean(rows, axis=0), np.std(rows, axis=0, ddof=1) / math.sqrt(count)
    limit = 2 * means[32] - means[16]
    error = np.hypot(2 * errors[32], errors[16])
    assert (np.abs(limit - expected) < 4 * error + 0.01 * expected).all()
    assert (error < 0.15 * expected).all()
    # The test can fail: paths that lag by one step differ by more.
    assert (np.abs(limit[1:] - expected[:-1]) > 4 * error[1:]).any()


def test_without_the_onsager_term_the_second_iterate_is_another_one() -> None:
    generator = np.random.default_rng(4)
    task = draw_task(draw_target(16, 0.5, generator), 128, Setting(0.5), generator)
    denoiser = Denoiser.of(0.01, 1.0, "nuclear", "factorised")
    full, bare = (message_passing(task, denoiser, 3, onsager=onsager) for onsager in (True, False))
    assert full.m[0] == bare.m[0]
    assert full.variance[0] == bare.variance[0]
    assert bare.m[1] < 0.95 * full.m[1]
    assert bare.variance[1] > 1.05 * full.variance[1]


def test_random_states() -> None:
    settings = {**BASE, "size": 16, "iterations": 5, "tolerance": 10.0}
    assert np.array_equal(run(**settings).m_path, run(**settings).m_path)
    assert not np.array_equal(run(**settings).m_path, run(**{**settings, "random_state": 2}).m_path)


# -- warnings, errors, the sampler ------------------------------------------------------------------------------


def test_no_convergence_is_reported() -> None:
    with pytest.warns(TrainingWarning, match="message passing stopped at a residual of"):
        result = run(**BASE, iterations=3)
    assert not result.converged
    assert len(result.m_path) == len(result.q_path) == len(result.variance_path) == len(result.residual_path) == 3


def test_a_penalty_that_leaves_nothing_is_an_error() -> None:
    with pytest.raises(MessagePassingError, match=r"V must be > 0, got 0 after iteration 1"):
        run(**{**BASE, "lam": 100.0})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"alpha": -1.0}, "alpha must be finite and > 0"),
        ({"lam": -1.0}, "lam must be finite and >= 0"),
        ({"kappa": 0.0}, "kappa must be finite and > 0"),
        ({"noise": -0.1}, "noise must be finite and >= 0"),
        ({"iterations": 0}, "iterations must be an integer >= 1"),
        ({"initial_variance": 0.0}, "initial_variance must be finite and > 0"),
        ({"damping": 1.0}, "damping must be finite and >= 0 and < 1, got 1"),
        ({"tolerance": -1.0}, "tolerance must be finite and >= 0"),
        ({"penalty": "l1"}, "penalty must be one of"),
        ({"parametrisation": "elementwise"}, 'penalty must be "frobenius"'),
    ],
)
def test_bad_input(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        run(**{**BASE, **change})


def test_a_sequence_label_is_refused() -> None:
    generator = np.random.default_rng(0)
    task = draw_task(draw_target(6, 0.5, generator), 10, Setting(task="sequence"), generator)
    with pytest.raises(ValueError, match='task must be "label"'):
        message_passing(task, Denoiser.of(0.1, 1.0, "nuclear", "factorised"), 3)


def test_a_progress_bar_is_shown_when_asked(capsys: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrainingWarning)
        run(**BASE, iterations=2, progress=True)
    assert "message passing" in capsys.readouterr().out


def test_the_sampler_reports_what_it_says() -> None:
    sampler = load_sampler("attention_amp")
    drawn = sampler(14, np.random.default_rng(0), {**PARAMETERS, "kappa": 0.75}, {"tokens": 2, "iterations": 4})
    paths = {name for name in drawn if name.endswith("_path")}
    assert paths == {f"{name}_path" for name in ("m", "q", "variance", "residual", "q_channel", "v_channel")}
    paths |= {f"{name}_path_bare" for name in ("m", "q", "variance")}
    assert all(drawn[name].shape == (4,) and np.isfinite(drawn[name]).all() for name in paths)
    assert {"alpha", "kappa0", "target_square", "m", "q", "test_error"} <= set(drawn)
    assert drawn["kappa0"] == 0.5
