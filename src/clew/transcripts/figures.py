"""Numbers and times as transcripts write them: anything that is not one reads as nothing."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from clew.messages import Usage


def reported(usage: Usage) -> Usage | None:
    """The usage if any was reported; None when all is zero."""
    return usage if usage.total else None


def count(value: Any) -> int:
    """A number of tokens, 0 for anything else."""
    return value if type(value) is int and value > 0 else 0


def seconds(value: Any) -> float:
    """Seconds since 1970 of an ISO 8601 time (UTC unless it says otherwise), of seconds, or of milliseconds.

    Numbers from 10^11 on are milliseconds (as seconds they would lie after the year 5000). 0 when it is none of these.
    """
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError):
            return 0.0
    if isinstance(value, int | float) and value > 0:
        return value / 1000 if value >= 1e11 else float(value)
    return 0.0


def mapping(value: Any) -> Mapping[str, Any]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}
