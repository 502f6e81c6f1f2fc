"""Is this remembered already? The store tells what may say the same; term-set similarity and its guard decide."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from recollect.domain.memory import Link, Memory
from recollect.ports import LinkIndex, Store
from recollect.stages import similarity
from recollect.stages.merging import may_be_one

MAX_CHAIN = 10


def find_twin(store: Store, draft: Memory, alike: Sequence[Memory], overlap: float) -> tuple[Memory, str] | None:
    """The one of these memories that says the same as the draft, with the reason; never one that is superseded."""
    for candidate in alike:
        if not may_be_one(draft, candidate):
            continue
        verdict = similarity.compare(draft.content, candidate.content, overlap)
        if verdict.same:
            head = standing(store, candidate)
            if head.id == candidate.id or similarity.same_fact(draft.content, head.content, overlap):
                return head, f"near-duplicate, {verdict.reason}"
    return None


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
