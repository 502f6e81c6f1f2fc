"""Memories and questions that behave like real ones: Zipfian words, about 40 of them, in clusters by topic.

Everything follows from one seed. Scopes: project "tenth" holds 10 % of the memories, "thousandth" 0.1 %.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from recollect.domain.memory import Memory, Scope

SEED = 20_261_115
VOCABULARY = 60_000
ZIPF = 1.05
MEAN_WORDS = 40
TOPIC_WORDS = 40
TOPIC_SHARE = 0.35
PIECE = 10_000
TYPES = ("fact", "lesson", "decision", "gotcha", "pattern", "preference", "episode")
START = datetime(2025, 1, 1, tzinfo=UTC)
NOW = datetime(2026, 11, 1, tzinfo=UTC)

COMMON = [
    "the",
    "of",
    "and",
    "to",
    "in",
    "a",
    "is",
    "that",
    "for",
    "it",
    "on",
    "was",
    "with",
    "as",
    "be",
    "by",
    "at",
    "this",
    "from",
    "have",
    "or",
    "an",
    "they",
    "which",
    "one",
    "you",
    "were",
    "her",
    "all",
    "she",
    "there",
    "would",
    "their",
    "we",
    "him",
    "been",
    "has",
    "when",
    "who",
    "will",
    "more",
    "no",
    "if",
    "out",
    "so",
    "said",
    "what",
    "up",
    "its",
    "about",
    "into",
    "than",
    "them",
    "can",
    "only",
    "other",
    "new",
    "some",
    "could",
    "time",
    "these",
    "two",
    "may",
    "then",
    "do",
    "first",
    "any",
    "my",
    "now",
    "such",
    "like",
    "our",
    "over",
    "man",
    "me",
    "even",
    "most",
    "made",
    "after",
    "also",
    "did",
    "many",
    "before",
    "must",
    "through",
    "years",
    "where",
    "much",
    "your",
    "way",
    "well",
    "down",
    "should",
    "because",
    "each",
    "just",
    "those",
    "people",
    "how",
    "too",
    "little",
    "state",
    "good",
    "very",
    "make",
    "world",
    "still",
    "own",
    "see",
    "men",
    "work",
    "long",
    "get",
    "here",
    "between",
    "both",
    "life",
    "being",
    "under",
    "never",
]
SYLLABLES = [
    first + vowel
    for first in ["b", "d", "f", "g", "k", "l", "m", "n", "p", "r", "s", "t", "v", "z", "br", "st", "tr", "pl"]
    for vowel in "aeiou"
]


def vocabulary() -> NDArray[np.object_]:
    """The most frequent words are English function words, the others are pronounceable and never end alike by stem."""
    rng = np.random.default_rng(SEED)
    words = dict.fromkeys(COMMON)
    while len(words) < VOCABULARY:
        count = int(rng.integers(2, 5))
        words["".join(SYLLABLES[place] for place in rng.integers(len(SYLLABLES), size=count)) + "k"] = None
    return np.array(list(words), dtype=object)


@dataclass(frozen=True)
class Corpus:
    """`size` memories; memory number n belongs to topic topics[n]."""

    size: int
    topics: NDArray[np.int64]
    words: NDArray[np.object_]
    seed: int = 1

    def texts(self) -> Iterator[list[str]]:
        """All texts, a piece at a time, always the same."""
        for first in range(0, self.size, PIECE):
            yield self._piece(first, min(PIECE, self.size - first))

    def _piece(self, first: int, count: int) -> list[str]:
        rng = np.random.default_rng((SEED, self.seed, first))
        lengths = np.clip(rng.normal(MEAN_WORDS, 12, count), 8, 90).astype(np.int64)
        owners = np.repeat(np.arange(count), lengths)
        numbers = zipfian(rng, len(owners))
        topical = rng.random(len(owners)) < TOPIC_SHARE
        own = topic_words(self.topics[first : first + count])
        numbers[topical] = own[owners[topical], rng.integers(TOPIC_WORDS, size=int(topical.sum()))]
        stops = np.cumsum(lengths)
        return [
            " ".join(self.words[numbers[stop - length : stop]])
            for stop, length in zip(stops.tolist(), lengths.tolist())
        ]

    def memories(self) -> Iterator[list[Memory]]:
        """The same texts as memories with scopes, types, tags and times."""
        first = 0
        for texts in self.texts():
            yield [memory(first + place, text) for place, text in enumerate(texts)]
            first += len(texts)

    def questions(self, count: int) -> list[str]:
        """6 to 12 words: some from the topic of a memory, the rest as common as words are."""
        rng = np.random.default_rng((SEED, 2))
        asked: list[str] = []
        for _ in range(count):
            topic = self.topics[rng.integers(self.size)]
            own = topic_words(np.array([topic]))[0]
            rare = rng.choice(own, size=int(rng.integers(3, 6)), replace=False)
            numbers = np.concatenate([rare, zipfian(rng, int(rng.integers(3, 8)))])
            asked.append(" ".join(dict.fromkeys(self.words[rng.permutation(numbers)])))
        return asked


def make(size: int, topics: NDArray[np.int64] | None = None, seed: int = 1) -> Corpus:
    """A corpus; the topics may come from the vectors, so that words and meaning agree as they do in life. Another seed
    has other texts."""
    if topics is None:
        topics = np.random.default_rng((SEED, 3)).integers(max(20, size // 50), size=size)
    return Corpus(size, topics, vocabulary(), seed)


def zipfian(rng: np.random.Generator, count: int) -> NDArray[np.int64]:
    """Word numbers by Zipf's law, cut off at the vocabulary."""
    weights = 1.0 / np.arange(1, VOCABULARY + 1) ** ZIPF
    edges = np.cumsum(weights / weights.sum())
    return np.minimum(np.searchsorted(edges, rng.random(count)), VOCABULARY - 1).astype(np.int64)


def topic_words(topics: NDArray[np.int64]) -> NDArray[np.int64]:
    """The words a topic likes: numbers spread over the middle of the vocabulary by a hash of topic and place."""
    mixed = topics[:, None].astype(np.uint64) * np.uint64(2_654_435_761) + np.arange(TOPIC_WORDS, dtype=np.uint64)
    mixed = (mixed ^ (mixed >> np.uint64(15))) * np.uint64(2_246_822_519)
    mixed ^= mixed >> np.uint64(13)
    share = (mixed % np.uint64(1_000_003)).astype(np.float64) / 1_000_003
    return (200 * (VOCABULARY / 200) ** share).astype(np.int64)


def memory(number: int, text: str) -> Memory:
    """One memory; its scope, type, tags and times follow from its number."""
    mixed = (number * 2_654_435_761) & 0xFFFF_FFFF
    share = mixed / 2**32
    project = "thousandth" if share < 0.001 else "tenth" if share < 0.101 else f"project-{mixed % 40}"
    moment = START + timedelta(seconds=number * 20)
    return Memory(
        id=f"m{number:09d}",
        content=text,
        type=TYPES[mixed % len(TYPES)],
        tags=(f"area-{mixed % 25}", f"team-{mixed % 7}"),
        importance=(mixed % 100) / 100,
        scope=Scope(project=project, session=f"session-{number // 40}"),
        source="benchmark",
        created_at=moment,
        updated_at=moment,
        accessed_at=moment,
    )


def draft_fields(memories: Sequence[Memory]) -> list[dict[str, object]]:
    """What a caller of the library would write for these memories."""
    return [
        {"content": one.content, "type": one.type, "tags": one.tags, "scope": one.scope, "created_at": one.created_at}
        for one in memories
    ]
