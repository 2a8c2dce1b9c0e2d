"""Theorems on densities of eigenvalues and their Hilbert transforms: Tricomi's identity, an atom in weak noise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import sympy as sp
from sympy import Rational

from derivations._expectations import SpectralTail
from derivations.core.language import Sides, Theorem


def _squared_transforms(equation: Any, integral: Any) -> Any:
    """The equation with `integral(factor, node)` for every ∫ factor·h² ρ over the whole line."""

    def replaced(node: Any) -> Any:
        body, x, hilbert, lower = node.args
        factor = sp.cancel(body / hilbert**2)
        if lower != -sp.oo or factor.has(x, hilbert):
            raise ValueError(f"the integral must be a multiple of that of h² over the whole line, got {node}")
        return integral(factor, node)

    right = equation.rhs.replace(lambda node: isinstance(node, SpectralTail), replaced)
    return sp.Eq(equation.lhs, right, evaluate=False)


# -- Tricomi's identity ----------------------------------------------------------------------------------------------


def _cube(equation: Any, *, density: Any) -> Any:
    """∫ h² ρ over the whole line becomes (π²/3) ∫ ρ³."""

    def cubed(factor: Any, node: Any) -> Any:
        return factor * sp.pi**2 / 3 * SpectralTail(density**2, *node.args[1:])

    return _squared_transforms(equation, cubed)


def _two_densities() -> Iterator[Sides]:
    """Uniform and semicircle, where h is known: ∫h²ρ and ∫ρ³ by sums over equidistant nodes, exact to 20 digits."""
    x, h, density, t = (sp.Symbol(name, real=True) for name in ("x", "h", "rho", "t"))
    said = _cube(sp.Eq(sp.Symbol("S"), SpectralTail(h**2, x, h, -sp.oo)), density=density).rhs
    factor = said.subs(SpectralTail(density**2, x, h, -sp.oo), 1)

    def total(body: Any, step: Any, count: int) -> Any:
        values = (body.subs(t, step * place).evalf(30) for place in range(-count, count + 1))
        return (sp.Add(*values) * step).evalf(25)

    # x = tanh t, where h = t
    uniform = total(t**2 / sp.cosh(t) ** 2 / 2, Rational(1, 5), 150)
    yield "uniform on [−1, 1]", uniform, (factor * Rational(1, 4)).evalf(25)
    # x = 2 cos t, where h = cos t; a period of 7 nodes
    squares = total(sp.cos(t) ** 2 * sp.sin(t) ** 2 / sp.pi, 2 * sp.pi / 7, 3)
    cubes = total(sp.sin(t) ** 4 / sp.pi**3, 2 * sp.pi / 7, 3)
    yield "semicircle", squares, (factor * cubes).evalf(25)


tricomi = Theorem(
    "Tricomi's identity, integrated",
    "Tricomi 1957",
    "ρ is a probability density with ∫ρ³ finite: G³ = (h − iπρ)³ falls off like z^(−3), so its imaginary part has the "
    "integral 0",
    _cube,
    _two_densities,
    accuracy=1e-15,
)

# -- weak noise ------------------------------------------------------------------------------------------------------


def _band_of_an_atom(equation: Any, *, share: Any, variance: Any) -> Any:
    """∫ h² ρ at leading order as the variance v vanishes, for a target with one atom, of mass `share`."""

    def band(factor: Any, node: Any) -> Any:
        _, x, hilbert, _ = node.args
        own = share * variance
        body = (x / (2 * variance)) ** 2
        return factor * share * SpectralTail(body, x, hilbert, -2 * sp.sqrt(own)).over_semicircle(own)

    return _squared_transforms(equation, band)


def _one_of_two_atoms() -> Iterator[Sides]:
    """Atoms of mass 3/5 at 0 and of 2/5 at 1, v = 1e-8: the band around 0 by the cubic of the Cauchy transform."""
    share, variance = Rational(3, 5), Rational(1, 10**8)
    v, x, h, g = (sp.Symbol(name, positive=True) for name in "vxhg")
    node = SpectralTail(h**2, x, h, -sp.oo)
    said = _band_of_an_atom(sp.Eq(sp.Symbol("S"), node), share=share, variance=v).rhs
    edge, count, total = (2 * sp.sqrt(share * variance)).evalf(30), 24, sp.Float(0, 30)
    for index in range(count):
        angle = (sp.pi * Rational(2 * index + 1, 2 * count)).evalf(30)
        w = edge * sp.cos(angle) - variance * g
        cubic = sp.Poly(sp.expand(g * w * (w - 1) - share * (w - 1) - (1 - share) * w), g)
        value = min(cubic.nroots(n=30, maxsteps=200), key=sp.im)
        total += sp.re(value) ** 2 * -sp.im(value) / sp.pi * edge * sp.sin(angle) * sp.pi / count
    yield "v ∫h²ρ over the band of an atom", (variance * total).evalf(20), sp.simplify(said * v)


atom_in_weak_noise = Theorem(
    "an atom in weak noise",
    "Biane 1997",
    "v → 0 and one atom: it becomes a semicircle of variance v times its mass, in which h = x/(2v) + O(1); elsewhere h "
    "and ρ are bounded",
    _band_of_an_atom,
    _one_of_two_atoms,
    accuracy=1e-3,
)
