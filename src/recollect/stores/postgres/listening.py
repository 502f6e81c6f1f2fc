"""Workers are called when memories wait for vectors: NOTIFY after the commit, LISTEN on a connection of its own.

A call may be lost (a connection that broke, a process that died between commit and call); workers look every second
all the same. Through a pooler that lends a connection for one transaction nobody can listen, so there they only look.
"""

from __future__ import annotations

import hashlib
import logging
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import wait

import psycopg

from recollect.domain.errors import RecollectError
from recollect.stores.postgres.address import Address
from recollect.stores.postgres.connection import CONNECT_S, Connection, Server, one

log = logging.getLogger(__name__)

AGAIN_S = 1.0
"""After a lost connection the next attempt waits so long."""
STOP_S = 5.0


def channel(schema: str) -> str:
    """The channel of a schema, short enough for any name."""
    return f"recollect_{hashlib.blake2b(schema.encode(), digest_size=8).hexdigest()}"


def announce(server: Server) -> None:
    """Call the workers of all processes. By itself and undurable: the server calls one transaction after the other,

    and with the write inside, all writers would wait for each other's disk. That it may fail is nobody's concern.
    """
    name = channel(server.address.schema)
    with suppress(RecollectError), server.plain() as connection:
        connection.execute(f"BEGIN; SET LOCAL synchronous_commit = off; NOTIFY {name}; COMMIT".encode())


class Listener:
    """One thread with one connection, from the first subscription until the store is closed."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._thread: threading.Thread | None = None
        self._stop, self._stopped = socket.socketpair()

    def start(self, wake: Callable[[], None]) -> None:
        """Call `wake` whenever work may have been left, at first and after every loss of the connection too."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, args=(wake,), name="recollect-listen", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Stop listening. Safe to call twice."""
        with suppress(OSError):
            self._stop.send(b"x")
        if self._thread is not None:
            self._thread.join(STOP_S)
        self._stop.close()
        self._stopped.close()

    def _run(self, wake: Callable[[], None]) -> None:
        listening = True
        while listening:
            try:
                with psycopg.connect(self._address.conninfo, autocommit=True, connect_timeout=CONNECT_S) as connection:
                    listening = self._listen(connection, wake)
            except psycopg.Error as error:
                log.info("not listening: %s", type(error).__name__)
                listening = not self._is_stopped(None, AGAIN_S)

    def _listen(self, connection: Connection, wake: Callable[[], None]) -> bool:
        """Until the end (False) or until the connection breaks (an error)."""
        if not is_direct(connection):
            log.warning("a pooler stands before PostgreSQL: workers look for new memories, they are not called")
            return False
        connection.execute(f"LISTEN {channel(self._address.schema)}".encode())
        wake()
        while not self._is_stopped(connection, None):
            if list(connection.notifies(timeout=0)):
                wake()
        return False

    def _is_stopped(self, connection: Connection | None, seconds: float | None) -> bool:
        """Wait for the server, for the end or for the time; whether it was the end."""
        waiting = [self._stopped] if connection is None else [self._stopped, connection.fileno()]
        return self._stopped in wait(waiting, seconds)


def is_direct(connection: Connection) -> bool:
    """Whether the server that answers is the one that was connected to: a pooler gives out numbers of its own."""
    return connection.info.backend_pid == one(connection, "SELECT pg_backend_pid()")
