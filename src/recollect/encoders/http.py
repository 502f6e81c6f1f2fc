"""Embeddings from any server of the OpenAI shape: OpenAI, Voyage, Ollama, vLLM and many others."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import parse_qsl, urldefrag

import numpy as np

from recollect.domain.errors import InvalidInput, ModelUnavailable, Timeout
from recollect.encoders.endpoint import Endpoint, mapping, number
from recollect.encoders.querycache import QueryCache
from recollect.encoders.vectors import clean, unit_rows
from recollect.ports import Matrix, Vector

_HINT = "check that the address is an OpenAI-shaped embeddings endpoint and serves this model"


@dataclass(frozen=True, slots=True)
class RemoteModel:
    """What the server does not tell about its model. Given in the URL's fragment, which is never sent."""

    dimension: int = 0
    """0: learnt from the first answer."""
    max_tokens: int = 512
    query_prefix: str = ""
    document_prefix: str = ""
    query_ms: int = 800
    """A query that is not embedded by then is searched by words alone."""
    documents_ms: int = 30_000


def split_options(url: str) -> tuple[str, RemoteModel]:
    """An address such as http://localhost:11434/v1#query_prefix=search_query:%20&max_tokens=2048 and its options."""
    address, fragment = urldefrag(url)
    values: dict[str, Any] = {}
    for name, value in parse_qsl(fragment, keep_blank_values=True):
        if name not in RemoteModel.__slots__:
            raise InvalidInput(f"unknown option {name!r}", f"allowed: {', '.join(RemoteModel.__slots__)}", name)
        if name.endswith("_prefix"):
            values[name] = value
        elif value.isascii() and value.isdigit() and 0 < int(value) <= 10_000_000:
            values[name] = int(value)
        else:
            raise InvalidInput(f"{name} must be a whole number above 0", "correct the address", name)
    return address, RemoteModel(**values)


class HttpEmbedder:
    """Sentence vectors from a server. A bad answer is refused as a whole: nothing half right is passed on."""

    def __init__(
        self,
        endpoint: Endpoint,
        model: str,
        remote: RemoteModel | None = None,
        *,
        batch_texts: int = 64,
        batch_characters: int = 200_000,
        attempts: int = 4,
    ) -> None:
        self._endpoint = endpoint
        self._model = model
        self._remote = remote or RemoteModel()
        self._batch_texts, self._batch_characters, self._attempts = batch_texts, batch_characters, attempts
        self._lock = threading.Lock()
        self._dimension = self._remote.dimension
        self._cache = QueryCache()

    @property
    def id(self) -> str:
        """Model and server, and what else changes the vectors."""
        prefixes = f"{self._remote.query_prefix}|{self._remote.document_prefix}"
        return self._endpoint.serving(self._model) + (f"#{prefixes}" if prefixes != "|" else "")

    @property
    def dimension(self) -> int:
        """As configured or as first seen; asks the server when neither has happened yet."""
        if not self._dimension:
            self.embed_query("dimension")
        return self._dimension

    @property
    def max_tokens(self) -> int:
        return self._remote.max_tokens

    def __repr__(self) -> str:
        return f"HttpEmbedder({self.id!r})"

    def count_tokens(self, text: str) -> int:
        """An estimate on the safe side: three bytes a token suit English, code and CJK alike."""
        return -(-len((self._remote.document_prefix + text).encode("utf-8", "replace")) // 3)

    def embed_query(self, text: str) -> Vector:
        full = self._remote.query_prefix + text
        return self._cache.vector(text, lambda: self._embed([full], self._remote.query_ms, 1)[0])

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        full = [self._remote.document_prefix + text for text in texts]
        return np.concatenate(
            [self._embed(batch, self._remote.documents_ms, self._attempts) for batch in self._batches(full)]
        )

    def _batches(self, texts: Sequence[str]) -> Iterator[list[str]]:
        batch: list[str] = []
        for text in texts:
            size = sum(map(len, batch)) + len(text)
            if batch and (len(batch) == self._batch_texts or size > self._batch_characters):
                yield batch
                batch = []
            batch.append(text)
        yield batch

    def _embed(self, texts: Sequence[str], milliseconds: int, attempts: int) -> Matrix:
        payload = {"model": self._model, "input": [clean(text) for text in texts], "encoding_format": "float"}
        try:
            return self._endpoint.ask(payload, self._reader(len(texts)), milliseconds / 1000, attempts)
        except Timeout as error:
            raise ModelUnavailable(error.message, error.hint) from error

    def _reader(self, count: int) -> Callable[[Any], Matrix]:
        def read(answer: Any) -> Matrix:
            check_model(answer, self._model)
            rows = ordered_rows(answer, count)
            with self._lock:
                expected = self._dimension or len(rows[0])
                if any(len(row) != expected for row in rows):
                    lengths = sorted({len(row) for row in rows})
                    raise ModelUnavailable(f"{self.id} gave vectors of {lengths} numbers, not {expected}", _HINT)
                vectors = unit_rows(np.array(rows, dtype=np.float64), count, expected, self.id)
                self._dimension = expected
            return vectors

        return read


def ordered_rows(answer: Any, count: int) -> list[list[float]]:
    """The vectors in the order of the texts, whatever the order of the answer; every number is checked."""
    data = mapping(answer).get("data")
    if not isinstance(data, list) or not all(isinstance(entry, dict) for entry in cast("list[Any]", data)):
        raise ModelUnavailable("the answer holds no list of embeddings", _HINT)
    entries = cast("list[dict[str, Any]]", data)
    places = [entry.get("index", place) for place, entry in enumerate(entries)]
    if len(entries) != count or sorted(places, key=str) != sorted(range(count), key=str):
        raise ModelUnavailable(
            f"the answer holds {len(entries)} embeddings, or wrong numbers, for {count} texts", _HINT
        )
    rows: list[list[float]] = [[] for _ in range(count)]
    for place, entry in zip(places, entries):
        given = entry.get("embedding")
        row = [number(value) for value in cast("list[Any]", given)] if isinstance(given, list) else []
        if not row or None in row:
            raise ModelUnavailable("an embedding is not a list of finite numbers", _HINT)
        rows[place] = cast("list[float]", row)
    return rows


def check_model(answer: Any, asked: str) -> None:
    """Refuse another model's vectors, where the server names it. Servers add paths, tags and versions to the name."""
    named = mapping(answer).get("model")
    if not isinstance(named, str) or not named or not asked:
        return
    one, other = (name.rpartition("/")[2].removesuffix(":latest").casefold() for name in (asked, named))
    if not (one.startswith(other) or other.startswith(one)):
        raise ModelUnavailable(f"the server answered with the model {named[:100]!r} instead of {asked!r}", _HINT)
