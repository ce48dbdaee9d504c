"""Pi and OpenClaw session files."""

from __future__ import annotations

from typing import Any

import pytest

from clew.messages import Image, Message, Opaque, Text, Thinking, ToolCall, ToolResult, Usage
from clew.sessions.entries import Note
from clew.transcripts import pi
from clew.transcripts.events import Aside, Boundary, Damage, Event, Hidden, Leaf, Line, Name
from transcripts.scribe import Pi, pi_call, say


def events(log: Pi) -> list[Event]:
    return list(pi.read(enumerate(log.data().splitlines(keepends=True), 1)))


def lines(log: Pi) -> dict[str, Line]:
    return {e.key: e for e in events(log) if isinstance(e, Line)}


def body(log: Pi, key: str) -> Any:
    return lines(log)[key].body


def test_a_tree_with_notes_and_a_current_end() -> None:
    log = Pi()
    log.entry("model_change", "m", parent=None, provider="p", modelId="x")
    log.user("u1", "first")
    log.assistant("a1", say("one"))
    log.user("u2", "wrong way")
    log.user("u3", "right way", parent="a1")
    found = lines(log)
    parents = {key: line.parent for key, line in found.items()}
    assert parents == {"#1": None, "m": "#1", "u1": "m", "a1": "u1", "u2": "a1", "u3": "a1"}
    assert isinstance(found["m"].body, Note)
    assert events(log)[-1] == Leaf("u3")


def test_an_assistant_reply_with_usage_and_all_its_blocks() -> None:
    log = Pi()
    thinking = {"type": "thinking", "thinking": "hm", "thinkingSignature": "c2ln"}
    log.assistant("a", thinking, say("I look."), pi_call("c1", path="你"), stop="toolUse", parent=None)
    reply = body(log, "a")
    assert reply.parts == (Thinking("hm", "c2ln"), Text("I look."), ToolCall("c1", "bash", '{"path":"你"}'))
    assert reply.usage == Usage(10, 5, 100, 1)
    assert reply.meta["pi"]["message"]["stopReason"] == "toolUse"


def test_a_signature_of_another_provider_is_not_taken_for_anthropics() -> None:
    log = Pi()
    thinking = {"type": "thinking", "thinking": "hm", "thinkingSignature": "reasoning_content"}
    log.assistant("a", thinking, api="openai-completions")
    assert body(log, "a").parts == (Thinking("hm", "", {"pi": {"thinkingSignature": "reasoning_content"}}),)


def test_a_tool_result_keeps_its_details_and_images() -> None:
    log = Pi()
    image = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
    log.message(
        "r", "toolResult", [say("ok"), image], toolCallId="c1", toolName="edit", details={"diff": "d"}, isError=True
    )
    result = body(log, "r")
    assert result.parts == (ToolResult("c1", (Text("ok"), Image(data="aGk=", media_type="image/png")), True, "edit"),)
    assert result.meta["pi"]["message"]["details"] == {"diff": "d"}


def test_the_oldest_layout_is_a_chain() -> None:
    log = Pi(linear=True)
    log.user("", "one")
    log.assistant("", say("two"))
    log.entry("compaction", summary="so far", firstKeptEntryIndex=2, tokensBefore=99)
    log.user("", "three")
    found = lines(log)
    assert [line.parent for line in found.values()] == [None, "#1", "#2", "#3", "#4"]
    boundary = found["#4"].body
    assert isinstance(boundary, Boundary)
    assert (boundary.kept_from, boundary.before) == ("#3", 99)


@pytest.mark.parametrize("index", [7, -1, "x"])
def test_an_index_outside_of_the_file_keeps_nothing_and_is_reported(index: Any) -> None:
    log = Pi(linear=True)
    log.user("", "one")
    log.entry("compaction", summary="so far", firstKeptEntryIndex=index, tokensBefore=99)
    assert body(log, "#3").kept_from == ""
    assert [e.line for e in events(log) if isinstance(e, Damage)] == [3]


def test_a_compaction_of_version_3() -> None:
    log = Pi()
    log.user("u", "one", parent=None)
    log.assistant("a", say("two"))
    usage = {"input": 7, "output": 8}
    system = {"role": "system", "content": "", "sections": {"rules": "Be brief."}}
    log.entry("compaction", "c", summary="S", firstKeptEntryId="a", tokensBefore=9, usage=usage, systemMessage=system)
    boundary = body(log, "c")
    assert "S" in boundary.summary.text
    assert (boundary.kept_from, boundary.usage, boundary.system.text) == ("a", Usage(7, 8), "Be brief.")


def test_a_question_asked_again_after_failed_replies_stands_once() -> None:
    log = Pi()
    log.user("u1", "hello?", parent=None)
    log.failed("e1")
    log.failed("e2")
    log.entry("custom", "x", customType="model-snapshot", data={})
    log.user("u2", "hello?")
    log.failed("e3")
    log.user("u3", "hello?")
    log.assistant("a", say("hi"))
    log.user("u4", "hello?")
    found = lines(log)
    again = [key for key, line in found.items() if isinstance(line.body, Note) and line.body.kind == "pi/asked-again"]
    assert again == ["u2", "u3"]
    assert [key for key, line in found.items() if isinstance(line.body, Message) and not line.body.blank] == [
        "u1",
        "a",
        "u4",
    ]


def test_another_picture_is_another_question() -> None:
    log = Pi()
    for n, data in enumerate(("aGk=", "aGkh", "aGkh")):
        log.message(f"u{n}", "user", [say("this?"), {"type": "image", "data": data, "mimeType": "image/png"}])
        log.failed(f"e{n}")
    shown = [key for key, line in lines(log).items() if isinstance(line.body, Message) and not line.body.blank]
    assert shown == ["u0", "u1"]


def test_a_failed_reply_is_an_empty_message_with_its_error() -> None:
    log = Pi()
    log.failed("e", parent=None)
    reply = body(log, "e")
    assert reply.blank
    assert reply.usage is None
    assert reply.meta["pi"]["message"]["errorMessage"] == "429"


def test_commands_the_user_ran_beside_the_conversation() -> None:
    log = Pi()
    run = {"command": "ls", "output": "a\nb", "exitCode": 2, "truncated": True, "fullOutputPath": "/w/out"}
    log.message("b1", "bashExecution", None, **run)
    log.message("b2", "bashExecution", None, command="ls", output="", excludeFromContext=True)
    shown = body(log, "b1")
    assert shown.role == "user"
    assert all(word in shown.text for word in ("ls", "a\nb", "2", "/w/out"))
    assert isinstance(body(log, "b2"), Note)


def test_summaries_labels_and_edits() -> None:
    log = Pi()
    log.user("u", "one", parent=None)
    log.entry("branch_summary", "s", fromId="u", summary="tried in vain")
    log.entry("label", "l", targetId="u", label="start")
    log.entry("context_edit", "x", targetId="u", replacement=None)
    log.entry("custom_message", "c", customType="k", content="from an extension", display=True)
    log.entry("label", "d", targetId="nowhere", label="lost")
    aside = body(log, "s")
    assert isinstance(aside, Aside)
    assert aside.leaf == "u"
    assert "tried in vain" in aside.message.text
    assert body(log, "l") == Name("u", "start")
    assert isinstance(body(log, "x"), Hidden)
    assert body(log, "c").text == "from an extension"
    assert isinstance(body(log, "d"), Note)


@pytest.mark.parametrize(
    "message",
    [None, 3, {"role": "user", "content": 3}, {"role": "user", "content": [3]}, {"role": "toolResult", "content": []}],
)
def test_a_message_of_an_impossible_shape_is_kept_as_a_note(message: Any) -> None:
    log = Pi()
    log.entry("message", "x", parent=None, message=message)
    log.user("u", "still here")
    assert body(log, "x").kind == "pi/unreadable"
    assert body(log, "u").text == "still here"
    assert [e.line for e in events(log) if isinstance(e, Damage)] == [2]


def test_unknown_entries_roles_and_blocks_are_kept() -> None:
    log = Pi()
    log.entry("hologram", "h", parent=None, data=1)
    log.message("r", "oracle", "delphi")
    log.message("u", "user", [{"type": "smell", "of": "coffee"}])
    assert body(log, "h").data["data"] == 1
    assert body(log, "r").data["message"]["role"] == "oracle"
    assert body(log, "u").parts == (Opaque("pi", {"type": "smell", "of": "coffee"}),)


def test_a_missing_parent_is_replaced_by_the_line_before_and_reported() -> None:
    log = Pi()
    log.user("u1", "one", parent=None)
    log.user("u2", "two", parent="gone")
    assert lines(log)["u2"].parent == "u1"
    assert [(e.line, e.lost) for e in events(log) if isinstance(e, Damage)] == [(3, False)]
