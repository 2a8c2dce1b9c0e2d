"""Finite sequences: what the repetition of tokens adds to the bulk, by counting closed walks.

Sequences of length T share tokens, so the matrix that selects tokens is a sparse Wishart matrix. Its first three
moments are the Gaussian ones; the fourth gains one crossing walk, and linear statistics fluctuate at 1/√d, not 1/d.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import sympy as sp
from sympy import Eq, Integer, Interval, Rational, S, oo
from sympy.utilities.iterables import multiset_partitions

from derivations.attention_weights import T, mean_weights, strict_noise, strict_weights, t, weight
from derivations.bbp import kappa
from derivations.core import Claim, Experiment, Exponent, Law, Limit, Model, measured, observable, variable
from derivations.wishart_product import delta, gamma, marchenko_pastur_r, moment, moments, n
from derivations.wishart_product import g as resolvent

# Symbols -------------------------------------------------------------------------------------------------------

aspect = variable(
    "c", "c = V/N = γ/δ, the ratio of vocabulary size to number of samples", Interval.open(0, oo), (Rational(1, 3), 3)
)
crossing = variable(
    "q",
    "q = Σ w_t⁴/κ², the weight that a sequence puts on single tokens: 1/T for equal weights",
    Interval.Lopen(0, 1),
    (Rational(1, 10), Rational(9, 10)),
)
dimension = variable("d", "embedding dimension", S.Naturals, (64, 512))
selection_moment = variable(
    "selection_moment",
    "n-th moment of the selection matrix M = (V/N) Σ p_n p_nᵀ/κ, where p_n holds the token weights of sequence n",
    Interval(0, oo),
    notation=r"\mu_n",
)
spread = variable(
    "spread",
    "standard deviation of the second moment of S/κ from draw to draw",
    Interval(0, oo),
    notation=r"\sigma(m_2)",
)

traces = tuple(
    observable(
        f"trace_{order}", f"(1/d) tr (S/κ)^{order} of the centred S", Interval(0, oo), notation=rf"\hat m_{order}"
    )
    for order in (1, 2, 3, 4)
)
decay = measured(
    "decay",
    "exponent e of the standard deviation d^(−e) of the second moment",
    traces[1],
    Interval(0, oo),
    notation="e",
)

# Partitions ----------------------------------------------------------------------------------------------------

Partition = tuple[tuple[int, ...], ...]


@cache
def _partitions(count: int) -> tuple[Partition, ...]:
    """All partitions of {0, …, count − 1} into blocks."""
    return tuple(tuple(map(tuple, blocks)) for blocks in multiset_partitions(list(range(count))))


def _crosses(blocks: Partition) -> bool:
    """Whether two blocks interlace: a < b < c < d with a, c in one and b, d in the other."""
    label = {place: index for index, block in enumerate(blocks) for place in block}
    return any(
        label[one] == label[three] != label[two] == label[four]
        for one, two, three, four in itertools.combinations(sorted(label), 4)
    )


def _cumulant_sum(values: Sequence[Any], order: int) -> Any:
    """Moment of an order from free cumulants: the sum over non-crossing partitions."""
    return sp.expand(
        sum(
            sp.Mul(*(values[len(block) - 1] for block in blocks))
            for blocks in _partitions(order)
            if not _crosses(blocks)
        )
    )


@cache
def _done(expression: Any) -> Any:
    """The expression with its sums written out; kept, because nested symbolic sums are slow."""
    return expression.doit()


def _free_cumulants(values: Sequence[Any]) -> tuple[Any, ...]:
    """Free cumulants from moments: the same sum, solved for its one-block term."""
    cumulants: tuple[Any, ...] = ()
    for order, value in enumerate(values, 1):
        cumulants += (sp.expand(value - _cumulant_sum((*cumulants, Integer(0)), order)),)
    return cumulants


# Closed walks --------------------------------------------------------------------------------------------------


def _power_sum(order: int) -> Any:
    """The symbol of Σ_t w_t^order."""
    return sp.Symbol(f"p_{order}", positive=True)


def _distinct_slots(exponents: Sequence[int]) -> Any:
    """Σ w_{t_1}^{e_1} w_{t_2}^{e_2} … over distinct positions t_1, t_2, … (Möbius inversion over partitions)."""
    total = Integer(0)
    for blocks in _partitions(len(exponents)):
        signs = sp.Mul(*((-1) ** (len(block) - 1) * sp.factorial(len(block) - 1) for block in blocks))
        total += signs * sp.Mul(*(_power_sum(sum(exponents[place] for place in block)) for block in blocks))
    return total


def _visits(samples: Partition, tokens: Partition) -> tuple[tuple[int, ...], ...]:
    """For each sequence label of a walk, how often it meets each of its token labels.

    Step k of the walk is p_{n_k}(v_k) p_{n_k}(v_{k+1}), with v_{k+1} taken round the circle.
    """
    order = sum(map(len, samples))
    token_of = {place: index for index, block in enumerate(tokens) for place in block}
    visits = []
    for block in samples:
        met = [token_of[place] for step in block for place in (step, (step + 1) % order)]
        visits.append(tuple(met.count(index) for index in sorted(set(met))))
    return tuple(visits)


@cache
def _surviving_walks(order: int) -> tuple[tuple[Partition, Partition, Any], ...]:
    """The pairs of partitions whose bipartite graph is a tree, each with its contribution to the moment."""
    walks = []
    for samples in _partitions(order):
        for tokens in _partitions(order):
            visits = _visits(samples, tokens)
            edges = sum(map(len, visits))
            if edges == len(samples) + len(tokens) - 1:
                weight = sp.Mul(*map(_distinct_slots, visits)) / _power_sum(2) ** order
                walks.append((samples, tokens, aspect ** (order - len(samples)) * weight))
    return tuple(walks)


def _walk_moment(order: int) -> Any:
    """The moment of M of an order, as the sum over the surviving walks."""
    total = sp.expand(sum(weight for _, _, weight in _surviving_walks(order)))
    return sp.expand(total.subs(_power_sum(4), crossing * _power_sum(2) ** 2))


def _selection_moments():
    matrix, token = sp.Function("p"), sp.IndexedBase("v")
    label, step, order = sp.IndexedBase("n"), sp.Symbol("k", integer=True), n
    walk = sp.Product(matrix(label[step], token[step]) * matrix(label[step], token[step + 1]), (step, 1, order))
    all_labels = sp.Function("E")(sp.Sum(walk, (label[step], 1, sp.Symbol("N")), (token[step], 1, sp.Symbol("V"))))
    yield (
        "definition of M; its trace sums over closed walks v_1 n_1 v_2 n_2 … of tokens and sequences, v_{n+1} = v_1",
        Eq(selection_moment, aspect**order / _power_sum(2) ** order * all_labels / sp.Symbol("V")),
    )
    sequences, tokens, pairs = sp.symbols("a b e", integer=True, positive=True)
    yield (
        "equal labels form a partition into a sequences and b tokens; e pairs (sequence, token it uses) cost 1/V each: "
        "N^a V^b V^(−e)/V survives only if the bipartite graph of the walk is a tree",
        Eq(pairs, sequences + tokens - 1),
    )
    slots = _distinct_slots((2, 2))
    yield (
        "on a tree every pair is used an even number of times, so centring changes nothing; distinct tokens of a "
        "sequence sit in distinct positions, e.g. two tokens used twice each",
        Eq(
            sp.Sum(sp.Function("w")(t) ** 2 * sp.Function("w")(sp.Symbol("s")) ** 2, (t, 1, T), (sp.Symbol("s"), 1, T))
            - _power_sum(4),
            slots,
        ),
    )
    for order_ in (1, 2, 3):
        yield (
            f"order {order_}: {len(_surviving_walks(order_))} walks survive; the power sums cancel",
            Eq(sp.Symbol(f"mu_{order_}"), _walk_moment(order_)),
        )
    crossed = sum(weight for samples, tokens_, weight in _surviving_walks(4) if _crosses(samples))
    yield (
        "order 4: the crossing walk n n′ n n′ needs one token for all steps",
        Eq(sp.Symbol("mu_cross"), crossed.subs(_power_sum(4), crossing * _power_sum(2) ** 2)),
    )
    yield f"order 4: all {len(_surviving_walks(4))} surviving walks", Eq(sp.Symbol("mu_4"), _walk_moment(4))
    index = sp.Symbol("j", integer=True, nonnegative=True)
    narayana = sp.Sum(sp.binomial(n, index) * sp.binomial(n, index + 1) * aspect**index, (index, 0, n - 1)) / n
    yield (
        "without the crossing walk these are the Marchenko–Pastur moments of ratio c (Narayana numbers); n ≤ 4",
        Eq(selection_moment, narayana + sp.KroneckerDelta(n, 4) * aspect**2 * crossing**2),
    )


def _selection_moments_checks():
    for order in (1, 2, 3, 4):
        yield f"sum over walks, order {order}", _done(selection_moments.right.subs(n, order)), _walk_moment(order)
    series = sp.Poly(sp.series(marchenko_pastur_r.right.subs(delta, aspect), resolvent, 0, 4).removeO(), resolvent)
    cumulants = series.all_coeffs()[::-1]
    for order in (2, 3, 4):
        gaussian = selection_moments.right.subs({n: order, crossing: 0}).doit()
        yield f"q → 0: Marchenko–Pastur by its R-transform, order {order}", gaussian, _cumulant_sum(cumulants, order)
    rate = 1 / aspect
    poisson = sum(sp.functions.combinatorial.numbers.stirling(4, index) * rate**index for index in range(1, 5))
    yield (
        "T = 1: M is diagonal with Poisson counts of mean 1/c",
        selection_moments.right.subs({n: 4, crossing: 1}).doit(),
        aspect**4 * poisson,
    )


selection_moments = Law(
    "selection-moments",
    "Moments of the selection matrix",
    _selection_moments,
    source="derived here by counting closed walks",
    checks=_selection_moments_checks,
    where=lambda: n <= 4,
)


def _finite_moments():
    yield "moments of M", selection_moments.statement
    free = sp.Function("kappa")
    yield (
        "S/κ = Z M Zᵀ/V with Gaussian Z: a free compound Poisson law of rate 1/δ and jumps δM; its free cumulants",
        Eq(free(n), delta ** (n - 1) * selection_moment),
    )
    symbols = sp.symbols("kappa_1:5")
    yield "the non-crossing partitions of four elements", Eq(sp.Symbol("m_4"), _cumulant_sum(symbols, 4))
    extra = sp.factor(delta**3 * (aspect**2 * crossing**2).subs(aspect, gamma / delta))
    yield "the crossing walk enters through the fourth free cumulant alone, c = γ/δ", Eq(sp.Symbol("m_cross"), extra)
    yield "moments of the product for Gaussian M", moments.statement
    square = moments.right.replace(lambda part: isinstance(part, sp.Sum), _full_range)
    yield "a binomial coefficient with negative lower index is 0: both sums may run to n − 1", Eq(moment, square)
    yield "with the crossing walk, n ≤ 4", Eq(moment, square + sp.KroneckerDelta(n, 4) * extra)


def _full_range(total: Any) -> Any:
    """A double sum whose inner limit depends on the outer index, over the whole square (quick to write out)."""
    return sp.Sum(total.function, *((limit[0], 0, n - 1) for limit in total.limits))


def _selection_at(order: int) -> Any:
    """A moment of M in δ and γ."""
    return _done(selection_moments.right.subs(n, order)).subs(aspect, gamma / delta)


def _finite_moments_checks():
    cumulants = tuple(delta ** (order - 1) * _selection_at(order) for order in (1, 2, 3, 4))
    for order in (1, 2, 3, 4):
        by_cumulants = _cumulant_sum(cumulants, order)
        yield f"free cumulants, order {order}", _done(finite_moments.right.subs(n, order)), by_cumulants
    for order in (2, 3):
        product = finite_moments.right.subs({n: order, gamma: Rational(1, 3)}).doit()
        yield (
            f"the product's moment of order {order}",
            product,
            moments.right.subs({n: order, gamma: Rational(1, 3)}).doit(),
        )
    equal = crossing_weight_at(mean_weights, 8)
    yield "equal weights: q = 1/T, so the product law returns as T → ∞", equal, Rational(1, 8)


finite_moments = Law(
    "finite-length-moments",
    "First four moments for sequences of finite length",
    _finite_moments,
    source="derived here by counting closed walks",
    checks=_finite_moments_checks,
    where=lambda: n <= 4,
)


def _crossing_weight():
    yield "definition", Eq(crossing, _power_sum(4) / _power_sum(2) ** 2)
    yield "in terms of the weights", Eq(crossing, sp.Sum(weight**4, (t, 1, T)) / sp.Sum(weight**2, (t, 1, T)) ** 2)


def crossing_weight_at(law: Law, length: int) -> Any:
    """The value of q for the weights of a law (mean or strict causal weights) at an explicit length."""
    return crossing_weight.right.subs(weight, law.right).subs(T, length).doit()


def _crossing_weight_checks():
    yield "one position", crossing_weight_at(mean_weights, 1), Integer(1)
    yield "equal weights", crossing_weight_at(mean_weights, 5), Rational(1, 5)
    weights = (Rational(3, 4), Rational(1, 4), Integer(0))
    direct = sum(value**4 for value in weights) / sum(value**2 for value in weights) ** 2
    yield "strict causal weights, T = 3", crossing_weight_at(strict_weights, 3), direct


crossing_weight = Law(
    "crossing-weight",
    "Weight of the crossing walk",
    _crossing_weight,
    source="definition; derived here",
    checks=_crossing_weight_checks,
)


def _long_crossing():
    position = sp.Symbol("x", positive=True)
    yield "weight of the crossing walk", crossing_weight.statement
    fourth, second = (sp.Integral((-sp.log(position)) ** power, (position, 0, 1)) for power in (4, 2))
    ratio = sp.factorial(4) / sp.factorial(2) ** 2
    yield (
        "strict causal weights tend to −log(t/T)/T: Riemann sums",
        Eq(sp.Limit(T * crossing, T, oo), fourth / second**2),
    )
    yield "∫ (−log x)ᵏ dx = k!: the correction vanishes as 1/T²", Eq(sp.Limit(T * crossing, T, oo), ratio)


def _long_crossing_sides():
    """The law and the ratio of the two integrals, integrated."""
    position = sp.Symbol("x", positive=True)
    fourth, second = (sp.integrate(sp.log(position) ** power, (position, 0, 1)) for power in (4, 2))
    return long_crossing.right, fourth / second**2


long_crossing = Law(
    "crossing-weight-causal-long",
    "Weight of the crossing walk for long causal sequences",
    _long_crossing,
    source="derived here",
    checks=lambda: [("the integrals themselves", *_long_crossing_sides())],
)

# Fluctuations --------------------------------------------------------------------------------------------------


def _spread():
    inner, variance = sp.Function("dot"), sp.Function("Var")
    first, second = sp.symbols("n nprime")
    vocabulary, samples = sp.symbols("V N", positive=True)
    shared = inner(sp.Symbol("p_n"), sp.Symbol("p_nprime"))
    yield (
        "two sequences meet in one token (positions s, t) with probability 1/V: then their inner product is w_s w_t",
        Eq(sp.Function("E")(shared**4), _power_sum(4) ** 2 / vocabulary),
    )
    pair_sum = sp.Sum(shared**2, (first, 1, samples), (second, 1, samples))
    yield (
        "given p_n the mean of the square is κ²/V for each n, so pairs are uncorrelated: N²/2, each counted twice",
        Eq(variance(pair_sum), 2 * samples**2 * _power_sum(4) ** 2 / vocabulary),
    )
    of_selection = sp.sqrt(2 / vocabulary) * (vocabulary / samples) * crossing
    yield "second moment of M: that sum times V/(N²κ²)", Eq(sp.Function("sigma")(sp.Symbol("mu_2")), of_selection)
    of_s = (delta * of_selection).subs(samples, dimension / gamma).subs(vocabulary, dimension / delta)
    yield (
        "second free cumulant of S/κ: δ times it; Gaussian fluctuations of Z are of order 1/d",
        Eq(spread, sp.simplify(of_s)),
    )


def _collision_variance(samples: int, vocabulary: int) -> Any:
    """Variance of the number of ordered pairs of equal tokens among `samples` uniform draws, by enumeration."""
    counts = []
    for tokens in itertools.product(range(vocabulary), repeat=samples):
        counts.append(sum(a == b for a, b in itertools.permutations(tokens, 2)))
    mean = Rational(sum(counts), len(counts))
    return sum((value - mean) ** 2 for value in counts) / len(counts)


def _spread_checks():
    samples, vocabulary = sp.symbols("N V", positive=True)
    exact = 2 * samples * (samples - 1) / vocabulary * (1 - 1 / vocabulary)
    for pair in ((2, 3), (3, 2), (4, 3)):
        yield (
            f"T = 1: enumeration at N, V = {pair}",
            exact.subs({samples: pair[0], vocabulary: pair[1]}),
            _collision_variance(*pair),
        )
    scale = sp.Symbol("scale", positive=True)
    in_moment = (delta * vocabulary / samples**2) ** 2 * exact
    limit = sp.limit((in_moment * scale).subs({samples: scale / gamma, vocabulary: scale / delta}), scale, oo)
    yield "T = 1: limit of the exact variance", (spread_law.right.subs(crossing, 1)) ** 2 * dimension, limit


spread_law = Law(
    "second-moment-spread",
    "Fluctuation of the second moment of the token model",
    _spread,
    source="derived here",
    checks=_spread_checks,
)


def _decay():
    yield "standard deviation of the second moment", spread_law.statement
    slope = -dimension * sp.Derivative(sp.log(spread), dimension)
    yield "its logarithmic slope", Eq(decay, slope)
    yield (
        "tokens repeat: half the exponent of the Gaussian model",
        Eq(decay, sp.simplify(-dimension * sp.diff(spread_law.right, dimension) / spread_law.right)),
    )


def _decay_checks():
    ratio = spread_law.right.subs(dimension, 4 * dimension) / spread_law.right
    yield "four times the dimension", sp.simplify(ratio), 4 ** (-decay_law.right)


decay_law = Law(
    "second-moment-decay",
    "Exponent of the fluctuation of linear statistics",
    _decay,
    source="derived here",
    checks=_decay_checks,
)

# A contrast that shows the crossing walk -----------------------------------------------------------------------


def _charlier_contrast():
    """Coefficients of μ_4, μ_3, μ_2 in the combination that token counts' lower fluctuations leave alone (T = 1).

    With f_j the mean falling factorial of Poisson counts of mean D = 1/c, μ_k = c^k Σ_j S(k, j) f_j, and
    f_j = Σ_i C(j, i) D^(j−i) C_i in orthogonal (Charlier) fluctuations C_i, of which C_1 = 0.
    """
    stirling = sp.functions.combinatorial.numbers.stirling
    rate = 1 / aspect

    def response(order: int, degree: int) -> Any:
        terms = (stirling(order, j) * sp.binomial(j, degree) * rate ** (j - degree) for j in range(degree, order + 1))
        return aspect**order * sum(terms)

    third, second = sp.symbols("third second")
    unknown = sp.solve(
        [response(4, degree) + third * response(3, degree) + second * response(2, degree) for degree in (3, 2)],
        (third, second),
    )
    return sp.expand(unknown[third]), sp.expand(unknown[second])


contrast_value = measured(
    "contrast",
    "free cumulants of S over its mean eigenvalue, combined so that repeats of two and three tokens do not move it",
    notation=r"\chi",
)


def contrast_of(values: Sequence[Any]) -> Any:
    """The contrast of four moments (in units of the first)."""
    third, second = (
        sp.expand((coefficient * delta**power).subs(aspect, gamma / delta))
        for coefficient, power in zip(_charlier_contrast(), (1, 2), strict=True)
    )
    scaled = tuple(value / values[0] ** order for order, value in enumerate(values, 1))
    cumulants = _free_cumulants(scaled)
    return cumulants[3] + third * cumulants[2] + second * cumulants[1]


def _contrast():
    third, second = _charlier_contrast()
    mu = sp.symbols("mu_2:5")
    yield (
        "T = 1: the counts of tokens are Poisson, their Charlier components orthogonal; this combination of the "
        "moments of M holds none of the second and third",
        Eq(sp.Symbol("chi_M"), mu[2] + third * mu[1] + second * mu[0]),
    )
    yield (
        "free cumulants of S/κ are δⁿ⁻¹ μ_n; multiply by δ³, c = γ/δ",
        Eq(contrast_value, contrast_of((Integer(1), *sp.symbols("m_2:5")))),
    )
    yield "moments of M", selection_moments.statement
    coefficients = {mu[order - 2]: _selection_at(order) for order in (2, 3, 4)}
    plain = sp.expand(
        delta**3 * (mu[2] + third * mu[1] + second * mu[0]).subs(aspect, gamma / delta).subs(coefficients)
    )
    extra = sp.Poly(plain, crossing).coeff_monomial(crossing**2) * crossing**2
    yield "the crossing walk enters it unchanged", Eq(contrast_value, sp.expand(plain - extra) + extra)


def _contrast_checks():
    values = tuple(_done(finite_moments.right.subs(n, order)) for order in (1, 2, 3, 4))
    yield "from the moments of S/κ", contrast.right, sp.expand(contrast_of(values))
    scale = Rational(7, 3)
    plain = tuple(map(Integer, (1, 3, 12, 57)))
    scaled = tuple(scale**order * value for order, value in enumerate(plain, 1))
    yield "the scale of S drops out", contrast_of(scaled), contrast_of(plain)


contrast = Law(
    "crossing-contrast",
    "A combination of four moments that shows the crossing walk",
    _contrast,
    source="derived here",
    checks=_contrast_checks,
)

# Model and claims ----------------------------------------------------------------------------------------------

token_traces = Model(
    "token_traces",
    "token model without signal: fair independent signs, centred pooled sequences, its first four spectral moments",
    (delta, gamma),
    traces,
    realised=(delta, gamma),
    options=("length", "weights"),
)


class _PositionWeights(Mapping[str, Any]):
    """The weights of a law by position, evaluated at first use: no derivation runs at import."""

    def __init__(self, law: Law, length: int) -> None:
        self._law, self._length = law, length

    def __getitem__(self, position: str) -> Any:
        return self._law.right.subs({T: self._length, t: int(position)})

    def __iter__(self) -> Iterator[str]:
        return map(str, range(1, self._length + 1))

    def __len__(self) -> int:
        return self._length


def _experiment(
    name: str, law: Law, length: int, ratios: tuple[Any, Any], standard: Mapping[int, int], quick: Mapping[int, int]
) -> Experiment:
    return Experiment(
        name,
        token_traces,
        dict(zip((delta, gamma), ratios, strict=True)),
        options={"length": length, "weights": _PositionWeights(law, length)},
        standard=standard,
        quick=quick,
    )


_BULK = (Rational(1, 2), Rational(1, 4))
_ORDERS = (n, (1, 2, 3, 4))
_MEASURED = sp.Piecewise(*((trace, Eq(n, order)) for order, trace in enumerate(traces, 1)))


def _bulk_claim(kind: str, law: Law, length: int) -> Claim:
    """Moments in units of κ: the shape of the bulk is the same for all weights."""

    def rivals() -> dict[str, Any]:
        unscaled = finite_moments.right * (T * kappa) ** n
        return {
            "unlimited vocabulary: δ/1000 for δ": finite_moments.rival(delta=delta / 1000),
            "unlimited samples: γ/1000 for γ": finite_moments.rival(gamma=gamma / 1000),
            **({"scale 1/T for κ": finite_moments.rival(right=unscaled)} if law is strict_weights else {}),
        }

    return Claim(
        f"moments-{kind}-weights",
        finite_moments,
        _experiment(
            f"moments-{kind}",
            law,
            length,
            _BULK,
            standard={32: 3000, 48: 1500, 64: 5000, 128: 300, 256: 600},
            quick={32: 700, 48: 300, 64: 1100, 128: 60, 256: 150},
        ),
        Limit(rate=1, next=2, resolution=0.03, relative=True),
        rivals,
        reads={moment: _MEASURED, T: Integer(length)},
        given=(crossing_weight, *((strict_noise, law) if law is strict_weights else (law,))),
        points=_ORDERS,
    )


def _contrast_claim(experiment: Experiment, length: int, resolution: float) -> Claim:
    """The fourth moment, freed from the fluctuation of the lower ones."""

    def rivals() -> dict[str, Any]:
        extra = contrast.right.coeff(crossing, 2) * crossing**2
        power = {"one factor γ: δγ for δγ²": contrast.rival(right=contrast.right - extra + extra / gamma)}
        unsquared = {"Σw⁴/κ² not squared": contrast.rival(right=contrast.right - extra + extra / crossing)}
        return {"no correction": contrast.rival(right=contrast.right - extra), **(power if length == 1 else unsquared)}

    return Claim(
        f"crossing-walk-length-{length}",
        contrast,
        experiment,
        Limit(rate=1, next=2, resolution=resolution),
        rivals,
        reads={contrast_value: contrast_of(traces), T: Integer(length)},
        given=(crossing_weight, mean_weights),
    )


_ONE_TOKEN = _experiment(
    "crossing-walk-1",
    mean_weights,
    1,
    (1, 2),
    standard={32: 8000, 48: 12000, 64: 3000, 128: 1000, 256: 4000},
    quick={32: 900, 48: 1600, 64: 200, 128: 60, 256: 560},
)
_TWO_TOKENS = _experiment(
    "crossing-walk-2",
    mean_weights,
    2,
    (1, 2),
    standard={32: 8000, 48: 3000, 64: 16000, 128: 1000, 256: 4500},
    quick={32: 1000, 48: 300, 64: 2200, 128: 60, 256: 600},
)
# Few tokens and few samples for the dimension: repeats outweigh the Gaussian fluctuations already at small sizes.
_REPEATS = _experiment(
    "repeated-tokens",
    mean_weights,
    1,
    (4, 4),
    standard={32: 10000, 64: 16000, 128: 12000, 256: 3000, 512: 3500},
    quick={32: 1500, 64: 2000, 128: 1500, 256: 400, 512: 400},
)

claims = (
    _bulk_claim("uniform", mean_weights, 16),
    _bulk_claim("causal", strict_weights, 16),
    _contrast_claim(_ONE_TOKEN, 1, 1.0),
    _contrast_claim(_TWO_TOKENS, 2, 0.5),
    Claim(
        "second-moment-decay",
        decay_law,
        _REPEATS,
        Exponent("standard deviation", next=1, resolution=0.3),
        lambda: {"Gaussian fluctuations, 1/d": decay_law.rival(right=Integer(1))},
    ),
)
