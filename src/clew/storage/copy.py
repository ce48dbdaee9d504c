"""Sessions and vectors from one store to another, whatever databases they are.

A copy that was broken off is begun again and goes on: what the target has is not written again. What was copied is
read back and compared.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Literal, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import bindparam, select, tuple_, update

from clew.errors import Interrupted, LeaseLost, SessionBusy, StoreError
from clew.storage.lease import new_owner
from clew.storage.rows import EntryRow, SessionRow
from clew.storage.schema import heads, sessions, vectors
from clew.storage.store import Store
from clew.storage.vectors import StoredVectors

T = TypeVar("T")

BATCH = 1_000
"""Entries, changes or vectors written in one transaction."""

Kind = Literal["session", "memory", "vectors"]


class Copied(Struct, frozen=True):
    """What came of one session, memory or model's vectors.

    `rows` is how many entries, changes or vectors the source has, `new` how many of them were written now; `fault` says
    what is not equal after that ("" when all is).
    """

    kind: Kind
    namespace: str
    name: str
    rows: int
    new: int
    fault: str = ""


Told = Callable[[Copied], None]
"""Hears of each session, memory and model as it is done."""

_SESSIONS = select(sessions.c.namespace).distinct().order_by(sessions.c.namespace)
_MEMORIES = select(heads.c.namespace).where(heads.c.position > 0).order_by(heads.c.namespace)
_MODELS = select(vectors.c.namespace, vectors.c.model).distinct().order_by(vectors.c.namespace, vectors.c.model)
_VECTORS = (
    select(vectors.c.digest, vectors.c.vector)
    .where(
        tuple_(vectors.c.namespace, vectors.c.model) == tuple_(bindparam("of"), bindparam("by")),
        vectors.c.digest > bindparam("after"),
    )
    .order_by(vectors.c.digest)
    .limit(BATCH)
)
_SETTLE = (
    update(sessions)
    .where(
        sessions.c.namespace == bindparam("of_namespace"),
        sessions.c.id == bindparam("of_session"),
        sessions.c.lease_owner == bindparam("owner"),
    )
    .values(leaf=bindparam("new_leaf"), updated=bindparam("new_updated"))
)


def session_namespaces(store: Store) -> list[str]:
    """The namespaces that have sessions."""
    return [row[0] for row in store.read(_SESSIONS, {})]


def memory_namespaces(store: Store) -> list[str]:
    """The namespaces that have a memory."""
    return [row[0] for row in store.read(_MEMORIES, {})]


def copy_sessions(source: Store, target: Store, namespace: str) -> Iterator[Copied]:
    """Copies the sessions of a namespace, those that others continue first. None of them may be written meanwhile."""
    rows = {row.id: row for row in source.sessions(namespace)}
    for row in _parents_first(rows):
        yield _copy_session(source, target, row)


def _parents_first(rows: dict[str, SessionRow]) -> list[SessionRow]:
    placed: dict[str, SessionRow] = {}
    for row in rows.values():
        line = []
        at: SessionRow | None = row
        while at is not None and at.id not in placed and at not in line:
            line.append(at)
            at = rows.get(at.parent) if at.parent is not None else None
        placed.update((one.id, one) for one in reversed(line))
    return list(placed.values())


def _copy_session(source: Store, target: Store, row: SessionRow) -> Copied:
    namespace, id = row.namespace, row.id
    try:
        added = _bring(source, target, row)
    except Interrupted:
        raise
    except (SessionBusy, LeaseLost, StoreError) as error:  # the other sessions can be copied all the same
        return Copied("session", namespace, id, row.entries, 0, f"not copied: {error}")
    before, count = _sum(source.rows(namespace, id, 0, row.last))
    after, there = _sum(target.rows(namespace, id, 0, row.last))
    fault = "" if before == after else f"the source has {count} entries and the target others ({there})"
    found = target.session(namespace, id)
    if not fault and found is not None and found.last == row.last and found.leaf != row.leaf:
        fault = f"the source stands at entry {row.leaf} and the target, which was written later, at {found.leaf}"
    return Copied("session", namespace, id, count, added, fault)


def _bring(source: Store, target: Store, row: SessionRow) -> int:
    """Adds the entries that the target lacks, under its lease; how many."""
    namespace, id, owner = row.namespace, row.id, new_owner()
    found = target.session(namespace, id)
    if found is None:
        start = row.parent_entry
        target.create(replace(row, leaf=start, last=start or 0, entries=0, lease_owner="", lease_expires=0.0))
    elif found.last > row.last or (found.last == row.last and (found.leaf == row.leaf or found.updated > row.updated)):
        return 0
    last = target.claim(namespace, id, owner).last
    added = 0
    try:
        for batch in batches(source.rows(namespace, id, last + 1, row.last)):
            end = batch[-1].id  # the leaf comes with the last entry: a copy broken off after it is whole
            target.append(namespace, id, owner, batch, row.leaf if end == row.last else end)
            added += len(batch)

        def settle(again: bool) -> None:
            mine = {"of_namespace": namespace, "of_session": id, "owner": owner}
            with target.writing() as db:
                db.execute(_SETTLE, {**mine, "new_leaf": row.leaf, "new_updated": row.updated})

        target.patiently(settle)
    finally:
        target.release(namespace, id, owner)
    return added


def copy_vectors(source: Store, target: Store, namespaces: Sequence[str]) -> Iterator[Copied]:
    """Copies the vectors of namespaces, of every model."""
    for namespace, model in [tuple(row) for row in source.read(_MODELS, {})]:
        if namespace not in namespaces:
            continue
        before = StoredVectors(target, namespace, model).models().get(model, 0)
        rows = faults = 0
        for batch in _vectors(source, namespace, model):
            kept = StoredVectors(target, namespace, model)
            kept.keep(batch)
            found = kept.held(list(batch))
            rows += len(batch)
            faults += sum(found.get(digest) != vector for digest, vector in batch.items())
        new = StoredVectors(target, namespace, model).models().get(model, 0) - before
        fault = f"{faults} vectors of the target are others" if faults else ""
        yield Copied("vectors", namespace, model, rows, new, fault)


def _vectors(store: Store, namespace: str, model: str) -> Iterator[dict[str, bytes]]:
    after = ""
    while batch := store.read(_VECTORS, {"of": namespace, "by": model, "after": after}):
        yield {row[0]: row[1] for row in batch}
        after = batch[-1][0]


def batches(rows: Iterable[T]) -> Iterator[list[T]]:
    """The rows, `BATCH` at a time."""
    left = iter(rows)
    while batch := list(islice(left, BATCH)):
        yield batch


def _sum(rows: Iterator[EntryRow]) -> tuple[str, int]:
    """A checksum of entries, and their number."""
    sum, count = hashlib.sha256(), 0
    for row in rows:
        sum.update(msgspec.msgpack.encode([*row]))
        count += 1
    return sum.hexdigest(), count
