"""Gaps of a law by subordination: their exact ends, followed along the real axis.

In a gap every part's argument is real and z moves one way with the leading one; where dz vanishes the gap ends. Many
gaps are followed at once, in steps, through atoms and through infinity where they are in the way.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from derivations import _free_calculus as calculus
from numerics.subordination import REAL, Node, Solved, Tree

Array = NDArray[Any]  # real
Complex = NDArray[np.complex128]
Flags = NDArray[np.bool_]

MARCHES = 4000  # steps at most along a gap
SMALLEST = 1e-15  # share of the usual step below which none is possible
DIP = 0.3  # of dz's values at the ends of a step: below this in between there might be a band that was stepped over
MARCH = 0.25  # of that distance: a step along the real axis
NEGLIGIBLE = 1e-24  # of the size: a gap that comes nearer to 0 than this has no edge before it
ATOM = 1e-8  # of a part's size: an argument so near to an atom steps over it,
STEPPED = 1e-7  # if that moves z by less than this share of the smallest operand of a sum
TOUCHING = 1e-25  # of a part's size: an argument so near to a band's end has reached it
ZERO = 1e-12  # of the size: a hard edge so near to 0 is 0, where the argument met an atom at 0
HUGE = 1e6  # of a part's size: its argument is on its way through infinity
POLE = 1e-11  # of 1/G where dz vanishes, in sizes: there is a pole of G
HARD = 1e-6  # of 1/G at an edge, in sizes: the density diverges there
ILLINOIS = 200  # steps at most to a fold


class Edge(NamedTuple):
    """An end of a band, whether the density diverges there, and whether like any power, not an inverse root."""

    at: float
    hard: bool = False
    power: bool = False


class Step(NamedTuple):
    """Guesses of all arguments one step ahead, and what kind of step it is."""

    guess: Array
    through: Flags  # an atom of a part
    touching: Flags  # the end of a part's own band: there is no step
    usual: Flags  # neither, nor through infinity


class Gaps:
    """The gaps of a law's tree."""

    def __init__(self, tree: Tree) -> None:
        self._tree, self._lead = tree, tree.lead
        self._side = tree.parts[tree.lead].side
        self._size, self._finest = tree.size, _finest(tree.root)

    def hull(self) -> tuple[float, float]:
        """Both ends of the support."""
        low, high = self.outer()
        atoms = [p for p, _ in self._tree.masses]
        return min([low.at, *atoms]), max([high.at, *atoms])

    def outer(self) -> tuple[Edge, Edge]:
        """The outermost ends of the continuous part."""
        root = self._tree.root
        reach = self._size + max(abs(root.low), abs(root.high))
        x = np.array([root.low - reach, root.high + reach])
        left, right = self.edges(self._tree.solve(x + 0j), np.array([1, -1]))
        return left, right

    def edges(self, w: Complex, direction: Any) -> list[Edge]:
        """The ends of gaps, each from arguments w of a point in it and a direction of z."""
        found = [Edge(0.0, True, True)] * w.shape[1]  # what is followed to z = 0 keeps this
        forward = np.asarray(direction) * self._side
        state, share = Solved(self._tree, np.asarray(w.real, dtype=np.complex128)), np.ones(w.shape[1])
        active, folds = np.arange(w.shape[1]), []
        for _ in range(MARCHES):
            if active.size == 0:
                break
            step = self._ahead(state, forward[active], share[active])
            ahead, good, turned = self._taken(state, step)
            ended = step.touching | (step.through & (turned | ~good)) | (share[active] < SMALLEST)
            for k in np.flatnonzero(ended).tolist():
                found[active[k]] = self._stopped(state.column(k), step, k, bool(turned[k]))
            turning = np.flatnonzero(turned & ~ended).tolist()
            folds += [(int(active[k]), state.column(k), ahead.column(k)) for k in turning]
            share[active] = np.where(good, np.minimum(1.0, 2 * share[active]), 0.5 * share[active])
            keep = ~(ended | turned | (good & self._vanished(state, ahead)))
            state = Solved(self._tree, np.where(good, ahead.w, state.w)[:, keep])
            active = active[keep]
        else:
            law = self._tree.root.law
            raise ArithmeticError(f"a gap of {law} could not be followed to its end in {MARCHES} steps")
        for (place, _, _), edge in zip(folds, self._folds(folds), strict=True):
            found[place] = edge
        return found

    def _taken(self, state: Solved, step: Step) -> tuple[Solved, Flags, Flags]:
        """The solution one step ahead, where it is good, and where dz has changed its sign on the way."""
        ahead, good = self._real(step.guess)
        here, there = self._rate(state) * self._side, self._rate(ahead) * self._side
        with np.errstate(all="ignore"):
            mean = (ahead.z - state.z).real / (ahead.w - state.w)[self._lead].real * self._side
        told = step.usual & (np.abs(ahead.z - state.z) > 1e-9 * np.abs(state.z))  # else the mean has no digits
        good = good & (~told | (there <= 0) | (_least(here, mean, there) > DIP * np.minimum(here, there)))
        return ahead, good, good & (there <= 0)

    def _vanished(self, state: Solved, ahead: Solved) -> Flags:
        """Whether z has come to 0 without passing it."""
        before, after = state.z.real, ahead.z.real
        return np.asarray((np.abs(after) < NEGLIGIBLE * self._size) & (np.sign(before) == np.sign(after)))

    def _stopped(self, w: Complex, step: Step, k: int, turned: bool) -> Edge:
        """The edge where no usual step leads on."""
        state = Solved(self._tree, self._snapped(w) if step.touching[k] else w)
        through = bool(step.through[k])
        hard = through or 1 / abs(complex(Solved(self._tree, w).g[0])) < HARD * self._size
        return self._end(state, 0, hard, hard and not (turned and through))

    def _snapped(self, w: Complex) -> Complex:
        """Arguments that have come to the ends of their bands, put there."""
        out = w.copy()
        for part in self._tree.parts:
            for end in part.band or ():
                if abs(w[part.index, 0].real - end) <= 2e-14 * abs(end):
                    out[part.index, 0] = end
        return out

    def _end(self, state: Solved, k: int, hard: bool, power: bool = False) -> Edge:
        z = float(state.z[k].real)
        beyond = bool(self._tree.root.law.nonnegative) and z < 0  # the way to an atom at 0 is not gone to its end
        return Edge(0.0 if beyond or (hard and abs(z) < ZERO * self._size) else z, hard, power)

    def _rate(self, state: Solved) -> Array:
        """dz by the leading argument along the real axis."""
        return np.asarray((state.dz * self._tree.tangent(state, self._lead)).sum(axis=0).real)

    def _ahead(self, state: Solved, forward: Array, share: Array) -> Step:
        tangent = self._tree.tangent(state, self._lead)
        w, rate = state.w.real, tangent.real * forward
        sizes = self._tree.sizes
        to_atom, to_band = np.array([p.ahead(w[p.index], rate[p.index]) for p in self._tree.parts]).transpose(1, 0, 2)
        with np.errstate(divide="ignore", invalid="ignore"):
            speed = np.maximum(np.abs(rate), 1e-300)
            atom, band, infinity = (
                np.where(apart >= 0, apart / speed, np.inf) for apart in (to_atom, to_band, np.abs(w))
            )
            zero = [np.abs(g) / np.abs((dg * tangent).sum(axis=0)) for g, dg in state.inverted]
        # Arguments pass through infinity where G or m is 0 in an inner gap, and change sign if their order is odd.
        out = (np.abs(w) > HUGE * sizes) & (np.abs(w) > HUGE * np.abs(state.z.real)) & (w * rate > 0)
        far = out.any(axis=0) & (np.abs(w) > 0.1 * HUGE**0.5 * sizes) & (w * rate > 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            pole = np.where(far, infinity, 0.0).max(axis=0)  # where the leading argument is not one of them
            order = np.where(far[self._lead], rate * w[self._lead] / (w * rate[self._lead]), pole / infinity)
        turned = far & (np.round(np.abs(np.where(far, order, 0))) % 2 == 1)
        amount = MARCH * share * np.minimum.reduce([atom.min(axis=0), band.min(axis=0), *zero])
        amount = np.where(far.any(axis=0), 2 * pole, amount)
        amount = np.where(far[self._lead], 0.0, amount)
        through = (to_atom < ATOM * sizes).any(axis=0) & (atom.min(axis=0) < band.min(axis=0)) & ~far.any(axis=0)
        through &= 2 * atom.min(axis=0) * np.abs(self._rate(state)) < STEPPED * self._finest
        amount = np.where(through, 2 * atom.min(axis=0), amount)
        touching = (to_band < TOUCHING * sizes + 1e-14 * np.abs(w)).any(axis=0) & ~through & ~far.any(axis=0)
        beyond = np.where(turned, -w, np.where(far, w, w + amount * rate))
        return Step(beyond, through, touching, ~(through | touching | far.any(axis=0)))

    def _real(self, guess: Array) -> tuple[Solved, NDArray[np.bool_]]:
        """Solutions on the real axis with the leading argument held, and where there is one."""
        found, met = self._tree.newton(guess + 0j, np.zeros(guess.shape[1], dtype=complex), self._lead)
        real = (np.abs(found.w.imag) <= REAL * np.abs(found.w)).all(axis=0)
        real &= np.abs(found.z.imag) <= REAL * np.abs(found.z) + 1e-16 * self._size
        return found, met & real & found.proper

    def _folds(self, pairs: list[tuple[int, Complex, Complex]]) -> list[Edge]:
        """Where dz vanishes between two points of the real curve (Illinois' method, all pairs at once)."""
        if not pairs:
            return []
        ends = [_Ends(self, np.concatenate([pair[side] for pair in pairs], axis=1)) for side in (1, 2)]
        last = np.zeros(len(pairs))
        for _ in range(ILLINOIS):
            found, rate = self._between(*ends)
            same = np.sign(rate) == np.sign(ends[0].rate)
            for side, here in ((0, same), (1, ~same)):
                ends[side].move(here, found, rate)
                again = here & (last == side + 1)
                ends[1 - side].rate = np.where(again, 0.5 * ends[1 - side].rate, ends[1 - side].rate)
            last = np.where(same, 1, 2)
            # z is stationary there: it has its last digit long before the argument has.
            fine = np.abs(ends[0].level - ends[1].level) <= 1e-16 * np.abs(ends[0].level)
            close = np.abs(ends[1].place - ends[0].place) <= 4e-16 * np.abs(ends[0].place)
            if np.all(fine | close | (rate == 0)):
                break
        return [self._end(found, k, 1 / abs(complex(found.g[k])) < POLE * self._size) for k in range(len(pairs))]

    def _between(self, first: _Ends, second: _Ends) -> tuple[Solved, Array]:
        """The real curve, and dz, where a chord between two ends meets 0."""
        with np.errstate(invalid="ignore", divide="ignore"):
            cut = np.clip(first.rate / (first.rate - second.rate), 1e-3, 1 - 1e-3)
        at = first.place + np.where(np.isfinite(cut), cut, 0.5) * (second.place - first.place)
        close = np.abs(at - first.place) < np.abs(at - second.place)
        near = Solved(self._tree, np.where(close, first.w, second.w))
        away = at - near.w[self._lead].real
        guess = near.w.real + self._tree.tangent(near, self._lead).real * away
        guess[self._lead] = at
        found, good = self._real(guess)
        if not good.all():
            raise ArithmeticError(f"an edge of {self._tree.root.law} could not be found between two real points")
        return found, self._rate(found)


class _Ends:
    """One end of each of many brackets of a fold."""

    def __init__(self, gaps: Gaps, w: Complex) -> None:
        state = Solved(gaps._tree, w)
        self._lead = gaps._lead
        self.w, self.rate = state.w.copy(), gaps._rate(state)
        self.place, self.level = state.w[self._lead].real.copy(), state.z.real.copy()

    def move(self, where: Flags, state: Solved, rate: Array) -> None:
        """Take a point in between for the end."""
        self.w, self.rate = np.where(where, state.w, self.w), np.where(where, rate, self.rate)
        self.place = np.where(where, state.w[self._lead].real, self.place)
        self.level = np.where(where, state.z.real, self.level)


def _finest(node: Node) -> float:
    """The size of the smallest operand of a sum."""
    operands = node.children if isinstance(node.law, calculus.FreeSum) else ()
    return float(min([node.size, *map(_finest, operands)]))


def _least(first: Array, mean: Array, last: Array) -> Array:
    """The least value on a step of the parabola with these end values and this mean."""
    bend = 3 * (first + last) - 6 * mean
    slope = last - first - bend
    with np.errstate(all="ignore"):
        at = -slope / (2 * bend)
        dips = (bend > 0) & (at > 0) & (at < 1)
        return np.where(dips, first - slope**2 / (4 * bend), np.minimum(first, last))
