"""Asking a running daemon instead of opening the store: it has the model and the index ready.

A daemon is asked only if it serves the same store with the same settings, so that the answer is the one that this
process would have found. Whatever it does not answer plainly is asked again without it, errors included. Nothing here
needs the libraries of the command line.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from recollect import __version__
from recollect.doors.hook import asking
from recollect.doors.hook.deadline import Deadline
from recollect.doors.hook.home import read_document
from recollect.settings import fingerprint

if TYPE_CHECKING:
    from recollect.doors.cli.session import Session
    from recollect.settings import Settings

PATIENCE_SECONDS = 10.0

_silent: set[str] = set()
"""Homes whose daemon let this process wait in vain. Who waits for a command waits for that once: the shortcut asks
first, and the ordinary command after it."""


class Daemon:
    """The daemon of a home, for as long as one command lasts."""

    def __init__(self, chosen: Settings) -> None:
        self._home = str(chosen.home)

    def recall(self, query: str, asked: dict[str, Any], *, rendered: bool) -> dict[str, Any] | None:
        """The answer as HTTP gives it; None when there is no plain one."""
        scope = asked["scope"]
        place = {"namespace": scope.namespace, "project": scope.project, "session": scope.session}
        given = {**asked, "tags": list(asked["tags"]), "exclude": list(asked["exclude"]), "scope": place}
        return self._answer("/v1/recall", {**given, "query": query, "rendered": rendered})

    def texts(self, ids: Iterable[str]) -> dict[str, str]:
        """The texts of these memories, as far as they are there."""
        from urllib.parse import quote

        found = {id: self._answer(f"/v1/memories/{quote(id, safe='')}", None) for id in ids}
        return {id: str(one["content"]) for id, one in found.items() if one is not None}

    def _answer(self, path: str, document: dict[str, Any] | None) -> dict[str, Any] | None:
        try:
            return asking.ask(self._home, path, document, Deadline(PATIENCE_SECONDS))
        except (asking.NotRunning, asking.NoAnswer, TypeError, UnicodeError) as error:
            if isinstance(error, asking.NoAnswer) and not isinstance(error, asking.Refused):
                _silent.add(self._home)
            return None


def daemon_for(chosen: Settings) -> Daemon | None:
    """The daemon that would answer as this process would; None where there is none."""
    written = read_document(f"{chosen.home}/daemon.json")
    if chosen.store == ":memory:" or str(chosen.home) in _silent:
        return None
    same = written.get("version") == __version__ and written.get("serves") == fingerprint(chosen)
    return Daemon(chosen) if same else None


def routed(run: Session, query: str, asked: dict[str, Any], *, explain: bool, render: bool) -> bool:
    """Whether a daemon could answer, and did."""
    daemon = daemon_for(run.settings)
    document = None if daemon is None else daemon.recall(query, asked, rendered=render)
    if daemon is None or document is None:
        return False
    if run.json:
        run.emit(document)
        return True
    # Imported where needed: a document is passed on as it came.
    from recollect.doors.cli import showing
    from recollect.doors.unwire import recall_from_dict

    try:
        answer = recall_from_dict(document)
    except (KeyError, TypeError, ValueError, AttributeError):
        return False
    showing.show(run, answer, document, daemon.texts, explain=explain, render=render, now=asked["now"])
    return True
