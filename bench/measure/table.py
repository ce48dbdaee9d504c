"""Tables of benchmark results, as Markdown."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from statistics import median
from unicodedata import east_asian_width


def cpu_seconds(act: Callable[[], object], *, rounds: int = 5) -> float:
    """Median processor time of an action, in seconds: other programs on the machine do not change it."""
    times = []
    for _ in range(rounds):
        start = time.process_time()
        act()
        times.append(time.process_time() - start)
    return median(times)


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Aligned Markdown: the first column to the left, figures to the right."""
    cells = [list(head), *([str(c) for c in row] for row in rows)]
    widths = [max(3, *(_width(row[i]) for row in cells)) for i in range(len(head))]
    rule = ["-" * widths[0], *("-" * (w - 1) + ":" for w in widths[1:])]
    return "\n".join(
        "| " + " | ".join(_fit(c, w, i) for i, (c, w) in enumerate(zip(row, widths, strict=True))) + " |"
        for row in (cells[0], rule, *cells[1:])
    )


def _fit(cell: str, width: int, column: int) -> str:
    gap = " " * (width - _width(cell))
    return gap + cell if column else cell + gap


def _width(cell: str) -> int:
    return sum(2 if east_asian_width(c) in "WF" else 1 for c in cell)
