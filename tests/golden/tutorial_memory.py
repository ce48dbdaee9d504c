"""The agent-memory tutorial's entities, vectors and saved facts: faithful, and what a correct product does."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from clew.errors import BadReply
from clew.memory import EntityMemory, HybridMemory, MemoryRecord, RecordLog, VectorMemory, WindowMemory
from clew.memory.extraction import facts_in
from clew.memory.saved import load, save
from clew.memory.tutorial_raw import EntityRaw, SimilarRaw, load_memory, parsed, save_memory
from golden.runner import diff

Json = dict[str, Any]


def entity_memory(case: Json) -> Json:
    return EntityTalk(case, hybrid=False).came_to()


def hybrid_memory(case: Json) -> Json:
    return EntityTalk(case, hybrid=True).came_to()


def vector_memory(case: Json) -> Json:
    talk = VectorTalk(case)
    return {**talk.came_to(), "product": VectorProduct(case)}


def json_parsing(case: Json) -> Json:
    """What each answer comes to in the tutorial's parser, and in ours: the facts, or "failure"."""
    rows, ours = [], []
    for answer in case["input"]["raw_answers"]:
        try:
            result = parsed(answer)
            rows.append({"result": result, "note": type(result).__name__})
        except json.JSONDecodeError as error:
            rows.append({"result": {}, "note": type(error).__name__})
        except (IndexError, AttributeError) as error:
            rows.append({"note": type(error).__name__})
        try:
            ours.append({f.key: f.value for f in facts_in(answer)})
        except BadReply:
            ours.append("failure")
    return {"tutorial": rows, "ours": ours}


def saved(case: Json) -> Json:
    """The tutorial's file; ours is read back as well."""
    entities = case["input"]["entities"]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memory.json"
        missing = load_memory(path)
        save_memory(entities, path)
        output = {
            "file_text": path.read_text("utf-8"),
            "loaded": load_memory(path),
            "loaded_from_missing_file": missing,
        }
        memory = EntityMemory()
        for key, value in entities.items():
            memory.set(key, value)
        save(memory.log, Path(folder) / "ours.json")
        again = RecordLog()
        load(Path(folder) / "ours.json", again)
        return {**output, "ours": EntityMemory(log=again).entities}


COMPONENTS = {
    "EntityMemory": entity_memory,
    "HybridMemory": hybrid_memory,
    "VectorMemory": vector_memory,
    "EntityMemory JSON answer parsing": json_parsing,
    "save_memory / load_memory": saved,
}


class EntityTalk:
    """A conversation with the tutorial's memory, beside it the same with ours."""

    def __init__(self, case: Json, *, hybrid: bool) -> None:
        self.case = case
        self.hybrid = hybrid
        self.calls: list[Json] = []
        self.turns: list[Json] = []
        self.transcript: list[MemoryRecord] = []
        self.memory = EntityRaw(self._extract, case["config"].get("window_size", 6), silent=hybrid)
        for text in case["input"]["user_messages"]:
            self._turn(text)

    def came_to(self) -> Json:
        entities = self.memory.entities
        stats = {"turns": len(self.turns), "entities": entities, "entity_count": len(entities)}
        if self.hybrid:
            stats["window_messages"] = len(self.memory.records)
        transcript = [[r.role, r.content] for r in self.transcript]
        output = {"transcript": transcript, "per_turn": self.turns, "stats": stats}
        calls = [{"n": n, **call} for n, call in enumerate(self.calls, 1)]
        return {"llm_calls": calls, "output": output, "product": EntityProduct(self.case)}

    def _turn(self, text: str) -> None:
        self._say("user", text)
        given = self.memory.retrieve()
        said = [r for r in given if r.kind != "entity"]
        known = dict(self.memory.entities) or None
        assert [r.content for r in given if r.kind == "entity"] == ([self.memory.shown()] if known else [])
        self.calls.append(
            {
                "kind": "chat",
                "input_message_indices": self._places(said),
                "first_role": said[0].role if said else None,
                "entities_in_system": known,
            }
        )
        self._say("assistant", _nth(self.case["input"].get("replies"), len(self.turns), f"REPLY-{len(self.turns) + 1}"))
        try:
            new = self.memory.extract()
        except (IndexError, AttributeError, TypeError, ValueError):
            new = {}
        turn = {
            "new_entities": new,
            "entities_after": dict(self.memory.entities),
            "extraction_error": self.memory.error,
        }
        if self.hybrid:
            turn["window_after"] = self._places(self.memory.records)
        else:
            turn["stored_messages"] = len(self.memory.records)
        self.turns.append(turn)

    def _say(self, role: str, text: str) -> None:
        self.transcript.append(MemoryRecord(role, text, len(self.turns)))
        self.memory.append(self.transcript[-1])

    def _places(self, records: list[MemoryRecord]) -> list[int]:
        where = {id(r): i for i, r in enumerate(self.transcript)}
        return [where[id(r)] for r in records]

    def _extract(self, records: list[MemoryRecord], known: Any) -> str | None:
        self.calls.append(
            {"kind": "extract", "input_message_indices": self._places(records), "known_entities": dict(known)}
        )
        return _extraction(self.case, len(self.turns))


class EntityProduct:
    """The same conversation with our memory: a window and entities, asked about after every reply."""

    def __init__(self, case: Json) -> None:
        self.case = case
        self.asked = 0
        log = RecordLog()
        self.entities = EntityMemory(self._answer, log=log)
        window = WindowMemory(case["config"].get("window_size", 6), log=log)
        memory = HybridMemory(self.entities, window)
        self.requests = []
        self.results = []
        for step, text in enumerate(case["input"]["user_messages"]):
            memory.append(MemoryRecord("user", text, step))
            self.requests.append([r for r in memory.retrieve() if r.kind != "entity"])
            memory.append(
                MemoryRecord("assistant", _nth(case["input"].get("replies"), step, f"REPLY-{step + 1}"), step)
            )
            before = self.asked
            self.entities.extract()
            self.asked = before + 1
            self.results.append(self.entities.status)

    def faults(self) -> Iterator[str]:
        """What is wrong with any conversation."""
        said = self.case["input"]["user_messages"]
        for turn, request in enumerate(self.requests):
            if request[0].role != "user":
                yield f"product: the request of turn {turn} does not begin with the user"
            if request[-1].text != said[turn]:
                yield f"product: the request of turn {turn} does not end with its question"
            if any(not r.text.strip() for r in request):
                yield f"product: the request of turn {turn} holds an empty message"
        texts = " ".join(said)
        for key, value in self.entities.entities.items():
            if not set(value) & set(texts):
                yield f"product: {key} is {value}, which nobody said"
        status = self.results[-1]
        if status["ok"] + status["none"] + status["failed"] != len(said):
            yield f"product: {len(said)} turns, but {status}"
        if status["failed"] != status["pending"]:
            yield f"product: {status['failed']} turns failed, {status['pending']} are pending"

    def failures(self) -> int:
        """How many turns have not been understood."""
        return self.results[-1]["failed"]

    def _answer(self, messages: list[dict[str, str]]) -> str:
        turn = next(i for i, text in enumerate(self.case["input"]["user_messages"]) if text in messages[-1]["content"])
        return _extraction(self.case, turn) or ""


class VectorTalk:
    """The tutorial's vector conversation."""

    def __init__(self, case: Json) -> None:
        self.case = case
        self.embedded = 0
        self.calls: list[Json] = []
        self.turns: list[Json] = []
        config = case["config"]
        self.memory = SimilarRaw(self._embed, config.get("top_k", 3), config.get("similarity_threshold", 0.5))
        for role, text in case["input"].get("seed_history", []):
            self.memory.append(MemoryRecord(role, text))
        for text in case["input"]["user_messages"]:
            self._turn(text)

    def came_to(self) -> Json:
        records = self.memory.records
        stats = {
            "store_size": len(records),
            "dimension": len(self.memory.vectors[0]) if self.memory.vectors else 0,
            "embedding_calls": self.embedded,
        }
        transcript = [[r.role, r.content] for r in records]
        calls = [{"n": n, **call} for n, call in enumerate(self.calls, 1)]
        return {"llm_calls": calls, "output": {"transcript": transcript, "per_turn": self.turns, "stats": stats}}

    def _turn(self, text: str) -> None:
        records = self.memory.records
        scores = self._scores(text)
        hits = [records.index(r) for r in self.memory.retrieve({"text": text})]
        self.calls.append(
            {
                "kind": "chat",
                "input_message_indices": [len(records)],
                "first_role": "user",
                "retrieved_in_system": hits or None,
            }
        )
        self.memory.append(MemoryRecord("user", text))
        reply = _nth(self.case["input"].get("replies"), len(self.turns), f"REPLY-{len(self.turns) + 1}")
        self.memory.append(MemoryRecord("assistant", reply))
        self.turns.append(
            {
                "scores": [[i, round(s, 6)] for i, s in enumerate(scores)],
                "retrieved": hits,
                "store_size_after": len(records),
                "embedding_calls_so_far": self.embedded,
            }
        )

    def _scores(self, text: str) -> list[float]:
        before = self.embedded
        scores = self.memory.scores(text)
        self.embedded = before
        return scores

    def _embed(self, text: str) -> list[float]:
        self.embedded += 1
        vector: list[float] = self.case["input"]["embeddings"][text]
        return vector


class VectorProduct:
    """The same conversation with our memory: nearest records, and a window."""

    def __init__(self, case: Json) -> None:
        config = case["config"]
        log = RecordLog()
        vectors = case["input"]["embeddings"]
        nearest = VectorMemory(
            lambda text: vectors[text],
            config.get("top_k", 3),
            threshold=config.get("similarity_threshold", 0.5),
            log=log,
        )
        memory = HybridMemory(nearest, WindowMemory(6, log=log))
        for role, text in case["input"].get("seed_history", []):
            memory.append(MemoryRecord(role, text))
        self.hits: list[list[str]] = []
        self.windows: list[list[str]] = []
        for turn, text in enumerate(case["input"]["user_messages"]):
            self.hits.append([r.text for r in nearest.retrieve({"text": text})])
            memory.append(MemoryRecord("user", text))
            self.windows.append([r.text for r in memory.memories[1].retrieve()])
            memory.append(MemoryRecord("assistant", _nth(case["input"].get("replies"), turn, f"REPLY-{turn + 1}")))
        self.asked = case["input"]["user_messages"]

    def faults(self) -> Iterator[str]:
        """What is wrong with any conversation."""
        for turn, hits in enumerate(self.hits):
            if any(not text.strip() for text in hits):
                yield f"product: turn {turn} is shown an empty text"
            if self.asked[turn] in hits:
                yield f"product: turn {turn} is shown its own question"
            if len(set(hits)) < len(hits):
                yield f"product: turn {turn} is shown a text twice"
            if self.windows[turn][-1] != self.asked[turn]:
                yield f"product: the window of turn {turn} does not end with its question"


def compare(case: Json, got: Json) -> list[str]:
    """Where the faithful output differs, and where the product is not what the case requires.

    Of an error, its class is compared: it must be named where the case names one.
    """
    required = case.get("required", {})
    if case["component"] == "save_memory / load_memory":
        ours = got.pop("ours")
        return [*diff(case["output"], got), *diff(case["input"]["entities"], ours, "ours")]
    if case["component"] == "EntityMemory JSON answer parsing":
        found = list(diff(required["expected"], got["ours"], "required"))
        for i, (row, ours) in enumerate(zip(case["output"]["tutorial"], got["tutorial"], strict=True)):
            if ours.pop("note") not in json.dumps(row):
                found.append(f"tutorial[{i}]: not as {row}")
            if "result" in ours and "result" in row:
                found += diff(row["result"], ours["result"], f"tutorial[{i}]")
        return found
    product = got.pop("product")
    turns = zip(case["output"]["per_turn"], got["output"]["per_turn"], strict=True)
    for row, ours in turns:
        if ours.get("extraction_error") and ours["extraction_error"] in str(row.get("extraction_error")):
            ours["extraction_error"] = row["extraction_error"]
    found = list(diff({"llm_calls": case["llm_calls"], "output": case["output"]}, got, "case"))
    found += product.faults()
    if "failures_counted" in required:
        found += diff(required["failures_counted"], product.failures(), "required.failures_counted")
    return found


def _extraction(case: Json, turn: int) -> str | None:
    given = case["input"].get("extractions")
    return given[turn] if given is not None and turn < len(given) else "{}"


def _nth(given: list[str] | None, n: int, default: str) -> str:
    return str(given[n]) if given is not None and n < len(given) else default
