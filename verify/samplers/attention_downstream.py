"""Sampler of the downstream task behind real attention: softmax pools the sequences that ridge regression learns from.

Each sequence has the weights that causal softmax attention gives it, in training and in the test; nothing here assumes
what their limit is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from verify.samplers import sampler
from verify.samplers.attention import allowed, effective_weights
from verify.samplers.downstream import labelled_signs, separation, token_scores
from verify.samplers.pooled import directions, draw_tokens, draw_vocabulary, pool
from verify.samplers.wishart import Draw, count, number


@sampler("attention_downstream")
def attention_downstream(
    size: int, generator: np.random.Generator, parameters: dict[str, float], options: dict[str, Any]
) -> Draw:
    """Ridge regression of the label on N = d/gamma sequences, pooled by causal softmax attention, each in its own way.

    Parameters: delta = d/V, gamma = d/N, signal = ‖μ‖², ridge (in units of κ, the mean over the training sequences of
    the sum of their squared weights), tau. Options: `length` T, `mask` ("strict" or "inclusive"), `signs` (see
    `downstream.labelled_signs`), `centred`, `tests`. Returns `accuracy_causal`, `separation_causal`,
    `shrinkage_causal` as the sampler of fixed weights does; and `delta`, `gamma`, `norm_a` = ‖a‖² as realised.
    """
    length, mask, tau = options["length"], options["mask"], parameters["tau"]
    allowed(length, mask)
    ridge = number("ridge", parameters["ridge"], above=0.0)
    vocabulary = count(size, parameters["delta"], "delta", multiple=2)
    samples = count(size, parameters["gamma"], "gamma")
    embeddings = draw_vocabulary(size, vocabulary, parameters["signal"], generator)
    labels, signs = labelled_signs(samples, generator, options["signs"], length)
    tokens = draw_tokens(signs, vocabulary, generator)
    fresh_labels, fresh_signs = labelled_signs(options["tests"], generator, options["signs"], length)
    fresh_tokens = draw_tokens(fresh_signs, vocabulary, generator)
    weights = effective_weights(embeddings, tokens, tau, mask)
    kappa = float(np.mean(np.sum(weights**2, axis=1)))
    pooled = pool(embeddings, tokens, weights, centred=False)
    scores, shift, shrinkage = token_scores(embeddings, pooled, labels, ridge * kappa, bool(options["centred"]))
    fresh_weights = effective_weights(embeddings, fresh_tokens, tau, mask)
    decisions = np.sum(scores[fresh_tokens] * fresh_weights, axis=1) + shift
    return {
        "accuracy_causal": float(np.mean(decisions * fresh_labels > 0.0)),
        "separation_causal": separation(scores, kappa),
        "shrinkage_causal": shrinkage,
        "delta": size / vocabulary,
        "gamma": size / samples,
        "norm_a": directions(embeddings)[2]["norm_a"],
    }
