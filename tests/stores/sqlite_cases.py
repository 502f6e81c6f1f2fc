"""Short ways to say what the SQLite suites write and look at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw
import numpy as np

from recollect.domain.changes import Put
from recollect.domain.memory import Memory, Scope, content_hash
from recollect.ports import Embedded, Store, TextIndex, VectorIndex


def note(id: str, content: str, **fields: Any) -> Memory:
    places = {name: fields.pop(name) for name in ("namespace", "project", "session") if name in fields}
    return Memory(id=id, content=content, scope=Scope(**places), **fields)


def put(store: Store, *memories: Memory) -> None:
    store.records.write([Put(memory) for memory in memories])


def text_of(store: Store) -> TextIndex:
    assert store.text is not None
    return store.text


def vectors_of(store: Store) -> VectorIndex:
    assert store.vectors is not None
    return store.vectors


def embed(store: Store, memory: Memory, *values: float, model: str = "m") -> None:
    entry = Embedded(memory.id, content_hash(memory.content), np.array([values], dtype=np.float32))
    vectors_of(store).put(model, [entry])


def damage(path: Path, sql: str, *values: Any) -> None:
    """Change the file behind the store's back."""
    connection = apsw.Connection(str(path))
    connection.execute(sql, values)
    connection.close()


def lose(path: Path, table: str, column: str, where: str, left: str = "NULL") -> None:
    """Leave nothing where a value must be, or one of another kind, as a page in the wrong place does.

    SQLite itself would refuse it.
    """
    connection = apsw.Connection(str(path))
    found: list[Any] = connection.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (table,)).fetchall()
    connection.close()
    sql = str(found[0][0])
    change = "UPDATE sqlite_schema SET sql = ? WHERE name = ?"
    loose = sql.replace(" NOT NULL", "").replace(" STRICT, WITHOUT", " WITHOUT").replace(" STRICT", "")
    for form, then in ((loose, f"UPDATE {table} SET {column} = {left} WHERE {where}"), (sql, "")):
        connection = apsw.Connection(str(path))
        connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
        connection.execute("PRAGMA writable_schema = ON").fetchall()
        connection.execute(change, (form, table))
        connection.close()
        if then:
            damage(path, then)


def raw_bytes(path: Path) -> bytes:
    """The store's file and everything beside it that belongs to it."""
    return b"".join(file.read_bytes() for file in sorted(path.parent.glob(f"{path.name}*")))
