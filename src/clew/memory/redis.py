"""Memories in Redis: hot, for as long as they are wanted, and behind them a store that keeps them.

    with Redis("redis://localhost/0", ttl=86_400, write_behind="postgresql://localhost/agents") as hot:
        log = RecordLog(hot, Namespace("acme", user="u1"))

What is written is durable in Redis, as Redis is set up, when the call returns; with `write_behind` a thread writes it
to the store too, in the order in which it came. Redis knows how far that has got: when the process is killed, the next
one goes on from there. What Redis has let go or lost is taken from the store again.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from clew.errors import StoreError
from clew.memory.changes import from_row
from clew.memory.hot import Hot
from clew.memory.known import Ledger
from clew.memory.stored import Stored
from clew.storage.changes import Changes, Decide, Restarted
from clew.storage.copy import memory_namespaces
from clew.storage.locate import open_store
from clew.storage.redis import Address, RedisChanges, Tail, connected, namespaces
from clew.storage.rows import ChangeRow
from clew.storage.store import Store

log = logging.getLogger(__name__)

QUEUE = 10_000
"""Changes that may wait to be written behind; a write that finds more waits for them."""

BATCH = 500
"""Changes written behind in one transaction."""

PAUSE = 1.0
"""Seconds between two tries when the store behind does not take them."""


class Redis:
    """A Redis server as the place of memories. Several logs may share it; `close` it after them.

    `ttl` is after how many seconds without a write a memory is let go (0: never), `write_behind` the store that keeps
    it, `queue` how many changes may wait for that. The address may give them too. Raises `StoreError`.
    """

    def __init__(
        self,
        address: str,
        *,
        ttl: int = 0,
        write_behind: str | Path | Store | None = None,
        queue: int = QUEUE,
    ) -> None:
        self.address = Address.of(address)
        self.ttl = ttl or self.address.ttl
        self.queue = queue
        behind = write_behind if write_behind is not None else self.address.write_behind or None
        self.keeps = behind is not None
        self.store = open_store("memory://" if behind is None else behind)
        self._client = connected(self.address)
        self._behind: dict[str, Behind] = {}

    def ledger(self, namespace: str) -> Ledger:
        """The log of a namespace."""
        changes = self._changes(namespace)  # each reader has its own: it knows which log it has read
        if not self.keeps:
            return Hot(changes)
        if namespace not in self._behind:
            self._behind[namespace] = Behind(self._changes(namespace), self.store, self.queue)
        return Hot(Kept(changes, self._behind[namespace]))

    def namespaces(self) -> list[str]:
        """The namespaces that have a memory here, or in the store behind."""
        kept = memory_namespaces(self.store) if self.keeps else []
        return sorted({*namespaces(self._client, self.address), *kept})

    def flush(self) -> None:
        """Returns when all that was written is in the store behind too. Raises `StoreError` when it cannot be."""
        for one in self._behind.values():
            one.flush()

    def close(self) -> None:
        """Writes behind what is waiting, and lets go of the server and the store."""
        with ExitStack() as all:  # whatever fails to close, the others are closed
            all.callback(self.store.close)
            all.callback(self._client.close)
            for one in self._behind.values():
                all.callback(one.close)
            self._behind = {}

    def __enter__(self) -> Redis:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _changes(self, namespace: str) -> RedisChanges:
        source = Changes(self.store, namespace) if self.keeps else None
        return RedisChanges(
            self._client,
            namespace,
            self.address.shown,
            ttl=self.ttl,
            patience=self.address.patience,
            source=(lambda: source.after(0)) if source is not None else None,
        )


class Kept:
    """A log in Redis that is written to a store as well: a `ChangeLog`."""

    def __init__(self, changes: RedisChanges, behind: Behind) -> None:
        self._changes = changes
        self._behind = behind

    def after(self, position: int) -> list[ChangeRow]:
        return self._changes.after(position)

    def append(self, after: int, decide: Decide) -> list[ChangeRow]:
        rows = self._changes.append(after, decide)
        self._behind.wrote(rows)
        return rows

    def rewrite(self, rows: Sequence[ChangeRow]) -> None:
        """As in every log. It is erased in the store too when this returns."""
        self._changes.rewrite(rows)
        self._behind.flush()

    def tail(self, n: int) -> Tail:
        """See `RedisChanges.tail`."""
        return self._changes.tail(n)


class Behind:
    """The thread that writes a log in Redis to a store."""

    def __init__(self, changes: RedisChanges, store: Store, queue: int) -> None:
        self._changes = changes
        self._kept = Stored(store, changes.namespace)
        self._queue = queue
        self._turn = threading.Lock()  # the thread and `flush` write in turn
        self._news = threading.Event()
        self._ended = False
        self._written = 0
        self._news.set()  # for what another process has left
        self._thread = threading.Thread(target=self._run, name=f"write-behind {changes.namespace}", daemon=True)
        self._thread.start()

    def wrote(self, rows: Sequence[ChangeRow]) -> None:
        """Hears of what was added to the log; waits when too much is to be written."""
        self._news.set()
        if rows and rows[-1].position - self._written > self._queue:
            self.flush()

    def flush(self) -> None:
        """Writes all that waits."""
        with self._turn:
            try:
                self._write()
            except Restarted:  # it expired, all written, or was lost: what is left is another log
                self._write()

    def close(self) -> None:
        """Writes all that waits, and ends the thread."""
        try:
            self.flush()
        finally:
            self._ended = True
            self._news.set()
            self._thread.join()

    def _write(self) -> None:
        self._written = self._changes.flushed()
        while rows := self._changes.after(self._written):
            for start in range(0, len(rows), BATCH):
                some = rows[start : start + BATCH]
                self._kept.merge(map(from_row, some))
                self._changes.flushed(some[-1].position)
                self._written = some[-1].position

    def _run(self) -> None:
        while not self._ended:
            self._news.wait()
            self._news.clear()
            if self._ended:
                return
            try:
                self.flush()
            except StoreError as error:
                log.warning("%d and more changes wait to be written behind: %s", self._written, error)
                time.sleep(PAUSE)
                self._news.set()
