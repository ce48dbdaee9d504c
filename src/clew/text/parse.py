"""From what a person types to a query. Nothing is a syntax error.

    rotate password        either word; both are better
    "rotate password"      the words in this order (also “ ”, 「 」, 『 』, « », ＂ ＂)
    dock*                  words that begin so
    a AND b   a && b       both
    a OR b    a || b       either, whole words
    a -b   a AND NOT b     a, without what has b
    title:word             in a field, if there is one of that name
    (a OR b) AND c         groups

Operators are upper-case or signs; their full-width forms count, too. NOT binds closest, then words side
by side, then AND, then OR. What makes no sense as an operator is left out or read as a word: a quote or
bracket without its partner, an operator with a side missing, `field:` for a field there is not, a query
that only excludes (what it excludes is looked for).
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple

from clew.text.query import NOTHING, All, Any, Either, Phrase, Prefix, Query, Within, Without, Word
from clew.text.tokenise import chunks

LONGEST = 10_000
"""Characters of a query in which operators are read. Of a longer text, so many of its beginning and of its end count:
it is a message or a document, and asks at one of the two."""

DEEPEST = 30
"""Groups inside groups that are followed; brackets further in are left out."""

_QUOTES = {'"': '"', "“": "”", "”": "”", "„": "“", "«": "»", "「": "」", "『": "』", "＂": "＂", "〝": "〞"}
_QUOTED = "|".join(f"{re.escape(a)}[^{re.escape(b)}]*{re.escape(b)}" for a, b in _QUOTES.items())
_ALL_QUOTES = "".join(_QUOTES) + "".join(_QUOTES.values())
_SPACE = f"\\s{re.escape(_ALL_QUOTES)}()（）"
_TOKEN = re.compile(
    f"(?P<quoted>{_QUOTED})"
    r"|(?P<open>[(（])"
    r"|(?P<close>[)）])"
    f"|(?P<minus>(?<![^{_SPACE}])[-－](?![-－{_SPACE}])|(?<![^{_SPACE}])[-－](?=[{re.escape(''.join(_QUOTES))}(（]))"
    f"|(?P<word>[^{_SPACE}]+)"
)
_OPERATORS = {"AND": "and", "&&": "and", "＆＆": "and", "OR": "or", "||": "or", "｜｜": "or", "NOT": "not"}
_STARS = "*＊"
_DASHES = "-－"
_COLON = re.compile("[:：]")


def parse(text: str, fields: Collection[str] = ()) -> Query:
    """The query that a text means; `fields` are the names that `name:word` may have.

    A text of more than `LONGEST` characters was not typed as a query: the words of its beginning and of its end are
    taken as they are.
    """
    if len(text) > LONGEST:
        return words(text if len(text) <= 2 * LONGEST else f"{text[:LONGEST]} {text[-LONGEST:]}")
    return _Reader(_tokens(text), frozenset(fields)).query()


def words(text: str) -> Query:
    """The words of a text, without any operator: for questions and messages, which are not written as queries."""
    return _any([Word(chunk) for chunk in text.split() if _says(chunk)])


class _Token(NamedTuple):
    kind: str
    text: str


def _tokens(text: str) -> list[_Token]:
    found = []
    for match in _TOKEN.finditer(text):
        kind, value = match.lastgroup or "", match[0]
        if kind == "word":
            kind = _OPERATORS.get(value, kind)
        found.append(_Token("not" if kind == "minus" else kind, value))
    return found


class _Reader:
    """Recursive descent: `query` is alternatives of conjunctions of sequences of items."""

    def __init__(self, tokens: list[_Token], fields: frozenset[str]) -> None:
        self._tokens = tokens
        self._fields = fields
        self._at = 0
        self._depth = 0

    def query(self) -> Query:
        parts = []
        while self._at < len(self._tokens):
            parts.append(self._alternatives())
            self._skip("close")  # ends a group that was never opened
        return _any([part for part in parts if part != NOTHING])

    def _alternatives(self) -> Query:
        parts = [self._conjunction()]
        while self._skip("or"):
            parts.append(self._conjunction())
        return _joined(Either, parts)

    def _conjunction(self) -> Query:
        wanted: list[Query] = []
        excluded: list[Query] = []
        while True:
            positive, negative = self._items()
            if positive:
                wanted.append(_without(_any(positive), negative))
            else:
                excluded += negative  # a AND NOT b
            if not self._skip("and"):
                break
        return _without(_joined(All, wanted), excluded) if wanted else _any(excluded)

    def _items(self) -> tuple[list[Query], list[Query]]:
        """The words and groups side by side that are wanted, and those that are excluded."""
        wanted: list[Query] = []
        excluded: list[Query] = []
        while self._kind() not in ("", "or", "and", "close"):
            negative = False
            while self._skip("not"):
                negative = True
            item = self._item()
            if item != NOTHING:
                (excluded if negative else wanted).append(item)
        return wanted, excluded

    def _item(self) -> Query:
        kind = self._kind()
        if kind not in ("quoted", "open", "word"):
            return NOTHING
        text = self._tokens[self._at].text
        self._at += 1
        if kind == "quoted":
            return _phrase(text[1:-1])
        if self._depth == DEEPEST:
            return _word(text)
        self._depth += 1
        found = self._group() if kind == "open" else self._word(text.lstrip(_STARS + _DASHES))
        self._depth -= 1
        return found

    def _group(self) -> Query:
        found = self._alternatives()
        self._skip("close")
        return found

    def _word(self, text: str) -> Query:
        colon = _COLON.search(text)
        if not colon or text[: colon.start()] not in self._fields:
            return _word(text)
        rest = text[colon.end() :]
        part = _word(rest) if rest else self._item()
        return NOTHING if part == NOTHING else Within(text[: colon.start()], part)

    def _kind(self) -> str:
        return self._tokens[self._at].kind if self._at < len(self._tokens) else ""

    def _skip(self, kind: str) -> bool:
        found = self._kind() == kind
        self._at += found
        return found


def _word(text: str) -> Query:
    bare = text.strip(_STARS + _DASHES)
    if not _says(bare):
        return NOTHING
    if text.endswith(tuple(_STARS)):
        return Prefix(bare)
    return Word(bare.lower() if bare in _OPERATORS else bare)


def _phrase(text: str) -> Query:
    return Phrase(" ".join(text.replace('"', " ").split())) if _says(text) else NOTHING


def _says(text: str) -> bool:
    """Whether there is anything in a text that can be looked for."""
    return next(chunks(text), None) is not None


def _any(parts: list[Query]) -> Query:
    return parts[0] if len(parts) == 1 else Any(tuple(parts))


def _joined(kind: type[Either] | type[All], parts: list[Query]) -> Query:
    parts = [part for part in parts if part != NOTHING]
    return kind(tuple(parts)) if len(parts) > 1 else _any(parts)


def _without(wanted: Query, excluded: list[Query]) -> Query:
    return Without(wanted, tuple(excluded)) if excluded else wanted
