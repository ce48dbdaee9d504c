"""What a query looks for, in terms: the form in which an index answers it, and in which a text is held against it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import islice

from msgspec import Struct

from clew.text.fold import folded, value_of
from clew.text.prefixes import stems
from clew.text.query import All, Any, Either, Phrase, Prefix, Query, Within, Without, Word
from clew.text.stopwords import PARTICLES, STOP_CHARACTERS, STOP_PAIRS, STOP_WORDS
from clew.text.tokenise import Terms, chunks, spans

_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff]")

LONGEST_RUN = 64
"""Terms of a phrase that are compared; what follows them is taken to follow."""


class Exact(Struct, frozen=True, tag=True):
    """A term."""

    term: str


class Starts(Struct, frozen=True, tag=True):
    """Terms that begin with `prefix`; `stems` are those of words that begin so although their stem does not."""

    prefix: str
    stems: tuple[str, ...] = ()


class Adjacent(Struct, frozen=True, tag=True):
    """Terms of the stream, each with its distance from the first."""

    items: tuple[tuple[int, Exact | Starts], ...]


class Tag(Struct, frozen=True, tag=True):
    """A value of a facet, in the form of `value_of`."""

    facet: str
    value: str


class Some(Struct, frozen=True, tag=True):
    """One part at least; none match nothing."""

    parts: tuple[Pattern, ...] = ()


class Every(Struct, frozen=True, tag=True):
    """Every part."""

    parts: tuple[Pattern, ...]


class But(Struct, frozen=True, tag=True):
    """What `part` matches and none of `excluded` does."""

    part: Pattern
    excluded: tuple[Pattern, ...]


class In(Struct, frozen=True, tag=True):
    """What `part` matches within one field."""

    field: str
    part: Pattern


Leaf = Exact | Starts | Adjacent
Pattern = Leaf | Tag | Some | Every | But | In


def pattern(query: Query, facets: Collection[str] = ()) -> Pattern:
    """What a query looks for. `name:word` with a name in `facets` asks for a value and not for a text.

    Beside other words, a word matches by its pieces (pairs of characters, parts of `user-id`, and
    `userid`) and stop words are left out; as an operand of AND, OR or NOT it is meant as a whole.
    """
    if isinstance(query, Word | Any):
        return _loose(query, facets)
    return _strict(query, facets)


def characters(query: Query) -> Pattern:
    """The single Chinese characters in which a question may meet a text that has no two of them in a row: 猫吃什么
    and 猫只吃鱼. All of them that say something are asked for; matches nothing for a query that has operators.
    """
    parts = query.parts if isinstance(query, Any) else (query,)
    if not all(isinstance(part, Word) for part in parts):
        return Some()
    found = [span.term[0] for part in parts for span in spans(str(part)) if _HAN.match(span.term)]
    wanted = tuple(Starts(one) for one in dict.fromkeys(found) if one not in STOP_CHARACTERS)
    return wanted[0] if len(wanted) == 1 else Every(wanted) if wanted else Some()


def leaves(pattern: Pattern, field: str = "") -> Iterator[tuple[str, Leaf]]:
    """What counts for the score, each with the field it is confined to ("" for none)."""
    if isinstance(pattern, Exact | Starts | Adjacent):
        yield field, pattern
    elif isinstance(pattern, Some | Every):
        for part in pattern.parts:
            yield from leaves(part, field)
    elif isinstance(pattern, But):
        yield from leaves(pattern.part, field)
    elif isinstance(pattern, In):
        yield from leaves(pattern.part, pattern.field)


def matches(pattern: Pattern, holds: Callable[[Leaf, str], object], facets: Mapping[str, str], field: str = "") -> bool:
    """Whether a text of several fields matches, where `holds` says if it has a leaf in a field ("" for any)."""
    if isinstance(pattern, Exact | Starts | Adjacent):
        return bool(holds(pattern, field))
    if isinstance(pattern, Tag):
        return facets.get(pattern.facet) == pattern.value
    if isinstance(pattern, Some):
        return any(matches(part, holds, facets, field) for part in pattern.parts)
    if isinstance(pattern, Every):
        return all(matches(part, holds, facets, field) for part in pattern.parts)
    if isinstance(pattern, But):
        unwanted = any(matches(part, holds, facets, field) for part in pattern.excluded)
        return not unwanted and matches(pattern.part, holds, facets, field)
    return matches(pattern.part, holds, facets, pattern.field)


def count(leaf: Leaf, terms: Terms) -> int:
    """How often a leaf occurs."""
    if isinstance(leaf, Exact):
        return terms.stream.count(leaf.term) + terms.extra.count(leaf.term)
    if isinstance(leaf, Starts):
        return sum(_is(leaf, term) for part in terms for term in part)
    return sum(1 for _ in places(leaf, terms.stream))


def places(leaf: Adjacent, stream: list[str]) -> Iterator[int]:
    """Where in a stream a run of terms begins."""
    (_, first), *rest = leaf.items
    last = leaf.items[-1][0]
    for at in range(len(stream) - last):
        if _is(first, stream[at]) and all(_is(item, stream[at + distance]) for distance, item in rest):
            yield at


def _is(item: Exact | Starts, term: str) -> bool:
    if isinstance(item, Exact):
        return term == item.term
    return term.startswith(item.prefix) or term in item.stems


# -- from a query


def _loose(query: Word | Any, facets: Collection[str]) -> Pattern:
    parts = query.parts if isinstance(query, Any) else (query,)
    shouted = all(part.text.isupper() for part in parts if isinstance(part, Word))
    found: dict[Pattern, bool] = {}
    for part in parts:
        if isinstance(part, Word):
            found.update(_pieces(part.text, emphasis=not shouted))
        else:
            found[pattern(part, facets)] = True
    strong = tuple(part for part, counts in found.items() if counts)
    return _some(strong or tuple(found))


def _pieces(text: str, *, emphasis: bool) -> Iterator[tuple[Leaf, bool]]:
    """The pieces of a word, each with whether it says something. With `emphasis`, capitals do: `IT`, `WHO`."""
    for chunk in chunks(text):
        spans = chunk.spans()
        if chunk.dense:
            terms = [span.term for span in spans]
            if len(terms) == 1:
                yield Starts(terms[0]), terms[0] not in PARTICLES
            for pair in terms[:-1]:
                yield Exact(pair), pair not in STOP_PAIRS and PARTICLES.isdisjoint(pair)
            continue
        for span in spans:
            word = chunk.text[span.start : span.end]
            if span.kind == "whole" or (span.kind == "word" and not chunk.text.endswith(("+", "#"))):
                plain = folded(word).replace("'", "").replace("’", "")
                stressed = emphasis and len(word) > 1 and word.isupper()
                yield Exact(span.term), stressed or plain not in STOP_WORDS


def _strict(query: Query, facets: Collection[str]) -> Pattern:
    if isinstance(query, Word):
        return _whole(query.text)
    if isinstance(query, Phrase):
        return _run(query.text)
    if isinstance(query, Prefix):
        return _run(query.text, open=True)
    if isinstance(query, Any):
        return _loose(query, facets)
    if isinstance(query, Either):
        return _some(tuple(_strict(part, facets) for part in query.parts))
    if isinstance(query, All):
        return Every(tuple(_strict(part, facets) for part in query.parts))
    if isinstance(query, Without):
        return But(pattern(query.part, facets), tuple(_strict(part, facets) for part in query.excluded))
    if query.field in facets:
        return _tagged(query.field, query.part)
    return In(query.field, pattern(query.part, facets))


def _tagged(facet: str, query: Query) -> Pattern:
    if isinstance(query, Word | Phrase | Prefix):
        return Tag(facet, value_of(query.text))
    if isinstance(query, Without):
        return But(_tagged(facet, query.part), tuple(_tagged(facet, part) for part in query.excluded))
    if isinstance(query, Within):
        return _tagged(query.field, query.part)
    return _some(tuple(_tagged(facet, part) for part in query.parts))


def _whole(text: str) -> Pattern:
    """A word as a whole: its terms in a row or, grown together, its other name."""
    found = list(islice(chunks(text), 2))
    whole = [Exact(s.term) for s in found[0].spans() if s.kind == "whole"] if len(found) == 1 else []
    if whole and whole[0].term.endswith(("+", "#")):
        return whole[0]
    return _some((*whole, _run(text)))


def _run(text: str, *, open: bool = False) -> Pattern:
    """The terms of a text in a row; with `open`, the last word may go on."""
    items: list[tuple[int, Exact | Starts]] = []
    at = 0
    last = ""
    for chunk in islice(chunks(text), LONGEST_RUN):
        spans = [span for span in chunk.spans() if span.kind == "word"]
        if chunk.dense and len(spans) == 1:
            items.append((at, Starts(spans[0].term)))
        else:
            items += [(at + i, Exact(span.term)) for i, span in enumerate(spans[:-1] if chunk.dense else spans)]
        at += len(spans)
        last = "" if chunk.dense else chunk.text[spans[-1].start : spans[-1].end] if spans else last
    if open and last and items:
        items[-1] = (items[-1][0], Starts(folded(last), stems(folded(last))))
    items = items[:LONGEST_RUN]
    if not items:
        return Some()
    return items[0][1] if len(items) == 1 else Adjacent(tuple(items))


def _some(parts: tuple[Pattern, ...]) -> Pattern:
    return parts[0] if len(parts) == 1 else Some(parts)
