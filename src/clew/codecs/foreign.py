"""What one provider wrote, made acceptable to another: call ids, tool names, arguments, images.

All functions are deterministic and leave alone what is acceptable already.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from clew.codecs.shape import Json, copied, json_object
from clew.messages import Image, Meta, Opaque, Part, Text, ToolCall, ToolResult

_ANY_DATA_URL = re.compile(r"data:([^;,\s]+)(?:;[^;,\s]+)*;base64,(.*)", re.DOTALL)
_DATA_URL = re.compile(r"data:([^;,\s]+);base64,(.*)", re.DOTALL)
_NOT_IN_A_NAME = re.compile(r"[^a-zA-Z0-9_-]")
_SYSTEM_NOTE = "[system] "

IMAGE = "[image]"
"""Stands for an image that the provider cannot take where it is."""

UNSHOWN = "[content that this provider cannot take]"
"""Stands for a user message of which nothing else is left."""

_BY_EXTENSION = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
}
_BY_FIRST_BYTES = {"iVBOR": "image/png", "/9j/": "image/jpeg", "R0lG": "image/gif", "UklG": "image/webp"}


def own(meta: Meta, codec: str) -> Json:
    """A copy of a codec's own fields of a part or message; no other codec's are ever read."""
    fields: Any = meta.get(codec) if meta else None
    return dict(copied(fields)) if fields and isinstance(fields, Mapping) else {}


def marked(codec: str, fields: Json) -> Meta:
    """Meta that holds a codec's own fields; empty when there are none."""
    return {codec: fields} if fields else {}


def tool_name(name: str) -> str:
    """A name every provider accepts: letters, digits, `_` and `-`, at least one."""
    return _NOT_IN_A_NAME.sub("_", name) or "tool"


def arguments_object(text: str) -> Json:
    """Tool call arguments as an object. Text that is none (cut off, not JSON) is kept as `raw_arguments`."""
    found = json_object(text)
    if found is None:
        return {"raw_arguments": text} if text.strip() else {}
    return found


class CallIds(Struct):
    """Valid and unique ids for calls, and for each result the call it answers.

    Some providers accept only letters, digits, `_` and `-` in an id, and each id once. A foreign id
    such as `call_1|fc_2` becomes `call_1_fc_2`; a repeated one gets a number. With `strict` off an
    id is changed only when two calls of one message share it.
    """

    strict: bool
    _used: set[str] = field(default_factory=set)
    _open: dict[str, list[tuple[str, ToolCall]]] = field(default_factory=dict)

    def reply(self) -> None:
        """A new assistant message begins: calls before it are closed."""
        self._open = {}
        if not self.strict:
            self._used = set()

    def call(self, call: ToolCall) -> str:
        """The id to write for a call."""
        wanted = self._valid(call.id)
        unique, n = wanted, 1
        while unique in self._used:
            n += 1
            unique = f"{wanted}_{n}"
        self._used.add(unique)
        self._open.setdefault(call.id, []).append((unique, call))
        return unique

    def result(self, result: ToolResult) -> tuple[str, ToolCall | None]:
        """The id to write for a result, and its call (None when there is none in this round)."""
        waiting = self._open.get(result.call_id)
        if not waiting:
            return self._valid(result.call_id), None
        return waiting.pop(0) if len(waiting) > 1 else waiting[0]

    def _valid(self, original: str) -> str:
        return (_NOT_IN_A_NAME.sub("_", original) or "call") if self.strict else original


class Unnumbered(Struct):
    """Ids for calls and results that carry none, paired by name and order.

    The n-th call of a function and the n-th result for it get the same id, also when they are
    decoded one message at a time.
    """

    _calls: dict[str, int] = field(default_factory=dict)
    _results: dict[str, int] = field(default_factory=dict)

    def reply(self) -> None:
        """A new assistant message begins: results count from here."""
        self._results = dict(self._calls)

    def call(self, name: str) -> str:
        """The id of the next call of this function."""
        return self._next(self._calls, name)

    def result(self, name: str) -> str:
        """The id of the call the next result of this function answers."""
        return self._next(self._results, name)

    def _next(self, counts: dict[str, int], name: str) -> str:
        n = counts.get(name, 0)
        counts[name] = n + 1
        return f"{name}-{n + 1}"


def inline(url: str) -> tuple[str, str] | None:
    """Media type and base64 text of a data URL that can be put together again exactly."""
    match = _DATA_URL.fullmatch(url)
    return (match[1], match[2]) if match else None


def located(image: Image) -> Image:
    """The image with a data URL taken apart and the media type filled in from its name or first bytes."""
    found = _ANY_DATA_URL.fullmatch(image.url) if image.url and not image.data else None
    media_type, data = (found[1], found[2]) if found else (image.media_type, image.data)
    if not media_type:
        media_type = next((t for start, t in _BY_FIRST_BYTES.items() if data.startswith(start)), "")
    if not media_type:
        ending = image.url.split("?")[0].rsplit(".", 1)[-1].lower()
        media_type = _BY_EXTENSION.get(ending, "image/png")
    return Image("" if data else image.url, data, media_type, image.meta)


def on_the_web(url: str) -> bool:
    """Whether a provider can be asked to fetch the address."""
    return url.startswith(("https://", "http://"))


def system_note(text: str) -> str:
    """A system message in the middle of a conversation, for providers that take none there."""
    return _SYSTEM_NOTE + text


def left_out(parts: tuple[Part, ...]) -> bool:
    """Whether a message that came out empty held something (an image, a foreign block) that was left out."""
    return any(isinstance(p, Opaque | Image) for p in parts)


def plain(part: Part) -> bool:
    """Text without provider fields."""
    return isinstance(part, Text) and not part.meta
