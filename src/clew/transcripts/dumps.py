"""Message lists in a provider's own words: OpenAI chat, OpenAI Responses, Anthropic; JSON or JSON Lines.

Around the list there may be an envelope: `{"messages": …}`, `{"system": …, "messages": …}`,
`{"items": …}`, one run of a list of runs (tau-bench: `traj`), a mini-swe-agent trajectory, the log
of one call (LiteLLM: the reply is in `response`). What the envelope says beside the messages becomes
a note at the end. Such lists have no ids and no branches: a message is known by its content and by
what came before it, so a longer dump of the same conversation adds what is new, and an edited one
becomes a branch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, BinaryIO

from msgspec import Struct
from msgspec.structs import replace

from clew.codecs import anthropic, openai, responses
from clew.codecs.usage import anthropic_usage, openai_usage
from clew.errors import BadPayload
from clew.messages import Message, Usage
from clew.sessions.entries import Note
from clew.transcripts.documents import Piece, is_document, message, pieces
from clew.transcripts.events import Body, Damage, Event, Leaf, Line, Start
from clew.transcripts.figures import mapping, reported, seconds
from clew.transcripts.lines import Record, numbered, records

LISTS = ("messages", "traj", "items", "input")
"""Names under which envelopes keep their messages."""

Json = dict[str, Any]


class Dialect(Struct, frozen=True):
    """How one provider's messages are read.

    `wire` are the fields the provider knows (None: all); others are a tool's own and kept aside.
    `joins` says which items belong to one reply and are decoded together.
    """

    name: str
    decode: Callable[[Any], list[Message]]
    usage: Callable[[Any], Usage]
    wire: frozenset[str] | None = None
    joins: Callable[[Json], bool] | None = None


def _of_a_reply(item: Json) -> bool:
    """Whether a Responses item is part of what the model answered."""
    kind = item.get("type", "message")
    if kind == "message":
        return item.get("role") == "assistant"
    return isinstance(kind, str) and not kind.endswith(("_output", "_response")) and kind != "item_reference"


OPENAI = Dialect(
    "openai",
    openai.decode,
    openai_usage,
    frozenset({"role", "content", "name", "tool_calls", "tool_call_id", "function_call", "refusal", "audio"})
    | {"annotations", "cache_control", "reasoning", "reasoning_content", "thinking_blocks"},
)
ANTHROPIC = Dialect("anthropic", anthropic.decode, anthropic_usage, frozenset({"role", "content"}))
RESPONSES = Dialect("responses", responses.decode, openai_usage, joins=_of_a_reply)


def read(file: BinaryIO, dialect: Dialect) -> Iterator[Event]:
    """The events of a dump, JSON or JSON Lines."""
    if is_document(file):
        yield from _read_pieces(pieces(file.read(), LISTS), dialect)
    else:
        yield from read_lines(numbered(file), dialect)


def read_lines(lines: Iterable[tuple[int, bytes]], dialect: Dialect) -> Iterator[Event]:
    """The events of JSON Lines: a message a line, or a whole conversation a line."""
    yield from _read_pieces(_line_pieces(records(lines)), dialect)


def _line_pieces(found: Iterable[Record | Damage]) -> Iterator[Piece | Damage]:
    """The messages of lines; a line that is an envelope stands for all of its messages."""
    alone = True
    for record in found:
        if isinstance(record, Damage):
            yield record
            continue
        value = record.value
        name = next((n for n in LISTS if isinstance(value.get(n), list)), "")
        if not name or "role" in value:
            yield message(value, record.line, "start" if alone else "message")
            alone = False
            continue
        items = value.pop(name)
        yield Piece(b"", {}, "start", record.line)
        if "system" in value:
            yield Piece(b"", value.pop("system"), "system", record.line)
        for item in items:
            yield message(item, record.line)
        yield message(value, record.line, "envelope")


class _Chain:
    """One conversation being read: where it stands, and the items of a reply not yet complete."""

    def __init__(self, dialect: Dialect, run: int) -> None:
        self.dialect = dialect
        self.run = run
        self.last: str | None = None
        self.count = 0
        self.held: list[Piece] = []

    def take(self, piece: Piece) -> Iterator[Event]:
        value = piece.value
        if not isinstance(value, dict):
            yield from self.release()
            yield self._line(Note(f"{self.dialect.name}/item", {"value": value}), piece)
            yield Damage(piece.line, f"a JSON {type(value).__name__} where a message is expected", lost=False)
        elif self.dialect.joins is not None and self.dialect.joins(value):
            self.held.append(piece)
        else:
            yield from self.release()
            yield from self._decoded([piece])

    def release(self) -> Iterator[Event]:
        """The reply whose items were collected."""
        held, self.held = self.held, []
        if held:
            yield from self._decoded(held)

    def envelope(self, piece: Piece) -> Iterator[Event]:
        """What stood around the messages: the reply of a logged call, and the rest as a note."""
        rest = dict(piece.value)
        yield from self.release()
        if self.last is not None and self.dialect is OPENAI:
            yield from self._logged_reply(rest)
        if rest:
            yield self._line(Note(f"{self.dialect.name}/envelope", rest), piece)

    def system(self, value: Any) -> Iterator[Event]:
        """The system prompt that stands beside the messages (Anthropic)."""
        piece = message(value, 0)
        try:
            found = anthropic.decode({"system": value, "messages": []})
        except BadPayload as error:
            yield from self._unreadable(piece, error)
            return
        yield from self._spoken(found, piece, {})

    def _logged_reply(self, envelope: Json) -> Iterator[Event]:
        response = envelope.get("response")
        if not isinstance(response, dict) or not isinstance(response.get("choices"), list):
            return
        piece = message(response, 0)
        try:
            reply = openai.decode_reply(response)[0]
        except BadPayload as error:
            yield from self._unreadable(piece, error)
            return
        yield from self._spoken([reply], piece, {"timestamp": envelope.get("timestamp")})

    def _decoded(self, held: list[Piece]) -> Iterator[Event]:
        """The messages of one provider message, or of the items of one reply; items no one can read as notes."""
        while held:
            values, extras = self._on_the_wire([piece.value for piece in held])
            try:
                found = self.dialect.decode(values)
            except BadPayload as error:
                bad = error.index if error.index is not None and error.index < len(held) else 0
                yield from self._unreadable(held[bad], error)
                held = held[:bad] + held[bad + 1 :]
                continue
            raw = held[0].raw if len(held) == 1 else b"\n".join(piece.raw for piece in held)
            yield from self._spoken(found, replace(held[-1], raw=raw), extras)
            return

    def _on_the_wire(self, values: list[Json]) -> tuple[list[Json], Json]:
        """The values as the provider knows them, and the fields a tool has added."""
        wire = self.dialect.wire
        if wire is None:
            return values, {}
        (value,) = values
        sent = {k: v for k, v in value.items() if k in wire and (v is not None or k == "content")}
        return [sent], {k: v for k, v in value.items() if k not in wire}

    def _unreadable(self, piece: Piece, error: BadPayload) -> Iterator[Event]:
        yield self._line(Note(f"{self.dialect.name}/item", {"value": piece.value}), piece)
        if mapping(piece.value).get("role") != "exit":  # mini-swe-agent's last word
            yield Damage(piece.line, f"kept as a note: {error.reason} ({error.field or 'message'})", lost=False)

    def _spoken(self, found: list[Message], piece: Piece, extras: Json) -> Iterator[Event]:
        usage, at = self._figures(extras)
        for n, spoken in enumerate(found):
            if n == 0 and usage is not None and spoken.role == "assistant":
                spoken = replace(spoken, usage=usage)
            if n == 0 and any(v is not None for v in extras.values()):
                spoken = replace(spoken, meta={**spoken.meta, "transcript": {"fields": extras}})
            yield self._line(spoken, piece, at)

    def _figures(self, extras: Mapping[str, Any]) -> tuple[Usage | None, float]:
        """Usage and time that a tool wrote beside the message."""
        extra = mapping(extras.get("extra"))
        beside, logged = extras.get("usage"), mapping(extra.get("response")).get("usage")
        usage = reported(self.dialect.usage(beside)) or reported(self.dialect.usage(logged))
        return usage, seconds(extras.get("timestamp")) or seconds(extra.get("timestamp"))

    def _line(self, body: Body, piece: Piece, at: float = 0.0) -> Line:
        self.count += 1
        key = f"{self.run}:{self.count}"
        line = Line(key, self.last, body, piece.raw, piece.line, at)
        self.last = key
        return line


def _read_pieces(found: Iterable[Piece | Damage], dialect: Dialect) -> Iterator[Event]:
    chain = _Chain(dialect, 0)
    for piece in found:
        if isinstance(piece, Damage):
            yield piece
            continue
        if piece.what == "start":
            if chain.run:
                yield from _end(chain)
            chain = _Chain(dialect, chain.run + 1)
            yield Start(str(chain.run))
        if piece.what == "system":
            yield from chain.system(piece.value)
        elif piece.what == "envelope":
            yield from chain.envelope(piece)
        elif piece.raw:
            yield from chain.take(piece)
    yield from _end(chain)


def _end(chain: _Chain) -> Iterator[Event]:
    yield from chain.release()
    if chain.last is not None:
        yield Leaf(chain.last)
