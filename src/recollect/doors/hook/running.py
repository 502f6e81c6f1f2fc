"""`recollect hook EVENT --agent NAME`: reads the agent's JSON, prints the agent's JSON, always exits with 0.

An agent waits for this and takes any other exit code for an objection, so whatever goes wrong ends in silence. Set
RECOLLECT_HOOK_DEBUG to be told on standard error what happened.
"""

from __future__ import annotations

import os
import sys

from recollect.doors.hook import asking, events
from recollect.doors.hook.deadline import Deadline, asking_time, seconds_since_start
from recollect.doors.hook.documents import parsed
from recollect.doors.hook.home import home_folder, is_meant

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from recollect.doors.hook.injecting import Injection

MOST_INPUT_BYTES = 16 * 1024 * 1024


class Call:
    """The command line of one call."""

    __slots__ = ("agent", "event", "only_project", "store")

    def __init__(self, arguments: Sequence[str]) -> None:
        self.agent = events.DEFAULT_AGENT
        self.event = ""
        self.store = ""
        self.only_project = False
        words = iter(arguments)
        for word in words:
            name, _, value = word.partition("=")
            if name == "--agent":
                self.agent = events.agent_named(value or next(words, ""))
            elif name == "--store":
                self.store = value or next(words, "")
            elif name == "--only-project":
                self.only_project = True
            elif not word.startswith("-") and not self.event:
                self.event = word


def main(arguments: Sequence[str]) -> None:
    """The whole life of the process; it leaves without tidying up, because the agent is waiting."""
    call = Call(arguments)
    output = ""
    try:
        deadline = Deadline(asking_time(seconds_since_start(), os.environ.get("RECOLLECT_HOOK_BUDGET_MS", "")))
        output = answer(call, read_input(0, deadline), dict(os.environ), deadline, _debug())
    except Exception as error:  # nothing may reach the agent but silence
        _debug()(f"failed: {type(error).__name__}: {error}")
        output = _silence(call)
    finally:
        try:
            _write(output)
        finally:
            os._exit(0)


def answer(
    call: Call, given: bytes, environment: Mapping[str, str], deadline: Deadline, debug: Callable[[str], None]
) -> str:
    """What to print for what was read."""
    kind = events.kind_of(call.agent, call.event)
    if kind is None:
        debug(f"unknown event {call.event!r}; known: {', '.join(events.EVENTS.get(call.agent, events.CLAUDE_EVENTS))}")
        return _silence(call)
    event = events.Event(call.agent, kind, parsed(given), environment)
    settings = {**environment, "RECOLLECT_STORE": call.store} if call.store else environment
    home = home_folder(environment)
    if event.in_subagent:
        debug("a side conversation: left alone")
        return events.rendered(call.agent, kind, "")
    if not is_meant(home, settings.get("RECOLLECT_STORE", "")):
        debug("the daemon of this home serves another store: set RECOLLECT_HOME to a folder of this store's own")
        return events.rendered(call.agent, kind, "")
    if kind in events.INJECTING:
        # Imported where needed: a prompt does not pay for listening, nor a finished turn for speaking.
        from recollect.doors.hook.injecting import Injection

        return _inject(Injection(event, home, call.only_project), settings, deadline, debug)
    _capture(event, home, settings, deadline, debug)
    return events.rendered(call.agent, kind, "")


def _inject(
    injection: Injection, environment: Mapping[str, str], deadline: Deadline, debug: Callable[[str], None]
) -> str:
    event = injection.event
    if injection.needless:
        debug("nothing to ask for")
        return events.rendered(event.agent, event.kind, "")
    if event.kind == events.PROMPT and event.typed:
        _heed(injection, environment, deadline, debug)
    try:
        lines = injection.lines(deadline)
        debug(f"the daemon gave {len(lines)} memories")
    except asking.NotRunning:
        debug("no daemon is running")
        _start(injection.home, environment, debug)
        injection.owe()
        lines = injection.last_recollection()
    except asking.NoAnswer as reason:
        debug(f"no answer: {reason}")
        injection.owe()
        lines = injection.last_recollection()
    return injection.output(lines)


def _heed(
    injection: Injection, environment: Mapping[str, str], deadline: Deadline, debug: Callable[[str], None]
) -> None:
    """First of all, what the prompt asks to be remembered: where the daemon does not answer, it is waited for."""
    from recollect.doors.hook import keeping

    event, home, text = injection.event, injection.home, injection.prompt
    if not keeping.may_ask(text):
        return
    try:
        injection.keep(keeping.keep(event, home, text, "user", deadline))
    except asking.Refused as reason:
        debug(f"not remembered: {reason}")
    except (asking.NotRunning, asking.NoAnswer) as reason:
        debug(f"not remembered yet: {type(reason).__name__} {reason}")
        _later(lambda patience: keeping.keep(event, home, text, "user", patience), home, environment)


def _capture(
    event: events.Event,
    home: str,
    environment: Mapping[str, str],
    deadline: Deadline,
    debug: Callable[[str], None],
) -> None:
    from recollect.doors.hook import capturing, conversation

    try:
        debug(f"{capturing.capture(event, home, deadline)} new turns heard")
    except (asking.NotRunning, asking.NoAnswer) as reason:
        debug(f"not captured yet: {type(reason).__name__} {reason}")
        if isinstance(reason, asking.NotRunning):
            _start(home, environment, debug)
        _later(lambda patience: capturing.capture(event, home, patience), home, environment)
    if event.context_is_gone:
        capturing.context_gone(event, home)
    if event.kind == events.END:
        conversation.prune(home)


def _later(work: Callable[[Deadline], object], home: str, environment: Mapping[str, str]) -> None:
    """In the background, as soon as a daemon is up."""
    from recollect.doors.hook import background, capturing

    if os.name == "posix" and background.may_start(environment):
        background.detached(lambda: capturing.patiently(work, home, environment))


def _start(home: str, environment: Mapping[str, str], debug: Callable[[str], None]) -> None:
    from recollect.doors.hook import background

    if background.may_start(environment):
        debug("starting a daemon" if background.start_daemon(home, environment) else "a daemon was started just now")


def read_input(stream: int, deadline: Deadline) -> bytes:
    """Standard input to its end, as far as it comes in time."""
    import select

    pieces: list[bytes] = []
    size = 0
    while size < MOST_INPUT_BYTES:
        if os.name == "posix" and not select.select([stream], [], [], deadline.left())[0]:
            break
        piece = os.read(stream, 1024 * 1024)
        if not piece:
            break
        pieces.append(piece)
        size += len(piece)
    return b"".join(pieces)


def _silence(call: Call) -> str:
    kind = events.kind_of(call.agent, call.event)
    return events.rendered(call.agent, kind or events.END, "")


def _write(text: str) -> None:
    data = text.encode("utf-8", "replace")
    while data:
        data = data[os.write(1, data) :]


def _debug() -> Callable[[str], None]:
    if not os.environ.get("RECOLLECT_HOOK_DEBUG"):
        return lambda _: None
    return lambda text: print(f"recollect hook: {text}", file=sys.stderr)
