"""Runs in processes of their own, each of which kills itself after one entry more than the last: `FOLDER ENTRIES`."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from clew import Session
from clew.agent import AgentModule, tool
from clew.memory import RecordLog, WindowMemory
from clew.messages import Message, Text, ToolCall, Usage
from clew.models import ModelCall, Reply, Scripted
from clew.sessions import Draft, Entry


class Mortal(Session):
    """A session that dies right after its n-th entry is durable."""

    left = 0

    def _add(self, drafts: Sequence[Draft]) -> list[Entry]:
        added = super()._add(drafts)
        Mortal.left -= len(drafts)
        if Mortal.left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return added


def answers(call: ModelCall) -> Reply:
    """What the model says depends on what it sees only."""
    done = sum(m.role == "assistant" for m in call.messages)
    if done == 2:
        return Reply(Message("assistant", (Text("All done. 完成。"),)), "stop", Usage(7, 3))
    parts = (ToolCall(f"c{done}0", "once", f'{{"n": {done}}}'), ToolCall(f"c{done}1", "safe", f'{{"n": {done}}}'))
    return Reply(Message("assistant", parts), "tool_calls", Usage(7, 3))


def agent(session: Session, journal: Path) -> AgentModule:
    def noted(what: str) -> str:
        with journal.open("a") as file:
            file.write(f"{what}\n")
        return f"did {what}"

    @tool
    def once(n: int) -> str:
        """Something that must not be done twice."""
        return noted(f"once {n}")

    @tool(idempotent=True)
    def safe(n: int) -> str:
        """Something that may be done twice."""
        return noted(f"safe {n}")

    memory = WindowMemory(log=RecordLog(journal.with_suffix(".memory")))
    return AgentModule(Scripted(answers), memory, session, [once, safe], instructions="Be brief.", recall_tokens=0)


def once_killed(store: Path, after: int) -> int:
    """The signal that ended a run of its own process, 0 when it ended by itself."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with Session.open(store, title="killed") as session:
        session.__class__ = Mortal
        Mortal.left = after
        agent(session, store.with_suffix(".journal")).run("Do it.")
    os._exit(0)


if __name__ == "__main__":
    folder, entries = Path(sys.argv[1]), int(sys.argv[2])
    print(*(once_killed(folder / f"{after}.db", after) for after in range(1, entries + 1)))
