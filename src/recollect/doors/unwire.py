"""An answer that came as a document (`doors.wire`), read back: what it does not carry stays at its default."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from recollect.domain.confidence import Confidence, Sign
from recollect.domain.memory import DEFAULT_NAMESPACE, Memory, Scope
from recollect.domain.ranking import Contribution, Passage
from recollect.domain.recall import Adjustment, Attempt, Dropped, LegStep, Recall, RecallHit, RerankStep, Trace

Json = Mapping[str, Any]


def recall_from_dict(document: Json) -> Recall:
    """The answer; a field that is missing or of another kind is a KeyError or a TypeError."""
    return Recall(
        query=document["query"],
        profile=document["profile"],
        mode=document["mode"],
        hits=tuple(_hit(one) for one in document["hits"]),
        dropped=tuple(Dropped(**one) for one in document["dropped"]),
        trace=_trace(document["trace"]),
        abstained=document["abstained"],
        rendered=document.get("rendered", ""),
    )


def _hit(given: Json) -> RecallHit:
    scope = given["scope"]
    memory = Memory(
        id=given["id"],
        content=given["content"],
        type=given["type"],
        tags=tuple(given["tags"]),
        confidence=given["confidence"],
        importance=given["importance"],
        scope=Scope(scope.get("namespace", DEFAULT_NAMESPACE), scope["project"], scope["session"]),
        source=given["source"],
        created_at=datetime.fromisoformat(given["created_at"]),
        pinned=given["pinned"],
        sensitive=given["sensitive"],
        metadata=given["metadata"],
    )
    return RecallHit(
        rank=given["rank"],
        memory=memory,
        score=given["score"],
        contributions=tuple(Contribution(**one) for one in given["contributions"]),
        adjustments=tuple(Adjustment(**one) for one in given["adjustments"]),
        passage=None if given["passage"] is None else Passage(**given["passage"]),
        redirected_from=given["redirected_from"],
        resolved_by=tuple(given["resolved_by"]),
        rerank_score=given["rerank_score"],
        excerpt=given["excerpt"],
    )


def _trace(given: Json) -> Trace:
    fields = dict(given)
    fields["attempts"] = tuple(Attempt(**one) for one in given["attempts"])
    fields["legs"] = {name: LegStep(**step) for name, step in given["legs"].items()}
    fields["lists"] = {name: tuple(ids) for name, ids in given["lists"].items()}
    fields["rerank"] = RerankStep(**given["rerank"])
    fields["notes"] = tuple(given["notes"])
    fields["evidence"] = None if given["evidence"] is None else _evidence(given["evidence"])
    return Trace(**fields)


def _evidence(given: Json) -> Confidence:
    fields = dict(given)
    fields["signs"] = tuple(Sign(**one) for one in given["signs"])
    return Confidence(**fields)
