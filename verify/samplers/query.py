"""Samplers of the learned query: gradients and statistics at a fixed query, and runs of the stochastic ascent.

Each draws tokens (or an exact reduction of them) and reports raw observables; none knows a formula of the theory.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from verify.query_ascent import (
    StepRule,
    TokenModel,
    aligned_queries,
    random_queries,
    reduced_gradients,
    score_statistics,
    simulate,
)
from verify.samplers import sampler

Array = np.ndarray[Any, Any]
Parameters = dict[str, float]
Columns = dict[str, Any]


def _split(tokens: int, fraction: float) -> tuple[int, int]:
    informative = max(1, round(fraction * tokens))
    return informative, tokens - informative


def _model(parameters: Parameters) -> TokenModel:
    return TokenModel(parameters["theta"], round(parameters["R"]), round(parameters["N"]), round(parameters["d"]))


def _at_query(model: TokenModel, alignment: float, draws: int, generator: np.random.Generator) -> Columns:
    """Means over `draws` of what one draw of tokens gives at a query of fixed alignment."""
    found: Columns = {
        name: float(values.mean()) for name, values in score_statistics(model, alignment, draws, generator).items()
    }
    gradients, _ = reduced_gradients(model, aligned_queries(alignment, draws, model.dimension, generator), generator)
    found["drift"] = float(gradients[:, 0].mean())
    found["gradient_square"] = float((gradients**2).sum(axis=1).mean())
    found["signal_square"] = float((gradients[:, 0] ** 2).mean())
    return found


@sampler("query_proportional")
def proportional(size: int, generator: np.random.Generator, parameters: Parameters, options: dict[str, Any]) -> Columns:
    """Size d, L = d/c tokens of which rL are informative: means over `draws` draws at a query of alignment ρ."""
    informative, nuisance = _split(round(size / parameters["c"]), parameters["r"])
    model = TokenModel(parameters["theta"], informative, nuisance, size)
    found = _at_query(model, parameters["rho"], options["draws"], generator)
    realised = {"r": informative / model.tokens, "c": size / model.tokens}
    return found | realised | {"R": float(informative), "N": float(nuisance), "d": float(size)}


@sampler("query_tokens")
def many_tokens(size: int, generator: np.random.Generator, parameters: Parameters, options: dict[str, Any]) -> Columns:
    """Size L at fixed dimension: means over `draws` draws at a query of alignment ρ."""
    informative, nuisance = _split(size, parameters["r"])
    model = TokenModel(parameters["theta"], informative, nuisance, round(parameters["d"]))
    found = _at_query(model, parameters["rho"], options["draws"], generator)
    return found | {"r": informative / size, "L": float(size)}


@sampler("query_growing_signal")
def growing_signal(
    size: int, generator: np.random.Generator, parameters: Parameters, options: dict[str, Any]
) -> Columns:
    """Size L, signal strength growth · log L, query at the signal: mean mass over `draws` draws."""
    informative, nuisance = _split(size, parameters["r"])
    model = TokenModel(parameters["growth"] * math.log(size), informative, nuisance, 2)
    mass = score_statistics(model, 1.0, options["draws"], generator)["mass"]
    return {"mass": float(mass.mean()), "r": informative / size, "L": float(size)}


@sampler("query_path")
def path(size: int, generator: np.random.Generator, parameters: Parameters, options: dict[str, Any]) -> Columns:
    """Size K: equal steps t/K from alignment `start`; mean final alignment over `runs` runs."""
    model = _model(parameters)
    queries = aligned_queries(parameters["start"], options["runs"], model.dimension, generator)
    steps = np.full(size, parameters["t"] / size)
    run = simulate(model, queries, steps, generator, record=size)
    return {"alignment": float(run.alignment[:, -1].mean()), "steps": float(size)}


@sampler("query_random_start")
def random_start(size: int, generator: np.random.Generator, parameters: Parameters, options: dict[str, Any]) -> Columns:
    """Size d, L = d/c: `steps_per_dimension`·d equal steps to time t from random queries; mean final alignment."""
    tokens = size / parameters["c"]
    if tokens != round(tokens) or tokens * parameters["r"] != round(tokens * parameters["r"]):
        raise ValueError(
            f"size must make d/c and r d/c integers, got d = {size}: the ratios are not reported as realised"
        )
    informative, nuisance = _split(round(tokens), parameters["r"])
    model = TokenModel(parameters["theta"], informative, nuisance, size)
    count = options["steps_per_dimension"] * size
    steps = np.full(count, parameters["t"] / count)
    run = simulate(model, random_queries(options["runs"], size, generator), steps, generator, record=count)
    start = run.alignment[:, 0]
    return {"alignment": float(run.alignment[:, -1].mean()), "start_square": float((start**2).mean()), "d": float(size)}


@sampler("query_descent")
def descent(size: int, generator: np.random.Generator, parameters: Parameters, options: dict[str, Any]) -> Columns:
    """Size K: steps gain/(k + offset) from given or random starts; means over `runs` runs at the end.

    `starts` is a tuple of alignments, or None for random queries; `final` has one mean alignment for each start.
    """
    model, runs = _model(parameters), options["runs"]
    starts = options["starts"]
    if starts is None:
        queries = random_queries(runs, model.dimension, generator)
    else:
        queries = np.concatenate([aligned_queries(value, runs, model.dimension, generator) for value in starts])
    steps = StepRule(parameters["gain"], options["offset"])(size)
    run = simulate(model, queries, steps, generator, record=size, batch=options["batch"])
    last = run.alignment[:, -1]
    mass = [score_statistics(model, float(value), 1, generator)["mass"][0] for value in last]
    groups = 1 if starts is None else len(starts)
    return {
        "line_alignment": float(np.abs(last).mean()),
        "misalignment": float(1.0 - np.abs(last).mean()),
        "final": last.reshape(groups, runs).mean(axis=1),
        "mass": float(np.mean(mass)),
    }


RECORDS = 6  # times within a window at which the path is compared


@sampler("query_window")
def window(size: int, generator: np.random.Generator, parameters: Parameters, options: dict[str, Any]) -> Columns:
    """Size k: one window of length T of a run with steps gain/k, entered at step k with alignment `start`.

    Reports time, alignment and the component along the first query's part orthogonal to ξ at six points.
    """
    model = _model(parameters)
    count = round(size * math.expm1(parameters["horizon"] / parameters["gain"]))
    steps = StepRule(parameters["gain"], float(size))(count)
    queries = aligned_queries(parameters["start"], 1, model.dimension, generator)
    across = queries.copy()
    across[:, 0] = 0.0
    across /= np.linalg.norm(across)
    found: Columns = {}
    edges = np.linspace(0, count, RECORDS + 1).round().astype(int)
    elapsed = 0.0
    for index in range(RECORDS):
        part = steps[edges[index] : edges[index + 1]]
        queries = simulate(model, queries, part, generator, record=max(1, len(part))).query
        elapsed += float(part.sum())
        found |= {
            f"time_{index + 1}": elapsed,
            f"alignment_{index + 1}": float(queries[0, 0]),
            f"across_{index + 1}": float(queries[0] @ across[0]),
        }
    return found
