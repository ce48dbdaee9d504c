"""From when until when a fact holds true, and what a newer fact does to an older one (Graphiti's rule)."""

from __future__ import annotations

from msgspec import Struct


class Interval(Struct, frozen=True):
    """From `start` until just before `end`, in seconds since 1970; None is unknown, and as an end "still"."""

    start: float | None = None
    end: float | None = None

    def holds(self, at: float) -> bool:
        """Whether the time lies inside."""
        return (self.start is None or self.start <= at) and (self.end is None or at < self.end)


def closed(old: Interval, new: Interval) -> Interval:
    """The older fact's interval after a newer fact contradicts it: it ends where the new one begins.

    It stays as it was if it had ended by then, if it begins after the new fact's end, if it is itself the newer of
    the two, or if a beginning is unknown (graphiti-core 0.31.2, `resolve_edge_contradictions`).
    """
    if old.end is not None and new.start is not None and old.end <= new.start:
        return old
    if new.end is not None and old.start is not None and new.end <= old.start:
        return old
    if old.start is not None and new.start is not None and old.start < new.start:
        return Interval(old.start, new.start)
    return old
