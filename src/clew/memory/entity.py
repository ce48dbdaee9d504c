"""`EntityMemory`: facts as keys and values, with where each comes from and what it was before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from clew.errors import UnknownName
from clew.history.models import Function, NoModel, as_model
from clew.memory.base import Memory, Query, lines
from clew.memory.changes import Change, Closed, Opened, Tried, change
from clew.memory.extraction import Extraction, Fact, extraction, near, request
from clew.memory.known import Clock, Known
from clew.memory.log import RecordLog
from clew.memory.records import MemoryRecord, Source, digest, identity
from clew.memory.stream import Stream
from clew.memory.tutorial_raw import WINDOW, EntityRaw
from clew.messages import sanitized
from clew.models.base import Model
from clew.models.steps import Offline, Steps, arun, run

ENTITY = "entity"
"""The kind of a record that is a fact: `key`, `value`."""

CLAIM = "claim"
"""The kind of an extracted fact that cannot be traced to what the user said. It is shown to nobody but who asks."""

EXTRACT = "extract"
"""The task of asking about a turn, in the log."""

ATTEMPTS = 5
"""How often `extract` asks about a turn before it stays pending for `extract(again=True)`."""


SHOWN = 60
"""How many facts a retrieval shows, unless it says otherwise: those that have to do with its text, then the newest."""


class Conflict(Struct, frozen=True):
    """Two values of one key of which the later did not say that it replaces the earlier."""

    key: str
    before: MemoryRecord
    after: MemoryRecord


class EntityMemory(Memory):
    """Facts about whoever the agent talks with.

    `append` stores what is said and asks nobody; `extract` then asks the model `llm` about each turn that has not
    been asked about, after the reply was given. Every answer is recorded (ok, none, or failed with its reason and
    text), failed turns are asked about again the next time. A value that does not stand in what the user said is
    not believed: it becomes a claim (`claims`), to be accepted or rejected. A fact holds from when it was said, so
    a turn that is asked about late takes its place in the past and brings nothing back that was denied since.
    `faithful=True` is the `EntityMemory` of the agent-memory tutorial.
    """

    def __init__(
        self,
        llm: Model | Function | None = None,
        *,
        log: RecordLog | None = None,
        name: str = "entities",
        faithful: bool = False,
    ) -> None:
        self._world = Offline(as_model(llm) or NoModel())
        self._raw = EntityRaw(self._asked, WINDOW) if faithful else None
        self._stream = Stream(log, name)

    @property
    def log(self) -> RecordLog:
        """The log the facts are in."""
        return self._stream.log

    # -- the interface

    def append(self, record: MemoryRecord) -> None:
        if self._raw:
            self._raw.append(record)
        else:
            self._stream.append(record)

    def retrieve(self, query: Query | None = None, state: Any = None, observation: Any = None) -> list[MemoryRecord]:
        if self._raw:
            return self._raw.retrieve(query)
        query = query or {}
        most = int(query.get("max_items") or 0)
        facts = {r.key: r for r in self.facts()}
        shown = near(str(query.get("text") or ""), {k: r.value for k, r in facts.items()}, most if most > 0 else SHOWN)
        return [facts[key] for key in shown]

    def summarize(self, max_items: int = 5) -> str:
        return self._raw.summarize(max_items) if self._raw else lines(self.facts(), max_items)

    def evict(self) -> int:
        """Puts the turns that have been asked about out of sight; facts stay."""
        if self._raw:
            return self._raw.evict()
        done: list[MemoryRecord] = []
        for turn in self._turns():
            if self._open(turn[0].id, None):
                break
            done += turn
        if done:
            self._stream.pass_over(done[-1])
        return len(done)

    def reset(self, run_id: str | None = None) -> None:
        """Nothing: facts are learnt, and turns that were not asked about yet still will be."""
        if self._raw:
            self._raw.reset()

    # -- facts

    @property
    def entities(self) -> dict[str, Any]:
        """What is known now: values by key, those known first come first."""
        return dict(self._raw.entities) if self._raw else {r.key: r.value for r in self.facts()}

    def facts(self, at: float | None = None) -> list[MemoryRecord]:
        """The facts now, or as of a time."""
        return self.log.records(ENTITY, at=at)

    def set(self, key: str, value: str, *, sources: tuple[Source, ...] = (), speaker: str = "user") -> MemoryRecord:
        """Makes a value known. Another value of the key ends, and the two are listed as a conflict."""
        return self._put("set", key, value, sources, speaker)

    def replace(self, key: str, value: str, *, sources: tuple[Source, ...] = (), speaker: str = "user") -> MemoryRecord:
        """Makes a value known in the place of the one before."""
        return self._put("replace", key, value, sources, speaker)

    def delete(self, key: str, *, reason: str = "", sources: tuple[Source, ...] = ()) -> None:
        """Ends what is known under a key. Its past stays; only something said later makes it known again.

        Raises `UnknownName` when nothing is known under it.
        """
        if key not in self.entities:
            raise UnknownName(f"nothing is known under {key!r}")
        self.log.shut(entity_id(key), reason=reason, sources=sources)

    def history(self, key: str) -> list[MemoryRecord | Closed]:
        """All values a key had and the tombstones between them, in the order of time. Raises `UnknownName`."""
        return self.log.history(entity_id(key))

    @property
    def conflicts(self) -> list[Conflict]:
        """Where a value followed on another without saying that it replaces it; both as they were told."""
        found = []
        for line in self.log.known.of_kind(ENTITY):
            for old, new in pairwise(version.body for version in line.versions):
                if isinstance(old, Closed) or isinstance(new, Closed) or new.record.metadata.get("op") == "replace":
                    continue
                if identity(old.record) != identity(new.record):
                    found.append(Conflict(new.record.key, old.record, new.record))
        return found

    def changed(self, text_of: Callable[[str], str | None]) -> list[MemoryRecord]:
        """The facts whose source no longer says what it said: `text_of` gives the text of an entry (None: unknown)."""
        return [
            fact
            for fact in self.facts()
            if any((text := text_of(s.entry)) is not None and not s.matches(text) for s in fact.sources)
        ]

    # -- claims

    @property
    def claims(self) -> list[MemoryRecord]:
        """Extracted facts that cannot be traced to what the user said; `metadata["doubt"]` says why."""
        return self.log.records(CLAIM)

    def accept(self, id: str) -> MemoryRecord | None:
        """Believes a claim; gives the fact, or None when the claim was that a fact is over. Raises `UnknownName`."""
        claim = self._claim(id)
        made = None
        if claim.value:
            made = self._put("replace", claim.key, claim.value, claim.sources, claim.speaker)
        else:
            self.delete(claim.key, reason="claim accepted", sources=claim.sources)
        self.log.shut(id, reason="accepted")
        return made

    def reject(self, id: str) -> None:
        """Drops a claim for good. Raises `UnknownName`."""
        self._claim(id)
        self.log.delete(id, reason="rejected")

    # -- extraction

    @property
    def pending(self) -> list[list[MemoryRecord]]:
        """The turns that are still to be understood: not asked about yet, or without success."""
        return [turn for turn in self._turns() if self._open(turn[0].id, None)]

    def attempts(self, turn: str) -> list[Tried]:
        """What came of asking about a turn, by the id of its first record."""
        return list(self.log.tried(EXTRACT, turn))

    @property
    def status(self) -> dict[str, int]:
        """How many turns there are by what their last attempt came to, how many wait, and how many facts and claims."""
        last = (tried[-1].status for tried in self.log.known.trials(EXTRACT).values())
        counts = Counter(last)
        return {
            **{status: counts[status] for status in ("ok", "none", "failed")},
            "pending": len(self.pending),
            "facts": len(self.facts()),
            "claims": len(self.claims),
        }

    def extract(self, *, again: bool = False) -> list[Extraction]:
        """Asks about the pending turns, in their order (`again`: also those that failed too often)."""
        return run(self._extract(again), self._world)

    async def aextract(self, *, again: bool = False) -> list[Extraction]:
        """As `extract`, with the model's async calls."""
        return await arun(self._extract(again), self._world)

    @property
    def error(self) -> str | None:
        """Faithful: the name of the error in the last extraction."""
        return self._raw.error if self._raw else None

    def _extract(self, again: bool) -> Steps[list[Extraction]]:
        if self._raw:
            return [Extraction("", "ok", tuple(Fact("set", k, str(v)) for k, v in self._raw.extract().items()))]
        results = []
        for turn in self._turns():
            if self._open(turn[0].id, None if again else ATTEMPTS):
                result = yield from extraction(turn, self.entities)
                self._take(turn, result)
                results.append(result)
        return results

    def _take(self, turn: list[MemoryRecord], result: Extraction) -> None:
        """Stores what came of asking about a turn: facts, claims and the attempt, together or not at all."""
        asked = turn[0]
        sources = (Source.of(asked.id, asked.text),)

        def decide(known: Known, now: Clock) -> Iterator[Change]:
            for fact in result.facts:
                if fact.op == "delete":
                    reason = fact.quote or asked.text
                    yield change(now(), Closed(entity_id(fact.key), asked.created, reason, False, sources))
                    continue
                made = _record(ENTITY, fact, sources, asked.speaker, asked.step_id)
                made = self.log.whole(replace(made, id=entity_id(fact.key), valid_from=asked.created))
                if not known.has(made):
                    yield change(now(), Opened(made))
            for fact in result.doubtful:
                id = digest("\0".join((CLAIM, asked.id, fact.op, fact.key, fact.value)))[:16]
                if not known.knows(id):
                    made = replace(_record(CLAIM, fact, sources, "", asked.step_id), id=id)
                    yield change(now(), Opened(self.log.whole(made)))
            yield change(now(), Tried(asked.id, EXTRACT, result.status, result.reason, result.raw))

        self.log.commit(decide)

    def _turns(self) -> list[list[MemoryRecord]]:
        """What was said, by turns: each begins with the user."""
        turns: list[list[MemoryRecord]] = []
        for record in self._stream.records():
            if record.role == "user":
                turns.append([record])
            elif turns:
                turns[-1].append(record)
        return turns

    def _open(self, turn: str, most: int | None) -> bool:
        tried = self.attempts(turn)
        return not any(t.status != "failed" for t in tried) and (most is None or len(tried) < most)

    def _put(self, op: str, key: str, value: str, sources: tuple[Source, ...], speaker: str) -> MemoryRecord:
        if not key.strip() or not value.strip():
            raise UnknownName("a fact needs a key and a value; to end one, delete its key")
        fact = sanitized(Fact("set" if op == "set" else "replace", key, value))[0]
        record = replace(_record(ENTITY, fact, sources, speaker, 0), id=entity_id(fact.key))

        def decide(known: Known, now: Clock) -> Iterator[Change]:
            at = now()
            yield change(at, Opened(self.log.whole(replace(record, valid_from=at))))

        self.log.commit(decide)
        return self.log.newest(record.id)

    def _claim(self, id: str) -> MemoryRecord:
        claim = self.log.get(id)
        if claim is None or claim.kind != CLAIM:
            raise UnknownName(f"there is no claim {id!r}")
        return claim

    def _asked(self, turn: list[MemoryRecord], known: Mapping[str, Any]) -> str:
        return self._world.model.complete(request(turn, known)).text


def entity_id(key: str) -> str:
    """The id of the record of a key: the same in every memory."""
    return digest(f"{ENTITY}\0{key}")[:16]


def _record(kind: str, fact: Fact, sources: tuple[Source, ...], speaker: str, step: int) -> MemoryRecord:
    metadata = {k: v for k, v in (("op", fact.op), ("quote", fact.quote), ("doubt", fact.doubt)) if v}
    text = f"{fact.key}: {fact.value}" if fact.value else f"{fact.key}: no longer so"
    return MemoryRecord(
        "system",
        text,
        step,
        metadata,
        kind=kind,
        key=fact.key,
        value=fact.value,
        speaker=speaker,
        sources=sources,
        confidence=0.0 if fact.doubt else 1.0,
    )
