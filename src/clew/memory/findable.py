"""What is findable of the records of a log, as its indexes read it: a row for each version, under the version's uid."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from clew.index import Row
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

    `stale` is set when something was purged that an index may have read as the context of what was said after it:
    the indexes are to be made again. The file `note` says so to other processes, also when this one is killed.
    """

    def __init__(self, log: RecordLog, about: Sequence[str] = ABOUT, note: Path | None = None) -> None:
        self.stale = note is not None and note.exists()
        self._note = note
        self._log = log
        self._about = tuple(about)

    def rows(self, namespace: str, after: int) -> Iterator[Row]:
        """The rows of the log after a position. The namespace is that of the log."""
        said: OrderedDict[str, dict[str, list[str]]] = OrderedDict()
        for told in self._log.told(after):
            if told.record is None:
                if after > 0:  # what was read before has it as the context of others
                    self._outdate()
                yield Row(told.position, told.uid)
                continue
            session = told.record.session
            before = said.pop(session, None) if session else {}
            if before is None:
                before = self._before(told.uid, told.record)
            before.pop(told.record.id, None)
            yield self._row(told.position, told.uid, told.record, before)
            if session:
                before[told.record.id] = _end(told.record)
                said[session] = dict(list(before.items())[-CONTEXT_RECORDS - 1 :])
                if len(said) > SESSIONS:
                    said.popitem(last=False)

    def renewed(self) -> None:
        """The indexes have been deleted."""
        self.stale = False
        if self._note is not None:
            self._note.unlink(missing_ok=True)

    def _outdate(self) -> None:
        self.stale = True
        if self._note is not None:
            with suppress(OSError):  # where it cannot be written, no index can
                self._note.parent.mkdir(parents=True, exist_ok=True)
                self._note.touch()

    def _before(self, uid: str, record: MemoryRecord) -> dict[str, list[str]]:
        """The ends of the last records of the session before a version was told, by id."""
        near = self._log.around([uid], CONTEXT_RECORDS + 1).get(uid, ())
        before = [other for other, distance in near if distance < 0]
        held = self._log.held(before, record.created)
        return {held[other].id: _end(held[other]) for other in before if other in held}

    def _row(self, position: int, uid: str, record: MemoryRecord, before: dict[str, list[str]]) -> Row:
        text, about = spoken(record), list(self._facts(record))
        last = [end for texts in before.values() for end in texts]
        found = []
        for start, end in pieces(text):
            piece = text[start:end]
            found.append({"text": piece, "context": context(last, about), MEANING: embedded(piece, last)})
            last.append(piece)
        facets = {name: str(getattr(record, name)) for name in FACETS}
        return Row(position, uid, tuple(found), {name: value for name, value in facets.items() if value})

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
