"""OpenClaw's texts for indexes (2026.4.29 and 2026.9.6): chunks of Markdown, transcripts as lines."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

Json = dict[str, Any]

_WIDE = re.compile("[\u2e80-\u9fff\ua000-\ua4ff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef\U00020000-\U0002fa1f]")
WRAP = 800
"""Code units of a line of a transcript, without who says it."""

SILENT = ("NO_REPLY", "HEARTBEAT_OK")


class Units:
    """A text as JavaScript counts it: in UTF-16 code units."""

    def __init__(self, text: str) -> None:
        self._bytes = text.encode("utf-16-le", "surrogatepass")

    def __len__(self) -> int:
        return len(self._bytes) // 2

    def part(self, start: int, end: int) -> str:
        return self._bytes[2 * start : 2 * end].decode("utf-16-le", "surrogatepass")

    def steps(self, size: int) -> Iterator[str]:
        """Parts of `size` code units, never cut inside a pair of surrogates."""
        start = 0
        while start < len(self):
            end = min(start + size, len(self))
            if end < len(self) and 0xD8 <= self._bytes[2 * end - 1] < 0xDC and end - start > 1:
                end -= 1
            yield self.part(start, end)
            start = end


def weight(text: str) -> int:
    """Characters, a wide one counted as four."""
    wide = _WIDE.findall(text)
    beyond = sum(ord(c) > 0xFFFF for c in wide)
    return len(Units(text)) - beyond + 3 * len(wide)


Segment = tuple[str, int]
"""A line or a part of one, and the line's number."""


def chunk(given: Json) -> list[Json]:
    """Markdown by lines, in chunks of so many tokens that overlap by so many."""
    tokens, overlap = given["chunking"]["tokens"], given["chunking"]["overlap"]
    limit, carried = max(32, tokens * 4), max(0, overlap * 4)
    chunks: list[Json] = []
    held: list[Segment] = []
    fresh = False

    def flush() -> None:
        text = "\n".join(part for part, _ in held)
        chunks.append({"startLine": held[0][1], "endLine": held[-1][1], "text": text})

    for segment in _segments(given["content"], limit, tokens):
        size = weight(segment[0]) + 1
        if held and sum(weight(part) + 1 for part, _ in held) + size > limit:
            if fresh:
                flush()
                held = _tail(held, carried)
            if sum(weight(part) + 1 for part, _ in held) + size > limit:
                held = []
            fresh = False
        held.append(segment)
        fresh = True
    if held and fresh:
        flush()
    return chunks


def _segments(content: str, limit: int, tokens: int) -> Iterator[Segment]:
    for number, line in enumerate(content.split("\n"), 1):
        if not line:
            yield "", number
        for part in Units(line).steps(limit):
            for piece in Units(part).steps(tokens) if weight(part) > limit else (part,):
                yield piece, number


def _tail(held: list[Segment], carried: int) -> list[Segment]:
    """The last segments that fit into the overlap; of one that does not, its end."""
    kept: list[Segment] = []
    room = carried
    for text, number in reversed(held):
        size = weight(text) + 1
        if size > room:
            if not kept:
                while text and weight(text) + 1 > room:
                    text = text[1:]
                return [(text, number)] if text else []
            break
        kept.insert(0, (text, number))
        room -= size
    return kept


def session(given: Json) -> Json:
    """A transcript as indexable lines, each with the line of the file it comes from."""
    lines: list[str] = []
    numbers: list[int] = []
    stamps: list[int] = []
    for number, raw in enumerate(given["lines"], 1):
        try:
            entry = json.loads(raw)
        except ValueError:
            continue
        message = entry.get("message") if isinstance(entry, dict) and entry.get("type") == "message" else None
        if not isinstance(message, dict) or message.get("role") not in ("user", "assistant"):
            continue
        text = _spoken(message.get("content"))
        if not text or (message["role"] == "assistant" and text in SILENT):
            continue
        for part in _wrapped(text):
            lines.append(f"{message['role'].capitalize()}: {part}")
            numbers.append(number)
            stamps.append(_stamp(entry, message))
    return {
        "path": f"sessions/{given['name']}",
        "content": "\n".join(lines),
        "lineMap": numbers,
        "messageTimestampsMs": stamps,
    }


def _spoken(content: Any) -> str:
    if isinstance(content, list):
        texts = [block.get("text") for block in content if isinstance(block, dict) and block.get("type") == "text"]
        content = " ".join(" ".join(text.split()) for text in texts if isinstance(text, str) and text.strip())
    return " ".join(content.split()) if isinstance(content, str) else ""


def _wrapped(text: str) -> Iterator[str]:
    units = Units(text)
    while len(units) > WRAP:
        space = units.part(0, WRAP + 1).rfind(" ")
        end = len(Units(units.part(0, WRAP + 1)[:space])) if space > 0 else WRAP
        first, *_ = Units(units.part(0, end)).steps(end)
        yield first.rstrip()
        units = Units(units.part(len(Units(first)), len(units)).lstrip())
    if len(units):
        yield units.part(0, len(units))


def _stamp(entry: Json, message: Json) -> int:
    """Milliseconds since 1970: of the entry, else of the message, else 0."""
    for given in (entry.get("timestamp"), message.get("timestamp")):
        if isinstance(given, int | float):
            return int(given)
        if isinstance(given, str):
            try:
                return round(datetime.fromisoformat(given).timestamp() * 1000)
            except ValueError:
                continue
    return 0


# -- what memory-lancedb captures, and which messages ask about the past

_CAPTURED = re.compile(
    r"remember|prefer|\bradši\b|nechci|preferuji|zapamatuj|pamatuj|rozhodli|budeme používat"
    r"|\+\d{10,}|[\w.-]+@[\w.-]+\.\w+"
    r"|můj\s+\w+\s+je|je\s+můj|my\s+\w+\s+is|is\s+my|i (?:like|hate|love|want|need)|always|never|important"
    r"|记住|记下|我(?:喜欢|偏好|讨厌|爱|想要|需要)|我的.+是|决定|总是|从不|重要",
    re.IGNORECASE,
)
_INJECTED = re.compile(
    r"ignore (?:all|any|previous|above|prior) instructions|do not follow (?:the )?(?:system|developer)|system prompt"
    r"|developer message|<\s*/?\s*(?:system|assistant|developer|tool|function|relevant-memories)\b"
    r"|\b(?:run|execute|call|invoke)\b.{0,40}\b(?:tool|command)\b",
    re.IGNORECASE,
)
_EMOJI = re.compile("[\U0001f300-\U0001f9ff]")
_CATEGORIES = (
    ("preference", re.compile(r"prefer|radši|like|love|hate|want")),
    ("decision", re.compile(r"rozhodli|decided|will use|budeme")),
    ("entity", re.compile(r"\+\d{10,}|@[\w.-]+\.\w+|is called|jmenuje se")),
    ("fact", re.compile(r"is|are|has|have|je|má|jsou")),
)


def capture(given: Json) -> list[Json]:
    """Which messages are remembered, and as what."""
    return [_captured(text, given["maxChars"]) for text in given["texts"]]


def _captured(text: str, most: int) -> Json:
    low, injected = text.lower(), bool(_INJECTED.search(" ".join(text.split())))
    category = next((name for name, pattern in _CATEGORIES if pattern.search(low)), "other")
    refused = (
        not 10 <= len(Units(text)) <= most
        or "<relevant-memories>" in text
        or (text.startswith("<") and "</" in text)
        or ("**" in text and "\n-" in text)
        or len(_EMOJI.findall(text)) > 3
        or injected
    )
    return {"capture": not refused and bool(_CAPTURED.search(text)), "category": category, "injection": injected}


_PAST = re.compile(
    r"\b(?:remember(?:ed)?|recall|remind me (?:what|who|when|where|why|how|which|of)|previous(?:ly)?|earlier|last"
    r" (?:time|week|month|year|night|session|conversation|monday|tuesday|wednesday|thursday|friday|saturday|sunday)"
    r"|yesterday|used to|(?:days?|weeks?|months?|years?) ago"
    r"|(?:did|have|had) (?:we|i|you)\b|we (?:decided|agreed|discussed|talked)|you (?:said|told|mentioned|suggested)"
    r"|i (?:said|told|mentioned))\b"
    r"|(?:recuerdas?|recuerdo|acuerdas|anteriormente|la última vez|ayer|hace .{1,20} (?:días?|semanas?|meses|años?)"
    r"|dijiste|dijimos|hablamos|decidimos)"
    r"|记得|上次|之前|以前|昨天|前天|上周|上个?月|去年|曾经|说过|聊过|讨论过|提到过|决定过"
    r"|覚えて|前回|以前|昨日|先週|先月|去年|言って(?:い)?た|話した|決めた"
    r"|기억|지난|저번|이전에|어제|전에|말했|논의했|얘기했|결정했",
    re.IGNORECASE,
)
_COMING = re.compile(
    r"^(?:please\s+)?(?:can you\s+|could you\s+)?remember to\b|\bremember to\b|\bdon'?t forget to\b|\bremind me to\b"
    r"|记得(?:明天|后天|下周|待会|提醒|要|去|帮|给|把|晚上|早上)|(?:recuérdame|recuerda|acuérdate de) \w+r\b"
    r"|忘れないで|覚えておいて|기억해\s?(?:줘|두|둬)",
    re.IGNORECASE,
)


def intent(given: Json) -> list[bool]:
    return [_asks(message) for message in given["messages"]]


def _asks(message: str) -> bool:
    return _PAST.search(_COMING.sub(" ", message)) is not None


def escalate(given: Json) -> list[str]:
    """Whether the recall before a reply is run, or why not."""
    found = []
    for case in given["cases"]:
        if case["mode"] in ("off", "always"):
            found.append("mode-off" if case["mode"] == "off" else "recall")
        elif case["hasStrongLaneOneHit"]:
            found.append("strong-lane-one-hit")
        else:
            found.append("recall" if _asks(case["message"]) else "no-recall-intent")
    return found


CALLS: Mapping[str, Any] = {
    "chunk": chunk,
    "session": session,
    "capture": capture,
    "intent": intent,
    "escalate": escalate,
}
