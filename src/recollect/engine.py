"""Engine: wires store, encoders and profiles together. Every door is a skin over it.

Thread-safe. A write returns when it is durable and never waits for a model; a background thread embeds what was
written and records what was surfaced.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from recollect import pipeline, profiles, recollection, upkeep, writing
from recollect import settings as configuration
from recollect.adapters import attach_vectors, open_embedder, open_extractor, open_reranker, open_store
from recollect.domain.changes import SetSetting, Touch
from recollect.domain.errors import NotFound, StoreUnavailable
from recollect.domain.memory import DEFAULT_NAMESPACE, Link, Memory, Receipt, Scope
from recollect.domain.pages import page_start
from recollect.domain.profile import Profile
from recollect.domain.question import Mode, SortBy, check_page, check_request, name_of, narrowed, place, several, table
from recollect.domain.recall import Expanded, Recall
from recollect.identity import new_id
from recollect.legs.running import Tools
from recollect.pool import Pool
from recollect.ports import MOST_LINKS, Embedder, EmbeddingProgress, Extractor, Finding, Reranker, Store, StoreStats
from recollect.profiles import knobs
from recollect.recollection import Recollection
from recollect.settings import Settings
from recollect.stages.parse import parse
from recollect.stages.prose import MEANT, ends
from recollect.stages.wishes import heard
from recollect.worker import Worker
from recollect.writing.drafts import this_moment

Time = datetime | str | None
Choice = str | None

WORKERS, TOUCHES_AT_ONCE = 8, 1000
RECOLLECTION_DAYS = 30
MODEL_SECONDS, READER_SECONDS = 10.0, 2.0
"""How long models are waited for when the engine is closed: what a language model reads waits for the next time."""


def open_engine(
    target: str | Path | None = None,
    *,
    profile: str | Path | None = None,
    embedder: Embedder | Choice = None,
    reranker: Reranker | Choice = None,
    home: str | Path | None = None,
    background: bool = True,
    read_only: bool = False,
) -> Engine:
    """Open a memory. What is not given comes from the settings: RECOLLECT_* variables, config.toml, defaults.

    target: a path, ":memory:", a postgresql:// URL, or nothing for the user's default store
    profile: how recalls rank that name no profile of their own: a name, or the path of a TOML file
    embedder, reranker: an object with the port's methods, or a name as in `recollect models list`, a folder, a URL,
        "fake" or "none"; without any model everything works, by words alone
    home: the folder of config.toml, own profiles and recollections; the user's data folder unless RECOLLECT_HOME is set
    background: whether a thread embeds what was written and records what was surfaced; else `upkeep` does
    read_only: nothing can be written, not even that a memory was used
    """
    chosen = configuration.load(
        home=home,
        store=target,
        profile=profile,
        embedder=embedder if isinstance(embedder, str) else None,
        reranker=reranker if isinstance(reranker, str) else None,
    )
    profiles.require(chosen.profile_names, chosen.profiles)
    # Models first: one that cannot be had must not leave a store open, or make a new one.
    judge = open_reranker(chosen, reranker)
    meaning, note = open_embedder(chosen, embedder, waited_for=not background)
    extractor = open_extractor(chosen)
    store = attach_vectors(open_store(chosen.store, read_only=read_only), chosen)
    return Engine(store, chosen, meaning, judge, extractor, background=background and not read_only, note=note)


class Engine(AbstractContextManager["Engine"]):
    """An open memory: what `recollect.open` gives. Thread-safe; closed at the end of a `with` block."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        embedder: Embedder | None = None,
        reranker: Reranker | None = None,
        extractor: Extractor | None = None,
        *,
        background: bool = True,
        patience_ms: float = 5000.0,
        note: str = "",
    ) -> None:
        self.settings = settings
        self.store = store
        self.embedder = embedder
        self.extractor = extractor
        self.policy = writing.WritePolicy()
        self._executor = Pool(WORKERS, "recollect-leg", MODEL_SECONDS)
        self._tools = Tools(store, self._executor, embedder, reranker, patience_ms)
        self._touches: list[Touch] = []
        self._touching = threading.Lock()
        self._embedding = threading.Lock()
        self._has_vectors = False
        self._note = note
        self._closed, self._process = False, os.getpid()
        self._worker = Worker(self._background_step, "recollect-upkeep")
        self._reader = Worker(self._reading_step, "recollect-concepts", READER_SECONDS)
        if background and extractor is not None:
            self._reader.start()
        if background:
            self._worker.start()
            store.subscribe(self._worker.wake)
            self._executor.submit(getattr(embedder, "warm", lambda: None))  # the first recall should find it ready

    # --- writing ----------------------------------------------------------------------------------------------------

    def remember(
        self, content: str, *, type: str = "fact", tags: Sequence[str] = (), confidence: float = 0.8,
        importance: float | str = 0.5, scope: Scope | None = None, source: str = "", key: str | None = None,
        created_at: Time = None, pinned: bool = False, sensitive: bool = False,
        metadata: Mapping[str, Any] | None = None, dedupe: bool = True, now: Time = None,
    ) -> Receipt:  # fmt: skip
        """Store one memory; returns when it is durable. A near-duplicate raises the confidence of what stands.

        The arguments are the fields of a `Draft`. A text that was forgotten may come back this way.

        dedupe: False keeps it beside what says the same, also when both are embedded; `consolidate` may merge them
        now: the moment of the write, if it is not this one
        """
        draft = writing.Draft(
            content, type, tags, confidence, importance, scope or Scope(), source, key, created_at, pinned, sensitive,
            metadata or {},
        )  # fmt: skip
        policy = self.policy if dedupe else replace(self.policy, dedupe=False)
        receipt = writing.remember(self.store, draft, id=new_id(), now=_moment(now) or this_moment(), policy=policy)
        recollection.hide(self.settings.recollections, [receipt], self.store.records)
        self._worker.wake()
        return receipt

    def remember_many(self, drafts: Iterable[writing.Draft], *, dedupe: bool = True, now: Time = None) -> list[Receipt]:
        """Store many memories, a bounded batch per transaction; the order of the receipts is that of the drafts.

        A draft that cannot be stored is an InvalidInput that names its place; the batches before it are stored.
        """
        policy = self.policy if dedupe else replace(self.policy, dedupe=False)
        receipts = writing.remember_many(
            self.store, drafts, new_id=new_id, now=_moment(now) or this_moment(), policy=policy
        )
        recollection.hide(self.settings.recollections, receipts, self.store.records)
        self._worker.wake()
        return receipts

    def capture(
        self, text: str, *, scope: Scope | None = None, source: str = "", tags: Sequence[str] = (),
        importance: float | str = 0.5, created_at: Time = None, pinned: bool = False, sensitive: bool = False,
        metadata: Mapping[str, Any] | None = None, dedupe: bool = True, now: Time = None, said_by: str = "agent",
    ) -> list[Receipt]:  # fmt: skip
        """Remember what an agent's output marks (`[MEMORY]` lines, "Decision: …"), or what a prompt asks for ("remember
        that …") where `said_by` is "user", whose word brings back what was forgotten. Type, confidence and a stated
        importance are those of each mark; its own tags come before the given ones."""
        given: dict[str, Any] = {
            "scope": scope or Scope(), "source": source, "created_at": created_at,
            "pinned": pinned, "sensitive": sensitive, "metadata": metadata or {}, "captured": said_by == "agent",
        }  # fmt: skip
        drafts = [
            writing.Draft(one.content, one.type, (*one.tags, *several(tags, "tags")), one.confidence, weight, **given)
            for one in heard(text, said_by)
            for weight in [importance if one.importance is None else one.importance]
        ]
        return self.remember_many(drafts, dedupe=dedupe, now=now)

    def update(self, id: str, *, version: int | None = None, now: Time = None, **changes: Any) -> Memory:
        """Change fields of a memory, named as in a `Draft`; None takes a key away. Gives the memory as it is now.

        version: that of the memory as it was read: a Conflict if somebody has changed it meanwhile
        """
        memory = writing.update(
            self.store, id, now=_moment(now) or this_moment(), version=version, policy=self.policy, **changes
        )
        if changes.keys() & {"content", "sensitive"}:
            recollection.forget(self.settings.recollections, [id])  # no hook may fall back to the old text
        self._worker.wake()
        return memory

    def pin(self, id: str, pinned: bool = True) -> Memory:
        """A pinned memory neither decays nor is merged away."""
        return self.update(id, pinned=pinned)

    def forget(self, *ids: str, version: int | None = None) -> int:
        """Delete without remnants, with what was merged into them; tombstones keep the texts from coming back.

        All or none (NotFound). Tells how many memories are gone. `version`: of one memory alone, as for `update`.
        """
        gone = writing.forget(self.store, ids, version)
        recollection.forget(self.settings.recollections, gone)
        return len(gone)

    def link(self, source: str, type: str, target: str, *, now: Time = None) -> Link:
        """Connect two memories: `source` supersedes, is resolved-by, is part-of or see-also `target`.

        Where a superseded memory would be found, the one that supersedes it is returned.
        """
        return writing.link(self.store, source, type, target, now=_moment(now) or this_moment())

    # --- reading ----------------------------------------------------------------------------------------------------

    def recall(
        self, query: str, *, profile: str | Path | None = None, limit: int | None = None, mode: Mode = "auto",
        scope: Scope | None = None, sessions: Sequence[str] = (), exclude: Iterable[str] = (),
        only: Iterable[str] | None = None, type: str | Sequence[str] | None = None, tags: Sequence[str] = (),
        after: Time = None, before: Time = None, budget_tokens: int | None = None, sort_by: SortBy = "relevance",
        now: Time = None, rerank: bool | None = None, aliases: Mapping[str, str | Sequence[str]] | None = None,
        options: Mapping[str, Any] | None = None, explicit: bool = False, unasked: bool = False, prose: bool = False,
        without_sensitive: bool = False,
    ) -> Recall:  # fmt: skip
        """The memories that matter for a query, best first, with the reason for every rank.

        query: words, "phrases", prefix*, AND, OR, NOT, -word, parentheses, type: tag: project: session: after: before:
        profile: how to rank: a name or the path of a TOML file
        limit: how many at most, 1 to 200; the profile's own unless given
        mode: by words (bm25), by meaning (semantic) or by both (hybrid); auto: by all there is
        scope, sessions: only memories from there; `sessions` is for several
        exclude, only: ids that may not be returned, or alone may be
        type, tags: only these types, and only memories that have all of these tags
        after, before: only what was created from `after` on, and earlier than `before`
        budget_tokens: no more than fits into so many tokens
        sort_by: what decides the order of what was found
        now: the moment and the time zone of the question, if they are not the present ones
        rerank: whether a reranker judges the head; the profile decides unless given
        aliases: words to look for beside a word of the query, such as {"k8s": "kubernetes"}
        options: options of the profile for this recall alone, such as {"fusion.k": 10}
        explicit: asked for by name, so what is returned counts as used
        unasked: put before a model by itself, as hooks do: `balanced` returns nothing where it is not sure
        prose: the query is a prompt, in which nothing is an operator, a quote or a field
        without_sensitive: others take the places of what a model must not see
        """
        check_request(query, limit, mode, sort_by, budget_tokens)
        asked_at = writing.as_asked(now)
        chosen, notes = self._profile(profile, options, rerank)
        chosen = profiles.withholding(chosen) if without_sensitive else chosen
        wanted = narrowed(
            type=type, tags=tags, exclude=exclude, only=only,
            after=_moment(after, "after"), before=_moment(before, "before"),
            **pipeline.scope_of(self.store.records, chosen, place(scope), several(sessions, "sessions")),
        )  # fmt: skip
        question = parse(
            query, now=asked_at, filter=wanted, limit=limit or chosen.limit, mode=mode, sort_by=sort_by,
            budget_tokens=budget_tokens, aliases=table(aliases, "aliases"), unasked=unasked, prose=prose,
            **chosen.query.options,
        )  # fmt: skip
        answer = pipeline.recall(question, chosen, self._tools)
        if notes:
            answer = replace(answer, trace=replace(answer.trace, notes=(*notes, *answer.trace.notes)))
        self._touch([hit.id for hit in answer], asked_at, explicit)
        return replace(answer, profile=Path(profile).stem) if profile else answer

    def recollect(
        self, prompt: str, session: str, *, scope: Scope | None = None, profile: str | Path | None = None,
        force: bool = False, topic_gate: bool = True, now: Time = None, **asked: Any,
    ) -> tuple[Recollection, bool]:  # fmt: skip
        """The recollection for a session's prompt, written to its file; the flag tells whether it is new.

        While the prompt stays on the topic of the previous one, the old recollection stands. Further arguments are
        those of `recall`.

        force: make a new one, as for somebody who asked
        topic_gate: False makes a new one for every prompt
        """
        moment, folder = writing.as_asked(now), self.settings.recollections
        before = recollection.read(folder, name_of(session, "session"))
        vector = self._prompt_vector(prompt) if topic_gate else ()
        asks = recollection.asked_of(self.settings.store, place(scope), getattr(self.embedder, "id", None))
        if before is not None and topic_gate and not force and recollection.stands(before, asks, vector):
            return before, False
        asked = {**asked, "unasked": not force, "prose": True, "without_sensitive": True}
        answer = self.recall(prompt, profile=profile, scope=scope, now=moment, **asked)
        ids = tuple(hit.id for hit in answer)
        fresh = Recollection(session, moment.astimezone(UTC).isoformat(), ids, answer.render(), vector, asks)
        recollection.keep(folder, fresh)
        if not recollection.still_quotable([hit.memory for hit in answer], self.store.records):
            recollection.forget(folder, ids)
        return fresh, True

    def get(self, id: str) -> Memory:
        """One memory, as it is. Looking does not count as using."""
        found = self.store.records.fetch([name_of(id)])
        if not found:
            raise NotFound(f"there is no memory {id}", "ids come from recall, list or remember")
        return found[0]

    def expand(self, id: str, *, now: Time = None) -> Expanded:
        """One memory with its links, the newest 200 of many, and linked memories; this counts as using it."""
        memory = self.get(id)
        links = self.store.links.links([id])[-MOST_LINKS:] if self.store.links is not None else []
        others = dict.fromkeys(end for link in links for end in (link.source, link.target) if end != id)
        neighbours = [
            one for one in self.store.records.fetch(list(others)) if one.scope.namespace == memory.scope.namespace
        ]
        self._touch([id], _moment(now) or this_moment(), explicit=True)
        return Expanded(memory, tuple(links), tuple(neighbours))

    def list(
        self, *, scope: Scope | None = None, type: str | Sequence[str] | None = None, tags: Sequence[str] = (),
        after: Time = None, before: Time = None, limit: int = 100, cursor: str | Memory | None = None,
    ) -> list[Memory]:  # fmt: skip
        """Memories newest first. The filters are those of `recall`.

        limit: at most 1,000
        cursor: the last memory of the previous page; its id will do while it is not forgotten
        """
        check_page(limit)
        where = place(scope)
        wanted = narrowed(
            type=type, tags=tags, after=_moment(after, "after"), before=_moment(before, "before"),
            namespace=where.namespace, project=where.project, sessions=(where.session,) if where.session else (),
        )  # fmt: skip
        return self.store.records.scan(wanted, limit=limit, after=page_start(cursor))

    # --- settings ---------------------------------------------------------------------------------------------------

    def live_settings(self, profile: str | None = None) -> dict[str, float]:
        """The knobs of the profiles that have some (or of one), with their current values."""
        return knobs.values(self.store.care.settings(), self.settings.profiles, profile, self.settings.episodes_profile)

    def change_settings(self, changes: Mapping[str, Any]) -> dict[str, float]:
        """Turn knobs, all or none; effective on the next recall in every process that has the store open."""
        accepted = knobs.checked(table(changes, "settings"), self.settings.profiles)
        self.store.records.write([SetSetting(name, value) for name, value in accepted.items()])
        return self.live_settings()

    # --- care -------------------------------------------------------------------------------------------------------

    def upkeep(
        self, *, budget_seconds: float | None = None, progress: upkeep.Progress | None = None, now: Time = None
    ) -> upkeep.UpkeepReport:
        """Do now what the background would do: embed what waits, record what was surfaced, tidy the store.

        budget_seconds: embed no longer than this; what is left waits for the next time
        progress: called with what is embedded and how much there is
        """
        touched = self._flush_touches()
        with self._embedding:
            embedded = upkeep.embed_backlog(
                self.store, self.embedder, budget_seconds=budget_seconds, progress=progress, policy=self.policy,
                now=_moment(now) or this_moment(),
            )  # fmt: skip
        recollection.prune(self.settings.recollections, this_moment() - timedelta(days=RECOLLECTION_DAYS))
        return upkeep.UpkeepReport(embedded=embedded, touched=touched, tidied=self.store.care.tidy())

    def consolidate(
        self, *, dry_run: bool = False, now: Time = None, limit: int = 10_000, namespace: str = DEFAULT_NAMESPACE,
        progress: upkeep.Progress | None = None,
    ) -> upkeep.Consolidation:  # fmt: skip
        """Merge what write-time checks missed. Nothing is lost: the kept memory supersedes the others.

        dry_run: only tell what would be merged
        limit: how many memories are looked at, at most; the next call goes on behind them
        """
        return upkeep.consolidate(
            self.store, self.embedder, dry_run=dry_run, now=_moment(now) or this_moment(), limit=limit,
            namespace=namespace, progress=progress,
        )  # fmt: skip

    def extract_concepts(self, *, budget_seconds: float | None = None, now: Time = None) -> upkeep.ExtractReport:
        """Let the configured language model read what waits for it, as a background thread of its own does."""
        return upkeep.extract_backlog(
            self.store, self.extractor, now=_moment(now) or this_moment(), budget_seconds=budget_seconds,
            stop=lambda: self._reader.stopping,
        )  # fmt: skip

    def drop_vectors(self) -> None:
        """Take away the embedder's vectors: every memory waits to be embedded anew, as texts are cut today."""
        upkeep.drop_vectors(self.store, self.embedder)

    def drop_concepts(self) -> int:
        """Take away all links and marks that language models made; where extraction is on, they are made anew."""
        return upkeep.drop_concepts(self.store, self.extractor)

    def concept_progress(self) -> EmbeddingProgress | None:
        """How much of the store the extractor has read; None without one."""
        return self._progress(self.extractor)

    def embedding_progress(self) -> EmbeddingProgress | None:
        """How much of the store has vectors of the current model; None without an embedder."""
        return self._progress(self.embedder)

    def _progress(self, model: Embedder | Extractor | None) -> EmbeddingProgress | None:
        return None if model is None or self.store.vectors is None else self.store.vectors.progress(model.id)

    def stats(self) -> StoreStats:
        """What the store holds, and where it is."""
        return self.store.care.stats()

    def check(self, *, repair: bool = False) -> list[Finding]:
        """Verify checksums and indexes; with `repair`, rebuild what is derived."""
        return self.store.care.check(repair)

    def backup(self, path: str | Path) -> Path:
        """A verified, consistent copy of a store's file while others write; it replaces a file of that name."""
        target = Path(path).expanduser()
        self.store.care.backup(target)
        return target

    def close(self) -> None:
        """Stop the background work, record what was surfaced, release the store. Safe to call twice."""
        if self._closed or os.getpid() != self._process:  # what came along with a fork is its parent's to close
            return
        self._closed = True
        self._worker.stop()
        self._reader.stop()
        try:
            self._flush_touches()
        finally:
            self._executor.shutdown(cancel_futures=True)
            self.store.close()

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # --- inside -----------------------------------------------------------------------------------------------------

    def _profile(
        self, name: str | Path | None, options: Mapping[str, Any] | None, rerank: bool | None
    ) -> tuple[Profile, tuple[str, ...]]:
        """The profile asked for with live settings and single options applied, or its form without vectors."""
        if self._closed:
            raise StoreUnavailable("the store is closed", "open it again")
        asked = name or self.settings.profile
        plain = profiles.load(asked, self.settings.profiles)
        notes: tuple[str, ...] = (self._note,) if self._note else ()
        if plain.without_dense and not self._vectors_exist():
            notes = (*notes, f"no vectors yet: {plain.name} ranks as {plain.without_dense}")
            asked, plain = plain.without_dense, profiles.load(plain.without_dense, self.settings.profiles)
        overrides = knobs.overrides(self.store.care.settings(), plain) if plain.settings else {}
        if rerank is not None:
            overrides["rerank.enabled"] = rerank
        overrides.update(table(options, "options"))
        return (profiles.load(asked, self.settings.profiles, overrides) if overrides else plain), notes

    def _vectors_exist(self) -> bool:
        if not self._has_vectors:
            progress = self.embedding_progress()
            self._has_vectors = progress is not None and progress.done > 0
        return self._has_vectors

    def _prompt_vector(self, prompt: str) -> tuple[float, ...]:
        if self.embedder is None or not prompt.strip():
            return ()
        future = self._executor.submit(self.embedder.embed_query, ends(prompt, MEANT))
        try:
            return tuple(float(one) for one in future.result(self._tools.patience_ms / 1000))
        except Exception:  # no vector, no topic: the recollection is made anew
            return ()

    def _touch(self, ids: Sequence[str], at: datetime, explicit: bool) -> None:
        """Queued: reading never writes in line."""
        with self._touching:
            if ids and len(self._touches) < TOUCHES_AT_ONCE:
                self._touches.append(Touch(tuple(ids), at, count=1 if explicit else 0))
                self._worker.wake()

    def _flush_touches(self) -> int:
        with self._touching:
            waiting, self._touches = self._touches, []
        kept = waiting if self.store.writable() else []
        if kept:
            self.store.records.write(kept)
        return len(kept)

    def _background_step(self) -> bool:
        """One bounded piece of upkeep; True when there is more."""
        if not self.store.writable():
            return False
        self._flush_touches()
        with self._embedding:
            embedded = upkeep.embed_backlog(
                self.store, self.embedder, budget_seconds=1.0, policy=self.policy, now=this_moment(),
                stop=lambda: self._worker.stopping,
            ).embedded  # fmt: skip
        return not self._worker.stopping and (embedded > 0 or self.store.warm())

    def _reading_step(self) -> bool:
        return self.store.writable() and self.extract_concepts(budget_seconds=1.0).stopped == "out of time"


def _moment(value: Time, field: str = "now") -> datetime | None:
    """A datetime or ISO 8601 text as UTC with milliseconds; naive times are UTC."""
    return None if value is None else writing.as_moment(value, field)
