"""The tools with which a model edits its blocks and pages through what is out of sight (MemGPT's names)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import Struct

from clew.errors import BadPayload, ClewError
from clew.memory.blocks import BlockMemory, Page
from clew.policies.shrink import head_tail

Schema = Mapping[str, Any]

SHOWN = 2_000
"""Characters of a result that a page shows, so that no page fills the window by itself."""


class Answer(Struct, frozen=True):
    """What a tool answers the model."""

    text: str
    is_error: bool = False


class CoreAppend(Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    content: str


class CoreReplace(Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    old_content: str
    new_content: str


class Insert(Struct, frozen=True, forbid_unknown_fields=True):
    content: str


class Search(Struct, frozen=True, forbid_unknown_fields=True):
    query: str
    page: int = 0


class SearchDates(Struct, frozen=True, forbid_unknown_fields=True):
    start_date: str
    end_date: str
    page: int = 0


def core_append(memory: BlockMemory, given: CoreAppend) -> str:
    _editable(memory, given.name)
    text = memory.edit(given.name, lambda old: f"{old}\n{given.content}" if old else given.content)
    return f"Added. Block {given.name!r} now has {len(text):,} of {memory.blocks[given.name].limit:,} characters."


def core_replace(memory: BlockMemory, given: CoreReplace) -> str:
    def new(old: str) -> str:
        if not given.old_content or given.old_content not in old:
            raise BadPayload(f"block {given.name!r} does not hold old_content; it must match to the letter")
        return old.replace(given.old_content, given.new_content)

    _editable(memory, given.name)
    text = memory.edit(given.name, new)
    return f"Replaced. Block {given.name!r} now has {len(text):,} of {memory.blocks[given.name].limit:,} characters."


def archive_insert(memory: BlockMemory, given: Insert) -> str:
    if memory.insert(given.content) is None:
        raise BadPayload("content is blank: there is nothing to store")
    return "Stored."


def archive_search(memory: BlockMemory, given: Search) -> str:
    return shown(memory.search_archive(given.query, given.page))


def said_search(memory: BlockMemory, given: Search) -> str:
    return shown(memory.search_said(given.query, given.page))


def said_dates(memory: BlockMemory, given: SearchDates) -> str:
    return shown(memory.search_dates(_day(given.start_date), _day(given.end_date) + 86_400, given.page))


class Tool(Struct, frozen=True):
    """A tool: its arguments, what it does, and its texts for the schema."""

    arguments: type[Struct]
    does: Callable[[BlockMemory, Any], str]
    description: str
    parameters: Mapping[str, str]


_PAGE = "Which page of five results, from 0."
TOOLS: Mapping[str, Tool] = {
    "core_memory_append": Tool(
        CoreAppend,
        core_append,
        "Adds a line to a block of your core memory, which you always see.",
        {"name": "The block.", "content": "The line to add."},
    ),
    "core_memory_replace": Tool(
        CoreReplace,
        core_replace,
        "Replaces a piece of text in a block of your core memory. An empty new_content deletes it.",
        {"name": "The block.", "old_content": "The text now, to the letter.", "new_content": "The text instead."},
    ),
    "conversation_search": Tool(
        Search,
        said_search,
        "Looks for a text in all that was said, also before what you see.",
        {"query": "The text.", "page": _PAGE},
    ),
    "conversation_search_date": Tool(
        SearchDates,
        said_dates,
        "Shows what was said from one day to another.",
        {"start_date": "First day, YYYY-MM-DD.", "end_date": "Last day, YYYY-MM-DD.", "page": _PAGE},
    ),
    "archival_memory_insert": Tool(
        Insert,
        archive_insert,
        "Stores a text in your archive, which is unlimited and which you see only by searching.",
        {"content": "The text, to be understood by itself."},
    ),
    "archival_memory_search": Tool(
        Search,
        archive_search,
        "Looks in your archive for texts that share words with the query.",
        {"query": "The words.", "page": _PAGE},
    ),
}


def schemas(memory: BlockMemory) -> list[Schema]:
    """The tools as function schemas in OpenAI's form; the editable blocks are named in them."""
    return [_schema(name, tool, memory) for name, tool in TOOLS.items()]


def call(memory: BlockMemory, name: str, arguments: str | Mapping[str, Any]) -> Answer:
    """Does what the model asks. Whatever is wrong with it is an answer that says so, and nothing is changed."""
    tool = TOOLS.get(name)
    if tool is None:
        return Answer(f"There is no tool {name!r}; there are: {', '.join(TOOLS)}.", True)
    try:
        given = arguments if isinstance(arguments, Mapping) else msgspec.json.decode(arguments or "{}")
        return Answer(tool.does(memory, msgspec.convert(given, tool.arguments)))
    except (ClewError, msgspec.MsgspecError, UnicodeEncodeError) as error:
        return Answer(f"Nothing was done: {error}.", True)


def shown(page: Page) -> str:
    """A page of results as the model reads it: how many there are, then one JSON line each."""
    if not page.records:
        return f"No results{f' on page {page.page}; there are {page.pages} pages' if page.total else ''}."
    head = f"Showing {len(page.records)} of {page.total} results (page {page.page + 1} of {page.pages}):"
    rows = [
        {"when": _when(r.created), "who": r.speaker or r.role, "text": head_tail(r.text, SHOWN)} for r in page.records
    ]
    return "\n".join([head, *(msgspec.json.encode(row).decode() for row in rows)])


def _schema(name: str, tool: Tool, memory: BlockMemory) -> Schema:
    properties: dict[str, Any] = {
        key: {"type": "integer" if key == "page" else "string", "description": text}
        for key, text in tool.parameters.items()
    }
    if "name" in properties:
        properties["name"]["enum"] = [b.label for b in memory.blocks.values() if not b.read_only]
    return {
        "type": "function",
        "function": {
            "name": name,
            "description": tool.description,
            "parameters": {
                "type": "object",
                "properties": properties,
                "required": [key for key in properties if key != "page"],
                "additionalProperties": False,
            },
        },
    }


def _editable(memory: BlockMemory, label: str) -> None:
    block = memory.blocks.get(label)
    if block is not None and block.read_only:
        raise BadPayload(f"block {label!r} is read-only")


def _day(text: str) -> float:
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
    except ValueError as error:
        raise BadPayload(f"{text!r} is no day of the form YYYY-MM-DD") from error


def _when(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M}"
