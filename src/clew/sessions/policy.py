"""What a session needs to know of a context policy, and how a policy's edits become a compaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol

from msgspec import Struct

from clew.budget import Budget
from clew.messages import Usage
from clew.models.steps import Steps
from clew.sessions.edits import Edit
from clew.sessions.entries import Account, Compaction
from clew.sessions.spans import Index
from clew.sessions.view import Item, View

Reason = Literal["threshold", "overflow", "manual", "idle"]


class Due(Struct, frozen=True, omit_defaults=True):
    """Why a view is to be compacted now: it holds `tokens`, the policy wants at most `limit`.

    `focus` is what the user asked the summary to keep in view; `failures` counts attempts that
    failed since the last compaction that worked, or since the user last spoke.
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
    after = view.edited(edits)
    return Compaction(
        edits=tuple(edits),
        reason=due.reason,
        policy=policy,
        before=view.tokens,
        after=after.tokens,
        account=account(view, after),
        calls=calls,
        usage=usage,
        details=dict(details or {}),
    )


def account(view: View, after: View) -> Account:
    """What became of every message of a view in the view that edits made of it.

    A message that stands in several places counts where most of it is left: kept before masked before
    summarised before dropped.
    """
    there = [item for item in after.items if item.kind != "mend"]
    index = Index(item.ids for item in there)
    counts = dict.fromkeys(_FATES, 0)
    for item in view.items:
        if item.kind != "mend":
            found = {_fate(item, there[i]) for i in index.sharing(item.ids)}
            counts[next((word for word in _FATES if word in found), "dropped")] += 1
    return Account(**counts)


_FATES = ("kept", "masked", "summarised", "dropped")


def _fate(item: Item, left: Item) -> str:
    if left.message == item.message:
        return "kept"
    return {"mask": "masked", "shrink": "masked", "summary": "summarised"}.get(left.kind, "kept")
