"""Handing over what is to be remembered: what an agent said, and what a user asks for in so many words."""

from __future__ import annotations

from recollect.doors.hook import asking, events
from recollect.doors.hook.documents import as_list, as_object, as_text
from recollect.doors.hook.project import project_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from recollect.doors.hook.deadline import Deadline

HINTS = (
    "remember", "memor", "forget", "note", "future reference", "now on", "here on",
    "merk", "vergiss", "denk", "notier", "ab jetzt", "jetzt an", "ab sofort", "zukunft",
)  # fmt: skip
"""Words without which a prompt asks for nothing to be remembered; `stages.wishes` decides, and a test compares."""


def may_ask(prompt: str) -> bool:
    """Whether a prompt could ask for something to be remembered: the daemon is not asked about all others."""
    lowered = prompt.lower()
    return any(hint in lowered for hint in HINTS)


def keep(event: events.Event, home: str, text: str, said_by: str, deadline: Deadline) -> list[str]:
    """The ids of what is remembered now; NotRunning or NoAnswer when the daemon does not say so."""
    request = _request(event, text, said_by)
    try:
        answer = asking.ask(home, "/v1/capture", request, deadline)
    except asking.Refused:
        # A folder can bear a name that no project may have (a line break, a key): what was said there is kept without.
        answer = asking.ask(home, "/v1/capture", {**request, "scope": {}}, deadline)
    return [as_text(as_object(one).get("id")) for one in as_list(answer.get("receipts"))]


def _request(event: events.Event, text: str, said_by: str) -> dict[str, Any]:
    scope = {"session": event.session, "project": project_of(event.cwd)}
    request = {"text": text, "scope": {name: value for name, value in scope.items() if value}, "source": event.source}
    # A daemon that was started by an older version knows of agents only, and refuses what it does not know.
    return request if said_by == "agent" else {**request, "said_by": said_by}
