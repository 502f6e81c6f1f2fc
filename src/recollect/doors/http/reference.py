"""The HTTP door as a reference page, made from its OpenAPI description: `python -m recollect.doors.http.reference`."""

from __future__ import annotations

import json
import sys
import tempfile
from typing import Any

from recollect.doors.http.app import build_app
from recollect.doors.http.door import Door
from recollect.doors.http.lanes import Limits
from recollect.doors.http.problems import ERRORS
from recollect.engine import open_engine

INTRODUCTION = """\
# HTTP

This page is generated from the program (`make docs`); a running daemon gives the same at `/openapi.json`.

```sh
recollect serve                       # 127.0.0.1:4777 and a Unix socket in the home folder
TOKEN=$(cat ~/.local/share/recollect/token)  # in the home folder; made at the first start, for its owner alone
curl -H "Authorization: Bearer $TOKEN" -H "Content-Type: application/json" \\
  -d '{{"query": "which database do we run?"}}' http://127.0.0.1:4777/v1/recall
```

- **Every route** needs `Authorization: Bearer TOKEN` (401), a `Host` that is this machine (421) and, if there is an
  `Origin`, the server's own (403); there is no CORS. Only the page at `/` comes without a token, because it holds no
  data: in a browser it asks for the token, then recalls and draws the reason for every rank. POST and PATCH need
  `Content-Type: application/json` (415). The Unix socket (mode 0600) has the same rules. HEAD does
  what GET does, without the body.
- **Errors** are `application/problem+json` (RFC 9457): `type`, `title`, `status`, `detail`, `hint`, and `field` or
  `existing_id` where there is one. The types begin with `urn:recollect:problem:` — {slugs}.
- **Limits**: bodies of {body} MiB (413) that arrive within {seconds:g} seconds (408); {quick} requests at once and
  {waiting} waiting (429 with `Retry-After`), {deadline:g} seconds for each (503 with `Retry-After`). ask and
  consolidate have a lane of their own, so that they hold nobody up.
- **Writes**: `Idempotency-Key` makes a repeated POST of memories harmless; `If-Match` with the `ETag` of a GET makes a
  PATCH or DELETE safe against others (412).
- **Ids** in a path are percent-encoded, `/` as `%2F`: an import may bring ids of any characters, up to 256 bytes. Where
  a client or a proxy resolves `.` and `..` by itself, memories of just these names are out of its reach.
- **Several processes** may use one store: daemons, command lines, libraries. One home has one daemon.
- **Stopping** (SIGTERM, Ctrl-C): requests are finished, waiting embeddings are made for a few seconds, then it ends.
- **MCP** is served at `/mcp`, behind the same token.
"""


def page() -> str:
    """The whole page as Markdown."""
    with (
        tempfile.TemporaryDirectory() as home,
        open_engine(":memory:", home=home, embedder="none", reranker="none", background=False) as engine,
    ):
        described = build_app(Door(engine), "reference").openapi()
    limits = Limits()
    slugs = ", ".join(dict.fromkeys(f"`{mapped.slug}` ({mapped.status})" for mapped in ERRORS.values()))
    parts = [
        INTRODUCTION.format(
            slugs=slugs,
            body=limits.body_bytes // 2**20,
            seconds=limits.body_seconds,
            quick=limits.quick_threads,
            waiting=limits.quick_waiting,
            deadline=limits.quick_seconds,
        )
    ]
    schemas = described["components"]["schemas"]
    for path, methods in described["paths"].items():
        parts += [_section(method.upper(), path, told, schemas) for method, told in methods.items()]
    return "\n".join(parts)


def _section(method: str, path: str, told: dict[str, Any], schemas: dict[str, Any]) -> str:
    lines = [f"## `{method} {path}`", "", " ".join(told["description"].split()), ""]
    for one in told.get("parameters", []):
        note = one.get("description", "")
        lines.append(f"- `{one['name']}` ({one['in']}{', required' if one.get('required') else ''}) {note}".rstrip())
    body = told.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    lines += _fields(_resolved(body, schemas), schemas)
    fine = [f"{status}{_shape(answer)}" for status, answer in told["responses"].items() if int(status) < 400]
    wrong = [status for status in told["responses"] if int(status) >= 400]
    lines += ["", f"Answers: {', '.join(fine)}. Errors: {', '.join(wrong)}.", ""]
    return "\n".join(lines)


def _fields(schema: dict[str, Any], schemas: dict[str, Any]) -> list[str]:
    required = schema.get("required", [])
    return [
        f"- `{name}` {_kind(_resolved(field, schemas))}{' (required)' if name in required else _default(field)} "
        f"{field.get('description', '')}".rstrip()
        for name, field in schema.get("properties", {}).items()
    ]


def _resolved(schema: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any]:
    name = str(schema.get("$ref", "")).rpartition("/")[2]
    return schemas[name] if name else schema


def _kind(schema: dict[str, Any]) -> str:
    """The type in a word or two; nullable ones by what they are otherwise."""
    choices = [one for one in schema.get("anyOf", []) if one.get("type") != "null"]
    if choices:
        return " or ".join(dict.fromkeys(_kind(one) for one in choices))
    if "enum" in schema:
        return " · ".join(f"`{one}`" for one in schema["enum"])
    return str(schema.get("format") or schema.get("type") or "object")


def _default(field: dict[str, Any]) -> str:
    default = field.get("default")
    return "" if default in (None, [], {}, "") or isinstance(default, dict) else f" (default {json.dumps(default)})"


def _shape(answer: dict[str, Any]) -> str:
    for media, content in answer.get("content", {}).items():
        name = str(content.get("schema", {}).get("$ref", "")).rpartition("/")[2]
        return f" {name.removesuffix('Answer') or media}"
    return ""


if __name__ == "__main__":
    sys.stdout.write(page())
