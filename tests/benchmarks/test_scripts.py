"""Copies of data sets in other letters."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import scripts
from recollect.evals import datasets
from tests.evals.conftest import write_set


@pytest.mark.parametrize("name", scripts.WRITINGS)
def test_a_copy_has_the_same_judgements_and_no_latin_letter(tmp_path: Path, name: str) -> None:
    source = write_set(tmp_path / "tiny")
    copy = datasets.load(scripts.copy(source, tmp_path / "copies", name))
    assert [one.relevant for one in copy.queries] == [one.relevant for one in datasets.load(source).queries]
    assert not any(letter.isascii() for one in copy.documents for letter in one.content if letter.isalpha())


def test_words_are_written_alike_wherever_they_stand_and_lose_their_spaces() -> None:
    ferry, leaves = (scripts.in_han(word) for word in ("ferry", "leaves"))
    assert scripts.in_han("Ferry leaves, ferry") == f"{ferry}{leaves}, {ferry}"
    assert scripts.WRITINGS["thai"]("ab ba") == "กขขก" and scripts.WRITINGS["cyrillic"]("ab ba") == "аб ба"
    assert json.dumps(scripts.in_han("308"), ensure_ascii=False) == '"308"'
