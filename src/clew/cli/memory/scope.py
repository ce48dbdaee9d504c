"""Whose memory a command works on, and in which store: the options all commands of `clew memory` share."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer

from clew.cli import options
from clew.errors import UnknownName
from clew.memory.changes import Opened
from clew.memory.log import RecordLog
from clew.memory.records import MemoryRecord, Namespace

Db = Annotated[str | None, typer.Option(help="The store (default: CLEW_DB, or your own).", show_default=False)]
Tenant = Annotated[str, typer.Option(help="Whose memory: the tenant.")]
User = Annotated[str, typer.Option(help="Whose memory: the user.", show_default=False)]
Agent = Annotated[str, typer.Option(help="Whose memory: the agent.", show_default=False)]
Project = Annotated[str, typer.Option(help="Whose memory: the project.", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
At = Annotated[
    str | None, typer.Option(help="As of a time: 2026-03-01 (its end) or 2026-03-01T12:30.", show_default=False)
]
Kinds = Annotated[
    list[str] | None, typer.Option("--kind", help="Only of this kind; may be given several times.", show_default=False)
]
Command = Callable[..., None]


def _options(
    db: Db = None, tenant: Tenant = "default", user: User = "", agent: Agent = "", project: Project = ""
) -> None:
    """The options that `on_log` adds to a command."""


_SHARED = tuple(inspect.signature(_options, eval_str=True).parameters.values())


def on_log(*, create: bool = False) -> Callable[[Command], Command]:
    """A command on the log of a memory, its first parameter: opened by the shared options, closed after it.

    Without `create`, a store that is not there is an error.
    """

    def made(command: Command) -> Command:
        @wraps(command)
        def run(db: str | None, tenant: str, user: str, agent: str, project: str, **given: Any) -> None:
            path = options.store_path(db) if create else options.existing_store(db, "clew memory add TEXT")
            with RecordLog(path, Namespace(tenant, user, agent, project)) as log:
                command(log, **given)

        _, *own = inspect.signature(command, eval_str=True).parameters.values()
        parameters = [*own, *_SHARED]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {p.name: p.annotation for p in parameters}
        return run

    return made


def whole_id(log: RecordLog, id: str) -> str:
    """The id of a record, of which the beginning is enough when no other begins so. Raises `UnknownName`.

    Records that were closed or deleted count too.
    """
    if log.known.knows(id):
        return id
    begun = {one.body.record.id: one.body.record for one in log.export() if isinstance(one.body, Opened)}
    matches = [begun[k] for k in sorted(begun) if id and k.startswith(id)]
    if len(matches) == 1:
        return matches[0].id
    if matches:
        listed = ", ".join(f"{r.id} ({_head(r)})" for r in matches[:5])
        raise UnknownName(f"{len(matches)} records begin with {id!r}: {listed}; give more of the id")
    raise UnknownName(f"no record {id!r} in namespace {log.path}; see what there is: clew memory list")


def _head(record: MemoryRecord) -> str:
    return " ".join(record.text.split())[:30]
