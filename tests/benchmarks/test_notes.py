"""Questions of notes are made of the sections that answer them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks import notes
from recollect.evals import datasets

TIMEOUTS = "# Timeouts\n\nWait for an answer.\n\n## Pool\n\nWait until a connection of all those kept is free again.\n"
LIMITS = "---\ntitle: Resource limits\n---\n## Pool\n\nSeveral connections are kept, until somebody closes them.\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    vault = tmp_path / "vault"
    (vault / "net").mkdir(parents=True)
    (vault / "net" / "slow.md").write_text(TIMEOUTS, "utf-8")
    (vault / "limits.md").write_text(LIMITS, "utf-8")
    (vault / "other.txt").write_text("# Nothing\n\nNo note.\n", "utf-8")
    return vault


def test_every_question_of_a_set_is_judged_by_its_own_section(folder: Path, tmp_path: Path) -> None:
    every = notes.sections(folder)
    assert [(one.title, one.headings) for one in every] == [
        ("Resource limits", ["Pool"]),
        ("Timeouts", ["Timeouts"]),
        ("Timeouts", ["Timeouts", "Pool"]),
    ]
    notes.write(every, tmp_path / "set")
    dataset = datasets.load(tmp_path / "set")
    asked = {(one.stratum, one.text): sorted(one.relevant) for one in dataset.queries}
    assert asked["title+heading", "Timeouts Pool"] == ["s2"]
    assert asked["asked", "What does the page on Resource limits say about Pool?"] == ["s0"]
    assert asked["title", "Timeouts"] == ["s1", "s2"]
    assert asked["sentence", "Wait until connection of those kept free again."] == ["s2"]
    assert ("heading", "Pool") not in asked, "two sections have this heading"
    assert all(one.kind == "counted" for one in dataset.queries)


def test_a_row_tells_both_systems_and_how_far_they_are_apart() -> None:
    first, second = np.array([[0.0], [1.0]]), np.array([[1.0], [1.0]])
    assert list(notes.row(first, second)) == ["0.500 → 1.000", "+0.500 [+0.000, +1.000]"]
