"""consolidate, upkeep, doctor, reindex and stats: keeping a store in good health."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from recollect.doors.cli import daemons, options
from recollect.doors.cli.reporting import tell_consolidation, tell_upkeep
from recollect.doors.cli.session import Session, current, printable
from recollect.doors.wire import embedding_to_dict, plain

if TYPE_CHECKING:
    from recollect.engine import Engine
    from recollect.ports import Finding


# Longer lists are in the JSON.
MOST_LINES = 20


def register(app: typer.Typer) -> None:
    app.command("consolidate", rich_help_panel="Care", epilog="Example: recollect consolidate --dry-run")(consolidate)
    app.command("upkeep", rich_help_panel="Care", epilog="Example: recollect upkeep --seconds 60")(upkeep)
    app.command("doctor", rich_help_panel="Care", epilog="Examples: recollect doctor · recollect doctor --repair")(
        doctor
    )
    app.command(
        "reindex", rich_help_panel="Care", epilog="Example: recollect models use minilm-l6 && recollect reindex"
    )(reindex)
    app.command("stats", rich_help_panel="Care", epilog="Example: recollect stats --json")(stats)


def consolidate(
    ctx: typer.Context,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell what would be merged.")] = False,
    limit: Annotated[int, typer.Option(min=1, help="How many memories to look at, at most.")] = 10_000,
    namespace: options.Namespace = options.NAMESPACE,
    now: options.Now = None,
) -> None:
    """Merge memories that say the same. Nothing is lost: what is kept supersedes the others."""
    run = current(ctx)
    with run.engine() as engine:
        with run.progress("comparing") as advance:
            asked: dict[str, Any] = {"dry_run": dry_run, "now": now, "limit": limit, "namespace": namespace}
            report = plain(engine.consolidate(**asked, progress=advance))
        if run.json:
            run.emit(report)
            return
        merged = engine.store.records.fetch([one["merged"] for one in report["merges"]])
    tell_consolidation(run, report, {one.id: one.content for one in merged}, limit)


def upkeep(
    ctx: typer.Context,
    seconds: Annotated[float | None, typer.Option(min=0, help="Stop embedding after so long; the rest waits.")] = None,
) -> None:
    """Do now what usually happens in the background: embed what waits, look for concepts, tidy the store."""
    run = current(ctx)
    with run.engine() as engine:
        _report(run, {**_upkeep(run, engine, seconds), **_models(engine)})


def reindex(
    ctx: typer.Context,
    seconds: Annotated[float | None, typer.Option(min=0, help="Stop embedding after so long; the rest waits.")] = None,
    concepts: Annotated[
        bool, typer.Option("--concepts", help="Drop what language models marked and linked; if one is on, start anew.")
    ] = False,
    vectors: Annotated[bool, typer.Option("--vectors", help="Drop the model's vectors first: embed all anew.")] = False,
) -> None:
    """Rebuild what is derived (full text, counters) and embed all that has no vector of the current model."""
    run = current(ctx)
    with run.engine() as engine:
        if vectors:
            engine.drop_vectors()
        dropped = {"dropped": engine.drop_concepts()} if concepts else {}
        findings = engine.check(repair=True)
        document = {"findings": plain(findings), **dropped, **_upkeep(run, engine, seconds), **_models(engine)}
        _report(run, document)


def _upkeep(run: Session, engine: Engine, seconds: float | None) -> dict[str, Any]:
    with run.progress("embedding") as advance:
        report = plain(engine.upkeep(budget_seconds=seconds, progress=advance))
    if engine.extractor is None:
        return report
    return {**report, "extracted": plain(engine.extract_concepts(budget_seconds=seconds))}


def doctor(
    ctx: typer.Context,
    repair: Annotated[bool, typer.Option("--repair", help="Rebuild what is derived and damaged.")] = False,
) -> None:
    """Check the store and the models, say what is wrong and what to do. Exits 1 while something is broken."""
    run = current(ctx)
    with run.engine() as engine:
        findings = engine.check(repair=repair)
        facts = _facts(run, engine)
    broken = any(one.severity == "error" and not one.repaired for one in findings)
    if run.json:
        run.emit({"healthy": not broken, "findings": plain(findings), **facts})
    else:
        _diagnosis(run, findings, facts, broken)
    if broken:
        raise typer.Exit(1)


def _facts(run: Session, engine: Engine) -> dict[str, Any]:
    import recollect

    found = engine.stats()
    return {
        "version": recollect.__version__,
        "python": platform.python_version(),
        "store": found.location,
        "engine": f"{found.kind} {found.engine_version}, schema {found.schema_version}",
        "memories": found.memories,
        "home": str(run.settings.home),
        "profile": run.settings.profile,
        "daemon": daemons.found(run),
        **_models(engine),
    }


def _diagnosis(run: Session, findings: Sequence[Finding], facts: dict[str, Any], broken: bool) -> None:
    daemon = facts["daemon"]
    _lines(run, {**facts, "daemon": daemons.told(daemon) if daemon else "not running"})
    run.show("")
    for one in findings:
        mark = "mended" if one.repaired else one.severity
        run.show(printable(f"{mark:<8} {one.kind}: {one.detail}"))
    if not findings:
        run.show("nothing wrong with the store")
    if facts["embedding"]["model"] is None:
        step = "use default" if run.settings.embedder == "none" else "fetch"
        run.show(f"no model: recall works by words alone; `recollect models {step}` adds meaning")
    elif facts["embedding"]["pending"]:
        count = facts["embedding"]["pending"]
        waiting = "1 memory waits for its embedding" if count == 1 else f"{count} memories wait for their embedding"
        run.show(f"{waiting}: run `recollect upkeep`")
    if facts.get("concepts", {}).get("pending"):
        run.show(f"{facts['concepts']['pending']} memories wait for the language model: run `recollect upkeep`")
    if facts.get("concepts", {}).get("failed"):
        run.show(f"{facts['concepts']['failed']} memories gave the language model trouble: see docs/concepts.md")
    if daemon and daemon["same_store"] and not daemon["current"]:
        run.show(daemons.outdated(daemon))
    if broken:
        run.note("run `recollect doctor --repair`; what it cannot mend comes back from a backup: `recollect restore`")


def stats(ctx: typer.Context) -> None:
    """What is in the store: counts, types, projects, size, how much of it is embedded."""
    run = current(ctx)
    with run.engine() as engine:
        document = {**plain(engine.stats()), **_models(engine)}
    if run.json:
        run.emit(document)
    else:
        _lines(run, document)


def _models(engine: Engine) -> dict[str, Any]:
    """How far the current models are with this store: the embedder, and the extractor where there is one."""
    found: dict[str, Any] = {"embedding": embedding_to_dict(engine)}
    read = engine.concept_progress()
    if read is not None and engine.extractor is not None:
        found["concepts"] = {"model": engine.extractor.id, **plain(read)}
    return found


def _report(run: Session, report: dict[str, Any]) -> None:
    if run.json:
        run.emit(report)
    else:
        tell_upkeep(run, report)


def _lines(run: Session, document: dict[str, Any]) -> None:
    """name  value, one per line; nested values on their own lines, indented."""
    width = max((len(name) for name in document), default=0)
    for name, value in document.items():
        if isinstance(value, list):
            several = cast(list[Any], value)
            run.show(f"{name.replace('_', ' '):<{width}}  {len(several)}")
            for one in several[:MOST_LINES]:
                run.show(f"{'':<{width}}  {_flat(one)}")
        else:
            run.show(f"{name.replace('_', ' '):<{width}}  {_flat(value)}")


def _flat(value: Any) -> str:
    if isinstance(value, dict):
        table = cast(dict[str, Any], value)
        return printable(" · ".join(f"{name} {_flat(one)}" for name, one in table.items()) or "–")
    if isinstance(value, list):
        several = cast(list[Any], value)
        return printable(", ".join(str(one) for one in several) or "–")
    return printable("–" if value is None or value == "" else str(value))
