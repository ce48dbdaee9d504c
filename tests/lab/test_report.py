"""The report page in a real browser: it shows what the replay says, needs no network, and runs nothing it quotes."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from clew import policies
from clew.lab.replay import run_replay
from clew.lab.report import html
from clew.lab.result import Result
from clew.messages import assistant, user
from clew.models import Extractive
from clew.models.prices import Price
from clew.tokens import Heuristic
from coding_session import coding_session

PRICE = Price("test", input=3.0, output=15.0, cache_read=0.3, cache_write=3.75)
HOSTILE = '</script><script>document.title="owned"</script><img src=x onerror=\'document.title="owned"\'>'


def result(policy: str = "pi") -> Result:
    messages = [*coding_session(), user(HOSTILE), assistant(f"You wrote {HOSTILE} \u2028 再见")]
    made, session = run_replay(
        messages,
        policies.policy(policy),
        window=6_000,
        model=Extractive(),
        counter=Heuristic(),
        price=PRICE,
        source="session.jsonl",
    )
    session.close()
    return made


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    assert found, "no Chromium on this machine; `make browser` installs one"
    with sync_playwright() as playwright:
        quiet = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update")
        instance = playwright.chromium.launch(executable_path=found, args=[*quiet, "--disable-sync"])
        yield instance
        instance.close()


@pytest.fixture
def page(browser: Browser, tmp_path: Path) -> Iterator[tuple[Page, Result]]:
    shown = result()
    file = tmp_path / "report.html"
    file.write_text(html([shown, result("linear")]), encoding="utf-8")
    tab = browser.new_page()
    problems: list[str] = []
    tab.on("pageerror", lambda error: problems.append(str(error)))
    tab.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    tab.on("request", lambda request: problems.append(request.url) if not request.url.startswith("file:") else None)
    tab.goto(file.as_uri())
    yield tab, shown
    tab.close()
    assert problems == []


def test_figures_and_tables(page: tuple[Page, Result]) -> None:
    tab, shown = page
    cards = tab.locator(".card").all_inner_texts()
    assert any(f"{shown.sent:,}" in c for c in cards)
    assert tab.locator("tbody tr").count() == len(shown.compactions)
    assert tab.locator("svg.chart path.mark").count() == len(shown.compactions)
    for fate, share in shown.fates.items():
        assert f"{fate}: {share.messages:,} messages" in tab.locator(".legend").inner_text()


def test_stepping_through_the_views(page: tuple[Page, Result]) -> None:
    tab, shown = page
    last = len(shown.moments)
    tab.locator("input[type=range]").fill(str(last))
    assert f"call {last} of {last}" in tab.locator("output").inner_text()
    numbers: list[int] = []
    for moment in shown.moments:
        numbers = [*numbers[: moment.same], *moment.new]
    roles = [role.strip() for role in tab.locator("#view .role").all_inner_texts()]
    assert roles == [shown.items[n].role for n in numbers]
    tab.get_by_role("button", name="previous call").click()
    assert f"call {last - 1} of {last}" in tab.locator("output").inner_text()
    tab.locator("tbody tr").first.click()
    assert f"call {shown.compactions[0].call + 1} of" in tab.locator("output").inner_text()
    tab.locator("tbody tr").last.press("Enter")
    assert f"call {shown.compactions[-1].call + 1} of" in tab.locator("output").inner_text()
    tab.locator("tbody tr").first.click()
    summary = tab.locator("#view .k-summary")
    assert summary.count() == 1
    summary.locator("summary").click()
    expect(summary.locator("pre")).to_have_text(re.compile(".{100}", re.DOTALL))  # filled when it opens, a moment later


def test_quoted_text_stays_text(page: tuple[Page, Result]) -> None:
    tab, shown = page
    tab.locator("input[type=range]").fill(str(len(shown.moments)))
    assert tab.title() == "Clew replay"
    assert HOSTILE[:30] in tab.locator("#view").inner_text()


def test_several_runs(page: tuple[Page, Result]) -> None:
    tab, _ = page
    tab.get_by_role("button", name="session.jsonl · linear").click()
    assert "policy linear" in tab.locator(".sub").inner_text()
