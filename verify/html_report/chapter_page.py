"""The page of one chapter: notation, figures, laws with folded derivations, claims with their verdicts and plots."""

from __future__ import annotations

import base64
import html
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from derivations.core import Chapter, Claim, Law
from derivations.print import notation
from verify.html_report.elements import (
    badge,
    code,
    details,
    facts,
    formula,
    inline,
    law_badge,
    link,
    page,
    prose,
    table,
    text,
)
from verify.html_report.verdicts import Judged, Standing
from verify.judge import UNRESOLVED, Judgement
from verify.plots import plot_as_svg
from verify.report import HEADINGS, duration, hypothesis_text, number, option_text, row_of
from verify.run import expected_text


@dataclass(frozen=True)
class Book:
    """What the pages of a report share: the chapters, the folder of drawn figures, and the seed."""

    chapters: tuple[Chapter, ...]
    figures: Path
    seed: int

    def place(self, law: Law) -> str:
        """The address of a law; empty if its chapter is not in this report."""
        owner = next((chapter for chapter in self.chapters if law in chapter.laws), None)
        return f"{owner.name}.html#law-{law.id}" if owner else ""

    def law_link(self, law: Law) -> str:
        """A law's id as a link where there is a place to go to."""
        return link(self.place(law), law.id) if self.place(law) else code(law.id)

    def claims_of(self, law: Law) -> list[tuple[Chapter, Claim]]:
        """The claims about a law, in whatever chapter they are made."""
        return [(chapter, claim) for chapter in self.chapters for claim in chapter.claims if claim.law is law]


@dataclass(frozen=True)
class _Page:
    """One chapter within the book, with the verdicts on its claims."""

    book: Book
    chapter: Chapter
    verdicts: Mapping[str, Judged]

    def badge_of(self, claim: Claim) -> str:
        """The claim's verdict in one word; nothing for a claim of another chapter, which has it on its own page."""
        if claim not in self.chapter.claims:
            return ""
        return verdict_badge(Standing.of(self.verdicts[claim.id]) if claim.id in self.verdicts else None)


def verdict_badge(standing: Standing | None) -> str:
    """The verdict in one word, or that there is none."""
    return badge(standing.words, standing.kind) if standing else badge("not judged", "unjudged")


def chapter_page(book: Book, chapter: Chapter, verdicts: Mapping[str, Judged]) -> str:
    """The whole page; `verdicts` are those on the chapter's claims, by id."""
    here = _Page(book, chapter, verdicts)
    body = [
        _introduction(chapter),
        _contents(here),
        '<h2 id="notation">Notation</h2>',
        _notation(chapter),
        *_figures(book, chapter),
        '<h2 id="laws">Laws</h2>',
        *(_law(here, law) for law in chapter.laws),
        '<h2 id="claims">Claims</h2>',
        *_claims(here),
    ]
    return page(chapter.title, navigation(book.chapters, chapter.name), "\n".join(body))


def navigation(chapters: Sequence[Chapter], here: str) -> str:
    """Links to all pages, this one marked."""
    names = ("index", *(chapter.name for chapter in chapters))
    mark = {True: ' aria-current="page"', False: ""}
    return " ".join(f'<a href="{name}.html"{mark[name == here]}>{text(name)}</a>' for name in names)


def _introduction(chapter: Chapter) -> str:
    """The rest of the chapter's docstring."""
    lines = (chapter.module.__doc__ or "").strip().splitlines()[1:]
    paragraph = " ".join(line.strip() for line in lines if line.strip())
    return f"<p>{prose(paragraph)}</p>" if paragraph else ""


def _contents(here: _Page) -> str:
    chapter = here.chapter
    laws = (
        f"<li>{link(f'#law-{law.id}', law.title)}{'' if law.status.stands else f' {law_badge(law)}'}</li>"
        for law in chapter.laws
    )
    claims = (f"<li>{link(f'#claim-{claim.id}', claim.id)} {here.badge_of(claim)}</li>" for claim in chapter.claims)
    parts = details(f"{len(chapter.laws)} laws", f"<ul>{''.join(laws)}</ul>")
    return parts + details(f"{len(chapter.claims)} claims", f"<ul>{''.join(claims)}</ul>")


def _notation(chapter: Chapter) -> str:
    rows = []
    for quantity in notation(chapter, chapter.laws):
        meaning = prose(quantity.meaning)
        if quantity.definition is not None:
            meaning += f"; measured as {inline(quantity.definition)}"
        rows.append((inline(quantity), meaning, inline(quantity.domain)))
    return table(("symbol", "meaning", "domain"), rows, wide=True)


def _figures(book: Book, chapter: Chapter) -> Iterator[str]:
    """The figures that have been drawn for this chapter, each with its caption, as images inside the page."""
    own = (path for path in book.figures.glob("*.svg") if path.stem.partition("-")[0] == chapter.name)
    found = sorted(own, key=lambda path: path.stem)  # the main figure first: its name is the shortest
    if found:
        yield '<h2 id="figures">Figures</h2>'
    for path in found:
        caption = path.with_suffix(".txt")
        words = caption.read_text(encoding="utf-8").strip() if caption.is_file() else path.stem
        data = base64.b64encode(path.read_bytes()).decode("ascii")
        alternative = html.escape(words.splitlines()[0], quote=True)
        yield (
            f'<figure><img alt="{alternative}" src="data:image/svg+xml;base64,{data}">'
            f"<figcaption>{text(words)}</figcaption></figure>"
        )


# -- laws -----------------------------------------------------------------------------------------------------


def _law(here: _Page, law: Law) -> str:
    book = here.book
    uses = ", ".join(book.law_link(used) for used in law.uses) or "no other law"
    about = book.claims_of(law)
    claims = ", ".join(
        f"{link(f'{chapter.name}.html#claim-{claim.id}', claim.id)} {here.badge_of(claim)}".rstrip()
        for chapter, claim in about
    )
    known = facts(
        [
            ("condition", formula(law.where()) if law.where else ""),
            ("branch", prose(law.branch)),
            ("source", text(law.source)),
            ("status", "" if law.status.stands else _status(book, law)),
            ("uses", uses),
            ("claims", claims or "none: checked by its derivation and in numbers"),
        ]
    )
    return (
        f'<section class="item" id="law-{law.id}"><h3>{prose(law.title)} {law_badge(law)}</h3>'
        f"{formula(law.statement)}{known}{_derivation(law)}</section>"
    )


def _status(book: Book, law: Law) -> str:
    words = text(law.status)
    other = next((one for chapter in book.chapters for one in chapter.laws if one.id == law.status.superseded_by), None)
    return f"{words} ({book.law_link(other)})" if other else words


def _derivation(law: Law) -> str:
    steps = "".join(f"<li>{prose(step.reason)}{formula(step.equation)}</li>" for step in law.steps)
    count = len(law.steps)
    return details(f"Derivation, {count} step{'' if count == 1 else 's'}", f"<ol>{steps}</ol>")


# -- claims ---------------------------------------------------------------------------------------------------


def _claims(here: _Page) -> Iterator[str]:
    chapter, seed = here.chapter, here.book.seed
    if not chapter.claims:
        yield "<p>This chapter makes no claim that draws judge: its laws are checked symbolically and in numbers.</p>"
        return
    judged = [here.verdicts[claim.id] for claim in chapter.claims if claim.id in here.verdicts]
    waiting = [claim for claim in chapter.claims if claim.id not in here.verdicts]
    if waiting:
        yield (
            f'<p class="note">{len(waiting)} of {len(chapter.claims)} claims have no stored draws for seed {seed}. '
            f"{code(_command(chapter.name, waiting, seed))} judges them.</p>"
        )
    if judged:
        yield table(HEADINGS, map(_summary, judged), numbers=range(2, len(HEADINGS)))
    for claim in chapter.claims:
        yield _claim(here, claim)


def _command(name: str, claims: Sequence[Claim], seed: int) -> str:
    tier = "standard" if any(claim.tier == "standard" for claim in claims) else "quick"
    return f"python -m verify {name} --tier {tier}" + (f" --seed {seed}" if seed else "")


def _summary(judged: Judged) -> list[str]:
    name, _, *numbers = row_of(judged.result)
    return [link(f"#claim-{name}", name), verdict_badge(Standing.of(judged)), *(text(cell) for cell in numbers)]


def _claim(here: _Page, claim: Claim) -> str:
    judged = here.verdicts.get(claim.id)
    parts = [
        f'<section class="item" id="claim-{claim.id}">',
        f"<h3>{code(claim.id)} {here.badge_of(claim)}</h3>",
        f"<p>{prose(claim.law.title)}, {prose(hypothesis_text(claim))}.</p>",
        formula(claim.law.statement),
        f"<p>{prose(claim.note)}</p>" if claim.note else "",
        facts(_about(here.book, claim)),
        *(_judged(judged) if judged else ()),
        "</section>",
    ]
    return "".join(parts)


def _about(book: Book, claim: Claim) -> Iterator[tuple[str, str]]:
    experiment = claim.experiment
    yield "law", f"{book.law_link(claim.law)} {law_badge(claim.law)}"
    yield "given", "".join(formula(getattr(given, "statement", given)) for given in claim.given)
    reads = "".join(
        f"<li>{inline(symbol)}: {prose(symbol.meaning)}, by {inline(source)}</li>"
        for symbol, source in claim.reads.items()
    )
    yield "measured", f"<ul>{reads}</ul>" if reads else ""
    yield "experiment", f"{code(experiment.name)}: {prose(experiment.model.description)}"
    values = [f"{inline(quantity)} = {inline(_exact(value))}" for quantity, value in experiment.parameters.items()]
    values += [f"{text(name)} = {text(option_text(value))}" for name, value in experiment.options.items()]
    yield "at", ", ".join(values)


def _exact(value: Any) -> Any:
    import sympy as sp

    return sp.sympify(value, strict=True)


def _judged(judged: Judged) -> Iterator[str]:
    result, judgement = judged.result, judged.result.judgement
    plan = ", ".join(f"{n} at {size}" for size, n in zip(judgement.sizes, judgement.replicates, strict=True))
    look = f", look {judged.look}" if judged.tier == "full" else ""
    yield facts(
        [
            ("verdict", f"{verdict_badge(Standing.of(judged))} (expected {text(expected_text(result.entry.claim))})"),
            ("why", prose(judgement.reason)),
            ("to resolve it", text(judgement.remedy)),
            ("run", f"tier {judged.tier}{look}, seed {result.seed}, {duration(result.seconds)} of one core"),
            ("replicates", text(plan)),
        ]
    )
    if result.points:
        yield _numbers(judged)
    if judgement.rivals:
        yield _rivals(judgement)
    if result.points:
        yield f"<figure>{plot_as_svg(result)}</figure>"


def _numbers(judged: Judged) -> str:
    headings = ("point", "limit", "family-wise error", "resolution", "z", "fit", "outcome")
    rows = []
    for part in judged.result.points:
        one = part.judgement
        rows.append(
            (
                text(part.point.label or "the only one"),
                number(one.limit, "+.4g"),
                number(one.half_width, ".2g"),
                number(one.resolution, ".2g"),
                number(one.z, "+.2f"),
                number(one.fit.fit_probability, ".2g") if one.fit else "",
                text(one.outcome),
            )
        )
    bound = judged.levels
    words = f"A statement is refuted beyond |z| = {bound.bound:.2f}; a fit is unacceptable below {bound.fit:.1g}."
    return table(headings, rows, numbers=range(1, 6)) + f'<p class="soft">{text(words)}</p>'


def _rivals(judgement: Judgement) -> str:
    rows = [
        (
            prose(rival.name),
            number(rival.z, "+.1f"),
            badge("refuted", "supported") if rival.refuted else badge("not refuted", UNRESOLVED.lower()),
            f"{100 * rival.power:.1f} %",
        )
        for rival in judgement.rivals
    ]
    return table(("wrong formula", "z", "by the same draws", "chance to be refuted again"), rows, numbers=(1, 3))
