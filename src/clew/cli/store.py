"""`clew store copy`, `clew store info`: a store as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from clew.cli import options, render
from clew.cli.output import literal, write_json
from clew.errors import StoreError
from clew.memory import copy as copying
from clew.memory.log import RecordLog
from clew.memory.places import Tables, open_place
from clew.memory.records import Namespace
from clew.storage.copy import Copied, session_namespaces

app = typer.Typer(help="A store as a whole: copy it, look at it.", rich_markup_mode=None)

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]

KINDS = {"session": ("sessions", "entries"), "memory": ("memories", "changes"), "vectors": ("models", "vectors")}
"""What is counted of each kind of part."""


@app.callback(invoke_without_command=True)
def _frame(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command()
def copy(
    source: Annotated[str, typer.Argument(help="From: a path, postgresql://…, redis://… or json:FILE.")],
    target: Annotated[str, typer.Argument(help="To: the same kinds of address; a file is made.")],
    namespace: Annotated[
        list[str] | None, typer.Option(help="Only this namespace; may be given several times.", show_default=False)
    ] = None,
    json: Json = False,
) -> None:
    """Copies everything, and compares.

    Sessions, memories with their whole past, and vectors. What the target has already is not written again, so a copy
    that broke off is begun again. Then all is read from the target and compared, by count and checksum; exit code 2
    when something is not equal.

      clew store copy agent.db postgresql://localhost/agents
    """
    options.existing_store(source)
    with _shown() as progress:
        report = copying.copy(source, target, namespaces=namespace or (), progress=progress)
    if json:
        write_json({"parts": report.parts, "faults": report.faults})
    else:
        out = options.console()
        table = render.plain()
        for name in ("", "copied", "rows", "written now", "not equal"):
            table.add_column(name, justify="right" if name else "left")
        for kind, (whole, rows) in KINDS.items():
            parts = [one for one in report.parts if one.kind == kind]
            faults = sum(bool(one.fault) for one in parts)
            count = f"{sum(one.rows for one in parts):,} {rows}"
            table.add_row(whole, f"{len(parts):,}", count, f"{sum(one.new for one in parts):,}", str(faults or "·"))
        out.print(table)
        for fault in report.faults:
            out.print(literal(fault), style="red", soft_wrap=True)
    if report.faults:
        raise StoreError(f"{len(report.faults)} parts of {target} are not equal to those of {source}")


@app.command()
def info(
    store: Annotated[str | None, typer.Argument(help="Its address (default: CLEW_DB, or your own).")] = None,
    json: Json = False,
) -> None:
    """Shows what a store holds, by namespace."""
    where = options.existing_store(store)
    found = _held(where)
    if json:
        write_json(found)
        return
    out = options.console()
    size = f", {found['bytes']:,} bytes" if found["bytes"] is not None else ""
    out.print(f"[bold]{literal(found['store'])}[/]{size}", soft_wrap=True)
    table = render.plain()
    for name in ("namespace", "sessions", "entries", "records", "changes"):
        table.add_column(name, justify="left" if name == "namespace" else "right")
    for row in found["namespaces"]:
        counts = (f"{row[name]:,}" if row[name] else "·" for name in ("sessions", "entries", "records", "changes"))
        table.add_row(literal(row["namespace"]), *counts)
    out.print(table)


def _held(where: str) -> dict[str, Any]:
    place = open_place(where)
    try:
        store = place.store if isinstance(place, Tables) else None
        sessions = {name: store.sessions(name) for name in session_namespaces(store)} if store is not None else {}
        memories = set(place.namespaces())
        rows = []
        for name in sorted({*sessions, *memories}):
            log = RecordLog(place, Namespace.of(name)) if name in memories else None
            rows.append(
                {
                    "namespace": name,
                    "sessions": len(sessions.get(name, ())),
                    "entries": sum(one.entries for one in sessions.get(name, ())),
                    "records": len(log.records()) if log else 0,
                    "changes": len(log.export()) if log else 0,
                }
            )
    finally:
        place.close()
    path = Path(where.removeprefix("json:"))
    return {"store": where, "bytes": path.stat().st_size if path.is_file() else None, "namespaces": rows}


@contextmanager
def _shown() -> Iterator[Callable[[Copied], None]]:
    """Hears what has been copied, and shows it on a terminal."""
    screen = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as bar:
        task = bar.add_task("opening")
        parts = rows = 0

        def told(copied: Copied) -> None:
            nonlocal parts, rows
            parts, rows = parts + 1, rows + copied.rows
            bar.update(task, description=f"{parts:,} parts, {rows:,} rows; {copied.kind} {literal(copied.name)}")

        yield told
