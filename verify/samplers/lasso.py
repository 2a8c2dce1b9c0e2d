"""Sampler of sparse regression without penalty's weight: the interpolator of least ℓ₁ norm on a power-law signal.

It is the λ → 0⁺ end of the LASSO path, followed from its other end by the homotopy method; a dual certificate bounds
how far the result is from the optimum.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from verify.samplers import sampler

Array = NDArray[np.float64]

GAP = 1e-8  # relative duality gap above which a solution is an error rather than a draw
STEPS = 50  # segments of the path per measurement: a few per measurement are met in practice
SHOWN = 10  # leading coordinates that are reported


def basis_pursuit_solution(matrix: Array, values: Array) -> tuple[Array, float]:
    """The x of least ℓ₁ norm with A x = y for a Gaussian-like A (n × p, n <= p), and its relative duality gap.

    Follows the LASSO solution from its largest λ to 0 (Osborne, Presnell and Turlach 2000): between the λ at which a
    coordinate joins or leaves, the solution is linear. The gap is (‖x‖₁ − yᵀν)/‖x‖₁ for the dual point ν of the last
    segment, scaled to be feasible. Raises ArithmeticError if the path does not end.
    """
    count, size = matrix.shape
    rows = np.ascontiguousarray(matrix.T)  # a coordinate's column as a row: the active ones are gathered at every step
    solution, active = np.zeros(size), list[int]()
    left = -1  # the coordinate that left at the end of the last segment: its bound is met there, not ahead
    correlation = rows @ values
    level = float(np.abs(correlation).max())
    joining = int(np.argmax(np.abs(correlation)))
    for _ in range(STEPS * count):
        if joining >= 0:
            active.append(joining)
        chosen = rows[active]
        signs = np.sign(correlation[active])
        direction = scipy.linalg.cho_solve(scipy.linalg.cho_factor(chosen @ chosen.T), signs)
        dual = direction @ chosen  # the residual falls by this times the fall of λ
        leave, leaving = _first(-solution[active] / direction, level)
        joining, join = -1, level
        if len(active) < count:
            joining, join = _next_to_join(correlation, rows @ dual, active, left, level)
        step = min(leave, join, level)
        solution[active] += step * direction
        left = -1
        if step < level:
            level -= step
            if leave <= join:
                left, joining = active.pop(leaving), -1
                solution[left] = 0.0
            correlation = rows @ (values - solution[active] @ rows[active])
            continue
        bound = float(np.abs(rows @ dual).max())
        norm = float(np.abs(solution).sum())
        return solution, abs(norm - float(values @ dual) / max(1.0, bound)) / norm
    raise ArithmeticError(f"the LASSO path did not reach λ = 0 in {STEPS * count} segments (n = {count}, p = {size})")


def _first(steps: Array, level: float) -> tuple[float, int]:
    """The least positive one of the steps and its place; `level` where there is none below it."""
    ahead = np.where(steps > 1e-12 * level, steps, np.inf)
    place = int(np.argmin(ahead))
    return (float(ahead[place]), place) if ahead[place] < level else (math.inf, -1)


def _next_to_join(correlation: Array, slope: Array, active: list[int], left: int, level: float) -> tuple[int, float]:
    """The coordinate whose |correlation| meets the falling λ next, and the fall; (−1, ∞) if none does before 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        upper, lower = (level - correlation) / (1 - slope), (level + correlation) / (1 + slope)
    steps = np.minimum(*(np.where(each > 1e-12 * level, each, np.inf) for each in (upper, lower)))
    steps[active] = np.inf
    if left >= 0:
        steps[left] = _far_side(correlation[left], slope[left], level)
    step, place = _first(steps, level * (1 - 1e-12))
    return place, step


def _far_side(correlation: float, slope: float, level: float) -> float:
    """The fall of λ at which a coordinate that just left meets the bound of the other sign."""
    sign = math.copysign(1.0, correlation)
    return (level + sign * correlation) / (1 + sign * slope) if 1 + sign * slope > 0 else math.inf


@sampler("basis_pursuit")
def basis_pursuit(
    size: int, generator: np.random.Generator, parameters: dict[str, float], options: dict[str, Any]
) -> dict[str, Any]:
    """The interpolator of least ℓ₁ norm of y = A x₀ + noise, A n × p standard Gaussian, x₀_i ∝ i^(−γ), Σ x₀² = 1.

    `size` is p. Parameters: n (a whole number, 1 <= n <= p), gamma, noise (the variance of the noise of a measurement).
    Returns `excess` ‖x̂ − x₀‖², `active` (nonzero coordinates: n of them), `l1_norm`, `solution` and `signal` (the first
    min(p, 10) coordinates of x̂ and x₀), and `gap`, the relative duality gap. Raises ArithmeticError if that is not
    below 1e-8.
    """
    samples, gamma, variance = _checked(size, parameters)
    signal = np.arange(1, size + 1, dtype=float) ** -gamma
    signal /= np.linalg.norm(signal)
    matrix = generator.standard_normal((samples, size))
    noise = math.sqrt(variance) * generator.standard_normal(samples)
    solution, gap = basis_pursuit_solution(matrix, matrix @ signal + noise)
    if not gap <= GAP:
        raise ArithmeticError(f"the relative duality gap is {gap:.2g} at n = {samples}, p = {size}, above {GAP:g}")
    return {
        "excess": float(np.sum((solution - signal) ** 2)),
        "active": float(np.count_nonzero(solution)),
        "l1_norm": float(np.abs(solution).sum()),
        "solution": solution[:SHOWN],
        "signal": signal[:SHOWN],
        "gap": gap,
    }


def _checked(size: int, parameters: dict[str, float]) -> tuple[int, float, float]:
    samples, gamma, variance = parameters["n"], parameters["gamma"], parameters["noise"]
    if not (1 <= samples <= size and samples == int(samples)):
        raise ValueError(f"n must be a whole number of measurements from 1 to size = {size} (p), got {samples!r}")
    for name, value in (("gamma", gamma), ("noise", variance)):
        if not (math.isfinite(value) and value >= 0):
            raise ValueError(f"{name} must be finite and >= 0, got {value!r}")
    return int(samples), gamma, variance
