"""Histories to test with: messages as agents append them, models of every temper, and what must hold afterwards."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from clew.history import HistoryMessage
from clew.history.logged import LoggedHistory
from clew.sessions.edits import Drop, unpack
from clew.sessions.entries import Compaction, Said
from clew.sessions.rules import violations

PHRASES = (
    "",
    "ok",
    "请把配置文件里的超时改成三十秒，然后重新运行测试。",
    "設定ファイルを読み込んで、エラーの原因を調べてください。",
    "설정 파일을 고치고 테스트를 다시 실행해 주세요.",
    "stdout: 3 passed\n",
    "<html><p>text</p></html>",
    "broken \ud800 half",
    "word " * 30,
)


class Asked:
    """A model as a function, in a temper; it counts how often it was asked."""

    def __init__(self, temper: str) -> None:
        self.temper = temper
        self.calls: list[list[dict[str, str]]] = []

    def __call__(self, messages: list[dict[str, str]]) -> str:
        self.calls.append(messages)
        if self.temper == "raises":
            raise ConnectionError("no route to host")
        if self.temper == "blank":
            return "  \n"
        if self.temper == "error text":
            return "API Error: 529 overloaded"
        return "字" * 6_000 if self.temper == "long" else f"Summary {len(self.calls)}: all is well."


TEMPERS = ("good", "raises", "blank", "error text", "long")


@st.composite
def talks(draw: st.DrawFn, max_steps: int = 12) -> list[HistoryMessage]:
    """What an agent appends in some steps: prompts, replies, native and plain tool results; with faults."""
    out: list[HistoryMessage] = []
    text = st.builds(lambda phrase, n: phrase * n, st.sampled_from(PHRASES), st.sampled_from((1, 1, 1, 5, 80)))
    for step in range(draw(st.integers(1, max_steps))):
        if draw(st.integers(0, 9)) == 0:
            out.append(HistoryMessage("system", "You are an agent.", step, {"source": "engine"}))
        if draw(st.integers(0, 4)):
            out.append(HistoryMessage("user", draw(text), step))
        calls = [f"call_{step}_{n}" for n in range(draw(st.sampled_from((0, 0, 1, 1, 3))))]
        out.append(HistoryMessage("assistant", draw(text), step, {"tool_calls": calls} if calls else {}))
        for call in calls:
            if draw(st.integers(0, 7)):
                out.append(HistoryMessage("tool", draw(text), step, {"tool_call_id": call}))
        if draw(st.integers(0, 5)) == 0:
            out.append(HistoryMessage("tool", draw(text), step))
        if calls and draw(st.booleans()):
            out.append(HistoryMessage("assistant", draw(text), step))
    return out


def queries() -> st.SearchStrategy[dict[str, Any]]:
    """What an engine or a person may ask for."""
    return st.fixed_dictionaries(
        {},
        optional={
            "roles": st.sampled_from((["user", "assistant"], ["user", "assistant", "tool"], [])),
            "max_items": st.sampled_from((0, 1, 3, 10, 24)),
            "max_tokens": st.sampled_from((150, 400, 2_000)),
            "step_min": st.integers(0, 6),
            "pending_content": st.sampled_from(("", "next, please", "接下来 " * 50)),
            "auto_compact": st.booleans(),
        },
    )


def in_view_or_accounted(history: LoggedHistory) -> None:
    """Every message of the log is in the view, behind something in it, recorded as dropped, or empty.

    A result that came after its call was compacted is where its call is.
    """
    session = history.session
    assert session is not None
    there = {i for item in session.view.items for i in unpack(item.ids)}
    for entry in session.branch():
        if isinstance(entry.body, Compaction):
            there |= {i for edit in entry.body.edits if isinstance(edit, Drop) for i in unpack(edit.ids)}
    shown = {call.id for message in session.view.messages for call in message.calls}
    for entry in session.branch():
        if isinstance(entry.body, Said) and not entry.body.message.blank and entry.id not in there:
            results = entry.body.message.results
            assert results, entry
            assert not shown.intersection(r.call_id for r in results), entry


def valid(history: LoggedHistory) -> None:
    """The view breaks no provider's rules."""
    assert history.session is not None
    assert violations(history.session.view.messages) == []


def pairs(messages: list[HistoryMessage]) -> None:
    """Every native result stands behind its call, and every native call has its result."""
    made: list[str] = []
    answered: list[str] = []
    for message in messages:
        if message.role == "assistant":
            made += message.metadata.get("tool_calls", [])
        call = message.metadata.get("tool_call_id")
        if call is not None:
            assert call in made
            answered.append(call)
    assert sorted(made) == sorted(answered)
