"""Pi (`pi-coding-agent`): one summary for what is older than a number of tokens.

- **Trigger**: the context is strictly larger than the window less `reserve`.
- **Kept**: about `keep` tokens, counted back from the newest message and cut at a user message or a
  reply, never at a tool result; the cut may lie inside a turn.
- **Replaced**: everything before, by one user message with a summary in `<summary>` tags. The last
  summary is updated, and what it had left standing is summarised again. The beginning of a turn that
  the cut splits is summarised by a call of its own. The files read and modified are listed at the
  end of the summary and carried from one compaction to the next.
- **Constants**: reserve 16,384, keep 20,000 tokens, 2,000 characters of each tool result in the text
  that is summarised, reply limits of 0.8 and 0.5 of the reserve (0.73.1 only; settings and
  `core/compaction` of 0.73.1 and 1.6.0).

Defects of upstream, reproduced here and mended by the guard: 0.73.1 keeps everything when the newest
tool results alone exceed `keep`, compacts a conversation that fits in `keep` (an empty summary is put
in front of it), loses the last summary when a split turn has no history before it, and takes a blank or
cut-off answer for a summary.

Where Clew differs: the trigger counts with the session's counter, calibrated by reported usage, where
Pi takes the newest reply's usage and characters over 4 for what follows (`pi_entries.fill`); in windows
below 80,000 tokens the defaults of `reserve` and `keep` shrink to a quarter of the window, where Pi
would compact before every call, and the replies are limited in 1.6 too; system messages inside the
conversation stay where they are; the two summaries of a split turn are asked for one after the other
(as 1.6 does); pinned texts stand at the end of the summary. The decisions are in `pi_cut`, the
summaries in `pi_summary`, branch summaries in `pi_branches`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from clew.budget import Budget
from clew.errors import BadBudget
from clew.messages import Message, Text
from clew.models.steps import Steps
from clew.policies import triggers
from clew.policies.fences import pinned, summary_text
from clew.policies.harness.pi_cut import Preparation, prepare
from clew.policies.harness.pi_entries import PiEntry, Version
from clew.policies.harness.pi_summary import Limits, Summary, compaction_text, summarise
from clew.sessions.edits import Edit, Insert, Replace, pack
from clew.sessions.entries import Compaction
from clew.sessions.policy import Due, compaction
from clew.sessions.view import Item, View

RESERVE = 16_384
"""Tokens kept free for the reply (`compaction.reserveTokens`)."""

KEEP = 20_000
"""Tokens of recent conversation that stay (`compaction.keepRecentTokens`)."""

ROOMY = 4 * KEEP
"""The window, in tokens, from which on Pi's own numbers hold."""

VERSIONS = ("0.73.1", "1.6")


class Pi(Struct, frozen=True):
    """Pi's policy, unguarded.

    `reserve` and `keep` are in tokens; None takes Pi's values, at most a quarter of the window each.
    `version` is the upstream whose decisions are made: "0.73.1" or "1.6".
    """

    reserve: int | None = None
    keep: int | None = None
    version: Version = "1.6"

    @property
    def name(self) -> str:
        return "pi"

    def budget(self, window: int) -> Budget:
        """The window less the reserve. Raises `BadBudget` when reserve and keep cannot work in it."""
        if self.version not in VERSIONS:
            raise BadBudget(f"pi has the versions {' and '.join(VERSIONS)}, not {self.version!r}")
        for name, value in (("reserve", self.reserve), ("keep", self.keep)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise BadBudget(f"{name} must be a positive number of tokens, not {value!r}")
        reserve, keep = self.limits(window)
        limit = triggers.reserve(window, reserve)
        if keep >= limit:
            raise BadBudget(
                f"keep {keep:,} tokens do not fit in a window of {window:,} less a reserve of {reserve:,} "
                f"({limit:,} tokens); lower one of them"
            )
        return Budget.of(window, output=reserve, trigger=limit, target=limit)

    def limits(self, window: int) -> tuple[int, int]:
        """Reserve and keep in a window, in tokens."""
        quarter = window // 4
        return (
            min(RESERVE, quarter) if self.reserve is None else self.reserve,
            min(KEEP, quarter) if self.keep is None else self.keep,
        )

    def due(self, view: View, budget: Budget) -> Due | None:
        """Due when the view holds strictly more than the window less the reserve."""
        return triggers.above(view, budget.trigger)

    def compact(self, view: View, budget: Budget, due: Due) -> Steps[Compaction | None]:
        """One summary for what the cut leaves out. None when there is nothing to summarise (1.6)."""
        reserve, keep = self.limits(budget.window)
        prepared = prepare(entries(view), keep, self.version)
        if prepared is None:
            return None
        limits = Limits.of(reserve, self.version if budget.window >= ROOMY else "0.73.1")
        summary = yield from summarise(prepared, limits, self.version, due.focus)
        return compaction(
            view,
            [_edit(view, prepared, summary)],
            due,
            policy=self.name,
            calls=summary.calls,
            usage=summary.usage,
            details=summary.details,
        )


# Views as Pi sees them

ROLES = {"user": "user", "assistant": "assistant", "tool": "toolResult"}


def entries(view: View) -> list[PiEntry]:
    """A view's items after the leading system messages, as Pi's entries; ids are places, from 1.

    A summary at the beginning is the last compaction, one further on a branch's. Mends are no entries:
    the view makes them anew.
    """
    found = [
        PiEntry(
            id=place,
            kind="message",
            role=ROLES.get(item.message.role, ""),
            message=item.message,
            tokens=view.weigh([item]),
            source=item,
        )
        for place, item in enumerate(_conversation(view), 1)
    ]
    return [_summary(e, first=e.id == 1) if e.source.kind == "summary" else e for e in found]


def _conversation(view: View) -> Iterable[Item]:
    return (item for item in view.items[view.head() :] if item.kind != "mend")


def _summary(entry: PiEntry, *, first: bool) -> PiEntry:
    noted = entry.source.message.meta.get("clew", {})
    last = first and not noted.get("branch")
    return replace(
        entry,
        kind="compaction" if last else "branch_summary",
        role="compactionSummary" if last else "branchSummary",
        summary=noted.get("summary") or summary_text(entry.source.message),
        first_kept=entry.id + 1,
        details=noted,
    )


def _edit(view: View, prepared: Preparation, summary: Summary) -> Edit:
    """The summary in the place of everything before the first kept entry.

    When nothing is before it (0.73.1 compacts all the same) the summary is put in front.
    """
    noted: dict[str, Any] = {"summary": summary.text, **summary.details}
    text = compaction_text(pinned(summary.text, view.pins))
    message = Message("user", (Text(text),), meta={"clew": noted})
    gone = [
        item
        for place, item in enumerate(_conversation(view), 1)
        if place < prepared.first_kept.id and item.message.role != "system"
    ]
    if not gone:
        return Insert(None, message)
    return Replace(pack(i for item in gone for i in item.ids), message)
