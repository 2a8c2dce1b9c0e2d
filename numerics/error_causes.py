"""The error of a learned matrix by its causes: overfitting, underfitting, approximation, mismatch.

At extensive rank every learned eigenvector of the noisy target at x has the eigenvalue ŝ(x) and the form ξ(x) = uᵀS₀u
(laws `posterior-eigenvalue`, `mismatch-of-a-spectrum`, …). It is recovered if keeping it lowers the error: ŝ < 2ξ.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import sympy as sp
from scipy.optimize import brentq

from derivations import scaling_laws as chapter
from derivations import state_evolution as equations
from derivations._expectations import SpectralTail
from numerics.compile import function
from numerics.spectral_learning import GaussianTarget, Nodes, Target
from numerics.wishart_product import WishartProduct

Array = np.ndarray[Any, Any]

NODES = 200  # Gauss-Legendre nodes over a target's band
_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(NODES)


@dataclass(frozen=True)
class ErrorCauses:
    """The four causes of ‖Ŝ − S₀‖²/d, each ≥ 0, and how much is recovered (law `error-by-its-causes`).

    `overfitting`: eigenvectors that had better be dropped; `underfitting`: target modes beyond the recovered ones;
    `approximation`: what the recovered eigenvectors miss of as many modes; `mismatch`: distance of their eigenvalues
    from the best ones. `recovered`: share of the d eigenvectors (in the spiked limit: their number).
    """

    overfitting: Any
    underfitting: Any
    approximation: Any
    mismatch: Any
    recovered: Any

    @property
    def error(self) -> Any:
        """Their sum, the squared distance from the target."""
        return self.overfitting + self.underfitting + self.approximation + self.mismatch


def error_causes(target: Target, variance: float, threshold: float, scale: float, cut: bool = True) -> ErrorCauses:
    """The causes for a learned matrix with the law of η (S₀ + √v Z − ε)₊ (or without the cut, `cut=False`).

    Integrals over eigenvalues are split where eigenvectors begin or cease to be worth keeping.
    """
    if variance == 0:  # nothing is learned, or the target itself
        if scale == 0:
            return ErrorCauses(0.0, target.square, 0.0, 0.0, 0.0)
        return ErrorCauses(0.0, 0.0, 0.0, (scale - 1) ** 2 * target.square, _rank(target))
    bands = target.noisy(variance).support()
    lowest = max(threshold, bands[0][0]) if cut else bands[0][0]
    if lowest >= bands[-1][1]:
        return ErrorCauses(0.0, target.square, 0.0, 0.0, 0.0)
    integrands = _integrands()

    def values(nodes: Nodes) -> Array:
        """Per node: ŝ, and the weighted integrands of share, form², mismatch and overfitting."""
        kept = nodes.above
        arguments = nodes.x[kept], nodes.hilbert[kept], variance, scale * (nodes.x[kept] - (threshold if cut else 0.0))
        return np.stack([nodes.weight[kept] * integrand(*arguments) for integrand in integrands])

    edges = [lowest, *_changes(target, variance, threshold if cut else 0.0, scale, lowest)]
    beyond = [values(target.nodes(variance, edge)).sum(axis=1) for edge in edges] + [np.zeros(len(integrands))]
    regions = [before - after for before, after in itertools.pairwise(beyond)]
    signs = [_worth(target, variance, threshold if cut else 0.0, scale, edges, place) for place in range(len(edges))]
    share, form, mismatch, _ = sum((part for part, kept in zip(regions, signs, strict=True) if kept), np.zeros(4))
    overfitting = sum(part[3] for part, kept in zip(regions, signs, strict=True) if not kept)
    strong = strong_square(target, float(share))
    return ErrorCauses(
        overfitting=max(float(overfitting), 0.0),
        underfitting=max(target.square - strong, 0.0),
        approximation=max(strong - float(form), 0.0),
        mismatch=float(mismatch),
        recovered=float(share),
    )


def _rank(target: Target) -> float:
    """Share of the target's modes that are not 0."""
    if isinstance(target, GaussianTarget):
        return min(target.kappa0, 1.0)
    if target.eigenvalues is not None:
        return float(np.mean(target.eigenvalues > 0))
    return float(1 - sum(mass for place, mass in target._spectrum.atoms if place == 0))


@lru_cache
def _integrands() -> tuple[Callable[..., Any], ...]:
    """Functions of (x, h, v, ŝ): 1, and the integrands of ξ², mismatch and overfitting from their laws."""
    symbols = (equations.point, equations.hilbert, equations.variance, equations.estimate)

    def of(law: Any) -> Any:
        (node,) = law.right.atoms(SpectralTail)
        return function(node.args[0] + 0 * sum(symbols, sp.Integer(0)), symbols)

    laws = (chapter.spectral_approximation, chapter.spectral_mismatch, chapter.spectral_overfitting)
    return (lambda x, *_: np.ones_like(x), *(of(law) for law in laws))


@lru_cache
def _excess_of_keeping() -> Any:
    """y − 2ξ as a function of (x, h, v, y): negative where keeping the eigenvector lowers the error."""
    symbols = (equations.point, equations.hilbert, equations.variance, equations.estimate)
    (node,) = chapter.spectral_overfitting.right.atoms(SpectralTail)
    return function(sp.cancel(node.args[0] / equations.estimate), symbols)


def _keeping(target: Target, variance: float, threshold: float, scale: float) -> Callable[[Array], Array]:
    """y (y − 2ξ) over y², up to a positive factor, as a function of x inside the bands."""
    noisy = target.noisy(variance)

    def hilbert(x: Array) -> Array:
        if isinstance(target, GaussianTarget):
            return np.asarray(target.cauchy(np.asarray(x, dtype=float), variance).real)
        return np.asarray(noisy.hilbert(x))  # type: ignore[union-attr]

    def sign(x: Array) -> Array:
        y = scale * (x - threshold)
        return np.asarray(np.sign(y) * _excess_of_keeping()(x, hilbert(x), variance, y))

    return sign


def _changes(target: Target, variance: float, threshold: float, scale: float, lowest: float) -> list[float]:
    """Where, above `lowest`, eigenvectors begin or cease to be worth keeping, ascending."""
    nodes, worth = target.nodes(variance, lowest), _keeping(target, variance, threshold, scale)
    x = np.unique(nodes.x[nodes.above])
    value = worth(x)
    found = []
    for place in np.flatnonzero(np.diff(np.sign(value)) != 0):
        gap = [band for band in target.noisy(variance).support() if band[0] <= x[place] and x[place + 1] <= band[1]]
        inside = brentq(lambda at: float(worth(np.array([at]))[0]), x[place], x[place + 1]) if gap else x[place + 1]
        found.append(float(inside))
    return found


def _worth(target: Target, variance: float, threshold: float, scale: float, edges: list[float], place: int) -> bool:
    """Whether eigenvectors between an edge and the next are kept: the sign at a node between them."""
    nodes, worth = target.nodes(variance, edges[0]), _keeping(target, variance, threshold, scale)
    upper = edges[place + 1] if place + 1 < len(edges) else np.inf
    x = np.sort(nodes.x[nodes.above & (nodes.x > edges[place]) & (nodes.x < upper)])
    return bool(x.size) and bool(worth(x[[x.size // 2]])[0] < 0)


def strong_square(target: Target, share: float) -> float:
    """∫ s² over the strongest modes of the target that make up this share of all: t² r + ∫ 2s (1 − F(s)) ds above t."""
    eigenvalues = getattr(target, "eigenvalues", None)
    if eigenvalues is not None:
        squares = np.concatenate([[0.0], np.cumsum(eigenvalues[::-1] ** 2)]) / eigenvalues.size
        return float(np.interp(share * eigenvalues.size, np.arange(squares.size), squares))
    law, unit = _law_of(target)
    if share >= 1:
        return target.square
    lowest = float(law.ppf(1 - share))
    total = lowest**2 * share
    bands = np.atleast_2d(np.asarray(law.support(), dtype=float))
    ends = np.unique(np.concatenate([[lowest], bands[bands > lowest]]))
    for low, high in itertools.pairwise(ends):
        angle = np.pi / 2 * (_POINTS + 1)
        x = (low + high) / 2 - (high - low) / 2 * np.cos(angle)
        weight = np.pi / 2 * _WEIGHTS * (high - low) / 2 * np.sin(angle)
        total += float(weight @ (2 * x * (1 - np.asarray(law.cdf(x)))))
    return unit**2 * total


def _law_of(target: Target) -> tuple[Any, float]:
    """The target's law and the unit of its eigenvalues: a Gaussian target is √κ₀ times a Marchenko–Pastur matrix."""
    if isinstance(target, GaussianTarget):
        return WishartProduct(1 / target.kappa0, 0.0), float(np.sqrt(target.kappa0))
    return target._spectrum, 1.0
