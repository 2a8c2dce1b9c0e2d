"""The registry of samplers: one function a model, found by the model's name.

A sampler draws one replicate: `f(size, generator, parameters, options)` returns raw observables and realised
parameters by name. It knows no law, so that it can contradict one; this package imports neither SymPy nor laws.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import pkgutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Sampler = Callable[[int, "np.random.Generator", dict[str, float], dict[str, Any]], Mapping[str, Any]]

_SAMPLERS: dict[str, Sampler] = {}


def sampler(model_name: str) -> Callable[[Sampler], Sampler]:
    """Decorator: register the function as the sampler of the model of this name.

    Raises ValueError if another function has the name already.
    """

    def register(function: Sampler) -> Sampler:
        known = _SAMPLERS.get(model_name)
        if known is not None and (known.__module__, known.__qualname__) != (function.__module__, function.__qualname__):
            raise ValueError(f"model {model_name!r} has a sampler already: {known.__module__}.{known.__qualname__}")
        _SAMPLERS[model_name] = function
        return function

    return register


def load_sampler(model_name: str) -> Sampler:
    """The sampler of a model. Imports the modules of this package until it is found.

    Raises ValueError that lists the known models if there is none.
    """
    for module in sorted(info.name for info in pkgutil.iter_modules(__path__)):
        if model_name in _SAMPLERS:
            break
        importlib.import_module(f"{__name__}.{module}")
    if model_name not in _SAMPLERS:
        raise ValueError(f"no sampler for model {model_name!r}; known models: {', '.join(sorted(_SAMPLERS))}")
    return _SAMPLERS[model_name]


def import_sampler(module: str, model_name: str) -> Sampler:
    """The sampler of a model whose module is known: what a worker process uses.

    Raises ValueError if the module does not register it (a sampler in a script of its own cannot be imported).
    """
    if model_name not in _SAMPLERS:
        importlib.import_module(module)
    if model_name not in _SAMPLERS:
        raise ValueError(f"module {module} registers no sampler for model {model_name!r}; write samplers in modules")
    return _SAMPLERS[model_name]


def source_hash(model_name: str) -> str:
    """A hash of the file that defines the sampler and of the modules of this package that it imports.

    A draw made by another source is stale.
    """
    pending, seen = [load_sampler(model_name).__module__], set()
    digest = hashlib.sha256()
    while pending:
        name = pending.pop(0)
        if name in seen:
            continue
        seen.add(name)
        text = _file_of(name).read_bytes()
        digest.update(name.encode() + b"\0" + text)
        pending.extend(sorted(_imported_samplers(ast.parse(text))))
    return digest.hexdigest()


def _file_of(module: str) -> Path:
    loaded = sys.modules.get(module) or importlib.import_module(module)
    path = getattr(loaded, "__file__", None)
    if path is None:
        raise ValueError(f"module {module} of a sampler has no source file; write samplers in files")
    return Path(path)


def _imported_samplers(tree: ast.Module) -> set[str]:
    """The modules of this package, and the simulators beside it, that a source imports."""
    own = {info.name for info in pkgutil.iter_modules(__path__)}
    parent = __name__.partition(".")[0]
    found, beside = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.removeprefix(f"{__name__}.") for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(__name__):
            base = (node.module or "").removeprefix(__name__).removeprefix(".")
            found |= {base} if base else {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"{parent}."):
            beside.add(str(node.module))
    return {f"{__name__}.{name}" for name in found & own} | beside
