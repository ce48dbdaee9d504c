"""The guard: what it refuses and why, what it mends, and when the last resort takes over."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from msgspec import Struct

from clew.budget import Budget
from clew.errors import ContextOverflow, ModelError, RateLimited, TransportError
from clew.messages import Image, Message, Opaque, Text, ToolCall, ToolResult, assistant, system, tool, user
from clew.models.base import ModelCall, Reply, answer_text
from clew.models.scripted import Script, Scripted
from clew.models.steps import Failure, Offline, Steps, arun, run
from clew.policies.fences import summary_message
from clew.policies.guard import ATTEMPTS, LAST_RESORT, REASONS, Guarded
from clew.policies.harness.linear import Linear
from clew.sessions.edits import Drop, Edit, Insert, Replace, pack
from clew.sessions.entries import Compaction, Entry, Pin, Said
from clew.sessions.policy import Due, Policy, compaction
from clew.sessions.view import View, project
from clew.tokens import Heuristic
from policies_models import Scaled

WINDOW = 8_000


def view_of(messages: Sequence[Message], *pins: str, counter: Heuristic = Heuristic()) -> View:
    bodies = [*map(Said, messages), *map(Pin, pins)]
    return project([Entry(i + 1, i or None, body) for i, body in enumerate(bodies)], counter).view


def session(turns: int = 6, size: int = 1_200) -> list[Message]:
    out = [system("Be careful.")]
    for n in range(turns):
        out += [
            user(f"question {n}: 请修复第 {n} 个测试"),
            assistant("looking", ToolCall(f"c{n}", "bash", '{"command": "pytest"}')),
            tool(f"c{n}", f"output {n} " * (size // 10)),
            assistant(f"answer {n}"),
        ]
    return [*out, user("the newest question")]


class Plan(Struct, frozen=True):
    """A policy that proposes what a function says."""

    edits: Callable[[View], Sequence[Edit]] | None
    ask: bool = False
    name: str = "plan"
    trigger: float = 0.8

    def budget(self, window: int) -> Budget:
        return Budget.of(window, trigger=self.trigger)

    def due(self, view: View, budget: Budget) -> Due | None:
        return Due("threshold", view.tokens, budget.trigger)

    def compact(self, view: View, budget: Budget, due: Due) -> Steps[Compaction | None]:
        if self.edits is None:
            return None
        edits = self.edits(view)
        if self.ask:
            reply = yield ModelCall((user("summarise"),), purpose="summary")
            edits = [*edits[:-1], Replace(edits[-1].ids, summary_message(reply.text))]
        return compaction(view, edits, due, policy=self.name)


def old(view: View, text: str = "the story so far") -> list[Edit]:
    """Everything but the newest turn into one summary."""
    newest = view.last_user()
    ids = pack(e for item in view.items[view.head() : newest] for e in item.ids)
    return [Replace(ids, summary_message(text))]


def asked(
    policy: object,
    view: View,
    model: Script = "summary",
    *,
    window: int = WINDOW,
    reason: str = "threshold",
    failures: int = 0,
) -> tuple[Compaction | None, list[Failure]]:
    guarded = Guarded(policy)
    budget = guarded.budget(window)
    world = Offline(Scripted(model))
    due = Due(reason, view.tokens, budget.trigger, failures=failures)
    return run(guarded.compact(view, budget, due), world), world.failures


def refused(policy: Policy, view: View, model: Script = "summary") -> Failure:
    """The failure of an attempt that left the view as it was."""
    found, (failure,) = asked(policy, view, model)
    assert found is None
    assert view.tokens <= Guarded(policy).budget(WINDOW).input, "it fits, so nothing else happens"
    assert failure.policy == "plan"
    assert failure.attempt == 1
    assert failure.figures["before"] == view.tokens
    return failure


def test_a_compaction_that_holds_is_passed_on_as_it_is() -> None:
    view = view_of(session())
    found, failures = asked(Plan(old), view)
    assert not failures
    assert found is not None
    assert found.edits == tuple(old(view))
    assert found.account.summarised == len(session()) - 2
    assert found.account.kept == 2


@pytest.mark.parametrize(
    ("model", "reason", "raw"),
    [
        (" \n ", "blank", ""),
        (Reply(assistant(), "stop"), "blank", ""),
        (Reply(Message("assistant", (ToolCall("c", "bash"),)), "tool_calls"), "blank", ""),
        (Reply(assistant("The user"), "length"), "truncated", "The user"),
        (Reply(assistant("I cannot."), "refusal"), "refused", "I cannot."),
        ("API Error: 529 overloaded", "error_text", "API Error: 529 overloaded"),
        (TransportError("connection reset", raw="<html>"), "TransportError", "<html>"),
        (RateLimited("slow down"), "RateLimited", ""),
    ],
)
def test_no_answer_is_no_summary(model: Script, reason: str, raw: str) -> None:
    failure = refused(Plan(old, ask=True), view_of(session()), model)
    assert (failure.reason, failure.raw) == (reason, raw)


def test_an_answer_that_is_none_reaches_the_policy_as_an_error() -> None:
    class WithFallback(Plan, frozen=True):
        def compact(self, view: View, budget: Budget, due: Due) -> Steps[Compaction | None]:
            try:
                reply = yield ModelCall((user("summarise"),), purpose="summary")
                text = answer_text(reply)
            except ModelError as error:
                text = f"fallback after {type(error).__name__}"
            return compaction(view, old(view, text), due, policy="plan")

    found, failures = asked(WithFallback(None), view_of(session()), "")
    assert not failures
    assert found is not None
    assert "fallback after EmptyReply" in found.edits[0].message.text


def test_an_empty_message_or_an_error_text_is_refused_without_any_model_call() -> None:
    view = view_of(session())
    assert refused(Plan(lambda v: [Replace(old(v)[0].ids, user("  "))]), view).reason == "blank"
    error = "API Error: 500"
    failure = refused(Plan(lambda v: [Replace(old(v)[0].ids, user(error))]), view)
    assert (failure.reason, failure.raw) == ("error_text", error)


def test_a_summary_that_is_longer_than_what_it_replaces_is_refused() -> None:
    view = view_of(session(turns=2))
    failure = refused(Plan(lambda v: old(v, "long story " * 800)), view)
    assert failure.reason == "not_smaller"
    assert failure.figures["after"] > failure.figures["before"]
    assert "long story" in failure.raw


def test_edits_of_the_system_prompt_are_refused() -> None:
    failure = refused(Plan(lambda v: [*old(v), Drop(v.items[0].ids)]), view_of(session()))
    assert failure.reason == "system_edited"


def test_a_pinned_text_that_would_go_is_a_reason_to_refuse() -> None:
    pin = "请修复第 2 个测试"
    view = view_of(session(), pin, "never seen")
    failure = refused(Plan(old), view)
    assert (failure.reason, failure.raw) == ("pin_lost", pin)
    found, failures = asked(Plan(lambda v: old(v, f"the story. {pin}")), view)
    assert found is not None
    assert not failures


def test_a_call_without_its_result_is_refused() -> None:
    view = view_of(session())
    failure = refused(Plan(lambda v: [Drop(v.items[3].ids)]), view)
    assert view.items[3].message.role == "tool"
    assert failure.reason == "round_split"
    assert "c0" in failure.detail


def test_a_result_without_its_call_is_unaccounted_for() -> None:
    view = view_of(session())
    failure = refused(Plan(lambda v: [Drop(v.items[2].ids)]), view)
    assert view.items[2].message.calls
    assert failure.reason == "unaccounted"
    assert "output 0" in failure.raw or "(4,)" in failure.detail


def test_invalid_messages_are_refused() -> None:
    wrong = Message("user", (ToolCall("x", "bash"),))
    failure = refused(Plan(lambda v: [*old(v), Insert(None, wrong)]), view_of(session()))
    assert failure.reason == "invalid_view"


def test_the_newest_user_message_stays_when_a_summary_swallows_it() -> None:
    working = [
        *session(),
        assistant("on it", ToolCall("n1", "bash", "{}")),
        tool("n1", "early output " * 40),
        assistant(ToolCall("n2", "bash", "{}")),
        tool("n2", "late output"),
    ]
    view = view_of(working)
    ids = pack(e for item in view.items[1:-2] for e in item.ids)
    found, failures = asked(Plan(lambda v: [Replace(ids, summary_message("all of it"))]), view)
    assert not failures
    assert found is not None
    after = view.edited(found.edits)
    assert [(i.message.role, i.kind) for i in after.items] == [
        ("system", "message"),
        ("user", "summary"),
        ("user", "message"),
        ("assistant", "message"),
        ("tool", "message"),
    ]
    assert after.items[2].message == user("the newest question")
    assert found.after == after.tokens


def test_a_policy_may_say_the_newest_user_message_again_in_its_own_place() -> None:
    def codex(view: View) -> list[Edit]:
        newest = view.items[view.last_user() or 0]
        ids = pack(e for item in view.items[1:] for e in item.ids)
        return [Replace(ids, summary_message("all")), Insert(None, newest.message, "keep", pack(newest.ids))]

    view = view_of(session())
    found, _ = asked(Plan(codex), view)
    assert found is not None
    assert [m.text for m in view.edited(found.edits).messages].count("the newest question") == 1


def test_a_refused_attempt_on_a_view_that_does_not_fit_is_followed_by_the_last_resort() -> None:
    view = view_of(session(size=20_000))
    found, (failure,) = asked(Plan(old, ask=True), view, "")
    assert failure.reason == "blank"
    assert found is not None
    assert found.policy == LAST_RESORT
    budget = Plan(old).budget(WINDOW)
    assert found.before > budget.input
    assert found.after <= budget.target


def test_after_two_failures_the_policy_is_not_asked_again() -> None:
    view = view_of(session(size=8_000))
    found, (failure,) = asked(Plan(old, ask=True), view, TransportError("down"), failures=ATTEMPTS, window=20_000)
    assert view.tokens < Plan(old).budget(20_000).input
    assert failure.reason == "stalled"
    assert "last resort" in failure.detail
    assert found is not None
    assert found.policy == LAST_RESORT
    assert found.after <= Plan(old).budget(20_000).trigger


def test_a_stall_is_said_once() -> None:
    view = view_of([system("s"), user("hi"), assistant("hello"), user("the newest question")])
    assert asked(Plan(old), view, failures=ATTEMPTS)[1][0].reason == "stalled"
    assert asked(Plan(old), view, failures=ATTEMPTS + 1) == (None, [])


def test_the_last_resort_goes_on_where_a_good_compaction_is_not_enough() -> None:
    long_turn = session(2)
    for n in range(20):
        long_turn += [assistant(ToolCall(f"z{n}", "bash", "{}")), tool(f"z{n}", "x y " * 900)]
    view = view_of(long_turn)
    found, failures = asked(Plan(old), view)
    assert not failures
    assert found is not None
    assert found.policy == "plan"
    assert found.edits[0] == old(view)[0]
    assert found.details["last_resort"] > 0
    assert found.after <= Plan(old).budget(WINDOW).trigger
    assert found.after == view.edited(found.edits).tokens


def test_the_last_resort_reaches_what_the_policy_inserted() -> None:
    """An insert stands for the compaction's own entry, whose id is not known yet."""
    view = view_of(session())
    big = Insert(None, summary_message("restored file\n" * 4_000))

    class Restoring(Plan, frozen=True):
        def compact(self, view: View, budget: Budget, due: Due) -> Steps[Compaction | None]:
            return compaction(view, [*old(view), big], due, policy="plan")
            yield

    bigger = view_of(session(size=30_000))
    found, _ = asked(Restoring(None), bigger)
    assert found is not None
    log = [Entry(i + 1, i or None, Said(m)) for i, m in enumerate(session(size=30_000))]
    replayed = project([*log, Entry(len(log) + 1, len(log), found)], Heuristic()).view
    assert replayed.tokens == found.after <= Plan(old).budget(WINDOW).trigger
    assert view.tokens < bigger.tokens


def test_overflow_shrinks_a_view_that_was_counted_as_fitting() -> None:
    view = view_of(session(size=4_000))
    found, _ = asked(Linear(), view, window=100_000, reason="overflow")
    assert found is not None
    assert found.after <= 0.9 * found.before


def test_overflow_may_be_one_of_bytes() -> None:
    shots = [Image(data=letter * 40_000, media_type="image/png") for letter in "ABCD"]
    messages = [user("watch")]
    for n, shot in enumerate(shots):
        messages += [assistant(ToolCall(f"s{n}", "screenshot")), Message("tool", (ToolResult(f"s{n}", (shot,)),))]
    view = view_of(messages)
    found, _ = asked(Linear(), view, window=100_000, reason="overflow")
    assert found is not None
    assert [i for m in view.edited(found.edits).messages for i in m.images] == shots[-2:]


def test_by_hand_nothing_happens_when_the_policy_has_nothing_to_do() -> None:
    assert asked(Linear(), view_of(session()), reason="manual") == (None, [])


def test_linear_is_due_only_when_the_view_does_not_fit() -> None:
    guarded = Guarded(Linear())
    budget = guarded.budget(WINDOW)
    assert guarded.due(view_of(session(size=600)), budget) is None
    due = guarded.due(view_of(session(size=30_000)), budget)
    assert due is not None
    assert due.limit == budget.input


def test_documents_have_to_stay_within_the_byte_budget_too() -> None:
    source = {"type": "base64", "media_type": "application/pdf", "data": "A" * 3_000_000}
    pdf = Opaque("anthropic", {"type": "document", "source": source})
    messages = []
    for n in range(10):
        messages += [user(f"read contract {n}", pdf), assistant(f"read {n}")]
    view = view_of([*messages, user("compare them")])
    guarded = Guarded(Linear())
    budget = guarded.budget(1_000_000)
    due = guarded.due(view, budget)
    assert due is not None
    found = run(guarded.compact(view, budget, due), Offline(Scripted([])))
    assert found is not None
    after = view.edited(found.edits)
    assert after.media_bytes <= budget.media_bytes < view.media_bytes
    assert [any(isinstance(p, Opaque) for p in m.parts) for m in after.messages[::2]] == [False] * 4 + [True] * 6 + [
        False
    ]
    assert "[document left out: 2,250,000 bytes]" in after.messages[0].text


def test_fifty_screenshots_stay_within_the_byte_budget_and_the_newest_are_kept() -> None:
    shot = "A" * 500_000
    messages = [user("watch the page")]
    for n in range(50):
        result = ToolResult(f"s{n}", (Text(f"screen {n}"), Image(data=shot, media_type="image/png")))
        messages += [assistant(ToolCall(f"s{n}", "screenshot", "{}")), Message("tool", (result,))]
    view = view_of(messages)
    guarded = Guarded(Linear())
    budget = guarded.budget(200_000)
    due = guarded.due(view, budget)
    assert due is not None
    found = run(guarded.compact(view, budget, due), Offline(Scripted([])))
    assert found is not None
    after = view.edited(found.edits)
    assert after.media_bytes <= budget.media_bytes < view.media_bytes
    shown = [bool(m.images) for m in after.messages if m.role == "tool"]
    assert shown == sorted(shown), "the newest are kept"
    assert sum(shown) == budget.media_bytes // len(shot)
    assert "375,000 bytes" in after.messages[2].results[0].text


def test_overflow_of_the_fixed_part_is_an_error_with_the_figures() -> None:
    view = view_of([system("rule " * 3_000), user("please " * 6_000)])
    with pytest.raises(ContextOverflow) as caught:
        asked(Linear(), view)
    figures = caught.value.figures
    assert figures["system"] + figures["user"] + figures["tools"] == pytest.approx(figures["needed"], abs=3)
    assert figures["needed"] > figures["available"] == figures["window"] - figures["output"]
    assert f"{figures['needed']:,}" in str(caught.value)


def test_every_reason_is_explained() -> None:
    for reason, meaning in REASONS.items():
        assert reason == reason.lower()
        assert meaning


@pytest.mark.parametrize("counter", [Heuristic(), Scaled()])
def test_a_calibrated_counter_makes_no_difference_to_what_fits(counter: Heuristic) -> None:
    view = view_of(session(size=30_000), counter=counter)
    found, _ = asked(Linear(), view)
    assert found is not None
    assert found.after <= Linear().budget(WINDOW).target + 1


async def _async(view: View) -> Compaction | None:
    guarded = Guarded(Plan(old, ask=True))
    budget = guarded.budget(WINDOW)
    return await arun(guarded.compact(view, budget, Due("threshold")), Offline(Scripted("the story")))


def test_the_same_computation_runs_asynchronously() -> None:
    import asyncio

    view = view_of(session())
    assert asyncio.run(_async(view)) == asked(Plan(old, ask=True), view, "the story")[0]


@pytest.mark.parametrize(
    ("edits", "reason"),
    [
        ([Drop((9_999,)), Replace((5_555,), user("x"))], "not_smaller"),
        ([Drop((-5,)), Drop(()), Replace((), user("x")), Drop(((50, 2),))], "not_smaller"),
        ([], "not_smaller"),
        ([Insert(99_999, user("x"))], "not_smaller"),
        ([Replace(((2, 25),), user("w " * 100_000))], "not_smaller"),
        ([Drop(((1, 10**15),))], "system_edited"),
        ([Replace((1,), system("obey me"))], "system_edited"),
        ([Replace(((2, 25),), user("sum \ud800"))], "invalid_view"),
        ([Drop((3,))], "unaccounted"),  # the result would go with its call, and no edit says so
    ],
)
def test_edits_that_make_no_sense_change_nothing(edits: list[Edit], reason: str) -> None:
    assert refused(Plan(lambda v: edits), view_of(session())).reason == reason


def test_edits_over_each_other_and_over_more_than_there_is_account_for_every_message() -> None:
    edits: list[Edit] = [Replace(((2, 12),), user("first")), Replace(((8, 10**15),), user("second"))]
    view = view_of(session())
    found, failures = asked(Plan(lambda v: edits), view)
    assert not failures
    assert found is not None
    after = view.edited(found.edits)
    assert after.messages[-1] == view.messages[-1]
    a = found.account
    assert a.kept + a.summarised + a.masked + a.dropped == len(view.items)
