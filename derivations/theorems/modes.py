"""Theorems on targets of few or many modes: outliers of finite-rank perturbations, sums that become integrals.

Also the inequality of Ky Fan type that keeps each cause of the error positive.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import sympy as sp
from sympy import Rational

from derivations._expectations import SpectralTail
from derivations._modes import ModeSum
from derivations.core.language import Sides, Theorem

# -- finitely many modes over a bulk of zeros ------------------------------------------------------------------------


def _outliers(equation: Any, place: Any, *, strength: Any, weight: Any, lowest: Any, bulk: Any = 0) -> Any:
    """∫ f(x, h) ρ dx over x > ε becomes the sum of f(x_s, 1/s) over the modes that stand out, each of weight 1/d.

    `place` says where a mode stands; `strength` = (s, s in terms of σ, σ); `bulk` is what the bulk adds, times d.
    """

    def summed(node: Any) -> Any:
        body, x, hilbert, _ = node.args
        at = body.subs({hilbert: 1 / strength[1]}).subs(x, place.rhs).subs(strength[0], strength[1])
        return ModeSum(sp.expand(weight * at), strength[2], lowest, sp.oo) + weight * bulk

    replaced = equation.rhs.replace(lambda node: isinstance(node, SpectralTail), summed)
    return sp.Eq(equation.lhs, replaced, evaluate=False)


def _one_mode_over_zeros() -> Iterator[Sides]:
    """One mode s = 3 of weight w over zeros, v = 1: moments of its band by contour integrals of G and G²."""
    weight, variance, mode = Rational(1, 10**7), sp.Integer(1), sp.Integer(3)
    centre, radius, count = mode + variance / mode, Rational(1, 2), 32
    g = sp.Symbol("g")
    sums = {"∫ρ": 0, "∫xρ": 0, "∫xhρ": 0}
    for index in range(count):
        turn = sp.exp(2 * sp.pi * sp.I * Rational(2 * index + 1, 2 * count)).evalf(30)
        z = centre + radius * turn
        w = z - variance * g
        cubic = sp.Poly(sp.expand(g * w * (w - mode) - (1 - weight) * (w - mode) - weight * w), g)
        bulk = (z - sp.sqrt(z - 2) * sp.sqrt(z + 2)) / 2  # the transform without the mode
        value = min(cubic.nroots(n=30), key=lambda root, bulk=bulk: abs(sp.N(root - bulk, 30)))
        step = radius * turn / count
        sums["∫ρ"] += value * step
        sums["∫xρ"] += z * value * step
        sums["∫xhρ"] += z * value**2 / 2 * step
    expected = {"∫ρ": weight, "∫xρ": weight * centre, "∫xhρ": weight * centre / mode}
    for words, total in sums.items():
        yield f"{words} over the band of one mode", sp.re(total) / weight, expected[words] / weight


outliers_of_few_modes = Theorem(
    "outliers of a finite-rank perturbation",
    "Benaych-Georges & Nadakuditi 2011",
    "finitely many modes s over a bulk of vanishing weight: each with s² > v makes one eigenvalue x_s = s + v/s of "
    "weight 1/d, at which the transform of the bulk is 1/s",
    _outliers,
    _one_mode_over_zeros,
    accuracy=1e-5,
)

# -- many modes ------------------------------------------------------------------------------------------------------


def _continuum(equation: Any, *, leading: Any, exponent: Any) -> Any:
    """Σ f(σ) over σ_i = σ_1 i^(−γ) becomes ∫ f(σ) di with i = (σ_1/σ)^(1/γ), for Laurent polynomials f."""

    def integral(node: Any) -> Any:
        body, strength, lower, upper = node.args
        total = sp.Integer(0)
        for term in sp.Add.make_args(sp.expand(body)):
            factor, power = term.as_independent(strength)
            degree = _degree(power, strength)
            rate = degree - 1 / exponent
            top = upper**rate if upper != sp.oo else 0
            bottom = lower**rate if lower != 0 else 0
            total += factor * (top - bottom) / rate
        return leading ** (1 / exponent) / exponent * total

    return sp.Eq(equation.lhs, equation.rhs.replace(lambda node: isinstance(node, ModeSum), integral), evaluate=False)


def _degree(power: Any, strength: Any) -> Any:
    base, degree = power.as_base_exp()
    if power == 1:
        return sp.Integer(0)
    if base != strength or not degree.is_Integer:
        raise ValueError(f"summand must be a Laurent polynomial in {strength}, got the factor {power}")
    return degree


def _many_modes() -> Iterator[Sides]:
    """γ = 1, σ_1 = 1: Σ_{i ≤ k} and Σ_{i > k} of σ_i², of 1 and of 1/σ_i at k = 4000."""
    k = 4000
    strength, edge = sp.Symbol("sigma", positive=True), Rational(1, k)
    exact = {
        (2, 0, edge): sp.zeta(2) - sum(Rational(1, i * i) for i in range(1, k + 1)),
        (0, edge, sp.oo): sp.Integer(k),
        (-1, edge, sp.oo): sp.Integer(k * (k + 1) // 2),
    }
    for (power, lower, upper), value in exact.items():
        node = ModeSum(strength**power, strength, sp.Integer(0) + lower, upper)
        found = _continuum(sp.Eq(sp.Symbol("S"), node), leading=sp.Integer(1), exponent=sp.Integer(1)).rhs
        yield f"sum of the powers {power} of many modes", sp.N(value, 30), sp.N(found, 30)


def _normal_tail(equation: Any, *, argument: Any) -> Any:
    """log of a two-sided normal tail erfc(c/√2), over −c²/2, tends to 1 as c → ∞."""
    if equation.rhs != sp.erfc(argument / sp.sqrt(2)):
        raise ValueError(f"the tail must be erfc({argument}/sqrt(2)), got {equation.rhs}")
    return sp.Eq(sp.log(equation.lhs) / argument**2, -Rational(1, 2), evaluate=False)


def _a_far_tail() -> Iterator[Sides]:
    """c = 200."""
    c = sp.Integer(200)
    yield "log of the tail over c²", sp.log(sp.erfc(c / sp.sqrt(2))).evalf(30) / c**2, -Rational(1, 2)


tail_of_a_normal = Theorem(
    "Mills' ratio, leading order",
    "Feller 1968",
    "the argument is large: relative corrections of the exponent are of order log(c)/c²",
    _normal_tail,
    _a_far_tail,
    accuracy=1e-3,
)

sums_become_integrals = Theorem(
    "Euler–Maclaurin, leading term",
    "Apostol 1999",
    "many modes take part: the summand changes little from one to the next",
    _continuum,
    _many_modes,
    accuracy=1e-3,
)
