"""Laws: a derivation whose last step is the statement, and the evidence that the statement can be checked against.

A law uses another law by reading its statement; these reads are recorded, so the graph of uses cannot drift from
the derivations. A derivation runs at first use, never at import.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import sympy as sp

Equation = Any  # a SymPy relational or Boolean; SymPy ships no types
Derivation = Callable[[], Iterable[tuple[str, Equation]]]

_running: list[Law] = []


@dataclass(frozen=True)
class Step:
    """One line of a derivation: the theorem or definition that it uses, and the equation reached."""

    reason: str
    equation: Equation


@dataclass(frozen=True)
class Status:
    """Whether a law stands, or by which law it is superseded and under which model."""

    stands: bool = True
    superseded_by: str = ""
    exact_for: str = ""
    not_for: str = ""

    def __str__(self) -> str:
        if self.stands:
            return "stands"
        return f"exact for the {self.exact_for}, superseded in the {self.not_for} by {self.superseded_by}"


STANDS = Status()


def superseded(by: str, exact_for: str, not_for: str) -> Status:
    """The status of a statement that is exact for one model and wrong for another one that it is quoted for."""
    return Status(stands=False, superseded_by=by, exact_for=exact_for, not_for=not_for)


@dataclass(frozen=True, eq=False)
class Law:
    """A statement with its derivation.

    `derivation` yields `(reason, equation)`; the last equation is the statement. `solves` yields equations that the
    statement must satisfy when it is put back, and `checks` yields `(reason, left, right)` that must agree: limits,
    symmetries, other derivations. `where` is the condition under which the statement holds; `branch` says in words
    which solution is meant. Raises at first use if a derivation is empty or if laws use one another in a circle.
    """

    id: str
    title: str
    derivation: Derivation
    source: str
    solves: Callable[[], Iterable[Equation]] | None = None
    checks: Callable[[], Iterable[tuple[str, Any, Any]]] | None = None
    where: Callable[[], Equation] | None = None
    branch: str = ""
    status: Status = STANDS
    _uses: list[Law] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        if not all(part.isalnum() and part == part.lower() for part in self.id.split("-")):
            raise ValueError(f"a law's id must be kebab-case, got {self.id!r}")

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The derivation, run once."""
        if self in _running:
            circle = " -> ".join(law.id for law in [*_running[_running.index(self) :], self])
            raise ValueError(f"laws use one another in a circle: {circle}; derive one of them without the others")
        _running.append(self)
        try:
            steps = self._derive()
        finally:
            _running.pop()
        if not steps:
            raise ValueError(f"the derivation of {self.id} yields no step; its last step must be the statement")
        for step in steps:
            if step.equation in (sp.true, sp.false):
                raise ValueError(
                    f"a step of {self.id} ({step.reason}) collapsed to {step.equation}; keep it unevaluated"
                )
        return steps

    def _derive(self) -> tuple[Step, ...]:
        return tuple(Step(reason, equation) for reason, equation in self.derivation())

    @property
    def statement(self) -> Equation:
        """The last step: what is printed, compiled and judged."""
        statement = self.steps[-1].equation
        if _running and self not in _running[-1]._uses:
            _running[-1]._uses.append(self)
        return statement

    @property
    def left(self) -> Any:
        """The left side of the statement: what the law predicts."""
        return self.statement.lhs

    @property
    def right(self) -> Any:
        """The right side of the statement: the formula."""
        return self.statement.rhs

    @property
    def uses(self) -> tuple[Law, ...]:
        """The laws whose statements this derivation read, in order of first use."""
        _ = self.steps
        return tuple(self._uses)

    def rival(self, *, left: Any = None, right: Any = None, **replaced: Any) -> Equation:
        """A plausible wrong formula: the statement with a side replaced, or with symbols (by name) replaced."""
        statement = self.statement
        names = {symbol.name: symbol for symbol in statement.free_symbols}
        unknown = sorted(set(replaced) - set(names))
        if unknown:
            raise ValueError(f"{self.id} has no symbol {', '.join(unknown)}; it has {', '.join(sorted(names))}")
        swapped = statement.rhs.subs({names[name]: value for name, value in replaced.items()}, simultaneous=True)
        return statement.func(
            statement.lhs if left is None else left, swapped if right is None else right, evaluate=False
        )

    def off_by(self, fraction: Any, term: int = 0) -> Equation:
        """The statement with one additive term of its right side multiplied by `1 + fraction`."""
        terms = sp.Add.make_args(sp.expand(self.right) if term else self.right)
        changed = sp.Add(*(part * (1 + fraction) if index == term else part for index, part in enumerate(terms)))
        return self.rival(right=changed)
