"""The page on retrieval quality."""

from __future__ import annotations

from typing import Any

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
