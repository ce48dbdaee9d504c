"""Claude Code session files: how lines become messages, and how they hang together."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from clew.codecs import anthropic
from clew.messages import Message, Text, Thinking, Usage
from clew.sessions.entries import Note
from clew.transcripts import claude_code
from clew.transcripts.claude_blocks import assistant_parts, user_messages
from clew.transcripts.events import Boundary, Damage, Event, Leaf, Line
from transcripts.scribe import Claude, jsonl, say


def events(data: bytes) -> list[Event]:
    return list(claude_code.read(enumerate(data.splitlines(keepends=True), 1)))


def lines(found: list[Event]) -> dict[str, Line]:
    return {e.key: e for e in found if isinstance(e, Line)}


def path(found: list[Event]) -> list[Line]:
    """The lines from the root to the leaf."""
    by_key = lines(found)
    at: str | None = next(e.key for e in reversed(found) if isinstance(e, Leaf))
    out = []
    while at is not None:
        out.append(by_key[at])
        at = by_key[at].parent
    return out[::-1]


def told(found: list[Event]) -> list[str]:
    """The active path in short: role and text, or role and ids of calls and results."""
    out = []
    for line in path(found):
        body = line.body
        if isinstance(body, Message):
            ids = [c.id for c in body.calls] + [r.call_id for r in body.results]
            out.append(" ".join([body.role, *ids, *([body.text] if body.text else [])]))
    return out


def damage(found: list[Event]) -> list[tuple[int, bool]]:
    return [(e.line, e.lost) for e in found if isinstance(e, Damage)]


def test_the_lines_of_one_api_message_are_one_message_with_its_usage_once() -> None:
    log = Claude()
    log.user("u", "go")
    log.block("a1", "m", {"type": "thinking", "thinking": "hm", "signature": "c2ln"}, output=3)
    log.text("a2", "m", "I look.", output=172)
    log.call("a3", "m", "c1", output=172)
    log.result("r1", "c1")
    found = events(log.data())
    reply = lines(found)["a1"].body
    assert isinstance(reply, Message)
    assert [type(p).__name__ for p in reply.parts] == ["Thinking", "Text", "ToolCall"]
    assert reply.parts[0] == Thinking("hm", "c2ln")
    assert reply.usage == Usage(input=3, output=172, cache_read=100)
    assert [line["uuid"] for line in reply.meta["claude-code"]["lines"]] == ["a1", "a2", "a3"]
    assert told(found) == ["user go", "assistant c1 I look.", "tool c1"]


def test_a_result_between_the_blocks_of_its_message_comes_after_it() -> None:
    log = Claude()
    log.user("u", "go")
    log.call("a1", "m", "c1")
    log.result("r1", "c1")
    log.call("a2", "m", "c2")
    log.result("r2", "c2")
    log.text("b", "n", "done")
    assert told(events(log.data())) == ["user go", "assistant c1 c2", "tool c1", "tool c2", "assistant done"]


def test_all_results_of_parallel_calls_are_on_the_branch_though_the_chain_misses_one() -> None:
    log = Claude()
    log.user("u", "go")
    log.call("a1", "m", "c1")
    log.call("a2", "m", "c2")
    log.result("r2", "c2", parent="a2")
    log.result("r1", "c1", parent="a1")
    log.line("attachment", "n", attachment={"type": "task_reminder"}, parent="r1")
    log.text("b", "n2", "done")
    assert told(events(log.data())) == ["user go", "assistant c1 c2", "tool c2", "tool c1", "assistant done"]


def test_a_rewind_leaves_the_other_branch_in_the_log() -> None:
    log = Claude()
    log.user("u1", "first")
    log.text("a1", "m1", "one")
    log.user("u2", "wrong way")
    log.text("a2", "m2", "two")
    log.user("u3", "right way", parent="a1")
    log.text("a3", "m3", "three")
    found = events(log.data())
    assert told(found) == ["user first", "assistant one", "user right way", "assistant three"]
    assert lines(found)["u2"].parent == lines(found)["u3"].parent == "a1"


def test_a_missing_parent_is_replaced_by_the_line_before_and_reported() -> None:
    log = Claude()
    log.user("u1", "first")
    log.text("a1", "m1", "one")
    log.user("u2", "second")
    log.text("a2", "m2", "two")
    log.lines[2] = b'{"type":"user","uuid":"u2", broken'
    found = events(log.data())
    assert told(found) == ["user first", "assistant one", "assistant two"]
    assert damage(found) == [(3, True), (4, False)]


def test_a_file_whose_head_is_cut_off_begins_with_its_first_line() -> None:
    log = Claude()
    log.user("u1", "first", parent="elsewhere")
    log.text("a1", "m1", "one")
    found = events(log.data())
    assert told(found) == ["user first", "assistant one"]
    assert damage(found) == []


def test_side_chains_are_roots_of_their_own_and_never_on_the_active_branch() -> None:
    log = Claude()
    log.user("u", "go")
    log.call("a", "m", "c1")
    log.user("s1", "look around", parent=None, isSidechain=True)
    log.call("s2", "sm", "sc", isSidechain=True)
    log.result("s3", "sc", isSidechain=True)
    log.text("s4", "sn", "found", isSidechain=True)
    log.result("r", "c1", parent="a")
    log.text("b", "n", "done")
    log.text("s5", "so", "late", parent="s4", isSidechain=True)
    found = events(log.data())
    assert told(found) == ["user go", "assistant c1", "tool c1", "assistant done"]
    side = [line for line in lines(found).values() if line.side]
    assert [line.key for line in side] == ["s1", "s2", "s3", "s4", "s5"]
    assert [line.parent for line in side] == [None, "s1", "s2", "s3", "s4"]
    body = side[0].body
    assert isinstance(body, Message)
    assert body.meta["transcript"] == {"origin": "subagent"}


def test_a_file_of_a_subagent_alone_has_its_own_end() -> None:
    log = Claude(side=True)
    log.user("u", "look around")
    log.text("a", "m", "found")
    assert told(events(log.data())) == ["user look around", "assistant found"]


def test_a_boundary_continues_what_was_before_and_says_what_it_kept() -> None:
    log = Claude()
    log.user("u", "go")
    log.text("a0", "m", "thinking aloud")
    log.text("a1", "m", "done")
    log.compact("b", "what happened", kept=["a1", "a0"], trigger="manual")
    log.user("u2", "go on")
    found = events(log.data())
    boundary = lines(found)["b"].body
    assert isinstance(boundary, Boundary)
    assert boundary.summary.text == "what happened"
    assert boundary.summary.meta["transcript"] == {"origin": "summary"}
    assert boundary.kept == ("a0",)
    assert (boundary.reason, boundary.before, boundary.after) == ("manual", 1000, 100)
    assert [line.key for line in path(found)] == ["u", "a0", "b", "u2"]


def test_a_boundary_whose_summary_never_came_hides_nothing() -> None:
    log = Claude()
    log.user("u", "go")
    log.text("a", "m", "done")
    log.compact("b", "lost")
    log.lines.pop()
    log.user("u2", "go on", parent="b")
    found = events(log.data())
    assert told(found) == ["user go", "assistant done", "user go on"]
    assert isinstance(lines(found)["b"].body, Note)


def test_a_summary_whose_boundary_is_lost_still_compacts() -> None:
    log = Claude()
    log.user("u", "go")
    log.text("a", "m", "done")
    log.compact("b", "what happened")
    del log.lines[-2]
    log.user("u2", "go on")
    found = events(log.data())
    assert isinstance(lines(found)["b-summary"].body, Boundary)
    assert [line.key for line in path(found)] == ["u", "a", "b-summary", "u2"]


def test_what_is_no_message_is_kept_as_a_note_where_it_stands() -> None:
    log = Claude()
    first = {"type": "summary", "summary": "Another session", "leafUuid": "x"}
    log.lines.append(first)
    log.user("u", "go")
    log.lines.append({"type": "mode", "mode": "normal", "sessionId": "s"})
    log.line("system", "e", subtype="api_error", error={"status": 529}, retryAttempt=1)
    log.line("hologram", "h", content="from the future")
    log.text("a", "m", "done")
    found = events(log.data())
    bodies = {key: line.body for key, line in lines(found).items()}
    notes = {key: body for key, body in bodies.items() if isinstance(body, Note)}
    kinds = ["claude-code/summary", "claude-code/mode", "claude-code/system/api_error", "claude-code/hologram"]
    assert [note.kind for note in notes.values()] == kinds
    assert notes["#1"].data == first
    assert [line.key for line in path(found)] == ["u", "#3", "e", "h", "a"]


def test_machine_text_in_the_users_name_is_marked() -> None:
    log = Claude()
    log.user("u1", "<command-name>/clear</command-name>")
    log.user("u2", "caveat", isMeta=True)
    log.user("u3", "hello")
    bodies = [line.body for line in lines(events(log.data())).values()]
    origins = [b.meta.get("transcript", {}).get("origin") for b in bodies if isinstance(b, Message)]
    assert origins == ["harness", "harness", None]


def test_fields_of_a_line_are_kept_beside_its_message() -> None:
    log = Claude()
    log.call("a", "m", "c1")
    line = log.result("r", "c1", sandboxed=False)
    body = lines(events(log.data()))["r"].body
    assert isinstance(body, Message)
    assert body.meta["claude-code"]["lines"] == [{k: v for k, v in line.items() if k != "message"}]


def test_results_and_text_in_one_user_line_are_two_messages() -> None:
    log = Claude()
    log.call("a", "m", "c1")
    log.user("u", [{"type": "tool_result", "tool_use_id": "c1", "content": "ok"}, say("and now this")])
    log.text("b", "n", "fine")
    assert told(events(log.data())) == ["assistant c1", "tool c1", "user and now this", "assistant fine"]


def test_a_line_written_twice_is_one_block() -> None:
    log = Claude()
    log.text("a", "m", "once")
    log.lines.append(log.lines[0])
    body = lines(events(log.data()))["a"].body
    assert isinstance(body, Message)
    assert body.parts == (Text("once"),)


def test_a_message_taken_for_complete_too_early_goes_on_without_a_second_bill() -> None:
    log = Claude()
    log.user("u", "go")
    log.call("a1", "m", "c1")
    for n in range(claude_code.WAITING + 5):
        log.user(f"s{n}", "busy", parent=None, isSidechain=True)
    log.call("a2", "m", "c2", parent="a1")
    found = lines(events(log.data()))
    replies = [line.body for key in ("a1", "a2") if isinstance((line := found[key]).body, Message)]
    assert [[c.id for c in reply.calls] for reply in replies] == [["c1"], ["c2"]]
    assert [reply.usage is None for reply in replies] == [False, True]


def test_a_message_of_a_shape_no_one_knows_is_kept_as_a_note() -> None:
    log = Claude()
    log.user("u", 17)
    log.block("a", "m", {"type": "text"})
    log.user("u2", "still here")
    found = events(log.data())
    assert [body.kind for line in path(found) if isinstance(body := line.body, Note)] == ["claude-code/unreadable"] * 2
    assert told(found) == ["user still here"]
    assert damage(found) == [(1, False), (2, False)]


def test_a_block_no_one_can_read_does_not_take_its_message_along() -> None:
    log = Claude()
    odd = {"type": "tool_use", "id": 5}
    log.text("a1", "m", "I look.")
    log.block("a2", "m", odd)
    log.call("a3", "m", "c1")
    log.result("r", "c1")
    found = events(log.data())
    assert told(found) == ["assistant c1 I look.", "tool c1"]
    body = lines(found)["a1"].body
    assert isinstance(body, Message)
    assert body.meta["claude-code"]["unreadable"] == [odd]
    assert damage(found) == [(3, False)]


BLOCKS: list[dict[str, Any]] = [
    say("hello"),
    {"type": "text", "text": "你好", "cache_control": {"type": "ephemeral"}},
    {"type": "tool_use", "id": "c", "name": "Bash", "input": {"command": "echo 你好", "n": [1, None, 2.5]}},
    {"type": "tool_use", "id": "c", "name": "Bash", "input": {}, "caller": {"type": "direct"}},
    {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
    {"type": "thinking", "thinking": "hm", "signature": ""},
    {"type": "redacted_thinking", "data": "xyz"},
    {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
]
RESULTS: list[dict[str, Any]] = [
    {"type": "tool_result", "tool_use_id": "c", "content": "ok"},
    {"type": "tool_result", "tool_use_id": "c", "content": "ok", "is_error": False},
    {"type": "tool_result", "tool_use_id": "c", "content": "no", "is_error": True},
    {"type": "tool_result", "tool_use_id": "c", "content": [say("a"), say("b")]},
    {"type": "tool_result", "tool_use_id": "c"},
    say("and"),
    {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x"}},
]


def payload(messages: list[Message]) -> Any:
    encoded = anthropic.encode([Message("user", (Text("x"),)), *messages])["messages"]
    return json.loads(json.dumps(encoded))


@given(st.lists(st.sampled_from(BLOCKS), min_size=1, max_size=4))
def test_everyday_assistant_blocks_read_as_the_codec_reads_them(blocks: list[dict[str, Any]]) -> None:
    decoded = anthropic.decode([{"role": "assistant", "content": blocks}])[0].parts
    assert payload([Message("assistant", assistant_parts(blocks)[0])]) == payload([Message("assistant", decoded)])


@given(st.lists(st.sampled_from(RESULTS), min_size=1, max_size=4) | st.sampled_from(["", "text"]))
def test_everyday_user_content_reads_as_the_codec_reads_it(content: Any) -> None:
    assert user_messages(content) == (anthropic.decode([{"role": "user", "content": content}]), [])


def test_lines_are_told_apart_by_line_feeds_alone() -> None:
    log = Claude()
    log.user("u", "one\u2028two\u0085three")
    data = jsonl(*log.lines).replace(b"\n", b"\r\n")
    assert told(events(data)) == ["user one\u2028two\u0085three"]
