"""import of our own format: ids, versions, counts and times come back as they were. Twice is the same as once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TextIO

from recollect.domain.changes import AddLink, Change, Put
from recollect.domain.errors import Conflict, InvalidInput, NotFound
from recollect.domain.memory import Link, Memory
from recollect.importers.format import read_header, read_link, read_memory
from recollect.importers.lines import as_object, numbered_lines, parse_json
from recollect.importers.report import ImportReport
from recollect.ports import Store

BATCH = 500


@dataclass(slots=True)
class _Restore:
    """A batch in the making; its memories are written before its links."""

    store: Store
    report: ImportReport = field(default_factory=lambda: ImportReport("recollect"))
    memories: list[tuple[int, Memory]] = field(default_factory=list[tuple[int, Memory]])
    links: list[tuple[int, Link]] = field(default_factory=list[tuple[int, Link]])

    def take(self, number: int, record: dict[str, Any]) -> None:
        kind = record.get("kind")
        if kind == "memory":
            self.memories.append((number, read_memory(record)))
        elif kind == "link":
            self.links.append((number, read_link(record)))
        else:
            self.report.note(number, f"unknown kind {str(kind)[:40]!r}")
        if len(self.memories) + len(self.links) >= BATCH:
            self.flush()

    def flush(self) -> None:
        self.report.added += _put(self.store, self._fresh(), self.report)
        self.report.links += _write(self.store, [(number, AddLink(link)) for number, link in self.links], self.report)
        self.memories, self.links = [], []

    def _fresh(self) -> list[tuple[int, Memory]]:
        """The memories that are not there yet; a different one under the same id is reported and left alone."""
        held = {memory.id: memory for memory in self.store.records.fetch([memory.id for _, memory in self.memories])}
        fresh: list[tuple[int, Memory]] = []
        for number, memory in self.memories:
            existing = held.get(memory.id)
            if existing is None:
                held[memory.id] = memory
                fresh.append((number, memory))
            elif _untouched(existing) == _untouched(memory):
                self.report.skipped += 1
            else:
                self.report.note(number, f"conflict: memory {memory.id} is there in another form")
        return fresh


def import_jsonl(store: Store, stream: TextIO, *, progress: Callable[[int], None] | None = None) -> ImportReport:
    """Restore an export. Bad lines and conflicts are reported with their number and change nothing.

    A text that was forgotten in this store stays forgotten. `progress` is told the number of lines read.
    """
    restore = _Restore(store)
    headed = False
    for number, line in numbered_lines(stream):
        try:
            if line is None:
                raise InvalidInput("the line is too long")
            if line.strip():
                value = parse_json(line)
                if headed:
                    restore.take(number, as_object(value))
                else:
                    read_header(value)
                    headed = True
        except InvalidInput as error:
            if not headed:
                raise
            restore.report.note(number, error.message)
        if progress is not None and number % BATCH == 0:
            progress(number)
    restore.flush()
    return restore.report


def _untouched(memory: Memory) -> Memory:
    """A memory without what reading it changes."""
    return replace(memory, accessed_at=memory.created_at, access_count=0)


def _put(store: Store, memories: Sequence[tuple[int, Memory]], report: ImportReport) -> int:
    return _write(store, [(number, Put(memory, apart=True)) for number, memory in memories], report)


def _write(store: Store, changes: Sequence[tuple[int, Change]], report: ImportReport) -> int:
    """How many changes were made: all in one transaction, or one by one where some cannot be made."""
    if not changes:
        return 0
    try:
        store.records.write([change for _, change in changes])
        return len(changes)
    except (Conflict, NotFound, InvalidInput) as error:
        if len(changes) == 1:
            report.note(changes[0][0], error.message)
            return 0
    return sum(_write(store, [change], report) for change in changes)
