"""A small agent engine over the log, the policies and the memory: `AgentModule`, tools, hooks, limits."""

from clew.agent.engine import Engine
from clew.agent.hooks import Context, Hook, Veto
from clew.agent.log_tools import log_tools
from clew.agent.memory_tools import core_tools, memory_tools
from clew.agent.module import QITOS_STREAM, AgentModule
from clew.agent.schema import BadTool
from clew.agent.session_index import SessionIndex
from clew.agent.state import (
    Action,
    ActionResult,
    Decision,
    Ended,
    Event,
    Limits,
    Observation,
    Result,
    RunStopped,
    State,
    Step,
    StopReason,
)
from clew.agent.tools import Output, Tool, tool
from clew.models.base import Delta

__all__ = [
    "QITOS_STREAM",
    "Action",
    "ActionResult",
    "AgentModule",
    "BadTool",
    "Context",
    "Decision",
    "Delta",
    "Ended",
    "Engine",
    "Event",
    "Hook",
    "Limits",
    "Observation",
    "Output",
    "Result",
    "RunStopped",
    "SessionIndex",
    "State",
    "Step",
    "StopReason",
    "Tool",
    "Veto",
    "core_tools",
    "log_tools",
    "memory_tools",
    "tool",
]
