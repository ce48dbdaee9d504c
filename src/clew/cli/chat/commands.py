"""The commands of the chat: what begins with a slash."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from clew.agent.session_index import SessionIndex
from clew.agent.trace import unfinished
from clew.cli.chat import screen
from clew.cli.chat.talk import Talk, show_recalled
from clew.cli.output import literal
from clew.errors import UnknownName
from clew.lab.plain import as_text
from clew.messages import Text
from clew.sessions.entries import BranchSummary, Compaction, Entry, Pin, Said

NEWEST = 20
"""Records that /memory lists without a query."""

HITS = 10
"""What a search shows at most."""


def obey(talk: Talk, line: str) -> None:
    """Does what a line says that begins with a slash. Raises `UnknownName` with the commands there are."""
    name, _, rest = line[1:].partition(" ")
    if name not in COMMANDS:
        raise UnknownName(f"no command /{name}; there are {', '.join('/' + known for known in COMMANDS)}, /quit")
    COMMANDS[name](talk, rest.strip())


def _compact(talk: Talk, focus: str) -> None:
    talk.compact(focus)


def _pin(talk: Talk, text: str) -> None:
    if not text:
        raise UnknownName("nothing to pin; write /pin TEXT")
    entry = talk.session.pin(text)
    talk.out.print(f"[dim]pinned as entry {entry.id}[/]")


def _memory(talk: Talk, query: str) -> None:
    r = talk.settings.remembering
    if r.log is None or r.recall is None:
        raise UnknownName("this chat has no memory (--memory none)")
    if query:
        hits = r.recall.recall(query, HITS)
        for hit in hits:
            show_recalled(talk.out, hit.record, hit.why)
        found = bool(hits)
    else:
        records = r.log.records()[-NEWEST:]
        for record in records:
            head = f"[dim]{literal(record.id)} {literal(record.kind)}[/] {literal(screen.one_line(record.text))}"
            talk.out.print(head, no_wrap=True, overflow="ellipsis")
        found = bool(records)
    if not found:
        talk.out.print("[dim]nothing[/]")


def _search(talk: Talk, query: str) -> None:
    if not query:
        raise UnknownName("nothing to search for; write /search QUERY")
    found = SessionIndex(talk.session).search(query, HITS)
    for one in found:
        talk.out.print(
            literal(f"{one.entry:>6} {one.role:<9} {screen.one_line(one.text)}"), no_wrap=True, overflow="ellipsis"
        )
    if not found:
        talk.out.print("[dim]nothing in this conversation; /memory QUERY looks in the memory[/]")


def _expand(talk: Talk, number: str) -> None:
    if not number.isdecimal():
        raise UnknownName("which entry? write /expand ENTRY, with a number as /tree and /search show them")
    for entry in talk.session.expand(int(number[:18])):
        if isinstance(entry.body, Said):
            talk.out.print(f"[bold]{entry.id}[/] {entry.body.message.role}")
            talk.out.print(literal(as_text(entry.body.message)), soft_wrap=True)


def _tree(talk: Talk, _: str) -> None:
    heads = {entry.id: head for entry in talk.session.entries() if (head := _head(entry))}
    for line in screen.tree(talk.session.tree(), talk.session.leaf, heads):
        talk.out.print(line, no_wrap=True, overflow="ellipsis")


def _head(entry: Entry) -> str:
    match entry.body:
        case Said(message=message) if message.role in ("user", "assistant") and not message.calls:
            return f"{message.role}: {screen.one_line(said(entry))}"
        case Compaction() as c:
            return f"compaction: {c.before:,} → {c.after:,} tokens"
        case BranchSummary(message=message):
            return f"branch: {screen.one_line(message.text)}"
        case Pin(text=text):
            return f"pin: {screen.one_line(text)}"
    return ""


def _rewind(talk: Talk, turns: str) -> None:
    if turns and not turns.isdecimal():
        raise UnknownName("how many turns? write /rewind, or /rewind 2")
    entry = talk.session.rewind(int((turns or "1")[:9]))
    assert isinstance(entry.body, Said)
    talk.out.print(
        f"[dim]back to before:[/] {literal(screen.one_line(said(entry)))}", no_wrap=True, overflow="ellipsis"
    )
    talk.status()


def _fork(talk: Talk, title: str) -> None:
    before = talk.session
    fork = before.fork(title=title)
    before.close()
    talk.take(fork)
    talk.out.print(f"[dim]from here on session[/] {fork.id}[dim]; {before.id} stays as it is[/]")


def _continue(talk: Talk, _: str) -> None:
    unfinished(talk.session.branch())  # raises when there is none
    talk.say(None)


def _cost(talk: Talk, _: str) -> None:
    for line in screen.spent(talk.spent()):
        talk.out.print(line, soft_wrap=True)


def _help(talk: Talk, _: str) -> None:
    for line in screen.helped():
        talk.out.print(line, no_wrap=True, overflow="ellipsis")


def said(entry: Entry) -> str:
    """What a message says itself, without what was remembered with it."""
    parts = entry.body.message.parts if isinstance(entry.body, Said) else ()
    return "\n".join(part.text for part in parts if isinstance(part, Text) and "clew" not in part.meta)


COMMANDS: Mapping[str, Callable[[Talk, str], None]] = {
    "compact": _compact,
    "pin": _pin,
    "memory": _memory,
    "search": _search,
    "expand": _expand,
    "tree": _tree,
    "rewind": _rewind,
    "fork": _fork,
    "continue": _continue,
    "cost": _cost,
    "help": _help,
}
"""What each command does. `screen.HELP` says it to people."""
