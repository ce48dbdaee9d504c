"""The loop of an agent: decide, act, reduce, and whether to go on. It is a generator and does no I/O of its own
but appending to the session: what it needs it asks for (`clew.agent.asks`).

What is done is in the session before it is relied on. A run that was killed goes on from its last entry: a prompt
that was said is not said again, a reply that came is not asked for again, and a tool whose result is there is not
called again. A call that was begun and has no result may or may not have been done: an idempotent tool is called
once more, of any other the model is told so.
"""

from __future__ import annotations

from msgspec.structs import replace

from clew.agent import trace
from clew.agent.acting import act
from clew.agent.asks import Do, Loop, Pause
from clew.agent.deciding import decide
from clew.agent.hooks import Vetoed
from clew.agent.run import Run
from clew.agent.state import Decision, Observation, Result, Step, StopReason
from clew.errors import BadReply, ClewError, ContextOverflow, ModelError
from clew.sessions.overflow import is_overflow


def looped(run: Run) -> Loop[Result]:
    """The whole run."""
    yield from _begun(run)
    stop = run.stop
    while stop is None:
        stop = run.exhausted()
        if stop is None:
            stop = yield from _stepped(run)
    return (yield from _ended(run, stop))


def _begun(run: Run) -> Loop[None]:
    if run.resumed:
        run.note(trace.RESUMED, {"keys": run.keys})
        yield run.event("INIT", "resumed")
        return
    if run.engine.fresh:
        run.conversation.begin()
        if (memory := run.agent.memory) is not None:
            yield Do(lambda: memory.reset(run.id))
    run.note(trace.RUN, {"task": run.task, "agent": run.agent.name, "state": run.state, "limits": run.limits})
    yield from run.remember("task", {"objective": run.task})
    yield run.event("INIT")


def _stepped(run: Run) -> Loop[StopReason | None]:
    """One step; why the run is over, if it is."""
    try:
        run.state = run.hooked("before_step", run.state)
        yield run.event("DECIDE", "state_ready")
        yield from run.remember("state", run.state)
        yield run.event("DECIDE", "start")
        seen = run.hooked("before_observe", run.observation)
        run.observation = run.hooked("after_observe", run.agent.observe(run.state, seen))
        prompt, reply, decision = yield from decide(run)
        yield from run.remember("decision", decision)
        results = yield from act(run, decision)
        observation = Observation(run.step, tuple(results), decision.error)
        observation = run.hooked("before_reduce", observation)
        yield run.event("ACT", "observation_ready")
        yield from run.remember("observation", observation)
        yield run.event("REDUCE", "start")
        run.state = run.hooked("after_reduce", run.agent.reduce(run.state, observation, decision))
        yield run.event("REDUCE", "state_reduced")
        yield from run.remember("next_state", run.state)
        yield run.event("CHECK_STOP", "start")
        stop = _checked(run, decision)
        step = run.hooked("after_step", Step(run.step, prompt, reply, decision, observation))
        yield run.event("CHECK_STOP", "stop" if stop else "continue")
    except Vetoed as veto:
        run.note(trace.FAILURE, {"reason": "Vetoed", "detail": str(veto)})
        run.error = veto
        yield run.event("CHECK_STOP", "vetoed", reason=str(veto))
        _done(run, Observation(run.step, error="Vetoed"), StopReason.VETO)
        return StopReason.VETO
    except (ModelError, ContextOverflow) as error:
        return (yield from _failed(run, error))
    run.records.append(step)
    _done(run, observation, stop)
    return stop


def _checked(run: Run, decision: Decision) -> StopReason | None:
    empties = run.totals.empties + 1 if decision.error == "empty" else 0
    run.totals = replace(run.totals, empties=empties)
    if decision.mode == "final":
        return StopReason.FINAL
    if empties > run.engine.empty_replies:
        return StopReason.EMPTY
    return StopReason.CONDITION if run.agent.should_stop(run.state) else None


def _failed(run: Run, error: ClewError) -> Loop[StopReason | None]:
    """After a failed model call: it is tried again in the next step, if that can help and was not done too often."""
    raw = error.raw if isinstance(error, ModelError) else ""
    run.note(trace.FAILURE, {"reason": type(error).__name__, "detail": str(error), "raw": raw})
    run.error = error
    yield run.event("DECIDE_ERROR", error=type(error).__name__, detail=str(error))
    yield run.event("RECOVER")
    tried = run.totals.recoveries
    stop: StopReason | None = None
    if isinstance(error, ContextOverflow) or is_overflow(error):
        stop = StopReason.OVERFLOW
    elif not _worth_another_try(error) or tried >= run.engine.recoveries:
        stop = StopReason.MODEL
    run.totals = replace(run.totals, recoveries=tried + 1)
    observation = Observation(run.step, error=type(error).__name__)
    run.records.append(Step(run.step, "", None, Decision.wait(type(error).__name__), observation))
    _done(run, observation, stop)
    if stop is not None:
        return stop
    left = run.seconds_left
    yield Pause(min(run.engine.backoff * 2**tried, left if left is not None else 60.0))
    return None


def _worth_another_try(error: ClewError) -> bool:
    """What may pass: a busy provider, a broken connection, a malformed response (but no refused request)."""
    if not isinstance(error, ModelError):
        return False
    return error.retryable or (isinstance(error, BadReply) and error.meta.get("status") is None)


def _done(run: Run, observation: Observation, stop: StopReason | None = None) -> None:
    """The step is over: one entry says what it came to, and the next one begins from there."""
    run.observation = observation
    run.state = replace(run.state, current_step=run.step + 1)
    run.totals = replace(run.totals, steps=run.step + 1)
    kept = replace(run.totals, seconds=run.seconds)
    seen = {"error": observation.error, "env": observation.env, "stop": stop}
    draft = {"run": run.id, "step": observation.step, "state": run.state, "totals": kept, **seen}
    run.conversation.session.append_many([trace.note(trace.STEP, draft)])
    run.said = {}


def _ended(run: Run, stop: StopReason) -> Loop[Result]:
    run.state = replace(run.state, stop_reason=str(stop))
    error = run.error if stop in (StopReason.MODEL, StopReason.OVERFLOW, StopReason.VETO) else None
    result = Result(run.state, stop, run.step, tuple(run.records), run.totals.usage, run.cost, run.seconds, error)
    told = {"reason": str(stop), "state": run.state, "totals": replace(run.totals, seconds=run.seconds)}
    run.note(trace.END, told if error is None else {**told, "error": str(error)})
    yield run.event("END")
    return result
