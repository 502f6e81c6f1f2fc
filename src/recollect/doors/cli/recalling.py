"""recall, show and list: everything that reads memories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from recollect.domain.pages import next_page
from recollect.domain.question import Mode, SortBy
from recollect.domain.times import day
from recollect.doors.cli import options, showing
from recollect.doors.cli.routing import routed
from recollect.doors.cli.session import Session, current, one_line, printable
from recollect.doors.prompting import with_full_block
from recollect.doors.wire import expanded_to_dict, memory_to_dict, recall_to_dict

if TYPE_CHECKING:
    from recollect.domain.memory import Memory
    from recollect.engine import Expanded

Query = Annotated[
    list[str], typer.Argument(metavar="QUERY…", help='Words, "phrases", prefix*, AND OR NOT, type: tag: before: …')
]
Exclude = Annotated[
    list[str] | None, typer.Option("--exclude", metavar="ID", help="Leave this memory out; repeatable.")
]
Rerank = Annotated[bool | None, typer.Option("--rerank/--no-rerank", help="Let a model judge the head of the list.")]
Alias = Annotated[
    list[str] | None, typer.Option("--alias", metavar="WORD=OTHER", help="Also look for another word; repeatable.")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="OPTION=VALUE", help="One option of the profile, as legs.lexical.weight=0.5; repeatable."
    ),
]


def register(app: typer.Typer) -> None:
    app.command(
        "recall",
        rich_help_panel="Read",
        epilog="Examples: recollect recall 'which database do we run?' --explain · "
        "recollect recall 'deploy* type:gotcha' --profile retry-ladder · "
        "recollect recall tests --set legs.lexical.weight=0.5",
    )(recall)
    app.command("show", rich_help_panel="Read", epilog="Example: recollect show 01jv3m8x0c9k4q2r5t7w9yabcd")(show)
    app.command(
        "list", rich_help_panel="Read", epilog="Example: recollect list --type decision --project shop --limit 20"
    )(list_memories)


def recall(
    ctx: typer.Context,
    query: Query,
    profile: options.Profile = None,
    limit: Annotated[int | None, typer.Option("--limit", "-n", min=1, max=200, help="How many at most.")] = None,
    mode: Annotated[Mode, typer.Option(help="Words: bm25; meaning: semantic; both: hybrid.")] = "auto",
    type: options.Types = None,
    tag: options.TagFilter = None,
    project: options.Project = None,
    session: options.SessionName = None,
    namespace: options.Namespace = options.NAMESPACE,
    after: options.After = None,
    before: options.Before = None,
    now: options.Now = None,
    exclude: Exclude = None,
    budget_tokens: Annotated[int | None, typer.Option(min=1, help="As many as fit into so many tokens.")] = None,
    sort_by: Annotated[SortBy, typer.Option(help="What decides the order.")] = "relevance",
    rerank: Rerank = None,
    alias: Alias = None,
    set_: SetOption = None,
    used: Annotated[bool, typer.Option("--used", help="Count the answer as used, not only as seen.")] = False,
    explain: Annotated[bool, typer.Option("--explain", "-e", help="Draw what each list and prior did.")] = False,
    render: Annotated[bool, typer.Option("--render", help="Print the block for a prompt (nothing sensitive).")] = False,
    direct: Annotated[bool, typer.Option("--direct", help="Open the store even if a daemon could answer.")] = False,
) -> None:
    """Find the memories that matter for a question, best first, with the reason for every rank.

    A running daemon that serves the same store with the same settings is asked first: it has everything ready.
    """
    run = current(ctx)
    asked: dict[str, Any] = {
        "profile": profile, "limit": limit, "mode": mode, "type": type or None, "tags": tuple(tag or ()),
        "scope": options.scope_of(namespace, project, session), "exclude": tuple(exclude or ()), "after": after,
        "before": before, "now": now, "budget_tokens": budget_tokens, "sort_by": sort_by, "rerank": rerank,
        "aliases": _aliases(alias), "explicit": used,
        "options": {name: options.value_of(value) for name, value in options.pairs(set_, "--set")},
    }  # fmt: skip
    if not direct and routed(run, options.words_of(query), asked, explain=explain, render=render):
        return
    with run.engine() as engine:
        answer = engine.recall(options.words_of(query), **asked)
        answer = with_full_block(engine, answer, asked) if render else answer

        def texts(ids: Sequence[str]) -> Mapping[str, str]:
            return {one.id: one.content for one in engine.store.records.fetch(ids)}

        document = recall_to_dict(answer, rendered=render)
        showing.show(run, answer, document, texts, explain=explain, render=render, now=now)
        if not (answer.hits or run.json):
            run.note_waiting(engine)


def _aliases(given: list[str] | None) -> dict[str, str | list[str]]:
    """The same word given twice has two aliases."""
    found: dict[str, list[str]] = {}
    for word, other in options.pairs(given, "--alias"):
        found.setdefault(word, []).append(other)
    return cast(dict[str, str | list[str]], found)


def show(
    ctx: typer.Context, id: Annotated[str, typer.Argument(metavar="ID", help="From recall, list or remember.")]
) -> None:
    """One memory with all its fields, its links and what they lead to. This counts as using it."""
    run = current(ctx)
    with run.engine() as engine:
        found = engine.expand(id)
        if run.json:
            run.emit(expanded_to_dict(found))
            return
        _show_expanded(run, found)


def _show_expanded(run: Session, found: Expanded) -> None:
    document = memory_to_dict(found.memory)
    run.show(printable(document.pop("content")), "")
    width = max(len(name) for name in document)
    for name, value in document.items():
        if value not in (None, "", [], {}) or name == "pinned":
            shown = ", ".join(value) if isinstance(value, list) else _fields(value)  # pyright: ignore
            if shown:  # a memory that belongs to no project has nothing to say of its scope
                run.show(f"{name:<{width}}  {one_line(shown)}")
    texts = {one.id: one_line(one.content, 80) for one in found.neighbours}
    for link in found.links:
        outgoing = link.source == found.memory.id
        other = link.target if outgoing else link.source
        arrow = f"{link.type} →" if outgoing else f"← {link.type}"
        run.show(f"{arrow:<{width}}  {other}  {texts.get(other, '')}")


def _fields(value: Any) -> str:
    if isinstance(value, dict):
        table = cast(dict[str, Any], value)
        return ", ".join(f"{name}={one}" for name, one in table.items() if one is not None)
    return str(value)


def list_memories(
    ctx: typer.Context,
    type: options.Types = None,
    tag: options.TagFilter = None,
    project: options.Project = None,
    session: options.SessionName = None,
    namespace: options.Namespace = options.NAMESPACE,
    after: options.After = None,
    before: options.Before = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=1000, help="How many at most.")] = 50,
    cursor: Annotated[
        str | None, typer.Option(metavar="CURSOR", help="Go on behind this place: next_cursor, or an id.")
    ] = None,
) -> None:
    """Memories, newest first, a page at a time."""
    run = current(ctx)
    asked: dict[str, Any] = {
        "scope": options.scope_of(namespace, project, session),
        "type": type or None,
        "tags": tuple(tag or ()),
        "after": after,
        "before": before,
    }
    with run.engine() as engine:
        page = engine.list(limit=limit, cursor=cursor, **asked)
        last = page[-1] if len(page) == limit else None
        following = next_page(last) if last is not None and engine.list(limit=1, cursor=last, **asked) else None
    if run.json:
        run.emit({"memories": [memory_to_dict(one) for one in page], "next_cursor": following})
        return
    run.table(("id", "created", "type", "project", "content"), [_row(one, run) for one in page], flexible="content")
    if following:
        run.note(f"more: --cursor {following}")
    elif not page:
        run.note("no memories here")


def _row(memory: Memory, run: Session) -> tuple[str, ...]:
    length = 160 if run.out.is_terminal else 0
    pinned = "📌 " if memory.pinned and run.out.is_terminal else ""
    return (
        memory.id,
        day(memory.created_at),
        memory.type,
        memory.scope.project or "",
        pinned + one_line(memory.content, length),
    )
