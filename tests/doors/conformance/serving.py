"""The MCP app on a loopback port, with a store of its own, for foreign clients: `python serving.py PORT HOME`."""

from __future__ import annotations

import sys

import uvicorn

from recollect.doors.mcp.http import streamable_http_app
from recollect.doors.mcp.server import build_server
from recollect.engine import open_engine


def main(port: int, home: str) -> None:
    with open_engine(home=home, embedder="fake", reranker="none") as engine:
        engine.remember("We use PostgreSQL 16 in production", type="decision", tags=["db"])
        app = streamable_http_app(build_server(engine))
        uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning")


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
