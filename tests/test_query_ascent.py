"""The stochastic ascent: softmax at any logit, the reduction against the plain simulation, seeds, steps, bad input."""

from __future__ import annotations

import itertools
import math
import time
import warnings

import numpy as np
import pytest
from scipy import stats

from numerics.population_ode import Objective
from verify import samplers
from verify.query_ascent import (
    METHODS,
    Ascent,
    StepRule,
    TokenModel,
    aligned_queries,
    ascend,
    plain_gradients,
    random_queries,
    reduced_gradients,
    score_statistics,
    simulate,
    softmax,
)
from verify.samplers import load_sampler

SMALL = TokenModel(1.3, 3, 6, 5)


def test_softmax_at_infinite_and_huge_logits():
    assert softmax([1, 1, np.inf]).tolist() == [0, 0, 1]
    weights = softmax([-249.87, -424.13, -460.29, 378.10, -292.61])
    assert weights == pytest.approx([0, 0, 0, 1, 0], abs=1e-15)
    assert softmax([np.inf, 0, np.inf, -np.inf]).tolist() == [0.5, 0, 0.5, 0]
    assert softmax([1e308, -1e308]).tolist() == [1, 0]
    assert softmax(np.zeros((2, 4))) == pytest.approx(np.full((2, 4), 0.25))


@pytest.mark.parametrize(
    ("logits", "message"), [([0, np.nan], "NaN"), ([], "at least one entry"), ([-np.inf, -np.inf], "-inf in every row")]
)
def test_softmax_refuses(logits, message):
    with pytest.raises(ValueError, match=message):
        softmax(logits)


def test_plain_gradient_is_the_derivative():
    """The chain rule against a difference quotient of ‖f_q‖² on the very same tokens."""
    query = random_queries(1, SMALL.dimension, np.random.default_rng(2))
    gradient, _ = plain_gradients(SMALL, query, np.random.default_rng(7), ambient=True)

    def value(vector):
        tokens = np.random.default_rng(7).standard_normal((1, SMALL.tokens, SMALL.dimension))
        tokens[:, : SMALL.informative, 0] += SMALL.theta
        pooled = softmax(tokens[0] @ vector) @ tokens[0]
        return pooled @ pooled

    step = 1e-6
    for axis in range(SMALL.dimension):
        moved = np.zeros(SMALL.dimension)
        moved[axis] = step
        assert (value(query[0] + moved) - value(query[0] - moved)) / (2 * step) == pytest.approx(
            gradient[0, axis], rel=1e-6, abs=1e-7
        )


@pytest.mark.parametrize(
    "model", [SMALL, TokenModel(2.0, 1, 0, 3), TokenModel(0.5, 2, 1, 2), TokenModel(1.0, 4, 40, 12)]
)
def test_reduced_gradients_have_the_law_of_the_plain_ones(model):
    """Two-sample Kolmogorov–Smirnov tests on the components and their combinations, family-wise 1e-4."""
    count, rho = 30_000, 0.35
    samples = []
    for seed, method in enumerate(("plain", "reduced")):
        generator = np.random.default_rng(seed)
        queries = aligned_queries(rho, count, model.dimension, generator)
        gradient, mass = METHODS[method](model, queries, generator, ambient=True)
        radial = np.einsum("nd,nd->n", gradient, queries)
        tangent = gradient - radial[:, None] * queries
        across = queries.copy()
        across[:, 0] = 0
        across /= np.linalg.norm(across, axis=1, keepdims=True)
        square = np.einsum("nd,nd->n", tangent, tangent)
        inside = np.einsum("nd,nd->n", tangent, across)
        samples.append(
            [
                mass,
                radial,
                tangent[:, 0],
                square,
                tangent[:, 0] + 0.3 * radial,
                square - inside**2 + mass,
                tangent[:, 0] * mass,
            ]
        )
    for plain, reduced in zip(*samples, strict=True):
        if max(np.ptp(plain), np.ptp(reduced)) < 1e-9:
            assert plain.mean() == pytest.approx(reduced.mean(), abs=1e-9)
            continue
        assert stats.ks_2samp(plain, reduced).pvalue > 1e-5


def test_runs_have_the_same_law_by_either_method():
    """Whole runs: the alignment after many steps, with batches, and the distribution of the final query's direction."""
    model, steps = TokenModel(1.5, 3, 9, 4), StepRule(0.6, 5.0)(12)
    ends = []
    for seed, method in enumerate(("plain", "reduced")):
        generator = np.random.default_rng(seed)
        start = np.tile(aligned_queries(0.1, 1, 4, np.random.default_rng(9)), (6000, 1))
        run = simulate(model, start, steps, generator, batch=2, method=method)
        ends.append([run.alignment[:, -1], run.query @ start[0], run.query[:, 3], run.mass.mean(axis=1)])
    for plain, reduced in zip(*ends, strict=True):
        assert stats.ks_2samp(plain, reduced).pvalue > 1e-5


def test_statistics_of_scores_match_their_exact_means():
    model, rho = TokenModel(1.1, 4, 16, 6), -0.4
    found = score_statistics(model, rho, 200_000, np.random.default_rng(4))
    exact = Objective(1.1, 4, 16, 6)
    for name, expected in (
        ("objective", exact.value(rho)),
        ("slope", exact.slope(rho)),
        ("mass", exact.informative_mass(rho)),
    ):
        sample = found[name]
        assert sample.mean() == pytest.approx(expected, abs=4.5 * sample.std() / math.sqrt(len(sample)))
    assert (found["largest"] >= found["token_weight"]).all()


def test_runs_follow_their_own_step_sequence():
    """The mean of many runs against the recursion of mean and variance, and against the uncorrected flow."""
    model, count = TokenModel(1.5, 10, 20, 3), 4000
    steps = StepRule(0.4, 20.0)(40)
    generator = np.random.default_rng(3)
    run = simulate(model, aligned_queries(0.0, count, 3, generator), steps, generator)
    exact = Objective(1.5, 10, 20, 3)
    means, variances = exact.mean_path(0.0, steps)
    error = run.alignment[:, -1].std() / math.sqrt(count)
    assert run.alignment[:, -1].mean() == pytest.approx(means[-1], abs=4.5 * error)
    assert run.alignment[:, -1].var() == pytest.approx(variances[-1], rel=0.15)
    assert abs(run.alignment[:, -1].mean() - exact.trajectory(0.0, steps.sum())) > 6 * error


def test_seeds():
    start = random_queries(3, 5, np.random.default_rng(0))
    rule = StepRule(0.5, 5.0)
    first, again, other = (ascend(SMALL, start, rule, seed, count=20) for seed in (1, 1, 2))
    assert (first.alignment == again.alignment).all() and (first.query == again.query).all()
    assert (first.alignment[:, 1:] != other.alignment[:, 1:]).all()


def test_records():
    start = random_queries(2, 5, np.random.default_rng(0))
    run = ascend(SMALL, start, StepRule(0.5, 5.0), 1, count=10, record=4)
    assert isinstance(run, Ascent)
    assert run.recorded.tolist() == [0, 4, 8, 10]
    assert run.alignment.shape == (2, 4) and run.mass.shape == (2, 3) and run.query.shape == (2, 5)
    assert run.times == pytest.approx(
        [*[0, *itertools.accumulate(StepRule(0.5, 5.0)(10))][::4], StepRule(0.5, 5.0)(10).sum()]
    )
    assert np.linalg.norm(run.query, axis=1) == pytest.approx([1, 1], abs=1e-14)
    assert run.alignment[:, -1] == pytest.approx(run.query[:, 0])
    assert (start == random_queries(2, 5, np.random.default_rng(0))).all()
    nothing = ascend(SMALL, start, StepRule(0.5), 1, count=0)
    assert nothing.alignment.shape == (2, 1) and nothing.mass.shape == (2, 0)


def test_strong_signals_and_single_tokens_stay_finite():
    for model in (TokenModel(800.0, 2, 3, 4), TokenModel(1.0, 1, 0, 2), TokenModel(30.0, 1, 2000, 2)):
        for method in METHODS:
            run = ascend(
                model,
                random_queries(2, model.dimension, np.random.default_rng(1)),
                StepRule(0.1, 10.0),
                1,
                count=5,
                method=method,
            )
            assert np.isfinite(run.alignment).all() and (np.abs(run.alignment) <= 1 + 1e-12).all()


@pytest.mark.parametrize(("exponent", "warned"), [(1.0, False), (0.75, False), (0.5, True), (0.0, True), (1.5, True)])
def test_steps_against_robbins_and_monro(exponent, warned):
    start = random_queries(1, 5, np.random.default_rng(0))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ascend(SMALL, start, StepRule(0.1, 2.0, exponent), 1, count=3)
    assert bool(caught) is warned
    assert all("Robbins-Monro" in str(warning.message) and warning.filename == __file__ for warning in caught)


def test_explicit_steps():
    start = random_queries(1, 5, np.random.default_rng(0))
    with pytest.warns(UserWarning, match="steps do not decrease"):
        constant = ascend(SMALL, start, [0.1, 0.1], 1)
    assert constant.times.tolist() == pytest.approx([0, 0.1, 0.2])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ascend(SMALL, start, [0.1, 0.05], 1, batch=3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: TokenModel(0, 1, 1, 2), "theta must be finite and > 0"),
        (lambda: TokenModel(math.nan, 1, 1, 2), "theta must be finite and > 0"),
        (lambda: TokenModel(1, 0, 1, 2), "informative must be an integer >= 1"),
        (lambda: TokenModel(1, 1, -1, 2), "nuisance must be an integer >= 0"),
        (lambda: TokenModel(1, 1, 1.5, 2), "nuisance must be an integer >= 0"),
        (lambda: TokenModel(1, 1, 1, 1), "dimension must be an integer >= 2"),
        (lambda: StepRule(0), "scale must be finite and > 0"),
        (lambda: StepRule(1, 0), "offset must be finite and > 0"),
        (lambda: StepRule(1, 1, -1), "exponent must be finite and >= 0"),
        (lambda: StepRule(math.nan), "scale must be finite"),
        (lambda: aligned_queries(1.2, 2, 3, np.random.default_rng(0)), r"alignment must lie in \[-1, 1\]"),
        (lambda: aligned_queries(math.nan, 2, 3, np.random.default_rng(0)), r"alignment must lie in \[-1, 1\]"),
        (lambda: ascend(SMALL, np.ones((1, 5)), [0.1], 0), "rows of norm 1"),
        (lambda: ascend(SMALL, np.full((1, 5), np.nan), [0.1], 0), "rows of norm 1"),
        (lambda: ascend(SMALL, np.eye(4)[:1], [0.1], 0), r"start must have shape \(runs, 5\)"),
        (lambda: ascend(SMALL, np.eye(5)[:1], [0.1, math.nan], 0), "steps must be"),
        (lambda: ascend(SMALL, np.eye(5)[:1], [0.1, -0.1], 0), "steps must be"),
        (lambda: ascend(SMALL, np.eye(5)[:1], StepRule(1), 0), "count must be an integer"),
        (lambda: ascend(SMALL, np.eye(5)[:1], [0.1], 0, count=2), "count must be left out"),
        (lambda: ascend(SMALL, np.eye(5)[:1], [0.1], 0, batch=0), "batch must be an integer >= 1"),
        (lambda: ascend(SMALL, np.eye(5)[:1], [0.1], 0, method="fast"), "method must be one of reduced, plain"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_published_size_is_fast_enough():
    """30 runs of 2,000 steps at d = 50, R = 500, 10,000 nuisance tokens must take at most 3 minutes on 2 cores."""
    model = TokenModel(1.0, 500, 10_000, 50)
    start = random_queries(30, 50, np.random.default_rng(0))
    ascend(model, start, StepRule(2.0, 20.0), 1, count=1)
    began = time.process_time()
    ascend(model, start, StepRule(2.0, 20.0), 1, count=10)
    assert (time.process_time() - began) * 200 < 180


def test_reduction_costs_little_memory_and_uses_the_same_signature():
    queries = aligned_queries(0.2, 7, 5, np.random.default_rng(1))
    for draw in (plain_gradients, reduced_gradients):
        gradient, mass = draw(SMALL, queries, np.random.default_rng(2))
        assert gradient.shape == (7, 5) and mass.shape == (7,)
        assert np.abs(np.einsum("nd,nd->n", gradient, queries)).max() < 1e-12


@pytest.mark.parametrize(
    ("name", "size", "parameters", "options", "columns"),
    [
        (
            "query_path",
            4,
            {"theta": 1, "R": 2, "N": 3, "d": 4, "t": 0.4, "start": 0.0},
            {"runs": 3},
            {"alignment", "steps"},
        ),
        ("query_growing_signal", 50, {"r": 0.1, "growth": 0.5}, {"draws": 3}, {"mass", "r", "L"}),
    ],
)
def test_samplers_are_deterministic(name, size, parameters, options, columns):
    draws = [load_sampler(name)(size, np.random.default_rng(seed), parameters, options) for seed in (1, 1, 2)]
    assert set(draws[0]) == columns
    assert draws[0] == draws[1] != draws[2]


def test_ratios_that_are_not_realised_are_refused():
    with pytest.raises(ValueError, match="size must make d/c"):
        load_sampler("query_random_start")(
            7,
            np.random.default_rng(0),
            {"theta": 1, "r": 0.25, "c": 0.3, "t": 1},
            {"runs": 1, "steps_per_dimension": 1},
        )


def test_a_changed_algorithm_makes_draws_stale(monkeypatch):
    """The hash that recognises stale draws covers the algorithm that the samplers import."""
    read, file_of = [], samplers._file_of

    def recorded(module):
        read.append(module)
        return file_of(module)

    monkeypatch.setattr(samplers, "_file_of", recorded)
    samplers.source_hash("query_path")
    assert "verify.query_ascent" in read
