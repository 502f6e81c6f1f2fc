"""A query of filters alone names what is wanted, so it is answered: newest first."""

from __future__ import annotations

import pytest

from recollect.domain.memory import Scope
from recollect.engine import Engine
from recollect.profiles import load
from tests.engine.conftest import Open


@pytest.fixture
def shop(opened: Open) -> Engine:
    engine = opened()
    shop = Scope(project="shop")
    engine.remember("We run PostgreSQL", type="decision", tags=["db"], scope=shop, created_at="2026-05-01")
    engine.remember("Deploys are on Tuesdays", type="decision", scope=shop, created_at="2026-05-03")
    engine.remember("The linter is strict", type="decision", created_at="2026-05-02")
    engine.remember("Vacuum after deletes", type="lesson", tags=["db"], scope=shop, created_at="2026-05-04")
    return engine


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("type:decision", ["Deploys are on Tuesdays", "The linter is strict", "We run PostgreSQL"]),
        ("type:decision project:shop", ["Deploys are on Tuesdays", "We run PostgreSQL"]),
        ("tag:db before:2026-05-02", ["We run PostgreSQL"]),
        ("-type:decision", ["Vacuum after deletes"]),
        ("type:gotcha", []),
    ],
)
def test_filters_alone_are_answered_newest_first(shop: Engine, query: str, expected: list[str]) -> None:
    assert [hit.content for hit in shop.recall(query)] == expected


def test_limits_count(shop: Engine) -> None:
    answer = shop.recall("type:decision", limit=1)
    assert [hit.content for hit in answer] == ["Deploys are on Tuesdays"]
    assert [one.list for one in answer[0].contributions] == ["latest"]


@pytest.mark.parametrize("query", ["postgresql", "postgresql type:decision", "", "   ", '""', '"?!"'])
def test_a_query_of_words_or_of_nothing_is_not_answered_by_time(shop: Engine, query: str) -> None:
    answer = shop.recall(query)
    assert answer.trace.legs["latest"].skipped == "not filters alone" and "latest" not in answer.trace.lists
    assert answer.trace.legs.keys() >= {spec.name for spec in load(answer.profile).legs}
