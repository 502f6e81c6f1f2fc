"""Remote embeddings against real servers that do everything wrong: nothing bad gets through, nothing waits for ever."""

from __future__ import annotations

import gc
import json
import logging
import queue
import socket
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from typing import Any

import numpy as np
import pytest

from recollect.domain.errors import ModelUnavailable
from recollect.encoders.endpoint import Endpoint, Limits
from recollect.encoders.http import HttpEmbedder, RemoteModel
from recollect.encoders.transport import Exchange, Idle, check_address, close_all, connect

from .conftest import Loopback, Request, send

Respond = Callable[[BaseHTTPRequestHandler, Request], None]
Start = Callable[[Respond], Loopback]
KEY = "sk-very-secret-123"


def vector_of(text: str) -> list[float]:
    return [float(len(text)), 1.0, 2.0]


def answer(request: Request) -> dict[str, Any]:
    texts = request.body["input"]
    data = [{"object": "embedding", "index": place, "embedding": vector_of(text)} for place, text in enumerate(texts)]
    return {"object": "list", "model": request.body["model"], "data": data}


def good(handler: BaseHTTPRequestHandler, request: Request) -> None:
    send(handler, answer(request))


class Naps:
    """A clock that only sleeping moves, and a list of the sleeps."""

    def __init__(self) -> None:
        self.taken: list[float] = []
        self.now = 1000.0

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.taken.append(seconds)
        self.now += seconds


def embedder_at(
    server: Loopback, naps: Naps | None = None, limits: Limits | None = None, **remote: Any
) -> HttpEmbedder:
    naps = naps or Naps()
    endpoint = Endpoint(
        f"{server.url}/v1", KEY, suffix="/embeddings", limits=limits, clock=naps.clock, sleep=naps.sleep
    )
    return HttpEmbedder(endpoint, "tiny-embed", RemoteModel(**remote), batch_texts=3)


def unit(text: str) -> np.ndarray:
    return (np.array(vector_of(text)) / np.linalg.norm(vector_of(text))).astype(np.float32)


def test_documents_and_queries_come_back_as_unit_vectors(loopback: Start) -> None:
    server = loopback(good)
    embedder = embedder_at(server, query_prefix="q: ", document_prefix="d: ")
    vectors = embedder.embed_documents(["a", "bb"])
    np.testing.assert_allclose(vectors, [unit("d: a"), unit("d: bb")], atol=1e-6)
    np.testing.assert_allclose(embedder.embed_query("a"), unit("q: a"), atol=1e-6)
    assert embedder.dimension == 3 and vectors.dtype == np.float32
    first = server.requests[0]
    assert first.path == "/v1/embeddings" and first.headers["Authorization"] == f"Bearer {KEY}"
    assert first.body["model"] == "tiny-embed" and first.body["input"] == ["d: a", "d: bb"]


def test_many_documents_go_in_bounded_batches_over_one_connection(loopback: Start) -> None:
    server = loopback(good)
    texts = [f"{'x' * number}" for number in range(1, 9)]
    vectors = embedder_at(server).embed_documents(texts)
    assert [len(request.body["input"]) for request in server.requests] == [3, 3, 2]
    np.testing.assert_allclose(vectors, [unit(text) for text in texts], atol=1e-6)
    assert len(server.connections) == 1


def test_long_documents_go_in_smaller_batches(loopback: Start) -> None:
    server = loopback(good)
    endpoint = Endpoint(server.url, suffix="/embeddings")
    HttpEmbedder(endpoint, "m", batch_characters=10).embed_documents(["x" * 4, "x" * 4, "x" * 4, "x" * 40])
    assert [[len(text) for text in request.body["input"]] for request in server.requests] == [[4, 4], [4], [40]]


def test_a_reordered_answer_is_put_in_order(loopback: Start) -> None:
    def reordered(handler: BaseHTTPRequestHandler, request: Request) -> None:
        whole = answer(request)
        send(handler, {**whole, "data": whole["data"][::-1]})

    vectors = embedder_at(loopback(reordered)).embed_documents(["a", "bb", "ccc"])
    np.testing.assert_allclose(vectors, [unit("a"), unit("bb"), unit("ccc")], atol=1e-6)


def test_an_answer_without_numbers_is_taken_in_order(loopback: Start) -> None:
    def bare(handler: BaseHTTPRequestHandler, request: Request) -> None:
        send(handler, {"data": [{"embedding": vector_of(text)} for text in request.body["input"]]})

    vectors = embedder_at(loopback(bare)).embed_documents(["a", "bb"])
    np.testing.assert_allclose(vectors, [unit("a"), unit("bb")], atol=1e-6)


def test_a_query_asked_again_is_not_sent_again(loopback: Start) -> None:
    server = loopback(good)
    embedder = embedder_at(server)
    assert embedder.embed_query("same") is embedder.embed_query("same")
    assert len(server.requests) == 1


def of_embeddings(*embeddings: Any) -> Any:
    return {"data": [{"index": place, "embedding": entry} for place, entry in enumerate(embeddings)]}


NONSENSE: dict[str, Any] = {
    "short batch": of_embeddings([1, 2, 3]),
    "long batch": of_embeddings([1, 2, 3], [1, 2, 3], [1, 2, 3]),
    "one number twice": {"data": [{"index": 0, "embedding": [1, 2]}, {"index": 0, "embedding": [1, 2]}]},
    "number out of range": {"data": [{"index": 0, "embedding": [1, 2]}, {"index": 7, "embedding": [1, 2]}]},
    "number as text": {"data": [{"index": "0", "embedding": [1, 2]}, {"index": "1", "embedding": [1, 2]}]},
    "NaN": b'{"data": [{"embedding": [1, NaN]}, {"embedding": [1, 2]}]}',
    "Infinity": b'{"data": [{"embedding": [1, 2]}, {"embedding": [1, -Infinity]}]}',
    "beyond every float": b'{"data": [{"embedding": [1, 2]}, {"embedding": [1, 1e999]}]}',
    "integer beyond every float": b'{"data": [{"embedding": [1, 2]}, {"embedding": [1, 1' + b"0" * 400 + b"]}]}",
    "zero": of_embeddings([0, 0], [1, 2]),
    "ragged": of_embeddings([1, 2, 3], [1, 2]),
    "text for numbers": of_embeddings(["1", "2"], [1, 2]),
    "null": of_embeddings(None, [1, 2]),
    "true": of_embeddings([True, False], [1, 2]),
    "empty": of_embeddings([], []),
    "nested": of_embeddings([[1, 2]], [[1, 2]]),
    "no data": {"error": None},
    "data is no list": {"data": {"0": [1, 2]}},
    "data of numbers": {"data": [1, 2]},
    "a list": [1, 2],
    "null answer": None,
    "bad JSON": b'{"data": [',
    "not JSON": b"<html>hello</html>",
    "nothing": b"",
    "not UTF-8": b'{"data": "\xff\xfe"}',
    "deep": b"[" * 200_000,
    "another model": {**of_embeddings([1, 2], [1, 2]), "model": "other-model"},
}


@pytest.mark.parametrize("body", NONSENSE.values(), ids=NONSENSE.keys())
def test_nonsense_is_refused_as_a_whole(loopback: Start, body: Any) -> None:
    embedder = embedder_at(loopback(lambda handler, _: send(handler, body)))
    with pytest.raises(ModelUnavailable) as caught:
        embedder.embed_documents(["a", "b"])
    assert caught.value.hint and KEY not in str(caught.value)


def test_after_nonsense_a_good_answer_is_taken(loopback: Start) -> None:
    server = loopback(lambda handler, _: send(handler, of_embeddings([1, 2, 3, 4, 5], [0, 0])))
    embedder = embedder_at(server)
    with pytest.raises(ModelUnavailable):
        embedder.embed_documents(["a", "b"])
    server.respond = good
    assert embedder.embed_documents(["a", "b"]).shape == (2, 3)


def test_a_changed_dimension_is_refused(loopback: Start) -> None:
    server = loopback(good)
    embedder = embedder_at(server)
    embedder.embed_query("a")
    server.respond = lambda handler, _: send(handler, of_embeddings([1, 2]))
    with pytest.raises(ModelUnavailable, match="not 3"):
        embedder.embed_documents(["b"])


def test_a_configured_dimension_holds_from_the_start(loopback: Start) -> None:
    embedder = embedder_at(loopback(good), dimension=1024)
    assert embedder.dimension == 1024
    with pytest.raises(ModelUnavailable, match="not 1024"):
        embedder.embed_query("a")


@pytest.mark.parametrize("announced", [True, False])
def test_a_huge_answer_is_not_read(loopback: Start, announced: bool) -> None:
    def huge(handler: BaseHTTPRequestHandler, _: Request) -> None:
        handler.send_response(200)
        if announced:
            handler.send_header("Content-Length", str(10**12))
        else:
            handler.close_connection = True
        handler.end_headers()
        for _number in range(64):
            handler.wfile.write(b" " * 1024)

    with pytest.raises(ModelUnavailable, match="more than 4096 bytes"):
        embedder_at(loopback(huge), limits=Limits(body_bytes=4096)).embed_query("a")


def test_an_answer_cut_short_is_refused(loopback: Start) -> None:
    def torn(handler: BaseHTTPRequestHandler, request: Request) -> None:
        content = json.dumps(answer(request)).encode()
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(content) + 1))
        handler.end_headers()
        handler.wfile.write(content)
        handler.close_connection = True

    with pytest.raises(ModelUnavailable, match="cannot be reached"):
        embedder_at(loopback(torn)).embed_query("a")


def test_nobody_listening_is_model_unavailable() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    naps = Naps()
    endpoint = Endpoint(f"http://127.0.0.1:{port}", suffix="/embeddings", clock=naps.clock, sleep=naps.sleep)
    with pytest.raises(ModelUnavailable, match="cannot be reached"):
        HttpEmbedder(endpoint, "m", attempts=3).embed_documents(["a"])
    assert naps.taken == [0.5, 1.0]


def test_a_server_that_hangs_is_left_in_time(loopback: Start) -> None:
    server = loopback(lambda handler, _: server.released.wait(30))
    embedder = HttpEmbedder(Endpoint(server.url, suffix="/embeddings"), "m", RemoteModel(query_ms=150))
    with pytest.raises(ModelUnavailable, match="in time"):
        embedder.embed_query("a")
    assert not server.released.is_set()


def test_a_server_that_drips_is_left_in_time(loopback: Start) -> None:
    def drip(handler: BaseHTTPRequestHandler, request: Request) -> None:
        """Byte by byte, each well before any time-out of a socket; a good answer in the end, for whoever waits."""
        content = b" " * 60 + json.dumps(answer(request)).encode()
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        for _ in range(60):
            server.released.wait(0.05)
            handler.wfile.write(b" ")
        handler.wfile.write(content[60:])

    server = loopback(drip)
    embedder = HttpEmbedder(Endpoint(server.url, suffix="/embeddings"), "m", RemoteModel(documents_ms=200))
    with pytest.raises(ModelUnavailable, match="in time"):
        embedder.embed_documents(["a"])
    assert len(server.requests) == 1


def in_turn(*answers: tuple[int, dict[str, str]]) -> Respond:
    """These failures one after the other, then good answers."""
    left = list(answers)

    def respond(handler: BaseHTTPRequestHandler, request: Request) -> None:
        if left:
            status, headers = left.pop(0)
            send(handler, {"error": {"message": "busy"}}, status, **headers)
        else:
            good(handler, request)

    return respond


def test_documents_are_tried_again_after_429_and_500_with_growing_pauses(loopback: Start) -> None:
    naps = Naps()
    server = loopback(in_turn((429, {}), (500, {}), (503, {})))
    assert embedder_at(server, naps).embed_documents(["a"]).shape == (1, 3)
    assert naps.taken == [0.5, 1.0, 2.0] and len(server.requests) == 4


def test_retry_after_is_honoured(loopback: Start) -> None:
    naps = Naps()
    server = loopback(in_turn((429, {"Retry_After": "7"}), (503, {"Retry_After": "Wed, 21 Oct 2026 07:28:00 GMT"})))
    embedder_at(server, naps).embed_documents(["a"])
    assert naps.taken == [7.0, 1.0]


def test_retry_after_beyond_the_deadline_ends_at_once(loopback: Start) -> None:
    naps = Naps()
    server = loopback(in_turn((429, {"Retry_After": "3600"})))
    with pytest.raises(ModelUnavailable, match="429: busy"):
        embedder_at(server, naps).embed_documents(["a"])
    assert naps.taken == [] and len(server.requests) == 1


def test_tries_are_bounded(loopback: Start) -> None:
    naps = Naps()
    server = loopback(in_turn(*[(500, {})] * 50))
    with pytest.raises(ModelUnavailable, match="500"):
        embedder_at(server, naps).embed_documents(["a"])
    assert len(server.requests) == 4


def test_a_query_is_not_tried_again(loopback: Start) -> None:
    naps = Naps()
    server = loopback(in_turn((500, {})))
    with pytest.raises(ModelUnavailable):
        embedder_at(server, naps).embed_query("a")
    assert naps.taken == [] and len(server.requests) == 1


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
def test_a_refusal_is_final(loopback: Start, status: int) -> None:
    server = loopback(in_turn((status, {})))
    with pytest.raises(ModelUnavailable, match=f"{status}: busy"):
        embedder_at(server).embed_documents(["a"])
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed_and_the_key_stays(loopback: Start, status: int) -> None:
    other = loopback(good)
    server = loopback(lambda handler, _: send(handler, b"", status, Location=f"{other.url}/v1/embeddings"))
    with pytest.raises(ModelUnavailable, match="redirect"):
        embedder_at(server).embed_documents(["a"])
    assert other.requests == []


def test_the_breaker_stops_asking_and_tries_again_later(loopback: Start) -> None:
    naps = Naps()
    server = loopback(in_turn(*[(500, {})] * 4))
    embedder = embedder_at(server, naps)
    for _ in range(3):
        with pytest.raises(ModelUnavailable, match="500"):
            embedder.embed_query("a")
    with pytest.raises(ModelUnavailable, match="left alone"):
        embedder.embed_query("a")
    assert len(server.requests) == 3
    naps.now += 30
    with pytest.raises(ModelUnavailable, match="500"):
        embedder.embed_query("a")
    with pytest.raises(ModelUnavailable, match="left alone"):
        embedder.embed_documents(["a"])
    naps.now += 30
    assert embedder.embed_query("a").shape == (3,) and embedder.embed_query("b").shape == (3,)
    assert len(server.requests) == 6


def test_while_one_call_tries_the_others_are_still_stopped(loopback: Start) -> None:
    naps = Naps()
    server = loopback(in_turn(*[(500, {})] * 3))
    embedder = embedder_at(server, naps)
    for _ in range(3):
        with pytest.raises(ModelUnavailable, match="500"):
            embedder.embed_query("a")
    naps.now += 30
    seen: list[str] = []

    def while_it_tries(handler: BaseHTTPRequestHandler, request: Request) -> None:
        try:
            embedder.embed_query("second")
        except ModelUnavailable as error:
            seen.append(str(error))
        good(handler, request)

    server.respond = while_it_tries
    embedder.embed_query("first")
    assert len(seen) == 1 and "left alone" in seen[0]


def test_nonsense_opens_the_breaker_but_a_refused_request_does_not(loopback: Start) -> None:
    server = loopback(lambda handler, _: send(handler, b"?"))
    embedder = embedder_at(server)
    for _ in range(5):
        with pytest.raises(ModelUnavailable):
            embedder.embed_query("a")
    assert len(server.requests) == 3
    server = loopback(in_turn(*[(400, {})] * 5))
    embedder = embedder_at(server)
    for _ in range(5):
        with pytest.raises(ModelUnavailable, match="400"):
            embedder.embed_query("a")
    assert embedder.embed_query("a").shape == (3,)


def test_a_kept_connection_that_the_server_closed_is_no_failure(loopback: Start) -> None:
    def closing(handler: BaseHTTPRequestHandler, request: Request) -> None:
        good(handler, request)
        # Closed without a word: the client finds out when it uses the connection again.
        handler.close_connection = True

    server = loopback(closing)
    embedder = embedder_at(server)
    for text in ("a", "b", "c"):
        assert embedder.embed_query(text).shape == (3,)
    assert len(server.requests) == 3


def exchange_with(server: Loopback, idle: Idle) -> Exchange:
    asked = json.dumps({"model": "m", "input": ["a"]}).encode()
    address = check_address(f"{server.url}/v1/embeddings", "")
    return Exchange(address, {"Content-Type": "application/json"}, asked, 5.0, 10_000, idle)


def test_who_gives_up_as_the_answer_comes_leaves_the_connection_to_the_next(loopback: Start) -> None:
    server = loopback(good)
    idle: Idle = queue.LifoQueue()
    given_up, late = exchange_with(server, idle), exchange_with(server, idle)
    given_up.abort()
    given_up.run()
    assert idle.empty()
    late.run()
    late.abort()
    kept = idle.queue[0].sock
    assert kept is not None
    kept.sendall(b"")  # a socket that was shut down is a broken pipe
    close_all(idle)


def test_a_request_that_was_given_up_is_not_sent_again(loopback: Start) -> None:
    arrived = threading.Event()

    def hang_at_second(handler: BaseHTTPRequestHandler, request: Request) -> None:
        if len(server.requests) == 2:
            arrived.set()
            server.released.wait(30)
        good(handler, request)

    server = loopback(hang_at_second)
    idle: Idle = queue.LifoQueue()
    exchange_with(server, idle).run()
    second = exchange_with(server, idle)
    thread = threading.Thread(target=second.run)
    thread.start()
    assert arrived.wait(30)
    second.abort()
    thread.join(30)
    assert isinstance(second.outcome, OSError) and len(server.requests) == 2
    close_all(idle)


def test_the_key_is_shown_nowhere(loopback: Start, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    server = loopback(lambda handler, _: send(handler, {"error": {"message": f"bad key {KEY}\x1b[31m"}}, 401))
    embedder = embedder_at(server)
    with pytest.raises(ModelUnavailable) as caught:
        embedder.embed_query("a")
    shown = f"{embedder!r} {embedder.id} {embedder._endpoint!r} {caught.value} {caught.value.hint} {caplog.text}"
    assert KEY not in shown and "\x1b" not in shown and "bad key ***" in shown


def test_the_id_names_model_and_server(loopback: Start) -> None:
    server = loopback(good)
    plain, prefixed = embedder_at(server), embedder_at(server, query_prefix="q: ")
    assert plain.id == f"tiny-embed@127.0.0.1:{server.port}" and prefixed.id != plain.id
    assert server.requests == []


def test_no_documents_and_lone_surrogates(loopback: Start) -> None:
    server = loopback(good)
    embedder = embedder_at(server)
    assert embedder.embed_documents([]).shape == (0, 3)
    assert embedder.embed_documents(["\ud800"]).shape == (1, 3)


def test_tokens_are_estimated_on_the_safe_side() -> None:
    embedder = HttpEmbedder(Endpoint("http://localhost/v1"), "m")
    assert embedder.count_tokens("twelve chars") == 4 and embedder.count_tokens("東京") == 2
    assert embedder.count_tokens("") == 0 and embedder.max_tokens == 512


def test_dropping_an_embedder_closes_its_connections(loopback: Start) -> None:
    server = loopback(good)
    embedder = embedder_at(server)
    embedder.embed_query("a")
    idle = embedder._endpoint._idle
    connection = idle.queue[0]
    assert connection.sock is not None
    del embedder
    gc.collect()
    assert idle.empty() and connection.sock is None


def test_the_proxy_of_the_environment_is_used_for_others_only(loopback: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    proxy = loopback(good)
    for name in ("no_proxy", "NO_PROXY", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", proxy.url)
    monkeypatch.setenv("https_proxy", f"127.0.0.1:{proxy.port}")
    HttpEmbedder(Endpoint("http://embed.example.org/v1", suffix="/embeddings"), "m").embed_query("a")
    assert proxy.requests[0].path == "http://embed.example.org/v1/embeddings"
    near = loopback(good)
    HttpEmbedder(Endpoint(near.url, suffix="/embeddings"), "m").embed_query("a")
    assert near.requests[0].path == "/embeddings" and len(proxy.requests) == 1
    tunnel = connect(check_address("https://embed.example.org/v1", ""), 1.0)
    assert (tunnel.host, tunnel.port) == ("127.0.0.1", proxy.port)
    assert tunnel._tunnel_host == "embed.example.org"
