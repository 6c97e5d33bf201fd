"""Bytes → Checkpoint. Besides ``write``, only this package touches disk or network."""
