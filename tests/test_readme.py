"""README.md keeps its word: what a reader can paste runs, and every printed output is the real one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import readme
from tests.readme import Block, blocks, failures, write

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"


def own_blocks() -> list[Block]:
    return list(blocks(README.read_text(encoding="utf-8"))) if README.exists() else []


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packages in another place, with the files of README.md written into them."""
    root = tmp_path_factory.mktemp("project")
    for package in ("derivations", "numerics", "verify"):
        shutil.copytree(ROOT / package, root / package, ignore=shutil.ignore_patterns("__pycache__"))
    write([block for block in own_blocks() if block.file], root)
    return root


def run(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run([sys.executable, "-m", *words], cwd=root, env=environment, capture_output=True, text=True)


def chapters() -> list[Path]:
    files = (Path(block.file) for block in own_blocks() if block.file)
    return [path for path in files if path.parent == Path("derivations")]


def test_readme_has_a_law_to_paste() -> None:
    assert README.exists(), "README.md is missing"
    hint = 'mark it ```python title="derivations/NAME.py"``` or <!-- test: file=derivations/NAME.py -->'
    assert chapters(), f"README.md has no complete example of a law in derivations/; {hint}"


def test_pasted_law_prints(copy: Path) -> None:
    for path in chapters():
        assert not (ROOT / path).exists(), f"{path} of README.md is already a chapter of the project"
        printed = run(copy, "derivations.print", path.stem)
        assert printed.returncode == 0, printed.stderr
        assert "\\section{" in printed.stdout and "Statement" in printed.stdout


def test_pasted_law_is_judged(copy: Path) -> None:
    for path in chapters():
        judged = run(copy, "verify", path.stem, "--tier", "quick", "--workers", "1", "--out", str(copy / "out"))
        assert judged.returncode == 0, judged.stdout + judged.stderr
        assert "SUPPORTED" in judged.stdout


def test_examples_give_what_they_say(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)  # an example may write files
    examples = [block for block in own_blocks() if block.example]
    assert examples, "README.md has no example of the API; put <!-- test --> above its ```python block"
    names: dict[str, Any] = {}
    for block in examples:
        found = failures(block, names)
        assert not found, f"README.md, line {block.line}:\n{found}"


# --------------------------------------------------------------------------------------------- the reader of README.md

SAMPLE = '''
```python title="derivations/one.py"
"""One."""
```

<!-- test: file=derivations/two.py -->
```python
"""Two."""
```

<!-- test -->
```python
import math

width = 2  # a comment on an assignment is prose
math.sqrt(width)  # 1.4142...
print(
    width
)  # 2
```

```python
not_run()
```
'''


def test_blocks_are_found(tmp_path: Path) -> None:
    found = list(blocks(SAMPLE))
    assert [block.file for block in found] == ["derivations/one.py", "derivations/two.py", None]
    assert [block.example for block in found] == [False, False, True]
    assert SAMPLE.splitlines()[found[2].line - 1] == "import math"
    written = write(found[:2], tmp_path)
    assert [path.read_text() for path in written] == ['"""One."""\n', '"""Two."""\n']


def test_outputs_are_compared() -> None:
    example = list(blocks(SAMPLE))[2]
    names: dict[str, Any] = {}
    assert failures(example, names) == "" and names["width"] == 2
    wrong = readme.Block(example.code.replace("1.4142", "1.5"), 1, None, True)
    assert "Expected:\n    1.5..." in failures(wrong, {})
    silent = readme.Block("1 + 1\n", 1, None, True)
    assert "Got:\n    2" in failures(silent, {}), "an expression without its output in a comment is an error"


def test_files_stay_in_the_project(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="leaves the project"):
        write([Block("", 1, "../outside.py", False)], tmp_path)
