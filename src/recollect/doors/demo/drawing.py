"""The demo on a terminal: one table a question, the profiles under one another, each rank with its reason."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from shlex import quote
from shutil import which
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from recollect.domain.changes import Put
from recollect.domain.recall import Recall, RecallHit
from recollect.doors.cli.explaining import reason
from recollect.doors.cli.listing import age
from recollect.doors.cli.session import one_line
from recollect.doors.demo.data import NOW, changes
from recollect.doors.demo.playing import Played
from recollect.doors.demo.scenes import NEXT, Scene
from recollect.doors.install.entries import own_command

if TYPE_CHECKING:
    from recollect.engine import Engine

INDENT = 4
STAR_CHARACTERS = 78


def opening(engine: Engine, seconds: float) -> Iterator[RenderableType]:
    """Where we are, and with which model."""
    yield Rule(Text(" recollect ", style="bold cyan"), style="cyan")
    count = engine.stats().memories
    yield Text.assemble(
        ("Ferryline", "bold"),
        f", six months of a booking service: {count} decisions, gotchas, preferences, facts and episodes.",
    )
    if engine.embedder is None:
        yield Text(
            "No model is installed: this is recall by words alone. `recollect models fetch` adds meaning.",
            style="yellow",
        )
    else:
        yield Text(f"Stored and embedded on this machine in {seconds:.1f} s with {engine.embedder.id}.", style="dim")
    yield Text.assemble(("★", "bold yellow"), (" marks the memory that the question is about.", "dim"))


def drawn(place: int, played: Played) -> Iterator[RenderableType]:
    """One question with all its answers."""
    scene = played.scene
    yield Text()
    yield Text.assemble(
        (f" {place} ", "bold black on cyan"),
        (f" {scene.name.capitalize()} ", "bold"),
        (f" “{scene.query}”", "bold cyan"),
    )
    yield Padding(Text(scene.point, style="italic"), (0, 0, 0, INDENT))
    for contender, answer in played.answers:
        yield Padding(Text(contender.name, style="bold magenta"), (1, 0, 0, INDENT))
        yield _table(scene, answer)
    if scene.render:
        yield from _block(played)


def _table(scene: Scene, answer: Recall) -> Table:
    """The first hits: rank, text, kind and age, and the reason for the rank."""
    table = Table(box=None, pad_edge=False, show_header=False, expand=True, padding=(0, 2, 0, 0))
    table.add_column(width=INDENT + 3, justify="right")
    table.add_column(ratio=3)
    table.add_column(width=14, no_wrap=True)
    table.add_column(ratio=2)
    for hit in answer.hits[: scene.shown]:
        star = hit.id == scene.wanted
        kind = f"{hit.memory.type} {age(hit.memory.created_at, NOW)}"
        table.add_row(
            Text(f"★ {hit.rank}" if star else f"{hit.rank}", style="bold yellow" if star else "dim"),
            _text(hit, star),
            Text(kind, style="dim"),
            Text(_reason(hit, answer), style="green"),
        )
    if not answer.hits:
        table.add_row("–", Text("nothing found", style="red"), "", Text(_why_empty(answer), style="dim"))
    _add_missed(table, scene, answer)
    return table


def _text(hit: RecallHit, star: bool) -> Text:
    """The memory asked for gets two lines, the others one."""
    if star:
        return Text(one_line(hit.memory.content, STAR_CHARACTERS), style="bold")
    return Text(one_line(hit.memory.content), no_wrap=True, overflow="ellipsis")


def _add_missed(table: Table, scene: Scene, answer: Recall) -> None:
    """Where the memory asked for is not among the first, say what became of it."""
    if any(hit.id == scene.wanted for hit in answer.hits[: scene.shown]):
        return
    gone = next((one for one in answer.dropped if one.id == scene.wanted), None)
    late = next((hit for hit in answer.hits if hit.id == scene.wanted), None)
    if late is not None:
        fate, why = f"the memory asked for is at rank {late.rank}", reason(late)
    elif gone is not None:
        scored = f"{gone.score:.4f} is " if gone.stage == "floor" else ""
        fate, why = f"the memory asked for was dropped: {scored}{gone.reason}", ""
    else:
        return
    table.add_row(Text("★", style="red"), Text(fate, style="red"), "", Text(why, style="dim"))


def _reason(hit: RecallHit, answer: Recall) -> str:
    words = reason(hit)
    tried = answer.trace.attempts
    if len(tried) > 1 and any(one.list == "lexical" for one in hit.contributions):
        words += f" (by {tried[-1].rung.replace('_', ' ')})"
    return words


def _why_empty(answer: Recall) -> str:
    return " · ".join(f"{one.rung}: {one.hits} hits" for one in answer.trace.attempts) or "no list had a hit"


def _block(played: Played) -> Iterator[RenderableType]:
    answer = played.answers[0][1]
    yield Padding(Text("The block that goes into a prompt:", style="bold magenta"), (1, 0, 0, INDENT))
    yield Padding(Text(answer.render(), style="cyan"), (0, 0, 0, INDENT))
    texts = {change.memory.id: change.memory.content for change in changes() if isinstance(change, Put)}
    for one in answer.dropped:
        if one.stage == "budget":
            line = f"left out ({one.reason}): {one_line(texts[one.id], 50)}"
            yield Padding(Text(line, style="yellow"), (0, 0, 0, INDENT))


def closing(seconds: float, kept: Path | None) -> Iterator[RenderableType]:
    """The next three things to try."""
    yield Text()
    yield Rule(style="cyan")
    yield Text.assemble(("Next", "bold"), (f"   (the demo took {seconds:.1f} s)", "dim"))
    first = to_do_first(own_command()[0])
    steps = [(first, "first, so that your shell knows `recollect`"), *NEXT] if first else NEXT
    width = max(len(command) for command, _ in NEXT)
    for command, about in steps:
        yield Text.assemble("  ", (f"{command:<{width}}", "bold cyan"), ("  " + about, "dim"))
    if kept is not None:
        yield Text(f"The demo's store is kept: recollect --store {kept} recall 'error codes' --explain", style="dim")


def to_do_first(own: str) -> str:
    """What lets a shell of this folder find the command by its name; nothing where it does."""
    place = Path(own)
    if which("recollect") == own or not place.is_file():
        return ""
    activate = place.with_name("activate")
    if not activate.is_file():
        return f"alias recollect={quote(own)}"
    here = Path.cwd()
    return f". {quote(str(activate.relative_to(here) if activate.is_relative_to(here) else activate))}"
