"""Field filters written in a query (`type:gotcha -tag:old after:2024-05`) merged into the caller's Filter.

They only ever narrow: what the caller restricted stays restricted, and a field that contradicts it (another project,
a session outside the given ones) leaves a filter that lets nothing through, for an empty answer is safer than one
from a scope that nobody granted. Several values of `type:` or `session:` are alternatives, several tags must all be
there. Dates are ISO 8601 in UTC unless they carry an offset; `2024` and `2024-05` mean their first moment; `after:`
includes it, `before:` does not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from recollect.domain.question import Filter

FIELD = re.compile(
    r'(-?)(types?|tags?|sessions?|projects?|before|after):(?:"([^"]*)"|([^\s"()]+))(?=[\s()]|$)', re.IGNORECASE
)
_YEAR_OR_MONTH = re.compile(r"(\d{4})(?:-(\d{2}))?")
_NEGATABLE = ("type", "tag")

# More values than this in one query are not a filter that somebody wrote.
MAX_VALUES = 64


@dataclass(frozen=True, slots=True)
class Field:
    """One `name:value` of a query, or its negation."""

    name: str
    value: str
    negated: bool = False


def is_valid(field: Field) -> bool:
    """Whether the field means something: a value is there, a date is a date, and only types and tags are negated."""
    if field.negated and field.name not in _NEGATABLE:
        return False
    if field.name in ("before", "after"):
        return moment(field.value) is not None
    return bool(_values(field))


def narrow(filter: Filter, fields: Sequence[Field]) -> Filter:
    """The caller's filter with the (valid) fields of the query added; never wider than it was."""
    if not fields:
        return filter
    types, sessions, projects = (_wanted(fields, name) for name in ("type", "session", "project"))
    project = filter.project
    nothing = False
    if projects:
        nothing = len(set(projects)) > 1 or filter.project not in (None, projects[0])
        project = projects[0] if filter.project is None else filter.project
    both_types = _intersection(filter.types, types)
    both_sessions = _intersection(filter.sessions, sessions)
    nothing = nothing or (bool(types) and not both_types) or (bool(sessions) and not both_sessions)
    return replace(
        filter,
        project=project,
        types=both_types,
        sessions=both_sessions,
        tags=_union(filter.tags, _wanted(fields, "tag")),
        without_types=_union(filter.without_types, _wanted(fields, "type", negated=True)),
        without_tags=_union(filter.without_tags, _wanted(fields, "tag", negated=True)),
        after=_latest(filter.after, _moments(fields, "after")),
        before=_earliest(filter.before, _moments(fields, "before")),
        only=frozenset() if nothing else filter.only,
    )


def moment(text: str) -> datetime | None:
    """The first moment of an ISO 8601 date, month or year, or the moment of a full time stamp, in UTC."""
    try:
        if short := _YEAR_OR_MONTH.fullmatch(text):
            return datetime(int(short[1]), int(short[2] or 1), 1, tzinfo=UTC)
        found = datetime.fromisoformat(text)
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _values(field: Field) -> list[str]:
    return [value for part in field.value.split(",") if (value := part.strip())]


def _wanted(fields: Sequence[Field], name: str, *, negated: bool = False) -> list[str]:
    chosen = [field for field in fields if field.name == name and field.negated == negated]
    return list(dict.fromkeys(value for field in chosen for value in _values(field)))[:MAX_VALUES]


def _moments(fields: Sequence[Field], name: str) -> list[datetime]:
    found = [moment(field.value) for field in fields if field.name == name]
    return [one for one in found if one is not None]


def _intersection(given: tuple[str, ...], wanted: list[str]) -> tuple[str, ...]:
    """What both allow, in the caller's order; an empty side does not restrict."""
    if not wanted:
        return given
    return tuple(value for value in given if value in wanted) if given else tuple(wanted)


def _union(given: tuple[str, ...], more: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*given, *more)))


def _latest(given: datetime | None, found: list[datetime]) -> datetime | None:
    return max([*([given] if given else []), *found], default=None)


def _earliest(given: datetime | None, found: list[datetime]) -> datetime | None:
    return min([*([given] if given else []), *found], default=None)
