"""What a transcript says, line by line, before it becomes entries: the same words for every format.

Readers yield these with the keys the file itself uses (uuids, entry ids, line numbers). Nothing here
knows of a session; the loader turns keys into entry ids, the recording into places in a list.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from clew.messages import Message, Usage
from clew.sessions.entries import Note


class Boundary(Struct, frozen=True):
    """A compaction the tool made: `summary` takes the place of everything above it on the branch.

    What stays visible beside it: the lines named in `kept`, and those from `kept_from` on. `system`
    replaces the system messages above. `before` and `after` are tokens as the tool counted them,
    `usage` is what the summary cost.
    """

    summary: Message
    kept: tuple[str, ...] = ()
    kept_from: str = ""
    system: Message | None = None
    reason: str = "threshold"
    before: int = 0
    after: int = 0
    usage: Usage | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


class Hidden(Struct, frozen=True):
    """A line taken out of the view later on, by the tool or its user."""

    target: str
    details: Mapping[str, Any] = field(default_factory=dict)


class Aside(Struct, frozen=True):
    """A summary of the branch that ended at line `leaf` ("" when the file does not say)."""

    message: Message
    leaf: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)


class Name(Struct, frozen=True):
    """A label put on line `target` (an empty text clears it)."""

    target: str
    text: str


Body = Message | Note | Boundary | Hidden | Aside | Name


class Line(Struct, frozen=True, gc=False):
    """One thing the transcript holds, and where it hangs.

    `key` and `parent` are the file's own names for it and for what it follows (None: a root). `raw`
    is the text it was read from and `line` where that ends, `at` seconds since 1970 (0: unknown).
    `side` marks what is no part of the main conversation (a subagent's).
    """

    key: str
    parent: str | None
    body: Body
    raw: bytes
    line: int
    at: float = 0.0
    side: bool = False


class Damage(Struct, frozen=True):
    """Something wrong at a line (numbers from 1). `lost`: nothing of the line could be used."""

    line: int
    reason: str
    lost: bool = True


class Start(Struct, frozen=True):
    """Another conversation of the same file begins."""

    name: str


class Leaf(Struct, frozen=True):
    """The conversation's current end is line `key`."""

    key: str


Event = Line | Damage | Start | Leaf
