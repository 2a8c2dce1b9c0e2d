"""The pieces of a page: escaped text, formulas, tables, badges, the frame with its style sheet.

Every text passes through `text`; only what this package or a printer made is put in as markup.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from typing import Any

from derivations.core import Law
from derivations.core.mathml import mathml
from derivations.core.prose import prose_to_text
from derivations.core.render import display, latex

STYLE = """
:root { color-scheme: light dark; --back: #fff; --text: #1b1b1b; --soft: #5a5a5a; --line: #d5d5d5; --panel: #f5f6f7;
  --link: #0b57a4; --good: #00684a; --wrong: #a33b00; --open: #6b4a86; }
@media (prefers-color-scheme: dark) { :root { --back: #15171a; --text: #e8e8e8; --soft: #a9adb3; --line: #3a3f46;
  --panel: #1e2126; --link: #7cb8f2; --good: #4fd0a2; --wrong: #ff9e66; --open: #c9a5e6; } }
* { box-sizing: border-box; }
html { scroll-padding-top: 1rem; }
body { margin: 0 auto; padding: 0 1rem 4rem; max-width: 70rem; background: var(--back); color: var(--text);
  font: 1rem/1.5 system-ui, "Segoe UI", "Helvetica Neue", "DejaVu Sans", sans-serif; overflow-wrap: break-word; }
a { color: var(--link); }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 1rem 0 0.5rem; }
h2 { font-size: 1.3rem; margin: 2.5rem 0 0.75rem; border-bottom: 1px solid var(--line); }
h3 { font-size: 1.05rem; margin: 0 0 0.5rem; }
code { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: 0.9em; overflow-wrap: anywhere; }
nav { display: flex; flex-wrap: wrap; gap: 0.2rem 1rem; padding: 0.75rem 0; border-bottom: 1px solid var(--line);
  font-size: 0.9rem; }
nav [aria-current] { font-weight: 600; color: inherit; text-decoration: none; }
h2 ~ h3 { margin-top: 2rem; }
.whole { white-space: nowrap; }
section.item { margin: 1.25rem 0; padding: 0.9rem 1rem; border: 1px solid var(--line); border-radius: 0.4rem; }
section.item:target { border-color: var(--link); box-shadow: 0 0 0 1px var(--link); }
.scroll, .formula { overflow-x: auto; overflow-y: hidden; max-width: 100%; }
.formula { padding: 0.35rem 0; }
math { font-family: "Latin Modern Math", "STIX Two Math", "Cambria Math", "DejaVu Math TeX Gyre", math; }
math { font-size: 1.1em; }
math[display="block"] { margin: 0.2rem 0; width: max-content; }
.formula math { font-size: 1.2em; }
section.item > .formula { padding-left: 1rem; }
dd > .formula { padding: 0; }
mtable.aligned, mtable.cases { math-depth: 0; }
mtable.aligned > mtr > mtd { padding: 0.25em 0; text-align: left; }
mtable.aligned > mtr > mtd:first-child { text-align: right; }
mtable.aligned > mtr > mtd:nth-child(2) { padding-left: 0.25em; }
mtable.cases > mtr > mtd { padding: 0.2em 0.9em 0.2em 0; text-align: left; }
mtable.lines > mtr > mtd { padding: 0; }
table { border-collapse: collapse; font-size: 0.92rem; }
th, td { padding: 0.3rem 0.6rem 0.3rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line); }
th { font-weight: 600; color: var(--soft); }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td:not(.number) { min-width: 4.5rem; }
table.wide td:nth-child(2) { min-width: 14rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0.15rem 1rem; margin: 0.5rem 0; font-size: 0.92rem; }
dt { color: var(--soft); }
dd { margin: 0; min-width: 0; }
@media (max-width: 36rem) {
  body { padding: 0 0.6rem 3rem; }
  section.item { padding: 0.7rem; }
  dl { gap: 0.2rem 0.6rem; }
}
details { margin: 0.5rem 0; }
summary { cursor: pointer; color: var(--link); }
details ol { padding-left: 1.4rem; }
details li { margin: 0.6rem 0; }
.badge { display: inline-block; padding: 0 0.5rem; border: 1px solid currentColor; border-radius: 1rem;
  font-size: 0.8rem; font-weight: 600; white-space: nowrap; }
.supported, .stands { color: var(--good); }
.refuted, .superseded, .unexpected { color: var(--wrong); }
.unresolved, .unjudged { color: var(--open); }
.soft { color: var(--soft); font-size: 0.9rem; }
.note { padding: 0.6rem 0.9rem; background: var(--panel); border-left: 0.25rem solid var(--open); }
figure { margin: 1rem 0; }
figure img { max-width: 100%; height: auto; background: #fff; border-radius: 0.3rem; }
figure svg { max-width: 100%; height: auto; }
figure svg text { fill: currentColor; }
figcaption { color: var(--soft); font-size: 0.9rem; white-space: pre-line; }
"""

# One letter before the mark: identifiers such as attention_weights stay as they are.
_BELOW = re.compile(r"(?<![\w_])([^\W\d_]['′]?)_(?:\{([^{}]*)\}|([^\W_]+))")
_ABOVE = re.compile(r"\^(?:\(([^()]*)\)|\{([^{}]*)\}|([^\W_]))")


def text(words: Any) -> str:
    """Words as escaped text, without the marks of inline mathematics."""
    return html.escape(prose_to_text(str(words)))


def prose(words: Any) -> str:
    """A sentence as escaped text in which w_t and N^(−rate) have their script below and above."""
    lowered = _BELOW.sub(lambda found: f"{found[1]}<sub>{found[2] or found[3]}</sub>", text(words))
    return _ABOVE.sub(lambda found: f"<sup>{found[1] or found[2] or found[3]}</sup>", lowered)


def formula(expression: Any) -> str:
    """An equation or expression as a display that scrolls in its own box where it is too wide."""
    return f'<div class="formula">{mathml(display(expression), block=True)}</div>'


def inline(expression: Any) -> str:
    """An expression or set within a line."""
    return mathml(latex(expression))


def badge(words: str, kind: str) -> str:
    """A short word in a coloured frame; the word alone tells what the colour tells."""
    return f'<span class="badge {kind}">{text(words)}</span>'


def link(target: str, words: str) -> str:
    """A link within the report."""
    return f'<a href="{html.escape(target)}">{text(words)}</a>'


def code(words: str) -> str:
    """A name or a command."""
    return f"<code>{html.escape(words)}</code>"


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """A description list; headings are words, descriptions are markup. Pairs without description are left out."""
    rows = "".join(f"<dt>{text(heading)}</dt><dd>{body}</dd>" for heading, body in pairs if body)
    return f"<dl>{rows}</dl>" if rows else ""


def table(
    headings: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[int] = (), wide: bool = False
) -> str:
    """A table of markup cells that scrolls in its own box; the columns `numbers` are set to the right.

    `wide`: the second column holds sentences and keeps some width.
    """

    def cell(tag: str, column: int, body: str) -> str:
        style = ' class="number"' if column in numbers else ""
        scope = ' scope="col"' if tag == "th" else ""
        return f"<{tag}{scope}{style}>{body}</{tag}>"

    head = "".join(cell("th", column, text(heading)) for column, heading in enumerate(headings))
    body = "".join(f"<tr>{''.join(cell('td', place, part) for place, part in enumerate(row))}</tr>" for row in rows)
    kind = ' class="wide"' if wide else ""
    return f'<div class="scroll"><table{kind}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def details(summary: str, body: str) -> str:
    """A part that is folded until it is asked for."""
    return f"<details><summary>{text(summary)}</summary>{body}</details>"


def law_badge(law: Law) -> str:
    """Whether a law stands, in one word."""
    return badge("stands", "stands") if law.status.stands else badge("superseded", "superseded")


def page(title: str, navigation: str, body: str) -> str:
    """A whole document. It loads nothing: the style is inside, and there are no scripts."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<title>{text(title)}</title>\n<link rel="icon" href="data:,">\n<style>{STYLE}</style>\n</head>\n<body>\n'
        f"<nav>{navigation}</nav>\n<main>\n<h1>{text(title)}</h1>\n{body}\n</main>\n</body>\n</html>\n"
    )
