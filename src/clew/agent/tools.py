"""Tools: functions that a model may call.

    @tool
    def weather(city: str, days: int = 1) -> str:
        \"\"\"The weather in a city.

        - `days`: how many days ahead
        \"\"\"

A tool's errors are answers: what the model got wrong, or what the function raised, comes back to it as an error
result that says so.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import threading
import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from queue import Empty, Queue
from typing import Any, overload

import msgspec
from msgspec import Struct

from clew.agent.docstrings import described
from clew.agent.schema import BadArguments, BadTool, parameters
from clew.errors import ClewError
from clew.messages import Image, Text, ToolResult
from clew.policies.shrink import head_tail
from clew.tokens.protocol import TokenCounter

Content = tuple[Text | Image, ...]

RESULT_TOKENS = 5_000
"""What of a result the model sees by default, in tokens: some 200 lines of code."""

NO_OUTPUT = "(no output)"
"""What stands for an empty result: providers refuse an empty message."""


class Output(Struct, frozen=True, omit_defaults=True):
    """What a tool gave back. Of an error, `error` is its type and `detail` the traceback, for the trace."""

    content: Content = ()
    is_error: bool = False
    error: str = ""
    detail: str = ""

    @property
    def text(self) -> str:
        """Its text, parts joined by newlines."""
        return "\n".join(p.text for p in self.content if isinstance(p, Text))

    @classmethod
    def failed(cls, error: str, text: str, detail: str = "") -> Output:
        """An error as the model sees it: its type, and what it says."""
        return cls((Text(f"{error}: {text}" if text else error),), True, error, detail)


class ToolFailed(ClewError):
    """A tool did not give a result; `output` is what the model is told."""

    def __init__(self, output: Output) -> None:
        super().__init__(output.text)
        self.output = output


class Tool(Struct, frozen=True):
    """Something a model may call: `does` takes the arguments as the model wrote them, JSON text.

    - `parameters`: JSON schema of the arguments
    - `seconds`: how long a call may take (None: any time). A thread cannot be stopped: a function that is not async
      goes on in the background after its time
    - `limit`: how much of a result the model sees, in tokens; all of it is in the log, where the tool `expand` reads it
    - `idempotent`: calling it twice does no harm, so a call that a crash interrupted is simply made again
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    does: Callable[[str], Any]
    seconds: float | None = None
    limit: int = RESULT_TOKENS
    idempotent: bool = False

    @property
    def schema(self) -> dict[str, Any]:
        """As a provider takes it, in OpenAI's form."""
        function = {"name": self.name, "description": self.description, "parameters": dict(self.parameters)}
        return {"type": "function", "function": function}


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...
@overload
def tool(
    *,
    name: str = ...,
    description: str = ...,
    seconds: float | None = ...,
    limit: int = ...,
    idempotent: bool = ...,
) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str = "",
    description: str = "",
    seconds: float | None = None,
    limit: int = RESULT_TOKENS,
    idempotent: bool = False,
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Makes a tool of a function, sync or async: by its name, docstring and type hints. See `Tool` for the settings.

    A result may be any JSON value, a dataclass or Struct, a text, or pictures and texts (`Image`, `Text`). Raises
    `BadTool` when a parameter cannot be described.
    """

    def made(function: Callable[..., Any]) -> Tool:
        told = described(function)
        known = parameters(function, told)
        called = name or getattr(function, "__name__", "")
        if not called.replace("_", "").replace("-", "").isalnum() or not called.isascii():
            raise BadTool(f"{called!r} is no name that providers take: letters, digits, _ and -; give another by name=")

        def does(arguments: str) -> Any:
            return function(**known.read(arguments))

        return Tool(called, description or told.text, known.schema, does, seconds, limit, idempotent)

    return made if function is None else made(function)


def as_tools(given: Sequence[Tool | Callable[..., Any]]) -> dict[str, Tool]:
    """Tools by name; plain functions become tools. Raises `BadTool` when two have one name."""
    found: dict[str, Tool] = {}
    for one in given:
        made = one if isinstance(one, Tool) else tool(one)
        if made.name in found:
            raise BadTool(f"two tools are named {made.name!r}")
        found[made.name] = made
    return found


def perform(tool: Tool, arguments: str, seconds: float | None) -> Output:
    """Calls a tool and waits for its result, `seconds` at most. Raises `ToolFailed` only."""
    if seconds is None:
        return _called(tool, arguments)
    box: Queue[Output | BaseException] = Queue()
    _thread(lambda: _called(tool, arguments), box.put, box.put)
    try:
        found = box.get(timeout=seconds)
    except Empty as error:
        raise _late(seconds) from error
    if isinstance(found, BaseException):
        raise found
    return found


async def aperform(tool: Tool, arguments: str, seconds: float | None) -> Output:
    """As `perform`: an async function runs in this event loop, any other in a thread."""
    loop = asyncio.get_running_loop()
    begun: asyncio.Future[Any] = loop.create_future()

    def settled(settle: Callable[[Any], None], value: Any) -> None:
        if not begun.done():
            settle(value)

    def back(settle: Callable[[Any], None], value: Any) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits for it any more
            loop.call_soon_threadsafe(settled, settle, value)

    _thread(lambda: _begun(tool, arguments), partial(back, begun.set_result), partial(back, begun.set_exception))
    is_async = False
    try:
        async with asyncio.timeout(seconds):
            value = await begun
            if is_async := inspect.isawaitable(value):
                value = await _awaited(value)
    except TimeoutError as error:
        raise _late(seconds or 0.0, stopped=is_async) from error
    return output(value)


def _thread(work: Callable[[], Any], done: Callable[[Any], None], failed: Callable[[BaseException], None]) -> None:
    """Works in a thread that nothing waits for at the end: a tool that hangs must not hang the process."""
    context = copy_context()

    def run() -> None:
        try:
            value = context.run(work)
        except (ToolFailed, KeyboardInterrupt) as error:
            failed(error)
        else:
            done(value)

    threading.Thread(target=run, daemon=True).start()


def _called(tool: Tool, arguments: str) -> Output:
    value = _begun(tool, arguments)
    if inspect.isawaitable(value):
        value = _finished(value)
    return output(value)


def _begun(tool: Tool, arguments: str) -> Any:
    """What the function returns: for an async one, what is to be awaited."""
    try:
        return tool.does(arguments)
    except BadArguments as error:
        raise ToolFailed(Output.failed("BadArguments", str(error))) from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # also what exits (a parser of options), and what panics (a library in Rust)
        raise ToolFailed(_raised(error)) from error


async def _awaited(value: Awaitable[Any]) -> Any:
    try:
        return await value
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:
        task = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
            raise  # it is the run that is cancelled, or the time is over
        raise ToolFailed(_raised(error)) from error


def _finished(value: Awaitable[Any]) -> Any:
    """Awaits in an event loop of its own, in a thread of its own: the caller's may have one running."""
    box: Queue[Any] = Queue()
    _thread(lambda: (asyncio.run(_awaited(value)),), box.put, box.put)
    found = box.get()
    if isinstance(found, BaseException):
        raise found
    return found[0]


def _raised(error: BaseException) -> Output:
    told = traceback.TracebackException.from_exception(error)  # also of an error that cannot say what it is
    return Output.failed(type(error).__name__, str(told), "".join(told.format()))


def _late(seconds: float, *, stopped: bool = False) -> ToolFailed:
    more = "it was stopped" if stopped else "it may still be at work"
    return ToolFailed(Output.failed("TimeLimit", f"no result after {seconds:g} s; {more}"))


def output(value: Any) -> Output:
    """What a function returned, as a result. Raises `ToolFailed` for a value that has no JSON form."""
    if isinstance(value, Output):
        return value
    if isinstance(value, ToolResult):
        return Output(tuple(p for p in value.content if isinstance(p, Text | Image)), value.is_error)
    if isinstance(value, Text | Image):
        return Output((value,))
    if isinstance(value, list | tuple) and value and all(isinstance(v, Text | Image) for v in value):
        return Output(tuple(value))
    if value is None or isinstance(value, str):
        return Output((Text(value or NO_OUTPUT),))
    try:
        return Output((Text(_json(value)),))
    except (TypeError, UnicodeError, RecursionError, msgspec.MsgspecError) as error:
        raise ToolFailed(Output.failed(type(error).__name__, f"the result has no JSON form: {error}")) from error


def _json(value: Any) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:  # a lone surrogate, as in the name of a file that is not UTF-8
        return json.dumps(msgspec.to_builtins(value, str_keys=True), ensure_ascii=False)


def bounded(text: str, tokens: int, counter: TokenCounter) -> str:
    """The text in so many tokens: head, a marker that counts what is left out, tail. Short texts stay as they are."""
    keep = 16 * tokens  # longer texts are never worth counting whole: no script has so many characters to a token
    short = text if len(text) <= keep else head_tail(text, keep)
    while keep > 0 and counter.text(short) > tokens:
        keep = min(len(text), keep) * 3 // 4
        short = head_tail(text, keep)
    return short
