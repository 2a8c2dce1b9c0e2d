"""Reference values of the product law with many digits, by routes that the solver does not take.

Roots of the law's own polynomial equation, followed along a path from infinity, and integrals of the density that
they give. Only the cubic is read from the law; no closed form of the chapter is used.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import mpmath
import numpy as np
import sympy as sp

from derivations import wishart_product as chapter

DIGITS = 50
_FAR = 1e4  # starting point of a path, in units of the upper edge: there m = 1/z to four digits


@lru_cache
def _cubic() -> Any:
    """Coefficients of the cubic in m, highest order first, as a function of (z, delta, gamma)."""
    statement = chapter.product.statement
    polynomial = sp.Poly(sp.expand(statement.rhs - statement.lhs), chapter.m)
    return sp.lambdify((chapter.x, chapter.delta, chapter.gamma), polynomial.all_coeffs(), "mpmath")


def coefficients(z: Any, delta: Any, gamma: Any) -> list[Any]:
    """Coefficients of the cubic; of the quadratic if one of the ratios is 0."""
    values = [mpmath.mpmathify(value) for value in _cubic()(mpmath.mpmathify(z), mpmath.mpf(delta), mpmath.mpf(gamma))]
    return values if values[0] != 0 else values[1:]


def transform(z: Any, delta: Any, gamma: Any) -> Any:
    """m(z) = ∫ λ/(z − λ) dμ for Im z >= 0 (from above on the axis), z != 0.

    On the axis m decreases from 0 on either side of the support, and Im m < 0 inside. Off the axis Im m < 0 and
    Im G < 0; where two roots satisfy both, the one that the path from infinity leads to.
    """
    low, high = edges(float(delta), float(gamma))
    with mpmath.workdps(DIGITS):
        z = mpmath.mpmathify(z)
        roots = mpmath.polyroots(coefficients(z, delta, gamma), maxsteps=2000, extraprec=250)
        if mpmath.im(z):
            fit = [m for m in roots if mpmath.im(m) < 0 and mpmath.im((1 + m) / z) < 0]
            return fit[0] if len(fit) == 1 else _followed(complex(z), delta, gamma, roots)
        x = mpmath.re(z)
        if low < x < high:
            return min(roots, key=mpmath.im)
        real = [mpmath.re(m) for m in roots if abs(mpmath.im(m)) <= abs(m) * mpmath.mpf(10) ** -(DIGITS // 2)]
        return max(m for m in real if m < 0) if x <= low else min(m for m in real if m > 0)


def _followed(target: complex, delta: float, gamma: float, exact: list[Any]) -> Any:
    start = 1j * _FAR * (1 + delta**0.5) ** 2 * (1 + gamma**0.5) ** 2
    steps = int(abs(np.log(target / start)) * 20) + 2
    place = 1 / start
    for roots in _roots(start * np.exp(np.log(target / start) * np.linspace(0, 1, steps)), delta, gamma):
        place = roots[np.argmin(np.abs(roots - place))]
    return min(exact, key=lambda other: abs(other - mpmath.mpmathify(complex(place))))


def _roots(points: Any, delta: float, gamma: float) -> Any:
    """The roots m = 1/t of the cubic in doubles; in t it is monic."""
    companion = np.zeros((points.size, 3, 3), dtype=complex)
    companion[:, 1, 0] = companion[:, 2, 1] = 1
    parts = _cubic()(points, delta, gamma)  # lowest order of t first
    for order in range(3):
        companion[:, order, 2] = -parts[order] / parts[3]
    roots = np.linalg.eigvals(companion)
    return 1 / np.where(roots == 0, 1e-300, roots)


def stieltjes(z: Any, delta: Any, gamma: Any) -> Any:
    """G(z) = (1 + m)/z, for z in either half-plane, z != 0."""
    with mpmath.workdps(DIGITS):
        z = mpmath.mpmathify(z)
        upper = mpmath.conj(z) if mpmath.im(z) < 0 else z
        value = (1 + transform(upper, delta, gamma)) / upper
        return mpmath.conj(value) if mpmath.im(z) < 0 else value


def density(x: Any, delta: Any, gamma: Any) -> tuple[Any, Any]:
    """Density and its derivative at a real x between the edges."""
    with mpmath.workdps(DIGITS):
        x = mpmath.mpf(x)
        root = transform(x, delta, gamma)
        _, slope = mpmath.polyval(coefficients(x, delta, gamma), root, derivative=True)
        change = root / slope  # x occurs as −x m
        value = -mpmath.im(root) / (mpmath.pi * x)
        return value, -mpmath.im(change) / (mpmath.pi * x) - value / x


@lru_cache(maxsize=4096)
def edges(delta: float, gamma: float) -> tuple[Any, Any]:
    """The edges: real critical values of the inverse of m, on the branches that reach to infinity."""
    with mpmath.workdps(2 * DIGITS):
        m = sp.Symbol("m")
        image = (chapter.product.right / chapter.m).subs(chapter.m, m)
        slope = sp.Poly(sp.numer(sp.together(sp.diff(image, m))), m)
        polynomial = sp.lambdify((chapter.delta, chapter.gamma), slope.all_coeffs(), "mpmath")
        values = [mpmath.mpmathify(c) for c in polynomial(mpmath.mpf(delta), mpmath.mpf(gamma))]
        while values[0] == 0:
            values.pop(0)
        roots = [mpmath.re(root) for root in mpmath.polyroots(values, maxsteps=2000, extraprec=2000)]
        place = sp.lambdify((m, chapter.delta, chapter.gamma), image, "mpmath")
        high = place(min(root for root in roots if root > 0), mpmath.mpf(delta), mpmath.mpf(gamma))
        low = place(max(root for root in roots if root < 0), mpmath.mpf(delta), mpmath.mpf(gamma))
        return low if low > mpmath.mpf(10) ** -DIGITS else mpmath.mpf(0), high


def imaginary(x: Any, delta: Any, gamma: Any) -> Any:
    """|Im m| at a real x inside, by the textbook formulas for cubics and quadratics and enough digits for them."""
    with mpmath.workdps(2 * DIGITS):
        if delta == 0 or gamma == 0:
            a, b, c = coefficients(x, delta, gamma)
            return mpmath.sqrt(4 * a * c - b * b) / (2 * a)
        a, b, c, d = coefficients(x, delta, gamma)
        p = (3 * a * c - b * b) / (3 * a * a)
        q = (2 * b**3 - 9 * a * b * c + 27 * a * a * d) / (27 * a**3)
        root = mpmath.sqrt(q * q / 4 + p**3 / 27)
        first, second = (mpmath.sign(part) * mpmath.cbrt(abs(part)) for part in (-q / 2 + root, -q / 2 - root))
        return mpmath.sqrt(3) / 2 * abs(first - second)


def integral(power: int, start: Any, end: Any, delta: Any, gamma: Any) -> Any:
    """∫ x^power f dx between two points of the support, in the angle in which the integrand is smooth at the edges."""
    low, high = edges(delta, gamma)
    with mpmath.workdps(18):
        width = high - low

        def angle(x: Any) -> Any:
            return 2 * mpmath.asin(mpmath.sqrt(max(mpmath.mpf(0), min(mpmath.mpf(1), (x - low) / width))))

        def integrand(phase: Any) -> Any:
            x = low + width * mpmath.sin(phase / 2) ** 2
            if not low < x < high:
                return mpmath.mpf(0)
            density = imaginary(x, delta, gamma) / (mpmath.pi * x)
            return density * x**power * width * mpmath.sin(phase) / 2

        first, last = angle(start), angle(end)
        decades = [last * mpmath.mpf(10) ** -k for k in (8, 4, 2, 1)]  # several scales near a hard edge
        breaks = [first, *(place for place in decades if first < place < last), last]
        value, error = mpmath.quad(integrand, breaks, error=True)
        assert error < 1e-13, f"the reference integral is only accurate to {error}"
        return value


def distribution(x: Any, delta: Any, gamma: Any) -> Any:
    """F(x) = 1 − ∫ f over (x, upper edge), for x inside the support."""
    return 1 - integral(0, mpmath.mpf(x), edges(delta, gamma)[1], delta, gamma)
