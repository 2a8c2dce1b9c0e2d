"""The first page: totals, the chapters with their counts, the statements of the papers with their status, versions."""

from __future__ import annotations

import hashlib
import platform
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path

from derivations.core import Chapter, Law
from verify.html_report.chapter_page import Book, navigation, verdict_badge
from verify.html_report.elements import badge, code, facts, law_badge, link, page, table, text
from verify.html_report.verdicts import Standing
from verify.judge import REFUTED, SUPPORTED, UNRESOLVED

ROOT = Path(__file__).resolve().parents[2]
PAPERS = (
    ("P1", r"\bP1\b", "Seddik, How Does Attention Help? Insights from Random Matrices, arXiv 2605.06826"),
    ("P2", r"\bP2\b", "Boncoraglio et al., Single-Head Attention in High Dimensions, arXiv 2509.24914"),
    ("P3", r"\bTruong\b", "Truong, Asymptotic Signal Subspace Recovery in Softmax Attention, arXiv 2606.22406"),
)
PACKAGES = ("sympy", "numpy", "scipy", "mpmath", "matplotlib", "joblib", "heyoka")
_KINDS = (SUPPORTED, REFUTED, UNRESOLVED)


def index_page(book: Book, standings: Mapping[str, Standing]) -> str:
    """The whole page; `standings` are the verdicts on all claims that were judged, by id."""
    body = [
        _totals(book, standings),
        '<h2 id="chapters">Chapters</h2>',
        _chapters(book, standings),
        '<h2 id="papers">Statements of the papers</h2>',
        "<p>A statement that is superseded is exact for a simplified model and not for the one that it is quoted for; "
        "its law names both, and the claims about it are expected to be refuted there. A statement without claims of "
        "its own is checked by its derivation and in numbers, and by the claims about laws that use it.</p>",
        *_papers(book, standings),
        '<h2 id="versions">Versions</h2>',
        facts((name, text(value)) for name, value in versions().items()),
    ]
    return page("Theories of attention: laws and verdicts", navigation(book.chapters, "index"), "\n".join(body))


def _totals(book: Book, standings: Mapping[str, Standing]) -> str:
    claims = [claim for chapter in book.chapters for claim in chapter.claims]
    judged = [standings[claim.id] for claim in claims if claim.id in standings]
    if not judged:
        return (
            f'<p class="note">No draws are stored for seed {book.seed}, so that no claim is judged here: '
            f"{code('python -m verify')} (about a minute) or {code('python -m verify --tier standard')} draws and "
            "judges; then make this report again.</p>"
        )
    expected = sum(one.as_expected for one in judged)
    tiers = Counter(one.tier for one in judged)
    where = ", ".join(f"{count} at tier {tier}" for tier, count in tiers.items())
    words = f"{expected} of {len(judged)} judged claims have their expected verdict ({where}; seed {book.seed})."
    later = len(claims) - len(judged)
    rest = f" {later} of {len(claims)} claims have no stored draws." if later else ""
    return f"<p>{text(words)}{text(rest)}</p>"


def _chapters(book: Book, standings: Mapping[str, Standing]) -> str:
    rows = [_chapter_row(chapter, standings) for chapter in book.chapters]
    kinds = (kind.lower() for kind in _KINDS)
    headings = ("chapter", "subject", "laws", "superseded", *kinds, "unexpected", "not judged")
    return table(headings, rows, numbers=range(2, len(headings)), wide=True)


def _chapter_row(chapter: Chapter, standings: Mapping[str, Standing]) -> list[str]:
    judged = [standings[claim.id] for claim in chapter.claims if claim.id in standings]
    verdicts = Counter(one.verdict for one in judged)
    unexpected = sum(not one.as_expected for one in judged)
    superseded = sum(not law.status.stands for law in chapter.laws)
    counts = [len(chapter.laws), superseded, *(verdicts[kind] for kind in _KINDS)]
    return [
        link(f"{chapter.name}.html", chapter.name),
        text(chapter.title),
        *(str(count or "") for count in counts),
        badge(str(unexpected), "unexpected") if unexpected else "",
        str(len(chapter.claims) - len(judged) or ""),
    ]


def _papers(book: Book, standings: Mapping[str, Standing]) -> Iterator[str]:
    for key, pattern, citation in PAPERS:
        laws = [law for chapter in book.chapters for law in chapter.laws if re.search(pattern, law.source)]
        if laws:
            yield f'<h3 id="paper-{key.lower()}">{text(f"{key}: {citation}")}</h3>'
            yield table(
                ("statement", "source", "status", "claims"), (_statement_row(book, law, standings) for law in laws)
            )


def _statement_row(book: Book, law: Law, standings: Mapping[str, Standing]) -> tuple[str, ...]:
    counts = Counter(verdict_badge(standings.get(claim.id)) for _, claim in book.claims_of(law))
    verdicts = " ".join(f'<span class="whole">{count} × {found}</span>' for found, count in counts.items())
    return link(book.place(law), law.title), text(law.source), law_badge(law), verdicts or "none of its own"


def versions() -> dict[str, str]:
    """The versions of the project, of Python and of the packages that the numbers rest on."""
    found = {"project": f"{_project_version()}, sources {_sources()[:12]}", "Python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found


def _project_version() -> str:
    """From pyproject.toml beside the packages, else from what is installed."""
    file = ROOT / "pyproject.toml"
    if file.is_file():
        return str(tomllib.loads(file.read_text(encoding="utf-8"))["project"]["version"])
    return metadata.version("attention-theory")


def _sources() -> str:
    """A digest of the project's own modules: it tells two states of one version apart."""
    digest = hashlib.sha256()
    for package in ("derivations", "numerics", "verify"):
        for path in sorted((ROOT / package).rglob("*.py")):
            digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()
