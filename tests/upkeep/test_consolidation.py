"""Consolidation merges what says the same, keeps what is pinned, tells all in a dry run and loses nothing."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest
from upkeep_cases import NOW, Alike, Choking, get, keep

from recollect.domain.memory import Link, Scope
from recollect.domain.question import Filter
from recollect.ports import Matrix, Store
from recollect.upkeep import consolidate, consolidation
from recollect.writing import WritePolicy, forget, link, update

pytestmark = pytest.mark.covers("budget.consolidate")

LATER = NOW + timedelta(days=1)


def supersedes(store: Store) -> set[tuple[str, str]]:
    assert store.links is not None
    ids = [memory.id for memory in store.records.scan(Filter(), "id", 1000)]
    return {(link.source, link.target) for link in store.links.links(ids) if link.type == "supersedes"}


def test_the_most_trusted_supersedes_the_others_and_gains_their_tags(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    keep(store, "SQLite WAL is important", tags=("a",))
    keep(store, "SQLite WAL mode matters", confidence=0.9, tags=("b",))
    keep(store, "SQLite WAL is crucial", tags=("c",), importance=0.9)
    keep(store, "SQLite VACUUM is important")
    with caplog.at_level(logging.INFO, logger="recollect"):
        report = consolidate(store, now=LATER)
    assert {(merge.kept, merge.merged) for merge in report.merges} == {("m002", "m001"), ("m002", "m003")}
    assert all(merge.overlap > 0.7 and merge.reason for merge in report.merges)
    assert (report.examined, report.dry_run, report.cursor, report.lost_races) == (4, False, None, 0)
    assert supersedes(store) == {("m002", "m001"), ("m002", "m003")}
    head = get(store, "m002")
    assert (head.content, head.confidence, head.importance) == ("SQLite WAL mode matters", 0.9, 0.9)
    assert (sorted(head.tags), head.updated_at) == (["a", "b", "c"], LATER)
    assert "SQLite" not in caplog.text


def test_every_text_stays_as_it_was(store: Store) -> None:
    texts = ["SQLite WAL is important", "SQLite WAL mode matters", "SQLite WAL is important!"]
    ids = keep(store, *texts)
    consolidate(store, now=LATER)
    assert [get(store, id).content for id in ids] == texts


def test_of_equals_the_newest_stands(store: Store) -> None:
    keep(store, "SQLite WAL is important", created_at=NOW)
    keep(store, "SQLite WAL mode matters", created_at=NOW - timedelta(days=1))
    consolidate(store, now=LATER)
    assert supersedes(store) == {("m001", "m002")}


def test_a_dry_run_tells_the_same_and_changes_nothing(store: Store) -> None:
    keep(store, "SQLite WAL is important", tags=("a",))
    keep(store, "SQLite WAL mode matters", tags=("b",))
    before = store.records.scan(Filter(), "id", 10)
    planned = consolidate(store, now=LATER, dry_run=True)
    assert planned.dry_run
    assert store.records.scan(Filter(), "id", 10) == before
    assert supersedes(store) == set()
    assert consolidate(store, now=LATER).merges == planned.merges


def test_a_second_run_finds_nothing(store: Store) -> None:
    keep(store, "SQLite WAL is important", "SQLite WAL mode matters")
    assert consolidate(store, now=LATER).merges
    before = store.records.scan(Filter(), "id", 10)
    assert consolidate(store, now=LATER + timedelta(days=1)).merges == ()
    assert store.records.scan(Filter(), "id", 10) == before


def test_pinned_memories_stand(store: Store) -> None:
    keep(store, "SQLite WAL is important", pinned=True, confidence=0.1)
    keep(store, "SQLite WAL mode matters", confidence=1.0)
    keep(store, "SQLite WAL is crucial", pinned=True, confidence=0.5)
    consolidate(store, now=LATER)
    assert supersedes(store) == {("m003", "m002")}
    assert get(store, "m001").confidence == 0.1


def test_lookalikes_places_episodes_and_secrecy_are_kept_apart(store: Store) -> None:
    text = "SQLite WAL is important"
    keep(store, text, text + " here, not there", "SQLite WAL is not important")
    keep(store, text, scope=Scope(project="p"))
    keep(store, text, scope=Scope(session="s"))
    keep(store, text, type="episode")
    keep(store, text, sensitive=True)
    keep(store, text, scope=Scope(namespace="other"))
    report = consolidate(store, now=LATER)
    assert report.merges == ()
    assert report.examined == 7


@pytest.mark.covers("prior.sensitive")
def test_what_is_sensitive_is_compared_by_words_alone(store: Store) -> None:
    pair = ("Configure the gateway before the cutover", "Configuration of the gateway before the cutover")
    embedder = Choking()
    keep(store, *pair, sensitive=True)
    consolidate(store, embedder, now=LATER)
    assert embedder.calls == 0
    keep(store, *pair)
    consolidate(store, embedder, now=LATER)
    assert embedder.calls == 1, "others are shown to the model"


def test_long_texts_are_merged_when_they_are_the_same(store: Store) -> None:
    long = "A long page. " * 1000
    keep(store, long, long + "\n", long + "And a word.")
    assert [(merge.kept, merge.merged) for merge in consolidate(store, now=LATER).merges] == [("m002", "m001")]


def test_cosine_bridges_word_families_where_the_words_allow_it(store: Store) -> None:
    keep(store, "Configure the gateway before the cutover", "Configuration of the gateway before the cutover")
    keep(store, "Configure the gateway after the cutover")
    assert consolidate(store, now=LATER, dry_run=True).merges == ()
    assert consolidate(store, Choking(down=True), now=LATER, dry_run=True).merges == ()
    assert consolidate(store, Alike(), now=LATER, dry_run=True, cosine=1.0).merges == ()
    (merge,) = consolidate(store, Alike(), now=LATER).merges
    assert (merge.kept, merge.merged, merge.cosine) == ("m002", "m001", 1.0)


def test_a_limit_bounds_the_run_and_the_next_one_goes_on(store: Store) -> None:
    keep(store, "SQLite WAL is important", "SQLite WAL mode matters", "Redis is fast", "redis is fast", "other")
    first = consolidate(store, now=LATER, limit=2)
    assert (first.examined, first.cursor, len(first.merges)) == (2, "m002", 1)
    second = consolidate(store, now=LATER, limit=3)
    assert (second.examined, second.cursor, len(second.merges)) == (3, None, 1)
    assert store.care.settings() == {}
    assert consolidate(store, now=LATER).examined == 5, "from the beginning again"


def test_runs_of_any_limit_reach_every_memory(store: Store) -> None:
    keep(store, *(f"Fact number {number}" for number in range(23)), "Redis is fast", "redis is fast")
    runs = [consolidate(store, now=LATER, limit=4) for _ in range(7)]
    assert [run.examined for run in runs] == [4, 4, 4, 4, 4, 4, 1]
    assert [run.cursor is None for run in runs] == [False] * 6 + [True]
    assert consolidate(store, now=LATER, limit=4).examined == 4


def test_a_dry_run_begins_where_the_run_would_and_leaves_no_mark(store: Store) -> None:
    keep(store, "SQLite WAL is important", "other", "Redis is fast", "redis is fast")
    consolidate(store, now=LATER, limit=2)
    before = store.care.settings()
    planned = consolidate(store, now=LATER, limit=2, dry_run=True)
    assert store.care.settings() == before
    assert consolidate(store, now=LATER, limit=2).merges == planned.merges != ()


def test_namespaces_go_on_each_for_itself(store: Store) -> None:
    keep(store, "a fact", "another fact")
    keep(store, "their fact", "their other fact", scope=Scope("team"))
    assert consolidate(store, now=LATER, limit=1).cursor == "m001"
    assert consolidate(store, now=LATER, limit=1, namespace="team").cursor == "m003"
    assert consolidate(store, now=LATER).examined == 1


def test_where_all_behind_the_mark_is_gone_it_begins_anew(store: Store) -> None:
    keep(store, "SQLite WAL is important", "SQLite WAL mode matters", "other")
    consolidate(store, now=LATER, limit=2)
    forget(store, ["m003"])
    assert consolidate(store, now=LATER).examined == 2


def test_of_many_with_the_same_words_all_are_compared(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consolidation, "MAX_ALIKE", 2)
    keep(store, *("SQLite WAL is important" for _ in range(2)), pinned=True)
    keep(store, "SQLite WAL is important", "SQLite WAL is important")
    assert len(consolidate(store, now=LATER).merges) == 1


def test_only_what_may_become_one_is_compared(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consolidation, "MAX_ALIKE", 2)
    for session in ("a", "b", "c", "a", "b"):
        keep(store, "SQLite WAL is important", scope=Scope(session=session))
    assert len(consolidate(store, now=LATER).merges) == 2


def test_what_was_superseded_by_hand_takes_no_part(store: Store) -> None:
    keep(store, "We deploy from main", "We deploy from release branches", "We deploy from main.")
    link(store, "m002", "supersedes", "m001", now=NOW)
    assert consolidate(store, now=LATER).merges == ()
    assert supersedes(store) == {("m002", "m001")}


@pytest.mark.parametrize("looks", [1, 2])
def test_a_lost_race_is_counted_and_nothing_is_half_done(store: Store, looks: int) -> None:
    keep(store, "SQLite WAL is important", "SQLite WAL mode matters")

    original, left = store.records.fetch, looks

    class Vanishing:
        def __getattr__(self, name: str) -> object:
            return getattr(records, name)

        def fetch(self, ids: list[str]) -> object:
            nonlocal left
            found, left = original(ids), left - 1
            if left == 0:
                forget(store, ["m001"])
            return found

    records = store.records
    report = consolidate(replace(store, records=Vanishing()), now=LATER)  # pyright: ignore[reportArgumentType]
    assert (report.merges, report.lost_races) == ((), 1)
    assert get(store, "m002").version == 1
    assert store.links is not None
    assert store.links.links(["m002"]) == []


@pytest.mark.parametrize("what", ["changed", "superseded"])
def test_what_somebody_else_has_decided_meanwhile_stands(store: Store, what: str) -> None:
    keep(store, "Configure the gateway before the cutover", "Configuration of the gateway before the cutover", "x")

    class Slow(Alike):
        def embed_documents(self, texts: Sequence[str]) -> Matrix:
            if what == "changed":
                update(store, "m001", content="Never configure the gateway", now=NOW, policy=WritePolicy())
            else:
                link(store, "m001", "supersedes", "m002", now=NOW)
            return super().embed_documents(texts)

    report = consolidate(store, Slow(), now=LATER)
    assert (report.merges, report.lost_races) == ((), 1)
    assert supersedes(store) == (set() if what == "changed" else {("m001", "m002")})


def test_progress_counts_the_groups(store: Store) -> None:
    keep(store, "SQLite WAL is important", "SQLite WAL mode matters", "Redis is fast", "redis is fast")
    told: list[tuple[int, int]] = []
    consolidate(store, now=LATER, progress=lambda done, total: told.append((done, total)))
    assert told == [(1, 2), (2, 2)]


def test_links_carry_the_time_of_the_merge(store: Store) -> None:
    keep(store, "SQLite WAL is important", "SQLite WAL mode matters")
    consolidate(store, now=LATER)
    assert store.links is not None
    assert store.links.links(["m001"]) == [Link("m002", "supersedes", "m001", LATER)]
