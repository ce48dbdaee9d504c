"""A server that speaks OpenAI's chat completions, for the chat to talk with.

    python tests/cli/provider.py PORT_FILE    # writes the port it listens on

What it answers depends on the last message: `slow N` writes N words, ten a second; `tool NAME JSON` calls a tool, and
the result is then quoted; `fail` is status 500 and `too long` an overflow; anything else is repeated, with how many
messages came and the first line of what was remembered.
"""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


class Handler(BaseHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Nothing on standard error."""

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        messages = request["messages"]
        said = text(messages[-1].get("content"))
        if messages[-1]["role"] == "user" and said.endswith("fail"):
            self.sent(500, {"error": {"message": "out of order", "type": "server_error"}})
        elif messages[-1]["role"] == "user" and said.endswith("too long"):
            self.sent(400, {"error": {"message": "too many tokens", "code": "context_length_exceeded"}})
        else:
            self.answered(request, list(deltas(messages)))

    def answered(self, request: dict[str, Any], made: list[dict[str, Any]]) -> None:
        finish = "tool_calls" if "tool_calls" in made[-1] else "stop"
        size = sum(len(text(m.get("content"))) for m in request["messages"]) // 4
        usage = {"prompt_tokens": size, "completion_tokens": len(made), "total_tokens": size + len(made)}
        head = {"id": "chatcmpl-1", "created": 1, "model": request["model"]}
        if not request.get("stream"):
            whole = {"role": "assistant", "content": "".join(d.get("content", "") for d in made)}
            choice = {"index": 0, "message": whole, "finish_reason": finish}
            self.sent(200, {**head, "object": "chat.completion", "choices": [choice], "usage": usage})
            return
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        choices = [{"index": 0, "delta": d, "finish_reason": None} for d in made]
        choices.append({"index": 0, "delta": {}, "finish_reason": finish})
        with contextlib.suppress(ConnectionError):  # who listened has gone
            for choice in choices:
                self.event({**head, "object": "chat.completion.chunk", "choices": [choice]})
                if len(made) > 20:
                    time.sleep(0.1)
            self.event({**head, "object": "chat.completion.chunk", "choices": [], "usage": usage})
            self.wfile.write(b"data: [DONE]\n\n")

    def sent(self, status: int, value: dict[str, Any]) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def event(self, value: dict[str, Any]) -> None:
        self.wfile.write(b"data: " + json.dumps(value).encode() + b"\n\n")
        self.wfile.flush()


def text(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(part.get("text", "") for part in content)
    return content or ""


def deltas(messages: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    last = messages[-1]
    said = text(last.get("content"))
    line = said.splitlines()[-1] if said else ""
    if last["role"] == "tool":
        yield {"role": "assistant", "content": f"The tool says: {said}"}
    elif line.startswith("tool "):
        _, name, arguments = line.split(" ", 2)
        call = {"index": 0, "id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}}
        yield {"role": "assistant", "content": None, "tool_calls": [call]}
    elif line.startswith("slow "):
        yield from ({"content": f"word{n} "} for n in range(int(line.split()[1])))
    else:
        remembered = [one for one in said.splitlines() if one.startswith("- [")]
        yield {"role": "assistant", "content": f"You said: {line} "}
        yield {"content": f"({len(messages)} messages)"}
        if remembered:
            yield {"content": f"\nI remember: {remembered[0]}"}


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    file = Path(sys.argv[1])
    file.with_suffix(".new").write_text(str(server.server_port))
    file.with_suffix(".new").replace(file)
    server.serve_forever()
