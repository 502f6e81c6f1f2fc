"""Recollection files: the last answer of each session, on disk, for the moment when nobody can be asked.

One file per session, written atomically, readable by its owner alone. It also remembers the topic: while the prompt
stays on it and asks the same memories, the old recollection stands. A forgotten memory takes the files that quote it
with it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from datetime import datetime
from math import sqrt
from pathlib import Path
from typing import Any

from recollect.domain.memory import Memory, Receipt, Scope
from recollect.ports import Records

log = logging.getLogger(__name__)

TOPIC_COSINE = 0.85
MAX_FILES = 1000
UNFINISHED = ".writing-"
"""How the names of files begin that are being written, or that somebody did not live to finish."""


@dataclass(frozen=True, slots=True)
class Recollection:
    """What was recalled for a session's last prompt. `vector` is that prompt's, empty when it had none."""

    session: str
    written_at: str
    ids: tuple[str, ...]
    text: str
    vector: tuple[float, ...] = ()
    asked: str = ""
    """Which memories were asked, and whose the vector is (`asked_of`)."""


def asked_of(store: str, scope: Scope, model: str | None) -> str:
    """A digest of what must be equal for a recollection to stand: another scope has other memories, and vectors of two
    models are never compared. It gives no password of a store's address away."""
    return hashlib.sha256(repr((store, scope, model)).encode("utf-8", "replace")).hexdigest()


def still_quotable(memories: Sequence[Memory], records: Records) -> bool:
    """Whether nobody has forgotten, changed or hidden any of these memories meanwhile."""
    found = {one.id: one for one in records.fetch([memory.id for memory in memories])}
    return all(
        one.id in found and found[one.id].content == one.content and not found[one.id].sensitive for one in memories
    )


def stands(before: Recollection, asked: str, vector: tuple[float, ...]) -> bool:
    """Whether the old recollection is good enough: the same memories are asked about the same topic, and some were
    found. Where none were, there may be some by now."""
    return bool(before.ids) and before.asked == asked and same_topic(before.vector, vector)


def same_topic(before: tuple[float, ...], now: tuple[float, ...]) -> bool:
    """Whether two prompts are about the same: cosine above TOPIC_COSINE; prompts without a vector never are."""
    if not before or len(before) != len(now):
        return False
    lengths = sqrt(sum(one * one for one in before)) * sqrt(sum(one * one for one in now))
    return lengths > 0 and sum(one * other for one, other in zip(before, now, strict=True)) / lengths > TOPIC_COSINE


def path_of(folder: Path, session: str) -> Path:
    """The session's file: a readable stem and a hash, so that no session name can leave the folder or collide."""
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", session)[:40].strip(".-") or "session"
    return folder / f"{stem}-{hashlib.sha256(session.encode('utf-8', 'replace')).hexdigest()[:12]}.json"


def write(folder: Path, recollection: Recollection) -> Path:
    """Write to a temporary file, then rename: a reader sees the old file or the new one, never a part.

    It is not synced: an agent waits for this, and a file that a power failure damaged is no recollection. If something
    is forgotten meanwhile there is none either: what is being written may quote it.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    target = path_of(folder, recollection.session)
    handle, temporary = tempfile.mkstemp(dir=folder, prefix=UNFINISHED)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(json.dumps({field.name: getattr(recollection, field.name) for field in fields(recollection)}))
        with suppress(FileNotFoundError):
            Path(temporary).replace(target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return target


def keep(folder: Path, recollection: Recollection) -> None:
    """Write it where that is possible: a home that is full or sealed costs the file, not the answer."""
    try:
        write(folder, recollection)
    except OSError as error:
        log.warning("the recollection was not written: %s", error.strerror)


def read(folder: Path, session: str) -> Recollection | None:
    """The session's last recollection; a missing or damaged file is no recollection."""
    return _load(path_of(folder, session))


def forget(folder: Path, ids: Iterable[str]) -> int:
    """Remove every recollection that quotes one of these memories, or may once it is finished; returns how many."""
    gone, wanted = 0, set(ids)
    for path in folder.glob(f"{UNFINISHED}*") if folder.is_dir() else ():
        path.unlink(missing_ok=True)
        gone += 1
    for path in folder.glob("*.json") if folder.is_dir() else ():
        found = _load(path)
        if found is None or wanted & set(found.ids):
            path.unlink(missing_ok=True)
            gone += 1
    return gone


def hide(folder: Path, receipts: Iterable[Receipt], records: Records) -> None:
    """Remove every recollection that quotes what a write has just made sensitive."""
    merged = [receipt.id for receipt in receipts if receipt.action == "merged"]
    hidden = [memory.id for memory in records.fetch(merged) if memory.sensitive] if merged else []
    if hidden:
        forget(folder, hidden)


def prune(folder: Path, before: datetime) -> int:
    """Remove recollections written before a moment, and the oldest beyond MAX_FILES."""
    files: list[tuple[float, Path]] = []
    for path in folder.glob("*.json") if folder.is_dir() else ():
        with suppress(FileNotFoundError):  # somebody else has removed it meanwhile
            files.append((path.stat().st_mtime, path))
    surplus = len(files) - MAX_FILES
    old = [path for place, (at, path) in enumerate(sorted(files)) if place < surplus or at < before.timestamp()]
    for path in old:
        path.unlink(missing_ok=True)
    return len(old)


def _load(path: Path) -> Recollection | None:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        vector, ids = tuple(float(one) for one in found["vector"]), tuple(found["ids"])
        texts: list[Any] = [found["session"], found["written_at"], found["text"], found.get("asked", "")]
        if not all(isinstance(one, str) for one in (*texts, *ids)):
            return None
        session, written_at, text, asked = texts
        return Recollection(session, written_at, ids, text, vector, asked)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
