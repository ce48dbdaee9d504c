"""Everything from one place to another: sessions, memories with their whole past, vectors.

    report = copy("agent.db", "postgresql://localhost/agents")
    assert not report.faults

It can be broken off and begun again, and leaves the source as it is. Afterwards all that was copied is read from the
target and compared with the source. Do not write to the sessions meanwhile; memories may be written to.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from clew.errors import StoreError
from clew.memory.changes import Change, erased
from clew.memory.known import Ledger
from clew.memory.places import Place, Tables, open_place
from clew.storage.copy import Copied, Told, batches, copy_sessions, copy_vectors, session_namespaces
from clew.storage.store import Store


class Report(Struct, frozen=True):
    """What was copied, part by part."""

    parts: tuple[Copied, ...]

    @property
    def faults(self) -> tuple[str, ...]:
        """What is not equal in source and target."""
        return tuple(f"{one.kind} {one.name or one.namespace}: {one.fault}" for one in self.parts if one.fault)

    def count(self, kind: str) -> tuple[int, int]:
        """How many sessions, memories or models there are of a kind, and how many rows they have together."""
        rows = [one.rows for one in self.parts if one.kind == kind]
        return len(rows), sum(rows)


def copy(
    source: str | Path | Store | Place,
    target: str | Path | Store | Place,
    *,
    namespaces: Sequence[str] = (),
    progress: Told = lambda copied: None,
) -> Report:
    """Copies all that the source has, or all of some namespaces, into the target, and compares.

    What the target has besides stays there. Raises `StoreError` when one of them cannot be opened or written, or the
    target cannot hold what the source has: Redis and JSON files hold memories only, a JSON file those of one namespace.
    """
    came, went = open_place(source), open_place(target)
    try:
        parts = []
        for copied in _parts(came, went, namespaces):
            parts.append(copied)
            progress(copied)
        return Report(tuple(parts))
    finally:
        for given, place in ((source, came), (target, went)):
            if given is not place:
                place.close()


def _parts(source: Place, target: Place, only: Sequence[str]) -> Iterator[Copied]:
    if isinstance(source, Tables):
        named = [name for name in session_namespaces(source.store) if not only or name in only]
        if named and not isinstance(target, Tables):
            raise StoreError(
                f"the source has sessions in {', '.join(named[:5])}, which this target cannot hold: copy to a file or "
                "PostgreSQL, or name namespaces that have memories only"
            )
        for name in named:
            yield from copy_sessions(source.store, target.store, name)
    memories = [name for name in source.namespaces() if not only or name in only]
    for name in memories:
        yield _copy_memory(source.ledger(name), target.ledger(name), name)
    if isinstance(source, Tables) and isinstance(target, Tables):
        yield from copy_vectors(source.store, target.store, memories)


def _copy_memory(source: Ledger, target: Ledger, namespace: str) -> Copied:
    rows = new = 0
    uids: dict[str, tuple[bytes, bytes]] = {}
    for batch in batches(source.changes()):
        new += target.merge(batch)
        rows += len(batch)
        uids.update((one.uid, (_digest(one), _digest(erased(one)))) for one in batch)  # it may be purged in the target
    differ = sum(there not in uids.pop(one.uid, (there,)) for one in target.changes() for there in (_digest(one),))
    fault = f"{differ} of {rows} changes are others in the target" if differ else ""
    if uids:
        fault = f"{len(uids)} of {rows} changes are not in the target"
    return Copied("memory", namespace, "", rows, new, fault)


def _digest(change: Change) -> bytes:
    return hashlib.sha256(msgspec.msgpack.encode(change)).digest()[:16]
