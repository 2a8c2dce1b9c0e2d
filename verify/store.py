"""The draws of all experiments in one SQLite file: a row per replicate, numbers only, safe against a kill.

Each batch is committed when it arrives, so a killed run loses what the workers were at; rows of an outdated
sampler are recognised by the hash of its source and dropped. A row is a JSON header and raw float64 bytes.
"""

from __future__ import annotations

import json
import sqlite3
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

Columns = dict[str, Any]  # name -> array (replicates, ...), or a list of arrays where the shapes differ

_VERSION = 1
_SCHEMA = """
CREATE TABLE IF NOT EXISTS draws (
    experiment TEXT NOT NULL, seed INTEGER NOT NULL, size INTEGER NOT NULL, replicate INTEGER NOT NULL,
    source TEXT NOT NULL, seconds REAL NOT NULL, content BLOB NOT NULL,
    PRIMARY KEY (experiment, seed, size, replicate)
)
"""


def encode(values: Mapping[str, Any]) -> bytes:
    """One draw as bytes: length of the header, JSON header (names and shapes), float64 little-endian.

    Raises ValueError if there is no value, or if one is not a finite real number or array of them.
    """
    if not values:
        raise ValueError("a sampler must return at least one observable, got none")
    arrays = {}
    for name, value in values.items():
        array = np.asarray(value)
        if array.dtype.kind not in "biuf":
            raise ValueError(f"observable {name} must be real, got dtype {array.dtype}")
        if not np.all(np.isfinite(array)):
            raise ValueError(f"observable {name} must be finite, got {array[~np.isfinite(array)].ravel()[0]}")
        arrays[name] = array.astype("<f8")
    header = json.dumps({name: array.shape for name, array in arrays.items()}).encode()
    return struct.pack("<I", len(header)) + header + b"".join(array.tobytes() for array in arrays.values())


def decode(content: bytes) -> dict[str, NDArray[np.float64]]:
    """The observables of one draw (read-only arrays; scalars have shape ())."""
    (length,) = struct.unpack_from("<I", content)
    numbers = np.frombuffer(content, "<f8", offset=4 + length) if (len(content) - 4 - length) % 8 == 0 else None
    if numbers is None:
        raise ValueError("a stored draw is damaged: its length does not fit its header; delete the draws file")
    values, start = {}, 0
    for name, shape in json.loads(content[4 : 4 + length]).items():
        stop = start + int(np.prod(shape, dtype=int))
        values[name] = numbers[start:stop].reshape(shape)
        start = stop
    return values


def _columns(contents: list[bytes]) -> Columns:
    """Draws of one size as columns; one reshape for all rows when they share a header."""
    (length,) = struct.unpack_from("<I", contents[0])
    head = contents[0][: 4 + length]
    if any(len(row) != len(contents[0]) or not row.startswith(head) for row in contents):
        draws = [decode(row) for row in contents]
        return {name: _stack([draw[name] for draw in draws]) for name in draws[0]}
    numbers = np.frombuffer(b"".join(row[4 + length :] for row in contents), "<f8").reshape(len(contents), -1)
    columns, start = {}, 0
    for name, shape in json.loads(head[4:]).items():
        stop = start + int(np.prod(shape, dtype=int))
        columns[name] = numbers[:, start:stop].reshape(len(contents), *shape)
        start = stop
    return columns


def _stack(arrays: list[NDArray[np.float64]]) -> Any:
    return np.stack(arrays) if len({array.shape for array in arrays}) == 1 else arrays


class StoreError(Exception):
    """The file is not a draws file of this version, or cannot be opened."""


class DrawStore:
    """Draws by (experiment, seed, size, replicate). Use as a context manager; only one thread writes."""

    def __init__(self, path: Path | str) -> None:
        self.path = path
        try:
            self._connection = sqlite3.connect(path, timeout=60)
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute("PRAGMA synchronous=NORMAL")
            version = self._connection.execute("PRAGMA user_version").fetchone()[0]
            if version not in (0, _VERSION):
                raise StoreError(f"{path} was written by another version ({version}, this is {_VERSION}); move it away")
            with self._connection:
                self._connection.execute(_SCHEMA)
                self._connection.execute(f"PRAGMA user_version={_VERSION}")
        except sqlite3.Error as error:
            raise StoreError(
                f"{path} cannot be used as a draws file ({error}); move it away or choose another --out"
            ) from error

    def __enter__(self) -> DrawStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Commit what is pending and close the file."""
        self._connection.commit()
        self._connection.close()

    def drop_stale(self, key: str, source: str) -> int:
        """Delete the draws of this experiment that another version of the sampler made; returns how many."""
        with self._connection:
            return self._connection.execute(
                "DELETE FROM draws WHERE experiment = ? AND source != ?", (key, source)
            ).rowcount

    def replicates(self, key: str, seed: int) -> dict[int, set[int]]:
        """The stored replicates of an experiment at each size."""
        found: dict[int, set[int]] = {}
        for size, replicate in self._connection.execute(
            "SELECT size, replicate FROM draws WHERE experiment = ? AND seed = ?", (key, seed)
        ):
            found.setdefault(size, set()).add(replicate)
        return found

    def mean_seconds(self, key: str) -> dict[int, float]:
        """The mean time of a draw of this experiment at each size that was ever drawn, any seed."""
        return dict(
            self._connection.execute(
                "SELECT size, AVG(seconds) FROM draws WHERE experiment = ? GROUP BY size", (key,)
            ).fetchall()
        )

    def seconds(self, key: str, seed: int, plan: Mapping[int, int]) -> float:
        """The computing time of the draws that a plan (size -> replicates) reads."""
        total = 0.0
        for size, count in plan.items():
            row = self._connection.execute(
                "SELECT TOTAL(seconds) FROM draws WHERE experiment = ? AND seed = ? AND size = ? AND replicate < ?",
                (key, seed, size, count),
            ).fetchone()
            total += row[0]
        return total

    def add(self, key: str, seed: int, size: int, source: str, rows: Iterable[tuple[int, bytes, float]]) -> None:
        """Store draws `(replicate, encoded, seconds)` and commit them."""
        with self._connection:
            self._connection.executemany(
                "INSERT OR REPLACE INTO draws VALUES (?, ?, ?, ?, ?, ?, ?)",
                [(key, seed, size, replicate, source, seconds, blob) for replicate, blob, seconds in rows],
            )

    def load(self, key: str, seed: int, size: int, count: int) -> Columns:
        """The first `count` replicates at one size, in order, as columns.

        Raises KeyError if fewer are stored.
        """
        contents = [
            row[0]
            for row in self._connection.execute(
                "SELECT content FROM draws WHERE experiment = ? AND seed = ? AND size = ? AND replicate < ? "
                "ORDER BY replicate",
                (key, seed, size, count),
            )
        ]
        if len(contents) < count:
            raise KeyError(f"{count} draws at size {size} are needed, {len(contents)} are stored")
        return _columns(contents)
