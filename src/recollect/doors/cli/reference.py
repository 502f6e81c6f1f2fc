"""The command line as a reference page, made from the app itself: `python -m recollect.doors.cli.reference`."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Any

from typer.main import get_command

from recollect.doors.cli.app import GLOBAL_FLAGS, app

INTRODUCTION = """\
# The command line

This page is generated from the program (`make docs`); `recollect COMMAND --help` says the same.

**Everywhere**, before or after the command:

{flags}

The store is `--store`, else `RECOLLECT_STORE`, else `memories.db` in the home folder: `RECOLLECT_HOME`, else the user's
data folder. `recollect --version` prints the version, `recollect --install-completion` sets up shell completion.

**Exit codes**: 0 fine (finding nothing is fine) · 1 the request failed · 2 the request was wrong as typed.
Errors are one line on standard error that ends with the next step; with `--json` standard output also carries
`{{"error": {{"type", "message", "hint"}}}}`. Notes and progress bars go to standard error, so standard output can be
piped. Colours and tables appear on a terminal only; in a pipe, tables are tab-separated.
"""


def page() -> str:
    """The whole page as Markdown."""
    root: Any = get_command(app)
    flags = "\n".join(_option(one) for one in root.params if one.name in GLOBAL_FLAGS)
    parts = [INTRODUCTION.format(flags=flags)]
    parts += [_section(name, command) for name, command in _commands(root, "recollect")]
    return "\n".join(parts)


def _commands(group: Any, path: str) -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


def _section(name: str, command: Any) -> str:
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    options = [one for one in command.params if one.param_type_name == "option" and one.name not in GLOBAL_FLAGS]
    usage = " ".join(
        [name, *(one.metavar or one.name.upper() for one in arguments), *(["[OPTIONS]"] if options else [])]
    )
    lines = [f"## `{name}`", "", command.help or "", "", f"    {usage}", ""]
    lines += [f"- `{one.metavar or one.name.upper()}` {one.help or ''}".rstrip() for one in arguments]
    lines += [_option(one) for one in options if one.name != "help"]
    lines += ["", *_examples(command.epilog or "")]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"


def _option(option: Any) -> str:
    names = " / ".join([*option.opts, *option.secondary_opts])
    flag = option.is_flag or option.secondary_opts
    value = "" if flag else f" {option.metavar or option.name.upper()}"
    empty = option.default is None or option.default is False or callable(option.default)
    default = "" if empty or flag else f" (default {option.default})"
    return f"- `{names}{value}` {option.help or ''}{default}".rstrip()


def _examples(epilog: str) -> list[str]:
    """The epilog is `Examples: one · two`."""
    _, _, commands = epilog.partition(": ")
    return ["```sh", *(one.strip() for one in commands.split(" · ")), "```"]


if __name__ == "__main__":
    sys.stdout.write(page())
