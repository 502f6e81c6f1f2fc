"""What takes long in a large file lets others write meanwhile: the doctor reads, and vectors are dropped in steps, as
memories are entered for a new model."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest
from sqlite_cases import damage, embed, note, put, vectors_of

from recollect.domain.changes import AddLink, Erase, Put
from recollect.domain.memory import Link, content_hash
from recollect.domain.query import Term
from recollect.domain.question import Filter
from recollect.ports import Embedded, EmbeddingProgress, Store
from recollect.stores.sqlite import open_sqlite, outbox, repairs
from recollect.stores.sqlite.vectors import SqliteVectors
from recollect.stores.sqlite.writer import Writer

TEXTS = [
    "plain words, again and again words", "", "Ünïcode «quotes» naïve café", "全文検索 テスト ภาษาไทย", "a" * 40_000,
    "é" * 40_000, "snake_case camelCase path/to/file.py", "İstanbul ǅ ß ﬁ", "x\U0010f2c7y marked",
    "1 2 3 running runner runs",
]  # fmt: skip


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s.db"


@pytest.fixture
def store(path: Path, request: pytest.FixtureRequest) -> Store:
    opened = open_sqlite(path)
    request.addfinalizer(opened.close)
    places = [{}, {"project": "p"}, {"session": "s", "type": "episode"}, {"namespace": "n"}]
    memories = [
        note(f"m{n}", f"{text} {n}", tags=("two words", f"tag{n % 3}"), **places[n % 4])
        for n, text in enumerate(TEXTS * 2)
    ]
    put(opened, *memories)
    for memory in memories:
        embed(opened, memory, 1.0, 0.5)
    opened.records.write([AddLink(Link("m0", "see-also", "m4")), Erase("m3")])
    opened.records.write([Put(note("m5", "another text", tags=("new",), project="p"), expected_version=1)])
    return opened


def test_the_doctor_reads_while_somebody_writes(path: Path, store: Store) -> None:
    with closing(apsw.Connection(str(path))) as other:
        other.execute("BEGIN IMMEDIATE")
        assert store.care.check() == []
        other.execute("ROLLBACK")


def test_the_doctor_of_a_file_that_is_only_read_looks_at_the_full_text_too(path: Path, store: Store) -> None:
    store.close()
    damage(path, "INSERT INTO fulltext (fulltext) VALUES ('delete-all')")
    with closing(open_sqlite(path, read_only=True)) as reader:
        assert [finding.kind for finding in reader.care.check()] == ["fulltext"]


WRONG = {
    "a word that no text holds": "INSERT INTO fulltext (rowid, content, tags, scope) VALUES (1, 'stray', '', '')",
    "a word of another column": "INSERT INTO fulltext (rowid, content, tags, scope) VALUES (1, '', 'plain', '')",
    "a word less": "INSERT INTO fulltext (fulltext, rowid, content, tags, scope) VALUES ('delete', 1, 'plain', '', '')",
    "a scope less": (
        "INSERT INTO fulltext (fulltext, rowid, content, tags, scope)"
        " SELECT 'delete', 2, '', '', scope FROM indexed_texts WHERE row = 2"
    ),
    "two memories exchanged": (
        "INSERT INTO fulltext (fulltext, rowid, content, tags, scope) SELECT 'delete', row, content, tags, scope"
        " FROM indexed_texts WHERE row IN (1, 10);"
        "INSERT INTO fulltext (rowid, content, tags, scope) SELECT 11 - row, content, tags, scope"
        " FROM indexed_texts WHERE row IN (1, 10)"
    ),
}


@pytest.mark.parametrize("sql", WRONG.values(), ids=WRONG.keys())
def test_a_full_text_that_does_not_fit_is_found_by_reading(path: Path, store: Store, sql: str) -> None:
    from recollect.stores.sqlite.connection import connect

    with closing(connect(str(path))) as connection:
        for statement in sql.split(";"):
            connection.execute(statement).fetchall()
    assert "fulltext" in {finding.kind for finding in store.care.check()}
    assert all(finding.repaired for finding in store.care.check(repair=True))
    assert store.care.check() == []


def test_vectors_are_dropped_in_steps(path: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[int] = []
    run = Writer.run

    def watched(self: Writer, *given: Any) -> Any:
        result = run(self, *given)
        held.append(store.care.stats().vectors)
        return result

    failing = note("failing", "cannot be embedded")
    put(store, failing)
    vectors_of(store).put("m", [Embedded("failing", content_hash(failing.content), None, error="no")])
    before = store.care.stats().vectors
    monkeypatch.setattr(outbox, "FORGOTTEN_AT_ONCE", 4)
    monkeypatch.setattr(Writer, "run", watched)
    vectors_of(store).forget("m")
    steps = [one - other for one, other in zip([before, *held], held, strict=False)]
    assert held[-1] == 0 and max(steps) <= 4 and len(steps) > before // 4
    progress = vectors_of(store).progress("m")
    assert (progress.done, progress.pending, progress.failed) == (0, store.care.stats().memories, 0)
    assert vectors_of(store).models() == [] and store.care.check() == []
    wider = np.array([[1.0, 0.0, 0.0]], dtype=np.float32)
    vectors_of(store).put("m", [Embedded("failing", content_hash(failing.content), wider)])


def test_what_is_embedded_while_vectors_are_dropped_is_kept(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    run, again = Writer.run, [note("m0", f"{TEXTS[0]} 0")]

    def watched(self: Writer, *given: Any) -> Any:
        result = run(self, *given)
        if again:
            embed(store, again.pop(), 0.5, 1.0)
        return result

    monkeypatch.setattr(outbox, "FORGOTTEN_AT_ONCE", 4)
    monkeypatch.setattr(Writer, "run", watched)
    vectors_of(store).forget("m")
    assert vectors_of(store).progress("m").done == 1
    assert [one.id for one in vectors_of(store).stored("m", ["m0", "m1"])] == ["m0"]
    assert store.care.check() == []


def able(path: Path) -> list[str]:
    """The memories that may be embedded, in the order in which they came."""
    with closing(apsw.Connection(str(path))) as other:
        return [id for (id,) in other.execute("SELECT id FROM memories WHERE NOT sensitive ORDER BY row")]


def test_a_new_model_is_asked_for_all_memories_in_steps(
    path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two of them others write: what they enter, embed, change, hide and erase comes out right."""
    run, seen = Writer.run, list[EmbeddingProgress]()
    fresh, changed = note("fresh", "a new text"), note("m17", "a changed text")
    hidden = note("m18", "a hidden text", sensitive=True)

    def embed_at_once() -> None:
        """As an older version does it, which enters nothing before."""
        with monkeypatch.context() as patched:
            patched.setattr(SqliteVectors, "_enter_all", lambda *_: None)
            embed(store, fresh, 1.0, 0.5, model="new")

    meanwhile = [
        lambda: put(store, fresh),
        embed_at_once,
        lambda: store.records.write([Put(changed, expected_version=1), Erase("m16"), Erase("m0")]),
        lambda: store.records.write([Put(hidden, expected_version=1)]),
    ]

    def watched(self: Writer, *given: Any) -> Any:
        result = run(self, *given)
        monkeypatch.setattr(Writer, "run", run)
        seen.append(vectors_of(store).progress("new"))
        assert store.care.check() == []
        if meanwhile:
            meanwhile.pop(0)()
        monkeypatch.setattr(Writer, "run", watched)
        return result

    monkeypatch.setattr(outbox, "ENTERED_AT_ONCE", 4)
    monkeypatch.setattr(Writer, "run", watched)
    before = len(able(path))
    found = [one.id for one in vectors_of(store).missing("new", 100)]
    monkeypatch.setattr(Writer, "run", run)
    assert len(seen) > before // 4 and (seen[0].done, seen[0].pending, seen[0].failed) == (0, before, 0)
    assert found == [id for id in able(path) if id != "fresh"] and "m17" in found and "m18" not in found
    progress = vectors_of(store).progress("new")
    assert (progress.done, progress.pending) == (1, len(found)) and store.care.check() == []


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_who_is_killed_while_a_model_is_asked_loses_nothing(
    path: Path, store: Store, monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    run, left = Writer.run, [None] * steps

    def dying(self: Writer, *given: Any) -> Any:
        if not left:
            raise KeyboardInterrupt
        left.pop()
        return run(self, *given)

    monkeypatch.setattr(outbox, "ENTERED_AT_ONCE", 4)
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(Writer, "run", dying)
        vectors_of(store).missing("new", 100)
    store.close()
    with closing(open_sqlite(path)) as again:
        assert again.care.check() == []
        assert vectors_of(again).progress("new").pending == len(able(path))
        assert [one.id for one in vectors_of(again).missing("new", 2)] == able(path)[:2]
        assert [one.id for one in vectors_of(again).missing("new", 100)] == able(path)
        assert again.care.check() == []


def test_what_is_put_for_a_model_that_nobody_asked_is_not_asked_again(path: Path, store: Store) -> None:
    embed(store, note("m1", f"{TEXTS[1]} 1"), 1.0, 0.5, model="new")
    progress = vectors_of(store).progress("new")
    assert (progress.done, progress.pending) == (1, len(able(path)) - 1) and store.care.check() == []
    assert [one.id for one in vectors_of(store).missing("new", 100)] == [id for id in able(path) if id != "m1"]


def test_a_repair_of_the_outbox_enters_all_that_is_left(
    path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    embed(store, note("m1", f"{TEXTS[1]} 1"), 1.0, 0.5, model="new")
    store.close()
    damage(path, "UPDATE models SET done = 7 WHERE name = 'new'")
    with closing(open_sqlite(path)) as again:
        assert [one.kind for one in again.care.check(repair=True) if one.repaired] == ["outbox"]
        assert vectors_of(again).progress("new").pending == len(able(path)) - 1 and again.care.check() == []


BESIDE_FULLTEXT = [
    "UPDATE texts SET tokens = x'000000000000000000000000', content_tokens = 1 WHERE row % 3 = 0",
    "UPDATE texts SET about = 5 WHERE row % 5 = 0",
    "UPDATE memories SET text_hash = 1 WHERE row % 4 = 0",
    "UPDATE counters SET value = value + 7 WHERE name IN ('documents', 'tokens')",
    "UPDATE namespaces SET memories = 7",
    "INSERT INTO common_terms VALUES ('word', 3)",
    "DELETE FROM words WHERE number % 2",
]


OF_FULLTEXT = [
    "INSERT INTO fulltext (fulltext, rowid, content, tags, scope) VALUES ('delete', 3, 'words', '', '')",
    "DELETE FROM texts WHERE row IN (2, 9)",
]


@pytest.mark.parametrize("killed_after", [None, 1, 3, 7])
@pytest.mark.parametrize("with_index", [False, True])
def test_texts_are_mended_in_steps(
    path: Path, store: Store, monkeypatch: pytest.MonkeyPatch, with_index: bool, killed_after: int | None
) -> None:
    """Others write between two steps, and who is killed there has mended what came before."""
    store.close()
    for sql in BESIDE_FULLTEXT + (OF_FULLTEXT if with_index else []):
        damage(path, sql)
    run, steps = Writer.run, list[int]()
    meanwhile = [
        [Put(note("fresh", "a new text with words"))],
        [Erase("m6"), Put(note("m17", "a changed text"), expected_version=1)],
    ]

    def watched(self: Writer, *given: Any) -> Any:
        if len(steps) == killed_after:
            raise KeyboardInterrupt
        result = run(self, *given)
        steps.append(1)
        monkeypatch.setattr(Writer, "run", run)
        if meanwhile:
            opened.records.write(meanwhile.pop(0))
        monkeypatch.setattr(Writer, "run", watched)
        return result

    monkeypatch.setattr(repairs, "MENDED_AT_ONCE", 4)
    opened = open_sqlite(path)
    monkeypatch.setattr(Writer, "run", watched)
    if killed_after is None:
        mended = opened.care.check(repair=True)
        kinds = {"tokens", "subject", "text-hash", "counters", "words"}
        assert {one.kind for one in mended} == kinds | ({"fulltext"} if with_index else set())
        assert all(one.repaired for one in mended) and len(steps) > 19 // 4
    else:
        with pytest.raises(KeyboardInterrupt):
            opened.care.check(repair=True)
    monkeypatch.setattr(Writer, "run", run)
    opened.close()
    with closing(open_sqlite(path)) as again:
        left = again.care.check(repair=True)
        assert bool(left) == (killed_after is not None) and all(one.repaired for one in left)
        assert again.care.check() == []


def test_an_index_that_is_wrong_is_made_anew_at_once(path: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search must not meet half of it."""
    run, found = Writer.run, list[int]()

    def watched(self: Writer, *given: Any) -> Any:
        result = run(self, *given)
        assert store.text is not None
        found.append(len(store.text.match(Term("words"), Filter(), 50).ids))
        return result

    damage(path, "INSERT INTO fulltext (fulltext) VALUES ('delete-all')")
    damage(path, "UPDATE texts SET about = 5 WHERE row % 5 = 0")
    monkeypatch.setattr(repairs, "MENDED_AT_ONCE", 4)
    monkeypatch.setattr(Writer, "run", watched)
    assert all(one.repaired for one in store.care.check(repair=True)) and set(found) <= {0, found[-1]}
