"""Asks a model for a summary: of messages, or of messages on top of the summary before them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from clew.budget import Budget
from clew.errors import OverflowReply
from clew.messages import Image, Message, Opaque, Part, Text, Thinking, ToolCall, ToolResult, Usage, system, user
from clew.models.base import ModelCall, answer_text
from clew.models.steps import Steps
from clew.policies.fences import fenced, pinned
from clew.policies.prompt import prompt
from clew.policies.shrink import head_tail
from clew.sessions.view import View

RESULT_CHARACTERS = (2_000, 600, 150)
"""How much of one tool result or argument text the model is shown: the first that lets all messages fit one request
(Pi 0.73.1 and OpenCode 1.18 show 2,000 characters)."""

HALVINGS = 3
"""How often the request is halved when the model says that it is too long, before giving up."""

MARGIN = 64
"""Tokens kept free in a request for framing that counters see differently."""


class Summary(Struct, frozen=True):
    """A summary's text, and what it took: model calls and their usage."""

    text: str
    calls: int
    usage: Usage


def summarise(
    view: View,
    messages: Sequence[Message],
    budget: Budget,
    *,
    max_output: int,
    previous: str = "",
    focus: str = "",
) -> Steps[Summary]:
    """A summary of the messages in at most `max_output` tokens, with the view's pinned texts after it.

    `previous` is the summary that the new one takes up and replaces, `focus` what the user asked to
    keep in view. The request always fits `budget.window`: long results are cut, and what is still too
    long is summarised part by part, each with the summary of the parts before. A model that finds a
    request too long all the same is asked again with half of it. Raises `ModelError` when the model gives
    no usable summary.
    """
    counted = _Counted(view)
    space = budget.window - max_output - counted(_instructions(True, focus)) - MARGIN
    space = max(space, MARGIN)
    todo = list(messages)
    summary, calls, usage, halved = previous, 0, Usage(), 0
    while todo:
        room = max(space - counted(summary), space // 2)
        n, text = _request(todo, counted, room)
        call = ModelCall(
            (
                system(_instructions(bool(summary), focus)),
                user(_data(summary, text, counted, space // 2)),
            ),
            max_output=max_output,
            purpose="summary",
            source=tuple(todo[:n]),
            previous=summary,
            focus=focus,
        )
        calls += 1
        try:
            reply = yield call
        except OverflowReply:
            halved += 1
            if halved > HALVINGS:
                raise
            space //= 2
            continue
        usage += reply.usage
        summary = answer_text(reply)
        todo = todo[n:]
    return Summary(pinned(summary, view.pins), calls, usage)


def serialise(message: Message, keep: int) -> str:
    """A message as text: who speaks, calls with their arguments, results; each of those in `keep` characters.

    Thinking is left out; media are named.
    """
    lines = [line for line in (_line(part, message.role, keep) for part in message.parts) if line]
    return "\n".join(lines)


def _line(part: Part, role: str, keep: int) -> str:
    match part:
        case Text():
            return f"[{role}] {part.text}" if part.text.strip() else ""
        case ToolCall():
            return f"[call] {part.name}({head_tail(part.arguments, keep)})"
        case ToolResult():
            inside = "\n".join(p.text if isinstance(p, Text) else _named(p) for p in part.content)
            word = "failed" if part.is_error else "result"
            return f"[{word}{' of ' + part.name if part.name else ''}] {head_tail(inside, keep)}"
        case Thinking():
            return ""
        case Image() | Opaque():
            return f"[{role}] {_named(part)}"


def _named(part: Image | Opaque) -> str:
    if isinstance(part, Image):
        return f"[image {part.media_type or part.url[:100]}]"
    return f"[{part.data.get('type', part.codec)}]"


class _Counted:
    """Calibrated tokens of a text."""

    def __init__(self, view: View) -> None:
        self.counter = view.counter
        self.scale = view.scale

    def __call__(self, text: str) -> int:
        return int(self.counter.text(text) * self.scale) + 1

    def clipped(self, text: str, tokens: int) -> str:
        """The text in at most so many tokens, head and tail."""
        keep = 4 * tokens
        short = text
        while (count := self(short)) > tokens and keep > 0:
            short = head_tail(text, keep)
            keep = keep * tokens * 9 // (count * 10) if keep < len(text) else keep // 2
        return short


def _request(messages: Sequence[Message], counted: _Counted, room: int) -> tuple[int, str]:
    """How many of the messages fit one request of `room` tokens (at least one), and their text."""
    n, text = 0, ""
    for keep in RESULT_CHARACTERS:
        n, text = _fill(messages, keep, counted, room)
        if n == len(messages):
            break
    return n, text


def _fill(messages: Sequence[Message], keep: int, counted: _Counted, room: int) -> tuple[int, str]:
    taken: list[str] = []
    used = 0
    for n, text in _texts(messages, keep):
        cost = counted(text) + 2
        if used + cost > room:
            if not taken:
                return n + 1, counted.clipped(text, room)
            return n, "\n\n".join(taken)
        taken.append(text)
        used += cost
    return len(messages), "\n\n".join(taken)


def _texts(messages: Sequence[Message], keep: int) -> Iterator[tuple[int, str]]:
    for n, message in enumerate(messages):
        yield n, serialise(message, keep)


def _instructions(update: bool, focus: str) -> str:
    parts = [prompt("clew.policies", "summary")]
    if update:
        parts.append(prompt("clew.policies", "update"))
    if focus:
        parts.append(f"The user asks that the record pay special attention to: {focus}")
    return "\n\n".join(parts)


def _data(previous: str, text: str, counted: _Counted, limit: int) -> str:
    parts = [fenced("conversation", text)]
    if previous:
        parts.insert(0, fenced("previous", counted.clipped(previous, limit)))
    return "\n\n".join(parts)
