"""The one place that knows concrete stores and models: settings in, ports out."""

from __future__ import annotations

import logging
import os
from contextlib import ExitStack
from pathlib import Path

from recollect import encoders, extras
from recollect.domain.errors import InvalidInput, ModelUnavailable
from recollect.ports import Embedder, Extractor, Reranker, Store
from recollect.settings import Settings
from recollect.stores.postgres.address import is_address

MOST_WORKERS = 16
"""Texts that are embedded at a time, whatever the machine: a batch has not many more."""

log = logging.getLogger(__name__)
# A library leaves it to the program where its log goes; without this, Python would print it.
logging.getLogger("recollect").addHandler(logging.NullHandler())


def open_store(target: str, *, read_only: bool = False) -> Store:
    """The one place that knows which engine a target belongs to."""
    if is_address(target):
        try:
            from recollect.stores.postgres.opening import open_postgres
        except ImportError as error:
            raise InvalidInput(
                "PostgreSQL needs packages that are not installed", extras.install("postgres")
            ) from error
        return open_postgres(target, read_only=read_only)
    if "://" in target:
        scheme = target.partition("://")[0]
        raise InvalidInput(f"no store is reached by {scheme}://", "a file, :memory:, or postgresql://…", "store")
    from recollect.stores.sqlite import open_sqlite

    if target == ":memory:":
        return open_sqlite(target, read_only=read_only)
    file = Path(target).expanduser()
    if os.path.isdir(file):  # noqa: PTH112 (pathlib fails on a name that is too long)
        raise InvalidInput(f"{file} is a folder, not a store", "name a file in it, such as memories.db", "store")
    if os.path.exists(file) and not os.path.isfile(file):  # noqa: PTH110, PTH113
        raise InvalidInput(f"{file} is no file that can hold a store", "name one that is, or a new one", "store")
    return open_sqlite(file, read_only=read_only)


def attach_vectors(store: Store, chosen: Settings) -> Store:
    """The store as it is, or its vectors searched in Qdrant where the settings name one; closed where that fails."""
    if not chosen.qdrant:
        return store
    with ExitStack() as failed:
        failed.callback(store.close)
        try:
            from recollect.stores.qdrant import with_qdrant
        except ImportError as error:
            hint = f"{extras.install('qdrant')}, or empty the setting qdrant"
            raise InvalidInput("the setting qdrant needs a package that is not installed", hint, "qdrant") from error
        mirrored = with_qdrant(store, chosen.qdrant, key=chosen.qdrant_key, collection=chosen.qdrant_collection)
        failed.pop_all()
        return mirrored


def open_embedder(
    chosen: Settings, given: Embedder | str | None = None, *, waited_for: bool = False
) -> tuple[Embedder | None, str]:
    """The embedder, or the reason why there is none: a missing model costs meaning, never the memory itself.

    One that the caller made is taken as it is, and its answers are checked. Where somebody waits while memories are
    embedded it works with all cores, in the background it leaves half of them to others.
    """
    if given is not None and not isinstance(given, str):
        from recollect.encoders.own import OwnEmbedder

        return OwnEmbedder(given), ""
    try:
        found = encoders.open_embedder(
            chosen.embedder,
            chosen.models,
            model=chosen.embedder_model,
            key=chosen.embedder_key,
            workers=min(os.cpu_count() or 1, MOST_WORKERS) if waited_for else None,
        )
    except ModelUnavailable as error:
        log.warning("no embedder: %s", error)
        return None, f"by words alone: {error}"
    return found, ""


def open_reranker(chosen: Settings, given: Reranker | str | None = None) -> Reranker | None:
    """The reranker of the settings, or the one that the caller made, its failures contained."""
    if given is not None and not isinstance(given, str):
        from recollect.encoders.own import OwnReranker

        return OwnReranker(given)
    try:
        return encoders.open_reranker(
            chosen.reranker,
            chosen.models,
            model=chosen.reranker_model,
            key=chosen.reranker_key,
            judge_url=chosen.language_model,
            judge_model=chosen.language_model_name,
            judge_key=chosen.language_model_key,
        )
    except ModelUnavailable as error:
        log.warning("no reranker: %s", error)
        return None


def open_extractor(chosen: Settings) -> Extractor | None:
    """The language model that looks for concepts, where the settings ask for one."""
    if not chosen.extract_concepts:
        return None
    if not chosen.language_model:
        raise InvalidInput(
            "extract_concepts needs a language model", "set language_model to its URL", "extract_concepts"
        )
    from recollect.encoders.chat import Chat
    from recollect.encoders.concepts import ChatExtractor

    return ChatExtractor(Chat(chosen.language_model, chosen.language_model_key, chosen.language_model_name))
