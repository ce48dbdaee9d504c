"""The tokeniser: what an index holds of a text, and what a query looks for.

A text becomes two lists of terms:

- `stream`: what stands in the text, in order, so that phrases can be found. Words are folded and
  stemmed; the parts of `user_id`, `src/main.py` or `v2.1-beta` are words of their own. A run of Chinese,
  Japanese, Korean (or Thai, …) text gives one term for each character: the character with the one
  after it, the last by itself. So two characters are one term, a longer run is a phrase, and a single
  character is the beginning of a term.
- `extra`: other names of what stands there. `user_id` and `user-id` are also `userid`; `getUserName` (in
  the stream as one word) is also `get`, `user` and `name`; `python3` is also `python`; `C++` (in the stream
  `c`) is also `c++`.

Linear in the length of the text, the same for every text on every machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from hashlib import blake2b
from itertools import pairwise
from typing import Literal, NamedTuple
from unicodedata import is_normalized, normalize

from clew.text.fold import LONGEST, folded, seen, stemmed
from clew.text.scripts import DENSE, EMOJI, HIDDEN, MARKS

_WORD = f"(?:[^\\W_{DENSE}][{MARKS}{HIDDEN}]*)+"
_JOINED = f"{_WORD}(?:(?:[.'’-]|__?){_WORD}|,[0-9]{{3}}(?![0-9]))*"
_CHUNK = re.compile(f"([{DENSE}][{DENSE}{HIDDEN}]*)|(?:(?<!\\w)[A-Za-z](?:\\+\\+|#)(?!\\w)|{_JOINED})|[{EMOJI}]")
"""A run of a dense script (group 1), words grown together, or an emoji."""

_PART = re.compile(f"{_WORD}(?:['’]{_WORD})*")
_THOUSANDS = re.compile(r"(?<=[0-9]),(?=[0-9]{3}(?![0-9]))")
_NUMBERS = re.compile(r"\d[._-]+\d")  # 3.14 is not 314
_CONTRACTION = re.compile(r"['’](?:s|S)$")
_APOSTROPHES = str.maketrans("", "", "'’")
_NUMBERED = re.compile("([A-Za-z]{2,})[0-9]+")
_HUMPS = re.compile("(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")

CACHED = 100_000
"""Distinct words whose terms are remembered, of at most `CACHED_LENGTH` characters each."""
CACHED_LENGTH = 100

Kind = Literal["word", "part", "whole"]
"""Where a term belongs: the stream has the words; parts (`user` in `getUserName`) and wholes (`userid`) are extra."""


class Terms(NamedTuple):
    """The terms of a text; see the module."""

    stream: list[str]
    extra: list[str]


class Span(NamedTuple):
    """A term and the characters of the text it stands for."""

    term: str
    start: int
    end: int
    kind: Kind


class Chunk(NamedTuple):
    """A stretch of a text that is read as one: a run of a dense script, words grown together, or an emoji."""

    text: str
    start: int
    dense: bool

    def spans(self) -> list[Span]:
        """Its terms, with offsets into the chunk."""
        if not self.dense:
            return _analysed(self.text)
        if not is_normalized("NFKC", self.text):
            return [Span(term, 0, len(self.text), "word") for term in _run(self.text)]
        places = [i for i, letter in enumerate(self.text) if seen(letter)]
        ends = [*places[1:], places[-1]]
        return [
            Span(term, start, end + 1, "word") for term, start, end in zip(_run(self.text), places, ends, strict=True)
        ]


def terms(text: str) -> Terms:
    """The terms of a text."""
    stream: list[str] = []
    extra: list[str] = []
    known = _known
    for match in _CHUNK.finditer(text):
        chunk = match[0]
        found = known.get(chunk)
        if found is None:
            if match.lastindex:
                stream += _run(chunk)
                continue
            found = _remembered(chunk)
        stream += found.stream
        if found.extra:
            extra += found.extra
    return Terms(stream, extra)


def chunks(text: str) -> Iterator[Chunk]:
    """The stretches of a text that have terms, in order."""
    for match in _CHUNK.finditer(text):
        yield Chunk(match[0], match.start(), match.lastindex is not None)


def spans(text: str) -> Iterator[Span]:
    """The terms of a text with the characters they stand for, in the order of the text."""
    for chunk in chunks(text):
        for term, start, end, kind in chunk.spans():
            yield Span(term, chunk.start + start, chunk.start + end, kind)


@cache
def fingerprint() -> str:
    """Names this tokeniser: differs when a change of rules, of Unicode's tables or of the stemmer changes what it
    gives. An index made by another tokeniser than the query's finds the wrong things and must be made again."""
    found = terms(_PROBE)
    return blake2b("\n".join((*found.stream, "", *found.extra)).encode(), digest_size=8).hexdigest()


_PROBE = """
The runners' universities were organising studies; it's Caroline's café, naïve ﬁnancial Straße ÅNGSTRÖM ½ ① ㎏.
getUserName HTTPServer user_id chat-send src/main.py node.js v2.1.3-beta 1,000,000 3.14 C++ C# a:b x@y.org __init__
Москва́ ёлка αθήνα مُحَمَّد אָלֶף hel\u00adlo 葛\U000e0100城 İstanbul Łódź python3
用FastAPI写的 数据库连接池 東京 データベース ﾃﾞｰﾀ 서울에서 ภาษาไทย हिन्दी Здравствуйте Ελλάδα 👍🏽 →
bought children generously relational happily dying skies news inning succeeded possibly conditional electricity
"""

_known: dict[str, Terms] = {}


def _remembered(chunk: str) -> Terms:
    found = _analysed(chunk)
    result = Terms([s.term for s in found if s.kind == "word"], [s.term for s in found if s.kind != "word"])
    if len(chunk) <= CACHED_LENGTH:
        if len(_known) >= CACHED:
            _known.clear()
        _known[chunk] = result
    return result


def _run(chunk: str) -> list[str]:
    """The terms of a run of a dense script."""
    chunk = seen(chunk)
    if not is_normalized("NFKC", chunk):
        chunk = "".join(normalize("NFKC", chunk).split())
    return [a + b for a, b in zip(chunk, [*chunk[1:], ""], strict=True)]


def _analysed(chunk: str) -> list[Span]:
    """The terms of words grown together, or of an emoji."""
    if chunk[-1] in "+#":
        return [Span(chunk[0].lower(), 0, 1, "word"), Span(chunk.lower(), 0, len(chunk), "whole")]
    if "," in chunk:
        plain = _analysed(_THOUSANDS.sub("", chunk))
        return [Span(term, 0, len(chunk), kind) for term, _, _, kind in plain]
    found: list[Span] = []
    names: list[str] = []
    parts = [(m[0], m.start()) for m in _PART.finditer(chunk)] or [(chunk, 0)]
    for part, start in parts:
        word = _CONTRACTION.sub("", part)
        names.append(folded(word.translate(_APOSTROPHES)))
        if names[-1]:
            found.append(Span(stemmed(names[-1]), start, start + len(word), "word"))
        found += [Span(stemmed(hump), start + i, start + j, "part") for hump, i, j in _humps(word)]
    if len(parts) > 1:
        whole = folded(chunk) if _NUMBERS.search(chunk) else stemmed("".join(names)[:LONGEST])
        found.append(Span(whole, 0, len(chunk), "whole"))
    return found


def _humps(word: str) -> Iterator[tuple[str, int, int]]:
    """The parts of a word in camel case, and the name before a number (`python3`), folded, with where they stand;
    single letters are no parts."""
    if numbered := _NUMBERED.fullmatch(word):
        yield numbered[1].lower()[:LONGEST], 0, numbered.end(1)
    if not word.isascii() or word.islower() or word.isupper() or word.istitle():
        return
    for i, j in pairwise((0, *(m.start() for m in _HUMPS.finditer(word)), len(word))):
        if 1 < j - i < len(word):
            yield word[i:j].lower()[:LONGEST], i, j
