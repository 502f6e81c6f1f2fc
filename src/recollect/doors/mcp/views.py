"""What a model gets to see: recalled text inside a fence that says it is data, nothing sensitive, nothing endless."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from mcp_types import CallToolResult, TextContent

from recollect.domain.errors import InvalidInput
from recollect.domain.memory import Memory
from recollect.domain.question import Question
from recollect.domain.recall import Recall, RecallHit
from recollect.stages import rendering
from recollect.stages.tokens import estimate, snippet

SHOWN_CHARACTERS = 2000
"""Of one memory in a list; memory_expand shows all of it."""
WHOLE_CHARACTERS = 20_000
"""Of one memory at once."""
FRAME = "\n".join([rendering.FENCE_OPEN, rendering.FENCE_NOTE, rendering.HEADING, rendering.FENCE_CLOSE])
WITHHELD = "(sensitive: not shown to models; people read it with `recollect show`)"


def visible(memory: Memory) -> Memory:
    """The memory as a model may see it: what is marked sensitive never leaves for a model."""
    return replace(memory, content=WITHHELD, metadata={}, key=None) if memory.sensitive else memory


def visible_recall(answer: Recall) -> Recall:
    """The recall with every hit as a model may see it."""
    return replace(answer, hits=tuple(_visible_hit(hit) for hit in answer))


def _visible_hit(hit: RecallHit) -> RecallHit:
    return replace(hit, memory=visible(hit.memory), excerpt=None, passage=None) if hit.memory.sensitive else hit


def shortened(document: dict[str, Any]) -> dict[str, Any]:
    """A memory or hit whose text fits into a list; `truncated` tells that it goes on."""
    content: str = document["content"]
    if len(content) <= SHOWN_CHARACTERS:
        return document
    return {**document, "content": content[: SHOWN_CHARACTERS - 1].rstrip() + "…", "truncated": True}


def page(memory: Memory, offset: int) -> tuple[dict[str, Any], str]:
    """A memory's text from a place on, for programs and for models: what does not fit one page is not sent twice."""
    text = memory.content
    if offset and offset >= len(text):
        raise InvalidInput(f"the text has {len(text)} characters", "give next_offset as it was told", "offset")
    end = offset + WHOLE_CHARACTERS
    if end >= len(text):
        return {"content": text[offset:]}, fenced_whole(replace(memory, content=text[offset:]))
    told = offset + SHOWN_CHARACTERS
    shown = fenced_whole(replace(memory, content=text[offset:told]), f"characters {offset} to {told} of {len(text)}")
    more = f"More: the text goes on in the structured content; here, call again with offset {told}."
    return {"content": text[offset:end], "truncated": True, "next_offset": end}, f"{shown}\n{more}"


def fenced_recall(answer: Recall) -> str:
    """The prompt block of a recall, made anew from hits that a model may see."""
    return _fenced(answer.hits)


def brief_recall(answer: Recall) -> Recall:
    """The recall with long texts cut, to where they match if that is known: nobody said how much may be shown."""
    return replace(answer, hits=tuple(_excerpt(hit) for hit in answer))


def _excerpt(hit: RecallHit) -> RecallHit:
    text = hit.memory.content if hit.excerpt is None else hit.excerpt
    return replace(hit, excerpt=snippet(text, SHOWN_CHARACTERS, len, hit.passage))


def within_budget(answer: Recall, budget_tokens: int) -> Recall:
    """The hits whose lines fit a token budget, frame, dates and ids included, whatever the profile counted.

    Best first; one that does not fit is passed over. Where not even the first fits, it is cut.
    """
    left = budget_tokens - estimate(FRAME)
    kept: list[RecallHit] = []
    for hit in answer:
        fitting = hit if kept else _cut(hit, left)
        cost = estimate(_line(fitting)) + 1
        if cost <= left:
            kept.append(fitting)
            left -= cost
    return replace(answer, hits=tuple(kept))


def _cut(hit: RecallHit, budget_tokens: int) -> RecallHit:
    text = hit.memory.content if hit.excerpt is None else hit.excerpt
    room = budget_tokens - estimate(_line(replace(hit, excerpt=""))) - 2
    return hit if estimate(text) <= room else replace(hit, excerpt=snippet(text, room, estimate, hit.passage))


def _line(hit: RecallHit) -> str:
    """The hit's line of the block: the last one before the fence closes."""
    return _fenced([hit]).rsplit("\n", 2)[1]


def fenced_memories(memories: Iterable[Memory]) -> str:
    """Memories as quotations, one per line, with date, source and id; their beginnings are enough to choose by."""
    return _fenced([_brief(RecallHit(rank, one, 0.0)) for rank, one in enumerate(memories, start=1)], "## Memories")


def fenced_whole(memory: Memory, which: str = "in full") -> str:
    """A memory's text as it stands: its lines are kept, and each is marked as quoted."""
    frame = _fenced([RecallHit(1, replace(memory, content=f"{which} below:"), 0.0)], "## Memory").splitlines()
    return "\n".join([*frame[:-1], *(f"| {one}" for one in rendering.disarmed(memory.content).splitlines()), frame[-1]])


def fenced_answer(text: str, sources: Iterable[str]) -> str:
    """An answer as quotation: it is made of memories, and a model that wrote it has read them."""
    said = (f"| {one}" for one in rendering.disarmed(text).splitlines())
    return "\n".join([*FRAME.splitlines()[:2], "## Answer", *said, "Sources:", *sources, rendering.FENCE_CLOSE])


def _brief(hit: RecallHit) -> RecallHit:
    content = hit.memory.content
    return hit if len(content) <= SHOWN_CHARACTERS else replace(hit, excerpt=content[: SHOWN_CHARACTERS - 1] + "…")


def _fenced(hits: Sequence[RecallHit], heading: str = rendering.HEADING) -> str:
    """Ages in the lines need a now; the rest of the question plays no part."""
    return rendering.fenced(hits, Question("", datetime.now(UTC)), heading=heading)


def result(document: dict[str, Any], text: str) -> CallToolResult:
    """Structured content for programs and a text block for models."""
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=document)
