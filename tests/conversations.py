"""Conversations for property tests: valid ones, and ones broken the way real logs are broken.

Texts are drawn small and grown by repetition, so that messages of 20,000 characters stay cheap to
draw and shrink well.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st
from msgspec.structs import replace

from clew.messages import Image, Message, Part, Text, Thinking, ToolCall, ToolResult, Usage

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
"""A PNG of one pixel, base64."""

PHRASES = (
    "ok",
    "Fix the failing test in tests/test_parser.py, and do not touch the public API.",
    "请把配置文件里的超时改成三十秒，然后重新运行测试。",
    "設定ファイルを読み込んで、エラーの原因を調べてください。",
    "설정 파일을 고치고 테스트를 다시 실행해 주세요.",
    "def area(w: int, h: int) -> int:\n    return w * h\n",
    '{"status": "error", "code": 404, "detail": "no such file"}',
    "Traceback (most recent call last):\n  File \"a.py\", line 3, in <module>\nKeyError: 'x'",
    "$ pytest -q\n1 failed, 41 passed in 3.20s\n",
    "naïve café — “quoted” 😀 𝔘𝔫𝔦 e\u0301 \u200b|",
    "src/clew/messages.py:12: error: Incompatible types [assignment]",
)

ARGUMENTS = (
    "{}",
    '{"path": "src/area.py"}',
    '{ "command" : "ls -la",\n  "timeout": 30 }',
    '{"查询": "日本語", "deep": {"a": [1, {"b": null}]}}',
    '{"n": 1.50, "text": "\\u00fc\\n", "flag": true}',
)

TOOL_NAMES = ("read_file", "bash", "edit", "search-code", "web_fetch")


_SEEDS = st.sampled_from(PHRASES) | st.text(st.characters(codec="utf-8"), min_size=1, max_size=30)
_REPEATS = st.sampled_from((1, 1, 1, 1, 3, 20, 200, 2_000))


@st.composite
def texts(draw: st.DrawFn, max_size: int = 20_000) -> str:
    """A text with something visible in it, of at most `max_size` characters, now and then that long."""
    seed, repeats = draw(_SEEDS), draw(_REPEATS)
    if not seed.strip():
        seed += "."
    text = "\n".join(f"{i} {seed}" for i in range(repeats)) if repeats > 1 else seed
    text = text[:max_size]
    return text if text.strip() else "."


def images() -> st.SearchStrategy[Image]:
    """An image, inline or by address."""
    return st.sampled_from(
        (
            Image(data=PIXEL, media_type="image/png"),
            Image(data=PIXEL, media_type="image/jpeg"),
            Image(url="https://example.com/shot.png"),
        )
    )


def arguments(max_size: int = 20_000) -> st.SearchStrategy[str]:
    """Tool call arguments: the text of a JSON object, as models write it."""
    return st.sampled_from(ARGUMENTS) | texts(max_size // 2).map(
        lambda t: json.dumps({"content": t}, ensure_ascii=False)
    )


@st.composite
def conversations(
    draw: st.DrawFn,
    *,
    max_turns: int = 4,
    max_rounds: int = 3,
    max_calls: int = 3,
    max_text: int = 20_000,
    system: bool = True,
    images_too: bool = True,
    thinking: bool = True,
    usage: bool = False,
) -> list[Message]:
    """A valid conversation of up to `max_turns` turns with up to `max_rounds` rounds of calls each.

    It may begin with a system message and ends with the assistant, with tool results or with the
    user. Calls come in parallel, with all results right after them, in one tool message or in one
    per call, in any order; results may be errors, empty, long, or hold images. With `usage`,
    assistant messages carry what a provider might have reported.
    """
    out: list[Message] = []
    count = 0
    some_text, some_arguments = texts(max_text), arguments(max_text)

    def reply(*parts: Part) -> Message:
        found: list[Part] = []
        if thinking and draw(st.integers(0, 3)) == 0:
            found.append(Thinking(draw(some_text), draw(st.sampled_from(("", "c2lnbmF0dXJl")))))
        tokens = st.integers(0, 50_000)
        reported = Usage(draw(tokens), draw(tokens), draw(tokens), draw(tokens)) if usage else None
        return Message("assistant", (*found, *parts), reported)

    if system and draw(st.booleans()):
        out.append(Message("system", (Text(draw(some_text)),)))
    for _ in range(draw(st.integers(1, max_turns))):
        asked: list[Part] = [Text(draw(some_text)) for _ in range(draw(st.sampled_from((1, 1, 1, 2))))]
        if images_too and draw(st.integers(0, 4)) == 0:
            asked.insert(draw(st.integers(0, len(asked))), draw(images()))
        out.append(Message("user", tuple(asked)))
        for _ in range(draw(st.integers(0, max_rounds))):
            calls = []
            for _ in range(draw(st.integers(1, max_calls))):
                count += 1
                calls.append(ToolCall(f"call_{count}", draw(st.sampled_from(TOOL_NAMES)), draw(some_arguments)))
            said = (Text(draw(some_text)),) if draw(st.booleans()) else ()
            out.append(reply(*said, *calls))
            results = [draw(_results(call, max_text, images_too)) for call in draw(st.permutations(calls))]
            if draw(st.booleans()):
                out.append(Message("tool", tuple(results)))
            else:
                out.extend(Message("tool", (r,)) for r in results)
        if draw(st.integers(0, 4)):
            out.append(reply(Text(draw(some_text))))
    return out


@st.composite
def _results(draw: st.DrawFn, call: ToolCall, max_text: int, images_too: bool) -> ToolResult:
    content: tuple[Text | Image, ...] = (Text(draw(texts(max_text))),)
    kind = draw(st.integers(0, 9))
    if kind == 0:
        content = ()
    elif kind == 1:
        content = (Text(""),)
    elif kind == 2 and images_too:
        content = (*content, draw(images()))
    named = call.name if draw(st.booleans()) else ""
    return ToolResult(call.id, content, draw(st.booleans()), named)


@st.composite
def broken_conversations(draw: st.DrawFn, *, max_breaks: int = 4, **options: Any) -> list[Message]:
    """A conversation with one to `max_breaks` of the faults of `FAULTS`; `options` as for `conversations`."""
    out = draw(conversations(**options))
    for _ in range(draw(st.integers(1, max_breaks))):
        name = draw(st.sampled_from(sorted(FAULTS)))
        out = FAULTS[name](draw, out)
    return out


def _pick(draw: st.DrawFn, messages: list[Message], role: str) -> int | None:
    found = [i for i, m in enumerate(messages) if m.role == role and m.parts]
    return draw(st.sampled_from(found)) if found else None


def _missing_result(draw: st.DrawFn, messages: list[Message]) -> list[Message]:
    """A call whose result never came."""
    i = _pick(draw, messages, "tool")
    if i is None:
        return [*messages, Message("assistant", (ToolCall("call_lost", "bash", "{}"),))]
    rest = messages[i].parts[1:]
    kept = [replace(messages[i], parts=rest)] if rest else []
    return [*messages[:i], *kept, *messages[i + 1 :]]


def _orphan_result(draw: st.DrawFn, messages: list[Message]) -> list[Message]:
    """A result without its call, somewhere."""
    i = draw(st.integers(0, len(messages)))
    return [*messages[:i], Message("tool", (ToolResult("call_orphan", (Text("nobody asked"),)),)), *messages[i:]]


def _doubled_result(draw: st.DrawFn, messages: list[Message]) -> list[Message]:
    """The same result twice, in one message or in two."""
    i = _pick(draw, messages, "tool")
    if i is None:
        return messages
    if draw(st.booleans()):
        return [*messages[: i + 1], *messages[i:]]
    doubled = replace(messages[i], parts=(*messages[i].parts, messages[i].parts[0]))
    return [*messages[:i], doubled, *messages[i + 1 :]]


def _late_result(draw: st.DrawFn, messages: list[Message]) -> list[Message]:
    """A result that comes some messages after its round."""
    i = _pick(draw, messages, "tool")
    if i is None:
        return messages
    rest = [*messages[:i], *messages[i + 1 :]]
    j = min(len(rest), i + draw(st.integers(1, 4)))
    return [*rest[:j], messages[i], *rest[j:]]


def _interleaved_user(draw: st.DrawFn, messages: list[Message]) -> list[Message]:
    """A user message between a call and its result."""
    i = _pick(draw, messages, "tool")
    if i is None:
        return messages
    return [*messages[:i], Message("user", (Text("wait, 等一下"),)), *messages[i:]]


def _empty_message(draw: st.DrawFn, messages: list[Message]) -> list[Message]:
    """A message without content."""
    i = draw(st.integers(0, len(messages)))
    parts = draw(st.sampled_from(((), (Text(""),), (Text(" \n\t"),), (Text(""), Text("\u3000")))))
    role = draw(st.sampled_from(("user", "assistant", "system", "tool")))
    return [*messages[:i], Message(role, parts if role != "tool" else ()), *messages[i:]]


def _leading_assistant(draw: st.DrawFn, messages: list[Message]) -> list[Message]:
    """The assistant speaks first."""
    i = next((i for i, m in enumerate(messages) if m.role != "system"), len(messages))
    return [*messages[:i], Message("assistant", (Text(draw(texts(200))),)), *messages[i:]]


def _reused_id(draw: st.DrawFn, messages: list[Message]) -> list[Message]:
    """Every call of the conversation has the same id, as some gateways make them."""

    def same(part: Part) -> Part:
        if isinstance(part, ToolCall):
            return replace(part, id="call_0")
        return replace(part, call_id="call_0") if isinstance(part, ToolResult) else part

    return [replace(m, parts=tuple(same(p) for p in m.parts)) for m in messages]


def _broken_arguments(draw: st.DrawFn, messages: list[Message]) -> list[Message]:
    """Arguments that are not a JSON object: cut off, not JSON, or empty."""
    bad = draw(st.sampled_from(('{"path": "a', "", "[1, 2]", "null", "rm -rf", '"text"')))
    i = next((i for i, m in enumerate(messages) if m.calls), None)
    if i is None:
        return messages
    parts = tuple(replace(p, arguments=bad) if isinstance(p, ToolCall) else p for p in messages[i].parts)
    return [*messages[:i], replace(messages[i], parts=parts), *messages[i + 1 :]]


def _late_system(draw: st.DrawFn, messages: list[Message]) -> list[Message]:
    """A system message in the middle."""
    i = draw(st.integers(0, len(messages)))
    return [*messages[:i], Message("system", (Text("The time is 12:00."),)), *messages[i:]]


FAULTS: dict[str, Callable[[st.DrawFn, list[Message]], list[Message]]] = {
    "missing result": _missing_result,
    "orphan result": _orphan_result,
    "doubled result": _doubled_result,
    "late result": _late_result,
    "interleaved user": _interleaved_user,
    "empty message": _empty_message,
    "leading assistant": _leading_assistant,
    "reused id": _reused_id,
    "broken arguments": _broken_arguments,
    "late system": _late_system,
}
"""What can be wrong with a log."""
