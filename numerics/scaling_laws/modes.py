"""The target's modes: how many exceed a cut, sums of their powers above it, and the energy below it.

A power law has infinitely many modes; its sums are closed (Euler–Maclaurin above, Hurwitz's zeta function below), so
that any number of samples costs the same and nothing is truncated. A list of modes is sorted and summed once.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from scipy.special import bernoulli, zeta

from numerics.validate import real_array

Array = np.ndarray[Any, Any]

HEAD = 64  # modes that are summed one by one, before Euler–Maclaurin takes over
ORDER = 10  # of its corrections: at HEAD modes the last is below 1e-20
_CORRECTIONS = [float(bernoulli(2 * j)[-1]) / math.factorial(2 * j) for j in range(1, ORDER + 1)]


class Modes(Protocol):
    """What the spiked limit needs to know of a target with modes σ_i; `cut` > 0 may be an array."""

    square: float  # Σ σ²
    largest: float
    number: float  # of modes, maybe infinite

    def count(self, cut: Array) -> Array:
        """Number of modes above the cut."""

    def power_sum(self, count: Array, cut: Array, power: int) -> Array:
        """Σ (σ/cut)^power over the first `count` modes, the large ones."""

    def tail(self, count: Array) -> Array:
        """Σ σ² over all but the first `count` modes."""

    def strength(self, mode: Array) -> Array:
        """σ of a mode by its number 1, 2, …"""


class PowerLaw:
    """σ_i = σ_1 i^(−γ), i = 1, 2, …, with Σ σ² = 1."""

    square = 1.0
    number = np.inf

    def __init__(self, gamma: float) -> None:
        self.gamma = gamma
        self._total = float(zeta(2 * gamma, 1.0))
        self.largest = self._total**-0.5

    def count(self, cut: Array) -> Array:
        """Number of modes above the cut."""
        return np.asarray(np.maximum(np.ceil((self.largest / np.asarray(cut)) ** (1 / self.gamma)) - 1, 0.0))

    def power_sum(self, count: Array, cut: Array, power: int) -> Array:
        """Σ (σ/cut)^power over the first `count` modes."""
        if power == 0:
            return np.asarray(count, dtype=float)
        last = self.strength(np.maximum(count, 1.0)) / cut
        return np.asarray(last**power * relative_power_sum(count, -self.gamma * power))

    def tail(self, count: Array) -> Array:
        """Σ σ² over all but the first `count` modes."""
        return np.asarray(zeta(2 * self.gamma, np.asarray(count) + 1.0) / self._total)

    def strength(self, mode: Array) -> Array:
        """σ of a mode by its number."""
        return np.asarray(self.largest * np.asarray(mode, dtype=float) ** -self.gamma)


class ModeList:
    """Finitely many modes σ > 0, in any order."""

    def __init__(self, strengths: Array) -> None:
        descending = np.sort(strengths[strengths > 0])[::-1]
        self.number, self.largest = float(descending.size), float(descending[0])
        self._ascending = np.ascontiguousarray(descending[::-1])
        relative = descending / self.largest
        self._above = {power: _summed(relative ** float(power)) for power in (-2, -1, 1, 2)}
        self._below = self.largest**2 * _summed(relative[::-1] ** 2)[::-1]
        self.square = float(self._below[0])

    def count(self, cut: Array) -> Array:
        """Number of modes above the cut."""
        return self.number - np.searchsorted(self._ascending, cut, side="right")

    def power_sum(self, count: Array, cut: Array, power: int) -> Array:
        """Σ (σ/cut)^power over the first `count` modes."""
        if power == 0:
            return np.asarray(count, dtype=float)
        return np.asarray((self.largest / cut) ** power * self._above[power][np.asarray(count, dtype=int)])

    def tail(self, count: Array) -> Array:
        """Σ σ² over all but the first `count` modes."""
        return np.asarray(self._below[np.asarray(count, dtype=int)])

    def strength(self, mode: Array) -> Array:
        """σ of a mode by its number. Raises ValueError for a number beyond the list."""
        if np.max(mode) > self.number:
            raise ValueError(
                f"mode must be at most {self.number:.0f}, the number of modes given, got {np.max(mode):.0f}"
            )
        return np.asarray(self._ascending[(self.number - np.asarray(mode)).astype(int)])


def _summed(values: Array) -> Array:
    """Sums over the first 0, 1, … values, with the digits of extended precision."""
    return np.concatenate([[0.0], np.cumsum(values, dtype=np.longdouble).astype(float)])


def relative_power_sum(count: Array, exponent: float) -> Array:
    """Σ (i/count)^exponent over i = 1 … count; a count of 0 gives 0.

    Head by head, then Euler–Maclaurin between the end of the head and the count; relative error about 1e-15.
    """
    head, sums = _head(exponent)
    number = np.asarray(count, dtype=float)
    few = np.minimum(number, head)
    total = sums[few.astype(int)] * (np.maximum(few, 1.0) / np.maximum(number, 1.0)) ** exponent
    rest = np.maximum(number, head)  # where the count is in the head, all that follows is 0
    ratio = np.log(head / rest)
    growth = (exponent + 1) * ratio
    integral = -np.expm1(growth) / (exponent + 1) if exponent != -1 else -ratio
    edge = np.exp(exponent * ratio)
    more = rest * integral + (1 - edge) / 2
    factor, inverse, start = exponent, 1 / rest, 1 / head
    for order in range(1, ORDER + 1):
        correction = _CORRECTIONS[order - 1] * factor
        more = more + correction * (inverse ** (2 * order - 1) - edge * start ** (2 * order - 1))
        factor *= (exponent - 2 * order + 1) * (exponent - 2 * order)
    return np.asarray(total + more)


@lru_cache(maxsize=256)
def _head(exponent: float) -> tuple[float, Array]:
    """How many terms the head has, and the sums of (i/n)^exponent over i ≤ n for n = 0 … head."""
    head = HEAD + 2 * int(abs(exponent))
    index = np.arange(1, head + 1, dtype=np.longdouble)
    logs = exponent * np.log(index)
    sums = np.array([0.0, *(float(np.sum(np.exp(logs[:n] - logs[n - 1]))) for n in range(1, head + 1))])
    return float(head), sums


def modes_of(gamma: Any) -> Modes:
    """The modes that `gamma` stands for: an exponent > 1/2, or a list of strengths σ ≥ 0 (not all 0).

    Raises ValueError otherwise.
    """
    array = real_array("gamma", gamma, "exponent of a power law, or the list of the target's modes σ")
    if array.ndim == 0:
        if array <= 0.5:
            raise ValueError(
                f"gamma must be > 1/2, got {float(array):.12g}: the target's energy Σ i^(−2γ) would be infinite"
            )
        return _power_law(float(array))
    if array.ndim > 1 or not array.size or (array < 0).any() or not (array > 0).any():
        raise ValueError(
            "gamma must be an exponent > 1/2 or a list of modes σ ≥ 0 that are not all 0, "
            f"got an array of shape {array.shape}" + (f" with {array.min():.6g}" if array.size else "")
        )
    return ModeList(array)


@lru_cache(maxsize=64)
def _power_law(gamma: float) -> PowerLaw:
    return PowerLaw(gamma)
