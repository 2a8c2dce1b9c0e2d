"""Outliers of any bulk: closed forms that are known, forward against inverse, sampled overlaps, wrong input."""

import numpy as np
import pytest

from numerics.free_convolution import SemicircleSum
from numerics.spikes import (
    AdditiveSpikes,
    MultiplicativeSpikes,
    SemicircleSpikes,
    WishartSpikes,
    semicircle_overlap,
    semicircle_shrinkage,
    wishart_overlap,
    wishart_shrinkage,
)
from numerics.wishart_product import WishartProduct

SEMICIRCLE = SemicircleSum([0.0], variance=1.0)
SPLIT = SemicircleSum([-2.0, 2.0], variance=0.5)


def test_spiked_wigner():
    spikes = AdditiveSpikes(SEMICIRCLE)
    assert [t.spike for t in spikes.thresholds()] == pytest.approx([-1, 1], abs=1e-11)
    for theta in (-3.0, 1.01, 2.0, 50.0):
        (outlier,) = spikes.outliers(theta)
        assert outlier.location == pytest.approx(theta + 1 / theta, rel=1e-13)
        assert outlier.overlap == pytest.approx(1 - theta**-2, rel=1e-11)
        assert outlier.side == ("above" if theta > 0 else "below")
    assert spikes.outliers(0.99) == spikes.outliers(-0.99) == ()


def test_additive_and_covariance_spike_are_told_apart():
    """Case 6: c = 0.25, θ = 1, and θ = 0.6."""
    bulk = WishartProduct(0.25, 0.0)
    additive, covariance = AdditiveSpikes(bulk), MultiplicativeSpikes(bulk)
    assert additive.thresholds()[-1].spike == pytest.approx(0.75, abs=1e-11)
    assert additive.outliers(1.0)[0].location == pytest.approx(7 / 3, rel=1e-13)
    assert covariance.outliers(1.0)[0].location == pytest.approx(2.5, rel=1e-13)
    assert covariance.outliers(1.0)[0].overlap == pytest.approx(0.6, rel=1e-11)
    assert additive.outliers(0.6) == ()
    assert len(covariance.outliers(0.6)) == 1


def test_formula_above_the_edge_is_no_outlier():
    """Case 7: a covariance spike on the product of two Wishart matrices."""
    spikes = MultiplicativeSpikes(WishartProduct(0.5, 0.25))
    assert spikes.thresholds()[-1].spike == pytest.approx(1.0545466755988, abs=1e-11)
    assert spikes.outliers(1.0) == ()
    (outlier,) = spikes.outliers(2.0)
    assert outlier.location == pytest.approx(4.21875, rel=1e-13)
    assert outlier.overlap == pytest.approx(8 / 15, rel=1e-10)


@pytest.mark.parametrize("spikes", [AdditiveSpikes(SPLIT), SemicircleSpikes([-2.0, 2.0], variance=0.5)])
def test_forward_and_inverse_agree_in_every_gap(spikes):
    seen = set()
    for theta in (-6.0, -0.3, 0.3, 0.9, 6.0):
        for outlier in spikes.outliers(theta):
            again = spikes.invert(outlier.location)
            assert again.spike == pytest.approx(theta, rel=1e-9)
            assert again.overlap == pytest.approx(outlier.overlap, rel=1e-9)
            assert 0 < outlier.overlap <= 1
            seen.add(outlier.side)
    assert seen == {"above", "below", "between"}


def test_a_signal_eigenvalue_is_the_same_spike_in_both_readings():
    """A spike on a zero spectrum plus a semicircle: as an addition to the noise, or embedded in the signal."""
    embedded = SemicircleSpikes([0.0], variance=0.7)
    added = AdditiveSpikes(SemicircleSum([0.0], variance=0.7))
    for theta in (1.0, -2.0, 0.5):
        for a, b in zip(embedded.outliers(theta), added.outliers(theta), strict=True):
            assert (a.location, a.overlap) == pytest.approx((b.location, b.overlap), rel=1e-11)
    assert embedded.outliers(0.8) == ()
    assert [t.spike for t in embedded.thresholds()] == pytest.approx([-np.sqrt(0.7), np.sqrt(0.7)], rel=1e-14)


def test_spiked_sample_covariance_in_both_readings():
    embedded, product = WishartSpikes([1.0], ratio=0.25), MultiplicativeSpikes(WishartProduct(0.25, 0.0))
    assert embedded.threshold() == pytest.approx(1.5, rel=1e-14)
    for spike in (1.6, 2.0, 9.0):
        (a,), (b,) = embedded.outliers(spike), product.outliers(spike - 1)
        assert (a.location, a.overlap) == pytest.approx((b.location, b.overlap), rel=1e-10)
        assert embedded.invert(a.location).spike == pytest.approx(spike, rel=1e-11)
    assert embedded.outliers(1.45) == ()


def test_spike_below_a_wide_bulk():
    """δ > 1: a weak additive spike stands below the bulk, at (t+1)(t+δ)/t with t = θ − δ."""
    delta, theta = 4.0, 0.5
    spikes = AdditiveSpikes(WishartProduct(delta, 0.0))
    t = theta - delta
    below = [o for o in spikes.outliers(theta) if o.location < 1]
    assert len(below) == 1
    assert below[0].location == pytest.approx((t + 1) * (t + delta) / t, rel=1e-12)
    assert below[0].overlap == pytest.approx(1 - delta / t**2, rel=1e-10)


def test_sampled_bulk_overlaps_and_shrinkage():
    """Eigenvectors of A + noise, d = 400: window averages against the curve; the estimate beats the raw spectrum."""
    rng = np.random.default_rng(4)
    size, s = 400, 0.5
    signal = np.repeat([-1.0, 2.0], size // 2)
    noise = rng.standard_normal((size, size))
    noise = (noise + noise.T) * np.sqrt(s / (2 * size))
    value, vector = np.linalg.eigh(np.diag(signal) + noise)
    law = SemicircleSum(signal, variance=s)
    measured = (vector[: size // 2] ** 2).sum(axis=0) * 2
    inside = np.array([any(a < x < b for a, b in law.support()) for x in value])
    predicted = semicircle_overlap(law, value[inside], -1.0)
    for part in np.array_split(np.arange(inside.sum()), 5):
        assert measured[inside][part].mean() == pytest.approx(predicted[part].mean(), abs=0.05)
    shrunk = semicircle_shrinkage(law, value)
    loss = lambda diagonal: np.sum(((vector * diagonal) @ vector.T - np.diag(signal)) ** 2) / size  # noqa: E731
    best = (vector**2 * signal[:, None]).sum(axis=0)
    assert loss(shrunk) < 1.02 * loss(best)
    assert loss(shrunk) < 0.8 * loss(value)
    x, mass, _ = law.quadrature()
    assert mass @ semicircle_overlap(law, x, -1.0) == pytest.approx(1, abs=1e-12)
    assert mass @ semicircle_shrinkage(law, x) == pytest.approx(0.5, abs=1e-12)


@pytest.mark.parametrize("ratio", [0.5, 2.0])
def test_wishart_shrinkage_of_white_noise_is_the_identity(ratio):
    law = WishartProduct(ratio, 0.0)
    low, high = law.support()
    x = np.linspace(low, high, 7)[1:-1]
    assert wishart_shrinkage(law, ratio, x) == pytest.approx(np.ones(5), abs=1e-10)
    assert wishart_overlap(law, ratio, x, 1.0) == pytest.approx(np.ones(5), abs=1e-10)
    if ratio > 1:
        assert wishart_shrinkage(law, ratio, 0.0) == pytest.approx(1, abs=1e-10)
    else:
        with pytest.raises(ValueError, match="x must be > 0 for ratio <= 1"):
            wishart_shrinkage(law, ratio, 0.0)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: AdditiveSpikes(SEMICIRCLE).outliers(0.0), "spike must be finite and not 0"),
        (lambda: AdditiveSpikes(SEMICIRCLE).outliers(np.nan), "spike must be finite"),
        (lambda: AdditiveSpikes(SEMICIRCLE).invert(0.3), "must lie outside the bulk"),
        (lambda: MultiplicativeSpikes(SEMICIRCLE), "bulk must be a law on"),
        (lambda: MultiplicativeSpikes(WishartProduct(0.5, 0.25)).outliers(-1.5), "spike must be > -1"),
        (lambda: WishartSpikes([-1.0, 1.0], ratio=0.5), "population must be >= 0"),
        (lambda: WishartSpikes([1.0], ratio=0.0), "ratio must be > 0"),
        (lambda: WishartSpikes([1.0], ratio=0.5).invert(1.0), "above the sample bulk's edge"),
        (lambda: WishartSpikes([1.0], ratio=0.5).outliers(-2.0), "spike must be > 0"),
        (lambda: wishart_shrinkage(WishartProduct(0.5, 0.0), 0.5, -1.0), "x must be > 0"),
        (lambda: SemicircleSpikes([0.0], variance=1.0).invert(0.1), "must lie outside the bulk"),
    ],
)
def test_bad_input(call, says):
    with pytest.raises(ValueError, match=says):
        call()
