"""Free sum of an arbitrary spectrum with a semicircle: density, Hilbert transform, exact band edges, integrals.

Subordination, solved directly: z = w + s·G(w) maps a curve w = u + i·v(u) of the upper half-plane onto the real
line (Biane 1997), and everything below is read on that curve, where density and location are smooth.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from numerics.cauchy import AtomicSpectrum, LawSpectrum, Spectrum

Array = NDArray[Any]

NODES = 16  # Gauss-Legendre nodes a panel: exact for products of two resolved factors
RESOLVED = 1e-13  # tail of a panel's Legendre coefficients, relative to the band's largest value
ROUNDING = 4e-15  # of a sum over the spectrum
MAXIMUM_DEPTH = 48  # halvings of a band's half-period; a feature below 2^-48 of its band has no double in between

_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(NODES)
_VANDERMONDE = np.polynomial.legendre.legvander(_POINTS, NODES - 1)
# Discrete orthogonality: coefficients = (2k+1)/2 Σ weights·P_k·values, exact on this rule.
_ANALYSIS = (_VANDERMONDE * _WEIGHTS[:, None]).T * (np.arange(NODES)[:, None] + 0.5)

# From values at a panel's nodes to those at the nodes of its two halves: first guesses for the heights there.
_HALVES = _ANALYSIS.T @ np.hstack(
    [np.polynomial.legendre.legvander(0.5 * (_POINTS + side), NODES - 1).T for side in (-1, 1)]
)

DIRECT_POINTS = 4096  # up to this many points each is solved for itself; more of them pay for resolving the curve


@dataclass(frozen=True)
class Bands:
    """The bands of the sum, one row each. u is the subordinate argument, x the spectral one.

    Positions are offsets from an anchor (an atom of the spectrum), so that a band much narrower than its distance
    from the origin keeps its digits.
    """

    left_anchor: Array
    left_u: Array
    left_x: Array
    right_anchor: Array
    right_u: Array
    right_x: Array
    mass: Array

    @cached_property
    def left(self) -> Array:
        """Left ends, in absolute position."""
        return self.left_anchor + self.left_x

    @cached_property
    def right(self) -> Array:
        """Right ends, in absolute position."""
        return self.right_anchor + self.right_x

    @cached_property
    def width_u(self) -> Array:
        """Width of the band in u."""
        return np.asarray((self.right_anchor - self.left_anchor) + (self.right_u - self.left_u))

    @property
    def count(self) -> int:
        """Number of bands."""
        return int(self.left_anchor.size)


@dataclass
class Curve:
    """The curve v(u) over some bands, as Legendre panels in θ, where u = left + width·sin²(θ/2).

    Rows are panels sorted by position; `location` and `height` hold Legendre coefficients of x (from the band's left
    anchor) and v; `x`, `hilbert` and `mass` (quadrature weight times density) hold values at the nodes.
    """

    band: NDArray[np.int64]
    start: Array
    stop: Array
    location: Array
    height: Array
    x: Array
    hilbert: Array
    mass: Array
    ends: Array  # x − left anchor at the panel's right end
    total: Array  # mass of the panel


class SemicircleSum:
    """The free sum of a spectrum and a centred semicircle of the given variance.

    `spectrum`: one or many eigenvalues (1-D, finite, real), with `weights` that sum to 1 (equal ones if None), or a
    law: of the calculus (`derivations.free_probability`, with numeric parameters), or a distribution with `resolvent`,
    `support`, `atoms`, `mean` and `var` (`numerics.free_law.FreeLaw`). `variance` > 0, in squared
    units of the spectrum. Spectra of more than `numerics.cauchy.DIRECT` distinct eigenvalues are summed through
    clusters; `compression_error` bounds the relative error of each sum.

    Raises ValueError for an empty, complex or non-finite spectrum, weights that are negative or do not sum to 1, and a
    variance that is not positive and finite. Derived here, see law `semicircle-subordination`.
    """

    def __init__(self, spectrum: Any, weights: ArrayLike | None = None, *, variance: float) -> None:
        variance = _positive("variance", variance)
        if hasattr(spectrum, "polynomial"):
            from numerics.free_law import FreeLaw  # here: most sums are of eigenvalues, and need no algebra

            spectrum = FreeLaw(spectrum)
        if hasattr(spectrum, "resolvent"):
            if weights is not None:
                raise ValueError("weights must be None when spectrum is a law (the law has its own), got weights")
            base: Spectrum = LawSpectrum(spectrum)
        else:
            base = AtomicSpectrum(spectrum, weights)
        deviation = float(np.sqrt(variance + base.variance))
        # A power of two as unit changes no digit, and makes every tolerance below relative to the deviation.
        self._unit = 2.0 ** round(np.log2(deviation))
        self._spectrum = base.scaled(1.0 / self._unit)
        self._s = variance / self._unit**2
        self.variance = variance
        self.compression_error = base.compression_error
        self._mean = base.mean
        self._var = base.variance + variance
        empty, table = np.empty(0), np.empty((0, NODES))
        self._curve_table = Curve(
            np.empty(0, dtype=np.int64), empty, empty, table, table, table, table, table, empty, empty
        )

    # ------------------------------------------------------------------ bands

    @cached_property
    def _bands(self) -> Bands:
        bands: Bands = self._spectrum.bands(self._s)
        return bands

    @cached_property
    def _resolved_bands(self) -> NDArray[np.bool_]:
        return np.zeros(self._bands.count, dtype=bool)

    def support(self) -> list[tuple[float, float]]:
        """The bands of the density as (left, right), from left to right; their ends are exact band edges."""
        unit = self._unit
        return [(float(a * unit), float(b * unit)) for a, b in zip(self._bands.left, self._bands.right, strict=True)]

    def band_masses(self) -> Array:
        """The mass of each band of `support()`: the weight of the eigenvalues that the band stems from."""
        return self._bands.mass.copy()

    @property
    def atoms(self) -> tuple[tuple[float, float], ...]:
        """Always empty: a free sum with a semicircle has a density."""
        return ()

    # ------------------------------------------------------------------ the curve

    def _on_curve(self, band: NDArray[np.int64], theta: Array) -> tuple[Array, Array, Array]:
        """Anchor, offset of u from it, and half-width factor dθ → du, at angle θ of the given bands."""
        bands = self._bands
        width = bands.width_u[band]
        left = theta < 0.5 * np.pi
        anchor = np.where(left, bands.left_anchor[band], bands.right_anchor[band])
        from_left = bands.left_u[band] + width * np.sin(0.5 * theta) ** 2
        from_right = bands.right_u[band] - width * np.cos(0.5 * theta) ** 2
        return anchor, np.where(left, from_left, from_right), 0.5 * width * np.sin(theta)

    def _nodes(
        self, band: NDArray[np.int64], start: Array, stop: Array, guess: Array | None = None
    ) -> dict[str, Array]:
        """All that panels need, at their Gauss-Legendre nodes: arrays of shape (panels, NODES)."""
        s, shape = self._s, (band.size, NODES)
        half = 0.5 * (stop - start)
        theta = (start + half)[:, None] + half[:, None] * _POINTS
        rows = np.repeat(band, NODES)
        anchor, offset, stretch = self._on_curve(rows, theta.ravel())
        height = self._spectrum.height(s, anchor, offset, guess)
        real, plain, square, skew = self._spectrum.sums(anchor, offset, height)
        # dx/du along the curve is |H'|²/Re H' with Re H' = 2 s v² C and Im H' = 2 s v D: no cancellation in this form.
        slope = 2 * s * (height**2 * square + skew**2 / square)
        location = (anchor - self._bands.left_anchor[rows]) + (offset + s * real)
        mass = (height / (np.pi * s) * slope * stretch).reshape(shape) * half[:, None] * _WEIGHTS
        return {
            "location": location.reshape(shape),
            "height": height.reshape(shape),
            "hilbert": real.reshape(shape),
            # Rounding of B moves v² by ε·B/C: near a thin neck that is the floor of what v can show.
            "noise": (ROUNDING * self._rounding(real, plain, height) / (2 * square * height)).reshape(shape),
            "mass": mass,
            "slope": (slope * stretch).reshape(shape),
        }

    def _rounding(self, real: Array, plain: Array, height: Array) -> Array:
        """What one unit of rounding is of, in B: itself if summed, |G|/v if read off a complex value."""
        return plain if self._spectrum.has_potential else 4 * (np.abs(real) / height + plain)

    def _curve(self, wanted: NDArray[np.int64]) -> None:
        """Resolve the curve over the wanted bands (those not yet resolved), all panels of a depth at once."""
        band = wanted[~self._resolved_bands[wanted]]
        if band.size == 0:
            return
        start, stop = np.zeros(band.size), np.full(band.size, np.pi)
        largest = np.zeros(self._bands.count)
        done: list[tuple[NDArray[np.int64], Array, Array, dict[str, Array]]] = []
        guess: Array | None = None
        for _ in range(MAXIMUM_DEPTH):
            nodes = self._nodes(band, start, stop, guess)
            np.maximum.at(largest, band, nodes["height"].max(axis=1))
            good = self._resolved(band, start, stop, nodes, largest[band])
            done.append((band[good], start[good], stop[good], {k: a[good] for k, a in nodes.items()}))
            band, left, right = band[~good], start[~good], stop[~good]
            if band.size == 0:
                break
            if band.size > 100_000:
                raise ArithmeticError(self._unresolved(int(band[0])))
            middle = 0.5 * (left + right)
            guess = np.maximum(nodes["height"][~good] @ _HALVES, 0.0).ravel()
            band = np.repeat(band, 2)
            start, stop = np.column_stack([left, middle]).ravel(), np.column_stack([middle, right]).ravel()
        else:
            raise ArithmeticError(self._unresolved(int(band[0])))
        self._store(done)

    def _unresolved(self, band: int) -> str:
        return (
            f"the density of band {self.support()[band]} could not be resolved to {RESOLVED} of its largest value in "
            f"{MAXIMUM_DEPTH} halvings; the spectrum's resolvent is not smooth there"
        )

    def _resolved(self, band: Any, start: Array, stop: Array, nodes: dict[str, Array], largest: Array) -> Any:
        """True where a panel's series has converged and its quadrature reproduces the closed-form mass."""
        tail_v = np.abs(nodes["height"] @ _ANALYSIS[-2:].T).max(axis=1)
        tail_x = np.abs(nodes["location"] @ _ANALYSIS[-2:].T).max(axis=1)
        width = self._bands.right - self._bands.left
        floor = RESOLVED * largest + nodes["noise"].max(axis=1)
        good = (tail_v <= floor) & (tail_x <= RESOLVED * np.maximum(width[band], 1e-300))
        tail_m = np.abs((nodes["height"] * nodes["slope"]) @ _ANALYSIS[-2:].T).max(axis=1)
        good &= tail_m <= 1e-9 * largest * width[band]
        if self._spectrum.has_potential and good.any():
            # The closed-form distribution function at the panel's ends: a feature between the nodes cannot hide.
            rows = np.flatnonzero(good)
            exact = self._mass_up_to(band[rows], stop[rows]) - self._mass_up_to(band[rows], start[rows])
            good[rows] = np.abs(nodes["mass"][rows].sum(axis=1) - exact) <= 1e-14 + 2e-13 * self._bands.mass[band[rows]]
        return good

    def _mass_up_to(self, band: NDArray[np.int64], theta: Array) -> Array:
        """Distribution function at angle θ of a band, in closed form."""
        anchor, offset, _ = self._on_curve(band, theta)
        height = np.zeros_like(theta)
        inside = (theta > 0) & (theta < np.pi)
        height[inside] = self._spectrum.height(self._s, anchor[inside], offset[inside])
        return self._closed_cdf(anchor, offset, height)

    def _closed_cdf(self, anchor: Array, offset: Array, height: Array) -> Array:
        # ∫G dz = ∫log(w − λ)dν + (s/2) G_ν(w)²; its imaginary part is π(1 − F).
        real = self._spectrum.sums(anchor, offset, height)[0]
        angle = self._spectrum.angle(anchor, offset, height)
        return np.asarray(1.0 - (angle - real * height) / np.pi)

    def _store(self, done: list[tuple[Any, Array, Array, dict[str, Array]]]) -> None:
        band = np.concatenate([d[0] for d in done])
        start = np.concatenate([d[1] for d in done])
        stop = np.concatenate([d[2] for d in done])
        nodes = {key: np.concatenate([d[3][key] for d in done]) for key in done[0][3]}
        location, height = nodes["location"] @ _ANALYSIS.T, nodes["height"] @ _ANALYSIS.T
        new = Curve(
            band, start, stop, location, height, nodes["location"], nodes["hilbert"], nodes["mass"],
            location.sum(axis=1),  # every Legendre polynomial is 1 at the right end
            nodes["mass"].sum(axis=1),
        )  # fmt: skip
        old = self._curve_table
        columns = {f.name: np.concatenate([getattr(old, f.name), getattr(new, f.name)]) for f in fields(Curve)}
        order = np.lexsort((columns["start"], columns["band"]))
        self._curve_table = Curve(**{name: column[order] for name, column in columns.items()})
        self._resolved_bands[np.unique(band)] = True

    # ------------------------------------------------------------------ points

    def _solve(self, x: Array, gaps: bool = False) -> dict[str, Array]:
        """The point w of the curve above each x (in internal units): anchor, offset, height, hilbert, band index.

        Off the support only where `gaps` asks for it; the height is 0 there in any case.
        """
        bands, s = self._bands, self._s
        index = np.searchsorted(bands.left, x) - 1  # the band that begins strictly to the left of x
        clipped = np.clip(index, 0, bands.count - 1)
        inside = (index >= 0) & (x < bands.right[clipped])
        result = {key: np.zeros_like(x) for key in ("anchor", "offset", "height", "hilbert")}
        if inside.any():
            self._inside(x, inside, clipped, result)
        outside = ~inside
        if gaps and outside.any():
            anchor, offset = self._spectrum.outside(s, bands, x[outside], index[outside])
            result["anchor"][outside], result["offset"][outside] = anchor, offset
            result["hilbert"][outside] = self._spectrum.sums(anchor, offset, np.zeros_like(offset))[0]
        result["index"] = index
        result["inside"] = inside
        return result

    def _inside(self, x: Array, inside: NDArray[np.bool_], index: NDArray[np.int64], result: dict[str, Array]) -> None:
        rows = np.flatnonzero(inside)
        band = index[rows]
        location = x[rows] - self._bands.left_anchor[band]
        if rows.size <= DIRECT_POINTS and not self._resolved_bands[band].all():
            theta, height = self._search(band, location)
        else:
            self._curve(np.unique(band))
            theta, height = self._locate(band, location)
        anchor, offset, _ = self._on_curve(band, theta)
        offset, height, hilbert = self._polish(anchor, offset, height, x[rows])
        for key, value in (("anchor", anchor), ("offset", offset), ("height", height), ("hilbert", hilbert)):
            result[key][rows] = value

    def _search(self, band: NDArray[np.int64], location: Array) -> tuple[Array, Array]:
        """θ and v at the given locations (from the left anchor) by a bracketed Newton iteration along the curve."""
        s, bands = self._s, self._bands
        share = (location - bands.left_x[band]) / (bands.right[band] - bands.left[band])
        theta = 2 * np.arcsin(np.sqrt(np.clip(share, 1e-300, 1)))
        low, high, height = np.zeros_like(theta), np.full_like(theta, np.pi), np.zeros_like(theta)
        guess, active = np.zeros_like(theta), np.arange(theta.size)
        for _ in range(100):
            if active.size == 0:
                break
            at = theta[active]
            anchor, offset, stretch = self._on_curve(band[active], at)
            v = self._spectrum.height(s, anchor, offset, guess[active])
            real, _, square, skew = self._spectrum.sums(anchor, offset, v)
            gap = (anchor - bands.left_anchor[band[active]]) + (offset + s * real) - location[active]
            high[active], low[active] = np.where(gap > 0, at, high[active]), np.where(gap > 0, low[active], at)
            with np.errstate(divide="ignore", invalid="ignore"):
                move = -gap / (2 * s * (v**2 * square + skew**2 / square) * stretch)
                next_height = v - skew / (v * square) * stretch * move
            step = at + move
            good = (step > low[active]) & (step < high[active])
            step = np.where(good, step, 0.5 * (low[active] + high[active]))
            met = np.abs(gap) <= 1e-15 * np.abs(offset)
            theta[active] = np.where(met, at, step)
            height[active] = np.where(met | ~good, v, np.maximum(next_height, 0))
            guess[active] = np.where(good & (np.abs(next_height - v) < 0.5 * v), next_height, 0.0)
            active = active[~met & ~(good & (np.abs(move) < 1e-7 * np.minimum(at, np.pi - at)))]
        return theta, height

    def _panel_of(self, band: NDArray[np.int64], location: Array) -> NDArray[np.int64]:
        """Row of the panel that holds a location (an offset from its band's left anchor)."""
        curve, anchor = self._curve_table, self._bands.left_anchor
        panel = np.searchsorted(anchor[curve.band] + curve.ends, anchor[band] + location)
        return np.clip(panel, np.searchsorted(curve.band, band), np.searchsorted(curve.band, band, side="right") - 1)

    def _locate(self, band: NDArray[np.int64], location: Array) -> tuple[Array, Array]:
        """θ and v at the given locations, from the panels' series; the caller polishes on the exact sums."""
        curve = self._curve_table
        panel = self._panel_of(band, location)
        series = curve.location[panel]
        derivative = np.polynomial.legendre.legder(series, axis=1)
        half = 0.5 * (curve.stop - curve.start)[panel]
        begin, end = _alternating(series), series.sum(axis=1)
        low, high = np.full(location.size, -1.0), np.ones(location.size)
        # u, not x, is nearly linear in sin²(θ/2); the inverse of that map is the first guess.
        point = np.clip(-1 + 2 * (location - begin) / (end - begin), -1, 1)
        active = np.arange(location.size)
        for _ in range(60):
            at = point[active]
            gap = _series(series[active], at) - location[active]
            high[active], low[active] = np.where(gap > 0, at, high[active]), np.where(gap > 0, low[active], at)
            with np.errstate(divide="ignore", invalid="ignore"):
                step = at - gap / _series(derivative[active], at)
            step = np.where((step > low[active]) & (step < high[active]), step, 0.5 * (low[active] + high[active]))
            met = np.abs(gap) <= 1e-15 * np.abs(end - begin)[active]
            point[active] = np.where(met, at, step)
            active = active[~met & (np.abs(step - at) > 1e-10)]
            if active.size == 0:
                break
        return curve.start[panel] + half * (1 + point), np.maximum(_series(curve.height[panel], point), 0.0)

    def _polish(self, anchor: Array, offset: Array, height: Array, x: Array) -> tuple[Array, Array, Array]:
        """Newton's method for w + s·G(w) = x in the complex plane, from the series' value."""
        s, target = self._s, x - anchor
        for _ in range(2):
            real, plain, square, skew = self._spectrum.sums(anchor, offset, height)
            residual = (offset + s * real - target) + 1j * height * (1 - s * plain)
            slope = (1 - s * (plain - 2 * height**2 * square)) + 2j * s * height * skew
            with np.errstate(divide="ignore", invalid="ignore"):
                step = residual / slope
            # The series is right to about 1e-13 of the band; a larger step is rounding near an edge, not progress.
            small = np.isfinite(step) & (np.abs(step) < np.maximum(0.1 * height, 1e-13))
            offset = offset - np.where(small, step.real, 0.0)
            height = np.where(small, np.maximum(height - step.imag, 0.0), height)
        return offset, height, self._spectrum.sums(anchor, offset, height)[0]

    # ------------------------------------------------------------------ public functions of x

    def pdf(self, x: ArrayLike) -> Any:
        """Density at x (shape kept); 0 off the support. Raises ValueError for NaN."""
        return self._apply(x, lambda p: self._solve(p)["height"] / (np.pi * self._s * self._unit), at_infinity=0.0)

    def hilbert(self, x: ArrayLike) -> Any:
        """Hilbert transform, the principal value of ∫ρ(y)/(x − y) dy: the real part of G(x + i0)."""
        return self._apply(x, lambda p: self._solve(p, gaps=True)["hilbert"] / self._unit, at_infinity=0.0)

    def cdf(self, x: ArrayLike) -> Any:
        """Distribution function; for eigenvalues in closed form, for a law by quadrature on the panels."""
        return self._apply(x, self._cdf, at_infinity=None)

    def _cdf(self, x: Array) -> Array:
        point = self._solve(x)
        below = np.concatenate([[0.0], np.cumsum(self._bands.mass)])
        value = below[point["index"] + 1]
        rows = np.flatnonzero(point["inside"])
        if rows.size and self._spectrum.has_potential:
            value[rows] = self._closed_cdf(point["anchor"][rows], point["offset"][rows], point["height"][rows])
        elif rows.size:
            value[rows] = np.array(
                [below[b] + self._partial_mass(int(b), p) for b, p in zip(point["index"][rows], x[rows], strict=True)]
            )
        return np.asarray(np.clip(value, 0.0, 1.0))

    def _partial_mass(self, band: int, x: float) -> float:
        return float(self._bands.mass[band] - self._panel_quadrature(band, x)[2].sum())

    def ppf(self, probability: ArrayLike) -> Any:
        """Quantile function on [0, 1]: the smallest x with cdf(x) ≥ probability. Raises ValueError outside [0, 1]."""
        p = np.asarray(probability, dtype=float)
        if not np.all((p >= 0) & (p <= 1)):
            raise ValueError(f"probability must lie in [0, 1], got {_first(p, ~((p >= 0) & (p <= 1)))}")
        flat = self._quantile(p.ravel()) * self._unit
        return flat.reshape(p.shape) if p.shape else float(flat[0])

    def _quantile(self, p: Array) -> Array:
        bands = self._bands
        upto = np.cumsum(bands.mass)
        band = np.minimum(np.searchsorted(upto * (1 - 1e-15), p), bands.count - 1)
        self._curve(np.unique(band))
        curve = self._curve_table
        mass = np.clip(p - (upto - bands.mass)[band], 0, bands.mass[band])
        # The panel that holds the wanted mass: cumulative masses restart at each band.
        before = np.cumsum(curve.total) - curve.total
        first = np.searchsorted(curve.band, band)
        panel = np.searchsorted(before, before[first] + mass, side="right") - 1
        panel = np.clip(panel, first, np.searchsorted(curve.band, band, side="right") - 1)
        ends = bands.left_anchor[curve.band] + curve.ends
        low = np.where(panel == first, bands.left[band], ends[panel - 1] - 1e-12)
        high = np.minimum(ends[panel] + 1e-12, bands.right[band])
        low = np.minimum(np.maximum(low, bands.left[band]), high)
        share = (mass - (before[panel] - before[first])) / np.maximum(curve.total[panel], 1e-300)
        x = low + (high - low) * np.clip(share, 0, 1)
        x = self._invert_cdf(x, low, high, p)
        x = np.where(mass <= 0, bands.left[band], x)
        return np.where(mass >= bands.mass[band], bands.right[band], x)

    def _invert_cdf(self, x: Array, low: Array, high: Array, p: Array) -> Array:
        """Bracketed Newton iteration for cdf(x) = p (internal units)."""
        low, high, active = low.copy(), high.copy(), np.flatnonzero(high > low)
        for _ in range(80):
            if active.size == 0:
                break
            at = x[active]
            gap = self._cdf(at) - p[active]
            high[active], low[active] = np.where(gap > 0, at, high[active]), np.where(gap > 0, low[active], at)
            with np.errstate(divide="ignore", invalid="ignore"):
                step = at - gap / (self._solve(at)["height"] / (np.pi * self._s))
            step = np.where((step > low[active]) & (step < high[active]), step, 0.5 * (low[active] + high[active]))
            met = np.abs(gap) <= 4e-16  # there the bracket has closed on the point and a step would only leave it
            x[active] = np.where(met, at, step)
            active = active[~met & (np.abs(step - at) > 4e-16 * np.abs(step))]
        return x

    def rvs(self, size: int | tuple[int, ...] = 1, random_state: Any = None) -> Array:
        """Independent draws of the law by inversion; `random_state` is a seed or a numpy Generator."""
        generator = np.random.default_rng(random_state)
        return np.asarray(self.ppf(generator.random(size)))

    def stieltjes(self, z: ArrayLike) -> Any:
        """G(z) = ∫ρ(y)/(z − y) dy for finite complex z; on the real axis the limit from above."""
        return self.resolvent(z)[0]

    def resolvent(self, z: ArrayLike) -> tuple[Any, Any]:
        """G(z) and its derivative, shape of z kept; on the real axis limits from above. ValueError if not finite."""
        points = np.asarray(z, dtype=complex)
        if not np.all(np.isfinite(points)):
            raise ValueError(f"z must be finite, got {_first(points, ~np.isfinite(points))}")
        flat = points.ravel() / self._unit
        anchor, offset, height = self._subordinate(np.where(flat.imag < 0, np.conj(flat), flat))
        value, slope = self._values(anchor, offset, height)
        value = np.where(flat.imag < 0, np.conj(value), value) / self._unit
        slope = np.where(flat.imag < 0, np.conj(slope), slope) / self._unit**2
        if not points.shape:
            return complex(value[0]), complex(slope[0])
        return value.reshape(points.shape), slope.reshape(points.shape)

    def subordination(self, x: ArrayLike) -> Any:
        """The point w(x + i0) of the curve above x: G of the sum at x is G of the spectrum at w. Shape of x kept."""
        points = np.asarray(x, dtype=float)
        if not np.all(np.isfinite(points)):
            raise ValueError(f"x must be finite, got {_first(points, ~np.isfinite(points))}")
        anchor, offset, height = self._subordinate((points.ravel() / self._unit).astype(complex))
        w = ((anchor + offset) + 1j * height) * self._unit
        return w.reshape(points.shape) if points.shape else complex(w[0])

    def _subordinate(self, z: NDArray[np.complex128]) -> tuple[Array, Array, Array]:
        """Anchor, offset and height of w(z) for Im z ≥ 0 (internal units)."""
        anchor, offset, height = np.zeros(z.size), np.zeros(z.size), np.zeros(z.size)
        real = z.imag == 0
        if real.any():
            point = self._solve(z.real[real], gaps=True)
            anchor[real], offset[real], height[real] = point["anchor"], point["offset"], point["height"]
        if not real.all():
            w = self._complex(z[~real])
            offset[~real], height[~real] = w.real, w.imag
        return anchor, offset, height

    def _values(self, anchor: Array, offset: Array, height: Array) -> tuple[Any, Any]:
        """G and G' of the sum at w: G' = g'/(1 + s g') with the spectrum's g."""
        real, plain, square, skew = self._spectrum.sums(anchor, offset, height)
        slope = -(plain - 2 * height**2 * square) + 2j * height * skew
        with np.errstate(divide="ignore", invalid="ignore"):
            total = np.where(1 + self._s * slope == 0, np.inf, slope / (1 + self._s * slope))
        return real - 1j * height * plain, total

    def _complex(self, z: NDArray[np.complex128]) -> NDArray[np.complex128]:
        """w(z) off the axis, by continuation from far above, where w ≈ z − s/z, in steps that shrink Im z by 0.7."""
        s = self._s
        level = np.maximum(z.imag, 4.0 * (1 + np.abs(z.real)))
        w = z.real + 1j * level
        w = w - s / (w - self._spectrum.mean)
        while True:
            w = self._newton(w, z.real + 1j * level)
            if np.all(level <= z.imag):
                return w
            level = np.maximum(0.7 * level, z.imag)

    def _newton(self, w: NDArray[np.complex128], z: NDArray[np.complex128]) -> NDArray[np.complex128]:
        s, zero, w = self._s, np.zeros(w.size), w.copy()
        active = np.arange(w.size)
        for _ in range(400):
            at, target = w[active], z[active]
            u, v = at.real.copy(), at.imag.copy()
            real, plain, square, skew = self._spectrum.sums(zero[active], u, v)
            residual = at + s * (real - 1j * v * plain) - target
            step = residual / ((1 - s * (plain - 2 * v**2 * square)) + 2j * s * v * skew)
            # Below Im w = Im z lies no solution: there the subordination's own contraction is taken instead.
            bad = ~np.isfinite(step) | ((at - step).imag < target.imag) | (np.abs(step) > 0.5 * v)
            trial = np.where(bad, at - residual, at - step)
            w[active] = trial
            active = active[np.abs(trial - at) > 4e-16 * (np.abs(at) + s * np.abs(real))]
            if active.size == 0:
                return w
        raise ArithmeticError(f"subordination at z = {z[active[0]] * self._unit} did not converge in 400 steps")

    def _apply(self, x: ArrayLike, function: Any, at_infinity: float | None) -> Any:
        points = np.asarray(x, dtype=float)
        if np.any(np.isnan(points)):
            raise ValueError("x must not be NaN")
        flat = points.ravel() / self._unit
        finite = np.isfinite(flat)
        value = np.where(flat > 0, 1.0, 0.0) if at_infinity is None else np.full(flat.size, at_infinity)
        if finite.any():
            value[finite] = function(flat[finite])
        return value.reshape(points.shape) if points.shape else float(value[0])

    # ------------------------------------------------------------------ integrals

    def mean(self) -> float:
        """The mean: that of the spectrum."""
        return self._mean

    def var(self) -> float:
        """The variance: the spectrum's plus the semicircle's."""
        return self._var

    def quadrature(self, lower: float = -np.inf) -> tuple[Array, Array, Array]:
        """Nodes above `lower`, their weights (density included) and the Hilbert transform there: three 1-D arrays.

        `(weights * f(nodes)).sum()` is ∫_lower f dμ for a smooth f, to about 1e-12 of its size.
        """
        level = lower / self._unit
        self._curve(np.flatnonzero(self._bands.right > level))
        curve, whole = self._curve_table, self._bands.left >= level
        rows = whole[curve.band] if curve.band.size else np.empty(0, dtype=bool)
        anchor = self._bands.left_anchor[curve.band[rows]]
        x, hilbert, mass = (
            (anchor[:, None] + curve.x[rows]).ravel(),
            curve.hilbert[rows].ravel(),
            curve.mass[rows].ravel(),
        )
        for b in np.flatnonzero(~whole & (self._bands.right > level)):
            part = self._panel_quadrature(int(b), level)
            x, hilbert, mass = (np.concatenate([new, old]) for new, old in zip(part, (x, hilbert, mass), strict=True))
        return x * self._unit, mass, hilbert / self._unit

    def _panel_quadrature(self, b: int, level: float) -> tuple[Array, Array, Array]:
        """Nodes, Hilbert transform and masses of one band above a level (internal units)."""
        band = np.array([b])
        self._curve(band)
        curve, anchor = self._curve_table, self._bands.left_anchor[b]
        first, stop = np.searchsorted(curve.band, [b, b + 1])
        if level <= self._bands.left[b]:
            rows = slice(first, stop)
            return anchor + curve.x[rows].ravel(), curve.hilbert[rows].ravel(), curve.mass[rows].ravel()
        location = np.array([level - anchor])
        panel = int(self._panel_of(band, location)[0])
        cut = self._nodes(band, self._locate(band, location)[0], curve.stop[panel : panel + 1])
        rows = slice(panel + 1, stop)
        x = np.concatenate([cut["location"].ravel(), curve.x[rows].ravel()])
        hilbert = np.concatenate([cut["hilbert"].ravel(), curve.hilbert[rows].ravel()])
        return anchor + x, hilbert, np.concatenate([cut["mass"].ravel(), curve.mass[rows].ravel()])

    def tail_moment(self, lower: float, power: int = 1) -> float:
        """∫_lower (x − lower)^power ρ(x) dx; power is an integer ≥ 0, lower may be any finite number."""
        _check_tail(lower, power)
        x, mass, _ = self.quadrature(lower)
        return float(((x - lower) ** power * mass).sum())

    def tail_hilbert(self, lower: float, power: int = 1) -> float:
        """∫_lower (x − lower)^power h(x) ρ(x) dx, with the Hilbert transform h."""
        _check_tail(lower, power)
        x, mass, hilbert = self.quadrature(lower)
        return float(((x - lower) ** power * hilbert * mass).sum())

    def moment(self, order: int) -> float:
        """The raw moment ∫x^order dμ, by quadrature."""
        _check_tail(0.0, order)
        x, mass, _ = self.quadrature()
        return float((x**order * mass).sum())


def _positive(name: str, value: float) -> float:
    number = float(value)
    if not (np.isfinite(number) and number > 0):
        raise ValueError(f"{name} must be > 0 and finite, got {value} (the variance of the semicircle that is added)")
    return number


def _check_tail(lower: float, power: int) -> None:
    if not np.isfinite(lower):
        raise ValueError(f"lower must be finite, got {lower} (the point from which the integral runs)")
    if power != int(power) or power < 0:
        raise ValueError(f"power must be an integer >= 0, got {power}")


def _first(values: Any, bad: Any) -> Any:
    return np.asarray(values).ravel()[np.flatnonzero(np.asarray(bad).ravel())[0]]


def _series(coefficients: Array, point: Array) -> Array:
    """Legendre series with one row of coefficients a point (Clenshaw)."""
    count = coefficients.shape[1]
    if count == 1:
        return coefficients[:, 0].copy()
    high, higher = coefficients[:, count - 1].copy(), np.zeros_like(point)
    for k in range(count - 2, -1, -1):
        high, higher = (
            coefficients[:, k] + (2 * k + 1) / (k + 1) * point * high - (k + 1) / (k + 2) * higher,
            high,
        )
    return high


def _alternating(coefficients: Array) -> Array:
    """Value of Legendre series at the left end, −1."""
    return np.asarray(coefficients[:, ::2].sum(axis=1) - coefficients[:, 1::2].sum(axis=1))
