"""`clew memory add`, `edit`, `forget`: what changes a memory."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from msgspec.structs import replace

from clew.cli import options
from clew.cli.memory.look import notes
from clew.cli.memory.scope import Json, on_log, whole_id
from clew.cli.output import literal, write_json
from clew.errors import UnknownName
from clew.memory.log import RecordLog
from clew.memory.recall import Recall
from clew.memory.records import MemoryRecord, Source

NOTE = "note"
"""The kind of what a person adds."""


@on_log(create=True)
def add(
    log: RecordLog,
    text: Annotated[str, typer.Argument(help="What to remember; - reads standard input.")],
    kind: Annotated[str, typer.Option(help="What it is: note, entity, message, …")] = NOTE,
    key: Annotated[
        str, typer.Option(help="Name of a fact: a new text under it takes the old one's place.", show_default=False)
    ] = "",
    value: Annotated[str, typer.Option(help="The fact's value, when the text says more.", show_default=False)] = "",
    role: Annotated[str, typer.Option(help="user, assistant, system, …")] = "user",
    speaker: Annotated[str, typer.Option(help="Who said it.", show_default=False)] = "",
    source: Annotated[
        list[str] | None,
        typer.Option(help="SESSION:ENTRY it comes from; may be given several times.", show_default=False),
    ] = None,
    since: Annotated[
        str | None, typer.Option(help="When it began to be so: 2026-03-01 or 2026-03-01T12:30.", show_default=False)
    ] = None,
    confidence: Annotated[float, typer.Option(help="How sure it is, 0 to 1.", min=0, max=1)] = 1.0,
    pin: Annotated[bool, typer.Option("--pin", help="Keep it in sight.")] = False,
    lines: Annotated[bool, typer.Option("--lines", help="Every line is a record of its own.")] = False,
    json: Json = False,
) -> None:
    """Remembers a text.

    It is on disk when the command returns. What is known already is not stored twice, and what was forgotten is not
    stored again from the same source.

      clew memory add "prefers tea" --key drink

      git log -1 --format=%B | clew memory add - --kind commit
    """
    given = options.text_or_stdin(text).strip()
    if lines and key:
        raise UnknownName("--lines makes several records and --key names one; give one of them")
    record = MemoryRecord(
        role,
        "",
        kind=kind,
        key=key,
        value=value,
        speaker=speaker,
        sources=tuple(map(_source, source or ())),
        valid_from=options.moment("--since", since),
        confidence=confidence,
        pinned=pin,
    )
    _added(log, [replace(record, content=one) for one in (given.splitlines() if lines else [given])], json)


@on_log()
def edit(
    log: RecordLog,
    id: Annotated[str, typer.Argument(help="The record's id, or its beginning.")],
    text: Annotated[str | None, typer.Argument(help="Its new text; - reads standard input.")] = None,
    value: Annotated[str | None, typer.Option(help="The fact's new value.", show_default=False)] = None,
    kind: Annotated[str | None, typer.Option(help="What it is.", show_default=False)] = None,
    speaker: Annotated[str | None, typer.Option(help="Who said it.", show_default=False)] = None,
    confidence: Annotated[
        float | None, typer.Option(help="How sure it is, 0 to 1.", min=0, max=1, show_default=False)
    ] = None,
    pin: Annotated[
        bool | None, typer.Option("--pin/--unpin", help="Keep it in sight, or no longer.", show_default=False)
    ] = None,
    json: Json = False,
) -> None:
    """Opens a new version of a record.

    The old one stays in its past.

      clew memory edit 5f0c "prefers green tea"

      clew memory edit 5f0c --pin
    """
    id = whole_id(log, id)
    changes: dict[str, Any] = {"value": value, "kind": kind, "speaker": speaker, "confidence": confidence}
    changes = {name: given for name, given in changes.items() if given is not None}
    content = None if text is None else options.text_or_stdin(text)
    if content is None and not changes and pin is None:
        raise UnknownName("nothing to change: give a text, or an option such as --value or --pin")
    if content is not None or changes:
        log.edit(id, content, **changes)
    if pin is not None:
        log.pin(id, pin)
    record = log.get(id)
    if json:
        write_json(options.every_field(record))
    elif record is not None:
        _line("changed", record)


@on_log()
def forget(
    log: RecordLog,
    ids: Annotated[list[str], typer.Argument(help="Ids of records, or their beginnings.")],
    reason: Annotated[str, typer.Option(help="Why; it stays with the tombstone.", show_default=False)] = "",
    purge: Annotated[bool, typer.Option("--purge", help="Erase what they said, all of their past.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before erasing.")] = False,
    json: Json = False,
) -> None:
    """Deletes records, or erases them.

    They no longer hold, and no import brings them back; their past stays in the log. With --purge it does not: what is
    left tells only that there was something. Files that were exported before, and backups, still have it.
    """
    if purge and reason:
        raise UnknownName("--purge leaves no place for a reason; give one of them")
    found = [whole_id(log, id) for id in ids]
    if purge and not yes:
        _asked(found)
    for id in found:
        if purge:
            log.purge(id)
        else:
            log.delete(id, reason=reason)
    if purge:
        Recall(log).clear()  # the index has what was said until it is made anew
    word = "erased" if purge else "forgotten"
    if json:
        write_json([{"id": id, "outcome": word} for id in found])
        return
    out = options.console()
    for id in found:
        out.print(f"{word} [bold]{literal(id)}[/]", soft_wrap=True)


def _asked(ids: Sequence[str]) -> None:
    """Goes on only if a person says so."""
    if not sys.stdin.isatty():
        raise UnknownName(f"erasing {', '.join(ids)} cannot be undone; add --yes")
    typer.confirm(f"Erase {', '.join(ids)}, with all of the past? This cannot be undone", abort=True, err=True)


def _added(log: RecordLog, records: Sequence[MemoryRecord], json: bool) -> None:
    """Adds the records in one transaction and says of each what became of it."""
    made = [log.whole(record) for record in records if record.text.strip()]
    if not made:
        raise UnknownName("there is nothing to remember: the text is blank")
    before = {record.id: log.get(record.id) for record in made if record.key}
    held = log.add_many(made)
    told = [_outcome(one, now, before.get(one.id)) for one, now in zip(made, held, strict=True)]
    if json:
        write_json([{"outcome": how, "record": options.every_field(now)} for how, now in zip(told, held, strict=True)])
        return
    for how, one, now in zip(told, made, held, strict=True):
        _line(how, one if now is None else now)


def _outcome(made: MemoryRecord, now: MemoryRecord | None, before: MemoryRecord | None) -> str:
    if now is None:
        return "refused"
    if now.id != made.id or (before is not None and (before.text, before.value) == (now.text, now.value)):
        return "known"
    return "added" if before is None else "changed"


def _line(how: str, record: MemoryRecord) -> None:
    words = {"known": "known already", "refused": "not stored, it was forgotten before:"}
    id = "" if how == "refused" else f"[bold]{literal(record.id)}[/] "
    head = " ".join(record.text[:400].split())
    out = options.console()
    out.print(f"{words.get(how, how)} {id}{literal(head)}", no_wrap=True, overflow="ellipsis")
    for note in notes(record):
        out.print(literal(note), style="yellow", soft_wrap=True)


def _source(written: str) -> Source:
    session, number = options.entry_name(written)
    return Source(str(number), session)
