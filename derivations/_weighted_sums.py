"""Sums over softmax weights: Gaussian averages (pairings), score averages (a Laplace integral), limits.

A draw has tokens i with scores s_i and weights a_i = exp(s_i)/Σ exp(s_j); scores are N(shift, 1) on informative tokens
and N(0, 1) on the others. Everything that chapters say of such a draw is a polynomial in the sums Σ a^k s^l.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import product
from typing import Any

import sympy as sp

Factor = tuple[int, int, bool]  # (power of the weight, power of the score, informative tokens only)


class WeightSum(sp.Function):
    """Σ_i a_i^k s_i^l over all tokens, or over the informative ones where the third argument is 1."""

    nargs = 3

    @classmethod
    def eval(cls, weight_power: Any, score_power: Any, informative: Any) -> Any:
        if (weight_power, score_power, informative) == (1, 0, 0):
            return sp.S.One  # softmax weights sum to 1
        return None

    def _eval_is_real(self) -> bool:
        return True

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        weight, score, informative = (int(argument) for argument in self.args)
        body = "a_i" + (f"^{{{weight}}}" if weight > 1 else "")
        body += ("s_i" + (f"^{{{score}}}" if score > 1 else "")) if score else ""
        index = r"i \le R" if informative else "i"
        text = rf"\left(\textstyle\sum_{{{index}}} {body}\right)"
        return text if exp is None else f"{text}^{{{exp}}}"

    def _sympystr(self, printer: Any) -> str:
        weight, score, informative = (int(argument) for argument in self.args)
        return f"sum{'_I' if informative else ''}[a^{weight}{f' s^{score}' if score else ''}]"


class ScoreMean(sp.Function):
    """Expectation of a polynomial in weight sums over the scores of one draw.

    Arguments: the polynomial, the shift θρ of the informative scores, the numbers of informative and of nuisance
    tokens. Its derivative in the shift is again a score mean (differentiate under the expectation, with
    ∂a_i = a_i(1_i − W) and ∂s_i = 1_i, 1_i the indicator of informative tokens).
    """

    nargs = 4
    is_number = False  # SymPy itself cannot evaluate it, so it must not be asked to compare
    implementation = "numerics.special:score_mean"

    def fdiff(self, argindex: int = 1) -> Any:
        polynomial, shift, informative, nuisance = self.args
        if argindex != 2:
            raise sp.ArgumentIndexError(self, argindex)
        names = {node: sp.Dummy() for node in sorted(polynomial.atoms(WeightSum), key=sp.default_sort_key)}
        named = polynomial.xreplace(names)
        slope = sum(sp.diff(named, name) * shift_derivative(node) for node, name in names.items())
        restored = (sp.S.Zero + slope).xreplace({name: node for node, name in names.items()})
        return ScoreMean(sp.expand(restored), shift, informative, nuisance)

    def _eval_derivative(self, symbol: Any) -> Any:
        polynomial, shift, informative, nuisance = self.args
        if informative.has(symbol) or nuisance.has(symbol):
            return sp.Derivative(self, symbol, evaluate=False)
        explicit = sum(
            (sp.diff(coefficient, symbol) * sp.Mul(*(WeightSum(k, power, int(only)) for k, power, only in factors)))
            for coefficient, factors in monomials(polynomial)
        )
        result = self.fdiff(2) * sp.diff(shift, symbol)
        return result + (ScoreMean(explicit, shift, informative, nuisance) if explicit != 0 else 0)

    def numeric(self) -> tuple[Any, tuple[Any, ...]]:
        """What the implementation needs: the factors of each term, and the expressions that become arrays."""
        polynomial, *rest = self.args
        terms = tuple(monomials(polynomial))
        return tuple(factors for _, factors in terms), (*(coefficient for coefficient, _ in terms), *rest)

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        terms = []
        for coefficient, factors in monomials(self.args[0]):
            sums = sp.Mul(*(WeightSum(weight, score, int(only)) for weight, score, only in factors))
            sign = "-" if coefficient.could_extract_minus_sign() else "+"
            size = abs(coefficient) if coefficient.is_Integer else coefficient * (1 if sign == "+" else -1)
            front = (
                ""
                if size == 1
                else printer._print(size)
                if size.is_Integer
                else rf"\left({printer._print(size)}\right)"
            )
            parts = sums.as_powers_dict().items() if sums is not sp.S.One else ()
            body = " ".join(part._latex(printer, None if power == 1 else str(power)) for part, power in parts)
            terms.append((sign, f"{front} {body}".strip() or "1"))
        terms.sort(key=lambda term: term[0] == "-")
        text = " ".join(f"{sign} {body}" for sign, body in terms).removeprefix("+ ")
        text = rf"\mathbf{{E}}\left[{text}\right]"
        return text if exp is None else f"{text}^{{{exp}}}"

    def _sympystr(self, printer: Any) -> str:
        return f"E[{printer._print(self.args[0])}]"


def shift_derivative(node: Any) -> Any:
    """The derivative of a weight sum when every informative score moves by the same amount."""
    weight, score, _ = (int(argument) for argument in node.args)
    moved = weight * (WeightSum(weight, score, 1) - WeightSum(1, 0, 1) * node)
    return moved + (score * WeightSum(weight, score - 1, 1) if score else 0)


_z = sp.Symbol("z", real=True)


def _gaussian(integrand: Any) -> Any:
    return sp.Integral(integrand * sp.exp(-(_z**2) / 2) / sp.sqrt(2 * sp.pi), (_z, -sp.oo, sp.oo))


@cache
def _tilted_density(s: Any, shift: Any, reach: int, prec: int) -> tuple[tuple[Any, Any, Any], ...]:
    """(u, e^u, e^{−s e^u} φ(z) h) at the nodes of a trapezoidal rule, u = shift + z, right to `prec` bits.

    The integrand is analytic and bounded for |Im z| < π/2, so the error of the rule is exp(−π²/h + π²/8).
    """
    digits = int(0.302 * prec) + 15
    decay = 0.7 * (prec + 40)  # the error sought is e^{−decay}
    step = (sp.Rational(9) / math.ceil(decay)).n(digits)
    count = math.ceil((math.sqrt(2 * decay) + reach) / float(step))
    shift, s = sp.N(shift, digits), sp.N(s, digits)
    factor, exponential = sp.exp(step), sp.exp(shift - count * step)
    nodes = []
    for index in range(-count, count + 1):
        z = index * step
        nodes.append((shift + z, exponential, step * sp.exp(-(z**2) / 2 - s * exponential)))
        exponential *= factor
    return tuple(nodes)


def _tilted_sums(score: int, weight: int, s: Any, shift: Any, prec: int) -> tuple[Any, Any]:
    """Σ u^l e^{ku} over the tilted density, and the sum of the density."""
    nodes = _tilted_density(s, shift, weight + math.ceil(abs(float(shift))), prec)
    return sum(u**score * power**weight * density for u, power, density in nodes), sum(node[2] for node in nodes)


class LogLaplace(sp.Function):
    """ℓ(s, shift) = log E exp(−s e^u), u ~ N(shift, 1): the log-Laplace transform of one token's exponential score."""

    nargs = 2

    def fdiff(self, argindex: int = 1) -> Any:
        s, shift = self.args
        tilted = -TiltedMoment(0, 1, s, shift)
        return tilted if argindex == 1 else s * tilted

    def as_integral(self) -> Any:
        """The definition, a Gaussian integral."""
        s, shift = self.args
        return sp.log(_gaussian(sp.exp(-s * sp.exp(shift + _z))))

    def _eval_evalf(self, prec: int) -> Any:
        if self.free_symbols:
            return None
        s, shift = self.args
        _, norm = _tilted_sums(0, 0, s, shift, prec)
        return sp.log(norm / sp.sqrt(2 * sp.pi)).evalf(int(0.302 * prec) + 2)

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        s, shift = self.args
        text = rf"\ell_{{{printer._print(shift)}}}\left({printer._print(s)}\right)"
        return text if exp is None else f"{text}^{{{exp}}}"


class TiltedMoment(sp.Function):
    """τ_lk(s, shift) = E[u^l e^{ku} exp(−s e^u)] / E exp(−s e^u), u ~ N(shift, 1): a token's moment under the tilt."""

    nargs = 4

    def fdiff(self, argindex: int = 1) -> Any:
        score, weight, s, shift = self.args
        covariance = TiltedMoment(score, weight + 1, s, shift) - self * TiltedMoment(0, 1, s, shift)
        if argindex == 3:
            return -covariance
        if argindex == 4:
            lower = score * TiltedMoment(score - 1, weight, s, shift) if score > 0 else sp.S.Zero
            return lower + weight * self - s * covariance
        raise sp.ArgumentIndexError(self, argindex)

    def as_integral(self) -> Any:
        """The definition, a ratio of Gaussian integrals."""
        score, weight, s, shift = self.args
        tilt = sp.exp(-s * sp.exp(shift + _z))
        u = shift + _z
        return _gaussian(u**score * sp.exp(weight * u) * tilt) / _gaussian(tilt)

    def _eval_evalf(self, prec: int) -> Any:
        if self.free_symbols:
            return None
        score, weight, s, shift = self.args
        top, bottom = _tilted_sums(int(score), int(weight), s, shift, prec)
        return (top / bottom).evalf(int(0.302 * prec) + 2)

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        score, weight, s, shift = (printer._print(argument) for argument in self.args)
        text = rf"\tau^{{{score}{weight}}}_{{{shift}}}\left({s}\right)"
        return text if exp is None else rf"\left({text}\right)^{{{exp}}}"


def pairings(items: Sequence[int]) -> Iterator[list[tuple[int, int]]]:
    """All partial pairings of the items: the terms of Isserlis' theorem for variables that have a mean."""
    if not items:
        yield []
        return
    first, rest = items[0], items[1:]
    yield from pairings(rest)
    for index, partner in enumerate(rest):
        for others in pairings([*rest[:index], *rest[index + 1 :]]):
            yield [(first, partner), *others]


class _Classes:
    """Union–find: which indices a pairing identifies."""

    def __init__(self, size: int) -> None:
        self.parent = list(range(size))

    def find(self, index: int) -> int:
        while self.parent[index] != index:
            index = self.parent[index]
        return index

    def join(self, left: int, right: int) -> None:
        self.parent[self.find(left)] = self.find(right)

    def all(self) -> set[int]:
        return {self.find(index) for index in range(len(self.parent))}


Vector = Sequence[
    tuple[int, tuple[Factor, ...], tuple[int, int]]
]  # Σ integer · (product of sums) · a^k s^l, indexed by tokens
_Terms = Counter[tuple[int, int, tuple[Factor, ...]]]  # (power of the dimension, power of the signal, sums) -> count


def gram_chain(left: Vector, grams: int, right: Vector, orthogonal: Any, signal: Any, fixed: Iterable[int] = ()) -> Any:
    """E[leftᵀ K B K … K right | scores], with `grams` factors K = Y Yᵀ and B = diag(a) − a aᵀ between them.

    Row i of Y is `signal`·e on informative tokens plus a standard Gaussian vector in `orthogonal` dimensions (e a
    unit vector). The columns of the K's listed in `fixed` are restricted to the direction e. Isserlis: each Gaussian
    pair identifies its tokens and its columns; a free column counts the dimensions, a fixed one counts 1.
    """
    total: _Terms = Counter()
    for (count, sums, first), (other_count, other_sums, last) in product(left, right):
        for pattern in product((False, True), repeat=grams - 1):
            rows, ends, sign = [first], [], 1
            for column in range(grams):
                ends.append((len(rows) - 1, column))
                rows.append((1, 0) if column < grams - 1 else last)
                ends.append((len(rows) - 1, column))
                if column < grams - 1 and pattern[column]:  # the part −a aᵀ of B: two tokens instead of one
                    rows.append((1, 0))
                    sign = -sign
            for (free, means, factors), ways in _pairing_sum(rows, ends, grams, tuple(fixed)).items():
                total[free, means, tuple(sorted((*factors, *sums, *other_sums)))] += sign * count * other_count * ways
    return _expression(total, orthogonal, signal)


def _expression(terms: _Terms, orthogonal: Any, signal: Any) -> Any:
    """The polynomial, collected by powers of the dimension and of the signal."""
    groups: dict[tuple[int, int], list[Any]] = {}
    for (free, means, factors), count in sorted(terms.items()):
        if count:
            sums = (WeightSum(weight, score, int(informative)) for weight, score, informative in factors)
            groups.setdefault((free, means), []).append(count * sp.Mul(*sums))
    return sp.Add(*(orthogonal**free * signal**means * sp.Add(*parts) for (free, means), parts in groups.items()))


def _pairing_sum(
    rows: list[tuple[int, int]], ends: list[tuple[int, int]], columns: int, fixed: tuple[int, ...]
) -> _Terms:
    total: _Terms = Counter()
    for pairs in pairings(range(len(ends))):
        tokens, dimensions = _Classes(len(rows)), _Classes(columns)
        for first, second in pairs:
            tokens.join(ends[first][0], ends[second][0])
            dimensions.join(ends[first][1], ends[second][1])
        paired = {index for pair in pairs for index in pair}
        means = [end for index, end in enumerate(ends) if index not in paired]
        informative = {tokens.find(row) for row, _ in means}
        restricted = {dimensions.find(column) for column in (*fixed, *(column for _, column in means))}
        factors = []
        for token in tokens.all():
            powers = [row for index, row in enumerate(rows) if tokens.find(index) == token]
            factor = (sum(weight for weight, _ in powers), sum(score for _, score in powers), token in informative)
            if factor != (1, 0, False):  # weights sum to 1
                factors.append(factor)
        total[len(dimensions.all() - restricted), len(means), tuple(sorted(factors))] += 1
    return total


def monomials(expression: Any) -> Iterator[tuple[Any, tuple[Factor, ...]]]:
    """Split a polynomial in weight sums into (coefficient, factors); coefficients are left as they are written."""
    for factors, coefficients in sorted(_split(expression).items()):
        yield sp.Add(*coefficients), factors


def _split(expression: Any) -> dict[tuple[Factor, ...], list[Any]]:
    if not expression.has(WeightSum):
        return {(): [expression]}
    if isinstance(expression, WeightSum):
        weight, score, informative = expression.args
        return {((int(weight), int(score), bool(informative)),): [sp.S.One]}
    result: dict[tuple[Factor, ...], list[Any]] = {}
    if expression.is_Add:
        for part in map(_split, expression.args):
            for factors, coefficients in part.items():
                result.setdefault(factors, []).extend(coefficients)
        return result
    if expression.is_Pow and expression.exp.is_Integer and expression.exp > 0:
        parts = [_split(expression.base)] * int(expression.exp)
    elif expression.is_Mul:
        parts = [_split(part) for part in expression.args]
    else:
        raise ValueError(f"{expression} is no polynomial in weight sums")
    for chosen in product(*(part.items() for part in parts)):
        factors = tuple(sorted(factor for key, _ in chosen for factor in key))
        coefficient = sp.Mul(*(sp.Add(*coefficients) for _, coefficients in chosen))
        result.setdefault(factors, []).append(coefficient)
    return result


def _partitions(factors: Sequence[Factor]) -> Iterator[list[list[Factor]]]:
    if not factors:
        yield []
        return
    first, rest = factors[0], factors[1:]
    for blocks in _partitions(rest):
        yield [[first], *blocks]
        for index, block in enumerate(blocks):
            yield [*blocks[:index], [first, *block], *blocks[index + 1 :]]


Coincidence = tuple[tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]]


@cache
def coincidences(factors: tuple[Factor, ...]) -> dict[Coincidence, int]:
    """How a product of sums over tokens splits into sums over distinct tokens.

    Each key is a pair (informative tokens, nuisance tokens) of tuples of powers (score, weight), one entry a distinct
    token; the value says how often it occurs.
    """
    counts: Counter[Coincidence] = Counter()
    for blocks in _partitions(factors):
        powers = [(sum(f[1] for f in block), sum(f[0] for f in block)) for block in blocks]
        restricted = [any(f[2] for f in block) for block in blocks]
        for informative in product((True, False), repeat=len(blocks)):
            if any(need and not chosen for need, chosen in zip(restricted, informative, strict=True)):
                continue
            split = [
                [p for p, chosen in zip(powers, informative, strict=True) if chosen is kind] for kind in (True, False)
            ]
            counts[tuple(sorted(split[0])), tuple(sorted(split[1]))] += 1
    return dict(counts)


def coincidence_sum(
    factors: tuple[Factor, ...],
    signal: Callable[[int, int], Any],
    noise: Callable[[int, int], Any],
    informative: Any,
    nuisance: Any,
) -> Any:
    """A product of sums over tokens, in expectation over independent tokens: pure arithmetic, for any kind of number.

    `signal(l, k)` and `noise(l, k)` are the moments of one informative and one nuisance token.
    """
    total: Any = 0
    for (signal_tokens, noise_tokens), count in coincidences(factors).items():
        term: Any = count * falling(informative, len(signal_tokens)) * falling(nuisance, len(noise_tokens))
        for powers in signal_tokens:
            term = term * signal(*powers)
        for powers in noise_tokens:
            term = term * noise(*powers)
        total = total + term
    return total


def falling(count: Any, length: int) -> Any:
    """count (count − 1) … : the number of ordered choices of `length` distinct tokens."""
    result: Any = 1
    for index in range(length):
        result = result * (count - index)
    return result


def laplace_integrand(factors: tuple[Factor, ...], s: Any, shift: Any, informative: Any, nuisance: Any) -> Any:
    """The integrand over s ∈ (0, ∞) whose integral is the score mean of a product of weight sums.

    Gamma integral S^{−K} = ∫ s^{K−1} e^{−sS} ds/Γ(K) for S = Σ e^{s_i}, independence of the tokens under e^{−sS},
    and the count of ways in which the tokens of the sums coincide.
    """
    degree = sum(factor[0] for factor in factors)
    tilted = coincidence_sum(
        factors,
        lambda score, weight: TiltedMoment(score, weight, s, shift),
        lambda score, weight: TiltedMoment(score, weight, s, sp.S.Zero),
        informative,
        nuisance,
    )
    joint = sp.exp(informative * LogLaplace(s, shift) + nuisance * LogLaplace(s, sp.S.Zero))
    return s ** (degree - 1) / sp.factorial(degree - 1) * joint * tilted


def laplace_mean(mean: ScoreMean, s: Any) -> Any:
    """A score mean as one-dimensional Laplace integrals over s."""
    polynomial, shift, informative, nuisance = mean.args
    total = sp.S.Zero
    for coefficient, factors in monomials(polynomial):
        if not factors:
            total += coefficient
            continue
        total += coefficient * sp.Integral(laplace_integrand(factors, s, shift, informative, nuisance), (s, 0, sp.oo))
    return total


@cache
def shifted_moment(power: int, centre: Any) -> Any:
    """E u^l for u ~ N(centre, 1), by Stein's recursion E u^{l+1} = centre E u^l + l E u^{l−1}."""
    if power == 0:
        return sp.S.One
    lower = (power - 1) * shifted_moment(power - 2, centre) if power > 1 else 0
    return sp.expand(centre * shifted_moment(power - 1, centre) + lower)


def exponential_moment(score_power: int, weight_power: Any, shift: Any) -> Any:
    """E[u^l e^{ku}] for u ~ N(shift, 1): the tilt e^{ku} moves the mean to shift + k."""
    return sp.exp(weight_power * shift + sp.Rational(1, 2) * weight_power**2) * shifted_moment(
        score_power, shift + weight_power
    )


def class_mean(factor: Factor, shift: Any, fraction: Any) -> Any:
    """lim (1/L) Σ e^{k s} s^l as L → ∞ with a fraction of informative tokens (law of large numbers)."""
    weight, score, restricted = factor
    informative = fraction * exponential_moment(score, weight, shift)
    return informative if restricted else informative + (1 - fraction) * exponential_moment(score, weight, sp.S.Zero)


def limit_share(factor: Factor, shift: Any, fraction: Any, mass: Any) -> Any:
    """lim L^{k−1} Σ a^k s^l, the class mean over the k-th power of the normaliser, written with the attention mass.

    With E e^{ku} = e^{k·shift + k²/2}: the informative part is e^{k(k−1)/2} mass^k/fraction^{k−1} times E u^l,
    u ~ N(shift + k, 1), and the nuisance part the same with 1 − mass, 1 − fraction and shift 0.
    """
    weight, score, restricted = factor

    def part(share: Any, proportion: Any, centre: Any) -> Any:
        moment = shifted_moment(score, centre + weight)
        return sp.exp(sp.Rational(weight * (weight - 1), 2)) * share**weight / proportion ** (weight - 1) * moment

    informative = part(mass, fraction, shift)
    return informative if restricted else informative + part(1 - mass, 1 - fraction, sp.S.Zero)


def large_size_limit(expression: Any, share: Callable[[Factor], Any], orthogonal: Any, ratio: Any) -> Any:
    """L → ∞ with dimension/L → ratio: Σ a^k s^l → L^{1−k} share(k, l), dimensions → ratio·L; score means drop out.

    Terms of order L^0 are kept; lower ones vanish. Raises ValueError if a term diverges.
    """
    expression = expression.replace(lambda node: isinstance(node, ScoreMean), lambda node: node.args[0])
    total = sp.S.Zero
    for coefficient, factors in monomials(expression):
        excess = sum(factor[0] - 1 for factor in factors)
        (degree,), _ = max(sp.Poly(coefficient, orthogonal).terms())
        if degree > excess:
            raise ValueError(
                f"the term {coefficient}·{factors} grows like L^{degree - excess}; the limit does not exist"
            )
        if degree == excess:
            leading = sp.Poly(coefficient, orthogonal).LC() * ratio**degree
            total += leading * sp.Mul(*(share(factor) for factor in factors))
    return total


def one_token(expression: Any, score: Any) -> Any:
    """The expression for a single token, which is informative: its weight is 1 and every sum is a power of its score.

    A score mean becomes the mean over that score, which is N(shift, 1).
    """

    def mean(node: Any) -> Any:
        polynomial, shift = node.args[:2]
        plain = polynomial.replace(lambda part: isinstance(part, WeightSum), lambda part: score ** part.args[1])
        plain = sp.Poly(plain, score)
        return sum(coefficient * exponential_moment(power, 0, shift) for (power,), coefficient in plain.terms())

    return expression.replace(lambda node: isinstance(node, ScoreMean), mean)


def given_weights(expression: Any, weights: Sequence[Any], scores: Sequence[Any], informative: int) -> Any:
    """The expression for known weights and scores, the first `informative` tokens being informative; no mean."""

    def value(node: Any) -> Any:
        weight, score, only = (int(argument) for argument in node.args)
        count = informative if only else len(weights)
        return sp.Add(*(weights[index] ** weight * scores[index] ** score for index in range(count)))

    plain = expression.replace(lambda node: isinstance(node, ScoreMean), lambda node: node.args[0])
    return plain.replace(lambda node: isinstance(node, WeightSum), value)


def gaussian_mean(polynomial: Any, variables: Sequence[Any]) -> Any:
    """The mean of a polynomial in independent standard Gaussian variables."""

    def moment(power: int) -> Any:
        return sp.factorial2(power - 1) if power % 2 == 0 else sp.S.Zero

    return sp.Add(*(value * sp.Mul(*map(moment, powers)) for powers, value in sp.Poly(polynomial, *variables).terms()))
