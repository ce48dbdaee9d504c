"""OpenClaw: the search of its memory, the texts it indexes, what it captures and when it recalls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from golden import openclaw_search, openclaw_text

Json = dict[str, Any]
_CALLS = {**openclaw_search.CALLS, **openclaw_text.CALLS}


def answered(case: Json) -> Json:
    """What each call of a case answers."""
    return {"results": [_rounded(_CALLS[call["fn"]](call["args"])) for call in case["input"]["calls"]]}


def expected(case: Json) -> Json:
    """What upstream answered, without the last digits of its figures: V8 and C round `exp` differently."""
    return {"results": _rounded(case["output"]["results"])}


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.13g}")
    if isinstance(value, list):
        return [_rounded(one) for one in value]
    return {name: _rounded(one) for name, one in value.items()} if isinstance(value, dict) else value


COMPONENTS: dict[str, Callable[[Json], Json]] = dict.fromkeys(
    (
        "buildSessionEntry (session transcript to indexable text)",
        "chunkMarkdown",
        "hasRecallIntent / resolveRecallEscalationDecision",
        "memory-lancedb shouldCapture / detectCategory",
        "mergeHybridResults",
        "mmrRerank",
        "selectHybridSearchResults",
        "temporal decay",
    ),
    answered,
)
