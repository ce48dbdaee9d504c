"""The agent-memory tutorial: its window and its rolling summary; entities and vectors: `tutorial_memory`.

Each conversation is held twice: with the faithful history, whose output must be the tutorial's, and with the default
one, which must be what the case requires of a correct product.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from clew.errors import BadBudget
from clew.history import HistoryMessage, SummaryHistory, WindowHistory
from clew.history.logged import LoggedHistory
from clew.sessions.entries import Said
from golden import tutorial_memory
from golden.runner import diff

Json = dict[str, Any]
History = Callable[..., LoggedHistory]


def conversation_memory(case: Json) -> Json:
    talk = Talk(case, lambda llm, **mode: WindowHistory(case["config"].get("window_size", 6), **mode))
    turns, window = len(case["input"]["user_messages"]), case["config"].get("window_size", 6)
    stats = {
        "total_turns": turns,
        "window_size": window,
        "kept_messages": len(talk.history.messages),
        "dropped_messages": max(0, 2 * turns - window),
    }
    per_turn = [{"window_after": t["after"], "window_size_after": len(t["after"])} for t in talk.turns]
    return talk.came_to(per_turn, stats)


def summary_memory(case: Json) -> Json:
    config = case["config"]
    threshold, keep = config.get("compress_threshold", 8), config.get("keep_recent", 4)
    talk = Talk(case, lambda llm, **mode: SummaryHistory(llm=llm, threshold=threshold, keep_recent=keep, **mode))
    original = sum(e["before_tokens"] for e in talk.compressions)
    summary = sum(e["after_tokens"] for e in talk.compressions)
    ratio = original / max(summary, 1)
    stats = {
        "compressions": len(talk.compressions),
        "original_tokens": original,
        "summary_tokens": summary,
        "ratio": round(ratio, 6),
        "printed_ratio": f"{ratio:.1f}:1",
    }
    per_turn = [
        {"compressed": t["compressed"], "history_after": t["after"], "summary_after": t["summary"]} for t in talk.turns
    ]
    for call in talk.calls:
        if call["kind"] == "chat":
            call["summary_in_system"] = call.pop("summary") or None
    return talk.came_to(per_turn, stats)


COMPONENTS = {
    "ConversationMemory": conversation_memory,
    "SummaryMemory": summary_memory,
    **tutorial_memory.COMPONENTS,
}


class Talk:
    """A conversation held with both histories: what each request held, and what each turn left."""

    def __init__(self, case: Json, made: History) -> None:
        self.case = case
        self.calls: list[Json] = []
        self.turns: list[Json] = []
        self.compressions: list[Json] = []
        self.transcript: list[HistoryMessage] = []
        self.history = made(self._summarise, faithful=True)
        for text in case["input"]["user_messages"]:
            self._turn(text)
        try:
            self.product: Product | None = Product(case, made)
        except BadBudget:
            self.product = None  # settings that cannot work are refused: there is no conversation to check

    def came_to(self, per_turn: list[Json], stats: Json) -> Json:
        for call in self.calls:
            call.pop("summary", None)
        transcript = [[m.role, m.content] for m in self.transcript]
        output = {"transcript": transcript, "per_turn": per_turn, "stats": stats}
        calls = [{"n": n, **call} for n, call in enumerate(self.calls, 1)]
        return {"llm_calls": calls, "output": output, "product": self.product}

    def _turn(self, text: str) -> None:
        self._say("user", text)
        before = list(self.history.messages)
        asked = len(self.calls)
        given = self.history.retrieve()
        left = {id(m) for m in self.history.messages}
        gone = [m for m in before if id(m) not in left]
        for call in self.calls[asked:]:
            call["input_message_indices"] = self._places(gone)
        events = [e["context"] for e in self.history.consume_runtime_events()]
        self.compressions += [e for e in events if e["stage"] == "summary_compact_applied"]
        summary = "".join(m.content for m in given if m.is_summary)
        spoken = [m for m in given if not m.is_summary]
        first = spoken[0].role if spoken else None
        call = {"kind": "chat", "input_message_indices": self._places(spoken), "first_role": first, "summary": summary}
        self.calls.append(call)
        self._say("assistant", _reply(self.case, len(self.turns)))
        after = self._places(self.history.messages)
        compressed = self._places(gone) if len(self.calls) - asked > 1 else None
        self.turns.append({"after": after, "compressed": compressed, "summary": summary})

    def _say(self, role: str, text: str) -> None:
        self.transcript.append(HistoryMessage(role, text, len(self.turns)))
        self.history.append(self.transcript[-1])

    def _places(self, messages: list[HistoryMessage]) -> list[int]:
        where = {id(m): i for i, m in enumerate(self.transcript)}
        return [where[id(m)] for m in messages]

    def _summarise(self, messages: list[dict[str, str]]) -> str:
        body = messages[-1]["content"]
        found = body.split("<previous>\n")[1].split("\n</previous>")[0] if "<previous>" in body else None
        self.calls.append({"kind": "compress", "input_message_indices": [], "previous_summary": found})
        return _summary(self.case, sum(c["kind"] == "compress" for c in self.calls) - 1)


class Product:
    """The same conversation with the default history."""

    def __init__(self, case: Json, made: History) -> None:
        self.case = case
        self.asked = 0
        history = made(self._summarise)
        self.requests: list[list[HistoryMessage]] = []
        self.applied = 0
        for step, text in enumerate(case["input"]["user_messages"]):
            history.append(HistoryMessage("user", text, step))
            self.requests.append(history.retrieve())
            events = history.consume_runtime_events()
            self.applied += sum(e["context"]["stage"] == "summary_compact_applied" for e in events)
            history.append(HistoryMessage("assistant", _reply(case, step), step))
        assert history.session is not None
        self.stored = [e.body.message for e in history.session.branch() if isinstance(e.body, Said)]

    def facts(self) -> Json:
        """What the cases require something of, under their names for it."""
        asked = self.case["input"]["user_messages"]
        summaries = [m.content for m in self.requests[-1] if m.is_summary]
        facts = {
            "successful_compactions": self.applied,
            "user_messages_still_in_store_verbatim": sum(m.text in asked for m in self.stored if m.role == "user"),
            "summary": summaries[0] if summaries else None,
            "empty_messages_stored": sum(m.blank for m in self.stored),
        }
        if len(self.requests) >= 5:
            reachable = any(asked[0] in m.content for m in self.requests[4])
            facts["name_reachable_at_turn_5_in_window"] = reachable
        return facts

    def faults(self) -> Iterator[str]:
        """What is wrong with any conversation."""
        asked = self.case["input"]["user_messages"]
        for turn, request in enumerate(self.requests):
            spoken = [m for m in request if not m.is_summary]
            if not spoken or spoken[0].role != "user":
                yield f"product: the request of turn {turn} does not begin with the user"
            elif spoken[-1].content != asked[turn]:
                yield f"product: the request of turn {turn} does not end with its question"
            if any(not m.content.strip() for m in request):
                yield f"product: the request of turn {turn} holds an empty message"
        if [m.text for m in self.stored if m.role == "user"] != asked:
            yield "product: the store does not hold what the user said"

    def _summarise(self, messages: list[dict[str, str]]) -> str:
        self.asked += 1
        return _summary(self.case, self.asked - 1)


def compare(case: Json, got: Json) -> list[str]:
    """Where the faithful output differs, and where the product is not what the case requires.

    What is required in words is what `Product.faults` checks for every case.
    """
    if case["component"] in tutorial_memory.COMPONENTS:
        return tutorial_memory.compare(case, got)
    product: Product | None = got.pop("product")
    found = list(diff({"llm_calls": case["llm_calls"], "output": case["output"]}, got, "case"))
    if product is not None:
        found += product.faults()
        required = case.get("required", {})
        values = {**required, **required.get("invariants", {})}
        facts = {k: v for k, v in product.facts().items() if k in values}
        found += diff({k: values[k] for k in facts}, facts, "required")
    return found


def _reply(case: Json, turn: int) -> str:
    return str(_nth(case["input"].get("replies"), turn, f"REPLY-{turn + 1}"))


def _summary(case: Json, n: int) -> str:
    return str(_nth(case["input"].get("summaries"), n, f"SUMMARY-{n + 1}"))


def _nth(given: list[str] | None, n: int, default: str) -> str:
    return given[n] if given is not None and n < len(given) else default
