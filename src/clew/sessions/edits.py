"""One change of a view, as data. Each edit names the entries it stands for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from msgspec import Struct

from clew.messages import Message

Ids = tuple[int | tuple[int, int], ...]
"""Entry ids, runs of consecutive ones written as (first, last): long spans stay short in the log."""

SELF = 0
"""In a compaction's edits: the compaction's own entry, for which a message inserted without sources stands."""

How = Literal["summary", "mask", "shrink", "keep"]
"""What a replacement is: a summary of its sources, a placeholder for them, a shortened copy, or the
same content at another place."""


def pack(ids: Iterable[int | tuple[int, int]]) -> Ids:
    """Ids sorted, each once, with runs of three or more folded. Runs that are folded already may be among them."""
    runs: list[list[int]] = []
    for first, last in sorted((i, i) if isinstance(i, int) else i for i in ids):
        if runs and first <= runs[-1][1] + 1:
            runs[-1][1] = max(runs[-1][1], last)
        else:
            runs.append([first, last])
    out: list[int | tuple[int, int]] = []
    for first, last in runs:
        if last - first >= 2:
            out.append((first, last))
        else:
            out.extend(range(first, last + 1))
    return tuple(out)


def unpack(ids: Ids) -> Iterator[int]:
    """The single ids, ascending."""
    for i in ids:
        if isinstance(i, int):
            yield i
        else:
            yield from range(i[0], i[1] + 1)


class Drop(Struct, frozen=True, tag="drop"):
    """Takes items out of the view; they stay in the log."""

    ids: Ids


class Replace(Struct, frozen=True, tag="replace", omit_defaults=True):
    """Puts one message in the place of the first of the items; the others go.

    `sources` are the entries the message was made from (default: `ids`).
    """

    ids: Ids
    message: Message
    how: How = "summary"
    sources: Ids = ()


class Insert(Struct, frozen=True, tag="insert", omit_defaults=True):
    """Adds a message after the item that stands for entry `after` (None: after the leading system messages)."""

    after: int | None
    message: Message
    how: How = "summary"
    sources: Ids = ()


Edit = Drop | Replace | Insert
