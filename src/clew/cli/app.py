"""The command's frame: subcommands, and errors as one line with exit code 2."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Annotated

import typer

import clew
from clew.cli import output
from clew.errors import ClewError

COMMANDS: Mapping[str, str] = {
    "replay": "clew.cli.replay:replay",
    "import": "clew.cli.log:import_",
    "sessions": "clew.cli.log:sessions",
    "show": "clew.cli.log:show",
    "expand": "clew.cli.log:expand",
    "memory": "clew.cli.memory:app",
    "store": "clew.cli.store:app",
    "chat": "clew.cli.chat:chat",
}
"""Each command's function, or its subcommands, by module and name: only those of the command given are imported."""


def _app(names: Iterable[str]) -> typer.Typer:
    """The command with these subcommands."""
    app = typer.Typer(
        name="clew",
        help="The memory and context layer for LLM agents.",
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(invoke_without_command=True)(_frame)
    for name in names:
        module, _, attribute = COMMANDS[name].partition(":")
        found = getattr(import_module(module), attribute)
        if isinstance(found, typer.Typer):
            app.add_typer(found, name=name)
        else:
            app.command(name)(found)
    return app


def _frame(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    if version:
        typer.echo(f"clew {clew.__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main(arguments: list[str] | None = None) -> None:
    """Runs the command and exits.

    0: all went well; 1: whoever read the output has gone (`clew show … | head`); 2: otherwise, with one
    line on standard error.
    """
    output.prepare()
    given = sys.argv[1:] if arguments is None else arguments
    named = given[:1] if given and given[0] in COMMANDS else COMMANDS if given != ["--version"] else ()
    try:
        code = _app(named)(args=given, prog_name="clew", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        output.discard()
        code = 1
    except typer.TyperException as error:
        context = getattr(error, "ctx", None)  # of the command that was not understood
        see = f"; see {context.command_path} --help" if context else ""
        code = _refuse(error.format_message().rstrip(".") + see)
    except ClewError as error:
        code = _refuse(str(error))
    except OSError as error:
        code = _refuse(str(error))
        _flush()
    except (typer.Abort, KeyboardInterrupt):
        code = _refuse("interrupted")
    sys.exit(code if isinstance(code, int) else 0)


def _flush() -> None:
    """Writes out what was printed before an error of the system, unless that is what failed."""
    try:
        sys.stdout.flush()
    except OSError:
        output.discard()


def _refuse(reason: str) -> int:
    typer.echo(f"clew: {output.printable(' '.join(reason.split()))}", err=True)
    return 2
