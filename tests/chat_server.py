"""A chat model of a test's own: a real HTTP server of the OpenAI shape that lists the names it was told to know."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = str | int
"""What the model says, or the status with which the server refuses."""


@dataclass
class ChatServer:
    """`answer` is asked with each note; what was asked is kept."""

    answer: Callable[[str], Answer]
    notes: list[str] = field(default_factory=list[str])
    """The notes it was shown, in order."""
    payloads: list[Any] = field(default_factory=list[Any])
    headers: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    url: str = ""


def names(about: str, *others: str) -> str:
    """The answer of a model that does as it is told."""
    return json.dumps({"about": about, "names": list(others)})


@contextmanager
def chat_server(answer: Callable[[str], Answer], hidden: str = "") -> Iterator[ChatServer]:
    """`hidden` is what the model only thinks: its tokens count, and nobody is told."""
    state = ChatServer(answer)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            payload = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            state.payloads.append(payload)
            state.headers.append(dict(self.headers))
            note = json.loads(payload["messages"][-1]["content"])["note"]
            state.notes.append(note)
            said, most = state.answer(note), payload.get("max_tokens")
            status, body = (said, b"{}") if isinstance(said, int) else (200, _completion(said, most, hidden))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    state.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _completion(said: str, most_tokens: int | None, hidden: str) -> bytes:
    """Cut off as servers do it, at four characters a token."""
    told = said if most_tokens is None else said[: 4 * most_tokens]
    content = None if hidden.startswith(told) and hidden else told.removeprefix(hidden)
    reason = "stop" if told == said else "length"
    return json.dumps(
        {"choices": [{"message": {"role": "assistant", "content": content}, "finish_reason": reason}]}
    ).encode()
