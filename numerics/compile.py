"""Turns a law's expression into a vectorised function, so that a formula is never typed a second time.

Three readings of one expression: `numpy` (always there), `fast` (heyoka: LLVM and SIMD, where installed) and
`mpmath` (as many digits as `mpmath.mp.dps` says). Compiled functions are kept.
"""

from __future__ import annotations

import importlib.util
import math
import sys
import threading
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import sympy as sp

BACKENDS = ("numpy", "fast", "mpmath")
FAST_FROM = 20_000  # points from which the fast backend repays its compilation; below, lambdify is as quick

_cbrt = sp.Function("cbrt")


def _arccosine(cosine: Any) -> Any:
    """np.arccos, but a cosine that exceeds 1 by rounding alone counts as 1 (AM–GM ties reach it exactly)."""
    return np.arccos(np.where(np.abs(np.abs(cosine) - 1) < 1e-14, np.sign(cosine), cosine))


def _binomial(n: Any, k: Any) -> Any:
    """scipy's binomial coefficient: SymPy would print a ratio of Γ functions, which overflows from n = 171."""
    from scipy.special import binom

    return binom(n, k)


_NAMESPACE = {"cbrt": np.cbrt, "acos": _arccosine, "binomial_coefficient": _binomial}


def fast_available() -> bool:
    """Whether the fast backend can be imported."""
    return importlib.util.find_spec("heyoka") is not None


def function(expression: Any, arguments: Sequence[Any], backend: str = "numpy") -> Callable[..., Any]:
    """The expression as a function of the arguments, in their order; arrays broadcast.

    `expression` is a SymPy expression whose free symbols are among `arguments`. Raises ValueError for an unknown
    backend, for text, for a free symbol that is no argument, or for another backend than numpy where a part of the
    expression names an implementation of its own; ModuleNotFoundError if the fast backend is not installed.
    """
    if backend not in BACKENDS:
        raise ValueError(f"backend must be one of {', '.join(BACKENDS)}, got {backend!r}")
    try:
        expression = sp.sympify(expression, strict=True)  # a SymPy object or a number, never text
    except sp.SympifyError as error:
        raise ValueError(f"expression must be a SymPy object or a number, got {expression!r}") from error
    if backend != "numpy" and any(hasattr(node, "implementation") for node in sp.preorder_traversal(expression)):
        raise ValueError(
            f"expression has parts that are computed in double precision; backend must be numpy, got {backend!r}"
        )
    missing = sorted(symbol.name for symbol in expression.free_symbols - set(arguments))
    if missing:
        names = ", ".join(missing)
        raise ValueError(f"expression depends on {names}, which is no argument; pass it or substitute it first")
    return _compiled(expression, tuple(arguments), backend)


@lru_cache(maxsize=512)
def _compiled(expression: Any, arguments: tuple[Any, ...], backend: str) -> Callable[..., Any]:
    # Two quantities may share a name, hence dummies; but a matrix would become a scalar, and keeps its own name.
    scalars = not any(isinstance(argument, sp.MatrixSymbol) for argument in arguments)
    if backend == "mpmath":
        return sp.lambdify(arguments, expression, "mpmath", cse=True, dummify=scalars)  # type: ignore[no-any-return]
    if backend == "fast":
        return _heyoka(expression, arguments)
    from numerics.special import bind  # here, because special nodes compile their own fields with this module

    plain, special = bind(expression)
    plain = _long_numbers(plain)
    prepared = _harmonic_numbers(_cube_roots(plain)).replace(sp.binomial, sp.Function("binomial_coefficient"))
    modules = [special, _NAMESPACE, "scipy", "numpy"]
    return sp.lambdify(arguments, prepared, modules, cse=True, dummify=scalars)  # type: ignore[no-any-return]


def _long_numbers(expression: Any) -> Any:
    """Floats for the exact numbers that do not fit into 64 bits: NumPy has no root of such an integer.

    Raises ValueError if a constant exceeds the largest double.
    """
    exact = {number: sp.Float(number, 17) for number in expression.atoms(sp.Rational) if _is_long(number)}
    if not exact:
        return expression
    result = expression.xreplace(exact)  # SymPy's floats do not overflow: a root is taken before they become doubles
    largest = max(map(abs, result.atoms(sp.Float)), default=sp.Float(0))
    if largest > sys.float_info.max:
        raise ValueError(f"expression has the constant {largest.n(3)}, which exceeds the largest double; rescale it")
    return result


def _is_long(number: Any) -> bool:
    return max(int(number.p).bit_length(), int(number.q).bit_length()) > 63


def _harmonic_numbers(expression: Any) -> Any:
    """H_n as ψ(n + 1) + γ: SymPy prints a harmonic number without parentheses, so that −H_n would come out wrong."""
    return expression.replace(
        lambda part: isinstance(part, sp.harmonic) and len(part.args) == 1,
        lambda part: sp.digamma(part.args[0] + 1) + sp.EulerGamma,
    )


def _cube_roots(expression: Any) -> Any:
    """x^(p/3) as cbrt(x)^p: numpy's cube root is twice as fast as its power and exact to an ulp."""
    return expression.replace(
        lambda part: part.is_Pow and part.exp.is_Rational and part.exp.q == 3,
        lambda part: _cbrt(part.base) ** part.exp.p,
    )


def _heyoka(expression: Any, arguments: tuple[Any, ...]) -> Callable[..., Any]:
    """The expression compiled by heyoka: a function of the arguments that may write to `out`, a contiguous array."""
    import heyoka

    # Symbols without assumptions: sqrt(y²) must not fold back into |y|, which heyoka does not know.
    names = {symbol: sp.Symbol(f"argument_{index}") for index, symbol in enumerate(arguments)}
    roots: dict[Any, Any] = {}
    plain = expression.xreplace(names).replace(sp.Abs, lambda part: sp.sqrt(part**2))
    # Nor does it know signs; this is exact for all but numbers below 1e-142, and 0 at 0.
    plain = plain.replace(sp.sign, lambda part: part / sp.sqrt(part**2 + sp.Float(1e-300)))
    plain = plain.replace(  # one logarithm and one exponential for all powers of a cube root
        lambda part: part.is_Pow and part.exp.is_Rational and part.exp.q == 3,
        lambda part: roots.setdefault(part.base, sp.Symbol(f"root_{len(roots)}")) ** part.exp.p,
    )
    translated = {symbol.name: heyoka.from_sympy(_rounded(base)) for base, symbol in roots.items()}
    cube_roots = {name: heyoka.exp(heyoka.log(base) * (1 / 3)) for name, base in translated.items()}
    whole = heyoka.from_sympy(_rounded(plain))
    for name, value in reversed(cube_roots.items()):  # an outer root may contain an inner one
        whole = heyoka.subs(whole, {name: value})
    variables = heyoka.make_vars(*(symbol.name for symbol in names.values()))
    variables = list(variables) if len(arguments) > 1 else [variables]
    compiled = heyoka.cfunc([whole], variables)
    scratch = threading.local()  # one row an argument, kept: touching fresh memory costs as much as the evaluation

    def call(*values: Any, out: Any = None) -> Any:
        shape = np.broadcast_shapes(*(np.shape(value) for value in values))
        size = math.prod(shape)
        if getattr(scratch, "rows", np.empty(0)).size < len(values) * size:
            scratch.rows, scratch.held = np.empty(len(values) * size), (0, ())
        inputs = scratch.rows[: len(values) * size].reshape(len(values), size)
        numbers = tuple(value if isinstance(value, float) else None for value in values)
        last = scratch.held[1] if scratch.held[0] == size else (None,) * len(values)
        for row, value, number, old in zip(inputs, values, numbers, last, strict=True):
            if number is None or number != old:  # parameters stay in their rows from one block to the next
                row.reshape(shape)[...] = value
        scratch.held = (size, numbers)
        result = np.empty(shape) if out is None else out
        compiled(inputs, outputs=result.reshape(1, size))
        return result

    return call


def _rounded(expression: Any) -> Any:
    """The expression with 17-digit floats for the rationals that heyoka refuses: it takes powers of 2 below only."""
    return expression.replace(
        lambda part: part.is_Rational and not part.is_Integer and not _dyadic(part.q), lambda part: sp.Float(part, 17)
    )


def _dyadic(integer: Any) -> bool:
    return int(integer) & (int(integer) - 1) == 0
