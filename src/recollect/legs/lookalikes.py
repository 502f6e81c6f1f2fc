"""Who may say the same as a memory: those that share its rarest words. Whether they do, others decide."""

from __future__ import annotations

import re

from recollect.domain.memory import EPISODE, Memory
from recollect.domain.query import Or, Term
from recollect.domain.question import Filter
from recollect.domain.scripts import has_unspaced, pieces_of
from recollect.legs import bm25
from recollect.legs.terms import terms_of
from recollect.ports import Store, TextIndex

QUERY_WORDS = 8
WORDS_LOOKED_AT = 64
CANDIDATES = 10
CANDIDATES_WITHOUT_PROJECT = 40
"""The filter cannot ask for "no project", so memories of projects are among them and must not crowd out the rest."""

WORD = re.compile(r"\w+")


def candidates(store: Store, text: TextIndex, draft: Memory) -> list[Memory]:
    """The memories of the same namespace and project that share the draft's rarest words, best BM25 first."""
    words = rarest_words(text, draft.content)
    if not words:
        return []
    scope = draft.scope
    limit = CANDIDATES if scope.project is not None else CANDIDATES_WITHOUT_PROJECT
    wanted = Filter(
        namespace=scope.namespace,
        project=scope.project,
        without_types=(EPISODE,),
        exclude=frozenset((draft.id,)),
    )
    matches = text.match(Or(tuple(Term(word) for word in words)), wanted, limit)
    scored = zip(bm25.scores(matches, (1.0, 1.0)).tolist(), matches.ids)
    best = sorted(scored, key=lambda pair: (-pair[0], pair[1]))[:limit]
    return store.records.fetch([id for _, id in best])


def rarest_words(text: TextIndex, content: str) -> list[str]:
    """The words of a text that the fewest memories hold: they find a twin if there is one, and cost little."""
    found = WORD.findall(content.lower())
    if has_unspaced(content):
        found = [piece for word in found for piece in pieces_of(word)]
    words = list(dict.fromkeys(found))[:WORDS_LOOKED_AT]
    terms = terms_of(text, words)
    flat = [term for _, own in terms for term in own]
    counted = dict(zip(flat, text.frequencies(flat)))
    known = [(min(counted[term] for term in own), word) for word, own in terms if own]
    return [word for count, word in sorted(known) if count][:QUERY_WORDS]
