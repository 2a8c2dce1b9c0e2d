"""The learning task of tied single-head attention: teacher, tokens, labels, loss and its gradient by hand.

h_ab = (x_aᵀ S x_b − δ_ab Tr S)/√d for tokens x_a ~ N(0, I_d); the teacher's attention is softmax_rows(β₀ (h⁰ + ξ)), the
student's softmax_rows(β h). Softmax ignores a constant within a row, so T − 1 products S (x_b − x_T) a sample suffice.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

TASKS = ("label", "sequence")
BLOCK = 2**15  # numbers of one token's coordinates handled at once: the products stay in the cache

MEANINGS = {
    "alpha": "n/d², the ratio of samples to squared embedding dimension",
    "lam": "the weight of the penalty",
    "kappa": "p/d, the ratio of the student's width to the embedding dimension",
    "kappa0": "p₀/d, the ratio of the teacher's width to the embedding dimension",
    "noise": "Δ, the variance of the noise on the diagonal of the teacher's scores",
    "beta": "the inverse temperature of the student's softmax",
    "beta_target": "the inverse temperature of the teacher's softmax",
    "initial_variance": "V at the first iteration",
    "damping": "the share of the previous iterate that is kept",
    "tolerance": "where the iteration stops: the relative gradient in training, the residual in message passing",
    "learning_rate": "the step of Adam",
}


def number(
    name: str, value: Any, *, above: float = -math.inf, least: float = -math.inf, below: float = math.inf
) -> float:
    """`value` as a finite float that is > `above`, >= `least` and < `below`; else a ValueError that names it."""
    try:
        result = float(value)
    except (TypeError, ValueError):
        result = math.nan
    if not (math.isfinite(result) and result > above and result >= least and result < below):
        bounds = [f"> {above:g}"] * (above > -math.inf) + [f">= {least:g}"] * (least > -math.inf)
        bounds += [f"< {below:g}"] * (below < math.inf)
        bound = f" and {' and '.join(bounds)}" if bounds else ""
        raise ValueError(f"{name} must be finite{bound}, got {value!r} ({name} = {MEANINGS.get(name, name)})")
    return result


def integer(name: str, value: Any, least: int, meaning: str) -> int:
    """`value` as an int of at least `least`; else a ValueError that names it."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer) or value != value // 1:
        raise ValueError(f"{name} must be an integer >= {least}, got {value!r} ({name} = {meaning})")
    if value < least:
        raise ValueError(f"{name} must be an integer >= {least}, got {value!r} ({name} = {meaning})")
    return int(value)


def choice(name: str, value: Any, allowed: tuple[str, ...]) -> str:
    """`value` if it is one of the `allowed` words; else a ValueError that lists them."""
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}")
    return str(value)


def width(name: str, size: int, ratio: float) -> int:
    """The number of columns p nearest to ratio · d; a ValueError if that is 0."""
    columns = round(ratio * size)
    if columns < 1:
        raise ValueError(
            f"{name} = {ratio:g} rounds the width {name}·d to 0 at d = {size}; use a larger size or a larger {name}"
        )
    return columns


# -- the task -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Setting:
    """What the task is made of, apart from its size: validated on construction (ValueError).

    `noise` is Δ ≥ 0, `beta` and `beta_target` are positive, `tokens` is T ≥ 2; `task` is "label" (the label is the
    attention matrix A) or "sequence" (the label is A x, and the loss is divided by d).
    """

    noise: float = 0.0
    beta: float = 1.0
    beta_target: float = 1.0
    tokens: int = 2
    task: str = "label"

    def __post_init__(self) -> None:
        number("noise", self.noise, least=0.0)
        number("beta", self.beta, above=0.0)
        number("beta_target", self.beta_target, above=0.0)
        integer("tokens", self.tokens, 2, "T, the length of a sequence; one token has nothing to attend to")
        choice("task", self.task, TASKS)


def softmax_rows(scores: Array) -> Array:
    """Softmax over b of finite scores h[a, b, …] of any size: T × T × … (the samples come last, for speed)."""
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    return np.asarray(weights)


def draw_target(size: int, kappa0: float, generator: np.random.Generator) -> Array:
    """S₀ = W₀W₀ᵀ/√(p₀d) for a standard Gaussian W₀ with p₀ = round(kappa0 · d) columns: a d × d array."""
    columns = width("kappa0", size, number("kappa0", kappa0, above=0.0))
    weights = generator.standard_normal((size, columns))
    return np.asarray(weights @ weights.T / math.sqrt(columns * size))


def target_of(spectrum: Any) -> Array:
    """A target as a d × d array: eigenvalues (d,) as a diagonal matrix (the tokens are isotropic), a matrix as it is.

    Raises ValueError unless the values are finite, d ≥ 2, and a matrix is square and symmetric.
    """
    target = np.array(spectrum, dtype=float)
    if target.ndim == 1:
        target = np.diag(target)
    if target.ndim != 2 or target.shape[0] != target.shape[1] or len(target) < 2:
        raise ValueError(f"target must be d eigenvalues or a d × d matrix with d >= 2, got shape {np.shape(spectrum)}")
    if not np.isfinite(target).all():
        raise ValueError("target must be finite, got NaN or an infinity")
    if np.abs(target - target.T).max() > 1e-9 * max(1.0, float(np.abs(target).max())):
        raise ValueError("target must be a symmetric matrix (the scores of tied attention are symmetric)")
    return np.asarray((target + target.T) / 2)


def draw_noise(count: int, setting: Setting, generator: np.random.Generator) -> Array:
    """ξ: T × T × count, symmetric Gaussian, variance Δ on the diagonal and Δ/2 off it."""
    raw = generator.standard_normal((setting.tokens, setting.tokens, count))
    return np.asarray(math.sqrt(setting.noise) / 2 * (raw + raw.transpose(1, 0, 2)))


@dataclass(frozen=True, eq=False)
class Task:
    """n sequences with the teacher's labels, and the loss of a student's S on them.

    `inputs` is n × T × d, `labels` the teacher's attention matrices, T × T × n; `target` is S₀. Made by `draw_task`.
    """

    inputs: Array
    labels: Array
    target: Array
    setting: Setting
    differences: Array = field(repr=False)  # x_b − x_T for b < T: n × (T−1) × d

    @property
    def size(self) -> int:
        """The embedding dimension d."""
        return len(self.target)

    @property
    def samples(self) -> int:
        """The number n of sequences."""
        return len(self.inputs)

    def blocks(self) -> Iterator[slice]:
        """Consecutive slices of the samples, few enough for the cache."""
        step = max(1, BLOCK // self.size)
        for start in range(0, self.samples, step):
            yield slice(start, start + step)

    def scores(self, matrix: Array) -> Array:
        """h_ab − h_aT of a symmetric S on every sequence: T × T × n."""
        scores = np.empty_like(self.labels)
        trace = float(np.trace(matrix))
        for rows in self.blocks():
            scores[..., rows] = relative_scores(self.inputs[rows], self.differences[rows], matrix, trace)
        return scores

    def pull_back(self, slope: Array) -> Array:
        """The gradient in S (symmetric, d × d) of a function of h whose gradient in h is `slope`.

        `slope` is T × T × n, and its rows sum to 0: the function ignores a constant within a row.
        """
        gradient = np.zeros_like(self.target)
        for rows in self.blocks():
            _add_pull_back(gradient, self.inputs[rows], self.differences[rows], slope[..., rows])
        return self._finished(gradient)

    def loss(self, matrix: Array) -> float:
        """The data term at a symmetric S, summed over the samples."""
        return self._evaluate(matrix, None)

    def loss_and_gradient(self, matrix: Array) -> tuple[float, Array]:
        """The data term at a symmetric S, summed over the samples, and its gradient in S (symmetric, d × d)."""
        gradient = np.zeros_like(self.target)
        value = self._evaluate(matrix, gradient)
        return value, self._finished(gradient)

    def _evaluate(self, matrix: Array, gradient: Array | None) -> float:
        """The loss; adds the unfinished gradient to `gradient`. Block by block, so that products stay in the cache."""
        total, trace = 0.0, float(np.trace(matrix))
        for rows in self.blocks():
            inputs, differences = self.inputs[rows], self.differences[rows]
            scores = relative_scores(inputs, differences, matrix, trace)
            attention = softmax_rows(self.setting.beta * scores)
            error = attention - self.labels[..., rows]
            pull = outputs_metric(inputs, error) if self.setting.task == "sequence" else error
            total += float(np.vdot(error, pull))
            if gradient is not None:
                _add_pull_back(gradient, inputs, differences, score_slope(attention, pull, self.setting.beta))
        return total

    def _finished(self, gradient: Array) -> Array:
        return np.asarray((gradient + gradient.T) / (2 * math.sqrt(self.size)))


def outputs_metric(inputs: Array, error: Array) -> Array:
    """error · x xᵀ/d: turns the squared error of A into that of A x, divided by d. T × T × count."""
    gram = inputs @ inputs.transpose(0, 2, 1) / inputs.shape[-1]
    return np.asarray(np.einsum("abn,nbc->acn", error, gram))


def score_slope(attention: Array, pull: Array, beta: float) -> Array:
    """The gradient in h of a squared error whose gradient in the attention matrix is 2 pull: T × T × count."""
    return np.asarray(2 * beta * attention * (pull - (attention * pull).sum(axis=1, keepdims=True)))


def relative_scores(inputs: Array, differences: Array, matrix: Array, trace: float) -> Array:
    """h_ab − h_aT for every row a: T × T × count (the last column is 0)."""
    count, length, size = inputs.shape
    products = (differences.reshape(-1, size) @ matrix).reshape(count, length - 1, size)
    scores = np.zeros((length, length, count))
    for a in range(length):
        for b in range(length - 1):
            np.einsum("ni,ni->n", inputs[:, a], products[:, b], out=scores[a, b])
        if a < length - 1:
            scores[a, a] -= trace
    scores[-1, :-1] += trace
    scores /= math.sqrt(size)
    return scores


def _add_pull_back(gradient: Array, inputs: Array, differences: Array, slope: Array) -> None:
    """Add √d times the gradient with respect to a general (not symmetric) S."""
    count, length, size = inputs.shape
    mixed = np.empty((count, length - 1, size))
    for b in range(length - 1):
        np.multiply(inputs[:, 0], slope[0, b, :, None], out=mixed[:, b])
        for a in range(1, length):
            mixed[:, b] += inputs[:, a] * slope[a, b, :, None]
    gradient += mixed.reshape(-1, size).T @ differences.reshape(-1, size)
    gradient[np.diag_indices(size)] -= float(np.einsum("aan->", slope))


def draw_task(target: Array, samples: int, setting: Setting, generator: np.random.Generator) -> Task:
    """`samples` sequences of standard Gaussian tokens with the teacher's noisy attention as labels."""
    size = len(target)
    integer("samples", samples, 1, "n, the number of sequences")
    inputs = generator.standard_normal((samples, setting.tokens, size))
    noise = draw_noise(samples, setting, generator)
    differences = inputs[:, :-1] - inputs[:, -1:]
    labels = np.empty((setting.tokens, setting.tokens, samples))
    task = Task(inputs, labels, target, setting, differences)
    trace = float(np.trace(target))
    for rows in task.blocks():
        scores = relative_scores(inputs[rows], differences[rows], target, trace)
        labels[..., rows] = softmax_rows(setting.beta_target * (scores + noise[..., rows]))
    return task


def sample_count(size: int, alpha: float) -> int:
    """n = round(alpha · d²); a ValueError if that is 0."""
    samples = round(number("alpha", alpha, above=0.0) * size**2)
    if samples < 1:
        raise ValueError(f"alpha = {alpha:g} rounds n = alpha·d² to 0 at d = {size}; use a larger size or alpha")
    return samples


# -- what is measured on a student ----------------------------------------------------------------------------


def generalisation(
    matrix: Array, target: Array, setting: Setting, count: int, generator: np.random.Generator
) -> tuple[float, float]:
    """The student's mean error on `count` fresh sequences: against the noisy and against the clean label."""
    fresh = draw_task(target, count, setting, generator)
    student = softmax_rows(setting.beta * fresh.scores(matrix))
    clean = softmax_rows(setting.beta_target * fresh.scores(target))
    return _mean_error(fresh, student - fresh.labels), _mean_error(fresh, student - clean)


def _mean_error(task: Task, error: Array) -> float:
    pull = outputs_metric(task.inputs, error) if task.setting.task == "sequence" else error
    return float(np.vdot(error, pull)) / task.samples


def overlaps(matrix: Array, target: Array) -> tuple[float, float]:
    """m = Tr S S₀/d and q = Tr S²/d."""
    size = len(target)
    return float(np.vdot(matrix, target)) / size, float(np.vdot(matrix, matrix)) / size
