"""HEAD: whatever can be read can be asked about. Probes, proxies and download tools begin with it."""

from __future__ import annotations

import http.client
from pathlib import Path

from recollect.doors.http.rules import RULES
from tests.doors.http_cases import Daemon, daemon, served

READ = sorted(path for method, path in RULES if method == "GET")


def asked(running: Daemon, method: str, path: str) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body, on a connection of its own that must be at its end behind them."""
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=20)
    try:
        connection.request(method, path, headers={"Authorization": f"Bearer {running.token}"})
        response = connection.getresponse()
        return response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()
    finally:
        connection.close()


def test_head_answers_as_get_does_without_the_body(home: Path) -> None:
    with daemon(home) as running:
        _, made = running.ask("POST", "/v1/memories", {"content": "Tea is served at five"})
        for path in [one.replace("{id}", made["id"]) for one in READ if one != "/v1/events"]:
            path += "?q=tea" if path == "/episodes/search" else ""
            status, headers, body = asked(running, "HEAD", path)
            wanted, others, _ = asked(running, "GET", path)
            assert (status, body) == (wanted, b"") == (200, b""), path
            assert headers["content-type"] == others["content-type"], path
            assert headers.get("etag") == others.get("etag"), path
            assert int(headers["content-length"]) > 0, path
        assert asked(running, "HEAD", "/v1/memories/nobody")[0] == 404


def test_head_of_the_stream_of_events_ends_at_once_and_takes_no_place(home: Path) -> None:
    with daemon(home) as running:
        for _ in range(40):
            status, headers, body = asked(running, "HEAD", "/v1/events")
            assert (status, body, headers.get("content-length")) == (200, b"", None)
            assert headers["content-type"].startswith("text/event-stream")


def test_head_minds_the_token_and_is_told_among_the_methods(home: Path) -> None:
    with served(home) as client:
        assert client.head("/healthz", headers={"Authorization": "Bearer wrong"}).status_code == 401
        assert client.put("/healthz").headers["allow"] == "GET, HEAD"
        assert client.head("/v1/recall").status_code == 405
