"""The log of a memory: records in a store, in one namespace, with their whole past.

    log = RecordLog("agent.db", Namespace("acme", user="u1"))
    tea = log.add(MemoryRecord("user", "drinks tea"))
    log.edit(tea.id, "drinks green tea")
    log.records(at=yesterday)

Nothing is rewritten: a change closes the old version and opens a new one, a deletion leaves a tombstone. Several
processes may have the same log open; each sees what the others have written.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from clew.errors import StoreError, UnknownName
from clew.memory.changes import (
    Body,
    Change,
    Cited,
    Closed,
    Opened,
    Pinned,
    Tried,
    Used,
    change,
    concerns,
    order,
    unique,
)
from clew.memory.clearing import cleared, cleared_body
from clew.memory.known import Clock, Decide, Known, Told
from clew.memory.line import Line
from clew.memory.places import Place, open_place
from clew.memory.records import MemoryRecord, Namespace, Source, digest, plain, storable
from clew.memory.state import State
from clew.messages import sanitized
from clew.storage.store import Store


class RecordLog:
    """The records of one namespace in a store: a path, an address (`postgresql://…`, `redis://…`, `json:FILE`, see
    `clew.memory.places`), or a store or place that is open."""

    def __init__(
        self,
        store: str | Path | Store | Place = "memory://",
        namespace: Namespace | None = None,
        *,
        clock: Clock = time.time,
    ) -> None:
        if not isinstance(namespace, Namespace | None):
            raise UnknownName(f"{namespace!r} is no namespace; make one, such as Namespace(user={str(namespace)!r})")
        self.namespace = namespace or Namespace()
        self.clock = clock
        self.path = self.namespace.path
        self._place = open_place(store)
        self._shared = store is self._place
        self._ledger = self._place.ledger(self.path)

    def close(self) -> None:
        """Lets go of the store; a place that was open stays open."""
        if not self._shared:
            self._place.close()

    def __enter__(self) -> RecordLog:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def store(self) -> Store:
        """Where what goes with the records is kept: their vectors."""
        return self._place.store

    # -- reading

    @property
    def known(self) -> Known:
        """What is known now, with what other processes have written."""
        return self._ledger.known()

    @property
    def state(self) -> State:
        """The same, folded from all changes there are: the model of what `known` answers, for tests and tools."""
        return State(self._ledger.changes())

    def now(self) -> float:
        """The present, which is never before the last change."""
        return max(self.clock(), self._ledger.newest())

    def as_of(self, at: float | None) -> float:
        """The time that is asked for, in seconds since 1970; the present for None. Raises `UnknownName`."""
        if at is None:
            return self.now()
        if not isinstance(at, int | float):
            raise UnknownName(f"at={at!r} is no time; give seconds since 1970: datetime(2026, 3, 1).timestamp()")
        return at

    def get(self, id: str, at: float | None = None) -> MemoryRecord | None:
        """The record with this id as it is now, or as of a time; None when it does not hold (then)."""
        return self.known.record(storable(id), self.as_of(at))

    def records(self, *kinds: str, at: float | None = None) -> list[MemoryRecord]:
        """The records that hold now, or that held at a time by what was known then; of some kinds, or all.

        Those known first come first.
        """
        return list(self.known.records(self.as_of(at), *kinds))

    def latest(self, kind: str) -> Iterator[MemoryRecord]:
        """The records of a kind that hold now, the one known last first; reads only as many as are taken."""
        return self.known.latest(kind, self.now())

    def history(self, id: str) -> list[MemoryRecord | Closed]:
        """All versions of a record and its tombstones, in the order of time. Raises `UnknownName`."""
        return list(self._line(id).history())

    def newest(self, id: str) -> MemoryRecord:
        """The version of a record that was opened last, whether or not it holds. Raises `UnknownName`."""
        return self._line(id).newest()

    def mark(self, name: str) -> float:
        """The time after which the memory of this name shows records (0: it shows all)."""
        return self.known.mark(storable(name))

    def tried(self, task: str, id: str) -> Sequence[Tried]:
        """What came of asking a model about a record, oldest first."""
        return self.known.tried(storable(task), storable(id))

    # -- as an index reads it

    def told(self, after: int = 0) -> Iterator[Told]:
        """What an index has to know: versions as they were told, and which to forget; after a position of the log and
        in the order of position. No change ever comes to stand before one that has been seen."""
        return self._ledger.told(after)

    def mark_of(self, position: int) -> str:
        """Identifies what stands at a position of the log ("" for nothing): another log has something else there."""
        return self._ledger.mark_of(position)

    def held(self, uids: Collection[str], at: float | None = None) -> dict[str, MemoryRecord]:
        """Of these versions those that hold now, or held at a time by what was known then; each as it was told then."""
        return self._ledger.held(uids, self.as_of(at))

    def around(self, uids: Collection[str], distance: int = 2) -> dict[str, list[tuple[str, int]]]:
        """The versions next to each of these in its session, with how far behind it they were told (before: below 0).

        A version without a session has no neighbours.
        """
        return self._ledger.around(uids, distance)

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
        wholes = [self.whole(record) for record in records]
        keys = [storable(key) for key in keys]
        held: list[MemoryRecord | None] = []

        def decide(known: Known, now: Clock) -> Iterator[Change]:
            ids: list[str | None] = []
            at = 0.0
            for n, record in enumerate(wholes):
                key = keys[n] if n < len(keys) else ""
                at = now()
                id, body = _taken(known, record, key, at, again)
                ids.append(id)
                if body is not None:
                    yield change(at, body, key)
            held[:] = [None if id is None else known.record(id, at) for id in ids]

        self.commit(decide, wholes, keys)
        return held

    def edit(self, id: str, content: Any = None, **changes: Any) -> MemoryRecord:
        """Opens a new version of a record with another content, or other fields. Raises `UnknownName` when there is
        no such record now, or it would become blank."""
        if content is not None:
            changes["content"] = content
        id = storable(id)

        def decide(known: Known, now: Clock) -> Iterator[Change]:
            at = now()
            old = known.record(id, at)
            if old is None:
                raise self._unknown(id)
            new = self.whole(replace(old, **{"valid_from": None, "valid_to": None, **changes, "id": id}))
            if not new.text.strip():
                raise UnknownName(f"record {id!r} would be blank: delete it instead")
            yield change(at, Opened(new))

        self.commit(decide)
        return self.newest(id)

    def shut(self, id: str, *, reason: str = "", start: float | None = None, sources: tuple[Source, ...] = ()) -> None:
        """From now (or `start`) on the record does not hold. Its past stays, and a later version may open it again."""
        self.write(lambda at: Closed(storable(id), at if start is None else start, reason, False, sources))

    def delete(self, id: str, *, reason: str = "", sources: tuple[Source, ...] = ()) -> None:
        """Deletes a record: from now on it does not hold, and no replay or merge of what was told brings it back.

        A record without a `key` is deleted for good: an edit made elsewhere does not bring it back either. Under a
        key something new may be told later. What the record was stays in the log. Raises `UnknownName`.
        """
        final = not self.newest(id).key
        self.write(lambda at: Closed(storable(id), at, reason, final, sources))

    def purge(self, id: str) -> None:
        """Erases a record: all that was ever said as it, from the log, from what others merge in, and for indexes.

        What is left tells only that it was erased, so that neither a merge nor the same sources bring it back. Under
        a `key` something new may be told later. Records that cite it stay: they are others'. So do files that were
        saved before, and backups. Raises `UnknownName`.
        """
        if not self._ledger.purge(storable(id), self.clock):
            raise self._unknown(id)

    def use(self, *ids: str) -> None:
        """Counts a use of the records."""
        self.write(*(partial(_used, storable(id)) for id in ids))

    def pin(self, id: str, pinned: bool = True) -> None:
        """Pins a record, or unpins it."""
        self.write(lambda at: Pinned(storable(id), pinned))

    def write(self, *bodies: Callable[[float], Body]) -> None:
        """Appends changes, each made for the time it will have; all of them or none."""

        def decide(known: Known, now: Clock) -> Iterator[Change]:
            for body in bodies:
                at = now()
                yield change(at, body(at))

        self.commit(decide)

    def commit(self, decide: Decide, about: Sequence[MemoryRecord] = (), keys: Sequence[str] = ()) -> list[Change]:
        """Writes the changes that `decide` yields from what is known and the time, with no writer in between.

        Each is taken into what is known before the next is asked for. If it raises, nothing is written. `about` and
        `keys` are what it will ask about: it is looked up together. Gives what was written.
        """

        def clear(known: Known, now: Clock) -> Iterator[Change]:
            return map(self._cleared, decide(known, now))

        return self._ledger.commit(clear, self.clock, about, keys)

    # -- between logs

    def export(self) -> list[Change]:
        """All changes, oldest first: the whole past of the memory."""
        return sorted(self._ledger.changes(), key=order)

    def merge(self, changes: Iterable[Change]) -> int:
        """Takes in the changes of another log; how many were new. The order of merges makes no difference."""
        return self._ledger.merge(changes)

    def whole(self, record: MemoryRecord) -> MemoryRecord:
        """The record as it is stored: of this namespace, JSON all through, with an id, without secrets.

        Raises `StoreError` when a field holds what it is not for.
        """
        if not isinstance(record, MemoryRecord):
            raise StoreError(f"a {type(record).__name__} is no record; make one: MemoryRecord('user', 'drinks tea')")
        try:
            made = _plain(record)
            made = cleared(replace(made, namespace=self.path, uses=0, created=0.0))
        except (msgspec.MsgspecError, TypeError, RecursionError) as error:
            raise StoreError(f"this record cannot be stored: {error}") from error
        if made.id:
            return made
        return replace(made, id=digest(f"{made.kind}\0{made.key}")[:16] if made.key else unique())

    def _cleared(self, one: Change) -> Change:
        body = one.body
        if not isinstance(body, Opened):
            return sanitized(replace(one, body=cleared_body(body)))[0]
        return one if body.record.namespace == self.path else replace(one, body=Opened(self.whole(body.record)))

    def _line(self, id: str) -> Line:
        line = self.known.line(storable(id))
        if line is None or not line.told:
            raise self._unknown(id)
        return line

    def _unknown(self, id: str) -> UnknownName:
        return UnknownName(f"no record {id!r} in namespace {self.path}, or it has been deleted")


_RECORD = msgspec.json.Decoder(MemoryRecord)


def _plain(record: MemoryRecord) -> MemoryRecord:
    """The record with JSON all through. Raises `msgspec.ValidationError` for a field of another kind."""
    made = replace(record, content=plain(record.content), metadata=plain(dict(record.metadata)))
    try:
        encoded = msgspec.json.encode(made)
    except UnicodeEncodeError:
        made = sanitized(made)[0]
        encoded = msgspec.json.encode(made)
    _RECORD.decode(encoded)
    return replace(made, id=storable(made.id), kind=storable(made.kind))


def _used(id: str, at: float) -> Used:
    return Used(id)


def _taken(known: Known, record: MemoryRecord, key: str, at: float, again: bool) -> tuple[str | None, Body | None]:
    """The id under which a record is held, if it is, and the change that makes it so, if one is needed."""
    if key and (before := known.keyed(key)) is not None:
        return concerns(before.body) or None, None
    if not record.text.strip():
        return None, None
    if (known.knows(record.id) and not record.key) or known.has(record):
        return record.id, None
    dated = record.key and record.valid_from is not None
    if not again and not dated and (same := known.same(record, at)) is not None:
        new = tuple(s for s in record.sources if s not in same.sources)
        return same.id, Cited(same.id, new) if new or key else None
    if not again and known.closed_since(record):
        return None, None
    return record.id, Opened(record)
