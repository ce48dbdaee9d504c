"""Real files: the numbers that every import must reproduce."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from clew.messages import Message, Thinking
from clew.sessions.entries import Note
from clew.transcripts import recording, sniff
from clew.transcripts.events import Boundary, Damage, Line
from clew.transcripts.formats import named
from recordings import RECORDINGS

FORMATS = ("claude-code", "pi", "openclaw", "openai-messages", "mini-swe-agent")
FILES = {
    str(path.relative_to(RECORDINGS)): path
    for folder in FORMATS
    for path in sorted((RECORDINGS / folder).glob("*"))
    if not path.name.endswith(".meta.json")
}


def lines(path: Path) -> list[Line | Damage]:
    with path.open("rb") as file:
        return [e for e in named(sniff(path)).read(file) if isinstance(e, Line | Damage)]


def claude_numbers(found: list[Line | Damage]) -> dict[str, int]:
    """Counts in terms of the file's own lines, from what was kept beside the messages."""
    seen: Counter[str] = Counter()
    ids = set()
    for line in found:
        assert isinstance(line, Line)
        body = line.body
        if isinstance(body, Boundary):
            seen["compactions"] += 1
            body = body.summary
            seen["lines"] += 1
        if not isinstance(body, Message):
            assert isinstance(body, Note)
            seen["lines"] += 1
            seen["side"] += body.data.get("isSidechain") is True
            continue
        own = body.meta.get("claude-code", {}).get("lines", [])
        seen["lines"] += len(own)
        seen["side"] += sum(x["isSidechain"] for x in own)
        seen[body.role if body.role == "assistant" else "user"] += len(own)
        if body.role == "assistant":
            ids.add(body.meta["claude-code"]["message"]["id"])
            seen["messages"] += 1
            seen["calls"] += len(body.calls)
            seen["thinking"] += sum(isinstance(p, Thinking) for p in body.parts)
    assert seen["messages"] == len(ids), "an API message came out in pieces"
    names = ("lines", "user", "assistant", "messages", "calls", "thinking", "side", "compactions")
    return {name: seen[name] for name in names}


CLAUDE = {
    "cc-1.0-long.jsonl": (438, 175, 262, 170, 167, 0, 405, 0),
    "cc-1.0-short-tools.jsonl": (29, 14, 15, 7, 12, 0, 0, 0),
    "cc-2.0-file-history.jsonl": (89, 33, 49, 30, 27, 0, 0, 0),
    "cc-2.0-many-summaries.jsonl": (31, 6, 8, 3, 5, 0, 0, 0),
    "cc-2.0-long-api-errors.jsonl": (64, 25, 27, 20, 17, 0, 0, 0),
    "cc-2.1-manual-compact-subagent.jsonl": (237, 26, 53, 20, 13, 20, 0, 1),
    "cc-2.1-manual-compact-subagent.subagents-agent-a89da773616247d35.jsonl": (26, 3, 6, 2, 2, 2, 21, 0),
}
PI = {
    "pi/pi-linear-large.jsonl": (1019, 88, 453, 373, 391, 0),
    "pi/pi-linear-compaction-cut.jsonl": (191, 7, 91, 91, 95, 1),
    "pi/pi-1.6-compaction.jsonl": (60, 12, 26, 17, 17, 1),
    "openclaw/openclaw-v3-zh.jsonl": (33, 7, 19, 2, 2, 0),
    "openclaw/openclaw-v3-course-cut.jsonl": (124, 21, 55, 37, 38, 0),
}
DUMPS = {
    "openai-messages/tau-bench-gpt-4o-airline-cut.json": 294,
    "openai-messages/litellm-log-claude-fncall.json": 12 + 1,  # the reply of the logged call
    "openai-messages/litellm-log-deepseek-nonfncall.json": 8 + 1,
    "mini-swe-agent/mini-swe-agent-1.0-list.traj.json": 22,
}


@pytest.mark.parametrize("name", [n for n in CLAUDE if f"claude-code/{n}" in FILES])
def test_claude_code_files(name: str) -> None:
    assert tuple(claude_numbers(lines(FILES[f"claude-code/{name}"])).values()) == CLAUDE[name]


@pytest.mark.parametrize("name", [n for n in PI if n in FILES])
def test_pi_files(name: str) -> None:
    seen: Counter[str] = Counter()
    for line in lines(FILES[name]):
        if isinstance(line, Damage):
            continue
        body: Any = line.body
        seen["lines"] += 1
        if isinstance(body, Message):
            seen[body.role] += 1
            seen["calls"] += len(body.calls)
        elif isinstance(body, Note) and body.kind == "pi/asked-again":
            seen["user"] += 1
        seen["compactions"] += isinstance(body, Boundary)
    assert tuple(seen[k] for k in ("lines", "user", "assistant", "tool", "calls", "compactions")) == PI[name]


@pytest.mark.parametrize("name", [n for n in DUMPS if n in FILES])
def test_message_lists(name: str) -> None:
    assert sum(isinstance(line, Line) and isinstance(line.body, Message) for line in lines(FILES[name])) == DUMPS[name]


UNANSWERED = {"pi-linear-large.jsonl": 18, "pi-linear-compaction-cut.jsonl": 5, "openclaw-v3-course-cut.jsonl": 1}
"""Calls of aborted replies, as the files themselves say."""


@pytest.mark.parametrize("name", FILES)
def test_every_result_finds_its_call(name: str) -> None:
    path = FILES[name]
    for run in range(1, recording(path).runs + 1):
        tape = recording(path, run=run)
        assert tape.messages
        assert not tape.skipped
        calls = [c.id for m in tape.messages for c in m.calls]
        results = [r.call_id for m in tape.messages for r in m.results]
        cut = "cut" in path.name
        assert cut or not set(results) - set(calls)
        if path.name not in UNANSWERED and not path.name.startswith("litellm"):
            assert Counter(calls) == Counter(results)
        else:
            assert len(set(calls) - set(results)) == UNANSWERED.get(path.name, 1)
