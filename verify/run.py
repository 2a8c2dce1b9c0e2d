"""A run: select claims, draw what is missing, judge, look by look.

Draws are shared by all claims of an experiment and kept in one file; the work is dealt to the processes in batches
of about 0.3 s, dearest first, so that no worker has a tail. A stopped run continues where it was.
"""

from __future__ import annotations

import contextlib
import difflib
import math
import os
import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import sympy as sp

from derivations.core import Chapter, Claim, Exact, Experiment, Exponent, Verdict, load_chapters
from verify import judge
from verify.judge import Judgement, Levels
from verify.measure import MeasureError, Measurement, Point, Sides, exact, points_of
from verify.randomness import Batch, Outcome, Recipe, draw, draw_in_worker, experiment_key
from verify.samplers import load_sampler, source_hash
from verify.store import Columns, DrawStore

if TYPE_CHECKING:
    from verify.cluster import Cluster

BATCH_SECONDS = 0.3
DRAWS_FILE = "draws.sqlite"
Array = np.typing.NDArray[np.float64]
Samples = dict[int, Array]
Plan = dict[int, int]


class UsageError(ValueError):
    """The command names something that does not exist, or gives a value that is not allowed."""


class RunError(RuntimeError):
    """The run cannot go on; what was drawn is stored."""


# -- registry -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Entry:
    """A claim with the chapter that makes it."""

    chapter: str
    claim: Claim


@dataclass(frozen=True)
class Registry:
    """Every claim of every chapter. `tests` counts the statistical tests of all, whatever a run selects."""

    entries: tuple[Entry, ...]
    chapters: tuple[str, ...]

    @classmethod
    def of(cls, chapters: Iterable[Chapter] | None = None) -> Registry:
        """The registry of the given chapters (default: all that are found).

        Raises ValueError on a repeated claim id.
        """
        chapters = tuple(load_chapters() if chapters is None else chapters)
        entries = tuple(Entry(chapter.name, claim) for chapter in chapters for claim in chapter.claims)
        ids = [entry.claim.id for entry in entries]
        repeated = sorted({name for name in ids if ids.count(name) > 1})
        if repeated:
            raise ValueError(f"claim ids must be unique, repeated: {', '.join(repeated)}")
        return cls(entries, tuple(chapter.name for chapter in chapters))

    @property
    def tests(self) -> int:
        """How many tests the family-wise error is shared by (at least 1)."""
        statistical = (entry.claim for entry in self.entries if entry.claim.hypothesis.kind != "exact")
        return max(1, sum(len(points_of(claim)) for claim in statistical))

    def select(self, names: Sequence[str]) -> tuple[Entry, ...]:
        """The claims of the named chapters and the named claims, in registry order; all of them for no name.

        Raises UsageError with the nearest names and the list for a name that is neither.
        """
        known = [*self.chapters, *(entry.claim.id for entry in self.entries)]
        for name in names:
            if name not in known:
                near = difflib.get_close_matches(name, known, n=3, cutoff=0.4)
                hint = f"; nearest: {', '.join(near)}" if near else ""
                claims = "\n  ".join(entry.claim.id for entry in self.entries) or "(none)"
                raise UsageError(
                    f"no chapter or claim {name!r}{hint}\nchapters: {', '.join(self.chapters)}\nclaims:\n  {claims}"
                )
        wanted = set(names)
        return tuple(e for e in self.entries if not wanted or e.chapter in wanted or e.claim.id in wanted)


# -- experiments as workers see them --------------------------------------------------------------------------


def recipe_of(experiment: Experiment) -> Recipe:
    """The sampler, the key and the plain numbers of an experiment.

    Raises ValueError if its model has no sampler, or an option or parameter is not a plain value.
    """
    values = {quantity.name: exact(value) for quantity, value in experiment.parameters.items()}
    for name, value in values.items():
        if not (value.is_number and value.is_real and value.is_finite):
            raise ValueError(
                f"experiment {experiment.name}: parameter {name} must be a finite real number, got {value}"
            )
    written = {name: str(value) for name, value in values.items()}
    options = {name: _plain(value, experiment.name, name) for name, value in experiment.options.items()}
    key = experiment_key(experiment.model.name, written, _as_written(dict(experiment.options), experiment.name))
    module = load_sampler(experiment.model.name).__module__
    numbers = {name: float(value) for name, value in values.items()}
    return Recipe(experiment.name, key, experiment.model.name, module, numbers, options)


def _plain(value: Any, experiment: str, option: str) -> Any:
    """An option without SymPy: exact numbers become floats (or integers), containers stay what they are."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(name): _plain(item, experiment, option) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_plain(item, experiment, option) for item in value)
    if isinstance(value, sp.Basic) and value.is_number and value.is_real:
        return int(value) if value.is_Integer else float(value)
    raise ValueError(
        f"experiment {experiment}: option {option} must be made of numbers, strings, lists and mappings, "
        f"got {type(value).__name__}"
    )


def _as_written(value: Any, experiment: str) -> Any:
    """An option for the key: exact numbers stay exact, as text."""
    if isinstance(value, Mapping):
        return {str(name): _as_written(item, experiment) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_as_written(item, experiment) for item in value]
    return str(value) if isinstance(value, sp.Basic) else value


def plan_of(experiment: Experiment, tier: str, look: int = 0) -> Plan:
    """Size -> replicates of a tier; look j of the full tier has 2^j times the standard replicates, or the full ones.

    Raises ValueError for an unknown tier.
    """
    if tier == "quick":
        return dict(experiment.quick)
    if tier not in ("standard", "full"):
        raise ValueError(f"tier must be quick, standard or full, got {tier!r}")
    if tier == "standard":
        return dict(experiment.standard)
    return {size: count * 2**look for size, count in (experiment.standard or experiment.full).items()}


# -- scheduling -----------------------------------------------------------------------------------------------


@dataclass
class _Request:
    """Missing replicates of one experiment at one size, and what a draw costs (None: not known yet)."""

    recipe: Recipe
    size: int
    missing: list[int]
    seconds: float | None
    undone: int = 0
    probed: bool = False
    spent: float = 0.0
    drawn: int = 0

    def __post_init__(self) -> None:
        self.undone = len(self.missing)


class Scheduler:
    """Deals batches: one draw each to learn the costs, then the dearest draws first, in batches of about 0.3 s."""

    def __init__(self, requests: Sequence[_Request], seed: int, workers: int) -> None:
        self._requests = sorted(requests, key=lambda request: -request.size)
        self._by_place = {(request.recipe.key, request.size): request for request in requests}
        self._seed, self._workers = seed, workers
        self._lock = threading.Lock()  # joblib asks for batches from its own thread

    def __iter__(self) -> Iterator[Batch]:
        return self

    def __next__(self) -> Batch:
        with self._lock:
            waiting = [request for request in self._requests if request.missing]
            if not waiting:
                raise StopIteration
            unknown = next((request for request in waiting if request.seconds is None and not request.probed), None)
            if unknown is not None:
                unknown.probed = True
                return self._take(unknown, 1)
            known = [request for request in waiting if request.seconds is not None]
            if not known:
                return self._take(waiting[0], 1)
            dearest = max(known, key=lambda request: request.seconds or 0.0)
            share = self._remaining() / (2 * self._workers)  # smaller batches towards the end
            return self._take(dearest, int(min(BATCH_SECONDS, share) / max(dearest.seconds or 0.0, 1e-6)))

    def _take(self, request: _Request, count: int) -> Batch:
        count = max(1, count)
        taken, request.missing = request.missing[:count], request.missing[count:]
        return Batch(request.recipe, self._seed, request.size, tuple(taken))

    def learn(self, outcome: Outcome) -> None:
        """Take in what a worker sent back; a failed experiment gets no further batch."""
        with self._lock:
            request = self._by_place[outcome.batch.recipe.key, outcome.batch.size]
            spent, drawn = sum(seconds for _, _, seconds in outcome.rows), len(outcome.rows)
            request.undone -= len(outcome.batch.replicates)
            if drawn:
                first = request.drawn == 1  # the probe pays for imports and caches: forget it when there is more
                request.spent, request.drawn = (0.0, 0) if first else (request.spent, request.drawn)
                request.spent, request.drawn = request.spent + spent, request.drawn + drawn
                request.seconds = request.spent / request.drawn
            if outcome.error:
                for other in self._requests:
                    if other.recipe.key == outcome.batch.recipe.key:
                        other.undone -= len(other.missing)
                        other.missing = []

    def remaining(self) -> float:
        """The work that is left, in seconds of one core."""
        with self._lock:
            return self._remaining()

    def _remaining(self) -> float:
        return sum(request.undone * self._cost(request) for request in self._requests)

    def _cost(self, request: _Request) -> float:
        """The known cost of a draw, or the cost at the nearest known size scaled by the square of the size."""
        if request.seconds is not None:
            return request.seconds
        known = [r for r in self._requests if r.recipe.key == request.recipe.key and r.seconds is not None]
        if not known:
            return 1e-3
        near = min(known, key=lambda other: abs(math.log(other.size / request.size)))
        return (near.seconds or 0.0) * (request.size / near.size) ** 2


class Progress(Protocol):
    """What a run tells while it draws."""

    def start(self, draws: int) -> None: ...

    def advance(self, draws: int, seconds_left: float) -> None: ...

    def finish(self) -> None: ...


class Silent:
    """No progress shown."""

    def start(self, draws: int) -> None:
        """Nothing to show."""

    def advance(self, draws: int, seconds_left: float) -> None:
        """Nothing to show."""

    def finish(self) -> None:
        """Nothing to show."""


@dataclass(frozen=True)
class Sampled:
    """How sampling ended: errors by experiment key, draws made, and whether it was stopped."""

    errors: Mapping[str, str]
    draws: int
    stopped: bool = False


def sample(
    plans: Sequence[tuple[Recipe, Plan]],
    store: DrawStore,
    sources: Mapping[str, str],
    seed: int,
    workers: int,
    progress: Progress | None = None,
    cluster: Cluster | None = None,
) -> Sampled:
    """Draw and store every replicate that the plans ask for and the store lacks.

    `sources` maps a model to the hash of its sampler. With one worker everything runs in this process (`python -m
    verify` sets one BLAS thread for itself; workers always have one); a `cluster` draws with its own workers instead.
    Ctrl-C stops cleanly: `stopped` is set.
    """
    progress = progress or Silent()
    workers = cluster.workers if cluster else workers
    requests = _requests(plans, store, seed)
    errors: dict[str, str] = {}
    made = 0
    if not requests:
        return Sampled(errors, made)
    scheduler = Scheduler(requests, seed, workers)
    progress.start(sum(request.undone for request in requests))
    try:
        if cluster:
            outcomes = cluster.outcomes(scheduler, sources)
        else:
            outcomes = map(draw, scheduler) if workers == 1 else _in_workers(scheduler, workers)
        for outcome in outcomes:
            recipe = outcome.batch.recipe
            store.add(recipe.key, seed, outcome.batch.size, sources[recipe.model], outcome.rows)
            scheduler.learn(outcome)
            if outcome.error:
                errors.setdefault(recipe.key, outcome.error)
            made += len(outcome.rows)
            progress.advance(len(outcome.rows), scheduler.remaining() / workers)
    except KeyboardInterrupt:
        return Sampled(errors, made, stopped=True)
    finally:
        progress.finish()
    return Sampled(errors, made)


def _requests(plans: Sequence[tuple[Recipe, Plan]], store: DrawStore, seed: int) -> list[_Request]:
    """What is missing; two experiments that are the same draws ask once, for the larger number."""
    wanted: dict[tuple[str, int], tuple[Recipe, int]] = {}
    for recipe, plan in plans:
        for size, count in plan.items():
            known = wanted.get((recipe.key, size), (recipe, 0))
            wanted[recipe.key, size] = (recipe, max(count, known[1]))
    keys = {key for key, _ in wanted}
    stored = {key: store.replicates(key, seed) for key in keys}
    costs = {key: store.mean_seconds(key) for key in keys}
    requests = []
    for (key, size), (recipe, count) in wanted.items():
        have = stored[key].get(size, set())
        missing = [replicate for replicate in range(count) if replicate not in have]
        if missing:
            requests.append(_Request(recipe, size, missing, costs[key].get(size)))
    return requests


def _in_workers(scheduler: Scheduler, workers: int) -> Iterator[Outcome]:
    """The outcomes of batches run in processes of one BLAS thread each, in the order of arrival."""
    from joblib import Parallel, delayed, parallel_config
    from joblib.externals.loky import get_reusable_executor
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    try:
        with parallel_config(backend="loky", inner_max_num_threads=1):
            pool = Parallel(n_jobs=workers, return_as="generator_unordered", batch_size=1, pre_dispatch="2*n_jobs")
            with closed_quietly(pool(delayed(draw_in_worker)(batch) for batch in scheduler)) as found:
                for outcome in found:  # noqa: UP028 (`yield from` would close the generator itself, and aloud)
                    yield outcome
    except TerminatedWorkerError as error:
        raise RunError(
            "a worker process was killed (out of memory?); what was drawn is stored: run again with fewer --workers"
        ) from error
    except (KeyboardInterrupt, GeneratorExit):
        get_reusable_executor(max_workers=workers).shutdown(wait=True, kill_workers=True)
        raise


@contextlib.contextmanager
def closed_quietly(running: Any) -> Iterator[Any]:
    """A joblib generator that may be left early: then joblib warns of results that nobody took."""
    try:
        yield running
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            running.close()


def default_workers() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


# -- judging a claim ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PointResult:
    """One test of a claim, and the samples behind it (residuals, or left sides for an exponent) for the plot."""

    point: Point
    judgement: Judgement
    samples: Mapping[int, Array] = field(default_factory=dict, repr=False)
    rivals: Mapping[str, Mapping[int, Array]] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Result:
    """A claim after a run. `judged` is False if this tier does not reach it; `failed` if it could not be evaluated."""

    entry: Entry
    judgement: Judgement
    points: tuple[PointResult, ...] = ()
    seed: int = 0
    seconds: float = 0.0
    judged: bool = True
    failed: bool = False

    @property
    def as_expected(self) -> bool:
        """Whether the claim has its expected verdict (a claim that needs a higher tier is no failure)."""
        if not self.judged:
            return True
        return not self.failed and self.judgement.verdict == self.entry.claim.expected.value

    @property
    def shown(self) -> PointResult | None:
        """The point whose numbers decide."""
        return next((p for p in self.points if p.judgement.fit is self.judgement.fit), None)


def judge_claim(
    claim: Claim, draws: Mapping[int, Columns], levels: Levels
) -> tuple[Judgement, tuple[PointResult, ...]]:
    """Measure and judge a claim on columns of draws at each size.

    Raises MeasureError if it cannot be evaluated.
    """
    if not draws:
        raise MeasureError(f"claim {claim.id}: no draws to judge it on")
    measurement = Measurement(claim, next(iter(draws.values())))
    results = tuple(_judge_point(claim, measurement, point, draws, levels) for point in measurement.points)
    return judge.combine([result.judgement for result in results]), results


def _judge_point(
    claim: Claim, measurement: Measurement, point: Point, draws: Mapping[int, Columns], levels: Levels
) -> PointResult:
    sides = {size: measurement.sides(columns, point) for size, columns in draws.items()}
    others = {
        name: {size: measurement.sides(columns, point, name) for size, columns in draws.items()}
        for name in measurement.rivals
    }
    hypothesis = claim.hypothesis
    if isinstance(hypothesis, Exponent):
        lefts, judgement = _judge_exponent(hypothesis, sides, others, levels)
        return PointResult(point, judgement, lefts, {name: _lefts(other) for name, other in others.items()})
    samples = _residuals(sides)
    rivals = {name: _residuals(other) for name, other in others.items()}
    if isinstance(hypothesis, Exact):
        return PointResult(
            point, judge.judge_exact(samples, tolerance=hypothesis.tolerance, rivals=rivals), samples, rivals
        )
    largest = max(sides)
    scale = float(np.mean(np.abs(sides[largest].right))) if hypothesis.relative else 1.0
    bounds = None if hypothesis.rates is None else (float(hypothesis.rates[0]), float(hypothesis.rates[1]))
    ask = judge.judge_order if hypothesis.kind == "order" else judge.judge_limit
    judgement = ask(
        samples,
        rate=float(hypothesis.rate),
        next_rate=float(hypothesis.next),
        resolution=float(hypothesis.resolution) * scale,
        levels=levels,
        rates=bounds,
        rivals=rivals,
    )
    return PointResult(point, judgement, samples, rivals)


def _residuals(sides: Mapping[int, Sides]) -> Samples:
    return {size: pair.residual for size, pair in sides.items()}


def _lefts(sides: Mapping[int, Sides]) -> Samples:
    return {size: pair.left for size, pair in sides.items()}


def _judge_exponent(
    hypothesis: Exponent, sides: Mapping[int, Sides], others: Mapping[str, Mapping[int, Sides]], levels: Levels
) -> tuple[Samples, Judgement]:
    def predicted(pairs: Mapping[int, Sides]) -> float:
        return float(np.mean(pairs[max(pairs)].right))

    judgement = judge.judge_exponent(
        _lefts(sides),
        statistic=hypothesis.statistic,
        predicted=predicted(sides),
        next_rate=float(hypothesis.next),
        resolution=float(hypothesis.resolution),
        levels=levels,
        rivals={name: (_lefts(other), predicted(other)) for name, other in others.items()},
    )
    return _lefts(sides), judgement


# -- a run ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Report:
    """The outcome of one look of a run."""

    results: tuple[Result, ...]
    tier: str
    look: int
    seed: int
    draws: int
    stopped: bool = False

    @property
    def exit_code(self) -> int:
        """0 if every claim that was judged has its expected verdict, else 1 (also for a run that was stopped)."""
        return 0 if all(result.as_expected for result in self.results) else 1


class Run:
    """The claims of a selection, drawn into `store` and judged. Iterate `looks` for one report a look.

    Raises UsageError for an unknown name, ValueError for an experiment without sampler.
    """

    def __init__(
        self,
        registry: Registry,
        store: DrawStore,
        *,
        names: Sequence[str] = (),
        tier: str = "quick",
        seed: int = 0,
        workers: int = 1,
        progress: Progress | None = None,
        cluster: Cluster | None = None,
    ) -> None:
        self.registry, self.store, self.tier, self.seed, self.workers = registry, store, tier, seed, workers
        self.progress, self.cluster = progress or Silent(), cluster
        self.entries = registry.select(names)
        self.reached = tuple(entry for entry in self.entries if plan_of(entry.claim.experiment, tier))
        experiments = {entry.claim.experiment.name: entry.claim.experiment for entry in self.reached}
        self._check_names()
        self.experiments = experiments
        self.recipes = {name: recipe_of(experiment) for name, experiment in experiments.items()}
        models = {recipe.model for recipe in self.recipes.values()}
        self.sources = {model: source_hash(model) for model in models}
        self.stale = sum(store.drop_stale(recipe.key, self.sources[recipe.model]) for recipe in self.recipes.values())

    def _check_names(self) -> None:
        """Two experiments of one name must be one experiment: names are how people tell them apart."""
        first: dict[str, Experiment] = {}
        for entry in self.reached:
            experiment = entry.claim.experiment
            if first.setdefault(experiment.name, experiment) is not experiment and first[experiment.name] != experiment:
                raise ValueError(f"two different experiments are called {experiment.name!r}; rename one")

    def looks(self, last: int | None = None) -> Iterator[Report]:
        """One report for quick and standard; for full one for each doubling, from the first that is not drawn yet.

        Ends after look `last`, or when the run is stopped; a look that was stopped is reported as the look before,
        so that nothing is judged between doublings.
        """
        look = self._first_look() if self.tier == "full" else 0
        while True:
            sampled = self._sample(look)
            if sampled.stopped and look > 0:
                yield replace(self.report(look - 1, sampled), stopped=True)
                return
            yield self.report(look, sampled)
            ended = self.tier != "full" or not self.experiments or (last is not None and look >= last)
            if sampled.stopped or ended:
                return
            look += 1

    def _sample(self, look: int) -> Sampled:
        plans = self._plans(look)
        return sample(plans, self.store, self.sources, self.seed, self.workers, self.progress, self.cluster)

    def report(self, look: int = 0, sampled: Sampled | None = None) -> Report:
        """Judge what is stored, at the number of replicates of this look."""
        sampled = sampled or Sampled({}, 0)
        levels = Levels.of_run(self.registry.tests, self.tier, look)
        results = {}
        for name, experiment in self.experiments.items():
            claims = [entry for entry in self.reached if entry.claim.experiment.name == name]
            for result in self._judge_experiment(experiment, claims, look, levels, sampled):
                results[result.entry.claim.id] = result
        ordered = tuple(results.get(entry.claim.id) or self._not_reached(entry) for entry in self.entries)
        return Report(ordered, self.tier, look, self.seed, sampled.draws, sampled.stopped)

    def complete(self) -> bool:
        """Whether every draw of this tier (its first look) is stored."""
        return not _requests(self._plans(0), self.store, self.seed)

    def is_drawn(self, experiment: Experiment, look: int = 0) -> bool:
        """Whether every draw that this tier (at this look) asks of an experiment is stored."""
        plan = plan_of(experiment, self.tier, look)
        return not _requests([(self.recipes[experiment.name], plan)], self.store, self.seed)

    def last_look(self) -> int:
        """The last look of the full tier whose draws are all stored; -1 if there is none."""
        return self._first_look() - 1

    def _plans(self, look: int) -> list[tuple[Recipe, Plan]]:
        return [(self.recipes[name], plan_of(e, self.tier, look)) for name, e in self.experiments.items()]

    def _first_look(self) -> int:
        """The first look of the full tier for which a draw is missing."""
        look = 0
        while self.experiments and not _requests(self._plans(look), self.store, self.seed):
            look += 1
        return look

    def _not_reached(self, entry: Entry) -> Result:
        reason = f"needs --tier {entry.claim.tier}"
        judgement = Judgement(judge.UNRESOLVED, reason, f"run with --tier {entry.claim.tier}")
        return Result(entry, judgement, seed=self.seed, judged=False)

    def _judge_experiment(
        self, experiment: Experiment, claims: Sequence[Entry], look: int, levels: Levels, sampled: Sampled
    ) -> Iterator[Result]:
        recipe, plan = self.recipes[experiment.name], plan_of(experiment, self.tier, look)
        seconds = self.store.seconds(recipe.key, self.seed, plan)
        unjudged = self._obstacle(recipe, plan, sampled)
        if unjudged is not None:
            yield from (Result(e, unjudged, seed=self.seed, seconds=seconds, failed=True) for e in claims)
            return
        draws = {size: self.store.load(recipe.key, self.seed, size, count) for size, count in sorted(plan.items())}
        for entry in claims:
            yield self._judge(entry, draws, levels, seconds)

    def _obstacle(self, recipe: Recipe, plan: Plan, sampled: Sampled) -> Judgement | None:
        """Why an experiment's claims cannot be judged: a sampler that fails, or a run that was stopped."""
        if recipe.key in sampled.errors:
            return Judgement(judge.UNRESOLVED, f"the sampler failed: {sampled.errors[recipe.key]}", "mend the sampler")
        stored = self.store.replicates(recipe.key, self.seed)
        have = sum(len([r for r in stored.get(size, ()) if r < count]) for size, count in plan.items())
        if have < sum(plan.values()):
            return Judgement(
                judge.UNRESOLVED, f"stopped after {have} of {sum(plan.values())} draws", "run again: it continues"
            )
        return None

    def _judge(self, entry: Entry, draws: Mapping[int, Columns], levels: Levels, seconds: float) -> Result:
        try:
            judgement, points = judge_claim(entry.claim, draws, levels)
        except Exception as error:  # one broken claim must not hide the verdicts on the others
            reason = str(error) if isinstance(error, MeasureError) else f"{type(error).__name__}: {error}"
            judgement = Judgement(judge.UNRESOLVED, f"cannot be evaluated: {reason}", "mend the claim or its law")
            return Result(entry, judgement, seed=self.seed, seconds=seconds, failed=True)
        return Result(entry, judgement, points, seed=self.seed, seconds=seconds)


def expected_text(claim: Claim) -> str:
    """The verdict that the claim expects, as text."""
    return claim.expected.value if isinstance(claim.expected, Verdict) else str(claim.expected)


def open_store(out: Path) -> DrawStore:
    """The draws file of an output directory, which is created when needed. Raises UsageError if it cannot be."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--out {out} cannot be created: {error.strerror}; choose another directory") from error
    return DrawStore(out / DRAWS_FILE)
