"""Cauchy sums of a spectrum on and above the real axis, and the bands that a semicircle makes of it.

At w = u + i·v, with d = u − λ: A = ⟨d/(d²+v²)⟩ = Re G, B = ⟨1/(d²+v²)⟩ = −Im G/v, C = ⟨1/(d²+v²)²⟩, D = ⟨d/(d²+v²)²⟩.
u is given as anchor + offset, so that a distance much smaller than the position keeps its digits.
"""

from __future__ import annotations

import itertools
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq

Array = NDArray[Any]  # real throughout, but for the index arrays of neighbours
Sums = tuple[Array, Array, Array, Array]

DIRECT = 2048  # up to this many distinct eigenvalues every sum runs over all of them
LEAF = 128  # eigenvalues of a leaf of the cluster tree
CLUSTER_NODES = 24  # Chebyshev points that stand for a far cluster
SEPARATION = 3.0  # a cluster is far at three half-widths from its centre
HEIGHT_ROUNDING = 4e-15  # of B: sums of positive terms, relative
NEWTON_TURNS, BISECTIONS = 60, 400  # of the height; the second halves q, down to 1e-300 at worst
CHUNK = 1 << 15  # matrix entries handled at a time: four arrays of this size stay in the cache


class Spectrum(Protocol):
    """What the semicircle sum needs to know of the spectrum that it convolves."""

    mean: float
    variance: float
    has_potential: bool

    @property
    def compression_error(self) -> float: ...

    def scaled(self, factor: float) -> Any: ...
    def sums(self, anchor: Array, offset: Array, height: Array) -> Sums: ...
    def angle(self, anchor: Array, offset: Array, height: Array) -> Array: ...
    def height(self, s: float, anchor: Array, offset: Array, guess: Array | None = None) -> Array: ...
    def bands(self, s: float) -> Any: ...
    def outside(self, s: float, bands: Any, x: Array, index: NDArray[np.int64]) -> tuple[Array, Array]: ...


class AtomicSpectrum:
    """Finitely many eigenvalues with weights. ValueError for empty, complex, non-finite or badly weighted ones."""

    has_potential = True

    def __init__(self, eigenvalues: ArrayLike, weights: ArrayLike | None = None) -> None:
        values = _real_vector("spectrum", eigenvalues)
        shares = np.full(values.size, 1.0 / values.size) if weights is None else _real_vector("weights", weights)
        if shares.size != values.size:
            raise ValueError(f"weights must have one entry an eigenvalue ({values.size}), got {shares.size}")
        if np.any(shares < 0):
            raise ValueError(f"weights must be >= 0, got {shares.min()}")
        if abs(shares.sum() - 1) > 1e-9:
            raise ValueError(f"weights must sum to 1, got a sum of {shares.sum()}; divide them by it")
        values, shares = values[shares > 0], shares[shares > 0] / shares.sum()
        self.values, inverse = np.unique(values, return_inverse=True)
        self.weights = np.bincount(inverse.ravel(), shares)
        self.mean = float(self.values @ self.weights)
        self.variance = float(self.weights @ (self.values - self.mean) ** 2)

    def scaled(self, factor: float) -> AtomicSpectrum:
        """The spectrum times a positive factor."""
        return AtomicSpectrum(self.values * factor, self.weights)

    # ------------------------------------------------------------------ sums

    @cached_property
    def _tree(self) -> ClusterTree | None:
        return ClusterTree(self.values, self.weights) if self.values.size > DIRECT else None

    @cached_property
    def compression_error(self) -> float:
        """Bound on the relative error that clustering adds to A, B, C and D; 0 where every eigenvalue is summed."""
        return cluster_bound() if self._tree is not None else 0.0

    def sums(self, anchor: Array, offset: Array, height: Array) -> Sums:
        """A, B, C, D at anchor + offset + i·height (arrays of one shape; height 0 only off the spectrum)."""

        def kernel(d: Array, v: Array, weights: Array) -> tuple[Array, ...]:
            r = d * d
            r += (v * v)[:, None]
            np.reciprocal(r, out=r)
            plain = r @ weights
            d *= r
            real = d @ weights
            d *= r
            skew = d @ weights
            r *= r
            return real, plain, r @ weights, skew

        real, plain, square, skew = self._over(anchor, offset, height, kernel, 4)
        return real, plain, square, skew

    def _even(self, anchor: Array, offset: Array, height: Array) -> tuple[Array, Array]:
        """B and C alone, all that the height needs."""

        def kernel(d: Array, v: Array, weights: Array) -> tuple[Array, ...]:
            d *= d
            d += (v * v)[:, None]
            np.reciprocal(d, out=d)
            plain = d @ weights
            d *= d
            return plain, d @ weights

        plain, square = self._over(anchor, offset, height, kernel, 2)
        return plain, square

    def angle(self, anchor: Array, offset: Array, height: Array) -> Array:
        """The imaginary part of ⟨log(w − λ)⟩, in [0, π]."""

        def kernel(d: Array, v: Array, weights: Array) -> tuple[Array, ...]:
            return (np.arctan2(np.broadcast_to(v[:, None], d.shape), d) @ weights,)

        return self._over(anchor, offset, height, kernel, 1)[0]

    def _over(self, anchor: Array, offset: Array, height: Array, kernel: Any, count: int) -> tuple[Array, ...]:
        """Apply a kernel (distances, heights, weights) → `count` sums, directly or leaf by leaf."""
        result = tuple(np.empty_like(offset) for _ in range(count))
        groups = (
            [(slice(None), self.values, self.weights)] if self._tree is None else self._tree.groups(anchor + offset)
        )
        for rows, values, weights in groups:
            a, t, v = anchor[rows], offset[rows], height[rows]
            step = min(max(1, CHUNK // values.size), max(a.size, 1))
            buffer = np.empty((step, values.size))
            parts = []
            for i in range(0, a.size, step):
                d = np.subtract(a[i : i + step, None], values, out=buffer[: a.size - i])
                d += t[i : i + step, None]
                parts.append(kernel(d, v[i : i + step], weights))
            for target, column in zip(result, zip(*parts, strict=True), strict=False):
                target[rows] = np.concatenate(column)
        return result

    def _near(self, anchor: Array, offset: Array) -> tuple[Array, Array, Array, Array]:
        """Squared distances to the neighbours on both sides, and their weights."""
        right = np.clip(np.searchsorted(self.values, anchor + offset), 0, self.values.size - 1)
        left = np.maximum(right - 1, 0)
        distances = [((anchor - self.values[i]) + offset) ** 2 for i in (left, right)]
        return distances[0], distances[1], self.weights[left], self.weights[right]

    def height(self, s: float, anchor: Array, offset: Array, guess: Array | None = None) -> Array:
        """v > 0 with B(u + iv) = 1/s, for u inside a band.

        In q = v², 1/B is concave and increasing (a weighted harmonic mean), so Newton's method from below is monotone.
        It ends where the next step is rounding of B: in a thin neck between two bands that is all there is of q.
        """
        if offset.size == 0:
            return np.empty(0)
        d_left, d_right, w_left, w_right = self._near(anchor, offset)
        spread = self.variance + ((anchor - self.mean) + offset) ** 2
        q = np.maximum.reduce([s * w_left - d_left, s * w_right - d_right, s - spread, np.full_like(d_left, 1e-290)])
        if guess is not None:
            q = np.maximum(q, guess**2)
        low, high = np.zeros_like(q), np.full_like(q, s)  # B < 1/v², so that q < s
        active = np.arange(offset.size)
        for turn in range(BISECTIONS):
            at = q[active]
            plain, square = self._even(anchor[active], offset[active], np.sqrt(at))
            gap = s * plain - 1
            low[active], high[active] = np.where(gap > 0, at, low[active]), np.where(gap < 0, at, high[active])
            step = gap * plain / square
            new = np.maximum(at + step, 0.25 * at)
            if turn > NEWTON_TURNS:  # rounding has led the way astray: halve what is left
                new = np.sqrt(np.maximum(low[active], 1e-3 * high[active]) * high[active])
            q[active] = new
            settled = (np.abs(step) <= 3e-9 * new) | (np.abs(gap) <= HEIGHT_ROUNDING)  # the next step is its square
            active = active[~settled]
            if active.size == 0:
                break
        return np.asarray(np.sqrt(q))

    # ------------------------------------------------------------------ bands

    def bands(self, s: float) -> Any:
        """The bands after adding a semicircle of variance s.

        B on the axis is convex between two eigenvalues, and a gap is open where its minimum lies below 1/s.
        """
        from numerics.free_convolution import Bands

        gap, split = self._open_gaps(s)
        last = self.values.size - 1
        reach = np.sqrt(s)
        left_index, right_index = np.concatenate([[0], gap + 1]), np.concatenate([gap, [last]])
        width = self.values[gap + 1] - self.values[gap]
        left = self._edge(s, left_index, -1.0, np.concatenate([[reach], width - split]))
        right = self._edge(s, right_index, 1.0, np.concatenate([split, [reach]]))
        cumulative = np.concatenate([[0.0], np.cumsum(self.weights)])
        return Bands(
            self.values[left_index], left, self._shift(s, left_index, left),
            self.values[right_index], right, self._shift(s, right_index, right),
            cumulative[right_index + 1] - cumulative[left_index],
        )  # fmt: skip

    def _shift(self, s: float, index: NDArray[np.int64], offset: Array) -> Array:
        return offset + s * self.sums(self.values[index], offset, np.zeros_like(offset))[0]

    def _open_gaps(self, s: float) -> tuple[NDArray[np.int64], Array]:
        """Indices of the gaps that stay open, and for each a distance from its left eigenvalue where B < 1/s."""
        width = np.diff(self.values)
        left, right = np.cbrt(self.weights[:-1]), np.cbrt(self.weights[1:])
        # The two neighbours alone give B ≥ (w_l^⅓ + w_r^⅓)³/width²: a gap that fails this is closed.
        gap = np.flatnonzero((left + right) ** 3 * s < width**2)
        width = width[gap]
        point = width * (left[gap] / (left[gap] + right[gap]))
        low, high = np.zeros(gap.size), width.copy()
        found = np.zeros(gap.size, dtype=bool)
        active = np.arange(gap.size)
        for _ in range(80):
            if active.size == 0:
                break
            _, plain, square, skew = self.sums(self.values[gap[active]], point[active], np.zeros(active.size))
            found[active] = s * plain < 1
            falling = skew > 0  # B' = −2D
            low[active] = np.where(falling, point[active], low[active])
            high[active] = np.where(falling, high[active], point[active])
            end = np.where(falling, high[active], low[active])
            bound = plain - 2 * skew * (end - point[active])  # the tangent bounds a convex function from below
            step = point[active] + skew / (3 * square)
            step = np.where((step > low[active]) & (step < high[active]), step, 0.5 * (low[active] + high[active]))
            undecided = ~found[active] & (s * bound < 1) & (np.abs(step - point[active]) > 1e-15 * width[active])
            point[active] = np.where(undecided, step, point[active])
            active = active[undecided]
        return gap[found], point[found]

    def _edge(self, s: float, index: NDArray[np.int64], side: float, reach: Array) -> Array:
        """Signed distance from an eigenvalue to the nearest point on its given side with B = 1/s, at most `reach` away.

        In B^(-1/2), nearly linear in the distance, Newton's method needs few steps; a bracket guards it.
        """
        anchor, low, high = self.values[index], np.sqrt(s * self.weights[index]), reach.copy()
        point, active = np.minimum(low, high), np.arange(index.size)
        for _ in range(100):
            _, plain, _, skew = self.sums(anchor[active], side * point[active], np.zeros(active.size))
            root = 1 / np.sqrt(plain)
            gap = root - np.sqrt(s)
            low[active] = np.where(gap < 0, point[active], low[active])
            high[active] = np.where(gap >= 0, point[active], high[active])
            with np.errstate(divide="ignore", invalid="ignore"):
                step = point[active] - gap / (side * skew * root**3)
            inside = (step >= low[active]) & (step <= high[active])
            step = np.where(inside, step, 0.5 * (low[active] + high[active]))
            moved = np.abs(step - point[active])
            point[active] = step
            active = active[moved > 2e-16 * step]
            if active.size == 0:
                break
        return np.asarray(side * point)

    def outside(self, s: float, bands: Any, x: Array, index: NDArray[np.int64]) -> tuple[Array, Array]:
        """Anchor and offset of the real w with w + s·G(w) = x, in the gap right of band `index` (−1: leftmost)."""
        first = index < 0
        band = np.clip(index, 0, bands.count - 1)
        after = np.minimum(band + 1, bands.count - 1)
        anchor = np.where(first, bands.left_anchor[0], bands.right_anchor[band])
        reach = 2 + np.abs(x - anchor)
        low = np.where(first, -reach, bands.right_u[band])
        last = index == bands.count - 1
        inner = (bands.left_anchor[after] - anchor) + bands.left_u[after]
        high = np.where(first, bands.left_u[0], np.where(last, reach, inner))
        target = x - anchor
        point, active = np.clip(target, low, high), np.arange(x.size)
        for _ in range(100):
            if active.size == 0:
                break
            at = point[active]
            real, plain, _, _ = self.sums(anchor[active], at, np.zeros_like(at))
            gap = (at + s * real) - target[active]
            low[active], high[active] = np.where(gap < 0, at, low[active]), np.where(gap >= 0, at, high[active])
            with np.errstate(divide="ignore", invalid="ignore"):
                step = at - gap / (1 - s * plain)
            step = np.where((step > low[active]) & (step < high[active]), step, 0.5 * (low[active] + high[active]))
            met = np.abs(gap) <= 4e-16 * (np.abs(at) + s * np.abs(real))
            point[active] = np.where(met, at, step)
            active = active[~met & (np.abs(step - at) > 4e-16 * np.abs(step))]
        return anchor, point


class LawSpectrum:
    """A law with `resolvent`, `support`, `atoms`, `mean`, `var` as the spectrum of a semicircle sum."""

    has_potential = False
    compression_error = 0.0

    def __init__(self, law: Any, factor: float = 1.0) -> None:
        self.law, self.factor = law, factor
        self.mean, self.variance = float(law.mean()) * factor, float(law.var()) * factor**2

    def scaled(self, factor: float) -> LawSpectrum:
        """The law times a positive factor."""
        return LawSpectrum(self.law, self.factor * factor)

    def _resolvent(self, w: NDArray[np.complex128]) -> tuple[Array, Array]:
        value, slope = self.law.resolvent(w / self.factor)
        return np.asarray(value / self.factor), np.asarray(slope / self.factor**2)

    def sums(self, anchor: Array, offset: Array, height: Array) -> Sums:
        """A, B, C, D at anchor + offset + i·height; on the axis C is not needed and given as 0."""
        w = (anchor + offset) + 1j * height
        value, slope = self._resolvent(w)
        on_axis = height == 0
        v = np.where(on_axis, 1.0, height)
        plain = np.where(on_axis, -slope.real, -value.imag / v)
        square = np.where(on_axis, 0.0, (slope.real + plain) / (2 * v**2))
        return value.real, plain, square, np.where(on_axis, 0.0, slope.imag / (2 * v))

    def angle(self, anchor: Array, offset: Array, height: Array) -> Array:
        """Not available: a law's logarithmic potential has no closed form here."""
        raise NotImplementedError("the logarithmic potential of a law has no closed form; use quadrature")

    def height(self, s: float, anchor: Array, offset: Array, guess: Array | None = None) -> Array:
        """v > 0 with −Im G(u + iv)/v = 1/s, for u inside a band, by a bracketed Newton iteration from above."""
        u = anchor + offset
        low, high = np.zeros_like(u), np.full_like(u, np.sqrt(s))
        v = high.copy() if guess is None else np.clip(guess, 1e-3 * high, high)
        active = np.arange(u.size)
        for _ in range(100):
            if active.size == 0:
                break
            at = v[active]
            value, slope = self._resolvent(u[active] + 1j * at)
            poisson = -value.imag
            gap = at - s * poisson  # the imaginary part of w + s·G(w)
            low[active], high[active] = np.where(gap < 0, at, low[active]), np.where(gap >= 0, at, high[active])
            step = at - (at / poisson - s) * poisson**2 / (poisson + at * slope.real)
            ok = np.isfinite(step) & (step > low[active]) & (step < high[active])
            step = np.where(ok, step, np.sqrt(np.maximum(low[active], 1e-4 * high[active]) * high[active]))
            v[active] = step
            active = active[np.abs(step - at) > 4e-16 * at]
        return v

    def bands(self, s: float) -> Any:
        """The bands after adding a semicircle: as for eigenvalues, B is convex on every gap of the law's support."""
        from numerics.free_convolution import Bands

        pieces = self._pieces()
        edges = [self._outer_edge(s, pieces[0][0], -1.0)]
        masses, mass = [], 0.0
        for (_, right, weight), (left, _, _) in itertools.pairwise(pieces):
            mass += weight
            inner = self._inner_edges(s, right, left)
            if inner is not None:
                edges += inner
                masses.append(mass)
                mass = 0.0
        masses.append(mass + pieces[-1][2])
        edges.append(self._outer_edge(s, pieces[-1][1], 1.0))
        u = np.array(edges)
        shift = s * self.sums(np.zeros_like(u), u, np.zeros_like(u))[0]
        starts, stops = u[0::2], u[1::2]
        # The anchor is the edge itself, so that offsets near an edge are distances from it.
        zero = np.zeros_like(starts)
        return Bands(starts, zero, shift[0::2], stops, zero.copy(), shift[1::2], np.array(masses) / sum(masses))

    def _pieces(self) -> list[tuple[float, float, float]]:
        """Bands and separate atoms of the law, with their masses, from left to right."""
        masses = self.law.band_masses()
        pieces = [
            (a * self.factor, b * self.factor, float(m)) for (a, b), m in zip(self.law.support(), masses, strict=True)
        ]
        for position, weight in self.law.atoms:
            p = position * self.factor
            inside = [i for i, (a, b, _) in enumerate(pieces) if a <= p <= b]
            if inside:
                a, b, m = pieces[inside[0]]
                pieces[inside[0]] = (a, b, m + weight)
            else:
                pieces.append((p, p, float(weight)))
        return sorted(pieces)

    def _plain(self, u: float) -> float:
        return float(-self._resolvent(np.array([u + 0j]))[1][0].real)

    def _outer_edge(self, s: float, end: float, side: float) -> float:
        """The point beyond the support with B = 1/s: B falls from its value at the edge to below 1/d² ≤ 1/s."""
        return self._crossing(s, end, end + side * np.sqrt(s))

    def _crossing(self, s: float, start: float, stop: float) -> float:
        """Root of B = 1/s between an end of the support (B large) and a point where B is at most 1/s."""

        def gap(distance: float) -> float:
            return float(1.0 / np.sqrt(self._plain(start + distance)) - np.sqrt(s))

        reach = stop - start
        near = reach
        while gap(near) >= 0:
            far, near = near, near * 0.125
            if abs(near) < 1e-15 * max(abs(start), abs(reach)):
                return start
        if near == reach:
            return stop
        return start + float(brentq(gap, near, far, xtol=1e-300, rtol=8.9e-16))

    def _inner_edges(self, s: float, left: float, right: float) -> list[float] | None:
        """The two edges inside a gap of the support, or None if the semicircle closes it."""
        low, high = left, right
        for _ in range(200):
            third = (high - low) / 3
            a, b = low + third, high - third
            value_a, value_b = self._plain(a), self._plain(b)
            if min(value_a, value_b) * s < 1:
                split = a if value_a < value_b else b
                return [self._crossing(s, left, split), self._crossing(s, right, split)]
            low, high = (a, high) if value_a > value_b else (low, b)
            if high - low < 1e-14 * (right - left):
                break
        return None

    def outside(self, s: float, bands: Any, x: Array, index: NDArray[np.int64]) -> tuple[Array, Array]:
        """As for eigenvalues: the real w with w + s·G(w) = x in the gap to the right of band `index`."""
        return AtomicSpectrum.outside(self, s, bands, x, index)  # type: ignore[arg-type]


class ClusterTree:
    """Sorted points in a binary tree; far clusters are replaced by weights at Chebyshev points."""

    def __init__(self, values: Array, weights: Array) -> None:
        self.values, self.weights = values, weights
        self._leaves: list[tuple[int, int]] = []
        self._nodes: dict[tuple[int, int], tuple[Array, Array]] = {}
        self._split(0, values.size)
        self._starts = values[[first for first, _ in self._leaves]]
        self._lists: dict[int, tuple[Array, Array]] = {}

    def _split(self, first: int, stop: int) -> None:
        if stop - first <= LEAF:
            self._leaves.append((first, stop))
            return
        middle = (first + stop) // 2
        self._split(first, middle)
        self._split(middle, stop)

    def _cluster(self, first: int, stop: int) -> tuple[Array, Array]:
        """Chebyshev points of a cluster and the weights that integrate every polynomial of their degree."""
        if (first, stop) not in self._nodes:
            values, weights = self.values[first:stop], self.weights[first:stop]
            centre, half = 0.5 * (values[0] + values[-1]), 0.5 * (values[-1] - values[0])
            if half == 0:
                self._nodes[first, stop] = (values[:1], np.array([weights.sum()]))
            else:
                angle = (np.arange(CLUSTER_NODES) + 0.5) * np.pi / CLUSTER_NODES
                points = np.cos(angle)
                moments = np.polynomial.chebyshev.chebvander((values - centre) / half, CLUSTER_NODES - 1).T @ weights
                moments[1:] *= 2
                shares = np.cos(np.outer(angle, np.arange(CLUSTER_NODES))) @ moments / CLUSTER_NODES
                self._nodes[first, stop] = (centre + half * points, shares)
        return self._nodes[first, stop]

    def groups(self, position: Array) -> list[tuple[NDArray[np.int64], Array, Array]]:
        """Evaluation points by leaf: their rows, and the points and weights that stand for the spectrum there."""
        leaf = np.clip(np.searchsorted(self._starts, position, side="right") - 1, 0, len(self._leaves) - 1)
        order = np.argsort(leaf, kind="stable")
        cuts = np.flatnonzero(np.diff(leaf[order])) + 1
        return [(rows, *self._list(int(leaf[rows[0]]))) for rows in np.split(order, cuts) if rows.size]

    def _list(self, leaf: int) -> tuple[Array, Array]:
        if leaf not in self._lists:
            low = -np.inf if leaf == 0 else self._starts[leaf]
            high = np.inf if leaf == len(self._leaves) - 1 else self._starts[leaf + 1]
            parts: list[tuple[Array, Array]] = []
            self._gather(0, self.values.size, low, high, parts)
            points, weights = (np.concatenate(column) for column in zip(*parts, strict=True))
            self._lists[leaf] = (points, weights)
        return self._lists[leaf]

    def _gather(self, first: int, stop: int, low: float, high: float, parts: list[tuple[Array, Array]]) -> None:
        left, right = self.values[first], self.values[stop - 1]
        centre, half = 0.5 * (left + right), 0.5 * (right - left)
        distance = max(low - centre, centre - high, 0.0)
        if stop - first > CLUSTER_NODES and distance > 0 and distance >= SEPARATION * half:
            parts.append(self._cluster(first, stop))
        elif stop - first <= LEAF:
            parts.append((self.values[first:stop], self.weights[first:stop]))
        else:
            middle = (first + stop) // 2
            self._gather(first, middle, low, high, parts)
            self._gather(middle, stop, low, high, parts)


def cluster_bound() -> float:
    """Bound on the relative error of a far cluster's share of A, B, C or D.

    Interpolation at k Chebyshev points errs by at most 4 M ρ^(1−k)/(ρ − 1), where M bounds the kernel on the Bernstein
    ellipse ρ; with half-axis a < SEPARATION, (SEPARATION + 1)/(SEPARATION − a) bounds the ratio of M to the kernel's
    least modulus on the cluster, to the fourth power for C and the third for D. The best a is taken.
    """
    axis = np.linspace(1.05, SEPARATION - 0.01, 400)
    rho = axis + np.sqrt(axis**2 - 1)
    ratio = ((SEPARATION + 1) / (SEPARATION - axis)) ** 4
    return float((4 * ratio * rho ** (1.0 - CLUSTER_NODES) / (rho - 1)).min())


def _real_vector(name: str, values: ArrayLike) -> Array:
    array = np.atleast_1d(np.asarray(values))
    if array.size == 0:
        raise ValueError(f"{name} must not be empty (one eigenvalue is enough)")
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got shape {array.shape}")
    if np.iscomplexobj(array):
        raise ValueError(f"{name} must be real, got complex numbers; pass the real parts if the rest is rounding")
    vector = array.astype(float)
    if not np.all(np.isfinite(vector)):
        bad = vector[~np.isfinite(vector)][0]
        raise ValueError(f"{name} must be finite, got {bad}")
    return np.asarray(vector)
