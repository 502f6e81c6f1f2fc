"""Structured logs: one JSON object per line on standard error. They hold ids, counts, times and error names only."""

from __future__ import annotations

import json
import logging
import sys
import traceback
from datetime import UTC, datetime
from typing import Any

FIELDS = ("request_id", "method", "route", "status", "ms", "failure", "at")


class JsonFormatter(logging.Formatter):
    """One line per record. An exception is told by its type and its places in the code: its words may quote a text."""

    def format(self, record: logging.LogRecord) -> str:
        document: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        document.update({name: getattr(record, name) for name in FIELDS if hasattr(record, name)})
        if record.exc_info and record.exc_info[1] is not None:
            document.update(described(record.exc_info[1]))
        return json.dumps(document, ensure_ascii=True, default=str)


def described(error: BaseException) -> dict[str, Any]:
    """The type of an error and where it came from, without what it says."""
    frames = traceback.extract_tb(error.__traceback__)[-6:]
    return {
        "failure": type(error).__name__,
        "at": [f"{frame.filename.rpartition('/')[2]}:{frame.lineno} {frame.name}" for frame in frames],
    }


def configure() -> None:
    """Our own lines from information on, those of libraries from warnings on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("recollect").setLevel(logging.INFO)
    # It would print the path with its query; our own line tells the route instead.
    logging.getLogger("uvicorn.access").disabled = True
