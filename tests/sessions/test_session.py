"""Appending and viewing: durable, counted once, incremental."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import clew
from clew.errors import BadPayload, SessionBusy, StoreError, UnknownName
from clew.messages import Image, Message, Text, ToolCall, Usage, assistant, system, tool, user
from clew.policies import Guarded
from clew.sessions import Compaction, Draft, Drop, Note, Pin, Said, Session
from clew.sessions.view import NO_RESULT
from plain import Letters, Older, opened, texts


class Counting:
    """Counts, and counts how often it counts."""

    name = "counting"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def text(self, text: str) -> int:
        return len(text)

    def message(self, message: Message) -> int:
        self.asked.append(message.text)
        return len(message.text)

    def tools(self, tools: Any) -> int:
        self.asked.append("tools")
        return 7


def test_it_is_what_the_package_calls_session() -> None:
    assert clew.Session is Session


def test_what_was_appended_is_there_after_reopening(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    said = [
        system("You are careful."),
        user("你好，世界", Image(data="aGk=", media_type="image/png")),
        assistant("はい", ToolCall("c1", "bash", '{"command": "ls"}')),
        tool("c1", "파일 두 개", is_error=True),
        Message(
            "assistant",
            (Text("done", {"anthropic": {"cache_control": {"type": "ephemeral"}}}),),
            meta={"openai": {"n": 1}},
        ),
    ]
    with opened(path, title="一", meta={"cwd": "src"}) as session:
        entries = [session.append(m) for m in said]
        id = session.id
    assert [e.id for e in entries] == [1, 2, 3, 4, 5]
    assert [e.parent for e in entries] == [None, 1, 2, 3, 4]
    with opened(path, id) as session:
        assert session.branch() == list(session.entries()) == entries
        assert session.messages() == said
        assert (session.leaf, session.title, session.meta, session.damage) == (5, "一", {"cwd": "src"}, ())


def test_another_store_sees_an_entry_as_soon_as_append_returns(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with opened(path) as writer, opened(path, writer.id, mode="read") as reader:
        for n in range(5):
            writer.append(user(f"m{n}"))
            reader.refresh()
            assert texts(reader) == [f"m{i}" for i in range(n + 1)]


def test_a_key_makes_an_append_repeatable() -> None:
    with opened() as session:
        first = session.append(user("a"), key="k")
        session.append(assistant("b"))
        assert session.append(user("something else"), key="k") == first
        assert session.leaf == 2
        assert len(list(session.entries())) == 2


def test_append_many_is_idempotent_and_goes_on_from_what_is_there() -> None:
    drafts = [Draft(Said(user(f"m{n}")), key=f"k{n}") for n in range(6)]
    with opened() as session:
        session.append_many(drafts[:3])
        entries = session.append_many(drafts)
        assert [e.id for e in entries] == [1, 2, 3, 4, 5, 6]
        assert [e.parent for e in entries] == [None, 1, 2, 3, 4, 5]
        session.branch_to(2)
        assert session.append_many(drafts) == entries
        assert session.leaf == 2
        assert session.append_many([drafts[1], drafts[1]]) == [entries[1]] * 2


def test_a_key_twice_in_one_call_is_one_entry() -> None:
    with opened() as session:
        one, two = session.append_many([Draft(Said(user("a")), key="k"), Draft(Said(user("b")), key="k")])
        assert one == two
        assert texts(session) == ["a"]


def test_drafts_say_where_they_go() -> None:
    with opened() as session:
        entries = session.append_many(
            [user("a"), Draft(Said(assistant("b"))), Draft(Said(user("c")), parent=1, at=12.5), user("d")]
        )
        assert [e.parent for e in entries] == [None, 1, 1, 3]
        assert entries[2].at == 12.5
        session.append_many([Draft(Said(user("new root")), parent=None)])
        assert texts(session) == ["new root"]
        with pytest.raises(UnknownName, match="no entry 99"):
            session.append_many([user("x"), Draft(Said(user("c")), parent=99)])
        assert session.leaf == 5
        assert session.append_many([]) == []


def test_append_many_is_all_or_none() -> None:
    def broken() -> Any:
        yield user("a")
        raise OSError("the source ended")

    with opened() as session:
        with pytest.raises(OSError, match="the source ended"):
            session.append_many(broken())
        with pytest.raises(BadPayload, match="must be JSON"):
            session.append_many([user("a"), Message("user", (Text("b"),), meta={"x": object()})])
        assert list(session.entries()) == []
        assert session.append(user("c")).id == 1


@pytest.mark.parametrize("bad", ["\ud800", "a\udfffb", "中\ud83d文"])
def test_lone_surrogates_become_replacement_characters(bad: str) -> None:
    good = bad.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    with opened(title=bad) as session:
        entry = session.append(Message("user", (Text(bad),), meta={"x": {bad: [bad]}}), key=bad)
        session.append_many([Draft(Note("x", {"t": bad})), Draft(Pin(bad))])
        assert isinstance(entry.body, Said)
        assert entry.body.message == Message("user", (Text(good),), meta={"x": {good: [good]}})
        assert entry.body.replaced == 3, "in the text, and in a key and a value of the meta"
        assert next(session.entries()) == entry
        assert session.view.pins == (good,)
        assert session.append(user("again"), key=bad) == entry
        clean = session.append(user("😀"))
        assert isinstance(clean.body, Said)
        assert clean.body.replaced == 0


def test_a_message_is_counted_once_and_the_count_is_stored(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    counter = Counting()
    with opened(path, counter=counter, tools=[{"name": "bash"}]) as session:
        for n in range(20):
            session.append(user(f"m{n}"))
            session.messages()
        assert session.view.tokens == sum(len(f"m{n}") for n in range(20)) + 7
        id = session.id
    assert counter.asked == ["tools", *(f"m{n}" for n in range(20))]
    with opened(path, id, counter=(again := Counting())) as session:
        assert session.view.count == sum(len(f"m{n}") for n in range(20))
    assert again.asked == []
    with opened(path, id, counter=Letters()) as session:
        assert session.view.count == sum(len(f"m{n}") for n in range(20))


def test_messages_are_a_snapshot_that_stays() -> None:
    with opened() as session:
        session.append_many([user("a"), assistant("b")])
        before = session.messages()
        session.append(user("c"))
        assert len(before) == 2
        assert before[-1] == assistant("b")
        assert before[:1] == [user("a")]
        assert list(before) == [user("a"), assistant("b")] == before
        assert before != session.messages()
        assert before != [user("a")]
        with pytest.raises(IndexError):
            before[2]
        with pytest.raises(TypeError):
            hash(before)


def test_a_view_in_the_middle_of_a_round_stands_in_for_missing_results() -> None:
    calls = [ToolCall("c1", "bash"), ToolCall("c2", "bash")]
    with opened() as session:
        session.append_many([user("go"), assistant(*calls)])
        waiting = session.messages()
        assert [r.text for m in waiting for r in m.results] == [NO_RESULT] * 2
        session.append(tool("c1", "one"))
        assert [r.text for m in session.messages() for r in m.results] == ["one", NO_RESULT]
        session.append(tool("c2", "two"))
        assert [r.text for m in session.messages() for r in m.results] == ["one", "two"]
        assert len(waiting) == 3


def test_without_a_policy_nothing_is_compacted() -> None:
    with opened(window=300) as session:
        for _ in range(50):
            session.append(user("x" * 100))
        assert len(session.messages()) == 50
        with pytest.raises(UnknownName, match="no policy"):
            session.compact()


def test_provider_forms_are_of_the_view() -> None:
    with opened() as session:
        session.append_many([system("s"), user("u"), assistant("a")])
        assert [m["role"] for m in session.as_openai()] == ["system", "user", "assistant"]
        assert session.as_anthropic()["messages"][0]["role"] == "user"
        assert len(session.as_gemini()["contents"]) == 2
        assert session.as_responses()


def test_read_mode_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with opened(path) as session:
        session.append_many([user("a" * 90), assistant("b" * 90)])
        id = session.id
    before = path.read_bytes()
    with opened(path, id, mode="read", policy=Older(keep=1)) as session:
        assert len(session.view.items) == 2
        for write in (lambda: session.append(user("c")), lambda: session.branch_to(1), session.messages):
            with pytest.raises(StoreError, match='opened with mode="read"'):
                write()
    assert path.read_bytes() == before
    with pytest.raises(UnknownName, match="needs the id"):
        opened(path, mode="read")


def test_sessions_are_listed_by_namespace_and_without_reading_entries(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    ids = []
    for n, namespace in enumerate(["default", "team", "default"]):
        with opened(path, namespace=namespace, title=f"t{n}") as session:
            session.append_many([user("x")] * (n + 1))
            ids.append(session.id)
    listed = Session.list(path)
    assert [(row.id, row.title, row.entries, row.leaf) for row in listed] == [
        (ids[2], "t2", 3, 3),
        (ids[0], "t0", 1, 1),
    ]
    assert [row.id for row in Session.list(path, "team")] == [ids[1]]
    with pytest.raises(UnknownName):
        opened(path, ids[1])
    with opened(path, ids[1], namespace="team") as session:
        assert texts(session) == ["x", "x"]
    with pytest.raises(StoreError, match="no store here"):
        Session.list(tmp_path / "other.db")
    with pytest.raises(StoreError, match="no store here"):
        opened(tmp_path / "other.db", "abc")


def test_close_may_be_repeated_and_ends_writing() -> None:
    session = opened()
    session.append(user("a"))
    session.close()
    session.close()
    with pytest.raises(StoreError, match="closed"):
        session.append(user("b"))


def test_a_shared_store_outlives_its_sessions(tmp_path: Path) -> None:
    from clew.storage import open_store

    store = open_store("memory://")
    with opened(store) as one, opened(store) as two:
        one.append(user("a"))
        two.append(user("b"))
    assert {row.id for row in Session.list(store)} == {one.id, two.id}
    store.close()


def test_an_interrupted_write_is_looked_up_before_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process was interrupted between the commit and its own note of it: nothing is lost or doubled."""
    with opened() as session:
        session.append(user("a"))
        session.messages()
        monkeypatch.setattr(session._log.tree, "add", _interrupted)
        with pytest.raises(KeyboardInterrupt):
            session.append(user("b"))
        monkeypatch.undo()
        assert session.append(user("c")).parent == 2
        assert texts(session) == ["a", "b", "c"]


def _interrupted(*_: Any) -> None:
    raise KeyboardInterrupt


def test_huge_and_empty_messages() -> None:
    with opened() as session:
        huge = user("界" * 5_000_000)
        session.append_many([huge, assistant(), user(""), Message("assistant")])
        assert session.messages() == [huge]
        assert len(session.branch()) == 4


def test_threads_with_a_session_each_share_a_store() -> None:
    from clew.storage import open_store

    store = open_store("memory://")

    def work(name: int) -> list[str]:
        with opened(store) as session:
            for n in range(50):
                session.append(user(f"{name} {n}"))
            return texts(session)

    with ThreadPoolExecutor(4) as pool:
        shown = list(pool.map(work, range(4)))
    assert shown == [[f"{name} {n}" for n in range(50)] for name in range(4)]
    store.close()


def test_by_default_everything_works_offline(tmp_path: Path) -> None:
    with Session.open(tmp_path / "agent.db", policy=clew.policies.pi(), window=4_000) as session:
        session.append(system("You are careful."))
        session.append(user("请修复解析器，不要改公共接口。"))
        for n in range(60):
            session.append(assistant(f"step {n}", ToolCall(f"c{n}", "bash", '{"command": "pytest -q"}')))
            session.append(tool(f"c{n}", f"{n} failed\n" * 40))
            assert session.messages()
            assert session.view.tokens <= 4_000
        assert any("不要改公共接口" in m.text for m in session.messages())
        shown, id = session.messages(), session.id
    with Session.open(tmp_path / "agent.db", id) as session:
        assert session.messages() == shown
        assert len([e for e in session.entries() if isinstance(e.body, Said)]) == 122


def test_importing_clew_loads_nothing_heavy_and_names_resolve() -> None:
    code = (
        "import sys, clew\n"
        "heavy = {'sqlalchemy', 'alembic', 'msgspec', 'rich', 'typer', 'asyncio', 'sqlite3'} & set(sys.modules)\n"
        "missing = [name for name in clew.__all__ if getattr(clew, name, None) is None]\n"
        "sys.exit(str(heavy or missing or '') or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert set(clew.__all__) <= set(dir(clew))
    with pytest.raises(AttributeError):
        clew.nonsense  # noqa: B018


def test_what_an_importer_asks_of_a_log(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with opened(path) as session:
        assert session.newest == 0
        session.append(user("a"), key="k1")
        session.branch_to(None)
        session.append(user("b"), key="k2")
        session.branch_to(1)
        assert session.newest == 2, "on whatever branch"
        with session.fork(1) as fork:
            fork.append(user("c"), key="k3")
            assert fork.held(["k1", "k2", "k3", "k4"]) == {"k1": 1, "k3": 2}
        assert session.held(["k1", "k2", "k3"]) == {"k1": 1, "k2": 2}
        assert session.held([]) == {}


def test_a_claim_keeps_others_from_writing_before_anything_is_written(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with opened(path) as session:
        session.append(user("a"))
        id = session.id
    with opened(path, id) as one, opened(path, id) as two:
        one.claim()
        one.claim()
        with pytest.raises(SessionBusy):
            two.append(user("b"))
        one.append(user("c"))
        with pytest.raises(StoreError, match='opened with mode="read"'):
            opened(path, id, mode="read").claim()


WRONG = {
    "role": Message("usr", (Text("a"),)),  # type: ignore[arg-type]
    "parts[0]": Message("user", (None,)),  # type: ignore[arg-type]
    "parts[0].text": user(Text(None)),  # type: ignore[arg-type]
    "parts[0].content[0].text": tool("c1", None),  # type: ignore[arg-type]
    "parts[0].arguments": assistant(ToolCall("c1", "bash", {"a": 1})),  # type: ignore[arg-type]
    "parts[0].id": assistant(ToolCall(1, "bash")),  # type: ignore[arg-type]
    "usage.input": assistant("a", usage=Usage("3")),  # type: ignore[arg-type]
    "meta": Message("user", (Text("a"),), meta=None),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("place", WRONG)
def test_what_could_not_be_read_again_is_not_written(place: str) -> None:
    with opened() as session:
        session.append(user("a"))
        with pytest.raises(BadPayload) as caught:
            session.append(WRONG[place])
        assert f"`$.message.{place}`" in str(caught.value)
        assert session.leaf == 1


def test_an_edit_that_could_not_be_read_again_is_not_written() -> None:
    with opened() as session:
        session.append(user("a"))
        bad = Compaction((Drop((1,)),), reason=None)  # type: ignore[arg-type]
        with pytest.raises(BadPayload, match=r"\$\.reason"):
            session.append_many([Draft(bad)])
        assert session.leaf == 1


@pytest.mark.parametrize("value", ["hello", {"role": "user", "content": "hello"}, [user("hello")], None])
def test_only_messages_are_appended_and_the_error_says_how_to_make_one(value: Any) -> None:
    with opened() as session:
        for append in (session.append, lambda v: session.append_many([v])):
            with pytest.raises(BadPayload, match=r"not a value of type \w+; clew.messages makes one"):
                append(value)
        assert session.leaf is None


@pytest.mark.parametrize("part", [None, 5, {"type": "text", "text": "a"}])
def test_a_message_is_made_of_strings_and_parts(part: Any) -> None:
    with pytest.raises(BadPayload, match="strings and parts"):
        user("a", part)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("policy", "pi"),
        ("policy", clew.policies.pi),
        ("policy", clew.policies),
        ("policy", Guarded),
        ("model", "anthropic/claude-haiku-4-5"),
        ("counter", "o200k"),
    ],
)
def test_a_name_where_the_thing_is_wanted(name: str, value: Any) -> None:
    settings: dict[str, Any] = {name: value}
    with pytest.raises(UnknownName, match=f"is not a {name}; make one with clew"):
        Session.open("memory://", **settings)


def test_it_shows_what_it_is() -> None:
    with opened(title="一") as session:
        session.append(user("a"))
        assert repr(session) == f"<Session {session.id} '一' at entry 1>"
    with Session.open("memory://") as session:
        assert repr(session) == f"<Session {session.id} at entry None>"


@pytest.mark.parametrize("meta", [{"a": object()}, {"a": "\ud800"}, {1j: "a"}])
def test_meta_that_is_no_json_makes_no_session(tmp_path: Path, meta: Any) -> None:
    path = tmp_path / "agent.db"
    with pytest.raises(BadPayload, match="meta must be JSON"):
        Session.open(path, meta=meta)
    assert Session.list(path) == []
