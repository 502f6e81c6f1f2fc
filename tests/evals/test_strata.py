"""Questions made by rule: unique phrases, misspellings that are none of the store's words, connected memories."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect.domain.errors import ModelUnavailable
from recollect.engine import Engine
from recollect.evals import paraphrasing, strata
from recollect.evals.strata import Made, build
from recollect.evals.typos import misspelt
from recollect.settings import Settings

TEXTS = (
    "The staging database runs PostgreSQL sixteen behind the cobalt proxy.",
    "Deployments happen every Tuesday after the smoke tests pass.",
    "The cobalt proxy certificate expires in November and renews by hand.",
    "Marta owns the billing service and answers its pager.",
    "The billing service writes invoices to the archive bucket nightly.",
    "The smoke tests need a browser with an English locale.",
    "Deployments happen every Tuesday after the smoke tests pass again.",
)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with recollect.open(
        tmp_path / "own.db", embedder="fake", reranker="none", background=False, home=tmp_path / "home"
    ) as opened:
        for text in TEXTS:
            opened.remember(text, dedupe=False)
        opened.remember("The vault passphrase hint is quadruple marmalade.", sensitive=True)
        yield opened


def made(engine: Engine, **more: Any) -> list[Made]:
    return build(engine.store, **{"per_stratum": 10, "seed": 1, "namespace": "default", **more})


def test_every_memory_is_read_page_by_page(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strata, "PAGE", 3)
    assert len({one.id for one in strata.memories(engine.store, "default")}) == len(TEXTS) + 1


def of(found: list[Made], stratum: str) -> list[Made]:
    return [one for one in found if one.stratum == stratum]


@pytest.mark.covers("prior.eval")
def test_exact_questions_stand_in_one_memory_alone(engine: Engine) -> None:
    exact = of(made(engine), "exact")
    assert len(exact) >= 5
    contents = {one.id: one.content.lower() for one in engine.list()}
    for one in exact:
        holders = [id for id, text in contents.items() if one.query.lower() in text]
        assert holders == list(one.relevant)


def test_typos_are_words_that_the_store_does_not_hold(engine: Engine) -> None:
    words = {word for one in engine.list() for word in one.content.lower().replace(".", "").split()}
    typo = of(made(engine), "typo")
    assert typo
    for one in typo:
        strange = [word for word in one.query.lower().split() if word not in words]
        assert 1 <= len(strange) <= 2


def test_multi_hop_questions_need_two_connected_memories(engine: Engine) -> None:
    by_id = {one.id: one.content.lower() for one in engine.list()}
    hops = of(made(engine), "multi-hop")
    assert hops
    for one in hops:
        first, second = (set(by_id[id].replace(".", "").split()) for id in one.relevant)
        query = set(one.query.split())
        assert query & (first - second) and query & (second - first)
        assert not query <= first and not query <= second


def test_links_come_before_shared_words_but_not_what_is_superseded(engine: Engine) -> None:
    marta, browser, deploys = (
        next(one.id for one in engine.list() if one.content.startswith(text))
        for text in ("Marta", "The smoke tests", "Deployments happen")
    )
    engine.link(marta, "see-also", browser)
    engine.link(deploys, "supersedes", browser)
    (first,) = of(made(engine, per_stratum=1), "multi-hop")
    assert set(first.relevant) == {marta, browser}


def test_what_is_sensitive_is_never_used(engine: Engine) -> None:
    read: list[str] = []

    def ask(text: str) -> str:
        read.append(text)
        return "what is it?"

    found = made(engine, per_stratum=100, paraphrase=ask)
    assert read and not any("marmalade" in text for text in [*read, *(one.query for one in found)])


def test_the_same_seed_gives_the_same_questions(engine: Engine) -> None:
    assert made(engine, seed=4) == made(engine, seed=4)
    assert made(engine, seed=4, per_stratum=2) != made(engine, seed=5, per_stratum=2)
    assert len(of(made(engine, per_stratum=2), "exact")) == 2


def test_paraphrases_come_from_the_user_then_from_the_model(engine: Engine) -> None:
    first, second, *_ = [one for one in engine.list() if not one.sensitive]
    assert of(made(engine), "paraphrase") == []

    def ask(text: str) -> str:
        if text == second.content:
            raise ModelUnavailable("busy")
        return f"about {len(text)}?"

    found = of(made(engine, paraphrases={first.id: "mine?", "gone": "?"}, paraphrase=ask), "paraphrase")
    asked = {one.relevant[0]: one.query for one in found}
    assert asked[first.id] == "mine?" and second.id not in asked and len(asked) == len(TEXTS) - 1


def test_other_namespaces_are_left_alone(engine: Engine) -> None:
    assert made(engine, namespace="elsewhere") == []


def test_misspelling_is_by_rule_and_by_seed() -> None:
    text = "where is the harbour office"
    assert misspelt(text, 1) == misspelt(text, 1) != text
    assert len({misspelt(text, seed) for seed in range(30)}) > 10
    assert misspelt("is it on?", 1) is None
    for seed in range(50):
        wrong = misspelt(text, seed) or ""
        changed = [(a, b) for a, b in zip(text.split(), wrong.split(), strict=True) if a != b]
        assert len(changed) == 1 and changed[0][0][0] == changed[0][1][0]
        two = misspelt(text, seed, 2) or ""
        assert sum(a != b for a, b in zip(text.split(), two.split(), strict=True)) == 2


def test_a_misspelling_is_no_known_word() -> None:
    known = {"form", "from", "fomr"}
    found = {misspelt("from", seed, known=known.__contains__) for seed in range(200)}
    assert found and not found & known


class Chat(BaseHTTPRequestHandler):
    """Answers as an OpenAI-shaped endpoint does, and keeps what it was asked."""

    seen: list[Any] = []  # noqa: RUF012

    def do_POST(self) -> None:
        self.seen.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        body = json.dumps({"choices": [{"message": {"content": "  In other\n words? "}}]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        return


def test_the_configured_language_model_paraphrases(settings: Settings) -> None:
    assert paraphrasing.configured(settings) is None
    server = HTTPServer(("127.0.0.1", 0), Chat)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        chosen = replace(settings, language_model=f"http://127.0.0.1:{server.server_port}/v1", language_model_name="m")
        ask = paraphrasing.configured(chosen)
        assert ask is not None and ask('The "note".') == "In other words?"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    (payload,) = Chat.seen
    assert payload["model"] == "m" and json.loads(payload["messages"][1]["content"]) == {"note": 'The "note".'}
