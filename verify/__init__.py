"""Monte Carlo evidence for the laws: samplers, measurements, judgement, report.

`python -m verify` judges every claim of every chapter. This module imports nothing, so that worker processes
start fast; the pieces are `samplers`, `randomness`, `store`, `measure`, `judge`, `run`, `report` and `plots`.
"""
