"""How a tool is called: arguments are checked kindly but fully, and errors tell the model what to do next."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar, cast

import anyio
import anyio.to_thread
from anyio.lowlevel import RunVar
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp.server.mcpserver.utilities.func_metadata import FuncMetadata
from mcp_types import ToolAnnotations
from pydantic import ValidationError

from recollect.domain.errors import RecollectError

Schema = dict[str, Any]
T = TypeVar("T")

SLOW_THREADS = 4
_slow_lane: RunVar[anyio.CapacityLimiter] = RunVar("recollect-mcp-slow-lane")


class Arguments(FuncMetadata):
    """The SDK reads JSON out of text arguments, because some clients send lists as text.

    A parameter that takes text must be spared: a memory whose content looks like JSON is still that text.
    """

    texts: frozenset[str] = frozenset()

    def pre_parse_json(self, data: dict[str, Any]) -> dict[str, Any]:
        as_given = {name: value for name, value in data.items() if name in self.texts}
        others = {name: value for name, value in data.items() if name not in self.texts}
        return {**super().pre_parse_json(others), **as_given}


class MemoryTool(Tool):
    """A tool whose every user error is a sentence with a next step. Only crashes are masked by the SDK."""

    async def run(self, arguments: dict[str, Any], context: Context[Any, Any], convert_result: bool = False) -> Any:
        known: Schema = self.parameters.get("properties", {})
        unknown = sorted(set(arguments) - set(known))
        if unknown:
            allowed = ", ".join(known) or "none"
            raise ToolError(
                f"InvalidInput: {self.name} has no parameter {unknown[0][:60]!r}. Next step: use only these: {allowed}."
            )
        # Models send null for what they leave out.
        named = {name: value for name, value in arguments.items() if value is not None}
        try:
            return await super().run(named, context, convert_result)
        except ToolError as error:
            cause = error.__cause__
            if isinstance(cause, ValidationError):
                raise ToolError(_wrong(self.name, cause)) from cause
            if isinstance(cause, RecollectError):
                raise ToolError(said(cause)) from cause
            raise


def make_tool(function: Callable[..., Any], title: str, *, reads: bool, destroys: bool, repeatable: bool) -> MemoryTool:
    """A tool from a method: its docstring is the description, its annotations the schemas. The world is closed."""
    tool = cast(
        MemoryTool,
        MemoryTool.from_function(
            function,
            title=title,
            description=inspect.getdoc(function),
            annotations=ToolAnnotations(
                title=title,
                read_only_hint=reads,
                destructive_hint=destroys,
                idempotent_hint=repeatable,
                open_world_hint=False,
            ),
            structured_output=True,
        ),
    )
    tool.parameters["additionalProperties"] = False
    plain = tool.fn_metadata
    properties: Schema = tool.parameters.get("properties", {})
    tool.fn_metadata = Arguments(
        arg_model=plain.arg_model,
        output_schema=plain.output_schema,
        output_model=plain.output_model,
        wrap_output=plain.wrap_output,
        texts=frozenset(name for name, schema in properties.items() if _takes_text(schema)),
    )
    return tool


async def slowly(work: Callable[[], T]) -> T:
    """Run what waits for a model or reads the whole store on a few threads of its own.

    The common ones also carry the other tools and, on stdio, the client's pipe: they must not be used up by waiting.
    """
    lane = _slow_lane.get(None)
    if lane is None:
        lane = anyio.CapacityLimiter(SLOW_THREADS)
        _slow_lane.set(lane)
    return await anyio.to_thread.run_sync(work, limiter=lane)


def said(error: RecollectError) -> str:
    """What went wrong and what to do, in one line."""
    message = " ".join(error.message.split()).rstrip(".")
    hint = " ".join(error.hint.split()).rstrip(".")
    return f"{type(error).__name__}: {message}." + (f" Next step: {hint}." if hint else "")


def _wrong(name: str, error: ValidationError) -> str:
    """Which arguments do not fit and why; the values themselves are the caller's and are not repeated."""
    found = [
        f"{'.'.join(str(part) for part in one['loc'])}: {one['msg']}"
        for one in error.errors(include_url=False, include_input=False, include_context=False)
    ]
    return f"InvalidInput: wrong arguments for {name}: {'; '.join(found)}. Next step: correct them and call again."


def _takes_text(schema: Schema) -> bool:
    kinds = {one.get("type") for one in [schema, *schema.get("anyOf", [])]}
    return "string" in kinds and "array" not in kinds
