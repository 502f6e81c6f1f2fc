"""What the HTTP suites share: the real app on a real store, and a real daemon in a process of its own."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

import recollect
from recollect.doors.http.app import Mounted, build_app
from recollect.doors.http.door import Door
from recollect.doors.http.lanes import Limits
from recollect.engine import Engine

TOKEN = "the-token-of-this-test"
BASE = "http://127.0.0.1:4777"
BEARER = {"Authorization": f"Bearer {TOKEN}"}


def open_memory(home: Path, store: str = "store.db", **options: Any) -> Engine:
    options = {"embedder": "fake", "reranker": "none", "background": False, "home": home, **options}
    return recollect.open(store if "://" in store else home / store, **options)


@contextmanager
def served(
    home: Path, *, store: str = "store.db", limits: Limits | None = None, mounts: tuple[Mounted, ...] = ()
) -> Iterator[TestClient]:
    """The app with its token on every request; `client.app.state.door` is its door."""
    with open_memory(home, store) as engine:
        app = build_app(Door(engine, limits), TOKEN, mounts=mounts)
        with TestClient(app, base_url=BASE, headers=BEARER) as client:
            yield client


def door_of(client: TestClient) -> Door:
    return client.app.state.door  # type: ignore[attr-defined,no-any-return]


def events_of(text: str) -> list[tuple[str, Any]]:
    """The server-sent events in a body: their names and data."""
    found: list[tuple[str, Any]] = []
    for block in text.replace("\r\n", "\n").split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line and not line.startswith(":"))
        if "event" in fields:
            found.append((fields["event"], json.loads(fields["data"])))
    return found


@dataclass
class Daemon:
    """A running `recollect serve`."""

    process: subprocess.Popen[str]
    url: str
    socket: str | None
    token: str
    log: Path

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        return _ask(connection, self.token, method, path, body, headers)

    def ask_socket(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        assert self.socket is not None
        connection = http.client.HTTPConnection("localhost", timeout=60)
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.connect(self.socket)
        return _ask(connection, self.token, method, path, body, headers)

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


def _ask(
    connection: http.client.HTTPConnection, token: str, method: str, path: str, body: Any, headers: dict[str, str]
) -> tuple[int, Any]:
    given = {"Authorization": f"Bearer {token}", "Content-Type": "application/json", **headers}
    try:
        connection.request(method, path, None if body is None else json.dumps(body), given)
        response = connection.getresponse()
        text = response.read().decode()
        response.close()
        return response.status, json.loads(text) if text.startswith(("{", "[")) else text
    finally:
        connection.close()


@contextmanager
def daemon(home: Path, *arguments: str, **environment: str) -> Iterator[Daemon]:
    """A daemon on a free port; ended with SIGTERM, and killed if that does not do."""
    command = [sys.executable, "-m", "recollect", "serve", "--port", "0", "--json", *arguments]
    given = {**os.environ, "RECOLLECT_HOME": str(home), **environment}
    log = home.with_name(f"{home.name}.log")
    with log.open("wb") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, env=given, text=True)
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line, log.read_text(encoding="utf-8")
        started = json.loads(line)
        token = Path(started["token_file"]).read_text(encoding="ascii")
        yield Daemon(process, started["url"], started["socket"], token, log)
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        process.stdout.close()
