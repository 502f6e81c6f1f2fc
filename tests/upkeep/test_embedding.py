"""The outbox is emptied in bounded steps; neither a bad text nor a dead model loses anything."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import count
from typing import Any, cast

import pytest
from upkeep_cases import NOW, Alike, Choking, Nonsense, get, keep

from recollect.domain.changes import Change, Erase, Put
from recollect.domain.errors import ModelUnavailable
from recollect.domain.memory import Scope
from recollect.domain.question import Filter
from recollect.encoders.fake import FakeEmbedder
from recollect.ports import Embedder, Matrix, Store, VectorIndex
from recollect.upkeep import EmbedReport, embed_backlog
from recollect.writing import Draft, WritePolicy, link, remember

POLICY = WritePolicy()
PLAIN = WritePolicy(dedupe=False)
TEXTS = [f"fact number {n} about topic {chr(97 + n)}" for n in range(10)]


def found(store: Store, embedder: Embedder, text: str) -> str | None:
    assert store.vectors is not None
    hits = store.vectors.search(embedder.id, embedder.embed_query(text), Filter(), 1)
    return hits[0].id if hits else None


def supersedes(store: Store) -> list[tuple[str, str]]:
    assert store.links is not None
    ids = [memory.id for memory in store.records.scan(Filter(), "id", 1000)]
    return [(link.source, link.target) for link in store.links.links(ids) if link.type == "supersedes"]


def test_a_backlog_is_counted_only_for_those_who_are_told(store: Store) -> None:
    keep(store, "one", "two")
    counted: list[str] = []
    vectors = store.vectors

    class Counting:
        def __getattr__(self, name: str) -> object:
            counted.append(name)
            return getattr(vectors, name)

    watched = replace(store, vectors=cast(VectorIndex, Counting()))
    assert embed_backlog(watched, FakeEmbedder(), now=NOW, policy=POLICY).embedded == 2
    assert counted.count("progress") == 1, "for what remains"


@pytest.mark.covers("more.late-embedding")
def test_a_write_is_findable_by_words_at_once_and_by_meaning_after_upkeep(store: Store) -> None:
    embedder = FakeEmbedder()
    remember(store, Draft("Checkpoints stall"), id="m1", now=NOW, policy=POLICY)
    assert store.text is not None
    assert store.text.frequencies(store.text.tokens("stall")) == [1]
    assert found(store, embedder, "Checkpoints stall") is None
    report = embed_backlog(store, embedder, now=NOW, policy=POLICY)
    assert report == EmbedReport(embedded=1)
    assert found(store, embedder, "Checkpoints stall") == "m1"


def test_the_backlog_is_emptied_in_batches_with_progress_and_again_does_nothing(store: Store) -> None:
    keep(store, *TEXTS)
    told: list[tuple[int, int]] = []
    embedder = Choking()
    report = embed_backlog(
        store, embedder, now=NOW, policy=PLAIN, batch=4, progress=lambda done, known: told.append((done, known))
    )
    assert report == EmbedReport(embedded=10)
    assert told == [(4, 10), (8, 10), (10, 10)]
    assert embedder.calls == 3
    assert embed_backlog(store, embedder, now=NOW, policy=PLAIN) == EmbedReport()
    assert embedder.calls == 3


def test_bounds_end_a_run_and_the_next_goes_on(store: Store) -> None:
    keep(store, *TEXTS)
    embedder = FakeEmbedder()
    timed = embed_backlog(store, embedder, now=NOW, policy=PLAIN, batch=7, budget_seconds=0.0)
    assert timed == EmbedReport(embedded=7, remaining=3, stopped="out of time")
    calls = count()
    stopped = embed_backlog(store, embedder, now=NOW, policy=PLAIN, batch=1, stop=lambda: next(calls) == 2)
    assert stopped == EmbedReport(embedded=2, remaining=1, stopped="asked to stop")
    assert embed_backlog(store, embedder, now=NOW, policy=PLAIN) == EmbedReport(embedded=1)


@pytest.mark.parametrize("error", [ModelUnavailable, ValueError])
def test_a_poisoned_text_is_isolated_recorded_and_tried_again(
    store: Store, error: type[Exception], caplog: pytest.LogCaptureFixture
) -> None:
    keep(store, *TEXTS[:5], "poison pill", *TEXTS[5:])
    embedder = Choking("poison", error=error)
    with caplog.at_level(logging.INFO, logger="recollect"):
        report = embed_backlog(store, embedder, now=NOW, policy=PLAIN, batch=4)
    assert report == EmbedReport(embedded=10, failed=1, remaining=1)
    assert "m006" in caplog.text
    assert "poison" not in caplog.text
    assert store.vectors is not None
    assert store.vectors.progress(embedder.id).failed == 1
    assert found(store, embedder, TEXTS[9]) == "m011"


def test_more_bad_texts_than_a_batch_do_not_hold_up_the_others(store: Store) -> None:
    keep(store, *(f"poison {number}" for number in range(5)), *TEXTS)
    report = embed_backlog(store, Choking("poison"), now=NOW, policy=PLAIN, batch=2)
    assert report == EmbedReport(embedded=10, failed=5, remaining=5)


def test_a_model_that_is_down_ends_the_run_and_blames_no_text(store: Store) -> None:
    keep(store, *TEXTS)
    report = embed_backlog(store, Choking(down=True), now=NOW, policy=PLAIN)
    assert report == EmbedReport(remaining=10, stopped="the model is unavailable")
    assert store.vectors is not None
    assert store.vectors.progress("fake-64").failed == 0
    assert embed_backlog(store, Choking(), now=NOW, policy=PLAIN).embedded == 10


@pytest.mark.parametrize("way", ["nan", "infinite", "short", "narrow"])
def test_nonsense_is_never_stored(store: Store, way: str) -> None:
    keep(store, *TEXTS)
    report = embed_backlog(store, Nonsense(way), now=NOW, policy=PLAIN)
    assert report.stopped == "the model is unavailable"
    assert store.care.stats().vectors == 0


@pytest.mark.covers("prior.sensitive")
def test_sensitive_memories_are_never_embedded(store: Store) -> None:
    keep(store, "Emma was in hospital", sensitive=True)
    embedder = Choking()
    assert embed_backlog(store, embedder, now=NOW, policy=PLAIN) == EmbedReport()
    assert embedder.calls == 0


def test_without_a_model_or_vectors_nothing_happens(store: Store) -> None:
    keep(store, "text")
    nothing = EmbedReport(stopped="no embedder")
    assert embed_backlog(store, None, now=NOW, policy=PLAIN) == nothing
    assert embed_backlog(replace(store, vectors=None), FakeEmbedder(), now=NOW, policy=PLAIN) == nothing


def test_a_long_text_is_found_by_its_passage(store: Store) -> None:
    filler = " ".join(f"Sentence {n} is about nothing much." for n in range(300))
    long = f"{filler} The zebra crossing is closed on Sundays. {filler}"
    keep(store, "short text", long)
    embedder = FakeEmbedder()
    assert embed_backlog(store, embedder, now=NOW, policy=POLICY).embedded == 2
    assert store.vectors is not None
    assert store.care.stats().vectors > 3
    query = embedder.embed_query("zebra crossing closed on Sundays")
    hits = {hit.id: hit for hit in store.vectors.search(embedder.id, query, Filter(), 5)}
    assert hits["m001"].passage is None
    passage = hits["m002"].passage
    assert passage is not None
    assert "zebra" in long[passage.start : passage.end]


# --- the cosine check -----------------------------------------------------------------------------------------------


@pytest.mark.covers("budget.dedup")
def test_what_means_the_same_is_linked_behind_the_older(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    keep(store, "SQLite WAL mode", confidence=0.5, tags=("db",))
    keep(store, "SQLite write-ahead logging", confidence=0.9, tags=("wal",))
    with caplog.at_level(logging.INFO, logger="recollect"):
        report = embed_backlog(store, Alike(), now=NOW, policy=POLICY)
    (merge,) = report.merged
    assert (merge.kept, merge.merged, merge.cosine) == ("m001", "m002", 1.0)
    assert supersedes(store) == [("m001", "m002")]
    kept = get(store, "m001")
    assert (kept.content, kept.confidence, kept.tags) == ("SQLite WAL mode", 0.9, ("db", "wal"))
    assert get(store, "m002").content == "SQLite write-ahead logging"
    assert "SQLite" not in caplog.text


@pytest.mark.covers("budget.dedup")
def test_a_twin_is_found_in_its_own_place_whoever_else_is_near(store: Store) -> None:
    here = Scope("team", project="p")
    keep(store, *(f"User: note {number}" for number in range(6)), type="episode", scope=here)
    keep(store, *(f"note {number}" for number in range(6)), scope=Scope("team", project="other"))
    keep(store, "Postgres replication slots", scope=here, created_at=NOW + timedelta(days=1))
    older, newer = keep(store, "SQLite WAL mode", "SQLite write-ahead logging", scope=here)
    (merge,) = embed_backlog(store, Alike(), now=NOW, policy=POLICY).merged
    assert (merge.kept, merge.merged) == (older, newer)


@pytest.mark.covers("budget.dedup")
def test_cosine_alone_never_merges(store: Store) -> None:
    keep(
        store,
        "Feature flags are on in staging",
        "Feature flags are on in production",
        "We use PostgreSQL 16",
        "We use PostgreSQL 15",
        "Never deploy on Fridays",
        "Deploy on Fridays",
        "Alice owns billing",
        "Bob owns billing",
    )
    assert embed_backlog(store, Alike(), now=NOW, policy=POLICY).merged == ()
    assert supersedes(store) == []


@pytest.mark.parametrize(
    "fields",
    [{"pinned": True}, {"type": "episode"}, {"scope": Scope(project="other")}, {"scope": Scope(session="other")}],
)
def test_what_must_stand_alone_is_not_merged(store: Store, fields: dict[str, object]) -> None:
    keep(store, "SQLite WAL mode")
    keep(store, "SQLite write-ahead logging", **fields)
    assert embed_backlog(store, Alike(), now=NOW, policy=POLICY).merged == ()


def test_far_apart_or_switched_off_is_not_merged(store: Store) -> None:
    keep(store, "SQLite WAL mode", "SQLite write-ahead logging")
    assert embed_backlog(store, FakeEmbedder(), now=NOW, policy=POLICY).merged == ()
    assert embed_backlog(store, Alike(32), now=NOW, policy=PLAIN).merged == ()
    assert embed_backlog(store, Alike(48), now=NOW, policy=replace(POLICY, cosine=1.0)).merged == ()


def test_what_somebody_linked_by_hand_stays_as_it_is(store: Store) -> None:
    keep(store, "SQLite WAL mode", "SQLite write-ahead logging")
    link(store, "m002", "supersedes", "m001", now=NOW)
    assert embed_backlog(store, Alike(), now=NOW, policy=POLICY).merged == ()
    assert supersedes(store) == [("m002", "m001")]


def test_what_stands_for_another_is_not_merged_away(store: Store) -> None:
    keep(store, "SQLite WAL mode", "SQLite write-ahead logging", "Postgres replication slots")
    link(store, "m002", "supersedes", "m003", now=NOW)
    assert embed_backlog(store, Alike(), now=NOW, policy=POLICY).merged == ()


def test_a_text_that_changes_while_it_is_embedded_is_embedded_again(store: Store) -> None:
    keep(store, "old text")

    class Slow(FakeEmbedder):
        def embed_documents(self, texts):  # type: ignore[no-untyped-def]
            if texts == ["old text"]:
                store.records.write([Put(replace(get(store, "m001"), content="new text"), expected_version=1)])
            return super().embed_documents(texts)

    embed_backlog(store, Slow(), now=NOW, policy=PLAIN)
    assert store.vectors is not None
    hits = store.vectors.similarities("fake-64", FakeEmbedder().embed_query("new text"), ["m001"])
    assert hits["m001"].score == pytest.approx(1.0)


class Interrupted(FakeEmbedder):
    """Something else happens while it reads its first batch."""

    def __init__(self, meanwhile: Callable[[], None]) -> None:
        super().__init__()
        self.meanwhile = [meanwhile]

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        rows = super().embed_documents(texts)
        while self.meanwhile:
            self.meanwhile.pop()()
        return rows


@pytest.mark.parametrize("change", ["reworded", "forgotten", "inserted"])
def test_a_turn_whose_conversation_changes_while_it_is_embedded_is_seen_as_it_is_now(store: Store, change: str) -> None:
    turns: dict[str, Any] = {"type": "episode", "scope": Scope(session="s")}
    keep(store, "Where did you go?", "To the lake.", **turns)
    first = get(store, "m001")
    late = replace(first, id="m000", content="Hello.", created_at=NOW - timedelta(hours=1))
    changes: dict[str, Change] = {
        "reworded": Put(replace(first, content="Who was with you?"), expected_version=first.version),
        "forgotten": Erase(first.id),
        "inserted": Put(late),
    }

    def vectors(embedder: Embedder) -> list[list[float]]:
        embed_backlog(store, embedder, now=NOW, policy=PLAIN)
        assert store.vectors is not None
        (entry,) = store.vectors.stored(embedder.id, ["m002"])
        assert entry.vectors is not None
        return entry.vectors.tolist()

    then = vectors(Interrupted(lambda: store.records.write([changes[change]])))
    # The same turn, embedded when nothing happens any more.
    for content in ("To the sea.", "To the lake."):
        second = get(store, "m002")
        store.records.write([Put(replace(second, content=content), expected_version=second.version)])
        now = vectors(FakeEmbedder())
    assert then == now


def test_all_turns_of_a_batch_are_seen_in_their_places_at_once(store: Store) -> None:
    keep(store, *(f"Turn number {number}." for number in range(20)), type="episode", scope=Scope(session="s"))
    counting = Choking()
    embed_backlog(store, counting, now=NOW, policy=PLAIN)
    assert counting.calls == 2, "the turns, and the turns in their conversation: a server is asked twice"


def test_a_view_that_the_model_refuses_costs_that_view_alone(store: Store) -> None:
    turns: dict[str, Any] = {"type": "episode", "scope": Scope(session="s")}
    keep(store, "Where did you go?", "To the lake.", "Nice!", "It was cold.", "Oh no.", **turns)

    def vectors(embedder: Embedder) -> list[list[float]]:
        assert store.vectors is not None
        store.vectors.forget(embedder.id)
        embed_backlog(store, embedder, now=NOW, policy=PLAIN)
        found = store.vectors.stored(embedder.id, [f"m00{number}" for number in range(1, 6)])
        return [entry.vectors[0].tolist() for entry in found if entry.vectors is not None]

    whole, hurt = vectors(FakeEmbedder()), vectors(Choking(poison="you go?\nTo the lake.\nNice!"))
    assert [one == other for one, other in zip(whole, hurt, strict=True)] == [True, True, False, True, True]
    assert hurt[2] == pytest.approx(FakeEmbedder().embed_documents(["Nice!"])[0].tolist())


def test_a_bad_text_costs_the_other_turns_of_its_batch_no_view(store: Store) -> None:
    turns: dict[str, Any] = {"type": "episode", "scope": Scope(session="s")}
    keep(store, "Where did you go?", "To the lake.", "bad bytes", **turns)

    def vectors(embedder: Embedder) -> list[list[float]]:
        assert store.vectors is not None
        store.vectors.forget(embedder.id)
        embed_backlog(store, embedder, now=NOW, policy=PLAIN)
        found = store.vectors.stored(embedder.id, ["m001", "m002"])
        return [entry.vectors[0].tolist() for entry in found if entry.vectors is not None]

    assert vectors(FakeEmbedder()) == vectors(Choking(poison="bad bytes"))


def test_a_model_that_goes_down_before_the_views_leaves_the_turns_to_the_next_run(store: Store) -> None:
    keep(store, "Where did you go?", "To the lake.", type="episode", scope=Scope(session="s"))

    class Down(Choking):
        def embed_documents(self, texts: Sequence[str]) -> Matrix:
            rows = super().embed_documents(texts)
            self.down = True
            return rows

    report = embed_backlog(store, Down(), now=NOW, policy=PLAIN)
    assert (report.embedded, report.remaining, report.stopped) == (0, 2, "the model is unavailable")
