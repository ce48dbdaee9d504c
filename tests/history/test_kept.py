"""The default histories: nothing is lost, pairs stay whole, what is compacted is compacted once, and it fits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.errors import BadBudget, ContextOverflow
from clew.history import (
    CompactHistory,
    HistoryMessage,
    MessageGrouper,
    SummaryHistory,
    TokenBudgetSummaryHistory,
    WindowHistory,
)
from clew.history.logged import LoggedHistory
from clew.sessions.entries import Compaction, Failed, Said
from history.talks import TEMPERS, Asked, in_view_or_accounted, pairs, queries, talks, valid

KINDS: dict[str, Callable[[Asked], LoggedHistory]] = {
    "compact": lambda llm: CompactHistory(llm=llm, max_tokens=600, keep_last_rounds=2, keep_last_messages=6),
    "window": lambda llm: WindowHistory(6),
    "unlimited window": lambda llm: WindowHistory(0),
    "token budget": lambda llm: TokenBudgetSummaryHistory(llm=llm, max_tokens=400, keep_last=4),
    "rolling summary": lambda llm: SummaryHistory(llm=llm, threshold=8, keep_recent=3),
}


@given(st.data())
def test_whatever_is_appended_and_asked(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(sorted(KINDS)))
    llm = Asked(data.draw(st.sampled_from(TEMPERS)))
    history = KINDS[kind](llm)
    talk = data.draw(talks())
    for message in talk:
        history.append(message)
        if data.draw(st.integers(0, 3)):
            continue
        query = data.draw(queries())
        try:
            shown = history.retrieve(query)
        except ContextOverflow:
            continue  # the newest message of the user alone is over the limit
        limited = int(query.get("max_tokens") or (600 if kind == "compact" else 400 if kind == "token budget" else 0))
        session = history.session
        assert session is not None
        if limited and query.get("auto_compact", True):
            view = session.view
            assert view.weigh(view.items[view.head() :]) <= limited
        if not query.get("roles") and "step_min" not in query:
            pairs(shown)
        calls, leaf = len(llm.calls), session.leaf
        failures = sum(isinstance(e.body, Failed) for e in session.branch())
        if not failures:
            assert history.retrieve(query) == shown
            assert (len(llm.calls), session.leaf) == (calls, leaf)
    in_view_or_accounted(history)
    valid(history)
    assert history.session is not None
    logged = [e.body.message for e in history.session.branch() if isinstance(e.body, Said)]
    said = [m for m in talk if m.role != "assistant" or m.text.strip() or m.metadata.get("tool_calls")]
    assert len(logged) == len(said)


def rounds(n: int, size: int = 1_000) -> list[HistoryMessage]:
    """Steps with a prompt, a native call, its result of `size` characters, and an answer."""
    return [
        m
        for step in range(n)
        for m in (
            HistoryMessage("user", f"第 {step} 个任务", step),
            HistoryMessage("assistant", f"call {step}", step, {"tool_calls": [f"c{step}"]}),
            HistoryMessage("tool", f"stdout {step} " + "输出" * (size // 2), step, {"tool_call_id": f"c{step}"}),
            HistoryMessage("assistant", f"answer {step}", step),
        )
    ]


def filled(history: LoggedHistory, messages: list[HistoryMessage], **query: Any) -> list[HistoryMessage]:
    """The history after these messages, retrieved once for each step."""
    shown: list[HistoryMessage] = []
    for message in messages:
        history.append(message)
        if message.role == "assistant" and not message.metadata:
            shown = history.retrieve(query)
    return shown


def test_a_summary_is_made_once_and_carried_to_the_next() -> None:
    llm = Asked("good")
    history = CompactHistory(llm=llm, max_tokens=2_000, keep_last_rounds=1)
    shown = filled(history, rounds(12))
    assert shown[0].is_summary
    assert "Summary" in shown[0].content
    calls = len(llm.calls)
    assert 1 < calls < 8
    assert "Summary 1" in llm.calls[1][-1]["content"]
    assert history.retrieve({}) == shown
    assert len(llm.calls) == calls


def test_every_summarised_message_reaches_the_request() -> None:
    llm = Asked("good")
    history = CompactHistory(llm=llm, max_tokens=100_000, keep_last_rounds=2)
    for step in range(35):
        history.append(HistoryMessage("user", f"item-{step:02}", step))
    history.retrieve({"max_tokens": 150})
    asked = "".join(m["content"] for call in llm.calls for m in call)
    assert all(f"item-{step:02}" in asked for step in range(33))


def test_a_reply_that_is_no_answer_never_becomes_a_summary() -> None:
    for temper in ("blank", "error text", "raises"):
        history = SummaryHistory(llm=Asked(temper), threshold=6, keep_recent=2)
        shown = filled(history, rounds(3, 10))
        assert [m.content for m in shown if m.role == "user"] == ["第 0 个任务", "第 1 个任务", "第 2 个任务"]
        stages = [(e["context"]["stage"], e["context"].get("reason")) for e in history.consume_runtime_events()]
        assert any(stage == "compact_skipped" for stage, _ in stages)
        assert history.session is not None
        assert any(isinstance(e.body, Failed) for e in history.session.branch())


def test_a_failing_model_still_leaves_a_history_that_fits() -> None:
    history = CompactHistory(llm=Asked("raises"), max_tokens=500)
    filled(history, rounds(8))
    assert history.session is not None
    assert history.session.view.tokens <= 500


def test_the_window_begins_with_the_user_and_keeps_pairs() -> None:
    history = WindowHistory(6)
    shown = filled(history, rounds(5, 10))
    assert [m.role for m in shown] == ["user", "assistant", "tool", "assistant"]
    assert history.session is not None
    assert len([e for e in history.session.branch() if isinstance(e.body, Said)]) == 20


def test_the_token_budget_counts_chinese_as_what_it_is() -> None:
    history = WindowHistory(0)
    history.append(HistoryMessage("user", "你好", 0))
    history.append(HistoryMessage("assistant", "中" * 4_000, 0))
    shown = history.retrieve({"max_tokens": 1_200})
    assert 100 < len(shown[-1].content) < 2_400


def test_roles_that_leave_out_results_leave_out_their_calls() -> None:
    history = CompactHistory()
    for message in rounds(1, 10):
        history.append(message)
    shown = history.retrieve({"roles": ["user", "assistant"]})
    assert [(m.content, m.metadata) for m in shown] == [
        ("第 0 个任务", {}),
        ("call 0", {"tool_calls": []}),
        ("answer 0", {}),
    ]


def test_max_items_summarises_what_is_older_or_else_only_looks() -> None:
    llm = Asked("good")
    history = CompactHistory(llm=llm, keep_last_messages=4)
    for message in rounds(8, 10):
        history.append(message)
    assert [m.content for m in history.retrieve({"max_items": 2})] == ["answer 7"]
    assert history.consume_runtime_events()[-1]["context"]["messages_left_out"] == 31
    assert len(llm.calls) == 0
    shown = history.retrieve({"max_items": 24})
    assert [m.is_summary for m in shown] == [True, False, False, False, False]
    assert len(llm.calls) == 1


def test_an_empty_reply_is_noted_and_is_no_message() -> None:
    history = CompactHistory()
    history.append(HistoryMessage("user", "hello", 0))
    history.append(HistoryMessage("assistant", "", 0))
    assert [m.role for m in history.retrieve()] == ["user"]
    assert history.session is not None
    assert [type(e.body).__name__ for e in history.session.branch()] == ["Said", "Note"]


def test_contents_come_back_as_they_were() -> None:
    picture = [
        {"type": "text", "text": "see"},
        {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
    ]
    history = CompactHistory()
    given_ = [
        HistoryMessage("user", picture, 3, {"source": "engine"}),
        HistoryMessage("assistant", "a picture", 3),
        HistoryMessage("tool", "plain result without a call", 3, {"tool_call_id": "nobody"}),
        HistoryMessage("user", "go on", 4),
    ]
    for message in given_:
        history.append(message)
    assert history.retrieve() == given_
    assert history.get_last_message_metadata()[0] == {
        "source": "engine",
        "role": "user",
        "step_id": 3,
        "content_chars": len(str(picture)),
    }


def test_a_file_keeps_the_history_with_its_compactions(tmp_path: Path) -> None:
    store = tmp_path / "agent.db"
    llm = Asked("good")
    first = CompactHistory(llm=llm, max_tokens=2_000, store=store)
    shown = filled(first, rounds(6))
    assert first.session is not None
    name = first.session.id
    first.session.close()
    again = CompactHistory(llm=llm, max_tokens=2_000, store=store, session=name)
    calls = len(llm.calls)
    assert again.retrieve() == shown
    assert len(llm.calls) == calls
    assert again.session is not None
    assert any(isinstance(e.body, Compaction) for e in again.session.branch())
    again.reset()
    assert again.retrieve() == []
    assert again.session.id != name


def test_settings_that_cannot_work_are_refused() -> None:
    with pytest.raises(BadBudget, match="keep"):
        SummaryHistory(threshold=4, keep_recent=4)


def test_only_a_newest_message_over_the_limit_is_an_overflow() -> None:
    history = CompactHistory(max_tokens=200)
    history.append(HistoryMessage("user", "word " * 2_000, 0))
    with pytest.raises(ContextOverflow):
        history.retrieve()
    history.append(HistoryMessage("assistant", "done", 0))
    shown = history.retrieve()
    assert [m.role for m in shown] == ["user", "assistant"]
    assert shown[0].metadata["compacted"]


def test_the_grouper_is_the_faithful_one() -> None:
    messages = rounds(3, 10)
    assert [[m.step_id for m in group] for group in MessageGrouper.group(messages)] == [[0] * 4, [1] * 4, [2] * 4]
