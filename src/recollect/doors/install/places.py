"""Which files an agent keeps its hooks and its MCP servers in, for the user and for a project."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from recollect.domain.errors import InvalidInput
from recollect.doors.hook import events
from recollect.doors.install import entries, tomltext

AGENTS = {"claude-code": "claude", "codex": "codex", "gemini": "gemini", "cursor": "cursor"}
PROGRAMS = {"claude": ("claude",), "codex": ("codex",), "gemini": ("gemini",), "cursor": ("cursor", "cursor-agent")}
NOTES: Mapping[str, str] = {
    "claude": "Start a new session of Claude Code; /hooks and /mcp in it show what was put in.",
    "codex": "Codex asks once whether it may run these hooks: open /hooks in it and trust them.",
    "cursor": "Open a new chat in Cursor: it reads the hooks when a conversation starts.",
}


@dataclass(frozen=True, slots=True)
class Target:
    """One file, and how our entries are put into it and taken out of it. `empty` is what a new file starts from."""

    path: Path
    put: Callable[[str], str]
    take: Callable[[str], str]
    empty: str = "{}\n"
    is_taken: Callable[[str], bool] = lambda _: False
    """Whether somebody else's server has our name there."""


def agent_of(name: str) -> str:
    """The agent that a name on the command line means."""
    known = {**AGENTS, **{short: short for short in AGENTS.values()}}
    agent = known.get(events.agent_named(name))
    if agent is None:
        raise InvalidInput(f"there is no agent {name!r}", f"choose {', '.join(AGENTS)}", "agent")
    return agent


def present(environment: Mapping[str, str]) -> list[str]:
    """The agents that this user has: their folder is there, or their program."""
    path = environment.get("PATH")
    return [
        agent
        for agent in AGENTS.values()
        if _files(agent, None, environment)[0].parent.is_dir()
        or any(shutil.which(program, path=path) for program in PROGRAMS[agent])
    ]


def targets(
    agent: str,
    command: Sequence[str],
    *,
    project: Path | None,
    environment: Mapping[str, str],
    only_project: bool = False,
) -> list[Target]:
    """The files to change: those of the project, or without one those of the user."""
    hooks, servers = _files(agent, project, environment)
    put_hooks = partial(entries.with_hooks, agent=agent, command=command, only_project=only_project)
    take_hooks = partial(entries.without_hooks, agent=agent)
    put_server, take_server = partial(entries.with_server, agent=agent, command=command), entries.without_server
    if hooks == servers:
        both = Target(hooks, lambda text: put_server(put_hooks(text)), lambda text: take_hooks(take_server(text)))
        return [replace(both, is_taken=entries.is_taken)]
    if agent == "codex":
        put_toml = partial(entries.with_toml_server, agent=agent, command=command)
        kept = Target(servers, put_toml, tomltext.without_table, "", entries.is_toml_taken)
    else:
        kept = Target(servers, put_server, take_server, is_taken=entries.is_taken)
    return [Target(hooks, put_hooks, take_hooks), kept]


def _files(agent: str, project: Path | None, environment: Mapping[str, str]) -> tuple[Path, Path]:
    """Where the hooks are and where the servers are."""
    home = Path(environment.get("HOME") or Path.home())
    if agent == "claude":
        chosen = environment.get("CLAUDE_CONFIG_DIR")
        if project is not None:
            return project / ".claude" / "settings.json", project / ".mcp.json"
        folder = Path(chosen).expanduser() if chosen else home / ".claude"
        return folder / "settings.json", (folder if chosen else home) / ".claude.json"
    if agent == "codex":
        chosen = environment.get("CODEX_HOME")
        folder = project / ".codex" if project else Path(chosen).expanduser() if chosen else home / ".codex"
        return folder / "hooks.json", folder / "config.toml"
    folder = (project or home) / f".{agent}"
    if agent == "gemini":
        return folder / "settings.json", folder / "settings.json"
    return folder / "hooks.json", folder / "mcp.json"
