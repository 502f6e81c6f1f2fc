"""Why nobody is let in: the pool only says that it took too long, so what each attempt was told is kept here.

libpq gives no code for a connection that failed, only its message: what is not recognised (a server that speaks another
language) is told in general. No message of ours holds more of the address than may be shown.
"""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg_pool import PoolTimeout

from recollect.domain.errors import StoreUnavailable
from recollect.stores.postgres.address import Address

PASSWORD = "check user and password; PGPASSWORD and ~/.pgpass count where the address has none"


@dataclass(frozen=True, slots=True)
class Reason:
    """What is recognised in a message, how it is told and what to do; `lasting`: waiting does not change it."""

    pattern: re.Pattern[str]
    told: str
    hint: str
    lasting: bool = True


def _reason(pattern: str, told: str, hint: str, lasting: bool = True) -> Reason:
    return Reason(re.compile(pattern, re.IGNORECASE), told, hint, lasting)


REASONS = (
    _reason(
        "invalid (uri query parameter|connection option)",
        "is not asked: an option of the address is unknown",
        "check how they are written: ours are in docs/postgres.md, the others are libpq's",
    ),
    _reason("password authentication failed", "refuses the password", PASSWORD),
    _reason("no password supplied", "wants a password", PASSWORD),
    _reason(
        'database ".*" does not exist',
        "has no such database",
        "make it on the server: `createdb {database}`; docs/postgres.md has the grants",
    ),
    _reason(
        'role ".*" does not exist',
        "does not know the user",
        "check the name, or make it on the server: CREATE ROLE … LOGIN; see docs/postgres.md",
    ),
    _reason(
        "pg_hba.conf|authentication failed",
        "lets nobody in from here",
        "let user, database and this machine in by the server's pg_hba.conf",
    ),
    _reason(
        "connection refused|no such file or directory",
        "cannot be reached: nothing listens there",
        "start the server, or check host and port",
        lasting=False,
    ),
    _reason(
        "resolve host|translate host name|name or service not known",
        "cannot be reached: the host is not known",
        "check the name of the host",
        lasting=False,
    ),
    _reason(
        "too many clients|connection slots|too many connections",
        "has no connection left",
        "try again, use a smaller `pool` in the address, or raise the server's max_connections",
        lasting=False,
    ),
)


class Unreached(PoolTimeout):
    """No connection was to be had; `told` is our error for it."""

    def __init__(self, told: StoreUnavailable) -> None:
        super().__init__(told.message)
        self.told = told


class Attempts:
    """What became of a pool's attempts to connect."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._settled = threading.Event()
        self._last: psycopg.Error | None = None

    def watched(self) -> type[psycopg.Connection[Any]]:
        """The class of connections that tells here how its attempts end."""
        attempts = self

        class Watched(psycopg.Connection[Any]):
            @classmethod
            def connect(cls, *args: Any, **more: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
                try:
                    made = super().connect(*args, **more)
                except psycopg.Error as error:
                    attempts.failed(error)
                    raise
                attempts.succeeded()
                return made

        return Watched

    def succeeded(self) -> None:
        self._last = None
        self._settled.set()

    def failed(self, error: psycopg.Error) -> None:
        self._last = error
        if (reason := _recognised(error)) is not None and reason.lasting:
            self._settled.set()

    def wait(self, seconds: float) -> None:
        """Until one attempt has succeeded; Unreached when none has in time, and as soon as none ever will."""
        if not self._settled.wait(seconds) or self._last is not None:
            raise self.unreached()

    def unreached(self) -> Unreached:
        """The error for who gets no connection."""
        reason = None if self._last is None else _recognised(self._last)
        place = f"the PostgreSQL server of {self._address.shown}"
        if reason is None:
            return Unreached(StoreUnavailable(f"{place} cannot be reached", "check the address and that it runs"))
        hint = reason.hint
        if "{database}" in hint:  # asked for only here: an address with an unknown option cannot be read
            hint = hint.format(database=conninfo_to_dict(self._address.conninfo).get("dbname") or "NAME")
        return Unreached(StoreUnavailable(f"{place} {reason.told}", hint))


def _recognised(error: psycopg.Error) -> Reason | None:
    text = str(error)
    return next((one for one in REASONS if one.pattern.search(text)), None)
