"""Running an import: find the reader, check every draft, remember them in batches under the usual rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
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
    waiting: list[Checked] = []

    def flush() -> None:
        for receipt in remember_checked(store, waiting, policy):
            _count(report, receipt)
        waiting.clear()

    def renewed(place: int, draft: Draft, content: str) -> bool:
        try:
            known = renew(store, draft, content, f"import:{importer.name}:", now, policy)
        except (Conflict, NotFound) as error:
            report.note(place, error.message)
            return True
        if known == "skipped":
            report.skipped += 1
        elif known is not None:
            report.updated += 1
            if changed is not None:
                changed(known.id)
        return known is not None

    def checked(place: int, draft: Draft) -> Checked | None:
        try:
            return check(draft, id=new_id(), now=now, policy=policy)
        except InvalidInput as error:
            report.note(place, error.message)
            return None

    for place, draft in _drafts(importer, stream, name, origin, scope or Scope(), report):
        entry = checked(place, draft)
        if entry is not None and importer.edited and draft.key is not None:
            # At once, while what is new waits for its batch: a text that moved away from here is not known any more.
            known = digested(draft, entry.memory)
            if renewed(place, known, entry.memory.content):
                continue
            entry = checked(place, known)
        if entry is None:
            continue
        waiting.append(entry)
        if len(waiting) >= BATCH:
            flush()
            if progress is not None:
                progress(place)
    flush()
    return report


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
