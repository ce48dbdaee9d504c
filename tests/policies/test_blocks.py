"""Triggers, cuts, and the transforms of single messages."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.messages import Image, Message, Opaque, Text, Thinking, ToolCall, ToolResult, assistant, system, tool, user
from clew.policies import cuts, triggers
from clew.policies.shrink import arguments, head_tail, shrink, without_media
from clew.policies.transforms import mask, results, rewrite
from clew.sessions.entries import Entry, Said
from clew.sessions.media import media_size
from clew.sessions.rules import violations
from clew.sessions.view import View, project
from clew.tokens import Heuristic
from conversations import broken_conversations, conversations, texts

COUNTER = Heuristic()


def view_of(messages: list[Message]) -> View:
    return project([Entry(i + 1, i or None, Said(m)) for i, m in enumerate(messages)], COUNTER).view


TALK = [
    system("s"),
    user("one"),
    assistant("a", ToolCall("1", "bash"), ToolCall("2", "bash")),
    tool("1", "r1"),
    tool("2", "r2"),
    assistant("b"),
    user("two"),
    assistant(ToolCall("3", "bash")),
    tool("3", "r3"),
]


def test_limits_and_comparisons() -> None:
    view = view_of(TALK)
    assert triggers.reserve(200_000, 16_384) == 183_616
    assert triggers.above(view, view.tokens) is None
    assert triggers.above(view, view.tokens - 1).limit == view.tokens - 1


def test_where_rounds_turns_and_safe_cuts_are() -> None:
    view = view_of(TALK)
    assert cuts.rounds(view) == [2, 5, 7]
    assert cuts.turns(view) == [1, 6]
    assert [cuts.safe_before(view, i) for i in range(10)] == [1, 1, 2, 2, 2, 5, 6, 7, 7, 9]


def test_a_cut_by_tokens_keeps_what_fits() -> None:
    view = view_of(TALK)
    tail = view.weigh(view.items[6:])
    assert cuts.keep_tokens(view, tail) == 6
    assert cuts.keep_tokens(view, tail - 1) == 7
    assert cuts.keep_tokens(view, 0) == 9
    assert cuts.keep_tokens(view, 10**6) == 1


@given(
    st.one_of(conversations(max_turns=2, max_text=300), broken_conversations(max_turns=2, max_text=300)),
    st.integers(-2, 60),
)
def test_every_cut_is_safe(messages: list[Message], n: int) -> None:
    view = view_of(messages)
    safe = view.safe_cuts()
    for index in (
        cuts.keep_tokens(view, n * 20),
        cuts.safe_before(view, max(n, 0)),
    ):
        assert index in safe
        assert index >= view.head() or view.head() == len(view.items)


def test_head_and_tail_as_mini_swe_agent_cuts_observations() -> None:
    text = "h" * 5_000 + "m" * 2_345 + "t" * 5_000
    assert head_tail(text, 10_000, 0.5) == "h" * 5_000 + "\n[… 2,345 characters left out …]\n" + "t" * 5_000
    assert head_tail(text[:10_000], 10_000, 0.5) == text[:10_000]


@given(texts(), st.integers(0, 3_000))
def test_head_tail_never_grows_and_counts_what_is_gone(text: str, keep: int) -> None:
    short = head_tail(text, keep)
    assert len(short) <= len(text)
    if short != text:
        first, _, rest = short.rpartition("[… ")
        gone, _, last = rest.partition(" characters left out …]")
        kept = len(first.removesuffix("\n")) + len(last.removeprefix("\n"))
        assert kept + int(gone.replace(",", "")) in range(len(text) - 2, len(text) + 1)
        assert text.startswith(first.removesuffix("\n").removesuffix("\n"))


def test_a_character_keeps_its_marks() -> None:
    family = "👨\u200d👩\u200d👧" * 300
    short = head_tail(family, 100)
    head = short.split("\n")[0]
    assert not head.endswith("\u200d")
    assert not short.split("\n")[-1].startswith(("\u200d",))
    accents = head_tail("e\u0301" * 500, 101)
    assert not accents.split("\n")[-1].startswith("\u0301")


@given(conversations(max_turns=2), st.sampled_from((0, 30, 200, 1_000)))
def test_shrunk_messages_fit_if_framing_allows_and_stay_valid(messages: list[Message], limit: int) -> None:
    for message in messages:
        short = shrink(message, limit, COUNTER)
        assert COUNTER.message(short) <= max(limit, COUNTER.message(message))
        assert [c.id for c in short.calls] == [c.id for c in message.calls]
        assert [r.call_id for r in short.results] == [r.call_id for r in message.results]
        for call in short.calls:
            assert isinstance(json.loads(call.arguments), dict)
        if short != message:
            assert not [p for p in short.parts if isinstance(p, Thinking)]
        assert not short.blank


@pytest.mark.parametrize(
    "text",
    [
        '{"a": "' + "x" * 500 + '"}',
        "[" + "1," * 400 + "2]",
        "not json " * 90,
        '{"a": ' * 300,
        '{"n": NaN, "x": "' + "y" * 400,
    ],
)
def test_shortened_arguments_are_an_object(text: str) -> None:
    short = arguments(text, 100)
    assert len(short) < len(text)
    assert isinstance(json.loads(short), dict)
    assert short.encode("utf-8")


def test_media_become_notes() -> None:
    pdf = Opaque("anthropic", {"type": "document", "source": {"type": "base64", "data": "A" * 800}})
    audio = Opaque("gemini", {"inlineData": {"mimeType": "audio/wav", "data": "A" * 400}})
    article = Opaque("anthropic", {"type": "document", "source": {"type": "text", "data": "Plain words."}})
    shot = Image(data="A" * 4_000, media_type="image/png")
    web = [Image(url="https://example.com/a,b.png"), Image("data:image/gif;base64," + "A" * 40)]
    message = user("look", shot, *web, pdf, audio, article)
    assert without_media(message) == user(
        "look",
        "[image left out: image/png, 3,000 bytes]",
        "[image left out: https://example.com/a,b.png]",
        "[image left out: data:image/gif, 46 bytes]",
        "[document left out: 600 bytes]",
        "[inlineData left out: 300 bytes]",
        "[document left out]",
    )
    result = Message("tool", (ToolResult("1", (Text("t"), shot, pdf)),))
    assert [p.text for p in without_media(result).results[0].content][1:] == [
        "[image left out: image/png, 3,000 bytes]",
        "[document left out: 600 bytes]",
    ]


def test_provider_blocks_of_a_reply_stay_unless_one_holds_media() -> None:
    """A server tool's call and result, and the thinking before them, are accepted whole or not at all."""
    asked = Opaque("anthropic", {"type": "server_tool_use", "id": "s1", "name": "web_fetch", "input": {}})
    found = Opaque("anthropic", {"type": "web_search_tool_result", "content": [{"encrypted_content": "A" * 900}]})
    page = Opaque("anthropic", {"type": "web_fetch_tool_result", "content": {"source": {"data": "A" * 400}}})
    light = assistant(Thinking("hm", "sig"), "reading", asked, found, "done")
    assert without_media(light) is light
    heavy = assistant(Thinking("hm", "sig"), "reading", asked, page, "done", ToolCall("c1", "bash"))
    assert without_media(heavy) == assistant(
        "reading",
        "[server_tool_use left out]",
        "[web_fetch_tool_result left out: 300 bytes]",
        "done",
        ToolCall("c1", "bash"),
    )


@pytest.mark.parametrize(
    ("data", "size"),
    [
        ({"type": "document", "source": {"type": "base64", "data": "A" * 1_000}}, 1_000),
        ({"type": "document", "source": {"type": "text", "data": "Plain words, not base64."}}, 0),
        ({"type": "document", "source": {"type": "url", "url": "https://example.com/a.pdf"}}, 0),
        ({"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,AAAA"}}, 32),
        ({"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}, 4),
        ({"type": "image_generation_call", "id": "ig_1", "result": "A" * 400}, 400),
        ({"inlineData": {"mimeType": "application/pdf", "data": "A" * 400}}, 400),
        ({"type": "compaction", "encrypted_content": "A" * 400}, 0),
    ],
)
def test_files_in_provider_blocks_count_as_media(data: dict[str, Any], size: int) -> None:
    block = Opaque("any", data)
    assert media_size(user("look", block)) == size
    assert media_size(Message("tool", (ToolResult("1", (Text("t"), block, block)),))) == 2 * size
    assert view_of([user("look", block, Image(data="AAAA"))]).media_bytes == size + 4


def test_masks_count_what_they_hide_and_keep_short_results() -> None:
    message = Message("tool", (ToolResult("1", (Text("x" * 12_345), Image(url="u")), True, "bash"), ToolResult("2")))
    masked = mask(message)
    assert masked.results[0].text == "[old result left out: 12,345 characters and 1 other part]"
    assert masked.results[0].is_error
    assert masked.results[1] == message.results[1]


def test_rewriting_stops_when_there_is_room() -> None:
    messages = [user("u")]
    for n in range(5):
        messages += [assistant(ToolCall(f"{n}", "bash")), tool(f"{n}", "word " * 400)]
    view = view_of(messages)
    where = results(view, 0, len(view.items))
    assert len(rewrite(view, where, mask, "mask")) == 5
    edits = rewrite(view, where, mask, "mask", room=view.count - 500)
    assert len(edits) == 2
    done = view.edited(edits)
    assert done.count <= view.count - 500
    assert violations(done.messages) == []
    assert rewrite(done, where[:2], mask, "mask") == [], "masks are not masked again"
