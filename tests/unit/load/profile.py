"""How many examples hypothesis tries: few by default, many with EAGLE3_LINT_PROFILE=thorough."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

_PROFILES = {
    "quick": settings(max_examples=250, deadline=None),
    "thorough": settings(
        max_examples=20_000, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    ),
}
PROFILE = _PROFILES[os.environ.get("EAGLE3_LINT_PROFILE", "quick")]
