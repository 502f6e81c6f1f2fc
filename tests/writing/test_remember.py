"""remember: added, merged, skipped or redacted, and never two rows for one fact."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pytest
from writing_pairs import DIFFERENT, SAME

from recollect.domain.changes import Change, Erase, Put
from recollect.domain.errors import Conflict, InvalidInput
from recollect.domain.memory import Memory, Receipt, Scope
from recollect.domain.question import Filter
from recollect.ports import Store
from recollect.stages import secrets
from recollect.writing import Draft, WritePolicy, forget, link, remember, remember_many
from recollect.writing.duplicates import standing

NOW = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
Remember = Callable[..., Receipt]


def everything(store: Store, namespace: str = "default") -> list[Memory]:
    return store.records.scan(Filter(namespace=namespace), "id", 1000)


def get(store: Store, id: str) -> Memory:
    return store.records.fetch([id])[0]


def many(store: Store, *drafts: Draft, policy: WritePolicy | None = None, batch: int = 200) -> list[Receipt]:
    numbers = count(1)
    return remember_many(
        store, drafts, new_id=lambda: f"b{next(numbers):03}", now=NOW, policy=policy or WritePolicy(), batch=batch
    )


def test_a_new_memory_is_added_and_findable_by_words_at_once(store: Store, put: Remember) -> None:
    receipt = put("We use PostgreSQL 16 in production", type="decision", tags=["db"], metadata={"path": "docs/db.md"})
    assert receipt == Receipt("m001", "added")
    kept = get(store, "m001")
    assert (kept.content, kept.type, kept.tags) == ("We use PostgreSQL 16 in production", "decision", ("db",))
    assert kept.metadata == {"path": "docs/db.md"}


@pytest.mark.covers("budget.dedup")
def test_what_is_said_again_confirms_what_stands(store: Store, put: Remember, caplog: pytest.LogCaptureFixture) -> None:
    put("SQLite WAL is important", confidence=0.6, tags=["db"])
    later = NOW + timedelta(days=1)
    with caplog.at_level(logging.INFO, logger="recollect"):
        receipt = put("SQLite WAL mode matters", confidence=0.9, tags=["wal"], pinned=True, now=later)
    assert (receipt.id, receipt.action, receipt.duplicate_of) == ("m001", "merged", "m001")
    assert receipt.reason.startswith("near-duplicate")
    (kept,) = everything(store)
    assert kept.content == "SQLite WAL is important"
    assert (kept.confidence, kept.tags, kept.pinned) == (0.9, ("db", "wal"), True)
    assert (kept.version, kept.created_at, kept.updated_at) == (2, NOW, later)
    assert "m001" in caplog.text
    assert "SQLite" not in caplog.text


@pytest.mark.covers("budget.dedup")
def test_nothing_new_is_skipped_and_nothing_is_written(store: Store, put: Remember) -> None:
    put("SQLite WAL is important", confidence=0.9)
    receipt = put("SQLite WAL mode matters", confidence=0.4, now=NOW + timedelta(days=1))
    assert (receipt.id, receipt.action, receipt.duplicate_of) == ("m001", "skipped", "m001")
    (kept,) = everything(store)
    assert (kept.version, kept.confidence, kept.updated_at) == (1, 0.9, NOW)


@pytest.mark.covers("budget.dedup")
def test_facts_that_look_alike_are_all_kept(store: Store) -> None:
    drafts = [
        Draft(text, scope=Scope(project=f"pair {number}")) for number, pair in enumerate(DIFFERENT) for text in pair
    ]
    one_by_one = [remember(store, draft, id=f"x{n}", now=NOW, policy=WritePolicy()) for n, draft in enumerate(drafts)]
    assert {receipt.action for receipt in one_by_one} == {"added"}


@pytest.mark.covers("budget.dedup")
def test_repetitions_are_found_among_many_others(store: Store, put: Remember) -> None:
    others = dict.fromkeys(text for pair in DIFFERENT for text in pair)
    here = Scope(project="p")
    many(store, *(Draft(text, scope=here) for text in (*others, *(left for left, _ in SAME))))
    found = [put(right, scope=here).action != "added" for _, right in SAME]
    assert sum(found) / len(found) >= 0.95


@pytest.mark.covers("budget.dedup")
@pytest.mark.parametrize("others", ["of other projects", "episodes"])
def test_what_could_never_be_its_twin_does_not_hide_it(store: Store, put: Remember, others: str) -> None:
    here, again = Scope(project="p"), "SQLite WAL mode matters"
    stands = put("SQLite WAL is important", scope=here)
    for number in range(45):
        if others == "episodes":
            put(again, type="episode", scope=here)
        else:
            put(again, scope=Scope(project=f"other{number}"))
    assert put(again, scope=here).duplicate_of == stands.id


def test_the_same_text_in_other_spacing_and_case_is_one(store: Store, put: Remember) -> None:
    put("x")
    assert put("  X ").action == "skipped"
    long = "word " * 2000
    assert put(long).action == "added"
    assert put(long.upper()).action == "skipped"
    assert len(everything(store)) == 2


def test_projects_sessions_without_a_project_and_namespaces_are_apart(store: Store, put: Remember) -> None:
    text = "Deploys need two approvals"
    scopes = (
        Scope(),
        Scope(project="a"),
        Scope(project="b"),
        Scope(session="s1"),
        Scope(session="s2"),
        Scope(namespace="other"),
    )
    for scope in scopes:
        assert put(text, scope=scope).action == "added"
        assert put(text + ".", scope=scope).action == "skipped"
    assert put(text, scope=Scope(project="a", session="s9")).action == "skipped"


def test_episodes_are_events_and_never_merged(store: Store, put: Remember) -> None:
    for _ in range(2):
        assert put("User: hello there, old friend", type="episode").action == "added"
    assert put("User: hello there, old friend").action == "added"
    assert put("User: hello there, old friend!").action == "skipped"
    assert len(everything(store)) == 3


def test_without_dedupe_everything_is_kept(store: Store, put: Remember) -> None:
    for _ in range(2):
        assert put("Deploys need two approvals", WritePolicy(dedupe=False)).action == "added"


def test_in_a_store_without_links_every_memory_stands_for_itself(store: Store, put: Remember) -> None:
    put("We deploy from main")
    bare = replace(store, links=None)
    assert standing(bare, get(store, "m001")) == get(store, "m001")


def test_what_was_superseded_can_be_said_anew(store: Store, put: Remember) -> None:
    put("We deploy from main")
    put("We deploy from release branches")
    link(store, "m002", "supersedes", "m001", now=NOW)
    receipt = put("We deploy from main")
    assert (receipt.id, receipt.action) == ("m003", "added")


def test_a_repetition_of_a_merged_memory_confirms_the_head(store: Store, put: Remember) -> None:
    put("SQLite WAL is important")
    put("SQLite WAL mode matters", WritePolicy(dedupe=False), confidence=0.9)
    link(store, "m002", "supersedes", "m001", now=NOW)
    assert put("SQLite WAL is important", confidence=1.0).id == "m002"
    assert get(store, "m002").confidence == 1.0


def test_importance_grows_only_when_it_was_given(store: Store, put: Remember) -> None:
    put("Deploys need two approvals", importance=0.2)
    assert put("Deploys need two approvals").action == "skipped"
    assert put("Deploys need two approvals", importance="high").action == "merged"
    assert get(store, "m001").importance == 0.9


@pytest.mark.covers("prior.sensitive")
def test_a_text_that_turns_out_sensitive_becomes_so(store: Store, put: Remember) -> None:
    put("Emma was in hospital in May")
    assert put("Emma was in hospital in May", sensitive=True).action == "merged"
    assert get(store, "m001").sensitive
    assert put("Emma was in the hospital in May.").action == "added"


# --- keys -----------------------------------------------------------------------------------------------------------


def test_the_same_key_is_written_once(store: Store, put: Remember) -> None:
    assert put("first", key="k1").action == "added"
    receipt = put("something else", key="k1")
    assert (receipt.id, receipt.action, receipt.duplicate_of) == ("m001", "skipped", "m001")
    assert put("something else", key="k1", scope=Scope(namespace="other")).action == "added"
    assert len(everything(store)) == 1


def test_a_merge_takes_over_the_key(store: Store, put: Remember) -> None:
    put("Deploys need two approvals")
    assert put("Deploys need two approvals.", key="k1").action == "merged"
    assert put("quite another text", key="k1").id == "m001"
    assert put("Deploys need two approvals", key="k2").action == "skipped"
    assert get(store, "m001").key == "k1"


# --- tombstones -----------------------------------------------------------------------------------------------------


@pytest.mark.covers("more.forget")
def test_what_was_forgotten_comes_back_only_on_explicit_wish(store: Store, put: Remember) -> None:
    put("Emma lives in Leeds")
    assert forget(store, ["m001"]) == ["m001"]
    refused = put("emma lives in  Leeds", captured=True)
    assert (refused.action, refused.duplicate_of) == ("skipped", None)
    assert refused.reason.startswith("tombstone")
    assert everything(store) == []
    assert put("Emma lives in Leeds").action == "added"
    assert put("Emma lives in Leeds", captured=True).action == "skipped"
    assert len(everything(store)) == 1


# --- secrets --------------------------------------------------------------------------------------------------------

TOKEN = "ghp_" + "a1B2c3D4e5F6" * 3


def test_secrets_are_hidden_before_anything_is_stored(store: Store, put: Remember) -> None:
    receipt = put(
        f"The deploy token is {TOKEN}",
        tags=[TOKEN],
        source=f"https://x:{TOKEN}@host/",
        metadata={"env": {"password": "hunter22"}, "list": [TOKEN]},
    )
    assert (receipt.id, receipt.action) == ("m001", "redacted")
    assert "github-token" in receipt.reason
    kept = get(store, "m001")
    assert kept.content == "The deploy token is [REDACTED:github-token]"
    assert TOKEN not in repr(kept)
    assert "hunter22" not in repr(kept)


def test_secrets_can_be_refused_or_allowed(store: Store, put: Remember) -> None:
    with pytest.raises(InvalidInput) as caught:
        put(f"token {TOKEN}", WritePolicy(secrets="reject"))
    assert TOKEN not in str(caught.value)
    assert put(f"token {TOKEN}", WritePolicy(secrets="allow")).action == "added"
    assert get(store, "m002").content == f"token {TOKEN}"


def test_a_key_that_is_a_secret_is_refused(put: Remember) -> None:
    with pytest.raises(InvalidInput) as caught:
        put("a fact", key=TOKEN)
    assert caught.value.field == "key"


@pytest.mark.parametrize(
    ("field", "given"),
    [
        ("scope.project", {"scope": Scope(project=TOKEN)}),
        ("scope.session", {"scope": Scope(session=f"run of {TOKEN}")}),
        ("type", {"type": "glpat-a1b2c3d4e5f6a1b2c3d4e5f6"}),
    ],
)
@pytest.mark.parametrize("mode", ["redact", "reject"])
def test_a_name_that_holds_a_secret_is_refused(
    store: Store, put: Remember, field: str, given: dict[str, Any], mode: Any
) -> None:
    with pytest.raises(InvalidInput) as caught:
        put("a fact", WritePolicy(secrets=mode), **given)
    assert caught.value.field == field and TOKEN not in str(caught.value)
    assert everything(store) == []
    assert put("a fact", WritePolicy(secrets="allow"), **given).action == "added"


@pytest.mark.parametrize("id", ["abcd4012-8888-4888-5abc-00000000aaaa", "4012888888881881"])
def test_a_session_that_reads_like_a_card_number_is_only_an_id(put: Remember, id: str) -> None:
    assert [secret.kind for secret in secrets.find(id)] == ["card-number"]
    assert put("a fact", scope=Scope(session=id)).action == "added"


# --- many -----------------------------------------------------------------------------------------------------------


def test_a_batch_follows_the_same_rules_within_itself(store: Store) -> None:
    receipts = many(
        store,
        Draft("SQLite WAL is important", confidence=0.6),
        Draft("SQLite WAL mode matters", tags=["wal"]),
        Draft("sqlite  wal is important", tags=["db"]),
        Draft("Deploys need two approvals", key="k"),
        Draft("never mind", key="k"),
        Draft("User: hi", type="episode"),
        Draft("User: hi", type="episode"),
        Draft("SQLite WAL mode matters", scope=Scope(project="p")),
    )
    assert [(one.id, one.action) for one in receipts] == [
        ("b001", "added"),
        ("b001", "merged"),
        ("b001", "merged"),
        ("b004", "added"),
        ("b004", "skipped"),
        ("b006", "added"),
        ("b007", "added"),
        ("b008", "added"),
    ]
    kept = get(store, "b001")
    assert (kept.confidence, kept.tags, kept.version) == (0.8, ("wal", "db"), 1)


def test_a_batch_confirms_a_stored_memory_once(store: Store, put: Remember) -> None:
    put("SQLite WAL is important", confidence=0.5)
    receipts = many(
        store,
        Draft("SQLite WAL mode matters", confidence=0.7),
        Draft("SQLite WAL is crucial", confidence=0.9),
        Draft("SQLite WAL is important", confidence=0.1),
    )
    assert [one.action for one in receipts] == ["merged", "merged", "skipped"]
    assert (get(store, "m001").confidence, get(store, "m001").version) == (0.9, 2)


def test_batches_are_bounded_transactions_and_a_bad_draft_names_its_place(store: Store) -> None:
    with pytest.raises(InvalidInput) as caught:
        many(store, Draft("one"), Draft("two"), Draft("three"), Draft(""), batch=2)
    assert caught.value.field == "drafts[3].content"
    assert [memory.content for memory in everything(store)] == ["one", "two"]


def test_many_and_one_by_one_leave_the_same_store(store: Store, put: Remember) -> None:
    texts = [text for pair in SAME[:30] for text in pair]
    many(store, *(Draft(text, scope=Scope(project="many")) for text in texts), batch=7)
    for text in texts:
        put(text, scope=Scope(project="single"))
    by_project: dict[str | None, list[str]] = {}
    for memory in everything(store):
        by_project.setdefault(memory.scope.project, []).append(memory.content)
    assert by_project["many"] == by_project["single"]


# --- races ----------------------------------------------------------------------------------------------------------


class Racing:
    """Records in which somebody else writes between our look and our write, once."""

    def __init__(self, store: Store, meanwhile: Sequence[Change]) -> None:
        self._records = store.records
        self._meanwhile = list(meanwhile)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._records, name)

    def write(self, changes: Sequence[Change]) -> None:
        meanwhile, self._meanwhile = self._meanwhile, []
        if meanwhile:
            self._records.write(meanwhile)
        self._records.write(changes)


def racing(store: Store, *meanwhile: Change) -> Store:
    return replace(store, records=Racing(store, meanwhile))  # pyright: ignore[reportArgumentType]


def theirs(content: str, **fields: Any) -> Put:
    return Put(Memory("theirs", content, created_at=NOW, updated_at=NOW, accessed_at=NOW, **fields))


@pytest.mark.parametrize(
    ("draft", "other"),
    [
        (Draft("Deploys need two approvals"), theirs("deploys need two approvals")),
        (Draft("another text", key="k"), theirs("Deploys need two approvals", key="k")),
    ],
)
def test_a_lost_race_is_decided_anew(store: Store, draft: Draft, other: Put) -> None:
    receipt = remember(racing(store, other), draft, id="ours", now=NOW, policy=WritePolicy())
    assert (receipt.id, receipt.action) == ("theirs", "skipped")
    assert len(everything(store)) == 1


def test_a_batch_that_loses_a_race_is_written_all_the_same(store: Store) -> None:
    receipts = many(racing(store, theirs("two")), Draft("one"), Draft("two"), Draft("three"))
    assert [one.action for one in receipts] == ["added", "skipped", "added"]
    assert sorted(memory.content for memory in everything(store)) == ["one", "three", "two"]


def test_a_merge_keeps_what_somebody_else_changed_meanwhile(store: Store, put: Remember) -> None:
    put("Deploys need two approvals", confidence=0.5)
    change = Put(replace(get(store, "m001"), tags=("theirs",)), expected_version=1)
    draft = Draft("Deploys need two approvals", tags=["ours"])
    remember(racing(store, change), draft, id="x", now=NOW, policy=WritePolicy())
    kept = get(store, "m001")
    assert (kept.tags, kept.confidence, kept.version) == (("theirs", "ours"), 0.8, 3)


def test_what_went_between_two_looks_is_not_taken_for_what_is_alike(store: Store, put: Remember) -> None:
    put("Order before tea")
    put("Tea before order")  # the words of the first, not its text

    class Forgetful(Racing):
        def fetch(self, ids: Sequence[str]) -> list[Memory]:
            if "m001" in ids and self._meanwhile:
                self._records.write([self._meanwhile.pop()])
            return self._records.fetch(ids)

    forgetful = Forgetful(store, [Erase("m001", tombstone=False)])
    receipt = remember(
        replace(store, records=forgetful),  # pyright: ignore[reportArgumentType]
        Draft("order before TEA"), id="new", now=NOW, policy=WritePolicy(),
    )  # fmt: skip
    assert (receipt.id, receipt.action) == ("new", "added")
    assert sorted(memory.id for memory in everything(store)) == ["m002", "new"]


def test_an_id_that_is_taken_is_a_conflict_in_the_end(store: Store, put: Remember) -> None:
    put("first")
    with pytest.raises(Conflict):
        remember(store, Draft("second"), id="m001", now=NOW, policy=WritePolicy())


def test_many_threads_with_one_text_leave_one_row(store: Store) -> None:
    barrier = threading.Barrier(8)
    receipts: list[Receipt] = []

    def write(number: int) -> None:
        barrier.wait()
        draft = Draft("Deploys need two approvals", scope=Scope(project="p"))
        receipts.append(remember(store, draft, id=f"t{number}", now=NOW, policy=WritePolicy()))

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (kept,) = everything(store)
    assert {receipt.id for receipt in receipts} == {kept.id}
    assert [receipt.action for receipt in receipts].count("added") == 1


def test_texts_without_spaces_are_remembered_whatever_is_there_already(store: Store, put: Remember) -> None:
    """Every letter is a word of the index: whoever looks for duplicates must not ask for all of them at once."""
    long = "".join(chr(0x4E00 + (97 * place) % 500) for place in range(900))
    assert put(long).action == "added"
    assert put(long[:700] + "一").action == "added"
    assert put(f"plain words and {long[100:300]}").action == "added"
    assert put(long).action == "skipped"


def test_a_twin_is_found_behind_many_of_other_sessions(store: Store) -> None:
    """Without a project sessions are apart: what others said does not crowd out what was said here."""
    numbers = count(1)

    def receipts(name: str, *texts: str) -> list[Receipt]:
        drafts = [Draft(text, scope=Scope(session=f"{name}{number}")) for text in texts for number in range(30)]
        new_id = lambda: f"n{next(numbers):03}"  # noqa: E731
        return remember_many(store, drafts, new_id=new_id, now=NOW, policy=WritePolicy())

    assert {one.action for one in receipts("s", "The build runs twice")} == {"added"}
    assert {one.action for one in receipts("s", "the builds run twice!")} == {"skipped"}
    together = receipts("t", "The build runs twice", "the builds run twice!")
    assert [one.action for one in together] == ["added"] * 30 + ["skipped"] * 30
