"""An embedder of the caller's own, its answers held to what every embedder's must be."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from recollect.domain.errors import InvalidInput
from recollect.encoders.vectors import unit_rows
from recollect.encoders.wrapped import Wrapped
from recollect.ports import Embedder, Matrix, Vector

METHODS = ("count_tokens", "embed_documents", "embed_query")


class OwnEmbedder(Wrapped):
    """Rows that are not of length one are scaled: longer ones would pass for likenesses that no two texts have.

    One of no length at all says nothing and is refused, as is what is no row of numbers.
    """

    def __init__(self, inner: Embedder) -> None:
        # Only what is called: an id or a dimension may be known when the model is loaded, and that is not now.
        missing = [name for name in METHODS if not callable(getattr(inner, name, None))]
        if missing:
            hint = "docs/library.md tells what an embedder of your own must offer"
            raise InvalidInput(f"the embedder has no {', '.join(missing)}", hint, "embedder")
        super().__init__(inner)

    def warm(self) -> None:
        getattr(self._inner, "warm", lambda: None)()

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        return self._unit(self._inner.embed_documents(texts), len(texts))

    def embed_query(self, text: str) -> Vector:
        return self._unit([self._inner.embed_query(text)], 1)[0]

    def _unit(self, rows: object, count: int) -> Matrix:
        return unit_rows(np.asarray(rows, dtype=np.float64), count, self.dimension, self.id)
