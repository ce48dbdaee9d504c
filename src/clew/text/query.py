"""What a query is. Every node is a value; `str` writes it as one would type it."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct


class Word(Struct, frozen=True, tag=True):
    """Something typed without spaces: a word, `user_id`, `src/main.py`, `数据库连接池`."""

    text: str

    def __str__(self) -> str:
        return self.text


class Prefix(Struct, frozen=True, tag=True):
    """Words that begin so."""

    text: str

    def __str__(self) -> str:
        return f"{self.text}*"


class Phrase(Struct, frozen=True, tag=True):
    """Words that follow each other."""

    text: str

    def __str__(self) -> str:
        return f'"{self.text}"'


class Any(Struct, frozen=True, tag=True):
    """Words side by side: what has more of them, or rarer ones, is better; one is enough.

    Pieces of its words are enough, too (two characters of a Chinese word), and words like "the" do not
    count beside others. No parts at all match nothing.
    """

    parts: tuple[Query, ...] = ()

    def __str__(self) -> str:
        return " ".join(_inside(part, (Any, All, Either, Without)) for part in self.parts)


class Either(Struct, frozen=True, tag=True):
    """One part at least: a OR b."""

    parts: tuple[Query, ...]

    def __str__(self) -> str:
        return " OR ".join(_inside(part, (Either,)) for part in self.parts)


class All(Struct, frozen=True, tag=True):
    """Every part: a AND b."""

    parts: tuple[Query, ...]

    def __str__(self) -> str:
        return " AND ".join(_inside(part, (All, Either)) for part in self.parts)


class Without(Struct, frozen=True, tag=True):
    """What `part` finds, without what one of `excluded` finds: a -b."""

    part: Query
    excluded: tuple[Query, ...]

    def __str__(self) -> str:
        positive = str(self.part) if isinstance(self.part, Any) else _inside(self.part, (All, Either, Without))
        return " ".join((positive, *("-" + _inside(part, (Any, All, Either, Without)) for part in self.excluded)))


class Within(Struct, frozen=True, tag=True):
    """What `part` finds in one field: title:word."""

    field: str
    part: Query

    def __str__(self) -> str:
        return f"{self.field}:{_inside(self.part, (Any, All, Either, Without, Within))}"


Query = Word | Prefix | Phrase | Any | Either | All | Without | Within

NOTHING = Any()
"""What a query without a word means: it finds nothing."""


def _inside(part: Query, grouped: Sequence[type]) -> str:
    return f"({part})" if isinstance(part, tuple(grouped)) else str(part)
