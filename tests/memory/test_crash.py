"""Kill -9 in the middle of writes: what was acknowledged is there, and what belongs together is there together."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

from sqlalchemy import create_engine

from clew.memory import MemoryRecord, RecordLog, SummaryMemory
from clew.storage import SessionRow, open_store
from clew.storage.migrate import downgrade

WRITER = """
import sys
from clew.memory import MemoryRecord, RecordLog, SummaryMemory
from clew.models import Scripted
log = RecordLog(sys.argv[1])
memory = SummaryMemory(3, llm=Scripted(lambda call: "summary of " + call.source[-1].text), log=log)
run = sys.argv[2]
for n in range(100_000):
    memory.append(MemoryRecord("user", f"{run} {n}", n))
    log.add_many([MemoryRecord("user", f"{run} batch {n} {i}", kind="fact") for i in range(5)])
    log.add(MemoryRecord("user", f"v{n}", kind="value", key="k", value=f"{run} {n}"))
    if n % 4 == 3:
        memory.evict()
    print(n, flush=True)
"""


def test_what_was_acknowledged_survives_a_kill(tmp_path: Path) -> None:
    random.seed(11)
    path = tmp_path / "agent.db"
    RecordLog(path).close()
    acknowledged: set[str] = set()
    for run in range(5):
        worker = subprocess.Popen([sys.executable, "-c", WRITER, str(path), f"run{run}"], stdout=subprocess.PIPE)
        assert worker.stdout is not None
        said = [worker.stdout.readline() for _ in range(random.randint(1, 15))]
        time.sleep(random.uniform(0.0, 0.03))
        os.kill(worker.pid, signal.SIGKILL)
        said += worker.stdout.readlines()
        worker.stdout.close()
        worker.wait()
        acknowledged |= {f"run{run} {int(line)}" for line in said if line.endswith(b"\n")}
        with RecordLog(path) as log:
            texts = {r.text for r in log.records("message")}
            assert acknowledged <= texts
            batches = [r.text.rsplit(" ", 1)[0] for r in log.records("fact")]
            assert all(batches.count(batch) == 5 for batch in set(batches)), "a batch is there whole or not at all"
            assert {text.replace(" ", " batch ") for text in acknowledged} <= set(batches)
            memory = SummaryMemory(3, log=log)
            shown = [r.text for r in memory.retrieve() if r.kind != "summary"]
            told = [r.text for r in log.records("message")]
            assert shown == told[len(told) - len(shown) :]
            if memory.summary is not None:
                assert memory.summary.text == f"summary of {told[-len(shown) - 1]}", "it stands for all before"
            assert log.add(MemoryRecord("user", f"goes on {run}")) is not None


def test_a_store_of_sessions_only_gets_a_memory_when_it_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    store = open_store(path)
    store.create(SessionRow("default", "s"))
    store.close()
    engine = create_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        downgrade(connection, "0001")
    engine.dispose()
    with RecordLog(path) as log:
        assert log.add(MemoryRecord("user", "remembers")) is not None
    with sqlite3.connect(path) as raw:
        assert raw.execute("SELECT id FROM sessions").fetchall() == [("s",)]
        assert raw.execute("SELECT count(*) FROM changes").fetchone() == (1,)
    raw.close()
