"""How an agent decides: it says its prompt, with what is remembered in front, asks the model, understands the reply."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from clew.agent import trace
from clew.agent.asks import Do, Loop
from clew.agent.recalled import remembered
from clew.agent.run import Run
from clew.agent.state import Decision
from clew.errors import BadPayload, BadReply, ModelError
from clew.messages import Message, Part, Text, ToolCall, Usage, user
from clew.models.base import ModelCall, Reply
from clew.sessions.entries import Compaction
from clew.sessions.overflow import is_overflow

OVERFLOWS = 8
"""Times that one step makes its request smaller after an overflow, as long as that helps."""


def decide(run: Run) -> Loop[tuple[str, Reply | None, Decision]]:
    """The prompt, the reply (None: the agent decided by itself) and the decision."""
    decision = run.agent.decide(run.state, run.observation)
    if decision is not None:
        yield run.event("DECIDE", "decision_ready", mode=decision.mode)
        return "", None, run.hooked("after_decide", decision)
    text, prompt = yield from _prompt(run)
    reply = yield from _reply(run, prompt)
    decision = run.agent.interpret(run.state, reply)
    yield run.event("DECIDE", "parser_result", mode=decision.mode)
    if decision.mode == "wait":
        yield run.event("DECIDE", "parser_diagnostics", error=decision.error)
    yield run.event("DECIDE", "decision_ready", mode=decision.mode)
    return text, reply, run.hooked("after_decide", decision)


def _prompt(run: Run) -> Loop[tuple[str, Message | None]]:
    """What to say now; None when nothing is to be said, or it was said before the run was interrupted."""
    if (entry := run.said.get("prompt")) is not None:
        message = trace.message_of(entry) or user()
        yield from run.remember("user", _words(message), entry.id)
        return _words(message), None
    run.state = run.hooked("before_prepare", run.state)
    text: str = run.hooked("after_prepare", run.agent.prepare(run.state))
    if not text.strip():
        return "", None
    found = yield Do(lambda: run.agent.recall(run.state, run.observation, text))
    memory = remembered(found, run.conversation, run.agent.recall_tokens)
    if memory.records:
        yield run.event("DECIDE", "recalled", records=memory.records)
    parts = (memory.part, Text(text)) if memory.part else (Text(text),)
    return text, user(*parts)


def _reply(run: Run, prompt: Message | None) -> Loop[Reply]:
    if (entry := run.said.get("reply")) is not None and (message := trace.message_of(entry)) is not None:
        if message.text.strip():
            yield from run.remember("assistant", message.text, entry.id)
        run.spent(message.usage or Usage())
        return Reply(message, usage=message.usage or Usage())
    instructions = run.agent.build_system_prompt(run.state)
    said = (prompt, run.key("prompt")) if prompt is not None else None
    start = run.conversation.session.newest
    for attempt in range(OVERFLOWS + 1):
        messages = yield from run.conversation.request(instructions, said, run.state, run.observation, run.step)
        if said is not None:
            yield from run.remember("user", _words(said[0]), run.conversation.session.held([said[1]]).get(said[1]))
            said = None
        if all(m.role == "system" for m in messages):
            raise BadPayload("there is nothing to ask the model: the task is blank, and nothing was said before")
        call = ModelCall(tuple(messages), run.schemas, meta=_time(run))
        yield run.event("DECIDE", "model_input", messages=call.messages)
        try:
            reply = yield from _asked(run, call)
            break
        except ModelError as error:
            if attempt == OVERFLOWS or not is_overflow(error):
                raise
            smaller = yield from run.conversation.recover(error, run.step)
            yield run.event("DECIDE", "overflow", recovered=smaller, detail=str(error))
            if not smaller:
                raise
    reply = replace(reply, message=tidied(reply.message, f"call_{run.id}_{run.step}"))
    run.spent(reply.usage + _summaries(run, start))
    yield run.event("DECIDE", "model_output", text=reply.text, finish_reason=reply.finish_reason, usage=reply.usage)
    message = reply.message if reply.message.usage else replace(reply.message, usage=_usage(reply))
    logged = run.conversation.say(message, run.key("reply"), run.step)
    if reply.text.strip():
        yield from run.remember("assistant", reply.text, logged.id if logged else None)
    return reply


def _asked(run: Run, call: ModelCall) -> Loop[Reply]:
    """The model's reply, or the one that a hook gives in its place."""
    asked = run.hooked("before_decide", call)
    if isinstance(asked, Reply):
        return asked
    reply = yield asked
    if not isinstance(reply, Reply):
        raise BadReply(
            f"{run.agent.llm.name} gave {type(reply).__name__} and no Reply (a stream ends with the whole one)"
        )
    return reply


def _summaries(run: Run, start: int) -> Usage:
    """Tokens of the summaries that were made for a request, by compactions after an entry."""
    made = (entry.body for entry in run.conversation.session.entries(start))
    return sum((body.usage for body in made if isinstance(body, Compaction)), Usage())


def _usage(reply: Reply) -> Usage | None:
    return reply.usage if reply.usage.total else None


def _time(run: Run) -> dict[str, Any]:
    left = run.seconds_left
    return {} if left is None else {"timeout": max(left, 0.001)}


def _words(prompt: Message) -> str:
    """What the agent said itself, without what was remembered."""
    last = prompt.parts[-1] if prompt.parts else None
    return last.text if isinstance(last, Text) else prompt.text


def tidied(message: Message, prefix: str) -> Message:
    """A message with an id for each of its calls, and no blank text beside them.

    Some servers give all calls the same id, or none; some providers refuse a text of spaces that others wrote.
    """
    if not message.calls:
        return message
    seen: set[str] = set()
    parts: list[Part] = []
    for n, part in enumerate(message.parts):
        if isinstance(part, ToolCall):
            if not part.id or part.id in seen:
                part = replace(part, id=f"{prefix}_{n}")
            seen.add(part.id)
        if not (isinstance(part, Text) and not part.text.strip()):
            parts.append(part)
    return replace(message, parts=tuple(parts))
