"""What all histories have in common: they pass on to their log, a list as upstream or a session."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from clew.history.kept import Kept, Plan
from clew.history.messages import Event, History, HistoryMessage, Query
from clew.history.models import Function, as_model
from clew.history.raw import Raw, Strategy
from clew.history.rolling_raw import RollingRaw
from clew.models.base import Model
from clew.sessions.session import Session
from clew.storage.store import Store
from clew.tokens.protocol import TokenCounter


class LoggedHistory(History):
    """A history over a log."""

    def __init__(self, log: Raw | RollingRaw | Kept) -> None:
        self._log = log

    @property
    def messages(self) -> list[HistoryMessage]:
        """What is there to be shown now, without limits."""
        return list(self._log.messages)

    @property
    def session(self) -> Session | None:
        """The session the history is kept in; None for a faithful one."""
        return self._log.session if isinstance(self._log, Kept) else None

    def append(self, message: HistoryMessage) -> None:
        self._log.append(message)

    def retrieve(self, query: Query | None = None, state: Any = None, observation: Any = None) -> list[HistoryMessage]:
        return self._log.retrieve(query or {})

    def summarize(self, max_items: int = 5) -> str:
        return self._log.summarize(max_items)

    def evict(self) -> int:
        return self._log.evict()

    def reset(self, run_id: str | None = None) -> None:
        self._log.reset()

    def consume_runtime_events(self) -> list[Event]:
        events, self._log.events = self._log.events, []
        return events

    def get_last_message_metadata(self) -> list[dict[str, Any]]:
        return list(self._log.metadata)


def raw(strategy: Strategy, llm: Model | Function | None = None) -> Raw:
    """QitOS's list, with its way of showing it."""
    return Raw(strategy, as_model(llm))


def kept(
    plan: Plan,
    llm: Model | Function | None,
    store: str | Path | Store,
    session: str | None,
    counter: TokenCounter | None,
) -> Kept:
    """A log in a session of the store: the one named, or a new one. Without a model summaries are extracts."""
    model = as_model(llm)

    def opened(id: str | None = None) -> Session:
        return Session.open(store, id, model=model, counter=counter)

    return Kept(plan, opened(session), opened)
