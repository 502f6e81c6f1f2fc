"""remember: each draft becomes a new memory or strengthens the one that says the same, in one durable transaction.

A write that loses a race (Conflict, NotFound) is decided anew, because what it collided with is now there to be found.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice

from recollect.domain.changes import Put
from recollect.domain.errors import Conflict, InvalidInput, NotFound
from recollect.domain.gist import gist
from recollect.domain.lookup import MOST_ALIKE, Lookup, Wanted
from recollect.domain.memory import EPISODE, Memory, Receipt, Scope, same_text
from recollect.ports import Store
from recollect.stages import similarity
from recollect.stages.merging import may_be_one, strengthened
from recollect.writing.drafts import Draft, WritePolicy, to_memory
from recollect.writing.duplicates import find_twin, standing

log = logging.getLogger(__name__)

BATCH = 500
ATTEMPTS = 5

Place = tuple[str, str | None, str]
Gist = tuple[Scope, bool, int]


@dataclass(frozen=True, slots=True)
class Checked:
    """A validated draft on its way into the store."""

    memory: Memory
    captured: bool
    redacted: tuple[str, ...]
    """The kinds of secrets that were hidden in it."""


@dataclass(slots=True)
class _Batch:
    """What the transaction will write, findable by the drafts that come later in the same batch."""

    store: Store
    policy: WritePolicy
    puts: dict[str, Put] = field(default_factory=dict[str, Put])
    keys: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    texts: dict[Place, str] = field(default_factory=dict[Place, str])
    gists: dict[Gist, list[str]] = field(default_factory=lambda: defaultdict[Gist, list[str]](list))
    stored: dict[str, Memory] = field(default_factory=dict[str, Memory])
    """Those in the store that may say the same as one of the drafts."""

    def add(self, put: Put) -> None:
        memory = put.memory
        known = memory.id in self.puts
        self.puts[memory.id] = put
        if memory.key is not None:
            self.keys[memory.scope.namespace, memory.key] = memory.id
        if not known and put.expected_version is None and memory.type != EPISODE:
            self.texts.setdefault(_place(memory.scope, same_text(memory.content)), memory.id)
            if self.policy.dedupe and len(same := self.gists[_gist(memory)]) < MOST_ALIKE:
                same.append(memory.id)

    def current(self, memory: Memory) -> Memory:
        """The memory as this batch will leave it."""
        return self.puts[memory.id].memory if memory.id in self.puts else memory


def remember(store: Store, draft: Draft, *, id: str, now: datetime, policy: WritePolicy) -> Receipt:
    """Store one draft durably; the receipt tells whether it was added, merged, skipped or added in redacted form."""
    return remember_checked(store, [check(draft, id=id, now=now, policy=policy)], policy)[0]


def check(draft: Draft, *, id: str, now: datetime, policy: WritePolicy) -> Checked:
    """The draft as it would be stored; InvalidInput where it may not be."""
    memory, redacted = to_memory(draft, id=id, now=now, policy=policy)
    return Checked(memory, draft.captured, redacted)


def remember_many(
    store: Store,
    drafts: Iterable[Draft],
    *,
    new_id: Callable[[], str],
    now: datetime,
    policy: WritePolicy,
    batch: int = BATCH,
) -> list[Receipt]:
    """Store many drafts, one transaction for each batch; receipts in the order of the drafts.

    InvalidInput names the position of the draft; the batches before it are stored, its own is not.
    """
    if not isinstance(drafts, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput("drafts must be a list of drafts", 'such as [recollect.Draft("the text")]', "drafts")
    receipts: list[Receipt] = []
    waiting = iter(drafts)
    while chunk := list(islice(waiting, batch)):
        candidates: list[Checked] = []
        for draft in chunk:
            try:
                candidates.append(check(draft, id=new_id(), now=now, policy=policy))
            except InvalidInput as error:
                place = f"drafts[{len(receipts) + len(candidates)}]"
                raise InvalidInput(f"{place}: {error.message}", error.hint, f"{place}.{error.field}") from error
        receipts += remember_checked(store, candidates, policy)
    return receipts


def remember_checked(store: Store, candidates: Sequence[Checked], policy: WritePolicy) -> list[Receipt]:
    """Decide and write in one transaction. A batch that loses a race is written one by one."""
    attempts = ATTEMPTS if len(candidates) == 1 else 1
    for attempt in range(1, attempts + 1):
        batch = _Batch(store, policy)
        found = _look_up(batch, candidates)
        receipts = [_decide(batch, *pair) for pair in zip(candidates, found)]
        try:
            if batch.puts:
                store.records.write(list(batch.puts.values()))
        except (Conflict, NotFound):
            if len(candidates) == 1 and attempt == attempts:
                raise
        else:
            for receipt in receipts:
                if receipt.duplicate_of is not None:
                    log.info("%s %s: %s", receipt.action, receipt.duplicate_of, receipt.reason)
            return receipts
    return [remember_checked(store, [candidate], policy)[0] for candidate in candidates]


def _look_up(batch: _Batch, candidates: Sequence[Checked]) -> list[Lookup]:
    """What the store holds of these drafts, asked once for all of a namespace."""
    asked: dict[str, list[int]] = defaultdict(list)
    for place, candidate in enumerate(candidates):
        asked[candidate.memory.scope.namespace].append(place)
    found = [Lookup()] * len(candidates)
    for namespace, places in asked.items():
        wanted = [_wanted(candidates[place], batch.policy) for place in places]
        for place, answer in zip(places, batch.store.records.lookups(namespace, wanted)):
            found[place] = answer
    if batch.policy.dedupe:
        alike = dict.fromkeys(id for one in found for id in (one.content_id, *one.alike) if id is not None)
        batch.stored = {memory.id: memory for memory in batch.store.records.fetch(list(alike))}
    return found


def _wanted(candidate: Checked, policy: WritePolicy) -> Wanted:
    memory = candidate.memory
    asked = candidate.captured or (policy.dedupe and memory.type != EPISODE)
    return Wanted(memory.key, memory.content if asked else None, memory.scope.project, memory.scope.session)


def _decide(batch: _Batch, candidate: Checked, found: Lookup) -> Receipt:
    """The receipt for one draft; what it takes to make it true is put into the batch."""
    memory, scope = candidate.memory, candidate.memory.scope
    holder = found.key_id
    if holder is None and memory.key is not None:
        holder = batch.keys.get((scope.namespace, memory.key))
    if holder is not None:
        return Receipt(holder, "skipped", holder, "the key is taken: this was written before")
    if candidate.captured and found.buried:
        return Receipt(memory.id, "skipped", None, "tombstone: this text was forgotten on purpose")
    twin = _twin(batch, memory, found) if batch.policy.dedupe and memory.type != EPISODE else None
    if twin is None:
        return _add(batch, candidate, found)
    return _merge(batch, memory, *twin)


def _twin(batch: _Batch, memory: Memory, found: Lookup) -> tuple[Memory, str] | None:
    """The memory, stored or in this batch, that says the same."""
    holder = batch.stored.get(found.content_id or "")
    if holder is not None and _says_exactly(holder, memory) and standing(batch.store, holder).id == holder.id:
        return batch.current(holder), "the same text"
    inside = _twin_in_batch(batch, memory)
    if inside is not None:
        return inside
    alike = [batch.stored[id] for id in found.alike if id in batch.stored]
    twin = find_twin(batch.store, memory, alike, batch.policy.overlap)
    return None if twin is None else (batch.current(twin[0]), twin[1])


def _twin_in_batch(batch: _Batch, memory: Memory) -> tuple[Memory, str] | None:
    same = batch.texts.get(_place(memory.scope, same_text(memory.content)))
    if same is not None:
        holder = batch.puts[same].memory
        if _says_exactly(holder, memory):
            return holder, "the same text"
    for id in batch.gists.get(_gist(memory), ()):
        other = batch.puts[id].memory
        if may_be_one(memory, other):
            verdict = similarity.compare(memory.content, other.content, batch.policy.overlap)
            if verdict.same:
                return other, f"near-duplicate, {verdict.reason}"
    return None


def _says_exactly(holder: Memory, memory: Memory) -> bool:
    """For the same text secrecy is no obstacle: what turns out to be sensitive becomes so."""
    in_place = may_be_one(replace(memory, sensitive=holder.sensitive), holder)
    return in_place and similarity.same_names(holder.content, memory.content)


def _add(batch: _Batch, candidate: Checked, found: Lookup) -> Receipt:
    memory = candidate.memory
    # `once` closes the race between looking and writing. It knows only namespace and project, so it must not be asked
    # where the same text may rightly stand twice: episodes, sessions without a project, what has been superseded.
    once = (
        batch.policy.dedupe
        and memory.type != EPISODE
        and found.content_id is None
        and (memory.scope.project is not None or memory.scope.session is None)
        and _place(memory.scope, same_text(memory.content)) not in batch.texts
    )
    batch.add(Put(memory, once=once, revive=not candidate.captured, apart=not batch.policy.dedupe))
    if candidate.redacted:
        return Receipt(memory.id, "redacted", None, f"hidden: {', '.join(candidate.redacted)}")
    return Receipt(memory.id, "added")


def _merge(batch: _Batch, draft: Memory, existing: Memory, reason: str) -> Receipt:
    """What stands is confirmed; it also takes over the draft's key, so that a repeated call is recognised."""
    confirmed = strengthened(existing, draft, draft.updated_at, batch.policy.tags_limit)
    if existing.key is None and draft.key is not None:
        confirmed = replace(confirmed, key=draft.key, updated_at=draft.updated_at)
    if confirmed == existing:
        return Receipt(existing.id, "skipped", existing.id, reason)
    before = batch.puts.get(existing.id)
    if before is None:
        batch.add(Put(confirmed, expected_version=existing.version))
    else:
        batch.add(replace(before, memory=confirmed))
    return Receipt(existing.id, "merged", existing.id, reason)


def _place(scope: Scope, text: str) -> Place:
    return scope.namespace, scope.project, text


def _gist(memory: Memory) -> Gist:
    """Equal for drafts that may become one, as in `may_be_one`."""
    scope = memory.scope
    place = scope if scope.project is None else Scope(scope.namespace, scope.project)
    return place, memory.sensitive, gist(memory.content)
