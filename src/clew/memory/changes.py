"""What can happen to a memory: the changes its log is made of. They are appended and never rewritten."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import Literal

import msgspec
from msgspec import Struct

from clew.errors import StoreError
from clew.memory.records import MemoryRecord, Source, identity, storable
from clew.storage.rows import ChangeRow


class Opened(Struct, frozen=True, gc=False, tag="opened"):
    """A record, or a new version of one with the same id."""

    record: MemoryRecord


class Closed(Struct, frozen=True, gc=False, tag="closed", omit_defaults=True):
    """A tombstone: from `start` on the record does not hold. `final` forbids any later version of it too."""

    id: str
    start: float
    reason: str = ""
    final: bool = False
    sources: tuple[Source, ...] = ()


class Cited(Struct, frozen=True, gc=False, tag="cited"):
    """More sources that say what the record says."""

    id: str
    sources: tuple[Source, ...]


class Used(Struct, frozen=True, gc=False, tag="used"):
    """The record was recalled."""

    id: str


class Pinned(Struct, frozen=True, gc=False, tag="pinned"):
    """The record is to be kept in sight, or no longer."""

    id: str
    pinned: bool


class Marked(Struct, frozen=True, gc=False, tag="marked"):
    """The memory called `name` shows what was created after `after` (seconds since 1970); the rest stays here."""

    name: str
    after: float


class Tried(Struct, frozen=True, gc=False, tag="tried", omit_defaults=True):
    """A model was asked about a record (to extract facts from it, to summarise up to it).

    `raw` is its answer; for a failure `reason` says what was wrong with it.
    """

    id: str
    task: str
    status: Literal["ok", "none", "failed"]
    reason: str = ""
    raw: str = ""


class Purged(Struct, frozen=True, gc=False, tag="purged", omit_defaults=True):
    """What was said as this record before is erased wherever this change comes to; `final`: also what is said later.

    `versions` are the changes that were erased where it was made, by uid.
    """

    id: str
    final: bool = False
    versions: tuple[str, ...] = ()


class Erased(Struct, frozen=True, gc=False, tag="erased", omit_defaults=True):
    """What is left of a version that was purged: what tells that the same is told again from the same sources."""

    id: str
    said: str
    sources: tuple[Source, ...] = ()


Body = Opened | Closed | Cited | Used | Pinned | Marked | Tried | Purged | Erased


class Change(Struct, frozen=True, gc=False):
    """A change: unique everywhere by `uid`, made at `at` (seconds since 1970, rising within one log).

    `key` is the caller's own name for it: what is asked for twice under one key is done once.
    """

    uid: str
    at: float
    body: Body
    key: str = ""


def change(at: float, body: Body, key: str = "") -> Change:
    """A new change."""
    return Change(unique(), at, body, key)


def unique() -> str:
    """A text that is given once, anywhere. It begins with the time: what is given together is stored together."""
    return f"{time.time_ns() // 1_000_000:011x}{secrets.token_hex(6)}"


def order(change: Change) -> tuple[float, str]:
    """The order in which changes count."""
    return change.at, change.uid


def concerns(body: Body) -> str:
    """The id of the record a change is about; "" for none."""
    if isinstance(body, Opened):
        return body.record.id
    return "" if isinstance(body, Marked) else body.id


def erased(change: Change) -> Change:
    """The change without what was said in it."""
    match change.body:
        case Opened(record):
            body: Body = Erased(record.id, identity(record), record.sources)
        case Closed(id, start, _, final, sources):
            body = Closed(id, start, "", final, sources)
        case Tried(id, task, status):
            body = Tried(id, task, status)
        case _:
            return change
    return Change(change.uid, change.at, body, change.key)


def purges_of(changes: Iterable[Change]) -> dict[str, list[Change]]:
    """The purges among changes, by record."""
    found: dict[str, list[Change]] = {}
    for one in changes:
        if isinstance(one.body, Purged):
            found.setdefault(one.body.id, []).append(one)
    return found


def kept(change: Change, purges: Mapping[str, Sequence[Change]]) -> Change:
    """The change as it may be kept where these records were purged."""
    for purge in purges.get(concerns(change.body), ()):
        if isinstance(purge.body, Purged) and (purge.body.final or order(change) < order(purge)):
            return erased(change)
    return change


def to_row(change: Change) -> ChangeRow:
    """The change as it is stored. Raises `StoreError` when it could not be read again as it is."""
    body = change.body
    encoded = _encoded(change)
    kind = str(type(body).__struct_config__.tag)
    topic = ""
    if isinstance(body, Opened):
        topic = identity(body.record)
    elif isinstance(body, Erased):
        topic = body.said
    elif isinstance(body, Tried):
        topic = body.task
    return ChangeRow(0, change.uid, change.at, kind, change.key, concerns(body), topic, encoded)


def _encoded(change: Change) -> bytes:
    body = change.body
    record = body.record if isinstance(body, Opened) else None
    try:
        encoded = msgspec.json.encode(body)
        _BODY.decode(encoded)  # nothing is written that would damage the log for all who read it
        times = [change.at, body.start if isinstance(body, Closed) else None]
        times += [record.valid_from, record.valid_to] if record is not None else []
        if not all(isfinite(at) for at in times if at is not None):
            raise ValueError("its times must be finite numbers of seconds")
        for name in (change.uid, change.key, concerns(body), "" if record is None else record.kind):
            if storable(name) != name:
                raise ValueError(f"the name {name!r} has a NUL or a lone surrogate")
    except (msgspec.MsgspecError, ValueError, TypeError, RecursionError) as error:
        raise StoreError(f"this cannot be stored: {error}; nothing was written") from error
    return encoded


_BODY = msgspec.json.Decoder(Body)


def from_row(row: ChangeRow) -> Change:
    """The change in a row. Raises `StoreError` when the row is damaged."""
    try:
        return Change(row.uid, row.at, _BODY.decode(row.body), row.key)
    except (msgspec.DecodeError, TypeError) as error:
        reason = f"change {row.position} of the memory is damaged: {error}; restore the file from a backup"
        raise StoreError(reason) from error
