"""An agent's output: `[MEMORY]` lines and phrasings such as "Decision: …" become memories."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TextIO

from recollect.importers.lines import MAX_DOCUMENT_CHARACTERS
from recollect.importers.report import Problem
from recollect.stages import markers
from recollect.stages.merging import DEFAULT_IMPORTANCE
from recollect.writing import Draft


def sniff(name: str, head: str) -> bool:
    return not name.lower().endswith((".json", ".jsonl")) and "[MEMORY]" in head


def read(stream: TextIO, name: str) -> Iterator[Draft | Problem]:
    text = stream.read(MAX_DOCUMENT_CHARACTERS)
    found = markers.markers(text)
    for one in found:
        weight = DEFAULT_IMPORTANCE if one.importance is None else one.importance
        yield Draft(one.content, one.type, one.tags, one.confidence, weight, metadata={"file": name})
    if len(found) >= markers.MAX_MARKERS:
        yield Problem(len(found), f"only the first {markers.MAX_MARKERS} markers of a file are read")
