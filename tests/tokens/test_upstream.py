"""The counters of upstream systems against numbers that the real code produced."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.messages import Image, Message, Opaque, Part, Text, Thinking, ToolCall, ToolResult, assistant, tool, user
from clew.tokens import Heuristic, TokenCounter
from clew.tokens.javascript import rewritten, stringify, units
from clew.tokens.upstream import Aider, Codex, Gemini, Hermes, OpenCode, Pi, QitOS, Tutorial, Vibe

PICTURE = Image(data="A" * 8_000, media_type="image/png")


def said(*parts: Part) -> Message:
    return Message("assistant", parts)


# Pi, `estimateTokens`: message, count by 0.73.1, count by 1.6.0.
PI = [
    (user(""), 0, 0),
    (user("abcd"), 1, 1),
    (user("abcde"), 2, 2),
    (user("你好世界"), 1, 1),
    (user("😀"), 1, 1),
    (user("look", PICTURE), 1, 1201),
    (
        said(
            Thinking("ttttttttt"), Text("xxx"), ToolCall("1", "bash", '{"command": "ls -la", "n": [1, 2, {"k": null}]}')
        ),
        15,
        15,
    ),
    (Message("tool", (ToolResult("1", (Text("12345678"), PICTURE)),)), 1202, 1202),
    (user("pwd", "/root\n"), 3, 3),
]


@pytest.mark.parametrize(("message", "old", "new"), PI)
def test_pi(message: Message, old: int, new: int) -> None:
    assert Pi("0.73.1").message(message) == old
    assert Pi("1.6").message(message) == new


def encrypted(n: int) -> Message:
    return said(Thinking("", signature="A" * n))


# Codex at ba2fb483: items of a history and their tokens.
CODEX = [
    (user("hello"), 21),
    (assistant("你好，世界"), 25),
    (user("Here is the screenshot", Image(url="data:image/png;base64," + "A" * 1_000)), 1883),
    (user("Here is the screenshot", Image(data="A" * 1_000, media_type="image/png")), 1883),
    (user(Image(url="https://example.com/foo.png")), 28),
    (encrypted(900), 7),
    (encrypted(866), 0),
    (encrypted(2_000), 213),
    (said(ToolCall("c1", "shell", '{"a":1}')), 20),
    (tool("c1", "out"), 16),
    (
        Message(
            "tool",
            (
                ToolResult(
                    "c2",
                    (Opaque("responses", {"type": "encrypted_content", "encrypted_content": "A" * 1_868}),),
                ),
            ),
        ),
        290,
    ),
]


@pytest.mark.parametrize(("message", "tokens"), CODEX)
def test_codex(message: Message, tokens: int) -> None:
    assert Codex().message(message) == tokens


def test_codex_counts_the_items_of_a_message_one_by_one() -> None:
    message = said(Thinking("", signature="A" * 900), ToolCall("c1", "shell", '{"a":1}'))
    assert Codex().message(message) == 7 + 20


# Gemini CLI 0.61.0: parts, tokens at 4 and at 3 characters per token.
GEMINI = [
    ((), 0, 0),
    ((Text(""),), 0, 0),
    ((Text("a"),), 0, 0),
    ((Text("abc"),), 0, 1),
    ((Text("abcdef"),), 1, 1),
    ((Text("abcdefghi"),), 2, 3),
    ((Text("x" * 30),), 7, 10),
    ((Text("x" * 300),), 75, 99),
    ((Text("The quick brown fox jumps over the lazy dog."),), 11, 14),
    ((Text("上下文管理比简单压缩精巧得多"),), 21, 21),
    ((Text("😀"),), 3, 3),
    ((Text("👩‍👩‍👧‍👦"),), 16, 16),
    ((Text("Bug 修复: naïve café ☕"),), 11, 12),
    ((Text("a" * 100_000),), 25_000, 33_333),
    ((Text("a" * 100_001),), 25_000, 33_333),
    ((Text("字" * 100_000),), 150_000, 150_000),
    ((Text("字" * 100_001),), 25_000, 33_333),
    ((ToolCall("c1", "read_file", '{"file_path": "src/main.py", "start": 1}'),), 23, 30),
    ((ToolResult("c1", (Text("hello world"),), name="read_file"),), 8, 11),
    ((ToolResult("c1", (Text("字" * 1_000),), name="读"),), 253, 338),
    ((Image(data="A" * 100_000, media_type="image/png"),), 3_000, 3_000),
    ((Opaque("gemini", {"fileData": {"mimeType": "application/pdf", "fileUri": "gs://b/x.pdf"}}),), 25_800, 25_800),
    ((Text("a"), Text("a"), Text("a"), Text("a")), 1, 1),
    ((Text("b" * 301),), 75, 100),
]


@pytest.mark.parametrize(("parts", "four", "three"), GEMINI)
def test_gemini(parts: tuple[Part, ...], four: int, three: int) -> None:
    assert Gemini(4).message(Message("user", parts)) == four
    assert Gemini(3).message(Message("user", parts)) == three


def test_gemini_counts_pictures_inside_results() -> None:
    plain = Message("tool", (ToolResult("c1", (Text("hello world"),), name="read_file"),))
    shown = Message("tool", (ToolResult("c1", (Text("hello world"), PICTURE), name="read_file"),))
    assert Gemini().message(shown) - Gemini().message(plain) == 3_000


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("abc", 1), ("x" * 8, 2), ("一" * 396, 99)])
def test_qitos(text: str, tokens: int) -> None:
    assert QitOS().text(text) == QitOS().message(user(text)) == tokens


def test_hermes() -> None:
    assert Hermes().message(user("x" * 42)) == 20
    assert Hermes().message(user(PICTURE)) == 1_610
    call = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"a": 1}'}}
    assert Hermes().message(said(Text("ok"), ToolCall("c1", "bash", '{"a": 1}'))) == 10 + len(str(call)) // 4
    assert Hermes().message(said(Text("ok"), Thinking("t" * 40))) == 20


def test_the_others() -> None:
    assert [OpenCode().text("x" * n) for n in (1, 2, 5, 6)] == [0, 1, 1, 2]
    assert OpenCode().message(user("hi")) == round(len('{"role":"user","content":[{"type":"text","text":"hi"}]}') / 4)
    assert [Vibe().text("字" * n) for n in (0, 1, 4, 5)] == [0, 1, 1, 2]
    assert Vibe().message(tool("c1", "abcde")) == 2
    assert Tutorial().text("abcde") == 2
    assert Tutorial().message(user("hello")) == len("user: hello") // 2
    four = Aider(Heuristic()).message(user("你好世界"))
    assert four == Heuristic().text('{"role": "user", "content": "\\u4f60\\u597d\\u4e16\\u754c"}')
    assert four > 4 * Heuristic().text("你好世界")


UPSTREAM: list[TokenCounter] = [
    Pi("0.73.1"),
    Pi("1.6"),
    QitOS(),
    Codex(),
    Gemini(3),
    Gemini(4),
    OpenCode(),
    Hermes(),
    Vibe(),
    Tutorial(),
]


@given(st.text(st.characters(exclude_categories=()), max_size=100))
def test_longer_texts_never_count_less(text: str) -> None:
    for counter in UPSTREAM:
        assert 0 <= counter.text(text) <= counter.text(text + "ab")


# Number and string forms as Node 20 writes them.
@pytest.mark.parametrize(
    ("python", "javascript"),
    [
        ('{"a": 1.0, "b": [true, null, "é\\n"]}', '{"a":1,"b":[true,null,"é\\n"]}'),
        ("1e-7", "1e-7"),
        ("1.5e-05", "0.000015"),
        ("-2.5e-06", "-0.0000025"),
        ("1e16", "10000000000000000"),
        ("123456789012345680000", "123456789012345680000"),
        ("9007199254740993", "9007199254740992"),
        ("1.2345e+22", "1.2345e+22"),
        ("-0.0", "0"),
        ("1e999", "null"),
        ('"\\ud800"', '"\\ud800"'),
        ('{"broken": ', '{"broken": '),
    ],
)
def test_json_as_javascript_writes_it(python: str, javascript: str) -> None:
    assert rewritten(python) == javascript


@given(st.text(st.characters(exclude_categories=())))
def test_units_are_utf_16(text: str) -> None:
    assert units(text) == sum(2 if c > "\uffff" else 1 for c in text)


def test_an_integer_too_large_for_a_double() -> None:
    assert stringify(10**400) == "null"
