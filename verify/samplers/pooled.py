"""Samplers of pooled sequences: the decoupled model, the token model, and correlated signs for the latter.

Tokens come from a finite vocabulary E of V embeddings e_v = s_v μ + z_v with balanced signs s_v and μ = ‖μ‖ e₁; a
sequence draws each token uniformly from those of a given sign, and is pooled with fixed weights: c_n = Σ_t w_t x_nt.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import scipy.linalg
import scipy.optimize
import scipy.sparse
import scipy.sparse.csgraph
import scipy.sparse.linalg
from numpy.typing import NDArray

from verify.samplers import sampler
from verify.samplers.wishart import (
    Array,
    Draw,
    bidiagonal_factor,
    bidiagonal_times,
    count,
    number,
    triangular_factor,
)

Signs = NDArray[np.int8]
Tokens = NDArray[np.int64]
SignSampler = Callable[[int, np.random.Generator], Signs]

LEADING = 4  # eigenvectors among which a signal or a vocabulary mean is looked for
PROGRAMME_LENGTH = 12  # longest block of positions whose 2^(T−1) sign patterns are enumerated
LANCZOS_SIZE, LANCZOS_SIZE_PER_VECTOR = 100, 80  # measured: Lanczos is faster from about 200 (one vector), 420 (four)
LANCZOS_BASIS = 32
LANCZOS_TOLERANCE = 1e-12  # relative to the eigenvalue
RESOLVED = 1e-10  # a Gram eigenvalue above this fraction of the largest has an accurate vector on the other side
ROUNDING = 1e-9  # entries of a correlation matrix are trusted to this


# ---------------------------------------------------------------------------------------------- correlated signs


def sign_sampler(correlation: Any) -> SignSampler:
    """A sampler of signs ξ in {−1, +1}^T with E ξ = 0 and E ξξᵀ = correlation.

    `correlation`: T × T, symmetric, unit diagonal, positive semidefinite. The result is called with a count and a
    generator and returns an int8 array (count, T) of independent rows. Positions that are uncorrelated with all others
    of their block are treated apart (blocks are independent). A block with R_ij = m_i m_j is a common sign seen
    through independent flips; a block of at most 12 positions is a mixture of sign patterns found by a linear
    programme; a longer one is the sign of a Gaussian vector with correlation sin(πR/2), where that is one.
    Raises ValueError if the matrix is no correlation matrix, if no signs can have it (violated triangle inequality or
    infeasible programme: the message says which), or if none of these constructions reaches it.
    """
    matrix = _correlation_matrix(correlation)
    _refuse_violated_triangle(matrix)
    length = len(matrix)
    blocks = [
        (positions, _block_sampler(matrix[np.ix_(positions, positions)], positions)) for positions in _blocks(matrix)
    ]
    if len(blocks) == 1:
        return blocks[0][1]
    free = np.array([positions[0] for positions, _ in blocks if len(positions) == 1], dtype=np.int64)
    tied = [(positions, draw) for positions, draw in blocks if len(positions) > 1]

    def draw_signs(rows: int, generator: np.random.Generator) -> Signs:
        signs = np.empty((rows, length), dtype=np.int8)
        signs[:, free] = _fair_signs((rows, len(free)), generator)
        for positions, draw in tied:
            signs[:, positions] = draw(rows, generator)
        return signs

    return draw_signs


def prefix_correlation(length: int, block: int, strength: float, suffix: bool = False) -> Array:
    """The identity with `strength` between any two of the first (or last) `block` positions."""
    if block != int(block) or not 0 <= block <= length:
        raise ValueError(f"the number of correlated positions must be an integer from 0 to {length}, got {block!r}")
    if not 0.0 <= strength <= 1.0:
        raise ValueError(f"the correlation r of a prefix or suffix must lie in [0, 1], got {strength!r}")
    matrix = np.eye(length)
    inside = slice(length - int(block), length) if suffix else slice(0, int(block))
    matrix[inside, inside] = strength
    np.fill_diagonal(matrix, 1.0)
    return matrix


def signs_of(specification: Any, length: int) -> tuple[SignSampler, Array]:
    """The sampler and the correlation matrix that an option `signs` asks for.

    `specification` is ("prefix", L, r), ("suffix", L, r) or ("correlation", matrix of size length × length).
    """
    return _signs_of(_frozen(specification), length)


@functools.lru_cache(maxsize=64)
def _signs_of(specification: tuple[Any, ...], length: int) -> tuple[SignSampler, Array]:
    kind, *details = specification
    if kind in ("prefix", "suffix") and len(details) == 2:
        matrix = prefix_correlation(length, details[0], details[1], suffix=kind == "suffix")
    elif kind == "correlation" and len(details) == 1:
        matrix = _correlation_matrix(details[0])
    else:
        raise ValueError(
            f'signs must be ("prefix", L, r), ("suffix", L, r) or ("correlation", matrix), got {specification!r}'
        )
    if len(matrix) != length:
        raise ValueError(f"signs must have a correlation of size length = {length}, got {len(matrix)}")
    return sign_sampler(matrix), matrix


def _frozen(value: Any) -> Any:
    """Nested sequences as nested tuples, so that they can be a key."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    return tuple(_frozen(part) for part in value) if isinstance(value, list | tuple) else value


def _correlation_matrix(correlation: Any) -> Array:
    matrix = np.array(correlation, dtype=float)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        raise ValueError(f"correlation must be a square matrix, got shape {matrix.shape}")
    if not np.isfinite(matrix).all():
        raise ValueError("correlation must be finite, got infinite or undefined entries")
    if np.abs(matrix - matrix.T).max() > ROUNDING:
        raise ValueError("correlation must be symmetric, got a matrix that differs from its transpose")
    if np.abs(np.diag(matrix) - 1.0).max() > ROUNDING:
        raise ValueError(f"correlation must have a unit diagonal, got {np.diag(matrix).tolist()}")
    smallest = np.linalg.eigvalsh(matrix)[0]
    if smallest < -ROUNDING * len(matrix):
        raise ValueError(f"correlation must be positive semidefinite, got the eigenvalue {smallest:.6g}")
    return matrix


def _refuse_violated_triangle(matrix: Array) -> None:
    """All signs have |R_ij ± R_ik| ≤ 1 ± R_jk, because |ξ_i (ξ_j ± ξ_k)| = 1 ± ξ_j ξ_k."""
    for first in range(len(matrix)):
        row = matrix[first]
        for flip in (1.0, -1.0):
            excess = np.abs(row[:, None] + flip * row[None, :]) - 1.0 - flip * matrix
            second, third = np.unravel_index(np.argmax(excess), excess.shape)
            if excess[second, third] > 10 * ROUNDING:
                sign = "+" if flip > 0 else "-"
                raise ValueError(
                    f"no signs of values -1 and +1 have this correlation: |R[{first},{second}] {sign} "
                    f"R[{first},{third}]| = {abs(row[second] + flip * row[third]):.6g} must be <= 1 {sign} "
                    f"R[{second},{third}] = {1.0 + flip * matrix[second, third]:.6g}"
                )


def _blocks(matrix: Array) -> Iterator[NDArray[np.int64]]:
    """Positions that hang together through nonzero correlations; different blocks may be drawn independently."""
    _, label = scipy.sparse.csgraph.connected_components(np.abs(matrix) > ROUNDING, directed=False)
    for block in range(label.max() + 1):
        yield np.flatnonzero(label == block)


def _block_sampler(matrix: Array, positions: NDArray[np.int64]) -> SignSampler:
    loading = _common_loading(matrix)
    if loading is not None:
        return functools.partial(_flipped_common_sign, (1.0 + loading) / 2.0)
    if len(matrix) <= PROGRAMME_LENGTH:
        return functools.partial(_mixture, *_sign_patterns(matrix, positions))
    gaussian = np.sin(np.pi * matrix / 2.0)
    values, vectors = np.linalg.eigh(gaussian)
    if values[0] < -ROUNDING * len(matrix):
        raise ValueError(
            f"no signs with this correlation were found: positions {positions.tolist()} are too many for a linear "
            f"programme (at most {PROGRAMME_LENGTH}) and sin(pi R/2) is not positive semidefinite there (eigenvalue "
            f"{values[0]:.6g}), so no Gaussian vector has these signs; use a shorter block or weaker correlations"
        )
    return functools.partial(_gaussian_signs, vectors * np.sqrt(np.maximum(values, 0.0)))


def _common_loading(matrix: Array) -> Array | None:
    """m in [−1, 1]^T with matrix_ij = m_i m_j off the diagonal, or None: signs of one common factor."""
    length = len(matrix)
    if length == 1:
        return np.zeros(1)
    if length == 2:
        root = math.sqrt(abs(matrix[0, 1]))
        return np.array([root, math.copysign(root, matrix[0, 1])])
    if not matrix.all():
        return None
    square = matrix[0, 1] * matrix[0, 2] / matrix[1, 2]
    if square <= 0.0:
        return None
    loading = matrix[0] / math.sqrt(square)
    loading[0] = math.sqrt(square)
    mismatch = np.outer(loading, loading) - matrix
    np.fill_diagonal(mismatch, 0.0)
    if np.abs(mismatch).max() > ROUNDING or np.abs(loading).max() > 1.0 + ROUNDING:
        return None
    clipped: Array = np.clip(loading, -1.0, 1.0)
    return clipped


def _sign_patterns(matrix: Array, positions: NDArray[np.int64]) -> tuple[Signs, Array]:
    """Patterns (first sign +) and cumulative probabilities whose mixture has the correlation, by linear programming."""
    length = len(matrix)
    bits = np.arange(2 ** (length - 1))[:, None] >> np.arange(length - 1)[None, :] & 1
    patterns = np.hstack([np.ones((len(bits), 1), dtype=np.int8), (1 - 2 * bits).astype(np.int8)])
    first, second = np.triu_indices(length, 1)
    products = (patterns[:, first] * patterns[:, second]).T.astype(float)
    equations = np.vstack([products, np.ones(len(patterns))])
    targets = np.append(matrix[first, second], 1.0)
    answer = scipy.optimize.linprog(
        np.zeros(len(patterns)), A_eq=equations, b_eq=targets, bounds=(0, None), method="highs"
    )
    if answer.status == 2:
        raise ValueError(
            f"no signs of values -1 and +1 have this correlation: the linear programme over the {len(patterns)} sign "
            f"patterns of positions {positions.tolist()} is infeasible"
        )
    if answer.status != 0:
        raise ValueError(f"no signs with this correlation were found: the linear programme failed ({answer.message})")
    probabilities = np.maximum(answer.x, 0.0)
    used = np.flatnonzero(probabilities)
    cumulative = np.cumsum(probabilities[used])
    return patterns[used], cumulative / cumulative[-1]


def _fair_signs(shape: tuple[int, ...], generator: np.random.Generator) -> Signs:
    return 2 * generator.integers(0, 2, shape, dtype=np.int8) - 1


def _flipped_common_sign(agree: Array, rows: int, generator: np.random.Generator) -> Signs:
    """A fair sign per row, kept at position t with probability agree[t] and flipped otherwise."""
    common = _fair_signs((rows, 1), generator)
    if len(agree) == 1:
        return common
    return np.where(generator.random((rows, len(agree))) < agree, common, -common)


def _mixture(patterns: Signs, cumulative: Array, rows: int, generator: np.random.Generator) -> Signs:
    """A pattern drawn by its probability, times a fair sign (which makes the mean zero)."""
    chosen = np.searchsorted(cumulative, generator.random(rows), side="right")
    return patterns[np.minimum(chosen, len(patterns) - 1)] * _fair_signs((rows, 1), generator)


def _gaussian_signs(factor: Array, rows: int, generator: np.random.Generator) -> Signs:
    gaussian = generator.standard_normal((rows, factor.shape[1])) @ factor.T
    return np.where(gaussian < 0.0, np.int8(-1), np.int8(1))


# ------------------------------------------------------------------------------------------------ decoupled model


@sampler("decoupled")
def decoupled(size: int, generator: np.random.Generator, parameters: dict[str, float], options: dict[str, Any]) -> Draw:
    """Σ = kappa ZZᵀ/V + alpha μμᵀ (Z standard Gaussian d × V, independent of μ) and N Gaussian samples from it.

    A sample is √kappa Z g/√V + √alpha μ η with g, η standard Gaussian. Parameters: delta = d/V, gamma = d/N, alpha,
    kappa, signal = ‖μ‖²; option `side`: "above" takes the largest eigenvalue of Σ and of the sample covariance,
    "below" the smallest that is not zero by rank. Returns, in units of kappa, `population_location`,
    `population_overlap` (squared, with μ/‖μ‖), `sample_location`, `sample_overlap`, and `delta`, `gamma` as realised.
    """
    vocabulary = count(size, parameters["delta"], "delta")
    samples = count(size, parameters["gamma"], "gamma")
    kappa = number("kappa", parameters["kappa"], above=0.0)
    spike = number("alpha", parameters["alpha"], least=0.0) * number("signal", parameters["signal"], least=0.0) / kappa
    side = options["side"]
    if side not in ("above", "below"):
        raise ValueError(f'side must be "above" or "below", got {side!r}')
    diagonal, below = (part / math.sqrt(vocabulary) for part in bidiagonal_factor(size, vocabulary, generator))
    noise = triangular_factor(len(diagonal) + 1, samples, generator) / math.sqrt(samples)
    factor = bidiagonal_times(diagonal, below, noise)
    factor[0] += math.sqrt(spike) * noise[-1]

    rank = min(size, vocabulary + (spike > 0.0))
    population_location, population_overlap = _population_extreme(diagonal, below, spike, rank, side)
    sample_location, sample_overlap = _factor_extreme(factor, min(rank, samples), side)
    return {
        "population_location": population_location,
        "population_overlap": population_overlap,
        "sample_location": sample_location,
        "sample_overlap": sample_overlap,
        "delta": size / vocabulary,
        "gamma": size / samples,
    }


def _population_extreme(diagonal: Array, below: Array, spike: float, rank: int, side: str) -> tuple[float, float]:
    """Extreme nonzero eigenvalue of BBᵀ + spike e₁e₁ᵀ and the squared first coordinate of its eigenvector."""
    rows = max(len(diagonal), len(below) + 1)
    squares = np.zeros(rows)
    squares[: len(diagonal)] = diagonal**2
    squares[1 : len(below) + 1] += below**2
    squares[0] += spike
    beside = diagonal[: rows - 1] * below[: rows - 1]
    index = rows - 1 if side == "above" else rows - rank
    values, vectors = scipy.linalg.eigh_tridiagonal(squares, beside, select="i", select_range=(index, index))
    return float(values[0]), float(vectors[0, 0] ** 2)


def _factor_extreme(factor: Array, rank: int, side: str) -> tuple[float, float]:
    """Extreme nonzero eigenvalue of factor factorᵀ and the squared first coordinate of its eigenvector."""
    rows, columns = factor.shape
    tall = rows > columns
    gram = factor.T @ factor if tall else factor @ factor.T
    if side == "above":
        values, vectors = leading(gram, 1)
    else:
        index = len(gram) - rank
        values, vectors = scipy.linalg.eigh(gram, subset_by_index=(index, index), driver="evr", check_finite=False)
    first = (factor[0] @ vectors[:, 0]) ** 2 / values[0] if tall else vectors[0, 0] ** 2
    return float(values[0]), float(first)


# ---------------------------------------------------------------------------------------------------- token model


def draw_vocabulary(size: int, vocabulary: int, signal: float, generator: np.random.Generator) -> Array:
    """V × d embeddings, one a row: the first half has sign +, the second half −, along the first coordinate."""
    embeddings = generator.standard_normal((vocabulary, size))
    strength = math.sqrt(number("signal", signal, least=0.0))
    embeddings[: vocabulary // 2, 0] += strength
    embeddings[vocabulary // 2 :, 0] -= strength
    return embeddings


def draw_tokens(signs: Signs, vocabulary: int, generator: np.random.Generator) -> Tokens:
    """For each sign a token drawn uniformly from the V/2 tokens of that sign (rows of `draw_vocabulary`)."""
    half = vocabulary // 2
    return generator.integers(0, half, signs.shape) + half * (signs < 0)


def pool(embeddings: Array, tokens: Tokens, weights: Array, centred: bool) -> Array:
    """The N × d pooled sequences Σ_t w_t x_nt; `weights` has shape (T,) or (N, T). Minus their mean if centred."""
    samples, length = tokens.shape
    data = np.broadcast_to(weights, tokens.shape).ravel()
    selection = scipy.sparse.csr_array(
        (data, tokens.ravel(), np.arange(0, samples * length + 1, length)), shape=(samples, len(embeddings))
    )
    pooled: Array = selection @ embeddings
    if centred:
        if samples < 2:
            raise ValueError("centring needs at least 2 samples, got 1; use a larger size or a smaller gamma")
        pooled -= pooled.mean(axis=0)
    return pooled


def leading_eigenpairs(pooled: Array, how_many: int) -> tuple[Array, Array]:
    """The (at most d) largest eigenvalues of (1/N) Σ c cᵀ, descending, and their unit eigenvectors as columns."""
    samples, size = pooled.shape
    if samples < size:
        values, vectors = leading(pooled @ pooled.T / samples, how_many)
        if len(values) == how_many and values[-1] > RESOLVED * values[0]:
            return values, pooled.T @ vectors / np.sqrt(samples * values)
    return leading(pooled.T @ pooled / samples, how_many)  # also where zeros by rank are among the leading ones


def leading(matrix: Array, how_many: int) -> tuple[Array, Array]:
    """The largest eigenvalues of a symmetric matrix, descending, and their unit eigenvectors as columns.

    Small matrices by LAPACK; beyond the size at which it is faster by Lanczos, from a fixed start, so that equal
    matrices give equal results. If Lanczos does not converge (degenerate eigenvalues), LAPACK decides.
    """
    size = len(matrix)
    if size > LANCZOS_SIZE + LANCZOS_SIZE_PER_VECTOR * how_many:
        with contextlib.suppress(scipy.sparse.linalg.ArpackError):
            values, vectors = scipy.sparse.linalg.eigsh(
                matrix, how_many, v0=np.ones(size), tol=LANCZOS_TOLERANCE, ncv=LANCZOS_BASIS
            )
            order = np.argsort(values)[::-1]
            return values[order], vectors[:, order]
    chosen = (max(size - how_many, 0), size - 1)
    values, vectors = scipy.linalg.eigh(matrix, subset_by_index=chosen, driver="evr", check_finite=False)
    return values[::-1], vectors[:, ::-1]


def class_means(embeddings: Array) -> tuple[Array, Array]:
    """The mean embedding of the tokens of sign + and of those of sign −."""
    half = len(embeddings) // 2
    return embeddings[:half].mean(axis=0), embeddings[half:].mean(axis=0)


def directions(embeddings: Array) -> tuple[Array, Array, Draw]:
    """Half the difference a and half the sum b of the class means, with their realised norms and squared cosines."""
    positive, negative = class_means(embeddings)
    a, b = (positive - negative) / 2.0, (positive + negative) / 2.0
    norm_a, norm_b = float(a @ a), float(b @ b)
    cosines = {"cosine_a": float(a[0] ** 2 / norm_a), "cosine_ab": float((a @ b) ** 2 / (norm_a * norm_b))}
    return a, b, {"norm_a": norm_a, "norm_b": norm_b, **cosines}


def nearest(values: Array, vectors: Array, direction: Array) -> tuple[float, Array]:
    """The eigenvalue and the eigenvector, of those given, with the largest overlap with a direction."""
    best = int(np.argmax(np.abs(direction @ vectors)))
    return float(values[best]), vectors[:, best]


def conditional_moment(embeddings: Array, weights: Array, correlation: Array, centred: bool) -> Array:
    """E[c cᵀ | E], or the covariance of c given E if centred, summed over the T × T pairs of positions.

    Given the signs, tokens are independent: a pair of different positions contributes the outer product of the means of
    its two classes, averaged over the joint law of its two signs; a position paired with itself the second moment of
    the vocabulary. Both signs of a position are equally likely.
    """
    means = np.stack(class_means(embeddings))
    signs = np.array([1.0, -1.0])
    joint = (1.0 + correlation[:, :, None, None] * signs[:, None] * signs[None, :]) / 4.0  # P(ξ_i = s, ξ_j = s')
    pairs = np.outer(weights, weights)
    np.fill_diagonal(pairs, 0.0)
    between = np.einsum("ij,ijst->st", pairs, joint)
    moment: Array = (weights @ weights / len(embeddings)) * (embeddings.T @ embeddings)
    moment += means.T @ between @ means
    if centred:
        mean = weights.sum() * means.mean(axis=0)
        moment -= np.outer(mean, mean)
    return moment


def weights_of(weights: Sequence[float], length: Any) -> Array:
    """The option `weights` as an array of `length` finite numbers, not all zero."""
    if length != int(length) or length < 1:
        raise ValueError(f"length must be a positive integer (the number of positions T), got {length!r}")
    result = np.array(weights, dtype=float)
    if result.shape != (length,) or not np.isfinite(result).all() or not result.any():
        raise ValueError(f"weights must be {length} finite numbers, not all zero, got {weights!r}")
    return result


def draw_sequences(
    size: int, generator: np.random.Generator, parameters: dict[str, float], options: dict[str, Any]
) -> tuple[Array, Tokens, Array, Draw]:
    """Embeddings, tokens (N × T), the signs' correlation, and the realised ratios."""
    vocabulary = count(size, parameters["delta"], "delta", multiple=2)
    samples = count(size, parameters["gamma"], "gamma")
    draw_signs, correlation = signs_of(options["signs"], options["length"])
    embeddings = draw_vocabulary(size, vocabulary, parameters["signal"], generator)
    tokens = draw_tokens(draw_signs(samples, generator), vocabulary, generator)
    return embeddings, tokens, correlation, {"delta": size / vocabulary, "gamma": size / samples}


@sampler("token")
def token(size: int, generator: np.random.Generator, parameters: dict[str, float], options: dict[str, Any]) -> Draw:
    """Leading eigenpairs of S = (1/N) Σ c_n c_nᵀ (covariance if centred) of pooled token sequences, and its population.

    Parameters: delta = d/V, gamma = d/N, signal = ‖μ‖². Options: `length` T, `signs` (see `signs_of`), `weights`
    (T numbers), `centred`, `population`. Locations are in units of κ = Σ w², overlaps are squared. Of the four leading
    eigenvectors, `signal_*` is the one nearest to a (half the difference of the class means), its overlap taken with
    μ/‖μ‖; `vocabulary_*` the one nearest to b (half their sum), its overlap taken with b/‖b‖; `leading_*` the first,
    its overlap taken with μ/‖μ‖. With `population`, `population_signal_*` and `population_vocabulary_*` are the same
    for `conditional_moment`. Realised: `delta`, `gamma`, `norm_a` = ‖a‖², `norm_b` = ‖b‖²,
    `cosine_a` = ⟨a, μ⟩²/(‖a‖²‖μ‖²), `cosine_ab` = ⟨a, b⟩²/(‖a‖²‖b‖²).
    """
    weights = weights_of(options["weights"], options["length"])
    kappa = float(weights @ weights)
    embeddings, tokens, correlation, realised = draw_sequences(size, generator, parameters, options)
    pooled = pool(embeddings, tokens, weights, options["centred"])
    values, vectors = leading_eigenpairs(pooled, LEADING)
    a, b, norms = directions(embeddings)
    result = {**_outliers(values / kappa, vectors, a, b), **realised, **norms}
    result["leading_location"] = float(values[0] / kappa)
    result["leading_overlap"] = float(vectors[0, 0] ** 2)
    if options["population"]:
        moment = conditional_moment(embeddings, weights, correlation, options["centred"])
        values, vectors = leading(moment / kappa, LEADING)
        result.update({f"population_{name}": value for name, value in _outliers(values, vectors, a, b).items()})
    return result


def _outliers(values: Array, vectors: Array, a: Array, b: Array) -> Draw:
    signal_location, signal_vector = nearest(values, vectors, a)
    vocabulary_location, vocabulary_vector = nearest(values, vectors, b)
    return {
        "signal_location": signal_location,
        "signal_overlap": float(signal_vector[0] ** 2),
        "vocabulary_location": vocabulary_location,
        "vocabulary_overlap": float((vocabulary_vector @ b) ** 2 / (b @ b)),
    }


@sampler("token_moments")
def token_moments(
    size: int, generator: np.random.Generator, parameters: dict[str, float], options: dict[str, Any]
) -> Draw:
    """The first four spectral moments (1/d) tr (S/κ)^k of the centred token model without signal and correlation.

    Parameters: delta = d/V, gamma = d/N. Options: `length` T, `weights` (T numbers; κ = Σ w²). Signs are independent
    and fair, so a token is uniform over the whole vocabulary. Returns `moments` (4,), and `delta`, `gamma` as realised.
    """
    weights = weights_of(options["weights"], options["length"])
    vocabulary = count(size, parameters["delta"], "delta", multiple=2)
    samples = count(size, parameters["gamma"], "gamma")
    embeddings = generator.standard_normal((vocabulary, size))
    tokens = generator.integers(0, vocabulary, (samples, len(weights)))
    pooled = pool(embeddings, tokens, weights, centred=True)
    gram = pooled @ pooled.T if samples < size else pooled.T @ pooled
    gram /= samples * float(weights @ weights)
    square = gram @ gram
    moments = np.array([np.trace(gram), np.vdot(gram, gram), np.vdot(gram, square), np.vdot(square, square)]) / size
    return {"moments": moments, "delta": size / vocabulary, "gamma": size / samples}


@sampler("token_weights")
def token_weights(
    size: int, generator: np.random.Generator, parameters: dict[str, float], options: dict[str, Any]
) -> Draw:
    """Leading eigenvectors of the centred S of the same tokens under three sets of weights.

    Parameters: delta = d/V, gamma = d/N, signal = ‖μ‖². Options: `length` T, `signs` (see `signs_of`), `weights`: a
    mapping from "optimal", "causal" and "mean" to T numbers each. Returns `overlap_optimal`, `overlap_causal`,
    `overlap_mean` (squared, with μ/‖μ‖), and `delta`, `gamma` as realised.
    """
    names = ("optimal", "causal", "mean")
    if set(options["weights"]) != set(names):
        raise ValueError(f"weights must map {', '.join(names)} to numbers, got {sorted(options['weights'])}")
    embeddings, tokens, _, result = draw_sequences(size, generator, parameters, options)
    for name in names:
        weights = weights_of(options["weights"][name], options["length"])
        _, vectors = leading_eigenpairs(pool(embeddings, tokens, weights, centred=True), 1)
        result[f"overlap_{name}"] = float(vectors[0, 0] ** 2)
    return result
