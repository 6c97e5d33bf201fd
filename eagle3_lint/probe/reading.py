"""What the sources of one release say about one target architecture."""

from __future__ import annotations

import re
from dataclasses import dataclass

#: Names of draft classes for EAGLE-3, in every runtime.
EAGLE3 = re.compile(r"eagle3|peagle", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Reading:
    """One architecture in one release.

    Attributes:
        place: file and line of its class.
        lacks: why it cannot feed an EAGLE-3 draft (a key of ``errors``); None when it can.
        hook: file and line of the method or base class that makes it a target; None without one.
        policy: how it turns layer ids into aux states, where that depends on the architecture.
        doubts: what makes one doubt that the hook works, to be confirmed by hand.
        draft: it is a draft class, registered like a model, but no target.
    """

    place: str
    lacks: str | None
    hook: str | None = None
    policy: str | None = None
    doubts: tuple[str, ...] = ()
    draft: bool = False


@dataclass(frozen=True, slots=True)
class Whitelist:
    """Substrings, one of which the target's text model_type must contain.

    Attributes:
        raises: class and text of the exception; ``{known}`` and ``{model_type}`` are filled in.
            Pydantic wraps a ValueError into its ValidationError, which is a ValueError too.
        place: file and line of the raise.
    """

    substrings: tuple[str, ...]
    raises: str
    place: str
