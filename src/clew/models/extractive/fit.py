"""Chooses what of a digest goes into a summary of so many tokens, and writes it."""

from __future__ import annotations

from collections.abc import Mapping

from clew.models.extractive.cut import cut, cut_to, screen_width
from clew.models.extractive.digest import Digest, Section
from clew.models.extractive.form import QUOTES, Points, bullet, first_line, points, quoted, unquoted, write
from clew.models.extractive.language import HEADINGS, PHRASES, Phrase, language
from clew.models.extractive.markers import DECIDED, STRICT
from clew.tokens import TokenCounter

SHARES = {
    Section.TASK: 0.15,
    Section.STATE: 0.10,
    Section.RULES: 0.24,
    Section.EARLIER: 0.30,
    Section.FAILING: 0.10,
    Section.FOCUS: 0.15,
    Section.CHANGED: 0.12,
    Section.REQUESTS: 0.16,
    Section.FACTS: 0.10,
    Section.DECISIONS: 0.10,
    Section.PLAN: 0.05,
    Section.COMMITS: 0.07,
    Section.QUESTIONS: 0.04,
    Section.FIXED: 0.06,
    Section.COMMANDS: 0.05,
    Section.READ: 0.03,
}
"""The sections by importance, and how a summary's room is divided between those that could fill more
than they get. Ours, tuned with `bench/extractive.py`."""

FLOOR = 16
"""Tokens a section gets before any is divided by shares: room for a heading and a short point."""
LONG_FROM = 160
"""Tokens from which on the first line also says what quoted lines are."""
CANDIDATES = 400
"""Newest points of a section that are considered: far more than fit, and a bound on the work."""
BRIEF = 160
"""Columns of an older request that are kept (Chinese, Japanese and Korean characters take two)."""
BOTH_ENDS = frozenset({Section.TASK, Section.REQUESTS, Section.STATE, Section.EARLIER})
"""Sections whose texts are cut in the middle: people ask, and agents conclude, at the end."""


def fitted(digest: Digest, max_tokens: int, counter: TokenCounter) -> str:
    """The summary of a digest within `max_tokens`."""
    asked = [t for s in (Section.TASK, Section.REQUESTS, Section.RULES) for t in digest.quoted(s)]
    if digest.language in HEADINGS and not digest.asked:
        tongue = digest.language
    else:
        tongue = language(asked or digest.quoted(Section.STATE))
    names = HEADINGS[tongue]
    first = first_line(tongue, Phrase.LONG if max_tokens >= LONG_FROM else Phrase.SHORT, digest.messages)
    every = {section: found[-CANDIDATES:] for section, found in points(digest).items() if found}
    if not every:
        return cut_to(f"{first}\n\n{PHRASES[tongue][Phrase.NOTHING]}", max_tokens, counter)
    if Section.REQUESTS in every:
        every[Section.REQUESTS] = [*map(_brief, every[Section.REQUESTS][:-1]), every[Section.REQUESTS][-1]]
    space = max_tokens - counter.text(first + "\n")
    room = allotted({s: _need(s, ps, names, space, counter) for s, ps in every.items()}, space)
    chosen = chosen_points(every, room, names, counter)
    return _written(chosen, first, names, max_tokens, counter)


def allotted(needs: Mapping[Section, int], space: int) -> dict[Section, int]:
    """How many of `space` tokens each section may use, given how many it could use.

    First a floor for each, by importance; the rest is divided by shares among those that need more.
    """
    given = dict.fromkeys(needs, 0)
    left = space
    for section in SHARES:
        if section in needs:
            given[section] = min(needs[section], FLOOR, max(left, 0))
            left -= given[section]
    while left > 0 and (hungry := [s for s in SHARES if s in needs and needs[s] > given[s]]):
        total, pool = sum(SHARES[s] for s in hungry), left
        for section in hungry:
            more = min(needs[section] - given[section], max(1, int(pool * SHARES[section] / total)), left)
            given[section] += more
            left -= more
    return given


def _need(section: Section, every: list[str], names: Mapping[Section, str], space: int, counter: TokenCounter) -> int:
    need = _heading(names[section], counter)
    for point in reversed(every):
        if need >= space:
            return space
        need += _cost(point, space, counter)
    return need


def _heading(name: str, counter: TokenCounter) -> int:
    return counter.text(f"\n## {name}\n")


def _cost(point: str, limit: int, counter: TokenCounter) -> int:
    """Tokens of a point; of one far beyond the limit just a number above it."""
    return limit + 1 if len(point) > limit * 12 + 100 else counter.text(bullet(point) + "\n")


def chosen_points(
    every: Points, room: Mapping[Section, int], names: Mapping[Section, str], counter: TokenCounter
) -> list[tuple[Section, int, str]]:
    """The points that fit, as (section, place, point), the most important section's first, newest first.

    What a section leaves unused goes to the next. A sentence that a text chosen before holds is not
    chosen again.
    """
    chosen: list[tuple[Section, int, str]] = []
    said = ""
    spare = 0
    for section in SHARES:
        left = room.get(section, 0) + spare
        if section not in every:
            continue
        taken = 0
        used = _heading(names[section], counter)
        for place in preferred(section, every[section]):
            point = every[section][place]
            if section in QUOTES and _plain(point) in said:
                continue
            fit = _fitting(point, section, left - used, counter, may_cut=not taken)
            if fit:
                chosen.append((section, place, fit))
                used += _cost(fit, left, counter)
                taken += 1
            if not fit and left - used < FLOOR // 2:
                break
        spare = left - used if taken else left
        said += "\n".join(_plain(p) for s, _, p in chosen[len(chosen) - taken :] if s in QUOTES) + "\n" if taken else ""
    return chosen


def preferred(section: Section, every: list[str]) -> list[int]:
    """The places of a section's points, the ones to keep first.

    The newest come first, but strict rules before lenient ones, the first and the last alternating
    (what was said at the start stands unless it was taken back), and decisions before reasons.
    """
    newest = list(range(len(every) - 1, -1, -1))
    if section is Section.RULES:
        strict = [i for i in newest if STRICT.search(every[i])]
        ends = [i for pair in zip(reversed(strict), strict, strict=True) for i in pair]
        return list(dict.fromkeys([*ends, *newest]))
    if section is Section.DECISIONS:
        return sorted(newest, key=lambda i: DECIDED.search(every[i]) is None)
    return newest


def _plain(point: str) -> str:
    return " ".join(unquoted(point.split("\n")).split())


def _brief(request: str) -> str:
    """The beginning of an older request: what it was about; its rules and facts are kept for themselves."""
    text = unquoted(request.split("\n"))
    return quoted(cut(" ".join(text.split()), BRIEF, screen_width)) if screen_width(text) > BRIEF else request


def _fitting(point: str, section: Section, room: int, counter: TokenCounter, *, may_cut: bool) -> str:
    """The point if it has room, else a shorter form of it, or "" if there is none."""
    if _cost(point, room, counter) <= room:
        return point
    if section in QUOTES:
        short = cut(
            unquoted(point.split("\n")), room, lambda t: _cost(quoted(t), room, counter), both=section in BOTH_ENDS
        )
        return quoted(short) if may_cut and short else ""
    line = point.split("\n", 1)[0]
    return line if line != point and _cost(line, room, counter) <= room else ""


def _written(
    chosen: list[tuple[Section, int, str]],
    first: str,
    names: Mapping[Section, str],
    max_tokens: int,
    counter: TokenCounter,
) -> str:
    """The summary; points chosen last go as long as the whole counts more than its parts did."""
    while True:
        by_section: Points = {}
        for section, _, point in sorted(chosen, key=lambda c: c[1]):
            by_section.setdefault(section, []).append(point)
        text = write(by_section, first, names)
        if counter.text(text) <= max_tokens:
            return text
        if not chosen:
            return cut_to(first, max_tokens, counter)
        chosen = chosen[:-1]
