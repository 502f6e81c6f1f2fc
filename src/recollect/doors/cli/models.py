"""models list, fetch, use and test: which embedder and reranker, and where their files come from."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from recollect.domain.errors import InvalidInput, ModelUnavailable
from recollect.doors.cli import config_file, daemons
from recollect.doors.cli.session import Session, current

if TYPE_CHECKING:
    from recollect.encoders.catalogue import CatalogueModel
    from recollect.settings import Settings

Role = Literal["embedder", "reranker"]

# Texts of which the second means the same as the first and the third does not: a model that cannot tell is broken.
SAMPLE = (
    "How do we roll back a failed release?",
    "To undo a bad deployment, redeploy the previous image and run the down migration.",
    "The team meets for lunch in the kitchen on the second floor.",
)


def complete_models(incomplete: str) -> list[str]:
    from recollect.encoders.catalogue import MODELS

    return [name for name in ("default", "none", *MODELS) if name.startswith(incomplete)]


def register(app: typer.Typer) -> None:
    group = typer.Typer(help="Which embedder and reranker, fetched once and checked by hash.", no_args_is_help=True)
    group.command("list", epilog="Example: recollect models list")(list_models)
    group.command("fetch", epilog="Examples: recollect models fetch · recollect models fetch bert-mini-reranker")(fetch)
    group.command(
        "use",
        epilog="Examples: recollect models use minilm-l6 · "
        "recollect models use http://localhost:11434/v1 --model nomic-embed-text",
    )(use)
    group.command("test", epilog="Example: recollect models test")(test)
    app.add_typer(
        group, name="models", rich_help_panel="How it ranks, and with what", epilog="Example: recollect models fetch"
    )


def list_models(ctx: typer.Context) -> None:
    """The models recollect knows by name, and which of them are here and in use."""
    from recollect.encoders.catalogue import EMBEDDER_CHAIN, MODELS, RERANKER_CHAIN
    from recollect.encoders.fetch import is_installed

    run = current(ctx)
    chosen = run.settings
    in_use = {_in_use(chosen.embedder, EMBEDDER_CHAIN, chosen), _in_use(chosen.reranker, RERANKER_CHAIN, chosen)}
    rows = [
        {
            "name": one.name,
            "role": "embedder" if one.is_embedder else "reranker",
            "installed": is_installed(chosen.models, one),
            "in_use": one.name in in_use,
            "bytes": sum(file.size for file in one.files),
            "download_bytes": one.wheel_size,
            "package": f"{one.package} {one.version}",
            "licence": one.licence,
            "summary": one.summary,
        }
        for one in MODELS.values()
    ]
    if run.json:
        run.emit(
            {"models": rows, "folder": str(chosen.models), "embedder": chosen.embedder, "reranker": chosen.reranker}
        )
        return
    table = [
        (
            "*" if row["in_use"] else "",
            row["name"],
            row["role"],
            "here" if row["installed"] else "–",
            f"{int(row['download_bytes']) / 1e6:.0f} MB",
            row["licence"],
            row["summary"],
        )
        for row in rows
    ]
    run.table(("", "model", "role", "installed", "download", "licence", "about"), table, flexible="about")
    run.note(f"files are kept in {chosen.models}; embedder {chosen.embedder}, reranker {chosen.reranker}")


def _in_use(choice: str, chain: tuple[CatalogueModel, ...], chosen: Settings) -> str:
    from recollect.encoders.fetch import is_installed

    if choice != "default":
        return choice
    return next((one.name for one in chain if is_installed(chosen.models, one)), "")


def fetch(
    ctx: typer.Context,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[MODEL]…",
            help="Default: the default embedder, or the first of its fallbacks that can be had.",
            autocompletion=complete_models,
        ),
    ] = None,
) -> None:
    """Get a model's files once, check them by hash; afterwards everything works offline."""
    from recollect.encoders.catalogue import find_model

    run = current(ctx)
    if names:
        got = [_fetch_one(run, find_model(name)) for name in names]
    else:
        got = [fetch_default(run)]
    if run.json:
        run.emit({"models": got})
        return
    for one in got:
        run.say(f"{one['name']}  ready in {one['folder']}")
    if any(find_model(one["name"]).is_embedder for one in got) and Path(run.settings.store).expanduser().is_file():
        run.note("memories written before are embedded by the daemon, or now: `recollect upkeep`")
    daemons.note_outdated(run)


def fetch_default(run: Session) -> dict[str, str]:
    """The default embedder, or the first of its fallbacks that can be had: uploads vanish."""
    from recollect.encoders.catalogue import EMBEDDER_CHAIN

    failures: list[ModelUnavailable] = []
    for model in EMBEDDER_CHAIN:
        try:
            return _fetch_one(run, model)
        except ModelUnavailable as error:
            run.note(f"{model.name}: {error.message}")
            failures.append(error)
    raise failures[0]


def _fetch_one(run: Session, model: CatalogueModel) -> dict[str, str]:
    from recollect.encoders.fetch import fetch as get

    if run.quiet or not run.err.is_terminal:
        folder = get(model, run.settings.models)
    else:
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
        with Progress(*columns, console=run.err, transient=True) as bar:
            task = bar.add_task(model.name, total=model.wheel_size)
            folder = get(
                model,
                run.settings.models,
                lambda step, done, total: bar.update(
                    task, description=f"{model.name}: {step}", completed=done, total=total
                ),
            )
    return {"name": model.name, "folder": str(folder)}


def use(
    ctx: typer.Context,
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="A name as in `models list`, default, none, a folder with an ONNX model, or a URL.",
            autocompletion=complete_models,
        ),
    ],
    role: Annotated[Role | None, typer.Option("--as", help="Where the name does not tell; else embedder.")] = None,
    name: Annotated[str, typer.Option("--model", help="The model's name at a URL.")] = "",
    key: Annotated[str, typer.Option("--key", help="The key for a URL; better in RECOLLECT_EMBEDDER_KEY.")] = "",
) -> None:
    """Choose the embedder or reranker from now on (config.toml in the home folder)."""
    from recollect import encoders
    from recollect.doors.cli.configuring import model_choice
    from recollect.encoders.catalogue import MODELS

    run = current(ctx)
    known = MODELS.get(model)
    natural: Role = "embedder" if known is None or known.is_embedder else "reranker"
    chosen: Role = role or natural
    if known is not None and chosen != natural:
        raise InvalidInput(f"{model} cannot be used as {chosen}", f"leave out --as {chosen}", "as")
    choice = model_choice(model)
    settings = run.settings
    # Opening refuses what is not there, before anything is written down.
    if chosen == "embedder":
        encoders.open_embedder(choice, settings.models, model=name, key=key)
    else:
        encoders.open_reranker(choice, settings.models, model=name, key=key, judge_url=settings.language_model)
    path = settings.home / "config.toml"
    config_file.change(path, {chosen: choice, f"{chosen}_model": name or None, f"{chosen}_key": key or None})
    if run.json:
        run.emit({"role": chosen, "choice": choice, "config": str(path)})
        return
    run.say(f"{chosen}: {choice}  (in {path})")
    if chosen == "embedder" and choice != "none":
        run.note("memories without a vector of this model are embedded by `recollect reindex` and in the background")
    daemons.note_outdated(run)


def test(
    ctx: typer.Context,
    model: Annotated[
        str | None,
        typer.Argument(metavar="[MODEL]", help="Default: the embedder in use.", autocompletion=complete_models),
    ] = None,
) -> None:
    """Load a model, check its files, and see whether it tells like from unlike."""
    from recollect import encoders
    from recollect.encoders.catalogue import MODELS
    from recollect.encoders.fetch import is_installed, verify

    run = current(ctx)
    settings, known = run.settings, MODELS.get(model or "")
    if known is not None and is_installed(settings.models, known) and not verify(settings.models, known):
        raise ModelUnavailable(f"the files of {known.name} are damaged", f"run `recollect models fetch {known.name}`")
    if known is not None and not known.is_embedder:
        reranker = encoders.open_reranker(known.name, settings.models)
        result = _judge(reranker)
    else:
        same = model is None or model == settings.embedder
        embedder = encoders.open_embedder(
            model or settings.embedder,
            settings.models,
            model=settings.embedder_model if same else "",
            key=settings.embedder_key if same else "",
        )
        result = _compare(embedder)
    if run.json:
        run.emit(result)
    else:
        for name, value in result.items():
            run.show(
                f"{name.replace('_', ' '):<12}  {value:.4g}"
                if isinstance(value, float)
                else f"{name.replace('_', ' '):<12}  {value}"
            )
    if not result["sound"]:
        run.note("the model finds unlike texts more alike than like ones: choose another, see `recollect models list`")
        raise typer.Exit(1)


def _compare(embedder: Any) -> dict[str, Any]:
    if embedder is None:
        raise ModelUnavailable("the embedder is switched off", "run `recollect models use default`")
    query, like, unlike = SAMPLE
    began = perf_counter()
    asked = embedder.embed_query(query)
    loaded = perf_counter()
    documents = embedder.embed_documents([like, unlike])
    done = perf_counter()
    near, far = (float(sum(a * b for a, b in zip(asked, row))) for row in documents)
    return {
        "model": embedder.id,
        "dimension": embedder.dimension,
        "max_tokens": embedder.max_tokens,
        "like": near,
        "unlike": far,
        "first_ms": (loaded - began) * 1000,
        "batch_ms": (done - loaded) * 1000,
        "sound": near > far,
    }


def _judge(reranker: Any) -> dict[str, Any]:
    if reranker is None:
        raise ModelUnavailable("there is no reranker", "run `recollect models fetch bert-mini-reranker`")
    query, like, unlike = SAMPLE
    began = perf_counter()
    near, far = reranker.score(query, [like, unlike])
    return {
        "model": reranker.id,
        "like": near,
        "unlike": far,
        "first_ms": (perf_counter() - began) * 1000,
        "sound": near > far,
    }
