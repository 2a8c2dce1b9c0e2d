"""From a claim and its draws to residuals: the statement is compiled once, with measured values put in.

Each symbol stands for, in this order, what the claim `reads` for it, its own `definition`, the column of the draws
of its name, or the experiment's parameter. Nothing is retyped: a rival is another statement read in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy as sp
from numpy.typing import NDArray
from sympy.core.function import AppliedUndef

from derivations.core import Average, Claim, Law
from numerics.compile import function
from verify.rewrite import distinct_nodes, free_symbols, has_type, replaced, sums_done
from verify.store import Columns

Array = NDArray[np.float64]
Values = NDArray[Any]

_RUNNING = sp.Symbol("running_symbol", real=True)  # stands for the value of the running symbol in compiled code
_ROUNDING = 1e-9  # imaginary part that a real formula may show through complex roots, as a fraction of its modulus


class MeasureError(ValueError):
    """A claim cannot be evaluated on its draws; the message names the claim and the symbol or the values."""


@dataclass(frozen=True)
class Point:
    """One test of a claim: the value of its running symbol, and the real or imaginary part of the residual."""

    label: str
    value: Any = None
    component: int | None = None
    imaginary: bool = False


def exact(value: Any) -> Any:
    """A number or expression of a chapter as a SymPy object. Raises TypeError for text, which is never evaluated."""
    return sp.Integer(0) + value


def points_of(claim: Claim) -> tuple[Point, ...]:
    """The tests of a claim, known without any draw: a non-real value of the running symbol makes two."""
    if claim.points is None:
        return (Point(""),)
    symbol, values = claim.points
    if not values:
        raise MeasureError(f"claim {claim.id}: points of {symbol} must have at least one value, got none")
    points = []
    for index, value in enumerate(map(exact, values)):
        label = f"{symbol.name} = {value}"
        if value.is_real is False:
            points += [
                Point(f"{label}, real part", value, index),
                Point(f"{label}, imaginary part", value, index, True),
            ]
        else:
            points.append(Point(label, value, index))
    return tuple(points)


@dataclass(frozen=True)
class Sides:
    """A statement on the draws of one size: both sides, and the residual whose sign the relation asks for."""

    left: Array
    right: Array
    residual: Array


# -- variants of a claim --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Variant:
    """The claim's statement or one of its rivals: what is stated, what is substituted, and what is read."""

    name: str
    statement: Any
    given: tuple[Any, ...]
    reads: Mapping[Any, Any]


def _variants(claim: Claim) -> tuple[_Variant, ...]:
    """The claim itself, then its rivals: an equation replaces the statement, a tuple `given`, a mapping `reads`."""
    variants = [_Variant("", claim.law.statement, claim.given, claim.reads)]
    for name, rival in claim.rivals().items():
        own = variants[0]
        if isinstance(rival, Law):
            rival = rival.statement
        if isinstance(rival, tuple):
            variants.append(_Variant(name, own.statement, rival, own.reads))
        elif isinstance(rival, Mapping):
            variants.append(_Variant(name, own.statement, own.given, rival))
        elif isinstance(rival, sp.core.relational.Relational):
            variants.append(_Variant(name, rival, own.given, own.reads))
        else:
            raise MeasureError(
                f"claim {claim.id}, rival {name!r} must be an equation, a tuple of given laws or a mapping of reads, "
                f"got {type(rival).__name__}"
            )
    return tuple(variants)


def _sides(claim: Claim, variant: _Variant) -> tuple[Any, Any, int]:
    """Left and right side with the given laws put in, and the sign of the residual `sign (left − right)`."""
    statement = variant.statement
    if not isinstance(statement, sp.core.relational.Relational):
        raise MeasureError(f"claim {claim.id}: the statement must be an equation or an inequality, got {statement}")
    left, right = statement.lhs, statement.rhs
    for given in variant.given:
        equation = given.statement if isinstance(given, Law) else given
        left, right = (side.subs(equation.lhs, equation.rhs) for side in (left, right))
    inequality = isinstance(statement, sp.Gt | sp.Ge | sp.Lt | sp.Le)
    if inequality != (claim.hypothesis.kind == "order"):
        raise MeasureError(
            f"claim {claim.id}, {variant.name or 'statement'}: kind {claim.hypothesis.kind} cannot judge {statement}; "
            "an order needs an inequality, every other kind an equation"
        )
    return left, right, -1 if isinstance(statement, sp.Lt | sp.Le) else 1


# -- reading symbols ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Column:
    """A symbol of compiled code that stands for a column of the draws, or for one component of it."""

    name: str
    component: int | None = None

    def values(self, columns: Columns) -> Any:
        column = columns[self.name]
        return column if self.component is None else column[:, self.component]


class _Expression:
    """A resolved expression: symbols for columns and for averages, compiled on first use."""

    def __init__(self, expression: Any, columns: Mapping[Any, _Column], averages: Mapping[Any, _Expression]) -> None:
        used = sorted(free_symbols(expression), key=lambda symbol: symbol.name)
        self.columns = {symbol: columns[symbol] for symbol in used if symbol in columns}
        self.averages = {symbol: averages[symbol] for symbol in used if symbol in averages}
        self._function: Callable[..., Any] = function(expression, [*self.columns, *self.averages])

    def evaluate(self, columns: Columns, count: int) -> Values:
        """One value per replicate."""
        arguments = [self.columns[symbol].values(columns) for symbol in self.columns]
        arguments += [self.averages[symbol].average(columns, count) for symbol in self.averages]
        with np.errstate(all="ignore"):  # whatever is not finite is an error of its own, with the values that gave it
            return np.broadcast_to(np.asarray(self._function(*arguments)), (count,))

    def average(self, columns: Columns, count: int) -> Values:
        """The mean over the entries of the vector columns, for each replicate."""
        inner = [averaged.average(columns, count) for averaged in self.averages.values()]
        outer = [column.values(columns) for column in self.columns.values()]
        if any(isinstance(values, list) for values in outer):
            rows = [self._row([values[k] for values in outer], [values[k] for values in inner]) for k in range(count)]
            return np.array(rows)
        spread = [values if np.ndim(values) > 1 else values[:, None] for values in outer]
        with np.errstate(all="ignore"):
            values = np.asarray(self._function(*spread, *(averaged[:, None] for averaged in inner)))
        return np.broadcast_to(values.mean(axis=-1) if values.ndim > 1 else values, (count,))

    def _row(self, outer: Sequence[Any], inner: Sequence[Any]) -> Any:
        with np.errstate(all="ignore"):
            return np.mean(self._function(*outer, *inner))

    def scalars(self, columns: Columns, replicate: int) -> dict[str, Any]:
        """The numbers that one replicate fed in, for an error message."""
        found: dict[str, Any] = {}
        for column in self.columns.values():
            value = column.values(columns)[replicate]
            label = column.name if column.component is None else f"{column.name}[{column.component}]"
            found[label] = float(value) if np.ndim(value) == 0 else f"{len(value)} values"
        for averaged in self.averages.values():
            found |= averaged.scalars(columns, replicate)
        return found


class _Reader:
    """Replaces the symbols of a statement by columns, parameters and averages.

    Without a point the running symbol of the claim stays an argument of the compiled code.
    """

    def __init__(self, claim: Claim, reads: Mapping[Any, Any], point: Point | None, columns: Columns) -> None:
        self.claim, self.reads, self.point, self.columns = claim, reads, point, columns
        self.parameters = {quantity.name: exact(value) for quantity, value in claim.experiment.parameters.items()}
        self.symbols: dict[Any, _Column] = {}
        self.averages: dict[Any, _Expression] = {}

    def compile(self, side: Any) -> _Expression:
        expression = sums_done(self._resolve(self._at_point(side), frozenset(), inside=False))
        if any(node in (sp.nan, sp.zoo, sp.oo) for node in distinct_nodes(expression) if node.is_Atom):
            raise MeasureError(
                f"claim {self.claim.id}{self._where()}: {side} is {expression} at the experiment's parameters"
            )
        unknown = sorted({str(node.func) for node in distinct_nodes(expression) if isinstance(node, AppliedUndef)})
        if unknown:
            raise MeasureError(f"claim {self.claim.id}: no draw measures the function {', '.join(unknown)}")
        return _Expression(expression, self.symbols, self.averages)

    def _where(self) -> str:
        return f" at {self.point.label}" if self.point and self.point.label else ""

    def _at_point(self, expression: Any) -> Any:
        if self.claim.points is None or self.point is None:
            return expression
        return expression.subs(self.claim.points[0], self.point.value)

    def _resolve(self, expression: Any, active: frozenset[Any], inside: bool) -> Any:
        """The expression in column symbols; `active` holds the symbols that are being read (no circles)."""
        averages = [node for node in distinct_nodes(expression, Average) if isinstance(node, Average)]
        expression = replaced(expression, {node: self._average(node, active) for node in averages})
        symbols = sorted(free_symbols(expression) - set(self.averages), key=lambda symbol: symbol.name)
        return replaced(expression, {symbol: self._read(symbol, active, inside) for symbol in symbols})

    def _average(self, node: Any, active: frozenset[Any]) -> Any:
        inner = sums_done(self._resolve(node.args[0], active, inside=True))
        symbol = sp.Dummy(f"average_{len(self.averages)}", real=None)
        self.averages[symbol] = _Expression(inner, self.symbols, self.averages)
        return symbol

    def _read(self, symbol: Any, active: frozenset[Any], inside: bool) -> Any:
        if self.point is None and self.claim.points and symbol == self.claim.points[0]:
            self.symbols[_RUNNING] = _Column(_RUNNING.name)
            return _RUNNING
        if symbol not in active:
            source = self.reads.get(symbol, getattr(symbol, "definition", None))
            if source is not None:
                return self._resolve(self._at_point(exact(source)), active | {symbol}, inside)
        if symbol.name in self.columns:
            return self._column(symbol.name, inside)
        if symbol.name in self.parameters:
            return self.parameters[symbol.name]
        raise MeasureError(
            f"claim {self.claim.id}: nothing stands for {symbol.name}; give it in `reads`, as the quantity's "
            f"definition, as an observable of the model (columns: {', '.join(sorted(self.columns))}) "
            f"or as a parameter ({', '.join(sorted(self.parameters))})"
        )

    def _column(self, name: str, inside: bool) -> Any:
        """A column's symbol; outside an average, a vector is read by the component of the point."""
        values, component = self.columns[name], None
        vector = isinstance(values, list) or np.ndim(values) > 1
        if vector and not inside:
            component = self._component(name, values)
        label = f"column_{name}" if component is None else f"column_{name}_{component}"
        symbol = sp.Symbol(label, real=True)
        self.symbols[symbol] = _Column(name, component)
        return symbol

    def _component(self, name: str, values: Any) -> int:
        count = len(self.claim.points[1]) if self.claim.points else 0
        length = None if isinstance(values, list) or np.ndim(values) != 2 else values.shape[1]
        if length != count or self.point is None or self.point.component is None:
            raise MeasureError(
                f"claim {self.claim.id}: {name} has {length or 'varying numbers of'} entries, the claim has {count} "
                "points; average it, or give as many points as entries (point k reads entry k)"
            )
        return self.point.component


# -- a compiled claim -----------------------------------------------------------------------------------------


class Measurement:
    """A claim compiled for the columns of its draws; `sides` evaluates a variant at a point on one size.

    `columns` are draws of any size (their names and numbers of axes are read). Raises MeasureError if a symbol has
    nothing to stand for it.
    """

    def __init__(self, claim: Claim, columns: Columns) -> None:
        self.claim = claim
        self.points = points_of(claim)
        self._columns = columns
        self._known: dict[Any, _Expression | None] = {}  # rivals share most of their sides with the statement
        variants = _variants(claim)
        self.rivals = tuple(variant.name for variant in variants[1:])
        self._variants = {variant.name: (variant, *_sides(claim, variant)) for variant in variants}
        for name in self._variants:
            for point in self.points:
                self._compiled(name, point)

    def _compiled(self, rival: str, point: Point, at_point: bool = False) -> list[_Expression]:
        """Both sides as one function of the running symbol, or (`at_point`, or where that cannot be) at the point."""
        variant, left, right, _ = self._variants[rival]
        found = []
        for side in (left, right):
            shared = None if at_point or not self._may_run(side) else self._compile(side, variant, None)
            found.append(shared or self._compile(side, variant, point))
        return [expression for expression in found if expression is not None]

    def _may_run(self, side: Any) -> bool:
        """Whether real values of the running symbol can be fed in: it is no integer, and no sum must be written out."""
        if self.claim.points is None:
            return False
        symbol, values = self.claim.points
        real = all(exact(value).is_real for value in values)
        return bool(real and not symbol.is_integer and not has_type(side, sp.Sum, sp.Product))

    def _compile(self, side: Any, variant: _Variant, point: Point | None) -> _Expression | None:
        """The compiled side; None if it cannot be compiled with the running symbol as an argument."""
        place = (side, point.value if point else _RUNNING, id(variant.reads))
        if place not in self._known:
            try:
                self._known[place] = _Reader(self.claim, variant.reads, point, self._columns).compile(side)
            except MeasureError:
                if point is not None:
                    raise
                self._known[place] = None
        return self._known[place]

    def sides(self, columns: Columns, point: Point, rival: str = "") -> Sides:
        """Both sides and the residual of the statement (or of a rival) for each replicate.

        Raises MeasureError with the values that gave it if anything is not finite, or complex where it must be real.
        """
        count = len(next(iter(columns.values())))
        sign = self._variants[rival][3]
        fed = dict(columns)
        if self.claim.points is not None and point.value.is_real:
            fed[_RUNNING.name] = np.full(count, float(point.value))
        sides = self._compiled(rival, point)
        values = [side.evaluate(fed, count) for side in sides]
        if self.claim.points is not None and not all(np.all(np.isfinite(found)) for found in values):
            # Exact substitution reaches where floats do not: sqrt(-1/3) is a complex number, sqrt(-0.333...) is none.
            sides = self._compiled(rival, point, at_point=True)
            values = [side.evaluate(fed, count) for side in sides]
        for side, found in zip(sides, values, strict=True):
            self._check_finite(side, found, columns, point, rival)
        residual = sign * (values[0] - values[1])
        scale = np.abs(values[0]) + np.abs(values[1])
        return Sides(*(self._part(value, scale, point, rival) for value in (*values, residual)))

    def _check_finite(self, side: _Expression, values: Values, columns: Columns, point: Point, rival: str) -> None:
        wrong = np.flatnonzero(~np.isfinite(values))
        if wrong.size:
            first = int(wrong[0])
            numbers = dict(self._parameters(), **side.scalars(columns, first))
            listed = ", ".join(f"{name} = {value}" for name, value in numbers.items())
            raise MeasureError(
                f"claim {self.claim.id}{_of(rival)}{_at(point)}: {values[first]} in replicate {first} "
                f"({wrong.size} of {values.size}) from {listed}"
            )

    def _parameters(self) -> dict[str, Any]:
        return {quantity.name: value for quantity, value in self.claim.experiment.parameters.items()}

    def _part(self, values: Values, scale: Array, point: Point, rival: str) -> Array:
        if not np.iscomplexobj(values):
            return np.zeros(values.shape) if point.imaginary else np.asarray(values, float)
        if point.imaginary:
            return np.asarray(values.imag, float)
        real_point = point.value is None or point.value.is_real is not False
        worst = float(np.max(np.abs(values.imag) / np.maximum(scale, 1e-300), initial=0.0))
        if real_point and worst > _ROUNDING:
            raise MeasureError(
                f"claim {self.claim.id}{_of(rival)}{_at(point)}: complex value (imaginary part {worst:.2g} of the "
                "modulus) of a statement that must be real there; choose the branch on the law"
            )
        return np.asarray(values.real, float)


def _of(rival: str) -> str:
    return f", rival {rival!r}" if rival else ""


def _at(point: Point) -> str:
    return f" at {point.label}" if point.label else ""
