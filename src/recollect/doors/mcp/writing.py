"""The tools that write: memory_remember, memory_update, memory_forget, memory_link, memory_consolidate."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, Literal

import anyio.from_thread
from mcp.server.mcpserver import Context
from mcp_types import CallToolResult
from pydantic import Field

from recollect.domain.errors import InvalidInput
from recollect.domain.memory import Scope
from recollect.doors import wire
from recollect.doors.mcp import parameters as given
from recollect.doors.mcp import results, views
from recollect.doors.mcp.calling import slowly
from recollect.doors.mcp.door import Door

MOST_REPORTS = 100
"""Progress is told at most so often in one call."""

NewContent = Annotated[str | None, Field(description="The new text. Leave it out to keep the old one.")]
NewType = Annotated[str | None, Field(description="What kind of memory it shall be: a single word.")]
NewTags = Annotated[list[str] | None, Field(description="The tags it shall have; an empty list takes all away.")]
NewConfidence = Annotated[float | None, Field(ge=0, le=1, description="How sure it is now, from 0 to 1.")]
NewImportance = Annotated[float | str | None, Field(description="How much it matters: 0 to 1, or low, medium, high.")]
NewFlag = Annotated[bool | None, Field(description="Whether it shall never fade and never be merged away.")]
NewSecrecy = Annotated[bool | None, Field(description="Whether models may no longer see it.")]
NewProject = Annotated[str | None, Field(description="The project it shall belong to; an empty text takes it out.")]
NewMetadata = Annotated[
    dict[str, object] | None, Field(description="The further fields it shall have, instead of the old ones.")
]
Version = Annotated[
    int | None, Field(ge=1, description="Change it only if it still has this version: nobody's change is overwritten.")
]
Ids = Annotated[
    list[str], Field(min_length=1, max_length=1000, description="The ids of the memories to delete, all of them.")
]
LinkType = Annotated[
    Literal["supersedes", "resolved-by", "part-of", "see-also"],
    Field(description="Read it as a sentence: `source` supersedes / is resolved-by / is part-of / see-also `target`."),
]
DryRun = Annotated[bool, Field(description="Only tell what would be merged; change nothing.")]
Examined = Annotated[int, Field(ge=1, le=100_000, description="How many memories to look at, at most.")]


class Writing:
    """The tools; each docstring is what the model reads."""

    def __init__(self, door: Door) -> None:
        self._door = door

    def memory_remember(
        self,
        content: given.Content,
        ctx: Context[Any, Any],
        type: given.MemoryType = "fact",
        tags: given.Tags = None,
        confidence: given.Confidence = 0.8,
        importance: given.Importance = 0.5,
        project: given.Project = None,
        session: given.Session = None,
        source: given.Source = None,
        key: given.Key = None,
        created_at: given.CreatedAt = None,
        pinned: given.Pinned = False,
        sensitive: given.Sensitive = False,
        metadata: given.Metadata = None,
    ) -> results.RememberResult:
        """Keep something for later sessions: a decision, preference, fact, pitfall or lesson worth knowing again.

        Write one thing per call, in words that stand on their own, without "it", "this" or "yesterday".
        What is known already is not stored twice: the action is then "merged" or "skipped", and the standing memory
        gains confidence. Secrets such as passwords are hidden before anything is stored.
        To correct a memory, use memory_update; to replace an outdated one, remember the new and link it with
        memory_link as "supersedes".
        """
        receipt = self._door.engine.remember(
            content,
            type=type,
            tags=tuple(tags or ()),
            confidence=confidence,
            importance=_number(importance),
            scope=self._door.scope(project, session),
            source=_client(ctx) if source is None else source,
            key=key,
            created_at=created_at,
            pinned=pinned,
            sensitive=sensitive,
            metadata=metadata,
        )
        return wire.receipt_to_dict(receipt)  # pyright: ignore[reportReturnType]

    def memory_update(
        self,
        id: given.Id,
        content: NewContent = None,
        type: NewType = None,
        tags: NewTags = None,
        confidence: NewConfidence = None,
        importance: NewImportance = None,
        project: NewProject = None,
        source: given.Source = None,
        pinned: NewFlag = None,
        sensitive: NewSecrecy = None,
        metadata: NewMetadata = None,
        version: Version = None,
    ) -> Annotated[CallToolResult, results.MemoryShape]:
        """Change fields of one memory; what is left out stays as it is. The old text is overwritten.

        Use it to correct or sharpen a memory. If the old text was true in its time, rather remember the new fact and
        link it with memory_link as "supersedes", so that the history stays.
        """
        memory = self._door.own(id)[0]
        asked: dict[str, Any] = {
            "content": content,
            "type": type,
            "tags": None if tags is None else tuple(tags),
            "confidence": confidence,
            "importance": None if importance is None else _number(importance),
            "scope": None if project is None else Scope(self._door.namespace, project or None, memory.scope.session),
            "source": source,
            "pinned": pinned,
            "sensitive": sensitive,
            "metadata": metadata,
        }
        changes = {name: value for name, value in asked.items() if value is not None}
        if not changes:
            raise InvalidInput("no field to change was named", "give at least one, such as `content` or `tags`")
        changed = views.visible(self._door.engine.update(id, version=version, **changes))
        text = f"Updated to version {changed.version}: {', '.join(changes)}.\n{views.fenced_memories([changed])}"
        return views.result(wire.memory_to_dict(changed), text)

    def memory_forget(self, ids: Ids) -> results.ForgetResult:
        """Delete memories for good: text, vectors, links and what was merged into them. This cannot be undone.

        Use it only when the user asks to forget something, or for what must not be kept. Look up the ids first and be
        sure of each: if one does not exist, none is deleted. What is merely outdated is better superseded with
        memory_link.
        """
        self._door.own(*ids)
        return {"forgotten": self._door.engine.forget(*ids), "ids": ids}

    def memory_link(self, source: given.Id, type: LinkType, target: given.Id) -> results.LinkResult:
        """Connect two memories, so that one leads to the other.

        supersedes: `source` is the newer truth and takes the place of `target` in search. resolved-by: `source` is a
        problem, `target` its solution. part-of: `source` belongs to `target`. see-also: each helps to read the other.
        """
        self._door.own(source, target)
        return wire.link_to_dict(self._door.engine.link(source, type, target))  # pyright: ignore[reportReturnType]

    async def memory_consolidate(
        self, ctx: Context[Any, Any], dry_run: DryRun = False, limit: Examined = 10_000
    ) -> results.ConsolidateResult:
        """Merge memories that say the same. Nothing is lost: the best one supersedes the others.

        This happens by itself as well; use it after many writes, or with dry_run to see what is said twice. It may
        take a while on a large memory and tells its progress.
        """
        work = partial(self._consolidate, dry_run, limit, _reporter(ctx))
        await ctx.report_progress(0, None, "looking for memories that say the same")
        report = await slowly(work)
        return {**report, "dry_run": dry_run}  # pyright: ignore[reportReturnType]

    def _consolidate(self, dry_run: bool, limit: int, progress: Callable[[int, int], None]) -> dict[str, Any]:
        return wire.plain(
            self._door.engine.consolidate(
                dry_run=dry_run, limit=limit, namespace=self._door.namespace, progress=progress
            )
        )


def _reporter(ctx: Context[Any, Any]) -> Callable[[int, int], None]:
    """Progress out of a worker thread, in steps that do not flood the client."""

    def report(done: int, total: int) -> None:
        if done == total or done % max(1, total // MOST_REPORTS) == 0:
            anyio.from_thread.run(ctx.report_progress, done, total, f"{done} of {total} groups compared")

    return report


def _client(ctx: Context[Any, Any]) -> str:
    """Who writes: mcp, and the name that the client goes by, as one line of plain text."""
    about = ctx.session.client_params
    name = "".join(one for one in about.client_info.name if one.isprintable())[:100] if about is not None else ""
    return f"mcp:{name}" if name else "mcp"


def _number(importance: float | str) -> float | str:
    """A number that came as text is a number."""
    try:
        return float(importance)
    except ValueError:
        return importance
