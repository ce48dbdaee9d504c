"""What was said, as one memory of a log sees it: the records after a mark that moves forward and takes nothing away.

Memories that share a log share what was said in it: a record that is appended to each of them is stored once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from clew.memory.changes import Marked
from clew.memory.log import RecordLog
from clew.memory.records import MemoryRecord

MESSAGE = "message"
"""The kind of a record of what was said or done."""


class Stream:
    """The messages in a log after the mark called `name`."""

    def __init__(self, log: RecordLog | None, name: str) -> None:
        self.log = log or RecordLog()
        self.name = name

    def append(self, record: MemoryRecord) -> MemoryRecord | None:
        """Stores the record as said; None for a blank one. Who says something is its speaker."""
        speaker = record.speaker or record.role
        return self.log.add(replace(record, kind=MESSAGE, key="", value="", speaker=speaker), again=True)

    def backward(self) -> Iterator[MemoryRecord]:
        """The records, the newest first; reads only as many as are taken."""
        mark = self.log.mark(self.name)
        for record in self.log.latest(MESSAGE):
            if record.created <= mark:
                return
            yield record

    def records(self) -> list[MemoryRecord]:
        """The records, oldest first."""
        return list(self.backward())[::-1]

    def last(self, n: int, wanted: Callable[[MemoryRecord], bool] = lambda record: True) -> list[MemoryRecord]:
        """The last `n` (0 or less: all) records that are wanted, oldest first."""
        found: list[MemoryRecord] = []
        for record in self.backward():
            if wanted(record):
                found.append(record)
                if len(found) == n:
                    break
        return found[::-1]

    def pass_over(self, last: MemoryRecord) -> None:
        """Moves the mark to a record: it and all before it are out of sight."""
        self.log.write(lambda at: Marked(self.name, last.created))

    def begin(self) -> None:
        """Moves the mark to now."""
        self.log.write(lambda at: Marked(self.name, at))
