"""backup, restore and copy: verified copies of a store, the way back, and the way to another engine."""

from __future__ import annotations

import contextlib
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from recollect.domain.errors import Conflict, Corrupt, InvalidInput, NotFound, StoreInUse
from recollect.doors.cli.session import current, printable
from recollect.doors.cli.targets import SIDECARS, free_target, work_folder
from recollect.doors.wire import plain
from recollect.stores.postgres.address import masked

Force = Annotated[bool, typer.Option("--force", help="Replace what is there; the old store is kept aside.")]


def register(app: typer.Typer) -> None:
    app.command("backup", rich_help_panel="Care", epilog="Example: recollect backup ~/backups/memories-$(date +%F).db")(
        backup
    )
    app.command(
        "restore", rich_help_panel="Care", epilog="Example: recollect restore ~/backups/memories-2026-05-01.db --force"
    )(restore)
    app.command(
        "copy",
        rich_help_panel="Care",
        epilog="Example: recollect copy ~/memories.db postgresql://app@db.example/recollect",
    )(copy)


def backup(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where the copy goes.")],
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it is there.")] = False,
) -> None:
    """A consistent copy while others write, verified before it gets its name."""
    run = current(ctx)
    target = free_target(file, run.settings.store, force=force)
    with run.engine() as engine:
        engine.backup(target)
    size = target.stat().st_size
    if run.json:
        run.emit({"path": str(target), "bytes": size})
    else:
        run.say(f"{target}  {size:,} bytes, verified")


def restore(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A copy made by backup.")],
    force: Force = False,
) -> None:
    """Put a backup in the store's place, after checking it. The old store is kept beside it, never deleted.

    Nothing else may have the store open, no daemon and no MCP server: it would go on writing into the old one.
    """
    from recollect.stores.sqlite.connection import is_in_use
    from recollect.stores.sqlite.copies import sync

    run = current(ctx)
    source, target = file.expanduser(), _store_file(run.settings.store)
    if not source.is_file():
        raise NotFound(f"there is no file {source}", "give the path of a file made by `recollect backup`")
    if target.exists() and source.samefile(target):
        raise InvalidInput("the backup is the store itself", "give another file", "FILE")
    if target.exists() and not force:
        raise Conflict(f"there is a store at {target}", "add --force: it is kept aside under another name")
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with work_folder(target.parent, ".restoring-") as folder:
        fresh = folder / "store.db"
        memories = _verified_copy(source, fresh)
        if target.exists() and is_in_use(target):
            with run.told_of_daemon():
                raise StoreInUse(
                    "another process has the store open", "end MCP servers (`recollect mcp`) and daemons first"
                )
        sync(fresh)
        aside = _move_aside(target)
        fresh.replace(target)
        sync(target.parent)
    document = {"store": str(target), "memories": memories, "old_store": None if aside is None else str(aside)}
    if run.json:
        run.emit(document)
        return
    run.say(f"{target}  restored, {memories} memories")
    if aside is not None:
        run.note(f"the old store is kept as {aside}")


def copy(
    ctx: typer.Context,
    source: Annotated[str, typer.Argument(metavar="FROM", help="The store to read: a file or a postgresql:// URL.")],
    target: Annotated[str, typer.Argument(metavar="TO", help="An empty store, or one that an interrupted copy left.")],
) -> None:
    """Everything of one store into another: memories, links, vectors, tombstones, settings, checked at the end.

    Interrupted, the same command goes on where it stopped.
    """
    from recollect.adapters import open_store
    from recollect.importers import copy_store

    run = current(ctx)
    if "://" not in source and not Path(source).expanduser().is_file():
        raise NotFound(f"there is no store at {source}", "give the file of a store, or a postgresql:// URL")
    with contextlib.ExitStack() as opened:
        there = open_store(source, read_only=True)
        opened.callback(there.close)
        here = open_store(target)
        opened.callback(here.close)
        with run.progress("copying") as advance:
            report = copy_store(there, here, progress=lambda _step, done, total: advance(done, total))
    if run.json:
        run.emit(plain(report))
        return
    run.say(
        f"{report.memories} memories, {report.links} links, {report.vectors} vectors,"
        f" {report.tombstones} tombstones: equal on both sides"
    )


def _store_file(target: str) -> Path:
    if target == ":memory:" or "://" in target:
        raise InvalidInput(f"{masked(target)} is not a file", "restore into a file: --store PATH", "store")
    return Path(target).expanduser()


def _verified_copy(source: Path, fresh: Path) -> int:
    """A copy of the backup that opens and passes every check; returns how many memories it holds.

    The backup itself is only read, so that it stays what it was.
    """
    from recollect.engine import open_engine

    for suffix in ("", *SIDECARS):
        beside, copied = source.with_name(source.name + suffix), fresh.with_name(fresh.name + suffix)
        if beside.exists():
            copied.touch(0o600)
            shutil.copyfile(beside, copied)
    try:
        with open_engine(fresh, background=False, embedder="none", reranker="none") as engine:
            broken = [one.detail for one in engine.check() if one.severity == "error"]
            memories = engine.stats().memories
    except Corrupt:
        broken, memories = ["it cannot be read, or is no recollect store"], 0
    if broken:
        raise Corrupt(printable(f"{source} is damaged: {broken[0]}"), "choose another file made by `recollect backup`")
    return memories


def _move_aside(target: Path) -> Path | None:
    """Rename the old store with all that belongs to it; None where there was none."""
    if not target.exists():
        return None
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
    aside = target.with_name(f"{target.name}.before-restore-{stamp}")
    for suffix in (*SIDECARS, ""):
        old = target.with_name(target.name + suffix)
        if old.exists():
            old.replace(aside.with_name(aside.name + suffix))
    return aside
