"""What the loop asks for, and the two drivers that answer: with sync calls, or with async ones.

The loop is one generator. It yields a model call, a tool to be called, a view to be made to fit, and is sent the
answer, or has the typed error thrown in. Events it yields go to whoever watches.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import aclosing, closing
from typing import Any, TypeVar

from msgspec import Struct

from clew.agent.state import Ended, Event, Result
from clew.agent.tools import Tool, aperform, perform
from clew.errors import ClewError
from clew.models.base import Delta, Model, ModelCall, Reply, Streaming
from clew.sessions.session import Session

T = TypeVar("T")


class RunTool(Struct, frozen=True):
    """Asks for a tool's output, within so many seconds (None: no limit). `ToolFailed` is thrown in."""

    tool: Tool
    arguments: str
    seconds: float | None


class Fit(Struct, frozen=True):
    """Asks for a session's messages, compacted first if that is due."""

    session: Session


class Recover(Struct, frozen=True):
    """Asks whether a session's view could be made smaller after this error."""

    session: Session
    error: BaseException


class Do(Struct, frozen=True):
    """Asks for what a function of the outside gives, which may take its time (a memory, a store)."""

    function: Callable[[], Any]


class Pause(Struct, frozen=True):
    """Asks to wait, in seconds."""

    seconds: float


Ask = ModelCall | RunTool | Fit | Recover | Do | Pause
Loop = Generator[Ask | Event, Any, T]
"""A computation of the agent's, which may ask, and finally returns a `T`."""


def drive(loop: Loop[Result], model: Model, deltas: bool) -> Generator[Event | Delta | Ended, None, None]:
    """Runs a loop with sync calls; what happens comes out, at last how it ended. `deltas`: pieces of replies too."""
    answer: Any = None
    try:
        while True:
            try:
                ask = loop.throw(answer) if isinstance(answer, ClewError) else loop.send(answer)
            except StopIteration as stop:
                yield Ended(stop.value)
                return
            answer = None
            try:
                if isinstance(ask, Event):
                    yield ask
                elif isinstance(ask, ModelCall) and deltas and isinstance(model, Streaming):
                    with closing(model.stream(ask)) as pieces:
                        for piece in pieces:
                            if isinstance(piece, Reply):
                                answer = piece
                            else:
                                yield piece
                else:
                    answer = _answer(ask, model)
            except ClewError as error:
                answer = error
    finally:
        loop.close()


async def adrive(loop: Loop[Result], model: Model, deltas: bool) -> AsyncGenerator[Event | Delta | Ended, None]:
    """As `drive`, with async calls. What can only block goes to a thread."""
    answer: Any = None
    try:
        while True:
            try:
                ask = loop.throw(answer) if isinstance(answer, ClewError) else loop.send(answer)
            except StopIteration as stop:
                yield Ended(stop.value)
                return
            answer = None
            try:
                if isinstance(ask, Event):
                    yield ask
                elif isinstance(ask, ModelCall) and deltas and isinstance(model, Streaming):
                    async with aclosing(model.astream(ask)) as pieces:
                        async for piece in pieces:
                            if isinstance(piece, Reply):
                                answer = piece
                            else:
                                yield piece
                else:
                    answer = await _aanswer(ask, model)
            except ClewError as error:
                answer = error
    finally:
        loop.close()


def _answer(ask: Ask, model: Model) -> Any:
    match ask:
        case ModelCall():
            return model.complete(ask)
        case RunTool():
            return perform(ask.tool, ask.arguments, ask.seconds)
        case Fit():
            return ask.session.messages()
        case Recover():
            return ask.session.recover(ask.error)
        case Do():
            return ask.function()
        case Pause():
            return time.sleep(ask.seconds)


async def _aanswer(ask: Ask, model: Model) -> Any:
    match ask:
        case ModelCall():
            return await model.acomplete(ask)
        case RunTool():
            return await aperform(ask.tool, ask.arguments, ask.seconds)
        case Fit():
            return await ask.session.amessages()
        case Recover():
            return await ask.session.arecover(ask.error)
        case Do():
            return await asyncio.to_thread(ask.function)
        case Pause():
            return await asyncio.sleep(ask.seconds)
