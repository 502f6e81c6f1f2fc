"""The words of a long prompt that tell most: most of a log or a source file stands in no memory at all."""

from __future__ import annotations

from dataclasses import replace

from recollect.domain.query import Term
from recollect.domain.question import Question
from recollect.domain.scripts import has_unspaced
from recollect.legs.terms import terms_of
from recollect.ports import TextIndex
from recollect.stages.lexing import humps, pieces
from recollect.stages.parse import MAX_PROSE, MAX_WORDS, join
from recollect.stages.prose import ends
from recollect.stages.stopwords import is_stop_word

MOST_LOOKED_AT = 1_000
SHORTEST = 3


def telling(index: TextIndex, question: Question) -> Question:
    """A prompt of more words than can be searched for, asking for the rarest that any memory holds, wherever they
    stand in it; every other question as it is."""
    if not (question.prose and question.cut):
        return question
    text = ends(question.text, MAX_PROSE)
    if has_unspaced(text):
        return question  # its words are pieces, and mean something only together
    parts = dict.fromkeys(part.lower() for piece in pieces(text) for part in (piece, *humps(piece)))
    words = [word for word in parts if len(word) >= SHORTEST and not is_stop_word(word)][:MOST_LOOKED_AT]
    terms = {word: own[0] for word, own in terms_of(index, words) if len(own) == 1}
    counts = dict(zip(terms, index.frequencies(list(terms.values())), strict=True))
    held = sorted((word for word in counts if counts[word]), key=lambda word: counts[word])[:MAX_WORDS]
    if not held:
        return question
    note = f"of {len(words)} words the {len(held)} rarest that memories hold were searched for"
    return replace(
        question,
        query=join("or", [Term(word) for word in held]),
        words=tuple(dict.fromkeys((*held, *words))),
        notes=(*question.notes[:-1], note),  # the last one told that only the first words were
    )
