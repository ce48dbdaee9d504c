"""`clew memory export`, `import`: a memory as JSON Lines, its whole past; or as Markdown, for people."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import typer
from msgspec.structs import replace

from clew.cli import options
from clew.cli.memory.scope import At, Json, on_log
from clew.cli.output import literal, write_json
from clew.errors import BadPayload, UnknownName
from clew.memory.changes import Change, Opened
from clew.memory.files import replaced
from clew.memory.log import RecordLog
from clew.memory.markdown_text import Document, read, write
from clew.memory.records import MemoryRecord

Form = Literal["jsonl", "markdown"]
_HEAD = """# Memory

Each section is one record. Edit the texts, add sections of your own (a heading and a text), and let
`clew memory import` take them up. A section that becomes `<!-- forgotten: ID -->` is deleted. Leave the ids
as they are.
"""

As = Annotated[
    Form | None, typer.Option("--as", help="jsonl or markdown (default: by the file's name).", show_default=False)
]


@on_log()
def export(
    log: RecordLog,
    file: Annotated[str, typer.Argument(help="Where to; - is standard output.")] = "-",
    form: As = None,
    at: At = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that holds more.")] = False,
) -> None:
    """Writes the memory as JSON Lines or Markdown.

    JSON Lines hold its whole past, and import brings it back as it is. Markdown holds the records of now (or of --at)
    in a form to read and edit, and import takes the edits up.

      clew memory export memory.jsonl

      clew memory export memory.md
    """
    markdown = _form(file, form) == "markdown"
    if at is not None and not markdown:
        raise UnknownName("--at is for Markdown: JSON Lines hold the whole past; add --as markdown")
    if markdown:
        pieces = [_HEAD, *(f"\n{write(one)}" for one in log.records(at=options.moment("--at", at, end=True)))]
    else:
        pieces = [msgspec.json.encode(one).decode() + "\n" for one in log.export()]
    if file == "-":
        sys.stdout.buffer.writelines(piece.encode() for piece in pieces)
        return
    path = Path(file)
    held = _held(path, markdown) if path.exists() and not force else 0
    what = "records" if markdown else "changes"
    if held > (now := len(pieces) - markdown):
        raise UnknownName(f"{file} holds {held:,} {what} and would be left with {now:,}; --force does it anyway")
    replaced(path, "".join(pieces))
    options.console().print(f"{literal(file)}: {now:,} {what} written", soft_wrap=True)


@on_log(create=True)
def import_(
    log: RecordLog,
    file: Annotated[str, typer.Argument(help="What export wrote; - is standard input.")],
    form: As = None,
    json: Json = False,
) -> None:
    """Takes in what export wrote.

    A second time adds nothing, and what was deleted here does not come back. JSON Lines may also hold plain records,
    an object with "content" in each line. Of Markdown, edited texts become new versions, new sections new records,
    and sections marked as forgotten are deleted.
    """
    data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    if _form(file, form) == "markdown":
        counts = _take_document(log, read(data.decode("utf-8", "replace")))
    else:
        counts = _take_lines(log, data)
    if json:
        write_json({"namespace": log.path, **counts})
        return
    told = ", ".join(f"{number:,} {word}" for word, number in counts.items())
    options.console().print(f"{literal(file)}: {told}", soft_wrap=True)


def _form(file: str, form: Form | None) -> Form:
    return form or ("markdown" if Path(file).suffix.lower() in (".md", ".markdown") else "jsonl")


def _held(path: Path, markdown: bool) -> int:
    """How many records, or changes, a file holds that would be replaced."""
    data = path.read_bytes()
    return len(read(data.decode("utf-8", "replace")).sections) if markdown else sum(map(bool, data.splitlines()))


def _take_lines(log: RecordLog, data: bytes) -> dict[str, int]:
    changes: list[Change] = []
    records: list[MemoryRecord] = []
    for number, line in enumerate(data.splitlines(), 1):
        if not line.strip():
            continue
        try:
            found = msgspec.json.decode(line)
            if isinstance(found, dict) and "uid" in found:
                changes.append(_here(log, msgspec.convert(found, Change)))
            else:
                given = {"role": "user", **found} if isinstance(found, dict) else found
                records.append(msgspec.convert(given, MemoryRecord))
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise BadPayload(f"{error}; nothing was imported", index=number) from error
    taken = log.merge(changes)
    held = log.add_many(records) if records else []
    return {"changes added": taken, "already there": len(changes) - taken} | (
        {"records held": sum(one is not None for one in held)} if records else {}
    )


def _here(log: RecordLog, one: Change) -> Change:
    """The change in this memory's namespace, whosever it was."""
    if isinstance(one.body, Opened) and one.body.record.namespace != log.path:
        return replace(one, body=Opened(replace(one.body.record, namespace=log.path)))
    return one


def _take_document(log: RecordLog, document: Document) -> dict[str, int]:
    """Takes up what a person changed. A text that the record had before is no edit: the file is older than the log."""
    counts = {"added": 0, "changed": 0, "forgotten": 0, "known": 0}
    new: list[MemoryRecord] = []
    for record in document.records:
        if log.get(record.id) is None:
            new.append(record)
        elif any(isinstance(old, MemoryRecord) and old.content == record.content for old in log.history(record.id)):
            counts["known"] += 1
        else:
            log.edit(record.id, record.content)
            counts["changed"] += 1
    counts["added"] = sum(one is not None for one in log.add_many(new)) if new else 0
    for id in sorted(document.forgotten):
        if log.get(id) is not None:
            log.delete(id, reason="forgotten in Markdown")
            counts["forgotten"] += 1
    return counts
