"""Every script of the benchmarks runs as its page says, on so little that its figures mean nothing."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

import benchmarks
from benchmarks import bm25_extension, model_links
from tests.evals.conftest import write_set

SET = "SET"
"""Stands for the folder of a small data set."""

RUN = {
    "batches": ([], "| threads on a text |"),
    "hook_latency": (["--memories", "50", "--prompts", "3", "--embedder", "fake"], "p95_ms"),
    "merges": (["--writes", "32", "--rounds", "1"], "| 0 | 8 | 16 |"),
    "pages": (["--memories", "50", "--groups", "2"], "| memories_created |"),
    "perfect_reader": (["--data", SET, "--first", "2"], "| 2 | 1.000 |"),
    "profile": (["--size", "300", "--questions", "12"], "scan the codes |"),
    "sizes": (["--memories", "200"], "| vectors |"),
    "small_stores": (["--data", SET, "--sizes", "3", "--questions", "2"], "3 memories: "),
    "variants": (["--data", SET], "| balanced | 1.000 |"),
}
"""With which arguments, and what its output holds."""
ELSEWHERE = {"coding_prompts", "long_questions", "notes", "postgres", "quality", "scripts", "sizing", "startup"}
"""Run by tests of their own, or as a part of the whole benchmark."""
BESIDE_A_SERVER = {"bm25_extension", "model_links", "trigrams"}


@pytest.mark.model
@pytest.mark.parametrize("name", RUN)
def test_a_script_runs_and_prints_its_table(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given, told = RUN[name]
    folder = str(write_set(tmp_path / "tiny"))
    monkeypatch.setattr(sys, "argv", [name, *(folder if word == SET else word for word in given)])
    try:
        runpy.run_module(f"benchmarks.{name}", run_name="__main__")
    except SystemExit as ended:
        assert not ended.code
    assert told in capsys.readouterr().out


@pytest.mark.model
def test_links_that_no_model_made_have_no_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_set(tmp_path / "tiny")
    assert model_links.main(["--data", str(folder), "--language-model", "http://127.0.0.1:9/v1"]) == 1
    printed = capsys.readouterr()
    assert "did not read everything" in printed.err and "links" not in printed.out


def test_too_few_memories_for_an_index_are_refused_before_a_server_is_started(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def started(**_: object) -> None:
        raise AssertionError("a server was started")

    monkeypatch.setattr(bm25_extension, "running_server", started)
    with pytest.raises(SystemExit):
        bm25_extension.main(["--size", "300"])
    assert "--size: from 20,000 memories on" in capsys.readouterr().err


def test_no_script_is_forgotten() -> None:
    files = Path(benchmarks.__file__).parent.glob("*.py")
    scripts = {file.stem for file in files if 'if __name__ == "__main__"' in file.read_text("utf-8")}
    assert scripts == {"__main__", *RUN, *ELSEWHERE, *BESIDE_A_SERVER}
