"""Is this remembered already? The text index proposes, term-set similarity and its guard decide."""

from __future__ import annotations

import re
from collections.abc import Iterable

from recollect.domain.memory import EPISODE, Link, Memory
from recollect.domain.query import Or, Term
from recollect.domain.question import Filter
from recollect.domain.scripts import has_unspaced, pieces_of
from recollect.legs import bm25
from recollect.legs.terms import terms_of
from recollect.ports import LinkIndex, Store, TextIndex
from recollect.stages import similarity
from recollect.stages.merging import may_be_one

QUERY_WORDS = 8
WORDS_LOOKED_AT = 64
CANDIDATES = 10
CANDIDATES_WITHOUT_PROJECT = 40
"""The filter cannot ask for "no project", so memories of projects are among them and must not crowd out the rest."""
MAX_CHAIN = 10

WORD = re.compile(r"\w+")


def find_twin(store: Store, draft: Memory, overlap: float) -> tuple[Memory, str] | None:
    """The memory that says the same as the draft, with the reason; never one that something else has superseded."""
    if store.text is None or not similarity.comparable(draft.content):
        return None
    for candidate in candidates(store, store.text, draft):
        verdict = similarity.compare(draft.content, candidate.content, overlap)
        if verdict.same and may_be_one(draft, candidate):
            head = standing(store, candidate)
            if head.id == candidate.id or similarity.same_fact(draft.content, head.content, overlap):
                return head, f"near-duplicate, {verdict.reason}"
    return None


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


def standing(store: Store, memory: Memory) -> Memory:
    """The head of the chain of memories that superseded this one; itself if none did."""
    if store.links is None:
        return memory
    seen = {memory.id}
    for _ in range(MAX_CHAIN):
        newer = [id for id in _superseding(store.links, memory.id) if id not in seen]
        found = store.records.fetch(newer[:1])
        if not found:
            break
        memory = found[0]
        seen.add(memory.id)
    return memory


def _superseding(links: LinkIndex, id: str) -> Iterable[str]:
    found: list[Link] = links.links([id], ("supersedes",))
    return (link.source for link in reversed(found) if link.target == id)
