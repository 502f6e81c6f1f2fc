"""An answer drawn for people: the hits in a few lines, or every contribution as a bar and every prior as a step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from rich.text import Text

from recollect.domain.confidence import Confidence
from recollect.domain.ranking import Contribution
from recollect.domain.recall import Adjustment, Dropped, LegStep, Recall, RecallHit, Trace
from recollect.doors.cli.listing import INDENT, described, plain_head, text_of
from recollect.doors.cli.session import one_line, printable

if TYPE_CHECKING:
    from rich.console import Console

BAR_COLUMNS = 24
NEAR_MISSES = 8
COLOURS = ("cyan", "magenta", "green", "yellow", "blue", "red")
EIGHTHS = "▏▎▍▌▋▊▉█"
PLAIN_WIDTH = 100
CONTENT_LINES = 4


def listed(answer: Recall, console: Console, now: datetime | None = None) -> Iterator[Text]:
    """Each hit with its text, and below it what it is."""
    for hit in answer.hits:
        yield from _head(hit, console, now)


def explained(
    answer: Recall, texts: Mapping[str, str], console: Console, now: datetime | None = None
) -> Iterator[Text]:
    """Each hit with what every list gave it and every prior did; then near misses, legs and decisions."""
    yield Text.assemble(
        (one_line(answer.query, 200), "bold"),
        (f"   {answer.profile} · {answer.mode} · {answer.trace.pool} candidates · {answer.trace.ms:.1f} ms", "dim"),
    )
    colours = _colours(answer)
    named = [len(name) for name in colours]
    width = max([*named, len("priors")])
    given = [one for hit in answer.hits for one in hit.contributions]
    most = max((one.value for one in given), default=0.0)
    beside = INDENT + width + 1 + max((len(_gave(one)) for one in given), default=0)
    columns = min(BAR_COLUMNS, max(1, console.width - beside)) if console.is_terminal else BAR_COLUMNS
    for hit in answer.hits:
        yield Text()
        yield from _head(hit, console, now)
        for one in hit.contributions:
            value, *how = _gave(one).partition("  ")
            yield Text.assemble(
                " " * INDENT,
                (f"{one.list:<{width}} ", colours.get(one.list, "")),
                (bar(one.value / most if most else 0.0, console, columns), colours.get(one.list, "")),
                value,
                ("".join(how), "dim"),
            )
        if hit.adjustments:
            yield Text.assemble(" " * INDENT, f"{'priors':<{width}} ", *_steps(hit.adjustments))
        yield from _remarks(hit, width)
    yield from _near_misses(answer.dropped, texts, console)
    yield from _how(answer.trace, console)


def nearest(dropped: tuple[Dropped, ...]) -> list[Dropped]:
    """The near misses worth showing: those with the highest scores."""
    return sorted(dropped, key=lambda one: -one.score)[:NEAR_MISSES]


def _gave(one: Contribution) -> str:
    return f" {one.value:.5f}  rank {one.rank} · raw {one.raw:.4g} · weight {one.weight:g}"


def bar(share: float, console: Console, columns: int = BAR_COLUMNS) -> str:
    """A bar in a field of so many columns; eighths of a column where the terminal can draw them."""
    share = min(1.0, max(0.0, share))
    if "utf" not in (console.encoding or "").lower():
        return ("#" * max(1, round(share * columns))).ljust(columns)
    eighths = max(1, round(share * columns * 8))
    full, rest = divmod(eighths, 8)
    return ("█" * full + (EIGHTHS[rest - 1] if rest else "")).ljust(columns)


def reason(hit: RecallHit) -> str:
    """The reason for a rank in few words: places in the lists; below them what priors, links and budget did."""
    lists = [f"{one.list} #{one.rank}" for one in hit.contributions]
    after = [f"{one.prior} {_factor(one)}" for one in hit.adjustments]
    if hit.redirected_from:
        after.append("for a superseded one")
    if hit.excerpt is not None:
        after.append("cut to a passage")
    return "\n".join(" · ".join(parts) for parts in (lists, after) if parts)


def _head(hit: RecallHit, console: Console, now: datetime | None) -> Iterator[Text]:
    if not console.is_terminal:
        yield from (Text(line) for line in plain_head(hit, now))
        return
    room = max(20, console.width - INDENT)
    for place, line in enumerate(Text(one_line(text_of(hit), CONTENT_LINES * (room - 10))).wrap(console, room)):
        yield Text.assemble((f"{hit.rank:>2}  " if place == 0 else " " * INDENT, "bold cyan"), line)
    for line in Text(described(hit, now), style="dim").wrap(console, room):
        yield Text.assemble(" " * INDENT, line)


def _steps(adjustments: Iterable[Adjustment]) -> Iterator[str | tuple[str, str]]:
    """before → after (prior ×factor) → …"""
    first = True
    for one in adjustments:
        if first:
            yield f"{one.before:.5f}"
        first = False
        yield (f" → {one.after:.5f} ", "green" if one.after > one.before else "red")
        yield (f"{one.prior} {_factor(one)}", "dim")


def _factor(one: Adjustment) -> str:
    return f"×{one.after / one.before:.2f}" if one.before else f"+{one.after:.4f}"


def _remarks(hit: RecallHit, width: int) -> Iterator[Text]:
    label = " " * INDENT + " " * (width + 1)
    if hit.rerank_score is not None:
        yield Text(f"{label}judged {hit.rerank_score:.4f} by the reranker", style="dim")
    if hit.redirected_from:
        yield Text(f"{label}takes the place of {hit.redirected_from}, which it supersedes", style="dim")
    if hit.resolved_by:
        yield Text(f"{label}resolved by {', '.join(hit.resolved_by)}", style="dim")
    if hit.passage is not None:
        yield Text(f"{label}best passage: characters {hit.passage.start} to {hit.passage.end}", style="dim")


def _evidence(found: Confidence) -> Iterator[str | tuple[str, str]]:
    """The chance that something relevant is here, the floor, and what spoke for and against it, most telling first."""
    yield "unknown: a handful to choose from" if found.is_handful else f"{found.chance:.1%}"
    if found.floor is not None:
        yield (f" (floor {found.floor:.1%}, keeps {found.keep * 100:g} %)", "dim")
    for one in sorted(found.signs, key=lambda one: (-abs(one.adds), one.name)):
        yield " · "
        yield (f"{one.name} {one.adds:+.1f}", "green" if one.adds > 0 else "red")


def _near_misses(dropped: tuple[Dropped, ...], texts: Mapping[str, str], console: Console) -> Iterator[Text]:
    if not dropped:
        return
    room = (console.width if console.is_terminal else PLAIN_WIDTH) - 2
    yield Text()
    yield Text(f"near misses ({len(dropped)})", style="bold")
    for one in nearest(dropped):
        left = f"{one.score:>9.5f}  {one.stage:<8} {printable(one.reason)}"
        text = one_line(texts.get(one.id, one.id), max(24, room - len(left) - INDENT - 2))
        yield Text.assemble(" " * INDENT, (f"{one.score:>9.5f}", "dim"), f"  {text}", ("  " + left[11:], "yellow"))
    if len(dropped) > NEAR_MISSES:
        yield Text(f"{' ' * INDENT}… and {len(dropped) - NEAR_MISSES} more (--json lists all)", style="dim")


def _how(trace: Trace, console: Console) -> Iterator[Text]:
    """Legs with their time, the ladder, the reranker, and everything that did not go as asked."""
    yield Text()
    yield Text.assemble(("legs    ", "bold"), " · ".join(_leg(name, step) for name, step in trace.legs.items()))
    if trace.evidence is not None:
        yield Text.assemble(("sure    ", "bold"), *_evidence(trace.evidence))
    stages = " · ".join(f"{name} {ms:.1f}" for name, ms in trace.stages.items())
    if stages:
        yield Text.assemble(("ms      ", "bold"), stages)
    if trace.query:
        room = (console.width if console.is_terminal else PLAIN_WIDTH) - 8
        yield Text.assemble(("words   ", "bold"), one_line(trace.query, room))
    if len(trace.attempts) > 1:
        steps = " → ".join(f"{one.rung} {one.hits}" for one in trace.attempts)
        yield Text.assemble(("ladder  ", "bold"), steps)
    used = f"used on {trace.rerank.considered} in {trace.rerank.ms:.1f} ms"
    yield Text.assemble(
        ("rerank  ", "bold"), used if trace.rerank.used else f"not used: {trace.rerank.skipped or 'off'}"
    )
    for note in trace.notes:
        yield Text.assemble(("note    ", "bold"), (printable(note), "yellow"))


def _leg(name: str, step: LegStep) -> str:
    if step.error is not None:
        return f"{name} failed: {one_line(step.error, 80)}"
    if step.skipped is not None:
        return f"{name} skipped: {step.skipped}"
    return f"{name} {step.hits} in {step.ms:.1f} ms"


def _colours(answer: Recall) -> dict[str, str]:
    """The same list has the same colour in every hit."""
    names = dict.fromkeys([*answer.trace.lists, *(one.list for hit in answer.hits for one in hit.contributions)])
    return {name: COLOURS[place % len(COLOURS)] for place, name in enumerate(names)}
