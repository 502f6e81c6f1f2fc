"""eval run, sweep, compare, report and strata: measure retrieval on public data sets or on one's own store."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recollect.domain.errors import InvalidInput
from recollect.doors.cli import options
from recollect.doors.cli.session import Session, current, one_line
from recollect.doors.cli.targets import free_target

if TYPE_CHECKING:
    from recollect.evals.bench import Bench
    from recollect.evals.calibrating import Sample
    from recollect.evals.judging import Plan
    from recollect.evals.running import Result
    from recollect.evals.sources import Source
    from recollect.evals.systems import System

Data = Annotated[
    list[str] | None,
    typer.Option("--data", metavar="DIR", help="A data set in BEIR layout, or a folder of such; repeatable."),
]
MoreData = Annotated[list[str] | None, typer.Argument(metavar="[DIR]…", help="Further data sets.")]
Systems = Annotated[
    list[str] | None,
    typer.Option(
        "--profile",
        "-P",
        metavar="NAME",
        help="A profile, its options behind @ (two-stage@fusion.k=9), or a baseline: bm25, dense, lexical. Repeatable.",
        autocompletion=options.complete_profiles,
    ),
]
Questions = Annotated[
    str | None,
    typer.Option(
        "--questions",
        metavar="FILE",
        help='Instead of --data: JSON lines with "query" and "relevant" (ids), for the own store.',
    ),
]
Ks = Annotated[str, typer.Option("--k", help="Cut-offs of recall, any and all.")]
LimitQueries = Annotated[
    int | None, typer.Option("--limit-queries", min=1, help="At most so many questions of each set, evenly spread.")
]
Out = Annotated[str | None, typer.Option("--out", metavar="DIR", help="Write the results there as JSON.")]
Embedder = Annotated[str | None, typer.Option("--embedder", help="Another embedder than the settings name.")]
Seed = Annotated[int | None, typer.Option("--seed", help="Of the bootstrap and of typos. Default: always the same.")]
Cache = Annotated[str | None, typer.Option("--cache", metavar="DIR", help="Where the stores of data sets are kept.")]
By = Annotated[str, typer.Option("--by", metavar="MEASURE", help="The measure that sorts the table.")]
Swapped = Annotated[
    bool,
    typer.Option(
        "--swapped", help="Also ask each conversation's questions of the next one, names exchanged: no answer."
    ),
]
KS = "1,3,5,10,20"
MAX_K = 200


def register(app: typer.Typer) -> None:
    group = typer.Typer(help="Measure retrieval: data sets in BEIR layout, or your own store.", no_args_is_help=True)
    group.command(
        "run",
        epilog="Examples: recollect eval run --data sets/scifact --profile balanced --profile bm25 --out results · "
        "recollect eval run --questions questions.jsonl",
    )(run_eval)
    group.command(
        "sweep",
        epilog="Example: recollect eval sweep --data sets --profile two-stage --set fusion.k=1,10,60 "
        "--set legs.lexical.weight=0.5,1,2",
    )(sweep)
    group.command("compare", epilog="Example: recollect eval compare bm25 balanced --data sets/scifact")(compare)
    group.command("abstain", epilog="Example: recollect eval abstain --data sets/locomo --test sets/hotpotqa")(abstain)
    group.command("report", epilog="Example: recollect eval report results --html report.html")(report)
    group.command("strata", epilog="Example: recollect eval strata --out questions.jsonl")(strata)
    app.add_typer(
        group,
        name="eval",
        rich_help_panel="How it ranks, and with what",
        epilog="Example: recollect eval run --data sets",
    )


def run_eval(
    ctx: typer.Context,
    more: MoreData = None,
    data: Data = None,
    profile: Systems = None,
    questions: Questions = None,
    k: Ks = KS,
    limit_queries: LimitQueries = None,
    ablate: Annotated[bool, typer.Option("--ablate", help="Also leave out each list in turn.")] = False,
    typos: Annotated[int, typer.Option("--typos", min=0, max=5, help="Also ask with so many typing errors.")] = 0,
    swapped: Swapped = False,
    out: Out = None,
    embedder: Embedder = None,
    seed: Seed = None,
    cache: Cache = None,
    rebuild: Annotated[bool, typer.Option("--rebuild", help="Build the stores anew.")] = False,
) -> None:
    """Profiles on data sets: recall, any, all, nDCG, MRR with intervals, milliseconds, tokens, bytes, strata.

    With --questions the user's own store is asked instead. Nothing leaves the machine, and only totals are written.
    """
    from recollect.evals import results

    run = _started(ctx, out)
    plan, source = _plan(k, seed), _source(run, cache, embedder, limit_queries)
    source = replace(source, swapped=swapped, rebuild=rebuild)
    systems = _systems(run, list(dict.fromkeys(profile or [run.settings.profile])))
    with ExitStack() as stack:
        found = [
            _measured(run, bench, system, plan, ablate=ablate, typos=typos)
            for bench in _benches(run, stack, [*(data or []), *(more or [])], questions, source)
            for system in systems
        ]
    asked = {**_asked(plan, limit_queries, embedder), "ablate": ablate, "typos": typos, "swapped": swapped}
    _give(run, results.run_document(found, asked), out)


def sweep(
    ctx: typer.Context,
    more: MoreData = None,
    data: Data = None,
    profile: options.Profile = None,
    sets: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="OPTION=VALUES", help="Values behind commas; repeatable: a grid."),
    ] = None,
    by: By = "ndcg@10",
    questions: Questions = None,
    k: Ks = KS,
    limit_queries: LimitQueries = None,
    out: Out = None,
    embedder: Embedder = None,
    seed: Seed = None,
    cache: Cache = None,
) -> None:
    """Every combination of options, sorted by the average over the sets, with what each changes and how surely."""
    from recollect.evals import results, variations

    run = _started(ctx, out)
    grid = _grid(sets)
    plan = replace(_plan(k, seed), as_shipped=False)
    _check_measure(by, plan)
    system = _system(run, profile or run.settings.profile)
    for point in variations.grid(grid):
        _check_options(run, system, point)
    source = _source(run, cache, embedder, limit_queries)
    with ExitStack() as stack:
        benches = list(_benches(run, stack, [*(data or []), *(more or [])], questions, source))
        with run.progress("sweep") as advance:
            plain, combinations = variations.sweep(benches, system, grid, plan, by, advance)
    asked = {**_asked(plan, limit_queries, embedder), "set": grid}
    _give(run, results.sweep_document(plain, combinations, by, asked), out)


def compare(
    ctx: typer.Context,
    first: Annotated[str, typer.Argument(metavar="A", help="A profile or baseline, options behind @.")],
    second: Annotated[str, typer.Argument(metavar="B", help="Another.")],
    more: MoreData = None,
    data: Data = None,
    questions: Questions = None,
    k: Ks = KS,
    limit_queries: LimitQueries = None,
    out: Out = None,
    embedder: Embedder = None,
    seed: Seed = None,
    cache: Cache = None,
) -> None:
    """B minus A on the same questions: paired bootstrap with 95 % intervals, wins, ties and losses."""
    from recollect.evals import results, variations

    run = _started(ctx, out)
    plan, source = _plan(k, seed), _source(run, cache, embedder, limit_queries)
    systems = _systems(run, (first, second))
    pairs: list[tuple[Result, Result, Mapping[str, Any]]] = []
    with ExitStack() as stack:
        for bench in _benches(run, stack, [*(data or []), *(more or [])], questions, source):
            one, other = (_measured(run, bench, system, plan) for system in systems)
            pairs.append((one, other, variations.compared(one.scores, other.scores, plan.seed)))
    _give(run, results.compare_document(pairs, _asked(plan, limit_queries, embedder)), out)


def abstain(
    ctx: typer.Context,
    more: MoreData = None,
    data: Data = None,
    test: Annotated[
        list[str] | None, typer.Option("--test", metavar="DIR", help="A set to try the fit on; repeatable.")
    ] = None,
    profile: options.Profile = None,
    limit_queries: LimitQueries = None,
    out: Out = None,
    embedder: Embedder = None,
    cross_lingual: Annotated[
        bool, typer.Option("--cross-lingual", help="The embedder finds from one language to another.")
    ] = False,
    seed: Seed = None,
    cache: Cache = None,
) -> None:
    """Fit how sure an answer is, and show its curve: questions asked where their answer is, and where it is not.

    Prints the calibrations as they stand in a profile under `confidence`: with the embedder, and by words alone.
    """
    from recollect.evals import calibrating, results, significance

    run = _started(ctx, out)
    system, sown = _system(run, profile or run.settings.profile), significance.SEED if seed is None else seed
    if system.profile is None:
        raise InvalidInput("the bm25 baseline has no confidence", "choose a profile", "--profile")
    fitted = _sets([*(data or []), *(more or [])])
    if not fitted:
        raise InvalidInput("--data is missing: a set to fit on", "recollect eval abstain --data sets/locomo", "--data")
    source = replace(_source(run, cache, embedder, limit_queries), contrasted=True)
    samples: list[Sample] = []
    with ExitStack() as stack:
        for bench in _benches(run, stack, [*(data or []), *(more or []), *(test or [])], None, source):
            with run.progress(one_line(f"{bench.name}: {system.name}", 50)) as advance:
                samples.append(calibrating.collect(bench, system, advance))
    fits = calibrating.fits(samples[: len(fitted)], samples[len(fitted) :], sown, cross_lingual=cross_lingual)
    asked = {"seed": sown, "limit_queries": limit_queries, "embedder": embedder, "cross_lingual": cross_lingual}
    document = results.abstain_document(fits, asked)
    _give(run, document, out)
    if not run.json:
        run.show(f"\n{document['toml']}")


def report(
    ctx: typer.Context,
    places: Annotated[list[str], typer.Argument(metavar="RUNDIR…", help="Folders or files that --out wrote.")],
    html: Annotated[
        str | None, typer.Option("--html", metavar="FILE", help="One page that needs nothing else.")
    ] = None,
    markdown: Annotated[str | None, typer.Option("--markdown", metavar="FILE", help="The tables alone.")] = None,
) -> None:
    """Tables and plots of what was measured. Without --html or --markdown the tables are printed as Markdown."""
    from recollect.evals import page, results, tables

    run = current(ctx)
    documents = [one for place in places for one in results.read(Path(place).expanduser())]
    texts = {html: page.html(documents) if html else "", markdown: tables.markdown(documents)}
    written = [str(path) for path in texts if path is not None]
    for path in written:
        results.put(Path(path).expanduser(), texts[path])
    if run.json:
        found = [{"title": one.title, "columns": one.columns, "rows": one.rows} for one in tables.tables(documents)]
        run.emit({"written": written, "tables": found})
    elif written:
        run.say("\n".join(written))
    else:
        run.show(tables.markdown(documents).rstrip("\n"))


def strata(
    ctx: typer.Context,
    out: Annotated[str, typer.Option("--out", metavar="FILE", help="Where the questions go, readable by you alone.")],
    count: Annotated[int, typer.Option("--count", min=1, max=10_000, help="Of each kind, at most.")] = 100,
    seed: Annotated[int, typer.Option("--seed", help="The same seed gives the same questions.")] = 1,
    namespace: options.Namespace = options.NAMESPACE,
    paraphrases: Annotated[
        str | None, typer.Option("--paraphrases", metavar="FILE", help='Your own: {"id", "query"} lines.')
    ] = None,
    with_model: Annotated[
        bool, typer.Option("--with-model", help="Let the configured language model read memories and paraphrase them.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it is there.")] = False,
) -> None:
    """Questions made from the store, for `eval run --questions`: exact, typo, multi-hop; paraphrases if provided."""
    from recollect.adapters import open_store
    from recollect.evals import paraphrasing, results
    from recollect.evals.strata import build

    run, given = current(ctx), _given(paraphrases)
    target = free_target(out, run.settings.store, force=force)
    ask = paraphrasing.configured(run.settings) if with_model else None
    if with_model and ask is None:
        raise InvalidInput("no language model is configured", "set language_model to its URL", "--with-model")
    store = open_store(run.settings.store, read_only=True)
    try:
        made = build(store, per_stratum=count, seed=seed, namespace=namespace, paraphrase=ask, paraphrases=given)
    finally:
        store.close()
    results.put(target, "".join(json.dumps(one.line(), ensure_ascii=False) + "\n" for one in made), mode=0o600)
    counts = {name: sum(one.stratum == name for one in made) for name in ("exact", "typo", "multi-hop", "paraphrase")}
    if run.json:
        run.emit({"path": str(target), "questions": len(made), "strata": counts})
        return
    run.say(f"{target}  " + ", ".join(f"{number} {name}" for name, number in counts.items()))
    left = len(given.keys() - {id for one in made if one.stratum == "paraphrase" for id in one.relevant})
    if left:
        run.note(f"{left} of your paraphrases were left out: of no memory that may be used here, or more than --count")
    elif not counts["paraphrase"]:
        run.note("no paraphrases: give your own with --paraphrases, or let a language model write them (--with-model)")


# --- shared ---------------------------------------------------------------------------------------------------------


def _started(ctx: typer.Context, out: str | None) -> Session:
    """The session of a command that works long: where its results go must be right before it begins."""
    from recollect.evals import results

    if out is not None:
        results.check_folder(Path(out).expanduser())
    return current(ctx)


def _benches(
    run: Session, stack: ExitStack, folders: Sequence[str], questions: str | None, source: Source
) -> Iterator[Bench]:
    """One bench after another, opened when it is its turn and open until the stack is closed."""
    from recollect.evals import building, datasets, sources

    if bool(folders) == bool(questions):
        raise typer.BadParameter("give either --data or --questions", param_hint="--data")
    places = [Path(questions).expanduser()] if questions else _sets(folders)
    if not questions:
        stack.enter_context(building.damage_told(source.cache))
    for place in places[1:]:
        # What is wrong with a later set would cost what the earlier ones took; the first is read at once anyway.
        datasets.load(place)
    for place, name in zip(places, sources.names(places), strict=True):
        with run.progress(one_line(name, 30)) as advance:
            opening = (
                sources.own(place, source, datetime.now(UTC).astimezone())
                if questions
                else sources.public(place, source, lambda _what, done, total, go=advance: go(done, total), name=name)
            )
            bench = stack.enter_context(opening)
        if bench.facts["note"]:
            run.note(f"{bench.name}: {bench.facts['note']}")
        yield bench


def _sets(folders: Sequence[str]) -> list[Path]:
    """Each folder, or the data sets in it; every set once."""
    found: list[Path] = []
    for name in folders:
        folder = Path(name).expanduser()
        inner = sorted(one.parent for one in folder.glob("*/corpus.jsonl"))
        found += inner if inner and not (folder / "corpus.jsonl").exists() else [folder]
    return list({one.resolve(): one for one in found}.values())


def _measured(
    run: Session, bench: Bench, system: System, plan: Plan, *, ablate: bool = False, typos: int = 0
) -> Result:
    from recollect.evals import lists, variations
    from recollect.evals.running import evaluate

    with run.progress(one_line(f"{bench.name}: {system.name}", 50)) as advance:
        result = evaluate(bench, system, plan, advance)
        if ablate and system.profile is not None:
            result.more["ablation"] = lists.ablation(bench, system, result.answers, result.scores, plan, advance)
        if typos:
            result.more["typos"] = variations.typos(bench, result, plan, typos, advance)
    if result.degraded:
        run.note(f"{bench.name}: {result.degraded} answers of {system.name} lacked a part (see the cost table)")
    return result


def _give(run: Session, document: dict[str, Any], out: str | None) -> None:
    from recollect.evals import results, tables

    written = None if out is None else results.write(Path(out).expanduser(), document)
    if run.json:
        run.emit(document)
        return
    for table in tables.tables([document]):
        run.show(f"\n{table.title}")
        run.table(table.columns, table.rows)
    if written is not None:
        run.say(f"\n{written}")


def _plan(ks: str, seed: int | None) -> Plan:
    from recollect.evals.judging import Plan

    try:
        wanted = tuple(sorted({int(one) for one in ks.split(",")}))
    except ValueError:
        raise typer.BadParameter(f"{ks!r} are no numbers: such as 1,5,10", param_hint="--k") from None
    if not all(1 <= one <= MAX_K for one in wanted):
        raise typer.BadParameter(f"cut-offs lie between 1 and {MAX_K}", param_hint="--k")
    return Plan(wanted) if seed is None else Plan(wanted, seed)


def _source(run: Session, cache: str | None, embedder: str | None, limit_queries: int | None) -> Source:
    from recollect.evals.building import cache_folder
    from recollect.evals.sources import Source

    folder = cache_folder(run.settings) if cache is None else Path(cache).expanduser()
    return Source(run.settings, folder, embedder, limit_queries)


def _system(run: Session, text: str) -> System:
    """two-stage@fusion.k=10@legs.lexical.weight=2: a name and options."""
    from recollect.evals.systems import system

    name, *given = text.split("@")
    chosen = {path: options.value_of(value) for path, value in options.pairs(given, "--profile")}
    return system(name, chosen, run.settings.profiles)


def _systems(run: Session, texts: Sequence[str]) -> list[System]:
    """Each under a name of its own: two files in different folders may share theirs."""
    found: list[System] = []
    for one in (_system(run, text) for text in texts):
        again = sum(other.name.startswith(f"{one.name} (") or other.name == one.name for other in found)
        found.append(replace(one, name=f"{one.name} ({again + 1})") if again else one)
    return found


def _grid(sets: Sequence[str] | None) -> dict[str, list[Any]]:
    grid: dict[str, list[Any]] = {}
    for path, text in options.pairs(sets, "--set"):
        if path in grid:
            raise typer.BadParameter(f"{path} is given twice: put its values behind commas", param_hint="--set")
        if path == "limit":
            raise typer.BadParameter(
                "limit changes no ranking: --k chooses how deep it is measured", param_hint="--set"
            )
        grid[path] = _values(text)
    if not grid:
        raise typer.BadParameter("nothing to sweep: such as --set fusion.k=1,10,60", param_hint="--set")
    return grid


def _check_options(run: Session, system: System, point: Mapping[str, Any]) -> None:
    from recollect import profiles

    varied = system.varied(point)
    if varied.profile is None:
        raise InvalidInput("the bm25 baseline has no options to sweep", "choose a profile", "--profile")
    profiles.load(varied.profile, run.settings.profiles, varied.options)


def _check_measure(name: str, plan: Plan) -> None:
    from recollect.evals.measures import names_of

    if name not in names_of(plan.ks):
        raise typer.BadParameter(f"{name!r} is not measured: {', '.join(names_of(plan.ks))}", param_hint="--by")


def _values(text: str) -> list[Any]:
    """Values behind commas, each as TOML where it is that: 1,10,60 · true,false · rrf,convex."""
    try:
        return tomllib.loads(f"values = [{text}]")["values"]
    except tomllib.TOMLDecodeError:
        return [options.value_of(one.strip()) for one in text.split(",") if one.strip()]


def _asked(plan: Plan, limit_queries: int | None, embedder: str | None) -> dict[str, Any]:
    """What a document says about how it was made; no paths, for they may name people."""
    return {"k": plan.ks, "seed": plan.seed, "limit_queries": limit_queries, "embedder": embedder}


def _given(file: str | None) -> dict[str, str]:
    """The user's own paraphrases by memory id."""
    from recollect.evals.datasets import json_lines

    if file is None:
        return {}
    entries = list(json_lines(Path(file).expanduser()))
    if not all(isinstance(one.get("id"), str) and isinstance(one.get("query"), str) for one in entries):
        raise InvalidInput(f"{file} has an entry without id or query", 'use {"id": "…", "query": "…"}', "--paraphrases")
    return {one["id"]: one["query"] for one in entries}
