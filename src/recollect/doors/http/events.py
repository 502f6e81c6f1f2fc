"""What happens, told to whoever listens: ids, counts and actions, never a memory's text or a query."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any

KEPT = 256
"""So many events are kept for a listener that comes back, and wait for one that reads slowly; then the oldest go."""


@dataclass(frozen=True, slots=True)
class Event:
    number: int
    name: str
    data: dict[str, Any]


class Events:
    """One announcer, many listeners. Everything here happens on the event loop."""

    def __init__(self) -> None:
        self._last = 0
        self._past: deque[Event] = deque(maxlen=KEPT)
        self._news = asyncio.Event()
        self._closed = False
        self.listeners = 0

    def publish(self, name: str, **data: Any) -> None:
        self._last += 1
        self._past.append(Event(self._last, name, data))
        self._wake()

    def close(self) -> None:
        """The daemon stops: every listener reads what is left and ends."""
        self._closed = True
        self._wake()

    async def listen(self, after: int | None = None) -> AsyncGenerator[Event]:
        """Events as they come; with `after`, also the kept ones behind that number. Gaps show in the numbers."""
        seen = self._last if after is None else after
        self.listeners += 1
        try:
            while True:
                news = self._news
                for event in [one for one in self._past if one.number > seen]:
                    seen = event.number
                    yield event
                if self._closed:
                    return
                await news.wait()
        finally:
            self.listeners -= 1

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()
