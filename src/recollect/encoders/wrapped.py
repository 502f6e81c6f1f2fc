"""An embedder around another: what it does not change itself is the other's."""

from __future__ import annotations

from recollect.ports import Dictionary, Embedder


class Wrapped:
    """All but the vectors."""

    def __init__(self, inner: Embedder) -> None:
        self._inner = inner

    @property
    def id(self) -> str:
        return self._inner.id

    @property
    def dimension(self) -> int:
        return self._inner.dimension

    @property
    def max_tokens(self) -> int:
        return self._inner.max_tokens

    def count_tokens(self, text: str) -> int:
        return self._inner.count_tokens(text)

    def knows(self, word: str) -> bool:
        return isinstance(self._inner, Dictionary) and self._inner.knows(word)
