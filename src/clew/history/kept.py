"""A history in a session, the default: nothing appended is lost, and what is compacted is compacted once.

The session's log holds every message; a retrieval reads the view. When the view is over what the query allows, a
guarded policy compacts it, and the compaction is stored: the next retrieval shows the same messages and asks no
model. A query's roles and steps only choose what of the view is given out, calls and results in pairs. `max_tokens`
is what the history may hold beside the coming prompt (that is how QitOS's engine computes it), so `pending_content`
is reported and not counted again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from clew.budget import Budget
from clew.history.messages import Event, HistoryMessage, Query
from clew.history.raw import Occasion, metadata_of
from clew.history.translate import logged, role_of, shown, whole
from clew.messages import Message, user
from clew.models.steps import Failure, Steps, run
from clew.policies.guard import Guarded
from clew.policies.harness.qitos import META, available
from clew.sessions.entries import Account, Compaction, Draft, Failed, Note, Said
from clew.sessions.policy import Due, Policy, account
from clew.sessions.session import COMPACTIONS, Session
from clew.sessions.view import Item, Run, View

COMING = 2**62
"""The entry id that stands for the coming prompt while a compaction is made."""

EMPTY_REPLY = "empty_reply"
"""The kind of note that an assistant message without text and calls is logged as."""

LINE = 120
"""Length of a line of `summarize`, in characters (QitOS 0.3.0)."""


class Plan(Protocol):
    """What a kind of history does about a view that exceeds what a query allows. `name` stands in its events."""

    @property
    def name(self) -> str: ...

    def limit(self, query: Query) -> int:
        """Tokens the history may hold; 0 or less: what the model's window leaves."""
        ...

    def warning_ratio(self, query: Query) -> float:
        """The share of the limit from which a `warning` is sent."""
        ...

    def policies(self, query: Query) -> Sequence[Policy]:
        """The policies that apply, one after the other; none when nothing is to be compacted."""
        ...


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
        if occasion.budget and occasion.tokens >= (
            line := max(1, int(occasion.budget * (occasion.warning_ratio or 1)))
        ):
            events.append(occasion.event("warning", warning_threshold=line))
        policies = self.plan.policies(query)
        for policy in policies:
            events += self._fit(policy, occasion)
        if occasion.budget and self._weight() > occasion.budget and not policies:
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
        return max((self._steps.get(i, 0) for i in item.ids), default=0)

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

    def _weight(self) -> int:
        view = self.session.view
        return view.weigh(view.items[view.head() :])

    def _occasion(self, query: Query) -> Occasion:
        view = self.session.view
        pending = view.counter.text(str(query.get("pending_content") or ""))
        limit = self.plan.limit(query)
        count = len(view.items) - view.head()
        ratio = self.plan.warning_ratio(query)
        return Occasion(self.plan.name, count, self._weight(), pending, limit if limit > 0 else None, ratio)

    def _fit(self, policy: Policy, occasion: Occasion) -> list[Event]:
        """Compacts as often as a session would: again, while the policy is still due and it helped."""
        events: list[Event] = []
        for _ in range(COMPACTIONS):
            before = self.session.view.tokens
            events += self._compact(policy, occasion)
            if self.session.view.tokens >= before:
                break
        return events

    def _compact(self, policy: Policy, occasion: Occasion) -> list[Event]:
        past = self.session.view
        view, budget = _with_coming(past), self._budget(past, occasion.budget)
        guarded = Guarded(_Past(policy, past))
        due = guarded.due(view, budget)
        if due is None:
            return []
        world = _Recording(self.session)
        due = replace(due, failures=self._failures())
        found = run(guarded.compact(view, budget, due), world)
        events = [occasion.event("compact_skipped", reason=f.reason, detail=f.detail) for f in world.failures]
        if found is not None:
            found = replace(found, account=account(past, past.edited(found.edits)))
            self.session.append_many([Draft(found)])
            events += self._applied(found, occasion)
        return events

    def _budget(self, view: View, limit: int | None) -> Budget:
        """The limit as a budget; the model's own window is what its summary requests may fill."""
        window = self.session.model.context_window
        room = available(window) if limit is None else limit + view.weigh(view.items[: view.head()])
        window = max(window, room)
        return Budget(window, window - room, room, max(1, room // 2))

    def _applied(self, found: Compaction, occasion: Occasion) -> list[Event]:
        """What the compaction did: an event for QitOS's first step, if it took both, and one for what it came to."""
        account, stages = found.account, found.details.get("stages", [])
        figures = {"kept": account.kept, "messages_dropped": account.dropped, "policy": found.policy}
        figures |= {"summarized_message_count": account.summarised, "messages_compacted": account.masked}
        view = self.session.view
        last = _main_effect(account)
        return [
            *(
                occasion.event(s["name"], s["tokens"], s["messages"], **s["figures"])
                for s in stages
                if s["name"] != last
            ),
            occasion.event(last, self._weight(), len(view.items) - view.head(), **figures),
        ]

    def _failures(self) -> int:
        """Attempts that failed since the last compaction that worked."""
        count = 0
        for entry in reversed(list(self.session.branch())):
            if isinstance(entry.body, Compaction):
                break
            count += isinstance(entry.body, Failed)
        return count


class _Past(Struct, frozen=True):
    """A policy that is asked about the history alone, without the coming prompt."""

    policy: Policy
    past: View

    @property
    def name(self) -> str:
        return self.policy.name

    def budget(self, window: int) -> Budget:
        return self.policy.budget(window)

    def due(self, view: View, budget: Budget) -> Due | None:
        return self.policy.due(self.past, budget)

    def compact(self, view: View, budget: Budget, due: Due) -> Steps[Compaction | None]:
        return self.policy.compact(self.past, budget, due)


class _Recording:
    """The session as the world of a compaction, with the failures at hand."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.model = session.model
        self.failures: list[Failure] = []

    def read_file(self, path: str) -> str | None:
        return self.session.read_file(path)

    def record(self, failure: Failure) -> None:
        self.failures.append(failure)
        self.session.record(failure)


def _main_effect(account: Account) -> str:
    """The event that names what a compaction did above all."""
    if account.summarised:
        return "summary_compact_applied"
    return "microcompact_applied" if account.masked else "messages_dropped"


def _with_coming(view: View) -> View:
    """The view with a stand-in for the coming prompt, unless the user has the last word already.

    The prompt is the newest message of the user, which nothing may touch; all of the history may be compacted.
    """
    if view.last_user() == len(view.items) - 1:
        return view
    coming = Item(user("[the coming prompt]"), (COMING,), 0)
    return replace(view, items=Run([*view.items, coming]))


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
