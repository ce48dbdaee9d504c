"""Draws the pictures of the policy pages by running the real policies over a small made-up session.

    python docs/pictures.py            # writes docs/img/policy-*.svg

Each picture has two rows: the conversation as logged, and the view right after the policy's first
compaction. A box is a message, as wide as its tokens.
"""

from __future__ import annotations

from html import escape
from pathlib import Path

from clew import Session, policies
from clew.messages import Message, ToolCall, assistant, system, tool, user
from clew.models import Extractive
from clew.policies.guard import Guarded
from clew.sessions.edits import unpack
from clew.sessions.view import Item, View

HERE = Path(__file__).parent / "img"
WINDOW = 8_000
COLOURS = {
    "system": "#8a8f98",
    "user": "#b4412f",
    "assistant": "#4b6b95",
    "tool": "#b9c7da",
    "summary": "#c98a1b",
    "mask": "#9da2d3",
    "shrink": "#9da2d3",
}


def conversation() -> list[Message]:
    """Five turns of a small coding session, about 8,000 tokens."""
    messages = [system("You are a careful coding agent. " * 6)]
    for turn in range(5):
        messages.append(user(f"Task {turn + 1}: make the parser accept form {turn + 1}. " * 3))
        for step in range(3):
            call = f"call_{turn}_{step}"
            messages.append(
                assistant(f"Reading part {step}.", ToolCall(call, "bash", f'{{"command": "sed -n {step}p"}}'))
            )
            messages.append(
                tool(call, f"line {turn}.{step} of the file, as it stands in the repository\n" * (22 + 14 * step))
            )
        messages.append(assistant(f"Form {turn + 1} is accepted now; all tests pass. " * 4))
    return messages


def rows(policy: Guarded) -> tuple[View, View]:
    """The view right before the policy's first compaction, and right after it."""
    with Session.open("memory://", policy=policy, model=Extractive(), window=WINDOW) as session:
        for message in conversation():
            session.append(message)
            if message.role == "user" or message.role == "tool":
                before, leaf = session.view, session.leaf
                session.messages()
                if session.leaf != leaf:
                    return before, session.view
        return session.view, session.view


def picture(name: str, before: View, after: View) -> str:
    """The two rows as SVG."""
    width, left, gap = 920, 96, 2
    scale = (width - left - 10 - gap * len(before.items)) / max(before.tokens, 1)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} 178" role="img" '
        f'font-family="system-ui, sans-serif" font-size="12"><title>What {escape(name)} keeps</title>'
        f'<rect width="{width}" height="178" rx="8" fill="#fbfaf7"/>'
    ]
    places: dict[int, tuple[float, float]] = {}
    for row, (label, view) in enumerate((("logged", before), ("view after", after))):
        y, x = 26 + row * 76, float(left)
        parts.append(f'<text x="12" y="{y + 15}" fill="#667085">{label}</text>')
        parts.append(f'<text x="12" y="{y + 29}" fill="#98a2b3" font-size="10">{view.tokens:,} tokens</text>')
        for item in view.items:
            w = max(item.count * scale, 2)
            if row == 0:
                places.update(dict.fromkeys(unpack(item.ids), (x, w)))
            elif item.kind == "summary":
                spans = [places[i] for i in unpack(item.ids) if i in places]
                if spans:
                    a, b = spans[0][0], spans[-1][0] + spans[-1][1]
                    shape = f"M{a:.1f} {y - 42}L{b:.1f} {y - 42}L{x + w:.1f} {y - 2}L{x:.1f} {y - 2}Z"
                    parts.append(f'<path d="{shape}" fill="#c98a1b" opacity=".18"/>')
            parts.append(
                f'<rect x="{x:.1f}" y="{y}" width="{w:.1f}" height="34" rx="2" fill="{_colour(item)}">'
                f"<title>{escape(item.message.role)}, {item.count} tokens</title></rect>"
            )
            x += w + gap
    x = float(left)
    for word in ("system", "user", "assistant", "tool", "summary", "mask"):
        parts.append(f'<rect x="{x}" y="154" width="10" height="10" rx="2" fill="{COLOURS[word]}"/>')
        text = {"tool": "tool result", "mask": "shortened"}.get(word, word)
        parts.append(f'<text x="{x + 14}" y="163" fill="#667085">{text}</text>')
        x += 34 + 6.4 * len(text)
    return "".join(parts) + "</svg>\n"


def _colour(item: Item) -> str:
    return COLOURS.get(item.kind, COLOURS[item.message.role])


if __name__ == "__main__":
    HERE.mkdir(exist_ok=True)
    for name in (listing.name for listing in policies.available()):
        before, after = rows(policies.policy(name))
        (HERE / f"policy-{name}.svg").write_text(picture(name, before, after), encoding="utf-8")
        print(f"policy-{name}.svg: {before.tokens:,} → {after.tokens:,} tokens")
