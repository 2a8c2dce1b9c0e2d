"""A law of the calculus by subordination as a curve over the real axis: gaps, bands, and values anywhere.

Gaps are looked for on a grid and followed to their exact ends; bands are resolved in panels, which find any other gap.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from derivations import _free_calculus as calculus
from numerics.panels import Band, GapInsideError, Mobius, Solution
from numerics.subordination import REAL, Edge, Solved, Tree

Array = NDArray[Any]  # real
Complex = NDArray[np.complex128]

SEEDS = 160  # points of the support's hull at which gaps are looked for first


def _moved_by(law: Any, distance: Any) -> Any | None:
    """A sum with an atomic operand, moved by a number; None for other laws."""
    if isinstance(law, calculus.Atoms):
        return calculus.Atoms(tuple(p + distance for p, _ in law.atoms()), tuple(w for _, w in law.atoms()))
    if not isinstance(law, calculus.FreeSum):
        return None
    left, right = (_moved_by(operand, distance) for operand in law.operands)
    return left + law.right if left is not None else law.left + right if right is not None else None


class SubordinationCurve:
    """The Cauchy transform of a law of the calculus with numeric parameters: its bands, and its values anywhere.

    Shifts, scales and inverses at the outside of the law are a Möbius map of what is inside.
    """

    def __init__(self, law: Any) -> None:
        self._map = Mobius()
        while isinstance(law, calculus.Scaled | calculus.Shifted | calculus.Inverse):
            if isinstance(law, calculus.Scaled):
                step = Mobius(a=float(law.factor))
            else:
                step = Mobius(b=float(law.shift)) if isinstance(law, calculus.Shifted) else Mobius(0.0, 1.0, 1.0, 0.0)
            self._map, law = self._map.after(step), law.law
        self._tree = Tree(law)

    # -- bands

    @cached_property
    def _inner_bands(self) -> list[Band]:
        """The bands before the map, from left to right."""
        left, right = self._tree.outer_edges()
        ends = [left, *(edge for gap in self._gaps(left.at, right.at) for edge in gap), right]
        return [band for low, high in zip(ends[::2], ends[1::2], strict=True) for band in self._band(low, high)]

    def _band(self, low: Edge, high: Edge) -> list[Band]:
        """One band, cut where an end or 0 needs a logarithm of its own."""
        ways = [[low, high]]
        if low.power and high.power:
            ways = [[low, Edge(0.5 * (low.at + high.at)), high]]
        elif low.at < 0 < high.at and self._multiplies:
            ways.append([low, Edge(0.0, True, True), high])
        for cuts in ways[:-1]:
            try:
                return [band for pair in itertools.pairwise(cuts) for band in self._resolved(*pair)]
            except ArithmeticError:  # the density of a product may diverge at 0, inside a band
                continue
        return [band for pair in itertools.pairwise(ways[-1]) for band in self._resolved(*pair)]

    @property
    def _multiplies(self) -> bool:
        """Whether the law is a product, which keeps its digits near 0; there it may behave like any power."""
        root = self._tree.root
        return isinstance(root.law, calculus.FreeProduct | calculus.ProductPower | calculus.FreePoisson)

    def _resolved(self, low: Edge, high: Edge, whole: bool = False) -> list[Band]:
        """The bands between two edges: one if `whole`, else cut at any gap that comes to light."""
        power = next((edge for edge in (low, high) if edge.power), None)
        origin, solver = 0.0, self._solver
        if power is not None and power.at != 0:
            if (moved := self._about(power.at)) is None:
                power = None  # the panels do what they can
            else:
                origin, solver = moved
        ends = [0.0 if edge is power else edge.at - origin for edge in (low, high)]
        poles = [(p - origin, mass) for p, mass in self._tree.masses if low.at < p < high.at]
        at_zero = sum(mass for p, mass in self._tree.masses if power is not None and p == power.at)
        try:
            return [
                Band(
                    solver,
                    (ends[0], ends[1]),
                    (low.hard, high.hard),
                    logarithmic=power is not None,
                    poles=poles,
                    at_zero=at_zero,
                    whole=whole,
                    image=self._map.after(Mobius(b=origin)),
                    origin=origin,
                )
            ]
        except GapInsideError as found:
            w = self._tree.solve(np.full(2, found.at + origin, dtype=complex))
            before, after = self._tree.edges(w, np.array([-1, 1]))
        if low.at < before.at < after.at < high.at:
            return self._resolved(low, before) + self._resolved(after, high)
        return self._resolved(low, high, True)  # a thin neck

    def intervals(self) -> list[Band]:
        """The bands, from left to right."""
        return sorted(self._inner_bands, key=lambda band: band.left)

    def _gaps(self, left: float, right: float) -> list[tuple[Edge, Edge]]:
        """Gaps inside the hull of the support, as far as a first grid shows them; the bands find any other."""
        share = np.sin(0.5 * np.pi * (np.arange(SEEDS) + 0.5) / SEEDS) ** 2
        x = [left + (right - left) * share]
        if left >= 0:
            x.append(np.geomspace(max(left, 1e-9 * right), right, SEEDS + 2)[1:-1])
        elif right > 0:
            x += [end * np.geomspace(1e-9, 1, SEEDS // 2, endpoint=False) for end in (left, right)]
        points = np.setdiff1d(np.concatenate(x), self._tree.atoms)
        w = self._tree.solve(points + 0j)
        real = np.atleast_1d((np.abs(w.imag) <= REAL * np.abs(w)).all(axis=0))
        gaps: list[tuple[Edge, Edge]] = []
        # The first point of each run; a run that holds more than one gap is gone on with behind the first.
        seeds: NDArray[np.int64] = np.flatnonzero(real & ~np.append(False, real[:-1]))
        while seeds.size:
            edges = self._tree.edges(np.repeat(w[:, seeds], 2, axis=1), np.tile([-1, 1], seeds.size))
            gaps += zip(edges[::2], edges[1::2], strict=True)
            beyond = [int(np.searchsorted(points, edge.at, side="right")) for edge in edges[1::2]]
            stops = np.append(np.flatnonzero(~real), points.size)
            run_ends = [int(stops[np.searchsorted(stops, k)]) for k in seeds]
            seeds = np.array([k for k, stop in zip(beyond, run_ends, strict=True) if k < stop], dtype=int)
        return self._joined(sorted(gaps))

    def _joined(self, gaps: list[tuple[Edge, Edge]]) -> list[tuple[Edge, Edge]]:
        """Gaps with no density between them, as where the way along one ended at a pole of its arguments, made one."""
        if len(gaps) < 2:
            return gaps
        middle = np.array([0.5 * (a[1].at + b[0].at) for a, b in itertools.pairwise(gaps)])
        w = self._tree.solve(middle + 0j)
        empty = np.atleast_1d((np.abs(w.imag) <= REAL * np.abs(w)).all(axis=0))
        joined = gaps[:1]
        for gap, no_band in zip(gaps[1:], empty.tolist(), strict=True):
            if no_band:
                joined[-1] = (joined[-1][0], gap[1])
            else:
                joined.append(gap)
        return joined

    # -- values

    def _about(self, x: float) -> tuple[float, Callable[..., Solution]] | None:
        """An atom at an edge, and the solver of the law moved there, where distances to the edge keep their digits.

        A sum moves an atomic operand; other laws cannot be moved so.
        """
        law = self._tree.root.law
        exact = min((p for p, w in law.atoms() if float(w) > 0), key=lambda p: abs(float(p) - x), default=None)
        if exact is None or (moved := _moved_by(law, -exact)) is None:
            return None
        return float(exact), SubordinationCurve(moved)._solver

    def _solver(self, x: Array, guess: Complex | None) -> Solution:
        target = x + 0j
        if guess is None:
            state = Solved(self._tree, self._tree.solve(target))
        else:
            state, met = self._tree.newton(guess, target)
            real = (np.abs(state.w.imag) <= REAL * np.abs(state.w)).all(axis=0)
            lost = ~met | ~state.proper | real
            if lost.any():
                w = state.w.copy()
                w[:, lost] = self._tree.solve(target[lost])
                state = Solved(self._tree, w)
        noise = np.abs((state.dg * self._tree.step(state, target)).sum(axis=0))  # what another step would change
        return Solution(state.g, (state.dg * self._tree.tangent(state)).sum(axis=0), noise, state.w)

    def _solved(self, at: Complex) -> Solved:
        """The solution before the map, at points with Im ≥ 0; on the real axis the limits from above."""
        w = np.empty((len(self._tree.parts), at.size), dtype=complex)
        left = np.ones(at.size, dtype=bool)
        for band in self._inner_bands:
            rows = np.flatnonzero((at.imag == 0) & band.holds(at.real))
            if rows.size and not band.origin:
                w[:, rows], left[rows] = band.solve(at.real[rows]).state, False
        if left.any():
            w[:, left] = self._tree.solve(at[left])
        return Solved(self._tree, w)

    def resolvent(self, at: Complex) -> tuple[Complex, Complex]:
        """G and G' at points with Im ≥ 0; on the real axis the limits from above."""
        outer = np.asarray(at, dtype=complex)
        value, slope = np.empty_like(outer), np.empty_like(outer)
        infinite = outer == self._map.a / self._map.c if self._map.c else np.zeros(outer.shape, dtype=bool)
        if infinite.any():  # the image of ∞, where G is a mean and G' a second moment
            value[infinite], slope[infinite] = self._map.at_infinity(self._tree.root.mean, self._tree.root.second)
        rest = outer[~infinite]
        inner = np.asarray(self._map.back(rest))
        turned = (inner.imag < 0) | ((rest.imag == 0) & (self._map.determinant < 0))
        state = self._solved(inner.real + 1j * np.where(rest.imag == 0, 0.0, np.abs(inner.imag)))
        tangent = self._tree.tangent(state)
        found = (state.g, state.m, (state.dg * tangent).sum(axis=0), (state.dm * tangent).sum(axis=0))
        g, m, dg, dm = (np.where(turned, np.conj(a), a) for a in found)
        value[~infinite] = self._map.resolvent(inner, g, m)
        slope[~infinite] = self._map.slope(inner, g, m, (dg, dm))
        return value, slope

    def continued(self, at: Complex) -> Complex:
        """G alone."""
        return self.resolvent(at)[0]

    def slope(self, at: Complex, value: Complex) -> Complex:
        """G' alone."""
        return self.resolvent(at)[1]
