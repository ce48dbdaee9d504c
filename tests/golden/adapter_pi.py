"""Pi (`pi-coding-agent`): a case is compared for every version it has results of.

Upstream's lead-in sentences are placeholders in the cases; ours are put under the same names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from itertools import count
from typing import Any

from clew.models import Offline, run
from clew.policies import triggers
from clew.policies.harness import pi_branches, pi_cut, pi_entries, pi_log, pi_summary
from clew.policies.harness.pi_entries import PiEntry, Version
from clew.sessions.view import View
from golden.pi_agent import agent
from golden.pi_sessions import Numbered, PiCounter, managed

Json = dict[str, Any]


def expected(case: Json) -> Json:
    """The outputs by version; an output that says "same" is the first version's."""
    outputs = {_version(case["upstream"]): _events(case["output"])}
    for upstream, output in case.get("output_other_versions", {}).items():
        outputs[_version(upstream)] = _resolved(output, case["output"])
    return outputs


def _events(output: Json) -> Json:
    if "events" not in output:
        return output
    events = [{**e, "error": e["error"] is not None} if "error" in e else e for e in output["events"]]
    return {**output, "events": events}


def _version(upstream: str) -> str:
    return "0.73.1" if upstream.endswith("==0.73.1") else "1.6"


def _resolved(output: Any, first: Json) -> Any:
    if output == "same":
        return first
    if "results" in output:
        pairs = zip(output["results"], first["results"], strict=True)
        return {**output, "results": [b if a == "same" else a for a, b in pairs]}
    return output


def of_calls(case: Json) -> Json:
    """The results of the case's calls of pure functions."""
    return {
        version: {"results": [_placeholders(_called(call, case["input"]["fixtures"], version)) for call in calls]}
        for version in expected(case)
        for calls in [case["input"]["calls"]]
    }


def of_steps(case: Json) -> Json:
    """What becomes of the case's prompts. Of an error in an event only that there is one is compared."""
    return {_version(case["upstream"]): agent(case)}


def _called(call: Json, fixtures: Json, version: Version) -> Any:
    args = {
        k: fixtures[v["$fixture"]] if isinstance(v, dict) and "$fixture" in v else v for k, v in call["args"].items()
    }
    return CALLS[call["fn"]](args, version)


def _placeholders(value: Any) -> Any:
    if isinstance(value, str):
        for ours, name in (
            (f"{pi_summary.COMPACTION_LEAD}\n\n<summary>\n", "{COMPACTION_PREFIX}"),
            (f"{pi_summary.BRANCH_LEAD}\n\n<summary>\n", "{BRANCH_PREFIX}"),
            (pi_branches.PREAMBLE, "{BRANCH_PREAMBLE}"),
        ):
            value = value.replace(ours, name)
        return value
    if isinstance(value, Mapping):
        return {k: _placeholders(v) for k, v in value.items()}
    return [_placeholders(v) for v in value] if isinstance(value, list) else value


# What of a context


def _messages(entries: Sequence[PiEntry]) -> list[Json]:
    return [_message(e) for e in entries]


def _message(entry: PiEntry) -> Json:
    if entry.kind == "message":
        return {"$message_of": entry.id}
    shown = pi_log.shown_message(entry.source) or {}
    return {**shown, "timestamp": round(datetime.fromisoformat(entry.source["timestamp"]).timestamp() * 1000)}


def context(args: Json, version: Version) -> Json:
    leaf = {"leaf": args["leafId"]} if "leafId" in args else {}
    branch = pi_entries.path(pi_log.read(args["entries"], version), **leaf)
    level, model = pi_log.settings(branch)
    return {"messages": _messages(pi_entries.context(branch, version)), "thinkingLevel": level, "model": model}


def context_tokens(args: Json, version: Version) -> Json:
    fill = pi_entries.fill(pi_log.read_messages(args["messages"], version), version)
    return {
        "tokens": fill.tokens,
        "usageTokens": fill.reported,
        "trailingTokens": fill.trailing,
        "lastUsageIndex": fill.at,
    }


def should_compact(args: Json, version: Version) -> bool:
    settings = args["settings"]
    view = View((), PiCounter(version), args["tokens"])
    limit = triggers.reserve(args["window"], settings["reserveTokens"])
    return settings["enabled"] and triggers.above(view, limit) is not None


def estimates(args: Json, version: Version) -> list[int]:
    return [pi_log.estimate(m, version) for m in args["messages"]]


def serialised(args: Json, version: Version) -> str:
    entries = pi_log.read_messages(args["messages"], version)
    return pi_summary.serialised([e.message for e in entries if e.message], version)


# Compaction


def cut(args: Json, version: Version) -> Json:
    entries = pi_log.read(args["entries"], version)
    found = pi_cut.find_cut(entries, args.get("start", 0), args.get("end", len(entries)), args["keep"], version)
    return {
        "firstKeptEntryIndex": found.first_kept,
        "turnStartIndex": -1 if found.turn_start is None else found.turn_start,
        "isSplitTurn": found.splits,
    }


def prepared(args: Json, version: Version) -> Json | None:
    found = pi_cut.prepare(pi_log.read(args["entries"], version), args["settings"]["keepRecentTokens"], version)
    return None if found is None else _preparation(found, args["settings"])


def _preparation(found: pi_cut.Preparation, settings: Json) -> Json:
    previous = {} if found.previous is None else {"previousSummary": found.previous}
    return {
        "firstKeptEntryId": found.first_kept.id,
        "messagesToSummarize": _messages(found.history),
        "turnPrefixMessages": _messages(found.prefix),
        "isSplitTurn": found.splits,
        "tokensBefore": found.tokens,
        **previous,
        "fileOps": _files(found.files),
        "settings": settings,
    }


def _files(files: pi_cut.Files) -> Json:
    return {"read": list(files.read), "written": list(files.written), "edited": list(files.edited)}


def _between(text: str, start: str, end: str) -> str:
    return text.split(start, 1)[1].rsplit(end, 1)[0]


def _asked(model: Numbered) -> list[Json]:
    """The calls a model got, as the cases note them."""
    return [
        {
            "n": n,
            "kind": call.meta["kind"],
            "max_tokens": call.max_output,
            "conversation_text": _between(call.messages[-1].text, "<conversation>\n", "\n</conversation>"),
            "previous_summary": call.previous or None,
            "additional_focus": call.focus or None,
        }
        for n, call in enumerate(model.calls, 1)
    ]


def compacted(args: Json, version: Version) -> Json:
    settings = args["settings"]
    found = pi_cut.prepare(pi_log.read(args["entries"], version), settings["keepRecentTokens"], version)
    if found is None:
        return {"preparation": None}
    model = Numbered()
    limits = pi_summary.Limits.of(settings["reserveTokens"], version)
    focus = args.get("customInstructions") or ""
    summary = run(pi_summary.summarise(found, limits, version, focus), Offline(model))
    return {
        "preparation": _preparation(found, settings),
        "result": {
            "summary": summary.text,
            "firstKeptEntryId": found.first_kept.id,
            "tokensBefore": found.tokens,
            "details": summary.details,
        },
        "llm_calls": _asked(model),
    }


# Branches


def collected(args: Json, version: Version) -> Json:
    parents = {e["id"]: e["parentId"] for e in args["entries"]}
    ids, ancestor = pi_branches.collect(parents, args["oldLeafId"], args["targetId"])
    return {"entryIds": ids, "commonAncestorId": ancestor}


def branch_prepared(args: Json, version: Version) -> Json:
    branch = pi_branches.prepare_branch(pi_log.read(args["entries"], version), args["budget"])
    return {"messages": _messages(branch.entries), "fileOps": _files(branch.files), "totalTokens": branch.tokens}


def branch_summarised(args: Json, version: Version) -> Json:
    model = Numbered()
    given = args.get("customInstructions") or ""
    steps = pi_branches.summarise_branch(
        pi_log.read(args["entries"], version),
        args.get("contextWindow", model.context_window),
        version,
        reserve=args.get("reserveTokens", pi_branches.RESERVE),
        **({"instructions": given} if args.get("replaceInstructions") else {"focus": given}),
    )
    summary = run(steps, Offline(model))
    if summary is None:
        return {"result": {"summary": "No content to summarize"}, "llm_calls": []}
    return {"result": {"summary": summary.text, **summary.details}, "llm_calls": _asked(model)}


def migrated(args: Json, version: Version) -> list[Json]:
    numbers = count(1)
    return pi_log.migrated(args["entries"], lambda: f"e{next(numbers)}")


CALLS: dict[str, Callable[[Json, Version], Any]] = {
    "buildSessionContext": context,
    "estimateContextTokens": context_tokens,
    "shouldCompact": should_compact,
    "estimateTokens": estimates,
    "serialize": serialised,
    "findCutPoint": cut,
    "prepareCompaction": prepared,
    "compact": compacted,
    "collect": collected,
    "prepareBranch": branch_prepared,
    "branchSummary": branch_summarised,
    "migrate": migrated,
    "sessionOps": managed,
}

COMPONENTS: dict[str, Callable[[Json], Json]] = dict.fromkeys(
    (
        "buildSessionContext",
        "estimateContextTokens / shouldCompact",
        "estimateTokens",
        "serializeConversation(convertToLlm)",
        "findCutPoint",
        "prepareCompaction",
        "prepareCompaction + compact",
        "collectEntriesForBranchSummary",
        "prepareBranchEntries + generateBranchSummary",
        "migrateSessionEntries",
        "SessionManager",
    ),
    of_calls,
) | {"AgentSession (createAgentSession, faux provider)": of_steps}
