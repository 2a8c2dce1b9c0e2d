"""Every law of every chapter, through one generic test: its derivation runs, and its own evidence holds and can fail.

Algebraic evidence is exact at rational points; the rest holds to 1e-40 at 50 digits. See `tests/evidence.py`.
"""

from __future__ import annotations

import graphlib
from dataclasses import replace
from typing import Any

import pytest
import sympy as sp
from sympy import Eq
from sympy.core.relational import Relational
from sympy.logic.boolalg import Boolean

from derivations.core import Law, Quantity, Step, load_chapters, measured, variable
from derivations.core.quantities import parameter
from tests import toy_chapter
from tests.evidence import Pair, altered, disagreement, is_zero, pairs, points

CHAPTERS = load_chapters()
TOY = toy_chapter.load()
LAWS = [law for chapter in CHAPTERS for law in chapter.laws]
QUANTITIES = list(dict.fromkeys(quantity for chapter in CHAPTERS for quantity in chapter.quantities))
EVERY_LAW = pytest.mark.parametrize("law", [*LAWS, *TOY.laws], ids=lambda law: law.id)


@EVERY_LAW
def test_derivation_runs(law: Law) -> None:
    """Every step is a relation with a reason; the statement is reached by a step and says something."""
    assert all(isinstance(step.equation, (Relational, Boolean)) for step in law.steps)
    assert all(step.reason.strip() for step in law.steps)
    assert law.title and law.source
    statement = law.steps[-1].equation
    assert len({step.equation for step in law.steps}) >= 2, f"{law.id} states without deriving: give the step before it"
    if isinstance(statement, Relational):
        assert statement.lhs != statement.rhs


@EVERY_LAW
def test_evidence_holds(law: Law) -> None:
    evidence = list(pairs(law))
    assert evidence, f"{law.id} has neither an equation that it solves nor a check: a law without evidence is a guess"
    for pair in evidence:
        for point in points(law, pair):
            found = disagreement(pair, point)
            assert not found, f"{law.id}, {pair.reason}, at {point}: {found}"


@EVERY_LAW
def test_evidence_can_fail(law: Law, monkeypatch: pytest.MonkeyPatch) -> None:
    """A law of which any one term is off by 5 % is contradicted by its own evidence."""
    for wrong in altered(law.statement, sp.Rational(1, 20)):
        with monkeypatch.context() as patch:
            last = replace(law.steps[-1], reason="off by 5 %", equation=wrong)
            patch.setitem(law.__dict__, "steps", (*law.steps[:-1], last))
            assert contradicted(law), f"the evidence of {law.id} does not notice {wrong}"


def contradicted(law: Law) -> bool:
    return any(disagreement(pair, point, prove=False) for pair in pairs(law) for point in points(law, pair))


def uses(laws: list[Law]) -> dict[str, set[str]]:
    return {law.id: {used.id for used in law.uses} for law in laws}


def test_uses_have_an_order() -> None:
    graph = uses(LAWS)
    order = list(graphlib.TopologicalSorter(graph).static_order())
    assert set(graph) <= set(order)
    assert set(order) <= set(graph), f"laws used but in no chapter: {sorted(set(order) - set(graph))}"


def test_laws_in_a_circle_are_refused() -> None:
    a, b = sp.symbols("a b")

    def derive(name: str) -> Any:
        yield "one another", Eq(a, laws[name].right + b)

    laws = {name: Law(name, name, lambda other=other: derive(other), source="test") for name, other in ("xy", "yx")}
    with pytest.raises(ValueError, match="circle: x -> y -> x"):
        _ = laws["x"].statement
    with pytest.raises(graphlib.CycleError):
        graphlib.TopologicalSorter({"x": {"y"}, "y": {"x"}}).prepare()


def test_ids_are_unique() -> None:
    ids = [law.id for law in LAWS]
    assert sorted(set(ids)) == sorted(ids)


@EVERY_LAW
def test_superseding_laws_exist(law: Law) -> None:
    known = {other.id for other in [*LAWS, *TOY.laws]}
    assert law.status.stands or law.status.superseded_by in known
    assert law.status.stands or (law.status.exact_for and law.status.not_for)


@pytest.mark.parametrize("quantity", QUANTITIES, ids=lambda quantity: quantity.name)
def test_declarations(quantity: Quantity) -> None:
    """A quantity has a meaning, and its test points lie in its domain."""
    assert quantity.meaning.strip()
    for value in quantity.draws(20) if quantity.typical else ():
        assert quantity.domain.contains(value) == sp.true or not value.is_real, f"{value} is not in {quantity.domain}"


# ------------------------------------------------------------------------------------------------- the judge is judged

here = parameter("here", "a point", sp.Interval.open(0, sp.oo), (sp.Rational(1, 2), 4))
there = measured("there", "a value", domain=sp.Interval.open(0, sp.oo))


def law_of(right: Any, **evidence: Any) -> Law:
    return Law("probe", "probe", lambda: [("a", Eq(there**2, right**2)), ("b", Eq(there, right))], "test", **evidence)


def test_a_wrong_root_is_found() -> None:
    right, wrong = sp.sqrt(here) + 1, sp.sqrt(here) - 1
    for side, agrees in ((right, True), (wrong, False)):
        law = law_of(side, solves=lambda: [Eq((there - 1) ** 2, here), sp.Gt(there, 1)])
        assert all(not disagreement(pair, point) for pair in pairs(law) for point in points(law, pair)) is agrees


def test_small_is_not_zero() -> None:
    tiny = sp.Rational(1, 10**45)
    assert "not proved" in disagreement(Pair("a", sp.sqrt(2) + tiny, sp.sqrt(2)), {})
    assert not disagreement(Pair("a", sp.sqrt(3 + 2 * sp.sqrt(2)), 1 + sp.sqrt(2)), {})
    assert not is_zero(sp.sqrt(2) + sp.sqrt(3) - sp.sqrt(5 + 2 * sp.sqrt(6)) + tiny)


def test_no_number_is_no_agreement() -> None:
    free = variable("free", "no range")
    assert "no number" in disagreement(Pair("a", sp.Function("f")(free), sp.Integer(0)), {})
    assert "no number" in disagreement(Pair("a", sp.zoo, sp.Integer(0)), {})
    with pytest.raises(AssertionError, match="no quantities"):
        points(law_of(here), Pair("a", sp.Symbol("plain"), sp.Integer(0)))
    with pytest.raises(ValueError, match="declares no typical range"):
        points(law_of(here), Pair("a", free, sp.Integer(0)))


def test_points_respect_the_condition() -> None:
    pair = Pair("a", here, here)
    assert all(point[here] > 2 for point in points(law_of(here, where=lambda: here > 2), pair))
    with pytest.raises(AssertionError, match="holds at 0 of 60 points"):
        points(law_of(here, where=lambda: here > 5), pair)


def test_a_check_that_cannot_fail_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    law = law_of(here, checks=lambda: [("says nothing about the law", here, here)])
    monkeypatch.setitem(law.__dict__, "steps", (*law.steps[:-1], Step("off", law.off_by(sp.Rational(1, 20)))))
    assert not contradicted(law)
