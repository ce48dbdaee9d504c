"""A conversation in progress: takes what a person says, shows what comes of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import Any

from msgspec import Struct
from rich.console import Console
from rich.text import Text as Styled

from clew.agent import AgentModule, Delta, Ended, Event, Result
from clew.agent.tools import Tool
from clew.budget import Budget
from clew.cli.chat import screen
from clew.cli.chat.parts import Remembering, settle, tools
from clew.cli.output import literal, printable
from clew.errors import UnknownName
from clew.memory.records import MemoryRecord
from clew.messages import Message, Text, Usage
from clew.models import Model
from clew.models.prices import cost, price
from clew.policies.prompt import prompt
from clew.sessions import Session
from clew.sessions.entries import Compaction, Entry, Failed, Said
from clew.sessions.policy import Policy

INTERRUPTED = "interrupted"
"""Marks, in the `meta` of a message, a reply of which only the beginning was written."""

STEPS = 25
"""Model calls of a turn at most: a model that goes on calling tools is stopped."""

RECOVERIES = 1
"""Failed calls that are tried again; LiteLLM has tried three times each time, and somebody is waiting."""


class Settings(Struct, frozen=True):
    """What a chat is made with. Without a `policy` nothing is ever compacted."""

    model: Model
    policy: Policy | None
    budget: Budget | None
    remembering: Remembering
    instructions: str
    tools: bool = True


class Talk:
    """A session, the agent that answers in it, and where both are shown.

    `out` gets the replies and the answers of commands, `aside` what happened to the context.
    """

    def __init__(self, session: Session, settings: Settings, out: Console, aside: Console) -> None:
        self.settings = settings
        self.out = out
        self.aside = aside
        self.take(session)

    def take(self, session: Session) -> None:
        """Goes on in this session."""
        s = self.settings
        self.session = session
        self._seen = session.newest
        self._writing: Delta | None = None
        offered: list[Tool] = tools(session, s.remembering) if s.tools else []
        self.agent: AgentModule[Any] = AgentModule(
            s.model, s.remembering.memory, session, offered, instructions=s.instructions
        )

    def close(self) -> None:
        """Gives the session back."""
        self.session.close()

    def say(self, text: str | None) -> Result | None:
        """Says something and shows the reply as it is written; None takes up a reply that was interrupted.

        On Ctrl-C the model stops, what it had written is kept, and None comes back. What stopped the run otherwise
        is the result's `error`.
        """
        written: list[str] = []
        try:
            with closing(self.agent.stream(text, max_steps=STEPS, recoveries=RECOVERIES)) as events:
                result = self._watched(events, written)
        except KeyboardInterrupt:
            self._stopped("".join(written))
            return None
        if result.error is None and result.final_result is None:
            self.aside.print(f"[yellow]no answer[/] [dim]({result.stop_reason})[/]", soft_wrap=True)
        settle(self.settings.remembering.memory)
        self._notice()
        self.status()
        return result

    def status(self) -> None:
        """Shows how full the context is."""
        s = self.settings
        window = s.budget.window if s.budget else s.model.context_window
        self.aside.print(screen.fill(self.session.view.tokens, s.budget, window), soft_wrap=True)

    def compact(self, focus: str) -> None:
        """Compacts the context now."""
        if self.session.compact(focus=focus) is None:
            self.aside.print("[dim]nothing to compact[/]")
        self._notice()
        self.status()

    def spent(self) -> screen.Spent:
        """What the session has cost, all branches."""
        usage, calls, summaries = Usage(), 0, 0
        for entry in self.session.entries():
            if isinstance(entry.body, Said) and entry.body.message.usage is not None:
                usage, calls = usage + entry.body.message.usage, calls + 1
            elif isinstance(entry.body, Compaction):
                usage, summaries = usage + entry.body.usage, summaries + entry.body.calls
        try:
            dollars = cost(usage, price(self.settings.model.name))
        except UnknownName:
            dollars = None
        return screen.Spent(calls + summaries, usage.prompt, usage.cache_read, usage.output, summaries, dollars)

    def _watched(self, events: Iterable[Event | Delta | Ended], written: list[str]) -> Result:
        """Shows what happens, up to the end. `written` gets the text of the reply that is being written."""
        shown = False
        for event in events:
            if isinstance(event, Ended):
                if not shown and event.result.final_result:  # a model that cannot be watched
                    self._write(Delta(event.result.final_result))
                    self._finish()
                return event.result
            if isinstance(event, Delta):
                self._write(event)
                shown = True
                if not event.thinking:
                    written.append(event.text)
                continue
            if event.stage == "model_output":
                self._finish()
                written.clear()
            self._told(event)
            self._notice()
        raise AssertionError("a stream of events ends with Ended")

    def _write(self, piece: Delta) -> None:
        """Shows a piece of a reply; reasoning is dim, in a paragraph of its own."""
        if self._writing is None or self._writing.thinking != piece.thinking:
            self._finish()
            self._flow = screen.Flow(self.out.width if self.out.is_terminal else None)
        self._writing = piece
        self._put(self._flow.take(printable(piece.text)), piece)

    def _finish(self) -> None:
        """Ends the line of what was being written, if anything was."""
        if self._writing is not None:
            self._put(self._flow.end() + "\n", self._writing)
        self._writing = None

    def _put(self, text: str, piece: Delta) -> None:
        self.out.print(Styled(text, style="dim" if piece.thinking else ""), end="", soft_wrap=True)
        self.out.file.flush()

    def _told(self, event: Event) -> None:
        if event.stage == "recalled":
            for record in event.data["records"]:
                show_recalled(self.aside, record, record.metadata.get("why"))
        for line in _lines(event):
            self.aside.print(line, no_wrap=True, overflow="ellipsis")

    def _stopped(self, written: str) -> None:
        if written.strip():
            self.session.append(Message("assistant", (Text(written),), meta={"clew": {INTERRUPTED: True}}))
        self._finish()
        kept = "what was written is kept" if written.strip() else "nothing was written yet"
        self.aside.print(f"[yellow]stopped[/] [dim]{kept}[/]")

    def _notice(self) -> None:
        """Shows the compactions since the last look."""
        if self.session.newest == self._seen:
            return
        for entry in self.session.branch_after(self._seen):
            if isinstance(entry.body, Compaction):
                self.aside.print(screen.compacted(entry.id, entry.body), soft_wrap=True)
            elif isinstance(entry.body, Failed):
                self.aside.print(screen.refused(entry.body), soft_wrap=True)
        self._seen = self.session.newest


def instructions(given: str | None) -> str:
    """The system prompt: the user's own, or ours."""
    return prompt("clew.cli.chat", "system") if given is None else given


def show_recalled(out: Console, record: MemoryRecord, why: Any) -> None:
    """Shows a record that was recalled, and why if that is known."""
    out.print(screen.recalled(record), no_wrap=True, overflow="ellipsis")
    if why is not None:
        out.print(screen.reason(why))


def _lines(event: Event) -> Iterator[str]:
    match event.stage:
        case "tool_start":
            yield screen.called(event.data["action"])
        case "tool_end":
            yield screen.answered(event.data["result"])
        case "overflow":
            yield "[yellow]too long for the model[/]" + (" [dim]made smaller[/]" if event.data["recovered"] else "")
    if event.phase == "DECIDE_ERROR":
        yield f"[yellow]the call failed[/] [dim]{literal(screen.one_line(event.data['detail']))}[/]"


def unanswered(branch: Iterable[Entry]) -> bool:
    """Whether the last thing that was said on a branch waits for a reply."""
    last = None
    for entry in branch:
        if isinstance(entry.body, Said):
            last = entry.body.message.role
    return last in ("user", "tool")
