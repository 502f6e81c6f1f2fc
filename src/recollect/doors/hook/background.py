"""What outlives the hook: a daemon that was started, a capture that waits for it. The agent waits for neither."""

from __future__ import annotations

import os
import sys
import time

from recollect.doors.hook.conversation import folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# A daemon needs seconds to come up, and one that cannot come up must not be tried at every prompt.
SECONDS_BETWEEN_STARTS = 30.0
PORT = 4777


def may_start(environment: Mapping[str, str]) -> bool:
    """Whether the user lets hooks start a daemon."""
    return environment.get("RECOLLECT_NO_DAEMON", "") in ("", "0")


def start_daemon(home: str, environment: Mapping[str, str]) -> bool:
    """Start `recollect serve` on its own, unless that was tried a moment ago; tells whether it was."""
    mark = f"{folder(home)}/starting"
    try:
        # A mark of the future was made before the clock was set back.
        if 0 <= time.time() - os.stat(mark).st_mtime < SECONDS_BETWEEN_STARTS:  # noqa: PTH116
            return False
    except OSError:
        os.makedirs(folder(home), mode=0o700, exist_ok=True)  # noqa: PTH103
    with open(os.open(mark, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w"):  # noqa: PTH123
        pass
    command = serve_command(environment)
    if os.name != "posix":
        _start_on_windows(command)
        return True

    def become() -> None:
        log = os.open(f"{home}/daemon.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(log, 2)
        # Not in the project: a daemon must neither hold its folder nor import from it.
        os.chdir(home)
        if environment.get("RECOLLECT_HOME"):
            os.environ["RECOLLECT_HOME"] = home
        os.execv(command[0], command)

    detached(become)
    return True


def serve_command(environment: Mapping[str, str]) -> list[str]:
    """The daemon's command line. -P: a folder of the user's project never becomes a place to import from."""
    command = [sys.executable, "-P", "-m", "recollect", "serve", "--until-changed"]
    store = environment.get("RECOLLECT_STORE", "")
    if store and "://" not in store and store != ":memory:":
        command += ["--store", os.path.abspath(os.path.expanduser(store))]  # noqa: PTH100, PTH111
    if _is_taken(PORT):
        # Another home's daemon has it; this one is found by its socket and its address file.
        command += ["--port", "0"]
    return command


def detached(work: Callable[[], None]) -> None:
    """Run something in a process of its own that no agent waits for: own session, no streams of ours."""
    if os.fork():
        return
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nothing, stream)
        work()
    finally:
        os._exit(0)


def _start_on_windows(command: list[str]) -> None:
    import subprocess

    flags = getattr(subprocess, "DETACHED_PROCESS", 0) | getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)
    quiet = subprocess.DEVNULL
    subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet, creationflags=flags, close_fds=True)


def _is_taken(port: int) -> bool:
    import socket

    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        if os.name == "posix":
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return True
    return False
