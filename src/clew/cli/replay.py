"""`clew replay`: what a context policy would have made of a recorded conversation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from clew import policies
from clew.cli import options, render
from clew.cli.output import literal, printable, write_json
from clew.errors import UnknownName
from clew.lab import report
from clew.lab.replay import run_replay
from clew.lab.result import Result
from clew.messages import Message
from clew.models.prices import price
from clew.tokens import counter as named_counter
from clew.transcripts import recording

LONG = 2_000
"""Messages from which a progress bar is worth showing."""


def replay(
    files: Annotated[list[Path], typer.Argument(help="Transcripts: Claude Code, Pi, OpenAI or Anthropic messages.")],
    policy: Annotated[
        str, typer.Option(help="Context policy, with parameters if wanted: pi:keep=20000,reserve=16384")
    ] = "pi",
    window: Annotated[str, typer.Option(help="Context window in tokens.")] = "200000",
    model: Annotated[
        str, typer.Option(help="Model that writes summaries: extractive (offline) or a LiteLLM name.")
    ] = "extractive",
    counter: Annotated[str, typer.Option(help="Token counter: heuristic, o200k, cl100k, …")] = "heuristic",
    prices: Annotated[str, typer.Option(help="Model whose prices the cost is computed with.")] = "claude-sonnet-4-5",
    at: Annotated[int, typer.Option(help="Also print the view at this model call (1 is the first).")] = 0,
    html: Annotated[Path | None, typer.Option(help="Write a report page to this file.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep the replayed session in the store, for show and expand.")
    ] = False,
    db: Annotated[str | None, typer.Option(help="The store for --keep (default: CLEW_DB, or your own).")] = None,
) -> None:
    """Feeds recorded sessions to a context policy, call by call, and shows what comes of it.

    Nothing is sent anywhere with the extractive model.

      clew replay session.jsonl --policy pi --window 32000 --html report.html
    """
    size = options.tokens(window)
    chosen = policies.policy(policy)
    chosen.budget(size)
    tariff = price(prices)
    counted = named_counter(counter)
    summariser = options.model(model)
    recordings = [(file, recording(file)) for file in files]
    out = options.console()
    results: list[Result] = []
    for file, tape in recordings:
        if not tape.messages:
            raise UnknownName(f"{file}: no messages in this {tape.format} file")
        with _counted(tape.messages) as messages:
            result, session = run_replay(
                messages,
                chosen,
                window=size,
                model=summariser,
                counter=counted,
                price=tariff,
                source=printable(str(file)),
                label=policy,
                store=options.store_path(db) if keep else "memory://",
            )
        kept = session.id if keep else ""
        session.close()
        results.append(result)
        if not json:
            render.result(out, result)
            for line, reason in tape.skipped:
                out.print(f"skipped line {line}: {literal(reason)}", style="yellow", soft_wrap=True)
            if at:
                render.moment(out, result, at)
            if kept:
                out.print(f"kept as session {kept}: clew show {kept} --view")
    if json:
        plain = [report.summary(r) for r in results]
        write_json(plain[0] if len(plain) == 1 else plain)
    if html is not None:
        html.parent.mkdir(parents=True, exist_ok=True)
        html.write_text(report.html(results), encoding="utf-8")
        if not json:
            out.print(f"report: {literal(str(html))}", soft_wrap=True)


@contextmanager
def _counted(messages: Sequence[Message]) -> Iterator[Iterable[Message]]:
    """The messages, with a progress bar on a terminal when there are many."""
    screen = Console(stderr=True)
    if len(messages) < LONG or not screen.is_terminal:
        yield messages
        return
    columns = (TextColumn("replaying"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=screen, transient=True) as bar:
        yield bar.track(messages)
