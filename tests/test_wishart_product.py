"""The product law in floating point: against 50-digit roots and integrals, at edges and ties, and with bad input.

Reference values come from `spectral_reference`, which reads nothing but the law's cubic.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any

import mpmath
import numpy as np
import pytest
from bad_values import negative, no_real_number, outside
from hypothesis import given, settings
from hypothesis import strategies as st
from spectral_reference import DIGITS, coefficients, density, distribution, edges, integral, stieltjes, transform

from numerics.compile import fast_available
from numerics.wishart_product import WishartProduct

RATIOS = (1e-3, 0.03, 0.25, 0.5, 1 - 1e-9, 1.0, 1 + 1e-9, 2.0, 40.0, 1e3)
PAIRS = [*combinations_with_replacement(RATIOS, 2), (0.5, 1e-12), (1e-12, 2.0), (0.5, 0.0), (0.0, 1.0), (2.0, 0.0)]
POSITIONS = (1e-6, 0.01, 0.3, 0.9, 1 - 1e-6)  # inside the support, as fractions of its width
HARD = [(1.0, 0.25), (0.25, 1.0), (1.0, 1.0), (2.0, 2.0), (1e3, 1e3), (1.0, 0.0), (0.0, 1.0)]
FEW = [
    (0.5, 0.25),
    (1.0, 0.25),
    (1.0, 1.0),
    (1 + 1e-9, 2e-3),
    (2.0, 2.0),
    (2.0, 0.5),
    (1e3, 1e-3),
    (1e-3, 1e-3),
    (0.0, 2.0),
]
TYPICAL = st.floats(1e-3, 1e3)
BACKENDS = [
    "numpy",
    pytest.param("fast", marks=pytest.mark.skipif(not fast_available(), reason="heyoka is not installed")),
]


def inside(delta: float, gamma: float, positions: Any = POSITIONS) -> list[float]:
    """Doubles strictly between the edges."""
    low, high = edges(delta, gamma)
    return [x for x in (float(low + (high - low) * position) for position in positions) if low < x < high]


def tolerance(x: float, value: Any, slope: Any) -> float:
    """The stated accuracy of a density."""
    return float(1e-12 * max(1, value) + 4 * np.spacing(x) * abs(slope))


# Against 50 digits ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", BACKENDS)
def test_density(backend: str) -> None:
    for delta, gamma in PAIRS:
        places = inside(delta, gamma)
        for x, value in zip(places, WishartProduct(delta, gamma).pdf(places, backend), strict=True):
            exact, slope = density(x, delta, gamma)
            assert abs(value - exact) <= tolerance(x, exact, slope), (delta, gamma, x)


@pytest.mark.parametrize(("delta", "gamma"), PAIRS)
def test_support(delta: float, gamma: float) -> None:
    for edge, exact in zip(WishartProduct(delta, gamma).support(), edges(delta, gamma), strict=True):
        assert abs(edge - exact) <= 2.3e-16 * exact


def test_support_near_a_double_tie() -> None:
    """The lower edge keeps its digits where two roots of the edge equation nearly meet."""
    for delta, gamma in ((1 + 2**-40, 1 + 2**-41), (1 - 2**-30, 1 - 2**-31), (3 + 2**-40, 3.0), (1 + 2**-52, 1.0)):
        low, exact = WishartProduct(delta, gamma).support()[0], _exact_low(delta, gamma)
        assert low > 0
        assert abs(low - exact) <= 1e-14 * exact


def _exact_low(delta: float, gamma: float) -> Any:
    """The lower edge as a zero of the discriminant: the smallest one that is not negative."""
    with mpmath.workdps(200):
        d, g = mpmath.mpf(delta), mpmath.mpf(gamma)
        slope = [2 * d * g, d + g + d * g, 0, -1]  # of the map in m, times m²
        m = max(root.real for root in mpmath.polyroots(slope, maxsteps=5000, extraprec=4000) if root.real < 0)
        return (1 + m) * (1 + d * m) * (1 + g * m) / m


@pytest.mark.parametrize(("delta", "gamma"), FEW)
def test_mass_mean_distribution_and_quantiles(delta: float, gamma: float) -> None:
    law = WishartProduct(delta, gamma)
    low, high = edges(delta, gamma)
    assert integral(0, low, high, delta, gamma) == pytest.approx(1 - law.atom, abs=1e-12)
    assert integral(1, low, high, delta, gamma) == pytest.approx(law.mean(), rel=1e-12)
    for x in inside(delta, gamma, (1e-15, 1e-4, 0.4, 1 - 1e-6)):
        assert law.cdf(x) == pytest.approx(float(distribution(x, delta, gamma)), abs=1e-13)
    for part in (1e-6, 0.5, 0.999):
        q = law.atom + (1 - law.atom) * part
        x = law.ppf(q)
        error = abs(distribution(x, delta, gamma) - q) / density(x, delta, gamma)[0]
        assert error <= 1e-12 * max(1, x)


@pytest.mark.parametrize(("delta", "gamma"), [*FEW, (1e3, 1e3), (40.0, 0.03), (0.5, 1e-12), (1e-10, 1e-10)])
def test_quantile_inverts_distribution(delta: float, gamma: float) -> None:
    law = WishartProduct(delta, gamma)
    level = law.atom + (1 - law.atom) * np.array([1e-12, 1e-9, 1e-3, 0.02, 0.3, 0.7, 0.99, 1 - 1e-9])
    level = level[level > law.atom]
    noise = 1e-15 / math.sqrt(delta + gamma) + 8 * np.spacing(law.ppf(level)) * law.pdf(law.ppf(level))
    assert (np.abs(law.cdf(law.ppf(level)) - level) <= 1e-15 + noise).all()
    assert (np.diff(law.ppf(np.linspace(0, 1, 1001))) >= 0).all()


@pytest.mark.parametrize(
    ("delta", "gamma"), [*FEW, (1 - 1e-9, 0.5), (1e3, 1e3), (1e3, 1.0), (0.5, 1e-12), (4.0, 5.0), (40.0, 0.03)]
)
def test_stieltjes(delta: float, gamma: float) -> None:
    """Both half-planes, left of, right of, below and inside the support, close to the axis and to 0."""
    law = WishartProduct(delta, gamma)
    low, high = map(float, edges(delta, gamma))
    real = [-high, -0.3, -1e-15, 1e-20, low / 2, *inside(delta, gamma, (1e-6, 0.3, 0.9999)), 1.001 * high, 1e8 * high]
    points = [complex(x, y) for x in real if x for y in (0.0, 1e-9, -0.01, high)]
    for z, value in zip(points, law.stieltjes(points), strict=True):
        exact = stieltjes(z, delta, gamma)
        assert abs(value - exact) <= 1e-13 * abs(exact) + 4 * np.spacing(abs(z)) * _slope(z, delta, gamma), z


def _slope(z: complex, delta: float, gamma: float) -> float:
    """|G′(z)| by differentiating the cubic."""
    with mpmath.workdps(DIGITS):
        point = mpmath.mpc(z.real, abs(z.imag))
        m = transform(point if z.imag else point.real, delta, gamma)
        _, slope = mpmath.polyval(coefficients(point, delta, gamma), m, derivative=True)
        return float(abs(m / slope / point - (1 + m) / point**2))


def test_density_is_the_limit_of_the_stieltjes_transform() -> None:
    law = WishartProduct(0.5, 0.25)
    x = np.linspace(*law.support(), 102)[1:-1]
    assert np.allclose(-law.stieltjes(x).imag / np.pi, law.pdf(x), rtol=1e-13)
    assert np.allclose(-law.stieltjes(x + 1e-9j).imag / np.pi, law.pdf(x), atol=1e-6)


# Edges -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("delta", "gamma"), [(0.5, 0.25), (2.0, 0.5), (1 + 1e-3, 0.5), (1e3, 1e-3), (1e-3, 1e-3), (4.0, 5.0), (0.0, 2.0)]
)
@pytest.mark.parametrize("edge", ["lower", "upper"])
def test_density_near_an_edge(delta: float, gamma: float, edge: str) -> None:
    for distance in (1e-12, 1e-15, 1e-9, 1e-4):
        value = WishartProduct(delta, gamma).pdf_near_edge(distance, edge)
        with mpmath.workdps(DIGITS):
            low, high = edges(delta, gamma)
            exact, _ = density(
                low + mpmath.mpf(distance) if edge == "lower" else high - mpmath.mpf(distance), delta, gamma
            )
        assert value == pytest.approx(float(exact), rel=1e-9), distance


def test_density_near_an_edge_has_the_scale_of_the_eigenvalues() -> None:
    scaled, plain = WishartProduct(0.5, 0.25, 3.0), WishartProduct(0.5, 0.25)
    assert scaled.pdf_near_edge(3e-12) == pytest.approx(plain.pdf_near_edge(1e-12) / 3, rel=1e-12)


@pytest.mark.parametrize(("delta", "gamma"), HARD)
def test_hard_edge(delta: float, gamma: float) -> None:
    law = WishartProduct(delta, gamma)
    assert law.support()[0] == 0.0
    assert law.pdf(0.0) == math.inf == law.pdf(-0.0)
    assert law.pdf([0.0, -1e-300, -1.0]).tolist() == [math.inf, 0.0, 0.0]
    assert law.cdf([-1e-300, 0.0]).tolist() == [0.0, law.atom]
    assert law.stieltjes(0) == complex(math.inf, 0)
    power = -2 / 3 if delta == gamma == 1 else -1 / 2
    near = law.pdf([1e-290, 1e-200, 1e-100, 1e-30])
    assert np.allclose(np.diff(np.log(near)) / np.log([1e90, 1e100, 1e70]), power, rtol=1e-9)
    assert law.cdf(1e-24) - law.atom == pytest.approx(1e-24 * law.pdf(1e-24) / (1 + power), rel=1e-3, abs=4e-16)


@pytest.mark.parametrize(
    ("delta", "gamma"), [(1 + 1e-9, 0.25), (1 - 1e-9, 0.25), (2.0, 2 + 1e-9), (0.5, 0.5), (2.0, 1.0)]
)
def test_no_hard_edge_next_to_a_tie(delta: float, gamma: float) -> None:
    law = WishartProduct(delta, gamma)
    assert law.support()[0] > 0
    assert law.pdf(0.0) == 0.0


def test_continuity_to_the_limit() -> None:
    """γ = 1e-12 differs from γ = 0 by 1e-12; so does δ."""
    x = np.linspace(0.1, 2.9, 50)
    limit = WishartProduct(0.5, 0)
    for law in (
        WishartProduct(0.5, 1e-12),
        WishartProduct(1e-12, 0.5),
        WishartProduct(1e-20, 0.5),
        WishartProduct(0, 0.5),
    ):
        for name, argument in (("pdf", x), ("cdf", x), ("ppf", np.linspace(0, 1, 50)), ("stieltjes", x + 0.1j)):
            assert np.allclose(getattr(law, name)(argument), getattr(limit, name)(argument), rtol=1e-10, atol=1e-10), (
                name
            )
        assert law.support() == pytest.approx(limit.support(), rel=1e-10)


@given(TYPICAL, TYPICAL, st.floats(0.01, 100))
@settings(max_examples=30, deadline=None)
def test_symmetric_in_the_ratios_and_scaling(delta: float, gamma: float, scale: float) -> None:
    law, swapped = WishartProduct(delta, gamma), WishartProduct(gamma, delta, scale)
    x = np.linspace(law.support()[0], law.support()[1], 9)[1:-1]
    assert np.allclose(swapped.pdf(scale * x) * scale, law.pdf(x), rtol=1e-8)
    assert np.allclose(swapped.cdf(scale * x), law.cdf(x), atol=1e-10)
    assert swapped.moment(3) == pytest.approx(scale**3 * law.moment(3), rel=1e-12)
    assert swapped.var() == pytest.approx(scale**2 * law.var(), rel=1e-12)
    assert np.allclose(swapped.ppf([0.0, 0.3, 1.0]), scale * law.ppf([0.0, 0.3, 1.0]), rtol=1e-9)
    assert swapped.stieltjes(-scale) == pytest.approx(law.stieltjes(-1) / scale, rel=1e-12)


@given(TYPICAL | st.just(0.0), TYPICAL, st.floats(allow_nan=False, allow_infinity=False), st.floats(0, 1))
@settings(max_examples=40, deadline=None)
def test_every_value_is_a_number(delta: float, gamma: float, x: float, q: float) -> None:
    law = WishartProduct(delta, gamma)
    values = [law.pdf(x), law.cdf(x), law.ppf(q), law.stieltjes(x).real, law.stieltjes(complex(x, q)).imag, law.var()]
    assert not np.isnan(values).any()
    assert law.pdf(x) >= 0
    assert 0 <= law.cdf(x) <= 1
    assert law.support()[0] <= law.ppf(q) <= law.support()[1] or law.ppf(q) == 0


# Known values ------------------------------------------------------------------------------------------------------


def test_branch_off_the_axis() -> None:
    """Case 1."""
    value = WishartProduct(0.5, 0).stieltjes(0.5 + 0.1j)
    assert value == pytest.approx(-0.159512857783757 - 1.78780610904374j, abs=1e-14)
    assert WishartProduct(0, 0.5).stieltjes(0.5 - 0.1j) == pytest.approx(value.conjugate(), abs=1e-14)


def test_atom_in_the_distribution() -> None:
    """Case 2."""
    wide, narrow = WishartProduct(0, 2.0), WishartProduct(0.5, 0)
    assert wide.cdf(0.0) == 0.5 == wide.atom
    assert wide.cdf(1.0) == pytest.approx(0.659154943091895, abs=1e-14)
    assert narrow.cdf(1.0) == pytest.approx(0.576004215103868562, abs=1e-15)
    assert narrow.pdf(1.0) == pytest.approx(0.421084399347792, abs=1e-15)


def test_marchenko_pastur_at_ratio_one() -> None:
    """Case 3."""
    law = WishartProduct(1, 0)
    assert law.pdf(0) == math.inf
    assert law.pdf(1e-6) == pytest.approx(318.309846395, rel=1e-11)
    assert law.cdf(0.001) == pytest.approx(0.0201308459901345, abs=1e-15)


def test_ratio_and_its_inverse() -> None:
    """Case 4: d = 800 and N = 200 give the ratio 4."""
    law = WishartProduct(0, 800 / 200)
    assert law.support() == (1.0, 9.0)
    assert law.atom == 0.75


def test_mass_and_mean() -> None:
    """Case 5: a density without the factor 1/x has the right mass and the wrong mean."""
    for delta, gamma in ((0.5, 0.25), (2.0, 0.5), (0.0, 0.5)):
        law = WishartProduct(delta, gamma)
        nodes, weights = np.polynomial.legendre.leggauss(400)
        angle = np.pi * (nodes + 1) / 2
        low, high = law.support()
        x = low + (high - low) * np.sin(angle / 2) ** 2
        measure = law.pdf(x) * weights * (high - low) * np.sin(angle) * np.pi / 4
        assert measure.sum() + law.atom == pytest.approx(1, abs=1e-12)
        assert (measure * x).sum() == pytest.approx(1, abs=1e-12)
        assert (measure * x**2).sum() == pytest.approx(law.moment(2), rel=1e-12)


def test_complex_roots_outside_the_support() -> None:
    """Case 8: the cubic has complex roots for every x < −0.0838758, where the density is 0."""
    law = WishartProduct(0.5, 0.25)
    assert law.pdf([-1, -0.09, -0.08, 0.0, 0.01]).tolist() == [0.0] * 5
    for x, complex_roots in ((-0.08387, False), (-0.08388, True)):
        roots = mpmath.polyroots(coefficients(x, 0.5, 0.25))
        assert any(abs(root.imag) > 1e-8 for root in roots) is complex_roots
    assert law.stieltjes(-1.0).imag == 0.0


def test_fuss_catalan() -> None:
    law = WishartProduct(1, 1)
    assert law.support() == (0.0, 6.75)
    assert [law.moment(n) for n in range(7)] == [1, 1, 3, 12, 55, 273, 1428]
    phase = np.linspace(0.05, 1, 20)  # x = sin³3φ/(sin φ sin²2φ), f = sin²φ sin 2φ/(π sin²3φ)
    x = np.sin(3 * phase) ** 3 / (np.sin(phase) * np.sin(2 * phase) ** 2)
    exact = np.sin(phase) ** 2 * np.sin(2 * phase) / (np.pi * np.sin(3 * phase) ** 2)
    assert np.allclose(law.pdf(x), exact, rtol=1e-12)


@pytest.mark.parametrize(("delta", "gamma"), [(0.5, 0.25), (2.0, 0.5), (1e-3, 1e3), (0.0, 3.0), (0.1, 0.0)])
def test_moments_are_exact_rationals(delta: float, gamma: float) -> None:
    """In exact arithmetic: m_n is 1/n times the coefficient of yⁿ⁻¹ in ((1 + y)(1 + δy)(1 + γy))ⁿ."""
    kernel = [Fraction(1)]
    for weight in (Fraction(1), Fraction(delta), Fraction(gamma)):
        kernel = _times(kernel, [Fraction(1), weight])
    power = [Fraction(1)]
    for order in range(1, 31):
        power = _times(power, kernel)
        exact = power[order - 1] / order
        assert abs(Fraction(WishartProduct(delta, gamma).moment(order)) / exact - 1) < 1e-13
        assert order > 1 or exact == 1


def _times(left: list[Fraction], right: list[Fraction]) -> list[Fraction]:
    result = [Fraction(0)] * (len(left) + len(right) - 1)
    for i, a in enumerate(left):
        for j, b in enumerate(right):
            result[i + j] += a * b
    return result


def test_variance_of_a_narrow_law_keeps_its_digits() -> None:
    assert WishartProduct(1e-9, 3e-9).var() == pytest.approx(4e-9 + 3e-18, rel=1e-14)


# Arrays, scalars, draws ----------------------------------------------------------------------------------------------


def test_scalars_stay_scalars() -> None:
    law = WishartProduct(0.5, 0.25)
    values = [*law.support(), law.atom, law.mean(), law.var(), law.moment(3), law.pdf(1), law.cdf(1), law.ppf(0.5)]
    values += [law.pdf_near_edge(1e-3), law.rvs(random_state=1), law.pdf(np.float64(1)), law.pdf(np.array(1.0))]
    assert {type(value) for value in values} == {float}
    assert type(law.stieltjes(1)) is type(law.stieltjes(1j)) is complex
    assert type(law.pdf(1.0, "fast")) is float if fast_available() else True
    assert repr(law) == "WishartProduct(delta=0.5, gamma=0.25, scale=1.0)"


def test_arrays_broadcast_entry_by_entry() -> None:
    """Parameters that mix the limit, hard edges and atoms, against one law at a time."""
    delta, gamma, scale = np.array([0.5, 2.0, 0.0, 1.0]), np.array([[1.0], [0.3]]), np.array([[[1.0]], [[2.5]]])
    many, x, q = WishartProduct(delta, gamma, scale), 1.3, 0.7
    results: dict[str, Any] = {
        **{"pdf": many.pdf(x), "cdf": many.cdf(x), "ppf": many.ppf(q), "stieltjes": many.stieltjes(1 + 1j)},
        **{"moment": many.moment(3), "pdf_near_edge": many.pdf_near_edge(1e-6)},
    }
    arguments = {"pdf": x, "cdf": x, "ppf": q, "stieltjes": 1 + 1j, "moment": 3, "pdf_near_edge": 1e-6}
    for name, values in results.items():
        assert values.shape == (2, 2, 4)
        for (k, j, i), value in np.ndenumerate(values):
            one = WishartProduct(delta[i], gamma[j, 0], scale[k, 0, 0])
            assert value == pytest.approx(getattr(one, name)(arguments[name]), rel=1e-13), (name, one)
    assert many.atom.shape == many.support()[0].shape == many.mean().shape == (2, 2, 4)
    assert many.rvs(random_state=1).shape == (2, 2, 4) == many.rvs((2, 2, 4), 1).shape
    assert many.pdf(np.ones((3, 1, 1, 1))).shape == (3, 2, 2, 4)


@pytest.mark.parametrize("backend", BACKENDS)
def test_long_arrays_agree_with_short_ones(backend: str) -> None:
    law = WishartProduct(2.0, 0.5)
    x = np.linspace(-1, 9, 20_011)
    long = law.pdf(x.reshape(1, -1), backend)
    assert long.shape == (1, x.size)
    assert np.allclose(long[0, ::997], [law.pdf(place, backend) for place in x[::997]], rtol=1e-13, atol=0)
    assert np.allclose(law.cdf(x)[::997], [law.cdf(place) for place in x[::997]], rtol=1e-14)
    assert law.pdf(x[::2], backend).tolist() == law.pdf(x[::2].copy(), backend).tolist()


def test_no_points_give_no_values() -> None:
    law = WishartProduct(0.5, 0.25)
    for result in (law.pdf([]), law.cdf([]), law.ppf([]), law.stieltjes([]), law.pdf_near_edge([]), law.rvs(0, 1)):
        assert result.shape == (0,)


def test_quantiles_at_the_ends() -> None:
    narrow, wide = WishartProduct(0.5, 0.25, 2.0), WishartProduct(2.0, 0.25)
    assert (narrow.ppf(0), narrow.ppf(1)) == narrow.support()
    assert wide.ppf([0.0, 0.3, 0.5]).tolist() == [0.0] * 3
    assert wide.ppf(1) == wide.support()[1]
    assert wide.ppf(0.5 + 1e-9) > wide.support()[0]


def test_draws_follow_their_seed() -> None:
    """Case 14."""
    law = WishartProduct(0.5, 0.25)
    first, again, other = law.rvs(1000, 1), law.rvs(1000, random_state=1), law.rvs(1000, 2)
    assert (first == again).all()
    assert not np.intersect1d(first, other).size
    assert len(set(first)) == 1000
    assert law.rvs(3, np.random.default_rng(1)).tolist() == first[:3].tolist()
    generator = np.random.default_rng(1)
    assert law.rvs((2, 3), generator).shape == (2, 3) == law.rvs([2, 3]).shape
    assert not np.isin(law.rvs(10, generator), first[:6]).any()
    assert law.rvs() != law.rvs()


@pytest.mark.parametrize(
    ("delta", "gamma", "scale"), [(0.5, 0.25, 1.0), (2.0, 0.5, 3.0), (1.0, 1.0, 1.0), (0.0, 4.0, 1.0)]
)
def test_draws_have_the_distribution(delta: float, gamma: float, scale: float) -> None:
    """Dvoretzky, Kiefer and Wolfowitz: the supremum exceeds the bound with probability 1e-6; the atom to 5 σ."""
    law, count = WishartProduct(delta, gamma, scale), 20_000
    draws = np.sort(law.rvs(count, 7))
    positive = draws[draws > 0]
    empirical = (count - positive.size + np.arange(1, positive.size + 1)) / count
    assert np.abs(empirical - law.cdf(positive)).max() <= math.sqrt(math.log(2e6) / (2 * count))
    assert abs((draws == 0).mean() - law.atom) <= 5 * math.sqrt(law.atom * (1 - law.atom) / count)
    assert draws.mean() == pytest.approx(law.mean(), abs=5 * math.sqrt(law.var() / count))


# Bad input -----------------------------------------------------------------------------------------------------------


@given(no_real_number | negative)
@settings(max_examples=60, deadline=None)
def test_bad_parameters(bad: Any) -> None:
    for name, values in (("delta", (bad, 0.5)), ("gamma", (0.5, bad)), ("scale", (0.5, 0.25, bad))):
        with pytest.raises(ValueError, match=rf"^{name} must"):
            WishartProduct(*values)


@pytest.mark.parametrize("empty", [[], np.array([]), ()])
def test_empty_parameters(empty: Any) -> None:
    for name, values in (("delta", (empty, 0.5)), ("gamma", (0.5, empty)), ("scale", (0.5, 0.25, empty))):
        with pytest.raises(ValueError, match=rf"^{name} must"):
            WishartProduct(*values)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            (-0.5, 1),
            r"^delta must be >= 0, got -0\.5 \(delta = d/V, the ratio of embedding dimension to vocabulary size\)$",
        ),
        ((0, 0), "delta and gamma must not both be 0"),
        (([0.5, 0], 0), "delta and gamma must not both be 0"),
        ((0.5, 0.25, 0), "scale must be > 0, got 0"),
        ((1e-30, 0.5), "delta must be 0 .* or from 1e-20 to 1e"),
        ((0.5, 1e30), "gamma must be 0 .* or from 1e-20 to 1e"),
        ((1e-11, 1e-12), "delta and gamma must not both be below 1e-10"),
        ((0.5, 0.5, 1e308), "delta, gamma and scale must leave edges and density within the range"),
        ((0.5, 0.5, 1e-320), "delta, gamma and scale must leave edges and density within the range"),
        (([1, 2], [1, 2, 3]), r"shapes must broadcast, got delta \(2,\) and gamma \(3,\)"),
    ],
)
def test_parameters_outside(values: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        WishartProduct(*values)


@given(no_real_number)
@settings(max_examples=60, deadline=None)
def test_bad_points(bad: Any) -> None:
    law = WishartProduct(0.5, 0.25)
    for method, name in (
        (law.pdf, "x"),
        (law.cdf, "x"),
        (law.ppf, "q"),
        (law.pdf_near_edge, "distance"),
        (law.moment, "order"),
    ):
        with pytest.raises(ValueError, match=rf"^{name} must"):
            method(bad)


@given(outside(0, 1))
def test_bad_probabilities(q: float) -> None:
    with pytest.raises(ValueError, match=r"^q must be >= 0 and <= 1, got .* \(a probability\)"):
        WishartProduct(0.5, 0.25).ppf(q)
    with pytest.raises(ValueError, match=r"^q must be >= 0 and <= 1"):
        WishartProduct(0.5, 0.25).ppf([0.5, q])


@pytest.mark.parametrize("z", [None, "1j", True, math.nan, complex(0, math.nan), complex(math.inf, 1), [1j, None]])
def test_bad_spectral_arguments(z: Any) -> None:
    with pytest.raises(ValueError, match=r"^z must"):
        WishartProduct(0.5, 0.25).stieltjes(z)


@pytest.mark.parametrize("order", [-1, 1.5, 10**6, [1, 2], 1e300])
def test_bad_orders(order: Any) -> None:
    with pytest.raises(ValueError, match=r"^order must be an integer >= 0 and <= 1000"):
        WishartProduct(0.5, 0.25).moment(order)
    with pytest.raises(ValueError, match="exceeds the range of a double"):
        WishartProduct(0.5, 0.25, 1e200).moment(2)


@pytest.mark.parametrize("distance", [0, -1e-12, 2.9, [1e-3, 0.0]])
def test_bad_distances(distance: Any) -> None:
    with pytest.raises(ValueError, match=r"^distance must be > 0 and below the width"):
        WishartProduct(0.5, 0).pdf_near_edge(distance)


def test_bad_options() -> None:
    law = WishartProduct(0.5, 0.25)
    for backend in ("mpmath", "", None, 1):
        with pytest.raises(ValueError, match=r"^backend must be one of auto, numpy, fast, got"):
            law.pdf(1.0, backend)
    for edge in ("left", None, 0):
        with pytest.raises(ValueError, match=r"^edge must be 'upper' or 'lower', got"):
            law.pdf_near_edge(1e-3, edge)
    for seed in ("one", -1, 1.5, True, object()):
        with pytest.raises(ValueError, match=r"^random_state must be a seed"):
            law.rvs(3, seed)
    for size in ("3", -1, 2.5, True, [[1, 2]], (2, -1), math.nan):
        with pytest.raises(ValueError, match=r"^size must"):
            law.rvs(size, 1)
    with pytest.raises(ValueError, match=r"^size must be a shape to which the parameters' \(2,\) extends"):
        WishartProduct([0.5, 1], 1).rvs(3, 1)
    with pytest.raises(ValueError, match="shapes must broadcast, got x"):
        WishartProduct([0.5, 1], 1).pdf([1, 2, 3])
