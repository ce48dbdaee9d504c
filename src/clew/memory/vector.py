"""`VectorMemory`: what was said, by what it is about."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from clew.memory.base import Memory, Query, lines, wanted
from clew.memory.embedding import Embedder, EmbeddingError, FunctionEmbedder, Vector, Vectors, nearest
from clew.memory.log import RecordLog
from clew.memory.raw import VectorRaw
from clew.memory.records import MemoryRecord, folded
from clew.memory.stream import Stream
from clew.memory.tutorial_raw import SimilarRaw


class VectorMemory(Memory):
    """Shows the `top_k` records nearest to the query's `text` (by cosine, at least `threshold`), or the newest.

    The same words said twice are one hit, and the query itself is none. A record is stored before it is embedded,
    so an embedder that fails (`EmbeddingError` on retrieval) loses nothing. Every record is compared. Without an
    embedder there is no vector memory: none is made up. Retrieval has no place for the last turns: compose it with
    a `WindowMemory` (`clew.memory.presets.knowledge_base`).
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
        faithful: bool = False,
    ) -> None:
        self.top_k = top_k
        self.threshold = threshold
        self._raw: VectorRaw | SimilarRaw | None = None
        if faithful:
            one = _one_by_one(embedder)
            self._raw = VectorRaw(one, top_k) if threshold is None or one is None else SimilarRaw(one, top_k, threshold)
            return
        if embedder is None:
            raise EmbeddingError("a vector memory needs an embedder: give one, or use a memory that does without")
        self._vectors = Vectors(embedder if isinstance(embedder, Embedder) else FunctionEmbedder(embedder))
        self._stream = Stream(log, name)

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
        if not text.strip():
            return self._stream.last(k, wanted(query)) if k > 0 else []
        held = {folded(r.text): r for r in self._stream.records() if wanted(query)(r)}
        held.pop(folded(text), None)
        records = list(held.values())
        if not records:
            return []
        wish, *vectors = self._vectors.of([text, *(r.text for r in records)])
        hits = nearest(wish, vectors, k, self.threshold)
        return [replace(records[i], metadata={**records[i].metadata, "score": round(s, 6)}) for i, s in hits]

    def summarize(self, max_items: int = 5) -> str:
        return self._raw.summarize(max_items) if self._raw else lines(self._stream.last(max_items), max_items)

    def evict(self) -> int:
        return 0

    def reset(self, run_id: str | None = None) -> None:
        if self._raw:
            self._raw.reset()
        else:
            self._stream.begin()

    @property
    def stored(self) -> int:
        """How many records there are."""
        return len(self._raw.records if self._raw else self._stream.records())


def _one_by_one(embedder: Embedder | Callable[[str], Vector] | None) -> Callable[[str], Vector] | None:
    if isinstance(embedder, Embedder):
        return lambda text: embedder.embed([text])[0]
    return embedder
