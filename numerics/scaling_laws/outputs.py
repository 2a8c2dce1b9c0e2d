"""What one sequence gives to the learned matrix in the spiked limit: gain M, power P and curvature W of an output.

Softmax outputs take Gaussian means over proximal points (the channel of the state evolution); linear and quadratic
outputs have closed forms.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from derivations import scaling_laws as chapter
from derivations import state_evolution as equations
from numerics.attention_channel import ManyTokenChannel, Scores, TwoTokenChannel
from numerics.scaling_laws.mode_sums import evaluate, formula
from numerics.scaling_laws.modes import Array
from numerics.validate import real_array, scalar

OUTPUTS = ("softmax", "linear", "quadratic")
NO_RESPONSE = 1e-12  # in place of V = 0, where nothing is learned
NO_SPREAD = 1e-9  # below it Stein's quotient is the divergence itself


class Shares(NamedTuple):
    """Signal gain M, noise power P and curvature W of one sequence."""

    gain: float
    power: float
    curvature: float


@dataclass(frozen=True)
class Distance:
    """How far a learned matrix is from the target: what an output needs to know of it."""

    error: float  # E
    defect: float  # Q₀ − m
    response: float  # V
    square: float  # Q₀
    noise: float  # Δ

    @property
    def overlap(self) -> float:
        """m."""
        return self.square - self.defect

    def scores(self, noise: float) -> Scores:
        """The law of learned and target scores at this label noise."""
        values = {
            equations.excess: self.error,
            equations.defect: self.defect,
            equations.target_square: self.square,
            equations.noise: noise,
        }
        spread = float(formula(equations.small_residual.right)(values))
        label_square = float(formula(equations.label_square_law.right)(values))
        return Scores(self.overlap, float(np.sqrt(max(spread, 0.0))), self.response, label_square)


class Output(Protocol):
    """An output function: its number of scores, its quadrature rules, and what a sequence gives."""

    outputs: float

    @property
    def rules(self) -> tuple[int, ...]:
        """Quadrature rules, which are alternatives of one accuracy."""

    @property
    def levels(self) -> tuple[int, ...]:
        """Levels of refinement."""

    @property
    def goal(self) -> float:
        """Relative error of E at which a finer quadrature is no longer sought."""

    @property
    def tolerance(self) -> float:
        """Relative error of E above which a solution does not count as converged."""

    def shares(self, at: Distance, level: int, rule: int, search: bool) -> Shares:
        """M, P, W at a learned matrix; `search`: look for proximal points afresh."""

    def test_errors(self, at: Distance) -> tuple[float, float]:
        """Loss of fresh sequences against noisy and against clean labels."""

    def error_of_rules(self, values: Array) -> float:
        """Error of the mean of numbers that the rules give."""

    def forget(self) -> None:
        """Drop proximal points that were kept."""


class SoftmaxOutput:
    """Attention of `tokens` tokens at inverse temperatures 1."""

    def __init__(self, tokens: int) -> None:
        self.tokens = tokens
        self.outputs = float(formula(equations.outputs_law.right)({equations.tokens: tokens}))
        self.channel: Any = TwoTokenChannel(1.0, 1.0) if tokens == 2 else ManyTokenChannel(tokens, 1.0, 1.0)
        self.rules = self.channel.rules
        self.tolerance = self.channel.tolerance
        self.levels, self.goal = ((1, 2, 3), 1e-6) if tokens == 2 else ((0, 1, 2), self.tolerance)

    def shares(self, at: Distance, level: int, rule: int, search: bool) -> Shares:
        """M, P, W from the laws of one sequence."""
        scores = at.scores(at.noise)
        means = self.channel.means(level, rule, scores, search)
        spread = scores.spread
        values = {
            equations.pull: means.pull,
            equations.force: means.force if spread > NO_SPREAD else means.smooth_divergence,
            equations.residual_spread: spread if spread > NO_SPREAD else 1.0,
            equations.power: means.power,
            equations.m: scores.overlap,
            equations.label_square: scores.label_square,
        }
        laws = ("gain_of_a_sequence", "power_of_a_sequence", "curvature_of_a_sequence")
        return Shares(*(float(evaluate(law, values)) for law in laws))

    def test_errors(self, at: Distance) -> tuple[float, float]:
        """Loss of fresh sequences against noisy and against clean labels."""
        level = self.levels[0]
        noisy, clean = (
            float(np.mean([self.channel.error(level, rule, at.scores(noise)) for rule in self.rules]))
            for noise in (at.noise, 0.0)
        )
        return noisy, clean

    def error_of_rules(self, values: Array) -> float:
        """Half the difference of interlaced lattices; half the 95 % interval of scrambles."""
        if len(values) == 2:
            return float(np.abs(values[0] - values[1])) / 2
        return float(self.channel.confidence * np.std(values, ddof=1) / np.sqrt(len(values)))

    def forget(self) -> None:
        """Drop proximal points that were kept."""
        self.channel.start()


class LinearOutput:
    """Scores themselves as output: all of a sequence ("linear"), or each token's with itself ("quadratic")."""

    rules, levels, goal, tolerance = (0,), (0,), 1.0, 1.0

    def __init__(self, tokens: int, output: str) -> None:
        law = chapter.linear_outputs if output == "linear" else chapter.quadratic_outputs
        self.outputs = float(formula(law.right)({equations.tokens: tokens}))
        self.stiffness = float(chapter.stiffness_of_entries.right)

    def _values(self, at: Distance) -> dict[Any, float]:
        return {
            chapter.excess: at.error,
            chapter.noise: at.noise,
            chapter.response: at.response,
            chapter.stiffness: self.stiffness,
            chapter.outputs: self.outputs,
        }

    def shares(self, at: Distance, level: int, rule: int, search: bool) -> Shares:
        """M, P, W in closed form."""
        values = self._values(at)
        return Shares(*(float(evaluate(law, values)) for law in ("linear_gain", "linear_power", "linear_curvature")))

    def test_errors(self, at: Distance) -> tuple[float, float]:
        """Loss of fresh sequences against noisy and against clean labels."""
        values = self._values(at)
        noisy, clean = (
            float(evaluate("linear_test_error", {**values, chapter.noise: noise})) for noise in (at.noise, 0.0)
        )
        return noisy, clean

    def error_of_rules(self, values: Array) -> float:
        """Closed forms have none."""
        return 0.0

    def forget(self) -> None:
        """Nothing is kept."""


def output_of(output: Any, tokens: Any) -> Output:
    """The output function of this name. Raises ValueError for an unknown one or a number of tokens that it has not."""
    if output not in OUTPUTS:
        raise ValueError(f"output must be one of {', '.join(OUTPUTS)}, got {output!r}")
    if output == "softmax":
        return SoftmaxOutput(int(scalar(equations.tokens, tokens)))
    count = real_array("tokens", tokens, equations.tokens.meaning)
    if count.ndim or count < 1 or count != np.round(count):
        raise ValueError(f"tokens must be an integer >= 1 for output {output!r}, got {tokens!r}")
    return LinearOutput(int(count), output)
