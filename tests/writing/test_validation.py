"""Drafts are checked field by field; what is stored is exactly what was given."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.domain.errors import InvalidInput
from recollect.domain.memory import Scope
from recollect.stages.fields import moment
from recollect.writing import Draft, WritePolicy, as_moment, to_memory

NOW = datetime(2026, 5, 1, 12, 0, 0, 123456, tzinfo=UTC)


def made(content: str = "a fact", **fields: Any) -> Any:
    return to_memory(Draft(content, **fields), id="m1", now=NOW, policy=WritePolicy())[0]


@pytest.mark.parametrize(
    ("field", "fields"),
    [
        ("content", {"content": ""}),
        ("content", {"content": " \n\t"}),
        ("content", {"content": 7}),
        ("content", {"content": "a\0b"}),
        ("content", {"content": "a\ud800b"}),
        ("content", {"content": "é" * (512 * 1024) + "x"}),
        ("type", {"type": ""}),
        ("type", {"type": "two words"}),
        ("type", {"type": "x" * 65}),
        ("type", {"type": "-fact"}),
        ("type", {"type": None}),
        ("type", {"type": "İstek"}),
        ("tags", {"tags": "db"}),
        ("tags", {"tags": 5}),
        ("tags", {"tags": ["ok", ""]}),
        ("tags", {"tags": ["é" * 65]}),
        ("tags", {"tags": [f"t{n}" for n in range(65)]}),
        ("tags", {"tags": ["line\nbreak"]}),
        ("confidence", {"confidence": 1.01}),
        ("confidence", {"confidence": -0.01}),
        ("confidence", {"confidence": float("nan")}),
        ("confidence", {"confidence": True}),
        pytest.param("confidence", {"confidence": 10**400}, id="beyond all floats"),
        ("confidence", {"confidence": "0.8"}),
        ("importance", {"importance": 2}),
        ("importance", {"importance": "urgent"}),
        ("scope", {"scope": "shop"}),
        ("scope.namespace", {"scope": Scope(namespace="Shop")}),
        ("scope.namespace", {"scope": Scope(namespace="")}),
        ("scope.namespace", {"scope": Scope(namespace="a" * 129)}),
        ("scope.namespace", {"scope": Scope(namespace="ａ")}),
        ("scope.project", {"scope": Scope(project="")}),
        ("scope.session", {"scope": Scope(session="x" * 257)}),
        ("source", {"source": "x" * 1025}),
        ("key", {"key": ""}),
        ("key", {"key": "k" * 257}),
        ("created_at", {"created_at": "yesterday"}),
        ("created_at", {"created_at": 5}),
        ("pinned", {"pinned": 1}),
        ("sensitive", {"sensitive": "yes"}),
        ("metadata", {"metadata": [1]}),
        ("metadata", {"metadata": {1: "x"}}),
        ("metadata", {"metadata": {"x": float("inf")}}),
        ("metadata", {"metadata": {"x": object()}}),
        ("metadata", {"metadata": {"x": 2**63}}),
        ("metadata", {"metadata": {"x": "a\0"}}),
        ("metadata", {"metadata": {"\udfff": "x"}}),
        ("metadata", {"metadata": {"x": "y" * (64 * 1024)}}),
        ("content", {"content": "x" * (1024 * 1024 - 16) + " ssn 078-05-1120"}),
        ("tags", {"tags": ["x" * 112 + " ssn 078-05-1120"]}),
    ],
)
def test_each_bad_field_is_named(field: str, fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput) as caught:
        made(**fields)
    assert caught.value.field == field


@given(st.text(max_size=8))
def test_a_type_that_is_taken_is_taken_again(text: str) -> None:
    """What a store holds comes back through an export."""
    try:
        kept = made(type=text).type
    except InvalidInput:
        return
    assert made(type=kept).type == kept


def test_metadata_may_be_eight_deep_and_no_deeper() -> None:
    nested: Any = "leaf"
    for _ in range(7):
        nested = {"x": nested}
    assert made(metadata={"x": nested}).metadata == {"x": nested}
    for deeper in ({"x": {"x": nested}}, {"x": [nested]}):
        with pytest.raises(InvalidInput, match="deeply"):
            made(metadata=deeper)


def test_limits_are_inclusive() -> None:
    policy = WritePolicy()
    memory = made(
        "x" * policy.content_bytes, tags=[f"{n:03}" + "t" * 125 for n in range(64)], key="k" * 256, type="t" * 64
    )
    assert len(memory.content) == 1024 * 1024
    assert len(memory.tags) == 64


@given(st.text(min_size=1, max_size=60).filter(lambda text: text.strip() and "\0" not in text))
def test_the_text_is_kept_byte_by_byte(text: str) -> None:
    policy = WritePolicy(secrets="allow")
    try:
        text.encode()
    except UnicodeEncodeError:
        return
    assert to_memory(Draft(text), id="m1", now=NOW, policy=policy)[0].content == text


def test_defaults() -> None:
    memory = made()
    assert (memory.type, memory.tags, memory.confidence, memory.importance) == ("fact", (), 0.8, 0.5)
    assert memory.created_at == memory.updated_at == memory.accessed_at == NOW.replace(microsecond=123000)
    assert (memory.access_count, memory.version, memory.metadata) == (0, 1, {})


@pytest.mark.covers("two-stage.boost")
def test_importance_may_be_a_word_and_high_counts_as_high() -> None:
    assert made(importance="High").importance >= 0.8
    assert made(importance="medium").importance == 0.5
    assert made(importance="low").importance < 0.5


@pytest.mark.covers("budget.types")
def test_any_word_is_a_type_in_lower_case() -> None:
    for given_type in ("lesson", "decision", "gotcha", "pattern", "preference", "fact", "episode"):
        assert made(type=given_type).type == given_type
    assert made(type=" Runbook-2 ").type == "runbook-2"


def test_tags_are_trimmed_and_kept_once_in_order() -> None:
    assert made(tags=[" db ", "infra", "db"]).tags == ("db", "infra")


def test_a_memory_of_the_past_was_last_seen_then_and_one_of_the_future_now() -> None:
    past = NOW - timedelta(days=3)
    assert made(created_at=past).accessed_at == made(created_at=past).created_at
    assert made(created_at=NOW + timedelta(days=3)).accessed_at == NOW.replace(microsecond=123000)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2026-05-01", datetime(2026, 5, 1, tzinfo=UTC)),
        ("2026-05-01T12:00:00Z", datetime(2026, 5, 1, 12, tzinfo=UTC)),
        ("2026-05-01T12:00:00.9999+02:00", datetime(2026, 5, 1, 10, 0, 0, 999000, tzinfo=UTC)),
        (datetime(2026, 5, 1, 12), datetime(2026, 5, 1, 12, tzinfo=UTC)),
        (datetime(2026, 5, 1, 12, tzinfo=timezone(timedelta(hours=-5))), datetime(2026, 5, 1, 17, tzinfo=UTC)),
    ],
)
def test_times_become_utc_with_milliseconds(value: Any, expected: datetime) -> None:
    assert as_moment(value) == expected
    assert as_moment(value).tzinfo is UTC


@pytest.mark.parametrize("value", ["2024", "2024-05"])
def test_a_year_and_a_month_are_times_as_they_are_in_a_query(value: str) -> None:
    """`--after 2024-05` means what `after:2024-05` means: ISO 8601 knows dates of less precision."""
    assert as_moment(value) == moment(value)


@pytest.mark.parametrize("value", ["24", "2024-5", "2024-13", "20240", "May 2024", "", "2024-05-"])
def test_what_is_no_iso_8601_is_no_time(value: str) -> None:
    with pytest.raises(InvalidInput, match="not a time"):
        as_moment(value)


def test_a_time_outside_the_calendar_is_refused() -> None:
    with pytest.raises(InvalidInput, match="not a time"):
        as_moment(datetime.max.replace(tzinfo=timezone(timedelta(hours=-5))))
