"""The read path: parse ▸ spelling ▸ legs ▸ pool ▸ signals ▸ fusion ▸ priors ▸ rerank ▸ select ▸ confidence ▸ render.

One function owns the flow and reads like the diagram in docs/architecture.md; every step it calls is pure except
the legs, the pool and the reranker. A profile says which functions run, with which options.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import replace
from inspect import signature
from time import perf_counter
from typing import Any

from recollect.domain.confidence import Confidence
from recollect.domain.errors import RecollectError
from recollect.domain.memory import Link, Memory, Scope
from recollect.domain.profile import Part, Profile
from recollect.domain.question import Question
from recollect.domain.ranking import Fused, Hit, Passage, RankedList
from recollect.domain.recall import (
    Adjustment,
    Candidate,
    Dropped,
    LegStep,
    Pool,
    Recall,
    RecallHit,
    RerankStep,
    Trace,
)
from recollect.legs.excluding import excluded, without
from recollect.legs.found import Ahead, Found
from recollect.legs.running import Journal, ModePlan, Tools, came_out, may_run, resolve_mode, run_legs, wants_cosines
from recollect.legs.spelling import meant
from recollect.legs.telling import telling
from recollect.ports import Records, Store, Vector
from recollect.stages import confidence
from recollect.stages.fusion import FUSIONS
from recollect.stages.priors import PRIORS
from recollect.stages.prose import says_nothing
from recollect.stages.rendering import RENDERERS
from recollect.stages.reranking import RerankOptions, reorder, unanimous
from recollect.stages.selection import FOLLOWED, MAX_CHAIN, SELECTORS
from recollect.stages.signals import SIGNALS
from recollect.stages.spelling import respelt
from recollect.stages.unparse import unparse

log = logging.getLogger(__name__)


def recall(question: Question, profile: Profile, tools: Tools) -> Recall:
    """Answer a parsed question with the ranking recipe of a profile."""
    journal, asked = Journal(), question.text
    plan = resolve_mode(question, profile, tools)
    if may_be_silent(question, profile) and says_nothing(question.words):
        trace = Trace(plan.asked, plan.used, notes=("nothing was asked for",), ms=_ms_since(journal.started))
        return Recall(asked, profile.name, plan.used, (), trace=trace, abstained=True)
    question = reread(question, profile.spelling, tools)
    if profile.spelling is not None:
        journal.stage("spelling")
    journal.notes.extend(question.notes)
    if plan.fell_back:
        journal.notes.append("hybrid was asked but no embedder is there: words only")
    found, vector, ahead = run_legs(question, profile, tools, plan, journal)
    plan = came_out(plan, journal)
    journal.stage("legs")
    pool = fetch_pool(found, ahead, question, profile, tools, vector)
    journal.stage("pool")
    lists = gather_lists(found, pool, question, profile, plan, journal)
    fused = FUSIONS[profile.fusion.kind](lists, **profile.fusion.options)
    journal.stage("fusion")
    candidates = adjust(fused, pool, question, profile, found)
    journal.stage("priors")
    candidates, rerank, agreed = rerank_head(candidates, lists, question, profile, tools, plan)
    journal.reranked(rerank)
    pool, question = _linked(candidates, pool, question, tools.store, journal)
    kept, dropped = select(candidates, pool, question, profile)
    dropped.extend(_excluded(found, question))
    journal.stage("select")
    evidence = judge(question, lists, candidates, profile, found, tools)
    abstained = evidence is not None and not evidence.enough and bool(kept)
    if evidence is not None and abstained:
        kept, dropped = [], [*confidence.withheld(kept, evidence), *dropped]
        journal.notes.append(confidence.told(evidence))
    elif evidence is not None and evidence.doubtful and kept:
        journal.notes.append(confidence.doubted(evidence))
    journal.stage("confidence")
    hits = tuple(_as_hit(one, place) for place, one in enumerate(kept, start=1))
    # The block is for a model, which must not see what is sensitive; people read the hits.
    shown = tuple(hit for hit in hits if not hit.memory.sensitive)
    rendered = RENDERERS[profile.render.kind](shown, question, **profile.render.options)
    journal.stage("render")
    trace = Trace(
        mode_asked=plan.asked,
        mode_used=plan.used,
        fell_back_to_bm25=plan.fell_back,
        query=journal.compiled,
        attempts=journal.attempts,
        legs=journal.legs,
        lists={one.name: tuple(hit.id for hit in one) for one in lists},
        unanimity=agreed,
        rerank=rerank,
        pool=len(pool.memories),
        notes=tuple(journal.notes),
        stages=journal.stages,
        confidence=None if evidence is None or evidence.is_handful else evidence.chance,
        evidence=evidence,
        ms=_ms_since(journal.started),
    )
    return Recall(asked, profile.name, plan.used, hits, tuple(dropped), trace, abstained, rendered)


def may_be_silent(question: Question, profile: Profile) -> bool:
    """Whether nobody asked, and the profile would rather say nothing than something that does not matter."""
    recipe = profile.confidence
    return question.unasked and question.prose and recipe is not None and recipe.keep_unasked < 1


def scope_of(records: Records, profile: Profile, scope: Scope, sessions: Sequence[str]) -> dict[str, Any]:
    """Where to look. A profile may widen a session to its project's sessions: both legs then search the same scope."""
    wanted = tuple(sessions) or ((scope.session,) if scope.session else ())
    if profile.scope == "project" and scope.session and not sessions:
        owners = (
            (scope.project,)
            if scope.project
            else records.lookup(scope.namespace, session=scope.session).session_projects
        )
        if owners:
            return {"namespace": scope.namespace, "project": owners[0], "sessions": ()}
    return {"namespace": scope.namespace, "project": scope.project, "sessions": wanted}


# --- spelling, pool, signals, priors ---------------------------------------------------------------------------------


def reread(question: Question, spelling: Part | None, tools: Tools) -> Question:
    """The question as the index understands it: of a long prompt the telling words, and misspelt words read as the
    memories' own, for words and meaning alike. What cannot be asked is left as it is."""
    index = tools.store.text
    if index is None:
        return question
    try:
        question = telling(index, question)
        slips = {} if spelling is None else meant(index, question, tools.embedder, **spelling.options)
        return respelt(question, slips)
    except RecollectError as error:
        return replace(question, notes=(*question.notes, f"spelling was not looked at: {error}"))


def fetch_pool(
    found: Mapping[str, Found],
    ahead: Ahead,
    question: Question,
    profile: Profile,
    tools: Tools,
    vector: Vector | None,
) -> Pool:
    """Every candidate's record in one query and every candidate's cosine once; out of scope is out of the pool."""
    ids = list(dict.fromkeys(hit.id for name in sorted(found) for hit in found[name].hits))
    ahead.read(found.values(), tools.store.records)
    known = ahead.memories
    memories = {id: known[id] for id in ids if id in known and question.filter.allows(known[id])}
    lists = {name: one.hits for name, one in found.items()}
    if vector is None or not wants_cosines(profile) or tools.embedder is None or tools.store.vectors is None:
        return Pool(memories, found=lists)
    ahead.compare(memories, tools.store.vectors, tools.embedder.id, vector)
    return Pool(memories, {id: hit for id in memories if (hit := ahead.cosines[id]) is not None}, found=lists)


def gather_lists(
    found: Mapping[str, Found], pool: Pool, question: Question, profile: Profile, plan: ModePlan, journal: Journal
) -> list[RankedList]:
    """The voting lists: what legs found, and how signals order the pool."""
    lists: list[RankedList] = []
    for spec in profile.legs:
        if spec.votes and spec.name in found:
            one = found[spec.name]
            hits = tuple(hit for hit in one.hits if hit.id in pool.memories)
            lists.append(RankedList(spec.name, hits, spec.weight, one.flattened, one.ceiling))
    for spec in profile.signals:
        if not may_run(spec, plan, journal):
            continue
        began = perf_counter()
        hits = SIGNALS[spec.kind](pool, question, **spec.options)
        journal.legs[spec.name] = LegStep(hits=len(hits), ms=_ms_since(began))
        if leg := spec.options.get("estimated_by"):
            _tell_estimates(hits, pool, spec.name, leg, journal)
        if spec.votes:
            lists.append(RankedList(spec.name, hits, spec.weight))
    return lists


def _tell_estimates(hits: Sequence[Hit], pool: Pool, signal: str, leg: str, journal: Journal) -> None:
    count = sum(hit.id not in pool.similarities for hit in hits)
    if count:
        who = "1 candidate has" if count == 1 else f"{count} candidates have"
        journal.notes.append(f"{who} no vector (yet): {signal} is estimated by {leg} there")


def adjust(
    fused: Sequence[Fused], pool: Pool, question: Question, profile: Profile, found: Mapping[str, Found]
) -> list[Candidate]:
    """Apply the priors in order, then sort: equal scores keep the order of the fusion."""
    passages = _passages(found, pool)
    memories = pool.memories
    priors = [(part.kind, PRIORS[part.kind], _prior_options(part, profile)) for part in profile.priors]
    candidates: list[Candidate] = []
    for id, score, contributions in fused:
        memory = memories[id]
        steps: list[Adjustment] = []
        for name, prior, options in priors:
            after = prior(score, memory, question, **options)
            if after != score:
                steps.append(Adjustment(name, score, after))
                score = after
        candidates.append(Candidate(memory, score, contributions, tuple(steps), passages.get(id)))
    if question.sort_by == "relevance":
        return sorted(candidates, key=lambda one: -one.score)
    return sorted(candidates, key=lambda one: _sort_key(one, question))


def _sort_key(candidate: Candidate, question: Question) -> tuple[float, float]:
    if question.sort_by == "importance":
        return (-candidate.memory.importance, -candidate.score)
    return (-candidate.memory.created_at.timestamp(), -candidate.score)


def _prior_options(part: Part, profile: Profile) -> Mapping[str, Any]:
    """A prior that speaks of k means the fusion's k, unless the profile gives it one of its own."""
    if "k" in profile.fusion.options and "k" in signature(PRIORS[part.kind]).parameters:
        return {"k": profile.fusion.options["k"], **part.options}
    return part.options


def _passages(found: Mapping[str, Found], pool: Pool) -> dict[str, Passage]:
    lists: Iterable[Iterable[Hit]] = (pool.similarities.values(), *(one.hits for one in found.values()))
    return {id: passage for hits in lists for id, _, passage in hits if passage is not None}


# --- rerank, selection, confidence -----------------------------------------------------------------------------------


def rerank_head(
    candidates: list[Candidate],
    lists: Sequence[RankedList],
    question: Question,
    profile: Profile,
    tools: Tools,
    plan: ModePlan,
) -> tuple[list[Candidate], RerankStep, bool | None]:
    """Ask the reranker about the head, if the profile or the mode wants it, the legs disagree, and time allows."""
    options = RerankOptions(**(profile.rerank.options if profile.rerank else {}))
    if not (options.enabled or plan.rerank):
        return candidates, RerankStep(skipped="off"), None
    heads = {one.name: [hit.id for hit in one] for one in lists}
    first, second = options.between
    agreed = unanimous(heads.get(first, ()), heads.get(second, ()), by=options.by)
    if agreed and options.unanimity:
        return candidates, RerankStep(skipped="unanimity"), agreed
    if tools.reranker is None:
        return candidates, RerankStep(skipped="no reranker"), agreed
    if question.sort_by != "relevance" or len(candidates) < 2:
        return candidates, RerankStep(skipped="nothing to reorder"), agreed
    head = candidates[: options.head]
    texts = [_judged_text(one) for one in head]
    began = perf_counter()
    future = tools.executor.submit(tools.reranker.score, question.text, texts, options.budget_ms)
    try:
        # The reranker stops by itself within its budget; the grace covers the way back.
        scores = future.result(options.budget_ms / 1000 * 1.25 + 0.02)
    except Exception as error:  # whatever a model does, the fused order stands
        future.cancel()
        reason = "too slow" if isinstance(error, FutureTimeout) else f"failed: {error}"
        log.warning("reranker: %s", type(error).__name__)
        return candidates, RerankStep(skipped=reason, ms=_ms_since(began), considered=len(head)), agreed
    if not scores:
        return candidates, RerankStep(skipped="too slow", ms=_ms_since(began), considered=len(head)), agreed
    judged = {one.id: score for one, score in zip(head, scores, strict=False)}
    ordered = reorder(candidates, judged, head=len(head), blend=options.blend)
    return ordered, RerankStep(used=True, ms=_ms_since(began), considered=len(judged)), agreed


def _judged_text(candidate: Candidate) -> str:
    """The best passage of a long memory, all of a short one. What is sensitive is not shown to a model."""
    if candidate.memory.sensitive:
        return ""
    passage = candidate.passage
    return candidate.memory.content if passage is None else candidate.memory.content[passage.start : passage.end]


def _ms_since(began: float) -> float:
    return round((perf_counter() - began) * 1000, 3)


def _linked(
    candidates: Sequence[Candidate], pool: Pool, question: Question, store: Store, journal: Journal
) -> tuple[Pool, Question]:
    """The pool with what links lead to, and the question without those of them that it excludes.

    Links that cannot be read cost the answer its redirects, not its hits.
    """
    try:
        linked = follow_links(candidates, pool, question, store)
        return linked, without(question, excluded(store.text, question, linked.memories.keys() - pool.memories.keys()))
    except RecollectError as error:
        journal.notes.append(f"links were left out: {error}")
        return pool, question


def follow_links(candidates: Sequence[Candidate], pool: Pool, question: Question, store: Store) -> Pool:
    """Bring in the newer versions of superseded candidates and what resolves them, ring by ring, within scope."""
    if store.links is None or not candidates:
        return pool
    memories: dict[str, Memory] = dict(pool.memories)
    links: dict[Link, None] = {}
    ring, rings = [one.id for one in candidates], 0
    while ring and rings < MAX_CHAIN:
        fresh = [link for link in store.links.links(ring, FOLLOWED) if link not in links]
        links.update(dict.fromkeys(fresh))
        ends = {link.source for link in fresh if link.type == "supersedes"}
        ends |= {link.target for link in fresh if link.type == "resolved-by"}
        unseen = sorted(ends - memories.keys())
        # An excluded head must be known, so that what it supersedes is not shown in its place.
        visible = replace(question.filter, exclude=frozenset[str](), only=None) if unseen else question.filter
        arrived = {one.id: one for one in store.records.fetch(unseen) if visible.allows(one)} if unseen else {}
        memories.update(arrived)
        ring, rings = list(arrived), rings + 1
    return Pool(memories, pool.similarities, tuple(links), pool.found)


def select(
    candidates: Sequence[Candidate], pool: Pool, question: Question, profile: Profile
) -> tuple[list[Candidate], list[Dropped]]:
    """Run the profile's selectors in order, collecting every reason. A budget that was asked for holds in them all."""
    kept, dropped = list(candidates), list[Dropped]()
    unbudgeted = question.budget_tokens is not None and all(part.kind != "budget" for part in profile.select)
    for part in (*profile.select, Part("budget")) if unbudgeted else profile.select:
        kept, gone = SELECTORS[part.kind](kept, pool, question, **part.options)
        dropped.extend(gone)
    return kept, dropped


def _excluded(found: Mapping[str, Found], question: Question) -> list[Dropped]:
    """What legs found and the question excludes."""
    reason = f"the question excludes: {unparse(question.unwanted)}"
    gone = frozenset[str]().union(*(one.excluded for one in found.values()))
    return [Dropped(id, "excluded", 0.0, reason) for id in sorted(gone)]


def judge(
    question: Question,
    lists: Sequence[RankedList],
    candidates: Sequence[Candidate],
    profile: Profile,
    found: Mapping[str, Found],
    tools: Tools,
) -> Confidence | None:
    """How sure it is that anything relevant is here; None where the profile does not ask or nobody can tell."""
    if profile.confidence is None or "lexical" not in found:
        return None
    model = tools.embedder.id if tools.embedder is not None else None
    words = found["lexical"].frequencies
    return confidence.assess(question, lists, candidates, words, profile.confidence, model)


def _as_hit(candidate: Candidate, rank: int) -> RecallHit:
    return RecallHit(
        rank=rank,
        memory=candidate.memory,
        score=candidate.score,
        contributions=candidate.contributions,
        adjustments=candidate.adjustments,
        passage=candidate.passage,
        redirected_from=candidate.redirected_from,
        resolved_by=candidate.resolved_by,
        rerank_score=candidate.rerank_score,
        excerpt=candidate.excerpt,
    )
