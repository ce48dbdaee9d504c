"""Google ADK's memory search: what it finds by words is found here, too. Here more is found.

ADK asks whether a word of the query is one of the text or, when it is not ASCII, a part of it; so a Chinese question
finds nothing, nor does a word without its accents. What Clew finds beside is no difference, nor is its order, which
is by how good the hits are.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from clew.index import FullText, Row
from clew.text import words

Json = dict[str, Any]


class Texts:
    """The texts as a log."""

    def __init__(self, texts: list[str]) -> None:
        self.all = [Row(n + 1, str(n), ({"text": text},)) for n, text in enumerate(texts)]

    def rows(self, namespace: str, after: int) -> Iterable[Row]:
        return self.all[after:]


def search(case: Json) -> Json:
    texts = case["input"]["texts"]
    with tempfile.TemporaryDirectory() as folder:
        index = FullText(Path(folder), Texts(texts), {"text": 1.0})
        return {
            query: [texts[int(hit.id)] for hit in index.search(words(query), len(texts))]
            for query in case["input"]["queries"]
        }


COMPONENTS = {"InMemoryMemoryService": search, "SqliteMemoryService": search}


def compare(case: Json, got: Json) -> list[str]:
    """What upstream finds and we do not."""
    return [
        f"{query!r} does not find {text!r}"
        for query, found in case["output"].items()
        for text in found
        if text not in got[query]
    ]
