"""Qdrant as a mirror of a store's vectors: it follows, may be behind, heals, and never decides what is true."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import apsw
import numpy as np
import pytest
from qdrant_client import QdrantClient
from sqlite_cases import embed, note, put, vectors_of

import recollect
from recollect.domain.changes import Erase, Put
from recollect.domain.errors import InvalidInput, StoreUnavailable
from recollect.domain.memory import EPOCH, Memory, Scope
from recollect.domain.question import Filter
from recollect.encoders.fake import FakeEmbedder
from recollect.ports import Store
from recollect.stores.memory import open_memory
from recollect.stores.qdrant import with_qdrant
from recollect.stores.qdrant.server import Server
from recollect.stores.sqlite import open_sqlite
from recollect.upkeep.embedding import embed_backlog
from recollect.writing import WritePolicy

EAST = np.array([1.0, 0.0], dtype=np.float32)
MODEL = "m"


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Store]:
    store = open_sqlite(tmp_path / "s.db")
    yield store
    store.close()


@pytest.fixture
def mirrored(own: Store, tmp_path: Path) -> Store:
    return with_qdrant(own, str(tmp_path / "qdrant"))


def filled(store: Store, count: int = 5) -> list[Memory]:
    memories = [note(f"n{number}", f"text {number}", project=f"p{number % 2}") for number in range(count)]
    put(store, *memories)
    for number, memory in enumerate(memories):
        length = math.hypot(1, number)
        embed(store, memory, 1 / length, number / length)
    return memories


def found(store: Store, filter: Filter = Filter(), limit: int = 10) -> list[str]:  # noqa: B008
    return [hit.id for hit in vectors_of(store).search(MODEL, EAST, filter, limit)]


def findings(store: Store, repair: bool = False) -> list[tuple[str, bool]]:
    return [(one.kind, one.repaired) for one in store.care.check(repair)]


def points(folder: Path) -> int:
    """How many points the embedded form holds on disk, seen by another client after it was closed."""
    client = QdrantClient(path=str(folder))
    try:
        return sum(client.count(one.name).count for one in client.get_collections().collections)
    finally:
        client.close()


@pytest.mark.covers("live.vectors")
def test_the_vector_leg_runs_on_qdrant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole product on it: the dense leg's answer comes from Qdrant and equals that of the store alone."""
    asked: list[str] = []
    nearest = Server.nearest

    def noted(self: Server, model: str, *rest: object) -> list[str]:
        asked.append(model)
        return nearest(self, model, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(Server, "nearest", noted)
    texts = ["deploys run from the staging branch", "the cat sleeps all day", "rollbacks need two approvals"]
    answers = []
    for place in ("", str(tmp_path / "qdrant")):
        monkeypatch.setenv("RECOLLECT_QDRANT", place)
        home = tmp_path / ("with" if place else "without")
        with recollect.open(
            home / "s.db", embedder="fake", profile="live-weights", home=home, background=False
        ) as memory:
            for text in texts:
                memory.remember(text, key=text)
            memory.upkeep()
            answer = memory.recall("who approves a rollback?", mode="semantic")
            answers.append([(hit.memory.content, hit.score) for hit in answer.hits])
        assert bool(asked) is bool(place)
    assert answers[0] == answers[1] != []


def test_changes_are_followed_at_once(mirrored: Store) -> None:
    memories = filled(mirrored)
    assert found(mirrored, limit=2) == ["n0", "n1"]
    assert found(mirrored, Filter(project="p1")) == ["n1", "n3"]
    mirrored.records.write([Put(replace(memories[0], scope=Scope(project="p1")), expected_version=1), Erase("n1")])
    assert found(mirrored, Filter(project="p1")) == ["n0", "n3"]
    mirrored.records.write([Put(replace(memories[3], content="another text"), expected_version=1)])
    assert found(mirrored, Filter(project="p1")) == ["n0"]
    assert findings(mirrored) == []


def test_an_erased_memory_leaves_nothing_in_qdrant(mirrored: Store, own: Store, tmp_path: Path) -> None:
    filled(mirrored, 3)
    mirrored.records.write([Erase("n0"), Erase("n1"), Erase("n2")])
    mirrored.close()
    assert points(tmp_path / "qdrant") == 0


@pytest.mark.parametrize("hidden", [False, True])
def test_what_is_erased_or_hidden_while_its_vectors_come_does_not_stay_in_qdrant(
    mirrored: Store, own: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hidden: bool
) -> None:
    usual = Server.put

    def late(self: Server, model: str, made: Any) -> None:
        for memory in own.records.fetch(["n0"]):
            if not memory.sensitive:
                secret = Put(replace(memory, sensitive=True), expected_version=memory.version)
                mirrored.records.write([secret if hidden else Erase("n0")])
        usual(self, model, made)

    monkeypatch.setattr(Server, "put", late)
    filled(mirrored, 1)
    mirrored.close()
    assert points(tmp_path / "qdrant") == 0


def test_what_qdrant_missed_is_found_and_healed(own: Store, mirrored: Store) -> None:
    memories = filled(own, 6)  # past the mirror
    assert found(mirrored) == []
    assert findings(mirrored) == [("qdrant-missing", False)]
    assert findings(mirrored, repair=True) == [("qdrant-missing", True)]
    assert findings(mirrored) == [] and found(mirrored) == [memory.id for memory in memories]
    own.records.write([Put(replace(memories[0], tags=("new",)), expected_version=1), Erase("n5")])
    assert findings(mirrored, repair=True) == [("qdrant-left-over", True), ("qdrant-stale", True)]
    assert findings(mirrored) == [] and found(mirrored, Filter(tags=("new",))) == ["n0"]


def test_what_is_out_of_date_in_qdrant_is_no_answer(own: Store, mirrored: Store) -> None:
    memories = filled(mirrored, 4)
    own.records.write([Erase("n0"), Put(replace(memories[1], type="secret"), expected_version=1)])
    assert found(mirrored, Filter(without_types=("secret",))) == ["n2", "n3"]


def test_going_round_heals_a_piece_at_a_time(own: Store, mirrored: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recollect.stores.qdrant.mirror.PAGE", 2)
    filled(own, 5)
    healed = [mirrored.care.tidy()["mirrored"] for _ in range(4)]
    assert healed[:3] == [2, 2, 1] and findings(mirrored) == []


def test_an_outage_costs_the_leg_and_no_write(own: Store, tmp_path: Path) -> None:
    mirrored = with_qdrant(own, "http://127.0.0.1:9")
    memories = filled(mirrored, 3)
    mirrored.records.write([Erase("n2")])
    assert [one.id for one in vectors_of(own).stored(MODEL, [memory.id for memory in memories])] == ["n0", "n1"]
    with pytest.raises(StoreUnavailable, match="Qdrant does not answer"):
        found(mirrored)
    assert findings(mirrored) == [("qdrant-unreachable", False)]


def test_a_refused_key_is_called_so_and_plain_http_is_nobodys_business(
    own: Store, recwarn: pytest.WarningsRecorder
) -> None:
    class Guarded(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(401)

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Guarded) as server:
        serving = Thread(target=server.serve_forever)
        serving.start()
        mirrored = with_qdrant(own, f"http://127.0.0.1:{server.server_port}", key="wrong")
        filled(mirrored, 1)
        with pytest.raises(StoreUnavailable, match="refuses the key") as caught:
            found(mirrored)
        server.shutdown()
        serving.join()
    assert "RECOLLECT_QDRANT_KEY" in caught.value.hint
    assert not recwarn.list


def test_an_outage_holds_up_no_embedding(own: Store) -> None:
    mirrored = with_qdrant(own, "http://127.0.0.1:9")
    put(mirrored, *(note(f"n{number}", f"our rule number {number} says nothing") for number in range(3)))
    done = embed_backlog(mirrored, FakeEmbedder(), now=EPOCH, policy=WritePolicy(), batch=1)
    assert (done.embedded, done.remaining, done.stopped) == (3, 0, None)


def test_what_qdrant_could_not_take_is_owed_and_paid(
    own: Store, mirrored: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    memories = filled(mirrored, 3)
    with monkeypatch.context() as outage:

        def refuse(*_: object) -> None:
            raise StoreUnavailable("down")

        outage.setattr(Server, "drop_memories", refuse)
        mirrored.records.write([Put(replace(memories[0], scope=Scope(project="moved")), expected_version=1)])
    assert found(mirrored, Filter(project="moved")) == []
    mirrored.care.tidy()
    assert found(mirrored, Filter(project="moved")) == ["n0"]


def test_a_collection_that_somebody_took_away_is_made_anew(
    own: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clients: list[QdrantClient] = []
    usual = QdrantClient

    def noted(**place: object) -> QdrantClient:
        clients.append(usual(**place))  # type: ignore[arg-type]
        return clients[-1]

    monkeypatch.setattr("recollect.stores.qdrant.server.QdrantClient", noted)
    mirrored = with_qdrant(own, str(tmp_path / "qdrant"))
    filled(mirrored, 3)
    (collection,) = clients[0].get_collections().collections
    clients[0].delete_collection(collection.name)  # as another process does that has the model forgotten
    embed(mirrored, note("n0", "text 0"), 1.0, 0.0)
    mirrored.care.tidy()
    assert found(mirrored) == ["n0", "n1", "n2"]
    assert findings(mirrored) == []


def test_vectors_of_another_length_take_the_place_of_what_is_left_of_the_old_ones(own: Store, mirrored: Store) -> None:
    (memory,) = filled(mirrored, 1)
    vectors_of(own).forget(MODEL)  # Qdrant was away
    embed(mirrored, memory, 0.0, 0.0, 1.0)
    mirrored.care.tidy()
    north = np.array([0.0, 0.0, 1.0], dtype=np.float32)
    assert [hit.id for hit in vectors_of(mirrored).search(MODEL, north, Filter(), 10)] == ["n0"]
    assert findings(mirrored) == []


def test_turns_that_were_embedded_with_an_erased_one_leave_qdrant_with_it(own: Store, mirrored: Store) -> None:
    turns = [note(f"t{number}", f"turn {number}", type="episode", session="s") for number in range(5)]
    put(mirrored, *turns)
    for turn in turns:
        embed(mirrored, turn, 1.0, 0.0)
    mirrored.records.write([Erase("t1")])
    assert [one.id for one in vectors_of(own).stored(MODEL, [turn.id for turn in turns])] == ["t0", "t4"]
    assert findings(mirrored) == []
    put(mirrored, note("t0a", "turn between", type="episode", session="s", created_at=turns[0].created_at))
    mirrored.records.write([Put(replace(turns[0], content="another"), expected_version=1)])
    assert findings(mirrored) == []


def test_a_name_that_begins_like_another_leaves_its_collections_alone(tmp_path: Path) -> None:
    folder = str(tmp_path / "qdrant")
    other = with_qdrant(open_sqlite(tmp_path / "b.db"), folder, collection="team-a")
    filled(other, 3)
    other.close()
    one = with_qdrant(open_sqlite(tmp_path / "a.db"), folder, collection="team")
    filled(one, 2)
    one.records.write([Erase("n1")])
    assert findings(one, repair=True) == []
    one.close()
    assert points(tmp_path / "qdrant") == 4


def test_two_stores_share_a_server_under_two_names(tmp_path: Path) -> None:
    stores = [open_sqlite(tmp_path / "a.db"), open_sqlite(tmp_path / "b.db")]
    first = with_qdrant(stores[0], str(tmp_path / "qdrant"), collection="a")
    filled(first, 2)
    first.close()
    second = with_qdrant(stores[1], str(tmp_path / "qdrant"), collection="b")
    assert found(second) == [] and findings(second, repair=True) == []
    second.close()
    assert points(tmp_path / "qdrant") == 2


def test_a_store_without_vectors_and_a_bad_place_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="keeps no vectors"):
        with_qdrant(replace(open_memory(), vectors=None), ":memory:")
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(InvalidInput, match="Qdrant cannot be opened"):
        with_qdrant(open_memory(), str(tmp_path / "file"))


def test_a_damaged_vector_fails_no_write_no_upkeep_and_no_check(own: Store, mirrored: Store, tmp_path: Path) -> None:
    filled(mirrored)
    file = apsw.Connection(str(tmp_path / "s.db"))
    file.execute("UPDATE vectors SET checksum = checksum + 1")
    file.close()
    (memory,) = own.records.fetch(["n0"])
    mirrored.records.write([Put(replace(memory, tags=("new",)), expected_version=memory.version)])
    assert own.records.fetch(["n0"])[0].tags == ("new",)
    mirrored.care.tidy()
    assert {"vector", "qdrant-unchecked"} <= {kind for kind, _ in findings(mirrored)}
    mirrored.care.check(repair=True)
    assert findings(mirrored) == []


def test_two_may_tidy_at_once(mirrored: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(mirrored)
    asked, beside = Server.prints, list[dict[str, int]]()

    def slowly(self: Server, *given: Any) -> Any:
        if not beside:
            beside.append({})
            other = Thread(target=lambda: beside.append(mirrored.care.tidy()))
            other.start()
            other.join()
        return asked(self, *given)

    monkeypatch.setattr(Server, "prints", slowly)
    mirrored.care.tidy()
    assert beside[1]["mirrored"] == 0
