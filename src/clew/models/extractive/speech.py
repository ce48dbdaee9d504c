"""The sentences people and agents wrote, without what is not theirs."""

from __future__ import annotations

import re
from collections.abc import Iterator

_FENCE = re.compile(r"^(```|~~~).*?(?:^\1\s*$|\Z)", re.DOTALL | re.MULTILINE)
_HARNESS = re.compile(
    r"<(system-reminder|environment_context|user_instructions|INSTRUCTIONS|local-command-\w+|command-message|command-name"
    r"|ide_opened_file|ide_selection|session_context)\b[^>]*>.*?</\1>",
    re.DOTALL,
)
_TAGS = re.compile(r"</?command-args>")
_BREAK = re.compile(r"(?<=[.!?])\s+(?=[\"'(\[`A-Z0-9\u3040-\u9fff\uac00-\ud7af])|(?<=[。！？；])(?![」』）])\s*")
_BULLET = re.compile(r"^\s*(?:[-*•·>#]+|\(?\d{1,2}[.)])\s+")
_CONTROL = re.compile(
    "\x1b\\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f\x85\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)

MAX_SENTENCE = 600
"""Longer ones, in characters, are no sentence a person wrote: minified code, data, logs."""
ENDS = 12_000
"""Characters at either end of a message that are read for sentences."""


_CLAUSE = re.compile(r"[,;:](?=\s)|\s[-–—]\s|[()]|[，、；：（）]")


def clauses(sentence: str) -> Iterator[str]:
    """The parts of a sentence between commas, colons, dashes and brackets."""
    for part in _CLAUSE.split(sentence):
        if part.strip():
            yield part.strip()


def plain(text: str) -> str:
    """The text without terminal escapes, control characters and lone surrogates."""
    if text.isprintable():
        return text
    return _CONTROL.sub(" ", text.replace("\r\n", "\n"))


def spoken(text: str) -> str:
    """What the user wrote of a user message: without the blocks a harness puts in."""
    if "<" in text:
        text = _TAGS.sub("", _HARNESS.sub("", text))
    return plain(text).strip()


def sentences(text: str) -> Iterator[str]:
    """The sentences of a text, in order, list marks taken off; code blocks are left out."""
    if len(text) > 2 * ENDS:
        text = text[:ENDS] + "\n" + text[-ENDS:]
    if "```" in text or "~~~" in text:
        text = _FENCE.sub("\n", text)
    for line in text.split("\n"):
        line = _BULLET.sub("", line.strip())
        for sentence in _BREAK.split(line):
            short = sentence.strip()
            if 3 < len(short) <= MAX_SENTENCE and any(c.isalpha() for c in short):
                yield short
