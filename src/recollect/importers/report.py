"""What an import did, and what it could not read."""

from __future__ import annotations

from dataclasses import dataclass, field

MAX_PROBLEMS = 1000


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that was left out: where it stands (line or entry, 1-based; 0: the whole file) and why."""

    place: int
    message: str


@dataclass(slots=True)
class ImportReport:
    """Counts by what happened; the first problems in full, all of them counted."""

    format: str
    added: int = 0
    updated: int = 0
    merged: int = 0
    skipped: int = 0
    redacted: int = 0
    links: int = 0
    problem_count: int = 0
    problems: list[Problem] = field(default_factory=list[Problem])

    def note(self, place: int, message: str) -> None:
        self.problem_count += 1
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(Problem(place, message))
