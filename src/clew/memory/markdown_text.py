"""The form of a Markdown memory: records as sections that a person can read and edit.

    ## Step 3 · user
    - id: 5f0c9a1be2d34c77
    - created: 2026-01-02T03:04:05.678901+00:00
    - metadata: {"source":"engine"}

    ```text
    likes tea
    ```

The fence grows until it does not occur in the content. `- json: true` says that the content is JSON. A section
without fields and fence, as a person writes it, is a record of its text; so is one of QitOS's own form. What stands
before the first section is left as it is.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from clew.memory.records import MemoryRecord, digest, plain
from clew.messages import sanitized

HEAD = """# Memory

Each section is one record. Its text may be edited; a section that is taken out is forgotten. A section of your own
needs only a heading and a text. Leave the ids as they are.
"""

NOTE = "note"
"""The kind, and the role, of a section that a person wrote."""

_STEP = re.compile(r"## Step (-?\d+) · (.*)")
_FIELD = re.compile(r"- (id|created|time_utc|metadata|more|json): (.*)")
_FENCE = re.compile(r"(`{3,})\w*\s*")
_FORGOTTEN = re.compile(r"<!-- forgotten: (\S+) -->")


class Section(Struct, frozen=True):
    """A record in the text, from the character `start` up to `end`. `whole` is False when its fence was not closed."""

    record: MemoryRecord
    start: int
    end: int
    whole: bool = True


class Document(Struct, frozen=True):
    """A Markdown memory as read: its text (lines end in a line feed), the records, the ids that were forgotten."""

    text: str
    sections: tuple[Section, ...]
    forgotten: frozenset[str]

    @property
    def records(self) -> list[MemoryRecord]:
        """The records, in their order."""
        return [s.record for s in self.sections]

    def find(self, id: str) -> Section | None:
        """The section of a record."""
        return next((s for s in self.sections if s.record.id == id), None)

    def replaced(self, section: Section, text: str) -> str:
        """The text with another in the place of a section."""
        return self.text[: section.start] + text + self.text[section.end :]

    def added(self, text: str) -> Document:
        """The document with whole sections after it, which have ids of their own: only these are read."""
        end = len(self.text)
        new = (Section(s.record, end + s.start, end + s.end, s.whole) for s in read(text).sections)
        return Document(self.text + text, (*self.sections, *new), self.forgotten)

    def ending(self) -> str:
        """What must come before a section that is put at the end."""
        if not self.text:
            return ""
        line = "" if self.text.endswith("\n") else "\n"
        if self.sections and not self.sections[-1].whole:
            return f"{line}{_fence_of(self.text[self.sections[-1].start :])}\n"
        return line


def write(record: MemoryRecord) -> str:
    """A record as a section."""
    record = sanitized(record)[0]
    content = plain(record.content)
    role = "" if "\n" in record.role or record.role != record.role.strip() else record.role
    more = {
        name: value
        for name, value in asdict(record).items()
        if name not in ("content", "step_id", "metadata", "id", "created", "namespace")
        and not (name == "role" and role)
        and value != _DEFAULTS.get(name)
    }
    fields = [f"- id: {record.id}"]
    if record.created:
        fields.append(f"- created: {datetime.fromtimestamp(record.created, UTC).isoformat()}")
    if record.metadata:
        fields.append(f"- metadata: {_json(record.metadata)}")
    if more:
        fields.append(f"- more: {_json(more)}")
    if isinstance(content, str) and "\r" not in content:
        text = content
    else:
        text = _json(content)
        fields.append("- json: true")
    longest = max((len(run) for run in re.findall("`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"## Step {record.step_id} · {role}\n" + "\n".join(fields) + f"\n\n{fence}text\n{text}\n{fence}\n"


def read(text: str) -> Document:
    """Reads a Markdown memory, whoever wrote it. Every text can be read."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    rows = text.split("\n")
    offsets = [0]
    for row in rows:
        offsets.append(offsets[-1] + len(row) + 1)
    sections: list[Section] = []
    seen: dict[str, int] = {}
    for first, last, record, whole in _sections(rows):
        id = record.id or digest(f"{record.role}\0{record.step_id}\0{record.text}")[:16]
        seen[id] = seen.get(id, 0) + 1
        if seen[id] > 1:  # the section was copied
            id = digest(f"{id}\0{seen[id]}")[:16]
        if record.text.strip():
            end = min(offsets[last], len(text))
            sections.append(Section(replace(record, id=id), offsets[first], end, whole))
    return Document(text, tuple(sections), frozenset(_FORGOTTEN.findall(text)))


def forgotten(id: str) -> str:
    """What stays in the place of a forgotten record."""
    return f"<!-- forgotten: {id} -->\n"


def _sections(rows: list[str]) -> Iterator[tuple[int, int, MemoryRecord, bool]]:
    """First row, row after the last, record, and whether its fence was closed."""
    at = next((i for i, row in enumerate(rows) if row.startswith("## ")), len(rows))
    while at < len(rows):
        fields, body = _fields(rows, at + 1)
        upstream = "time_utc" in fields and "id" not in fields
        last, content, whole = _upstream(rows, body) if upstream else _fenced(rows, body)
        yield at, last, _record(rows[at], fields, content), whole
        at = next((i for i in range(last, len(rows)) if rows[i].startswith("## ")), len(rows))


def _fields(rows: list[str], at: int) -> tuple[dict[str, str], int]:
    fields: dict[str, str] = {}
    while at < len(rows) and (found := _FIELD.fullmatch(rows[at])):
        fields[found[1]] = found[2]
        at += 1
    return fields, at


def _fenced(rows: list[str], at: int) -> tuple[int, str, bool]:
    """The content of a section of ours, or of a person: inside its fence, or all up to the next heading."""
    start = at
    while at < len(rows) and not rows[at].strip():
        at += 1
    opened = _FENCE.fullmatch(rows[at]) if at < len(rows) else None
    if opened is None:
        stop = next((i for i in range(start, len(rows)) if _ends(rows[i])), len(rows))
        return stop, "\n".join(rows[start:stop]).strip(), True
    for stop in range(at + 1, len(rows)):
        if rows[stop].rstrip() == opened[1]:
            return stop + 1, "\n".join(rows[at + 1 : stop]), True
    return len(rows), "\n".join(rows[at + 1 :]).removesuffix("\n"), False


def _ends(row: str) -> bool:
    return row.startswith("## ") or _FORGOTTEN.match(row) is not None


def _upstream(rows: list[str], at: int) -> tuple[int, str, bool]:
    """The content of a section of QitOS, which may hold its fence: up to the last fence before the next section."""
    following = (
        i
        for i in range(at, len(rows))
        if _STEP.fullmatch(rows[i]) and i + 1 < len(rows) and rows[i + 1].startswith(("- time_utc: ", "- id: "))
    )
    end = next(following, len(rows))
    fences = [i for i in range(at, end) if rows[i] == "```"]
    start = next((i for i in range(at, end) if rows[i] == "```text"), at)
    stop = fences[-1] if fences else end
    return (stop + 1 if fences else end), "\n".join(rows[start + 1 : stop]), bool(fences)


def _record(heading: str, fields: Mapping[str, str], content: str) -> MemoryRecord:
    step = _STEP.fullmatch(heading)
    if step is None:
        return MemoryRecord(NOTE, content, 0, {"heading": heading[3:].strip()}, fields.get("id", ""), kind=NOTE)
    record = MemoryRecord(step[2], content, int(step[1]), _metadata(fields.get("metadata", "")), fields.get("id", ""))
    created = _time(fields.get("created") or fields.get("time_utc", ""))
    changes: dict[str, Any] = {"created": created} if created is not None else {}
    if "more" in fields:
        given = _decoded(fields["more"])
        changes |= given if isinstance(given, dict) else {}
    if "json" in fields:
        changes["content"] = _decoded(content)
    try:
        return msgspec.convert({**asdict(record), **changes}, MemoryRecord)
    except msgspec.ValidationError:  # a person has put something else there: what they wrote in the text counts
        return record


def _metadata(text: str) -> Mapping[str, Any]:
    """Metadata in JSON, or as QitOS writes it in Python; text that is neither is kept as such."""
    if not text:
        return {}
    try:
        found = msgspec.json.decode(text.encode())
    except msgspec.DecodeError:
        try:
            found = ast.literal_eval(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return {"unread": text}
    return dict(plain(found)) if isinstance(found, dict) else {"unread": text}


def _decoded(text: str) -> Any:
    try:
        return msgspec.json.decode(text.encode())
    except msgspec.DecodeError:
        return text


def _time(text: str) -> float | None:
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _fence_of(text: str) -> str:
    found = re.search(r"^(`{3,})\w*\s*$", text, re.MULTILINE)
    return found[1] if found else "```"


_DEFAULTS: Mapping[str, Any] = asdict(MemoryRecord("", ""))
