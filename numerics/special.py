"""Numbers for the symbolic nodes that are no elementary functions: score means, solutions of flows, stepped means.

A node names its implementation here and says which of its arguments are expressions; `bind` swaps such nodes for
calls that ordinary compiled code can make. Quadratures state their error; nothing here restates a formula.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import sympy as sp
from scipy import integrate

from derivations._weighted_sums import Factor, coincidence_sum
from numerics.compile import function

Array = np.ndarray[Any, Any]


def bind(expression: Any) -> tuple[Any, dict[str, Callable[..., Any]]]:
    """Replace every node that names an implementation by a call, and return the namespace of these calls.

    The nodes are replaced from the outside in; their expression arguments are bound in turn. An expression without
    such nodes comes back unchanged, with an empty namespace.
    """
    namespace: dict[str, Callable[..., Any]] = {}

    def swap(node: Any) -> Any:
        static, arguments = node.numeric()
        name = f"special_{len(namespace)}"
        module, function = node.implementation.split(":")
        implementation = getattr(importlib.import_module(module), function)
        namespace[name] = lambda *values: implementation(static, *values)
        return sp.Function(name)(*map(replace, arguments))

    def replace(part: Any) -> Any:
        if hasattr(part, "implementation"):
            return swap(part)
        if not part.args:
            return part
        return part.func(*map(replace, part.args))

    return replace(expression), namespace


# -- score means ----------------------------------------------------------------------------------------------

_SCORE_STEP, _LOG_STEP = 0.25, 0.2  # trapezoidal steps in the score and in log s: analytic in strips of half-width π/2
_SCORES = np.arange(-13.0, 17.0, _SCORE_STEP)
_NORMAL = np.exp(-(_SCORES**2) / 2) / math.sqrt(2 * math.pi) * _SCORE_STEP


class _Tokens:
    """One kind of token under the tilt e^{−s e^u}: log-Laplace transform and tilted moments, on a grid of s."""

    def __init__(self, s: Array, shift: Array) -> None:
        self.scores = shift[:, None, None] + _SCORES
        exponent = s[:, None] * np.exp(self.scores)
        lowest = exponent[..., :1]  # factored out, so that no tilt underflows entirely
        self.tilt = np.exp(lowest - exponent) * _NORMAL
        self.norm = self.tilt.sum(axis=-1)
        direct = np.log(self.norm) - lowest[..., 0]
        near = np.log1p(np.maximum(np.expm1(-exponent) @ _NORMAL, -0.9))
        self.log_laplace = np.where(direct < -0.5, direct, near)  # `near` keeps relative accuracy as s → 0
        self._moments: dict[tuple[int, int], Array] = {}

    def moment(self, score: int, weight: int) -> Array:
        key = (score, weight)
        if key not in self._moments:
            powers = self.scores[:, 0] ** score * np.exp(weight * self.scores[:, 0])
            self._moments[key] = np.einsum("psz,pz->ps", self.tilt, powers) / self.norm
        return self._moments[key]


class _Draws:
    """The tilted law of L independent tokens on a grid in log s, for several shifts at once."""

    def __init__(self, shift: Array, informative: int, nuisance: int, log_step: float = _LOG_STEP) -> None:
        reach = float(np.abs(shift).max())
        # the integrand is at least of first order in s: e^{−40} is lost below, and nothing above
        low, high = -math.log(informative + nuisance) - reach - 40.0, 12.0 + max(0.0, -float(shift.min()))
        log_s = np.arange(low, high, log_step)
        self.s, self.counts = np.exp(log_s), (informative, nuisance)
        self.signal, self.noise = _Tokens(self.s, shift), _Tokens(self.s, np.zeros(1))
        joint = informative * self.signal.log_laplace
        if nuisance:
            joint = joint + nuisance * self.noise.log_laplace
        self.weight = np.exp(joint) * log_step

    def mean(self, factors: tuple[Factor, ...]) -> Array:
        """E of a product of weight sums, one number a shift."""
        degree = sum(factor[0] for factor in factors)
        tilted = coincidence_sum(factors, self.signal.moment, self.noise.moment, *self.counts)
        return np.asarray((self.weight * tilted * self.s**degree).sum(axis=-1) / math.factorial(degree - 1))


@lru_cache(maxsize=12)  # one law's score means at some hundred shifts, about 60 MB
def _draws(shift: bytes, informative: int, nuisance: int) -> _Draws:
    return _Draws(np.frombuffer(shift), informative, nuisance)


_POINTS = 16  # shifts worked on at a time: 16 × 300 × 120 numbers stay below 5 MB


def score_mean(terms: Sequence[tuple[Factor, ...]], *values: Any) -> Any:
    """Σ coefficient · E[product of weight sums], `values` being the coefficients, then shift, informative, nuisance.

    Broadcasts; relative accuracy about 1e-12 for up to a million tokens and |shift| ≤ 12. Raises ValueError where a
    count is not an integer (informative ≥ 0, nuisance ≥ 0, at least one token) or the shift is not finite or beyond 50.
    """
    arrays = np.broadcast_arrays(*(np.asarray(value, dtype=float) for value in values))
    shape = arrays[0].shape
    flat = [array.ravel() for array in arrays]
    *coefficients, shift, informative, nuisance = flat
    _check_draws(shift, informative, nuisance)
    result = np.zeros(shift.shape)
    for pair in {(int(a), int(b)) for a, b in zip(informative, nuisance, strict=True)}:
        chosen = np.flatnonzero((informative == pair[0]) & (nuisance == pair[1]))
        distinct, inverse = np.unique(shift[chosen], return_inverse=True)
        means = [np.concatenate(parts) for parts in zip(*_blocks(distinct, pair, terms), strict=True)]
        for coefficient, mean in zip(coefficients, means, strict=True):
            result[chosen] += coefficient[chosen] * mean[inverse]
    return result.reshape(shape) if shape else float(result[0])


def _blocks(shifts: Array, counts: tuple[int, int], terms: Sequence[tuple[Factor, ...]]) -> list[list[Array]]:
    blocks = []
    for start in range(0, len(shifts), _POINTS):
        part = shifts[start : start + _POINTS]
        draws = _draws(part.tobytes(), *counts)
        blocks.append([draws.mean(factors) if factors else np.ones(len(part)) for factors in terms])
    return blocks


def _check_draws(shift: Array, informative: Array, nuisance: Array) -> None:
    if not (np.isfinite(shift) & (np.abs(shift) <= 50)).all():
        raise ValueError(f"shift (theta times rho) must lie in [-50, 50], got {shift}")
    for name, count in (("informative", informative), ("nuisance", nuisance)):
        if not ((count >= 0) & (count == np.floor(count))).all():
            raise ValueError(f"{name} must be an integer >= 0 (a number of tokens), got {count}")
    if not (informative + nuisance >= 1).all():
        raise ValueError("informative + nuisance must be at least 1, got no token")


# -- flows ----------------------------------------------------------------------------------------------------

_TOLERANCE = 1e-11
_DEGREES = (32, 64, 128, 256, 512)


class ScalarField:
    """A function of ρ ∈ [−1, 1] with its derivatives: `field(rho, order)`; arrays broadcast.

    `derive(order)` returns the derivative of that order as a callable; `error` is relative to the maximum (0 for
    compiled expressions).
    """

    def __init__(self, derive: Callable[[int], Callable[[Any], Any]], error: float = 0.0) -> None:
        self._derive, self._orders, self.error = derive, {}, error  # type: ignore[var-annotated]

    @classmethod
    def of_expression(cls, expression: Any, variable: Any) -> ScalarField:
        """From an expression in `variable`: compiled with its derivatives, or interpolated if it has special nodes."""
        if any(hasattr(node, "implementation") for node in sp.preorder_traversal(expression)):
            return cls.interpolated(function(expression, [variable]))
        return cls(lambda order: function(sp.diff(expression, variable, order), [variable]))

    @classmethod
    def interpolated(cls, exact: Callable[[Any], Any]) -> ScalarField:
        """From values, by Chebyshev interpolation of growing degree until the last coefficients are below 1e-12.

        Raises ArithmeticError if degree 512 is not enough (what is interpolated here is analytic in ρ).
        """
        for degree in _DEGREES:
            series = np.polynomial.Chebyshev.interpolate(exact, degree, domain=[-1, 1])
            size = np.abs(series.coef)
            error = float(size[-max(4, degree // 16) :].max() / max(size.max(), 1e-300))
            if error < 1e-12:
                return cls(series.trim(1e-15 * size.max()).deriv, error)
        raise ArithmeticError(f"Chebyshev degree {_DEGREES[-1]} leaves a relative error of {error:.1e}")

    def __call__(self, rho: Any, order: int = 0) -> Any:
        if order not in self._orders:
            self._orders[order] = self._derive(order)
        return self._orders[order](rho)


def solve_flow(field: Callable[..., Any], start: float, times: Array, slope: Callable[..., Any]) -> Array:
    """ρ at growing times ≥ 0 of dρ/dt = field(ρ, t), with its derivative `slope(ρ, t)` in ρ.

    SciPy's LSODA: it takes the Jacobian, copes with the stiffness near the poles, and needs no compilation of score
    means into another expression language. Raises ArithmeticError if the integrator gives up.
    """
    ends = np.concatenate([[0.0], times])
    if ends[-1] == 0:
        return np.full(len(times), start)
    solution = integrate.solve_ivp(
        lambda time, rho: np.atleast_1d(field(rho[0], time)),
        (0.0, float(ends[-1])),
        [start],
        method="LSODA",
        t_eval=np.unique(ends),
        jac=lambda time, rho: np.atleast_2d(slope(rho[0], time)),
        rtol=_TOLERANCE,
        atol=_TOLERANCE / 100,
    )
    if not solution.success:
        raise ArithmeticError(f"the flow from {start} could not be integrated to {ends[-1]}: {solution.message}")
    return np.asarray(np.clip(solution.y[0][np.searchsorted(solution.t, times)], -1.0, 1.0))


@lru_cache(maxsize=32)
def _field_of(rule: Any, component: int | None = None) -> ScalarField:
    (variable,) = rule.variables
    body = rule.expr if component is None else rule.expr[component]
    if body.free_symbols - {variable}:
        raise ValueError(
            f"the field must have numbers for {sorted(map(str, body.free_symbols - {variable}))}, got symbols"
        )
    return ScalarField.of_expression(body, variable)


def flow_solution(rule: Any, time: Any, start: Any) -> Any:
    """ρ(t) from a start; times and starts broadcast. Raises ValueError for a time < 0 or a start outside [−1, 1]."""
    field = _field_of(rule)
    times, starts = np.broadcast_arrays(np.asarray(time, dtype=float), np.asarray(start, dtype=float))
    if not ((times >= 0) & np.isfinite(times)).all():
        raise ValueError(f"time must be finite and >= 0, got {time}")
    if not (np.abs(starts) <= 1).all():
        raise ValueError(f"start must lie in [-1, 1], got {start}")
    result = np.empty(times.shape)
    for value in np.unique(starts):
        chosen = starts == value
        if abs(value) == 1:  # a flow on the sphere rests at its poles
            result[chosen] = value
            continue
        ends, inverse = np.unique(times[chosen], return_inverse=True)
        path = solve_flow(lambda rho, _: field(rho), float(value), ends, lambda rho, _: field(rho, 1))
        result[chosen] = path[inverse]
    return result if result.shape else float(result)


def stepped_mean(rules: Any, start: Any, step: Any, count: Any) -> Any:
    """The mean of ρ after `count` steps of size `step` (see `SteppedMean`); arguments broadcast."""
    rule, components = rules
    fields = [_field_of(components, index) for index in range(3)]
    arrays = np.broadcast_arrays(*(np.asarray(value, dtype=float) for value in (start, step, count)))
    cases = np.stack([array.ravel() for array in arrays], axis=1)
    distinct, inverse = np.unique(cases, axis=0, return_inverse=True)
    ends = [stepped_moments(rule, fields, case[0], np.full(round(case[2]), case[1]))[0][-1] for case in distinct]
    result = np.array(ends)[inverse.reshape(-1)].reshape(arrays[0].shape)
    return result if result.shape else float(result)


def stepped_moments(rule: Any, fields: Sequence[ScalarField], start: float, steps: Array) -> tuple[Array, Array]:
    """Mean and variance of ρ before the first and after each of the steps: two arrays (len(steps) + 1,).

    `fields`: drift, squared gradient, squared component along the signal.
    """
    advance = function(rule.expr, rule.variables)
    drift, square, toward = fields
    means, variances = np.empty(len(steps) + 1), np.empty(len(steps) + 1)
    means[0], variances[0] = start, 0.0
    for index, step in enumerate(steps):
        rho = min(1.0, max(-1.0, means[index]))
        values = (drift(rho), drift(rho, 1), drift(rho, 2), square(rho), toward(rho))
        means[index + 1], variances[index + 1] = advance(means[index], variances[index], step, *values)
    return means, variances
