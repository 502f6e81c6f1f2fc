"""Export and import lose nothing, change nothing and can be repeated."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.domain.changes import AddLink, Put
from recollect.domain.errors import InvalidInput
from recollect.domain.memory import EPOCH, LINK_TYPES, MENTIONS, Link, Memory, Scope
from recollect.domain.question import Filter
from recollect.importers import export, exporting, import_jsonl
from recollect.importers.lines import numbered_lines
from recollect.ports import Store
from recollect.stores.memory import open_memory
from recollect.stores.sqlite import open_sqlite
from recollect.writing import forget

pytestmark = pytest.mark.covers("more.export")

NOW = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
NAMESPACES = ("default", "other")
STORES: list[Callable[[], Store]] = [open_memory, lambda: open_sqlite(":memory:")]

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)
names = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8).filter(str.strip)
moments = st.integers(0, 4_000_000_000_000).map(lambda ms: EPOCH + timedelta(milliseconds=ms))
numbers = st.floats(0, 1)
json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


@st.composite
def memories(draw: st.DrawFn) -> list[Memory]:
    made: list[Memory] = []
    for number in range(draw(st.integers(0, 6))):
        scope = Scope(draw(st.sampled_from(NAMESPACES)), draw(st.none() | names), draw(st.none() | names))
        made.append(
            Memory(
                id=f"{draw(st.integers(0, 9))}-{number}",
                content=draw(texts.filter(str.strip)),
                type=draw(st.sampled_from(["fact", "episode", "decision"])),
                tags=tuple(dict.fromkeys(tag.strip() for tag in draw(st.lists(names, max_size=3)))),
                confidence=draw(numbers),
                importance=draw(numbers),
                scope=scope,
                source=draw(names),
                key=f"k{number}" if draw(st.booleans()) else None,
                created_at=draw(moments),
                updated_at=draw(moments),
                accessed_at=draw(moments),
                access_count=draw(st.integers(0, 9)),
                pinned=draw(st.booleans()),
                sensitive=draw(st.booleans()),
                metadata=draw(st.dictionaries(texts, json_values, max_size=3)),
                version=draw(st.integers(1, 9)),
            )
        )
    return made


@st.composite
def stores(draw: st.DrawFn) -> tuple[list[Memory], list[Link]]:
    made = draw(memories())
    ends = [(a.id, b.id) for a in made for b in made if a.id != b.id and a.scope.namespace == b.scope.namespace]
    links: list[Link] = []
    if ends:
        for source, target in draw(st.lists(st.sampled_from(ends), max_size=4)):
            links.append(Link(source, draw(st.sampled_from(LINK_TYPES)), target, draw(moments)))
    return made, links


def exported(store: Store) -> str:
    out = io.StringIO()
    export(store, out, namespaces=NAMESPACES)
    return out.getvalue()


def everything(store: Store) -> list[Memory]:
    return [memory for name in NAMESPACES for memory in store.records.scan(Filter(namespace=name), "id", 1000)]


@settings(max_examples=60, deadline=None)
@given(stores(), st.sampled_from(STORES), st.sampled_from(STORES))
def test_export_import_export_gives_the_same_bytes(
    contents: tuple[list[Memory], list[Link]], first: Callable[[], Store], second: Callable[[], Store]
) -> None:
    held, links = contents
    with closing(first()) as source, closing(second()) as target:
        source.records.write([*(Put(memory) for memory in held), *(AddLink(link) for link in links)])
        lines = exported(source)
        report = import_jsonl(target, io.StringIO(lines))
        assert (report.added, report.problem_count) == (len(held), 0)
        assert everything(target) == everything(source)
        assert exported(target) == lines
        again = import_jsonl(target, io.StringIO(lines))
        assert (again.added, again.skipped, again.problem_count) == (0, len(held), 0)
        assert exported(target) == lines


def keep(store: Store, id: str, content: str, **fields: Any) -> Memory:
    memory = Memory(id, content, created_at=NOW, updated_at=NOW, accessed_at=NOW, **fields)
    store.records.write([Put(memory)])
    return memory


def test_the_first_line_names_the_format_and_each_line_is_one_record(store: Store) -> None:
    keep(store, "b", "line\nbreak \u2028 and more")
    keep(store, "a", "first", metadata={"z": 1, "a": 2})
    store.records.write([AddLink(Link("b", "see-also", "a", NOW))])
    lines = exported(store).split("\n")
    assert json.loads(lines[0]) == {"format": "recollect", "version": 1}
    assert [json.loads(line).get("id") for line in lines[1:-1]] == ["a", "b", None]
    assert json.loads(lines[1])["created_at"] == "2026-05-01T12:00:00.000Z"
    assert lines[-1] == ""


def test_many_pages_and_progress(store: Store) -> None:
    store.records.write([Put(Memory(f"{n:04}", f"text {n}", created_at=NOW)) for n in range(1200)])
    told: list[tuple[int, int]] = []
    out = io.StringIO()
    report = export(store, out, progress=lambda done, total: told.append((done, total)))
    assert (report.memories, report.links, report.left_out) == (1200, 0, 0)
    assert told[-1] == (1200, 1200)
    fresh = open_memory()
    read: list[int] = []
    out.seek(0)
    assert import_jsonl(fresh, out, progress=read.append).added == 1200
    assert read == [500, 1000]


def test_links_across_pages_are_written_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporting, "PAGE", 1)
    for id in ("a", "b", "c"):
        keep(store, id, f"text {id}")
    store.records.write([AddLink(Link("a", "see-also", "c", NOW)), AddLink(Link("c", "see-also", "b", NOW))])
    out = io.StringIO()
    assert export(store, out).links == 2
    assert out.getvalue().count('"kind":"link"') == 2


def test_what_a_model_linked_is_left_out(store: Store) -> None:
    keep(store, "a", "text a")
    keep(store, "b", "text b")
    store.records.write([AddLink(Link("a", MENTIONS, "b", NOW)), AddLink(Link("b", "see-also", "a", NOW))])
    out = io.StringIO()
    assert export(store, out).links == 1 and MENTIONS not in out.getvalue()


def test_what_is_left_out_is_told(store: Store) -> None:
    keep(store, "a", "text")
    keep(store, "b", "text", scope=Scope(namespace="other"))
    assert export(store, io.StringIO(), namespaces=["other"]).left_out == 1


def test_conflicts_are_reported_and_change_nothing(store: Store) -> None:
    original = keep(store, "a", "as it was", key="k")
    lines = exported(store)
    store.records.write([Put(replace(original, content="changed here"), expected_version=1)])
    report = import_jsonl(store, io.StringIO(lines))
    assert (report.added, report.skipped) == (0, 0)
    assert [(problem.place, "conflict" in problem.message) for problem in report.problems] == [(2, True)]
    assert store.records.fetch(["a"])[0].content == "changed here"
    other = open_memory()
    keep(other, "z", "another", key="k")
    assert import_jsonl(other, io.StringIO(lines)).problem_count == 1


def test_having_been_read_here_is_no_conflict(store: Store) -> None:
    memory = keep(store, "a", "text")
    lines = exported(store)
    later = replace(memory, access_count=5, accessed_at=NOW + timedelta(days=1))
    other = open_memory()
    other.records.write([Put(later)])
    assert import_jsonl(other, io.StringIO(lines)).skipped == 1
    assert other.records.fetch(["a"])[0].access_count == 5


@pytest.mark.covers("more.forget")
def test_what_was_forgotten_does_not_come_back(store: Store) -> None:
    keep(store, "a", "forgotten")
    keep(store, "b", "kept")
    lines = exported(store)
    forget(store, ["a", "b"])
    report = import_jsonl(store, io.StringIO(lines))
    assert (report.added, report.problem_count) == (0, 2)
    assert everything(store) == []


HEADER = '{"format":"recollect","version":1}\n'
GOOD = '{"kind":"memory","id":"good","content":"fine","created_at":"2026-05-01T12:00:00Z"}'


@pytest.mark.parametrize(
    "bad",
    [
        "not json",
        "[" * 100_000,
        "5",
        '{"kind":"poem"}',
        '{"kind":"memory"}',
        '{"kind":"memory","id":"x","content":"","created_at":"2026-05-01T12:00:00Z"}',
        '{"kind":"memory","id":"x","content":"a","created_at":"never"}',
        '{"kind":"memory","id":"","content":"a","created_at":"2026-05-01T12:00:00Z"}',
        '{"kind":"memory","id":"x","content":"a","created_at":"2026-05-01T12:00:00Z","version":0}',
        '{"kind":"memory","id":"x","content":"a","created_at":"2026-05-01T12:00:00Z","access_count":-1}',
        '{"kind":"memory","id":"x","content":"a","created_at":"2026-05-01T12:00:00Z","access_count":9223372036854775807}',
        '{"kind":"memory","id":"x","content":"a","created_at":"2026-05-01T12:00:00Z","scope":{"namespace":"NO"}}',
        '{"kind":"memory","id":"x","content":"\\ud800","created_at":"2026-05-01T12:00:00Z"}',
        '{"kind":"memory","id":"x","content":"a","metadata":{"n":' + "9" * 5000 + '},"created_at":"2026-05-01"}',
        '{"kind":"link","source":"good","type":"see-also","target":"nobody","created_at":"2026-05-01T12:00:00Z"}',
        '{"kind":"link","source":"good"}',
    ],
)
def test_a_bad_line_is_named_and_the_rest_is_read(store: Store, bad: str) -> None:
    report = import_jsonl(store, io.StringIO(f"{HEADER}\n{GOOD}\n{bad}\n"))
    assert (report.added, report.problem_count) == (1, 1)
    assert report.problems[0].place == 4
    assert [memory.id for memory in everything(store)] == ["good"]


@pytest.mark.parametrize(
    "text", ["hello\n", '{"format":"other"}\n', '{"format":"recollect","version":2}\n', GOOD + "\n", "{" * 9]
)
def test_what_is_no_export_is_refused_whole(store: Store, text: str) -> None:
    with pytest.raises(InvalidInput):
        import_jsonl(store, io.StringIO(text))
    assert everything(store) == []


def test_problems_are_all_counted_and_the_first_thousand_kept(store: Store) -> None:
    report = import_jsonl(store, io.StringIO(HEADER + "bad\n" * 1500))
    assert (report.problem_count, len(report.problems)) == (1500, 1000)


def test_lines_are_bounded_and_numbered() -> None:
    stream = io.StringIO("\ufeffone\r\n" + "x" * 30 + "\nthree\n" + "y" * 30)
    assert list(numbered_lines(stream, 10)) == [(1, "one"), (2, None), (3, "three"), (4, None)]
    assert list(numbered_lines(io.StringIO("x" * 10 + "\ny"), 10)) == [(1, "x" * 10), (2, "y")]
