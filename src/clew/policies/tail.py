"""The two plainest policies: a sliding window, and a rolling summary with the last messages after it.

Both keep the end of the conversation and begin it with a user message, so that no request opens with a reply;
inside a long turn they cut before a round instead. They count messages after the system prompt, summaries aside.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from clew.budget import Budget
from clew.errors import BadBudget
from clew.models.steps import Steps
from clew.policies.cuts import safe_before, turns
from clew.policies.fences import summary_message, summary_text
from clew.policies.summarise import summarise
from clew.policies.triggers import above
from clew.sessions.edits import Drop, Replace, pack
from clew.sessions.entries import Compaction
from clew.sessions.policy import Due, compaction
from clew.sessions.view import Item, View


class Window(Struct, frozen=True):
    """The last `messages` messages; what is older is dropped, and recorded as dropped."""

    messages: int = 24

    @property
    def name(self) -> str:
        return "window"

    def budget(self, window: int) -> Budget:
        """The default limits: the guard keeps them when the last messages alone are too large."""
        if self.messages < 1:
            raise BadBudget(f"a window of {self.messages} messages shows nothing; give 1 or more")
        return Budget.of(window, trigger=1.0)

    def due(self, view: View, budget: Budget) -> Due | None:
        """Due when the view holds more messages."""
        return _longer(view, self.messages)

    def compact(self, view: View, budget: Budget, due: Due) -> Steps[Compaction | None]:
        """Drops what is older than the window."""
        yield from ()
        old = _before(view, self.messages)
        return compaction(view, [Drop(_ids(old))], due, policy=self.name) if old else None


class RollingSummary(Struct, frozen=True):
    """One summary of everything but the last `keep` messages, updated each time.

    Due above `messages` messages (None: no such limit) or above `max_tokens` tokens of view (None: what the window
    leaves). `summary_tokens`: length of the summary at most, a third of the limit if that is less.
    """

    messages: int | None = None
    keep: int = 8
    max_tokens: int | None = None
    summary_tokens: int = 800

    @property
    def name(self) -> str:
        return "rolling_summary"

    def budget(self, window: int) -> Budget:
        """The default limits, `max_tokens` as the trigger. Raises `BadBudget` when nothing would be summarised."""
        if self.keep < 1:
            raise BadBudget(f"keep {self.keep} leaves no message to answer; give 1 or more")
        if self.messages is not None and self.messages <= self.keep:
            raise BadBudget(f"above {self.messages} messages, keep {self.keep}: keep must be less")
        return Budget.of(window, trigger=self.max_tokens)

    def due(self, view: View, budget: Budget) -> Due | None:
        """Due when the view is too long, by count or in tokens."""
        found = above(view, budget.trigger)
        if found is None and self.messages is not None:
            found = _longer(view, self.messages)
        return found

    def compact(self, view: View, budget: Budget, due: Due) -> Steps[Compaction | None]:
        """The summary of what is older than the last messages; None when there is nothing older."""
        old = _before(view, self.keep)
        fresh = [i for i in old if i.kind != "summary"]
        if not fresh:
            return None
        made = yield from summarise(
            view,
            [i.message for i in fresh],
            budget,
            max_output=min(self.summary_tokens, max(budget.trigger // 3, 1)),
            previous="\n\n".join(summary_text(i.message) for i in old if i.kind == "summary"),
            focus=due.focus,
        )
        edit = Replace(_ids(old), summary_message(made.text))
        return compaction(view, [edit], due, policy=self.name, calls=made.calls, usage=made.usage)


def _longer(view: View, messages: int) -> Due | None:
    shown = sum(1 for item in view.items[view.head() :] if item.kind not in ("mend", "summary"))
    return Due("threshold", view.tokens, view.tokens) if shown > messages else None


def _before(view: View, keep: int) -> list[Item]:
    """What is older than the last `keep` messages, or than the turn that begins among them, if one does.

    The newest message of the user is never part of it.
    """
    start = _nth_last(view, keep)
    turn = next((i for i in turns(view) if i >= start), None)
    cut = safe_before(view, start) if turn is None else turn
    newest = max((i for i in range(len(view.items)) if _by_user(view.items[i])), default=None)
    return [view.items[i] for i in range(view.head(), cut) if i != newest and view.items[i].kind != "mend"]


def _by_user(item: Item) -> bool:
    """What the user wrote, as it was or shortened."""
    return item.message.role == "user" and item.kind not in ("mend", "summary")


def _nth_last(view: View, n: int) -> int:
    for i in range(len(view.items) - 1, view.head() - 1, -1):
        n -= view.items[i].kind not in ("mend", "summary")
        if n <= 0:
            return i
    return view.head()


def _ids(items: Sequence[Item]) -> tuple[int | tuple[int, int], ...]:
    return pack(i for item in items for i in item.ids)
