"""Judgement of residuals: pure functions on arrays of replicates, free of sampling, of SymPy and of laws.

A limit is extrapolated by least squares over growing sizes, with Student tails that honour the number of
replicates; `Levels` spends the family-wise error over all tests of the registry and over the looks of a long run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy import special

Array = NDArray[np.float64]

FAMILY_LEVEL = 1e-3
MINIMUM_REPLICATES = 30
MINIMUM_SIZES = 4
PROFILE_POINTS = 13
SAFE_MARGIN = 3.1  # a rival this far beyond the bound is missed by fewer than 1 in 1000 repetitions

SUPPORTED, REFUTED, UNRESOLVED = "SUPPORTED", "REFUTED", "UNRESOLVED"


@dataclass(frozen=True)
class Levels:
    """The error that one test may spend: `limit` for |z| and `fit` for the goodness of fit, both two-sided."""

    limit: float
    fit: float

    @classmethod
    def of_run(cls, tests: int, tier: str = "quick", look: int = 0, family: float = FAMILY_LEVEL) -> Levels:
        """Bonferroni over `tests` (of the whole registry, so that a selection changes nothing) and over the looks.

        The quick tier spends family/2, the standard tier family/4, look j >= 1 of the full tier family/2^(j+2)
        (look 0 of the full tier is the standard tier); together at most `family`. Raises ValueError for an unknown
        tier, tests < 1 or look < 0.
        """
        if tier not in ("quick", "standard", "full"):
            raise ValueError(f"tier must be quick, standard or full, got {tier!r}")
        if tests < 1 or look < 0:
            raise ValueError(f"tests must be >= 1 and look >= 0, got tests={tests}, look={look}")
        share = family / 2 if tier == "quick" else family / 2 ** (look + 2)
        return cls(limit=share / (2 * tests), fit=share / (2 * tests))

    @property
    def bound(self) -> float:
        """The |z| beyond which a hypothesis is refuted."""
        return -float(special.ndtri(self.limit / 2))


@dataclass(frozen=True)
class Fit:
    """The extrapolation of one set of residuals.

    `limit` ± `half_width` is the family-wise interval, `se` one standard error, `z` the normal score of the Student
    ratio (0 inside a profile that reaches the hypothesis), `fit_probability` that of a worse fit, `coefficients`
    those of `rates` (the exponents (rate, next) of the fitted curve), `inflation` the factor by which a bad fit
    widened the error.
    """

    limit: float
    se: float
    z: float
    half_width: float
    fit_probability: float
    coefficients: tuple[float, ...]
    rates: tuple[float, float]
    inflation: float = 1.0


@dataclass(frozen=True)
class Rival:
    """A wrong formula put to the same test: refuted or not, and the chance that a repetition refutes it again."""

    name: str
    z: float | None
    refuted: bool
    power: float
    fit: Fit | None = None


@dataclass(frozen=True)
class Judgement:
    """The verdict on one test (one point of a claim) or on a whole claim: its numbers, its reason, and the way out."""

    verdict: str
    reason: str
    remedy: str = ""
    limit: float | None = None
    se: float | None = None
    z: float | None = None
    half_width: float | None = None
    resolution: float | None = None
    fit: Fit | None = None
    rivals: tuple[Rival, ...] = ()
    sizes: tuple[int, ...] = ()
    replicates: tuple[int, ...] = ()
    left_out: Mapping[int, int] = field(default_factory=dict)
    consistent: bool = False  # the statement itself passed: only its rivals can still keep it unresolved

    @property
    def outcome(self) -> str:
        """What is said of the statement alone, whatever its rivals do: refuted, consistent or unresolved."""
        return "refuted" if self.verdict == REFUTED else "consistent" if self.consistent else "unresolved"


# -- Student arithmetic ---------------------------------------------------------------------------------------


def normal_score(ratio: float, degrees: float) -> float:
    """The normal deviate with the same tail probability as a Student ratio; finite for any finite ratio."""
    tail = float(special.stdtr(degrees, -abs(ratio)))
    if tail > 1e-280:
        score = -float(special.ndtri(tail))
    else:  # Wallace's approximation, where the tail itself underflows
        score = (8 * degrees + 1) / (8 * degrees + 3) * math.sqrt(degrees * math.log1p(ratio**2 / degrees))
    return math.copysign(score, ratio)


def welch_degrees(parts: Array, degrees: Array) -> float:
    """Welch–Satterthwaite degrees of freedom of a sum of independent variance estimates `parts`."""
    return float(parts.sum() ** 2 / np.sum(parts**2 / degrees))


@dataclass(frozen=True)
class _Regression:
    """Means at growing sizes on a design; the first coefficient is judged."""

    coefficients: Array
    se: float
    degrees: float
    fit_probability: float
    misfit: float  # chi-square per degree of freedom of the fit
    skewness: float = 0.0  # of the estimate of the first coefficient


def _regress(
    means: Array, variances: Array, degrees: Array, weights: Array, design: Array, skewness: float = 0.0
) -> _Regression:
    """Weighted least squares, with the standard error from each size's own variance (never from the weights).

    `skewness` is that of one replicate, the same at all sizes.
    """
    normal = design.T @ (weights[:, None] * design)
    projector = np.linalg.solve(normal, design.T * weights)
    parts = projector[0] ** 2 * variances
    probability, misfit = _goodness_of_fit(means, variances, degrees, design)
    se = math.sqrt(parts.sum())
    skewed = skewness * float(np.sum(projector[0] ** 3 * variances**1.5 / np.sqrt(degrees + 1))) / se**3
    return _Regression(projector @ means, se, welch_degrees(parts, degrees), probability, misfit, skewed)


def _unskewed(ratio: float, skewness: float) -> float:
    """Hall's (1992) transformation of a Student ratio of skewed data, where it brings the ratio nearer to 0.

    Taken one-sidedly: it mends the heavy tail of the ratio, and the noise of an estimated skewness never makes an
    alarm.
    """
    if abs(skewness) < 1e-9:
        return ratio
    corrected = ((1 + skewness * ratio / 3) ** 3 - 1) / skewness + skewness / 6
    return min(ratio, corrected, key=abs) if ratio * corrected > 0 else 0.0


def _skewed_quantile(quantile: float, skewness: float) -> float:
    """The largest |ratio| whose transformed value is still within `quantile` (the inverse of `_unskewed`)."""
    if abs(skewness) < 1e-9:
        return quantile
    inverse = [3 / skewness * (np.cbrt(1 + skewness * (side * quantile - skewness / 6)) - 1) for side in (-1, 1)]
    return max(quantile, *(abs(float(value)) for value in inverse))


def _goodness_of_fit(means: Array, variances: Array, degrees: Array, design: Array) -> tuple[float, float]:
    """Johansen's (1980) Welch–James test that the contrasts orthogonal to the design vanish.

    With one contrast it is Welch's t test; with many replicates it is the chi-square test of the fit.
    """
    rows, columns = design.shape
    contrasts = rows - columns
    complement = np.linalg.qr(design / np.abs(design).max(axis=0), mode="complete")[0][:, columns:]
    values = complement.T @ means
    covariance = complement.T @ (variances[:, None] * complement)
    statistic = float(values @ np.linalg.solve(covariance, values))
    shares = variances * np.einsum("jk,kj->j", complement, np.linalg.solve(covariance, complement.T))
    excess = float(np.sum(shares**2 / degrees))
    scale = contrasts + 2 * excess - 6 * excess / (contrasts + 2)
    denominator = contrasts * (contrasts + 2) / (3 * excess)
    return float(special.fdtrc(contrasts, denominator, statistic / scale)), statistic / contrasts


def _smooth_variances(sizes: Array, variances: Array, degrees: Array) -> Array:
    """Replicate variances as a power of the size: steadier weights than the estimates at single sizes.

    The weights only decide how efficient the fit is; its standard error uses each size's own estimate.
    """
    design = np.stack([np.ones_like(sizes), np.log(sizes)], axis=1)
    root = np.sqrt(degrees)
    slope, *_ = np.linalg.lstsq(root[:, None] * design, root * np.log(variances), rcond=None)
    return np.asarray(np.exp(design @ slope))


# -- limits ---------------------------------------------------------------------------------------------------


def _powers(sizes: Array, rate: float, next_rate: float) -> Array:
    return np.stack([np.ones_like(sizes), sizes**-rate, sizes**-next_rate], axis=1)


def fit_limit(
    samples: Mapping[int, Array],
    rate: float,
    next_rate: float,
    levels: Levels,
    rates: tuple[float, float] | None = None,
) -> Fit:
    """Fit E r(N) = L + b N^(−rate) + c N^(−next) to the residuals at each size.

    `samples` maps a size to its residuals (at least 2, not all equal); at least four sizes. With `rates` the limit
    is profiled over that interval of `rate`: its interval is the union over all exponents that fit acceptably, and
    its z the smallest among them. Raises ValueError on too few sizes or on exponents that are not 0 < rate < next.
    """
    low, high = rates if rates is not None else (rate, rate)
    if not 0 < low <= high < next_rate:
        raise ValueError(f"exponents must satisfy 0 < rate < next, got rate={rates or rate}, next={next_rate}")
    if len(samples) < MINIMUM_SIZES:
        raise ValueError(f"a limit needs at least {MINIMUM_SIZES} sizes, got {sorted(samples)}")
    sizes, means, variances, degrees = _moments(samples)
    weights = 1 / (_smooth_variances(sizes, variances * (degrees + 1), degrees) / (degrees + 1))
    skewness = _pooled_skewness(samples)
    exponents = [low] if low == high else list(np.linspace(low, high, PROFILE_POINTS))
    fits = []
    for exponent in exponents:
        regression = _regress(means, variances, degrees, weights, _powers(sizes, exponent, next_rate), skewness)
        fits.append(_as_fit(regression, 0.0, levels, (exponent, next_rate)))
    return fits[0] if len(fits) == 1 else _profile(fits, levels)


def _moments(samples: Mapping[int, Array]) -> tuple[Array, Array, Array, Array]:
    """Sizes, means, variances of the means, and degrees of freedom, by growing size."""
    order = sorted(samples)
    counts = np.array([len(samples[size]) for size in order], dtype=float)
    means = np.array([np.mean(samples[size]) for size in order])
    variances = np.array([np.var(samples[size], ddof=1) for size in order])
    return np.array(order, dtype=float), means, variances / counts, counts - 1


def _pooled_skewness(samples: Mapping[int, Array]) -> float:
    """The skewness of one replicate, pooled over the sizes: the shape of the fluctuations settles as they grow."""
    scores = [(values - np.mean(values)) / np.std(values) for values in samples.values()]
    return float(np.mean(np.concatenate(scores) ** 3))


def _as_fit(regression: _Regression, hypothesis: float, levels: Levels, rates: tuple[float, float]) -> Fit:
    """Confidence interval and score; a fit that is unacceptable widens the error by its own misfit."""
    bad = regression.fit_probability < levels.fit
    inflation = math.sqrt(max(1.0, regression.misfit)) if bad else 1.0
    limit, se = float(regression.coefficients[0]), regression.se * inflation
    quantile = -float(special.stdtrit(regression.degrees, levels.limit / 2))
    half_width = _skewed_quantile(quantile, regression.skewness) * se
    score = normal_score(_unskewed((limit - hypothesis) / se, regression.skewness), regression.degrees)
    coefficients = tuple(float(value) for value in regression.coefficients)
    return Fit(limit, se, score, half_width, regression.fit_probability, coefficients, rates, inflation)


def _profile(fits: Sequence[Fit], levels: Levels) -> Fit:
    """The union of the intervals over the exponents that fit acceptably (over all of them if none does)."""
    acceptable = [fit for fit in fits if fit.fit_probability >= levels.fit] or list(fits)
    best = max(acceptable, key=lambda fit: fit.fit_probability)
    low = min(fit.limit - fit.half_width for fit in acceptable)
    high = max(fit.limit + fit.half_width for fit in acceptable)
    signs = {math.copysign(1.0, fit.z) for fit in acceptable}
    score = 0.0 if len(signs) == 2 else min((fit.z for fit in acceptable), key=abs)
    half_width = (high - low) / 2
    return replace(best, limit=(high + low) / 2, half_width=half_width, z=score, se=half_width / levels.bound)


def usable(samples: Mapping[int, Array]) -> tuple[dict[int, Array], dict[int, int]]:
    """The sizes with enough replicates to know their own variance, and the others with their counts."""
    kept = {size: np.asarray(values, float) for size, values in samples.items() if len(values) >= MINIMUM_REPLICATES}
    return kept, {size: len(values) for size, values in samples.items() if size not in kept}


def unfit(samples: Mapping[int, Array], left_out: Mapping[int, int]) -> tuple[str, str] | None:
    """Why residuals cannot be extrapolated and what to do about it, or None if they can."""
    if len(samples) < MINIMUM_SIZES:
        short = "".join(f"; size {size} has {count}" for size, count in sorted(left_out.items()))
        return (
            f"{len(samples)} sizes with at least {MINIMUM_REPLICATES} replicates, {MINIMUM_SIZES} are needed{short}",
            f"declare at least {MINIMUM_SIZES} sizes with {MINIMUM_REPLICATES} replicates each",
        )
    still = [size for size, values in sorted(samples.items()) if np.ptp(values) == 0]
    if still:
        return (
            f"the residual does not fluctuate at size {', '.join(map(str, still))}: it has no statistics there",
            "judge a residual without randomness as exact",
        )
    return None


def judge_limit(
    samples: Mapping[int, Array],
    *,
    rate: float,
    next_rate: float,
    resolution: float,
    levels: Levels,
    rates: tuple[float, float] | None = None,
    rivals: Mapping[str, Mapping[int, Array]] | None = None,
) -> Judgement:
    """Does the residual tend to 0? `samples` (and each rival's) maps a size to residuals, one per replicate.

    SUPPORTED: the fit is acceptable, |z| within the bound, the family-wise half-width at most `resolution`, and
    every rival refuted. REFUTED: |z| beyond the bound. UNRESOLVED otherwise.
    """
    return _judge_extrapolation(samples, rate, next_rate, resolution, levels, rates, rivals or {}, order=False)


def judge_order(
    samples: Mapping[int, Array],
    *,
    rate: float,
    next_rate: float,
    resolution: float,
    levels: Levels,
    rates: tuple[float, float] | None = None,
    rivals: Mapping[str, Mapping[int, Array]] | None = None,
) -> Judgement:
    """Is the limit of the residual positive? SUPPORTED beyond the bound, REFUTED if negative beyond it.

    A rival is an order too; it is refuted if its own residual is negative beyond the bound. `resolution` is the
    gap that the plan was made for: an unresolved order with a smaller half-width is closer to a tie than that.
    """
    return _judge_extrapolation(samples, rate, next_rate, resolution, levels, rates, rivals or {}, order=True)


def _judge_extrapolation(
    samples: Mapping[int, Array],
    rate: float,
    next_rate: float,
    resolution: float,
    levels: Levels,
    rates: tuple[float, float] | None,
    rivals: Mapping[str, Mapping[int, Array]],
    order: bool,
) -> Judgement:
    kept, left_out = usable(samples)
    base = _undecided(kept, left_out, resolution)
    obstacle = unfit(kept, left_out)
    if obstacle:
        return replace(base, reason=obstacle[0], remedy=obstacle[1])
    fit = fit_limit(kept, rate, next_rate, levels, rates)
    judged = tuple(
        _judge_rival(name, usable(values)[0], rate, next_rate, levels, rates, order) for name, values in rivals.items()
    )
    base = replace(base, limit=fit.limit, se=fit.se, z=fit.z, half_width=fit.half_width, fit=fit, rivals=judged)
    return _order_verdict(base, fit, levels) if order else _limit_verdict(base, fit, levels)


def _undecided(kept: Mapping[int, Array], left_out: Mapping[int, int], resolution: float) -> Judgement:
    """A judgement that knows its plan and nothing else yet."""
    sizes = tuple(sorted(kept))
    counts = tuple(len(kept[size]) for size in sizes)
    return Judgement(UNRESOLVED, "", resolution=resolution, sizes=sizes, replicates=counts, left_out=dict(left_out))


def _judge_rival(
    name: str,
    samples: Mapping[int, Array],
    rate: float,
    next_rate: float,
    levels: Levels,
    rates: tuple[float, float] | None,
    order: bool,
) -> Rival:
    if unfit(samples, {}):
        # Without fluctuation (a rival that cancels the measured side) nothing can be told apart from 0.
        return Rival(name, 0.0, False, 0.0)
    fit = fit_limit(samples, rate, next_rate, levels, rates)
    distance = -fit.z if order else abs(fit.z)
    return Rival(name, fit.z, distance > levels.bound, _power(distance, levels), fit)


def _power(distance: float, levels: Levels) -> float:
    """The chance that a repetition of the draws refutes the rival, taking the observed distance for the true one."""
    return float(special.ndtr(distance - levels.bound))


def _limit_verdict(base: Judgement, fit: Fit, levels: Levels) -> Judgement:
    if abs(fit.z) > levels.bound:
        return replace(base, verdict=REFUTED, reason=f"|z| = {abs(fit.z):.1f} is beyond the bound {levels.bound:.1f}")
    if fit.fit_probability < levels.fit:
        return replace(base, reason=_misfit_reason(fit), remedy="declare the true exponents, or use larger sizes")
    resolution = base.resolution if base.resolution is not None else math.inf
    if fit.half_width > resolution:
        factor = (fit.half_width / resolution) ** 2
        return replace(
            base,
            reason=f"error {fit.half_width:.3g} is above the declared resolution {resolution:.3g}",
            remedy=f"{factor:.1f} times as many replicates, or larger sizes",
        )
    reason = f"the limit is 0 within {fit.half_width:.2g} and every rival is refuted"
    return _with_rivals(base, reason, levels)


def _order_verdict(base: Judgement, fit: Fit, levels: Levels) -> Judgement:
    if fit.z < -levels.bound:
        return replace(base, verdict=REFUTED, reason=f"the difference is negative: z = {fit.z:.1f}")
    if fit.fit_probability < levels.fit:
        return replace(base, reason=_misfit_reason(fit), remedy="declare the true exponents, or use larger sizes")
    if fit.z <= levels.bound:
        reason = f"the difference {fit.limit:.3g} is within its error {fit.half_width:.3g}"
        if base.resolution is not None and fit.half_width <= base.resolution:
            return replace(base, reason=reason, remedy="the two sides are closer than the declared resolution: a tie")
        return replace(base, reason=reason, remedy=_replicates_for(fit.z, levels))
    return _with_rivals(base, f"the difference is positive: z = {fit.z:.1f}, and every rival is refuted", levels)


def _misfit_reason(fit: Fit) -> str:
    return (
        f"the residual does not fall as N^(-{fit.rates[0]:.3g}) and N^(-{fit.rates[1]:.3g}): "
        f"probability of the fit {fit.fit_probability:.1g}"
    )


def _with_rivals(base: Judgement, reason: str, levels: Levels) -> Judgement:
    """The last condition of support: there is a rival, and none survives."""
    base = replace(base, consistent=True)
    if not base.rivals:
        return replace(base, reason="no rival: a check that cannot fail is no evidence", remedy="name a wrong formula")
    survivors = [rival for rival in base.rivals if not rival.refuted]
    if survivors:
        weakest = min(abs(rival.z or 0.0) for rival in survivors)
        names = ", ".join(rival.name for rival in survivors)
        return replace(
            base, reason=f"not refuted: {names}", remedy=_replicates_for(weakest, levels, "a stronger rival")
        )
    return replace(base, verdict=SUPPORTED, reason=reason)


def _replicates_for(z: float | None, levels: Levels, otherwise: str = "larger sizes") -> str:
    """How many times the replicates would put this score safely beyond the bound."""
    factor = ((levels.bound + SAFE_MARGIN) / max(abs(z or 0.0), 1e-3)) ** 2
    return f"{factor:.1f} times as many replicates" if factor < 1000 else f"{otherwise}: replicates alone would not do"


# -- exponents ------------------------------------------------------------------------------------------------


def log_statistic(values: Array, statistic: str) -> tuple[float, float]:
    """The logarithm of the standard deviation or of |mean| over replicates, and its variance (jackknife).

    The jackknife also removes the first-order bias. Raises ValueError on an unknown statistic.
    """
    count = len(values)
    total, squares = values.sum(), np.sum((values - values.mean()) ** 2)
    if statistic == "mean":
        full, leave_one_out = abs(values.mean()), np.abs((total - values) / (count - 1))
    elif statistic == "standard deviation":
        full = math.sqrt(squares / (count - 1))
        rest = squares - (values - values.mean()) ** 2 * count / (count - 1)
        leave_one_out = np.sqrt(np.maximum(rest, 0) / (count - 2))
    else:
        raise ValueError(f"statistic must be 'standard deviation' or 'mean', got {statistic!r}")
    logs = np.log(leave_one_out)
    corrected = count * math.log(full) - (count - 1) * logs.mean()
    return float(corrected), float((count - 1) / count * np.sum((logs - logs.mean()) ** 2))


def fit_exponent(
    samples: Mapping[int, Array], statistic: str, next_rate: float, predicted: float, levels: Levels
) -> Fit:
    """Fit log statistic = log A − e log N + c N^(−next); `limit` of the result is e − predicted."""
    sizes = np.array(sorted(samples), dtype=float)
    logs, variances = np.array([log_statistic(samples[int(size)], statistic) for size in sizes]).T
    degrees = np.array([len(samples[int(size)]) - 1 for size in sizes], dtype=float)
    design = np.stack([-np.log(sizes), np.ones_like(sizes), sizes**-next_rate], axis=1)
    regression = _regress(logs, variances, degrees, 1 / variances, design)
    fit = _as_fit(regression, predicted, levels, (predicted, next_rate))
    return replace(fit, limit=fit.limit - predicted)


def judge_exponent(
    samples: Mapping[int, Array],
    *,
    statistic: str,
    predicted: float,
    next_rate: float,
    resolution: float,
    levels: Levels,
    rivals: Mapping[str, tuple[Mapping[int, Array], float]] | None = None,
) -> Judgement:
    """Does the statistic of the left side fall as N^(−predicted)? A rival is (samples of its left side, exponent)."""
    kept, left_out = usable(samples)
    base = _undecided(kept, left_out, resolution)
    obstacle = unfit(kept, left_out) or _unclear_mean(kept, statistic)
    if obstacle:
        return replace(base, reason=obstacle[0], remedy=obstacle[1])
    fit = fit_exponent(kept, statistic, next_rate, predicted, levels)
    judged = []
    for name, (values, exponent) in (rivals or {}).items():
        theirs = usable(values)[0]
        if unfit(theirs, {}) or _unclear_mean(theirs, statistic):
            judged.append(Rival(name, 0.0, False, 0.0))
            continue
        other = fit_exponent(theirs, statistic, next_rate, exponent, levels)
        judged.append(Rival(name, other.z, abs(other.z) > levels.bound, _power(abs(other.z), levels), other))
    base = replace(base, limit=fit.limit, se=fit.se, z=fit.z, half_width=fit.half_width, fit=fit, rivals=tuple(judged))
    return _limit_verdict(base, fit, levels)


def _unclear_mean(samples: Mapping[int, Array], statistic: str) -> tuple[str, str] | None:
    """The logarithm of a mean needs a mean that is away from 0, with one sign at all sizes."""
    if statistic != "mean":
        return None
    ratios = {size: values.mean() / (values.std(ddof=1) / math.sqrt(len(values))) for size, values in samples.items()}
    if min(map(abs, ratios.values())) < 4 or len({ratio > 0 for ratio in ratios.values()}) > 1:
        near = min(ratios, key=lambda size: abs(ratios[size]))
        return f"the mean at size {near} is not clear of 0", "more replicates there"
    return None


# -- exact statements -----------------------------------------------------------------------------------------


def judge_exact(
    samples: Mapping[int, Array], *, tolerance: float, rivals: Mapping[str, Mapping[int, Array]] | None = None
) -> Judgement:
    """Does every draw satisfy the statement up to `tolerance`? No statistics: one draw off refutes."""
    order = tuple(sorted(samples))
    counts = tuple(len(samples[size]) for size in order)
    base = Judgement(UNRESOLVED, "", resolution=tolerance, sizes=order, replicates=counts)
    if not sum(counts):
        return replace(base, reason="no draw", remedy="declare replicates for this experiment")
    worst = _worst(samples)
    judged = tuple(_exact_rival(name, values, tolerance) for name, values in (rivals or {}).items())
    base = replace(base, limit=worst, rivals=judged)
    if worst > tolerance:
        wrong = sum(int(np.sum(np.abs(values) > tolerance)) for values in samples.values())
        return replace(base, verdict=REFUTED, reason=f"{wrong} of {sum(counts)} draws are off, by up to {worst:.3g}")
    return _with_rivals(base, f"all {sum(counts)} draws agree and every rival is refuted", Levels(1.0, 1.0))


def _worst(samples: Mapping[int, Array]) -> float:
    return max((float(np.max(np.abs(values))) for values in samples.values() if len(values)), default=0.0)


def _exact_rival(name: str, samples: Mapping[int, Array], tolerance: float) -> Rival:
    refuted = _worst(samples) > tolerance
    return Rival(name, None, refuted, float(refuted))


# -- several points of one claim ------------------------------------------------------------------------------


def combine(parts: Sequence[Judgement]) -> Judgement:
    """One verdict for a claim that must hold at several points.

    REFUTED if any point is; SUPPORTED if every point is consistent, fits and reaches its resolution, and every
    rival is refuted at one point at least (a formula that is wrong at one point is wrong). The numbers shown are
    those of the point that decides: the refuted one with the largest |z|, else the unresolved, else the largest |z|.
    """
    if not parts:
        raise ValueError("a claim needs at least one point, got none")
    if len(parts) == 1:
        return parts[0]
    rivals = tuple(_strongest(same) for same in zip(*(part.rivals for part in parts), strict=True))
    shown = max(parts, key=lambda part: (part.verdict == REFUTED, not part.consistent, abs(part.z or 0.0)))
    if not all(part.consistent for part in parts):
        return replace(shown, rivals=rivals)
    survivors = [rival for rival in rivals if not rival.refuted]
    if not rivals or survivors:
        still = next((part for part in parts if part.verdict == UNRESOLVED), shown)
        names = ", ".join(rival.name for rival in survivors)
        reason = f"not refuted at any point: {names}" if survivors else still.reason
        return replace(shown, verdict=UNRESOLVED, reason=reason, remedy=still.remedy, rivals=rivals)
    reason = f"all {len(parts)} points hold and every rival is refuted"
    return replace(shown, verdict=SUPPORTED, reason=reason, remedy="", rivals=rivals)


def _strongest(same: Sequence[Rival]) -> Rival:
    return max(same, key=lambda rival: (rival.refuted, abs(rival.z or 0.0)))
