"""What every store refuses, in one wording: whoever changes stores reads the same message and the same next step."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from recollect.domain.changes import Erase, Put
from recollect.domain.errors import Conflict, InvalidInput, NotFound, StoreUnavailable
from recollect.domain.memory import Link, Memory
from recollect.ports import Embedded, Matrix

PASSAGE_BITS = 10
MAX_PASSAGES = 1 << PASSAGE_BITS
"""So many passages a memory can have: a store may number them in so many bits."""


def half_a_character() -> InvalidInput:
    """A text that has no UTF-8 can neither be stored nor looked for."""
    return InvalidInput("a text holds half a character (a lone surrogate)", "send valid Unicode")


def cannot_be_made(what: str, path: Path, error: OSError) -> StoreUnavailable:
    """The place and the system's own reason: a wrong path, a folder that is not ours, a disk that only reads."""
    hint = "check the folder's permissions, or choose another place by --store or RECOLLECT_STORE"
    reason = "a file has its name" if isinstance(error, FileExistsError) else error.strerror or type(error).__name__
    return StoreUnavailable(f"{what} {path} cannot be made: {reason}", hint)


def check_version(change: Put, held: tuple[str, int] | None) -> None:
    """A new memory needs a free id, a replaced one its namespace and version; `held` is what is there now."""
    id = change.memory.id
    if change.expected_version is None:
        if held is not None:
            raise Conflict(f"memory {id} exists already", "name the version you want to replace", existing_id=id)
        return
    if held is None or held[0] != change.memory.scope.namespace:
        raise NotFound(f"no memory {id} to replace", "it may have been forgotten; write it as a new memory")
    _check_current(id, held[1], change.expected_version)


def check_erased(change: Erase, version: int) -> None:
    """What is erased as it was read must not have changed since; `version` is what is there now."""
    if change.expected_version is not None:
        _check_current(change.id, version, change.expected_version)


def _check_current(id: str, version: int, expected: int) -> None:
    if version != expected:
        message = f"memory {id} is at version {version}, not {expected}"
        raise Conflict(message, "read it again and repeat the change", existing_id=id)


def check_key(memory: Memory, holder: str | None) -> None:
    """A key belongs to one memory of a namespace."""
    if holder not in (None, memory.id):
        raise Conflict(f"key {memory.key!r} is held by memory {holder}", "update that one", existing_id=holder)


def check_text(holder: str | None) -> None:
    """A text that is to be kept once is not kept twice; `holder` is another memory that has it."""
    if holder is not None:
        raise Conflict(f"memory {holder} has the same text", "update that one", existing_id=holder)


def buried() -> Conflict:
    """The text lies behind a tombstone."""
    return Conflict("this text was forgotten on purpose", "revive it explicitly to bring it back")


def nothing_to_forget(id: str) -> NotFound:
    """An erasure of what is not there."""
    return NotFound(f"no memory {id} to forget", "list the memories to see which ids there are")


def loose_link(link: Link) -> NotFound:
    """A link needs both its ends, in one namespace."""
    return NotFound(f"cannot link {link.source} to {link.target}: one of them is not there", "check both ids")


def lost_page(after: str) -> NotFound:
    """The memory behind which a page was to go on."""
    return NotFound(f"the page cannot go on after {after}: no such memory", "start again from the first page")


def wrong_dimension(given: int, dimension: int) -> InvalidInput:
    """The vectors of one model have one length."""
    return InvalidInput(
        f"the vector has {given} numbers, the model's others have {dimension}",
        "vectors under one model name must come from one model: give the other one its own name",
    )


def sound_matrix(entry: Embedded, given: Matrix) -> NDArray[np.float32]:
    """The vectors of a memory as they are stored: one for each passage, all numbers finite."""
    matrix = np.ascontiguousarray(given, dtype="<f4")
    if matrix.ndim != 2 or len(matrix) != (len(entry.passages) or 1) or len(matrix) > MAX_PASSAGES:
        raise InvalidInput(
            f"memory {entry.id} needs one vector for each passage, {MAX_PASSAGES} at most", "embed its text again"
        )
    if not np.isfinite(matrix).all():
        raise InvalidInput(f"a vector of memory {entry.id} has numbers that are not finite", "check the model")
    return matrix
