"""The spectral moments of the token model as four observables with names of their own.

`token_moments` reports them as one vector; a statement that combines moments of different order reads them from here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from verify.samplers import sampler
from verify.samplers.pooled import token_moments
from verify.samplers.wishart import Draw


@sampler("token_traces")
def token_traces(
    size: int, generator: np.random.Generator, parameters: dict[str, float], options: dict[str, Any]
) -> Draw:
    """A draw of `token_moments`: `trace_1` … `trace_4`, the values of (1/d) tr (S/κ)^k, with `delta` and `gamma`.

    Options: `length` T, `weights` (a mapping of the positions, in their order, to numbers).
    """
    weights = tuple(options["weights"].values())
    drawn = token_moments(size, generator, parameters, {**options, "weights": weights})
    traces = {f"trace_{order}": float(value) for order, value in enumerate(drawn["moments"], 1)}
    return {**traces, "delta": drawn["delta"], "gamma": drawn["gamma"]}
