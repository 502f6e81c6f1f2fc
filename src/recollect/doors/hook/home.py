"""Where the daemon of this user is reached: as `settings` and `doors.http.token` have it, without their imports."""

from __future__ import annotations

import os
import sys

from recollect.doors.hook.documents import parsed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

LONGEST_FILE = 64 * 1024


def home_folder(environment: Mapping[str, str]) -> str:
    """The home folder: RECOLLECT_HOME, else the user's data folder."""
    given = environment.get("RECOLLECT_HOME")
    if given:
        # Absolute, because a daemon that is started runs elsewhere. Without pathlib, which costs milliseconds.
        return os.path.abspath(os.path.expanduser(given))  # noqa: PTH100, PTH111
    if sys.platform == "win32":
        return os.path.join(environment.get("LOCALAPPDATA", os.path.expanduser("~")), "recollect")  # noqa: PTH111, PTH118
    data = environment.get("XDG_DATA_HOME", "").strip()
    if data.startswith("/"):
        return os.path.join(data, "recollect")  # noqa: PTH118
    below = "~/Library/Application Support" if sys.platform == "darwin" else "~/.local/share"
    return os.path.expanduser(below) + "/recollect"  # noqa: PTH111


def read_document(path: str, longest: int = LONGEST_FILE) -> dict[str, Any]:
    """A JSON object from a file that is not too long; anything else is an empty one."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            return parsed(file.read(longest))
    except OSError:
        return {}


def token(home: str) -> str:
    """What opens the daemon's door; nothing while no daemon has ever been started."""
    try:
        with open(f"{home}/token", "rb") as file:  # noqa: PTH123
            return file.read(1024).decode("ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def addresses(home: str) -> list[str | tuple[str, int]]:
    """Where to knock, in this order: the Unix socket, then the port that a living daemon has written down.

    A port that nobody wrote down, or whose daemon is dead, may be anybody's: neither token nor prompt is sent there.
    """
    written = read_document(f"{home}/daemon.json")
    places: list[str | tuple[str, int]] = []
    if os.name == "posix":
        socket = written.get("socket")
        places.append(socket if isinstance(socket, str) else f"{home}/daemon.sock")
    host, port, pid = written.get("host"), written.get("port"), written.get("pid")
    if isinstance(host, str) and isinstance(port, int) and isinstance(pid, int) and _lives(home, pid):
        local = {"0.0.0.0": "127.0.0.1", "::": "::1"}
        places.append((local.get(host, host), port))
    return places


def is_meant(home: str, store: str) -> bool:
    """Whether the home's living daemon, if there is one, serves this store; without a name, the home's own.

    Neither prompt nor turn of a project that has a store of its own may reach another one.
    """
    written = living(home)
    served = written.get("store")
    if not served:
        return True
    return served == (store_name(store) if store else written.get("own_store"))


def living(home: str) -> dict[str, Any]:
    """What the home's living daemon has written down; nothing while there is none."""
    written = read_document(f"{home}/daemon.json")
    pid = written.get("pid")
    return written if isinstance(pid, int) and _lives(home, pid) else {}


def daemon_of(home: str, store: str) -> int | None:
    """The process id of the home's living daemon, if it serves this store."""
    written = living(home)
    return written["pid"] if written.get("store") == store_name(store) else None


def ending(pid: int) -> str:
    """The command that ends a daemon in good order."""
    return f"kill {pid}" if os.name == "posix" else f"taskkill /PID {pid}"


def store_name(store: str) -> str:
    """A store's name for comparing, as `settings.store_name` has it."""
    import hashlib

    if store != ":memory:" and "://" not in store:
        store = os.path.realpath(os.path.expanduser(store))  # noqa: PTH111
    return hashlib.sha256(store.encode("utf-8", "surrogateescape")).hexdigest()[:32]


def recollection_path(home: str, session: str) -> str:
    """The session's recollection file, under the name that `recollect.recollection` gives it."""
    import hashlib
    import re

    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", session)[:40].strip(".-") or "session"
    digest = hashlib.sha256(session.encode("utf-8", "replace")).hexdigest()[:12]
    return f"{home}/recollections/{stem}-{digest}.json"


def _lives(home: str, pid: int) -> bool:
    """Whether the daemon that wrote itself down is still there: it holds the home's lock for as long as it lives.

    The number of one that crashed may be that of any process by now, and its port that of any program.
    """
    if os.name != "posix":
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        pass
    return pid > 0 and _is_held(f"{home}/daemon.lock")


def _is_held(lock: str) -> bool:
    """Whether somebody has this lock. To find out is to have it for a moment, which a starting daemon sits out."""
    import fcntl

    try:
        descriptor = os.open(lock, os.O_RDONLY)
    except OSError as error:
        return not isinstance(error, FileNotFoundError)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:  # held, or a file system without locks, where nobody can tell
        return True
    finally:
        os.close(descriptor)
    return False
