"""What a memory is about by its own word: its title, or a short first line. A name is known by its plain words.
A section of a note is also about what is written over it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

from recollect.domain.memory import Memory

MAX_SUBJECT_CHARACTERS = 100
MAX_NAME_WORDS = 6

_ARTICLES = frozenset(("the", "a", "an"))
_BRACKETED = re.compile(r"\([^()]*\)\s*$")
_PLAIN_WORD = re.compile(r"[^\W_]+")
_AROUND_FILE = re.compile(r"^.*[\\/]|\.[^.\\/]*$", re.DOTALL)

Words = tuple[str, ...]


def fold(text: str) -> Words:
    """A name as its plain words, so that case and punctuation do not matter."""
    return tuple(_PLAIN_WORD.findall(text.casefold()))


def name(text: str) -> Words:
    """The words of a name without its article and without what is added in brackets: "The Moon (film)" is moon."""
    words = fold(_BRACKETED.sub("", text))
    return words[1:] if len(words) > 1 and words[0] in _ARTICLES else words


def subject(memory: Memory) -> Words:
    """What a memory is about: metadata.title, else a first line of at most a hundred characters above more text."""
    title = memory.metadata.get("title")
    return subject_of(memory.content, title if isinstance(title, str) else "")


def subject_of(content: str, title: str) -> Words:
    """The same from the text and the title alone."""
    if title.strip():
        return name(title)[: 2 * MAX_NAME_WORDS]
    end = content.find("\n", 0, MAX_SUBJECT_CHARACTERS + 1)
    return name(content[:end]) if end >= 0 and content[end:].strip() else ()


def titles(memory: Memory) -> str:
    """What is written over a section of a note: the note's title, the name of its file, the headings. Else nothing."""
    headings, front = memory.metadata.get("headings"), memory.metadata.get("front_matter")
    if not isinstance(headings, list | tuple):
        return ""
    title = cast(Mapping[str, Any], front).get("title") if isinstance(front, Mapping) else None
    path = memory.metadata.get("path")
    file = _AROUND_FILE.sub("", path) if isinstance(path, str) else None
    return " ".join(part for part in (title, file, *cast(list[Any], headings)) if isinstance(part, str))
