"""Where a command may write a file."""

from __future__ import annotations

from pathlib import Path

from recollect.domain.errors import Conflict, InvalidInput, NotFound

# What belongs to a store's file and must move with it: the write-ahead log first, so that no log outlives its file.
SIDECARS = ("-wal", "-shm")


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
