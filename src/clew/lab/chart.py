"""A chart of context fill over model calls, as text and as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

BLOCKS = " ▁▂▃▄▅▆▇█"


def short(tokens: float) -> str:
    """Tokens in at most five characters: 950, 12.3k, 200k, 1.5M."""
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if tokens >= size * 0.9995:
            value = tokens / size
            return f"{value:.1f}{unit}" if value < 99.95 and round(value, 1) % 1 else f"{value:.0f}{unit}"
    return f"{tokens:.0f}"


def buckets(values: Sequence[int], width: int) -> list[int]:
    """The values squeezed into at most `width` columns, each the largest of its share."""
    n = len(values)
    if n <= width:
        return list(values)
    return [max(values[i * n // width : (i + 1) * n // width]) for i in range(width)]


def text_chart(
    values: Sequence[int], marks: Sequence[int], *, trigger: int, limit: int, width: int = 72, height: int = 9
) -> list[str]:
    """Lines of a chart at most `width + 8` characters wide.

    `values` are tokens per model call, `marks` the calls before which a compaction happened. The
    line of the prompt limit and of the trigger are drawn when they fall into the picture.
    """
    if not values:
        return []
    columns = buckets(values, width)
    top = max(*values, trigger) if max(values) > trigger * 0.4 else max(values)
    top = max(top, 1)
    lines = []
    for row in range(height, 0, -1):
        low, high = top * (row - 1) / height, top * row / height
        label = short(high) if row in (height, (height + 1) // 2) else ""
        cells = []
        for value in columns:
            fill = (value - low) / (high - low)
            cell = BLOCKS[max(0, min(8, round(fill * 8)))]
            if cell == " " and low <= limit < high:
                cell = "─"
            elif cell == " " and low < trigger <= high:
                cell = "·"
            cells.append(cell)
        lines.append(f"{label:>6} {'┤' if label else '│'}" + "".join(cells).rstrip())
    lines.append(f"{'0':>6} └" + "─" * len(columns))
    where = {min(len(columns) - 1, m * len(columns) // len(values)) for m in marks if m < len(values)}
    if where:
        lines.append(" " * 8 + "".join("▲" if i in where else " " for i in range(len(columns))).rstrip())
    axis = f"model calls 1–{len(values)}"
    if where:
        axis += "   ▲ compaction"
    if top >= trigger:
        axis += f"   · trigger {short(trigger)}"
    lines.append(" " * 8 + axis)
    return lines


def svg_chart(
    values: Sequence[int],
    marks: Sequence[int],
    *,
    trigger: int,
    limit: int,
    title: str,
    width: int = 960,
    height: int = 260,
) -> str:
    """The same chart as an SVG element: an area, the two limits as lines, a mark per compaction."""
    left, right, above, below = 52, 12, 14, 30
    inner_w, inner_h = width - left - right, height - above - below
    top = max([*values, trigger, 1]) * 1.04
    step = inner_w / max(len(values), 1)

    def x(call: float) -> float:
        return round(left + call * step, 2)

    def y(tokens: float) -> float:
        return round(above + inner_h * (1 - tokens / top), 2)

    area = "".join(f"L{x(i)} {y(v)}L{x(i + 1)} {y(v)}" for i, v in enumerate(values))
    parts = [
        f'<svg class="chart" viewBox="0 0 {width} {height}" role="img" aria-label="{escape(title)}" '
        'xmlns="http://www.w3.org/2000/svg">',
        f"<title>{escape(title)}</title>",
    ]
    for share in (0.25, 0.5, 0.75, 1.0):
        value = top / 1.04 * share
        parts.append(f'<line class="grid" x1="{left}" x2="{width - right}" y1="{y(value)}" y2="{y(value)}"/>')
        parts.append(f'<text class="axis" x="{left - 6}" y="{y(value) + 4}" text-anchor="end">{short(value)}</text>')
    if values:
        parts.append(f'<path class="area" d="M{x(0)} {y(0)}{area}L{x(len(values))} {y(0)}Z"/>')
    near = abs(y(trigger) - y(limit)) < 14
    labels = (("limit", "trigger, limit" if near else "limit", limit), ("trigger", "" if near else "trigger", trigger))
    for name, label, value in labels:
        if value <= top:
            parts.append(
                f'<line class="{name}" x1="{left}" x2="{width - right}" y1="{y(value)}" y2="{y(value)}"/>'
                f'<text class="{name}" x="{width - right}" y="{y(value) - 4}" text-anchor="end">'
                f"{f'{label} {short(value)}' if label else ''}</text>"
            )
    for mark in marks:
        parts.append(
            f'<line class="mark" x1="{x(mark)}" x2="{x(mark)}" y1="{above}" y2="{above + inner_h}"/>'
            f'<path class="mark" d="M{x(mark)} {above + inner_h}l5 9h-10z"/>'
        )
    parts.append(
        f'<text class="axis" x="{left}" y="{height - 4}">call 1</text>'
        f'<text class="axis" x="{width - right}" y="{height - 4}" text-anchor="end">call {len(values)}</text></svg>'
    )
    return "".join(parts)
