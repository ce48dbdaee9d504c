"""encode∘decode and decode∘encode are identities, for every valid payload of every provider."""

from __future__ import annotations

import copy
import json
from types import ModuleType
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from tests.codecs import strategies

import provider_rules
from clew.codecs import anthropic, gemini, openai, responses
from clew.messages import Message
from recordings import RECORDINGS

CODECS: dict[str, ModuleType] = {"openai": openai, "responses": responses, "anthropic": anthropic, "gemini": gemini}


def round_trip(codec: ModuleType, payload: Any) -> list[Message]:
    """Decodes and asserts that both ways lead back, also by way of the log's JSON."""
    before = copy.deepcopy(payload)
    messages = codec.decode(payload)
    encoded = codec.encode(messages)
    assert encoded == before
    assert payload == before, "decoding changed the payload"
    assert codec.decode(encoded) == messages
    stored = msgspec.json.decode(msgspec.json.encode(messages), type=list[Message])
    assert codec.encode(stored) == before
    return messages


def broken_rules(payload: Any, provider: str) -> list[str]:
    """Violations, blocks that no checker can know aside."""
    return [v for v in provider_rules.violations(payload, provider) if "from_the_future" not in v]


@given(strategies.openai())
def test_openai(payload: Any) -> None:
    assert [v for v in broken_rules(payload, "openai") if "empty message" not in v] == []  # the API takes these
    round_trip(openai, payload)


@given(strategies.responses())
def test_responses(payload: Any) -> None:
    round_trip(responses, payload)


@given(strategies.anthropic())
def test_anthropic(payload: Any) -> None:
    assert broken_rules(payload, "anthropic") == []
    round_trip(anthropic, payload)


@given(strategies.gemini())
def test_gemini(payload: Any) -> None:
    assert broken_rules(payload, "gemini") == []
    round_trip(gemini, payload)


@given(strategies.anthropic())
def test_a_bare_list_of_anthropic_messages(payload: Any) -> None:
    assert anthropic.encode(anthropic.decode(payload["messages"])) == {"messages": payload["messages"]}


@given(strategies.gemini())
def test_a_bare_list_of_gemini_contents(payload: Any) -> None:
    assert gemini.encode(gemini.decode(payload["contents"])) == {"contents": payload["contents"]}


@given(st.data())
def test_decoding_message_by_message_gives_the_same_conversation(data: st.DataObject) -> None:
    """An agent loop appends messages as they come; ids of calls without one must still pair up."""
    payload = data.draw(strategies.gemini())
    together = gemini.decode(payload["contents"])
    one_by_one = [m for c in payload["contents"] for m in gemini.decode([c])]
    assert [m.role for m in one_by_one] == [m.role for m in together]
    assert gemini.encode(one_by_one) == {"contents": payload["contents"]}


def test_encoding_shares_nothing_with_the_messages() -> None:
    """Frameworks write into payloads (cache marks, say); the log must not change with them."""
    block = {"type": "document", "source": {"type": "text", "data": "d"}, "cache_control": {"type": "ephemeral"}}
    messages = anthropic.decode([{"role": "user", "content": [block]}])
    block["source"]["data"] = "changed"  # type: ignore[index]
    out = anthropic.encode(messages)
    out["messages"][0]["content"][0]["cache_control"]["type"] = "changed"
    clean = {"type": "document", "source": {"type": "text", "data": "d"}, "cache_control": {"type": "ephemeral"}}
    assert anthropic.encode(messages) == {"messages": [{"role": "user", "content": [clean]}]}


def test_recorded_payloads() -> None:
    for path in RECORDINGS.glob("openai-messages/*.json"):
        found = list(_payloads(json.loads(path.read_text("utf-8"))))
        assert found, path
        for payload in found:
            round_trip(responses if any("type" in m for m in payload) else openai, payload)


def _payloads(value: Any) -> Any:
    """The lists of messages or items anywhere in a recording."""
    if isinstance(value, list) and value and all(isinstance(m, dict) for m in value) and "role" in value[0]:
        yield value
    elif isinstance(value, list | dict):
        for v in value.values() if isinstance(value, dict) else value:
            yield from _payloads(v)
