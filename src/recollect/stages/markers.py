"""What an agent's output asks to be remembered: `[MEMORY]` lines, and sentences that state a decision or a lesson.

    [MEMORY] type=gotcha tags=sqlite,wal: Checkpoints stall while a reader is open

The attributes are optional, in any order: type, tags, confidence, importance. List bullets, quote marks, bold and code
marks around the line are tolerated. Not read: fenced code blocks (an example in a document is not a wish to remember),
placeholders like `<text>`, and what recollect itself wrote into the prompt (the lines under a "Relevant Memories"
heading up to the next heading, and everything in its fence), or recalled memories would multiply.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from recollect.domain.errors import InvalidInput
from recollect.domain.memory import MAX_TAG_BYTES, MAX_TAGS, TYPE
from recollect.stages.cleaning import clean
from recollect.stages.merging import IMPORTANCE_WORDS
from recollect.stages.prose import says_nothing
from recollect.stages.rendering import FENCE_CLOSE, FENCE_OPEN, HEADING
from recollect.stages.sentences import sentences

EXPLICIT_CONFIDENCE = 0.8
IMPLICIT_CONFIDENCE = 0.6
DEFAULT_TYPE = "fact"

# Agents write anything; what goes beyond the limits of a memory would be refused, and everything beside it.
MAX_MARKERS = 200
MAX_CHARACTERS = 250_000
# An implicit statement is a sentence: shorter ones say nothing, longer ones are something else. Behind a label two
# words are enough ("Decision: use SQLite"), unless they only nod.
MIN_IMPLICIT_CHARACTERS = 12
MAX_IMPLICIT_CHARACTERS = 1000


@dataclass(frozen=True, slots=True)
class Marker:
    """Something to be remembered, before it is a memory."""

    content: str
    type: str = DEFAULT_TYPE
    tags: tuple[str, ...] = ()
    confidence: float = EXPLICIT_CONFIDENCE
    importance: float | None = None
    """None: not stated."""


# Labels open a line and are not part of what is remembered; openings start a sentence and stay.
LABELS: dict[str, str] = {
    "decision": "decision",
    "decided": "decision",
    "gotcha": "gotcha",
    "lesson": "lesson",
    "lesson learned": "lesson",
    "pattern": "pattern",
    "preference": "preference",
}
OPENINGS: dict[str, str] = {
    "i learned": "lesson",
    "i've learned": "lesson",
    "we learned": "lesson",
    "the fix was": "lesson",
    "the root cause was": "lesson",
    "we decided": "decision",
    "i decided": "decision",
}

_DECORATION = re.compile(r"(?:\s|[-*+>•`_]|\d{1,3}[.)]\s)*")
_MARKER = re.compile(r"\[MEMORY\][*_`]*:?")
_ATTRIBUTE = re.compile(r"\s*(type|tag|confidence|importance)s?=([^\s:]*+)")
# After "a," the next tag may stand behind a space; a word with "=" is the next attribute.
_MORE_TAGS = re.compile(r"\s++([^\s:=]++)(?![=])")
_LABEL = re.compile(rf"({'|'.join(sorted(LABELS, key=len, reverse=True))})[*_`]*:[*_`]*(?=\s)", re.IGNORECASE)
_OPENING = re.compile(rf"({'|'.join(OPENINGS)})\b", re.IGNORECASE)
_FENCE = re.compile(r"\s*(?:[-*+>]\s+)?(`{3,}|~{3,})")
_HEADING = re.compile(r"\s{0,3}#{1,6}\s")
_OWN_HEADING = HEADING.lstrip("# ").casefold()
_WORDS = re.compile(r"\w+")
_PLACEHOLDER = re.compile(r"<[^<>]*>|\W*")


def markers(text: str) -> tuple[Marker, ...]:
    """The memories that a text asks for, in its order, each once; explicit ones win over implicit ones."""
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput("the text must be a text", "give a string: what an agent has said", "text")
    found: dict[str, Marker] = {}
    for line in open_lines(clean(text)):
        for one in _from_line(line):
            key = " ".join(one.content.casefold().split())
            if key not in found or one.confidence > found[key].confidence:
                found[key] = one
        if len(found) >= MAX_MARKERS:
            break
    return tuple(found.values())[:MAX_MARKERS]


def is_marked(text: str) -> bool:
    """Whether any line carries an explicit marker, so that what is said besides is not meant."""
    return any(_MARKER.match(line, _start(line)) for line in text.splitlines())


def open_lines(text: str) -> Iterator[str]:
    """The lines that are the speaker's own words: outside code fences and outside what we rendered."""
    code_fence = ""
    own_section = own_fence = False
    for line in text.splitlines():
        mark = _FENCE.match(line)
        if code_fence:
            # A block ends with at least as many of the same marks, and nothing behind them.
            if mark and mark[1].startswith(code_fence) and not line[mark.end() :].strip("`~ \t"):
                code_fence = ""
        elif own_fence:
            own_fence = FENCE_CLOSE not in line
            own_section = False
        elif FENCE_OPEN in line:
            own_fence = FENCE_CLOSE not in line
        elif mark:
            code_fence = mark[1]
        elif _HEADING.match(line):
            own_section = line.strip().strip("#").strip().casefold() == _OWN_HEADING
        elif not own_section:
            yield line


def _start(line: str) -> int:
    """Where a line begins behind its bullets, numbers and emphasis."""
    decoration = _DECORATION.match(line)
    return decoration.end() if decoration else 0


def _from_line(line: str) -> Iterator[Marker]:
    start = _start(line)
    if marker := _MARKER.match(line, start):
        yield from _explicit(line, marker.end())
    elif label := _LABEL.match(line, start):
        stated = line[label.end() :]
        words = _WORDS.findall(stated.lower())
        least = 1 if len(words) > 1 and not says_nothing(words) else MIN_IMPLICIT_CHARACTERS
        yield from _implicit(stated, LABELS[label[1].lower()], least)
    else:
        for first, last in sentences(line[start:].replace("’", "'")):
            sentence = line[start + first : start + last]
            if opening := _OPENING.match(sentence.replace("’", "'")):
                yield from _implicit(sentence, OPENINGS[opening[1].lower()])


def _explicit(line: str, place: int) -> Iterator[Marker]:
    """The rest of a marked line: attributes up to a colon, then the text; without a colon all of it is text."""
    attributes: dict[str, str] = {}
    here = place
    while attribute := _ATTRIBUTE.match(line, here):
        name, *values = attribute.groups()
        here = attribute.end()
        while name == "tag" and values[-1].endswith(",") and (more := _MORE_TAGS.match(line, here)):
            values.append(more[1])
            here = more.end()
        attributes[name] = "".join(values)
    rest = line[here:].lstrip()
    content = _bare(rest.removeprefix(":")[:MAX_CHARACTERS])
    type_ = attributes.get("type", "").strip("*_`\"'").lower()
    if _is_placeholder(content) or (type_ and _is_placeholder(type_)):
        return
    if not TYPE.fullmatch(type_):
        type_ = DEFAULT_TYPE
    confidence, importance = _share(attributes.get("confidence")), _importance(attributes.get("importance"))
    stated = EXPLICIT_CONFIDENCE if confidence is None else confidence
    yield Marker(content, type_, _tags(attributes.get("tag", "")), stated, importance)


def _tags(text: str) -> tuple[str, ...]:
    """The tags of a comma-separated list that are tags: no placeholders, none too long, not too many."""
    tags = dict.fromkeys(tag.strip(" *_`\"'#") for tag in text.split(","))
    return tuple(tag for tag in tags if not _is_placeholder(tag) and len(tag.encode()) <= MAX_TAG_BYTES)[:MAX_TAGS]


def _implicit(text: str, type_: str, least: int = MIN_IMPLICIT_CHARACTERS) -> Iterator[Marker]:
    """A statement; questions and fragments state nothing."""
    content = _bare(text)
    long_enough = least <= len(content) <= MAX_IMPLICIT_CHARACTERS
    if long_enough and not content.endswith("?") and not _is_placeholder(content):
        yield Marker(content, type_, (), IMPLICIT_CONFIDENCE)


def _bare(text: str) -> str:
    """The text without white space and without emphasis marks that are left open by what was taken off."""
    text = text.strip()
    for mark in ("**", "__", "`", "*", "_"):
        if text.endswith(mark) and text.count(mark) % 2:
            text = text[: -len(mark)].rstrip()
        if text.startswith(mark) and text.count(mark) % 2:
            text = text[len(mark) :].lstrip()
    return text


def _is_placeholder(content: str) -> bool:
    return bool(_PLACEHOLDER.fullmatch(content))


def _importance(value: str | None) -> float | None:
    """A stated importance: a word for it, or a share."""
    return IMPORTANCE_WORDS.get((value or "").lower(), _share(value))


def _share(value: str | None) -> float | None:
    """A stated number within [0, 1], if it is one."""
    try:
        stated = float(value or "")
    except ValueError:
        return None
    return stated if 0.0 <= stated <= 1.0 else None
