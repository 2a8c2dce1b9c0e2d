"""Samplers of parameter-free causal softmax attention on token embeddings, followed by the mean over positions.

The score of positions i and j is τ ⟨x_i, x_j⟩/d; nothing here assumes what its limit is. The weight with which a token
enters the pooled vector is the mean, over the queries i, of the attention A_ij that it receives.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verify.samplers import sampler
from verify.samplers.pooled import (
    LEADING,
    Tokens,
    directions,
    draw_sequences,
    draw_tokens,
    leading_eigenpairs,
    nearest,
    pool,
    signs_of,
)
from verify.samplers.wishart import Array, Draw, count, number

MASKS = ("strict", "inclusive")
GATHERED = 2**22  # numbers gathered at once: 32 MB


def softmax(scores: Any) -> Array:
    """Softmax over the last axis: any finite scores, −∞ (weight 0) and +∞ (the infinite ones share the weight equally).

    Raises ValueError where a row is undefined: a NaN, or no score above −∞.
    """
    logits = np.asarray(scores, dtype=float)
    largest = logits.max(axis=-1, keepdims=True, initial=-math.inf)
    if np.isnan(largest).any():
        raise ValueError("scores must be numbers or infinities, got NaN")
    if (largest == -math.inf).any():
        raise ValueError("scores must have at least one entry above -infinity in each row, got none")
    infinite = largest == math.inf
    if infinite.any():
        logits = np.where(infinite, np.where(logits == math.inf, 0.0, -math.inf), logits)
        largest = np.where(infinite, 0.0, largest)
    with np.errstate(over="ignore"):  # a difference beyond the largest float is -infinity, and its weight 0
        weights: Array = np.exp(logits - largest)
    weights /= weights.sum(axis=-1, keepdims=True)
    return weights


def allowed(length: int, mask: str) -> NDArray[np.bool_]:
    """Queries (rows) × keys of a causal mask: j < i from the second position on ("strict"), or j ≤ i ("inclusive")."""
    if mask not in MASKS:
        raise ValueError(f'mask must be "strict" or "inclusive", got {mask!r}')
    if length != int(length) or length < (2 if mask == "strict" else 1):
        least = "2 for a strict mask, under which the first position sees nothing" if mask == "strict" else "1"
        raise ValueError(f"length must be an integer of at least {least}, got {length!r}")
    return np.tri(length, length, -1, dtype=bool)[1:] if mask == "strict" else np.tri(length, length, 0, dtype=bool)


def effective_weights(embeddings: Array, tokens: Tokens, tau: float, mask: str) -> Array:
    """(1/queries) Σ_i A_ij for every sequence: an N × T array whose rows sum to 1.

    `embeddings`: V × d, one token a row; `tokens`: N × T rows of it. A is the softmax, over the keys that the mask
    allows, of tau ⟨x_i, x_j⟩/d. Scores come from the Gram matrix of the vocabulary where that is the smaller job.
    """
    visible = allowed(tokens.shape[1], mask)
    length, size = tokens.shape[1], embeddings.shape[1]
    scale = number("tau", tau) / size
    shared = embeddings @ embeddings.T if len(embeddings) ** 2 <= 2 * tokens.size * length else None
    queries = tokens[:, length - len(visible) :]
    result = np.empty(tokens.shape)
    step = max(1, GATHERED // (length * max(length, size if shared is None else 1)))
    for start in range(0, len(tokens), step):
        rows = slice(start, start + step)
        if shared is None:
            keys = embeddings[tokens[rows]]
            products = keys[:, length - len(visible) :] @ keys.transpose(0, 2, 1)
        else:
            products = shared[queries[rows, :, None], tokens[rows, None, :]]
        result[rows] = softmax(np.where(visible, scale * products, -math.inf)).mean(axis=1)
    return result


@sampler("attention_scores")
def attention_scores(
    size: int, generator: np.random.Generator, parameters: dict[str, float], options: dict[str, Any]
) -> Draw:
    """Effective pooling weights of causal softmax attention, averaged over sequences of tokens.

    Parameters: delta = d/V, signal = ‖μ‖², tau. Options: `length` T, `mask` ("strict" or "inclusive"), `signs` (see
    `pooled.signs_of`), `sequences` (how many sequences over one vocabulary). Returns `weights` (T,), which sum to 1,
    and `delta` as realised. Only tokens that occur are embedded: the others have no influence.
    """
    sequences, length = options["sequences"], options["length"]
    if sequences != int(sequences) or sequences < 1:
        raise ValueError(f"sequences must be a positive integer, got {sequences!r}")
    allowed(length, options["mask"])
    vocabulary = count(size, parameters["delta"], "delta", multiple=2)
    strength = math.sqrt(number("signal", parameters["signal"], least=0.0))
    draw_signs, _ = signs_of(options["signs"], length)
    drawn = draw_tokens(draw_signs(sequences, generator), vocabulary, generator)
    occurring, tokens = np.unique(drawn, return_inverse=True)
    embeddings = generator.standard_normal((len(occurring), size))
    embeddings[:, 0] += np.where(occurring < vocabulary // 2, strength, -strength)
    tokens = tokens.reshape(sequences, length)
    weights = effective_weights(embeddings, tokens, parameters["tau"], options["mask"]).mean(axis=0)
    return {"weights": weights, "delta": size / vocabulary}


@sampler("attention_pooling")
def attention_pooling(
    size: int, generator: np.random.Generator, parameters: dict[str, float], options: dict[str, Any]
) -> Draw:
    """S = (1/N) Σ c_n c_nᵀ (covariance if centred) of sequences that real softmax attention pools, each in its own way.

    Parameters: delta = d/V, gamma = d/N, signal = ‖μ‖², tau. Options: `length` T, `mask`, `signs`, `centred`. Among the
    four leading eigenvectors of S: `signal_eigenvalue` and `signal_overlap` (squared, with μ/‖μ‖) of the one nearest to
    a, half the difference of the class means; `vocabulary_eigenvalue` and `vocabulary_overlap` (with b/‖b‖) of the one
    nearest to b, half their sum. Realised: `delta`, `gamma`, `norm_a`, `norm_b`, `cosine_a` as in the token model.
    """
    allowed(options["length"], options["mask"])
    embeddings, tokens, _, realised = draw_sequences(size, generator, parameters, options)
    weights = effective_weights(embeddings, tokens, parameters["tau"], options["mask"])
    values, vectors = leading_eigenpairs(pool(embeddings, tokens, weights, options["centred"]), LEADING)
    a, b, norms = directions(embeddings)
    signal_eigenvalue, signal_vector = nearest(values, vectors, a)
    vocabulary_eigenvalue, vocabulary_vector = nearest(values, vectors, b)
    return {
        "signal_eigenvalue": signal_eigenvalue,
        "signal_overlap": float(signal_vector[0] ** 2),
        "vocabulary_eigenvalue": vocabulary_eigenvalue,
        "vocabulary_overlap": float((vocabulary_vector @ b) ** 2 / (b @ b)),
        **realised,
        **norms,
    }
