"""A chat model is told how long its answer may be; one that was cut off is not taken at half its word."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from recollect.domain.errors import ModelUnavailable
from recollect.doors.answering import ANSWER_TOKENS, language_model
from recollect.encoders.chat import THINKING_TOKENS, Chat
from recollect.evals import paraphrasing
from recollect.settings import Settings, load
from tests.chat_server import ChatServer, chat_server

NOTE = '{"note": "x"}'


def bounds(server: ChatServer) -> list[Any]:
    return [payload.get("max_tokens") for payload in server.payloads]


def settings(server: ChatServer, home: Path) -> Settings:
    return load(home=home, language_model=server.url, language_model_name="small")


def test_an_answer_has_a_bound() -> None:
    with chat_server(lambda _: "yes") as server:
        assert Chat(server.url, "", "small").ask(NOTE, seconds=10, most_tokens=50) == ("yes", False)
    assert bounds(server) == [50]


def test_an_answer_that_is_cut_off_is_told_as_such() -> None:
    with chat_server(lambda _: "again " * 1_000) as server:
        text, is_cut = Chat(server.url, "", "small").ask(NOTE, seconds=10, most_tokens=50)
    assert is_cut and len(text) == 200 and bounds(server) == [50]


@pytest.mark.parametrize("is_told", [True, False])
def test_a_model_that_thinks_gets_room_for_that_from_then_on(is_told: bool) -> None:
    thought = f"<think>{'hm ' * 500}</think>" if is_told else "hm " * 500
    with chat_server(lambda _: f"{thought}yes", hidden="" if is_told else thought) as server:
        chat = Chat(server.url, "", "thinking")
        for _ in range(2):
            assert chat.ask(NOTE, seconds=10, most_tokens=50).text.endswith("yes")
    assert bounds(server) == [50, 50 + THINKING_TOKENS, 50 + THINKING_TOKENS]


def test_a_model_that_thinks_for_ever_has_no_answer() -> None:
    with chat_server(lambda _: "<think>" + "hm " * 20_000) as server:
        chat = Chat(server.url, "", "thinking")
        with pytest.raises(ModelUnavailable, match="did not come to its answer"):
            chat.ask(NOTE, seconds=10, most_tokens=50)
    assert bounds(server) == [50, 50 + THINKING_TOKENS]


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("We run PostgreSQL 16 [1].", "We run PostgreSQL 16 [1]."),
        ("We run PostgreSQL 16 [1]. " + "And again " * 1_000, "We run PostgreSQL 16 [1]. …"),
        ("And again " * 1_000, ""),
    ],
)
def test_of_an_answer_that_is_cut_off_the_whole_sentences_count(tmp_path: Path, said: str, answer: str) -> None:
    with chat_server(lambda _: said) as server:
        complete = language_model(settings(server, tmp_path))
        assert complete is not None and complete(NOTE) == answer
    assert bounds(server) == [ANSWER_TOKENS]


@pytest.mark.parametrize(
    ("said", "question"),
    [
        ("Where do we deploy?", "Where do we deploy?"),
        ("Where do we deploy? " * 100, "Where do we deploy?"),
        ("Where do we and do we " * 100, ""),
    ],
)
def test_half_a_question_is_none(tmp_path: Path, said: str, question: str) -> None:
    with chat_server(lambda _: said) as server:
        ask = paraphrasing.configured(settings(server, tmp_path))
        assert ask is not None and ask("x") == question
    assert bounds(server) == [paraphrasing.MOST_TOKENS]
