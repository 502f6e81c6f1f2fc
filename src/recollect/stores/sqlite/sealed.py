"""Stores that nobody can write: on a medium for reading only, or where the rights of file or folder let nobody write.

SQLite reads such a file in WAL mode only when it is told that nothing will change. Where merely this user may not
write, somebody else may, and nothing is taken for unchanging.
"""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

WRITE = 0o222


def is_sealed(file: Path) -> bool:
    """Whether nobody can write this store, as far as rights and mounts tell."""
    try:
        closed = [not path.stat().st_mode & WRITE for path in (file, file.parent)]
    except OSError:
        return False
    if all(_may_write(path) for path in (file, file.parent)):
        return False
    return any(closed) or _is_read_only_medium(file)


def unchanging(path: str) -> str | None:
    """SQLite's name for a sealed file; None where a log beside it holds more than the file, which must be read too."""
    log = Path(f"{path}-wal")
    if log.exists() and log.stat().st_size:
        return None
    return f"file:{quote(path)}?immutable=1"


def _may_write(path: Path) -> bool:
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def _is_read_only_medium(file: Path) -> bool:
    return os.name == "posix" and bool(os.statvfs(file).f_flag & os.ST_RDONLY)
