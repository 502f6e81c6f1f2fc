"""mcp: the memory as an MCP server on standard input and output."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from recollect import extras
from recollect.domain.errors import RecollectError
from recollect.doors.cli import options
from recollect.doors.cli.ending import end_at_once
from recollect.doors.cli.session import current

if TYPE_CHECKING:
    from recollect.engine import Engine


def register(app: typer.Typer) -> None:
    app.command("mcp", rich_help_panel="Doors", epilog="Example: claude mcp add recollect -- recollect mcp")(mcp)


def mcp(ctx: typer.Context, namespace: options.Namespace = options.NAMESPACE) -> None:
    """Serve the memory to an MCP client on standard input and output, until the client closes it."""
    end_at_once()
    store = current(ctx).store
    try:
        from recollect.doors.mcp.stdio import serve
    except ModuleNotFoundError as error:
        raise RecollectError("the MCP server is not installed", f"run `{extras.install('mcp')}`") from error

    def opening() -> Engine:
        from recollect.engine import open_engine

        return open_engine(store)

    serve(opening, namespace=namespace)
