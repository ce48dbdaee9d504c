"""Replay of recordings under a policy, and reports of what came of it."""

from clew.lab.replay import Result, run_replay
from clew.lab.report import html

__all__ = ["Result", "html", "run_replay"]
