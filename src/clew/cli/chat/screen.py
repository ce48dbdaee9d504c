"""What the chat shows, as lines of Rich markup. Pure: nothing is printed here."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct
from rich.cells import cell_len
from rich.padding import Padding

from clew.agent.state import Action, ActionResult
from clew.budget import Budget
from clew.cli.output import literal
from clew.memory.records import MemoryRecord
from clew.memory.why import Why
from clew.sessions.entries import Compaction, Failed
from clew.sessions.tree import Node

BAR = 24
"""Width of the bar that shows how full the context is, in characters."""

HEAD = 400
"""Characters of a text that are looked at for one line."""

HELP: Mapping[str, str] = {
    "/compact [focus]": "compact the context now; the summary keeps the focus in view",
    "/pin TEXT": "a text that no compaction may lose",
    "/memory [query]": "what is remembered, or what a query recalls and why",
    "/search QUERY": "search all of this conversation, also what is out of view",
    "/expand ENTRY": "an entry in full; of a compaction, what it stands for",
    "/tree": "the conversation with its branches",
    "/rewind [turns]": "go back to before the last turn, or several; nothing is deleted",
    "/fork": "go on in a session of its own; this one stays as it is",
    "/continue": "go on with a reply that was interrupted",
    "/cost": "tokens and dollars so far",
    "/help": "this list",
    "/quit": "leave; so does Ctrl-D",
}
"""The commands, and what each does."""


class Spent(Struct, frozen=True):
    """What a session has cost: model calls, their tokens, and US dollars (None: no price is known)."""

    calls: int
    prompt: int
    cached: int
    output: int
    summaries: int
    dollars: float | None


class Flow:
    """Breaks a text that comes in pieces into lines of a width (None: it is left as it is), between words.

    Wide characters may be parted anywhere, as CJK texts are. A word is held back until its end is known.
    """

    def __init__(self, width: int | None) -> None:
        self._width = width
        self._column = 0
        self._space = ""
        self._word = ""

    def take(self, piece: str) -> str:
        """What can be shown after one more piece."""
        if self._width is None:
            return piece
        shown = []
        for char in piece:
            if char == "\n":
                shown.append(f"{self.end()}\n")
                self._column, self._space = 0, ""
            elif char.isspace():
                shown.append(self.end())
                self._space += char
            elif cell_len(char) > 1:
                shown.append(self.end())
                self._word = char
                shown.append(self.end())
            else:
                self._word += char
        return "".join(shown)

    def end(self) -> str:
        """What was held back."""
        if not self._word:
            return ""
        space, word = self._space, self._word
        self._space = self._word = ""
        if self._width and self._column + cell_len(space + word) > self._width:
            line = "\n" if self._column else ""
            self._column = cell_len(word)
            return line + word
        self._column += cell_len(space + word)
        return space + word


def one_line(text: str) -> str:
    """The beginning of a text, in one line."""
    return " ".join(text[:HEAD].split())


def fill(tokens: int, budget: Budget | None, window: int) -> str:
    """How full the context is: a bar up to the most a prompt may hold, with a mark where it is compacted."""
    limit = budget.input if budget else window
    full = min(BAR, round(BAR * tokens / limit))
    cells = ["█"] * full + ["░"] * (BAR - full)
    if budget and (mark := min(BAR - 1, BAR * budget.trigger // limit)) >= full:
        cells[mark] = "┊"
    colour = "green" if tokens < 0.6 * limit else "yellow" if tokens < 0.85 * limit else "red"
    return f"[dim]context[/] [{colour}]{''.join(cells)}[/] [dim]{tokens:,} of {limit:,} tokens[/]"


def compacted(entry: int, c: Compaction) -> str:
    """A compaction that has happened."""
    a = c.account
    parts = [(a.kept, "kept"), (a.summarised, "summarised"), (a.masked, "shortened"), (a.dropped, "dropped")]
    counts = ", ".join(f"{n:,} {word}" for n, word in parts if n)
    return (
        f"[cyan]compacted[/] {c.before:,} → {c.after:,} tokens [dim]({literal(c.reason)}): {counts}; /expand {entry}[/]"
    )


def refused(failed: Failed) -> str:
    """An attempt to compact that did not count."""
    f = failed.failure
    return f"[yellow]not compacted[/] [dim]{literal(one_line(f'{f.reason} {f.detail}'))}[/]"


def recalled(record: MemoryRecord) -> str:
    """A record that was recalled."""
    day = time.strftime("%Y-%m-%d", time.localtime(record.valid_from if record.valid_from else record.created))
    return f"[magenta]recalled[/] [dim]{day}[/] {literal(one_line(record.text))}"


def reason(why: Any) -> Padding:
    """Why it was, below it."""
    return Padding(f"[dim]{literal(explained(why))}[/]", (0, 0, 0, len("recalled ")))


def explained(why: Any) -> str:
    """Why a record was recalled, in words: as the recall said it, or as its data."""
    if isinstance(why, Mapping):
        return str(msgspec.convert(why, Why))
    return "" if why is None else str(why)


def called(action: Action) -> str:
    """A tool that is being called."""
    return f"[blue]→ {literal(action.name)}[/] [dim]{literal(one_line(action.arguments))}[/]"


def answered(result: ActionResult) -> str:
    """What a tool gave back."""
    colour = "red" if result.output.is_error else "dim"
    return f"  [{colour}]{literal(one_line(result.output.text))}[/]"


def tree(nodes: Mapping[int, Node], leaf: int | None, heads: Mapping[int, str]) -> Iterator[str]:
    """The entries that have a line in `heads`, each below the one it follows; every branch is a step further in.

    » is where the conversation stands, × what is on another branch.
    """
    here = set(_path(nodes, leaf))
    depth: dict[int, int] = {}
    roots = [node.id for node in nodes.values() if node.parent is None]
    waiting = [(id, n > 0) for n, id in reversed(list(enumerate(roots)))]
    while waiting:
        id, aside = waiting.pop()
        node = nodes[id]
        depth[id] = depth.get(node.parent or 0, 0) + aside
        if id in heads:
            last = id == max((i for i in here if i in heads), default=0)
            mark = "»" if last else " " if id in here else "×"
            label = f" [{node.label}]" if node.label else ""
            line = literal(f"{mark}{id:>5} {'  ' * depth[id]}{heads[id]}{label}")
            yield line if id in here else f"[dim]{line}[/]"
        # The branch that goes on from here stands straight below, those beside it come first.
        children = sorted(node.children, key=lambda child: (child not in here, child))
        waiting += [(child, n > 0) for n, child in enumerate(children)]


def _path(nodes: Mapping[int, Node], leaf: int | None) -> Iterator[int]:
    while leaf is not None:
        yield leaf
        leaf = nodes[leaf].parent


def spent(s: Spent) -> Iterator[str]:
    """What the session has cost."""
    yield f"{s.calls:,} model calls, {s.summaries:,} of them for summaries"
    share = f" ({s.cached / s.prompt:.0%} from the provider's cache)" if s.cached else ""
    yield f"{s.prompt:,} tokens sent{share}, {s.output:,} answered"
    yield "no price is known for this model" if s.dollars is None else f"${s.dollars:.4f}"


def helped() -> Iterator[str]:
    """The list of commands."""
    width = max(map(len, HELP))
    for command, what in HELP.items():
        yield f"{literal(command.ljust(width))}  [dim]{what}[/]"
