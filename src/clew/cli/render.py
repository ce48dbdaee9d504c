"""A replay's result on the terminal, readable at 80 columns."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from clew.cli.output import literal
from clew.errors import UnknownName
from clew.lab.chart import short, text_chart
from clew.lab.result import FATES, Result

FATE_WORDS = {
    "kept": "in view, word for word",
    "summarised": "behind a summary",
    "masked": "in view, shortened",
    "dropped": "out of view",
}


def result(out: Console, r: Result) -> None:
    """Prints the whole result: chart, compactions, totals, and where the messages are now."""
    out.print(f"[bold]{literal(r.source)}[/]", soft_wrap=True)
    out.print(f"policy [bold]{literal(r.policy)}[/]", soft_wrap=True)
    how = f"window {r.window:,}, prompt up to {r.limit:,} · summaries {r.model} · counter {r.counter}"
    out.print(f"{literal(how)}\n")
    chart = text_chart(
        [m.sent for m in r.moments],
        [c.call for c in r.compactions],
        trigger=r.trigger,
        limit=r.limit,
        width=min(out.width - 8, 120),
    )
    for line in chart:
        out.print(literal(line), soft_wrap=True)
    if r.compactions:
        out.print("\n[bold]Compactions[/]")
        out.print(_compactions(r))
    for f in r.failures:
        out.print(f"refused before message {f.message}: {literal(f.reason)} {literal(f.detail)}", style="yellow")
    if r.impossible:
        first = r.impossible[0]
        out.print(
            f"{len(r.impossible)} model calls could not be made, "
            f"the first at message {first.message}: {literal(first.why)}",
            style="red",
        )
    out.print("\n[bold]Totals[/]")
    out.print(_totals(r))
    out.print(f"\n[bold]Where the {r.messages:,} recorded messages are at the end[/]")
    out.print(_fates(r))


def moment(out: Console, r: Result, at: int) -> None:
    """Prints what the model would have seen at its `at`-th call (from 1)."""
    if not 1 <= at <= len(r.moments):
        raise UnknownName(f"there is no model call {at}; this replay has 1 to {len(r.moments)}")
    shown: list[int] = []
    for m in r.moments[:at]:
        shown = [*shown[: m.same], *m.new]
    m = r.moments[at - 1]
    out.print(f"\n[bold]The view at model call {at}[/]  {len(shown)} messages, {m.sent:,} tokens")
    for number in shown:
        item = r.items[number]
        how = "" if item.kind == "message" else f"[{item.kind} of entry {item.entries}] "
        head = " ".join(item.text[:400].split())
        line = f"{item.role:<9} {item.tokens:>6,}  {how}{head}"
        out.print(literal(line), no_wrap=True, overflow="ellipsis")


def _compactions(r: Result) -> Table:
    table = plain()
    for name in ("at message", "reason", "before", "after", "kept", "summarised", "masked", "dropped", "calls"):
        table.add_column(name, justify="left" if name == "reason" else "right")
    for c in r.compactions:
        table.add_row(
            str(c.message),
            c.reason,
            short(c.before),
            short(c.after),
            *(str(v) if v else "·" for v in (c.kept, c.summarised, c.masked, c.dropped, c.model_calls)),
        )
    return table


def _totals(r: Result) -> Table:
    table = plain(header=False)
    table.add_column(justify="left")
    table.add_column(justify="right")
    table.add_column(justify="left")
    spent = sum(c.model_tokens for c in r.compactions)
    calls = sum(c.model_calls for c in r.compactions)
    summaries = f"and {calls:,} for summaries" + (f", {spent:,} tokens" if spent else "")
    table.add_row("model calls", f"{len(r.moments):,}", summaries)
    table.add_row("tokens sent", f"{r.sent:,}", f"largest request {r.peak:,}, mean {r.mean:,}")
    table.add_row("tokens answered", f"{r.output:,}", "")
    table.add_row("prompt cache", f"{r.cache_hits:.1%}", "of the sent tokens begin as the last request did")
    table.add_row("cost", f"${r.dollars:.2f}", f"at the prices of {literal(r.price)}")
    return table


def _fates(r: Result) -> Table:
    table = plain(header=False)
    table.add_column()
    table.add_column(justify="right")
    table.add_column(justify="right")
    table.add_column()
    total = sum(s.tokens for s in r.fates.values()) or 1
    for fate in FATES:
        share = r.fates[fate]
        bar = "█" * round(24 * share.tokens / total)
        table.add_row(FATE_WORDS[fate], f"{share.messages:,} messages", f"{share.tokens:,} tokens", bar)
    lost = r.messages - sum(s.messages for s in r.fates.values())
    table.add_row("missing from the log", f"{lost:,} messages", "", "" if lost else "all can be opened again")
    return table


def plain(header: bool = True) -> Table:
    """A table without lines, for 80 columns."""
    return Table(box=None, show_header=header, header_style="dim", pad_edge=False, padding=(0, 1, 0, 1))


def listing(*names: str) -> Table:
    """A table of which the last column takes what space the others leave, cut where it does not suffice."""
    table = plain()
    table.expand = True
    for name in names:
        table.add_column(name, no_wrap=True, overflow="ellipsis", ratio=1 if name == names[-1] else None)
    return table
