"""Events as they happen: in order, resumable, bounded, and without a word of what is remembered."""

from __future__ import annotations

import asyncio
import http.client
import json
from pathlib import Path

from recollect.doors.http.events import KEPT, Event, Events
from tests.doors.http_cases import daemon, events_of, served


async def _some(events: Events, count: int, after: int | None = None) -> list[Event]:
    found: list[Event] = []
    async for one in events.listen(after):
        found.append(one)
        if len(found) == count:
            break
    return found


def test_a_listener_hears_what_happens_after_it_came() -> None:
    async def scene() -> list[Event]:
        events = Events()
        events.publish("before")
        task = asyncio.create_task(_some(events, 2))
        await asyncio.sleep(0)
        events.publish("one", id="a")
        events.publish("two")
        return await task

    assert [(one.number, one.name) for one in asyncio.run(scene())] == [(2, "one"), (3, "two")]


def test_a_listener_that_comes_back_misses_nothing_that_is_kept() -> None:
    async def scene() -> tuple[list[Event], list[Event]]:
        events = Events()
        for place in range(KEPT + 10):
            events.publish("n", place=place)
        return await _some(events, 3, after=KEPT + 7), await _some(events, 1, after=0)

    resumed, oldest = asyncio.run(scene())
    assert [one.number for one in resumed] == [KEPT + 8, KEPT + 9, KEPT + 10]
    assert oldest[0].number == 11


def test_closing_ends_every_listener_after_the_last_event() -> None:
    async def scene() -> list[str]:
        events = Events()
        task = asyncio.create_task(_some(events, 99))
        await asyncio.sleep(0)
        events.publish("last")
        events.close()
        found = [one.name for one in await task]
        assert events.listeners == 0
        return found

    assert asyncio.run(scene()) == ["last"]


def test_writes_and_recalls_are_announced_without_their_text(home: Path) -> None:
    with served(home) as client:
        id = client.post("/v1/memories", json={"content": "canary-text about ports"}).json()["id"]
        client.post("/v1/recall", json={"query": "canary-query"})
        client.patch(f"/v1/memories/{id}", json={"pinned": True})
        client.patch("/settings", json={"keywordWeight": 1})
        client.post("/v1/consolidate", json={})
        client.post("/recollect", json={"prompt": "canary-prompt", "session_id": "s"})
        client.delete(f"/v1/memories/{id}")
        client.app.state.door.stop()  # type: ignore[attr-defined]
        text = client.get("/v1/events", headers={"Last-Event-ID": "0"}).text
    names = [name for name, _ in events_of(text)]
    assert names == ["remembered", "recalled", "updated", "settings", "consolidated", "recollected", "forgotten"]
    assert "canary" not in text


def test_a_wrong_event_number_is_refused(home: Path) -> None:
    with served(home) as client:
        assert client.get("/v1/events", headers={"Last-Event-ID": "first"}).status_code == 422


def test_a_stream_of_a_real_daemon_ends_with_it(home: Path) -> None:
    with daemon(home) as running:
        connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=60)
        connection.request("GET", "/v1/events", headers={"Authorization": f"Bearer {running.token}"})
        response = connection.getresponse()
        assert response.getheader("Content-Type", "").startswith("text/event-stream")
        status, receipt = running.ask("POST", "/v1/memories", {"content": "Something to tell"})
        assert status == 201
        lines: list[bytes] = []
        while not lines or not lines[-1].startswith(b"data:"):
            lines.append(response.readline())
        assert json.loads(lines[-1].removeprefix(b"data:")) == {"id": receipt["id"], "action": "added"}
        assert running.stop() == 0
        response.read()
        response.close()
        connection.close()
