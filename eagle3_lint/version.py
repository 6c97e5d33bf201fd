"""The version, as a constant: reading package metadata would cost every start 60 ms."""

__version__ = "0.1.0"
