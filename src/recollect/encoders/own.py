"""Models of the caller's own: their answers held to what every model's must be, their failures to what they concern."""

from __future__ import annotations

import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager

import numpy as np

from recollect.domain.errors import InvalidInput, ModelUnavailable
from recollect.encoders.vectors import unit_rows
from recollect.encoders.wrapped import Wrapped
from recollect.ports import Embedder, Matrix, Reranker, Vector

METHODS = ("count_tokens", "embed_documents", "embed_query")


@contextmanager
def contained() -> Generator[None]:
    """What would end a thread or the program (SystemExit, a cancelled task) is a failure of the model that raised it.

    Except in the main thread, where it may come from the outside: Ctrl-C, or the handler of a signal.
    """
    try:
        yield
    except BaseException as error:
        if isinstance(error, Exception) or threading.current_thread() is threading.main_thread():
            raise
        raise ModelUnavailable(f"the model of your own raised {type(error).__name__}") from error


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

    def count_tokens(self, text: str) -> int:
        with contained():
            return super().count_tokens(text)

    def warm(self) -> None:
        with contained():
            getattr(self._inner, "warm", lambda: None)()

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        with contained():
            return self._unit(self._inner.embed_documents(texts), len(texts))

    def embed_query(self, text: str) -> Vector:
        with contained():
            return self._unit([self._inner.embed_query(text)], 1)[0]

    def _unit(self, rows: object, count: int) -> Matrix:
        return unit_rows(np.asarray(rows, dtype=np.float64), count, self.dimension, self.id)


class OwnReranker:
    """Its scores are any row of numbers, an array too, and may be fewer than the texts; all else is a failure."""

    def __init__(self, inner: Reranker) -> None:
        self._inner = inner

    @property
    def id(self) -> str:
        return self._inner.id

    def score(self, query: str, texts: Sequence[str], budget_ms: float | None = None) -> list[float]:
        with contained():
            scores = np.asarray(self._inner.score(query, texts, budget_ms), dtype=np.float64)
        if scores.ndim != 1 or len(scores) > len(texts) or not np.isfinite(scores).all():
            raise ModelUnavailable(f"{self.id} gave something other than one number per text")
        return scores.tolist()
