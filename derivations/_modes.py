"""Sums over the modes of a target as symbolic nodes, and the solutions of equations that are written with them.

A node carries its summand; numbers come from power sums over the modes. A target of power-law strengths has infinitely
many modes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sympy as sp
from sympy.core.symbol import Str

from derivations._expectations import FIXED_POINT
from derivations.core.language import EXAMPLE, NodeOfModes


class ModeSum(sp.Function, NodeOfModes):
    """Σ summand(σ) over the modes of strength lower < σ ≤ upper. Arguments: summand, σ, lower, upper."""

    nargs = 4

    @property
    def free_symbols(self) -> set[Any]:
        body, strength, lower, upper = self.args
        return set((body.free_symbols - {strength}) | lower.free_symbols | upper.free_symbols)

    def _eval_subs(self, old: Any, new: Any) -> Any:
        body, strength, *ends = self.args
        if old == strength:
            return self
        return self.func(body.subs(old, new), strength, *(end.subs(old, new) for end in ends))

    def worked_out_for(self, example: Mapping[Any, Any]) -> Any:
        """The sum over the strengths of an example."""
        body, strength, lower, upper = self.args
        return sp.Add(
            *(
                sp.Piecewise((body.subs(strength, value), (value > lower) & (value <= upper)), (0, True))
                for value in example[ModeSum]
            )
        )

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        body, strength, lower, upper = self.args
        name = printer._print(strength)
        ends = [f"{name}>{printer._print(lower)}"] if lower != 0 else []
        ends += [rf"{name}\leq {printer._print(upper)}"] if upper != sp.oo else []
        text = rf"\sum_{{{', '.join(ends) or name}}} {printer.parenthesize(body, 45)}"
        return rf"\left({text}\right)" + ("" if exp is None else f"^{{{exp}}}")

    def _sympystr(self, printer: Any) -> str:
        body, strength, lower, upper = self.args
        ends = [f"{strength} > {lower}"] if lower != 0 else []
        ends += [f"{strength} <= {upper}"] if upper != sp.oo else []
        return f"sum[{printer._print(body)} over {' and '.join(ends) or strength}]"


# Strengths with which the lines of derivations are tried: three that stand out, two that do not.
EXAMPLE[ModeSum] = tuple(sp.Rational(*pair) for pair in ((9, 2), (7, 3), (5, 3), (1, 40), (1, 60)))


class _Computed(sp.Function):
    """Base of nodes whose value `numerics` computes from names and numbers."""

    PARAMETERS: tuple[str, ...] = ()
    is_number = False  # SymPy itself cannot evaluate it, so it must not be asked to compare

    @property
    def free_symbols(self) -> set[Any]:
        return set().union(*(argument.free_symbols for argument in self.args[1:]))

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        names = ", ".join(printer._print(argument) for argument in self.args[1:])
        text = rf"{sp.latex(sp.Symbol(self.args[0].name.partition(':')[0]))}^{{\star}}\left({names}\right)"
        return text if exp is None else rf"\left({text}\right)^{{{exp}}}"

    def _sympystr(self, printer: Any) -> str:
        return f"{self.args[0]}*({', '.join(map(str, self.args[1:]))})"


class SpikedSolution(_Computed):
    """A component of the learned matrix in the spiked limit. Arguments: "component:output", then PARAMETERS."""

    implementation = "numerics.scaling_laws:spiked_component"
    PARAMETERS = ("n_eff", "gamma", "ell", "noise", "tokens")

    @classmethod
    def of(cls, component: str, output: str, *values: Any) -> Any:
        """The node for a component ("error", "test_error", …) and an output ("softmax", "linear", "quadratic")."""
        return cls(Str(f"{component}:{output}"), *(sp.sympify(value, strict=True) for value in values))

    def numeric(self) -> tuple[Any, tuple[Any, ...]]:
        """What the implementation needs: the names, and the expressions that become numbers."""
        return tuple(self.args[0].name.split(":")), self.args[1:]


class FiniteSolution(_Computed):
    """A component of the mean-field solution for a power-law target of finite dimension, whose d modes are all there.

    Arguments: the component, then PARAMETERS.
    """

    implementation = "numerics.finite_dimension:finite_component"
    PARAMETERS = ("n_eff", "gamma", "ell", "noise", "dimension")

    @classmethod
    def of(cls, component: str, *values: Any) -> Any:
        """The node for a component ("excess", "test_error", …) of a trained softmax layer of two tokens."""
        return cls(Str(component), *(sp.sympify(value, strict=True) for value in values))

    def numeric(self) -> tuple[Any, tuple[Any, ...]]:
        """What the implementation needs: the component's name, and the expressions that become numbers."""
        return self.args[0].name, self.args[1:]


class FiniteInterpolation(_Computed):
    """A component of the solution as λ → 0⁺ for a power-law target of finite dimension, whatever the outputs.

    Arguments: the component, then PARAMETERS.
    """

    implementation = "numerics.finite_dimension:interpolating_component"
    PARAMETERS = ("n_eff", "gamma", "noise", "outputs", "dimension")

    @classmethod
    def of(cls, component: str, *values: Any) -> Any:
        """The node for a component ("error", "variance" or "threshold")."""
        return cls(Str(component), *(sp.sympify(value, strict=True) for value in values))

    def numeric(self) -> tuple[Any, tuple[Any, ...]]:
        """What the implementation needs: the component's name, and the expressions that become numbers."""
        return self.args[0].name, self.args[1:]


class InterpolatingError(_Computed):
    """The E that solves δ² = (E + Δ/2)/(2Kn) with E = Σ σ² F(δ/σ), F the relative error of a mode.

    Arguments: a name, then F as a Lambda (for δ < σ; lost modes have 1), then PARAMETERS.
    """

    implementation = "numerics.scaling_laws:interpolating_component"
    PARAMETERS = ("n_eff", "gamma", "noise", "outputs")

    @classmethod
    def of(cls, mode_error: Any, *values: Any) -> Any:
        """The node for a relative error of a mode."""
        return cls(Str("E"), mode_error, *(sp.sympify(value, strict=True) for value in values))

    def numeric(self) -> tuple[Any, tuple[Any, ...]]:
        """What the implementation needs: the mode's error, and the expressions that become numbers."""
        return self.args[1], self.args[2:]

    @property
    def free_symbols(self) -> set[Any]:
        return set().union(*(argument.free_symbols for argument in self.args[2:]))


class BayesSolution(_Computed):
    """Error or square of the Bayes-optimal estimate at extensive rank, or of the estimate with another denoiser.

    Arguments: "component:denoiser", PARAMETERS, and an iteration of message passing from 0 (or FIXED_POINT).
    """

    implementation = "numerics.bayes_optimal:solution_component"
    PARAMETERS = ("alpha", "kappa0", "noise", "outputs")

    @classmethod
    def of(cls, component: str, denoiser: str, *values: Any, iteration: Any = FIXED_POINT) -> Any:
        """The node for a component ("error", "square") and a denoiser ("bayes", "entries", "uncut", "positive")."""
        return cls(Str(f"{component}:{denoiser}"), *(sp.sympify(value, strict=True) for value in values), iteration)

    def numeric(self) -> tuple[Any, tuple[Any, ...]]:
        """What the implementation needs: the names, and the expressions that become numbers."""
        return tuple(self.args[0].name.split(":")), self.args[1:]
