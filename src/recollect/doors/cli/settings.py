"""settings list, get and set: the knobs kept in the store, and where things are."""

from __future__ import annotations

from dataclasses import fields
from typing import Annotated, Any

import typer

from recollect.domain.errors import InvalidInput, RecollectError
from recollect.doors.cli import config_file, daemons, options
from recollect.doors.cli.session import Session, current, printable
from recollect.doors.wire import plain
from recollect.stores.postgres.address import is_address, masked

SECRET = "_key"
Name = Annotated[str, typer.Argument(metavar="NAME", help="As in `recollect settings list`.")]


def register(app: typer.Typer) -> None:
    group = typer.Typer(help="Knobs turned while recollect runs, and where things are.", no_args_is_help=True)
    group.command("list", epilog="Example: recollect settings list")(list_settings)
    group.command("get", epilog="Example: recollect settings get keywordWeight")(get)
    group.command(
        "set", epilog="Examples: recollect settings set keywordWeight 0.5 · recollect settings set profile retry-ladder"
    )(set_setting)
    app.add_typer(
        group,
        name="settings",
        rich_help_panel="How it ranks, and with what",
        epilog="Example: recollect settings set keywordWeight 0.5",
    )


def list_settings(ctx: typer.Context) -> None:
    """All settings: those of the live profiles are kept in the store, the others in config.toml."""
    run = current(ctx)
    places = _places(run)
    try:
        live = _live(run)
    except RecollectError as error:
        live = _unturned(run)
        run.note(f"the settings in the store cannot be read, here they are as the profiles have them: {error.message}")
    if run.json:
        run.emit({"live": live, "configuration": places})
        return
    rows = [(name, f"{value:g}", "store") for name, value in live.items()]
    rows += [(name, str(value), "configuration") for name, value in places.items()]
    run.table(("setting", "value", "kept in"), rows, flexible="value")


def get(ctx: typer.Context, name: Name) -> None:
    """One setting's value."""
    run = current(ctx)
    known = _places(run)
    if name not in known:
        known = {**_live(run), **known}
    if name not in known:
        raise _unknown(name, known)
    if run.json:
        run.emit({"name": name, "value": known[name]})
    else:
        value = known[name]
        run.show(printable(f"{value:g}" if isinstance(value, float) else str(value)))


def set_setting(
    ctx: typer.Context,
    name: Name,
    value: Annotated[str, typer.Argument(metavar="VALUE", help='"" goes back to the default.')],
) -> None:
    """Change one setting. Knobs of the live profiles count from the next recall on, in every process."""
    run = current(ctx)
    places = _places(run)
    if name == "home":
        raise InvalidInput("the home folder is where settings are kept, not one of them", "set RECOLLECT_HOME", name)
    changed: Any = _configure(run, name, value) if name in places else _turn(run, name, value, places)
    if run.json:
        run.emit({"name": name, "value": changed})
    else:
        run.say(f"{name} = {changed}")
    if name in places:
        daemons.note_outdated(run)


def _live(run: Session) -> dict[str, float]:
    """The knobs as they stand; where there is no store yet, as the profiles have them."""
    if not run.has_store:
        return _unturned(run)
    with run.engine(embedder="none") as engine:
        return engine.live_settings()


def _unturned(run: Session) -> dict[str, float]:
    """The knobs as the profiles have them."""
    from recollect.profiles import knobs

    return knobs.values({}, run.settings.profiles)


def _turn(run: Session, name: str, value: str, places: dict[str, Any]) -> float:
    """Set a knob that is kept in the store."""
    with run.engine() as engine:
        if name not in engine.live_settings():
            raise _unknown(name, {**engine.live_settings(), **places})
        default = _unturned(run)[name]
        return engine.change_settings({name: options.value_of(value) if value else default})[name]


def _configure(run: Session, name: str, value: str) -> str:
    """Write a line of config.toml; an empty value takes it out."""
    from recollect.doors.cli.configuring import checked

    written = checked(name, value, run.settings) if value else ""
    config_file.change(run.settings.home / "config.toml", {name: written or None})
    return _shown(name, written)


def _shown(name: str, value: Any) -> Any:
    """A value without its secrets: keys, and the password in a server's address."""
    if name == "store" and isinstance(value, str) and is_address(value):
        return masked(value)
    return "•••" if name.endswith(SECRET) and value else value


def _places(run: Session) -> dict[str, Any]:
    """Where things are, without the secrets."""
    found = {one.name: plain(getattr(run.settings, one.name)) for one in fields(run.settings)}
    return {name: _shown(name, value) for name, value in found.items()}


def _unknown(name: str, known: dict[str, Any]) -> InvalidInput:
    return InvalidInput(f"there is no setting {name!r}", f"known: {', '.join(known)}", name)
