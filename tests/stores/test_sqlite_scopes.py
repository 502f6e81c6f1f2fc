"""A filter that leaves few memories out finds what one finds who looks at every memory that it lets in."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlite_cases import embed, note, put, text_of, vectors_of

from recollect.domain.changes import Erase
from recollect.domain.memory import EPOCH, Memory
from recollect.domain.query import Not, Or, Phrase, Term
from recollect.domain.question import Filter
from recollect.ports import Store
from recollect.stores import codes
from recollect.stores.sqlite import finding, open_sqlite, scan, scopes
from recollect.stores.sqlite.connection import connect
from recollect.stores.sqlite.postings import Postings

WORDS = [f"{first}{last}" for first in ("ba", "ce", "di", "fo", "gu") for last in ("lot", "murk", "ned", "sing")]
COUNT = 800
BEST = 50
QUERY = Or((Term(WORDS[0]), Term(WORDS[7]), Term(WORDS[13])))
EAST = np.array([1, 0], np.float32)
DAYS = [EPOCH + timedelta(days=number) for number in range(COUNT)]


def memories() -> list[Memory]:
    """The earliest are the nearest, hold most of the words that are asked for, and are decisions."""
    rng = random.Random(3)
    return [
        replace(
            note(f"n{number:04d}", " ".join([*rng.choices(WORDS, k=12), *WORDS[7:14] * (number < BEST)])),
            tags=("odd",) if number % 50 == 7 else (),
            created_at=DAYS[number],
            type="decision" if number < BEST else "fact",
        )
        for number in range(COUNT)
    ]


@pytest.fixture
def large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A store that searches as a large one does."""
    monkeypatch.setattr(finding, "LARGE_INDEX", 100)
    monkeypatch.setattr(finding, "COUNTED_SCOPE", 50)
    monkeypatch.setattr(finding, "SPARE_EXCLUDED", 0)
    monkeypatch.setattr(codes, "EXACT_ROWS", 0)
    monkeypatch.setattr(codes.CodeIndex.__init__, "__kwdefaults__", {"exact_rows": 0})
    store = open_sqlite(tmp_path / "s.db")
    written = memories()
    put(store, *written)
    for number, memory in enumerate(written):
        embed(store, memory, np.cos(number / COUNT), np.sin(number / COUNT))
    store.records.write([Erase("n0005", tombstone=False)])
    return store


def found(store: Store, filter: Filter) -> tuple[list[str], list[str]]:
    matches = text_of(store).match(QUERY, filter, 20)
    return sorted(matches.ids), [hit.id for hit in vectors_of(store).search("m", EAST, filter, 30)]


FEW_LEFT_OUT = [
    Filter(after=DAYS[BEST]),
    Filter(before=DAYS[COUNT - 9]),
    Filter(after=DAYS[4], before=DAYS[COUNT - 4]),
    Filter(without_types=("decision",)),
    Filter(without_tags=("odd",), before=DAYS[COUNT - 9]),
    Filter(exclude=frozenset({"n0000", "n0001", "n0044"})),
]


MOST_LEFT_OUT = [
    Filter(without_types=("fact",)),
    Filter(without_types=("fact",), without_tags=("odd",)),
    Filter(without_types=("fact",), exclude=frozenset({"n0000", "n0044", "n0300"})),
]


@pytest.mark.parametrize("counted", [10, 60], ids=["too many to count", "counted whole"])
@pytest.mark.parametrize("filter", FEW_LEFT_OUT + MOST_LEFT_OUT)
def test_what_is_left_out_is_passed_over(
    large: Store, monkeypatch: pytest.MonkeyPatch, filter: Filter, counted: int
) -> None:
    monkeypatch.setattr(finding, "COUNTED_SCOPE", counted)
    words, meaning = found(large, filter)

    def picked_out(*given: Any, **named: Any) -> scopes.Within:
        return scopes.Within(scopes.rows_in_scope(*given, **named).named(COUNT), scopes.NOBODY)

    for module in (finding, scan):
        monkeypatch.setattr(module, "rows_in_scope", picked_out)
    assert (words, meaning) == found(large, filter)
    let_in = {memory.id for memory in memories() if filter.allows(memory)} - {"n0005"}
    assert set(words) <= let_in and len(words) >= 20 and meaning == sorted(let_in)[:30]
    large.close()


@pytest.mark.parametrize("counted", [10, 60], ids=["too many to count", "counted whole"])
@pytest.mark.parametrize("filter", [Filter(), *FEW_LEFT_OUT, *MOST_LEFT_OUT])
def test_what_a_query_shuts_out_is_not_found(
    large: Store, monkeypatch: pytest.MonkeyPatch, filter: Filter, counted: int
) -> None:
    monkeypatch.setattr(finding, "COUNTED_SCOPE", counted)
    unwanted = Or((Term(WORDS[3]), Phrase((WORDS[7], WORDS[13]))))
    let_in = {memory.id: memory.content for memory in memories() if filter.allows(memory) and memory.id != "n0005"}
    others = {id for id, text in let_in.items() if WORDS[3] not in text and f"{WORDS[7]} {WORDS[13]}" not in text}
    assert len(others) < len(let_in)
    words = set(text_of(large).match(Not(QUERY, unwanted), filter, 20).ids)
    assert words <= others and len(words) >= min(20, len(others))
    assert words >= {id for id in found(large, filter)[0] if id in others}
    large.close()


def test_what_is_excluded_counts_in_no_scope(large: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finding, "COUNTED_SCOPE", COUNT)
    monkeypatch.setattr(finding, "SPARE_EXCLUDED", 200)
    filter = Filter(exclude=frozenset({"n0000", "n0001", "n0044"}))
    inside = text_of(large).match(QUERY, filter, 20).scope
    assert inside is not None
    texts = [one.content.split() for one in memories() if filter.allows(one) and one.id != "n0005"]
    held = [sum(word in text for text in texts) for word in (WORDS[0], WORDS[7], WORDS[13])]
    assert (inside.documents, inside.frequencies.tolist()) == (len(texts), held)
    large.close()


@pytest.mark.parametrize("filter", FEW_LEFT_OUT)
def test_few_left_out_are_named_instead_of_all_others(large: Store, tmp_path: Path, filter: Filter) -> None:
    connection, lists = connect(str(tmp_path / "s.db"), create=False), Postings()
    scope = scopes.rows_in_scope(connection, lists, filter, lists.view(connection))
    refused = sum(not filter.allows(memory) for memory in memories() if memory.id != "n0005")
    assert scope.rows is None and len(scope.refused) == refused
    size = scopes.size_of_scope(connection, lists, filter, lists.view(connection))
    assert size == COUNT - 1 - refused
    connection.close()
    large.close()


def test_whichever_side_is_few_the_scope_is_the_same(large: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scopes, "FEWEST_ROWS", 20)
    monkeypatch.setattr(scopes, "FEW_ROWS", 100)
    late = np.array([np.cos(1), np.sin(1)], np.float32)
    for filter in (
        Filter(after=DAYS[300], before=DAYS[350]),  # few are inside
        Filter(after=DAYS[60], before=DAYS[COUNT - 1]),  # few are outside
        Filter(after=DAYS[300], before=DAYS[500]),  # neither are few
        Filter(before=DAYS[500]),
        Filter(after=DAYS[300]),
        Filter(only=frozenset(f"n{number:04d}" for number in range(400, 440))),
    ):
        let_in = sorted({memory.id for memory in memories() if filter.allows(memory)} - {"n0005"})
        for vector, wanted in ((EAST, let_in[:30]), (late, let_in[:-31:-1])):
            assert [hit.id for hit in vectors_of(large).search("m", vector, filter, 30)] == wanted
        assert set(text_of(large).match(QUERY, filter, 20).ids) <= set(let_in)
    large.close()


def test_a_time_that_ends_before_it_begins_holds_nothing(tmp_path: Path) -> None:
    store = open_sqlite(tmp_path / "s.db")
    put(store, *memories()[:100])
    scope = text_of(store).match(QUERY, Filter(after=DAYS[60], before=DAYS[40]), 20).scope
    assert scope is not None and scope.documents == 0
    store.close()
