"""Every error as RFC 9457 problem+json, by one table. Nothing of the machine (paths, SQL) and no memory is in them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from starlette.responses import Response

from recollect.domain import errors

MEDIA_TYPE = "application/problem+json"
RETRY_SECONDS = 1


class Problem(Exception):
    """An answer that is an error, ready to be sent."""

    def __init__(self, status: int, slug: str, detail: str, hint: str = "", **more: Any) -> None:
        super().__init__(slug)
        self.status = status
        self.slug = slug
        self.detail = detail
        self.hint = hint
        self.more = more
        self.headers: dict[str, str] = {}
        if status in (429, 503):
            self.headers["Retry-After"] = str(RETRY_SECONDS)

    def document(self) -> dict[str, Any]:
        """The body: `type` is a stable name for programs, `detail` and `hint` are for people."""
        return {
            "type": f"urn:recollect:problem:{self.slug}",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": self.detail,
            "hint": self.hint,
            **self.more,
        }

    def response(self) -> Response:
        return Response(render(self.document()), self.status, self.headers, MEDIA_TYPE)


# How pydantic calls an alternative of a field that may be of several kinds.
KIND = re.compile(r"constrained-\w+|function-.*|(?:literal|list|dict)\[.*\]|str|float|int|bool")


@dataclass(frozen=True, slots=True)
class Mapped:
    """How one kind of error is told. Without `detail` the error's own words are: only for those that speak of the
    request alone; what speaks of files, engines and models is told in our words."""

    status: int
    slug: str
    detail: str = ""
    hint: str = field(default="")


# The first line that fits decides, so special kinds stand before general ones.
ERRORS: Mapping[type[errors.RecollectError], Mapped] = {
    errors.InvalidProfile: Mapped(
        422, "invalid-profile", "the profile is not valid", "run `recollect profiles check` on this machine"
    ),
    errors.InvalidInput: Mapped(422, "invalid-input"),
    errors.NotFound: Mapped(404, "not-found"),
    errors.Conflict: Mapped(409, "conflict"),
    errors.DiskFull: Mapped(503, "store-unavailable", "the disk is full", "free some space where the store is"),
    errors.StoreUnavailable: Mapped(503, "store-unavailable", "the store cannot be used now", "try again shortly"),
    errors.Corrupt: Mapped(
        503, "corrupt", "stored data is damaged and is not given out", "run `recollect doctor` on this machine"
    ),
    errors.ModelUnavailable: Mapped(503, "model-unavailable", "a model is missing or failed", "try again later"),
    errors.Timeout: Mapped(503, "timeout", "the work took longer than it may", "try again, or ask for less"),
    errors.RecollectError: Mapped(503, "failed", "the request could not be carried out", "try again later"),
}


def problem_of(error: errors.RecollectError) -> Problem:
    """The problem that an engine's error becomes."""
    mapped = next(mapped for kind, mapped in ERRORS.items() if isinstance(error, kind))
    more: dict[str, Any] = {}
    if isinstance(error, errors.InvalidInput) and error.field is not None:
        more["field"] = error.field
    if isinstance(error, errors.Conflict) and error.existing_id is not None:
        more["existing_id"] = error.existing_id
    return Problem(mapped.status, mapped.slug, mapped.detail or error.message, mapped.hint or error.hint, **more)


def invalid_request(found: list[Mapping[str, Any]]) -> Problem:
    """What the shape of the request got wrong: the first place by name, all of them in `errors`, no value quoted."""
    if any(one["type"] == "json_invalid" for one in found):
        return Problem(400, "malformed", "the body is not JSON", "send one JSON object")
    messages: dict[str, list[str]] = {}
    for one in found[:20]:
        messages.setdefault(_place(one["loc"]), []).append(str(one["msg"]).removeprefix("Value error, "))
    wrong = [{"field": place, "message": ", or: ".join(dict.fromkeys(told))} for place, told in messages.items()]
    first = wrong[0]
    return Problem(
        422, "invalid-input", f"{first['field']}: {first['message']}", "see /openapi.json",
        field=first["field"], errors=wrong,
    )  # fmt: skip


def _place(loc: tuple[Any, ...]) -> str:
    """body.memories.0.content as memories[0].content, without the kinds of value that were tried in one place."""
    text = ""
    for step in [one for one in (loc[1:] if len(loc) > 1 else loc) if not KIND.fullmatch(str(one))]:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else str(step)
    return text


def render(document: Any) -> bytes:
    """JSON as bytes; text that UTF-8 cannot carry (it can only be quoted from a request) becomes question marks."""
    return json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8", "replace")
