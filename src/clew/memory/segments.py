"""What a record's line comes to, version by version: what a table can hold and be asked about."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from math import inf

from msgspec import Struct

from clew.memory.changes import Opened
from clew.memory.line import Line
from clew.memory.records import MemoryRecord


class Segment(Struct, frozen=True, gc=False):
    """A version, by the change that opened it: from `since` until before `until` it is the record that is shown.

    `record` is how it is told by all that is known; before the line's last change it may have been told otherwise.
    It is None where the version is only shown before that.
    """

    uid: str
    since: float
    until: float
    record: MemoryRecord | None


def segments(line: Line) -> Iterator[Segment]:
    """The segments of a line, in the order of their beginnings.

    At a time the last version counts that has begun and is known by then. So a version is shown from when both
    are so, until both are so for any that stands after it, or its own end has come, or all of it is forgotten.
    """
    seen = [max(version.start, version.known) for version in line.versions]
    created, changed = line.first[0] if line.told else 0.0, line.changed
    seen = [max(version.start, version.known) for version in line.versions]
    over = [*accumulate(reversed(seen), min, initial=line.forgotten)][-2::-1] if seen else []
    for place, version in enumerate(line.versions):
        if isinstance(version.body, Opened):
            end = version.body.record.valid_to
            until = max(seen[place], min(over[place], inf if end is None else end))
            record = line.version(place, created) if until > changed else None
            yield Segment(version.uid, seen[place], until, record)
