"""A session: a conversation in a store, and the view of it that a model sees."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from clew.budget import Budget
from clew.codecs import anthropic, gemini, openai, responses
from clew.errors import BadPayload, SessionBusy, UnknownName
from clew.models.base import Model
from clew.models.extractive import Extractive
from clew.models.steps import Failure, Steps, arun, run
from clew.sessions.entries import Draft, Entry, Failed
from clew.sessions.log import Log
from clew.sessions.overflow import is_overflow
from clew.sessions.policy import Due, Policy, Reason
from clew.sessions.reading import Reading
from clew.sessions.record import Record
from clew.sessions.shown import Messages
from clew.sessions.view import Projection, View
from clew.storage.lease import LEASE_SECONDS, new_owner
from clew.storage.locate import open_store
from clew.storage.rows import SessionRow
from clew.storage.store import Store
from clew.tokens.heuristic import Heuristic
from clew.tokens.protocol import TokenCounter

COMPACTIONS = 3
"""Compactions that one request may cause at most; each must have brought the view down for the next to be tried."""

# Inside the class, `list` is `Session.list`.
Rows = list[SessionRow]
Entries = list[Entry]
Json = dict[str, Any]
Items = list[Json]


class Context(Struct, frozen=True):
    """How a session makes its view; a fork takes it over. `overhead` is that of tool schemas, in tokens."""

    policy: Policy | None
    budget: Budget | None
    model: Model
    counter: TokenCounter
    overhead: int
    reader: Callable[[str], str | None] | None


class Session(Record):
    """A conversation that loses nothing, and the view of it that fits the model's window.

    Open one with `Session.open`. Every entry is on disk when the call that adds it returns, and a
    view costs what is new since the last one, however long the history is. A session has one writer
    at a time, in all processes: the first write takes a lease (30 s, renewed by every write, given
    back by `close`), and reading needs none. Threads may share a session:
    what they add comes one after the other.

    A session is the world its policy works in: it has the model, `read_file` and `record`.
    """

    def __init__(self, log: Log, context: Context) -> None:
        super().__init__(log, context.counter)
        self.model = context.model
        self._context = context
        self._reading: Reading | None = None

    @staticmethod
    def open(
        store: str | Path | Store,
        id: str | None = None,
        *,
        policy: Policy | None = None,
        model: Model | None = None,
        window: int | None = None,
        counter: TokenCounter | None = None,
        tools: Sequence[Mapping[str, Any]] = (),
        namespace: str = "default",
        mode: Literal["write", "read"] = "write",
        if_busy: Literal["error", "fork"] = "error",
        title: str = "",
        meta: Mapping[str, Any] | None = None,
        reader: Callable[[str], str | None] | None = None,
    ) -> Session:
        """Opens a stored session by its id, or by the beginning of an id that no other has; without `id`, a new one.

        What it is:
        - `store`: a path, `sqlite:///FILE`, `memory://` (gone when closed), or an open `Store`
        - `namespace`: whose sessions to look among
        - `title`, `meta` (JSON): kept with a new session

        How its view is made (not stored; give them again when you open it again):
        - `policy`: decides when and how the view is compacted (default: never)
        - `model`: writes the policy's summaries (default: `Extractive`, which needs no network)
        - `window`: tokens the policy has to work with (default: the model's context window)
        - `counter`: counts tokens (default: `Heuristic`)
        - `tools`: the tool schemas sent with every request; they count too
        - `reader`: gives a policy the text of a project file, or None when it cannot be read

        Who writes it: with `mode="read"` nothing is ever written. Otherwise the first write raises
        `SessionBusy` when another writer has the session. With `if_busy="fork"` that is found out at
        once, and what you get is a fork of the busy session.

        Raises `StoreError`, `UnknownName` (it lists the nearest), `BadBudget`. Damage in the stored
        session is no error: see `damage`.
        """
        if id is None and mode == "read":
            raise UnknownName('mode="read" needs the id of a session; Session.list shows what there is')
        context = _context(policy, model, window, counter, tools, reader)
        owner = new_owner() if mode == "write" else None
        opened = open_store(store, create=id is None)
        try:
            if id is None:
                row = _new(namespace, owner or "", title, meta)
                opened.create(row)
            else:
                row = opened.find(namespace, id)
            session = Session(Log(opened, row, owner), context)
            if if_busy == "error" or owner is None:
                return session
            try:
                session.claim()
            except SessionBusy:
                return session._forked(session.leaf, title)
            return session
        except BaseException:
            opened.close()
            raise

    @staticmethod
    def list(store: str | Path | Store, namespace: str = "default") -> Rows:
        """The sessions of a store, the one last written first; no entry is read."""
        opened = open_store(store, create=False)
        try:
            return opened.sessions(namespace)
        finally:
            opened.close()

    def fork(self, entry: int | Entry | None = None, title: str = "") -> Session:
        """A new session, for another writer, that continues this one from an entry (default: the leaf).

        Nothing is copied: up to that entry the fork reads this session's log. Close it as well.
        """
        start = self.leaf if entry is None else self._known(entry)
        store = self._log.store.share()
        try:
            return self._forked(start, title)
        except BaseException:
            store.close()
            raise

    # -- the view

    def offer(self, tools: Sequence[Mapping[str, Any]]) -> None:
        """From now on these tool schemas are sent with every request: they count, as `open(tools=…)` says."""
        overhead = self._context.counter.tools(tools) if tools else 0
        with self._alone:
            if overhead != self._context.overhead:
                self._context = replace(self._context, overhead=overhead)
                self._reading = None

    @property
    def view(self) -> View:
        """What the model sees now, without compacting it first."""
        return self._current().projection.view

    def messages(self) -> Messages:
        """What to send to the model, compacted first if that is due: an immutable sequence, made in O(new).

        Raises `ContextOverflow` when a guarded policy has nothing left to shrink, and what the model
        raises when the policy is not guarded; the view is then as before.
        """
        run(self._fitting(), self)
        return Messages(self.view)

    async def amessages(self) -> Messages:
        """`messages`, with the model's async calls."""
        await arun(self._fitting(), self)
        return Messages(self.view)

    def as_openai(self) -> Items:
        """`messages` as OpenAI chat completions take them."""
        return openai.encode([*self.messages()])

    def as_responses(self) -> Items:
        """`messages` as input items of OpenAI's Responses."""
        return responses.encode([*self.messages()])

    def as_anthropic(self) -> Json:
        """`messages` as `{"system": …, "messages": […]}` of Anthropic."""
        return anthropic.encode([*self.messages()])

    def as_gemini(self) -> Json:
        """`messages` as `{"systemInstruction": …, "contents": […]}` of Gemini."""
        return gemini.encode([*self.messages()])

    # -- compaction

    def compact(self, reason: Reason = "manual", focus: str = "") -> Entry | None:
        """Compacts the view now; `focus` is what the summary should keep in view.

        Returns the compaction's entry, None when there was nothing to do or the attempt failed (it
        is then in the log). Raises like `messages`, and `UnknownName` when the session has no policy.
        """
        return run(self._asked(reason, focus), self)

    async def acompact(self, reason: Reason = "manual", focus: str = "") -> Entry | None:
        """`compact`, with the model's async calls."""
        return await arun(self._asked(reason, focus), self)

    def recover(self, error: BaseException) -> bool:
        """Reacts to a failed model call: after an overflow error the view is compacted.

        True when the view got smaller, so that the call is worth another try; False when the error is
        none of the window, or nothing could be made smaller.
        """
        return run(self._recovered(error), self)

    async def arecover(self, error: BaseException) -> bool:
        """`recover`, with the model's async calls."""
        return await arun(self._recovered(error), self)

    def read_file(self, path: str) -> str | None:
        """The text of a project file, for the policy; None when it cannot be read."""
        return self._context.reader(path) if self._context.reader else None

    def record(self, failure: Failure) -> None:
        """Notes an attempt of the policy that did not count."""
        self._add([Draft(Failed(failure))])

    # -- inside

    def _fitting(self) -> Steps[None]:
        policy, budget = self._context.policy, self._context.budget
        if policy is None or budget is None:
            return
        for _ in range(COMPACTIONS):
            before = self._current()
            due = policy.due(before.projection.view, budget)
            if due is None:
                return
            entry = yield from self._compacted(due)
            now = self._current()
            if entry is None and self._goes_on(before, now):
                return
            if entry is not None and now.projection.view.tokens >= before.projection.view.tokens:
                return

    def _asked(self, reason: Reason, focus: str) -> Steps[Entry | None]:
        budget = self._context.budget
        if budget is None:
            raise UnknownName("this session has no policy to compact with; open it with policy=…")
        return (yield from self._compacted(Due(reason, self.view.tokens, budget.target, focus)))

    def _recovered(self, error: BaseException) -> Steps[bool]:
        budget = self._context.budget
        if budget is None or not is_overflow(error):
            return False
        before = self.view.tokens
        yield from self._compacted(Due("overflow", before, budget.target))
        return self.view.tokens < before

    def _compacted(self, due: Due) -> Steps[Entry | None]:
        """Two phases: the policy works on the view as it is now; what comes back is committed if the session
        has meanwhile only gone on from there (not moved to another branch, not been compacted by another task)."""
        policy, budget, start = self._context.policy, self._context.budget, self._current()
        if policy is None or budget is None:
            return None
        found = yield from policy.compact(start.projection.view, budget, replace(due, failures=start.failures))
        with self._alone:
            if found is None or not self._goes_on(start, self._current()):
                return None
            return self._add([Draft(found)])[0]

    def _goes_on(self, start: Reading, now: Reading) -> bool:
        """Whether the session has only been added to since: not moved elsewhere, not compacted by another task."""
        return now.boundary == start.boundary and self._log.tree.continues(now.at, start.at)

    def _add(self, drafts: Sequence[Draft]) -> Entries:
        with self._alone:
            newest = self._log.tree.newest
            added = super()._add(drafts)
            reading = self._reading
            for entry in added:
                if reading is not None and entry.id > newest and entry.parent == reading.at:
                    reading = reading.step(entry)
            self._reading = reading
            return added

    def _current(self) -> Reading:
        """The reading of the branch, taken on from where it was; anew when the leaf has gone elsewhere."""
        with self._alone:
            reading, leaf, tree = self._reading, self.leaf, self._log.tree
            if reading is None or not tree.continues(leaf, reading.at):
                reading = Reading(Projection.start(self._context.counter, self._context.overhead))
            if reading.at != leaf:
                for entry in self._log.branch(reading.at or 0):
                    reading = reading.step(entry)
                reading = replace(reading, at=leaf)
            self._reading = reading
            return reading

    def _forked(self, entry: int | None, title: str) -> Session:
        owner = new_owner()
        row = _new(self.namespace, owner, title or self.title, None)
        row = replace(row, parent=self.id, parent_entry=entry, leaf=entry, last=entry or 0)
        self._log.store.create(row)
        return Session(Log(self._log.store, row, owner), self._context)


def _context(
    policy: Policy | None,
    model: Model | None,
    window: int | None,
    counter: TokenCounter | None,
    tools: Sequence[Mapping[str, Any]],
    reader: Callable[[str], str | None] | None,
) -> Context:
    for name, value, made in (
        ("policy", policy, "clew.policies: `policies.pi(window=200_000)`"),
        ("model", model, "clew.models: `Extractive()`, `LiteLLM(name)`"),
        ("counter", counter, "clew.tokens: `Heuristic()`, `counter(name)`"),
    ):
        if isinstance(value, str | type) or (value is not None and not hasattr(value, "name")):
            raise UnknownName(f"{name}={value!r} is not a {name}; make one with {made}")
    if counter is None:
        counter = Heuristic()
    if model is None:
        model = Extractive(counter=counter)
    budget = policy.budget(model.context_window if window is None else window) if policy else None
    return Context(policy, budget, model, counter, counter.tools(tools) if tools else 0, reader)


def _new(namespace: str, owner: str, title: str, meta: Mapping[str, Any] | None) -> SessionRow:
    now = time.time()
    return SessionRow(
        namespace=namespace,
        id=secrets.token_hex(6),
        title=title.encode("utf-8", "replace").decode(),
        created=now,
        updated=now,
        lease_owner=owner,
        lease_expires=now + LEASE_SECONDS if owner else 0.0,
        meta=_json_of(meta or {}),
    )


def _json_of(meta: Mapping[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(meta)
    except (TypeError, UnicodeEncodeError) as error:
        raise BadPayload(f"{error}; a session's meta must be JSON", field="meta") from error
