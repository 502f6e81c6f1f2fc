"""Words alone find the answer in languages of many scripts, with no model and no knowledge of the language."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

import recollect

LANGUAGES: dict[str, Any] = tomllib.loads((Path(__file__).parent / "languages.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("language", LANGUAGES)
def test_words_find_the_answer(language: str, tmp_path: Path) -> None:
    """Among the texts of all languages, with the first letters of names and endings as people write them."""
    with recollect.open(":memory:", home=tmp_path, embedder="none", reranker="none") as memory:
        ids = {
            (name, place): memory.remember(text).id
            for name, entry in LANGUAGES.items()
            for place, text in enumerate(entry["texts"])
        }
        wrong = [
            question
            for question, place in LANGUAGES[language]["questions"]
            if [hit.id for hit in memory.recall(question, limit=1)] != [ids[language, place]]
        ]
    assert wrong == []
