"""Discovery: a chapter is a public module of `derivations`; its laws and claims are the module's own objects.

Listing the names imports nothing, so a command that prints one chapter pays for that chapter alone.
"""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from collections.abc import Iterable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from derivations.core.claims import Claim
from derivations.core.laws import Law
from derivations.core.quantities import Quantity


@dataclass(frozen=True)
class Chapter:
    """A module of `derivations` with the laws, claims and quantities that it defines, in order of appearance."""

    name: str
    module: ModuleType
    laws: tuple[Law, ...]
    claims: tuple[Claim, ...]
    quantities: tuple[Quantity, ...]

    @property
    def title(self) -> str:
        """The first line of the module's docstring."""
        return (self.module.__doc__ or self.name).strip().splitlines()[0].rstrip(".")


def chapter_names() -> tuple[str, ...]:
    """The names of all chapters, without importing them."""
    import derivations

    modules = pkgutil.iter_modules(derivations.__path__)
    return tuple(sorted(m.name for m in modules if not m.ispkg and m.name != "print" and not m.name.startswith("_")))


def load_chapter(name: str) -> Chapter:
    """Import one chapter. Raises ValueError with the nearest names and the list if there is none of that name."""
    names = chapter_names()
    if name not in names:
        near = difflib.get_close_matches(name, names, n=3, cutoff=0.4)
        hint = f"; nearest: {', '.join(near)}" if near else ""
        raise ValueError(f"no chapter {name!r}{hint}; chapters: {', '.join(names)}")
    module = importlib.import_module(f"derivations.{name}")
    own = list(vars(module).values())
    imported = set(_imported_laws(module))
    laws = _unique(value for value in own if isinstance(value, Law) and id(value) not in imported)
    quantities = _unique(value for value in own if isinstance(value, Quantity))
    return Chapter(name, module, laws, tuple(getattr(module, "claims", ())), quantities)


def load_chapters(names: Iterable[str] | None = None) -> tuple[Chapter, ...]:
    """Import the named chapters, or all of them."""
    return tuple(load_chapter(name) for name in (chapter_names() if names is None else names))


def _imported_laws(module: ModuleType) -> Iterable[int]:
    """Laws that the module borrowed from another chapter: their derivation lives there."""
    return (
        id(value)
        for value in vars(module).values()
        if isinstance(value, Law) and value.derivation.__module__ != module.__name__
    )


def _unique(values: Iterable[Any]) -> tuple[Any, ...]:
    return tuple({id(value): value for value in values}.values())
