"""English words whose forms no ending tells: went is a form of go, colour another spelling."""

from __future__ import annotations

# The word that all forms count as comes first. Left out are forms that are as often another word:
# left, bit, rose, lives, leaves, ground.
_VERBS = """
arise arose arisen; awake awoke awoken; beat beaten; become became; begin began begun; bend
bent; bleed bled; blow blew blown; break broke broken; breed bred; bring brought; build built;
burn burnt; buy bought; catch caught; choose chose chosen; cling clung; come came; creep crept;
deal dealt; dig dug; draw drew drawn; dream dreamt; drink drank drunk; drive drove driven; eat
ate eaten; fall fell fallen; feed fed; feel felt; fight fought; find found; flee fled; fly flew
flown; forbid forbade forbidden; forget forgot forgotten; forgive forgave forgiven; freeze froze
frozen; get got gotten; give gave given; go went gone; grow grew grown; hang hung; hear heard;
hide hid hidden; hold held; keep kept; kneel knelt; know knew known; lay laid; lead led; leap
leapt; learn learnt; lend lent; light lit; lose lost; make made; mean meant; meet met; mistake
mistook mistaken; overcome overcame; override overrode overridden; overwrite overwrote
overwritten; pay paid; prove proven; redo redid redone; rewrite rewrote rewritten; ride rode
ridden; ring rang rung; rise risen; run ran; say said; see saw seen; seek sought; sell sold;
send sent; shake shook shaken; shine shone; shoot shot; show shown; shrink shrank shrunk; sing
sang sung; sink sank sunk; sit sat; sleep slept; slide slid; speak spoke spoken; spend spent;
spin spun; stand stood; steal stole stolen; stick stuck; sting stung; strike struck; strive
strove; swear swore sworn; sweep swept; swim swam swum; swing swung; take took taken; teach
taught; tear tore torn; tell told; think thought; throw threw thrown; understand understood;
undo undid undone; wake woke woken; wear wore worn; weave wove woven; win won; withdraw withdrew
withdrawn; write wrote written
"""
_PLURALS = """
analysis analyses; appendix appendices; bacterium bacteria; child children; criterion criteria;
foot feet; half halves; hypothesis hypotheses; index indices; knife knives; man men; matrix
matrices; mouse mice; nucleus nuclei; person people; phenomenon phenomena; radius radii; shelf
shelves; stimulus stimuli; synthesis syntheses; tooth teeth; vertex vertices; wife wives; woman
women
"""
# Spellings of words whose endings are regular: their stems are compared.
_SPELLINGS = """
airplane aeroplane; analysis analyse analyze; artifact artefact; behavior behaviour; catalog
catalogue; center centre; characterize characterise; color colour; customize customise; defense
defence; dialog dialogue; favor favour; favorite favourite; fiber fibre; flavor flavour; gray
grey; harbor harbour; honor honour; humor humour; initialize initialise; judgment judgement;
labor labour; license licence; linearize linearise; liter litre; localize localise; maximize
maximise; meter metre; minimize minimise; neighbor neighbour; neighborhood neighbourhood;
normalize normalise; optimize optimise; organize organise; program programme; randomize
randomise; realize realise; recognize recognise; rumor rumour; serialize serialise; stabilize
stabilise; summarize summarise; synchronize synchronise; theater theatre; tire tyre; tumor
tumour; utilize utilise; visualize visualise
"""


def _first_by_form(table: str) -> dict[str, str]:
    """Map each form of a table to the word that its row begins with."""
    firsts = {}
    for row in table.split(";"):
        word, *forms = row.split()
        for form in forms:
            firsts[form] = word
    return firsts


# The word that each irregular form is a form of, and the other spelling of each spelling.
PLAIN_FORMS = _first_by_form(f"{_VERBS};{_PLURALS}")
OTHER_SPELLINGS = _first_by_form(_SPELLINGS)
