"""What the hook knows about a conversation: which memories it has shown there, which it owes, how far it has listened.

One small file per session, replaced in one step. It holds ids, positions and digests, never the text of a memory.
Losing it costs a repetition, so nothing here is worth waiting or failing for.
"""

from __future__ import annotations

import os
import time

from recollect.doors.hook.documents import as_list, as_text, dumped
from recollect.doors.hook.home import read_document

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

MOST_SHOWN = 1000
MOST_HEARD = 64
KEPT_DAYS = 30
MOST_PRUNED = 2000
PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")


class Conversation:
    """The state of one session."""

    __slots__ = ("_path", "heard", "offset", "owes_start", "shown", "transcript")

    def __init__(self, home: str, session: str) -> None:
        self._path = f"{folder(home)}/{_file_name(session)}.json"
        found = read_document(self._path)
        self.shown = [one for one in as_list(found.get("shown")) if isinstance(one, str)][-MOST_SHOWN:]
        self.heard = [one for one in as_list(found.get("heard")) if isinstance(one, str)][-MOST_HEARD:]
        self.owes_start = found.get("owes_start") is True
        self.transcript = as_text(found.get("transcript"))
        self.offset = found["offset"] if isinstance(found.get("offset"), int) and found["offset"] >= 0 else 0

    def show(self, ids: Iterable[str]) -> None:
        """Remember that these are in front of the model now."""
        self.shown = list(dict.fromkeys([*self.shown, *(one for one in ids if one)]))[-MOST_SHOWN:]

    def hear(self, digests: Iterable[str], transcript: str, offset: int) -> None:
        """Remember that these turns were listened to, and where the transcript goes on."""
        self.heard = list(dict.fromkeys([*self.heard, *digests]))[-MOST_HEARD:]
        self.transcript, self.offset = transcript, offset

    def save(self) -> None:
        """Replace the file; a full disk or a foreign folder only means that something may be said twice."""
        temporary = f"{self._path}.{os.getpid()}"
        known: dict[str, Any] = {
            "shown": self.shown,
            "owes_start": self.owes_start,
            "heard": self.heard,
            "transcript": self.transcript,
            "offset": self.offset,
        }
        try:
            os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)  # noqa: PTH103, PTH120
            with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:  # noqa: PTH123
                file.write(dumped(known))
            os.replace(temporary, self._path)  # noqa: PTH105
        except OSError:
            return


def folder(home: str) -> str:
    return f"{home}/hooks"


def prune(home: str) -> None:
    """Remove what was not touched for a month, a bounded number at a time."""
    oldest = time.time() - KEPT_DAYS * 86400
    try:
        with os.scandir(folder(home)) as entries:
            for _, entry in zip(range(MOST_PRUNED), entries):
                if entry.is_file(follow_symlinks=False) and entry.stat().st_mtime < oldest:
                    os.unlink(entry.path)  # noqa: PTH108
    except OSError:
        return


def _file_name(session: str) -> str:
    """The session itself where it is a plain name, else a digest: no session can leave the folder."""
    if 1 <= len(session) <= 80 and PLAIN.issuperset(session):
        return f"session-{session}"
    import hashlib

    return f"digest-{hashlib.sha256(session.encode('utf-8', 'replace')).hexdigest()[:32]}"
