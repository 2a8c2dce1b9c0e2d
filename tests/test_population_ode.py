"""The learned query in numbers: against independent quadrature, 30-digit references, published values and bad input.

Also the two symbolic bridges of the chapter: pathwise derivatives against integrals, and the gradient's two moments.
"""

from __future__ import annotations

import math
import time

import mpmath as mp
import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate

from derivations import population_ode as laws
from derivations._weighted_sums import ScoreMean, WeightSum, laplace_mean
from numerics.compile import function
from numerics.population_ode import Objective, critical_fraction, critical_strength, reversed_ratio
from numerics.special import ScalarField, score_mean

EXAMPLE = (1.0, 50, 500)  # θ, informative, nuisance: L = 550, with d = 50


def two_tokens(theta: float, rho: float, dimension: int) -> float:
    """J for one informative and one nuisance token, by quadrature over the difference of their scores."""
    shift = theta * rho

    def mean(value):
        density = lambda x: math.exp(-((x - shift) ** 2) / 4) / math.sqrt(4 * math.pi)  # noqa: E731
        return integrate.quad(lambda x: value(x) * density(x), shift - 14, shift + 14, epsabs=1e-14, limit=400)[0]

    weight = lambda x: 1 / (1 + math.exp(-x))  # noqa: E731
    participation = mean(lambda x: weight(x) ** 2 + (1 - weight(x)) ** 2)
    squared_mass = mean(lambda x: weight(x) ** 2)
    squared_score = 0.5 + mean(lambda x: (shift / 2 + (weight(x) - 0.5) * x) ** 2)
    return squared_score + theta**2 * (1 - rho**2) * squared_mass + (dimension - 1) * participation


@pytest.mark.parametrize(("theta", "rho", "dimension"), [(1, 0.3, 5), (4, -0.7, 2), (10, 0.9, 40), (0.25, -1, 9)])
def test_two_tokens_by_another_quadrature(theta, rho, dimension):
    assert Objective(theta, 1, 1, dimension).value(rho) == pytest.approx(two_tokens(theta, rho, dimension), rel=1e-10)


def test_one_token_has_nothing_to_select():
    lonely = Objective(3, 1, 0, 7)
    rho = np.linspace(-1, 1, 9)
    assert lonely.value(rho) == pytest.approx(np.full(9, 3**2 + 7), rel=1e-12)
    assert np.abs(lonely.slope(rho)).max() < 1e-10
    assert np.abs(lonely.gradient_square(rho)).max() < 1e-8


def reference_participation(shift: float, informative: int, nuisance: int) -> mp.mpf:
    """E Σa² at 30 digits, on other grids than the library's."""
    with mp.workdps(30):
        step = mp.mpf("0.21")
        scores = [step * index for index in range(-48, 66)]
        density = [mp.npdf(score) * step for score in scores]
        total = mp.mpf(0)
        for index in range(-200, 55):
            s, parts = mp.exp(step * index), []
            for centre in (mp.mpf(shift), mp.mpf(0)):
                powers = [mp.exp(centre + score) for score in scores]
                tilt = [weight * mp.exp(-s * power) for weight, power in zip(density, powers, strict=True)]
                norm = mp.fsum(tilt)
                parts.append(
                    (
                        mp.log(norm),
                        mp.fsum(power**2 * weight for power, weight in zip(powers, tilt, strict=True)) / norm,
                    )
                )
            (signal, signal_square), (noise, noise_square) = parts
            joint = mp.exp(informative * signal + nuisance * noise)
            total += step * s**2 * joint * (informative * signal_square + nuisance * noise_square)
        return total


@pytest.mark.parametrize(("theta", "rho", "informative", "nuisance"), [(10, 0.5, 1000, 999_000)])
def test_against_thirty_digits(theta, rho, informative, nuisance):
    expected = float(reference_participation(theta * rho, informative, nuisance))
    found = score_mean((((2, 0, False),),), 1.0, theta * rho, informative, nuisance)
    assert found == pytest.approx(expected, rel=1e-9)


def test_published_example():
    limit, exact = Objective(*EXAMPLE), Objective(*EXAMPLE, 50)
    assert exact.value(0) == pytest.approx(1.2473, abs=5e-5)
    assert limit.value(0) == pytest.approx(1.0083, abs=5e-5)
    assert exact.slope(-0.95) == pytest.approx(-0.0019, abs=5e-5)
    assert limit.slope(-0.95) > 0
    assert exact.trajectory(0, 2.43) == pytest.approx(0.719, abs=5e-4)
    assert limit.trajectory(0, 2.43) == pytest.approx(0.6845, abs=5e-5)
    assert Objective(1, 1, 9).informative_mass(1.0) == pytest.approx(0.232, abs=5e-4)
    path = np.abs(exact.gradient_square(np.linspace(0, 0.72, 50)))
    assert path.mean() == pytest.approx(9.6, abs=0.5)


def test_published_thresholds():
    assert critical_fraction([3, 1.5, 0.7]) == pytest.approx([0.830, 0.434, 0], abs=5e-4)
    assert Objective(3, 5, 95).basin_boundary() == pytest.approx(-0.3874, abs=5e-5)
    assert Objective(3, 1, 10**6).basin_boundary() == pytest.approx(-1 / 3, abs=1e-5)
    assert Objective(1, 50, 500).basin_boundary() is None
    assert Objective(2, 5, 0).basin_boundary() is None
    for fraction in (0.05, 0.5, 0.95):
        assert critical_fraction(critical_strength(fraction)) == pytest.approx(fraction, rel=1e-9)


def test_step_corrections_of_the_published_runs():
    """Simulated means at t = 2.43: 0.718(8), 0.684 and 0.599 for steps 0.002, 0.01 and 0.03."""
    exact = Objective(*EXAMPLE, 50)
    for step, simulated, error in ((0.002, 0.718, 0.008), (0.01, 0.684, 0.01), (0.03, 0.599, 0.01)):
        steps = np.full(round(2.43 / step), step)
        means, variances = exact.mean_path(0, steps)
        assert means[-1] == pytest.approx(simulated, abs=1.5 * error)
        assert variances[0] == 0 and variances[-1] > 0
        corrected = exact.trajectory(0, steps.sum(), steps=steps)
        assert means[-1] < corrected < exact.trajectory(0, steps.sum())


def test_first_order_term():
    """L (J_L − J_∞) tends to the closed form of the 1/L term."""
    theta, fraction, dimension, rho = 1.3, 0.2, 12, 0.4
    formula = laws.first_order_law.right.subs(laws.p, laws.informative_mass.right)
    names = (laws.theta, laws.r, laws.d, laws.rho)
    expected = function(formula, names)(theta, fraction, dimension, rho)
    errors = []
    for size in (1000, 4000, 16000):
        informative = round(fraction * size)
        exact, limit = (Objective(theta, informative, size - informative, d) for d in (dimension, None))
        errors.append(size * (exact.value(rho) - limit.value(rho)) - expected)
    assert abs(errors[-1]) < 0.01 * abs(expected)
    assert errors[1] / errors[2] == pytest.approx(4, rel=0.1)


def test_proportional_limit():
    theta, rho, ratio = 1.0, -0.5, 0.25
    formula = laws.proportional_objective.right.subs(laws.p, laws.informative_mass.right)
    expected = function(formula, (laws.theta, laws.r, laws.c, laws.rho))(theta, 0.2, ratio, rho)
    gaps = [Objective(theta, size // 5, size - size // 5, size // 4).value(rho) - expected for size in (1000, 4000)]
    assert gaps[0] / gaps[1] == pytest.approx(4, rel=0.05)


def test_reversed_ratio_is_where_the_pole_turns():
    ratio = reversed_ratio(1.0, 1 / 11)
    tokens = 44_000
    for factor, stable in ((0.97, False), (1.03, True)):
        pole = Objective(1, tokens // 11, tokens - tokens // 11, round(factor * ratio * tokens)).equilibria()[0]
        assert pole.rho == -1 and pole.stable is stable


def test_slope_and_curvature_are_derivatives():
    rho, step = np.linspace(-0.9, 0.9, 7), 1e-4
    for objective in (Objective(2, 3, 9), Objective(2, 3, 9, 6)):
        difference = (objective.value(rho + step) - objective.value(rho - step)) / (2 * step)
        assert objective.slope(rho) == pytest.approx(difference, rel=1e-6, abs=1e-7)
        difference = (objective.slope(rho + step) - objective.slope(rho - step)) / (2 * step)
        assert objective.curvature(rho) == pytest.approx(difference, rel=1e-6, abs=1e-7)


def test_pathwise_derivative_is_that_of_the_integrals():
    """The derivative of the weights, draw by draw, against the derivative of the Laplace integrand in the shift."""
    shift, s = sp.Symbol("shift", real=True), sp.Symbol("s", positive=True)
    mean = ScoreMean(WeightSum(1, 1, 0) ** 2, shift, 2, 3)
    by_weights = function(sp.diff(mean, shift), [shift])
    step = 1e-4
    value = function(mean, [shift])
    assert by_weights(0.3) == pytest.approx((value(0.3 + step) - value(0.3 - step)) / (2 * step), rel=1e-7)
    integral = laplace_mean(mean, s)
    assert integral.atoms(sp.Integral)


def test_gradient_moments_by_brute_force():
    """E‖g⊥‖² and E⟨g⊥, ξ⟩² from the definition, on draws of a small model."""
    theta, informative, nuisance, dimension, rho, count = 1.2, 2, 3, 4, 0.3, 400_000
    generator = np.random.default_rng(5)
    tokens = generator.standard_normal((count, informative + nuisance, dimension))
    tokens[:, :informative, 0] += theta
    query = np.zeros(dimension)
    query[:2] = rho, math.sqrt(1 - rho**2)
    weights = np.exp(tokens @ query)
    weights /= weights.sum(axis=1, keepdims=True)
    pooled = np.einsum("nl,nld->nd", weights, tokens)
    centred = tokens - pooled[:, None]
    gradient = 2 * np.einsum("nl,nld,nl->nd", weights, centred, np.einsum("nld,nd->nl", centred, pooled))
    gradient -= (gradient @ query)[:, None] * query
    objective = Objective(theta, informative, nuisance, dimension)
    toward = function(laws.signal_square_law.right, (laws.rho, laws.theta, laws.R, laws.N, laws.d))
    for sample, expected in (
        ((gradient**2).sum(axis=1), objective.gradient_square(rho)),
        (gradient[:, 0] ** 2, toward(rho, theta, informative, nuisance, dimension)),
        (gradient[:, 0], (1 - rho**2) * objective.slope(rho)),
    ):
        assert sample.mean() == pytest.approx(expected, abs=4.5 * sample.std() / math.sqrt(count))


def test_batches_average_the_noise_only():
    objective, rho = Objective(*EXAMPLE, 50), 0.4
    mean_square = (1 - rho**2) * objective.slope(rho) ** 2
    assert objective.gradient_square(rho, batch=10) - mean_square == pytest.approx(
        (objective.gradient_square(rho) - mean_square) / 10
    )
    assert Objective(*EXAMPLE).gradient_square(rho) == pytest.approx((1 - rho**2) * Objective(*EXAMPLE).slope(rho) ** 2)


@pytest.mark.parametrize("dimension", [None, 50])
def test_trajectory_agrees_with_separation_of_variables(dimension):
    objective = Objective(*EXAMPLE, dimension)
    times = np.array([[0.0, 0.5], [3.0, 1.5]])
    path = objective.trajectory(0.1, times)
    assert path.shape == times.shape and path[0, 0] == pytest.approx(0.1, abs=1e-15)
    for time_, rho in zip(times.ravel()[1:], path.ravel()[1:], strict=True):
        assert objective.time_to(rho, 0.1) == pytest.approx(time_, rel=1e-8)
    assert objective.trajectory(1.0, 5.0) == 1.0
    assert objective.trajectory(-1.0, 5.0) == -1.0


def test_flow_leaves_the_boundary_on_either_side():
    objective = Objective(3, 5, 95)
    boundary = objective.basin_boundary()
    ends = [objective.trajectory(boundary + offset, 400.0) for offset in (-0.01, 0.01)]
    assert ends == pytest.approx([-1, 1], abs=1e-6)
    assert objective.time_to(0.5, -0.5) == math.inf
    kinds = [equilibrium.stable for equilibrium in objective.equilibria()]
    assert kinds == [True, False, True]


def test_approach_to_the_signal():
    objective = Objective(2, 10, 30)
    ends = [objective.time_to(1 - gap) for gap in (1e-6, 1e-7)]
    assert ends[1] - ends[0] == pytest.approx(math.log(10) / (2 * objective.slope(1.0)), rel=1e-4)


def test_scalars_arrays_and_their_agreement():
    rho = np.linspace(-1, 1, 37).reshape(37, 1)
    for objective in (Objective(*EXAMPLE), Objective(*EXAMPLE, 50)):
        for method in (objective.value, objective.slope, objective.informative_mass, objective.gradient_square):
            values = method(rho)
            assert values.shape == rho.shape and np.isfinite(values).all()
            assert isinstance(method(0.25), float)
            assert method(float(rho[5, 0])) == pytest.approx(values[5, 0], rel=1e-12)


def test_extreme_sizes_are_finite_and_fast():
    rho = np.linspace(-1, 1, 20)
    for informative, nuisance in ((1, 999_999), (500_000, 500_000), (999_999, 1), (1, 1)):
        objective = Objective(10, informative, nuisance, 1000)
        began = time.process_time()
        values = objective.value(rho)
        assert (time.process_time() - began) / len(rho) < 0.05
        assert np.isfinite(values).all() and (values > 0).all()
    tiny = Objective(10, 1, 999_999, 1000)
    assert tiny.value(-1.0) == pytest.approx(1 + 999 * math.e / 1e6, rel=1e-2)


@settings(max_examples=12, deadline=None)
@given(st.floats(0.1, 4), st.floats(-1, 1), st.integers(1, 300), st.integers(0, 3000), st.integers(2, 100))
def test_exact_values_respect_their_bounds(theta, rho, informative, nuisance, dimension):
    """0 ≤ E‖f‖² ≤ E max ‖x‖², the mass lies in [0, 1], and W² ≤ W."""
    objective = Objective(theta, informative, nuisance, dimension)
    mass = objective.informative_mass(rho)
    assert -1e-12 <= mass <= 1 + 1e-12
    assert 0 < objective.value(rho) < theta**2 + (dimension + 2) * (2 + 2 * math.log(informative + nuisance + 1)) + 10
    square = score_mean((((1, 0, True), (1, 0, True)),), 1.0, theta * rho, informative, nuisance)
    assert square <= mass * (1 + 1e-10)


@settings(max_examples=30, deadline=None)
@given(st.floats(0.2, 6), st.integers(1, 99))
def test_limit_has_at_most_one_boundary(theta, percent):
    objective = Objective(theta, percent, 100 - percent)
    boundary = objective.basin_boundary()
    assert (boundary is not None) == (percent / 100 < critical_fraction(theta))
    signs = np.sign(objective.slope(np.linspace(-1, 1, 401)))
    assert np.count_nonzero(np.diff(signs)) <= 1
    if boundary is not None:
        assert abs(objective.slope(boundary)) < 1e-9 and boundary < 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 1, 1), "theta must be > 0"),
        ((-1, 1, 1), "theta must be > 0"),
        ((math.nan, 1, 1), "theta must be finite"),
        ((1, 0, 1), "informative must be an integer >= 1"),
        ((1, 1.5, 1), "informative must be an integer >= 1"),
        ((1, 1, -1), "nuisance must be an integer >= 0"),
        ((1, 1, 1, 1), "dimension must be an integer >= 2 or None"),
        ((1, 1, 1, 2.5), "dimension must be an integer"),
        (("1", 1, 1), "theta must be"),
    ],
)
def test_bad_parameters(arguments, message):
    with pytest.raises(ValueError, match=message):
        Objective(*arguments)


@pytest.mark.parametrize("rho", [1.0001, -2, math.nan, math.inf, "0.5", [0, 3]])
@pytest.mark.parametrize("dimension", [None, 5])
def test_bad_alignment(rho, dimension):
    objective = Objective(1, 2, 3, dimension)
    for method in (objective.value, objective.slope, objective.informative_mass):
        with pytest.raises(ValueError, match="rho must be"):
            method(rho)


def test_bad_flow_arguments():
    objective = Objective(1, 2, 3, 4)
    with pytest.raises(ValueError, match="rho0 must be"):
        objective.trajectory(1.5, 1)
    with pytest.raises(ValueError, match="times must be"):
        objective.trajectory(0, -1)
    with pytest.raises(ValueError, match="steps must be"):
        objective.trajectory(0, 0.1, steps=[0.1, -0.1])
    with pytest.raises(ValueError, match="times must not exceed the sum of the steps"):
        objective.trajectory(0, 1.0, steps=[0.1])
    with pytest.raises(ValueError, match="dimension must be an integer for mean_path"):
        Objective(1, 2, 3).mean_path(0, [0.1])
    with pytest.raises(ValueError, match="batch must be"):
        objective.gradient_square(0, batch=0)
    with pytest.raises(ValueError, match="shift"):
        Objective(100, 2, 3, 4).value(1.0)
    with pytest.raises(ValueError, match="fraction must be"):
        critical_strength(1.0)


def test_interpolation_refuses_what_it_cannot_reach():
    with pytest.raises(ArithmeticError, match="Chebyshev degree"):
        ScalarField.interpolated(lambda rho: np.abs(np.asarray(rho) - 0.123))
