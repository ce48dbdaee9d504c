"""A history in a session, the default: nothing appended is lost, and what is compacted is compacted once.

The session's log holds every message; a retrieval reads the view. When the view is over what the query allows, a
guarded policy compacts it, and the compaction is stored: the next retrieval shows the same messages and asks no
model. A query's roles and steps only choose what of the view is given out, calls and results in pairs. `max_tokens`
is what the history may hold beside the coming prompt (that is how QitOS's engine computes it), so `pending_content`
is reported and not counted again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from clew.history.fitting import fit, held
from clew.history.messages import Event, HistoryMessage, Query
from clew.history.raw import Occasion, metadata_of
from clew.history.translate import logged, role_of, shown, whole
from clew.messages import Message
from clew.policies.harness.qitos import META
from clew.sessions.edits import unpack
from clew.sessions.entries import Draft, Note, Said
from clew.sessions.policy import Policy
from clew.sessions.session import Session
from clew.sessions.view import Item

EMPTY_REPLY = "empty_reply"
"""The kind of note that an assistant message without text and calls is logged as."""

LINE = 120
"""Length of a line of `summarize`, in characters (QitOS 0.3.0)."""


class Plan(Struct, frozen=True):
    """What a kind of history does about a view that exceeds what a query allows. `name` stands in its events.

    `limit` is what the history may hold when the query does not say, in tokens; 0 or less: what the model's window
    leaves. `policies` gives the policies for a query, applied one after the other; none: nothing is compacted.
    `warning_ratio` is the share of the limit from which a `warning` is sent; None: the query's, or else all of it.
    """

    name: str
    policies: Callable[[Query], Sequence[Policy]]
    limit: int = 0
    warning_ratio: float | None = None


class Kept:
    """The log of a history, and what the last retrieval did. `opened` opens the session of a new run."""

    def __init__(self, plan: Plan, session: Session, opened: Callable[[], Session]) -> None:
        self.plan = plan
        self.opened = opened
        self.events: list[Event] = []
        self.metadata: list[dict[str, Any]] = []
        for policy in plan.policies({}):
            policy.budget(session.model.context_window)  # refuses settings that cannot work
        self._take_up(session)

    def _take_up(self, session: Session) -> None:
        self.session = session
        self._steps: dict[int, int] = {}
        self._waiting: set[str] = set()
        for entry in session.branch():
            if isinstance(entry.body, Said):
                self._note(entry.id, entry.body.message)

    @property
    def messages(self) -> list[HistoryMessage]:
        """What the model would see now, nothing left out."""
        return self._given(list(self.session.view.items))

    def append(self, message: HistoryMessage) -> None:
        """Logs the message. An empty reply is a failed call: it is noted in the log, and is no message."""
        made = logged(message, self._waiting)
        if made.role == "assistant" and made.blank:
            note = {"step": message.step_id, "metadata": message.metadata}
            self.session.append_many([Draft(Note(EMPTY_REPLY, note))])
            return
        self._note(self.session.append(made).id, made)

    def retrieve(self, query: Query) -> list[HistoryMessage]:
        """The view for the next model call, compacted first if it is over what the query allows."""
        occasion = self._occasion(query)
        events = []
        if occasion.budget is not None:
            warned_from = max(1, int(occasion.budget * (occasion.warning_ratio or 1)))
            if occasion.tokens >= warned_from:
                events.append(occasion.event("warning", warning_threshold=warned_from))
        policies = self.plan.policies(query)
        for policy in policies:
            events += fit(self.session, policy, occasion)
        if occasion.budget and held(self.session.view) > occasion.budget and not policies:
            events.append(occasion.event("compact_skipped", reason="auto_compact_disabled"))
        elif all(e["context"]["stage"] == "warning" for e in events):
            events.append(occasion.event("within_budget", reason="within_budget"))
        items = whole([i for i in self.session.view.items if self._asked(i, query)])
        seen = _last(items, int(query.get("max_items") or 0))
        if len(seen) < len(items):
            events.append(occasion.event("left_out", messages=len(seen), messages_left_out=len(items) - len(seen)))
        given = self._given(seen)
        self.events, self.metadata = events, metadata_of(given)
        return given

    def summarize(self, max_items: int) -> str:
        """The last messages, a line each; asks no model and changes nothing."""
        messages = self.messages[-max_items:] if max_items > 0 else self.messages
        return "\n".join(f"[{m.step_id}] {m.role}: {str(m.content)[:LINE]}" for m in messages)

    def evict(self) -> int:
        """Nothing: what is out of the view stays in the log."""
        return 0

    def reset(self) -> None:
        """Goes on in a new session; the old one stays in the store."""
        self.session.close()
        self.events, self.metadata = [], []
        self._take_up(self.opened())

    def _note(self, entry: int, message: Message) -> None:
        self._steps[entry] = int(message.meta.get(META, {}).get("step", 0))
        if message.role == "assistant":
            self._waiting = {call.id for call in message.calls}
        self._waiting -= {result.call_id for result in message.results}

    def _step(self, item: Item) -> int:
        return max((self._steps.get(i, 0) for i in unpack(item.ids)), default=0)

    def _given(self, items: Sequence[Item]) -> list[HistoryMessage]:
        return [m for item in items for m in shown(item, self._step(item), self.plan.name)]

    def _asked(self, item: Item, query: Query) -> bool:
        roles = set(query.get("roles") or ())
        first, last = query.get("step_min"), query.get("step_max")
        return (
            (not roles or item.kind == "summary" or role_of(item) in roles)
            and (first is None or self._step(item) >= first)
            and (last is None or self._step(item) <= last)
        )

    def _occasion(self, query: Query) -> Occasion:
        view = self.session.view
        pending = view.counter.text(str(query.get("pending_content") or ""))
        limit = int(query.get("max_tokens") or self.plan.limit)
        count = len(view.items) - view.head()
        ratio = self.plan.warning_ratio
        if ratio is None:
            ratio = float(query.get("warning_ratio") or 1.0)
        return Occasion(self.plan.name, count, held(view), pending, limit if limit > 0 else None, ratio)


def _last(items: list[Item], n: int) -> list[Item]:
    """The summary in front and the last `n` of the other items (0 or less: all), cut where no round is parted."""
    summaries = [i for i in items if i.kind == "summary"]
    rest = [i for i in items if i.kind != "summary"]
    if n <= 0 or len(rest) <= n:
        return items
    start = len(rest) - n
    while start < len(rest) and rest[start].message.role == "tool":
        start += 1
    return summaries + rest[start:]
