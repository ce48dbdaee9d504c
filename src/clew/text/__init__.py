"""Text and what is looked for in it: the tokeniser and the query language of every index."""

from clew.text.fold import value_of
from clew.text.highlight import highlights
from clew.text.parse import parse, words
from clew.text.patterns import Pattern, pattern
from clew.text.query import NOTHING, Query
from clew.text.tokenise import Span, Terms, fingerprint, spans, terms

__all__ = [
    "NOTHING",
    "Pattern",
    "Query",
    "Span",
    "Terms",
    "fingerprint",
    "highlights",
    "parse",
    "pattern",
    "spans",
    "terms",
    "value_of",
    "words",
]
