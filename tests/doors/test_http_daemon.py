"""A real daemon: its files, its socket, its end, and what it shares with other processes."""

from __future__ import annotations

import json
import shutil
import socket
import stat
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import recollect
from recollect.domain.errors import RecollectError
from recollect.doors.http.listening import bind_socket, is_loopback
from recollect.doors.http.token import read_address, read_token, write_address
from tests.doors.http_cases import daemon, open_memory

Run = Callable[..., subprocess.CompletedProcess[bytes]]
CANARY = "canary-8c1f"


def test_files_are_private_and_gone_when_the_daemon_is(home: Path) -> None:
    with daemon(home) as running:
        assert running.token == read_token(home)
        address = read_address(home)
        assert address is not None
        assert (address.pid, address.port, address.socket) == (running.process.pid, running.port, running.socket)
        for name in ("token", "daemon.json", "daemon.sock", "daemon.lock", "memories.db"):
            assert stat.S_IMODE((home / name).stat().st_mode) == 0o600, name
        assert running.stop() == 0
    assert not (home / "daemon.sock").exists()
    assert read_address(home) is None
    assert read_token(home) == running.token


def test_the_unix_socket_serves_with_the_token_only(home: Path) -> None:
    with daemon(home) as running:
        assert running.ask_socket("GET", "/healthz") == (200, {"status": "ok"})
        assert running.ask_socket("GET", "/healthz", Authorization="Bearer no")[0] == 401
        assert running.ask_socket("GET", "/healthz", Host="evil.example")[0] == 421
        status, receipt = running.ask_socket("POST", "/v1/memories", {"content": "Over the socket"})
        assert status == 201
        assert running.ask("GET", f"/v1/memories/{receipt['id']}")[1]["content"] == "Over the socket"
        assert running.ask("POST", "/mcp", {})[0] in (400, 406)
        assert running.ask("POST", "/mcp", {}, Authorization="Bearer no")[0] == 401


def test_a_second_daemon_on_one_home_says_who_is_there(home: Path, process: Run) -> None:
    with daemon(home) as running:
        second = process("serve", "--port", "0", "--json")
        assert second.returncode == 1
        error = json.loads(second.stdout)["error"]
        assert f"process {running.process.pid}, port {running.port}" in error["message"]
        assert error["hint"]
        assert running.ask_socket("GET", "/readyz")[0] == 200


def test_a_killed_daemon_leaves_nothing_in_the_way(home: Path) -> None:
    with daemon(home) as running:
        running.ask("POST", "/v1/memories", {"content": "Acknowledged before the kill"})
        running.process.kill()
        running.process.wait()
    assert (home / "daemon.sock").exists()
    with daemon(home) as again:
        assert again.ask_socket("GET", "/v1/stats")[1]["memories"] == 1


@pytest.mark.parametrize("another", [False, True], ids=["deleted", "replaced"])
def test_a_daemon_whose_store_went_away_ends(home: Path, process: Run, another: bool) -> None:
    """It would refuse every write, and go on answering from a file that nobody sees any more."""
    with daemon(home) as running:
        assert running.ask("POST", "/v1/memories", {"content": "The old key is under the mat"})[0] == 201
        if another:
            with open_memory(home, "other.db") as engine:
                engine.remember("The new key is with the neighbour")
            (home / "other.db").replace(home / "memories.db")
        else:
            (home / "memories.db").unlink()
        assert running.process.wait(60) == 1
        told = running.log.read_text(encoding="utf-8")
    assert "the store's file was moved, deleted or replaced" in told and "Traceback" not in told
    assert read_address(home) is None


def _model_arrives(home: Path) -> None:
    """What `models fetch` leaves: a folder that gets its name in one step."""
    (home / "models" / "a-model").mkdir(parents=True)


def _setting_changes(home: Path) -> None:
    (home / "config.toml").write_text("recollect_limit = 5\n")


@pytest.mark.parametrize("change", [_model_arrives, _setting_changes])
def test_a_daemon_that_hooks_started_ends_when_another_would_answer_differently(
    home: Path, change: Callable[[Path], None]
) -> None:
    """Nobody started it by hand, so nobody would start it anew: the next hook does."""
    with daemon(home, "--until-changed", RECOLLECT_EMBEDDER="default") as running:
        (home / "config.toml").write_text("recollect_limit = \n")  # half written: not what anybody wants
        assert running.ask("GET", "/readyz")[0] == 200
        (home / "config.toml").unlink()
        change(home)
        assert running.process.wait(60) == 0
        assert "the settings, the models or the program have changed" in running.log.read_text(encoding="utf-8")
    assert read_address(home) is None


def test_a_daemon_that_hooks_started_ends_when_its_program_was_upgraded_or_removed(home: Path, tmp_path: Path) -> None:
    program = tmp_path / "installed" / "recollect"
    shutil.copytree(Path(recollect.__file__).parent, program)
    with daemon(home, "--until-changed", PYTHONPATH=str(program.parent)) as running:
        assert running.ask("GET", "/readyz")[0] == 200
        (program / "__init__.py").rename(program / "old.py")
        assert running.process.wait(60) == 0


def test_a_daemon_that_was_started_by_hand_stays_and_says_so(home: Path) -> None:
    with daemon(home) as running:
        _setting_changes(home)
        told = ""
        for _ in range(300):
            told = running.log.read_text(encoding="utf-8")
            if "the settings, the models or the program have changed" in told:
                break
            time.sleep(0.1)
        assert told.count("the settings, the models or the program have changed") == 1
        assert running.ask("GET", "/readyz")[0] == 200


def test_the_end_of_a_daemon_leaves_the_address_of_another_alone(home: Path) -> None:
    """A home that was deleted and made again has a new lock, so there can be two for a moment."""
    with daemon(home) as running:
        address = read_address(home)
        assert address is not None
        write_address(home, replace(address, pid=1))
        assert running.stop() == 0
    assert read_address(home) == replace(address, pid=1)


def test_what_others_can_reach_is_refused(process: Run, home: Path) -> None:
    for host in ("0.0.0.0", "192.0.2.1", "::"):
        refused = process("serve", "--host", host, "--port", "0")
        assert refused.returncode == 2
        assert b"--allow-remote" in refused.stderr
    assert not home.exists()
    taken = socket.create_server(("127.0.0.1", 0))
    with taken:
        refused = process("serve", "--port", str(taken.getsockname()[1]))
    assert refused.returncode == 1
    assert b"--port" in refused.stderr


def test_a_profile_that_does_not_exist_is_refused_at_the_start(process: Run, home: Path) -> None:
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text('recollect_profile = "nope"', encoding="utf-8")
    refused = process("serve", "--port", "0")
    assert refused.returncode == 2 and b"recollect_profile: there is no profile 'nope'" in refused.stderr


def test_only_this_machine_is_loopback() -> None:
    assert all(is_loopback(one) for one in ("127.0.0.1", "127.8.8.8", "::1", "localhost"))
    assert not any(
        is_loopback(one) for one in ("0.0.0.0", "::", "10.0.0.1", "example.org", "", "127.0.0.1.example.org")
    )


def test_further_names_are_allowed_on_purpose(home: Path) -> None:
    with daemon(home, "--allow-host", "Memory.internal") as running:
        assert running.ask("GET", "/healthz", Host="memory.internal:4777")[0] == 200
        assert running.ask("GET", "/healthz", Host="other.internal")[0] == 421


def test_a_socket_path_that_is_too_long_is_left_out(tmp_path: Path) -> None:
    assert bind_socket(tmp_path / ("x" * 120)) is None


def test_a_socket_that_cannot_be_made_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(RecollectError) as told:
        bind_socket(tmp_path / "no-such-folder" / "s")
    assert "--socket" in told.value.hint


def test_stopping_finishes_requests_and_drains_the_outbox(home: Path) -> None:
    with daemon(home) as running:
        statuses: list[int] = []
        batch = {"memories": [{"content": f"Memory number {one}"} for one in range(400)], "dedupe": False}
        sender = threading.Thread(target=lambda: statuses.append(running.ask("POST", "/v1/memories/batch", batch)[0]))
        sender.start()
        while running.ask("GET", "/v1/stats")[1]["memories"] == 0:
            pass
        assert running.stop() == 0
        sender.join(60)
    assert statuses == [200]
    with open_memory(home, "memories.db") as engine:
        assert engine.stats().memories == 400
        progress = engine.embedding_progress()
        assert progress is not None
        assert progress.pending == 0


def test_logs_are_json_and_hold_no_memory_and_no_query(home: Path) -> None:
    with daemon(home) as running:
        _, receipt = running.ask("POST", "/v1/memories", {"content": f"{CANARY} one", "key": f"{CANARY}-key"})
        running.ask("POST", "/v1/memories", {"content": f"{CANARY} one again", "type": "bad type"})
        running.ask("POST", "/v1/recall", {"query": f"{CANARY} two", "profile": "live-weights"})
        running.ask("GET", f"/episodes/search?q={CANARY}&sessionIds={CANARY}")
        running.ask("GET", f"/{CANARY}")
        running.ask("GET", f"/v1/memories/{CANARY}")
        running.ask("POST", "/recollect", {"prompt": f"{CANARY} three", "session_id": CANARY})
        running.ask("POST", "/v1/ask", {"question": f"{CANARY} four"})
        running.ask("PATCH", "/settings", {CANARY: 1})
        running.ask("DELETE", f"/v1/memories/{receipt['id']}")
        connection = socket.create_connection(("127.0.0.1", running.port))
        connection.sendall(f"{CANARY} is no HTTP\r\n\r\n".encode())
        assert b"400" in connection.recv(100)
        connection.close()
        running.stop()
        lines = running.log.read_text(encoding="utf-8").splitlines()
    requests = [one for one in map(json.loads, lines) if one["message"] == "request"]
    assert len(requests) == 10
    assert {"/v1/memories", "/episodes/search", "/recollect", "none"} <= {one["route"] for one in requests}
    assert all(one["request_id"] and one["status"] and one["ms"] >= 0 for one in requests)
    assert CANARY not in "\n".join(lines)
    assert running.token not in "\n".join(lines)


@pytest.mark.covers("live.settings")
def test_settings_survive_a_restart(home: Path) -> None:
    with daemon(home) as running:
        assert running.ask("PATCH", "/settings", {"keywordWeight": 9})[0] == 422
        assert running.ask("PATCH", "/settings", {"keywordWeight": 1.5})[0] == 200
    with daemon(home) as running:
        assert running.ask("GET", "/settings")[1]["keywordWeight"] == 1.5
