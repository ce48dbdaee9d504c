"""Forks a process per job that writes a session until it is killed, and says what it was told is durable.

Reads jobs from standard input (a line of JSON each). For each job the forked child prints its pid and
then, after every write that returned, a line with the ids that are durable by then; when the child is
dead, `end` follows. One interpreter is started for hundreds of kills.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from clew.messages import user
from clew.sessions import Draft, Said, Session
from plain import Echo, Older, opened

BATCH = 25


def say(text: str) -> None:
    os.write(1, f"{text}\n".encode())


def appends(session: Session) -> Iterator[list[int]]:
    """One message at a time."""
    for n in range(100_000):
        yield [session.append(user(f"message {n}")).id]


def batches(session: Session) -> Iterator[list[int]]:
    """Batches that must be there whole or not at all; each entry names its batch."""
    first = (session.leaf or 0) // BATCH
    for n in range(first, 100_000):
        drafts = [Draft(Said(user(f"batch {n} " + "x" * 500)), key=f"{n}/{i}") for i in range(BATCH)]
        yield [entry.id for entry in session.append_many(drafts)]


def compactions(session: Session) -> Iterator[list[int]]:
    """Appends with a compaction every few."""
    known = session.leaf or 0
    for n in range(100_000):
        session.append(user(f"message {n}"))
        session.messages()
        yield [entry.id for entry in session.branch_after(known)]
        known = session.leaf or 0


def moves(session: Session) -> Iterator[list[int]]:
    """Two appends, then the leaf goes back to the first of them, which must be as durable: `@` and the id."""
    for n in range(100_000):
        first = session.append(user(f"message {n}"))
        yield [first.id]
        yield [session.append(user("a side branch")).id]
        session.branch_to(first)
        say(f"@{first.id}")


KINDS = {kind.__name__: kind for kind in (appends, batches, compactions, moves)}


def work(job: dict[str, str]) -> None:
    policy = Older(limit=60, keep=1) if job["kind"] == "compactions" else None
    session = opened(job["path"], job.get("session"), policy=policy, model=Echo("sum"))
    say(f"session {session.id}")
    for ids in KINDS[job["kind"]](session):
        say(" ".join(map(str, ids)))


def main() -> None:
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            say(f"pid {os.getpid()}")
            work(json.loads(line))
            os._exit(0)
        os.waitpid(pid, 0)
        say("end")


if __name__ == "__main__":
    main()
