"""A store that nobody can write (a medium for reading only, no right to write): it is read, and writes say why not."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from sqlite_cases import embed, note, put, vectors_of

from recollect.domain.errors import StoreUnavailable
from recollect.domain.question import Filter
from recollect.engine import open_engine
from recollect.stores.sqlite import open_sqlite
from recollect.stores.sqlite.schema import MIGRATIONS

NOBODY = 65534
QUERY = np.array([1.0, 0.0], dtype=np.float32)


@contextmanager
def as_nobody() -> Iterator[None]:
    """As a user whom rights stop: the superuser may write whatever the rights say."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def path() -> Iterator[Path]:
    """A store in a folder with an odd name that nobody may enter."""
    top = Path(tempfile.mkdtemp())
    folder = top / "a #1?%41"
    folder.mkdir()
    store = open_sqlite(folder / "s.db")
    put(store, note("a", "winter notes about hiking"))
    embed(store, note("a", "winter notes about hiking"), 1.0, 0.0)
    store.close()
    for file in (top, folder, *folder.iterdir()):
        if os.geteuid() == 0:
            os.chown(file, NOBODY, -1)
    yield folder / "s.db"
    for file in (folder, *folder.iterdir()):
        file.chmod(0o700)
    shutil.rmtree(top)


@pytest.mark.parametrize("sealed", ["folder", "file", "both"])
@pytest.mark.parametrize("read_only", [True, False])
def test_what_nobody_can_write_is_read_and_left_as_it_is(path: Path, sealed: str, read_only: bool) -> None:
    if sealed != "folder":
        path.chmod(0o400)
    if sealed != "file":
        path.parent.chmod(0o500)
    before = {file.name: file.read_bytes() for file in path.parent.iterdir()}
    with as_nobody():
        with open_engine(path, home=path.parent, embedder="none", reranker="none", read_only=read_only) as engine:
            assert [hit.id for hit in engine.recall("hiking")] == ["a"]
            assert engine.check() == []
            with pytest.raises(StoreUnavailable, match="reading only") as refused:
                engine.remember("new notes")
            assert "folder can be written" in (refused.value.hint or "")
            assert [hit.id for hit in engine.recall("winter")] == ["a"]
        store = open_sqlite(path, read_only=read_only)
        assert [hit.id for hit in vectors_of(store).search("m", QUERY, Filter(), 1)] == ["a"]
        store.close()
    assert {file.name: file.read_bytes() for file in path.parent.iterdir()} == before


def test_a_log_that_was_left_is_never_passed_over(path: Path, tmp_path: Path) -> None:
    store = open_sqlite(path)
    put(store, note("b", "acknowledged but still in the log"))
    for suffix in ("", "-wal", "-shm"):
        shutil.copy(f"{path}{suffix}", tmp_path / f"left.db{suffix}")
    store.close()
    for suffix in ("", "-wal", "-shm"):
        shutil.copyfile(tmp_path / f"left.db{suffix}", f"{path}{suffix}")
        if os.geteuid() == 0:
            os.chown(f"{path}{suffix}", NOBODY, -1)
    path.parent.chmod(0o500)
    with as_nobody():
        store = open_sqlite(path)
        assert len(store.records.fetch(["a", "b"])) == 2
        store.close()
    path.parent.chmod(0o700)
    Path(f"{path}-shm").unlink()
    path.parent.chmod(0o500)
    with as_nobody(), pytest.raises(StoreUnavailable, match="opened") as refused:
        open_sqlite(path)
    assert "can be written" in (refused.value.hint or "")


def test_an_older_format_says_that_it_has_to_be_migrated_elsewhere(path: Path) -> None:
    path.parent.chmod(0o500)
    with as_nobody(), pytest.raises(StoreUnavailable, match="schema version") as refused:
        open_sqlite(path, migrations=(*MIGRATIONS, lambda _: None))
    assert "can be written" in (refused.value.hint or "")
