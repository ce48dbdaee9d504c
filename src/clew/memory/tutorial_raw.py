"""The agent-memory tutorial's entities and vectors, as they really behave: `faithful=True`.

Whatever an extraction answers is merged, also what the assistant made up; an answer that is no JSON is nothing, and
some break the parser. Nothing is ever deleted. The vector memory keeps empty texts and questions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from math import sqrt
from pathlib import Path
from typing import Any

from clew.memory.base import LINE, Memory, Query
from clew.memory.embedding import Vector
from clew.memory.raw import dot
from clew.memory.records import MemoryRecord

TINY = 1e-8
"""Added to the product of lengths, so that a threshold of 1.0 is never met."""

WINDOW = 6
"""Messages that a request of the tutorial's entity memory holds."""

Extractor = Callable[[list[MemoryRecord], Mapping[str, Any]], str | None]
"""Answers with JSON of the new facts in some records, given what is known."""


def parsed(answer: str | None) -> Any:
    """What an extraction answer comes to. Raises what the tutorial's code raises."""
    text = answer.strip()  # type: ignore[union-attr]
    if text.startswith("```"):
        text = text.split("\n", 1)[1].rsplit("\n", 1)[0]
    return json.loads(text)


class EntityRaw(Memory):
    """The tutorial's `EntityMemory`, or with `silent` its `HybridMemory`: the last messages and a dict of facts.

    `extract` asks about the last two messages. `error` is the name of what went wrong in the last extraction.
    """

    def __init__(self, extractor: Extractor | None, window: int = WINDOW, *, silent: bool = False) -> None:
        self.extractor = extractor
        self.window = window
        self.silent = silent
        self.entities: dict[str, Any] = {}
        self.error: str | None = None
        self.records: list[MemoryRecord] = []

    def append(self, record: MemoryRecord) -> None:
        self.records.append(record)
        if self.silent:
            self.records = self.records[-self.window :]

    def retrieve(self, query: Query | None = None, state: Any = None, observation: Any = None) -> list[MemoryRecord]:
        facts = [MemoryRecord("system", self.shown(), kind="entity")] if self.entities else []
        return facts + self.records[-self.window :]

    def shown(self) -> str:
        """The facts as the model sees them."""
        return "\n".join(f"- {key}：{value}" for key, value in self.entities.items())

    def extract(self) -> dict[str, Any]:
        """The new facts of the last turn, merged."""
        self.error = None
        new: Any = {}
        answer = self.extractor(self.records[-2:], dict(self.entities)) if self.extractor else "{}"
        try:
            new = parsed(answer)
        except json.JSONDecodeError as error:
            self.error = type(error).__name__
        except (IndexError, AttributeError) as error:
            self.error = type(error).__name__
            if not self.silent:
                raise
        if new:
            self._merge(new)
        return dict(new) if isinstance(new, dict) else {}

    def summarize(self, max_items: int = 5) -> str:
        return "\n".join(r.line(LINE) for r in self.records[-max_items:])

    def evict(self) -> int:
        return 0

    def reset(self, run_id: str | None = None) -> None:
        self.entities, self.records, self.error = {}, [], None

    def _merge(self, new: Any) -> None:
        try:
            self.entities.update(new)
        except (TypeError, ValueError) as error:
            self.error = type(error).__name__
            if not self.silent:
                raise


class SimilarRaw(Memory):
    """The tutorial's `VectorMemory`."""

    def __init__(self, embed: Callable[[str], Vector], top_k: int = 3, threshold: float = 0.5) -> None:
        self.embed = embed
        self.top_k = top_k
        self.threshold = threshold
        self.records: list[MemoryRecord] = []
        self.vectors: list[Vector] = []

    def append(self, record: MemoryRecord) -> None:
        self.records.append(record)
        self.vectors.append(self.embed(str(record.content)))

    def retrieve(self, query: Query | None = None, state: Any = None, observation: Any = None) -> list[MemoryRecord]:
        scores = self.scores(str((query or {}).get("text") or ""))
        good = [i for i, score in enumerate(scores) if score >= self.threshold]
        ranked = sorted(good, key=lambda i: -scores[i])[: self.top_k]
        return [self.records[i] for i in ranked]

    def scores(self, text: str) -> list[float]:
        """The similarity of every record to the text; nothing is embedded when there are none."""
        if not self.records:
            return []
        wish = self.embed(text)
        return [cosine(wish, vector) for vector in self.vectors]

    def summarize(self, max_items: int = 5) -> str:
        return "\n".join(r.line(LINE) for r in self.records[-max_items:])

    def evict(self) -> int:
        return 0

    def reset(self, run_id: str | None = None) -> None:
        self.records, self.vectors = [], []


def cosine(a: Vector, b: Vector) -> float:
    """The tutorial's cosine: a little below the real one."""
    return dot(a, b) / (sqrt(dot(a, a)) * sqrt(dot(b, b)) + TINY)


def save_memory(entities: Mapping[str, Any], path: str | Path) -> None:
    """Writes the facts to a file, over whatever was there."""
    Path(path).write_text(json.dumps(entities, ensure_ascii=False, indent=2), "utf-8")


def load_memory(path: str | Path) -> Any:
    """Reads the facts from a file; none when there is no file."""
    file = Path(path)
    return json.loads(file.read_text("utf-8")) if file.exists() else {}
