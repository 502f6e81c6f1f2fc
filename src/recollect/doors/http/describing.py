"""How a route is declared: its rule gives the errors of its description, so that the description is true."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, TypeAlias, TypeVar

from fastapi import APIRouter
from pydantic import BaseModel
from starlette.convertors import StringConvertor, register_url_convertor
from starlette.responses import Response

from recollect.doors.http.answers import ProblemAnswer
from recollect.doors.http.problems import MEDIA_TYPE
from recollect.doors.http.rules import RULES


class IdConvertor(StringConvertor):
    """An import may bring any id: it goes on to the end of the path, whatever stands in it."""

    regex = "(?s:.+)"


register_url_convertor("id", IdConvertor())

Handler = TypeVar("Handler", bound=Callable[..., Awaitable[Response]])
Answers: TypeAlias = dict[int, type[BaseModel] | str | None]
"""By status: the shape of a JSON document, the media type of anything else, or nothing."""


def route(router: APIRouter, method: str, path: str, answers: Answers) -> Callable[[Handler], Handler]:
    """Add a handler under the rule of its route (KeyError while there is none); the first answer is the usual one."""
    rule = RULES[method, path]
    place = path.replace("{id}", "{id:id}")
    responses: dict[int | str, dict[str, Any]] = {status: _answer(status, shape) for status, shape in answers.items()}
    for status in rule.statuses:
        responses[status] = {
            "description": HTTPStatus(status).phrase,
            "content": {MEDIA_TYPE: {"schema": _reference(ProblemAnswer)}},
        }

    def add(handler: Handler) -> Handler:
        router.add_api_route(
            place,
            handler,
            methods=[method],
            status_code=next(iter(answers)),
            response_model=None,
            response_class=Response,
            responses=responses,
            summary=_first_line(handler.__doc__ or ""),
            description=handler.__doc__ or "",
        )
        if method == "GET":  # what may be read may be asked about; the description need not say it twice
            router.add_api_route(
                place, handler, methods=["HEAD"], response_model=None, response_class=Response, include_in_schema=False
            )
        return handler

    return add


def _answer(status: int, shape: type[BaseModel] | str | None) -> dict[str, Any]:
    described: dict[str, Any] = {"description": HTTPStatus(status).phrase}
    if isinstance(shape, str):
        # A stream is described event by event in the text; a schema would speak of the whole.
        described["content"] = {shape: {"schema": {} if shape == "text/event-stream" else {"type": "string"}}}
    elif shape is not None:
        described["content"] = {"application/json": {"schema": _reference(shape)}}
    return described


def _reference(shape: type[BaseModel]) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{shape.__name__}"}


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0].partition(". ")[0].rstrip(".")


def answer_schemas() -> dict[str, Any]:
    """The schemas of all answers, for the components of the description."""
    from pydantic.json_schema import models_json_schema

    from recollect.doors.http import answers

    shapes = [one for one in vars(answers).values() if isinstance(one, type) and issubclass(one, BaseModel)]
    shapes.remove(BaseModel)
    _, made = models_json_schema(
        [(one, "serialization") for one in shapes], ref_template="#/components/schemas/{model}"
    )
    return made["$defs"]
