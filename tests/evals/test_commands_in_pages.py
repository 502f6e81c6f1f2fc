"""The commands that pages show for their figures are taken today: a renamed option would make them a dead letter."""

from __future__ import annotations

import argparse
import re
import runpy
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tests.evals.conftest import write_set

ROOT = Path(__file__).parents[2]
PAGES = (
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "decisions").glob("*.md")),
    *sorted((ROOT / "benchmarks").glob("*.md")),
)
MEASURED = ("run", "sweep", "compare", "abstain")
SWEEP = "recollect eval sweep --data SET --profile balanced"


def shown(page: Path) -> Iterator[str]:
    """What stands in code on a page, each command on one line."""
    text = page.read_text("utf-8")
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    for block in blocks:
        yield from block.replace("\\\n", " ").splitlines()
    for span in re.findall(r"`([^`]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL)):
        yield " ".join(span.split())


def measured() -> list[str]:
    """Every `recollect eval …` on a data set; options that a page names alone belong to a sweep."""
    every = (line for page in PAGES for line in shown(page))
    whole = (f"{SWEEP} {line}" if re.match(r"--(data|set|limit-queries) .*=", line) else line for line in every)
    wanted = re.compile(rf"recollect eval (?:{'|'.join(MEASURED)}) (?!.*--questions|.*OPTION=).*--data ")
    return list(dict.fromkeys(line for line in whole if wanted.match(line) and not is_beginning(line)))


def is_beginning(line: str) -> bool:
    """A sweep whose options the text names one after the other."""
    return "eval sweep" in line and "--set" not in line


def scripted() -> list[str]:
    """Every script of the benchmarks that reads its arguments by a parser; the others take them as they stand."""
    every = (line for page in PAGES for line in shown(page) if line.startswith("python -m benchmarks"))
    return list(dict.fromkeys(line for line in every if "argparse" in script_of(line).read_text("utf-8")))


def script_of(command: str) -> Path:
    module = command.split()[2]
    return ROOT / "benchmarks" / f"{module.partition('.')[2] or '__main__'}.py"


def on(folder: Path, words: Sequence[str]) -> list[str]:
    """The command on one small set, with the model of the tests and nothing written."""
    kept: list[str] = []
    waiting = iter(word.removeprefix("[") if word.startswith("[--") else word for word in words)
    for word in waiting:
        if word in ("--data", "--test", "--out", "--embedder"):
            next(waiting)
        else:
            kept.append(word)
    return [*kept, "--data", str(folder)]


def test_pages_show_commands() -> None:
    assert len(measured()) > 30 and len(scripted()) > 20


@pytest.mark.parametrize("command", measured())
def test_a_measurement_runs_as_its_page_says(cli: Callable[..., str], tmp_path: Path, command: str) -> None:
    words = [f"{one} {other}" for one in ("red", "old", "slow", "tall", "lost") for other in ("fox", "oak", "bus")]
    corpus = [{"_id": f"{n}{word}", "text": f"Number {n}: the {word} at {n}00"} for word in words for n in (1, 2)]
    queries = [{"_id": one["_id"], "text": f"where is the {one['text'][10:]}"} for one in corpus]
    folder = write_set(tmp_path / "set", corpus, queries, [(one["_id"], one["_id"], 1) for one in corpus])
    assert "{" in cli(*on(folder, shlex.split(command)[1:]), "--json")


class Understood(Exception):
    pass


@pytest.mark.parametrize("command", scripted())
def test_a_script_takes_the_arguments_of_its_page(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    parse = argparse.ArgumentParser.parse_args

    def understood(self: argparse.ArgumentParser, *given: Any) -> NoReturn:
        parse(self, *given)
        raise Understood

    module, *arguments = shlex.split(command)[2:]
    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", understood)
    monkeypatch.setattr(sys, "argv", [module, *arguments])
    with pytest.raises(Understood):
        # By its path: other tests run the same script as a module, which must not be loaded then.
        runpy.run_path(str(script_of(command)), run_name="__main__")
