"""Opening SQLite safely: the version gate, settings that are read back, a pool of readers, errors with our names."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any, Protocol, cast

import apsw

from recollect.domain.errors import Corrupt, DiskFull, InvalidInput, RecollectError, StoreInUse, StoreUnavailable
from recollect.stores.refusals import cannot_be_made, half_a_character
from recollect.stores.sqlite import forks
from recollect.stores.sqlite.derived import add_functions
from recollect.stores.sqlite.sealed import unchanging

PAGE_BYTES = 8192
BUSY_MS = 10_000
ALONE_MS = 1_000
IDLE_READERS = 8
WAL_PAGES = 1000
CACHE = -32_000
"""Of a connection; SQLite takes a negative number for KB."""

# Every occurrence of every term; of each connection's own, so that the file needs no table for it.
INSTANCES = "CREATE VIRTUAL TABLE IF NOT EXISTS temp.instances USING fts5vocab (main, fulltext, instance)"

# The WAL-reset bug can lose a committed transaction; it was mended in these releases (and everything newer).
FIRST_FIXED = (3, 51, 3)
FIXED_BRANCHES = (((3, 44, 6), (3, 45)), ((3, 50, 7), (3, 51)))


class Cursor(Protocol):
    """The rows of one statement."""

    def fetchall(self) -> list[tuple[Any, ...]]: ...
    def fetchone(self) -> tuple[Any, ...] | None: ...
    def __iter__(self) -> Iterator[tuple[Any, ...]]: ...
    @property
    def get(self) -> Any: ...


class Connection(Protocol):
    """What this store uses of apsw.Connection, with types (those of apsw are partly unknown to a strict checker)."""

    def execute(self, statements: str, bindings: Any = ...) -> Cursor: ...
    def executemany(self, statements: str, sequenceofbindings: Any) -> Cursor: ...
    def close(self) -> None: ...
    def changes(self) -> int: ...
    def total_changes(self) -> int: ...
    def last_insert_rowid(self) -> int: ...
    def data_version(self) -> int: ...
    def set_busy_timeout(self, milliseconds: int, /) -> None: ...
    def set_progress_handler(self, callable: Callable[[], bool] | None, nsteps: int = ...) -> None: ...
    def wal_checkpoint(self, *, mode: int) -> tuple[int, int]: ...
    def set_wal_hook(self, callable: Callable[[Any, str, int], int] | None) -> None: ...
    def fts5_tokenizer(self, name: str, args: list[str]) -> Any: ...
    @property
    def in_transaction(self) -> bool: ...


def raw(path: str, flags: int) -> Connection:
    """A connection as apsw opens it."""
    return cast(Connection, forks.opened(path, flags))


def require_safe_sqlite(version: str) -> None:
    """Refuse a SQLite library in which two writers can lose a committed transaction (the WAL-reset bug)."""
    number = tuple(int(part) for part in version.split("."))
    if number >= FIRST_FIXED or any(low <= number < high for low, high in FIXED_BRANCHES):
        return
    raise StoreUnavailable(
        f"SQLite {version} can lose committed writes (the WAL-reset bug)", "install apsw 3.51.3 or newer"
    )


def translate(error: apsw.Error | UnicodeError) -> RecollectError:
    """Our name for what SQLite reports; the message carries no SQL and no path. Texts that are no UTF-8 are damage."""
    if isinstance(error, UnicodeEncodeError):
        return half_a_character()
    if isinstance(error, apsw.CorruptError | apsw.NotADBError | UnicodeError):
        return damaged()
    if _is_full(error):
        return DiskFull("the disk is full", "free some space; what was being written was not kept")
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return StoreInUse("the store stayed locked for too long", "try again, or end the other program")
    if isinstance(error, apsw.ReadOnlyError | apsw.PermissionsError | apsw.AuthError):
        return StoreUnavailable("the store cannot be written", "check the permissions of the file and its folder")
    if isinstance(error, apsw.CantOpenError):
        return StoreUnavailable("the store cannot be opened", "check that its folder exists and can be written")
    if isinstance(error, apsw.TooBigError):
        return InvalidInput("a value is too large for the store", "split the memory into smaller ones")
    return StoreUnavailable(f"SQLite reports: {type(error).__name__}", "try again; if it stays, run doctor")


def damaged() -> Corrupt:
    """For whatever cannot be what was written."""
    return Corrupt("the store's file is damaged or is no recollect store", "run doctor, or restore a backup")


def _is_full(error: Exception) -> bool:
    return isinstance(error, apsw.FullError) or getattr(error, "extendedresult", 0) == apsw.SQLITE_IOERR_SHMSIZE


@contextmanager
def translated() -> Generator[None]:
    """Turn SQLite's errors into ours."""
    try:
        yield
    except (apsw.Error, UnicodeError) as error:
        raise translate(error) from error


def set_pragma(connection: Connection, name: str, value: str | int, expected: str | int | None = None) -> None:
    """One pragma per call, read back: apsw runs a string lazily, and SQLite ignores what it does not know."""
    connection.execute(f"PRAGMA {name}={value}").fetchall()
    found = connection.execute(f"PRAGMA {name}").get
    if found != (value if expected is None else expected):
        raise StoreUnavailable(f"SQLite kept {name}={found!r} instead of {value!r}", "use a local disk for the store")


def connect(
    path: str, *, read_only: bool = False, create: bool = False, sealed: bool = False, alone: bool = False
) -> Connection:
    """A hardened connection. WAL with synchronous=FULL: what was acknowledged survives a power cut."""
    # Only a file that is open for writing can be locked, which is what being alone with it means.
    flags = apsw.SQLITE_OPEN_READONLY if read_only and not alone else apsw.SQLITE_OPEN_READWRITE
    if create:
        flags |= apsw.SQLITE_OPEN_CREATE
    still = unchanging(path) if sealed else None
    connection = raw(path, flags) if still is None else raw(still, flags | apsw.SQLITE_OPEN_URI)
    try:
        _harden(cast(apsw.Connection, connection))
        add_functions(connection)
        connection.set_busy_timeout(BUSY_MS)
        if alone:
            _be_alone(connection)
        if not read_only:
            in_memory = path == ":memory:"
            if create:
                set_pragma(connection, "page_size", PAGE_BYTES, None if _is_empty(connection) else _page(connection))
            set_pragma(connection, "journal_mode", "memory" if in_memory else "wal")
            set_pragma(connection, "synchronous", "FULL", 2)
            set_pragma(connection, "wal_autocheckpoint", WAL_PAGES)
            set_pragma(connection, "secure_delete", "ON", 1)
        set_pragma(connection, "foreign_keys", "ON", 1)
        set_pragma(connection, "trusted_schema", "OFF", 0)
        set_pragma(connection, "cell_size_check", "ON", 1)
        set_pragma(connection, "temp_store", "MEMORY", 2)
        set_pragma(connection, "cache_size", CACHE)
        connection.execute("PRAGMA mmap_size=0").fetchall()
    except BaseException:
        connection.close()
        raise
    return connection


def _be_alone(connection: Connection) -> None:
    """Read without room on the disk: who is alone with a file keeps the index of its log in memory, not in a file.

    Where others have it open, SQLite refuses this; where nobody has, they wait until the connection closes. Nothing is
    written, also not what the log holds into the file, as the last connection that closes would.
    """
    connection.set_busy_timeout(ALONE_MS)
    cast(apsw.Connection, connection).config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    set_pragma(connection, "locking_mode", "EXCLUSIVE", "exclusive")


def _harden(connection: apsw.Connection) -> None:
    """A hostile file must not run code, no statement of ours needs generous limits, and its plan is made once.

    Otherwise SQLite may plan anew whenever other values are bound, which takes longer than most of our statements.
    """
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
    connection.config(apsw.SQLITE_DBCONFIG_DQS_DML, 0)
    connection.config(apsw.SQLITE_DBCONFIG_DQS_DDL, 0)
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0)
    for limit, value in (
        (apsw.SQLITE_LIMIT_LENGTH, 64 * 1024 * 1024),
        (apsw.SQLITE_LIMIT_SQL_LENGTH, 256 * 1024),
        (apsw.SQLITE_LIMIT_EXPR_DEPTH, 200),
        (apsw.SQLITE_LIMIT_ATTACHED, 0),
        (apsw.SQLITE_LIMIT_TRIGGER_DEPTH, 10),
        (apsw.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1000),
    ):
        connection.limit(limit, value)


def _is_empty(connection: Connection) -> bool:
    return connection.execute("PRAGMA page_count").get == 0


def _page(connection: Connection) -> int:
    return int(connection.execute("PRAGMA page_size").get)


class Readers:
    """A few read connections, lent one at a time; a reader never waits for the writer.

    A store in memory has a single connection: `shared` is lent to everyone in turn, the writer included. So has a full
    disk, for as long as a piece of work takes: others may want the file.
    """

    def __init__(self, path: str, *, read_only: bool, shared: Connection | None = None, sealed: bool = False) -> None:
        self._path = path
        self._read_only = read_only
        self._sealed = sealed
        self._shared = shared
        self._is_full = False
        self._lock = threading.RLock()
        self._idle: list[Connection] = []
        self._open: set[Connection] = set()
        self._closed = False
        self._process = os.getpid()
        self._file = None if shared is not None else _identity(path)
        if shared is not None:
            shared.execute(INSTANCES).fetchall()

    @contextmanager
    def borrow(self) -> Generator[Connection]:
        """A connection for one piece of work, with SQLite's errors translated."""
        if os.getpid() != self._process:  # the locks of SQLite and of threads were left behind
            raise StoreUnavailable("the store was opened before this process was forked", forks.HINT)
        with translated():
            connection = self._take() if self._shared is None else None
            if connection is None:
                with self._lock:
                    self._require_open()
                    with self._alone() if self._shared is None else nullcontext(self._shared) as only:
                        yield only
                return
            try:
                yield connection
            finally:
                self._give_back(connection)

    @contextmanager
    def reading(self) -> Generator[Connection]:
        """One consistent view of the file for several statements."""
        with self.borrow() as connection:
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                if connection.in_transaction:  # SQLite ends it by itself where the disk fails
                    connection.execute("ROLLBACK")

    def _take(self) -> Connection | None:
        """A connection of the pool; None where there is no room for one, and nothing is to be written."""
        with self._lock:
            self._require_open()
            if self._idle:
                return self._idle.pop()
        if self._is_full:
            return None
        try:
            connection = self._connected()
        except apsw.Error as error:
            if not (self._read_only and _is_full(error)):
                raise
            self._is_full = True
            return None
        with self._lock:
            self._open.add(connection)
        return connection

    @contextmanager
    def _alone(self) -> Generator[Connection]:
        """The only connection there is, also for what its borrower calls; an ordinary one where others came back."""
        try:
            connection = self._connected(alone=True)
        except apsw.BusyError:
            self._is_full = False
            connection = self._connected()
        with closing(connection) as self._shared:
            try:
                yield connection
            finally:
                self._shared = None

    def _connected(self, *, alone: bool = False) -> Connection:
        self.require_file()
        connection = connect(self._path, read_only=self._read_only, sealed=self._sealed, alone=alone)
        try:
            connection.execute(INSTANCES).fetchall()
            if alone or not self._read_only:
                set_pragma(connection, "query_only", 1)
        except BaseException:
            connection.close()
            raise
        return connection

    def _give_back(self, connection: Connection) -> None:
        with self._lock:
            if not self._closed and len(self._idle) < IDLE_READERS:
                self._idle.append(connection)
                return
            self._open.discard(connection)
        connection.close()

    def require_file(self) -> None:
        """Refuse to go on beside a file that took the place of ours: nobody else would see what is written to it."""
        if self._file is not None and _identity(self._path) not in (self._file, None):
            raise StoreUnavailable("the store's file was moved, deleted or replaced while it was open", "open it again")

    def _require_open(self) -> None:
        if self._closed:
            raise StoreUnavailable("the store is closed", "open it again")

    def close(self) -> None:
        """Close what is idle; a connection that is still lent closes when it comes back."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
            for connection in idle:
                self._open.discard(connection)
                connection.close()


def _identity(path: str) -> tuple[int, int] | None:
    """What a file is, whatever its name; (0, 0) where there is none, None where nobody may look."""
    try:
        found = Path(path).stat()
    except FileNotFoundError:
        return 0, 0
    except OSError:
        return None
    return found.st_dev, found.st_ino


def rows(connection: Connection, sql: str, values: Any = ()) -> list[tuple[Any, ...]]:
    """All rows of one statement."""
    return connection.execute(sql, values).fetchall()


def one(connection: Connection, sql: str, values: Any = ()) -> Any:
    """The first row of one statement (its only column bare), or None."""
    return connection.execute(sql, values).get


def whole(value: Any) -> int:
    """A number as the tables hold it. SQLite hands out whatever stands in a damaged file."""
    if not isinstance(value, int):
        raise damaged()
    return value


def text(value: Any) -> str:
    """The same of a text."""
    if not isinstance(value, str):
        raise damaged()
    return value


def is_in_use(file: Path) -> bool:
    """Whether somebody has this store open: SQLite leaves the write-ahead log only for who is alone with a file.

    A file that cannot be read as a store is nobody's.
    """
    try:
        with closing(raw(str(file), apsw.SQLITE_OPEN_READWRITE)) as connection:
            connection.execute("PRAGMA journal_mode=DELETE").fetchall()
    except (apsw.BusyError, apsw.LockedError):
        return True
    except apsw.Error:
        return False
    return False


def private_folder(path: Path) -> None:
    """Make the store's folder if it is not there, for this user only."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_be_made("the store's folder", path, error) from error


def make_private(file: Path) -> None:
    """Create the file empty, for this user only: SQLite gives the log files beside it the same mode.

    One that is there is not touched: closing it would let go of the locks that this process may have on it.
    """
    try:
        os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except OSError as error:
        if not file.is_file() or file.is_symlink():
            raise cannot_be_made("the store's file", file, error) from error
