"""The compiler's three readings of one expression agree, refuse what they cannot read, and cost nothing at import."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
import sympy as sp
from sympy.concrete.expr_with_limits import ExprWithLimits
from sympy.core.function import AppliedUndef
from sympy.core.relational import Relational

from derivations._expectations import Solution
from derivations.core import Average, Law, load_chapter
from numerics import compile as compiler
from numerics.compile import fast_available, function

ROOT = Path(__file__).resolve().parent.parent
CHAPTERS = ("wishart_product", "bbp", "attention_weights", "finite_length")
POINTS = 7
needs_fast = pytest.mark.skipif(not fast_available(), reason="heyoka is not installed")
NOT_FOR_HEYOKA = (
    sp.Max,
    sp.Min,
    sp.Piecewise,
    sp.harmonic,
    sp.polygamma,
    sp.binomial,
    sp.factorial,
    sp.gamma,
    sp.loggamma,
)


def is_closed_form(law: Law) -> bool:
    """Whether the right side is a number at a point: no sum, integral, matrix, unknown function or raw eigenvalue."""
    statement = law.statement
    if not isinstance(statement, Relational) or not isinstance(statement.rhs, sp.Expr):
        return False
    whole = statement.rhs
    if whole.has(ExprWithLimits, sp.Derivative, sp.Limit, AppliedUndef, Average, sp.MatrixExpr, sp.KroneckerDelta):
        return False
    return bool(whole.free_symbols) and all(getattr(symbol, "typical", ()) for symbol in whole.free_symbols)


@cache
def closed_forms(chapter: str) -> tuple[Law, ...]:
    return tuple(law for law in load_chapter(chapter).laws if is_closed_form(law))


@cache
def cases(law: Law) -> tuple[tuple[Any, ...], list[np.ndarray[Any, Any]], np.ndarray[Any, Any]]:
    """The symbols of the right side, points at which it is real and its condition holds, and its values there.

    The points are the declared ones, then others between 1/5 and 2: a formula for the inside of the support needs them.
    """
    symbols = tuple(sorted(law.right.free_symbols, key=lambda symbol: (symbol.name, symbol.meaning)))
    generator, condition = np.random.default_rng(1), law.where() if law.where else sp.true
    declared = list(zip(*(symbol.draws(40) for symbol in symbols), strict=True))
    others = [tuple(map(sp.Float, generator.uniform(0.2, 2, len(symbols)))) for _ in range(40)]
    compiled = function(law.right, symbols, "mpmath")
    rows, values = [], []
    for row in [*declared, *others]:
        if not all(value.is_real for value in row) or condition.subs(dict(zip(symbols, row, strict=True))) == sp.false:
            continue
        doubles = [float(value) for value in row]
        with mpmath.workdps(40):
            value = mpmath.mpmathify(compiled(*map(mpmath.mpf, doubles)))
        if abs(mpmath.im(value)) < 1e-25 and len(rows) < POINTS:
            rows.append(doubles)
            values.append(float(mpmath.re(value)))
    assert rows, "no real test point satisfies the law's condition"
    return symbols, [np.array(column) for column in zip(*rows, strict=True)], np.array(values)


def test_closed_forms_are_found() -> None:
    found = {law.id for chapter in CHAPTERS for law in closed_forms(chapter)}
    assert len(found) > 25
    assert {"sample-threshold", "wishart-product-upper-edge", "sample-outlier", "causal-weights-inclusive"} <= found


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_numpy_agrees_with_mpmath(chapter: str) -> None:
    for law in closed_forms(chapter):
        symbols, columns, values = cases(law)
        assert np.allclose(function(law.right, symbols)(*columns), values, rtol=1e-10, atol=1e-12), law.id


@needs_fast
@pytest.mark.parametrize("chapter", ["wishart_product", "bbp"])  # elsewhere: functions that heyoka does not have
def test_fast_agrees_with_mpmath(chapter: str) -> None:
    laws = [law for law in closed_forms(chapter) if not law.right.has(*NOT_FOR_HEYOKA)]
    assert len(laws) > 5
    for law in laws:
        symbols, columns, values = cases(law)
        assert np.allclose(function(law.right, symbols, "fast")(*columns), values, rtol=1e-10, atol=1e-12), law.id


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


@pytest.mark.parametrize(
    "expression",
    [
        sp.sqrt(sp.Integer(2**70 + 1)) * x,
        -sp.sqrt(x * sp.Rational(3**60, 2**80 + 1)),
        sp.cbrt(sp.Integer(3) ** 61 + 1) * x,
        sp.sqrt(x + sp.Integer(2) ** 63),
        sp.sqrt(sp.Integer(10) ** 401) * x,
        x * sp.Rational(10**400, 10**399 + 1),
        sp.Piecewise((x * 3**60, x < 3**50), (0, True)) - sp.sqrt(x - 3**70),
    ],
)
def test_exact_numbers_beyond_64_bits(expression: Any) -> None:
    places = np.array([0.3, 2.0, 1e30])
    expected = np.array([complex(expression.subs(x, sp.Float(place, 40)).evalf(40)) for place in places])
    found = function(expression, (x,))(places + 0j * (expected.imag != 0))
    np.testing.assert_allclose(found, expected, rtol=1e-15)


def test_a_constant_beyond_the_doubles_is_told() -> None:
    with pytest.raises(ValueError, match=r"the constant 1.00E\+400, which exceeds the largest double"):
        function(x * 10**400, (x,))


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


def test_parts_with_an_implementation_have_doubles_alone() -> None:
    node = Solution.of("m", "factorised", *range(9))
    for backend in ("fast", "mpmath"):
        with pytest.raises(ValueError, match=f"backend must be numpy, got '{backend}'"):
            function(x + node, (x,), backend)
    with pytest.raises(ValueError, match="expression depends on y, which is no argument"):
        function(Solution.of("m", "factorised", y, *range(8)), (x,))


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
    assert not loaded & {"heyoka", "matplotlib", "scipy.stats", "numba"}
    loaded = loaded_after("import numerics.bbp, numerics.wishart_product, numerics.attention_weights")
    assert not loaded & {"scipy.optimize", "scipy.integrate", "scipy.special"}


def test_printing_starts_quickly() -> None:
    """The command's own limit is 2.5 s; importing what it needs takes a part of it, in processor time, at best."""
    seconds = []
    for _ in range(2):
        start = sum(os.times()[2:4])
        loaded = loaded_after("import derivations.print, derivations.bbp")
        seconds.append(sum(os.times()[2:4]) - start)
        assert not loaded & {"numpy", "scipy", "numerics", "verify"}
    assert 0 < min(seconds) < 2.0
