"""What a user may pass by mistake where a real number is asked for, as strategies for hypothesis."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st

NO_NUMBER: tuple[Any, ...] = (
    *(None, "", "0.5", "nan", b"1", True, np.True_, 0.5 + 0j, Fraction(1, 2), object(), {}, {"delta": 1}, {0.5}),
    *([[0.5], [0.5, 0.5]], [None], ["0.5"], [True, 0.5], np.array(["a"]), np.array([0.5 + 1j])),
)
NOT_FINITE: tuple[Any, ...] = (math.nan, math.inf, -math.inf, [0.5, math.nan], np.array([math.inf]))

no_real_number = st.sampled_from(NO_NUMBER + NOT_FINITE)
negative = st.floats(max_value=-1e-300, allow_infinity=False)


def outside(low: float, high: float) -> st.SearchStrategy[float]:
    """Finite numbers outside [low, high]."""
    below = st.floats(max_value=low, exclude_max=True, allow_infinity=False, allow_nan=False)
    return below | st.floats(min_value=high, exclude_min=True, allow_infinity=False, allow_nan=False)
