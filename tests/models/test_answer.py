"""When a reply counts as an answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.errors import BadReply, EmptyReply, ModelError, RefusedReply, TruncatedReply
from clew.messages import Message, Thinking, ToolCall, Usage, assistant
from clew.models import Reply, answer_text
from clew.models.error_text import LONGEST_REPORT, looks_like_error

REPORTS = [
    "API Error: Connection error.",
    "Error: 500",
    "error: something went wrong",
    "**Error:** the model did not answer",
    "LLM request error: timed out",
    "Error code: 429 - {'error': {'message': 'Rate limit reached'}}",
    "Error 503",
    "Exception: no reply",
    "litellm.RateLimitError: RateLimitError: OpenAIException - slow down",
    "openai.APITimeoutError: Request timed out.",
    "ConnectionError: HTTPSConnectionPool(host='api.example.org', port=443)",
    "java.net.SocketTimeoutException: Read timed out",
    'Traceback (most recent call last):\n  File "a.py", line 1',
    "HTTP/1.1 502 Bad Gateway",
    "HTTP 503",
    "Status code: 500",
    "429 Too Many Requests",
    "502: bad gateway",
    "503",
    "Service Unavailable",
    "Internal Server Error",
    "Overloaded",
    "Rate limit exceeded, try again in 20s.",
    "Rate limit for gpt-5 exceeded",
    "You exceeded your current quota, please check your plan and billing details.",
    "Request timed out.",
    "The request failed with status 500",
    "Connection refused",
    "Connection reset by peer",
    "The server is overloaded",
    "The server had an error while processing your request. Sorry about that!",
    "An error occurred while processing your request. Please try again later.",
    "An unexpected error occurred: request could not be completed",
    "This model's maximum context length is 8192 tokens.",
    "prompt is too long: 210000 tokens > 200000 maximum",
    "Invalid API key provided",
    '{"error": {"message": "Overloaded", "type": "overloaded_error"}}',
    '{"type": "error", "error": {"type": "api_error"}}',
    '[{"error": {"code": 503, "message": "unavailable"}}]',
    '{"detail": "Not authenticated"}',
    "<html>\n<head><title>502 Bad Gateway</title></head>\n<body></body></html>",
    "<!DOCTYPE html><html><head><title>Error 524: a timeout occurred</title>" + "<p>x</p>" * 400,
    "错误：请求超时",
    "API 错误: 500",
    "请求失败，请稍后重试",
    "服务器内部错误。",
    "网络连接超时",
    "エラー: タイムアウト",
    "APIエラー：503",
    "リクエストに失敗しました",
    "エラーが発生しました。しばらくしてからもう一度お試しください。",
    "오류: 요청 시간 초과",
    "요청이 실패했습니다. 다시 시도해 주세요.",
    "서버 오류가 발생했습니다.",
    "Fehler: Zeitüberschreitung",
    "Erreur : délai dépassé",
    "Error de conexión: tiempo de espera agotado",
    "Ошибка: превышено время ожидания",
]

ANSWERS = [
    "The user asked to fix the login error. The cause was a stale token; the error is gone.",
    "Error handling in client.py was rewritten; all tests pass.",
    "Error-handling refactor: the retries now live in scheduler.py.",
    "Errors in the importer were traced to time zones.",
    "## Errors\nNone so far.",
    "## Error handling\nRetries moved to scheduler.py.",
    "# Summary\nError: TypeError in parse() was fixed.",
    "500 records were migrated and three were rejected.",
    "429 of 430 tests pass; the last one fails with HTTP 503.",
    "404 page redesigned as asked.",
    "Connection error handling was added to the client.",
    "Connection pooling works; connection refused errors are retried.",
    "Request timeouts are now configurable.",
    "The request failed because of a missing header, which I added in api.py.",
    "Rate limits are read from the settings file.",
    "Quota checks were added to the upload route.",
    "The server was moved to port 8080 and returns 200.",
    "An error occurred in the test run: test_parse fails on Windows. The user wants it fixed first.",
    "TypeErrors are now caught at the boundary.",
    "Exceptions are typed; see errors.py.",
    "错误处理已经重构，测试全部通过。",
    "请求失败的原因是缺少请求头，已经修复。",
    "请求失败，因为缺少请求头，已经修复。",
    "用户报告登录错误，原因是令牌过期。",
    "服务器迁移已经完成。",
    "エラーの原因はトークンの期限切れでした。修正済みです。",
    "エラーが発生しましたが、原因は設定ファイルの誤りでした。",
    "リクエストの処理を修正しました。",
    "오류의 원인은 만료된 토큰이었습니다.",
    "서버 이전이 완료되었습니다.",
    "Fehlerbehandlung überarbeitet; alle Tests laufen.",
    '{"facts": ["the error was fixed"]}',
    "<html><head><title>Invoices</title></head></html>",
]


@pytest.mark.parametrize("text", REPORTS)
def test_reports_are_recognised(text: str) -> None:
    assert looks_like_error(text)
    assert looks_like_error(f"\n  {text}\n")
    with pytest.raises(BadReply) as caught:
        answer_text(Reply(assistant(text)))
    assert caught.value.raw == text.strip()


@pytest.mark.parametrize("text", ANSWERS)
def test_answers_about_errors_are_answers(text: str) -> None:
    assert not looks_like_error(text)
    assert answer_text(Reply(assistant(f" {text}\n"))) == text


def test_a_long_text_that_begins_with_an_error_quotes_it() -> None:
    assert not looks_like_error(
        "Error: 500 came back from the server. " + "The user asked why. " * (LONGEST_REPORT // 20)
    )


@given(st.text(st.characters(exclude_categories=()), max_size=700))
def test_any_text_gets_a_verdict(text: str) -> None:
    looks_like_error(text)


@pytest.mark.parametrize(
    "text", ["error " * 90, "a " * 290, "<html>" * 20_000, "[" * 500, " " * 100_000, "x.Y" * 190, "错误" * 299]
)
def test_no_text_takes_long(text: str) -> None:
    assert not looks_like_error(text)


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (Reply(assistant("I cannot help."), "refusal"), RefusedReply),
        (Reply(assistant("The user ask"), "length"), TruncatedReply),
        (Reply(assistant(""), "length"), TruncatedReply),
        (Reply(assistant("partial"), "error"), BadReply),
        (Reply(assistant("")), EmptyReply),
        (Reply(assistant(" \n")), EmptyReply),
        (Reply(Message("assistant")), EmptyReply),
        (Reply(assistant(Thinking("hm"))), EmptyReply),
        (Reply(assistant(ToolCall("c1", "bash")), "tool_calls"), EmptyReply),
    ],
)
def test_what_is_no_answer_has_its_own_error(reply: Reply, error: type[ModelError]) -> None:
    reply = Reply(reply.message, reply.finish_reason, Usage(input=7, output=3))
    with pytest.raises(error) as caught:
        answer_text(reply)
    assert type(caught.value) is error
    assert caught.value.raw == reply.text.strip()
    assert caught.value.meta == {"usage": Usage(input=7, output=3), "finish_reason": reply.finish_reason}
