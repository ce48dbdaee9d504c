"""Pi's conversation: its entries, which of them the model sees, and how full its context is.

Pure functions over `PiEntry`. The policy (`pi.py`) makes the entries from a view, `pi_log.py` from
Pi's own session file; both make the same decisions on them. Behaviour and constants:
pi-coding-agent 0.73.1 (`@mariozechner`) and 1.6.0 (`@earendil-works`), `core/compaction` and
`core/session-manager`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from clew.messages import Message

Version = Literal["0.73.1", "1.6"]

Kind = Literal["message", "custom_message", "branch_summary", "compaction", "metadata"]


class PiEntry(Struct, frozen=True):
    """One entry of a conversation, as far as Pi's compaction looks at it.

    `role` is the role of the message it shows ("" when it shows none) and `message` that message as
    the model reads it (None: left out); `tokens` is its size, `reported` the context in tokens that a
    valid reply's usage gives. `summary`, `first_kept` and `details` (`readFiles`, `modifiedFiles`;
    empty when an extension made them) belong to compactions and branch summaries. `source` is what
    the entry was made from.
    """

    id: Any
    kind: Kind
    role: str = ""
    message: Message | None = None
    tokens: int = 0
    reported: int | None = None
    parent: Any = None
    summary: str = ""
    first_kept: Any = None
    details: Mapping[str, Any] = field(default_factory=dict)
    source: Any = None

    @property
    def shown(self) -> bool:
        """Whether it shows the model a message. A branch summary without text does not."""
        return bool(self.role) and not (self.kind == "branch_summary" and not self.summary)


def path(entries: Sequence[PiEntry], leaf: Any = ...) -> list[PiEntry]:
    """The entries from the root to `leaf`. None gives nothing; an unknown, empty or absent one the last entry.

    Of entries with one id the last counts. The walk stops at a missing parent (and at a cycle, which
    upstream would follow for ever).
    """
    if leaf is None or not entries:
        return []
    index = {entry.id: entry for entry in entries}
    current: PiEntry | None = (index.get(leaf) if leaf is not ... and leaf else None) or entries[-1]
    walked: dict[Any, PiEntry] = {}
    while current is not None and current.id not in walked:
        walked[current.id] = current
        current = index.get(current.parent) if current.parent else None
    return list(walked.values())[::-1]


def projected(branch: Sequence[PiEntry], version: Version) -> list[PiEntry]:
    """The entries the model's context is made of: the newest compaction, what it kept, what came after it.

    Entries that show nothing are in it too, among them older compactions in the kept range.
    """
    newest = newest_compaction(branch)
    if newest is None:
        return list(branch)
    compaction = branch[newest]
    kept = next((i for i in range(newest) if branch[i].id == compaction.first_kept), newest)
    return [
        compaction,
        *(
            replace(e, role="", tokens=0) if e.kind == "compaction" else e
            for e in branch[kept:newest]
            if version == "0.73.1" or e.role != "system"
        ),
        *branch[newest + 1 :],
    ]


def context(branch: Sequence[PiEntry], version: Version) -> list[PiEntry]:
    """The entries of `projected` that show the model a message."""
    return [e for e in projected(branch, version) if e.shown]


def newest_compaction(branch: Sequence[PiEntry]) -> int | None:
    """The index of the newest compaction."""
    return next((i for i in range(len(branch) - 1, -1, -1) if branch[i].kind == "compaction"), None)


class Fill(Struct, frozen=True):
    """How full a context is, in tokens: `reported` by the reply at index `at`, and `trailing`, estimated, after it."""

    reported: int
    trailing: int
    at: int | None

    @property
    def tokens(self) -> int:
        return self.reported + self.trailing


def fill(shown: Sequence[PiEntry], version: Version) -> Fill:
    """The fill of a context by the usage of its newest valid reply and the estimates of what follows.

    Defect of 0.73.1: a usage of all zeros is believed.
    """
    for i in range(len(shown) - 1, -1, -1):
        reported = shown[i].reported
        if reported is not None and (reported > 0 or version == "0.73.1"):
            return Fill(reported, sum(e.tokens for e in shown[i + 1 :]), i)
    return Fill(0, sum(e.tokens for e in shown), None)


def branch_fill(branch: Sequence[PiEntry], version: Version) -> Fill:
    """The fill of a branch's context.

    1.6 does not believe usage from before the newest compaction; 0.73.1 does (a defect: it is the
    size of the longer context).
    """
    shown = context(branch, version)
    found = fill(shown, version)
    newest = newest_compaction(branch)
    if version == "0.73.1" or found.at is None or newest is None:
        return found
    if any(entry is shown[found.at] for entry in branch[newest + 1 :]):
        return found
    return Fill(0, sum(e.tokens for e in shown), None)
