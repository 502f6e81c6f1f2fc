"""What the daemon does by itself, and connections that ask nothing."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import uvicorn

from recollect.domain.errors import Corrupt
from recollect.domain.memory import Scope
from recollect.doors.http import schedule
from recollect.doors.http.door import Door
from recollect.doors.http.events import Event
from recollect.doors.http.lanes import Limits
from recollect.doors.http.listening import bind_port, protocol_for
from tests.doors.http_cases import open_memory


async def _first(door: Door, job: str, merges: int = 0) -> Event:
    async with schedule.keeping_up(door):
        async for event in door.events.listen(after=0):
            if event.data["job"] == job and event.data.get("merges", 0) >= merges:
                return event
    raise AssertionError


def test_the_store_is_tidied_and_embedded_regularly(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "TIDY_SECONDS", 0.01)
    monkeypatch.setattr(schedule, "SHORTEST_SECONDS", 0.01)
    with open_memory(home) as engine:
        engine.remember("Waits for its embedding")
        event = asyncio.run(_first(Door(engine), "tidy"))
        assert event.data["embedded"] == 1


async def _jobs(door: Door) -> int:
    before = asyncio.all_tasks()
    async with schedule.keeping_up(door):
        return len(asyncio.all_tasks() - before)


def test_a_store_is_kept_up_from_when_it_can_be_written(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "TIDY_SECONDS", 0.01)
    monkeypatch.setattr(schedule, "SHORTEST_SECONDS", 0.01)
    with open_memory(home) as engine:
        upkeep, answers, early = engine.upkeep, [False, False], list[int]()
        monkeypatch.setattr(engine, "upkeep", lambda **asked: early.append(len(answers)) or upkeep(**asked))
        engine.store = replace(engine.store, writable=lambda: not answers or answers.pop())
        asyncio.run(_first(Door(engine), "tidy"))
        assert early == [0]


def test_consolidation_happens_only_when_the_settings_say_how_often(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schedule, "SHORTEST_SECONDS", 0.01)
    with open_memory(home) as engine:
        for _ in range(2):
            engine.remember("The build cache lives on the NAS", dedupe=False)
            engine.remember("The team meets on Mondays", dedupe=False, scope=Scope("team"))
        assert asyncio.run(_jobs(Door(engine))) == 1
        engine.settings = replace(engine.settings, consolidate_hours=1e-9)
        assert asyncio.run(_first(Door(engine), "consolidate")).data["merges"] == 2, "all namespaces"


def test_consolidation_goes_on_until_every_memory_was_reached(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "SHORTEST_SECONDS", 0.01)
    with open_memory(home) as engine:
        monkeypatch.setattr(engine, "consolidate", partial(engine.consolidate, limit=2))
        for text in (
            "One fact",
            "Another fact",
            "The build cache lives on the NAS",
            "The build cache lives on the NAS",
        ):
            engine.remember(text, dedupe=False)
        engine.settings = replace(engine.settings, consolidate_hours=1e-9)
        assert asyncio.run(_first(Door(engine), "consolidate", merges=1)).data["examined"] == 2


def test_every_namespace_is_consolidated_by_itself(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lane gives a piece of work its bounded time: a store of many tenants must not need it in one piece."""
    monkeypatch.setattr(schedule, "SHORTEST_SECONDS", 0.01)
    with open_memory(home) as engine:
        for namespace in ("a", "b", "c"):
            engine.remember("The team meets on Mondays", scope=Scope(namespace))
        door, pieces = Door(engine), list[int]()
        run, consolidate, done = door.lanes["slow"].run, engine.consolidate, list[str]()

        async def counted(work: Callable[[], object]) -> object:
            before = len(done)
            try:
                return await run(work)
            finally:
                pieces.append(len(done) - before)

        monkeypatch.setattr(door.lanes["slow"], "run", counted)
        monkeypatch.setattr(
            engine, "consolidate", lambda **asked: done.append(asked["namespace"]) or consolidate(**asked)
        )
        engine.settings = replace(engine.settings, consolidate_hours=1e-9)
        assert asyncio.run(_first(door, "consolidate")).data["examined"] == 3
        assert done[:3] == ["a", "b", "c"] and max(pieces) == 1


def test_a_namespace_that_fails_does_not_hold_up_the_others(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "SHORTEST_SECONDS", 0.01)
    with open_memory(home) as engine:
        for namespace in ("a", "b"):
            engine.remember("The team meets on Mondays", scope=Scope(namespace))
        consolidate = engine.consolidate

        def fails_for_one(namespace: str) -> object:
            if namespace == "a":
                raise Corrupt("damaged", "run doctor")
            return consolidate(namespace=namespace)

        monkeypatch.setattr(engine, "consolidate", fails_for_one)
        engine.settings = replace(engine.settings, consolidate_hours=1e-9)
        assert asyncio.run(asyncio.wait_for(_first(Door(engine), "consolidate"), 60)).data["examined"] == 1


def test_a_failing_job_is_tried_again(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "TIDY_SECONDS", 0.01)
    monkeypatch.setattr(schedule, "SHORTEST_SECONDS", 0.01)
    with open_memory(home) as engine:
        upkeep, failures = engine.upkeep, [OSError("disk"), ValueError("odd")]

        def fails_twice(**options: float) -> object:
            if failures:
                raise failures.pop()
            return upkeep(**options)

        monkeypatch.setattr(engine, "upkeep", fails_twice)
        asyncio.run(_first(Door(engine), "tidy"))
        assert failures == []


async def _hello(scope: object, receive: object, send: object) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})  # type: ignore[operator]
    await send({"type": "http.response.body", "body": b""})  # type: ignore[operator]


@contextmanager
def _listening(limits: Limits) -> Iterator[int]:
    listener = bind_port("127.0.0.1", 0)
    config = uvicorn.Config(_hello, http=protocol_for(limits), lifespan="off", log_config=None, ws="none")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(60)


def test_a_connection_that_asks_nothing_is_closed() -> None:
    with _listening(Limits(header_seconds=0.1)) as port:
        for beginning in (b"", b"GET / HTTP/1.1\r\nHost: lo"):
            with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
                connection.sendall(beginning)
                assert connection.recv(100) == b""


def test_one_connection_too_many_is_told_to_come_back() -> None:
    with _listening(Limits(connections=1)) as port:
        with socket.create_connection(("127.0.0.1", port), timeout=60) as first:
            first.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert first.recv(1000).startswith(b"HTTP/1.1 200")
            with socket.create_connection(("127.0.0.1", port), timeout=60) as second:
                answer = b""
                while piece := second.recv(1000):
                    answer += piece
        assert answer.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
        assert b"Retry-After: 1\r\n" in answer
        assert b"application/problem+json" in answer
