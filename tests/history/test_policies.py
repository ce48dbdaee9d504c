"""The policies behind the histories, on views: `QitOS`, `Window`, `RollingSummary`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.budget import Budget
from clew.errors import BadBudget
from clew.history import CompactHistory, HistoryMessage
from clew.messages import Message, ToolCall, assistant, system, tool, user
from clew.models.base import ModelCall, Reply
from clew.models.steps import Offline, run
from clew.policies.fences import summary_message
from clew.policies.harness.qitos import QitOS, available
from clew.policies.tail import RollingSummary, Window
from clew.sessions.edits import Drop, Replace
from clew.sessions.entries import Compaction, Entry, Said
from clew.sessions.policy import Due, Policy
from clew.sessions.view import View, project
from conversations import conversations


class Quarter:
    """QitOS's counter on Clew's messages: a quarter of the characters of the text, roles and framing free."""

    name = "quarter"

    def text(self, text: str) -> int:
        return max(1, len(text) // 4) if text else 0

    def message(self, message: Message) -> int:
        return self.text(message.text + "".join(r.text for r in message.results))

    def tools(self, tools: Sequence[Mapping[str, Any]]) -> int:
        return 0


class Model:
    """Answers `SUMMARY-1`, `SUMMARY-2`, …"""

    name = "model"
    context_window = 100_000

    def __init__(self) -> None:
        self.calls: list[ModelCall] = []

    def complete(self, call: ModelCall) -> Reply:
        self.calls.append(call)
        return Reply(assistant(f"SUMMARY-{len(self.calls)}"))

    async def acomplete(self, call: ModelCall) -> Reply:
        return self.complete(call)


def seen(messages: Sequence[Message]) -> View:
    """The view of a conversation, its entries numbered from 1."""
    entries = [Entry(i, i - 1 or None, Said(m)) for i, m in enumerate(messages, 1)]
    return project(entries, Quarter()).view


def compacted(policy: Policy, view: View, limit: int, model: Model | None = None, **due: Any) -> Compaction | None:
    """What the policy makes of a view in so many tokens."""
    budget = Budget(100_000, 1_000, limit, limit)
    found = policy.due(view, budget) if not due else Due(**due)
    return None if found is None else run(policy.compact(view, budget, found), Offline(model or Model()))


def rounds(n: int, size: int) -> list[Message]:
    """A system prompt, and rounds of a prompt, a call and its result of `size` characters."""
    out = [system("s" * 40)]
    for i in range(n):
        out += [user(f"task {i}"), call(i), tool(f"c{i}", "x" * size)]
    return out


def call(i: int) -> Message:
    return assistant(f"call {i}", ToolCall(f"c{i}", "run"))


def test_the_reserve_is_a_twentieth_and_at_least_1024() -> None:
    assert available(128_000) == 121_600
    assert available(4_096, 256) == 2_816
    assert available(1_000) == 1
    assert QitOS().budget(128_000).trigger == 121_600


def test_a_limit_above_the_window_is_refused() -> None:
    with pytest.raises(BadBudget, match="200000"):
        QitOS(max_tokens=200_000).budget(128_000)


def test_exactly_the_limit_is_not_due() -> None:
    view = seen(rounds(3, 400))
    budget = Budget(100_000, 1_000, view.tokens, view.tokens)
    assert QitOS().due(view, budget) is None
    assert QitOS().due(view, Budget(100_000, 1_000, view.tokens - 1, 1)) == Due(
        "threshold", view.tokens, view.tokens - 1
    )


def test_long_old_results_become_previews_first() -> None:
    model = Model()
    found = compacted(QitOS(keep_last_rounds=1), seen(rounds(3, 2_000)), 1_000, model)
    assert found is not None
    assert model.calls == []
    assert [(e.ids, e.how) for e in found.edits if isinstance(e, Replace)] == [((4,), "shrink"), ((7,), "shrink")]
    text = found.edits[0].message.results[0].text  # type: ignore[union-attr]
    assert text.startswith("[Compacted tool message from step 0; original_chars=2000; original_lines=1]\nxxx")
    assert text.endswith("x" * 220 + "\n...\n" + "x" * 110)


def test_then_older_rounds_become_a_summary_and_what_is_left_is_cut() -> None:
    view = seen(rounds(8, 400))
    found = compacted(QitOS(keep_last_rounds=3, keep_last_messages=4), view, 420)
    assert found is not None
    drop, summary = found.edits
    assert isinstance(summary, Replace)
    assert (summary.ids, summary.message.role) == (((2, 16),), "system")
    assert isinstance(drop, Drop)
    assert drop.ids == ((17, 22),)  # 22 is the result whose call went
    after = view.edited(found.edits)
    assert [i.ids for i in after.items][2:] == [(23,), (24,), (25,)]
    assert (found.account.summarised, found.account.dropped, found.account.kept) == (15, 6, 4)


def test_lossless_keeps_fewer_rounds_instead() -> None:
    found = compacted(QitOS(keep_last_rounds=3, keep_last_messages=4, lossless=True), seen(rounds(8, 400)), 420)
    assert found is not None
    assert (found.account.summarised, found.account.dropped, found.account.kept) == (21, 0, 4)


def test_the_model_is_shown_the_newest_or_lossless_all() -> None:
    for lossless, n in ((False, 5), (True, 21)):
        model = Model()
        policy = QitOS(keep_last_rounds=1, summary_input_messages=5, lossless=lossless)
        compacted(policy, seen(rounds(8, 400)), 200, model)
        assert len(model.calls[0].source) == n


def test_asked_without_need_it_halves() -> None:
    view = seen(rounds(8, 400))
    found = compacted(QitOS(), view, 100_000, reason="manual")
    assert found is not None
    assert found.after <= view.tokens // 2 + 10


@given(st.data())
def test_on_views_it_decides_as_on_its_own_messages(data: st.DataObject) -> None:
    """The faithful history and the policy keep, shorten and summarise the same messages."""
    sizes = data.draw(st.lists(st.sampled_from((4, 40, 400, 899, 900, 901, 3_000)), min_size=2, max_size=24))
    settings = {
        "keep_last_rounds": data.draw(st.integers(1, 3)),
        "keep_last_messages": data.draw(st.integers(1, 8)),
    }
    limit = data.draw(st.sampled_from((30, 150, 500, 1_500)))
    texts = [f"{i:04}" + "a" * (size - 4) for i, size in enumerate(sizes)]
    roles = ["user" if i % 2 == 0 else "assistant" for i in range(len(texts))]

    summary = summary_message("SUMMARY-1").text
    history = CompactHistory(llm=lambda _: summary, max_tokens=limit, hard_window=0, faithful=True, **settings)
    for i, text in enumerate(texts):
        history.append(HistoryMessage(roles[i], text, i // 2))
    upstream = [
        "summary" if m.is_summary else ("shrink" if m.metadata.get("compacted") else "message") + m.text[-4:]
        for m in history.retrieve()
    ]

    view = seen([user(t) if roles[i] == "user" else assistant(t) for i, t in enumerate(texts)])
    found = compacted(QitOS(**settings), view, limit)
    now = view.edited(found.edits) if found else view
    ours = ["summary" if i.kind == "summary" else i.kind + i.message.text[-4:] for i in now.items if i.kind != "mend"]
    assert ours == upstream


@given(conversations(max_text=3_000), st.booleans(), st.integers(50, 2_000))
def test_every_message_has_its_account(messages: list[Message], lossless: bool, limit: int) -> None:
    view = seen(messages)
    found = compacted(QitOS(lossless=lossless), view, limit)
    if found is not None:
        a = found.account
        assert a.kept + a.masked + a.summarised + a.dropped == sum(i.kind != "mend" for i in view.items)
        assert not lossless or a.dropped == 0


def test_a_window_drops_what_is_older_and_begins_with_the_user() -> None:
    view = seen(rounds(5, 10))
    found = compacted(Window(4), view, 100_000)
    assert found is not None
    assert found.edits == (Drop(((2, 13),)),)
    assert [m.role for m in view.edited(found.edits).messages] == ["system", "user", "assistant", "tool"]


def test_a_rolling_summary_is_updated() -> None:
    model = Model()
    view = seen(rounds(5, 10))
    policy = RollingSummary(messages=6, keep=4)
    first = compacted(policy, view, 100_000, model)
    assert first is not None
    again = view.edited(first.edits)
    assert policy.due(again, Budget(100_000, 1_000, 100_000, 100_000)) is None
    assert compacted(policy, again, 10, model) is None
    assert [len(c.source) for c in model.calls] == [12]


def test_tails_that_leave_nothing_are_refused() -> None:
    for policy in (Window(0), RollingSummary(keep=0), RollingSummary(messages=4, keep=4)):
        with pytest.raises(BadBudget):
            policy.budget(8_000)
