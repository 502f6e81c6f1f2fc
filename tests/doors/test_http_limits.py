"""Bounds: bodies, queues, deadlines, connections. What does not fit is told so, and the next request is served."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from recollect.domain import errors
from recollect.doors.http.bodies import Bodies
from recollect.doors.http.lanes import Lane, Limits
from recollect.doors.http.problems import ERRORS, Problem, problem_of
from tests.doors.http_cases import daemon, door_of, served

Message = dict[str, Any]
JSON = {"Content-Type": "application/json"}


def test_a_body_of_the_limit_is_taken_and_one_byte_more_is_not(home: Path) -> None:
    limits = Limits(body_bytes=1000)
    with served(home, limits=limits) as client:
        frame = len(b'{"text":""}')
        fits = client.post("/v1/capture", content=b'{"text":"' + b"x" * (1000 - frame) + b'"}', headers=JSON)
        assert fits.status_code == 200
        large = client.post("/v1/capture", content=b'{"text":"' + b"x" * (1001 - frame) + b'"}', headers=JSON)
        assert (large.status_code, large.json()["type"]) == (413, "urn:recollect:problem:too-large")
        assert large.headers["connection"] == "close"
        assert client.get("/healthz").status_code == 200


def _through(bodies: Bodies, receive: Callable[[], Awaitable[Message]], *headers: tuple[bytes, bytes]) -> list[Message]:
    sent: list[Message] = []

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/", "headers": list(headers)}
    asyncio.run(bodies(scope, receive, send))
    return sent


async def _echo(scope: Any, receive: Any, send: Any) -> None:
    message = await receive()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": message["body"]})


def test_a_body_without_a_length_is_cut_off_at_the_limit() -> None:
    chunks = 0

    async def endless() -> Message:
        nonlocal chunks
        chunks += 1
        return {"type": "http.request", "body": b"x" * 100, "more_body": True}

    bodies = Bodies(_echo, Limits(body_bytes=1000, refused_bytes=500))
    sent = _through(bodies, endless, (b"transfer-encoding", b"chunked"))
    assert sent[0]["status"] == 413
    assert chunks == 11 + 5, "it is heard out, but not for ever"


def test_a_body_that_says_it_is_too_large_is_refused_before_it_is_read() -> None:
    sent: list[Message] = []

    async def late() -> Message:
        assert [message["type"] for message in sent] == ["http.response.start", "http.response.body"]
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/", "headers": [(b"content-length", b"1001")]}
    asyncio.run(Bodies(_echo, Limits(body_bytes=1000))(scope, late, send))
    assert sent[0]["status"] == 413
    assert [message.get("more_body") for message in sent] == [None, True, False], "open until the client was heard out"


def test_a_client_that_sends_all_before_it_reads_is_told_why_its_body_was_refused(home: Path) -> None:
    with daemon(home) as running:
        for size in (9, 40):
            status, problem = running.ask("POST", "/v1/memories", {"content": "x" * size * 2**20})
            assert (status, problem["type"]) == (413, "urn:recollect:problem:too-large")


def test_a_refused_body_that_never_comes_is_not_waited_for_long() -> None:
    async def silent() -> Message:
        await asyncio.sleep(3600)
        raise AssertionError

    limits = Limits(body_bytes=5, refused_seconds=0.05)
    sent = _through(Bodies(_echo, limits), silent, (b"content-length", b"10"))
    assert sent[0]["status"] == 413 and not sent[-1]["more_body"]


def test_a_dripping_body_is_given_up() -> None:
    async def silent() -> Message:
        await asyncio.sleep(3600)
        raise AssertionError

    sent = _through(Bodies(_echo, Limits(body_seconds=0.05)), silent, (b"content-length", b"10"))
    assert sent[0]["status"] == 408
    assert (b"connection", b"close") in sent[0]["headers"]


def test_all_bodies_together_are_bounded_and_the_memory_is_given_back() -> None:
    async def whole() -> Message:
        return {"type": "http.request", "body": b"x" * 60, "more_body": False}

    bodies = Bodies(_echo, Limits(all_bodies_bytes=100))

    async def crowd() -> list[int]:
        statuses: list[int] = []
        waiting = asyncio.Event()

        async def held(scope: Any, receive: Any, send: Any) -> None:
            await waiting.wait()
            await _echo(scope, receive, send)

        bodies._app = held  # type: ignore[attr-defined]
        scope = {"type": "http", "method": "POST", "path": "/", "headers": [(b"content-length", b"60")]}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])

        first = asyncio.create_task(bodies(scope, whole, send))
        await asyncio.sleep(0)
        await bodies(scope, whole, send)
        waiting.set()
        await first
        await bodies(scope, whole, send)
        return statuses

    assert asyncio.run(crowd()) == [503, 200, 200]


def test_a_client_that_leaves_is_not_answered() -> None:
    async def gone() -> Message:
        return {"type": "http.disconnect"}

    assert _through(Bodies(_echo, Limits()), gone, (b"content-length", b"10")) == []


def test_a_full_lane_says_429_and_serves_again_when_there_is_room() -> None:
    async def crowd() -> None:
        lane, gate = Lane("test", 1, 1, 60.0), threading.Event()
        busy = [asyncio.create_task(lane.run(gate.wait)) for _ in range(2)]
        await asyncio.sleep(0)
        try:
            with pytest.raises(Problem) as refused:
                await asyncio.wait_for(lane.run(lambda: None), 5)
        finally:
            gate.set()
        assert (refused.value.status, refused.value.headers) == (429, {"Retry-After": "1"})
        assert await asyncio.gather(*busy) == [True, True]
        assert await lane.run(lambda: "again") == "again"
        lane.close()
        with pytest.raises(Problem) as closed:
            await lane.run(lambda: None)
        assert closed.value.status == 503

    asyncio.run(crowd())


def test_a_deadline_frees_the_caller_but_not_the_thread() -> None:
    async def late() -> None:
        lane, gate, begun = Lane("test", 1, 1, 0.05), threading.Event(), []
        try:
            with pytest.raises(Problem) as timed_out:
                await lane.run(gate.wait)
            assert timed_out.value.status == 503
            assert lane.busy == 1
            with pytest.raises(Problem):
                await lane.run(lambda: begun.append(1))
        finally:
            gate.set()
        while lane.busy:
            await asyncio.sleep(0.01)
        assert begun == []
        lane.close()

    asyncio.run(late())


def test_overload_over_http_is_429_with_retry_after(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = replace(Limits(), quick_threads=1, quick_waiting=0)
    with served(home, limits=limits) as client:
        began, gate = threading.Event(), threading.Event()

        def slow(*_: Any, **__: Any) -> list[Any]:
            began.set()
            gate.wait(60)
            return []

        monkeypatch.setattr(door_of(client).engine, "list", slow)
        statuses: list[int] = []
        first = threading.Thread(target=lambda: statuses.append(client.get("/v1/memories").status_code))
        first.start()
        assert began.wait(60)
        try:
            refused = client.get("/v1/memories")
            assert client.get("/healthz").status_code == 200
        finally:
            gate.set()
            first.join(60)
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
        assert statuses == [200]
        assert client.get("/v1/memories").status_code == 200


def test_too_many_listeners_are_refused(home: Path) -> None:
    with served(home, limits=replace(Limits(), streams=0)) as client:
        answer = client.get("/v1/events")
        assert (answer.status_code, answer.headers["retry-after"]) == (429, "1")


@pytest.mark.parametrize("kind", list(ERRORS))
def test_every_engine_error_has_its_status_and_tells_nothing_of_the_machine(
    home: Path, monkeypatch: pytest.MonkeyPatch, kind: type[errors.RecollectError]
) -> None:
    error = kind("cannot open /home/someone/memories.db: SELECT secret", "look at /home/someone")
    with served(home) as client:

        def fails(*_: Any) -> None:
            raise error

        monkeypatch.setattr(door_of(client).engine, "get", fails)
        answer = client.get("/v1/memories/x")
        assert answer.status_code == ERRORS[kind].status
        assert ("retry-after" in answer.headers) == (answer.status_code == 503)
        if ERRORS[kind].detail:
            assert "/home" not in answer.text
            assert "SELECT" not in answer.text


def test_all_errors_of_the_domain_are_in_the_table() -> None:
    kinds = [one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, errors.RecollectError)]
    for kind in kinds:
        assert problem_of(kind("what", "how")).status in (404, 409, 422, 503)
    assert {problem_of(errors.StoreTooNew("x")).slug} == {"store-unavailable"}


def test_two_apps_keep_their_own_counts(home: Path) -> None:
    with served(home) as client:
        client.get("/healthz")
        page = client.get("/metrics").text
    other = home.with_name("other")
    other.mkdir()
    with served(other) as second:
        assert 'route="/healthz"' in page
        assert 'route="/healthz"' not in second.get("/metrics").text
