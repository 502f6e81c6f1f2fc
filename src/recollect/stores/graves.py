"""Tombstones of two stores as those of one."""

from __future__ import annotations

from dataclasses import replace

from recollect.domain.errors import Conflict
from recollect.ports import Graves


def joined(own: Graves, others: Graves) -> Graves:
    """All of both under one key; a hash cannot be made again under another key, so two keys are a Conflict."""
    if own.hashes and own.key != others.key:
        raise Conflict("this store has forgotten texts of its own", "copy into an empty store")
    return replace(others, hashes=own.hashes | others.hashes)
