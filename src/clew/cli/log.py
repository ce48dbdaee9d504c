"""`clew import`, `clew sessions`, `clew show`, `clew expand`: transcripts into the log, and reading it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from clew.cli import options, render
from clew.cli.output import literal, write_json
from clew.errors import UnknownName
from clew.lab.plain import as_text, span
from clew.sessions import Session
from clew.sessions.edits import unpack
from clew.sessions.entries import BranchSummary, Compaction, Entry, Failed, Label, Note, Pin, Said
from clew.transcripts import import_file

Db = Annotated[str | None, typer.Option(help="The store (default: CLEW_DB, or your own).")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def import_(
    files: Annotated[list[Path], typer.Argument(help="Transcripts of other tools.")],
    db: Db = None,
    json: Json = False,
) -> None:
    """Imports transcripts into the store; importing a file again adds only what is new."""
    out = options.console()
    reports = []
    for file in files:
        session, report = import_file(file, options.store_path(db))
        session.close()
        reports.append(report)
        if json:
            continue
        out.print(
            f"{literal(str(file))}: {report.format}, session [bold]{session.id}[/], "
            f"{report.added:,} entries added, {report.present:,} already there",
            soft_wrap=True,
        )
        for line, reason in report.skipped:
            out.print(f"  skipped line {line}: {literal(reason)}", style="yellow", soft_wrap=True)
    if json:
        write_json(reports)


def sessions(db: Db = None, json: Json = False) -> None:
    """Lists the sessions of the store, newest first."""
    rows = Session.list(options.existing_store(db))
    if json:
        fields = ("id", "title", "created", "updated", "entries", "leaf", "parent", "parent_entry")
        write_json([{name: getattr(row, name) for name in fields} for row in rows])
        return
    table = render.plain()
    for name in ("session", "changed", "entries", "from", "title"):
        table.add_column(name, justify="right" if name == "entries" else "left", no_wrap=True, overflow="ellipsis")
    for row in rows:
        parent = f"{row.parent}:{row.parent_entry}" if row.parent else ""
        changed = time.strftime("%Y-%m-%d %H:%M", time.localtime(row.updated))
        table.add_row(row.id, changed, f"{row.entries:,}", parent, literal(row.title))
    options.console().print(table)


def show(
    session: Annotated[str, typer.Argument(help="A session id, or its beginning.")],
    view: Annotated[bool, typer.Option("--view", help="What the model sees now (the default).")] = False,
    log: Annotated[bool, typer.Option("--log", help="Every entry of the log, all branches.")] = False,
    db: Db = None,
    json: Json = False,
) -> None:
    """Shows a session: the view of its leaf, or its whole log."""
    if view and log:
        raise UnknownName("choose one of --view and --log")
    with Session.open(options.existing_store(db), session, mode="read") as s:
        out = options.console()
        if log:
            entries = list(s.entries())
            if json:
                write_json(entries)
                return
            on_branch = {e.id for e in s.branch()}
            for entry in entries:
                _line(out, entry, entry.id in on_branch, entry.id == s.leaf)
            return
        shown = s.view
        if json:
            write_json(
                [
                    {"entries": list(unpack(i.ids)), "kind": i.kind, "tokens": i.count, "message": i.message}
                    for i in shown.items
                ]
            )
            return
        out.print(f"session {s.id}: {len(shown.items):,} messages, {shown.tokens:,} tokens in view")
        for item in shown.items:
            how = "" if item.kind == "message" else f"[{item.kind}] "
            head = " ".join(as_text(item.message)[:400].split())
            line = f"{span(item.ids):>9} {item.message.role:<9} {item.count:>7,}  {how}{head}"
            out.print(literal(line), no_wrap=True, overflow="ellipsis")


def expand(
    entry: Annotated[str, typer.Argument(help="SESSION:ENTRY, for instance 3fa9:118.")],
    db: Db = None,
    json: Json = False,
) -> None:
    """Prints the originals behind a compaction, whole; a message entry is printed as it is."""
    session, number = options.entry_name(entry)
    with Session.open(options.existing_store(db), session, mode="read") as s:
        originals = s.expand(number)
        if json:
            write_json(originals)
            return
        out = options.console()
        for original in originals:
            role, text = _content(original)
            out.print(f"[bold]{s.id}:{original.id}[/] {role}")
            out.print(literal(text), soft_wrap=True)
            out.print()


def _line(out: Console, entry: Entry, here: bool, leaf: bool) -> None:
    mark = "»" if leaf else " " if here else "×"
    role, text = _content(entry)
    head = " ".join(text[:400].split())
    out.print(
        literal(f"{mark}{entry.id:>6} {entry.parent or '-':>6}  {role:<10} {head}"), no_wrap=True, overflow="ellipsis"
    )


def _content(entry: Entry) -> tuple[str, str]:
    """An entry's kind and text for people."""
    match entry.body:
        case Said(message=message):
            return message.role, as_text(message)
        case Compaction() as c:
            a = c.account
            return "compaction", (
                f"{c.policy} ({c.reason}): {c.before:,} → {c.after:,} tokens, {a.kept} kept, "
                f"{a.summarised} summarised, {a.masked} masked, {a.dropped} dropped"
            )
        case BranchSummary(message=message):
            return "branch", as_text(message)
        case Failed(failure=f):
            return "failure", f"{f.reason} {f.detail}"
        case Pin(text=text):
            return "pin", text
        case Label(target=target, text=text):
            return "label", f"{target}: {text}"
        case Note(kind=kind):
            return "note", kind
    raise AssertionError(entry.body)
