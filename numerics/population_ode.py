"""The learned query in numbers: objective, slope, flow, equilibria and basins, in the limit or at finite sizes.

Every number is a reading of a law of `derivations.population_ode`; this module adds the choice of laws, the roots and
the integration in time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import sympy as sp
from scipy import integrate, optimize

from derivations import population_ode as laws
from numerics.compile import function
from numerics.special import ScalarField, solve_flow, stepped_moments
from numerics.validate import check, plain, real_array, scalar

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Equilibrium:
    """A zero of the flow: its alignment, the linear growth rate of a perturbation, and whether it attracts."""

    rho: float
    rate: float

    @property
    def stable(self) -> bool:
        """Whether perturbations decay."""
        return self.rate < 0


class Objective:
    """J(ρ) = E‖f_q‖² of a query with alignment ρ, and the flow that climbs it.

    `theta` > 0: strength of the signal; `informative` ≥ 1 and `nuisance` ≥ 0: numbers of tokens. `dimension=None` is
    the limit of many tokens at the fraction informative/(informative + nuisance) (laws population-objective,
    population-slope, alignment-flow); an integer ≥ 2 is exact at this size (laws finite-objective, finite-slope,
    finite-flow; relative accuracy 1e-10 up to a million tokens and |θρ| ≤ 12). Arrays of ρ give arrays, scalars
    scalars. Raises ValueError that names the argument for ρ outside [−1, 1], θ ≤ 0, NaN and the like.
    """

    def __init__(self, theta: float, informative: int, nuisance: int, dimension: int | None = None) -> None:
        self.theta = scalar(laws.theta, theta)
        self.informative = int(scalar(laws.R, informative, name="informative"))
        self.nuisance = int(scalar(laws.N, nuisance, name="nuisance"))
        self.dimension = None if dimension is None else int(scalar(laws.d, dimension, name="dimension"))
        if self.dimension is not None and self.dimension < 2:
            raise ValueError(f"dimension must be an integer >= 2 or None (the limit of many tokens), got {dimension}")

    def __repr__(self) -> str:
        counts = f"informative={self.informative}, nuisance={self.nuisance}, dimension={self.dimension}"
        return f"Objective(theta={self.theta}, {counts})"

    # -- readings of laws -----------------------------------------------------------------------------------------

    @property
    def _parameters(self) -> dict[Any, Any]:
        if self.dimension is None:
            return {laws.theta: self.theta, laws.r: self.informative / (self.informative + self.nuisance)}
        return {laws.theta: self.theta, laws.R: self.informative, laws.N: self.nuisance, laws.d: self.dimension}

    def _read(self, expression: Any, rho: Any) -> Any:
        """An expression in ρ and the parameters, in numbers."""
        array = check(laws.rho, rho)
        values = self._parameters
        compiled = function(_with_mass(expression), [laws.rho, *values])
        return plain(np.broadcast_to(np.asarray(compiled(array, *values.values()), dtype=float), array.shape) + 0.0)

    def _law(self, limit: Any, finite: Any) -> Any:
        return (limit if self.dimension is None else finite).right

    def value(self, rho: Any) -> Any:
        """J(ρ)."""
        return self._read(self._law(laws.population_objective, laws.finite_objective), rho)

    def slope(self, rho: Any) -> Any:
        """J′(ρ)."""
        return self._read(self._law(laws.population_slope, laws.finite_slope), rho)

    def curvature(self, rho: Any) -> Any:
        """J″(ρ), from the derivative of the same expression."""
        return self._read(sp.diff(_with_mass(self._law(laws.population_slope, laws.finite_slope)), laws.rho), rho)

    def informative_mass(self, rho: Any) -> Any:
        """Mean attention mass on informative tokens: p(ρ) in the limit, E W at finite sizes."""
        return self._read(self._law(laws.informative_mass, laws.mean_mass_law), rho)

    def gradient_square(self, rho: Any, batch: int = 1) -> Any:
        """E‖g⊥‖² of the tangent stochastic gradient, averaged over `batch` draws (laws gradient-square, batch-square).

        In the limit the gradient does not fluctuate and this is (1 − ρ²) J′(ρ)².
        """
        scalar(laws.batch, batch)
        return self._read(self._gradient_expression(batch), rho)

    def _gradient_expression(self, batch: int) -> Any:
        slope = self._law(laws.population_slope, laws.finite_slope)
        expression = laws.batch_square_law.right.subs({laws.slope: slope, laws.batch: batch})
        if self.dimension is None:
            return expression.subs(laws.gradient_square, (1 - laws.rho**2) * slope**2)
        return expression.subs(laws.gradient_square, laws.gradient_square_law.right)

    # -- the flow ---------------------------------------------------------------------------------------------------

    def _field(self, expression: Any) -> ScalarField:
        """A law's right side as a field on [−1, 1], compiled once for all parameters."""
        if self.dimension is not None:
            return ScalarField.interpolated(lambda rho: self._read(expression, np.clip(rho, -1.0, 1.0)))
        written, values = _with_mass(expression), self._parameters

        def derive(order: int) -> Any:
            compiled = function(sp.diff(written, laws.rho, order), [laws.rho, *values])
            return lambda rho: compiled(rho, *values.values())

        return ScalarField(derive)

    @cached_property
    def _slope_field(self) -> ScalarField:
        return self._field(self._law(laws.population_slope, laws.finite_slope))

    @cached_property
    def _drift_field(self) -> ScalarField:
        return self._field(self._law(laws.alignment_flow, laws.finite_flow))

    def trajectory(self, rho0: float, times: Any, steps: Sequence[float] | Array | None = None, batch: int = 1) -> Any:
        """ρ at `times` ≥ 0 (any order and shape) of the flow dρ/dt = (1 − ρ²) J′(ρ) from `rho0`, to 1e-9.

        With `steps`, the flow corrected for this step sequence (law corrected-drift): the step in force at time t is
        that of the sequence, interpolated; times must not exceed the sum of the steps. `batch`: draws averaged in
        each gradient. Raises ValueError for bad input, ArithmeticError if the integrator fails.
        """
        start = scalar(laws.rho, rho0, name="rho0")
        array = check(laws.t, times, name="times")
        ends, inverse = np.unique(array, return_inverse=True)
        field = self._drift_field
        if steps is None:
            if abs(start) == 1:  # the poles rest
                return plain(np.full(array.shape, start))
            path = solve_flow(lambda rho, _: field(rho), start, ends, lambda rho, _: field(rho, 1))
            return plain(path[inverse].reshape(array.shape))
        sequence = _step_sequence(steps)
        if ends[-1] > sequence.sum() * (1 + 1e-12):
            raise ValueError(f"times must not exceed the sum of the steps {sequence.sum():.6g}, got {ends[-1]:.6g}")
        middle, pull = np.cumsum(sequence) - sequence / 2, self._pull_field(batch)

        def corrected(order: int) -> Any:
            return lambda rho, time: field(rho, order) + np.interp(time, middle, sequence) * pull(rho, order)

        return plain(solve_flow(corrected(0), start, ends, corrected(1))[inverse].reshape(array.shape))

    def _pull_field(self, batch: int) -> ScalarField:
        """What the corrected drift adds, per unit of step."""
        scalar(laws.batch, batch)
        pull = sp.diff(laws.corrected_drift_law.right, laws.eta)
        return self._field(pull.subs(laws.gradient_square, self._gradient_expression(batch)))

    def mean_path(self, rho0: float, steps: Sequence[float] | Array) -> tuple[Array, Array]:
        """Mean and variance of ρ before the first and after each of the steps, arrays (len(steps) + 1,).

        Laws mean-after-step and variance-after-step: unlike the corrected flow they hold the mean's whole first-order
        term in the step (spread of ρ against the curvature of the drift, discrete time). One draw a step; exact
        sizes only: raises ValueError with dimension=None.
        """
        start = scalar(laws.rho, rho0, name="rho0")
        if self.dimension is None:
            raise ValueError(
                "dimension must be an integer for mean_path, got None: in the limit the gradient does not fluctuate"
            )
        return stepped_moments(laws.recursion_rule(), self._recursion_fields, start, _step_sequence(steps))

    @cached_property
    def _recursion_fields(self) -> tuple[ScalarField, ...]:
        squares = (laws.gradient_square_law, laws.signal_square_law)
        return (self._drift_field, *(self._field(law.right) for law in squares))

    def time_to(self, alignment: float, rho0: float = 0.0) -> float:
        """Time at which the flow from `rho0` reaches `alignment` (law alignment-time), inf if it never does."""
        start, end = scalar(laws.rho, rho0, name="rho0"), scalar(laws.rho, alignment, name="alignment")
        if start == end:
            return 0.0
        zeros = [equilibrium.rho for equilibrium in self.equilibria()]
        blocked = any(min(start, end) <= zero <= max(start, end) for zero in zeros)
        if blocked or np.sign(self._drift_field(start)) != np.sign(end - start):
            return float("inf")
        return float(
            integrate.quad(lambda rho: 1 / self._drift_field(rho), start, end, epsabs=0, epsrel=1e-11, limit=200)[0]
        )

    # -- equilibria and basins --------------------------------------------------------------------------------------

    def equilibria(self) -> tuple[Equilibrium, ...]:
        """All equilibria of the flow by growing alignment, the poles −1 and 1 included, with their stability."""
        rates = [Equilibrium(float(sign), float(self._drift_field(float(sign), 1))) for sign in (-1, 1)]
        inside = [Equilibrium(zero, float(self._drift_field(zero, 1))) for zero in self._interior_zeros()]
        return (rates[0], *inside, rates[1])

    def basin_boundary(self) -> float | None:
        """The alignment above which a start leads to ξ; None where only ξ attracts (all starts but −ξ lead there)."""
        zeros = [equilibrium for equilibrium in self.equilibria()[1:-1] if not equilibrium.stable]
        return zeros[-1].rho if zeros else None

    def _interior_zeros(self) -> list[float]:
        return self._limit_zeros() if self.dimension is None else self._finite_zeros()

    def _limit_zeros(self) -> list[float]:
        """The one zero of the bracket, from the monotone equation for the mass there (law boundary-mass)."""
        if self.nuisance == 0:
            return []
        odds = function(laws.boundary_mass.right.subs(laws.p, 1 / (1 + sp.exp(-laws.u))), [laws.u, laws.theta])
        target = np.log(self.informative / self.nuisance)
        low = target - self.theta**2 - 10.0  # the other terms of the equation are positive
        while odds(low, self.theta) > target:
            low -= 10.0
        logit = optimize.brentq(lambda value: odds(value, self.theta) - target, low, target, xtol=1e-14, rtol=1e-14)
        rho = float(function(laws.basin_boundary.right, [laws.p, laws.theta])(1 / (1 + np.exp(-logit)), self.theta))
        return [rho] if rho > -1 else []

    def _finite_zeros(self) -> list[float]:
        """Sign changes of the slope on a grid finer than its Chebyshev series can oscillate, bracketed and refined."""
        grid = np.cos(np.pi * np.arange(1025) / 1024)[::-1]
        values = np.asarray(self._slope_field(grid))
        changes = np.flatnonzero(np.sign(values[:-1]) * np.sign(values[1:]) < 0)
        return [
            float(optimize.brentq(self._slope_field, grid[index], grid[index + 1], xtol=1e-14)) for index in changes
        ]


def critical_fraction(theta: Any) -> Any:
    """Fraction r_c of informative tokens below which −ξ attracts in the limit; 0 for θ ≤ 1 (law critical-fraction)."""
    strength = check(laws.theta, theta)
    formula = laws.critical_fraction_law.right.subs(laws.critical_mass, laws.critical_mass_law.right)
    return plain(np.where(strength > 1, function(formula, [laws.theta])(np.maximum(strength, 1.0)), 0.0))


def critical_strength(fraction: float) -> float:
    """Strength θ_c above which −ξ attracts in the limit: the inverse of `critical_fraction`, for 0 < fraction < 1."""
    target = scalar(laws.r, fraction, name="fraction")
    odds = function(sp.log(laws.critical_odds()), [laws.theta])
    goal = np.log(target / (1 - target))
    high = 2.0
    while odds(high) < goal:
        high *= 2
    return float(optimize.brentq(lambda theta: odds(theta) - goal, 1 + 1e-14, high, xtol=1e-13))


def reversed_ratio(theta: float, fraction: float) -> float:
    """Ratio d/L above which −ξ attracts at many tokens and dimensions (law reversed-ratio); 0 where it always does."""
    strength, part = scalar(laws.theta, theta), scalar(laws.r, fraction, name="fraction")
    mass = laws.informative_mass.right.subs(laws.rho, -1)
    value = function(laws.reversed_ratio_law.right.subs(laws.p, mass), [laws.theta, laws.r])(strength, part)
    return max(0.0, float(value))


def _with_mass(expression: Any) -> Any:
    return expression.subs(laws.p, laws.informative_mass.right)


def _step_sequence(steps: Sequence[float] | Array) -> Array:
    sequence: Array = real_array("steps", steps, "steps of the ascent, in order")
    if sequence.ndim != 1 or len(sequence) == 0 or not (sequence > 0).all():
        raise ValueError(f"steps must be a non-empty one-dimensional sequence of numbers > 0, got {steps!r}")
    return sequence
