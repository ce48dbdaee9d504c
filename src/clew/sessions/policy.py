"""What a session needs to know of a context policy, and how a policy's edits become a compaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol

from msgspec import Struct

from clew.budget import Budget
from clew.messages import Usage
from clew.models.steps import Steps
from clew.sessions.edits import Drop, Edit, Insert, Replace, unpack
from clew.sessions.entries import Account, Compaction
from clew.sessions.view import Item, View

Reason = Literal["threshold", "overflow", "manual", "idle"]


class Due(Struct, frozen=True, omit_defaults=True):
    """Why a view is to be compacted now: it holds `tokens`, the policy wants at most `limit`.

    `focus` is what the user asked the summary to keep in view; `failures` counts attempts that
    failed since the last compaction that worked.
    """

    reason: Reason
    tokens: int = 0
    limit: int = 0
    focus: str = ""
    failures: int = 0


class Policy(Protocol):
    """Decides when a view is due for compaction, and what the compaction is."""

    @property
    def name(self) -> str: ...

    def budget(self, window: int) -> Budget:
        """The limits this policy works with in a window of so many tokens."""
        ...

    def due(self, view: View, budget: Budget) -> Due | None:
        """Whether to compact before the next model call. Pure."""
        ...

    def compact(self, view: View, budget: Budget, due: Due) -> Steps[Compaction | None]:
        """The compaction, or None when there is nothing to do."""
        ...


def compaction(
    view: View,
    edits: Sequence[Edit],
    due: Due,
    *,
    policy: str,
    calls: int = 0,
    usage: Usage = Usage(),
    details: Mapping[str, Any] | None = None,
) -> Compaction:
    """A compaction of these edits, measured: tokens before and after, and the account of every message."""
    return Compaction(
        edits=tuple(edits),
        reason=due.reason,
        policy=policy,
        before=view.tokens,
        after=view.edited(edits).tokens,
        account=account(view, edits),
        calls=calls,
        usage=usage,
        details=dict(details or {}),
    )


def account(view: View, edits: Sequence[Edit]) -> Account:
    """What the edits make of every message of the view."""
    fate: dict[int, str] = {}
    for edit in edits:
        if isinstance(edit, Drop):
            for i in unpack(edit.ids):
                fate.setdefault(i, "dropped")
        elif isinstance(edit, Replace):
            word = {"summary": "summarised", "mask": "masked", "shrink": "masked", "keep": "kept"}[edit.how]
            for i in unpack(edit.ids):
                if fate.get(i) != "summarised":
                    fate[i] = word
        if isinstance(edit, Insert) and edit.how in ("summary", "keep"):
            for i in unpack(edit.sources):
                if fate.get(i) == "dropped" or edit.how == "keep":
                    fate[i] = "summarised" if edit.how == "summary" else "kept"
    counts = {"kept": 0, "summarised": 0, "masked": 0, "dropped": 0}
    for item in view.items:
        if item.kind != "mend":
            counts[_worst(fate, item)] += 1
    return Account(**counts)


def _worst(fate: Mapping[int, str], item: Item) -> str:
    words = {fate.get(i, "kept") for i in item.ids}
    if len(words) == 1:
        return words.pop()
    return "kept" if "kept" in words else "summarised" if "summarised" in words else words.pop()
