"""Records the example session: a scripted agent that really works on a small repository.

    python examples/record.py [--out examples/session.jsonl] [--turns N] [--keep FOLDER]

What the user and the agent say stands in `script/`; every command, edit and test run is carried out
in a temporary folder, and what really came back is what the session holds. The clock, git's dates and
authors, and whatever names a machine are fixed, so that recording again gives the same file.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import re
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from steps import Answered, Asked, Hidden, Placed, Step, load
from tools import SCHEMAS, Workspace, picture_block

HERE = Path(__file__).parent
MODEL = "claude-sonnet-4-5"
START = datetime(2026, 3, 2, 8, 30, tzinfo=UTC).timestamp()
CACHE_LIFE = 300
"""Seconds a prompt cache lives after its last use (Anthropic, the default)."""

_CJK = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


def tokens(content: Any) -> int:
    """Tokens of a message's content, estimated: four characters of JSON text each, one per CJK
    character, and Anthropic's width x height / 750 for a picture of the charts' size."""
    if isinstance(content, list):
        return sum(tokens(block) for block in content)
    if isinstance(content, dict) and content.get("type") == "image":
        return 60
    if isinstance(content, dict) and content.get("type") == "tool_result" and isinstance(content["content"], list):
        return 12 + tokens(content["content"])
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    wide = len(_CJK.findall(text))
    return wide + (len(text) - wide + 3) // 4


def digest(*seed: object) -> bytes:
    return hashlib.sha512(repr(seed).encode()).digest()


def identifier(prefix: str, *seed: object) -> str:
    """An id as the provider makes them, the same for the same seed."""
    letters = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz123456789"
    return prefix + "01" + "".join(letters[b % len(letters)] for b in digest(prefix, *seed)[:22])


def signature(thinking: str) -> str:
    """What stands in for a provider's signature; nobody can check it."""
    return base64.b64encode(b"".join(digest("signature", i, thinking) for i in range(3))).decode("ascii")


class Recording:
    """The session as it grows: the clock, the prompt's size, what of it is cached."""

    def __init__(self, workspace: Workspace, system: str) -> None:
        self.workspace = workspace
        self.now = START
        self.prompt = tokens(system) + tokens(SCHEMAS)
        self.cached = 0
        self.called = 0.0
        self.replies = 0

    def lines(self, steps: list[Step]) -> Iterator[dict[str, Any]]:
        """The messages, one after the other."""
        for step in steps:
            self.workspace.clock = int(self.now)
            if isinstance(step, Hidden):
                self.workspace.hidden(step.command)
            elif isinstance(step, Placed):
                self.workspace.call("write", {"path": step.path, "content": step.content})
            elif isinstance(step, Asked):
                yield self._asked(step)
            else:
                yield from self._answered(step)

    def _asked(self, step: Asked) -> dict[str, Any]:
        self.now += step.pause * 60
        content: list[dict[str, Any]] = [{"type": "text", "text": step.text}]
        for path in step.pictures:
            content.insert(0, picture_block((self.workspace.root / path).read_bytes()))
        return self._message("user", content)

    def _answered(self, step: Answered) -> Iterator[dict[str, Any]]:
        self.replies += 1
        content: list[dict[str, Any]] = []
        if step.thinking:
            content.append({"type": "thinking", "thinking": step.thinking, "signature": signature(step.thinking)})
        if step.text:
            content.append({"type": "text", "text": step.text})
        ids = [identifier("toolu_", self.replies, i) for i in range(len(step.calls))]
        for (name, given), call_id in zip(step.calls, ids, strict=True):
            content.append({"type": "tool_use", "id": call_id, "name": name, "input": given})
        usage = self._usage(content)
        self.now += 2 + usage["output_tokens"] / 60
        reply = self._message("assistant", content)
        yield {
            **reply,
            "id": identifier("msg_", self.replies),
            "model": MODEL,
            "stop_reason": "tool_use" if step.calls else "end_turn",
            "usage": usage,
        }
        if step.calls:
            results = [self._result(*call, call_id) for call, call_id in zip(step.calls, ids, strict=True)]
            self.now += len(results)
            yield self._message("user", results)

    def _usage(self, content: list[dict[str, Any]]) -> dict[str, int]:
        warm = self.now - self.called < CACHE_LIFE
        read = self.cached if warm else 0
        fresh = self.prompt - read
        self.cached, self.called = self.prompt, self.now
        return {
            "input_tokens": min(fresh, 4),
            "cache_creation_input_tokens": max(fresh - 4, 0),
            "cache_read_input_tokens": read,
            "output_tokens": tokens(content),
        }

    def _result(self, name: str, given: dict[str, Any], call_id: str) -> dict[str, Any]:
        done = self.workspace.call(name, given)
        content: Any = done.text
        if done.picture:
            content = [{"type": "text", "text": done.text}, picture_block(done.picture)]
        block = {"type": "tool_result", "tool_use_id": call_id, "content": content}
        return {**block, "is_error": True} if done.is_error else block

    def _message(self, role: str, content: list[dict[str, Any]]) -> dict[str, Any]:
        self.prompt += tokens(content)
        stamp = datetime.fromtimestamp(self.now, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return {"role": role, "content": content, "timestamp": stamp}


def first_turns(steps: list[Step], turns: int) -> list[Step]:
    """The steps up to the end of so many user turns."""
    starts = [i for i, step in enumerate(steps) if isinstance(step, Asked)]
    return steps if turns >= len(starts) else steps[: starts[turns]]


def record(out: Path, folder: Path, turns: int) -> int:
    """Records the first turns of the session into a file, working in a folder; returns the number of lines."""
    system = (HERE / "script" / "system.md").read_text(encoding="utf-8").strip()
    steps = first_turns(load(HERE / "script"), turns)
    recording = Recording(Workspace(folder), system)
    lines = [{"role": "system", "content": system, "tools": SCHEMAS}, *recording.lines(steps)]
    text = "".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in lines)
    out.write_text(text, encoding="utf-8")
    return len(lines)


def main() -> None:
    options = argparse.ArgumentParser(description="Records the example session.")
    options.add_argument("--out", type=Path, default=HERE / "session.jsonl")
    options.add_argument("--turns", type=int, default=1000, help="stop after so many user turns")
    options.add_argument("--keep", type=Path, help="work in this folder and leave it")
    given = options.parse_args()
    if given.keep:
        print(record(given.out, given.keep, given.turns), "lines")
        return
    with tempfile.TemporaryDirectory() as folder:
        print(record(given.out, Path(folder), given.turns), "lines")


if __name__ == "__main__":
    main()
