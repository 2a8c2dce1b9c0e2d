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
    "shifted and scaled": 2 * MarchenkoPastur(0.5) + (-1),
}
NAMES = pytest.mark.parametrize("name", LAWS)
_cache = {}


def numeric(name):
    if name not in _cache:
        _cache[name] = FreeLaw(LAWS[name])
    return _cache[name]


def reference(law, x):
    """−Im G(x + i0)/π with 50 digits.

    Up to degree 3 a real polynomial has one pair of complex roots at most; above it, roots are followed from far off.
    """
    polynomial = sp.Poly(law.polynomial, g)
    with mp.workdps(50):
        coefficients = [sp.lambdify(z, c, "mpmath") for c in polynomial.all_coeffs()]

        def roots(at):
            return mp.polyroots([c(at) for c in coefficients], maxsteps=300, extraprec=200)

        x = mp.mpf(x)
        if polynomial.degree() <= 3:
            return float(max(abs(r.imag) for r in roots(x)) / mp.pi)
        height = mp.mpf(500) * (1 + abs(x))
        first, second = (mp.mpf(sp.Rational(q).p) / sp.Rational(q).q for q in law.moments(2))
        inverse = 1 / (x + 1j * height)
        value = inverse * (1 + inverse * (first + inverse * second))
        before = value
        while height > 1e-12:
            guess = 2 * value - before  # the branch is smooth in the log of the height
            before, value = value, min(roots(x + 1j * height), key=lambda r: abs(r - guess))
            height *= mp.mpf("0.7")
        return float(-min(roots(x), key=lambda r: abs(r - value)).imag / mp.pi)


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
    law = numeric(name)
    low, high = law.support()[0][0], law.support()[-1][1]
    first = law.support()[0]
    for x in (low + 0.31 * (high - low), first[0] + 0.013 * (first[1] - low), first[0] + 0.77 * (first[1] - low)):
        right = reference(LAWS[name], x)
        assert abs(law.pdf(x) - right) <= 2e-12 * max(1, right)


@NAMES
def test_distribution_is_the_integral_of_the_density(name):
    law = numeric(name)
    for a, b in law.support():
        x = np.linspace(a, b, 9)[2:-2]
        points, weights = np.polynomial.legendre.leggauss(60)
        for left, right in itertools.pairwise(x):
            jumps = sum(w for p, w in law.atoms if left < p <= right)
            if jumps or any(left <= float(e) <= right for e in law._curve.edges):
                continue  # Gauss-Legendre is no judge across a cusp or an atom
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


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.sampled_from(["sum", "product", "power", "compression", "poisson", "inverse"]),
    st.integers(1, 12),
    st.integers(1, 12),
)
def test_drawn_laws_have_mass_and_mean(operation, first, second):
    a, b = sp.Rational(first, 5), sp.Rational(second, 5)
    law = {
        "sum": lambda: Atoms((0, 1), (a / 3, 1 - a / 3)) + MarchenkoPastur(b),
        "product": lambda: MarchenkoPastur(a) * MarchenkoPastur(b),
        "power": lambda: MarchenkoPastur(a).sum_power(1 + b),
        "compression": lambda: (Atoms((0, 2)) + Semicircle(b)).compress(a / 3),
        "poisson": lambda: FreePoisson(a, Atoms((-1, 2), (b / 3, 1 - b / 3))),
        "inverse": lambda: MarchenkoPastur(a / 3).inverse() * MarchenkoPastur(b),
    }[operation]()
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


def test_edges_with_a_multiple_root_are_kept():
    """Case 9: the discriminant of a cusp has a multiple root; every edge is there once."""
    law = FreeLaw(Semicircle(1) + Atoms((-1, 1)))
    assert law.support() == [(pytest.approx(-1.5 * np.sqrt(3), abs=1e-14), pytest.approx(1.5 * np.sqrt(3), abs=1e-14))]
    assert law.pdf(1e-9) == pytest.approx(np.sqrt(3) / (2 * np.pi) * 1e-3, rel=1e-2)
    assert len((MarchenkoPastur(0.5) * MarchenkoPastur(0.25)).edges()) >= 3


def test_closed_forms_of_other_modules_agree():
    product, chapter = numeric("product"), WishartProduct(0.5, 0.25)
    x = np.linspace(0.06, 3.7, 200)
    assert np.abs(product.pdf(x) - chapter.pdf(x)).max() < 1e-12
    assert np.abs(product.cdf(x) - chapter.cdf(x)).max() < 1e-10
    bands, semicircle = numeric("three bands"), SemicircleSum([0, 1, 4], variance=0.1)
    assert np.array(bands.support()) == pytest.approx(np.array(semicircle.support()), abs=1e-13)
    x = np.linspace(-0.3, 4.3, 200)
    assert np.abs(bands.pdf(x) - semicircle.pdf(x)).max() < 1e-11


def test_a_law_as_the_spectrum_of_a_semicircle_sum():
    """The exact law, not a grid of points, also for a small variance; the sum is a law of the calculus as well."""
    wishart = numeric("Wishart with an atom")
    for variance in (0.5, 1e-3):
        law = SemicircleSum(wishart, variance=variance)
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
    ],
)
def test_bad_input(call, says):
    with pytest.raises(ValueError, match=says):
        call()
