"""Projected stochastic gradient ascent of the pooled norm ‖f_q‖² over queries q on the unit sphere, many runs at once.

Two simulations with the same law: `plain` draws every token, `reduced` draws two numbers per token. No formula of
the theory is used here: expectations, flows and limits are read from the laws by those who compare.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
_BLOCK = 24_000  # tokens worked on at a time: a handful of arrays of this size stay in a core's cache


def softmax(logits: Any) -> Array:
    """Softmax over the last axis, right at any logit: entries of +inf share the weight, entries of −inf get none.

    `logits`: array (..., L), L ≥ 1. Returns weights of the same shape, each row summing to 1. Raises ValueError for
    NaN, for an empty row and for a row of −inf only.
    """
    logits = np.asarray(logits, dtype=float)
    if logits.ndim == 0 or logits.shape[-1] == 0:
        raise ValueError(f"logits must have at least one entry along the last axis, got shape {logits.shape}")
    if np.isnan(logits).any():
        raise ValueError("logits must not be NaN, got NaN; check the scores that produced them")
    top = logits.max(axis=-1, keepdims=True)
    if np.isneginf(top).any():
        raise ValueError(
            "logits must have an entry above -inf in every row, got a row of -inf: no token can be attended"
        )
    infinite = np.isposinf(top)
    with np.errstate(over="ignore"):  # a gap beyond the largest float is as good as infinite
        finite = logits - np.where(infinite, 0.0, top)
    weights = np.exp(np.where(infinite, np.where(np.isposinf(logits), 0.0, -np.inf), finite))
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


@dataclass(frozen=True)
class TokenModel:
    """Tokens of one draw: `informative` ones θξ + z, `nuisance` ones z, z standard Gaussian in `dimension` dimensions.

    ξ is the first unit vector (the law of the algorithm is invariant under rotations). Raises ValueError for θ ≤ 0,
    informative < 1, nuisance < 0, dimension < 2, and for anything that is not a finite number.
    """

    theta: float
    informative: int
    nuisance: int
    dimension: int

    def __post_init__(self) -> None:
        if not (math.isfinite(self.theta) and self.theta > 0):
            raise ValueError(f"theta must be finite and > 0, got {self.theta} (theta = strength of the signal)")
        for name, least in (("informative", 1), ("nuisance", 0), ("dimension", 2)):
            value = getattr(self, name)
            if not (isinstance(value, (int, np.integer)) and value >= least):
                raise ValueError(f"{name} must be an integer >= {least}, got {value!r}")

    @property
    def tokens(self) -> int:
        """Number of tokens L."""
        return self.informative + self.nuisance


@dataclass(frozen=True)
class StepRule:
    """Steps η_k = scale / (k + offset)^exponent, k = 0, 1, …

    Robbins–Monro (Σ η_k = ∞, Σ η_k² < ∞) holds for ½ < exponent ≤ 1; `exponent=0` gives constant steps (offset is
    then without effect). Raises ValueError for scale ≤ 0, offset ≤ 0, exponent < 0 or NaN.
    """

    scale: float
    offset: float = 1.0
    exponent: float = 1.0

    def __post_init__(self) -> None:
        for name, value, allowed in (
            ("scale", self.scale, self.scale > 0),
            ("offset", self.offset, self.offset > 0),
            ("exponent", self.exponent, self.exponent >= 0),
        ):
            if not (math.isfinite(value) and allowed):
                bound = ">= 0" if name == "exponent" else "> 0"
                raise ValueError(
                    f"{name} must be finite and {bound}, got {value} (steps are scale/(k+offset)^exponent)"
                )

    def __call__(self, count: int) -> Array:
        """The first `count` steps, array (count,)."""
        return self.scale / (np.arange(count) + self.offset) ** self.exponent

    @property
    def robbins_monro(self) -> bool:
        """Whether Σ η_k diverges and Σ η_k² converges."""
        return 0.5 < self.exponent <= 1


@dataclass(frozen=True)
class Ascent:
    """What many runs did: `alignment` (runs, records), `mass` on informative tokens (runs, records − 1, the draws'
    mean within a batch at the query before the step), `recorded` (records,) step counts, `times` (records,) sums of
    steps, and the last queries `query` (runs, dimension).
    """

    alignment: Array
    mass: Array
    recorded: Array
    times: Array
    query: Array


def random_queries(runs: int, dimension: int, generator: np.random.Generator) -> Array:
    """`runs` queries, uniform on the unit sphere: array (runs, dimension)."""
    return _normalised(generator.standard_normal((runs, dimension)))


def aligned_queries(alignment: Any, runs: int, dimension: int, generator: np.random.Generator) -> Array:
    """`runs` queries of given alignment ⟨q, ξ⟩ ∈ [−1, 1], uniform otherwise: array (runs, dimension)."""
    rho = np.broadcast_to(np.asarray(alignment, dtype=float), (runs,))
    if not (np.abs(rho) <= 1).all():
        raise ValueError(f"alignment must lie in [-1, 1], got {alignment} (the inner product of two unit vectors)")
    rest = generator.standard_normal((runs, dimension))
    rest[:, 0] = 0.0
    queries = _normalised(rest) * np.sqrt(1.0 - rho**2)[:, None]
    queries[:, 0] = rho
    return queries


def plain_gradients(
    model: TokenModel, queries: Array, generator: np.random.Generator, ambient: bool = False
) -> tuple[Array, Array]:
    """One draw of tokens for each query, and the gradient of ‖f_q‖² by the chain rule.

    `queries`: (n, dimension), unit rows. Returns the gradients (n, dimension), tangent to the sphere unless
    `ambient`, and the attention mass (n,) on informative tokens. Cost n·L·dimension.
    """
    count, dimension = queries.shape
    tokens = generator.standard_normal((count, model.tokens, dimension))
    tokens[:, : model.informative, 0] += model.theta
    weights = softmax(np.einsum("nld,nd->nl", tokens, queries))
    pooled = np.einsum("nl,nld->nd", weights, tokens)
    along = np.einsum("nld,nd->nl", tokens, pooled)
    along -= (weights * along).sum(axis=1, keepdims=True)
    gradient = 2.0 * np.einsum("nl,nld->nd", weights * along, tokens)
    if not ambient:
        gradient -= np.einsum("nd,nd->n", gradient, queries)[:, None] * queries
    return gradient, weights[:, : model.informative].sum(axis=1)


def reduced_gradients(
    model: TokenModel, queries: Array, generator: np.random.Generator, ambient: bool = False
) -> tuple[Array, Array]:
    """The same law as `plain_gradients` from two numbers a token and two vectors a draw: cost n·(L + dimension).

    Given the scores s_i = ⟨q, x_i⟩ (first number), the components of the tokens orthogonal to q are Gaussian and
    independent of the weights a, so the pooled f⊥ = W k + (Σa²)^½ h is drawn directly (k = θ(ξ − ρq), W the
    mass on informative tokens, h a standard Gaussian vector orthogonal to q). Given f⊥, the tokens' projections on
    f⊥/‖f⊥‖ are Gaussian with mean and covariance conditioned on their weighted sum (second number). The gradient is
    2Σ c_i x_i with c_i a function of these two numbers; its part orthogonal to q and f⊥ is Gaussian again, of
    variance Σc² − (Σac)²/Σa² a direction.
    """
    gradient, mass = np.empty_like(queries), np.empty(len(queries))
    rows = max(1, _BLOCK // model.tokens)
    for start in range(0, len(queries), rows):
        part = slice(start, start + rows)
        gradient[part], mass[part] = _reduced_block(model, queries[part], generator, ambient)
    return gradient, mass


def _reduced_block(
    model: TokenModel, queries: Array, generator: np.random.Generator, ambient: bool
) -> tuple[Array, Array]:
    count, split = len(queries), model.informative
    rho = queries[:, 0]
    signal = -model.theta * rho[:, None] * queries
    signal[:, 0] += model.theta  # k = θ(ξ − ρ q), orthogonal to q

    scores = generator.standard_normal((count, model.tokens))
    scores[:, :split] += model.theta * rho[:, None]
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    mean = _dot(weights, scores)
    mass = weights[:, :split].sum(axis=1)
    spread = _dot(weights, weights)

    pooled = mass[:, None] * signal + np.sqrt(spread)[:, None] * _orthogonal(queries, generator)
    length = np.sqrt(_dot(pooled, pooled))
    direction = pooled / length[:, None]
    tilt = _dot(signal, direction)

    noise = generator.standard_normal((count, model.tokens))
    slope = (length - tilt * mass - _dot(weights, noise)) / spread  # conditioning on the weighted sum
    factor = mean[:, None] * scores
    factor += length[:, None] * noise
    factor += (length * slope)[:, None] * weights
    factor -= (mean**2 + length**2)[:, None]
    factor[:, :split] += (length * tilt)[:, None]
    factor *= weights  # the coefficients c_i

    informative = factor[:, :split].sum(axis=1)
    overlap = _dot(weights, factor)
    along = tilt * informative + slope * overlap + _dot(noise, factor)
    across = informative - mass * overlap / spread
    variance = np.maximum(_dot(factor, factor) - overlap**2 / spread, 0.0)  # Cauchy–Schwarz; rounding may cross 0
    rest = _orthogonal(queries, generator)
    rest -= _dot(rest, direction)[:, None] * direction
    gradient = (along - across * tilt)[:, None] * direction + across[:, None] * signal
    gradient += np.sqrt(variance)[:, None] * rest
    if ambient:
        gradient += _dot(factor, scores)[:, None] * queries
    return 2.0 * gradient, mass


def score_statistics(
    model: TokenModel, alignment: float, count: int, generator: np.random.Generator
) -> dict[str, Array]:
    """`count` draws of what the scores alone decide, at a query of given alignment; each value an array (count,).

    `mass` on informative tokens, `squared_mass`, `squared_score` (of the pooled score), `participation` (sum of
    squared weights), `token_weight` (of the last nuisance token, 0 if there is none), `largest` (weight of a nuisance
    token), `objective` (‖f‖², its Gaussian part drawn) and `slope`: the derivative in the alignment of the mean of
    ‖f‖² given the scores' noise, differentiated draw by draw.
    """
    split, pieces = model.informative, []
    for begin in range(0, count, max(1, _BLOCK // model.tokens)):
        rows = min(count - begin, max(1, _BLOCK // model.tokens))
        scores = generator.standard_normal((rows, model.tokens))
        scores[:, :split] += model.theta * alignment
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        pieces.append(_of_scores(model, alignment, scores, weights, generator))
    return {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}


def _of_scores(
    model: TokenModel, alignment: float, scores: Array, weights: Array, generator: np.random.Generator
) -> dict[str, Array]:
    split, theta, rest = model.informative, model.theta, 1.0 - alignment**2
    own, others = weights[:, :split], weights[:, split:]
    mean, mass, spread = _dot(weights, scores), own.sum(axis=1), _dot(weights, weights)
    # a_i moves by θ a_i (1_i − W) and s_i by θ 1_i when the alignment moves
    mass_moves = theta * mass * (1 - mass)
    mean_moves = theta * (_dot(own, scores[:, :split]) - mass * mean + mass)
    spread_moves = 2 * theta * (_dot(own, own) - mass * spread)
    slope = 2 * mean * mean_moves + theta**2 * (2 * rest * mass * mass_moves - 2 * alignment * mass**2)
    slope += (model.dimension - 1) * spread_moves
    toward = theta * math.sqrt(rest) * mass + np.sqrt(spread) * generator.standard_normal(len(mass))
    across = spread * (generator.chisquare(model.dimension - 2, len(mass)) if model.dimension > 2 else 0.0)
    empty = np.zeros(len(mass))
    return {
        "mass": mass,
        "squared_mass": mass**2,
        "squared_score": mean**2,
        "participation": spread,
        "token_weight": others[:, -1] if model.nuisance else empty,
        "largest": others.max(axis=1) if model.nuisance else empty,
        "objective": mean**2 + toward**2 + across,
        "slope": slope,
    }


METHODS: dict[str, Callable[..., tuple[Array, Array]]] = {"reduced": reduced_gradients, "plain": plain_gradients}


def ascend(
    model: TokenModel,
    start: Array,
    steps: StepRule | Sequence[float] | Array,
    generator: np.random.Generator | int,
    *,
    count: int | None = None,
    batch: int = 1,
    method: str = "reduced",
    ambient: bool = False,
    record: int = 1,
) -> Ascent:
    """Run the ascent q ← (q + η g)/‖q + η g‖ from each row of `start`, with fresh tokens at every step.

    `start`: (runs, dimension), unit rows. `steps`: a StepRule with `count`, or an explicit sequence. `batch`: draws
    averaged in each gradient. `ambient=False` projects g on the tangent space first. `record`: keep every
    record-th state (the first and the last are always kept). `generator`: a numpy Generator or a seed.
    Warns (UserWarning) when the steps violate Robbins–Monro; raises ValueError for other bad input.
    """
    _warn_unless_robbins_monro(steps)
    return simulate(
        model, start, _step_array(steps, count), np.random.default_rng(generator), batch, method, ambient, record
    )


def simulate(
    model: TokenModel,
    start: Array,
    steps: Array,
    generator: np.random.Generator,
    batch: int = 1,
    method: str = "reduced",
    ambient: bool = False,
    record: int = 1,
) -> Ascent:
    """`ascend` for a finite window of steps of whatever kind: no word about Robbins–Monro."""
    queries = _unit_rows(start, model.dimension)
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
    for name, value in (("batch", batch), ("record", record)):
        if not (isinstance(value, (int, np.integer)) and value >= 1):
            raise ValueError(f"{name} must be an integer >= 1, got {value!r}")
    draw, runs, total = METHODS[method], len(queries), len(steps)
    kept, masses, recorded = [queries[:, 0].copy()], [], [0]
    for index, step in enumerate(steps):
        gradient, mass = draw(model, np.repeat(queries, batch, axis=0), generator, ambient)
        mean = gradient.reshape(runs, batch, -1).mean(axis=1)
        queries = _normalised(queries + step * mean)
        if (index + 1) % record == 0 or index + 1 == total:
            kept.append(queries[:, 0].copy())
            masses.append(mass.reshape(runs, batch).mean(axis=1))
            recorded.append(index + 1)
    times = np.concatenate([[0.0], np.cumsum(steps)])[recorded]
    mass_array = np.array(masses).T if masses else np.empty((runs, 0))
    return Ascent(np.array(kept).T, mass_array, np.array(recorded), times, queries)


def _dot(left: Array, right: Array) -> Array:
    return np.asarray(np.einsum("ij,ij->i", left, right))


def _normalised(rows: Array) -> Array:
    return np.asarray(rows / np.sqrt(_dot(rows, rows))[:, None])


def _orthogonal(queries: Array, generator: np.random.Generator) -> Array:
    """Standard Gaussian vectors in the orthogonal complement of each query."""
    rows = np.asarray(generator.standard_normal(queries.shape))
    return np.asarray(rows - _dot(rows, queries)[:, None] * queries)


def _unit_rows(start: Array, dimension: int) -> Array:
    queries = np.array(start, dtype=float, ndmin=2)
    if queries.ndim != 2 or queries.shape[1] != dimension:
        raise ValueError(f"start must have shape (runs, {dimension}), got {np.shape(start)}")
    norms = np.sqrt(_dot(queries, queries))
    if not (np.abs(norms - 1) < 1e-8).all():  # also catches NaN
        raise ValueError(f"start must have rows of norm 1, got norms {norms}; divide each row by its norm")
    return queries


def _step_array(steps: StepRule | Sequence[float] | Array, count: int | None) -> Array:
    if isinstance(steps, StepRule):
        if not (isinstance(count, (int, np.integer)) and count >= 0):
            raise ValueError(f"count must be an integer >= 0 when steps is a StepRule, got {count!r}")
        return steps(int(count))
    values = np.asarray(steps, dtype=float)
    if values.ndim != 1 or not (np.isfinite(values) & (values > 0)).all():
        raise ValueError(f"steps must be a one-dimensional sequence of finite positive numbers, got {steps!r}")
    if count is not None and count != len(values):
        raise ValueError(f"count must be left out or equal the number of steps {len(values)}, got {count}")
    return values


def _warn_unless_robbins_monro(steps: StepRule | Sequence[float] | Array) -> None:
    if isinstance(steps, StepRule):
        if not steps.robbins_monro:
            warnings.warn(
                f"steps decay with exponent {steps.exponent}, Robbins-Monro needs 1/2 < exponent <= 1 (divergent sum, "
                "convergent sum of squares): the runs need not converge",
                stacklevel=3,
            )
        return
    values = np.asarray(steps, dtype=float)
    if values.ndim == 1 and len(values) > 1 and values[-1] >= values[0]:
        warnings.warn(
            f"steps do not decrease (first {values[0]:g}, last {values[-1]:g}): no such sequence satisfies "
            "Robbins-Monro when it is continued, and the runs need not converge",
            stacklevel=3,
        )
