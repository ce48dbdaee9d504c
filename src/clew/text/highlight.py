"""Where a query's words stand in a text."""

from __future__ import annotations

from clew.text.patterns import Adjacent, Exact, Starts, leaves, pattern, places
from clew.text.query import Query
from clew.text.tokenise import chunks


def highlights(text: str, query: Query) -> list[tuple[int, int]]:
    """The stretches of a text that a query finds, as (start, end) in characters, ascending and apart.

    What the query excludes is not among them; a word counts wherever it stands, whatever else the
    query asks for.
    """
    wanted = [leaf for _, leaf in leaves(pattern(query))]
    exact = {leaf.term for leaf in wanted if isinstance(leaf, Exact)}
    exact.update(stem for leaf in wanted if isinstance(leaf, Starts) for stem in leaf.stems)
    starts = tuple(leaf.prefix for leaf in wanted if isinstance(leaf, Starts))
    runs = [leaf for leaf in wanted if isinstance(leaf, Adjacent)]
    found: list[tuple[int, int]] = []
    stream: list[tuple[str, int, int]] = []
    for chunk in chunks(text):
        for term, start, end, kind in chunk.spans():
            start, end = chunk.start + start, chunk.start + end
            if kind == "word":
                stream.append((term, start, end))
            if term in exact:
                found.append((start, end))
            elif term.startswith(starts):
                found.append((start, start + 1 if chunk.dense and end - start == 2 else end))
    terms = [term for term, _, _ in stream] if runs else []
    for run in runs:
        for at in places(run, terms):
            found.append((stream[at][1], stream[at + run.items[-1][0]][2]))
    return _merged(found)


def _merged(found: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Overlapping and touching stretches as one."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(found):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
