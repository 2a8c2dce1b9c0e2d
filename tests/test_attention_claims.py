"""The claims on trained attention: settings on both sides of the thresholds, rivals, sizes without rounding.

What the draws say is judged by `python -m verify state_evolution`; here the plan is held to the theory it probes.
"""

from __future__ import annotations

import sympy as sp

from derivations import state_evolution as chapter
from derivations.core import Claim, Experiment
from numerics.state_evolution import evaluate, interpolation_threshold, recovery_threshold, solution_component
from verify.run import Registry

TRAINED: list[Claim] = [claim for claim in chapter.claims if claim.experiment.model is chapter.training_model]
EXPERIMENTS: list[Experiment] = list({claim.experiment.name: claim.experiment for claim in TRAINED}.values())


def value(experiment: Experiment, quantity: sp.Symbol) -> float:
    return float(experiment.parameters[quantity])


def test_every_size_has_a_whole_number_of_sequences_and_columns() -> None:
    """Else the law would have to be solved anew at every size, and the widths would differ from κ and κ₀."""
    for experiment in EXPERIMENTS:
        for size in experiment.standard or experiment.full:
            for count in (
                experiment.parameters[chapter.alpha] * size**2,
                *(experiment.parameters[ratio] * size for ratio in (chapter.kappa, chapter.kappa0)),
            ):
                assert sp.sympify(count).is_integer, f"{experiment.name} at d = {size}"


def test_recovery_is_probed_below_and_above_its_threshold() -> None:
    below, above = (value(made, chapter.alpha) for made in (chapter.below_recovery, chapter.above_recovery))
    factorised, frobenius = (recovery_threshold(0.5, penalty=penalty) for penalty in ("nuclear", "frobenius"))
    assert below < 0.8 * factorised < factorised < above < frobenius


def test_interpolation_is_probed_below_and_above_its_threshold() -> None:
    made = (chapter.below_interpolation, chapter.above_interpolation)
    threshold = interpolation_threshold(0.5, value(made[0], chapter.noise))
    assert value(made[0], chapter.alpha) < 0.8 * threshold < 1.2 * threshold < value(made[1], chapter.alpha)


def test_the_settings_cover_what_they_should() -> None:
    assert {experiment.options["tokens"] for experiment in EXPERIMENTS} >= {2, 3}
    assert {experiment.options["task"] for experiment in EXPERIMENTS} == {"label", "sequence"}
    assert {experiment.options["penalty"] for experiment in EXPERIMENTS} == {"nuclear", "frobenius"}
    assert {value(experiment, chapter.kappa) for experiment in EXPERIMENTS} >= {0.75, 1.0, 2.0}
    assert any(value(made, chapter.beta) != 1 for made in EXPERIMENTS)
    assert any(value(made, chapter.beta) != value(made, chapter.beta_target) for made in EXPERIMENTS)
    assert {claim.tier for claim in TRAINED} == {"standard", "full"}


def test_each_mistake_is_a_rival_of_some_claim() -> None:
    named = {name for claim in chapter.claims for name in claim.rivals()}
    assert named == {
        "diagonal variance 1 for 2",
        "T² outputs for (T² + T − 2)/2",
        "label noise forgotten: Q₀ for Q₀ + Δ/2",
        "λ for √κ λ",
        "Frobenius norm for nuclear norm",
        "unscaled: without η",
        "message passing without its Onsager term",
        "the target's inverse temperature forgotten: β for β₀",
    }
    levels = [claim for claim in chapter.claims if "λ for √κ λ" in claim.rivals()]
    assert all(claim.experiment.parameters[chapter.kappa] != 1 for claim in levels)


def test_three_tokens_are_solved_as_three() -> None:
    """The claim's node carries the experiment's number of tokens, and the rival counts T² = 9 outputs for 5."""
    claim = next(made for made in TRAINED if made.id == "attention-on-three-tokens-square")
    names = chapter.Solution.PARAMETERS
    node = claim.given[0].rhs
    assert dict(zip(names, node.args[2:], strict=False))["tokens"] == 3
    (wrong,) = claim.rivals()["T² outputs for (T² + T − 2)/2"]
    assert dict(zip(names, wrong.rhs.args[2:], strict=False))["alpha"] == chapter.alpha * sp.Rational(9, 5)


def test_the_law_is_already_small_above_recovery() -> None:
    """At the weak penalty of the training: a few percent of the target's square above, a quarter of it below."""
    shares = []
    for made in (chapter.below_recovery, chapter.above_recovery):
        parameters = [value(made, quantity) for quantity in chapter._common]
        square = evaluate("target_square_law", {chapter.kappa0: value(made, chapter.kappa0)})
        shares.append(solution_component(("excess", "nuclear"), *parameters, 2.0, 2.0, -1.0) / square)
    assert shares[0] > 0.2
    assert shares[1] < 0.02


def test_claims_of_the_chapter_have_their_own_names() -> None:
    registry = Registry.of()
    assert sum(entry.chapter == "state_evolution" for entry in registry.entries) == len(chapter.claims)
