"""Models, experiments and claims: what is sampled, at which sizes, and what the draws must show.

A claim names a law, the experiment that it reads, the kind of hypothesis, and the wrong formulas that the same
draws must refute. These are descriptions; `verify` draws the samples and judges them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from derivations.core.laws import Law
from derivations.core.quantities import Quantity

TIERS = ("quick", "standard", "full")


class Verdict(Enum):
    """What the draws say of a claim."""

    SUPPORTED = "SUPPORTED"
    REFUTED = "REFUTED"
    UNRESOLVED = "UNRESOLVED"


@dataclass(frozen=True)
class Model:
    """A random object: its parameters (quantities), and the raw observables that its sampler reports by name.

    `realised` lists parameters whose value in a draw differs from the nominal one (d/V, ‖a‖², …) and which the
    sampler therefore reports as well. The sampler in `verify` carries the same name and knows no law.
    """

    name: str
    description: str
    parameters: tuple[Quantity, ...]
    observables: tuple[Quantity, ...]
    realised: tuple[Quantity, ...] = ()
    options: tuple[str, ...] = ()  # further settings of the sampler that are not quantities (a mask's name, …)


@dataclass(frozen=True)
class Experiment:
    """A model at fixed parameters, with the number of replicates at each size (the dimension d) for a tier.

    `parameters` maps the model's parameters to exact numbers, `options` its options to plain values. `quick`,
    `standard` and `full` map size to replicates; standard must contain quick. The full tier doubles standard again and
    again; an experiment that only the full tier draws has `full` instead, which is doubled in the same way.
    """

    name: str
    model: Model
    parameters: Mapping[Quantity, Any]
    standard: Mapping[int, int]
    quick: Mapping[int, int] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    full: Mapping[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        missing = [quantity.name for quantity in self.model.parameters if quantity not in self.parameters]
        extra = [quantity.name for quantity in self.parameters if quantity not in self.model.parameters]
        if missing or extra:
            raise ValueError(f"experiment {self.name}: missing parameters {missing}, unknown parameters {extra}")
        unknown = sorted(set(self.options) ^ set(self.model.options))
        if unknown:
            raise ValueError(
                f"experiment {self.name}: options must be {self.model.options}, got {sorted(self.options)}"
            )
        short = {size: count for size, count in self.quick.items() if self.standard.get(size, 0) < count}
        if short:
            raise ValueError(f"experiment {self.name}: standard must contain quick, it lacks {short}")
        if self.standard and self.full:
            raise ValueError(
                f"experiment {self.name}: full must be empty where there is a standard plan, which the full tier "
                f"doubles; got {dict(self.full)}"
            )


@dataclass(frozen=True)
class Limit:
    """The residual `left − right` tends to 0: E r(N) = L + b N^(−rate) + c N^(−next), and L = 0 is judged.

    `resolution`: the claim is supported only if the family-wise error of L is below it (same unit as the residual,
    or as a fraction of the right side if `relative`). `rates`: where theory gives no exponent, the interval of
    `rate` over which L is profiled (then `rate` and `next` are its centre and the second exponent).
    """

    rate: Any
    next: Any
    resolution: float
    relative: bool = False
    rates: tuple[Any, Any] | None = None
    kind = "limit"


@dataclass(frozen=True)
class Order:
    """The limit of `left − right` is positive for a statement `left > right` (or `left >= right`)."""

    rate: Any
    next: Any
    resolution: float
    relative: bool = False
    rates: tuple[Any, Any] | None = None
    kind = "order"


@dataclass(frozen=True)
class Exponent:
    """The `statistic` ("standard deviation" or "mean") of the left side decays like N^(−right side).

    The left side is the quantity whose decay is measured; `resolution` bounds the family-wise error of the exponent.
    `next` is the relative correction's exponent: statistic = A N^(−e) (1 + c N^(−next)).
    """

    statistic: str
    next: Any
    resolution: float
    kind = "exponent"


@dataclass(frozen=True)
class Exact:
    """`left = right` in every draw, up to rounding (`tolerance`, absolute). No statistics."""

    tolerance: float = 1e-12
    kind = "exact"


Hypothesis = Limit | Order | Exponent | Exact


@dataclass(frozen=True)
class Claim:
    """A law put before the draws of an experiment.

    `reads` says what stands for a symbol of the statement: a raw observable or an expression of observables and
    parameters (default: its `definition`, else the column or parameter of its own name). `given` lists laws (or
    bare equations) whose left side is replaced by their right side, in order, before that: a location law given the
    law for its spike strength. `points` runs one symbol through several values, all of which must hold.
    `rivals` maps a name to a wrong statement (an equation), a wrong tuple of `given`, or a wrong `reads`.
    They are built by a function so that a derivation runs at first use.
    """

    id: str
    law: Law
    experiment: Experiment
    hypothesis: Hypothesis
    rivals: Callable[[], Mapping[str, Any]]
    reads: Mapping[Quantity, Any] = field(default_factory=dict)
    given: tuple[Any, ...] = ()
    points: tuple[Quantity, tuple[Any, ...]] | None = None
    expected: Verdict = Verdict.SUPPORTED
    note: str = ""

    @property
    def tier(self) -> str:
        """The lowest tier that judges this claim."""
        return "quick" if self.experiment.quick else "standard" if self.experiment.standard else "full"
