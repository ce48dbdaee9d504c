"""`BlockMemory`: MemGPT's memory. A few blocks the model always sees and edits itself, and two stores it pages through.

Core blocks are always in sight (persona and human, 2,000 characters each: MemGPT of 2023). Recall storage is all that
was said, archival storage what the model put there; both are searched by pages of 5, counted from 0. The model does it
with the tools of `clew.memory.block_tools`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from msgspec import Struct

from clew.errors import ClewError, UnknownName
from clew.index.bm25 import Document, Scoring, Wanted, rarity, totals
from clew.memory.base import Memory, Query, lines
from clew.memory.changes import Change, Opened, change
from clew.memory.known import Clock, Known
from clew.memory.log import RecordLog
from clew.memory.recall import Recall
from clew.memory.records import MemoryRecord, digest, folded
from clew.memory.stream import Stream
from clew.text import pattern, terms, words
from clew.text.patterns import leaves

Edit = Callable[[str], str]

BLOCK = "block"
"""The kind of a record that is a core block: `key` is its label."""

PASSAGE = "passage"
"""The kind of a record in archival storage."""

LIMIT = 2_000
"""Characters of a core block (MemGPT 2023; Letta's server allows 100,000)."""

PAGE = 5
"""Results on a page (MemGPT 2023)."""

FOUND = 100
"""Passages that a search by indexes pages through."""

PRESSURE = 0.75
"""Share of the context window from which the model is warned (MemGPT's code; its paper says 0.7)."""


class BlockFull(ClewError):
    """A block's new text exceeds its limit; nothing was changed."""


class Block(Struct, frozen=True, omit_defaults=True):
    """A core block: its label, its first text, its limit in characters, and whether the model may edit it."""

    label: str
    value: str = ""
    limit: int = LIMIT
    description: str = ""
    read_only: bool = False


class Page(Struct, frozen=True):
    """One page of results: `page` of `pages`, counted from 0, and how many results there are on all."""

    records: tuple[MemoryRecord, ...]
    page: int
    pages: int
    total: int


class BlockMemory(Memory):
    """Core blocks, recall storage and archival storage over one log.

    The archive is searched by looking at each passage; with `recall`, by its indexes (for more than some thousand
    passages), which give the best `FOUND`.
    """

    def __init__(
        self,
        blocks: Sequence[Block] = (Block("persona"), Block("human")),
        *,
        log: RecordLog | None = None,
        recall: Recall | None = None,
        name: str = "blocks",
    ) -> None:
        self._recall = recall
        self.blocks = {block.label: block for block in blocks}
        self._stream = Stream(log, name)
        self._warned = False
        for block in blocks:
            if len(block.value) > block.limit:
                raise BlockFull(f"block {block.label!r} has {len(block.value):,} characters, over {block.limit:,}")
            if block.value and not self.log.known.knows(block_id(block.label)):
                self.edit(block.label, _first(block))

    @property
    def log(self) -> RecordLog:
        """The log all of it is in."""
        return self._stream.log

    # -- the interface

    def append(self, record: MemoryRecord) -> None:
        self._stream.append(record)

    def retrieve(self, query: Query | None = None, state: Any = None, observation: Any = None) -> list[MemoryRecord]:
        """The core blocks; with a `text` in the query, also the passages that go with it (`top_k`, 5)."""
        query = query or {}
        core = [r for label in self.blocks if (r := self.log.get(block_id(label))) is not None]
        text = str(query.get("text") or "")
        return core + (self._passages(text)[: int(query.get("top_k", PAGE))] if text.strip() else [])

    def summarize(self, max_items: int = 5) -> str:
        return lines(self._stream.last(max_items), max_items)

    def evict(self) -> int:
        return 0

    def reset(self, run_id: str | None = None) -> None:
        """Nothing: all of it is there to be looked up."""

    # -- core

    def value(self, label: str) -> str:
        """The text of a block. Raises `UnknownName`."""
        self._block(label)
        record = self.log.get(block_id(label))
        return record.value if record is not None else ""

    def edit(self, label: str, new: Edit) -> str:
        """Gives a block the text that `new` makes of its text, with no writer in between; the new text.

        Raises `BlockFull`, `UnknownName`, and what `new` raises; then nothing has changed.
        """
        block = self._block(label)
        text = ""

        def decide(known: Known, now: Clock) -> Iterator[Change]:
            nonlocal text
            at = now()
            old = known.record(block_id(label), at)
            text = new(old.value if old is not None else "")
            if len(text) > block.limit:
                raise BlockFull(
                    f"block {label!r} would have {len(text):,} characters, but its limit is {block.limit:,}: "
                    "shorten what is in it, or put some of it into archival storage"
                )
            if old is not None and text == old.value:
                return
            made = MemoryRecord(
                "system", f"{label}:\n{text}", kind=BLOCK, key=label, value=text, id=block_id(label), valid_from=at
            )
            yield change(at, Opened(self.log.whole(made)))

        self.log.commit(decide)
        return text

    # -- external

    def insert(self, text: str) -> MemoryRecord | None:
        """Puts a passage into archival storage; the same text is stored once. None for a blank one."""
        return self.log.add(MemoryRecord("assistant", text, kind=PASSAGE, speaker="assistant"))

    def search_archive(self, query: str, page: int = 0) -> Page:
        """The passages that share words with the query, those that share most first."""
        return _page(self._passages(query), page)

    def search_said(self, query: str, page: int = 0) -> Page:
        """What was said that holds the query's text, newest first; case, width and spaces do not count."""
        wish = folded(query)
        return _page([r for r in self._stream.backward() if wish and wish in folded(r.text)], page)

    def search_dates(self, start: float, end: float, page: int = 0) -> Page:
        """What was said from `start` until before `end` (seconds since 1970), newest first."""
        return _page([r for r in self._stream.backward() if start <= r.created < end], page)

    def _passages(self, query: str) -> list[MemoryRecord]:
        """The passages that have words of the query, the best first (BM25), of equals the newest."""
        if self._recall is not None:
            return [found.record for found in self._recall.recall(query, FOUND, kinds=(PASSAGE,))]
        held = list(self.log.latest(PASSAGE))
        documents = [Document(r.id, 0, 0, {"text": terms(r.text)}, {}) for r in held]
        wanted = []
        for field, leaf in leaves(pattern(words(query))):
            if holding := sum(d.holds(leaf, field) for d in documents):
                wanted.append(Wanted(leaf, field, rarity(len(documents), holding)))
        scoring = Scoring(wanted, {"text": 1.0}, totals(documents, ("text",)))
        scored = [(scoring.score(document), record) for document, record in zip(documents, held, strict=True)]
        return [record for score, record in sorted(scored, key=lambda s: -s[0]) if score]

    # -- pressure

    def pressure(self, tokens: int, window: int) -> str | None:
        """A warning for the model when three quarters of the `window` (tokens) are used; once, until relieved.

        Tell it after every step what the context holds, also after a compaction.
        """
        if tokens <= PRESSURE * window:
            self._warned = False
            return None
        if self._warned:
            return None
        self._warned = True
        return (
            f"The context holds {tokens:,} of {window:,} tokens. Older messages will soon leave it: save what must "
            "not be lost with core_memory_append, core_memory_replace or archival_memory_insert."
        )

    def _block(self, label: str) -> Block:
        if label not in self.blocks:
            raise UnknownName(f"there is no block {label!r}; there are: {', '.join(self.blocks)}")
        return self.blocks[label]


def _first(block: Block) -> Edit:
    return lambda text: block.value


def block_id(label: str) -> str:
    """The id of a block's record."""
    return digest(f"{BLOCK}\0{label}")[:16]


def _page(found: list[MemoryRecord], page: int) -> Page:
    pages = -(-len(found) // PAGE)
    start = max(page, 0) * PAGE
    return Page(tuple(found[start : start + PAGE]), max(page, 0), pages, len(found))
