"""From a transcript into a session's log.

An entry's key is a digest of what its line says and of its parent's key, so it stands for the whole
conversation up to there. Importing a file again adds nothing; importing a longer version adds what
is new; where a file was edited, or a reply was cut off and is now whole, the new version becomes a
branch beside the old one and the leaf goes to it. The line's time comes before the digest: keys then
grow along the file, and the database writes their index at its end, not all over it.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from clew.errors import UnknownName
from clew.messages import Message
from clew.sessions.edits import Drop, pack
from clew.sessions.entries import Body, BranchSummary, Compaction, Draft, Label, Note, Said
from clew.sessions.session import Session
from clew.storage.locate import open_store
from clew.storage.rows import SessionRow
from clew.storage.store import Store
from clew.transcripts.boundaries import Branches
from clew.transcripts.events import Aside, Boundary, Damage, Event, Leaf, Line, Name, Start
from clew.transcripts.formats import named, opened
from clew.transcripts.identity import identity
from clew.transcripts.lines import depth
from clew.transcripts.sniffing import sniff

BATCH = 4_000
"""Entries written in one transaction."""

BATCH_BYTES = 1024 * 1024
"""Bytes of transcript after which a transaction is closed, however few entries it has."""

DEEPEST = 200
"""Levels of nesting that are certain to be written and read again as JSON, however deep the caller's stack is."""


class Report(Struct, frozen=True):
    """What an import found and did.

    `lines` is the number of the last line (or list item) read; `messages` and `calls` count messages
    and tool calls on all branches; `added` and `present` count entries; `skipped` are lines of which
    nothing could be used and `mended` those that were read all the same, each with its reason.
    `sessions` counts the conversations of the file, `sidechains` the subagents inlined in it.
    `first` and `last` are seconds since 1970 (0: the file has no times).
    """

    path: str
    format: str
    session: str
    lines: int = 0
    messages: int = 0
    calls: int = 0
    added: int = 0
    present: int = 0
    skipped: tuple[tuple[int, str], ...] = ()
    mended: tuple[tuple[int, str], ...] = ()
    sessions: int = 0
    compactions: int = 0
    sidechains: int = 0
    first: float = 0.0
    last: float = 0.0


def load(path: Path | str, session: Session, *, format: str = "", run: int = 1) -> Report:
    """Adds a transcript to a session and moves the session's leaf to where the transcript ends.

    `format` is sniffed when empty. Of a file with several conversations all become roots of the
    session, and the leaf goes to the end of number `run`. The leaf stays where it is when there is
    nothing new. Raises `UnknownName` (file, format, run), `BadPayload` (an empty file), and what
    appending raises; entries written before an error stay, and the import can be repeated.
    """
    name = format or sniff(path)
    reader = named(name)
    loading = _Loading(session, name)
    with opened(path) as file:
        for event in reader.read(file):
            loading.take(event)
    return loading.finish(str(path), run)


class _Loading:
    """An import under way: what the file's own keys have become, and what waits to be written."""

    def __init__(self, session: Session, format: str) -> None:
        self.session = session
        self.format = format
        self.branches = Branches()
        session.claim()  # from here on nobody else adds entries, so that the ids of those to come are known
        self.newest = session.newest
        self.empty = session.newest == 0
        self.digests: dict[str, bytes] = {}
        self.ids: dict[bytes, int] = {}
        self.waiting: list[tuple[Line, bytes, bytes]] = []
        self.bytes = 0
        self.leaves: list[bytes] = []
        self.damage: list[Damage] = []
        self.starts = self.lines = self.messages = self.calls = 0
        self.added = self.present = self.compactions = self.sidechains = 0
        self.first = self.last = 0.0

    def take(self, event: Event) -> None:
        """One event of the reader."""
        if isinstance(event, Line):
            parent = self.digests.get(event.parent, b"") if event.parent is not None else b""
            digest = _second(event.at) + blake2b(event.raw, digest_size=12, key=parent).digest()
            self.digests[event.key] = digest
            self.waiting.append((event, digest, parent))
            self.bytes += len(event.raw)
            self._count(event)
            if len(self.waiting) >= BATCH or self.bytes >= BATCH_BYTES:
                self.write()
        elif isinstance(event, Leaf):
            self.leaves.append(self.digests[event.key])
        elif isinstance(event, Start):
            self.starts += 1
        else:
            self.damage.append(event)
            self.lines = max(self.lines, event.line)

    def _count(self, line: Line) -> None:
        if line.line > self.lines:
            self.lines = line.line
        if line.at:
            self.first = min(self.first or line.at, line.at)
            self.last = max(self.last, line.at)
        body = line.body
        if isinstance(body, Message):
            self.messages += 1
            if body.role == "assistant":
                self.calls += len(body.calls)
        elif isinstance(body, Boundary):
            self.compactions += 1
        if line.side and line.parent is None:
            self.sidechains += 1

    def write(self) -> None:
        """Appends what is waiting (lines with their digests and their parents'), in one transaction.

        What the log has already is passed over.
        """
        waiting, self.waiting, self.bytes = self.waiting, [], 0
        held = {} if self.empty else self.session.held([digest.hex() for _, digest, _ in waiting])
        drafts: list[Draft] = []
        lines: list[Line] = []
        for line, digest, above in waiting:
            if digest in self.ids:
                self.present += 1
                continue
            key = digest.hex()
            id = held.get(key) or self.newest + len(drafts) + 1
            parent = self.ids.get(above)
            body = self._body(line, id, parent)
            self.ids[digest] = id
            if id <= self.newest:
                self.present += 1
            else:
                drafts.append(Draft(body, parent, key, line.at))
                lines.append(line)
        if drafts:
            self._append(drafts, lines)
            self.newest += len(drafts)
            self.added += len(drafts)

    def _append(self, drafts: list[Draft], lines: list[Line]) -> None:
        """One transaction; lines nested too deeply to be written as JSON again are kept as text."""
        try:
            self.session.append_many(drafts)
        except RecursionError:
            deep = [n for n, line in enumerate(lines) if depth(line.raw) > DEEPEST]
            for n in deep:
                text = lines[n].raw.decode(errors="replace")
                drafts[n] = replace(drafts[n], body=Note(f"{self.format}/too-deep", {"text": text}))
                self.damage.append(Damage(lines[n].line, "nested too deeply: kept as text", lost=False))
            self.session.append_many(drafts)

    def _body(self, line: Line, id: int, parent: int | None) -> Body:
        """The entry's body, with the file's keys turned into entry ids."""
        body = line.body
        if isinstance(body, Message):
            self.branches.add(id, parent, shown=not body.blank, system=body.role == "system")
            return Said(body)
        if isinstance(body, Boundary):
            kept = {i for name in body.kept for i in self._entries(name)}
            return self.branches.compaction(id, parent, body, self.format, kept, self._entry(body.kept_from))
        self.branches.add(id, parent, shown=isinstance(body, Aside), system=False)
        if isinstance(body, Note):
            return body
        if isinstance(body, Aside):
            return BranchSummary(body.message, self._entry(body.leaf) or parent or 0, body.details)
        target = self._entry(body.target)
        if target is None:
            return Note(f"{self.format}/unresolved", {"target": body.target})
        if isinstance(body, Name):
            return Label(target, body.text)
        return Compaction((Drop(pack([target])),), reason="edit", policy=self.format, details=body.details)

    def _entry(self, name: str) -> int | None:
        digest = self.digests.get(name)
        return None if digest is None else self.ids.get(digest)

    def _entries(self, name: str) -> Iterable[int]:
        """The entries of a line: one, or several when it held several messages."""
        part = 0
        while (id := self._entry(f"{name}/{part}" if part else name)) is not None:
            yield id
            part += 1

    def finish(self, path: str, run: int) -> Report:
        """Writes the rest, moves the leaf, and tells what was done."""
        if self.waiting:
            self.write()
        if not 1 <= run <= max(1, len(self.leaves)):
            raise UnknownName(f"{path} holds {len(self.leaves)} conversations; there is no number {run}")
        if self.leaves and (self.added or self.session.leaf is None):
            self.session.branch_to(self.ids[self.leaves[run - 1]])
        return Report(
            path,
            self.format,
            self.session.id,
            lines=self.lines,
            messages=self.messages,
            calls=self.calls,
            added=self.added,
            present=self.present,
            skipped=tuple((d.line, d.reason) for d in self.damage if d.lost),
            mended=tuple((d.line, d.reason) for d in self.damage if not d.lost),
            sessions=max(1, self.starts),
            compactions=self.compactions,
            sidechains=self.sidechains,
            first=self.first,
            last=self.last,
        )


def import_file(
    path: Path | str, store: str | Path | Store, *, format: str = "", run: int = 1, title: str = "", **options: Any
) -> tuple[Session, Report]:
    """Imports a transcript into a session of its own: the one an earlier version of it went to, or a new one.

    A new session gets the file's name as title unless one is given, and keeps the transcript's
    `identity` in its `meta`. Further `options` are those of `Session.open`. A file in no known format
    creates nothing. Raises what `load` and `Session.open` raise.
    """
    name = named(format).name if format else sniff(path)
    transcript = identity(path, name)
    opened = open_store(store)
    try:
        namespace = options.get("namespace", "default")
        with opened.exclusive(namespace):  # two imports at the same time must not make two sessions
            rows = Session.list(opened, namespace)
            held = next((row.id for row in rows if _transcript(row) == transcript), None)
            meta = {**(options.pop("meta", None) or {}), "transcript": transcript}
            session = Session.open(opened, held, title=title or Path(path).name, meta=meta, **options)
    finally:
        opened.close()
    try:
        return session, load(path, session, format=name, run=run)
    except BaseException:
        session.close()
        raise


def _second(at: float) -> bytes:
    """A time as four bytes that sort like it."""
    return (int(at) & 0xFFFFFFFF).to_bytes(4)


def _transcript(row: SessionRow) -> Any:
    """The identity of the transcript a stored session was made from, if it was."""
    try:
        return msgspec.json.decode(row.meta, type=dict).get("transcript")
    except msgspec.MsgspecError:
        return None
