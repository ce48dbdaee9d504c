"""Beginnings of words, where the index holds stems: "connecti" begins "connection", whose stem is "connect"."""

from __future__ import annotations

from clew.text.fold import stemmed

_ENDINGS = """
s es ed er ers est ing ings ion ions ation ations ational ative atively al ally ly y ies ied ier ness ment ments
able ably ible ibly ity ities ive ively ize izes ized izing ization ise ises ised ising isation ance ence ant ent
ful fully less ous ously ic ical ically icity ism ist ate ates ated ating ator
"""
"""What the English stemmer takes off."""


def stems(prefix: str) -> tuple[str, ...]:
    """The stems of English words that begin with a folded prefix, those left out that begin with it themselves.

    A stem stands for all its words: `usern` may begin "userness", so it finds "user" as well. Rather too much
    than "connection" not found by `connecti`.
    """
    found = {stemmed(prefix)}
    for suffix in _ENDINGS.split():
        for begun in range(len(suffix) + 1):  # how much of the suffix the prefix has already
            if len(prefix) - begun >= 3 and prefix.endswith(suffix[:begun]):
                found.add(stemmed(prefix[: len(prefix) - begun] + suffix))
    return tuple(sorted(stem for stem in found if not stem.startswith(prefix)))
