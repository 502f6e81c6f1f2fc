"""Which candidates are returned: redirect ▸ withhold ▸ floor ▸ distinct ▸ top ▸ budget, in the profile's order.

Selector: (candidates, pool, question, **options) -> (kept, dropped). Nothing disappears without a reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Literal

from recollect.domain.memory import Memory
from recollect.domain.profile import Range
from recollect.domain.question import Question
from recollect.domain.recall import Candidate, Dropped, Pool
from recollect.stages import tokens
from recollect.stages.similarity import same_fact

Selected = tuple[list[Candidate], list[Dropped]]
Selector = Callable[..., Selected]
Candidates = Sequence[Candidate]

FOLLOWED = ("supersedes", "resolved-by")
"""The types of links that can change what is selected."""
MAX_CHAIN = 10
MAX_RESOLUTIONS = 3
LEAST_SHARED = 0.3


def redirect(candidates: Candidates, pool: Pool, question: Question) -> Selected:
    """A superseded memory gives its rank to the head of its chain; what it was resolved by is attached."""
    if not pool.links and not question.filter.exclude:
        return list(candidates), []
    kept: list[Candidate] = []
    dropped: list[Dropped] = []
    taken: set[str] = set()
    resolutions = _resolutions(pool)
    superseded = {link.target for link in pool.links if link.type == "supersedes"}
    for one in candidates:
        head = chain_head(one.id, pool) if one.id in superseded else pool.memories[one.id]
        if head.id in question.filter.exclude:
            dropped.append(Dropped(one.id, "redirect", one.score, f"superseded by {head.id}, which is excluded"))
        elif question.filter.only is not None and head.id not in question.filter.only:
            reason = f"superseded by {head.id}, which is not among those asked for"
            dropped.append(Dropped(one.id, "redirect", one.score, reason))
        elif head.id in taken:
            reason = f"superseded by {head.id}" if head.id != one.id else "already returned for what it supersedes"
            dropped.append(Dropped(one.id, "redirect", one.score, reason))
        else:
            taken.add(head.id)
            moved = one if head.id == one.id else one._replace(memory=head, redirected_from=one.id, passage=None)
            resolved = resolutions.get(head.id, ())
            kept.append(moved._replace(resolved_by=resolved) if resolved else moved)
    return kept, dropped


def withhold(candidates: Candidates, pool: Pool, question: Question) -> Selected:
    """What is sensitive is left out, for an answer that a model will read."""
    kept = [one for one in candidates if not one.memory.sensitive]
    dropped = [Dropped(one.id, "withhold", one.score, "sensitive") for one in candidates if one.memory.sensitive]
    return kept, dropped


def floor(
    candidates: Candidates, pool: Pool, question: Question, *, minimum: Annotated[float, Range(0, 1e9)] = 0.0
) -> Selected:
    """Below the minimum is noise, not memory."""
    kept = [one for one in candidates if one.score >= minimum]
    dropped = [Dropped(one.id, "floor", one.score, f"below {minimum:g}") for one in candidates if one.score < minimum]
    return kept, dropped


def distinct(
    candidates: Candidates,
    pool: Pool,
    question: Question,
    *,
    overlap: Annotated[float, Range(0, 1)] = 0.7,
    considered: Annotated[int, Range(1, 200)] = 20,
    latest: bool = False,
) -> Selected:
    """A near-duplicate of a better candidate is skipped. Only the first `considered` are compared, and none behind the
    last that can be returned. latest: where both score the same, the newer one stays."""
    kept: list[Candidate] = []
    dropped: list[Dropped] = []
    bits: dict[str, int] = {}
    looks: list[int] = []
    compared = 0
    for one in candidates[:considered]:
        # A twin with the same score may still take the place of a kept one.
        if kept and len(kept) >= question.limit and one.score < kept[-1].score:
            break
        compared += 1
        look = _look(one.memory.content, bits)
        twin = next((better for better, other in zip(kept, looks) if _alike(one, look, better, other, overlap)), None)
        if twin is None:
            kept.append(one)
            looks.append(look)
            continue
        newer = one.memory.created_at > twin.memory.created_at and one.memory.sensitive == twin.memory.sensitive
        if latest and one.score == twin.score and newer:
            place = kept.index(twin)
            one, twin, kept[place], looks[place] = twin, one, one, look
        dropped.append(Dropped(one.id, "distinct", one.score, f"near-duplicate of {twin.id}"))
    return [*kept, *candidates[compared:]], dropped


def _look(text: str, bits: dict[str, int]) -> int:
    """The words of a text as a set of bits; `bits` gives each word that any of the texts holds its own."""
    look = 0
    for word in text.casefold().split():
        look |= 1 << bits.setdefault(word, len(bits))
    return look


def _alike(one: Candidate, look: int, better: Candidate, other: int, overlap: float) -> bool:
    """Whether two candidates say the same. Texts that hardly share a word are not worth a closer reading, and what is
    sensitive takes nothing away that a model may see."""
    if better.memory.sensitive and not one.memory.sensitive:
        return False
    if (look & other).bit_count() < LEAST_SHARED * (look | other).bit_count():
        return False
    return same_fact(one.memory.content, better.memory.content, overlap)


def top(
    candidates: Candidates, pool: Pool, question: Question, *, most: Annotated[int, Range(1, 1000)] | None = None
) -> Selected:
    """At most as many as asked, and never more than `most`."""
    limit = question.limit if most is None else min(question.limit, most)
    dropped = [
        Dropped(one.memory.id, "top", one.score, f"rank {place} > {limit}")
        for place, one in enumerate(candidates[limit:], start=limit + 1)
    ]
    return list(candidates[:limit]), dropped


def budget(
    candidates: Candidates,
    pool: Pool,
    question: Question,
    *,
    tokens_limit: Annotated[int, Range(1, 1_000_000)] | None = None,
    counter: Literal["quarter", "estimate"] | tokens.Counter = "quarter",
    overflow: Literal["stop", "skip"] = "stop",
) -> Selected:
    """As many as fit into the token budget, best first.

    "stop" ends at the first that does not fit, "skip" goes on to smaller ones. A memory longer than the whole
    budget is cut to its best passage, at sentence ends, so that one long page cannot silence the answer. A request may
    bring a counter of its own, such as a tokeniser's, for which more text never costs less.
    """
    limit = question.budget_tokens or tokens_limit
    if limit is None:
        return list(candidates), []
    count = counter if callable(counter) else tokens.COUNTERS[counter]
    kept: list[Candidate] = []
    dropped: list[Dropped] = []
    left, full = limit, False
    for one in candidates:
        cost = count(one.memory.content)
        if cost > limit and left > 0 and not full:
            cut = tokens.snippet(one.memory.content, left, count, one.passage)
            if cut:
                kept.append(one._replace(excerpt=cut))
                left -= count(cut)
                continue
        if full or cost > left:
            full = full or overflow == "stop"
            dropped.append(Dropped(one.id, "budget", one.score, f"{cost} tokens, {left} of {limit} left"))
        else:
            kept.append(one)
            left -= cost
    return kept, dropped


SELECTORS: Mapping[str, Selector] = {
    "redirect": redirect,
    "withhold": withhold,
    "floor": floor,
    "distinct": distinct,
    "top": top,
    "budget": budget,
}


def chain_head(id: str, pool: Pool) -> Memory:
    """The newest version of a memory: follow `supersedes` backwards, at most MAX_CHAIN steps, safe on cycles.

    Only memories the pool was given are followed, so a chain never leads out of the scope that was asked.
    """
    current, seen = id, {id}
    for _ in range(MAX_CHAIN):
        heads = sorted(
            (link for link in pool.links if link.type == "supersedes" and link.target == current),
            key=lambda link: (link.created_at, link.source),
        )
        following = next((link.source for link in reversed(heads) if link.source in pool.memories), None)
        if following is None or following in seen:
            break
        seen.add(following)
        current = following
    return pool.memories[current]


def _resolutions(pool: Pool) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for link in pool.links:
        if link.type == "resolved-by" and link.target in pool.memories:
            found[link.source] = (*found.get(link.source, ()), link.target)[:MAX_RESOLUTIONS]
    return found
