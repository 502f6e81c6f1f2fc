"""Every route: what it does when all is well, and how it says no."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.doors.http_cases import door_of, events_of, served


@pytest.fixture
def client(home: Path) -> Iterator[TestClient]:
    with served(home) as client:
        yield client


def remember(client: TestClient, content: str, **fields: Any) -> str:
    answer = client.post("/v1/memories", json={"content": content, **fields})
    assert answer.status_code in (200, 201), answer.text
    return answer.json()["id"]


def problem(answer: Any, status: int, slug: str, field: str | None = None) -> dict[str, Any]:
    """An error is problem+json with a type, a status that agrees, and the field where there is one."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    document = answer.json()
    assert document["type"] == f"urn:recollect:problem:{slug}"
    assert document["status"] == status
    assert document.get("field") == field
    return document


def test_a_memory_comes_back_as_it_went_in(client: TestClient) -> None:
    sent = {
        "content": "We use PostgreSQL 16",
        "type": "decision",
        "tags": ["db"],
        "confidence": 0.9,
        "importance": "high",
        "scope": {"project": "shop", "session": "s1"},
        "source": "test",
        "key": "k1",
        "created_at": "2026-05-01T12:00:00Z",
        "pinned": True,
        "sensitive": True,
        "metadata": {"path": "docs/db.md"},
    }
    answer = client.post("/v1/memories", json=sent)
    assert (answer.status_code, answer.json()["action"]) == (201, "added")
    found = client.get(f"/v1/memories/{answer.json()['id']}").json()
    assert {**sent, "importance": 0.9} == {name: found[name] for name in sent}


def test_a_duplicate_is_merged_and_not_created(client: TestClient) -> None:
    first = remember(client, "Deploys happen on Tuesdays")
    again = client.post("/v1/memories", json={"content": "Deploys happen on Tuesdays", "confidence": 0.95})
    assert again.status_code == 200
    assert again.json()["action"] == "merged"
    assert again.json()["duplicate_of"] == first
    apart = client.post("/v1/memories", json={"content": "Deploys happen on Tuesdays", "dedupe": False})
    assert apart.status_code == 201


def test_the_same_idempotency_key_writes_once(client: TestClient) -> None:
    sent = {"json": {"content": "The cache has 4 GB"}, "headers": {"Idempotency-Key": "once"}}
    first, again = client.post("/v1/memories", **sent), client.post("/v1/memories", **sent)
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["id"] == again.json()["id"]
    assert again.json()["action"] == "skipped"
    assert len(client.get("/v1/memories").json()["memories"]) == 1
    differ = client.post("/v1/memories", json={"content": "x", "key": "other"}, headers={"Idempotency-Key": "once"})
    problem(differ, 422, "invalid-input", "key")


def test_a_repeated_batch_with_a_key_writes_once(client: TestClient) -> None:
    batch = {"memories": [{"content": f"Fact number {one} about ports"} for one in range(3)], "dedupe": False}
    first = client.post("/v1/memories/batch", json=batch, headers={"Idempotency-Key": "b"}).json()["receipts"]
    again = client.post("/v1/memories/batch", json=batch, headers={"Idempotency-Key": "b"}).json()["receipts"]
    assert [one["action"] for one in first] == ["added"] * 3
    assert [one["id"] for one in again] == [one["id"] for one in first]


def test_a_wrong_field_is_told_by_its_name_in_words(client: TestClient) -> None:
    """Not by the names that a validator gives to the kinds of value that were tried."""
    huge = client.post("/v1/memories", json={"content": "x", "importance": "huge"})
    told = "Input should be a valid number, or: Input should be 'high', 'medium' or 'low'"
    assert problem(huge, 422, "invalid-input", "importance")["errors"] == [{"field": "importance", "message": told}]
    kinds = client.post("/v1/recall", json={"query": "x", "type": [""]})
    assert {one["field"] for one in problem(kinds, 422, "invalid-input", "type")["errors"]} == {"type", "type[0]"}
    late = client.post("/v1/memories", json={"content": "x", "created_at": "yesterday"})
    assert problem(late, 422, "invalid-input", "created_at")["detail"].startswith("created_at: 'yesterday' is not")


def test_one_invalid_memory_keeps_the_whole_batch_out(client: TestClient) -> None:
    """The bad one stands behind more memories than one transaction takes."""
    batch = [{"content": f"Fact {one}"} for one in range(300)]
    answer = client.post("/v1/memories/batch", json={"memories": [*batch, {"content": "x", "key": "a\nb"}]})
    problem(answer, 422, "invalid-input", "memories[300].key")
    assert client.get("/v1/stats").json()["memories"] == 0


def test_capture_keeps_what_is_marked(client: TestClient) -> None:
    text = "Some talk.\n[MEMORY] type=gotcha tags=db: The pool has 20 connections\nMore talk."
    receipts = client.post("/v1/capture", json={"text": text, "scope": {"project": "shop"}}).json()["receipts"]
    found = client.get(f"/v1/memories/{receipts[0]['id']}").json()
    assert (found["content"], found["type"], found["tags"]) == ("The pool has 20 connections", "gotcha", ["db"])
    assert found["scope"]["project"] == "shop"


def test_a_page_goes_on_where_it_was_after_its_last_memory_was_forgotten(client: TestClient) -> None:
    ids = [remember(client, f"Fact {one}", dedupe=False, created_at=f"2026-05-0{one}") for one in (4, 3, 2, 1)]
    page = client.get("/v1/memories", params={"limit": "2"}).json()
    assert client.delete(f"/v1/memories/{ids[1]}").status_code == 204
    rest = client.get("/v1/memories", params={"limit": "2", "cursor": page["next_cursor"]}).json()
    assert ([one["id"] for one in rest["memories"]], rest["next_cursor"]) == (ids[2:], None)
    by_id = client.get("/v1/memories", params={"cursor": ids[2]}).json()["memories"]
    assert [one["id"] for one in by_id] == ids[3:], "a mere id will do while it is there"


def test_pages_hold_every_memory_once(client: TestClient) -> None:
    ids = {remember(client, f"Fact {one}", dedupe=False, tags=["even"] if one % 2 == 0 else []) for one in range(7)}
    seen: list[str] = []
    cursor = None
    for _ in range(10):
        query = {"limit": "3", **({"cursor": cursor} if cursor else {})}
        page = client.get("/v1/memories", params=query).json()
        seen += [one["id"] for one in page["memories"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert len(seen) == 7
    assert set(seen) == ids
    assert len(client.get("/v1/memories", params={"tag": "even"}).json()["memories"]) == 4


def test_a_list_is_narrowed_by_every_filter(client: TestClient) -> None:
    kept = remember(
        client,
        "Kept",
        type="decision",
        tags=["a", "b"],
        scope={"namespace": "n", "project": "p", "session": "s"},
        created_at="2026-05-01T00:00:00Z",
    )
    full = {
        "namespace": "n", "project": "p", "session": "s", "type": "decision", "tag": "a",
        "after": "2026-04-30T00:00:00Z", "before": "2026-05-02T00:00:00Z",
    }  # fmt: skip
    assert [one["id"] for one in client.get("/v1/memories", params=full).json()["memories"]] == [kept]
    for name, other in {
        "namespace": "m", "project": "q", "session": "t", "type": "fact", "tag": "c",
        "after": "2026-05-03T00:00:00Z", "before": "2026-04-01T00:00:00Z",
    }.items():  # fmt: skip
        assert client.get("/v1/memories", params={**full, name: other}).json()["memories"] == [], name


def test_reading_does_not_count_as_using_but_expanding_does(client: TestClient) -> None:
    one, other = remember(client, "Alpha service owns the queue"), remember(client, "Beta reads from a topic")
    assert client.post("/v1/links", json={"source": one, "type": "see-also", "target": other}).status_code == 201
    client.get(f"/v1/memories/{one}")
    expanded = client.get(f"/v1/memories/{one}", params={"expand": "true"}).json()
    assert [link["target"] for link in expanded["links"]] == [other]
    assert [memory["id"] for memory in expanded["neighbours"]] == [other]
    door_of(client).engine.upkeep()
    assert client.get(f"/v1/memories/{one}").json()["access_count"] == 1


def test_a_patch_with_an_old_etag_changes_nothing(client: TestClient) -> None:
    id = remember(client, "The limit is 10")
    etag = client.get(f"/v1/memories/{id}").headers["etag"]
    changed = client.patch(f"/v1/memories/{id}", json={"content": "The limit is 20"}, headers={"If-Match": etag})
    assert changed.status_code == 200
    assert changed.headers["etag"] != etag
    late = client.patch(f"/v1/memories/{id}", json={"content": "The limit is 30"}, headers={"If-Match": etag})
    problem(late, 412, "outdated")
    assert client.get(f"/v1/memories/{id}").json()["content"] == "The limit is 20"
    either = client.patch(
        f"/v1/memories/{id}", json={"pinned": True}, headers={"If-Match": f"{etag}, {changed.headers['etag']}"}
    )
    assert either.json()["pinned"] is True
    for useless in (f"W/{either.headers['etag']}", '"x"', "nonsense"):
        answer = client.patch(f"/v1/memories/{id}", json={"pinned": False}, headers={"If-Match": useless})
        problem(answer, 412, "outdated")
    assert client.patch(f"/v1/memories/{id}", json={"pinned": False}, headers={"If-Match": "*"}).status_code == 200


def test_a_delete_with_an_old_etag_deletes_nothing(client: TestClient) -> None:
    id = remember(client, "The limit is 10")
    etag = client.get(f"/v1/memories/{id}").headers["etag"]
    changed = client.patch(f"/v1/memories/{id}", json={"content": "The limit is 20"}).headers["etag"]
    for useless in (etag, f"W/{changed}", "nonsense"):
        problem(client.delete(f"/v1/memories/{id}", headers={"If-Match": useless}), 412, "outdated")
    assert client.get(f"/v1/memories/{id}").json()["content"] == "The limit is 20"
    assert client.delete(f"/v1/memories/{id}", headers={"If-Match": f"{etag}, {changed}"}).status_code == 204
    problem(client.delete(f"/v1/memories/{id}", headers={"If-Match": changed}), 404, "not-found")


def test_a_patch_changes_what_it_names_and_nothing_else(client: TestClient) -> None:
    id = remember(client, "A fact", key="k", tags=["x"], scope={"project": "p"})
    before = client.get(f"/v1/memories/{id}").json()
    after = client.patch(f"/v1/memories/{id}", json={"key": None, "tags": ["y"]}).json()
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"key", "tags", "updated_at", "version"}
    problem(client.patch(f"/v1/memories/{id}", json={"content": None}), 422, "invalid-input", "content")
    taken = remember(client, "Quite another thing", key="taken")
    conflict = problem(client.patch(f"/v1/memories/{id}", json={"key": "taken"}), 409, "conflict")
    assert conflict["existing_id"] == taken


def test_a_forgotten_memory_is_gone(client: TestClient) -> None:
    id = remember(client, "To be forgotten")
    answer = client.delete(f"/v1/memories/{id}")
    assert (answer.status_code, answer.content) == (204, b"")
    problem(client.get(f"/v1/memories/{id}"), 404, "not-found")
    problem(client.delete(f"/v1/memories/{id}"), 404, "not-found")
    problem(client.patch(f"/v1/memories/{id}", json={"pinned": True}), 404, "not-found")
    problem(client.post("/v1/links", json={"source": id, "type": "part-of", "target": "x"}), 404, "not-found")
    problem(client.get("/v1/memories", params={"cursor": id}), 404, "not-found")


def test_recall_gives_the_documented_answer(client: TestClient) -> None:
    id = remember(client, "We use PostgreSQL 16 in production", tags=["db"])
    remember(client, "The office plants need water")
    answer = client.post("/v1/recall", json={"query": "postgresql production", "limit": 1, "rendered": True}).json()
    assert [hit["id"] for hit in answer["hits"]] == [id]
    assert answer["hits"][0]["contributions"][0]["list"]
    assert answer["trace"]["mode_used"] == answer["mode"]
    assert "PostgreSQL" in answer["rendered"]
    excluded = client.post("/v1/recall", json={"query": "postgresql", "mode": "bm25", "exclude": [id]}).json()
    assert id not in [hit["id"] for hit in excluded["hits"]]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "query"),
        ({"query": "x" * 4097}, "query"),
        ({"query": "x", "limit": 0}, "limit"),
        ({"query": "x", "limit": 201}, "limit"),
        ({"query": "x", "limit": "5"}, "limit"),
        ({"query": "x", "mode": "psychic"}, "mode"),
        ({"query": "x", "profile": "../../etc/passwd"}, "profile"),
        ({"query": "x", "profile": "other.toml"}, "profile"),
        ({"query": "x", "profile": "nowhere"}, "profile"),
        ({"query": "x", "unknown": 1}, "unknown"),
        ({"query": "x", "now": "yesterday-ish"}, "now"),
        ({"query": "x", "options": {"fusion.k": -1}}, "fusion.k"),
        ({"query": "x", "scope": {"namespace": "UPPER"}}, "scope.namespace"),
    ],
)
def test_a_wrong_recall_names_the_field(client: TestClient, body: dict[str, Any], field: str) -> None:
    problem(client.post("/v1/recall", json=body), 422, "invalid-input", field)


@pytest.mark.covers("live.settings")
def test_settings_are_checked_live_and_kept(home: Path) -> None:
    with served(home) as client:
        remember(client, "The zebra crossing rule applies", scope={"session": "1"})
        assert client.get("/settings").json() == {"semanticWeight": 1.0, "keywordWeight": 0.0}
        search = {"q": "zebra", "sessionIds": "1"}
        assert client.get("/episodes/search", params=search).json()["hits"] == []
        problem(client.patch("/settings", json={"keywordWeight": 9}), 422, "invalid-input", "keywordWeight")
        problem(
            client.patch("/settings", json={"keywordWeight": 1.0, "semanticWeight": "x"}),
            422, "invalid-input", "semanticWeight",
        )  # fmt: skip
        problem(client.patch("/settings", json={"volume": 1}), 422, "invalid-input", "volume")
        assert client.get("/settings").json()["keywordWeight"] == 0.0
        assert client.patch("/settings", json={"keywordWeight": 1.0}).json()["keywordWeight"] == 1.0
        assert len(client.get("/episodes/search", params=search).json()["hits"]) == 1
    with served(home) as client:
        assert client.get("/settings").json()["keywordWeight"] == 1.0
        assert len(client.get("/episodes/search", params=search).json()["hits"]) == 1


@pytest.mark.covers("live.scope")
def test_episodes_are_searched_in_the_sessions_named(client: TestClient) -> None:
    client.patch("/settings", json={"keywordWeight": 1.0})
    ids = {
        name: remember(client, f"The zebra of session {name}", scope={"session": name}, type="episode")
        for name in ("1", "2", "3")
    }
    shared = {
        name: remember(client, f"A zebra of {name}", scope={"session": name, "project": "zoo"}, type="episode")
        for name in ("8", "9")
    }

    def found(**query: str) -> set[str]:
        answer = client.get("/episodes/search", params={"q": "zebra", "limit": "50", **query})
        return {hit["id"] for hit in answer.json()["hits"]}

    assert found(sessionIds="1,2") == {ids["1"], ids["2"]}
    assert found(sessionIds="3") == {ids["3"]}
    assert found(sessionIds="8") == set(shared.values())
    assert found(sessionIds="1, 2", recentIds=ids["2"]) == {ids["1"]}
    assert found() == {*ids.values(), *shared.values()}


@pytest.mark.parametrize("field", ["sessionIds", "recentIds"])
def test_too_many_names_of_a_search_are_refused_by_their_field(client: TestClient, field: str) -> None:
    answer = client.get("/episodes/search", params={"q": "zebra", field: ",".join(map(str, range(1001)))})
    assert (answer.status_code, answer.json()["field"]) == (422, field)


@pytest.mark.covers("two-stage.top3", "two-stage.topic-gate")
def test_recollect_writes_the_session_file_and_keeps_the_topic(client: TestClient, home: Path) -> None:
    for one in range(5):
        remember(client, f"PostgreSQL fact number {one} about replicas", dedupe=False)
    door_of(client).engine.upkeep()
    asked = {"prompt": "PostgreSQL replicas", "session_id": "s/1", "cwd": "/somewhere"}
    first = client.post("/recollect", json=asked).json()
    assert first["fresh"] is True
    assert len(first["ids"]) == 3
    assert first["text"].startswith("<recalled-memories>")
    assert len(list((home / "recollections").glob("*.json"))) == 1
    again = client.post("/recollect", json=asked).json()
    assert (again["fresh"], again["ids"]) == (False, first["ids"])
    assert client.post("/recollect", json={**asked, "force": True}).json()["fresh"] is True
    others = client.post("/recollect", json={**asked, "force": True, "exclude": first["ids"]}).json()
    assert set(others["ids"]).isdisjoint(first["ids"])
    problem(client.post("/recollect", json={"prompt": "x"}), 422, "invalid-input", "session_id")


def test_a_recollection_of_nothing_does_not_stand(client: TestClient) -> None:
    asked = {"prompt": "PostgreSQL replicas", "session_id": "s"}
    assert client.post("/recollect", json=asked).json()["ids"] == []
    id = remember(client, "PostgreSQL has replicas")
    assert client.post("/recollect", json=asked).json()["ids"] == [id]


def test_how_many_memories_a_prompt_gets_is_a_setting(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECOLLECT_RECOLLECT_LIMIT", "2")
    with served(home) as client:
        for one in range(5):
            remember(client, f"PostgreSQL fact number {one} about replicas", dedupe=False)
        asked = {"prompt": "PostgreSQL replicas", "session_id": "s", "force": True}
        assert len(client.post("/recollect", json=asked).json()["ids"]) == 2
        assert len(client.post("/recollect", json={**asked, "limit": 4}).json()["ids"]) == 4


def test_the_topic_gate_is_a_setting(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECOLLECT_TOPIC_GATE", "false")
    with served(home) as client:
        remember(client, "PostgreSQL has replicas")
        asked = {"prompt": "PostgreSQL replicas", "session_id": "s"}
        assert [client.post("/recollect", json=asked).json()["fresh"] for _ in range(2)] == [True, True]


def test_ask_streams_an_answer_with_citations(client: TestClient) -> None:
    id = remember(client, "The nightly backup goes to Stockholm. It takes two hours.")
    answer = client.post("/v1/ask", json={"question": "Where does the nightly backup go?"})
    assert answer.headers["content-type"].startswith("text/event-stream")
    events = events_of(answer.text)
    names = [name for name, _ in events]
    assert names[0] == "retrieve"
    assert names[-1] == "done"
    done = events[-1][1]
    assert done["found"] is True
    assert "".join(data["text"] for name, data in events if name == "answer_delta") == done["text"]
    assert [data["id"] for name, data in events if name == "citation"] == [id]
    assert "Stockholm" in done["text"]
    unknown = events_of(client.post("/v1/ask", json={"question": "Who won the chess olympiad?"}).text)[-1][1]
    assert (unknown["found"], unknown["citations"]) == (False, [])
    problem(client.post("/v1/ask", json={"question": "  "}), 422, "invalid-input", "question")
    problem(client.post("/v1/ask", json={"question": "x", "profile": "nowhere"}), 422, "invalid-input", "profile")


def test_consolidate_reports_and_its_dry_run_changes_nothing(client: TestClient) -> None:
    for _ in range(2):
        remember(client, "The build cache lives on the NAS", dedupe=False)
    dry = client.post("/v1/consolidate", json={"dry_run": True}).json()
    assert (len(dry["merges"]), dry["dry_run"]) == (1, True)
    assert len(client.post("/v1/consolidate", json={}).json()["merges"]) == 1
    assert client.post("/v1/consolidate", json={}).json()["merges"] == []


def test_consolidate_looks_at_one_namespace(client: TestClient) -> None:
    for _ in range(2):
        remember(client, "The build cache lives on the NAS", dedupe=False, scope={"namespace": "team"})
    assert client.post("/v1/consolidate", json={}).json()["examined"] == 0
    assert len(client.post("/v1/consolidate", json={"namespace": "team"}).json()["merges"]) == 1
    problem(client.post("/v1/consolidate", json={"namespace": "?"}), 422, "invalid-input", "namespace")


def test_metrics_count_nothing_that_they_do_not_tell(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    remember(client, "One fact")
    monkeypatch.delattr(type(door_of(client).engine.store.care), "stats")
    assert "recollect_memories 1.0" in client.get("/metrics").text


def test_stats_health_and_metrics(client: TestClient) -> None:
    remember(client, "One fact")
    client.post("/v1/recall", json={"query": "fact", "mode": "bm25"})
    stats = client.get("/v1/stats").json()
    assert (stats["memories"], stats["embedding"]["pending"]) == (1, 1)
    assert client.get("/healthz").json() == {"status": "ok"}
    assert client.get("/readyz").json() == {"status": "ready"}
    page = client.get("/metrics").text
    for line in (
        'recollect_requests_total{method="POST",route="/v1/memories",status="201"} 1.0',
        'recollect_recalls_total{mode="bm25"} 1.0',
        'recollect_writes_total{action="added"} 1.0',
        'recollect_outbox{state="pending"} 1.0',
        "recollect_memories 1.0",
    ):
        assert line in page
    door_of(client).stop()
    problem(client.get("/readyz"), 503, "stopping")


@pytest.mark.parametrize(
    ("content", "status", "slug"),
    [
        (b"{", 400, "malformed"),
        (b"", 422, "invalid-input"),
        (b'{"content": "\xff"}', 400, "malformed"),
        (b"[" * 100_000, 400, "malformed"),
        (b'{"content": "\\ud800"}', 422, "invalid-input"),
        (b'{"content": "x", "confidence": NaN}', 422, "invalid-input"),
        (b'{"content": "x", "metadata": {"a": Infinity}}', 422, "invalid-input"),
        (b'{"content": "a\\u0000b"}', 422, "invalid-input"),
        (b"[]", 422, "invalid-input"),
        (b'"text"', 422, "invalid-input"),
    ],
)
def test_hostile_bodies_get_a_problem(client: TestClient, content: bytes, status: int, slug: str) -> None:
    answer = client.post("/v1/memories", content=content, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["type"]) == (status, f"urn:recollect:problem:{slug}")
    assert client.get("/v1/stats").json()["memories"] == 0


def test_unknown_routes_and_methods_are_problems(client: TestClient) -> None:
    problem(client.get("/nowhere"), 404, "no-route")
    wrong = client.request("DELETE", "/settings")
    problem(wrong, 405, "wrong-method")
    assert wrong.headers["allow"] == "GET, HEAD, PATCH"


@pytest.mark.covers("prior.sensitive")
def test_what_is_made_for_a_prompt_holds_nothing_sensitive_and_hits_tell_what_is(client: TestClient) -> None:
    client.post("/v1/memories", json={"content": "The vault code of the office is 4711", "sensitive": True})
    client.post("/v1/memories", json={"content": "The office opens at nine"})
    recalled = client.post("/v1/recall", json={"query": "vault code office", "rendered": True}).json()
    assert sorted(hit["sensitive"] for hit in recalled["hits"]) == [False, True]
    assert "4711" not in recalled["rendered"] and "nine" in recalled["rendered"]
    one = client.post("/v1/recall", json={"query": "vault code office", "rendered": True, "limit": 1}).json()
    assert one["hits"][0]["sensitive"] and "nine" in one["rendered"], "the next best has its place in the block"
    recollected = client.post("/recollect", json={"prompt": "vault code office", "session_id": "s1"}).json()
    assert "4711" not in recollected["text"] and "nine" in recollected["text"]
