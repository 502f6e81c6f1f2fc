"""Reading by question: recall, the search within sessions, and the recollection for a prompt."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from recollect.domain.errors import InvalidInput
from recollect.domain.memory import Scope
from recollect.domain.recall import Recall
from recollect.doors import wire
from recollect.doors.http.answers import RecallAnswer, RecollectionAnswer
from recollect.doors.http.describing import route
from recollect.doors.http.door import AtDoor, Call, reply
from recollect.doors.http.shapes import EpisodesQuery, RecallRequest, RecollectRequest, comma_separated
from recollect.doors.prompting import with_full_block
from recollect.engine import Engine

router = APIRouter(tags=["recall"])

MOST_NAMES = 1000
# What goes into a prompt is fenced as data, with date, source and id on each line, whatever the profile's own form.
FOR_A_PROMPT = {"render.kind": "fenced"}


@route(router, "POST", "/v1/recall", {200: RecallAnswer})
async def recall(call: AtDoor, body: RecallRequest) -> Response:
    """The memories that matter for a query, best first, with the reason for every rank and every near miss."""
    answer = await call.run(lambda: _recalled(call.engine, body))
    _count(call, answer)
    return reply(wire.recall_to_dict(answer, rendered=body.rendered))


@route(router, "GET", "/episodes/search", {200: RecallAnswer})
async def search_episodes(call: AtDoor, query: Annotated[EpisodesQuery, Query()]) -> Response:
    """Search within sessions, or within the whole project of a single one. The weights are those of /settings."""
    sessions, recent = comma_separated(query.sessionIds), comma_separated(query.recentIds)
    for field, names in (("sessionIds", sessions), ("recentIds", recent)):
        if len(names) > MOST_NAMES:
            raise InvalidInput(f"more than {MOST_NAMES} names", "ask in several requests", field)
    asked: dict[str, Any] = {"limit": query.limit, "exclude": recent, "profile": call.engine.settings.episodes_profile}
    if len(sessions) == 1:
        asked["scope"] = Scope(session=sessions[0])
    else:
        asked["sessions"] = sessions
    answer = await call.run(lambda: call.engine.recall(query.q, **asked))
    _count(call, answer)
    return reply(wire.recall_to_dict(answer))


@route(router, "POST", "/recollect", {200: RecollectionAnswer})
async def recollect(call: AtDoor, body: RecollectRequest) -> Response:
    """What to put before a model that is about to read this prompt; also written to the session's recollection file."""
    settings = call.engine.settings
    found, fresh = await call.run(
        lambda: call.engine.recollect(
            body.prompt,
            body.session_id,
            scope=Scope(project=body.project),
            profile=settings.recollect_profile,
            force=body.force,
            topic_gate=settings.topic_gate,
            exclude=body.exclude,
            limit=body.limit or settings.recollect_limit,
            budget_tokens=body.budget_tokens,
            options=FOR_A_PROMPT,
        )
    )
    call.door.events.publish("recollected", session_id=found.session, hits=len(found.ids), fresh=fresh)
    return reply(wire.recollection_to_dict(found, fresh))


def _recalled(engine: Engine, body: RecallRequest) -> Recall:
    asked = body.asked()
    answer = engine.recall(body.query, **asked)
    return with_full_block(engine, answer, asked) if body.rendered else answer


def _count(call: Call, answer: Recall) -> None:
    call.door.metrics.recalled(answer.mode)
    call.door.events.publish("recalled", mode=answer.mode, hits=len(answer), ms=round(answer.trace.ms, 1))
