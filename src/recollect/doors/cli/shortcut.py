"""`recollect recall` asked of a running daemon before the libraries of the command line are loaded.

Most of a short command's time is spent loading what reads its options and draws its output. Here the usual options are
read by hand. Whatever is not understood at once, has no daemon or goes wrong is left to the ordinary command, which
gives the same answer or says what is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from recollect.doors.cli.session import Session, flush, tolerate_poor_terminals

TEXTS = {
    "--profile": "profile", "-P": "profile", "--mode": "mode", "--project": "project", "-p": "project",
    "--session": "session", "--namespace": "namespace", "--after": "after", "--before": "before", "--now": "now",
    "--sort-by": "sort_by", "--store": "store",
}  # fmt: skip
NUMBERS = {"--limit": "limit", "-n": "limit", "--budget-tokens": "budget_tokens"}
LISTS = {"--type": "type", "-t": "type", "--tag": "tags", "--exclude": "exclude"}
SWITCHES = {
    "--rerank": ("rerank", True), "--no-rerank": ("rerank", False), "--used": ("explicit", True),
    "--explain": ("explain", True), "-e": ("explain", True), "--render": ("render", True), "--json": ("json", True),
    "--quiet": ("quiet", True), "-q": ("quiet", True),
}  # fmt: skip


class NotUnderstood(Exception):
    """For the ordinary command to read."""


def recalled(words: Sequence[str]) -> bool:
    """Whether the command was understood and a daemon has answered it."""
    tolerate_poor_terminals()
    try:
        query, given = read(words)
        return _asked(query, given)
    except Exception:  # the ordinary command says it better
        return False


def read(words: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """The query and the options that were given, under the names that the engine knows; else NotUnderstood."""
    query: list[str] = []
    given: dict[str, Any] = {}
    left = iter(words)
    for word in left:
        if not word.startswith("-"):
            query.append(word)
            continue
        name, equals, value = word.partition("=") if word.startswith("--") else (word, "", "")
        if name in SWITCHES and not equals:
            key, value = SWITCHES[name]
            given[key] = value
            continue
        value = value if equals else next(left, "-")
        if value.startswith("-"):
            raise NotUnderstood(word)
        if name in TEXTS:
            given[TEXTS[name]] = value
        elif name in LISTS:
            given.setdefault(LISTS[name], []).append(value)
        elif name in NUMBERS and value.isascii() and value.isdigit():
            given[NUMBERS[name]] = int(value)
        else:
            raise NotUnderstood(word)
    if not query or not _in_range(given):
        raise NotUnderstood
    return " ".join(query), given


def _in_range(given: dict[str, Any]) -> bool:
    """The limits of the ordinary command, which words the refusal."""
    return (
        1 <= given.get("limit", 1) <= 200
        and given.get("budget_tokens", 1) >= 1
        and given.get("mode", "auto") in ("auto", "bm25", "semantic", "hybrid", "hybrid-rerank")
        and given.get("sort_by", "relevance") in ("relevance", "importance", "recency")
    )


def _asked(query: str, given: dict[str, Any]) -> bool:
    from recollect.domain.memory import DEFAULT_NAMESPACE, Scope
    from recollect.doors.cli.routing import routed

    run = Session({name: given.pop(name, None) for name in ("store", "json", "quiet")})
    form = {name: given.pop(name, False) for name in ("explain", "render")}
    place = (given.pop("namespace", DEFAULT_NAMESPACE), given.pop("project", None), given.pop("session", None))
    asked: dict[str, Any] = {
        "profile": None, "limit": None, "mode": "auto", "type": None, "tags": (), "scope": Scope(*place),
        "exclude": (), "after": None, "before": None, "now": None, "budget_tokens": None, "sort_by": "relevance",
        "rerank": None, "aliases": {}, "explicit": False, "options": {}, **given,
    }  # fmt: skip
    answered = routed(run, query, asked, **form)
    if answered:
        flush()
    return answered
