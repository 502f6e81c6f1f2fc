"""Models of the caller's own that would end the program, or that never answer: the memory goes on without them."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recollect
from recollect import engine
from recollect.pool import Pool


class Fragile:
    """Embeds, unless a text names what it cannot bear."""

    id, dimension, max_tokens = "fragile-1", 4, 64

    def __init__(self, breaks: Callable[[], object]) -> None:
        self._breaks = breaks

    def count_tokens(self, text: str) -> int:
        return len(text.split())

    def embed_documents(self, texts: Sequence[str]) -> Any:
        if any("poison" in text for text in texts):
            self._breaks()
        return np.ones((len(texts), self.dimension))

    def embed_query(self, text: str) -> Any:
        return self.embed_documents([text])[0]


def raising(error: BaseException) -> Callable[[], object]:
    def break_down() -> object:
        raise error

    return break_down


def eventually(holds: Callable[[], bool], seconds: float = 15.0) -> bool:
    deadline = time.monotonic() + seconds
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.02)
    return holds()


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), GeneratorExit()], ids=lambda e: type(e).__name__)
def test_a_model_that_would_end_the_program_fails_for_its_text_alone(tmp_path: Path, error: BaseException) -> None:
    with recollect.open(tmp_path / "a.db", home=tmp_path, embedder=Fragile(raising(error))) as memory:
        memory.remember("the poison is kept in the cellar")
        memory.remember("the ship leaves at noon")

        def states() -> tuple[int, int]:
            progress = memory.embedding_progress()
            assert progress is not None
            return progress.done, progress.failed

        assert eventually(lambda: states() == (1, 1)), states()
        memory.remember("tea is served at five")
        assert eventually(lambda: states() == (2, 1)), states()
        answer = memory.recall("where is the poison?")
        assert [hit.content for hit in answer] == ["the poison is kept in the cellar"]
        assert any(type(error).__name__ in note for note in answer.trace.notes)


def test_a_reranker_that_would_end_the_program_leaves_the_fused_order(tmp_path: Path) -> None:
    class Ending:
        id = "ending-1"

        def score(self, query: str, texts: Sequence[str], budget_ms: float | None = None) -> list[float]:
            raise SystemExit(3)

    with recollect.open(tmp_path / "a.db", home=tmp_path, embedder="none", reranker=Ending()) as memory:
        for text in ("the ship leaves at noon", "the ship is red"):
            memory.remember(text)
        answer = memory.recall("which ship?", rerank=True)
        assert len(answer) == 2
        assert "SystemExit" in (answer.trace.rerank.skipped or "")


class Saying:
    """A reranker that answers with this, whatever it is asked."""

    id = "saying-1"

    def __init__(self, answer: Callable[[int], Any]) -> None:
        self._answer = answer

    def score(self, query: str, texts: Sequence[str], budget_ms: float | None = None) -> Any:
        return self._answer(len(texts))


def ships(memory: recollect.Engine, rerank: bool = True) -> recollect.Recall:
    return memory.recall("which ship?", rerank=rerank, options={"rerank.unanimity": False, "rerank.blend": "replace"})


@pytest.mark.covers("ladder.rerank")
@pytest.mark.parametrize(
    "answer",
    [
        lambda count: [float("nan")] * count,
        lambda count: [float("inf")] * count,
        lambda count: ["good"] * count,
        lambda count: [None] * count,
        lambda count: None,
        lambda count: 0.5,
        lambda count: [0.5] * (count + 1),
    ],
    ids=["nan", "infinite", "words", "nothing each", "nothing", "one number", "too many"],
)
def test_a_reranker_that_gives_no_scores_leaves_the_fused_order_and_it_is_told(
    tmp_path: Path, answer: Callable[[int], Any]
) -> None:
    with recollect.open(tmp_path / "a.db", home=tmp_path, embedder="none", reranker=Saying(answer)) as memory:
        for text in ("the ship leaves at noon", "the ship is red", "the ship of the other owner sank"):
            memory.remember(text)
        fused, judged = ships(memory, rerank=False), ships(memory)
        assert [hit.id for hit in judged] == [hit.id for hit in fused]
        assert not judged.trace.rerank.used
        assert (judged.trace.rerank.skipped or "").startswith("failed: ")
        assert all(hit.rerank_score is None for hit in judged)


@pytest.mark.covers("ladder.rerank")
def test_a_reranker_may_answer_with_an_array_as_cross_encoders_do(tmp_path: Path) -> None:
    backwards = Saying(lambda count: np.arange(count, dtype=np.float32))
    with recollect.open(tmp_path / "a.db", home=tmp_path, embedder="none", reranker=backwards) as memory:
        for text in ("the ship leaves at noon", "the ship is red", "the ship of the other owner sank"):
            memory.remember(text)
        fused, judged = ships(memory, rerank=False), ships(memory)
        assert [hit.id for hit in judged] == [hit.id for hit in fused][::-1]
        assert judged.trace.rerank.used
        assert [type(hit.rerank_score) for hit in judged] == [float] * 3


def test_a_model_that_hangs_does_not_keep_the_memory_from_closing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, released = threading.Event(), threading.Event()
    monkeypatch.setattr(engine, "MODEL_SECONDS", 0.2)
    memory = recollect.open(
        tmp_path / "a.db", home=tmp_path, embedder=Fragile(lambda: (begun.set(), released.wait())), background=False
    )
    memory.remember("the ship leaves at noon")
    memory.upkeep()

    def ask() -> None:
        with suppress(recollect.StoreUnavailable):  # who asks while it is closed may be told so
            memory.recall("is there poison on the ship?")

    asking = threading.Thread(target=ask)
    asking.start()
    assert begun.wait(15)
    closing = threading.Thread(target=memory.close)
    closing.start()
    closing.join(60)  # a bound against hanging, not a measure
    closed = not closing.is_alive()
    released.set()
    assert closed
    asking.join()


HANGING = """
import threading
from recollect.pool import Pool

pool = Pool(1, "hanging", 0.2)
begun = threading.Event()
pool.submit(lambda: (begun.set(), threading.Event().wait()))
begun.wait()
"""


def test_a_model_that_hangs_does_not_keep_the_program_from_ending() -> None:
    assert subprocess.run([sys.executable, "-c", HANGING], timeout=30, check=True).returncode == 0


def test_a_pool_that_is_closed_takes_nothing_and_leaves_undone_what_has_not_begun() -> None:
    pool, release, begun = Pool(1, "small", 0.2), threading.Event(), threading.Event()
    running = pool.submit(lambda: (begun.set(), release.wait()))
    waiting = pool.submit(int)
    begun.wait()
    pool.shutdown(cancel_futures=True)
    release.set()
    assert running.result(5) and waiting.cancelled()
    with pytest.raises(recollect.StoreUnavailable, match="closed"):  # as whoever asks while it is closed is told
        pool.submit(int)
    pool.shutdown()


def test_the_threads_of_a_pool_that_nobody_has_any_more_end() -> None:
    pool = Pool(2, "dropped", 5)
    assert [one.result() for one in [pool.submit(int), pool.submit(int)]] == [0, 0]
    del pool
    assert eventually(lambda: not any(one.name.startswith("dropped") for one in threading.enumerate()))


def test_a_pool_starts_no_more_threads_than_it_needs() -> None:
    pool = Pool(4, "few", 5)
    for _ in range(20):
        assert pool.submit(threading.get_ident).result()
    assert sum(one.name.startswith("few") for one in threading.enumerate()) == 1
    pool.shutdown()


def no_more_threads_after(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    start, left = threading.Thread.start, [count]

    def limited(thread: threading.Thread) -> None:
        if not left[0]:
            raise RuntimeError("can't start new thread")
        left[0] -= 1
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", limited)


def test_words_answer_where_no_thread_can_be_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with recollect.open(tmp_path / "a.db", home=tmp_path, embedder="fake", background=False) as memory:
        memory.remember("the ship leaves at noon")
        memory.upkeep()
    memory = recollect.open(tmp_path / "a.db", home=tmp_path, embedder="fake", background=False)
    no_more_threads_after(0, monkeypatch)
    answer = memory.recall("when does the ship leave?")
    assert [hit.content for hit in answer] == ["the ship leaves at noon"]
    assert any("thread" in note for note in answer.trace.notes)
    fresh, _ = memory.recollect("when does the ship leave?", "s")
    assert "noon" in fresh.text
    with pytest.raises(recollect.StoreUnavailable, match="no thread"):
        recollect.open(tmp_path / "a.db", home=tmp_path, embedder="none")
    monkeypatch.undo()
    memory.close()


def test_a_pool_makes_do_with_the_threads_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    no_more_threads_after(1, monkeypatch)
    pool, gate = Pool(3, "test-few", 5.0), threading.Event()
    first, second = pool.submit(gate.wait, 5), pool.submit(lambda: "done")
    gate.set()
    assert (first.result(5), second.result(5)) == (True, "done")
    pool.shutdown()
