"""Counting tokens."""

from clew.tokens.calibrated import Calibrated, Rule
from clew.tokens.exact import Exact
from clew.tokens.heuristic import Heuristic
from clew.tokens.named import COUNTERS, counter
from clew.tokens.protocol import Learning, TokenCounter

__all__ = ["COUNTERS", "Calibrated", "Exact", "Heuristic", "Learning", "Rule", "TokenCounter", "counter"]
