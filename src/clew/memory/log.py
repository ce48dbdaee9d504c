"""The log of a memory: records in a store, in one namespace, with their whole past.

    log = RecordLog("agent.db", Namespace("acme", user="u1"))
    tea = log.add(MemoryRecord("user", "drinks tea"))
    log.edit(tea.id, "drinks green tea")
    log.records(at=yesterday)

Nothing is rewritten: a change closes the old version and opens a new one, a deletion leaves a tombstone. Several
processes may have the same log open; each sees what the others have written.
"""

from __future__ import annotations

import math
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from clew.errors import UnknownName
from clew.memory.changes import Body, Change, Cited, Closed, Opened, Pinned, Used, change, from_row, to_row
from clew.memory.records import MemoryRecord, Namespace, Source, digest, plain
from clew.memory.state import State, order
from clew.messages import sanitized
from clew.storage.changes import Changes
from clew.storage.locate import open_store
from clew.storage.rows import ChangeRow
from clew.storage.store import Store

Clock = Callable[[], float]
"""Gives the time, in seconds since 1970."""


class RecordLog:
    """The records of one namespace in a store (a path, an address or an open store)."""

    def __init__(
        self,
        store: str | Path | Store = "memory://",
        namespace: Namespace | None = None,
        *,
        clock: Clock = time.time,
    ) -> None:
        self.namespace = namespace or Namespace()
        self.clock = clock
        self._store = open_store(store)
        self.path = self.namespace.path
        self._changes = Changes(self._store, self.path)
        self._lock = threading.RLock()
        self._position = 0
        self._state = State()

    def close(self) -> None:
        """Lets go of the store."""
        self._store.close()

    def __enter__(self) -> RecordLog:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- reading

    @property
    def state(self) -> State:
        """What is known now, with what other processes have written. Not to be changed."""
        with self._lock:
            self._take(self._changes.after(self._position))
            return self._state

    def now(self) -> float:
        """The present, which is never before the last change."""
        return max(self.clock(), self.state.newest[0])

    def get(self, id: str, at: float | None = None) -> MemoryRecord | None:
        """The record with this id as it is now, or as of a time; None when it does not hold (then)."""
        return self.state.record(id, self.now() if at is None else at)

    def records(self, *kinds: str, at: float | None = None) -> list[MemoryRecord]:
        """The records that hold now, or that held at a time by what was known then; of some kinds, or all.

        Those known first come first.
        """
        at = self.now() if at is None else at
        return list(self.state.records(at, *kinds))

    def latest(self, kind: str) -> Iterator[MemoryRecord]:
        """The records of a kind that hold now, the one known last first; reads only as many as are taken."""
        at = self.now()
        return self.state.latest(kind, at)

    def history(self, id: str) -> list[MemoryRecord | Closed]:
        """All versions of a record and its tombstones, in the order of time. Raises `UnknownName`."""
        line = self.state.lines.get(id)
        if line is None or not line.versions:
            raise self._unknown(id)
        return list(line.history())

    def mark(self, name: str) -> float:
        """The time after which the memory of this name shows records (0: it shows all)."""
        return self.state.marks.get(name, 0.0)

    # -- writing

    def add(self, record: MemoryRecord, *, key: str = "", again: bool = False) -> MemoryRecord | None:
        """Remembers something; on disk when this returns. Gives what the memory now holds as this record.

        That is None for a blank text, and for what was closed or deleted since it was told from the same sources:
        it is not stored again. What is held already is not stored twice, it gets the new sources (`again`: it is
        stored, as the same words said again). A `key` that was used before adds nothing. A record with a `key`
        field is a new version of the one of its kind that has that key.
        """
        return self.add_many([record], keys=[key], again=again)[0]

    def add_many(
        self, records: Sequence[MemoryRecord], *, keys: Sequence[str] = (), again: bool = False
    ) -> list[MemoryRecord | None]:
        """As `add`, for several at once: all are stored, or none."""
        ids: list[str | None] = []

        def decide(state: State, now: Clock) -> Iterator[Change]:
            for n, record in enumerate(records):
                key = keys[n] if n < len(keys) else ""
                at = now()
                id, body = _taken(state, self.whole(record), key, at, again)
                ids.append(id)
                if body is not None:
                    yield change(at, body, key)

        self.commit(decide)
        state, at = self.state, self.now()
        return [None if id is None else state.record(id, at) for id in ids]

    def edit(self, id: str, content: Any = None, **changes: Any) -> MemoryRecord:
        """Opens a new version of a record with another content, or other fields. Raises `UnknownName` when there is
        no such record now, or it would become blank."""
        if content is not None:
            changes["content"] = content

        def decide(state: State, now: Clock) -> Iterator[Change]:
            at = now()
            old = state.record(id, at)
            if old is None:
                raise self._unknown(id)
            new = self.whole(replace(old, **{"valid_from": None, "valid_to": None, **changes, "id": id}))
            if not new.text.strip():
                raise UnknownName(f"record {id!r} would be blank: delete it instead")
            yield change(at, Opened(new))

        self.commit(decide)
        return self.state.lines[id].newest()

    def shut(self, id: str, *, reason: str = "", start: float | None = None, sources: tuple[Source, ...] = ()) -> None:
        """From now (or `start`) on the record does not hold. Its past stays, and a later version may open it again."""
        self.write(lambda at: Closed(id, at if start is None else start, reason, False, sources))

    def delete(self, id: str, *, reason: str = "", sources: tuple[Source, ...] = ()) -> None:
        """Deletes a record: from now on it does not hold, and no replay or merge of what was told brings it back.

        A record without a `key` is deleted for good: an edit made elsewhere does not bring it back either. Under a
        key something new may be told later. What the record was stays in the log. Raises `UnknownName`.
        """
        line = self.state.lines.get(id)
        if line is None or not line.versions:
            raise self._unknown(id)
        final = not line.newest().key
        self.write(lambda at: Closed(id, at, reason, final, sources))

    def use(self, *ids: str) -> None:
        """Counts a use of the records."""
        self.write(lambda at: Used(ids))

    def pin(self, id: str, pinned: bool = True) -> None:
        """Pins a record, or unpins it."""
        self.write(lambda at: Pinned(id, pinned))

    def write(self, *bodies: Callable[[float], Body]) -> None:
        """Appends changes, each made for the time it will have; all of them or none."""

        def decide(state: State, now: Clock) -> Iterator[Change]:
            for body in bodies:
                at = now()
                yield change(at, body(at))

        self.commit(decide)

    def commit(self, decide: Callable[[State, Clock], Iterator[Change]]) -> None:
        """Writes the changes that `decide` yields from what is known and the time, with no writer in between.

        Each is taken into the state before the next is asked for. If it raises, nothing is written.
        """
        with self._lock:
            made: list[Change] = []

            def rows(fresh: list[ChangeRow]) -> list[ChangeRow]:
                self._take(fresh)
                state = self._state
                for one in decide(state, lambda: max(self.clock(), math.nextafter(state.newest[0], math.inf))):
                    state.apply(one)
                    made.append(one)
                return [to_row(one) for one in made]

            try:
                added = self._changes.append(self._position, rows)
            except BaseException:
                if made:  # counted in here, but not written
                    self._position, self._state = 0, State()
                raise
            if added:
                self._position = added[-1].position

    # -- between logs

    def export(self) -> list[Change]:
        """All changes, oldest first: the whole past of the memory."""
        return sorted(map(from_row, self._changes.after(0)), key=order)

    def merge(self, changes: Iterable[Change]) -> int:
        """Takes in the changes of another log; how many were new. The order of merges makes no difference."""
        rows = [to_row(one) for one in changes]
        with self._lock:
            return len(self._changes.append(self._position, lambda fresh: rows))

    def _take(self, rows: list[ChangeRow]) -> None:
        if not rows:
            return
        changes = sorted(map(from_row, rows), key=order)
        if order(changes[0]) <= self._state.newest:
            self._state = State(self.export())  # a merge brought some that are older than what is known
        else:
            for one in changes:
                self._state.apply(one)
        self._position = rows[-1].position

    def whole(self, record: MemoryRecord) -> MemoryRecord:
        """The record as it is stored: of this namespace, JSON all through, with an id."""
        id = record.id or (digest(f"{record.kind}\0{record.key}")[:16] if record.key else secrets.token_hex(8))
        made = replace(
            record,
            id=id,
            namespace=self.path,
            content=plain(record.content),
            metadata=plain(dict(record.metadata)),
            uses=0,
            created=0.0,
        )
        return sanitized(made)[0]

    def _unknown(self, id: str) -> UnknownName:
        return UnknownName(f"no record {id!r} in namespace {self.path}, or it has been deleted")


def _taken(state: State, record: MemoryRecord, key: str, at: float, again: bool) -> tuple[str | None, Body | None]:
    """The id under which a record is held, if it is, and the change that makes it so, if one is needed."""
    if key and (before := state.keys.get(key)) is not None:
        body = before.body
        return (body.record.id if isinstance(body, Opened) else body.id if isinstance(body, Cited) else None), None
    if not record.text.strip():
        return None, None
    if (record.id in state.lines and not record.key) or state.has(record):
        return record.id, None
    dated = record.key and record.valid_from is not None
    if not again and not dated and (same := state.same(record, at)) is not None:
        new = tuple(s for s in record.sources if s not in same.sources)
        return same.id, Cited(same.id, new) if new or key else None
    if not again and state.closed_since(record):
        return None, None
    return record.id, Opened(record)
