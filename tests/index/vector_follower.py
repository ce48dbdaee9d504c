"""A process that writes a log and has an index of vectors follow it, or searches it, until it is ended.

`vector_follower.py write FOLDER NAME` prints the number of each row once it is in the log; between rows the index
catches up. Every text that is embedded is noted in a file. `vector_follower.py search FOLDER COUNT NAME...` searches
until it has seen so many rows of each name, and prints how many searches that took.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from itertools import count
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from clew.index import vector_writer
from clew.index.vectors import VectorIndex
from clew.memory.embedded import Vectors
from clew.storage import open_store
from index.letters import Letters
from index.sources import File


class Noted(Letters):
    """Notes what it embeds."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._file = os.open(folder / "embedded", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        os.write(self._file, "".join(f"{text}\n" for text in texts).encode())
        return super().embed(texts)


def opened(folder: Path) -> tuple[File, Vectors, VectorIndex]:
    log = File(folder / "log.db")
    vectors = Vectors(Noted(folder), open_store(folder / "store.db"))
    return log, vectors, VectorIndex(folder / "index", log, vectors)


def text(name: str, n: int) -> str:
    """Different texts of one name, all nearer to its letter than to that of another."""
    return (
        name[-1] * 40 + "".join(letter * (n // 4**place % 4) for place, letter in enumerate("efghij")) + f" {name}{n}"
    )


def write(folder: Path, name: str, rows: int) -> None:
    log, _, index = opened(folder)
    for n in count():
        log.say(f"{name}-{n}", text(name, n))
        print(n, flush=True)
        if n % 7 == 6:
            index.catch_up()
        if n + 1 == rows:
            return


def search(folder: Path, rows: int, *names: str) -> None:
    _, vectors, index = opened(folder)
    seen = dict.fromkeys(names, 0)
    searches = 0
    while min(seen.values()) < rows:
        searches += 1
        for name, before in seen.items():
            near = index.search(vectors.query(name[-1]), rows, fresh=None)
            seen[name] = sum(one.id.startswith(f"{name}-") for one in near)
            assert seen[name] >= before, f"{name}: {before} rows, then {seen[name]}"
    print(searches)


if __name__ == "__main__":
    vector_writer.EXACT = 40
    act, folder, *rest = sys.argv[1:]
    if act == "write":
        write(Path(folder), rest[0], int(rest[1]))
    else:
        search(Path(folder), int(rest[0]), *rest[1:])
