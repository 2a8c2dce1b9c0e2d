"""Message passing with the best spectral denoiser: the target's eigenvalues are known, its eigenvectors are sought.

Labels are turned back into the noisy scores that they encode, K = (T² + T − 2)/2 a sequence, so that the channel is
linear and Gaussian. The denoiser x ↦ x − 2v h(x) finds the Hilbert transform h of the noisy target by itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from verify.samplers import sampler
from verify.samplers.attention_learning import draw
from verify.samplers.attention_message_passing import effective_outputs, sensing_gram, spectral_divergence
from verify.samplers.attention_task import Array, Setting, Task, draw_target, integer, overlaps

NEWTON_STEPS = 3  # at each height above the axis
HEIGHTS = np.geomspace(2.0, 1e-8, 12)  # in units of the noise: the subordinate point is followed down to the axis


def denoised(eigenvalues: Array, known: Array, variance: float) -> tuple[Array, Array]:
    """x − 2v h(x) and its slope at `eigenvalues` of the noisy target, for a target of the `known` eigenvalues.

    The subordinate point w solves w + v ⟨1/(w − s)⟩ = x; then x − 2v h = 2 Re w − x.
    """
    spread = math.sqrt(variance)
    w = eigenvalues + 1j * spread * HEIGHTS[0]
    for height in HEIGHTS:
        goal = eigenvalues + 1j * spread * height
        for _ in range(NEWTON_STEPS):
            inverse = 1 / (w[:, None] - known)
            step = (w + variance * inverse.mean(axis=1) - goal) / (1 - variance * (inverse**2).mean(axis=1))
            moved = w - step
            w = np.where(moved.imag > 0, moved, w.real - step.real + 0.5j * w.imag)
    bend = -variance * (1 / (w[:, None] - known) ** 2).mean(axis=1)
    return 2 * w.real - eigenvalues, ((1 - bend) / (1 + bend)).real


@dataclass(frozen=True, eq=False)
class LinearChannel:
    """Whitened noisy scores t (K × n) of a task, with what a matrix S says of them and how S hears of them.

    The K sensing matrices of a sequence are made orthonormal by their own Gram matrix G = L Lᵀ, which tends to the
    identity: its fluctuations of order 1/√d would slow the approach to large d. `noise` is Δ/2 times (LᵀL)^(−1), the
    covariance of the noise in these coordinates: n × K × K.
    """

    task: Task
    inverse: Array  # L^(−1): n × K × K
    observed: Array  # K × n
    noise: Array

    @classmethod
    def of(cls, task: Task) -> LinearChannel:
        """The channel of a task with softmax labels."""
        factor = np.linalg.cholesky(np.moveaxis(sensing_gram(task), -1, 0))
        inverse = np.linalg.inv(factor)
        logarithms = np.log(task.labels) / task.setting.beta_target
        relative = logarithms - logarithms[:, -1:]
        noise = task.setting.noise / 2 * (inverse @ inverse.transpose(0, 2, 1))
        return cls(task, inverse, _whitened(inverse, relative), noise)

    def scores(self, matrix: Array) -> Array:
        """Whitened scores of a symmetric matrix: K × n."""
        return _whitened(self.inverse, self.task.scores(matrix))

    def pull(self, gradient: Array) -> Array:
        """Σ g A over all sequences, for whitened output gradients g (K × n): a symmetric d × d array."""
        tokens = self.task.setting.tokens
        outputs = np.einsum("nkl,kn->ln", self.inverse, gradient)
        slope = (effective_outputs(tokens).from_relative.T @ outputs).reshape(tokens, tokens, -1)
        slope[:, -1] -= slope.sum(axis=1)
        return self.task.pull_back(slope)

    def gradient(self, centre: Array, variance: float) -> tuple[Array, float]:
        """The output gradient (V + noise)^(−1) (t − ω), and the mean of the trace of that inverse."""
        count = len(centre)
        precision = np.linalg.inv(variance * np.eye(count) + self.noise)
        gradient = np.einsum("nkl,ln->kn", precision, self.observed - centre)
        return gradient, float(np.trace(precision, axis1=1, axis2=2).mean())


def _whitened(inverse: Array, relative: Array) -> Array:
    tokens, samples = relative.shape[0], relative.shape[-1]
    outputs = effective_outputs(tokens).from_relative @ relative.reshape(tokens**2, samples)
    return np.asarray(np.einsum("nkl,ln->kn", inverse, outputs))


@dataclass(frozen=True, eq=False)
class Estimates:
    """Arrays over the iterations 1 … K: error ‖S − S₀‖²/d, overlap Tr S S₀/d, square Tr S²/d; and the last S."""

    matrix: Array
    error: Array
    m: Array
    q: Array


def best_message_passing(task: Task, iterations: int, undamped: int | None = None, onsager: bool = True) -> Estimates:
    """Iterate from S = 0 and V = Tr S₀²/d, with the eigenvalues of the task's target known.

    After the first `undamped` iterations (default: all) half of each iterate is kept: the fixed point is the same, and
    small sizes, whose sensing matrices are less than random, do not swing. Without `onsager` the channel is centred on
    the bare scores of S: for comparison only.
    """
    integer("iterations", iterations, 1, "the number of iterations")
    channel, known = LinearChannel.of(task), np.asarray(np.linalg.eigvalsh(task.target))
    alpha, size = task.samples / task.size**2, task.size
    matrix, variance = np.zeros_like(task.target), float(np.mean(known**2))
    memory = np.zeros_like(channel.observed)
    rows = []
    for step in range(iterations):
        kept = 0.5 if undamped is not None and step >= undamped else 0.0
        centre = channel.scores(matrix) - (variance * memory if onsager else 0.0)
        fresh, trace = channel.gradient(centre, variance)
        memory = kept * memory + (1 - kept) * fresh
        curvature = alpha * trace
        field = matrix + channel.pull(fresh) / (size * curvature)
        spread = alpha * float((fresh**2).sum()) / task.samples / (2 * curvature**2)
        values, vectors = np.linalg.eigh(field)
        images, slopes = denoised(np.asarray(values), known, spread)
        matrix = kept * matrix + (1 - kept) * (vectors * images) @ vectors.T
        matrix = (matrix + matrix.T) / 2
        response = spectral_divergence(values, images, slopes) / (size**2 * curvature)
        variance = kept * variance + (1 - kept) * response
        m, q = overlaps(matrix, task.target)
        rows.append((float(np.sum((matrix - task.target) ** 2)) / size, m, q))
    error, m_path, q_path = np.array(rows).T
    return Estimates(matrix, error, m_path, q_path)


@sampler("attention_bayes_amp")
def attention_bayes_amp(
    size: int, generator: np.random.Generator, parameters: dict[str, float], options: dict[str, Any]
) -> dict[str, Any]:
    """Message passing with the best spectral denoiser on softmax labels of a Gaussian teacher of known eigenvalues.

    The teacher is scaled to Tr S₀²/d = 1 + κ₀, its value at d → ∞. Parameters: alpha, kappa0, noise; both temperatures
    are 1. Options: `tokens` T, `iterations` K, of which the first `undamped` U are plain, `path` P ≤ U. Returns
    `error_path`, ‖S − S₀‖²/d after the iterations 1 … P, and `error_path_bare` of a run without the Onsager term;
    `error`, `m`, `q` of the last iterate, `change` (of the error in the last iteration, from Tr S₀²/d in the first),
    `target_square`, and `alpha` and `kappa0` as realised.
    """
    width = round(size * parameters["kappa0"]) / size
    target = draw_target(size, parameters["kappa0"], generator)
    target *= math.sqrt((1 + width) / overlaps(target, target)[1])
    setting = Setting(noise=parameters["noise"], tokens=options["tokens"])
    task = draw(size, parameters["alpha"], None, target, setting, generator)
    steps, plain, shown = (options[name] for name in ("iterations", "undamped", "path"))
    if not 1 <= shown <= plain <= steps:
        raise ValueError(f"options must have 1 <= path <= undamped <= iterations, got {shown}, {plain} and {steps}")
    run = best_message_passing(task, steps, plain)
    square = overlaps(target, target)[1]
    return {
        "error_path": run.error[:shown],
        "error_path_bare": best_message_passing(task, shown, onsager=False).error,
        "error": float(run.error[-1]),
        "m": float(run.m[-1]),
        "q": float(run.q[-1]),
        "change": abs(float(run.error[-1] - [square, *run.error][-2])),
        "target_square": square,
        "alpha": task.samples / task.size**2,
        "kappa0": width,
    }
