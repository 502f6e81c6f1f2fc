"""What other systems write is recognised, read tolerantly, and read twice without doubling."""

from __future__ import annotations

import contextlib
import io
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.domain.errors import InvalidInput
from recollect.domain.memory import Memory, Scope
from recollect.domain.question import Filter
from recollect.identity import new_id
from recollect.importers import IMPORTERS, ImportReport, Problem, export, import_source, sniff
from recollect.ports import Store
from recollect.stores.memory import open_memory
from recollect.writing import WritePolicy, forget

NOW = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)

CHATGPT = json.dumps(
    [
        {
            "title": "Boats",
            "create_time": 1700000000.5,
            "conversation_id": "c1",
            "current_node": "n4",
            "mapping": {
                "root": {"id": "root", "parent": None, "message": None},
                "n1": {"parent": "root", "message": {"author": {"role": "system"}, "content": {"parts": ["be nice"]}}},
                "n2": {
                    "parent": "n1",
                    "message": {
                        "author": {"role": "user"},
                        "create_time": 1700000001,
                        "content": {"parts": ["I own a boat", {"asset": "image"}]},
                    },
                },
                "n3": {
                    "parent": "n2",
                    "message": {"author": {"role": "assistant"}, "content": {"parts": ["old branch"]}},
                },
                "n4": {"parent": "n2", "message": {"author": {"role": "assistant"}, "content": {"parts": ["Lovely!"]}}},
            },
        },
        {"title": "broken"},
    ]
)
CLAUDE = json.dumps(
    [
        {
            "uuid": "c1",
            "name": "Tea",
            "created_at": "2026-01-02T03:04:05Z",
            "chat_messages": [
                {"uuid": "t1", "sender": "human", "text": "", "content": [{"type": "text", "text": "I like tea"}]},
                {"uuid": "t2", "sender": "assistant", "text": "Noted.", "created_at": "2026-01-02T03:04:06.789Z"},
                {"uuid": "t3", "sender": "assistant", "text": " ", "content": []},
            ],
        }
    ]
)
CLAUDE_CODE = "\n".join(
    [
        json.dumps({"type": "summary", "summary": "s", "leafUuid": "x", "sessionId": "s1"}),
        json.dumps(
            {
                "type": "user",
                "uuid": "u1",
                "sessionId": "s1",
                "cwd": "/home/me/shop",
                "gitBranch": "main",
                "timestamp": "2026-01-02T03:04:05.000Z",
                "message": {
                    "role": "user",
                    "content": "<system-reminder>secret rules</system-reminder>Fix the login page"
                    "<recalled-memories>old stuff</recalled-memories>",
                },
            }
        ),
        "not json",
        json.dumps(
            {
                "type": "assistant",
                "uuid": "u2",
                "sessionId": "s1",
                "cwd": "C:\\work\\shop",
                "timestamp": "nonsense",
                "message": {
                    "content": [
                        {"type": "thinking", "thinking": "hm"},
                        {"type": "text", "text": "Done."},
                        {"type": "tool_use", "name": "Bash", "input": {}},
                    ]
                },
            }
        ),
        json.dumps(
            {"type": "user", "uuid": "u3", "sessionId": "s1", "isSidechain": True, "message": {"content": "side"}}
        ),
        json.dumps({"type": "user", "uuid": "u4", "sessionId": "s1", "isMeta": True, "message": {"content": "meta"}}),
        json.dumps(
            {"type": "user", "uuid": "u5", "sessionId": "s1", "message": {"content": [{"type": "tool_result"}]}}
        ),
        json.dumps({"type": "brand-new", "sessionId": "s1"}),
    ]
)
MEM0 = json.dumps(
    {
        "results": [
            {
                "id": "m1",
                "memory": "Likes hiking",
                "user_id": "emma",
                "run_id": "r1",
                "categories": ["hobby"],
                "metadata": {"weight": 2},
                "created_at": "2026-01-02T03:04:05-08:00",
            },
            {"id": "m2", "memory": ""},
        ]
    }
)
CLAUDE_MEMORY = json.dumps(
    [
        {
            "account_uuid": "a1",
            "conversations_memory": "**Work**\n\nEmma is a data engineer.\n\n**Personal**\n\nShe lives in Leeds.",
            "project_memories": {"p1": "## Stack\n\nThe project is written in Rust.", "p2": None},
        }
    ]
)
RECORDS = "\n".join(
    [
        '{"content": "We deploy on Tuesdays", "type": "decision", "tags": ["ops"], "project": "shop", "id": 7}',
        '{"content": "Anna owns billing", "importance": "high", "created_at": "2026-01-02", "metadata": {"page": 3}}',
        "{broken",
        '{"content": "x", "created_at": "yesterday"}',
        '{"text": "no content"}',
    ]
)
MCP_MEMORY = "\n".join(
    [
        '{"type":"entity","name":"Emma","entityType":"person","observations":["likes tea","lives in Leeds"]}',
        '{"type":"relation","from":"Emma","to":"Acme","relationType":"works_at"}',
        '{"type":"poem"}',
    ]
)
MARKDOWN = """---
title: Database
tags: [db, infra]
date: 2026-01-02
---
Intro about the store. #sqlite

# Setup

## WAL

WAL is on.

```
# not a heading
```

## Empty

# Backups
Nightly.
"""
MARKED = """Some chat.
[MEMORY] type=gotcha tags=sqlite,wal: Checkpoints stall while a reader is open
Decision: we deploy from release branches only.
"""
PLAIN = "- The cache is cold\n\n* Redis is fast\n---\n1. Third thing\n"

FILES = {
    "chatgpt": ("conversations.json", CHATGPT),
    "claude": ("conversations.json", CLAUDE),
    "claude-code": ("0b1c.jsonl", CLAUDE_CODE),
    "claude-memory": ("memories.json", CLAUDE_MEMORY),
    "mem0": ("dump.json", MEM0),
    "json": ("own.jsonl", RECORDS),
    "mcp-memory": ("memory.jsonl", MCP_MEMORY),
    "markdown": ("notes/db.md", MARKDOWN),
    "markers": ("session.log", MARKED),
    "text": ("notes.txt", PLAIN),
}


def run(store: Store, format: str, **fields: Any) -> ImportReport:
    name, text = FILES[format]
    return import_source(store, io.StringIO(text), name, new_id=new_id, now=NOW, policy=WritePolicy(), **fields)


def everything(store: Store) -> dict[str, Memory]:
    return {memory.content: memory for memory in store.records.scan(Filter(), "id", 1000)}


def test_every_importer_has_a_sample_and_recognises_only_its_own() -> None:
    assert set(FILES) == {importer.name for importer in IMPORTERS}
    for format, (name, text) in FILES.items():
        found = sniff(name, text)
        assert found is not None
        assert found.name == format


@pytest.mark.parametrize("format", sorted(FILES))
def test_a_second_import_adds_nothing(store: Store, format: str) -> None:
    first = run(store, format)
    before = everything(store)
    second = run(store, format)
    assert first.format == second.format == format
    assert first.added == len(before) > 0
    assert (second.added, second.merged, second.skipped) == (0, 0, first.added)
    assert everything(store) == before


@pytest.mark.parametrize("format", sorted(FILES))
def test_what_was_forgotten_stays_forgotten(store: Store, format: str) -> None:
    run(store, format)
    forget(store, [memory.id for memory in everything(store).values()])
    assert run(store, format).added == 0
    assert everything(store) == {}


@pytest.mark.parametrize("format", sorted(FILES))
def test_the_source_and_the_scope_are_told(store: Store, format: str) -> None:
    run(store, format, scope=Scope(namespace="default", project="mine"))
    for memory in everything(store).values():
        assert memory.scope.project == "mine"
        assert memory.source.startswith(f"import:{format}:")
        assert "/" not in memory.source


def test_chatgpt_follows_the_open_branch(store: Store) -> None:
    report = run(store, "chatgpt")
    held = everything(store)
    assert set(held) == {"I own a boat", "Lovely!"}
    boat = held["I own a boat"]
    assert (boat.type, boat.scope.session, boat.key) == ("episode", "c1", "chatgpt:c1:n2")
    assert boat.created_at == datetime.fromtimestamp(1700000001, UTC)
    assert held["Lovely!"].created_at == datetime.fromtimestamp(1700000000.5, UTC)
    assert boat.metadata == {"role": "user", "title": "Boats"}
    assert report.problems == [Problem(2, "a conversation without messages")]


def test_claude_prefers_blocks_over_text(store: Store) -> None:
    run(store, "claude")
    held = everything(store)
    assert set(held) == {"I like tea", "Noted."}
    assert (held["I like tea"].metadata["role"], held["I like tea"].scope.session) == ("user", "c1")
    assert held["I like tea"].created_at == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert held["Noted."].created_at == datetime(2026, 1, 2, 3, 4, 6, 789000, tzinfo=UTC)


def test_claude_code_takes_only_what_was_said(store: Store) -> None:
    report = run(store, "claude-code")
    held = everything(store)
    assert set(held) == {"Fix the login page", "Done."}
    assert {memory.scope for memory in held.values()} == {Scope(project="shop", session="s1")}
    assert held["Done."].created_at == NOW
    assert [problem.place for problem in report.problems] == [3]


def test_mem0_keeps_ids_times_and_metadata(store: Store) -> None:
    report = run(store, "mem0")
    (memory,) = everything(store).values()
    assert (memory.content, memory.key, memory.tags) == ("Likes hiking", "mem0:m1", ("hobby",))
    assert memory.created_at == datetime(2026, 1, 2, 11, 4, 5, tzinfo=UTC)
    assert (memory.metadata["mem0"], memory.metadata["weight"]) == ({"user_id": "emma"}, 2)
    assert memory.scope.session == "r1"
    assert [problem.place for problem in report.problems] == [2]


def test_mem0_may_be_dumped_one_a_line(store: Store) -> None:
    text = '{"id": "1", "memory": "Likes tea", "user_id": "u"}\n{"id": "2", "memory": "Lives in Leeds"}\nbroken\n'
    report = import_source(store, io.StringIO(text), "a.jsonl", new_id=new_id, now=NOW, policy=WritePolicy())
    assert (report.format, report.added, [one.place for one in report.problems]) == ("mem0", 2, [3])


def test_claude_memory_is_read_by_paragraphs(store: Store) -> None:
    run(store, "claude-memory")
    held = everything(store)
    assert {text: (one.metadata.get("heading"), one.scope.project) for text, one in held.items()} == {
        "Emma is a data engineer.": ("Work", None),
        "She lives in Leeds.": ("Personal", None),
        "The project is written in Rust.": ("Stack", "p1"),
    }


def test_records_of_ones_own_keep_their_fields(store: Store) -> None:
    report = run(store, "json")
    held = everything(store)
    deploy, anna = held["We deploy on Tuesdays"], held["Anna owns billing"]
    assert (deploy.type, deploy.tags, deploy.scope.project, deploy.metadata) == (
        "decision",
        ("ops",),
        "shop",
        {"id": 7},
    )
    assert (anna.importance, anna.created_at, anna.metadata) == (0.9, datetime(2026, 1, 2, tzinfo=UTC), {"page": 3})
    assert [one.place for one in report.problems] == [3, 4, 5]
    listed = io.StringIO(json.dumps([{"content": "Listed"}, {"content": "Too"}]))
    again = import_source(store, listed, "a.json", new_id=new_id, now=NOW, policy=WritePolicy())
    assert (again.format, again.added) == ("json", 2)


def test_mcp_memory_turns_observations_and_relations_into_sentences(store: Store) -> None:
    report = run(store, "mcp-memory")
    held = everything(store)
    assert set(held) == {"Emma: likes tea", "Emma: lives in Leeds", "Emma works at Acme"}
    assert held["Emma: likes tea"].tags == ("person",)
    assert held["Emma works at Acme"].metadata == {"from": "Emma", "relation": "works_at", "to": "Acme"}
    assert [problem.place for problem in report.problems] == [3]


def test_markdown_sections_keep_their_path(store: Store) -> None:
    run(store, "markdown")
    held = everything(store)
    assert set(held) == {
        "Intro about the store. #sqlite",
        "## WAL\n\nWAL is on.\n\n```\n# not a heading\n```",
        "# Backups\nNightly.",
    }
    wal = held["## WAL\n\nWAL is on.\n\n```\n# not a heading\n```"]
    assert wal.metadata["headings"] == ["Setup", "WAL"]
    assert wal.metadata["path"] == "notes/db.md"
    assert wal.metadata["front_matter"] == {"title": "Database", "date": "2026-01-02"}
    assert wal.created_at == datetime(2026, 1, 2, tzinfo=UTC)
    assert held["Intro about the store. #sqlite"].tags == ("db", "infra", "sqlite")


def test_a_line_at_the_top_of_a_note_is_no_front_matter(store: Store) -> None:
    """Neither a rule that nothing closes nor text between two rules may vanish."""
    for text in ("---\n\n# Title\n\nMust stay.\n", "---\nMust stay.\n\n---\nAnd this.\n", "---\nMust stay: yes\n"):
        import_source(store, io.StringIO(text), "a.md", new_id=new_id, now=NOW, policy=WritePolicy())
    held = "\n".join(everything(store))
    assert (held.count("Must stay"), held.count("And this.")) == (3, 1)


def test_front_matter_that_is_made_for_people_keeps_no_note_out(store: Store) -> None:
    front = 'type: "[[Book Note]]"\ntags: [reading, "machine learning", ""]\nÄhnlich: Foo'
    text = f"---\n{front}\n---\nOrthogonality matters.\n"
    report = import_source(store, io.StringIO(text), "a.md", new_id=new_id, now=NOW, policy=WritePolicy())
    (memory,) = everything(store).values()
    assert (report.problem_count, memory.type, memory.tags) == (0, "book-note", ("reading", "machine learning"))
    assert memory.metadata["front_matter"] == {"type": "[[Book Note]]", "ähnlich": "Foo"}


@pytest.mark.covers("budget.marker")
def test_markers_carry_type_tags_and_confidence(store: Store) -> None:
    run(store, "markers")
    held = everything(store)
    explicit = held["Checkpoints stall while a reader is open"]
    assert (explicit.type, explicit.tags, explicit.confidence) == ("gotcha", ("sqlite", "wal"), 0.8)
    (implicit,) = (memory for memory in held.values() if memory is not explicit)
    assert (implicit.type, implicit.confidence) == ("decision", 0.6)


def test_plain_lines_lose_only_their_bullets(store: Store) -> None:
    run(store, "text")
    assert set(everything(store)) == {"The cache is cold", "Redis is fast", "Third thing"}


def test_our_own_export_is_recognised(store: Store) -> None:
    run(store, "mem0")
    out = io.StringIO()
    export(store, out)
    fresh = open_memory()
    out.seek(0)
    report = import_source(fresh, out, "x.jsonl", new_id=new_id, now=NOW, policy=WritePolicy())
    assert (report.format, report.added) == ("recollect", 1)


def test_a_stream_that_cannot_be_rewound_is_read_all_the_same(store: Store) -> None:
    class Pipe(io.StringIO):
        def seekable(self) -> bool:
            return False

    report = import_source(store, Pipe(PLAIN), "-", new_id=new_id, now=NOW, policy=WritePolicy())
    assert (report.format, report.added) == ("text", 3)


def test_secrets_in_a_transcript_are_hidden(store: Store) -> None:
    text = "the key is ghp_" + "a1B2c3D4e5F6" * 3
    report = import_source(store, io.StringIO(text), "a.txt", new_id=new_id, now=NOW, policy=WritePolicy())
    assert (report.added, report.redacted) == (0, 1)
    assert "ghp_" not in repr(everything(store))


def test_an_unknown_format_names_the_known_ones(store: Store) -> None:
    for text, format in (("<html>", None), ("x", "word")):
        with pytest.raises(InvalidInput) as caught:
            import_source(
                store, io.StringIO(text), "a.bin", new_id=new_id, now=NOW, policy=WritePolicy(), format=format
            )
        assert "mem0" in caught.value.hint


def test_a_draft_that_cannot_be_stored_is_a_problem_and_the_rest_goes_on(store: Store) -> None:
    entries = [{"id": "1", "memory": "a\0b"}, {"id": "2", "memory": "fine"}, {"id": "3", "memory": "x" * 2**21}]
    stream = io.StringIO(json.dumps({"results": entries}))
    report = import_source(store, stream, "a.json", new_id=new_id, now=NOW, policy=WritePolicy(), format="mem0")
    assert (report.added, report.problem_count) == (1, 2)


@pytest.mark.parametrize("format", sorted(FILES))
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_no_file_makes_a_reader_fall_over(format: str, data: st.DataObject) -> None:
    reader = next(importer for importer in IMPORTERS if importer.name == format)
    whole = FILES[format][1]
    start = data.draw(st.integers(0, len(whole)))
    end = data.draw(st.integers(start, len(whole)))
    mangled = whole[:start] + data.draw(st.text(max_size=20)) + whole[end:]
    nested = json.dumps(data.draw(st.lists(st.dictionaries(st.sampled_from(
        ["mapping", "message", "content", "chat_messages", "memory", "results", "type", "sender", "observations"]
    ), st.none() | st.integers() | st.lists(st.none()) | st.text(max_size=3)))))  # fmt: skip
    for text in (mangled, nested):
        with contextlib.suppress(InvalidInput):
            list(reader.read(io.StringIO(text), "x"))


@pytest.mark.parametrize("line", ["# a" + " " * 100_000 + "b", "#" + " " * 100_000, "# a " + "#" * 100_000 + "b"])
def test_a_heading_with_a_long_gap_is_read_once(line: str) -> None:
    text = f"{line}\nThe port is 4777"
    for format, file in (("markdown", text), ("claude-memory", json.dumps({"conversations_memory": text}))):
        reader = next(importer for importer in IMPORTERS if importer.name == format)
        (found,) = reader.read(io.StringIO(file), "x")
        assert not isinstance(found, Problem) and found.content.endswith("The port is 4777")


def test_a_note_of_a_type_that_has_no_word_in_lower_case_is_kept(store: Store) -> None:
    notes = io.StringIO("---\ntype: İstek\n---\nThe port is 4777\n")
    assert import_source(store, notes, "a.md", new_id=new_id, now=NOW, policy=WritePolicy()).added == 1


def test_a_circle_of_messages_ends(store: Store) -> None:
    nodes = {"a": {"parent": "b"}, "b": {"parent": "a"}}
    text = json.dumps([{"mapping": nodes, "current_node": "a"}])
    report = import_source(store, io.StringIO(text), "c.json", new_id=new_id, now=NOW, policy=WritePolicy())
    assert report.added == 0
