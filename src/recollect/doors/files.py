"""Files that are replaced in one step: a reader sees the old content or the new one, never a part."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def replace_file(path: Path, text: str, mode: int = 0o600) -> None:
    """Give the file this content, synced before it gets its name; private from its first byte, then of this mode."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".recollect-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(text.encode("utf-8"))
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(mode)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
