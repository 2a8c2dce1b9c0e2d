"""The learned matrix in the spiked limit, d → ∞ at fixed n/d: three scalar equations at any number of sequences.

Above the critical penalty the cut lies beyond the bulk's edge; below, it sticks to the edge and the penalty fixes the
response. Newton's method on the undamped residual starts from the solution of a quadratic loss of the same stiffness.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import sympy as sp
from scipy.optimize import brentq

from derivations import scaling_laws as chapter
from numerics.scaling_laws.interpolation import mode_error, noise_level
from numerics.scaling_laws.mode_sums import Formula, evaluate, formula, solved
from numerics.scaling_laws.modes import Array, Modes
from numerics.scaling_laws.outputs import NO_RESPONSE, Distance, Output, Shares
from numerics.state_evolution import NotSolvedError

COARSE, COARSE_STOP, STOP = 0, 1e-7, 1e-9
RESIDUAL = 1e-8  # largest relative change of an unknown in one undamped iteration that counts as converged
NEWTON_STEPS = 40
DIFFERENCE = 1e-5
UNBOUNDED = 150.0  # logarithm of an unknown that no parameters give
FAINTEST = -60.0  # logarithm of a noise level that counts as none
LONGEST = 1.0  # of a Newton step, in a logarithm
STICKING, CUTTING, CRITICAL = "sticking", "cutting", "critical"


@lru_cache
def bulk_edge() -> Formula:
    """The cut at the edge of the bulk, as a function of the noise level."""
    domain: Any = chapter.recovered_strength.where
    return Formula(domain().rhs)


@lru_cache
def _defect() -> Formula:
    """Q₀ − m: the squares of the lost modes, and what the overlap misses of the others'."""
    overlap = chapter.spiked_overlap.right
    (node,) = overlap.atoms(chapter.ModeSum)
    summand = sp.expand(overlap / node * node.args[0])
    strength = chapter.strength
    sums: Any = chapter
    return Formula(sums.modes_above(strength**2 - summand) + sums.modes_below(strength**2))


@dataclass(frozen=True)
class State:
    """A learned matrix: noise level, cut and scale on the target's modes, and what follows from them."""

    delta: float
    cut: float
    scale: float
    response: float
    recovered: float
    modes: float
    causes: tuple[float, ...]  # underfitting, approximation, mismatch
    distance: Distance
    of_modes: float  # the modes' share of V n W

    @property
    def error(self) -> float:
        """E."""
        return self.distance.error


@dataclass(frozen=True)
class Setting:
    """Target, label noise and output function."""

    modes: Modes
    noise: float
    output: Output

    def state(self, delta: float, cut: float, scale: float, response: float | None, ell: float, n_eff: float) -> State:
        """The learned matrix; `response` None: as the modes alone make it."""
        values: dict[Any, float] = {chapter.noise_level: delta, chapter.cut: cut, chapter.scale: scale}
        edge = float(bulk_edge()(values))
        # In units of δ, where squares at the bulk's edge cancel exactly.
        relative = {chapter.noise_level: 1.0, chapter.cut: max(cut, edge) / delta}
        recovered = delta * float(evaluate("recovered_strength", relative))
        count = self.modes.count(np.asarray(recovered))
        where = (self.modes, count, recovered)
        parts = tuple(float(evaluate(f"spiked_{cause}", values, *where)) for cause in CAUSES)
        together = {
            chapter.underfitting_part: parts[0],
            chapter.approximation_part: parts[1],
            chapter.mismatch_part: parts[2],
        }
        error = float(formula(chapter.spiked_causes.left)(together))
        alone = {chapter.bulk_response: 0.0, chapter.n_eff: 1.0, chapter.mean_curvature: 1.0}
        of_modes = float(evaluate("spiked_response", {**values, **alone}, *where))
        if response is None:
            bend = _curvature(cut, scale, ell, n_eff)
            spent = {chapter.n_eff: n_eff, chapter.mean_curvature: bend, chapter.bulk_response: 0.0}
            response = float(evaluate("spiked_response", {**values, **spent}, *where))
        defect = float(_defect()(values, *where))
        distance = Distance(error, defect, max(response, NO_RESPONSE), self.modes.square, self.noise)
        return State(delta, cut, scale, response, recovered, float(count), parts, distance, of_modes)

    def empty(self, response: float) -> Distance:
        """Nothing is learned."""
        square = self.modes.square
        return Distance(square, square, max(response, NO_RESPONSE), square, self.noise)


CAUSES = ("underfitting", "approximation", "mismatch")


def _curvature(cut: float, scale: float, ell: float, n_eff: float) -> float:
    """W of a sequence from cut and scale."""
    gain = solved("spiked_cut", chapter.mean_gain)({chapter.cut: cut, chapter.ell: ell, chapter.n_eff: n_eff})
    return float(solved("spiked_scale", chapter.mean_curvature)({chapter.scale: scale, chapter.mean_gain: gain}))


def _field(shares: Shares, n_eff: float, ell: float) -> tuple[float, float, float, float]:
    """Noise level, cut, scale and critical penalty that the sequences give."""
    values = {
        chapter.mean_gain: shares.gain,
        chapter.mean_power: shares.power,
        chapter.mean_curvature: shares.curvature,
        chapter.n_eff: n_eff,
        chapter.ell: ell,
    }
    laws = ("spiked_noise", "spiked_cut", "spiked_scale", "critical_penalty")
    return tuple(float(evaluate(law, values)) for law in laws)  # type: ignore[return-value]


@dataclass
class Problem:
    """The equations of one phase in three logarithms: noise level, scale, and a third that the phase leaves free.

    "sticking": the response V, with the cut at the bulk's edge. "cutting": the cut over the bulk's edge, with the
    response of the modes alone. "critical": the penalty ℓ at which both hold.
    """

    setting: Setting
    n_eff: float
    ell: float
    phase: str

    def state(self, logs: Array) -> State:
        """The learned matrix at these unknowns."""
        delta, scale, third = (float(value) for value in np.exp(logs))
        edge = float(bulk_edge()({chapter.noise_level: delta}))
        if self.phase == STICKING:
            return self.setting.state(delta, edge, scale, third, self.ell, self.n_eff)
        if self.phase == CUTTING:
            return self.setting.state(delta, edge * third, scale, None, self.ell, self.n_eff)
        return self.setting.state(delta, edge, scale, None, third, self.n_eff)

    def differences(self, logs: Array) -> Array:
        """Steps of difference quotients: near recovery the scale matters on the scale of the error."""
        size = float(np.sqrt(self.state(logs).error / self.setting.modes.square))
        return np.array([DIFFERENCE, min(DIFFERENCE, max(1e-3 * size, 1e-12)), DIFFERENCE])

    def residual(self, logs: Array, level: int, rules: tuple[int, ...], search: bool = False) -> Array:
        """Logarithms of what the sequences give over what was assumed, a row for each rule; NaN if nothing is left."""
        if not (np.isfinite(logs).all() and np.abs(logs).max() < UNBOUNDED):
            return np.full((len(rules), 3), np.nan)
        state = self.state(logs)
        if not (state.response >= 0 and np.isfinite(state.error)):
            return np.full((len(rules), 3), np.nan)
        rows = []
        for rule in rules:
            shares = self.setting.output.shares(state.distance, level, rule, search)
            if not min(shares) > 0:
                return np.full((len(rules), 3), np.nan)
            ell = float(np.exp(logs[2])) if self.phase == CRITICAL else self.ell
            delta, cut, scale, critical = _field(shares, self.n_eff, ell)
            last = critical / ell if self.phase == STICKING else cut / state.cut
            rows.append(np.log([delta / state.delta, scale / state.scale, last]))
        return np.array(rows)


@dataclass
class Found:
    """Where a search ended."""

    problem: Problem
    logs: Array
    residual: Array
    rows: Array
    jacobian: Array | None = None
    quadrature_error: float = 0.0

    @property
    def size(self) -> float:
        """Largest entry of the residual; infinite where it is not a number."""
        return float(np.abs(self.residual).max()) if np.isfinite(self.residual).all() else np.inf


def newton(problem: Problem, logs: Array, level: int, rules: tuple[int, ...], stop: float, jacobian: Any) -> Found:
    """Newton's method with Broyden updates and backtracking."""

    def mean(at: Array) -> Array:
        return np.asarray(problem.residual(at, level, rules).mean(axis=0))

    rows, last = problem.residual(logs, level, rules, search=True), jacobian
    at = rows.mean(axis=0)
    for _ in range(NEWTON_STEPS):
        if not np.isfinite(at).all() or np.abs(at).max() <= stop:
            break
        fresh = jacobian is None
        if fresh:
            steps = np.diag(problem.differences(logs))
            columns = [(mean(logs + step) - at) / step.sum() for step in steps]
            jacobian = np.stack(columns, axis=1)
        if not np.isfinite(jacobian).all() or abs(np.linalg.det(jacobian)) < 1e-200:
            break
        last, move = jacobian, -np.linalg.solve(jacobian, at)
        move *= min(1.0, LONGEST / np.abs(move).max())
        fraction = 1.0
        while fraction > 1e-3:
            new_rows = problem.residual(logs + fraction * move, level, rules)
            trial = new_rows.mean(axis=0)
            if np.isfinite(trial).all() and np.linalg.norm(trial) < (1 - 0.1 * fraction) * np.linalg.norm(at):
                break
            fraction /= 2 if fresh else 8
        else:
            if fresh:
                break
            jacobian = None
            continue
        move, change = fraction * move, trial - at
        slow = np.linalg.norm(trial) > 0.3 * np.linalg.norm(at)
        jacobian = None if slow else jacobian + np.outer(change - jacobian @ move, move) / (move @ move)
        logs, at, rows = logs + move, trial, new_rows
    return Found(problem, logs, at, rows, jacobian if jacobian is not None else last)


# -- starts: a quadratic loss of the same stiffness -------------------------------------------------------------------


@dataclass(frozen=True)
class Start:
    """Unknowns to start from, in each of the two phases, the likelier first."""

    phases: tuple[tuple[str, Array], ...]


class Quadratic:
    """The quadratic loss that acts like an output on a matrix that is 0: its equations are scalar."""

    def __init__(self, setting: Setting) -> None:
        self.setting, self.outputs = setting, setting.output.outputs
        shares = setting.output.shares(setting.empty(0.0), COARSE, setting.output.rules[0], True)
        flat = {chapter.mean_gain: shares.gain, chapter.response: 0.0, chapter.outputs: self.outputs}
        self.stiffness = float(solved("linear_gain", chapter.stiffness)(flat))
        self.scale = shares.gain / shares.curvature

    def start(self, n_eff: float, ell: float) -> Start:
        """Unknowns of both phases near the solution."""
        delta, error = self.noise_level(n_eff)
        critical = float(evaluate("critical_penalty", {chapter.mean_power: self._power(error, 0.0)}))
        if critical == 0:  # every mode is recovered without a penalty: any penalty cuts more than the noise
            cutting = self._cutting(n_eff, ell)
            return Start(((CUTTING, _unscaled(cutting)), (CUTTING, cutting)))
        share = min(ell / critical, 0.9)
        values = {chapter.mean_power: self._power(error, 0.0) * share**2, **self._values(error)}
        response = float(_response_of_power()(values))
        edge = float(bulk_edge()({chapter.noise_level: delta}))
        state = self.setting.state(delta, edge, 1.0, response, ell, n_eff)
        gain = float(evaluate("linear_gain", {**self._values(error), chapter.response: response}))
        sticks = ell < critical and response * n_eff * gain >= state.of_modes
        guess = np.log([delta, self.scale if share > 0.5 else 1.0, response])
        if sticks:
            return Start(((STICKING, guess), (CUTTING, np.array([guess[0], guess[1], 0.02]))))
        cutting = self._cutting(n_eff, ell, delta)
        return Start(((CUTTING, cutting), (STICKING, guess), (CUTTING, _unscaled(cutting))))

    def noise_level(self, n_eff: float) -> tuple[float, float]:
        """Noise level and error as λ → 0⁺."""
        arrays = (np.asarray(value) for value in (n_eff, self.setting.noise, self.outputs))
        delta, error = noise_level(mode_error("erm"), self.setting.modes, *arrays)
        return float(delta), float(error)

    def _values(self, error: float) -> dict[Any, float]:
        return {
            chapter.excess: error,
            chapter.noise: self.setting.noise,
            chapter.outputs: self.outputs,
            chapter.stiffness: self.stiffness,
        }

    def _power(self, error: float, response: float) -> float:
        return float(evaluate("linear_power", {**self._values(error), chapter.response: response}))

    def _cutting(self, n_eff: float, ell: float, delta: float = 0.0) -> Array:
        """Above the critical penalty: the cut for which the penalty is ℓ; `delta`: the noise level below it."""
        bare = float(evaluate("linear_gain", {**self._values(0.0), chapter.response: 0.0}))

        def excess(log_cut: float) -> float:
            state = self._at_cut(n_eff, log_cut)
            share = min(state.of_modes / (n_eff * self.outputs), 1 - 1e-9)  # V W/K = f V = 1 − f/2c
            needed = solved("spiked_cut", chapter.ell)(
                {chapter.cut: state.cut, chapter.n_eff: n_eff, chapter.mean_gain: (1 - share) * bare}
            )
            return float(np.log(needed / ell))

        # The gain is that of no response at most.
        low = float(np.log(evaluate("spiked_cut", {chapter.ell: ell, chapter.n_eff: n_eff, chapter.mean_gain: bare})))
        if delta > 0:
            low = max(low, float(np.log(bulk_edge()({chapter.noise_level: delta}))))
        high = low + 1.0
        while excess(high) < 0 and high < low - FAINTEST:
            high += 1.0
        log_cut = low if excess(low) >= 0 else float(brentq(excess, low, high, xtol=1e-13))
        state = self._at_cut(n_eff, log_cut)
        beyond = state.cut / float(bulk_edge()({chapter.noise_level: state.delta}))
        return np.array([np.log(state.delta), np.log(self.scale), max(np.log(beyond), 1e-6)])

    def _at_cut(self, n_eff: float, log_cut: float) -> State:
        """The learned matrix at this cut, scale 1; a cut that would lie in the bulk is at its edge."""
        cut = float(np.exp(log_cut))

        def balance(log_delta: float) -> float:
            state = self.setting.state(float(np.exp(log_delta)), cut, 1.0, 0.0, 1.0, n_eff)
            values = {**self._values(state.error), chapter.n_eff: n_eff}
            return float(np.log(evaluate("interpolating_noise", values))) - log_delta

        high = log_cut - float(np.log(bulk_edge()({chapter.noise_level: 1.0})))
        low, root = high - 1.0, high
        if balance(high) < 0:
            while balance(low) < 0 and low > high + FAINTEST:
                low -= 2.0
            root = float(brentq(balance, low, high, xtol=1e-14)) if balance(low) > 0 else low
        return self.setting.state(float(np.exp(root)), cut, 1.0, 0.0, 1.0, n_eff)


def _unscaled(logs: Array) -> Array:
    """The same unknowns with scale 1, which labels without noise bring about."""
    return np.array([logs[0], 0.0, logs[2]])


@lru_cache
def _response_of_power() -> Formula:
    """The response at which a quadratic loss has a given noise power (the positive one)."""
    solutions = sp.solve(chapter.linear_power.statement.subs(chapter.mean_power, _POWER), chapter.response)
    positive = [one for one in solutions if one.subs(_TRY).evalf() > 0]
    return Formula(positive[0].subs(_POWER, chapter.mean_power))


_POWER = sp.Symbol("power", positive=True)
_TRY = {_POWER: 1, chapter.outputs: 2, chapter.stiffness: 2, chapter.excess: 1, chapter.noise: 1}


# -- solutions --------------------------------------------------------------------------------------------------------


class Solver:
    """Solutions at many sample sizes and penalties for one setting."""

    def __init__(self, setting: Setting) -> None:
        self.setting, self.output = setting, setting.output
        self.output.forget()
        self.quadratic = Quadratic(setting)
        self._bare: Shares | None = None

    @property
    def bare(self) -> Shares:
        """What a sequence gives to a matrix that is 0 and has no response."""
        if self._bare is None:
            level, rules = self.output.levels[0], self.output.rules
            found = [self.output.shares(self.setting.empty(0.0), level, rule, True) for rule in rules]
            self._bare = Shares(*(float(value) for value in np.mean(found, axis=0)))
        return self._bare

    def plateau(self, n_eff: float, ell: float) -> State | None:
        """The state in which nothing is learned and nothing responds, if the penalty is that strong."""
        delta, cut, scale, critical = _field(self.bare, n_eff, ell)
        if ell < critical:
            return None
        state = self.setting.state(delta, cut, scale, 0.0, ell, n_eff)
        return state if state.modes == 0 else None

    def solve(self, n_eff: float, ell: float) -> Found:
        """The solution that is connected to that of a weak penalty."""
        found = self._direct(n_eff, ell)
        if not accepted(found, COARSE_STOP * 10):
            found = min((found, *self._followed(n_eff, ell)), key=lambda one: (not _consistent(one), one.size))
        return self.finish(found)

    def _direct(self, n_eff: float, ell: float) -> Found:
        start = self.quadratic.start(n_eff, ell)
        tries = (self._coarse(Problem(self.setting, n_eff, ell, phase), logs) for phase, logs in start.phases)
        return _best(tries)

    def _coarse(self, problem: Problem, logs: Array) -> Found:
        return newton(problem, logs, COARSE, self.output.rules[:1], COARSE_STOP, None)

    def _followed(self, n_eff: float, ell: float) -> Iterator[Found]:
        """Follow the solution from a weaker penalty, where a start is at hand."""
        for weaker in (0.3, 0.03, 1e-3, 1e-5):
            found = self._direct(n_eff, weaker * ell)
            if not accepted(found, 10 * COARSE_STOP):
                continue
            step = 0.5
            while found.problem.ell < ell and step > 1e-3:
                goal = min(found.problem.ell * float(np.exp(step)), ell)
                further = _best(self._from(found, n_eff, goal))
                if accepted(further, 10 * COARSE_STOP):
                    found, step = further, 1.5 * step
                else:
                    step /= 2
            yield (
                found
                if found.problem.ell == ell
                else Found(
                    Problem(self.setting, n_eff, ell, found.problem.phase),
                    found.logs,
                    np.full(3, np.nan),
                    np.full((1, 3), np.nan),
                )
            )

    def _from(self, found: Found, n_eff: float, ell: float) -> Iterator[Found]:
        """Solutions in both phases from a neighbour, its own phase first."""
        phase, state = found.problem.phase, found.problem.state(found.logs)
        other = np.array([found.logs[0], found.logs[1], 0.01 if phase == STICKING else np.log(state.response)])
        for name, logs in ((phase, found.logs), (CUTTING if phase == STICKING else STICKING, other)):
            yield self._coarse(Problem(self.setting, n_eff, ell, name), logs)

    def critical(self, n_eff: float) -> Found:
        """The penalty at which the cut comes off the bulk's edge while modes are learned."""
        bare = float(evaluate("critical_penalty", {chapter.mean_power: self.bare.power}))
        tries = []
        for share in (0.7, 0.9, 0.5, 0.99, 0.3):
            delta = self.quadratic.start(n_eff, share * bare).phases[0][1][0]
            logs = np.array([delta, np.log(self.quadratic.scale), np.log(share * bare)])
            tries.append(self._coarse(Problem(self.setting, n_eff, 0.0, CRITICAL), logs))
            if tries[-1].size <= 10 * COARSE_STOP:
                break
        return self.finish(min(tries, key=lambda one: one.size))

    def critical_penalty(self, n_eff: float) -> float:
        """The penalty at which the cut comes off the bulk's edge. Raises NotSolvedError if it is not found."""
        if self.setting.noise == 0 and self.quadratic.noise_level(n_eff)[0] == 0:
            return 0.0  # every mode is recovered without a penalty, and any penalty cuts more than the noise
        delta, _, _, critical = _field(self.bare, n_eff, 1.0)
        if delta >= self.setting.modes.largest:  # nothing is learned on either side
            return critical
        found = self.critical(n_eff)
        if not found.size <= RESIDUAL:
            raise NotSolvedError(f"no critical penalty at n_eff = {n_eff:.6g}: the residual is {found.size:.2g}")
        return float(np.exp(found.logs[2]))

    def finish(self, found: Found) -> Found:
        """The same on fine quadratures, refined until their error is small enough."""
        if not np.isfinite(found.size):
            return found
        for level in self.output.levels:
            found = newton(found.problem, found.logs, level, self.output.rules, STOP, found.jacobian)
            found.quadrature_error = self._quadrature_error(found)
            if found.quadrature_error <= self.output.goal:
                break
        return found

    def _quadrature_error(self, found: Found) -> float:
        """Relative error of E (of ℓ at the critical penalty), from what each rule by itself would change."""
        if len(self.output.rules) == 1:
            return 0.0
        if found.jacobian is None or not np.isfinite(found.size):
            return np.inf
        moves = -np.linalg.solve(found.jacobian, found.rows.T).T
        if found.problem.phase == CRITICAL:
            return self.output.error_of_rules(moves[:, 2])
        base = found.problem.state(found.logs).error
        steps = np.diag(found.problem.differences(found.logs))
        gradient = [(found.problem.state(found.logs + step).error / base - 1) / step.sum() for step in steps]
        return self.output.error_of_rules(moves @ np.array(gradient))


def _consistent(found: Found) -> bool:
    """Whether the point is in the phase whose equations it solves."""
    if not np.isfinite(found.size):
        return False
    if found.problem.phase == STICKING:
        return bulk_response(found) >= -1e-9
    return found.problem.phase == CRITICAL or float(found.logs[2]) >= -1e-9


def accepted(found: Found, size: float) -> bool:
    """Whether a search ended in a solution."""
    return found.size <= size and _consistent(found)


def _best(tries: Iterator[Found]) -> Found:
    """The first that is a solution, else the nearest to one."""
    seen = []
    for found in tries:
        if accepted(found, 10 * COARSE_STOP):
            return found
        seen.append(found)
    return min(seen, key=lambda one: (not _consistent(one), one.size))


def bulk_response(found: Found) -> float:
    """What the bulk beyond the cut adds to the response, B: V n W less the modes' share."""
    if found.problem.phase != STICKING:
        return 0.0
    state = found.problem.state(found.logs)
    bend = _curvature(state.cut, state.scale, found.problem.ell, found.problem.n_eff)
    return float(state.response * found.problem.n_eff * bend - state.of_modes)
