"""Speaking: the memories for a prompt or a new session, none of them twice in one conversation."""

from __future__ import annotations

from recollect.doors.hook import asking, conversation, events
from recollect.doors.hook import home as places
from recollect.doors.hook.documents import as_text
from recollect.doors.hook.project import project_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from recollect.doors.hook.deadline import Deadline

# Somebody who writes this into a prompt wants the memories again, shown before or not.
ASKED_BY_NAME = "@recollect"
MOST_PROMPT_CHARACTERS = 8192
MOST_OUTPUT_CHARACTERS = 9500
KEPT = "What the user asks to remember in this prompt is stored already (recollect): it needs no tool."
START_LIMIT = 6
START_PROFILE = "two-stage"
START_OPTIONS = {"render.kind": "fenced", "legs.recent.embedded": False}


def _block() -> ModuleType:
    """What takes an answer apart, loaded while the daemon thinks: its regular expressions take milliseconds."""
    from recollect.doors.hook import block

    return block


def _both_ends(prompt: str) -> str:
    """What is asked stands before what is pasted, or behind it."""
    if len(prompt) <= MOST_PROMPT_CHARACTERS:
        return prompt
    half = MOST_PROMPT_CHARACTERS // 2 - 1
    return f"{prompt[:half]}\n{prompt[-half:]}"


class Injection:
    """What to show, and who is to be told that it was shown."""

    __slots__ = ("event", "home", "kept", "only_project", "state")

    def __init__(self, event: events.Event, home: str, only_project: bool = False) -> None:
        self.event = event
        self.home = home
        self.only_project = only_project
        self.kept = False
        self.state = conversation.Conversation(home, event.session)
        if event.context_is_gone:
            self.state.shown = []

    @property
    def asked_by_name(self) -> bool:
        return ASKED_BY_NAME in self.event.prompt.lower()

    @property
    def prompt(self) -> str:
        """As much of the prompt as the daemon is told."""
        return _both_ends(self.event.prompt)

    @property
    def needless(self) -> bool:
        """There is no prompt, or a resumed conversation still has before it what it was shown."""
        if self.event.kind == events.PROMPT:
            return not self.event.prompt.strip()
        return bool(self.state.shown)

    def lines(self, deadline: Deadline) -> list[str]:
        """What the daemon has to say; NotRunning or NoAnswer when it says nothing."""
        if self.only_project and project_of(self.event.cwd) is None:
            return []  # asked without a project, the daemon would tell of all of them
        if self.event.kind == events.PROMPT:
            found = asking.ask(self.home, "/recollect", self._prompt_request(), deadline, _block)
            lines = _block().lines_of(as_text(found.get("text")))
            return self._with_start(lines, deadline) if self.state.owes_start else lines
        lines = self._start_lines(deadline)
        self.pay()
        return lines

    def _with_start(self, lines: list[str], deadline: Deadline) -> list[str]:
        """Behind what fits the prompt, what the start of the session could not say."""
        try:
            start = self._start_lines(deadline)
        except (asking.NotRunning, asking.NoAnswer):  # the next prompt tries again
            return lines
        self.pay()
        there = {_block().id_of(line) for line in lines}
        return [*lines, *(line for line in start if _block().id_of(line) not in there)]

    def owe(self) -> None:
        """A start that nobody answered (the daemon comes up, after a night most of all) is said with a prompt."""
        if self.event.kind == events.START:
            self.state.owes_start = True
            self.state.save()

    def pay(self) -> None:
        """What was owed is being said."""
        if self.state.owes_start:
            self.state.owes_start = False
            self.state.save()

    def _start_lines(self, deadline: Deadline) -> list[str]:
        project = project_of(self.event.cwd)
        found = asking.ask(self.home, "/v1/recall", self._start_request(project), deadline, _block)
        lines = _block().lines_of(as_text(found.get("rendered")))
        if not lines and project and not self.only_project:
            found = asking.ask(self.home, "/v1/recall", self._start_request(None), deadline)
            lines = _block().lines_of(as_text(found.get("rendered")))
        return lines

    def last_recollection(self) -> list[str]:
        """What stands in the session's file: often an answer that came too late for the prompt before this one."""
        path = places.recollection_path(self.home, self.event.session)
        found = places.read_document(path, asking.LONGEST_ANSWER)
        return _block().lines_of(as_text(found.get("text")))

    def keep(self, ids: list[str]) -> None:
        """These stand in the prompt itself: they need not be shown, and nobody need store them."""
        self.kept = bool(ids)
        self.state.show(ids)

    def output(self, lines: list[str]) -> str:
        """The agent's own form of the block with what it has not seen, and a note of it for the next time."""
        if not lines and not self.kept and not self.event.context_is_gone:
            return events.rendered(self.event.agent, self.event.kind, "")
        block = _block()
        seen = () if self.asked_by_name else frozenset(self.state.shown)
        shown = block.unseen(lines, seen)
        text = self._rendered(shown)
        while shown and len(text) > MOST_OUTPUT_CHARACTERS:
            shown.pop()
            text = self._rendered(shown)
        self.state.show(map(block.id_of, shown))
        if shown or self.kept or self.event.context_is_gone:
            self.state.save()
        return text

    def _rendered(self, lines: list[str]) -> str:
        parts = [_block().fenced(lines), KEPT if self.kept else ""]
        return events.rendered(self.event.agent, self.event.kind, "\n".join(filter(None, parts)))

    def _prompt_request(self) -> dict[str, Any]:
        request: dict[str, Any] = {
            "prompt": self.prompt,
            "session_id": self.event.session,
            "cwd": self.event.cwd[:4096],
            "force": self.asked_by_name,
            "exclude": [] if self.asked_by_name else self.state.shown,
        }
        project = project_of(self.event.cwd) if self.only_project else None
        return {**request, "project": project} if project else request

    def _start_request(self, project: str | None) -> dict[str, Any]:
        return {
            "query": "",
            "profile": START_PROFILE,
            "limit": START_LIMIT,
            "scope": {"project": project} if project else {},
            "options": START_OPTIONS,
            "rendered": True,
        }
