"""What every command shares: the global flags, where output goes, and how an engine is opened."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from recollect.stages.cleaning import told_tags

if TYPE_CHECKING:
    import typer
    from rich.console import Console, RenderableType

    from recollect.engine import Engine
    from recollect.settings import Settings

FLAGS = "recollect.flags"
DRAIN_SECONDS = 5.0
PAGE_COLUMNS = 100
LEAST_COLUMNS = 24
"""A text needs as much of a table's width, or it stands on lines of its own."""
Advance = Callable[[int, int], None]


class Session:
    """One run of the command line: standard output carries the answer, standard error everything else."""

    def __init__(self, flags: Mapping[str, Any]) -> None:
        self.store: str | None = flags.get("store")
        self.json = bool(flags.get("json"))
        self.quiet = bool(flags.get("quiet"))
        self._told_of_model = False

    @property
    def is_piped(self) -> bool:
        """Whether standard output is surely no terminal, which can be told without a library for drawing."""
        return _is_piped(sys.stdout)

    @cached_property
    def out(self) -> Console:
        """Standard output. Not a terminal: no colours, and lines are never folded."""
        from rich.console import Console

        class Output(Console):
            def on_broken_pipe(self) -> None:
                """Rich would exit with 1; the app decides, for output of every kind."""
                raise BrokenPipeError

        console = Output(highlight=False, emoji=False, markup=False)
        if not console.is_terminal:
            console = Output(highlight=False, emoji=False, markup=False, width=10_000, no_color=True)
        return console

    @cached_property
    def err(self) -> Console:
        """Standard error."""
        from rich.console import Console

        return Console(stderr=True, highlight=False, emoji=False, markup=False, soft_wrap=True)

    def emit(self, document: Any) -> None:
        """The one JSON document of a --json run. Text that UTF-8 cannot carry is escaped."""
        write_json(document)

    def show(self, *things: RenderableType) -> None:
        """The answer for people."""
        for thing in things:
            self.out.print(thing, soft_wrap=not self.out.is_terminal)

    def page(self, *things: RenderableType) -> None:
        """A laid-out answer: as wide as the terminal, but never wider than reads well; the same width in a pipe."""
        width = min(self.out.width, PAGE_COLUMNS)
        for thing in things:
            self.out.print(thing, width=width)

    def write(self, lines: Iterable[str]) -> None:
        """The answer for people in a pipe: lines as they are."""
        sys.stdout.writelines(f"{line}\n" for line in lines)

    def say(self, text: str) -> None:
        """What was done, in a line on standard output; --quiet and --json leave it out."""
        if not (self.quiet or self.json):
            self.out.print(printable(text), soft_wrap=True)

    def note(self, text: str) -> None:
        """Something worth knowing beside the answer, on standard error; --quiet leaves it out."""
        if self.quiet:
            return
        if _is_piped(sys.stderr):
            sys.stderr.write(f"{printable(text)}\n")
        else:
            self.err.print(printable(text), style="dim")

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[object]], flexible: str = "") -> None:
        """A table on a terminal, tab-separated values in a pipe. Only the flexible column may be folded.

        Where the others leave it no room, each row is its text and a line with the rest.
        """
        if not self.out.is_terminal:
            # Not through rich, which turns tabs into spaces.
            self.write("\t".join(one_line(str(cell)) for cell in row) for row in (columns, *rows))
            return
        from rich import box
        from rich.table import Table
        from rich.text import Text

        others = [place for place, name in enumerate(columns) if name != flexible]
        taken = sum(max(len(str(row[place])) + 3 for row in (columns, *rows)) for place in others)
        if flexible and taken + LEAST_COLUMNS > self.out.width:
            for row in rows:
                self.out.print(printable(str(row[columns.index(flexible)])))
                self.out.print(
                    printable(" · ".join(str(row[place]) for place in others if str(row[place]))), style="dim"
                )
            return
        table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
        for name in columns:
            table.add_column(name, overflow="fold", no_wrap=name != flexible)
        for row in rows:
            table.add_row(*(cell if isinstance(cell, Text) else Text(printable(str(cell))) for cell in row))
        self.out.print(table)

    @cached_property
    def settings(self) -> Settings:
        from recollect import settings

        return settings.load(store=self.store)

    @contextmanager
    def engine(self, *, embedder: str | None = None) -> Generator[Engine]:
        """The store, opened without background work: what a command starts it also finishes."""
        is_new = not self.has_store
        with self.told_of_daemon(), self._opened(embedder) as engine:
            try:
                if is_new:
                    self._announce()
                yield engine
            except BaseException:
                self._close(engine)
                raise
            self._close(engine)

    @contextmanager
    def _opened(self, embedder: str | None) -> Generator[Engine]:
        """The engine; on a full disk one that reads, so that a command that writes is told of the disk."""
        from recollect.domain.errors import DiskFull, StoreUnavailable
        from recollect.engine import open_engine

        try:
            engine = open_engine(self.store, background=False, embedder=embedder)
        except DiskFull as full:
            engine = open_engine(self.store, background=False, embedder=embedder, read_only=True)
            self.note("the disk is full: what is there can be read, nothing can be written")
            try:
                yield engine
            except StoreUnavailable:
                raise full from None
            return
        yield engine

    @contextmanager
    def told_of_daemon(self) -> Generator[None]:
        """Where somebody holds the store and it is the home's daemon, the error says which process and how it ends."""
        from recollect.domain.errors import StoreInUse
        from recollect.doors.hook.home import daemon_of, ending

        try:
            yield
        except StoreInUse as error:
            pid = daemon_of(str(self.settings.home), self.settings.store)
            if pid is None:
                raise
            hint = f"end the daemon with `{ending(pid)}`, then try again; `recollect serve` starts it anew"
            raise StoreInUse(f"{error.message}: the daemon (process {pid})", hint) from error

    def _close(self, engine: Engine) -> None:
        """The answer is out and every write is durable: what fails now (recording what was seen) is a note."""
        from recollect.domain.errors import RecollectError

        try:
            engine.close()
        except RecollectError as error:
            self.note(f"not recorded as seen: {error.message}")

    @property
    def has_store(self) -> bool:
        """Whether the store is there already, as far as that can be seen without opening it."""
        target = self.settings.store
        return target == ":memory:" or "://" in target or Path(target).expanduser().exists()

    def _announce(self) -> None:
        """The first run tells where the store is, and how to get a model if there is none."""
        self.note(f"new store: {self.settings.store}  (choose another with --store or RECOLLECT_STORE)")
        self.note_missing_model()

    def note_missing_model(self) -> None:
        """How to get the default model, where it is wanted and missing."""
        if not self._told_of_model and self.lacks_model:
            self._told_of_model = True
            self.note("no model yet: recall works by words alone; `recollect models fetch` adds meaning")

    @property
    def lacks_model(self) -> bool:
        """Whether the default model is wanted, and neither it nor a fallback is here."""
        if self.settings.embedder != "default":
            return False
        from recollect.encoders.catalogue import EMBEDDER_CHAIN
        from recollect.encoders.fetch import is_installed

        return not any(is_installed(self.settings.models, model) for model in EMBEDDER_CHAIN)

    def agrees(self, question: str) -> bool:
        """What somebody at a terminal answers, yes unless they say no; nobody is asked in a script."""
        if self.quiet or self.json or not (sys.stdin and sys.stdin.isatty() and self.err.is_terminal):
            return False
        import typer

        try:
            return typer.confirm(question, default=True, err=True)
        except typer.Abort:
            return False

    @contextmanager
    def progress(self, title: str, *, in_bytes: bool = False) -> Generator[Advance]:
        """A bar on standard error, on a terminal only; the callback takes what is done and the total."""
        if self.quiet or not self.err.is_terminal:
            yield lambda _done, _total: None
            return
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
        )

        count = DownloadColumn() if in_bytes else MofNCompleteColumn()
        columns = (TextColumn("{task.description}"), BarColumn(), count, TimeElapsedColumn())
        with Progress(*columns, console=self.err, transient=True) as bar:
            task = bar.add_task(title, total=None)
            yield lambda done, total: bar.update(task, completed=done, total=total)

    def drain(self, engine: Engine, wait: bool) -> None:
        """Embed what was written, for a few seconds at most, so that the next recall finds it by meaning.

        The write is durable and acknowledged already: whatever goes wrong here is retried by the next upkeep.
        """
        if not wait or engine.embedder is None:
            return
        flush()
        try:
            with self.progress("embedding") as advance:
                engine.upkeep(budget_seconds=DRAIN_SECONDS, progress=advance)
        except (Exception, KeyboardInterrupt) as error:
            self.note(f"not embedded yet: {str(error) or 'stopped'}; `recollect upkeep` goes on")
            return
        self.note_waiting(engine)

    def note_waiting(self, engine: Engine) -> None:
        """How many memories are not yet found by meaning, and what embeds them."""
        waiting = engine.embedding_progress()
        if waiting is not None and waiting.pending:
            self.note(f"memories that wait for their embedding: {waiting.pending}; `recollect upkeep` does it now")


def _is_piped(stream: Any) -> bool:
    """No terminal, and nobody wants it taken for one; what else it may be, the library for drawing finds out."""
    return not (stream.isatty() or os.environ.get("FORCE_COLOR") or os.environ.get("TTY_COMPATIBLE") == "1")


def current(ctx: typer.Context) -> Session:
    """The session of this run, made from the global flags wherever they stood."""
    return Session(ctx.meta.get(FLAGS, {}))


def write_json(document: Any) -> None:
    """One JSON document and a newline on standard output, flushed."""
    text = json.dumps(document, ensure_ascii=False, indent=2 if sys.stdout.isatty() else None)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except (UnicodeEncodeError, LookupError):
        text = json.dumps(document)
    sys.stdout.write(text + "\n")
    flush()


def flush() -> None:
    """Let the reader see now what was written; a reader that has gone shows up here."""
    sys.stdout.flush()


def printable(text: str) -> str:
    """Control and tag characters made visible: a memory must neither steer the terminal nor hide what it says."""
    return "".join(_visible(one) for one in told_tags(text))


def _visible(character: str) -> str:
    code = ord(character)
    if character in "\n\t" or 0x20 <= code < 0x7F:
        return character
    if code < 0xA0 or 0x202A <= code <= 0x202E or 0x2066 <= code <= 0x2069 or 0xD800 <= code <= 0xDFFF:
        return "\ufffd"
    return character


def one_line(text: str, length: int = 0) -> str:
    """White space collapsed, control characters made visible, cut with an ellipsis where a length is given."""
    flat = printable(" ".join(text.split()))
    if not length or len(flat) <= length:
        return flat
    cut = flat[: max(1, length - 1)]
    # At a word's end where one is near, within the word where it is endless.
    space = cut.rfind(" ", length * 2 // 3)
    return (cut[:space] if space > 0 else cut).rstrip() + "…"


def tolerate_poor_terminals() -> None:
    """A terminal that cannot show a character gets a question mark, and a closed stream takes in what nobody reads.

    One that was closed for reading (cron, a service) is at its end.
    """
    if cast(Any, sys.stdin) is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: PTH123, SIM115 (for the whole run)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115 (for the whole run)
        getattr(sys, name).reconfigure(errors="replace")


def is_interactive() -> bool:
    """Whether somebody is there to answer a question."""
    return bool(cast(Any, sys.stdin).isatty()) and bool(cast(Any, sys.stderr).isatty())
