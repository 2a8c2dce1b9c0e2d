"""What the length of a sequence adds to the bulk: repeated tokens in its moments, and an edge that escapes slowly."""

from __future__ import annotations

from typing import Any

import numpy as np

from derivations import finite_length as chapter
from derivations.attention_weights import T, mean_weights
from derivations.bbp import kappa
from numerics.compile import function
from numerics.wishart_product import WishartProduct
from verify.figures import COLOURS, notation, points
from verify.randomness import generator
from verify.samplers import load_sampler

LENGTHS = (1, 2, 3, 4, 6, 8, 12, 16)
CONTRAST_RATIOS, CONTRAST_SIZE, CONTRAST_DRAWS = (1, 2), 192, 1000  # few tokens and samples: repeats stand out
EDGE_RATIOS, EDGE_SIZES, EDGE_DRAWS = (0.5, 1.0), ((96, "green", "s"), (384, "black", "o")), 16


def draw(figure: Any, seed: int) -> str:
    """The combination of four moments that shows repeated tokens, and the largest eigenvalue, against the length."""
    left, right = figure.subplots(1, 2)
    lengths = np.array(LENGTHS)
    left.plot(lengths, [_contrast(length) for length in LENGTHS], "-", color=COLOURS["blue"], lw=2, label="law")
    style = {"color": COLOURS["vermilion"], "ls": "--", "lw": 1.5}
    left.axhline(_contrast(None), **style, label="T → ∞")
    points(left, lengths, _sampled_contrasts(seed), "black", "o", f"sampled sequences, d = {CONTRAST_SIZE}")
    left.set_ylabel(f"combination {notation(chapter.contrast_value)} of four moments")
    for size, colour, marker in EDGE_SIZES:
        points(right, lengths, _largest(size, seed), colour, marker, f"sampled sequences, d = {size}")
    right.axhline(WishartProduct(*EDGE_RATIOS).support()[1], **style, label="edge of the bulk, T → ∞")
    right.set_ylabel(f"largest eigenvalue of S/{notation(kappa)}")
    for axes in (left, right):
        axes.set(xscale="log", xlabel=notation(T))
        axes.set_xticks(lengths, [str(length) for length in lengths])
        axes.minorticks_off()
        axes.legend(frameon=False, fontsize=9)
    ratios = "delta = {}, gamma = {}"
    return (
        f"Equal weights, no signal; bars: standard errors. Left ({ratios.format(*CONTRAST_RATIOS)}): a combination of "
        f"the bulk's first four moments in which repeated tokens show, against the length of a sequence; "
        f"{CONTRAST_DRAWS} draws, whose bias is of order 1/d. Right ({ratios.format(*EDGE_RATIOS)}): mean of the "
        f"largest eigenvalue, {EDGE_DRAWS} draws: at fixed length it leaves the edge as the dimension grows, the "
        "slower the longer the sequence."
    )


def _contrast(length: int | None) -> float:
    """The law with the crossing weight of equal weights put in (None: infinitely long sequences)."""
    weight = chapter.crossing_weight_at(mean_weights, length) if length else 0
    law = chapter.contrast.right.subs(chapter.crossing, weight).doit()
    return float(function(law, (chapter.delta, chapter.gamma))(*map(float, CONTRAST_RATIOS)))


def _sampled_contrasts(seed: int) -> Any:
    ratios = dict(zip((chapter.delta, chapter.gamma), CONTRAST_RATIOS, strict=True))
    combine = function(chapter.contrast_of(chapter.traces).subs(ratios), chapter.traces)
    sampler, parameters = load_sampler("token_traces"), {ratio.name: float(value) for ratio, value in ratios.items()}
    result = np.empty((len(LENGTHS), CONTRAST_DRAWS))
    for row, length in enumerate(LENGTHS):
        options = {"length": length, "weights": {str(t): 1 / length for t in range(1, length + 1)}}
        for k in range(CONTRAST_DRAWS):
            source = generator(seed, f"figure finite_length moments {length}", CONTRAST_SIZE, k)
            drawn = sampler(CONTRAST_SIZE, source, parameters, options)
            result[row, k] = combine(*(drawn[trace.name] for trace in chapter.traces))
    return result


def _largest(size: int, seed: int) -> Any:
    parameters = {"delta": EDGE_RATIOS[0], "gamma": EDGE_RATIOS[1], "signal": 0.0}
    sampler = load_sampler("token")
    result = np.empty((len(LENGTHS), EDGE_DRAWS))
    for row, length in enumerate(LENGTHS):
        options = {
            "length": length,
            "signs": ("prefix", 0, 0.0),
            "weights": (1 / length,) * length,
            "centred": True,
            "population": False,
        }
        for k in range(EDGE_DRAWS):
            source = generator(seed, f"figure finite_length edge {length}", size, k)
            result[row, k] = sampler(size, source, parameters, options)["leading_location"]
    return result


FIGURES = {"finite_length": draw}
