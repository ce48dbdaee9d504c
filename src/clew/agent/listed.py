"""What was recalled, as a model reads it in a list."""

from __future__ import annotations

from datetime import UTC, datetime

from clew.memory.render import labelled
from clew.memory.why import Recalled
from clew.policies.shrink import head_tail

LINE = 800
"""Characters shown of a remembered record in a list."""


def line(found: Recalled) -> str:
    """A recalled record with its id, by which it can be forgotten."""
    record = found.record
    when = record.valid_from if record.valid_from is not None else record.created
    day = f", {datetime.fromtimestamp(when, UTC):%Y-%m-%d}" if when else ""
    who = f", {labelled(record.speaker or record.role)}"
    return f"- [id {record.id}{day}{who}] {head_tail(' '.join(record.text.split()), LINE)}"
