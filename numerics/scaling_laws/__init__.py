"""Learning few modes from few sequences: learning curves, emergence, regimes and their exponents, the best penalty."""

from numerics.scaling_laws.interpolation import bayes_error, interpolating_component, interpolating_error
from numerics.scaling_laws.learning import (
    Causes,
    LearnedModes,
    best_penalty,
    critical_penalty,
    emergence,
    learned,
    spiked_component,
)

__all__ = [
    "Causes",
    "LearnedModes",
    "bayes_error",
    "best_penalty",
    "critical_penalty",
    "emergence",
    "interpolating_component",
    "interpolating_error",
    "learned",
    "spiked_component",
]
