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
