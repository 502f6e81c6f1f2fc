"""Background jobs: bounded, resumable, idempotent. Each returns a report and can be stopped between two steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from recollect.upkeep.concepts import ExtractReport, drop_concepts, extract_backlog
from recollect.upkeep.consolidation import Consolidation, Merge, consolidate
from recollect.upkeep.embedding import EmbedReport, Progress, drop_vectors, embed_backlog

__all__ = [
    "Consolidation",
    "EmbedReport",
    "ExtractReport",
    "Merge",
    "Progress",
    "UpkeepReport",
    "consolidate",
    "drop_concepts",
    "drop_vectors",
    "embed_backlog",
    "extract_backlog",
]


@dataclass(frozen=True, slots=True)
class UpkeepReport:
    """What one round of upkeep did."""

    embedded: EmbedReport = field(default_factory=EmbedReport)
    touched: int = 0
    tidied: Mapping[str, int] = field(default_factory=dict[str, int])
