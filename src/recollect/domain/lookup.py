"""What is asked of a store before a write, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass

MOST_ALIKE = 20
"""So many are told of, and compared: where there are more, the texts have hardly a word that tells them apart."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked before a write: of a key, and of a text in its project. Of what may say the same, that of the
    session is told first."""

    key: str | None = None
    content: str | None = None
    project: str | None = None
    session: str | None = None


@dataclass(frozen=True, slots=True)
class Lookup:
    """The answers of Records.lookup; a field is empty when it was not asked or nothing was found."""

    key_id: str | None = None
    content_id: str | None = None
    alike: tuple[str, ...] = ()
    buried: bool = False
    session_projects: tuple[str, ...] = ()
