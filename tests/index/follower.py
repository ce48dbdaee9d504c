"""A process that writes a log and has the index follow it, or searches it, until it is ended.

`follower.py write FOLDER NAME` prints the number of each row once it is in the log; between rows the
index catches up. `follower.py search FOLDER COUNT` searches until it has seen so many rows of each name
given, and prints how many searches that took.
"""

from __future__ import annotations

import sys
from itertools import count
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from clew.index import FullText
from clew.text import parse
from index.sources import File


def opened(folder: Path) -> tuple[File, FullText]:
    log = File(folder / "log.db")
    return log, FullText(folder / "index", log, {"text": 1.0})


def write(folder: Path, name: str, rows: int) -> None:
    log, index = opened(folder)
    for n in count():
        log.say(f"{name}-{n}", f"record {name} number{n}")
        print(n, flush=True)
        if n % 7 == 6:
            index.catch_up()
        if n + 1 == rows:
            return


def search(folder: Path, rows: int, *names: str) -> None:
    _, index = opened(folder)
    seen = dict.fromkeys(names, 0)
    searches = 0
    while min(seen.values()) < rows:
        searches += 1
        for name, before in seen.items():
            seen[name] = len(index.search(parse(name), rows))
            assert seen[name] >= before, f"{name}: {before} rows, then {seen[name]}"
    print(searches)


if __name__ == "__main__":
    act, folder, *rest = sys.argv[1:]
    if act == "write":
        write(Path(folder), rest[0], int(rest[1]))
    else:
        search(Path(folder), int(rest[0]), *rest[1:])
