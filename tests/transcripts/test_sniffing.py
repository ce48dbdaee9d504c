"""Telling a file's format from its beginning."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from clew.errors import BadPayload, UnknownName
from clew.transcripts import FORMATS, recording, sniff
from clew.transcripts.lines import LONGEST
from clew.transcripts.sniffing import PROBE
from transcripts.scribe import Claude, Json, Pi, jsonl, say
from transcripts.test_dumps import CHAT, CLAUDE, ITEMS


def claude() -> bytes:
    log = Claude()
    log.user("u", "hi")
    return log.data()


def pi(linear: bool) -> bytes:
    log = Pi(linear=linear)
    log.user("u", "hi")
    return log.data()


SUMMARY: Json = {"type": "summary", "summary": "x", "leafUuid": "y"}
RUNS = [{"task_id": 0, "traj": CHAT}]


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (claude(), "claude-code"),
        (jsonl(SUMMARY) + claude(), "claude-code"),
        (b"\xef\xbb\xbf" + claude(), "claude-code"),
        (b"broken\n\0\0\n" + claude(), "claude-code"),
        (claude()[:-40] + b"\n" + claude(), "claude-code"),
        (pi(linear=False), "pi"),
        (pi(linear=True), "pi"),
        (pi(linear=False).partition(b"\n")[2], "pi"),
        (jsonl(*CHAT), "openai"),
        (json.dumps(CHAT).encode(), "openai"),
        (json.dumps(RUNS, indent=2).encode(), "openai"),
        (jsonl(*RUNS, *RUNS), "openai"),
        (json.dumps({"messages": CHAT, "response": {}}).encode(), "openai"),
        (json.dumps([{"role": "user", "content": "hi"}]).encode(), "openai"),
        (json.dumps(CLAUDE).encode(), "anthropic"),
        (jsonl(*CLAUDE), "anthropic"),
        (json.dumps({"system": "x", "messages": [CHAT[1]]}, indent=4).encode(), "anthropic"),
        (jsonl({"system": "x", "messages": [CHAT[1]]}, {"messages": [CHAT[1]]}), "anthropic"),
        (json.dumps(ITEMS).encode(), "responses"),
        (json.dumps({"items": ITEMS}).encode(), "responses"),
        (jsonl(*ITEMS), "responses"),
        (json.dumps(CHAT * 3000).encode(), "openai"),
    ],
)
def test_each_format_is_known_by_its_beginning(tmp_path: Path, data: bytes, name: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(data)
    assert sniff(path) == name
    tape = recording(path)
    assert tape.messages
    assert tape.format == name


@pytest.mark.parametrize(
    "data",
    [
        b"# aider chat started at 2025-01-01\n\n#### hello\n",
        b'{"timestamp":"t","type":"session_meta","payload":{"id":"x"}}\n',
        b'{"a":1}',
        b"[1,2,3]",
        b'"text"',
        b"\x89PNG\r\n\x1a\n" + b"\xff" * 100,
        b"{" * 100_000,
        json.dumps({"info": {}, "messages": [{"info": {"role": "user"}, "parts": [say("x")]}]}).encode(),
    ],
)
def test_what_is_no_known_format_is_refused_with_the_formats_there_are(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(data)
    with pytest.raises(UnknownName) as error:
        sniff(path)
    assert all(name in str(error.value) for name in FORMATS)


@pytest.mark.parametrize("data", [b"", b"\n\n  \n", b"\0\0\0", b"\xef\xbb\xbf"])
def test_an_empty_file_is_an_error_of_its_own(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(data)
    with pytest.raises(BadPayload, match="is empty"):
        recording(path)


def test_a_file_that_cannot_be_opened_says_why(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="No such file"):
        sniff(tmp_path / "nowhere")
    with pytest.raises(UnknownName, match="folder"):
        sniff(tmp_path)
    with pytest.raises(UnknownName, match="no file name"):
        sniff("a\0b")
    with pytest.raises(UnknownName, match="claude-code"):
        recording(tmp_path, format="claude")


def test_sniffing_reads_a_bounded_beginning(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * PROBE + b"\n" + b"x" * PROBE + b"\n" + claude())
    with pytest.raises(UnknownName):
        sniff(path)


@pytest.mark.parametrize("size", [PROBE + 10, LONGEST + 10])
@pytest.mark.parametrize("ending", [b"\n", b""])
def test_a_first_line_longer_than_the_probe(tmp_path: Path, size: int, ending: bytes) -> None:
    """A picture in the first message, for one; a line that is too long to be read at all is passed over."""
    path = tmp_path / "t"
    path.write_bytes(jsonl({"role": "user", "content": "x" * size}) + jsonl(*CLAUDE) + ending)
    assert sniff(path) == "anthropic"
    (path := tmp_path / "u").write_bytes(jsonl({"role": "user", "content": "x" * (PROBE + 1)}).strip() + ending)
    assert sniff(path) == "openai"


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf16_is_read_as_what_it_says(tmp_path: Path, encoding: str) -> None:
    (path := tmp_path / "t").write_bytes(
        ("\ufeff" + jsonl({"role": "user", "content": "修复测试"}).decode()).encode(encoding)
    )
    tape = recording(path)
    assert [m.text for m in tape.messages] == ["修复测试"]
    assert tape.damage == ()


def test_a_pipe_is_refused_and_nobody_waits_for_its_writer(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UnknownName, match="is a pipe"):
        sniff(tmp_path / "pipe")
