"""Draws what each kind of memory shows of one made-up conversation, by running the real memories over it.

    python docs/memory_pictures.py     # writes docs/img/memory-kinds.svg

The first row is all that was said. In each other row a filled box is a record in sight, at its place in the
conversation; an outline is one that is kept but not shown. On the left stands what a memory made of it.
"""

from __future__ import annotations

import json
import tempfile
from html import escape
from pathlib import Path

from clew.memory import (
    BlockMemory,
    EntityMemory,
    HybridMemory,
    MarkdownFileMemory,
    Memory,
    MemoryRecord,
    RecallMemory,
    RecordLog,
    SummaryMemory,
    VectorMemory,
    WindowMemory,
)
from clew.models import Scripted
from clew.tokens.heuristic import Heuristic

HERE = Path(__file__).parent / "img"
QUESTION = "What does my cat eat?"
SAID = [
    ("user", "Hello, I am Li Lei, I live in Shanghai and work as a doctor."),
    ("assistant", "Nice to meet you."),
    ("user", "My cat Snowball eats nothing but tuna."),
    ("assistant", "Tuna is fine in small amounts; mix it with something else."),
    ("user", "Can you plan a weekend in Hangzhou for two people, by train, with a garden and a good restaurant?"),
    ("assistant", "Saturday: the 9:20 train, West Lake, dinner near the lake. Sunday: the tea village, back at six."),
    ("user", "Make it three days."),
    ("assistant", "Then add Lingyin Temple on Monday morning and take the afternoon train."),
    ("user", "What was the name of the village?"),
    ("assistant", "Longjing."),
    ("user", QUESTION),
]
FACTS = [
    {"name": "Li Lei", "city": "Shanghai", "job": "doctor"},
    {"cat": "Snowball", "cat's food": "tuna"},
    *[{}] * 4,
]
COLOURS = {"user": "#b4412f", "assistant": "#4b6b95", "summary": "#c98a1b", "entity": "#5f8f5a", "block": "#8a6bab"}
LEFT, TIMELINE, WIDTH, ROW = 150, 330, 920, 44


def embed(text: str) -> list[float]:
    """Stands for an embedder: what the text is about."""
    return [sum(text.lower().count(word) for word in words) + 0.01 for words in (["cat", "eat", "tuna"], ["train"])]


def memories(folder: Path) -> list[tuple[str, str, Memory]]:
    """Each kind, with its name and its settings."""

    def entities(log: RecordLog | None = None) -> EntityMemory:
        return EntityMemory(Scripted([json.dumps(facts) for facts in FACTS]), log=log)

    log = RecordLog()
    blocks = BlockMemory()
    blocks.edit("human", lambda old: "Li Lei, doctor in Shanghai; cat Snowball")
    blocks.edit("persona", lambda old: "Brief and exact")
    return [
        ("WindowMemory", "4", WindowMemory(4)),
        ("WindowMemory", "0, max_tokens=60", WindowMemory(0, max_tokens=60)),
        ("SummaryMemory", "3", SummaryMemory(3)),
        ("EntityMemory", "", entities()),
        ("RecallMemory", "top_k=2", RecallMemory(RecordLog(), top_k=2)),
        ("VectorMemory", "top_k=2", VectorMemory(embed, 2)),
        ("personal_assistant", "", HybridMemory(entities(log), WindowMemory(6, log=log))),
        ("BlockMemory", "", blocks),
        ("MarkdownFileMemory", "", MarkdownFileMemory(folder / "memory.md")),
    ]


def shown(memory: Memory) -> list[MemoryRecord]:
    """What a memory shows for the last question, after what it does between turns."""
    for step, (role, text) in enumerate(SAID):
        memory.append(MemoryRecord(role, text, step, id=f"r{step}"))
    if isinstance(memory, EntityMemory | HybridMemory):
        memory.extract()
    if not isinstance(memory, EntityMemory):
        memory.evict()
    return memory.retrieve({"text": QUESTION})


def picture(rows: list[tuple[str, str, list[MemoryRecord]]]) -> str:
    """The rows as SVG."""
    counter = Heuristic()
    sizes = [counter.text(text) for _, text in SAID]
    scale = (WIDTH - TIMELINE - 12 - 2 * len(SAID)) / sum(sizes)
    height = ROW * (len(rows) + 1) + 40
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'font-family="system-ui, sans-serif" font-size="11"><title>What each kind of memory shows</title>'
        f'<rect width="{WIDTH}" height="{height}" rx="8" fill="#fbfaf7"/>'
    ]
    places, x = [], float(TIMELINE)
    for size in sizes:
        places.append((x, max(size * scale, 3)))
        x += max(size * scale, 3) + 2
    for n, (name, settings, records) in enumerate([("said", "", []), *rows]):
        y = 14 + ROW * n
        parts.append(f'<text x="12" y="{y + 18}" fill="#475467">{escape(name)}</text>')
        parts.append(f'<text x="12" y="{y + 31}" fill="#98a2b3" font-size="9">{escape(settings)}</text>')
        seen = {record.step_id for record in records if record.kind in ("message", "")} if n else set(range(len(SAID)))
        for step, (left, width) in enumerate(places):
            colour = COLOURS[SAID[step][0]]
            look = f'fill="{colour}"' if step in seen else f'fill="none" stroke="{colour}" stroke-opacity=".35"'
            title = f"<title>{escape(SAID[step][1])}</title>"
            parts.append(f'<rect x="{left:.1f}" y="{y}" width="{width:.1f}" height="30" rx="2" {look}>{title}</rect>')
        made = [record for record in records if record.kind in COLOURS]
        for i, record in enumerate(made):
            width = (TIMELINE - LEFT - 14) / max(len(made), 2) - 2
            left = LEFT + i * (width + 2)
            box = f'<rect x="{left:.1f}" y="{y}" width="{width:.1f}" height="30" rx="2" fill="{COLOURS[record.kind]}">'
            parts.append(f"{box}<title>{escape(record.text)}</title></rect>")
    x, y = float(LEFT), height - 22
    for kind, colour in COLOURS.items():
        text = "fact" if kind == "entity" else kind
        parts.append(f'<rect x="{x}" y="{y}" width="10" height="10" rx="2" fill="{colour}"/>')
        parts.append(f'<text x="{x + 14}" y="{y + 9}" fill="#667085">{text}</text>')
        x += 34 + 6.4 * len(text)
    return "".join(parts) + "</svg>\n"


if __name__ == "__main__":
    HERE.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        rows = [(name, settings, shown(memory)) for name, settings, memory in memories(Path(folder))]
    (HERE / "memory-kinds.svg").write_text(picture(rows), encoding="utf-8")
    for name, settings, records in rows:
        print(f"{name}({settings}): {len(records)} records in sight")
