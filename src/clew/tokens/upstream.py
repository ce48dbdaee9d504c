"""How upstream systems count, for runs that must decide as they do. Use `Heuristic` to count.

Each class names its source. Where an upstream system counts its own message format, the message is
written in that format first. Systems that do not count tool schemas give 0 for them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from math import ceil, floor
from typing import Any, ClassVar, Literal

from msgspec import Struct

from clew.messages import Image, Message, Opaque, Part, Text, Thinking, ToolCall, ToolResult
from clew.tokens.javascript import rewritten, stringify, units
from clew.tokens.protocol import TokenCounter

Tools = Sequence[Mapping[str, Any]]
Json = dict[str, Any]


class Pi(Struct, frozen=True):
    """Pi (0.73.1 and 1.6, `estimateTokens`): UTF-16 units over 4, rounded up per message.

    A picture counts 4,800 units, but nothing in a user message of 0.73.1. Chinese, Japanese and Korean
    come out 3 to 4 times too small in both.
    """

    version: Literal["0.73.1", "1.6"] = "0.73.1"

    @property
    def name(self) -> str:
        return f"pi-{self.version}"

    def text(self, text: str) -> int:
        return ceil(units(text) / 4)

    def message(self, message: Message) -> int:
        if message.role == "system" and self.version == "0.73.1":
            return 0
        if message.role == "tool":
            return sum(ceil(sum(map(self._units, r.content)) / 4) for r in message.results)
        free = message.role == "user" and self.version == "0.73.1"
        return ceil(sum(self._units(p) for p in message.parts if not (free and isinstance(p, Image))) / 4)

    def tools(self, tools: Tools) -> int:
        return 0

    def _units(self, part: Part) -> int:
        if isinstance(part, Text | Thinking):
            return units(part.text)
        if isinstance(part, ToolCall):
            return units(part.name) + units(rewritten(part.arguments))
        return 4_800 if isinstance(part, Image) else 0


class QitOS(Struct, frozen=True):
    """QitOS 0.3 (histories): 0 without content, else `max(1, len // 4)`; calls and roles are free."""

    name: ClassVar[str] = "qitos-0.3"

    def text(self, text: str) -> int:
        return max(1, len(text) // 4) if text else 0

    def message(self, message: Message) -> int:
        if message.role == "tool":
            return sum(self.text(r.text) for r in message.results)
        return self.text(message.text)

    def tools(self, tools: Tools) -> int:
        return 0


class Codex(Struct, frozen=True):
    """Codex (commit ba2fb483): UTF-8 bytes over 4, rounded up, of each history item's compact JSON.

    The base64 of a picture is replaced by 7,373 bytes; encrypted reasoning of n characters counts as
    `n * 3 // 4 - 650` bytes; an encrypted tool output as `n * 9 / 16`.
    """

    name: ClassVar[str] = "codex-ba2fb48"

    def text(self, text: str) -> int:
        return ceil(_bytes(text) / 4)

    def message(self, message: Message) -> int:
        return sum(ceil(size / 4) for size in self._sizes(message))

    def tools(self, tools: Tools) -> int:
        return 0

    def _sizes(self, message: Message) -> Iterator[int]:
        """Bytes of the history items that a message is."""
        content: list[Json] = []
        inline = 0
        for part in message.parts:
            if isinstance(part, Text):
                kind = "output_text" if message.role == "assistant" else "input_text"
                content.append({"type": kind, "text": part.text})
            elif isinstance(part, Image):
                shown, size = self._image(part)
                content.append(shown)
                inline += size
            elif isinstance(part, ToolCall):
                yield _size(type="function_call", name=part.name, arguments=part.arguments, call_id=part.id)
            elif isinstance(part, Thinking):
                yield self._reasoning(part)
            elif isinstance(part, Opaque):
                yield _size(**part.data)
            else:
                yield self._output(part)
        if content:
            role = "developer" if message.role == "system" else message.role
            yield _size(type="message", role=role, content=content) + inline

    def _reasoning(self, part: Thinking) -> int:
        if part.signature:
            return max(len(part.signature) * 3 // 4 - 650, 0)
        return _size(type="reasoning", summary=[{"type": "summary_text", "text": part.text}])

    def _output(self, part: ToolResult) -> int:
        if all(isinstance(p, Text) for p in part.content):
            return _size(type="function_call_output", call_id=part.call_id, output=part.text)
        output: list[Json] = []
        inline = 0
        for p in part.content:
            if isinstance(p, Text):
                output.append({"type": "input_text", "text": p.text})
            elif isinstance(p, Image):
                shown, size = self._image(p)
                output.append(shown)
                inline += size
            elif "encrypted_content" in p.data:
                blob = str(p.data["encrypted_content"])
                output.append({**p.data, "encrypted_content": ""})
                inline += ceil(len(blob) * 9 / 16)
            else:
                output.append(dict(p.data))
        return _size(type="function_call_output", call_id=part.call_id, output=output) + inline

    def _image(self, image: Image) -> tuple[Json, int]:
        """The picture without its bytes, and what they count."""
        if image.data:
            return {"type": "input_image", "image_url": f"data:{image.media_type};base64,"}, 7_373
        head, mark, _ = image.url.partition(";base64,")
        if mark and head.startswith("data:image/"):
            return {"type": "input_image", "image_url": head + mark}, 7_373
        return {"type": "input_image", "image_url": image.url}, 0


class Gemini(Struct, frozen=True):
    """Gemini CLI (0.45 to 0.61, `estimateTokenCountSync`).

    A character up to U+007F counts `1 / chars_per_token`, any other UTF-16 unit 1.5, a text of more than
    100,000 units its length over `chars_per_token` whatever the script; a picture 3,000, a PDF 25,800;
    tool traffic by the length of its JSON. The sum is rounded down. `chars_per_token` is 4, and 3 in
    the context manager.
    """

    chars_per_token: int = 4

    @property
    def name(self) -> str:
        return f"gemini-0.61-{self.chars_per_token}"

    def text(self, text: str) -> int:
        return floor(self._text(text))

    def message(self, message: Message) -> int:
        return floor(sum(map(self._part, message.parts)))

    def tools(self, tools: Tools) -> int:
        return floor(units(stringify(tools)) / self.chars_per_token) if tools else 0

    def _part(self, part: Part) -> float:
        if isinstance(part, Text | Thinking):
            return self._text(part.text)
        if isinstance(part, Image):
            return 3_000
        if isinstance(part, ToolCall):
            call: Json = {"name": part.name, "args": _parsed(part.arguments)}
            call |= {"id": part.id} if part.id else {}
            return units(stringify({"functionCall": call})) / self.chars_per_token
        if isinstance(part, Opaque):
            return self._media(part)
        said = stringify({"error" if part.is_error else "output": part.text})
        inner = sum(self._part(p) for p in part.content if not isinstance(p, Text))
        return (units(part.name) + units(said)) / self.chars_per_token + floor(inner)

    def _media(self, part: Opaque) -> float:
        for key in ("inlineData", "fileData"):
            kind = str((part.data.get(key) or {}).get("mimeType", ""))
            if kind.startswith("image/"):
                return 3_000
            if kind.startswith("application/pdf"):
                return 25_800
        return units(stringify(part.data)) / self.chars_per_token

    def _text(self, text: str) -> float:
        length = units(text)
        if length > 100_000:
            return length / self.chars_per_token
        ascii_cost = 1 / self.chars_per_token
        # Added up one by one: upstream's rounding errors are part of its counts (300 / 3 gives 99).
        costs = (ascii_cost if c < "\x80" else 1.5 if c < "\U00010000" else 3.0 for c in text)
        total = 0.0
        for total in accumulate(costs):  # noqa: B007
            pass
        return total


class OpenCode(Struct, frozen=True):
    """OpenCode (1.18): `Math.round(length / 4)`, of a message the JSON of its AI SDK form."""

    name: ClassVar[str] = "opencode-1.18"

    def text(self, text: str) -> int:
        return floor(units(text) / 4 + 0.5)

    def message(self, message: Message) -> int:
        content = [self._part(p) for p in message.parts]
        return self.text(stringify({"role": message.role, "content": content}))

    def tools(self, tools: Tools) -> int:
        return 0

    def _part(self, part: Part) -> Json:
        if isinstance(part, Text):
            return {"type": "text", "text": part.text}
        if isinstance(part, Thinking):
            return {"type": "reasoning", "text": part.text}
        if isinstance(part, Image):
            return {"type": "file", "mediaType": part.media_type, "data": part.url or part.data}
        if isinstance(part, ToolCall):
            return {"type": "tool-call", "toolCallId": part.id, "toolName": part.name, "input": _parsed(part.arguments)}
        if isinstance(part, Opaque):
            return dict(part.data)
        kind = "error-text" if part.is_error else "text"
        output = {"type": kind, "value": part.text}
        return {"type": "tool-result", "toolCallId": part.call_id, "toolName": part.name, "output": output}


class Hermes(Struct, frozen=True):
    """Hermes (0.19, tail walk): `len(content) // 4 + 10` per message, a picture as 6,400 characters.

    Each tool call adds a quarter of its dict as Python prints it, reasoning a quarter of its length.
    """

    name: ClassVar[str] = "hermes-0.19"

    def text(self, text: str) -> int:
        return len(text) // 4

    def message(self, message: Message) -> int:
        if message.role == "tool":
            return sum(self._chars(r.content) // 4 + 10 for r in message.results)
        tokens = self._chars(message.parts) // 4 + 10
        for part in message.parts:
            if isinstance(part, ToolCall):
                function = {"name": part.name, "arguments": part.arguments}
                tokens += len(str({"id": part.id, "type": "function", "function": function})) // 4
            elif isinstance(part, Thinking):
                tokens += len(part.text) // 4
        return tokens

    def tools(self, tools: Tools) -> int:
        return 0

    def _chars(self, parts: Sequence[Part]) -> int:
        return sum(len(p.text) if isinstance(p, Text) else 6_400 if isinstance(p, Image) else 0 for p in parts)


class Vibe(Struct, frozen=True):
    """Mistral Vibe (2.19, `approx_token_count`): characters over 4, rounded up, whatever the script."""

    name: ClassVar[str] = "vibe-2.19"

    def text(self, text: str) -> int:
        return ceil(len(text) / 4)

    def message(self, message: Message) -> int:
        return self.text("\n".join((message.text, *(r.text for r in message.results))).strip("\n"))

    def tools(self, tools: Tools) -> int:
        return 0


class Aider(Struct, frozen=True):
    """Aider (0.86, `Model.token_count`): a message dict is counted by `base` on `json.dumps` of it.

    So Chinese text costs its ASCII escapes: 25 tokens for four characters.
    """

    base: TokenCounter

    @property
    def name(self) -> str:
        return f"aider-0.86-{self.base.name}"

    def text(self, text: str) -> int:
        return self.base.text(text)

    def message(self, message: Message) -> int:
        return self.base.text(json.dumps({"role": message.role, "content": message.text}))

    def tools(self, tools: Tools) -> int:
        return 0


class Tutorial(Struct, frozen=True):
    """The memory tutorial's statistics: half the characters of the line "role: content"."""

    name: ClassVar[str] = "tutorial"

    def text(self, text: str) -> int:
        return len(text) // 2

    def message(self, message: Message) -> int:
        return self.text(f"{message.role}: {message.text}")

    def tools(self, tools: Tools) -> int:
        return 0


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _size(**item: Any) -> int:
    return _bytes(json.dumps(item, ensure_ascii=False, separators=(",", ":")))


def _parsed(arguments: str) -> Any:
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments
