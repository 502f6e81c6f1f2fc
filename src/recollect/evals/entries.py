"""What an entry of a data set says: fields by the names that published sets give them, in `metadata` or beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, cast

from recollect.evals.moments import moment

Entry = Mapping[str, Any]

DOCUMENT_TEXT = ("text", "contents", "content")
QUERY_TEXT = ("text", "query", "question")
NAMESPACE = "namespace"
SESSION = ("session", "session_id", "session_number", "session_num")
TOLD = "created_at"
MADE_AT = (TOLD, "timestamp", "date_time", "datetime", "date", "time", "session_date", "session_date_time")
ASKED_AT = ("question_date", "asked_at", TOLD)
STRATUM = ("category", "stratum", "question_type")
UNANSWERABLE = ("abstention", "is_abstention", "unanswerable", "is_unanswerable", "is_impossible")
ANSWERABLE = ("answerable", "is_answerable")
UNANSWERABLE_STRATA = frozenset({"abstention", "unanswerable"})
ABSTENTION_ID = "_abs"
"""How ids of LongMemEval's questions without an answer end."""
ADVERSARIAL = "adversarial"
ADVERSARIAL_ANSWER = "adversarial_answer"
"""What LoCoMo, whose categories are numbers, gives those alone."""
OTHERS = ("speaker", "role", "type")
BESIDE = frozenset(
    {NAMESPACE, *SESSION, *MADE_AT, *ASKED_AT, *STRATUM, *UNANSWERABLE, *ANSWERABLE, ADVERSARIAL_ANSWER, *OTHERS}
)
QUERY = ("query", "query-id", "query_id", "question_id", "qid", "_id", "id")
CANDIDATES = (
    "sessions", "documents", "docs", "candidates", "session_ids", "document_ids", "doc_ids", "corpus_ids", "corpus-ids",
    "haystack_session_ids", "haystack",
)  # fmt: skip
HAYSTACK = ("haystack_session_ids", "haystack")
"""The same in a question's own metadata, where `sessions` could be anything."""
YES, NO = ("true", "yes", "1"), ("false", "no", "0")


def metadata(entry: Entry) -> dict[str, Any]:
    """Everything under `metadata`, and what is known of the fields beside it."""
    value = entry.get("metadata")
    inner = cast(dict[str, Any], value) if isinstance(value, dict) else {}
    return {**{name: value for name, value in entry.items() if name in BESIDE}, **inner}


def id_of(entry: Entry) -> str:
    value = entry.get("_id", entry.get("id"))
    return "" if value is None else str(value).strip()


def text(entry: Entry, names: Sequence[str]) -> str:
    return str(_first(entry, names)[1] or "")


def name(value: Any) -> str | None:
    return None if value is None or value == "" else str(value)


def session(told: Entry) -> tuple[str, str | None]:
    """The field that tells it, and the session."""
    field, value = _first(told, SESSION)
    return field, name(value)


def made_at(told: Entry) -> tuple[str, datetime | None]:
    """The first field with a time that can be read; else the first that is meant as one, and None."""
    given = [field for field in MADE_AT if told.get(field) not in (None, "")]
    for field in given:
        if (found := moment(told[field])) is not None:
            return field, found
    return given[0] if given else TOLD, None


def asked_at(told: Entry) -> tuple[Any, datetime | None]:
    """What tells when a question was asked, and the time."""
    value = next((told[field] for field in ASKED_AT if told.get(field)), None)
    return value, moment(value)


def stratum(told: Entry) -> str | None:
    value = _first(told, STRATUM)[1]
    return None if value is None else str(value)


def is_aside(told: Entry) -> bool:
    return (stratum(told) or "").casefold() == ADVERSARIAL or bool(told.get(ADVERSARIAL_ANSWER))


def is_unanswerable(id: str, told: Entry) -> bool:
    """By a mark; where there is none, by the name of its kind or its id."""
    marks = [*(truth(told.get(field)) for field in UNANSWERABLE)]
    marks += [None if (one := truth(told.get(field))) is None else not one for field in ANSWERABLE]
    if known := [one for one in marks if one is not None]:
        return any(known)
    return (stratum(told) or "").casefold() in UNANSWERABLE_STRATA or id.endswith(ABSTENTION_ID)


def candidates(entry: Entry, fields: Sequence[str] = CANDIDATES) -> list[str] | None:
    """The names in a haystack: ids, or objects with one."""
    found = next((entry[field] for field in fields if isinstance(entry.get(field), list)), None)
    return None if found is None else [*_names(cast(list[Any], found))]


def haystack(entry: Entry) -> tuple[str, list[str]] | None:
    """A line of haystacks.jsonl: the question and what it may find."""
    query, found = _first(entry, QUERY)[1], candidates(entry)
    return None if query is None or found is None else (str(query).strip(), found)


def _names(values: Sequence[Any]) -> Iterator[str]:
    for one in values:
        yield id_of(cast(Entry, one)) if isinstance(one, dict) else str(one).strip()


def _first(entry: Entry, names: Sequence[str]) -> tuple[str, Any]:
    """The first of these fields that says something, and what."""
    return next(((one, entry[one]) for one in names if entry.get(one) not in (None, "")), (names[0], None))


def truth(value: Any) -> bool | None:
    """A mark, however it is written; None where it is none."""
    told = str(value).strip().casefold()
    return True if told in YES else False if told in NO else None
