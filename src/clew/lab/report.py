"""The HTML report of a replay: one file, no network, every view of the replay inside."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import Any

import msgspec

from clew.lab.chart import svg_chart
from clew.lab.result import Result


def html(results: Sequence[Result]) -> str:
    """The report of one or several replays as an HTML page that needs nothing else."""
    page = files("clew.lab").joinpath("report.html").read_text(encoding="utf-8")
    return page.replace("__DATA__", _inert(msgspec.json.encode([_run(r) for r in results]).decode()))


def summary(result: Result) -> dict[str, Any]:
    """A result as plain data: its fields and the figures derived from them."""
    data: dict[str, Any] = msgspec.to_builtins(result)
    for name in ("sent", "output", "peak", "mean", "cache_hits"):
        data[name] = getattr(result, name)
    return data


def _run(result: Result) -> dict[str, Any]:
    data = summary(result)
    data["chart"] = svg_chart(
        [m.sent for m in result.moments],
        [c.call for c in result.compactions],
        trigger=result.trigger,
        limit=result.limit,
        title=f"Tokens per model call, {result.policy}",
    )
    return data


def _inert(json: str) -> str:
    """JSON that cannot end the script element it stands in."""
    return json.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
