"""Claude Code transcripts: one JSON object a line, an unstable format that is read tolerantly.

Only what the user and the assistant said is taken: no tool calls, no side conversations, no injected markup, and
nothing that recollect itself put into the prompt.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath
from typing import Any, TextIO

from recollect.domain.errors import InvalidInput
from recollect.domain.memory import EPISODE, Scope
from recollect.importers.lines import as_list, as_object, as_text, as_time, numbered_lines, parse_json
from recollect.importers.report import Problem
from recollect.stages.rendering import FENCE_CLOSE, FENCE_OPEN
from recollect.writing import Draft

TAGS = (
    "system-reminder",
    "command-name",
    "command-message",
    "command-args",
    "local-command-stdout",
    "local-command-stderr",
    "local-command-caveat",
)
INJECTED = (*((f"<{tag}>", f"</{tag}>") for tag in TAGS), (FENCE_OPEN, FENCE_CLOSE))


def sniff(_name: str, head: str) -> bool:
    first_lines = head.lstrip()[:20000]
    return first_lines.startswith("{") and '"sessionId"' in first_lines and '"type"' in first_lines


def read(stream: TextIO, _name: str) -> Iterator[Draft | Problem]:
    for number, line in numbered_lines(stream):
        if line is None:
            yield Problem(number, "the line is too long")
        elif line.strip():
            try:
                yield from _turn(as_object(parse_json(line)))
            except InvalidInput as error:
                yield Problem(number, error.message)


def _turn(record: dict[str, Any]) -> Iterator[Draft]:
    role = record.get("type")
    if role not in ("user", "assistant") or record.get("isSidechain") is True or record.get("isMeta") is True:
        return
    text = _said(as_object(record.get("message")).get("content"))
    if not text:
        return
    folder = PurePath(as_text(record.get("cwd")).replace("\\", "/")).name
    turn = as_text(record.get("uuid"))
    metadata = {"role": role, "cwd": as_text(record.get("cwd")), "git_branch": as_text(record.get("gitBranch"))}
    yield Draft(
        text,
        EPISODE,
        scope=Scope(project=folder or None, session=as_text(record.get("sessionId")) or None),
        key=f"claude-code:{turn}" if turn else None,
        created_at=as_time(record.get("timestamp")),
        metadata={name: value for name, value in metadata.items() if value},
    )


def _said(content: Any) -> str:
    blocks = (as_object(block) for block in as_list(content))
    text = as_text(content) or "\n".join(as_text(block.get("text")) for block in blocks if block.get("type") == "text")
    for opening, closing in INJECTED:
        text = _without(text, opening, closing)
    return text.strip()


def _without(text: str, opening: str, closing: str) -> str:
    """The text outside these brackets, in one pass over it; a bracket that is never closed is text."""
    kept: list[str] = []
    place = 0
    while (start := text.find(opening, place)) >= 0 and (end := text.find(closing, start)) >= 0:
        kept.append(text[place:start])
        place = end + len(closing)
    return "".join((*kept, text[place:]))
