"""Imports again, after an edit over there: what was edited is changed in place, what was not is left alone."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from recollect.domain.memory import Memory, Scope
from recollect.domain.question import Filter
from recollect.identity import new_id
from recollect.importers import ImportReport, import_source
from recollect.ports import Store
from recollect.writing import Draft, WritePolicy, forget, link, remember, update

NOW = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
LATER = NOW + timedelta(days=1)

NOTE = "---\ntags: [db]\n---\nAbout the store.\n\n# Setup\n\nWAL is on.\n\n# Log\n\nfirst day\n\n# Log\n\nsecond day\n"


def sync(store: Store, text: str, name: str = "db.md", **fields: Any) -> ImportReport:
    fields = {"origin": f"/vault/{name}", "now": LATER, **fields}
    return import_source(store, io.StringIO(text), name, new_id=new_id, policy=WritePolicy(), **fields)


def held(store: Store) -> list[Memory]:
    return store.records.scan(Filter(), "id", 1000)


def texts(store: Store) -> list[str]:
    return sorted(memory.content for memory in held(store))


def counts(report: ImportReport) -> tuple[int, int, int]:
    return report.added, report.updated, report.skipped


def test_an_edited_section_is_changed_in_place_and_the_others_are_left_alone(store: Store) -> None:
    assert counts(sync(store, NOTE, now=NOW)) == (4, 0, 0)
    before = {memory.id: memory for memory in held(store)}
    (wal,) = (memory for memory in before.values() if "WAL" in memory.content)
    update(store, wal.id, now=NOW, policy=WritePolicy(), pinned=True, importance=0.9)
    changed: list[str] = []
    edited = NOTE.replace("WAL is on.", "WAL is on, and checkpoints are manual.")
    assert counts(sync(store, edited, changed=changed.append)) == (0, 1, 3)
    after = {memory.id: memory for memory in held(store)}
    assert after.keys() == before.keys() and changed == [wal.id]
    assert after[wal.id].content == "# Setup\n\nWAL is on, and checkpoints are manual."
    assert (after[wal.id].pinned, after[wal.id].importance, after[wal.id].updated_at) == (True, 0.9, LATER)
    assert all(after[id] == before[id] for id in before if id != wal.id)
    assert counts(sync(store, edited)) == (0, 0, 4)


def test_tags_and_type_of_a_note_follow_its_front_matter(store: Store) -> None:
    sync(store, "---\ntags: [db]\n---\nWAL is on.\n")
    assert counts(sync(store, "---\ntags: [infra]\ntype: decision\n---\nWAL is on.\n")) == (0, 1, 0)
    assert [(memory.tags, memory.type) for memory in held(store)] == [(("infra",), "decision")]


def test_a_new_section_before_others_of_the_same_name_loses_none(store: Store) -> None:
    sync(store, NOTE)
    sync(store, NOTE.replace("# Log\n\nfirst day", "# Log\n\nday zero\n\n# Log\n\nfirst day"))
    assert [text for text in texts(store) if text.startswith("# Log")] == [
        "# Log\n\nday zero",
        "# Log\n\nfirst day",
        "# Log\n\nsecond day",
    ]


def test_a_text_that_moved_to_another_section_is_not_lost_with_the_edit_of_its_old_one(store: Store) -> None:
    sync(store, "# Setup\n\nWAL is on.\n")
    sync(store, "WAL is on.\n\n# Setup\n\nNothing to set up.\n")
    assert texts(store) == ["# Setup\n\nNothing to set up.", "WAL is on."]


def test_notes_of_one_name_in_two_folders_or_projects_are_two(store: Store) -> None:
    sync(store, "The shop sells tea.\n", origin="/shop/README.md")
    sync(store, "The farm grows rye.\n", origin="/barn/README.md")
    sync(store, "The farm grows rye and oats.\n", origin="/barn/README.md", scope=Scope(project="farm"))
    assert texts(store) == ["The farm grows rye and oats.", "The farm grows rye.", "The shop sells tea."]


def test_without_a_place_of_its_own_a_note_has_no_key(store: Store) -> None:
    sync(store, "We sail at noon.\n", origin="")
    sync(store, "The tide turns at six.\n", origin="")
    assert texts(store) == ["The tide turns at six.", "We sail at noon."]
    assert [memory.key for memory in held(store)] == [None, None]


def test_what_was_corrected_here_stands_until_the_note_is_edited(store: Store) -> None:
    sync(store, "WAL is on.\n")
    (memory,) = held(store)
    update(store, memory.id, now=NOW, policy=WritePolicy(), content="WAL is off.")
    assert counts(sync(store, "WAL is on.\n")) == (0, 0, 1)
    assert texts(store) == ["WAL is off."]
    assert counts(sync(store, "WAL is on again.\n")) == (0, 1, 0)
    assert texts(store) == ["WAL is on again."]


def test_the_same_file_by_another_name_is_the_same_note(store: Store) -> None:
    sync(store, "WAL is on.\n", "notes/db.md", origin="/vault/notes/db.md")
    (memory,) = held(store)
    update(store, memory.id, now=NOW, policy=WritePolicy(), content="WAL is off.")
    assert counts(sync(store, "WAL is on.\n", "db.md", origin="/vault/notes/db.md")) == (0, 0, 1)
    assert texts(store) == ["WAL is off."]


def test_a_renamed_note_and_equal_sections_of_two_notes_come_in_once(store: Store) -> None:
    """Titles and headings are found (decision 16), but are no part of the text that tells one memory from another."""
    sync(store, NOTE, "db.md")
    before = texts(store)
    assert sync(store, NOTE, "storage.md").added == 0
    assert sync(store, "# Farm\n\n# Setup\n\nWAL is on.\n", "farm.md").added == 0
    assert texts(store) == before


def test_a_note_that_an_older_version_imported_is_changed_in_place(store: Store) -> None:
    """It had no key: the first import that finds it unchanged gives it one."""
    sync(store, "WAL is on.\n", origin="")
    sync(store, "WAL is on.\n")
    assert counts(sync(store, "WAL is off.\n")) == (0, 1, 0)
    assert texts(store) == ["WAL is off."]


def test_a_memory_that_a_note_was_merged_into_is_not_the_notes_to_change(store: Store) -> None:
    remember(store, Draft("SQLite WAL is important"), id="mine", now=NOW, policy=WritePolicy())
    assert sync(store, "SQLite WAL mode matters\n").merged == 1
    assert counts(sync(store, "We sail at noon.\n")) == (1, 0, 0)
    assert texts(store) == ["SQLite WAL is important", "We sail at noon."]
    assert counts(sync(store, "We sail at one.\n")) == (0, 1, 0)


def test_an_edit_is_seen_although_something_else_stands_before_the_older_text(store: Store) -> None:
    sync(store, "SQLite WAL mode matters\n")
    (note,) = held(store)
    remember(store, Draft("SQLite is gone"), id="newer", now=NOW, policy=WritePolicy())
    link(store, "newer", "supersedes", note.id, now=NOW)
    assert counts(sync(store, "We sail at noon.\n")) == (1, 0, 0)
    assert texts(store) == ["SQLite WAL mode matters", "SQLite is gone", "We sail at noon."]


@pytest.mark.covers("more.forget")
def test_an_edit_does_not_bring_back_what_was_forgotten(store: Store) -> None:
    remember(store, Draft("the vault code is marmalade"), id="gone", now=NOW, policy=WritePolicy())
    forget(store, ["gone"])
    sync(store, "We sail at noon.\n")
    assert counts(sync(store, "the vault code is marmalade\n")) == (0, 0, 1)
    assert texts(store) == ["We sail at noon."]


def test_secrets_in_an_edit_are_hidden(store: Store) -> None:
    sync(store, "We sail at noon.\n")
    sync(store, "password = hunter2hunter2\n")
    assert "hunter2" not in "".join(texts(store))


def test_memories_of_mem0_follow_it(store: Store) -> None:
    def dump(text: str) -> str:
        return json.dumps({"results": [{"id": "m1", "memory": text, "user_id": "emma"}]})

    sync(store, dump("Likes hiking"), "a.json", origin="")
    assert counts(sync(store, dump("Likes sailing"), "b.json", origin="")) == (0, 1, 0)
    assert counts(sync(store, dump("Likes sailing"), "b.json", origin="")) == (0, 0, 1)
    assert texts(store) == ["Likes sailing"]


def test_what_claude_wrote_down_follows_it(store: Store) -> None:
    def dump(*accounts: tuple[str, str]) -> str:
        told = ((account, f"**Work**\n\n{text}") for account, text in accounts)
        return json.dumps([{"account_uuid": account, "conversations_memory": text} for account, text in told])

    sync(store, dump(("a", "Emma is a data engineer."), ("b", "Tom is a cook.")), "memories.json", origin="")
    again = dump(("a", "Emma leads the data team."), ("b", "Tom is a cook."))
    assert counts(sync(store, again, "memories.json", origin="")) == (0, 1, 1)
    assert texts(store) == ["Emma leads the data team.", "Tom is a cook."]
    assert sync(store, again, "memories.json", origin="", scope=Scope(project="mine")).added == 2
