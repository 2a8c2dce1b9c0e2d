"""Print a chapter: its notation, and each law with its derivation, as LaTeX, Markdown or plain text.

Everything printed is read from the chapter's own objects; run `python -m derivations.print --help`.
Only the chapter that is asked for is imported.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import importlib.util
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from derivations.core.chapters import Chapter, chapter_names, load_chapter
from derivations.core.laws import Law
from derivations.core.prose import prose_to_latex, prose_to_text
from derivations.core.quantities import Quantity
from derivations.core.render import display, latex, size, text

_TABLE_ROWS = 28  # rows of a notation table that fit one page: booktabs alone does not break tables
_PREAMBLE = r"""\documentclass[10pt]{article}
\usepackage{amsmath}
\usepackage{booktabs}
\setlength{\textwidth}{17cm}
\setlength{\oddsidemargin}{-0.5cm}
\setlength{\textheight}{24cm}
\setlength{\topmargin}{-1.5cm}
\setlength{\parindent}{0pt}
\setlength{\parskip}{4pt plus 1pt}
\emergencystretch=3em
\allowdisplaybreaks
% free convolutions, without the package amssymb
\newcommand{\boxedoperator}[1]{\mathbin{\setlength{\fboxsep}{-0.4pt}\raisebox{0.2pt}{\fbox{\(#1\)}}}}
\providecommand{\boxtimes}{\boxedoperator{\times}}
\providecommand{\boxplus}{\boxedoperator{+}}
\begin{document}"""

# ------------------------------------------------------------------------------------------------- what there is to say


def notation(chapter: Chapter, laws: Iterable[Law]) -> tuple[Quantity, ...]:
    """The quantities that occur in the printed equations, the chapter's own first, in order of declaration.

    A measured quantity brings along the quantities of its definition.
    """
    found: dict[Quantity, None] = {}
    for law in laws:
        conditions = [law.where()] if law.where else []
        for equation in [*(step.equation for step in law.steps), *conditions]:
            _collect(equation, found)
    declared = {quantity: place for place, quantity in enumerate(chapter.quantities)}
    return tuple(sorted(found, key=lambda quantity: declared.get(quantity, len(declared))))


def _collect(expression: Any, found: dict[Quantity, None]) -> None:
    for quantity in sorted(
        expression.atoms(Quantity) - set(found), key=lambda quantity: (quantity.name, quantity.meaning)
    ):
        found[quantity] = None
        if quantity.definition is not None:
            _collect(quantity.definition, found)


def facts(law: Law) -> Iterator[tuple[str, str]]:
    """What is known about a law beside its formulas, as (heading, words)."""
    yield "Id", law.id
    yield "Source", law.source
    yield "Status", str(law.status)
    yield "Uses", ", ".join(used.id for used in law.uses) or "no other law"
    if law.branch:
        yield "Branch", law.branch


def find_law(chapter: Chapter, identifier: str) -> Law:
    """The chapter's law of that id. Raises ValueError with the nearest ids and the list if there is none."""
    known = [law.id for law in chapter.laws]
    for law in chapter.laws:
        if law.id == identifier:
            return law
    near = difflib.get_close_matches(identifier, known, n=3, cutoff=0.4)
    hint = f"; nearest: {', '.join(near)}" if near else ""
    raise ValueError(f"no law {identifier!r} in chapter {chapter.name}{hint}; laws: {', '.join(known)}")


# ---------------------------------------------------------------------------------------------------------- the formats


@dataclass(frozen=True)
class Format:
    """How one output format writes headings, words, equations and the notation table."""

    chapter: Callable[[str], str]
    heading: Callable[[str], str]
    law: Callable[[Law], str]
    facts: Callable[[Law], str]
    equation: Callable[[Any, str], str]
    table: Callable[[Sequence[Quantity]], str]
    line: Callable[[str, str], str]


def render(chapter: Chapter, laws: Sequence[Law], style: str = "latex") -> str:
    """The chapter's notation and the laws, in the style "latex", "markdown" or "text"."""
    form = FORMATS[style]
    parts = [form.chapter(chapter.title), form.heading("Notation"), form.table(notation(chapter, laws))]
    for law in laws:
        parts += [form.law(law), form.facts(law)]
        if law.where is not None:
            parts += [form.line("Condition", ""), form.equation(law.where(), "")]
        for number, step in enumerate(law.steps[:-1], start=1):
            parts += [form.line(f"Step {number}", step.reason), form.equation(step.equation, "")]
        last = law.steps[-1]
        parts += [form.line("Statement", last.reason), form.equation(last.equation, law.id)]
    return "\n\n".join(part for part in parts if part) + "\n"


def standalone(body: str) -> str:
    """A whole document around LaTeX printed by `render`, for pdflatex with amsmath and booktabs."""
    return f"{_PREAMBLE}\n{body.rstrip()}\n\\end{{document}}\n"


def _latex_facts(law: Law) -> str:
    items = [rf"\item[{heading}] {prose_to_latex(words)}" for heading, words in facts(law)]
    return "\n".join((r"\begin{description}", r"\setlength{\itemsep}{0pt}", *items, r"\end{description}"))


def _latex_equation(equation: Any, label: str) -> str:
    body = display(equation)
    environment = "equation" if label else "equation*"
    mark = rf"\label{{law:{label}}}" if label else ""
    shown = f"\\begin{{{environment}}}{mark}\n{body}\n\\end{{{environment}}}"
    smaller = size(body)
    return f"{{{smaller}\n{shown}\n}}" if smaller else shown


def _meaning(quantity: Quantity, words: Callable[[str], str], mathematics: Callable[[Any], str]) -> str:
    meaning = words(quantity.meaning)
    return meaning if quantity.definition is None else f"{meaning}; measured as {mathematics(quantity.definition)}"


def _latex_table(quantities: Sequence[Quantity]) -> str:
    def maths(value: Any) -> str:
        return rf"\({latex(value)}\)"

    rows = [f"{maths(q)} & {_meaning(q, prose_to_latex, maths)} & {maths(q.domain)}" + r" \\" for q in quantities]
    head = [
        r"\begin{center}",
        r"\begin{tabular}{lp{9.5cm}l}",
        r"\toprule",
        r"Symbol & Meaning & Domain \\",
        r"\midrule",
    ]
    foot = [r"\bottomrule", r"\end{tabular}", r"\end{center}"]
    pages = [rows[start : start + _TABLE_ROWS] for start in range(0, len(rows), _TABLE_ROWS)]
    return "\n\n".join("\n".join([*head, *page, *foot]) for page in pages)


def _markdown_table(quantities: Sequence[Quantity]) -> str:
    def maths(value: Any) -> str:
        return "$" + latex(value).replace("|", r"\vert ") + "$"  # a bare | would end the cell

    rows = [f"| {maths(q)} | {_meaning(q, _cell, maths)} | {maths(q.domain)} |" for q in quantities]
    return "\n".join(["| Symbol | Meaning | Domain |", "| --- | --- | --- |", *rows])


def _cell(words: str) -> str:
    return words.replace("|", r"\|")


def _text_table(quantities: Sequence[Quantity]) -> str:
    cells = [(q.name, text(q.domain), _meaning(q, prose_to_text, text)) for q in quantities]
    widths = [max((len(row[column]) for row in cells), default=0) for column in (0, 1)]
    return "\n".join(f"{name:<{widths[0]}}  {domain:<{widths[1]}}  {meaning}" for name, domain, meaning in cells)


FORMATS = {
    "latex": Format(
        chapter=lambda title: rf"\section{{{prose_to_latex(title)}}}",
        heading=lambda title: rf"\subsection*{{{title}}}",
        law=lambda law: rf"\subsection{{{prose_to_latex(law.title)}}}",
        facts=_latex_facts,
        equation=_latex_equation,
        table=_latex_table,
        line=lambda heading, words: rf"\textbf{{{heading}.}} {prose_to_latex(words)}".rstrip(),
    ),
    "markdown": Format(
        chapter=lambda title: f"# {title}",
        heading=lambda title: f"## {title}",
        law=lambda law: f"## {law.title}",
        facts=lambda law: "\n".join(
            f"- **{heading}:** {f'`{words}`' if heading == 'Id' else words}" for heading, words in facts(law)
        ),
        equation=lambda equation, label: f"$$\n{display(equation)}\n$$",
        table=_markdown_table,
        line=lambda heading, words: f"**{heading}.** {words}".rstrip(),
    ),
    "text": Format(
        chapter=lambda title: f"{prose_to_text(title)}\n{'=' * len(prose_to_text(title))}",
        heading=lambda title: f"{title}\n{'-' * len(title)}",
        law=lambda law: f"{prose_to_text(law.title)}\n{'-' * len(prose_to_text(law.title))}",
        facts=lambda law: "\n".join(f"{heading + ':':<8} {prose_to_text(words)}" for heading, words in facts(law)),
        equation=lambda equation, label: f"    {text(equation)}",
        table=_text_table,
        line=lambda heading, words: f"{heading}. {prose_to_text(words)}".rstrip(),
    ),
}

# ----------------------------------------------------------------------------------------------------- the command line


def listing(chapter: Chapter | None) -> str:
    """The chapters with their titles (read without importing them), or the laws of one chapter."""
    if chapter is not None:
        rows = [(law.id, law.title if law.status.stands else f"{law.title} ({law.status})") for law in chapter.laws]
    else:
        rows = [(name, _title(name)) for name in chapter_names()]
    wide = max((len(name) for name, _ in rows), default=0)
    return "".join(f"{name:<{wide}}  {prose_to_text(title)}\n" for name, title in rows)


def _title(name: str) -> str:
    """The first line of a chapter's docstring, read from its source."""
    spec = importlib.util.find_spec(f"derivations.{name}")
    assert spec is not None and spec.origin is not None  # the name was found in this package a moment ago
    docstring = ast.get_docstring(ast.parse(Path(spec.origin).read_text(encoding="utf-8"))) or name
    return docstring.splitlines()[0].rstrip(".")


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m derivations.print", description="Print a chapter's notation, derivations and statements."
    )
    parser.add_argument("chapter", nargs="?", help="a chapter; --list shows them")
    parser.add_argument("--list", action="store_true", help="list the chapters, or the laws of the chapter given")
    parser.add_argument("--law", metavar="ID", help="print this law of the chapter only")
    parser.add_argument("--format", choices=tuple(FORMATS), default="latex", help="default: latex")
    parser.add_argument("--standalone", action="store_true", help="a whole LaTeX document that pdflatex compiles")
    asked = parser.parse_args(words)
    if asked.chapter is None and not asked.list:
        parser.error(f"name a chapter: {', '.join(chapter_names())}")
    if asked.standalone and asked.format != "latex":
        parser.error(f"--standalone makes a LaTeX document, it cannot be combined with --format {asked.format}")
    if asked.list and (asked.law or asked.standalone):
        parser.error("--list cannot be combined with --law or --standalone")
    return asked


def main(words: Sequence[str] | None = None) -> int:
    """Print what the command line asks for. Returns 0, or 2 for an unknown chapter or law."""
    asked = _arguments(words)
    try:
        chapter = load_chapter(asked.chapter) if asked.chapter else None
        if asked.list or chapter is None:
            _write(listing(chapter))
            return 0
        laws = (find_law(chapter, asked.law),) if asked.law else chapter.laws
    except ValueError as error:
        print(f"python -m derivations.print: error: {error}", file=sys.stderr)
        return 2
    body = render(chapter, laws, asked.format)
    _write(standalone(body) if asked.standalone else body)
    return 0


def _write(output: str) -> None:
    """Write to standard output as UTF-8; a reader that stops early (`| head`) is no error."""
    try:
        sys.stdout.buffer.write(output.encode("utf-8"))
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
