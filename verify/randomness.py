"""Keys and generators: every draw has a seed of its own, and worker processes run `draw` on batches of them.

A draw depends on (seed, experiment, size, replicate) alone, so that neither the number of workers nor the order of
the work, nor another claim, changes it. Workers import NumPy and one sampler: no SymPy, no law.
"""

from __future__ import annotations

import hashlib
import json
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import scipy

from verify.samplers import import_sampler, source_hash
from verify.store import encode


def experiment_key(model: str, parameters: Mapping[str, str], options: Mapping[str, Any]) -> str:
    """The identity of an experiment: a hash of its model, its exact parameters (as text) and its options.

    Raises TypeError if an option is not made of plain values.
    """
    content = {"model": model, "parameters": dict(parameters), "options": options}
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def generator(seed: int, key: str, size: int, replicate: int) -> np.random.Generator:
    """The random generator of one draw."""
    digest = hashlib.sha256(f"{seed}|{key}|{size}|{replicate}".encode()).digest()
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(int.from_bytes(digest, "big"))))


@dataclass(frozen=True)
class Recipe:
    """What a worker must know of an experiment: the sampler with its module, and plain numbers."""

    experiment: str  # its name, for messages
    key: str
    model: str
    module: str
    parameters: Mapping[str, float]
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Batch:
    """Replicates of one experiment at one size, for one worker."""

    recipe: Recipe
    seed: int
    size: int
    replicates: tuple[int, ...]


@dataclass(frozen=True)
class Outcome:
    """What a worker sends back: `(replicate, encoded draw, seconds)`, and what stopped it, if anything did."""

    batch: Batch
    rows: tuple[tuple[int, bytes, float], ...]
    error: str = ""


def draw(batch: Batch) -> Outcome:
    """Run the sampler for each replicate of the batch; an exception stops the batch and is told with its place."""
    rows: list[tuple[int, bytes, float]] = []
    for replicate in batch.replicates:
        try:
            sampler = import_sampler(batch.recipe.module, batch.recipe.model)
            start = time.perf_counter()
            values = sampler(
                batch.size,
                generator(batch.seed, batch.recipe.key, batch.size, replicate),
                dict(batch.recipe.parameters),
                dict(batch.recipe.options),
            )
            blob = encode(values)
        except Exception as error:  # any failure of a sampler belongs in the report, with its draw
            place = f"experiment {batch.recipe.experiment}, size {batch.size}, replicate {replicate}, seed {batch.seed}"
            return Outcome(batch, tuple(rows), f"{place}: {type(error).__name__}: {error}")
        rows.append((replicate, blob, time.perf_counter() - start))
    return Outcome(batch, tuple(rows))


def draw_in_worker(batch: Batch) -> Outcome:
    """`draw`, deaf to the terminal's Ctrl-C: the parent alone decides when the workers end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return draw(batch)


class WorkerError(RuntimeError):
    """A worker on another machine would not make the draws that this one makes."""


def library_versions() -> dict[str, str]:
    """The libraries that decide, beside the sampler, what a draw is."""
    return {"numpy": np.__version__, "scipy": scipy.__version__}


def draw_on_cluster(batch: Batch, source: str, versions: Mapping[str, str]) -> Outcome:
    """`draw` on a worker that may be another machine's: sampler and libraries must be those of the run.

    Raises WorkerError if they are not.
    """
    recipe, own = batch.recipe, library_versions()
    for name, version in versions.items():
        if own[name] != version:
            raise WorkerError(f"a worker has {name} {own[name]}, the run has {version}")
    if _source_at_import(recipe.module, recipe.model) != source:
        raise WorkerError(f"a worker has another version of the sampler of model {recipe.model!r} than the run")
    return draw(batch)


@lru_cache
def _source_at_import(module: str, model: str) -> str:
    """The hash of a sampler's source when this process first used it: a file that is edited later changes no draw."""
    import_sampler(module, model)
    return source_hash(model)
