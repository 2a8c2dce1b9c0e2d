"""From claims and draws to residuals: what each symbol stands for, points, averages, rivals, and honest errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy as sp
from sympy import Eq, I, Rational

from derivations.core import Average, Claim, Exact, Experiment, Limit, Model, Order, observable, variable
from tests.engine_toys import (
    LIMIT,
    chapter,
    claims,
    count,
    eigenvalue,
    experiment,
    half,
    law,
    level,
    level_law,
    model,
    moment,
    moments_law,
    n,
    order_law,
    powers,
    theta,
    theta_law,
    through_theta,
    top,
    transform,
    width,
    x,
)
from verify.measure import MeasureError, Measurement, Point, points_of
from verify.rewrite import free_symbols, replaced, sums_done
from verify.run import Registry

VALUES = np.array([[0.1, 0.4, 1.0], [0.2, 0.6, 1.1]])
COLUMNS = {
    "eigenvalues": VALUES,
    "level": np.array([4.0, 5.0]),
    "count": np.array([3.0, 3.0]),
    "half": np.array([1.5, 1.5]),
    "powers": np.stack([np.mean(VALUES**order, axis=1) for order in (1, 2, 3)], axis=1),
    "width": np.array([1.4, 1.6]),
}
WHERE = Point("")


def claim(statement: Any, hypothesis: Any = LIMIT, rivals: Any = None, **more: Any) -> Claim:
    return Claim("toy", law("toy-statement", statement), experiment(), hypothesis, lambda: rivals or {}, **more)


def residual(made: Claim, point: int = 0, rival: str = "", columns: Any = None) -> np.ndarray:
    columns = columns or COLUMNS
    measurement = Measurement(made, columns)
    return measurement.sides(columns, measurement.points[point], rival).residual


def test_a_symbol_is_a_read_then_a_definition_then_a_column_then_a_parameter() -> None:
    statement = Eq(top, 2 * width)
    assert residual(claim(statement)) == pytest.approx([4 - 2.8, 5 - 3.2])  # definition of top, realised width
    assert residual(claim(statement, reads={top: half + 1})) == pytest.approx([2.5 - 2.8, 2.5 - 3.2])
    assert residual(claim(statement, reads={width: count})) == pytest.approx([4 - 6, 5 - 6])
    nominal = {name: column for name, column in COLUMNS.items() if name != "width"}
    assert residual(claim(statement), columns=nominal) == pytest.approx([1.0, 2.0])  # width = 3/2 of the experiment


def test_a_read_may_mention_its_own_symbol() -> None:
    assert residual(claim(Eq(top, width), reads={width: 2 * width})) == pytest.approx([4 - 2.8, 5 - 3.2])


def test_given_laws_replace_their_left_side_in_order() -> None:
    made = Claim("toy", through_theta, experiment(), LIMIT, lambda: {}, given=(theta_law,))
    assert residual(made) == pytest.approx([4 - 3.8, 5 - 4.2])
    bare = Claim("toy", through_theta, experiment(), LIMIT, lambda: {}, given=(Eq(theta, x), Eq(x, width)))
    assert residual(bare) == pytest.approx([4 - 2.4, 5 - 2.6])


def test_averages_run_over_the_eigenvalues_of_each_replicate() -> None:
    at = Rational(-1, 3)
    made = claim(Eq(transform, width), points=(x, (at,)))
    expected = np.mean(VALUES / (-1 / 3 - VALUES), axis=1) - COLUMNS["width"]
    assert residual(made) == pytest.approx(expected)
    fraction = Average(sp.Piecewise((1, eigenvalue <= width / 3), (0, True)))
    assert residual(claim(Eq(fraction, 0))) == pytest.approx([2 / 3, 1 / 3])
    variance = Average((eigenvalue - Average(eigenvalue)) ** 2)  # nested
    assert residual(claim(Eq(variance, 0))) == pytest.approx(np.var(VALUES, axis=1))
    assert residual(claim(Eq(Average(width), width))) == pytest.approx([0, 0])


def test_averages_of_rows_of_different_lengths() -> None:
    ragged = {**COLUMNS, "eigenvalues": [np.array([1.0, 3.0]), np.array([2.0])]}
    assert residual(claim(Eq(Average(eigenvalue**2 * width), 0)), columns=ragged) == pytest.approx([7.0, 6.4])


def test_points_run_through_values_and_write_sums_out() -> None:
    index = sp.Symbol("i")
    made = claim(Eq(moment, sp.Sum(width**index, (index, 1, n))), points=(n, (1, 2, 3)))
    for order in (1, 2, 3):
        right = sum(COLUMNS["width"] ** power for power in range(1, order + 1))
        assert residual(made, order - 1) == pytest.approx(np.mean(VALUES**order, axis=1) - right)
    assert [point.label for point in points_of(made)] == ["n = 1", "n = 2", "n = 3"]


def test_sums_with_an_inner_limit_that_runs() -> None:
    i, j = sp.symbols("i j", integer=True)
    made = claim(Eq(top, sp.Sum(width, (j, 0, n - i), (i, 0, n))), points=(n, (2,)))
    assert residual(made) == pytest.approx(COLUMNS["level"] - 6 * COLUMNS["width"])


def test_point_k_reads_entry_k_of_a_vector() -> None:
    made = Claim("toy", moments_law, experiment(), LIMIT, lambda: {}, reads={moment: powers}, points=(n, (1, 2, 3)))
    averaged = Claim("toy", moments_law, experiment(), LIMIT, lambda: {}, points=(n, (1, 2, 3)))
    for order in range(3):
        assert residual(made, order) == pytest.approx(residual(averaged, order))


def test_a_complex_point_is_two_tests() -> None:
    made = claim(Eq(transform, width), points=(x, (Rational(-1, 3), 1 + I)))
    labels = [(point.label, point.imaginary) for point in points_of(made)]
    assert labels == [("x = -1/3", False), ("x = 1 + I, real part", False), ("x = 1 + I, imaginary part", True)]
    value = np.mean(VALUES / (1 + 1j - VALUES), axis=1)
    assert residual(made, 1) == pytest.approx(value.real - COLUMNS["width"])
    assert residual(made, 2) == pytest.approx(value.imag)
    assert Registry.of([chapter([made])]).tests == 3


def test_rivals_replace_statement_given_or_reads() -> None:
    rivals = {
        "statement": Eq(top, 7 * theta),
        "law": level_law,
        "given": (Eq(theta, width),),
        "reads": {top: half},
    }
    made = Claim("toy", through_theta, experiment(), LIMIT, lambda: rivals, given=(theta_law,))
    level_, width_ = COLUMNS["level"], COLUMNS["width"]
    assert residual(made, rival="statement") == pytest.approx(level_ - 14 * width_)
    assert residual(made, rival="law") == pytest.approx(level_ - 2 * width_ - 1)
    assert residual(made, rival="given") == pytest.approx(level_ - width_ - 1)
    assert residual(made, rival="reads") == pytest.approx(COLUMNS["half"] - 2 * width_ - 1)
    with pytest.raises(MeasureError, match="rival 'odd' must be an equation"):
        Measurement(claim(Eq(top, 1), rivals={"odd": 3}), COLUMNS)


def test_an_order_points_to_its_larger_side() -> None:
    order = Order(1, 2, 1.0)
    above = residual(claim(sp.Gt(top, width), order))
    assert above == pytest.approx(COLUMNS["level"] - COLUMNS["width"])
    assert residual(claim(sp.Lt(width, top), order)) == pytest.approx(above)
    with pytest.raises(MeasureError, match="an order needs an inequality"):
        Measurement(claim(Eq(top, width), order), COLUMNS)
    with pytest.raises(MeasureError, match="cannot judge"):
        Measurement(claim(order_law.statement), COLUMNS)


def test_a_symbol_that_nothing_stands_for_is_named() -> None:
    with pytest.raises(MeasureError, match=r"claim toy: nothing stands for theta.*columns: count.*parameter \(width\)"):
        Measurement(claim(Eq(top, theta)), COLUMNS)
    with pytest.raises(MeasureError, match="no draw measures the function S"):
        Measurement(claim(Eq(top, sp.Function("S")(width))), COLUMNS)


def test_a_vector_outside_an_average_needs_points() -> None:
    with pytest.raises(MeasureError, match="powers has 3 entries, the claim has 0 points"):
        Measurement(claim(Eq(top, powers)), COLUMNS)
    with pytest.raises(MeasureError, match="powers has 3 entries, the claim has 2 points"):
        Measurement(claim(Eq(moment, width), reads={moment: powers}, points=(n, (1, 2))), COLUMNS)


@pytest.mark.parametrize("statement", [Eq(top, sp.log(level - 4)), Eq(1 / (level - 4), 1), Eq(top, sp.acos(level))])
def test_what_is_not_a_number_is_an_error_with_its_values(statement: Any) -> None:
    with pytest.raises(MeasureError, match=r"in replicate 0 .* from width = 3/2, level = 4\.0"):
        residual(claim(statement))


def test_a_rival_that_is_not_a_number_is_named() -> None:
    made = claim(Eq(top, width), rivals={"logarithm": Eq(top, sp.log(-width))})
    with pytest.raises(MeasureError, match="rival 'logarithm'"):
        residual(made, rival="logarithm")


def test_a_complex_value_at_a_real_point_is_an_error() -> None:
    with pytest.raises(MeasureError, match="must be real"):
        residual(claim(Eq(top, I * width, evaluate=False)))
    tiny = claim(Eq(top, width + I * width * Rational(1, 10**12), evaluate=False))
    assert residual(tiny) == pytest.approx(COLUMNS["level"] - COLUMNS["width"])


def test_a_statement_that_is_infinite_at_the_parameters_is_an_error() -> None:
    pole = variable("pole", "a pole")
    made = claim(Eq(top, 1 / pole), points=(pole, (0,)))
    with pytest.raises(MeasureError, match="at pole = 0"):
        residual(made)


def test_a_root_of_a_negative_point_is_complex_and_not_an_error() -> None:
    running = variable("running", "a real symbol", typical=(-1, 1))
    made = claim(Eq(top, width - sp.sqrt(running) ** 2 + sp.sqrt(running) * 0), points=(running, (Rational(-1, 3), 2)))
    for index, value in enumerate((-1 / 3, 2)):
        assert residual(made, index) == pytest.approx(COLUMNS["level"] - COLUMNS["width"] + value)
    imaginary = claim(Eq(top, width + sp.re(sp.sqrt(running - 1))), points=(running, (0,)))
    assert residual(imaginary) == pytest.approx(COLUMNS["level"] - COLUMNS["width"])


def test_sums_are_written_out_term_by_term() -> None:
    i, j = sp.symbols("i j")
    total = sp.Sum(sp.binomial(4, i) * x**j, (j, 0, 3 - i), (i, 0, 3))
    by_hand = sum(sp.binomial(4, a) * x**b for a in range(4) for b in range(4 - a))
    assert sp.expand(sums_done(total) - by_hand) == 0
    assert sums_done(sp.Sum(2**-i, (i, 0, sp.oo))).has(sp.Sum)
    assert sp.expand(sums_done(sp.Product(x + i, (i, 1, 3))) - (x + 1) * (x + 2) * (x + 3)) == 0
    assert sums_done(sp.Sum(x, (i, 1, n))).has(sp.Sum)
    assert sums_done(sp.Sum(x, (i, 1, 0))) == 0


def test_replacing_is_simultaneous_and_shares_nodes() -> None:
    y = sp.Symbol("y")
    assert replaced(x + 2 * y, {x: y, y: x}) == y + 2 * x
    nested = x
    for _ in range(60):  # as a tree this has 2^60 leaves
        nested = sp.Add(sp.sin(nested), sp.cos(nested), evaluate=False)
    assert free_symbols(replaced(nested, {x: y})) == {y}
    assert free_symbols(sp.Sum(x * y, (y, 1, 3))) == {x}


def test_text_is_never_evaluated() -> None:
    with pytest.raises(TypeError):
        points_of(claim(Eq(top, n), points=(n, ("1 + 1",))))


def test_all_toy_claims_compile() -> None:
    for made in claims(experiment()):
        measurement = Measurement(made, COLUMNS)
        for point in measurement.points:
            for rival in ("", *measurement.rivals):
                assert measurement.sides(COLUMNS, point, rival).residual.shape == (2,)


def test_exact_claims_read_columns() -> None:
    spin = observable("spin", "a sign")
    fixed = Experiment("signs", Model("signs", "signs", (), (spin,)), {}, standard={4: 3})
    made = Claim("sign", law("sign-squared", Eq(spin**2, 1)), fixed, Exact(), lambda: {})
    columns = {"spin": np.array([1.0, -1.0, 1.0])}
    measurement = Measurement(made, columns)
    assert measurement.sides(columns, WHERE).residual == pytest.approx([0, 0, 0])


def test_an_empty_list_of_points_is_refused() -> None:
    with pytest.raises(MeasureError, match="at least one value"):
        points_of(claim(Eq(top, n), points=(n, ())))
    assert isinstance(LIMIT, Limit)
    assert model.name == "toy"
