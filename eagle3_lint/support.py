from __future__ import annotations
from eagle3_lint.target_model import Support
class SupportTable:
    def __init__(self, rules=None): pass
    def registered(self, runtime, release): return lambda a: a in ("LlamaForCausalLM","Qwen3ForCausalLM")
    def of(self, target, model): return Support("yes")
