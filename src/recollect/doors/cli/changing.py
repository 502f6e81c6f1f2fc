"""update, forget, link and pin: changes to memories that exist."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import typer

from recollect.doors.cli import options
from recollect.doors.cli.session import current, is_interactive, one_line, printable
from recollect.doors.wire import link_to_dict, memory_to_dict

NewType = Annotated[
    str | None, typer.Option("--type", "-t", help="The new type.", autocompletion=options.complete_types)
]
NewTags = Annotated[list[str] | None, typer.Option("--tag", metavar="TAG", help="The tags it shall have; repeatable.")]
Metadata = Annotated[
    list[str] | None, typer.Option("--meta", metavar="NAME=VALUE", help="The metadata it shall have; repeatable.")
]
NewProject = Annotated[
    str | None, typer.Option("--project", "-p", help='The project it shall belong to; "" takes it out.')
]
Sensitive = Annotated[bool | None, typer.Option("--sensitive/--not-sensitive", help="Whether models may see it.")]
LinkType = Annotated[
    str,
    typer.Argument(
        metavar="TYPE", help="supersedes, resolved-by, part-of or see-also", autocompletion=options.complete_links
    ),
]
Id = Annotated[str, typer.Argument(metavar="ID", help="From recall, list or remember.")]


def register(app: typer.Typer) -> None:
    app.command(
        "update",
        rich_help_panel="Write",
        epilog="Example: recollect update 01jv3m8x0c9k4q2r5t7w9yabcd --confidence 0.95 --tag db --tag production",
    )(update)
    app.command("forget", rich_help_panel="Write", epilog="Example: recollect forget 01jv3m8x0c9k4q2r5t7w9yabcd --yes")(
        forget
    )
    app.command("link", rich_help_panel="Write", epilog="Example: recollect link NEW-ID supersedes OLD-ID")(link)
    app.command(
        "pin",
        rich_help_panel="Write",
        epilog="Examples: recollect pin 01jv3m8x0c9k4q2r5t7w9yabcd · recollect pin 01jv3m8x0c9k4q2r5t7w9yabcd --off",
    )(pin)


def update(
    ctx: typer.Context,
    id: Id,
    content: Annotated[str | None, typer.Option(help="The new text.")] = None,
    type: NewType = None,
    tag: NewTags = None,
    no_tags: Annotated[bool, typer.Option("--no-tags", help="Take all tags away.")] = False,
    confidence: Annotated[float | None, typer.Option(min=0, max=1, help="How sure it is.")] = None,
    importance: Annotated[str | None, typer.Option(help="0 to 1, or low, medium, high.")] = None,
    pinned: Annotated[bool | None, typer.Option("--pin/--unpin", help="Whether it keeps from decaying.")] = None,
    sensitive: Sensitive = None,
    project: NewProject = None,
    source: Annotated[str | None, typer.Option(help="Where it comes from.")] = None,
    meta: Metadata = None,
    if_version: Annotated[int | None, typer.Option(help="Only if it still has this version.")] = None,
    no_wait: options.NoWait = False,
) -> None:
    """Change fields of a memory; what is not named stays."""
    if tag and no_tags:
        raise typer.BadParameter("--tag and --no-tags exclude each other", param_hint="--no-tags")
    metadata = {name: options.value_of(value) for name, value in options.pairs(meta, "--meta")}
    asked: dict[str, Any] = {
        "content": content,
        "type": type,
        "tags": () if no_tags else tuple(tag) if tag else None,
        "confidence": confidence,
        "importance": None if importance is None else options.value_of(importance),
        "pinned": pinned,
        "sensitive": sensitive,
        "source": source,
        "metadata": metadata or None,
    }
    changes = {name: value for name, value in asked.items() if value is not None}
    if not changes and project is None:
        raise typer.BadParameter("name at least one field to change, such as --confidence 0.9", param_hint="update")
    run = current(ctx)
    with run.engine() as engine:
        if project is not None:
            changes["scope"] = replace(engine.get(id).scope, project=project or None)
        memory = engine.update(id, version=if_version, **changes)
        if run.json:
            run.emit(memory_to_dict(memory))
        else:
            run.say(f"{memory.id}  updated: {', '.join(changes)} (version {memory.version})")
        run.drain(engine, wait=not no_wait)


def forget(
    ctx: typer.Context,
    ids: Annotated[list[str], typer.Argument(metavar="ID…", help="From recall, list or remember.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask; nothing is asked without a terminal.")] = False,
) -> None:
    """Delete without remnants: text, vectors, links and what was merged into it. It does not come back by itself."""
    run = current(ctx)
    with run.engine() as engine:
        if not yes and is_interactive():
            for id in ids:
                typer.echo(f"  {id}  {one_line(engine.get(id).content, 100)}", err=True)
            count = "this memory" if len(ids) == 1 else f"these {len(ids)} memories"
            typer.confirm(f"Forget {count} for good?", abort=True, err=True)
        gone = engine.forget(*ids)
    if run.json:
        run.emit({"forgotten": gone, "ids": list(ids)})
    else:
        run.say(f"forgotten: {gone}")


def link(
    ctx: typer.Context,
    source: Annotated[str, typer.Argument(metavar="A", help="The memory that …")],
    type: LinkType,
    target: Annotated[str, typer.Argument(metavar="B", help="… this memory.")],
) -> None:
    """Connect two memories. What is superseded gives its rank to what supersedes it."""
    run = current(ctx)
    with run.engine() as engine:
        made = engine.link(source, type, target)
    if run.json:
        run.emit(link_to_dict(made))
    else:
        run.say(printable(f"{made.source} {made.type} {made.target}"))


def pin(
    ctx: typer.Context, id: Id, off: Annotated[bool, typer.Option("--off", help="Let it decay again.")] = False
) -> None:
    """Keep a memory from decaying and from being merged away."""
    run = current(ctx)
    with run.engine() as engine:
        memory = engine.pin(id, not off)
    if run.json:
        run.emit(memory_to_dict(memory))
    else:
        run.say(f"{memory.id}  {'pinned' if memory.pinned else 'no longer pinned'}")
