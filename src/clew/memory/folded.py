"""A log of records that is read whole and kept in the process: for logs that are no SQL database."""

from __future__ import annotations

import math
import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from clew.memory.changes import Change, Opened, Purged, change, concerns, from_row, kept, order, purges_of, to_row
from clew.memory.known import Clock, Decide, Known, Told
from clew.memory.line import opening, purging
from clew.memory.records import MemoryRecord
from clew.memory.state import State
from clew.storage.changes import ChangeLog, Restarted
from clew.storage.changes import Decide as Rows
from clew.storage.rows import ChangeRow


class _Version(NamedTuple):
    """Whose version it is, and where in which session it stands."""

    id: str
    session: str
    place: int


class Folded:
    """The changes of a log, and the `State` they come to. Both grow with the log."""

    def __init__(self, log: ChangeLog) -> None:
        self._log = log
        self._lock = threading.RLock()
        self._begin()

    def _begin(self) -> None:
        self._changes: dict[int, Change] = {}
        self._purges: dict[str, list[Change]] = {}
        self._versions: dict[str, _Version] = {}
        self._sessions: dict[str, list[str]] = {}
        self._position = 0
        self._state = State()

    def known(self) -> Known:
        return self.folded()

    def folded(self) -> State:
        """What all changes come to. Not to be changed."""
        with self._lock:
            try:
                fresh = self._log.after(self._position)
            except Restarted:
                self._begin()
                fresh = self._log.after(0)
            self._take(fresh)
            return self._state

    def newest(self) -> float:
        return self.folded().newest[0]

    def changes(self, after: int = 0) -> Iterator[Change]:
        return (change for _, change in self._after(after))

    def _after(self, position: int) -> list[tuple[int, Change]]:
        with self._lock:
            self.folded()
            return [(at, one) for at, one in self._changes.items() if at > position]

    def commit(
        self, decide: Decide, clock: Clock, about: Sequence[MemoryRecord] = (), keys: Sequence[str] = ()
    ) -> list[Change]:
        made: list[Change] = []

        def rows(fresh: list[ChangeRow]) -> list[ChangeRow]:
            if made:  # the log tries again: what was counted in the first time has not been written
                made.clear()
                self._begin()
                fresh = self._log.after(0)
            self._take(fresh)
            for one in decide(self._state, lambda: max(clock(), math.nextafter(self._state.newest[0], math.inf))):
                self._state.apply(one)
                made.append(one)
            return [to_row(kept(one, self._purges)) for one in made]

        with self._lock:
            try:
                self._note(self._append(rows))
            except BaseException:
                if made:  # counted in here, but not written
                    self._begin()
                raise
        return made

    def merge(self, changes: Iterable[Change]) -> int:
        wanted = sorted(changes, key=order)

        def rows(fresh: list[ChangeRow]) -> list[ChangeRow]:
            self._take(fresh)
            purges = purges_of([*(one for some in self._purges.values() for one in some), *wanted])
            return [to_row(kept(one, purges)) for one in wanted]

        with self._lock:
            added = self._append(rows)
            self._erase({row.record for row in added if row.kind == "purged"})
        return len(added)

    def _append(self, rows: Rows) -> list[ChangeRow]:
        try:
            return self._log.append(self._position, rows)
        except Restarted:
            self._begin()
            self.folded()
            return self._log.append(self._position, rows)

    def purge(self, id: str, clock: Clock) -> bool:
        def decide(known: Known, now: Clock) -> Iterator[Change]:
            line = known.line(id)
            if line is not None and line.told:
                yield change(now(), purging(id, line))

        with self._lock:
            purged = bool(self.commit(decide, clock))
            self._erase({id})
        return purged

    def _erase(self, ids: Collection[str]) -> None:
        """Writes the purged records' changes again, without what was said."""
        if not ids:
            return
        try:
            self._log.rewrite(self._less(ids))
        except Restarted:
            self._log.rewrite(self._less(ids))

    def _less(self, ids: Collection[str]) -> list[ChangeRow]:
        self._begin()
        rows = self._log.after(0)
        changes = [(row.position, from_row(row)) for row in rows]
        purges = purges_of([one for _, one in changes])
        less = [(position, one, kept(one, purges)) for position, one in changes if concerns(one.body) in ids]
        return [to_row(new)._replace(position=position) for position, old, new in less if new is not old]

    def _take(self, rows: Sequence[ChangeRow]) -> None:
        """Takes in what others have written, if it is new: a log that tries again gives it once more."""
        changes = sorted(self._note([row for row in rows if row.position > self._position]), key=order)
        if changes and order(changes[0]) <= self._state.newest:
            self._state = State(self._changes.values())  # a merge brought some that are older than what is known
        else:
            for one in changes:
                self._state.apply(one)

    def _note(self, rows: Sequence[ChangeRow]) -> list[Change]:
        changes = [from_row(row) for row in rows]
        for row, one in zip(rows, changes, strict=True):
            self._changes[row.position] = one
            if isinstance(one.body, Purged):
                self._purges.setdefault(one.body.id, []).append(one)
            self._position = row.position
            if isinstance(one.body, Opened):
                record = one.body.record
                session = self._sessions.setdefault(record.session, [])
                self._versions[one.uid] = _Version(record.id, record.session, len(session))
                session.append(one.uid)
        return changes

    # -- as an index sees it

    def told(self, after: int) -> Iterator[Told]:
        for position, one in self._after(after):
            if isinstance(one.body, Opened):
                yield Told(position, one.uid, opening(one))
            elif isinstance(one.body, Purged):
                yield from (Told(position, uid, None) for uid in one.body.versions)

    def mark_of(self, position: int) -> str:
        self.folded()
        found = self._changes.get(position)
        return found.uid if found is not None else ""

    def held(self, uids: Collection[str], at: float) -> dict[str, MemoryRecord]:
        state, found = self.folded(), {}
        for uid in uids:
            version = self._versions.get(uid)
            line = state.line(version.id) if version is not None else None
            if line is not None and line.shown(at) == uid and (record := line.record(at)) is not None:
                found[uid] = record
        return found

    def around(self, uids: Collection[str], distance: int) -> dict[str, list[tuple[str, int]]]:
        self.folded()
        found = {}
        for uid in uids:
            version = self._versions.get(uid)
            if version is not None and version.session and len(self._sessions[version.session]) > 1:
                session, place = self._sessions[version.session], version.place
                near = range(max(place - distance, 0), min(place + distance + 1, len(session)))
                found[uid] = [(session[i], i - place) for i in near if i != place]
        return found
