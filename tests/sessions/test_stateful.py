"""Random use of sessions, against a model that is nothing but a list of entries.

After every step: the log is the model's (law 1), and the view a session has kept up to date is the one
that reading its branch anew gives, in this session and in one opened afresh (law 2).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, rule

from clew.errors import UnknownName
from clew.messages import Message, ToolCall, Usage, assistant, system, tool, user
from clew.sessions import Compaction, Draft, Entry, Failed, Note, Said, Session
from clew.sessions.view import View, project
from clew.storage import Store, open_store
from plain import Echo, Letters, Older, opened

POLICY = Older(limit=120, keep=2)

said = st.one_of(
    st.sampled_from(
        [user("问题"), user("question"), assistant("answer", usage=Usage(10, 2)), system("rule"), user(" ")]
    ),
    st.builds(user, st.text(max_size=60)),
    st.builds(lambda c: assistant(ToolCall(c, "bash")), st.sampled_from("abc")),
    st.builds(lambda c, t: tool(c, t), st.sampled_from("abc"), st.text(max_size=30)),
)
keys = st.sampled_from(["", "", "", "k1", "k2", "k3"])


@dataclass
class Expected:
    """A session as it should be: every entry it sees, and where it stands."""

    entries: dict[int, Entry] = field(default_factory=dict)
    newest: int = 0
    leaf: int | None = None

    def branch(self, leaf: int | None = None) -> list[Entry]:
        at = self.leaf if leaf is None else leaf
        found = []
        while at is not None:
            found.append(self.entries[at])
            at = self.entries[at].parent
        return found[::-1]

    def view(self) -> View:
        return project(self.branch(), Letters()).view

    def take(self, entry: Entry) -> None:
        """An entry that the session says it has added at its leaf."""
        assert entry.id == self.newest + 1
        assert entry.parent == self.leaf
        self.entries[entry.id] = entry
        self.newest = self.leaf = entry.id

    def held(self, key: str) -> Entry | None:
        return next((e for e in self.entries.values() if key and e.key == key), None)


class Conversations(RuleBasedStateMachine):
    sessions = Bundle("sessions")

    def __init__(self) -> None:
        super().__init__()
        self.store: Store = open_store("memory://")
        self.open: dict[str, Session] = {}
        self.model: dict[str, Expected] = {}
        self.touched: str | None = None

    def teardown(self) -> None:
        for session in self.open.values():
            session.close()
        self.store.close()

    @initialize(target=sessions)
    def begin(self) -> str:
        return self._add(opened(self.store, policy=POLICY, model=Echo("sum")), Expected())

    def _add(self, session: Session, expected: Expected) -> str:
        self.open[session.id] = session
        self.model[session.id] = expected
        self.touched = session.id
        return session.id

    def _at(self, id: str) -> tuple[Session, Expected]:
        self.touched = id
        return self.open[id], self.model[id]

    @rule(id=sessions, message=said, key=keys)
    def append(self, id: str, message: Message, key: str) -> None:
        session, expected = self._at(id)
        entry = session.append(message, key=key)
        if (stored := expected.held(key)) is not None:
            assert entry == stored
        else:
            assert (entry.key, entry.body) == (key, Said(message, Letters().message(message), "letters"))
            expected.take(entry)

    @rule(id=sessions, items=st.lists(st.tuples(said, keys), max_size=5))
    def append_many(self, id: str, items: list[tuple[Message, str]]) -> None:
        session, expected = self._at(id)
        entries = session.append_many([Draft(Said(message), key=key) for message, key in items])
        before = expected.leaf
        for entry, (message, key) in zip(entries, items, strict=True):
            if (stored := expected.held(key)) is not None:
                assert entry == stored
            else:
                assert entry.parent == before
                assert isinstance(entry.body, Said)
                assert entry.body.message == message
                expected.leaf = before
                expected.take(entry)
            before = entry.id

    @rule(id=sessions)
    def note_and_pin(self, id: str) -> None:
        session, expected = self._at(id)
        for entry in (session.append_many([Draft(Note("n", {"a": 1}))])[0], session.pin("never")):
            expected.take(entry)

    @rule(id=sessions)
    def messages(self, id: str) -> None:
        session, expected = self._at(id)
        known = expected.leaf
        shown = session.messages()
        for entry in session.branch_after(known or 0):
            assert isinstance(entry.body, Compaction | Failed)
            expected.take(entry)
        assert shown == expected.view().messages

    @rule(id=sessions)
    def compact(self, id: str) -> None:
        session, expected = self._at(id)
        entry = session.compact()
        if entry is not None:
            expected.take(entry)
            gone = {i for item in project(expected.branch()[:-1], Letters()).view.items for i in item.ids}
            assert {e.id for e in session.expand(entry)} <= set(expected.entries)
            assert gone

    @rule(id=sessions, data=st.data())
    def branch_to(self, id: str, data: st.DataObject) -> None:
        session, expected = self._at(id)
        leaf = data.draw(st.none() | st.sampled_from(sorted(expected.entries))) if expected.entries else None
        session.branch_to(leaf)
        expected.leaf = leaf

    @rule(id=sessions, turns=st.integers(1, 3))
    def rewind(self, id: str, turns: int) -> None:
        session, expected = self._at(id)
        users = [e for e in expected.branch() if isinstance(e.body, Said) and e.body.message.role == "user"]
        if len(users) >= turns:
            assert session.rewind(turns) == users[-turns]
            expected.leaf = users[-turns].parent
        else:
            try:
                session.rewind(turns)
            except UnknownName:
                return
            raise AssertionError("there are not so many turns")

    @rule(target=sessions, id=sessions, data=st.data())
    def fork(self, id: str, data: st.DataObject) -> str:
        session, expected = self._at(id)
        if len(self.open) > 4:
            return multiple()  # type: ignore[return-value]
        entry = data.draw(st.sampled_from(sorted(expected.entries))) if expected.entries else None
        seen = {i: e for i, e in expected.entries.items() if entry is not None and i <= entry}
        return self._add(session.fork(entry), Expected(seen, entry or 0, entry))

    @rule(id=sessions)
    def reopen(self, id: str) -> None:
        session, _ = self._at(id)
        session.close()
        self.open[id] = opened(self.store, id, policy=POLICY, model=Echo("sum"))

    @invariant()
    def the_log_and_the_view_are_as_expected(self) -> None:
        if self.touched is None:
            return
        session, expected = self.open[self.touched], self.model[self.touched]
        assert session.leaf == expected.leaf
        assert list(session.entries()) == list(expected.entries.values())
        assert session.branch() == expected.branch()
        again = expected.view()
        assert session.view.messages == again.messages
        assert list(session.view.items) == list(again.items)
        assert (session.view.count, session.view.pins) == (again.count, again.pins)
        with opened(self.store, self.touched, mode="read") as fresh:
            assert list(fresh.view.items) == list(again.items)
            assert fresh.damage == ()

    @invariant()
    def other_sessions_are_not_touched(self) -> None:
        for id, session in self.open.items():
            assert session.leaf == self.model[id].leaf


TestConversations = Conversations.TestCase
