"""Words that say nothing about what is looked for. Only queries leave them out, and only beside others.

Ours: short lists of function words and of the words questions are made of. Of Chinese, Japanese and
Korean they are terms of the tokeniser, two characters, so there are few: most pairs of function
characters are parts of real words as well.
"""

from __future__ import annotations

_ENGLISH = """
a about after again all also am an and any are aren't as at be because been before being but by can can't could
couldn't did didn't do does doesn't doing don't done during each else ever every for from get gets getting got had
hadn't has hasn't have haven't having he her here hers herself him himself his how i i'd i'll i'm i've if in into is
isn't it it's its itself just let let's many may me might mine more most much must my myself no nor not now of off on
once only onto or other ought our ours ourselves out over own please shall she should shouldn't so some such than that
the their theirs them themselves then there these they they're this those through to too under until up upon us very
was wasn't we we're we've were weren't what when where which while who whom whose why will with won't would wouldn't
you you're you've your yours yourself yourselves
"""

_CHINESE = """
什么 怎么 怎样 这么 那么 多少 哪里 哪儿 哪个 哪些 哪位 为何 如何 是否 请问 一下 我们 你们 他们 她们 它们 咱们
这个 那个 这些 那些 是什 么是 是谁 谁是 是不 不是 有没 没有 的是 是的 是在 在哪 是哪 是多
了吗 的吗 么的 了什 做什 么样 为什
"""

_JAPANESE = """
です ます した して する いる ある から まで では には とは のは のが のを なの ので のに でし まし せん たい ない
なに どこ いつ だれ どれ どの これ それ あれ この その あの ここ そこ ください さい って てい った いま
すか ました ません
"""

_KOREAN = """
에서 으로 까지 부터 에게 한테 하고 하는 하다 했다 합니 입니 니다 습니 니까 어요 해요 세요 주세 있는 있다
없는 없다 무엇 어디 언제 누구 이다 에는 에도 그리 그런 이런 저런
"""

STOP_WORDS = frozenset(_ENGLISH.replace("'", "").split())
"""Folded, not stemmed, without apostrophes: `dont`."""

STOP_PAIRS = frozenset(pair for text in (_CHINESE, _JAPANESE, _KOREAN) for pair in text.split() if len(pair) == 2)
"""Pairs of characters, as the tokeniser makes them."""

PARTICLES = frozenset("吗呢啊呀嘛")
"""Chinese particles: a pair that has one says less than the pairs beside it."""

STOP_CHARACTERS = frozenset(
    "".join(_CHINESE.split()) + "的了是在我你他她它这那有不没和就都也很把被让给呢吗吧啊去来想要能会可以说做上中"
)
"""Chinese characters that say nothing by themselves."""
