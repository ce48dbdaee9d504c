"""How an agent acts: its tools are called one after the other, and every call and result is in the log."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from clew.agent import trace
from clew.agent.asks import Loop, RunTool
from clew.agent.hooks import Vetoed
from clew.agent.run import Run
from clew.agent.state import Action, ActionResult, Decision
from clew.agent.tools import NO_OUTPUT, RESULT_TOKENS, Output, Tool, ToolFailed, bounded
from clew.messages import Message, Text, ToolResult
from clew.sessions.entries import Note

INTERRUPTED = (
    "the process was interrupted while this call was running. It may have been done, in part or in whole; "
    "look before you repeat it."
)


def act(run: Run, decision: Decision) -> Loop[list[ActionResult]]:
    """What came of a decision's actions, in their order."""
    yield run.event("ACT", "start")
    results: list[ActionResult] = []
    known = trace.results(run.said)  # those that were logged before the run was interrupted
    for n, action in enumerate(decision.actions if decision.mode == "act" else ()):
        result = known[n] if n < len(known) else None
        if result is None:
            yield run.event("ACT", "tool_start", action=action)
            result = yield from _done(run, n, action)
            yield run.event("ACT", "tool_end", result=result)
        results.append(result)
        yield from run.remember("action", action)
        yield from run.remember("action_result", {"name": action.name, "result": result.output.text})
    yield run.event("ACT", "action_results" if results else "skipped")
    return results


def _done(run: Run, n: int, action: Action) -> Loop[ActionResult]:
    """Does an action, and logs what came of it; what goes wrong is its result."""
    wanted = action
    try:
        asked = run.hooked("before_act", action)
        if isinstance(asked, Output):
            found = asked
        else:
            action = replace(asked, call_id=wanted.call_id)
            found = yield from _performed(run, n, action)
    except Vetoed as veto:
        found = Output.failed("NotAllowed", str(veto))
    except ToolFailed as failure:
        found = failure.output
    if found.error:
        run.note(trace.FAILURE, {"tool": action.name, "reason": found.error, "detail": found.detail or found.text})
    try:
        result = run.hooked("after_act", ActionResult(action, found))
    except Vetoed as veto:
        result = ActionResult(action, Output.failed("NotAllowed", f"its result was withheld: {veto}"))
    return _logged(run, n, replace(result, action=action), wanted)


def _performed(run: Run, n: int, action: Action) -> Loop[Output]:
    tool = run.tools.get(action.name)
    begun, came = run.said.get(f"call:{n}"), run.said.get(f"output:{n}")
    if came is not None and isinstance(came.body, Note):
        return Output((Text(came.body.data["text"]),), came.body.data["is_error"])
    if begun is not None and not (tool is not None and tool.idempotent):
        return Output.failed("Interrupted", INTERRUPTED)
    again = f"call:{n}" if begun is None else f"call:{n}:again:{begun.id}"
    run.note(trace.CALL, {"name": action.name, "call": action.call_id, "arguments": action.arguments}, again)
    times = [t for t in (tool.seconds if tool else None, run.seconds_left) if t is not None]
    found: Output = yield RunTool(_doing(run, action, tool), action.arguments, min(times) if times else None)
    return found


def _doing(run: Run, action: Action, tool: Tool | None) -> Tool:
    """The tool as this agent does it: in its own way, if it has one for the action."""

    def does(arguments: str) -> Any:
        own = run.agent.act(run.state, action)
        if own is not NotImplemented:
            return own
        if tool is None:
            names = ", ".join(run.tools) or "none"
            return Output.failed("UnknownTool", f"there is no tool {action.name!r}; there are: {names}")
        return tool.does(arguments)

    return replace(tool, does=does) if tool else Tool(action.name, "", {}, does)


def _logged(run: Run, n: int, result: ActionResult, wanted: Action) -> ActionResult:
    """Adds the result of what the model wanted to the log: as much of it as the model is to see, in answer to its call,
    and all of it in an entry of its own."""
    found, tool = result.output, run.tools.get(result.action.name)
    content, entry = found.content or (Text(NO_OUTPUT),), 0
    short = bounded(found.text, tool.limit if tool else RESULT_TOKENS, run.conversation.counter)
    if short != found.text:
        told = {"call": wanted.call_id, "text": found.text, "is_error": found.is_error}
        stored = run.said.get(f"output:{n}") or run.note(trace.OUTPUT, told, f"output:{n}")
        entry = stored.id
        how = f"expand(entry={entry})" if "expand" in run.tools else f"entry {entry} of the session"
        content = (Text(f"{short}\n[all of it, {len(found.text):,} characters: {how}]"),)
        content += tuple(p for p in found.content if not isinstance(p, Text))
    shown = replace(found, content=content, detail="")
    if wanted.call_id:
        part = ToolResult(wanted.call_id, content, found.is_error, wanted.name)
        run.conversation.say(Message("tool", (part,)), run.key(f"result:{n}"), run.step)
    else:
        parts = {"text": shown.text, "is_error": shown.is_error, "error": shown.error}
        run.note(trace.OUTPUT, {"action": result.action, "all": entry, **parts}, f"result:{n}")
    return ActionResult(result.action, shown, entry)
