"""Brings a history under what a query allows, with the coming prompt in mind.

A guarded policy compacts the session; the compaction is stored there, and what it did is told in QitOS's events.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from clew.budget import Budget
from clew.history.messages import Event
from clew.history.raw import Occasion
from clew.messages import user
from clew.models.steps import Failure, Steps, run
from clew.policies.guard import Guarded
from clew.policies.harness.qitos import available
from clew.sessions.entries import Account, Compaction, Draft, Failed
from clew.sessions.policy import Due, Policy, account
from clew.sessions.session import COMPACTIONS, Session
from clew.sessions.view import Item, Run, View

COMING = 2**62
"""The entry id that stands for the coming prompt while a compaction is made."""


def held(view: View) -> int:
    """Tokens of the history in a view: all but the system messages at its head."""
    return view.weigh(view.items[view.head() :])


def fit(session: Session, policy: Policy, occasion: Occasion) -> list[Event]:
    """Compacts as often as a session would: again, while the policy is still due and it helped."""
    events: list[Event] = []
    for _ in range(COMPACTIONS):
        before = session.view.tokens
        events += _compact(session, policy, occasion)
        if session.view.tokens >= before:
            break
    return events


def _compact(session: Session, policy: Policy, occasion: Occasion) -> list[Event]:
    past = session.view
    view, budget = _with_coming(past), _budget(session, past, occasion.budget)
    guarded = Guarded(_Past(policy, past))
    due = guarded.due(view, budget)
    if due is None:
        return []
    world = _Recording(session)
    due = replace(due, failures=_failures(session))
    found = run(guarded.compact(view, budget, due), world)
    events = [occasion.event("compact_skipped", reason=f.reason, detail=f.detail) for f in world.failures]
    if found is not None:
        found = replace(found, account=account(past, past.edited(found.edits)))
        session.append_many([Draft(found)])
        events += _applied(session, found, occasion)
    return events


def _budget(session: Session, view: View, limit: int | None) -> Budget:
    """The limit as a budget; the model's own window is what its summary requests may fill."""
    window = session.model.context_window
    room = available(window) if limit is None else limit + view.weigh(view.items[: view.head()])
    window = max(window, room)
    return Budget(window, window - room, room, max(1, room // 2))


def _applied(session: Session, found: Compaction, occasion: Occasion) -> list[Event]:
    """What the compaction did: an event for QitOS's first step, if it took both, and one for what it came to."""
    account, stages = found.account, found.details.get("stages", [])
    figures = {"kept": account.kept, "messages_dropped": account.dropped, "policy": found.policy}
    figures |= {"summarized_message_count": account.summarised, "messages_compacted": account.masked}
    view = session.view
    last = _main_effect(account)
    return [
        *(occasion.event(s["name"], s["tokens"], s["messages"], **s["figures"]) for s in stages if s["name"] != last),
        occasion.event(last, held(session.view), len(view.items) - view.head(), **figures),
    ]


def _failures(session: Session) -> int:
    """Attempts that failed since the last compaction that worked."""
    count = 0
    for entry in reversed(list(session.branch())):
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
