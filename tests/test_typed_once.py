"""A formula is typed once: change a law, and the print, the computed number and the claim's residual change with it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
LAW = "marchenko-pastur-upper-edge"
FACTOR = 1.05

# Run in an interpreter of its own, because compiled functions are kept: the law is changed before anything reads it.
SCRIPT = """
import json, sys
import numpy as np
import sympy as sp
from derivations import print as printer
from derivations.core import Step, load_chapter

chapter = load_chapter("wishart_product")
law = printer.find_law(chapter, "marchenko-pastur-upper-edge")
if sys.argv[1] == "changed":
    wrong = law.rival(right=law.right * sp.Rational(21, 20))
    law.__dict__["steps"] = (*law.steps[:-1], Step("changed", wrong))

from numerics.wishart_product import WishartProduct
from verify.measure import Measurement
from verify.samplers import load_sampler

claim = next(claim for claim in chapter.claims if claim.law is law)
model = claim.experiment.model
parameters = {quantity.name: float(value) for quantity, value in claim.experiment.parameters.items()}
draw = load_sampler(model.name)(40, np.random.default_rng(1), parameters, dict(claim.experiment.options))
columns = {name: np.asarray(value)[None, ...] for name, value in draw.items()}
measurement = Measurement(claim, columns)
sides = measurement.sides(columns, measurement.points[0])
print(json.dumps({
    "printed": printer.render(chapter, [law]),
    "computed": float(WishartProduct(delta=0.5, gamma=0).support()[1]),
    "law": float(sides.right[0]),
    "residual": float(sides.residual[0]),
}))
"""


def readings(state: str) -> dict[str, Any]:
    run = subprocess.run([sys.executable, "-c", SCRIPT, state], cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return dict(json.loads(run.stdout.splitlines()[-1]))


def test_a_changed_law_changes_print_number_and_residual() -> None:
    right, wrong = readings("right"), readings("changed")
    assert right["printed"] != wrong["printed"]
    assert wrong["computed"] == pytest.approx(FACTOR * right["computed"], rel=1e-12)
    assert wrong["law"] == pytest.approx(FACTOR * right["law"], rel=1e-12)
    assert wrong["residual"] == pytest.approx(right["residual"] - (FACTOR - 1) * right["law"], rel=1e-9)
