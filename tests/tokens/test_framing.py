"""Every part of a message counts."""

from __future__ import annotations

import base64
import struct
from itertools import pairwise

import pytest

from clew.messages import Image, Message, Opaque, Text, Thinking, ToolCall, ToolResult, assistant, tool, user
from clew.tokens import Exact, Heuristic, TokenCounter
from clew.tokens.framing import BLOB_LIMIT, FRAME, TOOL_FRAME
from clew.tokens.images import LEAST_IMAGE, UNKNOWN_IMAGE, image_size, image_tokens

COUNTERS: list[TokenCounter] = [Heuristic(), Exact("o200k_base")]


def png(width: int, height: int) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height)


def gif(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HHBBB", width, height, 0, 0, 0)


def jpeg(width: int, height: int) -> bytes:
    exif = b"\xff\xe1" + struct.pack(">H", 60_002) + b"\0" * 60_000
    table = b"\xff\xc4" + struct.pack(">H", 5) + b"abc"
    frame = b"\xff\xc2" + struct.pack(">HBHHB", 11, 8, height, width, 1) + b"\0" * 3
    return b"\xff\xd8" + exif + b"\xff" + table + frame


def webp(kind: bytes, body: bytes) -> bytes:
    return b"RIFF\0\0\0\0WEBP" + kind + struct.pack("<I", len(body)) + body + b"\0" * 12


def webp_lossy(width: int, height: int) -> bytes:
    return webp(b"VP8 ", b"\0\0\0\x9d\x01\x2a" + struct.pack("<HH", width, height))


def webp_lossless(width: int, height: int) -> bytes:
    return webp(b"VP8L", b"\x2f" + struct.pack("<I", (width - 1) | (height - 1) << 14))


def webp_extended(width: int, height: int) -> bytes:
    return webp(b"VP8X", b"\0" * 4 + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little"))


def inline(data: bytes) -> Image:
    return Image(data=base64.b64encode(data).decode(), media_type="image/png")


@pytest.mark.parametrize("write", [png, gif, jpeg, webp_lossy, webp_lossless, webp_extended])
def test_sizes_are_read_from_every_format(write: object) -> None:
    data = write(640, 480)  # type: ignore[operator]
    assert image_size(inline(data)) == (640, 480)
    assert image_size(Image(url="data:image/png;base64," + base64.b64encode(data).decode())) == (640, 480)
    assert image_tokens(inline(data)) == 410


@pytest.mark.parametrize("write", [png, gif, jpeg, webp_lossy, webp_lossless, webp_extended])
def test_cut_files_have_no_size_and_do_no_harm(write: object) -> None:
    data = write(640, 480)  # type: ignore[operator]
    for end in (0, 1, 3, 11, 15, 20, 23):
        assert image_size(inline(data[:end])) is None or end >= 10


@pytest.mark.parametrize("data", ["", "!!!", "QQ==", "A", "日本", "\ud800", "/9j/", "A" * 1_000_001])
def test_broken_pictures_count_as_pictures_of_unknown_size(data: str) -> None:
    assert image_tokens(Image(data=data)) == UNKNOWN_IMAGE


def test_pictures_have_a_least_and_a_most() -> None:
    assert image_tokens(inline(png(1, 1))) == LEAST_IMAGE
    assert image_tokens(inline(png(9_000, 9_000))) == UNKNOWN_IMAGE
    assert image_tokens(Image(url="https://example.org/cat.png")) == UNKNOWN_IMAGE


@pytest.mark.parametrize("counter", COUNTERS)
def test_every_part_adds_to_the_count(counter: TokenCounter) -> None:
    parts = [
        Text("Look at this."),
        Image(url="https://example.org/cat.png"),
        ToolCall("c1", "read_file", '{"path": "a.py"}'),
        Thinking("Which file is it?"),
        Thinking("", signature="s" * 4_000),
        Opaque("anthropic", {"type": "search_result", "title": "Cats"}),
    ]
    counts = [counter.message(Message("assistant", tuple(parts[:n]))) for n in range(len(parts) + 1)]
    assert counts[0] == FRAME
    assert all(more > less for less, more in pairwise(counts))


@pytest.mark.parametrize("counter", COUNTERS)
def test_results_count_with_all_they_hold(counter: TokenCounter) -> None:
    text = counter.text("done")
    assert counter.message(tool("c1", "done")) == FRAME + text
    picture = Message("tool", (ToolResult("c1", (Text("done"), inline(png(640, 480)))),))
    assert counter.message(picture) == FRAME + text + 410
    two = Message("tool", (ToolResult("c1", (Text("done"),)), ToolResult("c2", (Text("done"),))))
    assert counter.message(two) == 2 * (FRAME + text)


@pytest.mark.parametrize("counter", COUNTERS)
def test_calls_count_name_and_arguments(counter: TokenCounter) -> None:
    call = assistant(ToolCall("c1", "bash", '{"command": "ls -la"}'))
    assert counter.message(call) == 2 * FRAME + counter.text("bash") + counter.text('{"command": "ls -la"}')


@pytest.mark.parametrize("counter", COUNTERS)
def test_tool_schemas_count(counter: TokenCounter) -> None:
    schema = {"name": "find", "description": "ファイルを探す", "parameters": {"type": "object"}}
    compact = '{"name":"find","description":"ファイルを探す","parameters":{"type":"object"}}'
    assert counter.tools(()) == 0
    assert counter.tools((schema, schema)) == 2 * (TOOL_FRAME + counter.text(compact))


def test_encoded_files_and_hidden_reasoning_count_by_what_they_stand_for() -> None:
    counter = Heuristic()
    hidden = Opaque("openai", {"type": "reasoning", "encrypted_content": "gA" * 1_000})
    assert 200 < counter.message(Message("assistant", (hidden,))) < 260
    file = Opaque("anthropic", {"type": "document", "source": {"data": "JVBERi0x" * 1_000_000}})
    assert BLOB_LIMIT < counter.message(Message("user", (file,))) < BLOB_LIMIT + 60
    assert counter.message(Message("assistant", (Thinking("", signature="short"),))) == FRAME


def test_framing_is_as_litellm_has_it() -> None:
    """LiteLLM 1.110 counts 9 tokens for this message to gpt-4o: three are for the reply to come."""
    assert Exact("o200k_base").message(user("hello world")) == 9 - 3
