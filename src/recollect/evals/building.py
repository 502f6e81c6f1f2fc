"""The store of a data set: built once through the normal write and upkeep path, then kept in the user's cache folder.

A store belongs to its corpus, its embedder and the code that writes stores; when one of them changes it is built anew.
Vectors are remembered apart, so that building again embeds nothing twice.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache
from glob import escape
from pathlib import Path
from time import time
from typing import Any

import platformdirs

import recollect
from recollect import settings as configuration
from recollect import writing
from recollect.adapters import open_store
from recollect.domain.errors import Corrupt, InvalidInput, ModelUnavailable, RecollectError
from recollect.domain.memory import EPISODE, Scope
from recollect.engine import Engine
from recollect.evals import datasets
from recollect.evals.bench import namespace_of
from recollect.evals.datasets import Dataset, Document
from recollect.evals.vectors import RememberingEmbedder, file_of
from recollect.ports import Embedder
from recollect.settings import Settings
from recollect.writing.drafts import TYPE
from recollect.writing.metadata import checked_metadata

Progress = Callable[[str, int, int], None]
"""What is being done, how much of it, of how much."""

LAYOUT = 1
KEPT_PER_SET = 4
FOLDER_BYTES = 150
"""Of a set's name in the cache, whose file systems end at 255."""
WRITTEN_AT_ONCE = 500
# The parts of the code that decide what a store holds, and which memory is which document.
WRITERS = ("domain", "stages", "stores", "upkeep", "writing")
READERS = ("bench.py", "building.py", "datasets.py", "entries.py", "moments.py")
BUILDING = ".building-"
ABANDONED_SECONDS = 24 * 3600.0

# Data sets are measured as they are: nothing is merged, nothing hidden, and long texts are welcome.
POLICY = writing.WritePolicy(dedupe=False, secrets="allow", content_bytes=64 << 20, metadata_bytes=64 << 20)


def cache_folder(settings: Settings) -> Path:
    """The user's cache folder, or a folder in the home that was set on purpose."""
    usual = Path(platformdirs.user_data_dir(configuration.APP, appauthor=False))
    if settings.home != usual:
        return settings.home / "evals"
    return Path(platformdirs.user_cache_dir(configuration.APP, appauthor=False)) / "evals"


def prepared(
    dataset: Dataset, embedder: Embedder | None, settings: Settings, folder: Path, *, rebuild: bool = False,
    progress: Progress | None = None,
) -> tuple[Path, dict[str, str]]:  # fmt: skip
    """The file of the set's store, and for each document the id of its memory. Built if it is not there."""
    model = "none" if embedder is None else embedder.id
    family = hashlib.sha256(f"{dataset.corpus_hash} {model}".encode()).hexdigest()[:16]
    stem = f"{_named(dataset.name, FOLDER_BYTES)}-{family}-"
    place = folder / "stores" / f"{stem}{code_hash()[:12]}"
    if rebuild or (place.exists() and not _is_whole(place)):
        shutil.rmtree(place, ignore_errors=True)
    if not _is_whole(place):
        _build(dataset, embedder, settings, folder, place, progress or _silent)
    # When it was last used decides what is pruned; a cache that is only read will do as well.
    with suppress(OSError):
        os.utime(place)
    _prune(place.parent, stem)
    return place / "store.db", {one.id: memory_id(number) for number, one in enumerate(dataset.documents)}


def _is_whole(place: Path) -> bool:
    """A folder gets its name when it is complete; but people and disks take files away."""
    store = place / "store.db"
    return (place / "made.json").is_file() and store.is_file() and store.stat().st_size > 0


@contextmanager
def damage_told(folder: Path) -> Generator[None]:
    """Of a damaged store of the cache no backup is needed, and `doctor` cannot help: it is built again."""
    try:
        yield
    except Corrupt as error:
        hint = f"`recollect eval run --rebuild` builds it anew, or delete {folder / 'stores'}"
        raise Corrupt(f"a data set's store in the cache is damaged: {error.message}", hint) from error


def memory_id(number: int) -> str:
    """Ids that sort in the order of remembering, as the engine's own do, and are the same in every build."""
    return f"{number:012d}"


@cache
def code_hash() -> str:
    """Changes with the code that reads sets and writes stores."""
    root = Path(recollect.__file__).parent
    total = hashlib.sha256(f"{LAYOUT}".encode())
    every = (path for room in WRITERS for path in sorted((root / room).rglob("*.py")))
    for path in (*every, *(root / "evals" / name for name in READERS)):
        total.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return total.hexdigest()


def drafts(dataset: Dataset) -> Iterator[writing.Draft]:
    """The documents as memories: turns and sessions of a conversation are episodes, everything else is a fact."""
    for one in dataset.documents:
        yield writing.Draft(
            content=_text(one.content),
            type=_type(one),
            scope=Scope(
                namespace=namespace_of(one.namespace),
                session=None if one.session is None else _named(one.session, POLICY.name_bytes),
            ),
            source=_named(dataset.name, POLICY.name_bytes),
            created_at=one.created_at,
            metadata={name: value for name, value in one.metadata.items() if _fits({name: value})},
        )


def _type(one: Document) -> str:
    given = one.metadata.get("type")
    if isinstance(given, str) and TYPE.fullmatch(given.strip()):
        return given
    return EPISODE if one.session is not None or "speaker" in one.metadata else "fact"


def _text(content: str) -> str:
    """Without what no store can hold: NUL and halves of surrogate pairs."""
    return content.replace("\0", " ").encode(errors="replace").decode()


def _named(name: str, most: int) -> str:
    """The set's own name where it is short and on one line, else one made from its hash."""
    if name.isprintable() and len(name.encode(errors="replace")) <= most:
        return name
    return hashlib.sha256(name.encode(errors="replace")).hexdigest()[:16]


def _fits(metadata: Mapping[str, Any]) -> bool:
    try:
        return bool(checked_metadata(metadata, POLICY.metadata_bytes, POLICY.metadata_depth))
    except InvalidInput:
        return False


def _build(
    dataset: Dataset, embedder: Embedder | None, settings: Settings, folder: Path, place: Path, progress: Progress
) -> None:
    """In a folder of its own that gets its name when it is complete; who comes second throws his own away."""
    place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with tempfile.TemporaryDirectory(dir=place.parent, prefix=BUILDING, ignore_cleanup_errors=True) as work:
        fresh = Path(work) / "made"
        fresh.mkdir()
        remembering = None
        if embedder is not None:
            remembering = RememberingEmbedder(embedder, file_of(folder / "vectors", embedder.id))
        # A home of its own: upkeep must not tidy the user's.
        engine = Engine(
            open_store(str(fresh / "store.db")),
            replace(settings, home=Path(work) / "home"),
            remembering,
            background=False,
        )
        engine.policy = POLICY
        try:
            _fill(engine, dataset, progress)
            facts = _finish(engine, dataset, progress)
        finally:
            engine.close()
            if remembering is not None:
                remembering.close()
        (fresh / "made.json").write_text(json.dumps(facts), encoding="utf-8")
        try:
            fresh.rename(place)
        except OSError:
            if not (place / "made.json").is_file():
                raise


def _fill(engine: Engine, dataset: Dataset, progress: Progress) -> None:
    ids = (memory_id(number) for number in range(len(dataset.documents)))
    # What has no time is as old as the oldest: it would else be hidden from questions that were asked before the end.
    now = min((one.created_at for one in dataset.documents if one.created_at), default=datasets.UNDATED)
    waiting, written = drafts(dataset), 0
    while chunk := [one for _, one in zip(range(WRITTEN_AT_ONCE), waiting)]:
        receipts = writing.remember_many(engine.store, chunk, new_id=lambda: next(ids), now=now, policy=POLICY)
        written += len(receipts)
        strange = next((one for one in receipts if one.action != "added"), None)
        if strange is not None:
            raise RecollectError(f"{dataset.name}: a document was {strange.action}: {strange.reason}", "")
        progress(f"{dataset.name}: writing", written, len(dataset.documents))


def _finish(engine: Engine, dataset: Dataset, progress: Progress) -> Mapping[str, Any]:
    report = engine.upkeep(progress=lambda done, total: progress(f"{dataset.name}: embedding", done, total))
    if engine.embedder is not None and (report.embedded.stopped or report.embedded.failed):
        reason = report.embedded.stopped or f"{report.embedded.failed} documents failed"
        raise ModelUnavailable(f"{dataset.name} could not be embedded: {reason}", "check `recollect models test`")
    return {"documents": len(dataset.documents), "corpus": dataset.corpus_hash, "code": code_hash()}


def _prune(folder: Path, stem: str) -> None:
    """Stores of the same set made by other versions of the code: the latest few stay, for those who go back.

    What a killed process was building, and has not touched for a day, goes too.
    """
    every = sorted(folder.glob(f"{escape(stem)}*"), key=lambda one: (one.stat().st_mtime, one.name), reverse=True)
    for old in every[KEPT_PER_SET:]:
        shutil.rmtree(old, ignore_errors=True)
    for left in folder.glob(f"{BUILDING}*"):
        # Another process may be at work there, and its files come and go.
        with suppress(OSError):
            if max(one.stat().st_mtime for one in (left, *left.rglob("*"))) < time() - ABANDONED_SECONDS:
                shutil.rmtree(left, ignore_errors=True)


def _silent(_what: str, _done: int, _total: int) -> None:
    return None
