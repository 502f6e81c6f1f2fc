"""What care has done, in sentences: the report of upkeep, reindex or consolidate as people read it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from recollect.doors.cli.session import Session, one_line

TEXT_LENGTH = 80


def tell_upkeep(run: Session, report: Mapping[str, Any]) -> None:
    """One line for each thing that was done or is left to do; the figures of the store's tidying are in the JSON."""
    for line in _upkeep_lines(report):
        run.say(line)


def tell_consolidation(run: Session, report: Mapping[str, Any], texts: Mapping[str, str], limit: int) -> None:
    """What was (or would be) merged into what and why, and how many that is."""
    merges, examined = report["merges"], report["examined"]
    if run.quiet:
        return
    if merges:
        columns = ("merged", "into", "why", "content")
        rows = [
            (one["merged"], one["kept"], one["reason"], one_line(texts.get(one["merged"], ""), TEXT_LENGTH))
            for one in merges
        ]
        run.table(columns, rows, flexible="content")
        done = "would be" if report["dry_run"] else "were"
        run.note(f"{len(merges)} of {_memories(examined)} {done} merged into another that says the same")
    else:
        run.say(f"{_memories(examined)} looked at: none says the same as another")
    if report["cursor"] is not None:
        onward = "a higher --limit looks at more" if report["dry_run"] else "the next run goes on behind them"
        run.note(f"only {limit} were looked at: {onward}")
    if report["lost_races"]:
        run.note("some were changed by others meanwhile and left alone: run it again")


def _upkeep_lines(report: Mapping[str, Any]) -> Iterator[str]:
    if "findings" in report:
        for one in report["findings"]:
            yield f"{'mended' if one['repaired'] else one['severity']}: {one['kind']}: {one['detail']}"
        if not report["findings"]:
            yield "nothing to mend: full text and counters are as they should be"
    if "dropped" in report:
        yield f"dropped {report['dropped']} links that a language model had made"
    yield from _embedding_lines(report["embedded"], report["embedding"])
    if "extracted" in report:
        yield from _reading_lines(report["extracted"], report.get("concepts", {}).get("pending", 0))
    if report["tidied"]:
        yield "tidied the store"


def _reading_lines(read: Mapping[str, Any], waiting: int) -> Iterator[str]:
    from recollect.upkeep.concepts import UNAVAILABLE  # loaded by now; at the start it would cost every command

    is_down = read["stopped"] == UNAVAILABLE
    if read["extracted"] or not is_down:
        yield f"a language model read {_memories(read['extracted'])} and linked {read['linked']}"
    if read["failed"]:
        yield f"{_memories(read['failed'])} gave the language model trouble: see docs/concepts.md"
    if is_down:
        wait = "waits" if waiting == 1 else "wait"
        yield (
            f"the language model does not answer: {_memories(waiting)} {wait} for it; start it, or see `recollect"
            " settings get language_model`, then `recollect upkeep` goes on"
        )
    elif waiting:
        yield f"still waiting for the language model: {_memories(waiting)}; `recollect upkeep` goes on"


def _embedding_lines(done: Mapping[str, Any], state: Mapping[str, Any]) -> Iterator[str]:
    model = state["model"]
    if model is None:
        yield "nothing embedded: there is no model, recall works by words alone (`recollect models fetch` adds meaning)"
        return
    if done["embedded"]:
        yield f"embedded {_memories(done['embedded'])} with {model}"
    elif not done["remaining"]:
        which = "the one memory is" if state["done"] == 1 else f"all {_memories(state['done'])} are"
        yield f"{which} embedded with {model}"
    for one in done["merged"]:
        yield f"{one['merged']} is now behind {one['kept']}, which says the same ({one['reason']})"
    if done["failed"]:
        yield f"{_memories(done['failed'])} could not be embedded and will be tried again"
    if done["remaining"]:
        why = f" ({done['stopped']})" if done["stopped"] else ""
        yield f"still waiting{why}: {_memories(done['remaining'])}; `recollect upkeep` goes on"


def _memories(number: int) -> str:
    return f"{number} memory" if number == 1 else f"{number} memories"
