"""How much a view may hold."""

from __future__ import annotations

from msgspec import Struct

from clew.errors import BadBudget

MEDIA_BYTES = 20_000_000
"""Default limit for inline media in one request, in bytes of base64 (providers refuse larger bodies)."""


class Budget(Struct, frozen=True):
    """Limits of one view, all in tokens of the session's counter (`media_bytes` in bytes).

    `window` is the model's context window, `output` the part reserved for the reply; a view is due
    for compaction above `trigger` and is brought to `target` or less.
    """

    window: int
    output: int
    trigger: int
    target: int
    media_bytes: int = MEDIA_BYTES

    @property
    def input(self) -> int:
        """What a prompt may hold at most: the window less the reply's reserve."""
        return self.window - self.output

    @classmethod
    def of(
        cls,
        window: int,
        *,
        output: int | None = None,
        trigger: float | None = None,
        target: float | None = None,
        media_bytes: int = MEDIA_BYTES,
    ) -> Budget:
        """A checked budget.

        `output` defaults to a tenth of the window, at most 16,384 tokens. `trigger` and `target` are
        fractions of the prompt space when they are at most 1, tokens otherwise; they default to 0.85
        of it and half of the trigger. Raises `BadBudget`, with the effective values, on anything
        impossible or confused about units.
        """
        for name, value in (("window", window), ("output", output), ("trigger", trigger), ("target", target)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
                raise BadBudget(f"{name} must be a number of tokens, not {value!r}; write 500_000 for 500k")
        if window < 256:
            raise BadBudget(f"a window of {window:,} tokens cannot hold a conversation; windows are given in tokens")
        if output is None:
            output = min(16_384, window // 10)
        space = window - output
        if output < 0 or space < 128:
            raise BadBudget(f"an output reserve of {output:,} leaves {space:,} of a window of {window:,} tokens")
        above = _tokens("trigger", 0.85 if trigger is None else trigger, space, window, output)
        below = _tokens("target", above // 2 if target is None else target, space, window, output)
        if below > above:
            raise BadBudget(f"target {below:,} is above trigger {above:,} (prompt space {space:,} tokens)")
        return cls(int(window), int(output), above, below, media_bytes)


def _tokens(name: str, value: float, space: int, window: int, output: int) -> int:
    tokens = int(space * value) if 0 < value <= 1 else int(value)
    if not 0 < tokens <= space:
        raise BadBudget(
            f"{name} {value!r} comes to {tokens:,} tokens, but a window of {window:,} less {output:,} "
            f"for the reply leaves {space:,}; give a fraction up to 1 or tokens up to {space:,}"
        )
    return tokens
