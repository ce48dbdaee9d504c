"""A model that says what it is told to: for tests, and to replay recorded replies."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Iterator
from itertools import repeat

from clew.errors import ClewError, ModelError
from clew.messages import assistant
from clew.models.base import Delta, ModelCall, Reply

Line = str | Reply | ModelError
Script = Line | Callable[[ModelCall], Line]


class ScriptEnded(ClewError):
    """The model was called once more than its script foresees."""


class Scripted:
    """Answers calls from a script.

    `replies` is a list used up in order, or one entry for every call. An entry is a text, a `Reply`, an
    error to raise, or a function from the call to one of these. `calls` holds the calls so far.
    A call past the end of the script raises `ScriptEnded`, which nothing takes for a model's failure.
    """

    def __init__(
        self,
        replies: Iterable[Script] | Script,
        *,
        context_window: int = 1_000_000,
        name: str = "scripted",
    ) -> None:
        self.name = name
        self.context_window = context_window
        self.calls: list[ModelCall] = []
        self._script: Iterator[Script]
        if isinstance(replies, str | Reply | ModelError) or callable(replies):
            self._script = repeat(replies)
        else:
            self._script = iter(replies)

    def complete(self, call: ModelCall) -> Reply:
        """The next reply of the script."""
        self.calls.append(call)
        line = next(self._script, None)
        if line is None:
            raise ScriptEnded(f"call {len(self.calls)} ({call.purpose}) is past the end of the script")
        if not isinstance(line, str | Reply | ModelError):
            line = line(call)
        if isinstance(line, ModelError):
            raise line
        return Reply(assistant(line)) if isinstance(line, str) else line

    async def acomplete(self, call: ModelCall) -> Reply:
        """As `complete`."""
        return self.complete(call)

    def stream(self, call: ModelCall) -> Generator[Delta | Reply, None, None]:
        """The next reply, a word at a time, then whole."""
        reply = self.complete(call)
        for word in re.findall(r"\S*\s*", reply.text):
            if word:
                yield Delta(word)
        yield reply

    async def astream(self, call: ModelCall) -> AsyncGenerator[Delta | Reply, None]:
        """As `stream`."""
        for piece in self.stream(call):
            yield piece
