"""One loop for all memories: add and search, beside each other on the same texts and vectors.

Each memory runs in a process of its own, the peers in environments of their own; therefore nothing but the standard
library is imported above. What is added and asked lies in a folder (`given`), vectors included: embedding them takes
no time of what is measured. All are asked for ten records.
"""

from __future__ import annotations

import json
import os
import sys
import time
from array import array
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

from measure import peers

K = 10
BATCH = 1_000
SESSION = 50
HEAD = ("p50 / p95 in ms", "add", "search", "search right after an add", "load", "files")
Vector = list[float]
Times = list[tuple[float, float]]
"""Milliseconds by the clock, and of processor time, of each time something is done."""


class Given(NamedTuple):
    """The texts that are loaded in bulk, those that are added one by one, the questions, and the vectors of all."""

    bulk: list[str]
    single: list[str]
    questions: list[str]
    vectors: dict[str, Vector]

    @property
    def dim(self) -> int:
        return len(self.vectors[self.questions[0]])

    def embed(self, texts: Iterable[str]) -> list[Vector]:
        return [self.vectors[text] for text in texts]


class Memory(NamedTuple):
    """What is measured of a memory: texts in bulk, ready to be searched; one text; and the texts found."""

    load: Callable[[Sequence[str]], object]
    add: Callable[[str], object]
    search: Callable[[str], list[str]]


# -- the memories


def words(folder: Path, given: Given) -> Memory:
    return _clew(folder, None)


def words_and_vectors(folder: Path, given: Given) -> Memory:
    probe = given.vectors[given.questions[0]]

    class Known:
        name, dim = "known", given.dim

        def embed(self, texts: Sequence[str]) -> list[Vector]:
            """A record is embedded after the turn before it, on a line of its own; and once a text of Clew's, by which
            it knows the model again."""
            return [given.vectors.get(text.splitlines()[-1], probe) for text in texts]

        def query(self, text: str) -> Vector:
            return given.vectors[text]

    return _clew(folder, Known())


def _clew(folder: Path, embedder: Any) -> Memory:
    from clew.memory import MemoryRecord, Recall, RecordLog

    log, said = RecordLog(folder / "memory.db"), 0
    recall = Recall(log, embedder)

    def record(text: str) -> MemoryRecord:
        nonlocal said
        said += 1
        return MemoryRecord("user", text, kind="message", metadata={"session": f"s{said // SESSION}"})

    def load(texts: Sequence[str]) -> None:
        log.add_many([record(text) for text in texts], again=True)
        recall.catch_up()

    return Memory(
        load,
        lambda text: log.add(record(text), again=True),
        lambda question: [hit.record.text for hit in recall.recall(question, K)],
    )


def chroma(folder: Path, given: Given) -> Memory:
    import chromadb

    settings = chromadb.Settings(anonymized_telemetry=False)
    client = chromadb.PersistentClient(str(folder), settings)
    held = client.create_collection("memory", metadata={"hnsw:space": "cosine"}, embedding_function=None)
    ids = map(str, range(sys.maxsize))

    def load(texts: Sequence[str]) -> None:
        held.add(ids=[next(ids) for _ in texts], embeddings=given.embed(texts), documents=list(texts))

    return Memory(
        load,
        lambda text: load([text]),
        lambda question: held.query(query_embeddings=given.embed([question]), n_results=K)["documents"][0],
    )


def langgraph(folder: Path, given: Given) -> Memory:
    from langgraph.store.memory import InMemoryStore, PutOp

    store = InMemoryStore(index={"dims": given.dim, "embed": given.embed, "fields": ["text"]})
    ids = map(str, range(sys.maxsize))
    return Memory(
        lambda texts: store.batch([PutOp(("m",), next(ids), {"text": text}) for text in texts]),
        lambda text: store.put(("m",), next(ids), {"text": text}),
        lambda question: [found.value["text"] for found in store.search(("m",), query=question, limit=K)],
    )


def mem0(folder: Path, given: Given) -> Memory:
    os.environ.update(MEM0_TELEMETRY="False", MEM0_DIR=str(folder), OPENAI_API_KEY="none is asked")
    from mem0 import Memory as Mem0

    class Known:
        def embed(self, text: str, memory_action: str = "") -> Vector:
            return given.vectors[text]

    place = {"path": str(folder / "qdrant"), "on_disk": True, "embedding_model_dims": given.dim}
    held = Mem0.from_config(
        {
            "vector_store": {"provider": "qdrant", "config": place},
            "history_db_path": str(folder / "history.db"),
        }
    )
    held.embedding_model = Known()

    def load(texts: Sequence[str]) -> None:
        held.add([{"role": "user", "content": text} for text in texts], user_id="u", infer=False)

    def search(question: str) -> list[str]:
        found = held.search(question, top_k=K, filters={"user_id": "u"})
        return [one["memory"] for one in found["results"]]

    return Memory(load, lambda text: load([text]), search)


MEMORIES: dict[str, tuple[Callable[[Path, Given], Memory], str]] = {
    "Clew, words": (words, ""),
    "Clew, words and vectors": (words_and_vectors, ""),
    "Chroma, persistent": (chroma, "chromadb"),
    "LangGraph `InMemoryStore` (keeps nothing)": (langgraph, "langgraph numpy"),
    "mem0, `infer=False`, Qdrant in a folder": (mem0, "mem0ai"),
}


# -- the loop


def given(folder: Path) -> Given:
    """What `write` wrote."""
    told = json.loads((folder / "given.json").read_text())
    flat = array("f", (folder / "given.f32").read_bytes()).tolist()
    texts = [*told["bulk"], *told["single"], *told["questions"]]
    dim = len(flat) // len(texts)
    return Given(**told, vectors={text: flat[n * dim : (n + 1) * dim] for n, text in enumerate(texts)})


def write(folder: Path, bulk: list[str], single: list[str], questions: list[str], vectors: bytes) -> None:
    """The texts, and their vectors in that order, 32-bit floats."""
    (folder / "given.json").write_text(json.dumps({"bulk": bulk, "single": single, "questions": questions}))
    (folder / "given.f32").write_bytes(vectors)


def taken(name: str, folder: str) -> dict[str, Any]:
    """Runs the loop over one memory: load, add, search, and search right after an add, each after a first search,
    which has the index take in what was added before."""
    told, place = given(Path(folder)), Path(folder) / str(list(MEMORIES).index(name))
    place.mkdir()
    memory = MEMORIES[name][0](place, told)
    times: dict[str, Times] = {"load": [], "add": [], "search": [], "after": []}
    for start in range(0, len(told.bulk), BATCH):
        _spend(times["load"], lambda part=told.bulk[start : start + BATCH]: memory.load(part))  # type: ignore[misc]
    memory.search(told.questions[0])
    alone = len(told.single) - len(told.questions)
    for text in told.single[:alone]:
        _spend(times["add"], lambda text=text: memory.add(text))  # type: ignore[misc]
    memory.search(told.questions[0])
    for question in told.questions:
        found = _spend(times["search"], lambda question=question: memory.search(question))  # type: ignore[misc]
        assert len(found) == K, f"{name} finds {len(found)}"
    for question, text in zip(told.questions, told.single[alone:], strict=True):
        memory.add(text)
        _spend(times["after"], lambda question=question: memory.search(question))  # type: ignore[misc]
    size = sum(file.stat().st_size for file in place.rglob("*") if file.is_file())
    return {**times, "bytes": size}


def _spend(times: Times, act: Callable[[], Any]) -> Any:
    clock, processor = time.perf_counter(), time.process_time()
    found = act()
    times.append(((time.perf_counter() - clock) * 1e3, (time.process_time() - processor) * 1e3))
    return found


PEER = """
def main(bench, name, folder):
    import sys
    sys.path.insert(0, bench)
    from measure.memories import taken
    return taken(name, folder)
"""


def measured(name: str, folder: Path) -> dict[str, Any] | None:
    """What `taken` gives in a process of its own; None when a peer cannot be had."""
    os.environ["OMP_NUM_THREADS"] = "1"  # threads of linear algebra that wait in a loop would count as processor time
    package = MEMORIES[name][1]
    if package:
        bench = str(Path(__file__).parents[1])
        found: dict[str, Any] | None = peers.measured(package, PEER, bench=bench, name=name, folder=str(folder))
        return found
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        return process.submit(taken, name, str(folder)).result()


def row(name: str, folder: Path) -> tuple[str, ...]:
    """A line of the table: processor time, and the clock in brackets."""
    package = MEMORIES[name][1]
    named = f"{name} ({peers.version(package)})" if package else name
    found = measured(name, folder)
    if found is None:
        return (named, *["not available"] * (len(HEAD) - 1))
    load = sum(processor for _, processor in found["load"]) / 1e3
    figures = (_shown(found[part]) for part in ("add", "search", "after"))
    return (named, *figures, f"{load:.1f} s", f"{found['bytes'] / 1e6:.0f} MB")


def _shown(times: Sequence[Sequence[float]]) -> str:
    clock, processor = (sorted(column) for column in zip(*times, strict=True))
    p50, p95 = len(times) // 2, int(len(times) * 0.95)
    return f"{processor[p50]:.1f} / {processor[p95]:.1f} ({clock[p50]:.1f} / {clock[p95]:.1f})"
