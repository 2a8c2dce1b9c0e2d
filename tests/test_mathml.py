"""MathML from the printed LaTeX: every formula of every chapter is well-formed, and nothing is shown by guesswork.

The golden LaTeX of the chapters is the corpus, so that no derivation runs here.
"""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from derivations.core import chapter_names
from derivations.core.mathml import mathml

GOLDEN = Path(__file__).resolve().parent / "golden"
NAMESPACE = "{http://www.w3.org/1998/Math/MathML}"
CHILDREN = {"mfrac": 2, "msub": 2, "msup": 2, "msubsup": 3, "munder": 2, "mover": 2, "munderover": 3, "mroot": 2}


def formulas(name: str) -> list[str]:
    """The displays and the inline formulas of a chapter's golden print."""
    page = (GOLDEN / f"{name}.tex").read_text(encoding="utf-8")
    displays = re.findall(r"\\begin\{(equation\*?)\}(.*?)\\end\{\1\}", page, flags=re.S)
    bodies = [re.sub(r"\\label\{[^}]*\}", "", body) for _, body in displays]
    return bodies + re.findall(r"\\\((.*?)\\\)", page, flags=re.S)


def tree(source: str) -> ElementTree.Element:
    return ElementTree.fromstring(mathml(source))


def shape(source: str) -> str:
    """The elements and texts without spaces and attributes, in brief."""
    found = re.sub(r"<mspace[^>]*/>", "", mathml(source))
    found = re.sub(r' (?:form|fence|stretchy|xmlns|lspace|rspace)="[^"]*"', "", found)
    return found.removeprefix("<math>").removesuffix("</math>")


@pytest.mark.parametrize("name", chapter_names())
def test_every_printed_formula_is_well_formed(name: str) -> None:
    found = formulas(name)
    assert len(found) > 20
    for source in found:
        root = tree(source)
        for element in root.iter():
            tag = element.tag.removeprefix(NAMESPACE)
            assert len(element) == CHILDREN.get(tag, len(element)), (source, tag)
        shown = "".join(root.itertext())
        assert "\\" not in shown and "{" not in shown.replace("{", "", source.count(r"\{") + source.count("cases"))


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("x", "<mi>x</mi>"),
        (r"\frac{1}{2}", "<mfrac><mn>1</mn><mn>2</mn></mfrac>"),
        ("a - b", "<mrow><mi>a</mi><mo>−</mo><mi>b</mi></mrow>"),
        (r"\lambda_{\mathrm{pop}}^{2}", "<msubsup><mi>λ</mi><mi>pop</mi><mn>2</mn></msubsup>"),
        ("J'^{2}", "<msup><mi>J</mi><mrow><mo>′</mo><mn>2</mn></mrow></msup>"),
        (r"\sqrt[3]{x}", "<mroot><mi>x</mi><mn>3</mn></mroot>"),
        (r"\left(x\right)^{2}", "<msup><mrow><mo>(</mo><mi>x</mi><mo>)</mo></mrow><mn>2</mn></msup>"),
        (r"\mathbf{E} \mathcal{A} \mathcal{E}", "<mrow><mi>𝐄</mi><mi>𝒜</mi><mi>ℰ</mi></mrow>"),
        (r"\int\limits_{0}^{1} x", "<mrow><munderover><mo>∫</mo><mn>0</mn><mn>1</mn></munderover><mi>x</mi></mrow>"),
        (r"\text{a < b}", "<mtext>a\u00a0&lt;\u00a0b</mtext>"),
        ("a < b", "<mrow><mi>a</mi><mo>&lt;</mo><mi>b</mi></mrow>"),
        (r"\Delta", '<mi mathvariant="normal">Δ</mi>'),
    ],
)
def test_commands_become_elements(source: str, wanted: str) -> None:
    assert shape(source) == wanted


def test_a_sign_is_prefix_where_it_is_no_operation() -> None:
    assert 'form="prefix">−' in mathml("-x")
    assert 'form="prefix">−' in mathml(r"a = - x")
    assert 'form="prefix">−' not in mathml("a - x")


def test_brackets_grow_only_around_what_is_tall() -> None:
    assert 'stretchy="true">(' in mathml(r"\left(\frac{a}{b}\right)")
    assert 'stretchy="false">(' in mathml(r"\left(a^{2}\right)")


def test_an_aligned_block_is_a_table() -> None:
    root = tree("\\begin{aligned}\na &= b \\\\\n&\\quad + c\n\\end{aligned}")
    rows = [len(row) for row in root.iter(f"{NAMESPACE}mtr")]
    assert rows == [2, 2]


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (r"x + \unknown{y}", r"\unknown is not known"),
        (r"\left( x", "expected more"),
        ("x }", "} is not known, or has no place here"),
        (r"\begin{array}{l} x \end{array}", "the environment array is not known"),
        (r"\frac{1}", "expected more"),
        (r"\left x \right)", "no bracket"),
    ],
)
def test_what_is_not_understood_is_an_error(source: str, words: str) -> None:
    with pytest.raises(ValueError, match="no MathML for") as caught:
        mathml(source)
    assert words in str(caught.value)
