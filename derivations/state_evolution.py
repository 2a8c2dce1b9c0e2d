"""Learning a tied attention head from softmax labels: the mean-field equations of the minimum of the training loss.

Tokens are Gaussian, S = WWᵀ/√(pd) is learned with weight decay from n = αd² sequences that a matrix S₀ has labelled.
Six numbers describe the minimum: three of the learned matrix (m, q, V) and three of the field that each mode feels.
"""

from __future__ import annotations

import itertools
from functools import lru_cache
from typing import Any

import sympy as sp
from sympy import Eq, Interval, Rational, oo

from derivations._expectations import FIXED_POINT, GaussianMean, Proximal, Solution, SpectralTail
from derivations.core import (
    Average,
    Claim,
    Experiment,
    Law,
    Limit,
    Model,
    measured,
    observable,
    parameter,
    variable,
)
from derivations.core.language import EXAMPLE

# Symbols -------------------------------------------------------------------------------------------------------

_positive, _half = Interval.open(0, oo), Rational(1, 2)

alpha = parameter(
    "alpha", "alpha = n/d², number of sequences over the square of the embedding dimension", _positive, (_half, 4)
)
lam = parameter(
    "lam",
    "lam = λ, weight decay: the loss has the term λ‖W‖² (or (λd/2)‖S‖² without factors)",
    Interval(0, oo),
    (Rational(1, 100), Rational(1, 2)),
    notation=r"\lambda",
)
kappa = parameter(
    "kappa", "kappa = p/d, width of the learned factor over the embedding dimension", _positive, (_half, 2)
)
kappa0 = parameter(
    "kappa0",
    "kappa0 = p₀/d, width of the target's Gaussian factor over the embedding dimension",
    _positive,
    (Rational(1, 4), 2),
    notation=r"\kappa_0",
)
noise = parameter(
    "noise",
    "noise = Δ, variance of the Gaussian noise on the diagonal of the target's scores (half of it elsewhere)",
    Interval(0, oo),
    (Rational(1, 4), 1),
    notation=r"\Delta",
)
tokens = parameter(
    "tokens",
    "tokens = T, number of tokens of a sequence",
    Interval(2, oo).intersect(sp.S.Integers),
    (2, 3, 4),
    notation="T",
)
beta = parameter("beta", "beta = β, inverse temperature of the learned softmax", _positive, (_half, 2))
beta_target = parameter(
    "beta_target",
    "beta_target = β₀, inverse temperature of the target's softmax",
    _positive,
    (_half, 2),
    notation=r"\beta_0",
)
dimension = parameter("dimension", "dimension = d, size of a token's embedding", sp.S.Naturals, (10, 100), notation="d")
width = parameter(
    "width", "width = p, number of columns of the learned factor W", sp.S.Naturals, (10, 100), notation="p"
)

m = measured(
    "m", "overlap m = Tr Ŝ S₀/d of the learned matrix with the target", typical=(Rational(3, 5), Rational(4, 5))
)
q = measured("q", "square q = Tr Ŝ²/d of the learned matrix", typical=(Rational(9, 10), Rational(6, 5)))
response = measured(
    "response",
    "response V of the learned matrix: the variance that one sequence's score still has",
    typical=(Rational(1, 2), 2),
    domain=_positive,
    notation="V",
)
signal_gain = variable(
    "signal_gain",
    "signal gain m̃: how strongly the data pull a mode along the target",
    _positive,
    (_half, 2),
    notation=r"\tilde m",
)
noise_power = variable(
    "noise_power",
    "noise power q̃: twice the variance of the semicircle that the data add",
    _positive,
    (Rational(1, 5), 1),
    notation=r"\tilde q",
)
curvature = variable(
    "curvature", "curvature ṽ of the loss that a mode feels", _positive, (_half, 3), notation=r"\tilde v"
)
level = variable(
    "level",
    "level λ̃ of the penalty on eigenvalues",
    Interval(0, oo),
    (Rational(1, 10), _half),
    notation=r"\tilde\lambda",
)
target_square = variable(
    "target_square", "square Q₀ = Tr S₀²/d of the target", _positive, (Rational(3, 2), 2), notation="Q_0"
)
label_square = variable("label_square", "square Q̄ of the target's noisy scores", _positive, (2, 3), notation=r"\bar Q")
outputs = measured(
    "outputs", "number K of independent scores that the softmax of a sequence sees", notation="K", typical=(2, 5, 9)
)

point = variable("point", "eigenvalue x of the noisy target S₀ + √v Z", typical=(-1, 2), notation="x")
hilbert = variable(
    "hilbert",
    "Hilbert transform p.v. ∫ρ(y)/(x − y) dy",
    typical=(-1, 1),
    notation=r"\mathcal{H}",
)
variance = variable(
    "variance", "variance v of the semicircle on the target", _positive, (Rational(1, 5), 1), notation="v"
)
density = variable(
    "density", "density of the noisy target", _positive, (Rational(1, 5), Rational(1, 2)), notation=r"\rho"
)
threshold = variable(
    "threshold",
    "threshold ε below which eigenvalues of the noisy target are dropped",
    sp.S.Reals,
    (Rational(1, 10), Rational(1, 3)),
    notation=r"\varepsilon",
)
scale = variable("scale", "scale η of the learned matrix", _positive, (_half, 2), notation=r"\eta")
centre = variable(
    "centre", "a target that is this multiple of the identity", sp.S.Reals, (Rational(1, 10), _half), notation="s_0"
)
eigenvalue_hat = measured("eigenvalue_hat", "eigenvalue ŝ of the learned matrix", notation=r"\hat s")
rank = measured(
    "rank",
    "rank of the learned matrix over d: the mass of its positive eigenvalues",
    notation=r"\operatorname{rank}",
)
trace = measured("trace", "trace Tr Ŝ/d of the learned matrix", typical=(_half, 1), notation=r"\operatorname{tr}")
excess = measured(
    "excess",
    "squared distance Tr(Ŝ − S₀)²/d of the learned matrix from the target",
    typical=(Rational(1, 10), _half),
    notation="E",
)
defect = measured("defect", "defect Q₀ − m of the overlap", notation="D")
posterior = variable(
    "posterior",
    "mean of the target's eigenvalue form at an eigenvalue of the noisy target",
    typical=(-1, 1),
    notation=r"\xi",
)
ambiguity = variable(
    "ambiguity",
    "squared distance of the best spectral estimate from the target",
    typical=(Rational(1, 10), _half),
    notation=r"\mathcal{E}",
)

teacher_normal = variable(
    "teacher_normal", "standard normal coordinate s of the target's scores", typical=(-1, 1), notation="s"
)
residual_normal = variable(
    "residual_normal",
    "standard normal coordinate z of the learned scores, independent of s",
    typical=(-1, 1),
    notation="z",
)
residual_spread = variable(
    "residual_spread",
    "standard deviation τ of the learned scores given the target's",
    _positive,
    (Rational(1, 3), 1),
    notation=r"\tau",
)
score = variable("score", "learned score h of a sequence", typical=(-2, 2), notation="h")
label_score = variable("label_score", "the target's noisy score t", typical=(-2, 2), notation="t")
field = variable(
    "field", "score ω without the sequence's own influence on the learned matrix", typical=(-2, 2), notation=r"\omega"
)
output_gradient = variable(
    "output_gradient", "output gradient g = (h − ω)/V, in the metric of the scores", typical=(-1, 1), notation="g"
)
earlier_gradient = variable(
    "earlier_gradient", "output gradient of the iteration before", typical=(-1, 1), notation="g^{-}"
)
matrix_score = variable(
    "matrix_score", "score that the current matrix gives a sequence of the data", typical=(-2, 2), notation=r"A(\hat S)"
)
data_pull = variable(
    "data_pull", "what the output gradients of all sequences, Σ g A, add to a mode", typical=(-1, 1), notation=r"\pi"
)
mode_field = variable("mode_field", "field Y of message passing on a mode", typical=(-1, 2), notation="Y")
stiffness = variable("stiffness", "curvature c of a quadratic loss c(t − h)²", _positive, (_half, 2), notation="c")
divergence = variable(
    "divergence",
    "mean divergence E Σ ∂g/∂ω of the output gradient",
    typical=(-1, -_half),
    notation=r"\mathcal{G}_\omega",
)
pull = variable(
    "pull",
    "mean E Σ g s of the output gradient along the target's coordinates",
    typical=(_half, 1),
    notation=r"\mathcal{G}_s",
)
force = variable(
    "force",
    "mean E Σ g z of the output gradient along the residual's coordinates",
    typical=(-1, -_half),
    notation=r"\mathcal{G}_z",
)
power = variable("power", "mean square E Σ g² of the output gradient", _positive, (_half, 1), notation=r"\mathcal{G}^2")
slope_square = variable(
    "slope_square",
    "mean square E Σ (∂g/∂ω)² of the slopes of the output gradient",
    _positive,
    (_half, 1),
    notation=r"\mathcal{S}",
)
mean_loss = measured(
    "mean_loss", "training loss per sequence, without the penalty", typical=(_half, 1), notation=r"\mathcal{L}"
)
mean_envelope = variable(
    "mean_envelope",
    "mean over sequences of the least of loss and quadratic cost",
    typical=(_half, 1),
    notation=r"\mathcal{M}",
)

_u1, _u2 = (
    variable(
        f"u_{i}",
        f"difference of the learned scores in row {i}, own token minus other token",
        typical=(-2, 2),
        notation=f"u_{i}",
    )
    for i in (1, 2)
)
_y1, _y2 = (
    variable(
        f"y_{i}",
        f"attention of token {i} to itself in the label",
        Interval.open(0, 1),
        (Rational(1, 5), Rational(4, 5)),
        notation=f"y_{i}",
    )
    for i in (1, 2)
)
learned_differences, labels = (_u1, _u2), (_y1, _y2)
symmetric = variable("symmetric", "coordinate of the scores that both tokens share", typical=(-1, 1), notation="w_+")
antisymmetric = variable(
    "antisymmetric", "coordinate of the scores that tells the two tokens apart", typical=(-1, 1), notation="w_-"
)
diagonal = parameter(
    "diagonal",
    "diagonal: variance of a token's score with itself, in units of that with another token",
    _positive,
    (1, 2),
)
square = variable("square", "square Q = Tr S²/d of the matrix behind the scores", _positive, (1, 2), notation="Q")
_i, _j, _k, _l = (variable(name, "position of a token", sp.S.Naturals, (1, 2)) for name in "ijkl")
score_places = (_i, _j, _k, _l)
score_covariance = measured(
    "score_covariance", "covariance of the scores h_ij and h_kl", notation=r"\operatorname{Cov}(h_{ij},h_{kl})"
)
_two = sp.Integer(2)

# The penalty ---------------------------------------------------------------------------------------------------

factor_norm = measured("factor_norm", "squared norm ‖W‖² of the learned factor, over d²", notation=r"\|W\|^2/d^2")


def _nuclear_norm():
    yield (
        "S = WWᵀ/√(pd): the norm of the factor is a trace",
        Eq(factor_norm * dimension**2, sp.sqrt(width * dimension) * dimension * trace),
    )
    yield (
        "every factor of S has this norm, and p ≥ rank S columns suffice: a nuclear norm on S ⪰ 0",
        Eq(factor_norm * dimension**2, sp.sqrt(kappa) * dimension * dimension * trace),
    )
    yield "over d²", Eq(factor_norm, sp.sqrt(kappa) * trace)


def _nuclear_norm_checks():
    # W = [[a, b], [0, c]], d = p = 2: κ = 1
    entries = sp.Matrix([[symmetric, antisymmetric], [0, field]])
    learned = entries * entries.T / 2
    yield (
        "a factor of two columns in two dimensions",
        (entries.T * entries).trace() / 4,
        nuclear_norm.right.subs({kappa: 1, trace: learned.trace() / 2}),
    )
    column = sp.Matrix([symmetric, field])
    learned = column * column.T / sp.sqrt(2)
    yield (
        "one column in two dimensions",
        (column.T * column)[0] / 4,
        nuclear_norm.right.subs({kappa: _half, trace: learned.trace() / 2}),
    )


nuclear_norm: Law = Law(
    "weight-decay-is-nuclear-norm",
    "Weight decay on the factors is a nuclear norm on the product",
    _nuclear_norm,
    source="Srebro, Rennie & Jaakkola 2004; P2, Section 2; derived here",
    checks=_nuclear_norm_checks,
    where=lambda: sp.Ge(kappa, _half),
    branch="for κ < 1 the minimum over S ⪰ 0 must have rank(Ŝ)/d ≤ κ, else the factor's width binds",
)


def _penalty_level():
    yield "the penalty of the loss, over d², is λ times the factor's norm", nuclear_norm.statement
    yield "what multiplies Tr Ŝ/d", Eq(level, lam * nuclear_norm.right / trace)


penalty_level: Law = Law(
    "penalty-level",
    "Level of the penalty on eigenvalues",
    _penalty_level,
    source="derived here",
    checks=lambda: (
        ("a factor as wide as the embedding", penalty_level.right.subs(kappa, 1), lam),
        ("four times as wide", penalty_level.right.subs(kappa, 4), 2 * lam),
    ),
)

# Scores --------------------------------------------------------------------------------------------------------


def _delta(a, b):
    return sp.KroneckerDelta(a, b)


def _score_covariance():
    wick = square * (_delta(_i, _k) * _delta(_j, _l) + _delta(_i, _l) * _delta(_j, _k))
    yield (
        "h_ij = (x_iᵀ S x_j − δ_ij Tr S)/√d is a sum of d² weak terms: the scores are Gaussian",
        Eq(sp.Function("h")(_i, _j), sp.Function("x")(_i) * sp.Function("x")(_j) * sp.Symbol("S") / sp.sqrt(dimension)),
    )
    yield "Wick: the tokens pair up in two ways, each gives Tr S²/d = Q", Eq(score_covariance, wick)


def _score_covariance_checks():
    a, b, c = Rational(1, 2), Rational(-2, 3), Rational(5, 4)
    learned = sp.Matrix([[a, b], [b, c]])
    coordinates = {t: sp.Matrix(sp.symbols(f"x{t}_1 x{t}_2")) for t in (1, 2)}
    everything = sp.Tuple(*itertools.chain(*coordinates.values()))

    def value(i, j):
        return ((coordinates[i].T * learned * coordinates[j])[0] - (learned.trace() if i == j else 0)) / sp.sqrt(2)

    for pairs in itertools.combinations_with_replacement([(1, 1), (1, 2), (2, 2)], 2):
        (i, j), (k, last) = pairs
        exact = GaussianMean(value(i, j) * value(k, last), everything).worked_out()
        yield (
            f"exact moment of two Gaussian tokens in two dimensions, h_{i}{j} with h_{k}{last}",
            exact,
            score_covariance_law.right.subs({_i: i, _j: j, _k: k, _l: last, square: (learned**2).trace() / 2}),
        )


score_covariance_law: Law = Law(
    "score-covariance",
    "Covariance of the scores",
    _score_covariance,
    source="P2, Section 3; Erba, Troiani, Biggio, Maillard & Zdeborová 2024 for the universality; derived here",
    checks=_score_covariance_checks,
)


def _outputs():
    yield "a symmetric T × T matrix of scores", Eq(sp.Symbol("N_scores"), tokens * (tokens + 1) / 2)
    yield (
        "softmax is blind to a constant added to a row; only the same constant for all rows keeps the symmetry",
        Eq(outputs, tokens * (tokens + 1) / 2 - 1),
    )
    yield "count", Eq(outputs, (tokens**2 + tokens - 2) / 2, evaluate=False)


def _outputs_checks():
    for count in (2, 3, 4):
        # the derivative of the row-wise softmax at equal scores, on symmetric matrices
        projector = sp.eye(count) - sp.ones(count, count) / count
        columns = []
        for i, j in itertools.combinations_with_replacement(range(count), 2):
            change = sp.zeros(count, count)
            change[i, j] = change[j, i] = 1
            columns.append(list(change * projector))
        yield (
            f"rank of the softmax's derivative for {count} tokens",
            sp.Integer(sp.Matrix(columns).rank()),
            outputs_law.right.subs(tokens, count),
        )


outputs_law: Law = Law(
    "effective-outputs",
    "Number of scores that the softmax sees",
    _outputs,
    source="P2, Section 3; derived here",
    checks=_outputs_checks,
)


def _label_square():
    yield (
        "the noise has the covariance of scores with Q = Δ/2: variance Δ on the diagonal, Δ/2 beside it",
        score_covariance_law.statement.subs(square, noise / 2),
    )
    yield "independent Gaussian scores add", Eq(label_square, target_square + noise / 2)


label_square_law: Law = Law(
    "label-square",
    "Label noise adds to the target's square",
    _label_square,
    source="P2, Section 3; derived here",
    checks=lambda: (
        (
            "variance of a noisy diagonal score",
            2 * target_square + noise,
            (score_covariance_law.right.subs({_i: 1, _j: 1, _k: 1, _l: 1, square: label_square_law.right})),
        ),
    ),
)


def _target_square():
    mean, spread = sp.Symbol("mean"), sp.Symbol("spread")
    yield "mean and variance of the eigenvalues of S₀ = W₀W₀ᵀ/√(p₀d): √κ₀ and 1", Eq(target_square, mean**2 + spread)
    yield "second moment", Eq(target_square, 1 + kappa0)


def _target_square_checks():
    # d = 2, p₀ = 1 and 2 exactly: E Tr(WWᵀ)²/(p₀d²) = (d + p₀ + 1)/d
    for columns in (1, 2):
        entries = sp.Matrix(2, columns, sp.symbols(f"w0:{2 * columns}"))
        exact = GaussianMean(((entries * entries.T) ** 2).trace() / (2 * columns * 2), sp.Tuple(*entries)).worked_out()
        yield (
            f"two dimensions, {columns} columns: the limit and its finite-size excess 1/d",
            exact,
            target_square_law.right.subs(kappa0, Rational(columns, 2)) + _half,
        )


target_square_law: Law = Law(
    "target-square", "Square of a Gaussian target", _target_square, source="derived here", checks=_target_square_checks
)


def _two_token_covariance():
    differences = {i: ((i, i), (1, 2)) for i in (1, 2)}
    total = sum(
        sign * score_covariance_law.right.subs({_i: a[0], _j: a[1], _k: b[0], _l: b[1]}, simultaneous=True)
        for (sign, a, b) in (
            (s * t, a, b)
            for s, a in zip((1, -1), differences[1], strict=True)
            for t, b in zip((1, -1), differences[2], strict=True)
        )
    )
    yield "row i depends on u_i = h_ii − h_12", score_covariance_law.statement
    yield "covariance of the two rows", Eq(sp.Function("Cov")(_u1, _u2), total)
    own = square * 3
    yield "variance of a row", Eq(sp.Function("Var")(_u1), own)
    plus, minus = _axes(own / square, total / square)
    yield (
        "coordinates of variance Q: their axes are the sum and the difference of the rows",
        Eq(_u1, plus * symmetric + minus * antisymmetric),
    )


def _axes(own, cross):
    """Lengths of the axes along the sum and the difference of two rows with this variance and covariance."""
    return sp.sqrt((own + cross) / 2), sp.sqrt((own - cross) / 2)


def score_axes(weight: Any = _two) -> Any:
    """The coefficients of `two-token-scores` if a token's score with itself had this variance (the law: 2)."""
    return _axes(weight + 1, sp.Integer(1))


def _two_token_checks():
    first = two_token_scores.right
    second = first.subs(antisymmetric, -antisymmetric)
    mean = sp.Tuple(symmetric, antisymmetric)
    covariance = score_covariance_law.right.subs(square, 1)

    def between(*indices):
        return covariance.subs(dict(zip((_i, _j, _k, _l), indices, strict=True)), simultaneous=True)

    yield (
        "variance of a row",
        GaussianMean(first**2, mean).worked_out(),
        between(1, 1, 1, 1) - 2 * between(1, 1, 1, 2) + between(1, 2, 1, 2),
    )
    yield (
        "covariance of the rows",
        GaussianMean(first * second, mean).worked_out(),
        (between(1, 1, 2, 2) - between(1, 1, 1, 2) - between(1, 2, 2, 2) + between(1, 2, 1, 2)),
    )


two_token_scores: Law = Law(
    "two-token-scores",
    "Score differences of two tokens in independent coordinates",
    _two_token_covariance,
    source="derived here",
    checks=_two_token_checks,
    branch="u_2 has the opposite sign of the second coordinate",
)


def logistic(argument):
    """The softmax of two scores as a function of their difference, in a form that does not overflow."""
    return (1 + sp.tanh(argument / 2)) / 2


def _two_token_loss():
    entries = sum((y - logistic(beta * u)) ** 2 for y, u in zip(labels, learned_differences, strict=True))
    yield (
        "softmax of two scores is the logistic function of their difference",
        Eq(sp.Function("a")(_u1), logistic(beta * _u1)),
    )
    yield "the two entries of a row add to 1, so each row counts twice", Eq(sp.Function("ell")(_u1, _u2), 2 * entries)


def _two_token_loss_checks():
    rows = [(_u1, 0), (0, _u2)]
    total = 0
    for own, (row, label) in enumerate(zip(rows, labels, strict=True)):
        weights = [sp.exp(beta * value) for value in row]
        share = [weight / sum(weights) for weight in weights]
        target = [label, 1 - label] if own == 0 else [1 - label, label]
        total += sum((a - b) ** 2 for a, b in zip(target, share, strict=True))
    yield "squared distance of the two attention matrices", total, two_token_loss.right


two_token_loss: Law = Law(
    "two-token-loss",
    "Loss of a sequence of two tokens",
    _two_token_loss,
    source="derived here",
    checks=_two_token_loss_checks,
)

# The channel: what a sequence does ------------------------------------------------------------------------------

_normals = sp.Tuple(teacher_normal, residual_normal)


def linear_gradient():
    """The output gradient of the quadratic loss c(t − h)², where everything has a closed form (a check's model)."""
    objective = stiffness * (label_score - score) ** 2 + (score - field) ** 2 / (2 * response)
    least = Proximal(objective, score).worked_out()
    scores = {
        label_score: sp.sqrt(label_square) * teacher_normal,
        field: m / sp.sqrt(label_square) * teacher_normal + residual_spread * residual_normal,
    }
    return ((least - field) / response).subs(scores)


@lru_cache
def linear_means():
    """The channel's means for the quadratic loss, in closed form."""
    gradient = linear_gradient()
    return {
        pull: outputs * GaussianMean(gradient * teacher_normal, _normals).worked_out(),
        force: outputs * GaussianMean(gradient * residual_normal, _normals).worked_out(),
        power: outputs * GaussianMean(sp.expand(gradient**2), _normals).worked_out(),
    }


def _proximal():
    loss = sp.Function("ell")(label_score, score)
    yield (
        "cavity: adding a sequence moves its own score from ω to the least of loss and quadratic cost",
        Eq(score, Proximal(loss + (score - field) ** 2 / (2 * response), score)),
    )
    yield (
        "the output gradient, in coordinates where scores of square Q have covariance Q·1",
        Eq(output_gradient, (score - field) / response),
    )


def _proximal_checks():
    objective = stiffness * (label_score - score) ** 2 + (score - field) ** 2 / (2 * response)
    least = Proximal(objective, score).worked_out()
    force_of_loss = -sp.diff(stiffness * (label_score - score) ** 2, score)
    yield (
        "stationarity, for a quadratic loss: the output gradient is minus the loss's slope",
        proximal_point.right.subs(score, least),
        force_of_loss.subs(score, least),
    )


proximal_point: Law = Law(
    "proximal-point",
    "Proximal point and output gradient",
    _proximal,
    source="Mézard, Parisi & Virasoro 1987 (cavity); Donoho & Montanari 2016; derived here",
    checks=_proximal_checks,
    branch="the global minimiser: the loss is not convex, and the point may jump",
)


def _message_passing_field():
    reaction = sp.solve(proximal_point.statement, score)[0]
    yield "cavity: a sequence moves its own score by V times its output gradient", Eq(score, reaction)
    yield (
        "on the data, the current matrix has reacted to the gradient of the iteration before",
        Eq(matrix_score, reaction.subs(output_gradient, earlier_gradient)),
    )
    yield "solve for the field: the Onsager term", Eq(field, matrix_score - response * earlier_gradient)


message_passing_field: Law = Law(
    "message-passing-field",
    "Field of a sequence in message passing, with its Onsager term",
    _message_passing_field,
    source="Donoho, Maleki & Montanari 2009; Erba, Troiani, Biggio, Maillard & Zdeborová 2024; derived here",
    checks=lambda: (
        (
            "at a fixed point the matrix gives each sequence its proximal score",
            message_passing_field.right.subs({earlier_gradient: proximal_point.right, matrix_score: score}),
            field,
        ),
    ),
)


def _message_passing_matrix():
    yield (
        "each sequence's score pulls by −∂ℓ/∂h = g: slope of the loss in a mode",
        Eq(sp.Symbol("L'"), -data_pull),
    )
    yield (
        "of this −ṽ ŝ is the mode's own doing (curvature from the data): without it the field is",
        Eq(mode_field, data_pull + curvature * eigenvalue_hat),
    )


def _message_passing_matrix_checks():
    denoised = soft_threshold.right.subs(point, message_passing_matrix.right / signal_gain)
    yield (
        "a fixed point is stationary: where data and penalty balance, the denoiser keeps a positive mode",
        denoised.subs({data_pull: level, eigenvalue_hat: position}),
        position,
    )


message_passing_matrix: Law = Law(
    "message-passing-matrix",
    "Field of a mode in message passing, with its Onsager term",
    _message_passing_matrix,
    source="Erba, Troiani, Biggio, Maillard & Zdeborová 2024; derived here",
    checks=_message_passing_matrix_checks,
)


def _residual_spread():
    yield (
        "learned and noisy target scores: squares q and Q̄, overlap m",
        Eq(field, m / label_square * label_score + residual_spread * residual_normal),
    )
    yield "what the target's score does not explain", Eq(residual_spread**2, q - m**2 / label_square)


residual_spread_law: Law = Law(
    "residual-spread",
    "Spread of the learned score given the target's",
    _residual_spread,
    source="regression of Gaussian variables; derived here",
    checks=lambda: (
        (
            "total square of the learned score",
            q,
            residual_spread_law.right
            + GaussianMean((m / sp.sqrt(label_square) * teacher_normal) ** 2, _normals).worked_out(),
        ),
    ),
)


def _small_residual():
    yield "spread of the learned score given the target's", residual_spread_law.statement
    exact = (
        (residual_spread_law.right)
        .subs(q, excess - target_square + 2 * m)
        .subs(m, target_square - defect)
        .subs(label_square, label_square_law.right)
    )
    numerator, denominator = sp.fraction(sp.together(exact - excess))
    yield (
        "by the distance from the target, E = q + Q₀ − 2m and D = Q₀ − m: no difference of large numbers",
        Eq(residual_spread**2, excess + (sp.collect(sp.expand(numerator), noise)) / sp.expand(denominator)),
    )


def _small_residual_checks():
    yield (
        "the same spread",
        small_residual.right.subs({excess: q + target_square - 2 * m, defect: target_square - m}),
        residual_spread_law.right.subs(label_square, label_square_law.right),
    )


small_residual: Law = Law(
    "residual-spread-near-recovery",
    "Spread of the learned score by the distance from the target",
    _small_residual,
    source="derived here",
    checks=_small_residual_checks,
)


def _divergence():
    yield "Stein: E g z = E ∂g/∂z, and z moves the field by τ", Eq(force, residual_spread * divergence)
    yield (
        "divergence with respect to the field; jumps of the proximal point are counted",
        Eq(divergence, force / residual_spread),
    )


divergence_law: Law = Law(
    "output-divergence",
    "Divergence of the output gradient by Stein's lemma",
    _divergence,
    source="Stein 1981; derived here",
    checks=lambda: (
        (
            "quadratic loss",
            divergence_law.right.subs(force, linear_means()[force]),
            outputs * sp.diff(linear_gradient(), residual_normal) / residual_spread,
        ),
    ),
)


def _curvature():
    yield (
        "the response of the output to its field is what a mode feels as curvature",
        Eq(curvature, -alpha * divergence),
    )
    yield "divergence", divergence_law.statement
    yield "together", Eq(curvature, -alpha * divergence_law.right)


def _signal_gain():
    yield (
        "Stein: s moves the target's score by √Q̄ and the field by m/√Q̄",
        Eq(pull, sp.sqrt(label_square) * signal_gain / alpha + m / sp.sqrt(label_square) * divergence_law.right),
    )
    yield (
        "solve for the gain",
        Eq(signal_gain, alpha * (pull - m / sp.sqrt(label_square) * divergence_law.right) / sp.sqrt(label_square)),
    )


def _noise_power():
    yield (
        "the data's field on a mode has the variance of the output gradients",
        Eq(noise_power, alpha * GaussianMean(output_gradient**2, _normals)),
    )
    yield "over all outputs of a sequence", Eq(noise_power, alpha * power)


_linear_factor = 2 * stiffness / (1 + 2 * stiffness * response)

curvature_law: Law = Law(
    "channel-curvature",
    "Curvature from the data",
    _curvature,
    source="P2, Section 3; derived here",
    checks=lambda: (("quadratic loss", curvature_law.right.subs(linear_means()), alpha * outputs * _linear_factor),),
)
signal_gain_law: Law = Law(
    "channel-signal-gain",
    "Signal gain from the data",
    _signal_gain,
    source="P2, Section 3; derived here",
    checks=lambda: (("quadratic loss", signal_gain_law.right.subs(linear_means()), alpha * outputs * _linear_factor),),
)
noise_power_law: Law = Law(
    "channel-noise-power",
    "Noise power from the data",
    _noise_power,
    source="P2, Section 3; derived here",
    checks=lambda: (
        (
            "quadratic loss: the squared distance of learned and noisy scores",
            noise_power_law.right.subs(linear_means()),
            alpha
            * outputs
            * _linear_factor**2
            * ((sp.sqrt(label_square) - m / sp.sqrt(label_square)) ** 2 + residual_spread**2),
        ),
    ),
)

# The spectrum: what a mode does ---------------------------------------------------------------------------------


def _denoiser():
    value = sp.Symbol("y")
    objective = curvature / 2 * eigenvalue_hat**2 - value * eigenvalue_hat + level * eigenvalue_hat
    yield (
        "AMP or cavity: Ŝ minimises ṽ/2 Tr S² − Tr S Y + λ̃ Tr S over S ⪰ 0 with Y = m̃S₀ + √(q̃/2) Z",
        Eq(
            sp.Function("Y")(signal_gain, noise_power),
            signal_gain * sp.Symbol("S_0") + sp.sqrt(noise_power / 2) * sp.Symbol("Z"),
        ),
    )
    yield (
        "the minimiser has the eigenvectors of Y: one problem an eigenvalue y",
        Eq(eigenvalue_hat, Proximal(objective, eigenvalue_hat)),
    )
    yield (
        "on s ≥ 0, with y = m̃x: soft threshold",
        Eq(eigenvalue_hat, sp.Max(signal_gain * point - level, 0) / curvature),
    )


def _denoiser_checks():
    objective = curvature / 2 * eigenvalue_hat**2 - signal_gain * point * eigenvalue_hat + level * eigenvalue_hat
    free = Proximal(objective, eigenvalue_hat).worked_out()
    yield "the free minimiser where it is positive, else 0", soft_threshold.right, (free + sp.Abs(free)) / 2


soft_threshold: Law = Law(
    "soft-threshold",
    "Denoiser of the nuclear norm",
    _denoiser,
    source="Cai, Candès & Shen 2010; derived here",
    checks=_denoiser_checks,
)


def _learned_matrix():
    yield "soft threshold", soft_threshold.statement
    yield (
        "divide by the gain: noise level, threshold and scale",
        Eq(eigenvalue_hat, signal_gain / curvature * sp.Max(point - level / signal_gain, 0)),
    )
    yield "Ŝ has the law of η (S₀ + √v Z − ε)₊", Eq(eigenvalue_hat, scale * sp.Max(point - threshold, 0))


learned_matrix: Law = Law(
    "learned-matrix",
    "The learned matrix is the thresholded noisy target",
    _learned_matrix,
    source="P2, Section 4; derived here",
    checks=lambda: (
        (
            "the same denoiser",
            learned_matrix.right.subs({scale: scale_law.right, threshold: threshold_law.right}),
            soft_threshold.right,
        ),
    ),
)


def _scaled(title_id, title, symbol, expression, reason, left, right):
    def derivation():
        yield "soft threshold", soft_threshold.statement
        yield reason, Eq(symbol, expression)

    return Law(title_id, title, derivation, source="derived here", checks=lambda: ((reason, left(), right()),))


variance_law: Law = _scaled(
    "noise-level",
    "Variance of the noise on the target",
    variance,
    noise_power / (2 * signal_gain**2),
    "Y/m̃ = S₀ + √v Z: variance of the noise",
    lambda: variance_law.right * signal_gain**2,
    lambda: noise_power / 2,
)
threshold_law: Law = _scaled(
    "threshold",
    "Threshold on the noisy target",
    threshold,
    level / signal_gain,
    "the eigenvalue of Y/m̃ that the penalty just drops",
    lambda: soft_threshold.right.subs(point, threshold_law.right + variance),
    lambda: variance * signal_gain / curvature,
)
scale_law: Law = _scaled(
    "scale",
    "Scale of the learned matrix",
    scale,
    signal_gain / curvature,
    "slope of the denoiser in units of the target",
    lambda: scale_law.right,
    lambda: sp.diff((signal_gain * point - level) / curvature, point),
)


def tail(integrand):
    """The integral of a polynomial in x and h over the part of the noisy target's law above the threshold."""
    return SpectralTail(integrand, point, hilbert, threshold)


def _semicircle(spread):
    """Density of a semicircle around 0."""
    return sp.sqrt(4 * spread - point**2) / (2 * sp.pi * spread)


def on_multiple_of_identity(expression):
    """The expression for the target s₀·1: the semicircle around s₀, where h = (x − s₀)/(2v), in closed form."""

    def integral(node):
        body, _, _, lower = node.args
        moved = body.subs(hilbert, (point - centre) / (2 * variance)).subs(point, point + centre)
        moved = moved.subs(density, _semicircle(variance))
        if lower == -oo:
            lower = centre - 2 * sp.sqrt(variance)
        return SpectralTail(moved, point, hilbert, lower - centre).over_semicircle(variance)

    return expression.replace(lambda node: isinstance(node, SpectralTail), integral)


def on_gaussian_target(node):
    """The integral for a target that is itself a semicircle of square Q₀: the noisy one has variance Q₀ + v."""
    body, _, _, lower = node.args
    whole = target_square + variance
    moved = body.subs({hilbert: point / (2 * whole), density: _semicircle(whole)})
    return SpectralTail(moved, point, hilbert, -2 * sp.sqrt(whole) if lower == -oo else lower).over_semicircle(whole)


EXAMPLE[SpectralTail] = on_multiple_of_identity  # with which lines of derivations are tried


def _square():
    yield "learned matrix", learned_matrix.statement
    yield "Tr Ŝ²/d", Eq(q, scale**2 * tail((point - threshold) ** 2))


def _overlap():
    yield "mean of vᵀS₀v over eigenvectors v of the noisy target at x", posterior_law.statement
    yield "Tr Ŝ S₀/d = ∫ ŝ(x) ξ(x) ρ(x) dx", Eq(m, scale * tail((point - threshold) * posterior_law.right))


def _posterior():
    yield (
        "subordination: the resolvent of S₀ + √v Z is that of S₀ at w = x − v G(x)",
        Eq(sp.Function("w")(point), point - variance * sp.Function("G")(point)),
    )
    yield (
        "ξ(x) = −Im(w G)/Im(−G)…: with G = h − iπρ, Im(w G)/Im G = x − 2v h",
        Eq(posterior, point - 2 * variance * hilbert),
    )


def _posterior_checks():
    resolvent = hilbert - sp.I * sp.pi * density
    subordinate = point - variance * resolvent
    yield (
        "Ledoit & Péché: Im of ⟨S₀(w − S₀)⁻¹⟩ = w G − 1, over Im G",
        posterior_law.right,
        sp.im(sp.expand(subordinate * resolvent)) / sp.im(resolvent),
    )
    yield "a target s₀·1", posterior_law.right.subs(hilbert, (point - centre) / (2 * variance)), centre


posterior_law: Law = Law(
    "posterior-eigenvalue",
    "What the target is along an eigenvector of the noisy target",
    _posterior,
    source="Ledoit & Péché 2011; Bun, Allez, Bouchaud & Potters 2016; derived here",
    checks=_posterior_checks,
)


def _response():
    yield (
        "response of the denoised matrix: divergence of a spectral function, ½∬(f(x) − f(y))/(x − y) in units of Y",
        Eq(response, sp.Function("div")(eigenvalue_hat) / signal_gain / 2),
    )
    yield (
        "by symmetry the mean of f times the Hilbert transform: the Onsager term",
        Eq(response, tail((point - threshold) * hilbert) / curvature),
    )


def _square_checks():
    half = on_multiple_of_identity(square_law.right).subs({centre: 0, threshold: 0})
    yield "no target, no threshold: half of the semicircle's variance", half, scale**2 * variance / 2


def _overlap_checks():
    at = on_multiple_of_identity(overlap_law.right)
    yield "a target s₀·1: s₀ times the trace", at, centre * on_multiple_of_identity(trace_law.right)


def _response_checks():
    noise_derivative = sp.diff(on_multiple_of_identity(tail((point - threshold) ** 2)), variance)
    yield (
        "half the slope of ∫(x − ε)²ρ in the variance",
        on_multiple_of_identity(response_law.right),
        noise_derivative / (2 * curvature),
    )


square_law: Law = Law(
    "learned-square",
    "Square of the learned matrix",
    _square,
    source="P2, Section 3; derived here",
    checks=_square_checks,
    where=lambda: sp.Gt(2 * sp.sqrt(variance), threshold),
)
overlap_law: Law = Law(
    "learned-overlap",
    "Overlap of the learned matrix with the target",
    _overlap,
    source="P2, Section 3; derived here",
    checks=_overlap_checks,
    where=lambda: sp.Gt(2 * sp.sqrt(variance), sp.Abs(threshold - centre)),
)
response_law: Law = Law(
    "learned-response",
    "Response of the learned matrix",
    _response,
    source="P2, Section 3; derived here",
    checks=_response_checks,
    where=lambda: sp.Gt(2 * sp.sqrt(variance), sp.Abs(threshold - centre)),
)


def _trace():
    yield "learned matrix", learned_matrix.statement
    yield "Tr Ŝ/d", Eq(trace, scale * tail(point - threshold))


def _rank():
    yield "learned matrix", learned_matrix.statement
    yield "mass of the positive eigenvalues", Eq(rank, tail(sp.Integer(1)))


trace_law: Law = Law(
    "learned-trace",
    "Trace of the learned matrix",
    _trace,
    source="derived here",
    checks=lambda: (
        (
            "no target: slope of the square in the threshold",
            -sp.diff(on_multiple_of_identity(square_law.right), threshold) / (2 * scale),
            on_multiple_of_identity(trace_law.right),
        ),
    ),
    where=lambda: sp.Gt(2 * sp.sqrt(variance), sp.Abs(threshold - centre)),
)
rank_law: Law = Law(
    "learned-rank",
    "Rank of the learned matrix",
    _rank,
    source="derived here",
    checks=lambda: (
        (
            "slope of the trace in the threshold",
            -sp.diff(on_multiple_of_identity(trace_law.right), threshold) / scale,
            on_multiple_of_identity(rank_law.right),
        ),
    ),
    where=lambda: sp.Gt(2 * sp.sqrt(variance), sp.Abs(threshold - centre)),
)

position = variable(
    "position",
    "a positive eigenvalue s of the learned matrix",
    _positive,
    (Rational(1, 10), Rational(1, 3)),
    notation="s_+",
)
share_above = measured("share_above", "share of the learned matrix's eigenvalues above s")


def _distribution():
    yield "learned matrix", learned_matrix.statement
    yield (
        "ŝ > s where x > ε + s/η",
        Eq(share_above, SpectralTail(sp.Integer(1), point, hilbert, threshold + position / scale)),
    )


learned_distribution: Law = Law(
    "learned-distribution",
    "Distribution of the learned eigenvalues",
    _distribution,
    source="P2, Section 4; derived here",
    checks=lambda: (
        (
            "at s = 0 the rank",
            on_multiple_of_identity(learned_distribution.right).subs(position, 0),
            on_multiple_of_identity(rank_law.right),
        ),
    ),
    where=lambda: sp.Gt(2 * sp.sqrt(variance), sp.Abs(threshold - centre)),
)

# Close to the target: the same, without differences of large numbers --------------------------------------------


def _ambiguity():
    everything = SpectralTail(posterior_law.right**2, point, hilbert, -oo)
    yield "the best estimate has the eigenvalues ξ; it misses Q₀ − ∫ξ²ρ", Eq(ambiguity, target_square - everything)
    yield (
        "∫x²ρ = Q₀ + v and ∫x h ρ = ½",
        Eq(ambiguity, variance - 4 * variance**2 * SpectralTail(hilbert**2, point, hilbert, -oo)),
    )


def _ambiguity_checks():
    direct = (target_square - SpectralTail(posterior_law.right**2, point, hilbert, -oo)).subs(target_square, centre**2)
    yield (
        "a target s₀·1 is known exactly",
        on_multiple_of_identity(ambiguity_law.right),
        on_multiple_of_identity(direct),
    )
    # S₀ itself a semicircle of variance Q₀: the sum is one of variance Q₀ + v, where h = x/(2(Q₀ + v)).
    hidden = SpectralTail(
        (point / (2 * (target_square + variance))) ** 2, point, hilbert, -2 * sp.sqrt(target_square + variance)
    )
    node = SpectralTail(hilbert**2, point, hilbert, -oo)
    value = ambiguity_law.right.subs(node, hidden.over_semicircle(target_square + variance))
    yield (
        "a Gaussian target: the scalar formula Q₀v/(Q₀ + v)",
        value,
        target_square * variance / (target_square + variance),
    )


ambiguity_law: Law = Law(
    "best-spectral-estimate",
    "Squared distance of the best spectral estimate",
    _ambiguity,
    source="Bun, Allez, Bouchaud & Potters 2016; derived here",
    checks=_ambiguity_checks,
)

_estimate = variable("estimate", "learned eigenvalue ŝ(x)", typical=(0, 1), notation=r"\hat s(x)")


def _distance():
    yield (
        "Ŝ − S₀ = (Ŝ − ξ) + (ξ − S₀), and the second is orthogonal to every function of the noisy target",
        Eq(excess, SpectralTail((_estimate - posterior) ** 2, point, hilbert, -oo) + ambiguity),
    )
    yield (
        "the posterior eigenvalue",
        Eq(excess, SpectralTail((_estimate - posterior_law.right) ** 2, point, hilbert, -oo) + ambiguity),
    )


def _defect():
    yield (
        "Q₀ − m = Tr S₀(S₀ − Ŝ)/d, in the same way",
        Eq(defect, SpectralTail(posterior * (posterior - _estimate), point, hilbert, -oo) + ambiguity),
    )
    yield (
        "the posterior eigenvalue",
        Eq(
            defect,
            SpectralTail(posterior_law.right * (posterior_law.right - _estimate), point, hilbert, -oo) + ambiguity,
        ),
    )


def _distance_checks():
    # ŝ = η x on the whole law of a multiple of the identity
    everything = {_estimate: scale * point}
    known = on_multiple_of_identity(distance_law.right.subs(everything)) - ambiguity
    yield (
        "Ŝ = η(s₀·1 + √v Z): q + Q₀ − 2m",
        known,
        scale**2 * (centre**2 + variance) + centre**2 - 2 * scale * centre**2,
    )


def _defect_checks():
    known = on_multiple_of_identity(defect_law.right.subs(_estimate, scale * point)) - ambiguity
    yield "Ŝ = η(s₀·1 + √v Z): Q₀ − m", known, centre**2 - scale * centre**2


estimate = _estimate
distance_law: Law = Law(
    "distance-from-target",
    "Squared distance of the learned matrix from the target",
    _distance,
    source="derived here",
    checks=_distance_checks,
)
defect_law = Law("overlap-defect", "Defect of the overlap", _defect, source="derived here", checks=_defect_checks)

# Losses, free energy, stability ----------------------------------------------------------------------------------

objective = measured(
    "objective",
    "minimum of the whole loss over d²: α times the data term, plus the penalty",
    typical=(_half, 1),
    notation=r"\Phi",
)
learned_norm = variable("learned_norm", "∫(x − ε)² ρ(x) dx above the threshold", typical=(_half, 1), notation="I")
pair_slopes = measured(
    "pair_slopes",
    "∬ of the squared difference quotient of (x − ε)₊ over pairs of eigenvalues",
    typical=(Rational(1, 3), 1),
    notation=r"\mathcal{D}",
)
replicon = measured("replicon", "stability of the replica-symmetric solution: below 1", notation=r"R")
test_loss = measured("test_loss", "loss of a fresh sequence of two tokens", notation=r"\mathcal{E}_{\mathrm{test}}")
_other = variable("other", "a second eigenvalue of the noisy target", typical=(-2, -1), notation="x'")


def _objective():
    yield "n sequences and a penalty on the trace, over d²", Eq(objective, alpha * mean_loss + lam * factor_norm)
    yield "weight decay is a nuclear norm", Eq(objective, alpha * mean_loss + penalty_level.right * trace)
    yield "with its level", Eq(objective, alpha * mean_loss + level * trace)


objective_law: Law = Law(
    "training-objective",
    "Minimum of the training loss with its penalty",
    _objective,
    source="derived here",
    checks=lambda: (
        (
            "in the weights",
            objective_law.right.subs(level, penalty_level.right),
            alpha * mean_loss + lam * nuclear_norm.right,
        ),
    ),
)


def _free_energy():
    yield (
        "zero temperature: data give α times the mean envelope E min[ℓ + (h − ω)²/(2V)]",
        Eq(sp.Symbol("Phi_data"), alpha * mean_envelope),
    )
    yield (
        "each mode gives the minimum of ṽs²/2 − sy + λ̃s",
        Eq(
            sp.Symbol("Phi_modes"),
            -sp.Integral(sp.Max(sp.Symbol("y") - level, 0) ** 2 * sp.Function("mu")(sp.Symbol("y")), sp.Symbol("y"))
            / (2 * curvature),
        ),
    )
    yield (
        "coupled by m̃m − ½ṽq + ½q̃V; the minimum of the loss is the stationary value over all six",
        Eq(
            objective,
            alpha * mean_envelope
            - signal_gain**2 * learned_norm / (2 * curvature)
            + signal_gain * m
            - curvature * q / 2
            + noise_power * response / 2,
        ),
    )


def _linear_envelope():
    """The mean envelope of the quadratic loss as a function of q, m and V, in closed form."""
    distance = q - 2 * m + label_square
    return outputs * stiffness * distance / (1 + 2 * stiffness * response)


def _energy_of_modes():
    """The free energy with the quadratic loss and the target s₀·1, as a function of all six numbers."""
    energy = free_energy.right.subs(mean_envelope, _linear_envelope())
    norm = on_multiple_of_identity(tail((point - threshold) ** 2))
    return energy.subs(learned_norm, norm.subs({variance: variance_law.right, threshold: threshold_law.right}))


def _free_energy_checks():
    energy = _energy_of_modes()
    linear = {**linear_means()}
    spread = sp.sqrt(residual_spread_law.right)
    field = {variance: variance_law.right, threshold: threshold_law.right, scale: scale_law.right}

    def of_data(law):
        return law.right.subs(linear).subs(residual_spread, spread)

    def of_modes(law):
        return on_multiple_of_identity(law.right).subs(field)

    yield "slope in q: the curvature", sp.diff(energy, q), (of_data(curvature_law) - curvature) / 2
    yield "slope in m: the signal gain", sp.diff(energy, m), signal_gain - of_data(signal_gain_law)
    yield "slope in V: the noise power", sp.diff(energy, response), (noise_power - of_data(noise_power_law)) / 2
    yield "slope in m̃: the overlap", sp.diff(energy, signal_gain), m - of_modes(overlap_law)
    yield "slope in ṽ: the square", sp.diff(energy, curvature), (of_modes(square_law) - q) / 2
    yield "slope in q̃: the response", sp.diff(energy, noise_power), (response - of_modes(response_law)) / 2


free_energy: Law = Law(
    "free-energy",
    "Free energy whose stationary point the equations are",
    _free_energy,
    source="P2, Section 3; derived here",
    checks=_free_energy_checks,
    where=lambda: sp.And(
        sp.Gt(sp.sqrt(2 * noise_power) / signal_gain, sp.Abs(level / signal_gain - centre)),
        sp.Gt(q * label_square, m**2),
    ),
)


def _envelope():
    yield "the least of loss and quadratic cost, averaged over sequences", Eq(mean_envelope, mean_loss + sp.Symbol("C"))
    yield (
        "the quadratic cost is V/2 times the squared output gradient",
        Eq(mean_envelope, mean_loss + response * power / 2),
    )


def _envelope_checks():
    loss = (
        outputs * GaussianMean(sp.expand((linear_gradient() / (2 * stiffness)) ** 2 * stiffness), _normals).worked_out()
    )
    yield (
        "quadratic loss",
        envelope_law.right.subs({mean_loss: loss, **linear_means()}).subs(
            residual_spread, sp.sqrt(residual_spread_law.right)
        ),
        _linear_envelope(),
    )


envelope_law: Law = Law(
    "mean-envelope",
    "Envelope of the loss",
    _envelope,
    source="Moreau 1965; derived here",
    checks=_envelope_checks,
    where=lambda: sp.Gt(q * label_square, m**2),
)


def _training_loss():
    yield "envelope of the loss", envelope_law.statement
    yield "without the quadratic cost", Eq(mean_loss, mean_envelope - response * power / 2)


training_loss_law: Law = Law(
    "training-loss",
    "Training loss of a sequence",
    _training_loss,
    source="derived here",
    checks=lambda: (
        ("back in the envelope", envelope_law.right.subs(mean_loss, training_loss_law.right), mean_envelope),
    ),
)


def _pair_slopes():
    quotient = sp.Max(point - threshold, 0) - sp.Max(_other - threshold, 0)
    yield (
        "both eigenvalues kept: the quotient is 1; both dropped: 0",
        Eq(sp.Symbol("f_quotient"), quotient / (point - _other)),
    )
    yield (
        "one of each: twice the integral over x > ε > x′",
        Eq(
            pair_slopes,
            rank**2
            + 2
            * sp.Integral(
                (point - threshold) ** 2
                / (point - _other) ** 2
                * sp.Function("rho")(point)
                * sp.Function("rho")(_other),
                point,
                _other,
            ),
        ),
    )


def mixed_quotient() -> Any:
    """The squared difference quotient of (x − ε)₊ for an eigenvalue above the threshold and one below."""
    return ((point - threshold) / (point - _other)) ** 2


below = _other


def _pair_slopes_checks():
    # two atoms of equal mass: the double sum is done by hand
    integral = next(iter(pair_slopes_law.right.atoms(sp.Integral)))
    density, quarter = sp.Function("rho"), Rational(1, 4)
    total = pair_slopes_law.right.subs(integral, quarter * integral.function / (density(point) * density(_other)))
    first, second = threshold + variance, threshold - scale
    difference = (sp.Max(first - threshold, 0) - sp.Max(second - threshold, 0)) / (first - second)
    exact = quarter * (1 + 2 * difference**2)
    yield "two eigenvalues, one on either side", total.subs({rank: _half, point: first, _other: second}), exact


pair_slopes_law: Law = Law(
    "pair-slopes",
    "Mean squared difference quotient of the denoiser",
    _pair_slopes,
    source="derived here",
    checks=_pair_slopes_checks,
)


def _replicon():
    yield (
        "a small random change of the field on the modes changes the learned matrix by its difference quotients",
        Eq(sp.Symbol("delta_S"), pair_slopes * sp.Symbol("delta_Y") / curvature**2, evaluate=False),
    )
    yield (
        "and comes back through the squared slopes of the output gradients: it must shrink",
        Eq(replicon, alpha * slope_square * pair_slopes / (2 * curvature**2)),
    )


def _replicon_checks():
    # quadratic loss, Frobenius penalty: a linear map with the variance gain ½ α K f² c² for slopes c and f
    slopes = {
        slope_square: outputs * _linear_factor**2,
        curvature: curvature_law.right.subs(linear_means()),
        pair_slopes: 1,
    }
    yield (
        "without penalty the quadratic loss is stable above K α = ½, the number of its unknowns",
        replicon_law.right.subs(slopes),
        1 / (2 * alpha * outputs),
    )


replicon_law: Law = Law(
    "replicon",
    "Stability of the replica-symmetric solution",
    _replicon,
    source="de Almeida & Thouless 1978; P2, Section 3; derived here",
    checks=_replicon_checks,
    branch="stable below 1; where the proximal point jumps the condition fails formally",
)


def _test_loss():
    yield "a fresh sequence's learned score is Gaussian, jointly with its label", residual_spread_law.statement
    yield (
        "two rows, two entries each",
        Eq(
            test_loss,
            4
            * GaussianMean(
                (logistic(beta_target * row_target) - logistic(beta * row_learned)) ** 2,
                sp.Tuple(row_target, row_learned),
            ),
        ),
    )


row_target = variable("row_target", "the target's score difference in a row", typical=(-1, 1), notation="t_1")
row_learned = variable("row_learned", "the learned score difference in a row", typical=(-1, 1), notation="u")


def _test_loss_checks():
    node = next(iter(test_loss_law.right.atoms(GaussianMean)))
    per_sequence = test_loss_law.right / node * node.args[0]
    loss = two_token_loss.right.subs({y: logistic(beta_target * row_target) for y in labels}).subs(
        {u: row_learned for u in learned_differences}
    )
    yield "the same in both rows", per_sequence, loss


test_loss_law: Law = Law(
    "test-loss", "Loss of a fresh sequence of two tokens", _test_loss, source="derived here", checks=_test_loss_checks
)

# Without factors ------------------------------------------------------------------------------------------------

_entry = variable("entry", "eigenvalue y of the field on the learned matrix", typical=(-1, 2), notation="y")


def _linear_denoiser():
    objective = curvature / 2 * eigenvalue_hat**2 - _entry * eigenvalue_hat + level / 2 * eigenvalue_hat**2
    yield (
        "without factors the penalty is (λ₂d/2)‖S‖²_F and S need not be positive",
        Eq(eigenvalue_hat, Proximal(objective, eigenvalue_hat)),
    )
    yield "linear in the field Y = m̃S₀ + √(q̃/2) Z", Eq(eigenvalue_hat, Proximal(objective, eigenvalue_hat).worked_out())


linear_denoiser: Law = Law(
    "frobenius-denoiser",
    "Denoiser of the Frobenius norm",
    _linear_denoiser,
    source="P2, Section 3; derived here",
    checks=lambda: (("stationarity", linear_denoiser.right * (curvature + level), _entry),),
)


def _frobenius(title_id, title, symbol, expression, reason, check):
    def derivation():
        yield "linear denoiser", linear_denoiser.statement
        yield reason, Eq(symbol, expression())

    return Law(title_id, title, derivation, source="P2, Section 3; derived here", checks=check)


def _slope():
    return sp.diff(linear_denoiser.right, _entry)


def _field_moments(weight):
    """∫ weight(y) over the field's law for the target s₀·1, whose field is a semicircle around m̃s₀ of variance q̃/2."""
    moved = weight.subs(_entry, _entry + signal_gain * centre)
    return SpectralTail(moved, _entry, hilbert, -sp.sqrt(2 * noise_power)).over_semicircle(noise_power / 2)


frobenius_square: Law = _frobenius(
    "frobenius-square",
    "Square of the learned matrix without factors",
    q,
    lambda: _slope() ** 2 * (signal_gain**2 * target_square + noise_power / 2),
    "Tr Y²/d = m̃²Q₀ + q̃/2",
    lambda: (
        (
            "a target s₀·1",
            frobenius_square.right.subs(target_square, centre**2),
            _field_moments(linear_denoiser.right**2),
        ),
    ),
)
frobenius_overlap: Law = _frobenius(
    "frobenius-overlap",
    "Overlap of the learned matrix without factors",
    m,
    lambda: _slope() * signal_gain * target_square,
    "Tr Y S₀/d = m̃Q₀",
    lambda: (
        (
            "a target s₀·1",
            frobenius_overlap.right.subs(target_square, centre**2),
            centre * _field_moments(linear_denoiser.right),
        ),
    ),
)
frobenius_response: Law = _frobenius(
    "frobenius-response",
    "Response of the learned matrix without factors",
    response,
    lambda: _slope() / 2,
    "∫ y h dμ = ½ for every law",
    lambda: (
        (
            "half the slope of the square in the variance, over the denoiser's slope",
            frobenius_response.right,
            sp.diff(frobenius_square.right, noise_power) / _slope(),
        ),
    ),
)


def _bias():
    """What the denoised signal misses of the target: the slope times the gain falls short of 1."""
    return sp.factor(1 - _slope() * signal_gain)


frobenius_distance: Law = _frobenius(
    "frobenius-distance",
    "Squared distance from the target without factors",
    excess,
    lambda: _bias() ** 2 * target_square + _slope() ** 2 * noise_power / 2,
    "bias and noise are orthogonal",
    lambda: (
        ("q + Q₀ − 2m", frobenius_distance.right, frobenius_square.right + target_square - 2 * frobenius_overlap.right),
    ),
)
frobenius_defect: Law = _frobenius(
    "frobenius-defect",
    "Defect of the overlap without factors",
    defect,
    lambda: _bias() * target_square,
    "the signal's share that is missed",
    lambda: (("Q₀ − m", frobenius_defect.right, target_square - frobenius_overlap.right),),
)


def _frobenius_scale():
    yield "linear denoiser", linear_denoiser.statement
    yield "Ŝ has the law of η (S₀ + √v Z): y = m̃x", Eq(scale, _slope() * signal_gain)


frobenius_scale: Law = Law(
    "frobenius-scale",
    "Scale of the learned matrix without factors",
    _frobenius_scale,
    source="derived here",
    checks=lambda: (
        ("it is the overlap over the target's square", frobenius_scale.right, frobenius_overlap.right / target_square),
    ),
)


def _frobenius_objective():
    yield "n sequences and the penalty (λ₂d/2)‖S‖²_F, over d²", Eq(sp.Symbol("penalty"), level * q / 2)
    yield "together", Eq(objective, alpha * mean_loss + level * q / 2)


def _frobenius_objective_checks():
    # the denoiser minimises ṽs²/2 − sy + penalty(s): at the minimum the slope of the penalty is y − ṽs
    slope = sp.diff(frobenius_objective.right.subs(q, eigenvalue_hat**2), eigenvalue_hat)
    yield (
        "stationarity of the denoiser",
        slope.subs(eigenvalue_hat, linear_denoiser.right),
        _entry - curvature * linear_denoiser.right,
    )
    yield "without penalty the data term", frobenius_objective.right.subs(level, 0), alpha * mean_loss


frobenius_objective: Law = Law(
    "frobenius-objective",
    "Minimum of the training loss without factors",
    _frobenius_objective,
    source="derived here",
    checks=_frobenius_objective_checks,
)


def _frobenius_replicon():
    yield "stability with the soft threshold", replicon_law.statement
    flat = replicon_law.right.subs(pair_slopes, 1)
    yield (
        "a linear denoiser has the difference quotient 1/(ṽ + λ₂) everywhere",
        Eq(replicon, flat * (curvature * _slope()) ** 2),
    )


frobenius_replicon: Law = Law(
    "frobenius-replicon",
    "Stability without factors",
    _frobenius_replicon,
    source="derived here",
    checks=lambda: (("no penalty", frobenius_replicon.right.subs(level, 0), replicon_law.right.subs(pair_slopes, 1)),),
)


# Models and claims -----------------------------------------------------------------------------------------------

_common = (alpha, lam, kappa0, noise, kappa, beta, beta_target)
_observed = {
    name: observable(name, meaning)
    for name, meaning in (
        ("train_loss", "data term of the training loss, per sequence"),
        ("objective", "training loss with its penalty, per sequence"),
        ("test_error", "loss of fresh sequences, noisy labels"),
        ("test_error_clean", "loss of fresh sequences, labels without noise"),
        ("m", "Tr Ŝ S₀/d"),
        ("q", "Tr Ŝ²/d"),
        ("rank", "number of positive eigenvalues of Ŝ over d"),
        ("eigenvalues", "the eigenvalues of Ŝ"),
        ("target_square", "Tr S₀²/d"),
        ("m_path", "m after each iteration"),
        ("q_path", "q after each iteration"),
        ("variance_path", "V after each iteration"),
        ("m_path_bare", "m after each iteration without the Onsager term"),
        ("q_path_bare", "q after each iteration without the Onsager term"),
        ("variance_path_bare", "V after each iteration without the Onsager term"),
    )
}
_of_paths = tuple(quantity for name, quantity in _observed.items() if "_path" in name)
training_model = Model(
    "attention_training",
    "a tied attention layer with weights W (d × p) or a matrix S, trained on αd² sequences that a Gaussian target of "
    "square 1 + κ₀ has labelled",
    _common,
    tuple(quantity for quantity in _observed.values() if quantity not in _of_paths),
    (alpha, kappa0),
    ("tokens", "task", "penalty"),
)
message_passing_model = Model(
    "attention_amp",
    "approximate message passing with its Onsager term on the same data, from S = 0 and V = 1",
    _common,
    _of_paths,
    (alpha, kappa0),
    ("tokens", "penalty", "iterations"),
)
_reference = {alpha: _half, lam: Rational(1, 100), kappa0: _half, noise: _half, kappa: 1, beta: 1, beta_target: 1}
_decayed = {**_reference, lam: Rational(1, 10), kappa: Rational(3, 4)}
_steps = 4
_label_task = {"tokens": 2, "task": "label", "penalty": "nuclear"}

message_passing = Experiment(
    "attention-message-passing",
    message_passing_model,
    _reference,
    {16: 100, 24: 45, 32: 110, 64: 30, 80: 32},
    {16: 40, 24: 30, 32: 40, 64: 30},
    {"tokens": 2, "penalty": "nuclear", "iterations": _steps},
)
_sizes = {16: 100, 24: 60, 32: 120, 48: 30, 80: 32}  # a limit is known best from sizes that are far apart
_many = {16: 300, 24: 180, 32: 360, 48: 90, 80: 96}  # for rivals that are within a few per cent
_small_sizes = {16: 80, 24: 40, 32: 80, 64: 36}  # a weak penalty needs ten times the evaluations


def _training(name, changes, standard=None, full=None, **options):
    """An experiment that trains the layer; `changes` to the reference parameters."""
    parameters = {**_reference, **changes}
    return Experiment(
        f"attention-{name}", training_model, parameters, standard or {}, {}, {**_label_task, **options}, full or {}
    )


# Perfect recovery needs α = 0.211 (κ₀ = ½), and 0.25 without factors; noisy labels (Δ = ¼) are fitted up to α = 0.162.
# At these α the sequences αd² are a whole number at every size.
_weak = {lam: Rational(1, 1000)}
_silent, _noisy = {**_weak, noise: 0}, {**_weak, noise: Rational(1, 4)}
trained = _training("trained", _decayed, _sizes)
trained_sequence = _training("trained-on-sequences", _decayed, _small_sizes, task="sequence")
trained_entries = _training("trained-by-entries", {lam: Rational(1, 5)}, _sizes, penalty="frobenius")
below_recovery = _training("below-recovery", {**_silent, alpha: Rational(1, 8)}, _small_sizes)
above_recovery = _training("above-recovery", {**_silent, alpha: Rational(15, 64)}, _small_sizes)
# At the lowest exponent of the bias, 2/3, the limit rests on the small sizes and the largest together.
below_interpolation = _training(
    "below-interpolation", {**_noisy, alpha: Rational(1, 8)}, {16: 120, 24: 120, 32: 120, 64: 50}
)
above_interpolation = _training("above-interpolation", {**_noisy, alpha: _half}, _sizes)
# In the full tier only:
without_noise = _training("trained-without-noise", {alpha: Rational(1, 4), lam: Rational(1, 10), noise: 0}, full=_sizes)
weakly_decayed = _training("weakly-decayed", {}, full=_many)
wide = _training("of-twice-the-width", {kappa: 2}, full=_many)
many_sequences = _training("with-many-sequences", {alpha: 4}, full={16: 60, 24: 40, 32: 80, 48: 32})
low_rank = _training(
    "of-low-rank",
    {alpha: Rational(1, 4), kappa0: Rational(1, 4), noise: Rational(1, 4), lam: Rational(1, 20)},
    full=_sizes,
)
full_rank = _training("of-full-rank", {kappa0: 2, noise: 0, lam: Rational(1, 10)}, full=_sizes)
three_tokens = _training(
    "on-three-tokens",
    {alpha: Rational(1, 4), lam: Rational(1, 10)},
    full={16: 150, 24: 90, 32: 180, 48: 45, 80: 48},
    tokens=3,
)
sharp = _training("sharp", {lam: Rational(3, 10), beta: 2, beta_target: 2}, full=_sizes)
sharp_target = _training("with-a-sharper-target", {lam: Rational(3, 10), beta_target: 2}, full=_sizes)

_step = variable("step", "iteration of message passing", sp.S.Naturals, (1, 2, 3, 4), notation="k")


def solved(component, iteration=FIXED_POINT, penalty="nuclear", weight=_two, length=_two, **changed):
    """A component of the solution (or of an iterate) of the equations, with parameters replaced by name."""
    values = {quantity.name: quantity for quantity in _common} | changed
    return Solution.of(
        component, penalty, *(values[quantity.name] for quantity in _common), length, weight, iteration=iteration
    )


def at_solution(law, component, iteration=FIXED_POINT, **changed):
    """What a law's right side is at the solution of the equations."""
    node = solved(component, iteration, **changed)
    return Eq(law.right, 1 - node if component == "cdf" else node, evaluate=False)


def _unscaled(law, component, iteration=FIXED_POINT, **common):
    """The law without the scale η, which a square has twice and a distribution in its argument."""
    if component == "cdf":
        return at_solution(law, component, iteration * solved("scale", **common), **common)
    factor = solved("scale", iteration, **common) ** (2 if component == "q" else 1)
    return Eq(law.right, solved(component, iteration, **common) / factor, evaluate=False)


def _wrong_solutions(law, component, iteration=FIXED_POINT, **common):
    """What the same equations give with one mistake each."""
    length = common.get("length", _two)
    squared = alpha * length**2 / outputs_law.right.subs(tokens, length)
    mistakes = {
        _diagonal_mistake: {"weight": sp.Integer(1)},
        _load_mistake: {"alpha": squared},
        _noise_mistake: {"noise": sp.Integer(0)},
        _level_mistake: {"lam": lam / sp.sqrt(kappa)},
        _penalty_mistake: {"penalty": "frobenius"},
        _target_mistake: {"beta_target": common.get("beta", beta)},
    }
    wrong = {name: (at_solution(law, component, iteration, **common | change),) for name, change in mistakes.items()}
    return wrong | {_scale_mistake: (_unscaled(law, component, iteration, **common),)}


_diagonal_mistake, _load_mistake = "diagonal variance 1 for 2", "T² outputs for (T² + T − 2)/2"
_noise_mistake, _level_mistake = "label noise forgotten: Q₀ for Q₀ + Δ/2", "λ for √κ λ"
_penalty_mistake, _scale_mistake = "Frobenius norm for nuclear norm", "unscaled: without η"
_target_mistake = "the target's inverse temperature forgotten: β for β₀"
_bare_mistake = "message passing without its Onsager term"
_cuts = (_half, 1, 2)


def _limit(resolution, relative=True):
    """No theory gives the order of the bias: 1/d for smooth statistics, d^(−2/3) where a spectral edge has a part."""
    return Limit(1, 2, resolution, relative, (Rational(2, 3), Rational(4, 3)))


def _path_claim(name, law, symbol, component, column, resolution, wrong):
    def rivals():
        known = _wrong_solutions(law, component, _step)
        bare = {symbol: _observed[f"{column}_bare"]}
        return {mistake: bare if mistake == _bare_mistake else known[mistake] for mistake in wrong}

    return Claim(
        f"message-passing-{name}",
        law,
        message_passing,
        _limit(resolution),
        rivals,
        reads={symbol: _observed[column]},
        given=(at_solution(law, component, _step),),
        points=(_step, tuple(range(1, _steps + 1))),
    )


def _measures(penalty):
    """What is compared: the law, its symbol, the component of the solution, and what reads the symbol."""
    square, product, whole = (
        (square_law, overlap_law, objective_law)
        if penalty == "nuclear"
        else (frobenius_square, frobenius_overlap, frobenius_objective)
    )
    distance = _observed["q"] + _observed["target_square"] - 2 * _observed["m"]
    above = Average(sp.Piecewise((1, _observed["eigenvalues"] > position), (0, True)))
    return {
        "train-loss": (training_loss_law, mean_loss, "train_loss", _observed["train_loss"]),
        "fitted-loss": (training_loss_law, mean_loss, "train_loss", _observed["train_loss"]),
        "objective": (whole, objective, "objective", alpha * _observed["objective"]),
        "test-error": (test_loss_law, test_loss, "test_error", _observed["test_error"]),
        "overlap": (product, m, "m", _observed["m"]),
        "square": (square, q, "q", _observed["q"]),
        "distance": (distance_law, excess, "excess", distance),
        "rank": (rank_law, rank, "rank", _observed["rank"]),
        "distribution": (learned_distribution, share_above, "cdf", above),
    }


def _trained_claim(experiment, name, resolution, wrong, note=""):
    penalty, length = experiment.options["penalty"], sp.Integer(experiment.options["tokens"])
    law, symbol, component, reads = _measures(penalty)[name]
    spectral = component == "cdf"
    common = {"iteration": position if spectral else FIXED_POINT, "penalty": penalty, "length": length}

    def rivals():
        known = _wrong_solutions(law, component, **common)
        return {mistake: known[mistake] for mistake in wrong}

    return Claim(
        f"{experiment.name}-{name}",
        law,
        experiment,
        _limit(resolution, relative=name not in _ABSOLUTE),
        rivals,
        reads={symbol: reads},
        given=(at_solution(law, component, **common),),
        points=(position, _cuts) if spectral else None,
        note=note,
    )


# The others have resolutions relative to the law's value; a loss that is fitted has no scale of its own.
_ABSOLUTE = ("distribution", "distance", "fitted-loss")


def _claims_of(experiment, plan, note=""):
    """`plan` maps the name of a measure to its resolution and the mistakes that must show."""
    return tuple(_trained_claim(experiment, name, *rest, note) for name, rest in plan.items())


_usual = {
    "train-loss": (0.18, (_noise_mistake,)),
    "test-error": (0.15, (_noise_mistake,)),
    "overlap": (0.1, (_scale_mistake,)),
    "square": (0.15, (_scale_mistake,)),
}
_close = {
    "train-loss": (0.1, (_noise_mistake,)),
    "test-error": (0.1, (_noise_mistake,)),
    "overlap": (0.06, (_scale_mistake,)),
    "square": (0.1, (_scale_mistake,)),
}
_without_noise = {
    "train-loss": (0.2, (_load_mistake,)),
    "test-error": (0.3, (_load_mistake,)),
    "overlap": (0.15, (_scale_mistake,)),
    "square": (0.2, (_scale_mistake,)),
}

claims = (
    _path_claim("response", response_law, response, "V", "variance_path", 0.25, (_diagonal_mistake, _load_mistake)),
    _path_claim("overlap", overlap_law, m, "m", "m_path", 0.15, (_scale_mistake, _bare_mistake)),
    _path_claim("square", square_law, q, "q", "q_path", 0.25, (_scale_mistake, _bare_mistake)),
    *_claims_of(
        trained,
        {
            **_close,
            "objective": (0.05, (_level_mistake,)),
            "test-error": (0.1, (_diagonal_mistake, _load_mistake, _noise_mistake)),
            "rank": (0.1, (_load_mistake,)),
            "distribution": (0.06, (_scale_mistake,)),
        },
    ),
    *_claims_of(trained_sequence, _usual),
    *_claims_of(trained_entries, _close),
    *_claims_of(
        below_recovery,
        {
            "train-loss": (0.3, (_load_mistake,)),
            "distance": (0.2, (_load_mistake, _penalty_mistake)),
            "rank": (0.15, (_penalty_mistake,)),
        },
        "Too few sequences: a weak penalty leaves a distance from the target.",
    ),
    *_claims_of(
        above_recovery,
        {"train-loss": (0.3, (_load_mistake,)), "distance": (0.03, (_penalty_mistake,))},
        "Enough sequences with factors, whose distance falls with λ, and too few without.",
    ),
    *_claims_of(
        below_interpolation,
        {
            "fitted-loss": (0.002, (_load_mistake,)),
            "test-error": (0.3, (_noise_mistake,)),
            "square": (0.25, (_load_mistake,)),
        },
        "Few sequences: noisy labels are fitted, and the loss falls with λ. A local minimum is rare at small sizes.",
    ),
    *_claims_of(
        above_interpolation,
        {
            "train-loss": (0.3, (_load_mistake, _noise_mistake)),
            "test-error": (0.2, (_load_mistake, _noise_mistake)),
            "square": (0.15, (_load_mistake, _noise_mistake)),
        },
        "Too many sequences: the noisy labels cannot be fitted.",
    ),
    *_claims_of(without_noise, _without_noise),
    *_claims_of(weakly_decayed, _usual),
    *_claims_of(wide, {**_usual, "objective": (0.1, (_level_mistake,))}),
    *_claims_of(many_sequences, _usual),
    *_claims_of(low_rank, {**_usual, "rank": (0.15, (_load_mistake,))}),
    *_claims_of(full_rank, _without_noise),
    *_claims_of(
        three_tokens,
        {
            "train-loss": (0.15, (_noise_mistake,)),
            "overlap": (0.1, (_load_mistake, _scale_mistake)),
            "square": (0.15, (_load_mistake, _scale_mistake)),
            "rank": (0.15, (_load_mistake,)),
            "distribution": (0.06, (_scale_mistake,)),
        },
    ),
    *_claims_of(sharp, _usual),
    *_claims_of(
        sharp_target, {name: (resolution, (*wrong, _target_mistake)) for name, (resolution, wrong) in _usual.items()}
    ),
)
