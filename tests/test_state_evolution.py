"""The solver of the mean-field equations: its laws, reference values, other routes to the same number, bad input.

Reference values come from an independent solution of the same equations, to the digits given.
"""

from __future__ import annotations

import dataclasses
import io
import itertools
import re
import sys
import warnings
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.optimize
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st

from derivations import spectral_learning as learning
from derivations import state_evolution as chapter
from derivations.core import Law
from numerics import attention_channel
from numerics import state_evolution as solver
from numerics.attention_channel import (
    ChannelMeans,
    ManyTokenChannel,
    Scores,
    TwoTokenChannel,
    _MatrixProximal,
    _Proximal,
    _responses,
    lattice,
    logistic,
    sample_sizes,
    softmax,
    symmetric_basis,
)
from numerics.compile import function
from numerics.spectral_learning import GaussianTarget
from numerics.state_evolution import (
    LearnedAttention,
    NotSolvedError,
    Overlaps,
    Problem,
    Quadrature,
    conjugates,
    evaluate,
    interpolation_threshold,
    iterates,
    recovery_threshold,
    solution_component,
    solve,
    sweep,
)
from tests.bad_values import no_real_number

REFERENCE = {  # α: m, q, V, training loss, test error, rank
    0.5: (1.38094, 1.46236, 2.30340, 0.0316629, 0.135990, 0.644301),
    4.0: (1.32874, 1.19448, 0.154686, 0.0679469, 0.080391, 0.718395),
}


@pytest.fixture(scope="module")
def solutions() -> dict[float, LearnedAttention]:
    return {alpha: solve(alpha, 0.01, 0.5, noise=0.5) for alpha in REFERENCE}


# -- reference values ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", REFERENCE)
def test_reference_rows(solutions: dict[float, LearnedAttention], alpha: float) -> None:
    found = solutions[alpha]
    values = (found.m, found.q, found.V, found.train_loss, found.test_error, found.rank)
    np.testing.assert_allclose(values, REFERENCE[alpha], rtol=1e-5)
    assert found.converged
    assert found.stable
    assert found.residual <= 1e-8
    assert found.quadrature_error <= 1e-5


def test_stability_of_the_reference_rows(solutions: dict[float, LearnedAttention]) -> None:
    assert solutions[0.5].replicon == pytest.approx(0.47, abs=0.01)
    assert solutions[4.0].replicon == pytest.approx(0.08, abs=0.005)


def test_the_width_of_the_factor_scales_the_penalty() -> None:
    found = solve(0.5, 0.01, 0.5, noise=0.5, kappa=2.0)
    assert (found.m, found.q) == pytest.approx((1.3253, 1.3400), abs=5e-5)
    same = solve(0.5, 0.01 * np.sqrt(2), 0.5, noise=0.5)
    assert (found.m, found.q) == pytest.approx((same.m, same.q), rel=1e-7)


def test_both_tasks_share_the_limit(solutions: dict[float, LearnedAttention]) -> None:
    assert solve(4.0, 0.01, 0.5, noise=0.5, task="sequence").m == solutions[4.0].m


@pytest.mark.parametrize(
    ("found", "expected", "digits"),
    [
        (interpolation_threshold(0.5, 0.5), 0.306964 / 2, 6),
        (interpolation_threshold(0.5, 0.5, tokens=3), 0.306964 / 5, 6),
        (interpolation_threshold(0.5, 0.0), 0.4375 / 2, 12),
        (interpolation_threshold(2.0, 0.0), 0.25, 12),
        (recovery_threshold(0.5), 0.42217 / 2, 5),
        (recovery_threshold(0.5, tokens=3), 0.42217 / 5, 5),
        (recovery_threshold(0.5, penalty="frobenius"), 0.25, 12),
        (recovery_threshold(0.5, penalty="bayes"), 0.375 / 2, 12),
        (recovery_threshold(2.0), 0.25, 12),
    ],
)
def test_thresholds(found: float, expected: float, digits: int) -> None:
    assert found == pytest.approx(expected, abs=1.01 * 10**-digits)


INTERPOLATION = {  # α by (κ₀, Δ): roots and integrals over the density with 45 digits, from the cubic's roots
    (1e-15, 1e-15): 0.12500000000000025,
    (1e-15, 0.5): 0.12500000000000007043,
    (1e-15, 1e15): 0.125,
    (1e-6, 1e-15): 0.12500024999651317403,
    (1e-6, 0.5): 0.12500007042747667039,
    (1e-6, 1e15): 0.125,
    (0.5, 1e-15): 0.21874866586128423443,
    (0.5, 0.5): 0.15348210285908006757,
    (0.5, 1e15): 0.12500000000000004503,
    (1.0, 1e-15): 0.24999979489634763153,
    (1.0, 0.5): 0.17232966016585692773,
    (1.0, 1e15): 0.12500000000000009006,
    (2.0, 1e-15): 0.2499999999999972275,
    (2.0, 0.5): 0.19485964409301824616,
    (2.0, 1e15): 0.12500000000000018013,
    (1e6, 1e-15): 0.25,
    (1e6, 0.5): 0.24999975144013662586,
    (1e6, 1e15): 0.12500000009006327426,
    (1e15, 1e-15): 0.25,
    (1e15, 0.5): 0.24999999999999975,
    (1e15, 1e15): 0.17229133338378855077,
}


@pytest.mark.parametrize(("width", "noise"), INTERPOLATION)
def test_interpolation_threshold_keeps_its_digits(width: float, noise: float) -> None:
    assert interpolation_threshold(width, noise) == pytest.approx(INTERPOLATION[width, noise], rel=1e-14)


@pytest.mark.parametrize("width", [5e-324, 1e-15, 0.5, 1 - 1e-15, 1.0, 1 + 1e-15, 4.0, 1e15, 1e200])
def test_interpolation_threshold_falls_with_noise_between_its_limits(width: float) -> None:
    """From that without noise to a quarter of all unknowns, as without a target; no step of the search fails."""
    noises = (5e-324, 1e-300, 1e-100, 1e-30, 1e-15, 1e-3, 1.0, 1e3, 1e15, 1e30, 1e220)
    found = [interpolation_threshold(width, noise) for noise in noises]
    assert np.all(np.diff(found) <= 1e-15)
    assert found[0] == pytest.approx(interpolation_threshold(width, 0.0), rel=1e-14)
    assert found[-1] == pytest.approx(0.125, rel=1e-14)


@pytest.mark.parametrize(("width", "noise"), [(0.1, 1e-3), (0.5, 0.5), (1.0, 10.0), (1.5, 0.1), (8.0, 2.0)])
def test_interpolation_threshold_by_spectral_integrals(width: float, noise: float) -> None:
    """The laws in their first form, over the noisy target's density above 0."""
    target = GaussianTarget(width)

    def integral(law: Law, variance: float) -> float:
        nodes = target.nodes(variance, 0.0)
        integrand = function(law.right.args[0], (chapter.point, chapter.hilbert, chapter.variance))
        return float(nodes.weight[nodes.above] @ integrand(nodes.x, nodes.hilbert, variance)[nodes.above])

    def gap(log_variance: float) -> float:
        return integral(learning.interpolation_noise, np.exp(log_variance)) - target.square - noise / 2

    variance = np.exp(scipy.optimize.brentq(gap, -8.0, 8.0, xtol=1e-14))
    assert 2 * interpolation_threshold(width, noise) == pytest.approx(
        integral(learning.interpolation_load, variance), rel=1e-10
    )


@pytest.mark.parametrize("rank", [1e-300, 1e-15, 1e-14, 1e-9, 1e-3, 0.1, 0.5, 0.9, 1 - 1e-6, 1 - 1e-12, 1.0, 1e15])
@pytest.mark.parametrize("tokens", [2, 3, 16])
def test_recovery_threshold_keeps_its_digits(rank: float, tokens: int) -> None:
    """Against the closed form of the tails with many digits; at 1e-14 the limit 3κ₀/2 nearly holds."""
    with mpmath.workdps(60 + int(max(0, -2 * np.log10(rank)))):
        exact = _exact_recovery(mpmath.mpf(rank)) * 2 / (tokens**2 + tokens - 2)
    assert recovery_threshold(rank, tokens) == pytest.approx(float(exact), rel=1e-12)


def _exact_recovery(share: Any) -> Any:
    if share >= 1:
        return mpmath.mpf(1) / 2

    def past(power: int, cut: Any) -> Any:
        root = mpmath.sqrt(4 - cut**2)
        zero, one = (2 * mpmath.acos(cut / 2) - cut * root / 2) / (2 * mpmath.pi), root**3 / (6 * mpmath.pi)
        two = zero + cut * root**3 / (8 * mpmath.pi)
        return one - cut * zero if power == 1 else two - 2 * cut * one + cut**2 * zero

    def side(log_depth: Any) -> Any:
        cut = 2 - mpmath.exp(log_depth)
        return mpmath.log((1 - share) * past(1, cut)) - mpmath.log(share * cut)

    ends = (mpmath.mpf(2) / 5 * mpmath.log(share) - 3, mpmath.log(2) - mpmath.mpf(10) ** -40)
    cut = 2 - mpmath.exp(mpmath.findroot(side, ends, solver="anderson", tol=1e-40))
    return (1 - (1 - share) ** 2 + share * (1 - share) * cut**2 + (1 - share) ** 2 * past(2, cut)) / 2


@pytest.mark.parametrize(
    "change", [{}, {"penalty": "frobenius"}, {"beta": 0.5}, {"kappa0": None, "target": [0.0, 0.0, 1.0, 2.0]}]
)
def test_no_penalty_and_no_noise_recover_the_target(change: dict[str, Any]) -> None:
    """The target itself, with the response of a weak penalty."""
    arguments = {"alpha": 0.5, "kappa0": 0.5, **change}
    found = solve(lam=0.0, **arguments)
    ratio, square = 1 / arguments.get("beta", 1.0), found.setting.target.square
    assert found.converged
    assert (found.m, found.q) == pytest.approx((ratio * square, ratio**2 * square), rel=1e-15)
    assert found.excess == pytest.approx((ratio - 1) ** 2 * square, abs=1e-14)
    assert (found.rank, found.train_loss, found.test_error) == (0.5, 0.0, 0.0)
    assert found.V == pytest.approx(solve(lam=1e-5, **arguments).V, rel=1e-3)
    law = found.spectrum()
    assert law.atom == 0.5
    assert law.moment(2) == pytest.approx(found.q, rel=1e-9)
    assert law.cdf(0.0) == pytest.approx(0.5)


def test_the_note_of_a_recovered_target_says_how_good_its_response_is(monkeypatch: pytest.MonkeyPatch) -> None:
    weak = solve(0.5, 0.01, 0.5, noise=0.5)
    for near, word in (
        (
            dataclasses.replace(weak, converged=False, note="the residual is 3"),
            "approximate.*lam = 0.01.*residual is 3",
        ),
        (dataclasses.replace(weak, threshold=0.0), "five digits"),
    ):
        monkeypatch.setattr(solver, "_solve_plain", lambda *_, found=near: found)
        found = solver._recovered(Problem(weak.setting, 0.5, 0.0))
        assert found.converged
        assert re.search(word, found.note), found.note


class _Stream(io.StringIO):
    """A stream that says whether it is a terminal."""

    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self.isatty = lambda: terminal  # type: ignore[method-assign]


@pytest.mark.parametrize(("terminal", "seconds", "tells"), [(True, 5.0, True), (True, 3.0, False), (False, 5.0, False)])
def test_progress_is_told_on_a_terminal_after_some_seconds(
    monkeypatch: pytest.MonkeyPatch, terminal: bool, seconds: float, tells: bool
) -> None:
    """And wiped out when the search is over."""
    clock, stream = [0.0], _Stream(terminal)
    monkeypatch.setattr(attention_channel.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(sys, "stderr", stream)
    channel = ManyTokenChannel(3, 1.0, 1.0)
    channel.samples = (6,) * channel.levels
    channel.start()
    clock[0] = seconds
    channel.means(0, 0, Scores(1.0, 0.6, 0.3, 1.75))
    told = stream.getvalue()
    assert told == (f"\r3 tokens: {channel.work} proximal points of at most {channel.budget}, 5 s" if tells else "")
    channel.forget()
    assert stream.getvalue() == (told + "\r\x1b[K" if tells else "")


def test_below_recovery_no_penalty_has_many_minima() -> None:
    found = solve(0.2, 0.0, 0.5)
    assert not found.converged
    assert "many minima" in found.note


def test_interpolation_is_continuous_at_no_noise() -> None:
    assert interpolation_threshold(0.5, 1e-9) == pytest.approx(interpolation_threshold(0.5, 0.0), rel=1e-3)


def test_low_rank_needs_the_fewest_samples_with_factors() -> None:
    ranks = (0.05, 0.2, 0.5, 0.9)
    nuclear = [recovery_threshold(rank) for rank in ranks]
    bayes = [recovery_threshold(rank, penalty="bayes") for rank in ranks]
    assert all(best < found < 0.25 for best, found in zip(bayes, nuclear, strict=True))
    assert nuclear == sorted(nuclear)


def test_recovery_sets_in_at_its_threshold() -> None:
    edge = recovery_threshold(0.5)
    before, after = (solve(edge * factor, 1e-6, 0.5) for factor in (0.9, 1.1))
    assert before.converged
    assert after.converged
    assert before.test_error_clean > 5e-3
    assert after.test_error_clean < 1e-5


def test_training_loss_vanishes_below_the_interpolation_threshold() -> None:
    fitted = solve(0.1, 1e-6, 0.5, noise=0.5)
    assert fitted.converged
    assert fitted.train_loss < 1e-6
    assert fitted.V * fitted.lam > 0.1  # the response grows like 1/λ


# -- the equations themselves ----------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", REFERENCE)
def test_every_law_holds_at_the_solution(solutions: dict[float, LearnedAttention], alpha: float) -> None:
    """One undamped iteration of the six laws, on a finer rule than the solver's, returns the point."""
    found = solutions[alpha]
    problem = Problem(found.setting, alpha, found.lam)
    change = problem.residual(found.logs, Quadrature(2, (0, 1)), search=True)
    assert np.abs(change).max() < 2e-5


def test_the_solution_is_stationary_for_the_free_energy(solutions: dict[float, LearnedAttention]) -> None:
    """The free energy equals the whole loss, and does not move to first order in any of the six numbers."""
    found = solutions[4.0]
    setting, rule = found.setting, Quadrature(1, (0, 1))
    problem = Problem(setting, found.alpha, found.lam)
    overlaps = problem.overlaps(found.logs)
    field = conjugates(setting, found.alpha, overlaps, _merged(problem, overlaps, rule))
    point = np.array([overlaps.m, overlaps.q, overlaps.response, *field])

    def energy(numbers: Any) -> float:
        m, q, response, gain, power, curvature = numbers
        spread = np.sqrt(q - m**2 / setting.label_square)
        means = _merged(problem, dataclasses.replace(overlaps, m=m, q=q, response=response, spread=spread), rule)
        values = {chapter.signal_gain: gain, chapter.noise_power: power, chapter.level: setting.level(found.lam)}
        variance, threshold = (evaluate(name, values) for name in ("variance_law", "threshold_law"))
        nodes = setting.target.nodes(variance, threshold)
        norm = float((nodes.weight * (nodes.x - threshold) ** 2)[nodes.above].sum())
        values |= {
            chapter.alpha: found.alpha,
            chapter.curvature: curvature,
            chapter.mean_envelope: means.loss + means.cost,
            chapter.learned_norm: norm,
            chapter.m: m,
            chapter.q: q,
            chapter.response: response,
        }
        return evaluate("free_energy", values)

    assert energy(point) == pytest.approx(found.objective, rel=1e-8)
    for index in range(6):
        step = np.zeros(6)
        step[index] = 1e-4 * point[index]
        slope = (energy(point + step) - energy(point - step)) / 2e-4
        assert abs(slope) < 1e-6 * abs(found.objective)


def _merged(problem: Problem, overlaps: Overlaps, rule: Quadrature) -> Any:
    return ChannelMeans.merged(problem.means(overlaps, rule, search=True))


def test_message_passing_tends_to_the_solution() -> None:
    found = solve(4.0, 0.2, 0.5, noise=0.5)
    last = iterates(4.0, 0.2, found.setting, 40)[-1]
    assert (last.m, last.q, last.response) == pytest.approx((found.m, found.q, found.V), rel=1e-4)


def test_slope_of_the_objective_in_the_penalty(solutions: dict[float, LearnedAttention]) -> None:
    """Envelope theorem: dΦ/dλ is √κ times the trace of the learned matrix."""
    found, step = solutions[4.0], 1e-4
    above, below = (solve(4.0, 0.01 + side * step, 0.5, noise=0.5, start=found) for side in (1, -1))
    assert (above.objective - below.objective) / (2 * step) == pytest.approx(found.spectrum().mean(), rel=1e-5)


def test_frobenius_against_its_closed_spectral_side() -> None:
    found = solve(4.0, 0.05, 0.5, noise=0.5, penalty="frobenius")
    assert found.converged
    spectrum = found.spectrum()
    assert spectrum.moment(2) == pytest.approx(found.q, rel=1e-9)
    assert spectrum.mean() == pytest.approx(found.scale * np.sqrt(0.5), rel=1e-9)
    assert found.test_error_clean > solve(4.0, 0.01, 0.5, noise=0.5).test_error_clean


# -- kernels against the symbolic expressions ------------------------------------------------------------------


def test_proximal_kernel_against_the_law() -> None:
    """Loss, slopes and curvatures of the kernel are derivatives of the law's expression."""
    loss = chapter.two_token_loss.right
    (u1, u2), (y1, y2) = chapter.learned_differences, chapter.labels
    arguments = (u1, u2, y1, y2, chapter.beta)
    slopes = [function(sp.diff(loss, u), arguments) for u in (u1, u2)]
    bends = [function(sp.diff(loss, u, 2), arguments) for u in (u1, u2)]
    generator = np.random.default_rng(3)
    field, ideal = 3 * generator.standard_normal((2, 2, 400))
    beta, response = 1.3, 2.5
    label = 1 / (1 + np.exp(-beta * ideal))
    problem = _Proximal(label, field, response, beta, *_axes())
    value, slope, bend = problem.loss(field)
    np.testing.assert_allclose(value, function(loss, arguments)(*field, *label, beta), rtol=1e-12)
    for row in (0, 1):
        np.testing.assert_allclose(slope[row], slopes[row](*field, *label, beta), rtol=1e-9, atol=1e-14)
        np.testing.assert_allclose(bend[row], bends[row](*field, *label, beta), rtol=1e-9, atol=1e-14)
    found = problem.search(ideal, None)
    covariance = np.array([[3.0, 1.0], [1.0, 3.0]])  # law score-covariance, for the differences of two tokens
    cost = np.einsum("in,ij,jn->n", found.best - field, np.linalg.inv(covariance), found.best - field) / (2 * response)
    np.testing.assert_allclose(problem.cost(found.best), cost, rtol=1e-10, atol=1e-14)
    assert found.unfinished == 0


def _axes() -> tuple[float, float]:
    plus, minus = (float(axis) for axis in chapter.score_axes())
    return plus, minus


def test_proximal_points_are_global_minima() -> None:
    """Against a dense scan with local refinement, at a response where several minima are common."""
    generator = np.random.default_rng(8)
    field, ideal = 4 * generator.standard_normal((2, 2, 60))
    label = 1 / (1 + np.exp(-ideal))
    problem = _Proximal(label, field, 12.0, 1.0, *_axes())
    found = problem.value(problem.search(ideal, None).best)
    grid = np.linspace(-25, 25, 161)
    first, second = (axis.ravel() for axis in np.meshgrid(grid, grid))
    for index in range(field.shape[1]):
        one = problem.rows(np.full(first.size, index))
        start = np.argmin(one.value(np.stack([first, second])))
        single = problem.rows(np.array([index]))
        best = scipy.optimize.minimize(lambda u, s=single: float(s.value(u[:, None])[0]), [first[start], second[start]])
        assert found[index] <= best.fun + 1e-9


@pytest.mark.parametrize("response", [1e-12, 0.1547])
def test_both_channels_agree_for_two_tokens(response: float) -> None:
    scores = Scores(1.3287, 0.43, response, 1.75)
    exact = TwoTokenChannel(1.0, 1.0).means(1, 0, scores)
    channel = ManyTokenChannel(2, 1.0, 1.0)
    sampled = ChannelMeans.merged([channel.means(0, rule, scores) for rule in channel.rules])
    for name in ("pull", "force", "power", "slope_square", "smooth_divergence", "loss", "cost"):
        assert getattr(sampled, name) == pytest.approx(getattr(exact, name), rel=5e-3)


def test_quadratures_agree_and_integrate_moments() -> None:
    for parity in (0, 1):
        points, weight = lattice(0.4, parity)
        assert weight.sum() == pytest.approx(1, abs=1e-7)
        squares = (weight * (points**2).sum(axis=0)).sum()
        assert squares == pytest.approx(4, abs=3e-6)
    scores = Scores(1.38094, 0.61, 2.3034, 1.75)
    even, odd = (TwoTokenChannel(1.0, 1.0).means(1, parity, scores) for parity in (0, 1))
    assert even.power == pytest.approx(odd.power, rel=2e-5)
    assert even.loss == pytest.approx(odd.loss, rel=2e-5)


def _sequences(tokens: int, count: int, response: float, seed: int = 2) -> tuple[ManyTokenChannel, Any, Scores]:
    channel = ManyTokenChannel(tokens, 1.2, 0.8)
    normals = np.random.default_rng(seed).standard_normal((count, 2 * channel.outputs))
    return channel, normals, Scores(1.3, 0.8, response, 1.75)


def test_many_token_kernel_derivatives() -> None:
    """Slope and Hessian products of the objective against differences of the objective and of the slope."""
    channel, normals, scores = _sequences(4, 3, 2.5)
    _, _, problem = channel._problem(normals, scores)
    step = 1e-5
    for axis, direction in enumerate(channel.basis[..., None]):
        at = problem.place(problem.field + 0.7 * channel._matrices(normals[:, channel.outputs :]))
        up, down = problem.place(at.point + step * direction), problem.place(at.point - step * direction)
        slope = channel._coordinates(at.pull)[:, axis]
        np.testing.assert_allclose((up.value - down.value) / (2 * step), slope, atol=1e-8)
        bent = problem.bend(at, np.broadcast_to(direction, at.point.shape))
        np.testing.assert_allclose((up.pull - down.pull) / (2 * step), bent, atol=1e-8)


@pytest.mark.parametrize("response", [1e-3, 2.5])
def test_how_the_output_answers(response: float) -> None:
    """Traces at the proximal point against difference quotients of the proximal map itself."""
    channel, normals, scores = _sequences(4, 5, response)
    size, step, root = channel.outputs, 1e-5, np.sqrt(scores.label_square)

    def outputs(target: Any, field: Any) -> Any:
        problem = _MatrixProximal(
            softmax(0.8 * channel._matrices(target)), channel._matrices(field), response, channel.beta
        )
        at, _ = problem.descend(problem.field)
        for _ in range(5):
            at = problem.moved(at)
        assert not problem.left(at).any()
        return problem, at, channel._coordinates(-problem.loss(at.point)[1])

    target = root * normals[:, :size]
    field = scores.overlap * normals[:, :size] + scores.spread * normals[:, size:]
    problem, at, _ = outputs(target, field)
    found = _responses(problem, at, 0.8)
    moves = step * np.eye(size)
    to_field, to_label = (
        np.stack([(outputs(*up)[2] - outputs(*down)[2]) / (2 * step) for up, down in pairs])
        for pairs in (
            [((target, field + move), (target, field - move)) for move in moves],
            [((target + move, field), (target - move, field)) for move in moves],
        )
    )
    assert found.saddles == 0
    np.testing.assert_allclose(found.divergence, np.einsum("knk->n", to_field), rtol=1e-6)
    np.testing.assert_allclose(found.label_divergence, np.einsum("knk->n", to_label), rtol=1e-6)
    np.testing.assert_allclose(found.slope_square, (to_field**2).sum(axis=(0, 2)), rtol=1e-6)


def test_many_token_descents_end_in_minima() -> None:
    """Where minima are many: every end is one, and a quasi-Newton method from there finds nothing lower."""
    channel, normals, scores = _sequences(3, 300, 40.0)
    start = 4 * normals[:, : channel.outputs]
    points, values, undone = channel._descend(start, 3 * normals, scores)
    assert undone == 0
    _, _, problem = channel._problem(3 * normals, scores)
    at = problem.place(channel._matrices(points))
    assert np.abs(at.pull).max() < 1e-9
    assert _responses(problem, at, channel.beta_target).saddles == 0
    np.testing.assert_allclose(at.value, values, rtol=1e-9)
    for index in range(0, 300, 30):
        _, _, single = channel._problem(3 * normals[index : index + 1], scores)
        near = scipy.optimize.minimize(
            lambda u, s=single: float(s.place(channel._matrices(u[None])).value[0]), points[index]
        )
        assert values[index] <= near.fun + 1e-9


@pytest.mark.parametrize("tokens", [2, 3, 4])
def test_basis_carries_the_covariance_of_scores(tokens: int) -> None:
    """Differences of scores have the covariance of the law, whatever the part that the softmax does not see."""
    basis = symmetric_basis(tokens)
    assert len(basis) == chapter.outputs_law.right.subs(chapter.tokens, tokens)
    law = chapter.score_covariance_law.right.subs(chapter.square, 1)
    names = sorted(law.free_symbols, key=lambda symbol: symbol.name)
    covariance = sp.lambdify(names, law)
    table = {index: float(covariance(*index)) for index in itertools.product(range(tokens), repeat=4)}
    entries = list(itertools.combinations_with_replacement(range(tokens), 2))
    for (i, j), (k, last) in itertools.product(entries, repeat=2):
        found = 2 * np.sum((basis[:, i, j] - basis[:, 0, 0]) * (basis[:, k, last] - basis[:, 0, 0]))
        exact = sum(
            a * b * table[*first, *second]
            for a, first in ((1, (i, j)), (-1, (0, 0)))
            for b, second in ((1, (k, last)), (-1, (0, 0)))
        )
        assert found == pytest.approx(exact, abs=1e-12)


# -- the whole range -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("alpha", "lam", "noise"),
    [(0.01, 1e-4, 0.5), (0.02, 0.1, 0.0), (0.1, 1e-8, 0.5), (0.5, 1e-8, 0.0), (100.0, 1e-3, 0.5), (100.0, 5.0, 0.0)],
)
def test_far_corners(alpha: float, lam: float, noise: float) -> None:
    found = solve(alpha, lam, 0.5, noise=noise)
    assert found.converged, found.note
    assert found.V >= 0
    assert found.excess >= 0
    assert 0 <= found.rank <= 1


def power_law(count: int, gamma: float) -> Any:
    modes = np.arange(1.0, count + 1) ** -gamma
    return modes * np.sqrt(count / np.sum(modes**2))


@pytest.mark.parametrize(
    ("count", "gamma", "samples", "lam"),
    [(300, 1.0, 30, 1e-4), (300, 1.0, 30, 1e-7), (100, 1.5, 30, 1e-3), (300, 0.75, 100, 1e-2), (3000, 1.0, 30, 1e-4)],
)
def test_power_laws(count: int, gamma: float, samples: int, lam: float) -> None:
    """Case 20: many bands that almost touch, under a weak penalty."""
    found = solve(samples / count, lam, target=power_law(count, gamma), noise=0.5)
    assert found.converged, found.note
    assert found.excess > 0
    assert found.V > 0


def test_modes_that_nearly_coincide() -> None:
    modes = power_law(100, 1.0)
    merged, apart = modes.copy(), modes.copy()
    merged[1], apart[1] = modes[0], modes[0] * (1 - 1e-9)
    both = [solve(0.3, 1e-2, target=one, noise=0.5) for one in (merged, apart)]
    assert all(one.converged for one in both)
    assert both[0].q == pytest.approx(both[1].q, rel=1e-6)


def test_sample_sizes_fall_with_the_number_of_scores() -> None:
    assert [sample_sizes(tokens)[0] for tokens in (3, 8, 12, 16, 64)] == [11, 11, 8, 7, 6]


def test_nothing_is_learned_under_a_strong_penalty() -> None:
    found = solve(0.5, 10.0, 0.5, noise=0.5)
    assert found.converged
    assert (found.m, found.q, found.rank) == (0, 0, 0)
    assert found.train_loss == found.test_error
    assert found.spectrum().atom == 1
    assert found.singular_values_of_weights().atom == 1


def test_no_wrong_convergence_where_points_jump() -> None:
    """Above the interpolation threshold with noise and a weak penalty the replica-symmetric solution is not stable."""
    found = solve(0.25, 1e-3, 0.5, noise=0.5)
    assert found.converged == (found.residual <= 1e-6 and found.quadrature_error <= 1e-3)
    assert not found.stable
    assert found.note or found.quadrature_error <= 1e-5


def test_bad_start_never_ends_as_a_false_solution(solutions: dict[float, LearnedAttention]) -> None:
    """Case 13: a start from a failed solve, or from far away, does not end at a negative squared distance."""
    good = solutions[4.0]
    for logs in (np.array([9.0, -9.0, 3.0]), np.full(3, np.nan), -good.logs):
        found = solve(4.0, 0.01, 0.5, noise=0.5, start=dataclasses.replace(good, logs=logs))
        assert not found.converged or found.m == pytest.approx(good.m, rel=1e-6)
        assert not found.converged or found.excess >= 0


def test_the_undamped_residual_decides(solutions: dict[float, LearnedAttention]) -> None:
    """Case 12: a point off by 1e-5 has a residual far from the stopping rule, however small a damped step is."""
    found = solutions[4.0]
    residual = Problem(found.setting, 4.0, 0.01).residual(found.logs + 1e-5, Quadrature(1, (0, 1)), search=True)
    assert np.abs(residual).max() > 1e-7


def test_sweep_agrees_with_single_solutions() -> None:
    grid = [4.0, 0.5, 1.0]
    found = sweep("alpha", grid, lam=0.05, kappa0=0.5, noise=0.5)
    assert [one.alpha for one in found] == grid
    for one in found:
        assert one.converged
        alone = solve(one.alpha, 0.05, 0.5, noise=0.5)
        assert (one.m, one.q) == pytest.approx((alone.m, alone.q), rel=1e-6)


def test_sweep_over_the_penalty_through_recovery() -> None:
    found = sweep("lam", np.geomspace(1e-6, 0.1, 6), alpha=0.3, kappa0=0.5)
    errors = [one.test_error_clean for one in found]
    assert all(one.converged for one in found)
    assert errors == sorted(errors)


def test_eigenvalues_as_target_tend_to_the_gaussian_one(solutions: dict[float, LearnedAttention]) -> None:

    quantiles = GaussianTarget(0.5).noisy(1e-6).ppf((np.arange(400) + 0.5) / 400)
    found = solve(4.0, 0.01, target=np.maximum(quantiles, 0), noise=0.5)
    assert found.converged
    assert (found.m, found.q) == pytest.approx((solutions[4.0].m, solutions[4.0].q), rel=5e-3)


FRESH = {3: Quadrature(2, (8, 9)), 5: Quadrature(1, tuple(range(8, 14)))}  # scrambles that no solver has seen


@pytest.mark.parametrize("tokens", FRESH)
def test_scrambles_and_sizes_agree_for_many_tokens(tokens: int) -> None:
    """m and q from fresh scrambles (for three tokens of four times as many points): equal to 1e-3."""
    alpha = {3: 1.0, 5: 0.1}[tokens]
    found = solve(alpha, 0.1, 0.5, noise=0.5, tokens=tokens)
    assert found.converged, found.note
    assert 0 < found.quadrature_error <= 1e-3
    problem = Problem(found.setting, alpha, 0.1)
    jacobian = solver._jacobian(problem, found.logs, problem.residual(found.logs, solver.COARSE), solver.COARSE)
    residual = problem.residual(found.logs, FRESH[tokens])
    overlaps = problem.overlaps(found.logs - np.linalg.solve(jacobian, residual))
    assert (overlaps.m, overlaps.q) == pytest.approx((found.m, found.q), rel=1e-3)


def test_the_control_takes_the_noise_of_eight_tokens() -> None:
    """By Stein's control the scrambles of m and q lie several times closer, about the same mean."""
    setting = solver._setting(0.5, None, 0.5, 8, 1.0, 1.0, 1.0, "nuclear")
    problem = Problem(setting, 0.1, 0.1)
    start = solver._iterate(problem, solver._first_guess(problem), solver.COARSE, 3)
    coarse = solver._newton(problem, start, solver.COARSE, 1e-6)
    assert coarse.size <= 1e-6
    overlaps, rules = problem.overlaps(coarse.logs), Quadrature(0, tuple(range(1, 7)))

    def scrambles(search: bool) -> Any:
        parts = Problem(setting, 0.1, 0.1).means(overlaps, rules, search)
        shifts = [problem.new_logs(overlaps, part) - coarse.logs for part in parts]
        ends = [problem.overlaps(coarse.logs - np.linalg.solve(coarse.jacobian, shift)) for shift in shifts]
        return np.array([(end.m / overlaps.m - 1, end.q / overlaps.q - 1) for end in ends])

    controlled = scrambles(search=True)
    for rule in rules.parities:
        setting.channel._smooth[0, rule] = False  # as if there were jumps, where the control may not be used
    plain = scrambles(search=False)
    assert (controlled.std(axis=0) < plain.std(axis=0) / 3).all()
    error = plain.std(axis=0, ddof=1) / np.sqrt(len(plain))
    assert (np.abs(controlled.mean(axis=0) - plain.mean(axis=0)) < 4 * error).all()


def test_two_tokens_by_either_quadrature() -> None:
    """The whole solution with Sobol points in the place of the lattice, to 1e-3."""
    exact = solve(2.0, 0.1, 0.5, noise=0.5)
    setting = dataclasses.replace(exact.setting)
    setting.__dict__["channel"] = ManyTokenChannel(2, 1.0, 1.0)
    sampled = solver._solve(setting, 2.0, 0.1)
    assert sampled.converged
    assert (sampled.m, sampled.q) == pytest.approx((exact.m, exact.q), rel=1e-3)
    assert sampled.train_loss == pytest.approx(exact.train_loss, rel=1e-3)


def test_temperatures_are_units() -> None:
    """A solution at β ≠ β₀ fulfils the equations as they are written, without the change of units."""
    for penalty in ("nuclear", "frobenius"):
        found = solve(4.0, 0.05, 0.5, noise=0.5, beta=1.5, beta_target=0.8, penalty=penalty)
        assert found.converged
        problem = Problem(found.setting, found.alpha, found.lam)
        assert np.abs(problem.residual(found.logs, Quadrature(1, (0, 1)), search=True)).max() < 2e-8
        overlaps = problem.overlaps(found.logs)
        given = (found.m, found.q, found.V, found.excess)
        assert given == pytest.approx((overlaps.m, overlaps.q, overlaps.response, overlaps.excess), rel=1e-9)


def test_recovery_at_another_temperature() -> None:
    """Without noise the head at β = 0.3 recovers the target of β₀ = 1 times 1/0.3."""
    found = solve(20.0, 1e-6, 0.5, beta=0.3)
    assert found.converged, found.note
    assert (found.m, found.q) == pytest.approx((1.5 / 0.3, 1.5 / 0.09), rel=1e-4)
    assert found.test_error_clean < 1e-9


def test_softmax_at_huge_scores() -> None:
    """Case 11: huge or infinite scores saturate, without NaN or warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert logistic(np.array([-np.inf, -800.0, 0.0, 800.0, np.inf])).tolist() == [0, 0, 0.5, 1, 1]
        logits = np.array([-249.87, -424.13, -460.29, 378.10, -292.61])
        found = softmax(np.tile(logits, (5, 1))[..., None])[..., 0]
        np.testing.assert_allclose(found, [[0, 0, 0, 1, 0]] * 5, atol=1e-15)


ADVERSARY = (None, {"kappa0": 1e-3}, {"kappa0": 0.05}, {"kappa0": 10.0}, {"target": 3.0 / np.arange(1.0, 41.0)})


@pytest.mark.parametrize("seed", range(12))
def test_no_wrong_solution_anywhere(seed: int) -> None:
    """Random settings over the whole range: a solution to the accuracy promised, or a note that says what to try."""
    generator = np.random.default_rng(seed)
    alpha, lam = 10 ** generator.uniform(-2, 2), 10 ** generator.uniform(-4, 1)
    noise, penalty = float(generator.choice([0.0, 0.5])), ("nuclear", "frobenius")[seed % 2]
    target = ADVERSARY[seed % len(ADVERSARY)] or {"kappa0": 0.5}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = solve(alpha, lam, noise=noise, penalty=penalty, kappa=20.0, **target)
    numbers = (found.m, found.q, found.V, found.train_loss, found.test_error, found.test_error_clean, found.objective)
    if found.converged:
        assert np.isfinite(numbers).all()
        assert found.residual <= 1e-8
        assert found.V >= 0
        assert found.q + found.setting.target.square - 2 * found.m >= -1e-12 * found.setting.target.square
        assert found.test_error_clean <= found.test_error + 1e-12
    else:
        assert "use" in found.note or "start" in found.note


def test_components_for_claims() -> None:
    parameters = (4.0, 0.01, 0.5, 0.5, 1.0, 1.0, 1.0, 2.0, 2.0)
    assert solution_component(("m", "nuclear"), *parameters, -1.0) == pytest.approx(1.32874, rel=1e-5)
    row = solution_component(("q", "nuclear"), *parameters, np.array([1.0, 2.0]))
    assert row.shape == (2,)
    assert solution_component(("cdf", "nuclear"), *parameters, 100.0) == pytest.approx(1.0)
    with pytest.raises(NotSolvedError, match="no solution at alpha"):
        solution_component(("m", "nuclear"), 0.2, 0.0, *parameters[2:], -1.0)


def test_rival_covariance_changes_the_answer() -> None:
    parameters = (4.0, 0.01, 0.5, 0.5, 1.0, 1.0, 1.0, 2.0)
    right, wrong = (solution_component(("test_error", "nuclear"), *parameters, weight, -1.0) for weight in (2.0, 1.0))
    assert wrong < 0.9 * right


# -- bad input -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"alpha": 0.0}, "alpha must be > 0, got 0"),
        ({"alpha": -1.0}, "alpha must be > 0, got -1"),
        ({"lam": -0.1}, r"lam must be >= 0, got -0.1"),
        ({"kappa0": 0.0}, "kappa0 must be > 0, got 0"),
        ({"noise": -0.5}, "noise must be >= 0, got -0.5"),
        ({"tokens": 1}, "tokens must be an integer >= 2, got 1"),
        ({"tokens": 2.5}, "tokens must be an integer >= 2, got 2.5"),
        ({"kappa": 0.0}, "kappa must be > 0"),
        ({"beta": -1.0}, "beta must be > 0"),
        ({"penalty": "lasso"}, "penalty must be one of nuclear, frobenius, got 'lasso'"),
        ({"task": "regression"}, "task must be one of label, sequence, got 'regression'"),
        ({"kappa0": None}, "give either kappa0"),
        ({"target": [1.0, 2.0]}, "give either kappa0"),
        ({"kappa0": None, "target": []}, "target must have at least one eigenvalue"),
        ({"kappa0": None, "target": [0.0, 0.0]}, "target must not be 0"),
        ({"kappa0": None, "target": [-1.0, 2.0]}, "target must be positive semidefinite"),
        ({"kappa0": None, "target": [np.nan, 2.0]}, "target must be finite"),
    ],
)
def test_bad_input(change: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"alpha": 0.5, "lam": 0.01, "kappa0": 0.5, "noise": 0.5} | change
    with pytest.raises(ValueError, match=message):
        solve(**arguments)


@given(value=no_real_number, name=st.sampled_from(["alpha", "lam", "kappa0", "noise", "kappa", "beta", "beta_target"]))
def test_no_number(value: Any, name: str) -> None:
    if name == "kappa0" and value is None:
        return
    arguments: dict[str, Any] = {"alpha": 0.5, "lam": 0.01, "kappa0": 0.5, name: value}
    with pytest.raises(ValueError, match=f"{name}|kappa0"):
        solve(**arguments)


def test_width_below_the_rank_warns() -> None:
    with pytest.warns(RuntimeWarning, match=r"kappa = 0\.3 is below the rank 0\.7"):
        solve(4.0, 0.01, 0.5, noise=0.5, kappa=0.3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solve(4.0, 0.01, 0.5, noise=0.5, kappa=0.9)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"parameter": "beta", "values": [1.0], "lam": 0.1}, "parameter must be 'alpha' or 'lam'"),
        ({"parameter": "alpha", "values": [1.0], "alpha": 1.0}, "give lam and not alpha"),
        ({"parameter": "alpha", "values": [0.0], "lam": 0.1}, "alpha must be > 0"),
    ],
)
def test_bad_sweeps(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sweep(**arguments, kappa0=0.5)


def test_bad_thresholds() -> None:
    with pytest.raises(ValueError, match="kappa0 must be > 0"):
        recovery_threshold(-1.0)
    with pytest.raises(ValueError, match="penalty must be one of"):
        recovery_threshold(0.5, penalty="none")
    with pytest.raises(ValueError, match="noise must be >= 0"):
        interpolation_threshold(0.5, -1.0)


# -- one source ------------------------------------------------------------------------------------------------


def test_the_solver_reads_the_laws(monkeypatch: pytest.MonkeyPatch) -> None:
    """A law that is changed changes the number."""
    law: Law = chapter.penalty_level
    before = evaluate("penalty_level", {chapter.lam: 0.1, chapter.kappa: 4.0})
    wrong = dataclasses.replace(law.steps[-1], equation=law.off_by(sp.Rational(1, 2)))
    solver._right.cache_clear()
    monkeypatch.setitem(law.__dict__, "steps", (*law.steps[:-1], wrong))
    assert evaluate("penalty_level", {chapter.lam: 0.1, chapter.kappa: 4.0}) == pytest.approx(1.5 * before)
    monkeypatch.undo()
    solver._right.cache_clear()
