"""The rows a store holds: plain values, with an entry's body as JSON that storage never reads."""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct


class SessionRow(Struct, frozen=True):
    """A session as the store knows it, and all that listing sessions needs.

    `leaf` is the entry the session stands at (None before the first), `last` the newest id ever
    given, `entries` how many entries are its own. A fork names the session and the entry it
    continues. Times are seconds since 1970. `lease_owner` is who may write now ("" for nobody),
    until `lease_expires`. `meta` is JSON.
    """

    namespace: str
    id: str
    title: str = ""
    created: float = 0.0
    updated: float = 0.0
    leaf: int | None = None
    last: int = 0
    entries: int = 0
    parent: str | None = None
    parent_entry: int | None = None
    lease_owner: str = ""
    lease_expires: float = 0.0
    meta: bytes = b"{}"


class EntryRow(NamedTuple):
    """An entry as stored; `body` is its JSON. In a damaged file any value may be anything."""

    id: int
    parent: int | None
    kind: str
    at: float
    key: str
    body: bytes


class ChangeRow(NamedTuple):
    """A change of a memory as stored; `body` is its JSON. `position` counts changes as they arrive in a namespace,
    `at` is when it was made (seconds since 1970), `record` the id of the record it concerns, `topic` what else it is
    found by. In a damaged file any value may be anything."""

    position: int
    uid: str
    at: float
    kind: str
    key: str
    record: str
    topic: str
    body: bytes


class VersionRow(NamedTuple):
    """A version of a record as the table of versions has it: see `clew.storage.schema.versions`."""

    record: str
    position: int
    kind: str
    session: str
    created: float
    born: str
    since: float
    until: float
    changed: float
    valid_from: float
    valid_to: float | None
    uses: int
    pinned: bool
    sources: bytes | None


class FoundRow(NamedTuple):
    """A version that was found, with its content: the body of the change `uid` that opened it."""

    version: VersionRow
    uid: str
    body: bytes
