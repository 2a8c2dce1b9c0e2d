"""The command line: exit codes, verdicts.json, plots, explanations, lists and calibration, on toy chapters."""

from __future__ import annotations

import io
import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from derivations.core import Claim, Limit, Verdict
from tests.engine_toys import FULL_PLAN, LIMIT, PLAN, chapter, claims, experiment, level_law, width
from verify import calibrate, report
from verify.__main__ import main
from verify.judge import Levels
from verify.plots import write_plots
from verify.run import Registry, Run, UsageError, open_store

ROOT = Path(__file__).resolve().parent.parent
KEYS = {
    *("id", "chapter", "law", "status", "kind", "expected", "verdict", "limit", "se", "z", "resolution", "sizes"),
    *("replicates", "rates", "rivals", "seed", "seconds"),
}


@pytest.fixture
def toys():
    return [chapter(claims(experiment()))]


def call(toys, out: Path, *arguments: str) -> int:
    workers = () if "--list" in arguments else ("--workers", "1")
    return main([*arguments, "--out", str(out), *workers], toys)


def rival_of(claim_id: str, hypothesis=LIMIT, shift=3, name="classical-toy", expected=Verdict.SUPPORTED) -> Claim:
    return Claim(
        claim_id,
        level_law,
        experiment(name),
        hypothesis,
        lambda: {"shifted": level_law.rival(right=2 * width + 1 + shift)},
        expected=expected,
    )


def test_a_run_that_goes_as_expected_exits_with_0(toys, tmp_path, capsys) -> None:
    assert call(toys, tmp_path) == 0
    shown = capsys.readouterr()
    assert "8 of 8 claims have their expected verdict (tier quick, seed 0)" in shown.out
    assert f"drawing {sum(PLAN.values())} replicates" in shown.err
    names = {path.stem for path in (tmp_path / "plots").iterdir()}
    assert names == {made.id for made in toys[0].claims}
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in (tmp_path / "plots").iterdir())


def refuse(name: str) -> float:
    raise AssertionError(f"{name} is no JSON number")


def test_the_verdicts_are_json_with_every_key(toys, tmp_path, capsys) -> None:
    assert call(toys, tmp_path, "--json", str(tmp_path / "mine.json"), "--seed", "4") == 0
    data = json.loads((tmp_path / "mine.json").read_text(), parse_constant=refuse)
    assert not (tmp_path / "verdicts.json").exists()
    by_id = {row["id"]: row for row in data["claims"]}
    assert list(by_id) == [made.id for made in toys[0].claims]
    for row in data["claims"]:
        assert row.keys() >= KEYS
        assert row["seed"] == 4
        assert all(rival.keys() >= {"name", "z", "refuted"} for rival in row["rivals"])
    assert by_id["level"]["rates"] == [1.0, 2.0]
    assert by_id["level"]["sizes"] == list(PLAN)
    assert by_id["level"]["replicates"] == list(PLAN.values())
    assert by_id["level"]["rivals"][0]["refuted"] is True
    assert by_id["half"]["z"] is None
    assert [part["point"] for part in by_id["moments"]["points"]] == ["n = 1", "n = 2", "n = 3"]
    assert by_id["wrong-level"]["verdict"] == by_id["wrong-level"]["expected"] == "REFUTED"
    assert by_id["level"]["fitted_rate"] is None


def test_an_interval_of_exponents_is_profiled_and_the_best_one_reported(tmp_path, capsys) -> None:
    interval = Limit(rate=1, next=2, resolution=3.0, rates=(0.5, 1.5))
    made = [Claim("level", level_law, experiment(), interval, lambda: {"more": level_law.rival(right=2 * width + 9)})]
    assert main(["--out", str(tmp_path), "--workers", "1"], [chapter(made)]) == 0
    fitted = json.loads((tmp_path / "verdicts.json").read_text())["claims"][0]["fitted_rate"]
    assert 0.5 <= fitted <= 1.5
    capsys.readouterr()
    assert main(["explain", "level", "--out", str(tmp_path), "--workers", "1"], [chapter(made)]) == 0
    shown = capsys.readouterr().out
    assert "rate in [0.5, 1.5]" in shown
    assert f"exponent that fits best: {fitted:.2g}" in shown


def test_an_unexpected_verdict_exits_with_1_and_says_why(tmp_path, capsys) -> None:
    wrong = rival_of("surprise", expected=Verdict.REFUTED)
    near = rival_of("survivor", shift=1e-9)
    assert call([chapter([wrong, near])], tmp_path) == 1
    shown = capsys.readouterr().out
    assert "SUPPORTED, expected REFUTED" in shown
    assert "survivor: not refuted: shifted" in shown
    assert "0 of 2 claims" in shown


def test_a_weak_rival_is_pointed_at(toys, tmp_path, capsys) -> None:
    with open_store(tmp_path) as store:
        run = next(Run(Registry.of(toys), store, names=["level"]).looks())
    margin = run.results[0].judgement.half_width
    assert margin is not None
    near = rival_of("near", shift=round(1.1 * margin, 3), name="toy-experiment")
    call([chapter([near])], tmp_path)
    assert "refuted with a chance below 99.9 % in a repetition: near: shifted" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [
        ("momens",),
        ("--tier", "slow"),
        ("--seed", "-1"),
        ("--seed", "x"),
        ("--workers", "0"),
        ("explain",),
        ("calibrate", "--seeds", "0"),
    ],
)
def test_a_usage_error_exits_with_2(toys, tmp_path, capsys, arguments) -> None:
    assert main([*arguments, "--out", str(tmp_path / "out")], toys) == 2
    assert capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_an_unknown_name_gets_the_nearest_and_the_list(toys, tmp_path, capsys) -> None:
    for command in ((), ("explain",)):
        assert main([*command, "momens", "--out", str(tmp_path)], toys) == 2
        message = capsys.readouterr().err
        assert "no chapter or claim 'momens'; nearest: moments" in message
        assert "chapters: toys" in message
        assert "wrong-level" in message


def test_files_that_cannot_be_used_exit_with_2(toys, tmp_path, capsys) -> None:
    (tmp_path / "file").write_text("x")
    assert call(toys, tmp_path / "file") == 2
    assert "choose another directory" in capsys.readouterr().err
    assert call(toys, tmp_path / "out", "half", "--json", str(tmp_path / "no" / "where.json")) == 2
    assert "choose another file" in capsys.readouterr().err
    (tmp_path / "out" / "draws.sqlite").write_text("no database " * 200)
    for side in ("-wal", "-shm"):
        (tmp_path / "out" / f"draws.sqlite{side}").unlink(missing_ok=True)
    assert call(toys, tmp_path / "out") == 2
    assert "cannot be used as a draws file" in capsys.readouterr().err


def test_help_exits_with_0(capsys) -> None:
    for command in ((), ("explain",), ("calibrate",)):
        assert main([*command, "--help"], []) == 0
    assert "calibrate" in capsys.readouterr().out


def test_the_list_names_every_claim(toys, tmp_path, capsys) -> None:
    assert call(toys, tmp_path / "out", "--list") == 0
    shown = capsys.readouterr().out
    assert "toys (8 claims)" in shown
    assert all(made.id in shown for made in toys[0].claims)
    assert not (tmp_path / "out").exists()
    assert call(toys, tmp_path / "out", "--list", "half") == 0
    assert "moments" not in capsys.readouterr().out


def test_the_list_of_the_project_starts_at_once() -> None:
    start = time.monotonic()
    spent = os.times().children_user
    done = subprocess.run(
        [sys.executable, "-m", "verify", "--list"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert min(time.monotonic() - start, os.times().children_user - spent) < 3


def test_a_selection_judges_no_more(toys, tmp_path, capsys) -> None:
    assert call(toys, tmp_path, "half", "order") == 0
    assert "2 of 2 claims" in capsys.readouterr().out
    assert [row["id"] for row in json.loads((tmp_path / "verdicts.json").read_text())["claims"]] == ["order", "half"]
    assert call(toys, tmp_path, "toys") == 0
    assert "8 of 8 claims" in capsys.readouterr().out


def test_a_claim_of_a_higher_tier_is_shown(tmp_path, capsys) -> None:
    later = Claim("later", level_law, experiment("later", standard=FULL_PLAN), LIMIT, lambda: {})
    assert call([chapter([later, rival_of("now")])], tmp_path) == 0
    shown = capsys.readouterr().out
    assert "needs --tier standard" in shown
    assert "1 of 1 claims have their expected verdict (tier quick, seed 0); 1 need a higher tier" in shown
    row = json.loads((tmp_path / "verdicts.json").read_text())["claims"][0]
    assert (row["verdict"], row["judged"], row["reason"]) == ("UNRESOLVED", False, "needs --tier standard")


def test_explain_tells_the_story_of_a_claim(toys, tmp_path, capsys) -> None:
    assert main(["explain", "moments", "--out", str(tmp_path), "--workers", "1"], toys) == 0
    shown = capsys.readouterr().out
    assert "moment = width**n/(n + 1)" in shown
    for word in ("law toy-moments", "width = 3/2", "hypothesis:", "n = 3: L =", "rival 'order off by one': refuted"):
        assert word in shown
    assert "verdict: SUPPORTED (expected SUPPORTED) at tier quick" in shown
    for made in toys[0].claims:
        assert main(["explain", made.id, "--out", str(tmp_path), "--workers", "1"], toys) == 0
    assert "drawing" not in capsys.readouterr().err  # everything is stored already


def test_explain_uses_the_standard_draws_where_they_are(toys, tmp_path, capsys) -> None:
    call(toys, tmp_path, "--tier", "standard")
    capsys.readouterr()
    assert main(["explain", "level", "--out", str(tmp_path), "--workers", "1"], toys) == 0
    assert "at tier standard" in capsys.readouterr().out


def test_explain_says_what_it_would_take(tmp_path, capsys) -> None:
    blunt = rival_of("blunt", Limit(rate=1, next=2, resolution=1e-4))
    assert main(["explain", "blunt", "--out", str(tmp_path), "--workers", "1"], [chapter([blunt])]) == 1
    shown = capsys.readouterr().out
    assert "verdict: UNRESOLVED" in shown
    assert "to resolve it:" in shown
    assert "times as many replicates" in shown
    assert main(["explain", "toys", "--out", str(tmp_path)], [chapter([blunt])]) == 2
    assert "explain one of its claims: blunt" in capsys.readouterr().err


# -- calibration ----------------------------------------------------------------------------------------------


def test_calibrate_counts_over_seeds(tmp_path, capsys) -> None:
    made = [rival_of("edge"), *claims(experiment())]
    arguments = ["calibrate", "--seeds", "3", "--out", str(tmp_path), "--workers", "1"]
    assert main(arguments, [chapter(made)]) == 0
    shown = capsys.readouterr().out
    assert "3 runs of 1 claims (1 tests a run)" in shown
    assert "runs with a false alarm: 0 of 3 = 0 (95 % interval 0 to 0.71)" in shown
    assert "missed rivals: 0 of 3" in shown
    assert "standard deviation" in shown


def test_calibrate_counts_a_wrong_law_and_a_missed_rival(tmp_path) -> None:
    wrong = Claim(
        "wrong",
        level_law,
        experiment("classical-wrong"),
        LIMIT,
        lambda: {"right": level_law.statement},
        reads={width: width + 2},
    )
    registry = Registry.of([chapter([wrong])])
    with open_store(tmp_path) as store:
        (*_, last) = calibrate.calibrate(registry, store, range(2), (), 1, report.LineProgress(io.StringIO()))
    assert (last.runs, last.alarmed_runs, last.alarms) == (2, 2, 2)
    survivor = Registry.of([chapter([rival_of("near", shift=1e-9)])])
    with open_store(tmp_path) as store:
        (*_, last) = calibrate.calibrate(survivor, store, range(2), (), 1, report.LineProgress(io.StringIO()))
    assert (last.missed_runs, last.misses, last.alarms, last.unresolved) == (2, 2, 0, 2)


def test_calibrate_needs_true_limits(toys, tmp_path, capsys) -> None:
    assert main(["calibrate", "--out", str(tmp_path)], toys) == 2
    assert "no claim to calibrate" in capsys.readouterr().err
    registry = Registry.of(toys)
    assert {entry.claim.id for entry in calibrate.claims_to_calibrate(registry, ["toys"])} == {
        *("level", "moments", "powers", "transform"),
    }
    with pytest.raises(UsageError):
        calibrate.claims_to_calibrate(registry, ["half"])


@pytest.mark.parametrize(("events", "trials"), [(0, 40), (3, 40), (40, 40), (1, 1)])
def test_the_interval_is_that_of_the_binomial_test(events: int, trials: int) -> None:
    exact = stats.binomtest(events, trials).proportion_ci(0.95, "exact")
    assert calibrate.interval(events, trials) == pytest.approx((exact.low, exact.high))


def test_the_interval_refuses_impossible_counts() -> None:
    with pytest.raises(ValueError, match="between 0 and trials"):
        calibrate.interval(3, 2)


# -- how it looks ---------------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_a_bar_and_a_coloured_table(toys, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "140")
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    with open_store(tmp_path) as store:
        done = next(Run(Registry.of(toys), store, progress=report.progress_for(stream)).looks())
    report.print_table(done, stream)
    shown = stream.getvalue()
    assert "draws" in shown
    assert "wrong-level" in shown
    assert "8 of 8 claims" in shown


def test_plain_progress_tells_the_time_that_is_left(monkeypatch) -> None:
    stream = io.StringIO()
    progress = report.progress_for(stream)
    monkeypatch.setattr(report, "SECONDS_BETWEEN_LINES", 0.0)
    progress.start(10)
    progress.advance(4, 75.0)
    progress.advance(6, 7300.0)
    progress.finish()
    lines = stream.getvalue().splitlines()
    assert lines == [
        "drawing 10 replicates",
        "drawn 4 of 10, about 1 min 15 s left",
        "drawn 10 of 10, about 2 h 01 min left",
        "drawn 10 of 10",
    ]


def test_plots_are_quick(toys, tmp_path) -> None:
    with open_store(tmp_path) as store:
        results = next(Run(Registry.of(toys), store).looks()).results
    write_plots(results[:1], tmp_path / "first")  # imports matplotlib and reads its fonts
    start = time.process_time()
    assert write_plots(results * 2, tmp_path / "plots") == 16
    assert time.process_time() - start < 16 / 6  # sixty of them in ten seconds


def test_numbers_that_json_lacks_become_null() -> None:
    assert report._jsonable(math.nan) is None
    assert report._jsonable(float(np.inf)) is None
    assert report._jsonable(1.5) == 1.5
    assert Levels.of_run(1).bound > 3
