"""remember: one text, or standard input."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recollect.domain.errors import InvalidInput
from recollect.doors.cli import options
from recollect.doors.cli.session import Session, current, one_line
from recollect.doors.wire import plain, receipt_to_dict

if TYPE_CHECKING:
    from recollect.domain.memory import Receipt
    from recollect.engine import Engine

OF_MARKERS = ("type", "confidence")
"""What a marker says itself."""
MAX_INPUT_BYTES = 64 * 1024 * 1024

ABOUT_ACTIONS = {
    "added": "remembered",
    "merged": "known already, confidence raised",
    "skipped": "left out",
    "redacted": "remembered without its secrets",
}


def register(app: typer.Typer) -> None:
    app.command(
        "remember",
        rich_help_panel="Write",
        epilog="Examples: recollect remember We use PostgreSQL 16 --type decision --tag db · "
        "git log --format=%s -20 | recollect remember -",
    )(remember)


def remember(
    ctx: typer.Context,
    text: Annotated[list[str], typer.Argument(metavar="TEXT…", help="What to remember; - reads standard input.")],
    type: options.Type = "fact",
    tag: options.Tags = None,
    confidence: Annotated[float, typer.Option(min=0, max=1, help="How sure it is, 0 to 1.")] = 0.8,
    importance: Annotated[str, typer.Option(help="How much it matters: 0 to 1, or low, medium, high.")] = "0.5",
    project: options.Project = None,
    session: options.SessionName = None,
    namespace: options.Namespace = options.NAMESPACE,
    created_at: Annotated[str | None, typer.Option(metavar="TIME", help="When it was so (ISO 8601).")] = None,
    pin: Annotated[bool, typer.Option("--pin", help="Never decays, never merged away.")] = False,
    sensitive: Annotated[bool, typer.Option("--sensitive", help="Never embedded, never sent to a model.")] = False,
    key: Annotated[str | None, typer.Option(help="Writing the same key again changes nothing.")] = None,
    source: Annotated[str, typer.Option(help="Where it comes from.")] = "cli",
    meta: Annotated[
        list[str] | None, typer.Option("--meta", metavar="NAME=VALUE", help="Metadata; repeatable.")
    ] = None,
    no_dedupe: Annotated[bool, typer.Option("--no-dedupe", help="Keep it even if something like it is known.")] = False,
    no_wait: options.NoWait = False,
) -> None:
    """Store a memory. It is safe on disk when this returns, and found by words at once.

    With `-`, standard input is read: where it holds [MEMORY] markers (an agent's output) only what is marked is
    remembered, with the type and the confidence of each marker; otherwise every line is one memory.
    """
    run = current(ctx)
    shared: dict[str, Any] = {
        "type": type,
        "tags": tuple(tag or ()),
        "confidence": confidence,
        "importance": options.value_of(importance),
        "scope": options.scope_of(namespace, project, session),
        "source": source,
        "created_at": created_at,
        "pinned": pin,
        "sensitive": sensitive,
        "metadata": {name: options.value_of(value) for name, value in options.pairs(meta, "--meta")},
    }
    if list(text) == ["-"]:
        if key is not None:
            raise typer.BadParameter("a key names one memory, standard input may hold many", param_hint="--key")
        given = _standard_input()
        with run.engine() as engine:
            _many(run, engine, given, shared, not no_dedupe, not no_wait)
        return
    with run.engine() as engine:
        receipt = engine.remember(options.words_of(text), key=key, dedupe=not no_dedupe, **shared)
        if run.json:
            run.emit(receipt_to_dict(receipt))
        else:
            run.say(_line(receipt))
        run.drain(engine, wait=not no_wait)


def _many(run: Session, engine: Engine, text: str, shared: dict[str, Any], dedupe: bool, wait: bool) -> None:
    """Lines or markers; one receipt each."""
    from recollect.stages.markers import is_marked
    from recollect.writing import Draft, as_moment, to_memory

    if is_marked(text):
        besides = {name: value for name, value in shared.items() if name not in OF_MARKERS}
        receipts: Sequence[Receipt] = engine.capture(text, dedupe=dedupe, **besides)
    else:
        created_at = None if shared["created_at"] is None else as_moment(shared["created_at"])
        fixed: dict[str, Any] = {**shared, "created_at": created_at}
        lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), start=1) if line.strip()]
        drafts = [Draft(content=line, **fixed) for _, line in lines]
        # All are looked at before the first is written: whoever mends the input can send all of it again.
        for (number, _), draft in zip(lines, drafts):
            try:
                to_memory(draft, id="checked", now=datetime.now(UTC), policy=engine.policy)
            except InvalidInput as error:
                raise InvalidInput(f"line {number}: {error.message}", error.hint, error.field) from error
        receipts = engine.remember_many(drafts, dedupe=dedupe)
    counts = Counter(one.action for one in receipts)
    if run.json:
        run.emit(
            {"receipts": [receipt_to_dict(one) for one in receipts], "counts": plain(dict(sorted(counts.items())))}
        )
    else:
        for one in receipts:
            run.say(_line(one))
        run.note(", ".join(f"{count} {action}" for action, count in sorted(counts.items())) or "nothing to remember")
    run.drain(engine, wait)


def _standard_input() -> str:
    """All of it, or InvalidInput: what is cut off or no text would be lost without a word."""
    given = sys.stdin.buffer.read(MAX_INPUT_BYTES + 1)
    if len(given) > MAX_INPUT_BYTES:
        raise InvalidInput(
            f"more than {MAX_INPUT_BYTES:,} bytes", "write them to a file: `recollect import FILE`", "TEXT"
        )
    try:
        return given.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = given.count(b"\n", 0, error.start) + 1
        raise InvalidInput(f"line {line}: not UTF-8", "convert it first, as with iconv", "TEXT") from error


def _line(receipt: Receipt) -> str:
    about = ABOUT_ACTIONS.get(receipt.action, receipt.action)
    detail = f" ({one_line(receipt.reason, 120)})" if receipt.reason and receipt.action != "added" else ""
    return f"{receipt.id}  {about}{detail}"
