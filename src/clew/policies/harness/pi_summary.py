"""Pi's summaries: the text the model is given, the calls it gets, and what becomes of its answers."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from clew.errors import BadReply, RefusedReply, TruncatedReply
from clew.messages import Message, Text, Thinking, Usage, system, user
from clew.models.base import ModelCall, Reply
from clew.models.steps import Steps
from clew.policies.fences import fenced
from clew.policies.harness.pi_cut import Files, Preparation, arguments
from clew.policies.harness.pi_entries import PiEntry, Version
from clew.policies.prompt import prompt
from clew.tokens.javascript import stringify

RESULT_CHARS = 2_000
"""Of a tool result the summariser sees so many characters (UTF-16 units)."""

HISTORY_SHARE, PREFIX_SHARE = 0.8, 0.5
"""Reply limits of 0.73.1 as shares of the reserve; 1.6 sets none."""


NO_HISTORY = "No prior history."
SPLIT = "\n\n---\n\n**Turn Context (split turn):**\n\n"
"""Upstream's literals around the summary of a split turn."""

COMPACTION_LEAD = "What was said before this point has been replaced by a summary:"
BRANCH_LEAD = "The conversation came back here from another branch. What happened there:"


class Limits(Struct, frozen=True):
    """The longest replies asked for, in tokens (None: the model's own limit)."""

    history: int | None = None
    prefix: int | None = None

    @classmethod
    def of(cls, reserve: int, version: Version) -> Limits:
        """Upstream's limits with a reserve of so many tokens."""
        return cls(int(reserve * HISTORY_SHARE), int(reserve * PREFIX_SHARE)) if version == "0.73.1" else cls()


def compaction_text(summary: str) -> str:
    """A compaction's summary as the model reads it."""
    return f"{COMPACTION_LEAD}\n\n{fenced('summary', summary)}"


def branch_text(summary: str) -> str:
    """A branch's summary as the model reads it."""
    return f"{BRANCH_LEAD}\n\n{fenced('summary', summary)}"


class Summary(Struct, frozen=True):
    """A finished summary, file lists appended, and what it took."""

    text: str
    files: Files
    calls: int = 0
    usage: Usage = Usage()

    @property
    def details(self) -> dict[str, list[str]]:
        """The file lists, as the next compaction looks for them."""
        return {"readFiles": self.files.read_files, "modifiedFiles": self.files.modified_files}


def summarise(prepared: Preparation, limits: Limits, version: Version, focus: str = "") -> Steps[Summary]:
    """Summarises what a preparation replaces: one call, or two when a turn is split.

    `focus` is what the user asked to keep in view. Raises the `ModelError` of a reply that cannot be used.

    Defects of 0.73.1, reproduced: without history before a split turn the previous summary is lost;
    `focus` does not reach the summary of the turn's beginning; an empty answer and one cut off by the
    length limit are taken. (Upstream makes its two calls at once; here one follows the other.)
    """
    old = version == "0.73.1"
    calls, usage = 0, Usage()
    text = NO_HISTORY if old or prepared.previous is None else prepared.previous
    if prepared.history or not (prepared.splits and prepared.prefix):
        kind = "update" if prepared.previous else "initial"
        call = request(kind, prepared.history, version, limits.history, prepared.previous or "", focus)
        reply: Reply = yield call
        text, calls, usage = answer(reply, version), 1, reply.usage
    if prepared.splits and prepared.prefix:
        reply = yield request("turn_prefix", prepared.prefix, version, limits.prefix, "", "" if old else focus)
        text, calls, usage = text + SPLIT + answer(reply, version), calls + 1, usage + reply.usage
    return Summary(text + file_tags(prepared.files), prepared.files, calls, usage)


PROMPTS = {
    "initial": "pi_history",
    "update": "pi_update",
    "turn_prefix": "pi_prefix",
    "branch": "pi_branch",
}


def request(
    kind: str,
    entries: Sequence[PiEntry],
    version: Version,
    max_output: int | None,
    previous: str = "",
    focus: str = "",
    instructions: str = "",
) -> ModelCall:
    """The call for one summary: the conversation as text, the previous summary, the instructions.

    `kind` is a key of `PROMPTS`; `instructions`, when given, replace the prompt of that kind.
    """
    said = tuple(e.message for e in entries if e.message is not None)
    text = fenced("conversation", serialised(said, version)) + "\n\n"
    if previous:
        text += fenced("previous-summary", previous) + "\n\n"
    text += instructions or prompt("clew.policies.harness", PROMPTS[kind])
    if focus and not instructions:
        text += f"\n\nAdditional focus: {focus}"
    return ModelCall(
        (system(prompt("clew.policies.harness", "pi_system")), user(text)),
        max_output=max_output,
        purpose="summary",
        source=said,
        previous=previous,
        focus=focus,
        meta={"kind": kind},
    )


def answer(reply: Reply, version: Version) -> str:
    """The text of a summary reply. Raises for an error; in 1.6 also when it is cut off or calls a tool."""
    reason = reply.finish_reason
    if reason == "error":
        raise BadReply("the provider ended the summary with an error", raw=reply.text)
    if reason == "refusal":
        raise RefusedReply("the model refused to summarise", raw=reply.text)
    if version != "0.73.1" and reason == "length":
        raise TruncatedReply("the summary was cut off by the output limit", raw=reply.text)
    if version != "0.73.1" and reply.message.calls:
        raise BadReply("the summary reply calls a tool", raw=reply.text)
    return reply.text


def file_tags(files: Files) -> str:
    """The file lists as they stand at the end of a summary, and so in the next one's `previous`."""
    lists = (("read-files", files.read_files), ("modified-files", files.modified_files))
    return "".join(f"\n\n<{tag}>\n" + "\n".join(paths) + f"\n</{tag}>" for tag, paths in lists if paths)


def serialised(messages: Sequence[Message], version: Version) -> str:
    """A conversation as the text that is summarised: labelled blocks, images left out, results cut.

    1.6 leaves thinking out.
    """
    blocks: list[str] = []
    for message in messages:
        if message.role == "user":
            said = "".join(p.text for p in message.parts if isinstance(p, Text))
            blocks += [f"[User]: {said}"] if said else []
        elif message.role == "assistant":
            blocks += _assistant(message, version)
        elif message.role == "tool":
            for result in message.results:
                said = "".join(p.text for p in result.content if isinstance(p, Text))
                blocks += [f"[Tool result]: {_head(said)}"] if said else []
    return "\n\n".join(blocks)


def _assistant(message: Message, version: Version) -> list[str]:
    thinking = [p.text for p in message.parts if isinstance(p, Thinking)]
    texts = [p.text for p in message.parts if isinstance(p, Text)]
    calls = [f"{c.name}({_listed(c.arguments)})" for c in message.calls]
    blocks = []
    if thinking and version == "0.73.1":
        blocks.append("[Assistant thinking]: " + "\n".join(thinking))
    if texts:
        blocks.append("[Assistant]: " + "\n".join(texts))
    if calls:
        blocks.append("[Assistant tool calls]: " + "; ".join(calls))
    return blocks


def _listed(text: str) -> str:
    given = arguments(text)
    return text if given is None else ", ".join(f"{key}={stringify(value)}" for key, value in given.items())


def _head(text: str) -> str:
    """The text, or its head and how many characters (UTF-16 units) were left out. No character is split."""
    units = text.encode("utf-16-le", "surrogatepass")
    length = len(units) // 2
    if length <= RESULT_CHARS:
        return text
    head = units[: RESULT_CHARS * 2].decode("utf-16-le", "ignore")
    return f"{head}\n\n[... {length - RESULT_CHARS} more characters truncated]"
