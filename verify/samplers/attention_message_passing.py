"""Approximate message passing for tied attention: matrix sensing of S through the scores, with Onsager terms.

The scores of a sequence are E = (T² + T − 2)/2 independent numbers v, isotropic with variance Tr S²/d: whitened, and
without the constant that softmax ignores. The channel is the proximal map of the loss in v, the denoiser acts on the
eigenvalues of S; each sends its divergence to the other.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from verify.samplers.attention_minimise import PARAMETRISATIONS, PENALTIES
from verify.samplers.attention_task import (
    Array,
    Task,
    choice,
    integer,
    number,
    overlaps,
    score_slope,
    softmax_rows,
)

NEWTON_STEPS, HALVINGS = 200, 60
PROXIMAL_TOLERANCE = 1e-10  # on the step in v, relative to 1 + |v|
BLOCK = 4096  # samples at once: the work arrays stay in the cache
SAFE_CURVATURE = 0.1  # pivots of the proximal Hessian below this fraction of the quadratic's 1/V are replaced
DEGENERATE = 1e-9  # eigenvalues nearer than this (relative) have the derivative for their difference quotient

Rows = Any  # an index of samples: an array or a slice
ALL = slice(None)
Progress = Callable[[int, float], None]  # iterations, residual


class MessagePassingError(ArithmeticError):
    """An iterate has no meaning: a proximal map that did not converge, or a precision that is not positive."""


# -- the effective outputs ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Outputs:
    """Linear maps between relative scores (rows of T² numbers h_ab − h_aT) and the effective outputs v (E numbers)."""

    to_scores: Array  # T² × E: symmetric scores of an output
    from_relative: Array  # E × T²


@functools.cache
def effective_outputs(tokens: int) -> Outputs:
    """The whitened symmetric scores, Var h_ab = 1 + δ_ab, without the direction of a common constant."""
    pairs = [(a, b) for a in range(tokens) for b in range(a, tokens)]
    deviation = np.array([math.sqrt(2.0) if a == b else 1.0 for a, b in pairs])
    # The constant h = 1 in whitened coordinates, and an orthonormal basis of its complement.
    constant = 1 / deviation
    basis = np.linalg.qr(np.column_stack([constant, np.eye(len(pairs))[:, 1:]]))[0][:, 1:]
    expand = np.zeros((tokens, tokens, len(pairs)))
    compress = np.zeros((len(pairs), tokens, tokens))
    for place, (a, b) in enumerate(pairs):
        expand[a, b, place] = expand[b, a, place] = deviation[place]
        # A symmetric h is its relative scores (h_ab − h_aT) + (h_Ta − h_TT), up to the constant h_TT.
        compress[place, a, b] += 1 / deviation[place]
        compress[place, -1, a] += 1 / deviation[place]
    flat = tokens * tokens
    return Outputs(expand.reshape(flat, -1) @ basis, basis.T @ compress.reshape(-1, flat))


class Channel:
    """argmin over w of loss(y, h(w)) + ‖w − ω‖²/(2V) for all samples at once; arrays are E × n, the samples last.

    The outputs of a sample are v = L w with L Lᵀ = G, the Gram matrix of its sensing matrices relative to its mean: it
    tends to the identity, but its 1/√d fluctuations, left out, make the iteration oscillate at d below 100.
    The loss is not convex: each sample is minimised from several starts and the lowest minimum is kept.
    """

    def __init__(self, labels: Array, beta: float, gram: Array) -> None:
        self.labels, self.beta = labels, beta
        self.tokens = len(labels)
        self.maps = effective_outputs(self.tokens)
        factor = np.linalg.cholesky(np.moveaxis(gram, -1, 0))
        self._factor = np.ascontiguousarray(np.moveaxis(factor, 0, -1))
        self._inverse = np.ascontiguousarray(np.moveaxis(np.linalg.inv(factor), 0, -1))
        logits = np.log(np.maximum(labels, 1e-300)) / beta
        self._own = logits - logits[:, -1:]
        # With two tokens the Hessian of the loss in v is at least −16 β² max p (1−p)² (1−3p), attained at this p; where
        # V times that is below 1 the objective is convex and one start will do. More tokens: always several starts.
        p = (9 - math.sqrt(33)) / 24
        least = 16 * beta**2 * p * (1 - p) ** 2 * (1 - 3 * p) if self.tokens == 2 else math.inf
        self._concavity = least * np.trace(gram)  # the trace of G bounds its largest eigenvalue

    def scores(self, outputs: Array, rows: Rows = ALL) -> Array:
        """Symmetric scores h, T × T × samples, up to a constant."""
        flat = self.maps.to_scores @ _times(self._factor[..., rows], outputs)
        return np.asarray(flat.reshape(self.tokens, self.tokens, -1))

    def attention(self, outputs: Array, rows: Rows = ALL) -> tuple[Array, Array]:
        """The attention matrix and its error, T × T × samples."""
        attention = softmax_rows(self.beta * self.scores(outputs, rows))
        return attention, attention - self.labels[..., rows]

    def outputs_of(self, relative: Array, rows: Rows = ALL) -> Array:
        """w of relative scores, T × T × samples."""
        return _times(self._inverse[..., rows], self.maps.from_relative @ relative.reshape(self.tokens**2, -1))

    def proximal(self, centre: Array, variance: float) -> Array:
        """The global minimiser, E × n, as far as starts at ω, at the label, and at one row of the label can find it.

        Raises MessagePassingError if Newton's method does not converge.
        """
        best = np.empty_like(centre)
        for start in range(0, centre.shape[1], BLOCK):
            rows = np.arange(start, min(start + BLOCK, centre.shape[1]))
            best[:, rows], lowest = self._descend(centre[:, rows], centre[:, rows], variance, rows)
            open_rows = rows[variance * self._concavity[rows] >= 1]
            if not open_rows.size:
                continue
            middle, lowest = centre[:, open_rows], lowest[open_rows - start]
            for outputs in self._other_starts(middle, open_rows):
                found, value = self._descend(outputs, middle, variance, open_rows)
                better = value < lowest - 1e-12 * (1 + np.abs(lowest))
                best[:, open_rows[better]], lowest = found[:, better], np.where(better, value, lowest)
        return best

    def _other_starts(self, centre: Array, rows: Rows) -> Iterator[Array]:
        """The outputs that give the label, then those that give one row of it and the centre's other rows."""
        scores = self.scores(centre, rows)
        relative = scores - scores[:, -1:]
        for chosen in ([True] * self.tokens, *np.eye(self.tokens, dtype=bool)):
            mixed = np.where(np.reshape(chosen, (-1, 1, 1)), self._own[..., rows], relative)
            yield self.outputs_of(mixed, rows)

    def _value(self, outputs: Array, centre: Array, variance: float, rows: Rows) -> Array:
        _, error = self.attention(outputs, rows)
        return np.asarray((error**2).sum(axis=(0, 1)) + ((outputs - centre) ** 2).sum(axis=0) / (2 * variance))

    def _descend(self, start: Array, centre: Array, variance: float, rows: Rows) -> tuple[Array, Array]:
        """Newton's method with a modified factorisation and halved steps: minimisers and values for the samples `rows`.

        The arrays hold these samples only; those that no longer move are left out of the work.
        """
        outputs, value = start.copy(), self._value(start, centre, variance, rows)
        here, at, middle, moving = outputs, value, centre, np.arange(len(rows))
        for _ in range(NEWTON_STEPS):
            slope, curvature = self.derivatives(here, rows[moving])
            slope += (here - middle) / variance
            curvature[np.diag_indices(len(here))] += 1 / variance
            step = -_solve_modified(curvature, slope, SAFE_CURVATURE / variance)
            far = np.abs(step).max(axis=0) > PROXIMAL_TOLERANCE * (1 + np.abs(here).max(axis=0))
            here, at = self._line_search(here, at, step, (slope * step).sum(axis=0), middle, variance, rows[moving])
            outputs[:, moving], value[moving] = here, at
            if not far.any():
                return outputs, value
            if not far.all():
                here, at, middle, moving = here[:, far], at[far], middle[:, far], moving[far]
        raise MessagePassingError(
            f"the proximal map did not converge on {moving.size} of {len(rows)} samples in {NEWTON_STEPS} Newton "
            f"steps at V = {variance:g}; try another initial_variance"
        )

    def _line_search(
        self, here: Array, at: Array, step: Array, descent: Array, centre: Array, variance: float, rows: Rows
    ) -> tuple[Array, Array]:
        """Points and values along `step`, halved per sample until the objective falls (Armijo, up to rounding)."""
        size = np.ones(len(rows))
        for _ in range(HALVINGS):
            trial = here + size * step
            value = self._value(trial, centre, variance, rows)
            short = value > at + 1e-4 * size * descent + 1e-14 * (1 + np.abs(at))
            if not short.any():
                return trial, value
            size[short] /= 2
        return np.where(short, here, trial), np.where(short, at, value)

    def derivatives(self, outputs: Array, rows: Rows = ALL) -> tuple[Array, Array]:
        """Gradient (E × samples) and Hessian (E × E × samples) of the loss in w."""
        attention, error = self.attention(outputs, rows)
        samples = outputs.shape[1]
        slope = score_slope(attention, error, self.beta).reshape(-1, samples)
        # Row by row, with r = e − ⟨e⟩ + p: ∂²‖e‖²/∂h_b∂h_c = 2β² [δ_bc p_b r_b − p_b p_c (r_b + r_c − Σp²)].
        shifted = error - (attention * error).sum(axis=1, keepdims=True) + attention
        square = (attention**2).sum(axis=1, keepdims=True)
        inner = square[:, None] - shifted[:, :, None] - shifted[:, None, :]
        second = attention[:, :, None] * attention[:, None, :] * inner
        diagonal = np.arange(self.tokens)
        second[:, diagonal, diagonal] += attention * shifted
        second *= 2 * self.beta**2
        factor, count = self._factor[..., rows], len(outputs)
        curvature = (_bilinear(self.tokens) @ second.reshape(-1, samples)).reshape(count, count, samples)
        transposed = factor.swapaxes(0, 1)
        curvature = _product(transposed, _product(curvature, factor))
        return _times(transposed, self.maps.to_scores.T @ slope), curvature

    def divergence(self, outputs: Array, variance: float) -> Array:
        """Tr ∂g/∂ω of g = (w − ω)/V at the minimiser w, for each sample."""
        _, curvature = self.derivatives(outputs)
        count = len(outputs)
        resolvent = np.linalg.inv(np.eye(count) + variance * np.moveaxis(curvature, -1, 0))
        return np.asarray((np.trace(resolvent, axis1=1, axis2=2) - count) / variance)


@functools.cache
def _bilinear(tokens: int) -> Array:
    """E² × T³: carries the row-wise Hessians in h to the Hessian in v."""
    maps = effective_outputs(tokens).to_scores.reshape(tokens, tokens, -1)
    return np.asarray(np.einsum("abk,acl->klabc", maps, maps).reshape(maps.shape[2] ** 2, tokens**3))


def _times(matrices: Array, vectors: Array) -> Array:
    """Matrix times vector for each sample: E × E × n and E × n."""
    result = matrices[:, 0] * vectors[0]
    for k in range(1, len(vectors)):
        result += matrices[:, k] * vectors[k]
    return np.asarray(result)


def _product(left: Array, right: Array) -> Array:
    """Matrix times matrix for each sample, E × E × n: numpy's own products are slow for small matrices."""
    result = left[:, 0, None] * right[None, 0]
    for k in range(1, len(right)):
        result += left[:, k, None] * right[None, k]
    return np.asarray(result)


def sensing_gram(task: Task) -> Array:
    """⟨A_k, A_l⟩ of each sample's sensing matrices for the effective outputs, over its mean: E × E × n.

    The sensing matrix of h_ab is ((x_a x_bᵀ + x_b x_aᵀ)/2 − δ_ab I)/√d.
    """
    products = np.ascontiguousarray(np.moveaxis(task.inputs @ task.inputs.transpose(0, 2, 1), 0, -1))
    length, samples = task.setting.tokens, task.samples
    crossed = np.einsum("acn,bdn->abcdn", products, products)
    gram = (crossed + crossed.swapaxes(2, 3)) / 2
    for a in range(length):
        gram[a, a] -= products
        gram[:, :, a, a] -= products
    for a, b in itertools.product(range(length), repeat=2):
        gram[a, a, b, b] += task.size
    # Relative scores h_ab − h_aT on both sides, then the effective outputs; E ⟨A, A⟩ = (d + 1)/2 in whitened scores.
    gram = gram - gram[:, -1:]
    gram = gram - gram[:, :, :, -1:]
    maps, flat = effective_outputs(length).from_relative, length**2
    halfway = (maps @ gram.reshape(flat, -1)).reshape(-1, flat, samples)
    return np.asarray(np.einsum("lf,kfn->kln", maps, halfway) * (2 / (task.size * (task.size + 1))))


def _solve_modified(matrices: Array, right: Array, least: float) -> Array:
    """x with (L D Lᵀ) x = right for the factorisation of `matrices` with pivots raised to `least`: E × n.

    Vectorised over the last axis. A positive definite matrix is solved exactly; any other one still gives a descent
    direction.
    """
    work, solution = matrices, right.copy()
    count = len(right)
    pivots = np.empty_like(right)
    for k in range(count):
        pivots[k] = np.where(work[k, k] > least, work[k, k], np.maximum(np.abs(work[k, k]), least))
        below = work[k + 1 :, k] / pivots[k]
        work[k + 1 :, k + 1 :] -= below[:, None] * work[None, k + 1 :, k]
        work[k + 1 :, k] = below
        solution[k + 1 :] -= below * solution[k]
    solution /= pivots
    for k in range(count - 1, -1, -1):
        solution[k] -= (work[k + 1 :, k] * solution[k + 1 :]).sum(axis=0)
    return solution


# -- the denoiser ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Denoiser:
    """The spectral function of a penalty: f(y) = (y − threshold)₊/(ṽ + ridge), without ( )₊ if not `positive`."""

    threshold: float
    ridge: float
    positive: bool

    @classmethod
    def of(cls, lam: float, kappa: float, penalty: str, parametrisation: str) -> Denoiser:
        """The denoiser of a penalty on S; `kappa` only scales weight decay (the width itself must not bind)."""
        lam, kappa = number("lam", lam, least=0.0), number("kappa", kappa, above=0.0)
        positive = choice("parametrisation", parametrisation, PARAMETRISATIONS) == "factorised"
        if choice("penalty", penalty, PENALTIES) == "frobenius":
            return cls(0.0, lam, positive)
        if not positive:
            raise ValueError('penalty must be "frobenius" if parametrisation is "elementwise", got "nuclear"')
        return cls(math.sqrt(kappa) * lam, 0.0, positive)

    def __call__(self, field: Array, precision: float) -> tuple[Array, float]:
        """S = f(field) and its divergence Σ_i f'(y_i) + Σ_{i<j} (f(y_i) − f(y_j))/(y_i − y_j)."""
        values, vectors = np.linalg.eigh(field)
        total = precision + self.ridge
        images = (values - self.threshold) / total
        slopes = np.full_like(values, 1 / total)
        if self.positive:
            slopes[images <= 0] = 0.0
            images = np.maximum(images, 0.0)
        matrix = (vectors * images) @ vectors.T
        return (matrix + matrix.T) / 2, spectral_divergence(values, images, slopes)


def spectral_divergence(values: Array, images: Array, slopes: Array) -> float:
    """The divergence of Y ↦ f(Y) on symmetric matrices, from eigenvalues y_i, f(y_i) and f'(y_i).

    Σ_i f'(y_i) + Σ_{i<j} (f(y_i) − f(y_j))/(y_i − y_j); coinciding eigenvalues have the derivative for the quotient.
    """
    gaps = values[:, None] - values[None, :]
    rises = images[:, None] - images[None, :]
    near = np.abs(gaps) <= DEGENERATE * max(1.0, float(np.abs(values).max()))
    quotients = np.where(near, (slopes[:, None] + slopes[None, :]) / 2, rises / np.where(near, 1.0, gaps))
    return float((np.trace(quotients) + quotients.sum()) / 2)


# -- the iteration --------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Iterates:
    """The run of message passing: arrays over the iterations t = 1 … K, and the last S.

    `m`, `q`, `variance` are Tr S S₀/d, Tr S²/d and V after iteration t, `residual` is ‖S_t − S_{t−1}‖/√d; `q_channel`,
    `v_channel` are q̃ = α ⟨‖g‖²⟩ and ṽ = −α ⟨Tr ∂g/∂ω⟩ of the channel that made iterate t.
    `converged` says that the last residual is at most the tolerance.
    """

    matrix: Array
    m: Array
    q: Array
    variance: Array
    residual: Array
    q_channel: Array
    v_channel: Array
    converged: bool


def message_passing(
    task: Task,
    denoiser: Denoiser,
    iterations: int,
    initial_variance: float = 1.0,
    damping: float = 0.0,
    tolerance: float = 0.0,
    progress: Progress | None = None,
    onsager: bool = True,
) -> Iterates:
    """Iterate from S = 0 with no memory and V = `initial_variance`; at most `iterations` times.

    `damping` in [0, 1) keeps that share of the previous S, V and memory: the fixed points stay, the state evolution of
    single steps does not. Stops early when the residual, undamped, is at most `tolerance`. A fixed point is a
    stationary point of the penalised loss. Without `onsager` the channel is centred on the bare scores of S, which
    state evolution does not describe: for comparison only. Raises ValueError for a task whose label is a sequence (in
    the limit it has the same iteration), MessagePassingError if a precision is not positive.
    """
    if task.setting.task != "label":
        raise ValueError(f'task must be "label" for message passing, got {task.setting.task!r}')
    integer("iterations", iterations, 1, "the number of iterations")
    variance = number("initial_variance", initial_variance, above=0.0)
    kept = number("damping", damping, least=0.0, below=1.0)
    size, alpha = task.size, task.samples / task.size**2
    channel = Channel(task.labels, task.setting.beta, sensing_gram(task))
    matrix, memory = np.zeros_like(task.target), np.zeros((channel.maps.to_scores.shape[1], task.samples))
    rows: list[tuple[float, ...]] = []
    for step in range(1, iterations + 1):
        centre = channel.outputs_of(task.scores(matrix)) - (variance * memory if onsager else 0.0)
        outputs = channel.proximal(centre, variance)
        residual_field = (outputs - centre) / variance
        precision = -alpha * float(channel.divergence(outputs, variance).mean())
        if not (math.isfinite(precision) and precision > 0):
            raise MessagePassingError(
                f"the precision of iteration {step} must be > 0, got {precision:g} (the loss is too far from convex at "
                f"V = {variance:g}); try a smaller initial_variance or more damping"
            )
        attention, error = channel.attention(outputs)
        field = precision * matrix - task.pull_back(score_slope(attention, error, task.setting.beta)) / size
        denoised, divergence = denoiser(field, precision)
        change = float(np.linalg.norm(denoised - matrix)) / math.sqrt(size)
        matrix = kept * matrix + (1 - kept) * denoised
        memory = kept * memory + (1 - kept) * residual_field
        variance = kept * variance + (1 - kept) * divergence / size**2
        strength = alpha * float((residual_field**2).sum()) / task.samples
        rows.append((*overlaps(matrix, task.target), variance, change, strength, precision))
        if progress is not None:
            progress(step, change)
        if not variance > 0:
            raise MessagePassingError(
                f"V must be > 0, got {variance:g} after iteration {step}: the denoiser keeps nothing (S = 0), the "
                "penalty lam is too large for message passing"
            )
        if change <= tolerance:
            break
    m, q, variances, residuals, strengths, precisions = np.array(rows).T
    return Iterates(matrix, m, q, variances, residuals, strengths, precisions, bool(residuals[-1] <= tolerance))
