"""A configured language model reads memories in the background; off by default, and nobody waits for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from recollect.domain.errors import InvalidInput
from recollect.domain.memory import MENTIONS
from recollect.engine import Engine
from recollect.ports import EmbeddingProgress
from tests.chat_server import Answer, ChatServer, chat_server, names
from tests.engine.conftest import Open

OWNER = "ana looks after the ledger daemon"
DAEMON = "restart it with care: the ledger daemon loses what it has not yet written"
ANSWERS: dict[str, Answer] = {OWNER: names("ana", "ledger daemon"), DAEMON: names("ledger daemon")}


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with chat_server(lambda text: ANSWERS.get(text, names(""))) as running:
        yield running


@pytest.fixture
def configured(server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> ChatServer:
    monkeypatch.setenv("RECOLLECT_EXTRACT_CONCEPTS", "true")
    monkeypatch.setenv("RECOLLECT_LANGUAGE_MODEL", server.url)
    monkeypatch.setenv("RECOLLECT_LANGUAGE_MODEL_NAME", "small")
    monkeypatch.setenv("RECOLLECT_LANGUAGE_MODEL_KEY", "secret-key")
    return server


def mentions(engine: Engine, id: str) -> list[tuple[str, str]]:
    return [(link.source, link.target) for link in engine.expand(id).links if link.type == MENTIONS]


def test_without_the_setting_nothing_is_sent(server: ChatServer, opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECOLLECT_LANGUAGE_MODEL", server.url)
    engine = opened(background=True)
    engine.remember(OWNER)
    engine.upkeep()
    assert (engine.extractor, engine.concept_progress()) == (None, None)
    assert engine.extract_concepts().stopped == "no extractor"
    assert server.notes == []


def test_the_setting_without_a_model_is_refused(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECOLLECT_EXTRACT_CONCEPTS", "true")
    with pytest.raises(InvalidInput, match="needs a language model") as caught:
        opened()
    assert "language_model" in caught.value.hint


def test_what_is_remembered_is_read_in_the_background(configured: ChatServer, opened: Open) -> None:
    engine = opened(background=True)
    owner, daemon = engine.remember(OWNER).id, engine.remember(DAEMON).id
    deadline = time.monotonic() + 30
    while engine.concept_progress() != EmbeddingProgress(2, 0, 0) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert mentions(engine, owner) == [(owner, daemon)]
    assert sorted(configured.notes) == sorted([OWNER, DAEMON])


def test_neither_writing_nor_recalling_nor_closing_waits_for_the_model(configured: ChatServer, opened: Open) -> None:
    asked, release = threading.Event(), threading.Event()

    def hang(_: str) -> Answer:
        asked.set()
        release.wait(60)
        return names("")

    configured.answer = hang
    engine = opened(background=True)
    try:
        engine.remember(OWNER)
        assert asked.wait(30)
        engine.remember(DAEMON)
        engine.upkeep()
        assert {hit.content for hit in engine.recall("ledger daemon")} == {OWNER, DAEMON}
        engine.close()
        assert not release.is_set()
    finally:
        release.set()


def test_recall_takes_the_second_step_by_a_mention(configured: ChatServer, opened: Open) -> None:
    engine = opened(embedder="none")
    owner, daemon = engine.remember(OWNER).id, engine.remember(DAEMON).id
    assert [hit.id for hit in engine.recall("what does ana look after?")] == [owner]
    engine.extract_concepts()
    found = engine.recall("what does ana look after?")
    assert [hit.id for hit in found] == [owner, daemon]
    assert [one.list for one in found[1].contributions] == ["bridge"]
    # The way back is not taken, because the daemon does not name its owner; nor are links of other types.
    engine.link(daemon, "see-also", owner)
    back = engine.recall("restart with care")
    assert ([hit.id for hit in back], back.trace.legs["bridge"].error) == ([daemon], None)


def test_dropped_concepts_are_made_anew(configured: ChatServer, opened: Open) -> None:
    engine = opened()
    owner, daemon = engine.remember(OWNER).id, engine.remember(DAEMON).id
    engine.extract_concepts()
    assert engine.drop_concepts() == 1
    assert mentions(engine, owner) == []
    assert engine.concept_progress() == EmbeddingProgress(0, 2, 0)
    assert engine.extract_concepts().linked == 1
    assert mentions(engine, owner) == [(owner, daemon)]
    assert len(configured.notes) == 4


def test_the_key_stays_in_the_request(
    configured: ChatServer, opened: Open, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    engine = opened()
    engine.remember(OWNER)
    configured.answer = lambda _: 500
    assert engine.extract_concepts().stopped == "the model is unavailable"
    configured.answer = lambda _: names("ana")
    engine.extract_concepts()
    engine.close()
    assert configured.headers[-1]["Authorization"] == "Bearer secret-key"
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"small@127.0.0.1" in written and b"secret-key" not in written
    assert "secret-key" not in caplog.text
