"""Reads one numeric array from a user's file: npy, npz, csv, parquet or safetensors. Nothing is ever unpickled.

Files above 1 GiB are memory-mapped where their format allows it. Every error says which file is wrong, and how.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import math
import operator
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAPPED_FROM = 2**30  # bytes
HEADER_LIMIT = 100 * 2**20  # bytes of a safetensors header; its own reference reader has the same limit
ROWS_AT_ONCE = 4096
_TYPES = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "BF16": "<u2",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "i1",
    "U64": "<u8",
    "U32": "<u4",
    "U16": "<u2",
    "U8": "u1",
}


class TableError(ValueError):
    """A file cannot be used; the message names it and says what is wrong with it."""


def read_array(path: Path, key: str | None = None) -> NDArray[Any]:
    """The one- or two-dimensional numeric array of a file; `key` names it where the file holds several.

    The suffix decides the format: .npy, .npz, .csv (or .tsv, .txt), .parquet, .safetensors. Raises TableError if the
    file is missing, damaged, empty, not numeric, of another shape, or if `key` is needed or unknown.
    """
    readers = {
        ".npy": _read_npy,
        ".npz": _read_npz,
        ".csv": _read_text,
        ".tsv": _read_text,
        ".txt": _read_text,
        ".parquet": _read_parquet,
        ".safetensors": _read_safetensors,
    }
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise TableError(f"{path}: the suffix must be one of {', '.join(readers)}, got {path.suffix or 'none'!r}")
    if not path.is_file():
        raise TableError(f"{path}: no such file")
    try:
        array = reader(path, key)
    except OSError as error:
        raise TableError(f"{path}: cannot be read ({error.strerror or error})") from error
    if array.dtype.kind not in "iuf":
        raise TableError(f"{path}: the entries must be real numbers, got type {array.dtype}")
    if array.ndim not in (1, 2) or not array.size:
        raise TableError(f"{path}: the array must have one or two axes and an entry, got shape {array.shape}")
    return array


def check_finite(path: Path, array: NDArray[Any]) -> None:
    """Raises TableError that says where an entry is infinite or undefined."""
    for start in range(0, len(array), ROWS_AT_ONCE):
        part = np.asarray(array[start : start + ROWS_AT_ONCE], dtype=float)
        wrong = np.argwhere(~np.isfinite(part))
        if wrong.size:
            first = tuple(int(index) for index in wrong[0])
            place = ", ".join(str(index) for index in (first[0] + start, *first[1:]))
            raise TableError(f"{path}: the entries must be finite, got {part[first]} at [{place}]")


def _read_npy(path: Path, key: str | None) -> NDArray[Any]:
    _no_key(path, key)
    try:
        large = path.stat().st_size > MAPPED_FROM
        found = np.load(path, mmap_mode="r" if large else None, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise TableError(f"{path}: not a readable .npy file ({error})") from error
    if not isinstance(found, np.ndarray):
        raise TableError(f"{path}: holds an archive, not one array; name it .npz")
    return found


def _read_npz(path: Path, key: str | None) -> NDArray[Any]:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            if isinstance(archive, np.ndarray):
                raise TableError(f"{path}: holds one array, not an archive; name it .npy")
            name = _chosen(path, key, list(archive.files))
            return np.asarray(archive[name])
    except (ValueError, EOFError, zipfile.BadZipFile, KeyError) as error:
        if isinstance(error, TableError):
            raise
        raise TableError(f"{path}: not a readable .npz file ({error})") from error


def _read_text(path: Path, key: str | None) -> NDArray[Any]:
    """Numbers in columns separated by commas, semicolons, tabs or spaces; a first line of names is skipped."""
    _no_key(path, key)
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise TableError(f"{path}: not a text file ({error.reason} at byte {error.start})") from error
    rows = [(number, line) for number, line in enumerate(lines, start=1) if line.strip()]
    if not rows:
        raise TableError(f"{path}: empty")
    sample = "".join(line for _, line in rows[:2])
    separator = next((mark for mark in (",", ";", "\t") if mark in sample), None)
    if _numbers(rows[0][1], separator) is None:
        rows = rows[1:]
    values: list[list[float]] = []
    for number, line in rows:
        found = _numbers(line, separator)
        if found is None:
            raise TableError(f"{path}: line {number} holds something that is no number: {line.strip()[:60]!r}")
        if values and len(found) != len(values[0]):
            raise TableError(f"{path}: line {number} has {len(found)} columns, the lines before have {len(values[0])}")
        values.append(found)
    if not values:
        raise TableError(f"{path}: no line of numbers after the names of the columns")
    return np.array(values)


def _numbers(line: str, separator: str | None) -> list[float] | None:
    cells = line.strip().split(separator)
    if separator is not None and cells and not cells[-1].strip():
        cells = cells[:-1]
    try:
        return [float(cell) for cell in cells]
    except ValueError:
        return None


def _read_parquet(path: Path, key: str | None) -> NDArray[Any]:
    """The numeric columns side by side, or the column `key` alone (a column of lists gives a matrix)."""
    if importlib.util.find_spec("pyarrow") is None:
        raise TableError(
            f"{path}: reading parquet needs the package pyarrow; install the extra: pip install -e '.[parquet]', "
            "or save the matrix as .npy"
        )
    pyarrow = importlib.import_module("pyarrow")
    parquet = importlib.import_module("pyarrow.parquet")
    columns_read = None if key is None else [key]
    try:
        table = parquet.read_table(path, columns=columns_read, memory_map=path.stat().st_size > MAPPED_FROM)
    except (pyarrow.ArrowException, KeyError, ValueError) as error:
        raise TableError(f"{path}: not a readable parquet file ({str(error).splitlines()[0]})") from error
    if not table.num_columns or not table.num_rows:
        raise TableError(f"{path}: no entries{'' if key is None else f' in a column {key!r}'}")
    columns = []
    for name in table.column_names:
        column = table.column(name)
        if column.null_count:
            raise TableError(f"{path}: column {name!r} has {column.null_count} missing entries")
        columns.append(np.array(column.to_pylist()) if _of_lists(column) else np.asarray(column.to_numpy()))
        if columns[-1].dtype.kind not in "iuf":
            raise TableError(
                f"{path}: column {name!r} is not numeric (or its lists differ in length); choose one: --key"
            )
    if len(columns) == 1:
        return columns[0]
    return np.column_stack(columns)


def _of_lists(column: Any) -> bool:
    types = importlib.import_module("pyarrow.types")
    return any(check(column.type) for check in (types.is_list, types.is_fixed_size_list, types.is_large_list))


def _read_safetensors(path: Path, key: str | None) -> NDArray[Any]:
    """One tensor by its header: eight bytes of length, JSON with type, shape and place of each, then raw numbers."""
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")  # unsigned, so never negative
        if size < 8 or length > min(size - 8, HEADER_LIMIT):
            raise TableError(f"{path}: damaged: the header would be {length} bytes long, the file has {size}")
        try:
            header = json.loads(file.read(length).decode("utf-8"))
        except ValueError as error:
            raise TableError(f"{path}: damaged: its header is no JSON ({error})") from error
    if not isinstance(header, dict):
        raise TableError(f"{path}: damaged: its header is no table of tensors")
    header.pop("__metadata__", None)
    name = _chosen(path, key, list(header), [tensor for tensor, entry in header.items() if _axes(entry) == 2])
    return _tensor(path, name, header[name], 8 + length, size)


def _axes(entry: Any) -> int:
    return len(entry["shape"]) if isinstance(entry, dict) and isinstance(entry.get("shape"), list) else 0


def _tensor(path: Path, name: str, entry: Any, base: int, size: int) -> NDArray[Any]:
    try:
        kind, shape = entry["dtype"], tuple(operator.index(length) for length in entry["shape"])
        start, stop = (operator.index(place) for place in entry["data_offsets"])
    except (TypeError, KeyError, ValueError) as error:
        raise TableError(f"{path}: damaged: the header's entry for {name!r} is incomplete") from error
    if kind not in _TYPES:
        raise TableError(f"{path}: tensor {name!r} has the type {kind}; readable are {', '.join(_TYPES)}")
    dtype = np.dtype(_TYPES[kind])
    expected = math.prod(shape) * dtype.itemsize
    if not 0 <= start <= stop <= size - base or stop - start != expected or any(n < 0 for n in shape):
        raise TableError(
            f"{path}: damaged: tensor {name!r} of shape {shape} needs {expected} bytes, the header gives it "
            f"{stop - start} from {start}, and the file holds {size - base}"
        )
    if stop - start > MAPPED_FROM:
        raw: NDArray[Any] = np.memmap(path, dtype=dtype, mode="r", offset=base + start, shape=shape)
    else:
        with path.open("rb") as file:
            file.seek(base + start)
            raw = np.frombuffer(file.read(stop - start), dtype=dtype).reshape(shape)
    if kind != "BF16":
        return raw
    return (raw.astype(np.uint32) << 16).view(np.float32)  # the upper half of a single-precision number


def _chosen(path: Path, key: str | None, names: list[str], likely: list[str] | None = None) -> str:
    """The array that is meant: `key`, or the only one there is (or the only likely one)."""
    if key is not None:
        if key not in names:
            raise TableError(f"{path}: holds no array {key!r}; it holds {_listed(names)}")
        return key
    candidates = names if len(names) == 1 or likely is None else likely
    if len(candidates) == 1:
        return candidates[0]
    if not names:
        raise TableError(f"{path}: holds no array")
    raise TableError(f"{path}: holds {len(names)} arrays; choose one by --key: {_listed(candidates or names)}")


def _listed(names: list[str]) -> str:
    return ", ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")


def _no_key(path: Path, key: str | None) -> None:
    if key is not None:
        raise TableError(f"{path}: holds one array; --key {key} is for npz, parquet and safetensors")
