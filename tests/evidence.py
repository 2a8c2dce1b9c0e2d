"""How a law's own evidence is judged: its equations and checks at exact test points, in exact arithmetic if algebraic.

An algebraic number must be proved to be 0 in its number field; any other must be below 1e-40 at 50 digits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import mpmath
import sympy as sp
from sympy.concrete.expr_with_limits import ExprWithLimits
from sympy.core.relational import Relational
from sympy.logic.boolalg import Boolean

from derivations.core import Law, Quantity

POINTS = 5
LEAST = 2  # points that must satisfy the law's condition
TRIES = 60
DIGITS = 50
SMALL = mpmath.mpf("1e-40")
_ALGEBRAIC_FUNCTIONS = (
    *(sp.Abs, sp.Max, sp.Min, sp.Piecewise, sp.re, sp.im, sp.conjugate, sp.sign),
    *(sp.binomial, sp.factorial, sp.harmonic, sp.KroneckerDelta),
)

Point = dict[Quantity, Any]


@dataclass(frozen=True)
class Pair:
    """Two sides that must agree wherever the law holds."""

    reason: str
    left: Any
    right: Any

    @property
    def symbols(self) -> set[Any]:
        return set(self.left.free_symbols | self.right.free_symbols)

    @property
    def is_number(self) -> bool:
        """Whether the sides are numbers at a point, neither matrices nor statements nor sums to be carried out."""
        return all(
            isinstance(side, sp.Expr) and not side.has(ExprWithLimits, sp.Derivative, sp.Limit)
            for side in (self.left, self.right)
        )

    @cached_property
    def may_be_algebraic(self) -> bool:
        """Whether no function or constant on either side leads out of the algebraic numbers."""
        difference = self.left - self.right
        outside = {f.func for f in difference.atoms(sp.Function)} - set(_ALGEBRAIC_FUNCTIONS)
        return not outside and not difference.atoms(sp.NumberSymbol)

    @cached_property
    def _compiled(self) -> Any:
        names = sorted(self.symbols, key=lambda symbol: (symbol.name, symbol.meaning))
        try:
            return names, sp.lambdify(names, self.left - self.right, "mpmath", cse=True, dummify=True)
        except (TypeError, ValueError, KeyError, NameError):
            return names, None

    def size(self, point: Point) -> Any:
        """|left − right| with DIGITS digits, by mpmath; None if that is no finite number or mpmath lacks a function."""
        names, function = self._compiled
        if function is None:
            return None
        with mpmath.workdps(DIGITS + 10):
            try:
                found = abs(function(*(mpmath.mpmathify(point[name]._to_mpmath(mpmath.mp.prec)) for name in names)))
            except (KeyError, TypeError, NameError, AttributeError, ZeroDivisionError, ValueError):
                return None
            return found if mpmath.isfinite(found) else None


def pairs(law: Law) -> Iterator[Pair]:
    """Everything that speaks for the law: its equations with the statement put back, then its checks."""
    for number, equation in enumerate(law.solves() if law.solves else (), start=1):
        if isinstance(equation, sp.Equality):
            left, right = (side.subs(law.left, law.right) for side in equation.args)
        else:
            left, right = equation.subs(law.left, law.right), sp.true
        yield Pair(f"equation {number} with the statement put back", left, right)
    for reason, left, right in law.checks() if law.checks else ():
        yield Pair(reason, sp.sympify(left), sp.sympify(right))


def points(law: Law, pair: Pair, count: int = POINTS) -> list[Point]:
    """Exact points from the typical ranges at which the law's condition is not false.

    Raises AssertionError if a symbol is no quantity, or if fewer than LEAST points meet the condition.
    """
    condition = law.where() if law.where else sp.true
    plain = sorted(str(symbol) for symbol in pair.symbols if not isinstance(symbol, Quantity))
    assert not plain, f"{law.id}, {pair.reason}: {plain} are no quantities, so no test point can be drawn for them"
    bound = {symbol for symbol in condition.free_symbols - pair.symbols if getattr(symbol, "typical", ())}
    symbols = sorted(pair.symbols | bound, key=lambda symbol: (symbol.name, symbol.meaning))
    rows = zip(*(symbol.draws(TRIES) for symbol in symbols), strict=True) if symbols else iter([()])
    found = []
    for row in rows:
        point = dict(zip(symbols, row, strict=True))
        if condition.subs(point) != sp.false and point not in found:
            found.append(point)
        if len(found) == count:
            break
    least = min(LEAST, count) if symbols else 1
    assert len(found) >= least, f"{law.id}: its condition {condition} holds at {len(found)} of {TRIES} points only"
    return found


def disagreement(pair: Pair, point: Point, *, prove: bool = True) -> str:
    """Empty if both sides agree at the point, else what was found there. `prove`: an algebraic 0 must be exactly 0."""
    if pair.is_number:
        size = pair.size(point)
        if size is not None and size >= SMALL:
            return f"differs by {mpmath.nstr(size, 6)}"
        if size is not None and not (prove and pair.may_be_algebraic):
            return ""
    left, right = (side.subs(point).doit() for side in (pair.left, pair.right))
    if left == right:
        return ""
    if isinstance(left, Boolean) or isinstance(right, Boolean):
        return "" if _truth(left) == _truth(right) else f"{left} against {right}"
    if isinstance(left, sp.MatrixBase):
        entries = [_not_zero(entry, prove) for entry in (left - right)]
        return "; ".join(entry for entry in entries if entry)
    return _not_zero(left - right, prove)


def _truth(value: Any) -> bool:
    """The truth of a statement about numbers, decided at 50 digits where SymPy leaves it open."""
    if value in (sp.true, sp.false):
        return bool(value)
    decided = value.replace(
        lambda part: isinstance(part, Relational), lambda part: part.func(*(side.evalf(DIGITS) for side in part.args))
    )
    assert decided in (sp.true, sp.false), f"{value} is neither true nor false"
    return bool(decided)


def _not_zero(value: Any, prove: bool) -> str:
    """Empty if the number is 0, else its size or why that cannot be said."""
    if value.free_symbols or value.has(sp.nan, sp.zoo, sp.oo, -sp.oo):
        return f"{value} is no number"
    size = sp.Abs(value.evalf(DIGITS, maxn=400))
    if not size.is_Float and size != 0:
        return f"{value} has no numerical value"
    if not size < sp.Float(SMALL):
        return f"differs by {sp.N(size, 6)}"
    return "" if not prove or not is_algebraic(value) or is_zero(value) else f"{value} is small but not proved to be 0"


def is_algebraic(value: Any) -> bool:
    """Whether the number is written with rationals, the imaginary unit and rational powers alone."""
    return all(
        part.is_Rational or part is sp.I or part.is_Add or part.is_Mul or (part.is_Pow and part.exp.is_Rational)
        for part in sp.preorder_traversal(value)
    )


def is_zero(value: Any) -> bool:
    """Whether an algebraic number is 0, decided in its number field."""
    if sp.expand(value) == 0 or sp.radsimp(sp.expand(value)) == 0:
        return True
    unknown = sp.Dummy("unknown")
    return bool(sp.minimal_polynomial(value, unknown) == unknown)


def altered(statement: Any, fraction: Any) -> Iterator[Any]:
    """The statement with one additive term of its right side off by a fraction, once for each term."""
    relations = sorted(statement.atoms(Relational), key=sp.default_sort_key)
    relation = statement if isinstance(statement, Relational) else relations[0]
    on_left = relation.rhs == 0
    terms = sp.Add.make_args(relation.lhs if on_left else relation.rhs)
    for index in range(len(terms)):
        side = sp.Add(*(term * (1 + fraction) if place == index else term for place, term in enumerate(terms)))
        sides = (side, relation.rhs) if on_left else (relation.lhs, side)
        changed = relation.func(*sides, evaluate=False)
        yield changed if statement == relation else statement.xreplace({relation: changed})
