"""The HTML report: an index and a page a chapter, which open from disk and load nothing.

Mathematics is MathML made from the printed LaTeX, plots are SVG inside the page, verdicts come from stored draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from derivations.core import Chapter, load_chapters
from verify.html_report.chapter_page import Book, chapter_page
from verify.html_report.index_page import index_page
from verify.html_report.verdicts import Standing, stored_verdicts
from verify.run import Registry, UsageError, open_store

__all__ = ["ReportSettings", "write_report"]


@dataclass(frozen=True)
class ReportSettings:
    """What a report is made of: the chapters that have a page, the draws, the figures, the seed and the tier."""

    names: tuple[str, ...]
    draws: Path
    figures: Path
    seed: int = 0
    tier: str | None = None


def write_report(
    settings: ReportSettings, folder: Path, workers: int = 1, chapters: Sequence[Chapter] | None = None
) -> list[Path]:
    """Write `index.html` and a page a chapter into `folder`, which is created; returns the paths, the index first.

    Pages are made by `workers` processes; `chapters` replaces those that are found, and is worked on here. For `tier`
    see `stored_verdicts`. Raises UsageError for a chapter that does not exist or a folder that cannot be written.
    """
    known = tuple(load_chapters() if chapters is None else chapters)
    _check(settings.names, known)
    book = _book(settings, known)
    open_store(settings.draws).close()  # made, or refused, once and not by every process
    if workers == 1 or chapters is not None:
        made = {chapter.name: _page(settings, chapter.name, known) for chapter in book.chapters}
    else:
        made = _in_processes(settings, book, workers)
    standings = {name: standing for _, found in made.values() for name, standing in found.items()}
    pages = {"index": index_page(book, standings), **{chapter.name: made[chapter.name][0] for chapter in book.chapters}}
    paths = [folder / f"{name}.html" for name in pages]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, content in zip(paths, pages.values(), strict=True):
            path.write_text(content, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{folder} cannot be written ({error.strerror}); choose another --out") from error
    return paths


def _check(names: Sequence[str], chapters: Sequence[Chapter]) -> None:
    known = [chapter.name for chapter in chapters]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise UsageError(f"no chapter {', '.join(unknown)}; a page can be made for: {', '.join(known)}")


def _book(settings: ReportSettings, chapters: Sequence[Chapter]) -> Book:
    chosen = tuple(chapter for chapter in chapters if not settings.names or chapter.name in settings.names)
    return Book(chosen, settings.figures, settings.seed)


def _page(
    settings: ReportSettings, name: str, chapters: Sequence[Chapter] | None = None
) -> tuple[str, dict[str, Standing]]:
    """The page of a chapter and the verdicts on its claims; all chapters share the error that a test may spend."""
    known = tuple(load_chapters() if chapters is None else chapters)
    chapter = next(one for one in known if one.name == name)
    with open_store(settings.draws) as store:
        claims = [name] if chapter.claims else []
        verdicts = stored_verdicts(Registry.of(known), store, claims, settings.seed, settings.tier) if claims else {}
    page = chapter_page(_book(settings, known), chapter, verdicts)
    return page, {claim: Standing.of(judged) for claim, judged in verdicts.items()}


def _in_processes(settings: ReportSettings, book: Book, workers: int) -> dict[str, tuple[str, dict[str, Standing]]]:
    """The pages by name, the longest ones begun first."""
    from joblib import Parallel, delayed, parallel_config

    long_first = sorted(book.chapters, key=lambda chapter: -len(chapter.laws) - 2 * len(chapter.claims))
    names = [chapter.name for chapter in long_first]
    with parallel_config(backend="loky", inner_max_num_threads=1):
        pages = Parallel(n_jobs=min(workers, len(names)))(delayed(_page)(settings, name) for name in names)
    return dict(zip(names, pages, strict=True))
