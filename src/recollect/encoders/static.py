"""Static word vectors (model2vec files): a text's vector is the mean of its tokens' vectors. No network is run."""

from __future__ import annotations

import json
import struct
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from recollect.domain.errors import ModelUnavailable
from recollect.encoders.querycache import QueryCache
from recollect.encoders.session import ModelFiles, check_content, is_whole, load_tokenizer
from recollect.encoders.vectors import clean, unit_rows
from recollect.ports import Matrix, Vector

if TYPE_CHECKING:
    from tokenizers import Tokenizer


def read_table(path: Path, name: str) -> Matrix:
    """The token table of a safetensors file: length of a JSON header, the header, the numbers."""
    content = path.read_bytes()
    try:
        (length,) = struct.unpack_from("<Q", content, 0)
        entry: dict[str, Any] = json.loads(content[8 : 8 + length])["embeddings"]
        start, end = entry["data_offsets"]
        if entry["dtype"] != "F32":
            raise ValueError(f"numbers of type {entry['dtype']}")
        return np.frombuffer(content[8 + length + start : 8 + length + end], "<f4").reshape(entry["shape"])
    except (KeyError, ValueError, TypeError, struct.error) as error:
        raise ModelUnavailable(f"the file of {name} cannot be read: {error}", "choose another model") from error


class StaticEmbedder:
    """Embeds by looking tokens up; loaded at first use, safe to share between threads."""

    def __init__(self, files: ModelFiles, dimension: int) -> None:
        self._files = files
        self._dimension = dimension
        self._lock = threading.Lock()
        self._loaded: tuple[Tokenizer, Matrix, int] | None = None
        self._cache = QueryCache()

    @property
    def id(self) -> str:
        return self._files.id

    @property
    def dimension(self) -> int:
        return self._dimension

    @property
    def max_tokens(self) -> int:
        return self._files.recipe.max_tokens

    def __repr__(self) -> str:
        return f"StaticEmbedder({self.id!r})"

    def count_tokens(self, text: str) -> int:
        return len(self._load()[0].encode(clean(text), add_special_tokens=False).ids)

    def knows(self, word: str) -> bool:
        return is_whole(self._load()[0], word)

    def warm(self) -> None:
        """Load now what would otherwise be loaded by the first call."""
        self._load()

    def embed_query(self, text: str) -> Vector:
        return self._cache.vector(text, lambda: self.embed_documents([text])[0])

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        tokenizer, table, unknown = self._load()
        rows = np.zeros((len(texts), self._dimension), dtype=np.float32)
        for row, text in enumerate(texts):
            ids = tokenizer.encode(clean(text), add_special_tokens=False).ids[: self.max_tokens]
            # Unknown tokens say nothing; a text of nothing else still needs a vector.
            rows[row] = table[[token for token in ids if token != unknown] or [unknown]].mean(axis=0)
        return unit_rows(rows, len(texts), self._dimension, self._files.name)

    def _load(self) -> tuple[Tokenizer, Matrix, int]:
        # Read without the lock: once set, it never changes.
        if self._loaded is None:
            with self._lock:
                if self._loaded is None:
                    self._loaded = self._open()
        return self._loaded

    def _open(self) -> tuple[Tokenizer, Matrix, int]:
        files = self._files
        check_content(files.weights, files.weights_sha256, files.name)
        check_content(files.tokenizer, files.tokenizer_sha256, files.name)
        tokenizer = load_tokenizer(files.tokenizer.read_bytes(), files.name)
        return tokenizer, read_table(files.weights, files.name), tokenizer.token_to_id("[UNK]") or 0
