"""Recall: the records of a log that answer a question, found by words and, with an embedder, by meaning.

    recall = Recall(log, Multilingual())
    for hit in recall.recall("where did Ann move last summer?", k=5):
        print(hit.record.text, hit.why)

No model is asked. The same log and question give the same answer, whichever process asks and however far the
indexes have read: a record is findable the moment it is stored.
"""

from __future__ import annotations

import re
import tempfile
import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from heapq import nlargest
from operator import itemgetter
from pathlib import Path
from typing import Literal

from msgspec.structs import replace

from clew.index import FullText, Hit
from clew.memory import ranking
from clew.memory.embedding import Embedder, EmbeddingError, Vector, adapted
from clew.memory.entity import CLAIM
from clew.memory.findable import ABOUT, FACETS, FIELDS, MEANING, Findable, spoken
from clew.memory.log import RecordLog
from clew.memory.ranking import Place
from clew.memory.records import MemoryRecord, digest, folded
from clew.memory.rerank import Reranker
from clew.memory.when import LONGEST, times
from clew.memory.why import Recalled, Why
from clew.text import NOTHING, Query, parse, spans, terms
from clew.text.query import Any, Phrase, Prefix, Within, Word

DAY = 86_400.0

FRESH = 500
"""Texts, about, that a recall has embedded if they are new: a second or two with the offline embedder. What is more
than that is found by its words until `catch_up`."""

RERANKED = 30
"""Records, the best ones, that a reranker is given, or from which unlike ones are chosen."""

Dates = Literal["gain", "only", "ignore"]


class Recall:
    """Finds the records of a log (and of its namespace) that answer a question.

    `embedder` None means by words alone, which is a complete mode; `clew.memory.embedders.Multilingual()` works
    offline. `folder` is where the indexes are kept: beside the store's file if it is not given, and in a temporary
    folder for stores that are no file. They can be deleted at any time. `failure` is why the last recall had to do
    without meaning, if the embedder failed.

    - `half_life`: days after which a record counts half as much; None for no difference.
    - `balance`: below 1, records unlike each other are preferred among the best (maximal marginal relevance).
    - `dates`: records of a time that the question names ("in May", 上周) gain, or `"only"` they are found; or
      `"ignore"` it.
    - `rerank`: looks at the best ones again and decides their order.
    - `about`: names of metadata whose values are indexed beside the text.
    """

    def __init__(
        self,
        log: RecordLog,
        embedder: Embedder | Callable[[str], Vector] | None = None,
        folder: str | Path | None = None,
        *,
        half_life: float | None = None,
        balance: float = 1.0,
        dates: Dates = "gain",
        rerank: Reranker | None = None,
        about: Sequence[str] = ABOUT,
    ) -> None:
        self.failure: EmbeddingError | None = None
        self.log = log
        self.half_life = half_life
        self.balance = balance
        self.dates = dates
        self.rerank = rerank
        place = self._place(folder)
        self._source = Findable(log, about, place / f"{digest(log.path)}.purged")
        fields = dict(zip(FIELDS, (1.0, ranking.CONTEXT_WEIGHT), strict=True))
        self._words = FullText(place / "words", self._source, fields, FACETS, mark=lambda _, at: log.mark_of(at))
        self._meaning = None if embedder is None else Meaning(log, adapted(embedder), self._source, place / "meaning")

    def _place(self, folder: str | Path | None) -> Path:
        if folder is not None:
            return Path(folder)
        where = self.log.store.where
        if "://" not in where:
            return Path(f"{where}.index")
        kept = tempfile.TemporaryDirectory(prefix="clew-index-")
        weakref.finalize(self, kept.cleanup)
        return Path(kept.name)

    def catch_up(self, progress: Callable[[int], None] = lambda texts: None) -> None:
        """Has the indexes read all of the log, and everything embedded. A recall does so by itself as long as little
        is new; this is for after much was written. `progress` is told after each batch how many texts were embedded.

        Raises `StoreError` when an index cannot be written, and what the embedder raises; what was done is kept.
        """
        self._catch_up(progress)
        if self._source.stale:
            self.clear()
            self._catch_up(progress)

    def _catch_up(self, progress: Callable[[int], None]) -> None:
        self._words.catch_up(self.log.path)
        if self._meaning is not None:
            self._meaning.index.catch_up(progress)

    def clear(self) -> None:
        """Deletes the indexes, and the vectors of what the log no longer has: they hold what was purged, also as the
        context of what was said after it. They are made again when they are needed; the first recall or `catch_up`
        after a purge does the same. Raises `StoreError` when they cannot be deleted."""
        self._words.clear(self.log.path)
        if self._meaning is not None:
            self._meaning.index.renew()
        self._source.renewed()

    def recall(
        self, query: str, k: int = 10, *, at: float | None = None, kinds: Collection[str] = ()
    ) -> list[Recalled]:
        """The `k` best records for a question, the best first, each with why.

        Only records that hold now are given, or with `at` those that held at that time by what was known then; of
        some `kinds`, or of all but claims, which nobody has confirmed. What is said twice in the same words is given
        once. The query language counts: `"a phrase"`, `dock*`, `a AND b`, `-not`, `speaker:Ann`, `kind:fact`; a query
        of operators gives only records that match it by their own text. A query without a word asks for nothing and
        gives nothing.
        """
        kinds = frozenset([kinds] if isinstance(kinds, str) else kinds)  # a text is a collection of letters
        asked = parse(query, {*FIELDS, *FACETS})
        if asked == NOTHING or k <= 0:
            return []
        at = self.log.as_of(at)
        found = _Search(self, query, asked, k, at, kinds).results()
        if not self._source.stale:
            return found
        self.clear()
        return _Search(self, query, asked, k, at, kinds).results()

    def found(self, query: Query, depth: int, kinds: Collection[str]) -> list[Hit]:
        """The pieces that are best by their words."""
        filters = {"kind": kinds} if kinds else {}
        return self._words.search(query, depth, namespace=self.log.path, filters=filters)

    def near(self, text: str, depth: int) -> list[tuple[str, float]]:
        """The versions that have the `depth` pieces nearest in meaning, the nearest first, with their cosines."""
        if self._meaning is None:
            return []
        try:
            found = self._meaning.near(text, depth)
        except EmbeddingError as error:
            self.failure = error
            return []
        self.failure = None
        return found


class Meaning:
    """The vectors of a log's records, and their index. `waiting` are texts that have none yet."""

    def __init__(self, log: RecordLog, embedder: Embedder, source: Findable, folder: Path) -> None:
        from clew.index.vectors import VectorIndex  # needs NumPy, which words do without
        from clew.memory.embedded import Vectors

        self._vectors = Vectors(embedder, log.store, log.path)
        self.index = VectorIndex(
            folder,
            source,
            self._vectors,
            namespace=log.path,
            text=itemgetter(MEANING),
            mark=log.mark_of,
            store=log.store,
            name="meaning",
        )

    def near(self, text: str, depth: int) -> list[tuple[str, float]]:
        """The versions that have the `depth` pieces nearest in meaning, the nearest first, with their cosines."""
        best: dict[str, float] = {}
        for uid, _, score in self.index.search(self._vectors.query(text), depth, fresh=FRESH):
            best.setdefault(uid, score)
        return list(best.items())


class _Search:
    """One question: what is found for it, and what each thing found gets."""

    def __init__(self, recall: Recall, text: str, asked: Query, k: int, at: float, kinds: frozenset[str]) -> None:
        self._recall = recall
        self._text = text
        self._strict = not _plain(asked)
        self._asked = Within(FIELDS[0], asked) if self._strict else asked
        self._said = {span.term: text[span.start : span.end] for span in spans(text[:LONGEST])}
        self._k = k
        self._at = at
        self._kinds = kinds
        self._times = times(text, at) if recall.dates != "ignore" else []
        self._best: dict[str, Hit] = {}
        self._records: dict[str, MemoryRecord] = {}
        self._places: dict[str, Place] = {}

    def results(self) -> list[Recalled]:
        """The best records."""
        whys = self._shared(self._meant(self._found()))
        best = self._distinct(whys)
        if self._recall.rerank is not None:
            best = self._reranked(best, whys, self._recall.rerank)
        if self._recall.balance < 1:
            best = self._diverse(best, whys)
        return [
            Recalled(self._records[uid], whys[uid].total, self._explained(uid, whys[uid])) for uid in best[: self._k]
        ]

    def _distinct(self, whys: Mapping[str, Why]) -> list[str]:
        """The best versions, what says the same in the same words once; as many as will be looked at."""
        again = self._recall.rerank is not None or self._recall.balance < 1
        wanted = max(RERANKED, self._k) if again else self._k
        best: dict[tuple[str, str], str] = {}
        for uid in sorted(whys, key=lambda uid: (-whys[uid].total, -self._records[uid].created, uid)):
            record = self._records[uid]
            best.setdefault((folded(record.text), record.speaker), uid)
            if len(best) == wanted:
                break
        return list(best.values())

    def _explained(self, uid: str, why: Why) -> Why:
        """With the words it was found by, as the question has them."""
        hit = self._best.get(uid)
        gains = hit.gains if hit is not None else ()
        return replace(why, terms=tuple(replace(gain, term=self._said.get(gain.term, gain.term)) for gain in gains))

    # -- what is found

    def _found(self) -> dict[str, Why]:
        """Each version that holds, with what its words got."""
        for hit in self._hits():
            self._best.setdefault(hit.id, hit)  # of its pieces the best, which comes first
        top = max((hit.score for hit in self._best.values()), default=0.0)
        if top <= 0:  # found by a facet alone
            return {uid: Why(words=1.0) for uid in self._best}
        named = self._named(self._best)
        found = {}
        for uid, hit in self._best.items():
            part = hit.score / top
            speaker = ranking.SPEAKER_GAIN * part if uid in named else 0.0
            time = ranking.TIME_GAIN * (part + speaker) if self._timely(self._records[uid]) else 0.0
            found[uid] = Why(words=part, speaker=speaker, time=time)
        return _scaled(found)

    def _hits(self) -> list[Hit]:
        """The best pieces of records that hold; more are taken from the index until there are enough."""
        depth = max(ranking.DEPTH, 4 * self._k)
        while True:
            hits = self._recall.found(self._asked, depth, self._kinds)
            self._take({hit.id for hit in hits})
            kept = [hit for hit in hits if hit.id in self._records]
            if len(hits) < depth or len(kept) >= depth // 2:
                return kept
            depth *= 4

    def _meant(self, found: dict[str, Why]) -> dict[str, Why]:
        """With those that are near in meaning."""
        if self._strict:
            return found
        depth = max(ranking.NEAREST, 2 * self._k)
        while True:
            near = self._recall.near(self._text, depth)
            self._take([uid for uid, _ in near])
            kept = {uid: score for uid, score in near if uid in self._records}
            if len(near) < depth // 4 or len(kept) >= depth // 4:
                break
            depth *= 4
        meant = {uid: ranking.VECTOR_WEIGHT * part for uid, part in ranking.spread(kept).items() if part > 0}
        return found | {uid: replace(found.get(uid, Why()), vector=part) for uid, part in meant.items()}

    def _take(self, uids: Collection[str]) -> None:
        """Takes up those of the versions that hold and may be given."""
        new = [uid for uid in uids if uid not in self._records]
        for uid, record in self._recall.log.held(new, self._at).items():
            wanted = record.kind in self._kinds if self._kinds else record.kind != CLAIM  # which nobody has confirmed
            if wanted and (self._recall.dates != "only" or self._in(record)):
                self._records[uid] = record
                self._places[uid] = Place.of(spoken(record), record.session)

    def _named(self, uids: Collection[str]) -> set[str]:
        """The versions said by the one whom the question names, if it names one of those who said any."""
        said: dict[str, set[str]] = {}
        for uid in uids:
            record = self._records[uid]
            if record.speaker and record.speaker != record.role:
                said.setdefault(record.speaker, set()).add(uid)
        named = [speaker for speaker in said if _names(self._text, speaker)]
        return said[named[0]] if len(named) == 1 else set()

    def _timely(self, record: MemoryRecord) -> bool:
        return bool(self._times) and self._in(record)

    def _in(self, record: MemoryRecord) -> bool:
        """Whether a record is of a time that the question names, if it names one: a fact (what has a key) for as long
        as it holds, anything else when it was said."""
        lasts = record.valid_to if record.key else record.valid_from
        return not self._times or any(span.meets(record.valid_from, lasts) for span in self._times)

    # -- what is around it

    def _shared(self, found: dict[str, Why]) -> dict[str, Why]:
        """With what records have from those around them, and how much they are trusted and how old they are."""
        scores = {uid: why.total for uid, why in found.items()}
        leading = nlargest(ranking.SHARING, scores, key=lambda uid: (scores[uid], uid))
        near = self._recall.log.around(leading, max(ranking.SHARES)) if leading else {}
        if not self._strict:
            self._take({uid for one in leading[: ranking.INCOMING] for uid, _ in near.get(one, ())})
        there = found if self._strict else self._records
        near = {uid: [one for one in some if one[0] in there] for uid, some in near.items()}
        shares = ranking.shares(scores, near, self._places.__getitem__)
        return {uid: self._weighed(uid, found.get(uid, Why()), share) for uid, share in shares.items()}

    def _weighed(self, uid: str, why: Why, share: ranking.Share) -> Why:
        record, half_life = self._records[uid], self._recall.half_life
        age = 1.0
        if half_life is not None:
            age = ranking.decay(self._at - (record.valid_from or record.created), half_life * DAY)
        trust = ranking.DOUBT + (1 - ranking.DOUBT) * min(max(record.confidence, 0.0), 1.0)
        return replace(why, neighbours=share.neighbours, session=share.session, confidence=trust, age=age)

    # -- in which order

    def _reranked(self, best: Sequence[str], whys: dict[str, Why], rerank: Reranker) -> list[str]:
        given = rerank(self._text, [spoken(self._records[uid]) for uid in best])
        scores = {uid: float(score) for uid, score in zip(best, given, strict=True)}
        whys.update((uid, replace(whys[uid], reranked=score)) for uid, score in scores.items())
        return sorted(best, key=lambda uid: -scores[uid])

    def _diverse(self, best: Sequence[str], whys: Mapping[str, Why]) -> list[str]:
        held = {uid: frozenset(terms(self._records[uid].text).stream) for uid in best}
        scores = {uid: whys[uid].total for uid in best}
        scores |= {uid: score for uid in best if (score := whys[uid].reranked) is not None}

        def alike(one: str, other: str) -> float:
            return ranking.overlap(held[one], held[other])

        return ranking.diverse(scores, alike, self._recall.balance, self._k)


def _scaled(found: Mapping[str, Why]) -> dict[str, Why]:
    """The same in parts of the best one."""
    top = max(why.total for why in found.values())
    return {
        uid: replace(why, words=why.words / top, speaker=why.speaker / top, time=why.time / top)
        for uid, why in found.items()
    }


def _names(text: str, name: str) -> bool:
    """Whether a text names someone: the name as a word of its own, where words are set apart."""
    edge = r"(?<!\w)" if name[:1].isascii() else "", r"(?!\w)" if name[-1:].isascii() else ""
    return re.search(f"{edge[0]}{re.escape(name)}{edge[1]}", text, re.IGNORECASE) is not None


def _plain(query: Query) -> bool:
    """Whether a query is words side by side, so that what is near in place or meaning may answer it, too."""
    parts = query.parts if isinstance(query, Any) else (query,)
    return any(isinstance(part, Word) for part in parts) and all(isinstance(p, Word | Phrase | Prefix) for p in parts)
