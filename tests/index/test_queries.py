"""Queries in many scripts and with hostile syntax: what another product's search finds of them is found here.

The cases are Hermes's `search_messages` (SQLite FTS5 with a trigram index and a scan beside it): words, phrases,
operators, broken syntax, Chinese, Japanese and Korean. Much of it finds nothing there, because FTS5 takes it for a
syntax error which is swallowed. The expected hits are its own; those that only we find are in `MORE`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from clew.index import FullText, Row
from clew.text import highlights, parse
from clew.text.query import Without

OWN = Path(__file__).parents[1] / "golden" / "cases"
COMPONENT = "hermes_state.SessionDB.search_messages"

MORE = {
    "It's safe": 2,
    "src/main.py": 3,
    "#123": 3,
    "alice@example.com": 5,
    "50%": 4,
    "password?": 1,
    "docker AND AND vault": None,
    '"unbalanced docker': 6,
    "NEAR(docker vault)": 2,
    "content:docker": 6,
    "docker; DROP TABLE messages": 6,
    "--docker": 6,
    "Docker": 7,
    "量子计算": 12,
    "架构图": 18,
    "大别山%": 8,
    "昨晚 NOT 半夜": None,
}
"""A message that is found, by its id, where upstream finds less; None: nothing is to be found."""


def _cases() -> list[dict[str, Any]]:
    folder = Path(os.environ.get("CLEW_GOLDEN") or OWN) / "hermes"
    found = [json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("*.json"))]
    return [case for case in found if case["component"] == COMPONENT and "queries" in case["input"]]


class Messages:
    """The messages of a case as a log, with what its tool calls and pictures say."""

    def __init__(self, case: dict[str, Any]) -> None:
        said = [message for session in case["input"]["sessions"] for message in session["messages"]]
        self.all = [Row(n, str(n), ({"text": _text(message)},)) for n, message in enumerate(said, 1)]

    def rows(self, namespace: str, after: int) -> Iterable[Row]:
        return self.all[after:]


def _text(message: dict[str, Any]) -> str:
    content = message["content"]
    parts = [content] if isinstance(content, str) else [part.get("text", "") for part in content]
    calls = [call["function"]["arguments"] for call in message.get("tool_calls", ())]
    return "\n".join([*parts, *calls])


@pytest.fixture(scope="module", params=["unread", "read"])
def read(request: pytest.FixtureRequest) -> bool:
    return bool(request.param == "read")


def test_what_others_find_is_found(tmp_path: Path, read: bool) -> None:
    for n, case in enumerate(_cases()):
        messages = Messages(case)
        index = FullText(tmp_path / str(n), messages, {"text": 1.0})
        if read:
            index.catch_up()
        for row in case["output"]["results"]:
            query = parse(row["query"])
            found = {int(hit.id) for hit in index.search(query, len(messages.all))}
            without = isinstance(query, Without) and row["route"] == ["like"]  # upstream's scan does not know NOT
            assert without or set(row["hit_ids"]) <= found, row["query"]


def test_what_others_miss_is_found(tmp_path: Path, read: bool) -> None:
    (case,) = [json.loads((OWN / "hermes" / "search_multilingual_and_hostile.json").read_text("utf-8"))]
    messages = Messages(case)
    index = FullText(tmp_path, messages, {"text": 1.0})
    if read:
        index.catch_up()
    for typed, expected in MORE.items():
        found = [int(hit.id) for hit in index.search(parse(typed), len(messages.all))]
        assert expected in found if expected else not found, typed
    best = [
        index.search(parse(typed), 1)[0].id for typed in ("大别山项目", "C++", "chat-send v2.1.3-beta", "서울 출장")
    ]
    assert best == ["7", "5", "4", "15"]
    assert [index.search(parse(typed)) for typed in ("", "*", "。")] == [[], [], []]
    text = messages.all[6].pieces[0]["text"]
    assert [text[a:b] for a, b in highlights(text, parse("docker 大别山"))] == ["Docker", "大别山"]
