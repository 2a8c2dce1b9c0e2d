"""What one sequence does to the learned matrix: Gaussian means over the proximal point of its softmax loss.

Two tokens: a sinc rule on two interlaced lattices in four dimensions, whose difference is the error. More: eight
independent scrambles of a Sobol sequence, whose spread is the error. Points stay the same from call to call, so that
results are smooth.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.linalg import lapack
from scipy.special import ndtri, stdtrit

from derivations import state_evolution as equations
from numerics.compile import function

Array = np.ndarray[Any, Any]

RADIUS = 6.3  # the Gaussian weight beyond is 5e-8
STEPS = (0.55, 0.4, 0.3, 0.22, 0.46)  # lattice steps, coarse to fine: 10, 40, 120 and 420 thousand points a lattice
QUICK = 4  # level of the lattice for smooth sweeps, between the two coarsest: 22 thousand points
SAMPLES = (11, 12, 14, 16)  # binary logarithms of Sobol points a scramble, coarse to fine, up to FEW_TOKENS tokens
FEW_TOKENS, FEWEST = 8, 6  # beyond, a sequence has many scores, and its means little spread: fewer sequences do
FEW_TOLERANCE, MANY_TOLERANCE = 1e-3, 2e-3  # of m and q; beyond FEW_TOKENS the former takes four times as long
RULES = 8  # independent scrambles
MAXIMUM_STEPS = 200
LEAP = 1.5  # longest Newton step, in units of 1/β: the softmax changes over a few of them
STOP = 1e-6  # Newton step after which the error is its square


@dataclass(frozen=True)
class ChannelMeans:
    """Means over sequences: of the output gradient, along its coordinates and squared, and of the loss."""

    pull: float
    force: float
    power: float
    slope_square: float
    smooth_divergence: float
    loss: float
    cost: float
    unfinished: int
    half: ChannelMeans | None = None  # from half of the points, where these are random

    @classmethod
    def merged(cls, parts: Sequence[ChannelMeans]) -> ChannelMeans:
        """The mean of several rules."""
        halves = [part.half for part in parts if part.half is not None]
        return cls(
            **{name: sum(getattr(part, name) for part in parts) / len(parts) for name in MEANS},
            unfinished=sum(part.unfinished for part in parts),
            half=cls.merged(halves) if halves else None,
        )


MEANS = tuple(name for name in ChannelMeans.__annotations__ if name not in ("unfinished", "half"))


@dataclass(frozen=True)
class Scores:
    """The Gaussian law of learned and target scores: what a channel needs to know of a learned matrix."""

    overlap: float
    spread: float  # of the learned score given the target's
    response: float
    label_square: float


def logistic(x: Array) -> Array:
    """1/(1 + e^(−x)) without overflow."""
    return 0.5 * (1.0 + np.tanh(0.5 * x))


# -- two tokens -----------------------------------------------------------------------------------------------------


def lattice(step: float, parity: int) -> tuple[Array, Array]:
    """Points (s₊, s₋, z₊, z₋) of the checkerboard lattice of one parity within RADIUS, and their Gaussian weights.

    The sum over either parity converges as fast as over both. Only one point of each orbit is kept of the two
    symmetries of the integrand: exchange of the tokens (s₋, z₋ change sign) and of the tokens' roles in the softmax
    (all signs change).
    """
    reach = int(RADIUS / step)
    half, full = np.arange(0, reach + 1), np.arange(-reach, reach + 1)
    grid = np.stack([axis.ravel() for axis in np.meshgrid(half, half, full, full, indexing="ij")])
    a, b, c, d = grid
    inside = (grid**2).sum(axis=0) * step**2 <= RADIUS**2
    keep = inside & ((a + b + c + d + parity) % 2 == 0) & ((a > 0) | (c >= 0)) & ((b > 0) | (d >= 0))
    a, b, c, d = points = grid[:, keep]
    orbit = np.where((a == 0) & (c == 0), 1, 2) * np.where((b == 0) & (d == 0), 1, 2)
    weight = orbit * 2 * (step / np.sqrt(2 * np.pi)) ** 4 * np.exp(-(points**2).sum(axis=0) * step**2 / 2)
    return points * step, weight


@lru_cache
def _axes() -> Any:
    return [function(axis, (equations.diagonal,)) for axis in equations.score_axes(equations.diagonal)]


LABELS, MISSES = 400, 100  # grid of `_deepest`


@lru_cache
def _deepest() -> Array:
    """The most negative curvature of a row's loss at β = 1, by label y and by the largest |y − p| that is allowed.

    Row i is the label i/LABELS, column j allows misses up to (j + 1)/MISSES (one cell more, so that rounding is safe).
    """
    share = np.arange(LABELS + 1) / LABELS
    slope = share * (1 - share)
    miss = share[:, None] - share
    curvature = 4 * (slope**2 - miss * slope * (1 - 2 * share))
    allowed = (np.arange(MISSES + 1) + 1) / MISSES + 2 / LABELS
    return np.stack([np.where(np.abs(miss) <= most, curvature, 0.0).min(axis=1) for most in allowed], axis=1)


@dataclass(frozen=True)
class _Rule:
    """A lattice in the coordinates of the softmax's two rows: unit scores of target and residual, and weights."""

    target: Array
    residual: Array
    weight: Array


@lru_cache(maxsize=8)
def _rule(step: float, parity: int, shared: float, apart: float) -> _Rule:
    points, weight = lattice(step, parity)

    def rows(plus: Array, minus: Array) -> Array:
        return np.stack([shared * plus + apart * minus, shared * plus - apart * minus])

    return _Rule(rows(*points[:2]), rows(*points[2:]), weight)


def _sum(a: Array, b: Array) -> float:
    """Sum of products: a library's threads would cost more than such short sums do."""
    return float(np.einsum("i,i->", a.ravel(), b.ravel()))


class TwoTokenChannel:
    """Means over sequences of two tokens; `level` chooses the lattice, `parity` one of the two rules."""

    levels = QUICK
    rules = (0, 1)
    tolerance = 1e-5
    confidence = 1.0  # the rules interlace: half their difference is the error
    gain = np.inf  # by which the error may fall from a level to the next
    budget = 20_000_000  # proximal points a search: no solution that is found takes half of them

    def __init__(self, beta: float, beta_target: float, diagonal: float = 2.0) -> None:
        self.beta, self.beta_target = beta, beta_target
        self.shared, self.apart = (float(axis(diagonal)) for axis in _axes())
        self._warm: dict[tuple[int, int], _Start] = {}
        self._labels: dict[tuple[int, int], tuple[float, Array, Array]] = {}
        self.work = 0

    def _law(self, level: int, parity: int, scores: Scores) -> tuple[_Rule, Array, Array, Array]:
        """The rule; the target's scores, the labels, and the learned scores at its points."""
        rule = _rule(STEPS[level], parity, self.shared, self.apart)
        square, target, label = self._labels.get((level, parity), (None, np.empty(0), np.empty(0)))
        root = np.sqrt(scores.label_square)
        if square != scores.label_square:
            target = root * rule.target
            label = logistic(self.beta_target * target)
            self._labels[level, parity] = (scores.label_square, target, label)
        return rule, target, label, scores.overlap / root * rule.target + scores.spread * rule.residual

    def means(self, level: int, parity: int, scores: Scores, search: bool = True) -> ChannelMeans:
        """All means at the given scores. `search`: look for further local minima, not only near those known."""
        rule, target, label, field = self._law(level, parity, scores)
        problem = _Proximal(label, field, scores.response, self.beta, self.shared, self.apart)
        start = self._warm.get((level, parity))
        if start is None or (search and not problem.convex):
            ideal = self.beta_target / self.beta * target
            start = problem.search(ideal, None if start is None else start.best)
        else:
            start = problem.follow(start)
        self._warm[level, parity] = start
        self.work += label.shape[1]
        return self._average(rule, problem, start, scores)

    def _average(self, rule: _Rule, problem: _Proximal, start: _Start, scores: Scores) -> ChannelMeans:
        v, loss, slope, bend = scores.response, *problem.loss(start.best)
        if v >= 1:  # whichever of the two forms of the slope loses no digits
            slope = -problem.tie(start.best - problem.field)
        together, apart = slope[0] + slope[1], slope[0] - slope[1]
        plus, minus = self.shared**2 * (bend[0] + bend[1]), self.apart**2 * (bend[0] + bend[1])
        mixed = self.shared * self.apart * (bend[0] - bend[1])
        product = plus * minus - mixed**2
        determinant = 1 + v * (plus + minus + v * product)
        # −∂g/∂ω = H(1 + VH)⁻¹, entry by entry
        first, second, off = plus + v * product, minus + v * product, mixed
        share, weighted = rule.weight / determinant, rule.weight * slope
        return ChannelMeans(
            pull=-_sum(weighted, rule.target),
            force=-_sum(weighted, rule.residual),
            power=_sum(rule.weight, self.shared**2 * together**2 + self.apart**2 * apart**2),
            slope_square=_sum(share / determinant, first**2 + second**2 + 2 * off**2),
            smooth_divergence=-_sum(share, first + second),
            loss=_sum(rule.weight, loss),
            cost=_sum(rule.weight, problem.cost(start.best)),
            unfinished=start.unfinished,
        )

    def error(self, level: int, parity: int, scores: Scores) -> float:
        """The loss of fresh sequences."""
        rule, _, label, field = self._law(level, parity, scores)
        difference = label - logistic(self.beta * field)
        return 2 * _sum(rule.weight, difference[0] ** 2 + difference[1] ** 2)

    def forget(self) -> None:
        """Drop what was kept to start from."""
        self._warm.clear()
        self._labels.clear()

    def start(self) -> None:
        """Begin a search: nothing is known and nothing of the budget is spent."""
        self.forget()
        self.work = 0


@dataclass
class _Start:
    """Local minima that are known: the best one everywhere, and others where there are more."""

    best: Array
    rows: Array
    others: Array
    unfinished: int


class _Proximal:
    """min over u of 2 Σ (y_i − logistic(β u_i))² + (u − ω)ᵀ C⁻¹ (u − ω)/(2V), for many (y, ω) at once."""

    def __init__(self, label: Array, field: Array, response: float, beta: float, shared: float, apart: float) -> None:
        self.label, self.field, self.response, self.beta = label, field, response, beta
        self.own = (1 / shared**2 + 1 / apart**2) / (4 * response)  # entries of C⁻¹/V
        self.cross = (1 / shared**2 - 1 / apart**2) / (4 * response)
        self.softest = 1 / (2 * response * max(shared, apart) ** 2)  # least eigenvalue of C⁻¹/V

    @property
    def convex(self) -> bool:
        """Whether the cost bends more than any loss, so that no point has two minima."""
        return bool(self.beta**2 * _deepest().min() > -0.98 * self.softest)

    def rows(self, rows: Any) -> _Proximal:
        """The problem for some of the points."""
        part = object.__new__(_Proximal)
        part.__dict__.update(vars(self), label=self.label[:, rows], field=self.field[:, rows])
        return part

    def loss(self, u: Array) -> tuple[Array, Array, Array]:
        """Loss, its slope in each row and its curvature in each row."""
        odd = np.tanh(0.5 * self.beta * u)  # 2p − 1 for the share p
        even, miss = 1 - odd**2, 2 * self.label - 1 - odd  # 4p(1 − p), and 2(y − p)
        bend = 0.25 * even
        bend += 0.5 * miss * odd
        bend *= self.beta**2 * even
        even *= miss
        even *= -0.5 * self.beta
        miss **= 2
        return 0.5 * (miss[0] + miss[1]), even, bend

    def tie(self, r: Array) -> Array:
        """C⁻¹r/V: slope of the quadratic cost of a move r."""
        return self.own * r + self.cross * r[::-1]

    def cost(self, u: Array) -> Array:
        """The quadratic cost of moving from the field to u."""
        r = u - self.field
        return np.asarray(0.5 * (r * self.tie(r)).sum(axis=0))

    def value(self, u: Array) -> Array:
        """The objective."""
        miss = 2 * self.label - 1 - np.tanh(0.5 * self.beta * u)
        return np.asarray(0.5 * (miss**2).sum(axis=0) + self.cost(u))

    def suspicious(self, value: Array) -> Array:
        """Points at which a minimum below `value` may exist elsewhere.

        There the loss would be below `value` too, so that no label is missed by more than √(value/2). Where the loss
        bends less than the cost for all such misses, the objective is convex on that convex region.
        """
        column = np.minimum(np.sqrt(value / 2) * MISSES, MISSES).astype(int)
        bend = _deepest()[np.rint(self.label * LABELS).astype(int), column].min(axis=0)
        return np.flatnonzero(self.beta**2 * bend < -0.98 * self.softest)

    def search(self, ideal: Array, known: Array | None) -> _Start:
        """The global minimum from several starts: the field, the label, and row-wise mixtures of both."""
        better = self.value(ideal) < self.value(self.field)
        first = np.where(better, ideal, self.field)
        if known is not None:
            first = np.where(self.value(known) < self.value(first), known, first)
        best, unfinished = self.descend(first)
        rows = self.suspicious(self.value(best))
        if rows.size == 0:
            return _Start(best, rows, np.empty((0, 2, 0)), unfinished)
        part = self.rows(rows)
        a, b = self.field[:, rows], ideal[:, rows]
        ends, undone = part.descend_all(np.stack([a, b, np.stack([a[0], b[1]]), np.stack([b[0], a[1]])]))
        candidates = np.concatenate([best[None, :, rows], ends])
        unfinished += undone
        values = np.stack([part.value(candidate) for candidate in candidates])
        chosen = candidates[values.argmin(axis=0), :, np.arange(rows.size)].T
        best[:, rows] = chosen
        apart = (np.abs(candidates - chosen).sum(axis=1) > 1e-4).any(axis=0)
        return _Start(best, rows[apart], candidates[:, :, apart], unfinished)

    def follow(self, start: _Start) -> _Start:
        """Follow the known minima to new parameters, and take the lowest of each point."""
        best, unfinished = self.descend(start.best)
        if start.rows.size == 0:
            return _Start(best, start.rows, start.others, unfinished)
        part = self.rows(start.rows)
        others, undone = part.descend_all(start.others)
        candidates = np.concatenate([best[None, :, start.rows], others])
        values = np.stack([part.value(candidate) for candidate in candidates])
        best[:, start.rows] = candidates[values.argmin(axis=0), :, np.arange(start.rows.size)].T
        return _Start(best, start.rows, others, unfinished + undone)

    def descend_all(self, starts: Array) -> tuple[Array, int]:
        """`descend` from several starts for each point, all at once."""
        count, _, points = starts.shape
        ends, undone = self.rows(np.tile(np.arange(points), count)).descend(np.concatenate(list(starts), axis=1))
        return np.stack(np.split(ends, count, axis=1)), undone

    def descend(self, start: Array) -> tuple[Array, int]:
        """Newton's method with moduli of the Hessian's eigenvalues where it is not positive, and backtracking."""
        ends, rows, part = start.copy(), np.arange(start.shape[1]), self
        at, (step, slope, value) = start, self.newton_step(start)
        for _ in range(MAXIMUM_STEPS):
            size = np.abs(step).sum(axis=0)
            going = size > STOP * (1 + np.abs(at).sum(axis=0))
            left = int(np.count_nonzero(going))
            if left < 0.7 * rows.size:
                ends[:, rows] = at + step
                if left == 0:
                    return ends, 0
                rows, part, size, slope, value = rows[going], part.rows(going), size[going], slope[going], value[going]
                at, step = at[:, going], step[:, going]
            trial = at + step
            new_step, new_slope, new_value = part.newton_step(trial)
            short = np.flatnonzero((new_value > value + 1e-4 * slope + 1e-15) & (size > 1e-2))
            if short.size:
                trial[:, short], new_step[:, short] = at[:, short], 0.5 * step[:, short]
                new_slope[short], new_value[short] = 0.5 * slope[short], value[short]
            at, step, slope, value = trial, new_step, new_slope, new_value
        ends[:, rows] = at
        return ends, left

    def newton_step(self, u: Array) -> tuple[Array, Array, Array]:
        """The step, the slope of the objective along it, and the objective."""
        value, pull, bend = self.loss(u)
        r = u - self.field
        tie = self.tie(r)
        value += 0.5 * (r[0] * tie[0] + r[1] * tie[1])
        pull += tie
        bend += self.own
        determinant = bend[0] * bend[1] - self.cross**2
        bad = np.flatnonzero((determinant <= 1e-3 * self.own**2) | (bend[0] <= 0))
        if bad.size:
            determinant[bad] = 1.0
        step = self.cross * pull[::-1] - bend[::-1] * pull
        step /= determinant
        if bad.size:
            step[:, bad] = self._downhill(bend[:, bad], pull[:, bad])
        # Short enough not to leap over the valley between a saturated start and the field.
        longest = self.beta / LEAP * np.maximum(np.abs(step[0]), np.abs(step[1]))
        if longest.size and longest.max() > 1:
            step /= np.maximum(1.0, longest)
        return step, pull[0] * step[0] + pull[1] * step[1], value

    def _downhill(self, diagonal: Array, pull: Array) -> Array:
        """Newton's step with the moduli of the Hessian's eigenvalues: away from saddles and maxima."""
        middle, half = diagonal.sum(axis=0) / 2, (diagonal[0] - diagonal[1]) / 2
        radius = np.maximum(np.hypot(half, self.cross), 1e-300)
        low, high = (np.maximum(np.abs(middle + side * radius), 1e-3 * self.softest) for side in (-1, 1))
        # The Hessian is middle + radius·R for the reflection R, and a function f of it ½(f₊ + f₋) + ½(f₊ − f₋)R.
        mean, difference = (1 / high + 1 / low) / 2, (1 / high - 1 / low) / (2 * radius)
        reflected = np.stack([half * pull[0] + self.cross * pull[1], self.cross * pull[0] - half * pull[1]])
        return np.asarray(-mean * pull - difference * reflected)


# -- more tokens ----------------------------------------------------------------------------------------------------


@lru_cache
def symmetric_basis(tokens: int) -> Array:
    """Orthonormal symmetric T × T matrices orthogonal to the constant one, shape (K, T, T): what the softmax sees."""
    found = []
    for i in range(tokens):
        for j in range(i + 1, tokens):
            matrix = np.zeros((tokens, tokens))
            matrix[i, j] = matrix[j, i] = np.sqrt(0.5)
            found.append(matrix)
    found += [np.diag(row) for row in np.eye(tokens)]
    columns = np.stack(found).reshape(len(found), -1)
    constant = np.full(tokens * tokens, 1.0 / tokens)
    columns = columns - np.outer(columns @ constant, constant)
    rows = np.linalg.svd(columns, full_matrices=False)[2][: len(found) - 1]
    return rows.reshape(-1, tokens, tokens)


BLOCK = 256  # sequences at a time: what they need fits into the cache
ENTRIES = 100_000  # of Hessians that are built at a time
PATIENT = 4.0  # seconds without a word
NEAR = 1e-9  # distance from a minimum, in units of the slope times V
STEPS_A_PASS, FEW = 10, 0.05  # a descent ends when few of a block's points are left; those are gathered in new blocks
PASSES = MAXIMUM_STEPS // STEPS_A_PASS
COLUMNS = (*MEANS, "label_divergence")


@lru_cache(maxsize=2 * RULES)
def _normals(outputs: int, logarithm: int, parity: int) -> Array:
    """Standard normal coordinates of target and residual for 2^logarithm sequences, one of many scrambles."""
    from scipy.stats import qmc  # slow to import

    sobol = qmc.Sobol(2 * outputs, scramble=True, rng=np.random.default_rng(7919 + parity))
    half = ndtri(np.clip(sobol.random_base2(logarithm - 1), 1e-15, 1 - 1e-15))
    return np.concatenate([half, -half])  # antithetic: every odd moment is exact


def _dot(a: Array, b: Array) -> Array:
    """Sum over rows and tokens, for every point."""
    return np.asarray(np.einsum("ijn,ijn->n", a, b))


def softmax(scores: Array) -> Array:
    """Softmax over the second axis of scores of shape (T, T, points)."""
    weight = scores - scores.max(axis=1, keepdims=True)
    np.exp(weight, out=weight)
    weight /= weight.sum(axis=1, keepdims=True)
    return np.asarray(weight)


@dataclass(frozen=True)
class _Place:
    """A point of a descent: objective, its slope, and the softmax and its centred misses, which curvature needs."""

    point: Array
    value: Array
    pull: Array
    share: Array
    excess: Array


class _MatrixProximal:
    """min over symmetric u of Σ (y − softmax(β u))² + Σ (u − ω)²/(4V), for many (y, ω) of shape (T, T, points).

    In coordinates that is a cost of square/(2V), as ‖u − ω‖² is twice the square of the coordinates. Newton's steps
    come from conjugate gradients: a product with the Hessian costs T², and the quadratic cost bounds its condition.
    """

    def __init__(self, label: Array, field: Array, response: float, beta: float) -> None:
        self.label, self.field, self.response, self.beta = label, field, response, beta
        self.near = max(NEAR, 1e-15 * response)  # the slope that counts as 0, in units of 1/V

    def loss(self, u: Array) -> tuple[Array, Array, Array, Array]:
        """Loss, its gradient (a symmetric matrix), the softmax and its centred misses."""
        share = softmax(self.beta * u)
        miss = self.label - share
        loss = _dot(miss, miss)
        miss -= np.einsum("ijn,ijn->in", miss, share)[:, None]
        slope = share * miss
        slope *= -2 * self.beta
        return loss, slope + slope.transpose(1, 0, 2), share, miss

    def place(self, u: Array) -> _Place:
        """The objective and what its derivatives need."""
        value, pull, share, excess = self.loss(u)
        moved = u - self.field
        value += _dot(moved, moved) / (4 * self.response)
        moved /= self.response
        pull += moved
        return _Place(u, value, pull, share, excess)

    def bend(self, at: _Place, direction: Array) -> Array:
        """The objective's Hessian times a direction."""
        change = direction - np.einsum("ijn,ijn->in", at.share, direction)[:, None]
        change *= at.share
        product = at.excess - at.share
        product *= change
        product -= at.share * product.sum(axis=1, keepdims=True)
        product *= -2 * self.beta**2
        found = product + product.transpose(1, 0, 2)
        found += direction / self.response
        return np.asarray(found)

    def step(self, at: _Place) -> Array:
        """Newton's step as far as it pays to know it, cut off where the Hessian is not positive."""
        rest = -at.pull
        step, direction, square = np.zeros_like(rest), rest.copy(), _dot(rest, rest)
        size = self.response * np.sqrt(square / 2)
        goal = np.maximum(np.minimum(0.1, size) * size, 0.1 * self.near)
        live = size > 0
        for turn in range(len(rest) * (len(rest) + 1)):
            bent = self.bend(at, direction)
            curvature = _dot(direction, bent)
            flat = live & (curvature <= 1e-3 / self.response * _dot(direction, direction))
            if flat.any():
                live &= ~flat
                if turn == 0:
                    step[..., flat] = self.response * direction[..., flat]
            length = np.where(live, square / np.where(live, curvature, 1.0), 0.0)
            step += length * direction
            rest -= length * bent
            new = _dot(rest, rest)
            live &= self.response * np.sqrt(new / 2) > goal
            if not live.any():
                break
            direction *= np.where(live, new / np.where(live, square, 1.0), 0.0)
            direction += rest
            square = new
        step /= np.maximum(1.0, self.beta / LEAP * np.abs(step).max(axis=(0, 1)))
        return step

    def moved(self, at: _Place) -> _Place:
        """One step on, shortened where the objective does not fall."""
        step = self.step(at)
        slope, fraction = _dot(at.pull, step) / 2, np.ones(at.value.size)
        for _ in range(60):
            there = self.place(at.point + fraction * step)
            high = there.value > at.value + 1e-4 * fraction * slope + 1e-13
            if not high.any():
                break
            fraction[high] /= 2
        return there

    def left(self, at: _Place) -> Array:
        """Which points are not yet at a minimum."""
        return np.asarray(self.response * np.abs(at.pull).max(axis=(0, 1)) > self.near)

    def descend(self, start: Array) -> tuple[_Place, Array]:
        """Newton's method until few points are left, which are better gathered; and which these are."""
        at = self.place(start)
        left = self.left(at)
        for _ in range(STEPS_A_PASS):
            if np.count_nonzero(left) <= FEW * left.size:
                break
            at = self.moved(at)
            left = self.left(at)
        return at, left


@lru_cache
def _pairs(tokens: int) -> tuple[Array, Array, Array]:
    """Where the Hessian of each row lies in that of a symmetric matrix: pair of (i, j), flat index, and weight.

    The coordinates are the entries i ≤ j, those of the diagonal over √2. Row i couples (i, j) with (i, l).
    """
    i, j = np.triu_indices(tokens)
    pair = np.zeros((tokens, tokens), dtype=int)
    pair[i, j] = pair[j, i] = np.arange(i.size)
    weight = np.where(np.eye(tokens, dtype=bool), np.sqrt(2.0), 1.0)
    one, other = pair[:, :, None], pair[:, None, :]
    place = np.minimum(one, other) * i.size + np.maximum(one, other)
    return pair, place, weight[:, :, None, None] * weight[:, None, :, None]


@dataclass(frozen=True)
class _Response:
    """How the output gradient g answers, summed over coordinates: to the field, to the label's scores, squared."""

    divergence: Array
    label_divergence: Array
    slope_square: Array
    saddles: int


def _row_hessians(problem: _MatrixProximal, at: _Place, beta_target: float) -> tuple[Array, Array]:
    """Hessians of each row's loss, in its scores u and in u and the target's scores: shape (row, token, token, points).

    The first is −2β² [diag(p w) − (p f)pᵀ − p(p f)ᵀ], the second −2ββ₀ (diag(p) − ppᵀ)(diag(y) − yyᵀ).
    """
    share, label, diagonal = at.share, problem.label, np.arange(len(at.share))
    bend = at.excess - share
    pulled = share * (bend + 0.5 * np.einsum("ijn,ijn->in", share, share)[:, None])
    own = -pulled[:, :, None] * share[:, None]
    own = own + own.transpose(0, 2, 1, 3)
    own[:, diagonal, diagonal] += share * bend
    own *= -2 * problem.beta**2
    both = share * label
    cross = (share * both.sum(axis=1, keepdims=True) - both)[:, :, None] * label[:, None]
    cross -= share[:, :, None] * both[:, None]
    cross[:, diagonal, diagonal] += both
    cross *= -2 * problem.beta * beta_target
    return own, cross


def _responses(problem: _MatrixProximal, at: _Place, beta_target: float) -> _Response:
    """Exact traces at minima: −∂g/∂ω = H(1 + VH)⁻¹ and −∂g/∂t = (1 + VH)⁻¹C, C the Hessian in u and target scores.

    The matrices act on symmetric ones of T(T + 1)/2 entries. The constant one, which the softmax does not see, is in
    the kernel of H and C and adds nothing.
    """
    pair, place, weight = _pairs(len(at.share))
    rows = pair.max() + 1
    own, cross = (part * weight for part in _row_hessians(problem, at, beta_target))
    hessian = np.zeros((rows * rows, own.shape[3]))
    hessian[place] = own
    one, other = np.triu_indices(len(pair), 1)  # these entries lie in two rows
    hessian[pair[one, other] * (rows + 1)] = own[one, other, other] + own[other, one, one]
    inverse, saddles = _inverses(hessian.T.reshape(-1, rows, rows), problem.response)
    flat = np.ascontiguousarray(inverse.reshape(len(inverse), -1).T)
    reached = flat[place]
    slopes = np.einsum("ijln,ijln->n", own, reached)
    crossed = np.einsum("ijln,ijln->n", cross, reached)
    return _Response(-slopes, -crossed, _slope_squares(hessian, flat, problem.response, slopes), saddles)


def _inverses(hessians: Array, response: float) -> tuple[Array, int]:
    """(1 + VH)⁻¹ in the upper triangle, from Hessians given there; and how many are not positive (1 in their place)."""
    matrices = np.ascontiguousarray(hessians) * response
    matrices.reshape(len(matrices), -1)[:, :: matrices.shape[1] + 1] += 1.0
    saddles = 0
    for matrix in matrices:  # half the time of np.linalg.inv, which takes no account of symmetry
        lower = matrix.T
        _, fault = lapack.dpotrf(lower, lower=1, clean=0, overwrite_a=1)
        if fault:
            saddles += 1
            lower[...] = np.eye(len(lower))
        else:
            lapack.dpotri(lower, lower=1, overwrite_c=1)
    return matrices, saddles


def _slope_squares(hessian: Array, inverse: Array, response: float, slopes: Array) -> Array:
    """Square of H(1 + VH)⁻¹ from upper triangles of shape (K², points) and the trace."""
    rows = int(np.sqrt(len(inverse)))
    first, second = np.triu_indices(rows)
    upper, twice = first * rows + second, np.where(first == second, 1.0, 2.0)[:, None]
    if response * slopes.max(initial=0.0) > 1e-2:  # H(1 + VH)⁻¹ = [1 − (1 + VH)⁻¹]/V, unless that loses digits
        slope = ((first == second)[:, None] - inverse[upper]) / response
    else:
        full = np.zeros((2, rows, rows, inverse.shape[1]))
        full[:, first, second] = full[:, second, first] = np.stack([hessian[upper], inverse[upper]])
        bent, kept = full.transpose(0, 3, 1, 2)
        slope = (bent @ kept).transpose(1, 2, 0)[first, second]
    return np.asarray((twice * slope**2).sum(axis=0))


def sample_sizes(tokens: int) -> tuple[int, ...]:
    """Binary logarithms of the sequences a scramble, by level.

    An exact response costs the cube of the number K of scores, and the means of a sequence spread like 1/√K at most:
    beyond FEW_TOKENS tokens their number falls like K⁻².
    """
    few, many = (count * (count + 1) / 2 - 1 for count in (FEW_TOKENS, max(tokens, FEW_TOKENS)))
    less = int(np.ceil(2 * float(np.log2(many / few))))
    return tuple(max(size - less, FEWEST) for size in SAMPLES)


class ManyTokenChannel:
    """Means over sequences of T ≥ 2 tokens by quasi Monte Carlo; `parity` chooses one of the scrambles.

    Means of products such as g·s have ten times the spread of the divergences that they equal by Stein's lemma. The
    difference of the two has mean 0 and, as a control, takes most of the noise from all means.
    """

    levels = len(SAMPLES)
    rules = tuple(range(RULES))
    confidence = float(stdtrit(RULES - 1, 0.975))  # Student's: standard errors in half a 95 % interval
    gain = 2.5  # by which the error may fall from a level to the next, which has four times the points
    budget = 6_000_000  # proximal points a search

    def __init__(self, tokens: int, beta: float, beta_target: float) -> None:
        self.tokens, self.beta, self.beta_target = tokens, beta, beta_target
        # In an orthonormal basis scores of square Q are √(2Q) times a standard normal vector: 2Q on the diagonal.
        self.basis = np.sqrt(2.0) * symmetric_basis(tokens)
        self.outputs = self.basis.shape[0]
        self.samples = sample_sizes(tokens)
        self.tolerance = FEW_TOLERANCE if tokens <= FEW_TOKENS else MANY_TOLERANCE
        self._begun, self._told = time.monotonic(), False
        self._warm: dict[tuple[int, int], Array] = {}
        self._smooth: dict[tuple[int, int], bool] = {}
        self.work = 0

    def _matrices(self, coordinates: Array) -> Array:
        """Score matrices, shape (T, T, points), from coordinates of shape (points, K)."""
        flat = self.basis.reshape(self.outputs, -1)
        return np.asarray((flat.T @ coordinates.T).reshape(self.tokens, self.tokens, -1))

    def _coordinates(self, matrices: Array) -> Array:
        flat = self.basis.reshape(self.outputs, -1)
        return np.asarray((flat @ matrices.reshape(flat.shape[1], -1)).T / 2)

    def _problem(self, normals: Array, scores: Scores) -> tuple[Array, Array, _MatrixProximal]:
        """Unit scores of target and residual as matrices, and the proximal problem that they pose."""
        first, second = (self._matrices(part) for part in np.split(normals, 2, axis=1))
        root = np.sqrt(scores.label_square)
        field = scores.overlap / root * first + scores.spread * second
        label = softmax(self.beta_target * root * first)
        return first, second, _MatrixProximal(label, field, scores.response, self.beta)

    def means(self, level: int, parity: int, scores: Scores, search: bool = True) -> ChannelMeans:
        """All means at the given scores; `search` starts afresh from the field and from the label."""
        key, normals = (level, parity), _normals(self.outputs, self.samples[level], parity)
        root = np.sqrt(scores.label_square)
        field = scores.overlap / root * normals[:, : self.outputs] + scores.spread * normals[:, self.outputs :]
        starts = [field, self.beta_target / self.beta * root * normals[:, : self.outputs]]
        if key in self._warm:
            starts = [*starts, self._warm[key]] if search else [self._warm[key]]
        ends = [self._descend(start, normals, scores) for start in starts]
        values = np.stack([value for _, value, _ in ends])
        best = np.stack([point for point, _, _ in ends])[values.argmin(axis=0), np.arange(len(normals))]
        self._warm[key] = best
        self.work += len(starts) * len(normals)
        self._tell()
        if len(starts) > 1:
            self._smooth[key] = bool(np.ptp(values, axis=0).max() < 1e-6)
        columns, saddles = self._columns(best, normals, scores)
        unfinished = sum(undone for _, _, undone in ends) + saddles
        full, half = (self._average(columns, scores, self._smooth[key], share) for share in (1, 2))
        return ChannelMeans(**full, unfinished=unfinished, half=ChannelMeans(**half, unfinished=0))

    def _tell(self) -> None:
        """After some seconds a line of progress, on a terminal only."""
        spent = time.monotonic() - self._begun
        if spent > PATIENT and sys.stderr.isatty():
            line = f"\r{self.tokens} tokens: {self.work} proximal points of at most {self.budget}, {spent:.0f} s"
            sys.stderr.write(line)
            sys.stderr.flush()
            self._told = True

    def _descend(self, start: Array, normals: Array, scores: Scores) -> tuple[Array, Array, int]:
        """Minima from these starts, the objective there, and how many were not reached."""
        points, values, todo = start.copy(), np.empty(len(start)), np.arange(len(start))
        for _ in range(PASSES):
            rest = []
            for rows in _pieces(todo):
                _, _, problem = self._problem(normals[rows], scores)
                at, left = problem.descend(self._matrices(points[rows]))
                points[rows], values[rows] = self._coordinates(at.point), at.value
                rest.append(rows[left])
            todo = np.concatenate(rest)
            if todo.size == 0:
                break
        return points, values, int(todo.size)

    def _columns(self, points: Array, normals: Array, scores: Scores) -> tuple[dict[str, Array], int]:
        """What is averaged, at every minimum; and how many of these are none."""
        found, saddles = [], 0
        size = max(8, min(BLOCK, ENTRIES // (self.outputs + 1) ** 2))
        for rows in _pieces(np.arange(len(points)), size):
            first, second, problem = self._problem(normals[rows], scores)
            at = problem.place(self._matrices(points[rows]))
            moved, response = at.point - problem.field, _responses(problem, at, self.beta_target)
            output = moved / scores.response - at.pull if scores.response < 1 else moved / scores.response
            cost = _dot(moved, moved) / (4 * scores.response)
            columns = (
                _dot(output, first) / 2,
                _dot(output, second) / 2,
                _dot(output, output) / 2,
                response.slope_square,
                response.divergence,
                at.value - cost,
                cost,
                response.label_divergence,
            )
            found.append(np.stack(columns))
            saddles += response.saddles
        return dict(zip(COLUMNS, np.concatenate(found, axis=1), strict=True)), saddles

    def _average(self, columns: dict[str, Array], scores: Scores, smooth: bool, share: int) -> dict[str, Any]:
        """Means over pairs of opposite sequences, of which only the first of `share` parts are taken."""
        pairs = {name: column.reshape(2, -1).mean(axis=0) for name, column in columns.items()}
        pairs = {name: column[: column.size // share] for name, column in pairs.items()}
        root, divergence = np.sqrt(scores.label_square), pairs["smooth_divergence"]
        follows = scores.overlap / root * divergence + root * pairs["label_divergence"]
        controls = np.stack([pairs["pull"] - follows, pairs["force"] - scores.spread * divergence])
        values = np.stack([pairs[name] for name in MEANS])
        # Where all starts end in one minimum the output has no jumps, and Stein's lemma no further term.
        means = _controlled(values, controls) if smooth else values.mean(axis=1)
        found: dict[str, Any] = dict(zip(MEANS, means.tolist(), strict=True))
        if smooth and scores.spread > 0:
            found["smooth_divergence"] = found["force"] / scores.spread  # the same number, up to rounding
        return found

    def error(self, level: int, parity: int, scores: Scores) -> float:
        """The loss of fresh sequences."""
        normals, total = _normals(self.outputs, self.samples[level], parity), 0.0
        for rows in _pieces(np.arange(len(normals))):
            _, _, problem = self._problem(normals[rows], scores)
            total += float(problem.loss(problem.field)[0].sum())
        return total / len(normals)

    def forget(self) -> None:
        """Drop what was kept to start from, and the line of progress."""
        self._warm.clear()
        if self._told:
            sys.stderr.write("\r\x1b[K")
            self._told = False

    def start(self) -> None:
        """Begin a search: nothing is known and nothing of the budget is spent."""
        self.forget()
        self.work, self._begun = 0, time.monotonic()


def _controlled(values: Array, controls: Array) -> Array:
    """Row means of values, less the errors that controls of mean 0 explain; by halves, with the slopes of the other.

    Slopes of the same points would be correlated with their errors: a bias of one over their number.
    """
    halves = [np.array_split(part, 2, axis=1) for part in (values, controls)]
    slopes, means = [], []
    for value, control in zip(*halves, strict=True):
        centred = control - control.mean(axis=1, keepdims=True)
        slopes.append(np.linalg.lstsq(centred @ centred.T, centred @ value.T, rcond=1e-12)[0])
        means.append((value.mean(axis=1), control.mean(axis=1)))
    parts = [value - control @ slope for (value, control), slope in zip(means, reversed(slopes), strict=True)]
    return np.asarray((parts[0] + parts[1]) / 2)


def _pieces(rows: Array, size: int = BLOCK) -> list[Array]:
    return [rows[start : start + size] for start in range(0, len(rows), size)]
