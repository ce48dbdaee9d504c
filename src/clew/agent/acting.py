"""How an agent acts: its tools are called one after the other, and every call and result is in the log."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from clew.agent import trace
from clew.agent.asks import Loop, RunTool
from clew.agent.hooks import Vetoed
from clew.agent.run import Run
from clew.agent.state import Action, ActionResult, Decision
from clew.agent.tools import Content, Output, Tool, ToolFailed, bounded
from clew.messages import Message, Text, ToolResult

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
    try:
        asked = run.hooked("before_act", action)
        if isinstance(asked, Output):
            found = asked
        else:
            action = replace(asked, call_id=action.call_id)  # the model waits for the answer to its call
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
    return _logged(run, n, replace(result, action=action))


def _performed(run: Run, n: int, action: Action) -> Loop[Output]:
    tool = run.tools.get(action.name)
    begun = run.said.get(f"call:{n}")
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


def _logged(run: Run, n: int, result: ActionResult) -> ActionResult:
    """Adds the result to the log, as much of it as the model is to see; all of it in an entry of its own."""
    action, found = result.action, result.output
    tool = run.tools.get(action.name)
    counter = run.conversation.counter
    content: Content = found.content
    entry = 0
    if tool is not None and not (found.is_error and found.error):
        short = bounded(found.text, tool.limit, counter)
        if short != found.text:
            entry = run.note(trace.OUTPUT, {"call": action.call_id, "text": found.text}).id
            how = f"expand(entry={entry})" if "expand" in run.tools else f"entry {entry} of the session"
            content = (Text(f"{short}\n[all of it, {len(found.text):,} characters: {how}]"),)
            content += tuple(p for p in found.content if not isinstance(p, Text))
    shown = Output(content or (Text("(no output)"),), found.is_error, found.error)
    if action.call_id:
        part = ToolResult(action.call_id, shown.content, shown.is_error, action.name)
        run.conversation.say(Message("tool", (part,)), run.key(f"result:{n}"), run.step)
    else:
        told = {"action": action, "text": shown.text, "is_error": shown.is_error, "error": shown.error, "all": entry}
        run.note(trace.OUTPUT, told, f"result:{n}")
    return ActionResult(action, shown, entry)
