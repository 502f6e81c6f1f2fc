"""memory_ask: an answer with citations, written by the client's own model where the client offers it.

Clients of the handshake protocols are asked in the middle of the call. Since 2026-07-28 a server asks nothing by
itself: the call ends with the question for the model, and the client repeats the call with the model's answer.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Annotated, Any

import anyio.from_thread
from mcp.server.mcpserver import Context
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types import (
    CallToolResult,
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    InputRequiredResult,
    SamplingMessage,
    TextContent,
)
from mcp_types.version import is_version_at_least
from pydantic import Field, ValidationError

from recollect.domain.errors import ModelUnavailable
from recollect.domain.times import day
from recollect.doors import wire
from recollect.doors.mcp import parameters as given
from recollect.doors.mcp import results, views
from recollect.doors.mcp.calling import slowly
from recollect.doors.mcp.door import Door
from recollect.doors.mcp.reading import checked_profile
from recollect.stages.rendering import one_line

if TYPE_CHECKING:
    from recollect.domain.recall import Recall
    from recollect.doors.answering import Answer, Complete

CONSIDERED = 8
MODEL_SECONDS = 60.0
ANSWER_TOKENS = 1000
STATELESS_SINCE = "2026-07-28"
REQUEST = "answer"

Question = Annotated[str, Field(description="The question, in a full sentence.")]
Considered = Annotated[int, Field(ge=1, le=50, description="How many memories the answer may rest on at most.")]


class Asking:
    """The tool; its docstring is what the model reads."""

    def __init__(self, door: Door) -> None:
        self._door = door

    async def memory_ask(
        self,
        question: Question,
        ctx: Context[Any, Any],
        limit: Considered = CONSIDERED,
        profile: given.Profile = None,
        type: given.Types = None,
        tags: given.TagFilter = None,
        project: given.ProjectFilter = None,
        session: given.SessionFilter = None,
        after: given.After = None,
        before: given.Before = None,
    ) -> Annotated[CallToolResult, results.AskResult] | InputRequiredResult:
        """Answer a question from memory alone, each statement with the memory that carries it.

        Use it for a direct question about earlier sessions; to see the memories themselves, use memory_search.
        If the memory does not hold the answer, it says so and `found` is false: do not guess then.
        """
        client = ClientModel(ctx)
        asked = {
            "limit": limit, "profile": checked_profile(profile), "type": type, "tags": tuple(tags or ()),
            "scope": self._door.scope(project, session), "after": after, "before": before,
        }  # fmt: skip
        answer = await slowly(partial(self._answer, question, client, asked))
        if client.waiting is not None:
            return client.waiting
        return views.result(wire.answer_to_dict(answer), _told(answer))

    def _answer(self, question: str, client: ClientModel, asked: dict[str, Any]) -> Answer:
        from recollect.doors.answering import Retrieved, answered, ask, language_model

        engine = self._door.engine
        complete = _first_of(client.complete if client.offered else None, language_model(engine.settings))
        events = ask(engine, question, complete=complete, without_sensitive=True, **asked)
        first = next(events)
        hidden = _left_out(first.recall, asked["limit"]) if isinstance(first, Retrieved) else 0
        answer = answered(events)
        if not hidden:
            return answer
        note = f"{hidden} sensitive memories were left out; people read them with `recollect recall`"
        return replace(answer, notes=(*answer.notes, note))


class ClientModel:
    """The model behind the client, as a function of a prompt."""

    def __init__(self, ctx: Context[Any, Any]) -> None:
        self._ctx = ctx
        capabilities = ctx.client_capabilities
        self.offered = capabilities is not None and capabilities.sampling is not None
        self.waiting: InputRequiredResult | None = None

    def complete(self, prompt: str) -> str:
        """Called from a worker thread. Without an answer from the model it raises ModelUnavailable."""
        request = CreateMessageRequest(
            params=CreateMessageRequestParams(
                messages=[SamplingMessage(role="user", content=TextContent(type="text", text=prompt))],
                max_tokens=ANSWER_TOKENS,
                temperature=0,
            )
        )
        version = self._ctx.protocol_version
        if version is not None and is_version_at_least(version, STATELESS_SINCE):
            return self._from_last_round(request, hashlib.sha256(prompt.encode()).hexdigest())
        try:
            result = anyio.from_thread.run(self._send, request)
        except (MCPError, ValidationError) as error:
            raise ModelUnavailable("the client's model did not answer") from error
        return _text_of(result.content)

    async def _send(self, request: CreateMessageRequest) -> CreateMessageResult:
        related = ServerMessageMetadata(related_request_id=self._ctx.request_id)
        return await self._ctx.session.send_request(request, CreateMessageResult, MODEL_SECONDS, related)

    def _from_last_round(self, request: CreateMessageRequest, digest: str) -> str:
        """The answer that the client brought, if it belongs to this very prompt; otherwise the prompt is sent."""
        brought = (self._ctx.input_responses or {}).get(REQUEST)
        if isinstance(brought, CreateMessageResult) and self._ctx.request_state == digest:
            return _text_of(brought.content)
        self.waiting = InputRequiredResult(input_requests={REQUEST: request}, request_state=digest)
        raise NotAskedYet("the client's model has not been asked yet")


class NotAskedYet(ModelUnavailable):
    """The client will bring the answer with its next call: nobody else needs to be asked."""


def _left_out(recalled: Recall, limit: int) -> int:
    """How many sensitive memories would have been among the hits."""
    if recalled.abstained:
        return 0
    least = recalled.hits[-1].score if len(recalled) >= limit else -inf
    return sum(one.stage == "withhold" and one.score >= least for one in recalled.dropped)


def _text_of(content: Any) -> str:
    if not isinstance(content, TextContent):
        raise ModelUnavailable("the client's model answered with something other than text")
    return content.text


def _first_of(client: Complete | None, configured: Complete | None) -> Complete | None:
    """The client's model, or the configured one where the client has none or it fails."""
    if client is None or configured is None:
        return client or configured

    def complete(prompt: str) -> str:
        try:
            return client(prompt)
        except NotAskedYet:
            raise
        except ModelUnavailable:
            return configured(prompt)

    return complete


def _told(answer: Answer) -> str:
    """The answer as text, its sources below it."""
    sources = [
        f"[{one.number}] {day(one.created_at)}, {one_line(one.type)}, source: {one_line(one.source) or 'unknown'}, "
        f"id: {one.id}"
        for one in answer.citations
    ]
    return views.fenced_answer(answer.text, sources) if sources else answer.text
