"""Approximate message passing on the real data of tied attention, iterate by iterate.

`run` is what a person calls; the iteration with its Onsager terms lives beside the sampler of the same name in
`verify.samplers`. A fixed point is a stationary point of the loss that `verify.attention_training` minimises.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from verify.attention_training import TrainingWarning, progress_bar
from verify.samplers.attention_learning import FRESH, Streams, default_parametrisation, draw, measurements
from verify.samplers.attention_message_passing import Denoiser, MessagePassingError, Progress, message_passing
from verify.samplers.attention_minimise import Objective
from verify.samplers.attention_task import Array, Setting, integer, number

__all__ = ["MessagePassing", "MessagePassingError", "run"]

ITERATIONS = 100
TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class MessagePassing:
    """A run. Paths have one entry for each iteration t = 1 … K; the other numbers are those of the last iterate.

    `m_path`, `q_path`, `variance_path`: Tr S S₀/d, Tr S²/d and V after iteration t (state evolution from m = q = 0 and
    the same initial V); `residual_path`: ‖S_t − S_{t−1}‖/√d; `q_channel_path`, `v_channel_path`: q̃ and ṽ of the
    channel that made iterate t. `rank`, `eigenvalues`, losses and errors as in training.
    """

    matrix: Array
    target: Array
    m_path: Array
    q_path: Array
    variance_path: Array
    residual_path: Array
    q_channel_path: Array
    v_channel_path: Array
    train_loss: float
    objective: float
    test_error: float
    test_error_clean: float
    m: float
    q: float
    target_square: float
    rank: float
    eigenvalues: Array
    target_eigenvalues: Array
    alpha: float
    converged: bool
    seconds: float


def run(
    size: int,
    alpha: float,
    lam: float,
    kappa0: float | None = None,
    target: Any = None,
    noise: float = 0.0,
    tokens: int = 2,
    kappa: float = 1.0,
    beta: float = 1.0,
    beta_target: float = 1.0,
    penalty: str = "nuclear",
    parametrisation: str | None = None,
    iterations: int = ITERATIONS,
    initial_variance: float = 1.0,
    damping: float = 0.0,
    tolerance: float = TOLERANCE,
    fresh: int = FRESH,
    random_state: Any = None,
    progress: bool = False,
) -> MessagePassing:
    """Iterate from S = 0 until the residual is at most `tolerance`, at most `iterations` times.

    Parameters as in `verify.attention_training.train`; the same `random_state` draws the same data. `kappa` scales
    weight decay only: no width limits the rank. `initial_variance` V > 0; `damping` in [0, 1) keeps the fixed points
    but not the step-by-step state evolution. A run that stops above `tolerance` warns (TrainingWarning).
    Raises ValueError for bad input, MessagePassingError where an iterate has no meaning.
    """
    setting = Setting(noise, beta, beta_target, tokens)
    integer("fresh", fresh, 1, "fresh sequences for the test error")
    number("tolerance", tolerance, least=0.0)
    streams = Streams.of(np.random.default_rng(random_state))
    shape = default_parametrisation(penalty) if parametrisation is None else parametrisation
    denoiser = Denoiser.of(lam, kappa, penalty, shape)
    data = draw(size, alpha, kappa0, target, setting, streams.data)
    began = time.perf_counter()
    with _iteration_bar(iterations, progress) as report:
        found = message_passing(data, denoiser, iterations, initial_variance, damping, tolerance, report)
    seconds = time.perf_counter() - began
    if not found.converged:
        warnings.warn(
            f"message passing stopped at a residual of {found.residual[-1]:.2g} after {len(found.m)} iterations "
            f"(tolerance {tolerance:.2g}); allow more iterations, or damp",
            TrainingWarning,
            stacklevel=2,
        )
    return MessagePassing(
        matrix=found.matrix,
        target=data.target,
        m_path=found.m,
        q_path=found.q,
        variance_path=found.variance,
        residual_path=found.residual,
        q_channel_path=found.q_channel,
        v_channel_path=found.v_channel,
        converged=found.converged,
        seconds=seconds,
        **measurements(Objective(data, lam, kappa, penalty, shape), found.matrix, fresh, streams.fresh),
    )


@contextmanager
def _iteration_bar(iterations: int, shown: bool) -> Iterator[Progress | None]:
    if not shown:
        yield None
        return
    with progress_bar("message passing") as show:
        yield lambda step, residual: show(step / iterations, f"iteration {step}, residual {residual:.1e}")
