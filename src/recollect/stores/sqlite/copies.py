"""Copies of a whole file: private from the first byte, verified, and none left behind by a process that was killed.

Whoever makes a copy holds a lock on it: what bears the name of a copy in the making and is locked by nobody is of a
process that is gone.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import cast

import apsw

from recollect.domain.errors import Corrupt, StoreUnavailable
from recollect.stores.sqlite.checks import find_all
from recollect.stores.sqlite.connection import INSTANCES, Connection, connect, translate
from recollect.stores.sqlite.gate import hold

UNFINISHED = re.compile(r"\..+\.[0-9a-f]{8}\.recollect\.tmp")
SIDECARS = ("-wal", "-shm", "-journal")


def back_up(connection: Connection, path: Path) -> None:
    """A verified copy of what this connection sees, under its name only when it is whole and on the disk."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.recollect.tmp")
    try:
        _drop_unfinished(path.parent)
        with _claimed(temporary) as descriptor:
            _copy(connection, temporary, descriptor)
            _verify(temporary)
            temporary.replace(path)
        sync(path.parent)
    except OSError as error:
        raise StoreUnavailable("the backup cannot be written", "choose a folder that can be written") from error


def copy_file(connection: Connection, target: Path) -> None:
    """Copy the database into a new private file, synced to the disk."""
    with _claimed(target) as descriptor:
        _copy(connection, target, descriptor)


@contextmanager
def _claimed(file: Path) -> Generator[int]:
    """A new file that nobody else takes for abandoned; it is gone again if this fails."""
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        hold(descriptor)
        yield descriptor
    except BaseException:
        _drop(file)
        raise
    finally:
        os.close(descriptor)
        for sidecar in _sidecars(file):
            sidecar.unlink(missing_ok=True)


def _copy(connection: Connection, target: Path, descriptor: int) -> None:
    """SQLite's backup interface, into a file that is there."""
    with (
        apsw.Connection(str(target), flags=apsw.SQLITE_OPEN_READWRITE) as copy,
        copy.backup("main", cast(apsw.Connection, connection), "main") as work,
    ):
        while not work.done:
            work.step(1000)
    copy.close()
    os.fsync(descriptor)


def _drop_unfinished(folder: Path) -> None:
    """Remove the copies that killed processes were making here; a name that is not ours or a living owner saves all."""
    for file in sorted(folder.iterdir()):
        if UNFINISHED.fullmatch(file.name) and _is_abandoned(file):
            with suppress(OSError):  # a backup does not fail over what another one left
                _drop(file)


def _is_abandoned(file: Path) -> bool:
    try:
        descriptor = os.open(file, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError:  # gone by now, a link, or not ours to write
        return False
    try:
        return stat.S_ISREG(os.fstat(descriptor).st_mode) and hold(descriptor)
    finally:
        os.close(descriptor)


def _drop(file: Path) -> None:
    """The file last, so that whatever is interrupted here is still found by its name."""
    for name in (*_sidecars(file), file):
        name.unlink(missing_ok=True)


def _verify(copy: Path) -> None:
    """A backup that cannot be read back is none."""
    connection = connect(str(copy))
    try:
        connection.execute(INSTANCES).fetchall()
        broken = [one for one in find_all(connection) if one.severity == "error" or one.kind == "fulltext"]
    except apsw.Error as error:
        raise translate(error) from error
    finally:
        connection.close()
    if broken:
        raise Corrupt(f"the copy is damaged: {broken[0].detail}", "run doctor on the store")


def belongs_to(path: Path, store: Path) -> bool:
    """Whether this is the file of a store or one that lies beside it, by whatever name."""
    own = (store, store.with_name(f"{store.name}.lock"), *_sidecars(store))
    return path.exists() and any(one.exists() and one.samefile(path) for one in own)


def _sidecars(file: Path) -> list[Path]:
    return [file.with_name(file.name + suffix) for suffix in SIDECARS]


def sync(path: Path) -> None:
    """Make a file durable, or the names in a folder (where folders can be synced)."""
    if os.name == "nt" and path.is_dir():
        return
    descriptor = os.open(path, os.O_RDWR if path.is_file() else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
