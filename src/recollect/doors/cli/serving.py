"""serve: the daemon that HTTP clients, hooks and MCP clients talk to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recollect import extras
from recollect.domain.errors import RecollectError
from recollect.doors.cli.ending import end_at_once
from recollect.doors.cli.session import Session, current, flush

if TYPE_CHECKING:
    from recollect.doors.http.token import Address

Host = Annotated[str, typer.Option("--host", help="The address to listen on.")]
Port = Annotated[int, typer.Option("--port", min=0, max=65535, help="The port; 0 takes any free one.")]
Socket = Annotated[
    Path | None, typer.Option("--socket", metavar="PATH", help="The Unix socket; by default in the home folder.")
]
AllowRemote = Annotated[bool, typer.Option("--allow-remote", help="Listen on an address that others can reach.")]
AllowHost = Annotated[
    list[str] | None,
    typer.Option("--allow-host", metavar="NAME", help="A further name clients may ask for; repeatable."),
]
UntilChanged = Annotated[
    bool,
    typer.Option("--until-changed", help="End when settings, models or recollect itself change: as hooks start it."),
]


def register(app: typer.Typer) -> None:
    app.command("serve", rich_help_panel="Doors", epilog="Examples: recollect serve · recollect serve --port 0 --json")(
        serve
    )


def serve(
    ctx: typer.Context,
    host: Host = "127.0.0.1",
    port: Port = 4777,
    socket: Socket = None,
    allow_remote: AllowRemote = False,
    allow_host: AllowHost = None,
    until_changed: UntilChanged = False,
) -> None:
    """Serve HTTP on the loopback interface and on a Unix socket until it is told to stop (Ctrl-C, SIGTERM).

    A browser finds a page at `/` that recalls and explains every rank. Every other request needs the token in the file
    `token` in the home folder, which the first start makes. Logs go to standard error as JSON lines.
    """
    end_at_once()
    run = current(ctx)
    try:
        from recollect.doors.http.daemon import Place, serve
    except ModuleNotFoundError as error:
        raise RecollectError(f"{error.name} is not installed", extras.install("server")) from error
    names = tuple(name.lower() for name in allow_host or ())
    place = Place(host, port, socket, allow_remote, names, until_changed)
    serve(run.store, place, lambda address, token: _announce(run, address, token))


def _announce(run: Session, address: Address, token: Path) -> None:
    url = f"http://[{address.host}]:{address.port}" if ":" in address.host else f"http://{address.host}:{address.port}"
    if run.json:
        run.emit({"url": url, "socket": address.socket, "token_file": str(token), "pid": address.pid})
    else:
        run.say(f"serving {url}" + (f" and {address.socket}" if address.socket else ""))
        run.say(f"the token, which the page at / asks for, is in {token}")
    flush()
