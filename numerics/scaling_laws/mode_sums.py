"""Laws with sums over the target's modes, compiled: summands are Laurent polynomials in a mode's strength.

Each power of the strength is summed once (in closed form for a power law), so that a sum over any number of modes
costs no more than its few coefficients. Which modes a sum runs over is the caller's: those above a cut, or below.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import sympy as sp

from derivations import scaling_laws as chapter
from derivations._modes import ModeSum
from numerics.compile import function
from numerics.scaling_laws.modes import Array, Modes


class Terms:
    """A summand by powers of the strength: each coefficient is a compiled function of the other symbols."""

    def __init__(self, summand: Any, strength: Any) -> None:
        numerator, denominator = sp.fraction(sp.together(sp.expand(summand)))
        lowest = sp.degree(denominator, strength)
        rest = sp.cancel(denominator / strength**lowest)
        if rest.has(strength):
            raise ValueError(f"summand must be a Laurent polynomial in {strength}, got {summand}")
        # Factored, so that 1 − η is a difference of two numbers and not of three.
        self.by_power = {
            int(power - lowest): sp.factor(coefficient / rest)
            for (power,), coefficient in sp.Poly(numerator, strength).terms()
        }
        self.symbols = tuple(sorted(set().union(*(c.free_symbols for c in self.by_power.values())), key=str))
        self._compiled = {power: function(value, self.symbols) for power, value in self.by_power.items()}

    def total(self, values: Mapping[Any, Any], modes: Modes, count: Array, cut: Array) -> Array:
        """The sum over the first `count` modes, in which the cut is the unit of strengths."""
        found: Any = 0.0
        for power, coefficient in self._compiled.items():
            weight = coefficient(*(values[symbol] for symbol in self.symbols)) * cut**power
            found = found + weight * modes.power_sum(count, cut, power)
        return np.asarray(found)


class Formula:
    """A law's right side with sums over modes, as a function of the values of its symbols."""

    def __init__(self, expression: Any) -> None:
        nodes = sorted(expression.atoms(ModeSum), key=sp.default_sort_key)
        stand_ins = [sp.Symbol(f"sum_{index}") for index in range(len(nodes))]
        plain = expression.xreplace(dict(zip(nodes, stand_ins, strict=True)))
        self.symbols = tuple(sorted(plain.free_symbols - set(stand_ins), key=str))
        self._compiled = function(plain, (*self.symbols, *stand_ins))
        self._above: list[Terms | None] = [_read(node) for node in nodes]

    def __call__(
        self, values: Mapping[Any, Any], modes: Modes | None = None, count: Any = None, cut: Any = None
    ) -> Array:
        """The value where the first `count` modes are those above the `cut`."""
        sums: list[Any] = []
        for terms in self._above:
            assert modes is not None
            sums.append(modes.tail(count) if terms is None else terms.total(values, modes, count, cut))
        return np.asarray(self._compiled(*(values[symbol] for symbol in self.symbols), *sums))


def _read(node: Any) -> Terms | None:
    """The terms of a sum over the modes above a cut; None for the sum of squares of those below."""
    summand, strength, lower, upper = node.args
    if lower == 0 and upper != sp.oo:
        if summand != strength**2:
            raise ValueError(f"below the cut only squares are summed, got {summand}")
        return None
    return Terms(summand, strength)


@lru_cache(maxsize=128)
def formula(expression: Any) -> Formula:
    """The compiled expression, kept."""
    return Formula(expression)


@lru_cache
def solved(name: str, symbol: Any) -> Formula:
    """A law of the chapter solved for one of its symbols."""
    (solution,) = sp.solve(getattr(chapter, name).statement, symbol)
    return Formula(solution)


def evaluate(
    name: str, values: Mapping[Any, Any], modes: Modes | None = None, count: Any = None, cut: Any = None
) -> Any:
    """A law of the chapter at these values, its sums taken over the modes above the cut and below."""
    return _law(name)(values, modes, count, cut)


@lru_cache
def _law(name: str) -> Formula:
    return Formula(getattr(chapter, name).right)
