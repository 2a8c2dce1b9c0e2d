"""Reading the printer's LaTeX as presentation MathML, so that a browser shows the very formulas of the LaTeX print.

Only what `derivations.core.render` and the declared notation emit is understood; all else is an error, never a gap.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from xml.sax.saxutils import escape

_TOKEN = re.compile(r"\\[a-zA-Z]+\*?|\\.|[0-9]+(?:\.[0-9]+)?|\s+|.", re.S)


def _pairs(table: str) -> dict[str, str]:
    words = table.split()
    return dict(zip(words[::2], words[1::2], strict=True))


_ITALIC = _pairs(r"""
    \alpha α  \beta β  \gamma γ  \delta δ  \epsilon ϵ  \varepsilon ε  \zeta ζ  \eta η  \theta θ  \vartheta ϑ  \iota ι
    \kappa κ  \lambda λ  \mu μ  \nu ν  \xi ξ  \pi π  \rho ρ  \varrho ϱ  \sigma σ  \varsigma ς  \tau τ  \upsilon υ
    \phi ϕ  \varphi φ  \chi χ  \psi ψ  \omega ω  \ell ℓ
""")
_UPRIGHT = _pairs(r"""
    \Gamma Γ  \Delta Δ  \Theta Θ  \Lambda Λ  \Xi Ξ  \Pi Π  \Sigma Σ  \Upsilon Υ  \Phi Φ  \Psi Ψ  \Omega Ω
    \infty ∞  \partial ∂  \nabla ∇  \emptyset ∅  \forall ∀  \exists ∃  \prime ′  \top ⊤  \perp ⊥
    \star ⋆  \ast ∗  \dagger †  \ldots …  \dots …  \cdots ⋯  \% %  \# #  \& &  \_ _  \surd √
""")
_BINARY = _pairs(r"""
    \cdot ⋅  \times ×  \pm ±  \mp ∓  \wedge ∧  \vee ∨  \otimes ⊗  \oplus ⊕  \circ ∘  \setminus ∖  \cup ∪  \cap ∩
    \boxtimes ⊠  \boxplus ⊞  + +  - −  * ∗  / /
""")
_RELATION = _pairs(r"""
    \le ≤  \leq ≤  \ge ≥  \geq ≥  \ne ≠  \neq ≠  \approx ≈  \sim ∼  \simeq ≃  \propto ∝  \equiv ≡  \ll ≪  \gg ≫  \in ∈
    \notin ∉  \subset ⊂  \subseteq ⊆  \to →  \rightarrow →  \leftarrow ←  \mapsto ↦  \Rightarrow ⇒  \Leftrightarrow ⇔
    \succeq ⪰  \preceq ⪯  \mid ∣  \colon :
""")
_RELATION |= dict(zip("=<>:", "=<>:", strict=True))
_FENCES = _pairs(r"""
    ( (  ) )  [ [  ] ]  \{ {  \} }  | |  \| ‖  \vert |  \Vert ‖
    \langle ⟨  \rangle ⟩  \lfloor ⌊  \rfloor ⌋  \lceil ⌈  \rceil ⌉
""")
_OPENING, _CLOSING = "([{⟨⌊⌈", ")]}⟩⌋⌉"
_NAMES = tuple(
    [
        "log",
        "ln",
        "exp",
        "sin",
        "cos",
        "tan",
        "cot",
        "sinh",
        "cosh",
        "tanh",
        "coth",
        "arccos",
        "arcsin",
        "arctan",
        "arg",
        "det",
        "dim",
    ]
)
_LIMIT_NAMES = ("lim", "max", "min", "sup", "inf")
_LARGE = {r"\sum": "∑", r"\prod": "∏", r"\int": "∫", r"\iint": "∬"}
_INTEGRALS = (r"\int", r"\iint")
_SPACES = {r"\quad": 1.0, r"\qquad": 2.0, r"\,": 0.1667, r"\:": 0.2222, r"\;": 0.2778, r"\!": -0.1667}
_SPACES |= {r"\ ": 0.3, "~": 0.3}
_ACCENTS = {r"\hat": "^", r"\widehat": "^", r"\tilde": "~", r"\bar": "¯", r"\overline": "¯", r"\vec": "→"}
_ACCENTS |= {r"\dot": "˙", r"\ddot": "¨"}
_SIZES = {r"\bigl": 1.2, r"\bigr": 1.2, r"\Bigl": 1.7, r"\Bigr": 1.7}
_TALL = ("<mfrac", "<mtable", "<munder", "<mo>∫", "<mo>∬")
_THIN = '<mspace width="0.1667em"/>'
_SCRIPT_LETTERS = {"B": "ℬ", "E": "ℰ", "F": "ℱ", "H": "ℋ", "I": "ℐ", "L": "ℒ", "M": "ℳ", "R": "ℛ"}


@dataclass(frozen=True)
class _Atom:
    """A piece of MathML and how it behaves: ord, name, large, limits, binary, relation, open, close, punct or space."""

    code: str
    kind: str = "ord"


@lru_cache(maxsize=8192)
def mathml(source: str, block: bool = False) -> str:
    """A `math` element that shows the LaTeX `source` (without delimiters), as a display if `block`.

    Raises ValueError that names the command, if the source holds one that is not known here.
    """
    try:
        body = _row(_Reader(source).atoms())
    except ValueError as error:
        shown = source if len(source) <= 80 else f"{source[:80]}…"
        raise ValueError(f"no MathML for {shown!r}: {error}") from error
    display = ' display="block"' if block else ""
    return f'<math xmlns="http://www.w3.org/1998/Math/MathML"{display}>{body}</math>'


def _row(atoms: list[_Atom]) -> str:
    """One element for the atoms, with the space that TeX puts around names such as log."""
    codes: list[str] = []
    before = ""
    for place, atom in enumerate(atoms):
        after = atoms[place + 1].kind if place + 1 < len(atoms) else ""
        if atom.kind in ("name", "large", "limits") and before in ("ord", "close", "name"):
            codes.append(_THIN)
        code = atom.code
        if atom.kind == "binary" and (before in ("", "binary", "relation", "open", "punct", "large") or not after):
            code = code.replace("<mo>", '<mo form="prefix">', 1)
        codes.append(code)
        if atom.kind in ("name", "limits") and after in ("ord", "name", "large"):
            codes.append(_THIN)
        before = atom.kind if atom.kind != "space" else before
    return codes[0] if len(codes) == 1 else f"<mrow>{''.join(codes)}</mrow>"


def _letter(letter: str, family: str) -> str:
    """A Latin letter of a mathematical alphabet; other characters stay as they are."""
    if not (letter.isascii() and letter.isalpha()):
        return letter
    place = ord(letter) - ord("A") if letter.isupper() else ord(letter) - ord("a") + 26
    if family == r"\mathbf":
        return chr(0x1D400 + place)
    return _SCRIPT_LETTERS.get(letter) or chr(0x1D49C + place)


class _Reader:
    """A LaTeX formula, read token by token."""

    def __init__(self, source: str) -> None:
        self._tokens = _TOKEN.findall(source)
        self._place = 0

    def peek(self) -> str:
        """The next token that is not white space; empty at the end."""
        while self._place < len(self._tokens) and self._tokens[self._place].isspace():
            self._place += 1
        return self._tokens[self._place] if self._place < len(self._tokens) else ""

    def take(self, expected: str = "") -> str:
        """The next token. Raises ValueError at the end, or if it is not the one expected."""
        token = self.peek()
        if not token or (expected and token != expected):
            raise ValueError(f"expected {expected or 'more'}, got {token!r}")
        self._place += 1
        return token

    def _verbatim(self) -> str:
        """The characters of a braced group, white space included."""
        self.take("{")
        depth, words = 1, list[str]()
        while self._place < len(self._tokens):
            token = self._tokens[self._place]
            self._place += 1
            depth += (token == "{") - (token == "}")
            if not depth:
                return "".join(words)
            words.append(token)
        raise ValueError("a brace is not closed")

    def atoms(self, *closing: str) -> list[_Atom]:
        """The atoms up to one of the closing tokens, which is not taken."""
        found: list[_Atom] = []
        while (token := self.peek()) and token not in closing:
            if token in (r"\textstyle", r"\displaystyle"):
                self.take()
                style = "true" if token == r"\displaystyle" else "false"
                found.append(_Atom(f'<mstyle displaystyle="{style}">{_row(self.atoms(*closing))}</mstyle>'))
            else:
                found.append(self._scripted())
        return found

    def _scripted(self) -> _Atom:
        """An atom with its primes, subscript and superscript, or the limits of an operator."""
        token = self.peek()
        base = _Atom("<mrow></mrow>") if token in ("^", "_", "'") else self._atom()
        limits = base.kind == "limits" or (base.kind == "large" and token not in _INTEGRALS)
        low = high = ""
        while (mark := self.peek()) in ("^", "_", "'", r"\limits", r"\nolimits"):
            self.take()
            if mark == "'":
                high = f"<mo>{'′' * (high.count('′') + 1)}</mo>"
            elif mark in (r"\limits", r"\nolimits"):
                limits = mark == r"\limits"
            elif mark == "_":
                low = self._argument()
            else:
                high = f"<mrow>{high}{self._argument()}</mrow>" if high else self._argument()
        if not low and not high:
            return base
        names = ("munder", "mover", "munderover") if limits else ("msub", "msup", "msubsup")
        name = names[2 if low and high else 0 if low else 1]
        return _Atom(f"<{name}>{base.code}{low}{high}</{name}>", base.kind if base.kind != "open" else "ord")

    def _argument(self) -> str:
        return _row([self._atom()])

    def _atom(self) -> _Atom:
        token = self.take()
        if token == "{":
            inner = self.atoms("}")
            self.take("}")
            return _Atom(_row(inner), inner[0].kind if len(inner) == 1 else "ord")
        simple = _simple(token)
        if simple is not None:
            return simple
        if token in _FENCES:
            return self._bare_fence(_FENCES[token])
        return self._command(token)

    @staticmethod
    def _bare_fence(sign: str) -> _Atom:
        kind = "open" if sign in _OPENING else "close" if sign in _CLOSING else "ord"
        space = "" if kind != "ord" else ' lspace="0" rspace="0"'
        return _Atom(f'<mo stretchy="false"{space}>{sign}</mo>', kind)

    def _command(self, token: str) -> _Atom:
        if token == r"\left":
            return self._fenced()
        if token in _SIZES:
            sign, size = _FENCES[self.take()], f"{_SIZES[token]}em"
            kind = "open" if token.endswith("l") else "close"
            form = "prefix" if kind == "open" else "postfix"
            return _Atom(f'<mo form="{form}" stretchy="true" minsize="{size}" maxsize="{size}">{sign}</mo>', kind)
        if token in (r"\frac", r"\tfrac", r"\dfrac"):
            return _Atom(f"<mfrac>{self._argument()}{self._argument()}</mfrac>")
        if token == r"\binom":
            body = f'<mfrac linethickness="0">{self._argument()}{self._argument()}</mfrac>'
            return _Atom(f"<mrow><mo>(</mo>{body}<mo>)</mo></mrow>")
        if token == r"\sqrt":
            return self._root()
        if token in _ACCENTS:
            return _Atom(f'<mover accent="true">{self._argument()}<mo stretchy="false">{_ACCENTS[token]}</mo></mover>')
        if token in (r"\mathbf", r"\mathcal"):
            return _Atom(f"<mi>{''.join(_letter(one, token) for one in self._verbatim())}</mi>")
        if token in (r"\mathrm", r"\operatorname", r"\text", r"\textrm"):
            return self._words(token)
        if token in (r"\begin", r"\substack"):
            return self._environment(self._verbatim() if token == r"\begin" else "")
        raise ValueError(f"{token} is not known, or has no place here")

    def _words(self, token: str) -> _Atom:
        words = self._verbatim()
        if token == r"\operatorname" or (token == r"\mathrm" and words.isalpha()):
            variant = ' mathvariant="normal"' if len(words) == 1 else ""
            return _Atom(f"<mi{variant}>{escape(words)}</mi>", "name" if token == r"\operatorname" else "ord")
        return _Atom(f"<mtext>{escape(words.replace(' ', chr(0xA0)))}</mtext>", "space")

    def _root(self) -> _Atom:
        if self.peek() != "[":
            return _Atom(f"<msqrt>{self._argument()}</msqrt>")
        self.take()
        index = _row(self.atoms("]"))
        self.take("]")
        return _Atom(f"<mroot>{self._argument()}{index}</mroot>")

    def _fenced(self) -> _Atom:
        """What stands between `left` and `right`: brackets that grow with their content."""
        opening = self._fence()
        rows = [self.atoms(r"\right", r"\middle")]
        marks = []
        while self.take() == r"\middle":
            marks.append(f'<mo stretchy="true" lspace="0.2em" rspace="0.2em">{_FENCES[self.take()]}</mo>')
            rows.append(self.atoms(r"\right", r"\middle"))
        closing = self._fence()
        body = "".join(_row(row) + mark for row, mark in zip(rows, [*marks, ""], strict=True))
        # A bracket that need not grow stays one glyph: browsers leave room beside a stretched one.
        tall = str(any(mark in body for mark in _TALL)).lower()
        left, right = (
            f'<mo form="{form}" fence="true" stretchy="{tall}">{sign}</mo>' if sign else ""
            for form, sign in (("prefix", opening), ("postfix", closing))
        )
        return _Atom(f"<mrow>{left}{body}{right}</mrow>", "close")

    def _fence(self) -> str:
        token = self.take()
        if token == ".":
            return ""
        if token not in _FENCES:
            raise ValueError(f"{token} is no bracket")
        return _FENCES[token]

    def _environment(self, name: str) -> _Atom:
        """A table: aligned equations, cases, a matrix, or the lines of a `substack` (an empty name)."""
        if name not in ("", "aligned", "cases", "matrix"):
            raise ValueError(f"the environment {name} is not known")
        if not name:
            self.take("{")
        end = r"\end" if name else "}"
        rows = [list(self._cells(end))]
        while self.take() == r"\\":
            self._skip_distance()
            rows.append(list(self._cells(end)))
        if name and self._verbatim() != name:
            raise ValueError(f"the environment {name} is not closed")
        body = "".join(f"<mtr>{''.join(f'<mtd>{cell}</mtd>' for cell in row)}</mtr>" for row in rows)
        kind = name or "lines"
        style = ' displaystyle="true"' if name == "aligned" else ""
        table = f'<mtable class="{kind}"{style}>{body}</mtable>'
        brace = '<mo form="prefix" fence="true" stretchy="true">{</mo>'
        return _Atom(f"<mrow>{brace}{table}</mrow>" if name == "cases" else table, "close")

    def _cells(self, end: str) -> Iterator[str]:
        yield _row(self.atoms("&", r"\\", end))
        while self.peek() == "&":
            self.take()
            yield _row(self.atoms("&", r"\\", end))

    def _skip_distance(self) -> None:
        """The `[3pt]` after a line break."""
        start = self._place
        if self.peek() != "[":
            return
        words = ""
        while (token := self.take()) != "]":
            words += token
        if not re.fullmatch(r"\[[0-9.]+(pt|em)", words):
            self._place = start


def _simple(token: str) -> _Atom | None:
    """A token that stands for itself; None if it needs what follows."""
    if token[0].isdigit():
        return _Atom(f"<mn>{token}</mn>")
    if token in _ITALIC or (len(token) == 1 and token.isalpha()):
        return _Atom(f"<mi>{_ITALIC.get(token, token)}</mi>")
    if token in _UPRIGHT:
        return _Atom(f'<mi mathvariant="normal">{escape(_UPRIGHT[token])}</mi>')
    if token in _BINARY:
        space = ' lspace="0" rspace="0"' if token == "/" else ""
        return _Atom(f"<mo{space}>{_BINARY[token]}</mo>", "binary" if token != "/" else "open")
    if token in _RELATION:
        return _Atom(f"<mo>{escape(_RELATION[token])}</mo>", "relation")
    if token in (",", ";"):
        return _Atom(f"<mo>{token}</mo>", "punct")
    if token in (".", "!", "?"):
        return _Atom(f"<mo>{token}</mo>" if token == "!" else f"<mtext>{token}</mtext>")
    if token in _SPACES:
        return _Atom(f'<mspace width="{_SPACES[token]}em"/>', "space")
    if token in _LARGE:
        return _Atom(f"<mo>{_LARGE[token]}</mo>", "large")
    name = token[1:]
    if name in _NAMES or name in _LIMIT_NAMES:
        return _Atom(f"<mi>{name}</mi>", "limits" if name in _LIMIT_NAMES else "name")
    return None
