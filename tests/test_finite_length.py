"""Counting closed walks: the machinery beyond order four, exact special cases, and the observables of the claims.

The laws' own evidence is in `test_laws.py`; here the counting is held to Poisson counts, Bell and Catalan numbers.
"""

from __future__ import annotations

from itertools import permutations, product
from typing import Any

import numpy as np
import pytest
import sympy as sp
from sympy import Rational
from sympy.functions.combinatorial.numbers import stirling

from derivations import finite_length as chapter
from verify.samplers import load_sampler


def touchard(order: int, rate: Any) -> Any:
    """The moment of a Poisson count of mean `rate`."""
    return sum(stirling(order, index) * rate**index for index in range(order + 1))


def total_weight(order: int, power_sums: Any) -> Any:
    """The sum over the surviving walks of an order at given power sums of the weights."""
    total = sum(weight for _, _, weight in chapter._surviving_walks(order))
    symbols = {
        symbol: power_sums(int(symbol.name[2:])) for symbol in total.free_symbols if symbol.name.startswith("p_")
    }
    return sp.expand(total.subs(symbols))


# -------------------------------------------------------------------------------------------------------- counting


def test_partitions() -> None:
    for count, bell, catalan in ((1, 1, 1), (2, 2, 2), (3, 5, 5), (4, 15, 14), (5, 52, 42)):
        partitions = chapter._partitions(count)
        assert len(set(partitions)) == bell
        assert sum(not chapter._crosses(blocks) for blocks in partitions) == catalan


@pytest.mark.parametrize("exponents", [(2,), (2, 2), (4, 2), (2, 2, 2), (2, 4, 2, 2)])
def test_distinct_positions(exponents: tuple[int, ...]) -> None:
    """Möbius inversion against the sum over tuples of distinct positions."""
    weights = (Rational(1), Rational(2, 3), Rational(-1, 2), Rational(3), Rational(1, 5))
    direct = sum(
        sp.Mul(*(weight**exponent for weight, exponent in zip(chosen, exponents, strict=True)))
        for chosen in permutations(weights, len(exponents))
    )
    formula = chapter._distinct_slots(exponents)
    values = {symbol: sum(weight ** int(symbol.name[2:]) for weight in weights) for symbol in formula.free_symbols}
    assert formula.subs(values) == direct


@pytest.mark.parametrize("order", [1, 2, 3, 4, 5])
def test_one_position_counts_poisson_tokens(order: int) -> None:
    """T = 1: M is diagonal, its entries c times Poisson counts of mean 1/c, at every order."""
    c = chapter.aspect
    assert total_weight(order, lambda power: 1) == sp.expand(c**order * touchard(order, 1 / c))


@pytest.mark.parametrize("order", [1, 2, 3, 4, 5])
def test_many_positions_give_marchenko_pastur(order: int) -> None:
    """All higher power sums negligible: the Narayana polynomial, at every order."""
    narayana = sum(
        sp.binomial(order, index) * sp.binomial(order, index + 1) * chapter.aspect**index for index in range(order)
    )
    assert total_weight(order, lambda power: int(power == 2)) == sp.expand(narayana / order)


def test_only_the_crossing_walk_feels_the_weights() -> None:
    """Up to order four the power sums enter through q² in one walk alone."""
    total = sp.expand(sum(weight for _, _, weight in chapter._surviving_walks(4)))
    assert {symbol.name for symbol in total.free_symbols} == {"c", "p_2", "p_4"}
    crossed = [tokens for samples, tokens, _ in chapter._surviving_walks(4) if chapter._crosses(samples)]
    assert crossed == [((0, 1, 2, 3),)]


def test_free_cumulants_invert_the_moments() -> None:
    values = (Rational(1, 3), 2, Rational(-5, 7), 11)
    cumulants = chapter._free_cumulants(values)
    assert tuple(chapter._cumulant_sum(cumulants, order) for order in (1, 2, 3, 4)) == values


def test_second_moment_at_finite_size() -> None:
    """E tr (Σ p pᵀ)² by enumeration of all tokens, T = 2, N = 2, V = 3, against exact pair counting."""
    weights, samples, vocabulary = (Rational(2), Rational(1)), 2, 3
    total = Rational(0)
    for tokens in product(range(vocabulary), repeat=2 * samples):
        columns = [sp.zeros(vocabulary, 1) for _ in range(samples)]
        for place, token in enumerate(tokens):
            columns[place // 2][token] += weights[place % 2]
        total += sum(columns[a].dot(columns[b]) ** 2 for a in range(samples) for b in range(samples))
    mean = total / vocabulary ** (2 * samples)
    kappa, fourth = 5, 17
    repeat = 2 * weights[0] * weights[1]  # adds to ‖p‖² if both positions hold the same token, probability 1/V
    own = (kappa**2 * (1 - Rational(1, vocabulary))) + (kappa + repeat) ** 2 / vocabulary
    inner = [a * b for a in weights for b in weights]
    pairs = sum(x**2 for x in inner) / Rational(vocabulary) + sum(
        inner[x] * inner[y] * (Rational(1, vocabulary**2)) for x in range(4) for y in range(4) if x != y
    )
    assert mean == samples * own + samples * (samples - 1) * pairs
    assert fourth == sum(weight**4 for weight in weights)


# ---------------------------------------------------------------------------------------------------- the contrast


def test_the_contrast_is_orthogonal_to_lower_fluctuations() -> None:
    """Under the Poisson law the combination of powers has no covariance with Charlier polynomials of degree 2 and 3."""
    count, c = sp.Symbol("count"), chapter.aspect
    third, second = chapter._charlier_contrast()
    rate = 1 / c
    combination = (c * count) ** 4 + third * (c * count) ** 3 + second * (c * count) ** 2

    def expectation(expression: Any) -> Any:
        polynomial = sp.Poly(sp.expand(expression), count)
        return sum(coefficient * touchard(power, rate) for (power,), coefficient in polynomial.terms())

    for degree in (2, 3):
        charlier = sum(
            sp.binomial(degree, index) * (-rate) ** (degree - index) * sp.expand_func(sp.ff(count, index))
            for index in range(degree + 1)
        )
        assert sp.simplify(expectation(combination * charlier)) == 0
    quartic = sum(
        sp.binomial(4, index) * (-rate) ** (4 - index) * sp.expand_func(sp.ff(count, index)) for index in range(5)
    )
    assert sp.simplify(expectation(combination * quartic)) != 0


def test_the_contrast_is_quieter_than_the_moment() -> None:
    """What it is for: it scatters several times less than the fourth moment, at the same correction."""
    draw = load_sampler("token_traces")
    options = {"length": 1, "weights": {"1": 1.0}}
    rows = [draw(64, np.random.default_rng([1, k]), {"delta": 1.0, "gamma": 2.0}, options) for k in range(60)]
    moments = np.array([[row[f"trace_{order}"] for order in (1, 2, 3, 4)] for row in rows])
    symbols = sp.symbols("m_1:5")
    contrast = sp.lambdify(symbols, chapter.contrast_of(symbols).subs({chapter.delta: 1, chapter.gamma: 2}))
    assert np.std(contrast(*moments.T)) < np.std(moments[:, 3]) / 4


# ---------------------------------------------------------------------------------------------------- observables


def test_traces_are_the_moments_by_name() -> None:
    weights = {"1": 0.5, "2": 0.3, "3": 0.2}
    parameters = {"delta": 0.5, "gamma": 0.25}
    separate = load_sampler("token_traces")(32, np.random.default_rng(3), parameters, {"length": 3, "weights": weights})
    together = load_sampler("token_moments")(
        32, np.random.default_rng(3), parameters, {"length": 3, "weights": tuple(weights.values())}
    )
    assert set(separate) == {"trace_1", "trace_2", "trace_3", "trace_4", "delta", "gamma"}
    np.testing.assert_array_equal([separate[f"trace_{order}"] for order in (1, 2, 3, 4)], together["moments"])
    assert [separate["delta"], separate["gamma"]] == [together["delta"], together["gamma"]]


def test_experiments_pool_with_weights_of_the_laws() -> None:
    for claim in chapter.claims:
        weights = claim.experiment.options["weights"]
        assert len(weights) == claim.experiment.options["length"]
        assert list(weights) == [str(position) for position in range(1, len(weights) + 1)]
        assert sum(weights.values()) == 1
