"""Toy samplers and toy chapters for the tests of the engine: random numbers whose limits are known.

Worker processes import this module by name, as they import the samplers of the project.
"""

from __future__ import annotations

import sys
import time
from types import ModuleType
from typing import Any

import numpy as np
import sympy as sp
from sympy import Eq, I, Interval, Rational, oo

from derivations.core import (
    Average,
    Chapter,
    Claim,
    Exact,
    Experiment,
    Exponent,
    Law,
    Limit,
    Model,
    Order,
    Verdict,
    measured,
    observable,
    parameter,
    variable,
)
from verify.samplers import sampler

PLAN = {16: 80, 32: 60, 64: 50, 128: 40}
FULL_PLAN = {size: 2 * count for size, count in PLAN.items()}


@sampler("toy")
def draw_toy(
    size: int, generator: np.random.Generator, parameters: dict[str, float], options: dict[str, Any]
) -> dict[str, Any]:
    """A level with two orders of bias, uniform eigenvalues, their number and a realised width."""
    if options["seconds"]:
        time.sleep(options["seconds"])
    if size == options["breaks_at"]:
        raise RuntimeError("this size breaks")
    width = parameters["width"] * (1 + 1 / size)
    values = np.sort(generator.uniform(0, width, size))
    level = 2 * width + 1 + 0.5 / size - 3 / size**2 + generator.normal() / np.sqrt(size)
    powers = [np.mean(values**order) for order in (1, 2, 3)]
    return {"eigenvalues": values, "level": level, "count": size, "half": size // 2, "powers": powers, "width": width}


width = parameter("width", "width of the toy spectrum", Interval.open(0, oo), (Rational(1, 2), 2))
n = variable("n", "order of a moment")
x = variable("x", "spectral argument")
eigenvalue = observable("eigenvalues", "eigenvalues of the toy")
level = observable("level", "a noisy level")
count = observable("count", "number of eigenvalues")
half = observable("half", "half of that number")
powers = observable("powers", "first three moments")
moment = measured("moment", "moment of the toy spectrum", Average(eigenvalue**n))
transform = measured("m", "moment transform", Average(eigenvalue / (x - eigenvalue)))
top = measured("top", "the level, as a law predicts it", level)
theta = variable("theta", "an intermediate strength")

model = Model(
    "toy",
    "a toy",
    (width,),
    (eigenvalue, level, count, half, powers),
    realised=(width,),
    options=("seconds", "breaks_at"),
)


def experiment(name: str = "toy-experiment", seconds: float = 0.0, breaks_at: int = 0, **plans: Any) -> Experiment:
    plans = plans or {"standard": FULL_PLAN, "quick": PLAN}
    return Experiment(
        name, model, {width: Rational(3, 2)}, options={"seconds": seconds, "breaks_at": breaks_at}, **plans
    )


def law(name: str, statement: Any) -> Law:
    def derivation() -> Any:
        yield "declared", statement

    return Law(name, f"Law {name}", derivation, source="derived here")


level_law = law("toy-level", Eq(top, 2 * width + 1))
theta_law = law("toy-theta", Eq(theta, 2 * width))
through_theta = law("toy-through-theta", Eq(top, theta + 1))
moments_law = law("toy-moments", Eq(moment, width**n / (n + 1)))
transform_law = law("toy-transform", Eq(transform, x / width * sp.log(x / (x - width)) - 1))
order_law = law("toy-order", sp.Gt(top, width + 1))
exponent_law = law("toy-exponent", Eq(top, Rational(1, 2)))
half_law = law("toy-half", Eq(half, count / 2))
LIMIT = Limit(rate=1, next=2, resolution=1.0)


def claims(shared: Experiment) -> list[Claim]:
    """One true claim of every kind (and a wrong one that is expected REFUTED), on one experiment."""
    return [
        Claim("level", level_law, shared, LIMIT, lambda: {"one more": level_law.rival(right=2 * width + 4)}),
        Claim("wrong-level", law("wrong", Eq(top, 2 * width + 4)), shared, LIMIT, lambda: {}, expected=Verdict.REFUTED),
        Claim(
            "moments",
            moments_law,
            shared,
            Limit(rate=1, next=2, resolution=1, relative=True),
            lambda: {"order off by one": moments_law.rival(n=n + 1)},
            points=(n, (1, 2, 3)),
        ),
        Claim(
            "powers",
            moments_law,
            shared,
            Limit(rate=1, next=2, resolution=1, relative=True),
            lambda: {"twice": moments_law.rival(right=2 * moments_law.right)},
            reads={moment: powers},
            points=(n, (1, 2, 3)),
        ),
        Claim(
            "transform",
            transform_law,
            shared,
            Limit(rate=1, next=2, resolution=0.5),
            lambda: {"shifted": transform_law.rival(right=transform_law.right + 1)},
            points=(x, (Rational(-1, 3), 1 + I)),
        ),
        Claim("order", order_law, shared, Order(1, 2, 1.0), lambda: {"reversed": sp.Lt(top, width + 1)}),
        Claim(
            "exponent",
            exponent_law,
            shared,
            Exponent("standard deviation", next=1, resolution=9.0),
            lambda: {"far": exponent_law.rival(right=sp.Integer(12))},
        ),
        Claim("half", half_law, shared, Exact(), lambda: {"a third": half_law.rival(right=count / 3)}),
    ]


def chapter(made: list[Claim], name: str = "toys") -> Chapter:
    module = ModuleType(name, "A toy chapter.")
    return Chapter(name, module, (), tuple(made), ())


def slow_chapter() -> Chapter:
    """One claim whose draws take a while: long enough to stop or kill the run."""
    slow = experiment("slow", seconds=0.015)  # a run of seconds: it must not end before it is stopped
    return chapter([Claim("level", level_law, slow, LIMIT, lambda: {"one more": level_law.rival(right=2 * width + 4)})])


def main() -> int:
    """The command line on the slow chapter: what the tests of stopping run as a process of its own."""
    from verify.__main__ import main as verify_main

    return verify_main(sys.argv[1:], [slow_chapter()])
