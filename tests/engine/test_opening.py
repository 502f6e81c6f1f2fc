"""Where a memory is: paths that stay true, and settings that are refused with a word instead of a traceback."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect import settings


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current folder of its own, and no setting of the machine."""
    for name in ("RECOLLECT_HOME", "RECOLLECT_STORE"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def test_a_relative_path_means_the_folder_it_was_opened_in_wherever_the_process_goes(
    elsewhere: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with recollect.open("notes.db", home="home", embedder="none", reranker="none", background=False) as memory:
        memory.remember("the red fox jumps")
        away = tmp_path / "away"
        away.mkdir()
        monkeypatch.chdir(away)
        found: list[int] = []
        # At the same moment, so that each needs a connection of its own.
        together = threading.Barrier(6)

        def ask() -> None:
            together.wait()
            found.append(len(memory.recall("red fox")))

        threads = [threading.Thread(target=ask) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        memory.recollect("red fox", "s1")
        assert found == [1] * 6
        assert Path(memory.stats().location) == elsewhere / "notes.db"
    assert list(away.iterdir()) == []
    assert (elsewhere / "home" / "recollections").is_dir()


@pytest.mark.parametrize("target", [b"notes.db", 5, "no\0tes.db", ["notes.db"], "", "  ", "x" * 300 + ".db"])
def test_a_store_that_is_no_path_is_refused_and_leaves_nothing(elsewhere: Path, target: Any) -> None:
    with pytest.raises(recollect.RecollectError) as refused:
        recollect.open(target, embedder="none", reranker="none", home=elsewhere / "home", background=False)
    assert refused.value.hint
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ("store = 5", "store"),
        ("store = ['a.db']", "store"),
        ("embedder = 5", "embedder"),
        ("models = 5", "models"),
        ("profile = 1.5", "profile"),
        ("consolidate_hours = true", "consolidate_hours"),
    ],
)
def test_config_toml_with_a_value_of_the_wrong_kind_names_it(tmp_path: Path, line: str, field: str) -> None:
    (tmp_path / "config.toml").write_text(line, encoding="utf-8")
    with pytest.raises(recollect.InvalidInput) as refused:
        settings.load({}, home=tmp_path)
    assert refused.value.field == field and refused.value.hint


@pytest.mark.parametrize("setting", ["profile", "recollect_profile", "episodes_profile"])
def test_a_profile_that_does_not_exist_is_refused_at_once_and_leaves_nothing(elsewhere: Path, setting: str) -> None:
    home = elsewhere / "home"
    home.mkdir()
    (home / "config.toml").write_text(f'{setting} = "nope"', encoding="utf-8")
    for asked in ({}, {"profile": "nope"}):
        with pytest.raises(recollect.InvalidInput, match="profile: there is no profile 'nope'") as refused:
            recollect.open("notes.db", home=home, embedder="none", reranker="none", background=False, **asked)
        assert refused.value.field == ("profile" if asked else setting)
        assert "known: balanced, importance-prior" in refused.value.hint
    assert not (elsewhere / "notes.db").exists()


def test_a_profile_of_ones_own_that_is_wrong_is_told_with_its_line_when_the_memory_is_opened(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text('extends = "balanced"\nlimit = "many"\n', encoding="utf-8")
    with pytest.raises(recollect.InvalidProfile, match=r"own\.toml:2"):
        recollect.open(":memory:", profile=str(own), home=tmp_path, embedder="none", background=False)


def test_config_toml_that_is_no_text_is_told_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(recollect.InvalidInput, match=r"config\.toml") as refused:
        settings.load({}, home=tmp_path)
    assert refused.value.hint


def test_config_toml_that_cannot_be_read_is_told_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "config.toml").mkdir()
    with pytest.raises(recollect.InvalidInput, match=r"config\.toml cannot be read"):
        settings.load(home=tmp_path)


def test_relative_paths_in_config_toml_count_from_its_folder(
    elsewhere: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command line runs anywhere and a daemon in the home folder: both must find the same store."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.toml").write_text('store = "mine.db"\nmodels = "m"\nqdrant = "q"\n', encoding="utf-8")
    chosen = settings.load({}, home=home)
    assert (chosen.store, chosen.models, chosen.qdrant) == (str(home / "mine.db"), home / "m", str(home / "q"))
    for kept in (":memory:", "postgresql://db.example/x", "/srv/mine.db", "~/mine.db"):
        (home / "config.toml").write_text(f'store = "{kept}"\n', encoding="utf-8")
        assert settings.load({}, home=home).store == str(Path(kept).expanduser() if kept[0] == "~" else kept)
    # Typed on a command line or set in a shell, it means the folder one is in.
    assert settings.load({"RECOLLECT_STORE": "typed.db"}, home=home).store == "typed.db"


def test_the_library_prints_nothing_of_its_own(tmp_path: Path) -> None:
    """What it has to say goes to the handlers of the program, if it has some."""
    program = (
        "import recollect, logging\n"
        f"memory = recollect.open({str(tmp_path / 'a.db')!r}, home={str(tmp_path)!r}, embedder='none')\n"
        "logging.getLogger('recollect.worker').warning('something happened')\n"
        "memory.close()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True)
    assert (done.stdout, done.stderr) == ("", "")
    assert logging.getLogger("recollect").propagate


UNCLOSED = """
import sys, threading, time
from pathlib import Path

import numpy as np
import recollect

begun = threading.Event()

class Slow:
    id, dimension, max_tokens = "slow", 4, 512

    def count_tokens(self, text):
        return len(text.split())

    def embed_documents(self, texts):
        begun.set()
        time.sleep(0.5)
        Path(sys.argv[2]).write_text("ended")
        return np.ones((len(texts), 4), dtype=np.float32) / 2

    def embed_query(self, text):
        return np.ones(4, dtype=np.float32) / 2

memory = recollect.open(sys.argv[1], home=Path(sys.argv[1]).parent, embedder=Slow(), reranker="none")
memory.remember("the red fox jumps")
assert begun.wait(30)
"""


def test_a_program_that_never_closes_its_memory_ends_when_the_model_is_no_longer_at_work(tmp_path: Path) -> None:
    """A thread that is cut off inside a model's native code takes the whole process down with it."""
    said = tmp_path / "said"
    command = [sys.executable, "-c", UNCLOSED, str(tmp_path / "notes.db"), str(said)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert said.read_text() == "ended"


@pytest.mark.parametrize("wrong", ["embedder", "reranker", "qdrant"])
def test_a_memory_that_cannot_be_opened_whole_is_not_held_open(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    monkeypatch.setenv(f"RECOLLECT_{wrong.upper()}", __file__)
    with pytest.raises(recollect.InvalidInput):
        recollect.open("notes.db", home="home", background=False)
    assert [str(one) for one in open_files() if "notes.db" in str(one)] == []


def open_files() -> list[Path]:
    """What this process holds open, where the system tells."""
    folder = Path("/proc/self/fd")
    return [one.readlink() for one in folder.iterdir() if one.is_symlink()] if folder.is_dir() else []


def test_an_error_that_nobody_catches_shows_the_next_step_too() -> None:
    """A traceback prints the message alone; what to do about it must stand there too."""
    import traceback

    try:
        recollect.open(":memory:", embedder="minilm")
    except recollect.InvalidInput as error:
        shown = "".join(traceback.format_exception(error))
        assert error.hint in shown and str(error) == error.message
    else:
        pytest.fail("there is no such model")
