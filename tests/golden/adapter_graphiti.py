"""Graphiti: what a new fact does to the validity of older ones that contradict it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from clew.memory.validity import Interval, closed

Json = dict[str, Any]


def contradictions(case: Json) -> Json:
    """Every candidate on its own, as Graphiti does; `expired_at` is when that became known."""
    new = _interval(case["input"]["new"])
    invalidated, after = [], []
    for candidate in case["input"]["candidates"]:
        old = _interval(candidate)
        left = closed(old, new)
        expired = candidate.get("expired_at")
        if left != old:
            invalidated.append(candidate["uuid"])
            expired = expired or case["config"]["now"]
        after.append(
            {
                "uuid": candidate["uuid"],
                "valid_at": _text(left.start),
                "invalid_at": _text(left.end),
                "expired_at": _text(_seconds(expired)),
            }
        )
    return {"invalidated": invalidated, "after": after}


COMPONENTS = {"resolve_edge_contradictions": contradictions}


def _interval(given: Json) -> Interval:
    return Interval(_seconds(given["valid_at"]), _seconds(given["invalid_at"]))


def _seconds(text: str | None) -> float | None:
    if text is None:
        return None
    found = datetime.fromisoformat(text)
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def _text(seconds: float | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat()
