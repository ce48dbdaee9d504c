"""Messages and entry ids as a person would read them."""

from __future__ import annotations

from clew.messages import Image, Message, Opaque, Text, Thinking, ToolCall, ToolResult
from clew.sessions.edits import Ids


def as_text(message: Message) -> str:
    """A message as a person would read it."""
    lines: list[str] = []
    for part in message.parts:
        if isinstance(part, Text):
            lines.append(part.text)
        elif isinstance(part, Thinking):
            lines.append(f"(thinking) {part.text}")
        elif isinstance(part, ToolCall):
            lines.append(f"{part.name} {part.arguments}")
        elif isinstance(part, ToolResult):
            inner = as_text(Message("user", part.content))
            lines.append(f"(error) {inner}" if part.is_error else inner)
        elif isinstance(part, Image):
            lines.append(f"[image {part.media_type or part.url[:60]}]")
        elif isinstance(part, Opaque):
            lines.append(f"[{part.codec} block]")
    return "\n".join(lines)


def span(ids: Ids) -> str:
    """Entry ids for people: "12", or "12–97"."""
    first, last = (i if isinstance(i, int) else i[end] for end, i in ((0, ids[0]), (1, ids[-1])))
    return str(first) if first == last else f"{first}–{last}"
