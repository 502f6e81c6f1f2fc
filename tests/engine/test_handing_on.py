"""What the library gives can be handed on: to another process, into a cache, as JSON."""

from __future__ import annotations

import copy
import json
import os
import pickle
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
                with recollect.open(tmp_path / "s.db", embedder="fake", background=False) as own:
                    code = 0 if own.recall("tea")[0].content == "Tea is served at five" else 2
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert memory.remember("Bread is baked on Mondays").action == "added"
        assert [hit.content for hit in memory.recall("bread")][:1] == ["Bread is baked on Mondays"]
