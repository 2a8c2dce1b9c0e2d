"""Derivations written in lines: theorems hold in numbers, and no coefficient of a line can be changed unnoticed."""

from __future__ import annotations

from collections import Counter

import pytest
import sympy as sp
from sympy import Eq

from derivations.core import DerivedLaw, Theorem, law, load_chapters, measured, parameter
from derivations.theorems import theorems
from tests.evidence import disagreement, pairs, points
from tests.mutants import misread, mutants, survives

CHAPTERS = load_chapters()
LAWS = [one for chapter in CHAPTERS for one in chapter.laws if isinstance(one, DerivedLaw)]
WRITTEN = sorted({chapter.name for chapter in CHAPTERS if any(isinstance(one, DerivedLaw) for one in chapter.laws)})
KILLED = 0.98  # least share of mutants that must be noticed

# Mutants that say the same: the result depends on the square of what has the other sign.
EQUIVALENT = {"test-error-near-the-target": 1}

here = parameter("here", "a point", sp.Interval.open(0, sp.oo), (sp.Rational(1, 2), 4))
there = measured("there", "a value", domain=sp.Interval.open(0, sp.oo), typical=(1, 2))
beyond = measured("beyond", "another value", typical=(1, 2))


@pytest.mark.parametrize("theorem", theorems(), ids=lambda theorem: theorem.name)
def test_theorem_in_numbers(theorem: Theorem) -> None:
    tried = list(theorem.instance())
    assert tried and theorem.citation and theorem.hypotheses
    for words, left, right in tried:
        error = abs(sp.N(left - right, 30) / sp.N(right, 30))
        assert error <= max(theorem.accuracy, 1e-25), f"{theorem.name}, {words}: {left} against {right}"
        assert theorem.accuracy < 0.01  # a limit theorem is tried where it is nearly reached


def test_every_theorem_is_quoted() -> None:
    quoted = {line.theorem.name for one in LAWS for line in one.lines if line.theorem is not None}
    assert quoted == {theorem.name for theorem in theorems()}


@pytest.mark.parametrize("name", WRITTEN)
def test_changed_lines_are_noticed(name: str) -> None:
    """Every coefficient, sign and exponent of every line that an author wrote."""
    total, alive = 0, Counter[str]()
    for one in LAWS:
        if one.derivation.__module__ == f"derivations.{name}":
            everything = list(mutants(one))
            total += len(everything)
            alive.update({one.id: sum(map(survives, everything))})
    alive -= Counter(EQUIVALENT)
    assert total > 50
    assert alive.total() <= (1 - KILLED) * total, f"unnoticed: {alive} of {total}"


@pytest.mark.parametrize("one", [one for one in LAWS if one.uses], ids=lambda one: one.id)
def test_a_used_law_is_read(one: DerivedLaw) -> None:
    """A law that is used cannot be off by 5 % without contradiction: no use is for show."""
    for mutant in misread(one):
        assert not survives(mutant), str(mutant)


def test_lines_are_computed_and_proved() -> None:
    @law("probe", "Probe", source="test")
    def probe(line):  # type: ignore[no-untyped-def]
        first = line.define(there, 2 * here + 1, "twice and one")
        second = line.define(beyond, there**2, "squared")
        both = line.substitute(second, first)
        assert line[both] == Eq(beyond, (2 * here + 1) ** 2, evaluate=False)
        line.follows(Eq(beyond, 4 * here**2 + 4 * here + 1), [first, second], "multiplied out")

    assert [line.kind for line in probe.lines] == ["define", "define", "substitute", "follows"]
    assert probe.lines[-1].parents == (0, 1) and "from steps 1 and 2" in probe.lines[-1].reason
    evidence = list(pairs(probe))
    assert evidence and not any(disagreement(pair, point) for pair in evidence for point in points(probe, pair))
    assert not any(map(survives, mutants(probe)))


def test_a_wrong_line_is_refuted() -> None:
    @law("wrong", "Wrong", source="test")
    def wrong(line):  # type: ignore[no-untyped-def]
        first = line.define(there, 2 * here, "twice")
        line.follows(Eq(there, 3 * here), [first], "not so")

    assert any(disagreement(pair, point) for pair in pairs(wrong) for point in points(wrong, pair))


def test_definitions_in_a_circle_are_refused() -> None:
    @law("circle", "Circle", source="test")
    def circle(line):  # type: ignore[no-untyped-def]
        lines = [line.define(there, beyond + 1, "one"), line.define(beyond, there + 1, "other")]
        line.follows(Eq(here, there), lines, "never ends")

    with pytest.raises(ValueError, match="circle"):
        list(pairs(circle))


def test_assumptions_are_marked_and_counted() -> None:
    @law("assuming", "Assuming", source="test")
    def assuming(line):  # type: ignore[no-untyped-def]
        first = line.postulate(Eq(there, here), "it is so")
        line.follows(Eq(there + 1, here + 1), [first], "one more")

    assert len(assuming.postulates) == 1
    assert assuming.postulates[0].reason == "assumed: it is so"


def test_an_equation_without_a_solution_is_refused() -> None:
    @law("unsolvable", "Unsolvable", source="test")
    def unsolvable(line):  # type: ignore[no-untyped-def]
        first = line.define(here, sp.Integer(-1), "a positive number that is negative")
        line.solve(first, here, 0, "none")

    with pytest.raises(ValueError, match="no closed solution"):
        _ = unsolvable.statement
