"""The figures: one command draws them, each with its caption; every chapter has one. Small sizes test them all."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from derivations.core import chapter_names
from verify.__main__ import main
from verify.figures import bbp as bbp_figures
from verify.figures import chapters_with_figures, draw_figure, figure_names, histogram, notation
from verify.figures import scaling_laws as power_law_figures

# Constants of the modules that make a figure quick; what is drawn is then rough, but by the same code.
SMALL: dict[str, dict[str, Any]] = {
    "attention_weights": {"SIZE": 16, "DRAWS": 2, "SEQUENCES": 5, "LENGTHS": (4, 8)},
    "bayes_optimal": {
        "GRID": (0.5, 1.0, 1),
        "TRIED": (0.1,),
        "SMALL": 0.1,
        "RATIOS": (1.0,),
        "SHARES": (1.3,),
        "SIZE": 16,
        "DRAWS": 2,
    },
    "bbp": {"SIZE": 32, "DRAWS": 2, "SPECTRUM_SIZE": 32, "SPECTRUM_DRAWS": 1},
    "downstream": {"SIZE": 24, "DRAWS": 2, "TESTS": 20, "LENGTHS": (8, 12)},
    "finite_length": {
        "LENGTHS": (1, 2),
        "CONTRAST_SIZE": 16,
        "CONTRAST_DRAWS": 3,
        "EDGE_SIZES": ((16, "green", "s"),),
        "EDGE_DRAWS": 2,
    },
    "free_probability": {"SIZE": 24, "DRAWS": 1},
    "population_ode": {"RUNS": 2, "COUNT": 20, "STARTS": np.array([-0.9, 0.4])},
    "scaling_laws": {
        "SIZE": 10,
        "DRAWS": 2,
        "COUNTS": (4.0,),
        "SMALL_SIZE": 8,
        "SMALL_DRAWS": 2,
        "SMALL_COUNTS": (4.0,),
        "CURVE_POINTS": 20,
        "PENALISED_POINTS": 2,
        "SLOPE_POINTS": 20,
        "CELLS": (20, 16),
        "PENALISED_MODES": 1,
        "CAUSES_GRID": (1.0, 10.0, 2),
        "TOKENS_GRID": (1.0, 10.0, 2),
        "RATIOS": (0.5,),
        "EXTENSIVE_GRID": (0.5, 1.0, 2),
        "EXTENSIVE_SIZE": 8,
        "EXTENSIVE_DRAWS": 2,
        "PRICE_POINTS": 20,
        "FACTORS_RATIOS": (0.5,),
        "ENTRIES_RATIOS": (0.5,),
        "ENTRIES_SIZE": 20,
        "ENTRIES_DRAWS": 2,
    },
    "spectral_learning": {"SIZE": 120, "DRAWS": 1},
    "state_evolution": {
        "GRID": (0.5, 1.0, 1),
        "RATIOS": (0.5,),
        "SIZE": 8,
        "DRAWS": 2,
        "SPECTRUM_SIZE": 10,
        "SPECTRUM_DRAWS": 1,
    },
    "wishart_product": {"SIZE": 24, "DRAWS": 1},
}


def shrink(patch: pytest.MonkeyPatch, chapter: str) -> None:
    module = importlib.import_module(f"verify.figures.{chapter}")
    for name, value in SMALL[chapter].items():
        patch.setattr(module, name, value)


def test_every_chapter_has_a_main_figure() -> None:
    assert set(chapter_names()) <= set(chapters_with_figures()), "add verify/figures/CHAPTER.py with FIGURES"
    names = figure_names()
    assert len(names) == len(set(names))
    for chapter in chapters_with_figures():
        own = figure_names(chapter)
        assert own[0] == chapter
        assert all(name.startswith(f"{chapter}-") for name in own[1:])


@pytest.mark.parametrize("name", figure_names())
def test_a_figure_is_drawn_with_its_caption(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shrink(monkeypatch, name.partition("-")[0])
    vector, picture, caption = draw_figure(name, tmp_path, seed=3)
    assert {path.name for path in tmp_path.iterdir()} == {f"{name}.svg", f"{name}.png", f"{name}.txt"}
    root = ElementTree.parse(vector).getroot()
    assert root.tag.endswith("svg")
    assert picture.read_bytes().startswith(b"\x89PNG")
    words = caption.read_text(encoding="utf-8")
    assert f"Made by: python -m verify figures {name} --seed 3" in words
    assert words.startswith(words.strip()[0]) and len(words) > 150


def test_the_same_seed_draws_the_same_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shrink(monkeypatch, "attention_weights")
    drawn = [
        draw_figure("attention_weights", tmp_path / folder, seed)[0] for folder, seed in (("a", 1), ("b", 1), ("c", 2))
    ]
    first, again, other = (path.read_bytes() for path in drawn)
    assert first == again != other


def test_the_command_takes_chapters_and_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["figures", "bbp-phase-diagram", "--out", str(tmp_path), "--workers", "1"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        str(tmp_path / f"bbp-phase-diagram.{kind}") for kind in ("svg", "png", "txt")
    ]
    assert main(["figures", "bbp-phases", "--out", str(tmp_path / "none")]) == 2
    message = capsys.readouterr().err
    assert "no figure for bbp-phases" in message and "bbp-phase-diagram" in message
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("name", ["nothing", "bbp-nothing", ""])
def test_an_unknown_figure_is_told(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no figure .*; the figures are attention_weights, bbp, "):
        draw_figure(name, tmp_path)


def test_symbols_come_from_the_declared_notation() -> None:
    from derivations.bbp import signal

    assert notation(signal) == r"$\Vert \mu\Vert ^2$"


def test_a_histogram_keeps_the_share_of_what_it_leaves_out() -> None:
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    histogram(axes, [0.5, 1.5, 9.0], [0, 1, 2], 4)
    assert axes.patches[0].get_data().values.tolist() == [0.25, 0.25]


def test_the_phases_are_those_that_recovery_tells() -> None:
    """The boundaries solve the spike's law; the solver of the chapter decides on either side of them."""
    from numerics import attention_weights
    from numerics.bbp import recovery

    weights = attention_weights.mean(bbp_figures.LENGTH)
    correlation = attention_weights.prefix_correlation(bbp_figures.LENGTH, bbp_figures.SHORT_PREFIX, 1)
    for gamma in (0.05, 0.25, 2.0):
        for level in ("population", "sample"):
            at = float(bbp_figures._signal_at(level, weights, correlation, gamma))
            for signal, wanted in ((at * (1 - 1e-9), False), (at * (1 + 1e-9), True)):
                found = recovery(bbp_figures.DELTA, gamma, signal, weights, correlation).signal
                assert bool(found and getattr(found, f"detectable_{level}")) == wanted


def test_the_regimes_of_a_power_law_end_at_their_laws() -> None:
    """The shades are decided by the solution, the lines by laws: they agree where only one thing is in play."""
    from numerics.scaling_laws import phase
    from numerics.scaling_laws.mode_sums import evaluate

    figures = power_law_figures

    def regimes(places: Any, level: float) -> list[str]:
        found = phase(
            np.asarray(places) * figures.DIMENSION,
            figures.DIMENSION,
            level,
            figures.GAMMA,
            figures.NOISE,
            figures.LINEAR,
        )
        return list(map(str, found))

    def at(law: str, level: float) -> list[str]:
        place = float(evaluate(law, figures._values(1.0, level)))
        return regimes([place * 0.98, place * 1.02], level)

    assert at("plateau_boundary", 1e-3) == ["plateau", "noiseless"]
    assert at("overfitting_boundary", 1e3) == ["bias", "overfitting-resolved"]  # also where the cut is in the bulk
    assert at("overfitting_boundary", 2e2) == ["bias", "overfitting-resolved"]
    assert at("bias_boundary", 1e4) == ["regularisation-limited", "bias"]
    for count in (10.0, 1e3):
        level = float(figures._first_mode(figures._values(count, 1.0)))
        assert regimes([count], level * 1.02) == ["plateau"]
        assert regimes([count], level * 0.98) == ["regularisation-limited"]
