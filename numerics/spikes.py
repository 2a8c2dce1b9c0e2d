"""Outliers that a rank-one spike pulls out of any bulk, forward and inverse, and what eigenvectors of the bulk keep.

Laws `additive-spike`, `semicircle-spike`, `semicircle-shrinkage`, `wishart-shrinkage` and their overlaps, chapter
`free_probability`. Overlaps are squared scalar products of unit vectors.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from numerics.cauchy import AtomicSpectrum, LawSpectrum
from numerics.free_convolution import SemicircleSum

CIRCLE = 32  # points of the Cauchy integral for derivatives: at a quarter of the distance, 4^-32
EDGE_NODES = 24  # Chebyshev points, in the root of the distance, that continue G to an edge


class Bulk(Protocol):
    """A law with bands, atoms and a Cauchy transform (`SemicircleSum`, `FreeLaw`, `WishartProduct`)."""

    def stieltjes(self, z: Any) -> Any: ...


@dataclass(frozen=True)
class Outlier:
    """An eigenvalue outside the bulk: its location, the spike that makes it, the squared overlap with the spike.

    `side` is "above", "below" or "between" the bands of the bulk.
    """

    location: float
    spike: float
    overlap: float
    side: str


@dataclass(frozen=True)
class Threshold:
    """A spike strength at which an outlier leaves the bulk, with the band edge that it leaves and the side."""

    spike: float
    edge: float
    side: str


class _Spikes:
    """Common part: an outlier stands in a gap of the bulk where a decreasing transform meets 1/spike."""

    def __init__(self, bulk: Bulk) -> None:
        self.bulk = bulk
        self._pieces = _pieces(bulk)
        self._edge_cache: dict[tuple[float, float], float] = {}

    def _gaps(self) -> list[tuple[float, float, str]]:
        pieces = self._pieces
        inner = [(a[1], b[0], "between") for a, b in itertools.pairwise(pieces)]
        return [(-np.inf, pieces[0][0], "below"), *inner, (pieces[-1][1], np.inf, "above")]

    def _transform(self, x: float) -> float:
        raise NotImplementedError

    def _overlap(self, x: float, spike: float) -> float:
        raise NotImplementedError

    def _check(self, spike: float) -> float:
        value = float(spike)
        if not np.isfinite(value) or value == 0:
            raise ValueError(f"spike must be finite and not 0, got {spike} (0 is no spike)")
        return value

    def _ends(self, low: float, high: float) -> tuple[float, float]:
        """The transform just inside the two ends of a gap."""
        return self._edge(low, high, +1), self._edge(high, low, -1)

    def _edge(self, edge: float, other: float, inward: int) -> float:
        if not np.isfinite(edge):
            return 0.0
        if (edge, inward) not in self._edge_cache:
            self._edge_cache[edge, inward] = self._edge_limit(edge, other, inward)
        return self._edge_cache[edge, inward]

    def _edge_limit(self, edge: float, other: float, inward: int) -> float:
        """Limit at an edge: the transform is analytic in the root of the distance; ±∞ at an atom or a hard edge."""
        if self._diverges(edge):
            return inward * np.inf
        width = min([b - a for a, b, _ in self._pieces if edge in (a, b) and b > a] + [abs(other - edge)])
        root = 0.25 * np.sqrt(width) * 0.5 * (1 + np.cos((np.arange(EDGE_NODES) + 0.5) * np.pi / EDGE_NODES))
        values = np.array([self._transform(edge + inward * t * t) for t in root])
        fit = np.polynomial.chebyshev.Chebyshev.fit(root, values, EDGE_NODES - 1, domain=[0, 0.25 * np.sqrt(width)])
        return float(fit(0.0))

    def _diverges(self, edge: float) -> bool:
        if any(edge == a == b for a, b, _ in self._pieces):
            return True
        pdf = getattr(self.bulk, "pdf", None)
        return pdf is not None and bool(np.isinf(pdf(edge)))

    def outliers(self, spike: float) -> tuple[Outlier, ...]:
        """All outliers of a spike, from left to right; none if it is subcritical on every side."""
        value = self._check(spike)
        found = []
        for low, high, side in self._gaps():
            at_low, at_high = self._ends(low, high)
            if (at_low > 1 / value > at_high) and (location := self._root(1 / value, low, high)) is not None:
                found.append(Outlier(location, value, self._overlap(location, value), side))
        return tuple(found)

    def _root(self, level: float, low: float, high: float) -> float | None:
        def gap(x: float) -> float:
            return self._transform(x) - level

        scale = max(self._pieces[-1][1] - self._pieces[0][0], abs(self._pieces[-1][1]), abs(self._pieces[0][0]))
        start, stop = low, high
        if not np.isfinite(low):
            start = high - scale
            while gap(start) < 0:
                start = high - 2 * (high - start)
        if not np.isfinite(high):
            stop = low + scale
            while gap(stop) > 0:
                stop = low + 2 * (stop - low)
        # At the ends themselves G loses half its digits; step inwards until the sign is right.
        near = _step_in(lambda x: gap(x) > 0, start, stop) if np.isfinite(low) else start
        far = _step_in(lambda x: gap(x) < 0, stop, start) if np.isfinite(high) else stop
        if near is None or far is None:
            return None
        return float(brentq(gap, near, far, xtol=1e-300, rtol=8.9e-16))

    def invert(self, location: float) -> Outlier:
        """The spike that makes an outlier at `location`. Raises ValueError if the location is inside the bulk."""
        x = float(location)
        for low, high, side in self._gaps():
            if low < x < high:
                level = self._transform(x)
                if level == 0 or not np.isfinite(level):
                    raise ValueError(
                        f"location {x} corresponds to no finite spike (the bulk's transform is {level} there)"
                    )
                return Outlier(x, 1 / level, self._overlap(x, 1 / level), side)
        raise ValueError(f"location must lie outside the bulk {[(a, b) for a, b, _ in self._pieces]}, got {location}")

    def thresholds(self) -> tuple[Threshold, ...]:
        """Each band edge with the spike strength at which an outlier leaves it (0 where every spike does)."""
        result = []
        for low, high, side in self._gaps():
            for edge, value in zip((low, high), self._ends(low, high), strict=True):
                if np.isfinite(edge) and value != 0:
                    result.append(Threshold(1 / value, edge, side))
        return tuple(result)


class AdditiveSpikes(_Spikes):
    """Bulk + θ u uᵀ: an outlier at G(x) = 1/θ with overlap −1/(θ² G'(x)); θ of either sign."""

    def _transform(self, x: float) -> float:
        return float(np.real(self.bulk.stieltjes(x)))

    def _overlap(self, x: float, spike: float) -> float:
        return float(-1 / (spike**2 * _derivative(self.bulk, x, self._pieces)))


class MultiplicativeSpikes(_Spikes):
    """(1 + θ u uᵀ)^½ · bulk · (1 + θ u uᵀ)^½ with a nonnegative bulk: an outlier at T(x) = x G(x) − 1 = 1/θ, θ > −1.

    Squared overlap of its eigenvector with u: −(1 + θ)/(θ² x T'(x)). Raises ValueError for a bulk below 0.
    """

    def __init__(self, bulk: Bulk) -> None:
        super().__init__(bulk)
        if self._pieces[0][0] < 0:
            raise ValueError(f"bulk must be a law on [0, ∞) for a product, its support begins at {self._pieces[0][0]}")

    def _gaps(self) -> list[tuple[float, float, str]]:
        return [(max(low, 0.0), high, side) for low, high, side in super()._gaps() if high > 0]

    def _edge(self, edge: float, other: float, inward: int) -> float:
        # To the right of 0 the transform is negative: x G(x) − 1 tends to (mass at 0) − 1.
        if edge == 0.0 and inward == 1 and not any(a <= 0 < b for a, b, _ in self._pieces):
            return sum(weight for a, _, weight in self._pieces if a == 0) - 1.0
        return super()._edge(edge, other, inward)

    def _check(self, spike: float) -> float:
        value = super()._check(spike)
        if value <= -1:
            raise ValueError(f"spike must be > -1, got {spike} (1 + spike is an eigenvalue of a positive matrix)")
        return value

    def thresholds(self) -> tuple[Threshold, ...]:
        return tuple(t for t in super().thresholds() if t.edge != 0 and t.spike > -1)

    def _transform(self, x: float) -> float:
        return float(x * np.real(self.bulk.stieltjes(x)) - 1)

    def _overlap(self, x: float, spike: float) -> float:
        value, slope = float(np.real(self.bulk.stieltjes(x))), _derivative(self.bulk, x, self._pieces)
        return float(-(1 + spike) / (spike**2 * x * (value + x * slope)))


class _EmbeddedSpikes:
    """A spike that is itself an eigenvalue ℓ of the matrix to which noise is added: x = ψ(ℓ), kept while ψ'(ℓ) > 0."""

    def __init__(self, spectrum: Any, weights: ArrayLike | None) -> None:
        self._spectrum = LawSpectrum(spectrum) if hasattr(spectrum, "resolvent") else AtomicSpectrum(spectrum, weights)

    def _sums(self, spike: float) -> tuple[float, float]:
        one = np.array([float(spike)])
        real, plain, _, _ = self._spectrum.sums(np.zeros(1), one, np.zeros(1))
        return float(real[0]), float(plain[0])

    def _map(self, spike: float) -> tuple[float, float]:
        raise NotImplementedError

    def _overlap(self, spike: float, location: float, slope: float) -> float:
        raise NotImplementedError

    def outliers(self, spike: float) -> tuple[Outlier, ...]:
        """The outlier of an eigenvalue `spike` of the signal, or nothing if the noise swallows it."""
        if not np.isfinite(spike):
            raise ValueError(f"spike must be finite, got {spike}")
        low, high = self._range()
        location, slope = self._map(float(spike))
        if not slope > 0:
            return ()
        side = "above" if spike > high else "below" if spike < low else "between"
        return (Outlier(location, float(spike), self._overlap(float(spike), location, slope), side),)

    def _range(self) -> tuple[float, float]:
        if isinstance(self._spectrum, AtomicSpectrum):
            return float(self._spectrum.values[0]), float(self._spectrum.values[-1])
        pieces = _pieces(self._spectrum.law)
        return pieces[0][0], pieces[-1][1]


class SemicircleSpikes(_EmbeddedSpikes):
    """An eigenvalue ℓ of the spectrum plus semicircle noise of variance s: x = ℓ + s·G(ℓ), overlap 1 + s·G'(ℓ).

    Arguments as for `SemicircleSum`. Its `invert` reads ℓ and the overlap off an outlier's location.
    """

    def __init__(self, spectrum: Any, weights: ArrayLike | None = None, *, variance: float) -> None:
        super().__init__(spectrum, weights)
        self._sum = SemicircleSum(spectrum, weights, variance=variance)

    def _map(self, spike: float) -> tuple[float, float]:
        real, plain = self._sums(spike)
        return spike + self._sum.variance * real, 1 - self._sum.variance * plain

    def _overlap(self, spike: float, location: float, slope: float) -> float:
        return slope

    def thresholds(self) -> tuple[Threshold, ...]:
        """For each band edge of the sum, the signal eigenvalue that is mapped to it."""
        bands = self._sum.support()
        ends = [(a, "below" if i == 0 else "between") for i, (a, _) in enumerate(bands)]
        ends += [(b, "above" if i == len(bands) - 1 else "between") for i, (_, b) in enumerate(bands)]
        unit, raw = self._sum._unit, self._sum._bands
        spikes = np.concatenate([raw.left_anchor + raw.left_u, raw.right_anchor + raw.right_u]) * unit
        found = [Threshold(float(spike), edge, side) for spike, (edge, side) in zip(spikes, ends, strict=True)]
        return tuple(sorted(found, key=lambda t: t.edge))

    def invert(self, location: float) -> Outlier:
        """The signal eigenvalue behind an outlier. Raises ValueError if the location is inside the bulk."""
        if any(a <= location <= b for a, b in self._sum.support()):
            raise ValueError(f"location must lie outside the bulk {self._sum.support()}, got {location}")
        spike = float(np.real(self._sum.subordination(float(location))))
        return self.outliers(spike)[0]


class WishartSpikes(_EmbeddedSpikes):
    """A population eigenvalue ℓ seen through a sample covariance of ratio γ = dimension/samples.

    x = ψ(ℓ) = ℓ (1 + γ T(ℓ)) with T(ℓ) = ∫t/(ℓ − t) dH of the population law H ≥ 0; overlap ℓ ψ'(ℓ)/ψ(ℓ).
    """

    def __init__(self, population: Any, weights: ArrayLike | None = None, *, ratio: float) -> None:
        super().__init__(population, weights)
        if not (np.isfinite(ratio) and ratio > 0):
            raise ValueError(f"ratio must be > 0 and finite, got {ratio} (dimension over number of samples)")
        if self._range()[0] < 0:
            raise ValueError(f"population must be >= 0 (a covariance), its smallest point is {self._range()[0]}")
        self.ratio = float(ratio)

    def _map(self, spike: float) -> tuple[float, float]:
        real, plain = self._sums(spike)
        # ψ' = 1 − γ∫t²/(ℓ − t)² dH and t² = ℓ² − 2ℓ(ℓ − t) + (ℓ − t)².
        slope = 1 - self.ratio * (spike**2 * plain - 2 * spike * real + 1)
        return spike * (1 + self.ratio * (spike * real - 1)), slope

    def _overlap(self, spike: float, location: float, slope: float) -> float:
        return spike * slope / location

    def outliers(self, spike: float) -> tuple[Outlier, ...]:
        if spike <= 0:
            raise ValueError(f"spike must be > 0, got {spike} (an eigenvalue of a covariance)")
        return tuple(o for o in super().outliers(spike) if o.location > 0)

    def threshold(self) -> float:
        """The smallest population eigenvalue above H whose outlier leaves the sample bulk upwards."""
        high = self._range()[1]
        reach = high * (1 + 2 * np.sqrt(self.ratio) + self.ratio) + 1e-300
        return _crossing(lambda x: self._map(x)[1], high, reach)

    def invert(self, location: float) -> Outlier:
        """The population eigenvalue behind an outlier above the bulk. Raises ValueError at or below the upper edge."""
        start = self.threshold()
        edge = self._map(start)[0]
        if not location > edge:
            raise ValueError(f"location must be above the sample bulk's edge {edge}, got {location}")
        spike = float(
            brentq(lambda x: self._map(x)[0] - location, start, max(location, start) * (1 + 1e-12), rtol=8.9e-16)
        )
        return self.outliers(spike)[0]


# ---------------------------------------------------------------------- eigenvectors of the bulk


def semicircle_overlap(law: SemicircleSum, x: ArrayLike, signal: ArrayLike) -> Any:
    """Dimension times the squared overlap of the eigenvector at x with the signal's eigenvector at `signal`.

    s/((u − c)² + v²) on the subordination curve; averages to 1 over the spectrum. Arguments broadcast.
    """
    w = np.asarray(law.subordination(x))
    return _scalar(law.variance / np.abs(w - np.asarray(signal, dtype=float)) ** 2)


def semicircle_shrinkage(law: SemicircleSum, x: ArrayLike) -> Any:
    """The best rotation-invariant estimate of the signal's part at eigenvalue x: x − 2 s h(x), for outliers too."""
    points = np.asarray(x, dtype=float)
    return _scalar(points - 2 * law.variance * np.asarray(law.hilbert(points)))


def wishart_overlap(law: Bulk, ratio: float, x: ArrayLike, population: ArrayLike) -> Any:
    """Dimension times the squared overlap of the sample eigenvector at x > 0 with the population's at `population`.

    `law` is the sample covariance's law. γ c x/|c (1 − γ + γ x G(x)) − x|² (Ledoit & Péché 2011). Arguments broadcast.
    """
    points, c = np.broadcast_arrays(_positive_points(x), np.asarray(population, dtype=float))
    companion = 1 - ratio + ratio * points * np.asarray(law.stieltjes(points))
    return _scalar(ratio * c * points / np.abs(c * companion - points) ** 2)


def wishart_shrinkage(law: Bulk, ratio: float, x: ArrayLike) -> Any:
    """The best rotation-invariant covariance estimate at sample eigenvalue x ≥ 0: x/|1 − γ + γ x G(x)|².

    At x = 0, where γ > 1 puts an atom, −1/((γ − 1) g(0)) with the companion transform g. ValueError for x < 0,
    and for x = 0 with γ ≤ 1.
    """
    points = np.asarray(x, dtype=float)
    if np.any(points == 0) and ratio <= 1:
        raise ValueError(f"x must be > 0 for ratio <= 1 (there are no null eigenvalues), got x = 0 at ratio {ratio}")
    safe = _positive_points(np.where(points == 0, 1.0, points))
    companion = 1 - ratio + ratio * safe * np.asarray(law.stieltjes(safe))
    value = safe / np.abs(companion) ** 2
    if np.any(points == 0):
        value = np.where(points == 0, _null_shrinkage(law, ratio), value)
    return _scalar(value)


def _null_shrinkage(law: Bulk, ratio: float) -> float:
    edge = min(a for a, b, _ in _pieces(law) if b > 0)
    z = 0.25 * edge * np.exp(2j * np.pi * (np.arange(CIRCLE) + 0.5) / CIRCLE)
    companion = np.mean((1 - ratio) / z + ratio * np.asarray(law.stieltjes(z))).real
    return float(-1 / ((ratio - 1) * companion))


# ---------------------------------------------------------------------- helpers


def _positive_points(x: ArrayLike) -> Any:
    points = np.asarray(x, dtype=float)
    if not np.all(points > 0):
        raise ValueError(
            f"x must be > 0 (an eigenvalue of a sample covariance), got {points[~(points > 0)].ravel()[0]}"
        )
    return points


def _scalar(value: Any) -> Any:
    array = np.asarray(value)
    return array if array.shape else float(array)


def _pieces(bulk: Any) -> list[tuple[float, float, float]]:
    """Bands and separate atoms of a bulk from left to right; `support()` may be one pair or a list of pairs."""
    support = bulk.support()
    bands = [support] if np.ndim(support[0]) == 0 else list(support)
    pieces = [(float(a), float(b), 0.0) for a, b in bands]
    atoms = getattr(bulk, "atoms", None)
    if atoms is None:
        weight = float(getattr(bulk, "atom", 0.0))
        atoms = ((0.0, weight),) if weight > 0 else ()
    pieces += [(float(p), float(p), float(w)) for p, w in atoms if not any(a <= p <= b for a, b in bands)]
    return sorted(pieces)


def _derivative(bulk: Any, x: float, pieces: list[tuple[float, float, float]]) -> float:
    """G'(x) off the support: the law's own, or a Cauchy integral on a circle of a quarter of the distance."""
    if hasattr(bulk, "resolvent"):
        return float(np.real(bulk.resolvent(x)[1]))
    radius = 0.25 * min(min(abs(x - a), abs(x - b)) for a, b, _ in pieces)
    turn = np.exp(2j * np.pi * (np.arange(CIRCLE) + 0.5) / CIRCLE)
    return float(np.mean(np.asarray(bulk.stieltjes(x + radius * turn)) / turn).real / radius)


def _step_in(right: Callable[[float], bool], start: float, stop: float) -> float | None:
    """The nearest point to `start`, towards `stop`, where the condition holds, on a geometric scale."""
    for exponent in range(-52, 0):
        point = start + (stop - start) * 2.0**exponent
        if point != start and right(point):
            return point
    return None


def _crossing(function: Callable[[float], float], low: float, high: float) -> float:
    """Root of a function that is negative near `low` and positive at `high`; both ends may be improved outwards."""
    while function(high) <= 0:
        high = low + 2 * (high - low)
    near = high
    while function(near) > 0:
        near = low + 0.25 * (near - low)
        if near <= low * (1 + 1e-15):
            return low
    return float(brentq(function, near, high, xtol=1e-300, rtol=8.9e-16))
