"""One form for all spellings of a word: normalisation, case, accents, inflection."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from unicodedata import normalize

from clew.text.irregular import BASES

LONGEST = 64
"""Characters of a word that count. Longer ones (keys, encoded data) are told apart by these."""

_ACCENTED = re.compile("[\u00c0-\u024f\u1e00-\u1eff]")
_ACCENTS = re.compile("[\u0300-\u036f]")
_ENGLISH = re.compile("[a-z]{3,}")


def folded(word: str) -> str:
    """A word without differences of case, width, composition or accent: `Ｃａｆé` is `cafe`.

    NFKC and Unicode case folding; Latin letters lose their accents, since people leave them out when
    they search. May be empty.
    """
    if word.isascii():
        return word.lower()[:LONGEST]
    word = normalize("NFKC", normalize("NFKC", word).casefold())
    if _ACCENTED.search(word):
        word = normalize("NFC", _ACCENTS.sub("", normalize("NFD", word)))
    return "".join(word.split())[:LONGEST]


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
