"""Trying again, for a bounded time, what a server could not do just now."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from typing import TypeVar

from clew.errors import Interrupted

T = TypeVar("T")

FIRST, MOST = 0.05, 2.0
"""Seconds between two tries: they double from the first, and vary by half, so that writers do not meet again."""

log = logging.getLogger(__name__)


def patiently(work: Callable[[bool], T], seconds: float) -> T:
    """Does the work until it is not `Interrupted`; raises that with figures and advice after so many seconds.

    The work is told whether an earlier try may have been written all the same.
    """
    unknown, tries, wait = False, 0, FIRST
    began = time.monotonic()
    while True:
        tries += 1
        try:
            return work(unknown)
        except Interrupted as error:
            unknown = unknown or error.unknown
            passed = time.monotonic() - began
            if passed >= seconds:
                tried = f"given up after {tries} tries in {passed:.0f} s"
                raise Interrupted(f"{error.reason}; {tried}; {_ADVICE[unknown]}", unknown=unknown) from error
            if tries == 1:
                log.info("%s; trying again for %.0f s", error.reason, seconds)
            time.sleep(min(wait * random.uniform(0.5, 1.5), seconds - passed))
            wait = min(2 * wait, MOST)


_ADVICE = {
    True: "whether it was written is not known: look, or ask again with the same key",
    False: "nothing was written: check that the server runs, and try again",
}
