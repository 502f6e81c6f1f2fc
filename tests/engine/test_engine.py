"""The library as users hold it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect import Scope, recollection
from recollect.domain.changes import Put
from recollect.domain.memory import Memory
from recollect.doors.prompting import with_full_block
from recollect.encoders.fake import FakeEmbedder
from recollect.engine import Engine
from recollect.ports import EmbeddingProgress
from recollect.settings import load
from recollect.stores.memory import open_memory
from tests.engine.conftest import Open

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


def contents(answer: recollect.Recall) -> list[str]:
    return [hit.memory.content for hit in answer]


@pytest.mark.covers("more.late-embedding")
def test_a_write_is_found_by_words_at_once_and_by_meaning_when_its_embedding_arrives(engine: Engine) -> None:
    receipt = engine.remember("The kerberos keytab lives on the bastion host")
    assert receipt.action == "added"
    assert [hit.id for hit in engine.recall("keytab", mode="bm25")] == [receipt.id]
    assert len(engine.recall("keytab", mode="semantic")) == 0
    engine.upkeep()
    assert [hit.id for hit in engine.recall("keytab", mode="semantic")] == [receipt.id]


@pytest.mark.covers("more.late-embedding")
def test_a_change_bears_the_time_that_is_given_for_it(engine: Engine) -> None:
    id = engine.remember("a fact", now=NOW).id
    assert engine.update(id, pinned=True, now=NOW + timedelta(days=1)).updated_at == NOW + timedelta(days=1)


def test_remember_never_waits_for_a_model(opened: Open) -> None:
    release = threading.Event()

    class Stuck:
        id, dimension, max_tokens = "stuck", 4, 512

        def count_tokens(self, text: str) -> int:
            return 1

        def embed_documents(self, texts: object) -> object:
            release.wait(30)
            raise RuntimeError("never")

        embed_query = embed_documents

    engine = opened(embedder=Stuck(), background=True)
    try:
        engine.remember("first note about deploys")
        receipt = engine.remember("second note about lunch")
        assert engine.get(receipt.id).content == "second note about lunch"
        assert [hit.id for hit in engine.recall("lunch", mode="bm25")] == [receipt.id]
    finally:
        release.set()


@pytest.mark.covers("more.late-embedding")
def test_the_background_embeds_by_itself(opened: Open) -> None:
    engine = opened(background=True)
    receipt = engine.remember("The kerberos keytab lives on the bastion host")
    for _ in range(600):
        progress = engine.embedding_progress()
        if progress is not None and progress.done == 1:
            break
        threading.Event().wait(0.05)
    assert [hit.id for hit in engine.recall("keytab", mode="semantic")] == [receipt.id]


@pytest.mark.covers("two-stage.touch")
def test_surfacing_marks_as_seen_and_only_an_explicit_use_counts(engine: Engine) -> None:
    id = engine.remember("deploy notes", created_at=NOW - timedelta(days=9), now=NOW - timedelta(days=9)).id
    engine.recall("deploy", now=NOW)
    engine.upkeep()
    seen = engine.get(id)
    assert (seen.accessed_at, seen.access_count) == (NOW, 0)
    engine.recall("deploy", now=NOW + timedelta(hours=1), explicit=True)
    engine.expand(id, now=NOW + timedelta(hours=2))
    engine.upkeep()
    used = engine.get(id)
    assert (used.accessed_at, used.access_count) == (NOW + timedelta(hours=2), 2)
    engine.get(id), engine.list()
    engine.upkeep()
    assert engine.get(id) == used


@pytest.mark.covers("two-stage.top3", "two-stage.topic-gate")
def test_recollections_stand_while_the_topic_does(engine: Engine) -> None:
    engine.remember("the deploy pipeline runs on tuesdays")
    engine.remember("lunch is served in the canteen at noon")
    engine.upkeep()
    first, fresh = engine.recollect("deploy pipeline schedule", "s1", profile="two-stage")
    assert fresh and "tuesdays" in first.text
    again, fresh = engine.recollect("deploy pipeline schedule please", "s1", profile="two-stage")
    assert not fresh and again == first
    assert engine.recollect("deploy pipeline schedule please", "s1", profile="two-stage", force=True)[1]
    assert engine.recollect("deploy pipeline schedule please", "s1", profile="two-stage", topic_gate=False)[1]
    other, fresh = engine.recollect("when is lunch in the canteen", "s1", profile="two-stage")
    assert fresh and other != first
    assert engine.recollect("deploy pipeline schedule", "s2", profile="two-stage")[1], "each session has its own"


@pytest.mark.covers("two-stage.top3")
def test_the_recollection_file_is_replaced_whole_and_private(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    engine.remember("the deploy pipeline runs on tuesdays")
    engine.recollect("deploy", "../../etc/passwd", force=True)
    folder = engine.settings.recollections
    (path,) = folder.iterdir()
    assert path.parent == folder and path.stat().st_mode & 0o077 == 0
    before = path.read_bytes()

    def crash(*args: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(recollection.json, "dumps", crash)
    with pytest.raises(OSError, match="disk full"):
        engine.recollect("deploy again", "../../etc/passwd", force=True)
    assert [one.read_bytes() for one in folder.iterdir()] == [before]


def test_upkeep_removes_old_recollections_beside_others_who_do(engine: Engine) -> None:
    engine.remember("The office cat is called Miso.")
    for session in ("old", "new"):
        engine.recollect("cat", session)
    folder = engine.settings.recollections
    os.utime(recollection.path_of(folder, "old"), (0, 0))
    (folder / "gone.json").symlink_to(folder / "nowhere")  # listed, and not there any more when it is looked at
    engine.upkeep()
    assert recollection.read(folder, "old") is None
    assert recollection.read(folder, "new") is not None


@pytest.mark.covers("prior.sensitive")
@pytest.mark.parametrize("profile", ["two-stage", "balanced", "retry-ladder"])
def test_a_block_for_a_prompt_never_holds_what_is_sensitive(engine: Engine, profile: str) -> None:
    """A person still finds it; what is made for a model leaves it out, the file that hooks fall back to included."""
    hidden = engine.remember("the vault code of the office is marmalade", sensitive=True)
    shown = engine.remember("the office opens at nine")
    for options in ({}, {"render.kind": "fenced"}):
        answer = engine.recall("vault code office", profile=profile, options=options)
        assert hidden.id in [hit.id for hit in answer]
        assert "marmalade" not in answer.render()
    found, _ = engine.recollect("vault code office", "s1", profile=profile, force=True)
    assert "marmalade" not in found.text and hidden.id not in found.ids
    files = [path.read_text() for path in engine.settings.recollections.iterdir()]
    assert files and not any("marmalade" in text for text in files)
    assert profile != "two-stage" or (found.ids == (shown.id,) and "nine" in found.text)


@pytest.mark.covers("prior.sensitive")
@pytest.mark.parametrize("profile", ["two-stage", "balanced", "importance-prior"])
def test_what_is_sensitive_takes_no_place_of_what_may_be_shown(engine: Engine, profile: str) -> None:
    for number in range(3):
        engine.remember(f"the vault code of the office number {number}", sensitive=True, dedupe=False)
    shown = {engine.remember(f"the office opens at {hour}", dedupe=False).id for hour in ("nine", "ten", "noon")}
    asked = {"profile": profile, "limit": 3}
    assert not shown.issuperset(hit.id for hit in engine.recall("vault code office", **asked))
    assert {hit.id for hit in engine.recall("vault code office", without_sensitive=True, **asked)} == shown
    found, _ = engine.recollect("vault code office", "s1", force=True, **asked)
    assert set(found.ids) == shown and found.text.count("the office opens") == 3


@pytest.mark.covers("prior.sensitive")
def test_what_a_sensitive_memory_supersedes_is_not_shown_in_its_place(engine: Engine) -> None:
    old = engine.remember("the office opens at nine")
    new = engine.remember("the office opens at noon, by the back door", sensitive=True, dedupe=False)
    engine.link(new.id, "supersedes", old.id)
    assert len(engine.recall("when does the office open", without_sensitive=True)) == 0


@pytest.mark.covers("prior.sensitive")
@pytest.mark.parametrize("change", [{"sensitive": True}, {"content": "the code was changed"}])
def test_a_memory_that_is_hidden_or_corrected_takes_the_recollections_that_quote_it(
    engine: Engine, change: dict[str, object]
) -> None:
    id = engine.remember("the vault code of the office is marmalade").id
    engine.recollect("vault code", "s1", force=True)
    engine.update(id, confidence=0.9)
    assert list(engine.settings.recollections.iterdir())
    engine.update(id, **change)
    assert list(engine.settings.recollections.iterdir()) == []


@pytest.mark.covers("more.forget")
def test_forgetting_takes_the_recollections_that_quote_it(engine: Engine) -> None:
    id = engine.remember("the deploy password is kept in the vault").id
    engine.recollect("deploy", "s1", force=True)
    assert list(engine.settings.recollections.iterdir())
    engine.forget(id)
    assert list(engine.settings.recollections.iterdir()) == []
    assert len(engine.recall("deploy")) == 0
    with pytest.raises(recollect.NotFound):
        engine.get(id)


KILLED_WRITING = """
import os, signal, sys
from pathlib import Path
from recollect import recollection
Path.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
recollection.write(Path(sys.argv[1]), recollection.Recollection("s1", "", (sys.argv[2],), "kept in the vault"))
"""


@pytest.mark.covers("more.forget")
def test_forgetting_takes_the_recollection_that_a_killed_process_was_writing(engine: Engine) -> None:
    id, folder = engine.remember("the deploy password is kept in the vault").id, engine.settings.recollections
    killed = subprocess.run([sys.executable, "-c", KILLED_WRITING, str(folder), id], check=False)
    assert killed.returncode == -9 and "vault" in next(folder.iterdir()).read_text()
    engine.forget(id)
    assert list(folder.iterdir()) == []


@pytest.mark.covers("more.forget")
def test_a_recollection_that_is_swept_away_while_it_is_written_is_none(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = engine.remember("the deploy password is kept in the vault").id
    usual = Path.replace

    def beset(self: Path, target: Path) -> Path:
        recollection.forget(engine.settings.recollections, [id])
        return usual(self, target)

    monkeypatch.setattr(Path, "replace", beset)
    assert id in engine.recollect("deploy", "s1", force=True)[0].ids
    assert list(engine.settings.recollections.iterdir()) == []


@pytest.mark.covers("more.forget")
def test_a_mark_states_its_own_importance(engine: Engine) -> None:
    text = "[MEMORY] importance=high: rotate the keys monthly\n[MEMORY] type=fact: the bell rings at noon"
    stored = [engine.get(one.id) for one in engine.capture(text, importance=0.3)]
    assert [(one.content, one.importance) for one in stored] == [
        ("rotate the keys monthly", 0.9),
        ("the bell rings at noon", 0.3),
    ]


def test_a_forgotten_text_does_not_come_back_by_capture_but_a_person_may_say_it_again(engine: Engine) -> None:
    id = engine.remember("use the legacy endpoint for billing").id
    engine.forget(id)
    (receipt,) = engine.capture("[MEMORY] type=fact: use the legacy endpoint for billing")
    assert receipt.action == "skipped"
    assert len(engine.recall("billing")) == 0
    assert engine.remember("use the legacy endpoint for billing").action == "added"


@pytest.mark.covers("live.settings")
def test_live_settings_are_checked_persisted_and_effective_on_the_next_recall(opened: Open) -> None:
    engine = opened()
    engine.remember("hello from the other side")
    assert engine.live_settings() == {"semanticWeight": 1.0, "keywordWeight": 0.0}
    assert len(engine.recall("hello", profile="live-weights", mode="bm25")) == 0
    for wrong, field in [
        ({"keywordWeight": 9}, "keywordWeight"),
        ({"volume": 1}, "volume"),
        ({"keywordWeight": "loud"}, "keywordWeight"),
    ]:
        with pytest.raises(recollect.InvalidInput) as caught:
            engine.change_settings({"semanticWeight": 2.0, **wrong})
        assert caught.value.field == field
        assert engine.live_settings() == {"semanticWeight": 1.0, "keywordWeight": 0.0}, "nothing was changed"
    beside = opened()
    assert engine.change_settings({"keywordWeight": 1.0})["keywordWeight"] == 1.0
    assert len(engine.recall("hello", profile="live-weights", mode="bm25")) == 1
    assert len(beside.recall("hello", profile="live-weights", mode="bm25")) == 1, "every process sees it"
    engine.close()
    assert opened().live_settings()["keywordWeight"] == 1.0


@pytest.mark.covers("live.settings")
def test_a_damaged_profile_that_nobody_asked_for_keeps_no_knob_from_turning(opened: Open) -> None:
    memory = opened()
    memory.settings.profiles.mkdir(parents=True)
    (memory.settings.profiles / "draft.toml").write_text("limit = 'many'\n")
    (memory.settings.profiles / "half.toml").write_text("limit = \n")
    assert memory.change_settings({"keywordWeight": 0.5})["keywordWeight"] == 0.5
    assert memory.live_settings() == {"semanticWeight": 1.0, "keywordWeight": 0.5}
    with pytest.raises(recollect.InvalidProfile):
        memory.live_settings("draft")


def test_a_knob_that_only_a_damaged_profile_could_offer_is_told_with_the_damage(opened: Open) -> None:
    memory = opened()
    memory.settings.profiles.mkdir(parents=True)
    (memory.settings.profiles / "live-weights.toml").write_text("limit = 'many'\n")
    with pytest.raises(recollect.InvalidProfile, match="live-weights"):
        memory.change_settings({"keywordWeight": 0.5})


@pytest.mark.covers("live.settings")
def test_a_profile_of_ones_own_with_the_same_knobs_does_not_show_its_weights_as_those_in_use(opened: Open) -> None:
    engine = opened()
    engine.settings.profiles.mkdir(parents=True)
    for name in ("a-mine", "mine"):
        own = engine.settings.profiles / f"{name}.toml"
        own.write_text('extends = "live-weights"\n[legs.lexical]\nweight = 3.0\n')
    assert engine.live_settings() == {"semanticWeight": 1.0, "keywordWeight": 0.0}
    assert engine.live_settings("mine") == {"semanticWeight": 1.0, "keywordWeight": 3.0}


@pytest.mark.covers("live.scope")
def test_a_session_widens_to_its_project_where_it_has_one(engine: Engine) -> None:
    def note(word: str, project: str | None, session: str) -> None:
        engine.remember(f"hello {word}", scope=Scope(project=project, session=session))

    note("alpha", "shop", "s1"), note("beta", "shop", "s2"), note("gamma", "blog", "s3"), note("delta", None, "s4")
    engine.change_settings({"keywordWeight": 1.0, "semanticWeight": 0.0})

    def ask(**asked: object) -> set[str]:
        return set(contents(engine.recall("hello", profile="live-weights", **asked)))  # type: ignore[arg-type]

    assert ask(scope=Scope(session="s1")) == {"hello alpha", "hello beta"}
    assert ask(scope=Scope(session="s4")) == {"hello delta"}
    assert ask(scope=Scope(session="unknown")) == set()
    assert ask(sessions=["s1", "s3"]) == {"hello alpha", "hello gamma"}


@pytest.mark.covers("budget.hybrid")
def test_token_budget_ranks_by_words_until_vectors_exist(engine: Engine) -> None:
    engine.remember("the WAL grows without a checkpoint")
    for place in range(6):
        engine.remember(f"unrelated matter number {place} about topic{place}")
    before = engine.recall("WAL checkpoint", profile="token-budget")
    assert any("no vectors yet" in note for note in before.trace.notes) and before.profile == "token-budget"
    assert [part.list for part in before[0].contributions] == ["lexical"]
    engine.upkeep()
    after = engine.recall("WAL checkpoint", profile="token-budget")
    assert {part.list for part in after[0].contributions} == {"lexical", "dense"} and after.trace.notes == ()


@pytest.mark.covers("more.model-change")
def test_a_changed_model_never_mixes_vectors_and_embeds_anew(opened: Open) -> None:
    from recollect.encoders.fake import FakeEmbedder

    old = opened(embedder=FakeEmbedder(dimension=32))
    id = old.remember("the kerberos keytab lives on the bastion").id
    old.upkeep()
    old.close()
    new = opened(embedder=FakeEmbedder(dimension=64))
    assert len(new.recall("keytab", mode="semantic")) == 0, "the other model's vectors are not used"
    assert [hit.id for hit in new.recall("keytab")] == [id], "search goes on meanwhile"
    assert new.upkeep().embedded.embedded == 1
    assert [hit.id for hit in new.recall("keytab", mode="semantic")] == [id]


def test_keys_make_writes_idempotent_even_from_many_threads(engine: Engine) -> None:
    with ThreadPoolExecutor(8) as pool:
        receipts = list(pool.map(lambda number: engine.remember(f"note {number} of the day", key="k1"), range(24)))
    assert len({receipt.id for receipt in receipts}) == 1
    assert sorted(receipt.action for receipt in receipts)[0] == "added"
    assert [receipt.action for receipt in receipts].count("added") == 1
    assert len(engine.list()) == 1


def test_ids_sort_by_creation(engine: Engine) -> None:
    made = [engine.remember(f"topic{number} is settled").id for number in range(50)]
    assert made == sorted(made) and len(set(made)) == 50


def test_times_are_accepted_as_text_or_datetime_and_kept_in_utc_with_milliseconds(engine: Engine) -> None:
    id = engine.remember("noon in Berlin", created_at="2026-06-01T12:00:00.123456+02:00").id
    assert engine.get(id).created_at == datetime(2026, 6, 1, 10, 0, 0, 123000, tzinfo=UTC)
    with pytest.raises(recollect.InvalidInput):
        engine.remember("never", created_at="yesterday-ish")


@pytest.mark.covers("ladder.temporal")
def test_yesterday_is_a_day_of_whoever_asks(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half past midnight in Berlin: in UTC it is the evening before, whose yesterday was another day."""
    before = engine.remember("soup in the canteen", created_at="2026-05-12T12:00:00Z").id
    day = engine.remember("soup in the garden", created_at="2026-05-13T12:00:00Z").id
    berlin = datetime(2026, 5, 14, 0, 30, tzinfo=timezone(timedelta(hours=2)))
    for now, first in ((berlin, day), (berlin.isoformat(), day), (berlin.astimezone(UTC), before)):
        assert engine.recall("soup of yesterday", now=now)[0].id == first
    monkeypatch.setattr("recollect.writing.drafts.this_moment", lambda: berlin.astimezone(UTC))
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        assert engine.recall("soup of yesterday")[0].id == day
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    "asked",
    [
        {"limit": 0},
        {"limit": 999},
        {"mode": "psychic"},
        {"sort_by": "mood"},
        {"budget_tokens": 0},
        {"profile": "nope"},
        {"options": {"fusion.q": 1}},
        {"limit": "5"},
        {"limit": True},
        {"limit": 2.5},
        {"budget_tokens": "500"},
        {"profile": 5},
        {"options": ["fusion.k"]},
        {"aliases": ["pg"]},
        {"aliases": {"pg": 5}},
        {"aliases": {"pg": [5]}},
        {"aliases": {5: "pg"}},
        {"options": {5: 1}},
        {"after": "some day"},
        {"before": 5},
        {"now": "some day"},
        {"type": 5},
        {"type": [5]},
        {"tags": [5]},
        {"tags": 5},
        {"exclude": [5]},
        {"sessions": [1, 2]},
    ],
)
def test_bad_requests_are_typed_errors_with_a_field(engine: Engine, asked: dict[str, object]) -> None:
    with pytest.raises(recollect.InvalidInput) as refused:
        engine.recall("anything", **asked)  # type: ignore[arg-type]
    if not isinstance(asked.get("options"), dict):  # what is wrong in a profile is told with its place there
        assert refused.value.hint and refused.value.field == next(iter(asked))


def test_a_listing_goes_on_behind_a_memory_that_was_forgotten(engine: Engine) -> None:
    for day in (1, 2, 3):
        engine.remember(f"Room {day} has {day * 7} chairs", created_at=f"1969-12-0{day}", dedupe=False)
    newest, *others = engine.list()
    engine.forget(newest.id)
    assert engine.list(cursor=newest) == others
    assert engine.list(cursor=others[0].id) == others[1:]
    with pytest.raises(recollect.NotFound):
        engine.list(cursor=newest.id)


@pytest.mark.parametrize("cursor", ["", "behind:", "behind:x:y", "behind:999999999999999:y", "behind:5:", "\ud800"])
def test_what_is_no_cursor_is_refused(engine: Engine, cursor: str) -> None:
    with pytest.raises(recollect.RecollectError):
        engine.list(cursor=cursor)


@pytest.mark.parametrize(
    "asked", [{"limit": 0}, {"limit": -1}, {"limit": 1001}, {"limit": "5"}, {"type": 5}, {"cursor": 5}]
)
def test_a_page_is_never_silently_another_than_the_one_that_was_asked_for(
    engine: Engine, asked: dict[str, object]
) -> None:
    with pytest.raises(recollect.InvalidInput) as refused:
        engine.list(**asked)  # type: ignore[arg-type]
    assert refused.value.hint and refused.value.field == next(iter(asked))


@pytest.mark.parametrize(
    "ask",
    [
        lambda engine: engine.capture(5),
        lambda engine: engine.remember_many(["a text"]),
        lambda engine: engine.remember_many([{"content": "a text"}]),
        lambda engine: engine.remember_many("a text"),
    ],
)
def test_writing_what_is_no_draft_is_refused_with_the_way_to_make_one(
    engine: Engine, ask: Callable[[Engine], object]
) -> None:
    with pytest.raises(recollect.InvalidInput) as refused:
        ask(engine)
    assert refused.value.hint
    assert engine.list() == []


def test_a_profile_can_be_a_file(engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("extends = 'token-budget-lexical'\n[[select]]\nkind = 'top'\nmost = 1\n", encoding="utf-8")
    engine.remember("alpha deploy"), engine.remember("beta deploy notes")
    answer = engine.recall("deploy", profile=str(path))
    assert len(answer) == 1 and answer.profile == "mine"


def test_the_public_names_are_sorted_and_all_there() -> None:
    assert recollect.__all__ == sorted(recollect.__all__)
    for name in recollect.__all__:
        assert getattr(recollect, name) is not None
    assert issubclass(recollect.NotFound, recollect.RecollectError)
    with pytest.raises(AttributeError):
        _ = recollect.nothing  # type: ignore[attr-defined]


def test_closing_twice_is_fine_and_a_context_manager_closes(tmp_path: Path) -> None:
    with recollect.open(tmp_path / "a.db", embedder="none", reranker="none", home=tmp_path) as memory:
        memory.remember("one")
    memory.close()
    with recollect.open(tmp_path / "a.db", embedder="none", reranker="none", home=tmp_path) as memory:
        assert contents(memory.recall("one")) == ["one"]


@pytest.mark.covers("more.explain", "ladder.trace")
def test_every_candidate_is_returned_or_dropped_with_a_reason(engine: Engine) -> None:
    for number in range(12):
        engine.remember(f"deploy note {number} about topic{number}")
    engine.upkeep()
    answer = engine.recall("deploy note", limit=3)
    listed = {id for ids in answer.trace.lists.values() for id in ids}
    assert {hit.id for hit in answer} | {one.id for one in answer.dropped} == listed
    assert all(one.reason and one.stage for one in answer.dropped)
    trace = answer.trace
    assert trace.query and trace.attempts and trace.legs["lexical"].ms > 0 and trace.ms > 0 and trace.stages


def test_the_store_may_call_the_background_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recollect.worker.IDLE_SECONDS", 3600.0)
    calls: list[Callable[[], None]] = []
    with Engine(replace(open_memory(), subscribe=calls.append), load(home=tmp_path), FakeEmbedder()) as engine:
        engine.store.records.write([Put(Memory("m1", "written by another process"))])
        calls[0]()
        deadline = time.monotonic() + 30
        while engine.embedding_progress() != EmbeddingProgress(1, 0, 0):
            assert time.monotonic() < deadline
            time.sleep(0.01)
    with Engine(replace(open_memory(), subscribe=calls.append), load(home=tmp_path), background=False):
        assert len(calls) == 1  # whoever does not work is not called


def test_one_text_where_several_are_meant_is_refused_not_spelled_out(engine: Engine) -> None:
    """`tags="db"` would be the tags d and b, `exclude=id` would exclude nothing."""
    asked: list[tuple[str, Callable[[], object]]] = [
        ("tags", lambda: engine.remember("we run postgres", tags="db")),
        ("tags", lambda: engine.recall("postgres", tags="db")),
        ("tags", lambda: engine.list(tags="db")),
        ("exclude", lambda: engine.recall("postgres", exclude="01jv3m8x0c9k4q2r5t7w9yabcd")),
        ("only", lambda: engine.recall("postgres", only="01jv3m8x0c9k4q2r5t7w9yabcd")),
        ("sessions", lambda: engine.recall("postgres", sessions="s1")),
        ("ids", lambda: engine.forget(["01jv3m8x0c9k4q2r5t7w9yabcd"])),  # type: ignore[arg-type]
        ("scope", lambda: engine.recall("postgres", scope="shop")),  # type: ignore[arg-type]
        ("scope", lambda: engine.list(scope="shop")),  # type: ignore[arg-type]
        ("scope.session", lambda: engine.recall("postgres", scope=Scope(session=1))),  # type: ignore[arg-type]
        ("scope.project", lambda: engine.list(scope=Scope(project=1))),  # type: ignore[arg-type]
        ("scope.namespace", lambda: engine.recall("postgres", scope=Scope(namespace=None))),  # type: ignore[arg-type]
    ]
    for field, ask in asked:
        with pytest.raises(recollect.InvalidInput) as refused:
            ask()
        assert (refused.value.field, bool(refused.value.hint)) == (field, True)
    assert engine.list() == []


def test_what_is_of_another_kind_than_it_should_be_is_refused_with_its_field(engine: Engine) -> None:
    library: Any = engine
    asked: list[tuple[str, Callable[[], object]]] = [
        *((field, ask) for wrong in (b"x", ["x"], None) for field, ask in (
            ("id", lambda wrong=wrong: library.get(wrong)),
            ("id", lambda wrong=wrong: library.expand(wrong)),
            ("id", lambda wrong=wrong: library.update(wrong, pinned=True)),
            ("source", lambda wrong=wrong: library.link(wrong, "see-also", "x")),
            ("target", lambda wrong=wrong: library.link("x", "see-also", wrong)),
            ("session", lambda wrong=wrong: library.recollect("prompt", wrong)),
        )),
        ("version", lambda: library.update(engine.remember("a fact").id, version="1", pinned=True)),
        ("created_at", lambda: engine.remember("a fact", created_at="some day")),
        ("drafts", lambda: library.remember_many(None)),
        ("settings", lambda: library.change_settings(5)),
        ("limit", lambda: library.consolidate(limit="5")),
        ("limit", lambda: engine.consolidate(limit=0)),
        ("lists", lambda: recollect.fuse([["a"]])),  # type: ignore[arg-type]
        ("weights", lambda: recollect.fuse({"a": ["x"]}, weights=["a"])),  # type: ignore[arg-type]
        ("equal", lambda: recollect.fuse({"a": ["x"]}, equal="rank")),  # type: ignore[arg-type]
    ]  # fmt: skip
    for field, ask in asked:
        with pytest.raises(recollect.InvalidInput) as refused:
            ask()
        assert (refused.value.field, bool(refused.value.hint)) == (field, True)
    assert engine.recollect("prompt", "half of a pair: \ud800")[1]


def test_a_closed_memory_says_so(opened: Open) -> None:
    engine = opened()
    engine.remember("here today")
    engine.close()
    for ask in (lambda: engine.recall("today"), lambda: engine.remember("gone"), engine.list, engine.stats):
        with pytest.raises(recollect.StoreUnavailable, match="closed"):
            ask()


@pytest.mark.parametrize("sensitive", [False, True])
def test_what_has_no_vector_yet_or_never_is_found_by_its_words(opened: Open, sensitive: bool) -> None:
    """The default weighs meaning more than words: a memory without a vector must not lose all of that weight."""
    engine = opened(profile="balanced")
    for number in range(30):
        engine.remember(f"The staging host number {number} is restarted at night by job {number}")
    engine.upkeep()
    fresh = engine.remember("The password of staging rotates every Friday at noon", sensitive=sensitive)
    answer = engine.recall("when does the staging password rotate?")
    assert answer[0].id == fresh.id
    assert any("1 candidate has no vector" in note for note in answer.trace.notes)
    if not sensitive:
        engine.upkeep()
        answer = engine.recall("when does the staging password rotate?")
        assert answer[0].id == fresh.id
        assert not any("no vector" in note for note in answer.trace.notes)


@pytest.mark.covers("prior.sensitive")
def test_a_block_that_is_filled_up_counts_nothing_as_used_twice(engine: Engine) -> None:
    engine.remember("the vault code of the office", sensitive=True)
    shown = engine.remember("the office opens at nine").id
    asked: dict[str, Any] = {"profile": "two-stage", "limit": 2, "explicit": True}
    answer = engine.recall("office", **asked)
    assert len(answer) == 2 and "nine" in with_full_block(engine, answer, asked).render()
    engine.upkeep()
    assert engine.get(shown).access_count == 1


@pytest.mark.parametrize("way", ["remember", "remember_many", "capture"])
def test_what_is_written_without_the_check_is_not_merged_by_upkeep(engine: Engine, way: str) -> None:
    engine.remember("SQLite WAL mode is on")
    text = "SQLite WAL mode is on!"
    if way == "remember":
        engine.remember(text, dedupe=False)
    elif way == "remember_many":
        engine.remember_many([recollect.Draft(text)], dedupe=False)
    else:
        engine.capture(f"[MEMORY] type=fact: {text}", dedupe=False)
    assert engine.upkeep().embedded.merged == ()
    assert len(engine.list()) == 2
