"""A formula is typed once: change a law, and the print, the computed number and the claim's residual change with it."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
FACTOR = 1.05

CLAIMS = {  # the laws that are changed, and a claim that reads each of them
    "wishart_product": {
        "marchenko-pastur-upper-edge": "classical-edge",
        "wishart-product-upper-edge": "bulk-upper-edge",
        "wishart-product-moments": "bulk-moments",
    },
    "bbp": {
        "population-threshold": None,
        "sample-outlier": "token-centred-signal-location",
        "sample-overlap": "token-uncentred-vocabulary-overlap",
    },
}

# Run in an interpreter of its own, because compiled functions are kept: the laws change before anything reads them.
SCRIPT = """
import json, sys
import numpy as np
import sympy as sp
from derivations import print as printer
from derivations.core import Step, load_chapter

chapter, changed, claims = load_chapter(sys.argv[1]), sys.argv[2] == "changed", json.loads(sys.argv[3])
laws = {name: printer.find_law(chapter, name) for name in claims}
wrong = {name: law.rival(right=law.right * sp.Rational(21, 20)) for name, law in laws.items()}
if changed:
    for name, law in laws.items():
        law.__dict__["steps"] = (*law.steps[:-1], Step("changed", wrong[name]))

from numerics import bbp
from numerics.wishart_product import WishartProduct
from verify.measure import Measurement
from verify.samplers import load_sampler

COMPUTED = {
    "marchenko-pastur-upper-edge": lambda: WishartProduct(delta=0.5, gamma=0).support()[1],
    "wishart-product-upper-edge": lambda: WishartProduct(delta=0.5, gamma=0.25).support()[1],
    "wishart-product-moments": lambda: WishartProduct(delta=0.5, gamma=0.25).moment(3),
    "population-threshold": lambda: bbp.population_threshold(0.5),
    "sample-outlier": lambda: bbp.recovery(0.5, 0.25, 2.0, [1.0], [[1.0]]).signal.sample_location,
    "sample-overlap": lambda: bbp.recovery(0.5, 0.25, 2.0, [1.0], [[1.0]], "decoupled").signal.sample_overlap,
}
results = {}
for name, law in laws.items():
    results[name] = {"printed": printer.render(chapter, [law]), "computed": float(COMPUTED[name]())}
    for claim in chapter.claims:
        if claim.id == claims[name]:
            experiment = claim.experiment
            parameters = {quantity.name: float(value) for quantity, value in experiment.parameters.items()}
            sampler, generator = load_sampler(experiment.model.name), np.random.default_rng(1)
            draw = sampler(40, generator, parameters, dict(experiment.options))
            columns = {column: np.asarray(value)[None, ...] for column, value in draw.items()}
            measurement = Measurement(claim, columns)
            sides = measurement.sides(columns, measurement.points[0])
            results[name] |= {"law": float(sides.right[0]), "residual": float(sides.residual[0])}
print(json.dumps(results))
"""


@lru_cache
def readings(chapter: str, state: str) -> dict[str, Any]:
    command = [sys.executable, "-c", SCRIPT, chapter, state, json.dumps(CLAIMS[chapter])]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return dict(json.loads(run.stdout.splitlines()[-1]))


@pytest.mark.parametrize(("chapter", "law"), [(chapter, law) for chapter, laws in CLAIMS.items() for law in laws])
def test_a_changed_law_changes_print_number_and_residual(chapter: str, law: str) -> None:
    right, wrong = (readings(chapter, state)[law] for state in ("right", "changed"))
    assert right["printed"] != wrong["printed"]
    assert wrong["computed"] == pytest.approx(FACTOR * right["computed"], rel=1e-12)
    assert ("residual" in right) is (CLAIMS[chapter][law] is not None)
    if "residual" in right:
        assert wrong["law"] == pytest.approx(FACTOR * right["law"], rel=1e-12)
        assert wrong["residual"] == pytest.approx(right["residual"] - (FACTOR - 1) * right["law"], rel=1e-9)
