from __future__ import annotations
class ConfigClassTable:
    def __init__(self, rules=None): pass
    def lookup(self, runtime, release):
        def f(model_type, config):
            if model_type in ("llama","qwen3","deepseek_v2","deepseek_v3","kimi_k2"):
                return "LlamaConfig", {"attention_bias":False,"mlp_bias":False,"hidden_act":"silu",**config}
            return None
        return f
