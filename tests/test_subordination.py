"""Laws by joint subordination: against the polynomial's route, against 50 digits, and on trees drawn at random.

Here are laws that have no polynomial, or one of a degree that no resultant reaches.
"""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
import sympy as sp

from derivations import _free_calculus as calculus
from derivations.free_probability import (
    Atoms,
    FreePoisson,
    FussCatalan,
    MarchenkoPastur,
    Semicircle,
    Wishart,
)
from numerics.algebraic_curve import AlgebraicCurve
from numerics.free_law import FreeLaw
from numerics.subordination import Tree, first_moments
from numerics.subordination_curve import SubordinationCurve

HALF, ROOT = sp.Rational(1, 2), sp.sqrt(2)
POWER = MarchenkoPastur(HALF).product_power(ROOT)
HEAVY = MarchenkoPastur(2).product_power(ROOT)  # an atom at 0 that the density touches, and no polynomial

BOTH_WAYS = {
    "sum": MarchenkoPastur(HALF) + MarchenkoPastur(sp.Rational(3, 2)),
    "product": MarchenkoPastur(HALF) * MarchenkoPastur(sp.Rational(1, 4)),
    "hard edge at 0": MarchenkoPastur(1) * MarchenkoPastur(1),
    "hard edges": Atoms((0, 1)) + Atoms((0, 1)),
    "two bands": Atoms((-1, 1)) + Semicircle(sp.Rational(1, 4)),
    "cusp": Atoms((-1, 1)) + Semicircle(1),
    "atoms and bands": Atoms((0, 1), (sp.Rational(1, 3), sp.Rational(2, 3))) + Atoms((0, 1), (0.75, 0.25)),
    "compression": MarchenkoPastur(HALF).compress(sp.Rational(1, 3)),
    "sum power": Atoms((-1, 1)).sum_power(sp.Rational(5, 2)),
    "inverse": MarchenkoPastur(sp.Rational(1, 4)).inverse() + Semicircle(1),
    "jumps": FreePoisson(2, Atoms((1, -2))),
    "jumps of a law": FreePoisson(HALF, MarchenkoPastur(2)),
    "signed product": Semicircle(1) * MarchenkoPastur(HALF),
    "signed product with a pole of the density": Semicircle(1) * MarchenkoPastur(1),
    "atom inside a band": Semicircle(1) * MarchenkoPastur(2),
    "atom below a band": Wishart(2, Atoms((1, 3))),
    "Fuss-Catalan": FussCatalan(3),
    "hard edge at an atom": MarchenkoPastur(sp.Rational(8, 5)).product_power(2),
    "turned, moved": -2 * (MarchenkoPastur(HALF) * MarchenkoPastur(1)) + 3,
    "inverse outside": (MarchenkoPastur(HALF) + MarchenkoPastur(2) + 1).inverse(),
}


@pytest.mark.parametrize("name", BOTH_WAYS)
def test_two_routes_agree(name):
    """Bands, density, distribution function, quantiles, and G with its derivative off the axis."""
    law = BOTH_WAYS[name]
    mean, second = (float(moment) for moment in first_moments(law))
    polynomial, joint = AlgebraicCurve(law, mean, second), SubordinationCurve(law)
    parts, other = polynomial.intervals(), joint.intervals()
    ends = [float(end) for part in parts for end in (part.left, part.right)]
    inner = sorted({end for end in ends if ends.count(end) == 1})  # where no two parts of a band meet
    found = [end for part in other for end in (part.left, part.right)]
    assert sorted({end for end in found if found.count(end) == 1}) == pytest.approx(inner, rel=1e-13, abs=1e-13)
    scale = np.sqrt(second)
    for part in other:
        x = part.left + (part.right - part.left) * np.sin(np.linspace(0.02, np.pi / 2 - 0.02, 61)) ** 2
        x = np.array([q for q in x if min(abs(q - p) for p in [*ends, 1e9]) > 1e-9])
        density, mass = np.zeros(x.size), np.zeros(x.size)
        for piece in parts:
            inside = (x > float(piece.left)) & (x < float(piece.right))
            density[inside] = piece.density(x[inside])
            mass[inside] = piece.mass_up_to(x[inside]) + sum(
                p.mass for p in parts if part.left - 1e-9 <= float(p.left) < float(piece.left)
            )
        assert part.density(x) == pytest.approx(density, rel=1e-11, abs=1e-12 / scale)
        assert part.mass_up_to(x) == pytest.approx(mass, abs=1e-12)
        assert part.quantile(part.mass_up_to(x)) == pytest.approx(x, abs=1e-9 * scale)
    at = scale * np.array([0.3 + 0.2j, -1 + 1e-3j, 3 + 1j, 0.7 + 1e-9j, -200 + 0.5j, 50j])
    value = polynomial.continued(at)
    assert joint.continued(at) == pytest.approx(value, rel=1e-10)
    assert joint.resolvent(at)[1] == pytest.approx(polynomial.slope(at, value), rel=1e-6)


NESTED = {
    "power and semicircle": POWER + Semicircle(1),
    "power and three atoms": POWER + Atoms((-1, 1, 3)),
    "power times levels": POWER * Atoms((1, 4)),
    "two powers": POWER * MarchenkoPastur(2).product_power(sp.pi / 2),
    "power of a moved power": (MarchenkoPastur(1).product_power(ROOT) + 1).product_power(sp.Rational(7, 4)),
    "sum power": MarchenkoPastur(1).product_power(ROOT).sum_power(sp.Rational(5, 3)),
    "compression": MarchenkoPastur(1).product_power(ROOT).compress(sp.Rational(1, 3)),
    "inverse": POWER.inverse() + Semicircle(1),
    "jumps": FreePoisson(HALF, POWER),
    "jumps of both signs": FreePoisson(sp.Rational(7, 10), Atoms((-5, 9)).sum_power(1 + ROOT)),
    "signed": Semicircle(1) * POWER,
    "turned": -2 * POWER + MarchenkoPastur(1),
    "three deep": (POWER + Semicircle(1)).compress(HALF) + 3 + Atoms((0, 1)) * MarchenkoPastur(3),
    "five atoms and five": Atoms((0, 1, 2, 5, 9)) + Atoms((-3, 0, 1, 2, 7)),
    "four levels": (Atoms((0, 3, 5, 21)) * MarchenkoPastur(2.3)).product_power(2.92),
    "weak semicircle": POWER + Semicircle(sp.Rational(1, 10**8)),
    "strong semicircle": POWER + Semicircle(10**8),
}
_cache: dict[str, FreeLaw] = {}


def nested(name):
    if name not in _cache:
        _cache[name] = FreeLaw(NESTED[name])
    return _cache[name]


def precise(law, x):
    """−Im G(x + i0)/π and its slope with 50 digits: Newton's method on the conditions, from the doubles' solution."""
    tree = Tree(law)
    start = tree.solve(np.array([complex(x)]))[:, 0]
    with mp.workdps(50):
        functions = {}

        def point(law, arguments, conditions):
            if not law.operands:
                at = next(arguments)
                if isinstance(law, Atoms):
                    value = mp.fsum(_number(w) / (at - _number(p)) for p, w in law.atoms())
                else:  # of the quadratic's roots the one that is the doubles'
                    part = next(p for p in tree.parts if p.law == law)
                    near = complex(part.values(np.array([complex(at)]))[0][0])
                    c = [_number(q) for q in sp.Poly(law.polynomial.subs(calculus.z, Z), calculus.g).all_coeffs()]
                    c = [q(at) if callable(q) else q for q in c]
                    root = mp.sqrt(c[1] ** 2 - 4 * c[0] * c[2])
                    value = min(((-c[1] + s * root) / (2 * c[0]) for s in (1, -1)), key=lambda r: abs(r - near))
                return at, value, at - 1 / value
            inner = [point(operand, arguments, conditions) for operand in law.operands]
            if len(inner) == 2:
                product = isinstance(law, calculus.FreeProduct)
                conditions.append(
                    inner[0][1] * (inner[0][0] if product else 1) - inner[1][1] * (inner[1][0] if product else 1)
                )
            if law not in functions:
                points = [calculus.Point(*sp.symbols("z g k", cls=sp.Dummy)) for _ in inner]
                out = law.outside(*points)
                symbols = [s for p in points for s in (p.z, p.value, p.factor)]
                functions[law] = sp.lambdify(symbols, [out.z, out.value, out.factor], "mpmath")
            return functions[law](*[number for p in inner for number in p])

        def equations(target):
            def conditions(*arguments):
                found = []
                z, _, _ = point(law, iter(arguments), found)
                return [*found, z - target]

            return conditions

        def density(target):
            guess = [mp.mpmathify(complex(w)) for w in start]
            found = mp.findroot(equations(target), guess, tol=1e-60, maxsteps=30)
            return -mp.im(point(law, iter(list(found)), [])[1]) / mp.pi

        step = mp.mpf(10) ** -12 * abs(mp.mpf(x))
        return float(density(mp.mpf(x))), float((density(x + step) - density(x - step)) / (2 * step))


Z = sp.Symbol("z")


def _number(quantity):
    if quantity.has(Z):
        return sp.lambdify(Z, quantity, "mpmath")
    return mp.mpmathify(quantity.evalf(60))


@pytest.mark.parametrize("name", NESTED)
def test_nested_laws_against_fifty_digits(name):
    """1e-12 max(1, f) + 4 ulp(x) |f'|, in the first and the last band; mass and mean are checked at set-up."""
    law = nested(name)
    bands = law.support()
    for (a, b), share in ((bands[0], 1e-5), (bands[0], 0.31), (bands[-1], 0.77), (bands[-1], 1 - 1e-5)):
        x = a + share * (b - a)
        right, slope = precise(NESTED[name], x)
        assert right > 0
        assert abs(law.pdf(x) - right) <= 1e-12 * max(1, right) + 4 * np.spacing(abs(x)) * abs(slope)
    probability = (np.arange(1000) + 0.5) / 1000
    quantile = law.ppf(probability)
    assert np.all(np.diff(quantile) >= 0)
    assert quantile.mean() == pytest.approx(law.mean(), abs=5e-3 * np.sqrt(law.var()))
    assert quantile.var() == pytest.approx(law.var(), rel=0.2)  # the outermost thousandth has a share in it


def test_nested_law_against_sampled_matrices():
    """A power with a real exponent has no sample; the inverse of a product in a sum has: moments of 40 matrices."""
    rng, p = np.random.default_rng(7), 200
    law = FreeLaw((MarchenkoPastur(0.25) * MarchenkoPastur(0.5) + 1).inverse() + Atoms((-1, 1)))
    moments = np.zeros(3)
    for _ in range(40):
        left, right = (rng.standard_normal((p, int(p / ratio))) for ratio in (0.25, 0.5))
        values, vectors = np.linalg.eigh(left @ left.T * (0.25 / p))
        root = (vectors * np.sqrt(values)) @ vectors.T
        inner = np.linalg.inv(root @ (right @ right.T * (0.5 / p)) @ root + np.eye(p))
        signs = np.diag(np.tile([1.0, -1.0], p // 2))
        eigenvalues = np.linalg.eigvalsh(inner + signs)
        moments += [np.mean(eigenvalues**k) / 40 for k in (1, 2, 3)]
    assert moments == pytest.approx([law.moment(k) for k in (1, 2, 3)], rel=2e-3)


HARD = {
    "two atoms that the density touches": MarchenkoPastur(2.9).product_power(2.4) + Atoms((3, 9), (0.6, 0.4)),
    "an atom touched, under a sum power": MarchenkoPastur(1.4).product_power(3.2).sum_power(sp.pi / 3),
    "an atom touched, moved and inverted": (HEAVY + HALF).inverse(),
    "a band between near atoms": (Atoms((0, 1, 3), (sp.Rational(1, 7), sp.Rational(5, 7), sp.Rational(1, 7))) + HALF)
    .inverse()
    .product_power(sp.pi / 3),
    "jumps of rate 1": FreePoisson(1, Wishart(0.3, Atoms((9, 3, 1)))),
    "an argument through infinity": (MarchenkoPastur(2.2) + Atoms((4, 9))) * (Atoms((8, 11)) + MarchenkoPastur(2.2)),
    "a power of 21.4": MarchenkoPastur(HALF).product_power(20 + ROOT),
    "hardly a sum power": Atoms((-1, 1)).sum_power(sp.Rational(1001, 1000)),
    "an atom in a signed product": (Atoms((-1, -3, -4, 1)) * Atoms((1, 0)) + MarchenkoPastur(1.9) * Atoms((6, 9))),
    "an inverse within an inverse": ((MarchenkoPastur(1.2) + HALF).inverse() + HALF).inverse(),
}


@pytest.mark.parametrize("name", HARD)
def test_hard_laws_have_mass_and_mean(name):
    law = FreeLaw(HARD[name])  # raises ArithmeticError unless mass and mean are right to 1e-10
    assert sum(w for _, w in law.atoms) + law.band_masses().sum() == pytest.approx(1, abs=1e-10)
    x = np.concatenate([np.linspace(a, b, 40)[1:-1] for a, b in law.support()])
    assert np.all(law.pdf(x) > 0)
    assert law.ppf(law.cdf(x)) == pytest.approx(x, rel=1e-6)


def test_gaps_through_infinite_arguments_are_whole():
    """Where G = 0 in a gap the argument of a mean-free factor passes through infinity, and its partner's comes back."""
    levels = Atoms((0.5, 4, 4.5, 4.6), (0.34, 0.26, 0.36, 0.04))
    law = Semicircle(0.04) * MarchenkoPastur(0.9) + Atoms((0.6, 1.2, 7.5), (0.5, 0.1, 0.4)) * levels
    found = FreeLaw(law)
    assert len(found.support()) == 4
    assert np.all(found.band_masses() > 0.01)
    middle = [0.5 * (a + b) for a, b in found.support()]
    assert np.all(found.pdf(middle) > 0)


@pytest.mark.parametrize("scale", [10**8, 10**10])
def test_parts_of_very_different_size(scale):
    """Beside a spectrum of size 10^10 the small one keeps its edges."""
    law = FreeLaw(POWER + MarchenkoPastur(sp.Rational(3, 2)) * scale)
    (low, high), _ = law.support()
    assert [low, high] == pytest.approx([0.2859175, 2.2521580], rel=1e-6)
    assert law.band_masses() == pytest.approx([1 / 3, 2 / 3], rel=1e-9)


def test_rare_jumps_of_both_signs():
    """Nearly all mass is the atom at 0, inside a band that is as narrow as the rate."""
    law = FreeLaw(FreePoisson(0.001, Atoms((1, -2, 3)).sum_power(ROOT)))
    assert law.atoms == ((0.0, pytest.approx(0.999)),)
    assert law.band_masses().sum() == pytest.approx(0.001, rel=1e-6)


def test_negative_and_difference():
    assert -POWER == -1 * POWER
    assert FreeLaw(POWER - MarchenkoPastur(1)).mean() == pytest.approx(0, abs=1e-14)
    assert (POWER - 1).moments(1) == [0]


@pytest.mark.parametrize("spread", [sp.Rational(999999, 10**6), sp.Rational(1000001, 10**6)])
def test_bands_that_nearly_meet(spread):
    """A millionth beside a cusp: a gap of width 7.7e-10, or a neck, against the polynomial's route."""
    law = Atoms((-1, 1)) + Semicircle(spread)
    joint, right = SubordinationCurve(law).intervals(), FreeLaw(law)
    assert len(joint) == len(right.support()) == (2 if spread < 1 else 1)
    assert sum(part.mass for part in joint) == pytest.approx(1, abs=1e-12)
    for part in joint:
        x = np.array([q for q in (-0.3, -1e-3, -1e-6, 1e-6, 1e-3, 0.3) if part.left < q < part.right])
        assert part.density(x) == pytest.approx(right.pdf(x), rel=1e-9)


def test_hard_edges_that_an_atom_touches():
    """The density of MP(2.9)^⊠2.4 at 0, and at both atoms of a sum with it, diverges; the edges are the atoms."""
    law = FreeLaw(HARD["two atoms that the density touches"])
    assert [p for p, _ in law.atoms] == [3, 9]
    assert [a for a, _ in law.support()] == [3, 9]
    assert law.pdf([3.0, 9.0]).tolist() == [np.inf, np.inf]
    near = law.pdf(3 + np.array([1e-6, 1e-9]))
    assert near[1] > 10 * near[0]


def test_inverse_at_zero():
    """0 is the image of ∞: G there is minus the mean of what is inverted, G' minus its second moment."""
    inner = MarchenkoPastur(HALF).product_power(ROOT) + 2
    value, slope = FreeLaw(inner.inverse()).resolvent([0.0, 1e-9])
    assert value[0] == pytest.approx(-3, rel=1e-13)
    assert slope[0] == pytest.approx(-FreeLaw(inner).moment(2), rel=1e-13)
    assert value[1] == pytest.approx(value[0], rel=1e-8)
    assert slope[1] == pytest.approx(slope[0], rel=1e-6)


def test_exact_moments_of_inverses():
    """Algebraic numbers where the curve has several branches at 0, symbols, and laws whose inverse has no moments."""
    c = sp.Symbol("c", positive=True)
    assert sp.simplify(MarchenkoPastur(c).inverse().moments(2)[1] - 1 / (1 - c) ** 3) == 0
    assert MarchenkoPastur(c).inverse().inverse().moments(3) == [1, 1 + c, sp.expand(1 + 3 * c + c**2)]
    assert (Semicircle(1) + 3).inverse().moments(2) == [(3 - sp.sqrt(5)) / 2, 3 * sp.sqrt(5) / 10 - HALF]
    for law in (
        MarchenkoPastur(2) + 1,
        MarchenkoPastur(HALF) + MarchenkoPastur(2) + 1,
        Atoms((1, 2)) + Semicircle(0.01),
    ):
        numeric, inverse = FreeLaw(law), law.inverse()
        x, weights = np.polynomial.legendre.leggauss(4000)
        sample = numeric.ppf(0.5 * (x + 1))
        for order, moment in enumerate(inverse.moments(3), 1):
            assert float(moment) == pytest.approx(0.5 * (weights @ sample ** -float(order)), rel=1e-6)
        assert FreeLaw(inverse).moment(3) == pytest.approx(float(inverse.moments(3)[-1]), rel=1e-12)
    for law in (MarchenkoPastur(1), FussCatalan(2), MarchenkoPastur(1) * MarchenkoPastur(HALF)):
        with pytest.raises(ValueError, match="infinite: its support reaches 0"):
            law.inverse().moments(1)


def test_moments_of_an_inverse_without_a_polynomial():
    law = FreeLaw(POWER.inverse())
    base = FreeLaw(POWER)
    x, weights = np.polynomial.legendre.leggauss(4000)
    probability = 0.5 * (x + 1)
    for order in (1, 2, 3):
        direct = 0.5 * (weights @ base.ppf(probability) ** -float(order))
        assert law.moment(order) == pytest.approx(direct, rel=1e-5)
    assert law.mean() == pytest.approx(law.moment(1), rel=1e-12)


FAR_OUT = {
    "an inverse in a sum": (POWER + HALF).inverse() + Semicircle(7),
    "an inverse in a product": (POWER + HALF).inverse() * Atoms((1, 2)),
    "a power with an atom": HEAVY * Atoms((1, 2)),
    "with a polynomial": Atoms((0, 1)) + MarchenkoPastur(2),
}


@pytest.mark.parametrize("name", FAR_OUT)
def test_transforms_far_from_the_support(name):
    """In every direction, to the ends of the doubles: 1/z, mean and second moment; and 0 at ±∞."""
    law = FreeLaw(FAR_OUT[name])
    second = law.var() + law.mean() ** 2
    for radius in (1e5, 1e7, 1e12, 1e20, 1e100, 1e300):
        z = radius * np.array([1, -1, 1j, -1j, 1 + 1j, -1 + 1e-3j, 1e-6 - 1j])
        value, slope = law.resolvent(z)
        assert value == pytest.approx((1 + law.mean() / z + second / z / z) / z, rel=1e-12)
        assert slope == pytest.approx(-(1 + 2 * law.mean() / z + 3 * second / z / z) / z / z, rel=1e-7, abs=1e-290)
        assert law.hilbert(radius) == pytest.approx(value[0].real, rel=1e-14)
    assert law.hilbert([-np.inf, np.inf]).tolist() == [0, 0]


NEAR_ZERO = {
    "no atom": MarchenkoPastur(1).product_power(ROOT),
    "an atom": HEAVY,
    "an atom amid the band": Semicircle(1) * HEAVY,
    "turned": -2 * HEAVY,
    "many copies": MarchenkoPastur(1).product_power(7 + ROOT),
}


@pytest.mark.parametrize("name", NEAR_ZERO)
def test_both_transforms_near_a_diverging_density(name):
    """Both parts follow their power laws to where no mass is left: next to an atom, the Hilbert transform is its."""
    law = FreeLaw(NEAR_ZERO[name])
    x = (-1 if name == "turned" else 1) * np.array([1e-4, 1e-12, 1e-20, 1e-40, 1e-60, 1e-100])
    value = law.stieltjes(x)
    assert law.hilbert(x) == pytest.approx(value.real, rel=1e-9)


def test_polynomial_near_a_diverging_density():
    """With z = (1 + m)³/m, G of MP(1)² is near 0 x^(−2/3) exp(−iπ/3); the tables of its density end before that."""
    law = FreeLaw(MarchenkoPastur(1) * MarchenkoPastur(1))
    x = np.array([1e-30, 1e-40, 1e-60, 1e-100, 1e-200])
    leading = x ** (-2 / 3) * np.exp(-1j * np.pi / 3)
    assert law.pdf(x) == pytest.approx(-leading.imag / np.pi, rel=1e-7)
    assert law.hilbert(x) == pytest.approx(leading.real, rel=1e-7)
    root = FreeLaw(Atoms((0, 1)) + MarchenkoPastur(2))  # an inverse root, where the real part has a limit
    assert root.pdf(x) * np.sqrt(x) == pytest.approx(root.pdf(1e-12) * 1e-6, rel=1e-6)
    assert root.hilbert(x) == pytest.approx(root.hilbert(1e-12), rel=1e-6)


@pytest.mark.parametrize("exponent", (1.000002331, 1.23456789012345))
def test_power_with_many_digits(exponent):
    """Exponents as measured; the mean to that power is a root of high order of composite numbers."""
    base = Atoms((0.2, 3.3), (sp.Rational(7, 12), sp.Rational(5, 12))) + Atoms((5.6, 8.2), (0.4, 0.6))
    law = FreeLaw(base.product_power(exponent))
    mean, variance = float(base.mean), float(base.variance)
    assert law.mean() == pytest.approx(mean**exponent, rel=1e-13)
    assert law.var() == pytest.approx(exponent * variance * mean ** (2 * exponent - 2), rel=1e-13)
    atom = FreeLaw(Atoms((18, 12), (0.9, 0.1)).product_power(exponent))
    assert atom.atoms[-1] == pytest.approx((18**exponent, 1 - exponent / 10), rel=1e-13)


def drawn(rng, depth, positive):
    """A random law: an operation on random laws, or a part."""
    if depth == 0:
        kind = rng.integers(5)
        if kind <= 1:
            return MarchenkoPastur(sp.Rational(int(rng.integers(1, 30)), 10))
        if kind == 2 and not positive:
            return Semicircle(sp.Rational(int(rng.integers(1, 40)), 10), int(rng.integers(-2, 3)))
        count = int(rng.integers(2, 5))
        points = rng.choice(np.arange(0 if positive else -6, 12), count, replace=False)
        weights = rng.integers(1, 6, count)
        return Atoms(tuple(int(p) for p in points), tuple(sp.Rational(int(w), int(weights.sum())) for w in weights))
    exponent = [sp.Rational(int(rng.integers(11, 40)), 10), 1 + ROOT / int(rng.integers(1, 5)), sp.pi / 3]
    kind, t = rng.integers(8), exponent[rng.integers(3)]
    if kind <= 1:
        return drawn(rng, depth - 1, positive) + drawn(rng, rng.integers(depth), positive)
    if kind <= 3:
        return drawn(rng, depth - 1, positive) * drawn(rng, rng.integers(depth), True)
    if kind == 4:
        return drawn(rng, depth - 1, True).product_power(t)
    if kind == 5:
        return drawn(rng, depth - 1, positive).sum_power(t)
    if kind == 6:
        return drawn(rng, depth - 1, positive).compress(sp.Rational(int(rng.integers(1, 10)), 10))
    if rng.integers(2):
        return FreePoisson(sp.Rational(int(rng.integers(1, 30)), 10), drawn(rng, depth - 1, positive))
    return (drawn(rng, depth - 1, True) + HALF).inverse()


@pytest.mark.parametrize("seed", range(48))
def test_random_trees_of_operations(seed):
    """Any law of the calculus is a distribution: mass and mean to 1e-10, both transforms on the axis and off it."""
    rng = np.random.default_rng(seed)
    law = FreeLaw(drawn(rng, 2 + seed % 2, bool(rng.integers(2))))
    inside = np.array([a + share * (b - a) for a, b in law.support() for share in (0.3, 0.8)])
    near = law.stieltjes(inside + 1e-9j * np.sqrt(law.var()))
    assert -near.imag / np.pi == pytest.approx(law.pdf(inside), rel=1e-5)
    assert law.hilbert(inside) == pytest.approx(near.real, rel=1e-5, abs=1e-6 * np.abs(near).max())
    far = law.mean() + 300j * np.sqrt(law.var())
    assert law.stieltjes(far) == pytest.approx(1 / (far - law.mean()) + law.var() / (far - law.mean()) ** 3, rel=1e-6)
