"""export: the whole store as lines, streamed, in an order that does not change."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TextIO

from recollect.domain.memory import DEFAULT_NAMESPACE, MENTIONS, Memory
from recollect.domain.question import Filter
from recollect.importers.format import HEADER, link_record, memory_record, to_line
from recollect.ports import Store
from recollect.upkeep.leaving import all_leaving

PAGE = 500


@dataclass(frozen=True, slots=True)
class ExportReport:
    """What was written; `left_out` counts memories of namespaces that were not exported."""

    memories: int
    links: int
    left_out: int


def export(
    store: Store,
    out: TextIO,
    *,
    namespaces: Sequence[str] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> ExportReport:
    """Write all memories and links of these namespaces (all of them by default) to a text stream."""
    stats = store.care.stats()
    chosen = sorted(set(namespaces if namespaces is not None else stats.namespaces or (DEFAULT_NAMESPACE,)))
    out.write(to_line(HEADER))
    memories = links = 0
    for page in _pages(store, chosen):
        out.writelines(to_line(memory_record(memory)) for memory in page)
        memories += len(page)
        if progress is not None:
            progress(memories, max(memories, stats.memories))
    if store.links is not None and stats.links:
        for page in _pages(store, chosen):
            ids = [memory.id for memory in page]
            # Each link once, with its source; in the order of creation, which decides which resolutions are shown.
            # What a model read into the texts is left out, as vectors are: it is made again from them.
            for link in all_leaving(store.links, ids):
                if link.type != MENTIONS:
                    out.write(to_line(link_record(link)))
                    links += 1
    return ExportReport(memories, links, max(0, stats.memories - memories))


def _pages(store: Store, namespaces: Sequence[str]) -> Iterator[list[Memory]]:
    for namespace in namespaces:
        after = None
        while page := store.records.scan(Filter(namespace=namespace), "id", PAGE, after):
            yield page
            after = page[-1].id
