"""Spectra of the learned attention matrix: the noisy target's integrals, the learned law, its outliers and weights.

A Gaussian target has a fast route (the cubic of law `noisy-wishart-target` on panels that know its branch points);
any other law or set of eigenvalues goes through `SemicircleSum`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import sympy as sp
from numpy.typing import ArrayLike

from derivations import spectral_learning as chapter
from derivations import state_evolution as equations
from numerics.compile import function
from numerics.free_convolution import SemicircleSum
from numerics.spikes import SemicircleSpikes
from numerics.validate import real_array, scalar

Array = np.ndarray[Any, Any]

NODES = 16  # Gauss-Legendre nodes a panel
NO_MODE = 1e-12  # of the largest eigenvalue: what counts as 0
CLEARANCE = 0.6  # a panel is short enough when every branch point is this fraction of its length away
_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(NODES)


# -- laws, compiled -------------------------------------------------------------------------------------------------


@lru_cache
def _map() -> Any:
    """z(g) of the noisy Gaussian target."""
    return function(chapter.noisy_wishart.right, (chapter.g, equations.variance, equations.kappa0))


@lru_cache
def _potential() -> Any:
    return function(chapter.wishart_potential.right, (chapter.z, chapter.g, equations.variance, equations.kappa0))


@lru_cache
def _coefficients() -> tuple[Any, Any]:
    """Coefficients in g, highest first, of the cubic at z and of the numerator of z′(g), as functions."""
    statement = chapter.noisy_wishart.statement
    found = []
    for expression, extra in ((statement.lhs - statement.rhs, (chapter.z,)), (sp.diff(statement.rhs, chapter.g), ())):
        numerator = sp.fraction(sp.together(expression))[0]
        parts = sp.Poly(sp.expand(numerator), chapter.g).all_coeffs()
        found.append([function(part, (*extra, equations.variance, equations.kappa0)) for part in parts])
    return tuple(found)  # type: ignore[return-value]


# -- the noisy target -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Nodes:
    """Quadrature nodes over the noisy target's law: positions, weights (density included), Hilbert transforms."""

    x: Array
    weight: Array
    hilbert: Array
    above: Array


class GaussianTarget:
    """The law of S₀ = W₀W₀ᵀ/√(p₀d), Gaussian W₀ (d × p₀), κ₀ = p₀/d: mean √κ₀, variance 1, atom max(0, 1 − κ₀)."""

    def __init__(self, kappa0: float) -> None:
        self.kappa0 = kappa0
        self.rank = min(kappa0, 1.0)  # share of the modes that are not 0
        self.square = float(_square()(kappa0))
        self._last: tuple[tuple[float, float], Nodes] | None = None

    def edges(self, variance: float) -> tuple[list[tuple[float, float]], Array]:
        """Bands of the noisy target and all four branch points of its Cauchy transform."""
        slopes = [float(part(variance, self.kappa0)) for part in _coefficients()[1]]
        roots = np.roots(slopes).astype(complex)
        roots = np.where(np.abs(roots.imag) < 1e-7 * np.abs(roots), roots.real, roots)
        derivative = np.polyder(slopes)
        for _ in range(3):
            roots = roots - np.polyval(slopes, roots) / np.polyval(derivative, roots)
        points = _map()(roots, variance, self.kappa0)
        real = np.sort(points.real[np.abs(points.imag) < 1e-13 * np.abs(points).max()])
        return list(zip(real[0::2].tolist(), real[1::2].tolist(), strict=True)), points

    def cauchy(self, x: Array, variance: float) -> Array:
        """G(x + i0) inside a band: the cubic's real root, the quadratic that is left, and Newton steps."""
        a, b, c, d = (np.broadcast_to(part(x, variance, self.kappa0), x.shape) for part in _coefficients()[0])
        p, r = c / a - (b / a) ** 2 / 3, 2 * (b / a) ** 3 / 27 - b * c / (3 * a**2) + d / a
        root = np.sqrt(np.maximum((r / 2) ** 2 + (p / 3) ** 3, 0.0))
        cube = np.cbrt(np.where(r > 0, -r / 2 - root, -r / 2 + root))
        real = cube - p / (3 * np.where(cube == 0, 1, cube)) - b / (3 * a)
        for _ in range(4):
            real = real - (((a * real + b) * real + c) * real + d) / ((3 * a * real + 2 * b) * real + c)
        # Divide by g − real from the end of the cubic where nothing cancels.
        large = np.abs(a * real**3) > np.abs(d)
        constant = np.where(large, -d / real, c + real * (b + a * real))
        linear = np.where(large, (constant - c) / real, b + a * real)
        g = (-linear - 1j * np.sqrt(np.maximum(4 * a * constant - linear**2, 0.0))) / (2 * a)
        for _ in range(2):
            slope = (3 * a * g + 2 * b) * g + c
            step = (((a * g + b) * g + c) * g + d) / np.where(slope == 0, 1, slope)
            g = np.where(np.abs(step) < 0.1 * np.abs(g.imag), g - step, g)
        return np.asarray(g)

    def nodes(self, variance: float, threshold: float) -> Nodes:
        """Nodes over every band, split at the threshold (the last ones are kept)."""
        if self._last is None or self._last[0] != (variance, threshold):
            self._last = ((variance, threshold), self._nodes(variance, threshold))
        return self._last[1]

    def _nodes(self, variance: float, threshold: float) -> Nodes:
        bands, branch = self.edges(variance)
        parts = []
        for low, high in bands:
            middle, half = (low + high) / 2, (high - low) / 2
            others = branch[(np.abs(branch - low) > 1e-13 * half) & (np.abs(branch - high) > 1e-13 * half)]
            angles = np.arccos((middle - others + 0j) / half)
            cut = np.arccos(np.clip((middle - threshold) / half, -1, 1))
            for start, stop in ((0.0, float(cut)), (float(cut), np.pi)):
                panels = np.array(list(_panels(start, stop, angles)))
                if panels.size:
                    theta = (panels.mean(axis=1)[:, None] + np.diff(panels, axis=1) / 2 * _POINTS).ravel()
                    weight = (np.diff(panels, axis=1) / 2 * _WEIGHTS).ravel() * half * np.sin(theta)
                    x = np.where(
                        theta < np.pi / 2,
                        low + 2 * half * np.sin(theta / 2) ** 2,
                        high - 2 * half * np.cos(theta / 2) ** 2,
                    )
                    parts.append((x, weight, np.full(x.size, (start == cut and cut < np.pi) or cut == 0.0)))
        x, weight, above = (np.concatenate(column) for column in zip(*parts, strict=True))
        g = self.cauchy(x, variance)
        return Nodes(x, weight * -g.imag / np.pi, g.real, above)

    def law(self) -> Any:
        """The target's own law."""
        from derivations.free_probability import MarchenkoPastur  # here: only a perfect recovery asks for it
        from numerics.free_law import FreeLaw

        return FreeLaw(MarchenkoPastur(1 / self.kappa0) * float(np.sqrt(self.kappa0)))

    def top(self, variance: float) -> float:
        """Upper edge of the noisy target."""
        return self.edges(variance)[0][-1][1]

    def noisy(self, variance: float) -> NoisyGaussian:
        """The noisy target as a distribution."""
        return NoisyGaussian(self, variance)


class NoisyGaussian:
    """The free sum of a Gaussian target and a semicircle: `pdf cdf ppf support hilbert`, from the cubic alone."""

    def __init__(self, target: GaussianTarget, variance: float) -> None:
        self._target, self._variance = target, variance
        self._bands = target.edges(variance)[0]

    def support(self) -> list[tuple[float, float]]:
        """The bands of the density, from left to right."""
        return list(self._bands)

    def _inside(self, x: Array) -> Array:
        return np.asarray(np.any([(low < x) & (x < high) for low, high in self._bands], axis=0))

    def pdf(self, x: ArrayLike) -> Any:
        """Density; 0 off the bands."""
        points = np.asarray(x, dtype=float)
        flat, value = np.atleast_1d(points), np.zeros(points.size).reshape(np.atleast_1d(points).shape)
        inside = self._inside(flat)
        value[inside] = -self._target.cauchy(flat[inside], self._variance).imag / np.pi
        return value.reshape(points.shape) if points.shape else float(value[0])

    def cdf(self, x: ArrayLike) -> Any:
        """Distribution function in closed form (law `noisy-wishart-distribution`)."""
        points = np.asarray(x, dtype=float)
        flat = np.atleast_1d(points)
        # Between bands the mass above is that at the next band's lower end, just inside of it.
        lows, highs = np.array(self._bands).T
        place = np.searchsorted(highs, flat)
        nearest = np.maximum(flat, np.append(lows, np.inf)[place])
        value = np.ones(flat.shape)
        finite = np.isfinite(nearest)
        inside = finite & self._inside(nearest)
        g = self._target.cauchy(nearest[inside], self._variance)
        value[inside] = 1 - _potential()(nearest[inside], g, self._variance, self._target.kappa0)
        edge = finite & ~inside
        masses = np.concatenate([[0.0], np.cumsum(self._masses)])
        value[edge] = masses[place[edge]]
        return value.reshape(points.shape) if points.shape else float(value[0])

    @cached_property
    def _masses(self) -> Array:
        nodes = self._target.nodes(self._variance, self._bands[0][0])
        return np.array([nodes.weight[(nodes.x > low) & (nodes.x < high)].sum() for low, high in self._bands])

    def ppf(self, probability: ArrayLike) -> Any:
        """Quantile function on [0, 1] by bisection inside the band that holds the probability."""
        p = np.asarray(probability, dtype=float)
        if not np.all((p >= 0) & (p <= 1)):
            raise ValueError(
                f"probability must lie in [0, 1], got {p[~((p >= 0) & (p <= 1))].flat[0] if p.shape else float(p)}"
            )
        flat = np.atleast_1d(p)
        band = np.minimum(np.searchsorted(np.cumsum(self._masses), flat), len(self._bands) - 1)
        low, high = (np.array(ends)[band] for ends in zip(*self._bands, strict=True))
        for _ in range(60):
            middle = (low + high) / 2
            less = self.cdf(middle) < flat
            low, high = np.where(less, middle, low), np.where(less, high, middle)
        return ((low + high) / 2).reshape(p.shape) if p.shape else float((low[0] + high[0]) / 2)


class Modes:
    """Finitely many eigenvalues of equal weight as a distribution without density: `pdf cdf ppf support moment`."""

    def __init__(self, eigenvalues: Array) -> None:
        self._values = np.sort(eigenvalues)

    def support(self) -> list[tuple[float, float]]:
        """No bands: every mode is an atom."""
        return []

    def pdf(self, x: ArrayLike) -> Any:
        """Density: there is none beside the atoms."""
        return np.zeros(np.shape(x)) if np.shape(x) else 0.0

    def cdf(self, x: ArrayLike) -> Any:
        """Share of the modes up to x."""
        share = np.searchsorted(self._values, np.asarray(x, dtype=float), side="right") / self._values.size
        return share if np.shape(x) else float(share)

    def ppf(self, probability: ArrayLike) -> Any:
        """The smallest mode with at least this share up to it. Raises ValueError outside [0, 1]."""
        p = np.asarray(probability, dtype=float)
        if not np.all((p >= 0) & (p <= 1)):
            raise ValueError(f"probability must lie in [0, 1], got {p[~((p >= 0) & (p <= 1))].ravel()[0]}")
        place = np.ceil(p * self._values.size * (1 - 1e-15)).astype(int) - 1
        value = self._values[np.clip(place, 0, self._values.size - 1)]
        return value if p.shape else float(value)

    def moment(self, order: int) -> float:
        """Mean power of the modes."""
        return float(np.mean(self._values**order))


class SpectrumTarget:
    """A target given by its eigenvalues or by a law (with `resolvent`, `support`, `atoms`, `mean`, `var`)."""

    def __init__(self, spectrum: Any) -> None:
        if hasattr(spectrum, "resolvent"):
            self.eigenvalues: Array | None = None
            self._spectrum, self.square = spectrum, float(spectrum.var() + spectrum.mean() ** 2)
        else:
            self.eigenvalues = np.sort(real_array("target", spectrum, "eigenvalues of the target S₀").ravel())
            if self.eigenvalues.size == 0:
                raise ValueError("target must have at least one eigenvalue, got none")
            self._spectrum, self.square = self.eigenvalues, float(np.mean(self.eigenvalues**2))
        if not self.square > 0:
            raise ValueError(
                f"target must not be 0, got a mean square of {self.square} (there would be nothing to learn)"
            )
        lowest = spectrum.support()[0][0] if self.eigenvalues is None else self.eigenvalues[0]
        if lowest < -1e-12 * np.sqrt(self.square):
            raise ValueError(f"target must be positive semidefinite (S₀ = W₀W₀ᵀ), got an eigenvalue {lowest:.6g}")

    @cached_property
    def rank(self) -> float:
        """Share of the modes that are not 0."""
        if self.eigenvalues is not None:
            return float(np.mean(self.eigenvalues > NO_MODE * self.eigenvalues[-1]))
        return float(1 - sum(weight for position, weight in self._spectrum.atoms if position == 0))

    def law(self) -> Any:
        """The target's own law."""
        return self._spectrum if self.eigenvalues is None else Modes(self.eigenvalues)

    def noisy(self, variance: float) -> SemicircleSum:
        """The noisy target as a distribution."""
        return SemicircleSum(self._spectrum, variance=variance)

    def top(self, variance: float) -> float:
        """Upper edge of the noisy target."""
        return self.noisy(variance).support()[-1][1]

    def nodes(self, variance: float, threshold: float) -> Nodes:
        """Nodes above the threshold, and below it as the whole minus what is above: integrands are smooth across."""
        law = self.noisy(variance)
        whole = law.quadrature()
        part = law.quadrature(threshold) if threshold < law.support()[-1][1] else tuple(np.empty(0) for _ in range(3))
        x, weight, hilbert = (np.concatenate([a, b, b]) for a, b in zip(whole, part, strict=True))
        count, size = whole[0].size, part[0].size
        weight[count : count + size] *= -1
        return Nodes(x, weight, hilbert, np.arange(x.size) >= count + size)


Target = GaussianTarget | SpectrumTarget


def target_of(kappa0: float | None, target: Any) -> Target:
    """The target that a user means: Gaussian of width κ₀, or a law or eigenvalues. Raises ValueError otherwise."""
    if (kappa0 is None) == (target is None):
        raise ValueError(
            f"give either kappa0 (a Gaussian target S₀ = W₀W₀ᵀ/√(p₀d)) or target (a law or eigenvalues), got kappa0="
            f"{kappa0!r} "
            f"and target={'None' if target is None else type(target).__name__}"
        )
    return SpectrumTarget(target) if kappa0 is None else GaussianTarget(scalar(equations.kappa0, kappa0))


def pair_slopes(target: Target, variance: float, threshold: float, rank: float) -> float:
    """Mean squared difference quotient of (x − ε)₊ over pairs of eigenvalues (law `pair-slopes`), to about 1e-4."""
    nodes = target.nodes(variance, threshold)
    upper, lower = nodes.above, ~nodes.above & (nodes.weight > 0) & (nodes.x < threshold)
    x, y = nodes.x[upper], nodes.x[lower]
    quotients = _mixed_quotient()(x[:, None], y[None, :], threshold)
    mixed = float(nodes.weight[upper] @ quotients @ nodes.weight[lower])
    return float(_pair_slopes()(rank, mixed))


@lru_cache
def _mixed_quotient() -> Any:
    return function(equations.mixed_quotient(), (equations.point, equations.below, equations.threshold))


@lru_cache
def _pair_slopes() -> Any:
    mixed = sp.Symbol("mixed")
    law = equations.pair_slopes_law.right
    return function(law.xreplace({node: mixed for node in law.atoms(sp.Integral)}), (equations.rank, mixed))


# -- the learned matrix -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LearnedOutlier:
    """A learned eigenvalue that stands apart: its location, the target's mode behind it, their squared overlap."""

    location: float
    mode: float
    overlap: float


class LearnedSpectrum:
    """The law of η (S₀ + √v Z − ε)₊: an atom at 0 and a density (law `learned-matrix`); a distribution like SciPy's.

    `cut=False`: the law of η (S₀ + √v Z − ε) with both signs (no factors). `outliers` are isolated learned eigenvalues
    of a target with finitely many modes; they belong to the law as well, each with the weight of its mode.
    """

    def __init__(self, target: Target, variance: float, threshold: float, scale: float, cut: bool = True) -> None:
        self._target, self.variance, self.threshold, self.scale, self.cut = target, variance, threshold, scale, cut
        self._noisy: Any = None  # S = 0
        if variance > 0:
            self._noisy = target.noisy(variance)
        elif scale > 0:
            self._noisy = target.law()  # recovered perfectly

    @cached_property
    def _nodes(self) -> Nodes:
        lowest = self._noisy.support()[0][0]
        return self._target.nodes(self.variance, self.threshold if self.cut else lowest)

    @cached_property
    def atom(self) -> float:
        """Mass at 0: one minus the rank (0 if both signs are kept)."""
        if self._noisy is None or self.variance == 0:
            return 1.0 - (0.0 if self._noisy is None else self._target.rank)
        return float(np.clip(1 - self._nodes.weight[self._nodes.above].sum(), 0.0, 1.0)) if self.cut else 0.0

    @property
    def atoms(self) -> tuple[tuple[float, float], ...]:
        """The atom at 0 as (position, mass)."""
        return ((0.0, self.atom),) if self.atom > 0 else ()

    def _learned(self, x: Any) -> Any:
        """A learned eigenvalue, given that of the noisy target."""
        return self.scale * (np.maximum(x, self.threshold) - self.threshold if self.cut else x - self.threshold)

    def support(self) -> list[tuple[float, float]]:
        """The bands of the density (the positive eigenvalues, if it is cut)."""
        bands = [] if self._noisy is None else self._noisy.support()
        return [(float(a), float(b)) for a, b in ((self._learned(a), self._learned(b)) for a, b in bands) if b > a]

    def pdf(self, s: ArrayLike) -> Any:
        """Density (the atom is not in it)."""
        values = np.asarray(s, dtype=float)
        if self._noisy is None:
            return np.zeros(values.shape) if values.shape else 0.0
        density = np.asarray(self._noisy.pdf(self.threshold + values / self.scale)) / self.scale
        density = np.where(values > 0, density, 0.0) if self.cut else density
        return density if values.shape else float(density)

    def cdf(self, s: ArrayLike) -> Any:
        """Distribution function, the atom included."""
        values = np.asarray(s, dtype=float)
        if self._noisy is None:
            share = np.where(values >= 0, 1.0, 0.0)
        elif self.cut:
            share = np.where(values >= 0, self._noisy.cdf(self.threshold + np.maximum(values, 0) / self.scale), 0.0)
        else:
            share = np.asarray(self._noisy.cdf(self.threshold + values / self.scale))
        return share if values.shape else float(share)

    def ppf(self, probability: ArrayLike) -> Any:
        """Quantile function; 0 up to the atom's mass if there is one."""
        p = np.asarray(probability, dtype=float)
        if self._noisy is None:
            return np.zeros(p.shape) if p.shape else 0.0
        value = np.asarray(self._learned(np.asarray(self._noisy.ppf(p))))
        return value if p.shape else float(value)

    def moment(self, order: int) -> float:
        """∫ s^order, over the atom too."""
        if self._noisy is None:
            return float(order == 0)
        if self.variance == 0:
            return float(self.scale**order * self._noisy.moment(order))
        nodes = self._nodes
        values = self._learned(nodes.x[nodes.above])
        return float((nodes.weight[nodes.above] * values**order).sum()) + (self.atom if order == 0 else 0.0)

    def mean(self) -> float:
        """Tr Ŝ/d."""
        return self.moment(1)

    def var(self) -> float:
        """Variance of the eigenvalues."""
        return self.moment(2) - self.moment(1) ** 2

    def rvs(self, size: int | tuple[int, ...] = 1, random_state: Any = None) -> Array:
        """Independent draws by inversion; `random_state` is a seed or a numpy Generator."""
        return np.asarray(self.ppf(np.random.default_rng(random_state).random(size)))

    @cached_property
    def outliers(self) -> tuple[LearnedOutlier, ...]:
        """Learned eigenvalues that one target mode each has pulled out of the bulk, largest first."""
        modes = getattr(self._target, "eigenvalues", None)
        if modes is None or self.variance == 0:
            return ()
        alone = self._noisy.band_masses() < 1.5 / modes.size
        bands = [band for band, single in zip(self._noisy.support(), alone, strict=True) if single]
        order = np.argsort(-modes)
        isolated = modes[order[: len(bands)]]
        others = modes[order[len(bands) :]]
        if others.size == 0:
            return ()
        rest, found = SemicircleSpikes(others, variance=self.variance), []
        for mode in isolated:
            outlier = next((o for o in reversed(rest.outliers(float(mode))) if o.side == "above"), None)
            if outlier is not None and outlier.location > self.threshold:
                location = self.scale * (outlier.location - self.threshold)
                found.append(LearnedOutlier(float(location), float(mode), float(outlier.overlap)))
        return tuple(found)


class WeightSpectrum:
    """The singular values of W/√d over its min(p, d) directions: √(√κ ŝ) for the learned eigenvalues ŝ, and zeros."""

    def __init__(self, learned: LearnedSpectrum, kappa: float) -> None:
        self._learned, self._root, self._share = learned, float(np.sqrt(kappa)), min(kappa, 1.0)

    @property
    def atom(self) -> float:
        """Mass at 0."""
        return 1 - (1 - self._learned.atom) / self._share

    def support(self) -> list[tuple[float, float]]:
        """The bands of positive singular values."""
        return [(float(np.sqrt(self._root * a)), float(np.sqrt(self._root * b))) for a, b in self._learned.support()]

    def pdf(self, sigma: ArrayLike) -> Any:
        """Density of the positive singular values."""
        values = np.asarray(sigma, dtype=float)
        density = self._learned.pdf(values**2 / self._root) * 2 * np.abs(values) / self._root / self._share
        return np.where(values > 0, density, 0.0) if values.shape else float(density if values > 0 else 0.0)

    def cdf(self, sigma: ArrayLike) -> Any:
        """Distribution function."""
        values = np.asarray(sigma, dtype=float)
        share = 1 - (1 - np.asarray(self._learned.cdf(np.maximum(values, 0) ** 2 / self._root))) / self._share
        return np.where(values >= 0, share, 0.0) if values.shape else float(share if values >= 0 else 0.0)


def _panels(start: float, stop: float, singular: Array) -> Any:
    if stop - start < 1e-15:
        return
    pending = [(start, stop)]
    while pending:
        a, b = pending.pop()
        gap = np.abs(singular - np.clip(singular.real, a, b)).min(initial=np.inf)
        if (gap < CLEARANCE * (b - a) and b - a > 1e-10) or b - a > 0.8:
            pending += [((a + b) / 2, b), (a, (a + b) / 2)]
        else:
            yield a, b


@lru_cache
def _square() -> Any:
    return function(equations.target_square_law.right, (equations.kappa0,))
