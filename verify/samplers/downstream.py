"""Sampler of the downstream task: ridge regression of a label on pooled sequences, tested on fresh sequences.

The label of a sequence is the common sign of its correlated positions; tokens of the test sequences come from the
vocabulary of the training ones. What the task measures depends on the vocabulary, the samples and the sign patterns.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from verify.samplers import sampler
from verify.samplers.pooled import Signs, directions, draw_tokens, draw_vocabulary, pool, weights_of
from verify.samplers.wishart import Array, Draw, count, number

Labels = NDArray[np.int8]
WEIGHTINGS = ("optimal", "causal", "mean")


def labelled_signs(
    rows: int, generator: np.random.Generator, specification: tuple[str, int, float], length: int
) -> tuple[Labels, Signs]:
    """Labels (rows,) and signs (rows, length): a block of positions shows the label through independent flips.

    `specification` is ("prefix", L, r) or ("suffix", L, r): two positions of the block have correlation r, so each
    agrees with the label with probability (1 + √r)/2; the others are fair. Raises ValueError for anything else.
    """
    kind, block, strength = specification
    if kind not in ("prefix", "suffix") or not 1 <= block <= length or not 0.0 <= strength <= 1.0:
        raise ValueError(
            f'signs must be ("prefix", L, r) or ("suffix", L, r) with 1 <= L <= {length} and r in [0, 1], '
            f"got {specification!r}"
        )
    agree = np.full(length, 0.5)
    agree[slice(0, block) if kind == "prefix" else slice(length - block, length)] = (1.0 + np.sqrt(strength)) / 2.0
    labels = 2 * generator.integers(0, 2, rows, dtype=np.int8) - 1
    flips = generator.random((rows, length)) >= agree
    return labels, np.where(flips, -labels[:, None], labels[:, None])


@sampler("downstream")
def downstream(
    size: int, generator: np.random.Generator, parameters: dict[str, float], options: dict[str, Any]
) -> Draw:
    """Ridge regression of the label on N = d/gamma pooled sequences, for three sets of weights on the same tokens.

    β = (S + λ)⁻¹ (1/N) Σ y_n c_n with λ = ridge·κ; a fresh sequence is classified by the sign of β·c. Parameters:
    delta = d/V, gamma = d/N, signal = ‖μ‖², ridge. Options: `length` T, `signs` (see `labelled_signs`), `weights` (a
    mapping from "optimal", "causal", "mean" to T numbers each), `centred` (means of c and y taken out before, as an
    intercept does; otherwise neither) and `tests`, the number of fresh sequences. Returns for each set of weights
    `accuracy_*` (fraction of right labels), `separation_*` = ⟨β, a⟩/√(κ βᵀW′β) with a half the difference of the class
    means of the vocabulary and W′ the scatter within the classes, `shrinkage_*` = (1/d) tr S(S + λ)⁻¹; and
    `delta`, `gamma`, `norm_a` = ‖a‖² as realised.
    """
    if set(options["weights"]) != set(WEIGHTINGS):
        raise ValueError(f"weights must map {', '.join(WEIGHTINGS)} to numbers, got {sorted(options['weights'])}")
    length, centred = options["length"], bool(options["centred"])
    ridge = number("ridge", parameters["ridge"], above=0.0)
    vocabulary = count(size, parameters["delta"], "delta", multiple=2)
    samples = count(size, parameters["gamma"], "gamma")
    embeddings = draw_vocabulary(size, vocabulary, parameters["signal"], generator)
    labels, signs = labelled_signs(samples, generator, options["signs"], length)
    tokens = draw_tokens(signs, vocabulary, generator)
    fresh_labels, fresh_signs = labelled_signs(options["tests"], generator, options["signs"], length)
    fresh_tokens = draw_tokens(fresh_signs, vocabulary, generator)
    result: Draw = {"delta": size / vocabulary, "gamma": size / samples, "norm_a": directions(embeddings)[2]["norm_a"]}
    for name in WEIGHTINGS:
        weights = weights_of(options["weights"][name], length)
        kappa = float(weights @ weights)
        pooled = pool(embeddings, tokens, weights, centred=False)
        scores, shift, shrinkage = token_scores(embeddings, pooled, labels, ridge * kappa, centred)
        decisions = scores[fresh_tokens] @ weights + shift
        result[f"accuracy_{name}"] = float(np.mean(decisions * fresh_labels > 0.0))
        result[f"separation_{name}"] = separation(scores, kappa)
        result[f"shrinkage_{name}"] = shrinkage
    return result


def token_scores(
    embeddings: Array, pooled: Array, labels: Labels, penalty: float, centred: bool
) -> tuple[Array, float, float]:
    """Ridge regression of the labels: the score β·x of each token, what is added to a sequence's sum, and (1/d) tr.

    Centred: the means of pooled vectors and labels are taken out before, as an intercept does.
    """
    centre = pooled.mean(axis=0) if centred else np.zeros(pooled.shape[1])
    level = float(labels.mean()) if centred else 0.0
    coefficients, shrinkage = ridge_regression(pooled - centre, labels - level, penalty)
    return embeddings @ coefficients, level - float(centre @ coefficients), shrinkage


def separation(scores: Array, kappa: float) -> float:
    """⟨β, a⟩/√(κ βᵀW′β) from the scores of the tokens, the first half of which has sign +.

    Raises ValueError where the classes have no scatter.
    """
    positive, negative = scores[: len(scores) // 2], scores[len(scores) // 2 :]
    scatter = (positive.var() + negative.var()) / 2.0
    if not scatter > 0.0:
        raise ValueError(f"size must leave more than one token a class, got {len(scores)} tokens")
    return float((positive.mean() - negative.mean()) / 2.0 / np.sqrt(kappa * scatter))


def ridge_regression(pooled: Array, labels: NDArray[Any], penalty: float) -> tuple[Array, float]:
    """β = (S + penalty)⁻¹ (1/N) Σ y c with S = (1/N) Σ c cᵀ, and (1/d) tr S(S + penalty)⁻¹.

    Through the smaller of the d × d and the N × N Gram matrix, which have the same nonzero eigenvalues.
    """
    samples, size = pooled.shape
    wide = samples < size
    gram = (pooled @ pooled.T if wide else pooled.T @ pooled) / samples
    gram[np.diag_indices_from(gram)] += penalty
    factor = scipy.linalg.cholesky(gram, lower=True, check_finite=False, overwrite_a=True)
    target = labels / samples if wide else pooled.T @ labels / samples
    solved = scipy.linalg.cho_solve((factor, True), target, check_finite=False)
    inverse = scipy.linalg.solve_triangular(factor, np.eye(len(factor)), lower=True, check_finite=False)
    kept = len(factor) - penalty * float(np.vdot(inverse, inverse))  # tr (S + penalty)⁻¹ is the squared norm of L⁻¹
    return (pooled.T @ solved if wide else solved), kept / size
