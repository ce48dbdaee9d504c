"""How much of a session an extractive summary keeps, against truncation to the same size.

    python bench/extractive.py [TRANSCRIPT…]

Every session is summarised to 1,500 tokens from its first 80 %, and compared with the last 1,500
tokens of the same text, and with the first and last 750. Counted is the share of facts that a text
still holds:

- rules: sentences of the user with never, must, don't, always, only (and their like in Chinese, Japanese
  and Korean), word for word;
- files: the files that edit and write tools changed, by their own name and their folder's;
- failures: commands whose result was an error or an exit code above 0, by their first 40 characters;
- values: numbers of two digits up, addresses and versions that the user wrote.

Without arguments: the example session, and the transcripts in `$CLEW_TRANSCRIPTS` or `../shared/transcripts`.
"""

from __future__ import annotations

import os
import re
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from clew.errors import ClewError
from clew.messages import Message, Text
from clew.models.extractive import extract
from clew.tokens import Heuristic
from clew.transcripts import recording
from measure.table import table

ROOT = Path(__file__).parent.parent
LIMIT = 1_500
COUNTER = Heuristic()

RULE = re.compile(
    r"\b(?:never|must|don't|do not|always|only)\b"
    r"|不要|必须|禁止|不能|ないで|必ず|絶対|마세요|반드시|절대|안 됩니다",
    re.I,
)
VALUE = re.compile(r"https?://[^\s)>\"']+|\bv?\d+(?:\.\d+)+\b|\b\d{2,}\b")
CHANGES = re.compile(r"^(?:edit|write|multiedit|create|str_replace\w*|notebookedit)", re.I)
EXIT = re.compile(r"(?:exit code|exited with code|exit_code\"?)[: ]*([1-9]\d*)", re.I)


def plain(text: str) -> str:
    """A text without the marks of quoting and line breaks."""
    return " ".join(text.replace("\n  > ", " ").replace("\n> ", " ").split())


def as_text(messages: Sequence[Message]) -> str:
    """The conversation as truncation sees it."""
    out = []
    for message in messages:
        out.append(f"{message.role}: {message.text}")
        out += [f"call {c.name} {c.arguments}" for c in message.calls]
        out += [f"result: {r.text}" for r in message.results]
    return "\n".join(out)


def cut(text: str, tokens: int, *, tail: bool) -> str:
    """The last or first so many tokens of a text."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if COUNTER.text(text[-middle:] if tail else text[:middle]) <= tokens:
            low = middle
        else:
            high = middle - 1
    return (text[-low:] if tail else text[:low]) if low else ""


def human(messages: Sequence[Message]) -> Iterator[str]:
    """What people wrote: user messages that no harness made."""
    for message in messages:
        text = "\n".join(p.text for p in message.parts if isinstance(p, Text))
        if message.role == "user" and text.strip() and not re.match(r"\s*<|Caveat:|\[upstream", text):
            yield text


def facts(messages: Sequence[Message]) -> dict[str, set[str]]:
    """What a good summary would keep, by kind."""
    rules, values, files, failures = set(), set(), set(), set()
    for text in human(messages):
        for line in text.split("\n"):
            for sentence in re.split(r"(?<=[.!?])\s+|(?<=[。！？])", line):
                if RULE.search(sentence) and 8 < len(sentence) < 300 and not sentence.rstrip().endswith(("?", "？")):
                    rules.add(plain(re.sub(r"^\s*(?:[-*•]|\d+\.)\s+", "", sentence)))
        values |= set(VALUE.findall(text))
    commands: dict[str, str] = {}
    for message in messages:
        for call in message.calls:
            try:
                given = msgspec.json.decode(call.arguments)
            except msgspec.DecodeError:
                continue
            path = next((given[k] for k in ("file_path", "path", "filePath") if isinstance(given.get(k), str)), "")
            if path and CHANGES.match(call.name):
                files.add("/".join(path.split("/")[-2:]))
            if isinstance(given.get("command"), str):
                command = re.sub(r"^cd \S+ && ", "", given["command"].strip())
                commands[call.id] = command.split("\n")[0][:40].strip()
        for result in message.results:
            exit_code = EXIT.search(result.text[:300] + result.text[-300:])
            if result.call_id in commands and (result.is_error or exit_code):
                failures.add(commands[result.call_id])
    return {"rules": rules, "files": files, "failures": failures, "values": values}


def kept(text: str, wanted: set[str], *, files: bool = False) -> float | None:
    """The share of wanted facts in a text; a file is there when its name and its folder's name are."""
    flat = plain(text)
    if not wanted:
        return None
    return sum(all(part in flat for part in w.split("/")) if files else w in flat for w in wanted) / len(wanted)


def texts(messages: Sequence[Message]) -> dict[str, str]:
    """The summary and its rivals."""
    whole = as_text(messages)
    half = LIMIT // 2
    return {
        "extractive": extract(messages, LIMIT, COUNTER),
        "last N": cut(whole, LIMIT, tail=True),
        "first+last": cut(whole, half, tail=False) + "\n" + cut(whole, half, tail=True),
    }


def sessions(given: list[str]) -> Iterator[tuple[str, list[Message]]]:
    """The conversations to measure, first 80 %, those of at least 20 messages."""
    shared = Path(os.environ.get("CLEW_TRANSCRIPTS", ROOT.parent / "shared" / "transcripts"))
    paths = [Path(g) for g in given] or [ROOT / "examples" / "session.jsonl", *sorted(shared.rglob("*.json*"))]
    for path in paths:
        try:
            messages = recording(path).messages
        except ClewError:
            continue
        if len(messages) >= 20:
            yield path.name, list(messages[: len(messages) * 8 // 10])


def share(value: float | None, wanted: int) -> str:
    return "" if value is None else f"{value:.0%} of {wanted}"


def main() -> None:
    kinds = ("rules", "files", "failures", "values")
    rows: list[list[str]] = []
    scores: dict[str, dict[str, list[float]]] = {}
    for name, messages in sessions(sys.argv[1:]):
        wanted = facts(messages)
        for how, text in texts(messages).items():
            cells = []
            for kind in kinds:
                value = kept(text, wanted[kind], files=kind == "files")
                cells.append(share(value, len(wanted[kind])))
                if value is not None:
                    scores.setdefault(how, {}).setdefault(kind, []).append(value)
            rows.append([name[:33] if how == "extractive" else "", how, *cells])
    for how, by_kind in scores.items():
        means = [f"{statistics.mean(by_kind[k]):.0%}" if k in by_kind else "" for k in kinds]
        rows.append(["mean" if how == "extractive" else "", how, *means])
    print(table(["session", "", *kinds], rows))
    name, messages = next(sessions(sys.argv[1:]))
    many = messages * (10_000 // len(messages) + 1)
    start = time.perf_counter()
    extract(many, LIMIT, COUNTER)
    print(f"\n{len(many):,} messages ({name}, repeated) in {time.perf_counter() - start:.2f} s")


if __name__ == "__main__":
    main()
