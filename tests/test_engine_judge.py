"""The judge on synthetic residuals whose limit is known: calibrated scores, refutations, and each kind of verdict.

Each distributional test is deterministic in its generator; its bounds are those of the count at the stated level.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from verify import judge
from verify.judge import Levels

PLANS = {
    "quick": {64: 400, 128: 400, 256: 60, 512: 40},
    "thirty": {64: 30, 128: 30, 256: 30, 512: 30},
    "seven": {64: 400, 96: 200, 128: 200, 192: 60, 256: 60, 384: 30, 512: 30},
}
RATES = {"soft edge": (2 / 3, 1.0, 2 / 3), "outlier": (1.0, 2.0, 0.5)}
LEVELS = Levels.of_run(200)


def residuals(plan, rate, next_rate, spread, generator, limit=0.0, noise="normal"):
    """Residuals with limit, two orders of bias, and noise that falls as N^(−spread)."""
    draw = {
        "normal": lambda count: generator.normal(size=count),
        "skewed": lambda count: generator.exponential(size=count) - 1,
    }[noise]
    return {
        size: limit + 0.7 * size**-rate - 2 * size**-next_rate + draw(count) * size**-spread
        for size, count in plan.items()
    }


def false_alarms_allowed(level: float, trials: int) -> int:
    """A count that a true rate of `level` exceeds with probability 1e-4."""
    return int(stats.binom.isf(1e-4, trials, level))


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("rates", RATES)
def test_scores_are_standard_normal_under_the_hypothesis(plan: str, rates: str) -> None:
    rate, next_rate, spread = RATES[rates]
    generator, trials = np.random.default_rng(5), 400
    fits = [
        judge.fit_limit(residuals(PLANS[plan], rate, next_rate, spread, generator), rate, next_rate, LEVELS)
        for _ in range(trials)
    ]
    scores, probabilities = np.array([fit.z for fit in fits]), np.array([fit.fit_probability for fit in fits])
    assert abs(scores.mean()) < 0.2
    assert 0.88 < scores.std() < 1.12
    for level in (0.05, 0.01):
        assert np.sum(2 * stats.norm.sf(np.abs(scores)) < level) <= false_alarms_allowed(level, trials)
        assert np.sum(probabilities < level) <= false_alarms_allowed(level, trials)
    assert stats.kstest(probabilities, "uniform").pvalue > 1e-3


def test_skewed_residuals_raise_no_more_alarms_than_normal_ones() -> None:
    generator, trials = np.random.default_rng(6), 1000
    scores = [
        judge.fit_limit(residuals(PLANS["quick"], 1, 2, 0.5, generator, noise="skewed"), 1, 2, LEVELS).z
        for _ in range(trials)
    ]
    assert np.sum(2 * stats.norm.sf(np.abs(scores)) < 1e-3) <= false_alarms_allowed(1e-3, trials)


@pytest.mark.parametrize("rates", RATES)
def test_ten_standard_errors_are_refuted(rates: str) -> None:
    rate, next_rate, spread = RATES[rates]
    generator = np.random.default_rng(7)
    for _ in range(60):
        samples = residuals(PLANS["quick"], rate, next_rate, spread, generator)
        se = judge.fit_limit(samples, rate, next_rate, LEVELS).se
        shifted = {size: values + 10 * se for size, values in samples.items()}
        verdict = judge.judge_limit(shifted, rate=rate, next_rate=next_rate, resolution=1, levels=LEVELS)
        assert verdict.verdict == judge.REFUTED


def test_the_standard_error_is_the_spread_of_the_limits() -> None:
    generator = np.random.default_rng(8)
    fits = [judge.fit_limit(residuals(PLANS["thirty"], 1, 2, 0.5, generator), 1, 2, LEVELS) for _ in range(400)]
    limits = np.array([fit.limit for fit in fits])
    assert np.mean([fit.se**2 for fit in fits]) == pytest.approx(limits.var(), rel=0.2)


def test_one_exponent_is_told_from_another() -> None:
    generator = np.random.default_rng(9)
    samples = {size: 3 * size**-0.5 + 0.01 * generator.normal(size=400) for size in (16, 64, 256, 1024, 4096)}
    verdict = judge.judge_limit(
        {size: values + 3 for size, values in samples.items()},
        rate=1,
        next_rate=2,
        resolution=1,
        levels=LEVELS,
        rivals={"": samples},
    )
    assert verdict.fit is not None
    assert verdict.fit.fit_probability < LEVELS.fit
    assert verdict.fit.inflation > 1
    alone = judge.judge_limit(samples, rate=1, next_rate=2, resolution=10, levels=LEVELS, rivals={"": samples})
    assert alone.verdict != judge.SUPPORTED


def test_a_profile_holds_the_limit_at_any_exponent_of_its_interval() -> None:
    generator = np.random.default_rng(10)
    narrow = wide = 0
    for true_rate in (0.5, 0.6, 0.75, 0.9):
        for _ in range(10):
            samples = residuals(PLANS["quick"], true_rate, 1.5, 0.5, generator)
            fit = judge.fit_limit(samples, 0.7, 1.5, LEVELS, rates=(0.5, 0.9))
            single = judge.fit_limit(samples, true_rate, 1.5, LEVELS)
            assert abs(fit.z) <= abs(single.z) + 1e-9
            assert fit.half_width >= single.half_width * 0.999
            narrow, wide = narrow + (abs(single.z) > 3), wide + (abs(fit.z) > 3)
            moved = {size: values + 40 * single.half_width for size, values in samples.items()}
            assert judge.fit_limit(moved, 0.7, 1.5, LEVELS, rates=(0.5, 0.9)).z > LEVELS.bound
    assert wide <= narrow


@pytest.fixture
def true_samples():
    return residuals(PLANS["quick"], 1, 2, 0.5, np.random.default_rng(11))


def ask(samples, **more):
    settings = {"rate": 1, "next_rate": 2, "resolution": 1.0, "levels": LEVELS, **more}
    return judge.judge_limit(samples, **settings)


def shifted(samples, by):
    return {size: values + by for size, values in samples.items()}


def test_support_needs_resolution_and_every_rival_refuted(true_samples) -> None:
    far, near = shifted(true_samples, 5), shifted(true_samples, 1e-3)
    assert ask(true_samples, rivals={"far": far}).verdict == judge.SUPPORTED
    assert "no rival" in ask(true_samples).reason
    survivor = ask(true_samples, rivals={"far": far, "near": near})
    assert survivor.verdict == judge.UNRESOLVED
    assert "near" in survivor.reason
    assert survivor.remedy
    blunt = ask(true_samples, rivals={"far": far}, resolution=1e-6)
    assert blunt.verdict == judge.UNRESOLVED
    assert "times as many" in blunt.remedy
    assert survivor.rivals[0].power > 0.999 > survivor.rivals[1].power


def test_a_rival_that_does_not_fluctuate_is_not_refuted(true_samples) -> None:
    still = {size: np.zeros_like(values) + 7 for size, values in true_samples.items()}
    assert not ask(true_samples, rivals={"still": still}).rivals[0].refuted


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda samples: dict(list(samples.items())[:3]), "3 sizes"),
        (lambda samples: {size: values[:29] for size, values in samples.items()}, "30 replicates"),
        (lambda samples: {size: values * 0 + 1 for size, values in samples.items()}, "does not fluctuate"),
    ],
)
def test_residuals_without_statistics_are_unresolved_with_a_reason(true_samples, change, word) -> None:
    verdict = ask(change(true_samples), rivals={"far": shifted(true_samples, 5)})
    assert verdict.verdict == judge.UNRESOLVED
    assert word in verdict.reason
    assert verdict.remedy


def test_a_size_with_few_replicates_is_left_out(true_samples) -> None:
    short = {**true_samples, 1024: np.zeros(5)}
    verdict = ask(short, rivals={"far": shifted(true_samples, 5)})
    assert verdict.sizes == (64, 128, 256, 512)
    assert verdict.left_out == {1024: 5}
    assert verdict.limit == ask(true_samples).limit


def test_orders(true_samples) -> None:
    above, below = shifted(true_samples, 5), shifted(true_samples, -5)
    settings = {"rate": 1, "next_rate": 2, "resolution": 1.0, "levels": LEVELS}
    assert judge.judge_order(above, rivals={"reversed": below}, **settings).verdict == judge.SUPPORTED
    assert judge.judge_order(below, rivals={"reversed": above}, **settings).verdict == judge.REFUTED
    tie = judge.judge_order(true_samples, rivals={"reversed": true_samples}, **settings)
    assert tie.verdict == judge.UNRESOLVED
    assert "tie" in tie.remedy
    assert judge.judge_order(above, rivals={"also true": above}, **settings).verdict == judge.UNRESOLVED


@pytest.mark.parametrize("statistic", ["standard deviation", "mean"])
def test_exponents(statistic: str) -> None:
    generator = np.random.default_rng(12)
    sizes = (32, 64, 128, 256, 512, 1024)
    noise = {size: generator.normal(size=600) for size in sizes}
    if statistic == "mean":
        samples = {size: (1 + 0.1 * noise[size]) * size**-0.5 * (1 + 1 / size) for size in sizes}
    else:
        samples = {size: 3 + noise[size] * size**-0.5 * (1 + 1 / size) for size in sizes}
    settings = {"statistic": statistic, "next_rate": 1, "resolution": 0.5, "levels": LEVELS}
    right = judge.judge_exponent(samples, predicted=0.5, rivals={"1": (samples, 1.0)}, **settings)
    assert right.verdict == judge.SUPPORTED
    assert right.limit is not None
    assert abs(right.limit) < 0.1
    assert (
        judge.judge_exponent(samples, predicted=1.0, rivals={"½": (samples, 0.5)}, **settings).verdict == judge.REFUTED
    )


def test_scores_of_exponents_are_calibrated() -> None:
    generator = np.random.default_rng(13)
    scores = []
    for _ in range(300):
        samples = {size: generator.normal(size=60) * size**-0.5 for size in (32, 64, 128, 256, 512)}
        scores.append(judge.fit_exponent(samples, "standard deviation", 1, 0.5, LEVELS).z)
    assert 0.85 < np.std(scores) < 1.15
    assert np.sum(2 * stats.norm.sf(np.abs(scores)) < 0.01) <= false_alarms_allowed(0.01, 300)


def test_an_unclear_mean_has_no_exponent() -> None:
    generator = np.random.default_rng(14)
    samples = {size: generator.normal(size=100) for size in (32, 64, 128, 256)}
    verdict = judge.judge_exponent(
        samples, statistic="mean", predicted=1, next_rate=1, resolution=1, levels=LEVELS, rivals={}
    )
    assert "not clear of 0" in verdict.reason
    with pytest.raises(ValueError, match="statistic must be"):
        judge.log_statistic(np.arange(9.0), "median")


def test_the_jackknife_knows_the_error_of_a_log_spread() -> None:
    generator = np.random.default_rng(15)
    values = [judge.log_statistic(generator.normal(size=100), "standard deviation") for _ in range(2000)]
    logs, variances = np.array(values).T
    assert abs(logs.mean()) < 4 * logs.std() / np.sqrt(len(logs))  # log 1, without bias
    assert variances.mean() == pytest.approx(logs.var(), rel=0.15)


def test_exact_claims_need_every_draw() -> None:
    right, wrong = {8: np.zeros(3), 16: np.zeros(3)}, {8: np.zeros(3), 16: np.array([0, 1.0, 0])}
    assert judge.judge_exact(right, tolerance=1e-12, rivals={"off": wrong}).verdict == judge.SUPPORTED
    refuted = judge.judge_exact(wrong, tolerance=1e-12, rivals={"right": right})
    assert refuted.verdict == judge.REFUTED
    assert "1 of 6 draws" in refuted.reason
    assert judge.judge_exact(right, tolerance=1e-12, rivals={"same": right}).verdict == judge.UNRESOLVED
    assert judge.judge_exact({8: np.zeros(0)}, tolerance=1e-12).verdict == judge.UNRESOLVED


def test_a_claim_holds_at_all_points_and_a_rival_falls_at_one(true_samples) -> None:
    far, wrong = shifted(true_samples, 5), shifted(true_samples, 6)
    fine = ask(true_samples, rivals={"rival": far})
    rival_survives = ask(true_samples, rivals={"rival": true_samples})
    refuted = ask(wrong, rivals={"rival": far})
    blunt = ask(true_samples, rivals={"rival": far}, resolution=1e-9)
    assert judge.combine([fine, rival_survives]).verdict == judge.SUPPORTED
    assert judge.combine([rival_survives, rival_survives]).verdict == judge.UNRESOLVED
    assert judge.combine([fine, refuted, blunt]).verdict == judge.REFUTED
    assert judge.combine([fine, blunt]).verdict == judge.UNRESOLVED
    assert "resolution" in judge.combine([fine, blunt]).reason
    assert judge.combine([ask(true_samples), ask(true_samples)]).verdict == judge.UNRESOLVED
    assert judge.combine([fine]) is fine
    with pytest.raises(ValueError, match="at least one point"):
        judge.combine([])


def test_the_looks_spend_no_more_than_the_family() -> None:
    tests = 123
    spent = [Levels.of_run(tests, "quick"), Levels.of_run(tests, "standard")]
    spent += [Levels.of_run(tests, "full", look) for look in range(1, 60)]
    assert sum(tests * (level.limit + level.fit) for level in spent) <= judge.FAMILY_LEVEL * (1 + 1e-12)
    assert Levels.of_run(tests, "full", 0) == Levels.of_run(tests, "standard")
    for wrong in ({"tests": 0}, {"tests": 1, "look": -1}, {"tests": 1, "tier": "slow"}):
        with pytest.raises(ValueError, match=r"tests|tier"):
            Levels.of_run(**wrong)


def test_exponents_of_a_limit_must_grow(true_samples) -> None:
    with pytest.raises(ValueError, match="0 < rate < next"):
        judge.fit_limit(true_samples, 2, 1, LEVELS)
    with pytest.raises(ValueError, match="0 < rate < next"):
        judge.fit_limit(true_samples, 1, 1.2, LEVELS, rates=(0.5, 1.5))
    with pytest.raises(ValueError, match="4 sizes"):
        judge.fit_limit(dict(list(true_samples.items())[:3]), 1, 2, LEVELS)


@given(st.floats(-1e4, 1e4), st.floats(2, 1e6))
def test_the_normal_score_is_finite_odd_and_smaller_than_the_ratio(ratio: float, degrees: float) -> None:
    score = judge.normal_score(ratio, degrees)
    assert np.isfinite(score)
    assert score == -judge.normal_score(-ratio, degrees)
    assert abs(score) <= abs(ratio) * (1 + 1e-6) + 1e-12


@given(st.floats(0.1, 30), st.floats(-0.9, 0.9))
def test_the_skewed_quantile_inverts_the_transformation(quantile: float, skewness: float) -> None:
    edge = judge._skewed_quantile(quantile, skewness)
    assert edge >= quantile
    assert max(abs(judge._unskewed(side * edge * 1.001, skewness)) for side in (-1, 1)) >= quantile * 0.999
