"""Symbolic nodes of mean-field equations: Gaussian means, proximal points, spectral integrals, solutions.

A node prints as what it means, can be worked out by hand where it has a closed form (`worked_out`), and a solution
names the function of `numerics` that computes it.
"""

from __future__ import annotations

from typing import Any

import sympy as sp
from sympy.core.symbol import Str

from derivations.core.language import NodeOfModes


class GaussianMean(sp.Function):
    """The mean of an expression over independent standard normal variables. Arguments: expression, variables."""

    nargs = 2

    def worked_out(self) -> Any:
        """The mean of a polynomial, exactly. Raises ValueError for any other expression."""
        body, variables = self.args
        polynomial = sp.Poly(sp.expand(body), *variables)
        if any(variables_in(coefficient, variables) for coefficient in polynomial.coeffs()):
            raise ValueError(f"only the mean of a polynomial has a closed form here, got {body}")
        return sum(
            coefficient * sp.prod([0 if power % 2 else sp.factorial2(power - 1) for power in powers])
            for powers, coefficient in polynomial.terms()
        )

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        body = rf"\mathbf{{E}}\left[{printer._print(self.args[0])}\right]"
        return body if exp is None else rf"\left({body}\right)^{{{exp}}}"

    def _sympystr(self, printer: Any) -> str:
        return f"E[{printer._print(self.args[0])}]"


def variables_in(expression: Any, variables: Any) -> bool:
    """Whether one of the variables occurs in the expression."""
    return bool(expression.free_symbols & set(variables))


class SpectralTail(sp.Function, NodeOfModes):
    """∫ integrand(x, h) ρ(x) dx over x > lower, with ρ the law of the noisy target and h its Hilbert transform.

    Arguments: the integrand, the point x, the Hilbert transform h at x, the lower end.
    """

    nargs = 4

    def worked_out_for(self, example: Any) -> Any:
        """The integral for an example's target."""
        return example[SpectralTail](self)

    def over_semicircle(self, variance: Any) -> Any:
        """The integral over the semicircle of a variance (a target that is 0), where h = x/(2·variance), exactly."""
        body, x, h, lower = self.args
        t, width = sp.Dummy("t", real=True), sp.sqrt(variance)
        polynomial = sp.Poly(sp.expand(body.subs(h, x / (2 * variance)).subs(x, width * t)), t)
        edge = lower / width
        return sum(coefficient * semicircle_tail(power, edge) for (power,), coefficient in polynomial.terms())

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        body, x, _, lower = self.args
        point = printer._print(x)
        below = "" if lower == -sp.oo else rf"_{{{point}>{printer._print(lower)}}}"
        text = rf"\int{below} {printer.parenthesize(body, 50)}\,\rho({point})\,d{point}"
        return text if exp is None else rf"\left({text}\right)^{{{exp}}}"

    def _sympystr(self, printer: Any) -> str:
        body, x, _, lower = self.args
        return f"integral[{printer._print(body)} rho, {x} > {printer._print(lower)}]"


def semicircle_tail(power: int, lower: Any) -> Any:
    """∫_lower^2 t^power √(4−t²)/(2π) dt for −2 ≤ lower ≤ 2, in closed form, by the recursion of the moments.

    With J_k the integral, integrating t^{k−1} d(4−t²)^{3/2} gives
    (k+2) J_k = 4(k−1) J_{k−2} + lower^{k−1}(4−lower²)^{3/2}/(2π).
    """
    root = sp.sqrt(4 - lower**2)
    if power == 0:
        return (2 * sp.acos(lower / 2) - lower * root / 2) / (2 * sp.pi)
    if power == 1:
        return root**3 / (6 * sp.pi)
    rest = 4 * (power - 1) * semicircle_tail(power - 2, lower)
    return (rest + lower ** (power - 1) * root**3 / (2 * sp.pi)) / (power + 2)


def normal_tail(power: int, lower: Any) -> Any:
    """E z^power over a standard normal z > lower: (k − 1) times that of k − 2, plus lower^(k−1) φ(lower)."""
    density = sp.exp(-(lower**2) / 2) / sp.sqrt(2 * sp.pi)
    if power == 0:
        return sp.erfc(lower / sp.sqrt(2)) / 2
    if power == 1:
        return density
    return (power - 1) * normal_tail(power - 2, lower) + lower ** (power - 1) * density


class Proximal(sp.Function):
    """The point h that minimises an objective. Arguments: the objective, the point (a symbol) over which it runs."""

    nargs = 2

    def worked_out(self) -> Any:
        """The minimiser of an objective that is quadratic in the point."""
        objective, point = self.args
        return sp.cancel(sp.solve(sp.diff(objective, point), point)[0])

    @property
    def free_symbols(self) -> set[Any]:
        return set(self.args[0].free_symbols - {self.args[1]})

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        objective, point = self.args
        body = rf"\operatorname{{argmin}}_{{{printer._print(point)}}}\left[{printer._print(objective)}\right]"
        return body if exp is None else rf"\left({body}\right)^{{{exp}}}"

    def _sympystr(self, printer: Any) -> str:
        return f"argmin_{self.args[1]}[{printer._print(self.args[0])}]"


FIXED_POINT = sp.Integer(-1)  # in place of an iteration's number: the limit


class Solution(sp.Function):
    """A component of the solution of the mean-field equations at given parameters, computed by `numerics`.

    Arguments: the names of component and penalty, the values of PARAMETERS, and an iteration (or FIXED_POINT).
    """

    implementation = "numerics.state_evolution:solution_component"
    PARAMETERS = ("alpha", "lam", "kappa0", "noise", "kappa", "beta", "beta_target", "tokens", "diagonal")

    @classmethod
    def of(cls, component: str, penalty: str, *values: Any, iteration: Any = FIXED_POINT) -> Any:
        """The node for a component by name; `iteration` >= 0 is an iterate of the algorithm instead of its limit."""
        if len(values) != len(cls.PARAMETERS):
            raise ValueError(f"a solution needs {', '.join(cls.PARAMETERS)}, got {len(values)} values")
        return cls(Str(component), Str(penalty), *values, iteration)

    def numeric(self) -> tuple[Any, tuple[Any, ...]]:
        """What the implementation needs: the names, and the expressions that become numbers."""
        return (self.args[0].name, self.args[1].name), self.args[2:]

    @property
    def free_symbols(self) -> set[Any]:
        return set().union(*(argument.free_symbols for argument in self.args[2:]))

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        names = ", ".join(printer._print(argument) for argument in self.args[2:6])
        iterate = r"\star" if self.args[-1] == -1 else rf"({printer._print(self.args[-1])})"
        text = rf"{sp.latex(sp.Symbol(self.args[0].name))}^{{{iterate}}}\left({names}\right)"
        return text if exp is None else rf"\left({text}\right)^{{{exp}}}"

    def _sympystr(self, printer: Any) -> str:
        return f"{self.args[0]}*({', '.join(map(str, self.args[2:6]))})"
