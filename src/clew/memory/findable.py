"""What is findable of the records of a log, as its indexes read it: a row for each version, under the version's uid."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

from clew.index import Row
from clew.memory.known import Told
from clew.memory.log import RecordLog
from clew.memory.ranking import CONTEXT_RECORDS, context, embedded, pieces
from clew.memory.records import MemoryRecord, text_of

FIELDS = ("text", "context")
"""What is looked for: a record's own text, and what stands around it."""

FACETS = ("kind", "key", "role", "speaker", "session")
"""What a query may ask for exactly: `kind:fact`, `speaker:Ann`."""

MEANING = "meaning"
"""The text of a piece that is embedded."""

ABOUT = ("place", "title", "tags")
"""The metadata that are indexed beside a record's text."""

SESSIONS = 1_000
"""Sessions whose last texts are kept at hand while a log is read."""


class Findable:
    """The rows of a log. `about` names the metadata that are indexed beside the text.

    The context of a version are the last records of its session that held when it was told. While the log is read
    they are kept at hand; where reading begins in the middle of a session, they are asked of the log.
    """

    def __init__(self, log: RecordLog, about: Sequence[str] = ABOUT) -> None:
        self._log = log
        self._about = tuple(about)

    def rows(self, namespace: str, after: int) -> Iterator[Row]:
        """The rows of the log after a position. The namespace is that of the log."""
        said: OrderedDict[str, dict[str, list[str]]] = OrderedDict()
        for told in self._log.told(after):
            if told.record is None:
                yield Row(told.position, told.uid)
                continue
            session = told.record.session
            before = said.pop(session, None) if session else {}
            if before is None:
                before = self._before(told, told.record)
            before.pop(told.record.id, None)
            yield self._row(told, told.record, [text for texts in before.values() for text in texts])
            if session:
                before[told.record.id] = _end(told.record)
                said[session] = dict(list(before.items())[-CONTEXT_RECORDS - 1 :])
                if len(said) > SESSIONS:
                    said.popitem(last=False)

    def _before(self, told: Told, record: MemoryRecord) -> dict[str, list[str]]:
        """The ends of the last records of the session before this one was told, by id."""
        near = [
            uid for uid, distance in self._log.around([told.uid], CONTEXT_RECORDS + 1).get(told.uid, ()) if distance < 0
        ]
        held = self._log.held(near, record.created)
        return {held[uid].id: _end(held[uid]) for uid in near if uid in held}

    def _row(self, told: Told, record: MemoryRecord, before: Sequence[str]) -> Row:
        text = spoken(record)
        about = list(self._facts(record))
        found = []
        for start, end in pieces(text):
            piece = text[start:end]
            found.append(
                {"text": piece, "context": context(before, about), MEANING: embedded(piece, before)},
            )
            before = [*before, piece]
        facets = {name: str(getattr(record, name)) for name in FACETS}
        return Row(told.position, told.uid, tuple(found), {name: value for name, value in facets.items() if value})

    def _facts(self, record: MemoryRecord) -> Iterable[str]:
        yield _date(record.valid_from)
        yield record.key
        yield record.value
        for name in self._about:
            yield text_of(record.metadata.get(name))


def spoken(record: MemoryRecord) -> str:
    """A record's text as it is indexed: with who said it, if that is more than a role."""
    named = record.speaker and record.speaker != record.role
    return f"{record.speaker}: {record.text}" if named else record.text


def _end(record: MemoryRecord) -> list[str]:
    """The last pieces of a record: as much of it as can be the context of the next one."""
    text = spoken(record)
    return [text[start:end] for start, end in pieces(text)[-CONTEXT_RECORDS:]]


def _date(seconds: float | None) -> str:
    """A date in words: `8 May 2023`; "" for none, or one that calendars do not have."""
    if seconds is None:
        return ""
    try:
        day = datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError, ValueError):
        return ""
    return f"{day.day} {day:%B %Y}"
