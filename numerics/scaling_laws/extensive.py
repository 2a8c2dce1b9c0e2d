"""The penalty of least test error at extensive rank, with factors (nuclear norm) and without (Frobenius norm)."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from derivations import state_evolution as equations
from numerics.state_evolution import LearnedAttention, solve, sweep
from numerics.validate import scalar

SCAN = np.geomspace(1e-3, 10.0, 13)  # weight decays between which the least test error is sought
STRONGER, WEAKER = 10.0, 0.1
EXTENSIONS = 4  # of the scan by a decade, where the least value is at its end
CLOSE = 1e-3  # in log λ


def best(
    alpha: float, kappa0: float, noise: float, tokens: int = 2, factorised: bool = True
) -> tuple[float, LearnedAttention]:
    """The weight decay λ of least test error (noisy labels) at extensive rank, and the solution there.

    Parameters
    ----------
    alpha, kappa0, noise, tokens : as in `state_evolution.solve`, for a Gaussian target.
    factorised : True for weight decay on factors (S = WWᵀ/√(pd), κ = 1), False for entries of S with (λd/2)‖S‖²_F.

    The minimum is flat: λ is found to 1e-2 or so, the test error to the accuracy of the solutions. Raises ValueError
    for bad input.
    """
    scalar(equations.alpha, alpha), scalar(equations.kappa0, kappa0), scalar(equations.noise, noise)
    if not isinstance(factorised, bool | np.bool_):
        raise ValueError(f"factorised must be True or False, got {factorised!r}")
    setting: dict[str, Any] = {
        "alpha": alpha,
        "kappa0": kappa0,
        "noise": noise,
        "tokens": tokens,
        "penalty": "nuclear" if factorised else "frobenius",
    }
    scan = _scanned(setting)
    least = min(range(len(scan)), key=lambda index: _value(scan[index]))
    ends = np.log([scan[max(least - 1, 0)].lam, scan[min(least + 1, len(scan) - 1)].lam])
    found = [scan[least]]

    def test_error(log_lam: float) -> float:
        one = solve(lam=float(np.exp(log_lam)), start=found[0] if found[0].m > 0 else None, **setting)
        if _value(one) < _value(found[0]):
            found[0] = one
        return _value(one)

    minimize_scalar(test_error, bounds=tuple(ends), method="bounded", options={"xatol": CLOSE})
    return found[0].lam, found[0]


def _value(solution: LearnedAttention) -> float:
    return solution.test_error if solution.converged else np.inf


def _scanned(setting: dict[str, Any]) -> list[LearnedAttention]:
    """Solutions in order of λ, far enough on both sides of the least test error."""
    scan = list(sweep("lam", SCAN, **setting))
    for _ in range(EXTENSIONS):
        values = [_value(one) for one in scan]
        least = int(np.argmin(values))
        if least == 0:
            scan[:0] = sweep("lam", scan[0].lam * np.geomspace(WEAKER, 1.0, 4)[:-1], **setting)
        elif least == len(scan) - 1:
            scan += sweep("lam", scan[-1].lam * np.geomspace(1.0, STRONGER, 4)[1:], **setting)
        else:
            break
    return scan
