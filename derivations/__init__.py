"""Symbolic derivations: one module per chapter, SymPy only, no numerics.

A chapter declares its symbols, derives its laws from other laws' statements and lists the claims that judge them.
Every public module of this package except `print` is a chapter; nothing is registered by hand.
"""
