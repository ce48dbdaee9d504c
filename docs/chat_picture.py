"""Draws the picture of a chat by running one, with replies from a script.

python docs/chat_picture.py            # writes docs/img/chat.svg
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from html import unescape
from pathlib import Path

from rich.cells import cell_len
from rich.console import Console

from clew import Session, policies
from clew.cli.chat import commands
from clew.cli.chat.parts import remembering
from clew.cli.chat.talk import Settings, Talk, instructions
from clew.memory import MemoryRecord, RecordLog
from clew.messages import ToolCall, Usage, assistant
from clew.models import ModelCall, Reply, Scripted

HERE = Path(__file__).parent / "img"
WINDOW = 4_000

REMEMBERED = (
    "Ada 的猫叫小白，三岁，对鱼过敏。",
    "Ada moved from Oslo to Bergen in March.",
    "The harbour office in Bergen is closed on Sundays.",
)

TALK = (
    "我的猫能吃三文鱼吗？",
    "And please remember that the vet is on Tuesday at nine.",
    "Write me a long letter to the harbour office about berth 8473.",
    "Shorter, please.",
    "/memory vet AND Tuesday",
    "/cost",
)

LETTER = (
    "Dear harbour office, I write about berth 8473, which the storm of last week has damaged. The second cleat from "
    "the gangway is loose, the fender on the north side is gone, and the lamp at the end of the pier has been dark "
    "since Thursday. I have moored there for eleven years and never asked for anything. Please send somebody with a "
    "spanner, a fender and a lamp before the next westerly, and tell me when, so that I can hold the ladder. If the "
    "berth cannot be repaired in time, I ask for another one on the same pier, not further out than berth 8490, "
    "because the current beyond it is too strong for a boat of this size. "
)

SUMMARY = "Ada has the cat 小白, allergic to fish, and the vet on Tuesday at nine. She writes about berth 8473."


def script() -> Callable[[ModelCall], Reply | str]:
    """The replies, in order; a call for a summary gets the summary."""
    remember = ToolCall("c1", "remember", '{"text": "Ada has the vet on Tuesday at nine."}')
    replies = iter(
        [
            Reply(assistant("不能。小白对鱼过敏，三文鱼也是鱼。", usage=Usage(900, 30))),
            Reply(assistant("", remember), "tool_calls", Usage(1_000, 24)),
            Reply(assistant("Noted: the vet is on Tuesday at nine.", usage=Usage(1_100, 12))),
            Reply(assistant(LETTER + "Yours, Ada", usage=Usage(1_200, 110))),
            Reply(assistant("Berth 8473: cleat loose, fender gone, lamp dark. Ada", usage=Usage(700, 20))),
        ]
    )
    return lambda call: SUMMARY if call.purpose == "summary" else next(replies)


def draw() -> str:
    """The chat as SVG."""
    screen = Console(record=True, width=80, file=io.StringIO(), force_terminal=True, highlight=False, emoji=False)
    model = Scripted(script(), context_window=WINDOW)
    policy = policies.policy("pi:keep=100,reserve=3120")
    with RecordLog("memory://") as log, Session.open("memory://", policy=policy, model=model) as session:
        log.add_many([MemoryRecord("user", text, kind="note", speaker="Ada") for text in REMEMBERED])
        memory = remembering("recall", "none", log, model)
        talk = Talk(session, Settings(model, policy, policy.budget(WINDOW), memory, instructions(None)), screen, screen)
        for line in TALK:
            screen.print(f"[bold]› {line}[/]")
            if line.startswith("/"):
                commands.obey(talk, line)
            else:
                talk.say(line)
    return legible(screen.export_svg(title="clew chat"))


def legible(svg: str) -> str:
    """Rich's picture without fonts from the network, and with wide characters as wide as two others."""

    def widened(found: re.Match[str]) -> str:
        text = unescape(found[3])
        length = float(found[1]) * cell_len(text) / max(len(text), 1)
        return f'textLength="{length:.1f}"{found[2]}>{found[3]}<'

    return re.sub(r'textLength="([\d.]+)"([^>]*)>([^<]*)<', widened, re.sub(r"@font-face \{[^}]*\}\s*", "", svg))


if __name__ == "__main__":
    HERE.mkdir(exist_ok=True)
    (HERE / "chat.svg").write_text(draw(), encoding="utf-8")
