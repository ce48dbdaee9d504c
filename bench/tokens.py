"""Token counters: how far they are from o200k_base and cl100k_base, and how fast they count.

    python bench/tokens.py [--data FOLDER] [--transcripts FOLDER] [--rounds 3]

Texts come from this repository's tests, from the standard library, and, when they are there, from two
folders: data sets of conversations (`--data`, or `$CLEW_DATA`, or `../shared/data`) and session files
(`--transcripts`, or `$CLEW_TRANSCRIPTS`, or `../shared/transcripts`). Nothing is downloaded.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from clew.tokens import Exact, Heuristic
from clew.tokens.upstream import Codex, Gemini, Pi
from measure.table import cpu_seconds, table

ROOT = Path(__file__).resolve().parents[1]
SIZES = (300, 3_000)
"""Characters of a sample: about those of a message."""
MOST = 200
"""Samples of one kind."""

Count = Callable[[str], int]
ESTIMATES: dict[str, Count] = {
    "heuristic": Heuristic().text,
    "chars/4 (Pi)": Pi().text,
    "bytes/4 (Codex)": Codex().text,
    "weighted (Gemini)": Gemini().text,
}
EXACT: dict[str, Count] = {"o200k": Exact("o200k_base").text, "cl100k": Exact("cl100k_base").text}


def samples(data: Path, transcripts: Path) -> dict[str, list[str]]:
    """Texts of message size by kind."""
    chance = random.Random(11)
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted((ROOT / "tests" / "tokens" / "texts").glob("*.txt")):
        found[path.stem] += path.read_text(encoding="utf-8").split("\n\n")
    library = Path(os.__file__).parent
    for path in chance.sample(sorted(library.glob("*.py")), 60):
        found["code"].append(_piece(path.read_text(encoding="utf-8", errors="replace"), chance))
    for path in [*sorted(data.rglob("*.json")), *sorted(data.rglob("*.jsonl"))]:
        texts = "\n".join(t for t in _strings(_documents(path)) if len(t) > 20)
        kind = _kind(texts)
        found[kind] += [_piece(texts, chance) for _ in range(min(20, len(texts) // 1_000))]
    for path in sorted(transcripts.rglob("*.json*")):
        for text in _strings(_documents(path)):
            if len(text) >= SIZES[0] and any(c.isspace() for c in text):
                kind = _kind(text)
                kind = "session text" if kind == "english" else kind
                found["json" if text[0] in "[{" else kind].append(_piece(text, chance))
    return {kind: _chosen(texts, chance) for kind, texts in sorted(found.items())}


def _chosen(texts: list[str], chance: random.Random) -> list[str]:
    """Some of the texts; none that is mostly blank."""
    written = [t for t in texts if len("".join(t.split())) * 2 > len(t)]
    return chance.sample(written, min(MOST, len(written)))


def _piece(text: str, chance: random.Random) -> str:
    size = chance.randint(*SIZES)
    start = chance.randint(0, max(0, len(text) - size))
    return text[start : start + size]


def _kind(text: str) -> str:
    east_asian = sum(c > "\u2e80" for c in text[:20_000])
    if east_asian * 4 < len(text[:20_000]):
        return "english"
    if any("\u3040" <= c <= "\u30ff" for c in text[:2_000]):
        return "japanese"
    return "korean" if any("\uac00" <= c <= "\ud7a3" for c in text[:2_000]) else "chinese"


def _documents(path: Path) -> Iterator[Any]:
    text = path.read_text(encoding="utf-8", errors="replace")
    for part in text.splitlines() if path.suffix == ".jsonl" else [text]:
        try:
            yield json.loads(part)
        except ValueError:
            continue


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _strings(item)
    elif not isinstance(value, int | float | bool | None):
        for item in value:
            yield from _strings(item)


def errors(texts: list[str], exact: Count) -> list[str]:
    """Mean error and bias of every estimate, in percent."""
    cells = []
    true = [exact(t) for t in texts]
    for estimate in ESTIMATES.values():
        ratios = [estimate(t) / n - 1 for t, n in zip(texts, true, strict=True) if n]
        cells.append(f"{sum(map(abs, ratios)) / len(ratios):.1%} ({sum(ratios) / len(ratios):+.0%})")
    return cells


def speeds(rounds: int) -> Iterator[list[str]]:
    """Megabytes of UTF-8 per second of every counter, and how many times that of exact o200k counting."""
    library = Path(os.__file__).parent
    source = "".join(p.read_text(encoding="utf-8", errors="replace") for p in sorted(library.glob("*.py")))
    ascii_text = source.encode("ascii", "ignore").decode()[:2_000_000]
    chinese = (ROOT / "tests" / "tokens" / "texts" / "chinese.txt").read_text(encoding="utf-8") * 300
    small = [ascii_text[i : i + 1_000] for i in range(0, len(ascii_text), 1_000)]
    counters = {**ESTIMATES, **EXACT, **_tiktoken()}
    base = 0.0
    for name, count in sorted(counters.items(), key=lambda c: c[0] != "o200k"):
        loads = ([ascii_text], small, [chinese])
        each = [_rate(count, texts, rounds) for texts in loads]
        base = base or each[0]
        yield [name, *map(_figure, each), f"{_figure(each[0] / base)} ×"]


def _figure(value: float) -> str:
    return f"{value:.1f}" if value < 1_000 else "> 1,000"


def _rate(count: Count, texts: list[str], rounds: int) -> float:
    """MB/s."""
    size = sum(len(t.encode()) for t in texts)
    repeat = 1 + 2_000_000 // size
    taken = cpu_seconds(lambda: [count(t) for t in texts * repeat], rounds=rounds)
    return size * repeat / max(taken, 1e-6) / 1e6


def _tiktoken() -> dict[str, Count]:
    """The reference implementation, if its vocabulary is here (LiteLLM carries one)."""
    litellm = find_spec("litellm")
    if find_spec("tiktoken") is None or litellm is None or litellm.origin is None:
        return {}
    folder = Path(litellm.origin).parent / "litellm_core_utils" / "tokenizers"
    os.environ.setdefault("TIKTOKEN_CACHE_DIR", str(folder))
    import tiktoken

    encoding = tiktoken.get_encoding("o200k_base")
    return {"o200k (tiktoken)": lambda text: len(encoding.encode_ordinary(text))}


def main() -> None:
    shared = ROOT.parent / "shared"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("CLEW_DATA") or shared / "data"))
    transcripts = Path(os.environ.get("CLEW_TRANSCRIPTS") or shared / "transcripts")
    parser.add_argument("--transcripts", type=Path, default=transcripts)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    texts = samples(given.data, given.transcripts)
    for name, exact in EXACT.items():
        print(f"\nMean error (and bias) against {name}, texts of {SIZES[0]:,} to {SIZES[1]:,} characters\n")
        rows = [[kind, len(some), *errors(some, exact)] for kind, some in texts.items()]
        print(table(["kind", "texts", *ESTIMATES], rows))
    print(f"\nSpeed in MB/s (median of {given.rounds}), Python {sys.version.split()[0]}\n")
    print(table(["counter", "2 MB of source", "1 kB each", "Chinese", "against o200k"], speeds(given.rounds)))


if __name__ == "__main__":
    main()
