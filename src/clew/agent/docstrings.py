"""What a function's docstring says of it, and of each parameter."""

from __future__ import annotations

import inspect
import re
from typing import NamedTuple

_SPHINX = re.compile(r":param\s+(?:[^:]*\s)?(\w+):\s*(.*)")
_NAMED = re.compile(r"(?:[-*]\s+)?`{0,2}\*{0,2}(\w+)`{0,2}(?:\s*\([^)]*\))?\s*:\s+(.*)")
_LISTED = re.compile(r"[-*]\s+`{1,2}(\w+)`{1,2}(?:\s*\([^)]*\))?\s*:\s+(.*)")
_NUMPY = re.compile(r"(\w+)\s*(?::.*)?")
_SECTION = re.compile(r"(args|arguments|parameters|params|returns?|raises|yields|examples?|notes?)\s*:?", re.IGNORECASE)
_PARAMETERS = ("args", "arguments", "parameters", "params")


class Described(NamedTuple):
    """What the function does, and its parameters by name."""

    text: str
    parameters: dict[str, str]


def described(function: object) -> Described:
    """Reads the docstring; the forms of Google, NumPy and Sphinx are known, and lists of "- `name`: text".

    The text is what stands before the first section.
    """
    lines = (inspect.getdoc(function) or "").splitlines()
    text: list[str] = []
    found: dict[str, list[str]] = {}
    section, current, indent = "", "", 0
    for n, line in enumerate(lines):
        bare = line.strip()
        heading = _SECTION.fullmatch(bare)
        underlined = n + 1 < len(lines) and re.fullmatch(r"\s*-{3,}\s*", lines[n + 1]) is not None
        if heading and (bare.endswith(":") or underlined):
            section, current = heading[1].lower(), ""
        elif re.fullmatch(r"-{3,}", bare):
            continue
        elif sphinx := _SPHINX.fullmatch(bare):
            section, current = "sphinx", sphinx[1]
            found[current] = [sphinx[2]]
        elif bare.startswith((":return", ":raises", ":rtype", ":type")):
            section, current = "sphinx", ""
        elif not section:
            if listed := _LISTED.fullmatch(bare):
                current, indent = listed[1], _indent(line)
                found[current] = [listed[2]]
            elif current and bare and _indent(line) > indent:
                found[current].append(bare)
            else:
                current = ""
                text.append(bare)
        elif section in _PARAMETERS or section == "sphinx":
            start = section != "sphinx" and (not current or _indent(line) <= indent) and bare != ""
            named = _NAMED.fullmatch(bare) if start else None
            plain = _NUMPY.fullmatch(bare) if start and named is None else None
            if named or plain:
                match = named or plain
                current, indent = str(match[1]) if match else "", _indent(line)
                found[current] = [named[2]] if named and not _typed(lines, n) else []
            elif current and bare:
                found[current].append(bare)
    return Described("\n".join(text).strip(), {name: " ".join(said).strip() for name, said in found.items() if said})


def _typed(lines: list[str], n: int) -> bool:
    """Whether "name : type" of NumPy's form stands in this line: what it means follows, indented."""
    line = lines[n]
    return " : " in line and n + 1 < len(lines) and _indent(lines[n + 1]) > _indent(line)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
