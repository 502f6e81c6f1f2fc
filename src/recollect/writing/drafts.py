"""What a caller hands in, and how it becomes a Memory: every field checked, bounded and in its one stored form."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, cast

from recollect.domain.errors import InvalidInput
from recollect.domain.memory import MAX_TAG_BYTES, MAX_TAGS, TYPE, Memory, Scope
from recollect.stages import fields, secrets, similarity
from recollect.stages.merging import DEFAULT_IMPORTANCE, IMPORTANCE_WORDS
from recollect.writing.metadata import checked_metadata

NAMESPACE = re.compile(r"[a-z0-9][a-z0-9._/-]{0,127}")


@dataclass(frozen=True, slots=True)
class WritePolicy:
    """What may be written, and what happens to duplicates and secrets."""

    dedupe: bool = True
    secrets: secrets.Mode = "redact"
    overlap: float = similarity.OVERLAP
    cosine: float = similarity.COSINE
    content_bytes: int = 1024 * 1024
    tags_limit: int = MAX_TAGS
    tag_bytes: int = MAX_TAG_BYTES
    metadata_bytes: int = 64 * 1024
    metadata_depth: int = 8
    name_bytes: int = 256
    """Of a key, a project, a session."""
    source_bytes: int = 1024


@dataclass(frozen=True, slots=True)
class Draft:
    """A memory that is not yet one: no id, nothing checked. The fields mean what they mean in a `Memory`."""

    content: str
    """Up to 1 MiB; a secret in it (a token, a password) is replaced by a mark."""
    type: str = "fact"
    """One word: lesson, decision, gotcha, pattern, preference, fact, episode, or your own."""
    tags: Iterable[str] = ()
    """Up to 64; they are searched like the text."""
    confidence: float = 0.8
    importance: float | str = DEFAULT_IMPORTANCE
    """0 to 1, or high, medium, low."""
    scope: Scope = field(default_factory=Scope)
    source: str = ""
    key: str | None = None
    """A second write with the same key changes nothing."""
    created_at: datetime | str | None = None
    """When it happened, if that is not now."""
    pinned: bool = False
    sensitive: bool = False
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """A JSON object of up to 64 KiB. It is not searched, but `title` says what the memory is about."""
    captured: bool = False
    """It comes from an import or an agent's output, not from somebody who asked for it by name. What was forgotten
    stays forgotten then, whereas an explicit remember brings it back."""


def to_memory(draft: Draft, *, id: str, now: datetime, policy: WritePolicy) -> tuple[Memory, tuple[str, ...]]:
    """The memory that a draft describes, and the kinds of secrets that were hidden in it. InvalidInput otherwise."""
    if not isinstance(draft, Draft):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput("a draft must be a Draft", 'such as recollect.Draft("the text")', "content")
    texts = _texts(policy, draft.content, draft.source, draft.tags, draft.metadata)
    key = None if draft.key is None else checked_text(draft.key, "key", policy.name_bytes, blank=False)
    scope, type, moment = checked_scope(draft.scope, policy), checked_type(draft.type), as_moment(now)
    kinds: tuple[str, ...] = ()
    if policy.secrets != "allow":
        clean, kinds = secrets.redact_json(texts)
        if kinds and policy.secrets == "reject":
            raise InvalidInput(f"it holds a secret ({', '.join(kinds)})", "remove it, or store it redacted", "content")
        if kinds:  # what stands in place of a secret may be longer than it was
            texts = _texts(policy, *clean)
        if key is not None and secrets.find(key):
            raise InvalidInput("the key looks like a secret", "use a key that says nothing, such as a hash", "key")
        _require_no_secret(type=draft.type, project=draft.scope.project, session=draft.scope.session)
    created_at = moment if draft.created_at is None else as_moment(draft.created_at, "created_at")
    content, source, tags, metadata = texts
    memory = Memory(
        id=id,
        content=content,
        type=type,
        tags=tags,
        confidence=_share(draft.confidence, "confidence"),
        importance=_importance(draft.importance),
        scope=scope,
        source=source,
        key=key,
        created_at=created_at,
        updated_at=moment,
        accessed_at=min(created_at, moment),
        pinned=_flag(draft.pinned, "pinned"),
        sensitive=_flag(draft.sensitive, "sensitive"),
        metadata=metadata,
    )
    return memory, kinds


def _texts(
    policy: WritePolicy, content: Any, source: Any, tags: Any, metadata: Any
) -> tuple[str, str, tuple[str, ...], dict[str, Any]]:
    """What may hold a secret, each within its limits."""
    return (
        checked_text(content, "content", policy.content_bytes, blank=False, lines=True),
        checked_text(source, "source", policy.source_bytes),
        _tags(tags, policy),
        checked_metadata(metadata, policy.metadata_bytes, policy.metadata_depth),
    )


def _require_no_secret(type: str, project: str | None, session: str | None) -> None:
    """Names are refused like keys: with a mark in the place of a part of it a name would be another one."""
    for place, name in (("type", type), ("scope.project", project), ("scope.session", session)):
        if name is not None and _names_a_secret(name):
            raise InvalidInput(f"the {place.removeprefix('scope.')} looks like a secret", "choose another name", place)


_names_a_secret = lru_cache(maxsize=256)(secrets.names_a_secret)  # thousands of memories share one project


def as_moment(value: datetime | str, field: str = "time") -> datetime:
    """A datetime or ISO 8601 text in UTC, cut to milliseconds; without a zone it is taken as UTC, and a year or a month
    as its first moment."""
    hint = "write it like 2026-05-01T12:00:00Z"
    try:
        given = fields.moment(value) if isinstance(value, str) else value
        if given is None:
            raise ValueError(value)
        moment = given.replace(tzinfo=UTC) if given.tzinfo is None else given.astimezone(UTC)
        return moment.replace(microsecond=moment.microsecond // 1000 * 1000)
    except (ValueError, OverflowError, AttributeError, TypeError) as error:
        raise InvalidInput(f"{str(value)[:40]!r} is not a time", hint, field) from error


def this_moment() -> datetime:
    return datetime.now(UTC)


def as_asked(value: datetime | str | None, field: str = "now") -> datetime:
    """The same in the zone it was given in: "yesterday" is a day of whoever asks. None: now, in this machine's."""
    if value is None:
        return this_moment().astimezone()
    moment = as_moment(value, field)
    try:
        zone = (datetime.fromisoformat(value) if isinstance(value, str) else value).tzinfo
    except ValueError:  # a year or a month alone
        zone = None
    return moment.astimezone(zone or UTC)


def checked_text(value: Any, field: str, limit_bytes: int, *, blank: bool = True, lines: bool = False) -> str:
    """The text exactly as given, or InvalidInput: NUL and lone surrogates cannot be stored, and all has a limit."""
    if not isinstance(value, str):
        raise InvalidInput(f"{field} must be text, not {type(value).__name__}", "give a string", field)
    if not blank and not value.strip():
        raise InvalidInput(f"{field} is empty", "give some text or leave it out", field)
    try:
        size = len(value.encode())
    except UnicodeEncodeError as error:
        raise InvalidInput(f"{field} holds half of a surrogate pair", "send valid Unicode", field) from error
    if size > limit_bytes:
        raise InvalidInput(f"{field} has {size} bytes, more than {limit_bytes}", "split or shorten it", field)
    if "\0" in value:
        raise InvalidInput(f"{field} holds a NUL character", "remove it", field)
    if not lines and not value.isprintable() and any(unicodedata.category(character) == "Cc" for character in value):
        raise InvalidInput(f"{field} holds a control character", "keep it to one line of plain text", field)
    return value


def checked_type(value: Any) -> str:
    """Any short word, in lower case."""
    word = value.strip().lower() if isinstance(value, str) else ""
    if not TYPE.fullmatch(word):
        hint = "one word of up to 64 letters, digits, dots, hyphens or underscores, such as fact"
        raise InvalidInput(f"{str(value)[:80]!r} is not a type", hint, "type")
    return word


def checked_scope(scope: Any, policy: WritePolicy) -> Scope:
    """The scope, if its namespace follows the grammar and its names are not too long."""
    if not isinstance(scope, Scope):
        raise InvalidInput("scope must be a Scope", 'such as Scope(project="shop")', "scope")
    if not isinstance(scope.namespace, str) or not NAMESPACE.fullmatch(scope.namespace):  # pyright: ignore[reportUnnecessaryIsInstance]
        hint = "up to 128 of a-z 0-9 . _ / - with a letter or digit first"
        raise InvalidInput(f"{str(scope.namespace)[:140]!r} is not a namespace", hint, "scope.namespace")
    for name, value in (("scope.project", scope.project), ("scope.session", scope.session)):
        if value is not None:
            checked_text(value, name, policy.name_bytes, blank=False)
    return scope


def _tags(values: Any, policy: WritePolicy) -> tuple[str, ...]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InvalidInput("tags must be a list of texts", 'such as ["db", "infra"]', "tags")
    given = cast(Iterable[Any], values)
    tags = [checked_text(tag, "tags", policy.tag_bytes, blank=False).strip() for tag in given]
    kept = tuple(dict.fromkeys(tags))
    if len(kept) > policy.tags_limit:
        raise InvalidInput(f"{len(kept)} tags are more than {policy.tags_limit}", "keep the telling ones", "tags")
    return kept


def _share(value: Any, field: str) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 <= value <= 1:
        raise InvalidInput(f"{field} must lie between 0 and 1, not {str(value)[:40]}", "0.8 is usual", field)
    return float(value)


def _importance(value: Any) -> float:
    if isinstance(value, str):
        word = value.strip().lower()
        if word not in IMPORTANCE_WORDS:
            raise InvalidInput(f"{value[:40]!r} is no importance", "high, medium, low, or 0 to 1", "importance")
        return IMPORTANCE_WORDS[word]
    return _share(value, "importance")


def _flag(value: Any, field: str) -> bool:
    if not isinstance(value, bool):
        raise InvalidInput(f"{field} must be true or false", "", field)
    return value
