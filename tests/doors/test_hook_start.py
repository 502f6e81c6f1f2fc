"""The first session after a night: its start finds no daemon, and what it would have said must not be lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from recollect.doors.hook import events
from tests.doors.http_cases import daemon
from tests.doors.test_hook_process import BASE, PATIENT, alone, context, hook, listening, never, prompt

__all__ = ["alone"]


@pytest.mark.parametrize("agent", ["claude", "codex", "gemini", "cursor"])
def test_what_a_start_without_a_daemon_could_not_say_comes_with_the_first_prompt(alone: Path, agent: str) -> None:
    name = events.native_name(agent, events.PROMPT)
    start = {**prompt(agent, "s1", ""), "source": "startup"}
    assert context(hook(alone, agent, events.native_name(agent, events.START), start, **PATIENT)) == ""
    with daemon(alone, **BASE) as running:
        for content, project in (("We use PostgreSQL 16", "shop"), ("Deploys happen on Tuesdays", "shop")):
            body = {"content": content, "type": "decision", "scope": {"project": project}}
            assert running.ask("POST", "/v1/memories", body)[0] == 201
        first = context(hook(alone, agent, name, prompt(agent, "s1", "hello"), **PATIENT))
        assert "PostgreSQL 16" in first and "Tuesdays" in first
        assert context(hook(alone, agent, name, prompt(agent, "s1", "hello again"), **PATIENT)) == ""
        # One that was started while there was a daemon is owed nothing.
        assert context(hook(alone, agent, name, prompt(agent, "s2", "ok"), **PATIENT)) == ""


def test_what_is_relevant_to_the_prompt_comes_first_and_nothing_twice(alone: Path) -> None:
    start = {**prompt("claude", "s1", ""), "source": "startup"}
    assert context(hook(alone, "claude", "SessionStart", start, **PATIENT)) == ""
    with daemon(alone, **BASE) as running:
        for content in ("We use PostgreSQL 16", "Deploys happen on Tuesdays"):
            assert running.ask("POST", "/v1/memories", {"content": content, "scope": {"project": "shop"}})[0] == 201
        asked = prompt("claude", "s1", "when do the deploys happen on Tuesdays?")
        seen = context(hook(alone, "claude", "UserPromptSubmit", asked, **PATIENT))
    lines = [line for line in seen.splitlines() if line.startswith("- ")]
    assert len(lines) == 2 and "Tuesdays" in lines[0]


def test_a_start_that_got_no_answer_in_time_is_owed_too(alone: Path) -> None:
    start = {**prompt("claude", "s1", ""), "source": "startup"}
    with listening(alone, never):
        assert context(hook(alone, "claude", "SessionStart", start)) == ""
    (alone / "daemon.sock").unlink()
    with daemon(alone, **BASE) as running:
        assert running.ask("POST", "/v1/memories", {"content": "Tea at five", "scope": {"project": "shop"}})[0] == 201
        first = context(hook(alone, "claude", "UserPromptSubmit", prompt("claude", "s1", "ok"), **PATIENT))
    assert "Tea at five" in first
