"""Reads a runtime's own sources by AST, and says where they differ from the contracts.

Nothing of the runtime is imported or run: an installed package, a wheel and a source folder are
all just files. ``rules/build`` makes the tables of target models with the same modules.
"""
