"""Message lists of the providers, in all their envelopes."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from clew.messages import Message, Usage
from clew.sessions.entries import Note
from clew.transcripts import dumps
from clew.transcripts.dumps import ANTHROPIC, OPENAI, RESPONSES, Dialect
from clew.transcripts.events import Damage, Event, Leaf, Line, Start
from transcripts.scribe import jsonl

CHAT: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "列出文件"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{}"}},
            {"id": "c2", "type": "function", "function": {"name": "ls", "arguments": "{}"}},
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "a.py"},
    {"role": "tool", "tool_call_id": "c2", "content": "b.py"},
    {"role": "assistant", "content": "Two files."},
]
CLAUDE: list[dict[str, Any]] = [
    {"role": "user", "content": "list"},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "ls", "input": {}}]},
    {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "a.py"}, {"type": "text", "text": "so?"}],
    },
    {"role": "assistant", "content": "One file."},
]
ITEMS: list[dict[str, Any]] = [
    {"role": "user", "content": "list"},
    {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "eA=="},
    {"type": "function_call", "call_id": "c1", "name": "ls", "arguments": "{}", "id": "f1"},
    {"type": "function_call", "call_id": "c2", "name": "ls", "arguments": "{}", "id": "f2"},
    {"type": "function_call_output", "call_id": "c1", "output": "a.py"},
    {"type": "function_call_output", "call_id": "c2", "output": "b.py"},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Two.", "annotations": []}]},
]


def read(data: bytes | Any, dialect: Dialect = OPENAI) -> list[Event]:
    data = data if isinstance(data, bytes) else json.dumps(data, ensure_ascii=False).encode()
    return list(dumps.read(io.BytesIO(data), dialect))


def messages(found: list[Event]) -> list[Message]:
    return [e.body for e in found if isinstance(e, Line) and isinstance(e.body, Message)]


def short(found: list[Event]) -> list[str]:
    out = []
    for m in messages(found):
        ids = [c.id for c in m.calls] + [r.call_id for r in m.results]
        out.append(" ".join([m.role, *ids, *([m.text] if m.text else [])]))
    return out


TOLD = ["system Be brief.", "user 列出文件", "assistant c1 c2", "tool c1", "tool c2", "assistant Two files."]


@pytest.mark.parametrize(
    "data",
    [
        json.dumps(CHAT).encode(),
        json.dumps(CHAT, indent=2).encode(),
        json.dumps({"messages": CHAT}).encode(),
        json.dumps({"messages": CHAT}, indent=2).encode(),
        json.dumps({"model": "x", "messages": CHAT, "tools": []}, indent=1).encode(),
        jsonl(*CHAT),
        jsonl({"messages": CHAT}, {"messages": CHAT})[: len(jsonl({"messages": CHAT}))],
    ],
)
def test_a_list_in_every_envelope(data: bytes) -> None:
    found = read(data)
    assert short(found) == TOLD
    keys = [e.key for e in found if isinstance(e, Line)]
    assert [e.parent for e in found if isinstance(e, Line)] == [None, *keys[:-1]]
    assert found[-1] == Leaf(keys[-1])


def test_anthropic_messages_with_their_system_prompt() -> None:
    found = read({"system": "Be brief.", "messages": CLAUDE}, ANTHROPIC)
    told = ["system Be brief.", "user list", "assistant c1", "tool c1", "user so?", "assistant One file."]
    assert short(found) == told
    assert short(read(jsonl(*CLAUDE), ANTHROPIC)) == told[1:]
    assert short(read(jsonl({"system": "Be brief.", "messages": CLAUDE}, {"messages": []}), ANTHROPIC)) == told


def test_the_items_of_one_response_are_one_message() -> None:
    for data in (json.dumps(ITEMS).encode(), jsonl(*ITEMS), json.dumps({"items": ITEMS}).encode()):
        found = read(data, RESPONSES)
        assert short(found) == ["user list", "assistant c1 c2", "tool c1", "tool c2", "assistant Two."]
        assert len(messages(found)[1].parts) == 3


@pytest.mark.parametrize("name", ["traj", "messages"])
def test_a_list_of_runs_is_several_conversations(name: str) -> None:
    runs = [{"task_id": n, name: CHAT[:n]} for n in (2, 3)]
    for data in (json.dumps(runs).encode(), jsonl(*runs)):
        found = read(data)
        assert [e.name for e in found if isinstance(e, Start)] == ["1", "2"]
        assert short(found) == [*TOLD[:2], *TOLD[:3]]
        assert [e.key.partition(":")[0] for e in found if isinstance(e, Leaf)] == ["1", "2"]


def test_what_an_envelope_says_is_kept_as_a_note() -> None:
    found = read([{"task_id": 7, "reward": 0.5, "traj": CHAT}])
    notes = [e.body for e in found if isinstance(e, Line) and isinstance(e.body, Note)]
    assert notes == [Note("openai/envelope", {"task_id": 7, "reward": 0.5})]


def test_the_log_of_one_call_ends_with_its_reply_and_usage() -> None:
    response = {
        "choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": "Hi.", "tool_calls": None}}],
        "usage": {"prompt_tokens": 90, "completion_tokens": 9, "prompt_tokens_details": {"cached_tokens": 40}},
    }
    found = read({"messages": CHAT, "response": response, "cost": 0.1, "timestamp": 1757015046.5})
    assert short(found) == [*TOLD, "assistant Hi."]
    assert messages(found)[-1].usage == Usage(input=50, output=9, cache_read=40)
    assert [e.at for e in found if isinstance(e, Line) and e.at] == [1757015046.5]


def test_a_mini_swe_agent_trajectory() -> None:
    extra = {"timestamp": 1757015046.5, "response": {"usage": {"prompt_tokens": 5, "completion_tokens": 3}}}
    trajectory = {
        "info": {"exit_status": "Submitted"},
        "messages": [
            *CHAT[:2],
            {"role": "assistant", "content": "THOUGHT", "extra": extra},
            {"role": "exit", "content": "done"},
        ],
        "trajectory_format": "mini-swe-agent-1.1",
    }
    found = read(json.dumps(trajectory, indent=2).encode())
    assert short(found) == [*TOLD[:2], "assistant THOUGHT"]
    reply = messages(found)[-1]
    assert reply.usage == Usage(5, 3)
    assert reply.meta["transcript"]["fields"]["extra"] == extra
    assert not [e for e in found if isinstance(e, Damage)]


def test_a_message_no_one_can_read_is_kept_and_reported() -> None:
    odd: Any = {"role": "oracle", "content": "delphi"}
    found = read([CHAT[1], odd, 5, CHAT[-1]])
    assert short(found) == ["user 列出文件", "assistant Two files."]
    notes = [e.body.data for e in found if isinstance(e, Line) and isinstance(e.body, Note)]
    assert notes == [{"value": odd}, {"value": 5}]
    assert [(e.line, e.lost) for e in found if isinstance(e, Damage)] == [(2, False), (3, False)]


@pytest.mark.parametrize("envelope", [CHAT, {"messages": CHAT}, [{"traj": CHAT, "task": 1}, {"traj": CHAT, "task": 2}]])
def test_no_message_before_the_cut_of_a_document_is_lost(envelope: Any) -> None:
    data = json.dumps(envelope, ensure_ascii=False).encode()
    ends = [data.find(end) + len(end) for end in (json.dumps(m, ensure_ascii=False).encode() for m in CHAT)]
    for cut in range(len(data)):
        whole = sum(end <= cut for end in ends)
        found = read(data[:cut])
        assert short(found)[:whole] == TOLD[:whole]
        assert len(short(found)) == whole or cut > max(ends)
        assert not data[:cut].strip() or any(isinstance(e, Damage) for e in found)


def test_the_system_prompt_of_a_cut_document_is_kept() -> None:
    data = json.dumps({"system": "Be brief.", "messages": CLAUDE}).encode()
    found = read(data[:-5], ANTHROPIC)
    assert short(found)[:2] == ["system Be brief.", "user list"]
    assert sum(isinstance(e, Start) for e in found) == 1
