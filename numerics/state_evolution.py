"""Solves the mean-field equations of a trained attention head: the fixed point, sweeps through folds, thresholds.

The six numbers are reduced to three logarithms (signal gain, noise power, scale), solved by Newton's method with
Broyden updates on a coarse quadrature and finished on a fine one; the stopping rule is the undamped residual.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import sympy as sp
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from derivations import spectral_learning as learning
from derivations import state_evolution as chapter
from derivations._expectations import SpectralTail
from numerics.attention_channel import QUICK, ChannelMeans, ManyTokenChannel, Scores, TwoTokenChannel
from numerics.compile import function
from numerics.error_causes import ErrorCauses, error_causes
from numerics.spectral_learning import LearnedSpectrum, Nodes, Target, WeightSpectrum, pair_slopes, target_of
from numerics.validate import check, scalar

Array = np.ndarray[Any, Any]

PENALTIES = ("nuclear", "frobenius")
TASKS = ("label", "sequence")
RESIDUAL = 1e-8
FINE_STEPS = 40
NEWTON_STEPS = 60
UNBOUNDED = 100.0  # logarithm of a field that no parameters give
PATIENCE = 8  # steps in which the residual must halve
LONGEST = 1.5  # of a Newton step, in any of the three logarithms
FEW_JUMPS = 1e-6  # share below which jumps hinder no search
JUMPS = 1e-3  # share of the divergence that may come from jumps before a solution counts as unstable
JUMPING = 1e-3  # relative error of m and q that is allowed there: no rule is exact for a field that jumps
UNSMOOTH = 1e-6  # residual that is allowed where any point jumps: a sum over points has steps there


class NotSolvedError(ArithmeticError):
    """No solution was found; the message says how far the search came and what to try."""


# -- laws, compiled -------------------------------------------------------------------------------------------------


@lru_cache
def _right(name: str) -> tuple[Any, tuple[Any, ...]]:
    """A law's right side, compiled, with a symbol for each spectral integral; and what the symbols stand for."""
    expression = getattr(chapter, name).right
    nodes = tuple(sorted(expression.atoms(SpectralTail), key=sp.default_sort_key))
    stand_ins = [sp.Symbol(f"integral_{index}") for index in range(len(nodes))]
    expression = expression.xreplace(dict(zip(nodes, stand_ins, strict=True)))
    plain = tuple(sorted(expression.free_symbols - set(stand_ins), key=lambda symbol: symbol.name))
    return function(expression, (*plain, *stand_ins)), (plain, nodes)


@lru_cache
def _integrand(node: Any) -> Any:
    symbols = (chapter.point, chapter.hilbert, chapter.variance, chapter.threshold, chapter.estimate)
    return function(node.args[0], symbols)


def evaluate(name: str, values: dict[Any, float], nodes: Nodes | None = None, estimate: Array | None = None) -> float:
    """A law of the chapter at these values, its spectral integrals taken over the nodes."""
    compiled, (plain, integrals) = _right(name)
    found = []
    for node in integrals:
        assert nodes is not None
        arguments = (nodes.x, nodes.hilbert, values.get(chapter.variance, 0.0), values.get(chapter.threshold, 0.0))
        integrand = _integrand(node)(*arguments, 0.0 if estimate is None else estimate)
        weight = nodes.weight if node.args[3] == -sp.oo else np.where(nodes.above, nodes.weight, 0.0)
        found.append(float(np.sum(weight * integrand)))
    return float(compiled(*(values[symbol] for symbol in plain), *found))


# -- the two halves of the equations --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Overlaps:
    """What the learned matrix is, given the field on its modes."""

    m: float
    q: float
    response: float
    spread: float
    excess: float
    rank: float
    trace: float
    scale: float = 0.0


@dataclass(frozen=True)
class Setting:
    """The fixed part of a problem: everything but the sample ratio and the penalty's strength."""

    target: Target
    noise: float
    tokens: int
    kappa: float
    beta: float
    beta_target: float
    penalty: str
    diagonal: float = 2.0

    @cached_property
    def channel(self) -> Any:
        """The quadrature over sequences, with its memory of proximal points."""
        if self.tokens == 2:
            return TwoTokenChannel(self.beta, self.beta_target, self.diagonal)
        return ManyTokenChannel(self.tokens, self.beta, self.beta_target)

    @property
    def label_square(self) -> float:
        """Square of the target's noisy scores."""
        return evaluate("label_square_law", {chapter.target_square: self.target.square, chapter.noise: self.noise})

    def level(self, lam: float) -> float:
        """The penalty on eigenvalues (nuclear norm), or on squares (Frobenius norm)."""
        if self.penalty == "frobenius":
            return lam
        return evaluate("penalty_level", {chapter.lam: lam, chapter.kappa: self.kappa})


def learned(setting: Setting, lam: float, gain: float, power: float, curvature: float) -> Overlaps:
    """The learned matrix for a field with these signal gain, noise power and curvature."""
    values = {
        chapter.signal_gain: gain,
        chapter.noise_power: power,
        chapter.curvature: curvature,
        chapter.level: setting.level(lam),
        chapter.target_square: setting.target.square,
        chapter.noise: setting.noise,
        chapter.label_square: setting.label_square,
    }
    if setting.penalty == "frobenius":
        found = {name: evaluate(f"frobenius_{name}", values) for name in ("square", "overlap", "response")}
        m, q = found["overlap"], found["square"]
        excess, defect = evaluate("frobenius_distance", values), evaluate("frobenius_defect", values)
        spread = _spread(values, excess, defect)
        return Overlaps(m, q, found["response"], spread, excess, np.nan, np.nan, evaluate("frobenius_scale", values))
    values[chapter.variance] = evaluate("variance_law", values)
    values[chapter.threshold] = evaluate("threshold_law", values)
    values[chapter.scale] = evaluate("scale_law", values)
    nodes = setting.target.nodes(values[chapter.variance], values[chapter.threshold])
    # Below the cut by the nodes' own word: a whole law's nodes go across it, where the estimate has a kink.
    estimate = np.where(nodes.above, _estimate()(nodes.x, values[chapter.threshold], values[chapter.scale]), 0.0)
    values[chapter.ambiguity] = evaluate("ambiguity_law", values, nodes)
    excess = evaluate("distance_law", values, nodes, estimate)
    defect = evaluate("defect_law", values, nodes, estimate)
    return Overlaps(
        m=setting.target.square - defect,
        q=evaluate("square_law", values, nodes),
        response=evaluate("response_law", values, nodes),
        spread=_spread(values, excess, defect),
        excess=excess,
        rank=evaluate("rank_law", values, nodes),
        trace=evaluate("trace_law", values, nodes),
        scale=values[chapter.scale],
    )


@lru_cache
def _estimate() -> Any:
    return function(chapter.learned_matrix.right, (chapter.point, chapter.threshold, chapter.scale))


def _spread(values: dict[Any, float], excess: float, defect: float) -> float:
    square = evaluate("small_residual", {**values, chapter.excess: excess, chapter.defect: defect})
    return float(np.sqrt(max(square, 0.0)))


def conjugates(setting: Setting, alpha: float, overlaps: Overlaps, means: ChannelMeans) -> tuple[float, float, float]:
    """Signal gain, noise power and curvature that the data give to a learned matrix."""
    values = {
        chapter.alpha: alpha,
        chapter.pull: means.pull,
        chapter.force: means.force,
        chapter.power: means.power,
        chapter.m: overlaps.m,
        chapter.label_square: setting.label_square,
        chapter.residual_spread: overlaps.spread,
    }
    if overlaps.spread == 0.0:  # no field beyond the target's: Stein's quotient is the divergence itself
        values[chapter.force], values[chapter.residual_spread] = means.smooth_divergence, 1.0
    names = ("signal_gain_law", "noise_power_law", "curvature_law")
    return tuple(evaluate(name, values) for name in names)  # type: ignore[return-value]


# -- the fixed point ------------------------------------------------------------------------------------------------


def field_of(logs: Array) -> tuple[float, float, float]:
    """Signal gain, noise power and curvature from the three logarithms."""
    gain, power, scale = np.exp(logs).tolist()
    return gain, power, float(np.exp(logs[0] - logs[2])) if scale else np.inf


def logs_of(field: tuple[float, float, float]) -> Array:
    """The three logarithms of a field; NaN where it is not positive."""
    gain, power, curvature = field
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.array([np.log(gain), np.log(power), np.log(gain / curvature)])


@dataclass
class Quadrature:
    """Which rule: the level of refinement, and which of the channel's rules, over which the mean is taken."""

    level: int
    parities: tuple[int, ...] = (0,)


COARSE = Quadrature(0)  # the search happens here; new minima of proximal points are looked for on finer rules


class Problem:
    """The fixed-point equations at given α and λ, in the logarithms of signal gain m̃, noise power q̃ and scale m̃/ṽ.

    The scale, not the curvature: near perfect recovery it tends to 1, and the distance from 1 is what matters.
    """

    def __init__(self, setting: Setting, alpha: float, lam: float) -> None:
        self.setting, self.alpha, self.lam = setting, alpha, lam
        self._last: tuple[Any, list[ChannelMeans]] | None = None
        self._learned: dict[bytes, Overlaps] = {}  # of the last fields: a residual's is asked for again

    @property
    def spent(self) -> bool:
        """Whether the budget of a search is spent."""
        return bool(self.setting.channel.work > self.setting.channel.budget)

    def overlaps(self, logs: Array) -> Overlaps:
        """The learned matrix at this field; NaN where the field is beyond all bounds."""
        if not np.isfinite(logs).all() or np.abs(logs).max() > UNBOUNDED:
            return Overlaps(*[np.nan] * 7)
        key = logs.tobytes()
        if key not in self._learned:
            if len(self._learned) > 8:
                self._learned.clear()
            with np.errstate(over="ignore", under="ignore"):
                self._learned[key] = learned(self.setting, self.lam, *field_of(logs))
        return self._learned[key]

    def scores(self, overlaps: Overlaps) -> Scores:
        """The law of the scores of a learned matrix."""
        return Scores(overlaps.m, overlaps.spread, overlaps.response, self.setting.label_square)

    def means(self, overlaps: Overlaps, rule: Quadrature, search: bool = False) -> list[ChannelMeans]:
        """The channel's means by each of the rule's parities."""
        key = (overlaps, rule.level, rule.parities)
        if not search and self._last is not None and self._last[0] == key:
            return list(self._last[1])
        scores = self.scores(overlaps)
        found = [self.setting.channel.means(rule.level, parity, scores, search) for parity in rule.parities]
        self._last = (key, found)
        return list(found)

    def residual(self, logs: Array, rule: Quadrature, search: bool = False) -> Array:
        """log of the new field over the old one; NaN if nothing is left."""
        overlaps = self.overlaps(logs)
        if not (overlaps.response > 0 and overlaps.m > 0 and np.isfinite(overlaps.q)):
            return np.full(3, np.nan)
        return self.new_logs(overlaps, ChannelMeans.merged(self.means(overlaps, rule, search))) - logs

    def new_logs(self, overlaps: Overlaps, means: ChannelMeans) -> Array:
        """The logarithms of the field that the data give to a learned matrix."""
        return logs_of(conjugates(self.setting, self.alpha, overlaps, means))

    def fine(self, level: int) -> Quadrature:
        """All rules of this level."""
        return Quadrature(level, self.setting.channel.rules)


def _jacobian(problem: Problem, logs: Array, at: Array, rule: Quadrature) -> Array:
    columns = []
    for step, axis in zip(_differences(problem, logs), np.eye(3), strict=True):
        columns.append((problem.residual(logs + step * axis, rule) - at) / step)
    return np.stack(columns, axis=1)


def _differences(problem: Problem, logs: Array) -> tuple[float, float, float]:
    """Steps of difference quotients: the scale matters on the scale of the noise."""
    gain, power, _ = field_of(logs)
    noise = float(np.sqrt(evaluate("variance_law", {chapter.signal_gain: gain, chapter.noise_power: power})))
    return 1e-5, 1e-5, min(1e-5, 1e-3 * noise)


@dataclass
class Found:
    """Where a search ended: the logarithms, the residual there, the Jacobian used last."""

    logs: Array
    residual: Array
    jacobian: Array | None

    @property
    def size(self) -> float:
        """Largest entry of the residual; infinite where it is not a number."""
        return float(np.abs(self.residual).max()) if np.isfinite(self.residual).all() else np.inf


def _newton(
    problem: Problem,
    logs: Array,
    rule: Quadrature,
    stop: float,
    steps: int = NEWTON_STEPS,
    jacobian: Array | None = None,
) -> Found:
    """Newton's method with Broyden updates; the Jacobian is taken anew where it does not lead down."""
    at, fresh = problem.residual(logs, rule, search=rule.level > COARSE.level), False
    history: list[float] = []
    for _ in range(steps):
        if not np.isfinite(at).all() or np.abs(at).max() <= stop or problem.spent:
            break
        history.append(float(np.linalg.norm(at)))
        if len(history) > PATIENCE and history[-1] > 0.5 * history[-1 - PATIENCE]:
            break
        if jacobian is None:
            jacobian, fresh = _jacobian(problem, logs, at, rule), True
        if not np.isfinite(jacobian).all():
            break
        try:
            move = -np.linalg.solve(jacobian, at)
        except np.linalg.LinAlgError:
            break
        move *= min(1.0, LONGEST / np.abs(move).max())
        fraction, trial = 1.0, np.full(3, np.nan)
        while fraction > 1e-3:
            trial = problem.residual(logs + fraction * move, rule)
            if np.isfinite(trial).all() and np.linalg.norm(trial) < (1 - 0.1 * fraction) * np.linalg.norm(at):
                break
            fraction /= 2 if fresh else 8
        else:
            if fresh:
                break
            jacobian = None
            continue
        change, move = trial - at, fraction * move
        slow = np.linalg.norm(trial) > 0.3 * np.linalg.norm(at)
        jacobian = None if slow else jacobian + np.outer(change - jacobian @ move, move) / (move @ move)
        logs, at, fresh = logs + move, trial, False
    return Found(logs, at, jacobian)


def _iterate(problem: Problem, overlaps: Overlaps, rule: Quadrature, steps: int) -> Array | None:
    """Plain iterations from a learned matrix: a start for Newton's method; None if they end with nothing learned."""
    logs = None
    for _ in range(steps):
        means = problem.means(overlaps, rule)[0]
        new = problem.new_logs(overlaps, means)
        if not np.isfinite(new).all():
            return logs
        logs = new
        overlaps = problem.overlaps(logs)
        if not (overlaps.response > 0 and overlaps.m > 0):
            return None
    return logs


def nothing_learned(problem: Problem) -> bool:
    """Whether S = 0 solves the equations: the field that the data give to it lies wholly below the threshold."""
    if problem.setting.penalty == "frobenius":
        return False
    share = _empty_share(problem, COARSE)
    if 1 / CLEAR < share < CLEAR:
        share = _empty_share(problem, problem.fine(1))
    return share >= 1


CLEAR = 1.2  # factor by which the coarse rule must decide whether anything is learned


def _empty_share(problem: Problem, rule: Quadrature) -> float:
    """The threshold over the upper edge of the noisy target, for the field that the data give to S = 0."""
    gain, power, _ = _empty_field(problem, rule)
    level = problem.setting.level(problem.lam)
    numbers = {chapter.signal_gain: gain, chapter.noise_power: power, chapter.level: level}
    top = problem.setting.target.top(evaluate("variance_law", numbers))
    return evaluate("threshold_law", numbers) / top


def _empty_field(problem: Problem, rule: Quadrature) -> tuple[float, float, float]:
    empty = Overlaps(0.0, 0.0, 1e-12, 0.0, problem.setting.target.square, 0.0, 0.0)
    apart = Problem(replace(problem.setting), problem.alpha, problem.lam)  # its proximal points are no start for others
    means = apart.means(empty, rule)
    return conjugates(problem.setting, problem.alpha, empty, ChannelMeans.merged(means))


# -- results --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LearnedAttention:
    """The minimum of the training loss in the limit of large d.

    `m`, `q`, `V`: overlap with the target, square, and response of the learned matrix. `train_loss` (data term),
    `test_error` (noisy label) and `test_error_clean` are per sample, summed over the T² entries of the attention.
    `excess` = q + Q₀ − 2m; `rank`: mass of the positive eigenvalues; `objective`: the whole loss over d².
    `residual`: largest relative change of the field in one undamped iteration; `quadrature_error`: relative error of m
    and q, for two tokens half the difference of two interlaced rules (in smooth sweeps the difference to a coarser
    rule), for more half the 95 % interval of eight scrambles (or, if larger, the difference to half as many points);
    `converged`: whether both are small enough (1e-8, or 1e-6 where proximal points jump; 1e-5 for two tokens, 1e-3 for
    more or where so many jump that the solution is not stable) and the point is admissible, else `note` says what to
    try. `replicon` < 1 and few `jumps` of the proximal point make it `stable`.
    """

    alpha: float
    lam: float
    m: float
    q: float
    V: float
    train_loss: float
    test_error: float
    test_error_clean: float
    excess: float
    rank: float
    objective: float
    residual: float
    quadrature_error: float
    converged: bool
    stable: bool
    replicon: float
    jumps: float
    variance: float
    threshold: float
    scale: float
    setting: Setting = field(repr=False)
    logs: Array = field(repr=False)
    note: str = ""

    def spectrum(self) -> LearnedSpectrum:
        """The law of the learned matrix's eigenvalues."""
        cut = self.setting.penalty == "nuclear"
        return LearnedSpectrum(self.setting.target, self.variance, self.threshold, self.scale, cut)

    def decomposition(self) -> ErrorCauses:
        """The squared distance from the target by its causes: overfitting, underfitting, approximation, mismatch."""
        cut = self.setting.penalty == "nuclear"
        return error_causes(self.setting.target, self.variance, self.threshold, self.scale, cut)

    def singular_values_of_weights(self) -> WeightSpectrum:
        """The law of the singular values of W/√d. Raises ValueError without factors (Frobenius penalty)."""
        if self.setting.penalty != "nuclear":
            raise ValueError(
                "penalty must be 'nuclear' for weights W to exist, got 'frobenius' (S is learned entry by entry)"
            )
        return WeightSpectrum(self.spectrum(), self.setting.kappa)


def solve(
    alpha: float,
    lam: float,
    kappa0: float | None = None,
    target: Any = None,
    noise: float = 0.0,
    tokens: int = 2,
    kappa: float = 1.0,
    beta: float = 1.0,
    beta_target: float = 1.0,
    penalty: str = "nuclear",
    task: str = "label",
    *,
    start: LearnedAttention | None = None,
) -> LearnedAttention:
    """The trained attention head in the limit d → ∞ at n = α d² sequences (laws of chapter `state_evolution`).

    Parameters
    ----------
    alpha, lam : α = n/d² > 0 and weight decay λ ≥ 0. λ = 0 without label noise and above `recovery_threshold` is the
        limit λ → 0⁺: the target itself, with all errors 0 (at β ≠ β₀ its β₀/β-fold, which has the same attention) and
        the limit's response V > 0. Below the threshold there are many minima at λ = 0, and none is singled out.
    kappa0, target : a Gaussian target of width κ₀ > 0, or the target's law or eigenvalues; exactly one of the two.
    noise : variance Δ ≥ 0 of the noise on the diagonal of the target's scores (half of it off the diagonal).
    tokens : T ≥ 2; beyond 2 by random sequences, to 1e-3 in m and q (beyond 8 tokens to 2e-3) as `quadrature_error`
        says, with a line of progress on a terminal.
    kappa : width κ = p/d of the factor; a warning if the solution's rank exceeds it.
    beta, beta_target : inverse temperatures of the learned softmax and of the target's.
    penalty : "nuclear" (weight decay on W) or "frobenius" ((λd/2)‖S‖²_F, no factors).
    task : "label" (the label is the attention matrix) or "sequence" (attention times tokens): the same limit.
    start : a solution nearby to start from.

    Returns a `LearnedAttention`; where the search fails, its best point with `converged=False` and a `note`. Raises
    ValueError for bad input.
    """
    ratio, decay = scalar(chapter.alpha, alpha), scalar(chapter.lam, lam)
    setting = _setting(kappa0, target, noise, tokens, kappa, beta, beta_target, penalty, task)
    found = _solve(setting, ratio, decay, None if start is None else start.logs)
    found.setting.channel.forget()  # results outlive the search
    _warn_of_width((found,))
    return found


def _warn_of_width(found: tuple[LearnedAttention, ...]) -> None:
    """Warn, once, if the factor is narrower than the rank of a solution."""
    wide = [one for one in found if one.converged and one.setting.penalty == "nuclear" and one.rank > one.setting.kappa]
    if wide:
        widest = max(wide, key=lambda one: one.rank)
        warnings.warn(
            f"kappa = {widest.setting.kappa:.6g} is below the rank {widest.rank:.6g} of the solution at alpha = "
            f"{widest.alpha:.6g}, lam = {widest.lam:.6g}: the factor's width binds and this theory does not hold "
            "(take kappa at least the rank, or a larger lam)",
            RuntimeWarning,
            stacklevel=3,
        )


def _setting(
    kappa0: Any,
    target: Any,
    noise: Any,
    tokens: Any,
    kappa: Any,
    beta: Any,
    beta_target: Any,
    penalty: Any,
    task: Any = "label",
) -> Setting:
    for name, value, allowed in (("penalty", penalty, PENALTIES), ("task", task, TASKS)):
        if value not in allowed:
            raise ValueError(f"{name} must be one of {', '.join(allowed)}, got {value!r}")
    return Setting(
        target_of(kappa0, target),
        scalar(chapter.noise, noise),
        int(scalar(chapter.tokens, tokens)),
        scalar(chapter.kappa, kappa),
        scalar(chapter.beta, beta),
        scalar(chapter.beta_target, beta_target),
        penalty,
    )


def _solve(setting: Setting, alpha: float, lam: float, start: Array | None = None) -> LearnedAttention:
    units = Units.of(setting)
    logs = None if start is None else start - units.shift
    return units.restore(_solve_plain(units.setting, alpha, lam * units.penalty, logs), setting, lam)


def _solve_plain(setting: Setting, alpha: float, lam: float, start: Array | None) -> LearnedAttention:
    problem = Problem(setting, alpha, lam)
    setting.channel.start()
    if recovers(problem):
        return _recovered(problem)
    if lam > 0 and nothing_learned(problem):
        return _empty(problem)
    found = _coarse(problem, start)
    return _finish(problem, found)


@dataclass(frozen=True)
class Units:
    """Learned matrices in units in which both softmaxes have the same temperature, S = ratio · S′ with β ratio = β₀.

    There a target that is recovered perfectly is S₀ itself, and the distance from it keeps its digits.
    """

    setting: Setting
    ratio: float
    penalty: float

    @classmethod
    def of(cls, setting: Setting) -> Units:
        """The units of a setting, and the setting in them."""
        ratio = setting.beta_target / setting.beta
        penalty = ratio if setting.penalty == "nuclear" else ratio**2  # it is linear in S, or quadratic
        return cls(setting if ratio == 1 else replace(setting, beta=setting.beta_target), ratio, penalty)

    @property
    def shift(self) -> Array:
        """What the logarithms of signal gain, noise power and scale are larger by in the original units."""
        return np.array([-1.0, -2.0, 1.0]) * float(np.log(self.ratio))

    def restore(self, found: LearnedAttention, setting: Setting, lam: float) -> LearnedAttention:
        """A solution in these units, told in the original ones."""
        if self.ratio == 1:
            return found
        c, square = self.ratio, setting.target.square
        return replace(
            found,
            lam=lam,
            m=c * found.m,
            q=c**2 * found.q,
            V=c**2 * found.V,
            excess=c**2 * found.excess + (c - 1) ** 2 * square + 2 * c * (c - 1) * (found.m - square),
            scale=c * found.scale,
            setting=setting,
            logs=found.logs + self.shift,
        )


def _first_guess(problem: Problem) -> Overlaps:
    square = problem.setting.target.square
    return Overlaps(0.7 * square, 0.7 * square, 1.0, float(np.sqrt(0.3 * square)), 0.3 * square, 1.0, 1.0)


COARSE_STOP = 1e-6
COARSE_ENOUGH = 3e-4  # where proximal points jump, the sum over points is not smooth below this
WEAK = 3e-3  # below, a search from scratch follows the solution from a stronger penalty
EASY = (0.03, 0.1, 0.01, 0.3, 1.0)  # penalties from which a search may start, as multiples of the target's scale


def _coarse(problem: Problem, start: Array | None) -> Found:
    """A solution on the coarse rule: from a start, from plain iterations, or followed from a stronger penalty."""
    best = Found(np.zeros(3), np.full(3, np.nan), None)
    if start is None and 0 < problem.lam < WEAK:
        best = _follow_penalty(problem)
        if best.size <= COARSE_ENOUGH:
            return best
    for logs in _starts(problem, start):
        if logs is None or problem.spent:
            continue
        found = _newton(problem, logs, COARSE, COARSE_STOP, steps=25)
        if found.size <= COARSE_ENOUGH:
            return found
        best = min(best, found, key=lambda candidate: candidate.size)
    if start is not None or problem.lam >= WEAK or problem.lam == 0:
        best = min(best, _follow_penalty(problem), key=lambda candidate: candidate.size)
    return best


def _starts(problem: Problem, start: Array | None) -> Iterator[Array | None]:
    """Fields to start from: the user's, then those that a good and an empty learned matrix lead to."""
    yield start
    problem.setting.channel.forget()
    yield _iterate(problem, _first_guess(problem), COARSE, 3)
    problem.setting.channel.forget()
    if problem.setting.penalty == "nuclear":
        yield logs_of(_empty_field(problem, COARSE))


def _follow_penalty(problem: Problem) -> Found:
    """Follow the solution from a strong penalty down to the one that is asked for."""
    setting, alpha = problem.setting, problem.alpha
    floor = max(problem.lam, 1e-12)
    for lam in (easy for easy in EASY if easy > 1.2 * floor):
        setting.channel.forget()
        easy = Problem(setting, alpha, lam)
        if nothing_learned(easy):
            continue
        for logs in _starts(easy, None):
            if logs is None:
                continue
            found = _newton(easy, logs, COARSE, COARSE_STOP, steps=25)
            if found.size <= COARSE_ENOUGH:
                ladder = _ladder(easy, found, floor)
                return ladder if ladder.size <= COARSE_ENOUGH else _along_branch(problem, easy, found, floor)
    return Found(np.zeros(3), np.full(3, np.nan), None)


def _ladder(easy: Problem, found: Found, floor: float) -> Found:
    """Down to a weak penalty in steps as long as Newton's method bears them, each predicted by the slope in log λ."""
    at, length = float(np.log(easy.lam)), 1.5
    goal = float(np.log(floor))
    while at > goal:
        rung = Problem(easy.setting, easy.alpha, float(np.exp(at)))
        slope = _slope_in_penalty(rung, found)
        while True:
            step = max(-length, goal - at)
            next_rung = Problem(easy.setting, easy.alpha, float(np.exp(at + step)) if at + step > goal else floor)
            trial = _newton(next_rung, found.logs + step * slope, COARSE, COARSE_STOP, steps=12)
            if trial.size <= COARSE_ENOUGH:
                break
            length /= 3
            if length < 0.02 or rung.spent:
                return Found(found.logs, np.full(3, np.nan), None)
        found, at, length = trial, at + step, 2 * length
    return found


def _slope_in_penalty(problem: Problem, found: Found) -> Array:
    """d(logs)/d(log λ) along the branch, by the implicit function theorem."""
    step = 1e-4
    here = problem.residual(found.logs, COARSE)
    moved = Problem(problem.setting, problem.alpha, problem.lam * float(np.exp(step))).residual(found.logs, COARSE)
    jacobian = _jacobian(problem, found.logs, here, COARSE)
    slope = -np.linalg.solve(jacobian, (moved - here) / step)
    return slope if np.isfinite(slope).all() else np.zeros(3)


def _along_branch(problem: Problem, easy: Problem, found: Found, floor: float) -> Found:
    """By arclength, through folds."""
    last = found
    for point in trace(easy.setting, "lam", easy.alpha, easy.lam, found.logs, floor):
        last = Found(point.logs, np.full(3, np.nan), None)
    return _newton(problem, last.logs, COARSE, COARSE_STOP)


# -- branches -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BranchPoint:
    """A point of a solution branch: the field, and the logarithm of the parameter that runs."""

    logs: Array
    parameter: float


def trace(
    setting: Setting,
    name: str,
    alpha: float,
    lam: float,
    logs: Array,
    stop: float,
    longest: float = 1.0,
    budget: int = 400,
) -> Iterator[BranchPoint]:
    """Follow a branch of solutions in log α or log λ (`name`: "alpha" or "lam") from a solution to `stop`.

    Pseudo-arclength continuation (Keller 1977): the parameter is an unknown like the others, so folds are passed. The
    last point has the parameter `stop`, unless the budget of steps ends first or the branch ends. Coarse rule.
    """
    goal = float(np.log(stop))
    current = np.append(logs, np.log(alpha if name == "alpha" else lam))
    direction = np.zeros(4)
    direction[3] = np.sign(goal - current[3])
    if direction[3] == 0:
        return

    def residual(point: Array) -> Array:
        value = float(np.exp(point[3]))
        return Problem(setting, value if name == "alpha" else alpha, lam if name == "alpha" else value).residual(
            point[:3], COARSE
        )

    length = min(0.3, abs(goal - current[3]))
    yield BranchPoint(current[:3], float(current[3]))
    previous = None
    for _ in range(budget):
        if Problem(setting, alpha, lam).spent:
            return
        tangent = direction if previous is None else (current - previous) / np.linalg.norm(current - previous)
        if previous is None:
            tangent = _tangent(residual, current, direction)
        moved = None
        while length > 1e-4:
            moved = _corrected(residual, current + length * tangent, tangent)
            if moved is not None and np.linalg.norm(moved[0] - current) < 2.5 * length:
                break
            moved, length = None, length / 2
        if moved is None:
            return
        point, effort = moved
        if (point[3] - goal) * (current[3] - goal) <= 0:
            share = (goal - current[3]) / (point[3] - current[3])
            yield BranchPoint((current + share * (point - current))[:3], goal)
            return
        previous, current = current, point
        yield BranchPoint(current[:3], float(current[3]))
        length = min(length * (1.6 if effort <= 4 else 1.0 if effort <= 8 else 0.6), longest)


def _tangent(residual: Any, point: Array, direction: Array) -> Array:
    jacobian = _full_jacobian(residual, point, residual(point))
    tangent = np.linalg.svd(jacobian)[2][-1]
    return np.asarray(tangent * np.sign(tangent @ direction) if tangent @ direction else tangent)


def _full_jacobian(residual: Any, point: Array, at: Array) -> Array:
    step = 1e-5
    return np.stack([(residual(point + step * axis) - at) / step for axis in np.eye(4)], axis=1)


def _corrected(residual: Any, guess: Array, tangent: Array) -> tuple[Array, int] | None:
    """Back onto the branch, orthogonally to the tangent; None if Newton's method does not get there."""
    point, at = guess, residual(guess)
    if not np.isfinite(at).all():
        return None
    matrix = np.vstack([_full_jacobian(residual, point, at), tangent])
    for effort in range(1, 16):
        if not np.isfinite(matrix).all():
            return None
        move = -np.linalg.solve(matrix, np.append(at, 0.0))
        if np.abs(move).max() > 2.0:
            return None
        point = point + move
        new = residual(point)
        if not np.isfinite(new).all() or np.linalg.norm(new) > 2 * np.linalg.norm(at):
            return None
        if np.abs(new).max() < (COARSE_STOP if effort < 6 else COARSE_ENOUGH):
            return point, effort
        change = np.append(new - at, 0.0)
        matrix = matrix + np.outer(change - matrix @ move, move) / (move @ move)
        at = new
    return None


# -- the last digits ------------------------------------------------------------------------------------------------


def _finish(problem: Problem, coarse: Found) -> LearnedAttention:
    """Refine the rule until its parts agree, and gather the result."""
    channel = problem.setting.channel
    found, error = coarse, np.inf
    for level in range(1, channel.levels):
        if not np.isfinite(found.logs).all() or coarse.size == np.inf:
            break
        rule = problem.fine(level)
        found = _newton(problem, found.logs, rule, RESIDUAL / 10, steps=FINE_STEPS, jacobian=found.jacobian)
        error = _quadrature_error(problem, found, rule)
        hope = channel.tolerance * channel.gain ** (channel.levels - 1 - level)
        if error <= channel.tolerance or error > hope or found.size > RESIDUAL or problem.spent:
            break
    return _gather(problem, found, problem.fine(min(level, channel.levels - 1)), error)


def _quadrature_error(problem: Problem, found: Found, rule: Quadrature) -> float:
    """Error of m and q, relative and to first order, from how far the solutions of the single rules lie apart.

    Two interlaced rules: half their difference. Random rules: half the 95 % interval of their mean; or the difference
    of the solutions from all points and from half of them, where that is larger.
    """
    if found.size > 1e-3:
        return np.inf
    here = problem.overlaps(found.logs)
    parts = problem.means(here, rule)
    mean = ChannelMeans.merged(parts)
    jacobian = found.jacobian if found.jacobian is not None else _jacobian(problem, found.logs, found.residual, COARSE)
    middle = problem.new_logs(here, mean)

    def moved(means: ChannelMeans) -> Array:
        shift = np.linalg.solve(jacobian, middle - problem.new_logs(here, means))
        there = problem.overlaps(found.logs + shift) if np.abs(shift).max() < 1 else Overlaps(*[np.inf] * 7)
        return np.array([there.m / here.m - 1, there.q / here.q - 1])

    single = np.stack([moved(part) for part in parts])
    if not np.isfinite(single).all():
        return np.inf
    errors = problem.setting.channel.confidence * single.std(axis=0, ddof=1) / np.sqrt(len(parts))
    return float(max(errors.max(), 0.0 if mean.half is None else np.abs(moved(mean.half)).max()))


def _gather(problem: Problem, found: Found, rule: Quadrature, error: float) -> LearnedAttention:
    setting = problem.setting
    overlaps = problem.overlaps(found.logs)
    means = problem.means(overlaps, rule)
    merged = ChannelMeans.merged(means)
    gain, power, curvature = field_of(found.logs)
    values = {
        chapter.alpha: problem.alpha,
        chapter.signal_gain: gain,
        chapter.noise_power: power,
        chapter.curvature: curvature,
        chapter.level: setting.level(problem.lam),
        chapter.mean_loss: merged.loss,
        chapter.trace: overlaps.trace,
        chapter.q: overlaps.q,
        chapter.slope_square: merged.slope_square,
    }
    variance, threshold, scale = _normalised(setting, values)
    values[chapter.pair_slopes] = _pairs(setting, variance, threshold, overlaps.rank)
    replicon = evaluate("replicon_law" if setting.penalty == "nuclear" else "frobenius_replicon", values)
    smooth, stein = (
        merged.smooth_divergence,
        merged.force / overlaps.spread if overlaps.spread > 0 else merged.smooth_divergence,
    )
    jumps = abs(smooth / stein - 1)
    noisy, clean = _test_errors(problem, overlaps, rule)
    rank = overlaps.rank if setting.penalty == "nuclear" else 1 - float(setting.target.noisy(variance).cdf(0.0))
    admissible = overlaps.response > 0 and overlaps.excess >= -1e-12 and merged.unfinished == 0
    still = found.size <= (UNSMOOTH if jumps > FEW_JUMPS else RESIDUAL)
    converged = bool(still and error <= _tolerance(setting, jumps) and admissible)
    return LearnedAttention(
        alpha=problem.alpha,
        lam=problem.lam,
        m=overlaps.m,
        q=overlaps.q,
        V=overlaps.response,
        train_loss=merged.loss,
        test_error=noisy,
        test_error_clean=clean,
        excess=overlaps.excess,
        rank=rank,
        objective=evaluate("objective_law" if setting.penalty == "nuclear" else "frobenius_objective", values),
        residual=found.size,
        quadrature_error=error,
        converged=converged,
        stable=bool(replicon < 1 and jumps < JUMPS),
        replicon=replicon,
        jumps=jumps,
        variance=variance,
        threshold=threshold,
        scale=scale,
        setting=setting,
        logs=found.logs,
        note=_caution(setting, error, jumps) if converged else _advice(problem, found, error, merged.unfinished, jumps),
    )


def _tolerance(setting: Setting, jumps: float) -> float:
    """Relative error of m and q up to which a solution counts as found."""
    return float(max(setting.channel.tolerance, JUMPING if jumps > JUMPS else 0.0))


def _caution(setting: Setting, error: float, jumps: float) -> str:
    """What is said of a solution that is found, but known to fewer digits than others."""
    if jumps <= JUMPS or error <= setting.channel.tolerance:
        return ""
    return f"proximal points jump, and m and q are known to {error:.1e}: the replica-symmetric solution is not stable"


def _normalised(setting: Setting, values: dict[Any, float]) -> tuple[float, float, float]:
    variance = evaluate("variance_law", values)
    if setting.penalty == "frobenius":
        return variance, 0.0, evaluate("frobenius_scale", values)
    return variance, evaluate("threshold_law", values), evaluate("scale_law", values)


def _pairs(setting: Setting, variance: float, threshold: float, rank: float) -> float:
    return 1.0 if setting.penalty == "frobenius" else pair_slopes(setting.target, variance, threshold, rank)


def _test_errors(problem: Problem, overlaps: Overlaps, rule: Quadrature) -> tuple[float, float]:
    """Loss of fresh sequences against noisy and against clean labels."""
    setting, square = problem.setting, problem.setting.target.square
    quiet = {chapter.excess: overlaps.excess, chapter.target_square: square, chapter.noise: 0.0}
    spread = _spread({**quiet, chapter.noise: 0.0}, overlaps.excess, square - overlaps.m)
    laws = (problem.scores(overlaps), Scores(overlaps.m, spread, overlaps.response, square))
    noisy, clean = (
        np.mean([setting.channel.error(rule.level, parity, law) for parity in rule.parities]) for law in laws
    )
    return float(noisy), float(clean)


def _advice(problem: Problem, found: Found, error: float, unfinished: int, jumps: float) -> str:
    """Why a point is no solution to the accuracy that is asked for, and what to try."""
    tolerance = _tolerance(problem.setting, jumps)
    jumping = "proximal points jump here, where the replica-symmetric solution is not stable: use a larger lam"
    if unfinished:
        return f"{unfinished} proximal points did not converge: use a smaller beta"
    if found.size > RESIDUAL:
        way = "start from a solution nearby (start=) or follow a sweep"
        if jumps > FEW_JUMPS:
            way = jumping
        elif problem.lam == 0:
            way = "at lam = 0 there may be many minima (interpolation): use a small lam > 0"
        elif problem.spent:
            way = f"the budget of the search is spent; {way}"
        elif error <= tolerance:
            way = "rounding allows no less so near to perfect recovery, and m and q are good to "
            way += f"{tolerance:.0e}; use a larger lam for more"
        return f"the residual is {found.size:.2g} instead of {RESIDUAL:.0e}: {way}"
    if error > tolerance:
        way = "the softmax is too sharp for them (smaller beta, beta_target or target)"
        way = jumping if jumps > FEW_JUMPS else way
        return f"the quadratures differ by {error:.2g} in m or q instead of {tolerance:.0e}: {way}"
    return "the point is not admissible (V ≤ 0 or a negative squared distance): start from a solution nearby (start=)"


def _empty(problem: Problem) -> LearnedAttention:
    """The solution in which nothing is learned, S = 0."""
    setting = problem.setting
    square = setting.target.square
    overlaps = Overlaps(0.0, 0.0, 0.0, 0.0, square, 0.0, 0.0)
    noisy, clean = _test_errors(problem, overlaps, problem.fine(1))
    return LearnedAttention(
        alpha=problem.alpha,
        lam=problem.lam,
        m=0.0,
        q=0.0,
        V=0.0,
        train_loss=noisy,
        test_error=noisy,
        test_error_clean=clean,
        excess=square,
        rank=0.0,
        objective=problem.alpha * noisy,
        residual=0.0,
        quadrature_error=0.0,
        converged=True,
        stable=True,
        replicon=0.0,
        jumps=0.0,
        variance=0.0,
        threshold=0.0,
        scale=0.0,
        setting=setting,
        logs=np.full(3, np.nan),
        note="nothing is learned: the penalty exceeds what the data pull",
    )


# -- no penalty, no noise ---------------------------------------------------------------------------------------------


def recovers(problem: Problem) -> bool:
    """Whether the target itself is the minimum as λ → 0⁺: neither penalty nor label noise, and enough samples."""
    setting = problem.setting
    if problem.lam > 0 or setting.noise > 0:
        return False
    share = setting.target.rank if setting.penalty == "nuclear" else 1.0
    needed = _recovery_load(share) if share < 1 else float(_load("recovery_frobenius")(share))
    return bool(problem.alpha > _samples(needed, setting.tokens))


QUIET = 1e-5  # bias ε over the target's size at which a weak penalty stands for none


def _recovered(problem: Problem) -> LearnedAttention:
    """The target itself, exactly; its response and stability are those of a weak penalty, to about QUIET."""
    setting, square = problem.setting, problem.setting.target.square
    size, lam = float(np.sqrt(square)), 1e-6 if setting.tokens == 2 else 1e-4
    for _ in range(4 if setting.tokens == 2 else 1):  # random rules give no more digits
        near = _solve_plain(setting, problem.alpha, lam, None)
        if not near.converged or near.m == 0:
            lam *= 10
        elif setting.penalty == "frobenius" or near.threshold <= QUIET * size:
            break
        else:
            lam *= 0.3 * QUIET * size / near.threshold
    return replace(
        near,
        lam=problem.lam,
        m=square,
        q=square,
        train_loss=0.0,
        test_error=0.0,
        test_error_clean=0.0,
        excess=0.0,
        rank=setting.target.rank,
        objective=0.0,
        residual=0.0,
        quadrature_error=0.0,
        converged=True,
        variance=0.0,
        threshold=0.0,
        scale=1.0,
        logs=np.full(3, np.nan),
        note=f"the target is recovered perfectly: the limit lam -> 0+ ({_word_on_response(near)})",
    )


def _word_on_response(near: LearnedAttention) -> str:
    """How good the response and the stability of a weak penalty are."""
    if not (near.converged and near.m > 0):
        why = near.note if not near.converged else "there nothing is learned"
        return f"V and replicon are approximate, from lam = {near.lam:.2g}, where the search did not converge: {why}"
    if near.setting.tokens == 2:
        return "V and replicon to about five digits"
    return f"V and replicon are those at lam = {near.lam:.2g}, by random sequences"


# -- sweeps ---------------------------------------------------------------------------------------------------------


def sweep(
    parameter: str,
    values: ArrayLike,
    *,
    alpha: float | None = None,
    lam: float | None = None,
    kappa0: float | None = None,
    target: Any = None,
    noise: float = 0.0,
    tokens: int = 2,
    kappa: float = 1.0,
    beta: float = 1.0,
    beta_target: float = 1.0,
    penalty: str = "nuclear",
    task: str = "label",
) -> tuple[LearnedAttention, ...]:
    """Solutions at many values of `parameter` ("alpha" or "lam"), each started from its neighbour.

    `values` may be in any order; results come in the same order. The other of `alpha` and `lam` must be given; the
    remaining arguments are those of `solve`. Where the warm start fails, the branch is followed by arclength (through
    folds) and then sought from scratch. Raises ValueError for bad input.
    """
    if parameter not in ("alpha", "lam"):
        raise ValueError(f"parameter must be 'alpha' or 'lam', got {parameter!r}")
    runs, fixed = (chapter.alpha, chapter.lam) if parameter == "alpha" else (chapter.lam, chapter.alpha)
    other = lam if parameter == "alpha" else alpha
    if other is None or (alpha if parameter == "alpha" else lam) is not None:
        raise ValueError(f"give {fixed.name} and not {runs.name} when the sweep runs over {runs.name}")
    grid = np.atleast_1d(check(runs, values)).ravel()
    constant = scalar(fixed, other)
    setting = _setting(kappa0, target, noise, tokens, kappa, beta, beta_target, penalty, task)
    units, found = Units.of(setting), {}
    walk = _Walk(units.setting, parameter)
    for index in np.argsort(-grid):  # large α and large λ are the easy ends
        pair = (float(grid[index]), constant) if parameter == "alpha" else (constant, float(grid[index]))
        found[int(index)] = units.restore(walk.step(pair[0], pair[1] * units.penalty), setting, pair[1])
    units.setting.channel.forget()
    solutions = tuple(found[index] for index in range(grid.size))
    _warn_of_width(solutions)
    return solutions


PAST = 5  # solutions through which the next one is predicted
QUICK_SHARE = 0.5  # of the tolerance: the error up to which the quick lattice is good enough
NEAR_BY = 1.5  # ratio of parameters over which a matrix that is learned with ease does not vanish
FAR_FROM_EMPTY = 0.5  # of the share at which nothing is learned


class _Walk:
    """Solutions one after the other, each predicted from those before; proximal points that are known stay known."""

    def __init__(self, setting: Setting, parameter: str) -> None:
        self.setting, self.parameter = setting, parameter
        self.past: list[LearnedAttention] = []
        self.jacobian: Array | None = None
        self._easy = np.nan  # parameter at which far from nothing was learned

    def step(self, alpha: float, lam: float) -> LearnedAttention:
        """The solution at the next parameters."""
        found = self._next(Problem(self.setting, alpha, lam))
        known = found.converged and bool(np.isfinite(found.logs).all())
        self.past = [*self.past[1 - PAST :], found] if known else []
        if not known:
            self.jacobian = None
        return found

    def _next(self, problem: Problem) -> LearnedAttention:
        pair = (problem.alpha, problem.lam)
        if not self.past:
            return _solve_plain(self.setting, *pair, None)
        self.setting.channel.work = 0
        if recovers(problem):
            return _recovered(problem)
        goal = pair[0] if self.parameter == "alpha" else pair[1]
        if pair[1] > 0 and self._nothing_learned(problem, goal):
            return _empty(problem)
        guess = self._predicted(goal)
        quick = self._quick(problem, guess)
        if quick is not None:
            return quick
        found, last = _newton(problem, guess, COARSE, COARSE_STOP, steps=15), self.past[-1]
        if found.size > COARSE_ENOUGH and min(pair[1], last.lam) > 0:
            for point in trace(self.setting, self.parameter, last.alpha, last.lam, last.logs, goal):
                found = Found(point.logs, np.full(3, np.nan), None)
            found = _newton(problem, found.logs, COARSE, COARSE_STOP)
        if found.size > COARSE_ENOUGH:
            return _solve_plain(self.setting, *pair, None)
        self.jacobian = found.jacobian
        return _finish(problem, found)

    def _nothing_learned(self, problem: Problem, goal: float) -> bool:
        """`nothing_learned`, asked anew where the parameter has moved far from a clear answer."""
        if problem.setting.penalty == "frobenius" or 1 / NEAR_BY < goal / self._easy < NEAR_BY:
            return False
        share = _empty_share(problem, COARSE)
        self._easy = goal if share < FAR_FROM_EMPTY else np.nan
        return share > 1 / CLEAR and nothing_learned(problem)

    def _quick(self, problem: Problem, guess: Array) -> LearnedAttention | None:
        """On one lattice from the prediction, where proximal points do not jump; its error is that of a coarser one."""
        channel = self.setting.channel
        if self.setting.tokens != 2 or len(self.past) < 2 or self.past[-1].jumps > FEW_JUMPS:
            return None
        rule = Quadrature(QUICK)
        found = _newton(problem, guess, rule, 0.3 * RESIDUAL, steps=8, jacobian=self.jacobian)
        self.jacobian = found.jacobian
        if found.size > RESIDUAL or found.jacobian is None:
            return None
        here = problem.overlaps(found.logs)
        coarse = self.setting.channel.means(COARSE.level, 0, problem.scores(here), False)
        shift = np.linalg.solve(found.jacobian, problem.new_logs(here, coarse) - found.logs)
        there = problem.overlaps(found.logs - shift)
        error = max(abs(there.m / here.m - 1), abs(there.q / here.q - 1))
        if not error <= QUICK_SHARE * channel.tolerance:
            return None
        return _gather(problem, found, rule, float(error))

    def _predicted(self, goal: float) -> Array:
        """The field at the next parameters: the polynomial in the parameter's logarithm through the last solutions."""
        last = self.past[-1]
        if goal == 0 or getattr(last, self.parameter) == 0:
            return last.logs
        at = np.array([np.log(getattr(one, self.parameter)) for one in self.past]) - np.log(goal)
        steps = np.abs(np.diff(at))
        if len(at) == 1 or not steps.all() or abs(at[-1]) > 2 * steps.min():
            return last.logs
        shares = [np.prod([at[j] / (at[j] - at[i]) for j in range(len(at)) if j != i]) for i in range(len(at))]
        return np.asarray(sum(share * one.logs for share, one in zip(shares, self.past, strict=True)))


# -- thresholds -----------------------------------------------------------------------------------------------------


def interpolation_threshold(kappa0: float, noise: float, tokens: int = 2) -> float:
    """The α below which noisy labels are fitted exactly as λ → 0⁺, to about 1e-14 of its value.

    `kappa0` > 0: width of a Gaussian target; `noise` ≥ 0. Raises ValueError for bad input.
    Laws `interpolation-noise-of-gaussian-target`, `interpolation-load-of-gaussian-target`.
    """
    width, delta = scalar(chapter.kappa0, kappa0), scalar(chapter.noise, noise)
    scores = scalar(chapter.tokens, tokens)
    if delta == 0:
        return _samples(float(_load("interpolation_quiet")(min(width, 1.0))), scores)
    unit = max(width, delta, HUGE) / HUGE
    return _samples(_interpolation_load(width / unit, max(delta / unit, LEAST_NOISE)), scores)


HUGE = 1e100  # from here on the load at the interpolation threshold depends on the ratio of noise and width alone
LEAST_NOISE = 1e-300  # less moves no digit
STRIDE = 8.0  # of the logarithm in which the noise at the threshold is bracketed


def _interpolation_load(width: float, noise: float) -> float:
    """The load at the threshold: ln t is sought, t the excess of u over the larger of 0 and its edge u_*."""

    def gap(log_excess: float) -> float:
        return float(np.log(max(_on_arc("interpolation_noise_arc", width, float(np.exp(log_excess))), 1e-308) / noise))

    low = high = 0.0
    while gap(low) > 0:
        low -= STRIDE
    while gap(high) < 0:
        high += STRIDE
    with np.errstate(under="ignore"):
        found = brentq(gap, low, high, xtol=1e-15) if low < high else low
        return _on_arc("interpolation_load_arc", width, float(np.exp(found)))


def _on_arc(name: str, width: float, excess: float) -> float:
    """A law for a Gaussian target that holds an integral over the arc below 0."""
    root, angle, edge = _arc_laws()
    at_edge = float(edge(width))
    modulus, beyond = max(at_edge, 0.0) + excess, max(-at_edge, 0.0) + excess
    real = float(root(width, modulus))
    end = float(angle(width, at_edge, beyond, modulus, real))
    whole, integrand = _arc_integral(name)
    points, weights = _arc_rule()
    integral = end * float(weights @ integrand(modulus, real, end, end * points))
    return float(whole(modulus, integral))


@lru_cache
def _arc_laws() -> tuple[Any, Any, Any]:
    """p, ϑ and u_* of the noisy target at 0."""
    excess = (chapter.kappa0, learning.edge_modulus, learning.beyond_edge, learning.inverse_modulus)
    return (
        function(learning.real_root_law.right, (chapter.kappa0, learning.inverse_modulus)),
        function(learning.angle_law.right, (*excess, learning.inverse_root)),
        function(learning.edge_modulus_law.right, (chapter.kappa0,)),
    )


@lru_cache
def _arc_integral(name: str) -> tuple[Any, Any]:
    """A law with a symbol for its integral over the arc, and the integrand."""
    right, value = getattr(learning, name).right, sp.Symbol("value")
    (node,) = right.atoms(sp.Integral)
    arguments = (learning.inverse_modulus, learning.inverse_root, learning.angle, learning.along)
    return function(right.xreplace({node: value}), (arguments[0], value)), function(node.function, arguments)


@lru_cache
def _arc_rule() -> tuple[Array, Array]:
    """A rule on [0, 1]: the integrands' nearest poles are at angles ±π, the arc ends before π/2."""
    points, weights = np.polynomial.legendre.leggauss(20)
    return (points + 1) / 2, weights / 2


def recovery_threshold(kappa0: float, tokens: int = 2, penalty: str = "nuclear") -> float:
    """The α above which a target without label noise is recovered as λ → 0⁺ (laws `recovery-…`).

    `kappa0` > 0: rank of the target over d (from 1 on it is full). `penalty`: "nuclear", "frobenius", or "bayes" (the
    Bayes-optimal estimate). Raises ValueError for bad input.
    """
    share = min(scalar(chapter.kappa0, kappa0), 1.0)
    scores = scalar(chapter.tokens, tokens)
    if penalty not in (*PENALTIES, "bayes"):
        raise ValueError(f"penalty must be one of {', '.join((*PENALTIES, 'bayes'))}, got {penalty!r}")
    if penalty == "frobenius" or (share == 1.0 and penalty == "nuclear"):
        return _samples(float(_load("recovery_frobenius")(share)), scores)
    if penalty == "bayes":
        return _samples(float(_load("recovery_bayes")(share)), scores)
    return _samples(_recovery_load(share), scores)


def _recovery_load(share: float) -> float:
    """The law `recovery-load-by-depth` at the depth of the threshold."""
    with np.errstate(under="ignore"):
        return float(_by_depth("recovery_load_by_depth")(_recovery_depth(share), share))


def _recovery_depth(share: float) -> float:
    """Depth of the cut at the threshold (law `recovery-cut-by-depth`), sought in its logarithm: no digit is lost."""
    side = _by_depth("recovery_cut_by_depth")

    def gap(log_depth: float) -> float:
        with np.errstate(divide="ignore", under="ignore"):  # far too small a depth: nothing passes
            return float(np.arctan(np.log(side(np.exp(log_depth), share))))

    shallow, deepest = float(np.log(share)) - 10.0, float(np.log(2.0))
    # xtol: the load is least in the depth, so that errors enter squared
    return float(np.exp(brentq(gap, shallow, deepest, xtol=1e-13)))


@lru_cache
def _by_depth(name: str) -> Any:
    """A law of depth and rank, SciPy's name put for SymPy's hypergeometric function."""
    named = getattr(learning, name).right.replace(sp.hyper, lambda a, b, x: sp.Function("hyp2f1")(*a, *b, x))
    return function(named, (learning.depth, learning.rank_share))


@lru_cache
def _load(name: str) -> Any:
    """A law for the load that depends on the rank at most."""
    return function(getattr(learning, name).right, (learning.rank_share,))


def _samples(load: float, tokens: float) -> float:
    return float(function(learning.samples_law.right, (learning.load, chapter.tokens))(load, tokens))


# -- what laws and claims read ---------------------------------------------------------------------------------------


def iterates(
    alpha: float, lam: float, setting: Setting, count: int, start: float = 1.0, level: int = 1
) -> tuple[Overlaps, ...]:
    """State evolution of message passing from S = 0 with response `start`: the matrix after 1, …, `count` steps."""
    problem = Problem(setting, alpha, lam)
    setting.channel.forget()
    square = setting.target.square
    overlaps = Overlaps(0.0, 0.0, start, 0.0, square, 0.0, 0.0)
    found = []
    for _ in range(count):
        means = problem.means(overlaps, problem.fine(level), search=True)
        field = conjugates(setting, alpha, overlaps, ChannelMeans.merged(means))
        overlaps = learned(setting, lam, *field)
        found.append(overlaps)
    return tuple(found)


def solution_component(names: tuple[str, str], *values: Any) -> Any:
    """Numbers of a solution for the node `Solution`: a component, an iterate, or the spectrum's cdf at a point.

    `names`: component and penalty; `values` (which broadcast): the node's parameters, then the iterate (−1: the fixed
    point; for the component "cdf" the point). Raises NotSolvedError if a fixed point was not found.
    """
    return np.vectorize(lambda *one: _one_component(names, one), otypes=[float])(*values)


def _one_component(names: tuple[str, str], values: tuple[float, ...]) -> float:
    component, penalty = names
    *parameters, last = (float(value) for value in values)
    if component == "cdf":
        return float(_solution(penalty, tuple(parameters)).spectrum().cdf(last))
    if last < 0:
        return float(getattr(_solution(penalty, tuple(parameters)), component))
    count = PATH_LOT * -(-int(last) // PATH_LOT)
    return float(getattr(_path(penalty, tuple(parameters), count)[int(last) - 1], ITERATED[component]))


ITERATED = {"m": "m", "q": "q", "V": "response", "scale": "scale"}
PATH_LOT = 4  # iterates are computed and kept in lots of this many: a few claims read each of them


def _setting_of(penalty: str, parameters: tuple[float, ...]) -> tuple[float, float, Setting]:
    alpha, lam, kappa0, noise, kappa, beta, beta_target, tokens, diagonal = parameters
    setting = _setting(kappa0, None, noise, tokens, kappa, beta, beta_target, penalty)
    return alpha, lam, replace(setting, diagonal=diagonal)


@lru_cache(maxsize=256)
def _solution(penalty: str, parameters: tuple[float, ...]) -> LearnedAttention:
    alpha, lam, setting = _setting_of(penalty, parameters)
    solution = _solve(setting, alpha, lam)
    if not solution.converged:
        raise NotSolvedError(f"no solution at alpha = {alpha}, lam = {lam}: {solution.note}")
    _warn_of_width((solution,))
    return solution


@lru_cache(maxsize=256)
def _path(penalty: str, parameters: tuple[float, ...], count: int) -> tuple[Overlaps, ...]:
    alpha, lam, setting = _setting_of(penalty, parameters)
    return iterates(alpha, lam, setting, count)
