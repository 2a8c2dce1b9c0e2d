"""Tied attention with other outputs than the softmax, and with Gaussian matrices in place of pairs of tokens.

Scores h_ab = (x_aᵀ S x_b − δ_ab Tr S)/√d. Outputs: "softmax" (rows of the attention matrix), "linear" (all T² scores)
and "quadratic" (the T scores of tokens with themselves). Designs: "tokens", or "gaussian": h_ab = ⟨A_ab, S⟩ for
independent Gaussian A_ab with the covariance that tokens give, which makes the scores exactly Gaussian at any S.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from verify.samplers.attention_task import (
    Array,
    Setting,
    Task,
    choice,
    draw_noise,
    draw_task,
    score_slope,
    softmax_rows,
)

OUTPUTS = ("softmax", "linear", "quadratic")
DESIGNS = ("tokens", "gaussian")
FRESH_BLOCK = 1024  # fresh sequences that are held at once: they stay in the cache


def respond(output: str, scores: Array, beta: float) -> Array:
    """What the layer shows of its scores (T × T × count): attention rows, all scores, or their diagonal."""
    if output == "softmax":
        return softmax_rows(beta * scores)
    return scores if output == "linear" else scores * np.eye(len(scores))[..., None]


def response_slope(output: str, response: Array, error: Array, beta: float) -> Array:
    """The gradient in the scores of the squared error, summed over all entries: T × T × count."""
    return score_slope(response, error, beta) if output == "softmax" else 2 * error


@dataclass(frozen=True, eq=False)
class ScoreTask(Task):
    """A task whose labels are noisy scores themselves: output "linear" or "quadratic", tokens as inputs.

    `labels` is T × T × n; off the diagonal it is zero for the quadratic output.
    """

    output: str = "linear"

    def scores(self, matrix: Array) -> Array:
        """h_ab of a symmetric S on every sequence: T × T × n."""
        scores, trace = np.empty_like(self.labels), float(np.trace(matrix))
        for rows in self.blocks():
            scores[..., rows] = token_scores(self.inputs[rows], matrix, trace)
        return scores

    def pull_back(self, slope: Array) -> Array:
        """The gradient in S (symmetric, d × d) of a function of h whose gradient in h is `slope` (T × T × n)."""
        gradient = np.zeros_like(self.target)
        for rows in self.blocks():
            _add_token_pull_back(gradient, self.inputs[rows], slope[..., rows])
        return self._finished(gradient)

    def _evaluate(self, matrix: Array, gradient: Array | None) -> float:
        total, trace = 0.0, float(np.trace(matrix))
        for rows in self.blocks():
            response = respond(self.output, token_scores(self.inputs[rows], matrix, trace), self.setting.beta)
            error = response - self.labels[..., rows]
            total += float(np.vdot(error, error))
            if gradient is not None:
                slope = response_slope(self.output, response, error, self.setting.beta)
                _add_token_pull_back(gradient, self.inputs[rows], slope)
        return total


@dataclass(frozen=True, eq=False)
class GaussianTask(Task):
    """A task on Gaussian matrices in place of pairs of tokens: no Gaussian approximation is made by the theory of it.

    `inputs` is n × K × d(d+1)/2: the coordinates of K independent symmetric matrices G_k a sample in an orthonormal
    basis, standard Gaussian. The scores that the output reads are `mixing` (T² × K) times the ⟨G_k, S⟩/√d: their
    covariance is that of the tokens' scores, Var h_ab = (Tr S²/d)(1 + δ_ab).
    """

    output: str = "softmax"
    mixing: Array = field(kw_only=True, repr=False)

    def scores(self, matrix: Array) -> Array:
        """The scores of a symmetric S that the output reads (softmax: relative to the row's last): T × T × n."""
        products = (self._rows @ symmetric_coordinates(matrix)).reshape(self.samples, -1) / math.sqrt(self.size)
        return np.asarray((self.mixing @ products.T).reshape(self.labels.shape))

    def pull_back(self, slope: Array) -> Array:
        """The gradient in S (symmetric, d × d) of a function of those scores with gradient `slope` (T × T × n)."""
        mixed = slope.reshape(len(self.mixing), -1).T @ self.mixing
        return symmetric_matrix(mixed.ravel() @ self._rows, self.size) / math.sqrt(self.size)

    def loss_and_gradient(self, matrix: Array) -> tuple[float, Array]:
        """The data term at a symmetric S, summed over the samples, and its gradient in S (symmetric, d × d)."""
        response = respond(self.output, self.scores(matrix), self.setting.beta)
        error = response - self.labels
        slope = response_slope(self.output, response, error, self.setting.beta)
        return float(np.vdot(error, error)), self.pull_back(slope)

    def _evaluate(self, matrix: Array, gradient: Array | None) -> float:
        error = respond(self.output, self.scores(matrix), self.setting.beta) - self.labels
        return float(np.vdot(error, error))

    @property
    def _rows(self) -> Array:
        return self.inputs.reshape(-1, self.inputs.shape[-1])


def symmetric_coordinates(matrix: Array) -> Array:
    """A symmetric d × d matrix in an orthonormal basis: d(d+1)/2 numbers with the same scalar products."""
    rows, columns = np.triu_indices(len(matrix))
    return np.asarray(matrix[rows, columns] * np.where(rows == columns, 1.0, math.sqrt(2)))


def symmetric_matrix(coordinates: Array, size: int) -> Array:
    """The inverse of `symmetric_coordinates`."""
    rows, columns = np.triu_indices(size)
    matrix = np.zeros((size, size))
    matrix[rows, columns] = coordinates * np.where(rows == columns, 1.0, math.sqrt(0.5))
    return np.asarray(np.triu(matrix) + np.triu(matrix, 1).T)


def token_scores(inputs: Array, matrix: Array, trace: float) -> Array:
    """h_ab of a symmetric S on count × T × d tokens: T × T × count."""
    count, length, size = inputs.shape
    products = (inputs.reshape(-1, size) @ matrix).reshape(inputs.shape)
    scores = np.empty((length, length, count))
    for a in range(length):
        for b in range(a, length):
            np.einsum("ni,ni->n", inputs[:, a], products[:, b], out=scores[a, b])
            scores[b, a] = scores[a, b]
        scores[a, a] -= trace
    scores /= math.sqrt(size)
    return scores


def _add_token_pull_back(gradient: Array, inputs: Array, slope: Array) -> None:
    """Add √d times the gradient with respect to a general (not symmetric) S."""
    size = inputs.shape[-1]
    mixed = np.matmul(slope.transpose(2, 1, 0), inputs)
    gradient += mixed.reshape(-1, size).T @ inputs.reshape(-1, size)
    gradient[np.diag_indices(size)] -= float(np.einsum("aan->", slope))


def score_mixing(output: str, tokens: int) -> Array:
    """T² × K: a square root of the covariance, at Tr S² = d, of the scores that the output reads.

    The output "softmax" reads h_ab − h_aT: K = (T² + T − 2)/2; "linear" all scores: K = T(T + 1)/2; "quadratic": K = T.
    """
    variance = np.zeros((tokens, tokens, tokens, tokens))  # Cov(h_ab, h_ce) = δ_ac δ_be + δ_ae δ_bc
    eye = np.eye(tokens)
    variance += np.einsum("ac,be->abce", eye, eye) + np.einsum("ae,bc->abce", eye, eye)
    if output == "softmax":
        variance = variance - variance[:, -1:]
        variance = variance - variance[:, :, :, -1:]
    elif output == "quadratic":
        variance = variance * np.einsum("ab,ce->abce", eye, eye)
    values, vectors = np.linalg.eigh(variance.reshape(tokens**2, tokens**2))
    kept = values > 1e-9
    return np.asarray(vectors[:, kept] * np.sqrt(values[kept]))


def draw_output_task(
    target: Array, samples: int, setting: Setting, output: str, design: str, generator: np.random.Generator
) -> Task:
    """`samples` sequences with labels of the given `output`; ξ is added to the scores in every case."""
    choice("output", output, OUTPUTS)
    if choice("design", design, DESIGNS) == "gaussian":
        return _draw_gaussian(target, samples, setting, output, generator)
    if output == "softmax":
        return draw_task(target, samples, setting, generator)
    inputs = generator.standard_normal((samples, setting.tokens, len(target)))
    labels = np.empty((setting.tokens, setting.tokens, samples))
    task = ScoreTask(inputs, labels, target, setting, inputs[:, :0], output=output)
    labels[...] = respond(output, task.scores(target) + draw_noise(samples, setting, generator), setting.beta_target)
    return task


def _draw_gaussian(
    target: Array, samples: int, setting: Setting, output: str, generator: np.random.Generator
) -> GaussianTask:
    mixing, size = score_mixing(output, setting.tokens), len(target)
    inputs = generator.standard_normal((samples, mixing.shape[1], size * (size + 1) // 2))
    labels = np.empty((setting.tokens, setting.tokens, samples))
    task = GaussianTask(inputs, labels, target, setting, inputs[:, :0], output=output, mixing=mixing)
    labels[...] = respond(output, task.scores(target) + draw_noise(samples, setting, generator), setting.beta_target)
    return task


def part(task: Task, samples: int) -> Task:
    """The task that consists of the first `samples` of the sequences."""
    return replace(
        task,
        inputs=task.inputs[:samples],
        labels=np.ascontiguousarray(task.labels[..., :samples]),
        differences=task.differences[:samples],
    )


def fresh_errors(
    task: Task, values: Array, vectors: Array, count: int, generator: np.random.Generator
) -> tuple[float, float]:
    """Mean error of the student Σ_j y_j u_ju_jᵀ on `count` fresh sequences: against the noisy and the clean label.

    `values` are the y_j (d), `vectors` the u_j (columns, d × d). The scores of a Gaussian design are drawn as the
    Gaussians that they are, by their covariance.
    """
    output = task.output if isinstance(task, ScoreTask | GaussianTask) else "softmax"
    setting, sums = task.setting, np.zeros(2)
    student, teacher = _factors(values, vectors), _factors_of(task.target)
    for start in range(0, count, FRESH_BLOCK):
        block = min(FRESH_BLOCK, count - start)
        if isinstance(task, GaussianTask):
            scores, clean = _fresh_gaussian(task, (vectors * values) @ vectors.T, block, generator)
        else:
            inputs = generator.standard_normal((block, setting.tokens, task.size))
            scores, clean = factored_scores(inputs, *student), factored_scores(inputs, *teacher)
        noisy = clean + draw_noise(block, setting, generator)
        shown = respond(output, scores, setting.beta)
        errors = [shown - respond(output, label, setting.beta_target) for label in (noisy, clean)]
        sums += [np.vdot(error, error) for error in errors]
    return float(sums[0]) / count, float(sums[1]) / count


def _factors(values: Array, vectors: Array) -> tuple[Array, Array]:
    kept = values != 0
    return values[kept], vectors[:, kept]


def _factors_of(matrix: Array) -> tuple[Array, Array | None]:
    """Eigenvalues and eigenvectors; None in place of the latter for a diagonal matrix."""
    if np.count_nonzero(matrix) == np.count_nonzero(matrix.diagonal()):
        return matrix.diagonal().astype(float), None
    values, vectors = np.linalg.eigh(matrix)
    return _factors(values, vectors)


def factored_scores(inputs: Array, values: Array, vectors: Array | None) -> Array:
    """h_ab of S = Σ_j y_j u_ju_jᵀ on count × T × d tokens: T × T × count. Without `vectors`, S is diagonal."""
    count, length, size = inputs.shape
    projected = inputs if vectors is None else (inputs.reshape(-1, size) @ vectors).reshape(count, length, -1)
    scaled = projected * values
    scores = np.empty((length, length, count))
    for a in range(length):
        for b in range(a, length):
            np.einsum("ni,ni->n", projected[:, a], scaled[:, b], out=scores[a, b])
            scores[b, a] = scores[a, b]
        scores[a, a] -= float(np.sum(values))
    scores /= math.sqrt(size)
    return scores


def _fresh_gaussian(
    task: GaussianTask, matrix: Array, count: int, generator: np.random.Generator
) -> tuple[Array, Array]:
    """Scores of student and teacher on fresh Gaussian matrices: T × T × count each."""
    length, pair = task.setting.tokens, (matrix, task.target)
    gram = np.array([[np.vdot(a, b) for b in pair] for a in pair]) / task.size
    values, vectors = np.linalg.eigh(gram)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    products = np.einsum("sr,krn->skn", root, generator.standard_normal((task.mixing.shape[1], 2, count)))
    student, teacher = np.einsum("ck,skn->scn", task.mixing, products).reshape(2, length, length, count)
    return np.asarray(student), np.asarray(teacher)
