"""The default store: one SQLite file through apsw with records, full text, vectors, links and the outbox.

The first line of each file tells which question it answers; the tables are in `schema.py`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import apsw

from recollect.ports import Store
from recollect.stores.sqlite.care import SqliteCare
from recollect.stores.sqlite.connection import (
    BUSY_MS,
    Connection,
    Readers,
    connect,
    make_private,
    private_folder,
    raw,
    require_safe_sqlite,
    translated,
)
from recollect.stores.sqlite.fulltext import SqliteText
from recollect.stores.sqlite.gate import Gate
from recollect.stores.sqlite.links import SqliteLinks
from recollect.stores.sqlite.log import Log
from recollect.stores.sqlite.postings import Postings
from recollect.stores.sqlite.records import SqliteRecords
from recollect.stores.sqlite.scan import Scans, drop_sidecars
from recollect.stores.sqlite.schema import MIGRATIONS, Migration, migrate, require_current, require_known, version_of
from recollect.stores.sqlite.sealed import is_sealed
from recollect.stores.sqlite.vectors import SqliteVectors
from recollect.stores.sqlite.warming import Warming
from recollect.stores.sqlite.words import Lookalikes
from recollect.stores.sqlite.writer import Writer

__all__ = ["open_sqlite"]

WAIT_S = 30.0
SEARCH_S = 5.0


def open_sqlite(
    path: Path | str,
    *,
    read_only: bool = False,
    wait_s: float = WAIT_S,
    search_s: float = SEARCH_S,
    clock: Callable[[], float] = time.time,
    migrations: Sequence[Migration] = MIGRATIONS,
) -> Store:
    """Open or create a store; ":memory:" gives one that is gone when it is closed.

    What nobody can write is opened for reading.
    wait_s bounds how long a write waits for other processes and for the queue, search_s a full-text search.
    """
    require_safe_sqlite(apsw.sqlite_lib_version())
    if str(path) == ":memory:":
        connection = connect(":memory:", create=True)
        readers, gate = Readers(":memory:", read_only=False, shared=connection), Gate(None, wait_s)
        with translated():
            migrate(connection, None, migrations)
        writer = Writer(readers.borrow, gate, wait_s)
        return _store(readers, writer, None, [writer.close, readers.close, connection.close], search_s, clock)
    file = _one_name(Path(path))
    sealed = is_sealed(file)
    if read_only or sealed:
        readers = Readers(str(file), read_only=True, sealed=sealed)
        with readers.borrow() as connection:
            require_current(version_of(connection), migrations)
        return _store(readers, None, file, [readers.close], search_s, clock)
    gate = Gate(_beside(file), wait_s)
    try:
        connection = _open_file(file, gate, migrations)
    except BaseException:
        gate.close()
        raise
    readers = Readers(str(file), read_only=False)
    log = Log(lambda: connect(str(file)))
    writer = Writer(lambda: _lent(connection, readers), gate, wait_s, lambda: drop_sidecars(file), log, file)
    return _store(readers, writer, file, [writer.close, readers.close, connection.close, gate.close], search_s, clock)


def _one_name(file: Path) -> Path:
    """The name that everybody uses for a file that has several by links or by the folder that somebody is in."""
    try:
        return file.resolve() if file.exists() else file.absolute()
    except OSError:  # where nothing can be looked at, nothing can be opened either, which says why
        return file


@contextmanager
def _lent(connection: Connection, readers: Readers) -> Generator[Connection]:
    """The write connection, as long as it writes where everybody else will read."""
    readers.require_file()
    yield connection


def _beside(file: Path) -> Path:
    """The lock file, in a folder that is there."""
    private_folder(file.parent)
    return file.with_name(f"{file.name}.lock")


def _open_file(file: Path, gate: Gate, migrations: Sequence[Migration]) -> Connection:
    """The write connection of a file that has the current schema. A new file is private from its first byte.

    A file that is not ours, or too new, is looked at through a read-only connection and stays untouched.
    """
    with translated():
        if _version(file, migrations) == len(migrations):
            return connect(str(file))
        with gate.passage():
            make_private(file)
            connection = connect(str(file), create=True)
            try:
                migrate(connection, file, migrations)
            except BaseException:
                connection.close()
                raise
        return connection


def _version(file: Path, migrations: Sequence[Migration]) -> int:
    """The version of a file, by looking only; 0 where there is none."""
    if not file.exists() or not file.stat().st_size:
        return 0
    with closing(raw(str(file), apsw.SQLITE_OPEN_READONLY)) as look:
        look.set_busy_timeout(BUSY_MS)
        version = version_of(look)
    require_known(version, migrations)
    return version


def _store(
    readers: Readers,
    writer: Writer | None,
    path: Path | None,
    closers: Sequence[Callable[[], object]],
    search_s: float,
    clock: Callable[[], float],
) -> Store:
    def close() -> None:
        for closer in closers:
            closer()

    postings = Postings()
    scans = Scans(path, postings)
    lookalikes = Lookalikes()
    text = SqliteText(readers, writer, postings, lookalikes, search_s)
    return Store(
        records=SqliteRecords(readers, writer),
        care=SqliteCare(readers, writer, scans, path),
        text=text,
        vectors=SqliteVectors(readers, writer, scans, clock),
        links=SqliteLinks(readers),
        close=close,
        warm=Warming(readers, postings, lookalikes, text.tokens).step,
        writable=lambda: writer is not None,
    )
