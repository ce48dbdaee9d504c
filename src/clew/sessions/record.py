"""A session's log as its user sees it: what was said, where the conversation stands, how it branched."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from types import TracebackType
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from clew.errors import BadPayload, StoreError, UnknownName
from clew.messages import Message, sanitized
from clew.sessions.entries import Body, Draft, Entry, Label, Pin, Said
from clew.sessions.expand import originals
from clew.sessions.log import Log
from clew.sessions.stored import encoded
from clew.sessions.tree import Damage, Node
from clew.tokens.protocol import TokenCounter

Self = TypeVar("Self", bound="Record")

CHUNK = 100
"""Entries read at a time when looking backwards."""


class Ancestor(Struct, frozen=True):
    """A session that this one continues, and the entry where it was left (None: before the first)."""

    session: str
    entry: int | None
    title: str = ""


class Record:
    """The log of a session: append, look back, and move between branches. Nothing is ever rewritten.

    Every write is on disk when the call returns. It raises `SessionBusy` while another writer has the
    session, `LeaseLost` when another has taken it over, `StoreError` when the store cannot be
    written; then nothing was.
    """

    def __init__(self, log: Log, counter: TokenCounter) -> None:
        self._log = log
        self._counter = counter
        self._closed = False
        self._alone = threading.RLock()  # held where the log or what is known of it changes

    def close(self) -> None:
        """Gives the lease back and lets go of the store. What was appended is on disk without it."""
        with self._alone:
            if self._closed:
                return
            self._closed = True
            try:
                self._log.release()
            finally:
                self._log.store.close()

    def __repr__(self) -> str:
        title = f" {self.title!r}" if self.title else ""
        return f"<{type(self).__name__} {self.id}{title} at entry {self.leaf}>"

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- what it is

    @property
    def id(self) -> str:
        """The session's id, unique in its namespace."""
        return self._log.row.id

    @property
    def where(self) -> str:
        """The store it is in: the file's path, or an address."""
        return self._log.store.where

    @property
    def namespace(self) -> str:
        """Whose session it is."""
        return self._log.row.namespace

    @property
    def title(self) -> str:
        """The title it was made with."""
        return self._log.row.title

    @property
    def meta(self) -> dict[str, Any]:
        """The `meta` it was made with."""
        try:
            return msgspec.json.decode(self._log.row.meta, type=dict[str, Any])
        except msgspec.MsgspecError as error:
            raise StoreError(f"the meta of session {self.id} cannot be read: {error}") from error

    @property
    def leaf(self) -> int | None:
        """The entry the session stands at: the next one follows it. None before the first."""
        return self._log.leaf

    @property
    def newest(self) -> int:
        """The id of the newest entry, on whatever branch; 0 when there is none."""
        return self._log.tree.newest

    @property
    def damage(self) -> tuple[Damage, ...]:
        """What is wrong with the stored session. Reads the whole log, changes nothing."""
        return (*self._log.faults, *self._log.unreadable())

    def refresh(self) -> None:
        """Takes up what another writer has added meanwhile (a first write does so by itself)."""
        with self._alone:
            self._log.refresh()

    def claim(self) -> None:
        """Takes the write lease now, which the first write does otherwise; raises what a write raises."""
        with self._alone:
            self._log.claim()

    # -- adding

    def append(self, message: Message, key: str = "") -> Entry:
        """Adds a message after the leaf.

        Lone surrogates in it become U+FFFD, and the entry says how many (`entry.body.replaced`). With a
        `key` that the session already holds nothing is added, and the entry that is there comes back.
        Raises `BadPayload` on what is no message, has a field of the wrong type, or `meta` that is not JSON.
        """
        return self._add([_draft(message, key)])[0]

    def append_many(self, items: Iterable[Message | Draft]) -> list[Entry]:
        """Adds messages and drafts, all or none, in one transaction; returns one entry for each.

        A draft whose key the session already holds (or an earlier draft of the call has) is not
        added: its entry is the one that is there, and the next draft with parent `LEAF` follows that
        one. The leaf moves to the last entry that was added. The items are held in memory: to import
        more than that, call it for some thousands at a time; each call is then durable by itself.
        """
        return self._add([item if isinstance(item, Draft) else _draft(item) for item in items])

    def pin(self, text: str) -> Entry:
        """Adds a text that no compaction may lose."""
        return self._add([Draft(Pin(text))])[0]

    def label(self, entry: int | Entry, text: str) -> Entry:
        """Names an entry (an empty text clears the name)."""
        return self._add([Draft(Label(self._known(entry), text))])[0]

    # -- looking back

    def branch(self) -> list[Entry]:
        """The entries from the root to the leaf."""
        return list(self._log.branch())

    def branch_after(self, entry: int) -> list[Entry]:
        """The entries of the branch with an id above `entry`, in the time their number takes."""
        return list(self._log.branch(entry))

    def entries(self, after: int = 0) -> Iterator[Entry]:
        """The entries of all branches with an id above `after`, ascending by id, read as they are asked for."""
        ids = self._log.tree.ids()
        return self._log.read(ids[bisect_right(ids, after) :] if after else ids)

    def held(self, keys: Sequence[str]) -> dict[str, int]:
        """Which of these keys the log has, and the ids of their entries; looked up by index."""
        return self._log.held(keys)

    def expand(self, entry: int | Entry) -> list[Entry]:
        """The originals behind a compaction or a branch summary; any other entry stands for itself."""
        return originals(self._log, self._known(entry))

    def tree(self) -> dict[int, Node]:
        """All entries by id, ascending: their parents (None at a root), children, kinds and labels."""
        with self._alone:
            return self._log.nodes()

    def lineage(self) -> list[Ancestor]:
        """The sessions this one continues, the first one first; empty when it is no fork."""
        rows = [*self._log.ancestors, self._log.row]
        return [Ancestor(old.id, new.parent_entry, old.title) for old, new in pairwise(rows)]

    # -- moving

    def branch_to(self, entry: int | Entry | None) -> None:
        """Moves the leaf to an entry of any branch (None: before the first), durably; the log stays whole."""
        with self._alone:
            self._log.move(None if entry is None else self._known(entry))

    def rewind(self, turns: int = 1) -> Entry:
        """Moves the leaf to before the `turns`-th last message of the user on the branch, and returns that entry.

        Raises `UnknownName`, with the leaf where it was, when the branch has fewer.
        """
        if turns < 1:
            raise UnknownName(f"cannot go back {turns} turns: 1 is the newest")
        with self._alone:
            left = turns
            for entry in self._backwards():
                if isinstance(entry.body, Said) and entry.body.message.role == "user":
                    left -= 1
                    if left == 0:
                        self._log.move(entry.parent)
                        return entry
        raise UnknownName(f"cannot go back {turns} turns: the branch of session {self.id} has {turns - left}")

    # -- inside

    def _backwards(self) -> Iterator[Entry]:
        """The entries of the branch, the newest first."""
        ids = self._log.tree.path(self.leaf)
        for end in range(len(ids), 0, -CHUNK):
            yield from reversed(list(self._log.read(ids[max(0, end - CHUNK) : end])))

    def _known(self, entry: int | Entry) -> int:
        id = entry.id if isinstance(entry, Entry) else entry
        if id not in self._log.tree:
            raise UnknownName(f"session {self.id} has no entry {id}; its newest is {self._log.tree.newest}")
        return id

    def _add(self, drafts: Sequence[Draft]) -> list[Entry]:
        ready = [self._ready(draft) for draft in drafts]
        with self._alone:
            return self._log.append([draft for draft, _ in ready], [body for _, body in ready])

    def _ready(self, draft: Draft) -> tuple[Draft, bytes]:
        """The draft as it is stored: sanitised, counted, encoded. Most messages are clean: they are not searched."""
        try:
            counted = self._counted(draft)
            counted.key.encode()
            return counted, encoded(counted.body)
        except (AttributeError, TypeError):
            encoded(draft.body)  # a field of the wrong type cannot be counted either, and this says which
            raise
        except UnicodeEncodeError:
            clean, replaced = sanitized(draft)[0], sanitized(draft.body)[1]
            counted = self._counted(clean)
            if isinstance(counted.body, Said):
                counted = replace(counted, body=replace(counted.body, replaced=replaced))
            return counted, encoded(counted.body)

    def _counted(self, draft: Draft) -> Draft:
        body: Body = draft.body
        if not isinstance(body, Said) or body.counter == self._counter.name:
            return draft
        said = Said(body.message, self._counter.message(body.message), self._counter.name)
        return Draft(said, draft.parent, draft.key, draft.at)


def _draft(message: Message, key: str = "") -> Draft:
    if not isinstance(message, Message):
        raise BadPayload(
            f"a session takes a Message, not a value of type {type(message).__name__}; clew.messages makes one of a "
            "text (`user(text)`), clew.codecs of a provider's payload (`openai.decode([payload])[0]`)"
        )
    return Draft(Said(message), key=key)
