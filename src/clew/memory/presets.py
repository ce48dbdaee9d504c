"""Memories by use. Each takes the `log` it is kept in (None: one in memory, gone with the process)."""

from __future__ import annotations

from collections.abc import Callable

from clew.history.models import Function
from clew.memory.embedding import Embedder, Vector
from clew.memory.entity import EntityMemory
from clew.memory.hybrid import HybridMemory
from clew.memory.log import RecordLog
from clew.memory.recall import Recall
from clew.memory.recalling import RecallMemory
from clew.memory.summary import SummaryMemory
from clew.memory.window import WindowMemory
from clew.models.base import Model


def customer_service(llm: Model | Function | None = None, *, log: RecordLog | None = None) -> HybridMemory:
    """For long dialogues about one matter: facts, a summary, and the last 10 records.

    Call `extract` and `evict` between turns. What the summary leaves out is only found in the log.
    """
    log = log or RecordLog()
    return HybridMemory(EntityMemory(llm, log=log), SummaryMemory(10, llm=llm, log=log))


def personal_assistant(llm: Model | Function | None = None, *, log: RecordLog | None = None) -> HybridMemory:
    """For many short dialogues with one person: facts, and the last 6 records.

    What was said before those is known only as far as it became a fact. Call `extract` between turns.
    """
    log = log or RecordLog()
    return HybridMemory(EntityMemory(llm, log=log), WindowMemory(6, log=log))


def knowledge_base(
    embedder: Embedder | Callable[[str], Vector] | None = None, *, log: RecordLog | None = None
) -> HybridMemory:
    """For questions about much that was said or read: what answers the question best, and the last 6 records.

    Without an `embedder` it is found by its words alone.
    """
    log = log or RecordLog()
    return HybridMemory(RecallMemory(log, Recall(log, embedder)), WindowMemory(6, log=log))
