"""profiles list, show, check and diff: how recollect ranks."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import unified_diff
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recollect.domain.errors import InvalidInput
from recollect.doors.cli import options
from recollect.doors.cli.session import Session, current, printable
from recollect.doors.wire import plain

if TYPE_CHECKING:
    from recollect.domain.profile import Profile

Name = Annotated[
    str,
    typer.Argument(
        metavar="PROFILE", help="A name, or the path of a .toml file.", autocompletion=options.complete_profiles
    ),
]
DEFAULT_K = 60.0


def register(app: typer.Typer) -> None:
    group = typer.Typer(help="How recollect ranks: list, show, check and compare profiles.", no_args_is_help=True)
    group.command("list", epilog="Example: recollect profiles list")(list_profiles)
    group.command("show", epilog="Example: recollect profiles show balanced > mine.toml")(show)
    group.command("check", epilog="Examples: recollect profiles check · recollect profiles check ./mine.toml")(check)
    group.command("diff", epilog="Example: recollect profiles diff balanced retry-ladder")(diff)
    app.add_typer(
        group, name="profiles", rich_help_panel="How it ranks, and with what", epilog="Example: recollect profiles list"
    )


def list_profiles(ctx: typer.Context) -> None:
    """All profiles that can be asked for by name."""
    from recollect import profiles

    run = current(ctx)
    own = run.settings.profiles
    found, damaged = _loaded(run, profiles.names(own))
    for error in damaged.values():
        run.note(f"left out: {error.message}")
    if run.json:
        run.emit(
            {
                "profiles": [{"name": one.name, "description": one.description, "source": one.source} for one in found],
                "default": run.settings.profile,
            }
        )
        return
    rows = [("*" if one.name == run.settings.profile else "", one.name, one.description) for one in found]
    run.table(("", "profile", "what it does"), rows, flexible="what it does")


def show(ctx: typer.Context, profile: Name) -> None:
    """The profile's TOML: a starting point for one's own."""
    from recollect import profiles

    run = current(ctx)
    text, source = profiles.read(profile, run.settings.profiles)
    loaded = profiles.load(profile, run.settings.profiles)
    if run.json:
        run.emit({**plain(loaded), "source": source, "toml": text})
    else:
        run.show(printable(text.rstrip("\n")))


def check(
    ctx: typer.Context,
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PROFILE]…", help="Default: all.", autocompletion=options.complete_profiles),
    ] = None,
) -> None:
    """Whether a profile is valid, and whether each list's best hit alone can reach the top at its weight."""
    from recollect import profiles

    run = current(ctx)
    wanted = names or profiles.names(run.settings.profiles)
    found, damaged = _loaded(run, wanted)
    if damaged and len(wanted) == 1:
        raise damaged[wanted[0]]
    verdicts = [_verdict(one) for one in found]
    if run.json:
        wrong = [{"profile": name, "valid": False, "message": one.message} for name, one in damaged.items()]
        run.emit({"profiles": [*verdicts, *wrong]})
    else:
        _show_reach(run, verdicts)
    for error in damaged.values():
        typer.echo(printable(f"recollect: {error.message} — {error.hint}"), err=True)
    if damaged:
        raise typer.Exit(1)


def _loaded(run: Session, names: Sequence[str]) -> tuple[list[Profile], dict[str, InvalidInput]]:
    """The profiles of these names, and what is wrong with the others: one that is damaged hides no other."""
    from recollect import profiles

    found: list[Profile] = []
    damaged: dict[str, InvalidInput] = {}
    for name in names:
        try:
            found.append(profiles.load(name, run.settings.profiles))
        except InvalidInput as error:
            damaged[name] = error
    return found, damaged


def _show_reach(run: Session, verdicts: list[dict[str, Any]]) -> None:
    rows: list[tuple[str, ...]] = []
    for one in verdicts:
        for name, reach in one["reach"].items():
            answer = "yes" if reach["reaches"] else "no"
            rows.append((one["profile"], name, f"{reach['weight']:g}", reach["alone"], reach["bar"], answer))
    top = ("profile", "list", "weight", "its best alone", "needed", "reaches the top")
    run.table(top, rows)


def _verdict(profile: Profile) -> dict[str, Any]:
    """fusion.reach: weight / (k + 1) of a list's best hit against weight / (k + limit) of the strongest other list."""
    from recollect.stages.fusion import reachable

    k = float(profile.fusion.options.get("k", DEFAULT_K))
    weights = {one.name: one.weight for one in (*profile.legs, *profile.signals) if one.votes}
    ranked = profile.fusion.kind == "rrf"
    reaches = reachable(weights, k, profile.limit) if ranked else {name: weight > 0 for name, weight in weights.items()}
    lists: dict[str, Any] = {}
    for name, weight in weights.items():
        rival = max((other for rival, other in weights.items() if rival != name), default=0.0)
        alone, bar = (weight / (k + 1), rival / (k + profile.limit)) if ranked else (weight, 0.0)
        lists[name] = {"weight": weight, "alone": f"{alone:.5f}", "bar": f"{bar:.5f}", "reaches": reaches[name]}
    return {
        "profile": profile.name,
        "valid": True,
        "fusion": profile.fusion.kind,
        "k": k,
        "limit": profile.limit,
        "reach": lists,
    }


def diff(ctx: typer.Context, first: Name, second: Name) -> None:
    """What two profiles do differently, option by option, with what they inherit from their parents."""
    from recollect import profiles

    run = current(ctx)
    one, other = (_flattened(profiles.load(name, run.settings.profiles)) for name in (first, second))
    changed = sorted(name for name in {*one, *other} if one.get(name) != other.get(name))
    if run.json:
        run.emit(
            {
                "first": first,
                "second": second,
                "differences": {name: {"first": one.get(name), "second": other.get(name)} for name in changed},
            }
        )
        return
    lines = [[f"{name} = {value}" for name, value in table.items()] for table in (one, other)]
    _show_diff(run, lines, first, second)


def _show_diff(run: Session, lines: list[list[str]], first: str, second: str) -> None:
    from rich.text import Text

    styles = {"+": "green", "-": "red"}
    for line in unified_diff(*lines, fromfile=first, tofile=second, lineterm="", n=0):
        if not line.startswith("@"):
            run.show(Text(printable(line), style=styles.get(line[:1], "")))


def _flattened(profile: Profile) -> dict[str, Any]:
    """Dotted names and values in the order of the pipeline; the order of priors and selectors is an option too."""
    flat: dict[str, Any] = {
        "limit": profile.limit,
        "scope": profile.scope,
        "without_dense": profile.without_dense,
        **{f"query.{name}": value for name, value in profile.query.options.items()},
    }
    if profile.spelling is not None:
        flat |= {"spelling": "on"}
        flat |= {f"spelling.{name}": value for name, value in profile.spelling.options.items()}
    for group, specs in (("legs", profile.legs), ("signals", profile.signals)):
        for spec in specs:
            path = f"{group}.{spec.name}"
            flat |= {f"{path}.kind": spec.kind, f"{path}.weight": spec.weight, f"{path}.votes": spec.votes}
            flat |= {f"{path}.{name}": value for name, value in spec.options.items()}
    flat |= {"ladder": ", ".join(profile.ladder), "fusion": profile.fusion.kind}
    flat |= {f"fusion.{name}": value for name, value in profile.fusion.options.items()}
    for group, parts in (("priors", profile.priors), ("select", profile.select)):
        flat[group] = " ▸ ".join(part.kind for part in parts)
        flat |= {f"{group}.{part.kind}.{name}": value for part in parts for name, value in part.options.items()}
    if profile.rerank is not None:
        flat |= {f"rerank.{name}": value for name, value in profile.rerank.options.items()}
    if profile.confidence is not None:
        flat |= {f"confidence.{name}": value for name, value in plain(profile.confidence).items()}
    flat |= {"render": profile.render.kind}
    flat |= {f"render.{name}": value for name, value in profile.render.options.items()}
    flat |= {f"settings.{one.name}": one for one in profile.settings}
    return plain(flat)
