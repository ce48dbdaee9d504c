"""Learning from reported usage how many real tokens one counted token stands for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import copysign, inf
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from clew.messages import Message
from clew.tokens.protocol import TokenCounter


class Rule(Struct, frozen=True):
    """How a factor follows the ratio of reported to counted tokens.

    - `rate`: weight of a new ratio in the moving average
    - `low`, `high`: bounds of the factor
    - `credible`: a ratio outside these bounds is a report about something else, and is ignored
      (zero usage, counters summed over a turn, a request the counter saw only a fragment of)
    - `jump`: a ratio counts as at most this many times the factor, at least its inverse
    - `step`: largest change of the factor by one report
    - `overhead`: tokens of the request that were not counted; taken off the report
    """

    rate: float = 0.25
    low: float = 0.5
    high: float = 3.0
    credible: tuple[float, float] = (0.1, 10.0)
    jump: float = inf
    step: float = inf
    overhead: int = 0


class Calibrated(Struct, frozen=True):
    """A counter that learns. It counts as `base` does, under its name; only `factor` moves."""

    base: TokenCounter
    rule: Rule = Rule()
    factor: float = 1.0

    @classmethod
    def gemini(cls, base: TokenCounter, *, overhead: int = 0) -> Calibrated:
        """As Gemini CLI's adaptive token calculator learns (0.61.0, adaptiveTokenCalculator).

        `overhead` is the estimate of system prompt and tool declarations, in tokens.
        """
        rule = Rule(rate=0.2, low=0.5, high=2.0, credible=(0.0, inf), jump=2.0, step=0.15, overhead=overhead)
        return cls(base, rule)

    @property
    def name(self) -> str:
        return self.base.name

    def text(self, text: str) -> int:
        return self.base.text(text)

    def message(self, message: Message) -> int:
        return self.base.message(message)

    def tools(self, tools: Sequence[Mapping[str, Any]]) -> int:
        return self.base.tools(tools)

    def learned(self, predicted: int, actual: int) -> Calibrated:
        """The counter after a request counted as `predicted` was reported as `actual` tokens."""
        if predicted <= 0:
            return self
        rule, factor = self.rule, self.factor
        ratio = max(0, actual - rule.overhead) / predicted
        if not rule.credible[0] <= ratio <= rule.credible[1]:
            return self
        ratio = min(max(ratio, factor / rule.jump), factor * rule.jump)
        moved = (1 - rule.rate) * factor + rule.rate * ratio
        if abs(moved - factor) > rule.step:
            moved = factor + copysign(rule.step, moved - factor)
        return replace(self, factor=min(max(moved, rule.low), rule.high))
