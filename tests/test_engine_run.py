"""The engine that draws: keys, the draws file, scheduling, and runs that are shared, extended, killed or stale."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sqlite3
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sympy import Rational

from derivations.core import Claim, Experiment, Model, observable
from tests import engine_toys
from tests.engine_toys import FULL_PLAN, LIMIT, PLAN, chapter, claims, experiment, level_law, model, width
from verify import samplers
from verify.randomness import Batch, Recipe, draw, experiment_key, generator
from verify.run import Registry, Run, Scheduler, Silent, _Request, open_store, plan_of, recipe_of, sample
from verify.samplers import load_sampler, sampler, source_hash
from verify.store import DrawStore, StoreError, decode, encode

ROOT = Path(__file__).resolve().parent.parent


def stored(path: Path) -> dict[tuple[object, ...], bytes]:
    """Every draw of a file by its full key."""
    connection = sqlite3.connect(path)
    try:
        rows = connection.execute("SELECT experiment, seed, size, replicate, source, content FROM draws").fetchall()
    finally:
        connection.close()
    return {row[:-1]: row[-1] for row in rows}


def run_once(out: Path, tier: str = "quick", workers: int = 1, seed: int = 0, made: Experiment | None = None):
    registry = Registry.of([chapter(claims(made or experiment()))])
    with open_store(out) as store:
        return next(Run(registry, store, tier=tier, seed=seed, workers=workers).looks())


# -- keys and the encoding ------------------------------------------------------------------------------------


def test_the_key_is_stable_and_tells_experiments_apart() -> None:
    key = experiment_key("toy", {"a": "1/2", "b": "3"}, {"mask": "strict", "weights": [1, 2]})
    assert key == experiment_key("toy", {"b": "3", "a": "1/2"}, {"weights": [1, 2], "mask": "strict"})
    assert key == "668d72eabc46b7a88aa7362bb9058953c42a29771b89e41cd850b78194a5f14d"  # draws on disk depend on it
    others = [
        experiment_key("toys", {"a": "1/2", "b": "3"}, {"mask": "strict", "weights": [1, 2]}),
        experiment_key("toy", {"a": "1/3", "b": "3"}, {"mask": "strict", "weights": [1, 2]}),
        experiment_key("toy", {"a": "1/2", "b": "3"}, {"mask": "strict", "weights": [2, 1]}),
    ]
    assert len({key, *others}) == 4


def test_generators_differ_in_each_part_of_their_key() -> None:
    first = {
        generator(*place).integers(2**62)
        for place in [(0, "k", 8, 0), (1, "k", 8, 0), (0, "l", 8, 0), (0, "k", 9, 0), (0, "k", 8, 1)]
    }
    assert len(first) == 5
    assert generator(0, "k", 8, 0).integers(2**62) == generator(0, "k", 8, 0).integers(2**62)


def test_options_and_parameters_reach_the_sampler_as_plain_numbers() -> None:
    recipe = recipe_of(experiment(seconds=Rational(1, 8)))
    assert recipe.parameters == {"width": 1.5}
    assert recipe.options == {"seconds": 0.125, "breaks_at": 0}
    assert type(recipe.options["seconds"]) is float
    assert recipe.key != recipe_of(experiment(seconds=0.125)).key  # 1/8 and 0.125 are written differently
    with pytest.raises(ValueError, match="option seconds must be made of numbers"):
        recipe_of(experiment(seconds={1, 2}))
    with pytest.raises(ValueError, match="parameter width must be a finite real number"):
        recipe_of(Experiment("odd", model, {width: width}, {8: 1}, options={"seconds": 0, "breaks_at": 0}))


def test_a_draw_survives_the_encoding_bit_by_bit() -> None:
    values = {
        "a": 0.1,
        "flag": True,
        "whole": 3,
        "vector": np.array([1e-300, -0.0, np.pi]),
        "matrix": np.eye(2),
        "none": [],
    }
    back = decode(encode(values))
    for name, value in values.items():
        assert np.asarray(value, dtype=float).tobytes() == back[name].tobytes()
        assert back[name].shape == np.shape(value)


@pytest.mark.parametrize(
    ("values", "message"),
    [({}, "at least one"), ({"a": np.nan}, "a must be finite"), ({"a": [1.0, np.inf]}, "inf"), ({"a": 1j}, "real")],
)
def test_an_odd_observable_is_refused(values, message) -> None:
    with pytest.raises(ValueError, match=message):
        encode(values)


def test_columns_stack_draws_and_keep_uneven_ones_apart(tmp_path) -> None:
    with DrawStore(tmp_path / "draws.sqlite") as store:
        rows = [(index, encode({"a": index, "v": np.full(2, index)}), 0.1) for index in range(3)]
        store.add("key", 0, 8, "source", rows)
        columns = store.load("key", 0, 8, 3)
        assert columns["a"].tolist() == [0, 1, 2]
        assert columns["v"].tolist() == [[0, 0], [1, 1], [2, 2]]
        store.add("key", 0, 8, "source", [(3, encode({"a": 3, "v": np.zeros(5)}), 0.1)])
        uneven = store.load("key", 0, 8, 4)
        assert uneven["a"].tolist() == [0, 1, 2, 3]
        assert [len(row) for row in uneven["v"]] == [2, 2, 2, 5]
        assert store.load("key", 0, 8, 2)["a"].tolist() == [0, 1]
        assert store.seconds("key", 0, {8: 2}) == pytest.approx(0.2)
        with pytest.raises(KeyError, match="5 draws at size 8 are needed, 4 are stored"):
            store.load("key", 0, 8, 5)


def test_a_file_that_is_no_draws_file_is_told(tmp_path) -> None:
    path = tmp_path / "draws.sqlite"
    path.write_text("this is not a database, and it is long enough to be looked at as one" * 20)
    with pytest.raises(StoreError, match="cannot be used as a draws file"):
        DrawStore(path)
    other = tmp_path / "other.sqlite"
    connection = sqlite3.connect(other)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(StoreError, match="another version"):
        DrawStore(other)


# -- samplers -------------------------------------------------------------------------------------------------


def test_a_sampler_is_found_by_its_model() -> None:
    assert load_sampler("toy") is engine_toys.draw_toy
    with pytest.raises(ValueError, match=r"no sampler for model 'toi'; known models: .*toy"):
        load_sampler("toi")
    with pytest.raises(ValueError, match="has a sampler already"):
        sampler("toy")(load_sampler)


def test_the_hash_covers_the_file_and_the_samplers_that_it_imports(tmp_path, monkeypatch) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "shared.py").write_text("value = 1\n")
    (package / "own.py").write_text("import verify.samplers.shared\nfrom verify.samplers import shared, sampler\n")
    monkeypatch.setattr(samplers, "__path__", [str(package)])
    monkeypatch.setattr(samplers, "load_sampler", lambda name: type("f", (), {"__module__": "verify.samplers.own"}))
    monkeypatch.setattr(samplers, "_file_of", lambda name: package / (name.rpartition(".")[2] + ".py"))
    before = source_hash("any")
    (package / "shared.py").write_text("value = 2\n")
    assert source_hash("any") != before


def test_an_error_in_a_sampler_is_told_with_its_place(tmp_path) -> None:
    broken = experiment("broken", breaks_at=32)
    report = run_once(tmp_path, made=broken)
    assert report.exit_code == 1
    for result in report.results:
        assert result.failed
        assert (
            "experiment broken, size 32, replicate 0, seed 0: RuntimeError: this size breaks" in result.judgement.reason
        )


def test_a_broken_experiment_does_not_stop_another(tmp_path) -> None:
    made = [*claims(experiment()), Claim("fails", level_law, experiment("broken", breaks_at=16), LIMIT, lambda: {})]
    with open_store(tmp_path) as store:
        report = next(Run(Registry.of([chapter(made)]), store).looks())
    assert [result.entry.claim.id for result in report.results if not result.as_expected] == ["fails"]


# -- scheduling -----------------------------------------------------------------------------------------------


def test_batches_cover_the_work_once_dearest_first() -> None:
    recipes = [Recipe(name, name, "toy", "tests.engine_toys", {}) for name in ("a", "b")]
    requests = [_Request(recipe, size, list(range(100)), None) for recipe in recipes for size in (8, 64)]
    scheduler = Scheduler(requests, seed=0, workers=2)
    seen, after_probes = [], []
    for batch in scheduler:
        cost = 1e-3 * batch.size
        rows = tuple((replicate, b"", cost) for replicate in batch.replicates)
        seen += [(batch.recipe.key, batch.size, replicate) for replicate in batch.replicates]
        after_probes.append((batch.size, len(batch.replicates)))
        scheduler.learn(draw_outcome(batch, rows))
    assert len(seen) == len(set(seen)) == 400
    assert [count for _, count in after_probes[:4]] == [1, 1, 1, 1]
    assert [size for size, _ in after_probes[:2]] == [64, 64]
    dealt = [size for size, _ in after_probes[4:]]
    assert dealt == sorted(dealt, reverse=True)
    assert max(count * size * 1e-3 for size, count in after_probes) <= 0.31
    assert scheduler.remaining() == 0


def draw_outcome(batch: Batch, rows):
    from verify.randomness import Outcome

    return Outcome(batch, rows)


def test_the_overhead_of_a_thousand_draws_is_small(tmp_path) -> None:
    plan = {16: 400, 32: 200, 64: 200, 128: 200}
    recipe = recipe_of(experiment("overhead", standard=plan))
    with open_store(tmp_path) as store:
        start = time.process_time()
        done = sample([(recipe, plan)], store, {"toy": "hash"}, seed=0, workers=1)
        spent = time.process_time() - start
    assert done.draws == 1000
    assert spent < 2.0


# -- runs -----------------------------------------------------------------------------------------------------


def test_every_kind_of_claim_has_its_verdict_at_both_tiers(tmp_path) -> None:
    for tier in ("quick", "standard"):
        report = run_once(tmp_path, tier)
        wrong = [(r.entry.claim.id, r.judgement) for r in report.results if not r.as_expected]
        assert wrong == []
        assert report.exit_code == 0


def test_the_number_of_workers_changes_nothing(tmp_path) -> None:
    one, two = run_once(tmp_path / "one", workers=1), run_once(tmp_path / "two", workers=2)
    assert stored(tmp_path / "one" / "draws.sqlite") == stored(tmp_path / "two" / "draws.sqlite")
    assert [r.judgement.z for r in one.results] == [r.judgement.z for r in two.results]


def test_workers_import_no_theory(tmp_path) -> None:
    script = (
        "from verify.randomness import draw_in_worker\nimport sys, verify.samplers.wishart\n"
        "print(sorted({'sympy', 'derivations', 'numerics'} & {name.partition('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_larger_tier_extends_a_smaller_one(tmp_path) -> None:
    run_once(tmp_path, "quick")
    small = stored(tmp_path / "draws.sqlite")
    assert len(small) == sum(PLAN.values())
    run_once(tmp_path, "standard")
    large = stored(tmp_path / "draws.sqlite")
    assert len(large) == sum(FULL_PLAN.values())
    assert small.items() <= large.items()
    run_once(tmp_path / "direct", "standard")
    assert stored(tmp_path / "direct" / "draws.sqlite") == large


def test_what_is_stored_beyond_a_tier_changes_no_verdict_of_it(tmp_path) -> None:
    before = run_once(tmp_path, "quick")
    run_once(tmp_path, "standard")
    after = run_once(tmp_path, "quick")
    assert after.draws == 0
    assert [r.judgement for r in after.results] == [r.judgement for r in before.results]


def test_seeds_are_kept_apart(tmp_path) -> None:
    run_once(tmp_path, seed=0)
    other = run_once(tmp_path, seed=1)
    assert other.draws == sum(PLAN.values())
    contents = list(stored(tmp_path / "draws.sqlite").values())
    assert len(set(contents)) == len(contents) == 2 * sum(PLAN.values())


def test_another_claim_changes_no_draw(tmp_path) -> None:
    run_once(tmp_path / "all")
    some = [made for made in claims(experiment()) if made.id == "half"]
    with open_store(tmp_path / "some") as store:
        next(Run(Registry.of([chapter(some)]), store).looks())
    assert stored(tmp_path / "all" / "draws.sqlite") == stored(tmp_path / "some" / "draws.sqlite")


def test_a_selection_changes_no_number(tmp_path) -> None:
    registry = Registry.of([chapter(claims(experiment()))])
    with open_store(tmp_path) as store:
        whole = {r.entry.claim.id: r.judgement for r in next(Run(registry, store).looks()).results}
        alone = next(Run(registry, store, names=["moments"]).looks()).results
    assert [result.judgement for result in alone] == [whole["moments"]]


def test_stale_draws_are_dropped(tmp_path) -> None:
    run_once(tmp_path)
    fresh = stored(tmp_path / "draws.sqlite")
    connection = sqlite3.connect(tmp_path / "draws.sqlite")
    with connection:
        changed = connection.execute(
            "UPDATE draws SET source = 'older', content = zeroblob(8) WHERE replicate < 7"
        ).rowcount
    connection.close()
    registry = Registry.of([chapter(claims(experiment()))])
    with open_store(tmp_path) as store:
        run = Run(registry, store)
        assert run.stale == changed == 28
        report = next(run.looks())
    assert report.draws == 28
    assert stored(tmp_path / "draws.sqlite") == fresh


def test_a_full_run_goes_on_by_doublings(tmp_path) -> None:
    registry = Registry.of([chapter(claims(experiment()))])
    with open_store(tmp_path) as store:
        reports = list(Run(registry, store, tier="full").looks(last=1))
        assert [report.look for report in reports] == [0, 1]
        assert [report.results[0].judgement.replicates for report in reports] == [
            tuple(2**look * count for count in FULL_PLAN.values()) for look in (0, 1)
        ]
        assert reports[0].draws == reports[1].draws == sum(FULL_PLAN.values())
        again = next(Run(registry, store, tier="full").looks())
    assert again.look == 2  # continues with the first look that is not drawn yet


class StopsInSecondLook(Silent):
    """Ctrl-C while the second look is drawn."""

    looks = 0

    def start(self, draws: int) -> None:
        self.looks += 1

    def advance(self, draws: int, seconds_left: float) -> None:
        if self.looks == 2:
            raise KeyboardInterrupt


def test_a_full_run_that_is_stopped_reports_the_look_before(tmp_path) -> None:
    registry = Registry.of([chapter(claims(experiment()))])
    with open_store(tmp_path) as store:
        reports = list(Run(registry, store, tier="full", progress=StopsInSecondLook()).looks())
        assert [(report.look, report.stopped) for report in reports] == [(0, False), (0, True)]
        assert [r.judgement for r in reports[0].results] == [r.judgement for r in reports[1].results]
        assert 0 < reports[1].draws < sum(FULL_PLAN.values())
        again = next(Run(registry, store, tier="full").looks())
    assert (again.look, again.draws) == (1, sum(FULL_PLAN.values()) - reports[1].draws)


class StopsAtOnce(Silent):
    """Ctrl-C while the first outcome is stored."""

    def advance(self, draws: int, seconds_left: float) -> None:
        raise KeyboardInterrupt


def test_a_stop_between_two_outcomes_is_quiet(tmp_path) -> None:
    with warnings.catch_warnings(record=True) as said, open_store(tmp_path) as store:
        warnings.simplefilter("always")
        registry = Registry.of([engine_toys.slow_chapter()])
        report = next(Run(registry, store, workers=2, progress=StopsAtOnce()).looks())
        gc.collect()
    assert report.stopped
    assert 0 < report.draws == len(stored(tmp_path / "draws.sqlite")) < sum(PLAN.values())
    assert [str(warning.message) for warning in said] == []


def test_two_experiments_that_are_one_share_their_draws(tmp_path) -> None:
    twin = [Claim(f"twin-{name}", level_law, experiment(name), LIMIT, lambda: {}) for name in ("first", "second")]
    with open_store(tmp_path) as store:
        assert next(Run(Registry.of([chapter(twin)]), store).looks()).draws == sum(PLAN.values())


def test_names_must_be_unique(tmp_path) -> None:
    made = claims(experiment())
    with pytest.raises(ValueError, match="claim ids must be unique, repeated: level"):
        Registry.of([chapter([*made, made[0]])])
    clash = [made[0], Claim("other", level_law, experiment(seconds=1e-9), LIMIT, lambda: {})]
    with open_store(tmp_path) as store, pytest.raises(ValueError, match="two different experiments are called"):
        Run(Registry.of([chapter(clash)]), store)


def test_a_claim_above_the_tier_is_listed_and_not_judged(tmp_path) -> None:
    later = Claim("later", level_law, experiment("later", standard=FULL_PLAN), LIMIT, lambda: {})
    with open_store(tmp_path) as store:
        report = next(Run(Registry.of([chapter([later])]), store).looks())
        assert report.exit_code == 0
        assert not report.results[0].judged
        assert report.results[0].judgement.reason == "needs --tier standard"
        assert next(Run(Registry.of([chapter([later])]), store, names=["later"]).looks()).draws == 0


def test_a_claim_that_cannot_be_evaluated_fails_alone(tmp_path) -> None:
    spin = observable("spin", "not drawn")
    odd = Claim("odd", level_law, experiment(), LIMIT, lambda: {}, reads={engine_toys.top: spin})
    with open_store(tmp_path) as store:
        report = next(Run(Registry.of([chapter([*claims(experiment()), odd])]), store).looks())
    assert [r.entry.claim.id for r in report.results if not r.as_expected] == ["odd"]
    assert "nothing stands for spin" in report.results[-1].judgement.reason
    assert report.exit_code == 1


def test_a_model_without_sampler_is_told(tmp_path) -> None:
    lonely = Experiment("lonely", Model("nobody", "no sampler", (), ()), {}, {8: 30}, {8: 30})
    with open_store(tmp_path) as store, pytest.raises(ValueError, match="no sampler for model 'nobody'"):
        Run(Registry.of([chapter([Claim("lonely", level_law, lonely, LIMIT, lambda: {})])]), store)


def test_plans() -> None:
    made = experiment()
    assert plan_of(made, "quick") == PLAN
    assert plan_of(made, "standard") == plan_of(made, "full", 0) == FULL_PLAN
    assert plan_of(made, "full", 3) == {size: 8 * count for size, count in FULL_PLAN.items()}
    with pytest.raises(ValueError, match="tier must be"):
        plan_of(made, "slow")


def test_plans_of_the_full_tier_alone() -> None:
    made = experiment("rare", standard={}, full=PLAN)
    assert plan_of(made, "quick") == plan_of(made, "standard") == {}
    assert plan_of(made, "full", 0) == PLAN
    assert plan_of(made, "full", 2) == {size: 4 * count for size, count in PLAN.items()}
    assert Claim("rare", level_law, made, LIMIT, lambda: {}).tier == "full"
    with pytest.raises(ValueError, match="full must be empty where there is a standard plan"):
        experiment("both", standard=FULL_PLAN, full=PLAN)


def test_the_full_tier_judges_what_the_others_leave_out(tmp_path) -> None:
    usual, rare = claims(experiment())[0], claims(experiment("rare", breaks_at=1, standard={}, full=PLAN))[0]
    both = [chapter([usual, replace(rare, id="rare-level")])]
    with open_store(tmp_path) as store:
        standard = next(Run(Registry.of(both), store, tier="standard").looks())
        assert [result.judged for result in standard.results] == [True, False]
        assert standard.results[1].judgement.reason == "needs --tier full"
        full = next(Run(Registry.of(both), store, tier="full").looks())
    assert full.look == 0
    assert full.draws == sum(PLAN.values())
    assert [result.judgement.verdict for result in full.results] == ["SUPPORTED", "SUPPORTED"]


# -- stopping -------------------------------------------------------------------------------------------------


@pytest.fixture
def start() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts the slow toy run in a process group of its own, which does not outlive the test."""
    started = []

    def launch(out: Path, *more: str) -> subprocess.Popen[str]:
        script = "import sys; from tests.engine_toys import main; sys.exit(main())"
        command = [sys.executable, "-c", script, "--out", str(out), *more]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        started.append(subprocess.Popen(command, cwd=ROOT, text=True, start_new_session=True, **pipes))
        return started[-1]

    yield launch
    for process in started:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def wait_for_draws(path: Path, least: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if path.exists():
            connection = sqlite3.connect(path, timeout=10)
            try:
                if connection.execute("SELECT COUNT(*) FROM draws").fetchone()[0] >= least:
                    return
            except sqlite3.OperationalError:
                pass  # the table is not there yet
            finally:
                connection.close()
        time.sleep(0.02)
    raise AssertionError(f"no {least} draws after a minute")


def test_a_killed_run_is_resumed_to_the_same_draws(tmp_path, start) -> None:
    killed = start(tmp_path / "killed", "--workers", "2")
    wait_for_draws(tmp_path / "killed" / "draws.sqlite", 20)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.communicate()
    partial = stored(tmp_path / "killed" / "draws.sqlite")
    assert 20 <= len(partial) < sum(PLAN.values())
    reports = {}
    for name in ("killed", "whole"):
        with open_store(tmp_path / name) as store:
            reports[name] = next(Run(Registry.of([engine_toys.slow_chapter()]), store).looks())
    assert reports["killed"].draws == sum(PLAN.values()) - len(partial)
    resumed, whole = (stored(tmp_path / name / "draws.sqlite") for name in ("killed", "whole"))
    assert partial.items() <= resumed.items()
    assert resumed == whole
    assert reports["killed"].results[0].judgement == reports["whole"].results[0].judgement


@pytest.mark.parametrize(("number", "workers"), [(signal.SIGINT, "2"), (signal.SIGTERM, "1")])
def test_a_stopped_run_says_so_and_keeps_its_draws(tmp_path, start, number, workers) -> None:
    process = start(tmp_path, "--workers", workers)
    wait_for_draws(tmp_path / "draws.sqlite", 20)
    if number == signal.SIGINT:
        os.killpg(process.pid, number)  # a terminal's Ctrl-C reaches the workers too
    else:
        process.send_signal(number)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 1, output + errors
    assert "Traceback" not in output + errors
    assert "stopped after" in output
    assert "run again to continue" in output
    assert len(stored(tmp_path / "draws.sqlite")) >= 20


def test_the_toy_sampler_is_deterministic() -> None:
    recipe = recipe_of(experiment())
    batch = Batch(recipe, 3, 16, (0, 1))
    first, second = draw(batch), draw(batch)
    assert [row[:2] for row in first.rows] == [row[:2] for row in second.rows]
    assert first.rows[0][1] != first.rows[1][1]
