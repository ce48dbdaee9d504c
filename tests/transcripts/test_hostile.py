"""Whatever bytes a file holds: never an exception, and the lines that are whole survive."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.messages import Message
from clew.transcripts.events import Event, Line
from clew.transcripts.formats import FORMATS
from transcripts.scribe import Claude, Pi, pi_call, say
from transcripts.test_dumps import CHAT, CLAUDE, ITEMS


def a_claude_session() -> bytes:
    log = Claude()
    log.lines.append({"type": "summary", "summary": "x", "leafUuid": "y"})
    log.user("u1", "修复测试")
    log.block("a1", "m1", {"type": "thinking", "thinking": "hm", "signature": "c2ln"})
    log.call("a2", "m1", "c1")
    log.result("r1", "c1")
    log.call("a3", "m1", "c2")
    log.result("r2", "c2", [say("a"), say("b")])
    log.text("b1", "m2", "done")
    log.user("s1", "side", parent=None, isSidechain=True)
    log.text("s2", "m3", "aside", isSidechain=True)
    log.compact("k", "so far", kept=["b1"])
    log.user("u2", "next")
    log.text("b2", "m4", "fine")
    return log.data()


def a_pi_session() -> bytes:
    log = Pi()
    log.user("u1", "修复测试", parent=None)
    log.failed("e")
    log.user("u2", "修复测试")
    log.assistant("a1", say("ok"), pi_call("c1", path="x"), stop="toolUse")
    log.message("r1", "toolResult", [say("done")], toolCallId="c1", toolName="bash", isError=False)
    log.entry("label", "l", targetId="u1", label="start")
    log.entry("compaction", "k", summary="so far", firstKeptEntryId="a1", tokensBefore=9)
    log.message("b", "bashExecution", None, command="ls", output="x", exitCode=0)
    log.assistant("a2", say("fine"))
    return log.data()


FILES = {
    "claude-code": a_claude_session(),
    "pi": a_pi_session(),
    "openai": b"".join(json.dumps(m).encode() + b"\n" for m in CHAT),
    "anthropic": b"".join(json.dumps(m).encode() + b"\n" for m in CLAUDE),
    "responses": b"".join(json.dumps(m).encode() + b"\n" for m in ITEMS),
}
DOCUMENTS = {
    "openai": json.dumps([{"traj": CHAT, "task": 1}]).encode(),
    "anthropic": json.dumps({"system": "Be brief.", "messages": CLAUDE}).encode(),
    "responses": json.dumps({"items": ITEMS}, indent=1).encode(),
}
CASES = [(name, data) for files in (FILES, DOCUMENTS) for name, data in files.items()]


def read(name: str, data: bytes) -> list[Event]:
    return list(FORMATS[name].read(io.BytesIO(data)))


def said(events: list[Event]) -> set[str]:
    """The words of all messages, and what they were called with."""
    out = set()
    for event in events:
        if isinstance(event, Line) and isinstance(event.body, Message):
            body = event.body
            out |= {body.text, *(c.id for c in body.calls), *(r.text for r in body.results)}
    return out - {""}


@st.composite
def damaged(draw: st.DrawFn) -> tuple[str, bytes, bytes]:
    name, data = draw(st.sampled_from(CASES))
    broken = bytearray(data)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(0, len(broken) - 1)))
        match draw(st.sampled_from(["flip", "cut", "drop", "insert"])):
            case "flip" if broken:
                broken[at] ^= 1 << draw(st.integers(0, 7))
            case "cut":
                del broken[at:]
            case "drop":
                del broken[at : at + draw(st.integers(1, 80))]
            case _:
                broken[at:at] = draw(st.binary(max_size=20) | st.just(b"\0" * 50) | st.just(data[:90]))
    return name, data, bytes(broken)


@given(damaged())
def test_no_damage_raises(case: tuple[str, bytes, bytes]) -> None:
    name, _, broken = case
    keys = set()
    for event in read(name, broken):
        if isinstance(event, Line):
            assert event.parent is None or event.parent in keys
            keys.add(event.key)


@given(st.sampled_from(sorted(FILES)), st.data())
def test_lines_that_are_whole_survive_damage_to_others(name: str, data: st.DataObject) -> None:
    lines = FILES[name].splitlines(keepends=True)
    hit = data.draw(st.integers(0, len(lines) - 1))
    line = lines[hit]
    at = data.draw(st.integers(0, len(line) - 2))
    broken = line[:at] + data.draw(st.binary(min_size=1, max_size=8)).replace(b"\n", b"") + line[at + 4 : -1] + b"\n"
    kept = said(read(name, b"".join([*lines[:hit], broken, *lines[hit + 1 :]])))
    without = said(read(name, b"".join(lines[:hit] + lines[hit + 1 :])))
    assert without <= kept


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(["u1", "user"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from(sorted(FILES)), st.data())
def test_values_of_any_type_in_any_field_raise_nothing(name: str, data: st.DataObject) -> None:
    lines = [json.loads(line) for line in FILES[name].splitlines()]
    target: Any = data.draw(st.sampled_from(lines))
    while isinstance(target, dict | list) and target:
        key = data.draw(st.sampled_from(sorted(target) if isinstance(target, dict) else range(len(target))))
        if isinstance(target[key], dict | list) and target[key] and data.draw(st.booleans()):
            target = target[key]
            continue
        target[key] = data.draw(JSON)
        break
    read(name, b"".join(json.dumps(line).encode() + b"\n" for line in lines))


@pytest.mark.parametrize("name", sorted(FILES))
def test_one_message_on_thousands_of_levels_raises_nothing(name: str) -> None:
    deep = b'{"type":"message","uuid":"d","role":"user","content":' + b"[" * 900 + b"]" * 900 + b"}\n"
    assert said(read(name, deep + FILES[name])) >= said(read(name, FILES[name]))
