"""Where a command may write a file."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import time

from recollect.domain.errors import Conflict, InvalidInput, NotFound

# What belongs to a store's file and must move with it: the write-ahead log first, so that no log outlives its file.
SIDECARS = ("-wal", "-shm")
ABANDONED_SECONDS = 24 * 3600.0
"""No command works on one file for so long."""


def free_target(file: str | Path, store: str, *, force: bool) -> Path:
    """The path to write: nothing is there, or a plain file that --force replaces and that is not the store."""
    path = Path(file).expanduser()
    if path.is_symlink():
        path = path.resolve()
    if not path.parent.is_dir():
        raise NotFound(f"there is no folder {path.parent}", "create it first")
    if not path.exists():
        return path
    if not path.is_file():
        raise InvalidInput(f"{path} is not a plain file", "give the name of a file", "FILE")
    if _belongs_to_store(path, store):
        raise InvalidInput(f"{path} is the store itself", "give another file", "FILE")
    if not force:
        raise Conflict(f"{path} is there already", "choose another name or add --force")
    return path


def _belongs_to_store(path: Path, store: str) -> bool:
    file = Path(store).expanduser()
    beside = (file.with_name(file.name + suffix) for suffix in ("", ".lock", *SIDECARS) if file.name)
    return any(one.exists() and one.samefile(path) for one in beside)


@contextmanager
def work_folder(parent: Path, prefix: str) -> Generator[Path]:
    """A private folder beside the target, gone afterwards; so is what a killed command left in one of its own."""
    for left in parent.glob(f"{prefix}*"):
        with suppress(OSError):  # another command may be at work there, and its files come and go
            newest = max(one.stat().st_mtime for one in (left, *left.rglob("*")))
            if left.is_dir() and not left.is_symlink() and newest < time() - ABANDONED_SECONDS:
                shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=parent, prefix=prefix) as folder:
        yield Path(folder)
