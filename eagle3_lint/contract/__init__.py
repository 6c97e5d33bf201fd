"""Contracts: what one draft class of one runtime expects, read from the data in ``rules/``."""
