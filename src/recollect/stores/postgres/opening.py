"""Opening a PostgreSQL store: the address is read, the schema brought up to date, the ports put together."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from recollect.domain.errors import RecollectError
from recollect.ports import Store
from recollect.stores.postgres.address import parsed
from recollect.stores.postgres.care import PostgresCare
from recollect.stores.postgres.connection import Server, one
from recollect.stores.postgres.lexemes import Tokens
from recollect.stores.postgres.links import PostgresLinks
from recollect.stores.postgres.listening import Listener
from recollect.stores.postgres.ranked import Ranked
from recollect.stores.postgres.records import PostgresRecords
from recollect.stores.postgres.replica import Reads, open_replica
from recollect.stores.postgres.schema import MIGRATIONS, Migration, prepare
from recollect.stores.postgres.text import PostgresText
from recollect.stores.postgres.vectors import PostgresVectors

WAIT_S = 30.0
SEARCH_S = 10.0
LOOK_S = 10.0
"""So long it may take until the promotion of a standby is noticed."""


def open_postgres(
    address: str,
    *,
    read_only: bool = False,
    wait_s: float = WAIT_S,
    search_s: float = SEARCH_S,
    clock: Callable[[], float] = time.time,
    migrations: Sequence[Migration] = MIGRATIONS,
) -> Store:
    """Open a store, making its schema if it is not there.

    wait_s bounds how long a call waits for a connection and a write for a lock, search_s a statement that only reads.
    """
    server = Server(parsed(address), wait_s, search_s, read_only=read_only)
    server.open()
    try:
        server.reach()
        prepare(server, migrations)
        writable = _Writable(server)
    except BaseException:
        server.close()
        raise
    tokens = Tokens()
    reads = Reads(server, open_replica(server, search_s))
    ranked = Ranked(server)
    vectors = PostgresVectors(server, reads, tokens, clock)
    listener = Listener(server.address)

    def close() -> None:
        if server.is_inherited:
            return
        listener.close()
        if not server.is_closed:
            with suppress(RecollectError):  # a lease that cannot be given back ends by itself
                vectors.release()
        reads.close()
        server.close()

    return Store(
        records=PostgresRecords(server, reads, tokens),
        care=PostgresCare(server, tokens, ranked),
        text=PostgresText(reads, tokens, ranked.attempt),
        vectors=vectors,
        links=PostgresLinks(reads),
        close=close,
        subscribe=listener.start,
        writable=writable,
        tenant=server.address.namespace,
    )


class _Writable:
    """Whether the server takes writes. A standby does not, nor may a role; as a standby may be promoted, it is asked
    again from time to time."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._asked_at = time.monotonic()
        self._answer = not server.read_only and self._ask()

    def __call__(self) -> bool:
        if not self._answer and not self._server.read_only and time.monotonic() >= self._asked_at + LOOK_S:
            self._asked_at = time.monotonic()
            with suppress(RecollectError):  # who does not answer takes no writes either
                self._answer = self._ask()
        return self._answer

    def _ask(self) -> bool:
        with self._server.plain() as connection:
            return not one(connection, "SELECT current_setting('transaction_read_only')::boolean")
