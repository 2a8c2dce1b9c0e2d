"""A small chapter for the tests of the printer and of the generic test of laws, with one law of every kind.

It lives outside `derivations`, so it is no chapter of the project; tests load it under a name of their own.
"""

from __future__ import annotations

import sys
from types import ModuleType

import sympy as sp
from sympy import Eq, Interval, Rational, oo

from derivations.core import Average, Chapter, Law, Quantity, measured, observable, parameter, superseded, variable

rate = parameter("rate", "growth rate λ, 100 % & more per year", Interval.open(0, oo), (Rational(1, 5), 3))
time = variable("time", "time since the start", Interval(0, oo), (Rational(1, 3), 2), notation="t")
root = variable("root", "positive root", Interval.open(0, oo))
eigenvalue = observable("eigenvalues", "eigenvalues of S/κ", notation=r"\lambda")
mean = measured("mean", "mean eigenvalue", Average(eigenvalue), domain=Interval(0, oo))
unused = variable("unused", "occurs in no law")


def _quadratic():
    yield "definition, with ⊠ and $x_δ$ in 5 % of cases & ‖a‖² → δ", Eq(root * (root + rate), 1)
    yield "expand", Eq(root**2 + rate * root, 1)
    yield "quadratic formula, positive root", Eq(root, (sp.sqrt(rate**2 + 4) - rate) / 2)


quadratic = Law(
    "toy-root",
    "Positive root of a quadratic",
    _quadratic,
    source="derived here",
    solves=lambda: [Eq(root**2 + rate * root, 1)],
    where=lambda: sp.And(rate > 0, rate < 100),
    branch="the positive root",
)


def _growth():
    yield "the root", quadratic.statement
    yield "mean after a time", Eq(mean, sp.exp(quadratic.right * time))


growth = Law(
    "toy-growth",
    "Growth at the root",
    _growth,
    source="derived here",
    checks=lambda: [("at the start", growth.right.subs(time, 0), 1 + 0 * growth.right), _logarithm()],
)


def _logarithm():
    return "its logarithm is linear", sp.log(growth.right), quadratic.right * time


def _old():
    yield "quoted", Eq(mean, 1 + rate, evaluate=False)
    yield "as a product", Eq(mean, (1 + rate) ** 2 / (1 + rate) + rate * time, evaluate=False)


old = Law(
    "toy-linear",
    "Linear growth",
    _old,
    source="derived here",
    checks=lambda: [("at the start", old.right.subs(time, 0), 1 + rate), ("slope", sp.diff(old.right, time), rate)],
    status=superseded("toy-growth", "linear model", "growth model"),
)


def load(name: str = "toy_chapter") -> Chapter:
    """The toy chapter, in the form that discovery gives to a real one."""
    module: ModuleType = sys.modules[__name__]
    laws = tuple(value for value in vars(module).values() if isinstance(value, Law))
    quantities = tuple(value for value in vars(module).values() if isinstance(value, Quantity))
    return Chapter(name, module, laws, (), quantities)
