"""The small vocabulary in which every chapter is written: quantities, laws, models, experiments, claims.

All objects are immutable descriptions. Nothing here computes a float or draws a random number.
"""

from derivations.core.chapters import Chapter, chapter_names, load_chapter, load_chapters
from derivations.core.claims import Claim, Exact, Experiment, Exponent, Hypothesis, Limit, Model, Order, Verdict
from derivations.core.language import DerivedLaw, Eq, Line, NodeOfModes, Theorem, law
from derivations.core.laws import STANDS, Law, Status, Step, superseded
from derivations.core.quantities import Average, Quantity, measured, observable, parameter, variable

__all__ = [
    "STANDS",
    "Average",
    "Chapter",
    "Claim",
    "DerivedLaw",
    "Eq",
    "Exact",
    "Experiment",
    "Exponent",
    "Hypothesis",
    "Law",
    "Limit",
    "Line",
    "Model",
    "NodeOfModes",
    "Order",
    "Quantity",
    "Status",
    "Step",
    "Theorem",
    "Verdict",
    "chapter_names",
    "law",
    "load_chapter",
    "load_chapters",
    "measured",
    "observable",
    "parameter",
    "superseded",
    "variable",
]
