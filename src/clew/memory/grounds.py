"""Whether what a model extracted stands in what was said. Pure, without a model, in any language."""

from __future__ import annotations

import re

from clew.memory.records import folded

SHARE = 0.6
"""Share of a value's pieces that must stand in the text. Names, numbers and quotes must stand there whole."""

_PIECES = re.compile(r"[0-9]+(?:[.,:][0-9]+)*|[^\W\d_]+", re.UNICODE)
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_EMPTY = frozenset("的了是有没不我你他她它们这那用户在和与也就都の は が を に で と も".replace(" ", ""))
_SMALL = frozenset(
    re.findall(
        r"\S+",
        "a an and are at be by for from has have he her his i in is it its my no not of on or our she the they to user "
        "was we with you your",
    )
)


def grounded(value: str, text: str) -> bool:
    """True when the value can be traced to the text.

    It stands there word for word; or every number and every capitalised or code-like word of it does, and most of
    its other words, or of its pairs of characters where words are not spaced.
    """
    said = folded(text)
    if _stands_in(folded(value), said):
        return True
    pieces = _PIECES.findall(value)
    exact = [p for i, p in enumerate(pieces) if not _CJK.search(p) and _is_name(p, i == 0 < len(pieces) - 1)]
    if not all(_stands_in(folded(p), said) for p in exact):
        return False
    soft = [unit for p in pieces if p not in exact for unit in _units(folded(p))]
    found = sum(_stem(unit) in said for unit in soft)
    return bool(pieces) and (not soft or found >= SHARE * len(soft))


def related(key: str, text: str) -> bool:
    """True when the text shares a word with the key, or a character that means something."""
    said = folded(text)
    return any(term in said for term in terms(key))


def terms(text: str) -> set[str]:
    """The words of a text, and the single characters of scripts without spaces, but those that say nothing."""
    found: set[str] = set()
    for piece in _PIECES.findall(folded(text)):
        if _CJK.search(piece):
            found.update(c for c in piece if c not in _EMPTY)
        elif piece not in _SMALL:
            found.add(piece)
    return found


def _units(piece: str) -> list[str]:
    if not _CJK.search(piece) or len(piece) == 1:
        return [] if piece in _SMALL else [piece]
    return [piece[i : i + 2] for i in range(len(piece) - 1)]


def _is_name(piece: str, opens: bool) -> bool:
    """A number, or a word with capitals; the first of several words may have one for being the first."""
    return piece[0].isdigit() or piece[1 if opens else 0 :] != piece[1 if opens else 0 :].lower()


def _stem(unit: str) -> str:
    """A longer word without its last letters, so that "likes" is found in "I like"."""
    return unit[: max(4, len(unit) - 2)] if unit.isascii() else unit


def _stands_in(text: str, said: str) -> bool:
    """Whether the text stands in what was said, not as a part of a longer word or number of Latin script."""
    before = r"(?<![0-9a-z])" if text[:1].isascii() and text[:1].isalnum() else ""
    after = r"(?![0-9a-z])" if text[-1:].isascii() and text[-1:].isalnum() else ""
    return bool(text) and re.search(before + re.escape(text) + after, said) is not None
