"""Listening: what the agent's turns mark as worth remembering is handed to the daemon, each turn once."""

from __future__ import annotations

import time

from recollect.doors.hook import asking, background, conversation, events, transcript
from recollect.doors.hook.deadline import Deadline
from recollect.doors.hook.project import project_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

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
            _send(home, _request(event, transcript.joined(fresh)), deadline)
    except asking.Refused:
        # It will be refused the next time as well.
        pass
    state.hear(digests, event.transcript, end)
    state.save()
    return len(fresh)


def capture_patiently(event: events.Event, home: str, environment: Mapping[str, str]) -> None:
    """In the background: wait for the daemon to come up, then capture.

    One that died soon after its start is not started again at once. This may be the last turn of the session, so
    nobody else may do it later.
    """
    whole = Deadline(PATIENCE_SECONDS)
    while whole.left():
        try:
            capture(event, home, Deadline(ONE_TRY_SECONDS))
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


def _send(home: str, request: dict[str, Any], deadline: Deadline) -> None:
    """A folder can bear a name that no project may have (a line break, a key): what was said there is kept without."""
    try:
        asking.ask(home, "/v1/capture", request, deadline)
    except asking.Refused:
        asking.ask(home, "/v1/capture", {**request, "scope": {}}, deadline)


def _request(event: events.Event, text: str) -> dict[str, Any]:
    scope = {"session": event.session, "project": project_of(event.cwd)}
    return {"text": text, "scope": {name: value for name, value in scope.items() if value}, "source": event.source}


def _digest(text: str) -> str:
    import hashlib

    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
