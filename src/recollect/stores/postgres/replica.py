"""Recalls may be answered by a standby: while it answers, and where that is asked, only when it knows our own writes.

Finding goes there (words, vectors, links, what was used last). The memories themselves are always read from the
primary, so nobody sees an old text or a forgotten memory, and whatever is read before a write is current.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar
from weakref import WeakKeyDictionary

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from recollect.domain.errors import Corrupt, StoreUnavailable
from recollect.stores.postgres.address import Address
from recollect.stores.postgres.connection import Connection, Rows, Server, Values, nothing, one

Answer = TypeVar("Answer")
log = logging.getLogger(__name__)

REACH_S = 1.0
"""So long a recall waits for a connection to the standby."""
AWAY_S = 5.0
"""So long the standby is left alone after it failed."""
CATCH_UP_S = 0.2
"""So long a recall waits for the standby to know this store's last write."""
LOOK_S = 0.005
REPLAYED = "SELECT (pg_last_wal_replay_lsn() - '0/0')::bigint WHERE pg_is_in_recovery()"


class _Late(Exception):
    """The standby does not know this store's last write yet."""


def open_replica(server: Server, search_s: float) -> Server | None:
    """The standby's pool, where the address names one; whether it answers is seen at the first recall."""
    if server.address.replica is None:
        return None
    there = Server(replace(server.address, conninfo=_conninfo(server.address)), REACH_S, search_s, read_only=True)
    there.use(server.extension)
    there.open()
    return there


def _conninfo(address: Address) -> str:
    """The same as for the primary, but for the hosts: any server there will do, a standby rather than another."""
    hosts, ports = zip(*(_place(place) for place in str(address.replica).split(",")))
    usual = str(conninfo_to_dict(address.conninfo).get("port") or "5432").split(",")[0]
    return make_conninfo(
        address.conninfo,
        host=",".join(hosts),
        port=",".join(port or usual for port in ports),
        target_session_attrs="prefer-standby",
    )


def _place(place: str) -> tuple[str, str]:
    """Host and port of `host`, `host:port`, `[address]:port` or the folder of a socket."""
    host, colon, port = place.rpartition(":")
    if not colon or place.endswith("]"):
        return place.strip("[]"), ""
    return host.strip("[]"), port


class Reads:
    """Where recalls are read: from the standby, or else from the primary."""

    def __init__(self, primary: Server, standby: Server | None) -> None:
        self._primary = primary
        self._standby = standby
        self._away_until = 0.0
        self._known: WeakKeyDictionary[Connection, int] = WeakKeyDictionary()
        """How far the standby behind each connection was when it was last asked: behind one name there may be many."""

    @property
    def tenant(self) -> str | None:
        """The only tenant that is seen and counted, where the store is bound to one."""
        return self._primary.address.namespace

    def read(self, work: Callable[[Connection], Answer], namespace: str | None = None) -> Answer:
        """As `Server.read`; what goes wrong with the standby is done again on the primary."""
        return self._somewhere(lambda server, first: server.read(work, namespace, first=first))

    def read_from(
        self, statement: str, values: Values, work: Callable[[Connection, Rows], Answer], namespace: str | None = None
    ) -> Answer:
        """As `Server.read_from`, with the same care."""
        return self._somewhere(lambda server, first: server.read_from(statement, values, work, namespace, first))

    def ask(self, statement: str, values: Values = None, namespace: str | None = None) -> Rows:
        """As `Server.ask`, with the same care."""
        return self._somewhere(lambda server, first: server.ask(statement, values, namespace, first))

    def _somewhere(self, call: Callable[[Server, Callable[[Connection], None]], Answer]) -> Answer:
        if self._standby is not None and time.monotonic() >= self._away_until:
            try:
                return call(self._standby, self._catch_up)
            except _Late:
                log.debug("the standby is late: asking the primary")
            except (StoreUnavailable, Corrupt) as error:
                self._away_until = time.monotonic() + AWAY_S
                log.warning("the standby does not answer: asking the primary (%s)", error)
        return call(self._primary, nothing)

    def counting(self, connection: Connection, work: Callable[[], Answer]) -> Answer:
        """As `Server.counting`."""
        return self._primary.counting(connection, work)

    def close(self) -> None:
        """Give the standby's connections back."""
        if self._standby is not None:
            self._standby.close()

    def _catch_up(self, connection: Connection) -> None:
        """Wait until the standby knows what this store has written, or say that it is too late."""
        wanted = self._primary.written if self._primary.address.reads_own else 0
        deadline = time.monotonic() + CATCH_UP_S
        while self._known.get(connection, 0) < wanted:
            replayed: int | None = one(connection, REPLAYED)
            if replayed is None:
                raise _Late  # no standby (any more): its log is not the primary's
            self._known[connection] = replayed
            if replayed < wanted:
                if time.monotonic() >= deadline:
                    raise _Late
                time.sleep(LOOK_S)
