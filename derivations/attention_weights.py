"""Pooling weights: the optimal ones, those of causal self-attention, and when causal beats mean pooling.

A sequence of T tokens with signs ξ is pooled to c = Σ w_t x_t; its signal is worth α/κ = wᵀRw/wᵀw. The chapter finds
the best w, the w that causal softmax attention tends to as d → ∞, and compares both with the mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import sympy as sp
from sympy import Eq, Integer, Interval, Rational, S, oo

from derivations import bbp
from derivations.bbp import alpha, cosine_a, kappa, norm_a, norm_b, signal, signal_overlap
from derivations.core import (
    Average,
    Claim,
    Exact,
    Experiment,
    Law,
    Limit,
    Model,
    Order,
    measured,
    observable,
    parameter,
    variable,
)
from derivations.wishart_product import delta, gamma

# Symbols -------------------------------------------------------------------------------------------------------

T = parameter("T", "sequence length", S.Naturals, (8, 16))
L = parameter("L", "number of positions whose signs are correlated (the block)", S.Naturals, (2, 5))
M = parameter("M", "number of positions before the block: 0 for a prefix, T − L for a suffix", S.Naturals0, (0, 3))
r = parameter(
    "r", "correlation of the signs of two positions of the block", Interval(0, 1), (Rational(1, 10), Rational(9, 10))
)
tau = parameter("tau", "score scale: scores are τ⟨x_i, x_j⟩/d", S.Reals, (-2, 2))
t = variable("t", "position in the sequence, from 1", S.Naturals, (1, 7))
s = variable("s", "another position in the sequence", S.Naturals, (1, 7))
i = variable("i", "position that attends (a row of the attention matrix)", S.Naturals, (2, 7))
j = variable("j", "position that is attended to (a column)", S.Naturals, (1, 7))
ell = variable(
    "ell",
    "correlated fraction L/T of a long sequence",
    Interval(0, 1),
    (Rational(1, 10), Rational(9, 10)),
    notation=r"\ell",
)

block_sum = variable(
    "block_sum", "sum of the weights over the block", S.Reals, (Rational(1, 10), Rational(4, 5)), notation="A"
)
block_squares = variable(
    "block_squares",
    "sum of the squared weights over the block",
    Interval(0, oo),
    (Rational(1, 50), Rational(1, 5)),
    notation="B",
)
partial_sum = variable(
    "partial_sum", "sum of (T−1) w_t over t ≤ L, strict mask", Interval(0, oo), notation=r"\Sigma_1(L)"
)
partial_squares = variable(
    "partial_squares", "sum of (T−1)² w_t² over t ≤ L, strict mask", Interval(0, oo), notation=r"\Sigma_2(L)"
)
weight = measured("weight", "weight of position t in the pooled vector, as d → ∞", notation="w_t")
row_weight = variable("row_weight", "attention that position i pays to position j, as d → ∞", notation="A_{ij}")
sign_correlation = variable(
    "sign_correlation", "correlation E ξ_s ξ_t of the signs of two positions", notation="R_{st}"
)
snr = measured("snr", "signal-to-noise ratio α/κ of pooled weights", notation=r"\alpha/\kappa")
best_snr = measured("best_snr", "largest signal-to-noise ratio over all weights", notation=r"\max_w \alpha/\kappa")
lead = variable(
    "lead", "causal minus mean signal-to-noise ratio, times Tκ(T−1)²/r: its sign says who wins", notation=r"\Delta"
)
deficit = variable("deficit", "mean minus weighted signal-to-noise ratio, per unit of r", notation=r"\Delta_w")

signal_eigenvalue = measured(
    "signal_eigenvalue", "eigenvalue of S, not divided by κ, of the signal outlier", notation=r"\lambda_a"
)
vocabulary_eigenvalue = measured(
    "vocabulary_eigenvalue", "eigenvalue of S, not divided by κ, of the vocabulary-mean outlier", notation=r"\lambda_b"
)
overlap_optimal, overlap_causal, overlap_mean = (
    observable(
        f"overlap_{name}",
        f"squared overlap of the leading eigenvector with the signal, {name} weights",
        notation=rf"q_{{\mathrm{{{name}}}}}",
    )
    for name in ("optimal", "causal", "mean")
)

_w, _R, _xi, _z = (sp.Function(name) for name in ("w", "R", r"xi", "z"))
_mu = sp.Symbol("mu")
_H = sp.harmonic
weight_vector = sp.MatrixSymbol("w", T, 1)
correlation_matrix = sp.MatrixSymbol("R", T, T)

# Signal and noise of pooled weights ----------------------------------------------------------------------------


def _signal_to_noise():
    pooled = sp.Sum(_w(t) * (_xi(t) * _mu + _z(t)), (t, 1, T))
    yield "pooling, with x_t = ξ_t μ + z_t", Eq(sp.Symbol("c"), pooled)
    w, correlation = weight_vector, correlation_matrix
    strength = sp.Sum(_w(s) * _w(t) * _R(s, t), (s, 1, T), (t, 1, T))
    yield "variance of the coefficient Σ w_t ξ_t of μ, with R = E ξξᵀ and E ξ = 0", Eq(alpha, strength)
    yield (
        "variance of the noise Σ w_t z_t in any direction: the tokens are independent",
        Eq(kappa, sp.Sum(_w(t) ** 2, (t, 1, T))),
    )
    yield "as matrices (a number is its own trace)", Eq(alpha, sp.Trace(w.T * correlation * w), evaluate=False)
    yield "their ratio", Eq(snr, sp.Trace(w.T * correlation * w) / sp.Trace(w.T * w), evaluate=False)


def _ratio(weights: Any, correlation: Any) -> Any:
    """The law of the signal-to-noise ratio at an explicit weight vector and correlation matrix."""
    size = len(weights)
    of_size = signal_to_noise.right.subs(T, size)
    vector, matrix = sp.MatrixSymbol("w", size, 1), sp.MatrixSymbol("R", size, size)
    return of_size.subs({vector: sp.Matrix(weights), matrix: sp.Matrix(correlation)}).doit()


def _block_matrix(length: int, start: int, size: int) -> Any:
    """The correlation matrix of the block model at explicit sizes, read from its law."""
    at = block_correlation.right.subs({M: start, L: size})
    return sp.Matrix(length, length, lambda row, column: at.subs({s: row + 1, t: column + 1}))


def _signal_to_noise_checks():
    weights = (Integer(2), Rational(3, 2), Rational(1, 3))
    second_moment = Integer(0)
    common, stays, leaves = Rational(1, 2), (1 + sp.sqrt(r)) / 2, (1 - sp.sqrt(r)) / 2
    for shared in (1, -1):
        for first in (1, -1):
            for second in (1, -1):
                for free in (1, -1):
                    chance = common * (stays if first == 1 else leaves) * (stays if second == 1 else leaves) / 2
                    pooled = shared * (first * weights[0] + second * weights[1]) + free * weights[2]
                    second_moment += chance * pooled**2
    enumerated = second_moment / sum(value**2 for value in weights)
    yield (
        "average over all signs of the prefix model, T = 3, L = 2",
        _ratio(weights, _block_matrix(3, 0, 2)),
        enumerated,
    )
    scaled = tuple(7 * value for value in weights)
    yield "the scale of w drops out", _ratio(scaled, _block_matrix(3, 0, 2)), _ratio(weights, _block_matrix(3, 0, 2))


signal_to_noise = Law(
    "signal-to-noise-ratio",
    "Signal-to-noise ratio of pooled weights",
    _signal_to_noise,
    source="P1, Section 3; derived here",
    checks=_signal_to_noise_checks,
)

_c, _lambda = sp.IndexedBase("c"), sp.IndexedBase("lambda")
_k, _p = sp.Symbol("k", integer=True), sp.Symbol("p", integer=True)


def _optimal():
    yield "signal-to-noise ratio", signal_to_noise.statement
    v = sp.Function("v")
    yield (
        "spectral theorem: R = Σ λ_k v_k v_kᵀ, orthonormal v_k, λ_1 the largest; coordinates of w",
        Eq(_w(t), sp.Sum(_c[_k] * v(_k, t), (_k, 1, T))),
    )
    noise = sp.Sum(_c[_k] ** 2, (_k, 1, T))
    yield "in these coordinates (a Rayleigh quotient)", Eq(snr, sp.Sum(_lambda[_k] * _c[_k] ** 2, (_k, 1, T)) / noise)
    yield "its derivative along v_p", Eq(sp.Derivative(snr, _c[_p]), 2 * _c[_p] * (_lambda[_p] - snr) / noise)
    w, correlation = weight_vector, correlation_matrix
    yield (
        "stationary iff c_p = 0 or λ_p = α/κ for every p: w is an eigenvector",
        Eq(correlation * w, snr * w, evaluate=False),
    )
    gap = sp.Sum((_lambda[1] - _lambda[_k]) * _c[_k] ** 2, (_k, 1, T))
    yield (
        "subtract from λ_1: no term is negative; all vanish iff w lies in the top eigenspace, simple or not",
        Eq(snr, _lambda[1] - gap / noise),
    )


def _in_eigenbasis(pairs: Any, weights: Any) -> Any:
    """The statement of `optimal` for an explicit eigenbasis (pairs of eigenvalue and unit vector)."""
    values = {_lambda[index]: value for index, (value, _) in enumerate(pairs, 1)}
    coordinates = {
        _c[index]: sum(a * b for a, b in zip(vector, weights, strict=True))
        for index, (_, vector) in enumerate(pairs, 1)
    }
    return optimal.right.subs(T, len(pairs)).doit().subs({**values, **coordinates})


def _optimal_checks():
    half = 1 / sp.sqrt(2)
    pairs = ((1 + r, (half, half, 0)), (1, (0, 0, 1)), (1 - r, (half, -half, 0)))
    weights = (Integer(2), Rational(3, 2), Rational(1, 3))
    yield "prefix model T = 3, L = 2, any w", _in_eigenbasis(pairs, weights), _ratio(weights, _block_matrix(3, 0, 2))
    yield "its top eigenvector reaches λ_1", _in_eigenbasis(pairs, (3, 3, 0)), 1 + r
    degenerate = ((1, (1, 0, 0)), (1, (0, 1, 0)), (1, (0, 0, 1)))
    yield "R = I: every w is optimal", _in_eigenbasis(degenerate, weights), Integer(1)


optimal = Law(
    "optimal-weights",
    "Optimal weights: the top eigenspace of the correlation matrix",
    _optimal,
    source="P1, Theorem 5 (Rayleigh–Ritz); derived here",
    checks=_optimal_checks,
    branch="λ_1 is the largest eigenvalue; if it is degenerate the whole eigenspace is optimal",
)

# The block model: prefix and suffix ----------------------------------------------------------------------------


def _block_correlation():
    common, private = sp.Symbol("sigma"), sp.Function("eta")
    yield (
        "signs of the block: a fair common sign times private ones with P(η = 1) = (1 + √r)/2",
        Eq(_xi(t), common * private(t)),
    )
    mean = (1 + sp.sqrt(r)) / 2 - (1 - sp.sqrt(r)) / 2
    expectation = sp.Function("E")
    yield "mean of a private sign", Eq(expectation(private(t)), mean)
    yield "independence: for s ≠ t in the block", Eq(expectation(_xi(s) * _xi(t)), sp.expand(mean**2))
    inside = sp.And(M < s, s <= M + L, M < t, t <= M + L)
    yield (
        "σ² = η² = 1 on the diagonal; fair independent signs outside the block",
        Eq(sign_correlation, sp.Piecewise((1, Eq(s, t)), (sp.expand(mean**2), inside), (0, True))),
    )


def _block_correlation_checks():
    matrix = _block_matrix(4, 1, 2)
    yield "T = 4, one position before a block of 2: eigenvalue 1 + r", (matrix - (1 + r) * sp.eye(4)).det(), Integer(0)
    yield "the same, sum of the squared entries", sum(entry**2 for entry in matrix), 4 + 2 * r**2


block_correlation = Law(
    "block-correlation",
    "Correlation matrix of signs that are correlated in one block",
    _block_correlation,
    source="P1, Section 4 (prefix model: M = 0); derived here",
    checks=_block_correlation_checks,
)


def _block_snr():
    yield "signal-to-noise ratio", signal_to_noise.statement
    yield "R = I outside the block", block_correlation.statement
    within = sp.Sum(_w(s), (s, M + 1, M + L)) ** 2 - sp.Sum(_w(s) ** 2, (s, M + 1, M + L))
    yield "diagonal and off-diagonal part of wᵀRw", Eq(alpha, kappa + r * within)
    yield "sum and sum of squares over the block", Eq(alpha, kappa + r * (block_sum**2 - block_squares))
    yield (
        "divide by κ: every order between weights is the same for all r > 0",
        Eq(snr, 1 + r * (block_sum**2 - block_squares) / kappa),
    )


def _at_weights(law: Law, weights: Any, start: int, size: int) -> Any:
    """The right side of a law in A, B, κ at explicit weights."""
    inside = weights[start : start + size]
    return law.right.subs(
        {
            block_sum: sum(inside, Integer(0)),
            block_squares: sum((value**2 for value in inside), Integer(0)),
            kappa: sum((value**2 for value in weights), Integer(0)),
            T: len(weights),
            L: size,
        }
    )


def _block_snr_checks():
    weights = (Integer(1), Integer(2), Rational(-3, 4), Integer(5))
    for start, size in ((0, 2), (1, 2), (1, 3), (0, 4)):
        direct = _ratio(weights, _block_matrix(4, start, size))
        yield f"quadratic form at T = 4, M = {start}, L = {size}", _at_weights(block_snr, weights, start, size), direct


block_snr = Law(
    "block-signal-to-noise-ratio",
    "Signal-to-noise ratio of any weights in the block model",
    _block_snr,
    source="derived here",
    checks=_block_snr_checks,
)


def _block_best():
    yield "the correlation matrix", block_correlation.statement
    unit = sp.Function("e", commutative=False)
    block, matrix = sp.symbols("1_B R", commutative=False)
    yield (
        "differences of two positions s, t of the block: L − 1 eigenvectors",
        Eq(matrix * (unit(s) - unit(t)), (1 - r) * (unit(s) - unit(t)), evaluate=False),
    )
    yield "a position t outside the block: T − L eigenvectors", Eq(matrix * unit(t), 1 * unit(t), evaluate=False)
    top = 1 + (L - 1) * r
    yield (
        "the block's indicator: one eigenvector, which completes the basis",
        Eq(matrix * block, top * block, evaluate=False),
    )
    yield "for r > 0 and L ≥ 2 it is the largest, and simple", sp.Gt(top, sp.Max(1, 1 - r), evaluate=False)
    yield "optimal weights: no w exceeds λ_1", optimal.statement
    yield "the largest eigenvalue is the best ratio", Eq(best_snr, top)


def _block_best_checks():
    variable_ = Rational(7, 3)
    for length, start, size in ((5, 0, 3), (6, 2, 4), (3, 0, 3)):
        matrix = _block_matrix(length, start, size)
        polynomial = (variable_ * sp.eye(length) - matrix).det(method="berkowitz")
        top = block_best.right.subs(L, size)
        factors = (variable_ - 1 + r) ** (size - 1) * (variable_ - 1) ** (length - size) * (variable_ - top)
        yield f"characteristic polynomial at 7/3, T = {length}, M = {start}, L = {size}", polynomial, factors


block_best = Law(
    "block-optimal-ratio",
    "Best signal-to-noise ratio in the block model",
    _block_best,
    source="P1, Theorem 5 (prefix model); derived here",
    checks=_block_best_checks,
)


def _block_weights():
    yield "the top eigenvector is the block's indicator", block_best.statement
    inside = sp.And(M < t, t <= M + L)
    yield "of unit norm and positive sum", Eq(weight, sp.Piecewise((1 / sp.sqrt(L), inside), (0, True)))


def _explicit(law: Law, length: int, **values: Any) -> tuple[Any, ...]:
    """The weights of a law at every position of a sequence of explicit length."""
    named = {symbol.name: symbol for symbol in law.right.free_symbols}
    at = law.right.subs({named[name]: value for name, value in values.items() if name in named}).subs(T, length)
    return tuple(at.subs(t, position) for position in range(1, length + 1))


def _block_weights_checks():
    for length, start, size in ((5, 0, 3), (7, 3, 4)):
        weights = _explicit(block_weights, length, M=start, L=size)
        best = block_best.right.subs(L, size)
        yield (
            f"they reach the best ratio, T = {length}, M = {start}, L = {size}",
            _at_weights(block_snr, weights, start, size),
            best,
        )
        yield f"unit norm, L = {size}", sum(value**2 for value in weights), Integer(1)


block_weights = Law(
    "block-optimal-weights",
    "Optimal weights in the block model: uniform on the block",
    _block_weights,
    source="P1, Theorem 5 (prefix model); derived here",
    checks=_block_weights_checks,
)


def _mean_weights():
    yield "mean pooling", Eq(sp.Symbol("c"), sp.Sum(sp.Function("x")(t), (t, 1, T)) / T)
    yield "its weights", Eq(weight, 1 / T)


mean_weights: Law = Law(
    "mean-weights",
    "Weights of mean pooling",
    _mean_weights,
    source="definition",
    checks=lambda: [("they sum to 1", T * mean_weights.right, Integer(1))],
)


def _mean_snr():
    yield "signal-to-noise ratio in the block model", block_snr.statement
    each = mean_weights.right
    yield "uniform weights", mean_weights.statement
    yield (
        "A = L/T, B = L/T², κ = 1/T, wherever the block stands",
        Eq(
            snr,
            sp.factor(block_snr.right.subs({block_sum: L * each, block_squares: L * each**2, kappa: T * each**2}) - 1)
            + 1,
        ),
    )


def _mean_snr_checks():
    for length, start, size in ((4, 1, 3), (5, 0, 2)):
        direct = _ratio(_explicit(mean_weights, length), _block_matrix(length, start, size))
        yield (
            f"quadratic form at T = {length}, M = {start}, L = {size}",
            mean_snr.right.subs({T: length, L: size}),
            direct,
        )


mean_snr = Law(
    "mean-signal-to-noise-ratio",
    "Signal-to-noise ratio of mean pooling in the block model",
    _mean_snr,
    source="derived here",
    checks=_mean_snr_checks,
)

# Causal self-attention -----------------------------------------------------------------------------------------

_score = sp.Function("s")
_embedding = sp.Function("x")
_d = sp.Symbol("d", positive=True)


def _score_limit():
    """Definition of the scores and their limit; shared by both masks."""
    product_of = sp.Function("dot")
    yield "definition of the score", Eq(_score(i, j), tau * product_of(_embedding(i), _embedding(j)) / _d)
    yield (
        "law of large numbers: ‖z_i‖²/d → 1, ⟨z_i, z_j⟩/d → 0, ‖μ‖²/d → 0; P(positions share a token) ≤ 2/V",
        Eq(sp.Limit(_score(i, j), _d, oo), tau * sp.KroneckerDelta(i, j)),
    )


def _inclusive_row():
    yield from _score_limit()
    denominator = sp.Sum(sp.exp(_score(i, s)), (s, 1, i))
    yield "softmax over the positions j ≤ i", Eq(row_weight, sp.exp(_score(i, j)) / denominator)
    yield (
        "continuity of the softmax: one score τ, i − 1 scores 0",
        Eq(row_weight, sp.exp(tau * sp.KroneckerDelta(i, j)) / (i - 1 + sp.exp(tau))),
    )


def _inclusive_row_checks():
    for row in (1, 2, 5):
        total = sum(inclusive_row.right.subs({i: row, j: column}) for column in range(1, row + 1))
        yield f"row {row} sums to 1", sp.together(total), Integer(1)
    yield "τ = 0: uniform", inclusive_row.right.subs({tau: 0, i: 4}).subs(j, 2), Rational(1, 4)


inclusive_row = Law(
    "causal-row-inclusive",
    "One row of causal attention, the diagonal included",
    _inclusive_row,
    source="P1, Section 5; derived here",
    checks=_inclusive_row_checks,
    where=lambda: j <= i,
)


def _strict_row():
    yield from _score_limit()
    denominator = sp.Sum(sp.exp(_score(i, s)), (s, 1, i - 1))
    yield (
        "softmax over the positions j < i, which exist from i = 2 on",
        Eq(row_weight, sp.exp(_score(i, j)) / denominator),
    )
    yield "every admitted score is off the diagonal and tends to 0, whatever τ", Eq(row_weight, 1 / (i - 1))


def _strict_row_checks():
    for row in (2, 5):
        yield f"row {row} sums to 1", (row - 1) * strict_row.right.subs(i, row), Integer(1)
    vanishing = sp.Symbol("vanishing", positive=True)
    off_diagonal = inclusive_row.right.subs(sp.KroneckerDelta(i, j), 0).subs(sp.exp(tau), vanishing)
    yield "τ → −∞ in the inclusive row removes the diagonal", sp.limit(off_diagonal, vanishing, 0), strict_row.right


strict_row = Law(
    "causal-row-strict",
    "One row of causal attention, the diagonal masked",
    _strict_row,
    source="P1, Section 5; derived here",
    checks=_strict_row_checks,
    where=lambda: j < i,
)


def _strict_weights():
    yield "one row", strict_row.statement
    yield (
        "mean over the T − 1 rows: position t occurs in the rows i > t",
        Eq(weight, sp.Sum(strict_row.right, (i, t + 1, T)) / (T - 1)),
    )
    yield "definition of the harmonic numbers", Eq(weight, (_H(T - 1) - _H(t - 1)) / (T - 1))


def _strict_weights_checks():
    for length in (2, 5, 9):
        weights = _explicit(strict_weights, length)
        yield f"they sum to 1, T = {length}", sum(weights), Integer(1)
        yield f"the last position is never attended to, T = {length}", weights[-1], Integer(0)
        for position in (1, length - 1):
            rows = sum((strict_row.right.subs(i, row) for row in range(position + 1, length + 1)), Integer(0)) / (
                length - 1
            )
            yield f"sum over the rows, T = {length}, t = {position}", weights[position - 1], rows


strict_weights = Law(
    "causal-weights-strict",
    "Weights of causal attention, strict mask",
    _strict_weights,
    source="P1, Section 5; derived here",
    checks=_strict_weights_checks,
    where=lambda: sp.And(T >= 2, t <= T),
)


def _inclusive_weights():
    yield "one row", inclusive_row.statement
    own = inclusive_row.right.subs(sp.KroneckerDelta(i, j), 1).subs(i, t)
    other = inclusive_row.right.subs(sp.KroneckerDelta(i, j), 0)
    yield (
        "mean over the T rows: position t occurs in its own row and in the rows i > t",
        Eq(weight, (own + sp.Sum(other, (i, t + 1, T))) / T),
    )
    start, stop = (1 / other).subs(i, t + 1), (1 / other).subs(i, T + 1)
    yield "ψ(x + 1) − ψ(x) = 1/x telescopes", Eq(weight, (own + sp.digamma(stop) - sp.digamma(start)) / T)


def _inclusive_weights_checks():
    for length in (1, 4):
        weights = tuple(sp.expand_func(value) for value in _explicit(inclusive_weights, length))
        yield f"they sum to 1, T = {length}", sp.together(sum(weights)), Integer(1)
        flat = _explicit(inclusive_weights, length, tau=0)
        for position in sorted({1, length}):
            rows = sum(
                (inclusive_row.right.subs({i: row, j: position}) for row in range(position, length + 1)), Integer(0)
            )
            yield f"sum over the rows, T = {length}, t = {position}", weights[position - 1], rows / length
            yield f"τ = 0, T = {length}, t = {position}", flat[position - 1], (_H(length) - _H(position - 1)) / length
    vanishing = sp.Symbol("vanishing", positive=True)
    for position in (1, 3):
        small = sp.limit(inclusive_weights.right.subs({T: 6, t: position}).subs(sp.exp(tau), vanishing), vanishing, 0)
        strict = (5 * strict_weights.right.subs({T: 6, t: position}) + sp.KroneckerDelta(position, 1)) / 6
        yield f"τ → −∞: strict weights, and the first token attends to itself; t = {position}", small, strict


inclusive_weights = Law(
    "causal-weights-inclusive",
    "Weights of causal attention, inclusive mask, score scale τ",
    _inclusive_weights,
    source="derived here",
    checks=_inclusive_weights_checks,
    where=lambda: t <= T,
)

# Sums of the strict weights ------------------------------------------------------------------------------------


def _tail(position: Any) -> Any:
    """(T − 1) w at a position, from the law of the strict weights."""
    return (T - 1) * strict_weights.right.subs(t, position)


def _partial_sum():
    yield "strict weights", strict_weights.statement
    by_parts = L * _tail(L) + sp.Sum(t * (_H(t) - _H(t - 1)), (t, 1, L - 1))
    yield "summation by parts", Eq(partial_sum, by_parts)
    yield "t (H_t − H_{t−1}) = 1, and H_{L−1} = H_L − 1/L", Eq(partial_sum, L * (1 + _H(T - 1) - _H(L)))


def _partial_sum_checks():
    for length, size in ((6, 0), (6, 1), (6, 3), (9, 8)):
        explicit = sum(((length - 1) * value for value in _explicit(strict_weights, length)[:size]), Integer(0))
        yield f"explicit sum, T = {length}, L = {size}", partial_sum_law.right.subs({T: length, L: size}), explicit
    total = partial_sum_law.right.subs(L, T).subs(_H(T), _H(T - 1) + 1 / T)
    yield "L = T: T − 1, the weights sum to 1", total, T - 1


partial_sum_law = Law(
    "causal-weights-partial-sum",
    "Partial sums of the strict causal weights",
    _partial_sum,
    source="derived here by summation by parts",
    checks=_partial_sum_checks,
)


def _partial_squares():
    yield "strict weights", strict_weights.statement
    last, shorter = _H(L) - 1 / L, partial_sum_law.right.subs(L, L - 1)
    yield (
        "summation by parts, t (h_t² − h_{t+1}²) = h_t + h_{t+1} = 2 h_t − 1/t with h_t = (T − 1) w_t",
        Eq(partial_squares, L * _tail(L) ** 2 + sp.Sum(2 * _tail(t) - 1 / t, (t, 1, L - 1))),
    )
    summed = L * _tail(L) ** 2 + 2 * shorter - _H(L - 1)
    yield "the partial sums up to L − 1", Eq(partial_squares, summed)
    level = sp.Symbol("level")
    in_level = sp.expand(summed.subs(_H(L - 1), last).subs(_H(T - 1), level - 1 + _H(L)))
    yield (
        "H_{L−1} = H_L − 1/L, in terms of 1 + H_{T−1} − H_L",
        Eq(partial_squares, sp.collect(in_level, L).subs(level, 1 + _H(T - 1) - _H(L))),
    )


def _partial_squares_checks():
    for length, size in ((6, 0), (6, 1), (6, 3), (9, 8)):
        explicit = sum(((length - 1) ** 2 * value**2 for value in _explicit(strict_weights, length)[:size]), Integer(0))
        yield f"explicit sum, T = {length}, L = {size}", partial_squares_law.right.subs({T: length, L: size}), explicit


partial_squares_law = Law(
    "causal-weights-partial-squares",
    "Partial sums of the squared strict causal weights",
    _partial_squares,
    source="derived here by summation by parts",
    checks=_partial_squares_checks,
)


def _strict_noise():
    yield "squared weights up to L", partial_squares_law.statement
    whole = sp.expand(partial_squares_law.right.subs(L, T).subs(_H(T), _H(T - 1) + 1 / T))
    yield "all of them: L = T, H_T = H_{T−1} + 1/T", Eq((T - 1) ** 2 * kappa, whole)
    yield "noise level of weights that sum to 1", Eq(kappa, whole / (T - 1) ** 2)


strict_noise: Law = Law(
    "causal-weights-noise",
    "Noise level κ of the strict causal weights",
    _strict_noise,
    source="derived here",
    checks=lambda: [
        (
            f"explicit sum, T = {length}",
            strict_noise.right.subs(T, length),
            sum(value**2 for value in _explicit(strict_weights, length)),
        )
        for length in (2, 5, 9)
    ],
)


def _strict_and_noise():
    yield "weight of a position", strict_weights.statement
    yield "noise level", strict_noise.statement
    yield (
        "their sum, for the sake of measurement: the last weight alone is exactly 0 in every draw, without statistics",
        Eq(weight + kappa, strict_weights.right + strict_noise.right),
    )


strict_and_noise: Law = Law(
    "causal-weights-strict-with-noise",
    "Weights of causal attention, strict mask, each together with the noise level of all",
    _strict_and_noise,
    source="derived here",
    checks=lambda: [
        (
            f"explicit weights, T = {length}, t = {position}",
            strict_and_noise.right.subs({T: length, t: position}),
            weights[position - 1] + sum(value**2 for value in weights),
        )
        for length, position in ((2, 1), (5, 3), (9, 9))
        for weights in [_explicit(strict_weights, length)]
    ],
    where=lambda: sp.And(T >= 2, t <= T),
)


def _causal_snr():
    yield "any weights in the block model", block_snr.statement
    first, second = (partial_sum_law.right, partial_squares_law.right)
    yield "partial sums", partial_sum_law.statement
    yield "partial sums of squares", partial_squares_law.statement
    yield "noise level", strict_noise.statement
    inside = (first.subs(L, M + L) - first.subs(L, M)) ** 2 - (second.subs(L, M + L) - second.subs(L, M))
    yield (
        "the block is the difference of two partial sums",
        Eq(snr, 1 + r * inside / ((T - 1) ** 2 * strict_noise.right)),
    )


def _causal_snr_checks():
    for length, start, size in ((5, 1, 3), (6, 0, 4), (6, 3, 3)):
        direct = _ratio(_explicit(strict_weights, length), _block_matrix(length, start, size))
        at = causal_snr.right.subs({T: length, M: start, L: size})
        yield f"quadratic form at T = {length}, M = {start}, L = {size}", at, direct


causal_snr = Law(
    "causal-signal-to-noise-ratio",
    "Signal-to-noise ratio of strict causal attention in the block model",
    _causal_snr,
    source="derived here",
    checks=_causal_snr_checks,
)


def _causal_prefix():
    yield "a block anywhere", causal_snr.statement
    yield "the block is a prefix, M = 0", Eq(snr, causal_snr.right.subs(M, 0))
    gain = (causal_snr.right.subs(M, 0) - 1) / r
    numerator, denominator = sp.fraction(gain)
    level = sp.Symbol("level")
    in_level = sp.expand(numerator.subs(_H(T - 1), level - 1 + _H(L)))
    tidy = sp.factor(in_level.coeff(level, 2)) * level**2 + in_level.coeff(level, 0)
    yield "in terms of 1 + H_{T−1} − H_L", Eq(snr, 1 + r * tidy.subs(level, 1 + _H(T - 1) - _H(L)) / denominator)


causal_prefix: Law = Law(
    "causal-ratio-prefix",
    "Signal-to-noise ratio of strict causal attention, early signal",
    _causal_prefix,
    source="P1, Section 5; derived here",
    checks=lambda: [
        (
            f"quadratic form at T = {length}, L = {size}",
            causal_prefix.right.subs({T: length, L: size}),
            _ratio(_explicit(strict_weights, length), _block_matrix(length, 0, size)),
        )
        for length, size in ((4, 1), (5, 3), (6, 6))
    ],
)


def _causal_suffix():
    yield "a block anywhere", causal_snr.statement
    ends = causal_snr.right.subs(M, T - L)
    yield "the block is a suffix, M = T − L", Eq(snr, ends)
    whole = {
        partial_sum_law.right.subs(L, T): T - 1,
        partial_squares_law.right.subs(L, T): (T - 1) ** 2 * strict_noise.right,
    }
    yield "all weights minus those before the block", Eq(snr, ends.subs(whole))


causal_suffix: Law = Law(
    "causal-ratio-suffix",
    "Signal-to-noise ratio of strict causal attention, late signal",
    _causal_suffix,
    source="derived here",
    checks=lambda: [
        (
            f"quadratic form at T = {length}, L = {size}",
            causal_suffix.right.subs({T: length, L: size}),
            _ratio(_explicit(strict_weights, length), _block_matrix(length, length - size, size)),
        )
        for length, size in ((4, 2), (5, 3), (6, 6))
    ],
)

# Who wins ------------------------------------------------------------------------------------------------------


def _causal_lead():
    yield "early signal, strict causal attention", causal_prefix.statement
    yield "mean pooling", mean_snr.statement
    noise = (T - 1) ** 2 * strict_noise.right
    difference = (causal_prefix.right - mean_snr.right) * T * noise / r
    yield "their difference times Tκ(T − 1)²/r > 0", Eq(lead, difference)
    block = L * (L - 1)
    level = 1 + _H(T - 1) - _H(L)
    yield (
        "collect: positive iff causal attention beats mean pooling; r does not occur",
        Eq(lead, block * (T * level**2 - noise) - T * (L - _H(L))),
    )


def _causal_lead_checks():
    noise = (T - 1) ** 2 * strict_noise.right
    for length, size in ((5, 2), (9, 4)):
        at = {T: length, L: size}
        difference = (causal_prefix.right - mean_snr.right) * T * noise / r
        yield f"difference of the two ratios, T = {length}, L = {size}", causal_lead.right.subs(at), difference.subs(at)
    for length, first in ((4, 3), (8, 6), (16, 11), (32, 22), (64, 43)):
        ordered = tuple(sp.sign(causal_lead.right.subs({T: length, L: size})) for size in range(2, length + 1))
        expected = tuple(Integer(1 if size < first else -1) for size in range(2, length + 1))
        yield f"mean pooling wins from L = {first} on at T = {length}", sp.Tuple(*ordered), sp.Tuple(*expected)


causal_lead = Law(
    "causal-against-mean",
    "Causal attention against mean pooling for an early signal",
    _causal_lead,
    source="derived here; P1, Section 5 claims the causal side only",
    checks=_causal_lead_checks,
    where=lambda: sp.And(L >= 2, L <= T, r > 0),
)


def _continuum_lead():
    """lead/T³ at L = ℓT in the limit T → ∞, where H_n = log n + const + o(1)."""
    smooth = causal_lead.right.subs(L, ell * T).replace(_H, lambda order: sp.log(order))
    positive_T = sp.Symbol("T", positive=True)
    fraction = sp.Symbol("ell", positive=True)
    return sp.limit(sp.expand_log(smooth.subs({T: positive_T, ell: fraction}) / positive_T**3), positive_T, oo).subs(
        fraction, ell
    )


def _continuum_threshold():
    yield "causal attention beats mean pooling iff positive", causal_lead.statement
    yield "H_{T−1} − H_L → −log ℓ at L = ℓT; divide by T³", Eq(sp.Limit(lead / T**3, T, oo), _continuum_lead())
    yield "zero of the limit below 1: the mean of −log over (0, ℓ) is √2", Eq((1 - sp.log(ell)) ** 2, 2)
    yield "solve for ℓ", Eq(ell, sp.exp(1 - sp.sqrt(2)))


def _continuum_threshold_checks():
    yield "the limit changes sign there", _continuum_lead().subs(ell, continuum_threshold.right), Integer(0)
    position = sp.Symbol("x", positive=True)
    mass = -sp.integrate(sp.log(position), (position, 0, continuum_threshold.right)) / continuum_threshold.right
    square = sp.integrate(sp.log(position) ** 2, (position, 0, 1))
    yield "continuum weights −log x: squared mean over the block = mean square over (0, 1)", mass**2, square


continuum_threshold = Law(
    "causal-against-mean-long",
    "Long sequences: the fraction below which causal attention beats mean pooling",
    _continuum_threshold,
    source="derived here",
    solves=lambda: [Eq((1 - sp.log(ell)) ** 2, 2)],
    checks=_continuum_threshold_checks,
    branch="the root below 1 (the other, e^{1+√2}, is no fraction)",
)


def _late_signal():
    yield "any weights in the block model", block_snr.statement
    yield "mean pooling", mean_snr.statement
    difference = (mean_snr.right - block_snr.right) / r
    yield "their difference", Eq(deficit, difference)
    pairs = L * (L - 1) / T
    terms = pairs * (kappa - 1 / T) + (block_squares - block_sum**2 / L) + (1 - 1 / L) * ((L / T) ** 2 - block_sum**2)
    yield (
        "regroup; for weights of sum 1 that decrease with t and a block at the end no bracket is negative: κ ≥ 1/T and "
        "B ≥ A²/L (Cauchy–Schwarz), A ≤ L/T (the last L weights have at most the average share); mean wins if L ≥ 2",
        Eq(deficit, terms / kappa),
    )


def _late_signal_checks():
    yield "it is the difference", late_signal.right, (mean_snr.right - block_snr.right) / r
    for length, size in ((4, 2), (6, 4), (6, 6)):
        weights = _explicit(strict_weights, length)
        inside = weights[length - size :]
        values = {
            block_sum: sum(inside),
            block_squares: sum(value**2 for value in inside),
            kappa: sum(value**2 for value in weights),
            T: length,
            L: size,
        }
        gap = (mean_snr.right - causal_suffix.right).subs({T: length, L: size}) / r
        yield f"strict causal weights on a suffix, T = {length}, L = {size}", late_signal.right.subs(values), gap
        yield f"mean pooling wins, T = {length}, L = {size}", sp.sign(late_signal.right.subs(values)), Integer(1)


late_signal = Law(
    "mean-against-causal-late",
    "Late signal: mean pooling beats every decreasing weighting",
    _late_signal,
    source="derived here",
    checks=_late_signal_checks,
    where=lambda: sp.And(L >= 2, L <= T, r > 0),
)

# What the weights do to the spectrum ---------------------------------------------------------------------------


def _at_strength(statement: Any) -> Any:
    """A statement about a spike in terms of its strength θ (t is a position in this chapter)."""
    return statement.subs(bbp.shift, bbp.theta - delta)


def _pooled_location():
    yield "spike of the token model, with the realised norm of the class means", bbp.realised_signal_spike.statement
    strength = snr * norm_a
    yield "in terms of the signal-to-noise ratio", Eq(bbp.theta, strength)
    yield "sample outlier, in units of κ", _at_strength(bbp.sample_location_law.statement)
    yield (
        "eigenvalue of S itself",
        Eq(signal_eigenvalue, kappa * bbp.sample_location_law.right.subs(bbp.shift, strength - delta)),
    )


def _pooled_location_checks():
    weights = _explicit(strict_weights, 5)
    noise, strength = sum(value**2 for value in weights), _ratio(weights, _block_matrix(5, 0, 3))
    explicit = noise * bbp.sample_location_law.right.subs(bbp.shift, strength * norm_a - delta)
    closed = pooled_location.right.subs({snr: causal_prefix.right, kappa: strict_noise.right}).subs({T: 5, L: 3})
    yield "explicit harmonic weights, T = 5, L = 3", closed, explicit


pooled_location = Law(
    "pooled-signal-eigenvalue",
    "Signal eigenvalue of S for weights of given signal-to-noise ratio",
    _pooled_location,
    source="derived here",
    checks=_pooled_location_checks,
    branch="above the bulk: (α/κ)‖a‖² − δ above the positive root of the edge equation",
)


def _pooled_vocabulary():
    yield "vocabulary-mean spike, with the realised norm", bbp.realised_vocabulary_spike.statement
    strength = bbp.realised_vocabulary_spike.right.subs(bbp.weight_sum, 1)
    yield "weights of sum 1", Eq(bbp.theta, strength)
    yield (
        "eigenvalue of S itself",
        Eq(vocabulary_eigenvalue, kappa * bbp.sample_location_law.right.subs(bbp.shift, strength - delta)),
    )


def _pooled_vocabulary_checks():
    swapped = pooled_location.right.subs({snr: 1 / kappa, norm_a: norm_b}, simultaneous=True)
    yield "a signal of ratio 1/κ along b", pooled_vocabulary.right, swapped


pooled_vocabulary = Law(
    "pooled-vocabulary-eigenvalue",
    "Vocabulary-mean eigenvalue of S for weights of sum 1",
    _pooled_vocabulary,
    source="derived here",
    checks=_pooled_vocabulary_checks,
    branch="above the bulk: ‖b‖²/κ − δ above the positive root of the edge equation",
)


def _pooled_overlap():
    yield "overlap of the signal outlier with the signal, token model", _at_strength(bbp.signal_overlap_law.statement)
    yield "spike of the token model, in terms of the signal-to-noise ratio", Eq(bbp.theta, snr * norm_a)
    yield "inserted", Eq(signal_overlap, bbp.signal_overlap_law.right.subs(bbp.shift, snr * norm_a - delta))


def _pooled_overlap_checks():
    limits = {norm_a: bbp.signal_norm.right, cosine_a: bbp.signal_cosine.right}
    white = pooled_overlap.right.subs(limits).subs({snr: 1, gamma: 0})
    yield "α = κ, γ → 0: the classical spiked-covariance overlap", white, (1 - delta / signal**2) / (1 + delta / signal)
    undistorted = pooled_overlap.right.subs({snr: 3, norm_a: 1, delta: 0, cosine_a: 1})
    yield "δ → 0: the classical overlap at N samples", undistorted, (1 - gamma / 9) / (1 + gamma / 3)


pooled_overlap = Law(
    "pooled-signal-overlap",
    "Overlap with the signal for weights of given signal-to-noise ratio",
    _pooled_overlap,
    source="derived here",
    checks=_pooled_overlap_checks,
    branch="above the bulk: (α/κ)‖a‖² − δ above the positive root of the edge equation",
)


def _growth() -> Any:
    """Derivative of the overlap along the spike: a quotient of polynomials in t without a negative coefficient."""
    return sp.factor(sp.diff(bbp.sample_overlap_law.right, bbp.shift))


def _growth_steps():
    yield "overlap with the signal", pooled_overlap.statement
    yield (
        "it grows with θ = (α/κ)‖a‖², and so with α/κ: as a polynomial in θ − δ > 0 no coefficient is negative",
        _at_strength(Eq(sp.Derivative(bbp.sample_overlap, bbp.theta), _growth())),
    )


def _overlap_at(ratio: Any) -> Any:
    """The limit of the overlap at a signal-to-noise ratio."""
    limits = {norm_a: bbp.signal_norm.right, cosine_a: bbp.signal_cosine.right}
    return pooled_overlap.right.subs(snr, ratio).subs(limits)


def _optimal_first():
    yield "λ_1 is the largest ratio", optimal.statement
    yield "block model", block_best.statement
    yield from _growth_steps()
    yield "so the optimal weights see the signal best", sp.Gt(overlap_optimal, overlap_causal)


def _causal_first():
    yield "causal attention beats mean pooling iff positive", causal_lead.statement
    yield from _growth_steps()
    yield "early signal, under that condition", sp.Gt(overlap_causal, overlap_mean)


def _mean_first():
    yield "late signal", late_signal.statement
    yield from _growth_steps()
    yield "mean pooling sees a late signal better than causal attention", sp.Gt(overlap_mean, overlap_causal)


def _order_checks(law: Callable[[], Law], ratios: Callable[[], dict[Any, Any]], length: int, block: int):
    """The order at explicit sizes in the limits of the overlaps, and a tie for a single position."""

    def checks() -> Iterator[tuple[str, Any, Any]]:
        at = ratios()
        single = {overlap: _overlap_at(ratio.subs(L, 1)).subs(T, length) for overlap, ratio in at.items()}
        yield "one position: all weights have ratio 1, a tie", law().left.subs(single), law().right.subs(single)
        strong = {delta: Rational(1, 2), gamma: Rational(1, 4), signal: 2, r: Rational(9, 10)}
        several = {
            overlap: _overlap_at(ratio.subs({L: block, T: length})).subs(strong) for overlap, ratio in at.items()
        }
        yield (
            f"order at T = {length}, L = {block}",
            sp.sign(law().left.subs(several) - law().right.subs(several)),
            Integer(1),
        )

    return checks


optimal_first: Law = Law(
    "order-optimal-causal",
    "Optimal weights see the signal better than causal attention",
    _optimal_first,
    source="P1, Theorem 5; derived here",
    checks=_order_checks(
        lambda: optimal_first, lambda: {overlap_optimal: block_best.right, overlap_causal: causal_prefix.right}, 16, 4
    ),
    where=lambda: sp.And(L >= 2, r > 0),
)
causal_first: Law = Law(
    "order-causal-mean-early",
    "Causal attention sees an early signal better than mean pooling",
    _causal_first,
    source="P1, Section 5, with the condition that it needs; derived here",
    checks=_order_checks(
        lambda: causal_first, lambda: {overlap_causal: causal_prefix.right, overlap_mean: mean_snr.right}, 16, 4
    ),
    where=lambda: sp.And(L >= 2, r > 0, causal_lead.right > 0),
)
mean_first: Law = Law(
    "order-mean-causal-late",
    "Mean pooling sees a late signal better than causal attention",
    _mean_first,
    source="derived here",
    checks=_order_checks(
        lambda: mean_first, lambda: {overlap_mean: mean_snr.right, overlap_causal: causal_suffix.right}, 16, 6
    ),
    where=lambda: sp.And(L >= 2, r > 0),
)

# Models and claims ---------------------------------------------------------------------------------------------

attended = observable("weights", "effective pooling weights of real causal softmax attention, averaged over sequences")
attention_scores = Model(
    "attention_scores",
    "causal softmax attention with scores τ⟨x_i, x_j⟩/d on token embeddings, mean over the positions that attend",
    (delta, signal, tau),
    (attended,),
    realised=(delta,),
    options=("length", "mask", "signs", "sequences"),
)

_LENGTH = 8  # positions of the sequences whose real attention is measured
_POSITIONS = (t, tuple(range(1, _LENGTH + 1)))
_EARLY = ("prefix", 4, Rational(4, 5))


def _attention(mask: str, scale: int) -> Experiment:
    """Real attention under a mask at a score scale; at scale 0 nothing fluctuates and a few draws say all."""
    sizes = (32, 48, 64, 128, 256)
    return Experiment(
        f"attention-{mask}-tau-{scale}",
        attention_scores,
        {delta: Rational(1, 2), signal: 1, tau: scale},
        options={"length": _LENGTH, "mask": mask, "signs": _EARLY, "sequences": 128},
        quick={32: 200, 48: 100, 64: 200, 128: 80, 256: 60} if scale else dict.fromkeys(sizes[:4], 2),
        standard={32: 1500, 48: 800, 64: 1500, 128: 600, 256: 500} if scale else dict.fromkeys(sizes, 10),
    )


def _strict_claim(scale: int) -> Claim:
    return Claim(
        f"causal-weights-strict-tau-{scale}",
        strict_and_noise,
        _attention("strict", scale),
        Limit(rate=1, next=2, resolution=0.002) if scale else Exact(),
        lambda: {
            "mean pooling": strict_and_noise.rival(right=mean_weights.right + strict_noise.right),
            "off by 5 %": strict_and_noise.off_by(Rational(1, 20)),
            "H_T for H_{T−1}": strict_and_noise.rival(right=inclusive_weights.right.subs(tau, 0) + strict_noise.right),
        },
        reads={weight: attended, kappa: T * Average(attended**2), T: Integer(_LENGTH)},
        points=_POSITIONS,
        note="the limit does not depend on the score scale",
    )


def _inclusive_claim(scale: int) -> Claim:
    return Claim(
        f"causal-weights-inclusive-tau-{scale}",
        inclusive_weights,
        _attention("inclusive", scale),
        Limit(rate=1, next=2, resolution=0.002) if scale else Exact(),
        lambda: {
            "mean pooling": mean_weights.statement,
            "strict mask": strict_weights.statement,
            "off by 5 %": inclusive_weights.rival(right=inclusive_weights.right * Rational(21, 20)),
            "score scale too large by a quarter": inclusive_weights.rival(tau=tau + Rational(1, 4)),
        },
        reads={weight: attended, T: Integer(_LENGTH)},
        points=_POSITIONS,
    )


attention_pooling = Model(
    "attention_pooling",
    "S pooled with the real, sequence-dependent weights of causal softmax attention",
    (delta, gamma, signal, tau),
    (signal_eigenvalue, signal_overlap, vocabulary_eigenvalue),
    realised=(delta, gamma, norm_a, norm_b, cosine_a),
    options=("length", "mask", "signs", "centred"),
)
_POOLED_LENGTH, _BLOCK, _STRENGTH = 16, 4, Rational(9, 10)


def _pooling(centred: bool) -> Experiment:
    """End to end: tokens, softmax, pooling, spectrum."""
    return Experiment(
        f"attention-pooling-{'centred' if centred else 'uncentred'}",
        attention_pooling,
        {delta: Rational(1, 2), gamma: Rational(1, 4), signal: 2, tau: 1},
        options={
            "length": _POOLED_LENGTH,
            "mask": "strict",
            "signs": ("prefix", _BLOCK, _STRENGTH),
            "centred": centred,
        },
        quick={} if centred else {32: 250, 48: 100, 64: 350, 128: 30, 256: 120},
        standard={32: 1200, 48: 500, 64: 1800, 128: 150, 256: 600},
    )


_SIZES = {T: Integer(_POOLED_LENGTH), L: Integer(_BLOCK), r: _STRENGTH}


def _pooling_claims(centred: bool) -> Iterator[Claim]:
    """Outliers of the really attending model against the formulas at the harmonic weights."""
    where = "centred" if centred else "uncentred"
    harmonic = (causal_prefix, strict_noise)
    uniform = (mean_snr, Eq(kappa, 1 / T))
    yield Claim(
        f"attention-pooling-location-{where}",
        pooled_location,
        _pooling(centred),
        Limit(rate=1, next=2, resolution=0.04, relative=True),
        lambda: {
            "mean pooling": uniform,
            "class means without noise: ‖μ‖² for ‖a‖²": {**_SIZES, norm_a: signal},
            "off by 5 %": pooled_location.rival(right=pooled_location.right * Rational(21, 20)),
        },
        reads=_SIZES,
        given=harmonic,
    )
    yield Claim(
        f"attention-pooling-overlap-{where}",
        pooled_overlap,
        _pooling(centred),
        Limit(rate=1, next=2, resolution=0.04, relative=True),
        lambda: {
            "mean pooling": uniform,
            "spike along the signal: cosine 1": {**_SIZES, cosine_a: Integer(1)},
            "off by 5 %": pooled_overlap.rival(right=pooled_overlap.right * Rational(21, 20)),
        },
        reads=_SIZES,
        given=harmonic,
    )
    if centred:
        return
    yield Claim(
        "attention-pooling-vocabulary-mean",
        pooled_vocabulary,
        _pooling(centred),
        Limit(rate=1, next=2, resolution=0.04, relative=True),
        lambda: {
            "mean pooling": (Eq(kappa, 1 / T),),
            "off by 10 %": pooled_vocabulary.rival(right=pooled_vocabulary.right * Rational(11, 10)),
        },
        reads=_SIZES,
        given=(strict_noise,),
    )


token_weights = Model(
    "token_weights",
    "the leading eigenvector of the centred S for optimal, causal and mean weights on the same tokens",
    (delta, gamma, signal),
    (overlap_optimal, overlap_causal, overlap_mean),
    realised=(delta, gamma),
    options=("length", "signs", "weights"),
)


class _ThreeWeights(Mapping[str, Any]):
    """The weights of the three laws at explicit sizes, evaluated at first use: no derivation runs at import."""

    def __init__(self, start: int, size: int) -> None:
        self._start, self._size = start, size

    def __getitem__(self, name: str) -> tuple[Any, ...]:
        law = {"optimal": block_weights, "causal": strict_weights, "mean": mean_weights}[name]
        return _explicit(law, _POOLED_LENGTH, M=self._start, L=self._size)

    def __iter__(self) -> Iterator[str]:
        return iter(("optimal", "causal", "mean"))

    def __len__(self) -> int:
        return 3


def _overlaps(kind: str, size: int, strength: Any, squared_norm: Any) -> Experiment:
    """Three weightings of the same tokens, with the correlated block at the start or at the end."""
    return Experiment(
        f"weights-{'early' if kind == 'prefix' else 'late'}",
        token_weights,
        {delta: Rational(1, 2), gamma: 1, signal: squared_norm},
        options={
            "length": _POOLED_LENGTH,
            "signs": (kind, size, strength),
            "weights": _ThreeWeights(0 if kind == "prefix" else _POOLED_LENGTH - size, size),
        },
        quick={32: 350, 48: 350, 64: 250, 128: 30, 256: 130},
        standard={32: 2500, 48: 2500, 64: 1800, 128: 150, 256: 900},
    )


def _order_claim(law: Law, experiment: Experiment, resolution: float, reverse: Callable[[], Any]) -> Claim:
    return Claim(law.id, law, experiment, Order(rate=1, next=2, resolution=resolution), lambda: {"reversed": reverse()})


_EARLY_TOKENS = _overlaps("prefix", _BLOCK, _STRENGTH, Rational(5, 4))
_LATE_BLOCK = 6
_LATE_TOKENS = _overlaps("suffix", _LATE_BLOCK, _STRENGTH, 2)


def _value_claim(
    name: str,
    experiment: Experiment,
    overlap: Any,
    reads: Mapping[Any, Any],
    ratio: tuple[Any, ...],
    wrong: Callable[[], tuple[Any, ...]],
) -> Claim:
    """One measured overlap against its law, in the limits of the class means' norm and angle.

    Only outliers well away from the bulk are judged so. No rate is uniform at a transition: with an outlier 5 % beyond
    the edge the overlap extrapolates to −0.010 ± 0.004 from d = 64, to −0.006 ± 0.006 from 128 and to +0.006 ± 0.011
    from 192, in the decoupled Gaussian model just as for tokens, so it is third-order bias and not the sampling.
    """
    limits = (bbp.signal_norm, bbp.signal_cosine)
    return Claim(
        name,
        pooled_overlap,
        experiment,
        Limit(rate=1, next=2, resolution=0.05),
        lambda: {
            "class means without noise: cosine 1, norm ‖μ‖²": (*ratio, Eq(cosine_a, 1), Eq(norm_a, signal)),
            "weights of another kind": (*wrong(), *limits),
        },
        reads={**reads, signal_overlap: overlap},
        given=(*ratio, *limits),
    )


claims = (
    *(claim(scale) for scale in (0, 1, 2) for claim in (_strict_claim, _inclusive_claim)),
    *_pooling_claims(centred=False),
    *_pooling_claims(centred=True),
    _order_claim(optimal_first, _EARLY_TOKENS, 0.01, lambda: sp.Gt(overlap_causal, overlap_optimal)),
    _order_claim(causal_first, _EARLY_TOKENS, 0.03, lambda: sp.Gt(overlap_mean, overlap_causal)),
    _order_claim(mean_first, _LATE_TOKENS, 0.03, lambda: sp.Gt(overlap_causal, overlap_mean)),
    _value_claim(
        "overlap-optimal-early",
        _EARLY_TOKENS,
        overlap_optimal,
        _SIZES,
        (Eq(snr, best_snr), block_best),
        lambda: (mean_snr,),
    ),
    _value_claim("overlap-causal-early", _EARLY_TOKENS, overlap_causal, _SIZES, (causal_prefix,), lambda: (mean_snr,)),
    _value_claim(
        "overlap-mean-late",
        _LATE_TOKENS,
        overlap_mean,
        {**_SIZES, L: Integer(_LATE_BLOCK)},
        (mean_snr,),
        lambda: (causal_suffix,),
    ),
)
