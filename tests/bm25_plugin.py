"""`-p tests.bm25_plugin`: every PostgreSQL store of a run of tests finds through the BM25 extension alone where it can.

However small a store is: before a search it is tidied, which the first time makes the extension's copy of what is
there; what is written later is found beside it. Our own finder is not asked where the extension was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from recollect.ports import Store, TextIndex, TextMatches
from recollect.stores.postgres import opening, ranked
from recollect.stores.postgres import text as finding
from recollect.stores.postgres.connection import Connection, Rows

_open, _attempt, _ways = opening.open_postgres, ranked.Ranked.attempt, finding._ways  # pyright: ignore[reportPrivateUsage]
_searches: list[finding.Search] = []
"""Those that the extension was asked for."""


class _Tidied:
    """A TextIndex whose store is tidied before it is searched."""

    def __init__(self, store: Store, inner: TextIndex) -> None:
        self._store = store
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def match(self, *given: Any, **named: Any) -> TextMatches:
        self._store.care.tidy()
        return self._inner.match(*given, **named)


def _opened(address: str, **named: Any) -> Store:
    store = _open(f"{address}&bm25=extension", **named)
    assert store.text is not None
    return replace(store, text=_Tidied(store, store.text))


def _attempted(
    self: ranked.Ranked, connection: Connection, search: finding.Search, fetch: Callable[[finding.Way], Rows]
) -> tuple[str, Rows]:
    text, kept = _attempt(self, connection, search, fetch)
    if text:
        _searches.append(search)
    return text, kept


def _no_other_way(search: finding.Search) -> Iterator[finding.Way]:
    return iter(()) if any(search is one for one in _searches) else _ways(search)


def pytest_configure(config: pytest.Config) -> None:
    ranked.LEAST = 1
    opening.open_postgres = _opened
    ranked.Ranked.attempt = _attempted
    finding._ways = _no_other_way  # pyright: ignore[reportPrivateUsage]


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A run in which the extension was never asked proves nothing."""
    print(f"\n{len(_searches)} searches by the extension alone")
    if not _searches and session.exitstatus == 0:
        session.exitstatus = 1
