"""Reading a SymPy object as LaTeX or as plain text.

Long equations are broken at top-level sums and products, by an estimate of their printed width, into `aligned` lines.
Only `amsmath` is needed to typeset the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

import sympy as sp
from sympy.concrete.expr_with_limits import ExprWithLimits
from sympy.core.relational import Relational
from sympy.printing.latex import LatexPrinter
from sympy.printing.precedence import precedence
from sympy.printing.str import StrPrinter

from derivations.core.widths import width

LINE = 440.0  # points available to one line of a display; the standalone document is 17 cm = 484 pt wide

# ---------------------------------------------------------------------------------------------------------- plain text


class _Ordered:
    """A sum starts with a positive term where it has one: `x - y`, not `-y + x`."""

    def _as_ordered_terms(self, expr: Any, order: Any = None) -> list[Any]:
        terms = list(super()._as_ordered_terms(expr, order=order))  # type: ignore[misc]
        first = next((place for place, term in enumerate(terms) if not term.could_extract_minus_sign()), 0)
        return [terms[first], *terms[:first], *terms[first + 1 :]]


class _Text(_Ordered, StrPrinter):
    """SymPy's plain form, with relations and sets in the usual infix notation."""

    def _print_Relational(self, expr: Any) -> str:
        sign = {"==": "=", "!=": "!="}.get(expr.rel_op, expr.rel_op)
        return f"{self._print(expr.lhs)} {sign} {self._print(expr.rhs)}"

    def _join(self, expr: Any, word: str) -> str:
        parts = sorted(expr.args, key=sp.default_sort_key)
        compound = (sp.And, sp.Or)
        return f" {word} ".join(
            f"({self._print(part)})" if isinstance(part, compound) else self._print(part) for part in parts
        )

    def _print_And(self, expr: Any) -> str:
        return self._join(expr, "and")

    def _print_Or(self, expr: Any) -> str:
        return self._join(expr, "or")

    def _print_Not(self, expr: Any) -> str:
        return f"not ({self._print(expr.args[0])})"

    def _print_Implies(self, expr: Any) -> str:
        return f"if {self._print(expr.args[0])} then {self._print(expr.args[1])}"

    def _print_Piecewise(self, expr: Any) -> str:
        pieces = (
            f"{self._print(value)} otherwise"
            if condition == sp.true
            else f"{self._print(value)} if {self._print(condition)}"
            for value, condition in expr.args
        )
        return "{" + "; ".join(pieces) + "}"

    def _print_Interval(self, expr: Any) -> str:
        left, right = "(" if expr.left_open else "[", ")" if expr.right_open else "]"
        return f"{left}{self._print(expr.start)}, {self._print(expr.end)}{right}"

    def _print_Range(self, expr: Any) -> str:
        shown = [self._print(value) for value in (expr if expr.size.is_finite else expr[:3])]
        return "{" + ", ".join(shown if expr.size.is_finite else [*shown, "..."]) + "}"

    def _print_Naturals(self, expr: Any) -> str:
        return "{1, 2, 3, ...}"

    def _print_Naturals0(self, expr: Any) -> str:
        return "{0, 1, 2, ...}"


def text(expression: Any) -> str:
    """The expression, relation or set on one line of plain text."""
    return str(_Text().doprint(expression))


# ------------------------------------------------------------------------------------------------------------- displays


class _Latex(_Ordered, LatexPrinter):
    """SymPy's LaTeX with the bold letters of number sets that need no package beside amsmath."""

    def _print_Reals(self, expr: Any) -> str:
        return r"\mathbf{R}"

    def _print_Complexes(self, expr: Any) -> str:
        return r"\mathbf{C}"

    def _print_Integers(self, expr: Any) -> str:
        return r"\mathbf{Z}"

    def _print_Naturals(self, expr: Any) -> str:
        return r"\mathbf{N}"

    def _print_Naturals0(self, expr: Any) -> str:
        return r"\mathbf{N}_{0}"

    def _print_Rationals(self, expr: Any) -> str:
        return r"\mathbf{Q}"

    def _print_Piecewise(self, expr: Any) -> str:
        return str(super()._print_Piecewise(expr)).replace(r" \\", r" \\[3pt] ")

    def _print_harmonic(self, expr: Any, exp: str | None = None) -> str:
        order, *exponent = expr.args
        upper = rf"^{{\left({self._print(exponent[0])}\right)}}" if exponent else ""
        return self._raised(f"H_{{{self._print(order)}}}{upper}", exp, bool(upper))

    def _print_polygamma(self, expr: Any, exp: str | None = None) -> str:
        order, argument = expr.args
        upper = "" if order == 0 else rf"^{{\left({self._print(order)}\right)}}"
        return self._raised(rf"\psi{upper}\left({self._print(argument)}\right)", exp, False)

    @staticmethod
    def _raised(body: str, exp: str | None, grouped: bool) -> str:
        if exp is None:
            return body
        return rf"\left({body}\right)^{{{exp}}}" if grouped else f"{body}^{{{exp}}}"


_PRINTER = _Latex({"inv_trig_style": "full"})
_NAMES = tuple(rf"\mathcal{{{letter}}}" for letter in "ABCDEFGHIJ")  # for repeated parts of a long formula
_WORTH_A_NAME = (70.0, 35.0)  # points; the smaller parts only where the long ones do not shorten the formula enough
_TIMES = r"\times "
_RELATIONS = {"==": "=", "!=": r"\neq", "<": "<", "<=": r"\leq", ">": ">", ">=": r"\geq"}


def latex(expression: Any) -> str:
    """The expression, relation or set as one line of LaTeX without delimiters."""
    return _latex(expression.as_immutable() if isinstance(expression, sp.MatrixBase) else expression)


@lru_cache(maxsize=4096)
def _latex(expression: Any) -> str:
    return str(_PRINTER.doprint(expression))


def display(expression: Any, line: float = LINE) -> str:
    """The expression as the body of a display: one line where it fits, else an `aligned` block.

    What cannot be broken (a matrix, a case) and is still too wide is set in a smaller size.
    """
    whole = latex(expression)
    if width(whole) <= line:
        return whole
    rows = list(_rows(expression, line))
    if len(rows) > 2 or any("aligned" in row or width(row) > line for row in rows):
        for worth in _WORTH_A_NAME:
            rows = _abbreviated(expression, line, worth) or rows
            if not any("aligned" in row for row in rows):
                break
    unbroken = len(rows) == 1 and rows[0].replace("&", "", 1) == whole
    return whole if unbroken else "\\begin{aligned}\n" + " \\\\\n".join(rows) + "\n\\end{aligned}"


def _abbreviated(expression: Any, line: float, worth: float) -> list[str]:
    """The rows with each long repeated part printed once, below: `x = A (1 + A) with A = …`. Empty if there is none.

    `worth` is the width in points from which a part gets a name. What a sum or an integral binds keeps its place.
    """
    if not isinstance(expression, Relational) or expression.has(ExprWithLimits):
        return []
    found, (left, right) = sp.cse([expression.lhs, expression.rhs], order="canonical")
    inlined: dict[Any, Any] = {}
    kept: list[tuple[Any, Any]] = []
    for symbol, part in found:
        whole = part.xreplace(inlined)
        if width(latex(whole)) < worth or len(kept) == len(_NAMES):
            inlined[symbol] = whole
        else:
            kept.append((sp.Symbol(_NAMES[len(kept)]), whole))
            inlined[symbol] = kept[-1][0]
    if not kept:
        return []
    rows = list(_rows(expression.func(left.xreplace(inlined), right.xreplace(inlined), evaluate=False), line))
    for index, (name, part) in enumerate(kept):
        first, *more = _rows(sp.Eq(name, part, evaluate=False), line - 40.0)
        rows += [rf"&\text{{{'and' if index else 'with'} }} " + first.replace("&", "", 1), *more]
    return rows


def size(body: str, line: float = LINE) -> str:
    """The LaTeX size command under which the body of a display fits the line; empty at the normal size."""
    ratio = line * 1.05 / max(width(body), 1.0)
    sizes = ((1.0, ""), (0.9, r"\small"), (0.8, r"\footnotesize"), (0.7, r"\scriptsize"))
    return next((command for least, command in sizes if ratio >= least), r"\tiny")


def _rows(expression: Any, line: float) -> Iterator[str]:
    """The rows of an aligned block, each with its alignment mark."""
    if isinstance(expression, (sp.And, sp.Or)):
        mark = r"\wedge" if isinstance(expression, sp.And) else r"\vee"
        for index, part in enumerate(sorted(expression.args, key=sp.default_sort_key)):
            lines = _lines(part, line - 40.0)
            yield f"&{mark + ' ' if index else ''}{lines[0]}"
            yield from (rf"&\quad {more}" for more in lines[1:])
    elif isinstance(expression, Relational):
        yield from _relation(expression, line)
    else:
        lines = _lines(expression, line - 10.0)
        yield f"&{lines[0]}"
        yield from (rf"&\quad {more}" for more in lines[1:])


def _relation(relation: Any, line: float) -> Iterator[str]:
    sign = _RELATIONS[relation.rel_op]
    left = latex(relation.lhs)
    if width(left) <= line / 3:
        lines = _lines(relation.rhs, line - width(left) - 25.0)
        yield f"{left} &{sign} {lines[0]}"
        yield from (rf"&\quad {more}" for more in lines[1:])
        return
    above = _lines(relation.lhs, line - 10.0)
    below = _lines(relation.rhs, line - 35.0)
    yield f"&{above[0]}"
    yield from (rf"&\quad {more}" for more in above[1:])
    yield rf"&\quad {sign} {below[0]}"
    yield from (rf"&\qquad {more}" for more in below[1:])


def _lines(expression: Any, line: float) -> list[str]:
    """The expression on as many lines as it needs. Brackets that span lines have a fixed size."""
    whole = latex(expression)
    line = max(line, 120.0)
    if width(whole) <= line:
        return [whole]
    if isinstance(expression, Relational):
        left, sign = _lines(expression.lhs, line), _RELATIONS[expression.rel_op]
        right = _lines(expression.rhs, line - 15.0)
        return [*left, f"{sign} {right[0]}", *right[1:]]
    if isinstance(expression, sp.Add):
        return _fill([row for term in _terms(expression) for row in term(line - 12.0)], line)
    if isinstance(expression, sp.Mul):
        return _product(expression, line)
    if isinstance(expression, (sp.Pow, sp.exp)):
        return _power(expression, line)
    if isinstance(expression, (sp.Sum, sp.Product, sp.Integral)):
        return _operator(expression, line)
    if isinstance(expression, sp.Piecewise):
        return [_cases(expression, line)]
    if isinstance(expression, sp.Function):
        return _application(expression, line)
    return [whole]


def _terms(expression: Any) -> Iterator[Any]:
    """The terms in the printer's order, each as a function from a line's width to rows that begin with the sign."""
    for index, term in enumerate(_PRINTER._as_ordered_terms(expression)):
        negative = term.could_extract_minus_sign()
        sign = "-" if negative else ("+" if index else "")

        def rows(line: float, term: Any = -term if negative else term, sign: str = sign) -> list[str]:
            lines = _lines(term, line)
            if sign == "-" and isinstance(term, sp.Add):
                lines = _bracketed("", lines)
            return [f"{sign} {lines[0]}".lstrip(), *lines[1:]]

        yield rows


def _fill(parts: Iterable[str], line: float) -> list[str]:
    """Join parts into lines, as many on a line as fit. A product's sign is printed only where a line begins with it."""
    lines: list[str] = []
    for part in parts:
        joined = f"{lines[-1]} {part.removeprefix(_TIMES)}" if lines else part.removeprefix(_TIMES)
        if lines and width(joined) > line:
            lines.append(part)
        else:
            lines[-1:] = [joined]
    return lines


def _bracketed(before: str, lines: list[str], after: str = "") -> list[str]:
    opened = [rf"{before}\Bigl( {lines[0]}".lstrip(), *lines[1:]]
    return [*opened[:-1], rf"{opened[-1]} \Bigr){after}"]


def _product(expression: Any, line: float) -> list[str]:
    numerator, denominator = sp.fraction(expression, exact=True)
    below = latex(denominator)
    if denominator != 1 and numerator == 1:
        return _bracketed("", _lines(denominator, line - 30.0), "^{-1}")
    if denominator != 1 and width(below) <= line / 2:
        return _fraction(numerator, below, line)
    if denominator != 1:
        inverse = _bracketed("", _lines(denominator, line - 20.0), "^{-1}")
        return _fill(_factors(_factor(numerator, line - 20.0), inverse), line)
    sign, expression = ("-", -expression) if expression.could_extract_minus_sign() else ("", expression)
    factors = [expression] if not isinstance(expression, sp.Mul) else expression.as_ordered_factors()
    first, *rest = _factors(*(_factor(factor, line - 20.0) for factor in factors))
    return _fill([f"{sign}{first}", *rest], line)


def _fraction(numerator: Any, below: str, line: float) -> list[str]:
    """A short denominator: the short factors of the numerator stand over it, the long ones behind."""
    sign, numerator = ("-", -numerator) if numerator.could_extract_minus_sign() else ("", numerator)
    short, long = sp.sift(sp.Mul.make_args(numerator), lambda factor: width(latex(factor)) > line / 4, binary=True)[
        ::-1
    ]
    before = rf"{sign}\frac{{{latex(sp.Mul(*short, evaluate=False)) if short else 1}}}{{{below}}}"
    rows = [_factor(factor, line - width(before) - 15.0) for factor in long]
    return _fill(_factors([before], *rows), line)


def _factors(*factors: list[str]) -> list[str]:
    """The rows of several factors, each but the first marked with the sign of a product."""
    first, *others = factors
    return [*first, *(row if index else f"{_TIMES}{row}" for rows in others for index, row in enumerate(rows))]


def _factor(factor: Any, line: float) -> list[str]:
    if isinstance(factor, sp.Mul):
        return _product(factor, line)
    lines = _lines(factor, line - 10.0)
    loose = precedence(factor) < precedence(sp.Mul(2, sp.Symbol("x")))
    return _bracketed("", lines) if loose or isinstance(factor, (sp.Sum, sp.Product, sp.Integral)) else lines


def _power(expression: Any, line: float) -> list[str]:
    base, exponent = expression.as_base_exp()
    if base == sp.E:
        return _bracketed(r"\exp", _lines(exponent, line - 30.0))
    return _bracketed("", _lines(base, line - 30.0), f"^{{{latex(exponent)}}}")


def _operator(expression: Any, line: float) -> list[str]:
    """A sum, product or integral: the operator printed by SymPy over a placeholder, then the body on its lines."""
    body = sp.Symbol("BODY")
    frame = latex(expression.func(body, *expression.limits))
    before, _, after = frame.partition("BODY")
    return _bracketed(before.rstrip(), _lines(expression.function, line - width(before) - 10.0), after)


def _cases(expression: Any, line: float) -> str:
    """A definition by cases of which the long values and conditions have lines of their own."""
    rows = []
    for value, condition in expression.args:
        words = r"\text{otherwise}" if condition == sp.true else r"\text{for}\: " + _block(condition, line * 0.4)
        rows.append(f"{_block(value, line * 0.55)} & {words}")
    return r"\begin{cases} " + r" \\[3pt] ".join(rows) + r" \end{cases}"


def _block(expression: Any, line: float) -> str:
    """The lines of a part that stands beside others."""
    rows = list(_rows(expression, line))
    return latex(expression) if len(rows) == 1 else r"\begin{aligned} " + r" \\ ".join(rows) + r" \end{aligned}"


def _application(expression: Any, line: float) -> list[str]:
    name = latex(expression.func(sp.Symbol("BODY"))).partition(r"{\left(")[0] if len(expression.args) == 1 else ""
    if not name or "BODY" in name:
        return [latex(expression)]
    return _bracketed(name, _lines(expression.args[0], line - width(name) - 20.0))
