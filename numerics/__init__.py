"""Fast solvers compiled from the laws: one module per chapter that has numbers to give, plus a few shared ones.

Nothing is compiled at import; a formula is compiled when it is first evaluated and kept.
"""
