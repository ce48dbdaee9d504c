"""The subcommands of `clew memory`."""

from __future__ import annotations

import typer

from clew.cli.memory import look, search, tell, transfer

app = typer.Typer(help="What is remembered: add, find, change it, take it along.", rich_markup_mode=None)
app.command("add")(tell.add)
app.command("search")(search.search)
app.command("list")(look.list_)
app.command("show")(look.show)
app.command("edit")(tell.edit)
app.command("forget")(tell.forget)
app.command("export")(transfer.export)
app.command("import")(transfer.import_)
app.command("stats")(look.stats)


@app.callback(invoke_without_command=True)
def _frame(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
