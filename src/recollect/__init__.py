"""recollect: the memory of AI agents. Hybrid recall on one file, in milliseconds, with the reason for every rank.

import recollect
memory = recollect.open("notes.db")
memory.remember("We use PostgreSQL 16 in production", type="decision", tags=["db"])
for hit in memory.recall("which database do we run?"):
    print(hit.rank, hit.score, hit.memory.content)
"""

from __future__ import annotations

# Type checkers take this name for true. `typing` itself would cost every hook some milliseconds.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from recollect.domain.errors import (
        Conflict,
        Corrupt,
        DiskFull,
        InvalidInput,
        InvalidProfile,
        ModelUnavailable,
        NotFound,
        RecollectError,
        StoreInUse,
        StoreTooNew,
        StoreUnavailable,
        Timeout,
    )
    from recollect.domain.memory import Link, Memory, Receipt, Scope
    from recollect.domain.ranking import Contribution, Fused
    from recollect.domain.recall import Expanded, Recall, RecallHit
    from recollect.engine import Engine
    from recollect.engine import open_engine as open
    from recollect.stages.fusion import fuse
    from recollect.writing import Draft

__version__ = "0.1.0"

# Loaded on first use: `import recollect` stays cheap for the hook and the command line.
_HOMES = {
    "Conflict": "recollect.domain.errors",
    "Contribution": "recollect.domain.ranking",
    "Corrupt": "recollect.domain.errors",
    "Draft": "recollect.writing",
    "Engine": "recollect.engine",
    "Expanded": "recollect.domain.recall",
    "Fused": "recollect.domain.ranking",
    "DiskFull": "recollect.domain.errors",
    "InvalidInput": "recollect.domain.errors",
    "InvalidProfile": "recollect.domain.errors",
    "Link": "recollect.domain.memory",
    "Memory": "recollect.domain.memory",
    "ModelUnavailable": "recollect.domain.errors",
    "NotFound": "recollect.domain.errors",
    "Recall": "recollect.domain.recall",
    "RecallHit": "recollect.domain.recall",
    "Receipt": "recollect.domain.memory",
    "RecollectError": "recollect.domain.errors",
    "Scope": "recollect.domain.memory",
    "StoreInUse": "recollect.domain.errors",
    "StoreTooNew": "recollect.domain.errors",
    "StoreUnavailable": "recollect.domain.errors",
    "Timeout": "recollect.domain.errors",
    "fuse": "recollect.stages.fusion",
    "open": "recollect.engine",
}

__all__ = [
    "Conflict",
    "Contribution",
    "Corrupt",
    "DiskFull",
    "Draft",
    "Engine",
    "Expanded",
    "Fused",
    "InvalidInput",
    "InvalidProfile",
    "Link",
    "Memory",
    "ModelUnavailable",
    "NotFound",
    "Recall",
    "RecallHit",
    "Receipt",
    "RecollectError",
    "Scope",
    "StoreInUse",
    "StoreTooNew",
    "StoreUnavailable",
    "Timeout",
    "__version__",
    "fuse",
    "open",
]


if not TYPE_CHECKING:  # a checker would believe every name, misspelt ones too

    def __getattr__(name):
        home = _HOMES.get(name)
        if home is None:
            raise AttributeError(f"module 'recollect' has no attribute {name!r}")
        from importlib import import_module

        value = getattr(import_module(home), "open_engine" if name == "open" else name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted(__all__)
