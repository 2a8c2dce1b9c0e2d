"""Classical theorems as data: name, citation, hypotheses, what they say of an equation, and an instance in numbers.

A derivation quotes them by name; a test tries each one's instance, which is found without the theorem.
"""

from __future__ import annotations

import importlib
import pkgutil

from derivations.core.language import Theorem


def theorems() -> tuple[Theorem, ...]:
    """All theorems of this package, in the order of modules and definitions."""
    modules = [importlib.import_module(f"{__name__}.{info.name}") for info in pkgutil.iter_modules(__path__)]
    return tuple(value for module in modules for value in vars(module).values() if isinstance(value, Theorem))
