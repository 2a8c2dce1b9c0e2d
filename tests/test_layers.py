"""The layers: imports go one way, samplers know no theory, user strings are never evaluated.

`derivations <- numerics <- verify <- tests`, read from the syntax trees and, for start-up, from a fresh interpreter.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from derivations.core import chapter_names, load_chapter

ROOT = Path(__file__).resolve().parent.parent
LAYERS = ("derivations", "numerics", "verify", "tests")
OWN = {name: set(LAYERS[: place + 1]) for place, name in enumerate(LAYERS)}
# The parts of `verify` that draw: one that knows the answer proves nothing.
THEORY_FREE = ("samplers", "simulators", "query_ascent", "attention_training", "attention_amp")
FORBIDDEN_CALLS = {"eval", "exec", "parse_expr", "__import__"}
FORBIDDEN_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve"}


def modules(layer: str) -> list[Path]:
    return sorted(path for path in (ROOT / layer).rglob("*.py") if "__pycache__" not in path.parts)


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


ALL = [path for layer in LAYERS for path in modules(layer)]
EVERY_MODULE = pytest.mark.parametrize("path", ALL, ids=name_of)


def imports(tree: ast.AST) -> Iterator[str]:
    """The dotted names that a module imports, wherever in the file."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: write the package's name instead of a relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def allowed(path: Path) -> set[str] | None:
    """Packages beside the standard library that a file may import; None: any third-party package."""
    layer, *inside = path.relative_to(ROOT).parts
    if layer == "derivations":
        return {"derivations", "sympy"}
    if layer == "verify" and inside[0].removesuffix(".py") in THEORY_FREE:
        drawn = {"verify", "numpy", "scipy"}
        return drawn if inside[0] in ("samplers", "simulators") else drawn | {"rich"}  # a simulator may show progress
    return None


def violations(path: Path, source: str) -> list[str]:
    """The imports of a file that its layer does not allow."""
    layer = path.relative_to(ROOT).parts[0]
    packages = allowed(path)
    found = []
    for name in imports(ast.parse(source)):
        top, *below = name.split(".")
        outside = packages is not None and top not in packages and top not in sys.stdlib_module_names
        beyond = layer == top == "verify" and packages is not None and below[:1] not in ([part] for part in THEORY_FREE)
        if (top in LAYERS and top not in OWN[layer]) or outside or beyond:
            found.append(f"{name_of(path)} must not import {name}")
    return found


@EVERY_MODULE
def test_imports_go_one_way(path: Path) -> None:
    assert violations(path, path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("derivations/new.py", "import numpy"),
        ("derivations/new.py", "from numerics.compile import function"),
        ("numerics/new.py", "def f():\n    from verify import judge"),
        ("verify/new.py", "import tests.test_layers"),
        ("verify/samplers/new.py", "from derivations.bbp import theta"),
        ("verify/samplers/new.py", "import numerics.bbp as b"),
        ("verify/samplers/new.py", "from sympy import Rational"),
        ("verify/samplers/new.py", "from verify.measure import residuals"),
        ("verify/simulators/new.py", "import mpmath"),
    ],
)
def test_the_rule_catches(file: str, line: str) -> None:
    assert violations(ROOT / file, line)


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("derivations/new.py", "from derivations.core import Law\nimport sympy as sp\nimport re"),
        ("numerics/new.py", "from derivations.bbp import theta\nimport scipy.special"),
        ("verify/samplers/new.py", "from verify.samplers import sampler\nimport numpy as np\nimport hashlib"),
    ],
)
def test_the_rule_allows(file: str, line: str) -> None:
    assert violations(ROOT / file, line) == []


@EVERY_MODULE
def test_every_module_says_what_lives_there(path: Path) -> None:
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    assert docstring, f"{name_of(path)} has no docstring"
    assert len(docstring) > 20


def dangerous(path: Path, source: str) -> list[str]:
    """Names by which a string becomes code or an object. `sympify` takes text unless it is strict: core only."""
    tree = ast.parse(source)
    names = FORBIDDEN_CALLS | ({"sympify"} if "core" not in path.parts else set())
    strict = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call) and is_strict(node)}
    found = [name for name in imports(tree) if name.partition(".")[0] in FORBIDDEN_MODULES]
    found += [name for name in imports(tree) if name.rpartition(".")[2] in names]
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in names and id(node) not in strict:
            found.append(f"line {node.lineno}: {node.id}")
        if isinstance(node, ast.Attribute) and node.attr in names - {"eval"} and id(node) not in strict:
            found.append(f"line {node.lineno}: {node.attr}")
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "S":
            found.append(f"line {node.lineno}: S(...)")
    return found


def is_strict(call: ast.Call) -> bool:
    """Whether a call says strict=True: then SymPy refuses text."""
    return any(
        word.arg == "strict" and isinstance(word.value, ast.Constant) and word.value.value is True
        for word in call.keywords
    )


@pytest.mark.parametrize("path", [path for path in ALL if path.relative_to(ROOT).parts[0] != "tests"], ids=name_of)
def test_strings_are_never_evaluated(path: Path) -> None:
    assert dangerous(path, path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "line",
    [
        "eval('1')",
        "from sympy.parsing.sympy_parser import parse_expr",
        "sp.sympify(word)",
        "import pickle",
        "sp.S('x')",
    ],
)
def test_evaluation_is_caught(line: str) -> None:
    assert dangerous(ROOT / "numerics" / "new.py", line)


def test_strict_conversion_is_allowed() -> None:
    assert dangerous(ROOT / "numerics" / "new.py", "import sympy as sp\nsp.sympify(value, strict=True)") == []


@pytest.mark.parametrize("name", chapter_names())
def test_no_stray_module_among_the_chapters(name: str) -> None:
    chapter = load_chapter(name)
    assert chapter.laws, f"derivations/{name}.py defines no law, so it is no chapter: move it to derivations/core"
    assert chapter.module.__doc__


def loaded_after(statement: str) -> set[str]:
    """The top-level packages that a fresh interpreter has loaded after a statement."""
    script = f"import sys\n{statement}\nprint(*sorted({{name.partition('.')[0] for name in sys.modules}}))"
    run = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(run.stdout.splitlines()[-1].split())


def test_chapters_load_no_numerics() -> None:
    statement = "from derivations.core import load_chapters\nload_chapters()"
    assert not loaded_after(statement) & {"numpy", "scipy", "matplotlib", "numerics", "verify"}


def test_samplers_load_no_theory() -> None:
    paths = [path for part in THEORY_FREE for path in modules(f"verify/{part}")]
    assert paths
    dotted = [".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for path in paths]
    assert not loaded_after(f"import {', '.join(dotted)}") & {"sympy", "derivations", "numerics"}
