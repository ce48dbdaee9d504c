"""English words whose forms have no common stem. Questions say "buy" ("when did she buy …"), answers "bought".

Forms that are as often another word are left out (ground, lives, rose, wound).
"""

from __future__ import annotations

_VERBS = """
arise arose arisen; awake awoke awoken; beat beaten; become became; begin began begun; bend bent;
bite bit bitten; bleed bled; blow blew blown; break broke broken; breed bred; bring brought;
build built; burn burnt; buy bought; catch caught; choose chose chosen; cling clung; come came; creep crept;
deal dealt; dig dug; draw drew drawn; dream dreamt; drink drank drunk; drive drove driven; eat ate eaten;
fall fell fallen; feed fed; feel felt; fight fought; find found; flee fled; fling flung; fly flew flown;
forbid forbade forbidden; forget forgot forgotten; forgive forgave forgiven; freeze froze frozen; get got gotten;
give gave given; go went gone; grow grew grown; hang hung; hear heard; hide hid hidden; hold held;
keep kept; kneel knelt; know knew known; lay laid; lead led; lean leant; leap leapt; learn learnt; leave left;
lend lent; light lit; lose lost; make made; mean meant; meet met; mistake mistook mistaken; pay paid;
prove proven; ride rode ridden; ring rang rung; rise risen; run ran; say said; see saw seen; seek sought;
sell sold; send sent; sew sewn; shake shook shaken; shine shone; shoot shot; show shown; shrink shrank shrunk;
sing sang sung; sink sank sunk; sit sat; sleep slept; slide slid; speak spoke spoken; spell spelt; spend spent;
spill spilt; spin spun; spit spat; spoil spoilt; spring sprang sprung; stand stood; steal stole stolen; stick stuck;
sting stung; stink stank stunk; strike struck stricken; strive strove striven; swear swore sworn; sweep swept;
swell swollen; swim swam swum; swing swung; take took taken; teach taught; tear tore torn; tell told; think thought;
throw threw thrown; tread trod trodden; understand understood; undertake undertook undertaken; undo undid undone;
wake woke woken; wear wore worn; weave wove woven; weep wept; win won; withdraw withdrew withdrawn;
write wrote written; overcome overcame; rebuild rebuilt; rewrite rewrote rewritten; redo redid redone; oversee oversaw
"""

_NOUNS = """
child children; man men; woman women; person people; foot feet; tooth teeth; goose geese; mouse mice;
wife wives; knife knives; half halves; shelf shelves; wolf wolves; loaf loaves; thief thieves;
index indices; vertex vertices; matrix matrices; criterion criteria; phenomenon phenomena; analysis analyses;
 crisis crises; hypothesis hypotheses; thesis theses; schema schemata
"""

_ADJECTIVES = "good better best; bad worse worst"


def _forms(lines: str) -> dict[str, str]:
    groups = (line.split() for line in lines.split(";"))
    return {form: base for base, *forms in groups for form in forms}


BASES = _forms(_VERBS) | _forms(_NOUNS) | _forms(_ADJECTIVES)
"""The base form of each irregular one."""
