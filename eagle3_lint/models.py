from __future__ import annotations
def find_target_model(text, rules=None): return None
def named_in_config(config, rules=None): return None
def known_models(rules=None): return []
