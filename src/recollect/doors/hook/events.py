"""The agents and their events: what each calls them, what it sends, and what it expects to read.

Every agent has the same five moments under its own names. An agent that is not in the table is taken to speak as
Claude Code does, which is what most others do.
"""

from __future__ import annotations

import os

from recollect.doors.hook.documents import as_list, as_text, dumped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

START = "start"
PROMPT = "prompt"
ANSWERED = "answered"
COMPACTING = "compacting"
END = "end"

INJECTING = (START, PROMPT)

CLAUDE_EVENTS = {
    "SessionStart": START,
    "UserPromptSubmit": PROMPT,
    "Stop": ANSWERED,
    "PreCompact": COMPACTING,
    "SessionEnd": END,
}
EVENTS: Mapping[str, Mapping[str, str]] = {
    "claude": CLAUDE_EVENTS,
    "codex": CLAUDE_EVENTS,
    "gemini": {
        "SessionStart": START,
        "BeforeAgent": PROMPT,
        "AfterAgent": ANSWERED,
        "PreCompress": COMPACTING,
        "SessionEnd": END,
    },
    "cursor": {
        "sessionStart": START,
        "beforeSubmitPrompt": PROMPT,
        "afterAgentResponse": ANSWERED,
        "preCompact": COMPACTING,
        "sessionEnd": END,
    },
}
DEFAULT_AGENT = "claude"
ALIASES = {"claude-code": "claude", "codex-cli": "codex", "gemini-cli": "gemini"}
SOURCES = {"claude": "claude-code", "codex": "codex", "gemini": "gemini-cli", "cursor": "cursor"}

# What Claude Code says of a prompt that it made itself.
AUTOMATIC = ("system", "loop_wakeup", "schedule_wakeup", "poll_event")
FOLDER_VARIABLES = ("CLAUDE_PROJECT_DIR", "CURSOR_PROJECT_DIR", "GEMINI_PROJECT_DIR")
NO_SESSION = "no-session"
LONGEST_NAME = 256


class Event:
    """One call of the hook, in words that are the same for every agent."""

    __slots__ = ("agent", "answer", "cwd", "kind", "payload", "prompt", "session", "transcript")

    def __init__(self, agent: str, kind: str, payload: Mapping[str, Any], environment: Mapping[str, str]) -> None:
        self.agent = agent
        self.kind = kind
        self.payload = payload
        self.prompt = as_text(payload.get("prompt"))
        self.session = (as_text(payload.get("conversation_id")) or as_text(payload.get("session_id")))[:LONGEST_NAME]
        self.session = self.session or NO_SESSION
        self.cwd = _folder(payload, environment)
        self.transcript = as_text(payload.get("transcript_path"))
        # What the agent said last: Claude Code and Codex, Gemini CLI, Cursor.
        names = ("last_assistant_message", "prompt_response", "text")
        self.answer = next((said for name in names if (said := as_text(payload.get(name)))), "")

    @property
    def source(self) -> str:
        """Who wrote it, as it stands in a memory's provenance."""
        return SOURCES.get(self.agent, self.agent)[:LONGEST_NAME]

    @property
    def in_subagent(self) -> bool:
        """Side conversations are neither helped nor listened to."""
        return bool(self.payload.get("agent_id"))

    @property
    def typed(self) -> bool:
        """Somebody wrote the prompt; what an agent sends by itself often quotes others, and none of it is a wish."""
        return self.payload.get("source") not in AUTOMATIC

    @property
    def context_is_gone(self) -> bool:
        """What was injected before is no longer in front of the model."""
        return self.kind == COMPACTING or (self.kind == START and self.payload.get("source") in ("compact", "clear"))


def agent_named(name: str) -> str:
    """The agent's short name."""
    name = name.strip().lower()
    return ALIASES.get(name, name) or DEFAULT_AGENT


def kind_of(agent: str, event: str) -> str | None:
    """Which of the five moments an event is: by the agent's own name for it, else by any agent's, in any spelling."""
    wanted = _plain(event)
    tables = [EVENTS.get(agent, CLAUDE_EVENTS), *EVENTS.values()]
    for table in tables:
        for name, kind in table.items():
            if _plain(name) == wanted:
                return kind
    # Cursor has this one beside afterAgentResponse.
    return ANSWERED if wanted == "stop" else None


def native_name(agent: str, kind: str) -> str:
    """What the agent itself calls this moment."""
    return next(name for name, one in EVENTS.get(agent, CLAUDE_EVENTS).items() if one == kind)


def rendered(agent: str, kind: str, context: str) -> str:
    """What to print: the context in the agent's own form, or what it takes for "nothing to add".

    Exactly these keys: Codex refuses an answer with others, and after a finished turn any context would make the agent
    go on talking, so only the two injecting moments ever carry some.
    """
    if agent == "cursor":
        answer: dict[str, Any] = {"continue": True} if kind == PROMPT else {}
        if context and kind in INJECTING:
            answer["additional_context"] = context
        return dumped(answer, ascii=False)
    if not context or kind not in INJECTING:
        # Gemini CLI reads standard output as JSON in any case; the others take silence for "nothing".
        return "{}" if agent == "gemini" else ""
    specific = {"hookEventName": native_name(agent, kind), "additionalContext": context}
    return dumped({"hookSpecificOutput": specific}, ascii=False)


def _folder(payload: Mapping[str, Any], environment: Mapping[str, str]) -> str:
    roots = as_list(payload.get("workspace_roots"))
    named = as_text(payload.get("cwd")) or (as_text(roots[0]) if roots else "")
    set_by_agent = (found for one in FOLDER_VARIABLES if (found := environment.get(one)))
    try:
        return os.path.abspath(named or next(set_by_agent, ""))  # noqa: PTH100 (pathlib costs milliseconds)
    except OSError:
        return ""  # the folder that we were started in is gone


def _plain(name: str) -> str:
    return "".join(one for one in name.lower() if one.isalnum())
