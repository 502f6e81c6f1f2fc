"""install and uninstall on real files: shown before, written whole, taken back to the byte."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from recollect.doors.install import changing, entries, places
from recollect.doors.install.changing import BACKUP_SUFFIX
from tests.rights import bound_by_rights

Run = Callable[..., subprocess.CompletedProcess[bytes]]
ROOT = Path(__file__).parent.parent.parent
AGENTS = ("claude-code", "codex", "gemini", "cursor")

FILES = {
    "claude-code": (".claude/settings.json", ".claude.json"),
    "codex": (".codex/hooks.json", ".codex/config.toml"),
    "gemini": (".gemini/settings.json",),
    "cursor": (".cursor/hooks.json", ".cursor/mcp.json"),
}
PROJECT_FILES = {**FILES, "claude-code": (".claude/settings.json", ".mcp.json")}

EXISTING = [
    '{\n  "model": "opus",\n  "hooks": {\n    "Stop": [\n      {"hooks": [{"command": "say ☃"}]}\n    ]\n  }\n}\n',
    "{}",
    " \n",
    "{ }\n",
    "{\n}\n",
    '{"hooks": {}, "mcpServers": {}}',
    '{\n\t"mcpServers": {\n\t\t"other": {"command": "npx"}\n\t},\n\t// a comment\n\t"z": [1,\n2],\n}',
    '{\r\n    "version": 1,\r\n    "hooks": {"sessionStart": []}\r\n}\r\n',
    '\ufeff{"a": "\\u00e9"}\n',
]  # fmt: skip
EXISTING_TOML = [
    '# mine\nmodel = "x"\n\n[mcp_servers.other]\ncommand = "npx" # why\n',
    'model = "no newline"',
    "",
    'a = 1\r\n\r\n[b]\r\nc = 2\r\n\r\n',
]  # fmt: skip


@pytest.fixture
def user(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's home folder without anything."""
    folder = tmp_path / "user"
    folder.mkdir()
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.chdir(folder)
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("agent", AGENTS)
def test_a_fresh_user_gets_the_files_and_loses_them_again(agent: str, user: Path, process: Run) -> None:
    done = process("install", agent)
    assert done.returncode == 0, done.stderr
    assert sorted(contents(user)) == sorted(FILES[agent])
    command = entries.own_command()
    assert command[0].startswith("/") and Path(command[0]).is_file()
    text = "".join(path.read_text() for path in user.rglob("*") if path.is_file())
    short = places.AGENTS[agent]
    for event in entries.hooks_document(short, command):
        assert f"{command[0]} hook {event} --agent {short}" in text
    before = contents(user)
    again = process("install", agent, "--json")
    assert {one["action"] for one in json.loads(again.stdout)["files"]} == {"unchanged"}
    assert contents(user) == before
    assert process("uninstall", agent).returncode == 0
    assert list(user.iterdir()) == []  # no empty folder either
    assert contents(user) == {}
    assert {one["action"] for one in json.loads(process("uninstall", agent, "--json").stdout)["files"]} == {"unchanged"}


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("place", range(len(EXISTING)))
def test_existing_files_come_back_to_the_byte(agent: str, place: int, user: Path, cli: Callable[..., object]) -> None:
    for number, name in enumerate(FILES[agent]):
        path = user / name
        path.parent.mkdir(exist_ok=True)
        toml = EXISTING_TOML[place % len(EXISTING_TOML)]
        text = toml if name.endswith(".toml") else EXISTING[(place + number) % len(EXISTING)]
        path.write_bytes(text.encode())
        path.chmod(0o640)
    before = contents(user)
    cli("install", agent)
    cli("install", agent)
    during = contents(user)
    assert {name for name in during if name.endswith(BACKUP_SUFFIX)} == {name + BACKUP_SUFFIX for name in before}
    for name, data in before.items():
        assert during[name] != data and during[name + BACKUP_SUFFIX] == data
        assert stat.S_IMODE((user / name).stat().st_mode) == 0o640
        assert stat.S_IMODE((user / (name + BACKUP_SUFFIX)).stat().st_mode) == 0o640
    cli("uninstall", agent)
    assert contents(user) == before


@pytest.mark.parametrize("agent", AGENTS)
def test_they_come_back_to_the_byte_also_with_options_and_after_an_upgrade(
    agent: str, user: Path, cli: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in FILES[agent]:
        path = user / name
        path.parent.mkdir(exist_ok=True)
        path.write_text('model = "x"\n' if name.endswith(".toml") else '{"hooks": {}, "mcpServers": {}}')
    before = contents(user)
    cli("install", agent, "--only-project")
    monkeypatch.setattr(entries, "own_command", lambda: ["/another/folder/recollect"])
    cli("uninstall", agent)
    assert contents(user) == before


def test_what_was_changed_meanwhile_stays(user: Path, process: Run) -> None:
    path = user / ".claude" / "settings.json"
    path.parent.mkdir()
    path.write_text('{\n  "model": "opus"\n}\n')
    assert process("install", "claude-code").returncode == 0
    changed = path.read_text().replace('"model": "opus"', '"model": "haiku",\n  "added": [1]')
    path.write_text(changed)
    assert process("uninstall", "claude-code").returncode == 0
    assert path.read_text() == '{\n  "model": "haiku",\n  "added": [1]\n}\n'
    assert sorted(contents(user)) == [".claude/settings.json"]


@pytest.mark.parametrize("agent", AGENTS)
def test_another_server_of_our_name_is_left_alone_and_told(agent: str, user: Path, process: Run) -> None:
    file = user / FILES[agent][-1]
    file.parent.mkdir(exist_ok=True)
    toml = '[mcp_servers.recollect]\ncommand = "mine"\n'
    file.write_text(toml if agent == "codex" else '{"mcpServers": {"recollect": {"command": "mine"}}}\n')
    done = process("install", agent)
    assert done.returncode == 0 and b"another server called recollect" in done.stderr
    assert "mine" in file.read_text() and '"mcp"' not in file.read_text()
    document = json.loads(process("install", agent, "--json").stdout)
    assert [one["taken"] for one in document["files"]] == [one == FILES[agent][-1] for one in FILES[agent]]
    assert b"another server" not in process("uninstall", agent).stderr


def test_a_dry_run_shows_a_diff_and_writes_nothing(user: Path, process: Run) -> None:
    path = user / ".gemini" / "settings.json"
    path.parent.mkdir()
    path.write_text('{\n  "theme": "dark"\n}\n')
    before = contents(user)
    done = process("install", "gemini", "--dry-run")
    shown = done.stdout.decode()
    assert f"--- {path}\n+++ {path}\n" in shown and '"timeout": 5000' in shown
    assert '-  "theme": "dark"\n+  "theme": "dark",\n' in shown and "--dry-run" in shown
    assert contents(user) == before
    document = json.loads(process("install", "gemini", "--dry-run", "--json").stdout)
    assert document["dry_run"] and document["files"][0]["diff"].startswith(f"--- {path}")
    assert contents(user) == before
    process("install", "gemini", "--quiet")
    installed = contents(user)
    assert "-  " in process("uninstall", "gemini", "--dry-run").stdout.decode() and contents(user) == installed


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (".claude/settings.json", b'{"hooks": '),
        (".claude/settings.json", b'{"hooks": []}'),
        (".claude/settings.json", b'{"hooks": {"Stop": {}}}'),
        (".claude/settings.json", b"[]"),
        (".claude/settings.json", b"\xff\xfe{}"),
        (".claude.json", b'{"mcpServers": [1]}'),
        (".claude.json", b"{'single': 1}"),
    ],
)
def test_a_malformed_file_is_named_and_nothing_at_all_is_touched(
    name: str, content: bytes, user: Path, process: Run
) -> None:
    path = user / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    done = process("install", "claude-code")
    assert done.returncode == 1 and done.stdout == b""
    line = done.stderr.decode()
    assert str(path) in line and " — " in line and line.count("\n") == 1
    assert contents(user) == {name: content}


def test_a_malformed_toml_is_refused_before_the_hooks_are_written(user: Path, process: Run) -> None:
    path = user / ".codex" / "config.toml"
    path.parent.mkdir()
    path.write_text("a = = 1\n")
    done = process("install", "codex")
    assert done.returncode == 1 and b"config.toml" in done.stderr
    assert contents(user) == {".codex/config.toml": b"a = = 1\n"}


@pytest.mark.parametrize("agent", AGENTS)
def test_a_project_has_its_own_files(agent: str, user: Path, process: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    project = user / "shop"
    (project / ".git").mkdir(parents=True)
    (project / "src").mkdir()
    monkeypatch.chdir(project / "src")
    assert process("install", agent, "--project", "--only-project").returncode == 0
    assert sorted(contents(user)) == sorted(f"shop/{name}" for name in PROJECT_FILES[agent])
    assert "--only-project" in (project / PROJECT_FILES[agent][0]).read_text()
    assert process("uninstall", agent).returncode == 0
    assert len(contents(user)) == len(PROJECT_FILES[agent])
    assert process("uninstall", agent, "--project").returncode == 0
    assert contents(user) == {}


def test_the_agents_own_variables_move_their_folders(user: Path, process: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(user / "c"))
    monkeypatch.setenv("CODEX_HOME", str(user / "x"))
    assert process("install", "claude-code").returncode == process("install", "codex").returncode == 0
    assert sorted(contents(user)) == ["c/.claude.json", "c/settings.json", "x/config.toml", "x/hooks.json"]


def test_a_link_stays_a_link(user: Path, process: Run) -> None:
    real = user / "dotfiles.json"
    real.write_text("{}\n")
    (user / ".gemini").mkdir()
    link = user / ".gemini" / "settings.json"
    link.symlink_to(real)
    assert process("install", "gemini").returncode == 0
    assert link.is_symlink() and "recollect" in real.read_text()
    assert process("uninstall", "gemini").returncode == 0
    assert link.is_symlink() and real.read_text() == "{}\n"


def test_a_store_of_this_shell_alone_is_told(user: Path, process: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hooks and server take theirs from the agent's environment, which may be another."""
    assert b"RECOLLECT_HOME is set here" in process("install", "cursor").stderr
    assert b"RECOLLECT_HOME" not in process("install", "cursor", "--quiet").stderr
    monkeypatch.delenv("RECOLLECT_HOME")
    assert b"set here" not in process("install", "cursor").stderr
    assert b"--store is not written" in process("install", "cursor", "--store", "a.db").stderr


def test_a_folder_that_is_not_the_agents_own_stays(user: Path, process: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEX_HOME", str(user / "chosen"))
    process("install", "codex")
    process("uninstall", "codex")
    assert [one.name for one in user.iterdir()] == ["chosen"]


def test_install_says_what_is_still_to_be_done(user: Path, process: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECOLLECT_EMBEDDER", "default")
    told = process("install", "claude-code").stderr.decode()
    assert "new session" in told and "`recollect models fetch`" in told
    monkeypatch.setenv("RECOLLECT_EMBEDDER", "none")
    assert "models fetch" not in process("install", "claude-code").stderr.decode()


def test_unknown_agents_are_told_the_known_ones(user: Path, process: Run) -> None:
    done = process("install", "emacs")
    assert done.returncode == 2 and b"claude-code, codex, gemini, cursor" in done.stderr
    assert process("install", "claude", "--dry-run").returncode == 0


def test_without_a_name_every_agent_that_is_there_gets_its_files(
    user: Path, process: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    nobody = process("install")
    assert nobody.returncode == 1 and b"claude-code, codex, gemini, cursor" in nobody.stderr and not contents(user)
    (user / ".codex").mkdir()
    (programs / "gemini").write_text("#!/bin/sh\n")
    (programs / "gemini").chmod(0o755)
    told = json.loads(process("install", "--json", "--dry-run").stdout)
    assert [one["agent"] for one in told["agents"]] == ["codex", "gemini"] and told["dry_run"] is True
    assert not contents(user)
    done = process("install")
    assert done.returncode == 0 and b"trust them" in done.stderr
    assert set(contents(user)) == {*FILES["codex"], *FILES["gemini"]}
    assert {line.partition(":")[0] for line in process("install").stdout.decode().splitlines()} == {"unchanged"}
    assert b"+++ /dev/null" in process("uninstall", "--dry-run").stdout and contents(user)
    told = json.loads(process("uninstall", "--json").stdout)
    assert [one["agent"] for one in told["agents"]] == ["codex", "gemini"] and not contents(user)
    again = process("uninstall")
    assert (again.returncode, again.stdout) == (0, b"") and b"nothing of ours" in again.stderr


def test_one_malformed_file_keeps_every_agent_as_it_is(
    user: Path, process: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    for name in (".claude", ".gemini"):
        (user / name).mkdir()
    (user / ".gemini" / "settings.json").write_text("{,")
    done = process("install")
    assert done.returncode != 0 and b"settings.json" in done.stderr
    assert set(contents(user)) == {".gemini/settings.json"}


@pytest.mark.parametrize("locked", [".gemini", "."])
def test_one_file_that_cannot_be_written_keeps_every_agent_as_it_is(
    locked: str, user: Path, cli: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file of a package manager, say: half of the agents were changed, and nobody was told which."""
    monkeypatch.setenv("PATH", "")
    for name in (".claude", ".codex", ".gemini"):
        (user / name).mkdir()
    (user / ".gemini" / "settings.json").write_text("{}")
    (user / locked).chmod(0o555)
    try:
        with bound_by_rights():
            done = cli("install")
    finally:
        (user / locked).chmod(0o755)
    named = ".claude.json" if locked == "." else ".gemini/settings.json"
    assert f"{user / named} cannot be written" in done.err and "nothing was changed" in done.err
    assert contents(user) == {".gemini/settings.json": b"{}"}


def test_a_model_that_cannot_be_fetched_keeps_nobody_from_installing(
    user: Path, process: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    for name, value in (("PIP_CONFIG_FILE", os.devnull), ("PIP_NO_INDEX", "1"), ("RECOLLECT_EMBEDDER", "default")):
        monkeypatch.setenv(name, value)
    done = process("install", "claude-code", "--fetch")
    assert done.returncode == 0 and "created" in done.stdout.decode()
    assert "arctic-embed-s" in done.stderr.decode() and "is here" not in done.stderr.decode()
    told = process("install", "claude-code", "--no-fetch").stderr.decode()
    assert "arctic-embed-s" not in told and "`recollect models fetch`" in told


def test_at_a_terminal_install_asks_before_it_fetches(user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pty  # there is none on Windows

    monkeypatch.setenv("RECOLLECT_EMBEDDER", "default")
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "recollect", "install", "claude-code"]
    with subprocess.Popen(command, stdin=theirs, stdout=subprocess.PIPE, stderr=theirs) as asking:
        os.close(theirs)
        told = b""
        while b"[Y/n]" not in told:
            told += os.read(ours, 1024)
        os.write(ours, b"n\n")
        assert asking.stdout is not None
        asking.stdout.read()
        assert asking.wait(60) == 0
    while b"models fetch" not in told:
        told += os.read(ours, 1024)
    os.close(ours)
    assert b"26 MB" in told and (user / ".claude" / "settings.json").exists()


def test_a_failed_write_leaves_the_old_file(user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = user / ".gemini" / "settings.json"
    path.parent.mkdir()
    path.write_text('{"a": 1}')
    changes = changing.plan_install(places.targets("gemini", ["/r/recollect"], project=None, environment=os.environ))

    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        changing.apply(changes, installing=True)
    assert contents(user) == {".gemini/settings.json": b'{"a": 1}'}


# --- the plugin -------------------------------------------------------------------------------------------------------


def document(path: str) -> dict[str, object]:
    found = json.loads((ROOT / path).read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def test_the_plugin_says_what_install_would_write() -> None:
    hooks = document("plugins/claude-code/hooks/hooks.json")
    assert hooks["hooks"] == entries.hooks_document("claude", ["recollect"])
    servers = document("plugins/claude-code/.mcp.json")
    assert servers == {"mcpServers": {"recollect": entries.server("claude", ["recollect"])}}


def test_the_marketplace_leads_to_the_plugin() -> None:
    import recollect

    market = document(".claude-plugin/marketplace.json")
    plugins = market["plugins"]
    assert isinstance(plugins, list) and set(market) == {"name", "owner", "plugins"}
    (one,) = plugins
    manifest = document(f"{one['source']}/.claude-plugin/plugin.json")
    for field in ("name", "version", "description"):
        assert one[field] == manifest[field]
    assert manifest["version"] == recollect.__version__


def test_the_skill_names_tools_that_exist() -> None:
    import re

    text = (ROOT / "plugins/claude-code/skills/memory/SKILL.md").read_text(encoding="utf-8")
    head, body = text.removeprefix("---\n").split("\n---\n", 1)
    assert re.search(r"^name: memory$", head, re.MULTILINE) and re.search(
        r"^description: \S.{40,1000}$", head, re.MULTILINE
    )
    source = "".join(path.read_text() for path in (ROOT / "src/recollect/doors/mcp").glob("*.py"))
    tools = set(re.findall(r"`(memory_\w+)`", body))
    assert tools and [name for name in tools if f"def {name}(" not in source] == []


def test_installed_commands_run(user: Path, process: Run) -> None:
    """What stands in the file, given to a shell, is the hook."""
    assert process("install", "cursor").returncode == 0
    hooks = json.loads((user / ".cursor" / "hooks.json").read_text())["hooks"]
    for (handler,) in hooks.values():
        environment = {**os.environ, "RECOLLECT_NO_DAEMON": "1"}
        done = subprocess.run(
            handler["command"], shell=True, input=b"{}", capture_output=True, env=environment, timeout=120, check=True
        )
        assert json.loads(done.stdout) in ({}, {"continue": True})
    assert sys.executable.startswith("/")


def test_a_config_that_cannot_be_read_keeps_nobody_from_installing(home: Path, user: Path, process: Run) -> None:
    home.mkdir()
    (home / "config.toml").write_text("limit =")
    for command in ("install", "uninstall"):
        done = process(command, "gemini")
        assert (done.returncode, b"config.toml" in done.stderr) == (0, command == "install")
