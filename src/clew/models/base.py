"""What a model is to Clew: one call in, one reply out, and when a reply counts as an answer."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Mapping
from typing import Any, Literal, Protocol, runtime_checkable

from msgspec import Struct, field

from clew.errors import BadReply, EmptyReply, ModelError, RefusedReply, TruncatedReply
from clew.messages import FinishReason, Message, Usage
from clew.models.error_text import looks_like_error as looks_like_error


class ModelCall(Struct, frozen=True, omit_defaults=True):
    """A request to a model.

    `messages` is the whole prompt, `max_output` the reply limit in tokens (None: the model's own).
    `source` holds the messages that a summary or extraction is about: models that work on
    structure instead of a prompt (`Extractive`) read it, providers never see it. `previous` is the
    summary that the new one updates. `meta["timeout"]` is how long the call may take, in seconds, for models that can
    tell the time.
    """

    messages: tuple[Message, ...]
    tools: tuple[Mapping[str, Any], ...] = ()
    max_output: int | None = None
    purpose: Literal["reply", "summary", "extract", "recall", "judge"] = "reply"
    source: tuple[Message, ...] = ()
    previous: str = ""
    focus: str = ""
    meta: Mapping[str, Any] = field(default_factory=dict)


class Reply(Struct, frozen=True, omit_defaults=True):
    """What came back: the message, why it ended, what it cost and how long it took (seconds)."""

    message: Message
    finish_reason: FinishReason = "stop"
    usage: Usage = Usage()
    latency: float = 0.0

    @property
    def text(self) -> str:
        """The reply's visible text."""
        return self.message.text


@runtime_checkable
class Model(Protocol):
    """Anything that completes a call. `context_window` is in tokens."""

    @property
    def name(self) -> str: ...

    @property
    def context_window(self) -> int: ...

    def complete(self, call: ModelCall) -> Reply: ...

    async def acomplete(self, call: ModelCall) -> Reply: ...


class Delta(Struct, frozen=True, omit_defaults=True):
    """A piece of the text that a model is writing; `thinking`: of its reasoning."""

    text: str
    thinking: bool = False


@runtime_checkable
class Streaming(Model, Protocol):
    """A model that can be watched while it writes: pieces as they come, at last the whole reply.

    Raises what `complete` raises, also after the first pieces.
    """

    def stream(self, call: ModelCall) -> Generator[Delta | Reply, None, None]: ...

    def astream(self, call: ModelCall) -> AsyncGenerator[Delta | Reply, None]: ...


def answer_text(reply: Reply) -> str:
    """The reply's text if it counts as an answer.

    Raises the typed error otherwise: `RefusedReply`, `TruncatedReply`, `EmptyReply`, `BadReply`
    (an error text, or tool calls where text was asked for). Every error carries the raw text.
    """
    text = reply.text.strip()
    failure: ModelError | None = None
    if reply.finish_reason == "refusal":
        failure = RefusedReply("the model refused", raw=text)
    elif reply.finish_reason == "length":
        failure = TruncatedReply("the reply was cut off by the output limit", raw=text)
    elif reply.finish_reason == "error":
        failure = BadReply("the provider ended the reply with an error", raw=text)
    elif not text:
        what = "only tool calls came back" if reply.message.calls else "the reply has no text"
        failure = EmptyReply(f"{what} (finish_reason {reply.finish_reason})")
    elif looks_like_error(text):
        failure = BadReply("the reply is an error message, not an answer", raw=text)
    if failure is not None:
        failure.meta.update(usage=reply.usage, finish_reason=reply.finish_reason)
        raise failure
    return text
