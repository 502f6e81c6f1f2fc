"""A server that lets nobody in: the error tells why and what to do, at every door, and never the password."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from recollect.domain.errors import StoreUnavailable
from recollect.stores.postgres.opening import open_postgres
from tests.postgres_server import TestServer, running_server

pytestmark = pytest.mark.postgres

SECRET = "s3cret-canary"
WRONG = "wr0ng-canary"
ENTRIES = "local all {user} scram-sha-256\nlocal all shut_out reject\n"


@pytest.fixture(scope="module")
def guarded() -> Iterator[TestServer]:
    """A server that asks for a password."""
    with running_server() as server:
        server.execute(
            f"SET password_encryption = 'scram-sha-256'; CREATE ROLE guarded LOGIN PASSWORD '{SECRET}'",
            "CREATE ROLE shut_out LOGIN",
        )
        rules = server.folder / "data" / "pg_hba.conf"
        rules.write_text(ENTRIES.format(user="guarded") + rules.read_text())
        server.execute("SELECT pg_reload_conf()")
        yield server


def address(server: TestServer, user: str, password: str = "", database: str = "postgres") -> str:
    secret = f":{password}" if password else ""
    return f"postgresql://{user}{secret}@/{database}?host={server.folder}"


def refusal(target: str, **more: float) -> StoreUnavailable:
    with pytest.raises(StoreUnavailable) as caught:
        open_postgres(target, **more).close()
    told = f"{caught.value.message} {caught.value.hint}"
    assert SECRET not in told and WRONG not in told and caught.value.hint
    return caught.value


@pytest.mark.parametrize(
    ("user", "password", "database", "said", "step"),
    [
        ("guarded", WRONG, "postgres", "refuses the password", "PGPASSWORD"),
        ("guarded", "", "postgres", "wants a password", "PGPASSWORD"),
        ("nobody_here", "", "postgres", "does not know the user", "CREATE ROLE"),
        ("guarded", SECRET, "no_such_db", "has no such database", "createdb no_such_db"),
        ("shut_out", "", "postgres", "lets nobody in from here", "pg_hba.conf"),
    ],
)
def test_who_is_not_let_in_is_told_why_at_once(
    guarded: TestServer, user: str, password: str, database: str, said: str, step: str
) -> None:
    """With a patience of ten minutes: nobody waits for what waiting does not change."""
    error = refusal(address(guarded, user, password, database), wait_s=600.0)
    assert said in error.message and step in error.hint


def test_an_option_that_nobody_knows_is_not_blamed_on_the_server() -> None:
    """A typing error in `namespace` looked like a server that is down."""
    error = refusal(f"postgresql://me:{SECRET}@localhost/db?namespaces=team-a", wait_s=600.0)
    assert "an option of the address is unknown" in error.message and "docs/postgres.md" in error.hint


def test_where_nothing_listens_the_place_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    error = refusal(f"postgresql://me:{SECRET}@127.0.0.1:{port}/db", wait_s=1.0)
    assert "nothing listens" in error.message and f"127.0.0.1:{port}" in error.message
    error = refusal(f"postgresql://me:{SECRET}@/db?host={tmp_path}", wait_s=1.0)
    assert "nothing listens" in error.message
    error = refusal(f"postgresql://me:{SECRET}@no-such-host.invalid/db", wait_s=1.0)
    assert "not known" in error.message and "no-such-host.invalid" in error.message


@pytest.mark.parametrize("command", [["list"], ["doctor"], ["serve", "--port", "0"]])
def test_every_command_says_it_in_one_line(guarded: TestServer, tmp_path: Path, command: list[str]) -> None:
    target = address(guarded, "guarded", WRONG)
    environment = {"RECOLLECT_HOME": str(tmp_path), "RECOLLECT_STORE": target, "RECOLLECT_EMBEDDER": "none"}
    ran = subprocess.run(
        [sys.executable, "-m", "recollect", *command, "--json"],
        env=environment, capture_output=True, text=True, input="", timeout=120, check=False,
    )  # fmt: skip
    assert ran.returncode == 1 and len(ran.stderr.splitlines()) == 1, ran.stderr
    assert "refuses the password" in ran.stderr and WRONG not in ran.stdout + ran.stderr
    assert json.loads(ran.stdout)["error"]["type"] == "StoreUnavailable"


def test_over_http_the_store_is_away_and_no_address_is_told(guarded: TestServer, tmp_path: Path) -> None:
    from tests.doors.http_cases import served

    guarded.execute("CREATE SCHEMA recollect AUTHORIZATION guarded")
    with served(tmp_path, store=address(guarded, "guarded", SECRET) + "&pool=1") as client:
        assert client.get("/v1/stats").status_code == 200
        guarded.execute(f"ALTER ROLE guarded PASSWORD '{WRONG}'")
        try:
            guarded.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'guarded'")
            answer = client.post("/v1/memories", json={"content": "nobody is there"})
        finally:
            guarded.execute(f"ALTER ROLE guarded PASSWORD '{SECRET}'")
        assert (answer.status_code, answer.json()["type"].rpartition(":")[2]) == (503, "store-unavailable")
        assert SECRET not in answer.text and str(guarded.folder) not in answer.text
