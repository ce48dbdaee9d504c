"""Search in the log of a session: everything that was said or done in it, on every branch, also what is out of view.

It is an index that follows the log, searched together with what it has not read yet: an entry can be found as soon as
it is there.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from clew.agent.trace import OUTPUT
from clew.index import FullText, Row
from clew.memory.ranking import pieces
from clew.messages import Message, Text
from clew.sessions.entries import BranchSummary, Entry, Note, Said
from clew.sessions.session import Session
from clew.text import highlights, parse

FIELDS = {"text": 1.0}
FACETS = ("role", "tool")

SNIPPET = 300
"""Characters shown of what was found."""

UNSAID = frozenset({"recall", "search", "expand"})
"""Tools whose results are what was said elsewhere: finding them again would bury what they found."""


class Found(Struct, frozen=True):
    """An entry that was found: whose it is, and the text around the words."""

    entry: int
    role: str
    at: float
    text: str
    score: float


class Spoken(Struct, frozen=True):
    """What an entry says: its text, whose it is, and of which tool."""

    text: str
    role: str
    tool: str = ""


class _Rows:
    """The log of a session as an index reads it. (It does not hold the index: that goes when nobody uses it.)"""

    def __init__(self, session: Session) -> None:
        self._session = session

    def rows(self, namespace: str, after: int) -> Iterator[Row]:
        """The entries after an id."""
        for entry in self._session.entries(after):
            said = spoken(entry)
            if said is None:
                continue
            cut = [said.text[p.start : p.end] for p in pieces(said.text)]
            facets = {"role": said.role, "tool": said.tool}
            yield Row(entry.id, str(entry.id), tuple({"text": text} for text in cut), facets)


class SessionIndex:
    """Finds what was said in a session.

    `folder` is where the index is kept: beside the store's file if it is not given, and in a temporary folder for
    stores that are no file. It can be deleted at any time.
    """

    def __init__(self, session: Session, folder: Path | None = None) -> None:
        self._session = session
        self._index = FullText(self._place(folder), _Rows(session), FIELDS, FACETS)

    def _place(self, folder: Path | None) -> Path:
        if folder is not None:
            return folder
        if "://" not in self._session.where:
            return Path(f"{self._session.where}.index") / "log"
        place = Path(tempfile.mkdtemp(prefix="clew-index-"))
        weakref.finalize(self, shutil.rmtree, place, ignore_errors=True)
        return place

    def search(self, query: str, k: int = 10) -> list[Found]:
        """The `k` best entries for a query: words, "a phrase", AND, OR, NOT, `role:user`, `tool:bash`."""
        wanted = parse(query, FACETS)
        hits = self._index.search(wanted, 2 * k, namespace=self._session.id)
        best: dict[str, Found] = {}
        for hit in hits:
            if hit.id in best or len(best) == k:
                continue
            entry = self.entry(int(hit.id))
            said = spoken(entry) if entry else None
            if entry is None or said is None:
                continue
            piece = pieces(said.text)[hit.piece]
            text = said.text[piece.start : piece.end]
            best[hit.id] = Found(entry.id, said.role, entry.at, around(text, highlights(text, wanted)), hit.score)
        return list(best.values())

    def entry(self, id: int) -> Entry | None:
        """The entry with this id, None if there is none."""
        return next((e for e in self._session.entries(id - 1) if e.id == id), None) if id > 0 else None


def spoken(entry: Entry) -> Spoken | None:
    """What an entry says, without what was only recalled into it; None when that is nothing to be looked for."""
    body = entry.body
    if isinstance(body, Note):
        text = str(body.data.get("text", "")) if body.kind == OUTPUT else ""
        made = Spoken(text, "tool")
    elif isinstance(body, Said | BranchSummary):
        made = _of_message(body.message)
    else:
        return None
    return made if made.text.strip() else None


def _of_message(message: Message) -> Spoken:
    if message.role == "tool":
        results = [r for r in message.results if r.name not in UNSAID]
        return Spoken("\n".join(r.text for r in results), "tool", results[0].name if results else "")
    texts = [p.text for p in message.parts if isinstance(p, Text) and "clew" not in p.meta]
    calls = [f"{c.name} {c.arguments}" for c in message.calls if c.name not in UNSAID]
    return Spoken("\n".join([*texts, *calls]), message.role)


def around(text: str, places: list[tuple[int, int]]) -> str:
    """The text around the first place, in about `SNIPPET` characters."""
    if len(text) <= SNIPPET:
        return text
    start = max(0, (places[0][0] if places else 0) - SNIPPET // 3)
    end = min(len(text), start + SNIPPET)
    return f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"
