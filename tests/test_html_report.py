"""The HTML report: well-formed pages that load nothing, with every law, every claim and the verdicts that are stored.

Toy chapters have draws; chapters of the project are shown without. Chromium, where it is installed, opens the pages.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from sympy import Eq

from derivations.core import Chapter, load_chapter
from tests import engine_toys, toy_chapter
from verify.__main__ import main
from verify.html_report import ReportSettings, write_report
from verify.html_report.elements import page, prose, text
from verify.html_report.index_page import versions
from verify.plots import plot_as_svg
from verify.run import Registry, Run, UsageError, open_store

VOID = {"meta", "link", "br", "img", "hr", "input"}
LOADING = ("src", "href", "xlink:href", "data", "poster", "action", "srcset")
REAL = ("finite_length", "spectral_learning")  # the quickest to derive


class Page(HTMLParser):
    """A page with what a browser would look up in it. Raises AssertionError where tags do not balance."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.references: list[tuple[str, str]] = []
        self.words: list[str] = []
        self.feed(source)
        self.close()
        assert self.open == [], f"not closed: {self.open}"

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attributes)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if name == "id":
                self.ids.append(value or "")
            if name in LOADING:
                self.references.append((name, value or ""))
            self.references += [("url", found) for found in re.findall(r"url\(([^)]*)\)", value or "")]

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open[-1] == tag, f"</{tag}> inside {self.open[-3:]}"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def chapters() -> list[Chapter]:
    """A toy chapter with laws and claims that were judged, and one with laws only."""
    made = engine_toys.claims(engine_toys.experiment())
    laws = tuple({id(claim.law): claim.law for claim in made}.values())
    return [replace(engine_toys.chapter(made), laws=laws), toy_chapter.load()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report on toy chapters after a quick run."""
    out = tmp_path_factory.mktemp("report")
    toys = chapters()
    with open_store(out) as store:
        next(Run(Registry.of(toys), store, workers=1).looks())
    assert main(["report", "--out", str(out)], toys) == 0
    return out / "report"


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report on chapters of the project without any draws, with a figure."""
    out = tmp_path_factory.mktemp("real")
    figures = out / "figures"
    figures.mkdir()
    (figures / "finite_length.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"/>')
    (figures / "finite_length.txt").write_text("A caption with <tags>.\nMade by: a command\n")
    found = [load_chapter(name) for name in REAL]
    write_report(ReportSettings((), out, figures), out / "report", chapters=found)
    return out / "report"


def letters(words: str) -> str:
    """Words without spaces and without the marks that a page shows by position."""
    return re.sub(r"[\s$_^(){}]", "", words)


def pages(*folders: Path) -> Iterator[tuple[Path, str]]:
    for folder in folders:
        for path in sorted(folder.glob("*.html")):
            yield path, path.read_text(encoding="utf-8")


def test_pages_are_well_formed_and_load_nothing(folder: Path, real: Path) -> None:
    seen = {path: Page(source) for path, source in pages(folder, real)}
    assert len(seen) == 3 + 3
    for path, found in seen.items():
        assert len(found.ids) == len(set(found.ids)), f"{path.name} repeats an id"
        for name, target in found.references:
            if target.startswith("data:"):
                continue
            place, _, anchor = target.partition("#")
            assert not re.match(r"[a-z]+:|//", place), f"{path.name} loads {target} by {name}"
            there = seen[path.parent / place] if place else found
            assert not anchor or anchor in there.ids, f"{path.name} points to {target}"


def test_nothing_is_fetched_by_style_or_script(folder: Path, real: Path) -> None:
    for _, source in pages(folder, real):
        assert "<script" not in source and "@import" not in source
        namespaces = re.findall(r"https?://[^\s\"'<>)]+", source)
        assert all(found.startswith("http://www.w3.org/") for found in namespaces)


def test_formulas_are_well_formed_xml(folder: Path, real: Path) -> None:
    for _, source in pages(folder, real):
        for formula in re.findall(r"<math.*?</math>", source, flags=re.S):
            ElementTree.fromstring(formula)


def test_every_law_and_claim_has_its_place(folder: Path, real: Path) -> None:
    for where, found in ((folder, chapters()), (real, [load_chapter(name) for name in REAL])):
        for chapter in found:
            shown = Page((where / f"{chapter.name}.html").read_text(encoding="utf-8"))
            assert {f"law-{law.id}" for law in chapter.laws} <= set(shown.ids)
            assert {f"claim-{claim.id}" for claim in chapter.claims} <= set(shown.ids)
            words = letters("".join(shown.words))
            for law in chapter.laws:
                assert letters(law.title) in words
                assert all(letters(step.reason) in words for step in law.steps)
                assert letters(law.source) in words


def test_a_judged_claim_shows_what_its_verdict_rests_on(folder: Path) -> None:
    source = (folder / "toys.html").read_text(encoding="utf-8")
    part = source[source.index('id="claim-level"') : source.index('id="claim-wrong-level"')]
    words = "".join(Page(f"<section>{part.partition('>')[2]}".rpartition("<section")[0]).words)
    for wanted in ("SUPPORTED", "every rival is refuted", "tier quick, seed 0", "80 at 16", "one more", "refuted"):
        assert wanted in words
    assert "L must be known to 1" in words and "family-wise error" in words
    assert part.count("<svg") == 1
    index = (folder / "index.html").read_text(encoding="utf-8")
    assert "8 of 8 judged claims have their expected verdict (8 at tier quick; seed 0)" in index
    assert versions()["project"] in index and versions()["sympy"] in index


def test_without_draws_the_laws_are_shown_and_the_command_is_told(real: Path) -> None:
    source = (real / "finite_length.html").read_text(encoding="utf-8")
    assert "5 of 5 claims have no stored draws for seed 0" in source
    assert "python -m verify finite_length --tier quick" in source
    assert "not judged" in source and "<svg" not in source
    index = (real / "index.html").read_text(encoding="utf-8")
    assert "No draws are stored for seed 0" in index and "python -m verify --tier standard" in index


def test_drawn_figures_are_part_of_the_page(real: Path) -> None:
    source = (real / "finite_length.html").read_text(encoding="utf-8")
    assert source.count("data:image/svg+xml;base64,") == 1
    assert "A caption with &lt;tags&gt;." in source
    assert "data:image" not in (real / "spectral_learning.html").read_text(encoding="utf-8")


def test_the_report_draws_nothing_and_takes_the_higher_tier(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    toys = chapters()
    for tier in ("quick", "standard"):
        with open_store(tmp_path) as store:
            next(Run(Registry.of(toys), store, tier=tier, workers=1).looks())
        stored = (tmp_path / "draws.sqlite").stat().st_size
        assert main(["report", "toys", "--out", str(tmp_path)], toys) == 0
        assert (tmp_path / "draws.sqlite").stat().st_size == stored
        index = (tmp_path / "report" / "index.html").read_text(encoding="utf-8")
        assert f"8 at tier {tier}" in index
    assert main(["report", "toys", "--tier", "full", "--out", str(tmp_path)], toys) == 0  # its first look is standard
    assert "tier full, look 0, seed 0" in (tmp_path / "report" / "toys.html").read_text(encoding="utf-8")
    assert main(["report", "toys", "--tier", "quick", "--seed", "5", "--out", str(tmp_path)], toys) == 0
    assert "No draws are stored for seed 5" in (tmp_path / "report" / "index.html").read_text(encoding="utf-8")
    assert "toy-growth" not in " ".join(path.name for path in (tmp_path / "report").iterdir())


def test_a_wrong_chapter_or_folder_is_a_usage_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    toys = chapters()
    assert main(["report", "toyz", "--out", str(tmp_path / "out")], toys) == 2
    assert "no chapter toyz; a page can be made for: toys" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    (tmp_path / "file").write_text("x")
    with pytest.raises(UsageError, match="cannot be written"):
        write_report(ReportSettings(("toys",), tmp_path, tmp_path), tmp_path / "file" / "report", chapters=toys)


def test_words_are_escaped(tmp_path: Path) -> None:
    law = engine_toys.law("toy-angry", Eq(engine_toys.top, 2 * engine_toys.width + 1))
    law = replace(law, title="<script>alert('&')</script>", source='"quoted" <b>', branch="a < b & c")
    name = "toys"
    angry = replace(engine_toys.chapter([], name), laws=(law,))
    write_report(ReportSettings((), tmp_path, tmp_path), tmp_path / "report", chapters=[angry])
    source = (tmp_path / "report" / f"{name}.html").read_text(encoding="utf-8")
    assert "<script" not in source and "<b>" not in source
    words = " ".join(Page(source).words)
    assert "<script>alert('&')</script>" in words and "a < b & c" in words


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("Σ w_t ξ_t", "Σ w<sub>t</sub> ξ<sub>t</sub>"),
        ("c N^(-rate), λ^2", "c N<sup>-rate</sup>, λ<sup>2</sup>"),
        ("x_{i j} < 1", "x<sub>i j</sub> &lt; 1"),
        ("module attention_weights", "module attention_weights"),
    ],
)
def test_scripts_in_sentences(words: str, shown: str) -> None:
    assert prose(words) == shown


def test_the_frame_takes_its_title_as_words() -> None:
    assert "<title>a &lt; b</title>" in page("a < b", "", "")
    assert text('"') == "&quot;"


def test_a_plot_follows_the_colour_of_its_page(folder: Path) -> None:
    toys = chapters()
    with open_store(folder.parent) as store:
        result = Run(Registry.of(toys), store, names=["level"]).report().results[0]
    picture = plot_as_svg(result)
    ElementTree.fromstring(picture)
    assert "currentColor" in picture and "#000000" not in picture
    assert all(found.startswith("level-") for found in re.findall(r'\bid="([^"]*)"', picture))
    with pytest.raises(ValueError, match="no points to draw"):
        plot_as_svg(replace(result, points=()))


def test_pages_made_in_processes_are_those_made_here(tmp_path: Path) -> None:
    both: dict[int, Any] = {}
    for workers in (1, 2):
        paths = write_report(ReportSettings(REAL, tmp_path, tmp_path), tmp_path / str(workers), workers)
        both[workers] = [path.read_bytes() for path in paths]
    assert both[1] == both[2]


BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed, so that no browser opens the pages")
def test_a_browser_opens_the_pages_without_complaint(folder: Path, real: Path, tmp_path: Path) -> None:
    for path, _ in pages(folder, real):
        command = [
            *(str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--v=0"),
            *("--dump-dom", f"--user-data-dir={tmp_path}", path.as_uri()),
        ]
        opened = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert opened.returncode == 0
        assert "</math>" in opened.stdout or path.stem == "index"
        complaints = [line for line in opened.stderr.splitlines() if re.search("CONSOLE|net::ERR|Refused", line)]
        assert complaints == [], path.name
