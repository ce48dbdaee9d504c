"""The log of one session in a store: reading it, and adding to it under the write lease."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from clew.errors import LeaseLost, StoreError, UnknownName
from clew.sessions.entries import LEAF, Body, Draft, Entry, Label, Note
from clew.sessions.stored import decoded
from clew.sessions.tree import Damage, Node, Tree, runs
from clew.storage.rows import EntryRow, SessionRow
from clew.storage.store import Repeated, Store


class Segment(msgspec.Struct, frozen=True):
    """A stretch of the log and the session it is stored under: ids above `after`, up to `last` (None: open)."""

    session: str
    after: int
    last: int | None


class Log:
    """The entries a session sees: its own, and those of its ancestors up to where it was forked off.

    Only ids and parents are kept in memory. `owner` is the identity it writes under, None for a log
    that is only read; the lease is taken by the first write.
    """

    def __init__(self, store: Store, row: SessionRow, owner: str | None) -> None:
        self.store = store
        self.row = row
        self.owner = owner
        self.tree = Tree()
        self.leaf: int | None = None
        self.faults: list[Damage] = []
        self._mine = owner is not None and row.lease_owner == owner
        self._lost = False
        self._doubtful = False  # a write broke off: what the store holds is to be looked up again
        self.segments, self.ancestors = self._lineage()
        for segment in self.segments[:-1]:
            self._grow(segment, segment.after, segment.last or 0)
        self._take_up(row, self.segments[-1].after)

    # -- reading

    def refresh(self) -> None:
        """Takes up what other writers have added since."""
        row = self.store.session(self.row.namespace, self.row.id)
        if row is None:
            raise UnknownName(f"session {self.row.id} is no longer in {self.store.where}")
        if self._mine and row.lease_owner != self.owner:
            self._mine, self._lost = False, True
        self._take_up(row, self.tree.newest)

    def read(self, ids: Iterable[int]) -> Iterator[Entry]:
        """The entries with these ids (ascending), one batch in memory at a time; unreadable ones are left out."""
        for row in self._rows(ids):
            entry = self._entry(row)
            if entry is not None:
                yield entry

    def branch(self, after: int = 0) -> Iterator[Entry]:
        """The entries from the root to the leaf, those up to id `after` left out; O(length)."""
        return self.read(self.tree.path(self.leaf, after))

    def nodes(self) -> dict[int, Node]:
        """The whole tree, ascending by id, with labels; of the entries only labels are read."""
        parents = self.tree.parents
        children: dict[int, list[int]] = {id: [] for id in parents}
        for id, parent in parents.items():
            if parent is not None:
                children[parent].append(id)
        heads = {
            row.id: row
            for s in self.segments
            for row in self.store.heads(self.row.namespace, s.session, s.after + 1, s.last)
        }
        labels: dict[int, str] = {}
        for entry in self.read(id for id in parents if heads[id].kind == "label"):
            if isinstance(entry.body, Label):
                labels[entry.body.target] = entry.body.text
        return {
            id: Node(id, parents[id], str(heads[id].kind), _seconds(heads[id].at), tuple(below), labels.get(id, ""))
            for id, below in children.items()
        }

    def held(self, keys: Sequence[str]) -> dict[str, int]:
        """Which of these keys the log has, and the ids of their entries; looked up by index."""
        return self._held(self.segments, keys)

    def unreadable(self) -> list[Damage]:
        """The entries that cannot be read, found by reading all of them."""
        return [
            Damage("body", row.id, "its content cannot be read; the view leaves it out")
            for row in self._rows(self.tree.ids())
            if self._entry(row) is None
        ]

    # -- writing

    def claim(self) -> None:
        """Takes the write lease, and whatever other writers have added until then.

        Raises `SessionBusy` while another writer has it, `LeaseLost` when this log had it and
        another took it, `StoreError` when the log is only read.
        """
        if self.owner is None:
            raise StoreError(
                f'session {self.row.id} was opened with mode="read"; open it with mode="write" to add to it'
            )
        if self._doubtful:
            self.refresh()
        if self._lost:
            raise LeaseLost(f"another writer has taken session {self.row.id}; open it again to continue")
        if not self._mine:
            row = self.store.claim(self.row.namespace, self.row.id, self.owner)
            self._mine = True
            self._take_up(row, self.tree.newest)

    def release(self) -> None:
        """Gives the lease back."""
        if self._mine and self.owner is not None:
            self._mine = False
            self.store.release(self.row.namespace, self.row.id, self.owner)

    def append(self, drafts: Sequence[Draft], bodies: Sequence[bytes]) -> list[Entry]:
        """Adds entries, whose bodies come encoded too, in one transaction; the leaf moves to the last new one.

        A draft with a key that the log holds gives the entry that is there. Nearly all keys are new:
        those of this session are looked up only when the store finds one of them repeated.
        """
        self.claim()
        keys = [d.key for d in drafts if d.key]
        try:
            return self._append(drafts, bodies, self._held(self.segments[:-1], keys))
        except Repeated:
            self.claim()
            return self._append(drafts, bodies, self.held(keys))

    def _append(self, drafts: Sequence[Draft], bodies: Sequence[bytes], held: dict[str, int]) -> list[Entry]:
        fresh: dict[int, Entry] = {}
        rows: list[EntryRow] = []
        ids: list[int] = []
        before, now = self.leaf, time.time()
        for draft, body in zip(drafts, bodies, strict=True):
            if draft.key not in held:
                id = self.tree.newest + len(rows) + 1
                parent = before if draft.parent == LEAF else draft.parent
                if parent is not None and parent not in self.tree and parent not in fresh:
                    raise UnknownName(f"session {self.row.id} has no entry {parent} to append to")
                entry = Entry(id, parent, draft.body, draft.at or now, draft.key)
                rows.append(EntryRow(id, parent, kind(draft.body), entry.at, draft.key, body))
                fresh[id] = entry
                if draft.key:
                    held[draft.key] = id
                before = id
            else:
                before = held[draft.key]
            ids.append(before)
        if rows:
            self._commit(rows)
        stored = {entry.id: entry for entry in self.read(sorted({id for id in ids if id not in fresh}))}
        return [fresh.get(id) or stored.get(id) or self._unread(id) for id in ids]

    def move(self, leaf: int | None) -> None:
        """Moves the leaf, durably."""
        if leaf is not None and leaf not in self.tree:
            raise UnknownName(f"session {self.row.id} has no entry {leaf}; its newest is {self.tree.newest}")
        self.claim()
        with self._write() as owner:
            self.store.move(self.row.namespace, self.row.id, owner, leaf)
            self.leaf = leaf

    def _commit(self, rows: Sequence[EntryRow]) -> None:
        with self._write() as owner:
            self.store.append(self.row.namespace, self.row.id, owner, rows, rows[-1].id)
            for row in rows:
                self.tree.add(row.id, row.parent)
            self.leaf = rows[-1].id

    @contextmanager
    def _write(self) -> Iterator[str]:
        self._doubtful = True
        try:
            yield self.owner or ""
        except LeaseLost:
            self._mine, self._lost = False, True
            raise
        self._doubtful = False

    # -- inside

    def _lineage(self) -> tuple[list[Segment], list[SessionRow]]:
        """The stretches of the log from the first ancestor's to this session's own, and the ancestors' rows."""
        segments: list[Segment] = []
        rows = [self.row]
        last: int | None = None
        while True:
            row = rows[-1]
            after = row.parent_entry or 0
            if last is None or after < last:
                segments.append(Segment(row.id, after, last))
                last = after
            if row.parent is None:
                break
            parent = self.store.session(row.namespace, row.parent)
            if parent is None or any(parent.id == known.id for known in rows):
                fault = "is missing" if parent is None else "descends from it"
                self.faults.append(Damage("lineage", after, f"session {row.parent}, which {row.id} continues, {fault}"))
                break
            rows.append(parent)
        return segments[::-1], rows[:0:-1]

    def _take_up(self, row: SessionRow, after: int) -> None:
        """Adds the own entries after this id to the tree, and goes to the stored leaf."""
        self.row = row
        if row.last != self.tree.newest or after == self.segments[-1].after:
            self._grow(self.segments[-1], after, row.last)
        self.leaf = row.leaf
        if row.leaf is not None and row.leaf not in self.tree:
            self.leaf = self.tree.nearest(row.leaf if isinstance(row.leaf, int) else self.tree.newest + 1)
            detail = f"it stood at entry {row.leaf!r}, which is missing; now at {self.leaf}"
            fault = Damage("leaf", self.leaf or 0, detail)
            if fault not in self.faults:
                self.faults.append(fault)
        self._doubtful = False

    def _grow(self, segment: Segment, after: int, due: int) -> None:
        links = self.store.links(self.row.namespace, segment.session, after + 1, segment.last)
        self.faults.extend(self.tree.grow(links, after, due))

    def _held(self, segments: Sequence[Segment], keys: Sequence[str]) -> dict[str, int]:
        held: dict[str, int] = {}
        for segment in segments if keys else ():
            held |= self.store.held(self.row.namespace, segment.session, keys, segment.last)
        return held

    def _rows(self, ids: Iterable[int]) -> Iterator[EntryRow]:
        for first, last in runs(ids):
            for segment in self.segments:
                low = max(first, segment.after + 1)
                high = last if segment.last is None else min(last, segment.last)
                if low <= high:
                    yield from self.store.rows(self.row.namespace, segment.session, low, high)

    def _entry(self, row: EntryRow) -> Entry | None:
        try:
            body = decoded(row.body)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, TypeError):
            return None
        return Entry(row.id, self.tree.parents[row.id], body, _seconds(row.at), str(row.key))

    def _unread(self, id: int) -> Entry:
        return Entry(id, self.tree.parents[id], Note("unreadable"))


def kind(body: Body) -> str:
    """The word for what a body is, as stored."""
    return str(type(body).__struct_config__.tag)


def _seconds(at: Any) -> float:
    return float(at) if isinstance(at, int | float) else 0.0
