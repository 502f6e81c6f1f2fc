"""Qdrant as the finder of vectors beside any store: records and vectors stay where they are, Qdrant mirrors them.

What is found there is judged by the store's own vectors and filters, so ranking and scope are the store's; what Qdrant
lacks or holds too much is healed by `tidy` little by little, and by `check` with repair at once.
"""

from __future__ import annotations

from dataclasses import replace

from recollect.domain.errors import InvalidInput
from recollect.ports import Store
from recollect.stores.qdrant.mirror import Mirror
from recollect.stores.qdrant.ports import MirroredCare, MirroredRecords, MirroredVectors
from recollect.stores.qdrant.server import Server


def with_qdrant(store: Store, place: str, *, key: str = "", collection: str = "recollect") -> Store:
    """The same store, its vectors searched in Qdrant: a server's URL, a folder, or ":memory:" for the embedded form.

    `collection` begins the names of this store's collections: two stores on one server need two of them.
    """
    if store.vectors is None:
        raise InvalidInput("this store keeps no vectors that Qdrant could mirror", "leave the setting qdrant empty")
    server = Server(place, key, collection, store.tenant)
    mirror = Mirror(store.records, store.vectors, store.care, server)

    def close() -> None:
        server.close()
        store.close()

    return replace(
        store,
        records=MirroredRecords(store.records, store.links, mirror),
        vectors=MirroredVectors(store.records, store.vectors, server, mirror),
        care=MirroredCare(store.care, mirror, server.place),
        close=close,
    )
