"""Solutions of one-dimensional flows as symbolic nodes: the flow, and the mean of a noisy recursion near it.

A node carries its right-hand side as a SymPy Lambda: the formula typed in a law is the formula that is integrated.
"""

from __future__ import annotations

from typing import Any

import sympy as sp


class FlowSolution(sp.Function):
    """ρ(t) with dρ/dt = field(ρ) and ρ(0) = start. Arguments: the field (a Lambda), the time, the start."""

    nargs = 3
    is_number = False  # SymPy itself cannot evaluate it, so it must not be asked to compare
    implementation = "numerics.special:flow_solution"

    @classmethod
    def eval(cls, field: Any, time: Any, start: Any) -> Any:
        return start if time == 0 or field.expr == 0 else None

    def fdiff(self, argindex: int = 1) -> Any:
        if argindex != 2:
            raise sp.ArgumentIndexError(self, argindex)
        return self.args[0](self)

    def _eval_is_extended_real(self) -> bool:
        return True

    def numeric(self) -> tuple[Any, tuple[Any, ...]]:
        """What the implementation needs: the field, and the expressions that become arrays."""
        return self.args[0], self.args[1:]

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        _, time, start = (printer._print(argument) for argument in self.args)
        text = rf"\varrho\left({time};\,{start}\right)"
        return text if exp is None else f"{text}^{{{exp}}}"

    def _sympystr(self, printer: Any) -> str:
        _, time, start = (printer._print(argument) for argument in self.args)
        return f"flow({time}; {start})"


class SteppedMean(sp.Function):
    """The mean of ρ after many equal steps of a noisy recursion, to second order in the step.

    Arguments: the rule, a Lambda (mean, variance, step, h, h′, h″, G, S) ↦ (next mean, next variance); the fields, a
    Lambda ρ ↦ (h, G, S) of drift, squared gradient and squared component along the signal; then the start, the step
    and the number of steps. The variance starts at 0.
    """

    nargs = 5
    is_number = False  # SymPy itself cannot evaluate it, so it must not be asked to compare
    implementation = "numerics.special:stepped_mean"

    @classmethod
    def eval(cls, rule: Any, fields: Any, start: Any, step: Any, count: Any) -> Any:
        if count == 0:
            return start
        if count == 1:  # without variance the derivatives of the drift do not matter
            drift, square, toward = fields(start)
            return rule(start, 0, step, drift, 0, 0, square, toward)[0]
        return None

    def _eval_is_extended_real(self) -> bool:
        return True

    def numeric(self) -> tuple[Any, tuple[Any, ...]]:
        """What the implementation needs: rule and fields, and the expressions that become arrays."""
        return self.args[:2], self.args[2:]

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        _, _, start, step, count = (printer._print(argument) for argument in self.args)
        text = rf"\bar\varrho_{{{count}}}\left({start};\,{step}\right)"
        return text if exp is None else f"{text}^{{{exp}}}"

    def _sympystr(self, printer: Any) -> str:
        _, _, start, step, count = (printer._print(argument) for argument in self.args)
        return f"mean_after({count} steps of {step} from {start})"
