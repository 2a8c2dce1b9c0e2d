"""Any law of the calculus as a distribution: mass, mean, 50-digit accuracy, atoms, edges, wrong input.

One list of laws goes through every generic test; hypothesis draws further ones.
"""

import itertools

import mpmath as mp
import numpy as np
import pytest
import sympy as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from derivations import wishart_product as chapter
from derivations._free_calculus import g, m, s_coefficients, z
from derivations.free_probability import (
    Atoms,
    FreePoisson,
    FussCatalan,
    MarchenkoPastur,
    Semicircle,
    Wishart,
    cumulants_of,
    moments_of,
)
from numerics.free_convolution import SemicircleSum
from numerics.free_law import FreeLaw
from numerics.spikes import AdditiveSpikes, MultiplicativeSpikes
from numerics.wishart_product import WishartProduct

LAWS = {
    "semicircle": Semicircle(1, 3),
    "Wishart": MarchenkoPastur(0.5),
    "Wishart with an atom": MarchenkoPastur(2),
    "hard edge": MarchenkoPastur(1),
    "product": MarchenkoPastur(0.5) * MarchenkoPastur(0.25),
    "threefold product": MarchenkoPastur(0.5) * MarchenkoPastur(0.25) * MarchenkoPastur(2),
    "Fuss-Catalan 2": FussCatalan(2),
    "Fuss-Catalan 3": FussCatalan(3),
    "arcsine": Atoms((-1, 1)) + Atoms((-1, 1)),
    "three bands": Atoms((0, 1, 4)) + Semicircle(0.1),
    "cusp": Atoms((-1, 1)) + Semicircle(1),
    "population": Wishart(0.3, Atoms((1, 10))),
    "signed product": Atoms((-1, 1)) * MarchenkoPastur(0.5),
    "atoms inside": Atoms((0, 1, 3)) + Atoms((0, 2), (0.75, 0.25)),
    "power": Atoms((0, 1)).sum_power(1.5),
    "compression": Atoms((0, 1)).compress(0.7),
    "product power": MarchenkoPastur(0.5).product_power(1.5),
    "inverse": MarchenkoPastur(0.5).inverse(),
    "free Poisson": FreePoisson(0.5, Atoms((1, -2))),
    "Poisson of Wishart": FreePoisson(2, MarchenkoPastur(0.5)),
    "atom inside a band": FreePoisson(0.5, Semicircle(1)),
    "hard edge at an atom": MarchenkoPastur(1.6).product_power(2),
    "branch point near the axis": Atoms((0, 1), (sp.Rational(1, 3), sp.Rational(2, 3))) + MarchenkoPastur(0.6),
    "shifted and scaled": 2 * MarchenkoPastur(0.5) + (-1),
}
NAMES = pytest.mark.parametrize("name", LAWS)
_cache = {}


def numeric(name):
    if name not in _cache:
        _cache[name] = FreeLaw(LAWS[name])
    return _cache[name]


def reference(law, x):
    """−Im G(x + i0)/π with 50 digits, x a float or an mpmath number, and its slope in x.

    Newton's method follows the series at infinity down to the axis in small steps of the height's logarithm.
    """
    terms = [(i, k, sp.Rational(c)) for (i, k), c in sp.Poly(law.polynomial, g, z).terms()]
    with mp.workdps(50):
        terms = [(i, k, mp.mpf(int(c.p)) / int(c.q)) for i, k, c in terms]
        degree = max(i for i, _, _ in terms)
        first, second = (mp.mpf(int(q.p)) / int(q.q) for q in map(sp.Rational, law.moments(2)))

        def polished(at, value, digits=12):
            columns = [mp.fsum(c * at**k for j, k, c in terms if j == i) for i in range(degree, -1, -1)]
            for _ in range(60):
                total, change = mp.polyval(columns, value, derivative=1)
                value -= total / change
                if abs(total / change) < mp.mpf(10) ** -digits * abs(value):
                    return value
            raise AssertionError(f"Newton's method did not settle at {at}")

        height = mp.mpf(500) * (1 + abs(x))
        inverse = 1 / (x + 1j * height)
        value = before = earlier = polished(x + 1j * height, inverse * (1 + inverse * (first + inverse * second)))
        while height > 1e-10:
            height *= mp.mpf("0.8")
            guess = earlier * (value / before) ** 3  # the logarithm, continued by a parabola
            earlier, before, value = before, value, polished(x + 1j * height, guess)
        value = polished(mp.mpf(x), value)
        value = mp.conj(value) if value.imag > 0 else value  # Newton on the axis may leave the lower half-plane
        top = mp.fsum(c * k * value**i * mp.mpf(x) ** (k - 1) for i, k, c in terms if k)
        bottom = mp.fsum(c * i * value ** (i - 1) * mp.mpf(x) ** k for i, k, c in terms if i)
        return float(-value.imag / mp.pi), float((top / bottom).imag / mp.pi)


@NAMES
def test_mass_and_mean(name):
    """Cases 2 and 5: total mass with atoms, and the mean; both again by an integral over the public functions."""
    law = numeric(name)
    assert law.cdf(np.inf) == pytest.approx(1, abs=1e-10)
    assert sum(w for _, w in law.atoms) + law.band_masses().sum() == pytest.approx(1, abs=1e-10)
    probability = (np.arange(1000) + 0.5) / 1000
    quantile = law.ppf(probability)
    assert np.all(np.diff(quantile) >= 0)
    assert quantile.mean() == pytest.approx(law.mean(), abs=5e-3 * np.sqrt(law.var()) + 1e-12)
    assert quantile.var() == pytest.approx(law.var(), rel=5e-2)


@NAMES
def test_density_against_mpmath(name):
    """1e-12 max(1, f) + 4 ulp(x) |f'|, in the first and the last band, close to their ends too."""
    law = numeric(name)
    bands = law.support()
    first, last = bands[0], bands[-1]
    for (a, b), share in ((first, 1e-6), (first, 0.013), (first, 0.31), (last, 0.77), (last, 1 - 1e-6)):
        x = a + share * (b - a)
        right, slope = reference(LAWS[name], x)
        assert abs(law.pdf(x) - right) <= 1e-12 * max(1, right) + 4 * np.spacing(abs(x)) * abs(slope)


def test_wishart_product_is_a_law_of_the_calculus():
    """Its chapter's object against its own closed form, and degree 3 in closed form everywhere."""
    law = FreeLaw(chapter.law, {chapter.delta: 0.5, chapter.gamma: 0.25})
    assert law.law == LAWS["product"]
    own = WishartProduct(0.5, 0.25)
    x = np.concatenate([np.linspace(-1, 5, 400), law.support()[0][0] + 10.0 ** np.linspace(-12, -1, 30)])
    for right, found in ((own.pdf(x), law.pdf(x)), (own.cdf(x), law.cdf(x))):
        inside = x - law.support()[0][0] > 1e-9  # nearer, the rounding of x itself moves the density
        assert np.abs(right - found)[inside].max() < 1e-10
        assert np.abs(right - found).max() < 1e-4


@pytest.mark.parametrize("name", ["product", "population", "signed product", "free Poisson", "atoms inside"])
def test_degree_three_in_closed_form(name):
    """Law `cubic-density` and the table with Newton's method are two routes."""
    law = numeric(name)
    for part in law._intervals:
        x = np.linspace(float(part.left), float(part.right), 202)[1:-1]
        assert np.abs(part.density(x) + part.resolve(x).imag / np.pi).max() < 1e-12 * part.density(x).max()


@NAMES
def test_distribution_is_the_integral_of_the_density(name):
    law = numeric(name)
    for a, b in law.support():
        x = np.linspace(a, b, 9)[2:-2]
        points, weights = np.polynomial.legendre.leggauss(60)
        for left, right in itertools.pairwise(x):
            jumps = sum(w for p, w in law.atoms if left < p <= right)
            if jumps or any(left <= float(part.right) <= right for part in law._intervals):
                continue  # Gauss-Legendre is no judge across a cusp, an atom, or below a branch point
            mid, half = 0.5 * (left + right), 0.5 * (right - left)
            assert half * (weights @ law.pdf(mid + half * points)) == pytest.approx(
                law.cdf(right) - law.cdf(left), abs=2e-9
            )


@NAMES
def test_quantiles_invert_the_distribution(name):
    law = numeric(name)
    probability = np.linspace(0.003, 0.997, 57)
    x = law.ppf(probability)
    at_atom = np.isin(x, [p for p, _ in law.atoms])
    assert np.abs(law.cdf(x) - probability)[~at_atom].max() < 1e-10
    assert np.all(law.cdf(x[at_atom]) >= probability[at_atom] - 1e-12)
    assert np.array_equal(law.rvs(5, random_state=1), law.rvs(5, random_state=1))
    assert not np.array_equal(law.rvs(5, random_state=1), law.rvs(5, random_state=2))


@NAMES
def test_transform_continues_the_density(name):
    law = numeric(name)
    low, high = law.support()[0][0], law.support()[-1][1]
    at = np.array([low - 1.0, high + 1.0, low + 0.3j, 0.5 * (low + high) + 0.1j, 1 - 2j])
    at = at[[all(abs(q - p) > 1e-9 for p, _ in law.atoms) for q in at]]
    value, slope = law.resolvent(at)
    assert (
        np.abs(
            [
                complex(LAWS[name].polynomial.subs({z: complex(a), g: complex(v)}))
                for a, v in zip(at, value, strict=True)
            ]
        ).max()
        < 1e-8 * max(1, abs(high)) ** 6
    )
    step = 1e-5
    assert np.abs((law.stieltjes(at + step) - law.stieltjes(at - step)) / (2 * step) - slope).max() < 1e-6 * max(
        1, np.abs(slope).max()
    )
    x = 0.5 * (law.support()[0][0] + law.support()[0][1]) + 0.1
    assert law.stieltjes(x).imag == pytest.approx(-np.pi * law.pdf(x), abs=1e-9)
    assert law.hilbert(x) == pytest.approx(law.stieltjes(x).real, abs=1e-9)


@NAMES
def test_moments_by_two_routes(name):
    """Cumulants and series against the polynomial's own expansion at infinity."""
    law = LAWS[name]
    moments = law.moments(6)
    assert moments_of(cumulants_of(moments)) == moments
    far = 200
    series = sum(float(mu) / far ** (k + 1) for k, mu in enumerate([1, *moments]))
    with mp.workdps(60):
        at = mp.mpf(200) * 10**4
        total = sum(mp.mpf(sp.Rational(mu).p) / sp.Rational(mu).q / at ** (k + 1) for k, mu in enumerate([1, *moments]))
        residue = mp.mpmathify(
            sp.Poly(law.polynomial, g, z).eval({g: sp.Float(str(total), 60), z: sp.Integer(200) * 10**4})
        )
        slope = mp.mpmathify(law.polynomial.diff(g).subs({g: sp.Float(str(total), 60), z: sp.Integer(200) * 10**4}))
        assert abs(residue / slope) < mp.mpf(10) ** -40
    assert series == pytest.approx(numeric(name).stieltjes(float(far)).real, rel=1e-6)


DRAWN = {
    "sum": lambda a, b: Atoms((0, 1), (a / 3, 1 - a / 3)) + MarchenkoPastur(b),
    "product": lambda a, b: MarchenkoPastur(a) * MarchenkoPastur(b),
    "signed product": lambda a, b: Atoms((-1, 2), (a / 3, 1 - a / 3)) * MarchenkoPastur(b),
    "power": lambda a, b: MarchenkoPastur(a).sum_power(1 + b),
    "power of atoms": lambda a, b: Atoms((-1, 0, 2), (a / 6, b / 6, 1 - a / 6 - b / 6)).sum_power(1 + b),
    "product power": lambda a, b: MarchenkoPastur(a).product_power(1 + b),
    "power of levels": lambda a, b: (
        2 * Atoms((0, 1, 4), (a / 4, (1 - a / 4) / 2, (1 - a / 4) / 2)).product_power(1 + b)
    ),
    "compression": lambda a, b: (Atoms((0, 2)) + Semicircle(b)).compress(a / 3),
    "poisson": lambda a, b: FreePoisson(a, Atoms((-1, 2), (b / 3, 1 - b / 3))),
    "inverse": lambda a, b: MarchenkoPastur(a / 3).inverse() * MarchenkoPastur(b),
    "Wishart": lambda a, b: 3 * Wishart(a, Atoms((0, 1, 1 + b))) + (-1),
}


@pytest.mark.parametrize("operation", DRAWN)
@settings(max_examples=2, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(1, 12), st.integers(1, 12))
def test_drawn_laws_have_mass_and_mean(operation, first, second):
    law = DRAWN[operation](sp.Rational(first, 5), sp.Rational(second, 5))
    numeric_law = FreeLaw(law)  # raises ArithmeticError unless mass and mean are right to 1e-10
    assert numeric_law.cdf(np.inf) == pytest.approx(1, abs=1e-10)


def test_known_values():
    """Cases 1 to 4, 8: branch off the axis, atoms, hard edge, c against 1/c, complex roots outside the support."""
    half, two, one = numeric("Wishart"), numeric("Wishart with an atom"), numeric("hard edge")
    assert half.stieltjes(0.5 + 0.1j) == pytest.approx(-0.159512857783757 - 1.78780610904374j, rel=1e-13)
    assert two.cdf(0.0) == pytest.approx(0.5, abs=1e-14)
    assert two.cdf(1.0) == pytest.approx(0.659154943091895, abs=1e-13)
    assert half.cdf(1.0) == pytest.approx(0.576004215103868562, abs=1e-13)
    assert half.pdf(1.0) == pytest.approx(0.421084399347792, abs=1e-13)
    assert one.pdf(0.0) == np.inf
    assert one.pdf(1e-6) == pytest.approx(318.309846395, rel=1e-11)
    assert one.cdf(0.001) == pytest.approx(0.0201308459901345, rel=1e-12)
    wide = FreeLaw(MarchenkoPastur(4))
    assert wide.support() == [(pytest.approx(1, abs=1e-14), pytest.approx(9, abs=1e-14))]
    assert wide.atoms == ((0.0, 0.75),)
    assert np.all(numeric("product").pdf([-6.0, -1.0, -0.084, 0.01, 4.0]) == 0)


@pytest.mark.parametrize(
    ("operation", "first", "second"),
    [
        ("sum", 1, 3),
        ("sum", 5, 3),
        ("Wishart", 2, 9),
        ("signed product", 7, 9),
        ("product power", 12, 1),
        ("product power", 5, 1),
    ],
)
def test_branches_that_were_missed(operation, first, second):
    """Another root near the series at infinity, branch points near the axis, an atom on a band, a hard edge."""
    FreeLaw(DRAWN[operation](sp.Rational(first, 5), sp.Rational(second, 5)))


@pytest.mark.parametrize("ratio", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("power", [1.01, 1.25, float(np.sqrt(2)), 3.7])
def test_real_powers_of_a_product(ratio, power):
    """Any real exponent: z = (1 + m)(1 + c m)^t/m with 50 digits, edges where dz/dm = 0, the resolvent off the axis."""
    law = FreeLaw(MarchenkoPastur(ratio).product_power(power))
    (low, high), *others = law.support()
    assert not others and (low == 0) == (ratio >= 1)
    with mp.workdps(50):
        c, t = mp.mpf(ratio), mp.mpf(power)

        def argument(value):
            return (1 + value) * (1 + c * value) ** t / value

        # d log z/dm = 1/(1+m) + tc/(1+cm) − 1/m = 0 is a quadratic in m; its positive root is the upper edge's.
        edge = mp.findroot(
            lambda v: 1 / (1 + v) + t * c / (1 + c * v) - 1 / v, (mp.mpf("0.05"), mp.mpf(40)), solver="anderson"
        )
        assert high == pytest.approx(float(argument(edge)), rel=1e-14)
        for x in (low + 1e-4 * (high - low), 0.5 * (low + high), high - 1e-4 * (high - low)):
            start = complex(x * law.stieltjes(x) - 1)
            exact = mp.findroot(lambda v: argument(v) - mp.mpf(x), mp.mpmathify(start))  # noqa: B023
            slope = mp.im(1 / mp.diff(argument, exact)) / mp.pi / x
            right = float(-mp.im(exact) / mp.pi / x)
            assert right > 0
            assert abs(law.pdf(x) - right) <= 1e-12 * max(1, right) + 4 * np.spacing(x) * abs(float(slope))
    for at in (0.5 * high + 0.3j, high + 1e-3 + 1e-9j, -1.0 + 0j, 2 * high + 0j, 1e-3j):
        value = law.stieltjes(at)
        moment = at * value - 1
        assert (1 + moment) * (1 + ratio * moment) ** power / moment == pytest.approx(at, rel=1e-9)
        step = 1e-7 * abs(at)
        difference = (law.stieltjes(at + step) - law.stieltjes(at - step)) / (2 * step)
        assert law.resolvent(at)[1] == pytest.approx(difference, rel=1e-4)


def test_real_powers_meet_the_integer_ones():
    """Near 2 copies against the polynomial of exactly 2; scaled and turned round; atoms."""
    small = sp.Rational(1, 10**9)
    for base in (MarchenkoPastur(0.5), Atoms((1, 3), (0.4, 0.6))):
        near, whole = (FreeLaw(-2 * base.product_power(t) + 1) for t in (2 + small, 2))
        assert np.array(near.support()) == pytest.approx(np.array(whole.support()), rel=1e-7)
        x = np.concatenate([np.linspace(a, b, 12)[1:-1] for a, b in whole.support()])
        assert near.pdf(x) == pytest.approx(whole.pdf(x), rel=1e-6)
        assert near.cdf(x) == pytest.approx(whole.cdf(x), abs=1e-8)
        assert near.hilbert(x) == pytest.approx(whole.hilbert(x), abs=1e-6 * np.abs(whole.hilbert(x)).max())
        assert near.ppf(near.cdf(x)) == pytest.approx(x, abs=1e-10 * np.abs(x).max())
    even = FreeLaw(Atoms((0.25, 1, 4), (0.1, 0.8, 0.1)).product_power(1.2))
    assert [weight for _, weight in even.atoms] == [pytest.approx(1 - 1.2 * 0.2)]
    levels = FreeLaw(Atoms((1, 3), (0.9, 0.1)).product_power(sp.pi))
    assert levels.atoms == ((1.0, pytest.approx(1 - 0.1 * np.pi)),)
    assert FreeLaw(Atoms((2,)).product_power(1.5)).atoms == ((pytest.approx(2**1.5), 1.0),)


def test_atom_inside_a_band():
    law = numeric("atom inside a band")
    (low, high), *others = law.support()
    assert not others and low < 0 < high
    assert law.atoms == ((0.0, 0.5),)
    assert law.pdf(1e-9) == pytest.approx(law.pdf(-1e-9), rel=1e-6)
    assert 0 < law.pdf(0.0) < 10
    assert law.cdf(1e-12) - law.cdf(-1e-12) == pytest.approx(0.5, abs=1e-10)
    assert np.all(law.ppf([0.3, 0.5, 0.7]) == 0)


def test_edges_with_a_multiple_root_are_kept():
    """Case 9: the discriminant of a cusp has a multiple root; every edge is there once."""
    law = FreeLaw(Semicircle(1) + Atoms((-1, 1)))
    assert law.support() == [(pytest.approx(-1.5 * np.sqrt(3), abs=1e-14), pytest.approx(1.5 * np.sqrt(3), abs=1e-14))]
    assert law.pdf(1e-9) == pytest.approx(np.sqrt(3) / (2 * np.pi) * 1e-3, rel=1e-2)
    assert len((MarchenkoPastur(0.5) * MarchenkoPastur(0.25)).edges()) >= 3


def test_closed_forms_of_other_modules_agree():
    bands, semicircle = numeric("three bands"), SemicircleSum([0, 1, 4], variance=0.1)
    assert np.array(bands.support()) == pytest.approx(np.array(semicircle.support()), abs=1e-13)
    x = np.linspace(-0.3, 4.3, 200)
    assert np.abs(bands.pdf(x) - semicircle.pdf(x)).max() < 1e-11


def test_a_law_as_the_spectrum_of_a_semicircle_sum():
    """The exact law, not a grid of points, also for a small variance; the sum is a law of the calculus as well."""
    wishart = numeric("Wishart with an atom")
    for variance in (0.5, 1e-3):
        law = SemicircleSum(wishart if variance < 0.5 else MarchenkoPastur(2), variance=variance)
        exact = FreeLaw(MarchenkoPastur(2) + Semicircle(variance))
        assert np.array(law.support()) == pytest.approx(np.array(exact.support()), abs=1e-11)
        x = np.concatenate([np.linspace(a, b, 30)[1:-1] for a, b in law.support()])
        assert np.abs(law.pdf(x) - exact.pdf(x)).max() < 1e-9
        nodes, mass, _ = law.quadrature()
        assert mass.sum() == pytest.approx(1, abs=1e-9)
        assert mass @ nodes == pytest.approx(1, abs=1e-9)


def test_spikes_on_a_law():
    bulk = numeric("Wishart")
    assert AdditiveSpikes(bulk).outliers(2.0)[0].location == pytest.approx(2 + 1 / (1 - 0.25), rel=1e-12)
    assert MultiplicativeSpikes(bulk).thresholds()[-1].spike == pytest.approx(np.sqrt(0.5), abs=1e-9)


def test_transforms():
    c = sp.Symbol("c", positive=True)
    assert sp.simplify((MarchenkoPastur(c) + Semicircle(c)).r_transform() - 1 / (1 - c * g) - c * g) == 0
    assert sp.simplify((MarchenkoPastur(c) * FussCatalan(2)).s_transform() - 1 / ((1 + c * m) * (1 + m) ** 2)) == 0
    series = s_coefficients(Semicircle(1, 3).moments(4))
    taylor = sp.series(Semicircle(1, 3).s_transform(), m, 0, 4).removeO()
    assert [sp.expand(taylor).coeff(m, k) for k in range(4)] == series
    assert (MarchenkoPastur(c) * MarchenkoPastur(2)).moments(2) == [1, c + 3]
    assert MarchenkoPastur(c).product_power(sp.sqrt(2)).moments(2)[0] == 1


def test_fuss_catalan_is_a_power():
    assert FussCatalan(3).polynomial == MarchenkoPastur(1).product_power(3).polynomial
    assert FussCatalan(3).moments(4) == MarchenkoPastur(1).product_power(3).moments(4)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: Atoms(()), "points must not be empty"),
        (lambda: Atoms((1 + 1j,)), "points must be real"),
        (lambda: Atoms((float("nan"),)), "points must be finite"),
        (lambda: Atoms((0, 1), (0.5, 0.6)), "weights must sum to 1"),
        (lambda: Atoms((0, 1), (1.5, -0.5)), "weights must be > 0"),
        (lambda: Atoms((1, 1)), "points must be distinct"),
        (lambda: MarchenkoPastur(-1), "ratio must be > 0"),
        (lambda: MarchenkoPastur("1"), "ratio must be a number"),
        (lambda: Semicircle(0), "spread must be > 0"),
        (lambda: Semicircle(1) * Atoms((-1, 1)), "one factor of a free product"),
        (lambda: Wishart(1, Atoms((-1, 1))), "population must live on"),
        (lambda: Atoms((-1, 1)).product_power(2), "law must be a law on"),
        (lambda: MarchenkoPastur(0.5).sum_power(0.5), "exponent must be >= 1"),
        (lambda: MarchenkoPastur(0.5).compress(1.5), "fraction must be > 0 and <= 1"),
        (lambda: MarchenkoPastur(2).inverse(), "no mass at 0"),
        (lambda: FussCatalan(1.5), "order must be an integer"),
        (lambda: Semicircle(1).s_transform(), "mean 0"),
        (lambda: MarchenkoPastur(0.5).product_power(sp.sqrt(2)).polynomial, "exponent must be rational"),
        (lambda: FreeLaw(MarchenkoPastur(sp.Symbol("c", positive=True))), "law needs numbers for c"),
        (lambda: FreeLaw(3), "law must be a law"),
        (lambda: numeric("Wishart").pdf(np.nan), "x must not be NaN"),
        (lambda: numeric("Wishart").ppf(2.0), "probability must lie"),
        (lambda: numeric("Wishart").stieltjes(np.inf), "z must be finite"),
        (lambda: numeric("Wishart with an atom").stieltjes(0.0), "z must not be an atom"),
        (lambda: numeric("atom inside a band").hilbert(0.0), "x must not be an atom"),
    ],
)
def test_bad_input(call, says):
    with pytest.raises(ValueError, match=says):
        call()
