"""Samplers of free probability: exact identities of single draws, seeds, and wrong settings.

Their limits are judged by the claims of the chapter; here is what holds for every draw.
"""

import numpy as np
import pytest

from verify.samplers import free

DRAWS = {
    "sum": (free.free_sum, {"c": 0.5}, {}),
    "product": (free.free_product, {"c": 0.5}, {}),
    "compression": (free.free_compression, {"alpha": 0.5}, {}),
    "sum power": (free.free_sum_power, {"alpha": 1 / 3}, {}),
    "product power": (free.free_product_power, {"copies": 2}, {}),
    "inverse": (free.free_inverse, {"c": 0.25}, {}),
    "poisson": (free.free_poisson, {"rate": 1.0}, {}),
    "atoms": (free.free_sum_of_atoms, {"first_share": 0.75, "second_share": 0.625}, {"rest": "interval"}),
    "additive spike": (free.additive_spike, {"c": 0.5, "theta": 3.0}, {}),
    "covariance spike": (free.covariance_spike, {"c": 0.5, "theta": 3.0}, {}),
    "signal": (free.semicircle_sum, {"s": 1.0, "ell": 3.0}, {}),
}
SIZE = 32


def drawn(name, seed=1, size=SIZE, **changes):
    sample, parameters, options = DRAWS[name]
    changed = {key: changes.get(key, value) for key, value in parameters.items()}
    settings = {key: changes.get(key, value) for key, value in options.items()}
    return sample(size, np.random.default_rng(seed), changed, settings)


@pytest.mark.parametrize("name", DRAWS)
def test_a_seed_fixes_the_draw(name):
    """Case 14: the same seed gives the same draw, another seed another one."""
    first, again, other = drawn(name), drawn(name), drawn(name, seed=2)
    assert all(np.array_equal(first[key], again[key]) for key in first)
    assert any(not np.array_equal(first[key], other[key]) for key in first)


def test_exact_traces_and_determinants():
    """Rotations keep the trace of a sum of signs at 0 and the determinant of a product."""
    assert abs(drawn("sum power")["eigenvalues"].sum()) < 1e-12
    assert np.prod(drawn("product power")["eigenvalues"]) == pytest.approx(3.0**SIZE, rel=1e-10)
    assert abs(drawn("sum power")["eigenvalues"]).max() <= 3 + 1e-12
    assert drawn("product power")["eigenvalues"].max() <= 9 + 1e-12


def test_one_copy_is_the_matrix_itself():
    assert drawn("sum power", alpha=1.0)["eigenvalues"] == pytest.approx(np.repeat([-1, 1], SIZE // 2))
    assert drawn("product power", copies=1)["eigenvalues"] == pytest.approx(np.repeat([1, 3], SIZE // 2))


def test_realised_strengths_are_those_of_the_matrix():
    """The realised values scatter around the nominal ones as a χ² and a Gaussian do."""
    for name, key, nominal, spread in (
        ("covariance spike", "theta", 3.0, 4 * np.sqrt(2 / 64)),
        ("signal", "ell", 3.0, np.sqrt(2 / SIZE)),
    ):
        values = np.array([drawn(name, seed=seed)[key] for seed in range(400)])
        assert abs(values.mean() - nominal) < 4 * spread / 20
        assert values.std() == pytest.approx(spread, rel=0.2)


@pytest.mark.parametrize("rest", ["points", "interval"])
def test_atoms_are_counted_exactly(rest):
    draw = drawn("atoms", rest=rest)
    zeros = np.abs(draw["eigenvalues"]) < 1e-9
    assert zeros.sum() == SIZE * (draw["first_share"] + draw["second_share"] - 1)
    others = np.abs(drawn("atoms", rest=rest, size=256)["eigenvalues"])
    gap = others[others > 1e-9].min()
    assert gap > 0.2 if rest == "points" else gap < 0.1


@pytest.mark.parametrize(
    ("name", "changes", "says"),
    [
        ("sum", {"c": -1.0}, "c must be > 0"),
        ("sum", {"size": 31}, "size must be even"),
        ("compression", {"alpha": 1.5}, "alpha must be > 0 and <= 1"),
        ("sum power", {"alpha": 0.4}, "alpha must be 1 over an integer"),
        ("product power", {"copies": 1.5}, "copies must be an integer"),
        ("inverse", {"c": 2.0}, "c must be < 1"),
        ("poisson", {"rate": 1e-9}, "rate must give at least 2 jumps"),
        ("atoms", {"first_share": 1.0}, "first_share must leave zeros"),
        ("atoms", {"rest": "circle"}, "rest must be points or interval"),
        ("covariance spike", {"theta": -1.0}, "theta must be > -1"),
        ("signal", {"s": 0.0}, "s must be > 0"),
    ],
)
def test_errors_name_the_argument(name, changes, says):
    with pytest.raises(ValueError, match=says):
        drawn(name, **changes)
