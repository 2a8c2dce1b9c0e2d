"""Checks user input against the declarations of the chapters: domain and meaning are not typed a second time.

Every error names the argument, what was given, what is allowed and what the argument is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy as sp

from derivations.core import Quantity


def allowed(quantity: Quantity, closed: bool = False) -> str:
    """The domain of a quantity in words, such as `> 0` or `an integer >= 1`."""
    domain = quantity.domain
    low, high = domain.inf, domain.sup
    kind = "an integer " if quantity.is_integer else ""
    parts = []
    if low.is_finite:
        parts.append(f"{'>' if _open(domain, 'left') and not closed else '>='} {low}")
    if high.is_finite:
        parts.append(f"{'<' if _open(domain, 'right') and not closed else '<='} {high}")
    return kind + (" and ".join(parts) or "finite")


def check(quantity: Quantity, value: Any, *, name: str | None = None, closed: bool = False) -> Any:
    """`value` as a float array (or a 0-d array for a scalar), after checking it against the declared domain.

    `name` replaces the quantity's name in the message; `closed` also allows the boundary of an open domain, where
    the caller has a limit to give. Raises ValueError for text, complex, NaN, infinite or out-of-domain values.
    """
    label = name or quantity.name
    array = real_array(label, value, quantity.meaning)
    if not array.size:
        raise ValueError(f"{label} must not be empty, got {value!r} ({quantity.meaning})")
    low, high = float(quantity.domain.inf), float(quantity.domain.sup)
    bad = (array < low) | (array > high)
    if not closed:
        bad |= ((array == low) & _open(quantity.domain, "left")) | ((array == high) & _open(quantity.domain, "right"))
    if quantity.is_integer:
        bad |= array != np.round(array)
    if bad.any():
        raise ValueError(f"{label} must be {allowed(quantity, closed)}, got {_first(array, bad)} ({quantity.meaning})")
    return array


def real_array(label: str, value: Any, meaning: str = "") -> Any:
    """`value` as an array of finite floats. Raises ValueError that names it otherwise."""
    note = f" ({meaning})" if meaning else ""
    try:
        array = np.asarray(value)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{label} must be a number or an array of numbers, got {value!r}{note}") from error
    if array.dtype.kind not in "iuf" or _holds_bool(value):
        raise ValueError(f"{label} must be real, got {value!r} of type {array.dtype}{note}")
    array = array.astype(float)
    if not np.isfinite(array).all():
        raise ValueError(f"{label} must be finite, got {_first(array, ~np.isfinite(array))}{note}")
    return array


def scalar(quantity: Quantity, value: Any, *, name: str | None = None, closed: bool = False) -> float:
    """`check` for a single number."""
    array = check(quantity, value, name=name, closed=closed)
    if array.ndim:
        raise ValueError(f"{name or quantity.name} must be one number, got an array of shape {array.shape}")
    return float(array)


def broadcast(**arrays: Any) -> Any:
    """The named arrays broadcast together. Raises ValueError that names them if their shapes do not fit."""
    try:
        return np.broadcast_arrays(*arrays.values())
    except ValueError as error:
        shapes = " and ".join(f"{name} {np.shape(array)}" for name, array in arrays.items())
        raise ValueError(f"shapes must broadcast, got {shapes}") from error


def plain(array: Any) -> Any:
    """A Python scalar for a 0-d array, the array itself otherwise: scalars in, scalars out."""
    return array.item() if np.ndim(array) == 0 else array


def _holds_bool(value: Any) -> bool:
    """Whether a truth value hides among the numbers of a list, where numpy would read it as 0 or 1."""
    if isinstance(value, list | tuple):
        return any(_holds_bool(part) for part in value)
    return isinstance(value, bool | np.bool_)


def _open(domain: sp.Set, side: str) -> bool:
    return bool(getattr(domain, f"{side}_open", False))


def _first(array: Any, bad: Any) -> str:
    value = array[bad].flat[0] if array.ndim else array
    return f"{float(value):.12g}" if array.ndim == 0 else f"{float(value):.12g} at index {int(np.flatnonzero(bad)[0])}"
