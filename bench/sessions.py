"""Sessions beside what one would use instead: durable appends, views of long histories, opening.

Prints Markdown; medians of one run, everything on the same disk. `--peers no` leaves the others out.
"""

from __future__ import annotations

import argparse
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import msgspec

from clew import policies
from clew.messages import Message, ToolCall, assistant, tool, user
from clew.sessions import Said, Session
from measure import peers

TEXT = "some text of a message, as agents write them. " * 16
BATCH = 1_000

OPENHANDS = """
def main(size, rounds, text):
    import statistics, time
    from openhands.sdk.context.view import View
    from openhands.sdk.event import MessageEvent
    from openhands.sdk.llm import Message, TextContent
    def event(i):
        role, source = ("user", "user") if i % 2 == 0 else ("assistant", "agent")
        return MessageEvent(source=source, llm_message=Message(role=role, content=[TextContent(text=text)]))
    events, times = [event(i) for i in range(size)], []
    for i in range(rounds):
        new = event(i)
        start = time.perf_counter()
        events.append(new)
        view = View.from_events(events)
        times.append(time.perf_counter() - start)
    assert len(view.events) == size + rounds
    return statistics.median(times)
"""

AGENTS = """
def main(size, rounds, text):
    import asyncio, statistics, time
    from agents import SQLiteSession
    async def go():
        session, times = SQLiteSession("s", ":memory:"), []
        await session.add_items([{"role": "user", "content": text} for _ in range(size)])
        for _ in range(rounds):
            start = time.perf_counter()
            await session.add_items([{"role": "user", "content": text}])
            items = await session.get_items()
            times.append(time.perf_counter() - start)
        assert len(items) == size + rounds
        return statistics.median(times)
    return asyncio.run(go())
"""

OTHERS = (
    ("OpenHands SDK, `View.from_events`", "openhands-sdk", OPENHANDS),
    ("OpenAI Agents SDK, `SQLiteSession.get_items`, in memory", "openai-agents", AGENTS),
)


def conversation() -> Iterator[Message]:
    """Rounds of an agent, without end."""
    n = 0
    while True:
        n += 1
        yield user(TEXT)
        yield assistant(TEXT, ToolCall(f"c{n}", "bash", '{"command": "pytest -q"}'))
        yield tool(f"c{n}", TEXT)
        yield assistant(TEXT)


def medians(rounds: int, *works: Callable[[int], object]) -> list[float]:
    """The median time of each, in seconds; they take turns, so that all have the same weather."""
    times: list[list[float]] = [[] for _ in works]
    for n in range(rounds):
        for work, taken in zip(works, times, strict=True):
            start = time.perf_counter()
            work(n)
            taken.append(time.perf_counter() - start)
    return [statistics.median(taken) for taken in times]


def bare(path: Path) -> sqlite3.Connection:
    """SQLite by itself, with the durability of a Clew store."""
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("PRAGMA synchronous=FULL")
    db.execute("CREATE TABLE log (id INTEGER PRIMARY KEY, body BLOB NOT NULL)")
    return db


def appends(folder: Path, rounds: int) -> None:
    db = bare(folder / "bare.db")
    body = msgspec.json.encode(Said(user(TEXT), 200, "heuristic"))
    insert = "INSERT INTO log (body) VALUES (?)"
    message = user(TEXT)

    def many(_: int) -> None:
        db.execute("BEGIN IMMEDIATE")
        db.executemany(insert, [(body,)] * BATCH)
        db.execute("COMMIT")

    with Session.open(folder / "clew.db") as session, Session.open("memory://") as memory:
        one = medians(rounds, lambda _: db.execute(insert, (body,)), lambda _: session.append(message))
        batch = medians(10, many, lambda _: session.append_many([message] * BATCH))
        (without,) = medians(rounds, lambda _: memory.append(message))
    print("## Durable appends (WAL, synchronous FULL)\n")
    print("| | bare insert | Clew | Clew's speed to bare |\n|---|---:|---:|---:|")
    print(f"| one message | {one[0] * 1e6:,.0f} µs | {one[1] * 1e6:,.0f} µs | {one[0] / one[1]:.2f} × |")
    per = [t / BATCH * 1e6 for t in batch]
    print(f"| each of {BATCH:,} in one transaction | {per[0]:,.1f} µs | {per[1]:,.1f} µs | {per[0] / per[1]:.2f} × |")
    print(f"\nWithout the disk an append takes Clew {without * 1e6:,.0f} µs. The aim: one message at 0.5 × or more.\n")


def views(sizes: list[int], rounds: int, others: bool) -> None:
    print("## Append a message and get the view, by entries before it\n")
    print("| | " + " | ".join(f"{size:,}" for size in sizes) + f" | {sizes[-1]:,} to {sizes[0]:,} |")
    print("|---|" + "---:|" * (len(sizes) + 1))
    _row("Clew, in memory", [_view(size, rounds) for size in sizes])
    for name, package, snippet in OTHERS if others else ():
        times = [peers.measured(package, snippet, size=s, rounds=max(3, rounds // s), text=TEXT) for s in sizes]
        _row(f"{name} ({peers.version(package)})", times)
    print("\nThe aim: flat, the last at most 1.5 × the first.\n")


def _view(size: int, rounds: int) -> float:
    with Session.open("memory://", policy=policies.linear(), window=10**9) as session:
        session.append_many(islice(conversation(), size))
        session.messages()
        coming = conversation()

        def step(_: int) -> None:
            session.append(next(coming))
            session.messages()

        return medians(rounds, step)[0]


def _row(name: str, times: list[float | None]) -> None:
    cells = [f"{t * 1e6:,.0f} µs" if t else "not available" for t in times]
    first, last = times[0], times[-1]
    print(f"| {name} | " + " | ".join(cells) + f" | {f'{last / first:.1f} ×' if first and last else ''} |", flush=True)


def opening(folder: Path, size: int, rounds: int) -> None:
    path = folder / "long.db"
    with Session.open(path) as session:
        for _ in range(0, size, BATCH):
            session.append_many(islice(conversation(), BATCH))
        id = session.id

    def plain(_: int) -> None:
        db = sqlite3.connect(path)
        for (body,) in db.execute("SELECT body FROM entries ORDER BY id"):
            msgspec.json.decode(body)
        db.close()

    def opened(_: int, *, view: bool = False) -> None:
        with Session.open(path, id, mode="read") as session:
            assert session.leaf == size
            if view:
                assert len(session.view.items) == size

    only, view, select = medians(rounds, opened, lambda n: opened(n, view=True), plain)
    print(f"## Opening a session of {size:,} entries\n")
    print("| | median |\n|---|---:|")
    print(f"| open (leaf and tree; ready to append) | {only * 1e3:,.0f} ms |")
    print(f"| open and make the whole view | {view * 1e3:,.0f} ms |")
    print(f"| bare: select all bodies, decode their JSON | {select * 1e3:,.0f} ms |\n", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000], help="entries before")
    parser.add_argument("--rounds", type=int, default=500, help="appends for each figure")
    parser.add_argument("--peers", choices=("yes", "no"), default="yes")
    options = parser.parse_args()
    build = peers.ROOT / "build"
    build.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=build) as folder:
        appends(Path(folder), options.rounds)
        views(options.sizes, options.rounds, options.peers == "yes")
        opening(Path(folder), options.sizes[-1], 3)


if __name__ == "__main__":
    main()
