"""The lexical leg by itself: what its options do to the order, and what it tells the stages behind it."""

from __future__ import annotations

from math import log

import pytest

from recollect.domain.changes import Put
from recollect.domain.memory import Memory
from recollect.legs.found import depth
from recollect.legs.lexical import lexical
from recollect.ports import TextIndex
from recollect.stages.parse import MAX_WORDS
from recollect.stores.sqlite import open_sqlite
from tests.stages.asking import ask
from tests.world import World


@pytest.fixture
def index() -> TextIndex:
    world = World(embedder=None)
    world.remember("mill", "mill red")
    world.remember("boat", "boat red")
    world.remember("ship", "ship red")
    assert world.store.text is not None
    return world.store.text


def test_a_word_said_twice_counts_twice_where_it_is_wanted(index: TextIndex) -> None:
    question = ask("boat mill mill", aliases={"boat": "ship"})
    once = {hit.id: hit.score for hit in lexical(index, question).hits}
    twice = {hit.id: hit.score for hit in lexical(index, question, repeats=True).hits}
    assert once == pytest.approx(dict.fromkeys(("boat", "mill", "ship"), once["boat"]))
    assert twice == pytest.approx({**once, "mill": 2 * once["mill"]}), "an alias, which nobody said, counts once"


def test_a_word_that_most_memories_hold_counts_next_to_nothing_or_by_its_rarity(index: TextIndex) -> None:
    common = [hit.score for hit in lexical(index, ask("red")).hits]
    assert common == pytest.approx([1e-6] * 3), "as in FTS5"
    half = World(embedder=None)
    half.remember("mill", "mill red")
    half.remember("boat", "boat red")
    assert half.store.text is not None
    assert lexical(half.store.text, ask("mill")).hits[0].score == pytest.approx(1e-6), "half of them are most"
    rare, often = (lexical(index, ask(word), idf="lucene").hits[0].score for word in ("mill", "red"))
    assert rare == pytest.approx(log(1 + 2.5 / 1.5)) and often == pytest.approx(log(1 + 0.5 / 3.5))


def test_how_rare_words_are_is_told_in_small_letters_and_of_those_asked_first(index: TextIndex) -> None:
    found = lexical(index, ask("Mill RED"))
    assert (found.frequencies.documents, dict(found.frequencies.of)) == (3, {"mill": 1, "red": 3})
    rungs = ("initial", "strongest_term")
    missed = lexical(index, ask("mill AND boat"), rungs=rungs)
    assert [hit.id for hit in missed.hits] == ["mill"]
    assert dict(missed.frequencies.of) == {"mill": 1, "boat": 1}


def test_memories_with_all_words_stand_above_those_with_any_and_once(index: TextIndex) -> None:
    found = lexical(index, ask("red boat"), match="all-then-any")
    assert [hit.id for hit in found.hits] == ["boat", "mill", "ship"]
    assert [hit.id for hit in lexical(index, ask("red boat"), match="all-then-any", limit=2).hits] == ["boat", "mill"]


def test_of_very_many_words_any_is_asked_at_once() -> None:
    store = open_sqlite(":memory:")
    store.records.write([Put(Memory("few", "word7 word8")), Put(Memory("many", "word97 word98 word99"))])
    assert store.text is not None
    question = ask(" ".join(f"word{number}" for number in range(MAX_WORDS + 36)))
    assert [hit.id for hit in lexical(store.text, question, match="all-then-any").hits] == ["many", "few"]
    store.close()


def test_a_leg_looks_as_deep_as_its_limit_and_as_the_question_needs() -> None:
    question = ask("red", limit=5)
    assert [depth(question, limit, factor) for limit, factor in ((20, 2.0), (20, 10.0), (None, 2.0), (20, None))] == [
        20, 50, 10, 20,
    ]  # fmt: skip
