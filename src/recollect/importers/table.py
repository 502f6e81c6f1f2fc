"""The formats that can be read. A reader yields drafts, or problems for what it has to leave out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, TextIO, TypeAlias

from recollect.importers import (
    chatgpt,
    claude,
    claude_code,
    claude_memory,
    markdown,
    marked,
    mcp_memory,
    mem0,
    plain,
    records,
)
from recollect.importers.report import Problem
from recollect.writing import Draft

Reader: TypeAlias = Callable[[TextIO, str], Iterator[Draft | Problem]]


@dataclass(frozen=True, slots=True)
class Importer:
    """One foreign format: `sniff(file name, beginning of the text)` tells whether a file looks like it.

    edited: its entries are edited over there, and those with a key are changed here. keys: what the reader's keys are:
    ids over there, names that hold in one scope, or places in one file.
    """

    name: str
    description: str
    sniff: Callable[[str, str], bool]
    read: Reader
    edited: bool = False
    keys: Literal["ids", "names", "places"] = "ids"


# The first that recognises a file reads it, so the pickier ones come first.
IMPORTERS: tuple[Importer, ...] = (
    Importer("claude-code", "Claude Code transcripts (JSONL)", claude_code.sniff, claude_code.read),
    Importer("mcp-memory", "the MCP reference memory server's JSONL", mcp_memory.sniff, mcp_memory.read),
    Importer("chatgpt", "conversations.json of a ChatGPT export", chatgpt.sniff, chatgpt.read),
    Importer("claude", "conversations.json of a Claude export", claude.sniff, claude.read),
    Importer(
        "claude-memory", "memories.json of a Claude export", claude_memory.sniff, claude_memory.read, True, "names"
    ),
    Importer("mem0", "mem0's get_all() as JSON or JSON lines", mem0.sniff, mem0.read, True),
    Importer("json", "memories as JSON or JSON lines: content, type, tags …", records.sniff, records.read),
    Importer("markers", "[MEMORY] markers and phrasings in an agent's output", marked.sniff, marked.read),
    Importer("markdown", "Markdown notes: front matter and headings", markdown.sniff, markdown.read, True, "places"),
    Importer("text", "plain text, one memory a line", plain.sniff, plain.read),
)


def sniff(name: str, head: str) -> Importer | None:
    """The importer for a file, by its name and the beginning of its text; None when nothing fits."""
    return next((importer for importer in IMPORTERS if importer.sniff(name, head)), None)
