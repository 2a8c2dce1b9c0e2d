"""One distribution class over any law of the free-probability calculus: density, quantiles, transforms, draws.

Laws of few parts come from their polynomial (`numerics.algebraic_curve`), all others by joint subordination of their
parts (`numerics.subordination_curve`); the two routes are held together by tests.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from derivations._free_calculus import Atoms
from derivations._free_calculus import FreeLaw as Law
from numerics.algebraic_curve import DIGITS, AlgebraicCurve
from numerics.subordination import ALGEBRAIC, first_moments, parts_of, point_of
from numerics.subordination_curve import SubordinationCurve

Array = NDArray[np.float64]

CHECK = 1e-10  # mass and mean must be right to this when a law is set up
FAR = 1e6  # of the largest location: from there on mean and second moment give G in double precision


class FreeLaw:
    """Distribution of a law of `derivations.free_probability` with numeric parameters.

    `law`: an object of the calculus; `parameters`: numbers for its symbols, if any. Raises ValueError for symbols
    without numbers, ArithmeticError if the density could not be resolved (mass and mean are checked at set-up).
    """

    def __init__(self, law: Law, parameters: dict[Any, Any] | None = None) -> None:
        if not isinstance(law, Law):
            raise ValueError(f"law must be a law of derivations.free_probability, got {law!r}")
        self.law = law.subs({s: _exact(v) for s, v in parameters.items()}) if parameters else law
        free = sorted(s.name for s in self.law.free_symbols)
        if free:
            raise ValueError(f"law needs numbers for {', '.join(free)}; pass parameters={{symbol: number}}")
        self._mean, second = (_settled(moment) for moment in first_moments(self.law))
        self._variance = second - self._mean**2
        self.atoms: tuple[tuple[float, float], ...] = tuple(
            sorted((float(p), float(w)) for p, w in self.law.atoms() if float(w) > 0)
        )
        self._set_up()

    def _set_up(self) -> None:
        """Bands from the polynomial of a law of few parts, else by subordination; the other way if that one fails."""
        point, law = point_of(self.law), self.law
        law, parts = (law, parts_of(law)) if point is None else (Atoms((point,)), 1)
        second = float(self._variance + self._mean**2)
        ways: list[Any] = [lambda: AlgebraicCurve(law, float(self._mean), second)] if parts <= 2 * ALGEBRAIC else []
        if point is None:
            ways.insert(int(parts <= ALGEBRAIC), lambda: SubordinationCurve(law))
        failures: list[Exception] = []
        for way in ways:
            try:
                self._curve: Any = way()
                self._intervals: list[Any] = list(self._curve.intervals())
                return self._check_total()
            except (ArithmeticError, ValueError) as failure:
                failures.append(failure)
        raise failures[0]

    def __repr__(self) -> str:
        return f"FreeLaw({self.law})"

    # ------------------------------------------------------------------ shape

    def support(self) -> list[tuple[float, float]]:
        """The bands of the continuous part as (left, right), from left to right; atoms are in `atoms`."""
        bands: list[tuple[float, float]] = []
        for part in self._intervals:
            left, right = float(part.left), float(part.right)
            if bands and bands[-1][1] == left:
                bands[-1] = (bands[-1][0], right)
            else:
                bands.append((left, right))
        return bands

    def band_masses(self) -> Array:
        """The mass of the continuous part on each band of `support()`."""
        masses = np.zeros(len(self.support()))
        for part in self._intervals:
            masses[[a <= float(part.left) < b for a, b in self.support()].index(True)] += part.mass
        return masses

    def _check_total(self) -> None:
        mass = sum(w for _, w in self.atoms) + sum(part.mass for part in self._intervals)
        mean = sum(p * w for p, w in self.atoms) + sum(part.first for part in self._intervals)
        scale = float(self._variance + self._mean**2) ** 0.5
        if abs(mass - 1) > CHECK or abs(mean - float(self._mean)) > CHECK * scale:
            raise ArithmeticError(
                f"the density of {self.law} has mass {mass} and mean {mean} where 1 and {float(self._mean)} are exact: "
                "two branch points are closer than double precision resolves; move a parameter slightly"
            )

    # ------------------------------------------------------------------ functions of x

    def pdf(self, x: ArrayLike) -> Any:
        """Density of the continuous part at x (shape kept): 0 off the bands, +∞ at a hard edge. ValueError for NaN."""
        points = _points(x)
        flat, value = points.ravel(), np.zeros(points.size)
        for part in self._intervals:
            rows = np.flatnonzero((flat > float(part.left)) & (flat < float(part.right)))
            if rows.size:
                value[rows] = part.density(flat[rows])
            for side, end in enumerate((float(part.left), float(part.right))):
                at_end = flat == end
                if at_end.any():
                    value[at_end] = np.maximum(value[at_end], part.level(side))
        return _shaped(value, points)

    def cdf(self, x: ArrayLike) -> Any:
        """Distribution function, atoms included."""
        points = _points(x)
        flat, value = points.ravel(), np.zeros(points.size)
        for position, weight in self.atoms:
            value += weight * (flat >= position)
        for part in self._intervals:
            inside = (flat > float(part.left)) & (flat < float(part.right))
            value[flat >= float(part.right)] += part.mass
            if inside.any():
                value[inside] += part.mass_up_to(flat[inside])
        return _shaped(np.clip(value, 0.0, 1.0), points)

    def ppf(self, probability: ArrayLike) -> Any:
        """Quantile function on [0, 1]: the smallest x with cdf(x) ≥ probability. Raises ValueError outside [0, 1]."""
        p = np.asarray(probability, dtype=float)
        if not np.all((p >= 0) & (p <= 1)):
            raise ValueError(f"probability must lie in [0, 1], got {p[~((p >= 0) & (p <= 1))].ravel()[0]}")
        flat, value = p.ravel(), np.empty(p.size)
        # Atoms inside a band split it: the distribution function at the atom, from both sides, bounds its share.
        value[:] = np.nan
        for position, weight in self.atoms:
            top = float(self.cdf(position))
            value[(flat <= top + 1e-15) & (flat > top - weight - 1e-15)] = position
        for part in self._intervals:
            low, high = self._level(float(part.left), True), self._level(float(part.right), False)
            rows = np.flatnonzero(np.isnan(value) & (flat >= low) & (flat <= high))
            if rows.size:
                shift = low + sum(
                    (
                        w * (flat[rows] > float(self.cdf(a)) - 0.5 * w)
                        for a, w in self.atoms
                        if float(part.left) < a < float(part.right)
                    ),
                    np.zeros(rows.size),
                )
                value[rows] = part.quantile(np.clip(flat[rows] - shift, 0, part.mass))
        rest = np.isnan(value)  # rounding of cumulated masses: the nearest end of the support
        if rest.any():
            ends = np.array(sorted([q for band in self.support() for q in band] + [a for a, _ in self.atoms]))
            level = self.cdf(ends)
            value[rest] = [ends[int(np.argmin(np.abs(level - q)))] for q in flat[rest]]
        return _shaped(value, p)

    def _level(self, x: float, with_atom: bool) -> float:
        """Distribution function at an end of a band, with or without an atom there."""
        return float(self.cdf(x)) - (0.0 if with_atom else sum(w for a, w in self.atoms if a == x))

    def rvs(self, size: int | tuple[int, ...] = 1, random_state: Any = None) -> Array:
        """Independent draws by inversion; `random_state` is a seed or a numpy Generator."""
        return np.asarray(self.ppf(np.random.default_rng(random_state).random(size)))

    def stieltjes(self, at: ArrayLike) -> Any:
        """G(z) = ∫ dμ/(z − x) at finite complex z; on the real axis the limit from above."""
        return self.resolvent(at)[0]

    def resolvent(self, at: ArrayLike) -> tuple[Any, Any]:
        """G(z) and G'(z), shape of z kept; on the real axis limits from above.

        Raises ValueError if z is not finite, or is an atom.
        """
        points = np.asarray(at, dtype=complex)
        if not np.all(np.isfinite(points)):
            raise ValueError(f"z must be finite, got {points[~np.isfinite(points)].ravel()[0]}")
        flat = self._off_atoms("z", points.ravel())
        value, slope = self._far(flat)
        near = np.abs(flat) <= FAR * self._reach
        turned = flat[near].imag < 0
        upper = np.where(turned, np.conj(flat[near]), flat[near])
        found = self._curve.continued(upper)
        with np.errstate(divide="ignore", invalid="ignore"):
            rate = self._curve.slope(upper, found)
        value[near], slope[near] = (np.where(turned, np.conj(a), a) for a in (found, rate))
        if not points.shape:
            return complex(value[0]), complex(slope[0])
        return value.reshape(points.shape), slope.reshape(points.shape)

    @cached_property
    def _reach(self) -> float:
        """The largest location of mass."""
        return max(abs(end) for end in [*(q for band in self.support() for q in band), *(p for p, _ in self.atoms)])

    def _far(self, at: Any) -> tuple[Any, Any]:
        """G and G' from the first two moments: what is left out is below (reach/|z|)³ of the first term."""
        mean, second = float(self._mean), float(self._variance + self._mean**2)
        with np.errstate(all="ignore"):  # points where it is not used, and slopes below the smallest number
            value = (1 + (mean + second / at) / at) / at
            return value, -(1 + (2 * mean + 3 * second / at) / at) / at / at

    def _off_atoms(self, name: str, flat: Any) -> Any:
        for position, weight in self.atoms:
            if np.any(flat == position):
                raise ValueError(
                    f"{name} must not be an atom, got {position} (its mass is {weight}): G has a pole there"
                )
        return flat

    def hilbert(self, x: ArrayLike) -> Any:
        """Hilbert transform: the real part of G(x + i0). Raises ValueError at an atom, where it is infinite."""
        points = _points(x)
        flat = self._off_atoms("x", points.ravel())
        value, left = self._far(flat)[0], np.abs(flat) <= FAR * self._reach
        for part in self._intervals:
            rows = np.flatnonzero((flat > float(part.left)) & (flat < float(part.right)))
            if rows.size:
                value[rows], left[rows] = part.resolve(flat[rows]).real, False
        if left.any():
            value[left] = self._curve.continued(flat[left].astype(complex)).real
        return _shaped(value, points)

    # ------------------------------------------------------------------ moments

    def mean(self) -> float:
        """The mean: exact, but for inverses without a polynomial, whose moments are read off G at 0."""
        return float(self._mean)

    def var(self) -> float:
        """The variance, as exact as the mean."""
        return float(self._variance)

    def moment(self, order: int) -> float:
        """The raw moment of an integer order ≥ 0: exact where the calculus has it, else by quadrature (1e-10)."""
        if order != int(order) or order < 0:
            raise ValueError(f"order must be an integer >= 0, got {order}")
        if order == 0:
            return 1.0
        try:
            return float(self.law.moments(int(order))[-1])
        except ValueError:  # an inverse whose curve is not known
            masses = sum(w * p ** int(order) for p, w in self.atoms)
            return float(masses + sum(part.moment(int(order)) for part in self._intervals))


def _settled(number: Any) -> Any:
    """A rational as it is, any other exact number with DIGITS digits: powers of roots are dear to simplify."""
    return number if number.is_Rational else number.evalf(DIGITS)


def _exact(value: Any) -> Any:
    from derivations._free_calculus import exact

    return exact("parameters", value)


def _points(x: ArrayLike) -> Array:
    points = np.asarray(x, dtype=float)
    if np.any(np.isnan(points)):
        raise ValueError("x must not be NaN")
    return points


def _shaped(value: Array, points: Array) -> Any:
    return value.reshape(points.shape) if points.shape else float(value[0])
