"""The printer: its command line, its three formats, the golden LaTeX of every chapter, and that pdflatex accepts it.

After a deliberate change of a chapter, renew its golden file with
`python -m derivations.print CHAPTER > tests/golden/CHAPTER.tex` and read the difference.
"""

from __future__ import annotations

import functools
import os
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import sympy as sp
from sympy import Eq

from derivations import print as printer
from derivations.core import Law, Quantity, Step, chapter_names, load_chapter, parameter
from derivations.core.prose import UNKNOWN, maths_to_latex, prose_to_latex, prose_to_text
from derivations.core.render import LINE, display, latex, size, text
from derivations.core.widths import width
from tests import toy_chapter

ROOT = Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "tests" / "golden"
SECONDS = 2.5  # for one chapter, cold
SYMPY_SECONDS = 0.45
EVERY_CHAPTER = pytest.mark.parametrize("name", chapter_names())
x, y = sp.symbols("x y", positive=True)


def command(*words: str, seed: str = "0") -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    return subprocess.run(
        [sys.executable, "-m", "derivations.print", *words], cwd=ROOT, capture_output=True, env=environment
    )


# ------------------------------------------------------------------------------------------------- what a chapter shows


@pytest.mark.parametrize("style", ["latex", "markdown", "text"])
def test_everything_about_a_law_is_printed(style: str) -> None:
    chapter = toy_chapter.load()
    page = printer.render(chapter, chapter.laws, style)
    for law in chapter.laws:
        assert law.id in page
        for step in law.steps:
            shown = text(step.equation) if style == "text" else display(step.equation)
            assert shown in page
    for words in ("derived here", "the positive root", "no other law", "superseded in the growth model by toy-growth"):
        assert words in page
    assert page.index("growth rate") < page.index("time since the start")
    assert "occurs in no law" not in page
    assert "Condition" in page


def test_notation_lists_what_occurs_and_what_measures_it() -> None:
    chapter = toy_chapter.load()
    names = [quantity.name for quantity in printer.notation(chapter, chapter.laws)]
    assert names == ["rate", "time", "root", "eigenvalues", "mean"]
    only = [quantity.name for quantity in printer.notation(chapter, [toy_chapter.quadratic])]
    assert only == ["rate", "root"]


def test_a_changed_law_changes_the_print(monkeypatch: pytest.MonkeyPatch) -> None:
    chapter = toy_chapter.load()
    law = toy_chapter.quadratic
    before = printer.render(chapter, chapter.laws)
    wrong = law.off_by(sp.Rational(1, 20))
    monkeypatch.setitem(law.__dict__, "steps", (*law.steps[:-1], Step("changed", wrong)))
    after = printer.render(chapter, [law])
    assert latex(wrong) in after and latex(wrong) not in before


def test_text_uses_infix_notation() -> None:
    assert text(sp.And(x > y, Eq(x, 2 * y))) in ("x > y and x = 2*y", "x = 2*y and x > y")
    assert text(sp.Interval.Lopen(0, sp.oo)) == "(0, oo)"
    assert text(sp.Piecewise((1, x > y), (0, True))) == "{1 if x > y; 0 otherwise}"
    assert text(y - x) == "y - x"
    assert text(sp.Range(0, 3)) == "{0, 1, 2}"


def test_sums_start_with_a_positive_term() -> None:
    assert latex(x**2 - y - x**3).startswith("x^{2}")
    assert latex(-x - y) == "- x - y"


# ---------------------------------------------------------------------------------------------------------------- prose


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("5 % & more_or less #1", r"5 \% \& more\_or less \#1"),
        ("‖a‖² → δ", r"\(\|a\|^{2} \to \delta\)"),
        ("κ = ‖w‖², as", r"\(\kappa = \|w\|^{2}\), as"),
        ("the S-transform in $x_δ$", r"the S-transform in \(x_{\delta }\)"),
        ("for s ≠ t", r"for \(s \ne t\)"),
        ("N^(−1/2)", r"\(N^{-1/2}\)"),
        ("Życzkowski – “é”", r"\.{Z}yczkowski -- ``\'{e}''"),
        ("a word (a good one), e.g. this", "a word (a good one), e.g. this"),
        ("(1 + √r)/2", r"\((1 + \sqrt{r})/2\)"),
        ("Σ^½ W", r"\(\Sigma ^{\tfrac{1}{2}} W\)"),
        ("free ⊠ product", r"free \(\boxtimes\) product"),
    ],
)
def test_prose_to_latex(words: str, expected: str) -> None:
    assert prose_to_latex(words) == expected


def test_prose_that_no_table_knows_is_marked() -> None:
    assert UNKNOWN in prose_to_latex("snowman ☃")
    assert UNKNOWN in maths_to_latex("☃")
    assert prose_to_text("in $x$") == "in x"


def test_unpaired_inline_maths_is_refused() -> None:
    with pytest.raises(ValueError, match=r"opens with \$ but does not close"):
        prose_to_latex("costs $5")


# ------------------------------------------------------------------------------------------------------- long equations


def long_equations() -> list[object]:
    names = sp.symbols("a1:30", positive=True)
    z = sp.Symbol("z")
    total = sum((name * x**power for power, name in enumerate(names)), sp.Integer(0))
    repeated = sp.sqrt(sum(names[:9]))
    return [
        Eq(y, total),
        Eq(y, total / (1 + x)),
        Eq(y, (1 + x) / total),
        Eq(y, total / sum(name * y**power for power, name in enumerate(names))),
        Eq(y, sp.sqrt(total)),
        Eq(y, sp.exp(total)),
        Eq(y, sp.log(total)),
        Eq(y, -total * (1 + y) * (2 + sum(names)), evaluate=False),
        Eq(total, sum(names)),
        Eq(y, sp.Integral(total * z, (z, 0, 1))),
        Eq(y, sp.Piecewise((total, x > total), (x * total, True))),
        Eq(y, repeated + 1 / repeated + repeated**3 + sp.cos(repeated * x) + sp.sin(repeated * x) + 1 / (repeated + x)),
        sp.And(*(name < total for name in names[:3])),
        total,
    ]


@pytest.mark.parametrize("equation", long_equations())
def test_long_equations_are_broken(equation: object) -> None:
    body = display(equation)
    assert body.startswith("\\begin{aligned}")
    assert width(body) <= LINE * 1.1
    assert body.count("{") == body.count("}")
    assert body.count(r"\left") == body.count(r"\right")
    assert body.count(r"\Bigl") == body.count(r"\Bigr")
    for row in body.split("\\\\\n"):
        assert row.count(r"\left") == row.count(r"\right"), "a stretching bracket must close on its own line"


def test_repeated_parts_are_named_once() -> None:
    body = display(long_equations()[11])
    assert r"\text{with } \mathcal{A}" in body


def test_what_cannot_be_broken_is_set_smaller() -> None:
    row = sp.Matrix([[x**power * y for power in range(40)]])
    assert size(display(row)) == r"\tiny"
    assert size(display(x)) == ""


# ----------------------------------------------------------------------------------------------------- the command line


def test_unknown_chapter_names_the_nearest_and_all() -> None:
    wrong = chapter_names()[0][:-1]
    run = command(wrong)
    message = run.stderr.decode()
    assert run.returncode == 2 and run.stdout == b""
    assert f"nearest: {chapter_names()[0]}" in message
    assert all(name in message for name in chapter_names())


def test_unknown_law_names_the_nearest_and_all() -> None:
    chapter = load_chapter(chapter_names()[-1])
    wrong = chapter.laws[0].id[:-1]
    run = command(chapter.name, "--law", wrong)
    message = run.stderr.decode()
    assert run.returncode == 2 and run.stdout == b""
    assert "nearest: " in message
    assert all(law.id in message for law in chapter.laws)


@pytest.mark.parametrize(
    "words",
    [[], ["--standalone", "--format", "text", chapter_names()[0]], ["--list", "--law", "x"], ["--format", "pdf"]],
)
def test_usage_errors(words: list[str]) -> None:
    run = command(*words)
    assert run.returncode == 2 and b"error: " in run.stderr and run.stdout == b""


def test_lists(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert printer.main(["--list"]) == 0
    chapters = capfdbinary.readouterr().out.decode()
    assert [line.split()[0] for line in chapters.splitlines()] == list(chapter_names())
    for name in chapter_names():
        assert load_chapter(name).title in chapters
    assert printer.main(["--list", chapter_names()[0]]) == 0
    laws = capfdbinary.readouterr().out.decode()
    assert [line.split()[0] for line in laws.splitlines()] == [law.id for law in load_chapter(chapter_names()[0]).laws]


def test_one_law(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    chapter = load_chapter(chapter_names()[0])
    first, second = chapter.laws[:2]
    assert printer.main([chapter.name, "--law", second.id, "--format", "markdown"]) == 0
    page = capfdbinary.readouterr().out.decode()
    assert f"`{second.id}`" in page and f"`{first.id}`" not in page


def test_a_reader_that_stops_early_is_no_error() -> None:
    script = f'"{sys.executable}" -m derivations.print {chapter_names()[0]} | head -n 1'
    run = subprocess.run(["bash", "-o", "pipefail", "-c", script], cwd=ROOT, capture_output=True)
    assert run.returncode == 0 and run.stderr == b""
    assert run.stdout.startswith(b"\\section{")


@EVERY_CHAPTER
def test_only_the_chapter_that_is_asked_for_is_imported(name: str) -> None:
    chapter = load_chapter(name)
    needed = {name} | {module.partition(".")[2] for module in sources(chapter.module.__name__)}
    script = (
        "import sys; from derivations import print as p; p.main(sys.argv[1:]); "
        "print(*sorted(m for m in sys.modules if m.startswith('derivations.')), file=sys.stderr)"
    )
    run = subprocess.run(
        [sys.executable, "-c", script, name, "--list"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    loaded = {module.partition(".")[2] for module in run.stderr.split()}
    assert loaded & set(chapter_names()) <= needed


def sources(module: str) -> set[str]:
    """The chapters from which a chapter imports, directly or not."""
    place = ROOT / Path(*module.split("."))
    source = (place / "__init__.py" if place.is_dir() else place.with_suffix(".py")).read_text(encoding="utf-8")
    direct = set(re.findall(r"^(?:from|import) (derivations\.(?!core)[\w.]+)", source, re.M))
    return direct.union(*(sources(name) for name in direct)) if direct else set()


# -------------------------------------------------------------------------------------------------------- every chapter


def processor_time(action: Callable[[], subprocess.CompletedProcess[bytes]]) -> tuple[float, bytes]:
    """Seconds of processor time that a child process takes, and what it prints."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run = action()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert run.returncode == 0, run.stderr.decode()
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, run.stdout


def slowness() -> float:
    """How much slower this machine is at the moment than a quiet one, which imports SymPy alone in SYMPY_SECONDS."""
    words = [sys.executable, "-c", "import sympy"]
    return max(1.0, processor_time(lambda: subprocess.run(words, capture_output=True))[0] / SYMPY_SECONDS)


@EVERY_CHAPTER
def test_golden_and_cost(name: str) -> None:
    """In fresh interpreters, with different hash seeds: the same text, within 2.5 s on a quiet machine.

    Each of the two runs is compared with an import of SymPy just before it: a machine's speed changes within seconds.
    """
    golden = GOLDEN / f"{name}.tex"
    renew = f"python -m derivations.print {name} > tests/golden/{name}.tex"
    assert golden.exists(), f"{name} has no golden LaTeX; write it with: {renew}"
    spent: list[float] = []
    for seed in ("1", "2"):
        slow = slowness()
        seconds, printed = processor_time(functools.partial(command, name, seed=seed))
        spent.append(seconds / slow)
        assert printed.decode() == golden.read_text(encoding="utf-8"), f"if the change is meant: {renew}"
    assert min(spent) <= SECONDS, f"printing {name} takes {min(spent):.1f} s of processor time, allowed are {SECONDS} s"


@EVERY_CHAPTER
def test_latex_is_plain_ascii_and_complete(name: str) -> None:
    page = (GOLDEN / f"{name}.tex").read_text(encoding="utf-8")
    assert page.isascii()
    unknown = re.findall(re.escape(UNKNOWN) + r"(\w+)", page)
    assert not unknown, f"no LaTeX is known for U+{', U+'.join(unknown)}; add it to derivations/core/prose.py"
    assert not re.search(r"\\math(bb|frak|scr)|\\lessapprox", page), "needs more packages than amsmath and booktabs"


@EVERY_CHAPTER
def test_markdown_and_text_print(name: str) -> None:
    chapter = load_chapter(name)
    for style in ("markdown", "text"):
        page = printer.render(chapter, chapter.laws, style)
        assert all(law.id in page for law in chapter.laws)
        assert "\\begin{equation" not in page


@EVERY_CHAPTER
def test_symbols_of_a_chapter_are_told_apart(name: str) -> None:
    """Two quantities of one chapter never share a name, and never a printed form with different names."""
    chapter = load_chapter(name)
    shown: dict[str, Quantity] = {}
    for quantity in printer.notation(chapter, chapter.laws):
        other = shown.setdefault(latex(quantity), quantity)
        assert other == quantity, f"{quantity.name} and {other.name} both print as {latex(quantity)}"


def pdflatex(folder: Path, page: str) -> str:
    """Compile a document and return pdflatex's log."""
    (folder / "page.tex").write_text(page, encoding="ascii")
    run = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "page.tex"],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout[-3000:]
    return (folder / "page.log").read_text(encoding="latin-1")


needs_pdflatex = pytest.mark.skipif(
    shutil.which("pdflatex") is None,
    reason="needs pdflatex; on Debian: apt-get install texlive-latex-base texlive-latex-recommended",
)


@needs_pdflatex
@EVERY_CHAPTER
def test_pdflatex_compiles_every_chapter(name: str, tmp_path: Path) -> None:
    log = pdflatex(tmp_path, printer.standalone((GOLDEN / f"{name}.tex").read_text(encoding="ascii")))
    over = [float(width) for width in re.findall(r"Overfull \\hbox \(([\d.]+)pt too wide", log)]
    assert max(over, default=0.0) < 10.0, "an equation runs into the margin"


@needs_pdflatex
def test_pdflatex_compiles_what_is_hard_to_print(tmp_path: Path) -> None:
    wide = parameter("wide", "100 % of ⊠, ⊞, ½ & ‖a‖² → ∞ in $x̃_δ ≤ √(1 + κ)$ — “été”", sp.S.Reals, (1, 2))
    equations = [Eq(wide, 1), *(equation for equation in long_equations() if isinstance(equation, sp.Basic))]
    law = Law("hard", "Hard: ∫ f dμ", lambda: [("a step ⊠ $\\sqrt{2}$", each) for each in equations], source="§ 1")
    chapter = toy_chapter.load()
    log = pdflatex(tmp_path, printer.standalone(printer.render(chapter, [*chapter.laws, law])))
    over = [float(width) for width in re.findall(r"Overfull \\hbox \(([\d.]+)pt too wide", log)]
    assert max(over, default=0.0) < 10.0
