"""Running the legs of a profile: first wave in parallel, second wave from its anchors, each failure contained."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass, field, replace
from functools import partial
from time import perf_counter

from recollect.domain.errors import ModelUnavailable, RecollectError
from recollect.domain.profile import ListSpec, Profile
from recollect.domain.question import Question
from recollect.domain.ranking import RankedList
from recollect.domain.recall import Attempt, LegStep, RerankStep
from recollect.legs.bridge import bridge
from recollect.legs.dense import dense
from recollect.legs.excluding import sifted
from recollect.legs.found import Ahead, Found
from recollect.legs.graph import graph
from recollect.legs.latest import latest
from recollect.legs.lexical import lexical
from recollect.legs.recent import recent
from recollect.ports import Embedder, Reranker, Store, Vector
from recollect.stages.fusion import FUSIONS
from recollect.stages.prose import MEANT, ends

log = logging.getLogger(__name__)

# Which lists a mode can switch off; all other kinds take part in every mode.
WORD_KINDS = frozenset({"lexical"})
MEANING_KINDS = frozenset({"dense", "similarity"})
TIME_KINDS = frozenset({"latest", "recent"})
"""Which legs find something without a word."""

HYBRID = frozenset({"hybrid", "hybrid-rerank"})
SECOND_WAVE = frozenset({"graph", "bridge"})
ANCHOR_DEPTH = 50


@dataclass(frozen=True, slots=True)
class Tools:
    """The parts a recall works with. `patience_ms` bounds the wait for a model, never the answer itself."""

    store: Store
    executor: Executor
    embedder: Embedder | None = None
    reranker: Reranker | None = None
    patience_ms: float = 5000.0


@dataclass
class Journal:
    """What is written down along the way and becomes the trace."""

    legs: dict[str, LegStep] = field(default_factory=dict[str, LegStep])
    stages: dict[str, float] = field(default_factory=dict[str, float])
    notes: list[str] = field(default_factory=list[str])
    failures: list[Exception] = field(default_factory=list[Exception])
    without_meaning: bool = False
    attempts: tuple[Attempt, ...] = ()
    compiled: str = ""
    started: float = field(default_factory=perf_counter)
    last: float = field(default_factory=perf_counter)

    def stage(self, name: str) -> None:
        """Close a stage: the time since the previous one belongs to it."""
        moment = perf_counter()
        self.stages[name] = round((moment - self.last) * 1000, 3)
        self.last = moment

    def reranked(self, step: RerankStep) -> None:
        """Close that stage; where a reranker was wanted and the order is not its own, the notes tell why."""
        self.stage("rerank")
        if step.is_lacking:
            self.notes.append(f"not reranked: {step.skipped}")

    def fail(self, name: str, error: Exception) -> None:
        """A failing leg is left out and recorded; the others answer. Content stays out of the log."""
        reason = str(error) or "the model took too long"
        self.legs[name] = LegStep(error=reason)
        self.notes.append(f"{name} was left out: {reason}")
        self.failures.append(error)
        log.warning("leg %s failed: %s", name, type(error).__name__)


@dataclass(frozen=True, slots=True)
class ModePlan:
    """The mode asked for, resolved against what is there."""

    asked: str
    used: str
    fell_back: bool = False
    words: bool = True
    meaning: bool = True
    rerank: bool = False


Dense = Mapping[str, tuple[Found, float]]
"""What each dense leg found, and how long it took."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """The question's vector, which comes first, and what the dense legs find with it."""

    vector: Future[Vector]
    found: Future[Dense]


def resolve_mode(question: Question, profile: Profile, tools: Tools) -> ModePlan:
    """auto takes what is there and is no fallback; hybrid without an embedder falls back to words and says so."""
    can_mean = tools.embedder is not None and tools.store.vectors is not None
    wants_meaning = any(spec.kind in MEANING_KINDS for spec in (*profile.legs, *profile.signals))
    asked = question.mode
    if asked == "bm25":
        return ModePlan(asked, "bm25", meaning=False)
    if asked == "semantic":
        if not can_mean:
            raise ModelUnavailable(
                "semantic search needs an embedder", "run `recollect models fetch`, or ask with mode auto"
            )
        return ModePlan(asked, "semantic", words=False)
    rerank = asked == "hybrid-rerank"
    if can_mean and wants_meaning:
        return ModePlan(asked, "hybrid-rerank" if rerank else "hybrid", rerank=rerank)
    fell_back = asked in HYBRID and (wants_meaning or not can_mean)
    return ModePlan(asked, "bm25", fell_back=fell_back, meaning=False, rerank=rerank)


def came_out(plan: ModePlan, journal: Journal) -> ModePlan:
    """The plan as it was carried out: a model that failed on the way leaves words alone, like one that is not there."""
    if not journal.without_meaning or not plan.words:
        return plan
    return replace(plan, used="bm25", fell_back=plan.asked in HYBRID)


def may_run(spec: ListSpec, plan: ModePlan, journal: Journal) -> bool:
    """Weight 0 or another mode: the list is not made at all, and the trace says so."""
    reason = None
    if spec.weight == 0:
        reason = "weight 0"
    elif spec.kind in WORD_KINDS and not plan.words:
        reason = f"mode {plan.used}"
    elif spec.kind in MEANING_KINDS and not plan.meaning:
        reason = f"mode {plan.used}" if plan.asked == "bm25" else "no embedder"
    if reason:
        journal.legs[spec.name] = LegStep(skipped=reason)
    return reason is None


def run_legs(
    question: Question, profile: Profile, tools: Tools, plan: ModePlan, journal: Journal
) -> tuple[dict[str, Found], Vector | None, Ahead]:
    """Embedding and dense search run beside the others; the legs that need anchors follow."""
    wanted = [spec for spec in profile.legs if may_run(spec, plan, journal)]
    if profile.legs and not wanted:
        reasons = ", ".join(f"{spec.name}: {journal.legs[spec.name].skipped}" for spec in profile.legs)
        journal.notes.append(f"nothing was searched ({reasons})")
    if question.filters_alone and not any(spec.kind in TIME_KINDS for spec in wanted):
        journal.notes.append("nothing but filters and exclusions: this profile has no leg for that")
    meaning = _start_meaning(wanted, question, profile, tools, plan, journal)
    found: dict[str, Found] = {}
    for spec in wanted:
        run = _words_or_times(spec, question, profile, tools.store, journal)
        if run is not None:
            _contain(spec.name, run, found, journal)
    ahead, vector = Ahead(), None
    if meaning is not None:
        patience_until = perf_counter() + tools.patience_ms / 1000
        _read_ahead(ahead, found, meaning, profile, tools, patience_until)
        vector = _collect_meaning(meaning, wanted, tools.patience_ms, patience_until, found, journal)
    later = [spec for spec in wanted if spec.kind in SECOND_WAVE]
    if later:
        anchors = _anchors(profile, found)
        for spec in later:
            _second_wave(spec, question, anchors, found, ahead, tools.store, journal)
    # What only follows the others has no say here: it finds nothing where they fail, and that would pass for an answer.
    steps = [journal.legs[spec.name] for spec in wanted if spec.kind not in SECOND_WAVE]
    answered = any(step.error is None and step.skipped is None for step in steps) or any(
        one.hits for one in found.values()
    )
    if journal.failures and not answered:
        raise _typed(journal.failures[0], plan)
    return found, vector, ahead


def _typed(failure: Exception, plan: ModePlan) -> Exception:
    """A model of the caller's own may break in any way; who asks gets our error for it. Content stays out of it."""
    if isinstance(failure, RecollectError):
        return failure
    step = "try again" if plan.asked == "auto" else "ask with mode auto"
    told = ModelUnavailable(f"nobody could answer: {type(failure).__name__}", f"{step}, or see the log")
    told.__cause__ = failure
    return told


def wants_cosines(profile: Profile) -> bool:
    """Whether every candidate's cosine has a say."""
    return any(spec.kind == "similarity" and spec.weight > 0 for spec in profile.signals)


def _read_ahead(
    ahead: Ahead, found: Mapping[str, Found], meaning: Meaning, profile: Profile, tools: Tools, patience_until: float
) -> None:
    """While meaning is searched, read the memories that words found and, once there is a vector, their cosines."""
    embedder, vectors = tools.embedder, tools.store.vectors
    try:
        ahead.read(found.values(), tools.store.records)
        if wants_cosines(profile) and ahead.memories and embedder is not None and vectors is not None:
            vector = meaning.vector.result(max(0.0, patience_until - perf_counter()))
            ahead.compare(ahead.memories, vectors, embedder.id, vector)
    except Exception:  # what cannot be read ahead is read later, where its failure is told
        return


def _start_meaning(
    wanted: list[ListSpec],
    question: Question,
    profile: Profile,
    tools: Tools,
    plan: ModePlan,
    journal: Journal,
) -> Meaning | None:
    """One task embeds the question and runs every dense leg, so that no worker ever waits for another."""
    specs = [spec for spec in wanted if spec.kind == "dense"]
    embedder, vectors, index = tools.embedder, tools.store.vectors, tools.store.text
    text = question.text if question.plain else " ".join(question.words)
    text = ends(text, MEANT) if question.prose else text
    needed = bool(specs) or wants_cosines(profile)
    if not (needed and plan.meaning and embedder and vectors) or not text.strip():
        for spec in specs:
            journal.legs[spec.name] = LegStep(skipped="nothing to embed" if vectors else "no vector index")
        return None
    embedded = Future[Vector]()

    def run() -> Dense:
        try:
            embedded.set_result(vector := embedder.embed_query(text))
        except BaseException as error:
            embedded.set_exception(error)
            raise

        def search(spec: ListSpec) -> Found:
            return sifted(lambda one: dense(vectors, one, embedder.id, vector, **spec.options), question, index)

        return {spec.name: _timed(partial(search, spec)) for spec in specs}

    answer = tools.executor.submit(run)
    if answer.done() and not embedded.done():  # refused: nobody is to wait for a vector that will not come
        embedded.cancel()
    return Meaning(embedded, answer)


def _collect_meaning(
    meaning: Meaning,
    wanted: list[ListSpec],
    patience_ms: float,
    patience_until: float,
    found: dict[str, Found],
    journal: Journal,
) -> Vector | None:
    try:
        answer = meaning.found.result(max(0.0, patience_until - perf_counter()))
    except Exception as error:  # whatever a model does, words still answer
        failure = (
            ModelUnavailable(f"no answer within {patience_ms:g} ms") if isinstance(error, FutureTimeout) else error
        )
        names = [spec.name for spec in wanted if spec.kind == "dense"] or ["similarity"]
        for name in names:
            journal.fail(name, failure)
        journal.without_meaning = True
        return None
    for name, (one, ms) in answer.items():
        found[name] = one
        journal.legs[name] = LegStep(hits=len(one.hits), ms=ms)
    return meaning.vector.result()


def _words_or_times(
    spec: ListSpec, question: Question, profile: Profile, store: Store, journal: Journal
) -> Callable[[], Found] | None:
    """The work of a first-wave leg as a call without arguments, or None where its port or its input is missing."""
    if spec.kind == "recent":
        return lambda: sifted(lambda one: recent(store.records, one, **spec.options), question, store.text)
    if spec.kind == "latest":
        if question.filters_alone:
            return lambda: sifted(lambda one: latest(store.records, one, **spec.options), question, store.text)
        journal.legs[spec.name] = LegStep(skipped="not filters alone")
    if spec.kind == "lexical":
        index = store.text
        if index is not None and question.query is not None:
            return lambda: lexical(index, question, store.links, rungs=profile.ladder, **spec.options)
        journal.legs[spec.name] = LegStep(skipped="no full-text index" if index is None else "no words to search for")
    return None


def _anchors(profile: Profile, found: Mapping[str, Found]) -> list[tuple[str, float]]:
    """What the first wave agrees on: its lists fused as the profile fuses, best first."""
    weights = {spec.name: spec.weight for spec in profile.legs}
    lists = [RankedList(name, one.hits, weights[name], one.flattened, one.ceiling) for name, one in found.items()]
    fused = FUSIONS[profile.fusion.kind](lists, **profile.fusion.options)
    return [(one.id, one.score) for one in fused[:ANCHOR_DEPTH]]


def _second_wave(
    spec: ListSpec,
    question: Question,
    anchors: list[tuple[str, float]],
    found: dict[str, Found],
    ahead: Ahead,
    store: Store,
    journal: Journal,
) -> None:
    links, text = store.links, store.text
    if spec.kind == "graph" and links is not None:
        ids = [id for id, _ in anchors]

        def walk(asked: Question) -> Found:
            return graph(links, asked, ids, **spec.options)

        _contain(spec.name, lambda: sifted(walk, question, text, again=False), found, journal)
    elif spec.kind == "bridge" and text is not None:

        def step(asked: Question) -> Found:
            ahead.read(list(found.values()), store.records)
            return bridge(text, ahead.memories, asked, anchors, links, **spec.options)

        _contain(spec.name, lambda: sifted(step, question, text), found, journal)
    else:
        journal.legs[spec.name] = LegStep(skipped="no link index" if spec.kind == "graph" else "no full-text index")


def _contain(name: str, run: Callable[[], Found], found: dict[str, Found], journal: Journal) -> None:
    try:
        one, ms = _timed(run)
    except Exception as error:  # one leg failing falls back to the others
        journal.fail(name, error)
        return
    found[name] = one
    journal.legs[name] = LegStep(hits=len(one.hits), ms=ms)
    if one.attempts:
        journal.attempts, journal.compiled = one.attempts, one.compiled


def _timed(run: Callable[[], Found]) -> tuple[Found, float]:
    began = perf_counter()
    return run(), round((perf_counter() - began) * 1000, 3)
