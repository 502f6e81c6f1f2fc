"""ask, as a stream of server-sent events: retrieve, answer_delta, citation, done, or error at any point."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from typing import Any

from fastapi import APIRouter
from sse_starlette.event import ServerSentEvent
from sse_starlette.sse import EventSourceResponse
from starlette.responses import Response

from recollect.domain.errors import RecollectError
from recollect.doors import wire
from recollect.doors.answering import Answer, AskEvent, Citation, Delta, Retrieved, ask
from recollect.doors.http.describing import route
from recollect.doors.http.door import GRACE_SECONDS, AtDoor
from recollect.doors.http.problems import Problem, problem_of
from recollect.doors.http.shapes import AskRequest

router = APIRouter(tags=["recall"])


@route(router, "POST", "/v1/ask", {200: "text/event-stream"})
async def ask_memory(call: AtDoor, body: AskRequest) -> Response:
    """Answer a question from memory, with citations, as server-sent events.

    `retrieve` (the recall), `answer_delta` (text), `citation` (number, id, quote), `done` (the whole answer; found is
    false when it is not in memory), or `error` (a problem).
    """
    asked = {**body.asked(), "limit": body.limit}
    events = call.each(lambda: ask(call.engine, body.question, complete=call.door.complete, **asked))
    # The first event is awaited here: whatever is wrong with the request gets a status of its own.
    first = await anext(events)
    if isinstance(first, Retrieved):
        call.door.metrics.recalled(first.recall.mode)
    return EventSourceResponse(_stream(first, events), ping=15, shutdown_grace_period=GRACE_SECONDS)


async def _stream(first: AskEvent, events: AsyncGenerator[AskEvent]) -> AsyncGenerator[ServerSentEvent]:
    yield _event(first)
    try:
        async for one in events:
            yield _event(one)
    except (RecollectError, Problem) as error:
        problem = error if isinstance(error, Problem) else problem_of(error)
        yield _sent("error", problem.document())
    finally:
        await events.aclose()


def _event(event: AskEvent) -> ServerSentEvent:
    if isinstance(event, Retrieved):
        return _sent("retrieve", wire.recall_to_dict(event.recall))
    if isinstance(event, Delta):
        return _sent("answer_delta", {"text": event.text})
    if isinstance(event, Citation):
        return _sent("citation", wire.plain(event))
    assert isinstance(event, Answer)
    return _sent("done", wire.answer_to_dict(event))


def _sent(name: str, document: dict[str, Any]) -> ServerSentEvent:
    return ServerSentEvent(json.dumps(document, allow_nan=False), event=name)
