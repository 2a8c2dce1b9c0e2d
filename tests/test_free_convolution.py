"""The semicircle sum against 50-digit mpmath, exact masses and moments, and the cases that trip other software.

The reference solves the subordination polynomial for all its roots: inside a band one has a positive imaginary part.
"""

import time

import mpmath as mp
import numpy as np
import pytest

from numerics.cauchy import DIRECT, AtomicSpectrum, cluster_bound
from numerics.free_convolution import SemicircleSum

SPECTRA = {
    "one atom": ([0.3], None),
    "two atoms": ([-1.0, 1.0], None),
    "uneven weights": ([-1.0, 0.25, 0.5, 3.0], [0.125, 0.5, 0.25, 0.125]),
    "close pair": ([0.0, 1e-9, 1.0], None),
    "a light atom": ([0.0, 2.0], [1 - 2.0**-20, 2.0**-20]),
    "eight": (list(np.linspace(-1, 1, 8) ** 3), None),
}
VARIANCES = (1e-8, 1e-3, 0.1, 1.0, 1e8)


def spectrum_variance(values, weights):
    shares = np.full(len(values), 1 / len(values)) if weights is None else np.array(weights)
    return max(float(shares @ (np.array(values) - shares @ values) ** 2), 1e-2)


def reference(values, weights, variance, x):
    """ρ, h and dρ/dx at x with 50 digits, from the roots of Π(w − λ_i)(w − x) + s Σ w_i Π_{j≠i}(w − λ_j)."""
    with mp.workdps(50):
        lam = [mp.mpf(v) for v in values]
        share = [mp.mpf(1) / len(lam)] * len(lam) if weights is None else [mp.mpf(w) for w in weights]
        s, x = mp.mpf(variance), mp.mpf(x)

        def product(roots):
            coefficients = [mp.mpf(1)]
            for r in roots:
                shifted = [*coefficients, mp.mpf(0)]
                coefficients = [a - r * b for a, b in zip(shifted, [mp.mpf(0), *coefficients], strict=True)]
            return coefficients

        full = product([*lam, x])
        for i, w in enumerate(share):
            part = product(lam[:i] + lam[i + 1 :])
            for k, c in enumerate(reversed(part)):
                full[-1 - k] += s * w * c
        roots = mp.polyroots(full, maxsteps=2000, extraprec=400)
        above = [w for w in roots if w.imag > mp.mpf(10) ** -30]
        assert len(above) <= 1
        if not above:
            return 0.0, None, 0.0
        w = above[0]
        slope = 1 / (1 - s * mp.fsum(c / (w - v) ** 2 for v, c in zip(lam, share, strict=True)))
        return float(w.imag / (mp.pi * s)), float((x - w.real) / s), float(slope.imag / (mp.pi * s))


@pytest.mark.parametrize("variance", VARIANCES)
@pytest.mark.parametrize("name", SPECTRA)
def test_density_and_hilbert_transform_against_mpmath(name, variance):
    values, weights = SPECTRA[name]
    law = SemicircleSum(values, weights, variance=variance)
    bands = law.support()
    points = [a + t * (b - a) for a, b in (bands[0], bands[-1]) for t in (1e-6, 0.03, 0.5, 0.71, 1 - 1e-6)]
    points += [a - 0.1 * (b - a) for a, b in bands[:1]]
    density, hilbert = law.pdf(points), law.hilbert(points)
    for x, f, h in zip(points, density, hilbert, strict=True):
        right, right_h, slope = reference(values, weights, variance, x)
        slope = abs(slope) * 8 * np.spacing(max(abs(x), max(map(abs, values))))
        assert abs(f - right) <= 1e-12 * max(right, 1e-3) + slope
        if right_h is not None:
            assert abs(h - right_h) <= 1e-11 * max(abs(right_h), right, 1e-3) + 4 * slope


@pytest.mark.parametrize("variance", VARIANCES)
@pytest.mark.parametrize("name", SPECTRA)
def test_mass_moments_and_distribution(name, variance):
    values, weights = SPECTRA[name]
    law = SemicircleSum(values, weights, variance=variance)
    shares = np.full(len(values), 1 / len(values)) if weights is None else np.array(weights)
    x, mass, hilbert = law.quadrature()
    scale = np.sqrt(law.var())
    assert abs(mass.sum() - 1) < 1e-12
    assert abs(mass @ x - shares @ values) < 1e-12 * scale
    assert abs(mass @ (x - law.mean()) ** 2 / law.var() - 1) < 1e-12
    # h and ρ are conjugate: ∫hρ = 0, ∫x hρ = 1/2.
    assert abs(mass @ hilbert) * scale < 1e-9
    assert abs(mass @ (x * hilbert) - 0.5) < 1e-10 * max(1.0, abs(law.mean()) / np.sqrt(variance))
    assert law.band_masses().sum() == pytest.approx(1, abs=1e-14)
    probability = np.linspace(0, 1, 21)
    quantile = law.ppf(probability)
    assert np.all(np.diff(quantile) > 0)
    unit = max(map(abs, values)) / np.sqrt(variance)
    assert np.abs(law.cdf(quantile) - probability).max() < 1e-13 + 4e-16 * unit
    # The closed-form distribution function and the quadrature of the density are two routes to one number.
    middle = law.ppf(0.37)
    assert law.tail_moment(middle, 0) == pytest.approx(1 - law.cdf(middle), abs=1e-12)


def test_tail_integrals_of_the_plain_semicircle():
    law = SemicircleSum([0.0], variance=1.0)
    for b in (-3.0, -1.0, 0.0, 0.7, 1.999, 2.5):
        for power in (0, 1, 2, 3):
            with mp.workdps(30):
                low = min(max(b, -2), 2)
                density = lambda y: mp.sqrt(4 - y * y) / (2 * mp.pi)  # noqa: E731
                plain = mp.quad(lambda y: (y - b) ** power * density(y), [low, 2]) if low < 2 else mp.mpf(0)  # noqa: B023
                skew = mp.quad(lambda y: (y - b) ** power * y / 2 * density(y), [low, 2]) if low < 2 else mp.mpf(0)  # noqa: B023
            assert law.tail_moment(b, power) == pytest.approx(float(plain), abs=1e-12)
            assert law.tail_hilbert(b, power) == pytest.approx(float(skew), abs=1e-12)


def test_two_atoms_split_exactly_at_variance_one():
    """±1 with equal weights: one band for variance ≥ 1, two below; the edges are known in closed form."""
    assert len(SemicircleSum([-1, 1], variance=1.0001).support()) == 1
    assert len(SemicircleSum([-1, 1], variance=0.9999).support()) == 2
    s = 0.25
    with mp.workdps(40):
        # B(u) = (u² + 1)/(u² − 1)² = 1/s
        u = [mp.sqrt(r) for r in mp.polyroots([1, -2 - mp.mpf(s), 1 - mp.mpf(s)])]
        edges = sorted(float(w + s * w / (w * w - 1)) for w in u)
    assert SemicircleSum([-1, 1], variance=s).support()[1] == pytest.approx(tuple(edges), abs=2e-16)


def test_narrow_bulk_is_not_missed():
    """Case 10: a semicircle of radius 2e-4 at 0.3."""
    law = SemicircleSum([0.3], variance=1e-8)
    assert law.support() == [(pytest.approx(0.2998, abs=1e-15), pytest.approx(0.3002, abs=1e-15))]
    assert law.tail_moment(-1.0, 0) == pytest.approx(1, abs=1e-13)
    assert law.pdf(0.3) == pytest.approx(1 / (np.pi * 1e-4), rel=1e-12)
    many = SemicircleSum([0.3, 0.5], [1e-6, 1 - 1e-6], variance=1e-8)
    assert many.band_masses() == pytest.approx([1e-6, 1 - 1e-6], abs=1e-18)
    assert many.tail_moment(0.0, 0) - many.tail_moment(0.4, 0) == pytest.approx(1e-6, rel=1e-9)


@pytest.mark.parametrize("variance", [1e-4, 1e-2, 1.0, 1e8])
def test_ten_thousand_eigenvalues(variance):
    values = np.sort(np.random.default_rng(5).standard_normal(10_000))
    law = SemicircleSum(values, variance=variance)
    low, high = law.support()[0][0], law.support()[-1][1]
    x = np.linspace(low, high, 60)
    density, hilbert = law.pdf(x), law.hilbert(x)
    # Put back into the equation, with every eigenvalue summed: G = ⟨1/(x − sG − λ)⟩.
    g = hilbert - 1j * np.pi * density
    inside = density > 0
    again = np.mean(1 / ((x - variance * g)[:, None] - values), axis=1)
    assert np.abs(again - g)[inside].max() < 1e-9 * np.abs(g[inside]).max()
    assert 0 < law.compression_error == cluster_bound() < 1e-12


def test_clusters_reproduce_every_sum():
    rng = np.random.default_rng(3)
    values, weights = rng.standard_normal(3 * DIRECT) ** 3, rng.random(3 * DIRECT)
    spectrum = AtomicSpectrum(values, weights / weights.sum())
    anchor, offset = np.zeros(300), rng.uniform(-20, 20, 300)
    height = 10.0 ** rng.uniform(-6, 1, 300)
    fast = spectrum.sums(anchor, offset, height)
    spectrum.__dict__["_tree"] = None
    for a, b in zip(fast, spectrum.sums(anchor, offset, height), strict=True):
        # A and D are signed: their error is measured on the sum of absolute values.
        assert np.abs(a - b).max() <= 1e-11 * np.abs(b).max()
        assert np.median(np.abs(a / b - 1)) < 1e-12


def test_speed():
    """1,000 points on 200 atoms in 50 ms and on 10,000 eigenvalues in 3 s, band edges included."""
    rng = np.random.default_rng(0)
    for count, budget in ((200, 0.05), (10_000, 3.0)):
        values = rng.standard_normal(count)
        best = np.inf
        for _ in range(3):
            start = time.process_time()
            law = SemicircleSum(values, variance=1.0)
            law.pdf(np.linspace(law.support()[0][0], law.support()[-1][1], 1000))
            best = min(best, time.process_time() - start)
        assert best <= budget


def test_complex_argument_solves_the_equation():
    values, s = np.array([-1.0, 0.2, 2.0]), 0.3
    law = SemicircleSum(values, variance=s)
    z = np.array([0.1 + 0.01j, 2 + 1e-8j, -1 - 0.3j, 30 + 1j, 4 + 0j, 0.3 + 0j, -2e3j])
    g = law.stieltjes(z)
    again = np.mean(1 / (z[:, None] - s * g[:, None] - values), axis=1)
    assert np.abs(again - g).max() < 1e-14
    assert np.all(g.imag * np.where(z.imag == 0, 1, z.imag) <= 0)
    assert isinstance(law.stieltjes(3j), complex)


def test_draws_repeat_and_differ():
    law = SemicircleSum([0.0, 4.0], variance=0.5)
    first = law.rvs(2000, random_state=1)
    assert np.array_equal(first, law.rvs(2000, random_state=1))
    assert not np.array_equal(first, law.rvs(2000, random_state=2))
    assert abs(first.mean() - 2) < 5 * np.sqrt(law.var() / 2000)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (([],), "spectrum must not be empty"),
        (([1 + 1j],), "spectrum must be real"),
        (([1.0, np.nan],), "spectrum must be finite"),
        (([[1.0]],), "one-dimensional"),
        (([1.0, 2.0], [0.5, 0.6]), "weights must sum to 1"),
        (([1.0, 2.0], [1.5, -0.5]), "weights must be >= 0"),
        (([1.0, 2.0], [1.0]), "one entry an eigenvalue"),
    ],
)
def test_bad_spectra(arguments, says):
    with pytest.raises(ValueError, match=says):
        SemicircleSum(*arguments, variance=1.0)


@pytest.mark.parametrize("variance", [0.0, -1.0, np.nan, np.inf])
def test_bad_variance(variance):
    with pytest.raises(ValueError, match="variance must be > 0 and finite"):
        SemicircleSum([1.0], variance=variance)


def test_bad_points():
    law = SemicircleSum([1.0], variance=1.0)
    for call in (law.pdf, law.cdf, law.hilbert):
        with pytest.raises(ValueError, match="x must not be NaN"):
            call(np.nan)
    with pytest.raises(ValueError, match="probability must lie"):
        law.ppf(1.1)
    with pytest.raises(ValueError, match="z must be finite"):
        law.stieltjes(np.inf)
    with pytest.raises(ValueError, match="power must be an integer"):
        law.tail_moment(0.0, -1)
    assert law.cdf([-np.inf, np.inf]).tolist() == [0.0, 1.0]
    assert law.pdf([-np.inf, np.inf]).tolist() == [0.0, 0.0]
