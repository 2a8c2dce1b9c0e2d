"""Learning few modes from few sequences: closed sums, learning curves, phases of the cut, emergence, regimes.

Reference numbers were computed independently of this project, by another program on the same theory, unless a test says
how else they come about.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.optimize

from derivations import scaling_laws as chapter
from derivations import state_evolution as equations
from numerics import scaling_laws as laws
from numerics import state_evolution
from numerics.compile import function
from numerics.scaling_laws.mode_sums import Terms
from numerics.scaling_laws.modes import ModeList, PowerLaw, modes_of, relative_power_sum

CURVES = {  # γ, Δ: interpolating and Bayes-optimal errors at n_eff = 10, 100, 1000, 10⁴; K = 2
    (1.0, 0.5): (
        (0.33474047, 0.088166796, 0.025685555, 0.0078998715),
        (0.21189302, 0.056817362, 0.016917790, 0.0052458500),
    ),
    (1.0, 0.0): (
        (0.21103287, 0.023957177, 0.0024280658, 2.4313437e-4),
        (0.10286908, 0.010753757, 0.0010802191, 1.0807053e-4),
    ),
    (1.5, 0.5): (
        (0.14619115, 0.027791942, 0.0059010520, 0.0012779675),
        (0.077778207, 0.015434852, 0.0032986032, 7.1310200e-4),
    ),
}
SIZES = (10.0, 100.0, 1000.0, 1e4)


# -- sums over modes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("exponent", [-2.0, -1.0, -1.0000001, -0.5001, 0.5001, 1.0, 3.0, 6.3, 60.0])
@pytest.mark.parametrize("count", [1, 2, 63, 64, 65, 200, 10_000])
def test_power_sums_of_few_terms(exponent: float, count: int) -> None:
    with mpmath.workdps(40):
        terms = ((mpmath.mpf(i) / count) ** mpmath.mpf(exponent) for i in range(1, count + 1))
        exact = float(mpmath.fsum(terms)) if count <= 200 else None
    found = float(relative_power_sum(np.asarray(count), exponent))
    if exact is None:
        exact = float(np.sum((np.arange(1, count + 1, dtype=np.longdouble) / count) ** exponent))
    assert found == pytest.approx(exact, rel=4e-15)


@pytest.mark.parametrize("exponent", [-2.0, -0.5001, 0.5001, 2.0, 6.0])
def test_power_sums_of_many_terms(exponent: float) -> None:
    """Σ i^s by Hurwitz's zeta function with 50 digits, at 10^15 terms (the sum's telescoped form)."""
    count = 10**15
    with mpmath.workdps(50):
        s = mpmath.mpf(exponent)
        if exponent == int(exponent) and exponent > 0:
            exact = (
                mpmath.bernpoly(int(exponent) + 1, mpmath.mpf(count) + 1) - mpmath.bernpoly(int(exponent) + 1, 1)
            ) / (s + 1)
        elif exponent < -1:
            exact = mpmath.zeta(-s) - mpmath.zeta(-s, count + 1)
        else:  # the asymptotic series with Riemann's zeta function as its constant
            n = mpmath.mpf(count)
            exact = mpmath.zeta(-s) + n ** (s + 1) / (s + 1) + n**s / 2 + s * n ** (s - 1) / 12
        exact /= mpmath.mpf(count) ** s
    assert float(relative_power_sum(np.asarray(float(count)), exponent)) == pytest.approx(float(exact), rel=4e-15)


@pytest.mark.parametrize("gamma", [0.5001, 0.75, 1.0, 3.0])
def test_power_law_agrees_with_its_first_modes(gamma: float) -> None:
    """All sums of a power law and of a list that starts like it; the list lacks the tail."""
    law = PowerLaw(gamma)
    few = ModeList(law.strength(np.arange(1, 5001)))
    cut = law.strength(np.array([1.5, 2.5, 100.5, 3000.5]))
    count = law.count(cut)
    np.testing.assert_array_equal(count, few.count(cut))
    np.testing.assert_array_equal(count, [1, 2, 100, 3000])
    for power in (-2, -1, 0, 1, 2):
        np.testing.assert_allclose(law.power_sum(count, cut, power), few.power_sum(count, cut, power), rtol=1e-12)
    np.testing.assert_allclose(law.tail(count) - law.tail(np.asarray(5000.0)), few.tail(count), rtol=1e-10)


def test_summand_must_be_a_laurent_polynomial() -> None:
    with pytest.raises(ValueError, match="Laurent polynomial"):
        Terms(1 / (1 + chapter.strength), chapter.strength)


# -- interpolation and Bayes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("gamma", "noise"), CURVES)
def test_reference_curves(gamma: float, noise: float) -> None:
    interpolating, bayes = CURVES[gamma, noise]
    np.testing.assert_allclose(laws.interpolating_error(SIZES, gamma, noise), interpolating, rtol=5e-8)
    np.testing.assert_allclose(laws.bayes_error(SIZES, gamma, noise), bayes, rtol=5e-8)


@pytest.mark.parametrize("gamma", [0.5001, 0.6, 1.0, 3.0, 20.0])
@pytest.mark.parametrize("noise", [0.0, 0.5, 1e4])
def test_errors_solve_their_equation(gamma: float, noise: float) -> None:
    """The error is put back: the noise level that it makes gives it again, by a sum over modes one by one."""
    n_eff = np.geomspace(1e-3, 1e3, 25)
    error = laws.interpolating_error(n_eff, gamma, noise, 5)
    delta = np.sqrt((error + noise / 2) / (2 * 5 * n_eff))
    law, single = PowerLaw(gamma), function(chapter.nuclear_mode_error.right, [chapter.ratio])
    for one, level in zip(error, delta, strict=True):
        count = law.count(level)
        if count > 1e6:
            continue
        strengths = law.strength(np.arange(1, count + 1))
        again = float(law.tail(count) + np.sum(strengths**2 * single(level / strengths)))
        assert one == pytest.approx(again, rel=1e-9)


def test_decades_of_sample_sizes() -> None:
    n_eff = np.geomspace(1e-6, 1e15, 211)
    for gamma in (0.5001, 1.0, 2.5):
        for curve in (laws.interpolating_error, laws.bayes_error):
            error = curve(n_eff, gamma)
            assert np.isfinite(error).all() and (np.diff(error) <= 1e-14).all()
            assert error[0] == 1.0
        assert (laws.bayes_error(n_eff, gamma) <= laws.interpolating_error(n_eff, gamma)).all()


def test_finite_list_is_recovered_without_noise() -> None:
    """Ten equal modes: E = 0 from 2Kn = 60 on for the trained network, 20 for Bayes; before, the closed solution."""
    modes = np.full(10, 0.1**0.5)
    assert laws.interpolating_error(15, modes, 0) == 0.0
    assert laws.bayes_error(5, modes, 0) == 0.0
    assert laws.interpolating_error(14.9, modes, 0) > 0
    n_eff = np.array([6.0, 10.0, 14.0])
    x = (8 - np.sqrt(64 - 12 * (6 - 4 * n_eff / 10))) / 6  # 6 − 8x + 3x² = 2Kn/10, x = δ/σ
    np.testing.assert_allclose(laws.interpolating_error(n_eff, modes, 0), 4 * n_eff * 0.1 * x**2, rtol=1e-12)


def test_order_and_zeros_of_a_list_do_not_matter() -> None:
    modes = [0.2, 1.0, 0.0, 0.5]
    for curve in (laws.interpolating_error, laws.bayes_error):
        assert curve(7.0, modes) == curve(7.0, sorted(modes)[1:])


def test_scalars_and_shapes() -> None:
    assert isinstance(laws.interpolating_error(10, 1), float)
    assert laws.interpolating_error([[10], [20]], 1, [0.1, 0.2, 0.3]).shape == (2, 3)
    assert laws.bayes_error([10.0], 1).shape == (1,)


# -- finite penalty --------------------------------------------------------------------------------------------------

REFERENCE = [  # n_eff, ℓ, E, test error; γ = 1, Δ = ½, two tokens
    (10, 1.370194, 0.750925, 0.279546),
    (100, 0.925951, 0.316308, 0.145134),
    (100, 0.180064, 0.185629, 0.117494),
    (1000, 0.027376, 0.045015, 0.092856),
]


def test_reference_solutions() -> None:
    """The errors to six digits; the test errors to 2e-6, and to 1e-8 by quadrature over a row's two differences."""
    n_eff, ell, error, test_error = np.array(REFERENCE).T
    found = laws.learned(n_eff, 1.0, ell)
    assert found.converged.all() and (found.quadrature_error < 1e-6).all()
    np.testing.assert_allclose(found.error, error, atol=1.1e-6)
    np.testing.assert_allclose(found.test_error, test_error, atol=2e-6)
    nodes, weights = np.polynomial.hermite_e.hermegauss(120)
    weights /= weights.sum()
    for m, q, noisy in zip(found.m, found.q, found.test_error, strict=True):
        target = (3 * 1.25) ** 0.5 * nodes[:, None]
        own = 3**0.5 * (m / 1.25**0.5 * nodes[:, None] + (q - m**2 / 1.25) ** 0.5 * nodes)
        miss = 1 / (1 + np.exp(-target)) - 1 / (1 + np.exp(-own))
        assert noisy == pytest.approx(4 * float(weights @ miss**2 @ weights), rel=1e-6)
    np.testing.assert_array_equal(found.sticking, [False, False, True, True])
    assert (found.test_error_clean < found.test_error).all()


@pytest.mark.parametrize(("n_eff", "ell"), [(10, 1.370194), (100, 0.925951)])
def test_state_evolution_above_the_critical_penalty(n_eff: float, ell: float) -> None:
    """The solver of the whole spectrum at d = 30,000; its distance is of order n_eff/d."""
    dimension = 30_000
    modes = np.arange(1, dimension + 1.0) ** -1
    modes /= np.sqrt(np.sum(modes**2))
    whole = state_evolution.solve(
        n_eff / dimension, ell * (n_eff / dimension) ** 0.5, target=modes * dimension**0.5, noise=0.5
    )
    limit = laws.learned(n_eff, modes, ell)
    assert whole.converged and limit.converged
    assert whole.excess == pytest.approx(limit.error, rel=1e-5)
    assert whole.test_error == pytest.approx(limit.test_error, rel=1e-5)


@pytest.mark.parametrize("output", ["softmax", "linear", "quadratic"])
@pytest.mark.parametrize("ell", [0.0, 0.05, 1.0, 6.0])
def test_causes_add_up(output: str, ell: float) -> None:
    found = laws.learned([2.0, 40.0, 900.0], [0.9, 0.6, 0.6, 0.2, 0.01], ell, noise=0.3, output=output)
    causes = found.decomposition()
    parts = [causes.overfitting, causes.underfitting, causes.approximation, causes.mismatch]
    assert all((np.asarray(part) >= 0).all() for part in parts)
    np.testing.assert_allclose(sum(parts), found.error, rtol=1e-13)
    np.testing.assert_allclose(found.q + 1.5701 - 2 * found.m, found.error, rtol=1e-10, atol=1e-12)
    assert found.converged.all()


def test_modes_put_back_into_every_equation() -> None:
    """Both phases: overlap, square, response and the bulk's condition, by sums over the modes one by one."""
    strengths = np.array([0.8, 0.5, 0.3, 0.1])
    for ell, sticking in ((0.1, True), (1.2, False)):
        found = laws.learned(50.0, strengths, ell)
        assert found.sticking is sticking
        assert (found.epsilon == 2 * found.delta) is sticking and (found.bulk_response > 0) is sticking
        kept = strengths[strengths > found.delta]
        kept = kept[kept + found.delta**2 / kept > found.epsilon]
        learned = found.eta * (kept + found.delta**2 / kept - found.epsilon)
        assert found.modes == kept.size
        assert found.m == pytest.approx(np.sum(learned * kept * (1 - found.delta**2 / kept**2)), rel=1e-12)
        assert found.q == pytest.approx(np.sum(learned**2), rel=1e-9)
        gain = ell / (50**0.5 * found.epsilon)  # ϵ = ℓ/(√n M), and V n W = Σ y/(ησ) + B with W = M/η
        share = np.sum(learned / (found.eta * kept)) + found.bulk_response
        assert found.V * 50 * gain / found.eta == pytest.approx(share, rel=1e-7)


@pytest.mark.parametrize(
    ("n_eff", "modes", "ell", "output"),
    [
        (14_906.2, [0.132, 0.14, 0.474, 0.475, 0.784, 0.882, 0.961], 3.13e-5, "softmax"),
        (1.126e9, [1.63, 1.99], 7.42e-6, "linear"),
        (5.05e9, 1.7, 7.7e-6, "softmax"),
        (1.02e7, [0.161, 0.5], 0.187, "softmax"),
    ],
)
def test_recovery_without_noise(n_eff: float, modes: Any, ell: float, output: str) -> None:
    """Far above the critical penalty, and so near to recovery that only the bias of the cut is left."""
    found = laws.learned(n_eff, modes, ell, noise=0.0, output=output)
    assert found.converged and not found.sticking and found.error < 1e-6
    if not isinstance(modes, float):
        assert found.modes == len(modes)
    if output == "linear":
        assert found.error == pytest.approx(2 * found.epsilon**2, rel=1e-6)


def test_linear_outputs_do_not_depend_on_a_weak_penalty() -> None:
    """Below the critical ℓ linear outputs have the interpolating error; a softmax has it only as λ → 0⁺."""
    critical = laws.critical_penalty(100, 1.0, output="linear")
    below = laws.learned(100, 1.0, [1e-3, 0.5 * critical, 0.999 * critical], output="linear")
    np.testing.assert_allclose(below.error, laws.interpolating_error(100, 1.0, scores=3), rtol=1e-9)
    np.testing.assert_allclose(below.test_error, 2 * 3 * (below.error + 0.25), rtol=1e-12)
    above = laws.learned(100, 1.0, 1.1 * critical, output="linear")
    assert above.error > below.error[0] and not above.sticking
    softmax = laws.learned(100, 1.0, [0.0, 1e-8, 1e-2])
    assert softmax.error[0] == pytest.approx(laws.interpolating_error(100, 1.0), rel=1e-12)
    assert softmax.error[1] == pytest.approx(softmax.error[0], rel=1e-4)
    assert softmax.error[2] > 1.2 * softmax.error[0]


def test_softmax_has_a_floor_at_a_fixed_penalty() -> None:
    """With noisy labels the scale does not tend to 1 at fixed ℓ > 0: E tends to (1 − η)²."""
    found = laws.learned([1e6, 1e10], 1.0, 0.3)
    floor = (1 - found.eta) ** 2
    assert floor[1] > 0.02 and found.error[1] == pytest.approx(floor[1], rel=2e-3)
    assert found.error[0] - floor[0] > 10 * (found.error[1] - floor[1])
    cut = laws.learned(1e12, 1.0, [1.0, 3.0])  # above the critical penalty too: V → 0, the noisy labels' own best scale
    assert not cut.sticking.any() and np.ptp(cut.eta) < 1e-4 and cut.eta[0] == pytest.approx(0.8742, abs=2e-4)
    quiet = laws.learned([1e2, 1e6, 1e12], 1.0, [0.01, 0.3, 3.0], noise=0.0)
    assert quiet.converged.all() and quiet.eta[2] > 0.9999 and quiet.error[2] < 1e-4


def test_scale_of_noisy_labels() -> None:
    """V → 0 at many sequences: the learned scale is the least of the test error over multiples of the target."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(120)
    weights /= weights.sum()
    square, noise = 3.0, 3 * 0.25
    own, label = square**0.5 * nodes[:, None], square**0.5 * nodes[:, None] + noise**0.5 * nodes

    def test_error(scale: float) -> float:
        miss = 1 / (1 + np.exp(-label)) - 1 / (1 + np.exp(-scale * own))
        return float(weights @ miss**2 @ weights)

    best = scipy.optimize.minimize_scalar(test_error, bounds=(0.5, 1.0), method="bounded", options={"xatol": 1e-9}).x
    assert laws.learned(1e12, 1.0, 3.0).eta == pytest.approx(best, abs=1e-4)


def test_critical_penalty() -> None:
    """On both sides of it the solution is the same, up to the distance; far out linear outputs follow the law."""
    critical = laws.critical_penalty([10, 1000], 1.0)
    for n_eff, ell in zip([10, 1000], critical, strict=True):
        near = laws.learned(n_eff, 1.0, [ell * (1 - 1e-4), ell * (1 + 1e-4)])
        assert near.sticking.tolist() == [True, False]
        assert near.error[1] == pytest.approx(near.error[0], rel=1e-3)
        assert near.epsilon[1] == pytest.approx(2 * near.delta[1], rel=1e-3)
    values = {equations.noise: 0.5, equations.outputs: 3, equations.stiffness: 2}
    far = float(chapter.critical_penalty_of_many.right.subs(values))
    assert laws.critical_penalty(1e9, 1.0, output="linear") == pytest.approx(far, rel=1e-4)


@pytest.mark.parametrize("output", ["softmax", "linear"])
def test_nothing_is_learned(output: str) -> None:
    """Too few sequences (the response is that of the bulk), or too strong a penalty (there is none)."""
    found = laws.learned([0.01, 5.0], 1.0, [0.01, 100.0], output=output)
    np.testing.assert_array_equal(found.error, 1.0)
    np.testing.assert_array_equal(found.modes, 0)
    assert (found.m == 0).all() and found.sticking.tolist() == [True, False]
    assert found.V[0] > 0 and found.V[1] == 0 and found.converged.all()


def test_three_tokens_between_two_and_four() -> None:
    errors = [laws.learned(100, 1.0, 0.18, tokens=tokens) for tokens in (2, 3)]
    assert all(one.converged for one in errors)
    assert errors[1].error == pytest.approx(0.1060, abs=3e-4)  # by eight times 16,384 random sequences
    assert errors[1].error < errors[0].error


def test_point_does_not_depend_on_its_neighbours() -> None:
    alone = laws.learned(100, 1.0, 0.180064)
    beside = laws.learned([3, 100, 1e4], 1.0, 0.180064)
    assert beside.error[1] == pytest.approx(alone.error, rel=1e-8)


# -- emergence and the best penalty ----------------------------------------------------------------------------------


def test_emergence_in_closed_form() -> None:
    found = laws.emergence([1, 2, 3, 10], 1.0)
    np.testing.assert_allclose(found, [0.514042, 1.743668, 3.230544, 19.547496], rtol=1e-6)
    modes = PowerLaw(1.0)
    for mode, n_eff in ((2, found[1]), (10, found[3])):  # a mode is there above its size, and not below
        counts = laws.learned(n_eff * np.array([1 - 1e-6, 1 + 1e-6]), 1.0, 0.0).modes
        assert counts.tolist() == [mode - 1, mode]
    bayes = laws.emergence([1, 2, 3], 1.0, estimator="bayes")
    assert bayes[0] == found[0] and (bayes[1:] < found[1:3]).all()
    strength = float(modes.strength(np.asarray(3)))
    error = laws.bayes_error(float(bayes[2]), 1.0)
    assert (error + 0.25) / (4 * bayes[2]) == pytest.approx(strength**2, rel=1e-10)


def test_emergence_at_a_finite_penalty() -> None:
    """The first mode by the scalar equations of a matrix that is 0; later ones by counting."""
    for mode, ell in ((1, 0.1), (1, 2.0), (3, 1.0)):
        found = laws.emergence(mode, 1.0, ell=ell)
        counts = laws.learned(found * np.array([1 - 1e-5, 1 + 1e-5]), 1.0, ell).modes
        assert counts.tolist() == [mode - 1, mode]
    linear = laws.emergence([1, 2], 1.0, ell=0.5, output="linear")
    np.testing.assert_allclose(linear, laws.emergence([1, 2], 1.0, scores=3), rtol=1e-7)


def test_best_penalty() -> None:
    """Few sequences are best interpolated; from some tens on a small penalty is better (γ = 1, Δ = ½)."""
    few = laws.learned(10, 1.0, [0.0, 1e-6, 1e-3, 0.1])
    assert (np.diff(few.test_error) > 0).all()
    best = laws.best_penalty(1000, 1.0)
    around = laws.learned(1000, 1.0, [0.0, best / 3, best, 3 * best])
    assert around.test_error.argmin() == 2 and around.error.argmin() == 0
    assert laws.best_penalty(30, 1.0, output="linear") == laws.critical_penalty(30, 1.0, output="linear")


@pytest.mark.parametrize(("factorised", "test_error"), [(True, 0.0113), (False, 0.0237)])
def test_best_at_extensive_rank(factorised: bool, test_error: float) -> None:
    """Published trained networks, d = 100, κ₀ = Δ = 0.05, α ≈ 0.5: noisy test error, read from the figures' data."""
    lam, solution = laws.best(0.5, 0.05, 0.05, factorised=factorised)
    assert solution.converged and solution.lam == lam
    assert solution.test_error == pytest.approx(test_error, rel=0.03)
    penalty = "nuclear" if factorised else "frobenius"
    for factor in (0.8, 1.25):
        other = state_evolution.solve(0.5, factor * lam, kappa0=0.05, noise=0.05, penalty=penalty)
        assert other.test_error > solution.test_error


# -- regimes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gamma", [0.75, 1.0, 1.5])
def test_exponents_and_prefactors_are_reached(gamma: float) -> None:
    n_eff = np.array([1e11, 1e12])
    for noise, regime in ((0.5, "noise-limited"), (0.0, "noiseless")):
        power = laws.prefactor(gamma, regime, noise) * n_eff ** laws.exponent(gamma, regime)
        ratio = laws.interpolating_error(n_eff, gamma, noise) / power
        assert abs(ratio[1] - 1) < 5e-4 and abs(ratio[1] - 1) < abs(ratio[0] - 1) + 1e-9
    found = laws.learned(1e7, gamma, 300.0, output="linear")
    at = {"scores": 3, "lam": 300.0 * (1e7 / 1e12) ** 0.5, "d": 1e12}
    power = laws.prefactor(gamma, "regularisation-limited", **at) * 1e7 ** laws.exponent(
        gamma, "regularisation-limited"
    )
    assert found.error == pytest.approx(power, rel=0.05)


def test_table_of_exponents() -> None:
    gamma = np.array([0.75, 1.0, 2.0])
    table = {
        "plateau": 0 * gamma,
        "noise-limited": -1 + 1 / (2 * gamma),
        "noiseless": 1 - 2 * gamma,
        "regularisation-limited": -2 + 1 / gamma,
        "bias": -2 + 0 * gamma,
        "overfitting": -1 + 0 * gamma,
        "overfitting-resolved": -1 + 0 * gamma,
        "peak": -2 / 3 + 0 * gamma,
    }
    assert set(table) == set(laws.REGIMES)
    for regime, expected in table.items():
        np.testing.assert_allclose(laws.exponent(gamma, regime), expected, rtol=1e-14)
        assert isinstance(laws.exponent(1, regime), float) and isinstance(laws.prefactor(1, regime), float)


def test_slow_approach_near_one_half() -> None:
    """Local slopes of the noise-limited curve lie below their limit, and the further the nearer γ is to one half."""
    n_eff = np.geomspace(1e4, 1e12, 9)
    shares = []
    for gamma in (1.0, 0.6, 0.55):
        error, limit = laws.interpolating_error(n_eff, gamma), laws.exponent(gamma, "noise-limited")
        slope = np.diff(np.log(error)) / np.diff(np.log(n_eff))
        middle = laws.interpolating_error(np.sqrt(n_eff[:-1] * n_eff[1:]), gamma)
        by_law = function(chapter.local_slope.right, (chapter.gamma, chapter.excess, chapter.noise))
        np.testing.assert_allclose(by_law(gamma, middle, 0.5)[3:], slope[3:], rtol=5e-3)
        shares.append(slope / limit - 1)
        assert (shares[-1] > 0).all() and (np.diff(shares[-1]) < 0).all()
    assert shares[0][0] < 0.01 and shares[1][0] > 0.08 and shares[2][0] > 0.06
    assert shares[0][-1] < 1e-5 and shares[1][-1] > 0.005 and shares[2][-1] > 0.02


def test_phases() -> None:
    sequences = [10, 1e5, 1.25e5, 1e6, 1e12]
    expected = ["plateau", "noise-limited", "peak", "overfitting", "overfitting-resolved"]
    assert laws.phase(sequences, 1e3, 1e-6, 1.0).tolist() == expected
    assert laws.phase(1e6, 1e4, 1e-9, 1.0, 0.0) == "noiseless"
    assert laws.phase(1e5, 1e3, 1e4, 1.0) == "plateau"
    assert laws.phase(1e8, 1e3, 100.0, 1.0) == "regularisation-limited"
    assert laws.phase([5e6, 2e7], 1e3, 1.0, 1.0, 1e-6).tolist() == ["bias", "bias"]


# -- the scalar analogue ---------------------------------------------------------------------------------------------


def test_least_norm_vectors() -> None:
    """Basis pursuit by linear programming, 60 measurements of 300 coordinates; 24 draws."""
    generator, samples, coordinates = np.random.default_rng(3), 60, 300
    target = PowerLaw(1.0).strength(np.arange(1, coordinates + 1))
    for noise in (0.5, 0.0):
        distances = []
        for _ in range(24):
            matrix = generator.standard_normal((samples, coordinates))
            labels = matrix @ target + noise**0.5 * generator.standard_normal(samples)
            found = scipy.optimize.linprog(
                np.ones(2 * coordinates), A_eq=np.hstack([matrix, -matrix]), b_eq=labels, method="highs"
            )
            distances.append(np.sum((found.x[:coordinates] - found.x[coordinates:] - target) ** 2))
        spread = np.std(distances) / len(distances) ** 0.5
        assert laws.lasso_error(samples, coordinates, 1.0, noise) == pytest.approx(np.mean(distances), abs=4 * spread)


def test_many_coordinates_and_few() -> None:
    """The integral over ranks against all coordinates one by one; recovery without noise."""
    count = 20_000
    every = PowerLaw(1.0).strength(np.arange(1, count + 1))
    assert laws.lasso_error(200, count, 1.0) == pytest.approx(laws.lasso_error(200, count, every), rel=1e-7)
    assert laws.lasso_error(50, 100, [1.0, 1.0, 1.0], 0.0) == 0.0
    assert laws.lasso_error([[20], [50]], [100, 1000], 1.0).shape == (2, 2)


# -- nodes, input, imports -------------------------------------------------------------------------------------------


def test_nodes_of_laws() -> None:
    import sympy as sp

    from derivations._modes import InterpolatingError, SpikedSolution

    node = SpikedSolution.of("error", "linear", chapter.n_eff, 1, 3, sp.Rational(1, 2), 2)
    found = function(node, [chapter.n_eff])(np.array([10.0, 100.0]))
    np.testing.assert_allclose(found, laws.interpolating_error([10.0, 100.0], 1.0, scores=3), rtol=1e-9)
    share = sp.Lambda(chapter.ratio, chapter.nuclear_mode_error.right)
    node = InterpolatingError.of(share, chapter.n_eff, 1, sp.Rational(1, 2), 2)
    assert function(node, [chapter.n_eff])(100.0) == pytest.approx(CURVES[1.0, 0.5][0][1], rel=1e-8)


BAD: list[tuple[Any, str]] = [
    (lambda: laws.interpolating_error(10, 0.5), r"gamma must be > 1/2, got 0\.5: the target's energy"),
    (lambda: laws.bayes_error(10, [[1.0]]), "gamma must be an exponent > 1/2 or a list"),
    (lambda: laws.bayes_error(10, [1.0, -1.0]), "gamma must be an exponent > 1/2 or a list"),
    (lambda: laws.interpolating_error(10, []), "gamma must be an exponent > 1/2 or a list"),
    (lambda: laws.interpolating_error(0, 1), "n_eff must be > 0, got 0"),
    (lambda: laws.interpolating_error([1, -2], 1), "n_eff must be > 0, got -2 at index 1"),
    (lambda: laws.interpolating_error(10, 1, -0.1), r"noise must be >= 0, got -0\.1"),
    (lambda: laws.interpolating_error(10, 1, scores=0), "scores must be >= 1, got 0"),
    (lambda: laws.interpolating_error("10", 1), "n_eff must be"),
    (lambda: laws.learned(10, 1, -1), "ell must be >= 0, got -1"),
    (lambda: laws.learned(10, 1, 1, tokens=1), "tokens must be an integer >= 2, got 1"),
    (lambda: laws.learned(10, 1, 1, tokens=0, output="linear"), "tokens must be an integer >= 1"),
    (lambda: laws.learned(10, 1, 1, output="relu"), "output must be one of softmax, linear, quadratic, got 'relu'"),
    (lambda: laws.learned([1, 2], 1, [1, 2, 3]), "shapes must broadcast, got n_eff"),
    (lambda: laws.emergence(0, 1), "mode must be an integer >= 1, got 0"),
    (lambda: laws.emergence(1.5, 1), r"mode must be an integer >= 1, got 1\.5"),
    (lambda: laws.emergence(4, [1.0, 0.5]), "mode must be at most 2"),
    (lambda: laws.emergence(1, 1, estimator="map"), "estimator must be one of erm, bayes, got 'map'"),
    (lambda: laws.emergence(1, 1, estimator="bayes", ell=1), "ell must be None"),
    (lambda: laws.emergence(1, 1, ell=0), "ell must be > 0, got 0"),
    (lambda: laws.exponent(1, "slow"), "regime must be one of plateau, noise-limited"),
    (lambda: laws.exponent(0.5, "noiseless"), "gamma must be > 1/2"),
    (lambda: laws.prefactor(1, "bias", lam=0), "lam must be > 0, got 0"),
    (lambda: laws.phase(0, 10, 1, 1), "n must be > 0, got 0"),
    (lambda: laws.phase(10, 10, -1, 1), "lam must be >= 0, got -1"),
    (lambda: laws.lasso_error(100, 100, 1), "n must be < p"),
    (lambda: laws.lasso_error(1, 2, [1.0, 1.0, 1.0]), "p must be at least 3"),
    (lambda: laws.best(0, 0.5, 0.5), "alpha must be > 0, got 0"),
    (lambda: laws.best(1, 0.5, 0.5, factorised="no"), "factorised must be True or False, got 'no'"),
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_bad_input(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_modes_of_a_number_or_a_list() -> None:
    assert modes_of(2).number == np.inf and modes_of([3.0, 4.0]).square == 25.0


def test_import_compiles_nothing() -> None:
    code = "import numerics.compile as c, numerics.scaling_laws; assert c._compiled.cache_info().currsize == 0"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
