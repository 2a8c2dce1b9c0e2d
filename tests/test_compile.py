"""The compiler's three readings of one expression agree, refuse what they cannot read, and cost nothing at import."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
import sympy as sp
from sympy.concrete.expr_with_limits import ExprWithLimits
from sympy.core.function import AppliedUndef
from sympy.core.relational import Relational

from derivations.core import Average, Law, chapter_names, load_chapter
from numerics import compile as compiler
from numerics.compile import fast_available, function

ROOT = Path(__file__).resolve().parent.parent
POINTS = 7
needs_fast = pytest.mark.skipif(not fast_available(), reason="heyoka is not installed")
NOT_FOR_HEYOKA = (sp.Max, sp.Min, sp.Piecewise, sp.harmonic, sp.polygamma, sp.binomial, sp.factorial, sp.gamma, sp.loggamma)


def is_closed_form(law: Law) -> bool:
    """Whether the right side is a number at a point: no sum, integral, matrix, unknown function or raw eigenvalue."""
    statement = law.statement
    if not isinstance(statement, Relational) or not isinstance(statement.rhs, sp.Expr):
        return False
    whole = statement.rhs
    if whole.has(ExprWithLimits, sp.Derivative, sp.Limit, AppliedUndef, Average, sp.MatrixExpr, sp.KroneckerDelta):
        return False
    return bool(whole.free_symbols) and all(getattr(symbol, "typical", ()) for symbol in whole.free_symbols)


CLOSED_FORMS = [law for name in chapter_names() for law in load_chapter(name).laws if is_closed_form(law)]
EVERY_CLOSED_FORM = pytest.mark.parametrize("law", CLOSED_FORMS, ids=lambda law: law.id)


def points(law: Law) -> tuple[tuple[Any, ...], list[np.ndarray[Any, Any]]]:
    """The symbols of the right side and real test points at which the law's condition holds."""
    symbols = tuple(sorted(law.right.free_symbols, key=lambda symbol: (symbol.name, symbol.meaning)))
    condition = law.where() if law.where else sp.true
    rows = []
    for row in zip(*(symbol.draws(60) for symbol in symbols), strict=True):
        if all(value.is_real for value in row) and condition.subs(dict(zip(symbols, row, strict=True))) != sp.false:
            rows.append([float(value) for value in row])
    return symbols, [np.array(column) for column in zip(*rows[:POINTS], strict=True)]


def exact(law: Law, symbols: Any, columns: Any) -> np.ndarray[Any, Any]:
    compiled = function(law.right, symbols, "mpmath")
    with mpmath.workdps(40):
        values = [compiled(*(mpmath.mpf(float(value)) for value in row)) for row in zip(*columns, strict=True)]
        return np.array([complex(value) for value in values])


def test_closed_forms_are_found() -> None:
    assert len(CLOSED_FORMS) > 25
    assert {"sample-threshold", "wishart-product-upper-edge", "sample-outlier"} <= {law.id for law in CLOSED_FORMS}


@EVERY_CLOSED_FORM
def test_numpy_agrees_with_mpmath(law: Law) -> None:
    symbols, columns = points(law)
    assert columns, "no real test point satisfies the law's condition"
    values = function(law.right, symbols)(*columns)
    expected = exact(law, symbols, columns)
    assert np.abs(expected.imag).max() < 1e-25
    assert np.allclose(values, expected.real, rtol=1e-10, atol=1e-12)


@needs_fast
@EVERY_CLOSED_FORM
def test_fast_agrees_with_mpmath(law: Law) -> None:
    if law.right.has(*NOT_FOR_HEYOKA):
        return  # heyoka has no such function; the numpy reading serves
    symbols, columns = points(law)
    values = function(law.right, symbols, "fast")(*columns)
    assert np.allclose(values, exact(law, symbols, columns).real, rtol=1e-10, atol=1e-12)


x, y = sp.symbols("x y")


def test_arrays_broadcast_and_scalars_pass() -> None:
    expression = sp.cbrt(x) ** 2 + y / 3 + sp.Abs(x)
    row, column = np.array([1.0, 8.0, 27.0]), np.array([[3.0], [6.0]])
    expected = np.array([[3.0, 13.0, 37.0], [4.0, 14.0, 38.0]])
    backends = ["numpy", "fast"] if fast_available() else ["numpy"]
    for backend in backends:
        compiled = function(expression, (x, y), backend)
        assert np.allclose(compiled(row, column), expected, rtol=1e-14)
        assert float(compiled(8, 3)) == pytest.approx(13)
        assert compiled(np.empty((0,)), 1.0).shape == (0,)
    assert function(expression, (x, y), "mpmath")(mpmath.mpf(8), mpmath.mpf(3)) == 13


@needs_fast
def test_fast_writes_to_a_given_array_and_keeps_earlier_results() -> None:
    compiled = function(x * y + sp.cbrt(1 + sp.cbrt(x)), (x, y), "fast")
    place, out = np.linspace(1, 2, 1000), np.empty(1000)
    first = compiled(place, 2.0)
    kept = first.copy()
    assert compiled(place, 3.0, out=out) is out
    assert (first == kept).all()
    assert np.allclose(out - first, place, rtol=1e-12)
    assert np.allclose(first, 2 * place + np.cbrt(1 + np.cbrt(place)), rtol=1e-14)
    assert np.allclose(compiled(place[::-1], place), place * place[::-1] + first[::-1] - 2 * place[::-1], rtol=1e-13)


def test_functions_that_are_printed_badly() -> None:
    n = sp.Symbol("n", positive=True)
    assert function(1 - sp.harmonic(n), (n,))(3.0) == pytest.approx(1 - 11 / 6)
    assert function(sp.binomial(n, 2), (n,))(300.0) == pytest.approx(300 * 299 / 2)
    gamma = sp.Symbol("gamma")
    assert function(gamma * sp.binomial(5, n), (gamma, n))(2.0, 2.0) == pytest.approx(20)
    assert function(sp.acos(x), (x,))(1 + 2e-16) == 0.0


def test_compiled_functions_are_kept() -> None:
    assert function(x + y, (x, y)) is function(y + x, (x, y))
    assert function(x + y, (x, y)) is not function(x + y, (y, x))


def test_what_cannot_be_compiled() -> None:
    with pytest.raises(ValueError, match="expression depends on y, which is no argument"):
        function(x + y, (x,))
    with pytest.raises(ValueError, match="backend must be one of numpy, fast, mpmath, got 'numba'"):
        function(x, (x,), "numba")
    for text in ("x + 1", "__import__('os')"):
        with pytest.raises(ValueError, match="expression must be a SymPy object or a number"):
            function(text, (x,))


def test_without_heyoka_everything_else_works(monkeypatch: pytest.MonkeyPatch) -> None:
    from numerics.wishart_product import WishartProduct

    monkeypatch.setitem(sys.modules, "heyoka", None)
    monkeypatch.setattr(compiler.importlib.util, "find_spec", lambda name: None)
    assert not fast_available()
    law = WishartProduct(0.5, 0.25)
    assert law.pdf(np.full(30_000, 1.0)).max() == law.pdf(1.0)
    with pytest.raises(ImportError):
        function(x + 12345, (x,), "fast")


# Import ----------------------------------------------------------------------------------------------------------


def loaded_after(statement: str) -> set[str]:
    script = f"import sys\n{statement}\nprint(*sorted(sys.modules))"
    run = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(run.stdout.splitlines()[-1].split())


def test_import_compiles_nothing() -> None:
    modules = [path.stem for path in sorted((ROOT / "numerics").glob("*.py")) if path.stem != "__init__"]
    statement = "import " + ", ".join(f"numerics.{module}" for module in modules)
    loaded = loaded_after(f"{statement}\nassert not numerics.compile._compiled.cache_info().currsize")
    assert not loaded & {"heyoka", "matplotlib", "scipy.stats", "scipy.optimize", "scipy.integrate", "numba"}


def test_printing_starts_quickly() -> None:
    """The command's own limit is 2.5 s; the import of what it needs takes a part of it, the best of three."""
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        loaded = loaded_after("import derivations.print, derivations.bbp")
        seconds.append(time.perf_counter() - start)
        assert not loaded & {"numpy", "scipy", "mpmath.calculus.x", "numerics", "verify"}
    assert min(seconds) < 2.5
