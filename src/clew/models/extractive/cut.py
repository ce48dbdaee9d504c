"""Shortens texts to so many tokens, at the end of a sentence where there is one."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

from clew.tokens import TokenCounter

MARK = "[…]"
"""Stands for what was cut out."""
BOTH_FROM = 120
"""Characters from which on a text is cut in the middle if asked: below, two scraps say less than one."""
LEAST = 12
"""Characters below which a piece of a text says nothing and is not worth its mark."""
CHARS_PER_TOKEN = 12
"""Characters looked at for each token of room: real texts have fewer in a token."""

_STOPS = (re.compile(r"[.!?](?=\s)|[。！？；\n]"), re.compile(r"[,;:](?=\s)|[，、：]"), re.compile(r"\s"))


def cut(text: str, room: int, cost: Callable[[str], int], *, both: bool = False) -> str:
    """The longest beginning of the text (with `both`, two thirds beginning and one third end) that
    costs at most `room` with its mark; "" when next to nothing fits."""
    low, high = 0, min(len(text), max(room, 0) * CHARS_PER_TOKEN)
    while low < high:
        middle = (low + high + 1) // 2
        if cost(_ends(text, middle, both=both)) <= room:
            low = middle
        else:
            high = middle - 1
    return _ends(text, low, both=both, tidy=True) if low >= LEAST else ""


def cut_to(text: str, max_tokens: int, counter: TokenCounter) -> str:
    """The text if it has at most `max_tokens`, else its beginning; one character at least."""
    if counter.text(text) <= max_tokens:
        return text
    short = text[: max(1, max_tokens * CHARS_PER_TOKEN)]
    while len(short) > 1 and counter.text(short + "…") > max_tokens:
        short = short[: len(short) * 9 // 10]
    return short + "…" if len(short) > 1 else short


def screen_width(text: str) -> int:
    """Columns of a text where wide characters take two."""
    return len(text) if text.isascii() else sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _ends(text: str, size: int, *, both: bool, tidy: bool = False) -> str:
    if size >= len(text):
        return text
    tail = size // 3 if both and size >= BOTH_FROM else 0
    head = size - tail
    if not tidy:
        return f"{text[:head]} {MARK} {text[len(text) - tail :]}" if tail else f"{text[:head]} {MARK}"
    before = text[: _stop(text, head)].rstrip()
    after = text[_start(text, len(text) - tail) :].lstrip() if tail else ""
    return f"{before} {MARK} {after}".rstrip()


def _stop(text: str, at: int) -> int:
    """The last good place to stop in the fifth of text[:at] before `at`; without any, between characters."""
    for stop in _STOPS:
        places = [m.end() for m in stop.finditer(text, at - at // 5, at)]
        if places:
            return places[-1]
    return _whole(text, at)


def _start(text: str, at: int) -> int:
    """The first good place to start in the fifth of text[at:] after `at`."""
    for stop in _STOPS:
        if found := stop.search(text, at, at + (len(text) - at) // 5):
            return found.end()
    return _whole(text, at)


def _whole(text: str, at: int) -> int:
    """`at`, or a place before it that splits no combined character."""
    while 0 < at < len(text) and (
        unicodedata.combining(text[at]) or text[at] in "\u200d\ufe0f" or text[at - 1] == "\u200d"
    ):
        at -= 1
    return at
