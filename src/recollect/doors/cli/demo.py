"""demo: a store full of memories and a few recalls explained; needs nothing set up."""

from __future__ import annotations

import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer

from recollect.domain.errors import Conflict
from recollect.doors.cli.session import Session, current


def register(app: typer.Typer) -> None:
    app.command(
        "demo", rich_help_panel="Start here", epilog="Examples: recollect demo · recollect demo --keep demo.db"
    )(demo)


def demo(
    ctx: typer.Context,
    keep: Annotated[Path | None, typer.Option("--keep", metavar="PATH", help="Keep the demo's store here.")] = None,
) -> None:
    """Fill a temporary store with six months of a project and ask it questions, profile by profile."""
    run = current(ctx)
    kept = None if keep is None else keep.expanduser()
    if kept is not None and kept.exists():
        raise Conflict(f"{kept} is there already", "choose another name")
    with _place(kept) as path:
        _play(run, path, kept)


@contextmanager
def _place(kept: Path | None) -> Generator[Path]:
    if kept is not None:
        yield kept
        return
    with tempfile.TemporaryDirectory(prefix="recollect-demo-", ignore_cleanup_errors=True) as folder:
        yield Path(folder) / "demo.db"


def _play(run: Session, path: Path, kept: Path | None) -> None:
    from recollect.doors.demo import playing
    from recollect.engine import open_engine

    began = perf_counter()
    with open_engine(path, background=False, reranker="none") as engine:
        with run.progress("filling the store") as advance:
            playing.build(engine, advance)
        built = perf_counter() - began
        played = playing.play(engine)
        if run.json:
            run.emit(playing.document(engine, played, kept))
            return
        from recollect.doors.demo import drawing

        run.page(*drawing.opening(engine, built))
        for place, scene in enumerate(played, start=1):
            run.page(*drawing.drawn(place, scene))
        run.page(*drawing.closing(perf_counter() - began, kept))
