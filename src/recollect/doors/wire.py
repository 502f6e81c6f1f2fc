"""Memories, answers, receipts and errors as plain JSON values: one shape for the command line, HTTP and MCP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from recollect.domain.errors import Conflict, InvalidInput, RecollectError
from recollect.domain.memory import DEFAULT_NAMESPACE, Link, Memory, Receipt, Scope
from recollect.domain.recall import Expanded, LegStep, Recall, RecallHit, Trace

if TYPE_CHECKING:
    from recollect.doors.answering import Answer
    from recollect.engine import Engine
    from recollect.recollection import Recollection

Json = dict[str, Any]


def time_to_text(moment: datetime) -> str:
    """ISO 8601 in UTC: 2026-05-01T12:00:00Z, with milliseconds only where there are some."""
    utc = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    precision = "milliseconds" if utc.microsecond >= 1000 else "seconds"
    return f"{utc.replace(tzinfo=None).isoformat(timespec=precision)}Z"


def scope_to_dict(scope: Scope) -> Json:
    """Project and session; the namespace only where it is not the default one."""
    named = {} if scope.namespace == DEFAULT_NAMESPACE else {"namespace": scope.namespace}
    return {**named, "project": scope.project, "session": scope.session}


def memory_to_dict(memory: Memory) -> Json:
    """All of a memory."""
    return {
        "id": memory.id,
        "content": memory.content,
        "type": memory.type,
        "tags": list(memory.tags),
        "confidence": memory.confidence,
        "importance": memory.importance,
        "created_at": time_to_text(memory.created_at),
        "updated_at": time_to_text(memory.updated_at),
        "accessed_at": time_to_text(memory.accessed_at),
        "access_count": memory.access_count,
        "scope": scope_to_dict(memory.scope),
        "source": memory.source,
        "key": memory.key,
        "pinned": memory.pinned,
        "sensitive": memory.sensitive,
        "metadata": plain(memory.metadata),
        "version": memory.version,
    }


def link_to_dict(link: Link) -> Json:
    return {
        "source": link.source,
        "type": link.type,
        "target": link.target,
        "created_at": time_to_text(link.created_at),
    }


def expanded_to_dict(found: Expanded) -> Json:
    """A memory with its links and what they lead to."""
    return {
        **memory_to_dict(found.memory),
        "links": [link_to_dict(one) for one in found.links],
        "neighbours": [memory_to_dict(one) for one in found.neighbours],
    }


def stats_to_dict(engine: Engine) -> Json:
    """What is in the store, and how far the current model is with it."""
    return {**plain(engine.stats()), "embedding": embedding_to_dict(engine)}


def embedding_to_dict(engine: Engine) -> Json:
    """How far the current model is with the store; without one nothing is done and nothing waits."""
    progress = engine.embedding_progress()
    if engine.embedder is None or progress is None:
        return {"model": None, "done": 0, "pending": 0, "failed": 0}
    return {"model": engine.embedder.id, **plain(progress)}


def answer_to_dict(answer: Answer) -> Json:
    """The answer to a question, with what carries it."""
    return plain(answer)


def recollection_to_dict(found: Recollection, fresh: bool) -> Json:
    """A session's recollection; `fresh` tells whether it was made now or still stands from an earlier prompt."""
    return {
        "session_id": found.session,
        "ids": list(found.ids),
        "text": found.text,
        "written_at": found.written_at,
        "fresh": fresh,
    }


def receipt_to_dict(receipt: Receipt) -> Json:
    return {
        "id": receipt.id,
        "action": receipt.action,
        "duplicate_of": receipt.duplicate_of,
        "reason": receipt.reason,
    }


def hit_to_dict(hit: RecallHit) -> Json:
    """One hit: the memory, its score at full precision, and the reason for its rank."""
    memory = hit.memory
    return {
        "rank": hit.rank,
        "id": hit.id,
        "score": hit.score,
        "content": memory.content,
        "type": memory.type,
        "tags": list(memory.tags),
        "confidence": memory.confidence,
        "importance": memory.importance,
        "created_at": time_to_text(memory.created_at),
        "scope": scope_to_dict(memory.scope),
        "source": memory.source,
        "metadata": plain(memory.metadata),
        "contributions": [plain(one) for one in hit.contributions],
        "adjustments": [plain(one) for one in hit.adjustments],
        "pinned": memory.pinned,
        "sensitive": memory.sensitive,
        "passage": plain(hit.passage),
        "excerpt": hit.excerpt,
        "redirected_from": hit.redirected_from,
        "resolved_by": list(hit.resolved_by),
        "rerank_score": hit.rerank_score,
    }


def recall_to_dict(answer: Recall, *, rendered: bool = False) -> Json:
    """The whole answer as documented; with `rendered`, the prompt block too."""
    document: Json = {
        "query": answer.query,
        "profile": answer.profile,
        "mode": answer.mode,
        "abstained": answer.abstained,
        "hits": [hit_to_dict(hit) for hit in answer.hits],
        "dropped": [plain(one) for one in answer.dropped],
        "trace": trace_to_dict(answer.trace),
    }
    if rendered:
        document["rendered"] = answer.render()
    return document


def trace_to_dict(trace: Trace) -> Json:
    """Everything needed to retell a recall."""
    return {
        "mode_asked": trace.mode_asked,
        "mode_used": trace.mode_used,
        "fell_back_to_bm25": trace.fell_back_to_bm25,
        "query": trace.query,
        "attempts": [plain(one) for one in trace.attempts],
        "legs": {name: _leg_to_dict(step) for name, step in trace.legs.items()},
        "lists": {name: list(ids) for name, ids in trace.lists.items()},
        "unanimity": trace.unanimity,
        "rerank": plain(trace.rerank),
        "pool": trace.pool,
        "notes": list(trace.notes),
        "stages": dict(trace.stages),
        "confidence": trace.confidence,
        "evidence": plain(trace.evidence),
        "ms": trace.ms,
    }


def _leg_to_dict(step: LegStep) -> Json:
    failed = {} if step.error is None else {"error": step.error}
    return {"hits": step.hits, "ms": step.ms, "skipped": step.skipped, **failed}


def error_to_dict(error: RecollectError) -> Json:
    """{"error": {"type", "message", "hint"}}, with the field or the existing memory where the error knows it."""
    body: Json = {"type": type(error).__name__, "message": error.message, "hint": error.hint}
    if isinstance(error, InvalidInput) and error.field is not None:
        body["field"] = error.field
    if isinstance(error, Conflict) and error.existing_id is not None:
        body["existing_id"] = error.existing_id
    return {"error": body}


def plain(value: Any) -> Any:
    """Records, mappings, sequences, times and paths as JSON values; everything else as it is."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    named = getattr(value, "_asdict", None)
    if named is not None:  # a NamedTuple is a record too
        return {name: plain(one) for name, one in named().items()}
    if isinstance(value, datetime):
        return time_to_text(value)
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        table = cast(Mapping[Any, Any], value)
        return {str(name): plain(one) for name, one in table.items()}
    if isinstance(value, Sequence | set | frozenset) and not isinstance(value, str | bytes):
        items: Sequence[Any] = sorted(value) if isinstance(value, set | frozenset) else value  # pyright: ignore
        return [plain(one) for one in items]
    return value
