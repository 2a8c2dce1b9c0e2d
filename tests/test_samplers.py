"""The samplers against dense constructions, brute-force enumeration and exact finite-size expectations.

Nothing here reads a law: what a sampler is held to is its own definition, or a value that is known at finite size.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.stats

from verify.samplers import attention, pooled, wishart

LENGTH = 6
UNIFORM = (1 / LENGTH,) * LENGTH
RAMP = tuple(range(1, LENGTH + 1))
PREFIX = ("prefix", 3, 0.6)
RATIOS = {"delta": 0.5, "gamma": 0.25}
NORMS = {"delta", "gamma", "norm_a", "norm_b", "cosine_a", "cosine_ab"}
POOLED = {"signal_location", "signal_overlap", "vocabulary_location", "vocabulary_overlap"}
LEADING = {"leading_location", "leading_overlap"}
TOKEN = {"length": LENGTH, "signs": PREFIX, "weights": UNIFORM, "centred": False, "population": False}
THREE = {"optimal": UNIFORM, "causal": RAMP, "mean": UNIFORM}
ATTENTION = {"length": LENGTH, "mask": "strict", "signs": PREFIX}

# sampler, parameters, options, keys of one number each, keys of arrays with their shapes at size d
MODELS = {
    "wishart": (
        wishart.wishart,
        {"gamma": 0.25, "theta": 1.0},
        {},
        {"top_overlap", "largest_eigenvalue", "gamma"},
        {"eigenvalues": "d"},
    ),
    "product": (
        wishart.product,
        RATIOS,
        {},
        {"zero_count", "largest_eigenvalue", "smallest_eigenvalue", "delta", "gamma"},
        {"eigenvalues": "d"},
    ),
    **{
        f"decoupled {side}": (
            pooled.decoupled,
            {**RATIOS, "alpha": 2.0, "kappa": 0.5, "signal": 0.7},
            {"side": side},
            {"population_location", "population_overlap", "sample_location", "sample_overlap", "delta", "gamma"},
            {},
        )
        for side in ("above", "below")
    },
    "token": (pooled.token, {**RATIOS, "signal": 0.6}, TOKEN, NORMS | POOLED | LEADING, {}),
    "token population": (
        pooled.token,
        {**RATIOS, "signal": 0.6},
        {**TOKEN, "centred": True, "population": True},
        NORMS | POOLED | LEADING | {f"population_{name}" for name in POOLED},
        {},
    ),
    "token_moments": (
        pooled.token_moments,
        RATIOS,
        {"length": LENGTH, "weights": UNIFORM},
        {"delta", "gamma"},
        {"moments": 4},
    ),
    "token_weights": (
        pooled.token_weights,
        {**RATIOS, "signal": 0.6},
        {"length": LENGTH, "signs": PREFIX, "weights": THREE},
        {"overlap_optimal", "overlap_causal", "overlap_mean", "delta", "gamma"},
        {},
    ),
    "attention_scores": (
        attention.attention_scores,
        {"delta": 0.5, "signal": 0.6, "tau": 1.0},
        {**ATTENTION, "sequences": 20},
        {"delta"},
        {"weights": LENGTH},
    ),
    "attention_pooling": (
        attention.attention_pooling,
        {**RATIOS, "signal": 0.6, "tau": 1.0},
        {**ATTENTION, "centred": True},
        NORMS | {"signal_eigenvalue", "signal_overlap", "vocabulary_eigenvalue", "vocabulary_overlap"},
        {},
    ),
}


def same(left, right):
    return left.keys() == right.keys() and all(np.array_equal(left[key], right[key]) for key in left)


@pytest.mark.parametrize("name", MODELS)
def test_contract(name):
    """Exactly the keys promised, finite numbers of the right shape, and the generator alone decides the draw."""
    sample, parameters, options, numbers, arrays = MODELS[name]
    first = sample(24, np.random.default_rng(1), parameters, options)
    assert set(first) == numbers | set(arrays)
    for key, shape in arrays.items():
        assert np.shape(first[key]) == (24 if shape == "d" else shape,)
    assert all(isinstance(first[key], float) for key in numbers)
    assert all(np.isfinite(value).all() for value in first.values())
    assert all(0.0 <= value <= 1.0 + 1e-9 for key, value in first.items() if "overlap" in key or key == "cosine_a")
    assert same(first, sample(24, np.random.default_rng(1), parameters, options))
    other = sample(24, np.random.default_rng(2), parameters, options)
    fixed = {"delta", "gamma", "zero_count"}
    assert not any(np.array_equal(first[key], other[key]) for key in first.keys() - fixed)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("ratio", [0.5, 1.0, 2.0])
def test_smallest_sizes_give_numbers(name, ratio):
    """Ranks of one or two, repeated tokens and spectra that are zero throughout: finite numbers, no NaN."""
    sample, parameters, options, *_ = MODELS[name]
    parameters = {**parameters, **dict.fromkeys(parameters.keys() & RATIOS.keys(), ratio)}
    for size in (4, 5, 7):
        for seed in range(4):
            draw = sample(size, np.random.default_rng(seed), parameters, options)
            assert all(np.isfinite(value).all() for value in draw.values()), (size, seed, draw)


def test_zero_spectrum():
    """One token a sequence and all sequences alike: the centred covariance is exactly zero."""
    parameters = {"delta": 1.0, "gamma": 1.0, "signal": 1.0}
    options = {**TOKEN, "length": 1, "weights": (1.0,), "signs": ("prefix", 0, 0.0), "centred": True}
    draws = [pooled.token(2, np.random.default_rng(seed), parameters, options) for seed in range(12)]
    assert any(draw["leading_location"] == 0.0 for draw in draws)
    assert all(math.isfinite(value) for draw in draws for value in draw.values())
    eigenvalues, zeros = wishart.spectrum(np.zeros((3, 2)), 4)
    assert zeros == 4 and not eigenvalues.any()


def test_ratios_are_realised_and_reported():
    draw = pooled.token(50, np.random.default_rng(0), {"delta": 0.7, "gamma": 0.3, "signal": 1.0}, TOKEN)
    assert (draw["delta"], draw["gamma"]) == (50 / 72, 50 / 167)  # 50/0.7 = 71.4 to an even number, 50/0.3 = 166.7


# ------------------------------------------------------------------------------------------------------- Wishart


def test_largest_eigenvalue_of_the_classical_wishart():
    """Case 15: mean largest eigenvalue 2.1961 ± 0.0006 at p = 100, n = 400; above the edge 2.25 in 13–14 % of draws."""
    generator = np.random.default_rng(15)
    parameters = {"gamma": 0.25, "theta": 0.0}
    largest = np.array([wishart.wishart(100, generator, parameters, {})["eigenvalues"][-1] for _ in range(5000)])
    error = math.hypot(0.0006, largest.std() / math.sqrt(len(largest)))
    assert abs(largest.mean() - 2.1961) < 4 * error
    assert abs((largest > 2.25).mean() - 0.135) < 0.005 + 4 * math.sqrt(0.135 * 0.865 / len(largest))


def deviation(values, expected):
    """How many standard errors the mean of a sample is from its expectation."""
    values = np.asarray(values)
    return abs(values.mean() - expected) / (values.std(ddof=1) / math.sqrt(len(values)))


@pytest.mark.parametrize("gamma", [0.25, 1.0, 3.0])
def test_exact_moments_of_the_wishart(gamma):
    """Real Wishart at finite size: E tr S/d = 1, E tr S²/d = 1 + (d+1)/N, E tr S³/d = 1 + 3(d+1)/N + (d²+3d+4)/N²."""
    generator, size = np.random.default_rng(7), 12
    draws = [wishart.wishart(size, generator, {"gamma": gamma, "theta": 0.0}, {}) for _ in range(1500)]
    samples = round(size / gamma)
    moments = np.array([[np.mean(draw["eigenvalues"] ** power) for power in (1, 2, 3)] for draw in draws])
    second, third = 1 + (size + 1) / samples, 1 + 3 * (size + 1) / samples + (size**2 + 3 * size + 4) / samples**2
    assert max(deviation(moments[:, 0], 1), deviation(moments[:, 1], second), deviation(moments[:, 2], third)) < 4


@pytest.mark.parametrize(("delta", "gamma"), [(0.5, 0.25), (2.0, 0.5), (1.5, 3.0), (1.0, 1.0)])
def test_exact_moments_of_the_product(delta, gamma):
    """E tr S/d = 1 and E tr S²/d = (1 + 1/N)(1 + (d+1)/V) + (d + 2/V)/N at finite size.

    Given A = ZZᵀ/V, E tr (A W A W) = (1 + 1/N) tr A² + (tr A)²/N for W real Wishart; E tr A² = d (1 + (d+1)/V) and
    E (tr A)² = d² + 2d/V.
    """
    generator, size = np.random.default_rng(8), 12
    draws = [wishart.product(size, generator, {"delta": delta, "gamma": gamma}, {}) for _ in range(1500)]
    vocabulary, samples = round(size / delta), round(size / gamma)
    second = (1 + 1 / samples) * (1 + (size + 1) / vocabulary) + (size + 2 / vocabulary) / samples
    assert deviation([draw["eigenvalues"].mean() for draw in draws], 1) < 4
    assert deviation([np.mean(draw["eigenvalues"] ** 2) for draw in draws], second) < 4
    rank = min(size, vocabulary, samples)
    assert all(draw["zero_count"] == size - rank == np.sum(draw["eigenvalues"] == 0) for draw in draws)


def test_no_small_eigenvalue_is_taken_for_zero_at_a_hard_edge():
    """At δ = γ = 1 the smallest eigenvalue is of order d⁻³: it is small, and not zero."""
    draws = [wishart.product(96, np.random.default_rng(seed), {"delta": 1.0, "gamma": 1.0}, {}) for seed in range(40)]
    assert min(draw["eigenvalues"][0] / draw["eigenvalues"][-1] for draw in draws) < wishart.GRAM_RESOLUTION
    assert all(draw["zero_count"] == 0 for draw in draws)


def agree(left, right):
    """Two samples of several statistics come from one law (Kolmogorov–Smirnov, each at the level 1e-4)."""
    pairs = zip(np.transpose(left), np.transpose(right), strict=True)
    return all(scipy.stats.ks_2samp(one, two).pvalue > 1e-4 for one, two in pairs)


@pytest.mark.parametrize(("gamma", "theta"), [(0.5, 1.5), (2.0, 1.0)])
def test_reduced_wishart_has_the_law_of_the_dense_one(gamma, theta):
    generator, size = np.random.default_rng(3), 8
    samples = round(size / gamma)

    def reduced():
        draw = wishart.wishart(size, generator, {"gamma": gamma, "theta": theta}, {})
        return *draw["eigenvalues"][size - min(size, samples) :], draw["top_overlap"]

    def dense():
        data = generator.standard_normal((size, samples))
        data[0] *= math.sqrt(1 + theta)
        values, vectors = np.linalg.eigh(data @ data.T / samples)
        return *values[size - min(size, samples) :], vectors[0, -1] ** 2

    assert agree([reduced() for _ in range(1000)], [dense() for _ in range(1000)])


@pytest.mark.parametrize(("delta", "gamma"), [(0.5, 0.25), (2.0, 4.0), (4.0, 2.0)])
def test_reduced_product_has_the_law_of_the_dense_one(delta, gamma):
    generator, size = np.random.default_rng(4), 8
    vocabulary, samples = round(size / delta), round(size / gamma)
    rank = min(size, vocabulary, samples)

    def dense():
        data = generator.standard_normal((size, vocabulary)) @ generator.standard_normal((vocabulary, samples))
        return np.linalg.eigvalsh(data @ data.T / (vocabulary * samples))[size - rank :]

    draws = [wishart.product(size, generator, {"delta": delta, "gamma": gamma}, {}) for _ in range(1000)]
    assert agree([draw["eigenvalues"][size - rank :] for draw in draws], [dense() for _ in range(1000)])


# ----------------------------------------------------------------------------------------------- decoupled model


@pytest.mark.parametrize("side", ["above", "below"])
@pytest.mark.parametrize(
    ("delta", "gamma", "spike"), [(0.5, 0.25, 2.0), (2.0, 0.5, 0.3), (2.0, 0.5, 0.0), (4.0, 2.0, 0.3), (2.0, 4.0, 0.5)]
)
def test_reduced_decoupled_model_has_the_law_of_the_dense_one(delta, gamma, spike, side):
    """Both levels, and their dependence on one another, against Z, g and η drawn as matrices."""
    generator, size, kappa = np.random.default_rng(5), 8, 0.7
    vocabulary, samples = round(size / delta), round(size / gamma)
    rank = min(size, vocabulary + (spike > 0))
    parameters = {"delta": delta, "gamma": gamma, "alpha": 2 * spike * kappa, "kappa": kappa, "signal": 0.5}
    names = ("population_location", "population_overlap", "sample_location", "sample_overlap")

    def reduced():
        draw = pooled.decoupled(size, generator, parameters, {"side": side})
        return *(draw[name] for name in names), draw[names[0]] * draw[names[2]], draw[names[1]] * draw[names[3]]

    def dense():
        noise = generator.standard_normal((size, vocabulary)) / math.sqrt(vocabulary)
        data = noise @ generator.standard_normal((vocabulary, samples))
        data[0] += math.sqrt(spike) * generator.standard_normal(samples)
        population = noise @ noise.T
        population[0, 0] += spike
        result = []
        for matrix, nonzero in ((population, rank), (data @ data.T / samples, min(rank, samples))):
            values, vectors = np.linalg.eigh(matrix)
            chosen = -1 if side == "above" else size - nonzero
            result += [values[chosen], vectors[0, chosen] ** 2]
        return *result, result[0] * result[2], result[1] * result[3]

    assert agree([reduced() for _ in range(500)], [dense() for _ in range(500)])


# --------------------------------------------------------------------------------------------------- token model


def enumerated_moment(embeddings, weights, patterns, centred):
    """E[c cᵀ | E] by running through every sign pattern (with its probability) and every choice of tokens."""
    half = len(embeddings) // 2
    mean, moment = 0.0, 0.0
    for signs, probability in patterns.items():
        choices = [range(half) if sign > 0 else range(half, 2 * half) for sign in signs]
        for tokens in itertools.product(*choices):
            vector = sum(weight * embeddings[index] for weight, index in zip(weights, tokens, strict=True))
            mean += probability / half ** len(signs) * vector
            moment += probability / half ** len(signs) * np.outer(vector, vector)
    return moment - np.outer(mean, mean) if centred else moment


@pytest.mark.parametrize("centred", [False, True])
def test_conditional_moment_by_enumeration(centred):
    """Against all sign patterns and token choices, for any mixture of patterns with mean zero."""
    generator = np.random.default_rng(11)
    embeddings = pooled.draw_vocabulary(5, 4, 1.3, generator)
    signs = list(itertools.product((1, -1), repeat=3))
    draws = generator.random(8)
    probabilities = (draws + draws[::-1]) / (2 * draws.sum())  # pattern and opposite pattern are equally likely
    correlation = np.einsum("p,pi,pj->ij", probabilities, np.array(signs), np.array(signs))
    weights = np.array([0.2, -0.5, 1.1])
    expected = enumerated_moment(embeddings, weights, dict(zip(signs, probabilities, strict=True)), centred)
    assert np.allclose(pooled.conditional_moment(embeddings, weights, correlation, centred), expected, atol=1e-13)


@pytest.mark.parametrize("signs", [("prefix", 2, 0.5), ("suffix", 3, 1.0), ("prefix", 0, 0.0)])
def test_sampled_sequences_have_the_conditional_moment(signs):
    """Second moments of pooled sequences, entry by entry, given one vocabulary."""
    generator = np.random.default_rng(12)
    weights = np.array([0.4, 0.3, 0.2, 0.1])
    draw_signs, correlation = pooled.signs_of(signs, 4)
    embeddings = pooled.draw_vocabulary(3, 6, 2.0, generator)
    sequences = pooled.pool(
        embeddings, pooled.draw_tokens(draw_signs(100_000, generator), 6, generator), weights, centred=False
    )
    expected = pooled.conditional_moment(embeddings, weights, correlation, centred=False)
    for first, second in itertools.combinations_with_replacement(range(3), 2):
        assert deviation(sequences[:, first] * sequences[:, second], expected[first, second]) < 4.5


def test_tokens_have_the_sign_that_was_drawn():
    generator = np.random.default_rng(0)
    signs = pooled.sign_sampler(np.eye(4))(200, generator)
    tokens = pooled.draw_tokens(signs, 10, generator)
    assert np.array_equal(tokens < 5, signs > 0)
    assert set(tokens.ravel()) == set(range(10))


def test_pooling_is_the_weighted_sum_of_the_tokens():
    generator = np.random.default_rng(1)
    embeddings, tokens = generator.standard_normal((8, 5)), generator.integers(0, 8, (7, 6))
    fixed, varying = generator.random(6), generator.random((7, 6))
    for weights in (fixed, varying):
        expected = np.einsum("nt,ntd->nd", np.broadcast_to(weights, tokens.shape), embeddings[tokens])
        assert np.allclose(pooled.pool(embeddings, tokens, weights, centred=False), expected)
        assert np.allclose(pooled.pool(embeddings, tokens, weights, centred=True), expected - expected.mean(axis=0))


@pytest.mark.parametrize("shape", [(300, 40), (40, 300), (3, 20), (900, 500), (500, 900)])
def test_leading_eigenpairs(shape):
    """Tall and wide data, few samples, LAPACK and Lanczos: the same pairs as a full decomposition of S."""
    data = np.random.default_rng(2).standard_normal(shape)
    values, vectors = pooled.leading_eigenpairs(data, 4)
    every, basis = np.linalg.eigh(data.T @ data / shape[0])
    assert np.allclose(values, every[::-1][:4], atol=1e-10 * every[-1])
    assert np.allclose(vectors.T @ vectors, np.eye(4), atol=1e-9)
    known = min(4, *shape)
    assert np.allclose(np.abs(np.sum(vectors[:, :known] * basis[:, ::-1][:, :known], axis=0)), 1.0, atol=1e-9)


@pytest.mark.parametrize("diagonal", [np.zeros(600), np.ones(600), np.repeat([1.0, 2.0], 300)])
def test_degenerate_leading_eigenvalues(diagonal):
    """Any orthonormal basis of the eigenspace will do, and the Lanczos route must find one."""
    values, vectors = pooled.leading(np.diag(diagonal), 4)
    assert np.allclose(values, diagonal.max()) and np.allclose(vectors.T @ vectors, np.eye(4))
    assert np.allclose(diagonal[:, None] * vectors, vectors * values)


def test_token_draw_replayed_with_dense_matrices():
    """Locations, overlaps and realised norms of one draw, recomputed from the same random numbers."""
    parameters, options = {**RATIOS, "signal": 3.0}, {**TOKEN, "weights": RAMP, "population": True}
    draw = pooled.token(30, np.random.default_rng(9), parameters, options)
    embeddings, tokens, correlation, _ = pooled.draw_sequences(30, np.random.default_rng(9), parameters, options)
    weights = np.array(RAMP, dtype=float)
    half = len(embeddings) // 2
    plus, minus = embeddings[:half].mean(axis=0), embeddings[half:].mean(axis=0)
    a, b, u = (plus - minus) / 2, (plus + minus) / 2, np.eye(30)[0]
    sequences = np.einsum("t,ntd->nd", weights, embeddings[tokens])
    moments = {"": sequences.T @ sequences / len(sequences)}
    moments["population_"] = pooled.conditional_moment(embeddings, weights, correlation, centred=False)
    for prefix, moment in moments.items():
        values, vectors = np.linalg.eigh(moment / (weights @ weights))
        values, vectors = values[-4:], vectors[:, -4:]
        signal, vocabulary = np.argmax(np.abs(a @ vectors)), np.argmax(np.abs(b @ vectors))
        assert draw[f"{prefix}signal_location"] == pytest.approx(values[signal])
        assert draw[f"{prefix}signal_overlap"] == pytest.approx((u @ vectors[:, signal]) ** 2)
        assert draw[f"{prefix}vocabulary_location"] == pytest.approx(values[vocabulary])
        assert draw[f"{prefix}vocabulary_overlap"] == pytest.approx((b @ vectors[:, vocabulary]) ** 2 / (b @ b))
    assert draw["norm_a"] == pytest.approx(a @ a) and draw["norm_b"] == pytest.approx(b @ b)
    assert draw["cosine_a"] == pytest.approx((a @ u) ** 2 / (a @ a))


def test_centring_removes_the_vocabulary_mean():
    """Mean pooling over 16 positions: uncentred, the first eigenvector lies along b; centred, it is the signal's."""
    parameters = {**RATIOS, "signal": 0.6}
    options = {**TOKEN, "length": 16, "weights": (1 / 16,) * 16, "signs": ("prefix", 8, 1.0)}
    plain = pooled.token(256, np.random.default_rng(3), parameters, options)
    centred = pooled.token(256, np.random.default_rng(3), parameters, {**options, "centred": True})
    assert plain["leading_location"] == plain["vocabulary_location"] > plain["signal_location"]
    assert centred["leading_location"] == centred["signal_location"]
    assert plain["vocabulary_overlap"] > 0.9 > 0.1 > centred["vocabulary_overlap"]


@pytest.mark.parametrize("ratio", [0.5, 2.0])
def test_token_moments_replayed(ratio):
    """Power means of the eigenvalues of the same draw, with more samples than dimensions and with fewer."""
    parameters = {"delta": 1.0, "gamma": ratio}
    draw = pooled.token_moments(20, np.random.default_rng(4), parameters, {"length": LENGTH, "weights": RAMP})
    generator, samples = np.random.default_rng(4), round(20 / ratio)
    embeddings = generator.standard_normal((20, 20))
    sequences = np.einsum("t,ntd->nd", RAMP, embeddings[generator.integers(0, 20, (samples, LENGTH))])
    values = np.linalg.eigvalsh(np.cov(sequences.T, bias=True) / np.dot(RAMP, RAMP))
    assert np.allclose(draw["moments"], [np.mean(values**power) for power in (1, 2, 3, 4)])


def test_token_weights_are_pooled_on_the_same_tokens():
    """Each overlap is the leading one of the token model under those weights, from the same generator."""
    parameters = {**RATIOS, "signal": 2.0}
    draw = pooled.token_weights(
        40, np.random.default_rng(6), parameters, {"length": LENGTH, "signs": PREFIX, "weights": THREE}
    )
    for name, weights in THREE.items():
        single = pooled.token(40, np.random.default_rng(6), parameters, {**TOKEN, "weights": weights, "centred": True})
        assert draw[f"overlap_{name}"] == pytest.approx(single["leading_overlap"])


# --------------------------------------------------------------------------------------------------------- signs


def mixture_correlation(length, patterns, seed):
    generator = np.random.default_rng(seed)
    signs = 2 * generator.integers(0, 2, (patterns, length)) - 1
    return np.einsum("p,pi,pj->ij", generator.dirichlet(np.ones(patterns)), signs, signs)


CORRELATIONS = {
    "identity": np.eye(5),
    "one position": np.eye(1),
    "prefix": pooled.prefix_correlation(6, 4, 0.3),
    "suffix, equal signs": pooled.prefix_correlation(5, 3, 1.0, suffix=True),
    "opposite pair": np.array([[1.0, 0.0, -0.7], [0.0, 1.0, 0.0], [-0.7, 0.0, 1.0]]),
    "common factor": (lambda m: np.outer(m, m) + np.diag(1 - m**2))(np.array([0.9, -0.5, 1.0, 0.3])),
    "on the boundary": np.full((3, 3), -1 / 3) + np.eye(3) * 4 / 3,
    "patterns": mixture_correlation(8, 5, 1),
    "twelve positions": mixture_correlation(12, 40, 2),
    "two blocks": np.kron(np.eye(2), np.full((3, 3), -0.3) + 1.3 * np.eye(3)),
    "long, Gaussian": 0.5 ** np.abs(np.subtract.outer(np.arange(15), np.arange(15))),
}


@pytest.mark.parametrize("name", CORRELATIONS)
def test_signs_have_mean_zero_and_the_correlation(name):
    correlation, count = CORRELATIONS[name], 40_000
    draw = pooled.sign_sampler(correlation)
    signs = draw(count, np.random.default_rng(21))
    assert signs.dtype == np.int8 and signs.shape == (count, len(correlation)) and set(np.unique(signs)) == {-1, 1}
    assert np.array_equal(signs, draw(count, np.random.default_rng(21)))
    signs = signs.astype(float)
    assert np.abs(signs.mean(axis=0)).max() < 4.5 / math.sqrt(count)
    error = np.sqrt(np.maximum(1 - correlation**2, 0) / count)
    assert (np.abs(signs.T @ signs / count - correlation) <= 4.5 * error + 1e-6).all()


def equicorrelation(length, value):
    return np.full((length, length), value) + (1 - value) * np.eye(length)


def test_signs_that_cannot_exist_are_refused_with_the_proof():
    with pytest.raises(ValueError, match=r"no signs .* have this correlation: \|R\[0,1\] \+ R\[0,2\]\| = 1 must be <="):
        pooled.sign_sampler(equicorrelation(3, -0.5))
    with pytest.raises(ValueError, match=r"no signs .* linear programme .* is infeasible"):
        pooled.sign_sampler(equicorrelation(5, -0.25))  # every triangle inequality holds, the pentagonal one does not
    with pytest.raises(ValueError, match="no signs with this correlation were found"):
        pooled.sign_sampler(equicorrelation(14, -1 / 13))
    with pytest.raises(ValueError, match="have this correlation"):
        pooled.token(
            20,
            np.random.default_rng(0),
            {**RATIOS, "signal": 1.0},
            {**TOKEN, "length": 3, "weights": (1, 1, 1), "signs": ("correlation", equicorrelation(3, -0.5).tolist())},
        )


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.ones((2, 3)), "square"),
        ([[1.0, math.nan], [math.nan, 1.0]], "finite"),
        ([[1.0, 0.5], [0.2, 1.0]], "symmetric"),
        ([[1.0, 0.5], [0.5, 2.0]], "unit diagonal"),
        (equicorrelation(3, -0.9), "positive semidefinite"),
    ],
)
def test_matrices_that_are_no_correlation(matrix, message):
    with pytest.raises(ValueError, match=f"correlation must .*{message}"):
        pooled.sign_sampler(matrix)


# ----------------------------------------------------------------------------------------------------- attention


def test_softmax_of_infinite_and_huge_scores():
    """Case 11, and the limits next to it."""
    assert np.array_equal(attention.softmax([1.0, 1.0, math.inf]), [0, 0, 1])
    huge = attention.softmax([-249.87, -424.13, -460.29, 378.10, -292.61])
    assert np.allclose(huge, [0, 0, 0, 1, 0], rtol=0, atol=1e-15)
    assert np.allclose(attention.softmax([-math.inf, 3.0, 3.0]), [0, 0.5, 0.5])
    assert np.allclose(attention.softmax([[math.inf, 2.0, math.inf], [0.0, 0.0, 0.0]]), [[0.5, 0, 0.5], [1 / 3] * 3])
    assert np.allclose(attention.softmax([1e308, -1e308]), [1, 0])
    for undefined in ([math.nan, 1.0], [-math.inf, -math.inf]):
        with pytest.raises(ValueError, match="scores must"):
            attention.softmax(undefined)


@pytest.mark.parametrize("mask", ["strict", "inclusive"])
@pytest.mark.parametrize("vocabulary", [6, 400])
def test_effective_weights_by_looping(mask, vocabulary):
    """Query by query, key by key, whether scores come from the vocabulary's Gram matrix or from the sequences."""
    generator, size, tau = np.random.default_rng(31), 5, 2.5
    embeddings, tokens = generator.standard_normal((vocabulary, size)), generator.integers(0, vocabulary, (9, 7))
    weights = attention.effective_weights(embeddings, tokens, tau, mask)
    expected = np.zeros((9, 7))
    for sequence, row in enumerate(tokens):
        queries = range(1, 7) if mask == "strict" else range(7)
        for query in queries:
            keys = range(query) if mask == "strict" else range(query + 1)
            powers = [math.exp(tau * embeddings[row[query]] @ embeddings[row[key]] / size) for key in keys]
            for key in keys:
                expected[sequence, key] += powers[key] / sum(powers) / len(queries)
    assert np.allclose(weights, expected, atol=1e-14) and np.allclose(weights.sum(axis=1), 1.0)


def test_effective_weights_in_pieces(monkeypatch):
    """Working through the sequences piece by piece changes nothing."""
    generator = np.random.default_rng(32)
    embeddings, tokens = generator.standard_normal((30, 5)), generator.integers(0, 30, (50, 7))
    whole = attention.effective_weights(embeddings, tokens, 1.0, "strict")
    monkeypatch.setattr(attention, "GATHERED", 200)
    assert np.array_equal(whole, attention.effective_weights(embeddings, tokens, 1.0, "strict"))


@pytest.mark.parametrize("tau", [-60000.0, 60000.0])
def test_attention_with_huge_scores(tau):
    """A saturated softmax is a choice of keys: weights are finite, non-negative and sum to 1."""
    parameters = {"delta": 0.5, "signal": 4.0, "tau": tau}
    options = {**ATTENTION, "sequences": 10}
    weights = attention.attention_scores(32, np.random.default_rng(1), parameters, options)["weights"]
    assert np.isfinite(weights).all() and (weights >= 0).all() and weights.sum() == pytest.approx(1.0)


def test_attention_without_scores_is_pooling_with_the_mask():
    """At τ = 0 every query spreads evenly over its keys: the token model with those fixed weights, draw for draw."""
    visible = np.tri(LENGTH)
    fixed = (visible / visible.sum(axis=1, keepdims=True)).mean(axis=0)
    parameters = {**RATIOS, "signal": 2.0}
    options = {**ATTENTION, "mask": "inclusive", "centred": False}
    real = attention.attention_pooling(40, np.random.default_rng(2), {**parameters, "tau": 0.0}, options)
    plain = pooled.token(40, np.random.default_rng(2), parameters, {**TOKEN, "weights": tuple(fixed)})
    assert real["signal_eigenvalue"] == pytest.approx(plain["signal_location"] * (fixed @ fixed))
    assert real["vocabulary_eigenvalue"] == pytest.approx(plain["vocabulary_location"] * (fixed @ fixed))
    assert real["signal_overlap"] == pytest.approx(plain["signal_overlap"])
    assert real["vocabulary_overlap"] == pytest.approx(plain["vocabulary_overlap"])
    parameters = {"delta": 0.5, "signal": 2.0, "tau": 0.0}
    options = {**ATTENTION, "mask": "inclusive", "sequences": 3}
    scores = attention.attention_scores(40, np.random.default_rng(2), parameters, options)
    assert np.allclose(scores["weights"], fixed)


def test_embedding_only_the_tokens_that_occur_changes_no_law():
    """Mean effective weights against attention over a fully embedded vocabulary, where few of the tokens occur."""
    parameters, options = {"delta": 2.0, "signal": 3.0, "tau": 2.0}, {**ATTENTION, "sequences": 2}
    generator = np.random.default_rng(33)
    draw_signs, _ = pooled.signs_of(PREFIX, LENGTH)

    def dense():
        embeddings = pooled.draw_vocabulary(8, 4, 3.0, generator)
        tokens = pooled.draw_tokens(draw_signs(2, generator), 4, generator)
        return attention.effective_weights(embeddings, tokens, 2.0, "strict").mean(axis=0)[:-1]

    reduced = [attention.attention_scores(8, generator, parameters, options)["weights"][:-1] for _ in range(1000)]
    assert agree(reduced, [dense() for _ in range(1000)])


# -------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("name", "parameters", "options", "message"),
    [
        ("product", {"delta": -0.5}, {}, r"delta must be finite and > 0, got -0.5 \(delta = d/V"),
        ("product", {"gamma": math.nan}, {}, "gamma must be finite and > 0, got nan"),
        ("product", {"delta": 1000.0}, {}, "delta = 1000 rounds .* use a larger size"),
        ("wishart", {"theta": -1.0}, {}, "theta must be finite and > -1"),
        ("decoupled above", {"kappa": 0.0}, {}, "kappa must be finite and > 0"),
        ("decoupled above", {"alpha": -1.0}, {}, "alpha must be finite and >= 0"),
        ("decoupled above", {}, {"side": "left"}, 'side must be "above" or "below"'),
        ("token", {"signal": -1.0}, {}, "signal must be finite and >= 0"),
        ("token", {"gamma": 20.0}, {"centred": True}, "centring needs at least 2 samples"),
        ("token", {}, {"weights": (1.0,)}, "weights must be 6 finite numbers"),
        ("token", {}, {"weights": (0.0,) * LENGTH}, "weights must be .* not all zero"),
        ("token", {}, {"signs": ("prefix", 7, 0.5)}, "integer from 0 to 6"),
        ("token", {}, {"signs": ("prefix", 3, 1.5)}, r"must lie in \[0, 1\]"),
        ("token", {}, {"signs": ("middle", 3, 0.5)}, "signs must be"),
        ("token", {}, {"signs": ("correlation", ((1.0,),))}, "size length = 6, got 1"),
        ("token_moments", {}, {"length": 0}, "length must be a positive integer"),
        ("token_weights", {}, {"weights": {"mean": UNIFORM}}, "weights must map optimal, causal, mean"),
        ("attention_scores", {"tau": math.inf}, {}, "tau must be finite"),
        ("attention_scores", {}, {"mask": "full"}, 'mask must be "strict" or "inclusive"'),
        ("attention_scores", {}, {"sequences": 0}, "sequences must be a positive integer"),
        ("attention_pooling", {}, {"length": 1, "signs": ("prefix", 0, 0.0)}, "length must be .* 2 for a strict"),
    ],
)
def test_errors_name_the_argument(name, parameters, options, message):
    sample, usual, settings, *_ = MODELS[name]
    with pytest.raises(ValueError, match=message):
        sample(20, np.random.default_rng(0), {**usual, **parameters}, {**settings, **options})


@pytest.mark.parametrize("size", [0, -3, 2.5])
def test_sizes_that_are_no_dimension(size):
    with pytest.raises(ValueError, match="size must be a positive integer"):
        wishart.product(size, np.random.default_rng(0), RATIOS, {})
