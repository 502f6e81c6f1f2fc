"""An answer on its way to the reader, wherever it was found: a document, a block for a prompt, or lines for people."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from recollect.doors.cli.listing import plain_lines
from recollect.doors.cli.session import Session, printable

if TYPE_CHECKING:
    from recollect.domain.recall import Recall


def show(
    run: Session,
    answer: Recall,
    document: dict[str, Any],
    texts: Callable[[Sequence[str]], Mapping[str, str]],
    *,
    explain: bool,
    render: bool,
    now: str | None,
) -> None:
    """The answer as it was asked for; `texts` gives those of memories that were not kept."""
    if run.json:
        run.emit(document)
        return
    if render:
        run.show(printable(answer.render()))
        hidden = sum(hit.memory.sensitive for hit in answer)
        if hidden:
            run.note(f"not in the block: {hidden} sensitive {'memory' if hidden == 1 else 'memories'}")
        return
    moment = None if now is None else _moment(now)
    if explain:
        from recollect.doors.cli import explaining

        gone = [one.id for one in explaining.nearest(answer.dropped)]
        run.show(*explaining.explained(answer, texts(gone), run.out, moment))
    else:
        _list(run, answer, moment)
    if not answer.hits:
        run.note("nothing found" if not answer.abstained else "nothing relevant enough")
        run.note_missing_model()


def _list(run: Session, answer: Recall, now: datetime | None) -> None:
    if run.is_piped:
        run.write(plain_lines(answer, now))
    else:
        from recollect.doors.cli import explaining

        run.show(*explaining.listed(answer, run.out, now))
    for note in answer.trace.notes:
        run.note(note)


def _moment(text: str) -> datetime:
    from recollect.writing import as_moment

    return as_moment(text)
