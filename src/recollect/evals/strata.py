"""Questions for a private eval set, made from a store by rule: exact, typo, multi-hop; paraphrases from elsewhere.

exact: a run of words that one memory alone holds. typo: the same, misspelt. multi-hop: words of one memory and a word
of another that a link or a rare shared word connects to it; both are relevant. What is sensitive is never used.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recollect.domain.errors import RecollectError
from recollect.domain.memory import Memory
from recollect.domain.question import Filter
from recollect.evals.typos import chance, misspelt
from recollect.ports import Store
from recollect.stages.stopwords import is_stop_word

Paraphrase = Callable[[str], str]
"""A text in, a question about it in other words out."""

PAGE = 1000
MAX_MEMORIES = 50_000
PHRASE = (4, 3, 2)
SHARED_BY = 3
SHORTEST = 4
HOP_WORDS = 3
WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
BREAK = re.compile(r"[.!?;:\n]")


@dataclass(frozen=True, slots=True)
class Made:
    """One question: a line of the file that `eval run --questions` reads."""

    query: str
    relevant: tuple[str, ...]
    stratum: str
    namespace: str

    def line(self) -> dict[str, Any]:
        return {
            "query": self.query,
            "relevant": list(self.relevant),
            "stratum": self.stratum,
            "namespace": self.namespace,
        }


@dataclass(frozen=True, slots=True)
class _Read:
    """A memory with its words: as written, by sentence, and lower-cased."""

    memory: Memory
    runs: tuple[tuple[str, ...], ...]
    words: frozenset[str]


def build(
    store: Store, *, per_stratum: int, seed: int, namespace: str, paraphrase: Paraphrase | None = None,
    paraphrases: Mapping[str, str] | None = None,
) -> list[Made]:  # fmt: skip
    """At most `per_stratum` questions of each kind; the same store and seed give the same questions."""
    read = [_read(one) for one in memories(store, namespace) if not one.sensitive]
    counts = Counter(word for one in read for word in one.words)
    phrases = _phrase_counts(read)
    order = sorted(read, key=lambda one: chance("order", seed, one.memory.id).random())
    exact = list(itertools.islice(_exact(order, counts, phrases), per_stratum))
    rest = itertools.islice(_exact(list(reversed(order)), counts, phrases), per_stratum)
    typo = [made for one in rest if (made := _typo(one, seed, counts)) is not None]
    hops = list(itertools.islice(_multi_hop(store, order, counts), per_stratum))
    other = itertools.islice(_paraphrased(order, paraphrase, paraphrases or {}), per_stratum)
    return [*exact, *typo, *hops, *other]


def memories(store: Store, namespace: str) -> Iterator[Memory]:
    """The memories of a namespace in the order of their ids, at most MAX_MEMORIES."""
    after: str | None = None
    for _ in range(MAX_MEMORIES // PAGE):
        page = store.records.scan(Filter(namespace=namespace), order="id", limit=PAGE, after=after)
        yield from page
        if len(page) < PAGE:
            return
        after = page[-1].id


def _read(memory: Memory) -> _Read:
    runs = tuple(tuple(WORD.findall(part)) for part in BREAK.split(memory.content))
    return _Read(memory, runs, frozenset(word.lower() for run in runs for word in run))


def _phrase_counts(read: Sequence[_Read]) -> Counter[tuple[str, ...]]:
    """In how many memories each short run of words occurs."""
    return Counter(phrase for one in read for phrase in {_key(window) for window in _windows(one)})


def _windows(one: _Read) -> Iterator[tuple[str, ...]]:
    for size in PHRASE:
        for run in one.runs:
            yield from (run[start : start + size] for start in range(len(run) - size + 1))


def _key(words: Sequence[str]) -> tuple[str, ...]:
    return tuple(word.lower() for word in words)


def _exact(order: Sequence[_Read], counts: Counter[str], phrases: Counter[tuple[str, ...]]) -> Iterator[Made]:
    """The rarest run of words of each memory, if nobody else has it; runs of stop words say nothing."""
    for one in order:
        own = [
            window
            for window in dict.fromkeys(_windows(one))
            if phrases[_key(window)] == 1 and not is_stop_word(window[0]) and not is_stop_word(window[-1])
        ]
        if own:
            best = min(own, key=lambda window: (sum(counts[word] for word in _key(window)) / len(window), window))
            yield Made(" ".join(best), (one.memory.id,), "exact", one.memory.scope.namespace)


def _typo(made: Made, seed: int, counts: Counter[str]) -> Made | None:
    """One error, or two in a question of some length; never another word of the store."""
    edits = 1 + (len(made.query) > 20 and chance("edits", seed, made.query).random() < 0.5)
    wrong = misspelt(made.query, seed, edits, known=lambda word: word in counts)
    return None if wrong is None else Made(wrong, made.relevant, "typo", made.namespace)


def _multi_hop(store: Store, order: Sequence[_Read], counts: Counter[str]) -> Iterator[Made]:
    by_id = {one.memory.id: one for one in order}
    taken: set[tuple[str, ...]] = set()
    for one, other in itertools.chain(_linked(store, order, by_id), _sharing(order, counts)):
        pair = tuple(sorted((one.memory.id, other.memory.id)))
        # The subject comes from the first memory, what is asked about it from the second.
        subject = _telling(one.words - other.words, counts)[:HOP_WORDS]
        asked = _telling(other.words - one.words, counts)
        if pair in taken or len(subject) < 2 or not asked:
            continue
        taken.add(pair)
        query = " ".join((*subject, asked[len(asked) // 2]))
        yield Made(query, (one.memory.id, other.memory.id), "multi-hop", one.memory.scope.namespace)


def _linked(store: Store, order: Sequence[_Read], by_id: Mapping[str, _Read]) -> Iterator[tuple[_Read, _Read]]:
    """Memories that a link connects. A superseded one is never returned, so those links lead to nothing to ask for."""
    for one in order if store.links is not None else ():
        for link in store.links.links([one.memory.id]) if store.links is not None else ():
            other = by_id.get(link.target if link.source == one.memory.id else link.source)
            if other is not None and other is not one and link.type != "supersedes":
                yield one, other


def _sharing(order: Sequence[_Read], counts: Counter[str]) -> Iterator[tuple[_Read, _Read]]:
    """Memories that alone share a word with one or two others."""
    holders: dict[str, list[_Read]] = {}
    for one in order:
        for word in one.words:
            if 2 <= counts[word] <= SHARED_BY and len(word) >= SHORTEST and not word.isdigit():
                holders.setdefault(word, []).append(one)
    for word in sorted(holders):
        yield from itertools.combinations(holders[word], 2)


def _telling(words: frozenset[str], counts: Counter[str]) -> list[str]:
    """Words that carry a subject, the rarest first."""
    kept = [word for word in words if len(word) >= SHORTEST and not is_stop_word(word) and not word.isdigit()]
    return sorted(kept, key=lambda word: (counts[word], word))


def _paraphrased(order: Sequence[_Read], ask: Paraphrase | None, given: Mapping[str, str]) -> Iterator[Made]:
    """What the user wrote, then what the language model writes; a memory it fails on is passed over."""
    known = {one.memory.id: one.memory for one in order}
    for id, text in given.items():
        if id in known:
            yield Made(text, (id,), "paraphrase", known[id].scope.namespace)
    for one in order if ask is not None else ():
        if one.memory.id in given or ask is None:
            continue
        try:
            text = ask(one.memory.content).strip()
        except RecollectError:
            continue
        if text:
            yield Made(text, (one.memory.id,), "paraphrase", one.memory.scope.namespace)
