"""A transcript as one conversation, without a store: what was said on its active path, in order."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from clew.errors import UnknownName
from clew.messages import Message, Usage
from clew.transcripts.events import Aside, Boundary, Damage, Leaf, Line, Start
from clew.transcripts.formats import named, opened
from clew.transcripts.sniffing import sniff


class Compacted(Struct, frozen=True):
    """A compaction the tool made, before the message at index `before`.

    `tokens_before` and `tokens_after` are as the tool counted them (0: not said), `usage` what the
    summary cost, `at` seconds since 1970.
    """

    before: int
    summary: str
    reason: str = "threshold"
    tokens_before: int = 0
    tokens_after: int = 0
    usage: Usage | None = None
    at: float = 0.0


class Recording(Struct, frozen=True):
    """The messages of the active path from the very first, as if nothing had ever been compacted.

    Empty replies (failed attempts) are left out. `times` are seconds since 1970 for each message (0:
    unknown); usage is on the messages. `run` of `runs` conversations in the file, counted from 1.
    """

    path: str
    format: str
    messages: tuple[Message, ...]
    times: tuple[float, ...]
    compactions: tuple[Compacted, ...] = ()
    damage: tuple[Damage, ...] = ()
    run: int = 1
    runs: int = 1

    @property
    def skipped(self) -> tuple[tuple[int, str], ...]:
        """Lines of which nothing could be used: number and reason."""
        return tuple((d.line, d.reason) for d in self.damage if d.lost)


def recording(path: Path | str, *, format: str = "", run: int = 1) -> Recording:
    """Reads a transcript for replay.

    `format` is sniffed when empty. `run` chooses among the conversations of a file that holds
    several. Raises `UnknownName` (file, format, run) and `BadPayload` (an empty file).
    """
    name = format or sniff(path)
    reader = named(name)
    nodes: dict[str, _Node] = {}
    damage: list[Damage] = []
    leaf: _Node | None = None
    runs = 0
    with opened(path) as file:
        for event in reader.read(file):
            if isinstance(event, Damage):
                damage.append(event)
            elif isinstance(event, Start):
                runs += 1
            elif runs > 1 and runs != run:
                continue
            elif isinstance(event, Line):
                nodes[event.key] = _Node(event, nodes.get(event.parent or ""))
            elif isinstance(event, Leaf) and runs <= max(1, run):
                leaf = nodes.get(event.key)
    runs = max(1, runs)
    if not 1 <= run <= runs:
        raise UnknownName(f"{path} holds {runs} conversations; there is no number {run}")
    messages, times, compactions = _told(leaf)
    return Recording(str(path), name, messages, times, compactions, tuple(damage), run, runs)


class _Node(Struct):
    line: Line
    above: _Node | None


def _told(leaf: _Node | None) -> tuple[tuple[Message, ...], tuple[float, ...], tuple[Compacted, ...]]:
    """Messages, times and compactions on the path to a leaf."""
    path = []
    while leaf is not None:
        path.append(leaf.line)
        leaf = leaf.above
    messages: list[Message] = []
    times: list[float] = []
    compactions: list[Compacted] = []
    for line in reversed(path):
        body = line.body
        if isinstance(body, Boundary):
            before, after = body.before, body.after
            mark = Compacted(len(messages), body.summary.text, body.reason, before, after, body.usage, line.at)
            compactions.append(mark)
        spoken = body.message if isinstance(body, Aside) else body
        if isinstance(spoken, Message) and (not spoken.blank or spoken.usage is not None):
            messages.append(spoken)
            times.append(line.at)
    return tuple(messages), tuple(times), tuple(compactions)
