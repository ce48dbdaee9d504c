"""Transcripts into sessions: entries, branches, compactions; again, and after a cut."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.errors import BadPayload, UnknownName
from clew.messages import Message, user
from clew.sessions import BranchSummary, Compaction, Label, Note, Said, Session
from clew.storage.locate import open_store
from clew.storage.store import Store
from clew.transcripts import import_file, load
from transcripts import test_shared
from transcripts.scribe import Claude, Letters, Pi, pi_call, say, session, written
from transcripts.test_dumps import CHAT
from transcripts.test_hostile import DOCUMENTS, FILES


@pytest.fixture
def store() -> Iterator[Store]:
    opened = open_store("memory://")
    yield opened
    opened.close()


def view(s: Session) -> list[str]:
    """The view in short: role and text, or role and ids of calls and results."""
    out = []
    for m in s.view.messages:
        ids = [c.id for c in m.calls] + [r.call_id for r in m.results]
        out.append(" ".join([m.role, *ids, *([m.text] if m.text else [])]))
    return out


def test_a_session_in_a_file_and_its_report(tmp_path: Path) -> None:
    log = Claude()
    log.user("u", "go")
    log.call("a1", "m", "c1")
    log.user("s1", "look", parent=None, isSidechain=True)
    log.text("s2", "sm", "seen", isSidechain=True)
    log.result("r1", "c1", parent="a1")
    log.text("b", "n", "done")
    path = written(tmp_path, *log.lines, b"broken", log.lines[0])
    s, report = import_file(path, tmp_path / "agent.db", counter=Letters())
    with s:
        assert view(s) == ["user go", "assistant c1", "tool c1", "assistant done"]
        assert s.title == "t.jsonl"
        at = [entry.at for entry in s.branch()]
        assert at == sorted(at)
        roots = [node.id for node in s.tree().values() if node.parent is None]
        assert len(roots) == 2
    assert (report.format, report.session, report.path) == ("claude-code", s.id, str(path))
    assert (report.lines, report.messages, report.calls, report.sidechains) == (8, 6, 1, 1)
    assert (report.added, report.present, report.sessions, report.compactions) == (6, 0, 1, 0)
    assert report.skipped == ((7, "not JSON"),)
    assert [line for line, _ in report.mended] == [8]
    assert (report.first, report.last) == (1767225600.0, 1767225605.0)


def test_the_view_after_a_boundary_is_what_the_tool_showed(tmp_path: Path, store: Store) -> None:
    log = Claude()
    log.user("u1", "first")
    log.call("a1", "m1", "c1")
    log.result("r1", "c1")
    log.text("a2", "m2", "one")
    log.user("u2", "second")
    log.text("a3", "m3", "two")
    log.compact("k1", "so far", kept=["a3"])
    log.user("u3", "third")
    log.text("a4", "m4", "three")
    log.compact("k2", "and so on", preservedSegment={"headUuid": "u3", "anchorUuid": "x", "tailUuid": "a4"})
    log.user("u4", "fourth")
    s, report = import_file(written(tmp_path, *log.lines), store, counter=Letters())
    assert view(s) == ["user and so on", "user third", "assistant three", "user fourth"]
    assert report.compactions == 2
    first, second = [e for e in s.branch() if isinstance(e.body, Compaction)]
    assert isinstance(first.body, Compaction)
    assert isinstance(second.body, Compaction)
    assert (first.body.before, first.body.after, first.body.policy) == (1000, 100, "claude-code")
    assert (first.body.account.summarised, first.body.account.kept) == (5, 1)
    assert (second.body.account.summarised, second.body.account.kept) == (2, 2)
    originals = [e.body.message.text for e in s.expand(second) if isinstance(e.body, Said)]
    assert originals == ["first", "", "", "one", "second", "two"]
    s.branch_to(first)
    assert view(s) == ["user so far", "assistant two"]


def test_a_summary_with_nothing_above_it_is_shown_and_summarised_next_time(tmp_path: Path, store: Store) -> None:
    log = Claude()
    log.compact("k1", "earlier")
    log.user("u1", "first")
    log.compact("k2", "later")
    s, _ = import_file(written(tmp_path, *log.lines), store, counter=Letters())
    assert view(s) == ["user later"]


def test_a_pi_compaction_keeps_from_the_entry_it_names(tmp_path: Path, store: Store) -> None:
    log = Pi()
    log.message("y", "system", "Be kind.", parent=None)
    log.user("u1", "first")
    log.assistant("a1", say("one"))
    log.user("u2", "second")
    log.assistant("a2", say("two"), pi_call("c"), stop="toolUse")
    log.message("r2", "toolResult", [say("done")], toolCallId="c", toolName="bash", isError=False)
    system = {"role": "system", "content": "Be brief."}
    log.entry("compaction", "k1", summary="S1", firstKeptEntryId="u2", tokensBefore=9, systemMessage=system)
    log.user("u3", "third")
    log.entry("compaction", "k2", summary="S2", firstKeptEntryId="a2", tokensBefore=9)
    s, _ = import_file(written(tmp_path, *log.lines), store, counter=Letters())
    told = view(s)
    assert [line.split()[0] for line in told] == ["system", "user", "assistant", "tool", "user"]
    assert told[0] == "system Be brief."
    assert "S2" in told[1]
    assert told[-1] == "user third"


@pytest.mark.parametrize("kept", ["k1", "nowhere", None])
def test_a_pi_compaction_that_keeps_nothing(tmp_path: Path, store: Store, kept: Any) -> None:
    log = Pi()
    log.user("u1", "first", parent=None)
    log.entry("compaction", "k1", summary="S1", firstKeptEntryId=kept, tokensBefore=9)
    log.user("u2", "second")
    s, _ = import_file(written(tmp_path, *log.lines), store, counter=Letters())
    assert len(view(s)) == 2
    assert "S1" in view(s)[0]


def test_labels_summaries_of_branches_and_edits_name_entries(tmp_path: Path, store: Store) -> None:
    log = Pi()
    log.user("u1", "try", parent=None)
    log.assistant("a1", say("it fails"))
    log.entry("branch_summary", "s", parent="u1", fromId="a1", summary="it failed")
    log.entry("label", "l", targetId="s", label="start over")
    log.user("u2", "secret")
    log.entry("context_edit", "x", targetId="u2", replacement=None)
    s, _ = import_file(written(tmp_path, *log.lines), store, counter=Letters())
    entries = {e.id: e.body for e in s.entries()}
    left = next(body.leaf for body in entries.values() if isinstance(body, BranchSummary))
    named = next(body.target for body in entries.values() if isinstance(body, Label))
    target = entries[left]
    assert isinstance(target, Said)
    assert target.message.text == "it fails"
    assert isinstance(entries[named], BranchSummary)
    assert len(view(s)) == 2


def test_usage_and_meta_survive(tmp_path: Path, store: Store) -> None:
    log = Claude()
    log.user("u", "go")
    log.text("a", "m", "done")
    s, _ = import_file(written(tmp_path, *log.lines), store, counter=Letters())
    usages = [e.body.message.usage for e in s.branch() if isinstance(e.body, Said)]
    assert [u.total if u else None for u in usages] == [None, 110]


def test_several_conversations_in_one_session(tmp_path: Path, store: Store) -> None:
    path = tmp_path / "runs.json"
    path.write_text(json.dumps([{"traj": CHAT[:n], "task": n} for n in (2, 6)]))
    s, report = import_file(path, store, counter=Letters(), run=2)
    assert report.sessions == 2
    assert len(view(s)) == 6
    assert load(path, s).added == 0
    s.close()
    with pytest.raises(UnknownName, match="2 conversations"):
        import_file(path, store, counter=Letters(), run=3)


def test_importing_again_adds_nothing_and_leaves_the_leaf_alone(tmp_path: Path, store: Store) -> None:
    for name, data in FILES.items():
        path = tmp_path / name
        path.write_bytes(data)
        s, first = import_file(path, store, counter=Letters(), format=name)
        s.append(user("my own"))
        again = load(path, s, format=name)
        assert (again.added, again.present) == (0, first.added + first.present)
        assert s.view.messages[-1].text == "my own"


def test_a_longer_version_adds_what_is_new(tmp_path: Path, store: Store) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text("".join(json.dumps(m) + "\n" for m in CHAT[:3]))
    s, _ = import_file(path, store, counter=Letters())
    path.write_text(json.dumps({"messages": CHAT}))
    report = load(path, s)
    assert (report.added, report.present) == (3, 3)
    assert len(s.view.messages) == len(CHAT)


def test_an_edited_version_is_a_branch(tmp_path: Path, store: Store) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps(CHAT))
    s, _ = import_file(path, store, counter=Letters())
    path.write_text(json.dumps([*CHAT[:1], {"role": "user", "content": "something else"}]))
    assert load(path, s).added == 1
    assert view(s) == ["system Be brief.", "user something else"]
    assert len(s.tree()) == len(CHAT) + 1


@pytest.mark.parametrize("levels", [150, 500, 900, 990, 2_000])
def test_a_line_nested_deeply_costs_nobody_else(tmp_path: Path, store: Store, levels: int) -> None:
    log = Claude()
    log.user("u", "go")
    deep = b'{"type":"mode","x":' + b"[" * levels + b"]" * levels + b"}"
    path = written(tmp_path, log.lines[0], deep, *[log.text("a", "m", "done")])
    s, report = import_file(path, store, counter=Letters())
    assert view(s) == ["user go", "assistant done"]
    assert len(s.tree()) + len(report.skipped) == 3


def test_a_file_finds_the_session_it_went_to_before(tmp_path: Path) -> None:
    log = Claude()
    log.user("u", "go")
    log.text("a", "m", "done")
    path = written(tmp_path, *log.lines[:1])
    database = tmp_path / "agent.db"
    s, first = import_file(path, database, counter=Letters())
    s.close()
    moved = written(tmp_path, *log.lines, name="moved.jsonl")
    s, second = import_file(moved, database, counter=Letters())
    assert (second.session, second.added, second.present) == (first.session, 1, 1)
    s.close()
    other = Claude(side=True)
    other.user("s", "go", agentId="x")
    s, third = import_file(written(tmp_path, *other.lines), database, counter=Letters())
    assert third.session != first.session
    s.close()


def test_message_lists_are_known_by_their_place(tmp_path: Path) -> None:
    database = tmp_path / "agent.db"
    found = []
    for name in ("a.json", "b.json", "a.json"):
        (tmp_path / name).write_text(json.dumps(CHAT))
        s, report = import_file(tmp_path / name, database, counter=Letters())
        s.close()
        found.append(report.session)
    assert found[0] == found[2] != found[1]


def test_nothing_is_made_of_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "odd").write_bytes(b"odd")
    (tmp_path / "empty").write_bytes(b"")
    for name, error in (("odd", UnknownName), ("empty", BadPayload), ("nowhere", UnknownName)):
        with pytest.raises(error):
            import_file(tmp_path / name, tmp_path / "agent.db", counter=Letters())
    assert not (tmp_path / "agent.db").exists()


# -- cut anywhere, then whole

CUT = {
    f"{name} {kind}": (name, data)
    for kind, files in (("lines", FILES), ("document", DOCUMENTS))
    for name, data in files.items()
}


def said(s: Session) -> list[Message]:
    return [e.body.message for e in s.entries() if isinstance(e.body, Said)]


@pytest.fixture(scope="module")
def shared() -> Iterator[Store]:
    opened = open_store("memory://")
    yield opened
    opened.close()


@given(st.sampled_from(sorted(CUT)), st.data())
def test_a_cut_file_and_then_the_whole_is_the_whole(
    shared: Store, tmp_path_factory: Any, case: str, data: st.DataObject
) -> None:
    name, whole = CUT[case]
    cut = data.draw(st.integers(1, len(whole)))
    path = tmp_path_factory.getbasetemp() / "cut"
    once, twice = session(shared), session(shared)
    path.write_bytes(whole[:cut])
    load(path, twice, format=name)
    path.write_bytes(whole)
    load(path, once, format=name)
    load(path, twice, format=name)
    assert twice.view.messages == once.view.messages
    assert [type(e.body) for e in twice.branch()] == [type(e.body) for e in once.branch()]
    rest = said(twice)
    for message in said(once):
        rest.remove(message)
    for extra in rest:  # a reply that was cut off, and what hung below it
        parts = extra.parts
        assert any(m.parts[: len(parts)] == parts for m in said(once))
    assert load(path, twice, format=name).added == 0


# -- real files


@pytest.mark.parametrize("name", test_shared.FILES)
def test_real_files_import_once(name: str, store: Store) -> None:
    path = test_shared.FILES[name]
    s, report = import_file(path, store, counter=Letters())
    assert not report.skipped
    assert report.messages
    assert view(s)
    assert load(path, s).added == 0


COMPACTED = "claude-code/cc-2.1-manual-compact-subagent.jsonl"


@pytest.mark.parametrize("name", [name for name in test_shared.FILES if name == COMPACTED])
def test_the_view_after_a_real_boundary_begins_as_the_recorded_request_did(name: str, store: Store) -> None:
    path = test_shared.FILES[name]
    s, _ = import_file(path, store, counter=Letters())
    boundary = next(e for e in s.branch() if isinstance(e.body, Compaction))
    rows = [json.loads(line) for line in path.read_bytes().splitlines()]
    blobs = {row["hash"]: row["message"] for row in rows if row["type"] == "api-request-blob"}
    request = next(
        row for row in rows if row["type"] == "api-request" and row["timestamp"] > "2026-11-30T10:00:00.195Z"
    )
    sent = [blobs[tail] for tail in request["tail"]]
    s.branch_to(boundary)
    summary, kept = s.view.messages
    assert [m["role"] for m in sent[:2]] == [summary.role, kept.role]
    assert kept.text == next(b["text"] for b in sent[1]["content"] if b["type"] == "text")
    notes = [e.body.kind for e in s.entries() if isinstance(e.body, Note)]
    assert notes.count("claude-code/api-request") == 20


def test_a_transcript_goes_on_in_a_session_whose_newest_entries_are_missing(tmp_path: Path) -> None:
    """The ids of new entries follow those ever given, not those that are left, so compactions name the right ones."""
    log = Claude()
    log.user("u1", "first")
    log.text("a1", "m1", "one")
    db = tmp_path / "agent.db"
    s, _ = import_file(written(tmp_path, *log.lines), db, counter=Letters())
    s.append_many([user("x"), user("y")])
    s.close()
    raw = sqlite3.connect(db)
    raw.execute("DELETE FROM entries WHERE id > 2")
    raw.commit()
    raw.close()
    log.user("u2", "second")
    log.text("a2", "m2", "two")
    log.compact("k1", "so far", kept=["a2"])
    log.user("u3", "third")
    s, report = import_file(written(tmp_path, *log.lines), db, counter=Letters())
    with s:
        assert [d.kind for d in s.damage] == ["gap", "leaf"]
        assert (report.added, report.present) == (4, 2)
        assert view(s) == ["user so far", "assistant two", "user third"]
