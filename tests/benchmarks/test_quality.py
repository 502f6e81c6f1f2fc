"""The page on retrieval quality."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import quality
from benchmarks.quality import DEFAULT, LEGS, SEEDS, headlines, page


def result(name: str, values: list[float]) -> dict[str, Any]:
    mean = sum(values) / len(values)
    spread = {"mean": mean, "low": mean - 0.1, "high": mean + 0.1}
    return {
        "system": name,
        "data": {"name": "locomo_x", "counted": 4},
        "sample": 2,
        "measures": {"recall@10": spread},
        "questions": {"measures": ["recall@10"], "values": {f"q{at}": [one] for at, one in enumerate(values)}},
        "ablation": {
            "legs.dense": {
                "without": {"recall@10": {"mean": -0.25, "low": -0.5, "high": 0.0}},
                "only_with": {"10": 7},
                "only_without": {"10": 3},
            }
        },
        "typos": {"means": {"recall@10": 0.6}, "clean": {"recall@10": 0.75}},
    }


def test_the_page_holds_the_default_against_the_best_leg() -> None:
    weak = [result(name, [0.0, 0.5, 0.5, 0.0]) for name in (*LEGS, *SEEDS) if name != "dense"]
    written = page([{"results": [*weak, result("dense", [0.5] * 4), result(DEFAULT, [1.0, 0.5, 1.0, 0.5])]}])
    row = next(line for line in written.splitlines() if line.startswith("| locomo_x | recall@10 | 4 | 0.250"))
    assert "**0.750** [0.650, 0.850]" in row and "| +0.250 [" in row and "(dense) | 2 | 0.250" in row
    assert "| locomo_x | recall@10 | legs.dense | -0.250 [-0.500, +0.000] | 7 | 3 |" in written
    assert "| locomo_x | 0.750 | 0.600 | 80 % |" in written


def test_a_set_is_quoted_by_the_longest_known_beginning_of_its_name() -> None:
    assert headlines("longmemeval_dev_turn") == ("recall@5",)
    assert headlines("longmemeval_s") == ("all@5", "any@5")
    assert headlines("something new") == ("recall@5",)


def test_results_of_another_form_are_named_and_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = {"results": [result(name, [0.5, 1.0]) for name in (*LEGS, *SEEDS, DEFAULT)]}
    older = json.loads(json.dumps(whole))
    del older["results"][-1]["sample"]
    written: dict[str, Any] = {
        "whole": whole,
        "older": older,
        "few": {"results": []},
        "odd": [1],
        "odder": {"results": 3},
    }
    for name, document in written.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(document))
    (tmp_path / "cut.json").write_text('{"results": [')
    monkeypatch.setattr(quality, "KEPT", tmp_path)
    monkeypatch.setattr(quality, "PAGE", tmp_path / "quality.md")
    assert quality.main([]) == 0
    assert (tmp_path / "quality.md").read_text(encoding="utf-8") == page([whole])
    told = capsys.readouterr().err.splitlines()
    assert [line.partition(" ")[0] for line in told] == ["cut.json", "few.json", "odd.json", "odder.json", "older.json"]
    assert "measure it again (--set older)" in told[-1]


def test_a_page_is_not_overwritten_with_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quality, "KEPT", tmp_path)
    monkeypatch.setattr(quality, "PAGE", tmp_path / "quality.md")
    with pytest.raises(SystemExit):
        quality.main([])
    assert not (tmp_path / "quality.md").exists()
