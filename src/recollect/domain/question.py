"""What is asked: the Filter every leg obeys, the Question that travels down the pipeline, and what callers may give."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from recollect.domain.errors import InvalidInput
from recollect.domain.memory import DEFAULT_NAMESPACE, Memory, Scope
from recollect.domain.query import Node
from recollect.domain.times import whole_milliseconds

Mode = Literal["auto", "bm25", "semantic", "hybrid", "hybrid-rerank"]
MODES: tuple[Mode, ...] = ("auto", "bm25", "semantic", "hybrid", "hybrid-rerank")

SortBy = Literal["relevance", "importance", "recency"]
SORTS: tuple[SortBy, ...] = ("relevance", "importance", "recency")

MAX_LIMIT = 200
MAX_PAGE = 1000


@dataclass(frozen=True, slots=True)
class Filter:
    """Which memories may be seen at all. Checked inside every leg, before any limit is applied.

    The namespace must always be equal. Empty tuples and None do not restrict; an empty `only` lets nothing through.
    `tags` must all be present; `types` and `sessions` are alternatives; `without_types` and `without_tags` shut out
    whatever has one of them. Names are compared exactly. `after` is inclusive and `before` exclusive, on created_at,
    both cut down to whole milliseconds as stored times are.
    """

    namespace: str = DEFAULT_NAMESPACE
    project: str | None = None
    sessions: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    without_types: tuple[str, ...] = ()
    without_tags: tuple[str, ...] = ()
    after: datetime | None = None
    before: datetime | None = None
    exclude: frozenset[str] = frozenset()
    only: frozenset[str] | None = None

    def __post_init__(self) -> None:
        """Times are cut down once, not for every memory that is looked at."""
        for name, moment in (("after", self.after), ("before", self.before)):
            if moment is not None:
                object.__setattr__(self, name, whole_milliseconds(moment))

    def allows(self, memory: Memory) -> bool:
        """The meaning of a filter: the memory store asks it, the others compile it."""
        scope = memory.scope
        return (
            scope.namespace == self.namespace
            and (self.project is None or scope.project == self.project)
            and (not self.sessions or scope.session in self.sessions)
            and (not self.types or memory.type in self.types)
            and memory.type not in self.without_types
            and (not self.tags or set(self.tags).issubset(memory.tags))
            and (not self.without_tags or set(self.without_tags).isdisjoint(memory.tags))
            and (self.after is None or memory.created_at >= self.after)
            and (self.before is None or memory.created_at < self.before)
            and memory.id not in self.exclude
            and (self.only is None or memory.id in self.only)
        )


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """A stretch of time that the words of a question point at ("last week"): start inclusive, end exclusive."""

    start: datetime
    end: datetime
    words: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """One recall, parsed: everything the pure stages may know. There is no clock but `now`."""

    text: str
    now: datetime
    filter: Filter = field(default_factory=Filter)
    query: Node | None = None
    unwanted: Node | None = None
    """What was excluded (`-word`, `NOT word`): no memory that matches it is an answer, whichever leg finds it."""
    plain: bool = True
    """No quotes, operators or fields were used: the words may be freely rewritten."""
    bare: bool = True
    """No quotes or operators were used, whatever fields were: nobody has said how the words belong together."""
    words: tuple[str, ...] = ()
    """The words of the query in order, lower-cased, stop words included."""
    limit: int = 5
    unasked: bool = False
    """Nobody asked for this: its answer is put before a model by itself, where nothing is better than noise."""
    prose: bool = False
    """A prompt, and no query: it may be long, and hold code or logs."""
    cut: bool = False
    """It has more words than `query` asks for."""
    mode: Mode = "auto"
    sort_by: SortBy = "relevance"
    budget_tokens: int | None = None
    aliases: tuple[tuple[str, str], ...] = ()
    window: TimeWindow | None = None
    intents: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """What the parser left out because of its bounds, in words, for the trace."""

    @property
    def filters_alone(self) -> bool:
        """Whether fields (and what is to be taken from them) were all that was written, so that there is nothing to
        look for but what they let through."""
        return (self.bare or self.unwanted is not None) and not (self.plain or self.words)


def several(values: Iterable[str], field: str) -> tuple[str, ...]:
    """The texts; a single one is refused, because it would be taken letter by letter."""
    one = values if isinstance(values, str) else "db"
    if isinstance(values, str) or not isinstance(values, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput(f"{field} must be a list of texts", f'such as ["{one[:40]}"]', field)
    found = tuple(values)
    if not all(isinstance(text, str) for text in found):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput(f"{field} must hold texts only", f'such as ["{one[:40]}"]', field)
    return found


def alternatives(values: str | Iterable[str] | None, field: str) -> tuple[str, ...]:
    """One text or several; none does not restrict."""
    return (values,) if isinstance(values, str) else several(values or (), field)


def narrowed(
    *, type: str | Iterable[str] | None, tags: Iterable[str], exclude: Iterable[str] = (),
    only: Iterable[str] | None = None, **more: Any,
) -> Filter:  # fmt: skip
    """A filter from what a caller gives: texts, and lists of them where several are meant."""
    return Filter(
        types=alternatives(type, "type"),
        tags=several(tags, "tags"),
        exclude=frozenset(several(exclude, "exclude")),
        only=None if only is None else frozenset(several(only, "only")),
        **more,
    )


def table(values: Mapping[str, Any] | None, field: str) -> Mapping[str, Any]:
    """The pairs, known by texts; none means none."""
    pairs: Mapping[str, Any] = {} if values is None else values
    if not isinstance(pairs, Mapping) or not all(isinstance(name, str) for name in pairs):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput(f"{field} must be a mapping of texts", f"give {field} as a dictionary", field)
    return pairs


def name_of(value: str, field: str = "id") -> str:
    """The id or the name, which must be a text."""
    if not isinstance(value, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput(f"{field} must be a text", "ids come from recall, list or remember", field)
    return value


def place(scope: Scope | None) -> Scope:
    """The scope, or everything of the default namespace."""
    if scope is not None and not isinstance(scope, Scope):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput("scope must be a Scope", 'such as Scope(project="shop")', "scope")
    where = scope or Scope()
    for name, value in (("namespace", where.namespace), ("project", where.project), ("session", where.session)):
        if not isinstance(value, str) and (value is not None or name == "namespace"):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput(f"the {name} of a scope must be a text", 'such as Scope(session="1")', f"scope.{name}")
    return where


def check_request(query: str, limit: int | None, mode: str, sort_by: str, budget_tokens: int | None) -> None:
    """Refuse what nobody can be asked, before anything is looked for."""
    if not isinstance(query, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput("the query must be a text", "give a string", "query")
    if limit is not None:
        _check_number(limit, MAX_LIMIT, "limit", "leave it out for the profile's own limit")
    if mode not in MODES:
        raise InvalidInput(f"unknown mode {mode!r}", f"allowed: {', '.join(MODES)}", "mode")
    if sort_by not in SORTS:
        raise InvalidInput(f"unknown sort_by {sort_by!r}", f"allowed: {', '.join(SORTS)}", "sort_by")
    if budget_tokens is not None:
        _check_number(budget_tokens, None, "budget_tokens", "leave it out for no budget")


def check_page(limit: int) -> None:
    """Refuse a page that nobody would get as it was asked for."""
    _check_number(limit, MAX_PAGE, "limit", "go on with the last memory as cursor")


def check_amount(limit: int) -> None:
    """Refuse to look at so few memories, or at no number of them."""
    _check_number(limit, None, "limit", "leave it out for the usual number")


def _check_number(value: int, most: int | None, field: str, hint: str) -> None:
    whole = isinstance(value, int) and not isinstance(value, bool)  # pyright: ignore[reportUnnecessaryIsInstance]
    if whole and value >= 1 and (most is None or value <= most):
        return
    wanted = "be a whole number of at least 1" if most is None else f"lie between 1 and {most}"
    raise InvalidInput(f"{field} must {wanted}, not {str(value)[:40]}", hint, field)
