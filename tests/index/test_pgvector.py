"""The index of vectors kept by PostgreSQL: it finds what comparing all finds, for every process, and forgets."""

from __future__ import annotations

import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import psycopg
import pytest

from clew.errors import StoreError
from clew.index import pgvector
from clew.index.arrays import exact, unpacked
from clew.index.vectors import Near, VectorIndex
from clew.memory import MemoryRecord, Namespace, Recall, RecordLog, VectorMemory
from clew.memory.embedded import BATCH, PROBE, Vectors
from clew.memory.records import digest
from clew.storage import Store, open_store
from clew.storage.tenants import admit
from index.letters import Letters
from index.sources import Rows
from servers import Postgres


@pytest.fixture
def address(postgres: Postgres) -> str:
    return postgres.address(postgres.database())


@pytest.fixture
def store(address: str) -> Iterator[Store]:
    store = open_store(address)
    yield store
    store.close()


def ask(address: str, statement: str) -> list[Any]:
    with psycopg.connect(address, autocommit=True) as db:
        return db.execute(statement.encode()).fetchall()


class Setting:
    def __init__(self, store: Store) -> None:
        self.log = Rows()
        self.vectors = Vectors(Letters(), store)
        self.store = store

    def index(self) -> VectorIndex:
        return VectorIndex(None, self.log, self.vectors, store=self.store, name="test")

    def compared(self, text: str, k: int, uids: list[str] | None = None) -> list[Near]:
        some = [
            ((-row.position, row.id, n), piece["text"])
            for row in {row.id: row for row in self.log.all["default"]}.values()
            for n, piece in enumerate(row.pieces)
            if uids is None or row.id in uids
        ]
        scores = exact(unpacked(self.vectors.of([piece for _, piece in some])), self.vectors.query(text))
        found = [(-score, *place) for score, (place, _) in zip(scores, some, strict=True)]
        return [Near(id, n, min(-minus, 1.0)) for minus, _, id, n in sorted(found)[:k]]


ASKED = ["aab", "gfe", "abcdefg", "ccd"]


@pytest.mark.parametrize("above", [20_000, 100], ids=["compared", "in a graph"])
def test_it_finds_what_comparing_all_finds(
    store: Store, address: str, monkeypatch: pytest.MonkeyPatch, above: int
) -> None:
    monkeypatch.setattr(pgvector, "EXACT", above)
    setting = Setting(store)
    for n in range(400):
        setting.log.say(f"r{n}", "".join(letter * (n // 3**i % 3 + 1) for i, letter in enumerate("abcdefg")))
    one, other = setting.index(), setting.index()
    for index in (one, other):
        for text in ASKED:
            assert index.search(setting.vectors.query(text), 10, fresh=None) == setting.compared(text, 10)
        assert one.catch_up()
    graphs = ask(address, "SELECT count(*) FROM pg_indexes WHERE indexdef LIKE '%hnsw%'")[0][0]
    assert graphs == (above < 400)
    gone = [near.id for near in setting.compared("aab", 10)]
    for id in gone:
        setting.log.say(id)
    setting.log.say("new", "aab", "gfe")
    for _ in range(2):
        for index in (one, other):
            for text in ASKED:
                query = setting.vectors.query(text)
                assert index.search(query, 10, fresh=None) == setting.compared(text, 10)
                some = ["r1", "r2", "new", gone[0]]
                assert index.search(query, 3, some) == setting.compared(text, 3, some)
        assert other.catch_up()
    assert ask(address, "SELECT count(*) FROM nearby")[0][0] == 400 - 10 + 2
    assert ask(address, "SELECT count(*) FROM vectors")[0][0] == 400 - 10 + 2 + 1, "the probe's is there too"
    one.clear()
    assert other.search(setting.vectors.query("aab"), 10) == setting.compared("aab", 10)


def test_a_memory_on_postgresql_needs_no_files_and_embeds_once(address: str) -> None:
    model = Letters()
    for _ in range(2):
        with RecordLog(address, Namespace("acme", user="u1")) as log:
            memory = VectorMemory(model, 2, log=log)
            if not memory.stored:
                for n, text in enumerate(("aab", "bbc", "cca", "dda")):
                    memory.append(MemoryRecord("user", text, id=f"r{n}"))
            assert [r.text for r in memory.retrieve({"text": "b"})] == ["bbc", "aab"]
    asked = sorted(text for batch in model.asked for text in batch if text != PROBE)
    assert asked == ["aab", "bbc", "cca", "dda"]
    with RecordLog(address, Namespace("acme", user="u1")) as log:
        log.purge("r1")
        memory = VectorMemory(model, 2, log=log)
        assert [r.text for r in memory.retrieve({"text": "b"})] == ["aab", "dda"]
    assert ask(address, "SELECT count(*) FROM nearby") == [(3,)]
    assert ask(address, "SELECT count(*) FROM vectors") == [(4,)]


def test_what_is_purged_leaves_the_context_of_its_neighbours(address: str) -> None:
    with RecordLog(address, Namespace("acme")) as log:
        recall = Recall(log, Letters())
        for n, text in enumerate(("aab", "bbc", "dda")):
            log.add(MemoryRecord("user", text, kind="message", id=f"r{n}", metadata={"session": "one"}))
        recall.catch_up()
        log.purge("r0")
        assert [hit.record.text for hit in recall.recall("a")] == ["dda", "bbc"]
        recall.catch_up()
    kept = {row[0] for row in ask(address, "SELECT digest FROM vectors")}
    assert kept == {digest(text) for text in (PROBE, "bbc", "bbc\ndda")}
    assert {row[0] for row in ask(address, "SELECT digest FROM nearby")} == kept - {digest(PROBE)}


class Interrupting(Letters):
    """Has something happen before each batch."""

    def __init__(self, happens: Callable[[int], None]) -> None:
        super().__init__()
        self._happens = happens

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        self._happens(len(self.asked))
        return super().embed(texts)


@pytest.mark.parametrize(("patience", "back"), [(60, True), (1, False)], ids=["restarted", "away"])
def test_the_server_is_lost_while_it_catches_up(patience: int, back: bool) -> None:
    """Restarted, it goes on; staying away, the error is typed. Nothing is embedded twice, nothing is there twice."""
    server = Postgres()
    again = threading.Timer(0.2, server.start)

    def happens(batches: int) -> None:
        if batches == 3:
            server.stop(signal.SIGKILL)
            if back:
                again.start()

    try:
        server.start()
        name = server.database()
        store, model = open_store(server.address(name, patience=str(patience))), Interrupting(happens)
        setting = Setting(store)
        setting.vectors = Vectors(model, store)
        for n in range(5 * BATCH):
            setting.log.say(f"r{n}", "a" * (n % 50) + "b" * (n + 1))
        index = setting.index()
        if not back:
            with pytest.raises(StoreError, match="given up after"):
                index.catch_up()
            server.start()
        assert index.catch_up()
        assert index.search(setting.vectors.query("a"), 10) == setting.compared("a", 10)
        asked = Counter(text for batch in model.asked for text in batch)
        assert sum(times - 1 for times in asked.values()) <= BATCH, "only the batch that could not be stored"
        for table, count in (("nearby", 5 * BATCH), ("vectors", 5 * BATCH + 1)):
            assert ask(server.address(name), f"SELECT count(*) FROM {table}") == [(count,)]
        store.close()
    finally:
        if again.is_alive():
            again.join()
        server.remove()


@pytest.mark.parametrize("when", ["before", "after"])
def test_another_tenant_finds_nothing(address: str, store: Store, when: str) -> None:
    """Whether it was admitted before the tables were there, or after."""
    role = f"other_{when}"
    ask_only(address, f"CREATE ROLE {role} LOGIN")
    if when == "before":
        admit(store, role, "other")
    with RecordLog(address, Namespace("acme")) as log:
        memory = VectorMemory(Letters(), log=log)
        memory.append(MemoryRecord("user", "aab"))
        assert len(memory.retrieve({"text": "a"})) == 1
    if when == "after":
        admit(store, role, "other")
    parts = psycopg.conninfo.conninfo_to_dict(address) | {"user": role}
    with psycopg.connect(**parts) as db:
        db.execute("SET clew.tenant = '*'")
        for table in ("nearby", "followers", "vectors"):
            assert db.execute(f"SELECT count(*) FROM {table}".encode()).fetchone() == (0,)


def ask_only(address: str, statement: str) -> None:
    with psycopg.connect(address, autocommit=True) as db:
        db.execute(statement.encode())
