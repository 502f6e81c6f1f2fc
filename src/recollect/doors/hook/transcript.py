"""What the agent said since the last time: the end of the transcript, read tolerantly and within bounds.

Transcripts are the agents' own, unstable files: a line that is not understood is skipped. Only the agent's words
count: no user, no tools, no side conversations, and nothing that recollect itself put before the model.
"""

from __future__ import annotations

import os
import re

from recollect.doors.hook.block import FENCE_CLOSE, FENCE_OPEN
from recollect.doors.hook.documents import as_list, as_object, as_text, parsed

MOST_BYTES = 1024 * 1024
MOST_CHARACTERS = 200_000

SPEAKERS = ("assistant", "gemini", "model")
# A line that names no speaker of these needs not be parsed.
_MARKS = tuple(f'"{speaker}"'.encode() for speaker in SPEAKERS)
_CODE = re.compile(r"^[^\S\n]*(?:[-*+>][^\S\n]+)?(`{3,}|~{3,})(.*)$", re.MULTILINE)
# A heading ends whatever section the turn before it was in.
BETWEEN_TURNS = "\n\n# next turn\n\n"


def new_turns(path: str, offset: int) -> tuple[list[str], int]:
    """The agent's turns behind an offset, and the offset of the first line that is not finished yet.

    Of a transcript that has grown by more than MOST_BYTES only the end is read; one that has shrunk was replaced.
    """
    try:
        if not os.path.isfile(path):  # noqa: PTH113 (pathlib costs milliseconds; a pipe would block)
            return [], offset
        with open(path, "rb") as file:  # noqa: PTH123
            size = os.fstat(file.fileno()).st_size
            begin = 0 if offset > size else offset
            start = max(begin, size - MOST_BYTES)
            file.seek(start)
            data = file.read(MOST_BYTES)
    except (OSError, ValueError):
        return [], offset
    if start > begin:
        # In the middle of a line, unless by chance.
        skipped = data.find(b"\n") + 1
        data, start = data[skipped:], start + skipped
    whole = data.rfind(b"\n") + 1
    rest = data[whole:]
    if rest and parsed(rest):
        whole = len(data)
    turns = [
        said for line in data[:whole].split(b"\n") if any(mark in line for mark in _MARKS) and (said := _said(line))
    ]
    return turns, start + whole


def joined(turns: list[str]) -> str:
    """The turns as one text in which none can hide the next: what one leaves open is closed before the other begins."""
    text = BETWEEN_TURNS.join(_closed(_without_own_blocks(turn)) for turn in turns)
    return text[-MOST_CHARACTERS:]


def _said(line: bytes) -> str:
    """The words of the agent on a line: Claude Code, Codex, Gemini CLI and Cursor each nest them differently."""
    record = parsed(line)
    if record.get("isSidechain") is True or record.get("isMeta") is True:
        return ""
    record = as_object(record.get("payload")) or record
    message = as_object(record.get("message")) or record
    if (message.get("role") or record.get("role") or record.get("type")) not in SPEAKERS:
        return ""
    content = message.get("content") or message.get("parts")
    if isinstance(content, str):
        return as_text(content).strip()
    parts = (as_object(one) for one in as_list(content))
    words = (as_text(one.get("text")) for one in parts if one.get("type", "text") in ("text", "output_text"))
    return "\n".join(filter(None, words)).strip()


def _without_own_blocks(text: str) -> str:
    """Cut out what recollect had injected and the agent repeated; a block that is never closed goes to the end."""
    kept: list[str] = []
    place = 0
    while (start := text.find(FENCE_OPEN, place)) >= 0:
        kept.append(text[place:start])
        end = text.find(FENCE_CLOSE, start)
        if end < 0:
            return "".join(kept)
        place = end + len(FENCE_CLOSE)
    return "".join((*kept, text[place:]))


def _closed(text: str) -> str:
    """The text with its last code block closed."""
    opening = ""
    for mark in _CODE.finditer(text):
        if not opening:
            opening = mark[1]
        elif mark[1].startswith(opening) and not mark[2].strip("`~ \t"):
            opening = ""
    return f"{text}\n{opening}" if opening else text
