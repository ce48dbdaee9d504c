"""`clew memory list`, `show`, `stats`: what a memory holds, and what it held."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Annotated, Any

import typer

from clew.cli import options, render
from clew.cli.memory.scope import At, Json, Kinds, on_log, whole_id
from clew.cli.output import literal, write_json
from clew.memory.changes import Change, Closed, to_row
from clew.memory.clearing import INJECTION, REDACTED
from clew.memory.log import RecordLog
from clew.memory.records import MemoryRecord


@on_log()
def list_(
    log: RecordLog,
    kind: Kinds = None,
    at: At = None,
    limit: Annotated[int, typer.Option(help="At most so many, the newest; 0 for all.", min=0)] = 0,
    json: Json = False,
) -> None:
    """Lists the records that hold, the newest first."""
    found = log.records(*(kind or ()), at=options.moment("--at", at, end=True))[::-1]
    shown = found[:limit] if limit else found
    if json:
        write_json([options.every_field(record) for record in shown])
        return
    out = options.console()
    if not found:
        out.print(f"[dim]no records in namespace {literal(log.path)}; clew store info lists the namespaces[/]")
        return
    table = render.listing("record", "since", "kind", "text")
    for record in shown:
        table.add_row(literal(record.id), moment(record.valid_from), literal(record.kind), literal(headline(record)))
    out.print(table)
    if len(shown) < len(found):
        out.print(f"… and {len(found) - len(shown):,} more", style="dim")


@on_log()
def show(
    log: RecordLog,
    id: Annotated[str, typer.Argument(help="The record's id, or its beginning.")],
    json: Json = False,
) -> None:
    """Shows a record, its past and its sources.

    Its past are its versions and its tombstones; nothing of it is gone unless it was purged.
    """
    id = whole_id(log, id)
    now, history = log.get(id), log.history(id)
    if json:
        versions = [{"event": _event(one), **(options.every_field(one) or {})} for one in history]
        write_json({"id": id, "namespace": log.path, "record": options.every_field(now), "history": versions})
        return
    newest = now or next(one for one in reversed(history) if isinstance(one, MemoryRecord))
    out = options.console()
    out.print(f"[bold]{literal(id)}[/] {literal(_about(newest, now is not None))}", soft_wrap=True)
    out.print(literal(newest.text), soft_wrap=True)
    for note in notes(newest):
        out.print(literal(note), style="yellow", soft_wrap=True)
    out.print("\n[bold]History[/]")
    table = render.plain()
    for name in ("from", "until", "text"):
        table.add_column(name, no_wrap=name != "text", ratio=1 if name == "text" else None)
    for one in history:
        table.add_row(*_version(one))
    out.print(table)
    sources = [s for one in history for s in one.sources]
    if sources:
        out.print("\n[bold]Sources[/]")
        for source in dict.fromkeys(sources):
            where = f"{source.session}:{source.entry}" if source.session else source.entry
            out.print(f" {literal(where)}", soft_wrap=True)


@on_log()
def stats(log: RecordLog, json: Json = False) -> None:
    """Counts records, versions, tombstones and bytes."""
    found = _counted(log, log.export())
    if json:
        write_json(found)
        return
    out = options.console()
    out.print(f"namespace [bold]{literal(log.path)}[/]", soft_wrap=True)
    table = render.plain(header=False)
    table.add_column()
    table.add_column(justify="right")
    for kind, number in found["kinds"].items():
        table.add_row(f"records of kind {literal(kind)}" if kind else "records without a kind", f"{number:,}")
    for name in ("records", "versions", "tombstones", "changes", "bytes"):
        table.add_row(f"[bold]{name}[/]" if name == "records" else name, f"{found[name]:,}")
    out.print(table)


def _counted(log: RecordLog, changes: Iterable[Change]) -> dict[str, Any]:
    records = log.records()
    seen: Counter[str] = Counter()
    size = 0
    for one in changes:
        row = to_row(one)
        seen[row.kind] += 1
        size += len(row.body)
    return {
        "namespace": log.path,
        "kinds": dict(sorted(Counter(r.kind for r in records).items())),
        "records": len(records),
        "versions": seen["opened"],
        "tombstones": seen["closed"],
        "changes": sum(seen.values()),
        "bytes": size,
    }


def headline(record: MemoryRecord) -> str:
    """A record in a line: its key, if it is a fact, and its text."""
    text = " ".join(record.text[:400].split())
    return f"{record.key}: {text}" if record.key else text


def moment(at: float | None) -> str:
    """A time for people, in local time, to the minute."""
    return "" if at is None else time.strftime("%Y-%m-%d %H:%M", time.localtime(at))


def notes(record: MemoryRecord) -> Iterator[str]:
    """What was done to a record before it was stored, or what is odd about it."""
    if taken := record.metadata.get(REDACTED):
        yield f"secrets were taken out before it was stored: {', '.join(taken)}"
    if signs := record.metadata.get(INJECTION):
        yield f"reads like an order to a model: {', '.join(signs)}"


def _about(record: MemoryRecord, holds: bool) -> str:
    parts = [
        record.kind,
        f"key {record.key}" if record.key else "",
        f"value {record.value}" if record.value else "",
        f"said by {record.speaker}" if record.speaker else "",
        f"confidence {record.confidence:g}" if record.confidence < 1 else "",
        f"used {record.uses} times" if record.uses else "",
        "pinned" if record.pinned else "",
        "" if holds else "does not hold any more",
    ]
    return " · ".join(filter(None, parts))


def _event(one: MemoryRecord | Closed) -> str:
    if isinstance(one, MemoryRecord):
        return "version"
    return "deleted" if one.final else "closed"


def _version(one: MemoryRecord | Closed) -> tuple[str, str, str]:
    if isinstance(one, MemoryRecord):
        text = " ".join((one.value or one.text)[:200].split())
        return moment(one.valid_from), moment(one.valid_to) or "…", literal(text)
    why = f": {one.reason}" if one.reason else ""
    return moment(one.start), "", f"[dim]{_event(one)}{literal(why)}[/]"
