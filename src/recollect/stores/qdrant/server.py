"""Talking to Qdrant, a server or the embedded form: one collection for each model, and typed errors."""

from __future__ import annotations

import hashlib
import logging
import re
import threading
import warnings
from collections.abc import Generator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from typing import Any

import httpx
from qdrant_client import QdrantClient, models
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from recollect.domain.errors import InvalidInput, StoreInUse, StoreUnavailable
from recollect.domain.question import Filter
from recollect.ports import Vector
from recollect.stores.qdrant.points import KEYWORDS, OWNER, PRINT, condition, of_memories, of_tenant

log = logging.getLogger(__name__)

TIMEOUT_SECONDS = 5
UPSERTED = 256
NOT_FOUND = 404
REFUSED = (401, 403)
ALONE = "end it, or give a server's URL: a folder is for one process at a time"


class Server:
    """One Qdrant, as one store uses it. Where the store is bound to a tenant, the points of others are left alone."""

    def __init__(self, place: str, key: str, collection: str, tenant: str | None = None) -> None:
        self.place = place
        self._tenant = tenant
        self._prefix = collection
        self._remote = place.startswith(("http://", "https://"))
        self._known: set[str] = set()
        # The embedded form is not made for several threads; a server's client is.
        self._turn = threading.RLock()
        try:
            if self._remote:
                with warnings.catch_warnings(action="ignore"):  # a key over plain http, in a network of one's own
                    self._client = QdrantClient(
                        url=place, api_key=key or None, timeout=TIMEOUT_SECONDS, check_compatibility=False
                    )
            elif place == ":memory:":
                self._client = QdrantClient(location=place)
            else:
                self._client = QdrantClient(path=place, force_disable_check_same_thread=True)
        except (ValueError, RuntimeError, OSError) as error:
            if "already accessed" in str(error):  # the library has no other word for it
                raise StoreInUse(f"another process has the Qdrant folder {place} open", ALONE) from error
            raise InvalidInput(
                f"Qdrant cannot be opened at {place}: {error}",
                "give a server's URL, or a folder that no other process has open",
                "qdrant",
            ) from error

    def close(self) -> None:
        with self._turn:
            self._client.close()

    def collection(self, model: str) -> str:
        """The name of a model's collection; model names may hold what collection names may not."""
        return f"{self._prefix}-{hashlib.sha256(model.encode()).hexdigest()[:16]}"

    def collections(self) -> list[str]:
        """All collections of this store."""
        with self._talking():
            found = self._client.get_collections().collections
        own = re.compile(f"{re.escape(self._prefix)}-[0-9a-f]{{16}}")  # another store's prefix may begin like ours
        return sorted(one.name for one in found if own.fullmatch(one.name))

    def nearest(self, model: str, vector: Vector, filter: Filter, limit: int) -> list[str]:
        """The memories in scope with the best vectors, best first; none where the model has no collection yet."""
        try:
            with self._talking():
                found = self._client.query_points_groups(
                    self.collection(model),
                    query=vector.tolist(),
                    query_filter=condition(filter),
                    group_by=OWNER,
                    group_size=1,
                    limit=limit,
                    with_payload=False,
                )
        except _NoCollection:
            return []
        return [str(group.id) for group in found.groups]

    def put(self, model: str, made: Sequence[models.PointStruct]) -> None:
        """Write points; the collection is made by the first ones."""
        if not made:
            return
        name = self.collection(model)
        with self._talking():
            believed = name in self._known
            try:
                self._upsert(name, made)
            except (UnexpectedResponse, ValueError):
                # Another process may have taken the collection away, or made it anew for vectors of another length.
                self._known.discard(name)
                if not believed:
                    raise
                self._upsert(name, made)

    def _upsert(self, name: str, made: Sequence[models.PointStruct]) -> None:
        vector: Any = made[0].vector
        self._prepare(name, len(vector))
        for start in range(0, len(made), UPSERTED):
            self._client.upsert(name, made[start : start + UPSERTED], wait=True)

    def drop(self, collection: str, points: Sequence[str]) -> None:
        """Take points away."""
        with self._talking():
            self._client.delete(collection, models.PointIdsList(points=list(points)), wait=True)

    def forget(self, model: str) -> None:
        """Take a model's collection away, if there is one; where others have points in it, only our own."""
        name = self.collection(model)
        self._known.discard(name)
        with suppress(_NoCollection), self._talking():
            if self._tenant is None:
                self._client.delete_collection(name)
            else:
                self._client.delete(name, models.FilterSelector(filter=of_tenant(self._tenant)), wait=True)

    def drop_memories(self, ids: Sequence[str]) -> None:
        """Take every point of these memories away, whatever the model."""
        for name in self.collections():
            with self._talking():
                self._client.delete(name, models.FilterSelector(filter=of_memories(ids, self._tenant)), wait=True)

    def page(self, collection: str, after: str | None, limit: int) -> tuple[list[tuple[str, str]], str | None]:
        """The next points as (point, memory), and where to go on; None at the end."""
        with self._talking():
            found, onward = self._client.scroll(
                collection, of_tenant(self._tenant), limit=limit, offset=after, with_payload=[OWNER]
            )
        return [(str(one.id), str((one.payload or {}).get(OWNER))) for one in found], None if onward is None else str(
            onward
        )

    def prints(self, model: str, points: Sequence[str]) -> dict[str, str]:
        """The fingerprints of those of these points that are there."""
        try:
            with self._talking():
                found = self._client.retrieve(self.collection(model), list(points), with_payload=[PRINT])
        except _NoCollection:
            return {}
        return {str(one.id): str((one.payload or {}).get(PRINT)) for one in found}

    def _prepare(self, name: str, dimension: int) -> None:
        """Make the collection with its indexes, once."""
        if name in self._known:
            return
        exists = self._client.collection_exists(name)
        if exists and self._length(name) not in (None, dimension):
            log.warning("the collection %s was of vectors of another length and is made anew", name)
            exists = not self._client.delete_collection(name)
        if not exists:
            # The vectors are of length 1, so the dot product is the cosine.
            self._client.create_collection(
                name, vectors_config=models.VectorParams(size=dimension, distance=models.Distance.DOT)
            )
        if self._remote:  # the embedded form has no indexes
            tenant = models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True)
            self._client.create_payload_index(name, "namespace", tenant)
            self._client.create_payload_index(name, "created_at", models.PayloadSchemaType.INTEGER)
            for field in KEYWORDS:
                self._client.create_payload_index(name, field, models.PayloadSchemaType.KEYWORD)
        self._known.add(name)

    def _length(self, name: str) -> int | None:
        """How long the vectors of a collection are, where it says so."""
        vectors = self._client.get_collection(name).config.params.vectors
        return vectors.size if isinstance(vectors, models.VectorParams) else None

    @contextmanager
    def _talking(self) -> Generator[None]:
        """One conversation with Qdrant; what goes wrong becomes one of our errors."""
        with nullcontext() if self._remote else self._turn:
            try:
                yield
            except UnexpectedResponse as error:
                if error.status_code == NOT_FOUND:
                    raise _NoCollection("Qdrant has no such collection", "run doctor with repair") from error
                raise _unavailable(self.place, refused=error.status_code in REFUSED) from error
            except ValueError as error:  # how the embedded form says it
                if "not found" in str(error):
                    raise _NoCollection("Qdrant has no such collection", "run doctor with repair") from error
                raise _unavailable(self.place) from error
            except (ResponseHandlingException, httpx.HTTPError, OSError) as error:
                raise _unavailable(self.place) from error


class _NoCollection(StoreUnavailable):
    """Nothing was put for this model yet, or someone took its collection away."""


def _unavailable(place: str, *, refused: bool = False) -> StoreUnavailable:
    if refused:
        return StoreUnavailable(f"Qdrant refuses the key at {place}", "set RECOLLECT_QDRANT_KEY to the server's key")
    return StoreUnavailable(
        f"Qdrant does not answer at {place}", "start it, or empty the setting qdrant to search the store's own vectors"
    )
