"""How wide a displayed formula will be, estimated from its LaTeX source without running TeX.

The printer breaks equations by it.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

_TOKEN = re.compile(r"\\[a-zA-Z]+\*?|\\.|\s+|.", re.S)
_WIDTHS = {
    **dict.fromkeys("+-", 12.2),
    **dict.fromkeys("=<>", 13.4),
    **dict.fromkeys("()[]|", 4.2),
    **dict.fromkeys(",.;:'", 3.5),
    **dict.fromkeys("&{}", 0.0),
    **dict.fromkeys((r"\displaystyle", r"\limits", r"\nolimits"), 0.0),
    **dict.fromkeys((r"\left", r"\right", r"\bigl", r"\bigr"), 0.8),
    **dict.fromkeys((r"\Bigl", r"\Bigr"), 2.0),
    **dict.fromkeys((r"\times", r"\pm", r"\in", r"\wedge", r"\vee", r"\boxtimes", r"\boxplus", r"\otimes"), 12.2),
    **dict.fromkeys((r"\le", r"\leq", r"\ge", r"\geq", r"\ne", r"\neq", r"\approx", r"\sim"), 13.4),
    **dict.fromkeys((r"\to", r"\rightarrow", r"\Rightarrow"), 15.6),
    **dict.fromkeys((r"\log", r"\sin", r"\cos", r"\exp", r"\tan"), 15.5),
    **{r"\quad": 10.0, r"\qquad": 20.0, r"\,": 1.7, r"\:": 2.2, r"\;": 2.8, r"\!": -1.7, r"\ ": 3.3},
    **{r"\infty": 10.0, r"\cdot": 7.2, r"\arccos": 31.0, r"\arcsin": 29.0, r"\arctan": 30.0},
}
_BIG = (r"\sum", r"\prod", r"\int", r"\iint", r"\lim", r"\max", r"\min", r"\sup", r"\inf")
_SCRIPT = 0.72  # a script is set at 7 of 10 points


@lru_cache(maxsize=4096)
def width(latex_source: str) -> float:
    """Estimated width of a displayed formula in points, at 10 points; rather too large than too small."""
    return _row(iter(_Tokens(latex_source)))


class _Tokens:
    """A stream of LaTeX tokens with one token of look-ahead."""

    def __init__(self, source: str) -> None:
        self._tokens: list[str] = [token for token in _TOKEN.findall(source) if not token.isspace()][::-1]

    def __iter__(self) -> _Tokens:
        return self

    def __next__(self) -> str:
        if not self._tokens:
            raise StopIteration
        return self._tokens.pop()

    def peek(self) -> str:
        return self._tokens[-1] if self._tokens else ""

    def word(self) -> str:
        """The letters of a braced name, such as an environment's."""
        letters = ""
        if self.peek() == "{":
            next(self)
            for token in self:
                if token == "}":
                    break
                letters += token
        return letters


def _row(tokens: Any, closing: str = "") -> float:
    """The width up to the closing token; rows that `\\\\` separates stand below one another."""
    widest = total = 0.0
    for token in tokens:
        if token == closing:
            break
        if token == r"\\":
            widest, total = max(widest, total), 0.0
        elif token == r"\end":
            tokens.word()
            break
        else:
            total += _advance(token, tokens)
    return max(widest, total)


def _advance(token: str, tokens: Any) -> float:
    if token == "{":
        return _row(tokens, "}")
    if token in ("^", "_"):
        return _scripts(token, tokens)
    if token in (r"\frac", r"\tfrac", r"\dfrac", r"\binom"):
        return max(_argument(tokens), _argument(tokens)) + (2.4 if "frac" in token else 12.0)
    if token == r"\sqrt":
        if tokens.peek() == "[":
            next(tokens)
            _row(tokens, "]")
        return _argument(tokens) + 9.0
    if token in (r"\operatorname", r"\text", r"\mathrm", r"\texttt", r"\textrm"):
        return 5.2 * len(tokens.word()) + 1.7
    if token == r"\begin":
        name = tokens.word()
        return _row(tokens) + (30.0 if name == "cases" else 10.0)
    if token in _BIG:
        own, scripts = 14.0, 0.0
        while tokens.peek() in ("^", "_", r"\limits"):
            mark = next(tokens)
            scripts = max(scripts, _argument(tokens) * _SCRIPT if mark != r"\limits" else 0.0)
        return max(own, scripts) + 2.0
    return _WIDTHS.get(token, 6.0)


def _scripts(token: str, tokens: Any) -> float:
    """A subscript and a superscript of one base stand above one another."""
    wide = _argument(tokens)
    if tokens.peek() in ("^", "_") and tokens.peek() != token:
        next(tokens)
        wide = max(wide, _argument(tokens))
    return _SCRIPT * wide + 0.5


def _argument(tokens: Any) -> float:
    token = next(tokens, "")
    return _row(tokens, "}") if token == "{" else _advance(token, tokens)
