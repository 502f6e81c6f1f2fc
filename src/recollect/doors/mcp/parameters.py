"""The parameters that tools share, with the words that explain them to a model."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import Field

from recollect.domain.memory import KNOWN_TYPES

_TYPES = ", ".join(KNOWN_TYPES)
_TIME = "ISO 8601, such as 2026-05-01 or 2026-05-01T12:00:00Z"

Id: TypeAlias = Annotated[str, Field(description="A memory's id, as memory_search, memory_recall or memory_list gave.")]
Limit: TypeAlias = Annotated[int, Field(ge=1, le=200, description="How many memories at most.")]
Profile: TypeAlias = Annotated[
    str | None, Field(description="A named way of ranking. Leave it out to use the one the user chose.")
]
Types: TypeAlias = Annotated[
    str | list[str] | None, Field(description=f"Only memories of this type, or of one of these: {_TYPES}, or others.")
]
TagFilter: TypeAlias = Annotated[list[str] | None, Field(description="Only memories that carry all of these tags.")]
ProjectFilter: TypeAlias = Annotated[str | None, Field(description="Only memories of this project. Default: of all.")]
SessionFilter: TypeAlias = Annotated[str | None, Field(description="Only memories of this session. Default: of all.")]
After: TypeAlias = Annotated[str | None, Field(description=f"Only created at or after this time ({_TIME}).")]
Before: TypeAlias = Annotated[str | None, Field(description=f"Only created before this time ({_TIME}).")]
Exclude: TypeAlias = Annotated[
    list[str] | None, Field(description="Ids to leave out, such as memories you have seen already.")
]

Content: TypeAlias = Annotated[
    str,
    Field(description="The text to remember: one fact, decision or lesson that makes sense without its conversation."),
]
MemoryType: TypeAlias = Annotated[
    str, Field(description=f"What kind of memory it is: {_TYPES}, or another single word.")
]
Tags: TypeAlias = Annotated[list[str] | None, Field(description="Short keywords to find and filter it by.")]
Confidence: TypeAlias = Annotated[float, Field(ge=0, le=1, description="How sure it is, from 0 to 1.")]
Importance: TypeAlias = Annotated[
    float | str, Field(description="How much it matters: 0 to 1, or low, medium, high.", json_schema_extra={})
]
Project: TypeAlias = Annotated[
    str | None, Field(description="The project it belongs to. Leave it out for what is true everywhere.")
]
Session: TypeAlias = Annotated[str | None, Field(description="The conversation it belongs to, if only to that.")]
Source: TypeAlias = Annotated[
    str | None, Field(description="Where it comes from: a file, a URL, a person. Default: this client's name.")
]
Key: TypeAlias = Annotated[
    str | None, Field(description="Your own name for this write: repeated with the same key it is made only once.")
]
CreatedAt: TypeAlias = Annotated[str | None, Field(description=f"When it became true, if that was not now ({_TIME}).")]
Pinned: TypeAlias = Annotated[bool, Field(description="Never fades and is never merged into another memory.")]
Sensitive: TypeAlias = Annotated[
    bool, Field(description="Never shown to a model again, not even to you; people read it on the command line.")
]
Metadata: TypeAlias = Annotated[
    dict[str, object] | None, Field(description="Further fields to keep with it, as a small JSON object.")
]
