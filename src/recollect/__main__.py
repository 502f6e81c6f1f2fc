"""`python -m recollect` and the `recollect` command."""

from __future__ import annotations

import sys


def main() -> None:
    """Hand over to the command line; hooks and recalls are served before its libraries are loaded: somebody waits."""
    if sys.argv[1:2] == ["hook"] and not {"--help", "-h"} & set(sys.argv):
        from recollect.doors.hook.running import main as hook

        hook(sys.argv[2:])
        return
    try:
        _run()
    except KeyboardInterrupt:
        sys.exit(130)  # as a shell expects it, and as Ctrl-C ends a command that is under way


def _run() -> None:
    if sys.argv[1:2] == ["recall"]:
        from recollect.doors.cli.shortcut import recalled

        if recalled(sys.argv[2:]):
            return
    from recollect.doors.cli.app import main as run

    run()


if __name__ == "__main__":
    main()
