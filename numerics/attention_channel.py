"""What one sequence does to the learned matrix: Gaussian means over the proximal point of its softmax loss.

Two tokens: a sinc rule on two interlaced lattices in four dimensions, whose difference is the error. More tokens:
two independent scrambles of a Sobol sequence. Points stay the same from call to call, so results are smooth.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import ndtri

from derivations import state_evolution as equations
from numerics.compile import function

Array = np.ndarray[Any, Any]

RADIUS = 6.3  # the Gaussian weight beyond is 5e-8
STEPS = (0.55, 0.4, 0.3, 0.22)  # lattice steps, coarse to fine: 10, 40, 120 and 420 thousand points a lattice
SAMPLES = (11, 14, 16)  # binary logarithms of Sobol points, coarse to fine
MAXIMUM_STEPS = 200
LEAP = 1.5  # longest Newton step, in units of 1/β: the softmax changes over a few of them
STOP = 1e-8  # Newton step after which the error is its square


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

    def merged(self, other: ChannelMeans) -> ChannelMeans:
        """The mean of two rules."""
        mine, theirs = vars(self), vars(other)
        merged = {name: (mine[name] + theirs[name]) / 2 for name in mine if name != "unfinished"}
        return ChannelMeans(**merged, unfinished=self.unfinished + other.unfinished)


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


class TwoTokenChannel:
    """Means over sequences of two tokens; `level` chooses the lattice, `parity` one of the two rules."""

    levels = len(STEPS)
    tolerance = 1e-5
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
        if start is None or search:
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
            pull=-float(np.vdot(weighted, rule.target)),
            force=-float(np.vdot(weighted, rule.residual)),
            power=float(rule.weight @ (self.shared**2 * together**2 + self.apart**2 * apart**2)),
            slope_square=float((share / determinant) @ (first**2 + second**2 + 2 * off**2)),
            smooth_divergence=-float(share @ (first + second)),
            loss=float(rule.weight @ loss),
            cost=float(rule.weight @ problem.cost(start.best)),
            unfinished=start.unfinished,
        )

    def error(self, level: int, parity: int, scores: Scores) -> float:
        """The loss of fresh sequences."""
        rule, _, label, field = self._law(level, parity, scores)
        difference = label - logistic(self.beta * field)
        return float(rule.weight @ (2 * difference**2).sum(axis=0))

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


BLOCK = 256  # matrices that are factorised at a time


def _not_positive(matrices: Array, floor: float) -> Array:
    """Which of the symmetric matrices have an eigenvalue up to `floor`: most blocks pass by Cholesky's method."""
    found = [np.empty(0, dtype=int)]
    shift = floor * np.eye(matrices.shape[1])
    for start in range(0, len(matrices), BLOCK):
        block = matrices[start : start + BLOCK] - shift
        try:
            np.linalg.cholesky(block)
        except np.linalg.LinAlgError:
            found.append(start + np.flatnonzero(np.linalg.eigvalsh(block)[:, 0] <= 0))
    return np.concatenate(found)


@lru_cache(maxsize=2 * len(SAMPLES))
def _normals(outputs: int, logarithm: int, parity: int) -> Array:
    """Standard normal coordinates of target and residual for 2^logarithm sequences, one of two scrambles."""
    from scipy.stats import qmc  # slow to import

    sobol = qmc.Sobol(2 * outputs, scramble=True, rng=np.random.default_rng(7919 + parity))
    half = ndtri(np.clip(sobol.random_base2(logarithm - 1), 1e-15, 1 - 1e-15))
    return np.concatenate([half, -half])  # antithetic: every odd moment is exact


class ManyTokenChannel:
    """Means over sequences of T ≥ 2 tokens by quasi Monte Carlo; `parity` chooses one of two scrambles."""

    levels = len(SAMPLES)
    tolerance = 1e-3
    budget = 3_000_000  # proximal points a search

    def __init__(self, tokens: int, beta: float, beta_target: float) -> None:
        self.tokens, self.beta, self.beta_target = tokens, beta, beta_target
        # In an orthonormal basis scores of square Q are √(2Q) times a standard normal vector: 2Q on the diagonal.
        self.basis = np.sqrt(2.0) * symmetric_basis(tokens)
        self.outputs = self.basis.shape[0]
        self._warm: dict[tuple[int, int], Array] = {}
        self._smooth: dict[tuple[int, int], bool] = {}
        self.work = 0

    def _scores(self, level: int, parity: int, scores: Scores) -> tuple[Array, Array, Array]:
        normals = _normals(self.outputs, SAMPLES[level], parity)
        first, second = normals[:, : self.outputs], normals[:, self.outputs :]
        root = np.sqrt(scores.label_square)
        return normals, root * first, scores.overlap / root * first + scores.spread * second

    def _softmax(self, coordinates: Array, beta: float) -> Array:
        """Row-wise softmax of the score matrices with these coordinates: shape (points, T, T)."""
        scores = beta * np.tensordot(coordinates, self.basis, axes=1)
        scores -= scores.max(axis=2, keepdims=True)
        weight = np.exp(scores)
        return np.asarray(weight / weight.sum(axis=2, keepdims=True))

    def means(self, level: int, parity: int, scores: Scores, search: bool = True) -> ChannelMeans:
        """All means at the given scores; `search` starts afresh from the field and from the label."""
        normals, target, field = self._scores(level, parity, scores)
        label = self._softmax(target, self.beta_target)
        starts = [field, self.beta_target / self.beta * target]
        if (level, parity) in self._warm:
            starts = [*starts, self._warm[level, parity]] if search else [self._warm[level, parity]]
        ends = [self._descend(start, label, field, scores.response) for start in starts]
        values = np.stack([self._value(end, label, field, scores.response) for end, _ in ends])
        best = np.stack([end for end, _ in ends])[values.argmin(axis=0), np.arange(len(field))]
        self._warm[level, parity] = best
        self.work += len(starts) * len(field)
        loss, gradient, hessian = self._loss(best, label, True)
        moved = best - field
        output = -gradient if scores.response < 1 else moved / scores.response
        slopes = hessian @ np.linalg.inv(np.eye(self.outputs) + scores.response * hessian)
        first, second = normals[:, : self.outputs], normals[:, self.outputs :]
        wanted = {
            "pull": (output * first).sum(axis=1),
            "force": (output * second).sum(axis=1),
            "power": (output**2).sum(axis=1),
            "slope_square": (slopes**2).sum(axis=(1, 2)),
            "smooth_divergence": -np.trace(slopes, axis1=1, axis2=2),
            "loss": loss,
            "cost": (moved**2).sum(axis=1) / (2 * scores.response),
        }
        means = {name: float(column.mean()) for name, column in wanted.items()}
        if search or len(starts) > 1:
            self._smooth[level, parity] = bool(np.ptp(values, axis=0).max() < 1e-6)
        if self._smooth[level, parity] and scores.spread > 0:
            # All starts end in one minimum: both forms of the divergence are one. That by products shares its errors
            # with the pull, so that m and q have two thirds of the noise of the Hessian's form.
            means["smooth_divergence"] = means["force"] / scores.spread
        return ChannelMeans(**means, unfinished=sum(undone for _, undone in ends))

    def _value(self, u: Array, label: Array, field: Array, response: float) -> Array:
        miss = label - self._softmax(u, self.beta)
        return np.asarray((miss**2).sum(axis=(1, 2)) + ((u - field) ** 2).sum(axis=1) / (2 * response))

    def _loss(self, u: Array, label: Array, curved: bool) -> tuple[Array, Array, Array]:
        """Loss, gradient and Hessian (exact, or its Gauss–Newton part) in the coordinates."""
        pieces = [slice(start, start + BLOCK) for start in range(0, len(u), BLOCK)]
        parts = [self._loss_of_block(u[piece], label[piece], curved) for piece in pieces]
        loss, gradient, hessian = (np.concatenate(column) for column in zip(*parts, strict=True))
        return loss, gradient, hessian

    def _loss_of_block(self, u: Array, label: Array, curved: bool) -> tuple[Array, Array, Array]:
        share = self._softmax(u, self.beta)
        miss = label - share
        level = (miss * share).sum(axis=2, keepdims=True)
        flat, count = self.basis.reshape(self.outputs, -1).T, len(u)  # row and token, coordinate
        gradient = (-2 * self.beta * share * (miss - level)).reshape(count, -1) @ flat
        # A row's Hessian in its scores is −2β² [diag(p w) − (p f)pᵀ − p(p f)ᵀ]; its Gauss–Newton part has no misses.
        bend = (miss - level if curved else 0.0) - share
        cross = bend + 0.5 * (share**2).sum(axis=2, keepdims=True)
        products = (flat[:, :, None] * flat[:, None, :]).reshape(len(flat), -1)
        hessian = ((share * bend).reshape(count, -1) @ products).reshape(count, self.outputs, self.outputs)
        rows = self.basis.transpose(1, 2, 0)  # row, token, coordinate
        first, second = (np.matmul(part.transpose(1, 0, 2), rows).transpose(1, 2, 0) for part in (share * cross, share))
        mixed = first @ second.transpose(0, 2, 1)
        hessian -= mixed + mixed.transpose(0, 2, 1)
        hessian *= -2 * self.beta**2
        return (miss**2).sum(axis=(1, 2)), gradient, hessian

    def _descend(self, start: Array, label: Array, field: Array, response: float) -> tuple[Array, int]:
        u, active = start.copy(), np.arange(len(start))
        identity = np.eye(self.outputs) / response
        for _ in range(MAXIMUM_STEPS):
            at, its_label, its_field = u[active], label[active], field[active]
            _, gradient, hessian = self._loss(at, its_label, True)
            hessian += identity
            bad = _not_positive(hessian, 1e-3 / response)
            if bad.size:
                hessian[bad] = self._loss(at[bad], its_label[bad], False)[2] + identity
            pull = gradient + (at - its_field) / response
            step = -np.linalg.solve(hessian, pull[..., None])[..., 0]
            step *= np.minimum(1.0, LEAP / (self.beta * np.maximum(np.abs(step).max(axis=1), 1e-300)))[:, None]
            size = np.abs(step).max(axis=1)
            step *= self._fractions(at, step, pull, its_label, its_field, response)[:, None]
            u[active] = at + step
            active = active[size > 1e-7]
            if active.size == 0:
                break
        return u, int(active.size)

    def _fractions(self, u: Array, step: Array, pull: Array, label: Array, field: Array, response: float) -> Array:
        fraction = np.ones(len(u))
        active = np.flatnonzero(np.abs(step).max(axis=1) > 1e-2)
        value = self._value(u, label, field, response)
        slope = (pull * step).sum(axis=1)
        for _ in range(60):
            if active.size == 0:
                break
            point = u[active] + fraction[active, None] * step[active]
            trial = self._value(point, label[active], field[active], response)
            active = active[trial > value[active] + 1e-4 * fraction[active] * slope[active] + 1e-15]
            fraction[active] *= 0.5
        return fraction

    def error(self, level: int, parity: int, scores: Scores) -> float:
        """The loss of fresh sequences."""
        _, target, field = self._scores(level, parity, scores)
        difference = self._softmax(target, self.beta_target) - self._softmax(field, self.beta)
        return float((difference**2).sum(axis=(1, 2)).mean())

    def forget(self) -> None:
        """Drop what was kept to start from."""
        self._warm.clear()

    def start(self) -> None:
        """Begin a search: nothing is known and nothing of the budget is spent."""
        self.forget()
        self.work = 0
