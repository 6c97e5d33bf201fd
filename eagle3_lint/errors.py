"""Errors for people."""

from __future__ import annotations


class InputError(Exception):
    """Bad input: one line that says what is wrong, where, and what to do. Exit code 2."""
