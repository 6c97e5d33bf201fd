"""What the sources of one release say about one target architecture."""

from __future__ import annotations

from dataclasses import dataclass


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
