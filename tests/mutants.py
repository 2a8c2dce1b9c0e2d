"""Wrong derivations, made on purpose: every coefficient, sign and exponent of a line changed, one at a time.

A mutant is dead if what the changed line and its children claim is contradicted at some point.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import sympy as sp
from sympy.polys.polyerrors import BasePolynomialError

from derivations.core import DerivedLaw
from tests.evidence import Pair, disagreement, points

FRACTION = sp.Rational(1, 20)


@dataclass(frozen=True)
class Mutant:
    """A law, the place of one of its lines, and the wrong equation in that place."""

    law: DerivedLaw
    place: int
    equation: Any

    def __str__(self) -> str:
        return f"{self.law.id}, step {self.place + 1}: {self.equation}"


def changed(expression: Any) -> Iterator[Any]:
    """The expression with one number off by 5 % (0: 1/20; a whole exponent: by 1), or one term of the other sign."""
    if isinstance(expression, sp.Symbol):
        return
    if expression.is_Rational:
        yield expression * (1 + FRACTION) if expression != 0 else FRACTION
        return
    if isinstance(expression, sp.NumberSymbol):
        yield expression * (1 + FRACTION)
        return
    for place, part in enumerate(expression.args):
        others = list(expression.args)
        wrong = list(changed(part)) if isinstance(part, sp.Basic) else []
        if expression.is_Pow and place == 1 and part.is_Integer:
            wrong = [part + 1]
        if expression.is_Add:
            wrong.append(-part)
        for one in wrong:
            others[place] = one
            yield expression.func(*others)


def sides(equation: Any) -> Iterator[Any]:
    """The equation with one of its sides changed, or a bare side off by 5 %."""
    left, right = equation.args
    yield equation.func(left, right * (1 + FRACTION) if right != 0 else FRACTION, evaluate=False)
    for one in changed(right):
        yield equation.func(left, one, evaluate=False)
    if not left.is_Symbol:
        for one in changed(left):
            yield equation.func(one, right, evaluate=False)


def mutants(law: DerivedLaw) -> Iterator[Mutant]:
    """All mutants of the lines that an author wrote."""
    for place, line in enumerate(law.lines):
        if line.typed:
            for equation in sides(line.equation):
                if equation != line.equation:
                    yield Mutant(law, place, equation)


def misread(law: DerivedLaw) -> Iterator[Mutant]:
    """The law with the statement of a law that it uses off by 5 %."""
    for place, line in enumerate(law.lines):
        if line.kind == "use":
            yield Mutant(law, place, next(sides(line.equation)))


def survives(mutant: Mutant) -> bool:
    """Whether nothing that the lines claim is contradicted."""
    try:
        for reason, left, right in mutant.law.mutated(mutant.place, mutant.equation):
            pair = Pair(reason, sp.sympify(left), sp.sympify(right))
            if any(disagreement(pair, point, prove=False) for point in points(mutant.law, pair, 2)):
                return False
    except (ValueError, TypeError, IndexError, ZeroDivisionError, NotImplementedError, BasePolynomialError):
        return False  # a line that can no longer be computed is noticed as well
    return True
