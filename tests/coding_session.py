"""A made-up coding session, long enough for small windows to be compacted several times."""

from __future__ import annotations

from clew.messages import Image, Message, Text, ToolCall, ToolResult, Usage, assistant, system, tool, user

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def coding_session(turns: int = 8, steps: int = 4) -> list[Message]:
    """System prompt, then turns of a request, tool rounds (one with parallel calls), and an answer."""
    messages = [system("You are a careful coding agent.")]
    for turn in range(turns):
        messages.append(user(f"Task {turn}: make the parser accept form {turn}. 不要改动公共接口，端口是 8473。"))
        for step in range(steps):
            a, b = f"call_{turn}_{step}_a", f"call_{turn}_{step}_b"
            messages.append(
                assistant(
                    f"Reading part {step}.",
                    ToolCall(a, "bash", f'{{"command": "sed -n {step}p parser_{turn}.py"}}'),
                    ToolCall(b, "read", f'{{"path": "parser_{turn}.py"}}'),
                    usage=Usage(input=900, output=60),
                )
            )
            messages.append(tool(a, f"line {turn}.{step} of the file\n" * 40))
            messages.append(
                Message("tool", (ToolResult(b, (Text("a picture:"), Image(data=PIXEL, media_type="image/png"))),))
            )
        messages.append(assistant(f"Form {turn} is accepted now; 全部测试通过。", usage=Usage(input=1_000, output=40)))
    return messages
