"""Prose written in Unicode (titles, reasons, meanings) as ASCII LaTeX or as plain text.

Inline maths is written `$...$`; outside of it, words that are formulas are recognised and set as such.
"""

from __future__ import annotations

import re
import unicodedata

UNKNOWN = r"\texttt{U+"  # begins what stands for a character that no table knows


def _pairs(table: str) -> dict[str, str]:
    """A table written as alternating words: a character, then its LaTeX."""
    words = table.split()
    return dict(zip(words[::2], words[1::2], strict=True))


_MATHS = _pairs(r"""
    α \alpha  β \beta  γ \gamma  δ \delta  ε \varepsilon  ϵ \epsilon  ζ \zeta  η \eta  θ \theta  ϑ \vartheta  ι \iota
    κ \kappa  λ \lambda  μ \mu  ν \nu  ξ \xi  ο o  π \pi  ρ \rho  ς \varsigma  σ \sigma  τ \tau  υ \upsilon
    φ \varphi  ϕ \phi  χ \chi  ψ \psi  ω \omega  ℓ \ell
    Γ \Gamma  Δ \Delta  Θ \Theta  Λ \Lambda  Ξ \Xi  Π \Pi  Σ \Sigma  Φ \Phi  Ψ \Psi  Ω \Omega
    ‖ \|  ⟨ \langle  ⟩ \rangle  ⌊ \lfloor  ⌋ \rfloor  ⌈ \lceil  ⌉ \rceil
    ≤ \le  ≥ \ge  ≠ \ne  ≈ \approx  ∼ \sim  ~ \sim  ≪ \ll  ≫ \gg  ∝ \propto  ≡ \equiv  ≔ :=  ⪰ \succeq  ⪯ \preceq
    ≲ \stackrel{<}{\sim}  ≳ \stackrel{>}{\sim}
    → \to  ← \leftarrow  ↦ \mapsto  ⇒ \Rightarrow  ⇔ \Leftrightarrow  ↔ \leftrightarrow
    ∈ \in  ∉ \notin  ⊂ \subset  ⊆ \subseteq  ∪ \cup  ∩ \cap  ∅ \emptyset  ∀ \forall  ∃ \exists  ∧ \wedge  ∨ \vee  ¬ \neg
    ∞ \infty  ∂ \partial  ∇ \nabla  ∫ \int  ∬ \iint  ∑ \sum  ∏ \prod  √ \surd
    ⊠ \boxtimes  ⊞ \boxplus  ⊗ \otimes  ⊕ \oplus  ∘ \circ  ⊥ \perp  † \dagger  · \cdot  × \times  ± \pm  ∓ \mp  ÷ \div
    − -  ° ^{\circ}  ′ '  ″ ''  ⋯ \cdots  … \dots  ½ \tfrac{1}{2}  ¼ \tfrac{1}{4}  ¾ \tfrac{3}{4}  ⅓ \tfrac{1}{3}
    ⅔ \tfrac{2}{3}  ℝ \mathbf{R}  ℂ \mathbf{C}  ℤ \mathbf{Z}  ℕ \mathbf{N}  𝔼 \mathbf{E}  ℙ \mathbf{P}
""")
_SUPERSCRIPTS = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱᵀᵏʲᵃᵇ", "0123456789+-=()niTkjab", strict=True))
_SUBSCRIPTS = dict(zip("₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑₒₓₕₖₗₘₙₚₛₜᵢⱼᵣᵤᵥ", "0123456789+-=()aeoxhklmnpstijruv", strict=True))
_COMBINING = {"\u0302": r"\hat", "\u0303": r"\tilde", "\u0304": r"\bar", "\u0307": r"\dot", "\u0308": r"\ddot"}
_ACCENTS = {
    "\u0300": "`", "\u0301": "'", "\u0302": "^", "\u0303": "~", "\u0304": "=", "\u0307": ".", "\u0308": '"',
    "\u030a": "r", "\u030b": "H", "\u030c": "v", "\u0306": "u", "\u0327": "c", "\u0328": "k",
}  # fmt: skip
_PROSE = {
    "–": "--", "—": "---", "‘": "`", "’": "'", "“": "``", "”": "''", "…": r"\dots{}", "§": r"\S{}", "\u00a0": "~",
    "ß": r"\ss{}", "ø": r"\o{}", "Ø": r"\O{}", "ł": r"\l{}", "Ł": r"\L{}", "æ": r"\ae{}", "ı": r"\i{}", "\u202f": r"\,",
    "%": r"\%", "&": r"\&", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}", "$": r"\$",
    "^": r"\textasciicircum{}", "\\": r"\textbackslash{}",
    "<": r"\(<\)", ">": r"\(>\)", "|": r"\(|\)",
}  # fmt: skip
_NUMBER = r"[0-9]+(?:\.[0-9]+)?"
_SIGN = r"(?:[=+<>-]|\\(?:le|ge|ne|to|in|ll|gg|pm|sim|cdot|times|approx)\b)"
_EDGES = re.compile(r"^([(\[\"'“‘]*)(.*?)([.,;:!?)\]\"'”’]*)$", re.S)


def prose_to_latex(words: str) -> str:
    """Prose with Unicode and inline `$...$` as ASCII LaTeX.

    A character that no table knows becomes `\\texttt{U+hex}` (see UNKNOWN), so that a reader still gets the page.
    """
    pieces = words.split("$")
    if len(pieces) % 2 == 0:
        raise ValueError(f"inline maths opens with $ but does not close in {words!r}; write $...$ in pairs")
    return "".join(_inline(piece) if index % 2 else _with_names(piece) for index, piece in enumerate(pieces))


def _with_names(piece: str) -> str:
    """Prose in which `n_eff` alone is a symbol with a word for its index."""
    parts = re.split(r"(?<![\w(/])n_eff(?![\w)/])", piece)
    return r"\(n_{\mathrm{eff}}\)".join(map(_plain, parts))


def prose_to_text(words: str) -> str:
    """The prose for a terminal: as written, without the marks of inline maths."""
    return words.replace("$", "")


def _plain(words: str) -> str:
    """Word by word; formulas that stand side by side are one formula, with the numbers that belong to it."""
    joined = re.sub(r"\\\)(\s+)\\\(", r"\1", "".join(_word(word) for word in re.split(r"(\s+)", words)))
    joined = re.sub(rf"({_SIGN}\s*)\\\)(\s+)({_NUMBER})(?![\w.]*\w)", r"\1\2\3\\)", joined)
    joined = re.sub(rf"(?<![\w.\\])(\(?{_NUMBER})(\s+)\\\((?={_SIGN})", r"\\(\1\2", joined)
    return re.sub(r"\\\)(\s+)\\\(", r"\1", joined)


def _word(word: str) -> str:
    """A word that is a formula is set as one, without the punctuation around it."""
    parts = _EDGES.match(word)
    assert parts is not None  # the pattern matches every string
    opening, formula, closing = parts.groups()
    if not _is_formula(formula):
        return _letters(word)
    opens, closes = formula.count("(") + formula.count("["), formula.count(")") + formula.count("]")
    own = re.match(rf"[)\]]{{0,{max(opens - closes, 0)}}}", closing)
    length = own.end() if own else 0  # in `f(δ),` the parenthesis belongs to the formula
    return f"{_letters(opening)}{_inline(formula + closing[:length])}{_letters(closing[length:])}"


def _is_formula(word: str) -> bool:
    """A mathematical character, an operator or a single letter, and no run of letters such as an English word."""
    maths = any(map(_is_maths, word))
    if not word or re.search("[A-Za-z]{3}|-th$" if maths else "[A-Za-z]{2}", word):
        return False
    operator = re.search(r"[A-Za-z0-9)].*[=/^_<>(]|^[<>=+/]$", word)
    return maths or bool(operator) or bool(re.fullmatch("[b-zB-Z]'?", word))


def _is_maths(character: str) -> bool:
    if character in _MATHS or character in _SUPERSCRIPTS or character in _SUBSCRIPTS or character in _COMBINING:
        return True
    parts = unicodedata.normalize("NFD", character)  # ᾱ is one character
    return len(parts) == 2 and parts[0] in _MATHS and parts[1] in _COMBINING


def _letters(word: str) -> str:
    return "".join(_letter(character) for character in unicodedata.normalize("NFC", word))


def _letter(character: str) -> str:
    if character in _PROSE:
        return _PROSE[character]
    if _is_maths(character):
        return _inline(character)
    if character.isascii():
        return character
    parts = unicodedata.normalize("NFD", character)
    if len(parts) == 2 and parts[0].isascii() and parts[1] in _ACCENTS:
        return rf"\{_ACCENTS[parts[1]]}{{{parts[0]}}}"
    return rf"{UNKNOWN}{ord(character):04X}}}"


def _inline(formula: str) -> str:
    return rf"\({maths_to_latex(formula)}\)"


def maths_to_latex(formula: str) -> str:
    """A formula typed with Unicode, with or without LaTeX commands, as ASCII LaTeX (no delimiters)."""
    formula = re.sub(r"([\^_])\(([^()]*)\)", r"\1{\2}", "".join(map(_decomposed, formula)))
    formula = re.sub(r"([\^_])([^\x00-\x7f])", r"\1{\2}", formula)
    formula = re.sub(f"[{''.join(_SUPERSCRIPTS)}]+", lambda run: _script("^", run[0], _SUPERSCRIPTS), formula)
    formula = re.sub(f"[{''.join(_SUBSCRIPTS)}]+", lambda run: _script("_", run[0], _SUBSCRIPTS), formula)
    for mark, command in _COMBINING.items():
        formula = re.sub(f"(.){mark}", rf"\{command}{{\1}}", formula)
    formula = re.sub(r"√(\w|\([^()]*\))", lambda root: rf"\sqrt{{{root[1].strip('()')}}}", formula)
    formula = re.sub(r"(?<!\\)([%#&])", r"\\\1", formula)
    return "".join(map(_symbol, formula)).rstrip()


def _decomposed(character: str) -> str:
    """An accented letter as letter and accent; a symbol such as ≠ stays whole."""
    parts = unicodedata.normalize("NFD", character)
    return parts if len(parts) == 2 and parts[1] in _COMBINING and character not in _MATHS else character


def _script(mark: str, run: str, table: dict[str, str]) -> str:
    return f"{mark}{{{''.join(table[character] for character in run)}}}"


def _symbol(character: str) -> str:
    if character in _MATHS:
        command = _MATHS[character]
        return command + " " if command[-1].isalpha() and command.startswith("\\") else command
    return character if character.isascii() else rf"\text{{{UNKNOWN}{ord(character):04X}}}}}"
