"""How a command ends that is told to: SIGTERM and a closed terminal take away what was begun, as Ctrl-C does."""

from __future__ import annotations

import signal
import sys

SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


def tidy_up_first() -> None:
    """A copy in the making, which may hold everything that is private, is not left lying about."""
    for number in SIGNALS:
        if signal.getsignal(number) == signal.SIG_DFL:  # `nohup` wants to hear nothing
            signal.signal(number, _leave)


def end_at_once() -> None:
    """For what stays and serves: it has nothing to take away, and its own way to stop."""
    for number in SIGNALS:
        if signal.getsignal(number) is _leave:
            signal.signal(number, signal.SIG_DFL)


def _leave(number: int, _: object) -> None:
    signal.signal(number, signal.SIG_DFL)  # who tells it twice does not want to wait
    sys.exit(128 + number)
