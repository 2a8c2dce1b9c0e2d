"""Time and error of other packages on this project's tasks, each in an environment of its own (`make bench-peers`).

`peer NAME` runs inside the environment of the peers and prints JSON; without arguments this script runs every peer with
a time limit, runs the project on the same task, and prints a table.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

LIMIT = 300  # seconds a task may take
WIDE = np.linspace(-6, 6, 100_000)  # well beyond the support of MP(1/2) ⊠ MP(1/4): outside, the density must be 0
ATOMS = np.linspace(-1, 1, 32) ** 3
SPREAD = 0.1
NARROW = np.linspace(-1.8, 1.8, 1200)


def rmtool_product() -> Any:
    import rmtool
    import sympy as sp

    law = rmtool.AtimesB(rmtool.wishartpol(sp.Rational(1, 2)), rmtool.wishartpol(sp.Rational(1, 4)))
    return rmtool.Lmz2pdf(law, WIDE).density


def freealg_product() -> Any:
    import freealg

    rng = np.random.default_rng(0)
    left, right = rng.standard_normal((1000, 2000)), rng.standard_normal((2000, 4000))
    factor = left @ right
    form = freealg.AlgebraicForm(np.linalg.eigvalsh(factor @ factor.T / (2000 * 4000)))
    form.fit(3, 3)
    return form.density(WIDE)


def freealg_sum() -> Any:
    import freealg

    weights = np.full(ATOMS.size, 1 / ATOMS.size)
    return freealg.distributions.DeformedWigner(list(ATOMS), list(weights), sigma=np.sqrt(SPREAD)).density(NARROW)


PEERS: dict[str, Callable[[], Any]] = {
    "rmtool product": rmtool_product,
    "freealg product": freealg_product,
    "freealg sum": freealg_sum,
}


def own(task: str) -> tuple[float, Any, Any]:
    """Seconds, density and points of this project on a task."""
    from derivations.free_probability import MarchenkoPastur
    from numerics.free_convolution import SemicircleSum
    from numerics.free_law import FreeLaw

    points = WIDE if task == "product" else NARROW
    start = time.perf_counter()
    law = (
        FreeLaw(MarchenkoPastur(0.5) * MarchenkoPastur(0.25))
        if task == "product"
        else SemicircleSum(ATOMS, variance=SPREAD)
    )
    density = law.pdf(points)
    return time.perf_counter() - start, density, points


def run(python: str, name: str) -> dict[str, Any]:
    """One peer in its own environment, with the time limit; a failure is a row of the table, not an exception."""
    try:
        done = subprocess.run(
            [python, __file__, "peer", name], capture_output=True, text=True, timeout=LIMIT, check=True
        )
    except subprocess.TimeoutExpired:
        return {"seconds": float(LIMIT), "failure": f"not finished after {LIMIT} s"}
    except subprocess.CalledProcessError as error:
        return {"failure": (error.stderr.strip().splitlines() or ["no message"])[-1][:60]}
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["peer"]:
        start = time.perf_counter()
        density = np.asarray(PEERS[arguments[1]](), dtype=float).ravel()
        print(json.dumps({"seconds": time.perf_counter() - start, "density": density.tolist()}))
        return 0
    print(f"{'task':9s} {'tool':14s} {'seconds':>9s} {'mass':>10s} {'largest error':>14s}")
    for task in ("product", "sum"):
        seconds, right, points = own(task)
        print(f"{task:9s} {'this project':14s} {seconds:9.2f} {np.trapezoid(right, points):10.6f} {'(reference)':>14s}")
        for name in (n for n in PEERS if n.endswith(task)):
            found = run(arguments[0] if arguments else sys.executable, name)
            if "failure" in found:
                print(f"{task:9s} {name.split()[0]:14s} {found.get('seconds', float('nan')):9.2f} {found['failure']}")
                continue
            density = np.array(found["density"])
            error, mass = np.abs(density - right).max(), np.trapezoid(density, points)
            print(f"{task:9s} {name.split()[0]:14s} {found['seconds']:9.2f} {mass:10.6f} {error:14.3g}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
