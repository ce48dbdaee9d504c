"""QitOS 0.3.0: the memories with `faithful=True`, replayed operation by operation."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from clew.memory import MarkdownFileMemory, Memory, MemoryRecord, SummaryMemory, VectorMemory, WindowMemory
from clew.memory.raw import SummaryRaw, VectorRaw

Json = dict[str, Any]


def window_memory(case: Json) -> Json:
    return _replayed(case, lambda: WindowMemory(**case["config"], faithful=True))


def summary_memory(case: Json) -> Json:
    return _replayed(case, lambda: SummaryMemory(**case["config"], faithful=True))


def vector_memory(case: Json) -> Json:
    return _replayed(case, lambda: VectorMemory(**case["config"], faithful=True))


def markdown_file_memory(case: Json) -> Json:
    settings = dict(case["config"])
    now = datetime.fromisoformat(settings.pop("clock").removeprefix("frozen at ")).timestamp()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "notes" / "memory.md"
        return _replayed(case, lambda: MarkdownFileMemory(path, **settings, faithful=True, clock=lambda: now))


COMPONENTS = {
    "WindowMemory": window_memory,
    "SummaryMemory": summary_memory,
    "VectorMemory": vector_memory,
    "MarkdownFileMemory": markdown_file_memory,
}


def _replayed(case: Json, opened: Callable[[], Memory]) -> Json:
    memory, results = opened(), []
    for op in case["input"]["ops"]:
        if op["op"] == "reopen":
            memory = opened()
        results.append(_done(op, memory, case["input"]["records"]))
    return {"results": results}


def _done(op: Json, memory: Any, records: list[Json]) -> Json:
    out: Json = {"op": op["op"]}
    match op["op"]:
        case "append":
            for i in op["indices"]:
                memory.append(MemoryRecord(**records[i]))
            out["stored"] = _stored(memory)
        case "retrieve":
            out["records"] = [
                {"role": r.role, "content": r.content, "step_id": r.step_id, "metadata": r.metadata}
                for r in memory.retrieve(op.get("query"))
            ]
        case "summarize":
            out["text"] = memory.summarize(**{k: op[k] for k in ("max_items",) if k in op})
        case "evict":
            out |= {"removed": memory.evict(), "stored": _stored(memory)}
        case "reset":
            memory.reset()
            out["stored"] = _stored(memory)
        case "reopen":
            out["stored"] = _stored(memory)
        case "summaries":
            out["summaries"] = memory.summaries
        case "vectors":
            assert isinstance(memory._raw, VectorRaw)
            out["vectors"] = [[round(x, 6) for x in vector] for vector in memory._raw.vectors]
        case "file":
            out["text"] = memory.path.read_text("utf-8")
        case "stored":
            raw: SummaryRaw = memory._raw
            out["contents"] = [str(r.content)[:24] for r in raw.records]
        case unknown:
            raise ValueError(f"no operation {unknown!r}")
    return out


def _stored(memory: Any) -> int:
    return len(memory._raw.records)
