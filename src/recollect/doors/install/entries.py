"""What is written into an agent's files: the hooks and the MCP server, put in and taken out of a text."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import Any, cast

from recollect.domain.errors import RecollectError
from recollect.doors.hook import events
from recollect.doors.install import jsontext, tomltext

SERVER = "recollect"
TIMEOUT_SECONDS = 5
ONLY_PROJECT = "--only-project"

_WORD = r"""(?:'[^']*'|"[^"]*"|\\.|[^\s'"\\])+"""
_OUR_WORDS = re.compile(rf"(?<!\S){_WORD}(?: +-P)?(?: +-m +recollect)? +hook +{_WORD} +--agent +{_WORD}")


def own_command() -> list[str]:
    """How this installation is called: the `recollect` beside this interpreter, else the interpreter itself."""
    beside = Path(sys.executable).parent / ("recollect.exe" if os.name == "nt" else "recollect")
    return [str(beside)] if beside.is_file() else [sys.executable, "-P", "-m", "recollect"]


def hook_line(command: Sequence[str], agent: str, event: str, only_project: bool = False) -> str:
    """The shell command of one hook."""
    words = [*command, "hook", event, "--agent", agent, *([ONLY_PROJECT] if only_project else [])]
    return subprocess.list2cmdline(words) if os.name == "nt" else shlex.join(words)


def is_ours(line: object, agent: str) -> bool:
    """Whether a shell command is a hook of ours, wherever that installation was."""
    try:
        words = shlex.split(line, posix=os.name != "nt") if isinstance(line, str) else []
    except ValueError:
        return False
    if "hook" not in words[1:]:
        return False
    place = words.index("hook", 1)
    program = PurePath(words[place - 1].strip('"').replace("\\", "/")).name.removesuffix(".exe")
    return program == "recollect" and words[place + 2 : place + 4] == ["--agent", agent]


def renewed(there: str, line: str) -> str:
    """Our line in place of an older one of ours, with what stands around it: variables, further options, a log."""
    old = _OUR_WORDS.search(there)
    if old is None:
        return line
    behind = there[old.end() :]
    if ONLY_PROJECT in behind.split():
        line = line.removesuffix(f" {ONLY_PROJECT}")
    return there[: old.start()] + line + behind


def handler(agent: str, line: str) -> dict[str, Any]:
    """One hook as the agent writes it: Gemini CLI counts milliseconds, Cursor has no type."""
    if agent == "gemini":
        return {"type": "command", "name": SERVER, "command": line, "timeout": TIMEOUT_SECONDS * 1000}
    if agent == "cursor":
        return {"command": line, "timeout": TIMEOUT_SECONDS}
    return {"type": "command", "command": line, "timeout": TIMEOUT_SECONDS}


def hooks_document(agent: str, command: Sequence[str], only_project: bool = False) -> dict[str, list[Any]]:
    """The hooks of an agent by event, as they stand under "hooks"."""
    made: dict[str, list[Any]] = {}
    for event in events.EVENTS[agent]:
        one = handler(agent, hook_line(command, agent, event, only_project))
        made[event] = [one if agent == "cursor" else {"hooks": [one]}]
    return made


def with_hooks(text: str, agent: str, command: Sequence[str], only_project: bool) -> str:
    """The text with our hooks: old ones of ours brought up to date, missing ones added behind what is there."""
    if agent == "cursor" and jsontext.find(_object(text), ("version",)) is None:
        text = jsontext.appended(text, (), "version", 1)
    for event, (wanted,) in hooks_document(agent, command, only_project).items():
        line = (wanted if agent == "cursor" else wanted["hooks"][0])["command"]
        found = list(_own_hooks(text, agent, event))
        for path in found:
            there = jsontext.find(jsontext.parse(text), (*path, "command"))
            if there is not None:
                text = jsontext.replaced(text, (*path, "command"), renewed(there.value, line))
        if not found:
            text = _with_container(text, ("hooks",), {})
            text = _with_container(text, ("hooks", event), [])
            text = jsontext.appended(text, ("hooks", event), None, wanted)
    return text


def without_hooks(text: str, agent: str) -> str:
    """The text without our hooks, and without what is empty once they are gone."""
    for event in events.EVENTS[agent]:
        emptied = False
        while own := list(_own_hooks(text, agent, event)):
            text = jsontext.removed(text, own[-1])
            group = own[-1][:3]
            if agent != "cursor" and _is_empty(text, (*group, "hooks")):
                text = jsontext.removed(text, group)
            emptied = True
        if emptied and _is_empty(text, ("hooks", event)):
            text = jsontext.removed(text, ("hooks", event))
        if emptied and _is_empty(text, ("hooks",)):
            text = jsontext.removed(text, ("hooks",))
    return text


def server(agent: str, command: Sequence[str]) -> dict[str, Any]:
    """The MCP server as the agent writes it."""
    made = {"command": command[0], "args": [*command[1:], "mcp"]}
    return {"type": "stdio", **made} if agent == "claude" else made


def with_server(text: str, agent: str, command: Sequence[str]) -> str:
    """The text with our MCP server, how it is called up to date; another server of that name is left alone."""
    wanted = server(agent, command)
    there = jsontext.find(_object(text), ("mcpServers", SERVER))
    if there is None:
        text = _with_container(text, ("mcpServers",), {})
        return jsontext.appended(text, ("mcpServers",), SERVER, wanted)
    further = _further_words(there.value)
    if further is None:
        return text
    for name, value in (("command", wanted["command"]), ("args", [*wanted["args"], *further])):
        if there.value.get(name) != value:
            text = jsontext.replaced(text, ("mcpServers", SERVER, name), value)
    return text


def without_server(text: str) -> str:
    """The text without our MCP server, and without what is empty once it is gone."""
    there = jsontext.find(_object(text), ("mcpServers", SERVER))
    if there is None or _further_words(there.value) is None:
        return text
    text = jsontext.removed(text, ("mcpServers", SERVER))
    return jsontext.removed(text, ("mcpServers",)) if _is_empty(text, ("mcpServers",)) else text


def is_taken(text: str) -> bool:
    """Whether another server has our name, which keeps ours out."""
    there = jsontext.find(_object(text), ("mcpServers", SERVER))
    return there is not None and _further_words(there.value) is None


def is_toml_taken(text: str) -> bool:
    """The same in TOML, where ours stands between two lines of its own."""
    return tomltext.has_table(tomltext.without_table(text), ("mcp_servers", SERVER))


def with_toml_server(text: str, agent: str, command: Sequence[str]) -> str:
    """Codex keeps its servers in TOML."""
    wanted, path = server(agent, command), ("mcp_servers", SERVER)
    there = tomltext.own_table(text, path)
    if there is None:
        return tomltext.with_table(text, path, wanted)
    return tomltext.updated(text, path, {**wanted, "args": [*wanted["args"], *(_further_words(there) or ())]})


def _further_words(value: Any) -> list[Any] | None:
    """What somebody wrote behind `recollect mcp` in a server of ours, such as a namespace; None: it is not ours."""
    entry = cast(dict[str, Any], value) if isinstance(value, dict) else {}
    arguments = entry.get("args")
    words: list[Any] = [entry.get("command"), *(cast(list[Any], arguments) if isinstance(arguments, list) else [])]
    for place, word in enumerate(words[1:], start=1):
        if word == "mcp" and PurePath(str(words[place - 1]).replace("\\", "/")).stem == "recollect":
            return words[place + 1 :]
    return None


def _own_hooks(text: str, agent: str, event: str) -> list[jsontext.Path]:
    """Where our hooks of an event stand."""
    array = jsontext.find(_object(text), ("hooks", event))
    found: list[jsontext.Path] = []
    for place, group in (array.children if array is not None else {}).items():
        path = ("hooks", event, place)
        inner = group.children.get("hooks")
        flat = {path: group} if agent == "cursor" else {}
        nested = {(*path, "hooks", one): hook for one, hook in inner.children.items()} if inner is not None else {}
        for where, hook in (flat or nested).items():
            line = hook.children.get("command")
            if line is not None and is_ours(line.value, agent):
                found.append(where)
    return found


def _with_container(text: str, path: tuple[str, ...], empty: dict[str, Any] | list[Any]) -> str:
    """The text with an object or array at a path; something else in its place is not ours to change."""
    there = jsontext.find(_object(text), path)
    if there is None:
        return jsontext.appended(text, path[:-1], path[-1], empty)
    if not isinstance(there.value, type(empty)):
        kind = "an object" if isinstance(empty, dict) else "a list"
        raise RecollectError(f"{'.'.join(path)} is not {kind}", "correct it by hand, then try again")
    return text


def _is_empty(text: str, path: jsontext.Path) -> bool:
    """Whether an object or array has nothing in it, no comment either."""
    there = jsontext.find(jsontext.parse(text), path)
    return there is not None and there.value in ({}, []) and not text[there.start + 1 : there.end - 1].strip()


def _object(text: str) -> jsontext.Node:
    root = jsontext.parse(text)
    if not isinstance(root.value, dict):
        raise RecollectError("its top is not an object", "correct it by hand, then try again")
    return root
