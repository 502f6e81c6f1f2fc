"""Claude's memories.json: what it wrote down about its user and about each project, paragraph by paragraph."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import TextIO

from recollect.domain.memory import Scope
from recollect.importers.lines import as_list, as_object, as_text, json_document
from recollect.importers.renewing import named
from recollect.importers.report import Problem
from recollect.writing import Draft

PARAGRAPHS = re.compile(r"\n\s*\n")
HEADING = re.compile(r"^(?:#{1,6}[^\S\n]++(?P<marked>.+)|\*\*(?P<bold>[^*\n]+)\*\*:?)$")


def sniff(_name: str, head: str) -> bool:
    return head.lstrip()[:1] in ("{", "[") and '"conversations_memory"' in head


def read(stream: TextIO, _name: str) -> Iterator[Draft | Problem]:
    document = json_document(stream)
    for entry in as_list(document) or [document]:
        kept = as_object(entry)
        account = as_text(kept.get("account_uuid"))
        yield from _paragraphs(as_text(kept.get("conversations_memory")), Scope(), account)
        for project, text in as_object(kept.get("project_memories")).items():
            yield from _paragraphs(as_text(text), Scope(project=project or None), account)


def _paragraphs(text: str, scope: Scope, account: str) -> Iterator[Draft]:
    """Every paragraph by itself; the heading above it says what it is about, and with its number which one it is."""
    heading, read = "", Counter[str]()
    for paragraph in filter(None, map(str.strip, PARAGRAPHS.split(text))):
        if found := HEADING.match(paragraph):
            heading = found["marked"] or found["bold"]
        else:
            read[heading] += 1
            key = named(account, scope.project, heading, read[heading]) if account else None
            yield Draft(paragraph, scope=scope, key=key, metadata={"heading": heading} if heading else {})
