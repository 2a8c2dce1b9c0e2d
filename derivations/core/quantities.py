"""Symbols with meaning: each is declared once, with its domain, its typical range and what measures it.

The printed notation table, the validation of user input, the test points and the columns that a claim reads
all come from these declarations.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import sympy as sp

_KINDS = ("parameter", "variable", "measured", "observable")


def _assumptions(domain: sp.Set) -> dict[str, bool]:
    """The SymPy assumptions that a domain implies, so that simplification may use them."""
    if domain == sp.S.Complexes:
        return {"complex": True}
    assumptions: dict[str, bool] = {"real": True}
    if domain.is_subset(sp.S.Integers):
        assumptions["integer"] = True
    if domain.is_subset(sp.Interval.open(0, sp.oo)):
        assumptions["positive"] = True
    elif domain.is_subset(sp.Interval(0, sp.oo)):
        assumptions["nonnegative"] = True
    return assumptions


class Quantity(sp.Symbol):
    """A SymPy symbol that knows what it stands for.

    Two quantities are equal only if name, assumptions *and* meaning agree, so two chapters may both have an `m`.

    Attributes: `meaning` (a phrase, with its unit where it has one), `domain` (a SymPy set), `typical` (a pair
    that spans the usual range, or a tuple of probe points), `kind` (parameter, variable, measured, observable),
    `definition` (for a measured quantity: the expression in raw observables that measures it), `notation` (LaTeX).
    """

    __slots__ = ("definition", "domain", "kind", "meaning", "notation", "typical")

    kind: str
    meaning: str
    domain: sp.Set
    typical: tuple[sp.Expr, ...]
    definition: sp.Expr | None
    notation: str | None

    def __new__(
        cls,
        name: str,
        *,
        kind: str,
        meaning: str,
        domain: sp.Set = sp.S.Reals,
        typical: tuple[Any, ...] = (),
        definition: sp.Expr | None = None,
        notation: str | None = None,
    ) -> Quantity:
        if kind not in _KINDS:
            raise ValueError(f"kind must be one of {', '.join(_KINDS)}, got {kind!r}")
        if not name.isidentifier():
            raise ValueError(f"name must be an identifier (it becomes an argument of compiled code), got {name!r}")
        self = sp.Symbol.__xnew__(cls, name, **_assumptions(domain))
        self.kind, self.meaning, self.domain = kind, meaning, domain
        self.typical = tuple(sp.sympify(value) for value in typical)  # numbers of our own chapters, never user text
        self.definition, self.notation = definition, notation
        return self  # type: ignore[no-any-return]

    def _hashable_content(self) -> tuple[Any, ...]:
        return (*super()._hashable_content(), self.kind, self.meaning)

    def __getnewargs_ex__(self) -> tuple[tuple[str], dict[str, Any]]:
        fields = ("kind", "meaning", "domain", "typical", "definition", "notation")
        return (self.name,), {field: getattr(self, field) for field in fields}

    def __getstate__(self) -> None:
        return None

    def _latex(self, printer: Any) -> str:
        return self.notation if self.notation is not None else printer._deal_with_super_sub(self.name)

    def draws(self, count: int) -> Iterator[sp.Expr]:
        """`count` exact test points: the probes themselves, or rationals spread over the typical range.

        The points are deterministic and depend on the name, so two quantities of one law never move in step.
        """
        if not self.typical:
            raise ValueError(f"{self.name} declares no typical range, so no test point can be drawn for it")
        low, high = self.typical[0], self.typical[-1]
        probes = len(self.typical) != 2 or not (low.is_real and high.is_real)
        offset = sum(map(ord, self.name)) % 89
        for index in range(count):
            if probes:
                yield self.typical[(index + offset) % len(self.typical)]
            elif self.is_integer:
                span = int(high - low) + 1
                yield low + (offset + 7 * index + index * index) % span
            else:
                fraction = sp.Rational((55 * (index + 1) + offset) % 89 + 1, 91)
                yield low + (high - low) * fraction


class Average(sp.Function):
    """The mean of an expression over the eigenvalues of one sampled matrix (an empirical spectral average)."""

    nargs = 1

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        body = rf"\left\langle {printer._print(self.args[0])} \right\rangle"
        return body if exp is None else rf"{body}^{{{exp}}}"

    def _sympystr(self, printer: Any) -> str:
        return f"mean[{printer._print(self.args[0])}]"


def parameter(name: str, meaning: str, domain: sp.Set, typical: tuple[Any, ...], **more: Any) -> Quantity:
    """A number that the user chooses."""
    return Quantity(name, kind="parameter", meaning=meaning, domain=domain, typical=typical, **more)


def variable(
    name: str, meaning: str, domain: sp.Set = sp.S.Reals, typical: tuple[Any, ...] = (), **more: Any
) -> Quantity:
    """An argument or an intermediate quantity of a derivation."""
    return Quantity(name, kind="variable", meaning=meaning, domain=domain, typical=typical, **more)


def measured(
    name: str, meaning: str, definition: sp.Expr | None = None, domain: sp.Set = sp.S.Reals, **more: Any
) -> Quantity:
    """A quantity that a law predicts; `definition` says how raw observables measure it (None: no observable)."""
    return Quantity(name, kind="measured", meaning=meaning, definition=definition, domain=domain, **more)


def observable(name: str, meaning: str, domain: sp.Set = sp.S.Reals, **more: Any) -> Quantity:
    """A raw number (or one number per eigenvalue) that a sampler reports under this name."""
    return Quantity(name, kind="observable", meaning=meaning, domain=domain, **more)
