"""The embedder for sentence models in ONNX files: the bundled ones and any other in a folder."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from recollect.domain.errors import ModelUnavailable
from recollect.encoders.catalogue import Pooling
from recollect.encoders.querycache import QueryCache
from recollect.encoders.session import ModelFiles, OnnxModel, is_whole
from recollect.encoders.vectors import unit_rows
from recollect.ports import Matrix, Vector

Encoded = tuple[list[int], list[int]]


class OnnxEmbedder:
    """Sentence vectors from a local ONNX model. A text's vector does not depend on what is embedded beside it."""

    def __init__(
        self,
        files: ModelFiles,
        dimension: int | None = None,
        *,
        threads: int = 1,
        workers: int | None = None,
        batch_tokens: int = 2048,
        cached_queries: int = 256,
    ) -> None:
        """`threads` work on one text, `workers` texts at a time; by default half the cores stay free for others."""
        self._model = OnnxModel(files, threads)
        self._dimension = dimension
        self.workers = workers or max(1, min(4, (os.cpu_count() or 1) // 2))
        self._batch_tokens = batch_tokens
        self._cache = QueryCache(cached_queries)

    @property
    def id(self) -> str:
        return self._model.files.id

    @property
    def dimension(self) -> int:
        if self._dimension is None:
            # A file that does not tell its width tells it by an example.
            width = self._model.output_width
            self._dimension = width if width is not None else self._pooled([self._model.encode("width")]).shape[1]
        return self._dimension

    @property
    def max_tokens(self) -> int:
        return self._model.files.recipe.max_tokens

    def __repr__(self) -> str:
        return f"OnnxEmbedder({self.id!r})"

    def count_tokens(self, text: str) -> int:
        """Tokens as a document is embedded: prefix and special tokens included."""
        return self._model.count_tokens(self._model.files.recipe.document_prefix + text)

    def knows(self, word: str) -> bool:
        return is_whole(self._model.tokenizer, word)

    def warm(self) -> None:
        """Load now what would otherwise be loaded by the first call."""
        self._pooled([self._model.encode("warm")])

    def embed_query(self, text: str) -> Vector:
        prefix = self._model.files.recipe.query_prefix
        return self._cache.vector(text, lambda: self._vectors([self._model.encode(prefix + text)])[0])

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        prefix = self._model.files.recipe.document_prefix
        encoded = [self._model.encode(prefix + text) for text in texts]
        result = np.zeros((len(texts), self.dimension), dtype=np.float32)
        batches = list(self._batches([len(ids) for ids, _ in encoded]))

        def embed(batch: list[int]) -> None:
            result[batch] = self._vectors([encoded[index] for index in batch])

        if self.workers == 1 or len(batches) == 1:
            for batch in batches:
                embed(batch)
        else:
            with ThreadPoolExecutor(self.workers, "recollect-embed") as pool:
                list(pool.map(embed, batches))
        return result

    def _batches(self, lengths: Sequence[int]) -> Iterator[list[int]]:
        """Texts of like length together, so that little is padded, up to `batch_tokens` with the padding.

        A model that quantises at run time gets every text alone: in a batch the texts would share one scale and
        change each other's vectors (cosine 0.992 for the default model), for a gain in speed of a tenth at most.
        """
        order = sorted(range(len(lengths)), key=lambda index: (lengths[index], index))
        if not self._model.batches_freely:
            yield from ([index] for index in order)
            return
        batch: list[int] = []
        for index in order:
            if batch and (len(batch) + 1) * lengths[index] > self._batch_tokens:
                yield batch
                batch = []
            batch.append(index)
        yield batch

    def _vectors(self, encoded: Sequence[Encoded]) -> Matrix:
        return unit_rows(self._pooled(encoded), len(encoded), self.dimension, self._model.files.name)

    def _pooled(self, encoded: Sequence[Encoded]) -> NDArray[np.floating]:
        output, mask = self._model.run(encoded)
        if output.ndim == 2:
            return output
        if output.ndim != 3:
            raise ModelUnavailable(
                f"{self._model.files.name} gives an output of {output.ndim} axes",
                "use a sentence model whose output is one vector per text or per token",
            )
        return pool(output, mask, self._model.files.recipe.pooling)


def pool(hidden: NDArray[np.floating], mask: NDArray[np.int64], pooling: Pooling) -> NDArray[np.floating]:
    """One vector per text: the first token's (cls), or the mean over the tokens that are not padding."""
    if pooling == "cls":
        return hidden[:, 0]
    weights = mask[:, :, None].astype(hidden.dtype)
    return (hidden * weights).sum(axis=1) / np.maximum(weights.sum(axis=1), 1)
