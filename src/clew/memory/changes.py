"""What can happen to a memory: the changes its log is made of. They are appended and never rewritten."""

from __future__ import annotations

import secrets
from typing import Literal

import msgspec
from msgspec import Struct

from clew.errors import StoreError
from clew.memory.records import MemoryRecord, Source
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
    """The records were recalled."""

    ids: tuple[str, ...]


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


Body = Opened | Closed | Cited | Used | Pinned | Marked | Tried


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
    return Change(secrets.token_hex(8), at, body, key)


def to_row(change: Change) -> ChangeRow:
    """The change as it is stored."""
    kind = type(change.body).__struct_config__.tag
    return ChangeRow(0, change.uid, change.at, str(kind), change.key, msgspec.json.encode(change.body))


_BODY = msgspec.json.Decoder(Body)


def from_row(row: ChangeRow) -> Change:
    """The change in a row. Raises `StoreError` when the row is damaged."""
    try:
        return Change(row.uid, row.at, _BODY.decode(row.body), row.key)
    except (msgspec.DecodeError, TypeError) as error:
        reason = f"change {row.position} of the memory is damaged: {error}; restore the file from a backup"
        raise StoreError(reason) from error
