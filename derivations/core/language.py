"""The language of derivations: every line is computed from its parents, proved to follow from them, or marked.

`@law(id, title, source=…)` stands on a function that receives a builder. The last line is the statement. What a line
claims is an obligation, two sides that must agree; obligations are evidence of the law like its other checks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import sympy as sp

from derivations.core.laws import STANDS, Equation, Law, Status, Step

Compute = Callable[..., Equation]


def Eq(left: Any, right: Any) -> Equation:
    """An equation that SymPy does not try to decide: that costs more than all else, and a definition is not false."""
    return sp.Eq(sp.sympify(left), sp.sympify(right), evaluate=False)


Sides = tuple[str, Any, Any]

TYPED = ("define", "postulate", "follows")  # kinds of line whose equation the author writes


@dataclass(frozen=True)
class Theorem:
    """A classical theorem, stated once: its citation and hypotheses in words, its content as a map of equations.

    `content(*equations, **bound)` gives the conclusion for premises that are lines (none, for an identity).
    `instance()` yields `(words, left, right)`: numbers, found independently of the theorem, that must agree to within
    `accuracy` (0: exactly, else relative; a limit theorem is tried at a finite size).
    """

    name: str
    citation: str
    hypotheses: str
    content: Compute
    instance: Callable[[], Iterable[Sides]]
    accuracy: float = 0.0


@dataclass(frozen=True)
class Line(Step):
    """A line of a derivation: its kind, and the places of the lines that it rests on."""

    kind: str = "follows"
    parents: tuple[int, ...] = ()
    compute: Compute | None = field(default=None, compare=False, repr=False)
    put_back: Callable[[Equation, Equation], Equation] | None = field(default=None, compare=False, repr=False)
    law: Law | None = None
    theorem: Theorem | None = None
    example: Mapping[Any, Any] | None = field(default=None, compare=False)

    @property
    def typed(self) -> bool:
        """Whether the author wrote the equation (otherwise the machine did)."""
        return self.kind in TYPED


class Builder:
    """What a derivation writes its lines with. Every operation returns the line's place, to be a parent of others."""

    def __init__(self) -> None:
        self.lines: list[Line] = []

    def __getitem__(self, place: int) -> Equation:
        return self.lines[place].equation

    def _write(self, line: Line) -> int:
        self.lines.append(line)
        return len(self.lines) - 1

    def use(self, law: Law, words: str = "") -> int:
        """The statement of a law. The use is recorded with the law."""
        reason = f"law “{law.title}”" + (f": {words}" if words else "")
        return self._write(Line(reason, law.statement, "use", law=law))

    def define(self, symbol: Any, expression: Any, words: str) -> int:
        """A definition: `symbol` stands for `expression`."""
        return self._write(Line(f"definition: {words}", Eq(symbol, expression), "define"))

    def postulate(self, equation: Equation, words: str) -> int:
        """What is assumed and neither computed nor proved here. Printed as an assumption."""
        return self._write(Line(f"assumed: {words}", equation, "postulate"))

    def quote(self, theorem: Theorem, words: str = "", from_: Sequence[int] = (), **bound: Any) -> int:
        """What a theorem says of these lines, with its variables bound."""
        reason = f"{theorem.name} ({theorem.citation})" + self._of(from_) + (f": {words}" if words else "")
        return self.compute(lambda *parents: theorem.content(*parents, **bound), reason, from_, "quote", theorem)

    def compute(
        self, rule: Compute, reason: str, from_: Sequence[int] = (), kind: str = "compute", theorem: Any = None
    ) -> int:
        """The equation that `rule` makes of the parents' equations."""
        equation = rule(*(self[place] for place in from_))
        return self._write(Line(reason, equation, kind, tuple(from_), rule, theorem=theorem))

    def substitute(self, into: int, *known: int, words: str = "") -> int:
        """Put the right sides of the lines `known` for their left sides into a line, one after the other."""

        def rule(equation: Equation, *facts: Equation) -> Equation:
            for fact in facts:
                equation = equation.func(*(inserted(side, fact) for side in equation.args), evaluate=False)
            return equation

        reason = f"insert {steps(known)} into {steps([into])}" + (f": {words}" if words else "")
        return self.compute(rule, reason, (into, *known), "substitute")

    def differentiate(self, line: int, symbol: Any, left: Any, words: str = "") -> int:
        """The derivative of a line's right side in `symbol`; `left` names it."""
        reason = f"differentiate {steps([line])}" + (f": {words}" if words else "")
        return self.compute(lambda equation: Eq(left, sp.diff(equation.rhs, symbol)), reason, (line,))

    def limit(self, line: int, symbol: Any, point: Any, left: Any, words: str = "", factor: Any = 1) -> int:
        """The limit of a line's right side, times `factor`, from above (or at ∞); `left` names it."""
        reason = f"limit of {steps([line])}" + (f": {words}" if words else "")

        def rule(equation: Equation) -> Equation:
            return Eq(left, sp.limit(equation.rhs * factor, symbol, point))

        return self.compute(rule, reason, (line,))

    def solve(self, line: int, for_: Any, branch: int, words: str) -> int:
        """Solve a line for a symbol; `branch` is the place of the root in SymPy's order, `words` say which it is."""

        roots = sp.solve(self[line], for_)
        if not roots:
            raise ValueError(f"{steps([line])} has no closed solution for {for_}: write it with `follows`")

        def put_back(root: Equation, equation: Equation) -> Equation:
            return equation.func(*(side.subs(for_, root.rhs) for side in equation.args), evaluate=False)

        return self._write(
            Line(
                f"solve {steps([line])}: {words}",
                Eq(for_, roots[branch]),
                "solve",
                (line,),
                put_back=put_back,
            )
        )

    def follows(self, target: Equation, from_: Sequence[int], words: str, example: Any = None) -> int:
        """The form that reads best, typed by the author and proved to follow from the parents.

        `example` binds what no parent fixes (a node's test spectrum, …) where the proof needs it.
        """
        return self._write(Line(words + self._of(from_, ", from "), target, "follows", tuple(from_), example=example))

    def _of(self, places: Sequence[int], before: str = ", of ") -> str:
        return before + steps(places) if places else ""


def steps(places: Sequence[int]) -> str:
    """ "step 3", "steps 1 and 3"."""
    numbers = [str(place + 1) for place in places]
    if len(numbers) == 1:
        return f"step {numbers[0]}"
    return f"steps {', '.join(numbers[:-1])} and {numbers[-1]}"


def inserted(expression: Any, fact: Equation) -> Any:
    """The expression with the fact's right side for its left side: what is bound inside nodes stays bound."""
    return expression.subs(fact.lhs, fact.rhs)


def reduced(side: Any, facts: Sequence[Equation]) -> Any:
    """A side with everything put in that the facts say, until nothing changes. The facts have no circle."""
    for _ in range(len(facts) + 1):
        before = side
        for fact in facts:
            side = inserted(side, fact)
        if side == before:
            return side
    raise ValueError(f"the parents define one another in a circle: {[str(fact.lhs) for fact in facts]}")


class NodeOfModes:
    """Base of symbolic nodes that an example can work out: `worked_out_for(example)`."""

    def worked_out_for(self, example: Mapping[Any, Any]) -> Any:
        """The node's value for an example."""
        raise NotImplementedError


def _worked_out(side: Any, example: Mapping[Any, Any]) -> Any:
    return side.replace(lambda node: isinstance(node, NodeOfModes), lambda node: node.worked_out_for(example))


EXAMPLE: dict[Any, Any] = {}  # examples for nodes, by node class, that obligations use: filled where nodes are defined


def obligations(lines: Sequence[Line], touched: int | None = None) -> Iterator[Sides]:
    """What the lines claim: for a typed form that it follows, for a computed one that computing it gives it again.

    A solution is put back. `touched`: only what the line in this place and its children claim.
    """
    for number, line in enumerate(lines, start=1):
        if touched is not None and touched not in (number - 1, *line.parents):
            continue
        parents = [lines[place].equation for place in line.parents]
        if line.kind == "follows":
            wanted = line.equation
            for left, right in _sides(wanted, parents):
                example = {**EXAMPLE, **(line.example or {})}
                yield f"step {number} follows", _worked_out(left, example), _worked_out(right, example)
        elif line.compute is not None:
            again = line.compute(*parents)
            if line.equation == again:
                yield f"step {number} is computed again", sp.true, sp.true
            for here, there in zip(line.equation.args, again.args, strict=True):
                if here != there:
                    yield f"step {number} is computed", _worked_out(here, EXAMPLE), _worked_out(there, EXAMPLE)
        elif line.put_back is not None:
            left, right = line.put_back(line.equation, *parents).args
            yield f"step {number} is a root", _worked_out(left, EXAMPLE), _worked_out(right, EXAMPLE)
        elif line.law is not None and line.equation != line.law.statement:
            for here, there in zip(line.equation.args, line.law.statement.args, strict=True):
                yield f"step {number} is the law", _worked_out(here, EXAMPLE), _worked_out(there, EXAMPLE)


def _sides(target: Equation, parents: Sequence[Equation]) -> Iterator[tuple[Any, Any]]:
    if isinstance(target, (sp.And,)):
        for part in target.args:
            yield from _sides(part, parents)
        return
    yield reduced(target.lhs, parents), reduced(target.rhs, parents)


@dataclass(frozen=True, eq=False)
class DerivedLaw(Law):
    """A law whose derivation is written in lines; its evidence are the lines' obligations and its further checks."""

    more_checks: list[Callable[[], Iterable[Sides]]] = field(default_factory=list, repr=False)

    def _derive(self) -> tuple[Step, ...]:
        builder = Builder()
        self.derivation(builder)  # type: ignore[call-arg, unused-ignore]
        return tuple(builder.lines)

    @property
    def lines(self) -> tuple[Line, ...]:
        """The lines of the derivation."""
        return tuple(line for line in self.steps if isinstance(line, Line))

    @cached_property
    def postulates(self) -> tuple[Line, ...]:
        """The lines that are assumed."""
        return tuple(line for line in self.lines if line.kind == "postulate")

    def check(self, words: str) -> Callable[[Callable[[], tuple[Any, Any]]], Callable[[], tuple[Any, Any]]]:
        """Decorator: a function that returns two sides which must agree, as further evidence."""

        def register(sides: Callable[[], tuple[Any, Any]]) -> Callable[[], tuple[Any, Any]]:
            self.more_checks.append(lambda: [(words, *sides())])
            return sides

        return register

    def evidence(self) -> Iterator[Sides]:
        """The obligations of the lines, then the checks."""
        yield from obligations(self.lines)
        for checks in self.more_checks:
            for words, left, right in checks():
                yield words, _worked_out(sp.sympify(left), EXAMPLE), _worked_out(sp.sympify(right), EXAMPLE)

    def mutated(self, place: int, equation: Equation) -> Iterator[Sides]:
        """What the lines would claim if one were another equation: a test must find that contradicted."""
        lines = list(self.lines)
        lines[place] = replace(lines[place], equation=equation)
        yield from obligations(lines, place)


def law(
    id: str,
    title: str,
    *,
    source: str,
    where: Callable[[], Equation] | None = None,
    branch: str = "",
    status: Status = STANDS,
    solves: Callable[[], Iterable[Equation]] | None = None,
) -> Callable[[Callable[[Builder], None]], DerivedLaw]:
    """Decorator that makes a law of a function which writes its lines on a builder. The last line is the statement.

    The other arguments are those of `Law`.
    """

    def make(derivation: Callable[[Builder], None]) -> DerivedLaw:
        made = DerivedLaw(id, title, derivation, source, solves, None, where, branch, status)  # type: ignore[arg-type]
        object.__setattr__(made, "checks", made.evidence)
        return made

    return make
