"""Telling an error report from an answer."""

from __future__ import annotations

import re

LONGEST_REPORT = 600
"""Characters. A longer text that begins like an error report is taken for an answer that quotes one."""

_STATUS = r"(?:401|402|403|404|408|413|422|429|500|502|503|504|529)"
_STATUS_NAMES = (
    r"(?:bad request|unauthorized|forbidden|too many requests|internal (?:server )?error|bad gateway|gateway time-?out"
    r"|service (?:temporarily )?unavailable|request entity too large|payload too large|overloaded)"
)
_END = r"\s*(?:[.,:;!(\[{<-]|$)"

_SHAPES = (
    # "Error: …", "API Error (…)", "LLM request error: …", "**Error:** …"
    r"(?:[\w/]+ ){0,3}(?:error|exception|failure)s?\b\W{0,3}(?::|\()",
    r"(?:\w+ )?error\b(?: code| status)?:? *" + _STATUS + _END,
    # "openai.RateLimitError: …", "java.net.ConnectException: …"
    r"(?-i:(?:\w+\.)*[A-Z]\w*(?:Error|Exception|Timeout))" + _END,
    r"traceback \(most recent call last\)",
    # "HTTP/1.1 502 Bad Gateway", "Status code: 503", "429 Too Many Requests", "Service Unavailable"
    r"http(?:/[\d.]+)? (?:error |status )?" + _STATUS + r"\b",
    r"(?:http )?status(?: code)?:? *" + _STATUS + r"\b",
    rf"(?:{_STATUS}\W{{0,3}})?{_STATUS_NAMES}{_END}",
    rf"{_STATUS} \w+ error\b|{_STATUS}{_END}",
    # "Rate limit exceeded", "You exceeded your current quota"
    r"(?:\w+ )?(?:rate[ -]?limit|quota)s?(?: [\w.-]+){0,3} (?:exceeded|reached)\b",
    r"you(?:'ve| have)? (?:exceeded|reached) your\b.{0,30}\b(?:quota|limit)",
    r"(?:the )?(?:\w+ )?request (?:timed out|failed|was (?:aborted|cancelled|rejected))(?: (?:with|after|due)\b|"
    + _END
    + ")",
    r"(?:\w+ )?connection (?:refused|reset|error|aborted|timed out|closed)(?: by peer)?" + _END,
    r"(?:the )?(?:server|model|service|api)(?: is| was)? (?:currently )?(?:overloaded|unavailable|had an error)\b",
    r"(?:an?|some) (?:\w+ )?error (?:has )?occurred\b(?=.{0,120}\b(?:request|api|server|response|try again|retry)\b)",
    r"(?:this model's )?maximum context length\b|prompt is too long|context[_ ]length[_ ]exceeded",
    r"(?:invalid|incorrect|missing) api key",
    # '{"error": …}', '{"type": "error", …}', '[{"error": …'
    r"\[?\s*\{\s*\"(?:errors?|detail)\"\s*:|\{\s*\"type\"\s*:\s*\"error\"",
    # Chinese, Japanese, Korean
    r"(?:\w{0,8} ?)(?:错误|錯誤|异常|異常|エラー|오류|에러)\s*[:：(（]",
    r"(?:请求|請求|连接|連接|调用|呼叫|网络|網路|服务器|伺服器|接口|模型)[^,，。]{0,6}"
    r"(?:失败|失敗|超时|逾時|错误|錯誤|繁忙)\s*(?:[:：。.!！(（]|[,，] ?[请請]|$)",
    r"(?:リクエスト|接続|通信|サーバー|API)[^、。]{0,8}(?:失敗しました|タイムアウトしました|拒否されました|エラー(?:です|が発生しました))",
    r"エラーが発生しました(?=.{0,60}(?:もう一度|再試行|後ほど|しばらく))",
    r"(?:요청|연결|서버|API)[^,.]{0,10}(?:실패했습니다|시간이 초과되었습니다|초과했습니다|오류가 발생했습니다)",
    # German, French, Spanish, Portuguese, Italian, Russian
    r"(?:\w+ )?(?:fehler|erreur|error de \w+|erro|errore|ошибка)\s*:",
)
_REPORT = re.compile(r"[\s\W]{0,8}?(?:" + "|".join(_SHAPES) + ")", re.IGNORECASE | re.DOTALL)
_PAGE = re.compile(
    r"\s*(?:<!doctype html|<html)\b.{0,2000}?<(?:title|h1)>[^<]{0,80}?(?:error|denied|" + _STATUS + r"\b)",
    re.IGNORECASE | re.DOTALL,
)


def looks_like_error(text: str) -> bool:
    """True when the text is an error report given in place of an answer.

    Several harnesses turn transport failures into reply text (QitOS 0.3.0 "API Error: …"), and proxies
    answer with error pages; such a text must never stand for a conversation. Only the beginning counts,
    and only short texts do (but for error pages): a real summary may well quote an error.
    """
    head = text.strip()
    if len(head) < LONGEST_REPORT and _REPORT.match(head):
        return True
    return _PAGE.match(head) is not None
