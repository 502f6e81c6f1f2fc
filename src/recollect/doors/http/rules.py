"""The one table of routes: how each is run and which errors it can give. A route without a line here cannot be built.

Host, Origin and token are checked on every route alike, before routing, so there is no column for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

LaneName = Literal["quick", "slow"]


@dataclass(frozen=True, slots=True)
class Rule:
    """lane: where its blocking work runs (None: it has none). body: it reads a JSON body. errors: its own, beside the
    ones that follow from the rest."""

    lane: LaneName | None = "quick"
    body: bool = False
    errors: tuple[int, ...] = ()

    @property
    def statuses(self) -> tuple[int, ...]:
        """Every error status that a caller can meet here."""
        found = {400, 401, 403, 421, *self.errors}
        if self.body:
            found |= {408, 413, 415, 422, 503}
        if self.lane is not None:
            found |= {429, 503}
        return tuple(sorted(found))


RULES: Mapping[tuple[str, str], Rule] = {
    ("POST", "/v1/memories"): Rule(body=True, errors=(409,)),
    ("GET", "/v1/memories"): Rule(errors=(404, 422)),
    ("POST", "/v1/memories/batch"): Rule(body=True, errors=(409,)),
    ("GET", "/v1/memories/{id}"): Rule(errors=(404, 422)),
    ("PATCH", "/v1/memories/{id}"): Rule(body=True, errors=(404, 409, 412)),
    ("DELETE", "/v1/memories/{id}"): Rule(errors=(404, 412, 422)),
    ("POST", "/v1/capture"): Rule(body=True, errors=(409,)),
    ("POST", "/v1/links"): Rule(body=True, errors=(404, 409)),
    ("POST", "/v1/recall"): Rule(body=True),
    ("POST", "/v1/ask"): Rule(lane="slow", body=True),
    ("POST", "/v1/consolidate"): Rule(lane="slow", body=True),
    ("GET", "/v1/stats"): Rule(),
    ("GET", "/v1/events"): Rule(lane=None, errors=(422, 429)),
    ("GET", "/settings"): Rule(),
    ("PATCH", "/settings"): Rule(body=True),
    ("GET", "/episodes/search"): Rule(errors=(422,)),
    ("POST", "/recollect"): Rule(body=True),
    ("GET", "/healthz"): Rule(lane=None),
    ("GET", "/readyz"): Rule(),
    ("GET", "/metrics"): Rule(),
    ("GET", "/openapi.json"): Rule(lane=None),
}


def rule_of(method: str, path: str) -> Rule:
    """The rule of a route; what is asked with HEAD is run as GET is, and sent without its body."""
    return RULES["GET" if method == "HEAD" else method, path]


# Apps of other doors that this one carries. They stand behind the same checks, the page's files but for the token.
MOUNTS: tuple[str, ...] = ("/mcp", "/", "/page.js", "/page.css")
