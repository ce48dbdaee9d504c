"""One form for all spellings of a word: normalisation, case, accents, inflection."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from unicodedata import normalize

from clew.text.irregular import BASES
from clew.text.scripts import HIDDEN

LONGEST = 64
"""Characters of a word that count. Longer ones (keys, encoded data) are told apart by these."""

_ACCENTED = re.compile("[\u00c0-\u024f\u0370-\u03ff\u1e00-\u1fff]")
_ACCENTS = re.compile("[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0640\u064b-\u065f\u0670]")
_HIDDEN = re.compile(f"[{HIDDEN}]")
_SPELT = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ı": "i"}
    | {"ё": "е"}
    | {"أ": "ا", "إ": "ا", "آ": "ا", "ٱ": "ا", "ى": "ي", "ی": "ي", "ک": "ك", "ة": "ه"}
)
"""Letters that are written one for another and have no common decomposition."""

_ENGLISH = re.compile("[a-z]{3,}")


def folded(word: str) -> str:
    """A word without differences of case, width, composition or accent: `Ｃａｆé` is `cafe`.

    NFKC and Unicode case folding; Latin and Greek letters lose their accents, Arabic and Hebrew their vowel
    signs, since people leave them out when they search. May be empty.
    """
    if word.isascii():
        return word.lower()[:LONGEST]
    word = normalize("NFKC", normalize("NFKC", seen(word)).casefold())
    if _ACCENTED.search(word):
        word = normalize("NFC", _ACCENTS.sub("", normalize("NFD", word)))
    return "".join(_ACCENTS.sub("", word).translate(_SPELT).split())[:LONGEST]


def seen(text: str) -> str:
    """A text without what nobody sees in it: soft hyphens, joiners, variation selectors."""
    return _HIDDEN.sub("", text)


def value_of(text: str) -> str:
    """The form in which values of facets (a role, a session's id) are compared: no case, no width, no spaces."""
    text = text.encode("utf-8", "replace").decode()  # no lone surrogates
    return "".join(normalize("NFKC", normalize("NFKC", text).casefold()).split())


def stemmed(word: str) -> str:
    """The stem of a folded word, if it is of plain Latin letters; others are left as they are.

    Those are taken for English, the language of most such text here. That another language is stemmed
    by the wrong rules does no harm to finding its words: index and query do it alike.
    """
    return _english()(BASES.get(word, word)) if _ENGLISH.fullmatch(word) else word


@cache
def _english() -> Callable[[str], str]:
    """The English Snowball stemmer of Tantivy, which is there anyway (BM25 and stems come from one package)."""
    from tantivy import Filter, TextAnalyzerBuilder, Tokenizer

    analyze = TextAnalyzerBuilder(Tokenizer.raw()).filter(Filter.stemmer("english")).build().analyze
    return lambda word: analyze(word)[0]
