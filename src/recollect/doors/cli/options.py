"""Options that several commands share, and how their text becomes values."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from recollect.domain.memory import DEFAULT_NAMESPACE, KNOWN_TYPES, LINK_TYPES, Scope


def complete_types(incomplete: str) -> list[str]:
    return [one for one in KNOWN_TYPES if one.startswith(incomplete)]


def complete_links(incomplete: str) -> list[str]:
    return [one for one in LINK_TYPES if one.startswith(incomplete)]


def complete_profiles(incomplete: str) -> list[str]:
    """Profile names come from files: the stages they name need not be loaded for that."""
    from importlib import resources

    found = (one.name for one in resources.files("recollect.profiles").iterdir())
    return sorted(name[:-5] for name in found if name.endswith(".toml") and name.startswith(incomplete))


Type = Annotated[
    str,
    typer.Option(
        "--type",
        "-t",
        help="fact, decision, gotcha, preference … or a word of your own.",
        autocompletion=complete_types,
    ),
]
Types = Annotated[
    list[str] | None,
    typer.Option(
        "--type", "-t", metavar="TYPE", help="Only this type; repeat for several.", autocompletion=complete_types
    ),
]
Tags = Annotated[list[str] | None, typer.Option("--tag", metavar="TAG", help="A tag; repeat for several.")]
TagFilter = Annotated[list[str] | None, typer.Option("--tag", metavar="TAG", help="Must carry this tag; repeatable.")]
Project = Annotated[str | None, typer.Option("--project", "-p", help="The project it belongs to.")]
SessionName = Annotated[str | None, typer.Option("--session", help="The session it belongs to.")]
Namespace = Annotated[str, typer.Option("--namespace", help="The tenant: nothing is ever seen across namespaces.")]
After = Annotated[str | None, typer.Option("--after", metavar="TIME", help="Created at or after this ISO 8601 time.")]
Before = Annotated[str | None, typer.Option("--before", metavar="TIME", help="Created before this ISO 8601 time.")]
Now = Annotated[str | None, typer.Option("--now", metavar="TIME", help="Pretend it is this time (ISO 8601).")]
NoWait = Annotated[
    bool, typer.Option("--no-wait", help="Do not embed before exiting; the next upkeep or write does it.")
]
Profile = Annotated[
    str | None,
    typer.Option(
        "--profile",
        "-P",
        help="How to rank: a profile's name, or the path of a .toml file.",
        autocompletion=complete_profiles,
    ),
]

NAMESPACE = DEFAULT_NAMESPACE


def scope_of(namespace: str, project: str | None, session: str | None) -> Scope:
    return Scope(namespace=namespace, project=project, session=session)


def words_of(parts: Sequence[str]) -> str:
    """Several words on the command line are one text."""
    return " ".join(parts)


def pairs(given: Sequence[str] | None, option: str) -> list[tuple[str, str]]:
    """name=value texts taken apart."""
    found: list[tuple[str, str]] = []
    for one in given or ():
        name, equals, value = one.partition("=")
        if not equals or not name.strip():
            raise typer.BadParameter(f"{one!r} is not of the form name=value", param_hint=option)
        found.append((name.strip(), value.strip()))
    return found


def value_of(text: str) -> Any:
    """A number, true, false or list where the text is one in TOML; any other text stands for itself."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
