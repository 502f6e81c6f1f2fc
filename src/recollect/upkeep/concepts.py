"""Concepts by a configured model: what waits is read in the background, and what it names becomes `mentions` links.

What the model marked is kept as every model's work is kept, in the vector index under the extractor's id: one row and
one stretch of the text for each name, (1, 0) for what the text is about and (0, 1) for what it names. So the outbox
knows what waits, a changed text waits again, a forgotten one leaves nothing, and a copy of the store copies it.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np

from recollect import ports
from recollect.domain.changes import AddLink, Change, DropLink
from recollect.domain.errors import NotFound
from recollect.domain.memory import MENTIONS, Link, Memory, content_hash
from recollect.domain.query import Phrase
from recollect.domain.question import Filter
from recollect.domain.scripts import letters
from recollect.domain.subjects import MAX_NAME_WORDS, Words, name, subject
from recollect.ports import MARKS, Concepts, Embedded, Extractor, Pending, Store, TextIndex, VectorIndex

log = logging.getLogger(__name__)

BATCH = 4
MAX_ATTEMPTS = 5
"""A text that failed so often is left alone until it changes, another model reads it, or the concepts are dropped."""
LONGEST_RUN = 32
"""More letters of a script without spaces are a sentence and no name, and more words than an index is asked for."""
MOST_SHARING = 20
"""A name that stands in more memories than this leads nowhere in particular, whoever is about it."""
MOST_LINKS = 20
PAGE = 500
UNAVAILABLE = "the model is unavailable"
PROBE = "Ana keeps the minutes of the meeting."

ABOUT = (1.0, 0.0)
NAMED = (0.0, 1.0)


@dataclass(frozen=True, slots=True)
class ExtractReport:
    """What a run did. `stopped` tells why it ended before the outbox was empty."""

    extracted: int = 0
    failed: int = 0
    linked: int = 0
    stopped: str | None = None


@dataclass(frozen=True, slots=True)
class Marked:
    """The concepts of one memory as the plain words of names."""

    about: Words = ()
    names: frozenset[Words] = frozenset()


@dataclass(slots=True)
class _Run:
    extracted: int = 0
    failed: int = 0
    linked: int = 0
    tried: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])


def extract_backlog(
    store: Store,
    extractor: Extractor | None,
    *,
    now: datetime,
    budget_seconds: float | None = None,
    stop: Callable[[], bool] | None = None,
) -> ExtractReport:
    """Read what waits, one text at a time, until nothing is left, the time is up or `stop` says so.

    A model that is down ends the run and changes nothing. A text of which the model makes nothing usable is noted as
    failed, tried again after a pause that doubles, and given up after MAX_ATTEMPTS.
    """
    vectors, index = store.vectors, store.text
    if extractor is None or vectors is None or index is None or store.links is None:
        return ExtractReport(stopped="no extractor")
    run = _Run()
    deadline = math.inf if budget_seconds is None else time.monotonic() + budget_seconds
    waiting: list[Pending] = []
    while (stopped := _must_stop(run, deadline, stop)) is None:
        waiting = waiting or _next(vectors, extractor.id, run)
        if not waiting:
            break
        one = waiting.pop(0)
        run.tried.add((one.id, one.content_hash))
        if not _read(store, vectors, index, extractor, one, run, now):
            stopped = UNAVAILABLE
            break
    return ExtractReport(run.extracted, run.failed, run.linked, stopped)


def _must_stop(run: _Run, deadline: float, stop: Callable[[], bool] | None) -> str | None:
    if stop is not None and stop():
        return "asked to stop"
    # The first text is always read, so that every call gets further.
    return "out of time" if run.tried and time.monotonic() >= deadline else None


def _next(vectors: VectorIndex, model: str, run: _Run) -> list[Pending]:
    """The next texts that this run has not tried; those that failed are listed last, fewest attempts first."""
    listed = vectors.missing(model, BATCH + run.failed)
    fresh = [one for one in listed if (one.id, one.content_hash) not in run.tried and one.attempts < MAX_ATTEMPTS]
    return fresh[:BATCH]


def _read(
    store: Store,
    vectors: VectorIndex,
    index: TextIndex,
    extractor: Extractor,
    one: Pending,
    run: _Run,
    now: datetime,
) -> bool:
    """Links first and the mark last: who is stopped between them does both again. False when the model is down."""
    try:
        concepts = extractor.extract(one.content)
    except Exception as error:
        if not _is_alive(extractor):
            return False
        log.warning("memory %s could not be read for concepts: %s", one.id, type(error).__name__)
        vectors.put(extractor.id, [Embedded(one.id, one.content_hash, None, error=type(error).__name__)])
        run.failed += 1
        return True
    held = [memory for memory in store.records.fetch([one.id]) if content_hash(memory.content) == one.content_hash]
    if not held:  # changed or forgotten meanwhile: what waits now is another text
        return True
    marked = _words(one.content, concepts)
    try:
        run.linked += _link(store, index, extractor.id, held[0], marked, now)
    except NotFound:  # the other end was forgotten meanwhile; this text is still waiting
        return True
    vectors.put(extractor.id, [_entry(one, concepts)])
    run.extracted += 1
    return True


def _is_alive(extractor: Extractor) -> bool:
    """Whether the model still reads a harmless text: only then was it the text that was bad."""
    try:
        extractor.extract(PROBE)
    except Exception:
        return False
    return True


# --- marks ----------------------------------------------------------------------------------------------------------


def _entry(one: Pending, concepts: Concepts) -> Embedded:
    """The marks as rows; a text that names nothing has one row and no stretch."""
    about = () if concepts.about is None else (concepts.about,)
    kinds = [ABOUT for _ in about] + [NAMED for _ in concepts.names]
    return Embedded(one.id, one.content_hash, np.array(kinds or [NAMED], np.float32), (*about, *concepts.names))


def _words(content: str, concepts: Concepts) -> Marked:
    about = () if concepts.about is None else name(content[slice(*concepts.about)])
    return Marked(about, frozenset(name(content[slice(*one)]) for one in concepts.names) - {()})


def marks(store: Store, model: str, ids: Sequence[str]) -> dict[str, Marked]:
    """What the model marked in these memories."""
    if store.vectors is None:
        return {}
    texts = {memory.id: memory.content for memory in store.records.fetch(ids)}
    found: dict[str, Marked] = {}
    for one in store.vectors.stored(model, list(texts)):
        text, kept = texts[one.id], one.vectors
        if kept is None or content_hash(text) != one.content_hash:
            continue
        rows = list(zip(kept[:, 0].tolist(), one.passages))
        about = next((stretch for is_about, stretch in rows if is_about), None)
        found[one.id] = _words(text, Concepts(about, tuple(stretch for is_about, stretch in rows if not is_about)))
    return found


# --- links ----------------------------------------------------------------------------------------------------------


def _link(store: Store, index: TextIndex, model: str, memory: Memory, marked: Marked, now: datetime) -> int:
    """Make the links of one memory what its concepts say, in both directions; how many are new."""
    subjects = {subject(memory), marked.about} - {()}
    near = _sharing(index, memory, {*marked.names, *subjects})
    known = marks(store, model, sorted({id for ids in near.values() for id in ids}))
    named = sorted(marked.names & near.keys())
    targets = {id for name in named for id in near[name] if known.get(id, Marked()).about == name}
    for ids in index.about(named, _beside(memory), MOST_SHARING).values():
        targets.update(ids)
    sources = {id for about in subjects & near.keys() for id in near[about] if about in known.get(id, Marked()).names}
    both = store.records.fetch(sorted(targets | sources))
    beside = [other.id for other in both if other.scope.project == memory.scope.project]
    wanted = {(memory.id, other) for other in [id for id in beside if id in targets][:MOST_LINKS]}
    wanted |= {(other, memory.id) for other in [id for id in beside if id in sources][:MOST_LINKS]}
    held = {(link.source, link.target) for link in _held(store, [memory.id])}
    while len(held) >= ports.MOST_LINKS and (stale := held - wanted):  # there may be more behind them
        store.records.write([DropLink(Link(one, MENTIONS, other)) for one, other in sorted(stale)])
        held = {(link.source, link.target) for link in _held(store, [memory.id])}
    changes: list[Change] = [DropLink(Link(one, MENTIONS, other)) for one, other in sorted(held - wanted)]
    changes += [AddLink(Link(one, MENTIONS, other, now)) for one, other in sorted(wanted - held)]
    if changes:
        store.records.write(changes)
    return len(wanted - held)


def _held(store: Store, ids: Sequence[str]) -> list[Link]:
    return [] if store.links is None else store.links.links(ids, (MENTIONS,))


def _beside(memory: Memory) -> Filter:
    """Everything else in the memory's namespace and project; without a project, in all of them."""
    return Filter(memory.scope.namespace, memory.scope.project, exclude=frozenset({memory.id}))


def _sharing(index: TextIndex, memory: Memory, names: Iterable[Words]) -> Mapping[Words, tuple[str, ...]]:
    """For each name the other memories in whose text it stands. What stands in too many means little and is left out:
    it would give one memory more links than a recall should read."""
    found: dict[Words, tuple[str, ...]] = {}
    for words in sorted(names):
        if len(letters(" ".join(words))) > LONGEST_RUN:
            continue
        matches = index.match(Phrase(words[: 2 * MAX_NAME_WORDS]), _beside(memory), MOST_SHARING + 1)
        if len(matches.ids) <= MOST_SHARING:
            found[words] = matches.ids
    return found


def drop_concepts(store: Store, extractor: Extractor | None) -> int:
    """Take away everything that models marked and linked; how many links. Where extraction is on, it starts anew."""
    dropped = 0
    for namespace in sorted(store.care.size().namespaces):
        after: str | None = None
        while page := store.records.scan(Filter(namespace), "id", PAGE, after):
            after = page[-1].id
            while links := _held(store, [memory.id for memory in page]):
                store.records.write([DropLink(link) for link in links])
                dropped += len(links)
    if store.vectors is not None:
        # A model that has only failed so far has no vectors: the current one is named on its own.
        models = {*store.vectors.models(), *([] if extractor is None else [extractor.id])}
        for model in sorted(one for one in models if one.startswith(MARKS)):
            store.vectors.forget(model)
    return dropped
