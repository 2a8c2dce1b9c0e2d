"""A Dask cluster that draws: the batches of a run go to its workers through joblib, the outcomes come back.

Dask gives the batches of a worker that is lost to another one; a draw depends on its key alone, so nothing changes.
Only the run's own process writes the draws file. Needs the extra `cluster`; Dask is imported when it is asked for.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import logging
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from verify.randomness import Batch, Outcome, WorkerError, draw_on_cluster, library_versions
from verify.run import RunError, UsageError, closed_quietly

if TYPE_CHECKING:
    from distributed import Client

SCHEMES = ("tcp", "tls", "ws", "wss")
SECONDS_TO_ANSWER = 4
_START = "start one with `dask scheduler`, and its workers with `dask worker ADDRESS --nthreads 1 --nworkers auto`"


class Cluster:
    """The workers of a Dask cluster, through a client that is connected to its scheduler."""

    def __init__(self, client: Client, address: str) -> None:
        self._client, self.address = client, address

    @property
    def workers(self) -> int:
        """How many draws run at a time: the threads of all workers that are there now (at least 1)."""
        return max(1, sum(map(int, self._client.ncores().values())))

    def outcomes(self, batches: Iterator[Batch], sources: Mapping[str, str]) -> Iterator[Outcome]:
        """The outcomes of the batches in the order of arrival. `sources` maps a model to the hash of its sampler.

        While no worker is left it waits for another one. Raises RunError if a worker has another version of the
        sampler, NumPy or SciPy, or lacks the project, if Dask gives a batch up, or if the scheduler is lost.
        """
        from joblib import Parallel, delayed, parallel_config

        versions = library_versions()
        tasks = (delayed(draw_on_cluster)(batch, sources[batch.recipe.model], versions) for batch in batches)
        try:
            with parallel_config(backend=_backend(self._client)):
                pool = Parallel(n_jobs=-1, return_as="generator_unordered", batch_size=1, pre_dispatch="2*n_jobs")
            with closed_quietly(pool(tasks)) as found:
                for outcome in found:  # noqa: UP028 (`yield from` would close the generator itself, and aloud)
                    yield outcome
        except WorkerError as error:
            raise RunError(f"{error}; what was drawn is stored: update the project there and restart it") from error
        except Exception as error:  # whatever Dask says of a batch that it gives up, or of a scheduler that is gone
            raise RunError(
                f"the cluster {self.address} gave up: {type(error).__name__}: {error}\nWhat was drawn is stored; its "
                "workers need this project installed, and memory for their draws: mend the cluster and run again"
            ) from error


def _backend(client: Client) -> Any:
    """joblib's Dask backend without two traps.

    Of an error of Dask itself (not of a task) joblib would hear nothing and wait for ever; and where there is a single
    worker joblib would run everything here instead.
    """
    from joblib._dask import DaskDistributedBackend

    class Backend(DaskDistributedBackend):
        def effective_n_jobs(self, n_jobs: int) -> int:
            return max(2, int(super().effective_n_jobs(n_jobs)))

        def submit(self, func: Any, callback: Any = None) -> Any:
            job = super().submit(func, callback)
            job.add_done_callback(lambda done: callback(done.exception()) if done.exception() else None)
            return job

    return Backend(client=client)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without the client's log on the terminal: what matters is told by exceptions."""
    loggers = [logging.getLogger(name) for name in ("distributed", "distributed.client")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


@contextlib.contextmanager
def connected(address: str) -> Iterator[Cluster]:
    """The cluster whose scheduler answers at the address, such as "tcp://host:8786".

    Raises UsageError for a malformed address, if Dask is not installed, if no scheduler answers within some seconds, or
    if it has no worker.
    """
    _check(address)
    if importlib.util.find_spec("distributed") is None:
        raise UsageError("--dask needs the package distributed; install the extra: pip install -e '.[cluster]'")
    from distributed import Client

    try:
        kind = asyncio.run(_kind(address))
    except TypeError as error:  # tls without certificates in Dask's configuration
        raise UsageError(f"--dask {address} cannot be used: {error}") from error
    except Exception as error:  # refused, silent, or speaking another protocol
        raise UsageError(
            f"--dask {address}: no Dask scheduler answers there ({str(error) or 'no answer'}); {_START}"
        ) from error
    if kind != "Scheduler":
        raise UsageError(f"--dask {address} is the address of a {kind.lower()}; give that of its scheduler")
    with _quiet(), Client(address, timeout=SECONDS_TO_ANSWER, set_as_default=False) as client:
        found = client.run(importlib.util.find_spec, "verify")  # a task of a missing module would end the worker
        if not found:
            raise UsageError(f"--dask {address}: the scheduler has no worker; start some with `dask worker {address}`")
        bare = sorted(worker for worker, project in found.items() if project is None)
        if bare:
            raise UsageError(
                f"--dask {address}: {', '.join(bare)} cannot import the project; install it there, or start the "
                "workers in its folder"
            )
        yield Cluster(client, address)


def _check(address: str) -> None:
    """Raise UsageError unless the address is one of a host and a port."""
    try:
        parts = urlsplit(address if "://" in address else f"tcp://{address}")
        whole = parts.scheme in SCHEMES and parts.hostname and parts.port and not parts.path.strip("/")
    except ValueError:  # a port that is no number, or too large
        whole = False
    if not whole:
        raise UsageError(
            f"--dask must be the address of a Dask scheduler such as tcp://host:8786 "
            f"({', '.join(SCHEMES)}), got {address!r}"
        )


async def _kind(address: str) -> str:
    """What answers at the address: "Scheduler", "Worker", …"""
    from distributed import rpc
    from distributed.security import Security

    security = Security().get_connection_args("client")
    async with asyncio.timeout(SECONDS_TO_ANSWER):  # a client of its own would wait for a silent peer for ever
        async with rpc(address, timeout=SECONDS_TO_ANSWER, connection_args=security) as remote:
            return str((await remote.identity())["type"])
