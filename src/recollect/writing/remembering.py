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
from recollect.domain.memory import EPISODE, Memory, Receipt, Scope, same_text
from recollect.ports import Lookup, Store
from recollect.stages import similarity
from recollect.stages.merging import may_be_one, strengthened
from recollect.writing.drafts import Draft, WritePolicy, to_memory
from recollect.writing.duplicates import find_twin, standing

log = logging.getLogger(__name__)

BATCH = 200
ATTEMPTS = 5

Place = tuple[str, str | None, str]
Gist = tuple[str, str | None, int]


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A validated draft on its way into the store."""

    memory: Memory
    captured: bool
    redacted: tuple[str, ...]


@dataclass(slots=True)
class _Batch:
    """What the transaction will write, findable by the drafts that come later in the same batch."""

    store: Store
    policy: WritePolicy
    puts: dict[str, Put] = field(default_factory=dict[str, Put])
    keys: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    texts: dict[Place, str] = field(default_factory=dict[Place, str])
    gists: dict[Gist, list[str]] = field(default_factory=lambda: defaultdict[Gist, list[str]](list))

    def add(self, put: Put) -> None:
        memory = put.memory
        known = memory.id in self.puts
        self.puts[memory.id] = put
        if memory.key is not None:
            self.keys[memory.scope.namespace, memory.key] = memory.id
        if not known and put.expected_version is None and memory.type != EPISODE:
            self.texts.setdefault(_place(memory.scope, same_text(memory.content)), memory.id)
            if self.policy.dedupe:
                self.gists[_gist(memory)].append(memory.id)

    def current(self, memory: Memory) -> Memory:
        """The memory as this batch will leave it."""
        return self.puts[memory.id].memory if memory.id in self.puts else memory


def remember(store: Store, draft: Draft, *, id: str, now: datetime, policy: WritePolicy) -> Receipt:
    """Store one draft durably; the receipt tells whether it was added, merged, skipped or added in redacted form."""
    memory, redacted = to_memory(draft, id=id, now=now, policy=policy)
    return _write(store, [_Candidate(memory, draft.captured, redacted)], policy)[0]


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
        candidates: list[_Candidate] = []
        for draft in chunk:
            try:
                memory, redacted = to_memory(draft, id=new_id(), now=now, policy=policy)
            except InvalidInput as error:
                place = f"drafts[{len(receipts) + len(candidates)}]"
                raise InvalidInput(f"{place}: {error.message}", error.hint, f"{place}.{error.field}") from error
            candidates.append(_Candidate(memory, draft.captured, redacted))
        receipts += _write(store, candidates, policy)
    return receipts


def _write(store: Store, candidates: Sequence[_Candidate], policy: WritePolicy) -> list[Receipt]:
    """Decide and write in one transaction. A batch that loses a race is written one by one."""
    attempts = ATTEMPTS if len(candidates) == 1 else 1
    for attempt in range(1, attempts + 1):
        batch = _Batch(store, policy)
        receipts = [_decide(batch, candidate) for candidate in candidates]
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
    return [_write(store, [candidate], policy)[0] for candidate in candidates]


def _decide(batch: _Batch, candidate: _Candidate) -> Receipt:
    """The receipt for one draft; what it takes to make it true is put into the batch."""
    memory, scope = candidate.memory, candidate.memory.scope
    asked = candidate.captured or (batch.policy.dedupe and memory.type != EPISODE)
    content = memory.content if asked else None
    found = batch.store.records.lookup(scope.namespace, key=memory.key, content=content, project=scope.project)
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
    wanted = dict.fromkeys((*(() if found.content_id is None else (found.content_id,)), *found.alike))
    stored = batch.store.records.fetch(list(wanted))
    for holder in stored[:1] if found.content_id is not None else ():
        if _says_exactly(holder, memory) and standing(batch.store, holder).id == holder.id:
            return batch.current(holder), "the same text"
    inside = _twin_in_batch(batch, memory)
    if inside is not None:
        return inside
    twin = find_twin(batch.store, memory, stored, batch.policy.overlap)
    return None if twin is None else (batch.current(twin[0]), twin[1])


def _twin_in_batch(batch: _Batch, memory: Memory) -> tuple[Memory, str] | None:
    same = batch.texts.get(_place(memory.scope, same_text(memory.content)))
    if same is not None:
        holder = batch.puts[same].memory
        if _says_exactly(holder, memory):
            return holder, "the same text"
    for id in batch.gists.get(_gist(memory), ()):
        other = batch.puts[id].memory
        verdict = similarity.compare(memory.content, other.content, batch.policy.overlap)
        if verdict.same and may_be_one(memory, other):
            return other, f"near-duplicate, {verdict.reason}"
    return None


def _says_exactly(holder: Memory, memory: Memory) -> bool:
    """For the same text secrecy is no obstacle: what turns out to be sensitive becomes so."""
    in_place = may_be_one(replace(memory, sensitive=holder.sensitive), holder)
    return in_place and similarity.same_names(holder.content, memory.content)


def _add(batch: _Batch, candidate: _Candidate, found: Lookup) -> Receipt:
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
    return memory.scope.namespace, memory.scope.project, gist(memory.content)
