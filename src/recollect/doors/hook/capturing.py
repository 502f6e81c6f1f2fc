"""Listening: what the agent's turns mark as worth remembering is handed to the daemon, each turn once."""

from __future__ import annotations

import time

from recollect.doors.hook import asking, background, conversation, events, keeping, transcript
from recollect.doors.hook.deadline import Deadline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PATIENCE_SECONDS = 45.0
ONE_TRY_SECONDS = 10.0
PAUSE_SECONDS = 0.5


def capture(event: events.Event, home: str, deadline: Deadline) -> int:
    """Send what was said since the last time; returns how many turns were new.

    Only an answered request moves the position on, so that nothing is lost; the engine merges what it gets twice.
    """
    state = conversation.Conversation(home, event.session)
    offset = state.offset if state.transcript == event.transcript else 0
    turns, end = transcript.new_turns(event.transcript, offset) if event.transcript else ([], 0)
    if event.answer.strip() and event.answer.strip() not in turns:
        # The agent may call us before its last words are in the file.
        turns.append(event.answer.strip())
    digests = [_digest(turn) for turn in turns]
    fresh = [turn for turn, digest in zip(turns, digests) if digest not in state.heard]
    try:
        if fresh:
            keeping.keep(event, home, transcript.joined(fresh), "agent", deadline)
    except asking.Refused:
        # It will be refused the next time as well.
        pass
    state.hear(digests, event.transcript, end)
    state.save()
    return len(fresh)


def patiently(work: Callable[[Deadline], object], home: str, environment: Mapping[str, str]) -> None:
    """In the background: wait for the daemon to come up, then do what is to be done.

    One that died soon after its start is not started again at once. This may be the last turn of the session, so
    nobody else may do it later.
    """
    whole = Deadline(PATIENCE_SECONDS)
    while whole.left():
        try:
            work(Deadline(ONE_TRY_SECONDS))
            return
        except asking.Refused:
            return
        except asking.NotRunning:
            if background.may_start(environment):
                background.start_daemon(home, environment)
        except asking.NoAnswer:
            pass
        time.sleep(PAUSE_SECONDS)


def context_gone(event: events.Event, home: str) -> None:
    """After a compaction nothing that was shown can be counted on: it may be shown again."""
    state = conversation.Conversation(home, event.session)
    if state.shown:
        state.shown = []
        state.save()


def _digest(text: str) -> str:
    import hashlib

    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
