"""update, forget, link: compare-and-set, all or nothing, no circles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from recollect.domain.changes import Put
from recollect.domain.errors import Conflict, InvalidInput, NotFound
from recollect.domain.memory import LINK_TYPES, Memory, Receipt, Scope
from recollect.ports import Store
from recollect.writing import WritePolicy, forget, link
from recollect.writing import update as change

NOW = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)
Remember = Callable[..., Receipt]


def update(store: Store, id: str, **changes: Any) -> Memory:
    return change(store, id, now=LATER, policy=WritePolicy(), **changes)


def get(store: Store, id: str) -> Memory:
    return store.records.fetch([id])[0]


def test_only_the_given_fields_change(store: Store, put: Remember) -> None:
    put("old text", tags=["a"], metadata={"x": 1}, key="k", confidence=0.3, created_at="2026-01-01")
    before = get(store, "m001")
    changed = update(store, "m001", content="new text", importance="high", pinned=True)
    assert changed == get(store, "m001")
    assert changed == replace(before, content="new text", importance=0.9, pinned=True, updated_at=LATER, version=2)


def test_fields_can_be_emptied(store: Store, put: Remember) -> None:
    put("text", tags=["a"], key="k", metadata={"x": 1}, scope=Scope(project="p", session="s"))
    changed = update(store, "m001", key=None, tags=(), metadata={}, scope=Scope())
    assert (changed.key, changed.tags, changed.metadata, changed.scope) == (None, (), {}, Scope())


def test_no_change_is_no_write(store: Store, put: Remember) -> None:
    put("text")
    assert update(store, "m001", content="text", confidence=0.8).version == 1
    assert get(store, "m001").updated_at == NOW


def test_the_new_text_is_what_is_found(store: Store, put: Remember) -> None:
    put("kubernetes cluster")
    update(store, "m001", content="nomad cluster")
    assert store.text is not None
    assert store.text.frequencies(["kubernet", "nomad"]) == [0, 1]


def test_versions_guard_against_lost_updates(store: Store, put: Remember) -> None:
    put("text")
    update(store, "m001", tags=["a"], version=1)
    with pytest.raises(Conflict) as caught:
        update(store, "m001", tags=["b"], version=1)
    assert caught.value.existing_id == "m001"
    assert get(store, "m001").tags == ("a",)


def test_an_update_does_not_retry_over_somebody_elses(store: Store, put: Remember) -> None:
    put("text")
    stale = get(store, "m001")
    store.records.write([Put(replace(stale, tags=("theirs",)), expected_version=1)])

    class Stale:
        def fetch(self, ids: Any) -> list[Memory]:
            return [stale]

        def write(self, changes: Any) -> None:
            store.records.write(changes)

    with pytest.raises(Conflict):
        update(replace(store, records=Stale()), "m001", tags=["ours"])  # pyright: ignore[reportArgumentType]
    assert get(store, "m001").tags == ("theirs",)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"content": ""}, "content"),
        ({"confidence": 3}, "confidence"),
        ({"colour": "red"}, "colour"),
        ({"captured": True}, "captured"),
        ({"scope": Scope(namespace="other")}, "scope.namespace"),
    ],
)
def test_bad_changes_change_nothing(store: Store, put: Remember, changes: dict[str, Any], field: str) -> None:
    put("text")
    before = get(store, "m001")
    with pytest.raises(InvalidInput) as caught:
        update(store, "m001", **changes)
    assert caught.value.field == field
    assert get(store, "m001") == before


def test_a_secret_does_not_enter_by_update(store: Store, put: Remember) -> None:
    put("text")
    assert "ghp_" not in update(store, "m001", content="token ghp_" + "a1B2c3D4e5F6" * 3).content


def test_a_secret_that_was_allowed_does_not_block_other_changes(store: Store, put: Remember) -> None:
    put("token ghp_" + "a1B2c3D4e5F6" * 3, WritePolicy(secrets="allow"))
    assert change(store, "m001", now=LATER, policy=WritePolicy(secrets="reject"), pinned=True).pinned


def test_a_name_that_was_allowed_does_not_block_other_changes(store: Store, put: Remember) -> None:
    named = Scope(project="ghp_" + "a1B2c3D4e5F6" * 3)
    put("text", WritePolicy(secrets="allow"), scope=named)
    assert update(store, "m001", pinned=True).scope == named
    with pytest.raises(InvalidInput):
        update(store, "m001", scope=Scope(session=named.project))


def test_a_forgotten_text_may_be_written_by_hand(store: Store, put: Remember) -> None:
    put("gone for good")
    put("another text")
    forget(store, ["m001"])
    assert update(store, "m002", content="gone for good").content == "gone for good"


def test_what_is_not_there_cannot_be_changed(store: Store) -> None:
    with pytest.raises(NotFound):
        update(store, "nobody", tags=["a"])


@pytest.mark.covers("more.forget")
def test_forget_is_all_or_nothing(store: Store, put: Remember) -> None:
    put("one")
    put("two")
    with pytest.raises(NotFound):
        forget(store, ["m001", "nobody"])
    assert len(store.records.fetch(["m001", "m002"])) == 2
    assert forget(store, ["m001", "m002", "m001"]) == ["m001", "m002"]
    assert store.records.fetch(["m001", "m002"]) == []
    assert forget(store, []) == []
    with pytest.raises(InvalidInput):
        forget(store, [str(number) for number in range(1001)])


@pytest.mark.covers("prior.links")
def test_links_of_every_type_can_be_made_twice(store: Store, put: Remember) -> None:
    put("one")
    put("two")
    assert store.links is not None
    for type in LINK_TYPES:
        made = link(store, "m001", type, "m002", now=NOW)
        link(store, "m001", type, "m002", now=LATER)
        assert made in store.links.links(["m001"])
    assert len(store.links.links(["m001"])) == len(LINK_TYPES)


@pytest.mark.covers("prior.links")
def test_bad_links_are_refused(store: Store, put: Remember) -> None:
    put("one")
    put("two", scope=Scope(namespace="other"))
    with pytest.raises(InvalidInput) as caught:
        link(store, "m001", "likes", "m002", now=NOW)
    assert caught.value.field == "type"
    with pytest.raises(InvalidInput):
        link(store, "m001", "see-also", "m001", now=NOW)
    for target in ("nobody", "m002"):
        with pytest.raises(NotFound):
            link(store, "m001", "see-also", target, now=NOW)


@pytest.mark.covers("prior.links")
def test_supersedes_never_closes_a_circle(store: Store, put: Remember) -> None:
    for text in ("one", "two", "three"):
        put(text)
    link(store, "m003", "supersedes", "m002", now=NOW)
    link(store, "m002", "supersedes", "m001", now=NOW)
    for source, target in (("m002", "m003"), ("m001", "m003")):
        with pytest.raises(InvalidInput, match="already") as refused:
            link(store, source, "supersedes", target, now=NOW)
        assert "remove" not in refused.value.hint, "a step that nobody can take: links stay with their memories"
    link(store, "m001", "see-also", "m003", now=NOW)
    link(store, "m003", "supersedes", "m001", now=NOW)
