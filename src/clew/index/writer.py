"""Bringing an index up to its log."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from itertools import chain
from pathlib import Path

import tantivy
from msgspec.structs import replace

from clew.index import files
from clew.index.bm25 import Document, Totals, totals
from clew.index.engine import HEAP, Schema, State
from clew.index.reader import Reader
from clew.index.rows import Row, Source, batches
from clew.index.tail import documents

BATCH = 5_000
"""Rows that are committed together. A commit takes a tenth of a second."""


def bring_up(
    schema: Schema, folder: Path, source: Source, namespace: str, made: str, mark: Callable[[int], str]
) -> int:
    """Adds what the log has more than the index, which is made anew when it cannot be used; the position reached.

    A commit holds whole positions and says how far it has read: the process may be killed at any time.
    Only for the one who may write the folder.
    """
    reader = Reader(schema, folder, made, mark)
    reader.refresh()
    state = reader.state or State(0, "", Totals(0, {}), made)
    waiting = batches(source.rows(namespace, state.position), BATCH)
    first = next(waiting, None)
    if first is None:
        return state.position
    if reader.state is None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    index = schema.open(folder)
    writer = index.writer(HEAP, 1)
    files.sweep(folder)
    writer.garbage_collect_files()  # what a killed writer left may have the names of files to come
    for batch in chain((first,), waiting):
        last = batch[-1].position
        state = replace(state, position=last, mark=mark(last))
        state = _commit(schema, index, writer, state, batch)
    writer.wait_merging_threads()
    return state.position


def _commit(schema: Schema, index: tantivy.Index, writer: tantivy.IndexWriter, state: State, batch: list[Row]) -> State:
    searcher = index.searcher()
    last = {row.id: row for row in batch}
    gone: list[Document] = []
    new: list[Document] = []
    for row in sorted(last.values(), key=lambda row: row.position):
        if searcher.doc_freq("id", row.id):
            gone += schema.documents(searcher, [row.id])
            writer.delete_documents_by_term("id", row.id)
        for document in documents(row, schema.names):
            schema.put(writer, document)
            new.append(document)
    changed = state.totals - totals(gone, schema.names) + totals(new, schema.names)
    state = replace(state, totals=changed)
    schema.put_state(writer, state)
    writer.commit()
    index.reload()
    return state
