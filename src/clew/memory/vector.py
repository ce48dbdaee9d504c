"""`VectorMemory`: what was said, by what it is about."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from clew.index.rows import Row
from clew.memory.base import Memory, Query, lines, wanted
from clew.memory.embedding import Embedder, Vector, adapted
from clew.memory.log import RecordLog
from clew.memory.ranking import pieces
from clew.memory.raw import VectorRaw
from clew.memory.records import MemoryRecord, folded
from clew.memory.stream import MESSAGE, Stream
from clew.memory.tutorial_raw import SimilarRaw

if TYPE_CHECKING:  # they need NumPy, which `faithful` memories and those of other kinds do without
    from clew.index.vectors import VectorIndex
    from clew.memory.embedded import Vectors

TIMES, LEAST = 4, 32
"""How many times as many pieces as records are looked for at first, and how many at least: some are of one record,
some of records that no longer hold."""


class VectorMemory(Memory):
    """Shows the `top_k` records nearest to the query's `text` (by cosine, at least `threshold`), or the newest.

    The same words said twice are one hit, and the query itself is none; of a long record the best piece counts. A
    record is stored before it is embedded, so an embedder that fails on retrieval (`EmbeddingError`, or what it
    raises itself) loses nothing. Each text is embedded once: vectors are stored with the records, under the
    embedder's name. Up to 20,000 pieces all are compared, beyond that an index finds the nearest; it is kept in
    `folder` (None: beside the store's file if it has one), can be deleted, and is made again from the vectors.

    Without an embedder there is no vector memory: none is made up. Retrieval has no place for the last turns:
    compose it with a `WindowMemory` (`clew.memory.presets.knowledge_base`).
    `faithful=True` is QitOS 0.3.0, bit for bit; with a `threshold`, the `VectorMemory` of the agent-memory tutorial.
    """

    def __init__(
        self,
        embedder: Embedder | Callable[[str], Vector] | None = None,
        top_k: int = 5,
        *,
        threshold: float | None = None,
        log: RecordLog | None = None,
        name: str = "vector",
        folder: str | Path | None = None,
        faithful: bool = False,
    ) -> None:
        self.top_k = top_k
        self.threshold = threshold
        self._raw: VectorRaw | SimilarRaw | None = None
        if faithful:
            one = _one_by_one(embedder)
            self._raw = VectorRaw(one, top_k) if threshold is None or one is None else SimilarRaw(one, top_k, threshold)
            return
        self._stream = Stream(log, name)
        self._vectors, self._index = _indexed(adapted(embedder), self._stream.log, folder)

    def append(self, record: MemoryRecord) -> None:
        if self._raw:
            self._raw.append(record)
        else:
            self._stream.append(record)

    def retrieve(self, query: Query | None = None, state: Any = None, observation: Any = None) -> list[MemoryRecord]:
        if self._raw:
            return self._raw.retrieve(query)
        query = query or {}
        text, k = str(query.get("text") or ""), int(query.get("top_k", self.top_k))
        if k <= 0:
            return []
        if not text.strip():
            return self._stream.last(k, wanted(query))
        vector = self._vectors.query(text)
        count = max(TIMES * k, LEAST)
        while True:
            near = self._index.search(vector, count, fresh=None)
            scores: dict[str, float] = {}
            for uid, _, score in near:
                scores.setdefault(uid, score)
            shown = self._shown(scores, text, query)
            if len(shown) >= k or len(near) < count or near[-1].score < (self.threshold or -1.0):
                return shown[:k]
            count *= TIMES

    def _shown(self, scores: Mapping[str, float], text: str, query: Query) -> list[MemoryRecord]:
        """Those that are in sight, each text once, and not the question itself."""
        log, mark, asked = self._stream.log, self._stream.log.mark(self._stream.name), wanted(query)
        found = {folded(text): None}
        shown = []
        held = log.held(scores.keys())
        for uid, score in scores.items():
            record = held.get(uid)
            if record is None or record.created <= mark or not asked(record) or score < (self.threshold or -1.0):
                continue
            if folded(record.text) not in found:
                found[folded(record.text)] = None
                shown.append(replace(record, metadata={**record.metadata, "score": round(score, 6)}))
        return shown

    def summarize(self, max_items: int = 5) -> str:
        return self._raw.summarize(max_items) if self._raw else lines(self._stream.last(max_items), max_items)

    def evict(self) -> int:
        return 0

    def reset(self, run_id: str | None = None) -> None:
        if self._raw:
            self._raw.reset()
        else:
            self._stream.begin()

    def catch_up(self, progress: Callable[[int], None] = lambda texts: None) -> None:
        """Has everything embedded that is not yet; retrieval does so by itself. `progress` is told after each batch
        how many texts were in it. What was embedded when it is interrupted is kept. Raises as retrieval does."""
        if not self._raw:
            self._index.catch_up(progress)

    @property
    def stored(self) -> int:
        """How many records there are."""
        return len(self._raw.records if self._raw else self._stream.records())


class Said:
    """What was said in a log, as the index reads it: a row for each version, in pieces."""

    def __init__(self, log: RecordLog) -> None:
        self._log = log

    def rows(self, namespace: str, after: int) -> Iterator[Row]:
        """The rows after a position. The namespace is that of the log."""
        for position, uid, record in self._log.told(after):
            if record is None:
                yield Row(position, uid)
            elif record.kind == MESSAGE:
                text = record.text
                yield Row(position, uid, tuple({"text": text[start:end]} for start, end in pieces(text)))


def _indexed(embedder: Embedder, log: RecordLog, folder: str | Path | None) -> tuple[Vectors, VectorIndex]:
    from clew.index.vectors import VectorIndex
    from clew.memory.embedded import Vectors

    vectors = Vectors(embedder, log.store, log.path)
    if folder is None and "://" not in log.store.where:
        folder = Path(f"{log.store.where}.index") / "said"
    place = Path(folder) if folder else None
    index = VectorIndex(place, Said(log), vectors, namespace=log.path, mark=log.mark_of, store=log.store, name="said")
    return vectors, index


def _one_by_one(embedder: Embedder | Callable[[str], Vector] | None) -> Callable[[str], Vector] | None:
    if isinstance(embedder, Embedder):
        return lambda text: embedder.embed([text])[0]
    return embedder
