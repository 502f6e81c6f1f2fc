"""Talking to the server: a pool, transactions that carry their tenant, errors with our names, and restarts survived.

Nothing outlives a transaction: settings are SET LOCAL, locks end with it, statements are not prepared. So a pooler in
transaction mode (PgBouncer) may stand between.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeAlias, TypeVar

import psycopg
from psycopg import errors, sql
from psycopg_pool import ConnectionPool, PoolTimeout

from recollect.domain.errors import Conflict, Corrupt, InvalidInput, RecollectError, StoreUnavailable, Timeout
from recollect.stores.postgres.address import Address
from recollect.stores.postgres.reaching import Attempts, Unreached
from recollect.stores.refusals import half_a_character

Connection: TypeAlias = "psycopg.Connection[tuple[Any, ...]]"
Answer = TypeVar("Answer")
Rows: TypeAlias = list[tuple[Any, ...]]
Values: TypeAlias = Sequence[Any] | dict[str, Any] | None

EVERYONE = "\x01everyone"
"""In the place of a tenant: all of them. No namespace can have this name."""

CONNECT_S = 5
IDLE_S = 60.0
RECONNECT_S = 1.0
REACH_S = 10.0
"""A call waits so long for a connection: long enough for a restart, short enough for whoever asked."""
ATTEMPTS = 4
"""A transaction that lost a race is made again so many times."""
RESOLVE_S = 10.0

READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
WRITE = "BEGIN ISOLATION LEVEL READ COMMITTED"
ALONE = "SET LOCAL max_parallel_workers_per_gather = 0; SET LOCAL jit = off"
"""A statement of ours is over before helpers are started or machine code is made, and many ask at once."""
EXACT = "SET LOCAL extra_float_digits = 1"
"""Numbers come back to the last digit, whatever the role is used to: checksums are over all of them."""
LIFE = "pg_stat_get_bgwriter_stat_reset_time()::text"
"""Changes with a crash of the server, which forgets its statistics and gives the numbers of transactions whose log was
lost out again; a restart in good order keeps both."""
STATUS = (
    f"SELECT CASE WHEN pg_is_in_recovery() THEN 'unknown' ELSE pg_xact_status(%s::xid8) END, {LIFE},"
    " current_setting('synchronous_standby_names') <> ''"
    " AND current_setting('synchronous_commit') NOT IN ('off', 'local')"
)
"""What became of a transaction, which life of the server tells, and whether a standby had to confirm it too."""
PLACE = "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint"
MOST_OPENINGS = 1_000
RACES = (errors.SerializationFailure, errors.DeadlockDetected, errors.UniqueViolation)


def nothing(_: Connection) -> None:
    return None


class Server:
    """The pool of one store."""

    def __init__(self, address: Address, wait_s: float, search_s: float, *, read_only: bool = False) -> None:
        self.address = address
        self.read_only = read_only
        self._wait_s = wait_s
        self._search_s = search_s
        self._process = os.getpid()
        self._writing = threading.Lock()
        self.written = 0
        """The place in the server's log behind everything this store has written; kept where there is a standby."""
        self.extension = "public"
        """The schema in which pgvector lives."""
        self._path: sql.Composable = sql.SQL("pg_catalog")
        self._openings: dict[tuple[str, str, float], bytes] = {}
        """What begins a transaction, by its kind, tenant and time: making it costs as much as asking."""
        self._attempts = Attempts(address)
        self._reach_s = min(wait_s, REACH_S)
        self._pool: ConnectionPool[Connection] = ConnectionPool(
            address.conninfo,
            connection_class=self._attempts.watched(),
            kwargs={
                "autocommit": True,
                "prepare_threshold": None,
                "connect_timeout": CONNECT_S,
                "client_encoding": "utf8",  # whatever the environment says: texts of all scripts pass
            },
            min_size=1,
            max_size=address.pool,
            timeout=self._reach_s,
            max_idle=IDLE_S,
            reconnect_timeout=RECONNECT_S,
            num_workers=1,
            open=False,
        )

    def open(self) -> None:
        """Start the pool. The first transaction tells whether the server answers."""
        self._pool.open()

    def reach(self) -> None:
        """Wait for the first connection; whom the server refuses, and will refuse again, is told so at once."""
        with translated():
            self._attempts.wait(self._reach_s)

    def close(self) -> None:
        """Give all connections back to the server."""
        self._pool.close()

    @property
    def is_inherited(self) -> bool:
        """Whether this process came to the store by a fork: the connections belong to the process that opened it."""
        return os.getpid() != self._process

    @property
    def is_closed(self) -> bool:
        return self._pool.closed

    def use(self, extension: str) -> None:
        """Where unqualified names are looked for: the store's own schema, then that of the vector extension."""
        self.extension = extension
        self._openings.clear()
        self._path = search_path(self.address.schema, extension)

    @property
    def everyone(self) -> str:
        """The widest view this store may have: its own tenant, or all."""
        return EVERYONE if self.address.namespace is None else self.address.namespace

    @contextmanager
    def plain(self) -> Generator[Connection]:
        """A bare connection, each statement its own transaction: for what the server refuses inside one."""
        with translated(), self._lent() as connection:
            yield connection

    def read(
        self,
        work: Callable[[Connection], Answer],
        namespace: str | None = None,
        seconds: float | None = None,
        first: Callable[[Connection], None] = nothing,
    ) -> Answer:
        """One consistent view for several statements; a lost connection is replaced once.

        `namespace` is the tenant that may be seen; a store that is bound to one never sees another. `seconds` is what
        a statement may take, where that is more than for a search; `first` is done before the view is fixed.
        """

        def whole(connection: Connection) -> Answer:
            connection.execute(self._opening(connection, READ, self._seen(namespace), seconds or self._search_s))
            try:
                return work(connection)
            finally:
                _end(connection, "ROLLBACK")

        return self._reading(whole, first)

    def ask(
        self,
        statement: str,
        values: Values = None,
        namespace: str | None = None,
        first: Callable[[Connection], None] = nothing,
    ) -> Rows:
        """The rows of one statement that reads, in one round trip: transaction and values are written into it.

        Only for rows of texts and numbers: bytes come back as text twice as long.
        """

        def whole(connection: Connection) -> Rows:
            begun = self._begun(connection, statement, values, namespace)
            try:
                return _only(connection.execute(b"; ".join([*begun, b"ROLLBACK"])))
            except psycopg.Error:
                _end(connection, "ROLLBACK")
                raise

        return self._reading(whole, first)

    def read_from(
        self,
        statement: str,
        values: Values,
        work: Callable[[Connection, Rows], Answer],
        namespace: str | None = None,
        first: Callable[[Connection], None] = nothing,
    ) -> Answer:
        """As `read`, beginning with the rows of a statement, for which there is no round trip of its own: see `ask`."""

        def whole(connection: Connection) -> Answer:
            begun = self._begun(connection, statement, values, namespace)
            try:
                return work(connection, _only(connection.execute(b"; ".join(begun))))
            finally:
                _end(connection, "ROLLBACK")

        return self._reading(whole, first)

    def _begun(self, connection: Connection, statement: str, values: Values, namespace: str | None) -> list[bytes]:
        opening = self._opening(connection, READ, self._seen(namespace), self._search_s)
        return [opening, psycopg.ClientCursor(connection).mogrify(statement.encode(), values).encode()]

    def _seen(self, namespace: str | None) -> str:
        return self.address.namespace or namespace or EVERYONE

    def _reading(self, whole: Callable[[Connection], Answer], first: Callable[[Connection], None]) -> Answer:
        def attempt() -> Answer:
            with self._lent() as connection:
                first(connection)
                return whole(connection)

        with translated():
            try:
                return attempt()
            except (errors.OperationalError, errors.InterfaceError) as error:
                if not _lost(error) or isinstance(error, PoolTimeout):
                    raise
                self._drop_stale()
                return attempt()

    def counting(self, connection: Connection, work: Callable[[], Answer]) -> Answer:
        """Look at the whole index inside a tenant's transaction: only for numbers that describe the index.

        An error ends the transaction, and the wider view with it.
        """
        narrow = one(connection, "SELECT current_setting('recollect.namespace')")
        run(connection, "SELECT set_config('recollect.namespace', %s, true)", (self.everyone,))
        counted = work()
        run(connection, "SELECT set_config('recollect.namespace', %s, true)", (narrow,))
        return counted

    def write(self, work: Callable[[Connection], Answer]) -> Answer:
        """One transaction, durable when this returns. `work` may run again: it must not keep what it did.

        What lost a race is tried again. A connection lost before the commit left nothing behind, so that is tried
        again too; one lost during the commit is resolved by asking the server what became of the transaction. Nobody
        can tell after a crash of the server that gave the transaction's number out again, nor whether a standby that
        has to confirm a commit has it: that is an error.
        """
        if self.read_only:
            raise StoreUnavailable("the store was opened for reading only", "open it without read_only to write")
        with translated():
            for attempt in range(ATTEMPTS):
                try:
                    return self._write_once(work)
                except RACES:
                    if attempt + 1 == ATTEMPTS:
                        raise
                    time.sleep(0.01 * 2**attempt)
                except (errors.OperationalError, errors.InterfaceError) as error:
                    if not _lost(error) or isinstance(error, PoolTimeout) or attempt:
                        raise
                    self._drop_stale()
        raise StoreUnavailable("the write lost every race", "try again")

    def _write_once(self, work: Callable[[Connection], Answer]) -> Answer:
        with self._lent() as connection:
            connection.execute(self._opening(connection, WRITE, self.everyone, self._wait_s))
            try:
                answer = work(connection)
                number, life = rows(connection, f"SELECT pg_current_xact_id_if_assigned()::text, {LIFE}")[0]
            except BaseException:
                _end(connection, "ROLLBACK")
                raise
            try:
                self._commit(connection, number)
                return answer
            except (errors.OperationalError, errors.InterfaceError) as error:
                if not _lost(error):
                    raise
        if self._has_committed(number, life):
            return answer
        raise errors.OperationalError("the connection was lost and the transaction undone")

    def _commit(self, connection: Connection, number: str | None) -> None:
        """Make it durable; with a standby, also note how far that must have come to know of it."""
        if self.address.replica is None or number is None:
            connection.execute("COMMIT")
            return
        done = connection.execute(f"COMMIT; {PLACE}".encode())
        done.nextset()
        (place,) = done.fetchone() or (0,)
        self._note(place)

    def _note(self, place: int) -> None:
        with self._writing:
            self.written = max(self.written, place)

    def _has_committed(self, number: str | None, life: str | None) -> bool:
        """What became of a transaction whose commit was not answered; an error while nobody can tell."""
        if number is None:  # it wrote nothing, so nothing can be lost
            return True
        deadline = time.monotonic() + RESOLVE_S
        while time.monotonic() < deadline:
            self._drop_stale()
            try:
                with self._lent() as connection:
                    status, now, needs_standby = rows(connection, STATUS, (number,))[0]
                    if status == "committed" and self.address.replica is not None:
                        self._note(one(connection, PLACE))
            except errors.InvalidParameterValue:  # a number of the future: a crash took the transaction with it
                return False
            except (errors.OperationalError, errors.InterfaceError):
                time.sleep(0.1)
                continue
            if status == "aborted":
                return False
            if status == "committed" and now == life and not needs_standby:
                return True
            if status == "committed":  # by this transaction, or after the crash by another of the same number
                break
            time.sleep(0.05)
        raise StoreUnavailable(
            "the connection was lost during the commit; the write may have happened", "read it back before trying again"
        )

    @contextmanager
    def _lent(self) -> Generator[Connection]:
        if self.is_inherited:
            raise StoreUnavailable("the store was opened before this process was forked", "open it again here")
        if self._pool.closed:
            raise StoreUnavailable("the store is closed", "open it again")
        try:
            connection = self._pool.getconn()
        except PoolTimeout as error:
            raise self._attempts.unreached() from error
        try:
            with connection:
                yield connection
        finally:
            self._pool.putconn(connection)

    def _drop_stale(self) -> None:
        """After a restart every idle connection is dead: find out now, not one call at a time."""
        with suppress(PoolTimeout):
            self._pool.check()

    def _opening(self, connection: Connection, begin: str, namespace: str, seconds: float) -> bytes:
        """One message: the transaction, who may be seen in it, and how long a statement may take.

        One that writes has as long again: of two times the server tells of the shorter, and waiting is another matter.
        """
        known = self._openings.get((begin, namespace, seconds))
        if known is not None:
            return known
        role = sql.SQL("")
        if self.address.role is not None:
            role = sql.SQL("SET LOCAL ROLE {}; ").format(sql.Identifier(self.address.role))
        made = (
            sql.SQL(
                "{begin}; {role}SET LOCAL search_path = {path}; SET LOCAL statement_timeout = {whole};"
                " SET LOCAL lock_timeout = {time}; SET LOCAL idle_in_transaction_session_timeout = 60000;"
                " SET LOCAL recollect.namespace = {namespace}; SET LOCAL recollect.index = {index}; "
            ).format(
                begin=sql.SQL(READ if begin == READ else WRITE),
                role=role,
                path=self._path,
                time=sql.Literal(int(seconds * 1000)),
                whole=sql.Literal(int(seconds * 1000) * (1 if begin == READ else 2)),
                namespace=sql.Literal(namespace),
                index=sql.Literal(self.everyone),
            )
            + sql.SQL(f"{ALONE}; {EXACT}")
        ).as_bytes(connection)
        if len(self._openings) >= MOST_OPENINGS:
            self._openings.clear()
        self._openings[begin, namespace, seconds] = made
        return made


def search_path(schema: str, extension: str) -> sql.Composable:
    """The temporary schema comes last, where nobody can hide our tables behind others."""
    return sql.SQL(", ").join([sql.Identifier(name) for name in (schema, extension, "pg_temp")])


def _end(connection: Connection, command: str) -> None:
    """End a transaction on a connection that may be gone: the pool throws such a one away."""
    with suppress(psycopg.Error):
        connection.execute(command.encode())


def _only(found: psycopg.Cursor[tuple[Any, ...]]) -> Rows:
    """The rows of the one statement of a message that has any."""
    while found.description is None and found.nextset():
        pass
    return found.fetchall()


def _lost(error: psycopg.Error) -> bool:
    """Whether the connection went, not the statement: the server restarts, fails over or cannot be reached."""
    return error.sqlstate is None or (error.sqlstate[:2] in ("08", "57") and error.sqlstate != "57014")


@contextmanager
def translated() -> Generator[None]:
    """Turn the driver's errors into ours; no message carries SQL, an address or a value."""
    try:
        yield
    except psycopg.Error as error:
        raise translate(error) from error
    except UnicodeEncodeError as error:
        raise half_a_character() from error


def translate(error: psycopg.Error) -> RecollectError:
    """Our name for what the server reports."""
    if isinstance(error, Unreached):
        return error.told
    if isinstance(error, errors.QueryCanceled):
        return Timeout("the server took too long", "ask with fewer or rarer words, or try again")
    if isinstance(error, errors.DiskFull):
        return StoreUnavailable("the server's disk is full", "free some space; nothing of this write was kept")
    if isinstance(error, errors.UniqueViolation):
        return Conflict("another write took the same id or key", "read it again and repeat the change")
    if isinstance(error, errors.InsufficientPrivilege):
        return StoreUnavailable("the server refuses: the role may not do this", "see docs/postgres.md for the grants")
    if isinstance(error, errors.ReadOnlySqlTransaction):
        return StoreUnavailable("the server only reads (is it a replica?)", "give the address of the primary")
    if isinstance(error, errors.DataCorrupted | errors.IndexCorrupted | errors.UndefinedTable | errors.UndefinedColumn):
        return Corrupt("the store's tables are damaged or not ours", "run doctor, or restore a backup")
    if isinstance(error, errors.ProgramLimitExceeded | errors.StatementTooComplex):
        return InvalidInput("a value is longer than PostgreSQL can keep", "shorten names, keys and ids to 2,000 bytes")
    if isinstance(error, (*RACES, errors.LockNotAvailable)):
        return StoreUnavailable("the store stayed locked for too long", "try again")
    if isinstance(error, psycopg.DataError | psycopg.IntegrityError):
        return InvalidInput("a value cannot be kept by PostgreSQL", "NUL characters and huge numbers cannot be stored")
    if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return StoreUnavailable("the PostgreSQL server cannot be reached", "check the address and that it runs")
    return StoreUnavailable(f"PostgreSQL reports: {type(error).__name__}", "try again; if it stays, run doctor")


def rows(connection: Connection, text: str, values: Values = None, *, binary: bool = False) -> Rows:
    """All rows of one statement; `binary` where they hold many bytes, which would come as text twice as long."""
    return connection.execute(text.encode(), values, binary=binary).fetchall()


def one(connection: Connection, text: str, values: Values = None) -> Any:
    """The first row of one statement (its only column bare), or None."""
    found = connection.execute(text.encode(), values).fetchone()
    return found[0] if found is not None and len(found) == 1 else found


def run(connection: Connection, text: str, values: Values = None) -> int:
    """Run one statement; how many rows it touched."""
    return connection.execute(text.encode(), values).rowcount
