"""The Typer app: global flags, the list of command modules, and how errors become exit codes.

A new family of commands is one module with `register(app)` and one line in COMMANDS.
"""

from __future__ import annotations

import contextlib
import copy
import errno
import logging
import os
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Annotated, Any, cast

import typer
from typer.core import TyperGroup

from recollect.domain.errors import InvalidInput, InvalidProfile, RecollectError
from recollect.doors.cli import other_names
from recollect.doors.cli.ending import tidy_up_first
from recollect.doors.cli.session import FLAGS, flush, printable, tolerate_poor_terminals, write_json
from recollect.doors.wire import error_to_dict

# In the order of the help page.
COMMANDS = (
    "recollect.doors.cli.demo",
    "recollect.doors.cli.remembering",
    "recollect.doors.cli.recalling",
    "recollect.doors.cli.changing",
    "recollect.doors.cli.care",
    "recollect.doors.cli.copies",
    "recollect.doors.cli.exchange",
    "recollect.doors.cli.profiles",
    "recollect.doors.cli.settings",
    "recollect.doors.cli.models",
    "recollect.doors.cli.evaluation",
    "recollect.doors.cli.serving",
    "recollect.doors.cli.mcp",
    "recollect.doors.cli.agents",
)

GLOBAL_FLAGS = ("store", "json", "quiet")
GLOBAL_PANEL = "Everywhere"

# Everything that Typer finds wrong with a command line is one of these.
UsageError: type[Exception] = typer.BadParameter.__mro__[1]


class RecollectGroup(TyperGroup):
    """The root command: hands the global flags down to every command and turns errors into exit codes."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        shared = [one for one in self.params if one.name in GLOBAL_FLAGS]
        _without_values(self)
        for command in _commands_below(self):
            _without_values(command)
            command.help = _flowing(command.help or "")
            for parameter in shared:
                twin = copy.copy(parameter)
                twin.expose_value = False
                command.params.append(twin)

    def main(self, args: Any = None, prog_name: str | None = None, *rest: Any, **more: Any) -> Any:
        """Run; exit 0 when fine, 1 when the request failed, 2 when it was wrong."""
        given = list(sys.argv[1:] if args is None else args)
        more["standalone_mode"] = False
        self._meta: Mapping[str, Any] = {}
        try:
            code = super().main(given, prog_name or "recollect", *rest, **more)
        except typer.Abort:
            code = _failed(RecollectError("stopped"), self._wants_json(given), 1)
        except UsageError as error:
            usage = _as_usage(error)
            # Without a command the help was shown, and there is nothing to add.
            code = _failed(usage, self._wants_json(given), 2) if usage.message else 2
        except RecollectError as error:
            wrong = isinstance(error, InvalidInput) and not isinstance(error, InvalidProfile)
            code = _failed(error, self._wants_json(given), 2 if wrong else 1)
        except OSError as error:
            code = _failed(_as_failure(error), self._wants_json(given), 1)
        sys.exit(code if isinstance(code, int) else 0)

    def invoke(self, ctx: Any) -> Any:
        """A reader that has seen enough (`recollect list | head -1`) is no failure."""
        self._meta = ctx.meta
        try:
            answer = super().invoke(ctx)
            flush()
            return answer
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None

    def _wants_json(self, given: list[str]) -> bool:
        """As it was read, or as far as that did not come to its end, by the words."""
        return bool(self._meta.get(FLAGS, {}).get("json")) or _wants_json(given)


def _commands_below(group: Any) -> Iterator[Any]:
    for command in group.commands.values():
        yield command
        if hasattr(command, "commands"):
            yield from _commands_below(command)


def _without_values(command: Any) -> None:
    """Flags take no value, so that the help names none; that of `--help` itself is made only when it is asked for."""
    listed = command.get_params

    def get_params(ctx: Any) -> list[Any]:
        found = listed(ctx)
        for one in found:
            if getattr(one, "is_flag", False):
                one.metavar = ""
        return found

    command.get_params = get_params


def _flowing(text: str) -> str:
    """Paragraphs without the line breaks of the source: the reader's terminal is of another width."""
    return "\n\n".join(" ".join(one.split()) for one in text.split("\n\n"))


def _failed(error: RecollectError, as_json: bool, code: int) -> int:
    """One line on standard error that ends with the next step; with --json also a document."""
    if as_json:
        with contextlib.suppress(OSError):  # where standard output itself has failed, the line below must do
            write_json(error_to_dict(error))
    line = f"recollect: {' '.join(error.message.split())}"
    if error.hint:
        line += f" — {' '.join(error.hint.split())}"
    typer.echo(printable(line), err=True)
    return code


class Usage(RecollectError):
    """The command line itself is wrong."""


def _as_usage(error: Exception) -> Usage:
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "recollect"
    message = cast(Any, error).format_message().rstrip(".").replace(": Value error, ", ": ")
    message = message[:1].lower() + message[1:]
    known = other_names.told(message) if " " not in path else None
    if known is not None:
        return Usage(known[0], f"see `recollect {known[1]} --help`")
    # What is remembered, looked for or set may well begin with a minus.
    text = path.endswith((" recall", " remember", " set")) and message.startswith("no such option: -")
    hint = f"put `--` before text that begins with a minus, or see `{path} --help`" if text else f"see `{path} --help`"
    return Usage(message, hint)


HINT_FOR_FILES = "check the path and its permissions"


def _as_failure(error: OSError) -> RecollectError:
    place = f" {error.filename}" if error.filename else ""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    return RecollectError(f"{error.strerror or error}{place}", "make room" if full else HINT_FOR_FILES)


def _wants_json(args: list[str]) -> bool:
    """Read from the raw words, because a wrong command line is never parsed to its end."""
    flags = args[: args.index("--")] if "--" in args else args
    return any(word.partition("=")[0] == "--json" for word in flags)


def _remember_flag(ctx: typer.Context, param: typer.CallbackParam, value: Any) -> Any:
    """Keep a global flag where every command finds it, wherever on the line it stood."""
    if value or value == "":
        ctx.meta.setdefault(FLAGS, {})[param.name] = value
    return value


def _print_version(ctx: typer.Context, value: bool) -> None:
    if not value:
        return
    from recollect import __version__

    if _wants_json(sys.argv) or ctx.meta.get(FLAGS, {}).get("json"):
        write_json({"version": __version__})
    else:
        typer.echo(f"recollect {__version__}")
    raise typer.Exit


StoreFlag = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="PATH",
        help="The store's file; also RECOLLECT_STORE. Default: the user's data folder.",
        callback=_remember_flag,
        is_eager=True,
        rich_help_panel=GLOBAL_PANEL,
    ),
]
JsonFlag = Annotated[
    bool,
    typer.Option(
        "--json",
        help="Print exactly one JSON document and nothing else.",
        callback=_remember_flag,
        is_eager=True,
        rich_help_panel=GLOBAL_PANEL,
    ),
]
QuietFlag = Annotated[
    bool,
    typer.Option(
        "--quiet",
        "-q",
        help="No notes, no progress, no confirmations of what was done.",
        callback=_remember_flag,
        is_eager=True,
        rich_help_panel=GLOBAL_PANEL,
    ),
]
VersionFlag = Annotated[
    bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
]

app = typer.Typer(
    cls=RecollectGroup,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"], "max_content_width": 100},
    epilog="Examples: recollect remember 'We deploy on Tuesdays' · recollect recall 'when do we deploy?'",
)


@app.callback()
def root(
    store: StoreFlag = None,  # noqa: ARG001 (kept by its callback, as the next two are)
    json: JsonFlag = False,  # noqa: ARG001
    quiet: QuietFlag = False,  # noqa: ARG001
    version: VersionFlag = False,  # noqa: ARG001
) -> None:
    """The memory of AI agents: remember, recall with the reason for every rank, forget."""
    # What the engine could not do stands in the answer's trace or in the error; log lines would only blur it.
    for name in ("recollect", "psycopg"):
        logging.getLogger(name).addHandler(logging.NullHandler())


for _module in COMMANDS:
    import_module(_module).register(app)


def main() -> None:
    """The entry point of the `recollect` command."""
    tolerate_poor_terminals()
    tidy_up_first()
    app()
