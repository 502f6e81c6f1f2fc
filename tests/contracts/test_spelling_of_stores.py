"""Misspelt words are read as the memories' own, in every store alike."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from contract_cases import note, put

from recollect.domain.question import Filter
from recollect.legs.spelling import meant
from recollect.ports import Store, TextIndex
from recollect.stages.parse import parse

NOW = datetime(2026, 3, 2, tzinfo=UTC)


def readings(text: TextIndex, words: str, filter: Filter | None = None, **options: Any) -> dict[str, str]:
    question = parse(words, now=NOW, filter=filter or Filter(), limit=5, mode="auto", sort_by="relevance")
    return meant(text, question, **options)


def test_a_word_that_no_memory_holds_is_read_as_the_one_a_slip_away(store: Store, text: TextIndex) -> None:
    put(
        store,
        note("a", "Caroline raised money at the fundraiser", tags=("charity",)),
        note("b", "which movies did Émile watch"),
        note("c", "которая книга в библиотеке"),
    )
    assert readings(text, "Carolien's funraiser, chraity") == {
        "carolien": "caroline", "funraiser": "fundraiser", "chraity": "charity",
    }  # fmt: skip
    assert readings(text, "wihch moveis Emmile книгга") == {
        "wihch": "which", "moveis": "movies", "emmile": "emile", "книгга": "книга",
    }  # fmt: skip
    assert readings(text, "Caroline raises movie charity zzzzz") == {}, "what is known, by its stem, is no slip"
    assert readings(text, '"funraiser"') == readings(text, "funraiser", most=0) == {}
    assert readings(text, "carolien funraiser", most=1) == {"carolien": "caroline"}
    assert readings(text, "carolien funraiser", shortest=9) == {"funraiser": "fundraiser"}


def test_what_the_dictionary_knows_is_no_slip(store: Store, text: TextIndex) -> None:
    class Known:
        def knows(self, word: str) -> bool:
            return word == "star"

    put(store, note("a", "start the trip"))
    assert readings(text, "star trpi") == {"star": "start", "trpi": "trip"}
    assert readings(text, "star trpi", embedder=Known()) == {"trpi": "trip"}


def test_the_commoner_of_two_words_is_meant(store: Store, text: TextIndex) -> None:
    put(store, note("a", "a moth"), note("b", "a month and a month"), note("c", "the month"), note("d", "the mouth"))
    assert readings(text, "motnh") == {"motnh": "month"}


def test_words_of_other_scopes_are_not_told(store: Store, text: TextIndex) -> None:
    put(store, note("a", "our fundraiser"), note("b", "their blackmail", namespace="theirs"))
    assert readings(text, "funraiser blakmail") == {"funraiser": "fundraiser"}
    assert readings(text, "funraiser blakmail", Filter(namespace="theirs")) == {"blakmail": "blackmail"}


@pytest.mark.parametrize("length", [5, 6, 7])
def test_the_word_is_found_among_many_that_look_alike(store: Store, text: TextIndex, length: int) -> None:
    meant_word = "abcdefg"[:length]
    others = [f"{meant_word[:2]}{number:03}{meant_word[-2:]}" for number in range(60)]
    put(store, note("a", meant_word), note("b", " ".join(others)))
    written = meant_word[: length - 3] + meant_word[length - 2] + meant_word[length - 3] + meant_word[-1]
    assert readings(text, written) == {written: meant_word}
