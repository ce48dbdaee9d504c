"""OpenClaw 2026.9.6's memory search, from the blocks of Clew's recall: merging, decay, selection, diversity."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from clew.memory.ranking import decay, diverse, overlap

Json = dict[str, Any]

_DATED = re.compile(r"(?:^|/)memory/(?:.*/)?(\d{4})-(\d{2})-(\d{2})(?:-[^/]*)?\.md$")
_EVERGREEN = re.compile(r"^(?:MEMORY|memory|USER)\.md$")
_MEDIA = re.compile(r"\.(?:png|jpe?g|gif|webp|heic|heif|bmp|mp3|wav|ogg|opus|m4a|aac|flac)$", re.IGNORECASE)
_TERMS = re.compile(r"[a-z0-9_]+")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\u1100-\u11ff]")
_DAY = 86_400_000


def date_of(path: str) -> tuple[float | None, bool]:
    """When a memory file is from (milliseconds since 1970; None: unknown), and whether it never ages."""
    path = path.replace("\\", "/").removeprefix("./")
    found = _DATED.search(path)
    if found:
        try:
            return datetime(*map(int, found.groups()), tzinfo=UTC).timestamp() * 1000, False
        except ValueError:
            return None, False
    return None, bool(_EVERGREEN.match(path)) or path.startswith("memory/")


def tokens(text: str) -> frozenset[str]:
    """What two texts are compared by."""
    low = text.lower()
    found = set(_TERMS.findall(low))
    found.update(c for c in low if _CJK.match(c))
    found.update(a + b for a, b in pairwise(low) if _CJK.match(a) and _CJK.match(b))
    return frozenset(found)


def mmr(items: Sequence[Json], config: Mapping[str, Any]) -> list[Json]:
    """The items, good ones first, and each unlike those before it."""
    if not config.get("enabled"):
        return list(items)
    held = [tokens(item["snippet"]) for item in items]

    def alike(one: int, other: int) -> float:
        if not held[one] and not held[other]:
            return float(items[one]["snippet"] == items[other]["snippet"])
        return overlap(held[one], held[other])

    scores = {n: float(item["score"]) for n, item in enumerate(items)}
    return [items[n] for n in diverse(scores, alike, config.get("lambda", 0.7), len(items))]


def merge(given: Json) -> list[Json]:
    """What the two searches found, as one list."""
    found: dict[str, Json] = {}
    for hit in given["vector"]:
        found[hit["id"]] = {**_shown(hit), "vectorScore": hit["vectorScore"], "textScore": 0}
    lexical: dict[str, Json] = {}
    for rank, hit in enumerate(given["keyword"]):
        one = found.setdefault(hit["id"], {**_shown(hit), "vectorScore": 0, "textScore": 0})
        one["textScore"] = hit["textScore"]
        one["snippet"] = hit["snippet"] or one["snippet"]
        for name in ("importance", "projectKey"):
            if one.get(name) is None and name in one and hit.get(name) is None:
                del one[name]
            elif one.get(name) is None and name in hit:
                one[name] = hit[name]
        lexical[hit["id"]] = {**hit, "rank": rank}
    tiers: dict[int, list[Json]] = {}
    for id, one in found.items():
        word = lexical.get(id)
        exact = int((word or {}).get("exactPathSpecificity") or 0)
        factor = _project(one.get("projectKey"), given.get("activeProjectKeys") or [])
        one["score"] = factor if exact else _score(one, word, given) * _age(one, given) * _weight(one) * factor
        one["_order"] = (word["rank"] if word else len(lexical), one["path"], one["startLine"], one["endLine"])
        tiers.setdefault(exact, []).append(one)
    ranked = []
    for _, some in sorted(tiers.items(), reverse=True):
        some.sort(key=lambda one: (-one["score"], one["_order"]))
        ranked += mmr(some, given.get("mmr") or {})
    for one in ranked:
        del one["_order"]
    return ranked


def _shown(hit: Json) -> Json:
    names = ("path", "startLine", "endLine", "snippet", "source", "importance", "projectKey")
    return {name: hit[name] for name in names if name in hit}


def _score(one: Json, word: Json | None, given: Json) -> float:
    if word is None and _MEDIA.search(one["path"]):
        return float(one["vectorScore"])
    text = 0.0
    if word is not None and word.get("hasBodyMatch") is False:
        text = word.get("pathScore") or 0.0
    elif word is not None:
        text = word.get("rankingScore", word["textScore"])
    return float(given["vectorWeight"] * one["vectorScore"] + given["textWeight"] * text)


def _age(one: Json, given: Json) -> float:
    config = given.get("temporalDecay") or {}
    written, evergreen = date_of(one["path"])
    if written is None and not evergreen:
        written = (given.get("sessionSourceMtimes") or {}).get(one["path"])
    if not config.get("enabled") or written is None:
        return 1.0
    return decay((given["nowMs"] - written) / _DAY, config.get("halfLifeDays", 30))


def _weight(one: Json) -> float:
    importance = one.get("importance")
    return 1.0 if importance is None else 0.75 + 0.05 * min(max(int(importance), 1), 10)


def _project(keys: str | None, active: Sequence[str]) -> float:
    named = [key.strip() for key in (keys or "").split(";") if key.strip()]
    if not named or not active:
        return 1.0
    return 1.15 if all(key in active for key in named) else 0.9


def select(given: Json) -> list[Json]:
    """The hits that are good enough; free places go to what only words found."""
    merged, most = given["merged"], given["maxResults"]
    good = [one for one in merged if one["score"] >= given["minScore"]]
    words = {_place(one) for one in given["keyword"]}
    if not good:
        return [one for one in merged if _place(one) in words][:most]
    taken = {_place(one) for one in good}
    more = [one for one in merged if _place(one) in words - taken and not one["vectorScore"]]
    return [*good, *more][:most]


def _place(one: Json) -> tuple[Any, ...]:
    return one["source"], one["path"], one["startLine"], one["endLine"]


Call = Callable[[Json], Any]
CALLS: Mapping[str, Call] = {
    "merge": merge,
    "mmr": lambda given: [one["id"] for one in mmr(given["items"], given["config"])],
    "select": lambda given: [f"{one['path']}#{one['startLine']}" for one in select(given)],
    "decay": lambda given: [one["score"] * decay(one["ageInDays"], one["halfLifeDays"]) for one in given["cases"]],
    "datePath": lambda given: [_dated(path) for path in given["paths"]],
}


def _dated(path: str) -> Json:
    written, evergreen = date_of(path)
    shown = None
    if written is not None:
        shown = datetime.fromtimestamp(written / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    return {"date": shown, "evergreen": evergreen}
