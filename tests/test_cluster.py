"""Draws from a Dask cluster of two processes: the same as local ones, also when one of them is killed in the middle.

The scheduler and the workers are processes of their own, as on other machines; bad addresses are told at once.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from distributed import Client

from tests.engine_toys import PLAN, chapter, claims, experiment, slow_chapter
from tests.test_engine_run import stored
from verify import cluster as module
from verify.__main__ import main
from verify.cluster import connected
from verify.randomness import Batch, WorkerError, draw, draw_on_cluster, library_versions
from verify.run import Registry, Run, RunError, Silent, UsageError, open_store, recipe_of, sample
from verify.samplers import source_hash

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Processes:
    """A scheduler's address, and its workers."""

    address: str
    workers: list[subprocess.Popen[bytes]]


@pytest.fixture(scope="module")
def processes(tmp_path_factory) -> Iterator[Processes]:
    """A scheduler and two workers of one thread, in process groups that do not outlive the tests."""
    folder = tmp_path_factory.mktemp("cluster")
    file, started = folder / "scheduler.json", []

    def start(*command: str) -> subprocess.Popen[bytes]:
        with (folder / f"log-{len(started)}").open("wb") as log:
            started.append(
                subprocess.Popen(
                    [sys.executable, "-m", "dask", *command, "--no-dashboard", "--scheduler-file", str(file)],
                    cwd=ROOT,
                    env={**os.environ, "PYTHONPATH": str(ROOT)},
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            )
        return started[-1]

    start("scheduler", "--host", "127.0.0.1", "--port", "0")
    place = ("--nthreads", "1", "--no-nanny", "--local-directory", str(folder))
    workers = [start("worker", *place) for _ in range(2)]
    try:
        with Client(scheduler_file=str(file), timeout=60, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=60)
            address = client.scheduler.address
        yield Processes(address, workers)
    finally:
        for process in started:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


class KillsOne(Silent):
    """A worker is killed when a quarter of the draws are stored."""

    def __init__(self, worker: subprocess.Popen[bytes]) -> None:
        self.worker, self.draws, self.at = worker, 0, 0

    def advance(self, draws: int, seconds_left: float) -> None:
        self.draws += draws
        if not self.at and self.draws >= sum(PLAN.values()) / 4:
            self.at = self.draws
            self.worker.kill()


def test_a_killed_worker_costs_its_own_batches_alone(tmp_path, processes) -> None:
    registry = Registry.of([slow_chapter()])
    killer = KillsOne(processes.workers[0])
    with connected(processes.address) as cluster, open_store(tmp_path / "cluster") as store:
        assert cluster.workers == 2
        far = next(Run(registry, store, cluster=cluster, progress=killer).looks())
    assert processes.workers[0].wait(timeout=10) == -signal.SIGKILL
    assert 0 < killer.at < sum(PLAN.values()) == far.draws
    with open_store(tmp_path / "local") as store:
        near = next(Run(registry, store).looks())
    assert stored(tmp_path / "cluster" / "draws.sqlite") == stored(tmp_path / "local" / "draws.sqlite")
    assert [r.judgement for r in far.results] == [r.judgement for r in near.results]


def test_the_command_draws_on_the_one_that_is_left(tmp_path, processes, capsys) -> None:
    """A single worker: joblib alone would run everything in this process."""
    toys = [chapter(claims(experiment()))]
    assert main(["half", "--dask", processes.address, "--out", str(tmp_path / "far")], toys) == 0
    assert "1 of 1 claims" in capsys.readouterr().out
    assert main(["explain", "half", "--dask", processes.address, "--out", str(tmp_path / "far")], toys) == 0
    assert "verdict: SUPPORTED" in capsys.readouterr().out
    assert main(["half", "--workers", "1", "--out", str(tmp_path / "near")], toys) == 0
    assert stored(tmp_path / "far" / "draws.sqlite") == stored(tmp_path / "near" / "draws.sqlite")


def test_errors_of_a_sampler_and_of_a_worker(tmp_path, processes) -> None:
    broken = recipe_of(experiment("broken", breaks_at=32))
    with connected(processes.address) as cluster, open_store(tmp_path) as store:
        right = {"toy": source_hash("toy")}
        done = sample([(broken, {16: 2, 32: 2})], store, right, seed=0, workers=1, cluster=cluster)
        assert "experiment broken, size 32, replicate 0, seed 0: RuntimeError" in done.errors[broken.key]
        whole = recipe_of(experiment())
        with pytest.raises(RunError, match="another version of the sampler of model 'toy'"):
            sample([(whole, {16: 2})], store, {"toy": "another"}, seed=0, workers=1, cluster=cluster)
        unknown = replace(whole, module="tests.nowhere", model="nobody")
        with pytest.raises(RunError, match=r"gave up: ModuleNotFoundError: No module named 'tests\.nowhere'"):
            sample([(unknown, {16: 2})], store, {"nobody": ""}, seed=0, workers=1, cluster=cluster)


def test_a_run_that_is_stopped_leaves_the_cluster_usable(tmp_path, processes) -> None:
    class Stops(Silent):
        def advance(self, draws: int, seconds_left: float) -> None:
            raise KeyboardInterrupt

    registry = Registry.of([slow_chapter()])
    with connected(processes.address) as cluster, open_store(tmp_path) as store:
        first = next(Run(registry, store, cluster=cluster, progress=Stops()).looks())
        assert first.stopped
        assert 0 < first.draws < sum(PLAN.values())
        rest = next(Run(registry, store, cluster=cluster).looks())
    assert first.draws + rest.draws == sum(PLAN.values())
    assert rest.exit_code == 0


def test_batches_that_dask_gives_up_end_the_run(tmp_path, processes) -> None:
    """The last test that draws on the cluster: it ends the second worker, and Dask tries nothing again."""
    with Client(processes.address, set_as_default=False) as client:
        client.run_on_scheduler(lambda dask_scheduler: setattr(dask_scheduler, "allowed_failures", 0))
    killer = KillsOne(processes.workers[1])
    with connected(processes.address) as cluster, open_store(tmp_path) as store:
        run = Run(Registry.of([slow_chapter()]), store, cluster=cluster, progress=killer)
        with pytest.raises(RunError, match="gave up: KilledWorker"):
            next(run.looks())
    assert 0 < killer.at <= len(stored(tmp_path / "draws.sqlite")) < sum(PLAN.values())
    with pytest.raises(UsageError, match="the scheduler has no worker"), connected(processes.address):
        pass


def test_a_worker_makes_the_draws_of_the_run_or_none() -> None:
    batch = Batch(recipe_of(experiment()), 0, 16, (0, 1))
    source, versions = source_hash("toy"), library_versions()
    far, near = draw_on_cluster(batch, source, versions), draw(batch)
    assert [row[:2] for row in far.rows] == [row[:2] for row in near.rows]
    with pytest.raises(WorkerError, match=r"a worker has numpy .*, the run has 1\.0"):
        draw_on_cluster(batch, source, {**versions, "numpy": "1.0"})
    with pytest.raises(WorkerError, match="another version of the sampler"):
        draw_on_cluster(batch, source[1:], versions)


@pytest.mark.parametrize(
    "address",
    ["", "host", "host:", "host:port", "host:99999", "tcp://:8786", "http://host:8786", "tcp://host:8786/path", "::1"],
)
def test_a_malformed_address_exits_with_2(tmp_path, capsys, address) -> None:
    assert main([f"--dask={address}", "--out", str(tmp_path / "out")], [chapter(claims(experiment()))]) == 2
    told = capsys.readouterr().err
    assert (
        f"must be the address of a Dask scheduler such as tcp://host:8786 (tcp, tls, ws, wss), got {address!r}" in told
    )
    assert not (tmp_path / "out").exists()


def test_an_address_where_nothing_answers_exits_with_2(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setattr(module, "SECONDS_TO_ANSWER", 0.3)
    toys = [chapter(claims(experiment()))]
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        for listening in (False, True):  # refused, then accepted without a word
            if listening:
                silent.listen()
            address = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
            assert main(["--dask", address, "--out", str(tmp_path / "out")], toys) == 2
            assert f"--dask {address}: no Dask scheduler answers there" in capsys.readouterr().err
    with pytest.raises(UsageError, match="cannot be used: TLS expects"), connected("tls://127.0.0.1:1"):
        pass
    assert not (tmp_path / "out").exists()


def test_workers_and_dask_exclude_each_other(capsys) -> None:
    assert main(["--dask", "tcp://host:1", "--workers", "2"], []) == 2
    assert "not allowed with argument" in capsys.readouterr().err


def test_without_dask_the_extra_is_named(monkeypatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"pip install -e '\.\[cluster\]'"), connected("tcp://host:8786"):
        pass


def test_dask_is_loaded_when_it_is_asked_for() -> None:
    script = "import sys, joblib, verify.__main__, verify.run, verify.cluster, verify.calibrate\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert not {"dask", "distributed"} & set(done.stdout.split())
