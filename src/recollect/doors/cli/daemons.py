"""What a command says about the daemon of its home: whether it runs, whether it knows of a change, how it is ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from recollect.doors.hook.home import ending, living

if TYPE_CHECKING:
    from recollect.doors.cli.session import Session


def found(run: Session) -> dict[str, Any] | None:
    """The living daemon of this home. `current`: it is of this version and answers by the settings of now."""
    from recollect import __version__, settings

    written = living(str(run.settings.home))
    if not written:
        return None
    host, now = str(written.get("host")), settings.load(store=run.store)
    same = written.get("version") == __version__ and written.get("serves") == settings.fingerprint(now)
    return {
        "pid": written["pid"],
        "url": f"http://[{host}]:{written.get('port')}" if ":" in host else f"http://{host}:{written.get('port')}",
        "version": written.get("version"),
        "same_store": written.get("store") == settings.store_name(now.store),
        "current": same,
        "until_changed": written.get("until_changed") is True,
    }


def note_outdated(run: Session) -> None:
    """After a change that a daemon learns of only at its start."""
    daemon = found(run)
    if daemon and daemon["same_store"] and not daemon["current"] and not daemon["until_changed"]:
        run.note(outdated(daemon))


def told(daemon: dict[str, Any]) -> str:
    """Where it is and how it is ended, on a line."""
    return f"{daemon['url']}, version {daemon['version']}, process {daemon['pid']} (`{ending(daemon['pid'])}` ends it)"


def outdated(daemon: dict[str, Any]) -> str:
    """What to do about a daemon that is not `current`."""
    pid = daemon["pid"]
    return (
        f"the daemon (process {pid}) answers by the settings, models and version it started with: "
        f"end it (`{ending(pid)}`), then start it anew; hooks do that by themselves"
    )


def note_running(run: Session) -> None:
    """For who takes recollect out of an agent and may want to be rid of all that runs."""
    daemon = found(run)
    if daemon:
        run.note(f"a daemon still runs (process {daemon['pid']}): `{ending(daemon['pid'])}` ends it")
