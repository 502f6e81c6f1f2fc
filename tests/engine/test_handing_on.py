"""What the library gives can be handed on: to another process, into a cache, as JSON."""

from __future__ import annotations

import copy
import json
import os
import pickle
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect import Draft


@pytest.mark.parametrize("metadata", [{}, {"path": "docs/tea.md"}])
def test_memories_answers_and_drafts_are_pickled_and_copied(metadata: dict[str, Any]) -> None:
    with recollect.open(":memory:", embedder="fake", background=False) as memory:
        receipt = memory.remember("Tea is served at five", metadata=metadata)
        memory.upkeep()
        kept, answer = memory.get(receipt.id), memory.recall("when is tea served?")
        for one in (receipt, kept, answer, answer[0], memory.expand(receipt.id), Draft("Tea"), memory.stats()):
            assert pickle.loads(pickle.dumps(one)) == one
            assert copy.deepcopy(one) == one
        assert asdict(kept)["metadata"] == json.loads(json.dumps(kept.metadata)) == metadata


def test_what_a_caller_writes_into_an_answer_is_in_no_other() -> None:
    with recollect.open(":memory:", embedder="none", background=False) as memory:
        ids = [memory.remember(text).id for text in ("Tea is served at five", "Bread is baked on Mondays")]
        found: Any = memory.get(ids[0]).metadata
        found["mine"] = 1
        assert [memory.get(id).metadata for id in ids] == [{}, {}]
        assert Draft("Tea").metadata == {}


@pytest.mark.parametrize("background", [True, False])
def test_a_forked_process_can_close_what_came_along_and_takes_nothing_from_its_parent(
    tmp_path: Path, background: bool
) -> None:
    with recollect.open(tmp_path / "s.db", embedder="fake", background=background) as memory:
        memory.remember("Tea is served at five")
        memory.recall("tea")  # that it was seen is recorded later, by whoever asked
        child = os.fork()
        if not child:
            code = 1
            try:
                with pytest.raises(recollect.StoreUnavailable):
                    memory.recall("tea")
                memory.close()
                memory.close()
                code = 0
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert memory.remember("Bread is baked on Mondays").action == "added"
        assert [hit.content for hit in memory.recall("bread")][:1] == ["Bread is baked on Mondays"]


AFTER_A_FORK = """
import os, sys
import recollect

path, asked, closed = sys.argv[1], sys.argv[2], sys.argv[3] == "True"
memory = recollect.open(path, embedder="none", background=False)
memory.remember("said by the parent")
if closed:
    memory.close()
opened, closed = os.pipe(), os.pipe()
child = os.fork()
if not child:
    code = 1
    try:
        own = recollect.open(asked, embedder="none", background=False)
        os.write(opened[1], b"!")
        os.read(closed[0], 1)
        code = 0 if own.remember("said by the child").action == "added" else 2
    except recollect.StoreUnavailable as error:
        os.write(opened[1], b"!")
        code = 3 if "forked" in error.message and "spawn" in error.hint else 4
    finally:
        os._exit(code)
os.read(opened[0], 1)
memory.close()
with recollect.open(path, embedder="none", background=False) as other:
    other.remember("said in between")
os.write(closed[1], b"!")
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
with recollect.open(path, embedder="none", background=False) as memory:
    print(*sorted(one.content for one in memory.list()), sep=" / ")
"""


def after_a_fork(path: Path, asked: str, *, closed: bool = False) -> list[str]:
    """How a child fared with the store it asked for, and what the parent's holds in the end."""
    # In a process of its own, where no other test has left a store open; Python warns of forks beside threads.
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", AFTER_A_FORK, str(path), asked, str(closed)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert not ended.stderr
    return ended.stdout.splitlines()


@pytest.mark.parametrize("asked", ["s.db", "another.db", ":memory:"])
def test_no_store_is_opened_where_a_fork_brought_along_an_open_one(tmp_path: Path, asked: str) -> None:
    place = asked if asked == ":memory:" else str(tmp_path / asked)
    assert after_a_fork(tmp_path / "s.db", place) == ["3", "said by the parent / said in between"]


def test_a_forked_process_opens_a_store_that_its_parent_had_closed(tmp_path: Path) -> None:
    told = after_a_fork(tmp_path / "s.db", str(tmp_path / "s.db"), closed=True)
    assert told == ["0", "said by the child / said by the parent / said in between"]
