"""What a log of records offers, however it is kept: read whole into the process, or by queries of a database."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from clew.memory.changes import Change, Tried
from clew.memory.line import Line
from clew.memory.records import MemoryRecord

Clock = Callable[[], float]
"""Gives the time, in seconds since 1970."""


class Told(NamedTuple):
    """Something an index has to know: the version that a change opened, as it was told; or None for the version of a
    record that has been purged since, which is to be forgotten. `uid` names the version, `position` the change."""

    position: int
    uid: str
    record: MemoryRecord | None


class Known(Protocol):
    """What is known of the records of a log. The pure `clew.memory.state.State` is the model of it."""

    def knows(self, id: str) -> bool:
        """Whether anything was ever told of a record."""

    def keyed(self, key: str) -> Change | None:
        """The change that was asked for under a key."""

    def line(self, id: str) -> Line | None:
        """All that is known of a record."""

    def of_kind(self, kind: str) -> Iterator[Line]:
        """The lines of the records that are or were of a kind, those known first come first."""

    def record(self, id: str, at: float) -> MemoryRecord | None:
        """The record with this id as it held at a time, by what was known then."""

    def records(self, at: float, *kinds: str) -> Iterator[MemoryRecord]:
        """The records that held at a time, of some kinds or all, in the order in which they came to be known."""

    def latest(self, kind: str, at: float) -> Iterator[MemoryRecord]:
        """The records of a kind that held at a time, the one known last first."""

    def same(self, record: MemoryRecord, at: float) -> MemoryRecord | None:
        """A record that says the same at a time: of several the one that was known first."""

    def closed_since(self, record: MemoryRecord) -> bool:
        """True when the same was told from the same sources before, and has been closed or deleted since."""

    def has(self, record: MemoryRecord) -> bool:
        """True when there is a version of this record that says the same from the same time on."""

    def mark(self, name: str) -> float:
        """The time after which the memory of a name shows records (0: it shows all)."""

    def tried(self, task: str, id: str) -> Sequence[Tried]:
        """What came of a task for a record, oldest first."""

    def trials(self, task: str) -> Mapping[str, Sequence[Tried]]:
        """The same for all records."""


Decide = Callable[[Known, Clock], Iterator[Change]]
"""Yields changes, from what is known and the time; each is taken in before the next is asked for. It is called again
when the store has to try again."""


class Ledger(Protocol):
    """Where the changes of one namespace are kept, and what they come to."""

    def known(self) -> Known:
        """What is known now, with what other processes have written."""

    def newest(self) -> float:
        """The time of the newest change."""

    def changes(self, after: int = 0) -> Iterator[Change]:
        """The changes that arrived after a position, in that order."""

    def commit(
        self, decide: Decide, clock: Clock, about: Sequence[MemoryRecord] = (), keys: Sequence[str] = ()
    ) -> list[Change]:
        """Adds the changes that are decided on, all or none, with no writer in between; what was added.

        `about` and `keys` are what will be asked about: it can be looked up together.
        """

    def merge(self, changes: Iterable[Change]) -> int:
        """Adds changes made elsewhere, all or none; how many were new."""

    def purge(self, id: str, clock: Clock) -> bool:
        """Erases what was said as a record from all that is kept; False when nothing was."""

    def told(self, after: int) -> Iterator[Told]:
        """What an index has to know, after a position and in the order of position."""

    def mark_of(self, position: int) -> str:
        """Identifies the change at a position; "" when there is none."""

    def held(self, uids: Collection[str], at: float) -> dict[str, MemoryRecord]:
        """Of these versions those that held at a time by what was known then, each as it was told then."""

    def around(self, uids: Collection[str], distance: int) -> dict[str, list[tuple[str, int]]]:
        """The versions next to each in its session, with how far they stand behind (negative: before) it."""
