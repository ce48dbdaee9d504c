"""What the log is made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from clew.messages import Message, Usage
from clew.models.steps import Failure
from clew.sessions.edits import Edit


class Said(Struct, frozen=True, gc=False, tag="message", omit_defaults=True):
    """A message of the conversation.

    `tokens` is its count by the counter named `counter`. `replaced` tells how many lone surrogates
    (halves of characters, which no provider accepts) became U+FFFD when the message was appended.
    """

    message: Message
    tokens: int = 0
    counter: str = ""
    replaced: int = 0


class Account(Struct, frozen=True, omit_defaults=True):
    """What became of every message of the view: how many were kept, summarised, masked, dropped."""

    kept: int = 0
    summarised: int = 0
    masked: int = 0
    dropped: int = 0


class Compaction(Struct, frozen=True, tag="compaction", omit_defaults=True):
    """A change of the view: edits with their reason, cost and account.

    `before` and `after` are the view's tokens, `calls` and `usage` what the model was asked for,
    `details` what the policy wants to find again next time (file lists, …).
    """

    edits: tuple[Edit, ...]
    reason: str = "threshold"
    policy: str = ""
    before: int = 0
    after: int = 0
    account: Account = Account()
    calls: int = 0
    usage: Usage = Usage()
    details: Mapping[str, Any] = field(default_factory=dict)


class BranchSummary(Struct, frozen=True, tag="branch_summary", omit_defaults=True):
    """What happened on a branch that was left at entry `leaf`; shown to the model as `message`."""

    message: Message
    leaf: int
    details: Mapping[str, Any] = field(default_factory=dict)


class Failed(Struct, frozen=True, tag="failure"):
    """An attempt that did not count. The view is the same as before it."""

    failure: Failure


class Pin(Struct, frozen=True, tag="pin", omit_defaults=True):
    """A text that no compaction may lose (`Session.pin`)."""

    text: str


class Label(Struct, frozen=True, tag="label", omit_defaults=True):
    """A name for an entry (empty clears it)."""

    target: int
    text: str = ""


class Note(Struct, frozen=True, tag="note", omit_defaults=True):
    """Anything else that happened, kept verbatim and never shown to the model (imports use it)."""

    kind: str
    data: Mapping[str, Any] = field(default_factory=dict)


Body = Said | Compaction | BranchSummary | Failed | Pin | Label | Note


class Entry(Struct, frozen=True, gc=False, omit_defaults=True):
    """One line of the log.

    `id` counts from 1 in its session and grows along every branch; `parent` is None at a root;
    `at` is seconds since 1970; `key`, unique in the session, makes an append repeatable.
    """

    id: int
    parent: int | None
    body: Body
    at: float = 0.0
    key: str = ""


LEAF = -1
"""As a draft's parent: the entry before it (the session's leaf for the first)."""


class Draft(Struct, frozen=True):
    """An entry about to be appended. `parent` is an entry id, None for a new root, or `LEAF`.

    A draft whose `key` the session already holds is not appended again.
    """

    body: Body
    parent: int | None = LEAF
    key: str = ""
    at: float = 0.0
