"""Every error a caller can see. Each one says what went wrong and what to do next."""

from __future__ import annotations


class RecollectError(Exception):
    """Base of all errors raised on purpose. `hint` names the next step for the person who reads it."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        if hint:
            self.add_note(hint)  # so that a traceback shows it too


class InvalidInput(RecollectError):
    """The request itself is wrong: a field out of range, text too long, an unknown name. `field` names what is."""

    def __init__(self, message: str, hint: str = "", field: str | None = None) -> None:
        super().__init__(message, hint)
        self.field = field


class InvalidProfile(InvalidInput):
    """A profile file is wrong; the message carries file, line and what is allowed there."""


class NotFound(RecollectError):
    """No memory has this id (or it lies outside the asked scope, which must look the same)."""


class Conflict(RecollectError):
    """The write lost a race: a version changed, or a key or text is already there, in `existing_id`."""

    def __init__(self, message: str, hint: str = "", existing_id: str | None = None) -> None:
        super().__init__(message, hint)
        self.existing_id = existing_id


class StoreUnavailable(RecollectError):
    """The store cannot be reached, is locked for too long, or the disk refuses."""


class StoreInUse(StoreUnavailable):
    """Another process, such as a daemon, holds what this work needs for itself."""


class DiskFull(StoreUnavailable):
    """There is no room left where the store is. What is there can still be read: `read_only` opens it without any."""


class StoreTooNew(StoreUnavailable):
    """The file was written by a newer recollect; it is left untouched."""


class Corrupt(RecollectError):
    """Stored data fails its checksum or the file is damaged."""


class ModelUnavailable(RecollectError):
    """An embedder or reranker is missing, failed its hash, or answered nonsense."""


class Timeout(RecollectError):
    """A bounded operation ran out of its time."""
