"""The example session is what its README says, and recording it again gives the same."""

from __future__ import annotations

import base64
import json
import re
import struct
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest

from clew.codecs import anthropic
from clew.transcripts import recording, sniff
from provider_rules import violations

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
SESSION = EXAMPLES / "session.jsonl"
LINES: list[dict[str, Any]] = [json.loads(line) for line in SESSION.read_text(encoding="utf-8").splitlines()]
MESSAGES = LINES[1:]


def blocks(kind: str, messages: list[dict[str, Any]] = MESSAGES) -> list[dict[str, Any]]:
    return [b for m in messages for b in m["content"] if b["type"] == kind]


def asked() -> list[str]:
    """What the user wrote, turn by turn."""
    return [b["text"] for m in MESSAGES if m["role"] == "user" for b in m["content"] if b["type"] == "text"]


def test_every_provider_rule_holds():
    head, *messages = LINES
    assert head["role"] == "system"
    bare = [{"role": m["role"], "content": m["content"]} for m in messages]
    assert violations({"system": head["content"], "messages": bare}, "anthropic") == []
    assert anthropic.encode(anthropic.decode({"system": head["content"], "messages": bare})) == {
        "system": head["content"],
        "messages": bare,
    }


def test_it_is_imported_whole():
    assert sniff(SESSION) == "anthropic"
    read = recording(SESSION)
    assert read.damage == ()
    assert sum(m.role == "assistant" for m in read.messages) == sum(m["role"] == "assistant" for m in MESSAGES)
    assert all(m.usage for m in read.messages if m.role == "assistant")


def test_roles_alternate_and_every_call_has_its_result():
    assert [m["role"] for m in MESSAGES[::2]] == ["user"] * ((len(MESSAGES) + 1) // 2)
    assert {m["role"] for m in MESSAGES[1::2]} == {"assistant"}
    for reply, answer in zip(MESSAGES[1::2], MESSAGES[2::2], strict=False):
        calls = [b["id"] for b in blocks("tool_use", [reply])]
        assert calls == [b["tool_use_id"] for b in blocks("tool_result", [answer])]
        assert (reply["stop_reason"] == "tool_use") is bool(calls)


def test_there_is_as_much_of_everything_as_promised():
    assert len(MESSAGES) >= 400
    assert len(asked()) >= 20
    assert sum(len(blocks("tool_use", [m])) > 1 for m in MESSAGES) >= 50
    assert len(blocks("thinking")) >= 40
    assert all(b["signature"] for b in blocks("thinking"))
    results = blocks("tool_result")
    assert sum(b.get("is_error", False) for b in results) >= 12
    assert sum(len(b["content"]) > 8_000 for b in results) >= 3
    assert {b["name"] for b in blocks("tool_use")} == {t["name"] for t in LINES[0]["tools"]}
    pictures = [b for r in results if isinstance(r["content"], list) for b in r["content"] if b["type"] == "image"]
    assert len(pictures) >= 2
    assert len(blocks("image")) >= 2
    assert SESSION.stat().st_size < 2_000_000


@pytest.mark.parametrize("script", ["[\u3040-\u30ff]", "[\uac00-\ud7af]", "[\u4e00-\u9fff]"])
def test_users_and_agent_speak_chinese_japanese_korean(script):
    said = [b["text"] for m in MESSAGES if m["role"] == "assistant" for b in blocks("text", [m])]
    assert sum(len(re.findall(script, text)) > 20 for text in asked()) >= 2
    assert sum(len(re.findall(script, text)) > 20 for text in said) >= 2


def test_usage_grows_to_a_full_window():
    prompts = [
        u["input_tokens"] + u["cache_read_input_tokens"] + u["cache_creation_input_tokens"]
        for u in (m["usage"] for m in MESSAGES if m["role"] == "assistant")
    ]
    assert prompts == sorted(prompts)
    assert 150_000 < prompts[-1] < 200_000
    assert sum(m.get("usage", {}).get("cache_read_input_tokens", 1) == 0 for m in MESSAGES) >= 5
    times = [m["timestamp"] for m in MESSAGES]
    assert times == sorted(times)


def test_what_was_said_early_matters_late():
    first, rest = asked()[0], json.dumps(MESSAGES[-140:], ensure_ascii=False)
    for fact in ("8473", "money.py", "data/fixtures/", "8080"):
        assert fact in first
        assert fact in rest


def test_no_machine_and_no_secret_shows():
    text = SESSION.read_text(encoding="utf-8")
    assert set(re.findall(r"(?<![\w.])/(?:tmp|root|home|Users|work|var|opt|private)/[\w.-]+", text)) <= {
        "/home/dev",
        "/tmp/pytest-of-dev",
    }
    assert not re.search(
        r"\b(?:sk|ghp|xox[bp]|AKIA)[-_A-Za-z0-9]{16,}|BEGIN [A-Z ]*PRIVATE KEY|https?://(?!127\.0\.0\.1|\{)", text
    )
    assert set(re.findall(r"[\w.]+@(?!pytest)[\w.]+\.\w+", text)) <= {"dev@example.com"}


def pixels(data: str) -> bytes:
    """What a PNG shows: size and raw rows, whatever compressed it."""
    png = base64.b64decode(data)
    size = struct.unpack(">I", png[png.index(b"IDAT") - 4 :][:4])[0]
    start = png.index(b"IDAT") + 4
    return png[16:24] + zlib.decompress(png[start : start + size])


def comparable(value: Any, *, texts: bool) -> Any:
    """A line for comparing: pictures by their pixels; without `texts` also no text of a result, and
    nothing that is counted from one."""
    if isinstance(value, list):
        return [comparable(v, texts=texts) for v in value]
    if not isinstance(value, dict):
        return value
    if value.get("type") == "base64":
        return pixels(value["data"])
    left = {} if texts else {"usage", "timestamp"} | ({"content"} if value.get("type") == "tool_result" else set())
    return {k: comparable(v, texts=texts) for k, v in value.items() if k not in left}


def test_recording_again_gives_the_same(tmp_path):
    again = tmp_path / "session.jsonl"
    subprocess.run([sys.executable, str(EXAMPLES / "record.py"), "--turns", "4", "--out", str(again)], check=True)
    lines = [json.loads(line) for line in again.read_text(encoding="utf-8").splitlines()]
    assert len(lines) > 80
    recorded_with = sys.version_info[:2] == (3, 11)  # other versions word some errors differently
    same = [comparable(line, texts=recorded_with) for line in LINES[: len(lines)]]
    assert [comparable(line, texts=recorded_with) for line in lines] == same
