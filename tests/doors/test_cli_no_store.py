"""A store that cannot be made: the error names the place, the reason and the next step, and nothing is announced."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.rights import bound_by_rights


def beneath_a_file(folder: Path) -> Path:
    (folder / "notes.txt").write_text("a file, and no folder")
    return folder / "notes.txt" / "memories.db"


def lock_is_a_folder(folder: Path) -> Path:
    (folder / "memories.db.lock").mkdir()
    return folder / "memories.db"


def unwritable(folder: Path) -> Path:
    (folder / "sealed").mkdir(mode=0o500)
    return folder / "sealed" / "memories.db"


def unwritable_above(folder: Path) -> Path:
    return unwritable(folder).parent / "new" / "memories.db"


@pytest.mark.parametrize("place", [beneath_a_file, lock_is_a_folder, unwritable, unwritable_above])
@pytest.mark.parametrize("command", [["remember", "something"], ["list"], ["doctor"], ["serve", "--port", "0"]])
def test_the_place_the_reason_and_the_next_step_are_told(
    cli: Any, tmp_path: Path, place: Callable[[Path], Path], command: list[str]
) -> None:
    store = place(tmp_path)
    with bound_by_rights():
        ran = cli("--store", str(store), *command, "--json")
    error = ran.document["error"]
    assert (ran.code, error["type"]) == (1, "StoreUnavailable")
    assert str(store.parent) in error["message"] and error["message"].endswith(
        ("a file has its name", " directory", "denied")
    )
    assert "--store" in error["hint"] and "RECOLLECT_STORE" in error["hint"]
    assert "new store" not in ran.err and len(ran.err.splitlines()) == 1


def test_what_is_no_file_is_no_store_and_nothing_is_made_beside_it(cli: Any, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    pipe = folder / "a-pipe"
    os.mkfifo(pipe)
    error = cli("--store", str(pipe), "list", "--json").document["error"]
    assert (error["type"], error["message"]) == ("InvalidInput", f"{pipe} is no file that can hold a store")
    assert list(folder.iterdir()) == [pipe]


def test_a_store_that_was_made_is_announced(cli: Any, tmp_path: Path) -> None:
    ran = cli("--store", str(tmp_path / "new.db"), "remember", "something")
    assert ran.code == 0 and f"new store: {tmp_path / 'new.db'}" in ran.err
