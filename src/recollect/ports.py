"""What a store and an encoder must offer. Small Protocols: outsiders implement them, contract suites check them.

Every `limit` is an upper bound; 0 or less asks for nothing. Ports may be called from any thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from recollect.domain.changes import Change
from recollect.domain.lookup import Lookup, Wanted
from recollect.domain.memory import Link, Memory
from recollect.domain.pages import Behind
from recollect.domain.query import Node, Unit
from recollect.domain.question import Filter
from recollect.domain.ranking import Hit
from recollect.domain.subjects import Words

Vector: TypeAlias = NDArray[np.float32]
Matrix: TypeAlias = NDArray[np.float32]

# The full-text columns, in order; column weights are given in this order.
TEXT_COLUMNS = ("content", "tags")
ScanOrder = Literal["created_at", "accessed_at", "id"]


class Records(Protocol):
    """The memories themselves: the source of truth from which everything else can be rebuilt."""

    def write(self, changes: Sequence[Change]) -> None:
        """Apply all changes in one durable transaction, or none.

        Raises Conflict, NotFound, InvalidInput or StoreUnavailable.
        """
        ...

    def fetch(self, ids: Sequence[str]) -> list[Memory]:
        """The memories with these ids that exist, in the order asked, in one query; asked twice, answered twice."""
        ...

    def scan(
        self, filter: Filter, order: ScanOrder = "created_at", limit: int = 100, after: str | Behind | None = None
    ) -> list[Memory]:
        """Memories in scope: times newest first (ties by id descending), ids ascending.

        `after` is the last memory of the previous page: the next page starts behind its place in the order. By its id
        it must still exist in the filter's namespace (NotFound), ordered by id or with its time it need not.
        """
        ...

    def recent(self, filter: Filter, limit: int, embedded: bool) -> list[Hit]:
        """The most recently accessed memories (ties: newest id first), score = accessed_at as POSIX seconds.

        With `embedded`, only those that have a vector of any model.
        """
        ...

    def lookup(
        self,
        namespace: str,
        *,
        key: str | None = None,
        content: str | None = None,
        project: str | None = None,
        session: str | None = None,
    ) -> Lookup:
        """Exact questions before a write: who holds this key, this text; is it behind a tombstone;

        which projects does this session belong to (ascending; memories without a project name none).
        The key, the tombstone and the session belong to the namespace; the text is looked for in `project` alone,
        where None means the memories without a project, and the lowest id wins. Same text as in `Put.once`. What may
        say the same (`domain.gist`) is told of in the same place: some twenty of the lowest ids, no turns among them.
        """
        ...

    def lookups(self, namespace: str, wanted: Sequence[Wanted]) -> list[Lookup]:
        """The same for the keys and texts of many writes, in their order and all as of one moment."""
        ...


@dataclass(frozen=True, slots=True)
class ScopeCounts:
    """How many memories a scope has, and for each unit how many of them hold it."""

    documents: int
    frequencies: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TextMatches:
    """Candidates of a full-text search with all that BM25 needs; the lexical leg does the scoring.

    ids[i] has length lengths[i] (tokens in all text columns); counts[i, u, c] is how often units[u] occurs in
    column c of it. frequencies[u] is the number of memories in the whole index that hold units[u] in any text
    column; documents and average_length (0.0 without documents) describe the whole index, as FTS5's own bm25() sees
    it. units are those of `domain.query.units`, all of them and in that order, even where one finds nothing. Counts
    are plain occurrences, overlapping ones included, whatever branch of the query the unit stands in.
    """

    ids: tuple[str, ...]
    lengths: NDArray[np.float64]
    counts: NDArray[np.float64]
    units: tuple[Unit, ...]
    frequencies: NDArray[np.float64]
    documents: int
    average_length: float
    compiled: str = ""
    """The engine's own form of the query, for the trace."""
    scope: ScopeCounts | None = None
    """The same numbers for the scope alone, for queries of plain alternatives (`is_flat`); None where the scope is
    everything, or has too many matches to count."""
    turns: frozenset[str] | None = None
    """Which of them are turns of a conversation, where the store saw that on its way; others have no neighbours."""


class TextIndex(Protocol):
    """Finds memories by words. Tokens are those of FTS5's `porter unicode61` in every store.

    The columns are the content and the tags joined by one space. Queries mean what they mean to FTS5: a Term or Phrase
    is the run of its tokens within one column ("foo-bar" is foo followed by bar); a Prefix is such a run whose last
    token may go on (the prefix is stemmed too: `deploy*` looks for deploi…). What has no token at all is left out of
    And, Or and the drop side of Not; a query of which nothing is left matches nothing. Characters that a query cannot
    carry (NUL, lone surrogates) separate words. A store may refuse with InvalidInput what would cost it too much: more
    than 64 units or 1,024 tokens, phrases of more than 64 tokens, more than 8 prefixes or more than one of a single
    letter, nesting beyond 32.
    """

    def match(self, query: Node, filter: Filter, limit: int, weights: Sequence[float] = (1.0, 1.0)) -> TextMatches:
        """At least the `limit` best matches by BM25 in scope (more candidates are welcome, never arbitrary ones).

        BM25 is FTS5's, with these column weights. Equal scores at the limit go to the lower id (where thousands are
        equal, a store may prefer those inserted first). The order of the candidates means nothing.
        """
        ...

    def about(self, names: Sequence[Words], filter: Filter, most: int) -> dict[Words, list[str]]:
        """For each of these names that some memory in scope is about (`domain.subjects`), the ids, ascending.

        A name that more than `most` memories of the namespace are about says too little and is left out.
        """
        ...

    def tokens(self, text: str) -> list[str]:
        """The index's own terms of a text, in order (stemmed, folded)."""
        ...

    def frequencies(self, terms: Sequence[str]) -> list[int]:
        """In how many memories each index term (as `tokens` gives it) occurs."""
        ...

    def similar(self, word: str, minimum: float, limit: int) -> list[tuple[str, float]]:
        """Words of the index's vocabulary with the highest trigram Jaccard to `word`, best first, ties by word.

        The vocabulary is the unstemmed words of all columns as `unicode61` folds them, and `word` is folded alike
        (several words are run together). Trigrams are those of "$" + word + "$", so that "a" has one and "ab" two;
        at least one must be shared. The word itself is listed when the index holds it.
        """
        ...


@dataclass(frozen=True, slots=True)
class Pending:
    """A memory that waits for its embedding."""

    id: str
    content: str
    content_hash: str
    attempts: int = 0
    apart: bool = False
    """It was put to stay beside what means the same (`Put.apart`)."""


@dataclass(frozen=True, slots=True)
class Embedded:
    """The vectors of one memory: one unit row per passage, with the passages' character offsets.

    Without passages there is one row, for the whole text, and its hits carry no passage.
    content_hash (of `domain.memory`) names the text they were made from: a store drops them when the text has changed
    meanwhile. error set (and no vectors): the attempt failed and is retried later.
    """

    id: str
    content_hash: str
    vectors: Matrix | None
    passages: tuple[tuple[int, int], ...] = ()
    error: str | None = None


@dataclass(frozen=True, slots=True)
class EmbeddingProgress:
    """How far the outbox is for one model. The three add up to the memories that are not sensitive.

    failed: the last attempt failed; it is retried all the same.
    """

    done: int
    pending: int
    failed: int


class VectorIndex(Protocol):
    """Finds memories by meaning. Every vector belongs to a model; models are never mixed.

    Vectors are unit vectors as they come from an Embedder, or means of such; the cosine is the dot product in double
    precision (for a mean: the mean of the cosines).
    """

    def search(self, model: str, vector: Vector, filter: Filter, limit: int, minimum: float | None = None) -> list[Hit]:
        """The best memories by cosine, ties by id, filtered before the limit.

        Each comes with its best passage, the first of equals. `minimum` is inclusive.
        A vector of another dimension than the model's is InvalidInput.
        """
        ...

    def similarities(self, model: str, vector: Vector, ids: Sequence[str]) -> dict[str, Hit]:
        """The cosine of each of these memories that has vectors of this model: its best passage."""
        ...

    def put(self, model: str, entries: Sequence[Embedded]) -> None:
        """Store finished (or failed) work, all or nothing.

        Entries whose memory is gone, changed or sensitive are ignored. New vectors replace those of the same memory
        and model. InvalidInput: not one row per passage, numbers that are not finite, another dimension than the
        model's other vectors.
        """
        ...

    def missing(self, model: str, limit: int) -> list[Pending]:
        """Memories without vectors of this model, oldest first insertion first; sensitive ones are never listed.

        Those whose attempts failed come after those never tried, with fewer attempts first, and may be held back for
        a while. A changed content starts again at 0 attempts.
        """
        ...

    def progress(self, model: str) -> EmbeddingProgress:
        """Counts for the progress bar and for `doctor`."""
        ...

    def models(self) -> list[str]:
        """The names of the models that have vectors here, in alphabetical order."""
        ...

    def stored(self, model: str, ids: Sequence[str]) -> list[Embedded]:
        """The vectors of these memories as they were put, bit for bit, in the order asked; for copies and mirrors.

        Memories without vectors of this model are left out.
        """
        ...

    def forget(self, model: str) -> None:
        """Drop all vectors of a model and the failures with them: every memory waits for it again."""
        ...


MOST_LINKS = 200
"""So many links of a type, in one direction, are told of one memory: thousands may lead to a hub."""


class LinkIndex(Protocol):
    """Finds what is connected."""

    def links(self, ids: Sequence[str], types: Sequence[str] = (), limit: int = MOST_LINKS) -> list[Link]:
        """The links that start or end at one of these memories, each once, by created_at, source, type and target.

        With `types` only links of these types; the others are not even read. Of each type at most `limit` that start at
        a memory and as many that end there, the newest: which ones of the same moment is up to the store.
        """
        ...

    def leaving(self, id: str, after: Link | None, limit: int) -> list[Link]:
        """Links that start at this memory, by type and target, behind `after`, which need not exist any more."""
        ...

    def neighbours(self, ids: Sequence[str], before: int, after: int) -> dict[str, list[tuple[int, str]]]:
        """The turns around a turn: for each id (offset, id) pairs, offsets -before … -1 and 1 … after, in order.

        Only memories of type episode with a session have any: those of the same namespace, project and session, in
        the order of created_at and then of insertion. Ids without neighbours are left out.
        """
        ...


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing `doctor` found. `repaired` tells whether it was mended in the same run."""

    kind: str
    detail: str
    severity: Literal["info", "warning", "error"] = "warning"
    repaired: bool = False


@dataclass(frozen=True, slots=True)
class StoreSize:
    """What a store knows of itself without counting: how many memories each namespace has, and the bytes of all."""

    namespaces: Mapping[str, int]
    bytes: int

    @property
    def memories(self) -> int:
        return sum(self.namespaces.values())


@dataclass(frozen=True, slots=True)
class StoreStats:
    """Plain facts about a whole store: vectors counts the rows of all models; projects leaves out "no project"."""

    kind: str
    location: str
    memories: int
    tombstones: int
    links: int
    vectors: int
    bytes: int
    schema_version: int
    engine_version: str
    types: Mapping[str, int] = field(default_factory=dict[str, int])
    projects: Mapping[str, int] = field(default_factory=dict[str, int])
    namespaces: Mapping[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True, slots=True)
class Graves:
    """All tombstones of a store: (namespace, `domain.memory.tombstone_hash`) pairs, and the key of the hashes."""

    key: bytes
    hashes: frozenset[tuple[str, bytes]]


class Care(Protocol):
    """Keeping a store healthy."""

    def size(self) -> StoreSize:
        """Cheap in a store of any size; who asks often asks this."""
        ...

    def stats(self) -> StoreStats:
        """All the facts, some of which have to be counted row by row."""
        ...

    def check(self, repair: bool = False) -> list[Finding]:
        """Verify checksums, indexes and engine integrity; with `repair`, rebuild what is derived."""
        ...

    def backup(self, path: Path) -> None:
        """A consistent copy while others write; the copy is verified before it gets its name.

        A store that keeps nothing on disk refuses with InvalidInput.
        """
        ...

    def tidy(self) -> dict[str, int]:
        """Bounded routine work (checkpoint, index merge); returns what was done."""
        ...

    def settings(self) -> dict[str, Any]:
        """The persisted live settings."""
        ...

    def graves(self) -> Graves:
        """The tombstones, for a copy of the store."""
        ...

    def bury(self, graves: Graves) -> None:
        """Take over the tombstones of another store, with their key; where there are none, the key may stay behind.

        A store that has tombstones under a key of its own refuses with Conflict.
        """
        ...


def _nothing() -> None:
    return None


def _warm() -> bool:
    return False


def _writable() -> bool:
    return True


def _deaf(_: Callable[[], None]) -> None:
    return None


@dataclass(frozen=True, slots=True)
class Store:
    """A small bundle of ports. A missing port is None: its leg is skipped with a note in the trace."""

    records: Records
    care: Care
    text: TextIndex | None = None
    vectors: VectorIndex | None = None
    links: LinkIndex | None = None
    close: Callable[[], None] = _nothing
    subscribe: Callable[[Callable[[], None]], None] = _deaf
    """Have a function called, in another thread, when any process leaves work for the embedder. It may be called in
    vain, and a store need not call it at all: whoever waits looks from time to time."""
    warm: Callable[[], bool] = _warm
    """Read ahead what the next questions will need, one bounded piece at a time; True while there is more. Only a
    process that stays calls it, from one thread, when it has nothing better to do."""
    writable: Callable[[], bool] = _writable
    """False where the store was opened for reading, lies where nobody can write, or on a standby until that is
    promoted. Who works in the background asks before every piece of work."""
    tenant: str | None = None
    """The only namespace that this store sees, where it is bound to one of many."""


class Embedder(Protocol):
    """Turns text into unit vectors. Where it also has `warm()`, the background calls that before anything is asked."""

    @property
    def id(self) -> str:
        """Names model and version and is stored with every vector: another id has everything embedded anew."""
        ...

    @property
    def dimension(self) -> int:
        """How many numbers a vector has."""
        ...

    @property
    def max_tokens(self) -> int:
        """How much of a text it takes in; a longer one is embedded as several passages."""
        ...

    def count_tokens(self, text: str) -> int:
        """The model's own token count (an estimate where the model is remote): long texts are cut by it."""
        ...

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        """One row of length 1 for each text, as float32. An exception means that it has to be tried again later."""
        ...

    def embed_query(self, text: str) -> Vector:
        """One vector of length 1, as float32."""
        ...


@runtime_checkable
class Dictionary(Protocol):
    """An embedder that can also tell words from misspelt ones: what its model has as a whole is a word."""

    def knows(self, word: str) -> bool:
        """Whether the lower-cased word is one. Quick: nothing but the model's list of words is looked at."""
        ...


class Reranker(Protocol):
    """Judges candidate texts against a query; only the order and the spread of the scores are used."""

    @property
    def id(self) -> str:
        """Names the model."""
        ...

    def score(self, query: str, texts: Sequence[str], budget_ms: float | None = None) -> list[float]:
        """One number per text, higher is better; fewer numbers than texts when the time ran out."""
        ...


MARKS = "concepts:"
"""How the ids of extractors begin: what stands in a vector index under such a name is looked up, never searched."""

Stretch: TypeAlias = tuple[int, int]
"""Where a piece of a text begins and ends, in characters."""


@dataclass(frozen=True, slots=True)
class Concepts:
    """What stands in a text by name: what the text is about, where it says so, and what else it names."""

    about: Stretch | None = None
    names: tuple[Stretch, ...] = ()


class Extractor(Protocol):
    """Reads a text and marks what it names. `id` names the model and is stored with what it marked."""

    @property
    def id(self) -> str: ...

    def extract(self, text: str) -> Concepts:
        """Stretches of this text, never anything else. ModelUnavailable or Timeout where there is no usable answer."""
        ...
