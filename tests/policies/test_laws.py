"""Design laws 1 to 6, for every policy under guard, over generated conversations and models of all sorts."""

from __future__ import annotations

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from msgspec import Struct, json
from msgspec.structs import replace

import provider_rules
from clew.budget import Budget
from clew.codecs import anthropic, gemini, openai, responses
from clew.errors import ContextOverflow
from clew.messages import Message
from clew.models.scripted import Scripted
from clew.models.steps import Failure, Offline, run
from clew.policies import available, policy
from clew.policies.guard import ATTEMPTS, Guarded
from clew.policies.last_resort import standing
from clew.sessions.entries import Compaction, Entry, Failed, Pin, Said
from clew.sessions.media import media_size
from clew.sessions.policy import Due
from clew.sessions.rules import violations
from clew.sessions.view import Projection, View, project
from clew.tokens import Heuristic
from conversations import broken_conversations, conversations
from policies_models import ANSWERS, Scaled

CODECS = {"openai": openai, "responses": responses, "anthropic": anthropic, "gemini": gemini}
WINDOWS = (2_048, 4_096, 8_192, 40_000)


class Setting(Struct, frozen=True):
    """What one run is made of."""

    messages: list[Message]
    window: int
    model: str
    overhead: int = 0
    pin: str = ""
    media_bytes: int = 20_000_000
    counter: Heuristic = Heuristic()
    compact_by_hand: bool = False


@st.composite
def settings_of_a_run(draw: st.DrawFn) -> Setting:
    max_text = draw(st.sampled_from((300, 2_000, 20_000)))
    kind = draw(st.sampled_from((conversations, conversations, broken_conversations)))
    messages = draw(kind(max_text=max_text))
    pins = [m.text[:50] for m in messages if m.text.strip()]
    return Setting(
        messages,
        draw(st.sampled_from(WINDOWS)),
        draw(st.sampled_from(sorted(ANSWERS))),
        draw(st.sampled_from((0, 0, 300))),
        draw(st.sampled_from(pins)) if pins and draw(st.booleans()) else "",
        draw(st.sampled_from((20_000_000, 100))),
        draw(st.sampled_from((Heuristic(), Scaled()))),
        draw(st.booleans()),
    )


class Run:
    """A conversation fed to a policy message by message, with the log it leaves."""

    def __init__(self, guarded: Guarded, setting: Setting) -> None:
        self.policy = guarded
        self.setting = setting
        self.budget = replace(guarded.budget(setting.window), media_bytes=setting.media_bytes)
        self.model = Scripted(ANSWERS[setting.model])
        self.log: list[Entry] = []
        self.state = Projection.start(setting.counter, setting.overhead)
        self.failures = 0

    def append(self, body: Said | Compaction | Failed | Pin) -> None:
        self.log.append(Entry(len(self.log) + 1, len(self.log) or None, body))
        self.state = self.state.step(self.log[-1])

    def call(self, by_hand: bool = False) -> View:
        """The view at a model call, compacted first if due; every law is checked on the way."""
        before = self.state.view
        due = self.policy.due(before, self.budget)
        if due is None and by_hand:
            due = Due("manual", before.tokens)
        if due is not None:
            due = replace(due, failures=self.failures)
            made = self.compaction(before, due)
            again = self.compaction(before, due)
            assert json.encode(made) == json.encode(again), "the same input gives the same bytes"
            found, failed = made
            for failure in failed:
                self.append(Failed(failure))
                self.failures += 1
            assert list(self.state.view.items) == list(before.items), "a failure leaves the view as it was"
            assert len(failed) <= 1, "one attempt, one failure"
            if due.failures >= ATTEMPTS:
                assert all(f.reason == "stalled" for f in failed), "the policy is not asked again"
            if found is not None:
                self.commit(before, found)
        view = self.state.view
        check_valid(view, before, self.budget)
        return view

    def compaction(self, view: View, due: Due) -> tuple[Compaction | None, list[Failure]]:
        world = Offline(self.model)
        calls = len(self.model.calls)
        found = run(self.policy.compact(view, self.budget, due), world)
        assert len(self.model.calls) - calls <= 40
        return found, world.failures

    def commit(self, before: View, found: Compaction) -> None:
        event(found.policy)
        items = [i for i in before.items if i.kind != "mend"]
        account = found.account
        assert account.kept + account.summarised + account.masked + account.dropped == len(items)
        self.append(found)
        self.failures = 0
        after = self.state.view
        assert (found.before, found.after) == (before.tokens, after.tokens)
        assert after.count < before.count or after.media_bytes < before.media_bytes
        pin = self.setting.pin
        if pin and shown(before, pin) and self.budget.input - fixed(before) > 400:
            assert shown(after, pin), "a pinned text is not lost while there is room for it"


def shown(view: View, text: str) -> bool:
    """Whether the model sees the text, in a message, a result or a call's arguments."""
    return any(
        text in said
        for m in view.messages
        for said in (m.text, *(r.text for r in m.results), *(c.arguments for c in m.calls))
    )


def fixed(view: View) -> int:
    """Tokens of what can never go: the head, the tools, the newest user message."""
    newest = view.last_user()
    items = [*standing(view), *([view.items[newest]] if newest is not None else [])]
    return view.weigh(items) + int(view.overhead * view.scale)


def check_valid(view: View, before: View, budget: Budget) -> None:
    assert violations(view.messages) == []
    for provider, codec in CODECS.items() if any(m.role == "user" for m in view.messages) else ():
        assert provider_rules.violations(codec.encode(view.messages), provider) == []
    assert view.tokens <= budget.input
    newest = before.last_user()
    if newest is not None:
        kept = view.last_user()
        assert kept is not None
        assert view.items[kept].message == before.items[newest].message, "the newest user message stays verbatim"
        own = media_size(view.items[kept].message)
        assert view.media_bytes <= max(budget.media_bytes, own)
    assert [i.message for i in standing(view)] == [i.message for i in standing(before)]


@pytest.mark.parametrize("name", [listing.name for listing in available()])
@given(setting=settings_of_a_run())
def test_laws(name: str, setting: Setting) -> None:
    going = Run(policy(name), setting)
    if setting.pin:
        going.append(Pin(setting.pin))
    overflow = None
    try:
        for message in setting.messages:
            if message.role == "assistant":
                going.call()
            going.append(Said(message))
        going.call(setting.compact_by_hand)
    except ContextOverflow as error:
        overflow = error
    if overflow is not None:
        event("overflow")
        assert fixed(going.state.view) > going.budget.input - 2
        assert overflow.figures["needed"] > overflow.figures["available"] == going.budget.input
        assert overflow.figures["window"] == setting.window
    replayed = project(going.log, setting.counter, setting.overhead)
    assert json.encode(replayed.view.messages) == json.encode(going.state.view.messages)
    assert replayed.view.tokens == going.state.view.tokens
    said = [e.body.message for e in going.log if isinstance(e.body, Said)]
    assert said == setting.messages[: len(said)], "the log is append-only"
