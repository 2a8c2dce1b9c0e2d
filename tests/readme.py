"""The code of README.md as tests see it: whole files that a reader can paste, and examples with their outputs.

A file is a fenced block `python title="path/to/file.py"`, or one under a comment `<!-- test: file=path/to/file.py -->`.
An example is a `python` block under a comment `<!-- test -->`; a comment at the end of an expression is its output,
where `...` stands for any text.
"""

from __future__ import annotations

import ast
import doctest
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_BLOCK = re.compile(
    r"^(?:<!--\s*test(?P<mark>:\s*file=(?P<named>\S+?))?\s*-->\s*?\n)?"
    r"(?P<fence>```+)python(?:\s+title=\"(?P<title>[^\"]+)\")?\s*?\n(?P<code>.*?)^(?P=fence)\s*?$",
    re.M | re.S,
)


@dataclass(frozen=True)
class Block:
    """A fenced block of Python: its code, the line where it starts, and the file that it is, if it is one."""

    code: str
    line: int
    file: str | None
    example: bool


def blocks(markdown: str) -> Iterator[Block]:
    """The blocks of Python in a Markdown text that a test is to run."""
    for found in _BLOCK.finditer(markdown):
        file = found["title"] or found["named"]
        example = file is None and found[0].startswith("<!--")
        if file or example:
            yield Block(found["code"], markdown.count("\n", 0, found.start("code")) + 1, file, example)


def write(files: list[Block], root: Path) -> list[Path]:
    """Write the blocks that are files under a root; a path must stay below it."""
    written = []
    for block in files:
        assert block.file is not None
        path = (root / block.file).resolve()
        assert path.is_relative_to(root.resolve()), f"line {block.line}: {block.file} leaves the project"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.code, encoding="utf-8")
        written.append(path)
    return written


def as_doctest(block: Block) -> doctest.DocTest:
    """The example with each expression's trailing comment as its expected output."""
    lines = block.code.splitlines()
    examples = []
    for statement in ast.parse(block.code).body:
        source = "\n".join(lines[statement.lineno - 1 : statement.end_lineno])
        last = lines[(statement.end_lineno or statement.lineno) - 1]
        comment = last[len(last.encode()[: statement.end_col_offset].decode()) :].strip()
        want = comment.removeprefix("#").strip() if isinstance(statement, ast.Expr) else ""
        examples.append(doctest.Example(source + "\n", want + "\n" if want else "", lineno=statement.lineno - 1))
    return doctest.DocTest(examples, {}, f"README.md:{block.line}", "README.md", block.line - 1, None)


def failures(block: Block, names: dict[str, Any]) -> str:
    """Run the example with these names defined; what differs from its comments. New names stay in `names`."""
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE, verbose=False)
    test = as_doctest(block)
    test.globs = names
    report: list[str] = []
    runner.run(test, out=report.append, clear_globs=False)
    return "".join(report)
