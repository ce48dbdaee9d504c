"""How much a view may hold."""

from __future__ import annotations

from math import isfinite

from msgspec import Struct

from clew.errors import BadBudget

MEDIA_BYTES = 20_000_000
"""Default limit for inline media in one request, in bytes of base64 (providers refuse larger bodies)."""

OUTPUT = 16_384
"""Most tokens kept free for the reply by default. Ours: room for the longest replies agents usually ask for."""

LEAST_WINDOW = 256
"""Tokens. A smaller window holds no conversation: it was meant in another unit."""

LEAST_INPUT = 128
"""Tokens a prompt must be able to hold."""


class Budget(Struct, frozen=True):
    """Limits of one view, in tokens of the session's counter (`media_bytes` in bytes of base64).

    - `window`: the model's context window
    - `output`: the part of it kept free for the reply
    - `trigger`: a view of more tokens than this is due for compaction
    - `target`: a compaction brings the view down to this, or less

    Build one with `Budget.of`, which checks the values.
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

        `output` defaults to a tenth of the window, at most `OUTPUT` tokens. `trigger` and `target` are
        fractions of the prompt space (window less output) up to 1, tokens above; they default to 0.85
        and to half of the trigger. Raises `BadBudget`, with the effective values, on anything that is
        impossible or confuses the units.
        """
        given = {"window": window, "output": output, "trigger": trigger, "target": target, "media_bytes": media_bytes}
        for name, value in given.items():
            if value is not None or name in ("window", "media_bytes"):
                _check_number(name, value, whole=name not in ("trigger", "target"))
        window, media_bytes = int(window), int(media_bytes)
        if window < LEAST_WINDOW:
            raise BadBudget(f"a window of {window:,} tokens cannot hold a conversation; windows are given in tokens")
        output = min(OUTPUT, window // 10) if output is None else int(output)
        space = window - output
        if output < 0 or space < LEAST_INPUT:
            raise BadBudget(f"an output reserve of {output:,} leaves {space:,} of a window of {window:,} tokens")
        if media_bytes < 0:
            raise BadBudget(f"media_bytes is a number of bytes, 0 for no media at all, not {media_bytes:,}")
        above = _tokens("trigger", 0.85 if trigger is None else trigger, space, window, output)
        below = _tokens("target", above // 2 if target is None else target, space, window, output)
        if below > above:
            raise BadBudget(f"target {below:,} is above trigger {above:,} (prompt space {space:,} tokens)")
        return cls(window, output, above, below, media_bytes)


def _check_number(name: str, value: object, *, whole: bool) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        unit = "bytes" if name == "media_bytes" else "tokens"
        raise BadBudget(f"{name} must be a number of {unit}, not {value!r}; write 500_000 for 500k")
    if whole and value != int(value):
        raise BadBudget(f"{name} must be a whole number, not {value!r}; fractions are for trigger and target")


def _tokens(name: str, value: float, space: int, window: int, output: int) -> int:
    tokens = int(space * value) if 0 < value <= 1 else int(value)
    if not 0 < tokens <= space:
        raise BadBudget(
            f"{name} {value!r} comes to {tokens:,} tokens, but a window of {window:,} less {output:,} "
            f"for the reply leaves {space:,}; give a fraction up to 1 or tokens up to {space:,}"
        )
    return tokens
