"""Writers and readers on one PostgreSQL server that is killed under them.

Each writer says what a call has acknowledged; in the end exactly that is there, each once. Readers follow the log of
the memory meanwhile, and the sessions: nothing they have seen goes away or changes its place.
"""

from __future__ import annotations

import json
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

sys.path.insert(0, str(Path(__file__).parents[1]))

from clew.errors import ClewError
from clew.memory import MemoryRecord, RecordLog
from clew.messages import user
from clew.sessions import Said, Session
from servers import Postgres

THREADS = 4
"""Writers or readers in one process; each has a connection of its own."""

PAUSE = 0.002
"""Seconds between two writes of a writer, and ten times that between two looks of a reader."""


class Report(Struct, frozen=True):
    """What happened: writes acknowledged, kinds of fault found (none), the longest wait of a write in seconds."""

    messages: int
    records: int
    looks: int
    faults: tuple[str, ...]
    longest: float
    median: float


def run(
    seconds: float, kills: int, *, writers: int = 8, readers: int = 8, down: float = 0.5, durable: bool = True
) -> Report:
    """Runs it all for so many seconds, with the server killed so many times and started again after `down` seconds."""
    server = Postgres(durable=durable)
    try:
        server.start()
        address = server.address(server.database())
        RecordLog(address).close()
        jobs = [("write", n) for n in range(0, writers, THREADS)] + [("read", n) for n in range(0, readers, THREADS)]
        workers = [
            subprocess.Popen(
                [sys.executable, __file__, role, address, str(first), str(THREADS)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for role, first in jobs
        ]
        for worker in workers:
            assert worker.stdout is not None
            assert worker.stdout.readline() == "ready\n"
        began = time.monotonic()
        for n in range(kills):
            time.sleep(max(0.0, began + seconds * (n + 1) / (kills + 1) - time.monotonic()))
            server.stop(signal.SIGKILL)
            time.sleep(down)
            server.start()
        time.sleep(max(0.0, began + seconds - time.monotonic()))
        told = [json.loads(worker.communicate("stop\n", timeout=120)[0]) for worker in workers]
        wrote = [one for (role, _), one in zip(jobs, told, strict=True) if role == "write"]
        looked = [one for (role, _), one in zip(jobs, told, strict=True) if role == "read"]
        faults = [fault for one in told for fault in one["faults"]] + compared(address, wrote)
        waits = [wait for one in wrote for wait in one["waits"]]
        return Report(
            sum(len(said) for one in wrote for said in one["messages"].values()),
            sum(len(one["records"]) for one in wrote),
            sum(one["looks"] for one in looked),
            tuple(faults),
            max(waits),
            statistics.median(waits),
        )
    finally:
        server.remove()


def compared(address: str, wrote: list[dict]) -> list[str]:  # type: ignore[type-arg]
    """What was acknowledged and is not there once, or is there and was not."""
    faults = []
    with RecordLog(address) as log:
        there = Counter(r.text for r in log.records())
        positions = [t.position for t in log.told()]
    said = Counter(text for one in wrote for text in one["records"])
    faults += [
        f"record {text!r}: {said[text]} acknowledged, {there[text]} there" for text in (said - there) + (there - said)
    ]
    if positions != list(range(1, len(positions) + 1)):
        faults.append("the positions of the memory have gaps")
    for one in wrote:
        for id, texts in one["messages"].items():
            with Session.open(address, id, mode="read") as session:
                found = [e.body.message.text for e in session.branch() if isinstance(e.body, Said)]
                if found != texts or session.damage:
                    faults.append(f"session {id}: {len(texts)} acknowledged, {len(found)} there, {session.damage}")
    return faults


# -- in the worker processes


def write(address: str, number: int, stop: threading.Event, told: dict) -> None:  # type: ignore[type-arg]
    with Session.open(address) as session, RecordLog(address) as log:
        mine = told["messages"][session.id] = []
        n = 0
        while not stop.is_set():
            n += 1
            began = time.monotonic()
            session.append(user(f"{number}/{n}"))  # without a key: the store itself must know what it has
            mine.append(f"{number}/{n}")
            log.add(MemoryRecord("user", f"record {number}/{n}"), again=True)
            told["records"].append(f"record {number}/{n}")
            told["waits"].append((time.monotonic() - began) / 2)
            time.sleep(PAUSE)


def read(address: str, number: int, stop: threading.Event, told: dict) -> None:  # type: ignore[type-arg]
    with RecordLog(address) as log:
        uids: list[str] = []
        lengths: dict[str, int] = {}
        while not stop.is_set():
            fresh = list(log.told(len(uids)))
            if [t.position for t in fresh] != list(range(len(uids) + 1, len(uids) + 1 + len(fresh))):
                told["faults"].append(f"reader {number}: a gap after {len(uids)}")
            uids += [t.uid for t in fresh]
            if uids and log.mark_of(len(uids)) != uids[-1]:
                told["faults"].append(f"reader {number}: what stood at {len(uids)} has changed")
            for row in log.store.sessions("default"):
                if row.entries < lengths.get(row.id, 0):
                    told["faults"].append(f"reader {number}: session {row.id} has become shorter")
                lengths[row.id] = row.entries
            told["looks"] += 1
            time.sleep(10 * PAUSE)


def work(role: str, address: str, first: int, threads: int) -> None:
    """Does one role in several threads until told to stop; prints what came of it."""
    job: Callable[..., None] = write if role == "write" else read
    stop = threading.Event()
    told: dict = {"messages": {}, "records": [], "waits": [], "looks": 0, "faults": []}  # type: ignore[type-arg]

    def guarded(number: int) -> None:
        try:
            job(address, number, stop, told)
        except ClewError as error:
            told["faults"].append(f"{role} {number}: {type(error).__name__}: {error}")

    running = [threading.Thread(target=guarded, args=(first + n,)) for n in range(threads)]
    for one in running:
        one.start()
    print("ready", flush=True)
    sys.stdin.readline()
    stop.set()
    for one in running:
        one.join()
    print(json.dumps(told))


if __name__ == "__main__":
    work(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
