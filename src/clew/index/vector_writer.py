"""Bringing an index of vectors up to its log."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

from msgspec.structs import replace

from clew.index.arrays import unpacked
from clew.index.embedded import Progress, Texts, silent
from clew.index.files import Damaged
from clew.index.graph import Nearby, checksum
from clew.index.rows import Row, batches
from clew.index.shelf import FILE, Graph, Shelf, State, broken

BATCH = 1_000
"""Rows that are taken in together."""

EXACT = 20_000
"""Texts, at most, that are compared one by one when all has been read; more go into a graph. To compare so many takes
2 ms, about what a graph takes for its candidates and their vectors; with five times as many it is 20 ms."""

REST = 20
"""Beside a graph, the part of its size (as 1 / REST) that may be compared one by one, up to `EXACT`."""

GROWTH = 4
"""While much is read, the graph is written anew when there is a quarter more: its file is written as a whole."""

CHUNK = 5_000
"""Vectors put into a graph at a time."""


class Unwritable(Exception):
    """A file of the index cannot be read or written just now."""


@contextmanager
def filing() -> Iterator[None]:
    """Tells what is wrong with the files of an index from what embedders and stores raise."""
    try:
        yield
    except sqlite3.Error as error:
        if broken(error):
            raise Damaged(str(error)) from error
        raise Unwritable(str(error)) from error
    except OSError as error:
        raise Unwritable(str(error)) from error


def bring_up(
    folder: Path,
    texts: Texts,
    made: str,
    whole: set[int],
    *,
    until: int | None = None,
    progress: Progress = silent,
) -> None:
    """Takes in what the log has more than the index, up to a position; the index is made anew when it cannot be used.

    The vectors of a batch are stored before the batch counts as read: the process may be killed at any time, and no
    text is embedded twice. Only for the one who may write the folder. `whole`: see `Shelf.check`.
    """
    try:
        _bring_up(folder, texts, made, whole, until, progress)
    except Damaged:
        with filing():
            clear(folder)
        _bring_up(folder, texts, made, whole, until, progress)


def clear(folder: Path) -> None:
    """Deletes the files of an index. Only for the one who may write the folder."""
    for path in (*folder.glob(f"{FILE}*"), *folder.glob(_name("*"))):
        path.unlink(missing_ok=True)


def _bring_up(folder: Path, texts: Texts, made: str, whole: set[int], until: int | None, progress: Progress) -> None:
    with ExitStack() as stack:
        with filing():
            shelf = stack.enter_context(closing(Shelf(folder, write=True)))
            shelf.check(whole, (folder / FILE).stat().st_ino)
            state = shelf.state()
        if state.made != made or state.mark != texts.mark(state.position):
            state = State(made=made, next=state.next)
            with filing(), shelf.writing():
                shelf.clear()
                shelf.put(state)
        before = state.removals
        for rows in batches(texts.rows(state.position), BATCH, until):
            state = _take(shelf, texts, state, rows, progress)
            if state.next - state.graph.end > max(EXACT, state.graph.end // GROWTH):
                state = _fold(shelf, folder, texts, state)
        with filing():
            gone = shelf.gone()
        if gone or state.next - state.graph.end > _at_rest(state.graph):
            state = _fold(shelf, folder, texts, state)
        if state.removals > before:
            with filing():
                shelf.settle()
        _sweep(folder, state)


def _at_rest(graph: Graph) -> int:
    """How many texts may be beside a graph when all has been read."""
    return min(EXACT, graph.end // REST) if graph.file else EXACT


def _take(shelf: Shelf, texts: Texts, state: State, rows: list[Row], progress: Progress) -> State:
    """Takes in rows: of each id the last one counts, and what the index had of it before is forgotten."""
    last = {row.id: row for row in rows}
    found = [piece for row in last.values() for piece in texts.pieces(row)]
    found.sort(key=lambda one: one[0])
    entries = [entry for entry, _ in found]
    vectors = texts.vectors.of([text for _, text in found], progress)
    position = rows[-1].position
    mark = texts.mark(position)
    with filing(), shelf.writing():
        state, before = shelf.remove(state, last)
        state = shelf.add(state, entries, vectors)
        state, forgotten = shelf.forget(state, before)
        texts.vectors.forget(forgotten)
        state = replace(state, position=position, mark=mark)
        shelf.put(state)
    return state


def _fold(shelf: Shelf, folder: Path, texts: Texts, state: State) -> State:
    """Has all texts in a graph, and nothing else. They are added in the order of n."""
    with filing():
        return _folded(shelf, folder, texts, state)


def _folded(shelf: Shelf, folder: Path, texts: Texts, state: State) -> State:
    old, gone = state.graph, shelf.gone()
    erased = old.gone + len(gone)
    nearby: Nearby | None = None
    if old.file and erased * GROWTH < state.texts:
        nearby = load(folder, old, write=True)
        nearby.erase(gone)
        parts = shelf.fresh(old.end, CHUNK)
    else:
        erased, parts = 0, _all(shelf, texts)
    for ns, vectors in parts:
        rows = unpacked(vectors)
        nearby = nearby or Nearby.new(rows)
        nearby.add(ns, rows)
    graph = Graph(end=state.next)
    if nearby is not None:
        file = _name(f"{state.next}-{state.removals}")
        size, sum = nearby.save(folder / file)
        graph = Graph(file, size, sum, nearby.scale, state.next, erased)
    state = replace(state, graph=graph)
    with shelf.writing():
        shelf.covered(graph.end)
        shelf.put(state)
    return state


def _all(shelf: Shelf, texts: Texts) -> Iterator[tuple[list[int], list[bytes]]]:
    """Every text with its vector as it is stored. Raises `Damaged` when that is no longer there."""
    for ns, keys in shelf.texts(CHUNK):
        held = texts.vectors.held(keys)
        if any(key not in held for key in keys):
            raise Damaged("the store has no vectors of some texts")
        yield ns, [held[key] for key in keys]


def load(folder: Path, graph: Graph, *, write: bool = False) -> Nearby:
    """The graph that counts. Raises `Damaged` when its file is not what was written, `FileNotFoundError` when there is
    none (another one may count by now)."""
    path = folder / graph.file
    if path.stat().st_size != graph.size or checksum(path) != graph.sum:
        raise Damaged(f"{graph.file}: not what was written")
    return Nearby.load(path, graph.scale, write=write)


def _name(part: str) -> str:
    return f"graph-{part}.usearch"


def _sweep(folder: Path, state: State) -> None:
    """Removes graphs that no longer count. A process that has one mapped keeps it."""
    for path in folder.glob(_name("*")):
        if path.name != state.graph.file:
            with suppress(PermissionError):  # Windows keeps a file that another process has mapped; the next sweep
                path.unlink(missing_ok=True)
