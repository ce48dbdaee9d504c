"""Replay of recordings under a policy, and reports of what came of it."""

from clew.lab.replay import run_replay
from clew.lab.report import html
from clew.lab.result import Result

__all__ = ["Result", "html", "run_replay"]
