"""Trying again, for a bounded time, what a server could not do just now."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_before_delay, wait_random_exponential

from clew.errors import Interrupted

T = TypeVar("T")

FIRST, MOST = 0.05, 2.0
"""Seconds between two tries, at most: they double from the first, and are drawn by lot, so that writers do not meet
again."""

log = logging.getLogger(__name__)


def patiently(work: Callable[[bool], T], seconds: float) -> T:
    """Does the work until it is not `Interrupted`; raises that with figures and advice after so many seconds.

    The work is told whether an earlier try may have been written all the same.
    """
    unknown = False

    def once() -> T:
        nonlocal unknown
        try:
            return work(unknown)
        except Interrupted as error:
            unknown = unknown or error.unknown
            raise

    def tell(state: RetryCallState) -> None:
        if state.attempt_number == 1 and state.outcome is not None:
            log.info("%s; trying again for %.0f s", state.outcome.exception(), seconds)

    retrying = Retrying(
        retry=retry_if_exception_type(Interrupted),
        stop=stop_before_delay(seconds),
        wait=wait_random_exponential(multiplier=FIRST, max=MOST),
        before_sleep=tell,
        reraise=True,
    )
    try:
        return retrying(once)
    except Interrupted as error:
        done = retrying.statistics
        tried = f"given up after {done['attempt_number']} tries in {done['delay_since_first_attempt']:.1f} s"
        raise Interrupted(f"{error.reason}; {tried}; {_ADVICE[unknown]}", unknown=unknown) from error


_ADVICE = {
    True: "whether it was written is not known: look, or ask again with the same key",
    False: "nothing was written: check the address, and that the server runs, and try again",
}
