"""Rewriting of large expressions: closed forms share subexpressions, so each distinct node is visited once.

SymPy's own traversals visit a shared node as often as it occurs, which takes minutes on a distribution function.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import sympy as sp
from sympy.concrete.expr_with_limits import ExprWithLimits


def distinct_nodes(expression: Any, inside: type[Any] | None = None) -> Iterator[Any]:
    """Every distinct node once; the nodes under one of type `inside` only if they occur elsewhere too."""
    pending, seen = [expression], set()
    while pending:
        node = pending.pop()
        if node in seen:
            continue
        seen.add(node)
        yield node
        if inside is None or not isinstance(node, inside):
            pending.extend(node.args)


def has_type(expression: Any, *types: type[Any]) -> bool:
    """Whether a node of one of these types occurs."""
    return any(isinstance(node, types) for node in distinct_nodes(expression))


def free_symbols(expression: Any) -> set[Any]:
    """The symbols that are not bound by a sum, a product or an integral."""
    if has_type(expression, ExprWithLimits, sp.Lambda, sp.Subs):
        return set(expression.free_symbols)
    return {node for node in distinct_nodes(expression) if node.is_Symbol}


def replaced(expression: Any, rules: Mapping[Any, Any]) -> Any:
    """The expression with nodes replaced, all at once; a node that is replaced is not looked into."""
    known: dict[Any, Any] = dict(rules)

    def visit(node: Any) -> Any:
        if node in known:
            return known[node]
        arguments = [visit(argument) for argument in node.args]
        same = all(new is old for new, old in zip(arguments, node.args, strict=True))
        known[node] = node if same else node.func(*arguments)
        return known[node]

    return visit(expression) if rules else expression


def sums_done(expression: Any) -> Any:
    """Finite sums and products with numeric limits, written out term by term."""
    if not has_type(expression, sp.Sum, sp.Product):
        return expression
    return expression.replace(
        lambda node: isinstance(node, sp.Sum | sp.Product) and not _open(node), lambda node: _written_out(node)
    )


def _written_out(node: Any) -> Any:
    """Term by term: evaluating a sum symbolically looks for a closed form first, which takes seconds."""
    *inner, (index, low, high) = node.limits
    if not (low.is_Integer and high.is_Integer):
        return node.doit()
    terms = []
    for value in range(int(low), int(high) + 1):
        term = node.function.subs(index, value)
        if inner:
            limits = [(limit[0], *(part.subs(index, value) for part in limit[1:])) for limit in inner]
            term = _written_out(node.func(term, *limits))
        terms.append(term)
    return sp.Add(*terms) if isinstance(node, sp.Sum) else sp.Mul(*terms)


def _open(node: Any) -> bool:
    """Whether a limit is still symbolic (an inner limit may depend on an outer index)."""
    indices = {limit[0] for limit in node.limits}
    return any(bound.free_symbols - indices or bound.is_infinite for limit in node.limits for bound in limit[1:])
