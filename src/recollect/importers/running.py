"""Running an import: find the reader, check every draft, remember them in batches under the usual rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from io import StringIO
from pathlib import PurePath
from typing import TextIO

from recollect.domain.errors import Conflict, InvalidInput, NotFound
from recollect.domain.memory import Receipt, Scope
from recollect.importers.format import FORMAT
from recollect.importers.lines import MAX_DOCUMENT_CHARACTERS
from recollect.importers.renewing import digested, named, renew
from recollect.importers.report import ImportReport, Problem
from recollect.importers.restoring import import_jsonl
from recollect.importers.table import IMPORTERS, Importer, sniff
from recollect.ports import Store
from recollect.writing import Checked, Draft, WritePolicy, check, remember_checked

HEAD_CHARACTERS = 64 * 1024
BATCH = 500


def import_source(
    store: Store,
    stream: TextIO,
    name: str,
    *,
    new_id: Callable[[], str],
    now: datetime,
    policy: WritePolicy,
    format: str | None = None,
    scope: Scope | None = None,
    origin: str = "",
    changed: Callable[[str], object] | None = None,
    progress: Callable[[int], None] | None = None,
) -> ImportReport:
    """Read one file into the store. `name` is the file's name as the user knows it; `format` overrides sniffing.

    Idempotent: what has an id over there is written once, the rest is recognised by its text. What is edited over there
    is changed here; for notes, `origin` tells where they are (empty: nowhere that lasts). `scope` says where the
    memories go (an export keeps its own); what it leaves open (project, session) is taken from the file. `progress` is
    told entries read, `changed` the ids of memories whose text was replaced.
    """
    stream = stream if stream.seekable() else StringIO(stream.read(MAX_DOCUMENT_CHARACTERS))
    head = stream.read(HEAD_CHARACTERS)
    stream.seek(0)
    if format == FORMAT or (format is None and _is_own(head)):
        return _restored(store, stream, scope, progress)
    importer = _chosen(name, head, format)
    report = ImportReport(importer.name)
    run = _Run(store, importer, report, new_id, now, policy, changed)
    for place, draft in _drafts(importer, stream, name, origin, scope or Scope(), report):
        if run.take(place, draft) and progress is not None:
            progress(place)
    run.flush()
    return report


@dataclass(slots=True)
class _Run:
    """One import: what has been read and waits for its batch."""

    store: Store
    importer: Importer
    report: ImportReport
    new_id: Callable[[], str]
    now: datetime
    policy: WritePolicy
    changed: Callable[[str], object] | None
    waiting: list[Checked] = field(default_factory=list[Checked])

    def take(self, place: int, draft: Draft) -> bool:
        """Check an entry and write it with others; True where that was done now."""
        entry = self._checked(place, draft)
        if entry is not None and self.importer.edited and draft.key is not None:
            # At once, while what is new waits for its batch: a text that moved away from here is not known any more.
            draft = digested(draft, entry.memory)
            entry = None if self._renewed(place, draft, entry.memory.content) else self._checked(place, draft)
        if entry is None:
            return False
        self.waiting.append(entry)
        if len(self.waiting) < BATCH:
            return False
        self.flush()
        return True

    def flush(self) -> None:
        """Write what waits."""
        for receipt in remember_checked(self.store, self.waiting, self.policy):
            _count(self.report, receipt)
        self.waiting.clear()

    def _checked(self, place: int, draft: Draft) -> Checked | None:
        try:
            return check(draft, id=self.new_id(), now=self.now, policy=self.policy)
        except InvalidInput as error:
            self.report.note(place, error.message)
            return None

    def _renewed(self, place: int, draft: Draft, content: str) -> bool:
        """Whether the entry was known and has been dealt with."""
        try:
            known = renew(self.store, draft, content, f"import:{self.importer.name}:", self.now, self.policy)
        except (Conflict, NotFound) as error:
            self.report.note(place, error.message)
            return True
        if known == "skipped":
            self.report.skipped += 1
        elif known is not None:
            self.report.updated += 1
            if self.changed is not None:
                self.changed(known.id)
        return known is not None


def _restored(
    store: Store, stream: TextIO, scope: Scope | None, progress: Callable[[int], None] | None
) -> ImportReport:
    """An export brings its own places along. Who names a tenant must not find the memories in another one."""
    if scope not in (None, Scope()):
        message = "an export of recollect has its own namespaces, projects and sessions, which it keeps"
        raise InvalidInput(message, "import it without --namespace, --project and --session", "scope")
    return import_jsonl(store, stream, progress=progress)


def _drafts(
    importer: Importer, stream: TextIO, name: str, origin: str, scope: Scope, report: ImportReport
) -> Iterator[tuple[int, Draft]]:
    """What could be read, placed and marked as captured; the rest are problems."""
    for place, item in enumerate(importer.read(stream, name), start=1):
        if isinstance(item, Problem):
            report.note(item.place, item.message)
            continue
        theirs = item.scope
        where = Scope(scope.namespace, scope.project or theirs.project, scope.session or theirs.session)
        source = item.source or f"import:{importer.name}:{PurePath(name).name}"
        key = _key(importer, item.key, origin, where)
        yield place, replace(item, scope=where, source=source, captured=True, key=key)


def _key(importer: Importer, key: str | None, origin: str, scope: Scope) -> str | None:
    """What an entry is known by here; the place in a file says nothing where the file itself has none that lasts."""
    if importer.keys == "ids" or key is None:
        return key
    if importer.keys == "places" and not origin:
        return None
    return f"{importer.name}:{named(origin if importer.keys == 'places' else '', scope.project, scope.session, key)}"


def _is_own(head: str) -> bool:
    first = head.removeprefix("\ufeff").lstrip().split("\n", 1)[0]
    return first.startswith("{") and '"format":"recollect"' in first.replace(" ", "")


def _chosen(name: str, head: str, format: str | None) -> Importer:
    known = {importer.name: importer for importer in IMPORTERS}
    if format is not None and format not in known:
        raise InvalidInput(f"unknown format {format!r}", f"allowed: {', '.join((FORMAT, *known))}", "format")
    if "\0" in head:
        hint = "unpack it (`gunzip -c FILE | recollect import -`), save it as UTF-8, or `recollect copy` a store"
        raise InvalidInput(f"{name!r} is not text", hint, "SOURCE")
    found = known[format] if format is not None else sniff(name, head)
    if found is None:
        raise InvalidInput(f"{name!r} has no known format", f"name one: {', '.join((FORMAT, *known))}", "format")
    return found


def _count(report: ImportReport, receipt: Receipt) -> None:
    match receipt.action:
        case "added":
            report.added += 1
        case "merged":
            report.merged += 1
        case "skipped":
            report.skipped += 1
        case "redacted":
            report.redacted += 1
