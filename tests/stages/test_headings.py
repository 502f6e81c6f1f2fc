"""Sections of notes are found by the title of their note and by the headings above them."""

from __future__ import annotations

import io
from typing import Any

import pytest

from recollect.domain.memory import Memory
from recollect.domain.question import Filter, Question
from recollect.domain.recall import Pool
from recollect.domain.subjects import titles
from recollect.identity import new_id
from recollect.importers import import_source
from recollect.stages.parse import parse
from recollect.stages.signals import headings
from recollect.writing import WritePolicy
from tests.world import NOW, World

TIMEOUTS = "# Timeouts\n\nHow long to wait.\n\n## Pool\n\nHow long to wait for one of the connections that are kept.\n"
LIMITS = "# Limits\n\nHow many at once.\n\n## Pool\n\nThe size of the pool.\n"


def asked(text: str) -> Question:
    return parse(text, now=NOW, filter=Filter(), limit=5, mode="auto", sort_by="relevance")


def section(content: str, headings: Any, path: Any = "guide.md", **metadata: Any) -> Memory:
    return Memory("m", content, metadata={"headings": headings, "path": path, **metadata})


def worth(memory: Memory, text: str) -> float:
    return sum(hit.score for hit in headings(Pool({memory.id: memory}), asked(text)))


@pytest.mark.parametrize("question", ["timeouts pool", "timeout of the pool"])
def test_of_two_sections_the_one_of_the_note_that_the_question_names_is_first(question: str) -> None:
    world = World(embedder=None)
    for name, text in (("timeouts.md", TIMEOUTS), ("limits.md", LIMITS)):
        import_source(world.store, io.StringIO(text), name, new_id=new_id, now=NOW, policy=WritePolicy())

    def pools(**options: Any) -> list[str]:
        hits = world.ask("balanced", question, options=options).hits
        return [hit.memory.metadata["path"] for hit in hits if hit.memory.content.startswith("## Pool")]

    assert pools() == ["timeouts.md", "limits.md"]
    assert pools(**{"signals.headings.weight": 0}) == ["limits.md", "timeouts.md"], "by their own words"


def test_it_counts_what_is_named_and_how_much_of_the_question_the_section_knows() -> None:
    pool = section("## Pool\n\nUntil one is free.", ["Timeouts", "Pool"])
    assert worth(pool, "timeouts") == worth(pool, "timeouts pool") == 1.0
    assert worth(pool, "timeout pools") == 1.0, "any form of a word"
    assert worth(pool, "timeouts until free") == pytest.approx(1 / 3), "one named, all known"
    assert worth(pool, "timeouts of httpx") == pytest.approx(1 / 8), "one named, one known"


@pytest.mark.parametrize("question", ["free", "limits", "until it is free", ""])
def test_a_question_that_names_neither_title_nor_heading_counts_nothing(question: str) -> None:
    assert not worth(section("## Pool\n\nUntil one is free.", ["Timeouts", "Pool"]), question)


def test_a_title_counts_no_less_than_a_part_of_it_and_a_word_of_the_text() -> None:
    """Of all notes whose title begins alike, that which is named is first."""
    named = section("## Usage\n\nAll of them.", ["Usage"], "npm-install.md")
    other = section("## Usage\n\nBefore an install.", ["Usage"], "npm-publish.md")
    assert worth(named, "npm install") > worth(other, "npm install")


def test_the_title_is_that_of_the_front_matter_and_the_name_of_the_file() -> None:
    one = section("Text.", [], "net/slow-lines.v2.md", front_matter={"title": "Timeouts"})
    assert titles(one) == "Timeouts slow-lines.v2"
    assert titles(section("Text.", ["One", "Two"], r"net\slow.md")) == "slow One Two"


@pytest.mark.parametrize("metadata", [{}, {"path": "a.py"}, {"headings": "Timeouts"}, {"headings": None}])
def test_a_memory_that_is_no_section_has_no_titles(metadata: dict[str, Any]) -> None:
    assert titles(Memory("m", "the pool", metadata=metadata)) == ""


def test_what_somebody_else_wrote_there_does_no_harm() -> None:
    one = section("the pool", [1, None, {"a": "Timeouts"}], 7, front_matter={"title": ["x"]})
    assert titles(one) == "" and not worth(one, "timeouts pool")
