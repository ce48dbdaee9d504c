"""Any provider's model, through LiteLLM (extra `models`), which is imported on the first call only."""

from __future__ import annotations

import importlib.util
import json
import os
import time
from collections.abc import AsyncGenerator, Generator, Iterator, Mapping, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    aclosing,
    closing,
    contextmanager,
    nullcontext,
)
from functools import cache, cached_property
from importlib import import_module
from typing import Any

from clew.codecs import openai
from clew.errors import (
    BadBudget,
    BadPayload,
    BadReply,
    MissingExtra,
    ModelError,
    OverflowReply,
    RateLimited,
    RefusedReply,
    TransportError,
)
from clew.models.base import Delta, ModelCall, Reply

_MESSAGE_FIELDS = ("role", "content", "tool_calls", "refusal", "reasoning_content", "thinking_blocks")
"""Of a reply's fields, those that a later request may have to hand back."""

_STREAM = {"stream": True, "stream_options": {"include_usage": True}}


class LiteLLM:
    """A model by LiteLLM's name for it, for instance "anthropic/claude-sonnet-4-5".

    - `context_window`: tokens; taken from LiteLLM's model list if not given
    - `timeout`: seconds for one attempt
    - `retries`: attempts after the first when the provider is busy or unreachable
    - `options`: whatever else `litellm.completion` takes (`api_key`, `api_base`, `temperature`, …)

    Raises `MissingExtra` when the package is not there. Calls raise the typed errors of `clew.errors` only, with the
    provider's text in `raw`, its status in `meta["status"]`.
    """

    def __init__(
        self, model: str, *, context_window: int | None = None, timeout: float = 600.0, retries: int = 2, **options: Any
    ) -> None:
        check_installed()
        self.name = model
        self._window = context_window
        self._options = {"timeout": timeout, "max_retries": retries, **options}

    @cached_property
    def context_window(self) -> int:
        """Tokens. Raises `BadBudget` when it was not given and LiteLLM does not know the model."""
        return self._window or _known_window(self.name)

    def complete(self, call: ModelCall) -> Reply:
        """Sends the call and waits for the reply."""
        litellm = _litellm()
        start = time.perf_counter()
        with _typed_errors():
            response = litellm.completion(**self._request(call))
        return _reply(response, time.perf_counter() - start)

    async def acomplete(self, call: ModelCall) -> Reply:
        """As `complete`."""
        litellm = _litellm()
        start = time.perf_counter()
        with _typed_errors():
            response = await litellm.acompletion(**self._request(call))
        return _reply(response, time.perf_counter() - start)

    def stream(self, call: ModelCall) -> Generator[Delta | Reply, None, None]:
        """Sends the call; the reply's pieces as they come, at last the whole. Closing the generator hangs up."""
        litellm = _litellm()
        start, chunks = time.perf_counter(), []
        with _typed_errors(), _hung_up(litellm.completion(**self._request(call), **_STREAM)) as coming:
            for chunk in coming:
                chunks.append(chunk)
                yield from _deltas(chunk)
                _in_time(call, start)
        yield _reply(_joined(litellm, chunks), time.perf_counter() - start)

    async def astream(self, call: ModelCall) -> AsyncGenerator[Delta | Reply, None]:
        """As `stream`."""
        litellm = _litellm()
        start, chunks = time.perf_counter(), []
        with _typed_errors():
            async with _ahung_up(await litellm.acompletion(**self._request(call), **_STREAM)) as coming:
                async for chunk in coming:
                    chunks.append(chunk)
                    for delta in _deltas(chunk):
                        yield delta
                    _in_time(call, start)
        yield _reply(_joined(litellm, chunks), time.perf_counter() - start)

    def _request(self, call: ModelCall) -> dict[str, Any]:
        request = {**self._options, "model": self.name, "messages": openai.encode(call.messages)}
        if "timeout" in call.meta:  # that is all the time there is: no attempts beyond it
            request |= {"timeout": min(call.meta["timeout"], request["timeout"]), "max_retries": 0}
        if call.tools:
            request["tools"] = [dict(t) for t in call.tools]
        if call.max_output is not None:
            request["max_tokens"] = call.max_output
        return request


def embeddings(model: str, texts: Sequence[str], **options: Any) -> list[list[float]]:
    """What a provider's embedding model makes of texts, in their order. `options` is whatever else
    `litellm.embedding` takes. Raises the typed errors of `clew.errors`, as a call does."""
    litellm = _litellm()
    with _typed_errors():
        response = litellm.embedding(model=model, input=list(texts), **options)
    found = sorted(response.model_dump()["data"], key=lambda one: one["index"])
    return [one["embedding"] for one in found]


def check_installed() -> None:
    """Raises `MissingExtra` when LiteLLM is not there."""
    if not _installed():
        raise _missing()


def _reply(response: Any, latency: float) -> Reply:
    payload = response.model_dump()
    for choice in payload.get("choices") or ():
        choice["message"] = {k: v for k, v in (choice.get("message") or {}).items() if k in _MESSAGE_FIELDS}
    try:
        message, finish, usage = openai.decode_reply(payload)
    except BadPayload as error:
        raise BadReply(
            f"the provider's response is malformed: {error}", raw=json.dumps(payload, default=str)
        ) from error
    return Reply(message, finish, usage, latency)


def _hung_up(stream: Any) -> AbstractContextManager[Any]:
    """Closes the stream at the end. (Those of LiteLLM 1.80 cannot be closed: they are when they are collected.)"""
    return closing(stream) if hasattr(stream, "close") else nullcontext(stream)


def _ahung_up(stream: Any) -> AbstractAsyncContextManager[Any]:
    return aclosing(stream) if hasattr(stream, "aclose") else nullcontext(stream)


def _in_time(call: ModelCall, start: float) -> None:
    """A client's time limit is for each piece of a stream; the call's is for the whole."""
    seconds = call.meta.get("timeout")
    if seconds is not None and time.perf_counter() - start > seconds:
        raise TransportError(f"the reply was not whole after {seconds:g} s", meta={"status": None})


def _deltas(chunk: Any) -> Iterator[Delta]:
    """The text in a piece of a stream. Pieces of tool calls show with the whole reply only."""
    for choice in chunk.choices[:1]:
        for field, thinking in (("reasoning_content", True), ("content", False)):
            text = getattr(choice.delta, field, None)
            if isinstance(text, str) and text:
                yield Delta(text, thinking)


def _joined(litellm: Any, chunks: list[Any]) -> Any:
    """The response that the pieces make up. A stream that ends without saying why broke off."""
    if not any(choice.finish_reason for chunk in chunks for choice in chunk.choices):
        raise TransportError("the stream broke off before the reply was whole", meta={"status": None})
    return litellm.stream_chunk_builder(chunks)


def _known_window(model: str) -> int:
    litellm = _litellm()
    unknown = BadBudget(
        f"LiteLLM does not know the context window of {model!r}; "
        f"give it in tokens: LiteLLM({model!r}, context_window=...)"
    )
    try:
        info: Mapping[str, Any] = litellm.get_model_info(model)
    except litellm.exceptions.ModelNotMappedError:
        raise unknown from None
    window = info.get("max_input_tokens") or info.get("max_tokens")
    if not window:
        raise unknown
    return int(window)


@contextmanager
def _typed_errors() -> Iterator[None]:
    """Every error of LiteLLM derives from the OpenAI client's base error."""
    try:
        yield
    except import_module("openai").OpenAIError as error:
        raise typed(error) from error


def typed(error: Exception) -> ModelError:
    """LiteLLM's error as one of ours. HTTP 413 (the body is too large) counts as overflow."""
    kinds = _litellm().exceptions
    status = getattr(error, "status_code", None)
    kind: type[ModelError]
    if isinstance(error, kinds.ContextWindowExceededError) or status == 413:
        kind, what = OverflowReply, "the request exceeds the model's window"
    elif isinstance(error, kinds.ContentPolicyViolationError):
        kind, what = RefusedReply, "the provider's content policy refused the request"
    elif isinstance(error, kinds.RateLimitError):
        kind, what = RateLimited, "the provider asks to slow down"
    elif isinstance(error, kinds.Timeout | kinds.APIConnectionError):
        kind, what = TransportError, "the provider could not be reached"
    elif isinstance(status, int) and status >= 500:
        kind, what = TransportError, f"the provider failed with status {status}"
    else:
        kind, what = BadReply, f"the provider refused the request ({type(error).__name__}, status {status})"
    return kind(f"{what}: {error}", raw=str(error), meta={"status": status})


@cache
def _installed() -> bool:
    """Whether the package is there, without the seconds that importing it takes."""
    return importlib.util.find_spec("litellm") is not None


def _missing() -> MissingExtra:
    return MissingExtra("models", "litellm", "calls to providers")


@cache
def _litellm() -> Any:
    # LiteLLM downloads its price list on import unless told otherwise.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    try:
        litellm: Any = import_module("litellm")
    except ImportError as error:  # it is there, but something it needs is not
        raise _missing() from error
    litellm.suppress_debug_info = True  # it prints advice to stdout at every error otherwise
    return litellm
