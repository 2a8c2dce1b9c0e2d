"""Learning few modes from few sequences: learning curves, emergence, regimes and their exponents, the best penalty."""

from numerics.error_causes import ErrorCauses
from numerics.scaling_laws.extensive import best
from numerics.scaling_laws.interpolation import bayes_error, interpolating_component, interpolating_error
from numerics.scaling_laws.lasso import lasso_error
from numerics.scaling_laws.learning import (
    LearnedModes,
    best_penalty,
    critical_penalty,
    emergence,
    learned,
    spiked_component,
)
from numerics.scaling_laws.regimes import REGIMES, exponent, phase, prefactor

__all__ = [
    "REGIMES",
    "ErrorCauses",
    "LearnedModes",
    "bayes_error",
    "best",
    "best_penalty",
    "critical_penalty",
    "emergence",
    "exponent",
    "interpolating_component",
    "interpolating_error",
    "lasso_error",
    "learned",
    "phase",
    "prefactor",
    "spiked_component",
]
