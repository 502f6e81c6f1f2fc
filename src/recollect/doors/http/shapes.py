"""The shapes of requests. They are strict: what is not described here is refused, with the name of the field.

Sizes are the engine's own; the engine checks again what a shape cannot say (bytes, control characters, namespaces).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from recollect.domain.errors import InvalidInput
from recollect.domain.memory import DEFAULT_NAMESPACE, Scope
from recollect.domain.question import Mode, SortBy
from recollect.writing import as_moment


def _is_time(text: str) -> str:
    try:
        as_moment(text)
    except InvalidInput as error:
        raise ValueError(f"{error.message}: {error.hint}") from None
    return text


def _whole(value: Any) -> Any:
    """JSON knows no difference between 5 and 5.0."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Whole = Annotated[int, BeforeValidator(_whole)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=256)]
Tag = Annotated[str, StringConstraints(min_length=1, max_length=128)]
Kind = Annotated[str, StringConstraints(min_length=1, max_length=64)]
Time = Annotated[
    str,
    StringConstraints(max_length=64),
    AfterValidator(_is_time),
    Field(examples=["2026-05-01T12:00:00Z"], json_schema_extra={"format": "date-time"}),
]
Content = Annotated[str, StringConstraints(min_length=1, max_length=2**20)]
Query = Annotated[str, StringConstraints(max_length=4096), Field(examples=["which database do we run?"])]
Id = Annotated[str, StringConstraints(min_length=1, max_length=256)]
Cursor = Annotated[str, StringConstraints(min_length=1, max_length=300)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Namespace = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._/-]{0,127}$")]
# A name, never a path: a request cannot make the daemon read a file.
ProfileName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_-]{0,63}$")]


class Shape(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")


class ScopeShape(Shape):
    """Where memories belong: the namespace is the wall between tenants, project and session narrow."""

    namespace: Namespace = DEFAULT_NAMESPACE
    project: Name | None = None
    session: Name | None = None

    def scope(self) -> Scope:
        return Scope(self.namespace, self.project, self.session)


class NewMemory(Shape):
    """One memory to be stored."""

    content: Content
    type: Kind = "fact"
    tags: list[Tag] = Field(default=[], max_length=64)
    confidence: Share = 0.8
    importance: Share | Literal["high", "medium", "low"] = 0.5
    scope: ScopeShape = ScopeShape()
    source: str = Field(default="http", max_length=1024)
    key: Name | None = None
    created_at: Time | None = None
    pinned: bool = False
    sensitive: bool = False
    metadata: dict[str, Any] = Field(default={}, description="A JSON object of at most 64 KiB, 8 deep.")

    def values(self, key: str | None) -> dict[str, Any]:
        """As Engine.remember takes them; `key` is that of the header, for a memory that has none of its own."""
        given = self.model_dump(exclude={"scope", "key"})
        return {**given, "scope": self.scope.scope(), "key": self.key or key}


class RememberRequest(NewMemory):
    dedupe: bool = Field(default=True, description="false keeps it even if something like it is known.")


class BatchRequest(Shape):
    memories: list[NewMemory] = Field(min_length=1, max_length=1000)
    dedupe: bool = True


class MemoryPatch(Shape):
    """The fields to change; what is left out stays, a key of null is removed."""

    # Only what was sent is used; factories keep defaults that mean nothing out of the description.
    content: Content = Field(default_factory=str)
    type: Kind = Field(default_factory=str)
    tags: list[Tag] = Field(default_factory=list[str], max_length=64)
    confidence: Share = Field(default_factory=float)
    importance: Share | Literal["high", "medium", "low"] = Field(default_factory=float)
    scope: ScopeShape = Field(default_factory=ScopeShape)
    source: str = Field(default_factory=str, max_length=1024)
    key: Name | None = Field(default_factory=str)
    created_at: Time = Field(default_factory=str)
    pinned: bool = Field(default_factory=bool)
    sensitive: bool = Field(default_factory=bool)
    metadata: dict[str, Any] = Field(default_factory=dict[str, Any])

    def changes(self) -> dict[str, Any]:
        given = {name: getattr(self, name) for name in self.model_fields_set}
        return {**given, "scope": self.scope.scope()} if "scope" in given else given


class CaptureRequest(Shape):
    """What was said; what an agent marks ([MEMORY] lines, "Decision: …") or a user asks for is remembered."""

    text: str = Field(max_length=4 * 2**20)
    said_by: Literal["agent", "user"] = "agent"
    scope: ScopeShape = ScopeShape()
    source: str = Field(default="http", max_length=1024)


class LinkRequest(Shape):
    source: Id
    type: Literal["supersedes", "resolved-by", "part-of", "see-also"]
    target: Id


class Narrowed(Shape):
    """What recall and ask have in common: how to rank and which memories may be seen."""

    profile: ProfileName | None = None
    mode: Mode = "auto"
    scope: ScopeShape = ScopeShape()
    sessions: list[Name] = Field(default=[], max_length=1000)
    exclude: list[Id] = Field(default=[], max_length=1000)
    type: Kind | Annotated[list[Kind], Field(max_length=64)] | None = None
    tags: list[Tag] = Field(default=[], max_length=64)
    after: Time | None = None
    before: Time | None = None
    now: Time | None = None

    def asked(self) -> dict[str, Any]:
        given = self.model_dump(exclude={"scope", "query", "question", "rendered"})
        return {**given, "scope": self.scope.scope()}


class RecallRequest(Narrowed):
    query: Query
    limit: Whole | None = Field(default=None, ge=1, le=200)
    budget_tokens: Whole | None = Field(default=None, ge=1, le=1_000_000)
    sort_by: SortBy = "relevance"
    rerank: bool | None = None
    aliases: dict[str, str | list[str]] = Field(default={}, max_length=256)
    options: dict[str, Any] = Field(
        default={}, max_length=64, description='Single options of the profile, such as {"legs.lexical.weight": 0.5}.'
    )
    explicit: bool = Field(default=False, description="Count the answer as used, not only as seen.")
    rendered: bool = Field(default=False, description="Also give the block for a prompt, without what is sensitive.")


class AskRequest(Narrowed):
    question: Annotated[str, StringConstraints(min_length=1, max_length=4096)]
    limit: Whole | None = Field(default=None, ge=1, le=50)


class ConsolidateRequest(Shape):
    dry_run: bool = Field(default=False, description="Only tell what would be merged.")
    limit: Whole = Field(default=10_000, ge=1, le=100_000)
    namespace: Namespace = DEFAULT_NAMESPACE


class RecollectRequest(Shape):
    """A session's prompt. While it stays on the topic of the one before, the old recollection stands."""

    prompt: str = Field(max_length=1_000_000, description="Of which 8,192 characters of both ends are read.")
    session_id: Name
    cwd: str | None = Field(default=None, max_length=4096, description="Where the agent works; it hides no memory.")
    force: bool = False
    project: Name | None = Field(default=None, description="Only the memories of this project.")
    exclude: list[Id] = Field(default=[], max_length=1000)
    limit: Whole | None = Field(default=None, ge=1, le=50)
    budget_tokens: Whole | None = Field(default=None, ge=1, le=100_000)


class ListQuery(BaseModel):
    """Which memories to list."""

    model_config = ConfigDict(extra="forbid")

    namespace: Namespace = DEFAULT_NAMESPACE
    project: Name | None = None
    session: Name | None = None
    type: list[Kind] = Field(default=[], max_length=64)
    tag: list[Tag] = Field(default=[], max_length=64)
    after: Time | None = None
    before: Time | None = None
    limit: int = Field(default=100, ge=1, le=500)
    cursor: Cursor | None = Field(default=None, description="next_cursor of the page before.")

    def asked(self) -> dict[str, Any]:
        return {
            "scope": Scope(self.namespace, self.project, self.session),
            "type": self.type,
            "tags": self.tag,
            "after": self.after,
            "before": self.before,
            "cursor": self.cursor,
        }


class EpisodesQuery(BaseModel):
    """A search within sessions."""

    model_config = ConfigDict(extra="forbid")

    q: Query
    limit: int | None = Field(default=None, ge=1, le=200)
    sessionIds: str = Field(default="", max_length=65_536, description="Comma-separated; none means all.")  # noqa: N815
    recentIds: str = Field(default="", max_length=65_536, description="Memories to leave out, comma-separated.")  # noqa: N815


class ExpandQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")

    expand: bool = Field(default=False, description="Also its links and neighbours; this counts as using it.")


def comma_separated(text: str) -> tuple[str, ...]:
    return tuple(one.strip() for one in text.split(",") if one.strip())
