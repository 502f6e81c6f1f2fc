"""hook, install, uninstall: the memory inside coding agents."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recollect import extras
from recollect.domain.errors import NotFound, RecollectError
from recollect.doors.cli import daemons, models
from recollect.doors.cli.session import Session, current

if TYPE_CHECKING:
    from recollect.doors.install.changing import Change
    from recollect.doors.install.places import Target

    Plans = dict[str, list[Change]]

FETCH_NOW = "Fetch the embedder now (26 MB, once), so that memories are found by meaning, too?"

Project = Annotated[
    bool, typer.Option("--project/--user", help="Change this project's files, or the user's own for all projects.")
]
Agent = Annotated[
    str | None,
    typer.Argument(metavar="[AGENT]", help="claude-code, codex, gemini or cursor. Default: all that are found here."),
]
Uninstalled = Annotated[
    str | None,
    typer.Argument(metavar="[AGENT]", help="claude-code, codex, gemini or cursor. Default: all that have it."),
]
Fetch = Annotated[
    bool | None, typer.Option("--fetch/--no-fetch", help="Fetch the embedder as well, or not. Default: ask.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would change and change nothing.")]
OnlyProject = Annotated[
    bool, typer.Option("--only-project", help="Prompts recall only the memories of the project they are typed in.")
]


def register(app: typer.Typer) -> None:
    app.command(
        "hook", rich_help_panel="Doors", epilog="Example: recollect hook UserPromptSubmit --agent claude < payload.json"
    )(hook)
    app.command(
        "install",
        rich_help_panel="Doors",
        epilog="Examples: recollect install · recollect install claude-code --dry-run · "
        "recollect install codex --project",
    )(install)
    app.command(
        "uninstall", rich_help_panel="Doors", epilog="Examples: recollect uninstall · recollect uninstall claude-code"
    )(uninstall)


def hook(
    ctx: typer.Context,
    event: Annotated[str, typer.Argument(metavar="EVENT", help="The agent's own name of the event.")],
    agent: Annotated[str, typer.Option("--agent", help="claude, codex, gemini or cursor.")] = "claude",
    only_project: OnlyProject = False,
) -> None:
    """Answer an agent's hook: its JSON on standard input, its JSON on standard output, always exit code 0.

    Prompts and session starts get what is remembered; finished turns are listened to for what should be. If no daemon
    runs, one is started in the background (not with RECOLLECT_NO_DAEMON=1). RECOLLECT_HOOK_DEBUG=1 tells on standard
    error what happened.
    """
    from recollect.doors.hook.running import main

    store = current(ctx).store
    flags = [*(["--store", store] if store else []), *(["--only-project"] if only_project else [])]
    main([event, "--agent", agent, *flags])


def install(
    ctx: typer.Context,
    agent: Agent = None,
    project: Project = False,
    dry_run: DryRun = False,
    only_project: OnlyProject = False,
    fetch: Fetch = None,
) -> None:
    """Write the hooks and the MCP server into the configuration of an agent, or of all, and show what changed.

    What is there already stays as it is, to the character. Running it again changes nothing. Where the model that finds
    memories by meaning is missing, it is fetched if you agree (26 MB, once).
    """
    from recollect.doors.install import changing, places

    names = [places.agent_of(agent)] if agent else places.present(os.environ)
    if not names:
        raise NotFound("no coding agent was found here", f"name one of {', '.join(places.AGENTS)}")
    run = current(ctx)
    plans = _planned(names, changing.plan_install, project, only_project)
    if not dry_run:
        _apply(plans, installing=True)
    _report(run, plans, dry_run, is_one=agent is not None)
    if not dry_run:
        notes = [places.NOTES.get(name) for name in _changed(plans)]
        for one in filter(None, (*notes, _missing_parts(), _told_of_store(run))):
            run.note(one)
        _offer_model(run, fetch)


def uninstall(ctx: typer.Context, agent: Uninstalled = None, project: Project = False, dry_run: DryRun = False) -> None:
    """Take out of the configuration of an agent, or of all, exactly what install wrote, and show what changed."""
    from recollect.doors.install import changing, places

    run = current(ctx)
    names = [places.agent_of(agent)] if agent else list(places.AGENTS.values())
    plans = _planned(names, changing.plan_uninstall, project)
    if not dry_run:
        _apply(plans, installing=False)
    if agent is None:
        plans = _changed(plans)
    _report(run, plans, dry_run, is_one=agent is not None)
    if not plans:
        run.note("nothing of ours was found in any agent's configuration")
    if not dry_run:
        with suppress(RecollectError):  # nobody needs good settings to be rid of us
            daemons.note_running(run)


def _planned(
    names: Iterable[str], plan: Callable[[list[Target]], list[Change]], project: bool, only_project: bool = False
) -> Plans:
    """What would change, by agent: all of it is worked out before the first file is touched."""
    from recollect.doors.install import entries, places

    command, folder = entries.own_command(), _project_folder() if project else None
    return {
        name: plan(places.targets(name, command, project=folder, environment=os.environ, only_project=only_project))
        for name in names
    }


def _apply(plans: Plans, *, installing: bool) -> None:
    from recollect.doors.install import changing

    changing.require_writable(one for changes in plans.values() for one in changes)
    for changes in plans.values():
        changing.apply(changes, installing=installing)


def _changed(plans: Plans) -> Plans:
    return {name: each for name, each in plans.items() if any(one.action != "unchanged" for one in each)}


def _report(run: Session, plans: Plans, dry_run: bool, *, is_one: bool) -> None:
    if run.json:
        told = [_told(name, changes, dry_run) for name, changes in plans.items()]
        run.emit(told[0] if is_one else {"agents": told, "dry_run": dry_run})
        return
    for changes in plans.values():
        _show(run, changes, dry_run)


def _told(agent: str, changes: list[Change], dry_run: bool) -> dict[str, Any]:
    """What was changed, as a document."""
    files = [
        {"path": str(one.path), "action": one.action, "diff": one.diff(), "taken": one.is_taken} for one in changes
    ]
    return {"agent": agent, "dry_run": dry_run, "files": files}


def _show(run: Session, changes: list[Change], dry_run: bool) -> None:
    changed = [one for one in changes if one.action != "unchanged"]
    for one in changed:
        run.say(one.diff().rstrip("\n"))
    for one in changes:
        run.say(f"{one.action}: {one.path}" + (" (not written: --dry-run)" if dry_run and one in changed else ""))
    for one in changes:
        if one.is_taken:
            run.note(f"{one.path} has another server called recollect: this one was not put in; rename that one first")


def _offer_model(run: Session, fetch: bool | None) -> None:
    """Whatever comes of it, the agent's files are written."""
    try:
        if run.lacks_model and (run.agrees(FETCH_NOW) if fetch is None else fetch):
            models.fetch_default(run)
            run.note("the embedder is here: memories are found by meaning, too")
            daemons.note_outdated(run)
        run.note_missing_model()
    except RecollectError as error:
        run.note(f"{error.message}: {error.hint}")


def _missing_parts() -> str:
    """What the hooks and the MCP server need beside the core, if it is not there."""
    from importlib.util import find_spec

    parts = {"fastapi": "server", "uvicorn": "server", "mcp": "mcp"}
    missing = dict.fromkeys(extra for module, extra in parts.items() if find_spec(module) is None)
    return f"still needed: {extras.install(*missing)}" if missing else ""


def _told_of_store(run: Session) -> str:
    """What chooses a store here and is not written into the agent's files: it is for the agent's own environment."""
    if run.store:
        return "--store is not written into the agent's files: set RECOLLECT_HOME where the agent is started"
    names = [name for name in ("RECOLLECT_HOME", "RECOLLECT_STORE") if os.environ.get(name)]
    return f"{' and '.join(names)} is set here: the agent must be started with it too" if names else ""


def _project_folder() -> Path:
    """The root of the Git repository that this folder is in, else this folder."""
    here = Path.cwd()
    return next((one for one in (here, *here.parents) if (one / ".git").exists()), here)
