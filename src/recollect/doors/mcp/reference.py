"""The MCP tools as a reference page, made from the registered tools: `python -m recollect.doors.mcp.reference`."""

from __future__ import annotations

import asyncio
import sys
from typing import Any, cast

from mcp_types import Tool

from recollect.doors.mcp.server import INSTRUCTIONS, build_server
from recollect.engine import Engine

INTRODUCTION = """\
# The MCP server

This page is generated from the registered tools (`make docs`); every MCP client is told the same.

`recollect mcp` serves one client on standard input and output and ends with it; `recollect serve` serves many over
streamable HTTP at `/mcp`, behind the daemon's token. Both speak the handshake protocols up to 2025-11-25 and the
stateless 2026-07-28. It needs the `mcp` extra: `pip install '.[mcp]'` in the checkout.

```json
{{"mcpServers": {{"recollect": {{"command": "recollect", "args": ["mcp"]}}}}}}
```

- **Results** carry structured content, described by an output schema and named like the JSON of the command line and
  of HTTP, and a text block for the model.
- **Recalled text is data**: in text blocks it stands inside a fence that no memory can close, each line with date,
  source and id.
- **Sensitive memories** are never sent to a model: their text is withheld here and `memory_ask` leaves them out.
- **Errors** say what was wrong and end with the next step; nothing that a model can cause is a bare failure.
- **One namespace**: the server is started for one (`--namespace`), and no tool can reach another.
- `memory_ask` lets the client's own model write the answer where the client offers sampling, else the configured
  `language_model`, else quotes the sentences themselves; it always cites, or says that it is not in memory.
- **Told without asking**: a client that subscribes to `memory://ID` (or listens, in 2026-07-28; odd ids are
  percent-encoded) hears when that memory is changed by any client of the same process; one that sets a
  log level hears which tool ran, how long it took and what worked less well than usual, never a text.

What the server tells a client about its use:

> {instructions}
"""


def page() -> str:
    """The whole page as Markdown."""
    server = build_server(_never_opened)
    parts = [INTRODUCTION.format(instructions=INSTRUCTIONS), "# Tools\n"]
    parts += [_tool(one) for one in asyncio.run(server.list_tools())]
    parts.append("# Resource and prompt\n")
    for template in asyncio.run(server.list_resource_templates()):
        parts.append(f"- resource `{template.uri_template}` ({template.mime_type}): {template.description}")
    for prompt in asyncio.run(server.list_prompts()):
        names = ", ".join(f"`{one.name}`" for one in prompt.arguments or [])
        parts.append(f"- prompt `{prompt.name}` ({names}): {prompt.description}")
    return "\n".join(parts) + "\n"


def _never_opened() -> Engine:
    raise AssertionError("a page about the tools needs no memory")


def _tool(tool: Tool) -> str:
    hints = tool.annotations
    assert hints is not None
    kind = "reads only" if hints.read_only_hint else "destructive" if hints.destructive_hint else "adds"
    again = "may be repeated" if hints.idempotent_hint else "not to be repeated blindly"
    required = set(cast(list[str], tool.input_schema.get("required", [])))
    properties = cast(dict[str, dict[str, Any]], tool.input_schema.get("properties", {}))
    lines = [f"## `{tool.name}`", "", f"*{tool.title}: {kind}, {again}.*", "", tool.description or "", ""]
    lines += [_parameter(name, schema, name in required) for name, schema in properties.items()]
    results = cast(dict[str, Any], (tool.output_schema or {}).get("properties", {}))
    lines += ["", f"Returns {', '.join(f'`{name}`' for name in results)}.", ""]
    return "\n".join(lines)


def _parameter(name: str, schema: dict[str, Any], required: bool) -> str:
    kinds = [_kind(one) for one in schema.get("anyOf", [schema]) if one.get("type") != "null"]
    default = schema.get("default")
    note = "required" if required else "optional" if default is None else f"default {str(default).lower()}"
    return f"- `{name}` ({' or '.join(kinds)}, {note}): {schema.get('description', '')}"


def _kind(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return " \\| ".join(schema["enum"])
    bounds = " to ".join(str(schema[one]) for one in ("minimum", "maximum") if one in schema)
    kind = str(schema.get("type", "any")).replace("array", "list")
    return f"{kind} {bounds}".strip() if "maximum" in schema else kind


if __name__ == "__main__":
    sys.stdout.write(page())
