"""import and export: JSON lines in and out, other systems' files in."""

from __future__ import annotations

import io
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, TextIO, cast

import typer

from recollect.domain.errors import InvalidInput, NotFound, RecollectError
from recollect.doors.cli import options
from recollect.doors.cli.session import Session, current, flush, one_line
from recollect.doors.cli.targets import free_target, work_folder
from recollect.doors.wire import plain

if TYPE_CHECKING:
    from recollect.engine import Engine
    from recollect.importers import ImportReport

READABLE = (".md", ".markdown", ".txt", ".json", ".jsonl")
ARCHIVED = ("conversations", "memories")
COUNTS = ("added", "updated", "merged", "skipped", "redacted", "links", "problem_count")
PROBLEMS_TOLD = 5
MAX_FILES = 100_000
UNREADABLE = (OSError, EOFError, zlib.error, zipfile.BadZipFile, RuntimeError)
"""No right to it, damage, and of an archive a password or a way of packing that is not known (RuntimeErrors)."""
IN_MEMORY = 8 * 2**20
"""What comes through a pipe and is longer goes to a file that nobody else can see."""
MOST_PIPED = 16 * 2**30
"""Some ten million memories; a pipe may have no end."""
PIECE = 2**20


def complete_formats(incomplete: str) -> list[str]:
    from recollect.importers import IMPORTERS

    return [name for name in ("recollect", *(one.name for one in IMPORTERS)) if name.startswith(incomplete)]


def register(app: typer.Typer) -> None:
    app.command(
        "import",
        rich_help_panel="Write",
        epilog="Examples: recollect import memories.jsonl · recollect import ~/notes --project notes · "
        "recollect import chatgpt-export.zip",
    )(import_memories)
    app.command(
        "export",
        rich_help_panel="Care",
        epilog="Examples: recollect export memories.jsonl · recollect export | gzip > memories.jsonl.gz",
    )(export_memories)


@dataclass(frozen=True, slots=True)
class Part:
    """One text to read: its name, its size in bytes, and where its bytes come from."""

    name: str
    size: int
    open: Callable[[], io.BufferedIOBase]
    origin: str = ""
    """Where the file is, if it is one that stays: notes there are changed when they have been edited."""
    converting: str = "pass it through `iconv -f ENCODING -t UTF-8 | recollect import -`"
    """What makes UTF-8 of it, where it is none."""
    found: bool = False
    """Nobody named it, it lay in a folder or an archive: if it cannot be read, that is no failure."""


def import_memories(
    ctx: typer.Context,
    sources: Annotated[
        list[str], typer.Argument(metavar="SOURCE…", help="Files, folders of notes, a ZIP of an export, or -.")
    ],
    format: Annotated[
        str | None,
        typer.Option(
            "--format", "-f", help="Instead of recognising it: recollect, chatgpt …", autocompletion=complete_formats
        ),
    ] = None,
    project: options.Project = None,
    session: options.SessionName = None,
    namespace: options.Namespace = options.NAMESPACE,
    no_wait: options.NoWait = False,
) -> None:
    """Read our own JSON lines, Markdown, text, or what ChatGPT, Claude, Claude Code, mem0 and others export.

    Memories of your own making are JSON objects with `content` and any fields of a memory, in a list or one a line.
    Twice is the same as once: what is known already is skipped, what was forgotten stays forgotten. Sections of notes
    that were edited since, and memories that Claude or mem0 changed, are changed in place. What was deleted there, or
    has another heading now, stays here until it is forgotten. An export of recollect keeps its own namespaces, projects
    and sessions.
    """
    run = current(ctx)
    scope = options.scope_of(namespace, project, session)
    for source in sources:
        _check_there(source)
    failures: list[RecollectError] = []
    with run.engine() as engine:
        reports = [
            (part.name, _read(run, engine, part, format, scope, failures))
            for source in sources
            for part in _parts(source)
        ]
        if failures and len(reports) == 1:
            raise failures[0]
        totals = {name: sum(getattr(report, name) for _, report in reports) for name in COUNTS}
        if run.json:
            run.emit({**totals, "sources": [{"source": name, **plain(report)} for name, report in reports]})
        else:
            _tell(run, reports, totals)
        run.drain(engine, wait=not no_wait)
    if failures:
        raise typer.Exit(1)


def _read(
    run: Session, engine: Engine, part: Part, format: str | None, scope: Any, failures: list[RecollectError]
) -> ImportReport:
    """What became of one text. One that cannot be read keeps the others not out; if it was named, it is a failure."""
    from recollect.importers import ImportReport

    try:
        return _imported(run, engine, part, format, scope)
    except (InvalidInput, NotFound) as error:
        if not part.found:
            failures.append(error)
        report = ImportReport("unknown")
        report.note(0, error.message)
        return report


def _imported(run: Session, engine: Engine, part: Part, format: str | None, scope: Any) -> ImportReport:
    from recollect import recollection
    from recollect.identity import new_id
    from recollect.importers import check_utf8, import_source

    with ExitStack() as opened:
        try:
            raw = part.open()
            # utf-8-sig: a byte order mark is not part of the first word.
            text = io.TextIOWrapper(cast(Any, raw), encoding="utf-8-sig", errors="replace", newline="")
            opened.enter_context(text)
            check_utf8(raw, part.name, part.converting)  # all of it is read here, before anything is stored
        except UNREADABLE as error:
            reason = getattr(error, "strerror", None) or str(error) or "it ends too early"
            raise InvalidInput(f"{part.name!r} cannot be read: {reason}", "check it, or fetch it again") from error
        advance = opened.enter_context(run.progress(one_line(part.name, 40), in_bytes=True))
        return import_source(
            engine.store,
            text,
            part.name,
            new_id=new_id,
            now=datetime.now(UTC),
            policy=engine.policy,
            format=format,
            scope=scope,
            origin=part.origin,
            changed=lambda id: recollection.forget(engine.settings.recollections, [id]),
            progress=lambda _entries: advance(raw.tell(), part.size),
        )


def _check_there(source: str) -> None:
    """A mistyped name is told before anything is read."""
    if source != "-" and not Path(source).expanduser().exists():
        raise NotFound(f"there is no file {source}", "check the path")


def _parts(source: str) -> Iterator[Part]:
    """The texts behind a name: standard input, a pipe, a file, the notes in a folder, the conversations in a ZIP."""
    path = Path(source).expanduser()
    if source == "-" or not (path.is_file() or path.is_dir()):  # a pipe can neither be rewound nor measured
        kept = tempfile.SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115 (closed by whoever reads it)
        with nullcontext(sys.stdin.buffer) if source == "-" else path.open("rb") as pipe:
            while (piece := pipe.read(PIECE)) and kept.tell() <= MOST_PIPED:
                kept.write(piece)
        if kept.tell() > MOST_PIPED:
            kept.close()
            raise InvalidInput(f"more than {MOST_PIPED} bytes came through the pipe", "import them from a file")
        size = kept.tell()
        kept.seek(0)
        yield Part("standard input" if source == "-" else source, size, lambda: cast(Any, kept))
        return
    if path.is_dir():
        files = sorted(one for one in path.rglob("*") if one.suffix.lower() in READABLE and _is_visible(one, path))
        if not files:
            yield _refused(source, NotFound(f"there is nothing to read in {path}", f"it reads {', '.join(READABLE)}"))
        for one in files[:MAX_FILES]:
            yield _file(one, str(one.relative_to(path)), found=True)
    elif _is_archive(path):
        yield from _archived(path)
    else:
        yield _file(path, path.name)


def _file(path: Path, name: str, found: bool = False) -> Part:
    target = path.with_name(f"{path.stem}-utf8{path.suffix}")
    converting = f"convert it: `iconv -f ENCODING -t UTF-8 {quote(str(path))} > {quote(str(target))}`, and import that"
    return Part(name, path.stat().st_size, lambda: path.open("rb"), str(path.resolve()), converting, found)


def _refused(name: str, error: RecollectError) -> Part:
    """What was named and holds nothing to read: told with the others, which are read all the same."""

    def refuse() -> io.BufferedIOBase:
        raise error

    return Part(name, 0, refuse)


def _is_archive(path: Path) -> bool:
    try:
        zipfile.ZipFile(path).close()
    except UNREADABLE:  # no archive, or one that nobody may read, which is told when it is opened
        return False
    return True


def _is_visible(file: Path, folder: Path) -> bool:
    """Neither hidden nor in a hidden folder, such as an editor's own."""
    return file.is_file() and not any(part.startswith(".") for part in file.relative_to(folder).parts)


def _archived(path: Path) -> Iterator[Part]:
    with zipfile.ZipFile(path) as archive:
        files = [one for one in archive.infolist() if one.filename.endswith(".json")]
        wanted = [one for one in files if any(part.startswith(ARCHIVED) for part in Path(one.filename).parts)]
        if not wanted:
            error = InvalidInput(f"{path} holds no conversations.json", "unpack it and import the files", "SOURCE")
            yield _refused(path.name, error)
        for one in wanted:
            name, opening = f"{path.name}/{one.filename}", cast(Any, partial(archive.open, one))
            converting = "unpack it, convert the file (`iconv -f ENCODING -t UTF-8`) and import that"
            yield Part(name, one.file_size, opening, converting=converting, found=len(wanted) > 1)


def _tell(run: Session, reports: list[tuple[str, ImportReport]], totals: dict[str, int]) -> None:
    for name, report in reports:
        for problem in report.problems[:PROBLEMS_TOLD]:
            place = f", entry {problem.place}" if problem.place else ""
            run.note(f"{name}{place}: {problem.message}")
    words = {"problem_count": "problem" if totals["problem_count"] == 1 else "problems"}
    told = [f"{count} {words.get(name, name)}" for name, count in totals.items() if count]
    files = f"{len(reports)} files" if len(reports) != 1 else f"{reports[0][0]} ({reports[0][1].format})"
    run.say(f"{files}: {', '.join(told) or 'nothing new'}")


def export_memories(
    ctx: typer.Context,
    file: Annotated[str, typer.Argument(metavar="[FILE]", help="Default: standard output.")] = "-",
    namespace: Annotated[
        list[str] | None, typer.Option("--namespace", help="Only this namespace; repeatable. Default: all.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it is there.")] = False,
) -> None:
    """Everything as JSON lines, lossless and always in the same order; `import` reads it back."""
    from recollect.importers import export

    run = current(ctx)
    if file == "-" and run.json:
        raise typer.BadParameter("an export is many JSON lines, not one document: name a file", param_hint="--json")
    path = None if file == "-" else free_target(file, run.settings.store, force=force)
    with run.engine() as engine, _target(path) as out, run.progress("export") as advance:
        report = export(engine.store, out, namespaces=namespace or None, progress=advance)
    if run.json:
        run.emit({"path": file, **plain(report)})
    elif file == "-":
        run.note(f"{report.memories} memories, {report.links} links")
    else:
        run.say(f"{file}  {report.memories} memories, {report.links} links")


@contextmanager
def _target(path: Path | None) -> Generator[TextIO]:
    """Standard output, or a file that gets its name when it is complete; it may hold secrets, so it is private."""
    if path is None:
        yield cast(Any, sys.stdout)
        flush()
        return
    with work_folder(path.parent, ".exporting-") as folder:
        fresh = folder / path.name
        with fresh.open("w", encoding="utf-8", newline="\n") as out:
            fresh.chmod(0o600)
            yield out
        fresh.replace(path)
