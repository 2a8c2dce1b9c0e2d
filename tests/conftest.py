"""Settings of the whole suite: one BLAS thread, and property tests that draw the same examples in every run."""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # before NumPy is imported: small matrices lose more than they gain by threads

from hypothesis import settings  # noqa: E402 (the threads come first)

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")
